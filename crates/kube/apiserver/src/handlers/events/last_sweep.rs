//! When old events were last swept away.

use std::sync::atomic::{AtomicU64, Ordering};

/// Seconds between sweeps.
const SWEEP_EVERY: u64 = 300;

/// When the last sweep began, in seconds of the server's clock.
#[derive(Debug, Default)]
pub(crate) struct LastSweep(AtomicU64);

impl LastSweep {
    /// Begins a sweep if the last one is long enough ago; whether it is.
    pub(super) fn begin(&self, now: u64) -> bool {
        let last = self.0.load(Ordering::Relaxed);
        let due = now >= last + SWEEP_EVERY;
        let order = Ordering::Relaxed;
        due && self.0.compare_exchange(last, now, order, order).is_ok()
    }
}
