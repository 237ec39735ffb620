//! Built-in admission, tested through writes.

use crate::harness::Api;
use serde_json::{Value, json};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const STORAGE: &str = "/apis/storage.k8s.io/v1/storageclasses";
const MERGE: &str = "merge";

fn claim(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}})
}

fn class(name: &str, default: &str, grows: bool) -> Value {
    json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p",
        "metadata": {"name": name, "annotations": {
            "storageclass.kubernetes.io/is-default-class": default}},
        "allowVolumeExpansion": grows})
}

#[tokio::test]
async fn claims_and_ingresses_get_the_default_class() {
    let api = Api::new().await;
    let created = api.post(CLAIMS, &claim("before")).await.ok();
    assert_eq!(created["spec"].get("storageClassName"), None);
    assert_eq!(created["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    for (name, default) in [("b", "true"), ("a", "true"), ("c", "false")] {
        api.post(STORAGE, &class(name, default, false)).await.ok();
    }
    let created = api.post(CLAIMS, &claim("after")).await.ok();
    assert_eq!(created["spec"]["storageClassName"], "a", "of one second the first by name");
    let mut none = claim("none");
    none["spec"]["storageClassName"] = "".into();
    assert_eq!(api.post(CLAIMS, &none).await.ok()["spec"]["storageClassName"], "");

    let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "i"}, "spec": {"defaultBackend": {"service": {
            "name": "s", "port": {"number": 80}}}}});
    let class = json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass",
        "metadata": {"name": "web", "annotations": {
            "ingressclass.kubernetes.io/is-default-class": "true"}},
        "spec": {"controller": "x.io/c"}});
    api.post("/apis/networking.k8s.io/v1/ingressclasses", &class).await.ok();
    let created =
        api.post("/apis/networking.k8s.io/v1/namespaces/default/ingresses", &ingress).await;
    assert_eq!(created.ok()["spec"]["ingressClassName"], "web");
}

#[tokio::test]
async fn a_bound_claim_grows_if_its_class_allows_it() {
    let api = Api::new().await;
    api.post(STORAGE, &class("fixed", "false", false)).await.ok();
    api.post(STORAGE, &class("grows", "false", true)).await.ok();
    let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    for (name, class) in [("a", "fixed"), ("b", "grows")] {
        let mut claim = claim(name);
        claim["spec"]["storageClassName"] = class.into();
        claim["spec"]["volumeName"] = "v".into();
        api.post(CLAIMS, &claim).await.ok();
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        api.patch(&format!("{CLAIMS}/{name}/status"), MERGE, &bound).await.ok();
    }
    assert_eq!(
        api.patch(&format!("{CLAIMS}/a"), MERGE, &larger).await.refused(),
        (
            403,
            "persistentvolumeclaims \"a\" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
                .to_owned()
        )
    );
    api.patch(&format!("{CLAIMS}/b"), MERGE, &larger).await.ok();
}

#[tokio::test]
async fn only_one_priority_class_may_be_the_global_default() {
    const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let api = Api::new().await;
    let class = |name: &str| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": 5, "globalDefault": true})
    };
    api.post(CLASSES, &class("a")).await.ok();
    assert_eq!(
        api.post(CLASSES, &class("b")).await.refused(),
        (
            403,
            "priorityclasses.scheduling.k8s.io \"b\" is forbidden: PriorityClass a is already marked as default. Only one default can exist"
                .to_owned()
        )
    );
    let described = json!({"description": "the one"});
    api.patch(&format!("{CLASSES}/a"), MERGE, &described).await.ok();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let created = api.post("/api/v1/namespaces/default/pods", &pod).await.ok();
    assert_eq!(
        (&created["spec"]["priorityClassName"], &created["spec"]["priority"]),
        (&json!("a"), &json!(5))
    );
}

#[tokio::test]
async fn a_bound_pod_has_the_zone_label_of_its_node() {
    let api = Api::new().await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {
        "topology.kubernetes.io/zone": "z", "other": "o"}}});
    let created = api.post("/api/v1/nodes", &node).await.ok();
    assert_eq!(
        created["spec"]["taints"],
        json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    );
    let pods = "/api/v1/namespaces/default/pods";
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n"}});
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.post(pods, &pod).await.ok();
    api.post(&format!("{pods}/p/binding"), &binding).await.ok();
    let bound = api.get(&format!("{pods}/p")).await.ok();
    assert_eq!(bound["metadata"]["labels"], json!({"topology.kubernetes.io/zone": "z"}));

    pod["metadata"]["name"] = "gated".into();
    pod["spec"]["schedulingGates"] = json!([{"name": "x.io/wait"}]);
    api.post(pods, &pod).await.ok();
    let mut binding = binding;
    binding["metadata"]["name"] = "gated".into();
    let (code, message) = api.post(&format!("{pods}/gated/binding"), &binding).await.refused();
    assert_eq!(code, 409);
    assert!(message.ends_with("pod gated has non-empty .spec.schedulingGates"), "{message}");
}
