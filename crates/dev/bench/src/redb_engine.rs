//! redb as an engine of the store, for the comparison only.
//!
//! One table holds the live objects, another the revision. There is no log: the store reads an
//! engine's history only if it has one, so its absence favours redb.

use mainstay_store::{
    Engine, EngineError, Event, EventKind, Key, Loader, OpenError, Record, Recovery,
};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// `resource\0namespace\0name` → revision, slot, flags, length of the labels, labels, value.
const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
const REVISION: TableDefinition<'_, (), u64> = TableDefinition::new("revision");
const HEAD: usize = 17;

/// A redb database in a folder.
pub(crate) struct Redb {
    path: PathBuf,
    database: Database,
}

impl Redb {
    pub(crate) fn open(folder: &Path) -> Result<Self, redb::DatabaseError> {
        let path = folder.join("store.redb");
        Ok(Self { database: Database::create(&path)?, path })
    }

    fn failed(&self, error: impl Display) -> OpenError {
        let source = io::Error::other(error.to_string());
        OpenError::Io { attempt: "read", path: self.path.clone(), source }
    }

    fn read(&self, loader: &mut Loader) -> Result<(), redb::Error> {
        let transaction = self.database.begin_read()?;
        let revision = match transaction.open_table(REVISION) {
            Ok(table) => table.get(())?.map_or(1, |table| table.value()),
            // A new database has no tables.
            Err(redb::TableError::TableDoesNotExist(_)) => 1,
            Err(error) => return Err(error.into()),
        };
        if revision > 1 {
            for row in transaction.open_table(OBJECTS)?.iter()? {
                let (key, value) = row?;
                if let Some(record) = decode(key.value(), value.value()) {
                    loader.put(&record);
                }
            }
        }
        loader.begin_history(revision);
        Ok(())
    }

    fn write(&self, events: &[Arc<Event>]) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_quick_repair(true);
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            for event in events {
                let key = path_of(&event.object.key);
                if event.kind == EventKind::Deleted {
                    objects.remove(key.as_str())?;
                } else {
                    let value = encode(&Record::of(&event.object));
                    objects.insert(key.as_str(), value.as_slice())?;
                }
            }
            if let Some(last) = events.last() {
                transaction.open_table(REVISION)?.insert((), last.revision)?;
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

impl Engine for Redb {
    fn load(&mut self, loader: &mut Loader) -> Result<Recovery, OpenError> {
        self.read(loader).map_err(|error| self.failed(error))?;
        let (revision, objects) = (loader.revision(), loader.objects());
        Ok(Recovery { revision, objects, ..Recovery::default() })
    }

    fn append(&mut self, events: &[Arc<Event>]) -> Result<(), EngineError> {
        self.write(events).map_err(|error| EngineError::Other(error.to_string().into()))
    }
}

fn path_of(key: &Key) -> String {
    format!("{}\0{}\0{}", key.resource, key.namespace, key.name)
}

fn encode(record: &Record<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + record.labels.len() + record.value.len());
    bytes.extend_from_slice(&record.revision.to_le_bytes());
    bytes.extend_from_slice(&record.slot.to_le_bytes());
    bytes.push(u8::from(record.terminating));
    let labels = u32::try_from(record.labels.len()).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&labels.to_le_bytes());
    bytes.extend_from_slice(record.labels);
    bytes.extend_from_slice(&record.value);
    bytes
}

fn decode<'a>(key: &'a str, bytes: &'a [u8]) -> Option<Record<'a>> {
    let mut parts = key.split('\0');
    let (resource, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    let (revision, rest) = bytes.split_first_chunk::<8>()?;
    let (slot, rest) = rest.split_first_chunk::<4>()?;
    let (flags, rest) = rest.split_first()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (labels, value) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some(Record {
        resource,
        namespace,
        name,
        revision: u64::from_le_bytes(*revision),
        terminating: *flags == 1,
        slot: u32::from_le_bytes(*slot),
        labels,
        value: value.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_object::Object;
    use mainstay_store::{Change, Options, Precondition, Store};

    #[tokio::test]
    async fn redb_engine_reads_what_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let engine = Redb::open(folder.path()).unwrap();
            Store::with_engine(Box::new(engine), Options::default()).unwrap()
        };
        let (store, _) = open();
        for name in ["a", "b"] {
            let object =
                Object::from_value(serde_json::json!({"metadata": {"labels": {"x": name}}}));
            let object = object.unwrap();
            let key = Key::new("things", "ns", name);
            let change =
                Change::Put { key, object: &object, expect: Precondition::Absent, guard: None };
            store.commit(change).await.unwrap();
        }
        let key = Key::new("things", "ns", "a");
        store.commit(Change::Delete { key, expect: Precondition::Any }).await.unwrap();
        store.close().await.unwrap();
        let (store, recovery) = open();
        assert_eq!((recovery.revision, recovery.objects), (4, 1));
        let found = store.find("things", "ns", "b").unwrap();
        assert_eq!((found.revision, found.label("x")), (3, Some("b")));
    }
}
