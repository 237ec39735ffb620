//! A cache of the files of a bundle: each file is read and decoded once.
//!
//! Validators read the same files many times: for the kind of an object, for the
//! ClusterServiceVersion, for the compressed size. A caller that validates a bundle creates one
//! [`BundleReader`] and passes it to all of them.

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

/// Size of the cache in bytes. Files beyond it are read again at each use. Bundles that a cluster
/// accepts have a hundredth of it.
const CACHE_BYTES: u64 = 128 << 20;

/// Reads the files of a bundle within limits, and caches them.
pub struct BundleReader<'t> {
    tree: &'t dyn FileTree,
    limits: Limits,
    cache: RefCell<BTreeMap<String, Rc<FileContent>>>,
    bytes: Cell<u64>,
}

impl<'t> BundleReader<'t> {
    /// A reader with an empty cache; reads no file yet.
    pub fn new(tree: &'t dyn FileTree, limits: &Limits) -> Self {
        Self { tree, limits: limits.clone(), cache: RefCell::default(), bytes: Cell::new(0) }
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

    /// A file: at most one byte more than the limit allows.
    pub(crate) fn file(&self, path: &str) -> io::Result<Rc<FileContent>> {
        if let Some(cached) = self.cache.borrow().get(path) {
            return Ok(cached.clone());
        }
        let bytes = self.tree.read(path, self.limits.file_bytes)?;
        let all = self.bytes.get().saturating_add(length(&bytes));
        let content = Rc::new(FileContent { bytes: Arc::new(bytes), first: OnceCell::new() });
        if all <= CACHE_BYTES {
            self.bytes.set(all);
            self.cache.borrow_mut().insert(path.to_owned(), content.clone());
        }
        Ok(content)
    }

    /// As [`BundleReader::file`]; none if the entry is not a regular file, is unreadable or too long.
    pub(crate) fn readable_file(&self, folder: &str, entry: &FileEntry) -> Option<Rc<FileContent>> {
        if entry.kind != tree::FileKind::File {
            return None;
        }
        let path =
            if folder.is_empty() { &entry.name } else { &format!("{folder}/{}", entry.name) };
        let content = self.file(path).ok()?;
        (length(&content.bytes) <= self.limits.file_bytes).then_some(content)
    }
}

/// The length of a file in bytes.
pub(crate) fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// The content of one file.
pub(crate) struct FileContent {
    pub(crate) bytes: Arc<Vec<u8>>,
    first: OnceCell<Result<Decoded, Refused>>,
}

impl FileContent {
    /// The first document, whatever it is; `null` where it is empty.
    pub(crate) fn document(&self) -> Result<&Decoded, &Refused> {
        self.first.get_or_init(|| decode::document(&self.bytes)).as_ref()
    }

    /// The object of the file; an empty document is an object without fields.
    pub(crate) fn object(&self) -> Result<Decoded, Refused> {
        let decoded = self.document().map_err(Refused::clone)?;
        if decoded.value.is_null() {
            let empty = Arc::new(Value::Object(Map::new()));
            return Ok(Decoded { value: empty, repeated: Vec::new(), ..*decoded });
        }
        match decode::unstructured_error(&decoded.value) {
            None => Ok(decoded.clone()),
            Some(error) => Err(Refused::new(FirstDocumentError::Decode(error), Some(decoded.line))),
        }
    }
}
