//! The index of stored documents: the length, schema, package and name of each line.

use crate::ServedDocuments;
use crate::documents::DocumentName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The name of the file.
const FILE: &str = "index.json";
/// The version of the format. Folders of other versions are written again.
const FORMAT: u32 = 1;
/// The largest size of an index that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// A line: its length in bytes, and the schema, package and name of its document.
type Line = (u64, Arc<str>, Arc<str>, Arc<str>);

/// The index as a file.
#[derive(Serialize, Deserialize)]
struct Document {
    format: u32,
    /// [`ServedDocuments::digest`].
    digest: String,
    /// Milliseconds since 1970.
    modified: u64,
    lines: Vec<Line>,
}

/// The index in memory.
#[derive(Debug)]
pub(super) struct Index {
    digest: String,
    modified: SystemTime,
    names: Vec<DocumentName>,
    /// The offset of each line, and the length of all.
    starts: Vec<u64>,
}

/// Collects the lines of documents that are being written.
#[derive(Default)]
pub(super) struct IndexWriter {
    lines: Vec<Line>,
}

impl IndexWriter {
    /// Adds a line of so many bytes.
    pub(super) fn add(&mut self, length: u64, schema: Arc<str>, package: Arc<str>, name: Arc<str>) {
        self.lines.push((length, schema, package, name));
    }

    /// Writes the file.
    pub(super) fn write(
        self,
        folder: &Path,
        digest: String,
        modified: SystemTime,
    ) -> io::Result<()> {
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = u64::try_from(since.as_millis()).unwrap_or_default();
        let document = Document { format: FORMAT, digest, modified, lines: self.lines };
        let mut file = io::BufWriter::new(File::create(folder.join(FILE))?);
        serde_json::to_writer(&mut file, &document)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

impl Index {
    /// Reads the file.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let unreadable = |error: io::Error| mainstay_gocompat::io_error_text(&error);
        let path = folder.join(FILE);
        let size = fs::metadata(&path).map_err(unreadable)?.len();
        if size > MAX_BYTES {
            return Err(format!("{FILE} has {size} bytes"));
        }
        let mut text = Vec::new();
        File::open(&path)
            .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut text))
            .map_err(unreadable)?;
        let document: Document =
            serde_json::from_slice(&text).map_err(|error| format!("{FILE}: {error}"))?;
        if document.format != FORMAT {
            return Err(format!("{FILE} has the format {}, not {FORMAT}", document.format));
        }
        Self::of(document)
    }

    fn of(document: Document) -> Result<Self, String> {
        let mut known: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut intern = |name: Arc<str>| {
            if let Some(known) = known.get(&*name) {
                return Arc::clone(known);
            }
            known.insert(Arc::clone(&name));
            name
        };
        let mut names = Vec::with_capacity(document.lines.len());
        let mut starts = Vec::with_capacity(document.lines.len() + 1);
        let mut end = 0_u64;
        starts.push(end);
        for (length, schema, package, name) in document.lines {
            end = end.checked_add(length).ok_or_else(|| format!("{FILE}: a length is wrong"))?;
            starts.push(end);
            names.push(DocumentName { schema: intern(schema), package: intern(package), name });
        }
        let modified = UNIX_EPOCH + Duration::from_millis(document.modified);
        Ok(Self { digest: document.digest, modified, names, starts })
    }

    /// The length of all lines, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.starts.last().copied().unwrap_or_default()
    }

    /// The documents of this index; `compressed` keeps what is compressed for clients.
    pub(super) fn into_documents(self, documents: File, compressed: File) -> ServedDocuments {
        let Self { digest, modified, names, starts } = self;
        ServedDocuments::of_files(names, starts, digest, modified, documents, compressed)
    }
}
