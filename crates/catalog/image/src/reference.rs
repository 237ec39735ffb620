//! Image references: registry, repository, tag and digest.
//!
//! The grammar is that of the distribution project, which Docker, containers/image and Kubernetes
//! share. So are the defaults: a name without a registry belongs to `docker.io`, and there a name
//! without a slash belongs to `library`.

use crate::digest::{Digest, DigestError};
pub(crate) use mainstay_formats::reference::is_path_component as is_component;
use mainstay_formats::reference::{is_label, is_tag};
use std::{fmt, str::FromStr};

/// The registry of names without one.
pub const DEFAULT_DOMAIN: &str = "docker.io";
/// The tag of names with neither tag nor digest.
pub const DEFAULT_TAG: &str = "latest";
const OLD_DOMAIN: &str = "index.docker.io";
const OFFICIAL: &str = "library/";
/// The maximum length of a name with its registry, in bytes.
const LONGEST: usize = 255;

/// Why a text is no reference, in the words of other software.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageReferenceError {
    /// The text does not follow the grammar.
    #[error("invalid reference format")]
    Format,
    /// The repository has upper-case letters.
    #[error("invalid reference format: repository name ({0}) must be lowercase")]
    Uppercase(String),
    /// The repository is missing.
    #[error("repository name must have at least one component")]
    Empty,
    /// The name is longer than 255 bytes.
    #[error("repository name must not be more than 255 characters")]
    TooLong,
    /// 64 hexadecimal digits could be a name or a digest.
    #[error("invalid repository name ({0}), cannot specify 64-byte hexadecimal strings")]
    Ambiguous(String),
    /// The name has no registry, and a canonical one is required.
    #[error("repository name must be canonical")]
    NotCanonical,
    /// The digest is invalid.
    #[error("invalid digest: {0}")]
    Digest(#[from] DigestError),
}

/// The name of an image with its registry; with an optional tag and an optional digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageReference {
    domain: Box<str>,
    path: Box<str>,
    tag: Option<Box<str>>,
    digest: Option<Digest>,
}

impl ImageReference {
    /// Parses a reference with Docker's defaults.
    pub fn parse(text: &str) -> Result<Self, ImageReferenceError> {
        if text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(ImageReferenceError::Ambiguous(text.to_owned()));
        }
        let (domain, rest) = split_domain(text);
        let (path, tag, digest) = split(&rest)?;
        if path.chars().any(char::is_uppercase) {
            return Err(ImageReferenceError::Uppercase(path.to_owned()));
        }
        Self::assemble(&domain, path, tag, digest)
    }

    /// Parses a reference that must name its registry, without defaults. opm requires this.
    pub fn parse_canonical(text: &str) -> Result<Self, ImageReferenceError> {
        let reference = Self::parse(text)?;
        if text.starts_with(&format!("{}/{}", reference.domain, reference.path)) {
            Ok(reference)
        } else {
            Err(ImageReferenceError::NotCanonical)
        }
    }

    fn assemble(
        domain: &str,
        path: &str,
        tag: Option<&str>,
        digest: Option<&str>,
    ) -> Result<Self, ImageReferenceError> {
        if !is_domain(domain) || !path.split('/').all(is_component) {
            return Err(ImageReferenceError::Format);
        }
        if domain.len() + 1 + path.len() > LONGEST {
            return Err(ImageReferenceError::TooLong);
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(ImageReferenceError::Format);
        }
        let digest = digest.map(|digest| {
            let error = |error| match error {
                // Not the form of any algorithm: the reference is invalid, not the digest.
                DigestError::Format => ImageReferenceError::Format,
                other => ImageReferenceError::Digest(other),
            };
            digest.parse().map_err(error)
        });
        Ok(Self {
            domain: domain.into(),
            path: path.into(),
            tag: tag.map(Into::into),
            digest: digest.transpose()?,
        })
    }

    /// The registry: a host with an optional port.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// The repository in that registry.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The written tag; see [`ImageReference::tag_or_default`] for the effective one.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The written digest.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// The tag, or `latest` without tag and digest.
    pub fn tag_or_default(&self) -> Option<&str> {
        match (&self.tag, &self.digest) {
            (Some(tag), _) => Some(tag),
            (None, Some(_)) => None,
            (None, None) => Some(DEFAULT_TAG),
        }
    }

    /// Registry and repository: `docker.io/library/busybox`.
    pub fn repository(&self) -> String {
        format!("{}/{}", self.domain, self.path)
    }

    /// The identifier in requests to a registry: the digest if there is one, else the tag.
    pub fn wanted(&self) -> String {
        match &self.digest {
            Some(digest) => digest.to_string(),
            None => self.tag_or_default().unwrap_or(DEFAULT_TAG).to_owned(),
        }
    }

    /// The same repository with a digest only.
    #[must_use]
    pub fn with_digest(&self, digest: Digest) -> Self {
        Self {
            domain: self.domain.clone(),
            path: self.path.clone(),
            tag: None,
            digest: Some(digest),
        }
    }

    /// The same repository with a tag only.
    pub fn with_tag(&self, tag: &str) -> Result<Self, ImageReferenceError> {
        Self::assemble(&self.domain, &self.path, Some(tag), None)
    }

    /// The same tag and digest in another repository, such as `mirror.example:5000/folder/name`.
    pub fn moved_to(&self, repository: &str) -> Result<Self, ImageReferenceError> {
        let (domain, path) = repository.split_once('/').ok_or(ImageReferenceError::Empty)?;
        let mut moved = Self::assemble(domain, path, self.tag.as_deref(), None)?;
        moved.digest.clone_from(&self.digest);
        Ok(moved)
    }

    /// The short form, without Docker's defaults.
    pub fn familiar(&self) -> String {
        let mut text = self.to_string();
        if *self.domain == *DEFAULT_DOMAIN {
            text.drain(..=DEFAULT_DOMAIN.len());
            if text.starts_with(OFFICIAL) && !self.path[OFFICIAL.len()..].contains('/') {
                text.drain(..OFFICIAL.len());
            }
        }
        text
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.domain, self.path)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        self.digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
    }
}

impl FromStr for ImageReference {
    type Err = ImageReferenceError;

    fn from_str(text: &str) -> Result<Self, ImageReferenceError> {
        Self::parse(text)
    }
}

/// The registry of a name and the rest, with Docker's defaults. The part before the first slash is
/// a registry if it contains a dot, a colon or a capital letter, or is `localhost`.
fn split_domain(text: &str) -> (String, String) {
    let named = text.split_once('/').filter(|(first, _)| {
        first.contains(['.', ':']) || *first == "localhost" || first.to_lowercase() != **first
    });
    let (domain, rest) = match named {
        Some((OLD_DOMAIN, rest)) => (DEFAULT_DOMAIN, rest),
        Some(named) => named,
        None => (DEFAULT_DOMAIN, text),
    };
    if domain == DEFAULT_DOMAIN && !rest.contains('/') && !rest.is_empty() {
        return (domain.to_owned(), format!("{OFFICIAL}{rest}"));
    }
    (domain.to_owned(), rest.to_owned())
}

/// Path, tag and digest of the text behind the registry.
fn split(rest: &str) -> Result<(&str, Option<&str>, Option<&str>), ImageReferenceError> {
    let (name, digest) = match rest.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (rest, None),
    };
    let (path, tag) = match name.split_once(':') {
        Some((path, tag)) => (path, Some(tag)),
        None => (name, None),
    };
    if path.is_empty() { Err(ImageReferenceError::Format) } else { Ok((path, tag, digest)) }
}

/// A host with an optional port: labels of letters, digits and inner hyphens, or an IPv6 address in
/// brackets.
pub(crate) fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) => {
                let fine = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
                if address.is_empty() || !address.bytes().all(fine) {
                    return false;
                }
                (None, port.strip_prefix(':').or((!port.is_empty()).then_some("no")))
            }
            None => return false,
        },
        None => match domain.split_once(':') {
            Some((host, port)) => (Some(host), Some(port)),
            None => (Some(domain), None),
        },
    };
    host.is_none_or(|host| host.split('.').all(is_label))
        && port.is_none_or(|port| {
            !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit())
        })
}
