//! Catalog snapshots: a catalog as one file, so that the last sound content survives a restart.
//!
//! ```text
//! magic (16 bytes) · SHA-256 of the rest · length of the table (8 bytes, little endian)
//! table: JSON, one row per blob · the stored blobs as they are in memory
//! ```
//!
//! Opening verifies the hash, then decompresses and decodes every blob, and builds the model with
//! the same checks as a folder. So an unsound catalog cannot come back, and a later version of
//! Mainstay checks old content by its own rules. The file is written beside its destination and
//! renamed, so that a crash leaves the old file or the new one.

use crate::{
    compression::CompressedBlob,
    content::{BlobOrigin, Slot},
    declared::CatalogDocuments,
    decode::{self, ShapeError},
    model::Catalog,
    problem::Finding,
    read::DecodedBlob,
    rule::CatalogRule,
};
use mainstay_files::{AtomicFile, Durability};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    io::{self, BufWriter, Read as _, Write},
    path::Path,
    sync::Arc,
};

const MAGIC: &[u8; 16] = b"mainstay-fbc 2\n\0";
const HASH: usize = 32;
const LENGTH: usize = 8;

/// Why a snapshot could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Writing failed; a previous snapshot is unchanged.
    #[error("write the catalog snapshot {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// The error of the file system.
        source: io::Error,
    },
    /// The file cannot be opened or read.
    #[error("read the catalog snapshot {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The error of the file system.
        source: io::Error,
    },
    /// The file is truncated, changed, or of another format.
    #[error(
        "the catalog snapshot {path} is damaged: {source}; delete it, and the folder is read again"
    )]
    Damaged {
        /// The file.
        path: String,
        /// The damage.
        source: SnapshotDamage,
    },
}

/// The damage of a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotDamage {
    /// The file is no snapshot, or of another format.
    #[error("it does not begin as a snapshot does")]
    Magic,
    /// The file is truncated.
    #[error("it is truncated")]
    CutOff,
    /// The checksum does not match.
    #[error("the checksum does not match the content")]
    Checksum,
    /// The table is malformed.
    #[error(transparent)]
    Table(#[from] serde_json::Error),
    /// A document cannot be decompressed.
    #[error("{schema} {name:?} cannot be decompressed")]
    Unpack {
        /// The schema of the document.
        schema: Arc<str>,
        /// The name of the document.
        name: Arc<str>,
    },
    /// A document is not an object.
    #[error("{schema} {name:?} is not an object")]
    NotAnObject {
        /// The schema of the document.
        schema: Arc<str>,
        /// The name of the document.
        name: Arc<str>,
    },
    /// A document does not have the shape of its schema.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A bundle holds an unreadable manifest.
    #[error("a manifest in a bundle cannot be read")]
    Manifest,
    /// The documents do not make a sound catalog.
    #[error("{message}")]
    Unsound {
        /// The rule of the first finding.
        rule: CatalogRule,
        /// The message of the first finding.
        message: String,
    },
}

/// One blob in the table.
#[derive(Serialize, Deserialize)]
struct Row {
    schema: Arc<str>,
    package: Arc<str>,
    name: Arc<str>,
    file: Arc<str>,
    line: usize,
    stored: usize,
    plain: usize,
    pieces: usize,
}

impl Catalog {
    /// Writes the catalog to a file. The file is durable when this returns.
    pub fn save(&self, path: &Path) -> Result<(), SnapshotError> {
        let write = || -> io::Result<()> {
            let not_kept = || io::Error::other("the content of the catalog was not kept");
            let stored: Option<Vec<_>> = self
                .area
                .slots
                .iter()
                .map(|slot| Some((slot, slot.compressed.as_ref()?)))
                .collect();
            let stored = stored.ok_or_else(not_kept)?;
            let rows: Vec<Row> =
                stored.iter().map(|(slot, compressed)| row(slot, compressed)).collect();
            let table = serde_json::to_vec(&rows)?;
            let length = (table.len() as u64).to_le_bytes();
            let mut hash = Sha256::new().chain_update(length).chain_update(&table);
            for (_, compressed) in &stored {
                hash.update(&compressed.stored);
            }
            let mut draft = AtomicFile::create(path)?;
            let mut out = BufWriter::new(&mut draft);
            for part in [&MAGIC[..], &hash.finalize(), &length, &table] {
                out.write_all(part)?;
            }
            for (_, compressed) in &stored {
                out.write_all(&compressed.stored)?;
            }
            out.flush()?;
            drop(out);
            draft.publish(Durability::PowerCut)
        };
        write().map_err(|source| SnapshotError::Write { path: path.display().to_string(), source })
    }

    /// Reads a catalog that [`Catalog::save`] wrote.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or does not hold a sound catalog.
    pub fn load_snapshot(path: &Path) -> Result<Arc<Self>, SnapshotError> {
        let name = || path.display().to_string();
        let bytes = read(path).map_err(|source| SnapshotError::Read { path: name(), source })?;
        decode_snapshot(&bytes)
            .map(Arc::new)
            .map_err(|source| SnapshotError::Damaged { path: name(), source })
    }
}

/// Reads a regular file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = mainstay_files::open(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or(0));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn row(slot: &Slot, compressed: &CompressedBlob) -> Row {
    Row {
        schema: slot.schema.clone(),
        package: slot.package.clone(),
        name: slot.name.clone(),
        file: slot.origin.file.clone(),
        line: slot.origin.line,
        stored: compressed.stored.len(),
        plain: compressed.plain,
        pieces: compressed.pieces,
    }
}

fn decode_snapshot(bytes: &[u8]) -> Result<Catalog, SnapshotDamage> {
    let body = bytes.strip_prefix(MAGIC).ok_or(SnapshotDamage::Magic)?;
    let (hash, body) = body.split_at_checked(HASH).ok_or(SnapshotDamage::CutOff)?;
    if hash != &Sha256::digest(body)[..]
        && !mainstay_fault::is_on("damage-of-snapshots-is-not-noticed")
    {
        return Err(SnapshotDamage::Checksum);
    }
    let (length, body) = body.split_first_chunk::<LENGTH>().ok_or(SnapshotDamage::CutOff)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (table, mut area) = body.split_at_checked(length).ok_or(SnapshotDamage::CutOff)?;
    let rows: Vec<Row> = serde_json::from_slice(table)?;
    let mut collected = CatalogDocuments::default();
    for row in rows {
        let (stored, rest) = area.split_at_checked(row.stored).ok_or(SnapshotDamage::CutOff)?;
        area = rest;
        let called = || (row.schema.clone(), row.name.clone());
        let compressed =
            CompressedBlob { stored: stored.into(), plain: row.plain, pieces: row.pieces };
        let damaged = || {
            let (schema, name) = called();
            SnapshotDamage::Unpack { schema, name }
        };
        let hash = compressed.hash().ok_or_else(damaged)?;
        let plain = compressed.decompress().ok_or_else(damaged)?;
        let Ok(Value::Object(fields)) = serde_json::from_slice(&plain) else {
            let (schema, name) = called();
            return Err(SnapshotDamage::NotAnObject { schema, name });
        };
        let facts = decode::facts(&row.schema, &fields)?;
        let slot = Slot {
            schema: row.schema,
            package: row.package,
            name: row.name,
            origin: BlobOrigin { file: row.file, line: row.line },
            compressed: Some(compressed),
            hash: Some(hash),
        };
        collected.add(DecodedBlob { slot, bytes: 0..0, facts });
    }
    if collected.has_object_faults() {
        return Err(SnapshotDamage::Manifest);
    }
    let (catalog, findings, _) = collected.build();
    match findings.into_iter().next() {
        None => Ok(catalog),
        Some(Finding { rule, message, .. }) => Err(SnapshotDamage::Unsound { rule, message }),
    }
}
