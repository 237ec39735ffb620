//! Pods that never become ready on an existing cluster.
//!
//! Recorded cases mark such pods with a label. Simulated nodes report each pod as ready. So an admission
//! policy refuses this status for pods with the label: they stay pending, and their Deployments
//! unavailable.

use super::system::BEHAVIOUR_LABEL;
use mainstay_client::Cluster;
use mainstay_object::{Object, Resource};
use serde_json::json;

/// The name of the policy and of its binding.
const NAME: &str = "mainstay-conformance-unready-pods";
/// The API group of policies.
const GROUP: &str = "admissionregistration.k8s.io";
/// Admission policies.
const POLICY: Resource =
    Resource::cluster(GROUP, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies");
/// What puts policies into effect.
const BINDING: Resource = Resource::cluster(
    GROUP,
    "v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
);

/// Creates the policy, or leaves it as it is.
///
/// # Errors
/// The API server does not respond, or refuses it.
pub(super) async fn keep_unready(cluster: &Cluster, field_manager: &str) -> anyhow::Result<()> {
    let policy = Object::from_value(json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": POLICY.kind, "metadata": {"name": NAME},
        "spec": {
            "matchConstraints": {
                "objectSelector": {"matchExpressions": [
                    {"key": BEHAVIOUR_LABEL, "operator": "In", "values": ["stuck", "crash"]},
                ]},
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"],
                    "resources": ["pods/status"],
                }],
            },
            "validations": [{
                "expression": "!object.?status.conditions.orValue([]).exists(condition, \
                    condition.type == 'Ready' && condition.status == 'True')",
                "message": format!("the label {BEHAVIOUR_LABEL} keeps the pod from becoming ready"),
            }],
        },
    }))?;
    let binding = Object::from_value(json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": BINDING.kind, "metadata": {"name": NAME},
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    }))?;
    cluster.apply(&POLICY, &policy, field_manager).await?;
    cluster.apply(&BINDING, &binding, field_manager).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_client::Patch;
    use mainstay_object::builtin::POD;
    use mainstay_testkit::TestCluster;

    #[tokio::test(flavor = "multi_thread")]
    async fn only_pods_without_the_label_become_ready() {
        let server = TestCluster::start().await;
        let cluster = server.cluster();
        keep_unready(cluster, "test").await.unwrap();
        keep_unready(cluster, "test").await.unwrap();
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let pending = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
        for (name, labels, becomes_ready) in [
            ("stuck", json!({BEHAVIOUR_LABEL: "stuck"}), false),
            ("crash", json!({BEHAVIOUR_LABEL: "crash"}), false),
            ("run", json!({BEHAVIOUR_LABEL: "run"}), true),
            ("plain", json!({"app": "a"}), true),
        ] {
            // No node takes it, so nobody else writes its status.
            let pod = Object::from_value(json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "labels": labels},
                "spec": {
                    "containers": [{"name": "a", "image": "registry.example/a:v1"}],
                    "nodeSelector": {"none": "matches"},
                },
            }));
            cluster.create(&POD, &pod.unwrap()).await.unwrap();
            let update = async |status: &serde_json::Value| {
                cluster
                    .patch_status(&POD, Some("default"), name, &Patch::Merge(status.clone()))
                    .await
            };
            update(&pending).await.unwrap();
            let result = update(&ready).await;
            assert_eq!(result.is_ok(), becomes_ready, "{name}: {result:?}");
            if let Err(error) = result {
                assert!(error.to_string().contains("keeps the pod from becoming ready"), "{error}");
            }
        }
        server.shutdown().await;
    }
}
