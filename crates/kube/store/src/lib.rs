//! The object store: one revision counter, one writer, watches on every resource.
//!
//! The store is memory-first. Live objects are encoded once, kept in an ordered map per resource
//! and shared by every reader. Recent changes are kept in a ring per resource and shared by every
//! watcher. An [`Engine`] makes changes durable and is never read once the store is open. So lists
//! and watches never wait for the disk, and an in-memory store is the same code without one.
//!
//! ```text
//!  commit ─► encode ─► queue ─► writer: check, number ─► engine: append, sync
//!            (caller)                                        │
//!  get, list ◄── ordered map (snapshots in O(1)) ◄── publish ┤
//!  watch     ◄── ring of events per resource     ◄───────────┘ ─► reply
//! ```
//!
//! Why one writer: atomic steps (a precondition, a namespace that must not be terminating, the
//! order of revisions) are then plain sequential code, and group commit follows from the queue.
//!
//! Not part of the store: kinds, API versions and permissions. It reads nothing of an object but
//! its labels and its deletion timestamp. It does not replicate either: a cluster that outgrows one
//! machine needs a real Kubernetes.

mod commit;
mod draft;
mod engine;
mod event;
mod index;
mod key;
mod options;
mod ring;
mod store;
mod stored;
mod text;
mod watch;
mod writer;

pub use commit::{Change, CommitError, NamespaceGuard, Precondition};
pub use engine::{
    Damage, DataLoss, Engine, EngineError, Loader, OpenError, Probe, Record, Recovery, Repair, Torn,
};
pub use event::{Event, EventKind, watch_frame};
pub use index::{ListSnapshot, View};
pub use key::Key;
pub use options::{Batch, History, Options, Views};
pub use store::Store;
pub use stored::Stored;
pub use watch::{WatchCursor, WatchError};

pub(crate) use stored::Labels;
pub(crate) use text::{Pool, Text};

/// A revision is so old that the changes since then are no longer kept: status 410 `Expired`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {requested} ({oldest})")]
pub struct Expired {
    /// The requested revision.
    pub requested: u64,
    /// The oldest accepted revision.
    pub oldest: u64,
}
