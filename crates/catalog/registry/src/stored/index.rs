//! The index of a stored catalog: the length, schema, package and name of each line.

use super::DocumentSelector;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The name of the file.
const FILE: &str = "index.json";
/// The version of the format. Folders of other versions are written again.
const FORMAT: u32 = 1;
/// The largest size of an index that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The index as a file.
#[derive(Serialize, Deserialize)]
struct Document {
    format: u32,
    /// The SHA-256 of the lines, in hexadecimal.
    digest: String,
    /// Milliseconds since 1970.
    modified: u64,
    /// Length in bytes, schema, package, name.
    lines: Vec<(u64, Arc<str>, Arc<str>, Arc<str>)>,
}

/// A line of the documents.
#[derive(Debug)]
struct Line {
    end: u64,
    schema: Arc<str>,
    name: Arc<str>,
}

/// The index in memory.
#[derive(Debug)]
pub(super) struct Index {
    digest: String,
    modified: SystemTime,
    lines: Box<[Line]>,
    /// The lines that name a package.
    by_package: BTreeMap<Arc<str>, Box<[u32]>>,
}

/// Collects the lines of documents that are being written.
#[derive(Default)]
pub(super) struct IndexWriter {
    lines: Vec<(u64, Arc<str>, Arc<str>, Arc<str>)>,
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
        let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut intern = |name: Arc<str>| match names.get(&*name) {
            Some(known) => Arc::clone(known),
            None => {
                names.insert(Arc::clone(&name));
                name
            }
        };
        let mut lines = Vec::with_capacity(document.lines.len());
        let mut by_package: BTreeMap<Arc<str>, Vec<u32>> = BTreeMap::new();
        let mut end = 0_u64;
        for (number, (length, schema, package, name)) in document.lines.into_iter().enumerate() {
            let number = u32::try_from(number).map_err(|_| format!("{FILE} has too many lines"))?;
            end = end.checked_add(length).ok_or_else(|| format!("{FILE}: a length is wrong"))?;
            lines.push(Line { end, schema: intern(schema), name });
            by_package.entry(intern(package)).or_default().push(number);
        }
        Ok(Self {
            digest: document.digest,
            modified: UNIX_EPOCH + Duration::from_millis(document.modified),
            lines: lines.into(),
            by_package: by_package.into_iter().map(|(name, lines)| (name, lines.into())).collect(),
        })
    }

    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    pub(super) fn modified(&self) -> SystemTime {
        self.modified
    }

    pub(super) fn count(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn size(&self) -> u64 {
        self.lines.last().map_or(0, |line| line.end)
    }

    pub(super) fn packages(&self) -> impl Iterator<Item = &str> {
        self.by_package.keys().map(|name| &**name).filter(|name| !name.is_empty())
    }

    pub(super) fn select(&self, selector: DocumentSelector<'_>) -> Vec<Range<u64>> {
        let fits = |line: &Line| {
            selector.schema.is_none_or(|schema| *line.schema == *schema)
                && selector.name.is_none_or(|name| *line.name == *name)
        };
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut take = |number: usize| {
            let line = &self.lines[number];
            if !fits(line) {
                return;
            }
            let start = number.checked_sub(1).map_or(0, |before| self.lines[before].end);
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = line.end,
                _ => ranges.push(start..line.end),
            }
        };
        match selector.package {
            None => (0..self.lines.len()).for_each(take),
            Some(package) => self
                .by_package
                .get(package)
                .into_iter()
                .flatten()
                .for_each(|&number| take(number as usize)),
        }
        ranges
    }
}
