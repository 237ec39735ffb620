//! The object that an update or a patch makes of the stored one.

use mainstay_object::Object;

/// What a client wants an object to be, in the request's version.
#[derive(Debug)]
pub(super) struct UpdatedObject {
    /// The object.
    pub(super) object: Object,
    /// What to warn the client of.
    pub(super) warnings: Vec<String>,
    /// Whether its managers are settled already.
    pub(super) tracked: bool,
    /// What the revision that it has means.
    pub(super) version: Version,
}

/// What the revision of an object that is written means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// One is needed, and must be the stored one.
    Required,
    /// If there is one, it must be the stored one.
    IfSent,
    /// It is what the stored object had anyway, and no precondition: the change may be made again
    /// to what somebody else made of it meanwhile.
    Kept,
}

impl UpdatedObject {
    /// An object whose managers follow from what differs.
    pub(super) const fn sent(object: Object, warnings: Vec<String>, version: Version) -> Self {
        Self { object, warnings, tracked: false, version }
    }
}
