//! Approval of APIs in groups of the Kubernetes community.

use crate::webhook;
use mainstay_gocompat::quote;
use mainstay_object::Object;

/// The annotation that says where the approval is, or that there is none.
pub(super) const APPROVED: &str = "api-approved.kubernetes.io";

/// Whether a group belongs to the Kubernetes community.
pub fn is_protected(group: &str) -> bool {
    ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        group.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// What the annotation of a definition in a protected group says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// Nothing.
    Missing,
    /// Neither a URL nor that there is none.
    Invalid,
    /// Where the approval is.
    Approved,
    /// That there is none.
    Bypassed,
}

impl Approval {
    /// Reads the annotation.
    pub fn of(object: &Object) -> Self {
        let text = object.annotation(APPROVED).unwrap_or_default();
        if text.is_empty() {
            Self::Missing
        } else if text.starts_with("unapproved") {
            Self::Bypassed
        } else if webhook::names_a_host(text) {
            Self::Approved
        } else {
            Self::Invalid
        }
    }

    /// The words for it.
    pub fn message(self, object: &Object) -> String {
        let text = object.annotation(APPROVED).unwrap_or_default();
        let see = "see https://github.com/kubernetes/enhancements/pull/1111";
        match self {
            Self::Missing => {
                format!("protected groups must have approval annotation {APPROVED:?}, {see}")
            }
            Self::Invalid => format!(
                "protected groups must have approval annotation {APPROVED:?} with either a URL or a reason starting with \"unapproved\", {see}"
            ),
            Self::Approved => format!("approved in {text}"),
            Self::Bypassed => format!("not approved: {}", quote(text)),
        }
    }
}
