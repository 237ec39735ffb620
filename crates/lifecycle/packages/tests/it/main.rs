//! The PackageManifest API, as its clients use it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod catalogs;
mod icons;
mod lists;
mod objects;
mod test_api;
mod watches;
