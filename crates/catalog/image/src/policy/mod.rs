//! Which images are taken: containers' `policy.json`, and cosign's signatures by key.
//!
//! A policy says for every name what must be true of an image: nothing, that it is refused, or that
//! somebody signed it. The requirements of the closest scope hold, all of them; none is a mistake.
//!
//! What this does not do: PGP signatures (`signedBy`), and signatures without keys (Fulcio,
//! Rekor). A policy that asks for them refuses the image and says so; it is never taken for less.

mod cosign;
mod strict;

pub use cosign::{Key, KeyError, SignatureError, signature_tag, verify};

use crate::{digest::Digest, reference::Reference};
use serde_json::Value;
use std::collections::BTreeMap;

/// Why a policy cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It is no JSON.
    #[error("the policy is not valid JSON (line {line}, column {column})")]
    Json {
        /// Line, from one.
        line: usize,
        /// Column, from one.
        column: usize,
    },
    /// A key stands twice in an object.
    #[error("the policy has a {0}, and nobody can say which one holds")]
    Duplicate(String),
    /// A part is not what it must be.
    #[error("the policy's {place}: {why}")]
    Part {
        /// Where.
        place: String,
        /// What is wrong.
        why: String,
    },
}

/// What must be true of an image.
#[derive(Clone, Debug, PartialEq)]
pub enum Requirement {
    /// Nothing.
    Accept,
    /// It is refused.
    Reject,
    /// It is signed by one of the keys.
    Signed {
        /// The keys.
        keys: Vec<Key>,
        /// What the signature must name.
        identity: Identity,
    },
    /// Something that is not supported: which, and so it is refused.
    Unsupported(&'static str),
}

/// What a signature must name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// The repository and, unless the image is asked for by digest, the tag.
    #[default]
    RepoDigestOrExact,
    /// The repository and the tag.
    Exact,
    /// The repository.
    Repository,
    /// Another reference.
    ExactReference(Reference),
    /// Another repository.
    ExactRepository(Reference),
    /// The name, with one beginning for another.
    Remap {
        /// The beginning of the image's name.
        prefix: String,
        /// That of the signed one.
        signed: String,
    },
}

/// Why an image is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The policy says so.
    #[error("running image {0} is rejected by policy")]
    Rejected(String),
    /// The policy asks for what cannot be judged.
    #[error("the policy for {0} asks for {1}, which is not supported: the image is refused")]
    Unsupported(String, &'static str),
    /// No signature is good.
    #[error("{image} is not signed as the policy asks{}", reasons(.why))]
    Unsigned {
        /// Which image.
        image: String,
        /// Why each signature is not good.
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

/// A policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    default: Vec<Requirement>,
    /// Those of images from registries, by scope.
    scopes: BTreeMap<String, Vec<Requirement>>,
}

/// A signature of an image: what was signed, and the signature in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The bytes that were signed.
    pub payload: Vec<u8>,
    /// The annotation `dev.cosignproject.cosign/signature`.
    pub base64: String,
}

impl Policy {
    /// Takes everything: what holds where there is no policy.
    pub fn accept_anything() -> Self {
        Self { default: vec![Requirement::Accept], scopes: BTreeMap::new() }
    }

    /// Reads a policy. Keys in files are read by `file`.
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
                // A misspelt requirement must not be one that is not there.
                Some(key) => Err(part(place, &format!("{key:?} is not known"))),
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

    /// What must be true of an image: the requirements of the closest scope.
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

    /// Whether signatures must be fetched to judge an image.
    pub fn needs_signatures(&self, reference: &Reference) -> bool {
        let signed = |one: &Requirement| matches!(one, Requirement::Signed { .. });
        self.requirements(reference).iter().any(signed)
    }

    /// Judges an image: all requirements must hold.
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
    let list = list.ok_or_else(|| part(place, "must be a list with something in it"))?;
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
        Some(other) => return Err(wrong(&format!("type {other:?} is not known"))),
        None => return Err(wrong("a requirement has no type")),
    };
    let fields = value.as_object().into_iter().flatten();
    for (name, _) in fields {
        if !known.contains(&name.as_str()) {
            return Err(wrong(&format!("{name:?} is not known")));
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
            cosign::base64(text).ok_or_else(|| wrong(&format!("{name} is no base64")))?
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
        _ => return Err(wrong("signedIdentity has a type that is not known")),
    })
}
