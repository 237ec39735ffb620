//! What an argument refers to: a folder with a catalog or a bundle, a file, or an image.

use super::call::{Call, Io};
use super::{go, mediatype};
use std::io::Read;

/// What a reference leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A folder with a catalog.
    Catalog,
    /// A folder with a bundle.
    Bundle,
}

/// Looks what a reference leads to.
///
/// # Errors
/// Why it leads to nothing that can be read, in upstream's words where it has some.
pub(super) fn find(io: &Io<'_>, reference: &str) -> Result<Kind, String> {
    let quoted = go::quote(reference);
    let Ok(is_folder) = io.is_folder(reference) else {
        return Err(format!("failed to pull image {quoted}: {}", image_fault(reference)));
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
    Err(match mediatype::with_extension(start) {
        Some((kind, "sqlite")) => {
            format!(
                "ref {quoted} is a database ({kind}), and databases are not read by this version; give a folder"
            )
        }
        Some((kind, extension)) => {
            let (main, sub) = kind.split_once('/').unwrap_or((kind, ""));
            let kind = format!("{{{{{main} {sub} {kind}}} {extension}}}");
            format!("ref {quoted} has unsupported file type: {kind}")
        }
        None => format!("ref {quoted} has unsupported file type: {{{{  }} unknown}}"),
    })
}

/// Why what is not there as a file cannot be had as an image either.
fn image_fault(reference: &str) -> String {
    if let Some(fault) = mainstay_catalog::reference_fault(reference) {
        return fault;
    }
    // The name must say which registry has it, and the path there, in full.
    let (registry, path) = reference.split_once('/').unwrap_or(("", reference));
    let names_registry = registry.contains(['.', ':']) || registry == "localhost";
    let in_full = match registry {
        "docker.io" => path.contains('/'),
        "index.docker.io" => false,
        _ => names_registry,
    };
    if !in_full {
        return "repository name must be canonical".to_owned();
    }
    let (name, digest) = path.split_once('@').map_or((path, false), |(name, _)| (name, true));
    let tag = name.contains(':');
    match (tag, digest) {
        (true, true) => {
            "Docker references with both a tag and digest are currently not supported".to_owned()
        }
        (false, false) => {
            let familiar = reference.strip_prefix("docker.io/").unwrap_or(reference);
            let familiar = match familiar.strip_prefix("library/") {
                Some(short) if registry == "docker.io" && !short.contains('/') => short,
                _ => familiar,
            };
            format!(
                "Docker reference {familiar} is not for an unknown digest case; tag or digest is needed"
            )
        }
        _ => "images are not pulled by this version; give a folder".to_owned(),
    }
}

/// What is wrong with the flags about registries, which upstream looks at even where no registry is
/// needed.
///
/// # Errors
/// If some exclude each other.
pub(super) fn check_registry_flags(call: &Call<'_, '_>) -> Result<(), String> {
    let flags = &call.flags;
    let what = if flags.has("skip-tls") && flags.has("use-http") {
        "cannot use --use-http with --skip-tls"
    } else if flags.has("skip-tls") && flags.has("skip-tls-verify") {
        "cannot use --skip-tls-verify with --skip-tls"
    } else if flags.is_on("skip-tls-verify") && flags.is_on("use-http") {
        "--use-http and --skip-tls-verify cannot both be true"
    } else {
        return Ok(());
    };
    Err(format!("invalid flag combination: {what}"))
}

#[cfg(test)]
mod tests {
    use super::image_fault;

    #[test]
    fn what_is_no_folder_must_be_an_image_in_full() {
        let not_pulled = "images are not pulled by this version; give a folder";
        let canonical = "repository name must be canonical";
        let both = "Docker references with both a tag and digest are currently not supported";
        let digest = format!("a.b/c@sha256:{}", "0".repeat(64));
        for (reference, fault) in [
            ("nope", canonical),
            ("a/b:v1", canonical),
            ("docker.io/a:v1", canonical),
            ("index.docker.io/a/b:v1", canonical),
            ("", "invalid reference format"),
            ("localhost/a:v1", not_pulled),
            ("docker.io/library/a:v1", not_pulled),
            (&digest, not_pulled),
            (&digest.replace('@', ":v1@"), both),
            (
                "a.b/c",
                "Docker reference a.b/c is not for an unknown digest case; tag or digest is needed",
            ),
            (
                "docker.io/library/a",
                "Docker reference a is not for an unknown digest case; tag or digest is needed",
            ),
        ] {
            assert_eq!(image_fault(reference), fault, "{reference}");
        }
    }
}
