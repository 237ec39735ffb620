//! Update graph of a package: which bundle can follow which, and the update paths to the head of a
//! channel.
//!
//! A [`Graph`] holds the channels of one package with the edges of their entries (`replaces`,
//! `skips`, `skipRange`). Its source is the package of a catalog, or plain data. A [`GraphView`] is that
//! graph as a Subscription or an extension sees it: a choice of channels, and the rules of one
//! [`Semantics`]. The view answers all questions:
//!
//! ```text
//! Package ─┐                          ┌─ next, successors          updates of the installed bundle
//!          ├─► Graph ─► GraphView ────┼─ path, reaches_head        where automatic updates lead
//! builder ─┘     │     (Semantics,    ├─ shortest(_to), all_paths  paths along any edge
//!                │      channels)     └─ stranded, never_chosen    bundles and entries off the path
//!                └─► switches            updates of the bundle after a change of channel
//! ```
//!
//! ```
//! use mainstay_updates::{EntryEdges, Graph, InstalledBundle, Semantics};
//!
//! let edges = EntryEdges {
//!     replaces: Some("etcd.v0.9.0"),
//!     skips: &["etcd.v0.9.1"],
//!     ..EntryEdges::default()
//! };
//! let graph = Graph::builder("etcd")
//!     .bundle("etcd.v0.9.0", "0.9.0")
//!     .bundle("etcd.v0.9.1", "0.9.1")
//!     .bundle("etcd.v0.9.2", "0.9.2")
//!     .entry("stable", "etcd.v0.9.0", EntryEdges::default())
//!     .entry("stable", "etcd.v0.9.1", EntryEdges::default())
//!     .entry("stable", "etcd.v0.9.2", edges)
//!     .finish();
//! let view = graph.view(Semantics::Classic, &["stable"])?;
//! let next = view.next(&InstalledBundle::new("etcd.v0.9.1", None));
//! assert_eq!(next.map(|step| &*step.bundle.name), Some("etcd.v0.9.2"));
//! # Ok::<(), mainstay_updates::UnorderedChannel>(())
//! ```
//!
//! # The two rules
//!
//! An entry *covers* the installed bundle if it replaces or skips the name of the bundle, or if its
//! `skipRange` holds the version of the bundle. One update is one such step. Names that the catalog
//! does not ship count as if it shipped them.
//!
//! | | OLM classic | OLM v1 |
//! |---|---|---|
//! | candidates | the chain of `replaces` from the head, without skipped entries | all bundles of the channels |
//! | best candidate | nearest the head | not deprecated, then the highest version, then the highest release |
//! | older versions | can be chosen | are never chosen, because the installed bundle is a candidate too |
//! | a channel without one chain | is an error | is allowed |
//!
//! [`chain()`] is the order of OLM classic for any type of entry; the resolver sorts with it too.
//!
//! All functions are deterministic and bounded: a view of n entries takes n log n steps, also if
//! each entry has a `skipRange`. No function recurses, and cycles of edges end.
//!
//! What this crate does not do: read the requirements of bundles, Subscriptions or a cluster. The
//! resolver decides whether OLM can install the next version.

mod build;
mod chain;
mod graph;
mod ranges;
mod route;
mod search;
mod switch;
mod view;

pub use build::{EntryEdges, GraphBuilder};
pub use chain::{ChannelEntry, ChannelOrderError, chain};
pub use graph::{Edge, Graph, GraphBundle, GraphChannel, GraphEntry, Predecessor, SkipRange};
pub use route::{KeepReason, PathEnd, Stranded, UnchosenEntry, UnchosenReason, UpdatePath};
pub use search::Paths;
pub use switch::ChannelSwitch;
pub use view::{GraphView, InstalledBundle, Semantics, UnorderedChannel, UpdateStep};
