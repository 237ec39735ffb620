//! What is over within a moment is not told: requirements that are missing while the plan that
//! brings them runs, Deployments that have only just been made, and a predecessor that is about to be
//! replaced.

use super::phase::Decision;
use mainstay_api::{ClusterServiceVersionStatus, CsvPhase, CsvReason};
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

/// How long a version is waited for before people are told that it waits.
const DEBOUNCE: Duration = Duration::from_millis(150);
/// The same for a predecessor that is not `Replacing` yet, which may have to be installed first.
const PREDECESSOR_DEBOUNCE: Duration = Duration::from_secs(2);

/// The versions that wait, and since when, by the clock's elapsed time.
#[derive(Debug, Default)]
pub(crate) struct PhaseDebounce(Mutex<HashMap<NamespacedName, (CsvReason, Duration)>>);

impl PhaseDebounce {
    /// For how long a decision is not carried out yet, if it is one that may soon be another. What is
    /// missing may come soon where a plan that brings the version is under way (`planned`).
    pub(crate) fn delay(
        &self,
        key: &NamespacedName,
        status: &ClusterServiceVersionStatus,
        decision: &Decision,
        planned: impl FnOnce() -> bool,
        now: Duration,
    ) -> Option<Duration> {
        let may_pass = |reason: &CsvReason| *reason != CsvReason::RequirementsNotMet || planned();
        let reason = transient_reason(status, decision).filter(may_pass);
        let mut debounce = self.0.lock();
        let Some(reason) = reason else {
            debounce.remove(key);
            return None;
        };
        let limit =
            if reason == CsvReason::AllRequirementsMet { PREDECESSOR_DEBOUNCE } else { DEBOUNCE };
        let entry = debounce.entry(key.clone()).or_insert_with(|| (reason.clone(), now));
        if entry.0 != reason {
            *entry = (reason, now);
        }
        limit.checked_sub(now.saturating_sub(entry.1)).filter(|left| !left.is_zero())
    }

    /// Forgets a version that is gone.
    pub(crate) fn forget(&self, key: &NamespacedName) {
        self.0.lock().remove(key);
    }
}

/// The reason that would be told, where that is the first thing that is told of waiting.
fn transient_reason(
    status: &ClusterServiceVersionStatus,
    decision: &Decision,
) -> Option<CsvReason> {
    let Decision::Transition(transition) = decision else { return None };
    let first = match (&transition.phase, &transition.reason) {
        (CsvPhase::Pending, CsvReason::RequirementsNotMet) => {
            (&status.phase, &status.reason) == (&CsvPhase::Pending, &CsvReason::RequirementsUnknown)
        }
        (CsvPhase::Pending, CsvReason::AllRequirementsMet) => {
            status.phase == CsvPhase::Pending && status.reason != CsvReason::AllRequirementsMet
        }
        (CsvPhase::Installing, CsvReason::Waiting) => {
            (&status.phase, &status.reason)
                == (&CsvPhase::Installing, &CsvReason::InstallSuccessful)
        }
        _ => false,
    };
    first.then(|| transition.reason.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::status::PhaseTransition;

    fn status(phase: CsvPhase, reason: CsvReason) -> ClusterServiceVersionStatus {
        ClusterServiceVersionStatus { phase, reason, ..ClusterServiceVersionStatus::default() }
    }

    #[test]
    fn waiting_is_told_after_a_moment_and_everything_else_at_once() {
        let debounce = PhaseDebounce::default();
        let key = NamespacedName::new("ns", "a.v1");
        let millis = Duration::from_millis;
        let unknown = status(CsvPhase::Pending, CsvReason::RequirementsUnknown);
        let missing = Decision::Transition(PhaseTransition::to(
            CsvPhase::Pending,
            CsvReason::RequirementsNotMet,
            "",
        ));
        // Whoever makes a version without a plan is told at once.
        assert_eq!(debounce.delay(&key, &unknown, &missing, || false, millis(5)), None);
        assert_eq!(
            debounce.delay(&key, &unknown, &missing, || true, millis(10)),
            Some(millis(150))
        );
        assert_eq!(
            debounce.delay(&key, &unknown, &missing, || true, millis(60)),
            Some(millis(100))
        );
        assert_eq!(debounce.delay(&key, &unknown, &missing, || true, millis(160)), None);
        // What was told is kept up to date at once.
        let reported = status(CsvPhase::Pending, CsvReason::RequirementsNotMet);
        assert_eq!(debounce.delay(&key, &reported, &missing, || true, millis(161)), None);
        let met = Decision::Transition(PhaseTransition::to(
            CsvPhase::Pending,
            CsvReason::AllRequirementsMet,
            "",
        ));
        assert_eq!(debounce.delay(&key, &reported, &met, || true, millis(162)), Some(millis(2000)));
        let met_before = status(CsvPhase::Pending, CsvReason::AllRequirementsMet);
        assert_eq!(debounce.delay(&key, &met_before, &met, || true, millis(163)), None);
        let made = status(CsvPhase::Installing, CsvReason::InstallSuccessful);
        let waits =
            Decision::Transition(PhaseTransition::to(CsvPhase::Installing, CsvReason::Waiting, ""));
        assert_eq!(debounce.delay(&key, &made, &waits, || true, millis(200)), Some(millis(150)));
        let done = Decision::Transition(PhaseTransition::to(
            CsvPhase::Succeeded,
            CsvReason::InstallSuccessful,
            "",
        ));
        assert_eq!(debounce.delay(&key, &made, &done, || true, millis(201)), None);
        // Another time begins anew.
        assert_eq!(debounce.delay(&key, &made, &waits, || true, millis(400)), Some(millis(150)));
        debounce.forget(&key);
        assert!(debounce.0.lock().is_empty());
    }
}
