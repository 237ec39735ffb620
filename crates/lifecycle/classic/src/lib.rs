//! OLM classic: from a Subscription to a running operator, and from version to version.
//!
//! Its controllers over one set of caches, each *observe → decide → apply*:
//!
//! ```text
//! CatalogSource ──────┐
//! Subscription ───────┴─► subscription ─► InstallPlan ─► install_plan ─► ClusterServiceVersion,
//!                              ▲                                          definitions, roles …
//!                              └── state ◄── csv ◄── Deployments, requirements ◄──┘
//! OperatorGroup ─► operator_group ─► which namespaces, whose APIs
//! ClusterServiceVersion, OLMConfig ─► copies ─► ClusterServiceVersions in those namespaces
//! OperatorHub ─► hub ─► CatalogSources that a cluster has by default
//! ```
//!
//! * What decides is plain functions of plain data (`csv::phase`, `csv::requirements`,
//!   `subscription::standing`, `subscription::resolution`, `install_plan::decide`,
//!   `operator_group::decide`, `copies::decide`), tested as tables. CatalogSources have a crate of their
//!   own (`mainstay-catalogsources`).
//! * What applies may be killed after any request: the next look starts from what is on the
//!   objects. Nothing but caches lives in memory.
//! * Everything is driven by changes. Nothing is polled, and a settled cluster is not written to.
//! * Names, labels, hashes, condition types, reasons and messages are those of the original,
//!   version 0.46; where ours differ on purpose, the place says so.
//!
//! # Where this differs from the original
//!
//! * A failure that lasts is told once. The original leaves `Failed` and comes back several times
//!   a second when an API refuses a Deployment, when definitions collide, or after the install
//!   timeout.
//! * While one version replaces another, only the newer counts, and nothing more is chosen of its
//!   package; the original reports a contradiction between the two that nobody can act on. The rest
//!   of the namespace goes on.
//! * A dependency that is deleted with its Subscription is installed again while somebody needs it.
//! * A plan that is deleted before it has brought everything that its version needs is made again,
//!   also when the version itself is there.
//! * A Subscription to what the plan of another one brings has part in that plan.
//! * A Subscription that waits because its namespace has no OperatorGroup, or several, says so in
//!   its condition `ResolutionFailed`.
//! * A version that is deleted while its Subscription stays is installed again at once. The original
//!   does so too, but not before another Subscription of the namespace wants something.
//! * A version whose successor is deleted in the middle of an upgrade becomes the operator again.
//! * Nothing waits for a resync: a group that is deleted, an account or right that appears, a plan
//!   that is lost are acted on when it happens.

mod bundle_config_map;
mod catalog_sources;
mod context;
mod copied_csv;
mod copied_csvs;
mod csv;
mod default_sources;
mod enqueue;
mod error;
mod fields;
mod image;
mod install_plan;
mod membership;
mod metrics;
mod operator;
mod operator_condition;
mod operator_group;
mod operator_hub;
mod permissions;
mod proxy;
mod report;
mod start;
mod steps;
mod subscription;
mod trusted_ca;

pub use csv::serving::certificate::{MakeError, ServingCertificate, make as serving_certificate};
pub use default_sources::DefaultSources;

pub use mainstay_catalogsources::{
    CatalogContents, CatalogMode, CatalogPods, FOLDER_ADDRESS, FolderCatalog, Serve, ServedAt,
};
pub use mainstay_controller::decision::TARGET as DECISIONS;
pub use proxy::ProxySettings;
pub use start::{Classic, Options, SUBSYSTEM, Surroundings, Timeouts};
pub use trusted_ca::Trusted;
