//! Blob storage of a catalog: a table of compressed canonical JSON.
//!
//! Each blob is compressed on its own, so that reading one costs no more than that one. The catalog
//! owns the table, so later changes of the files do not show in it.

use crate::{compression::CompressedBlob, problem::BlobName};
use mainstay_gocompat::Base64Error;
use mainstay_object::NotAnObject;
use mainstay_yaml::YamlError;
use serde_json::Value;
use std::{fmt, sync::Arc};

/// The file and line of a blob.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlobOrigin {
    /// Path of the file below the catalog's folder, with `/` between the parts.
    pub file: Arc<str>,
    /// The line (from 1) on which the document begins.
    pub line: usize,
}

impl fmt::Display for BlobOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// Why content that is decoded on demand could not be read. Loading has checked the blob itself,
/// but not every manifest inside a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The stored bytes cannot be decompressed; memory or snapshot is damaged.
    #[error("stored content of {schema} {name:?} is damaged")]
    Damaged {
        /// The schema of the blob.
        schema: Arc<str>,
        /// The name of the blob.
        name: Arc<str>,
    },
    /// The catalog was loaded without content: [`Keep::Facts`](crate::KeptContent::Facts).
    #[error("the content of {schema} {name:?} was not kept")]
    NotKept {
        /// The schema of the blob.
        schema: Arc<str>,
        /// The name of the blob.
        name: Arc<str>,
    },
    /// A property of a bundle does not hold what its type says.
    #[error(
        "read bundle objects: package {package:?}, bundle {bundle:?}: parse property at index {index} as bundle object: {source}"
    )]
    Object {
        /// The package of the bundle.
        package: Arc<str>,
        /// The name of the bundle.
        bundle: Arc<str>,
        /// The position of the property in the bundle's list.
        index: usize,
        /// What is wrong with it.
        source: BundleManifestError,
    },
}

/// Why a property of a bundle holds no manifest.
#[derive(Debug, thiserror::Error)]
pub enum BundleManifestError {
    /// The property has no value.
    #[error("no value")]
    NoValue,
    /// The value has no text as `data`.
    #[error(transparent)]
    Property(#[from] serde_json::Error),
    /// The data is not base64.
    #[error(transparent)]
    Base64(#[from] Base64Error),
    /// The decoded data is neither JSON nor YAML.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// The decoded data is not a Kubernetes object.
    #[error(transparent)]
    NotAnObject(#[from] NotAnObject),
}

/// One document of a catalog, stored compressed. Cheap to clone; keeps the whole area alive.
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

    /// The package that the document names; empty when it names none.
    pub fn package(&self) -> &Arc<str> {
        &self.slot().package
    }

    /// The `name` of the document; empty when it has none.
    pub fn name(&self) -> &Arc<str> {
        &self.slot().name
    }

    /// Schema, package and name of the document.
    pub fn blob_name(&self) -> BlobName {
        self.slot().blob_name()
    }

    /// The file and line of the document.
    pub fn origin(&self) -> &BlobOrigin {
        &self.slot().origin
    }

    /// The length of [`Blob::json`] in bytes, without decompressing; 0 if the content is not
    /// stored.
    pub fn json_len(&self) -> usize {
        self.slot().compressed.as_ref().map_or(0, |compressed| compressed.plain)
    }

    /// The document as compact JSON with sorted keys.
    pub fn json(&self) -> Result<Vec<u8>, BlobError> {
        let slot = self.slot();
        let Some(compressed) = &slot.compressed else {
            let (schema, name) = (slot.schema.clone(), slot.name.clone());
            return Err(BlobError::NotKept { schema, name });
        };
        compressed.decompress().ok_or_else(|| self.damaged())
    }

    /// The SHA-256 of the content, if it was computed ([`KeptContent::All`](crate::KeptContent)):
    /// equal hashes mean equal [`Blob::json`].
    pub fn hash(&self) -> Option<&[u8; 32]> {
        self.slot().hash.as_ref()
    }

    /// The document as a value.
    pub fn value(&self) -> Result<Value, BlobError> {
        serde_json::from_slice(&self.json()?).map_err(|_| self.damaged())
    }

    /// Whether both are stored and equal. Compares the compressed bytes.
    pub fn has_equal_content(&self, other: &Self) -> bool {
        self.slot().compressed.is_some() && self.slot().compressed == other.slot().compressed
    }

    pub(crate) fn damaged(&self) -> BlobError {
        let slot = self.slot();
        BlobError::Damaged { schema: slot.schema.clone(), name: slot.name.clone() }
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

/// The table row of one blob.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) schema: Arc<str>,
    pub(crate) package: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) origin: BlobOrigin,
    /// The document, if its content is stored.
    pub(crate) compressed: Option<CompressedBlob>,
    /// SHA-256 of the document, if it is computed.
    pub(crate) hash: Option<[u8; 32]>,
}

impl Slot {
    /// Schema, package and name of the blob.
    pub(crate) fn blob_name(&self) -> BlobName {
        BlobName {
            schema: self.schema.clone(),
            package: self.package.clone(),
            name: self.name.clone(),
        }
    }
}

/// All blobs of one catalog.
#[derive(Clone, Debug, Default)]
pub(crate) struct Area {
    pub(crate) slots: Vec<Slot>,
}

impl Area {
    /// A handle for the blob at `slot`.
    pub(crate) fn blob(self: &Arc<Self>, slot: usize) -> Blob {
        Blob { area: Arc::clone(self), slot }
    }
}
