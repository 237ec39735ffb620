//! From what happens now to where it ends: what is resolved is taken for installed, again and again.

use super::entries::Entries;
use mainstay_cause::Cause;
use mainstay_resolver::{
    CatalogKey, Chosen, Content, Csv, Demand, EntryView, Failure, FailureKind, Outcome,
    Subscription, World, resolve,
};
use mainstay_version::Range;
use std::collections::{BTreeMap, BTreeSet};

/// Most steps that are followed: more than any channel is long.
const MOST_STEPS: usize = 1000;

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
    /// Whether it goes on for longer than anybody follows.
    pub(super) endless: bool,
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
    /// At a version from which no update leads on; the head that is not reached.
    Stranded(String),
    /// At a version that the channel does not have, and that it has no update for.
    Outside,
    /// There is an update, and it cannot be taken; what stands in the way, if that is known.
    Held { next: String, why: Option<Cause> },
    /// The Subscription is part of what fails.
    Failed,
    /// It is installed, and no Subscription asks for upgrades.
    Unsubscribed,
    /// There is no content to tell.
    Unknown,
}

impl End {
    /// The word for programs.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Stranded(_) => "stranded",
            Self::Outside => "outside",
            Self::Held { .. } => "held",
            Self::Failed => "failed",
            Self::Unsubscribed => "unsubscribed",
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
        let mut step = 1;
        let endless = loop {
            let outcome = resolve(&now);
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
            first.get_or_insert(outcome);
            if !moves || step == MOST_STEPS {
                break moves;
            }
            step += 1;
        };
        let outcome = first.unwrap_or_default();
        for operator in &mut operators {
            operator.end = end(operator, &now, &entries, &outcome);
        }
        // What happens first comes first; what never moves comes last.
        operators.sort_by(|a, b| {
            let step = |it: &Operator| it.hops.first().map_or(usize::MAX, |hop| hop.step);
            (step(a), &a.package, a.last()).cmp(&(step(b), &b.package, b.last()))
        });
        Self { namespace: world.namespace.clone(), outcome, operators, later, endless }
    }
}

/// Whether something that is asked for fails.
pub(super) fn fails(outcome: &Outcome) -> bool {
    let blocks =
        |it: &Failure| it.kind == FailureKind::NotSatisfiable || !it.subscriptions.is_empty();
    outcome.failures.iter().any(blocks)
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

/// Where the way of an operator ends, and why there.
fn end(operator: &mut Operator, world: &World<'_>, entries: &Entries<'_>, first: &Outcome) -> End {
    let fails =
        |name: &String| first.failures.iter().any(|failure| failure.subscriptions.contains(name));
    if operator.hops.is_empty() && operator.subscriptions.iter().any(fails) {
        return End::Failed;
    }
    if operator.hops.is_empty() && operator.subscriptions.is_empty() {
        return End::Unsubscribed;
    }
    let Some(last) = operator.last().map(str::to_owned) else { return End::Unknown };
    let last = &*last;
    let channel = entries.channel(&operator.catalog, &operator.package, &operator.channel, last);
    let Some(channel) = channel else { return End::Unknown };
    channel.name.clone_into(&mut operator.channel);
    let head = channel.head();
    if head == Some(last) {
        return End::Head;
    }
    let version = world.csvs.iter().find(|csv| csv.name == last).and_then(|it| it.version.as_ref());
    match channel.successor(last, version) {
        Some(next) if !operator.subscriptions.is_empty() => {
            End::Held { next: next.name().to_owned(), why: held(world, next) }
        }
        Some(_) => End::Unknown,
        None if !channel.has(last) => End::Outside,
        None => End::Stranded(head.unwrap_or_default().to_owned()),
    }
}

/// Why an entry cannot be taken: what fails when it is demanded.
fn held(world: &World<'_>, next: EntryView<'_>) -> Option<Cause> {
    let range = Range::parse(&format!("={}", next.version()?)).ok()?;
    let mut world = world.clone();
    // What cannot be read would be all that is told.
    world.catalogs.retain(|view| is_ready(&view.content));
    let before = resolve(&world).failures;
    world.demands.push(Demand { package: next.package().to_owned(), range: Some(range) });
    let new = |failure: &Failure| before.iter().all(|it| it.message != failure.message);
    let cause = resolve(&world).failures.into_iter().find(new)?.cause;
    Some(about(&cause, &format!("`{}`", next.name())).unwrap_or(&cause).clone())
}

/// The first part of a cause that begins with a name: the rest is about the demand, which nobody
/// has but the one who asked why.
fn about<'c>(cause: &'c Cause, name: &str) -> Option<&'c Cause> {
    if cause.what().starts_with(name) {
        return Some(cause);
    }
    cause.children().iter().find_map(|child| about(child, name))
}

/// Whether a catalog has content.
pub(super) const fn is_ready(content: &Content<'_>) -> bool {
    matches!(content, Content::Ready(_))
}
