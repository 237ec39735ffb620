//! ClusterObjectSets of OLM v1: the rules of operator-controller's applier "Boxcutter".
//!
//! ```text
//! applier, for a ClusterExtension
//!   rendered objects ─► DesiredObjectSet ─ compare_object_set ─► unchanged │ update │ Secrets + ClusterObjectSet
//!   ClusterObjectSets ─ revision_states ─► installed, rolling out ─ applied_status ─► status of the extension
//!
//! controller of a ClusterObjectSet
//!   spec, Secrets ─ resolve_phases ─► objects ─ observed_phases ─► digests ─ verify ─► blocked?
//!   objects ─ validate_revision ─► managed_object ─┬─ compare_objects ─ decide_object ─► create │ apply │ collision
//!   object of the cluster ─────────────────────────┘        └─ ProgressionProbes ─► RolloutResult
//!   RolloutResult ─ object_set_status ─► conditions, requeue
//!   archived: decide_teardown, phases in reverse
//! ```
//!
//! Names, labels, keys of Secrets, digests and messages are those of operator-controller 1.10 and 1.11, because
//! clients read them and because a cluster may have ClusterObjectSets of upstream. Three things differ: the
//! comparison with the newest revision writes nothing, a phase with more than 50 objects can be split, and an
//! archived set never deletes objects that another owner controls.
//!
//! All functions are pure. This crate reads no cluster, and writes no objects: the controller does both.

mod change;
mod comparison;
mod deadline;
mod default_probes;
mod desired;
mod digest;
mod extension_status;
mod managers;
mod ownership;
mod pack;
mod phase;
mod probe;
mod resolve;
mod revisions;
mod rollout;
mod scrub;
mod status;
mod teardown;
mod validation;

pub use change::{ObjectSetChange, compare_object_set};
pub use comparison::{
    CompareObjectsError, ManagedFieldSet, ObjectComparison, builtin_type, compare_objects,
};
pub use deadline::ProgressDeadline;
pub use default_probes::default_progression_probes;
pub use desired::{BundleIdentity, DesiredObjectSet, ExtensionIdentity, PackedObjectSet};
pub use digest::{
    ChangedContentError, ChangedPhase, NumberForm, observed_phases, verify_observed_phases,
};
pub use extension_status::{applied_status, bundle_of, set_installed};
pub use managers::apply_manager_patch;
pub use ownership::{
    ObjectDecision, ObjectSetIdentity, ReadRevisionError, decide_object, managed_object,
    previous_revisions,
};
pub use pack::{ObjectSecret, PackObjectsError, secret_owner_patch};
pub use phase::{ObjectPhase, PhaseSplit};
pub use probe::{ProbeResult, ProbeStatus, ProgressionProbes, ReadProbesError};
pub use resolve::{
    ReferenceError, ResolveObjectError, ResolvedObject, ResolvedPhase, SecretLookup,
    mutable_secrets_message, referenced_secrets, resolve_phases, watched_kinds,
};
pub use revisions::{
    RevisionStates, deleted_revisions, revision_states, revisions_of, unfinished_migration,
};
pub use rollout::{ObjectAction, ObjectResult, PhaseResult, RolloutResult};
pub use status::{
    ObjectSetOutcome, ObjectSetUpdate, migrated_status, missing_account_message, object_set_status,
    watch_message,
};
pub use teardown::{TeardownDecision, decide_teardown};
pub use validation::{
    DryRunError, EMPTY_NAMESPACE, ObjectErrors, PhaseErrors, RevisionErrors, dry_run_error,
    dry_run_message, object_reference_text, revision_errors_message, validate_revision,
};
