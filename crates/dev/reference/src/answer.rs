//! Outcome lists of the reference resolver: installations and Subscriptions from the chosen
//! variables.

use crate::candidates::is_about;
use crate::rules::{InputRules, Variable};
use mainstay_resolver::{
    CatalogKey, ChosenBundle, NewInstall, NewSubscription, Resolution, Subscription,
    UpdatedSubscription,
};
use std::collections::BTreeSet;

/// The Subscriptions whose package, channel and catalog are those of a catalog entry.
pub(crate) fn subscriptions_for<'a>(
    rules: &InputRules<'a>,
    variable: usize,
) -> Vec<&'a Subscription> {
    let Variable::Entry(entry) = rules.variables[variable] else { return Vec::new() };
    let entry = &rules.entries[entry];
    if entry.source == 0 {
        return Vec::new();
    }
    let matches_subscription = |subscription: &&Subscription| {
        subscription.package == entry.package
            && ["", &entry.channel].contains(&&*subscription.channel)
            && is_about(subscription, &rules.sources[entry.source].key)
    };
    rules.subscriptions.iter().copied().filter(matches_subscription).collect()
}

/// Whether a variable is an entry of the package of a blocked Subscription, without another
/// Subscription: then it must not be installed as a dependency.
pub(crate) fn is_claimed(
    rules: &InputRules<'_>,
    variable: usize,
    blocked: &BTreeSet<String>,
) -> bool {
    let Variable::Entry(entry) = rules.variables[variable] else { return false };
    let entry = &rules.entries[entry];
    let mut claims =
        rules.subscriptions.iter().filter(|subscription| subscription.package == entry.package);
    entry.source != 0
        && claims.any(|subscription| blocked.contains(&subscription.name))
        && subscriptions_for(rules, variable)
            .iter()
            .all(|subscription| blocked.contains(&subscription.name))
}

/// Whether an entry exists and is the `currentCSV` of all its Subscriptions, of which it has at
/// least one.
fn is_current(rules: &InputRules<'_>, variable: usize) -> bool {
    let Variable::Entry(entry) = rules.variables[variable] else { return false };
    let name = &rules.entries[entry].name;
    let subscriptions = subscriptions_for(rules, variable);
    !subscriptions.is_empty()
        && subscriptions.iter().all(|subscription| subscription.current_csv == *name)
        && rules.input.csvs.iter().any(|csv| csv.name == *name)
}

/// Whether an entry must be written into an InstallPlan, but its properties cannot be serialized.
pub(crate) fn cannot_be_serialized(rules: &InputRules<'_>, variable: usize) -> bool {
    let Variable::Entry(entry) = rules.variables[variable] else { return false };
    let entry = &rules.entries[entry];
    entry.source != 0 && entry.properties.has_invalid_json && !is_current(rules, variable)
}

/// The outcome of the chosen variables, without failures; `blocked` are the blocked Subscriptions.
pub(crate) fn outcome(
    rules: &InputRules<'_>,
    chosen: &[bool],
    blocked: &BTreeSet<String>,
) -> Resolution {
    let mut variables: Vec<(ChosenBundle, usize)> = Vec::new();
    for (variable, _) in chosen.iter().enumerate().filter(|(_, chosen)| **chosen) {
        let Variable::Entry(entry) = rules.variables[variable] else { continue };
        let entry = &rules.entries[entry];
        if entry.source == 0 {
            continue;
        }
        let chosen = ChosenBundle {
            catalog: rules.sources[entry.source].key.clone(),
            package: entry.package.clone(),
            channel: entry.channel.clone(),
            name: entry.name.clone(),
            version: entry.version.as_ref().map(ToString::to_string),
            replaces: rules.replaces.get(&variable).cloned().or_else(|| entry.replaces.clone()),
        };
        variables.push((chosen, variable));
    }
    variables.sort_by_key(|(chosen, _)| {
        (chosen.package.clone(), chosen.name.clone(), chosen.catalog.clone())
    });
    let mut outcome = Resolution::default();
    for (at, (chosen, variable)) in variables.into_iter().enumerate() {
        outcome.resolved.push(chosen.clone());
        if is_current(rules, variable) {
            continue;
        }
        let mut subscriptions = subscriptions_for(rules, variable);
        subscriptions.retain(|subscription| !blocked.contains(&subscription.name));
        let names = subscriptions.iter().map(|subscription| subscription.name.clone()).collect();
        outcome.installs.push(NewInstall { chosen: at, subscriptions: names, part: 0 });
        if subscriptions.is_empty() {
            let CatalogKey { name, namespace } = &chosen.catalog;
            outcome.new_subscriptions.push(NewSubscription {
                name: format!("{}-{}-{name}-{namespace}", chosen.package, chosen.channel),
                package: chosen.package.clone(),
                channel: chosen.channel.clone(),
                catalog: chosen.catalog.clone(),
                starting_csv: chosen.name.clone(),
            });
        }
        let outdated = subscriptions
            .into_iter()
            .filter(|subscription| subscription.current_csv != chosen.name);
        outcome.updated_subscriptions.extend(outdated.map(|subscription| UpdatedSubscription {
            name: subscription.name.clone(),
            current_csv: chosen.name.clone(),
        }));
    }
    outcome.new_subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
    outcome.updated_subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
    outcome
}
