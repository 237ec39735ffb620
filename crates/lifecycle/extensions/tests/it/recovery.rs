//! Upstream's scenarios of ClusterExtensions that recover: what is missing, foreign, unready or late.

use crate::bundles::TestBundle;
use crate::extensions::{NAMESPACE, catalog};
use crate::object_sets::{config, config_map, experimental, experimental_on, wait_for_set};
use crate::olm_cluster::{OlmCluster, condition, message};
use crate::scenarios::{change_spec, serve};
use jiff::{SignedDuration, Timestamp};
use mainstay_api::resources::{CLUSTER_CATALOG, CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_client::{DeleteOptions, ObjectList, Patch, Selection};
use mainstay_clock::{Clock, ClockControl};
use mainstay_extensions::{Features, TrustMode};
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::{InjectedFault, TestCluster, TestClusterSettings};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const CONFIG: &Resource = &builtin::CONFIG_MAP;

/// A cluster with running controllers, whose catalog has the package `a` in version 1.0.0.
async fn with_package() -> OlmCluster {
    with_bundle_on(experimental().await, TestBundle::new("a", "1.0.0").with_configs(&["kept"]))
        .await
}

async fn with_bundle_on(mut olm: OlmCluster, bundle: TestBundle) -> OlmCluster {
    bundle.store(&olm);
    olm.start_controllers().await;
    serve(&olm, &["1.0.0"]).await;
    olm
}

/// The same with a clock that the test moves.
async fn with_clock(bundle: TestBundle) -> (OlmCluster, ClockControl) {
    let (clock, control) = Clock::adjustable(Timestamp::UNIX_EPOCH + SignedDuration::from_hours(9));
    let settings = TestClusterSettings { clock, ..TestClusterSettings::default() };
    let olm = experimental_on(TestCluster::with(settings).await).await;
    (with_bundle_on(olm, bundle).await, control)
}

async fn delete(olm: &OlmCluster, resource: &Resource, namespace: Option<&str>, name: &str) {
    let options = DeleteOptions::default();
    olm.cluster.cluster().delete(resource, namespace, name, &options).await.unwrap();
}

/// Annotates an object, so that its controller looks at it.
async fn touch(olm: &OlmCluster, resource: &Resource, name: &str) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"example.com/touched": "yes"}}}));
    olm.cluster.cluster().patch(resource, None, name, &patch).await.unwrap();
}

/// Whether Progressing has this reason.
fn reason_is(reason: &str) -> impl FnMut(&Object) -> bool + Send {
    let reason = reason.to_owned();
    move |object| condition(object, "Progressing").1 == reason
}

#[tokio::test]
async fn deleted_object_is_created_again_also_without_the_catalog() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let before = config(&olm, "kept").await.unwrap();
    delete(&olm, CONFIG, Some(NAMESPACE), "kept").await;
    // shows OLMV1-29
    let again = olm
        .cluster
        .wait_for(CONFIG, Some(NAMESPACE), "kept", |config| config.uid() != before.uid())
        .await;
    delete(&olm, &CLUSTER_CATALOG, None, "cat").await;
    olm.cluster.wait_gone(&CLUSTER_CATALOG, None, "cat").await;
    delete(&olm, CONFIG, Some(NAMESPACE), "kept").await;
    // shows OLMV1-32
    olm.cluster
        .wait_for(CONFIG, Some(NAMESPACE), "kept", |config| config.uid() != again.uid())
        .await;
    let preflight = json!({"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}});
    let changed = change_spec(&olm, "ext", json!({"install": preflight})).await;
    let generation = Some(changed.generation());
    // shows OLMV1-33 OLMV1-134
    let kept = olm
        .wait_for_extension("ext", |extension| {
            condition(extension, "Progressing") == ("True".into(), "Succeeded".into(), generation)
        })
        .await;
    // shows OLMV1-33
    assert_eq!(condition(&kept, "Installed").0, "True");
}

#[tokio::test]
async fn extension_waits_for_its_namespace() {
    let olm = with_package().await;
    let extension = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": "ext"},
        "spec": {"namespace": "later", "source": {"sourceType": "Catalog", "catalog": {
            "packageName": "a",
        }}},
    });
    olm.cluster.apply(Object::from_value(extension).unwrap()).await;
    // shows OLMV1-30
    let waiting = olm.wait_for_extension("ext", reason_is("Retrying")).await;
    assert!(message(&waiting, "Progressing").contains("later"), "{waiting:?}");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}});
    olm.cluster.apply(Object::from_value(namespace).unwrap()).await;
    // shows OLMV1-30
    olm.wait_until_installed("ext", "1.0.0").await;
}

#[tokio::test]
async fn extension_waits_until_a_foreign_deployment_is_gone() {
    let olm = with_package().await;
    let foreign = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a", "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "c", "image": "r.example/x"}]},
            },
        },
    });
    olm.cluster.apply(Object::from_value(foreign).unwrap()).await;
    olm.apply_extension("ext", "a", "").await;
    let refused = olm.wait_for_extension("ext", reason_is("Retrying")).await;
    // shows OLMV1-31
    assert_eq!(condition(&refused, "Installed").0, "False");
    delete(&olm, &builtin::DEPLOYMENT, Some(NAMESPACE), "a").await;
    // shows OLMV1-31
    olm.wait_until_installed("ext", "1.0.0").await;
}

#[tokio::test]
async fn availability_follows_the_workload() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let behave = async |behaviour: Value| {
        let pods = ObjectList::labels("app=a");
        let cluster = olm.cluster.cluster();
        let pods = cluster.list(&builtin::POD, Some(NAMESPACE), &pods).await.unwrap().items;
        let patch = Patch::Merge(
            json!({"metadata": {"annotations": {"mainstay.dev/simulate": behaviour}}}),
        );
        for pod in pods {
            cluster.patch(&builtin::POD, Some(NAMESPACE), pod.name(), &patch).await.unwrap();
        }
    };
    for (behaviour, expected) in [
        (json!("not-ready"), ("False", "ProbeFailure")),
        (Value::Null, ("True", "ProbesSucceeded")),
    ] {
        behave(behaviour).await;
        // shows OLMV1-34
        wait_for_set(&olm, "ext-1", "Available", expected).await;
        // shows OLMV1-34
        olm.wait_for_extension("ext", |extension| {
            let (status, reason, _) = condition(extension, "Available");
            (&*status, &*reason) == expected
        })
        .await;
    }
}

#[tokio::test]
async fn deleted_extension_leaves_nothing() {
    let olm = with_package().await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    delete(&olm, &CLUSTER_EXTENSION, None, "ext").await;
    for (resource, namespace, name) in [
        (CONFIG, Some(NAMESPACE), "kept"),
        (&builtin::DEPLOYMENT, Some(NAMESPACE), "a"),
        (&builtin::SERVICE_ACCOUNT, Some(NAMESPACE), "a"),
        (&CLUSTER_OBJECT_SET, None, "ext-1"),
        (&CLUSTER_EXTENSION, None, "ext"),
    ] {
        // shows OLMV1-35
        olm.cluster.wait_gone(resource, namespace, name).await;
    }
    for resource in [&builtin::CLUSTER_ROLE, &builtin::CLUSTER_ROLE_BINDING] {
        let labels = "olm.operatorframework.io/owner-name=ext".to_owned();
        let selection = Selection { labels, ..Selection::all(resource.clone()) };
        // shows OLMV1-35
        olm.cluster.wait_for_all(selection, |left| left.is_empty()).await;
    }
}

#[tokio::test]
async fn polled_catalog_updates_the_extension() {
    let bundle = TestBundle::new("a", "1.0.0").with_configs(&["kept"]);
    let (olm, clock) = with_clock(bundle).await;
    TestBundle::new("a", "2.0.0").with_configs(&["kept"]).store(&olm);
    let polled = json!({"ref": "r.example/cat:v1", "pollIntervalMinutes": 1});
    olm.apply_catalog("cat", polled, json!({})).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    // The same tag, with other content.
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0", "2.0.0"])])));
    clock.step(SignedDuration::from_mins(2));
    touch(&olm, &CLUSTER_CATALOG, "cat").await;
    // shows OLMV1-22
    olm.wait_until_installed("ext", "2.0.0").await;
}

#[tokio::test]
async fn rollout_that_exceeds_its_deadline_is_reported_and_may_still_succeed() {
    let bundle = TestBundle::new("a", "1.0.0").with_configs(&["kept"]).behaving("stuck");
    let (olm, clock) = with_clock(bundle).await;
    olm.apply_extension("ext", "a", "").await;
    change_spec(&olm, "ext", json!({"progressDeadlineMinutes": 10})).await;
    olm.cluster
        .wait_for(&CLUSTER_OBJECT_SET, None, "ext-1", |set| {
            set.i64(&["spec", "progressDeadlineMinutes"]) == Some(10)
                && condition(set, "Available").1 == "ProbeFailure"
        })
        .await;
    clock.step(SignedDuration::from_mins(11));
    touch(&olm, &CLUSTER_OBJECT_SET, "ext-1").await;
    let exceeded = ("False", "ProgressDeadlineExceeded");
    let set = wait_for_set(&olm, "ext-1", "Progressing", exceeded).await;
    let text =
        "Revision has not rolled out for 10 minute(s). Last status: Revision 1.0.0 is rolling out.";
    // shows OLMV1-11
    assert_eq!(message(&set, "Progressing"), text);
    // shows OLMV1-11
    olm.wait_for_extension("ext", |extension| {
        let (status, reason, _) = condition(extension, "Progressing");
        (&*status, &*reason) == exceeded && message(extension, "Progressing") == text
    })
    .await;
    // The image becomes available.
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"mainstay.dev/simulate": null}}}));
    let cluster = olm.cluster.cluster();
    let pods = cluster.list(&builtin::POD, Some(NAMESPACE), &ObjectList::labels("app=a")).await;
    for pod in pods.unwrap().items {
        cluster.patch(&builtin::POD, Some(NAMESPACE), pod.name(), &patch).await.unwrap();
    }
    // shows OLMV1-44
    wait_for_set(&olm, "ext-1", "Succeeded", ("True", "Succeeded")).await;
    // shows OLMV1-44
    olm.wait_until_installed("ext", "1.0.0").await;
}

#[tokio::test]
async fn objects_of_a_late_revision_go_when_it_is_archived() {
    let bundle = TestBundle::new("a", "1.0.0").with_configs(&["kept"]).behaving("stuck");
    let (olm, clock) = with_clock(bundle).await;
    let phases = json!([{"name": "one", "objects": [{"object": config_map("first")}]}]);
    let set = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
        "metadata": {"name": "set"},
        "spec": {
            "lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent",
            "phases": phases, "progressDeadlineMinutes": 10,
            "progressionProbes": [{
                "selector": {"type": "GroupKind", "groupKind": {"group": "", "kind": "ConfigMap"}},
                "assertions": [
                    {"type": "FieldValue", "fieldValue": {"fieldPath": "data.a", "value": "2"}},
                ],
            }],
        },
    });
    olm.cluster.apply(Object::from_value(set).unwrap()).await;
    wait_for_set(&olm, "set", "Available", ("False", "ProbeFailure")).await;
    clock.step(SignedDuration::from_mins(11));
    touch(&olm, &CLUSTER_OBJECT_SET, "set").await;
    wait_for_set(&olm, "set", "Progressing", ("False", "ProgressDeadlineExceeded")).await;
    let archived = Patch::Merge(json!({"spec": {"lifecycleState": "Archived"}}));
    olm.cluster.cluster().patch(&CLUSTER_OBJECT_SET, None, "set", &archived).await.unwrap();
    // shows OLMV1-43
    olm.cluster.wait_gone(CONFIG, Some(NAMESPACE), "first").await;
    // shows OLMV1-43
    wait_for_set(&olm, "set", "Progressing", ("False", "Archived")).await;
}

/// A watch that begins late has no event about an object that went before.
#[tokio::test]
async fn object_that_went_before_its_kind_was_watched_is_created_again() {
    for features in [
        Features::standard(TrustMode::ClusterAdmin),
        Features::object_sets(TrustMode::ClusterAdmin),
    ] {
        let mut olm = experimental().await;
        olm.features = features;
        TestBundle::new("a", "1.0.0").with_configs(&["kept"]).store(&olm);
        let is_refused = Arc::new(AtomicBool::new(true));
        let refuses = Arc::clone(&is_refused);
        let late = olm.cluster.with_faults(move |request| {
            let is_list = request.target.starts_with("/api/v1/configmaps?");
            if is_list && refuses.load(Ordering::SeqCst) {
                InjectedFault::Refused(403)
            } else {
                InjectedFault::Pass
            }
        });
        let controllers = olm.controllers_on(&late);
        controllers.synced().await;
        serve(&olm, &["1.0.0"]).await;
        olm.apply_extension("ext", "a", "").await;
        olm.wait_until_installed("ext", "1.0.0").await;
        delete(&olm, CONFIG, Some(NAMESPACE), "kept").await;
        is_refused.store(false, Ordering::SeqCst);
        olm.cluster.wait_for(CONFIG, Some(NAMESPACE), "kept", |_| true).await;
        controllers.shutdown().await;
    }
}
