//! Versions that replace others, and versions that are edited where they are.

use crate::by_hand::{
    at, definition, delete, deployed, deployment, edit, in_phase, make, owning, reference, version,
    world,
};
use crate::world::World;
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_object::{Object, known};
use mainstay_testkit::{Asked, Fate};
use serde_json::{Value, json};
use std::time::Duration;

const DEPLOYMENT: &mainstay_object::Resource = &known::DEPLOYMENT;

/// A Deployment whose container has a name.
fn running(name: &str, container: &str) -> Value {
    let mut manifest = deployment(name);
    manifest["spec"]["template"]["spec"]["containers"][0]["name"] = container.into();
    manifest
}

fn container(deployment: &Object) -> Value {
    deployment.array(&["spec", "template", "spec", "containers"])[0]["name"].clone()
}

/// Waits until the container of a Deployment has that name.
async fn runs(world: &World, name: &str, wanted: &'static str) -> Object {
    let good = move |deployment: &Object| container(deployment) == wanted;
    world.cluster.wait_for(DEPLOYMENT, Some("team"), name, good).await
}

/// A version that owns hats.
fn hatter(name: &str, replaces: Option<&str>, deployments: &[Value]) -> Value {
    let mut csv = owning(version("team", name, deployments), "hats");
    csv["spec"]["replaces"] = replaces.into();
    csv
}

/// Makes a version and waits until it runs, and until what it replaces is gone.
async fn replaced(world: &World, csv: Value) -> Object {
    let name = csv["metadata"]["name"].as_str().unwrap().to_owned();
    let before = csv["spec"]["replaces"].as_str().map(str::to_owned);
    make(world, csv).await;
    let running = in_phase(world, "team", &name, "Succeeded").await;
    if let Some(before) = before {
        world.cluster.wait_gone(&CSV, Some("team"), &before).await;
        world.left_alone().await;
        // Once it runs, nothing is written on it: the end of the other one is no news of it.
        let now = in_phase(world, "team", &name, "Succeeded").await;
        assert_eq!(now.resource_version(), running.resource_version(), "{name}");
    }
    running
}

/// The Deployments that a version lists, with these containers.
fn list(deployments: &[Value]) -> Value {
    json!({"spec": {"install": {"spec": {"deployments": deployments}}}})
}

async fn start() -> World {
    let world = world(&[]).await;
    world.cluster.apply(definition("hats", &["v1", "v2"])).await;
    world
}

#[tokio::test]
async fn deployment_of_the_same_name_is_handed_over_and_others_are_deleted() {
    let world = start().await;
    replaced(&world, hatter("v1", None, &[running("same", "first")])).await;
    let before = deployed(&world, "team", "same").await;
    // shows C21 CSV-30 E043
    let new = replaced(&world, hatter("v2", Some("v1"), &[running("same", "second")])).await;
    let after = runs(&world, "same", "second").await;
    // shows E043 UPG-13
    assert_eq!(after.uid(), before.uid());
    let owners: Vec<String> =
        after.owner_references().into_iter().map(|owner_reference| owner_reference.name).collect();
    // shows E043 UPG-13
    assert_eq!((owners, after.label("olm.owner")), (vec!["v2".to_owned()], Some("v2")));
    // Whoever looks again finds it as it was.
    world.left_alone().await;
    let again = in_phase(&world, "team", "v2", "Succeeded").await;
    assert_eq!(again.get(&["spec"]), new.get(&["spec"]));
    let history = |csv: &Object| csv.array(&["status", "conditions"]).len();
    assert_eq!(history(&again), history(&new));
    replaced(&world, hatter("v3", Some("v2"), &[running("other", "third")])).await;
    runs(&world, "other", "third").await;
    // shows E043
    world.cluster.wait_gone(DEPLOYMENT, Some("team"), "same").await;
}

#[tokio::test]
async fn deployment_deleted_during_the_handover_is_recreated() {
    let mut world = start().await;
    let before = replaced(&world, hatter("v1", None, &[running("same", "first")])).await;
    let gone = deployed(&world, "team", "same").await;
    world.pause().await;
    let (to_test, mut update_is_due) = tokio::sync::mpsc::unbounded_channel();
    let cluster = world.cluster.troubled(move |asked: &Asked| {
        let is_update = asked.method == http::Method::PUT;
        if is_update && asked.target.ends_with("/deployments/same") && to_test.send(()).is_ok() {
            return Fate::Late(Duration::from_millis(300));
        }
        Fate::Pass
    });
    world.classic = Some(world.begin_over(&cluster));
    make(&world, hatter("v2", Some("v1"), &[running("same", "second")])).await;
    update_is_due.recv().await.unwrap();
    drop(update_is_due);
    delete(&world, DEPLOYMENT, Some("team"), "same").await;
    let v2 = in_phase(&world, "team", "v2", "Succeeded").await;
    let new = runs(&world, "same", "second").await;
    assert_ne!(new.uid(), gone.uid());
    let reasons =
        v2.array(&["status", "conditions"]).iter().map(|condition| condition["reason"].clone());
    let reasons: Vec<Value> = reasons.collect();
    assert!(!reasons.iter().any(|reason| reason == "InstallComponentFailed"), "{reasons:?}");
    world.cluster.wait_gone(&CSV, Some("team"), before.name()).await;
}

#[tokio::test]
async fn csvs_created_at_once_replace_one_another_up_to_the_last() {
    let world = start().await;
    replaced(&world, hatter("v1", None, &[running("d1", "c")])).await;
    make(&world, hatter("v2", Some("v1"), &[running("d2", "c")])).await;
    make(&world, hatter("v3", Some("v2"), &[running("d3", "c")])).await;
    replaced(&world, hatter("v4", Some("v3"), &[running("d4", "c")])).await;
    for old in ["v1", "v2"] {
        // shows C22 E043
        world.cluster.wait_gone(&CSV, Some("team"), old).await;
    }
    for old in ["d1", "d2", "d3"] {
        // shows E043
        world.cluster.wait_gone(DEPLOYMENT, Some("team"), old).await;
    }
    runs(&world, "d4", "c").await;
}

#[tokio::test]
async fn edited_csv_updates_its_deployment() {
    let world = start().await;
    replaced(&world, hatter("v1", None, &[running("d", "first")])).await;
    let mut new = running("d", "second");
    new["spec"]["replicas"] = 5.into();
    edit(&world, "team", "v1", list(&[new])).await;
    let after = runs(&world, "d", "second").await;
    // shows E043
    assert_eq!(after.i64(&["spec", "replicas"]), Some(5));
    let again = in_phase(&world, "team", "v1", "Succeeded").await;
    let history = again.array(&["status", "conditions"]);
    // shows C19
    assert!(
        history.iter().any(|condition| condition["reason"] == "ComponentUnhealthy"),
        "{history:?}"
    );
}

#[tokio::test]
async fn crds_of_several_versions_are_handed_from_csv_to_csv() {
    let world = start().await;
    let owned = |csv: Value, versions: &[&str]| {
        let mut csv = csv;
        let all: Vec<Value> = versions.iter().map(|version| reference("hats", version)).collect();
        csv["spec"]["customresourcedefinitions"]["owned"] = json!(all);
        csv
    };
    for (name, replaces, own, versions) in [
        ("v1", None, "d1", &["v1"][..]),
        ("v2", Some("v1"), "d2", &["v1", "v2"]),
        ("v3", Some("v2"), "d3", &["v2"]),
    ] {
        let csv = owned(hatter(name, replaces, &[running(own, "c")]), versions);
        // shows E043
        let made = replaced(&world, csv).await;
        world.left_alone().await;
        let again = in_phase(&world, "team", name, "Succeeded").await;
        assert_eq!(again.get(&["status", "conditions"]), made.get(&["status", "conditions"]));
        deployed(&world, "team", own).await;
    }
    for old in ["d1", "d2"] {
        world.cluster.wait_gone(DEPLOYMENT, Some("team"), old).await;
    }
}

#[tokio::test]
async fn deployment_renamed_in_its_csv_is_deleted_under_its_old_name() {
    let world = start().await;
    let stays = || running("stays", "c");
    replaced(&world, hatter("v1", None, &[running("old", "c"), stays()])).await;
    let before = deployed(&world, "team", "stays").await;
    edit(&world, "team", "v1", list(&[running("new", "c"), stays()])).await;
    deployed(&world, "team", "new").await;
    // shows E043
    world.cluster.wait_gone(DEPLOYMENT, Some("team"), "old").await;
    in_phase(&world, "team", "v1", "Succeeded").await;
    assert_eq!(deployed(&world, "team", "stays").await.uid(), before.uid());
}

#[tokio::test]
async fn fix_in_place_repairs_a_csv_that_never_succeeded() {
    let world = start().await;
    let mut stuck = running("d", "c");
    stuck["spec"]["template"]["metadata"]["annotations"] =
        json!({"mainstay.dev/simulate": "stuck"});
    make(&world, hatter("v1", None, &[stuck])).await;
    at(&world, "team", "v1", "Installing", "InstallWaiting").await;
    // The annotations of the template are those of the Deployment from now on.
    edit(&world, "team", "v1", list(&[running("d", "fixed")])).await;
    runs(&world, "d", "fixed").await;
    // shows E043
    in_phase(&world, "team", "v1", "Succeeded").await;
    // And one that runs is fixed without a version of another name.
    edit(&world, "team", "v1", list(&[running("d", "again")])).await;
    runs(&world, "d", "again").await;
    in_phase(&world, "team", "v1", "Succeeded").await;
    world.left_alone().await;
    in_phase(&world, "team", "v1", "Succeeded").await;
}
