//! Content of documents: in memory or in a file, with the compressed blocks that were made of it.

pub(crate) use super::encoding::Segment;

use super::encoding::{Checksum, Coding};
use bytes::Bytes;
use mainstay_catalog::{Blob, BlobError};
use rustix::buffer::spare_capacity;
use rustix::io::ReadWriteFlags;
use std::{
    fs::File,
    io,
    ops::Range,
    os::unix::fs::FileExt as _,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Why content cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The stored form of a blob is damaged.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The file cannot be read.
    #[error("read the stored documents of a catalog: {0}")]
    File(#[from] io::Error),
}

/// The content of documents.
#[derive(Debug)]
pub(crate) struct Content {
    storage: Storage,
    gzip: CompressedBlocks,
    zstd: CompressedBlocks,
}

/// Where the documents are.
#[derive(Debug)]
enum Storage {
    Memory(Box<[Blob]>),
    File {
        lines: File,
        /// Compressed blocks, one after the other.
        compressed: File,
        /// Where the next compressed block is written.
        end: AtomicU64,
    },
}

/// The compressed blocks of one coding.
#[derive(Debug)]
struct CompressedBlocks {
    blocks: Box<[OnceLock<StoredBlock>]>,
    /// One block is compressed at a time, so that many clients do not compress the same one.
    compressing: Mutex<()>,
}

#[derive(Debug)]
enum StoredBlock {
    Memory(Segment),
    File { offset: u64, length: usize, checksum: Checksum },
}

impl Content {
    pub(super) fn in_memory(blobs: Box<[Blob]>, blocks: usize) -> Self {
        Self::new(Storage::Memory(blobs), blocks)
    }

    pub(super) fn in_files(lines: File, compressed: File, blocks: usize) -> Self {
        Self::new(Storage::File { lines, compressed, end: AtomicU64::new(0) }, blocks)
    }

    fn new(storage: Storage, blocks: usize) -> Self {
        let kept = || CompressedBlocks {
            blocks: std::iter::repeat_with(OnceLock::new).take(blocks).collect(),
            compressing: Mutex::default(),
        };
        Self { storage, gzip: kept(), zstd: kept() }
    }

    pub(super) const fn is_in_file(&self) -> bool {
        matches!(self.storage, Storage::File { .. })
    }

    /// Appends a range of the bytes of all lines. `starts` has the offset of each line.
    pub(super) fn read(
        &self,
        starts: &[u64],
        span: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), ContentError> {
        let blobs = match &self.storage {
            Storage::Memory(blobs) => blobs,
            Storage::File { lines, .. } => {
                return Ok(read_file(lines, span.start, offset(span.end - span.start), out)?);
            }
        };
        let first = starts.partition_point(|&start| start <= span.start).saturating_sub(1);
        for (blob, &start) in blobs[first..].iter().zip(&starts[first..]) {
            if start >= span.end {
                break;
            }
            let mut line = blob.json()?;
            line.push(b'\n');
            let from = offset(span.start.saturating_sub(start));
            let to = offset(span.end - start).min(line.len());
            out.extend_from_slice(&line[from..to]);
        }
        Ok(())
    }

    /// Whether the system has a range of the bytes of all lines in memory, so that reading it does not
    /// wait for a disk.
    pub(super) fn is_cached(&self, span: &Range<u64>) -> bool {
        match &self.storage {
            Storage::Memory(_) => true,
            Storage::File { lines, .. } => is_cached(lines, span),
        }
    }

    /// The same for a compressed block. One that is not compressed yet is not in memory.
    pub(super) fn is_block_cached(&self, block: usize, coding: Coding) -> bool {
        match (self.compressed(coding).blocks[block].get(), &self.storage) {
            (Some(StoredBlock::Memory(_)), _) => true,
            (Some(StoredBlock::File { offset, length, .. }), Storage::File { compressed, .. }) => {
                is_cached(compressed, &(*offset..*offset + *length as u64))
            }
            _ => false,
        }
    }

    /// Compressed blocks that are in the file, in one piece.
    pub(super) fn stored_blocks(
        &self,
        blocks: Range<usize>,
        coding: Coding,
    ) -> Result<Segment, ContentError> {
        let absent = || io::Error::other("a compressed block is not in the file");
        let Storage::File { compressed: file, .. } = &self.storage else {
            return Err(absent().into());
        };
        let mut spans: Vec<(u64, usize)> = Vec::new();
        let mut all = Checksum::default();
        for block in blocks {
            let Some(StoredBlock::File { offset, length, checksum }) =
                self.compressed(coding).blocks[block].get()
            else {
                return Err(absent().into());
            };
            all.append(*checksum);
            match spans.last_mut() {
                // They were written one after the other.
                Some((start, end)) if *start + *end as u64 == *offset => *end += length,
                _ => spans.push((*offset, *length)),
            }
        }
        let mut bytes = Vec::with_capacity(spans.iter().map(|(_, length)| length).sum());
        for (offset, length) in spans {
            read_file(file, offset, length, &mut bytes)?;
        }
        Ok(Segment { bytes: bytes.into(), checksum: all })
    }

    /// The length of a compressed block, if it is in the file.
    pub(super) fn length_in_file(&self, block: usize, coding: Coding) -> Option<usize> {
        match self.compressed(coding).blocks[block].get()? {
            StoredBlock::Memory(_) => None,
            StoredBlock::File { length, .. } => Some(*length),
        }
    }

    pub(super) fn block(
        &self,
        block: usize,
        coding: Coding,
        starts: &[u64],
        span: Range<u64>,
    ) -> Result<Segment, ContentError> {
        let kept = self.compressed(coding);
        if let Some(block) = kept.blocks[block].get() {
            return self.load(block);
        }
        // A panic of another thread leaves nothing half done.
        let _compressing = kept.compressing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = kept.blocks[block].get() {
            return self.load(block);
        }
        let mut plain = Vec::new();
        self.read(starts, span, &mut plain)?;
        let segment = coding.segment(&plain);
        if let Some(stored) = self.keep(&segment) {
            let _ = kept.blocks[block].set(stored);
        }
        Ok(segment)
    }

    const fn compressed(&self, coding: Coding) -> &CompressedBlocks {
        match coding {
            Coding::Gzip => &self.gzip,
            Coding::Zstd => &self.zstd,
        }
    }

    fn load(&self, block: &StoredBlock) -> Result<Segment, ContentError> {
        match (block, &self.storage) {
            (StoredBlock::File { offset, length, checksum }, Storage::File { compressed, .. }) => {
                let mut bytes = Vec::new();
                read_file(compressed, *offset, *length, &mut bytes)?;
                Ok(Segment { bytes: bytes.into(), checksum: *checksum })
            }
            (StoredBlock::Memory(segment), _) => Ok(segment.clone()),
            // A block is kept where the documents are.
            (StoredBlock::File { .. }, Storage::Memory(_)) => {
                Err(io::Error::other("no file").into())
            }
        }
    }

    /// Keeps a block; none if the disk is full, so that the next request compresses it again.
    fn keep(&self, segment: &Segment) -> Option<StoredBlock> {
        let Storage::File { compressed, end, .. } = &self.storage else {
            // A copy has no unused capacity.
            let bytes = Bytes::copy_from_slice(&segment.bytes);
            return Some(StoredBlock::Memory(Segment { bytes, ..*segment }));
        };
        let length = segment.bytes.len();
        let offset = end.fetch_add(length as u64, Ordering::Relaxed);
        match compressed.write_all_at(&segment.bytes, offset) {
            Ok(()) => Some(StoredBlock::File { offset, length, checksum: segment.checksum }),
            Err(error) => {
                tracing::debug!(%error, "a compressed part of a catalog is not kept");
                None
            }
        }
    }
}

/// Whether the first and the last byte of a span are in the page cache of the system, which reads ahead:
/// then what is between them is there, too, but for rare cases, in which a read waits.
fn is_cached(file: &File, span: &Range<u64>) -> bool {
    let is_cached = |offset| {
        let mut byte = [0];
        let mut buffers = [io::IoSliceMut::new(&mut byte)];
        // File systems that cannot tell return an error.
        rustix::io::preadv2(file, &mut buffers, offset, ReadWriteFlags::NOWAIT) == Ok(1)
    };
    span.is_empty() || (is_cached(span.start) && is_cached(span.end - 1))
}

/// Appends `length` bytes of a file. The space for them is not filled with zeros before.
fn read_file(file: &File, mut start: u64, length: usize, out: &mut Vec<u8>) -> io::Result<()> {
    let end = out.len() + length;
    out.reserve_exact(length);
    while out.len() < end {
        let count = match rustix::io::pread(file, spare_capacity(out), start) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        start += count as u64;
    }
    // There may be more space than was asked for.
    out.truncate(end);
    Ok(())
}

/// An offset in memory. What is longer than the address space cannot be in memory.
fn offset(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
