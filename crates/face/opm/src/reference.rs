//! References of arguments: a folder with a catalog or a bundle, a database file, or an image.

use super::call::{Call, CommandIo};
use super::error::PathError;
use super::pull::PullLibrary;
use super::{go, mediatype};
use mainstay_image::reference::ImageReference;
use mainstay_image::registry::Security;
use std::io::Read;

/// The kind of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReferenceKind {
    /// A folder with a catalog.
    Catalog,
    /// A folder with a bundle.
    Bundle,
    /// A file with a SQLite database.
    Database,
    /// No local file: an image.
    Image,
}

/// A reference leads to an unreadable or unsupported file.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReferenceError {
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] PathError),
    /// The file has an unsupported type.
    #[error("ref {} has unsupported file type: {kind}", go::quote(reference))]
    FileType {
        /// The reference.
        reference: String,
        /// The type, as Go prints it.
        kind: String,
    },
}

/// Detects the kind of a reference.
///
/// # Errors
/// If it leads to an unreadable or unsupported file.
pub(super) fn find(io: &CommandIo<'_>, reference: &str) -> Result<ReferenceKind, ReferenceError> {
    let Ok(is_folder) = io.is_folder(reference) else {
        return Ok(ReferenceKind::Image);
    };
    let path = io.resolve_path(reference);
    if is_folder {
        // A link to a folder does not count.
        let has = |name: &str| {
            std::fs::symlink_metadata(path.join(name)).is_ok_and(|found| found.is_dir())
        };
        let is_bundle = has("manifests") && has("metadata");
        return Ok(if is_bundle { ReferenceKind::Bundle } else { ReferenceKind::Catalog });
    }
    let mut start = Vec::new();
    std::fs::File::open(&path)
        .and_then(|file| file.take(mediatype::MAX_PREFIX).read_to_end(&mut start))
        .map_err(PathError::of("open", reference))?;
    let unsupported =
        |kind| Err(ReferenceError::FileType { reference: reference.to_owned(), kind });
    match mediatype::detect_with_extension(start) {
        Some((_, "sqlite")) => Ok(ReferenceKind::Database),
        Some((kind, extension)) => {
            let (main, sub) = kind.split_once('/').unwrap_or((kind, ""));
            unsupported(format!("{{{{{main} {sub} {kind}}} {extension}}}"))
        }
        None => unsupported("{{  } unknown}".to_owned()),
    }
}

/// The name of an image is invalid. The texts are those of upstream's libraries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NameError {
    /// The name has an invalid format.
    #[error("{fault}")]
    Format {
        /// The name.
        name: String,
        /// The error.
        fault: String,
    },
    /// The name does not have the registry and the full path.
    #[error("repository name must be canonical")]
    NotCanonical,
    /// The name is not a reference.
    #[error(transparent)]
    Parse(#[from] mainstay_image::reference::ImageReferenceError),
    /// The name has both a tag and a digest.
    #[error("Docker references with both a tag and digest are currently not supported")]
    TagAndDigest,
    /// The name has neither; the text of containers/image.
    #[error(
        "Docker reference {familiar} is not for an unknown digest case; tag or digest is needed"
    )]
    NoTag {
        /// The familiar form of the name.
        familiar: String,
    },
    /// The name has neither; the text of containerd.
    #[error("error resolving remote name {name}: object required")]
    NoObject {
        /// The name.
        name: String,
    },
}

/// Parses the name of an image.
///
/// # Errors
/// If the name is invalid.
pub(super) fn image(name: &str, library: &PullLibrary) -> Result<ImageReference, NameError> {
    if let Some(fault) = mainstay_catalog::reference_fault(name) {
        return Err(NameError::Format { name: name.to_owned(), fault });
    }
    // The name must have the registry and the full path.
    let (registry, path) = name.split_once('/').unwrap_or(("", name));
    let names_registry = registry.contains(['.', ':']) || registry == "localhost";
    let in_full = match registry {
        "docker.io" => path.contains('/'),
        "index.docker.io" => false,
        _ => names_registry,
    };
    if !in_full {
        return Err(NameError::NotCanonical);
    }
    let reference = ImageReference::parse(name)?;
    match (reference.tag(), reference.digest(), library) {
        (Some(_), Some(_), PullLibrary::Containers) => Err(NameError::TagAndDigest),
        (None, None, PullLibrary::Containers) => {
            Err(NameError::NoTag { familiar: reference.familiar() })
        }
        (None, None, PullLibrary::Containerd(_)) => {
            Err(NameError::NoObject { name: name.to_owned() })
        }
        _ => Ok(reference),
    }
}

/// Registry flags are mutually exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FlagConflict {
    /// Two flags for no TLS.
    #[error("invalid flag combination: cannot use --use-http with --skip-tls")]
    HttpAndSkipTls,
    /// No TLS, and TLS with any certificate, by the older flag.
    #[error("invalid flag combination: cannot use --skip-tls-verify with --skip-tls")]
    VerifyAndSkipTls,
    /// No TLS, and TLS with any certificate.
    #[error("invalid flag combination: --use-http and --skip-tls-verify cannot both be true")]
    HttpAndVerify,
}

/// The registry access of the flags. Upstream checks them even where no registry is needed.
///
/// # Errors
/// If the flags are mutually exclusive.
pub(super) fn registry_access(call: &Call<'_, '_>) -> Result<RegistryAccess, FlagConflict> {
    let flags = &call.flags;
    if flags.has("skip-tls") && flags.has("use-http") {
        Err(FlagConflict::HttpAndSkipTls)
    } else if flags.has("skip-tls") && flags.has("skip-tls-verify") {
        Err(FlagConflict::VerifyAndSkipTls)
    } else if flags.is_on("skip-tls-verify") && flags.is_on("use-http") {
        Err(FlagConflict::HttpAndVerify)
    } else if flags.is_on("skip-tls") || flags.is_on("use-http") {
        Ok(RegistryAccess::Plain)
    } else if flags.is_on("skip-tls-verify") {
        Ok(RegistryAccess::Unverified)
    } else {
        Ok(RegistryAccess::Verified)
    }
}

/// The security of connections to registries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegistryAccess {
    /// TLS with trusted certificates.
    Verified,
    /// TLS with any certificate.
    Unverified,
    /// No TLS.
    Plain,
}

impl RegistryAccess {
    /// The setting for containers/image: one for both insecure modes, with a fallback to no TLS.
    pub(super) fn containers(self) -> Security {
        if self == Self::Verified { Security::Tls } else { Security::Insecure }
    }

    /// The setting for containerd.
    pub(super) fn containerd(self) -> Security {
        match self {
            Self::Verified => Security::Tls,
            Self::Unverified => Security::Insecure,
            Self::Plain => Security::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_name_must_have_its_registry_and_full_path() {
        let canonical = "repository name must be canonical";
        let both = "Docker references with both a tag and digest are currently not supported";
        let digest = format!("a.b/c@sha256:{}", "0".repeat(64));
        let untagged = |name: &str| {
            format!(
                "Docker reference {name} is not for an unknown digest case; tag or digest is needed"
            )
        };
        for (reference, fault) in [
            ("nope", Some(canonical)),
            ("a/b:v1", Some(canonical)),
            ("docker.io/a:v1", Some(canonical)),
            ("index.docker.io/a/b:v1", Some(canonical)),
            ("", Some("invalid reference format")),
            ("localhost/a:v1", None),
            ("docker.io/library/a:v1", None),
            (&digest, None),
            (&digest.replace('@', ":v1@"), Some(both)),
            ("a.b/c", Some(&untagged("a.b/c"))),
            ("docker.io/library/a", Some(&untagged("a"))),
        ] {
            let found =
                image(reference, &PullLibrary::Containers).err().map(|error| error.to_string());
            assert_eq!(found.as_deref(), fault, "{reference}");
        }
    }

    #[test]
    fn containerd_accepts_a_tag_with_a_digest_and_requires_one_of_them() {
        let library = PullLibrary::Containerd(Vec::new());
        let both = format!("a.b/c:v1@sha256:{}", "0".repeat(64));
        assert!(image(&both, &library).is_ok());
        let fault = image("a.b/c", &library).unwrap_err();
        assert_eq!(fault.to_string(), "error resolving remote name a.b/c: object required");
    }
}
