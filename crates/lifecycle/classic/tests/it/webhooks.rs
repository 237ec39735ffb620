//! Webhooks of operators: their configurations and certificates.

use crate::olm_cluster::{OlmCluster, crd, create_namespace};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SUBSCRIPTION};
use mainstay_client::{DeleteOptions, ObjectList, Patch, Selection};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

/// A webhook description for the Deployment `anvil`.
pub(crate) fn webhook(kind: &str, name: &str) -> Value {
    json!({
        "type": kind, "generateName": name, "deploymentName": "anvil", "targetPort": 9443,
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "webhookPath": "/hook",
    })
}

/// An admission webhook description for anvils.
pub(crate) fn admission_webhook(kind: &str, name: &str) -> Value {
    let mut hook = webhook(kind, name);
    hook["rules"] = json!([{
        "apiGroups": ["forge.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
        "resources": ["anvils"],
    }]);
    hook
}

/// Edits the CSV in a bundle.
pub(crate) fn edit_csv(bundle: &mut Value, edit: impl Fn(&mut Value)) {
    edit_objects(bundle, |object| {
        if object["kind"] == "ClusterServiceVersion" {
            edit(object);
        }
    });
}

fn edit_objects(bundle: &mut Value, edit: impl Fn(&mut Value)) {
    let properties = bundle["properties"].as_array_mut().unwrap();
    for property in properties.iter_mut().filter(|property| property["type"] == "olm.bundle.object")
    {
        let data = property["value"]["data"].as_str().unwrap();
        let mut object: Value = serde_json::from_slice(&BASE64.decode(data).unwrap()).unwrap();
        edit(&mut object);
        property["value"]["data"] = BASE64.encode(object.to_string()).into();
    }
}

/// A cluster with a Subscription to versions with these webhooks.
async fn olm_with_webhooks(versions: &[&str], hooks: &Value) -> OlmCluster {
    let olm = OlmCluster::start(&[]).await;
    publish_with_webhooks(&olm, versions, hooks);
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm
}

fn publish_with_webhooks(olm: &OlmCluster, versions: &[&str], hooks: &Value) {
    olm.publish_edited(versions, |_, bundle| {
        edit_csv(bundle, |csv| csv["spec"]["webhookdefinitions"] = hooks.clone());
    });
}

async fn configurations(olm: &OlmCluster, mutating: bool) -> Vec<Object> {
    let resource = if mutating {
        builtin::MUTATING_WEBHOOK_CONFIGURATION
    } else {
        builtin::VALIDATING_WEBHOOK_CONFIGURATION
    };
    olm.cluster.cluster().list(&resource, None, &ObjectList::default()).await.unwrap().items
}

async fn certificate_secret(olm: &OlmCluster) -> Object {
    let cluster = olm.cluster.cluster();
    cluster.get(&builtin::SECRET, Some("team"), "anvil-service-cert").await.unwrap()
}

pub(crate) fn phase_history(csv: &Object) -> Vec<String> {
    csv.array(&["status", "conditions"])
        .iter()
        .map(|condition| {
            format!(
                "{}/{}",
                condition["phase"].as_str().unwrap(),
                condition["reason"].as_str().unwrap()
            )
        })
        .filter(|phase| {
            phase != "Installing/InstallWaiting" && phase != "Pending/RequirementsNotMet"
        })
        .collect()
}

/// Waits until the only validating configuration has exactly the CA of the Secret.
async fn wait_until_ca_trusted(olm: &OlmCluster) -> Object {
    let authority = certificate_secret(olm).await.str(&["data", "olmCAKey"]).unwrap().to_owned();
    let predicate = move |all: &[&Object]| matches!(all, [one] if one.array(&["webhooks"])[0]["clientConfig"]["caBundle"] == authority.as_str());
    let selection = Selection::all(builtin::VALIDATING_WEBHOOK_CONFIGURATION);
    olm.cluster.wait_for_all(selection, predicate).await.remove(0)
}

#[tokio::test]
async fn webhooks_are_created_recreated_and_deleted_with_their_csv() {
    let hooks = json!([
        admission_webhook("ValidatingAdmissionWebhook", "v.example.com"),
        admission_webhook("MutatingAdmissionWebhook", "m.example.com"),
    ]);
    let olm = olm_with_webhooks(&["1.0.0"], &hooks).await;
    let csv = olm.wait_until_succeeded("anvil.v1.0.0").await;
    assert!(csv.str(&["status", "certsLastUpdated"]).is_some());
    assert!(csv.str(&["status", "certsRotateAt"]).is_some());

    let cluster = olm.cluster.cluster();
    let group = cluster.get(&OPERATOR_GROUP, Some("team"), "og").await.unwrap();
    let selector = json!({"matchLabels": {format!("olm.operatorgroup.uid/{}", group.uid()): ""}});
    for mutating in [false, true] {
        let found = configurations(&olm, mutating).await;
        // shows CSV-73 WHK-01
        assert_eq!(found.len(), 1);
        let webhook = &found[0].array(&["webhooks"])[0];
        // shows WHK-03
        assert_eq!(webhook["namespaceSelector"], selector);
        let service = &webhook["clientConfig"]["service"];
        // shows WHK-02
        assert_eq!(
            *service,
            json!({"name": "anvil-service", "namespace": "team", "path": "/hook", "port": 443})
        );
    }
    let deployment = cluster.get(&builtin::DEPLOYMENT, Some("team"), "anvil").await.unwrap();
    let hash = certificate_secret(&olm).await.annotation("olmcahash").unwrap().to_owned();
    let template = deployment.get(&["spec", "template", "metadata", "annotations"]).unwrap();
    // shows WHK-04
    assert_eq!(template["olmcahash"], hash.as_str());
    let service = cluster.get(&builtin::SERVICE, Some("team"), "anvil-service").await.unwrap();
    // shows WHK-02
    assert_eq!(service.array(&["spec", "ports"])[0]["targetPort"], 9443);
    olm.wait_until_idle().await;

    // Deleted objects are recreated, and the CSV has no requirement for webhooks.
    let old = wait_until_ca_trusted(&olm).await;
    for (resource, namespace, name) in [
        (&builtin::VALIDATING_WEBHOOK_CONFIGURATION, None, old.name()),
        (&builtin::SERVICE, Some("team"), "anvil-service"),
        (&builtin::ROLE_BINDING, Some("kube-system"), "anvil-service-auth-reader"),
        (&builtin::CLUSTER_ROLE_BINDING, None, "anvil-service-system:auth-delegator"),
    ] {
        let uid = cluster.get(resource, namespace, name).await.unwrap().uid().to_owned();
        let options = DeleteOptions::default();
        cluster.ensure_deleted(resource, namespace, name, &options).await.unwrap();
        if *resource == builtin::VALIDATING_WEBHOOK_CONFIGURATION {
            assert_ne!(wait_until_ca_trusted(&olm).await.uid(), uid);
        } else {
            olm.cluster
                .wait_for(resource, namespace, name, move |object| object.uid() != uid)
                .await;
        }
    }
    let now = cluster.get(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await.unwrap();
    assert_eq!(phase_history(&now), phase_history(&csv));

    for (resource, name) in [(SUBSCRIPTION, "anvil"), (CLUSTER_SERVICE_VERSION, "anvil.v1.0.0")] {
        let options = DeleteOptions::default();
        cluster.ensure_deleted(&resource, Some("team"), name, &options).await.unwrap();
    }
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
    // shows WHK-01
    assert!(
        configurations(&olm, false).await.is_empty() && configurations(&olm, true).await.is_empty()
    );
    for (resource, namespace, name) in [
        (&builtin::CLUSTER_ROLE_BINDING, None, "anvil-service-system:auth-delegator"),
        (&builtin::ROLE_BINDING, Some("kube-system"), "anvil-service-auth-reader"),
        (&builtin::SECRET, Some("team"), "anvil-service-cert"),
        (&builtin::SERVICE, Some("team"), "anvil-service"),
    ] {
        olm.cluster.wait_gone(resource, namespace, name).await;
    }
}

#[tokio::test]
async fn webhook_certificate_is_renewed_when_missing_or_due() {
    let hooks = json!([admission_webhook("ValidatingAdmissionWebhook", "v.example.com")]);
    let olm = olm_with_webhooks(&["1.0.0"], &hooks).await;
    let csv = olm.wait_until_succeeded("anvil.v1.0.0").await;
    let begun = phase_history(&csv);
    let hash =
        |deployment: &Object| deployment.annotation("olmcahash").unwrap_or_default().to_owned();
    let first = hash(&certificate_secret(&olm).await);
    let cluster = olm.cluster.cluster();
    let options = DeleteOptions::default();
    cluster.delete(&builtin::SECRET, Some("team"), "anvil-service-cert", &options).await.unwrap();
    let rotated = |count: usize| {
        move |csv: &Object| {
            let all = phase_history(csv);
            all.iter().filter(|phase| *phase == "Pending/NeedsCertRotation").count() == count
                && all.last().map(String::as_str) == Some("Succeeded/InstallSucceeded")
        }
    };
    let wait = |count: usize| {
        let csv = &CLUSTER_SERVICE_VERSION;
        olm.cluster.wait_for(csv, Some("team"), "anvil.v1.0.0", rotated(count))
    };
    let csv = wait(1).await;
    // shows C07 C08 C31
    assert_eq!(
        phase_history(&csv)[begun.len()..],
        [
            "Pending/NeedsCertRotation",
            "InstallReady/AllRequirementsMet",
            "Installing/InstallSucceeded",
            "Succeeded/InstallSucceeded",
        ]
    );
    let second = hash(&certificate_secret(&olm).await);
    // shows C31
    assert_ne!(first, second);
    wait_until_ca_trusted(&olm).await;

    // `status.certsRotateAt` counts: a past time rotates at once, a later one at that time.
    for (count, seconds) in [(2, -1_000_000), (3, 2)] {
        let at = olm.cluster.clock().now() + jiff::SignedDuration::from_secs(seconds);
        let at = at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let patch = Patch::Merge(json!({"status": {"certsRotateAt": at}}));
        cluster
            .patch_status(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0", &patch)
            .await
            .unwrap();
        let csv = wait(count).await;
        // shows C31 E093
        assert_ne!(csv.str(&["status", "certsRotateAt"]), Some(at.as_str()));
        let deployment = cluster.get(&builtin::DEPLOYMENT, Some("team"), "anvil").await.unwrap();
        let template = deployment.get(&["spec", "template", "metadata", "annotations"]).unwrap();
        // shows C31 E093
        assert_eq!(template["olmcahash"], hash(&certificate_secret(&olm).await).as_str());
        wait_until_ca_trusted(&olm).await;
    }
    olm.wait_until_idle().await;
}

#[tokio::test]
async fn upgrade_keeps_the_webhook_certificate_valid_for_every_call() {
    let hooks = json!([admission_webhook("ValidatingAdmissionWebhook", "v.example.com")]);
    let olm = olm_with_webhooks(&["1.0.0"], &hooks).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let before = certificate_secret(&olm).await;
    let old = wait_until_ca_trusted(&olm).await;
    publish_with_webhooks(&olm, &["1.0.0", "1.1.0"], &hooks);
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
    let new = wait_until_ca_trusted(&olm).await;
    assert_ne!(old.uid(), new.uid());
    // shows E093
    assert_eq!(new.label("olm.owner"), Some("anvil.v1.1.0"));
    let after = certificate_secret(&olm).await;
    // shows E093
    assert_eq!(before.get(&["data"]), after.get(&["data"]));
    let owners: Vec<String> =
        after.owner_references().into_iter().map(|owner_reference| owner_reference.name).collect();
    assert_eq!(owners, ["anvil.v1.1.0"]);
    olm.wait_until_idle().await;
    assert_eq!(certificate_secret(&olm).await.uid(), before.uid());
}

#[tokio::test]
async fn webhooks_have_the_operator_groups_selector_and_none_for_all_namespaces() {
    let hooks = json!([admission_webhook("ValidatingAdmissionWebhook", "v.example.com")]);
    let olm = OlmCluster::start(&[]).await;
    publish_with_webhooks(&olm, &["1.0.0"], &hooks);
    olm.apply_group_for("og", &[]).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let selects = |wanted: Value| {
        let selection = Selection::all(builtin::VALIDATING_WEBHOOK_CONFIGURATION);
        olm.cluster.wait_for_all(selection, move |all| {
            matches!(all, [one] if one.array(&["webhooks"])[0]["namespaceSelector"] == wanted)
        })
    };
    // shows E093
    selects(json!({})).await;
    create_namespace(&olm.cluster, "chosen", "team: anvil").await;
    let patch = Patch::Merge(json!({"spec": {"selector": {"matchLabels": {"team": "anvil"}}}}));
    let cluster = olm.cluster.cluster();
    cluster.patch(&OPERATOR_GROUP, Some("team"), "og", &patch).await.unwrap();
    // shows E093
    selects(json!({"matchLabels": {"team": "anvil"}})).await;
}

/// A CRD with two versions.
fn crd_with_two_versions() -> Value {
    let mut crd = crd();
    let mut second = crd["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(second);
    crd
}

#[tokio::test]
async fn crd_uses_its_conversion_webhook_until_its_csv_is_deleted() {
    let olm = OlmCluster::start(&[]).await;
    let mut converter = webhook("ConversionWebhook", "c.example.com");
    converter["conversionCRDs"] = json!(["anvils.forge.example.com"]);
    let publish = |versions: &[&str]| {
        olm.publish_edited(versions, |_, bundle| {
            edit_objects(bundle, |object| {
                if object["kind"] == "CustomResourceDefinition" {
                    *object = crd_with_two_versions();
                } else if object["kind"] == "ClusterServiceVersion" {
                    object["spec"]["installModes"] =
                        json!([{"type": "AllNamespaces", "supported": true}]);
                    object["spec"]["webhookdefinitions"] = json!([converter]);
                }
            });
        });
    };
    publish(&["1.0.0"]);
    olm.apply_group_for("og", &[]).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let cluster = olm.cluster.cluster();
    let crd = &builtin::CUSTOM_RESOURCE_DEFINITION;
    let conversion = || async {
        let found = cluster.get(crd, None, "anvils.forge.example.com").await.unwrap();
        found.get(&["spec", "conversion"]).cloned().unwrap()
    };
    let authority = certificate_secret(&olm).await.str(&["data", "olmCAKey"]).unwrap().to_owned();
    let wanted = json!({"strategy": "Webhook", "webhook": {
        "clientConfig": {"caBundle": authority, "service": {
            "name": "anvil-service", "namespace": "team", "path": "/hook", "port": 443,
        }},
        "conversionReviewVersions": ["v1"],
    }});
    // shows WHK-06
    assert_eq!(conversion().await, wanted);
    // The conversion stays during an upgrade.
    publish(&["1.0.0", "1.1.0"]);
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
    assert_eq!(conversion().await, wanted);
    olm.wait_until_idle().await;
    for (resource, name) in [(SUBSCRIPTION, "anvil"), (CLUSTER_SERVICE_VERSION, "anvil.v1.1.0")] {
        let options = DeleteOptions::default();
        cluster.ensure_deleted(&resource, Some("team"), name, &options).await.unwrap();
    }
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.1.0").await;
    // shows WHK-06
    assert_eq!(conversion().await, json!({"strategy": "None"}));
}

#[tokio::test]
async fn csv_for_single_namespaces_cannot_have_a_conversion_webhook() {
    let mut converter = webhook("ConversionWebhook", "c.example.com");
    converter["conversionCRDs"] = json!(["anvils.forge.example.com"]);
    let olm = olm_with_webhooks(&["1.0.0"], &json!([converter])).await;
    let csv = olm.wait_for_csv("anvil.v1.0.0", "Failed", "InstallComponentFailed").await;
    // shows WHK-06 E093
    assert_eq!(
        csv.str(&["status", "message"]),
        Some(
            "install strategy failed: unable to manage conversion webhook: CSVs with conversion webhooks must support only AllNamespaces"
        )
    );
    olm.wait_until_idle().await;
}

#[tokio::test]
async fn webhook_with_wildcard_rules_fails_its_csv() {
    let mut all = admission_webhook("ValidatingAdmissionWebhook", "v.example.com");
    all["rules"][0]["apiGroups"] = json!(["*"]);
    let olm = olm_with_webhooks(&["1.0.0"], &json!([all])).await;
    let csv = olm.wait_for_csv("anvil.v1.0.0", "Failed", "InvalidWebhookDescription").await;
    // shows WHK-05
    assert_eq!(csv.str(&["status", "message"]), Some("webhook rules cannot include all groups"));
    olm.wait_until_idle().await;
}
