//! Locations of images, as typed: registries, the store, files.

use mainstay_cause::Cause;
use mainstay_image::{digest::Digest, reference::ImageReference};
use std::fmt;

/// The location of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// A registry.
    Registry(ImageReference),
    /// The store of this machine.
    Store(ImageReference),
    /// A file or a folder; some formats hold several images, of which a name selects one.
    File {
        /// The file format.
        form: FileFormat,
        /// The path as typed.
        path: String,
        /// The name of the image in it.
        name: Option<String>,
    },
}

/// File formats of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// An OCI image layout.
    Layout,
    /// An OCI image layout in a tar archive.
    Archive,
    /// An archive as `docker save` writes it.
    Docker,
}

impl FileFormat {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Layout => "oci",
            Self::Archive => "oci-archive",
            Self::Docker => "docker-archive",
        }
    }
}

/// The forms of a location, for help and remedies.
pub(crate) const LOCATION_FORMS: &str = "write REGISTRY/NAME:TAG, store:NAME:TAG, oci:DIR[:TAG], \
     oci-archive:FILE[:TAG] or docker-archive:FILE[:NAME]";

impl Location {
    /// Parses a location.
    ///
    /// # Errors
    /// The text is no location; the error shows the forms, and hides a password in the text.
    pub(crate) fn read(text: &str) -> Result<Self, Cause> {
        for form in [FileFormat::Layout, FileFormat::Archive, FileFormat::Docker] {
            let rest = text.strip_prefix(form.prefix()).and_then(|rest| rest.strip_prefix(':'));
            let Some(rest) = rest else { continue };
            let (path, name) = match rest.split_once(':') {
                Some((path, name)) => (path, Some(name)),
                None => (rest, None),
            };
            let what = if form == FileFormat::Layout { "folder" } else { "file" };
            if path.is_empty() {
                return Err(Cause::new(format!("`{}` names no {what}", without_password(text)))
                    .remedy(format!("write {}:{}", form.prefix(), what.to_uppercase())));
            }
            let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
            return Ok(Self::File { form, path: path.to_owned(), name });
        }
        if let Some(rest) = text.strip_prefix("store:") {
            return Ok(Self::Store(reference(rest)?));
        }
        let rest = text.strip_prefix("docker://").unwrap_or(text);
        Ok(Self::Registry(reference(rest)?))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(reference) => write!(f, "{reference}"),
            Self::Store(reference) => write!(f, "store:{reference}"),
            Self::File { form, path, name } => {
                write!(f, "{}:{path}", form.prefix())?;
                name.iter().try_for_each(|name| write!(f, ":{name}"))
            }
        }
    }
}

/// Parses the name of an image in a registry.
pub(crate) fn reference(text: &str) -> Result<ImageReference, Cause> {
    text.parse().map_err(|error: mainstay_image::reference::ImageReferenceError| {
        let cause = Cause::new(format!("`{}` is not an image", without_password(text)));
        let cause =
            cause.because(Cause::new(mainstay_command::text::escape_controls(&error.to_string())));
        let like_a_path = text.starts_with(['.', '/', '~']);
        cause.remedy(if like_a_path {
            format!("for a folder or a file {LOCATION_FORMS}")
        } else {
            LOCATION_FORMS.to_owned()
        })
    })
}

/// The text of an invalid location, without a possible password.
fn without_password(text: &str) -> String {
    let text: String = text.chars().take(200).collect();
    match text.rsplit_once('@') {
        Some((_, end)) if end.parse::<Digest>().is_err() => {
            format!("***@{}", mainstay_command::text::escape_controls(end))
        }
        _ => mainstay_command::text::escape_controls(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_prints_as_it_is_parsed() {
        for (text, wanted) in [
            ("quay.io/a/b:v1", "quay.io/a/b:v1"),
            ("docker://quay.io/a/b:v1", "quay.io/a/b:v1"),
            ("busybox", "docker.io/library/busybox"),
            ("store:quay.io/a/b:v1", "store:quay.io/a/b:v1"),
            ("oci:out", "oci:out"),
            ("oci:out:", "oci:out"),
            ("oci:/a/b:v1", "oci:/a/b:v1"),
            ("oci-archive:a.tar:quay.io/a/b:v1", "oci-archive:a.tar:quay.io/a/b:v1"),
            ("docker-archive:a.tar", "docker-archive:a.tar"),
        ] {
            assert_eq!(Location::read(text).unwrap().to_string(), wanted, "{text}");
        }
    }

    #[test]
    fn error_for_an_invalid_location_hides_passwords() {
        for (text, wanted) in [
            ("oci:", "`oci:` names no folder (write oci:FOLDER)"),
            (
                "https://me:secret@quay.io/a",
                "`***@quay.io/a` is not an image: invalid reference format",
            ),
            ("me:secret@quay.io/a", "`***@quay.io/a` is not an image: invalid reference format"),
            ("./out", "`./out` is not an image: invalid reference format (for a folder or a file"),
            ("quay.io/A", "repository name (A) must be lowercase"),
        ] {
            let message = Location::read(text).unwrap_err().to_string();
            assert!(message.contains(wanted) && !message.contains("secret"), "{message}");
        }
    }
}
