//! The internal version of a CRD, as upstream's validation sees it.
//!
//! A part that is equal in all versions exists once at the top level, and errors name it there.

use super::present;
use serde_json::Value;

/// A part of versions that may be equal in all of them.
#[derive(Clone, Copy)]
pub(super) enum SharedPart<'a> {
    /// The versions differ.
    PerVersion,
    /// All versions have this value, or none has one.
    TopLevel(Option<&'a Value>),
}

impl<'a> SharedPart<'a> {
    fn of(versions: &'a [Value], part: &str) -> Self {
        let part_of = |version: &'a Value| present(version.get(part));
        let first = versions.first().and_then(part_of);
        if versions.iter().all(|version| part_of(version) == first) {
            Self::TopLevel(first)
        } else {
            Self::PerVersion
        }
    }

    /// The value at the top level.
    pub(super) const fn top_level(self) -> Option<&'a Value> {
        match self {
            Self::PerVersion => None,
            Self::TopLevel(value) => value,
        }
    }

    /// The value of a version.
    pub(super) fn of_version(self, version: &'a Value, part: &str) -> Option<&'a Value> {
        match self {
            Self::PerVersion => present(version.get(part)),
            Self::TopLevel(_) => None,
        }
    }
}

/// The versions of a CRD, and their shared parts.
#[derive(Clone, Copy)]
pub(super) struct InternalVersions<'a> {
    pub(super) versions: &'a [Value],
    pub(super) schema: SharedPart<'a>,
    pub(super) subresources: SharedPart<'a>,
    pub(super) columns: SharedPart<'a>,
    pub(super) selectable: SharedPart<'a>,
}

impl<'a> InternalVersions<'a> {
    pub(super) fn of(versions: &'a [Value]) -> Self {
        Self {
            versions,
            schema: SharedPart::of(versions, "schema"),
            subresources: SharedPart::of(versions, "subresources"),
            columns: SharedPart::of(versions, "additionalPrinterColumns"),
            selectable: SharedPart::of(versions, "selectableFields"),
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

/// `openAPIV3Schema` of a version's `schema`.
pub(super) fn openapi_schema(schema: Option<&Value>) -> Option<&Value> {
    schema?.get("openAPIV3Schema").filter(|schema| !schema.is_null())
}
