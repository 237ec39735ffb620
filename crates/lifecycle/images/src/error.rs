//! Why an image cannot be had, or is not what it should be.
//!
//! Each text is one line that is shown in conditions and events as it stands.

use super::UnreadablePolicy;

/// Why an image in a store of this machine cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The store cannot be read.
    #[error("{0}")]
    ReadStore(String),
    /// The index has no image for this machine.
    #[error("{digest} has no image for {platform}")]
    NoPlatform {
        /// The digest of the index.
        digest: String,
        /// The platform of this machine, as `OS/ARCHITECTURE`.
        platform: String,
    },
    /// An index lists another index, deeper than is followed.
    #[error("{digest}: indexes lie too deep in each other")]
    TooDeep {
        /// The digest of the outermost index.
        digest: String,
    },
}

/// Why an image cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    /// The reference cannot be read.
    #[error("the image {image:?} cannot be had: {reason}")]
    ParseReference {
        /// The reference as it was written.
        image: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The reference is a name in the cluster's own registry, which has no such image.
    #[error(
        "the cluster has no image {image}: push it to the registry of the cluster, or start with --image {image}=DIR"
    )]
    NotInCluster {
        /// The reference.
        image: String,
    },
    /// What the cluster has of the image cannot be used.
    #[error(transparent)]
    OpenLocal(#[from] OpenError),
    /// What was pulled of the image cannot be used.
    #[error("cannot pull {0}")]
    OpenPulled(OpenError),
    /// The policy of the machine cannot be read, so nothing is taken from registries.
    #[error("cannot pull {image}: {reason}")]
    ReadPolicy {
        /// The reference.
        image: String,
        /// Why the policy cannot be read.
        reason: UnreadablePolicy,
    },
    /// A pull secret, or a ServiceAccount that names some, cannot be read.
    #[error("cannot pull {0}")]
    ReadCredentials(String),
    /// Objects that name mirrors cannot be read.
    #[error("cannot pull {0}")]
    ReadMirrors(String),
    /// No registry gives the image.
    #[error("cannot pull {reason}{}", missing_secrets(secrets))]
    AskRegistry {
        /// What the registry said; begins with the reference that was asked for.
        reason: String,
        /// Pull secrets that are named and not there, as `NAMESPACE/NAME`.
        secrets: Vec<String>,
    },
    /// The task that read ended unexpectedly.
    #[error("reading ended unexpectedly: {0}")]
    Join(String),
}

fn missing_secrets(secrets: &[String]) -> String {
    let missing = secrets.iter().map(|secret| ["; there is no pull secret ", secret].concat());
    missing.collect()
}

/// Why the content of an image is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// Nothing of the image says where its catalog is.
    #[error(
        "the image is no catalog: it has neither a label {configs} nor {database}, and does not start a program that serves one"
    )]
    NoCatalogPlace {
        /// The label for a folder of files.
        configs: &'static str,
        /// The label for a database.
        database: &'static str,
    },
    /// The image has not what its labels name.
    #[error("the image is no {what}: it has no {kind} /{path}")]
    Missing {
        /// `catalog` or `bundle`.
        what: &'static str,
        /// `folder` or `database`.
        kind: &'static str,
        /// The path in the image.
        path: String,
    },
    /// The layers cannot be unpacked.
    #[error("{0}")]
    Unpack(String),
    /// The catalog is invalid.
    #[error("{0}")]
    ReadCatalog(String),
    /// A file of the bundle is invalid.
    #[error("{place}: {reason}")]
    ReadBundle {
        /// The file, and its line if it is known.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A field that an object of a bundle lacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the field {field} is missing (kind {}, name {})",
    mainstay_gocompat::quote(kind),
    mainstay_gocompat::quote(name)
)]
pub struct MissingIdentity {
    /// The field.
    pub field: &'static str,
    /// The kind of the object, as far as it says.
    pub kind: String,
    /// Its name, or the prefix of generated ones.
    pub name: String,
}

/// An error and what is below it, in one line.
pub(crate) fn line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(source) = below {
        let more = source.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        below = source.source();
    }
    text
}
