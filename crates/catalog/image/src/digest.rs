//! Content digests: `algorithm:hex`, as the OCI image specification defines them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::Digest as _;
use std::{fmt, str::FromStr};

/// The supported digest algorithms.
///
/// The OCI image specification registers these two. Others are refused, because a digest that
/// cannot be computed cannot be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// SHA-256, the usual one.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl Algorithm {
    /// The registered name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    /// The number of hexadecimal digits.
    pub fn length(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// Why a text is not a digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// The text has no `algorithm:` prefix, or no lower-case hexadecimal digits behind it.
    #[error("invalid checksum digest format")]
    Format,
    /// The algorithm is unsupported.
    #[error("unsupported digest algorithm")]
    Algorithm,
    /// The number of digits is wrong.
    #[error("invalid checksum digest length")]
    Length,
}

/// A valid digest, such as `sha256:…`, which is safe as a file name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    hex: Box<str>,
}

impl Digest {
    /// The SHA-256 digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        hasher.update(bytes);
        hasher.finish()
    }

    /// The algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The hexadecimal digits.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// The digest of bytes with the same algorithm.
    #[must_use]
    pub fn same_of(&self, bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(self.algorithm);
        hasher.update(bytes);
        hasher.finish()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let (name, hex) = text.split_once(':').ok_or(DigestError::Format)?;
        let algorithm = match name {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            _ => {
                let of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"+._-".contains(&byte);
                let like_a_name = !name.is_empty() && name.bytes().all(of_names);
                let error = if like_a_name { DigestError::Algorithm } else { DigestError::Format };
                return Err(error);
            }
        };
        if !hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(DigestError::Format);
        }
        if hex.len() != algorithm.length() {
            return Err(DigestError::Length);
        }
        Ok(Self { algorithm, hex: hex.into() })
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// Computes a digest incrementally.
#[derive(Clone, Debug)]
pub struct Hasher(State);

#[derive(Clone, Debug)]
enum State {
    Sha256(sha2::Sha256),
    Sha512(Box<sha2::Sha512>),
}

impl Hasher {
    /// A hasher without content.
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Sha512 => State::Sha512(Box::default()),
        })
    }

    /// Adds content.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha256(state) => state.update(bytes),
            State::Sha512(state) => state.update(bytes),
        }
    }

    /// The digest of all content.
    pub fn finish(self) -> Digest {
        match self.0 {
            State::Sha256(state) => {
                Digest { algorithm: Algorithm::Sha256, hex: hex(&state.finalize()) }
            }
            State::Sha512(state) => {
                Digest { algorithm: Algorithm::Sha512, hex: hex(&state.finalize()) }
            }
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> Box<str> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digests_of_supported_algorithms_parse() {
        let sixty_four = "a".repeat(64);
        for (text, want) in [
            (format!("sha256:{sixty_four}"), Ok(())),
            (format!("sha512:{sixty_four}{sixty_four}"), Ok(())),
            (format!("sha256:{}", "A".repeat(64)), Err(DigestError::Format)),
            ("sha256:abc".to_owned(), Err(DigestError::Length)),
            (format!("sha512:{sixty_four}"), Err(DigestError::Length)),
            (format!("md5:{}", "a".repeat(32)), Err(DigestError::Algorithm)),
            (sixty_four.clone(), Err(DigestError::Format)),
            (format!("../:{sixty_four}"), Err(DigestError::Format)),
            (format!(":{sixty_four}"), Err(DigestError::Format)),
            ("sha256:../../../../etc/passwd".to_owned(), Err(DigestError::Format)),
        ] {
            assert_eq!(text.parse::<Digest>().map(drop), want, "{text}");
        }
    }

    #[test]
    fn empty_content_has_the_published_digest() {
        let known = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), known);
        let digest: Digest = known.parse().unwrap();
        assert_eq!(digest.same_of(b""), digest);
        assert_eq!(Hasher::new(Algorithm::Sha512).finish().hex().len(), 128);
    }
}
