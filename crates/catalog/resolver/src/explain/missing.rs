//! Missing content: explains Subscriptions and requirements without candidates, with the nearest
//! content of the catalogs.

use super::names;
use super::node::Node;
use crate::candidates::MAX_LOOKUP_STEPS;
use crate::input::{
    CatalogContent, CatalogKey, CatalogView, Demand, ResolutionInput, Subscription,
};
use crate::predicate::Predicate;
use crate::snapshot::{Entry, Snapshot};
use mainstay_version::Version;
use std::collections::BTreeSet;

/// How many hints one missing package or requirement gets.
const MAX_HINTS: usize = 4;

/// How many steps the search for the content nearest to a requirement takes at most.
const HINT_STEPS: u64 = 200_000;

/// Whether the `installedCSV` of a Subscription exists.
pub(super) fn is_installed(input: &ResolutionInput<'_>, subscription: &Subscription) -> bool {
    input.csvs.iter().any(|csv| csv.name == subscription.installed_csv && !csv.copied)
}

/// The OperatorGroup that excludes the catalogs of the global namespace.
pub(super) fn excluding_group<'w>(input: &'w ResolutionInput<'_>) -> Option<&'w str> {
    input
        .operator_groups
        .iter()
        .find(|operator_group| operator_group.exclude_global)
        .map(|operator_group| operator_group.name.as_str())
}

/// Whether the namespace can use a catalog.
pub(super) fn is_visible(input: &ResolutionInput<'_>, key: &CatalogKey) -> bool {
    key.namespace == input.namespace
        || (excluding_group(input).is_none() && key.namespace == input.global_namespace)
}

/// All catalogs by priority and name; those that the namespace can use come first.
pub(super) fn catalogs<'w, 'a>(input: &'w ResolutionInput<'a>) -> Vec<&'w CatalogView<'a>> {
    let mut all: Vec<_> = input.catalogs.iter().collect();
    all.sort_by(|a, b| {
        (is_visible(input, &b.key).cmp(&is_visible(input, &a.key)))
            .then_with(|| b.priority.cmp(&a.priority))
            .then_with(|| a.key.cmp(&b.key))
    });
    all
}

/// The snapshots of the readable catalogs of a Subscription.
pub(super) fn own_snapshots<'a>(
    input: &ResolutionInput<'a>,
    subscription: &Subscription,
) -> Vec<&'a Snapshot> {
    let any = subscription.catalog == CatalogKey::default();
    catalogs(input)
        .into_iter()
        .filter(|catalog| {
            is_visible(input, &catalog.key) && (any || catalog.key == subscription.catalog)
        })
        .filter_map(|catalog| match catalog.content {
            CatalogContent::Ready(snapshot) => Some(snapshot),
            _ => None,
        })
        .collect()
}

/// The channel, package and catalog that a Subscription asks for.
pub(super) fn requested(input: &ResolutionInput<'_>, subscription: &Subscription) -> String {
    let Subscription { package, channel, catalog, .. } = subscription;
    let channel =
        if channel.is_empty() { String::new() } else { format!("channel `{channel}` of ") };
    let catalog = if *catalog == CatalogKey::default() {
        String::new()
    } else {
        format!(" in catalog {}", names::catalog(input, catalog))
    };
    format!("{channel}package `{package}`{catalog}")
}

/// Why a catalog offers nothing, after its name; none if it has content that the namespace can use.
fn unavailability(input: &ResolutionInput<'_>, catalog: &CatalogView<'_>) -> Option<String> {
    if !is_visible(input, &catalog.key) {
        return Some(match excluding_group(input) {
            Some(group) if catalog.key.namespace == input.global_namespace => format!(
                "is left out by OperatorGroup `{group}`, which excludes the catalogs of namespace \
                 `{}`",
                input.global_namespace
            ),
            _ => format!("cannot be seen from namespace `{}`", input.namespace),
        });
    }
    match &catalog.content {
        CatalogContent::Ready(snapshot) if snapshot.is_empty() => Some("is empty".to_owned()),
        CatalogContent::Ready(_) => None,
        CatalogContent::NotConnected => Some("was not read so far".to_owned()),
        CatalogContent::Failed(reason) => {
            Some(format!("cannot be read: {}", names::shortened(reason)))
        }
    }
}

/// Why a Subscription has no candidates.
pub(super) fn explain_subscription(
    input: &ResolutionInput<'_>,
    subscription: &Subscription,
) -> Vec<Node> {
    let Subscription { package, channel, starting_csv, catalog, .. } = subscription;
    let any = *catalog == CatalogKey::default();
    let views: Vec<_> =
        catalogs(input).into_iter().filter(|view| any || view.key == *catalog).collect();
    if views.is_empty() {
        let text = if any {
            "there is no catalog".to_owned()
        } else {
            let CatalogKey { name, namespace } = catalog;
            format!("there is no catalog `{name}` in namespace `{namespace}`")
        };
        return vec![Node::new(text)];
    }
    // A Subscription without catalog uses all catalogs of the namespace.
    let mut unavailable: Vec<Node> = views
        .iter()
        .filter(|view| !any || is_visible(input, &view.key))
        .filter_map(|view| {
            let reason = unavailability(input, view)?;
            Some(Node::new(format!("catalog {} {reason}", names::catalog(input, &view.key))))
        })
        .collect();
    let snapshots = own_snapshots(input, subscription);
    let place = if any {
        "no catalog".to_owned()
    } else {
        format!("catalog {}", names::catalog(input, catalog))
    };
    if snapshots.iter().all(|snapshot| snapshot.is_empty()) {
        return unavailable;
    }
    unavailable.truncate(MAX_HINTS);
    let entries: Vec<&Entry> = snapshots
        .iter()
        .flat_map(|snapshot| snapshot.of_package(package).iter().map(|at| snapshot.entry(*at).0))
        .collect();
    let has = if any { "has" } else { "has no" };
    let node = if entries.is_empty() {
        let other_catalogs = other_catalogs(input, subscription);
        Node::new(format!("{place} {has} package `{package}`")).because(other_catalogs)
    } else if !channel.is_empty() && entries.iter().all(|entry| *entry.channel != **channel) {
        let channels: BTreeSet<_> =
            entries.iter().map(|entry| (!entry.default_channel, &*entry.channel)).collect();
        let channels: Vec<String> =
            channels.iter().map(|(_, channel)| format!("`{channel}`")).collect();
        Node::new(format!(
            "package `{package}` has no channel `{channel}` in {place}, only {}",
            names::some(&channels, "and")
        ))
    } else {
        let other: BTreeSet<&str> = entries
            .iter()
            .filter(|entry| *entry.name == **starting_csv)
            .map(|entry| &*entry.channel)
            .collect();
        let other: Vec<String> = other.iter().map(|channel| format!("`{channel}`")).collect();
        let versions = versions(
            entries
                .iter()
                .filter(|entry| channel.is_empty() || *entry.channel == **channel)
                .copied(),
        );
        let requested = requested(input, subscription);
        let hint = if other.is_empty() {
            format!("it has {versions}")
        } else {
            format!("that is in channel {}", names::some(&other, "and"))
        };
        let origin =
            if subscription.restores { "which was installed" } else { "its `spec.startingCSV`" };
        Node::new(format!("there is no `{starting_csv}`, {origin}, in {requested}; {hint}"))
    };
    std::iter::once(node).chain(unavailable).collect()
}

/// Other catalogs that have the package of a Subscription.
fn other_catalogs(input: &ResolutionInput<'_>, subscription: &Subscription) -> Vec<Node> {
    let mut nodes = Vec::new();
    for catalog in catalogs(input).into_iter().filter(|catalog| catalog.key != subscription.catalog)
    {
        let CatalogContent::Ready(snapshot) = catalog.content else { continue };
        if snapshot.of_package(&subscription.package).is_empty() {
            continue;
        }
        let name = names::catalog(input, &catalog.key);
        nodes.push(Node::new(match unavailability(input, catalog) {
            None => format!("catalog {name} has it"),
            Some(reason) => format!("catalog {name} has it, but {reason}"),
        }));
    }
    nodes.truncate(MAX_HINTS);
    nodes
}

/// `1.2.0`, `versions 1.0.0 and 1.2.0` or `12 versions from 1.0.0 to 4.0.0`.
fn versions<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> String {
    let mut versions = BTreeSet::new();
    let mut names: BTreeSet<&str> = BTreeSet::new();
    for entry in entries {
        names.insert(&entry.name);
        versions.extend(entry.version.clone());
    }
    let all: Vec<&Version> = versions.iter().collect();
    match all.as_slice() {
        [] => {
            let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
            names::some(&names, "and")
        }
        [one] => format!("version {one}"),
        few if few.len() <= 3 => {
            let few: Vec<String> = few.iter().map(ToString::to_string).collect();
            format!("versions {}", names::list(&few, "and"))
        }
        [first, .., last] => format!("{} versions from {first} to {last}", all.len()),
    }
}

/// The predicate of a demand.
pub(super) fn demand_predicate(demand: &Demand) -> Predicate {
    let package = Predicate::Package(demand.package.clone());
    match &demand.range {
        Some(range) => Predicate::All(vec![package, Predicate::InRange(range.clone())]),
        None => package,
    }
}

/// The content of the catalogs that is nearest to a requirement that nothing meets.
pub(super) fn explain_requirement(
    input: &ResolutionInput<'_>,
    requirement: &Predicate,
) -> Vec<Node> {
    let mut nodes = Vec::new();
    if let Some(range) = names::impossible_range(requirement) {
        return vec![Node::new(format!("no version at all is in the range `{range}`"))];
    }
    // Costly conditions get only a part of the steps of a lookup.
    let mut steps = MAX_LOOKUP_STEPS - HINT_STEPS;
    for catalog in catalogs(input) {
        let name = names::catalog(input, &catalog.key);
        let CatalogContent::Ready(snapshot) = catalog.content else {
            if is_visible(input, &catalog.key) {
                nodes.extend(
                    unavailability(input, catalog)
                        .map(|reason| format!("catalog {name}, which may offer it, {reason}")),
                );
            }
            continue;
        };
        let matching = snapshot.matching(requirement, &mut steps);
        let first = matching.into_iter().min_by_key(|at| {
            let entry = snapshot.entry(*at).0;
            (!entry.default_channel, &entry.package, &entry.channel, &entry.name)
        });
        if let Some(first) = first {
            let bundle = &snapshot.entry(first).0.name;
            let bundle = format!("`{bundle}` in catalog {name}");
            let reason =
                unavailability(input, catalog).map(|reason| format!("the catalog {reason}"));
            let reason = reason.unwrap_or_else(|| exclusion(snapshot, first));
            nodes.push(format!("{bundle} would meet it, but {reason}"));
            continue;
        }
        if is_visible(input, &catalog.key) {
            nodes.extend(
                nearest_content(snapshot, requirement)
                    .map(|hint| format!("catalog {name} has {hint}")),
            );
        }
    }
    nodes.dedup();
    nodes.truncate(MAX_HINTS);
    nodes.into_iter().map(Node::new).collect()
}

/// Why an entry of a readable catalog is no candidate.
fn exclusion(snapshot: &Snapshot, at: u32) -> String {
    let entry = snapshot.entry(at).0;
    let channel = format!("channel `{}`", entry.channel);
    if snapshot.chain(at).is_err() {
        return format!("the entries of {channel} have no order");
    }
    let others = snapshot.of_package(&entry.package).iter().map(|other| snapshot.entry(*other).0);
    let skipping = others
        .filter(|other| other.channel == entry.channel && other.skips.contains(&entry.name))
        .map(|other| &*other.name)
        .min();
    match skipping {
        Some(other) => format!("`{other}` skips it in {channel}"),
        None => format!("no chain of `replaces` leads to it in {channel}"),
    }
}

/// The content of a catalog that is nearest to a requirement.
fn nearest_content(snapshot: &Snapshot, requirement: &Predicate) -> Option<String> {
    match requirement {
        Predicate::All(all) => {
            let package = all.iter().find_map(|predicate| match predicate {
                Predicate::Package(package) => Some(package),
                _ => None,
            })?;
            let entries: Vec<&Entry> =
                snapshot.of_package(package).iter().map(|at| snapshot.entry(*at).0).collect();
            if entries.is_empty() {
                return nearest_content(snapshot, &Predicate::Package(package.clone()));
            }
            Some(format!("package `{package}` in {}", versions(entries)))
        }
        Predicate::WithMessage { inner, .. } => nearest_content(snapshot, inner),
        Predicate::Package(package) => {
            let nearest: Vec<String> = names::nearest(package, snapshot.package_names())
                .into_iter()
                .map(|name| format!("`{name}`"))
                .collect();
            match nearest.as_slice() {
                [] => None,
                [one] => Some(format!("package {one}")),
                some => Some(format!("packages {}", names::list(some, "and"))),
            }
        }
        Predicate::Api(api) => {
            let mut nearest: BTreeSet<(&str, &str)> = BTreeSet::new();
            for entry in &snapshot.entries {
                for other in &snapshot.facts[entry.facts].apis {
                    if other.kind == api.kind && other.group == api.group {
                        nearest.insert((&other.version, &entry.package));
                    }
                }
            }
            let versions: BTreeSet<&str> = nearest.iter().map(|(version, _)| *version).collect();
            let versions: Vec<String> =
                versions.iter().map(|version| format!("`{version}`")).collect();
            let packages: BTreeSet<&str> = nearest.iter().map(|(_, package)| *package).collect();
            let packages: Vec<String> =
                packages.iter().map(|package| format!("`{package}`")).collect();
            (!nearest.is_empty()).then(|| {
                format!(
                    "`{}` of group `{}` in version {}, from package {}",
                    api.kind,
                    api.group,
                    names::some(&versions, "and"),
                    names::some(&packages, "or")
                )
            })
        }
        _ => None,
    }
}
