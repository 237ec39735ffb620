//! A definition as the original holds it in memory: what all versions have in common stands once,
//! at the top, and is checked and named there.

use super::present;
use serde_json::Value;

/// A part that versions may have in common.
#[derive(Clone, Copy)]
pub(super) enum Shared<'a> {
    /// The versions differ: each has its own.
    Apart,
    /// All versions have this, or none has it.
    Once(Option<&'a Value>),
}

impl<'a> Shared<'a> {
    fn of(versions: &'a [Value], part: &str) -> Self {
        let of = |version: &'a Value| present(version.get(part));
        let first = versions.first().and_then(of);
        if versions.iter().all(|version| of(version) == first) {
            Self::Once(first)
        } else {
            Self::Apart
        }
    }

    /// What stands at the top.
    pub(super) const fn top(self) -> Option<&'a Value> {
        match self {
            Self::Apart => None,
            Self::Once(value) => value,
        }
    }

    /// What stands with a version.
    pub(super) fn own(self, version: &'a Value, part: &str) -> Option<&'a Value> {
        match self {
            Self::Apart => present(version.get(part)),
            Self::Once(_) => None,
        }
    }
}

/// The versions of a definition, and what they share.
#[derive(Clone, Copy)]
pub(super) struct Hub<'a> {
    pub(super) versions: &'a [Value],
    pub(super) schema: Shared<'a>,
    pub(super) subresources: Shared<'a>,
    pub(super) columns: Shared<'a>,
    pub(super) selectable: Shared<'a>,
}

impl<'a> Hub<'a> {
    pub(super) fn of(versions: &'a [Value]) -> Self {
        Self {
            versions,
            schema: Shared::of(versions, "schema"),
            subresources: Shared::of(versions, "subresources"),
            columns: Shared::of(versions, "additionalPrinterColumns"),
            selectable: Shared::of(versions, "selectableFields"),
        }
    }

    /// Whether any version has `/status`.
    pub(super) fn any_status(&self) -> bool {
        self.versions.iter().any(has_status)
    }
}

/// Whether a version has `/status`.
pub(super) fn has_status(version: &Value) -> bool {
    version.pointer("/subresources/status").is_some_and(|status| !status.is_null())
}

/// The schema inside of a version's `schema`.
pub(super) fn inner(schema: Option<&Value>) -> Option<&Value> {
    schema?.get("openAPIV3Schema").filter(|schema| !schema.is_null())
}
