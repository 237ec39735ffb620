//! Which operators are installed together in a namespace, and which upgrades are taken.
//!
//! [`resolve`] is a pure function: a [`World`] (catalogs as [`Snapshot`]s, Subscriptions, existing
//! `ClusterServiceVersion`s, `OperatorGroup`s of one namespace) in, an [`Outcome`] out. It asks nobody
//! and remembers nothing, so the same world gives the same answer down to the last byte, whatever
//! the order in which its parts are listed.
//!
//! ```
//! use mainstay_resolver::{
//!     BundleFacts, CatalogKey, CatalogView, Content, EntryFacts, OperatorGroup, SnapshotBuilder,
//!     Subscription, World, resolve,
//! };
//!
//! let mut catalog = SnapshotBuilder::default();
//! let facts = BundleFacts { version: "1.0.0", ..BundleFacts::default() };
//! let bundle = catalog.bundle("teapot", &facts).expect("it says nothing that cannot be read");
//! let place = EntryFacts { name: "teapot.v1.0.0", channel: "stable", ..EntryFacts::default() };
//! catalog.entry(&bundle, &place);
//! let snapshot = catalog.finish();
//!
//! let kitchen = CatalogKey::new("kitchen", "tea");
//! let world = World {
//!     namespace: "tea".to_owned(),
//!     operator_groups: vec![OperatorGroup::default()],
//!     catalogs: vec![CatalogView {
//!         key: kitchen.clone(),
//!         priority: 0,
//!         content: Content::Ready(&snapshot),
//!     }],
//!     subscriptions: vec![Subscription {
//!         name: "mine".to_owned(),
//!         package: "teapot".to_owned(),
//!         catalog: kitchen,
//!         ..Subscription::default()
//!     }],
//!     ..World::default()
//! };
//! let outcome = resolve(&world);
//! assert_eq!(outcome.resolved[0].name, "teapot.v1.0.0");
//! assert!(outcome.failures.is_empty());
//! ```
//!
//! Extensions of OLM v1 follow other rules, which are in [`extension`].
//!
//! `examples/` has more: `resolve` (an operator that needs another), `explain` (what is told when
//! wishes contradict each other, and what mends it).
//!
//! # How it works
//!
//! ```text
//! World ─► existing entries ─┐                                          ┌─► chosen entries ─► Outcome
//!                            ├─► variables and constraints ─► part ─► search
//! Snapshots ─► candidates ───┘                                 part …   └─► core of reasons ─► Failure
//! ```
//!
//! * A [`Snapshot`] is made once per catalog content. It holds what resolution asks of a catalog in
//!   decoded and indexed form; candidates are numbers into it, never copies.
//! * The *problem* has a variable for each Subscription and each candidate, with the constraints of
//!   the original: what must be there, what must not, what requires what, and of what there may be
//!   only one. The rules for candidates and their order are in `candidates`.
//! * It falls into *parts* that no constraint connects. Each has its answer or its [`Failure`]: a
//!   broken catalog or an impossible Subscription stops only what depends on it (`resolution`).
//! * The *search* tries favourites first, breadth first over requirements, and learns from what
//!   leads nowhere; what it finds is what the original finds wherever that is determined. Where the
//!   original depends on the order of a map, the order here is: existing `ClusterServiceVersion`s by
//!   name, demands by package, Subscriptions by name, and the requirements of a bundle by their text.
//! * A failure names an irreducible set of reasons: each of them is needed for the contradiction.
//!
//! Messages that end up in conditions are the original's.
//!
//! Searches and looks are counted, and given up after so many steps with words that say so. The hard
//! parts of a namespace share one budget, and so do the trials for repairs: a world
//! that is made to be hard costs seconds and some hundred megabytes at most, and never gets a wrong
//! answer.
//!
//! [`extension`] answers the same question by the rules of OLM v1. [`universe`] reads worlds from
//! plain data and writes outcomes, for tests and reports.
//!
//! What this does not do: make install plans, look at roles or install modes, or talk to anything.

mod candidates;
mod channel;
mod existing;
mod explain;
pub mod extension;
mod go_json;
mod memory;
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
pub mod universe;
mod view;
mod world;

pub use explain::Repair;
pub use memory::Memory;
pub use outcome::{
    Chosen, Failure, FailureKind, Install, NewSubscription, Outcome, Summary, UpdatedSubscription,
};
pub use property::{Api, LegacyDependency, Property};
pub use resolution::{resolve, resolve_again, resolve_explaining};
pub use snapshot::{BundleFacts, EntryFacts, KnownBundle, Snapshot, SnapshotBuilder};
pub use view::EntryView;
pub use world::{
    CatalogKey, CatalogView, Content, CrdReference, Csv, Demand, OperatorGroup, Prohibited,
    Prohibition, Subscription, World,
};
