//! Operators with webhooks: the Secret with the certificate has the same name in both systems.

use super::{
    assert_converted, assert_done, find, manifests, migrate, subscribed_to, wait_for_classic,
};
use crate::live_cluster::LiveCluster;
use mainstay_extensions::{Features, WebhookCertificates};
use mainstay_object::{Object, builtin};
use serde_json::json;

const SECRET: &str = "anvil-service-cert";
const SERVING: &str = "service.beta.openshift.io/serving-cert-secret-name";

/// A cluster on which OLM classic has installed an operator with a webhook.
async fn installed(certificates: WebhookCertificates) -> LiveCluster {
    let mut manifests = manifests();
    manifests[0].1["spec"]["webhookdefinitions"] = json!([{
        "type": "ValidatingAdmissionWebhook", "generateName": "v.example.com",
        "deploymentName": "anvil", "containerPort": 443, "targetPort": 9443,
        "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
        "webhookPath": "/hook",
        "rules": [{
            "apiGroups": ["forge.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["anvils"], "scope": "*",
        }],
    }]);
    let features = Features::default().with_certificates(certificates);
    let live = subscribed_to(&manifests, features, json!({})).await;
    wait_for_classic(&live).await;
    live
}

/// Checks that OLM classic serves the webhook again, with a certificate of its own.
async fn assert_given_back(live: &LiveCluster) {
    let rollback = migrate(live, "rollback anvil --acknowledge-installed --timeout 60s").await;
    assert_done(&rollback);
    wait_for_classic(live).await;
    for kind in [&builtin::SECRET, &builtin::SERVICE] {
        let name = if *kind == builtin::SECRET { SECRET } else { "anvil-service" };
        let object = find(live, kind, name).await.unwrap();
        let owners = object.owner_references();
        let owners: Vec<&str> = owners.iter().map(|owner| &*owner.kind).collect();
        assert_eq!(owners, ["ClusterServiceVersion"], "{name}");
    }
    let secret = find(live, &builtin::SECRET, SECRET).await.unwrap();
    assert!(secret.str(&["data", "olmCAKey"]).is_some(), "OLM classic issued it");
}

#[tokio::test]
async fn operator_with_webhooks_gets_certificates_of_the_controller() {
    let live = installed(WebhookCertificates::Own).await;
    let check = migrate(&live, "check anvil -n team").await;
    assert!(check.out.contains("name it with --certificates"), "{}", check.out);
    let convert = migrate(&live, "convert anvil -n team --certificates own").await;
    assert_done(&convert);
    assert_converted(&live).await;
    let kind = &builtin::SECRET;
    let is_ours = |secret: &Object| {
        secret.owner_references().iter().all(|owner| owner.kind == "ClusterExtension")
            && secret.str(&["data", "ca.crt"]).is_some()
    };
    let secret = live.cluster.wait_for(kind, Some("team"), SECRET, is_ours).await;
    let kind = &builtin::VALIDATING_WEBHOOK_CONFIGURATION;
    let caller = find(&live, kind, "v.example.com").await.unwrap();
    let trusted = caller.array(&["webhooks"])[0]["clientConfig"]["caBundle"].clone();
    assert_eq!(secret.str(&["data", "ca.crt"]), trusted.as_str());
    assert_given_back(&live).await;
    live.shutdown().await;
}

#[tokio::test]
async fn certificate_of_the_service_ca_makes_way_for_that_of_classic() {
    let live = installed(WebhookCertificates::ServiceCa).await;
    let convert = migrate(&live, "convert anvil -n team --certificates service-ca").await;
    assert_done(&convert);
    live.cluster.wait_gone(&builtin::SECRET, Some("team"), SECRET).await;
    let service = find(&live, &builtin::SERVICE, "anvil-service").await.unwrap();
    assert_eq!(service.annotation(SERVING), Some(SECRET));
    let issued = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": SECRET, "namespace": "team", "ownerReferences": [{
            "apiVersion": "v1", "kind": "Service", "name": service.name(), "uid": service.uid(),
        }]},
        "data": {"tls.crt": "", "tls.key": ""},
    });
    live.cluster.apply(Object::from_value(issued).unwrap()).await;
    assert_given_back(&live).await;
    let service = find(&live, &builtin::SERVICE, "anvil-service").await.unwrap();
    assert_eq!(service.annotation(SERVING), None, "or it is issued again");
    live.shutdown().await;
}
