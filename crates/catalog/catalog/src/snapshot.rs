//! A catalog as one file, so that the last good content survives a restart.
//!
//! ```text
//! magic (16 bytes) · SHA-256 of the rest · length of the table (8 bytes, little endian)
//! table: JSON, one row per blob · the stored blobs as they are in memory
//! ```
//!
//! Opening verifies the hash first, then unpacks and reads every blob and builds the model with
//! the same checks as a folder: what was not sound cannot come back, and a later version of this
//! program judges old content by its own rules. The file is written beside its place and renamed
//! into it, so that a crash leaves the old one or the new one.

use crate::{
    content::{Origin, Slot},
    declared::Declared,
    decode::{self, ShapeError},
    model::Catalog,
    pack::Packed,
    problem::Finding,
    read::ReadBlob,
    rule::Rule,
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
    /// Writing failed; the previous snapshot, if any, is still there.
    #[error("write the catalog snapshot {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file cannot be opened or read.
    #[error("read the catalog snapshot {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not what was written: cut off, changed, or of another format.
    #[error(
        "the catalog snapshot {path} is damaged: {source}; delete it, the folder is read again"
    )]
    Damaged {
        /// The file.
        path: String,
        /// What does not fit.
        source: Damage,
    },
}

/// What does not fit in a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// The file is none, or of another format.
    #[error("it does not begin as a snapshot does")]
    Magic,
    /// The file ends too early.
    #[error("it is cut off")]
    CutOff,
    /// The content is not what was written.
    #[error("the checksum does not match the content")]
    Checksum,
    /// The table is none.
    #[error(transparent)]
    Table(#[from] serde_json::Error),
    /// A document does not unpack.
    #[error("{schema} {name:?} does not unpack")]
    Unpack {
        /// Its schema.
        schema: Arc<str>,
        /// Its name.
        name: Arc<str>,
    },
    /// A document is no object.
    #[error("{schema} {name:?} is not an object")]
    NotAnObject {
        /// Its schema.
        schema: Arc<str>,
        /// Its name.
        name: Arc<str>,
    },
    /// A document is not of the shape that its schema asks for.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A bundle holds a manifest that is none.
    #[error("a manifest in a bundle cannot be read")]
    Manifest,
    /// The documents are no sound catalog.
    #[error("{message}")]
    Unsound {
        /// The rule that the first finding is of.
        rule: Rule,
        /// What it says.
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
    /// Writes the catalog to a file. Durable when it returns.
    pub fn save(&self, path: &Path) -> Result<(), SnapshotError> {
        let write = || -> io::Result<()> {
            let not_kept = || io::Error::other("the content of the catalog was not kept");
            let kept: Option<Vec<_>> =
                self.area.slots.iter().map(|slot| Some((slot, slot.packed.as_ref()?))).collect();
            let kept = kept.ok_or_else(not_kept)?;
            let rows: Vec<Row> = kept.iter().map(|(slot, packed)| row(slot, packed)).collect();
            let table = serde_json::to_vec(&rows)?;
            let length = (table.len() as u64).to_le_bytes();
            let mut hash = Sha256::new().chain_update(length).chain_update(&table);
            for (_, packed) in &kept {
                hash.update(&packed.stored);
            }
            let mut draft = AtomicFile::create(path)?;
            let mut out = BufWriter::new(&mut draft);
            for part in [&MAGIC[..], &hash.finalize(), &length, &table] {
                out.write_all(part)?;
            }
            for (_, packed) in &kept {
                out.write_all(&packed.stored)?;
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
    /// The file cannot be read, is not whole, or does not hold a sound catalog.
    pub fn load_snapshot(path: &Path) -> Result<Arc<Self>, SnapshotError> {
        let name = || path.display().to_string();
        let bytes = read(path).map_err(|source| SnapshotError::Read { path: name(), source })?;
        decode_snapshot(&bytes)
            .map(Arc::new)
            .map_err(|source| SnapshotError::Damaged { path: name(), source })
    }
}

/// The bytes of a file that [`Catalog::save`] wrote; nothing else is opened.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = mainstay_files::open(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or(0));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn row(slot: &Slot, packed: &Packed) -> Row {
    Row {
        schema: slot.schema.clone(),
        package: slot.package.clone(),
        name: slot.name.clone(),
        file: slot.origin.file.clone(),
        line: slot.origin.line,
        stored: packed.stored.len(),
        plain: packed.plain,
        pieces: packed.pieces,
    }
}

fn decode_snapshot(bytes: &[u8]) -> Result<Catalog, Damage> {
    let body = bytes.strip_prefix(MAGIC).ok_or(Damage::Magic)?;
    let (hash, body) = body.split_at_checked(HASH).ok_or(Damage::CutOff)?;
    if hash != &Sha256::digest(body)[..]
        && !mainstay_fault::is_on("damage-of-snapshots-is-not-noticed")
    {
        return Err(Damage::Checksum);
    }
    let (length, body) = body.split_first_chunk::<LENGTH>().ok_or(Damage::CutOff)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (table, mut area) = body.split_at_checked(length).ok_or(Damage::CutOff)?;
    let rows: Vec<Row> = serde_json::from_slice(table)?;
    let mut collected = Declared::default();
    for row in rows {
        let (stored, rest) = area.split_at_checked(row.stored).ok_or(Damage::CutOff)?;
        area = rest;
        let called = || (row.schema.clone(), row.name.clone());
        let packed = Packed { stored: stored.into(), plain: row.plain, pieces: row.pieces };
        let damaged = || {
            let (schema, name) = called();
            Damage::Unpack { schema, name }
        };
        let hash = packed.hash().ok_or_else(damaged)?;
        let plain = packed.unpack().ok_or_else(damaged)?;
        let Ok(Value::Object(fields)) = serde_json::from_slice(&plain) else {
            let (schema, name) = called();
            return Err(Damage::NotAnObject { schema, name });
        };
        let facts = decode::facts(&row.schema, &fields)?;
        let slot = Slot {
            schema: row.schema,
            package: row.package,
            name: row.name,
            origin: Origin { file: row.file, line: row.line },
            packed: Some(packed),
            hash: Some(hash),
        };
        collected.add(ReadBlob { slot, bytes: 0..0, facts });
    }
    if collected.has_object_faults() {
        return Err(Damage::Manifest);
    }
    let (catalog, findings, _) = collected.build();
    match findings.into_iter().next() {
        None => Ok(catalog),
        Some(Finding { rule, message, .. }) => Err(Damage::Unsound { rule, message }),
    }
}
