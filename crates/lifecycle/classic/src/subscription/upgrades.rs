//! Upgrades in progress: leaves replaced CSVs and their packages out of a resolution.
//!
//! During an upgrade the old and the new CSV both exist, and the resolver would see a
//! contradiction. So the replaced CSV does not count as installed, and the resolver chooses nothing
//! of its package until it is gone. Other packages of the namespace are resolved as usual.

use crate::fields;
use mainstay_api::{CsvPhase, Subscription};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The CSVs of a namespace by name.
type Csvs = BTreeMap<String, Arc<fields::Csv>>;

/// The CSVs and packages of a namespace during its upgrades.
#[derive(Debug, Default)]
pub(super) struct UpgradesInProgress {
    /// The CSVs that count as installed.
    pub(super) csvs: Csvs,
    /// The packages that keep their CSVs for now, with the reason.
    pub(super) pinned: BTreeMap<String, String>,
}

/// Finds the CSVs that count as installed, and the packages that wait for an upgrade.
///
/// With `fail_forward`, a CSV that failed during an upgrade may itself be replaced.
pub(super) fn find(
    csvs: &Csvs,
    subscriptions: &[Subscription],
    fail_forward: bool,
) -> UpgradesInProgress {
    let own: BTreeMap<&str, &fields::Csv> = csvs
        .iter()
        .filter(|(_, csv)| !csv.is_copy())
        .map(|(name, csv)| (name.as_str(), &**csv))
        .collect();
    let successors: BTreeMap<&str, &str> = own
        .iter()
        .filter(|(name, csv)| csv.replaces != **name && own.contains_key(csv.replaces.as_str()))
        .map(|(name, csv)| (csv.replaces.as_str(), *name))
        .collect();
    let mut upgrades = UpgradesInProgress::default();
    for (&name, csv) in &own {
        let counts = match newest_successor(name, &successors) {
            Some(end) if end != name => {
                let failed = own.get(end).is_some_and(|csv| csv.phase == CsvPhase::Failed);
                if !(fail_forward && failed) {
                    let why = format!("{name} is being replaced by {end}");
                    upgrades.pin(name, csv, subscriptions, &why);
                    if let Some(csv) = own.get(end) {
                        upgrades.pin(end, csv, subscriptions, &why);
                    }
                }
                false
            }
            // A terminating CSV without a Subscription.
            _ if csv.deleting && subscriptions_of(name, subscriptions).next().is_none() => {
                !upgrades.pin(name, csv, subscriptions, &format!("{name} is being deleted"))
            }
            _ => true,
        };
        if counts && let Some(csv) = csvs.get(name) {
            upgrades.csvs.insert(name.to_owned(), Arc::clone(csv));
        }
    }
    upgrades
}

/// The newest CSV that replaces a CSV, directly or not; the CSV itself if none does. A circle has
/// none.
fn newest_successor<'a>(name: &'a str, successors: &BTreeMap<&'a str, &'a str>) -> Option<&'a str> {
    let mut visited = BTreeSet::new();
    let mut at = name;
    while let Some(next) = successors.get(at) {
        if !visited.insert(at) {
            return None;
        }
        at = next;
    }
    Some(at)
}

/// The Subscriptions that installed or wait for a CSV.
fn subscriptions_of<'a>(
    csv: &'a str,
    subscriptions: &'a [Subscription],
) -> impl Iterator<Item = &'a Subscription> {
    subscriptions.iter().filter(move |subscription| {
        subscription.status.installed_csv == csv || subscription.status.current_csv == csv
    })
}

impl UpgradesInProgress {
    /// Pins the packages of a CSV. Returns whether it has any known package.
    fn pin(
        &mut self,
        name: &str,
        csv: &fields::Csv,
        subscriptions: &[Subscription],
        why: &str,
    ) -> bool {
        let mut packages: BTreeSet<String> = subscriptions_of(name, subscriptions)
            .map(|subscription| subscription.spec.package.clone())
            .collect();
        packages.extend(csv.package());
        let known = !packages.is_empty();
        for package in packages {
            self.pinned.entry(package).or_insert_with(|| why.to_owned());
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(replaces: &str, phase: CsvPhase) -> fields::Csv {
        let properties = r#"{"properties":[{"type":"olm.package","value":{"packageName":"a"}}]}"#;
        fields::Csv {
            replaces: replaces.to_owned(),
            phase,
            properties: Some(properties.to_owned()),
            ..fields::Csv::default()
        }
    }

    fn find_upgrades(
        csvs: Vec<(&str, fields::Csv)>,
        installed: &str,
        fail_forward: bool,
    ) -> (Vec<String>, Vec<String>) {
        let mut subscription = Subscription::new("ns", "s");
        subscription.spec.package = "p".to_owned();
        subscription.status.installed_csv = installed.to_owned();
        let csvs = csvs.into_iter().map(|(name, csv)| (name.to_owned(), Arc::new(csv))).collect();
        let upgrades = find(&csvs, &[subscription], fail_forward);
        let pinned = upgrades.pinned.iter().map(|(package, why)| format!("{package}: {why}"));
        (upgrades.csvs.into_keys().collect(), pinned.collect())
    }

    #[test]
    fn a_replaced_csv_is_not_installed_and_its_packages_are_pinned() {
        use CsvPhase::{Failed, Installing, Replacing, Succeeded};
        let chain = || {
            vec![
                ("a.v1", csv("", Replacing)),
                ("a.v2", csv("a.v1", Replacing)),
                ("a.v3", csv("a.v2", Installing)),
                ("b.v1", csv("", Succeeded)),
            ]
        };
        let (counted, pinned) = find_upgrades(chain(), "a.v3", true);
        assert_eq!(counted, ["a.v3", "b.v1"]);
        assert_eq!(
            pinned,
            ["a: a.v1 is being replaced by a.v3", "p: a.v1 is being replaced by a.v3"]
        );
        let failed = || vec![("a.v1", csv("", Replacing)), ("a.v2", csv("a.v1", Failed))];
        let (counted, pinned) = find_upgrades(failed(), "a.v2", false);
        assert_eq!((counted.len(), pinned.len()), (1, 2));
        let (counted, pinned) = find_upgrades(failed(), "a.v2", true);
        assert_eq!((counted, pinned), (vec!["a.v2".to_owned()], vec![]), "it may be replaced");
    }

    #[test]
    fn csvs_in_a_circle_or_alone_all_count_as_installed() {
        use CsvPhase::Succeeded;
        let (counted, pinned) =
            find_upgrades(vec![("a", csv("b", Succeeded)), ("b", csv("a", Succeeded))], "", false);
        assert_eq!((counted.len(), pinned.len()), (2, 0));
        let (counted, _) = find_upgrades(vec![("a", csv("a", Succeeded))], "", false);
        assert_eq!(counted, ["a"]);
        let copy = fields::Csv { copied_from: Some("x".to_owned()), ..csv("", Succeeded) };
        assert!(find_upgrades(vec![("a", copy)], "", false).0.is_empty());
    }

    #[test]
    fn a_terminating_csv_without_subscription_is_not_installed() {
        let deleting = || fields::Csv { deleting: true, ..csv("", CsvPhase::Succeeded) };
        let (counted, pinned) = find_upgrades(vec![("a.v1", deleting())], "", false);
        assert_eq!((counted.len(), pinned), (0, vec!["a: a.v1 is being deleted".to_owned()]));
        let (counted, pinned) = find_upgrades(vec![("a.v1", deleting())], "a.v1", false);
        assert_eq!((counted.len(), pinned.len()), (1, 0), "its successor may come meanwhile");
        let unknown = fields::Csv { properties: None, ..deleting() };
        assert_eq!(find_upgrades(vec![("a.v1", unknown)], "", false).0, ["a.v1"]);
    }
}
