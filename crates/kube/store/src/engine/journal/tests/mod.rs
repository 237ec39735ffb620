//! Tests of the journal on a disk that can be truncated, corrupted, filled and unplugged.

mod crash;
mod faults;
mod housekeeping;
mod memdisk;

use super::Journal;
use super::names::{self, ACKNOWLEDGED};
use crate::{Change, CommitError, Key, OpenError, Options, Precondition, Recovery, Store, Stored};
use mainstay_object::Object;
use memdisk::MemDisk;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Opens the store on a disk, with a snapshot after so many bytes of journal.
fn open_with(disk: &MemDisk, snapshot_after: u64) -> Result<(Store, Recovery), OpenError> {
    let journal = Journal::on(Arc::new(disk.clone()), None, snapshot_after);
    Store::with_engine(Box::new(journal), Options::default())
}

/// Opens the store on a disk, without snapshots.
fn open(disk: &MemDisk) -> Result<(Store, Recovery), OpenError> {
    open_with(disk, u64::MAX)
}

async fn put(store: &Store, name: &str, text: &str) -> Result<Arc<Stored>, CommitError> {
    let object = Object::from_value(json!({
        "metadata": {"name": name, "labels": {"text": text}},
        "text": text,
    }))
    .unwrap();
    let key = Key::new("things", "ns", name);
    store.commit(Change::Put { key, object: &object, expect: Precondition::Any, guard: None }).await
}

async fn delete(store: &Store, name: &str) -> Result<Arc<Stored>, CommitError> {
    let key = Key::new("things", "ns", name);
    store.commit(Change::Delete { key, expect: Precondition::Any }).await
}

/// The live objects: name → text at revision.
fn live(store: &Store) -> BTreeMap<String, (String, u64)> {
    let list = store.list("things", None);
    list.iter()
        .map(|stored| {
            let object = stored.object();
            assert_eq!(object.resource_version(), stored.revision.to_string());
            assert_eq!(stored.label("text"), object.str(&["text"]));
            let text = object.str(&["text"]).unwrap().to_owned();
            (stored.key.name.to_string(), (text, stored.revision))
        })
        .collect()
}

/// A disk with five acknowledged changes in one journal, and the resulting objects.
async fn written() -> (MemDisk, BTreeMap<String, (String, u64)>) {
    let disk = MemDisk::default();
    let store = open(&disk).unwrap().0;
    put(&store, "a", "1").await.unwrap();
    put(&store, "b", "2").await.unwrap();
    put(&store, "a", "3").await.unwrap();
    delete(&store, "b").await.unwrap();
    put(&store, "c", "5").await.unwrap();
    let live = live(&store);
    store.close().await.unwrap();
    (disk, live)
}

fn journal() -> String {
    names::journal(1)
}

/// Waits for another thread to finish a file.
fn wait_for_file(disk: &MemDisk, name: &str) {
    for _ in 0..100_000_000_u64 {
        if disk.has(name) {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{name} does not come");
}
