//! The Secrets of a release: one index Secret with the first part of the compressed release, and a chunk Secret
//! for each further part.

use crate::release::{Release, ReleaseStatus};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compression, GzBuilder};
use jiff::Timestamp;
use mainstay_gocompat::quote;
use mainstay_object::fnv::fnv64a;
use serde_json::{Map, Value, json};
use std::io::Write;

/// The type of index Secrets.
pub const INDEX_SECRET_TYPE: &str = "operatorframework.io/index.v1";
/// The type of chunk Secrets.
pub const CHUNK_SECRET_TYPE: &str = "operatorframework.io/chunk.v1";
/// The label `owner` of all Secrets of releases.
pub const STORAGE_OWNER: &str = "operator-controller";
/// How many bytes one Secret has at most: a Secret has room for 1 MiB, and the index needs some of it.
pub const CHUNK_BYTES: usize = (1024 - 8) * 1024;
/// Into how many Secrets a release is split at most, and of how many it is read.
pub const MAX_CHUNKS: usize = 11;

/// The letters in the names of chunk Secrets.
const NAME_LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz123456";

/// A release does not fit, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "create: failed to encode release {name}: release too large: {name} requires {chunks} chunks, \
     which exceeds the maximum of {MAX_CHUNKS}",
    name = quote(.release)
)]
pub struct EncodeReleaseError {
    /// The name of the release.
    pub release: String,
    /// How many Secrets the release would need.
    pub chunks: usize,
}

/// Whether the Secrets are new. Upstream notes the seconds in labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretWrite<'a> {
    /// The release is stored for the first time.
    Create(Timestamp),
    /// The release replaces an earlier state of itself. New chunk Secrets are written before the index Secret,
    /// and old ones are deleted after it.
    Update {
        /// The label `createdAt` of the stored index Secret.
        created_at: &'a str,
        /// The time of the change.
        modified: Timestamp,
    },
}

/// A release, compressed and split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedRelease {
    name: String,
    version: i64,
    status: ReleaseStatus,
    /// The name of the index Secret.
    key: String,
    /// The parts; never empty.
    chunks: Vec<Vec<u8>>,
}

/// The name of the index Secret of a release. The API server refuses the Secret if the name has more than
/// 63 characters, because it is a label, too.
pub fn secret_name(release: &str, version: i64) -> String {
    format!("sh.helm.release.v1.{release}.v{version}")
}

/// The label selector of the index Secrets of a release, or of all releases.
pub fn index_selector(release: Option<&str>) -> String {
    let name = release.map(|name| format!(",name={name}")).unwrap_or_default();
    format!("owner={STORAGE_OWNER},type=index{name}")
}

impl EncodedRelease {
    /// Compresses a release and splits it.
    ///
    /// # Errors
    /// The release needs more than [`MAX_CHUNKS`] Secrets.
    pub fn new(release: &Release) -> Result<Self, EncodeReleaseError> {
        let chunks: Vec<Vec<u8>> = compress(release.to_json().as_bytes())
            .chunks(CHUNK_BYTES)
            .map(<[u8]>::to_vec)
            .collect();
        if chunks.len() > MAX_CHUNKS {
            return Err(EncodeReleaseError { release: release.name.clone(), chunks: chunks.len() });
        }
        Ok(Self {
            name: release.name.clone(),
            version: release.version,
            status: release.info.status,
            key: secret_name(&release.name, release.version),
            chunks,
        })
    }

    /// The name of the index Secret.
    pub fn index_name(&self) -> &str {
        &self.key
    }

    /// The index Secret. It is written before the chunk Secrets, which refer to its uid.
    pub fn index_secret(
        &self,
        namespace: &str,
        owner_references: &[Value],
        write: SecretWrite<'_>,
    ) -> Value {
        let names: Vec<String> = self.extra_chunks().map(|chunk| self.chunk_name(chunk)).collect();
        let mut labels = labels(&[
            ("name", &self.name),
            ("owner", STORAGE_OWNER),
            ("status", self.status.as_str()),
            ("version", &self.version.to_string()),
            ("key", &self.key),
            ("type", "index"),
        ]);
        match write {
            SecretWrite::Create(created) => note_time(&mut labels, "createdAt", created),
            SecretWrite::Update { created_at, modified } => {
                labels.insert("createdAt".into(), created_at.into());
                note_time(&mut labels, "modifiedAt", modified);
            }
        }
        let first = self.chunks.first().map(Vec::as_slice).unwrap_or_default();
        let mut metadata = json!({"name": self.key, "namespace": namespace, "labels": labels});
        if !owner_references.is_empty() {
            metadata["ownerReferences"] = owner_references.into();
        }
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "immutable": false,
            "type": INDEX_SECRET_TYPE,
            "data": {
                "chunk": STANDARD.encode(first),
                "extraChunks": STANDARD.encode(Value::from(names).to_string()),
            },
        })
    }

    /// The chunk Secrets, of which the index Secret with this uid is the owner.
    pub fn chunk_secrets(
        &self,
        namespace: &str,
        index_uid: &str,
        write: SecretWrite<'_>,
    ) -> Vec<Value> {
        let mut labels = labels(&[("owner", STORAGE_OWNER), ("key", &self.key), ("type", "chunk")]);
        // Upstream forgets the time when it writes the chunks again.
        if let SecretWrite::Create(created) = write {
            note_time(&mut labels, "createdAt", created);
        }
        let secret = |chunk: &[u8]| {
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {
                    "name": self.chunk_name(chunk),
                    "namespace": namespace,
                    "labels": labels.clone(),
                    "ownerReferences": [{
                        "apiVersion": "v1",
                        "kind": "Secret",
                        "name": self.key,
                        "uid": index_uid,
                        "controller": true,
                        "blockOwnerDeletion": false,
                    }],
                },
                "immutable": true,
                "type": CHUNK_SECRET_TYPE,
                "data": {"chunk": STANDARD.encode(chunk)},
            })
        };
        self.extra_chunks().map(secret).collect()
    }

    fn extra_chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks.iter().skip(1).map(Vec::as_slice)
    }

    fn chunk_name(&self, chunk: &[u8]) -> String {
        format!("{}-{}", self.key, hash(chunk))
    }
}

fn labels(pairs: &[(&str, &str)]) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect()
}

fn note_time(labels: &mut Map<String, Value>, name: &str, time: Timestamp) {
    labels.insert(name.to_owned(), time.as_second().to_string().into());
}

/// Compresses as upstream does: the best level, and a header without time and name.
fn compress(json: &[u8]) -> Vec<u8> {
    let mut encoder = GzBuilder::new().operating_system(255).write(Vec::new(), Compression::best());
    // Writes to memory do not fail.
    let _ = encoder.write_all(json);
    encoder.finish().unwrap_or_default()
}

/// The hash in the name of a chunk Secret: FNV-1a with 64 bits, in base 32 without padding.
fn hash(chunk: &[u8]) -> String {
    // 13 letters of 5 bits each: the last one has four bits of the hash.
    let bits = u128::from(fnv64a(chunk)) << 1;
    (0..13)
        .rev()
        .map(|place| {
            char::from(NAME_LETTERS[usize::try_from(bits >> (5 * place) & 31).unwrap_or(0)])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_chunk_secrets_have_the_hash_of_upstream() {
        // Written by Go's hash/fnv and encoding/base32.
        let compressed: Value =
            serde_json::from_str(include_str!("../tests/it/helm/compressed.json")).unwrap();
        let bytes = STANDARD.decode(compressed["gzip"].as_str().unwrap()).unwrap();
        assert_eq!(hash(&bytes), compressed["hash"]);
        assert_eq!(hash(b""), "zpzjzzeeeirsk");
    }

    #[test]
    fn labels_of_the_index_tell_what_is_stored() {
        let mut release = Release { name: "ext".into(), version: 12, ..Release::default() };
        release.info.status = ReleaseStatus::PendingUpgrade;
        let encoded = EncodedRelease::new(&release).unwrap();
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let created = encoded.index_secret("system", &[], SecretWrite::Create(at(5)));
        assert_eq!(
            created["metadata"],
            json!({
                "name": "sh.helm.release.v1.ext.v12",
                "namespace": "system",
                "labels": {
                    "createdAt": "5",
                    "key": "sh.helm.release.v1.ext.v12",
                    "name": "ext",
                    "owner": "operator-controller",
                    "status": "pending-upgrade",
                    "type": "index",
                    "version": "12",
                },
            })
        );
        let write = SecretWrite::Update { created_at: "5", modified: at(9) };
        let labels = &encoded.index_secret("system", &[], write)["metadata"]["labels"];
        assert_eq!((&labels["createdAt"], &labels["modifiedAt"]), (&"5".into(), &"9".into()));
        assert_eq!(index_selector(Some("ext")), "owner=operator-controller,type=index,name=ext");
    }
}
