//! InstallPlan decisions: the next action for an InstallPlan, and its status after a run of its
//! steps.

use mainstay_api::{
    Approval, ConditionStatus, InstallPlan, InstallPlanCondition, InstallPlanConditionType,
    InstallPlanPhase, InstallPlanReason, InstallPlanStatus, ObjectReference, OperatorGroup,
    StepStatus, Time,
};
use mainstay_object::NamespacedName;
use std::sync::Arc;
use std::time::Duration;

/// The limits of the pause before the next run. Within them, the pause is as long as the
/// InstallPlan has been running.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// The longest pause while permissions are missing, which may be granted at any time.
const PAUSE_FORBIDDEN: Duration = Duration::from_mins(1);

/// What the controller does with an InstallPlan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NextAction {
    /// Nothing until something changes.
    Rest,
    /// Write this status.
    Write(Box<InstallPlanStatus>),
    /// Run its steps, with the permissions of this ServiceAccount, or with our own.
    Run(Option<ObjectReference>),
}

/// The ServiceAccount for the InstallPlans of a namespace, `None` for our own permissions, or why
/// none can run.
pub(crate) type PlanAccount = Result<Option<ObjectReference>, AccountError>;

/// The OperatorGroups of a namespace do not determine the ServiceAccount. The messages are
/// upstream's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AccountError {
    /// No OperatorGroup manages the namespace.
    #[error("no operator group found that is managing this namespace")]
    NoGroup,
    /// The ServiceAccount of the OperatorGroup does not exist.
    #[error("please make sure the service account exists. sa={account} operatorgroup={group}")]
    NoAccount {
        /// The ServiceAccount.
        account: String,
        /// The OperatorGroup.
        group: NamespacedName,
    },
    /// Several OperatorGroups manage the namespace.
    #[error("more than one operator group(s) are managing this namespace count={count}")]
    ManyGroups {
        /// How many.
        count: usize,
    },
}

/// Why a run of the steps ended before the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepError {
    /// The message for the status.
    pub(crate) message: String,
    /// Whether permissions are missing.
    pub(crate) forbidden: bool,
    /// Whether the API was unavailable or overloaded, which is not an error of the step.
    pub(crate) away: bool,
    /// All errors, if the message has only the first one; reported once the InstallPlan has failed.
    pub(crate) report: Option<String>,
}

impl StepError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), forbidden: false, away: false, report: None }
    }
}

/// The ServiceAccount that the OperatorGroups of a namespace determine.
pub(crate) fn plan_account(groups: &[Arc<OperatorGroup>]) -> PlanAccount {
    let managing: Vec<&Arc<OperatorGroup>> =
        groups.iter().filter(|group| !group.status.namespaces.is_empty()).collect();
    match managing.as_slice() {
        [] => Err(AccountError::NoGroup),
        [one, ..]
            if managing.len() == 1 || mainstay_fault::is_on("the-first-of-two-groups-counts") =>
        {
            let wanted = &one.spec.service_account_name;
            match &one.status.service_account_ref {
                _ if wanted.is_empty() => Ok(None),
                Some(found) if found.name == *wanted => Ok(Some(found.clone())),
                // Never run with more permissions than the OperatorGroup asks for.
                _ => Err(AccountError::NoAccount { account: wanted.clone(), group: one.key() }),
            }
        }
        many => Err(AccountError::ManyGroups { count: many.len() }),
    }
}

/// Decides about an InstallPlan; one without steps does not run.
pub(crate) fn next_action(plan: &InstallPlan, account: &PlanAccount, now: Time) -> NextAction {
    let status = &plan.status;
    let over = matches!(status.phase, InstallPlanPhase::Complete | InstallPlanPhase::Failed);
    if over || (status.plan.is_empty() && status.bundle_lookups.is_empty()) {
        return NextAction::Rest;
    }
    let refused = InstallPlanReason::InstallCheckFailed;
    let mut new = status.clone();
    let account = match account {
        Ok(account) => account,
        Err(error) => {
            set_installed_condition(&mut new, Some((refused, &error.to_string())), now);
            return if new == *status {
                NextAction::Rest
            } else {
                NextAction::Write(Box::new(new))
            };
        }
    };
    new.conditions.retain(|condition| condition.reason != refused);
    new.attenuated_service_account_ref.clone_from(account);
    match status.phase {
        InstallPlanPhase::RequiresApproval
            if plan.spec.approved || mainstay_fault::is_on("plans-do-not-wait-for-approval") =>
        {
            new.phase = InstallPlanPhase::Installing;
            new.message.clear();
        }
        // When the approval is withdrawn, no further step runs.
        InstallPlanPhase::Installing
            if !plan.spec.approved && plan.spec.approval == Approval::Manual =>
        {
            new.phase = InstallPlanPhase::RequiresApproval;
            new.message.clear();
            new.start_time = None;
        }
        // The status names the ServiceAccount before a step uses it.
        InstallPlanPhase::Installing
            if new.attenuated_service_account_ref == status.attenuated_service_account_ref =>
        {
            return NextAction::Run(account.clone());
        }
        _ => {}
    }
    if new == *status { NextAction::Rest } else { NextAction::Write(Box::new(new)) }
}

/// The status after a run, and the pause before the next one if no change triggers it. The
/// InstallPlan fails if its steps fail for longer than `timeout`.
pub(crate) fn status_after_run(
    old: &InstallPlanStatus,
    steps: &[StepStatus],
    outcome: &Result<(), StepError>,
    timeout: Duration,
    now: Time,
) -> (InstallPlanStatus, Option<Duration>) {
    let mut new = old.clone();
    new.conditions.retain(|condition| condition.reason != InstallPlanReason::InstallCheckFailed);
    for (step, status) in new.plan.iter_mut().zip(steps) {
        step.status = status.clone();
    }
    let start = *new.start_time.get_or_insert(now);
    let running = now.timestamp().duration_since(start.timestamp());
    let running = Duration::try_from(running).unwrap_or_default();
    match outcome {
        // The status does not show it, and the InstallPlan does not fail by it.
        Err(error) if error.away => return (new, Some(PAUSE.0)),
        Err(error) if error.forbidden || running < timeout => {
            new.message = format!("retrying execution due to error: {}", error.message);
            let longest = if error.forbidden { PAUSE_FORBIDDEN } else { PAUSE.1 };
            return (new, Some(running.clamp(PAUSE.0, longest)));
        }
        Err(error) => {
            let reason = InstallPlanReason::InstallComponentFailed;
            set_installed_condition(&mut new, Some((reason, &error.message)), now);
            new.phase = InstallPlanPhase::Failed;
            new.message.clone_from(&error.message);
        }
        Ok(()) => {
            let done =
                |status: &StepStatus| matches!(status, StepStatus::Created | StepStatus::Present);
            if steps.iter().all(done) {
                set_installed_condition(&mut new, None, now);
                new.phase = InstallPlanPhase::Complete;
            }
            new.message.clear();
        }
    }
    (new, None)
}

/// The status of an InstallPlan whose CSVs were replaced and deleted before its last steps were
/// recorded.
pub(crate) fn superseded_status(
    old: &InstallPlanStatus,
    by: &[String],
    now: Time,
) -> InstallPlanStatus {
    let mut new = old.clone();
    new.conditions.retain(|condition| condition.reason != InstallPlanReason::InstallCheckFailed);
    set_installed_condition(&mut new, None, now);
    new.phase = InstallPlanPhase::Complete;
    new.message = format!("superseded by {}", by.join(", "));
    new
}

/// Sets the condition `Installed`: false with a reason, or true without one.
fn set_installed_condition(
    status: &mut InstallPlanStatus,
    failure: Option<(InstallPlanReason, &str)>,
    now: Time,
) {
    let holds = ConditionStatus::from(failure.is_none());
    let (reason, message) =
        failure.map_or_else(Default::default, |(reason, message)| (reason, message.to_owned()));
    let kind = InstallPlanConditionType::Installed;
    let at = status.conditions.iter().position(|condition| condition.kind == kind);
    let old = at.map(|at| &status.conditions[at]);
    if old.is_some_and(|condition| {
        condition.status == holds && condition.reason == reason && condition.message == message
    }) {
        return;
    }
    let since = old
        .filter(|condition| condition.status == holds)
        .and_then(|condition| condition.last_transition_time);
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

    const MINUTE: Duration = Duration::from_mins(1);

    fn time(second: i64) -> Time {
        Time::new(jiff::Timestamp::from_second(second).unwrap())
    }

    fn plan(phase: InstallPlanPhase, approved: bool) -> InstallPlan {
        let mut plan = InstallPlan::new("ns", "install-abcde");
        plan.spec.approved = approved;
        plan.spec.approval = Approval::Manual;
        plan.status.phase = phase;
        plan.status.plan = vec![Step::default()];
        plan
    }

    fn group(namespaces: &[&str]) -> Arc<OperatorGroup> {
        let mut group = OperatorGroup::new("ns", "og");
        group.status.namespaces =
            namespaces.iter().map(|namespace| (*namespace).to_owned()).collect();
        Arc::new(group)
    }

    #[test]
    fn install_plans_run_with_exactly_one_managing_operator_group() {
        let none = "no operator group found that is managing this namespace";
        let with = |account: Option<&str>| {
            let mut group = OperatorGroup::clone(&group(&["ns"]));
            group.spec.service_account_name = "installer".into();
            group.status.service_account_ref = account
                .map(|name| ObjectReference { name: name.into(), ..ObjectReference::default() });
            Arc::new(group)
        };
        let missing =
            "please make sure the service account exists. sa=installer operatorgroup=ns/og";
        for (groups, wanted) in [
            (vec![], Err(none.to_owned())),
            (vec![group(&[])], Err(none.to_owned())),
            (vec![group(&["ns"])], Ok(None)),
            (vec![group(&["ns"]), group(&[])], Ok(None)),
            (vec![with(Some("installer"))], Ok(Some("installer"))),
            (vec![with(Some("another"))], Err(missing.to_owned())),
            (vec![with(None)], Err(missing.to_owned())),
            (
                vec![group(&["ns"]), group(&[""])],
                Err("more than one operator group(s) are managing this namespace count=2"
                    .to_owned()),
            ),
        ] {
            let found = plan_account(&groups);
            let found =
                found.as_ref().map(|group| group.as_ref().map(|account| account.name.as_str()));
            // shows IP-11 K02 AT-IP-02 AT-IP-03
            assert_eq!(found.map_err(ToString::to_string), wanted);
        }
    }

    #[test]
    fn a_plan_waits_for_approval_runs_and_rests() {
        use InstallPlanPhase as Phase;
        let ok = Ok(None);
        let automatic = |mut plan: InstallPlan| {
            plan.spec.approval = Approval::Automatic;
            plan
        };
        let empty = |mut plan: InstallPlan| {
            plan.status.plan.clear();
            plan
        };
        for (plan, wanted) in [
            (plan(Phase::RequiresApproval, false), "rest"),
            (plan(Phase::RequiresApproval, true), "Installing"),
            (plan(Phase::Installing, true), "run"),
            (plan(Phase::Installing, false), "RequiresApproval"),
            (plan(Phase::Complete, false), "rest"),
            (plan(Phase::Failed, true), "rest"),
            (plan(Phase::None, true), "rest"),
            (plan(Phase::Planning, true), "rest"),
            (automatic(plan(Phase::Installing, false)), "run"),
            (automatic(plan(Phase::RequiresApproval, true)), "Installing"),
            (empty(plan(Phase::Installing, true)), "rest"),
            (InstallPlan::new("ns", "by-hand"), "rest"),
        ] {
            let action = match next_action(&plan, &ok, time(1)) {
                NextAction::Rest => "rest".to_owned(),
                NextAction::Run(_) => "run".to_owned(),
                NextAction::Write(status) => status.phase.to_string(),
            };
            // shows IP-03 K01
            assert_eq!(action, wanted);
        }
    }

    #[test]
    fn a_missing_operator_group_is_reported_once_until_it_exists() {
        let mut plan = plan(InstallPlanPhase::RequiresApproval, false);
        let refused = Err(AccountError::NoGroup);
        let NextAction::Write(status) = next_action(&plan, &refused, time(1)) else {
            panic!("not told")
        };
        // shows IP-11 K02
        assert_eq!(status.conditions[0].reason, InstallPlanReason::InstallCheckFailed);
        plan.status = *status;
        assert_eq!(next_action(&plan, &refused, time(2)), NextAction::Rest);
        let NextAction::Write(status) = next_action(&plan, &Ok(None), time(3)) else {
            panic!("not forgotten")
        };
        assert!(status.conditions.is_empty());
    }

    #[test]
    fn the_service_account_is_written_to_the_status_before_steps_run() {
        let mut plan = plan(InstallPlanPhase::Installing, true);
        let account = Ok(Some(ObjectReference { name: "installer".into(), ..Default::default() }));
        let NextAction::Write(status) = next_action(&plan, &account, time(1)) else {
            panic!("not written")
        };
        plan.status = *status;
        let NextAction::Run(Some(account)) = next_action(&plan, &account, time(2)) else {
            panic!("does not run")
        };
        assert_eq!(account.name, "installer");
        // Without its ServiceAccount in the OperatorGroup, the remaining steps run with our own
        // permissions.
        let NextAction::Write(status) = next_action(&plan, &Ok(None), time(3)) else {
            panic!("not written")
        };
        assert_eq!(status.attenuated_service_account_ref, None);
    }

    #[test]
    fn errors_are_retried_for_a_minute_and_missing_permissions_forever() {
        let plan = plan(InstallPlanPhase::Installing, true);
        let steps = [StepStatus::Unknown];
        let run = |old: &InstallPlanStatus, error: StepError, now: i64| {
            status_after_run(old, &steps, &Err(error), MINUTE, time(now))
        };
        let (first, pause) = run(&plan.status, StepError::new("no"), 100);
        // shows K01
        assert_eq!(first.message, "retrying execution due to error: no");
        assert_eq!((first.start_time, pause), (Some(time(100)), Some(PAUSE.0)));
        let (_, pause) = run(&first, StepError::new("no"), 103);
        assert_eq!(pause, Some(Duration::from_secs(3)));
        let (last, pause) = run(&first, StepError::new("no"), 160);
        assert_eq!((last.phase.as_str(), last.message.as_str(), pause), ("Failed", "no", None));
        // shows IP-07 K01 E070
        assert_eq!(last.conditions[0].reason, InstallPlanReason::InstallComponentFailed);
        let forbidden = StepError { forbidden: true, ..StepError::new("no") };
        let away = StepError { away: true, ..StepError::new("no") };
        let (same, pause) = run(&first, away, 9999);
        assert_eq!((same, pause), (first.clone(), Some(PAUSE.0)));
        let (still, pause) = run(&first, forbidden, 9999);
        assert_eq!((still.phase.as_str(), pause), ("Installing", Some(PAUSE_FORBIDDEN)));
    }

    #[test]
    fn an_install_plan_whose_csvs_were_replaced_is_complete() {
        let plan = plan(InstallPlanPhase::Installing, true);
        let ended = superseded_status(&plan.status, &["a.v2".to_owned()], time(9));
        assert_eq!(ended.phase, InstallPlanPhase::Complete);
        assert_eq!(ended.message, "superseded by a.v2");
        assert_eq!(ended.conditions[0].status, ConditionStatus::True);
    }

    #[test]
    fn a_plan_is_complete_when_every_step_is_done() {
        let plan = plan(InstallPlanPhase::Installing, true);
        let (waiting, pause) =
            status_after_run(&plan.status, &[StepStatus::WaitingForApi], &Ok(()), MINUTE, time(1));
        assert_eq!((waiting.phase.as_str(), pause), ("Installing", None));
        let (done, _) =
            status_after_run(&waiting, &[StepStatus::Created], &Ok(()), MINUTE, time(2));
        // shows IP-06 K01
        assert_eq!(done.phase, InstallPlanPhase::Complete);
        // shows IP-06
        assert_eq!(done.conditions[0].status, ConditionStatus::True);
        assert_eq!(done.plan[0].status, StepStatus::Created);
    }
}
