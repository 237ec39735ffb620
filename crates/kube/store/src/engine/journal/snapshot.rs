//! Snapshots: all live objects in one file, so that older journals can be removed.

use super::disk::{Disk, DiskFile};
use super::format::{FRAME, FileKind, FrameKind, begin_frame, finish_frame, header, push_object};
use super::names::{Inventory, snapshot, unfinished};
use crate::Record;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// The bytes of objects per checksum: the most that one flipped bit costs in a repair.
const FRAME_BYTES: usize = 64 << 10;

/// The bytes between syncs, so that the last sync does not delay the small ones of the journal.
const SYNC_BYTES: u64 = 4 << 20;

/// Writes a snapshot, makes it durable under its final name and returns its size in bytes.
///
/// Stops with [`io::ErrorKind::Interrupted`] when `cancel` is set.
pub(crate) fn write<'a>(
    disk: &dyn Disk,
    revision: u64,
    records: impl Iterator<Item = Record<'a>>,
    cancel: &AtomicBool,
) -> io::Result<u64> {
    let name = snapshot(revision);
    let draft = unfinished(&name);
    let written = write_draft(disk, &draft, revision, records, cancel).and_then(|bytes| {
        disk.rename(&draft, &name)?;
        disk.sync()?;
        Ok(bytes)
    });
    if written.is_err() {
        // The draft may not exist; the next start removes leftovers.
        let _ = disk.remove(&draft);
    }
    written
}

fn write_draft<'a>(
    disk: &dyn Disk,
    draft: &str,
    revision: u64,
    records: impl Iterator<Item = Record<'a>>,
    cancel: &AtomicBool,
) -> io::Result<u64> {
    let file = disk.open(draft, true)?;
    let mut file_out = SnapshotFile { file, offset: 0, synced: 0 };
    file_out.file.truncate(0)?;
    file_out.write(&header(FileKind::Snapshot, revision))?;
    let mut buffer = Vec::with_capacity(FRAME_BYTES + (16 << 10));
    let mut total = 0_u64;
    let mut count = 0;
    begin_frame(&mut buffer);
    for record in records {
        push_object(&mut buffer, &record);
        count += 1;
        total += 1;
        if buffer.len() >= FRAME_BYTES {
            if cancel.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            finish_frame(&mut buffer, FrameKind::Objects, revision, count)?;
            file_out.write(&buffer)?;
            begin_frame(&mut buffer);
            count = 0;
        }
    }
    if buffer.len() > FRAME {
        finish_frame(&mut buffer, FrameKind::Objects, revision, count)?;
        file_out.write(&buffer)?;
        begin_frame(&mut buffer);
    }
    buffer.extend_from_slice(&total.to_le_bytes());
    finish_frame(&mut buffer, FrameKind::End, revision, 1)?;
    file_out.write(&buffer)?;
    file_out.file.sync()?;
    Ok(file_out.offset)
}

struct SnapshotFile {
    file: Box<dyn DiskFile>,
    offset: u64,
    synced: u64,
}

impl SnapshotFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        if self.offset - self.synced >= SYNC_BYTES {
            self.file.sync()?;
            self.synced = self.offset;
        }
        Ok(())
    }
}

/// Removes the files that a durable snapshot has made obsolete.
pub(crate) fn remove_older(disk: &dyn Disk, revision: u64) -> io::Result<()> {
    let inventory = Inventory::of(disk.names()?);
    let mut removed = false;
    for name in inventory.obsolete(revision) {
        disk.remove(&name)?;
        removed = true;
    }
    if removed { disk.sync() } else { Ok(()) }
}
