//! Kubernetes' CEL libraries.

pub mod authorizer;
pub mod cidr;
pub mod format;
pub mod ip;
pub mod json_patch;
pub mod lists;
pub mod quantity;
pub mod regex;
pub mod semver;
pub mod urls;
