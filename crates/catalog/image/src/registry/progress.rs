//! How far a client has come, for whoever shows it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts blobs and bytes that move. It only counts: who wants to show something looks at it from
/// time to time. What is there already is not counted, and what must be moved again counts again.
#[derive(Debug, Default)]
pub struct Progress {
    blobs: AtomicU64,
    finished: AtomicU64,
    bytes: AtomicU64,
    moved: AtomicU64,
}

/// What was counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Blobs that were begun.
    pub blobs: u64,
    /// Blobs of these that are through.
    pub finished: u64,
    /// Bytes of the blobs that were begun.
    pub bytes: u64,
    /// Bytes that moved.
    pub moved: u64,
}

impl Progress {
    /// What was counted so far.
    pub fn counted(&self) -> Counted {
        Counted {
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
