//! The files of a bundle, each read and decoded once, however many look at it.
//!
//! Validators ask for the same files again and again: what is the kind of this one, does another one
//! hold the ClusterServiceVersion, what do all of them weigh? Who judges a bundle makes one
//! [`BundleReader`] and hands it to everybody.

use crate::{
    decode_error::FirstDocumentError,
    read::Limits,
    tree::{self, FileEntry, FileTree},
    validate::decode::{self, Decoded, Refused},
};
use serde_json::{Map, Value};
use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::BTreeMap,
    io,
    rc::Rc,
    sync::Arc,
};

/// How many bytes of files are kept; what comes after is read again when somebody asks again. Bundles
/// that a cluster would take have a hundredth of it.
const MOST_KEPT: u64 = 128 << 20;

/// A bundle that is looked at: its tree, how much of it may be read, and what was read so far.
pub struct BundleReader<'t> {
    tree: &'t dyn FileTree,
    limits: Limits,
    kept: RefCell<BTreeMap<String, Rc<FileContent>>>,
    bytes: Cell<u64>,
}

impl<'t> BundleReader<'t> {
    /// Begins to read; no file is touched yet.
    pub fn new(tree: &'t dyn FileTree, limits: &Limits) -> Self {
        Self { tree, limits: limits.clone(), kept: RefCell::default(), bytes: Cell::new(0) }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The entries of a folder by name.
    pub(crate) fn list(&self, folder: &str) -> io::Result<Vec<FileEntry>> {
        let mut entries = self.tree.list(folder)?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// A file, of which there are at most the bytes that the limit allows, and one more.
    pub(crate) fn file(&self, path: &str) -> io::Result<Rc<FileContent>> {
        if let Some(known) = self.kept.borrow().get(path) {
            return Ok(known.clone());
        }
        let bytes = self.tree.read(path, self.limits.file_bytes)?;
        let all = self.bytes.get().saturating_add(length(&bytes));
        let content = Rc::new(FileContent { bytes: Arc::new(bytes), first: OnceCell::new() });
        if all <= MOST_KEPT {
            self.bytes.set(all);
            self.kept.borrow_mut().insert(path.to_owned(), content.clone());
        }
        Ok(content)
    }

    /// A file as [`BundleReader::file`] has it; none if it is no plain file, cannot be read or is too long.
    pub(crate) fn sound(&self, folder: &str, entry: &FileEntry) -> Option<Rc<FileContent>> {
        if entry.kind != tree::FileKind::File {
            return None;
        }
        let path =
            if folder.is_empty() { &entry.name } else { &format!("{folder}/{}", entry.name) };
        let content = self.file(path).ok()?;
        (length(&content.bytes) <= self.limits.file_bytes).then_some(content)
    }
}

/// How long a file is.
pub(crate) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// One file.
pub(crate) struct FileContent {
    pub(crate) bytes: Arc<Vec<u8>>,
    first: OnceCell<Result<Decoded, Refused>>,
}

impl FileContent {
    /// The first document, whatever it is; `null` where it is empty.
    pub(crate) fn document(&self) -> Result<&Decoded, &Refused> {
        self.first.get_or_init(|| decode::document(&self.bytes)).as_ref()
    }

    /// The object of the file: what is empty is one without fields.
    pub(crate) fn object(&self) -> Result<Decoded, Refused> {
        let decoded = self.document().map_err(Refused::clone)?;
        if decoded.value.is_null() {
            let nothing = Arc::new(Value::Object(Map::new()));
            return Ok(Decoded { value: nothing, repeated: Vec::new(), ..*decoded });
        }
        match decode::unstructured(&decoded.value) {
            None => Ok(decoded.clone()),
            Some(error) => Err(Refused::new(FirstDocumentError::Decode(error), Some(decoded.line))),
        }
    }
}
