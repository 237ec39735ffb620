//! Failures to load a catalog, with the messages of catalogd for its condition `Progressing`.

use crate::image_texts::{LayerText, PullText};
use mainstay_image::unpack::{EntryRefusal, UnpackError};
use mainstay_images::{DocumentsError, StepError};
use mainstay_registry::stored::StoreCatalogError;
use std::fmt;

/// Why the content of a catalog could not be loaded.
#[derive(Debug)]
pub(super) enum LoadFailure {
    /// The spec names no image.
    NoImage {
        /// The name of the catalog.
        name: String,
    },
    /// The spec has an unknown type of source.
    UnknownSource {
        /// The type.
        kind: String,
    },
    /// The image reference is invalid.
    Reference {
        /// The reference.
        reference: String,
        /// Why it is invalid.
        why: String,
    },
    /// The image reference has a tag and a digest.
    TagAndDigest,
    /// The reference is that of a catalog folder that this process does not have.
    UnknownFolder {
        /// The name of the folder.
        name: String,
    },
    /// The catalog folder has no content.
    Folder {
        /// Why it has none.
        why: String,
    },
    /// The image cannot be pulled.
    Pull(StepError),
    /// The image has no content that can be served.
    Documents {
        /// The error.
        error: DocumentsError,
        /// Whether the reference has a digest, so that the image behind it cannot change.
        by_digest: bool,
    },
    /// The content cannot be stored.
    Store(StoreCatalogError),
    /// The thread that read the content ended unexpectedly.
    Ended(String),
}

impl LoadFailure {
    /// Whether only a change of the spec can help, so that there is no retry.
    pub(super) fn is_terminal(&self) -> bool {
        match self {
            Self::NoImage { .. }
            | Self::UnknownSource { .. }
            | Self::Reference { .. }
            | Self::TagAndDigest
            | Self::UnknownFolder { .. } => true,
            Self::Documents { error: DocumentsError::NoLabel, by_digest } => *by_digest,
            _ => false,
        }
    }

    /// A further explanation for people; none if the message says all.
    pub(super) fn explanation(&self) -> Option<String> {
        match self {
            Self::Documents { error: DocumentsError::Unpack(error), .. } => Some(error.to_string()),
            Self::Documents { error: DocumentsError::Read(error), .. } => Some(error.headline()),
            Self::Documents { error: DocumentsError::NoLabel, .. } => Some(
                "the label names the folder with the catalog; `opm generate dockerfile` writes it"
                    .to_owned(),
            ),
            Self::Pull(StepError::Fetch { source, .. }) => Some(source.to_string()),
            _ => None,
        }
    }
}

impl fmt::Display for LoadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoImage { name } => write!(
                f,
                "source catalog content: terminal error: error parsing ClusterCatalog \"{name}\", \
                 image source is nil"
            ),
            Self::UnknownSource { kind } => {
                write!(f, "source catalog content: terminal error: unknown source type \"{kind}\"")
            }
            Self::Reference { reference, why } => write!(
                f,
                "source catalog content: terminal error: error parsing image reference \
                 \"{reference}\": {why}"
            ),
            Self::TagAndDigest => f.write_str(
                "source catalog content: terminal error: error creating reference: Docker \
                 references with both a tag and digest are currently not supported",
            ),
            Self::UnknownFolder { name } => write!(
                f,
                "source catalog content: terminal error: this process has no catalog folder \
                 \"{name}\": start it with --catalog {name}=DIR, or delete the ClusterCatalog"
            ),
            Self::Folder { why } => write!(f, "source catalog content: catalog folder: {why}"),
            Self::Pull(error) => write!(f, "source catalog content: {}", PullText(error)),
            Self::Documents { error: DocumentsError::NoLabel, by_digest } => {
                let terminal = if *by_digest { "terminal error: " } else { "" };
                let error = DocumentsError::NoLabel;
                write!(f, "source catalog content: error applying image: {terminal}{error}")
            }
            Self::Documents { error: DocumentsError::Unpack(error), .. } => match link_out(error) {
                // catalogd unpacks such a link, and finds that nothing is behind it.
                Some(link) => write!(
                    f,
                    "error storing fbc: error walking FBC root: open {link}: no such file or \
                     directory"
                ),
                None => write!(
                    f,
                    "source catalog content: error applying image: unpacking layer: {}",
                    LayerText(error)
                ),
            },
            Self::Documents { error: DocumentsError::Read(error), .. } => {
                write!(f, "error storing fbc: error walking FBC root: {}", error.upstream())
            }
            Self::Store(error) => write!(f, "error storing fbc: {error}"),
            Self::Ended(why) => write!(f, "error storing fbc: {why}"),
        }
    }
}

/// The name of an entry that is a link out of the image.
fn link_out(error: &UnpackError) -> Option<&str> {
    match error {
        UnpackError::Entry { name, why: EntryRefusal::LinkOut(_), .. } => Some(name),
        _ => None,
    }
}
