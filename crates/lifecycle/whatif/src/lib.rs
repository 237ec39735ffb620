//! What-if resolution: what would be installed in a cluster, every hop to the heads of the
//! channels, and the same with supposed changes.
//!
//! ```text
//! objects, saved files ─► ClusterState ────┐
//! folders, registries ─► CatalogSnapshots ─┴─► ResolutionInput ─┬─► NamespaceWalk
//!                                                               └─► WhatIfChanges ─► NamespaceWalk
//! ```
//!
//! Everything is a function of plain data: no cluster is changed, and the steps of a walk change the
//! resolution input alone. Content comes from folders, which this crate reads, and from registries,
//! which the caller reads ([`CatalogSnapshots::registries_to_read`]). Errors are typed and free of
//! the options of any program, so that a command line and a page can each say what to do in its own
//! words.
//!
//! What this crate does not do: read a cluster, parse arguments, or render results.

mod catalogs;
mod change;
mod comparison;
mod crds;
mod entries;
mod extension;
mod form;
mod heads;
mod input;
mod published;
mod request;
mod saved_state;
mod state;
mod suggestions;
mod targets;
mod walk;
mod what_if;

pub use catalogs::{
    AssembleError, CatalogOverrides, CatalogSnapshot, CatalogSnapshots, FindCatalogError,
    FolderCache, FolderError, MissingContent, SnapshotContent, SnapshotOrigin, SnapshotSource,
    UnusableFolder,
};
pub use change::{ChangeError, NotFound, apply, install_all};
pub use comparison::{PathSummary, WalkComparison, WalkDifference, compare};
pub use crds::CrdChange;
pub use extension::{
    ContentRepair, ExtensionEnd, ExtensionError, ExtensionPath, ExtensionsWhatIf, FailedExtension,
};
pub use input::{is_ready, namespace_input};
pub use published::{PublishedError, check_published_name, load_published};
pub use request::{
    CatalogName, FolderOverride, PackageRequest, ParseChangeError, PriorityOverride, WhatIfChange,
};
pub use saved_state::{Position, SavedStateError, SavedStateReader};
pub use state::{
    CatalogSourceState, ClusterState, MissingVersions, NamespaceState, Note, catalogs_of,
};
pub use suggestions::{Suggestion, nearest};
pub use targets::{
    ChangeTargetError, ChangeTargets, UnknownNamespace, check_namespace, namespaces_to_resolve,
    one_of,
};
pub use walk::{CutShort, Hop, NamespaceWalk, OperatorPath, WalkEnd, blocks, fails};
pub use what_if::{NamespaceWhatIf, WhatIfError, WhatIfQuery, suppose, unresolved_subscriptions};
