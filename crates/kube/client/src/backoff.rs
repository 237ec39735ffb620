//! Exponential backoff up to a cap, without giving up.

use std::time::Duration;
use tokio::time::Instant;

/// The monotonic clock of the delays.
#[expect(
    clippy::disallowed_methods,
    reason = "delays are tokio's own time; the wall clock is derived from the same source"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// A series of delays that doubles up to a cap and stays there.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    failures: u32,
}

impl Backoff {
    /// Starts at `base`, never above `cap`.
    pub const fn new(base: Duration, cap: Duration) -> Self {
        Self { base, cap, failures: 0 }
    }

    /// The delay after one more failure.
    pub fn fail(&mut self) -> Duration {
        let wait = self.wait_after(self.failures);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// The delay after so many earlier failures.
    pub fn wait_after(&self, failures: u32) -> Duration {
        // 2^20 times any sensible base is above any sensible cap.
        self.base.saturating_mul(1 << failures.min(20)).min(self.cap)
    }

    /// Resets the delay after a success.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_the_cap_and_stay_there() {
        let mut backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(70));
        let waits: Vec<u128> = (0..6).map(|_| backoff.fail().as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 70, 70, 70]);
        backoff.reset();
        assert_eq!(backoff.fail().as_millis(), 10);
        assert_eq!(backoff.wait_after(u32::MAX).as_millis(), 70);
    }
}
