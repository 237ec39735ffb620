//! The durable engine: an append-only journal with checksums, and snapshots.
//!
//! ```text
//! append ─► frame ─► journal-<base>: write, fdatasync ─► acknowledged: write
//!                        │ long enough: a new journal, and in the background
//!                        └► snapshot-<revision>.tmp ─► sync, rename, sync ─► older files removed
//! open   ◄─ newest snapshot ◄─ the journals that follow it
//! ```
//!
//! Why not a database: reads never reach the engine, so a tree on disk would only be written to.
//! One sequential write and one sync per batch are the minimum cost of durability
//! (`docs/performance.md` has the figures).
//!
//! A journal grows until it is as long as the last snapshot, but at least
//! [`Options::snapshot_after`](crate::Options::snapshot_after). The folder therefore stays below
//! about three times the live objects plus that. Writes continue while a snapshot is written: a
//! thread of its own writes it from a view of the index.

mod acknowledged;
pub(crate) mod disk;
mod format;
mod lock;
mod names;
mod open;
pub(crate) mod repair;
mod snapshot;
#[cfg(test)]
mod tests;

use super::{Engine, EngineError, Loader, OpenError, Probe, Record, Recovery};
use crate::{Event, EventKind, View};
use acknowledged::AcknowledgedEnd;
use disk::{Disk, DiskFile, Folder};
use format::{
    FileKind, FrameKind, HEADER, begin_frame, finish_frame, header, push_deletion, push_object,
};
use lock::Lock;
use open::io_error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// A journal in a folder.
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    /// The lock of the folder. The snapshot thread shares it, so that no other process gets the
    /// folder while the thread still works.
    lock: Arc<Option<Lock>>,
    snapshot_after: u64,
    /// None until the folder has been read.
    active: Option<ActiveJournal>,
}

/// The current journal.
struct ActiveJournal {
    file: Box<dyn DiskFile>,
    acknowledged: Box<dyn DiskFile>,
    /// The revision that the file continues; its name.
    base: u64,
    /// The end of the last durable batch.
    length: u64,
    revision: u64,
    /// The bytes of journal since the last snapshot started.
    bytes_since_snapshot: u64,
    snapshot_bytes: u64,
    snapshot: Option<SnapshotTask>,
    buffer: Vec<u8>,
    /// Why the engine writes nothing more.
    stopped: Option<Arc<str>>,
}

/// A snapshot in progress on a background thread.
struct SnapshotTask {
    thread: JoinHandle<io::Result<u64>>,
    cancel: Arc<AtomicBool>,
}

/// The bytes of a probing write.
const PROBE_BYTES: [u8; 4096] = [0; 4096];

/// A batch buffer above this size is released after use.
const KEPT_BUFFER: usize = 1 << 20;

impl Journal {
    /// The engine of a folder, which is created if necessary and locked.
    pub(crate) fn new(folder: &Path, snapshot_after: u64) -> Result<Self, OpenError> {
        disk::create(folder).map_err(|source| OpenError::Io {
            attempt: "create",
            path: folder.to_owned(),
            source,
        })?;
        let lock = Lock::take(folder)?;
        let disk = Folder::open(folder).map_err(|source| OpenError::Io {
            attempt: "open",
            path: folder.to_owned(),
            source,
        })?;
        Ok(Self::on(Arc::new(disk), Some(lock), snapshot_after))
    }

    /// The engine of any disk; the caller ensures that no other engine uses it.
    pub(crate) fn on(disk: Arc<dyn Disk>, lock: Option<Lock>, snapshot_after: u64) -> Self {
        Self { disk, lock: Arc::new(lock), snapshot_after, active: None }
    }
}

impl Engine for Journal {
    fn load(&mut self, loader: &mut Loader) -> Result<Recovery, OpenError> {
        let disk = &*self.disk;
        let found = open::read(disk, loader)?;
        let revision = found.recovery.revision;
        // A file without a complete header is created anew.
        let journal = found.journal.filter(|(_, _, length)| *length >= HEADER as u64);
        let (base, length) = match &journal {
            Some((_, base, length)) => (*base, *length),
            None => (revision, HEADER as u64),
        };
        let expected = AcknowledgedEnd { journal: base, length, revision };
        let is_current = found.acknowledged == acknowledged::Record::Sound(expected);
        let name = names::journal(base);
        let journal = match journal {
            Some((mut file, ..)) if found.recovery.torn.is_some() => {
                truncate(&mut *file, length)
                    .map_err(|source| io_error(disk, "truncate", &name, source))?;
                Some(file)
            }
            Some((mut file, ..)) => {
                // A killed process may have written its last batch without a sync.
                if !is_current {
                    file.sync().map_err(|source| io_error(disk, "sync", &name, source))?;
                }
                Some(file)
            }
            None => None,
        };
        // Before a new journal: only a folder with an acknowledgement file can show later that a
        // journal was never finished.
        let acknowledged = if is_current {
            // Nothing has to be written or synced: an orderly start does not wait for the disk.
            disk.open(names::ACKNOWLEDGED, false)
        } else {
            acknowledged::create(disk, expected).and_then(|file| disk.sync().map(|()| file))
        };
        let acknowledged =
            acknowledged.map_err(|source| io_error(disk, "write", names::ACKNOWLEDGED, source))?;
        let file = match journal {
            Some(file) => file,
            None => create_journal(disk, base)
                .map_err(|source| io_error(disk, "create", &name, source))?,
        };
        if let Some((snapshot, _)) = found.snapshot
            && let Err(error) = snapshot::remove_older(disk, snapshot)
        {
            tracing::warn!("cannot remove old files from {}: {error}", disk.path("").display());
        }
        self.active = Some(ActiveJournal {
            file,
            acknowledged,
            base,
            length,
            revision,
            bytes_since_snapshot: found.journal_bytes,
            snapshot_bytes: found.snapshot.map_or(0, |snapshot| snapshot.1),
            snapshot: None,
            buffer: Vec::new(),
            stopped: None,
        });
        Ok(found.recovery)
    }

    fn append(&mut self, events: &[Arc<Event>]) -> Result<(), EngineError> {
        let active = self.active.as_mut().ok_or_else(|| EngineError::Stopped {
            reason: "the data folder was not read yet".into(),
        })?;
        active.append(&*self.disk, events)
    }

    fn maintain(&mut self, view: &dyn Fn() -> View) {
        let Some(active) = &mut self.active else { return };
        active.collect_snapshot();
        let due = active.bytes_since_snapshot > self.snapshot_after.max(active.snapshot_bytes);
        if !due || active.snapshot.is_some() || active.stopped.is_some() {
            return;
        }
        active.bytes_since_snapshot = 0;
        // The next journal must not go into another folder with the same path.
        let same_folder = self.lock.as_ref().as_ref().map_or(Ok(()), |lock| lock.held().check());
        let started = same_folder.and_then(|()| active.rotate(&*self.disk)).and_then(|()| {
            active.snapshot = Some(start_snapshot(&self.disk, &self.lock, view())?);
            Ok(())
        });
        if let Err(error) = started {
            // The journal continues; the next attempt comes when it has grown as much again.
            tracing::warn!("cannot begin a snapshot of the data folder: {error}");
        }
    }

    fn attempt(&mut self) -> Result<(), EngineError> {
        self.active.as_mut().map_or(Ok(()), |active| active.attempt(&*self.disk))
    }

    fn probe(&self) -> Option<Probe> {
        let held = self.lock.as_ref().as_ref()?.held().clone();
        Some(Arc::new(move || {
            held.check().map_err(|source| EngineError::Lost {
                path: held.path().to_owned(),
                source: Arc::new(source),
            })
        }))
    }

    fn close(&mut self) -> Result<(), EngineError> {
        let Some(active) = &mut self.active else { return Ok(()) };
        if let Some(job) = &active.snapshot {
            job.cancel.store(true, Ordering::Relaxed);
        }
        active.join();
        active.acknowledged.sync().map_err(|source| EngineError::Refused {
            attempt: "sync",
            path: self.disk.path(names::ACKNOWLEDGED),
            source: Arc::new(source),
        })
    }
}

impl ActiveJournal {
    fn append(&mut self, disk: &dyn Disk, events: &[Arc<Event>]) -> Result<(), EngineError> {
        self.check_not_stopped()?;
        let mut buffer = std::mem::take(&mut self.buffer);
        let framed = frame(&mut buffer, self.revision + 1, events);
        framed.map_err(|source| self.refused(disk, "write", source))?;
        self.write_durably(disk, &buffer)?;
        self.length += buffer.len() as u64;
        self.bytes_since_snapshot += buffer.len() as u64;
        self.revision += events.len() as u64;
        if buffer.capacity() <= KEPT_BUFFER {
            self.buffer = buffer;
        }
        if let Err(error) = self.acknowledge() {
            // The batch is durable all the same; only a later report of damage is less precise.
            tracing::warn!("cannot write {}: {error}", disk.path(names::ACKNOWLEDGED).display());
        }
        Ok(())
    }

    /// Writes bytes behind the last batch that are no frame, and truncates the file again.
    fn attempt(&mut self, disk: &dyn Disk) -> Result<(), EngineError> {
        self.check_not_stopped()?;
        self.write_durably(disk, &PROBE_BYTES)?;
        match truncate(&mut *self.file, self.length) {
            Ok(()) => Ok(()),
            Err(source) => Err(self.undo_write(self.refused(disk, "truncate", source))),
        }
    }

    fn check_not_stopped(&self) -> Result<(), EngineError> {
        let stopped = |reason| Err(EngineError::Stopped { reason: Arc::clone(reason) });
        self.stopped.as_ref().map_or(Ok(()), stopped)
    }

    fn refused(&self, disk: &dyn Disk, attempt: &'static str, source: io::Error) -> EngineError {
        let path = disk.path(&names::journal(self.base));
        EngineError::Refused { attempt, path, source: Arc::new(source) }
    }

    /// Makes bytes durable behind the last batch, or removes them completely.
    fn write_durably(&mut self, disk: &dyn Disk, bytes: &[u8]) -> Result<(), EngineError> {
        let written = self.file.write_at(bytes, self.length).map_err(|error| ("write", error));
        let written = written.and_then(|()| self.file.sync().map_err(|error| ("sync", error)));
        if let Err((attempt, source)) = written {
            return Err(self.undo_write(self.refused(disk, attempt, source)));
        }
        // A file without a name accepts writes like any other, and its content is lost with the
        // process. The check is one system call per batch after the sync, so an acknowledged batch
        // had its name then.
        match self.file.is_removed() {
            Ok(false) => Ok(()),
            Ok(true) => Err(self.removed(disk)),
            Err(source) => Err(self.undo_write(self.refused(disk, "look for", source))),
        }
    }

    /// Truncates a failed batch. If that fails too, the engine stops, because the next batch would
    /// follow bytes in an unknown state.
    fn undo_write(&mut self, error: EngineError) -> EngineError {
        match truncate(&mut *self.file, self.length) {
            Ok(()) => error,
            Err(second) => {
                let reason: Arc<str> = format!(
                    "a change was not saved and its remains could not be removed ({error}; then: \
                     {second})"
                )
                .into();
                self.stopped = Some(Arc::clone(&reason));
                EngineError::Stopped { reason }
            }
        }
    }

    /// The journal was removed: later batches would never be found.
    fn removed(&mut self, disk: &dyn Disk) -> EngineError {
        let path = disk.path(&names::journal(self.base));
        let reason: Arc<str> = format!(
            "the journal {} was removed while it was written; restore the data folder from a backup, \
             or start with another one",
            path.display()
        )
        .into();
        self.stopped = Some(Arc::clone(&reason));
        EngineError::Stopped { reason }
    }

    fn acknowledge(&mut self) -> io::Result<()> {
        let acknowledgement =
            AcknowledgedEnd { journal: self.base, length: self.length, revision: self.revision };
        acknowledged::write(&mut *self.acknowledged, acknowledgement)
    }

    /// Starts the next journal, unless the current one is empty.
    fn rotate(&mut self, disk: &dyn Disk) -> io::Result<()> {
        if self.base == self.revision {
            return Ok(());
        }
        self.file = create_journal(disk, self.revision)?;
        self.base = self.revision;
        self.length = HEADER as u64;
        self.acknowledge()?;
        // The file is durable before any journal that it might otherwise still name can be removed.
        self.acknowledged.sync()
    }

    /// Collects the result of a finished snapshot.
    fn collect_snapshot(&mut self) {
        if self.snapshot.as_ref().is_some_and(|job| job.thread.is_finished()) {
            self.join();
        }
    }

    fn join(&mut self) {
        let Some(job) = self.snapshot.take() else { return };
        match job.thread.join() {
            Ok(Ok(bytes)) => self.snapshot_bytes = bytes,
            Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(Err(error)) => tracing::warn!("cannot write a snapshot of the data: {error}"),
            Err(_) => tracing::error!("the thread that writes snapshots panicked"),
        }
    }
}

/// Encodes a batch as one frame.
fn frame(buffer: &mut Vec<u8>, first: u64, events: &[Arc<Event>]) -> io::Result<()> {
    begin_frame(buffer);
    for event in events {
        let record = Record::of(&event.object);
        if event.kind == EventKind::Deleted {
            push_deletion(buffer, &record);
        } else {
            push_object(buffer, &record);
        }
    }
    let count = u32::try_from(events.len()).map_err(io::Error::other)?;
    finish_frame(buffer, FrameKind::Batch, first, count)
}

/// Creates an empty journal and makes it durable.
fn create_journal(disk: &dyn Disk, base: u64) -> io::Result<Box<dyn DiskFile>> {
    let mut file = disk.open(&names::journal(base), true)?;
    file.truncate(0)?;
    file.write_at(&header(FileKind::Journal, base), 0)?;
    file.sync()?;
    disk.sync()?;
    Ok(file)
}

/// Truncates a file, durably.
fn truncate(file: &mut dyn DiskFile, length: u64) -> io::Result<()> {
    file.truncate(length)?;
    file.sync()
}

fn start_snapshot(
    disk: &Arc<dyn Disk>,
    lock: &Arc<Option<Lock>>,
    view: View,
) -> io::Result<SnapshotTask> {
    let cancel = Arc::new(AtomicBool::new(false));
    let (disk, lock, cancelled) = (Arc::clone(disk), Arc::clone(lock), Arc::clone(&cancel));
    let thread = Builder::new().name("snapshot".to_owned()).spawn(move || {
        let records = view.iter().map(|object| Record::of(object));
        let bytes = snapshot::write(&*disk, view.revision, records, &cancelled)?;
        snapshot::remove_older(&*disk, view.revision)?;
        drop(lock);
        Ok(bytes)
    })?;
    Ok(SnapshotTask { thread, cancel })
}
