//! The custom resources that users would create: the examples of a ClusterServiceVersion.

use mainstay_client::Cluster;
use mainstay_object::Object;
use serde_json::Value;

/// Creates the custom resources of `alm-examples` of the kinds that the version owns, and returns
/// their number. Examples that the API server rejects are skipped.
///
/// # Errors
/// The cluster cannot be read.
pub(super) async fn create(
    cluster: &Cluster,
    namespace: &str,
    csv: &Object,
) -> anyhow::Result<usize> {
    let examples = csv.annotation("alm-examples").unwrap_or_default();
    let examples: Vec<Value> = serde_json::from_str(examples).unwrap_or_default();
    let owned = csv.array(&["spec", "customresourcedefinitions", "owned"]);
    let mut created = 0;
    for example in examples {
        let Ok(mut object) = Object::from_value(example) else { continue };
        if !owned.iter().any(|crd| crd["kind"] == *object.kind()) {
            continue;
        }
        let Some(resource) = cluster.resource_of(&object.gvk()).await? else { continue };
        object.remove(&["status"]);
        // The operator is simulated and would never remove a finalizer.
        object.remove(&["metadata", "finalizers"]);
        if resource.is_namespaced() {
            object.set(&["metadata", "namespace"], namespace.into());
        } else {
            object.remove(&["metadata", "namespace"]);
        }
        if cluster.create(&resource, &object).await.is_ok() {
            created += 1;
        }
    }
    Ok(created)
}
