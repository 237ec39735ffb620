//! Subscription succession: a Subscription takes over what another one of the same package has
//! installed.
//!
//! The result must not depend on the order or the time in which Subscriptions arrive. Resolved
//! together, a dependent and a Subscription to its dependency need no generated Subscription, and
//! two equal Subscriptions share one CSV. A Subscription that arrives later reaches the same state
//! by taking over:
//!
//! * A Subscription that a person creates replaces the one that was generated for a dependency on
//!   its package. It gets the InstallPlan and the CSV, continues in its own channel, and the
//!   generated Subscription is deleted.
//! * A Subscription with the same package, channel and catalog as another one, and no other
//!   `startingCSV`, gets its InstallPlan and CSV.
//!
//! Two Subscriptions to one package in different channels contradict each other: neither takes
//! over, and both report the conflict.

use super::plan;
use mainstay_api::{Subscription, SubscriptionStatus, Time, names};

/// Whether the Subscription was generated for a dependency.
pub(crate) fn is_generated(subscription: &Subscription) -> bool {
    subscription.metadata.annotations.contains_key(names::GENERATED_BY)
}

/// Whether no CSV was chosen for a Subscription yet.
fn is_new(subscription: &Subscription) -> bool {
    let status = &subscription.status;
    status.current_csv.is_empty() && status.install_plan_ref.is_none()
}

/// The only Subscription to a package that a person created; none if there are several, which may
/// contradict each other.
fn only_by_person<'a>(all: &'a [Subscription], package: &str) -> Option<&'a Subscription> {
    let by_person = |other: &&Subscription| other.spec.package == package && !is_generated(other);
    let mut found = all.iter().filter(by_person);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// The Subscription whose InstallPlan and CSV a new Subscription takes over.
pub(crate) fn predecessor<'a>(
    all: &'a [Subscription],
    heir: &Subscription,
) -> Option<&'a Subscription> {
    if !is_new(heir) || is_generated(heir) {
        return None;
    }
    let is_only = only_by_person(all, &heir.spec.package).is_some();
    let fits = |other: &&Subscription| {
        let (theirs, own) = (&other.spec, &heir.spec);
        let equal = theirs.channel == own.channel
            && (&theirs.source, &theirs.source_namespace) == (&own.source, &own.source_namespace)
            && (own.starting_csv.is_empty() || theirs.starting_csv == own.starting_csv);
        theirs.package == own.package
            && !other.status.current_csv.is_empty()
            && if is_generated(other) { is_only } else { equal }
    };
    // Subscriptions of people come first; a generated one beside them is about to be deleted.
    let order = |other: &&Subscription| (is_generated(other), other.metadata.name.clone());
    all.iter().filter(fits).min_by_key(order)
}

/// The status of a Subscription after it took over from another one.
pub(crate) fn taken_over_status(
    heir: &SubscriptionStatus,
    from: &SubscriptionStatus,
    now: Time,
) -> SubscriptionStatus {
    let mut status = heir.clone();
    plan::join(&mut status, from, now);
    status.state = from.state.clone();
    status.current_csv.clone_from(&from.current_csv);
    status.installed_csv.clone_from(&from.installed_csv);
    status.last_updated = Some(now);
    status
}

/// The generated Subscriptions that another Subscription has replaced, each with that Subscription.
pub(crate) fn superseded(all: &[Subscription]) -> Vec<(&Subscription, &Subscription)> {
    let generated = all.iter().filter(|subscription| is_generated(subscription));
    let superseded = generated.filter_map(|subscription| {
        let heir = only_by_person(all, &subscription.spec.package)?;
        (!heir.status.current_csv.is_empty()).then_some((subscription, heir))
    });
    superseded.collect()
}

/// The Subscription that will replace the one that an InstallPlan is about to generate for a
/// package.
pub(crate) fn heir<'a>(all: &'a [Subscription], package: &str) -> Option<&'a Subscription> {
    only_by_person(all, package).filter(|subscription| is_new(subscription))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::{ObjectReference, SubscriptionState};

    fn subscription(name: &str, channel: &str) -> Subscription {
        let mut subscription = Subscription::new("ns", name);
        subscription.spec.package = "a".into();
        subscription.spec.channel = channel.into();
        subscription.spec.source = "cat".into();
        subscription
    }

    fn installed(mut subscription: Subscription) -> Subscription {
        subscription.status.current_csv = "a.v1".into();
        subscription.status.installed_csv = "a.v1".into();
        subscription.status.state = SubscriptionState::AtLatestKnown;
        subscription.status.install_plan_generation = 3;
        subscription.status.install_plan_ref =
            Some(ObjectReference { name: "install-1".into(), ..ObjectReference::default() });
        subscription
    }

    fn generated(mut subscription: Subscription) -> Subscription {
        subscription.metadata.annotations.insert(names::GENERATED_BY.into(), "install-1".into());
        subscription
    }

    fn name_of(found: Option<&Subscription>) -> Option<&str> {
        found.map(|subscription| subscription.metadata.name.as_str())
    }

    #[test]
    fn a_persons_subscription_takes_over_from_a_generated_one_in_any_channel() {
        let new = subscription("mine", "beta");
        let all = [generated(installed(subscription("made", "stable"))), new.clone()];
        assert_eq!(name_of(predecessor(&all, &new)), Some("made"));
        let status =
            taken_over_status(&new.status, &all[0].status, Time::new(jiff::Timestamp::UNIX_EPOCH));
        assert_eq!(status.installed_csv, "a.v1");
        assert_eq!(status.state, SubscriptionState::AtLatestKnown);
        assert_eq!(status.install_plan_ref, all[0].status.install_plan_ref);
        assert_eq!(superseded(&all), [], "not before the other has taken over");
        let [generated, mut mine] = all;
        mine.status = status;
        let all = [generated, mine];
        let gone: Vec<_> = superseded(&all)
            .into_iter()
            .map(|(generated, _)| generated.metadata.name.as_str())
            .collect();
        assert_eq!(gone, ["made"]);
        assert_eq!(predecessor(&all, &all[1]), None, "once");
    }

    #[test]
    fn an_equal_subscription_takes_over_install_plan_and_csv() {
        let first = installed(subscription("first", "stable"));
        for (second, wanted) in [
            (subscription("second", "stable"), Some("first")),
            (subscription("second", "beta"), None),
            (
                {
                    let mut other = subscription("second", "stable");
                    other.spec.starting_csv = "a.v0".into();
                    other
                },
                None,
            ),
            (
                {
                    let mut other = subscription("second", "stable");
                    other.spec.source = "other".into();
                    other
                },
                None,
            ),
        ] {
            let all = [first.clone(), second.clone()];
            assert_eq!(name_of(predecessor(&all, &second)), wanted, "{:?}", second.spec);
            assert_eq!(superseded(&all), []);
        }
    }

    #[test]
    fn a_generated_subscription_stays_where_two_others_contradict_each_other() {
        let (one, two) = (subscription("one", "stable"), subscription("two", "beta"));
        let all = [generated(installed(subscription("made", "stable"))), one.clone(), two.clone()];
        assert_eq!(predecessor(&all, &one), None);
        assert_eq!(predecessor(&all, &two), None);
        assert_eq!(superseded(&all), []);
    }

    #[test]
    fn the_heir_of_a_planned_subscription_is_known_before_it_exists() {
        assert_eq!(name_of(heir(&[subscription("mine", "beta")], "a")), Some("mine"));
        assert_eq!(name_of(heir(&[subscription("mine", "beta")], "b")), None);
        assert_eq!(name_of(heir(&[installed(subscription("mine", "beta"))], "a")), None);
    }
}
