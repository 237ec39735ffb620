//! Compressed copies of the documents, for clients that accept them.

use flate2::Compression;
use flate2::write::GzEncoder;
use mainstay_files::{AtomicFile, Durability};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// A content coding of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentEncoding {
    /// `gzip`.
    Gzip,
}

impl ContentEncoding {
    fn file(self) -> &'static str {
        match self {
            Self::Gzip => "documents.jsonl.gz",
        }
    }
}

/// The compressed copy, if there is one.
pub(super) fn open(folder: &Path, encoding: ContentEncoding) -> Option<(File, u64)> {
    let file = File::open(folder.join(encoding.file())).ok()?;
    let size = file.metadata().ok()?.len();
    Some((file, size))
}

/// The compressed copy; created if there is none. The caller makes sure that one call at a time creates.
pub(super) fn open_or_create(
    folder: &Path,
    documents: &File,
    size: u64,
    encoding: ContentEncoding,
) -> io::Result<(File, u64)> {
    if let Some(found) = open(folder, encoding) {
        return Ok(found);
    }
    let target = folder.join(encoding.file());
    let mut copy = AtomicFile::create(&target)?;
    compress(&mut copy, documents, size, encoding)?;
    copy.publish(Durability::Process)?;
    open(folder, encoding).ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn compress(
    target: &mut impl Write,
    documents: &File,
    size: u64,
    encoding: ContentEncoding,
) -> io::Result<()> {
    let mut source = Positioned { file: documents, offset: 0, end: size };
    let ContentEncoding::Gzip = encoding;
    let mut encoder = GzEncoder::new(io::BufWriter::new(target), Compression::default());
    io::copy(&mut source, &mut encoder)?;
    encoder.finish()?.flush()
}

/// Reads a file from its start, without its shared offset.
struct Positioned<'f> {
    file: &'f File,
    offset: u64,
    end: u64,
}

impl Read for Positioned<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.offset >= self.end {
            return Ok(0);
        }
        let read = self.file.read_at(buffer, self.offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.offset += read as u64;
        Ok(read)
    }
}
