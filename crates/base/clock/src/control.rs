//! Clock control for tests: set a clock, and suspend its machine.

use jiff::{SignedDuration, Timestamp};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// The offset of a clock. Clocks are copied everywhere, so their offset is shared.
#[derive(Debug, Default)]
pub(crate) struct Shift {
    /// The offset of the wall clock in nanoseconds: the range is three centuries.
    wall: AtomicI64,
    /// The time that the machine was suspended, in nanoseconds.
    suspended: AtomicU64,
}

/// Two shifts are equal if they are the same one, whatever their values.
impl PartialEq for Shift {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Shift {}

impl Shift {
    pub(crate) fn apply(&self, time: Timestamp) -> Timestamp {
        let moved = SignedDuration::from_nanos(self.wall.load(Ordering::SeqCst));
        time.checked_add(moved).unwrap_or(time)
    }

    pub(crate) fn suspended(&self) -> Duration {
        Duration::from_nanos(self.suspended.load(Ordering::SeqCst))
    }
}

/// Moves a clock that a test made ([`crate::Clock::adjustable`]), and with it all its copies.
#[derive(Clone, Copy, Debug)]
pub struct ClockControl(&'static Shift);

impl ClockControl {
    pub(crate) fn new() -> (Self, &'static Shift) {
        // Leaks some bytes for each clock of a test, because clocks are copied freely.
        let shift: &'static Shift = Box::leak(Box::default());
        (Self(shift), shift)
    }

    /// Sets the wall clock forward or back, as an administrator or a time server does.
    pub fn step(&self, by: SignedDuration) {
        let nanos = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        self.0.wall.fetch_add(nanos, Ordering::SeqCst);
    }

    /// Suspends the machine: the wall clock runs on, and timers stop.
    pub fn suspend(&self, length: Duration) {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        self.0.suspended.fetch_add(nanos, Ordering::SeqCst);
        self.step(SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX));
    }
}
