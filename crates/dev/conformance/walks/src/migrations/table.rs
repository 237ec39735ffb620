//! The results page (`docs/migration-walks.md`).

use super::{MigrationWalk, Obstacle, comparison};
use crate::PackageUnderTest;
use crate::table::{distinct_catalogs, outcome_section, table_row, truncate};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The outcome of a walk, as the page counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    RoundTrip,
    Refused,
    NotInstalled,
    Unreadable,
    Fails,
}

impl Outcome {
    const ALL: [Self; 5] =
        [Self::RoundTrip, Self::Refused, Self::NotInstalled, Self::Unreadable, Self::Fails];

    const fn name(self) -> &'static str {
        match self {
            Self::RoundTrip => "round trip",
            Self::Refused => "refused",
            Self::NotInstalled => "not installed",
            Self::Unreadable => "unreadable",
            Self::Fails => "fails",
        }
    }

    const fn explanation(self) -> &'static str {
        match self {
            Self::RoundTrip => "OLM classic → OLM v1 → OLM classic → OLM v1, then deleted",
            Self::Refused => "the check refuses the conversion, for the right reasons",
            Self::NotInstalled => "OLM classic does not install it on this cluster",
            Self::Unreadable => "no bundle of the package can be read, so the catalog lacks it",
            Self::Fails => "something differs from what is expected",
        }
    }

    fn of(walk: &MigrationWalk) -> Self {
        match (&walk.installed, &walk.not_installed) {
            _ if !walk.findings.is_empty() => Self::Fails,
            (None, None) => Self::Unreadable,
            (None, Some(_)) => Self::NotInstalled,
            (Some(_), _) if walk.completed_round_trip => Self::RoundTrip,
            (Some(_), _) => Self::Refused,
        }
    }
}

const TITLE: &str = "# Walks of published packages from OLM classic to OLM v1 and back\n";

const INTRODUCTION: &str = "
*Written by `mainstay-conformance walk --migrations --table docs/migration-walks.md`; do not edit.*

This page shows what happened when published packages were moved from OLM classic to OLM v1 and back, with
[`mainstay extension migrate`](extensions.md#from-olm-classic-to-olm-v1). [walks.md](walks.md) describes the catalogs.

Each package has a cluster of its own, with the controllers of both systems, and with a CatalogSource and a ClusterCatalog of the same
content. It has the kinds `ServiceMonitor` and `PrometheusRule`, unless the package contains them.

1. OLM classic installs the newest version of the [upgrade path](walks.md), for all namespaces if the version supports that. Custom
   resources are created from the examples.
2. `migrate check` must report exactly the obstacles that follow from the bundle. Where they cannot be removed, `migrate convert` must
   refuse, and nothing in the cluster may change.
3. Where the operator serves webhooks, the same is tried without cert-manager. Then the kinds of cert-manager are created, and a stand-in
   issues certificates.
4. `migrate convert`: the ClusterExtension has the same version, and OLM classic has no Subscription and no ClusterServiceVersion.
5. `migrate rollback`: the ClusterServiceVersion has succeeded, the Subscription is `AtLatestKnown`, and all objects are as in step 1.
6. `migrate convert` and `migrate cleanup`. Then the ClusterExtension is deleted, and nothing is left.
7. Where the path has an older version that can be converted, OLM classic installs it with manual approval. It is converted, and then
   upgraded by its ClusterExtension to the newest version.

After each step, all objects of the cluster are compared with those before. Objects that both systems have must be the same ones, by their
uid: Deployments, ReplicaSets and pods, CustomResourceDefinitions, custom resources, ServiceAccounts, and so on. What is different falls under one of these exceptions:

";

/// Renders the page; `walks` is in the order of `items`, and `published` is the number of packages of the
/// published catalogs, if known.
pub fn migration_table(
    items: &[PackageUnderTest],
    walks: &[MigrationWalk],
    published: Option<usize>,
) -> String {
    let mut page = String::from(TITLE);
    page += &incompleteness(walks.len(), published);
    page += INTRODUCTION;
    for (name, why) in comparison::exceptions() {
        let _ = writeln!(page, "* *{name}*: {why}.");
    }
    let outcomes: Vec<(&str, &str)> =
        walks.iter().map(|walk| (&*walk.catalog, Outcome::of(walk).name())).collect();
    let possible = Outcome::ALL.map(|outcome| (outcome.name(), outcome.explanation()));
    page += &outcome_section(&outcomes, &possible);
    page += &totals(walks);
    for catalog in distinct_catalogs(&outcomes) {
        let _ = write!(
            page,
            "\n## `{catalog}`\n\n| Package | Version | Objects | Examples | Upgraded from | Outcome | Reason and remarks |\n\
             |---|---|---:|---:|---|---|---|\n"
        );
        for (item, walk) in items.iter().zip(walks).filter(|(_, walk)| walk.catalog == catalog) {
            page += &row(item, walk);
        }
    }
    page
}

/// Says that packages are missing; empty if none is.
fn incompleteness(walked: usize, published: Option<usize>) -> String {
    match published {
        Some(published) if walked >= published => String::new(),
        Some(published) => format!("\n**Incomplete: {walked} of {published} packages.**\n"),
        None => {
            format!("\n**Incomplete: {walked} packages, not those of the published catalogs.**\n")
        }
    }
}

/// The totals of all walks, and how many packages meet each obstacle.
fn totals(walks: &[MigrationWalk]) -> String {
    let sum = |of: &dyn Fn(&MigrationWalk) -> usize| walks.iter().map(of).sum::<usize>();
    let mut text = format!(
        "\n{} objects and {} custom resources stayed the same ones, and {} older versions were upgraded as extensions.\n\n\
         | Obstacle | Refused | Removed |\n|---|---:|---:|\n",
        sum(&|walk| walk.objects),
        sum(&|walk| walk.examples),
        sum(&|walk| usize::from(walk.upgraded_from.is_some())),
    );
    let mut all: BTreeMap<Obstacle, [usize; 2]> = BTreeMap::new();
    for walk in walks {
        for obstacle in &walk.obstacles {
            all.entry(*obstacle).or_default()[usize::from(walk.completed_round_trip)] += 1;
        }
    }
    for (obstacle, [refused, removed]) in all {
        text += &table_row(&[obstacle.text().to_owned(), refused.to_string(), removed.to_string()]);
    }
    text
}

fn row(item: &PackageUnderTest, walk: &MigrationWalk) -> String {
    let version = |name: Option<&String>| name.map_or(String::new(), |name| item.version(name));
    table_row(&[
        format!("`{}`", item.package),
        version(walk.installed.as_ref()),
        walk.objects.to_string(),
        walk.examples.to_string(),
        version(walk.upgraded_from.as_ref()),
        Outcome::of(walk).name().to_owned(),
        remarks(item, walk).join("; "),
    ])
}

fn remarks(item: &PackageUnderTest, walk: &MigrationWalk) -> Vec<String> {
    let findings = walk.findings.iter().map(|finding| format!("**{}**", truncate(finding)));
    let mut all: Vec<String> = findings.collect();
    all.extend(walk.not_installed.as_deref().map(truncate));
    all.extend(walk.obstacles.iter().map(|obstacle| obstacle.text().to_owned()));
    if walk.exceptions.contains(comparison::RESTARTED_PODS) {
        all.push("pods restart".to_owned());
    }
    if !item.unreadable().is_empty() {
        all.push(format!("cannot be read: {}", truncate(&item.unreadable().join("; "))));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_begins_with_what_is_missing() {
        let begin = |published| {
            let page = migration_table(&[], &[MigrationWalk::default()], published);
            page.lines().nth(2).unwrap().to_owned()
        };
        assert_eq!(begin(Some(136)), "**Incomplete: 1 of 136 packages.**");
        assert!(begin(None).starts_with("**Incomplete: 1 packages"));
        assert!(begin(Some(1)).starts_with("*Written by"));
    }
}
