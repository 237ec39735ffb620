//! Clocks: the wall clock and the monotonic clock. All code reads the time here.
//!
//! Kubernetes writes wall-clock times onto objects, and tokens and certificates expire by the wall
//! clock. Timeouts and intervals use tokio's monotonic clock. The two differ: the monotonic clock stops
//! while the machine is suspended, and does not follow a change of the system time. Therefore:
//!
//! * [`Clock::now`] reads the system's wall clock at each call. Expiry times of tokens, certificates and
//!   quarantines are compared with it, and never with a time that was computed at start.
//! * [`Clock::elapsed`] is for measurements and timers. [`Clock::elapsed_with_suspend`] also counts the
//!   time in which the machine was suspended, because other machines may have taken something over.
//! * A task that sleeps until a wall-clock time sleeps in pieces ([`recheck_delay`],
//!   [`Clock::sleep_until`]), so it notices a step of the clock or a suspend within [`RECHECK_INTERVAL`].
//! * A cached value is valid only while both clocks agree that its lifetime is not over
//!   ([`Clock::stamp`], [`Clock::is_within`]): a step forward and back does not revive it.
//!
//! Tests pause and advance tokio's time; the wall clock then moves by as much. Only tests can step the
//! wall clock, with [`ClockControl`].
//!
//! A step does not reorder objects: `resourceVersion` orders them, times do not. After a step back a newer
//! object may have an earlier `creationTimestamp`, as on any Kubernetes cluster.

mod age;
mod control;

pub use age::format_age;
pub use control::ClockControl;

use control::Shift;
use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The longest sleep of a task that waits for a wall-clock time before it reads the wall clock again.
pub const RECHECK_INTERVAL: Duration = Duration::from_mins(1);

/// A shorter suspend cannot be distinguished from two clocks that were not read at the same instant.
const MIN_SUSPEND: Duration = Duration::from_millis(100);

/// A clock. Cheap to copy; copies agree with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    wall: Wall,
    started: Instant,
    /// How far the boot clock was ahead of the monotonic clock at the start.
    time_suspended: Duration,
    /// The offset that a test sets.
    shift: Option<&'static Shift>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wall {
    /// The system's wall clock.
    System,
    /// A wall clock that starts with this time and advances with tokio's clock.
    Since(Timestamp),
}

/// An instant by both clocks, for cached values with a lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    wall: Timestamp,
    elapsed: Duration,
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self::new(Wall::System, None)
    }

    /// A clock that reads `anchor` now and advances with tokio's clock from there; for tests and replays.
    pub fn starting_at(anchor: Timestamp) -> Self {
        Self::new(Wall::Since(anchor), None)
    }

    /// As [`Clock::starting_at`], with a control that steps its wall clock; for tests.
    pub fn adjustable(anchor: Timestamp) -> (Self, ClockControl) {
        let (control, shift) = ClockControl::new();
        (Self::new(Wall::Since(anchor), Some(shift)), control)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the seam: the only reads of the monotonic clock"
    )]
    fn new(wall: Wall, shift: Option<&'static Shift>) -> Self {
        Self { wall, started: Instant::now(), time_suspended: time_suspended(), shift }
    }

    /// The current time, with sub-second precision. It may be earlier than the previous one, because the
    /// system's clock can be set back.
    pub fn now(&self) -> Timestamp {
        let now = match self.wall {
            Wall::System => system_now(),
            Wall::Since(anchor) => {
                let elapsed = SignedDuration::try_from(self.elapsed());
                let elapsed = elapsed.unwrap_or(SignedDuration::MAX);
                anchor.checked_add(elapsed).unwrap_or(Timestamp::MAX)
            }
        };
        self.shift.map_or(now, |shift| shift.apply(now))
    }

    /// The current time as `metav1.Time` writes it: RFC 3339, UTC, whole seconds.
    pub fn now_rfc3339(&self) -> String {
        rfc3339(self.now())
    }

    /// The current time as `metav1.MicroTime` writes it: RFC 3339, UTC, exactly six decimals.
    pub fn now_micro(&self) -> String {
        rfc3339_micro(self.now())
    }

    /// The time since this clock was created, by the monotonic clock: without the time in which the
    /// machine was suspended, as for timers.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The time since this clock was created, with the time in which the machine was suspended.
    ///
    /// For what other machines may take over during a suspend, such as a Lease.
    pub fn elapsed_with_suspend(&self) -> Duration {
        let time_suspended = time_suspended().saturating_sub(self.time_suspended);
        let time_suspended =
            if time_suspended < MIN_SUSPEND { Duration::ZERO } else { time_suspended };
        let shifted = self.shift.map_or(Duration::ZERO, Shift::suspended);
        self.elapsed() + time_suspended + shifted
    }

    /// The current instant by both clocks.
    pub fn stamp(&self) -> Stamp {
        Stamp { wall: self.now(), elapsed: self.elapsed_with_suspend() }
    }

    /// Whether less than `life` has passed since `stamp` by both clocks. If the wall clock was set back
    /// behind the stamp, the age is unknown and the result is false.
    pub fn is_within(&self, stamp: Stamp, life: Duration) -> bool {
        let now = self.stamp();
        let by_wall = Duration::try_from(now.wall.duration_since(stamp.wall));
        by_wall.is_ok_and(|passed| passed < life)
            && now.elapsed.saturating_sub(stamp.elapsed) < life
    }

    /// Returns when the wall clock reads `time` or later. Steps of the clock are noticed within [`RECHECK_INTERVAL`].
    pub async fn sleep_until(&self, time: Timestamp) {
        loop {
            let left = self.time_until(time);
            if left.is_zero() {
                return;
            }
            sleep(recheck_delay(left)).await;
        }
    }

    /// The time until the wall clock reads `time`; zero when that is past.
    pub fn time_until(&self, time: Timestamp) -> Duration {
        Duration::try_from(time.duration_since(self.now())).unwrap_or_default()
    }
}

/// How long to sleep when `left` remains until a wall-clock time: at most [`RECHECK_INTERVAL`], after
/// which the caller reads the wall clock again.
pub fn recheck_delay(left: Duration) -> Duration {
    left.min(RECHECK_INTERVAL)
}

/// The system's wall clock, plus the difference between tokio's clock and the real monotonic clock.
///
/// The difference is zero unless a test paused tokio's clock: its time otherwise lies between two reads
/// of the real one, and nothing is added.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the seam: the only read of the system clock"
)]
fn system_now() -> Timestamp {
    let before = std::time::Instant::now();
    let tokio = Instant::now().into_std();
    let wall = Timestamp::now();
    let moved = if tokio < before {
        SignedDuration::try_from(before - tokio).map(|behind| -behind)
    } else if tokio <= std::time::Instant::now() {
        return wall;
    } else {
        SignedDuration::try_from(tokio - before)
    };
    wall.checked_add(moved.unwrap_or(SignedDuration::ZERO)).unwrap_or(wall)
}

/// The time that the machine was suspended since it booted.
fn time_suspended() -> Duration {
    let read = |clock| {
        let time = clock_gettime(clock);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    };
    let boot = read(ClockId::Boottime);
    boot.saturating_sub(read(ClockId::Monotonic))
}

/// The CPU time of all threads of this process so far, user and system time.
///
/// It measures the cost of work also on a busy machine. It is not for waiting: it stops while the
/// process is idle.
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

    const START: &str = "2026-01-02T03:04:05.678901234Z";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn wall_time_advances_with_the_paused_clock() {
        let clock = Clock::starting_at(at(START));
        assert_eq!(clock.now_rfc3339(), "2026-01-02T03:04:05Z");
        assert_eq!(clock.now_micro(), "2026-01-02T03:04:05.678901Z");
        tokio::time::advance(Duration::from_secs(55)).await;
        assert_eq!(clock.now_rfc3339(), "2026-01-02T03:05:00Z");
    }

    #[tokio::test(start_paused = true)]
    async fn the_system_clock_moves_as_far_as_a_test_advances_tokio_time() {
        let clock = Clock::system();
        let before = clock.now();
        tokio::time::advance(Duration::from_hours(5)).await;
        let moved = clock.now().duration_since(before);
        // The machine's own clock may be adjusted meanwhile, by little.
        let wanted = SignedDuration::from_hours(5);
        assert!((moved - wanted).abs() < SignedDuration::from_mins(1), "{moved:?}");
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "the clock is compared with it")]
    async fn the_system_clock_reads_the_machine_when_time_is_not_paused() {
        let clock = Clock::system();
        let (before, now, after) = (Timestamp::now(), clock.now(), Timestamp::now());
        assert!(before <= now && now <= after, "{before} {now} {after}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_moves_the_wall_clock_and_no_timer() {
        let (clock, control) = Clock::adjustable(at(START));
        let copy = clock;
        control.step(SignedDuration::from_hours(1));
        assert_eq!(copy.now_rfc3339(), "2026-01-02T04:04:05Z");
        control.step(SignedDuration::from_hours(-2));
        assert_eq!(clock.now_rfc3339(), "2026-01-02T02:04:05Z");
        assert_eq!((clock.elapsed(), clock.elapsed_with_suspend()), <_>::default());
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspend_moves_the_wall_clock_and_stops_the_monotonic_one() {
        let (clock, control) = Clock::adjustable(at(START));
        control.suspend(Duration::from_hours(1));
        assert_eq!(clock.now_rfc3339(), "2026-01-02T04:04:05Z");
        assert_eq!(clock.elapsed(), Duration::ZERO);
        assert_eq!(clock.elapsed_with_suspend(), Duration::from_hours(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stamp_expires_as_soon_as_either_clock_says_so() {
        const LIFE: Duration = Duration::from_secs(10);
        let (clock, control) = Clock::adjustable(at(START));
        let stamp = clock.stamp();
        assert!(clock.is_within(stamp, LIFE));
        control.step(SignedDuration::from_secs(10));
        assert!(!clock.is_within(stamp, LIFE), "a step forward");
        control.step(SignedDuration::from_secs(-11));
        assert!(!clock.is_within(stamp, LIFE), "a step back behind the stamp");
        control.step(SignedDuration::from_secs(1));
        assert!(clock.is_within(stamp, LIFE), "the clock is right again and nothing has passed");
        tokio::time::advance(LIFE).await;
        control.step(SignedDuration::from_secs(-5));
        assert!(!clock.is_within(stamp, LIFE), "the monotonic clock is never set back");
    }

    #[tokio::test(start_paused = true)]
    async fn sleep_until_notices_steps_and_suspends_within_a_minute() {
        let (clock, control) = Clock::adjustable(at(START));
        let ten = clock.now().checked_add(SignedDuration::from_hours(10)).unwrap();
        let waiting = tokio::spawn(async move { clock.sleep_until(ten).await });
        sleep(Duration::from_secs(90)).await;
        control.suspend(Duration::from_hours(10));
        assert!(!waiting.is_finished());
        waiting.await.unwrap();
        assert!(
            clock.elapsed() <= Duration::from_secs(90) + RECHECK_INTERVAL,
            "{:?}",
            clock.elapsed()
        );

        let soon = clock.now().checked_add(SignedDuration::from_secs(30)).unwrap();
        let begun = clock.elapsed();
        control.step(SignedDuration::from_mins(-5));
        clock.sleep_until(soon).await;
        let waited = clock.elapsed().saturating_sub(begun);
        assert_eq!(waited, Duration::from_secs(330), "the sleep gets longer by a step back");
    }
}
