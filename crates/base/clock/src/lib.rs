//! The one place that asks what time it is: a wall clock and the monotonic clock of waiting.
//!
//! Kubernetes writes wall-clock times onto objects, and tokens and certificates expire by the wall
//! clock; everything that waits does so on tokio's monotonic clock. The two differ: the monotonic clock
//! stands still while the machine is suspended, and never hears that somebody set the time. Therefore:
//!
//! * [`Clock::now`] reads the system's wall clock at each call. What expires (tokens, certificates,
//!   quarantines) is compared with it, and never with a time that was computed at start.
//! * [`Clock::elapsed`] is for measuring and for timers; [`Clock::elapsed_with_suspend`] counts the time in
//!   which the machine slept as well, for what others on the network may have taken over meanwhile.
//! * What sleeps until a wall-clock time sleeps in pieces ([`wall_wait`], [`Clock::sleep_until`]), so that
//!   a step of the clock or a suspend is noticed within [`RECHECK`].
//! * What is remembered for a while is believed only while both clocks agree that the while is not over
//!   ([`Clock::stamp`], [`Clock::is_within`]): stepping the clock forward and back revives nothing.
//!
//! In tests tokio's time is paused and advanced; the wall clock then moves by as much. Tests step it with
//! [`Hands`], which production has none of.
//!
//! What a step does to objects: `resourceVersion` orders them, times do not. After a step back a newer
//! object may have an earlier `creationTimestamp`, as on any Kubernetes cluster.

mod age;
mod hands;

pub use age::human;
pub use hands::Hands;

use hands::Shift;
use jiff::{SignedDuration, Timestamp};
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long at most a task sleeps that waits for a wall-clock time before it reads the wall clock again.
pub const RECHECK: Duration = Duration::from_mins(1);

/// A suspend shorter than this is not told from two clocks that were not read at the same instant.
const NOTICED: Duration = Duration::from_millis(100);

/// The time. Cheap to copy; copies agree with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    wall: Wall,
    started: Instant,
    /// How far the boot clock was ahead of the monotonic clock at the start.
    slept: Duration,
    /// What a test makes of the wall clock.
    shift: Option<&'static Shift>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wall {
    /// The system's.
    System,
    /// This at the start; it advances with tokio's clock.
    Since(Timestamp),
}

/// An instant by both clocks, for what is remembered for a while.
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

    /// As [`Clock::starting_at`], with hands that step its wall clock; for tests.
    pub fn adjustable(anchor: Timestamp) -> (Self, Hands) {
        let (hands, shift) = Hands::new();
        (Self::new(Wall::Since(anchor), Some(shift)), hands)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the seam: the only reads of the monotonic clock"
    )]
    fn new(wall: Wall, shift: Option<&'static Shift>) -> Self {
        Self { wall, started: Instant::now(), slept: slept(), shift }
    }

    /// The present time, with sub-second precision. It may be earlier than the last one: the system's clock
    /// is sometimes set back.
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

    /// The present time as `metav1.Time` writes it: RFC 3339, UTC, whole seconds.
    pub fn now_rfc3339(&self) -> String {
        rfc3339(self.now())
    }

    /// The present time as `metav1.MicroTime` writes it: RFC 3339, UTC, exactly six decimals.
    pub fn now_micro(&self) -> String {
        rfc3339_micro(self.now())
    }

    /// How long this clock has been running, by the monotonic clock: the time in which the machine was
    /// suspended does not count, as it does not count for timers.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// How long this clock has been running, with the time in which the machine was suspended.
    ///
    /// For what others may take over while this machine sleeps, such as a Lease.
    pub fn elapsed_with_suspend(&self) -> Duration {
        let slept = slept().saturating_sub(self.slept);
        let slept = if slept < NOTICED { Duration::ZERO } else { slept };
        let shifted = self.shift.map_or(Duration::ZERO, Shift::suspended);
        self.elapsed() + slept + shifted
    }

    /// The present instant by both clocks.
    pub fn stamp(&self) -> Stamp {
        Stamp { wall: self.now(), elapsed: self.elapsed_with_suspend() }
    }

    /// Whether less than `life` has passed since `stamp` by both clocks. A wall clock that was set back
    /// behind the stamp says nothing about it, so what it stamped is over.
    pub fn is_within(&self, stamp: Stamp, life: Duration) -> bool {
        let now = self.stamp();
        let by_wall = Duration::try_from(now.wall.duration_since(stamp.wall));
        by_wall.is_ok_and(|passed| passed < life)
            && now.elapsed.saturating_sub(stamp.elapsed) < life
    }

    /// Returns when the wall clock reads `time` or later. Steps of the clock are noticed within [`RECHECK`].
    pub async fn sleep_until(&self, time: Timestamp) {
        loop {
            let left = self.left_until(time);
            if left.is_zero() {
                return;
            }
            sleep(wall_wait(left)).await;
        }
    }

    /// How long it is until the wall clock reads `time`, by what it reads now; zero when that is past.
    pub fn left_until(&self, time: Timestamp) -> Duration {
        Duration::try_from(time.duration_since(self.now())).unwrap_or_default()
    }
}

/// How long to sleep when `left` is the time until a moment of the wall clock: at most [`RECHECK`], after
/// which the wall clock is read again.
pub fn wall_wait(left: Duration) -> Duration {
    left.min(RECHECK)
}

/// The system's wall clock, moved by as much as tokio's clock is ahead of the real one or behind it.
///
/// That is nothing unless a test paused tokio's clock: its present then lies between two reads of the real
/// one, and nothing is added.
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

/// How long the machine has slept since it booted.
fn slept() -> Duration {
    let read = |clock| {
        let time = clock_gettime(clock);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
    };
    let boot = read(ClockId::Boottime);
    boot.saturating_sub(read(ClockId::Monotonic))
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
    async fn the_system_clock_moves_as_far_as_a_test_advances_tokios() {
        let clock = Clock::system();
        let before = clock.now();
        tokio::time::advance(Duration::from_hours(5)).await;
        let moved = clock.now().duration_since(before);
        // The machine's own clock may be adjusted meanwhile, by little.
        let wanted = SignedDuration::from_hours(5);
        assert!((moved - wanted).abs() < SignedDuration::from_mins(1), "{moved:?}");
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "it is what the clock is compared with")]
    async fn the_system_clock_is_the_machines_when_time_is_not_paused() {
        let clock = Clock::system();
        let (before, now, after) = (Timestamp::now(), clock.now(), Timestamp::now());
        assert!(before <= now && now <= after, "{before} {now} {after}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_moves_the_wall_clock_and_no_timer() {
        let (clock, hands) = Clock::adjustable(at(START));
        let copy = clock;
        hands.step(SignedDuration::from_hours(1));
        assert_eq!(copy.now_rfc3339(), "2026-01-02T04:04:05Z");
        hands.step(SignedDuration::from_hours(-2));
        assert_eq!(clock.now_rfc3339(), "2026-01-02T02:04:05Z");
        assert_eq!((clock.elapsed(), clock.elapsed_with_suspend()), <_>::default());
    }

    #[tokio::test(start_paused = true)]
    async fn a_suspend_moves_the_wall_clock_and_stops_the_monotonic_one() {
        let (clock, hands) = Clock::adjustable(at(START));
        hands.suspend(Duration::from_hours(1));
        assert_eq!(clock.now_rfc3339(), "2026-01-02T04:04:05Z");
        assert_eq!(clock.elapsed(), Duration::ZERO);
        assert_eq!(clock.elapsed_with_suspend(), Duration::from_hours(1));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_remembered_is_over_as_soon_as_either_clock_says_so() {
        const LIFE: Duration = Duration::from_secs(10);
        let (clock, hands) = Clock::adjustable(at(START));
        let stamp = clock.stamp();
        assert!(clock.is_within(stamp, LIFE));
        hands.step(SignedDuration::from_secs(10));
        assert!(!clock.is_within(stamp, LIFE), "a step forward");
        hands.step(SignedDuration::from_secs(-11));
        assert!(!clock.is_within(stamp, LIFE), "a step back behind the stamp");
        hands.step(SignedDuration::from_secs(1));
        assert!(clock.is_within(stamp, LIFE), "the clock is right again and nothing has passed");
        tokio::time::advance(LIFE).await;
        hands.step(SignedDuration::from_secs(-5));
        assert!(!clock.is_within(stamp, LIFE), "the monotonic clock is never set back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_waits_for_a_time_notices_steps_and_suspends_within_a_minute() {
        let (clock, hands) = Clock::adjustable(at(START));
        let ten = clock.now().checked_add(SignedDuration::from_hours(10)).unwrap();
        let waiting = tokio::spawn(async move { clock.sleep_until(ten).await });
        sleep(Duration::from_secs(90)).await;
        hands.suspend(Duration::from_hours(10));
        assert!(!waiting.is_finished());
        waiting.await.unwrap();
        assert!(clock.elapsed() <= Duration::from_secs(90) + RECHECK, "{:?}", clock.elapsed());

        let soon = clock.now().checked_add(SignedDuration::from_secs(30)).unwrap();
        let begun = clock.elapsed();
        hands.step(SignedDuration::from_mins(-5));
        clock.sleep_until(soon).await;
        let waited = clock.elapsed().saturating_sub(begun);
        assert_eq!(waited, Duration::from_secs(330), "a step back is waited out");
    }
}
