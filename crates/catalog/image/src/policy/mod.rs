//! Signature policies: containers' `policy.json`, and cosign signatures by key.
//!
//! A policy states requirements for each image name: none, refusal, or a signature. All
//! requirements of the most specific scope must hold; an empty list is an error.
//!
//! PGP signatures (`signedBy`) and keyless signatures (Fulcio, Rekor) are not supported. A policy
//! that requires them refuses the image with that reason; the requirement is never skipped.

mod cosign;
mod strict;

pub use cosign::{Key, KeyError, SignatureError, signature_tag, verify};

use crate::{digest::Digest, reference::Reference};
use serde_json::Value;
use std::collections::BTreeMap;

/// Why a policy cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The policy is not JSON.
    #[error("the policy is not valid JSON (line {line}, column {column})")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
    /// An object has a duplicate key.
    #[error("the policy has a {0}: remove one of them")]
    Duplicate(String),
    /// A part is invalid.
    #[error("the policy's {place}: {why}")]
    Part {
        /// The path of the part.
        place: String,
        /// Why it is invalid.
        why: String,
    },
}

/// A requirement for an image.
#[derive(Clone, Debug, PartialEq)]
pub enum Requirement {
    /// Every image is accepted.
    Accept,
    /// Every image is refused.
    Reject,
    /// One of the keys must have signed the image.
    Signed {
        /// The keys.
        keys: Vec<Key>,
        /// The identity in the signature.
        identity: Identity,
    },
    /// An unsupported requirement, by name. The image is refused.
    Unsupported(&'static str),
}

/// The identity that a signature must name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// The repository, and the tag unless the reference has a digest.
    #[default]
    RepoDigestOrExact,
    /// The repository and the tag.
    Exact,
    /// The repository.
    Repository,
    /// A fixed reference.
    ExactReference(Reference),
    /// A fixed repository.
    ExactRepository(Reference),
    /// The reference with a replaced prefix.
    Remap {
        /// The prefix of the image's name.
        prefix: String,
        /// The prefix of the signed name.
        signed: String,
    },
}

/// Why a policy refuses an image.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The policy rejects it.
    #[error("running image {0} is rejected by policy")]
    Rejected(String),
    /// The policy has an unsupported requirement.
    #[error("the policy for {0} requires {1}, which is not supported: the image is refused")]
    Unsupported(String, &'static str),
    /// No signature is valid.
    #[error("{image} is not signed as the policy requires{}", reasons(.why))]
    Unsigned {
        /// The image.
        image: String,
        /// Why each signature is invalid.
        why: Vec<SignatureError>,
    },
}

fn reasons(why: &[SignatureError]) -> String {
    if why.is_empty() {
        return ": it has no signature".to_owned();
    }
    let why: Vec<String> = why.iter().take(3).map(ToString::to_string).collect();
    format!(": {}", why.join("; "))
}

/// A signature policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    default: Vec<Requirement>,
    /// Requirements for images from registries, by scope.
    scopes: BTreeMap<String, Vec<Requirement>>,
}

/// A signature of an image: the signed payload, and the signature in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The signed bytes.
    pub payload: Vec<u8>,
    /// The annotation `dev.cosignproject.cosign/signature`.
    pub base64: String,
}

impl Policy {
    /// Accepts every image: the behavior without a policy.
    pub fn accept_anything() -> Self {
        Self { default: vec![Requirement::Accept], scopes: BTreeMap::new() }
    }

    /// Parses a policy. `file` reads key files.
    pub fn read(
        bytes: &[u8],
        file: impl Fn(&str) -> std::io::Result<Vec<u8>>,
    ) -> Result<Self, PolicyError> {
        let strict::Strict(value) = serde_json::from_slice(bytes).map_err(|error| {
            let text = error.to_string();
            if text.starts_with(strict::DUPLICATE) {
                return PolicyError::Duplicate(text);
            }
            PolicyError::Json { line: error.line(), column: error.column() }
        })?;
        let only = |value: &Value, place: &str, known: &[&str]| match value.as_object() {
            None => Err(part(place, "must be an object")),
            Some(fields) => match fields.keys().find(|key| !known.contains(&key.as_str())) {
                // A misspelled requirement must not be ignored.
                Some(key) => Err(part(place, &format!("{key:?} is unknown"))),
                None => Ok(()),
            },
        };
        only(&value, "top", &["default", "transports"])?;
        let default = requirements(&value["default"], "default", &file)?;
        let mut scopes = BTreeMap::new();
        let transports = value["transports"].as_object();
        for (transport, inside) in transports.into_iter().flatten() {
            let Some(inside) = inside.as_object() else {
                return Err(part(transport, "must be an object"));
            };
            for (scope, list) in inside {
                let place = format!("transports.{transport}.{scope:?}");
                let list = requirements(list, &place, &file)?;
                if transport == "docker" {
                    scopes.insert(scope.clone(), list);
                }
            }
        }
        Ok(Self { default, scopes })
    }

    /// The requirements for an image: those of the most specific scope.
    pub fn requirements(&self, reference: &Reference) -> &[Requirement] {
        let mut scope = reference.to_string();
        if let Some(found) = self.scopes.get(&scope) {
            return found;
        }
        scope = reference.repository();
        loop {
            if let Some(found) = self.scopes.get(&scope) {
                return found;
            }
            match scope.rfind('/') {
                Some(end) => scope.truncate(end),
                None => break,
            }
        }
        let mut host = reference.domain().split(':').next().unwrap_or_default();
        while let Some((_, above)) = host.split_once('.') {
            if let Some(found) = self.scopes.get(&format!("*.{above}")) {
                return found;
            }
            host = above;
        }
        self.scopes.get("").map_or(&self.default, |found| found)
    }

    /// Whether the requirements for an image include a signature.
    pub fn needs_signatures(&self, reference: &Reference) -> bool {
        let signed = |one: &Requirement| matches!(one, Requirement::Signed { .. });
        self.requirements(reference).iter().any(signed)
    }

    /// Checks an image: all requirements must hold.
    pub fn judge(
        &self,
        reference: &Reference,
        digest: &Digest,
        signatures: &[Signature],
    ) -> Result<(), Refused> {
        let image = || reference.to_string();
        for requirement in self.requirements(reference) {
            match requirement {
                Requirement::Accept => {}
                Requirement::Reject if mainstay_fault::is_on("rejected-images-are-taken") => {}
                Requirement::Reject => return Err(Refused::Rejected(image())),
                Requirement::Unsupported(what) => return Err(Refused::Unsupported(image(), what)),
                Requirement::Signed { keys, identity } => {
                    let mut why = Vec::new();
                    let good = signatures.iter().any(|signature| {
                        match verify(signature, keys, identity, reference, digest) {
                            Ok(()) => true,
                            Err(error) => {
                                why.push(error);
                                false
                            }
                        }
                    });
                    if !good {
                        return Err(Refused::Unsigned { image: image(), why });
                    }
                }
            }
        }
        Ok(())
    }
}

fn part(place: &str, why: &str) -> PolicyError {
    PolicyError::Part { place: place.to_owned(), why: why.to_owned() }
}

fn requirements(
    value: &Value,
    place: &str,
    file: &impl Fn(&str) -> std::io::Result<Vec<u8>>,
) -> Result<Vec<Requirement>, PolicyError> {
    let list = value.as_array().filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| part(place, "must be a list with at least one requirement"))?;
    list.iter().map(|one| requirement(one, place, file)).collect()
}

fn requirement(
    value: &Value,
    place: &str,
    file: &impl Fn(&str) -> std::io::Result<Vec<u8>>,
) -> Result<Requirement, PolicyError> {
    let wrong = |why: &str| part(place, why);
    let known: &[&str] = match value["type"].as_str() {
        Some("insecureAcceptAnything" | "reject") => &["type"],
        Some("signedBy") => return Ok(Requirement::Unsupported("signedBy (OpenPGP)")),
        Some("signedBaseLayer") => return Ok(Requirement::Unsupported("signedBaseLayer")),
        Some("sigstoreSigned") => &[
            "type",
            "keyPath",
            "keyPaths",
            "keyData",
            "keyDatas",
            "signedIdentity",
            "fulcio",
            "pki",
            "rekorPublicKeyPath",
            "rekorPublicKeyPaths",
            "rekorPublicKeyData",
            "rekorPublicKeyDatas",
        ],
        Some(other) => return Err(wrong(&format!("type {other:?} is unknown"))),
        None => return Err(wrong("a requirement has no type")),
    };
    let fields = value.as_object().into_iter().flatten();
    for (name, _) in fields {
        if !known.contains(&name.as_str()) {
            return Err(wrong(&format!("{name:?} is unknown")));
        }
    }
    match value["type"].as_str() {
        Some("insecureAcceptAnything") => return Ok(Requirement::Accept),
        Some("reject") => return Ok(Requirement::Reject),
        _ => {}
    }
    let there = |name: &&str| !value[*name].is_null();
    if ["fulcio", "pki"].iter().any(there) {
        return Ok(Requirement::Unsupported("sigstoreSigned by certificates"));
    }
    if known.iter().any(|name| name.starts_with("rekor") && there(name)) {
        return Ok(Requirement::Unsupported("sigstoreSigned with a transparency log"));
    }
    let given: Vec<&&str> = known[1..5].iter().filter(|name| there(name)).collect();
    let [name] = given.as_slice() else {
        return Err(wrong("sigstoreSigned needs one of keyPath, keyPaths, keyData and keyDatas"));
    };
    let texts: Vec<&str> = match &value[**name] {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if texts.is_empty() {
        return Err(wrong(&format!("{name} is empty")));
    }
    let mut keys = Vec::new();
    for text in texts {
        let bytes = if name.starts_with("keyPath") {
            file(text).map_err(|error| wrong(&format!("{name} {text:?}: {error}")))?
        } else {
            cosign::base64(text).ok_or_else(|| wrong(&format!("{name} is not base64")))?
        };
        keys.push(Key::from_pem(&bytes).map_err(|error| wrong(&format!("{name}: {error}")))?);
    }
    let identity = identity(&value["signedIdentity"], place)?;
    Ok(Requirement::Signed { keys, identity })
}

fn identity(value: &Value, place: &str) -> Result<Identity, PolicyError> {
    let wrong = |why: &str| part(place, why);
    if value.is_null() {
        return Ok(Identity::default());
    }
    let text = |name: &str| {
        let text = value[name].as_str().filter(|text| !text.is_empty());
        text.ok_or_else(|| wrong(&format!("signedIdentity has no {name}")))
    };
    let named = |name: &str| -> Result<Reference, PolicyError> {
        text(name)?.parse().map_err(|error| wrong(&format!("signedIdentity {name}: {error}")))
    };
    Ok(match value["type"].as_str() {
        Some("matchRepoDigestOrExact") => Identity::RepoDigestOrExact,
        Some("matchExact") => Identity::Exact,
        Some("matchRepository") => Identity::Repository,
        Some("exactReference") => Identity::ExactReference(named("dockerReference")?),
        Some("exactRepository") => Identity::ExactRepository(named("dockerRepository")?),
        Some("remapIdentity") => {
            let (prefix, signed) = (text("prefix")?.to_owned(), text("signedPrefix")?.to_owned());
            Identity::Remap { prefix, signed }
        }
        _ => return Err(wrong("signedIdentity has an unknown type")),
    })
}
