//! What Subscriptions and InstallPlans have come to, as words for the decision log.

use mainstay_api::{InstallPlanStatus, SubscriptionStatus};

/// What a Subscription has come to, and why, if it is something else than before.
pub(crate) fn subscription_change(
    old: &SubscriptionStatus,
    new: &SubscriptionStatus,
) -> Option<(String, String)> {
    let told = |it: &SubscriptionStatus| {
        let plan = it.install_plan_ref.as_ref().map_or("", |it| &*it.name);
        let words = [
            ("", it.state.as_str()),
            ("current ", &*it.current_csv),
            ("installed ", &*it.installed_csv),
            ("plan ", plan),
        ];
        let words = words.iter().filter(|(_, word)| !word.is_empty());
        let words: Vec<String> = words.map(|(what, word)| format!("{what}{word}")).collect();
        let conditions = it.conditions.iter().filter(|it| it.status.as_str() == "True");
        let why: Vec<String> = conditions
            .map(|it| match &*it.message {
                "" => format!("{}: {}", it.kind.as_str(), it.reason.as_str()),
                text => format!("{}: {text}", it.kind.as_str()),
            })
            .collect();
        (words.join(", "), why.join("; "))
    };
    let (before, after) = (told(old), told(new));
    (before != after).then_some(after)
}

/// What an InstallPlan has come to, and why, if it is something else than before.
pub(crate) fn install_plan_change(
    old: &InstallPlanStatus,
    new: &InstallPlanStatus,
) -> Option<(String, String)> {
    let told = |it: &InstallPlanStatus| {
        let message = it.conditions.iter().map(|it| &*it.message).find(|it| !it.is_empty());
        let message = message.or(Some(&*it.message)).filter(|it| !it.is_empty());
        (it.phase.as_str().to_owned(), message.unwrap_or_default().to_owned())
    };
    let (before, after) = (told(old), told(new));
    (before != after).then_some(after)
}
