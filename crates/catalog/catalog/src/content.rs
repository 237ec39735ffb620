//! Where the blobs of a catalog live: a table of deflated canonical JSON.
//!
//! Blobs are compressed one by one, so that reading one costs no more than that one. The table
//! belongs to the catalog; neither a deleted file nor a changed one can be noticed through it.

use crate::problem::BlobName;
use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use serde_json::Value;
use std::{
    fmt,
    io::{self, Read, Write},
    ops::Range,
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

/// How hard to compress. Beyond this, twice the time saves two more parts in a hundred.
const LEVEL: u32 = 3;

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

    /// How many bytes [`Blob::json`] gives, without making them.
    pub fn json_len(&self) -> usize {
        self.slot().plain
    }

    /// The document as compact JSON with sorted keys.
    pub fn json(&self) -> Result<Vec<u8>, ContentError> {
        let slot = self.slot();
        unpack(&slot.stored, slot.plain).ok_or_else(|| self.damaged())
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
    /// The canonical JSON as [`pack`] makes it.
    pub(crate) stored: Box<[u8]>,
    /// Length of the canonical JSON. Equal to that of `stored` means: kept plain.
    pub(crate) plain: usize,
    /// SHA-256 of the canonical JSON.
    pub(crate) hash: [u8; 32],
}

impl Slot {
    /// What the blob is called.
    pub(crate) fn blob_name(&self) -> BlobName {
        BlobName {
            schema: self.schema.clone(),
            package: self.package.clone(),
            name: self.name.clone(),
        }
    }
}

/// All blobs of one catalog.
#[derive(Debug, Default)]
pub(crate) struct Area {
    pub(crate) slots: Vec<Slot>,
}

impl Area {
    /// A handle for the blob at `slot`.
    pub(crate) fn blob(self: &Arc<Self>, slot: usize) -> Blob {
        Blob { area: Arc::clone(self), slot }
    }
}

/// Base64 texts from this length on are stored as the bytes they stand for.
const WORTH_DECODING: usize = 512;

/// Deflates canonical JSON for storing; short texts stay as they are.
///
/// Base64 hides from the compressor that the manifests in it are nearly all alike, so long base64
/// texts are decoded first. What is deflated is a list of pieces, each with its length before it:
/// text, bytes of a base64 text, text, …
pub(crate) fn pack(plain: &[u8]) -> Vec<u8> {
    if plain.len() < WORTH_DEFLATING {
        return plain.to_vec();
    }
    let mut encoder =
        DeflateEncoder::new(Vec::with_capacity(plain.len() / 6), Compression::new(LEVEL));
    let mut write = || -> io::Result<Vec<u8>> {
        let mut piece = |bytes: &[u8]| {
            let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
            encoder.write_all(&length.to_le_bytes())?;
            encoder.write_all(bytes)
        };
        let mut done = 0;
        for (range, bytes) in base64_texts(plain) {
            piece(&plain[done..range.start])?;
            piece(&bytes)?;
            done = range.end;
        }
        piece(&plain[done..])?;
        std::mem::replace(&mut encoder, DeflateEncoder::new(Vec::new(), Compression::none()))
            .finish()
    };
    match write() {
        Ok(stored) if stored.len() < plain.len() => stored,
        _ => plain.to_vec(),
    }
}

/// The reverse of [`pack`], given the length that comes out. `None`: these bytes are not it.
pub(crate) fn unpack(stored: &[u8], plain: usize) -> Option<Vec<u8>> {
    if stored.len() == plain {
        return Some(stored.to_vec());
    }
    // The pieces with their lengths are never longer than this; a wrong stream may be.
    let mut pieces = Vec::with_capacity(plain + 4);
    DeflateDecoder::new(stored).take(plain as u64 + 5).read_to_end(&mut pieces).ok()?;
    let mut out = Vec::with_capacity(plain);
    let mut rest = pieces.as_slice();
    let mut text = true;
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (piece, after) = after.split_at_checked(length)?;
        if out.len() + piece.len() > plain {
            return None;
        }
        if text {
            out.extend_from_slice(piece);
        } else {
            let start = out.len();
            out.resize(start + piece.len().div_ceil(3) * 4, 0);
            STANDARD.encode_slice(piece, &mut out[start..]).ok()?;
        }
        (rest, text) = (after, !text);
    }
    (out.len() == plain).then_some(out)
}

/// The long base64 texts of a JSON document, without their quotes, and what they stand for.
/// Only texts that come out of the encoder exactly as they are written.
fn base64_texts(json: &[u8]) -> impl Iterator<Item = (Range<usize>, Vec<u8>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < json.len() {
            let start = at + json[at..].iter().position(|&byte| byte == b'"')? + 1;
            let run = json[start..].iter().position(|&byte| !is_base64(byte))?;
            let padding = json[start + run..].iter().take_while(|&&byte| byte == b'=').count();
            let range = start..start + run + padding;
            at = range.end;
            if range.len() >= WORTH_DECODING
                && json.get(range.end) == Some(&b'"')
                && let Ok(bytes) = STANDARD.decode(&json[range.clone()])
            {
                return Some((range, bytes));
            }
        }
        None
    })
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/'
}

#[cfg(test)]
mod tests {
    use super::{pack, unpack};
    use base64::{Engine, engine::general_purpose::STANDARD};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(
            pieces in prop::collection::vec(prop_oneof![
                "[ -~]{0,40}",
                prop::collection::vec(any::<u8>(), 0..2000).prop_map(|b| STANDARD.encode(b)),
                "[A-Za-z0-9+/]{500,600}={0,3}",
            ], 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let json = serde_json::to_vec(&pieces).unwrap();
            let stored = pack(&json);
            prop_assert_eq!(unpack(&stored, json.len()), Some(json.clone()));
            // Damage gives nothing, or at least no panic.
            let cut = cut.index(stored.len());
            let damaged = unpack(&stored[..cut], json.len());
            prop_assert!(damaged.is_none() || damaged.as_ref() != Some(&json));
        }
    }
}
