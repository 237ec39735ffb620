//! CSV replacement and edits in place.

use crate::olm_cluster::OlmCluster;
use crate::user_csvs::{
    crd_description, crd_for, create_csv, csv_in, delete_object, deployment, olm_with_namespaces,
    patch_csv, wait_for_deployment, wait_for_phase, wait_for_reason, with_owned_crd,
};
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_object::{Object, builtin};
use mainstay_testkit::{InjectedFault, ObservedRequest};
use serde_json::{Value, json};
use std::time::Duration;

const DEPLOYMENT: &mainstay_object::Resource = &builtin::DEPLOYMENT;

/// A Deployment whose container has this name.
fn deployment_with_container(name: &str, container: &str) -> Value {
    let mut manifest = deployment(name);
    manifest["spec"]["template"]["spec"]["containers"][0]["name"] = container.into();
    manifest
}

fn container_name(deployment: &Object) -> Value {
    deployment.array(&["spec", "template", "spec", "containers"])[0]["name"].clone()
}

/// Waits until the container of a Deployment has this name.
async fn wait_for_container(olm: &OlmCluster, name: &str, wanted: &'static str) -> Object {
    let predicate = move |deployment: &Object| container_name(deployment) == wanted;
    olm.cluster.wait_for(DEPLOYMENT, Some("team"), name, predicate).await
}

/// A CSV that owns the CRD `hats`.
fn csv_owning_hats(name: &str, replaces: Option<&str>, deployments: &[Value]) -> Value {
    let mut csv = with_owned_crd(csv_in("team", name, deployments), "hats");
    csv["spec"]["replaces"] = replaces.into();
    csv
}

/// Creates a CSV and waits until it succeeded and its predecessor is deleted.
async fn create_successor(olm: &OlmCluster, csv: Value) -> Object {
    let name = csv["metadata"]["name"].as_str().unwrap().to_owned();
    let before = csv["spec"]["replaces"].as_str().map(str::to_owned);
    create_csv(olm, csv).await;
    let running = wait_for_phase(olm, "team", &name, "Succeeded").await;
    if let Some(before) = before {
        olm.cluster.wait_gone(&CSV, Some("team"), &before).await;
        olm.wait_until_idle().await;
        // After it succeeded nothing is written: the deletion of the predecessor does not change
        // it.
        let now = wait_for_phase(olm, "team", &name, "Succeeded").await;
        assert_eq!(now.resource_version(), running.resource_version(), "{name}");
    }
    running
}

/// A patch that sets the Deployments of a CSV.
fn deployments_patch(deployments: &[Value]) -> Value {
    json!({"spec": {"install": {"spec": {"deployments": deployments}}}})
}

async fn olm_with_hats_crd() -> OlmCluster {
    let olm = olm_with_namespaces(&[]).await;
    olm.cluster.apply(crd_for("hats", &["v1", "v2"])).await;
    olm
}

#[tokio::test]
async fn deployment_of_the_same_name_is_handed_over_and_others_are_deleted() {
    let olm = olm_with_hats_crd().await;
    create_successor(
        &olm,
        csv_owning_hats("v1", None, &[deployment_with_container("same", "first")]),
    )
    .await;
    let before = wait_for_deployment(&olm, "team", "same").await;
    // shows C21 CSV-30 E043
    let new = create_successor(
        &olm,
        csv_owning_hats("v2", Some("v1"), &[deployment_with_container("same", "second")]),
    )
    .await;
    let after = wait_for_container(&olm, "same", "second").await;
    // shows E043 UPG-13
    assert_eq!(after.uid(), before.uid());
    let owners: Vec<String> =
        after.owner_references().into_iter().map(|owner_reference| owner_reference.name).collect();
    // shows E043 UPG-13
    assert_eq!((owners, after.label("olm.owner")), (vec!["v2".to_owned()], Some("v2")));
    // Spec and history stay the same.
    olm.wait_until_idle().await;
    let unchanged = wait_for_phase(&olm, "team", "v2", "Succeeded").await;
    assert_eq!(unchanged.get(&["spec"]), new.get(&["spec"]));
    let history = |csv: &Object| csv.array(&["status", "conditions"]).len();
    assert_eq!(history(&unchanged), history(&new));
    create_successor(
        &olm,
        csv_owning_hats("v3", Some("v2"), &[deployment_with_container("other", "third")]),
    )
    .await;
    wait_for_container(&olm, "other", "third").await;
    // shows E043
    olm.cluster.wait_gone(DEPLOYMENT, Some("team"), "same").await;
}

#[tokio::test]
async fn deployment_deleted_during_the_handover_is_recreated() {
    let mut olm = olm_with_hats_crd().await;
    let before = create_successor(
        &olm,
        csv_owning_hats("v1", None, &[deployment_with_container("same", "first")]),
    )
    .await;
    let gone = wait_for_deployment(&olm, "team", "same").await;
    olm.stop_controllers().await;
    let (to_test, mut update_is_due) = tokio::sync::mpsc::unbounded_channel();
    let cluster = olm.cluster.with_faults(move |asked: &ObservedRequest| {
        let is_update = asked.method == http::Method::PUT;
        if is_update && asked.target.ends_with("/deployments/same") && to_test.send(()).is_ok() {
            return InjectedFault::Delayed(Duration::from_millis(300));
        }
        InjectedFault::Pass
    });
    olm.classic = Some(olm.spawn_controllers(&cluster));
    create_csv(
        &olm,
        csv_owning_hats("v2", Some("v1"), &[deployment_with_container("same", "second")]),
    )
    .await;
    update_is_due.recv().await.unwrap();
    drop(update_is_due);
    delete_object(&olm, DEPLOYMENT, Some("team"), "same").await;
    let v2 = wait_for_phase(&olm, "team", "v2", "Succeeded").await;
    let new = wait_for_container(&olm, "same", "second").await;
    assert_ne!(new.uid(), gone.uid());
    let reasons =
        v2.array(&["status", "conditions"]).iter().map(|condition| condition["reason"].clone());
    let reasons: Vec<Value> = reasons.collect();
    assert!(!reasons.iter().any(|reason| reason == "InstallComponentFailed"), "{reasons:?}");
    olm.cluster.wait_gone(&CSV, Some("team"), before.name()).await;
}

#[tokio::test]
async fn csvs_created_at_once_replace_one_another_up_to_the_last() {
    let olm = olm_with_hats_crd().await;
    create_successor(&olm, csv_owning_hats("v1", None, &[deployment_with_container("d1", "c")]))
        .await;
    create_csv(&olm, csv_owning_hats("v2", Some("v1"), &[deployment_with_container("d2", "c")]))
        .await;
    create_csv(&olm, csv_owning_hats("v3", Some("v2"), &[deployment_with_container("d3", "c")]))
        .await;
    create_successor(
        &olm,
        csv_owning_hats("v4", Some("v3"), &[deployment_with_container("d4", "c")]),
    )
    .await;
    for old in ["v1", "v2"] {
        // shows C22 E043
        olm.cluster.wait_gone(&CSV, Some("team"), old).await;
    }
    for old in ["d1", "d2", "d3"] {
        // shows E043
        olm.cluster.wait_gone(DEPLOYMENT, Some("team"), old).await;
    }
    wait_for_container(&olm, "d4", "c").await;
}

#[tokio::test]
async fn edited_csv_updates_its_deployment() {
    let olm = olm_with_hats_crd().await;
    create_successor(&olm, csv_owning_hats("v1", None, &[deployment_with_container("d", "first")]))
        .await;
    let mut new = deployment_with_container("d", "second");
    new["spec"]["replicas"] = 5.into();
    patch_csv(&olm, "team", "v1", deployments_patch(&[new])).await;
    let after = wait_for_container(&olm, "d", "second").await;
    // shows E043
    assert_eq!(after.i64(&["spec", "replicas"]), Some(5));
    let reinstalled = wait_for_phase(&olm, "team", "v1", "Succeeded").await;
    let history = reinstalled.array(&["status", "conditions"]);
    // shows C19
    assert!(
        history.iter().any(|condition| condition["reason"] == "ComponentUnhealthy"),
        "{history:?}"
    );
}

#[tokio::test]
async fn crds_of_several_versions_are_handed_from_csv_to_csv() {
    let olm = olm_with_hats_crd().await;
    let owned = |csv: Value, versions: &[&str]| {
        let mut csv = csv;
        let all: Vec<Value> =
            versions.iter().map(|version| crd_description("hats", version)).collect();
        csv["spec"]["customresourcedefinitions"]["owned"] = json!(all);
        csv
    };
    for (name, replaces, own, versions) in [
        ("v1", None, "d1", &["v1"][..]),
        ("v2", Some("v1"), "d2", &["v1", "v2"]),
        ("v3", Some("v2"), "d3", &["v2"]),
    ] {
        let csv = owned(
            csv_owning_hats(name, replaces, &[deployment_with_container(own, "c")]),
            versions,
        );
        // shows E043
        let successor = create_successor(&olm, csv).await;
        olm.wait_until_idle().await;
        let reinstalled = wait_for_phase(&olm, "team", name, "Succeeded").await;
        assert_eq!(
            reinstalled.get(&["status", "conditions"]),
            successor.get(&["status", "conditions"])
        );
        wait_for_deployment(&olm, "team", own).await;
    }
    for old in ["d1", "d2"] {
        olm.cluster.wait_gone(DEPLOYMENT, Some("team"), old).await;
    }
}

#[tokio::test]
async fn deployment_renamed_in_its_csv_is_deleted_under_its_old_name() {
    let olm = olm_with_hats_crd().await;
    let deployment = || deployment_with_container("stays", "c");
    create_successor(
        &olm,
        csv_owning_hats("v1", None, &[deployment_with_container("old", "c"), deployment()]),
    )
    .await;
    let before = wait_for_deployment(&olm, "team", "stays").await;
    patch_csv(
        &olm,
        "team",
        "v1",
        deployments_patch(&[deployment_with_container("new", "c"), deployment()]),
    )
    .await;
    wait_for_deployment(&olm, "team", "new").await;
    // shows E043
    olm.cluster.wait_gone(DEPLOYMENT, Some("team"), "old").await;
    wait_for_phase(&olm, "team", "v1", "Succeeded").await;
    assert_eq!(wait_for_deployment(&olm, "team", "stays").await.uid(), before.uid());
}

#[tokio::test]
async fn fix_in_place_repairs_a_csv_that_never_succeeded() {
    let olm = olm_with_hats_crd().await;
    let mut stuck = deployment_with_container("d", "c");
    stuck["spec"]["template"]["metadata"]["annotations"] =
        json!({"mainstay.dev/simulate": "stuck"});
    create_csv(&olm, csv_owning_hats("v1", None, &[stuck])).await;
    wait_for_reason(&olm, "team", "v1", "Installing", "InstallWaiting").await;
    // From now on the Deployment has the annotations of the template.
    patch_csv(&olm, "team", "v1", deployments_patch(&[deployment_with_container("d", "fixed")]))
        .await;
    wait_for_container(&olm, "d", "fixed").await;
    // shows E043
    wait_for_phase(&olm, "team", "v1", "Succeeded").await;
    // A running CSV is fixed in place, too.
    patch_csv(&olm, "team", "v1", deployments_patch(&[deployment_with_container("d", "again")]))
        .await;
    wait_for_container(&olm, "d", "again").await;
    wait_for_phase(&olm, "team", "v1", "Succeeded").await;
    olm.wait_until_idle().await;
    wait_for_phase(&olm, "team", "v1", "Succeeded").await;
}
