//! Secrets with objects: the objects of a ClusterObjectSet, packed into immutable Secrets.
//!
//! A ClusterObjectSet refers to keys of Secrets, because its own size is limited. Keys and names are hashes of
//! the content. So the same objects give the same references, and a crash between two writes leaves Secrets
//! that the next attempt finds again.

use crate::phase::ObjectPhase;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use flate2::Compression;
use flate2::write::GzEncoder;
use mainstay_api::names::olm_v1::{OBJECT_DATA_SECRET_TYPE, OWNER_NAME_LABEL, REVISION_NAME_LABEL};
use mainstay_api::{ObjectSetObject, ObjectSetPhase, ObjectSourceReference};
use mainstay_gocompat::json::{Html, JsonWriter, Numbers};
use mainstay_object::{Object, OwnerReference};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

/// How much data a Secret has at most. A larger object is compressed.
const MAX_SECRET_BYTES: usize = 900 * 1024;

/// Why objects cannot be packed, in upstream's words.
#[derive(Debug, thiserror::Error)]
pub enum PackObjectsError {
    /// An object is too large even when it is compressed.
    #[error(
        "object in phase {phase} index {index} exceeds maximum Secret data size ({bytes} bytes > {MAX_SECRET_BYTES} bytes) even after compression"
    )]
    TooLarge {
        /// Index of the phase.
        phase: usize,
        /// Index of the object in the phase.
        index: usize,
        /// Size of the compressed object.
        bytes: usize,
    },
    /// Compression failed.
    #[error("compressing object in phase {phase} index {index}: {source}")]
    Compress {
        /// Index of the phase.
        phase: usize,
        /// Index of the object in the phase.
        index: usize,
        /// The error.
        source: std::io::Error,
    },
}

/// A Secret with objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectSecret {
    /// Name, derived from the data.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Name of the ClusterObjectSet that refers to the Secret.
    pub object_set: String,
    /// Name of the ClusterExtension.
    pub extension: String,
    /// JSON of objects by key, compressed if it is large.
    pub data: BTreeMap<String, Vec<u8>>,
}

impl ObjectSecret {
    /// The Secret as it is created: immutable, and without owner. The owner reference is added once the
    /// ClusterObjectSet has a uid, see [`secret_owner_patch`].
    pub fn to_object(&self) -> Object {
        let data: Map<String, Value> = self
            .data
            .iter()
            .map(|(key, bytes)| (key.clone(), STANDARD.encode(bytes).into()))
            .collect();
        let mut object = Object::default();
        object.set(&["apiVersion"], "v1".into());
        object.set(&["kind"], "Secret".into());
        object.set(&["metadata", "name"], self.name.clone().into());
        object.set(&["metadata", "namespace"], self.namespace.clone().into());
        object.set_label(REVISION_NAME_LABEL, &*self.object_set);
        object.set_label(OWNER_NAME_LABEL, &*self.extension);
        object.set(&["immutable"], true.into());
        object.set(&["type"], OBJECT_DATA_SECRET_TYPE.into());
        object.set(&["data"], Value::Object(data));
        object
    }
}

/// The merge patch that makes a ClusterObjectSet the controller of a Secret with its objects.
pub fn secret_owner_patch(owner: &OwnerReference) -> Value {
    json!({"metadata": {"ownerReferences": [owner]}})
}

/// Packs objects into Secrets. Returns phases with references in place of the objects, and the Secrets.
///
/// # Errors
/// An object is too large even when it is compressed.
pub(crate) fn pack_objects(
    phases: &[ObjectPhase],
    object_set: &str,
    extension: &str,
    namespace: &str,
) -> Result<(Vec<ObjectSetPhase>, Vec<ObjectSecret>), PackObjectsError> {
    let mut packed: Vec<ObjectSetPhase> = phases
        .iter()
        .map(|phase| ObjectSetPhase {
            name: phase.name.clone(),
            objects: vec![ObjectSetObject::default(); phase.objects.len()],
            ..ObjectSetPhase::default()
        })
        .collect();
    let mut secrets = Vec::new();
    let mut open = OpenSecret::default();
    let mut close = |open: &mut OpenSecret, packed: &mut Vec<ObjectSetPhase>| {
        let OpenSecret { data, places, .. } = std::mem::take(open);
        if data.is_empty() {
            return;
        }
        let name = secret_name(object_set, &data);
        for (phase, index, key) in places {
            packed[phase].objects[index].reference = Some(ObjectSourceReference {
                name: name.clone(),
                namespace: namespace.to_owned(),
                key,
            });
        }
        secrets.push(ObjectSecret {
            name,
            namespace: namespace.to_owned(),
            object_set: object_set.to_owned(),
            extension: extension.to_owned(),
            data,
        });
    };
    for (phase, objects) in phases.iter().enumerate() {
        for (index, object) in objects.objects.iter().enumerate() {
            let bytes = object_bytes(object, phase, index)?;
            let key = URL_SAFE_NO_PAD.encode(Sha256::digest(&bytes));
            if !open.data.contains_key(&key) {
                if open.bytes + bytes.len() > MAX_SECRET_BYTES {
                    close(&mut open, &mut packed);
                }
                open.bytes += bytes.len();
                open.data.insert(key.clone(), bytes);
            }
            open.places.push((phase, index, key));
        }
    }
    close(&mut open, &mut packed);
    Ok((packed, secrets))
}

/// The Secret that is being filled.
#[derive(Default)]
struct OpenSecret {
    data: BTreeMap<String, Vec<u8>>,
    bytes: usize,
    /// Phase, object and key.
    places: Vec<(usize, usize, String)>,
}

/// The JSON of an object, compressed if it is large.
fn object_bytes(object: &Object, phase: usize, index: usize) -> Result<Vec<u8>, PackObjectsError> {
    let mut bytes = object_json(object.fields(), Numbers::Object).into_bytes();
    if bytes.len() > MAX_SECRET_BYTES {
        bytes = compress(&bytes).map_err(|source| PackObjectsError::Compress {
            phase,
            index,
            source,
        })?;
    }
    if bytes.len() > MAX_SECRET_BYTES {
        return Err(PackObjectsError::TooLarge { phase, index, bytes: bytes.len() });
    }
    Ok(bytes)
}

/// The JSON of an object as Go writes it.
pub(crate) fn object_json(fields: &Map<String, Value>, numbers: Numbers) -> String {
    let mut out = String::new();
    JsonWriter::compact(&mut out, Html::Escaped, numbers).object(fields);
    out
}

fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn secret_name(object_set: &str, data: &BTreeMap<String, Vec<u8>>) -> String {
    let mut hash = Sha256::new();
    for (key, bytes) in data {
        hash.update(key.as_bytes());
        hash.update(bytes);
    }
    let mut name = format!("{object_set}-");
    for byte in &hash.finalize()[..8] {
        let _ = write!(name, "{byte:02x}");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_object::Gvk;

    fn config_map(name: &str, data: &str) -> Object {
        let mut object = Object::new(&Gvk::from_api_version("v1", "ConfigMap"), name);
        object.set(&["data", "x"], data.into());
        object
    }

    fn pack(
        objects: Vec<Object>,
    ) -> Result<(Vec<ObjectSetPhase>, Vec<ObjectSecret>), PackObjectsError> {
        let phase = ObjectPhase { name: "configuration".to_owned(), objects };
        pack_objects(&[phase], "e-1", "e", "olmv1-system")
    }

    /// Text that a compressor cannot shorten much.
    fn noise(bytes: usize) -> String {
        let blocks = (0..bytes.div_ceil(32)).map(|at| Sha256::digest(at.to_string().as_bytes()));
        STANDARD.encode(blocks.flatten().collect::<Vec<u8>>())
    }

    #[test]
    fn objects_fill_a_secret_up_to_the_limit_and_equal_ones_are_stored_once() {
        let large = "x".repeat(500 * 1024);
        let objects = vec![
            config_map("a", &large),
            config_map("a", &large),
            config_map("small", "1"),
            config_map("b", &large),
        ];
        let (phases, secrets) = pack(objects).unwrap();
        let sizes: Vec<usize> = secrets.iter().map(|secret| secret.data.len()).collect();
        // shows OLMV1-140
        assert_eq!(sizes, [2, 1]);
        let references: Vec<&ObjectSourceReference> =
            phases[0].objects.iter().filter_map(|object| object.reference.as_ref()).collect();
        assert_eq!(references.len(), 4);
        assert_eq!(references[0], references[1]);
        assert_eq!(references[2].name, secrets[0].name);
        assert_eq!(references[3].name, secrets[1].name);
        assert_eq!(references[3].key.len(), 43);
        assert_eq!(secrets[0].name.len(), "e-1-".len() + 16);
        let (again, _) = pack(vec![config_map("small", "1")]).unwrap();
        assert_ne!(again[0].objects[0].reference, phases[0].objects[2].reference);
    }

    #[test]
    fn a_single_large_object_is_compressed_or_refused() {
        let (_, secrets) = pack(vec![config_map("a", &"x".repeat(2_000_000))]).unwrap();
        let bytes = secrets[0].data.values().next().unwrap();
        // shows OLMV1-140
        assert_eq!(bytes[..2], [0x1f, 0x8b]);
        let error = pack(vec![config_map("a", &noise(1_500_000))]).unwrap_err().to_string();
        assert!(error.starts_with("object in phase 0 index 0 exceeds maximum Secret data size ("));
        // shows OLMV1-140
        assert!(error.ends_with(" bytes > 921600 bytes) even after compression"), "{error}");
    }

    #[test]
    fn secret_is_immutable_and_has_type_and_labels() {
        let (_, secrets) = pack(vec![config_map("a", "<1>")]).unwrap();
        let object = secrets[0].to_object();
        let json = secrets[0].data.values().next().unwrap();
        assert_eq!(
            String::from_utf8_lossy(json),
            "{\"apiVersion\":\"v1\",\"data\":{\"x\":\"\\u003c1\\u003e\"},\"kind\":\"ConfigMap\",\
             \"metadata\":{\"name\":\"a\"}}"
        );
        assert_eq!(object.bool(&["immutable"]), Some(true));
        assert_eq!(object.str(&["type"]), Some("olm.operatorframework.io/object-data"));
        assert_eq!(object.label("olm.operatorframework.io/revision-name"), Some("e-1"));
        assert_eq!(object.label("olm.operatorframework.io/owner-name"), Some("e"));
    }
}
