//! What an argument refers to: a folder with a catalog or a bundle, a file, or an image.

use super::call::{Call, CommandIo};
use super::error::PathError;
use super::pull::PullLibrary;
use super::{go, mediatype};
use mainstay_image::reference::Reference;
use mainstay_image::registry::Security;
use std::io::Read;

/// What a reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReferenceKind {
    /// A folder with a catalog.
    Catalog,
    /// A folder with a bundle.
    Bundle,
    /// A file with a SQLite database.
    Database,
    /// Nothing that is here: an image, if anything.
    Image,
}

/// A reference leads to nothing that can be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReferenceError {
    /// Its file cannot be opened.
    #[error(transparent)]
    Open(#[from] PathError),
    /// Its file is of a type that holds no catalog.
    #[error("ref {} has unsupported file type: {kind}", go::quote(reference))]
    FileType {
        /// The reference.
        reference: String,
        /// The type, as Go prints it.
        kind: String,
    },
}

/// Looks what a reference leads to.
///
/// # Errors
/// If it leads to nothing that can be read.
pub(super) fn find(io: &CommandIo<'_>, reference: &str) -> Result<ReferenceKind, ReferenceError> {
    let Ok(is_folder) = io.is_folder(reference) else {
        return Ok(ReferenceKind::Image);
    };
    let path = io.resolve_path(reference);
    if is_folder {
        // A link to a folder is none.
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

/// A name stands for no image, in the words of the library that upstream pulls with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NameError {
    /// It is not written as one.
    #[error("{fault}")]
    Format {
        /// The name.
        name: String,
        /// What is wrong with it.
        fault: String,
    },
    /// It does not say which registry has the image, and the path there, in full.
    #[error("repository name must be canonical")]
    NotCanonical,
    /// It is no reference.
    #[error(transparent)]
    Parse(#[from] mainstay_image::reference::ReferenceError),
    /// It has both a tag and a digest.
    #[error("Docker references with both a tag and digest are currently not supported")]
    TagAndDigest,
    /// It has neither, for the one library.
    #[error(
        "Docker reference {familiar} is not for an unknown digest case; tag or digest is needed"
    )]
    NoTag {
        /// The name as people write it.
        familiar: String,
    },
    /// It has neither, for the other one.
    #[error("error resolving remote name {name}: object required")]
    NoObject {
        /// The name.
        name: String,
    },
}

/// The image that a name stands for.
///
/// # Errors
/// If it stands for none.
pub(super) fn image(name: &str, library: &PullLibrary) -> Result<Reference, NameError> {
    if let Some(fault) = mainstay_catalog::reference_fault(name) {
        return Err(NameError::Format { name: name.to_owned(), fault });
    }
    // The name must say which registry has it, and the path there, in full.
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
    let reference = Reference::parse(name)?;
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

/// Flags about registries exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FlagConflict {
    /// Two ways to do without TLS.
    #[error("invalid flag combination: cannot use --use-http with --skip-tls")]
    HttpAndSkipTls,
    /// No TLS, and TLS with any certificate, by the older flag.
    #[error("invalid flag combination: cannot use --skip-tls-verify with --skip-tls")]
    VerifyAndSkipTls,
    /// No TLS, and TLS with any certificate.
    #[error("invalid flag combination: --use-http and --skip-tls-verify cannot both be true")]
    HttpAndVerify,
}

/// How registries are reached, as the flags say it. Upstream looks at them even where no registry is
/// needed.
///
/// # Errors
/// If some exclude each other.
pub(super) fn security(call: &Call<'_, '_>) -> Result<RegistryAccess, FlagConflict> {
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

/// How registries are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegistryAccess {
    /// With TLS and certificates that are trusted.
    Verified,
    /// With TLS and any certificate.
    Unverified,
    /// Without TLS.
    Plain,
}

impl RegistryAccess {
    /// What containers' library makes of it: one word for both, and who has no TLS is asked without.
    pub(super) fn containers(self) -> Security {
        if self == Self::Verified { Security::Tls } else { Security::Insecure }
    }

    /// What containerd's makes of it.
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
    fn what_is_no_folder_must_be_an_image_in_full() {
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
    fn the_other_library_takes_a_tag_with_a_digest_and_wants_one_of_them() {
        let library = PullLibrary::Containerd(Vec::new());
        let both = format!("a.b/c:v1@sha256:{}", "0".repeat(64));
        assert!(image(&both, &library).is_ok());
        let fault = image("a.b/c", &library).unwrap_err();
        assert_eq!(fault.to_string(), "error resolving remote name a.b/c: object required");
    }
}
