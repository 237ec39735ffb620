//! Where a plan goes next, and what its status says after its steps were tried.

use mainstay_api::{
    ConditionStatus, InstallPlan, InstallPlanCondition, InstallPlanConditionType, InstallPlanPhase,
    InstallPlanReason, InstallPlanStatus, OperatorGroup, StepStatus, Time,
};
use std::sync::Arc;
use std::time::Duration;

/// For how long a plan whose steps fail is tried again before it counts as failed.
const RETRY_TIMEOUT: Duration = Duration::from_mins(1);
/// Between these limits the pause before the next try is as long as the plan has been running.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// The longest pause where rights are missing: they may come at any time, or never.
const PAUSE_FORBIDDEN: Duration = Duration::from_mins(1);

/// What to do with a plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next {
    /// Nothing until something changes.
    Rest,
    /// Write this status.
    Write(Box<InstallPlanStatus>),
    /// Run its steps.
    Run,
}

/// How a run of the steps ended before their last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepError {
    /// What went wrong, as people read it.
    pub(crate) message: String,
    /// Whether rights are missing.
    pub(crate) forbidden: bool,
}

impl StepError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), forbidden: false }
    }
}

/// Whether the groups of a namespace let plans run, and with whose rights.
pub(crate) fn account(groups: &[Arc<OperatorGroup>]) -> Result<(), String> {
    let managing: Vec<&Arc<OperatorGroup>> =
        groups.iter().filter(|it| !it.status.namespaces.is_empty()).collect();
    match managing.as_slice() {
        [] => Err("no operator group found that is managing this namespace".to_owned()),
        [one] if one.spec.service_account_name.is_empty() => Ok(()),
        // Running with more rights than were asked for would be worse than not running.
        [one] => Err(format!(
            "installing with the rights of a service account is not supported. sa={} operatorgroup={}",
            one.spec.service_account_name,
            one.key()
        )),
        many => Err(format!(
            "more than one operator group(s) are managing this namespace count={}",
            many.len()
        )),
    }
}

/// Decides; a plan without steps is not ours to begin with.
pub(crate) fn next(plan: &InstallPlan, account: &Result<(), String>, now: Time) -> Next {
    let status = &plan.status;
    let over = matches!(status.phase, InstallPlanPhase::Complete | InstallPlanPhase::Failed);
    if over || (status.plan.is_empty() && status.bundle_lookups.is_empty()) {
        return Next::Rest;
    }
    let refused = InstallPlanReason::InstallCheckFailed;
    let mut new = status.clone();
    if let Err(message) = account {
        installed(&mut new, Some((refused, message)), now);
        return if new == *status { Next::Rest } else { Next::Write(Box::new(new)) };
    }
    new.conditions.retain(|it| it.reason != refused);
    match status.phase {
        InstallPlanPhase::RequiresApproval if plan.spec.approved => {
            new.phase = InstallPlanPhase::Installing;
            new.message.clear();
        }
        InstallPlanPhase::Installing => return Next::Run,
        _ => {}
    }
    if new == *status { Next::Rest } else { Next::Write(Box::new(new)) }
}

/// The status after a run, and the pause before the next one if one is needed without any change.
pub(crate) fn after(
    old: &InstallPlanStatus,
    steps: &[StepStatus],
    outcome: &Result<(), StepError>,
    now: Time,
) -> (InstallPlanStatus, Option<Duration>) {
    let mut new = old.clone();
    new.conditions.retain(|it| it.reason != InstallPlanReason::InstallCheckFailed);
    for (step, status) in new.plan.iter_mut().zip(steps) {
        step.status = status.clone();
    }
    let start = *new.start_time.get_or_insert(now);
    let running = now.timestamp().duration_since(start.timestamp());
    let running = Duration::try_from(running).unwrap_or_default();
    match outcome {
        Err(error) if error.forbidden || running < RETRY_TIMEOUT => {
            new.message = format!("retrying execution due to error: {}", error.message);
            let longest = if error.forbidden { PAUSE_FORBIDDEN } else { PAUSE.1 };
            return (new, Some(running.clamp(PAUSE.0, longest)));
        }
        Err(error) => {
            let reason = InstallPlanReason::InstallComponentFailed;
            installed(&mut new, Some((reason, &error.message)), now);
            new.phase = InstallPlanPhase::Failed;
            new.message.clone_from(&error.message);
        }
        Ok(()) => {
            let done = |it: &StepStatus| matches!(it, StepStatus::Created | StepStatus::Present);
            if steps.iter().all(done) {
                installed(&mut new, None, now);
                new.phase = InstallPlanPhase::Complete;
            }
            new.message.clear();
        }
    }
    (new, None)
}

/// Sets the condition `Installed`: false with a reason, or true without one.
fn installed(
    status: &mut InstallPlanStatus,
    failure: Option<(InstallPlanReason, &str)>,
    now: Time,
) {
    let holds = ConditionStatus::from(failure.is_none());
    let (reason, message) =
        failure.map_or_else(Default::default, |(reason, message)| (reason, message.to_owned()));
    let kind = InstallPlanConditionType::Installed;
    let at = status.conditions.iter().position(|it| it.kind == kind);
    let old = at.map(|at| &status.conditions[at]);
    if old.is_some_and(|it| it.status == holds && it.reason == reason && it.message == message) {
        return;
    }
    let since = old.filter(|it| it.status == holds).and_then(|it| it.last_transition_time);
    let new = InstallPlanCondition {
        kind,
        status: holds,
        reason,
        message,
        last_update_time: Some(now),
        last_transition_time: since.or(Some(now)),
    };
    match at {
        Some(at) => status.conditions[at] = new,
        None => status.conditions.push(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::Step;

    fn time(second: i64) -> Time {
        Time::new(jiff::Timestamp::from_second(second).unwrap())
    }

    fn plan(phase: InstallPlanPhase, approved: bool) -> InstallPlan {
        let mut plan = InstallPlan::new("ns", "install-abcde");
        plan.spec.approved = approved;
        plan.status.phase = phase;
        plan.status.plan = vec![Step::default()];
        plan
    }

    fn group(namespaces: &[&str]) -> Arc<OperatorGroup> {
        let mut group = OperatorGroup::new("ns", "og");
        group.status.namespaces = namespaces.iter().map(|it| (*it).to_owned()).collect();
        Arc::new(group)
    }

    #[test]
    fn exactly_one_managing_group_lets_plans_run() {
        let none = "no operator group found that is managing this namespace";
        for (groups, wanted) in [
            (vec![], Err(none.to_owned())),
            (vec![group(&[])], Err(none.to_owned())),
            (vec![group(&["ns"])], Ok(())),
            (vec![group(&["ns"]), group(&[])], Ok(())),
            (
                vec![group(&["ns"]), group(&[""])],
                Err("more than one operator group(s) are managing this namespace count=2"
                    .to_owned()),
            ),
        ] {
            assert_eq!(account(&groups), wanted);
        }
    }

    #[test]
    fn a_plan_waits_for_approval_runs_and_rests() {
        use InstallPlanPhase as Phase;
        let ok = Ok(());
        for (plan, wanted) in [
            (plan(Phase::RequiresApproval, false), "rest"),
            (plan(Phase::RequiresApproval, true), "Installing"),
            (plan(Phase::Installing, true), "run"),
            (plan(Phase::Complete, false), "rest"),
            (plan(Phase::Failed, true), "rest"),
            (InstallPlan::new("ns", "by-hand"), "rest"),
        ] {
            let told = match next(&plan, &ok, time(1)) {
                Next::Rest => "rest".to_owned(),
                Next::Run => "run".to_owned(),
                Next::Write(status) => status.phase.to_string(),
            };
            assert_eq!(told, wanted);
        }
    }

    #[test]
    fn a_missing_group_is_told_once_and_forgotten_when_it_comes() {
        let mut plan = plan(InstallPlanPhase::RequiresApproval, false);
        let refused = Err("why".to_owned());
        let Next::Write(status) = next(&plan, &refused, time(1)) else { panic!("not told") };
        assert_eq!(status.conditions[0].reason, InstallPlanReason::InstallCheckFailed);
        plan.status = *status;
        assert_eq!(next(&plan, &refused, time(2)), Next::Rest);
        let Next::Write(status) = next(&plan, &Ok(()), time(3)) else { panic!("not forgotten") };
        assert!(status.conditions.is_empty());
    }

    #[test]
    fn errors_are_retried_for_a_minute_and_missing_rights_for_ever() {
        let plan = plan(InstallPlanPhase::Installing, true);
        let steps = [StepStatus::Unknown];
        let run = |old: &InstallPlanStatus, error: StepError, now: i64| {
            after(old, &steps, &Err(error), time(now))
        };
        let (first, pause) = run(&plan.status, StepError::new("no"), 100);
        assert_eq!(first.message, "retrying execution due to error: no");
        assert_eq!((first.start_time, pause), (Some(time(100)), Some(PAUSE.0)));
        let (_, pause) = run(&first, StepError::new("no"), 103);
        assert_eq!(pause, Some(Duration::from_secs(3)));
        let (last, pause) = run(&first, StepError::new("no"), 160);
        assert_eq!((last.phase.as_str(), last.message.as_str(), pause), ("Failed", "no", None));
        assert_eq!(last.conditions[0].reason, InstallPlanReason::InstallComponentFailed);
        let forbidden = StepError { message: "no".into(), forbidden: true };
        let (still, pause) = run(&first, forbidden, 9999);
        assert_eq!((still.phase.as_str(), pause), ("Installing", Some(PAUSE_FORBIDDEN)));
    }

    #[test]
    fn a_plan_is_complete_when_every_step_is_done() {
        let plan = plan(InstallPlanPhase::Installing, true);
        let (waiting, pause) = after(&plan.status, &[StepStatus::WaitingForApi], &Ok(()), time(1));
        assert_eq!((waiting.phase.as_str(), pause), ("Installing", None));
        let (done, _) = after(&waiting, &[StepStatus::Created], &Ok(()), time(2));
        assert_eq!(done.phase, InstallPlanPhase::Complete);
        assert_eq!(done.conditions[0].status, ConditionStatus::True);
        assert_eq!(done.plan[0].status, StepStatus::Created);
    }
}
