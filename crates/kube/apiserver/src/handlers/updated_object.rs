//! The result of an update or a patch.

use mainstay_object::Object;

/// The desired object of an update, in the request's version.
#[derive(Debug)]
pub(super) struct UpdatedObject {
    /// The object.
    pub(super) object: Object,
    /// Warnings for the client.
    pub(super) warnings: Vec<String>,
    /// Whether its managed fields are complete.
    pub(super) has_managed_fields: bool,
    /// How its revision is checked.
    pub(super) version: VersionCheck,
}

/// The check of a revision in a written object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionCheck {
    /// It must be present, and equal the stored one.
    Required,
    /// If present, it must equal the stored one.
    IfPresent,
    /// It is not checked: after a conflict, the update is computed again from the newer object.
    Skipped,
}

impl UpdatedObject {
    /// An object whose managed fields follow from the differences.
    pub(super) const fn untracked(
        object: Object,
        warnings: Vec<String>,
        version: VersionCheck,
    ) -> Self {
        Self { object, warnings, has_managed_fields: false, version }
    }
}
