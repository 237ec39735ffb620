//! Subscription conditions: set in place, and removed when their reason is gone.

use mainstay_api::{
    ConditionStatus, SubscriptionCondition, SubscriptionConditionType as Type, SubscriptionReason,
    SubscriptionStatus, Time,
};

/// Sets a condition. Its transition time stays while status, reason and message stay the same.
pub(crate) fn set(
    status: &mut SubscriptionStatus,
    kind: Type,
    holds: bool,
    reason: SubscriptionReason,
    message: impl Into<String>,
    now: Time,
) {
    let (holds, message) = (ConditionStatus::from(holds), message.into());
    let at = status.conditions.iter().position(|condition| condition.kind == kind);
    if let Some(old) = at.map(|at| &status.conditions[at])
        && old.status == holds
        && old.reason == reason
        && old.message == message
    {
        return;
    }
    // Upstream gives no transition time to conditions about resolution and unpacking.
    let untimed = [Type::ResolutionFailed, Type::BundleUnpacking, Type::BundleUnpackFailed];
    let timed = !untimed.contains(&kind);
    let new = SubscriptionCondition {
        kind,
        status: holds,
        reason,
        message,
        last_transition_time: timed.then_some(now),
        last_heartbeat_time: None,
    };
    match at {
        Some(at) => status.conditions[at] = new,
        None => status.conditions.push(new),
    }
}

/// Removes conditions.
pub(crate) fn remove(status: &mut SubscriptionStatus, kinds: &[Type]) {
    status.conditions.retain(|condition| !kinds.contains(&condition.kind));
}

/// Records a failed resolution. Conditions about bundles of an earlier resolution no longer apply.
pub(crate) fn unresolved(
    status: &mut SubscriptionStatus,
    reason: SubscriptionReason,
    message: &str,
    now: Time,
) {
    remove(status, &[Type::BundleUnpacking, Type::BundleUnpackFailed]);
    set(status, Type::ResolutionFailed, true, reason, message, now);
}

/// Removes the conditions that a successful resolution disproves.
pub(crate) fn resolved(status: &mut SubscriptionStatus) {
    remove(status, &[Type::BundleUnpacking, Type::BundleUnpackFailed, Type::ResolutionFailed]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_resolution_removes_unpack_conditions_and_a_successful_one_removes_both() {
        let now = Time::new(jiff::Timestamp::UNIX_EPOCH);
        let mut status = SubscriptionStatus::default();
        let kinds = |status: &SubscriptionStatus| {
            status.conditions.iter().map(|condition| condition.kind.clone()).collect::<Vec<_>>()
        };
        let reason = SubscriptionReason::UnpackingInProgress;
        set(&mut status, Type::BundleUnpacking, true, reason, "", now);
        set(&mut status, Type::InstallPlanPending, true, SubscriptionReason::Installing, "", now);
        unresolved(&mut status, SubscriptionReason::ConstraintsNotSatisfiable, "no", now);
        assert_eq!(kinds(&status), [Type::InstallPlanPending, Type::ResolutionFailed]);
        resolved(&mut status);
        assert_eq!(kinds(&status), [Type::InstallPlanPending]);
    }
}
