//! Killed after each write, and with a lost response of each write, the controllers reach the same state.

use crate::olm_cluster::{OlmCluster, condition};
use mainstay_api::resources::CLUSTER_CATALOG;
use mainstay_client::DeleteOptions;
use mainstay_object::Object;
use mainstay_testkit::{InjectedFault, ObservedRequest};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;

const TEXT: &str = "schema: olm.package\nname: a\n";

/// Whether a write is about a ClusterCatalog: Events are extra.
fn counts(request: &ObservedRequest) -> bool {
    request.is_write() && request.target.contains("/clustercatalogs")
}

/// What must be the same after each fault.
fn end_state(catalog: &Object) -> Value {
    let mut value = catalog.to_value();
    for field in ["resourceVersion", "uid", "creationTimestamp", "managedFields"] {
        if let Some(metadata) = value["metadata"].as_object_mut() {
            metadata.remove(field);
        }
    }
    if let Some(status) = value["status"].as_object_mut() {
        status.remove("lastUnpacked");
    }
    for condition in value["status"]["conditions"].as_array_mut().into_iter().flatten() {
        condition["lastTransitionTime"] = Value::Null;
    }
    value
}

/// Creates a catalog, waits until it is served, switches it off and on again, and deletes another one.
async fn run(olm: &OlmCluster) -> Value {
    olm.put_image("r.example/cat:v1", Some(TEXT));
    let image = json!({"ref": "r.example/cat:v1"});
    olm.apply_catalog("a", image.clone(), json!({})).await;
    olm.apply_catalog("b", image.clone(), json!({})).await;
    olm.wait_until_serving("a", "r.example/cat:v1").await;
    olm.wait_until_serving("b", "r.example/cat:v1").await;
    let cluster = olm.cluster.cluster();
    cluster.delete(&CLUSTER_CATALOG, None, "b", &DeleteOptions::default()).await.unwrap();
    olm.apply_catalog("a", image.clone(), json!({"availabilityMode": "Unavailable"})).await;
    olm.wait_for("a", |catalog| {
        condition(catalog, "Serving").1 == "UserSpecifiedUnavailable"
            && catalog.array(&["metadata", "finalizers"]).is_empty()
    })
    .await;
    olm.apply_catalog("a", image, json!({"availabilityMode": "Available"})).await;
    let served = olm.wait_until_serving("a", "r.example/cat:v1").await;
    olm.cluster.wait_gone(&CLUSTER_CATALOG, None, "b").await;
    end_state(&served)
}

/// Runs with a fault at a write, and a restart where the fault is a kill. Returns the end state and the
/// number of writes.
async fn run_with(fault_at: Option<(usize, bool)>) -> (Value, usize) {
    let mut olm = OlmCluster::stopped().await;
    let writes = Arc::new(AtomicUsize::new(0));
    let killed = CancellationToken::new();
    let (count, kill) = (Arc::clone(&writes), killed.clone());
    let faulty = olm.cluster.with_faults(move |request| {
        if !counts(request) {
            return InjectedFault::Pass;
        }
        let number = count.fetch_add(1, Ordering::SeqCst);
        match fault_at {
            Some((at, true)) if at == number => {
                kill.cancel();
                InjectedFault::ResponseLost
            }
            Some((at, false)) if at == number => InjectedFault::ResponseLost,
            _ => InjectedFault::Pass,
        }
    });
    let mut controllers = Some(olm.controllers_on(&faulty));
    let state = {
        let restart = async {
            killed.cancelled().await;
        };
        tokio::select! {
            state = run(&olm) => Some(state),
            () = restart => None,
        }
    };
    let state = if let Some(state) = state {
        state
    } else {
        // A kill drops everything at once; shutting down drops every reconciliation, too.
        if let Some(controllers) = controllers.take() {
            controllers.shutdown().await;
        }
        let again = olm.cluster.cluster().clone();
        controllers = Some(olm.controllers_on(&again));
        run(&olm).await
    };
    if let Some(controllers) = controllers {
        controllers.shutdown().await;
    }
    (state, writes.load(Ordering::SeqCst))
}

#[tokio::test]
async fn controllers_killed_at_each_write_reach_the_same_state() {
    let (expected, writes) = run_with(None).await;
    assert!(writes >= 6, "only {writes} writes");
    for at in 0..writes {
        for kill in [true, false] {
            let (state, _) = run_with(Some((at, kill))).await;
            let generation = |state: &Value| state["metadata"]["generation"].clone();
            // Users act again after a kill, so the generations differ.
            let mut compared = state.clone();
            compared["metadata"]["generation"] = generation(&expected);
            for (new, old) in compared["status"]["conditions"]
                .as_array_mut()
                .into_iter()
                .flatten()
                .zip(expected["status"]["conditions"].as_array().into_iter().flatten())
            {
                assert_eq!(new["observedGeneration"], generation(&state));
                new["observedGeneration"] = old["observedGeneration"].clone();
            }
            assert_eq!(compared, expected, "write {at}, killed: {kill}");
        }
    }
}
