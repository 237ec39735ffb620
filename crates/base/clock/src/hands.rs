//! What a test does to a clock: set it, and suspend its machine.

use jiff::{SignedDuration, Timestamp};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// How far a clock was moved. Clocks are copied everywhere, so what moves one lies beside them.
#[derive(Debug, Default)]
pub(crate) struct Shift {
    /// Of the wall clock, in nanoseconds: three centuries are enough.
    wall: AtomicI64,
    /// How long the machine was suspended, in nanoseconds.
    suspended: AtomicU64,
}

/// A shift is itself and no other, whatever it is now.
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
pub struct Hands(&'static Shift);

impl Hands {
    pub(crate) fn new() -> (Self, &'static Shift) {
        // Some bytes for each clock of a test: a clock is copied freely, so nobody can free them.
        let shift: &'static Shift = Box::leak(Box::default());
        (Self(shift), shift)
    }

    /// Sets the wall clock forward or back, as an administrator or a time server does.
    pub fn step(&self, by: SignedDuration) {
        let nanos = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        self.0.wall.fetch_add(nanos, Ordering::SeqCst);
    }

    /// Suspends the machine: the wall clock goes on, and timers stand still.
    pub fn suspend(&self, length: Duration) {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        self.0.suspended.fetch_add(nanos, Ordering::SeqCst);
        self.step(SignedDuration::try_from(length).unwrap_or(SignedDuration::MAX));
    }
}
