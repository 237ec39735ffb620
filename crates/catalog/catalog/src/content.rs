//! Where the blobs of a catalog live: one area of deflated canonical JSON, and a table over it.
//!
//! Blobs are compressed one by one, so that reading one costs no more than that one. The area
//! belongs to the catalog; neither a deleted file nor a changed one can be noticed through it.

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use serde_json::Value;
use std::{
    fmt,
    io::{Read, Write},
    sync::Arc,
};

/// Blobs shorter than this are kept as they are: the bookkeeping would eat the gain.
const WORTH_DEFLATING: usize = 512;

/// The place a blob was read from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// Path of the file below the catalog's folder, with `/` between the parts.
    pub file: Arc<str>,
    /// The line (from 1) on which the document begins.
    pub line: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Why something that is kept lazily could not be decoded. Loading has checked the blob itself, so
/// this is about what a catalog is free to get wrong: the manifests inside a bundle.
#[derive(Debug, thiserror::Error)]
pub enum ContentError {
    /// The stored bytes do not inflate to what was stored; memory or snapshot is damaged.
    #[error("stored content of {schema} {name:?} is damaged")]
    Inflate {
        /// The schema of the blob.
        schema: Arc<str>,
        /// The name of the blob.
        name: Arc<str>,
    },
    /// A property of a bundle does not hold what its type says.
    #[error(
        "read bundle objects: package {package:?}, bundle {bundle:?}: parse property at index {index} as bundle object: {why}"
    )]
    Object {
        /// The package of the bundle.
        package: Arc<str>,
        /// The name of the bundle.
        bundle: Arc<str>,
        /// The position of the property in the bundle's list.
        index: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// One document of a catalog, kept deflated. Cheap to clone; holds the whole area alive.
#[derive(Clone)]
pub struct Blob {
    area: Arc<Area>,
    slot: usize,
}

impl Blob {
    /// The `schema` of the document, such as `olm.bundle`.
    pub fn schema(&self) -> &Arc<str> {
        &self.slot().schema
    }

    /// The package the document says it belongs to; empty when it says none.
    pub fn package(&self) -> &Arc<str> {
        &self.slot().package
    }

    /// The `name` of the document; empty when it has none.
    pub fn name(&self) -> &Arc<str> {
        &self.slot().name
    }

    /// Where the document stood when it was read.
    pub fn origin(&self) -> &Origin {
        &self.slot().origin
    }

    /// The document as compact JSON with sorted keys.
    pub fn json(&self) -> Result<Vec<u8>, ContentError> {
        self.area.read(self.slot)
    }

    /// The document as a value.
    pub fn value(&self) -> Result<Value, ContentError> {
        serde_json::from_slice(&self.json()?).map_err(|_| self.damaged())
    }

    pub(crate) fn damaged(&self) -> ContentError {
        let slot = self.slot();
        ContentError::Inflate { schema: slot.schema.clone(), name: slot.name.clone() }
    }

    fn slot(&self) -> &Slot {
        &self.area.slots[self.slot]
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slot = self.slot();
        write!(f, "Blob({} {:?} from {})", slot.schema, slot.name, slot.origin)
    }
}

/// What the table knows about one blob.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) schema: Arc<str>,
    pub(crate) package: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) origin: Origin,
    /// Where the stored bytes begin, and how many there are.
    pub(crate) offset: usize,
    pub(crate) stored: usize,
    /// Length of the canonical JSON. Equal to `stored` means: kept plain.
    pub(crate) plain: usize,
    /// SHA-256 of the canonical JSON.
    pub(crate) hash: [u8; 32],
}

/// All blobs of one catalog.
#[derive(Debug, Default)]
pub(crate) struct Area {
    pub(crate) bytes: Vec<u8>,
    pub(crate) slots: Vec<Slot>,
}

impl Area {
    /// A handle for the blob at `slot`.
    pub(crate) fn blob(self: &Arc<Self>, slot: usize) -> Blob {
        Blob { area: Self::clone_arc(self), slot }
    }

    fn clone_arc(area: &Arc<Self>) -> Arc<Self> {
        Arc::clone(area)
    }

    fn read(&self, slot: usize) -> Result<Vec<u8>, ContentError> {
        let slot = &self.slots[slot];
        let damaged =
            || ContentError::Inflate { schema: slot.schema.clone(), name: slot.name.clone() };
        let stored = self.bytes.get(slot.offset..slot.offset + slot.stored).ok_or_else(damaged)?;
        unpack(stored, slot.plain).ok_or_else(damaged)
    }
}

/// Deflates canonical JSON for storing; short texts stay as they are.
pub(crate) fn pack(plain: &[u8]) -> Vec<u8> {
    if plain.len() >= WORTH_DEFLATING {
        let mut encoder =
            DeflateEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
        if encoder.write_all(plain).is_ok()
            && let Ok(stored) = encoder.finish()
            && stored.len() < plain.len()
        {
            return stored;
        }
    }
    plain.to_vec()
}

/// The reverse of [`pack`], given the length that comes out. `None`: these bytes are not it.
pub(crate) fn unpack(stored: &[u8], plain: usize) -> Option<Vec<u8>> {
    if stored.len() == plain {
        return Some(stored.to_vec());
    }
    let mut out = Vec::with_capacity(plain);
    // One byte more than promised is enough to know that the promise was wrong.
    DeflateDecoder::new(stored).take(plain as u64 + 1).read_to_end(&mut out).ok()?;
    (out.len() == plain).then_some(out)
}
