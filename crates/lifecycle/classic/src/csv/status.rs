//! The status of a CSV and its history of conditions.

use mainstay_api::{
    ClusterServiceVersionCondition, ClusterServiceVersionStatus, CsvPhase, CsvReason,
    RequirementStatus, Time,
};

/// How many conditions the history of a CSV keeps.
const HISTORY: usize = 20;

/// The transition of a CSV to another phase, or to another reason within its phase.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Transition {
    pub(crate) phase: CsvPhase,
    pub(crate) reason: CsvReason,
    pub(crate) message: String,
    /// The requirements that were checked; none keeps the old list.
    pub(crate) requirements: Option<Vec<RequirementStatus>>,
    /// When the certificates were created, and when they are due for replacement.
    pub(crate) certificates: Option<(Time, Time)>,
}

impl Transition {
    pub(crate) fn to(phase: CsvPhase, reason: CsvReason, message: impl Into<String>) -> Self {
        Self { phase, reason, message: message.into(), requirements: None, certificates: None }
    }

    pub(crate) fn with_requirements(mut self, requirements: Vec<RequirementStatus>) -> Self {
        self.requirements = Some(requirements);
        self
    }

    /// Whether the status shows this transition already.
    pub(crate) fn is_recorded(&self, status: &ClusterServiceVersionStatus) -> bool {
        self.matches_status(status)
            && self
                .requirements
                .as_ref()
                .is_none_or(|requirements| *requirements == status.requirement_status)
    }

    fn matches_status(&self, status: &ClusterServiceVersionStatus) -> bool {
        status.phase == self.phase && status.reason == self.reason && status.message == self.message
    }

    /// The status after the transition, and whether it differs in phase, reason or message.
    pub(crate) fn apply(
        self,
        status: &ClusterServiceVersionStatus,
        now: Time,
    ) -> (ClusterServiceVersionStatus, bool) {
        let mut new = status.clone();
        let is_reported = !self.matches_status(status);
        if let Some(requirements) = self.requirements {
            new.requirement_status = requirements;
        }
        if let Some((updated, rotate)) = self.certificates {
            new.certs_last_updated = Some(updated);
            new.certs_rotate_at = Some(rotate);
        }
        if is_reported {
            new.last_update_time = Some(now);
            if new.phase != self.phase {
                new.phase = self.phase;
                new.last_transition_time = Some(now);
            }
            new.reason = self.reason;
            new.message = self.message;
            let known = new.conditions.last().is_some_and(|condition| {
                condition.phase == new.phase && condition.reason == new.reason
            });
            if !known {
                new.conditions.push(ClusterServiceVersionCondition {
                    phase: new.phase.clone(),
                    reason: new.reason.clone(),
                    message: new.message.clone(),
                    last_update_time: new.last_update_time,
                    last_transition_time: new.last_transition_time,
                });
            }
            let surplus = new.conditions.len().saturating_sub(HISTORY);
            let surplus = if mainstay_fault::is_on("history-has-no-end") { 0 } else { surplus };
            new.conditions.drain(..surplus);
        }
        (new, is_reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(second: i64) -> Time {
        Time::new(jiff::Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn history_grows_with_phase_or_reason_and_keeps_the_last_twenty() {
        let mut status = ClusterServiceVersionStatus::default();
        for at in 0..30 {
            let reason =
                if at % 2 == 0 { CsvReason::RequirementsNotMet } else { CsvReason::Waiting };
            let transition = Transition::to(CsvPhase::Pending, reason, format!("{at}"));
            status = transition.apply(&status, time(at)).0;
        }
        assert_eq!(status.conditions.len(), HISTORY);
        assert_eq!(status.conditions[0].message, "10");
        assert_eq!(status.last_transition_time, Some(time(0)));
        assert_eq!(status.last_update_time, Some(time(29)));
    }

    #[test]
    fn a_repeated_transition_changes_nothing() {
        let transition = Transition::to(CsvPhase::Pending, CsvReason::RequirementsUnknown, "m");
        let (status, is_reported) =
            transition.clone().apply(&ClusterServiceVersionStatus::default(), time(1));
        assert!(is_reported && transition.is_recorded(&status));
        assert_eq!(transition.apply(&status, time(2)), (status.clone(), false));
        let other =
            Transition::to(CsvPhase::Pending, CsvReason::RequirementsUnknown, "other words");
        let (status, is_reported) = other.apply(&status, time(3));
        assert!(is_reported);
        assert_eq!((status.conditions.len(), status.message.as_str()), (1, "other words"));
    }
}
