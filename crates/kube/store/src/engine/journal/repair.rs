//! Repair: saves the readable data of a damaged folder and reports the rest.
//!
//! Every file is read frame by frame; after malformed bytes the search continues for the next valid
//! frame. Of several states of one object the newest one wins. The result is a new snapshot; the
//! original files are linked into the folder `damaged-REVISION` of the store, so that nothing is
//! destroyed.
//!
//! Limits: an object whose last change or deletion is lost comes back in an earlier state. The
//! report names such objects if the damaged bytes still contain their names.

use super::acknowledged::{self, AcknowledgedEnd};
use super::disk::{Disk, Folder};
use super::format::{
    FRAME, FileKind, Frame, FrameError, FrameKind, Frames, HEADER, Header, VERSION, records, u32_at,
};
use super::lock::Lock;
use super::names::{ACKNOWLEDGED, Inventory, journal, snapshot};
use super::open::{io_error, read_file_header};
use crate::engine::load::FIRST_REVISION;
use crate::{Key, OpenError, Record};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The result of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The revision of the repaired store. Greater than every acknowledged one.
    pub revision: u64,
    /// The number of its objects.
    pub objects: usize,
    /// The losses. Empty if the folder was sound; then nothing was changed.
    pub lost: Vec<DataLoss>,
    /// The folder with the original files; none if nothing was changed.
    pub originals: Option<PathBuf>,
}

/// A piece of acknowledged data that is lost, or may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataLoss {
    /// The file.
    pub file: PathBuf,
    /// The offset of the piece.
    pub offset: u64,
    /// Its length; zero if the file ends there and should not.
    pub bytes: u64,
    /// The damage, as a part of a sentence.
    pub damage: String,
    /// The first and the last revision of the changes in it, as far as known.
    pub revisions: Option<(u64, u64)>,
    /// The objects whose names it still contains. Their newest change may be lost; others may be
    /// too.
    pub objects: Vec<Key>,
}

/// Repairs a folder that no process has open.
pub(crate) fn repair(folder: &Path) -> Result<Repair, OpenError> {
    let _lock = Lock::take(folder)?;
    let disk = Folder::open(folder).map_err(|source| OpenError::Io {
        attempt: "open",
        path: folder.to_owned(),
        source,
    })?;
    repair_on(&disk)
}

pub(crate) fn repair_on(disk: &dyn Disk) -> Result<Repair, OpenError> {
    let names = disk.names().map_err(|source| io_error(disk, "list", "", source))?;
    let inventory = Inventory::of(names);
    let acknowledged_end = acknowledged::read(disk)
        .map_err(|source| io_error(disk, "read", ACKNOWLEDGED, source))?
        .sound();
    let mut salvage = Salvage::new(disk);
    // Journals before a valid snapshot are leftovers without new content. Before a damaged snapshot
    // they may contain what it has lost.
    let mut snapshots = inventory.snapshots.iter().rev();
    let base = snapshots.next().copied();
    let mut from = base.unwrap_or(FIRST_REVISION);
    if let Some(base) = base {
        salvage.snapshot(base)?;
        if !salvage.lost.is_empty() {
            from = 0;
            snapshots.try_for_each(|older| salvage.snapshot(*older))?;
        }
    }
    salvage.journals(&inventory, from, base.unwrap_or(FIRST_REVISION), acknowledged_end)?;
    let objects = salvage.objects.values().filter(|object| object.1.is_some()).count();
    if salvage.lost.is_empty() {
        return Ok(Repair { revision: salvage.newest, objects, ..Repair::default() });
    }
    let acknowledged = acknowledged_end.map_or(0, |end| end.revision);
    let revision = salvage.newest.max(acknowledged).max(salvage.highest_mentioned) + 1;
    let originals = format!("damaged-{revision:016x}");
    salvage
        .store(&inventory, revision, &originals)
        .map_err(|source| io_error(disk, "repair", "", source))?;
    let originals = Some(disk.path(&originals));
    Ok(Repair { revision, objects, lost: salvage.lost, originals })
}

/// The data that was readable so far.
struct Salvage<'a> {
    disk: &'a dyn Disk,
    /// The newest known state of each object: its revision and its record, none if it was deleted.
    objects: BTreeMap<Key, (u64, Option<SavedRecord>)>,
    /// The newest revision whose change was read.
    newest: u64,
    /// The newest revision that any record mentions.
    highest_mentioned: u64,
    lost: Vec<DataLoss>,
}

struct SavedRecord {
    terminating: bool,
    slot: u32,
    labels: Vec<u8>,
    value: Vec<u8>,
}

impl<'a> Salvage<'a> {
    fn new(disk: &'a dyn Disk) -> Self {
        let newest = FIRST_REVISION;
        Self { disk, objects: BTreeMap::new(), newest, highest_mentioned: newest, lost: Vec::new() }
    }

    fn snapshot(&mut self, revision: u64) -> Result<(), OpenError> {
        let name = snapshot(revision);
        self.highest_mentioned = self.highest_mentioned.max(revision);
        let mut ended = false;
        let losses_before = self.lost.len();
        let end = self.file(&name, FileKind::Snapshot, |salvage, frame| {
            ended |= frame.kind == FrameKind::End;
            if frame.kind == FrameKind::Objects {
                salvage.add_records(frame);
            }
        })?;
        if !ended && self.lost.len() == losses_before {
            self.report_loss(
                &name,
                end,
                0,
                "the file ends before its last frame",
                None,
                Vec::new(),
            );
        }
        self.newest = self.newest.max(revision);
        Ok(())
    }

    /// Reads the journals whose base is at least `from`. Journals from `base` on must have no gap
    /// between them.
    fn journals(
        &mut self,
        inventory: &Inventory,
        from: u64,
        base: u64,
        acknowledged_end: Option<AcknowledgedEnd>,
    ) -> Result<(), OpenError> {
        let mut next = base + 1;
        for journal_base in inventory.journals.iter().filter(|base| **base >= from) {
            let name = journal(*journal_base);
            self.highest_mentioned = self.highest_mentioned.max(*journal_base);
            let continues = *journal_base >= base;
            if continues && *journal_base + 1 > next {
                let damage = "the journal before it is missing, or ends too early";
                self.report_loss(&name, 0, 0, damage, Some((next, *journal_base)), Vec::new());
                next = *journal_base + 1;
            }
            let before = self.lost.len();
            self.file(&name, FileKind::Journal, |salvage, frame| {
                if continues && frame.first > next {
                    // If unreadable bytes explain the gap, they are reported already: add the
                    // revisions to that report.
                    let range = Some((next, frame.first - 1));
                    match salvage.lost[before..].last_mut() {
                        Some(lost) if lost.revisions.is_none() => lost.revisions = range,
                        _ => {
                            let damage = "the revisions do not follow each other";
                            salvage.report_loss(&name, 0, 0, damage, range, Vec::new());
                        }
                    }
                }
                salvage.add_records(frame);
                next = next.max(frame.first + u64::from(frame.count));
            })?;
        }
        if let Some(acknowledged_end) = acknowledged_end.filter(|end| end.revision >= next) {
            let range = Some((next, acknowledged_end.revision));
            match self.lost.last_mut() {
                Some(lost) if lost.revisions.is_none() => lost.revisions = range,
                _ => {
                    let name = journal(
                        inventory.journals.last().copied().unwrap_or(acknowledged_end.journal),
                    );
                    self.report_loss(
                        &name,
                        acknowledged_end.length,
                        0,
                        "the file ends too early",
                        range,
                        Vec::new(),
                    );
                }
            }
        }
        Ok(())
    }

    /// Passes every valid frame of a file to `on_frame`, reports the rest, and returns the file's
    /// length.
    fn file(
        &mut self,
        name: &str,
        kind: FileKind,
        mut on_frame: impl FnMut(&mut Self, &Frame<'_>),
    ) -> Result<u64, OpenError> {
        let disk = self.disk;
        let io = |source| io_error(disk, "read", name, source);
        let file = disk.open(name, false).map_err(io)?;
        let mut frames = Frames::new(&*file, 0).map_err(io)?;
        match read_file_header(&mut frames, kind).map_err(io)? {
            Header::Sound { .. } => {}
            Header::OtherVersion(found) => {
                let path = disk.path(name);
                return Err(OpenError::Format { path, found, known: VERSION });
            }
            Header::Malformed => {
                let bytes = frames.length().min(HEADER as u64);
                let damage = "the header of the file is damaged";
                self.report_loss(name, 0, bytes, damage, None, Vec::new());
            }
        }
        frames = Frames::new(&*file, HEADER as u64).map_err(io)?;
        loop {
            let offset = frames.offset();
            match frames.next() {
                Ok(Some(frame)) => on_frame(self, &frame),
                Ok(None) => return Ok(frames.length()),
                Err(FrameError::Io(source)) => return Err(io(source)),
                Err(FrameError::Malformed(malformed)) => {
                    frames.search().map_err(io)?;
                    let bytes = frames.offset() - offset;
                    let remains = frames.bytes(offset, bytes).map_err(io)?;
                    let keys = names_in(remains);
                    self.report_loss(name, offset, bytes, malformed.0, None, keys);
                }
            }
        }
    }

    fn add_records(&mut self, frame: &Frame<'_>) {
        for read in records(frame.payload).flatten() {
            let record = &read.record;
            let key = Key::new(record.resource, record.namespace, record.name);
            self.newest = self.newest.max(record.revision);
            self.highest_mentioned = self.highest_mentioned.max(record.revision);
            if self.objects.get(&key).is_some_and(|saved| saved.0 > record.revision) {
                continue;
            }
            let saved_record = (!read.deleted).then(|| SavedRecord {
                terminating: record.terminating,
                slot: record.slot,
                labels: record.labels.to_vec(),
                value: record.value.to_vec(),
            });
            self.objects.insert(key, (record.revision, saved_record));
        }
    }

    fn report_loss(
        &mut self,
        name: &str,
        offset: u64,
        bytes: u64,
        damage: &str,
        revisions: Option<(u64, u64)>,
        objects: Vec<Key>,
    ) {
        let (file, damage) = (self.disk.path(name), damage.to_owned());
        self.lost.push(DataLoss { file, offset, bytes, damage, revisions, objects });
    }

    /// Replaces the damaged files with the result. At every moment, the old files or the new snapshot
    /// are complete.
    fn store(&self, inventory: &Inventory, revision: u64, originals: &str) -> io::Result<()> {
        for name in inventory.data() {
            self.disk.keep(&name, originals)?;
        }
        let records = self.objects.iter().filter_map(|(key, (revision, saved_record))| {
            let saved_record = saved_record.as_ref()?;
            Some(Record {
                resource: &key.resource,
                namespace: &key.namespace,
                name: &key.name,
                revision: *revision,
                terminating: saved_record.terminating,
                slot: saved_record.slot,
                labels: &saved_record.labels,
                value: Cow::Borrowed(&saved_record.value),
            })
        });
        super::snapshot::write(self.disk, revision, records, &AtomicBool::new(false))?;
        let acknowledged_end = AcknowledgedEnd { journal: revision, length: 0, revision };
        drop(acknowledged::create(self.disk, acknowledged_end)?);
        super::snapshot::remove_older(self.disk, revision)
    }
}

/// The keys that damaged bytes still contain, if the bytes begin at a frame.
fn names_in(bytes: &[u8]) -> Vec<Key> {
    let payload = bytes.get(FRAME..).unwrap_or_default();
    let length = usize::try_from(u32_at(bytes, 4)).unwrap_or(usize::MAX);
    let payload = payload.get(..length).unwrap_or(payload);
    let sound = records(payload).flatten().map(|read| read.record);
    sound
        .map(|record| Key::new(record.resource, record.namespace, Arc::from(record.name)))
        .collect()
}
