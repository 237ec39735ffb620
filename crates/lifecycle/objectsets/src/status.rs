//! Status of a ClusterObjectSet: the conditions that follow from a reconciliation.
//!
//! | Outcome | Progressing | Available |
//! |---|---|---|
//! | blocked | False/Blocked | unchanged |
//! | error | True/Retrying | Unknown/Reconciling, if there was one |
//! | collision | True/Retrying | Unknown/Reconciling, if there was one |
//! | incomplete | True/RollingOut | False/ProbeFailure or False/RollingOut |
//! | complete | True/Succeeded | True/ProbesSucceeded |
//! | objects are removed | True/Retrying | Unknown/Reconciling, if there was one |
//! | archived | False/Archived | Unknown/Archived |
//!
//! After the deadline, Progressing is False/ProgressDeadlineExceeded in place of `Retrying` and
//! `RollingOut`. A rollout that is complete later succeeds all the same. Succeeded stays once it is True.

use crate::deadline::ProgressDeadline;
use crate::rollout::RolloutResult;
use mainstay_api::conditions::{condition, find, set_condition};
use mainstay_api::names::olm_v1::BUNDLE_VERSION;
use mainstay_api::{
    ClusterObjectSet, ClusterObjectSetConditionType as Type, ClusterObjectSetReason as Reason,
    ClusterObjectSetStatus, Condition, ConditionStatus, ObservedPhase, Time,
};
use std::time::Duration;

/// The message of a set that waits for the removal of its objects.
const REMOVING: &str = "removing revision resources that are not owned by another revision";
/// The message of a set without objects.
const ARCHIVED: &str = "revision is archived";
/// The requeue delay after a collision or an invalid revision, and during a rollout without events.
const RETRY: Duration = Duration::from_secs(10);
/// The requeue delay while objects are removed.
const REMOVAL_RETRY: Duration = Duration::from_secs(5);

/// The outcome of a reconciliation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ObjectSetOutcome<'a> {
    /// The content of the revision is not the one that was applied first: nothing is done until the content
    /// or the spec changes.
    Blocked(&'a str),
    /// An error, after which the caller tries again with its own backoff.
    Failed(&'a str),
    /// The objects are invalid.
    Invalid(&'a str),
    /// Objects were applied.
    Applied(&'a RolloutResult),
    /// The set is archived, and some of its objects still exist.
    Removing,
    /// The set is archived, and none of its objects exists.
    Archived,
}

/// The status after a reconciliation, and what follows.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectSetUpdate {
    /// The status.
    pub status: ClusterObjectSetStatus,
    /// When to reconcile again without a change; none leaves it to watches, or to the backoff after
    /// [`ObjectSetOutcome::Failed`].
    pub requeue: Option<Duration>,
    /// Whether earlier revisions are archived now, before the status is written.
    pub archives_previous: bool,
}

/// The status of a set after a reconciliation. `observed` are the digests of the phases, empty if the objects
/// could not be read.
pub fn object_set_status(
    set: &ClusterObjectSet,
    observed: Vec<ObservedPhase>,
    outcome: ObjectSetOutcome<'_>,
    now: Time,
) -> ObjectSetUpdate {
    let mut writer = StatusWriter {
        status: set.status.clone(),
        generation: set.metadata.generation,
        minutes: set.spec.progress_deadline_minutes.unwrap_or_default(),
        deadline: ProgressDeadline::of(set, now.timestamp()),
        now,
    };
    if writer.status.observed_phases.is_empty() {
        writer.status.observed_phases = observed;
    }
    let version = set.metadata.annotations.get(BUNDLE_VERSION).map_or("", String::as_str);
    let rolling_out = format!("Revision {version} is rolling out.");
    let (mut requeue, mut archives_previous) = (None, false);
    match outcome {
        ObjectSetOutcome::Blocked(message) => {
            writer.set(&Type::Progressing, ConditionStatus::False, &Reason::Blocked, message);
        }
        ObjectSetOutcome::Failed(message) => writer.retry(message),
        ObjectSetOutcome::Invalid(message) => {
            writer.retry(message);
            requeue = Some(RETRY);
        }
        ObjectSetOutcome::Applied(rollout) => {
            if let Some(message) = rollout.collisions() {
                writer.retry(&message);
                requeue = Some(RETRY);
            } else if rollout.is_complete() {
                writer.succeed(version);
                archives_previous = true;
            } else {
                let (reason, message) = match rollout.probe_failures() {
                    Some(failures) => (Reason::ProbeFailure, failures),
                    None => (Reason::RollingOut, rolling_out.clone()),
                };
                writer.set(&Type::Available, ConditionStatus::False, &reason, &message);
                if let Some(why) = &rollout.unwatched {
                    // No event tells when the phase is complete.
                    writer.progress(&Reason::Retrying, &watch_message(why));
                    requeue = Some(RETRY);
                } else {
                    writer.progress(&Reason::RollingOut, &rolling_out);
                    if let ProgressDeadline::Remaining(remaining) = writer.deadline {
                        requeue = Some(remaining);
                    }
                }
            }
        }
        ObjectSetOutcome::Removing => {
            writer.retry(REMOVING);
            requeue = Some(REMOVAL_RETRY);
        }
        ObjectSetOutcome::Archived => {
            writer.set(&Type::Progressing, ConditionStatus::False, &Reason::Archived, ARCHIVED);
            writer.set(&Type::Available, ConditionStatus::Unknown, &Reason::Archived, ARCHIVED);
        }
    }
    ObjectSetUpdate { status: writer.status, requeue, archives_previous }
}

/// The condition Succeeded of a ClusterObjectSet that was made from a deployed Helm release. It is set right
/// after the creation, so that the extension counts as installed.
pub fn migrated_status(set: &ClusterObjectSet, now: Time) -> ClusterObjectSetStatus {
    let message = "Revision succeeded - migrated from Helm release";
    let generation = set.metadata.generation;
    let mut status = set.status.clone();
    let succeeded =
        condition(&Type::Succeeded, ConditionStatus::True, &Reason::Succeeded, message, generation);
    set_condition(&mut status.conditions, succeeded, now);
    status
}

/// The message about a revision without the ServiceAccount of its extension, in the model of OLM up to v1.10.
pub fn missing_account_message(set: &str) -> String {
    format!("revision {} is missing required annotations", mainstay_gocompat::quote(set))
}

/// The message about objects whose kind cannot be watched. `message` is that of the API, such as
/// `no matches for kind "X" in version "example.com/v1"`.
pub fn watch_message(message: &str) -> String {
    format!("establish watch: {message}")
}

struct StatusWriter {
    status: ClusterObjectSetStatus,
    generation: i64,
    minutes: i64,
    deadline: ProgressDeadline,
    now: Time,
}

impl StatusWriter {
    fn set(&mut self, kind: &Type, status: ConditionStatus, reason: &Reason, message: &str) {
        let new: Condition = condition(kind, status, reason, message, self.generation);
        set_condition(&mut self.status.conditions, new, self.now);
    }

    /// Sets Progressing for a rollout that is not complete.
    fn progress(&mut self, reason: &Reason, message: &str) {
        if self.deadline.is_exceeded() {
            let message = format!(
                "Revision has not rolled out for {} minute(s). Last status: {message}",
                self.minutes
            );
            let reason = &Reason::ProgressDeadlineExceeded;
            self.set(&Type::Progressing, ConditionStatus::False, reason, &message);
        } else {
            self.set(&Type::Progressing, ConditionStatus::True, reason, message);
        }
    }

    fn retry(&mut self, message: &str) {
        self.progress(&Reason::Retrying, message);
        if find(&self.status.conditions, Type::Available.as_str()).is_some() {
            let reason = &Reason::Reconciling;
            self.set(&Type::Available, ConditionStatus::Unknown, reason, message);
        }
    }

    fn succeed(&mut self, version: &str) {
        let message = format!("Revision {version} has rolled out.");
        self.set(&Type::Progressing, ConditionStatus::True, &Reason::Succeeded, &message);
        let message = "Objects are available and pass all probes.";
        self.set(&Type::Available, ConditionStatus::True, &Reason::ProbesSucceeded, message);
        let message = "Revision succeeded rolling out.";
        self.set(&Type::Succeeded, ConditionStatus::True, &Reason::Succeeded, message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::ObjectComparison;
    use crate::probe::{ProbeResult, ProbeStatus};
    use crate::rollout::{ObjectAction, ObjectResult, PhaseResult};
    use jiff::Timestamp;
    use mainstay_object::{Gvk, Object};

    fn time(second: i64) -> Time {
        Time::new(Timestamp::from_second(second).unwrap())
    }

    fn set() -> ClusterObjectSet {
        let mut set = ClusterObjectSet::new("", "e-1");
        set.metadata.generation = 2;
        set.metadata.creation_timestamp = Some(time(1000));
        set.metadata.annotations.insert(BUNDLE_VERSION.to_owned(), "1.2.0".to_owned());
        set.spec.progress_deadline_minutes = Some(10);
        set
    }

    fn rollout(action: ObjectAction, failure: Option<&str>) -> RolloutResult {
        let object = ObjectResult {
            object: Object::new(&Gvk::from_api_version("v1", "ConfigMap"), "c"),
            action,
            probe: ProbeResult {
                status: failure.map_or(ProbeStatus::True, |_| ProbeStatus::False),
                messages: failure.into_iter().map(ToOwned::to_owned).collect(),
            },
            comparison: ObjectComparison::default(),
            conflicting_owner: None,
        };
        RolloutResult {
            phase_count: 1,
            phases: vec![PhaseResult { objects: vec![object] }],
            ..RolloutResult::default()
        }
    }

    fn texts(status: &ClusterObjectSetStatus) -> Vec<String> {
        let text = |condition: &Condition| {
            assert_eq!(condition.observed_generation, 2);
            let message = condition.message.lines().next().unwrap_or_default();
            format!("{}={}/{}: {message}", condition.kind, condition.status, condition.reason)
        };
        status.conditions.iter().map(text).collect()
    }

    fn after(
        set: &ClusterObjectSet,
        outcome: ObjectSetOutcome<'_>,
        second: i64,
    ) -> ObjectSetUpdate {
        object_set_status(set, Vec::new(), outcome, time(second))
    }

    #[test]
    fn a_rollout_waits_for_probes_and_then_succeeds() {
        let mut set = set();
        let waiting = rollout(ObjectAction::Created, Some("x"));
        let update = after(&set, ObjectSetOutcome::Applied(&waiting), 1060);
        assert_eq!(
            texts(&update.status),
            [
                "Available=False/ProbeFailure: Object ConfigMap.v1 /c: x",
                "Progressing=True/RollingOut: Revision 1.2.0 is rolling out.",
            ]
        );
        assert_eq!(update.requeue, Some(Duration::from_mins(9)));
        set.status = update.status;

        let complete = rollout(ObjectAction::Idle, None);
        let update = after(&set, ObjectSetOutcome::Applied(&complete), 1070);
        assert_eq!(
            texts(&update.status),
            [
                "Available=True/ProbesSucceeded: Objects are available and pass all probes.",
                "Progressing=True/Succeeded: Revision 1.2.0 has rolled out.",
                "Succeeded=True/Succeeded: Revision succeeded rolling out.",
            ]
        );
        assert!(update.archives_previous && update.requeue.is_none());
        let transition = |at: usize| update.status.conditions[at].last_transition_time;
        assert_eq!([transition(0), transition(1)], [Some(time(1070)), Some(time(1060))]);
    }

    #[test]
    fn rollout_without_events_is_tried_again_and_says_why() {
        let set = set();
        let unwatched = |failure| RolloutResult {
            unwatched: Some("no".to_owned()),
            ..rollout(ObjectAction::Created, failure)
        };
        let waiting = after(&set, ObjectSetOutcome::Applied(&unwatched(Some("x"))), 1060);
        assert_eq!(
            texts(&waiting.status),
            [
                "Available=False/ProbeFailure: Object ConfigMap.v1 /c: x",
                "Progressing=True/Retrying: establish watch: no",
            ]
        );
        assert_eq!(waiting.requeue, Some(Duration::from_secs(10)));
        let complete = after(&set, ObjectSetOutcome::Applied(&unwatched(None)), 1060);
        assert!(
            texts(&complete.status)[0].starts_with("Progressing=True/Succeeded"),
            "{complete:?}"
        );
        assert_eq!(complete.requeue, None);
    }

    #[test]
    fn the_deadline_ends_retries_and_rollouts_but_not_success() {
        let set = set();
        let failed = after(&set, ObjectSetOutcome::Failed("x"), 1600);
        let expected = "Progressing=False/ProgressDeadlineExceeded: Revision has not rolled out for 10 \
                        minute(s). Last status: x";
        assert_eq!(texts(&failed.status), [expected]);
        let waiting = rollout(ObjectAction::Created, Some("x"));
        let late = after(&set, ObjectSetOutcome::Applied(&waiting), 1600);
        assert_eq!(
            texts(&late.status)[1],
            "Progressing=False/ProgressDeadlineExceeded: Revision has not rolled out for 10 minute(s). \
             Last status: Revision 1.2.0 is rolling out."
        );
        assert_eq!(late.requeue, None);
        let complete = rollout(ObjectAction::Idle, None);
        let update = after(&set, ObjectSetOutcome::Applied(&complete), 1600);
        assert!(texts(&update.status)[0].starts_with("Progressing=True/Succeeded"), "{update:?}");
    }

    #[test]
    fn errors_make_availability_unknown_only_if_it_was_known() {
        let mut set = set();
        let collision = rollout(ObjectAction::Collision, None);
        let update = after(&set, ObjectSetOutcome::Applied(&collision), 1010);
        assert_eq!(
            texts(&update.status),
            ["Progressing=True/Retrying: revision object collisions in phase 0"]
        );
        assert_eq!(update.requeue, Some(Duration::from_secs(10)));
        let complete = rollout(ObjectAction::Idle, None);
        set.status = after(&set, ObjectSetOutcome::Applied(&complete), 1010).status;
        let update = after(&set, ObjectSetOutcome::Invalid("x"), 1020);
        assert_eq!(
            texts(&update.status)[..2],
            ["Progressing=True/Retrying: x", "Available=Unknown/Reconciling: x"]
        );
        let blocked = after(&set, ObjectSetOutcome::Blocked("x"), 1020);
        assert_eq!(
            texts(&blocked.status)[..2],
            [
                "Progressing=False/Blocked: x",
                "Available=True/ProbesSucceeded: Objects are available and pass all probes.",
            ]
        );
        let removing = after(&set, ObjectSetOutcome::Removing, 1020);
        assert_eq!(removing.requeue, Some(Duration::from_secs(5)));
        let archived = after(&set, ObjectSetOutcome::Archived, 1020);
        assert_eq!(
            texts(&archived.status),
            [
                "Progressing=False/Archived: revision is archived",
                "Available=Unknown/Archived: revision is archived",
                "Succeeded=True/Succeeded: Revision succeeded rolling out.",
            ]
        );
    }
}
