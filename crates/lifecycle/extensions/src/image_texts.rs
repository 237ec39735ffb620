//! Image references and errors of images in the words of catalogd and operator-controller.

use mainstay_image::unpack::UnpackError;
use mainstay_images::StepError;
use std::fmt;

/// A failed pull in upstream's words.
pub(crate) struct PullText<'e>(pub(crate) &'e StepError);

impl fmt::Display for PullText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            StepError::Fetch { .. } if self.0.is_resolving() => {
                write!(f, "error creating image source: {}", self.0)
            }
            error => write!(f, "error copying image: {error}"),
        }
    }
}

/// A layer that cannot be unpacked in upstream's words, which count layers from 0.
pub(crate) struct LayerText<'e>(pub(crate) &'e UnpackError);

impl fmt::Display for LayerText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (layer, why) = match self.0 {
            UnpackError::Archive { layer, source } if source.is_truncated() => {
                (layer, "unexpected EOF".to_owned())
            }
            UnpackError::Archive { layer, source } => (layer, source.to_string()),
            UnpackError::Entry { layer, name, why } => (layer, format!("entry {name:?} {why}")),
            UnpackError::LimitExceeded { layer, why } => (layer, why.clone()),
            UnpackError::DiffId { layer, .. } => {
                (layer, "the content does not have its diff id".to_owned())
            }
            other => return write!(f, "{other}"),
        };
        write!(f, "error applying layer[{}]: {why}", layer.saturating_sub(1))
    }
}

/// Whether a reference names a tag, beside a digest or not.
pub(crate) fn has_tag(reference: &str) -> bool {
    let name = reference.split('@').next().unwrap_or_default();
    name.rsplit('/').next().is_some_and(|last| last.contains(':'))
}
