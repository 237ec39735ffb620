//! Objects, their changes, and everybody who follows them: one revision counter, one writer.
//!
//! The store is memory-first. Live objects are encoded once, kept in an ordered map per resource
//! and shared by every reader; recent changes are kept in a ring per resource and shared by every
//! watcher. An [`Engine`] makes changes durable and is never read once the store is open, so lists
//! and watches never wait for the disk and a store in memory only is the same code without one.
//!
//! ```text
//!  commit ─► encode ─► queue ─► writer: check, number ─► engine: append, sync
//!            (caller)                                        │
//!  get, list ◄── ordered map (snapshots in O(1)) ◄── publish ┤
//!  watch     ◄── ring of events per resource     ◄───────────┘ ─► answer
//! ```
//!
//! Why one writer: what must be atomic (a precondition, a namespace that must not be terminating,
//! the order of revisions) is then plain sequential code, and group commit falls out of the queue.
//!
//! What it does not do: it knows no kinds, no versions of kinds and no permissions, and it reads
//! nothing of an object but its labels and whether deletion was asked for. Nor does it replicate:
//! a cluster that outgrows one machine is Kubernetes' business.

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

pub use commit::{Change, CommitError, Expect, Guard};
pub use engine::{
    Damage, Engine, EngineError, Loader, Lost, OpenError, Probe, Record, Recovery, Repair, Torn,
};
pub use event::{Event, EventKind, watch_frame};
pub use index::{List, View};
pub use key::Key;
pub use options::{Batch, History, Options, Views};
pub use store::Store;
pub use stored::Stored;
pub use watch::{Watch, WatchError};

pub(crate) use stored::Labels;
pub(crate) use text::{Pool, Text};

/// A revision lies so far back that what happened since is no longer kept: status 410 `Expired`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {requested} ({oldest})")]
pub struct Expired {
    /// The revision that was asked for.
    pub requested: u64,
    /// The oldest revision that would have been accepted.
    pub oldest: u64,
}
