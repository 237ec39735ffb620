//! Tests of the garbage collector.

use crate::helpers::{config_map, deployment, owned_config_map};
use mainstay_client::{DeleteOptions, ObjectList, Patch, Propagation};
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::TestCluster;
use serde_json::json;

async fn delete(cluster: &TestCluster, resource: &Resource, name: &str, how: Propagation) {
    let options = DeleteOptions::default().propagation(how);
    cluster.cluster().delete(resource, Some("default"), name, &options).await.unwrap();
}

async fn chain(cluster: &TestCluster, blocks: bool) -> Vec<Object> {
    let root = cluster.apply_yaml(&config_map("root")).await.remove(0);
    let middle = cluster.apply_yaml(&owned_config_map("middle", &root, blocks)).await.remove(0);
    let leaf = cluster.apply_yaml(&owned_config_map("leaf", &middle, blocks)).await.remove(0);
    vec![root, middle, leaf]
}

#[tokio::test]
async fn transitive_dependents_are_deleted_after_their_owner() {
    let cluster = TestCluster::start().await;
    chain(&cluster, false).await;
    delete(&cluster, &builtin::CONFIG_MAP, "root", Propagation::Background).await;
    for name in ["root", "middle", "leaf"] {
        cluster.wait_gone(&builtin::CONFIG_MAP, Some("default"), name).await;
    }
}

#[tokio::test]
async fn foreground_deletion_deletes_the_owner_last() {
    let cluster = TestCluster::start().await;
    chain(&cluster, true).await;
    let api = cluster.cluster();
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["test.io/hold"]}}));
    api.patch(&builtin::CONFIG_MAP, Some("default"), "leaf", &hold).await.unwrap();
    delete(&cluster, &builtin::CONFIG_MAP, "root", Propagation::Foreground).await;
    cluster.wait_for(&builtin::CONFIG_MAP, Some("default"), "leaf", Object::is_terminating).await;
    let root = api.get(&builtin::CONFIG_MAP, Some("default"), "root").await.unwrap();
    assert_eq!(root.finalizers().collect::<Vec<_>>(), ["foregroundDeletion"]);
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch(&builtin::CONFIG_MAP, Some("default"), "leaf", &release).await.unwrap();
    cluster.wait_gone(&builtin::CONFIG_MAP, Some("default"), "root").await;
    assert!(api.find(&builtin::CONFIG_MAP, Some("default"), "middle").await.unwrap().is_none());
}

#[tokio::test]
async fn owners_in_a_cycle_are_deleted_together() {
    let cluster = TestCluster::start().await;
    let mut config_maps = Vec::new();
    for name in ["a", "b", "c"] {
        config_maps.push(cluster.apply_yaml(&config_map(name)).await.remove(0));
    }
    for (at, object) in config_maps.iter().enumerate() {
        let owner = &config_maps[(at + 2) % 3];
        let patch = Patch::Merge(json!({"metadata": {"ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner.name(), "uid": owner.uid(),
            "controller": true, "blockOwnerDeletion": true,
        }]}}));
        let (api, kind) = (cluster.cluster(), &builtin::CONFIG_MAP);
        api.patch(kind, Some("default"), object.name(), &patch).await.unwrap();
    }
    delete(&cluster, &builtin::CONFIG_MAP, "a", Propagation::Foreground).await;
    for name in ["a", "b", "c"] {
        cluster.wait_gone(&builtin::CONFIG_MAP, Some("default"), name).await;
    }
}

#[tokio::test]
async fn orphans_stay_and_are_adopted_by_the_next_owner() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml(&deployment("web", 1, "a")).await;
    cluster.wait_for_condition(&builtin::DEPLOYMENT, Some("default"), "web", "Available").await;
    let api = cluster.cluster();
    let sets =
        api.list(&builtin::REPLICA_SET, Some("default"), &ObjectList::default()).await.unwrap();
    let set = sets.items[0].name().to_owned();
    delete(&cluster, &builtin::DEPLOYMENT, "web", Propagation::Orphan).await;
    cluster.wait_gone(&builtin::DEPLOYMENT, Some("default"), "web").await;
    let orphan = api.get(&builtin::REPLICA_SET, Some("default"), &set).await.unwrap();
    assert_eq!(orphan.owner_references(), []);
    let web = cluster.apply_yaml(&deployment("web", 1, "a")).await.remove(0);
    cluster
        .wait_for(&builtin::REPLICA_SET, Some("default"), &set, |replica_set| {
            replica_set.controller_owner().is_some_and(|owner| owner.uid == web.uid())
        })
        .await;
}

#[tokio::test]
async fn a_second_owner_keeps_an_object_and_a_wrong_uid_does_not() {
    let cluster = TestCluster::start().await;
    let owners = [
        cluster.apply_yaml(&config_map("a")).await.remove(0),
        cluster.apply_yaml(&config_map("b")).await.remove(0),
    ];
    let reference = |owner: &Object, uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name(), "uid": uid});
    let child = |name: &str, references: serde_json::Value| {
        Object::from_value(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": references},
        }))
        .unwrap()
    };
    let both =
        json!([reference(&owners[0], owners[0].uid()), reference(&owners[1], owners[1].uid())]);
    cluster.apply(child("kept", both)).await;
    cluster.apply(child("impostor", json!([reference(&owners[0], "another-uid")]))).await;
    cluster.wait_gone(&builtin::CONFIG_MAP, Some("default"), "impostor").await;
    delete(&cluster, &builtin::CONFIG_MAP, "a", Propagation::Background).await;
    cluster
        .wait_for(&builtin::CONFIG_MAP, Some("default"), "kept", |config_map| {
            config_map.owner_references().len() == 1 && config_map.owner_references()[0].name == "b"
        })
        .await;
}

#[tokio::test]
async fn custom_kinds_own_and_are_owned_from_the_moment_they_exist() {
    let cluster = TestCluster::start().await;
    cluster
        .apply_yaml(
            "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.test.io}
spec:
  group: test.io
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
",
        )
        .await;
    let crd = &builtin::CUSTOM_RESOURCE_DEFINITION;
    cluster.wait_for_condition(crd, None, "things.test.io", "Established").await;
    let thing = cluster
        .apply_yaml("{apiVersion: test.io/v1, kind: Thing, metadata: {name: owner}}")
        .await
        .remove(0);
    let child = format!(
        "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: child, ownerReferences: [{{apiVersion: test.io/v1, kind: Thing, name: owner, uid: {}}}]}}}}",
        thing.uid()
    );
    cluster.apply_yaml(&child).await;
    let things = Resource::namespaced("test.io", "v1", "Thing", "things");
    delete(&cluster, &things, "owner", Propagation::Background).await;
    cluster.wait_gone(&builtin::CONFIG_MAP, Some("default"), "child").await;

    // The same when the CustomResourceDefinition is deleted.
    let thing = cluster
        .apply_yaml("{apiVersion: test.io/v1, kind: Thing, metadata: {name: owner}}")
        .await
        .remove(0);
    cluster
        .apply_yaml(
            &child.replace(&child[child.find("uid: ").unwrap() + 5..child.len() - 4], thing.uid()),
        )
        .await;
    let options = DeleteOptions::default();
    cluster.cluster().delete(crd, None, "things.test.io", &options).await.unwrap();
    cluster.wait_gone(&builtin::CONFIG_MAP, Some("default"), "child").await;
}

#[tokio::test]
async fn owner_of_an_unserved_kind_keeps_its_dependents() {
    let cluster = TestCluster::start().await;
    let child = |name: &str, owner: serde_json::Value| {
        Object::from_value(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": [owner]},
        }))
        .unwrap()
    };
    let unserved = json!({"apiVersion": "gone.io/v1", "kind": "Thing", "name": "a", "uid": "u1"});
    let kept = cluster.apply(child("kept", unserved)).await;
    let absent = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "u2"});
    cluster.apply(child("orphan", absent)).await;
    cluster.wait_gone(&builtin::CONFIG_MAP, Some("default"), "orphan").await;
    let api = cluster.cluster();
    let live = api.get(&builtin::CONFIG_MAP, Some("default"), "kept").await.unwrap();
    assert_eq!(live.uid(), kept.uid());
}

#[tokio::test]
async fn owner_reference_with_misspelt_kind_is_resolved_by_uid() {
    let cluster = TestCluster::start().await;
    let owner = cluster.apply_yaml(&config_map("owner")).await.remove(0);
    let child = |name: &str, kind: &str, uid: &str| {
        let reference = json!({"apiVersion": "v1", "kind": kind, "name": "owner", "uid": uid});
        Object::from_value(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": [reference]},
        }))
        .unwrap()
    };
    let kept = cluster.apply(child("kept", "configmap", owner.uid())).await;
    // The collector processes objects in order: once a later one is deleted, it has checked the
    // earlier ones.
    cluster.apply(child("impostor", "ConfigMap", "another-uid")).await;
    cluster.wait_gone(&builtin::CONFIG_MAP, Some("default"), "impostor").await;
    let api = cluster.cluster();
    let live = api.get(&builtin::CONFIG_MAP, Some("default"), "kept").await.unwrap();
    assert_eq!(live.uid(), kept.uid());
}
