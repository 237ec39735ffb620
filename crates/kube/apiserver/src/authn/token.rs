//! JSON web signatures (RFC 7515, compact form) with one key and one algorithm, ES256.
//!
//! Exactly one algorithm is accepted, so that a token cannot choose a weaker one; a header that
//! demands an extension (`crit`) is refused, as the standard says for extensions not understood.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    UnparsedPublicKey,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Longer tokens are not looked at: ours have about one kilobyte.
const LONGEST: usize = 16 * 1024;

/// DER of a `SubjectPublicKeyInfo` of a P-256 key, up to its point (RFC 5480).
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// The token key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key for service-account tokens is no PKCS#8 ECDSA P-256 key")]
pub struct KeyError;

/// Why a token proves nothing. Clients only learn 401; this is for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Not a signed token in compact form, or not with our algorithm.
    #[error("it is no token of this kind of server")]
    Malformed,
    /// Signed by another key, or changed after signing.
    #[error("its signature is not by this cluster's key")]
    Signature,
    /// Another issuer.
    #[error("another issuer made it")]
    Issuer,
    /// A claim is missing or has another form than ours.
    #[error("its claims are not those of a service account")]
    Claims,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
    /// Its time has not come.
    #[error("it is not valid yet")]
    NotYetValid,
    /// It is for somebody else.
    #[error("it is for another audience")]
    Audience,
    /// The account or the bound object does not exist any more.
    #[error("its account or the object it is bound to is gone")]
    Gone,
}

/// The key that signs tokens.
pub struct TokenKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    header: String,
    id: String,
}

impl std::fmt::Debug for TokenKey {
    /// Prints the public identifier only.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl TokenKey {
    /// Reads a PKCS#8 ECDSA P-256 key.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random)
            .map_err(|_| KeyError)?;
        // The identifier is the digest of the public key, as kube-apiserver derives it.
        let mut digest = Sha256::new();
        digest.update(P256_PREFIX);
        digest.update(pair.public_key().as_ref());
        let id = URL_SAFE_NO_PAD.encode(digest.finalize());
        let header = URL_SAFE_NO_PAD.encode(json!({"alg": "ES256", "kid": id}).to_string());
        Ok(Self { pair, random, header, id })
    }

    /// Signs claims.
    pub(super) fn sign(&self, claims: &Value) -> String {
        let mut token = format!("{}.{}", self.header, URL_SAFE_NO_PAD.encode(claims.to_string()));
        #[expect(
            clippy::expect_used,
            reason = "ring fails to sign only if the system has no randomness, and then start has failed already"
        )]
        let signature =
            self.pair.sign(&self.random, token.as_bytes()).expect("randomness is available");
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        token
    }

    /// Checks form and signature and returns the claims.
    pub(super) fn verify(&self, token: &str) -> Result<Value, Refused> {
        if token.len() > LONGEST {
            return Err(Refused::Malformed);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(Refused::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(Refused::Malformed)?;
        let json = |part: &str| -> Result<Value, Refused> {
            let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| Refused::Malformed)?;
            match serde_json::from_slice(&bytes) {
                Ok(value @ Value::Object(_)) => Ok(value),
                _ => Err(Refused::Malformed),
            }
        };
        let header = json(header)?;
        if header.get("alg").and_then(Value::as_str) != Some("ES256")
            || header.get("crit").is_some()
        {
            return Err(Refused::Malformed);
        }
        if header.get("kid").is_some_and(|id| id != self.id.as_str()) {
            return Err(Refused::Signature);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| Refused::Malformed)?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref())
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| Refused::Signature)?;
        json(claims)
    }
}
