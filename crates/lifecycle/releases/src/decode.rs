//! Reading of a release from its Secrets, which anybody with rights in the namespace can write.
//!
//! Sizes are limited: the number of chunks, and the bytes after decompression. Unknown fields are ignored.

use crate::release::Release;
use crate::secrets::{CHUNK_SECRET_TYPE, INDEX_SECRET_TYPE, MAX_CHUNKS, secret_name};
use flate2::read::MultiGzDecoder;
use mainstay_gocompat::decode_base64;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};

/// How many bytes a release may have after decompression.
pub const MAX_DECODED_BYTES: u64 = 256 * 1024 * 1024;

/// A release cannot be read from its Secrets.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read the release in Secret {namespace}/{index}: {problem}; to discard this release, run: \
     kubectl delete secret --namespace {namespace} {index}"
)]
pub struct DecodeReleaseError {
    /// The namespace of the Secrets.
    pub namespace: String,
    /// The name of the index Secret.
    pub index: String,
    /// What is wrong.
    #[source]
    pub problem: DecodeProblem,
}

/// Why a release cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeProblem {
    /// A Secret has another type.
    #[error("Secret {secret} has the type {found:?} instead of {wanted:?}")]
    WrongType {
        /// The name of the Secret.
        secret: String,
        /// Its type.
        found: String,
        /// The type that it should have.
        wanted: &'static str,
    },
    /// A Secret lacks a part of its data, or it is not base64.
    #[error("Secret {secret} has no readable data {key:?}")]
    NoData {
        /// The name of the Secret.
        secret: String,
        /// The key of the data.
        key: &'static str,
    },
    /// The list of chunk Secrets is not a JSON list of names.
    #[error("data \"extraChunks\" is not a list of names: {0}")]
    ChunkNames(#[source] serde_json::Error),
    /// The release has too many chunks.
    #[error("the release has {chunks} chunks, and at most {MAX_CHUNKS} are read")]
    TooManyChunks {
        /// How many chunks the index lists, itself included.
        chunks: usize,
    },
    /// A chunk Secret is missing.
    #[error("chunk {number} of {chunks} is missing: Secret {secret} does not exist")]
    MissingChunk {
        /// The name of the chunk Secret.
        secret: String,
        /// Its number, from 1 on; the index is the first.
        number: usize,
        /// How many chunks the release has.
        chunks: usize,
    },
    /// A chunk Secret is listed twice, or was given twice.
    #[error("chunk Secret {secret} occurs twice")]
    DuplicateChunk {
        /// The name of the chunk Secret.
        secret: String,
    },
    /// The release is too large after decompression.
    #[error("the release has more than {limit} bytes after decompression")]
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// The compressed data is damaged or incomplete.
    #[error("the compressed data is damaged or incomplete: {0}")]
    Compression(#[source] io::Error),
    /// The content is not the JSON of a release.
    #[error("the content is not a release: {0}")]
    Json(#[source] serde_json::Error),
    /// The content belongs to another index Secret.
    #[error("the content is the release of Secret {found}")]
    OtherRelease {
        /// The name of that index Secret.
        found: String,
    },
}

/// The names of the chunk Secrets that belong to an index Secret.
///
/// # Errors
/// The Secret is no index Secret, or its list is damaged or too long.
pub fn extra_chunk_names(index: &Value) -> Result<Vec<String>, DecodeReleaseError> {
    chunk_names(index).map_err(|problem| decode_error(index, problem))
}

/// Reads a release from its index Secret and its chunk Secrets, in any order. Chunk Secrets of other
/// releases are ignored. `limit` bounds the decompressed bytes ([`MAX_DECODED_BYTES`]).
///
/// # Errors
/// A Secret is missing or damaged. A release that is being written lacks chunks for a moment.
pub fn decode_release(
    index: &Value,
    chunks: &[Value],
    limit: u64,
) -> Result<Release, DecodeReleaseError> {
    decode(index, chunks, limit).map_err(|problem| decode_error(index, problem))
}

fn decode_error(index: &Value, problem: DecodeProblem) -> DecodeReleaseError {
    DecodeReleaseError {
        namespace: index["metadata"]["namespace"].as_str().unwrap_or_default().to_owned(),
        index: name(index).to_owned(),
        problem,
    }
}

fn decode(index: &Value, chunks: &[Value], limit: u64) -> Result<Release, DecodeProblem> {
    let names = chunk_names(index)?;
    let mut by_name = BTreeMap::new();
    for chunk in chunks {
        let duplicate = by_name.insert(name(chunk), chunk).is_some();
        if duplicate && names.iter().any(|listed| listed == name(chunk)) {
            return Err(DecodeProblem::DuplicateChunk { secret: name(chunk).to_owned() });
        }
    }
    let mut compressed = data(index, "chunk")?;
    for (at, listed) in names.iter().enumerate() {
        let Some(chunk) = by_name.remove(listed.as_str()) else {
            let secret = listed.clone();
            return Err(if names[..at].contains(listed) {
                DecodeProblem::DuplicateChunk { secret }
            } else {
                DecodeProblem::MissingChunk { secret, number: at + 2, chunks: names.len() + 1 }
            });
        };
        check_type(chunk, CHUNK_SECRET_TYPE)?;
        compressed.append(&mut data(chunk, "chunk")?);
    }
    let release = decompress(&compressed, limit)?;
    let found = secret_name(&release.name, release.version);
    if found != name(index) {
        return Err(DecodeProblem::OtherRelease { found });
    }
    Ok(release)
}

fn chunk_names(index: &Value) -> Result<Vec<String>, DecodeProblem> {
    check_type(index, INDEX_SECRET_TYPE)?;
    let listed = data(index, "extraChunks")?;
    let names: Option<Vec<String>> =
        serde_json::from_slice(&listed).map_err(DecodeProblem::ChunkNames)?;
    let names = names.unwrap_or_default();
    if names.len() + 1 > MAX_CHUNKS {
        return Err(DecodeProblem::TooManyChunks { chunks: names.len() + 1 });
    }
    Ok(names)
}

fn decompress(compressed: &[u8], limit: u64) -> Result<Release, DecodeProblem> {
    let mut reader = BufReader::new(MultiGzDecoder::new(compressed).take(limit.saturating_add(1)));
    let mut decoder = serde_json::Deserializer::from_reader(&mut reader);
    let release = Release::deserialize(&mut decoder);
    let rest = match &release {
        // The checksum follows the last byte.
        Ok(_) => io::copy(&mut reader, &mut io::sink()).map(|_| ()),
        Err(_) => Ok(()),
    };
    if reader.get_ref().limit() == 0 {
        return Err(DecodeProblem::TooLarge { limit });
    }
    let release = release.map_err(|error| match error.classify() {
        serde_json::error::Category::Io => DecodeProblem::Compression(error.into()),
        _ => DecodeProblem::Json(error),
    })?;
    rest.map_err(DecodeProblem::Compression)?;
    Ok(release)
}

fn check_type(secret: &Value, wanted: &'static str) -> Result<(), DecodeProblem> {
    if secret["type"] == wanted {
        return Ok(());
    }
    Err(DecodeProblem::WrongType {
        secret: name(secret).to_owned(),
        found: secret["type"].as_str().unwrap_or_default().to_owned(),
        wanted,
    })
}

fn data(secret: &Value, key: &'static str) -> Result<Vec<u8>, DecodeProblem> {
    secret["data"][key]
        .as_str()
        .and_then(|text| decode_base64(text).ok())
        .ok_or_else(|| DecodeProblem::NoData { secret: name(secret).to_owned(), key })
}

fn name(secret: &Value) -> &str {
    secret["metadata"]["name"].as_str().unwrap_or_default()
}
