//! Objects of a ClusterObjectSet: those in the spec, and those in Secrets.

use crate::digest::NumberForm;
use crate::ownership::effective_protection;
use flate2::read::MultiGzDecoder;
use mainstay_api::{
    ClusterObjectSetSpec, CollisionProtection, ObjectSetObject, ObjectSourceReference,
};
use mainstay_gocompat::values::json_kind;
use mainstay_gocompat::{decode_base64, quote};
use mainstay_object::{Gvk, NamespacedName, Object};
use mainstay_schema::strict;
use serde_json::Value;
use std::io::Read as _;

/// How large a compressed object may be after decompression.
const MAX_OBJECT_BYTES: usize = 10 * 1024 * 1024;

/// A phase with its objects.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedPhase {
    /// Name.
    pub name: String,
    /// The objects, as they were given.
    pub objects: Vec<ResolvedObject>,
}

/// An object of a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedObject {
    /// The object, as it was given.
    pub object: Object,
    /// Where its numbers come from.
    pub numbers: NumberForm,
    /// When an existing object may be taken over.
    pub collision_protection: CollisionProtection,
}

/// A Secret, or why it could not be read.
#[derive(Clone, Copy, Debug)]
pub enum SecretLookup<'a> {
    /// The Secret.
    Found(&'a Object),
    /// The message of the API, such as `secrets "x" not found`.
    Failed(&'a str),
}

/// Why an object of a phase has no content, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveObjectError {
    /// The object is neither in the spec nor in a Secret.
    #[error("object in phase {} has neither object nor ref", quote(.phase))]
    Nothing {
        /// Name of the phase.
        phase: String,
    },
    /// The object cannot be read from the Secret.
    #[error("resolving ref in phase {}: {problem}", quote(.phase))]
    Reference {
        /// Name of the phase.
        phase: String,
        /// Why.
        problem: ReferenceError,
    },
}

/// Why an object cannot be read from a Secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The Secret cannot be read.
    #[error("getting Secret {secret}: {message}")]
    Get {
        /// Namespace and name.
        secret: String,
        /// The message of the API.
        message: String,
    },
    /// The Secret lacks the key.
    #[error("key {} not found in Secret {secret}", quote(.key))]
    Key {
        /// Namespace and name.
        secret: String,
        /// The key.
        key: String,
    },
    /// The value cannot be decompressed.
    #[error("decompressing key {} in Secret {secret}: {message}", quote(.key))]
    Decompress {
        /// Namespace and name.
        secret: String,
        /// The key.
        key: String,
        /// Why.
        message: String,
    },
    /// The decompressed value is too large.
    #[error(
        "decompressed data for key {} in Secret {secret} exceeds maximum size ({MAX_OBJECT_BYTES} bytes)",
        quote(.key)
    )]
    TooLarge {
        /// Namespace and name.
        secret: String,
        /// The key.
        key: String,
    },
    /// The value is no JSON object.
    #[error("unmarshaling object from key {} in Secret {secret}: {message}", quote(.key))]
    Json {
        /// Namespace and name.
        secret: String,
        /// The key.
        key: String,
        /// Why.
        message: String,
    },
}

/// The Secrets that a ClusterObjectSet refers to, each once, in order.
pub fn referenced_secrets(spec: &ClusterObjectSetSpec) -> Vec<NamespacedName> {
    let mut secrets: Vec<NamespacedName> = Vec::new();
    let objects = spec.phases.iter().flat_map(|phase| &phase.objects);
    for reference in objects.filter_map(named_reference) {
        let name = NamespacedName::new(&*reference.namespace, &*reference.name);
        if !secrets.contains(&name) {
            secrets.push(name);
        }
    }
    secrets
}

/// The message of a blocked ClusterObjectSet whose Secrets can be changed; none if they cannot. `immutable`
/// is the field of a Secret; it returns none if the Secret does not exist, which is reported later.
pub fn mutable_secrets_message(
    spec: &ClusterObjectSetSpec,
    mut immutable: impl FnMut(&NamespacedName) -> Option<bool>,
) -> Option<String> {
    let mutable: Vec<String> = referenced_secrets(spec)
        .iter()
        .filter(|secret| immutable(secret) == Some(false))
        .map(|secret| format!("{}/{}", secret.namespace, secret.name))
        .collect();
    (!mutable.is_empty()).then(|| {
        format!(
            "the following secrets are not immutable (referenced secrets must have immutable set to true): {}",
            mutable.join(", ")
        )
    })
}

/// The objects of all phases.
///
/// # Errors
/// The first object that cannot be read.
pub fn resolve_phases<'a>(
    spec: &ClusterObjectSetSpec,
    mut secret: impl FnMut(&ObjectSourceReference) -> SecretLookup<'a>,
) -> Result<Vec<ResolvedPhase>, ResolveObjectError> {
    let mut phases = Vec::with_capacity(spec.phases.len());
    for phase in &spec.phases {
        let mut objects = Vec::with_capacity(phase.objects.len());
        for object in &phase.objects {
            let (content, numbers) = if let Some(object) = &object.object {
                (object.clone(), NumberForm::Whole)
            } else if let Some(reference) = named_reference(object) {
                let content = read_reference(reference, secret(reference)).map_err(|problem| {
                    ResolveObjectError::Reference { phase: phase.name.clone(), problem }
                })?;
                (content, NumberForm::Float)
            } else {
                return Err(ResolveObjectError::Nothing { phase: phase.name.clone() });
            };
            objects.push(ResolvedObject {
                object: content,
                numbers,
                collision_protection: effective_protection(
                    &spec.collision_protection,
                    &phase.collision_protection,
                    &object.collision_protection,
                ),
            });
        }
        phases.push(ResolvedPhase { name: phase.name.clone(), objects });
    }
    Ok(phases)
}

/// The kinds of all objects, which the controller watches before the first phase. Upstream needs all of them to
/// exist then, so a CustomResourceDefinition and a resource of it in one set never start.
pub fn watched_kinds(phases: &[ResolvedPhase]) -> Vec<Gvk> {
    let mut kinds: Vec<Gvk> = Vec::new();
    for object in phases.iter().flat_map(|phase| &phase.objects) {
        let kind = object.object.gvk();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

fn named_reference(object: &ObjectSetObject) -> Option<&ObjectSourceReference> {
    object.reference.as_ref().filter(|reference| !reference.name.is_empty())
}

/// The object under a key of a Secret.
///
/// # Errors
/// The Secret or the key is missing, or the value is no object.
fn read_reference(
    reference: &ObjectSourceReference,
    secret: SecretLookup<'_>,
) -> Result<Object, ReferenceError> {
    let (name, key) = (format!("{}/{}", reference.namespace, reference.name), &reference.key);
    let object = match secret {
        SecretLookup::Found(object) => object,
        SecretLookup::Failed(message) => {
            return Err(ReferenceError::Get { secret: name, message: message.to_owned() });
        }
    };
    let bytes = object.str(&["data", key]).and_then(|text| decode_base64(text).ok());
    let Some(bytes) = bytes else {
        return Err(ReferenceError::Key { secret: name, key: key.clone() });
    };
    let bytes = decompressed(bytes).map_err(|problem| match problem {
        Some(message) => {
            ReferenceError::Decompress { secret: name.clone(), key: key.clone(), message }
        }
        None => ReferenceError::TooLarge { secret: name.clone(), key: key.clone() },
    })?;
    parse_object(&bytes).map_err(|message| ReferenceError::Json {
        secret: name,
        key: key.clone(),
        message,
    })
}

/// The bytes after decompression, if they are compressed. The error is none if they are too many.
fn decompressed(bytes: Vec<u8>) -> Result<Vec<u8>, Option<String>> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let limit = u64::try_from(MAX_OBJECT_BYTES).unwrap_or(u64::MAX);
    let mut out = Vec::new();
    let mut reader = MultiGzDecoder::new(&*bytes).take(limit + 1);
    reader.read_to_end(&mut out).map_err(|error| Some(error.to_string()))?;
    if out.len() > MAX_OBJECT_BYTES { Err(None) } else { Ok(out) }
}

fn parse_object(bytes: &[u8]) -> Result<Object, String> {
    match strict::parse(bytes) {
        Ok(parsed) => match parsed.value {
            Value::Object(fields) => {
                Object::from_value(Value::Object(fields)).map_err(|error| error.to_string())
            }
            Value::Null => Ok(Object::default()),
            other => Err(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                json_kind(&other)
            )),
        },
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::json;
    use std::io::Write as _;

    fn secret(value: &[u8]) -> Object {
        let data = json!({"data": {"k": STANDARD.encode(value)}});
        Object::from_value(data).unwrap()
    }

    fn compressed(value: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(value).unwrap();
        encoder.finish().unwrap()
    }

    fn read(secret: SecretLookup<'_>, key: &str) -> Result<Object, String> {
        let reference = ObjectSourceReference {
            name: "s".to_owned(),
            namespace: "n".to_owned(),
            key: key.to_owned(),
        };
        read_reference(&reference, secret).map_err(|error| error.to_string())
    }

    #[test]
    fn compressed_values_are_read_up_to_the_limit() {
        let plain = secret(b"{\"kind\":\"A\"}");
        assert_eq!(read(SecretLookup::Found(&plain), "k").unwrap().kind(), "A");
        let packed = secret(&compressed(b"{\"kind\":\"A\"}"));
        // shows OLMV1-145
        assert_eq!(read(SecretLookup::Found(&packed), "k").unwrap().kind(), "A");
        let large = secret(&compressed(&vec![b' '; MAX_OBJECT_BYTES + 1]));
        // shows OLMV1-145
        assert_eq!(
            read(SecretLookup::Found(&large), "k").unwrap_err(),
            "decompressed data for key \"k\" in Secret n/s exceeds maximum size (10485760 bytes)"
        );
    }

    #[test]
    fn base64_with_line_breaks_is_read_as_go_reads_it() {
        let mut wrapped = STANDARD.encode(b"{\"kind\":\"A\"}");
        wrapped.insert_str(8, "\r\n");
        wrapped.push('\n');
        let secret = Object::from_value(json!({"data": {"k": wrapped}})).unwrap();
        assert_eq!(read(SecretLookup::Found(&secret), "k").unwrap().kind(), "A");
    }

    #[test]
    fn missing_secrets_and_keys_and_bad_json_have_the_texts_of_upstream() {
        let missing = read(SecretLookup::Failed("secrets \"s\" not found"), "k");
        // shows OLMV1-145
        assert_eq!(missing.unwrap_err(), "getting Secret n/s: secrets \"s\" not found");
        let good = secret(b"{}");
        let error = read(SecretLookup::Found(&good), "other").unwrap_err();
        // shows OLMV1-145
        assert_eq!(error, "key \"other\" not found in Secret n/s");
        let bad = secret(b"{nope");
        assert_eq!(
            read(SecretLookup::Found(&bad), "k").unwrap_err(),
            "unmarshaling object from key \"k\" in Secret n/s: invalid character 'n' looking for \
             beginning of object key string"
        );
        let list = secret(b"[1]");
        assert_eq!(
            read(SecretLookup::Found(&list), "k").unwrap_err(),
            "unmarshaling object from key \"k\" in Secret n/s: json: cannot unmarshal array into Go \
             value of type map[string]interface {}"
        );
    }

    #[test]
    fn mutable_secrets_are_listed_once_and_absent_ones_are_not() {
        let object = |name: &str| json!({"ref": {"name": name, "namespace": "n", "key": "k"}});
        let spec: ClusterObjectSetSpec = serde_json::from_value(json!({
            "phases": [{"name": "p", "objects": [object("a"), object("a"), object("b"), object("c")]}],
        }))
        .unwrap();
        let message = mutable_secrets_message(&spec, |secret| match &*secret.name {
            "a" => Some(false),
            "b" => None,
            _ => Some(true),
        });
        assert_eq!(
            message.unwrap(),
            "the following secrets are not immutable (referenced secrets must have immutable set to \
             true): n/a"
        );
        let empty: ClusterObjectSetSpec =
            serde_json::from_value(json!({"phases": [{"name": "p", "objects": [{}]}]})).unwrap();
        let error = resolve_phases(&empty, |_| SecretLookup::Failed("")).unwrap_err();
        assert_eq!(error.to_string(), "object in phase \"p\" has neither object nor ref");
    }
}
