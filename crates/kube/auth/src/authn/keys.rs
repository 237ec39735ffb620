//! Token signing keys: JSON Web Signatures (RFC 7515, compact form).
//!
//! One key signs. Older keys are accepted until their files are removed. The form of a key decides
//! its algorithm, so that a token cannot choose a weaker one. The header names a key by the digest
//! of its public part, as in kube-apiserver. A token without a key id is checked against each key.

use super::TokenError;
use crate::pki::der;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED,
    ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Longer tokens are rejected unread: tokens of this cluster have about one kilobyte.
const MAX_TOKEN_LENGTH: usize = 16 * 1024;

/// kube-apiserver's text for any invalid signature.
const INVALID_SIGNATURE: &str = "go-jose/go-jose: error in cryptographic primitive";

/// DER of a `SubjectPublicKeyInfo` up to the key itself (RFC 5480, RFC 3279).
const P256_PREFIX: &[u8] = &[
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const P384_PREFIX: &[u8] = &[
    0x30, 0x76, 0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b,
    0x81, 0x04, 0x00, 0x22, 0x03, 0x62, 0x00,
];
const RSA_ALGORITHM: &[u8] =
    &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];

/// A key that cannot sign tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the key for service-account tokens is no PKCS#8 key of ECDSA (P-256, P-384) or RSA (2048 bits and more)"
)]
pub struct TokenKeyError;

enum SigningKeyPair {
    Curve(Box<EcdsaKeyPair>),
    Rsa(Box<RsaKeyPair>),
}

/// A key that signs tokens or signed them before.
struct TokenKey {
    pair: SigningKeyPair,
    /// `ES256`, `ES384` or `RS256`.
    algorithm: &'static str,
    id: String,
}

impl TokenKey {
    fn from_pkcs8(der: &[u8], random: &SystemRandom) -> Result<Self, TokenKeyError> {
        let curves = [
            (&ECDSA_P256_SHA256_FIXED_SIGNING, "ES256", P256_PREFIX),
            (&ECDSA_P384_SHA384_FIXED_SIGNING, "ES384", P384_PREFIX),
        ];
        for (curve, algorithm, prefix) in curves {
            if let Ok(pair) = EcdsaKeyPair::from_pkcs8(curve, der, random) {
                let id = digest(&[prefix, pair.public_key().as_ref()]);
                return Ok(Self { pair: SigningKeyPair::Curve(Box::new(pair)), algorithm, id });
            }
        }
        let pair = RsaKeyPair::from_pkcs8(der).map_err(|_| TokenKeyError)?;
        let public = pair.public_key().as_ref();
        let id = digest(&[&der::sequence(&[RSA_ALGORITHM, &der::bit_string(public)])]);
        Ok(Self { pair: SigningKeyPair::Rsa(Box::new(pair)), algorithm: "RS256", id })
    }

    fn public_bytes(&self) -> &[u8] {
        match &self.pair {
            SigningKeyPair::Curve(pair) => pair.public_key().as_ref(),
            SigningKeyPair::Rsa(pair) => pair.public_key().as_ref(),
        }
    }

    fn sign(
        &self,
        message: &[u8],
        random: &SystemRandom,
    ) -> Result<Vec<u8>, ring::error::Unspecified> {
        match &self.pair {
            SigningKeyPair::Curve(pair) => Ok(pair.sign(random, message)?.as_ref().to_vec()),
            SigningKeyPair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, random, message, &mut signature)?;
                Ok(signature)
            }
        }
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let algorithm: &dyn VerificationAlgorithm = match self.algorithm {
            "ES256" => &ECDSA_P256_SHA256_FIXED,
            "ES384" => &ECDSA_P384_SHA384_FIXED,
            _ => &RSA_PKCS1_2048_8192_SHA256,
        };
        UnparsedPublicKey::new(algorithm, self.public_bytes()).verify(message, signature).is_ok()
    }

    /// The public part as a JSON Web Key (RFC 7517), with kube-apiserver's order of fields.
    fn to_jwk(&self) -> String {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (id, algorithm) = (&self.id, self.algorithm);
        match &self.pair {
            SigningKeyPair::Curve(_) => {
                // An uncompressed point: a byte for its form, then both coordinates.
                let point = self.public_bytes().get(1..).unwrap_or_default();
                let (x, y) = point.split_at(point.len() / 2);
                let curve = if algorithm == "ES256" { "P-256" } else { "P-384" };
                format!(
                    r#"{{"use":"sig","kty":"EC","kid":"{id}","crv":"{curve}","alg":"{algorithm}","x":"{}","y":"{}"}}"#,
                    text(x),
                    text(y)
                )
            }
            SigningKeyPair::Rsa(pair) => {
                let public: ring::rsa::PublicKeyComponents<Vec<u8>> = pair.public().into();
                format!(
                    r#"{{"use":"sig","kty":"RSA","kid":"{id}","alg":"{algorithm}","n":"{}","e":"{}"}}"#,
                    text(&public.n),
                    text(&public.e)
                )
            }
        }
    }
}

/// The token keys of a cluster: the first signs, all are accepted.
pub(super) struct TokenKeys {
    first: TokenKey,
    older: Vec<TokenKey>,
    random: SystemRandom,
    header: String,
}

impl std::fmt::Debug for TokenKeys {
    /// Prints the public identifiers only.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.all().map(|key| &key.id)).finish()
    }
}

impl TokenKeys {
    /// Parses PKCS#8 keys.
    pub(super) fn new<'a>(
        first: &[u8],
        older: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, TokenKeyError> {
        let random = SystemRandom::new();
        let first = TokenKey::from_pkcs8(first, &random)?;
        let older = older
            .into_iter()
            .map(|der| TokenKey::from_pkcs8(der, &random))
            .collect::<Result<_, _>>()?;
        let header = json!({"alg": first.algorithm, "kid": first.id}).to_string();
        Ok(Self { first, older, random, header: URL_SAFE_NO_PAD.encode(header) })
    }

    fn all(&self) -> impl Iterator<Item = &TokenKey> {
        std::iter::once(&self.first).chain(&self.older)
    }

    /// Signs the claims of a token.
    pub(super) fn sign(&self, claims: &Value) -> String {
        let mut token = format!("{}.{}", self.header, URL_SAFE_NO_PAD.encode(claims.to_string()));
        #[expect(
            clippy::expect_used,
            reason = "ring fails to sign only if the system has no randomness, and then start has failed already"
        )]
        let signature =
            self.first.sign(token.as_bytes(), &self.random).expect("randomness is available");
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        token
    }

    /// Checks the form, issuer and signature of a token and returns its claims. A token of another
    /// issuer is [`TokenError::Foreign`].
    pub(super) fn verify(&self, token: &str, issuers: &[&str]) -> Result<Value, TokenError> {
        if token.len() > MAX_TOKEN_LENGTH {
            return Err(TokenError::Foreign);
        }
        let parts: Vec<&str> = token.splitn(4, '.').collect();
        let [header, claims, signature] = parts[..] else { return Err(TokenError::Foreign) };
        let bytes = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenError::Foreign);
        let object = |part: &str| match serde_json::from_slice(&bytes(part)?) {
            Ok(value @ Value::Object(_)) => Ok(value),
            _ => Err(TokenError::Foreign),
        };
        let claimed = object(claims)?;
        let issuer = claimed.get("iss").and_then(Value::as_str).unwrap_or_default();
        if !issuers.contains(&issuer) {
            return Err(TokenError::Foreign);
        }
        let head = object(header)?;
        let signature = bytes(signature)?;
        let id = match head.get("kid") {
            None => "",
            Some(Value::String(id)) => id,
            Some(_) => return Err(TokenError::Foreign),
        };
        let mut keys = self.all().filter(|key| id.is_empty() || key.id == id).peekable();
        if keys.peek().is_none() {
            return Err(TokenError::invalid("invalid signature, no keys found"));
        }
        let algorithm = head.get("alg").and_then(Value::as_str).unwrap_or_default();
        let signed = &token.as_bytes()[..header.len() + 1 + claims.len()];
        // No critical extension is supported (RFC 7515, 4.1.11).
        let is_valid = head.get("crit").is_none()
            && keys.any(|key| key.algorithm == algorithm && key.verifies(signed, &signature));
        if is_valid { Ok(claimed) } else { Err(TokenError::invalid(INVALID_SIGNATURE)) }
    }

    /// The document of `/openid/v1/jwks`: the public parts of all keys.
    pub(super) fn jwks(&self) -> String {
        let keys: Vec<String> = self.all().map(TokenKey::to_jwk).collect();
        format!(r#"{{"keys":[{}]}}"#, keys.join(","))
    }

    /// The algorithms of all keys, each once, by name.
    pub(super) fn algorithms(&self) -> Vec<&'static str> {
        let mut all: Vec<&str> = self.all().map(|key| key.algorithm).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn digest(parts: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
    }
    URL_SAFE_NO_PAD.encode(digest.finalize())
}
