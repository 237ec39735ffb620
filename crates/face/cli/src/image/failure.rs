//! Failures of image commands, with remedies.

use crate::{catalog::escape_controls, config::reason, exit::CommandFailure};
use mainstay_cause::Cause;
use mainstay_image::{
    build::LayerError, fetch::FetchError, layout::LayoutError, mirror::MirrorError,
    policy::PolicyRefusal, registry::RegistryError, store::ImageStoreError, unpack::UnpackError,
};

/// A failed operation and its reason.
fn failed(what: &str, why: &str) -> Cause {
    Cause::new(escape_controls(what)).because(Cause::new(escape_controls(why)))
}

/// A registry operation failed.
pub(super) fn registry(what: &str, error: &RegistryError) -> CommandFailure {
    with_remedy(failed(what, &error.to_string()), error).into()
}

fn with_remedy(cause: Cause, error: &RegistryError) -> Cause {
    match error {
        RegistryError::Connection { why, .. } if why.contains("certificate") => cause
            .remedy("trust who signed its certificate with --ca-file FILE")
            .remedy("do without looking at it with --insecure"),
        RegistryError::Connection { .. } | RegistryError::Stalled { .. } => {
            cause.remedy("see whether the registry runs and is reached from here")
        }
        RegistryError::Unauthorized { .. } => {
            cause.remedy("log in, or name a file with names and passwords with --authfile FILE")
        }
        RegistryError::Status { status, .. } => match status.as_u16() {
            401 | 403 => cause.remedy("use an account that may do this (--authfile FILE)"),
            404 => cause.remedy("see what there is with: mainstay image tags REPOSITORY"),
            429 => cause.remedy("wait, or log in: registries limit strangers"),
            _ => cause,
        },
        RegistryError::Platform { .. } => cause
            .remedy("name one that it has with --platform OS/ARCH")
            .remedy("take all with --all-platforms"),
        RegistryError::Store(error) => store_remedy(cause, error),
        _ => cause,
    }
}

fn store_remedy(cause: Cause, error: &ImageStoreError) -> Cause {
    match error {
        ImageStoreError::NoBlob(_) => cause
            .remedy("take the image for one platform with --platform OS/ARCH")
            .remedy("get it for all platforms first: mainstay image pull --all-platforms IMAGE"),
        ImageStoreError::Io { .. } => cause.remedy("name another folder with --store DIR"),
        _ => cause,
    }
}

/// An image cannot be fetched.
pub(super) fn fetch(what: &str, error: &FetchError) -> CommandFailure {
    match error {
        FetchError::Refused(refused) => {
            let cause = failed(what, &refused.to_string());
            let remedy = match refused {
                PolicyRefusal::Unsigned { .. } => {
                    "have it signed, or name the key with --cosign-key FILE"
                }
                PolicyRefusal::Rejected(_) | PolicyRefusal::Unsupported(..) => {
                    "name another policy with --policy FILE"
                }
            };
            cause.remedy(remedy).into()
        }
        FetchError::Mirror(MirrorError::All { attempts, .. }) => match attempts.as_slice() {
            [(_, error)] => registry(what, error),
            several => {
                let causes = several.iter().map(|(place, error)| {
                    let cause = Cause::new(format!(
                        "from {}: {}",
                        escape_controls(place),
                        escape_controls(&error.to_string())
                    ));
                    with_remedy(cause, error)
                });
                Cause::new(escape_controls(what)).because_all(causes).into()
            }
        },
        FetchError::Mirror(error) => failed(what, &error.to_string())
            .remedy(
                "correct the rules, or name others with --registries-conf FILE or --mirrors FILE",
            )
            .into(),
    }
}

/// The tags of a repository cannot be listed.
pub(super) fn listing(what: &str, error: &FetchError) -> CommandFailure {
    if let FetchError::Mirror(MirrorError::All { attempts, .. }) = error
        && let [(_, why @ RegistryError::Status { status, .. })] = attempts.as_slice()
        && status.as_u16() == 404
    {
        let cause = failed(what, &why.to_string()).remedy("see whether its name is right");
        return cause
            .remedy("log in (--authfile FILE): registries hide what strangers may not see")
            .into();
    }
    fetch(what, error)
}

/// A store operation failed.
pub(super) fn store(what: &str, error: &ImageStoreError) -> CommandFailure {
    store_remedy(failed(what, &store_text(error)), error).into()
}

fn store_text(error: &ImageStoreError) -> String {
    match error {
        ImageStoreError::Io { what, path, source } => {
            format!("{what} {}: {}", path.display(), reason(source))
        }
        other => other.to_string(),
    }
}

/// An OCI layout or an archive cannot be read or written.
pub(super) fn layout(what: &str, error: &LayoutError) -> CommandFailure {
    let why = match error {
        LayoutError::Io { what, path, source } => {
            format!("{what} {}: {}", path.display(), reason(source))
        }
        LayoutError::Store(error) => store_text(error),
        other => other.to_string(),
    };
    let cause = failed(what, &why);
    match error {
        LayoutError::Exists(_) => CommandFailure::usage(
            cause.remedy("name one that is not there, or a folder with an OCI layout to add to"),
        ),
        LayoutError::Unknown(_) => CommandFailure::usage(
            cause.remedy("name an OCI layout, or an archive of one or of `docker save`"),
        ),
        LayoutError::Missing { name, .. } if name == "image for one platform" => {
            CommandFailure::usage(cause.remedy("choose one with --platform OS/ARCH"))
        }
        LayoutError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            CommandFailure::usage(cause.remedy("name a layout or an archive that is there"))
        }
        LayoutError::Store(error) => store_remedy(cause, error).into(),
        _ => cause.into(),
    }
}

/// A layer cannot be built.
pub(super) fn layer(what: &str, error: &LayerError) -> CommandFailure {
    match error {
        LayerError::Store(error) => store(what, error),
        LayerError::Changed(_) => {
            failed(what, &error.to_string()).remedy("build again when nobody writes to it").into()
        }
        other => failed(what, &other.to_string()).into(),
    }
}

/// An image cannot be unpacked.
pub(super) fn unpack(what: &str, error: &UnpackError) -> CommandFailure {
    let why = match error {
        UnpackError::Io { what, path, source } => {
            format!("{what} {}: {}", path.display(), reason(source))
        }
        UnpackError::Store(error) => store_text(error),
        other => other.to_string(),
    };
    let cause = failed(what, &why);
    match error {
        UnpackError::Exists(_) => {
            CommandFailure::usage(cause.remedy("name a folder that is not there, or remove it"))
        }
        UnpackError::Entry { .. } | UnpackError::LimitExceeded { .. } => {
            cause.remedy("do not use this image: no tool writes such layers by accident").into()
        }
        UnpackError::Store(error) => store_remedy(cause, error).into(),
        _ => cause.into(),
    }
}
