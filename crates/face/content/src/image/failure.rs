//! Failures of image commands, with remedies.

use mainstay_cause::Cause;
use mainstay_command::exit::CommandFailure;
use mainstay_command::text::escape_controls;
use mainstay_gocompat::io_error_text;
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
            .remedy("trust the CA of its certificate with --ca-file FILE")
            .remedy("accept any certificate with --insecure"),
        RegistryError::Connection { .. } | RegistryError::Stalled { .. } => {
            cause.remedy("check that the registry runs and is reachable from this machine")
        }
        RegistryError::Unauthorized { .. } => {
            cause.remedy("log in, or name a file with credentials with --authfile FILE")
        }
        RegistryError::Status { status, .. } => match status.as_u16() {
            401 | 403 => cause.remedy("use an account that may do this (--authfile FILE)"),
            404 => cause.remedy("list the tags with: mainstay image tags REPOSITORY"),
            429 => cause.remedy("wait, or log in: registries limit anonymous users"),
            _ => cause,
        },
        RegistryError::Platform { .. } => cause
            .remedy("name one that it has with --platform OS/ARCH")
            .remedy("select all with --all-platforms"),
        RegistryError::Store(error) => store_remedy(cause, error),
        _ => cause,
    }
}

fn store_remedy(cause: Cause, error: &ImageStoreError) -> Cause {
    match error {
        ImageStoreError::NoBlob(_) => cause
            .remedy("select the image for one platform with --platform OS/ARCH")
            .remedy("pull it for all platforms first: mainstay image pull --all-platforms IMAGE"),
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
        let cause = failed(what, &why.to_string()).remedy("check its name");
        return cause
            .remedy("log in (--authfile FILE): registries hide private images from anonymous users")
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
            format!("{what} {}: {}", path.display(), io_error_text(source))
        }
        other => other.to_string(),
    }
}

/// An OCI layout or an archive cannot be read or written.
pub(super) fn layout(what: &str, error: &LayoutError) -> CommandFailure {
    let why = match error {
        LayoutError::Io { what, path, source } => {
            format!("{what} {}: {}", path.display(), io_error_text(source))
        }
        LayoutError::Store(error) => store_text(error),
        other => other.to_string(),
    };
    let cause = failed(what, &why);
    match error {
        LayoutError::Exists(_) => CommandFailure::usage(cause.remedy(
            "name a path that does not exist, or the folder of an OCI layout to add the image to",
        )),
        LayoutError::Unknown(_) => CommandFailure::usage(
            cause.remedy("name an OCI layout, or an archive of one or of `docker save`"),
        ),
        LayoutError::Missing { name, .. } if name == "image for one platform" => {
            CommandFailure::usage(cause.remedy("choose one with --platform OS/ARCH"))
        }
        LayoutError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            CommandFailure::usage(cause.remedy("name a layout or an archive that exists"))
        }
        LayoutError::Store(error) => store_remedy(cause, error).into(),
        _ => cause.into(),
    }
}

/// A layer cannot be built.
pub(super) fn layer(what: &str, error: &LayerError) -> CommandFailure {
    match error {
        LayerError::Store(error) => store(what, error),
        LayerError::Changed(_) => failed(what, &error.to_string())
            .remedy("build again when no program writes to it")
            .into(),
        other => failed(what, &other.to_string()).into(),
    }
}

/// An image cannot be unpacked.
pub(super) fn unpack(what: &str, error: &UnpackError) -> CommandFailure {
    let why = match error {
        UnpackError::Io { what, path, source } => {
            format!("{what} {}: {}", path.display(), io_error_text(source))
        }
        UnpackError::Store(error) => store_text(error),
        other => other.to_string(),
    };
    let cause = failed(what, &why);
    match error {
        UnpackError::Exists(_) => CommandFailure::usage(
            cause.remedy("name a folder that does not exist, or remove this one"),
        ),
        UnpackError::Entry { .. } | UnpackError::LimitExceeded { .. } => {
            cause.remedy("do not use this image: no tool writes such layers by accident").into()
        }
        UnpackError::Store(error) => store_remedy(cause, error).into(),
        _ => cause.into(),
    }
}
