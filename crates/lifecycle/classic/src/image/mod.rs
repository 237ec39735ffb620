//! Bundle images: unpacked in this process, or by Jobs as upstream does.

pub(crate) mod bundles;
pub(crate) mod job;
