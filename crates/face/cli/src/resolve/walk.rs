//! From what happens now to where it ends: what is resolved is taken for installed, again and again.
//!
//! Every step is a resolution of its own. What failed before and fails for the same reasons is not
//! searched or explained again, and all steps together have a budget.

use super::ends::Ends;
use super::entries::Entries;
use mainstay_cause::Cause;
use mainstay_resolver::{
    CatalogKey, Chosen, Content, Csv, Failure, FailureKind, Memory, Outcome, Subscription, World,
    resolve_again,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What all steps after the first may take together, in steps of a search: some nanoseconds each.
const BUDGET: u64 = 500_000_000;

/// What a step takes for each Subscription and ClusterServiceVersion, in the same unit.
const OBJECT: u64 = 200;

/// What becomes of a namespace.
#[derive(Debug)]
pub(super) struct Journey {
    /// The namespace.
    pub(super) namespace: String,
    /// What is resolved now.
    pub(super) outcome: Outcome,
    /// What becomes of each operator: by first step, package and name.
    pub(super) operators: Vec<Operator>,
    /// What fails later, and after which step.
    pub(super) later: Vec<(usize, Failure)>,
    /// Why it was not followed to its end, if it was not.
    pub(super) cut: Option<Cut>,
    /// How many operators are held for reasons that were not looked into.
    pub(super) unexplained: usize,
}

/// Why a world was not followed to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// After one step everything is as it was after another one.
    Circle { after: usize, back_to: usize },
    /// It would take too much after that step.
    Effort { after: usize },
}

/// What becomes of one operator.
#[derive(Debug)]
pub(super) struct Operator {
    pub(super) package: String,
    /// The channel where its way ends.
    pub(super) channel: String,
    pub(super) catalog: CatalogKey,
    /// The Subscriptions that ask for it.
    pub(super) subscriptions: Vec<String>,
    /// What is installed of it.
    pub(super) installed: Option<String>,
    pub(super) hops: Vec<Hop>,
    /// Who needs it, and what they say.
    pub(super) needed_by: Vec<(String, String)>,
    pub(super) end: End,
}

/// One version on the way.
#[derive(Debug)]
pub(super) struct Hop {
    /// The step in which it is installed; the first is the one that happens now.
    pub(super) step: usize,
    pub(super) bundle: String,
    pub(super) version: Option<String>,
    /// The channel it is taken from; a Subscription that names none may change it on the way.
    pub(super) channel: String,
}

/// Where the way ends.
#[derive(Debug)]
pub(super) enum End {
    /// At the newest version of the channel.
    Head,
    /// At a version from which no update leads on; the head that is not reached, and why.
    Stranded { head: String, why: String },
    /// At a version that the channel does not have, and that it has no update for.
    Outside,
    /// There is an update, and it cannot be taken; what stands in the way, if that is known.
    Held { next: String, why: Option<Cause> },
    /// The Subscription is part of what fails.
    Failed,
    /// It is installed, and no Subscription asks for upgrades.
    Unsubscribed,
    /// There is an update, and the way was not followed that far.
    Cut { next: String },
    /// There is no content to tell.
    Unknown,
}

impl End {
    /// The word for programs.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Stranded { .. } => "stranded",
            Self::Outside => "outside",
            Self::Held { .. } => "held",
            Self::Failed => "failed",
            Self::Unsubscribed => "unsubscribed",
            Self::Cut { .. } => "cut",
            Self::Unknown => "unknown",
        }
    }
}

impl Operator {
    /// The version where its way ends.
    pub(super) fn last(&self) -> Option<&str> {
        self.hops.last().map(|hop| &*hop.bundle).or(self.installed.as_deref())
    }

    /// What is installed or upgraded now.
    pub(super) fn now(&self) -> Option<&str> {
        self.hops.first().filter(|hop| hop.step == 1).map(|hop| &*hop.bundle)
    }
}

impl Journey {
    /// Whether something would be installed or upgraded.
    pub(super) const fn changes(&self) -> bool {
        !self.outcome.installs.is_empty()
    }

    /// Whether something that is asked for fails. A broken catalog that nothing depends on is told,
    /// and no failure of this kind.
    pub(super) fn fails(&self) -> bool {
        fails(&self.outcome)
    }

    /// Follows a world to its end.
    pub(super) fn of(world: &World<'_>) -> Self {
        let entries = Entries::of(world);
        let mut operators = present(world, &entries);
        let mut now = world.clone();
        let mut first: Option<Outcome> = None;
        let mut known: BTreeSet<String> = BTreeSet::new();
        let mut later = Vec::new();
        let mut memory = Memory::default();
        let mut seen = HashMap::from([(print(&now), 0)]);
        let (mut step, mut taken, mut spent) = (1, 0, 0);
        let cut = loop {
            let outcome = resolve_again(&now, &mut memory);
            for failure in &outcome.failures {
                if known.insert(failure.message.clone()) && first.is_some() {
                    later.push((step - 1, failure.clone()));
                }
            }
            for install in &outcome.installs {
                let Some(chosen) = outcome.resolved.get(install.chosen) else { continue };
                note(&mut operators, step, chosen, &install.subscriptions);
                if install.subscriptions.is_empty() {
                    let needed = needed_by(chosen, &outcome, &now, &entries);
                    if let Some(operator) = operators.iter_mut().find(|it| ends_at(it, chosen)) {
                        operator.needed_by = needed;
                    }
                }
            }
            let moves = !outcome.installs.is_empty();
            take(&mut now, &outcome, &entries);
            if first.is_none() {
                first = Some(outcome);
                spent = memory.spent();
            }
            if !moves {
                break None;
            }
            if let Some(back_to) = seen.insert(print(&now), step) {
                break Some(Cut::Circle { after: step, back_to });
            }
            taken += OBJECT * (1 + now.subscriptions.len() + now.csvs.len()) as u64;
            if memory.spent() - spent + taken > BUDGET {
                break Some(Cut::Effort { after: step });
            }
            step += 1;
        };
        let outcome = first.unwrap_or_default();
        let mut ends = Ends::new(now, &entries, &outcome, cut.is_some(), memory);
        for operator in &mut operators {
            operator.end = ends.of(operator);
        }
        let unexplained = ends.unexplained();
        // What happens first comes first; what never moves comes last.
        operators.sort_by(|a, b| {
            let step = |it: &Operator| it.hops.first().map_or(usize::MAX, |hop| hop.step);
            (step(a), &a.package, a.last()).cmp(&(step(b), &b.package, b.last()))
        });
        Self { namespace: world.namespace.clone(), outcome, operators, later, cut, unexplained }
    }
}

/// Whether something that is asked for fails.
pub(super) fn fails(outcome: &Outcome) -> bool {
    outcome.failures.iter().any(blocks)
}

/// Whether a failure is in the way of something; a broken catalog that nothing depends on is not.
pub(super) fn blocks(failure: &Failure) -> bool {
    failure.kind == FailureKind::NotSatisfiable || !failure.subscriptions.is_empty()
}

/// The operators that are installed, each with its Subscriptions.
fn present(world: &World<'_>, entries: &Entries<'_>) -> Vec<Operator> {
    let replaced: BTreeSet<&str> = world.csvs.iter().map(|csv| &*csv.replaces).collect();
    let mut operators = Vec::new();
    for csv in world.csvs.iter().filter(|csv| !csv.copied) {
        let subscriptions: Vec<&Subscription> =
            world.subscriptions.iter().filter(|it| it.installed_csv == csv.name).collect();
        if subscriptions.is_empty() && replaced.contains(&*csv.name) {
            continue;
        }
        let entry = entries.named(&csv.name).next();
        let package = match subscriptions.first() {
            Some(subscription) => subscription.package.clone(),
            None => entry.map(|(_, entry)| entry.package().to_owned()).unwrap_or_default(),
        };
        let catalog = subscriptions.first().map(|it| it.catalog.clone());
        let channel = subscriptions.first().map(|it| it.channel.clone()).unwrap_or_default();
        operators.push(Operator {
            package,
            channel,
            catalog: catalog.unwrap_or_default(),
            subscriptions: subscriptions.iter().map(|it| it.name.clone()).collect(),
            installed: Some(csv.name.clone()),
            hops: Vec::new(),
            needed_by: Vec::new(),
            end: End::Unknown,
        });
    }
    operators
}

fn ends_at(operator: &Operator, chosen: &Chosen) -> bool {
    operator.last() == Some(&*chosen.name)
}

/// Writes down what is chosen in a step.
fn note(operators: &mut Vec<Operator>, step: usize, chosen: &Chosen, asking: &[String]) {
    let hop = Hop {
        step,
        bundle: chosen.name.clone(),
        version: chosen.version.clone(),
        channel: chosen.channel.clone(),
    };
    let before = chosen.replaces.as_deref();
    let known = operators.iter_mut().find(|it| {
        it.package == chosen.package && before.is_some() && it.last() == before
            || it.last() == Some(&*chosen.name)
    });
    if let Some(operator) = known {
        operator.channel.clone_from(&chosen.channel);
        operator.catalog = chosen.catalog.clone();
        if operator.subscriptions.is_empty() {
            operator.subscriptions = asking.to_vec();
        }
        if operator.last() != Some(&*chosen.name) {
            operator.hops.push(hop);
        }
        return;
    }
    operators.push(Operator {
        package: chosen.package.clone(),
        channel: chosen.channel.clone(),
        catalog: chosen.catalog.clone(),
        subscriptions: asking.to_vec(),
        installed: None,
        hops: vec![hop],
        needed_by: Vec::new(),
        end: End::Unknown,
    });
}

/// Who, among those that are chosen or there, needs what was chosen.
fn needed_by(
    chosen: &Chosen,
    outcome: &Outcome,
    world: &World<'_>,
    entries: &Entries<'_>,
) -> Vec<(String, String)> {
    let Some(target) = entries.at(&chosen.catalog, &chosen.name) else { return Vec::new() };
    let mut found = BTreeMap::new();
    let others = outcome.resolved.iter().filter(|it| it.name != chosen.name);
    let others = others.filter_map(|it| entries.at(&it.catalog, &it.name));
    let existing = world.csvs.iter().filter_map(|csv| entries.named(&csv.name).next());
    for entry in others.chain(existing.map(|(_, entry)| entry)) {
        if let Some(what) = super::entries::need(entry, target) {
            found.insert(entry.name().to_owned(), what);
        }
    }
    found.into_iter().collect()
}

/// Takes what was resolved for installed.
fn take(world: &mut World<'_>, outcome: &Outcome, entries: &Entries<'_>) {
    for install in &outcome.installs {
        let Some(chosen) = outcome.resolved.get(install.chosen) else { continue };
        let replaces = chosen.replaces.clone().unwrap_or_default();
        world.csvs.retain(|csv| csv.name != replaces && csv.name != chosen.name);
        world.csvs.push(installed(entries, &chosen.catalog, &chosen.name, replaces));
        for subscription in &mut world.subscriptions {
            if install.subscriptions.contains(&subscription.name) {
                subscription.installed_csv.clone_from(&chosen.name);
                subscription.current_csv.clone_from(&chosen.name);
            }
        }
    }
    for new in &outcome.new_subscriptions {
        world.subscriptions.push(Subscription {
            name: new.name.clone(),
            package: new.package.clone(),
            channel: new.channel.clone(),
            catalog: new.catalog.clone(),
            starting_csv: new.starting_csv.clone(),
            restores: false,
            installed_csv: new.starting_csv.clone(),
            current_csv: new.starting_csv.clone(),
        });
    }
}

/// A bundle of a catalog as it looks once it is installed.
pub(super) fn installed(
    entries: &Entries<'_>,
    catalog: &CatalogKey,
    name: &str,
    replaces: String,
) -> Csv {
    let entry = entries.at(catalog, name);
    Csv {
        name: name.to_owned(),
        version: entry.and_then(|entry| entry.version().cloned()),
        replaces,
        phase: "Succeeded".to_owned(),
        properties: entry.map(super::entries::annotation),
        ..Csv::default()
    }
}

/// What tells a state of a world from others on its way: what is installed, and for whom.
fn print(world: &World<'_>) -> u64 {
    let mut names: Vec<(&str, &str)> = world.csvs.iter().map(|it| (&*it.name, "")).collect();
    names.extend(world.subscriptions.iter().map(|it| (&*it.name, &*it.installed_csv)));
    names.sort_unstable();
    let mut hasher = DefaultHasher::new();
    names.hash(&mut hasher);
    hasher.finish()
}

/// Whether a catalog has content.
pub(super) const fn is_ready(content: &Content<'_>) -> bool {
    matches!(content, Content::Ready(_))
}
