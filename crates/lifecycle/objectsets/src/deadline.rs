//! Progress deadline of a ClusterObjectSet: how long a rollout may take.
//!
//! The time counts from the creation of the set. A set that has rolled out once has no deadline any more, so a
//! repair of its objects may take as long as it needs.

use jiff::{SignedDuration, Timestamp};
use mainstay_api::{
    ClusterObjectSet, ClusterObjectSetConditionType, ConditionStatus, LifecycleState,
};
use std::time::Duration;

/// The deadline of a ClusterObjectSet at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgressDeadline {
    /// There is none.
    None,
    /// The time that remains.
    Remaining(Duration),
    /// It is over.
    Exceeded,
}

impl ProgressDeadline {
    /// The deadline of a set.
    pub fn of(set: &ClusterObjectSet, now: Timestamp) -> Self {
        let minutes = set.spec.progress_deadline_minutes.filter(|minutes| *minutes > 0);
        let has_succeeded = set.status.conditions.iter().any(|condition| {
            ClusterObjectSetConditionType::Succeeded == *condition.kind
                && condition.status == ConditionStatus::True
        });
        let (Some(minutes), Some(created)) = (minutes, set.metadata.creation_timestamp) else {
            return Self::None;
        };
        if has_succeeded
            || set.spec.lifecycle_state == LifecycleState::Archived
            || set.metadata.deletion_timestamp.is_some()
        {
            return Self::None;
        }
        let allowed = SignedDuration::from_secs(minutes.saturating_mul(60));
        let remaining = created
            .timestamp()
            .saturating_add(allowed)
            .map_or(allowed, |deadline| deadline.duration_since(now));
        match Duration::try_from(remaining) {
            Ok(remaining) if !remaining.is_zero() => Self::Remaining(remaining),
            _ => Self::Exceeded,
        }
    }

    /// Whether the deadline is over.
    pub const fn is_exceeded(self) -> bool {
        matches!(self, Self::Exceeded)
    }

    /// The backoff after an error, ended by the deadline so that the condition changes in time. After the
    /// deadline, the first retry is immediate: `was_reported` says that it happened.
    pub fn cap_backoff(self, backoff: Duration, was_reported: bool) -> Duration {
        match self {
            Self::None => backoff,
            Self::Remaining(remaining) => backoff.min(remaining),
            Self::Exceeded if was_reported => backoff,
            Self::Exceeded => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::{Condition, Time};

    fn set(minutes: i64) -> ClusterObjectSet {
        let mut set = ClusterObjectSet::new("", "a");
        set.spec.progress_deadline_minutes = Some(minutes);
        set.metadata.creation_timestamp = Some(Time::new(Timestamp::from_second(1000).unwrap()));
        set
    }

    fn at(set: &ClusterObjectSet, second: i64) -> ProgressDeadline {
        ProgressDeadline::of(set, Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn deadline_counts_from_the_creation() {
        assert_eq!(at(&set(1), 1030), ProgressDeadline::Remaining(Duration::from_secs(30)));
        assert_eq!(at(&set(1), 1060), ProgressDeadline::Exceeded);
        assert_eq!(at(&set(1), 1061), ProgressDeadline::Exceeded);
        assert_eq!(at(&set(0), 9999), ProgressDeadline::None);
    }

    #[test]
    fn succeeded_archived_and_deleted_sets_have_no_deadline() {
        let mut succeeded = set(1);
        succeeded.status.conditions = vec![Condition {
            kind: "Succeeded".to_owned(),
            status: ConditionStatus::True,
            ..Condition::default()
        }];
        let mut archived = set(1);
        archived.spec.lifecycle_state = LifecycleState::Archived;
        let mut deleted = set(1);
        deleted.metadata.deletion_timestamp = deleted.metadata.creation_timestamp;
        for set in [succeeded, archived, deleted] {
            assert_eq!(at(&set, 9999), ProgressDeadline::None, "{set:?}");
        }
    }

    #[test]
    fn backoff_ends_at_the_deadline_and_is_immediate_once_after_it() {
        let (short, long) = (Duration::from_secs(5), Duration::from_mins(5));
        let remaining = at(&set(1), 1000);
        assert_eq!(ProgressDeadline::None.cap_backoff(long, false), long);
        assert_eq!(remaining.cap_backoff(short, false), short);
        // shows OLMV1-144
        assert_eq!(remaining.cap_backoff(long, false), Duration::from_mins(1));
        // shows OLMV1-144
        assert_eq!(ProgressDeadline::Exceeded.cap_backoff(long, false), Duration::ZERO);
        assert_eq!(ProgressDeadline::Exceeded.cap_backoff(long, true), long);
    }
}
