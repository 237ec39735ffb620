//! What became of packages, as a page for people.

use super::{End, Item, Walk, stays};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// How long a reason may be, in characters.
const LONG: usize = 480;
/// How many names of a list are told.
const NAMES: usize = 3;

/// What a walk comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Reached,
    One,
    Stops,
    Refused,
}

impl Outcome {
    const ALL: [Self; 4] = [Self::Reached, Self::One, Self::Stops, Self::Refused];

    const fn name(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::One => "one version",
            Self::Stops => "stops",
            Self::Refused => "not installed",
        }
    }

    const fn about(self) -> &'static str {
        match self {
            Self::Reached => "it was updated to the last version of its way, which runs",
            Self::One => "no version leads to another; the newest one was installed and runs",
            Self::Stops => "an update on the way is not made",
            Self::Refused => "not even the first version runs",
        }
    }

    pub(super) fn of(walk: &Walk) -> Self {
        let moved = walk.plan.as_ref().is_some_and(|plan| plan.hops() > 0);
        match &walk.end {
            End::There if moved => Self::Reached,
            End::There => Self::One,
            // The first may be installed and not run.
            End::Stuck(_) if walk.seen.len() > 1 || updating(walk) => Self::Stops,
            End::Stuck(_) | End::Unreadable(_) => Self::Refused,
        }
    }
}

/// Whether the first version is installed and what is wrong is not about that one.
fn updating(walk: &Walk) -> bool {
    let End::Stuck(why) = &walk.end else { return false };
    let first = walk.seen.first();
    first.is_some_and(|first| !why.starts_with(&format!("{first}: ")))
        && walk.plan.as_ref().is_some_and(|plan| plan.hops() > 0)
}

/// The page, of walks in the order of their items.
pub fn table(items: &[Item], walks: &[Walk]) -> String {
    let mut page = String::from(HEAD);
    let mut catalogs: Vec<&str> = Vec::new();
    for walk in walks {
        if catalogs.last() != Some(&&*walk.catalog) {
            catalogs.push(&walk.catalog);
        }
    }
    page += "\n| Catalog | Packages |";
    for outcome in Outcome::ALL {
        let _ = write!(page, " {} |", outcome.name());
    }
    page += "\n|---|---:|---:|---:|---:|---:|\n";
    let count = |of: &dyn Fn(&&Walk) -> bool| walks.iter().filter(of).count();
    for catalog in catalogs.iter().map(|catalog| Some(*catalog)).chain([None]) {
        let has = |walk: &Walk| catalog.is_none_or(|catalog| walk.catalog == catalog);
        let name = catalog.map_or("all".to_owned(), |catalog| format!("`{catalog}`"));
        let _ = write!(page, "| {name} | {} |", count(&|walk| has(walk)));
        for outcome in Outcome::ALL {
            let _ = write!(page, " {} |", count(&|walk| has(walk) && Outcome::of(walk) == outcome));
        }
        page.push('\n');
    }
    page.push('\n');
    for outcome in Outcome::ALL {
        let _ = writeln!(page, "* *{}*: {}.", outcome.name(), outcome.about());
    }
    let back = walks.iter().any(|walk| walk.back.is_some());
    if back {
        page += BACK;
        for (name, why) in stays::about() {
            let _ = writeln!(page, "* *{name}*: {why}.");
        }
        page += CHANGES;
        for (name, why) in stays::about_changes() {
            let _ = writeln!(page, "* *{name}*: {why}.");
        }
    }
    for catalog in catalogs {
        let (head, line) = if back { (" Stays |", "---|") } else { ("", "") };
        let _ = write!(
            page,
            "\n## `{catalog}`\n\n| Package | Channel | From | To | Updates | Outcome |{head} Why, and what else |\n|---|---|---|---|---:|---|{line}---|\n"
        );
        for (item, walk) in items.iter().zip(walks).filter(|(_, walk)| walk.catalog == catalog) {
            page += &row(item, walk, back);
        }
    }
    page
}

const HEAD: &str = "# Walks of published packages

*Written by `mainstay-conformance walk --back --table docs/walks.md`; do not edit.*

Every package of two published sets of operators, installed at the oldest version from which the newest can be reached, and updated to
that one: each in a cluster of its own in one process, with the catalog and whatever it may need of it, one Subscription with automatic
approval, and an OperatorGroup with a target that the versions on the way support. Where the way goes on in another channel, the
Subscription changes to it (`a → b`). The cluster has the kinds `ServiceMonitor` and `PrometheusRule`, which many bundles use, unless
the package brings them; pods are simulated.

`certified-v4.14` is a published catalog with all its channels. `bundles-249` are folders of bundles, the newest three of each package;
folders say nothing of channels that holds together, so there is one for each package, called as the newest version's default, in which
each version replaces the one before it.

From, To and Updates say what happened, not what was meant. Where it stopped, the reason is what the cluster says.
";

const BACK: &str = "
Then objects are made as the operator's examples show them (as far as the API takes them, and without finalizers, which the simulated
operator would never remove), and it is taken out with `mainstay uninstall`, whatever came along after it. What every kind of the API
lists, in all namespaces, is compared with what it listed before the installation; what its preview says goes, goes, what it says stays,
stays, and nothing else changes. All of that once more with `--operands --definitions`: nothing stays, and nothing is changed, of any of
these packages. What stays without, counted in the column Stays:

";

const CHANGES: &str = "
What is another than before on what was there before:

";

fn row(item: &Item, walk: &Walk, back: bool) -> String {
    let mut channels: Vec<&str> = Vec::new();
    for leg in walk.plan.iter().flat_map(|plan| &plan.legs) {
        channels.push(&leg.channel);
    }
    let version = |name: Option<&String>| name.map_or(String::new(), |name| item.version(name));
    let mut cells = vec![
        format!("`{}`", item.package),
        channels.join(" → "),
        version(walk.plan.as_ref().map(|plan| &plan.start)),
        version(walk.seen.last()),
        walk.seen.len().saturating_sub(1).to_string(),
        Outcome::of(walk).name().to_owned(),
    ];
    if back {
        cells.push(left(walk));
    }
    cells.push(remarks(item, walk).join("; "));
    let cells: Vec<String> =
        cells.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// What is left of it when it has been uninstalled.
fn left(walk: &Walk) -> String {
    let Some(back) = &walk.back else { return String::new() };
    if let Some(wrong) = back.wrong.first() {
        return format!("**{}**", short(wrong));
    }
    let counted = back.stays.iter().map(|(name, count)| match count {
        1 => format!("1 {name}"),
        many => format!("{many} {name}s"),
    });
    let all: Vec<String> = counted.collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

/// Why it ended where it did, and what else is to be known.
fn remarks(item: &Item, walk: &Walk) -> Vec<String> {
    let mut all = Vec::new();
    match &walk.end {
        End::There => {}
        End::Stuck(why) => all.push(reason(item, walk, why)),
        End::Unreadable(why) => all.push(format!("no bundle of it can be read: {}", short(why))),
    }
    if let Some(plan) = &walk.plan {
        if plan.end() != plan.newest {
            all.push(format!(
                "nothing leads to {}, the newest, from an older version",
                item.version(&plan.newest)
            ));
        }
        match plan.stranded.as_slice() {
            [] => {}
            [one] => all.push(format!("no way leads there from {}", item.version(one))),
            [first, .., last] => all.push(format!(
                "no way leads there from {} older versions, {} to {}",
                plan.stranded.len(),
                item.version(first),
                item.version(last)
            )),
        }
        let lacks: BTreeSet<&String> =
            plan.barred.iter().filter_map(|name| item.barred(name)).flatten().collect();
        let lacks = some(&lacks.into_iter().cloned().collect::<Vec<_>>());
        match plan.barred.as_slice() {
            [] => {}
            [one] => all.push(format!("{} needs {lacks}", item.version(one))),
            many => all.push(format!("{} older versions need {lacks}", many.len())),
        }
        if matches!(walk.end, End::There) {
            let wanted: Vec<&String> = std::iter::once(&plan.start)
                .chain(plan.legs.iter().flat_map(|leg| &leg.hops))
                .collect();
            if wanted != walk.seen.iter().collect::<Vec<_>>() {
                all.push("**another way than the graph says**".to_owned());
            }
        }
    }
    if !walk.company.is_empty() {
        all.push(format!("with {}", some(&walk.company)));
    }
    if !item.unreadable().is_empty() && item.found().is_some() {
        all.push(format!("cannot be read: {}", short(&item.unreadable().join("; "))));
    }
    all
}

/// What the cluster says, in words that a reader can act on.
fn reason(item: &Item, walk: &Walk, why: &str) -> String {
    if let Some(needs) = waiting(item, walk) {
        return needs;
    }
    if why.contains("constraints not satisfiable") {
        let found = item.found().into_iter().flat_map(mainstay_catalog::Package::bundles);
        let named =
            found.filter(|bundle| why.contains(&format!("bundle {} requires ", bundle.name)));
        let needs: BTreeSet<&String> =
            named.filter_map(|bundle| item.barred(&bundle.name)).flatten().collect();
        let needs: Vec<String> = needs.into_iter().cloned().collect();
        if !needs.is_empty() {
            let next = next(item, walk, why);
            return format!("{next}not alone: it needs {}, which cannot be had here", some(&needs));
        }
    }
    if why.contains("Request entity too large") {
        return "its install plan would be larger than the API takes, for it has all manifests in it".to_owned();
    }
    short(why)
}

/// Of a version that stays because the next one needs what is not there: which, and what.
fn waiting(item: &Item, walk: &Walk) -> Option<String> {
    let plan = walk.plan.as_ref()?;
    let End::Stuck(why) = &walk.end else { return None };
    let last = walk.seen.last().filter(|_| why.starts_with(super::place::NO_END))?;
    let way = std::iter::once(&plan.start).chain(plan.legs.iter().flat_map(|leg| &leg.hops));
    let next = way.skip_while(|name| *name != last).nth(1)?;
    let needs: Vec<String> = item.barred(next)?.iter().cloned().collect();
    let version = item.version(next);
    Some(format!("{version}: not alone: it needs {}, which cannot be had here", some(&needs)))
}

/// The version that a message is about, if it is an update.
fn next(item: &Item, walk: &Walk, said: &str) -> String {
    let found = item.found().into_iter().flat_map(mainstay_catalog::Package::bundles);
    let named =
        found.filter(|bundle| said.split([' ', ',', ':']).any(|word| word == &*bundle.name)).last();
    match named {
        Some(bundle) if !walk.seen.is_empty() => format!("{}: ", bundle.version),
        _ => String::new(),
    }
}

/// The first names of a list, and how many more there are.
fn some(names: &[String]) -> String {
    let first: Vec<String> = names.iter().take(NAMES).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(NAMES) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

fn short(text: &str) -> String {
    if text.chars().count() <= LONG {
        return text.to_owned();
    }
    let cut: String = text.chars().take(LONG).collect();
    format!("{cut} …")
}
