//! Time of the last sweep of expired Events.

use std::sync::atomic::{AtomicU64, Ordering};

/// Seconds between sweeps.
const SWEEP_INTERVAL: u64 = 300;

/// The start of the last sweep, in seconds of the server's clock.
#[derive(Debug, Default)]
pub(crate) struct LastSweep(AtomicU64);

impl LastSweep {
    /// Begins a sweep if one is due; returns whether it is.
    pub(super) fn begin(&self, now: u64) -> bool {
        let last = self.0.load(Ordering::Relaxed);
        let is_due = now >= last + SWEEP_INTERVAL;
        let order = Ordering::Relaxed;
        is_due && self.0.compare_exchange(last, now, order, order).is_ok()
    }
}
