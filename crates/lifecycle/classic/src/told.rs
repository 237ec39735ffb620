//! The log of decisions: one line for each, when what it asks for is written.
//!
//! A line says of which kind the object is, which one, what was decided and why. Nothing is said of a
//! look that finds everything in order, so a settled cluster is silent.

use mainstay_api::{InstallPlanStatus, SubscriptionStatus};
use std::fmt::Display;

/// The target of these lines, for filters.
pub const DECISIONS: &str = "mainstay::decision";

/// Says what was decided about an object.
pub(crate) fn decided(kind: &str, object: impl Display, decision: impl Display, why: &str) {
    tracing::info!(target: "mainstay::decision", kind, %object, %decision, why);
}

/// What a Subscription has come to, and why, if it is something else than before.
pub(crate) fn subscription(
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

/// What a plan has come to, and why, if it is something else than before.
pub(crate) fn plan(old: &InstallPlanStatus, new: &InstallPlanStatus) -> Option<(String, String)> {
    let told = |it: &InstallPlanStatus| {
        let message = it.conditions.iter().map(|it| &*it.message).find(|it| !it.is_empty());
        let message = message.or(Some(&*it.message)).filter(|it| !it.is_empty());
        (it.phase.as_str().to_owned(), message.unwrap_or_default().to_owned())
    };
    let (before, after) = (told(old), told(new));
    (before != after).then_some(after)
}
