//! Catalog documents as HTTP serves them: a table of their names, and their JSON.
//!
//! ```text
//! blobs ─► ServedDocuments ─┬─ names: which documents a query selects
//!                           ├─ content: JSON, in memory (compressed blobs) or in a file
//!                           └─ blocks: gzip and zstd of neighbouring documents, made on first use and kept
//! ```
//!
//! Documents need not make a valid catalog: HTTP serves them one by one. So an index is not
//! necessary, and a process that serves HTTP only keeps nothing of a catalog in memory but names
//! ([`crate::stored`]).
//!
//! Compression costs seconds of processor time for a large catalog, so no request repeats it.
//! Neighbouring documents are compressed as a *block*. Blocks are independent, and their
//! concatenation is the compressed form of all their documents; see [`encoding`].

mod content;
pub(crate) mod encoding;
mod select;

pub use content::ContentError;
pub(crate) use content::{Content, Segment};
pub(crate) use select::Selection;

use encoding::Coding;
use mainstay_catalog::{Blob, BlobError};
use mainstay_gocompat::json::is_same_field;
use select::Order;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap, fmt, fmt::Write as _, fs::File, ops::Range, sync::Arc, time::SystemTime,
};

/// A document of this length or more is a block of its own, in bytes.
const LONG_DOCUMENT: u64 = 16 << 10;
/// Neighbours with one schema and package are blocks of their own from this length on, in bytes.
const LONG_RUN: u64 = 8 << 10;
/// Short documents share a block of at most this length, in bytes.
const BLOCK: u64 = 64 << 10;

/// The documents of a catalog, in order. Immutable; shared by all readers.
pub struct ServedDocuments {
    names: Box<[DocumentName]>,
    /// The offset of each line in the concatenation of all, and the length of that.
    starts: Box<[u64]>,
    order: Order,
    digest: String,
    modified: SystemTime,
    content: Content,
    /// The first document of each block, and the number of documents.
    blocks: Box<[usize]>,
}

/// The fields by which a document is selected. An absent one is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DocumentName {
    pub(crate) schema: Arc<str>,
    pub(crate) package: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl ServedDocuments {
    /// Documents that stay in memory, as the blobs that they are. What was compressed for a client
    /// stays in memory, too: about a third of the length of the documents, for each coding.
    ///
    /// `modified` is the `Last-Modified` time of HTTP.
    ///
    /// # Errors
    /// The content of a blob is damaged, or was not kept.
    pub fn in_memory(
        blobs: impl IntoIterator<Item = Blob>,
        modified: SystemTime,
    ) -> Result<Self, BlobError> {
        let blobs: Box<[Blob]> = blobs.into_iter().collect();
        let table = Table::of(&blobs)?;
        Ok(table.documents(modified, |blocks| Content::in_memory(blobs, blocks)))
    }

    /// Documents whose lines are in a file. What is compressed for clients is written to another one.
    pub(crate) fn of_files(
        names: Vec<DocumentName>,
        starts: Vec<u64>,
        digest: String,
        modified: SystemTime,
        lines: File,
        compressed: File,
    ) -> Self {
        let table = Table { names, starts, digest };
        table.documents(modified, |blocks| Content::in_files(lines, compressed, blocks))
    }

    /// The lines of the documents with that schema, package and name; an empty one matches any. Blocks on
    /// files.
    ///
    /// # Errors
    /// If the content cannot be read.
    pub fn lines(&self, wanted: [&str; 3]) -> Result<Vec<u8>, ContentError> {
        let mut lines = Vec::new();
        match self.select(wanted) {
            Selection::All => self.read(0..self.size(), &mut lines)?,
            Selection::These(chosen) => {
                for &at in &chosen {
                    self.read(self.span_of(at as usize..at as usize + 1), &mut lines)?;
                }
            }
        }
        Ok(lines)
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// A SHA-256 of the documents in order, in hex: equal digests mean equal bytes.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The `Last-Modified` time.
    pub fn modified(&self) -> SystemTime {
        self.modified
    }

    /// The length of all lines, in bytes.
    pub fn size(&self) -> u64 {
        self.starts.last().copied().unwrap_or_default()
    }

    /// The documents with that schema, package and name; an empty one matches any.
    pub(crate) fn select(&self, wanted: [&str; 3]) -> Selection {
        self.order.select(&self.names, wanted)
    }

    /// The length of the selected lines, in bytes.
    pub(crate) fn size_of(&self, selection: &Selection) -> u64 {
        match selection {
            Selection::All => self.size(),
            Selection::These(chosen) => {
                let span = |&at: &u32| self.span_of(at as usize..at as usize + 1);
                chosen.iter().map(span).map(|span| span.end - span.start).sum()
            }
        }
    }

    /// The bytes of consecutive documents.
    pub(crate) fn span_of(&self, documents: Range<usize>) -> Range<u64> {
        self.starts[documents.start]..self.starts[documents.end]
    }

    /// The block that begins with a document, and the document after it.
    pub(crate) fn block_from(&self, document: usize) -> Option<(usize, usize)> {
        let block = self.blocks.binary_search(&document).ok()?;
        Some((block, *self.blocks.get(block + 1)?))
    }

    /// How far from `start` bytes should be read at once: documents in memory are decompressed as a
    /// whole.
    pub(crate) fn chunk_end(&self, start: u64, length: u64) -> u64 {
        let end = start.saturating_add(length).min(self.size());
        if self.content.is_in_file() {
            return end;
        }
        let next = self.starts.partition_point(|&begin| begin < end);
        self.starts.get(next).copied().unwrap_or(end)
    }

    /// Appends a range of the bytes of all lines.
    pub(crate) fn read(&self, span: Range<u64>, out: &mut Vec<u8>) -> Result<(), ContentError> {
        self.content.read(&self.starts, span, out)
    }

    /// Whether compressed blocks are kept, and reading them does not wait for a disk.
    pub(crate) fn are_ready(&self, blocks: &Range<usize>, coding: Coding) -> bool {
        blocks.clone().all(|block| self.content.is_block_cached(block, coding))
    }

    /// Whether compressed blocks are shorter than `length` together and should be read with the next
    /// one: all of them, and the next one, are in a file.
    pub(crate) fn joins(&self, blocks: &Range<usize>, coding: Coding, length: u64) -> bool {
        let stored = |block| self.content.length_in_file(block, coding);
        let together = blocks.clone().map(stored).sum::<Option<usize>>();
        let has_next = blocks.end + 1 < self.blocks.len() && stored(blocks.end).is_some();
        has_next && together.is_some_and(|together| (together as u64) < length)
    }

    /// A compressed block, which the first call compresses; or several, as [`ServedDocuments::joins`]
    /// allows.
    pub(crate) fn blocks(
        &self,
        blocks: Range<usize>,
        coding: Coding,
    ) -> Result<Segment, ContentError> {
        if blocks.len() > 1 {
            return self.content.stored_blocks(blocks, coding);
        }
        let block = blocks.start;
        let documents = self.blocks[block]..self.blocks[block + 1];
        self.content.block(block, coding, &self.starts, self.span_of(documents))
    }

    /// Whether reading these spans does not wait for a disk.
    pub(crate) fn are_cached(&self, spans: &[Range<u64>]) -> bool {
        spans.iter().all(|span| self.content.is_cached(span))
    }

    /// Whether the documents are in memory, where reading decompresses them.
    pub(crate) fn is_in_memory(&self) -> bool {
        !self.content.is_in_file()
    }
}

impl fmt::Debug for ServedDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, size) = (self.len(), self.size());
        write!(f, "ServedDocuments({count} with {size} bytes from {:?})", self.modified)
    }
}

/// What is known of documents without their content.
struct Table {
    names: Vec<DocumentName>,
    starts: Vec<u64>,
    digest: String,
}

impl Table {
    fn of(blobs: &[Blob]) -> Result<Self, BlobError> {
        let (mut names, mut starts) = (Vec::with_capacity(blobs.len()), vec![0]);
        let mut hash = Sha256::new();
        let mut end = 0;
        for blob in blobs {
            names.push(name_of(blob)?);
            end += blob.json_len() as u64 + 1;
            starts.push(end);
            hash.update(hash_of(blob)?);
        }
        Ok(Self { names, starts, digest: hex(&hash.finalize()) })
    }

    fn documents(
        self,
        modified: SystemTime,
        content: impl FnOnce(usize) -> Content,
    ) -> ServedDocuments {
        let Self { names, starts, digest } = self;
        let blocks = blocks(&names, &starts);
        let content = content(blocks.len() - 1);
        ServedDocuments {
            order: Order::of(&names),
            names: names.into(),
            starts: starts.into(),
            digest,
            modified,
            content,
            blocks: blocks.into(),
        }
    }
}

/// The first document of each block, and the number of documents.
///
/// Neighbours with one schema and package are a run. A long run has blocks of its own, so that they
/// serve queries for a schema or a package, too. Short runs share blocks.
fn blocks(names: &[DocumentName], starts: &[u64]) -> Vec<usize> {
    let mut blocks = vec![0];
    let mut group = 0..0;
    for run in names.chunk_by(|a, b| (&a.schema, &a.package) == (&b.schema, &b.package)) {
        let run = group.end..group.end + run.len();
        let length = |documents: &Range<usize>| starts[documents.end] - starts[documents.start];
        if length(&run) < LONG_RUN && length(&(group.start..run.end)) <= BLOCK {
            group.end = run.end;
            continue;
        }
        blocks.push(run.start);
        group = run.clone();
        if length(&run) >= LONG_RUN {
            split(run.clone(), starts, &mut blocks);
            group = run.end..run.end;
            blocks.push(run.end);
        }
    }
    blocks.push(names.len());
    blocks.dedup();
    blocks
}

/// Splits a run into blocks: one for each long document, and blocks of short ones.
fn split(run: Range<usize>, starts: &[u64], blocks: &mut Vec<usize>) {
    let mut begin = run.start;
    for at in run {
        let is_long = starts[at + 1] - starts[at] >= LONG_DOCUMENT;
        if at > begin && (is_long || starts[at + 1] - starts[begin] > BLOCK) {
            blocks.push(at);
            begin = at;
        }
        if is_long {
            blocks.push(at + 1);
            begin = at + 1;
        }
    }
}

/// A hash of the content of a document.
pub(crate) fn hash_of(blob: &Blob) -> Result<[u8; 32], BlobError> {
    match blob.hash() {
        Some(known) => Ok(*known),
        None => Ok(Sha256::digest(blob.json()?).into()),
    }
}

/// Bytes in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The fields of a document as its author wrote them. An index counts a package as part of itself;
/// upstream's catalog server counts it as part of the package that it names.
pub(crate) fn name_of(blob: &Blob) -> Result<DocumentName, BlobError> {
    let (schema, package, name) = (blob.schema(), blob.package(), blob.name());
    let mut package = Arc::clone(package);
    if &**schema == "olm.package" && package == *name && !names_a_package(&blob.json()?) {
        package = Arc::from("");
    }
    Ok(DocumentName { schema: Arc::clone(schema), package, name: Arc::clone(name) })
}

/// Whether a document has a field `package` with a text.
fn names_a_package(json: &[u8]) -> bool {
    let fields: Result<BTreeMap<String, &RawValue>, _> = serde_json::from_slice(json);
    fields.is_ok_and(|fields| fields.keys().any(|key| is_same_field(key, "package")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents of one schema, each with a package and a length.
    fn blocks_of(documents: &[(&str, u64)]) -> Vec<usize> {
        let name = |(package, _): &(&str, u64)| DocumentName {
            schema: "s".into(),
            package: Arc::from(*package),
            name: "n".into(),
        };
        let mut starts = vec![0];
        starts.extend(documents.iter().scan(0, |end, (_, length)| {
            *end += length;
            Some(*end)
        }));
        blocks(&documents.iter().map(name).collect::<Vec<_>>(), &starts)
    }

    #[test]
    fn a_block_holds_one_long_document_or_neighbouring_short_ones() {
        let (tiny, short, long) = (1_000, 10_000, 20_000);
        for (documents, wanted) in [
            (&[][..], &[0][..]),
            (&[("a", tiny)], &[0, 1]),
            (&[("a", long)], &[0, 1]),
            (&[("a", short), ("a", short), ("a", long), ("a", short)], &[0, 2, 3, 4]),
            (&[("a", long), ("a", long), ("a", short)], &[0, 1, 2, 3]),
            (&[("a", short); 9], &[0, 6, 9]),
            // Short runs share a block, long ones do not.
            (&[("a", tiny), ("b", tiny), ("c", tiny)], &[0, 3]),
            (&[("a", tiny), ("b", tiny), ("c", short), ("d", tiny)], &[0, 2, 3, 4]),
            (&[("a", tiny), ("b", short), ("b", tiny), ("c", short)], &[0, 1, 3, 4]),
        ] {
            assert_eq!(blocks_of(documents), wanted, "{documents:?}");
        }
        let packages: Vec<String> = (0..100).map(|at| at.to_string()).collect();
        let many: Vec<_> = packages.iter().map(|package| (&**package, tiny)).collect();
        assert_eq!(blocks_of(&many), [0, 65, 100]);
    }

    #[test]
    fn a_package_document_belongs_to_the_package_that_it_names() {
        for (json, wanted) in [
            (r#"{"name":"a","schema":"olm.package"}"#, false),
            (r#"{"name":"a","package":"a","schema":"olm.package"}"#, true),
            (r#"{"Package":"a","name":"a","schema":"olm.package"}"#, true),
            (r#"{"icon":{"package":"a"},"name":"a","schema":"olm.package"}"#, false),
        ] {
            assert_eq!(names_a_package(json.as_bytes()), wanted, "{json}");
        }
    }
}
