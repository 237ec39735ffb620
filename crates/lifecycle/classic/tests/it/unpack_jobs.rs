//! Unpack Jobs: bundles that Jobs unpack, for clusters where only nodes reach the registry.

use crate::images::put_bundle;
use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster, true_condition};
use mainstay_api::resources::OPERATOR_GROUP;
use mainstay_classic::CatalogMode;
use mainstay_client::{DeleteOptions, ObjectList, Patch, Selection};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

/// The first digits of the SHA-256 of `localhost/anvil-bundle:v1.0.0`.
const UNPACKED: &str = "01c4ffe8d0af1b948b526c976583079054f7445c8b8c2561b69669387ac6988";

/// A cluster whose catalog has one bundle image, which a Job must unpack.
async fn olm_with_unpack_jobs() -> OlmCluster {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    olm.pods.mode = CatalogMode::Pods;
    olm.publish_edited(&["1.0.0"], |version, bundle| {
        bundle["image"] = format!("localhost/anvil-bundle:v{version}").into();
        let properties = bundle["properties"].as_array_mut().unwrap();
        properties.retain(|property| property["type"] != "olm.bundle.object");
    });
    olm.start_controllers().await;
    olm
}

fn unpack_jobs() -> Selection {
    Selection::all(builtin::JOB).namespace(CATALOG_NAMESPACE)
}

/// Makes nodes schedulable or not.
async fn set_nodes_schedulable(olm: &OlmCluster, is_schedulable: bool) {
    let cluster = olm.cluster.cluster();
    let nodes = cluster.list(&builtin::NODE, None, &ObjectList::default()).await.unwrap().items;
    for node in nodes {
        let patch = Patch::Merge(json!({"spec": {"unschedulable": !is_schedulable}}));
        cluster.patch(&builtin::NODE, None, node.name(), &patch).await.unwrap();
    }
}

#[tokio::test]
async fn bundle_is_unpacked_by_a_job_and_a_config_map_of_one_name() {
    let olm = olm_with_unpack_jobs().await;
    put_bundle(&olm.store(), "1.0.0", None);
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let complete = |all: &[&Object]| {
        all.iter().any(|job| {
            let mut conditions = job.array(&["status", "conditions"]).iter();
            conditions
                .any(|condition| condition["type"] == "Complete" && condition["status"] == "True")
        })
    };
    // shows IP-15 K14
    let job = olm.cluster.wait_for_all(unpack_jobs(), complete).await.remove(0);
    let name = job.name();
    // shows IP-15
    assert_eq!(name.len(), 63);
    let cluster = olm.cluster.cluster();
    let at = Some(CATALOG_NAMESPACE);
    for kind in [&builtin::ROLE, &builtin::ROLE_BINDING, &builtin::SERVICE_ACCOUNT] {
        let found = cluster.get(kind, at, name).await.unwrap();
        assert_eq!(found.owner_references()[0].kind, "ConfigMap");
    }
    let map = cluster.get(&builtin::CONFIG_MAP, at, name).await.unwrap();
    // shows K14
    assert_eq!(map.owner_references()[0].kind, "CatalogSource");
    assert_eq!(map.annotation("olm.sourceImage"), Some("localhost/anvil-bundle:v1.0.0"));
    let files = map.get(&["binaryData"]).and_then(Value::as_object).unwrap().len();
    // shows IP-15 K14
    assert_eq!(files, 3, "the version, its definition and its settings");
}

#[tokio::test]
async fn failed_unpack_job_is_reported_and_deleting_it_unpacks_again() {
    let olm = olm_with_unpack_jobs().await;
    put_bundle(&olm.store(), "1.0.0", None);
    set_nodes_schedulable(&olm, false).await;
    olm.apply_group("og").await;
    let soon = json!({"metadata": {"annotations": {
        "operatorframework.io/bundle-unpack-timeout": "1s",
    }}});
    let cluster = olm.cluster.cluster();
    cluster.patch(&OPERATOR_GROUP, Some("team"), "og", &Patch::Merge(soon)).await.unwrap();
    olm.subscribe(json!({})).await;
    let failed =
        |subscription: &Object| true_condition(subscription, "BundleUnpackFailed").is_some();
    let (reason, message) =
        true_condition(&olm.wait_for_subscription(failed).await, "BundleUnpackFailed").unwrap();
    assert_eq!(reason, "BundleUnpackFailed");
    // shows IP-15 K14
    assert!(
        message.starts_with("Bundle unpacking failed - DeadlineExceeded: Job olm/"),
        "{message}"
    );
    let job = olm.cluster.wait_for_all(unpack_jobs(), |all| !all.is_empty()).await.remove(0);
    // shows K14
    assert_eq!(job.i64(&["spec", "activeDeadlineSeconds"]), Some(1));
    // The documented repair: after fixing the cause, an administrator deletes the Job and its
    // ConfigMap.
    set_nodes_schedulable(&olm, true).await;
    let patient = json!({"metadata": {"annotations": {
        "operatorframework.io/bundle-unpack-timeout": null,
    }}});
    cluster.patch(&OPERATOR_GROUP, Some("team"), "og", &Patch::Merge(patient)).await.unwrap();
    let params = DeleteOptions::default();
    for kind in [&builtin::JOB, &builtin::CONFIG_MAP] {
        cluster.delete(kind, Some(CATALOG_NAMESPACE), job.name(), &params).await.unwrap();
    }
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn unpack_job_has_the_operator_groups_timeout_and_pulls_tags_always() {
    let digest = format!("localhost/anvil-bundle@sha256:{}", "5".repeat(64));
    for (image, timeout, limit, pull) in [
        ("localhost/anvil-bundle:v1.0.0", None, Some(600), "Always"),
        ("localhost/anvil-bundle:v1.0.0", Some("2m"), Some(120), "Always"),
        (&*digest, Some("0"), None, "IfNotPresent"),
    ] {
        let mut olm = olm_with_unpack_jobs().await;
        // The controllers are stopped while the catalog changes, so no Subscription uses the
        // earlier content.
        olm.stop_controllers().await;
        olm.publish_edited(&["1.0.0"], |_, bundle| {
            bundle["image"] = image.into();
            let properties = bundle["properties"].as_array_mut().unwrap();
            properties.retain(|property| property["type"] != "olm.bundle.object");
        });
        olm.start_controllers().await;
        set_nodes_schedulable(&olm, false).await;
        olm.apply_group("og").await;
        let annotation = json!({"metadata": {"annotations": {
            "operatorframework.io/bundle-unpack-timeout": timeout,
        }}});
        let cluster = olm.cluster.cluster();
        let patch = Patch::Merge(annotation);
        cluster.patch(&OPERATOR_GROUP, Some("team"), "og", &patch).await.unwrap();
        olm.subscribe(json!({})).await;
        let job = olm.cluster.wait_for_all(unpack_jobs(), |all| !all.is_empty()).await.remove(0);
        // shows K14
        assert_eq!(job.i64(&["spec", "activeDeadlineSeconds"]), limit, "{timeout:?}");
        // shows K14
        assert_eq!(job.i64(&["spec", "backoffLimit"]), Some(3));
        // shows K14
        assert_eq!(job.i64(&["spec", "ttlSecondsAfterFinished"]), Some(300));
        let pod = job.get(&["spec", "template", "spec"]).unwrap();
        assert_eq!(pod["restartPolicy"], "Never");
        let of_bundle = &pod["initContainers"][1];
        // shows K14
        assert_eq!(
            (&of_bundle["image"], &of_bundle["imagePullPolicy"]),
            (&image.into(), &pull.into())
        );
        assert_eq!(pod["containers"][0]["env"][0]["value"], image);
    }
}

#[tokio::test]
async fn bundle_config_map_of_an_earlier_unpack_job_is_used() {
    let olm = olm_with_unpack_jobs().await;
    // Neither a node nor this process can pull the image.
    set_nodes_schedulable(&olm, false).await;
    let files: serde_json::Map<String, Value> = [
        ("csv.yaml", crate::olm_cluster::csv("1.0.0", None).to_string()),
        ("crd.yaml", crate::olm_cluster::crd().to_string()),
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), text.into()))
    .collect();
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": UNPACKED, "namespace": CATALOG_NAMESPACE}, "data": files,
    });
    olm.cluster.apply(Object::from_value(map).unwrap()).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let arrived =
        |subscription: &Object| subscription.str(&["status", "currentCSV"]) == Some("anvil.v1.0.0");
    // shows K14
    olm.wait_for_subscription(arrived).await;
    let cluster = olm.cluster.cluster();
    let jobs =
        cluster.list(&builtin::JOB, Some(CATALOG_NAMESPACE), &ObjectList::default()).await.unwrap();
    // shows K14
    assert!(jobs.items.is_empty());
}

/// Sets the unpack retry interval of the OperatorGroup, and a timeout.
async fn enable_unpack_retries(olm: &OlmCluster, timeout: Option<&str>) {
    let annotations = json!({"metadata": {"annotations": {
        "operatorframework.io/bundle-unpack-timeout": timeout,
        "operatorframework.io/bundle-unpack-min-retry-interval": "1s",
    }}});
    let patch = Patch::Merge(annotations);
    olm.cluster.cluster().patch(&OPERATOR_GROUP, Some("team"), "og", &patch).await.unwrap();
}

#[tokio::test]
async fn failed_unpacking_is_retried_at_the_operator_groups_interval() {
    let olm = olm_with_unpack_jobs().await;
    put_bundle(&olm.store(), "1.0.0", None);
    set_nodes_schedulable(&olm, false).await;
    olm.apply_group("og").await;
    enable_unpack_retries(&olm, Some("1s")).await;
    olm.subscribe(json!({})).await;
    olm.wait_for_subscription(|subscription| {
        true_condition(subscription, "BundleUnpackFailed").is_some()
    })
    .await;
    set_nodes_schedulable(&olm, true).await;
    enable_unpack_retries(&olm, None).await;
    // The Job is not deleted; a second one is created.
    // shows E031
    olm.cluster.wait_for_all(unpack_jobs(), |all| all.len() > 1).await;
    let clean = |subscription: &Object| {
        subscription.str(&["status", "state"]) == Some("AtLatestKnown")
            && ["BundleUnpacking", "BundleUnpackFailed"].iter().all(|kind| {
                !subscription
                    .array(&["status", "conditions"])
                    .iter()
                    .any(|condition| condition["type"] == **kind)
            })
    };
    // shows E025 E031
    olm.wait_for_subscription(clean).await;
    // shows E031
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn unpacked_bundle_is_not_unpacked_again() {
    let olm = olm_with_unpack_jobs().await;
    put_bundle(&olm.store(), "1.0.0", None);
    olm.apply_group("og").await;
    enable_unpack_retries(&olm, None).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let done = |all: &[&Object]| all.iter().any(|job| job.condition("Complete") == Some("True"));
    let first = olm.cluster.wait_for_all(unpack_jobs(), done).await;
    // Longer than the retry interval.
    olm.wait_until_idle().await;
    olm.wait_until_idle().await;
    olm.wait_until_idle().await;
    let jobs = olm.cluster.wait_for_all(unpack_jobs(), |all| !all.is_empty()).await;
    let uids = |all: &[Object]| all.iter().map(|job| job.uid().to_owned()).collect::<Vec<_>>();
    // shows E032
    assert_eq!((uids(&jobs).len(), uids(&jobs)), (1, uids(&first)));
}
