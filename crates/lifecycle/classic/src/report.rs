//! Texts for the decision log: the status of Subscriptions and InstallPlans.

use mainstay_api::{InstallPlanStatus, SubscriptionStatus};

/// The new status of a Subscription and its reason; none if neither differs.
pub(crate) fn subscription_change(
    old: &SubscriptionStatus,
    new: &SubscriptionStatus,
) -> Option<(String, String)> {
    let describe = |status: &SubscriptionStatus| {
        let plan = status.install_plan_ref.as_ref().map_or("", |reference| &*reference.name);
        let words = [
            ("", status.state.as_str()),
            ("current ", &*status.current_csv),
            ("installed ", &*status.installed_csv),
            ("plan ", plan),
        ];
        let words = words.iter().filter(|(_, word)| !word.is_empty());
        let words: Vec<String> = words.map(|(what, word)| format!("{what}{word}")).collect();
        let conditions =
            status.conditions.iter().filter(|condition| condition.status.as_str() == "True");
        let why: Vec<String> = conditions
            .map(|condition| match &*condition.message {
                "" => format!("{}: {}", condition.kind.as_str(), condition.reason.as_str()),
                text => format!("{}: {text}", condition.kind.as_str()),
            })
            .collect();
        (words.join(", "), why.join("; "))
    };
    let (before, after) = (describe(old), describe(new));
    (before != after).then_some(after)
}

/// The new status of an InstallPlan and its message; none if neither differs.
pub(crate) fn install_plan_change(
    old: &InstallPlanStatus,
    new: &InstallPlanStatus,
) -> Option<(String, String)> {
    let describe = |status: &InstallPlanStatus| {
        let message = status
            .conditions
            .iter()
            .map(|condition| &*condition.message)
            .find(|message| !message.is_empty());
        let message = message.or(Some(&*status.message)).filter(|message| !message.is_empty());
        (status.phase.as_str().to_owned(), message.unwrap_or_default().to_owned())
    };
    let (before, after) = (describe(old), describe(new));
    (before != after).then_some(after)
}
