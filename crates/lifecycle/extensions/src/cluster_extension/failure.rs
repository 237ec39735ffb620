//! Failures of a reconciliation: what the condition `Progressing` says.

use super::status::Progress;

/// Why an extension is not as its spec says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The message, in upstream's words.
    message: String,
    kind: FailureKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureKind {
    Retrying,
    ContentUnavailable,
    Blocked,
    InvalidConfiguration,
}

impl Failure {
    /// A failure after which the controller tries again.
    pub(super) const fn retrying(message: String) -> Self {
        Self { message, kind: FailureKind::Retrying }
    }

    /// A failure to pull the content of a bundle. The controller tries again; an installed bundle can stay
    /// meanwhile.
    pub(super) const fn content_unavailable(message: String) -> Self {
        Self { message, kind: FailureKind::ContentUnavailable }
    }

    /// A failure that only a change of the spec or of a catalog can remove.
    pub(super) const fn blocked(message: String) -> Self {
        Self { message, kind: FailureKind::Blocked }
    }

    /// A configuration that the bundle refuses.
    pub(super) const fn invalid_configuration(message: String) -> Self {
        Self { message, kind: FailureKind::InvalidConfiguration }
    }

    /// The failure with a text before its message.
    pub(super) fn within(self, text: &str) -> Self {
        Self { message: format!("{text}: {}", self.message), ..self }
    }

    /// The message.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// Whether the controller tries again by itself.
    pub(super) const fn is_retried(&self) -> bool {
        matches!(self.kind, FailureKind::Retrying | FailureKind::ContentUnavailable)
    }

    /// Whether the content of a bundle cannot be pulled.
    pub(super) const fn is_content_unavailable(&self) -> bool {
        matches!(self.kind, FailureKind::ContentUnavailable)
    }

    /// What the condition `Progressing` says.
    pub(super) fn progress(&self) -> Progress {
        let message = self.message.clone();
        match self.kind {
            FailureKind::Retrying | FailureKind::ContentUnavailable => Progress::Retrying(message),
            FailureKind::Blocked => Progress::Blocked(message),
            FailureKind::InvalidConfiguration => Progress::InvalidConfiguration(message),
        }
    }
}
