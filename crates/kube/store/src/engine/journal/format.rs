//! The on-disk format, version 1. All numbers are little-endian.
//!
//! ```text
//! file      header, then frames
//! header    magic 8 · version u32 · 0 u32 · revision u64 · 0 u32 · crc u32 of what precedes
//! frame     magic 4 · length u32 · first u64 · count u32 · kind u32 · crc u32 of the payload
//!           · crc u32 of what precedes · payload
//! payload   `count` records; of the end frame: how many objects the snapshot has, u64
//! record    op u8 · flags u8 · 0 u16 · lengths of resource, namespace, name, labels, value u32
//!           · slot u32 · revision u64 · the five parts
//! ```
//!
//! A frame's magic begins with a byte that no UTF-8 text contains, so no stored object looks like a
//! frame to a repair that searches for the next one.

use crate::Record;
use crate::draft::digits;
use std::borrow::Cow;
use std::io;

use super::disk::DiskFile;

/// The version that this code writes, and the only one it reads.
pub(crate) const VERSION: u32 = 1;
pub(crate) const HEADER: usize = 32;
pub(crate) const FRAME: usize = 32;
const RECORD: usize = 36;
const FRAME_MAGIC: [u8; 4] = [0xff, b'M', b'f', 0xfe];

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Batches of changes after a revision.
    Journal,
    /// All live objects at a revision.
    Snapshot,
}

impl FileKind {
    const fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Journal => b"mstyjrnl",
            Self::Snapshot => b"mstysnap",
        }
    }
}

/// The header of a file; `revision` is the state that a journal continues or a snapshot contains.
pub(crate) fn header(kind: FileKind, revision: u64) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(kind.magic());
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&revision.to_le_bytes());
    seal(&mut bytes);
    bytes
}

/// The header of a file as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    Sound { revision: u64 },
    OtherVersion(u32),
    Malformed,
}

/// Parses the header of a file.
pub(crate) fn read_header(kind: FileKind, bytes: &[u8]) -> Header {
    let Some(bytes) = bytes.first_chunk::<HEADER>() else { return Header::Malformed };
    if bytes[..8] != *kind.magic() || !is_sealed(bytes) {
        return Header::Malformed;
    }
    match u32_at(bytes, 8) {
        VERSION => Header::Sound { revision: u64_at(bytes, 16) },
        other => Header::OtherVersion(other),
    }
}

/// Writes the checksum of all other bytes into the last four.
pub(crate) fn seal(bytes: &mut [u8]) {
    if let Some((content, seal)) = bytes.split_last_chunk_mut::<4>() {
        *seal = crc32fast::hash(content).to_le_bytes();
    }
}

/// Whether the last four bytes are the checksum of the others.
pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    bytes
        .split_last_chunk::<4>()
        .is_some_and(|(content, seal)| *seal == crc32fast::hash(content).to_le_bytes())
}

/// The number at an offset; zero beyond the end, which the fixed sizes of the callers exclude.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// As [`u32_at`].
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The content of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Changes with consecutive revisions that became durable together.
    Batch = 1,
    /// Live objects of a snapshot.
    Objects = 2,
    /// The end of a snapshot.
    End = 3,
}

/// Starts a frame in an empty buffer; the payload is to be appended, then [`finish_frame`] called.
pub(crate) fn begin_frame(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.resize(FRAME, 0);
}

/// Completes the frame that fills a buffer. An error if it is too long for its length field.
pub(crate) fn finish_frame(
    buffer: &mut [u8],
    kind: FrameKind,
    first: u64,
    count: u32,
) -> Result<(), io::Error> {
    let (head, payload) = buffer.split_at_mut(FRAME);
    let length = u32::try_from(payload.len())
        .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, "a batch exceeds 4 GiB"))?;
    head[..4].copy_from_slice(&FRAME_MAGIC);
    head[4..8].copy_from_slice(&length.to_le_bytes());
    head[8..16].copy_from_slice(&first.to_le_bytes());
    head[16..20].copy_from_slice(&count.to_le_bytes());
    head[20..24].copy_from_slice(&(kind as u32).to_le_bytes());
    head[24..28].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    seal(head);
    Ok(())
}

/// Appends the record of a live object.
pub(crate) fn push_object(buffer: &mut Vec<u8>, record: &Record<'_>) {
    push(buffer, 1, record);
}

/// Appends the record of a deletion.
pub(crate) fn push_deletion(buffer: &mut Vec<u8>, record: &Record<'_>) {
    let &Record { resource, namespace, name, revision, .. } = record;
    let (labels, value) = (&[][..], Cow::default());
    let gone =
        Record { resource, namespace, name, revision, terminating: false, slot: 0, labels, value };
    push(buffer, 2, &gone);
}

fn push(buffer: &mut Vec<u8>, op: u8, record: &Record<'_>) {
    buffer.extend_from_slice(&[op, u8::from(record.terminating), 0, 0]);
    for part in parts(record) {
        // A part that does not fit makes the frame too long as well, and [`finish_frame`] refuses
        // that.
        buffer.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
    }
    buffer.extend_from_slice(&record.slot.to_le_bytes());
    buffer.extend_from_slice(&record.revision.to_le_bytes());
    for part in parts(record) {
        buffer.extend_from_slice(part);
    }
}

fn parts<'a>(record: &'a Record<'_>) -> [&'a [u8]; 5] {
    [
        record.resource.as_bytes(),
        record.namespace.as_bytes(),
        record.name.as_bytes(),
        record.labels,
        &record.value,
    ]
}

/// A decoded record: a live object, or a deletion with an empty value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DecodedRecord<'a> {
    pub(crate) deleted: bool,
    pub(crate) record: Record<'a>,
}

/// The records of a payload; the last one is an error if the remaining bytes are not a record.
pub(crate) fn records(
    mut payload: &[u8],
) -> impl Iterator<Item = Result<DecodedRecord<'_>, Malformed>> {
    std::iter::from_fn(move || {
        if payload.is_empty() {
            return None;
        }
        let read = read_record(&mut payload);
        if read.is_none() {
            payload = &[];
        }
        Some(read.ok_or(Malformed("a record does not follow the format")))
    })
}

fn read_record<'a>(payload: &mut &'a [u8]) -> Option<DecodedRecord<'a>> {
    let (head, mut rest) = payload.split_first_chunk::<RECORD>()?;
    let mut part = |at: usize| -> Option<&'a [u8]> {
        let (part, after) = rest.split_at_checked(usize::try_from(u32_at(head, at)).ok()?)?;
        rest = after;
        Some(part)
    };
    let (resource, namespace, name) = (part(4)?, part(8)?, part(12)?);
    let (labels, value) = (part(16)?, part(20)?);
    *payload = rest;
    let record = Record {
        resource: std::str::from_utf8(resource).ok()?,
        namespace: std::str::from_utf8(namespace).ok()?,
        name: std::str::from_utf8(name).ok()?,
        revision: u64_at(head, 28),
        terminating: head[1] & 1 == 1,
        slot: u32_at(head, 24),
        labels,
        value: Cow::Borrowed(value),
    };
    let deleted = match head[0] {
        1 => false,
        2 => true,
        _ => return None,
    };
    (deleted || shows_its_revision(&record)).then_some(DecodedRecord { deleted, record })
}

/// Whether the slot contains the digits of the revision: code that splices the text relies on it.
fn shows_its_revision(record: &Record<'_>) -> bool {
    let slot = record.slot as usize;
    let text = slot
        .checked_add(digits(record.revision))
        .and_then(|end| record.value.get(slot..end))
        .and_then(|text| std::str::from_utf8(text).ok());
    text.and_then(|text| text.parse().ok()) == Some(record.revision)
}

/// A description of malformed bytes, as a part of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Why the next frame cannot be read.
#[derive(Debug)]
pub(crate) enum FrameError {
    Malformed(Malformed),
    Io(io::Error),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A frame with valid checksums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: FrameKind,
    /// The revision of the first record of a batch; the snapshot's revision in a snapshot.
    pub(crate) first: u64,
    pub(crate) count: u32,
    pub(crate) payload: &'a [u8],
}

/// A reader of the frames of a file in order, through one window of its bytes.
pub(crate) struct Frames<'a> {
    file: &'a dyn DiskFile,
    length: u64,
    /// The offset of the next frame.
    offset: u64,
    window: Vec<u8>,
    window_at: u64,
}

/// The least number of bytes that one read fetches.
const WINDOW: u64 = 1 << 20;

impl<'a> Frames<'a> {
    /// The frames from an offset on.
    pub(crate) fn new(file: &'a dyn DiskFile, offset: u64) -> io::Result<Self> {
        let length = file.length()?;
        Ok(Self { file, length, offset, window: Vec::new(), window_at: 0 })
    }

    /// The offset of the next frame: the end of the last one that was read.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// The next frame; none at the end of the file. After an error the offset has not moved.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let start = self.offset;
        if start >= self.length {
            return Ok(None);
        }
        let remaining = self.length - start;
        if remaining < FRAME as u64 {
            return Err(FrameError::Malformed(Malformed("the file ends inside a frame")));
        }
        let head = self.bytes(start, FRAME as u64)?;
        if head[..4] != FRAME_MAGIC || !is_sealed(head) {
            return Err(FrameError::Malformed(Malformed("no frame starts here")));
        }
        let payload_length = u64::from(u32_at(head, 4));
        let (first, count) = (u64_at(head, 8), u32_at(head, 16));
        let (kind, checksum) = (u32_at(head, 20), u32_at(head, 24));
        if remaining - (FRAME as u64) < payload_length {
            return Err(FrameError::Malformed(Malformed("the file ends inside a frame")));
        }
        let kind = match kind {
            1 => FrameKind::Batch,
            2 => FrameKind::Objects,
            3 => FrameKind::End,
            _ => return Err(FrameError::Malformed(Malformed("a frame has an unknown kind"))),
        };
        let end = start + FRAME as u64 + payload_length;
        let bytes = self.bytes(start, FRAME as u64 + payload_length)?;
        if crc32fast::hash(&bytes[FRAME..]) != checksum {
            return Err(FrameError::Malformed(Malformed("a checksum does not match")));
        }
        self.offset = end;
        let payload = self.bytes(start + FRAME as u64, payload_length)?;
        Ok(Some(Frame { kind, first, count, payload }))
    }

    /// Moves to the next offset where a valid frame starts, or to the end of the file. Returns
    /// whether there is one.
    pub(crate) fn search(&mut self) -> io::Result<bool> {
        let mut at = self.offset + 1;
        while at + FRAME as u64 <= self.length {
            let span = WINDOW.min(self.length - at);
            let found = self
                .bytes(at, span)?
                .windows(FRAME_MAGIC.len())
                .position(|bytes| bytes == FRAME_MAGIC);
            match found {
                Some(found) => {
                    self.offset = at + found as u64;
                    match self.next() {
                        Ok(Some(_)) => {
                            self.offset = at + found as u64;
                            return Ok(true);
                        }
                        Err(FrameError::Io(error)) => return Err(error),
                        Ok(None) | Err(FrameError::Malformed(_)) => at += found as u64 + 1,
                    }
                }
                // The last bytes may begin a magic that the next window completes.
                None => at += span - (FRAME_MAGIC.len() as u64 - 1).min(span - 1),
            }
        }
        self.offset = self.length;
        Ok(false)
    }

    /// Bytes of the file, which must exist.
    pub(crate) fn bytes(&mut self, offset: u64, length: u64) -> io::Result<&[u8]> {
        let inside = offset >= self.window_at
            && offset + length <= self.window_at + self.window.len() as u64;
        if !inside {
            let span = length.max(WINDOW.min(self.length.saturating_sub(offset)));
            self.window.resize(usize::try_from(span).map_err(io::Error::other)?, 0);
            self.window_at = offset;
            if let Err(error) = self.file.read_at(&mut self.window, offset) {
                self.window.clear();
                return Err(error);
            }
        }
        let start = usize::try_from(offset - self.window_at).map_err(io::Error::other)?;
        let end = start + usize::try_from(length).map_err(io::Error::other)?;
        self.window.get(start..end).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}
