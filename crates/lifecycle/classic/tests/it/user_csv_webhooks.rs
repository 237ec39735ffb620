//! Webhooks of user CSVs.

use crate::olm_cluster::{OlmCluster, create_namespace};
use crate::user_csvs::{
    apply_group, crd_for, create_csv, csv_in, delete_object, deployment, object, patch_csv,
    wait_for_phase, wait_for_reason, with_owned_crd,
};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION as CSV, OPERATOR_GROUP};
use mainstay_client::{Patch, Selection};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

const NAME: &str = "webhook.test.com";
const VALIDATING: mainstay_object::Resource = builtin::VALIDATING_WEBHOOK_CONFIGURATION;

/// A webhook of the Deployment `hook`, with these rules.
fn webhook(name: &str, rules: &Value) -> Value {
    json!({
        "type": "ValidatingAdmissionWebhook", "generateName": name, "deploymentName": "hook",
        "containerPort": 443, "admissionReviewVersions": ["v1beta1", "v1"], "sideEffects": "None",
        "rules": rules,
    })
}

fn webhook_rules(group: &str, resource: &str, operations: &[&str]) -> Value {
    json!([{
        "apiGroups": [group], "apiVersions": ["*"], "resources": [resource],
        "operations": operations,
    }])
}

fn csv_with_webhooks(namespace: &str, name: &str, hooks: &[Value]) -> Value {
    let mut csv = csv_in(namespace, name, &[deployment("hook")]);
    csv["spec"]["webhookdefinitions"] = hooks.into();
    csv
}

/// A cluster with the labelled namespace `a`, and an OperatorGroup there if it has targets.
async fn olm_with_labelled_namespace(targets: Option<&[&str]>) -> OlmCluster {
    let olm = OlmCluster::start(&[]).await;
    create_namespace(&olm.cluster, "a", "foo: bar").await;
    if let Some(targets) = targets {
        apply_group(&olm, "a", "og", targets).await;
    }
    olm
}

/// Waits until `count` webhook configurations with this generated name exist.
async fn wait_for_configurations(olm: &OlmCluster, name: &str, count: usize) -> Vec<Object> {
    let labels = format!("olm.webhook-description-generate-name={name}");
    let all = Selection::all(VALIDATING).labels(labels);
    olm.cluster.wait_for_all(all, move |all| all.len() == count).await
}

fn namespace_selector(configuration: &Object) -> &Value {
    &configuration.array(&["webhooks"])[0]["namespaceSelector"]
}

#[tokio::test]
async fn webhook_namespace_selector_is_that_of_the_operator_group() {
    let none = json!([]);
    let by_label = json!({"matchLabels": {"foo": "bar"}});
    let first = olm_with_labelled_namespace(None).await;
    first
        .cluster
        .apply(object(json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "og", "namespace": "a"}, "spec": {"selector": by_label},
        })))
        .await;
    create_csv(&first, csv_with_webhooks("a", "v", &[webhook(NAME, &none)])).await;
    wait_for_phase(&first, "a", "v", "Succeeded").await;
    // shows E093
    assert_eq!(namespace_selector(&wait_for_configurations(&first, NAME, 1).await[0]), &by_label);

    let second = olm_with_labelled_namespace(Some(&[])).await;
    create_csv(&second, csv_with_webhooks("a", "v", &[webhook(NAME, &none)])).await;
    wait_for_phase(&second, "a", "v", "Succeeded").await;
    // shows E093
    assert_eq!(namespace_selector(&wait_for_configurations(&second, NAME, 1).await[0]), &json!({}));

    let third = olm_with_labelled_namespace(Some(&["a"])).await;
    create_csv(&third, csv_with_webhooks("a", "v", &[webhook(NAME, &none)])).await;
    wait_for_phase(&third, "a", "v", "Succeeded").await;
    let og = third.cluster.cluster().get(&OPERATOR_GROUP, Some("a"), "og").await.unwrap();
    let label = format!("olm.operatorgroup.uid/{}", og.uid());
    // shows E093
    assert_eq!(
        namespace_selector(&wait_for_configurations(&third, NAME, 1).await[0]),
        &json!({"matchLabels": {label: ""}})
    );
    // A changed webhook description in the same CSV.
    let changed = format!("{NAME}-changed");
    patch_csv(
        &third,
        "a",
        "v",
        json!({"spec": {"webhookdefinitions": [webhook(&changed, &none)]}}),
    )
    .await;
    wait_for_configurations(&third, &changed, 1).await;
    wait_for_configurations(&third, NAME, 0).await;
    third.wait_until_idle().await;
    wait_for_phase(&third, "a", "v", "Succeeded").await;
}

#[tokio::test]
async fn valid_webhook_certificate_is_kept_when_its_csv_is_reinstalled() {
    let olm = olm_with_labelled_namespace(Some(&["a"])).await;
    create_csv(&olm, csv_with_webhooks("a", "v", &[webhook(NAME, &json!([]))])).await;
    wait_for_phase(&olm, "a", "v", "Succeeded").await;
    let cluster = olm.cluster.cluster();
    let secrets = builtin::SECRET;
    let secret = || cluster.get(&secrets, Some("a"), "hook-service-cert");
    let before = secret().await.unwrap();
    let pending = Patch::Merge(json!({"status": {"phase": "Pending"}}));
    let written = cluster.patch_status(&CSV, Some("a"), "v", &pending).await.unwrap();
    let steps = written.array(&["status", "conditions"]).len();
    let is_reinstalled = move |csv: &Object| {
        csv.str(&["status", "phase"]) == Some("Succeeded")
            && csv.array(&["status", "conditions"]).len() > steps
    };
    olm.cluster.wait_for(&CSV, Some("a"), "v", is_reinstalled).await;
    let after = secret().await.unwrap();
    // shows E093
    assert_eq!(after.annotation("olmcahash"), before.annotation("olmcahash"));
    assert_eq!(after.get(&["data", "olmCAKey"]), before.get(&["data", "olmCAKey"]));
}

#[tokio::test]
async fn webhooks_with_invalid_names_or_rules_are_refused() {
    let olm = olm_with_labelled_namespace(Some(&["a"])).await;
    let own = "webhook rules cannot include MutatingWebhookConfiguration or ValidatingWebhookConfiguration resources";
    let admission = "admissionregistration.k8s.io";
    let one = |rules: Value| vec![webhook(NAME, &rules)];
    let twice = vec![webhook(NAME, &json!([])), webhook(NAME, &json!([]))];
    for (at_case, (hooks, message)) in [
        (twice, "CSV contains repeated WebhookDescription name"),
        (one(webhook_rules("*", "*", &[])), "webhook rules cannot include all groups"),
        (
            one(webhook_rules("operators.coreos.com", "*", &[])),
            "webhook rules cannot include the OLM group",
        ),
        (one(webhook_rules(admission, "*", &[])), own),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("v{at_case}");
        create_csv(&olm, csv_with_webhooks("a", &name, &hooks)).await;
        let failed = wait_for_reason(&olm, "a", &name, "Failed", "InvalidWebhookDescription").await;
        // shows E093
        assert_eq!(failed.str(&["status", "message"]), Some(message));
        delete_object(&olm, &CSV, Some("a"), &name).await;
        olm.cluster.wait_gone(&CSV, Some("a"), &name).await;
    }
    wait_for_configurations(&olm, NAME, 0).await;
    let other = webhook_rules(admission, "SomeOtherResource", &["*"]);
    create_csv(&olm, csv_with_webhooks("a", "good", &one(other))).await;
    // shows E093
    wait_for_phase(&olm, "a", "good", "Succeeded").await;
    wait_for_configurations(&olm, NAME, 1).await;
}

#[tokio::test]
async fn upgrade_replaces_a_renamed_webhook() {
    let olm = olm_with_labelled_namespace(Some(&["a"])).await;
    let other = webhook_rules("admissionregistration.k8s.io", "SomeOtherResource", &["*"]);
    create_csv(&olm, csv_with_webhooks("a", "v1", &[webhook(NAME, &other)])).await;
    wait_for_phase(&olm, "a", "v1", "Succeeded").await;
    wait_for_configurations(&olm, NAME, 1).await;
    let mut next = csv_with_webhooks("a", "v2", &[webhook("webhook2.test.com", &other)]);
    next["spec"]["replaces"] = "v1".into();
    create_csv(&olm, next).await;
    wait_for_phase(&olm, "a", "v2", "Succeeded").await;
    // shows E093
    wait_for_configurations(&olm, "webhook2.test.com", 1).await;
    olm.cluster.wait_gone(&CSV, Some("a"), "v1").await;
    // shows E093
    wait_for_configurations(&olm, NAME, 0).await;
}

#[tokio::test]
async fn webhook_of_one_name_is_installed_in_two_namespaces() {
    let olm = olm_with_labelled_namespace(None).await;
    create_namespace(&olm.cluster, "b", "").await;
    for namespace in ["a", "b"] {
        // The target namespace does not exist.
        apply_group(&olm, namespace, "og", &["nowhere"]).await;
        create_csv(&olm, csv_with_webhooks(namespace, "v", &[webhook(NAME, &json!([]))])).await;
        wait_for_phase(&olm, namespace, "v", "Succeeded").await;
    }
    // shows E093
    let both = wait_for_configurations(&olm, NAME, 2).await;
    assert!(both.iter().all(|configuration| configuration.name().starts_with(NAME)));
    olm.wait_until_idle().await;
    delete_object(&olm, &CSV, Some("a"), "v").await;
    let remaining = wait_for_configurations(&olm, NAME, 1).await;
    assert_eq!(remaining[0].label("olm.owner.namespace"), Some("b"));
}

/// A CRD whose conversion webhook is a Service of another owner.
fn crd_with_conversion(plural: &str) -> Object {
    let mut crd = crd_for(plural, &["v1", "v2"]);
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
    let olm = olm_with_labelled_namespace(Some(&[])).await;
    for plural in ["hats", "caps"] {
        olm.cluster.apply(crd_with_conversion(plural)).await;
    }
    let mut naming = webhook(NAME, &json!([]));
    naming["conversionCRDs"] = json!(["hats.cluster.com", "caps.cluster.com"]);
    // First a CSV that owns none of the CRDs, then one that owns one and supports more than
    // AllNamespaces.
    let only_all = json!([
        {"type": "OwnNamespace", "supported": false},
        {"type": "AllNamespaces", "supported": true},
    ]);
    let mut stranger = csv_with_webhooks("a", "stranger", std::slice::from_ref(&naming));
    stranger["spec"]["installModes"] = only_all;
    create_csv(&olm, stranger).await;
    wait_for_phase(&olm, "a", "stranger", "Succeeded").await;
    assert_eq!(namespace_selector(&wait_for_configurations(&olm, NAME, 1).await[0]), &json!({}));
    delete_object(&olm, &CSV, Some("a"), "stranger").await;
    olm.cluster.wait_gone(&CSV, Some("a"), "stranger").await;
    let owner = with_owned_crd(csv_with_webhooks("a", "owner", &[naming]), "hats");
    create_csv(&olm, owner).await;
    wait_for_phase(&olm, "a", "owner", "Succeeded").await;
    olm.wait_until_idle().await;
    let cluster = olm.cluster.cluster();
    for plural in ["hats", "caps"] {
        let name = format!("{plural}.cluster.com");
        let crd = cluster.get(&builtin::CUSTOM_RESOURCE_DEFINITION, None, &name).await.unwrap();
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
    let olm = olm_with_labelled_namespace(Some(&[])).await;
    olm.cluster.apply(crd_for("hats", &["v1", "v2"])).await;
    let asked = webhook_rules("cluster.com", "hats", &["CREATE"]);
    let mut mutating = webhook("m.test.com", &asked);
    mutating["type"] = "MutatingAdmissionWebhook".into();
    let mut converting = webhook("c.test.com", &json!([]));
    converting["type"] = "ConversionWebhook".into();
    converting["conversionCRDs"] = json!(["hats.cluster.com"]);
    converting["webhookPath"] = "/convert".into();
    let mut csv = with_owned_crd(
        csv_with_webhooks("a", "v", &[webhook(NAME, &asked), mutating, converting]),
        "hats",
    );
    csv["spec"]["installModes"] = json!([{"type": "AllNamespaces", "supported": true}]);
    create_csv(&olm, csv).await;
    wait_for_phase(&olm, "a", "v", "Succeeded").await;
    // All three webhooks are called: a written object can be read in both versions.
    let hat = object(json!({
        "apiVersion": "cluster.com/v1", "kind": "hats",
        "metadata": {"name": "one", "namespace": "a"}, "spec": {"size": 3},
    }));
    olm.cluster.apply(hat).await;
    for version in ["v1", "v2"] {
        let path = format!("/apis/cluster.com/{version}/namespaces/a/hats/one");
        let found = olm.cluster.cluster().get_raw(&path).await.unwrap();
        // shows E093
        assert_eq!(found["apiVersion"], format!("cluster.com/{version}"));
        assert_eq!(found["spec"]["size"], 3);
    }
    delete_object(&olm, &CSV, Some("a"), "v").await;
    olm.cluster.wait_gone(&CSV, Some("a"), "v").await;
    wait_for_configurations(&olm, NAME, 0).await;
    let crd = olm.cluster.cluster();
    let crd =
        crd.get(&builtin::CUSTOM_RESOURCE_DEFINITION, None, "hats.cluster.com").await.unwrap();
    assert_eq!(crd.get(&["spec", "conversion"]), Some(&json!({"strategy": "None"})));
}
