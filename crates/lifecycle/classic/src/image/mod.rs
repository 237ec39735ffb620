//! Bundle images: unpacked in this process, or by Jobs as in the original.

pub(crate) mod bundles;
pub(crate) mod job;
