//! Migration of operators from OLM classic to OLM v1 without a restart of their pods.
//!
//! ```text
//! Subscription, CSV, OperatorGroup ─► checks ─► Eligible │ Ineligible │ AlreadyMigrated │ Conflict
//! objects of the CSV ─► handover ─┬─► Helm's labels and a deployed release of them as they are
//! Subscription + catalog ─────────┴─► ClusterExtension, pinned to the installed version
//! ClusterExtension ─► rollback ─► Subscription again │ cleanup ─► leftovers
//! CatalogSources ─► ClusterCatalogs
//! ```
//!
//! Everything here is a function of objects as they were read; the command `mainstay extension migrate` reads
//! and writes. The names of annotations, flags, states and checks are those of `library-olm`.
//!
//! **Why pods stay.** The controller of OLM v1 applies what a bundle renders to, and server-side apply removes
//! only fields that it applied before. What OLM classic added to a pod template (`OPERATOR_CONDITION_NAME`,
//! annotations of its OperatorGroup) belongs to another field manager and stays. So the template, and the
//! ReplicaSet, are the same. Both systems own the objects until the ClusterServiceVersion is deleted; then
//! the garbage collector keeps what the ClusterExtension owns, too.

mod catalog_sources;
mod checks;
mod cleanup;
mod extension;
mod freeze;
mod handover;
mod installed;
mod names;
mod object_sets;
mod offers;
mod release;
mod rollback;
mod serving;

pub use catalog_sources::{
    CatalogAction, CatalogPlan, CatalogSourceOutcome, annotated_catalog, plan_catalogs,
};
pub use checks::{
    Acknowledgement, Acknowledgements, Check, CheckInput, CheckOutcome, MigrationState,
    OperatorReport, check, migrated_from, migrated_report,
};
pub use cleanup::{deletable_plans, without_classic_labels};
pub use extension::{ExtensionInput, extension, finished, is_unfinished, loses_pin};
pub use freeze::{frozen, is_frozen, thawed};
pub use handover::{
    CLUSTER_KINDS, Handover, NAMESPACED_KINDS, resource_of, with_release_labels,
    without_owner_labels, without_release_labels,
};
pub use installed::ClassicOperator;
pub use names::{
    ACKNOWLEDGED_PREFIX, MIGRATED_FROM_CATALOG_SOURCE, MIGRATED_FROM_CSV,
    MIGRATED_FROM_SUBSCRIPTION, OPERATOR_GROUP_BACKUP, ROLLBACK_FINALIZER, SUBSCRIPTION_BACKUP,
};
pub use object_sets::{taken_from_object_sets, unfinished_revision};
pub use offers::{CatalogOffer, OfferedBundle, PackageOffer, ParseOfferError, best_offer};
pub use release::RecordedRelease;
pub use rollback::{
    RestoreError, held, orphaned, restored_group, restored_subscription, returns_to_classic,
    without_hold,
};
pub use serving::{
    ServingObjects, certificate_secret, is_issued, released_service, without_issuer,
};
