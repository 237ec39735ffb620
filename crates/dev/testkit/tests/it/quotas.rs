//! Tests of `ResourceQuota`s: usage is charged on writes and released on deletion.

use mainstay_client::DeleteOptions;
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::TestCluster;
use serde_json::{Value, json};

fn object(gvk: &mainstay_object::Gvk, name: &str, spec: Value) -> Object {
    let mut object = Object::new(gvk, name);
    object.set(&["metadata", "namespace"], "default".into());
    if !spec.is_null() {
        object.set(&["spec"], spec);
    }
    object
}

async fn wait(kube: &TestCluster, name: &'static str, expected: &'static str) {
    let at = move |quota: &Object| quota.str(&["status", "used", name]) == Some(expected);
    kube.wait_for(&builtin::RESOURCE_QUOTA, Some("default"), "q", at).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deleted_and_terminated_objects_release_quota() {
    let kube = TestCluster::start().await;
    let hard = json!({"hard": {"secrets": "1", "pods": "1", "count/nothing.such": "1"}});
    kube.apply(object(&builtin::RESOURCE_QUOTA.gvk(), "q", hard)).await;
    wait(&kube, "secrets", "0").await;
    let secret = |name| object(&builtin::SECRET.gvk(), name, Value::Null);
    let create = async |object: Object, resource: Resource| {
        kube.cluster().create(&resource, &object).await.map_err(|error| error.to_string())
    };
    create(secret("a"), builtin::SECRET).await.unwrap();
    let refusal = create(secret("b"), builtin::SECRET).await.unwrap_err();
    let why = "exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1";
    assert!(refusal.contains(why), "{refusal}");
    kube.cluster()
        .delete(&builtin::SECRET, Some("default"), "a", &DeleteOptions::default())
        .await
        .unwrap();
    wait(&kube, "secrets", "0").await;
    create(secret("b"), builtin::SECRET).await.unwrap();

    let pod = |name| {
        let spec = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
        object(&builtin::POD.gvk(), name, spec)
    };
    create(pod("one"), builtin::POD).await.unwrap();
    assert!(create(pod("two"), builtin::POD).await.is_err());
    let mut ended = kube.cluster().get(&builtin::POD, Some("default"), "one").await.unwrap();
    ended.set(&["status", "phase"], "Succeeded".into());
    ended.set(&["metadata", "resourceVersion"], "".into());
    kube.cluster().update_status(&builtin::POD, &ended).await.unwrap();
    wait(&kube, "pods", "0").await;
    create(pod("two"), builtin::POD).await.unwrap();
    kube.shutdown().await;
}
