//! From chosen things to what is told: the lists of an outcome.

use crate::rules::{Rules, Thing};
use mainstay_resolver::{
    CatalogKey, Chosen, Install, NewSubscription, Outcome, Subscription, UpdatedSubscription, World,
};

/// The lists of an outcome that follow from the things that were chosen; its failures are empty.
pub(crate) fn outcome(world: &World<'_>, rules: &Rules<'_>, chosen: &[bool]) -> Outcome {
    let mut outcome = Outcome::default();
    for (thing, _) in chosen.iter().enumerate().filter(|(_, chosen)| **chosen) {
        let Thing::Entry(entry) = rules.things[thing] else { continue };
        let entry = &rules.entries[entry];
        if entry.source == 0 {
            continue;
        }
        outcome.resolved.push(Chosen {
            catalog: rules.sources[entry.source].key.clone(),
            package: entry.package.clone(),
            channel: entry.channel.clone(),
            name: entry.name.clone(),
            version: entry.version.as_ref().map(ToString::to_string),
            replaces: rules.replaces.get(&thing).cloned().or_else(|| entry.replaces.clone()),
        });
    }
    outcome.resolved.sort_by_key(|it| (it.package.clone(), it.name.clone(), it.catalog.clone()));
    for (at, it) in outcome.resolved.iter().enumerate() {
        let asks = |subscription: &&Subscription| {
            subscription.package == it.package
                && ["", &it.channel].contains(&&*subscription.channel)
                && (subscription.catalog == it.catalog
                    || subscription.catalog == CatalogKey::default())
        };
        let asking: Vec<&Subscription> = rules.subscriptions.iter().copied().filter(asks).collect();
        let exists = world.csvs.iter().any(|csv| csv.name == it.name);
        let behind: Vec<&Subscription> =
            asking.iter().copied().filter(|asking| asking.current_csv != it.name).collect();
        if !asking.is_empty() && behind.is_empty() && exists {
            continue;
        }
        let names = asking.iter().map(|asking| asking.name.clone()).collect();
        outcome.installs.push(Install { chosen: at, subscriptions: names });
        if asking.is_empty() {
            let CatalogKey { name, namespace } = &it.catalog;
            outcome.new_subscriptions.push(NewSubscription {
                name: format!("{}-{}-{name}-{namespace}", it.package, it.channel),
                package: it.package.clone(),
                channel: it.channel.clone(),
                catalog: it.catalog.clone(),
                starting_csv: it.name.clone(),
            });
        }
        outcome.updated_subscriptions.extend(behind.into_iter().map(|behind| {
            UpdatedSubscription { name: behind.name.clone(), current_csv: it.name.clone() }
        }));
    }
    outcome.new_subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
    outcome.updated_subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
    outcome
}
