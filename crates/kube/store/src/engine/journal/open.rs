//! Opening a data folder: loads its objects, and classifies all unreadable bytes.
//!
//! There are two classes. Bytes at the very end of the last journal, with no valid frame after
//! them and nothing acknowledged missing, are the remains of an unacknowledged write: they are
//! dropped and reported. Anything else is damage to acknowledged data. Then nothing is opened and
//! nothing is changed: a person decides.

use super::acknowledged::{self, AcknowledgedEnd};
use super::disk::{Disk, DiskFile};
use super::format::{
    FileKind, Frame, FrameError, FrameKind, Frames, HEADER, Header, Malformed, VERSION,
    read_header, records, u64_at,
};
use super::names::{ACKNOWLEDGED, Inventory, journal, snapshot};
use crate::{Damage, Loader, OpenError, Recovery, Torn};
use std::io;

/// The content of a folder that was read.
pub(crate) struct LoadedFolder {
    pub(crate) recovery: Recovery,
    /// The acknowledgement file.
    pub(crate) acknowledged: acknowledged::Record,
    /// The journal to continue, its base and the length of its valid part; none to start a new one.
    pub(crate) journal: Option<(Box<dyn DiskFile>, u64, u64)>,
    /// The revision and the size of the snapshot, if there is one.
    pub(crate) snapshot: Option<(u64, u64)>,
    /// The size of the journals since the snapshot.
    pub(crate) journal_bytes: u64,
}

/// Reads a folder into the loader. Changes nothing on disk.
pub(crate) fn read(disk: &dyn Disk, loader: &mut Loader) -> Result<LoadedFolder, OpenError> {
    let names = disk.names().map_err(|source| io_error(disk, "list", "", source))?;
    let inventory = Inventory::of(names);
    let record =
        acknowledged::read(disk).map_err(|source| io_error(disk, "read", ACKNOWLEDGED, source))?;
    let mut reader = Reader { disk, loader, acknowledged: record.sound() };
    let mut found = LoadedFolder {
        recovery: Recovery::default(),
        acknowledged: record,
        journal: None,
        snapshot: None,
        journal_bytes: 0,
    };
    let mut base = reader.loader.revision();
    if let Some(revision) = inventory.snapshots.last() {
        found.snapshot = Some((*revision, reader.snapshot(*revision)?));
        base = *revision;
    }
    reader.loader.begin_history(base);
    let journals: Vec<_> =
        inventory.journals.iter().copied().filter(|start| *start >= base).collect();
    for (at, journal) in journals.iter().enumerate() {
        let last = at + 1 == journals.len();
        reader.journal(*journal, last, &mut found)?;
    }
    reader.check_complete(journals.last().copied(), &mut found)?;
    let empty = inventory.snapshots.is_empty() && inventory.journals.is_empty();
    if record.sound().is_none() && !empty {
        found.recovery.notes.push(format!(
            "{} does not say what was acknowledged; everything else reads well",
            disk.path(ACKNOWLEDGED).display()
        ));
    }
    found.recovery.revision = loader.revision();
    found.recovery.objects = loader.objects();
    Ok(found)
}

pub(crate) fn io_error(
    disk: &dyn Disk,
    attempt: &'static str,
    name: &str,
    source: io::Error,
) -> OpenError {
    OpenError::Io { attempt, path: disk.path(name), source }
}

struct Reader<'a> {
    disk: &'a dyn Disk,
    loader: &'a mut Loader,
    acknowledged: Option<AcknowledgedEnd>,
}

impl Reader<'_> {
    /// Reads a snapshot and returns its size.
    fn snapshot(&mut self, revision: u64) -> Result<u64, OpenError> {
        let name = snapshot(revision);
        let io = |source| io_error(self.disk, "read", &name, source);
        let file = self.disk.open(&name, false).map_err(io)?;
        let mut frames = Frames::new(&*file, 0).map_err(io)?;
        match read_file_header(&mut frames, FileKind::Snapshot).map_err(io)? {
            Header::Sound { revision: found } if found == revision => {}
            Header::OtherVersion(version) => return Err(self.other_version(&name, version)),
            _ => return Err(self.damaged(&name, 0, "the header of the file is damaged")),
        }
        frames = Frames::new(&*file, HEADER as u64).map_err(io)?;
        let mut total = 0;
        loop {
            let offset = frames.offset();
            let outcome = match frames.next() {
                Ok(Some(frame)) => self.load_objects(&frame, revision, &mut total),
                Ok(None) => Err(Malformed("the file ends before its last frame")),
                Err(FrameError::Malformed(malformed)) => Err(malformed),
                Err(FrameError::Io(source)) => return Err(io(source)),
            };
            match outcome {
                Ok(false) => {}
                Ok(true) if frames.offset() == frames.length() => return Ok(frames.length()),
                Ok(true) => {
                    return Err(self.damaged(
                        &name,
                        frames.offset(),
                        "the file goes on after its end",
                    ));
                }
                Err(malformed) => return Err(self.damaged(&name, offset, malformed.0)),
            }
        }
    }

    /// Loads a frame of a snapshot; returns whether it was the last.
    fn load_objects(
        &mut self,
        frame: &Frame<'_>,
        revision: u64,
        total: &mut u64,
    ) -> Result<bool, Malformed> {
        if frame.first != revision {
            return Err(Malformed("a frame belongs to another snapshot"));
        }
        match frame.kind {
            FrameKind::Batch => Err(Malformed("a frame does not belong into a snapshot")),
            FrameKind::End if u64_at(frame.payload, 0) == *total => Ok(true),
            FrameKind::End => Err(Malformed("the number of objects is not what it should be")),
            FrameKind::Objects => {
                for read in records(frame.payload) {
                    let read = read?;
                    if read.deleted || read.record.revision > revision {
                        return Err(Malformed("a record does not belong into a snapshot"));
                    }
                    self.loader.put(&read.record);
                    *total += 1;
                }
                Ok(false)
            }
        }
    }

    /// Reads a journal and applies it.
    fn journal(
        &mut self,
        base: u64,
        last: bool,
        found: &mut LoadedFolder,
    ) -> Result<(), OpenError> {
        let name = journal(base);
        let io = |source| io_error(self.disk, "read", &name, source);
        let file = self.disk.open(&name, false).map_err(io)?;
        let mut frames = Frames::new(&*file, 0).map_err(io)?;
        let length = frames.length();
        let header = read_file_header(&mut frames, FileKind::Journal).map_err(io)?;
        if base != self.loader.revision() {
            let what = "the journal before it is missing, or ends too early";
            return Err(self.damaged(&name, 0, what));
        }
        match header {
            Header::Sound { revision } if revision == base => {}
            Header::OtherVersion(version) => return Err(self.other_version(&name, version)),
            // The process ended while it created the file, which never had any content.
            _ if last && length <= HEADER as u64 && self.is_complete() => {
                found.recovery.torn =
                    Some(Torn { file: self.disk.path(&name), offset: 0, bytes: length });
                drop(frames);
                found.journal = Some((file, base, 0));
                return Ok(());
            }
            _ => return Err(self.damaged(&name, 0, "the header of the file is damaged")),
        }
        frames = Frames::new(&*file, HEADER as u64).map_err(io)?;
        let mut sound = frames.offset();
        loop {
            match frames.next() {
                Ok(Some(frame)) => {
                    // A frame with a valid checksum but invalid content is damage, not a torn
                    // write.
                    self.load_batch(&frame)
                        .map_err(|malformed| self.damaged(&name, sound, malformed.0))?;
                    sound = frames.offset();
                }
                Ok(None) => break,
                Err(FrameError::Io(source)) => return Err(io(source)),
                Err(FrameError::Malformed(malformed)) => {
                    let followed = !last || frames.search().map_err(io)?;
                    if followed || !self.is_complete() {
                        return Err(self.damaged(&name, sound, malformed.0));
                    }
                    let (file, bytes) = (self.disk.path(&name), length - sound);
                    found.recovery.torn = Some(Torn { file, offset: sound, bytes });
                    break;
                }
            }
        }
        drop(frames);
        found.journal_bytes += sound;
        if last {
            found.journal = Some((file, base, sound));
        }
        Ok(())
    }

    /// Applies a batch, completely or not at all.
    fn load_batch(&mut self, frame: &Frame<'_>) -> Result<(), Malformed> {
        let expected = self.loader.revision() + 1;
        if frame.kind != FrameKind::Batch {
            return Err(Malformed("a frame does not belong into a journal"));
        }
        if frame.first != expected {
            return Err(Malformed("the revisions do not follow each other"));
        }
        let mut revision = expected;
        for read in records(frame.payload) {
            if read?.record.revision != revision {
                return Err(Malformed("the revisions do not follow each other"));
            }
            revision += 1;
        }
        if revision - expected != u64::from(frame.count) || frame.count == 0 {
            return Err(Malformed("the number of changes is not what it should be"));
        }
        for read in records(frame.payload).flatten() {
            let record = &read.record;
            if read.deleted {
                self.loader.delete(record.resource, record.namespace, record.name, record.revision);
            } else {
                self.loader.put(record);
            }
        }
        Ok(())
    }

    /// Whether all changes that are known to be acknowledged were read.
    fn is_complete(&self) -> bool {
        self.acknowledged
            .is_some_and(|acknowledged| acknowledged.revision <= self.loader.revision())
    }

    /// Refuses a folder that is readable but ends before the acknowledged end.
    fn check_complete(&self, last: Option<u64>, found: &mut LoadedFolder) -> Result<(), OpenError> {
        match self.acknowledged {
            Some(acknowledged) if acknowledged.revision > self.loader.revision() => {
                let name = journal(last.unwrap_or(acknowledged.journal));
                let offset = found.journal.as_ref().map_or(0, |journal| journal.2);
                let what = if last.is_some_and(|last| last >= acknowledged.journal) {
                    "the file ends too early"
                } else {
                    "the newest journal is missing"
                };
                Err(self.damaged(&name, offset, what))
            }
            _ => Ok(()),
        }
    }

    fn damaged(&self, name: &str, offset: u64, what: &str) -> OpenError {
        OpenError::Damaged(Box::new(Damage {
            file: self.disk.path(name),
            offset,
            what: what.to_owned(),
            sound: self.loader.has_history().then(|| self.loader.revision()),
            acknowledged: self.acknowledged.map(|acknowledged| acknowledged.revision),
        }))
    }

    fn other_version(&self, name: &str, version: u32) -> OpenError {
        OpenError::Format { path: self.disk.path(name), found: version, known: VERSION }
    }
}

/// Reads the header of a file, or the part of it that exists.
pub(crate) fn read_file_header(frames: &mut Frames<'_>, kind: FileKind) -> io::Result<Header> {
    let length = frames.length().min(HEADER as u64);
    Ok(read_header(kind, frames.bytes(0, length)?))
}
