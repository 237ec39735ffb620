//! Deprecation conditions: the deprecations of a package, channel and bundle in the catalog, as
//! conditions of the Subscriptions that use them.

use super::conditions::{remove, set};
use mainstay_api::{
    Subscription, SubscriptionConditionType as Type, SubscriptionReason as Reason,
    SubscriptionStatus, Time,
};
use mainstay_catalogsources::SourceContent;

/// The deprecations that concern a Subscription, each with its text.
type Deprecations = [(Type, Option<String>); 3];

/// Sets the deprecation conditions for the package and channel of a Subscription and for its
/// installed CSV, from the content of its catalog.
pub(super) fn write(
    subscription: &Subscription,
    content: &SourceContent,
    status: &mut SubscriptionStatus,
    now: Time,
) {
    set_conditions(deprecations(subscription, content, &status.installed_csv), status, now);
}

fn deprecations(
    subscription: &Subscription,
    content: &SourceContent,
    installed: &str,
) -> Deprecations {
    let name = &subscription.spec.package;
    let package = content.catalog().package(name);
    let channel = package.and_then(|package| match &*subscription.spec.channel {
        "" => package.channel(&package.default_channel),
        channel => package.channel(channel),
    });
    let bundle = package.and_then(|package| package.bundle(installed));
    [
        (
            Type::PackageDeprecated,
            package
                .and_then(|package| package.deprecation.as_ref())
                .map(|text| format!("olm.package/{name}: {text}")),
        ),
        (
            Type::ChannelDeprecated,
            channel.and_then(|channel| {
                Some(format!("olm.channel/{}: {}", channel.name, channel.deprecation.as_ref()?))
            }),
        ),
        (
            Type::BundleDeprecated,
            bundle.and_then(|bundle| {
                Some(format!("olm.bundle/{}: {}", bundle.name, bundle.deprecation.as_ref()?))
            }),
        ),
    ]
}

/// Sets a condition for each deprecation, and `Deprecated` with all of their texts.
fn set_conditions(deprecations: Deprecations, status: &mut SubscriptionStatus, now: Time) {
    let texts: Vec<String> = deprecations.iter().filter_map(|(_, text)| text.clone()).collect();
    let all = (!texts.is_empty()).then(|| texts.join("; "));
    for (kind, text) in deprecations.into_iter().chain([(Type::Deprecated, all)]) {
        match text {
            Some(text) => set(status, kind, true, Reason::default(), text, now),
            None => remove(status, &[kind]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_deprecation_has_a_condition_and_deprecated_has_all_texts() {
        let now = Time::new(jiff::Timestamp::UNIX_EPOCH);
        let mut status = SubscriptionStatus::default();
        let deprecations = |texts: [Option<&str>; 3]| {
            let [package, channel, bundle] = texts.map(|text| text.map(str::to_owned));
            [
                (Type::PackageDeprecated, package),
                (Type::ChannelDeprecated, channel),
                (Type::BundleDeprecated, bundle),
            ]
        };
        let condition_texts = |status: &SubscriptionStatus| {
            let text = |condition: &mainstay_api::SubscriptionCondition| {
                format!(
                    "{}={} {}{}",
                    condition.kind, condition.status, condition.reason, condition.message
                )
            };
            status.conditions.iter().map(text).collect::<Vec<_>>()
        };
        set_conditions(deprecations([Some("a"), None, Some("c")]), &mut status, now);
        assert_eq!(
            condition_texts(&status),
            ["PackageDeprecated=True a", "BundleDeprecated=True c", "Deprecated=True a; c"]
        );
        set_conditions(deprecations([None, Some("b"), None]), &mut status, now);
        assert_eq!(condition_texts(&status), ["Deprecated=True b", "ChannelDeprecated=True b"]);
        set_conditions(deprecations([None, None, None]), &mut status, now);
        assert!(status.conditions.is_empty());
    }
}
