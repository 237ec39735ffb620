//! What may be tuned.

use mainstay_clock::Clock;
use mainstay_object::size;
use std::time::Duration;

/// How a store behaves. `Options::default()` suits the product.
#[derive(Clone, Debug)]
pub struct Options {
    /// Tells how old events and kept views are.
    pub clock: Clock,
    /// How many past events of each resource are kept for watches.
    pub history: History,
    /// How many views are kept for lists that continue.
    pub views: Views,
    /// How many changes are committed together.
    pub batch: Batch,
    /// How long an object's text may be, in bytes. One that is longer already, from before there
    /// was a limit, may be replaced by one that is no longer, and be deleted.
    pub max_object_bytes: usize,
    /// How long a journal grows at least, in bytes, before a snapshot takes its place. A greater
    /// value writes less and makes opening slower.
    pub snapshot_after: u64,
}

impl Options {
    /// The usual options on a given clock.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            history: History::default(),
            views: Views::default(),
            batch: Batch::default(),
            max_object_bytes: size::USUAL_OBJECT,
            snapshot_after: 16 << 20,
        }
    }
}

impl Default for Options {
    /// The usual options on the system's clock.
    fn default() -> Self {
        Self::new(Clock::system())
    }
}

/// Bounds of the events that are kept, for each resource.
///
/// The counts and the window are those of a Kubernetes API server's watch cache. The sizes are
/// ours: objects here reach hundreds of kilobytes, and a count alone bounds nothing then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Events that are kept however old they are, if they fit into `idle_bytes`.
    pub min_events: usize,
    /// The most events that are kept however young they are.
    pub max_events: usize,
    /// How long an event is kept at least, if the other bounds allow.
    pub window: Duration,
    /// The most memory that events may hold, in bytes (an estimate: object and watch line).
    pub max_bytes: usize,
    /// The most memory that events older than `window` may hold, in bytes.
    pub idle_bytes: usize,
}

impl Default for History {
    fn default() -> Self {
        Self {
            min_events: 100,
            max_events: 102_400,
            window: Duration::from_secs(75),
            max_bytes: 32 << 20,
            idle_bytes: 256 << 10,
        }
    }
}

/// Bounds of the views that are kept for lists that continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Views {
    /// The most views. A view costs what has changed since it was taken.
    pub max_count: usize,
    /// How long a view is kept. The default is the interval at which a Kubernetes API server
    /// compacts etcd, which ends continuations there.
    pub max_age: Duration,
}

impl Default for Views {
    fn default() -> Self {
        Self { max_count: 64, max_age: Duration::from_mins(5) }
    }
}

/// Bounds of the changes that become durable together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The most changes.
    pub max_changes: usize,
    /// No more changes join once the batch has this many bytes.
    pub max_bytes: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self { max_changes: 256, max_bytes: 4 << 20 }
    }
}
