//! Where the ways of operators end, and why there.

use super::entries::Entries;
use super::walk::{End, Operator, is_ready};
use mainstay_cause::Cause;
use mainstay_resolver::{CatalogKey, Demand, Failure, Memory, Outcome, World, resolve_again};
use mainstay_updates as updates;
use mainstay_updates::{Graph, Installed, Semantics};
use mainstay_version::{Range, Version};
use std::collections::{BTreeSet, HashMap};

/// For how many operators of a namespace it is looked into what holds them.
const MOST_EXPLAINED: usize = 40;

/// What looking into it may take for all of them, in steps of a search.
const BUDGET: u64 = 300_000_000;

/// A world at the end of its way.
pub(super) struct Ends<'e, 'a> {
    world: World<'a>,
    entries: &'e Entries<'a>,
    /// What was resolved first.
    first: &'e Outcome,
    /// Whether the way was not followed to its end.
    cut: bool,
    memory: Memory,
    graphs: HashMap<(CatalogKey, String), Option<Graph>>,
    /// What fails anyway; known once it matters.
    before: Option<BTreeSet<String>>,
    explained: usize,
    unexplained: usize,
    /// What was spent before ends were looked for.
    spent: u64,
}

impl<'e, 'a> Ends<'e, 'a> {
    pub(super) fn new(
        mut world: World<'a>,
        entries: &'e Entries<'a>,
        first: &'e Outcome,
        cut: bool,
        memory: Memory,
    ) -> Self {
        // What cannot be read would be all that is told.
        world.catalogs.retain(|view| is_ready(&view.content));
        let spent = memory.spent();
        Self {
            world,
            entries,
            first,
            cut,
            memory,
            graphs: HashMap::new(),
            before: None,
            explained: 0,
            unexplained: 0,
            spent,
        }
    }

    /// How many operators are held for reasons that were not looked into.
    pub(super) const fn unexplained(&self) -> usize {
        self.unexplained
    }

    /// Where the way of an operator ends, and why there. Gives it the channel where that is.
    pub(super) fn of(&mut self, operator: &mut Operator) -> End {
        let fails = |name: &String| {
            self.first.failures.iter().any(|failure| failure.subscriptions.contains(name))
        };
        if operator.hops.is_empty() && operator.subscriptions.iter().any(fails) {
            return End::Failed;
        }
        let Some(last) = operator.last().map(str::to_owned) else { return End::Unknown };
        let asking = self.world.subscriptions.iter().find(|it| it.installed_csv == last);
        if operator.hops.is_empty() && operator.subscriptions.is_empty() && asking.is_none() {
            return End::Unsubscribed;
        }
        // Where the Subscription names no channel, all of them count.
        let asked = asking.map(|it| it.channel.clone());
        let channel = asked.unwrap_or_else(|| operator.channel.clone());
        let key = (operator.catalog.clone(), operator.package.clone());
        let entries = self.entries;
        let graph = self
            .graphs
            .entry(key)
            .or_insert_with_key(|(catalog, package)| entries.graph(catalog, package));
        let Some(graph) = graph else { return End::Unknown };
        let version = self.world.csvs.iter().find(|csv| csv.name == last);
        let (channel, way) =
            leads(graph, &channel, operator, &last, version.and_then(|csv| csv.version.as_ref()));
        operator.channel = channel;
        match way {
            Way::Done(end) => end,
            Way::On { next, .. } if self.cut => End::Cut { next },
            Way::On { next, version } => {
                let why = version.and_then(|version| self.held(&operator.package, &next, &version));
                End::Held { next, why }
            }
        }
    }

    /// Why an entry cannot be taken: what fails when it is demanded.
    fn held(&mut self, package: &str, next: &str, version: &Version) -> Option<Cause> {
        let range = Range::parse(&format!("={version}")).ok()?;
        if self.explained == MOST_EXPLAINED || self.memory.spent() - self.spent > BUDGET {
            self.unexplained += 1;
            return None;
        }
        self.explained += 1;
        let (world, memory) = (&mut self.world, &mut self.memory);
        let before = self.before.get_or_insert_with(|| {
            resolve_again(world, memory).failures.into_iter().map(|it| it.message).collect()
        });
        world.demands.push(Demand { package: package.to_owned(), range: Some(range) });
        let failures = resolve_again(world, memory).failures;
        world.demands.pop();
        let new = |failure: &Failure| !before.contains(&failure.message);
        let cause = failures.into_iter().find(new)?.cause;
        Some(about(&cause, &format!("`{next}`")).unwrap_or(&cause).clone())
    }
}

/// Where the update graph leads from a version.
enum Way {
    Done(End),
    On { next: String, version: Option<Version> },
}

/// Where updates lead from what an operator has, and in which channel it is. `asked` is the channel
/// that the Subscription names.
fn leads(
    graph: &Graph,
    asked: &str,
    operator: &Operator,
    last: &str,
    version: Option<&Version>,
) -> (String, Way) {
    let holds = |name: &str| graph.channel(name).is_some_and(|it| it.entry(last).is_some());
    let named: &[&str] = if asked.is_empty() { &[] } else { &[asked] };
    let mut channel = if asked.is_empty() { operator.channel.clone() } else { asked.to_owned() };
    if asked.is_empty() && !holds(&channel) {
        let all = graph.channels().iter().map(|it| &*it.name);
        let mut holding: Vec<&str> = all.filter(|name| holds(name)).collect();
        holding.sort_by_key(|name| (**name != *graph.default_channel, *name));
        channel = holding
            .first()
            .map_or_else(|| graph.default_channel.to_string(), |it| (*it).to_owned());
    }
    let Ok(view) = graph.view(Semantics::Classic, named) else {
        return (channel, Way::Done(End::Unknown));
    };
    let Some(head) = view.head() else { return (channel, Way::Done(End::Unknown)) };
    let of_channel = graph.channel(&channel).and_then(updates::Channel::head);
    if *head.name == *last || of_channel.is_some_and(|head| *head.name == *last) {
        return (channel, Way::Done(End::Head));
    }
    let installed = Installed::new(last, version);
    if let Some(next) = view.next(&installed) {
        let (name, version) = (next.bundle.name.to_string(), next.bundle.version.clone());
        return (channel, Way::On { next: name, version });
    }
    let end = match view.path(&installed).end {
        updates::End::Uncovered if !holds(&channel) => End::Outside,
        updates::End::Uncovered => {
            End::Stranded { head: head.name.to_string(), why: String::new() }
        }
        end => End::Stranded { head: head.name.to_string(), why: end.to_string() },
    };
    (channel, Way::Done(end))
}

/// The first part of a cause that begins with a name: the rest is about the demand, which nobody
/// has but the one who asked why.
fn about<'c>(cause: &'c Cause, name: &str) -> Option<&'c Cause> {
    if cause.what().starts_with(name) {
        return Some(cause);
    }
    cause.children().iter().find_map(|child| about(child, name))
}
