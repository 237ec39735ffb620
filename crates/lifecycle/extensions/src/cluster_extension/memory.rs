//! What the controller remembers of the last reconciliation of an extension.

use super::apply::ObjectKey;
use super::approved::AccountState;
use super::dependencies::CheckedDependencies;
use super::status::Outcome;
use jiff::Timestamp;
use mainstay_client::Action;
use mainstay_clock::Clock;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The last reconciliation of an extension.
#[derive(Clone)]
pub(super) struct Memory {
    /// The fingerprint of its input.
    pub(super) input: u64,
    /// The check of the dependencies of its bundle, if they were checked.
    pub(super) dependencies: Option<CheckedDependencies>,
    /// The account that the controller keeps, as it was left; none in other trust modes.
    pub(super) account: Option<AccountState>,
    pub(super) outcome: Outcome,
    pub(super) next: Next,
}

/// What follows a reconciliation as long as its input is the same.
#[derive(Clone)]
pub(super) enum Next {
    /// Nothing, as long as these objects, the releases and the account are as they were left. Another attempt in
    /// time, if the content of the bundle was not available, or when certificates are due for renewal.
    Unchanged {
        objects: Arc<BTreeSet<ObjectKey>>,
        releases: u64,
        retry: Option<Retry>,
        renew_at: Option<Timestamp>,
    },
    /// Another attempt.
    Retry(Retry),
    /// Nothing, as long as the account is as it was left: only another input can help. Another attempt when
    /// certificates are due for renewal.
    Blocked { renew_at: Option<Timestamp> },
}

/// When the next attempt is made.
#[derive(Clone, Copy)]
pub(super) struct Retry {
    /// A time of the clock's [`Clock::elapsed`](mainstay_clock::Clock::elapsed).
    pub(super) due: Duration,
    /// The number of attempts in a row that need another one.
    pub(super) failures: u32,
}

impl Next {
    /// The next attempt after a failure.
    pub(super) const fn retry(&self) -> Option<Retry> {
        match self {
            Self::Retry(retry) => Some(*retry),
            Self::Unchanged { retry, .. } => *retry,
            Self::Blocked { .. } => None,
        }
    }

    const fn renew_at(&self) -> Option<Timestamp> {
        match self {
            Self::Unchanged { renew_at, .. } | Self::Blocked { renew_at } => *renew_at,
            Self::Retry(_) => None,
        }
    }

    /// Whether another attempt is due, although the input is the same.
    pub(super) fn is_due(&self, clock: Clock) -> bool {
        self.retry().is_some_and(|retry| retry.due <= clock.elapsed())
            || (self.retry().is_none() && self.renew_at().is_some_and(|at| at <= clock.now()))
    }

    /// When to look again. A failure comes first: its pauses are short.
    pub(super) fn action(&self, clock: Clock) -> Action {
        match (self.retry(), self.renew_at()) {
            (Some(retry), _) => Action::After(retry.due.saturating_sub(clock.elapsed())),
            (None, Some(renew_at)) => Action::At(clock, renew_at),
            (None, None) => Action::Done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    #[test]
    fn renewal_is_due_at_its_time_and_a_failure_before_it() {
        let now = "2026-01-02T03:04:05Z".parse::<Timestamp>().unwrap();
        let (clock, control) = Clock::adjustable(now);
        let renew_at = now + SignedDuration::from_hours(1);
        let next = |retry| Next::Unchanged {
            objects: Arc::default(),
            releases: 0,
            retry,
            renew_at: Some(renew_at),
        };
        let later = Retry { due: clock.elapsed() + Duration::from_hours(2), failures: 1 };
        assert!(!next(None).is_due(clock) && !next(Some(later)).is_due(clock));
        assert_eq!(next(None).action(clock), Action::At(clock, renew_at));
        assert!(matches!(next(Some(later)).action(clock), Action::After(_)));
        control.step(SignedDuration::from_hours(1));
        assert!(next(None).is_due(clock) && !next(Some(later)).is_due(clock));
        assert_eq!(Next::Blocked { renew_at: None }.action(clock), Action::Done);
        assert!(Next::Blocked { renew_at: Some(renew_at) }.is_due(clock));
    }
}
