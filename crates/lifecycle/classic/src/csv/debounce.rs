//! Phase debounce: delays the report of a waiting phase that ends within a moment.
//!
//! Such phases are requirements that are missing while the InstallPlan still creates them,
//! Deployments that were just created, and a predecessor that is about to become `Replacing`.

use super::phase::Decision;
use mainstay_api::{ClusterServiceVersionStatus, CsvPhase, CsvReason};
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;

/// How long a CSV waits before its status says so.
const DEBOUNCE: Duration = Duration::from_millis(150);
/// The same for a predecessor that is not `Replacing` yet, which may have to be installed first.
const PREDECESSOR_DEBOUNCE: Duration = Duration::from_secs(2);

/// The reason for which each CSV waits, and since when, by the clock's elapsed time.
#[derive(Debug, Default)]
pub(crate) struct PhaseDebounce(Mutex<HashMap<NamespacedName, (CsvReason, Duration)>>);

impl PhaseDebounce {
    /// How long to delay a decision that another one may soon replace. With `planned`, a running
    /// InstallPlan may still create missing requirements.
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

    /// Forgets a CSV that was deleted.
    pub(crate) fn forget(&self, key: &NamespacedName) {
        self.0.lock().remove(key);
    }
}

/// The reason of a decision that is the first to report a waiting phase.
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
    use crate::csv::status::Transition;

    fn status(phase: CsvPhase, reason: CsvReason) -> ClusterServiceVersionStatus {
        ClusterServiceVersionStatus { phase, reason, ..ClusterServiceVersionStatus::default() }
    }

    #[test]
    fn a_waiting_phase_is_reported_after_a_delay_and_others_at_once() {
        let debounce = PhaseDebounce::default();
        let key = NamespacedName::new("ns", "a.v1");
        let millis = Duration::from_millis;
        let unknown = status(CsvPhase::Pending, CsvReason::RequirementsUnknown);
        let missing = Decision::Transition(Transition::to(
            CsvPhase::Pending,
            CsvReason::RequirementsNotMet,
            "",
        ));
        // A CSV without an InstallPlan reports at once.
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
        // A condition that was reported is updated at once.
        let reported = status(CsvPhase::Pending, CsvReason::RequirementsNotMet);
        assert_eq!(debounce.delay(&key, &reported, &missing, || true, millis(161)), None);
        let met = Decision::Transition(Transition::to(
            CsvPhase::Pending,
            CsvReason::AllRequirementsMet,
            "",
        ));
        assert_eq!(debounce.delay(&key, &reported, &met, || true, millis(162)), Some(millis(2000)));
        let met_before = status(CsvPhase::Pending, CsvReason::AllRequirementsMet);
        assert_eq!(debounce.delay(&key, &met_before, &met, || true, millis(163)), None);
        let installed = status(CsvPhase::Installing, CsvReason::InstallSuccessful);
        let waits =
            Decision::Transition(Transition::to(CsvPhase::Installing, CsvReason::Waiting, ""));
        assert_eq!(
            debounce.delay(&key, &installed, &waits, || true, millis(200)),
            Some(millis(150))
        );
        let done = Decision::Transition(Transition::to(
            CsvPhase::Succeeded,
            CsvReason::InstallSuccessful,
            "",
        ));
        assert_eq!(debounce.delay(&key, &installed, &done, || true, millis(201)), None);
        // Another wait starts a new delay.
        assert_eq!(
            debounce.delay(&key, &installed, &waits, || true, millis(400)),
            Some(millis(150))
        );
        debounce.forget(&key);
        assert!(debounce.0.lock().is_empty());
    }
}
