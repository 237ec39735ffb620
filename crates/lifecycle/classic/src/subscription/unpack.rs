//! Bundle unpacking for Subscriptions: requests the bundles of a resolution and reports their
//! progress.
//!
//! A namespace gets one InstallPlan for all chosen bundles, so it waits a while for all of them. If
//! a bundle takes longer or fails, the others continue without it. The Subscriptions that need it
//! report its state.

use super::conditions::{remove, resolved, set};
use super::resolution::{NeededBundle, Resolved};
use crate::context::Context;
use crate::image::bundles::{Key, MAX_BUNDLE_WAIT, UnpackState, UnpackTimeouts};
use mainstay_api::{
    OperatorGroup, SubscriptionConditionType as Condition, SubscriptionReason, SubscriptionStatus,
    Time, names,
};
use mainstay_catalogsources as catalogsources;
use mainstay_formats::duration;
use mainstay_images::Requester;
use mainstay_object::NamespacedName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a bundle is unpacked before Subscriptions get a condition for it.
const CONDITION_DELAY: Duration = Duration::from_secs(1);

/// What a Subscription waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum UnpackCondition {
    /// A bundle that is being unpacked.
    Running,
    /// A bundle whose image is pulled again after a failure, and why.
    Retrying(String),
    /// A bundle that cannot be unpacked, and why.
    Failed(String),
    /// A plan that is refused, and why.
    PlanRefused(String),
}

impl UnpackCondition {
    /// Of several conditions, a Subscription shows the most severe.
    fn severity(&self) -> u8 {
        match self {
            Self::Running => 0,
            Self::Retrying(_) => 1,
            Self::Failed(_) | Self::PlanRefused(_) => 2,
        }
    }
}

/// The progress of the bundles that a namespace needs.
#[derive(Debug, Default)]
pub(super) struct UnpackStatus {
    /// Whether a bundle was unpacked since the resolution, so that the namespace is resolved again.
    pub(super) again: bool,
    /// Whether the namespace waits for its bundles before it creates an InstallPlan.
    pub(super) hold: bool,
    /// When the namespace is reconciled again.
    pub(super) after: Option<Duration>,
    /// What Subscriptions wait for, by name.
    pub(super) waiting: BTreeMap<String, UnpackCondition>,
}

/// The unpack timeouts of an OperatorGroup, from its annotations. Invalid annotations are ignored.
pub(crate) fn unpack_timeouts(group: &OperatorGroup, timeout: Duration) -> UnpackTimeouts {
    let annotation = |name: &str| {
        let text = group.metadata.annotations.get(name)?;
        let nanos = duration::parse_go(text)?;
        Some(Duration::from_nanos(u64::try_from(nanos).ok()?))
    };
    UnpackTimeouts {
        timeout: match annotation(names::BUNDLE_UNPACK_TIMEOUT) {
            None => Some(timeout),
            Some(Duration::ZERO) => None,
            some => some,
        },
        retry: annotation(names::BUNDLE_UNPACK_MIN_RETRY_INTERVAL)
            .filter(|interval| !interval.is_zero()),
    }
}

/// Requests the bundles that a resolution needs.
pub(super) fn request_bundles(
    context: &Context,
    namespace: &NamespacedName,
    resolved: &Resolved,
    timeouts: UnpackTimeouts,
) -> UnpackStatus {
    let mut unpack_status = UnpackStatus::default();
    for (name, message) in &resolved.unplanned {
        unpack_status.waiting.insert(name.clone(), UnpackCondition::PlanRefused(message.clone()));
    }
    for needed in &resolved.needed {
        let requester = context.caches.catalogs.sources.get(&needed.key.catalog).map_or_else(
            || Requester {
                namespace: needed.key.catalog.namespace.to_string(),
                name: needed.key.catalog.name.to_string(),
                uid: String::new(),
                secrets: Vec::new(),
            },
            |source| catalogsources::requester(&source),
        );
        let state = context.bundles.request(namespace, &needed.key, &requester, timeouts);
        unpack_status.add(needed, state);
    }
    unpack_status
}

impl UnpackStatus {
    fn add(&mut self, needed: &NeededBundle, state: UnpackState) {
        let mut look_after = |wait: Duration| {
            self.after = Some(self.after.map_or(wait, |after| after.min(wait)));
        };
        let waiting = match state {
            UnpackState::Ready => {
                self.again = true;
                return;
            }
            UnpackState::Running { age, error } => {
                // The end of the unpacking triggers a reconciliation anyway.
                for limit in [CONDITION_DELAY, MAX_BUNDLE_WAIT] {
                    if age < limit {
                        look_after(limit.saturating_sub(age));
                    }
                }
                self.hold |= age < MAX_BUNDLE_WAIT;
                match error {
                    Some(error) => {
                        UnpackCondition::Retrying(format!("{error}; the pull is tried again"))
                    }
                    None if age < CONDITION_DELAY => return,
                    None => UnpackCondition::Running,
                }
            }
            UnpackState::Failed(failure, wait) => {
                look_after(wait);
                UnpackCondition::Failed(format!(
                    "Bundle unpacking failed - {}: {}",
                    failure.reason, failure.message
                ))
            }
        };
        for name in &needed.subscriptions {
            // Of several bundles, the Subscription reports the one that failed.
            let known = self.waiting.entry(name.clone()).or_insert_with(|| waiting.clone());
            if known.severity() < waiting.severity() {
                *known = waiting.clone();
            }
        }
    }
}

/// Writes into a status that the Subscription was resolved, and what it waits for.
pub(super) fn write(status: &mut SubscriptionStatus, waiting: Option<&UnpackCondition>, now: Time) {
    let (kind, reason, message) = match waiting {
        None => return resolved(status),
        Some(UnpackCondition::Running) => {
            (Condition::BundleUnpacking, SubscriptionReason::UnpackingInProgress, "")
        }
        Some(UnpackCondition::Retrying(message)) => {
            (Condition::BundleUnpacking, SubscriptionReason::UnpackingInProgress, &**message)
        }
        Some(UnpackCondition::Failed(message)) => {
            remove(status, &[Condition::BundleUnpacking]);
            (Condition::BundleUnpackFailed, SubscriptionReason::BundleUnpackFailed, &**message)
        }
        Some(UnpackCondition::PlanRefused(message)) => {
            remove(status, &[Condition::BundleUnpacking]);
            (Condition::BundleUnpackFailed, SubscriptionReason::EnsureInstallPlanFailed, &**message)
        }
    };
    remove(status, &[Condition::ResolutionFailed]);
    set(status, kind, true, reason, message, now);
}

/// Whether a Subscription reports that its InstallPlan is refused.
pub(super) fn plan_is_refused(status: &SubscriptionStatus) -> bool {
    let refused = SubscriptionReason::EnsureInstallPlanFailed;
    status.conditions.iter().any(|condition| {
        condition.kind == Condition::BundleUnpackFailed && condition.reason == refused
    })
}

/// The bundles that the result of a resolution depends on once its InstallPlan exists, or if it has
/// none.
pub(super) fn required_bundles(resolved: &Resolved) -> BTreeSet<Key> {
    let needed = resolved.needed.iter().map(|bundle| bundle.key.clone());
    needed.chain(resolved.refused.iter().cloned()).collect()
}

/// These bundles, and those whose objects are in its steps.
pub(super) fn all_bundles(resolved: &Resolved) -> BTreeSet<Key> {
    required_bundles(resolved).union(&resolved.used).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::bundles::Failure;

    fn needed(image: &str, subscriptions: &[&str]) -> NeededBundle {
        let catalog = NamespacedName::new("olm", "cat");
        NeededBundle {
            key: Key { catalog, image: image.to_owned() },
            subscriptions: subscriptions.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn bundles_are_awaited_together_and_reported_when_they_take_longer() {
        let second = Duration::from_secs;
        let failed = || Failure { reason: "BackoffLimitExceeded", message: "i: no".to_owned() };
        let message = "Bundle unpacking failed - BackoffLimitExceeded: i: no";
        let running = |age: Duration| UnpackState::Running { age, error: None };
        let unpacking = || Some(UnpackCondition::Running);
        let retried = |age: Duration| UnpackState::Running { age, error: Some("no".to_owned()) };
        let retrying = || Some(UnpackCondition::Retrying("no; the pull is tried again".to_owned()));
        for (states, hold, after, waiting) in [
            (vec![running(Duration::ZERO)], true, Some(second(1)), None),
            (vec![running(second(3))], true, Some(second(7)), unpacking()),
            (vec![running(second(12))], false, None, unpacking()),
            // A failure sets its condition at once, and a bundle that is still unpacked does not
            // hide it.
            (vec![retried(Duration::ZERO)], true, Some(second(1)), retrying()),
            (vec![running(second(12)), retried(second(12))], false, None, retrying()),
            (vec![retried(second(12)), running(second(12))], false, None, retrying()),
            (
                vec![UnpackState::Failed(failed(), second(5))],
                false,
                Some(second(5)),
                Some(UnpackCondition::Failed(message.to_owned())),
            ),
            (
                vec![retried(second(12)), UnpackState::Failed(failed(), second(5))],
                false,
                Some(second(5)),
                Some(UnpackCondition::Failed(message.to_owned())),
            ),
        ] {
            let mut unpack_status = UnpackStatus::default();
            for state in states {
                unpack_status.add(&needed("i", &["s"]), state);
            }
            assert_eq!((unpack_status.hold, unpack_status.after), (hold, after));
            assert_eq!(unpack_status.waiting.get("s").cloned(), waiting);
            assert!(!unpack_status.again);
        }
        let mut unpack_status = UnpackStatus::default();
        unpack_status.add(&needed("i", &["s"]), UnpackState::Ready);
        assert!(unpack_status.again && unpack_status.waiting.is_empty());
    }

    #[test]
    fn an_operator_group_sets_the_unpack_timeouts() {
        const TIMEOUT: Duration = Duration::from_mins(10);
        let with = |timeout: Option<&str>, retry: Option<&str>| {
            let mut group = OperatorGroup::new("ns", "og");
            for (name, text) in [
                (names::BUNDLE_UNPACK_TIMEOUT, timeout),
                (names::BUNDLE_UNPACK_MIN_RETRY_INTERVAL, retry),
            ] {
                let text = text.map(|text| (name.to_owned(), text.to_owned()));
                group.metadata.annotations.extend(text);
            }
            unpack_timeouts(&group, TIMEOUT)
        };
        let minute = Duration::from_mins(1);
        for (timeout, retry, wanted) in [
            (None, None, (Some(TIMEOUT), None)),
            (Some("1m"), Some("1m"), (Some(minute), Some(minute))),
            (Some("0"), Some("0"), (None, None)),
            (Some("soon"), Some("-1s"), (Some(TIMEOUT), None)),
        ] {
            let UnpackTimeouts { timeout, retry } = with(timeout, retry);
            assert_eq!((timeout, retry), wanted);
        }
    }

    #[test]
    fn an_unpack_failure_replaces_the_previous_condition() {
        let now = Time::new(jiff::Timestamp::UNIX_EPOCH);
        let mut status = SubscriptionStatus::default();
        let kinds = |status: &SubscriptionStatus| {
            status.conditions.iter().map(|condition| condition.kind.to_string()).collect::<Vec<_>>()
        };
        write(&mut status, Some(&UnpackCondition::Running), now);
        assert_eq!(kinds(&status), ["BundleUnpacking"]);
        write(&mut status, Some(&UnpackCondition::Failed("no".to_owned())), now);
        assert_eq!(kinds(&status), ["BundleUnpackFailed"]);
        // During a retry, the condition of the last failure stays.
        write(&mut status, Some(&UnpackCondition::Running), now);
        assert_eq!(kinds(&status), ["BundleUnpackFailed", "BundleUnpacking"]);
        write(&mut status, None, now);
        assert!(status.conditions.is_empty());
    }
}
