//! The options of a store.

use mainstay_clock::Clock;
use mainstay_object::size;
use std::time::Duration;

/// The options of a store. `Options::default()` suits the product.
#[derive(Clone, Debug)]
pub struct Options {
    /// The clock that decides the age of events and kept views.
    pub clock: Clock,
    /// The bounds of past events for watches, per resource.
    pub history: History,
    /// The bounds of views that are kept for paged lists.
    pub views: Views,
    /// The bounds of changes that are committed together.
    pub batch: Batch,
    /// The longest text of an object in bytes. An older object that is longer may be replaced by
    /// one that is no longer, and be deleted.
    pub max_object_bytes: usize,
    /// The least growth of a journal in bytes before a snapshot replaces it. A greater value writes
    /// less and makes opening slower.
    pub snapshot_after: u64,
}

impl Options {
    /// The default options on a given clock.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            history: History::default(),
            views: Views::default(),
            batch: Batch::default(),
            max_object_bytes: size::DEFAULT_OBJECT_BYTES,
            snapshot_after: 16 << 20,
        }
    }
}

impl Default for Options {
    /// The default options on the system's clock.
    fn default() -> Self {
        Self::new(Clock::system())
    }
}

/// Bounds of the kept events of each resource.
///
/// The counts and the window are those of a Kubernetes API server's watch cache. The sizes are not:
/// objects reach hundreds of kilobytes, so a count alone would bound nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// The number of events that are kept whatever their age, if they fit into `idle_bytes`.
    pub min_events: usize,
    /// The most events that are kept, whatever their age.
    pub max_events: usize,
    /// How long an event is kept at least, within the other bounds.
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

/// Bounds of the views that are kept for paged lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Views {
    /// The most views. A view costs as much as has changed since.
    pub max_count: usize,
    /// How long a view is kept. The default is the interval at which a Kubernetes API server
    /// compacts etcd, which ends paged lists there.
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
    /// A batch of this size accepts no more changes.
    pub max_bytes: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self { max_changes: 256, max_bytes: 4 << 20 }
    }
}
