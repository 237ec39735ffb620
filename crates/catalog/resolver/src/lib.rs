//! Dependency resolver of OLM: which operators to install in a namespace, and which upgrades to
//! take.
//!
//! [`resolve`] is a pure function from a [`ResolutionInput`] to a [`Resolution`]. An input has the
//! catalogs of one namespace as [`Snapshot`]s, its Subscriptions, existing `ClusterServiceVersion`s
//! and `OperatorGroup`s. The function does no I/O and keeps no state, so that the same input gives
//! the same resolution, byte for byte, in whatever order its parts are listed.
//!
//! ```
//! use mainstay_resolver::{
//!     BundleFacts, CatalogContent, CatalogKey, CatalogView, EntryFacts, OperatorGroup,
//!     ResolutionInput, SnapshotBuilder, Subscription, resolve,
//! };
//!
//! let mut catalog = SnapshotBuilder::default();
//! let facts = BundleFacts { version: "1.0.0", ..BundleFacts::default() };
//! let bundle = catalog.bundle("teapot", &facts).expect("the facts are valid");
//! let entry = EntryFacts { name: "teapot.v1.0.0", channel: "stable", ..EntryFacts::default() };
//! catalog.entry(&bundle, &entry);
//! let snapshot = catalog.finish();
//!
//! let kitchen = CatalogKey::new("kitchen", "tea");
//! let input = ResolutionInput {
//!     namespace: "tea".to_owned(),
//!     operator_groups: vec![OperatorGroup::default()],
//!     catalogs: vec![CatalogView {
//!         key: kitchen.clone(),
//!         priority: 0,
//!         content: CatalogContent::Ready(&snapshot),
//!     }],
//!     subscriptions: vec![Subscription {
//!         name: "mine".to_owned(),
//!         package: "teapot".to_owned(),
//!         catalog: kitchen,
//!         ..Subscription::default()
//!     }],
//!     ..ResolutionInput::default()
//! };
//! let resolution = resolve(&input);
//! assert_eq!(resolution.resolved[0].name, "teapot.v1.0.0");
//! assert!(resolution.failures.is_empty());
//! ```
//!
//! ClusterExtensions of OLM v1 follow other rules; see [`extension`].
//!
//! `examples/` has more: `resolve` (an operator that requires another), `explain` (the explanation
//! and the repairs of Subscriptions that contradict each other).
//!
//! # How it works
//!
//! ```text
//! ResolutionInput ─► existing entries ─┐
//!                                      ├─► variables and constraints ─► part ─► search ─┐
//! Snapshots ─► candidates ─────────────┘                                part …          │
//!                                                                                       │
//! Resolution ◄── chosen entries ◄───────────────────────────────────────────────────────┤
//! ResolutionFailure ◄── unsat core ◄────────────────────────────────────────────────────┘
//! ```
//!
//! * A [`Snapshot`] holds the content of a catalog, decoded and indexed. It is made once per
//!   content; candidates are indexes into it, never copies.
//! * The *problem* has a variable for each Subscription and each candidate, and the constraints of
//!   upstream: mandatory, prohibited, dependency, conflict, at most one. The rules for candidates
//!   and their order are in `candidates`.
//! * The problem falls into *parts* that no constraint connects. Each part has an answer or a
//!   [`ResolutionFailure`]: a broken catalog or an impossible Subscription blocks only its own part
//!   (`resolution`).
//! * The *search* (`solve`) tries preferred candidates first, breadth first over requirements, and
//!   learns clauses from contradictions. It finds the answer of upstream wherever upstream is
//!   deterministic. Where upstream depends on the order of a Go map, Mainstay uses this order:
//!   existing `ClusterServiceVersion`s by name, demands by package, Subscriptions by name, and the
//!   requirements of a bundle by their text.
//! * A failure names an irreducible unsatisfiable core: each of its constraints is needed for the
//!   contradiction.
//!
//! Messages for conditions are those of upstream, byte for byte.
//!
//! All searches count their steps, and fail with a message of their own when they exceed the
//! budget. The hard parts of a namespace share one budget, and so do the what-if resolutions that
//! find repairs. An input that is made to be hard costs at most seconds and some hundred megabytes,
//! and never gets a wrong answer.
//!
//! [`extension`] resolves ClusterExtensions by the rules of OLM v1. [`fixture`] reads inputs from
//! JSON and writes outcomes, for tests and reports.
//!
//! What this crate does not do: create InstallPlans, check RBAC or install modes, or any I/O.

mod cache;
mod candidates;
mod channel;
mod existing;
mod explain;
pub mod extension;
pub mod fixture;
mod go_json;
mod input;
mod outcome;
mod part_search;
mod predicate;
mod problem;
mod property;
mod resolution;
mod rule;
mod snapshot;
mod solve;
mod texts;
mod view;

pub use cache::ResolutionCache;
pub use explain::SuggestedFix;
pub use input::{
    CatalogContent, CatalogKey, CatalogView, CrdReference, Demand, ExistingCsv, OperatorGroup,
    Prohibited, Prohibition, ResolutionInput, Subscription,
};
pub use outcome::{
    ChosenBundle, FailureKind, NamespaceFailure, NewInstall, NewSubscription, Resolution,
    ResolutionFailure, UpdatedSubscription,
};
pub use property::{BundleProperty, LegacyDependency, OperatorApi};
pub use resolution::{resolve, resolve_again, resolve_explaining};
pub use snapshot::{BundleFacts, EntryFacts, KnownBundle, Snapshot, SnapshotBuilder};
pub use view::EntryView;
