//! Bundle unpacking for Subscriptions: requests the bundles of a resolution and reports their
//! progress.
//!
//! A namespace gets one InstallPlan for all chosen bundles, so it waits a while for all of them. If
//! a bundle takes longer or fails, the others continue without it. The Subscriptions that need it
//! report its state.

use super::conditions::{remove, resolved, set};
use super::resolution::{NeededBundle, ResolutionResult};
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

/// Why a Subscription has no InstallPlan yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PendingReason {
    /// A bundle that is being unpacked.
    Running,
    /// A bundle whose image is pulled again after a failure, and why.
    Retrying(String),
    /// A bundle that cannot be unpacked, and why.
    Failed(String),
    /// An InstallPlan that the API refused, and why.
    PlanRefused(String),
}

impl PendingReason {
    /// Of several reasons, a Subscription reports the most severe.
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
pub(super) struct UnpackProgress {
    /// A bundle was unpacked after the resolution: the namespace must be resolved again.
    pub(super) needs_resolution: bool,
    /// Whether the namespace waits for its bundles before it creates an InstallPlan.
    pub(super) waits_for_bundles: bool,
    /// When the namespace is reconciled again.
    pub(super) requeue_after: Option<Duration>,
    /// The most severe reason of each Subscription that waits, by its name.
    pub(super) pending_reasons: BTreeMap<String, PendingReason>,
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
    resolved: &ResolutionResult,
    timeouts: UnpackTimeouts,
) -> UnpackProgress {
    let mut progress = UnpackProgress::default();
    for (name, message) in &resolved.unplanned {
        progress.pending_reasons.insert(name.clone(), PendingReason::PlanRefused(message.clone()));
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
        progress.add(needed, state);
    }
    progress
}

impl UnpackProgress {
    fn add(&mut self, needed: &NeededBundle, state: UnpackState) {
        let mut requeue_after = |wait: Duration| {
            self.requeue_after = Some(self.requeue_after.map_or(wait, |after| after.min(wait)));
        };
        let reason = match state {
            UnpackState::Ready => {
                self.needs_resolution = true;
                return;
            }
            UnpackState::Running { age, error } => {
                // The end of the unpacking triggers a reconciliation anyway.
                for limit in [CONDITION_DELAY, MAX_BUNDLE_WAIT] {
                    if age < limit {
                        requeue_after(limit.saturating_sub(age));
                    }
                }
                self.waits_for_bundles |= age < MAX_BUNDLE_WAIT;
                match error {
                    Some(error) => {
                        PendingReason::Retrying(format!("{error}; the pull is tried again"))
                    }
                    None if age < CONDITION_DELAY => return,
                    None => PendingReason::Running,
                }
            }
            UnpackState::Failed(failure, wait) => {
                requeue_after(wait);
                PendingReason::Failed(format!(
                    "Bundle unpacking failed - {}: {}",
                    failure.reason, failure.message
                ))
            }
        };
        for name in &needed.subscriptions {
            // The Subscription reports the most severe state of its bundles.
            let known = self.pending_reasons.entry(name.clone()).or_insert_with(|| reason.clone());
            if known.severity() < reason.severity() {
                *known = reason.clone();
            }
        }
    }
}

/// Sets the conditions of a Subscription after a resolution.
pub(super) fn write_conditions(
    status: &mut SubscriptionStatus,
    pending: Option<&PendingReason>,
    now: Time,
) {
    let (kind, reason, message) = match pending {
        None => return resolved(status),
        Some(PendingReason::Running) => {
            (Condition::BundleUnpacking, SubscriptionReason::UnpackingInProgress, "")
        }
        Some(PendingReason::Retrying(message)) => {
            (Condition::BundleUnpacking, SubscriptionReason::UnpackingInProgress, &**message)
        }
        Some(PendingReason::Failed(message)) => {
            remove(status, &[Condition::BundleUnpacking]);
            (Condition::BundleUnpackFailed, SubscriptionReason::BundleUnpackFailed, &**message)
        }
        Some(PendingReason::PlanRefused(message)) => {
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

/// The bundles to keep unpacked after the InstallPlan of a resolution is created, or if the
/// resolution has none.
pub(super) fn required_bundles(resolved: &ResolutionResult) -> BTreeSet<Key> {
    let needed = resolved.needed.iter().map(|bundle| bundle.key.clone());
    needed.chain(resolved.refused.iter().cloned()).collect()
}

/// The [`required_bundles`], and the bundles whose objects are in the steps.
pub(super) fn all_bundles(resolved: &ResolutionResult) -> BTreeSet<Key> {
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
    fn a_namespace_waits_ten_seconds_for_its_bundles_and_reports_slow_ones() {
        let seconds = Duration::from_secs;
        let failed = || Failure { reason: "BackoffLimitExceeded", message: "i: no".to_owned() };
        let message = "Bundle unpacking failed - BackoffLimitExceeded: i: no";
        let running = |age: Duration| UnpackState::Running { age, error: None };
        let unpacking = || Some(PendingReason::Running);
        let retried = |age: Duration| UnpackState::Running { age, error: Some("no".to_owned()) };
        let retrying = || Some(PendingReason::Retrying("no; the pull is tried again".to_owned()));
        for (states, waits, requeue_after, reason) in [
            (vec![running(Duration::ZERO)], true, Some(seconds(1)), None),
            (vec![running(seconds(3))], true, Some(seconds(7)), unpacking()),
            (vec![running(seconds(12))], false, None, unpacking()),
            // A failure sets its condition at once, and a bundle that is still unpacked does not
            // hide it.
            (vec![retried(Duration::ZERO)], true, Some(seconds(1)), retrying()),
            (vec![running(seconds(12)), retried(seconds(12))], false, None, retrying()),
            (vec![retried(seconds(12)), running(seconds(12))], false, None, retrying()),
            (
                vec![UnpackState::Failed(failed(), seconds(5))],
                false,
                Some(seconds(5)),
                Some(PendingReason::Failed(message.to_owned())),
            ),
            (
                vec![retried(seconds(12)), UnpackState::Failed(failed(), seconds(5))],
                false,
                Some(seconds(5)),
                Some(PendingReason::Failed(message.to_owned())),
            ),
        ] {
            let mut progress = UnpackProgress::default();
            for state in states {
                progress.add(&needed("i", &["s"]), state);
            }
            assert_eq!(
                (progress.waits_for_bundles, progress.requeue_after),
                (waits, requeue_after)
            );
            assert_eq!(progress.pending_reasons.get("s").cloned(), reason);
            assert!(!progress.needs_resolution);
        }
        let mut progress = UnpackProgress::default();
        progress.add(&needed("i", &["s"]), UnpackState::Ready);
        assert!(progress.needs_resolution && progress.pending_reasons.is_empty());
    }

    #[test]
    fn an_operator_group_sets_the_unpack_timeouts() {
        const TIMEOUT: Duration = Duration::from_mins(10);
        let annotated_timeouts = |timeout: Option<&str>, retry: Option<&str>| {
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
            let UnpackTimeouts { timeout, retry } = annotated_timeouts(timeout, retry);
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
        write_conditions(&mut status, Some(&PendingReason::Running), now);
        assert_eq!(kinds(&status), ["BundleUnpacking"]);
        write_conditions(&mut status, Some(&PendingReason::Failed("no".to_owned())), now);
        assert_eq!(kinds(&status), ["BundleUnpackFailed"]);
        // During a retry, the condition of the last failure stays.
        write_conditions(&mut status, Some(&PendingReason::Running), now);
        assert_eq!(kinds(&status), ["BundleUnpackFailed", "BundleUnpacking"]);
        write_conditions(&mut status, None, now);
        assert!(status.conditions.is_empty());
    }
}
