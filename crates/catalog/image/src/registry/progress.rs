//! Progress of pulls and pushes, for display.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts blobs and bytes that are transferred; a display polls it. Blobs that exist already do not
/// count, and repeated transfers count again.
#[derive(Debug, Default)]
pub struct Progress {
    blobs: AtomicU64,
    finished: AtomicU64,
    bytes: AtomicU64,
    moved: AtomicU64,
}

/// The counters at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgressCount {
    /// Blobs whose transfer has begun.
    pub blobs: u64,
    /// Blobs whose transfer has finished.
    pub finished: u64,
    /// Bytes of all blobs whose transfer has begun.
    pub bytes: u64,
    /// Transferred bytes.
    pub moved: u64,
}

impl Progress {
    /// The current counters.
    pub fn counted(&self) -> ProgressCount {
        ProgressCount {
            blobs: self.blobs.load(Relaxed),
            finished: self.finished.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            moved: self.moved.load(Relaxed),
        }
    }

    pub(super) fn begin(&self, bytes: u64) {
        self.blobs.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    pub(super) fn moved(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Relaxed);
    }

    pub(super) fn finish(&self) {
        self.finished.fetch_add(1, Relaxed);
    }
}
