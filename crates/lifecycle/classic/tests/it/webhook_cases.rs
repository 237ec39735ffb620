//! Webhooks of versions that people write themselves, case by case.

use crate::by_hand::{
    at, definition, delete, deployment, edit, group, in_phase, make, object, owning, version,
};
use crate::world::{World, namespace};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION as CSV, OPERATOR_GROUP};
use mainstay_client::{Patch, Selection};
use mainstay_object::{Object, known};
use serde_json::{Value, json};

const NAME: &str = "webhook.test.com";
const VALIDATING: mainstay_object::Resource = known::VALIDATING_WEBHOOK_CONFIGURATION;

/// A webhook of the Deployment `hook`, with these rules.
fn hook(name: &str, rules: &Value) -> Value {
    json!({
        "type": "ValidatingAdmissionWebhook", "generateName": name, "deploymentName": "hook",
        "containerPort": 443, "admissionReviewVersions": ["v1beta1", "v1"], "sideEffects": "None",
        "rules": rules,
    })
}

fn rules(group: &str, resource: &str, operations: &[&str]) -> Value {
    json!([{
        "apiGroups": [group], "apiVersions": ["*"], "resources": [resource],
        "operations": operations,
    }])
}

fn hooked(place: &str, name: &str, hooks: &[Value]) -> Value {
    let mut csv = version(place, name, &[deployment("hook")]);
    csv["spec"]["webhookdefinitions"] = hooks.into();
    csv
}

/// A world with the namespace `a`, which has a label, and perhaps a group there.
async fn world(targets: Option<&[&str]>) -> World {
    let world = World::start(&[]).await;
    namespace(&world.cluster, "a", "foo: bar").await;
    if let Some(targets) = targets {
        group(&world, "a", "og", targets).await;
    }
    world
}

/// Waits until there are so many configurations of webhooks of that name.
async fn named(world: &World, name: &str, count: usize) -> Vec<Object> {
    let labels = format!("olm.webhook-description-generate-name={name}");
    let all = Selection::all(VALIDATING).labels(labels);
    world.cluster.wait_for_all(all, move |all| all.len() == count).await
}

fn selector(configuration: &Object) -> &Value {
    &configuration.array(&["webhooks"])[0]["namespaceSelector"]
}

#[tokio::test]
async fn webhook_namespace_selector_is_that_of_the_operator_group() {
    let none = json!([]);
    let by_label = json!({"matchLabels": {"foo": "bar"}});
    let first = world(None).await;
    first
        .cluster
        .apply(object(json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "og", "namespace": "a"}, "spec": {"selector": by_label},
        })))
        .await;
    make(&first, hooked("a", "v", &[hook(NAME, &none)])).await;
    in_phase(&first, "a", "v", "Succeeded").await;
    // shows E093
    assert_eq!(selector(&named(&first, NAME, 1).await[0]), &by_label);

    let second = world(Some(&[])).await;
    make(&second, hooked("a", "v", &[hook(NAME, &none)])).await;
    in_phase(&second, "a", "v", "Succeeded").await;
    // shows E093
    assert_eq!(selector(&named(&second, NAME, 1).await[0]), &json!({}));

    let third = world(Some(&["a"])).await;
    make(&third, hooked("a", "v", &[hook(NAME, &none)])).await;
    in_phase(&third, "a", "v", "Succeeded").await;
    let og = third.cluster.cluster().get(&OPERATOR_GROUP, Some("a"), "og").await.unwrap();
    let label = format!("olm.operatorgroup.uid/{}", og.uid());
    // shows E093
    assert_eq!(selector(&named(&third, NAME, 1).await[0]), &json!({"matchLabels": {label: ""}}));
    // Another description in the same version.
    let changed = format!("{NAME}-changed");
    edit(&third, "a", "v", json!({"spec": {"webhookdefinitions": [hook(&changed, &none)]}})).await;
    named(&third, &changed, 1).await;
    named(&third, NAME, 0).await;
    third.left_alone().await;
    in_phase(&third, "a", "v", "Succeeded").await;
}

#[tokio::test]
async fn valid_webhook_certificate_is_kept_when_its_csv_is_reinstalled() {
    let world = world(Some(&["a"])).await;
    make(&world, hooked("a", "v", &[hook(NAME, &json!([]))])).await;
    in_phase(&world, "a", "v", "Succeeded").await;
    let cluster = world.cluster.cluster();
    let secrets = known::SECRET;
    let secret = || cluster.get(&secrets, Some("a"), "hook-service-cert");
    let before = secret().await.unwrap();
    let pending = Patch::Merge(json!({"status": {"phase": "Pending"}}));
    let written = cluster.patch_status(&CSV, Some("a"), "v", &pending).await.unwrap();
    let steps = written.array(&["status", "conditions"]).len();
    let again = move |csv: &Object| {
        csv.str(&["status", "phase"]) == Some("Succeeded")
            && csv.array(&["status", "conditions"]).len() > steps
    };
    world.cluster.wait_for(&CSV, Some("a"), "v", again).await;
    let after = secret().await.unwrap();
    // shows E093
    assert_eq!(after.annotation("olmcahash"), before.annotation("olmcahash"));
    assert_eq!(after.get(&["data", "olmCAKey"]), before.get(&["data", "olmCAKey"]));
}

#[tokio::test]
async fn webhooks_with_invalid_names_or_rules_are_refused() {
    let world = world(Some(&["a"])).await;
    let own = "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources";
    let admission = "admissionregistration.k8s.io";
    let one = |rules: Value| vec![hook(NAME, &rules)];
    let twice = vec![hook(NAME, &json!([])), hook(NAME, &json!([]))];
    for (at_case, (hooks, message)) in [
        (twice, "CSV contains repeated WebhookDescription name"),
        (one(rules("*", "*", &[])), "webhook rules cannot include all groups"),
        (
            one(rules("operators.coreos.com", "*", &[])),
            "webhook rules cannot include the OLM group",
        ),
        (one(rules(admission, "*", &[])), own),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("v{at_case}");
        make(&world, hooked("a", &name, &hooks)).await;
        let failed = at(&world, "a", &name, "Failed", "InvalidWebhookDescription").await;
        // shows E093
        assert_eq!(failed.str(&["status", "message"]), Some(message));
        delete(&world, &CSV, Some("a"), &name).await;
        world.cluster.wait_gone(&CSV, Some("a"), &name).await;
    }
    named(&world, NAME, 0).await;
    let other = rules(admission, "SomeOtherResource", &["*"]);
    make(&world, hooked("a", "good", &one(other))).await;
    // shows E093
    in_phase(&world, "a", "good", "Succeeded").await;
    named(&world, NAME, 1).await;
}

#[tokio::test]
async fn upgrade_replaces_a_renamed_webhook() {
    let world = world(Some(&["a"])).await;
    let other = rules("admissionregistration.k8s.io", "SomeOtherResource", &["*"]);
    make(&world, hooked("a", "v1", &[hook(NAME, &other)])).await;
    in_phase(&world, "a", "v1", "Succeeded").await;
    named(&world, NAME, 1).await;
    let mut next = hooked("a", "v2", &[hook("webhook2.test.com", &other)]);
    next["spec"]["replaces"] = "v1".into();
    make(&world, next).await;
    in_phase(&world, "a", "v2", "Succeeded").await;
    // shows E093
    named(&world, "webhook2.test.com", 1).await;
    world.cluster.wait_gone(&CSV, Some("a"), "v1").await;
    // shows E093
    named(&world, NAME, 0).await;
}

#[tokio::test]
async fn webhook_of_one_name_is_installed_in_two_namespaces() {
    let world = world(None).await;
    namespace(&world.cluster, "b", "").await;
    for place in ["a", "b"] {
        // A target that is not there.
        group(&world, place, "og", &["nowhere"]).await;
        make(&world, hooked(place, "v", &[hook(NAME, &json!([]))])).await;
        in_phase(&world, place, "v", "Succeeded").await;
    }
    // shows E093
    let both = named(&world, NAME, 2).await;
    assert!(both.iter().all(|configuration| configuration.name().starts_with(NAME)));
    world.left_alone().await;
    delete(&world, &CSV, Some("a"), "v").await;
    let left = named(&world, NAME, 1).await;
    assert_eq!(left[0].label("olm.owner.namespace"), Some("b"));
}

/// A definition that says that a Service of somebody else converts it.
fn converted(plural: &str) -> Object {
    let mut crd = definition(plural, &["v1", "v2"]);
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"service": {
            "namespace": "system", "name": "webhook-service", "path": "/convert", "port": 443,
        }},
        "conversionReviewVersions": ["v1", "v1beta1"],
    }});
    crd.set(&["spec", "conversion"], conversion);
    crd
}

#[tokio::test]
async fn admission_webhook_with_conversion_crds_changes_no_crd() {
    let world = world(Some(&[])).await;
    for plural in ["hats", "caps"] {
        world.cluster.apply(converted(plural)).await;
    }
    let mut naming = hook(NAME, &json!([]));
    naming["conversionCRDs"] = json!(["hats.cluster.com", "caps.cluster.com"]);
    // One that owns none of them, and then one that owns one and supports more than all namespaces.
    let only_all = json!([
        {"type": "OwnNamespace", "supported": false},
        {"type": "AllNamespaces", "supported": true},
    ]);
    let mut stranger = hooked("a", "stranger", std::slice::from_ref(&naming));
    stranger["spec"]["installModes"] = only_all;
    make(&world, stranger).await;
    in_phase(&world, "a", "stranger", "Succeeded").await;
    assert_eq!(selector(&named(&world, NAME, 1).await[0]), &json!({}));
    delete(&world, &CSV, Some("a"), "stranger").await;
    world.cluster.wait_gone(&CSV, Some("a"), "stranger").await;
    let owner = owning(hooked("a", "owner", &[naming]), "hats");
    make(&world, owner).await;
    in_phase(&world, "a", "owner", "Succeeded").await;
    world.left_alone().await;
    let cluster = world.cluster.cluster();
    for plural in ["hats", "caps"] {
        let name = format!("{plural}.cluster.com");
        let crd = cluster.get(&known::CUSTOM_RESOURCE_DEFINITION, None, &name).await.unwrap();
        let client = crd.get(&["spec", "conversion", "webhook", "clientConfig"]).unwrap();
        // shows E093
        assert_eq!(
            client["service"],
            json!({"namespace": "system", "name": "webhook-service", "path": "/convert", "port": 443})
        );
        // shows E093
        assert_eq!(client.get("caBundle"), None);
    }
}

#[tokio::test]
async fn one_deployment_serves_validating_mutating_and_conversion_webhooks() {
    let world = world(Some(&[])).await;
    world.cluster.apply(definition("hats", &["v1", "v2"])).await;
    let asked = rules("cluster.com", "hats", &["CREATE"]);
    let mut mutating = hook("m.test.com", &asked);
    mutating["type"] = "MutatingAdmissionWebhook".into();
    let mut converting = hook("c.test.com", &json!([]));
    converting["type"] = "ConversionWebhook".into();
    converting["conversionCRDs"] = json!(["hats.cluster.com"]);
    converting["webhookPath"] = "/convert".into();
    let mut csv = owning(hooked("a", "v", &[hook(NAME, &asked), mutating, converting]), "hats");
    csv["spec"]["installModes"] = json!([{"type": "AllNamespaces", "supported": true}]);
    make(&world, csv).await;
    in_phase(&world, "a", "v", "Succeeded").await;
    // All three are called: what is written comes back in either version.
    let hat = object(json!({
        "apiVersion": "cluster.com/v1", "kind": "hats",
        "metadata": {"name": "one", "namespace": "a"}, "spec": {"size": 3},
    }));
    world.cluster.apply(hat).await;
    for version in ["v1", "v2"] {
        let path = format!("/apis/cluster.com/{version}/namespaces/a/hats/one");
        let found = world.cluster.cluster().get_raw(&path).await.unwrap();
        // shows E093
        assert_eq!(found["apiVersion"], format!("cluster.com/{version}"));
        assert_eq!(found["spec"]["size"], 3);
    }
    delete(&world, &CSV, Some("a"), "v").await;
    world.cluster.wait_gone(&CSV, Some("a"), "v").await;
    named(&world, NAME, 0).await;
    let crd = world.cluster.cluster();
    let crd = crd.get(&known::CUSTOM_RESOURCE_DEFINITION, None, "hats.cluster.com").await.unwrap();
    assert_eq!(crd.get(&["spec", "conversion"]), Some(&json!({"strategy": "None"})));
}
