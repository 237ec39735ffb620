//! The results page (`docs/walks.md`): a summary of all walks, and a table for each catalog.

use super::{PackageUnderTest, PackageWalkEnd, Walk, leftovers};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The length at which a reason is cut, in characters.
const REASON_LIMIT: usize = 480;
/// How many names of a list are shown.
const LISTED_NAMES: usize = 3;

/// The outcome of a walk, as the page counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Reached,
    OneVersion,
    Stops,
    NotInstalled,
}

impl Outcome {
    const ALL: [Self; 4] = [Self::Reached, Self::OneVersion, Self::Stops, Self::NotInstalled];

    const fn name(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::OneVersion => "one version",
            Self::Stops => "stops",
            Self::NotInstalled => "not installed",
        }
    }

    const fn explanation(self) -> &'static str {
        match self {
            Self::Reached => "the last version of the upgrade path was installed and runs",
            Self::OneVersion => {
                "no version upgrades to another one; the newest version was installed and runs"
            }
            Self::Stops => "an upgrade of the path did not succeed",
            Self::NotInstalled => "the first version did not succeed",
        }
    }

    pub(super) fn of(walk: &Walk) -> Self {
        let moved = walk.upgrade_path.as_ref().is_some_and(|path| path.update_count() > 0);
        match &walk.end {
            PackageWalkEnd::Completed if moved => Self::Reached,
            PackageWalkEnd::Completed => Self::OneVersion,
            // The first version may be installed without having succeeded.
            PackageWalkEnd::Stuck(_)
                if walk.installed_csvs.len() > 1 || stopped_after_first(walk) =>
            {
                Self::Stops
            }
            PackageWalkEnd::Stuck(_) | PackageWalkEnd::Unreadable(_) => Self::NotInstalled,
        }
    }
}

/// Whether the first version is installed, and the reported failure names another one.
fn stopped_after_first(walk: &Walk) -> bool {
    let PackageWalkEnd::Stuck(why) = &walk.end else { return false };
    let first = walk.installed_csvs.first();
    first.is_some_and(|first| !why.starts_with(&format!("{first}: ")))
        && walk.upgrade_path.as_ref().is_some_and(|path| path.update_count() > 0)
}

/// Renders the page; `walks` is in the order of `items`.
pub fn table(items: &[PackageUnderTest], walks: &[Walk]) -> String {
    let mut page = String::from(INTRODUCTION);
    let outcomes: Vec<(&str, &str)> =
        walks.iter().map(|walk| (&*walk.catalog, Outcome::of(walk).name())).collect();
    let possible = Outcome::ALL.map(|outcome| (outcome.name(), outcome.explanation()));
    page += &outcome_section(&outcomes, &possible);
    let back = walks.iter().any(|walk| walk.uninstall_report.is_some());
    if back {
        page += UNINSTALL_SECTION;
        for (name, why) in leftovers::leftover_reasons() {
            let _ = writeln!(page, "* *{name}*: {why}.");
        }
        page += CHANGES_SECTION;
        for (name, why) in leftovers::change_reasons() {
            let _ = writeln!(page, "* *{name}*: {why}.");
        }
    }
    for catalog in distinct_catalogs(&outcomes) {
        let (head, line) = if back { (" Remains |", "---|") } else { ("", "") };
        let _ = write!(
            page,
            "\n## `{catalog}`\n\n| Package | Channel | From | To | Updates | Outcome |{head} Reason and remarks |\n|---|---|---|---|---:|---|{line}---|\n"
        );
        for (item, walk) in items.iter().zip(walks).filter(|(_, walk)| walk.catalog == catalog) {
            page += &row(item, walk, back);
        }
    }
    page
}

/// The catalogs in their order, each once.
pub(super) fn distinct_catalogs<'a>(outcomes: &[(&'a str, &str)]) -> Vec<&'a str> {
    let mut catalogs: Vec<&str> = outcomes.iter().map(|(catalog, _)| *catalog).collect();
    catalogs.dedup();
    catalogs
}

/// A table that counts the outcomes of each catalog, from the catalog and the outcome of each walk, and what each
/// of the possible outcomes means: their names with an explanation.
pub(super) fn outcome_section(outcomes: &[(&str, &str)], possible: &[(&str, &str)]) -> String {
    let names: Vec<&str> = possible.iter().map(|(name, _)| *name).collect();
    let mut section = outcome_counts(outcomes, &names);
    section.push('\n');
    for (name, explanation) in possible {
        let _ = writeln!(section, "* *{name}*: {explanation}.");
    }
    section
}

fn outcome_counts(outcomes: &[(&str, &str)], names: &[&str]) -> String {
    let mut table = format!("\n| Catalog | Packages | {} |\n|---|---:|", names.join(" | "));
    table += &"---:|".repeat(names.len());
    table.push('\n');
    let catalogs = distinct_catalogs(outcomes);
    for catalog in catalogs.iter().map(|catalog| Some(*catalog)).chain([None]) {
        let own = || outcomes.iter().filter(|(of, _)| catalog.is_none_or(|catalog| *of == catalog));
        let name = catalog.map_or("all".to_owned(), |catalog| format!("`{catalog}`"));
        let counts = names.iter().map(|name| own().filter(|(_, outcome)| outcome == name).count());
        let cells: Vec<String> =
            [own().count()].into_iter().chain(counts).map(|count| count.to_string()).collect();
        table += &table_row(&[vec![name], cells].concat());
    }
    table
}

/// A row of a table.
pub(super) fn table_row(cells: &[String]) -> String {
    let cells: Vec<String> =
        cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}

const INTRODUCTION: &str = "# Walks of published packages

*Written by `mainstay-conformance walk --back --table docs/walks.md`; do not edit.*

This page shows what happened when each package of two published sets of operators was installed and upgraded. The first version is the
oldest one from which the newest can be reached. The last version is the newest one.

Each package has a cluster of its own in one process, with simulated pods. The cluster has:

* the catalog with the package and all that the package may depend on,
* one Subscription with automatic approval; where the upgrade path continues in another channel, the Subscription changes to it (`a → b`),
* an OperatorGroup with a target that the versions of the upgrade path support,
* the kinds `ServiceMonitor` and `PrometheusRule`, which many bundles use, unless the package contains them.

`certified-v4.14` is a published catalog with all its channels. `bundles-249` are folders of bundles, the newest three of each package.
The channels that such folders declare do not form one graph. So each package has one channel, in which each version replaces the one
before it. The channel has the name of the newest version's default channel.

The columns From, To and Updates show the actual installations, not the expected ones. Where a walk stopped, the last column gives the
message of the cluster.
";

const UNINSTALL_SECTION: &str = "
Then the operator is uninstalled:

1. Custom resources are created from the operator's examples, if the API accepts them. They have no finalizers, because the simulated
   operator would never remove them.
2. `mainstay uninstall` uninstalls the operator, and then its dependencies.
3. The objects of all kinds in all namespaces are compared with those before the installation. The preview must be right: exactly the
   objects that it lists as deleted are gone, those that it lists as kept remain, and nothing else changes.
4. All of this is repeated with `--operands --definitions`. Then nothing remains and nothing is changed, for all of these packages.

Without these flags, objects of these kinds remain; the column Remains counts them:

";

const CHANGES_SECTION: &str = "
These fields of objects that existed before may differ afterwards:

";

fn row(item: &PackageUnderTest, walk: &Walk, back: bool) -> String {
    let mut channels: Vec<&str> = Vec::new();
    for leg in walk.upgrade_path.iter().flat_map(|path| &path.segments) {
        channels.push(&leg.channel);
    }
    let version = |name: Option<&String>| name.map_or(String::new(), |name| item.version(name));
    let mut cells = vec![
        format!("`{}`", item.package),
        channels.join(" → "),
        version(walk.upgrade_path.as_ref().map(|path| &path.start)),
        version(walk.installed_csvs.last()),
        walk.installed_csvs.len().saturating_sub(1).to_string(),
        Outcome::of(walk).name().to_owned(),
    ];
    if back {
        cells.push(leftover_cell(walk));
    }
    cells.push(remarks(item, walk).join("; "));
    table_row(&cells)
}

/// The cell for leftovers.
fn leftover_cell(walk: &Walk) -> String {
    let Some(report) = &walk.uninstall_report else { return String::new() };
    if let Some(finding) = report.findings.first() {
        return format!("**{}**", truncate(finding));
    }
    let counted = report.leftovers.iter().map(|(name, count)| match count {
        1 => format!("1 {name}"),
        many => format!("{many} {name}s"),
    });
    let all: Vec<String> = counted.collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

/// Why the walk ended, and other remarks.
fn remarks(item: &PackageUnderTest, walk: &Walk) -> Vec<String> {
    let mut all = Vec::new();
    match &walk.end {
        PackageWalkEnd::Completed => {}
        PackageWalkEnd::Stuck(why) => all.push(reason(item, walk, why)),
        PackageWalkEnd::Unreadable(why) => {
            all.push(format!("none of its bundles can be read: {}", truncate(why)));
        }
    }
    if let Some(path) = &walk.upgrade_path {
        if path.end() != path.newest {
            all.push(format!(
                "no older version upgrades to {}, the newest",
                item.version(&path.newest)
            ));
        }
        match path.dead_ends.as_slice() {
            [] => {}
            [one] => all.push(format!(
                "no upgrade path leads to the last version from {}",
                item.version(one)
            )),
            [first, .., last] => all.push(format!(
                "no upgrade path leads to the last version from {} older versions, {} to {}",
                path.dead_ends.len(),
                item.version(first),
                item.version(last)
            )),
        }
        let lacks: BTreeSet<&String> = path
            .uninstallable
            .iter()
            .filter_map(|name| item.missing_requirements(name))
            .flatten()
            .collect();
        let lacks = abbreviate_list(&lacks.into_iter().cloned().collect::<Vec<_>>());
        match path.uninstallable.as_slice() {
            [] => {}
            [one] => all.push(format!("{} requires {lacks}", item.version(one))),
            many => all.push(format!("{} older versions require {lacks}", many.len())),
        }
        if matches!(walk.end, PackageWalkEnd::Completed) {
            let expected_csvs: Vec<&String> = std::iter::once(&path.start)
                .chain(path.segments.iter().flat_map(|leg| &leg.updates))
                .collect();
            if expected_csvs != walk.installed_csvs.iter().collect::<Vec<_>>() {
                all.push(
                    "**the installed versions differ from the upgrade path of the graph**"
                        .to_owned(),
                );
            }
        }
    }
    if !walk.dependencies.is_empty() {
        all.push(format!("with the dependencies {}", abbreviate_list(&walk.dependencies)));
    }
    if !item.unreadable().is_empty() && item.loaded_package().is_some() {
        all.push(format!("cannot be read: {}", truncate(&item.unreadable().join("; "))));
    }
    all
}

/// The cluster's message, reworded for readers where it is long or indirect.
fn reason(item: &PackageUnderTest, walk: &Walk, why: &str) -> String {
    if let Some(needs) = waits_for(item, walk) {
        return needs;
    }
    if why.contains("constraints not satisfiable") {
        let found = item.loaded_package().into_iter().flat_map(mainstay_catalog::Package::bundles);
        let mentioned =
            found.filter(|bundle| why.contains(&format!("bundle {} requires ", bundle.name)));
        let needs: BTreeSet<&String> = mentioned
            .filter_map(|bundle| item.missing_requirements(&bundle.name))
            .flatten()
            .collect();
        let needs: Vec<String> = needs.into_iter().cloned().collect();
        if !needs.is_empty() {
            let update_prefix = update_prefix(item, walk, why);
            return format!(
                "{update_prefix}it requires {}, which neither the catalog nor the cluster provides",
                abbreviate_list(&needs)
            );
        }
    }
    if why.contains("Request entity too large") {
        return "its InstallPlan contains all manifests and exceeds the size limit of the API"
            .to_owned();
    }
    truncate(why)
}

/// For a package without upgrade, the unsatisfied requirements of the next version.
fn waits_for(item: &PackageUnderTest, walk: &Walk) -> Option<String> {
    let path = walk.upgrade_path.as_ref()?;
    let PackageWalkEnd::Stuck(why) = &walk.end else { return None };
    let last =
        walk.installed_csvs.last().filter(|_| why.starts_with(super::package_walk::NO_PROGRESS))?;
    let csvs =
        std::iter::once(&path.start).chain(path.segments.iter().flat_map(|leg| &leg.updates));
    let update_prefix = csvs.skip_while(|name| *name != last).nth(1)?;
    let needs: Vec<String> = item.missing_requirements(update_prefix)?.iter().cloned().collect();
    let version = item.version(update_prefix);
    Some(format!(
        "{version}: it requires {}, which neither the catalog nor the cluster provides",
        abbreviate_list(&needs)
    ))
}

/// The version that an upgrade's message names, as a prefix; empty for the first installation.
fn update_prefix(item: &PackageUnderTest, walk: &Walk, message: &str) -> String {
    let found = item.loaded_package().into_iter().flat_map(mainstay_catalog::Package::bundles);
    let mentioned = found
        .filter(|bundle| message.split([' ', ',', ':']).any(|word| word == &*bundle.name))
        .last();
    match mentioned {
        Some(bundle) if !walk.installed_csvs.is_empty() => format!("{}: ", bundle.version),
        _ => String::new(),
    }
}

/// The first names of a list, and the number of the others.
fn abbreviate_list(names: &[String]) -> String {
    let first: Vec<String> =
        names.iter().take(LISTED_NAMES).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(LISTED_NAMES) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

pub(super) fn truncate(text: &str) -> String {
    if text.chars().count() <= REASON_LIMIT {
        return text.to_owned();
    }
    let cut: String = text.chars().take(REASON_LIMIT).collect();
    format!("{cut} …")
}
