//! The acknowledgement file: up to where writes were acknowledged.
//!
//! A journal's last bytes may be the torn remains of a write that was never acknowledged, or damage
//! to one that was. The bytes alone cannot tell the two apart; this record does. The engine writes
//! it after each batch became durable and before the batch is acknowledged, without a sync of its
//! own: that survives the death of the process. After a power cut the record may be too old. No
//! batch starts before the one before it is durable, so damage is still found anywhere but in the
//! very last batch.

use super::disk::{Disk, DiskFile};
use super::format::{is_sealed, seal, u64_at};
use super::names::ACKNOWLEDGED;
use std::io;

const MAGIC: &[u8; 8] = b"mstyackn";
const LENGTH: usize = 40;

/// The end of the acknowledged writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcknowledgedEnd {
    /// The base of the newest journal.
    pub(crate) journal: u64,
    /// The length of that journal in bytes.
    pub(crate) length: u64,
    /// The newest acknowledged revision.
    pub(crate) revision: u64,
}

/// The content of the acknowledgement file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Absent,
    Damaged,
    Sound(AcknowledgedEnd),
}

impl Record {
    pub(crate) const fn sound(self) -> Option<AcknowledgedEnd> {
        match self {
            Self::Sound(acknowledged) => Some(acknowledged),
            Self::Absent | Self::Damaged => None,
        }
    }
}

pub(crate) fn read(disk: &dyn Disk) -> io::Result<Record> {
    let file = match disk.open(ACKNOWLEDGED, false) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Record::Absent),
        Err(error) => return Err(error),
    };
    let mut bytes = [0; LENGTH];
    if file.length()? != LENGTH as u64 {
        return Ok(Record::Damaged);
    }
    file.read_at(&mut bytes, 0)?;
    if bytes[..8] != *MAGIC || !is_sealed(&bytes) {
        return Ok(Record::Damaged);
    }
    Ok(Record::Sound(AcknowledgedEnd {
        journal: u64_at(&bytes, 8),
        length: u64_at(&bytes, 16),
        revision: u64_at(&bytes, 24),
    }))
}

/// Creates the acknowledgement file with its content and makes it durable.
pub(crate) fn create(
    disk: &dyn Disk,
    acknowledged: AcknowledgedEnd,
) -> io::Result<Box<dyn DiskFile>> {
    let mut file = disk.open(ACKNOWLEDGED, true)?;
    write(&mut *file, acknowledged)?;
    if file.length()? > LENGTH as u64 {
        file.truncate(LENGTH as u64)?;
    }
    file.sync()?;
    Ok(file)
}

/// Replaces the content. A single small write: the kernel does it completely or not at all.
pub(crate) fn write(file: &mut dyn DiskFile, acknowledged: AcknowledgedEnd) -> io::Result<()> {
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..16].copy_from_slice(&acknowledged.journal.to_le_bytes());
    bytes[16..24].copy_from_slice(&acknowledged.length.to_le_bytes());
    bytes[24..32].copy_from_slice(&acknowledged.revision.to_le_bytes());
    seal(&mut bytes);
    file.write_at(&bytes, 0)
}
