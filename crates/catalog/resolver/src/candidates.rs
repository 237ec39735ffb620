//! From a world to a problem: which candidates there are, in which order, and what binds them.
//!
//! Candidates of a Subscription are the entries of its catalog, package and channel (and, as long
//! as nothing is installed, of the name `startingCSV`): default channel first, then channels by
//! name, inside a channel from the head downwards. With something installed only those one hop away
//! remain, followed by what is installed: staying is the last choice.
//!
//! Candidates of a requirement come from every visible catalog: existing operators first, then the
//! catalog of the one that requires, then by priority, own namespace, name. Whole channels are
//! sorted before the requirement picks from them, because what a channel skips cannot be picked.

use crate::channel;
use crate::existing::{self, Existing};
use crate::predicate::Predicate;
use crate::problem::{Problem, Reason, Rule, Subject, Var};
use crate::property::{Api, Facts};
use crate::snapshot::{Entry, Snapshot};
use crate::texts::aggregate;
use crate::world::{CatalogKey, Content, Subscription, World};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// An entry of one of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EntryRef {
    /// Index of the source; zero are the existing operators.
    pub source: usize,
    /// Index of the entry in the source.
    pub entry: u32,
}

/// Where entries come from.
struct Source<'a> {
    key: CatalogKey,
    priority: i64,
    snapshot: &'a Snapshot,
}

/// The problem of a world, with everything that gives its variables a meaning.
pub(crate) struct Candidates<'a> {
    pub problem: Problem,
    /// In order of their names.
    pub subscriptions: Vec<&'a Subscription>,
    /// For variables that upgrade something: its name.
    pub replacements: HashMap<Var, String>,
    sources: Vec<Source<'a>>,
    variables: HashMap<(usize, &'a str, &'a str), Var>,
    /// What meets a requirement of something in a source: many versions require the same.
    known_providers: HashMap<(usize, &'a Predicate), Vec<Var>>,
    /// Errors of catalogs, to be reported when nothing else is wrong.
    catalog_errors: Vec<String>,
}

/// A list of errors that end resolution.
pub(crate) type Errors = Vec<String>;

impl<'a> Candidates<'a> {
    /// States the problem of a world.
    pub(crate) fn of(
        world: &'a World<'a>,
        exclude_global: bool,
        existing: &'a Existing,
    ) -> Result<Self, String> {
        let mut subscriptions: Vec<&Subscription> = world.subscriptions.iter().collect();
        subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
        let mut this = Self {
            problem: Problem::default(),
            subscriptions,
            replacements: HashMap::new(),
            sources: Vec::new(),
            variables: HashMap::new(),
            known_providers: HashMap::new(),
            catalog_errors: Vec::new(),
        };
        this.add_sources(world, exclude_global, existing);
        this.add_existing(existing).map_err(|errors| aggregate(&errors))?;
        let mut errors = Vec::new();
        for at in 0..this.subscriptions.len() {
            if let Err(error) = this.add_subscription(at) {
                errors.push(aggregate(&error));
            }
        }
        if !errors.is_empty() {
            return Err(aggregate(&errors));
        }
        this.add_uniqueness();
        if !this.catalog_errors.is_empty() {
            return Err(aggregate(&this.catalog_errors));
        }
        Ok(this)
    }

    /// The entry of a reference, with what its bundle says.
    pub(crate) fn entry(&self, at: EntryRef) -> (&'a Entry, &'a Facts) {
        self.sources[at.source].snapshot.entry(at.entry)
    }

    /// The catalog of an entry.
    pub(crate) fn catalog(&self, at: EntryRef) -> &CatalogKey {
        &self.sources[at.source].key
    }

    /// How often the name of an entry comes in its channel; more than once is an error.
    pub(crate) fn occurrences(&self, at: EntryRef) -> usize {
        let (entry, _) = self.entry(at);
        let snapshot = self.sources[at.source].snapshot;
        snapshot
            .named(&entry.name)
            .iter()
            .filter(|other| snapshot.entry(**other).0.channel == entry.channel)
            .count()
    }

    /// The name of a variable in texts: `catalog/namespace/channel/name` for candidates.
    pub(crate) fn identifier(&self, var: Var) -> String {
        match self.problem.subjects[var.index()] {
            Subject::Bundle(at) => {
                let entry = self.entry(at).0;
                format!("{}/{}/{}", self.catalog(at), entry.channel, entry.name)
            }
            Subject::Subscription(at) => self.subscriptions[at].name.clone(),
        }
    }

    fn add_sources(&mut self, world: &World<'a>, exclude_global: bool, existing: &'a Existing) {
        let own = CatalogKey::new(existing::CATALOG, &*world.namespace);
        if let Some(error) = &existing.error {
            self.catalog_errors.push(using(&own, error));
        }
        self.sources.push(Source { key: own, priority: 0, snapshot: &existing.snapshot });
        let mut visible: Vec<_> = world
            .catalogs
            .iter()
            .filter(|catalog| {
                catalog.key.namespace == world.namespace
                    || (!exclude_global && catalog.key.namespace == world.global_namespace)
            })
            .collect();
        visible.sort_by(|a, b| {
            let foreign = |key: &CatalogKey| key.namespace != world.namespace;
            (b.priority.cmp(&a.priority))
                .then_with(|| foreign(&a.key).cmp(&foreign(&b.key)))
                .then_with(|| a.key.cmp(&b.key))
        });
        for catalog in visible {
            let key = catalog.key.clone();
            match &catalog.content {
                Content::Ready(snapshot) => {
                    self.sources.push(Source { key, priority: catalog.priority, snapshot });
                }
                Content::NotConnected => {
                    let CatalogKey { name, namespace } = &key;
                    let error = format!(
                        "no registry client established for catalogsource {namespace}/{name}"
                    );
                    self.catalog_errors.push(using(&key, &error));
                }
                Content::Failed(reason) => {
                    let error = format!("failed to list bundles: {reason}");
                    self.catalog_errors.push(using(&key, &error));
                }
            }
        }
    }

    fn add_existing(&mut self, existing: &'a Existing) -> Result<(), Errors> {
        let count = existing.subscribed.len();
        let all: Vec<_> = (0..count)
            .map(|at| EntryRef { source: 0, entry: u32::try_from(at).unwrap_or(u32::MAX) })
            .collect();
        // Variables first, so that existing operators are tried in the order of their names.
        for (&at, subscribed) in all.iter().zip(&existing.subscribed) {
            let (var, _) = self.variable(at);
            if !subscribed {
                self.problem.constrain(Some(var), Rule::Mandatory, Reason::Unsubscribed);
            }
            self.add_deprecation(var, at);
        }
        self.add_requirements(all)
    }

    /// The variable of an entry, and whether it was made now.
    fn variable(&mut self, at: EntryRef) -> (Var, bool) {
        let entry = self.entry(at).0;
        let key = (at.source, &*entry.channel, &*entry.name);
        if let Some(var) = self.variables.get(&key) {
            return (*var, false);
        }
        let var = self.problem.variable(Subject::Bundle(at));
        self.variables.insert(key, var);
        (var, true)
    }

    fn add_deprecation(&mut self, var: Var, at: EntryRef) {
        if self.entry(at).1.deprecated {
            self.problem.constrain(Some(var), Rule::Prohibited, Reason::Deprecated);
        }
    }

    /// Adds entries that are new, and everything that may meet their requirements.
    fn add_bundles(&mut self, entries: &[EntryRef]) -> Result<Vec<Var>, Errors> {
        let mut new = Vec::new();
        let mut vars = Vec::with_capacity(entries.len());
        for &at in entries {
            let (var, made) = self.variable(at);
            if made {
                self.add_deprecation(var, at);
                new.push(at);
            }
            vars.push(var);
        }
        self.add_requirements(new)?;
        Ok(vars)
    }

    fn add_requirements(&mut self, mut stack: Vec<EntryRef>) -> Result<(), Errors> {
        let mut errors = Vec::new();
        stack.reverse();
        while let Some(at) = stack.pop() {
            let (var, _) = self.variable(at);
            let facts = self.entry(at).1;
            if let Some(reason) = &facts.unreadable {
                errors.push(reason.clone());
                continue;
            }
            for (number, requirement) in facts.requirements.iter().enumerate() {
                let key = (at.source, requirement);
                let vars = if let Some(known) = self.known_providers.get(&key) {
                    known.clone()
                } else {
                    match self.providers(at.source, requirement) {
                        Ok(providers) => {
                            let vars = self.add_providers(&providers, &mut stack);
                            self.known_providers.insert(key, vars.clone());
                            vars
                        }
                        Err(error) => {
                            errors.push(error);
                            continue;
                        }
                    }
                };
                let rule = Rule::Dependency(vars);
                self.problem.constrain(Some(var), rule, Reason::Required(number));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// The variables of providers; those that are new are put on the stack.
    fn add_providers(&mut self, providers: &[EntryRef], stack: &mut Vec<EntryRef>) -> Vec<Var> {
        let mut vars = Vec::with_capacity(providers.len());
        let mut seen = HashSet::new();
        for &provider in providers {
            let (var, made) = self.variable(provider);
            if made {
                self.add_deprecation(var, provider);
                stack.push(provider);
            }
            if seen.insert(var) {
                vars.push(var);
            }
        }
        vars
    }

    /// The entries that meet a requirement of something in a source, best first.
    fn providers(&self, of: usize, requirement: &Predicate) -> Result<Vec<EntryRef>, String> {
        let mut order: Vec<usize> = (0..self.sources.len()).collect();
        // Existing operators, then the source itself, then the others as they are sorted.
        order.sort_by_key(|&source| (source != 0, source != of, source));
        let mut providers = Vec::new();
        for source in order {
            let snapshot = self.sources[source].snapshot;
            let matching = snapshot.matching(requirement);
            if matching.is_empty() {
                continue;
            }
            let mut whole = BTreeSet::new();
            let mut seen = BTreeSet::new();
            for at in matching {
                let entry = snapshot.entry(at).0;
                if source == 0 {
                    whole.insert(at);
                } else if seen.insert((&*entry.package, &*entry.channel)) {
                    let same = snapshot.of_package(&entry.package).iter().copied();
                    whole.extend(same.filter(|at| snapshot.entry(*at).0.channel == entry.channel));
                }
            }
            let mut channels: BTreeMap<_, Vec<u32>> = BTreeMap::new();
            for at in whole {
                let entry = snapshot.entry(at).0;
                let key = (!entry.default_channel, &*entry.package, &*entry.channel);
                channels.entry(key).or_default().push(at);
            }
            for entries in channels.into_values() {
                for at in channel::sort(&entries, |at| snapshot.entry(at).0)? {
                    let (entry, facts) = snapshot.entry(at);
                    if requirement.holds(entry, facts) {
                        providers.push(EntryRef { source, entry: at });
                    }
                }
            }
        }
        Ok(providers)
    }

    fn add_subscription(&mut self, at: usize) -> Result<(), Errors> {
        let subscription = self.subscriptions[at];
        let installed = self.installed(subscription);
        let found = self.subscribed_entries(subscription, installed.is_none());
        let entries = match found {
            Ok(entries) => entries,
            Err(text) => {
                let var = self.problem.variable(Subject::Subscription(at));
                self.problem.constrain(Some(var), Rule::Mandatory, Reason::Exists);
                self.problem.constrain(Some(var), Rule::Prohibited, Reason::Invalid(text));
                return Ok(());
            }
        };
        let mut sorted = self.sort_subscribed(entries).map_err(|error| vec![error])?;
        if let Some(current) = installed {
            let current = self.entry(current).0;
            sorted.retain(|at| is_one_hop(self.entry(*at).0, current));
        }
        let mut candidates = self.add_bundles(&sorted)?;
        if let Some(current) = installed {
            let (current_var, _) = self.variable(current);
            let name = self.entry(current).0.name.to_string();
            for &candidate in &candidates {
                // A Subscription to every catalog finds existing operators too.
                if candidate != current_var {
                    self.replacements.insert(candidate, name.clone());
                }
                let rule = Rule::Conflict(current_var);
                self.problem.constrain(Some(candidate), rule, Reason::Replaced);
            }
            candidates.push(current_var);
        }
        let mut seen = HashSet::new();
        candidates.retain(|candidate| seen.insert(*candidate));
        let var = self.problem.variable(Subject::Subscription(at));
        self.problem.constrain(Some(var), Rule::Mandatory, Reason::Exists);
        self.problem.constrain(Some(var), Rule::Dependency(candidates), Reason::Wanted);
        Ok(())
    }

    /// The existing operator that a Subscription says is installed.
    fn installed(&self, subscription: &Subscription) -> Option<EntryRef> {
        let name = &subscription.installed_csv;
        let entry = *self.sources[0].snapshot.named(name).first()?;
        Some(EntryRef { source: 0, entry })
    }

    /// The entries that a Subscription is about, or the text that says why there are none.
    fn subscribed_entries(
        &self,
        subscription: &Subscription,
        fresh: bool,
    ) -> Result<Vec<EntryRef>, String> {
        let Subscription { name, package, channel, starting_csv, catalog, .. } = subscription;
        let sources = self.subscribed_sources(catalog);
        if sources.iter().all(|source| self.sources[*source].snapshot.is_empty()) {
            let CatalogKey { name: source, namespace } = catalog;
            return Err(format!(
                "no operators found from catalog {source} in namespace {namespace} referenced by \
                 subscription {name}"
            ));
        }
        let mut entries: Vec<EntryRef> = sources
            .iter()
            .flat_map(|&source| {
                let of_package = self.sources[source].snapshot.of_package(package);
                of_package.iter().map(move |&entry| EntryRef { source, entry })
            })
            .collect();
        if entries.is_empty() {
            return Err(format!(
                "no operators found in package {package} in the catalog referenced by \
                 subscription {name}"
            ));
        }
        if !channel.is_empty() {
            entries.retain(|at| *self.entry(*at).0.channel == **channel);
        }
        if entries.is_empty() {
            return Err(format!(
                "no operators found in channel {channel} of package {package} in the catalog \
                 referenced by subscription {name}"
            ));
        }
        if fresh && !starting_csv.is_empty() {
            entries.retain(|at| *self.entry(*at).0.name == **starting_csv);
        }
        if entries.is_empty() {
            return Err(format!(
                "no operators found with name {starting_csv} in channel {channel} of package \
                 {package} in the catalog referenced by subscription {name}"
            ));
        }
        Ok(entries)
    }

    /// The sources that a Subscription names; all of them if it names none.
    fn subscribed_sources(&self, catalog: &CatalogKey) -> Vec<usize> {
        let all = 0..self.sources.len();
        if catalog.name.is_empty() && catalog.namespace.is_empty() {
            let mut all: Vec<usize> = all.collect();
            all.sort_by(|a, b| {
                let (a, b) = (&self.sources[*a], &self.sources[*b]);
                b.priority.cmp(&a.priority).then_with(|| a.key.cmp(&b.key))
            });
            return all;
        }
        all.filter(|source| self.sources[*source].key == *catalog).collect()
    }

    /// Default channel first, then by name; inside a channel from the head downwards.
    fn sort_subscribed(&self, mut entries: Vec<EntryRef>) -> Result<Vec<EntryRef>, String> {
        entries.sort_by_key(|at| {
            let entry = self.entry(*at).0;
            (!entry.default_channel, entry.channel.clone())
        });
        let mut sorted = Vec::with_capacity(entries.len());
        for channel in entries.chunk_by(|a, b| self.entry(*a).0.channel == self.entry(*b).0.channel)
        {
            // Entries of several sources can share a channel; positions stand for them.
            let positions: Vec<u32> =
                (0..u32::try_from(channel.len()).unwrap_or(u32::MAX)).collect();
            let order = channel::sort(&positions, |at| self.entry(channel[at as usize]).0)?;
            sorted.extend(order.into_iter().map(|at| channel[at as usize]));
        }
        Ok(sorted)
    }

    /// At most one provider of each kind, and at most one operator of each package.
    fn add_uniqueness(&mut self) {
        let mut apis: BTreeMap<&Api, Vec<(String, Var)>> = BTreeMap::new();
        let mut packages: BTreeMap<&str, Vec<(String, Var)>> = BTreeMap::new();
        for (at, subject) in self.problem.subjects.iter().enumerate() {
            let Subject::Bundle(entry) = *subject else { continue };
            if self.is_unreadable(entry) || self.occurrences(entry) != 1 {
                continue;
            }
            let var = Var(u32::try_from(at).unwrap_or(u32::MAX));
            let identifier = self.identifier(var);
            let facts = self.entry(entry).1;
            for api in &facts.apis {
                apis.entry(api).or_default().push((identifier.clone(), var));
            }
            for (package, _) in &facts.packages {
                packages.entry(package).or_default().push((identifier.clone(), var));
            }
        }
        let sorted = |mut list: Vec<(String, Var)>| {
            list.sort();
            list.into_iter().map(|(_, var)| var).collect::<Vec<_>>()
        };
        let mut rules = Vec::new();
        for (api, list) in apis.into_iter().filter(|(_, list)| list.len() > 1) {
            rules.push((sorted(list), Reason::OneProvider(api.clone())));
        }
        for (package, list) in packages.into_iter().filter(|(_, list)| list.len() > 1) {
            rules.push((sorted(list), Reason::OneOfPackage(package.to_owned())));
        }
        for (vars, reason) in rules {
            self.problem.constrain(None, Rule::AtMostOne(vars), reason);
        }
    }

    /// Whether the name of a candidate cannot be taken apart again, because a part has a slash.
    pub(crate) fn is_unreadable(&self, at: EntryRef) -> bool {
        let (entry, key) = (self.entry(at).0, self.catalog(at));
        [&*key.name, &*key.namespace, &*entry.channel, &*entry.name]
            .iter()
            .any(|part| part.contains('/'))
    }
}

fn using(key: &CatalogKey, error: &str) -> String {
    format!("error using catalogsource {}/{}: {error}", key.namespace, key.name)
}

/// Whether an entry is a direct successor of what is installed.
fn is_one_hop(entry: &Entry, installed: &Entry) -> bool {
    let in_range = || match (&entry.skip_range, &installed.version) {
        (Some(range), Some(version)) => range.contains(version),
        _ => false,
    };
    entry.replaces.as_deref() == Some(&*installed.name)
        || entry.skips.contains(&installed.name)
        || in_range()
}
