//! The results page (`docs/extension-walks.md`).

use super::{ExtensionUpgradePath, ExtensionWalk, Refusal};
use crate::PackageUnderTest;
use crate::table::{distinct_catalogs, outcome_section, table_row, truncate};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The outcome of a walk, as the page counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Reached,
    OneVersion,
    Refused,
    Unreadable,
    Fails,
}

impl Outcome {
    const ALL: [Self; 5] =
        [Self::Reached, Self::OneVersion, Self::Refused, Self::Unreadable, Self::Fails];

    const fn name(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::OneVersion => "one version",
            Self::Refused => "refused",
            Self::Unreadable => "unreadable",
            Self::Fails => "fails",
        }
    }

    const fn explanation(self) -> &'static str {
        match self {
            Self::Reached => "the last version of the upgrade path was installed",
            Self::OneVersion => {
                "no update leads from one installable version to another; the newest one was installed"
            }
            Self::Refused => "OLM v1 refuses all versions, each for the right reason",
            Self::Unreadable => "no bundle of the package can be read, so the catalog lacks it",
            Self::Fails => "something differs from what is expected",
        }
    }

    fn of(walk: &ExtensionWalk) -> Self {
        let expected = walk.path.iter().flat_map(ExtensionUpgradePath::bundles);
        if !walk.findings.is_empty() || !walk.installed.iter().eq(expected) {
            return Self::Fails;
        }
        match (walk.installed.len(), walk.refused.len()) {
            (0, 0) => Self::Unreadable,
            (0, _) => Self::Refused,
            (1, _) => Self::OneVersion,
            _ => Self::Reached,
        }
    }
}

const INTRODUCTION: &str = "# Walks of published packages with OLM v1

*Written by `mainstay-conformance walk --extensions --table docs/extension-walks.md`; do not edit.*

This page shows what happened when each package of two published sets of operators was installed as a ClusterExtension, upgraded and
deleted. [walks.md](walks.md) describes the two sets, and shows the same packages with OLM classic.

Each package has two clusters of its own, one for each [trust mode](extensions.md#with-whose-permissions-objects-are-written), with a
ClusterCatalog and images of its bundles. They have the kinds `ServiceMonitor` and `PrometheusRule`, unless the package contains them, and
no cert-manager. On each cluster:

1. Each version that does not meet a rule of OLM v1 is requested. It must be refused, and the condition must name this rule. Then the
   ClusterExtension is deleted.
2. The versions of an upgrade path are installed one after the other, by `spec.source.catalog.version`. The path leads from the oldest
   installable version to the newest reachable one, with as many updates as the catalog allows.
3. Where an update may break custom resources, it must be refused first. Then it is installed without this check.
4. In the mode `service-account`, the account has exactly the permissions of `mainstay extension rbac` for the installed version. An update
   that needs more must be refused, with a list of what is missing. Then the account gets the permissions for both versions.
5. Without a requested version, the last version stays, or the next one is refused.
6. The cluster has exactly the objects of the last version. Custom resources are created from the examples.
7. The ClusterExtension is deleted. All objects are compared with those before: none remains, none is missing, none is changed.

Both modes must have the same result.
";

/// Renders the page; `walks` is in the order of `items`.
pub fn extension_table(items: &[PackageUnderTest], walks: &[ExtensionWalk]) -> String {
    let mut page = String::from(INTRODUCTION);
    let outcomes: Vec<(&str, &str)> =
        walks.iter().map(|walk| (&*walk.catalog, Outcome::of(walk).name())).collect();
    let possible = Outcome::ALL.map(|outcome| (outcome.name(), outcome.explanation()));
    page += &outcome_section(&outcomes, &possible);
    page += &totals(walks);
    for catalog in distinct_catalogs(&outcomes) {
        let _ = write!(
            page,
            "\n## `{catalog}`\n\n| Package | From | To | Updates | Examples | Outcome | Reason and remarks |\n\
             |---|---|---|---:|---:|---|---|\n"
        );
        for (item, walk) in items.iter().zip(walks).filter(|(_, walk)| walk.catalog == catalog) {
            page += &row(item, walk);
        }
    }
    page
}

/// The totals of all walks, and how many versions do not meet each rule.
fn totals(walks: &[ExtensionWalk]) -> String {
    let sum = |of: &dyn Fn(&ExtensionWalk) -> usize| walks.iter().map(of).sum::<usize>();
    let mut text = format!(
        "\nIn each mode, {} versions were installed, {} of them by updates, and {} custom resources were created.\n\
         {} updates were refused because they may break custom resources.\n\n| Refused because of | Packages | Versions |\n|---|---:|---:|\n",
        sum(&|walk| walk.installed.len()),
        sum(&|walk| walk.installed.len().saturating_sub(1)),
        sum(&|walk| walk.examples),
        sum(&|walk| walk.unsafe_updates.len()),
    );
    let mut rules: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for walk in walks {
        let mut own: BTreeMap<&str, usize> = BTreeMap::new();
        for refusal in walk.refused.values() {
            *own.entry(refusal.rule()).or_default() += 1;
        }
        for (rule, versions) in own {
            let (packages, all) = rules.entry(rule).or_default();
            *packages += 1;
            *all += versions;
        }
    }
    for (rule, (packages, versions)) in rules {
        text += &table_row(&[rule.to_owned(), packages.to_string(), versions.to_string()]);
    }
    text
}

fn row(item: &PackageUnderTest, walk: &ExtensionWalk) -> String {
    let version = |name: Option<&String>| name.map_or(String::new(), |name| item.version(name));
    table_row(&[
        format!("`{}`", item.package),
        version(walk.installed.first()),
        version(walk.installed.last()),
        walk.installed.len().saturating_sub(1).to_string(),
        walk.examples.to_string(),
        Outcome::of(walk).name().to_owned(),
        remarks(item, walk).join("; "),
    ])
}

fn remarks(item: &PackageUnderTest, walk: &ExtensionWalk) -> Vec<String> {
    let findings = walk.findings.iter().map(|finding| format!("**{}**", truncate(finding)));
    let mut all: Vec<String> = findings.collect();
    let mut rules: BTreeMap<&Refusal, Vec<&String>> = BTreeMap::new();
    for (name, refusal) in &walk.refused {
        rules.entry(refusal).or_default().push(name);
    }
    for (rule, names) in rules {
        all.push(format!("{} refused: {rule}", versions(item, &names)));
    }
    for update in &walk.unsafe_updates {
        let [from, to] = [&update.from, &update.to].map(|name| item.version(name));
        let crds: Vec<String> = update.crds.iter().map(|name| format!("`{name}`")).collect();
        all.push(format!("{from} → {to} may break {}", crds.join(", ")));
    }
    if let Some(path) = &walk.path {
        if path.end() != path.newest {
            let newest = item.version(&path.newest);
            all.push(format!("no update leads to {newest}, the newest installable version"));
        }
        let dead_ends: Vec<&String> = path.dead_ends.iter().collect();
        if !dead_ends.is_empty() {
            all.push(format!(
                "no path leads from {} to the last version",
                versions(item, &dead_ends)
            ));
        }
    }
    if !item.unreadable().is_empty() {
        all.push(format!("cannot be read: {}", truncate(&item.unreadable().join("; "))));
    }
    all
}

/// The versions of bundles: one, two, or the first and the last one with their number.
fn versions(item: &PackageUnderTest, names: &[&String]) -> String {
    let order = |name: &str| {
        item.loaded_package().and_then(|package| Some(package.bundle(name)?.version.clone()))
    };
    let mut names = names.to_vec();
    names.sort_by_key(|name| order(name));
    let texts: Vec<String> = names.iter().map(|name| item.version(name)).collect();
    match texts.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [one, other] => format!("{one} and {other}"),
        [first, .., last] => format!("{} versions, {first} to {last},", texts.len()),
    }
}
