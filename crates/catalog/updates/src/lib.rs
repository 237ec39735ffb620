//! The update graph of a package as a value: who follows whom, and how to get to the head.
//!
//! A [`Graph`] holds the channels of one package with the edges of their entries (`replaces`, `skips`,
//! `skipRange`), made from a catalog's package or from plain data. A [`View`] is that graph as a
//! Subscription or an extension sees it: a choice of channels and the rules of one [`Semantics`]. All
//! questions go to the view:
//!
//! ```text
//! Package ─┐                       ┌─ next, successors      what follows what is installed
//!          ├─► Graph ─► View ──────┼─ path, reaches_head    what updating again and again leads to
//! builder ─┘     │   (Semantics,   ├─ shortest(_to), all_paths   what the edges would allow
//!                │    channels)    └─ stranded, never_chosen
//!                └─► switches        the same bundle in every channel
//! ```
//!
//! ```
//! use mainstay_updates::{Edges, Graph, Installed, Semantics};
//!
//! let edges = Edges { replaces: Some("etcd.v0.9.0"), skips: &["etcd.v0.9.1"], ..Edges::default() };
//! let graph = Graph::builder("etcd")
//!     .bundle("etcd.v0.9.0", "0.9.0")
//!     .bundle("etcd.v0.9.1", "0.9.1")
//!     .bundle("etcd.v0.9.2", "0.9.2")
//!     .entry("stable", "etcd.v0.9.0", Edges::default())
//!     .entry("stable", "etcd.v0.9.1", Edges::default())
//!     .entry("stable", "etcd.v0.9.2", edges)
//!     .finish();
//! let view = graph.view(Semantics::Classic, &["stable"])?;
//! let next = view.next(&Installed::new("etcd.v0.9.1", None));
//! assert_eq!(next.map(|step| &*step.bundle.name), Some("etcd.v0.9.2"));
//! # Ok::<(), mainstay_updates::NoOrder>(())
//! ```
//!
//! # The two rules
//!
//! An entry *covers* what is installed if it replaces or skips its name, or if its range holds its
//! version. One update is one such step. Names that are not shipped count as if they were.
//!
//! | | OLM classic | OLM v1 |
//! |---|---|---|
//! | chosen from | the chain of `replaces` from the head, without entries that others skip | all bundles of the channels |
//! | best is | nearest the head | not deprecated, then the highest version, then the highest release |
//! | is it newer? | nobody asks | what is installed is a candidate too, so it is never left for less |
//! | a channel without one chain | is an error | does not matter |
//!
//! [`chain()`] is the order of OLM classic for any kind of entry; the resolver sorts with it too.
//!
//! Everything is deterministic and bounded: a view of n entries takes n log n steps, also with a range
//! on each of them; nothing recurses, and circles end.
//!
//! What this does not do: look at requirements, at Subscriptions or at a cluster. Whether the next
//! version can really be installed is for the resolver to say.

mod build;
mod chain;
mod graph;
mod ranges;
mod route;
mod search;
mod switch;
mod view;

pub use build::{Edges, GraphBuilder};
pub use chain::{Link, Unordered, chain};
pub use graph::{Bundle, Channel, Edge, Entry, Graph, Predecessor, SkipRange};
pub use route::{End, Kept, Never, NeverWhy, Route, Stranded};
pub use search::Paths;
pub use switch::Switch;
pub use view::{Installed, NoOrder, Semantics, Step, View};
