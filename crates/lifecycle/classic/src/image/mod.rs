//! Bundles that come as images: unpacked in this process, or by Jobs as the original has them.

pub(crate) mod bundles;
pub(crate) mod job;
