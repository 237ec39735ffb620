//! The one place that asks what time it is.
//!
//! Kubernetes writes wall-clock times onto objects while everything that waits does so on a
//! monotonic clock. Reading the two apart makes tests either slow or wrong, so the wall clock here
//! is *derived*: it is read once, at start, and then moves with tokio's clock. A test that pauses
//! and advances tokio's time therefore moves the timestamps on objects as well.
//!
//! What this does not do: follow later adjustments of the machine's clock. A process that runs for
//! months drifts by what NTP would have corrected; every Kubernetes time has whole-second precision
//! and is informational, so that is an acceptable price for one consistent order of events.

mod age;

pub use age::human;

use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tokio::time::Instant;

/// A wall clock that advances with tokio's clock. Cheap to copy; copies agree with each other.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    anchor: Timestamp,
    started: Instant,
}

impl Clock {
    /// A clock that starts at the machine's present time.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the seam: the only read of the system clock"
    )]
    pub fn system() -> Self {
        Self::starting_at(Timestamp::now())
    }

    /// A clock that reads `anchor` now and advances from there; for tests and replays.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the seam: the only read of the monotonic clock"
    )]
    pub fn starting_at(anchor: Timestamp) -> Self {
        Self { anchor, started: Instant::now() }
    }

    /// The present time, with sub-second precision.
    pub fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.elapsed()).unwrap_or(SignedDuration::MAX);
        self.anchor.checked_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    /// The present time as `metav1.Time` writes it: RFC 3339, UTC, whole seconds.
    pub fn now_rfc3339(&self) -> String {
        rfc3339(self.now())
    }

    /// The present time as `metav1.MicroTime` writes it: RFC 3339, UTC, exactly six decimals.
    pub fn now_micro(&self) -> String {
        rfc3339_micro(self.now())
    }

    /// How long this clock has been running.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// What all threads of this process have used of processors so far, user and system time.
///
/// It says what work costs where other programs are busy, too. Not for waiting: it stands still while
/// the process does.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// `metav1.Time` as JSON: RFC 3339 in UTC, truncated to whole seconds.
pub fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `metav1.MicroTime` as JSON: RFC 3339 in UTC with exactly six decimals.
pub fn rfc3339_micro(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn wall_time_advances_with_the_paused_clock() {
        let clock = Clock::starting_at("2026-01-02T03:04:05.678901234Z".parse().unwrap());
        assert_eq!(clock.now_rfc3339(), "2026-01-02T03:04:05Z");
        assert_eq!(clock.now_micro(), "2026-01-02T03:04:05.678901Z");
        tokio::time::advance(Duration::from_secs(55)).await;
        assert_eq!(clock.now_rfc3339(), "2026-01-02T03:05:00Z");
    }
}
