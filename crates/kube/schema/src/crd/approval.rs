//! API approval annotation of CRDs in groups of the Kubernetes community.

use crate::webhook;
use mainstay_gocompat::quote;
use mainstay_object::Object;

/// The annotation with the URL of the approval, or a reason without one.
pub(super) const ANNOTATION: &str = "api-approved.kubernetes.io";

/// Whether a group belongs to the Kubernetes community.
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// The state of the annotation of a CRD in a protected group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// The annotation is missing.
    Missing,
    /// The value is neither a URL nor a reason.
    Invalid,
    /// The value is a URL.
    Approved,
    /// The value begins with `unapproved`.
    Bypassed,
}

impl Approval {
    /// Reads the annotation.
    pub fn of(object: &Object) -> Self {
        let text = object.annotation(ANNOTATION).unwrap_or_default();
        if text.is_empty() {
            Self::Missing
        } else if text.starts_with("unapproved") {
            Self::Bypassed
        } else if webhook::is_absolute_url(text) {
            Self::Approved
        } else {
            Self::Invalid
        }
    }

    /// The message of the condition and of errors.
    pub fn message(self, object: &Object) -> String {
        let text = object.annotation(ANNOTATION).unwrap_or_default();
        let see = "see https://github.com/kubernetes/enhancements/pull/1111";
        match self {
            Self::Missing => {
                format!("protected groups must have approval annotation {ANNOTATION:?}, {see}")
            }
            Self::Invalid => format!(
                "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting with \"unapproved\", {see}"
            ),
            Self::Approved => format!("approved in {text}"),
            Self::Bypassed => format!("not approved: {}", quote(text)),
        }
    }
}
