//! States of clusters, and their differences.

use super::FaultyCluster;
use crate::{TestCluster, wait_for_timeout};
use mainstay_client::ObjectList;
use mainstay_object::{Object, Resource};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Objects by kind and name.
pub type State = BTreeMap<String, Value>;

/// All objects of these kinds, without those of the API server itself. A kind that is not served has none.
pub async fn list_objects(cluster: &TestCluster, kinds: &[&Resource]) -> Vec<Object> {
    let mut objects = Vec::new();
    for kind in kinds {
        match cluster.cluster().list(kind, None, &ObjectList::default()).await {
            Err(error) if error.is_not_found() => {}
            list => objects.append(&mut list.expect("the kind can be listed").items),
        }
    }
    objects.retain(|object| {
        !object.name().starts_with("system:") && object.name() != "kube-root-ca.crt"
    });
    objects
}

/// Waits until the cluster has one of these states.
///
/// # Panics
/// With the differences from the nearest of them, if it never has.
pub async fn wait_for_end_state(
    cluster: &impl FaultyCluster,
    ends: &[State],
    how: impl Fn() -> String,
) {
    let store = cluster.test_cluster().store();
    let compare = async {
        loop {
            let revision = store.revision();
            let found = cluster.state().await;
            if ends.contains(&found) {
                return;
            }
            while store.revision() == revision {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    tokio::select! {
        () = compare => return,
        () = wait_for_timeout() => {}
    }
    let found = cluster.state().await;
    let nearest = ends.iter().map(|end| differences(end, &found)).min_by_key(Vec::len);
    panic!("{}\nanother end\n{}", how(), nearest.unwrap_or_default().join("\n"));
}

/// The differences by object and field.
pub fn differences(wanted: &State, found: &State) -> Vec<String> {
    let mut keys: Vec<&String> = wanted.keys().chain(found.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut differences = Vec::new();
    for key in keys {
        match (wanted.get(key), found.get(key)) {
            (Some(left), Some(right)) => compare(key, left, right, &mut differences),
            (Some(_), None) => differences.push(format!("{key}: is not there")),
            (None, _) => differences.push(format!("{key}: is there")),
        }
    }
    differences
}

fn compare(path: &str, left: &Value, right: &Value, differences: &mut Vec<String>) {
    if left == right {
        return;
    }
    if let (Value::Object(left), Value::Object(right)) = (left, right) {
        let mut keys: Vec<&String> = left.keys().chain(right.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let value_in =
                |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
            compare(&format!("{path}/{key}"), &value_in(left), &value_in(right), differences);
        }
        return;
    }
    differences.push(format!("{path}\n  wanted {left}\n  found  {right}"));
}
