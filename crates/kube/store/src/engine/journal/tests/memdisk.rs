//! An in-memory disk that records syncs and fails on demand.

use crate::engine::journal::disk::{Disk, DiskFile};
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// An operation that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Open,
    Write,
    Sync,
    Truncate,
    Rename,
}

/// One failure: of the next such operation on a file whose name starts with `file`.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) step: Step,
    pub(super) file: &'static str,
    pub(super) error: io::ErrorKind,
    /// How many bytes a failing write still writes.
    pub(super) short: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    now: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Default)]
struct State {
    /// A file keeps its content when it gets another name, as an open file would.
    files: BTreeMap<String, Arc<Mutex<Content>>>,
    kept_names: Vec<String>,
    faults: VecDeque<Fault>,
}

/// Clones are the same disk.
#[derive(Clone, Default)]
pub(super) struct MemDisk(Arc<Mutex<State>>);

impl MemDisk {
    /// An independent copy.
    pub(super) fn copy(&self) -> Self {
        let copy = Self::default();
        for (name, content) in &self.0.lock().files {
            let content = Arc::new(Mutex::new(content.lock().clone()));
            copy.0.lock().files.insert(name.clone(), content);
        }
        copy
    }

    /// The disk after a power cut: unsynced data is lost.
    pub(super) fn unplugged(&self) -> Self {
        let copy = self.copy();
        for content in copy.0.lock().files.values() {
            let content = &mut *content.lock();
            content.now.clone_from(&content.synced);
        }
        copy
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.lock().files.contains_key(name)
    }

    /// All names, without the faults of a listing.
    pub(super) fn files(&self) -> Vec<String> {
        self.0.lock().files.keys().cloned().collect()
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        self.0.lock().files[name].lock().now.clone()
    }

    pub(super) fn write(&self, name: &str, bytes: Vec<u8>) {
        let content = Content { synced: bytes.clone(), now: bytes };
        self.0.lock().files.insert(name.to_owned(), Arc::new(Mutex::new(content)));
    }

    /// Makes a file's content count as never synced.
    pub(super) fn forget_sync(&self, name: &str) {
        self.0.lock().files[name].lock().synced.clear();
    }

    pub(super) fn fail(&self, step: Step, file: &'static str, error: io::ErrorKind, short: usize) {
        self.0.lock().faults.push_back(Fault { step, file, error, short });
    }

    /// The number of faults that have not occurred yet.
    pub(super) fn pending_faults(&self) -> usize {
        self.0.lock().faults.len()
    }

    pub(super) fn kept_names(&self) -> Vec<String> {
        self.0.lock().kept_names.clone()
    }

    /// The fault that is due, in order.
    fn fault(&self, step: Step, file: &str) -> Option<Fault> {
        let faults = &mut self.0.lock().faults;
        let due =
            faults.front().is_some_and(|fault| fault.step == step && file.starts_with(fault.file));
        if due { faults.pop_front() } else { None }
    }

    fn check(&self, step: Step, file: &str) -> io::Result<()> {
        self.fault(step, file).map_or(Ok(()), |fault| Err(fault.error.into()))
    }
}

impl Disk for MemDisk {
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/data").join(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().files.keys().cloned().collect())
    }

    fn open(&self, name: &str, create: bool) -> io::Result<Box<dyn DiskFile>> {
        self.check(Step::Open, name)?;
        let files = &mut self.0.lock().files;
        if !create && !files.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let content = Arc::clone(files.entry(name.to_owned()).or_default());
        Ok(Box::new(MemFile { disk: self.clone(), name: name.to_owned(), content }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.check(Step::Rename, from)?;
        let files = &mut self.0.lock().files;
        let content = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), content);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let removed = self.0.lock().files.remove(name);
        removed.map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn keep(&self, name: &str, folder: &str) -> io::Result<()> {
        self.0.lock().kept_names.push(format!("{folder}/{name}"));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

struct MemFile {
    disk: MemDisk,
    name: String,
    content: Arc<Mutex<Content>>,
}

impl DiskFile for MemFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.content.lock().now.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap();
        let content = self.content.lock();
        let bytes = content.now.get(start..start + buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let fault = self.disk.fault(Step::Write, &self.name);
        let written = fault.as_ref().map_or(bytes.len(), |fault| fault.short.min(bytes.len()));
        let start = usize::try_from(offset).unwrap();
        let now = &mut self.content.lock().now;
        now.resize(now.len().max(start + written), 0);
        now[start..start + written].copy_from_slice(&bytes[..written]);
        fault.map_or(Ok(()), |fault| Err(fault.error.into()))
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.disk.check(Step::Truncate, &self.name)?;
        self.content.lock().now.resize(usize::try_from(length).unwrap(), 0);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.check(Step::Sync, &self.name)?;
        let content = &mut *self.content.lock();
        content.synced.clone_from(&content.now);
        Ok(())
    }

    fn is_removed(&self) -> io::Result<bool> {
        let files = &self.disk.0.lock().files;
        Ok(!files.values().any(|content| Arc::ptr_eq(content, &self.content)))
    }
}
