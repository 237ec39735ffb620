//! Objects and lists that several tests use.

use mainstay_client::ObjectList;
use mainstay_object::{Object, Resource};
use mainstay_testkit::TestCluster;

/// The objects of a kind in `default` whose labels match.
pub(crate) async fn list_by_label(
    cluster: &TestCluster,
    resource: &Resource,
    labels: &str,
) -> Vec<Object> {
    let params = ObjectList::labels(labels);
    cluster.cluster().list(resource, Some("default"), &params).await.unwrap().items
}

/// A Deployment of this name, with so many replicas of an image.
pub(crate) fn deployment(name: &str, replicas: u32, image: &str) -> String {
    format!(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - name: main
        image: {image}
        ports: [{{name: http, containerPort: 8080}}]
"
    )
}

/// A ConfigMap of this name with an owner of kind ConfigMap.
pub(crate) fn owned_config_map(name: &str, owner: &Object, blocks: bool) -> String {
    format!(
        "
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  ownerReferences:
  - {{apiVersion: v1, kind: ConfigMap, name: {}, uid: {}, blockOwnerDeletion: {blocks}}}
",
        owner.name(),
        owner.uid()
    )
}

/// A ConfigMap of this name.
pub(crate) fn config_map(name: &str) -> String {
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}")
}
