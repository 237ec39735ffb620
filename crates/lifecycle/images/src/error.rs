//! Errors: why an image cannot be pulled, or has no valid catalog or bundle.
//!
//! Each message is one line, as conditions and Events contain it unchanged.

use super::UnreadablePolicy;

/// Why an image in a store of this machine cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocalImageError {
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
    /// Indexes are nested deeper than the limit.
    #[error("{digest}: indexes are nested too deeply")]
    TooDeep {
        /// The digest of the outermost index.
        digest: String,
    },
}

/// Why an image cannot be pulled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    /// The reference is invalid.
    #[error("the image {image:?} cannot be had: {reason}")]
    ParseReference {
        /// The reference as the user wrote it.
        image: String,
        /// Why it is invalid.
        reason: String,
    },
    /// The reference is a name in the registry of the cluster, which does not have the image.
    #[error(
        "the cluster has no image {image}: push it to the registry of the cluster, or start with --image {image}=DIR"
    )]
    NotInCluster {
        /// The reference.
        image: String,
    },
    /// The image in the store of the cluster cannot be used.
    #[error(transparent)]
    OpenLocal(#[from] LocalImageError),
    /// The pulled image cannot be used.
    #[error("cannot pull {0}")]
    OpenPulled(LocalImageError),
    /// The image policy of the machine cannot be read, so no image is pulled from registries.
    #[error("cannot pull {image}: {reason}")]
    ReadPolicy {
        /// The reference.
        image: String,
        /// Why the policy cannot be read.
        reason: UnreadablePolicy,
    },
    /// A pull secret, or a ServiceAccount with `imagePullSecrets`, cannot be read.
    #[error("cannot pull {0}")]
    ReadCredentials(String),
    /// Objects that name mirrors cannot be read.
    #[error("cannot pull {0}")]
    ReadMirrors(String),
    /// No registry returns the image.
    #[error("cannot pull {reason}{}", missing_secrets(secrets))]
    AskRegistry {
        /// The error of the registry; begins with the requested reference.
        reason: String,
        /// Referenced pull secrets that do not exist, as `NAMESPACE/NAME`.
        secrets: Vec<String>,
    },
    /// The blocking task ended unexpectedly.
    #[error("reading ended unexpectedly: {0}")]
    Join(String),
}

fn missing_secrets(secrets: &[String]) -> String {
    let missing = secrets.iter().map(|secret| ["; there is no pull secret ", secret].concat());
    missing.collect()
}

/// Why an image has no valid catalog or bundle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageContentError {
    /// Neither labels nor the command of the image say where its catalog is.
    #[error(
        "the image is no catalog: it has neither a label {configs} nor {database}, and does not start a program that serves one"
    )]
    NoCatalogPlace {
        /// The label for a folder of files.
        configs: &'static str,
        /// The label for a database.
        database: &'static str,
    },
    /// The image lacks the folder or file that its labels name.
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
        /// Why it is invalid.
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
    /// The kind of the object; may be empty.
    pub kind: String,
    /// Its name, or its `generateName`.
    pub name: String,
}

/// An error and its sources in one line.
pub(crate) fn error_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}
