//! Signature policies: containers' `policy.json`, and cosign signatures by key.
//!
//! A policy states requirements for each image name: none, refusal, or a signature. All
//! requirements of the most specific scope must hold; an empty list is an error.
//!
//! PGP signatures (`signedBy`) and keyless signatures (Fulcio, Rekor) are not supported. A policy
//! that requires them refuses the image with that reason; the requirement is never skipped.

mod cosign;
mod unique_keys;

pub use cosign::{CosignKey, CosignKeyError, SignatureError, signature_tag, verify};

use crate::{digest::Digest, reference::ImageReference};
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
pub enum PolicyRequirement {
    /// Every image is accepted.
    Accept,
    /// Every image is refused.
    Reject,
    /// One of the keys must have signed the image.
    Signed {
        /// The keys.
        keys: Vec<CosignKey>,
        /// The identity in the signature.
        identity: SignedIdentity,
    },
    /// An unsupported requirement, by name. The image is refused.
    Unsupported(&'static str),
}

/// The identity that a signature must name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SignedIdentity {
    /// The repository, and the tag unless the reference has a digest.
    #[default]
    RepoDigestOrExact,
    /// The repository and the tag.
    Exact,
    /// The repository.
    Repository,
    /// A fixed reference.
    ExactReference(ImageReference),
    /// A fixed repository.
    ExactRepository(ImageReference),
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
pub enum PolicyRefusal {
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
pub struct SignaturePolicy {
    default: Vec<PolicyRequirement>,
    /// Requirements for images from registries, by scope.
    scopes: BTreeMap<String, Vec<PolicyRequirement>>,
}

/// A signature of an image: the signed payload, and the signature in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The signed bytes.
    pub payload: Vec<u8>,
    /// The annotation `dev.cosignproject.cosign/signature`.
    pub base64: String,
}

impl SignaturePolicy {
    /// Accepts every image: the behavior without a policy.
    pub fn accept_anything() -> Self {
        Self { default: vec![PolicyRequirement::Accept], scopes: BTreeMap::new() }
    }

    /// Parses a policy. `file` reads key files.
    pub fn read(
        bytes: &[u8],
        file: impl Fn(&str) -> std::io::Result<Vec<u8>>,
    ) -> Result<Self, PolicyError> {
        let unique_keys::UniqueKeys(value) = serde_json::from_slice(bytes).map_err(|error| {
            let text = error.to_string();
            if text.starts_with(unique_keys::DUPLICATE_KEY) {
                return PolicyError::Duplicate(text);
            }
            PolicyError::Json { line: error.line(), column: error.column() }
        })?;
        let check_fields = |value: &Value, place: &str, known: &[&str]| match value.as_object() {
            None => Err(part(place, "must be an object")),
            Some(fields) => match fields.keys().find(|key| !known.contains(&key.as_str())) {
                // A misspelled requirement must not be ignored.
                Some(key) => Err(part(place, &format!("{key:?} is unknown"))),
                None => Ok(()),
            },
        };
        check_fields(&value, "top", &["default", "transports"])?;
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
    pub fn requirements(&self, reference: &ImageReference) -> &[PolicyRequirement] {
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
    pub fn needs_signatures(&self, reference: &ImageReference) -> bool {
        let signed = |one: &PolicyRequirement| matches!(one, PolicyRequirement::Signed { .. });
        self.requirements(reference).iter().any(signed)
    }

    /// Checks an image: all requirements must hold.
    pub fn check(
        &self,
        reference: &ImageReference,
        digest: &Digest,
        signatures: &[Signature],
    ) -> Result<(), PolicyRefusal> {
        let image = || reference.to_string();
        for requirement in self.requirements(reference) {
            match requirement {
                PolicyRequirement::Accept => {}
                PolicyRequirement::Reject if mainstay_fault::is_on("rejected-images-are-taken") => {
                }
                PolicyRequirement::Reject => return Err(PolicyRefusal::Rejected(image())),
                PolicyRequirement::Unsupported(what) => {
                    return Err(PolicyRefusal::Unsupported(image(), what));
                }
                PolicyRequirement::Signed { keys, identity } => {
                    let mut why = Vec::new();
                    let valid = signatures.iter().any(|signature| {
                        match verify(signature, keys, identity, reference, digest) {
                            Ok(()) => true,
                            Err(error) => {
                                why.push(error);
                                false
                            }
                        }
                    });
                    if !valid {
                        return Err(PolicyRefusal::Unsigned { image: image(), why });
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
) -> Result<Vec<PolicyRequirement>, PolicyError> {
    let list = value.as_array().filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| part(place, "must be a list with at least one requirement"))?;
    list.iter().map(|one| requirement(one, place, file)).collect()
}

fn requirement(
    value: &Value,
    place: &str,
    file: &impl Fn(&str) -> std::io::Result<Vec<u8>>,
) -> Result<PolicyRequirement, PolicyError> {
    let invalid = |why: &str| part(place, why);
    let known: &[&str] = match value["type"].as_str() {
        Some("insecureAcceptAnything" | "reject") => &["type"],
        Some("signedBy") => return Ok(PolicyRequirement::Unsupported("signedBy (OpenPGP)")),
        Some("signedBaseLayer") => return Ok(PolicyRequirement::Unsupported("signedBaseLayer")),
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
        Some(other) => return Err(invalid(&format!("type {other:?} is unknown"))),
        None => return Err(invalid("a requirement has no type")),
    };
    let fields = value.as_object().into_iter().flatten();
    for (name, _) in fields {
        if !known.contains(&name.as_str()) {
            return Err(invalid(&format!("{name:?} is unknown")));
        }
    }
    match value["type"].as_str() {
        Some("insecureAcceptAnything") => return Ok(PolicyRequirement::Accept),
        Some("reject") => return Ok(PolicyRequirement::Reject),
        _ => {}
    }
    let is_present = |name: &&str| !value[*name].is_null();
    if ["fulcio", "pki"].iter().any(is_present) {
        return Ok(PolicyRequirement::Unsupported("sigstoreSigned by certificates"));
    }
    if known.iter().any(|name| name.starts_with("rekor") && is_present(name)) {
        return Ok(PolicyRequirement::Unsupported("sigstoreSigned with a transparency log"));
    }
    let given: Vec<&&str> = known[1..5].iter().filter(|name| is_present(name)).collect();
    let [name] = given.as_slice() else {
        return Err(invalid("sigstoreSigned needs one of keyPath, keyPaths, keyData and keyDatas"));
    };
    let texts: Vec<&str> = match &value[**name] {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if texts.is_empty() {
        return Err(invalid(&format!("{name} is empty")));
    }
    let mut keys = Vec::new();
    for text in texts {
        let bytes = if name.starts_with("keyPath") {
            file(text).map_err(|error| invalid(&format!("{name} {text:?}: {error}")))?
        } else {
            cosign::base64(text).ok_or_else(|| invalid(&format!("{name} is not base64")))?
        };
        keys.push(
            CosignKey::from_pem(&bytes).map_err(|error| invalid(&format!("{name}: {error}")))?,
        );
    }
    let identity = identity(&value["signedIdentity"], place)?;
    Ok(PolicyRequirement::Signed { keys, identity })
}

fn identity(value: &Value, place: &str) -> Result<SignedIdentity, PolicyError> {
    let invalid = |why: &str| part(place, why);
    if value.is_null() {
        return Ok(SignedIdentity::default());
    }
    let text = |name: &str| {
        let text = value[name].as_str().filter(|text| !text.is_empty());
        text.ok_or_else(|| invalid(&format!("signedIdentity has no {name}")))
    };
    let named = |name: &str| -> Result<ImageReference, PolicyError> {
        text(name)?.parse().map_err(|error| invalid(&format!("signedIdentity {name}: {error}")))
    };
    Ok(match value["type"].as_str() {
        Some("matchRepoDigestOrExact") => SignedIdentity::RepoDigestOrExact,
        Some("matchExact") => SignedIdentity::Exact,
        Some("matchRepository") => SignedIdentity::Repository,
        Some("exactReference") => SignedIdentity::ExactReference(named("dockerReference")?),
        Some("exactRepository") => SignedIdentity::ExactRepository(named("dockerRepository")?),
        Some("remapIdentity") => {
            let (prefix, signed) = (text("prefix")?.to_owned(), text("signedPrefix")?.to_owned());
            SignedIdentity::Remap { prefix, signed }
        }
        _ => return Err(invalid("signedIdentity has an unknown type")),
    })
}
