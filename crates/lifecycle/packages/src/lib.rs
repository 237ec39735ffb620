//! `packages.operators.coreos.com/v1`: what can be installed, as people and consoles list it.
//!
//! A `PackageManifest` is a package of a catalog, described by the heads of its channels. Nobody
//! writes one: they are made of the catalogs as they are now, when somebody asks.
//!
//! ```text
//! Catalogs (CatalogSources, shared content) ─► State (which packages, since which revision) ─┬─► list, get, icon
//!                   └── notice of a change ──► what differs from before ─────────────────────┴─► watch
//! ```
//!
//! The API has no transport: [`Packages::answer`] takes a request of somebody who may send it, and
//! gives a response. Whoever serves an API puts it behind the `APIService` of [`registration`].
//!
//! Nothing is held twice: the content is that of the catalogs, shared. Kept besides is what is small:
//! labels, and descriptions without pictures, compressed and bounded in their sum; they are kept for
//! as long as their package stays the same, also over a change of its catalog.
//!
//! A revision is given to each package when it becomes what it is. Revisions begin at the time of the
//! process, so one from before a restart is older than all, and who goes on from it is told to list
//! again. Catalogs that cannot be read are shown as they were last.

mod accept;
mod answer;
mod discovery;
mod documents;
mod icon;
mod manifest;
mod query;
mod registration;
mod select;
mod state;
mod table;
mod watch;

pub use answer::Content;
pub use registration::{SERVICE, registration};
pub use state::{Catalogs, Packages, Source};

/// The group of the API.
pub const GROUP: &str = "packages.operators.coreos.com";
/// Its version.
pub const VERSION: &str = "v1";
/// Both, as objects name them.
pub(crate) const API_VERSION: &str = "packages.operators.coreos.com/v1";
/// The kind.
pub(crate) const KIND: &str = "PackageManifest";
/// The resource.
pub(crate) const PLURAL: &str = "packagemanifests";
