//! Which operators are installed together in a namespace, and which upgrades are taken.
//!
//! [`resolve`] is a pure function: a [`World`] (catalogs as [`Snapshot`]s, Subscriptions, existing
//! `ClusterServiceVersion`s, `OperatorGroup`s of one namespace) in, an [`Outcome`] out. It asks nobody
//! and remembers nothing, so the same world gives the same answer down to the last byte, whatever
//! the order in which its parts are listed.
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
//! What this does not do: make install plans, look at roles or install modes, or talk to anything.

mod candidates;
mod channel;
mod existing;
mod explain;
pub mod extension;
mod outcome;
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
pub use outcome::{
    Chosen, Failure, FailureKind, Install, NewSubscription, Outcome, Summary, UpdatedSubscription,
};
pub use property::{Api, LegacyDependency, Property};
pub use resolution::resolve;
pub use snapshot::{BundleFacts, EntryFacts, KnownBundle, Snapshot, SnapshotBuilder};
pub use view::EntryView;
pub use world::{
    CatalogKey, CatalogView, Content, CrdReference, Csv, Demand, OperatorGroup, Prohibited,
    Prohibition, Subscription, World,
};
