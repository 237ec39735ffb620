//! OLM classic: installs and upgrades operators from Subscriptions.
//!
//! Its controllers share one set of caches; each of them *observes → decides → applies*:
//!
//! ```text
//! CatalogSource ─┐
//! Subscription ──┴─► subscription ─► InstallPlan ─► install_plan ─┬─► CustomResourceDefinition, RBAC …
//!                         ▲                                       └─► ClusterServiceVersion ─┐
//!                         └──────── state ◄── csv ◄── Deployments, requirements ◄────────────┘
//! OperatorGroup ─► operator_group ─► target namespaces, provided APIs
//! ClusterServiceVersion, OLMConfig ─► copied_csvs ─► copied CSVs in the target namespaces
//! OperatorHub ─► operator_hub ─► default CatalogSources of the cluster
//! ```
//!
//! * Decisions are plain functions of plain data (`csv::phase`, `csv::requirements`,
//!   `subscription::status`, `subscription::resolution`, `install_plan::decide`,
//!   `operator_group::decide`, `copied_csvs::decide`), with table tests. CatalogSources have a
//!   crate of their own (`mainstay-catalogsources`).
//! * The process may be killed after any request: the next reconciliation continues from the state
//!   of the objects. Only caches are in memory.
//! * Every reconciliation follows a change. The controllers do not poll, and do not write to a
//!   cluster in its desired state.
//! * Names, labels, hashes, condition types, reasons and messages are those of upstream
//!   OLM 0.46. Comments name the intended differences.
//!
//! # Differences from upstream
//!
//! * A lasting failure is reported once. Upstream leaves `Failed` and returns several times a
//!   second when the API refuses a Deployment, when CustomResourceDefinitions conflict, or after
//!   the install timeout.
//! * During an upgrade only the newer CSV counts, and the resolver chooses nothing else of its
//!   package. Upstream reports a contradiction between the two CSVs that users cannot resolve.
//!   In Mainstay, the other packages of the namespace are resolved as usual.
//! * A dependency that is deleted with its Subscription is installed again while a CSV needs it.
//! * If an InstallPlan is deleted before it created everything that its CSV needs, another one is
//!   created, even if the CSV itself exists.
//! * A Subscription whose CSV another Subscription's InstallPlan creates joins that InstallPlan.
//! * A Subscription in a namespace without an OperatorGroup, or with several, reports that in its
//!   condition `ResolutionFailed`.
//! * A deleted CSV whose Subscription exists is installed again at once. Upstream waits until
//!   another Subscription of the namespace needs a resolution.
//! * If the successor of a CSV is deleted during the upgrade, the CSV runs the operator again.
//! * No change waits for a resync: a deleted OperatorGroup, a new ServiceAccount or permission and
//!   a lost InstallPlan each trigger a reconciliation.

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
    CatalogContents, CatalogMode, CatalogPods, CatalogStore, FOLDER_ADDRESS, FolderCatalog,
    RegistryEndpoints, ServedAt, StoreOptions,
};
pub use mainstay_controller::decision::TARGET as DECISIONS;
pub use proxy::ProxySettings;
pub use start::{Classic, NetworkSettings, Options, SUBSYSTEM, Timeouts};
pub use trusted_ca::TrustedCaCertificates;
