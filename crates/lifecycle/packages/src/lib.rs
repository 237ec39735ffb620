//! PackageManifests: the read-only API `packages.operators.coreos.com/v1`, in which kubectl and consoles
//! list the packages that can be installed.
//!
//! A `PackageManifest` is a package of a catalog, described by the heads of its channels. Clients cannot
//! write it: each request renders it from the current catalogs.
//!
//! ```text
//! PackageSources (CatalogSources, content) ─► State (packages, their revisions) ─┬─► list, get, icon
//!      └── change ──► difference from what a client has seen ────────────────────┴─► watch
//! ```
//!
//! The API has no transport: [`PackageApi::answer`] takes an authorized request and returns a response. The
//! caller serves it behind the `APIService` of [`registration`].
//!
//! The content of catalogs is shared, not copied. The API itself keeps only labels, and compressed
//! statuses without icons, whose total size is bounded. Both stay until their package changes, even if
//! its catalog changes.
//!
//! Each package gets a new revision when it changes. The first revision is the start time of the process
//! in microseconds, so a revision from before a restart is too old, and the client has to list again.
//! A catalog that cannot be read is served with its last valid content.
//!
//! What this crate does not do: authorize requests, listen, or read CatalogSources.

mod accept;
mod discovery;
mod handler;
mod icon;
mod manifest;
mod openapi;
mod query;
mod registration;
mod select;
mod state;
mod table;
mod watch;

pub use handler::ResponseBody;
pub use registration::{SERVICE, registration};
pub use state::{PackageApi, PackageSource, PackageSources};

/// The group of the API.
pub const GROUP: &str = "packages.operators.coreos.com";
/// Its version.
pub const VERSION: &str = "v1";
/// Group and version, as in `apiVersion`.
pub(crate) const API_VERSION: &str = "packages.operators.coreos.com/v1";
/// The kind of its objects.
pub(crate) const KIND: &str = "PackageManifest";
/// The plural name of the resource.
pub(crate) const PLURAL: &str = "packagemanifests";
