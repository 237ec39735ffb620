//! What an argument refers to: a folder with a catalog or a bundle, a file, or an image.

use super::call::{Call, Io};
use super::pull::Way;
use super::{go, mediatype};
use mainstay_image::reference::Reference;
use mainstay_image::registry::Security;
use std::io::Read;

/// What a reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A folder with a catalog.
    Catalog,
    /// A folder with a bundle.
    Bundle,
    /// A file with a SQLite database.
    Database,
    /// Nothing that is here: an image, if anything.
    Image,
}

/// Looks what a reference leads to.
///
/// # Errors
/// Why it leads to nothing that can be read, in upstream's words where it has some.
pub(super) fn find(io: &Io<'_>, reference: &str) -> Result<Kind, String> {
    let quoted = go::quote(reference);
    let Ok(is_folder) = io.is_folder(reference) else {
        return Ok(Kind::Image);
    };
    let path = io.at(reference);
    if is_folder {
        // A link to a folder is none.
        let has = |name: &str| {
            std::fs::symlink_metadata(path.join(name)).is_ok_and(|found| found.is_dir())
        };
        let is_bundle = has("manifests") && has("metadata");
        return Ok(if is_bundle { Kind::Bundle } else { Kind::Catalog });
    }
    let mut start = Vec::new();
    std::fs::File::open(&path)
        .and_then(|file| file.take(mediatype::ENOUGH).read_to_end(&mut start))
        .map_err(|error| format!("open {reference}: {}", go::reason(&error)))?;
    match mediatype::with_extension(start) {
        Some((_, "sqlite")) => Ok(Kind::Database),
        Some((kind, extension)) => {
            let (main, sub) = kind.split_once('/').unwrap_or((kind, ""));
            let kind = format!("{{{{{main} {sub} {kind}}} {extension}}}");
            Err(format!("ref {quoted} has unsupported file type: {kind}"))
        }
        None => Err(format!("ref {quoted} has unsupported file type: {{{{  }} unknown}}")),
    }
}

/// The image that a name stands for.
///
/// # Errors
/// Why it stands for none, in the words of the library that upstream pulls with.
pub(super) fn image(name: &str, way: &Way) -> Result<Reference, String> {
    if let Some(fault) = mainstay_catalog::reference_fault(name) {
        return Err(fault);
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
        return Err("repository name must be canonical".to_owned());
    }
    let reference = Reference::parse(name).map_err(|error| error.to_string())?;
    let fault = match (reference.tag(), reference.digest(), way) {
        (Some(_), Some(_), Way::Containers) => {
            "Docker references with both a tag and digest are currently not supported".to_owned()
        }
        (None, None, Way::Containers) => format!(
            "Docker reference {} is not for an unknown digest case; tag or digest is needed",
            reference.familiar()
        ),
        (None, None, Way::Containerd(_)) => {
            format!("error resolving remote name {name}: object required")
        }
        _ => return Ok(reference),
    };
    Err(fault)
}

/// How registries are reached, as the flags say it. Upstream looks at them even where no registry is
/// needed.
///
/// # Errors
/// If some exclude each other.
pub(super) fn security(call: &Call<'_, '_>) -> Result<Reach, String> {
    let flags = &call.flags;
    let what = if flags.has("skip-tls") && flags.has("use-http") {
        "cannot use --use-http with --skip-tls"
    } else if flags.has("skip-tls") && flags.has("skip-tls-verify") {
        "cannot use --skip-tls-verify with --skip-tls"
    } else if flags.is_on("skip-tls-verify") && flags.is_on("use-http") {
        "--use-http and --skip-tls-verify cannot both be true"
    } else if flags.is_on("skip-tls") || flags.is_on("use-http") {
        return Ok(Reach::Plain);
    } else if flags.is_on("skip-tls-verify") {
        return Ok(Reach::Unverified);
    } else {
        return Ok(Reach::Verified);
    };
    Err(format!("invalid flag combination: {what}"))
}

/// How registries are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// With TLS and certificates that are trusted.
    Verified,
    /// With TLS and any certificate.
    Unverified,
    /// Without TLS.
    Plain,
}

impl Reach {
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
            assert_eq!(image(reference, &Way::Containers).err().as_deref(), fault, "{reference}");
        }
    }

    #[test]
    fn the_other_library_takes_a_tag_with_a_digest_and_wants_one_of_them() {
        let way = Way::Containerd(Vec::new());
        let both = format!("a.b/c:v1@sha256:{}", "0".repeat(64));
        assert!(image(&both, &way).is_ok());
        let fault = image("a.b/c", &way).unwrap_err();
        assert_eq!(fault, "error resolving remote name a.b/c: object required");
    }
}
