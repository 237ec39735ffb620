//! Channel heads: whether the upgrade path of an operator reaches one, and why it ends before.

use crate::entries::Entries;
use crate::input::is_ready;
use crate::walk::{OperatorPath, WalkEnd};
use mainstay_cause::Cause;
use mainstay_resolver::{
    CatalogKey, Demand, Resolution, ResolutionCache, ResolutionFailure, ResolutionInput,
    resolve_again,
};
use mainstay_updates as updates;
use mainstay_updates::{Graph, InstalledBundle, Semantics};
use mainstay_version::{Range, Version};
use std::collections::{BTreeSet, HashMap};

/// Most operators of a namespace whose held updates are explained.
const MAX_EXPLANATIONS: usize = 40;

/// Most search steps for all explanations of a namespace.
const BUDGET: u64 = 300_000_000;

/// The resolution input after the last step of a walk, from which path ends are found.
pub(crate) struct HeadSearch<'e, 'a> {
    input: ResolutionInput<'a>,
    entries: &'e Entries<'a>,
    /// The outcome of the first step.
    first: &'e Resolution,
    /// Whether the walk was cut short.
    is_cut: bool,
    memory: ResolutionCache,
    graphs: HashMap<(CatalogKey, String), Option<Graph>>,
    /// The messages of failures without any demand; computed on first use.
    baseline_failures: Option<BTreeSet<String>>,
    explained: usize,
    unexplained: usize,
    /// Search steps before the first explanation.
    spent: u64,
}

impl<'e, 'a> HeadSearch<'e, 'a> {
    pub(crate) fn new(
        mut input: ResolutionInput<'a>,
        entries: &'e Entries<'a>,
        first: &'e Resolution,
        is_cut: bool,
        memory: ResolutionCache,
    ) -> Self {
        // A catalog without content would be the only failure of every explanation.
        input.catalogs.retain(|view| is_ready(&view.content));
        let spent = memory.spent();
        Self {
            input,
            entries,
            first,
            is_cut,
            memory,
            graphs: HashMap::new(),
            baseline_failures: None,
            explained: 0,
            unexplained: 0,
            spent,
        }
    }

    /// The number of held operators without an explanation.
    pub(crate) const fn unexplained(&self) -> usize {
        self.unexplained
    }

    /// The end of the upgrade path of an operator. Sets the channel of the path to that of its end.
    pub(crate) fn end_of(&mut self, path: &mut OperatorPath) -> WalkEnd {
        let fails = |name: &String| {
            self.first.failures.iter().any(|failure| failure.subscriptions.contains(name))
        };
        if path.hops.is_empty() && path.subscriptions.iter().any(fails) {
            return WalkEnd::Failed;
        }
        let Some(last) = path.last().map(str::to_owned) else { return WalkEnd::Unknown };
        let mut subscriptions = self.input.subscriptions.iter();
        let subscription = subscriptions.find(|subscription| subscription.installed_csv == last);
        if path.hops.is_empty() && path.subscriptions.is_empty() && subscription.is_none() {
            return WalkEnd::Unsubscribed;
        }
        // Where the Subscription names no channel, all of them count.
        let named = subscription.map(|subscription| subscription.channel.clone());
        let channel = named.unwrap_or_else(|| path.channel.clone());
        let key = (path.catalog.clone(), path.package.clone());
        let entries = self.entries;
        let graph = self
            .graphs
            .entry(key)
            .or_insert_with_key(|(catalog, package)| entries.graph(catalog, package));
        let Some(graph) = graph else { return WalkEnd::Unknown };
        let csv = self.input.csvs.iter().find(|csv| csv.name == last);
        let (channel, next) =
            next_update(graph, &channel, path, &last, csv.and_then(|csv| csv.version.as_ref()));
        path.channel = channel;
        match next {
            Next::End(end) => end,
            Next::Update { next, .. } if self.is_cut => WalkEnd::Cut { next },
            Next::Update { next, version } => {
                let why = version.and_then(|version| self.explain(&path.package, &next, &version));
                WalkEnd::Held { next, why }
            }
        }
    }

    /// Why an update cannot be chosen: the failure of a resolution that demands it.
    fn explain(&mut self, package: &str, next: &str, version: &Version) -> Option<Cause> {
        let range = Range::parse(&format!("={version}")).ok()?;
        if self.explained == MAX_EXPLANATIONS || self.memory.spent() - self.spent > BUDGET {
            self.unexplained += 1;
            return None;
        }
        self.explained += 1;
        let (input, memory) = (&mut self.input, &mut self.memory);
        let baseline_failures = self.baseline_failures.get_or_insert_with(|| {
            let failures = resolve_again(input, memory).failures.into_iter();
            failures.map(|failure| failure.message).collect()
        });
        input.demands.push(Demand { package: package.to_owned(), range: Some(range) });
        let failures = resolve_again(input, memory).failures;
        input.demands.pop();
        let is_new = |failure: &ResolutionFailure| !baseline_failures.contains(&failure.message);
        let cause = failures.into_iter().find(is_new)?.cause;
        Some(part_about(&cause, &format!("`{next}`")).unwrap_or(&cause).clone())
    }
}

/// The successor of a version in the update graph.
enum Next {
    End(WalkEnd),
    Update { next: String, version: Option<Version> },
}

/// The update that follows the last version of a path, and the channel of that version. `requested` is
/// the channel that the Subscription names.
fn next_update(
    graph: &Graph,
    requested: &str,
    path: &OperatorPath,
    last: &str,
    version: Option<&Version>,
) -> (String, Next) {
    let holds =
        |name: &str| graph.channel(name).is_some_and(|channel| channel.entry(last).is_some());
    let named: &[&str] = if requested.is_empty() { &[] } else { &[requested] };
    let mut channel =
        if requested.is_empty() { path.channel.clone() } else { requested.to_owned() };
    if requested.is_empty() && !holds(&channel) {
        let all = graph.channels().iter().map(|channel| &*channel.name);
        let mut holding: Vec<&str> = all.filter(|name| holds(name)).collect();
        holding.sort_by_key(|name| (**name != *graph.default_channel, *name));
        channel = holding
            .first()
            .map_or_else(|| graph.default_channel.to_string(), |name| (*name).to_owned());
    }
    let Ok(view) = graph.view(Semantics::Classic, named) else {
        return (channel, Next::End(WalkEnd::Unknown));
    };
    let Some(head) = view.head() else { return (channel, Next::End(WalkEnd::Unknown)) };
    let of_channel = graph.channel(&channel).and_then(updates::GraphChannel::head);
    if *head.name == *last || of_channel.is_some_and(|head| *head.name == *last) {
        return (channel, Next::End(WalkEnd::Head));
    }
    let installed = InstalledBundle::new(last, version);
    if let Some(next) = view.next(&installed) {
        let (name, version) = (next.bundle.name.to_string(), next.bundle.version.clone());
        return (channel, Next::Update { next: name, version });
    }
    let end = match view.path(&installed).end {
        updates::PathEnd::Uncovered if !holds(&channel) => WalkEnd::Outside,
        updates::PathEnd::Uncovered => {
            WalkEnd::Stranded { head: head.name.to_string(), why: String::new() }
        }
        end => WalkEnd::Stranded { head: head.name.to_string(), why: end.to_string() },
    };
    (channel, Next::End(end))
}

/// The first part of a cause that begins with a name: the rest is about the demand, which exists
/// only for the explanation.
fn part_about<'c>(cause: &'c Cause, name: &str) -> Option<&'c Cause> {
    if cause.what().starts_with(name) {
        return Some(cause);
    }
    cause.children().iter().find_map(|child| part_about(child, name))
}
