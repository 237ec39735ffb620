//! Processes that serve beside the leader.

use crate::olm_cluster::{OlmCluster, eventually, lines};
use mainstay_api::resources::CLUSTER_CATALOG;
use mainstay_client::DeleteOptions;
use mainstay_extensions::Extensions;
use mainstay_registry::ServedCatalogs;
use mainstay_testkit::InjectedFault;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const FIRST: &str = "schema: olm.package\nname: a\n";
const SECOND: &str = "schema: olm.package\nname: b\n";

#[tokio::test]
async fn replica_serves_what_the_leader_serves_and_writes_nothing() {
    let olm = OlmCluster::start().await;
    olm.put_image("r.example/cat:v1", Some(FIRST));
    olm.put_image("r.example/cat:v2", Some(SECOND));
    olm.apply_catalog("a", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    olm.apply_catalog("off", json!({"ref": "r.example/none:v1"}), json!({})).await;
    olm.wait_until_serving("a", "r.example/cat:v1").await;

    let writes = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&writes);
    let observed = olm.cluster.with_faults(move |request| {
        count.fetch_add(usize::from(request.is_write()), Ordering::SeqCst);
        InjectedFault::Pass
    });
    let (served, content) = (Arc::<ServedCatalogs>::default(), tempfile::tempdir().unwrap());
    let options = olm.options(content.path().to_owned(), Arc::clone(&served));
    let replica = Extensions::start_replica(&observed, options);
    replica.caught_up().await;
    assert_eq!((lines(&served, "a"), lines(&served, "off")), (olm.lines("a"), None));

    olm.apply_catalog("a", json!({"ref": "r.example/cat:v2"}), json!({})).await;
    olm.wait_until_serving("a", "r.example/cat:v2").await;
    eventually("the new content", || lines(&served, "a") == olm.lines("a")).await;
    let stored = || std::fs::read_dir(content.path()).unwrap().count();
    eventually("the old content is removed", || stored() == 1).await;

    let cluster = olm.cluster.cluster();
    cluster.delete(&CLUSTER_CATALOG, None, "a", &DeleteOptions::default()).await.unwrap();
    eventually("no catalog", || served.get("a").is_none()).await;
    replica.shutdown().await;
    assert_eq!(writes.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn replica_that_becomes_the_leader_withdraws_what_was_deleted_meanwhile() {
    let mut olm = OlmCluster::start().await;
    olm.put_image("r.example/cat:v1", Some(FIRST));
    for name in ["a", "b"] {
        olm.apply_catalog(name, json!({"ref": "r.example/cat:v1"}), json!({})).await;
        olm.wait_until_serving(name, "r.example/cat:v1").await;
    }
    let cluster = olm.cluster.cluster().clone();
    let (served, content) = (Arc::<ServedCatalogs>::default(), tempfile::tempdir().unwrap());
    let options = || olm.options(content.path().to_owned(), Arc::clone(&served));
    let replica = Extensions::start_replica(&cluster, options());
    replica.caught_up().await;
    replica.shutdown().await;
    assert!(served.get("a").is_some(), "it is served between the two roles");
    cluster.delete(&CLUSTER_CATALOG, None, "b", &DeleteOptions::default()).await.unwrap();
    olm.cluster.wait_gone(&CLUSTER_CATALOG, None, "b").await;
    let leader = Extensions::start(&cluster, options());
    olm.stop_controllers().await;
    leader.synced().await;
    eventually("b is withdrawn", || served.get("b").is_none()).await;
    // shows OLMV1-53
    assert_eq!(
        lines(&served, "a").as_deref(),
        Some("{\"name\":\"a\",\"schema\":\"olm.package\"}\n")
    );
    leader.shutdown().await;
}
