//! Bundles that come as images, on the way from being chosen to being steps of a plan.
//!
//! A namespace gets one plan for all that was chosen, so it waits for its bundles together, for a
//! moment. A bundle that takes longer, or cannot be had, leaves the others to go on; the
//! Subscriptions that it is for say how it stands.

use super::conditions::{remove, resolved, set};
use super::resolution::{Needed, Resolved};
use crate::context::Context;
use crate::image::bundles::{Key, Patience, Standing, TOGETHER};
use mainstay_api::{
    OperatorGroup, SubscriptionConditionType as Condition, SubscriptionReason, SubscriptionStatus,
    Time, names,
};
use mainstay_catalogsources::requester;
use mainstay_formats::duration;
use mainstay_images::Requester;
use mainstay_object::NamespacedName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A bundle that is unpacked within this time is not worth a condition.
const UNNOTICED: Duration = Duration::from_secs(1);

/// What a Subscription waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// A bundle that is being unpacked.
    Running,
    /// A bundle whose image is pulled again after a failure, and why.
    Retrying(String),
    /// A bundle that cannot be unpacked, and why.
    Failed(String),
    /// A plan that is refused, and why.
    Unplanned(String),
}

impl Waiting {
    /// Of what a Subscription waits for, the highest is shown.
    fn severity(&self) -> u8 {
        match self {
            Self::Running => 0,
            Self::Retrying(_) => 1,
            Self::Failed(_) | Self::Unplanned(_) => 2,
        }
    }
}

/// How the bundles of a namespace stand.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// Something is unpacked that was not before: it is worth resolving again.
    pub(super) again: bool,
    /// No plan should be made before this while is over, or something happens.
    pub(super) hold: bool,
    /// When to look again.
    pub(super) after: Option<Duration>,
    /// What Subscriptions wait for, by name.
    pub(super) waiting: BTreeMap<String, Waiting>,
}

/// How long a group lets its bundles be unpacked, by its annotations; what cannot be read does not
/// count.
pub(crate) fn patience(group: &OperatorGroup, timeout: Duration) -> Patience {
    let annotation = |name: &str| {
        let text = group.metadata.annotations.get(name)?;
        let nanos = duration::parse_go(text)?;
        Some(Duration::from_nanos(u64::try_from(nanos).ok()?))
    };
    Patience {
        timeout: match annotation(names::BUNDLE_UNPACK_TIMEOUT) {
            None => Some(timeout),
            Some(Duration::ZERO) => None,
            some => some,
        },
        retry: annotation(names::BUNDLE_UNPACK_MIN_RETRY_INTERVAL)
            .filter(|interval| !interval.is_zero()),
    }
}

/// Asks for the bundles that are needed.
pub(super) fn ask(
    context: &Context,
    namespace: &NamespacedName,
    resolved: &Resolved,
    patience: Patience,
) -> Outcome {
    let mut outcome = Outcome::default();
    for (name, message) in &resolved.unplanned {
        outcome.waiting.insert(name.clone(), Waiting::Unplanned(message.clone()));
    }
    for needed in &resolved.needed {
        let asking = context.caches.catalogs.sources.get(&needed.key.catalog).map_or_else(
            || Requester {
                namespace: needed.key.catalog.namespace.to_string(),
                name: needed.key.catalog.name.to_string(),
                uid: String::new(),
                secrets: Vec::new(),
            },
            |source| requester(&source),
        );
        let standing = context.bundles.ask(namespace, &needed.key, &asking, patience);
        outcome.add(needed, standing);
    }
    outcome
}

impl Outcome {
    fn add(&mut self, needed: &Needed, standing: Standing) {
        let mut look = |wait: Duration| {
            self.after = Some(self.after.map_or(wait, |after| after.min(wait)));
        };
        let waiting = match standing {
            Standing::Ready => {
                self.again = true;
                return;
            }
            Standing::Running { age, error } => {
                // When it has ended, the namespace is looked at anyway.
                for limit in [UNNOTICED, TOGETHER] {
                    if age < limit {
                        look(limit.saturating_sub(age));
                    }
                }
                self.hold |= age < TOGETHER;
                match error {
                    Some(error) => Waiting::Retrying(format!("{error}; the pull is tried again")),
                    None if age < UNNOTICED => return,
                    None => Waiting::Running,
                }
            }
            Standing::Failed(failure, wait) => {
                look(wait);
                Waiting::Failed(format!(
                    "Bundle unpacking failed - {}: {}",
                    failure.reason, failure.message
                ))
            }
        };
        for name in &needed.subscriptions {
            // Of several bundles, one that failed is what people must know.
            let known = self.waiting.entry(name.clone()).or_insert_with(|| waiting.clone());
            if known.severity() < waiting.severity() {
                *known = waiting.clone();
            }
        }
    }
}

/// Writes into a status what a Subscription waits for, and that it was resolved.
pub(super) fn write(status: &mut SubscriptionStatus, waiting: Option<&Waiting>, now: Time) {
    let (kind, reason, message) = match waiting {
        None => return resolved(status),
        Some(Waiting::Running) => {
            (Condition::BundleUnpacking, SubscriptionReason::UnpackingInProgress, "")
        }
        Some(Waiting::Retrying(message)) => {
            (Condition::BundleUnpacking, SubscriptionReason::UnpackingInProgress, &**message)
        }
        Some(Waiting::Failed(message)) => {
            remove(status, &[Condition::BundleUnpacking]);
            (Condition::BundleUnpackFailed, SubscriptionReason::BundleUnpackFailed, &**message)
        }
        Some(Waiting::Unplanned(message)) => {
            remove(status, &[Condition::BundleUnpacking]);
            (Condition::BundleUnpackFailed, SubscriptionReason::EnsureInstallPlanFailed, &**message)
        }
    };
    remove(status, &[Condition::ResolutionFailed]);
    set(status, kind, true, reason, message, now);
}

/// Whether a Subscription says that its plan is refused.
pub(super) fn is_planless(status: &SubscriptionStatus) -> bool {
    let refused = SubscriptionReason::EnsureInstallPlanFailed;
    status.conditions.iter().any(|condition| {
        condition.kind == Condition::BundleUnpackFailed && condition.reason == refused
    })
}

/// The bundles that a resolution rests on when its plan is made, or if there is none.
pub(super) fn resting(resolved: &Resolved) -> BTreeSet<Key> {
    let needed = resolved.needed.iter().map(|bundle| bundle.key.clone());
    needed.chain(resolved.refused.iter().cloned()).collect()
}

/// The same, and those whose objects are in its steps.
pub(super) fn keys(resolved: &Resolved) -> BTreeSet<Key> {
    resting(resolved).union(&resolved.used).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::bundles::Failure;

    fn needed(image: &str, subscriptions: &[&str]) -> Needed {
        let catalog = NamespacedName::new("olm", "cat");
        Needed {
            key: Key { catalog, image: image.to_owned() },
            subscriptions: subscriptions.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn bundles_are_waited_for_together_for_a_moment_and_told_of_when_it_takes_longer() {
        let second = Duration::from_secs;
        let failed = || Failure { reason: "BackoffLimitExceeded", message: "i: no".to_owned() };
        let said = "Bundle unpacking failed - BackoffLimitExceeded: i: no";
        let running = |age: Duration| Standing::Running { age, error: None };
        let unpacking = || Some(Waiting::Running);
        let retried = |age: Duration| Standing::Running { age, error: Some("no".to_owned()) };
        let retrying = || Some(Waiting::Retrying("no; the pull is tried again".to_owned()));
        for (standings, hold, after, waiting) in [
            (vec![running(Duration::ZERO)], true, Some(second(1)), None),
            (vec![running(second(3))], true, Some(second(7)), unpacking()),
            (vec![running(second(12))], false, None, unpacking()),
            // A failure is worth a condition at once, and is not hidden by what still runs.
            (vec![retried(Duration::ZERO)], true, Some(second(1)), retrying()),
            (vec![running(second(12)), retried(second(12))], false, None, retrying()),
            (vec![retried(second(12)), running(second(12))], false, None, retrying()),
            (
                vec![Standing::Failed(failed(), second(5))],
                false,
                Some(second(5)),
                Some(Waiting::Failed(said.to_owned())),
            ),
            (
                vec![retried(second(12)), Standing::Failed(failed(), second(5))],
                false,
                Some(second(5)),
                Some(Waiting::Failed(said.to_owned())),
            ),
        ] {
            let mut outcome = Outcome::default();
            for standing in standings {
                outcome.add(&needed("i", &["s"]), standing);
            }
            assert_eq!((outcome.hold, outcome.after), (hold, after));
            assert_eq!(outcome.waiting.get("s").cloned(), waiting);
            assert!(!outcome.again);
        }
        let mut outcome = Outcome::default();
        outcome.add(&needed("i", &["s"]), Standing::Ready);
        assert!(outcome.again && outcome.waiting.is_empty());
    }

    #[test]
    fn a_group_says_how_long_unpacking_may_take() {
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
            patience(&group, TIMEOUT)
        };
        let minute = Duration::from_mins(1);
        for (timeout, retry, wanted) in [
            (None, None, (Some(TIMEOUT), None)),
            (Some("1m"), Some("1m"), (Some(minute), Some(minute))),
            (Some("0"), Some("0"), (None, None)),
            (Some("soon"), Some("-1s"), (Some(TIMEOUT), None)),
        ] {
            let Patience { timeout, retry } = with(timeout, retry);
            assert_eq!((timeout, retry), wanted);
        }
    }

    #[test]
    fn a_failure_takes_the_place_of_what_was_said_before() {
        let now = Time::new(jiff::Timestamp::UNIX_EPOCH);
        let mut status = SubscriptionStatus::default();
        let kinds = |status: &SubscriptionStatus| {
            status.conditions.iter().map(|condition| condition.kind.to_string()).collect::<Vec<_>>()
        };
        write(&mut status, Some(&Waiting::Running), now);
        assert_eq!(kinds(&status), ["BundleUnpacking"]);
        write(&mut status, Some(&Waiting::Failed("no".to_owned())), now);
        assert_eq!(kinds(&status), ["BundleUnpackFailed"]);
        // While it is tried again, what was wrong is still known.
        write(&mut status, Some(&Waiting::Running), now);
        assert_eq!(kinds(&status), ["BundleUnpackFailed", "BundleUnpacking"]);
        write(&mut status, None, now);
        assert!(status.conditions.is_empty());
    }
}
