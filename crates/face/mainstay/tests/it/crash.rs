//! Crash safety: after a kill at any moment under writes, no acknowledged write is lost.

use crate::harness::{Up, tls_cluster};
use mainstay_client::{
    Cluster, DeleteOptions, ObjectList, ObjectWatch, Patch, Selection, WatchEvent,
};
use mainstay_object::builtin::CONFIG_MAP;
use mainstay_object::{Object, fnv};
use mainstay_testdata::{is_deep, ran};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;

const CLIENTS: usize = 32;
/// Acknowledged writes before each kill, at least.
const WRITES: u64 = 500;

/// Acknowledged writes: name → (revision, value); `None` after an acknowledged deletion. Names with a
/// write in flight at the kill may have either state.
#[derive(Default)]
struct AcknowledgedWrites {
    acknowledged: BTreeMap<String, Option<(u64, String)>>,
    in_flight: BTreeMap<String, Option<String>>,
    /// The state of a client before the last kill, and its revision.
    known: Option<(String, Objects)>,
    /// The number of clients that could resume their watch; the others received 410.
    resumed: u32,
}

/// Name → (revision, value).
type Objects = BTreeMap<String, (u64, String)>;

/// The number of kills: a few in everyday runs, twenty in deep ones.
fn rounds() -> u32 {
    if is_deep() { 20 } else { 3 }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_write_is_lost() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let data = data.to_str().expect("temporary paths are text");
    let log = Arc::new(Mutex::new(AcknowledgedWrites::default()));
    let mut written = 0;
    for round in 0..rounds() {
        written += write_until_killed(folder.path(), data, round, &log).await;
        check(folder.path(), data, &log).await;
    }
    ran(&format!(
        "{} kills, {written} acknowledged writes by {CLIENTS} clients, none lost; {} watches resumed",
        rounds(),
        log.lock().await.resumed
    ));
}

async fn write_until_killed(
    folder: &Path,
    data: &str,
    round: u32,
    log: &Arc<Mutex<AcknowledgedWrites>>,
) -> u64 {
    let mut up = Up::start(folder, &["--data-dir", data]);
    let acknowledged = Arc::new(AtomicU64::new(0));
    let mut clients = Vec::new();
    for client in 0..CLIENTS {
        let cluster = tls_cluster(&up.kubeconfig).await;
        let (log, acknowledged) = (Arc::clone(log), Arc::clone(&acknowledged));
        clients.push(tokio::spawn(write(cluster, round, client, log, acknowledged)));
    }
    // Anywhere between the 500th and about the 800th write.
    let point = WRITES + u64::from(fnv::fnv32a(fnv::random_uid().as_bytes()) % 300);
    while acknowledged.load(Ordering::Relaxed) < point {
        tokio::task::yield_now().await;
    }
    up.kill();
    for client in clients {
        client.await.expect("a client ends when the server is gone");
    }
    acknowledged.load(Ordering::Relaxed)
}

/// Creates, changes and deletes objects of its own until the server is gone.
async fn write(
    cluster: Cluster,
    round: u32,
    client: usize,
    log: Arc<Mutex<AcknowledgedWrites>>,
    count: Arc<AtomicU64>,
) {
    for turn in 0.. {
        let name = format!("r{round}-c{client}-{}", turn / 3);
        let value = format!("{turn}-{}", "x".repeat(200));
        let next = if turn % 3 == 2 && turn % 2 == 0 { None } else { Some(value.clone()) };
        log.lock().await.in_flight.insert(name.clone(), next.clone());
        let result = match (turn % 3, &next) {
            (0, _) => {
                let object = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": name, "namespace": "default", "labels": {"crash": "test"}},
                    "data": {"value": value},
                });
                let object = Object::from_value(object).expect("an object");
                cluster.create(&CONFIG_MAP, &object).await
            }
            (_, None) => cluster
                .delete(&CONFIG_MAP, Some("default"), &name, &DeleteOptions::default())
                .await
                .map(|_| Object::default()),
            (_, Some(_)) => {
                let patch = Patch::Merge(json!({"data": {"value": value}}));
                cluster.patch(&CONFIG_MAP, Some("default"), &name, &patch).await
            }
        };
        match result {
            Ok(object) => {
                let revision = object.resource_version().parse().unwrap_or_default();
                let mut log = log.lock().await;
                log.in_flight.remove(&name);
                log.acknowledged.insert(name, next.map(|value| (revision, value)));
                count.fetch_add(1, Ordering::Relaxed);
            }
            // The server is gone; the state of this write is unknown.
            Err(mainstay_client::Error::Transport(_)) => return,
            Err(other) => panic!("{name}: {other}"),
        }
    }
}

/// After a restart the list has the acknowledged writes, and a watch from the beginning replays to the
/// same state.
async fn check(folder: &Path, data: &str, log: &Arc<Mutex<AcknowledgedWrites>>) {
    let up = Up::start(folder, &["--data-dir", data]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    let params = ObjectList::labels("crash=test");
    let list = cluster.list(&CONFIG_MAP, Some("default"), &params).await.expect("a list");
    let found: Objects = list.items.iter().map(entry).collect();
    let mut log = log.lock().await;
    for (name, state) in &log.acknowledged {
        match (log.in_flight.get(name), found.get(name), state) {
            (_, Some(now), Some(then)) if now == then => {}
            // Deleted; a write in flight may have been stored or not.
            (None, None, None) | (Some(None), None, _) => {}
            (Some(Some(value)), Some((_, now)), _) if now == value => {}
            (_, now, then) => panic!("{name}: acknowledged {then:?}, found {now:?}"),
        }
    }
    for name in found.keys() {
        assert!(
            log.acknowledged.contains_key(name) || log.in_flight.contains_key(name),
            "{name} was never written"
        );
    }
    // From here on the stored state counts.
    log.in_flight.clear();
    log.acknowledged =
        found.iter().map(|(name, state)| (name.clone(), Some(state.clone()))).collect();

    // One more write marks the end of the replays.
    let end = format!("end-{}", list.resource_version);
    let last = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": end, "namespace": "default", "labels": {"crash": "test"}},
    });
    let last = Object::from_value(last).expect("an object");
    let selection = Selection::all(CONFIG_MAP).namespace("default").labels("crash=test");
    let from_nothing = cluster.watch(&selection, "0").await.expect("a watch");
    let resumed = match &log.known {
        Some((revision, before)) => {
            Some((cluster.watch(&selection, revision).await, before.clone()))
        }
        None => None,
    };
    cluster.create(&CONFIG_MAP, &last).await.expect("it is created");
    let replayed =
        replay(from_nothing, Objects::new(), &end).await.expect("nothing expires at zero");
    assert_eq!(replayed, found, "list and watch replay agree");
    // A client resumes its watch, or receives 410 and must list again.
    if let Some((watch, before)) = resumed {
        let state = match watch {
            Ok(watch) => replay(watch, before, &end).await,
            Err(error) => {
                assert!(error.is_expired(), "{error}");
                None
            }
        };
        if let Some(state) = state {
            assert_eq!(state, found, "a resumed watch misses nothing");
            log.resumed += 1;
        }
    }
    cluster
        .delete(&CONFIG_MAP, Some("default"), &end, &DeleteOptions::default())
        .await
        .expect("it is deleted");
    let list = cluster.list(&CONFIG_MAP, Some("default"), &params).await.expect("a list");
    log.known = Some((list.resource_version, found));
}

/// Applies events to a state until the object `end` appears; `None` if the history is gone.
async fn replay(mut watch: ObjectWatch, mut state: Objects, end: &str) -> Option<Objects> {
    loop {
        let event = match watch.next().await.expect("the watch goes on") {
            Ok(event) => event,
            Err(error) => {
                assert!(error.is_expired(), "{error}");
                return None;
            }
        };
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) if object.name() == end => {
                return Some(state);
            }
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                state.extend([entry(&object)]);
            }
            WatchEvent::Deleted(object) => {
                state.remove(object.name());
            }
            WatchEvent::Bookmark(_) => {}
        }
    }
}

fn entry(object: &Object) -> (String, (u64, String)) {
    let revision = object.resource_version().parse().unwrap_or_default();
    let value = object.str(&["data", "value"]).unwrap_or_default().to_owned();
    (object.name().to_owned(), (revision, value))
}
