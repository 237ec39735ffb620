//! Candidates: states the resolution problem of an input, with the candidates of each Subscription
//! and requirement in order of preference.
//!
//! Candidates of a Subscription are the entries of its catalog, package and channel; before the
//! first installation only those with the name `startingCSV`. The default channel comes first, then
//! the other channels by name, each from its head downwards. With an installed
//! `ClusterServiceVersion` only its direct successors remain, followed by itself: to stay is the
//! last choice.
//!
//! Candidates of a requirement come from all visible catalogs: existing operators first, then the
//! catalog of the requiring bundle, then catalogs by priority, own namespace and name. Whole
//! channels are sorted before the requirement selects from them, because skipped entries are no
//! candidates.
//!
//! Broken input becomes a [`Fault`] and gives no candidates. A Subscription with a fault has no
//! variable, and its installed `ClusterServiceVersion` stays.

mod error;
mod subscribed;

pub(crate) use error::{CatalogError, CatalogReason, FaultReason};

use crate::channel::{self, ChannelError};
use crate::existing::{self, Existing};
use crate::input::{CatalogContent, CatalogKey, Demand, Prohibited, ResolutionInput, Subscription};
use crate::predicate::Predicate;
use crate::problem::{Problem, Reason, Rule, Subject, Var};
use crate::property::{Facts, OperatorApi};
use crate::snapshot::{Entry, Providers, Snapshot};
use mainstay_version::Version;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::LazyLock;

/// How many steps the search for all candidates takes at most: tests of a requirement on a bundle,
/// costs of CEL expressions, candidates on lists. A step takes some nanoseconds.
///
/// Each Subscription, demand or set of existing operators may use half of the remaining steps, so
/// that one that is made to be hard does not block the others.
const BUDGET: u64 = 200_000_000;

/// How many steps each of them may use, however many steps are used up.
const MIN_STEPS: u64 = 100_000;

/// How many steps the lookup of one requirement in one catalog takes at most.
pub(crate) const MAX_LOOKUP_STEPS: u64 = 20_000_000;

/// How many candidates all lists have at most together.
const MAX_LISTED_CANDIDATES: usize = 20_000_000;

/// An entry of one of the sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EntryRef {
    /// Index of the source; zero is the virtual catalog of existing operators.
    pub source: usize,
    /// Index of the entry in the source.
    pub entry: u32,
}

/// A catalog, or the virtual catalog of existing operators.
pub(crate) struct Source<'a> {
    pub key: CatalogKey,
    priority: i64,
    snapshot: &'a Snapshot,
    /// Why it cannot be read; the snapshot is empty then.
    pub fault: Option<CatalogError>,
}

/// The object whose requirements led to a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FaultOrigin {
    /// The existing operators.
    Existing,
    /// A demand, by its index.
    Demand(usize),
    /// A Subscription, by its index.
    Subscription(usize),
}

/// The object that a fault blocks.
#[derive(Clone, Debug)]
pub(crate) enum FaultSubject {
    /// A Subscription, which cannot be met.
    Subscription(usize),
    /// A bundle, whose requirements cannot be read.
    Bundle(Var),
    /// A constraint, for which a channel without order might have had candidates.
    Channel(usize),
}

/// Broken input that resolution leaves out.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub origin: FaultOrigin,
    pub subject: FaultSubject,
    /// Why it is broken.
    pub reason: FaultReason,
}

/// The problem of an input, with everything that gives its variables a meaning.
pub(crate) struct Candidates<'a> {
    pub problem: Problem,
    /// In order of their names.
    pub subscriptions: Vec<&'a Subscription>,
    /// In order of their packages.
    pub demands: Vec<&'a Demand>,
    /// For variables that are upgrades, the name of the installed `ClusterServiceVersion`.
    pub replacements: FxHashMap<Var, String>,
    /// The existing operators, then the visible catalogs in order of preference.
    pub sources: Vec<Source<'a>>,
    pub faults: Vec<Fault>,
    input: &'a ResolutionInput<'a>,
    /// The `status.installedCSV` of all Subscriptions.
    installed_csvs: FxHashSet<&'a str>,
    variables: FxHashMap<EntryRef, Var>,
    /// The candidates of each requirement of a source: many bundles have the same requirement.
    lists: FxHashMap<(usize, u32), CandidateList>,
    /// For each variable, the number of the last list that contains it.
    last_list: Vec<u32>,
    /// The number of lists so far.
    list_count: u32,
    /// How many candidates all lists have together.
    listed_count: usize,
    steps: u64,
    /// The limit of `steps` for the current Subscription or demand.
    step_limit: u64,
    /// Whether a single lookup exceeded its limit.
    lookup_exhausted: bool,
}

/// A list of candidates.
#[derive(Clone)]
struct CandidateList {
    vars: Rc<[Var]>,
    faults: Rc<[ChannelError]>,
}

static EMPTY: LazyLock<Snapshot> = LazyLock::new(Snapshot::default);

impl<'a> Candidates<'a> {
    /// States the problem of an input.
    pub(crate) fn of(
        input: &'a ResolutionInput<'a>,
        exclude_global: bool,
        existing: &'a Existing,
    ) -> Self {
        let mut subscriptions: Vec<&Subscription> = input.subscriptions.iter().collect();
        subscriptions.sort_by(|a, b| a.name.cmp(&b.name));
        let mut demands: Vec<&Demand> = input.demands.iter().collect();
        demands.sort_by_key(|demand| {
            (&demand.package, demand.range.as_ref().map(ToString::to_string))
        });
        let mut this = Self {
            problem: Problem::default(),
            subscriptions,
            demands,
            replacements: FxHashMap::default(),
            sources: Vec::new(),
            faults: Vec::new(),
            input,
            installed_csvs: input
                .subscriptions
                .iter()
                .map(|subscription| subscription.installed_csv.as_str())
                .collect(),
            variables: FxHashMap::default(),
            lists: FxHashMap::default(),
            last_list: Vec::new(),
            list_count: 0,
            listed_count: 0,
            steps: 0,
            step_limit: 0,
            lookup_exhausted: false,
        };
        this.add_sources(exclude_global, existing);
        this.begin_budget();
        this.add_existing(existing);
        for at in 0..this.demands.len() {
            this.begin_budget();
            this.add_demand(at);
        }
        for at in 0..this.subscriptions.len() {
            this.begin_budget();
            this.add_subscription(at);
        }
        this.keep_installed();
        this.add_uniqueness();
        this
    }

    /// How many steps the search for candidates took.
    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// The entry of a reference, with the properties of its bundle.
    pub(crate) fn entry(&self, at: EntryRef) -> (&'a Entry, &'a Facts) {
        self.sources[at.source].snapshot.entry(at.entry)
    }

    /// The catalog of an entry.
    pub(crate) fn catalog(&self, at: EntryRef) -> &CatalogKey {
        &self.sources[at.source].key
    }

    /// How often its channel has an entry of that name; more than once is an error.
    pub(crate) fn occurrences(&self, at: EntryRef) -> u32 {
        self.sources[at.source].snapshot.occurrences(at.entry)
    }

    /// The rank of a source in the preferences of a bundle of the source `own`.
    pub(crate) fn rank(own: usize, source: usize) -> usize {
        match source {
            0 => 0,
            source if source == own => 1,
            source => source + 1,
        }
    }

    /// The errors of unreadable catalogs, in the order of the sources.
    pub(crate) fn catalog_faults(&self) -> impl Iterator<Item = &CatalogError> {
        self.sources.iter().filter_map(|source| source.fault.as_ref())
    }

    /// The name of a variable in texts: `catalog/namespace/channel/name` for candidates.
    pub(crate) fn identifier(&self, var: Var) -> String {
        match self.problem.subjects[var.index()] {
            Subject::Bundle(at) => {
                let entry = self.entry(at).0;
                format!("{}/{}/{}", self.catalog(at), entry.channel, entry.name)
            }
            Subject::Subscription(at) => self.subscriptions[at].name.clone(),
            Subject::Demand(at) => self.demands[at].package.clone(),
        }
    }

    fn add_sources(&mut self, exclude_global: bool, existing: &'a Existing) {
        let input = self.input;
        let own = CatalogKey::new(existing::CATALOG, &*input.namespace);
        let fault = existing.error.clone().map(|error| CatalogError {
            catalog: own.clone(),
            reason: CatalogReason::ReadExisting(Box::new(error)),
        });
        self.sources.push(Source { key: own, priority: 0, snapshot: &existing.snapshot, fault });
        let mut visible: Vec<_> = input
            .catalogs
            .iter()
            .filter(|catalog| {
                catalog.key.namespace == input.namespace
                    || (!exclude_global && catalog.key.namespace == input.global_namespace)
            })
            .collect();
        visible.sort_by(|a, b| {
            let foreign = |key: &CatalogKey| key.namespace != input.namespace;
            let (higher, lower) = if mainstay_fault::is_on("priorities-of-catalogs-are-reversed") {
                (a, b)
            } else {
                (b, a)
            };
            (higher.priority.cmp(&lower.priority))
                .then_with(|| foreign(&a.key).cmp(&foreign(&b.key)))
                .then_with(|| a.key.cmp(&b.key))
        });
        for catalog in visible {
            let key = catalog.key.clone();
            let fault = CatalogError::of(catalog);
            let snapshot = match &catalog.content {
                CatalogContent::Ready(snapshot) => snapshot,
                _ => &*EMPTY,
            };
            self.sources.push(Source { key, priority: catalog.priority, snapshot, fault });
        }
    }

    fn add_existing(&mut self, existing: &'a Existing) {
        let mut all: Vec<(EntryRef, bool)> = (0..)
            .zip(&existing.subscribed)
            .map(|(entry, subscribed)| (EntryRef { source: 0, entry }, *subscribed))
            .collect();
        // All variables come before all requirements, so that existing operators are tried by name.
        all.sort_by(|a, b| self.entry(a.0).0.name.cmp(&self.entry(b.0).0.name));
        for &(at, subscribed) in &all {
            let (var, _) = self.variable(at);
            if !subscribed && !mainstay_fault::is_on("operators-without-subscription-may-go") {
                self.problem.constrain(Some(var), Rule::Mandatory, Reason::Unsubscribed);
            }
        }
        self.add_requirements(all.into_iter().map(|(at, _)| at).collect(), FaultOrigin::Existing);
    }

    /// The variable of an entry, and whether it is new.
    fn variable(&mut self, at: EntryRef) -> (Var, bool) {
        let first = self.sources[at.source].snapshot.first(at.entry);
        let key = EntryRef { source: at.source, entry: first };
        if let Some(var) = self.variables.get(&key) {
            return (*var, false);
        }
        let var = self.problem.variable(Subject::Bundle(at));
        self.variables.insert(key, var);
        self.add_prohibitions(var, at);
        (var, true)
    }

    /// Adds the constraints that prohibit a bundle: deprecation, prohibitions, `minKubeVersion`.
    fn add_prohibitions(&mut self, var: Var, at: EntryRef) {
        let (entry, facts) = self.entry(at);
        if facts.deprecated && !mainstay_fault::is_on("deprecated-bundles-are-chosen") {
            self.problem.constrain(Some(var), Rule::Prohibited, Reason::Deprecated);
        }
        if at.source == 0 {
            return;
        }
        let input = self.input;
        let forbidden = input.prohibitions.iter().filter(|prohibition| match &prohibition.what {
            Prohibited::Package(package) => **package == *entry.package,
            Prohibited::Bundle(name) => **name == *entry.name,
            Prohibited::OutsideOf(packages) => !packages.contains(&*entry.package),
        });
        // Of several prohibitions, the one with the least message counts.
        if let Some(forbidden) = forbidden.min_by_key(|prohibition| &prohibition.message) {
            let reason = Reason::Forbidden(forbidden.message.clone());
            self.problem.constrain(Some(var), Rule::Prohibited, reason);
        }
        if let (Some(least), Some(there)) = (&facts.min_kube_version, &input.kube_version)
            && !is_new_enough(there, least)
            && !mainstay_fault::is_on("bundles-for-a-later-kubernetes-are-chosen")
        {
            let reason = Reason::Kubernetes(least.to_string(), there.to_string());
            self.problem.constrain(Some(var), Rule::Prohibited, reason);
        }
    }

    /// Adds entries, and the candidates of the requirements of those that are new.
    fn add_bundles(&mut self, entries: &[EntryRef], origin: FaultOrigin) -> Vec<Var> {
        let mut new = Vec::new();
        let mut vars = Vec::with_capacity(entries.len() + 1);
        for &at in entries {
            let (var, is_new) = self.variable(at);
            if is_new {
                new.push(at);
            }
            vars.push(var);
        }
        self.add_requirements(new, origin);
        vars
    }

    fn add_requirements(&mut self, mut stack: Vec<EntryRef>, origin: FaultOrigin) {
        stack.reverse();
        let mut given_up = None;
        while let Some(at) = stack.pop() {
            let (var, _) = self.variable(at);
            let (entry, facts) = self.entry(at);
            if let Some(reason) = &given_up {
                let (subject, reason) = (FaultSubject::Bundle(var), FaultReason::clone(reason));
                self.faults.push(Fault { origin, subject, reason });
                continue;
            }
            if let Some(error) = &facts.requirement_error {
                let subject = FaultSubject::Bundle(var);
                self.faults.push(Fault { origin, subject, reason: error.clone().into() });
                continue;
            }
            for (number, &requirement) in facts.requirement_numbers.iter().enumerate() {
                let key = (at.source, requirement);
                let list = if let Some(known) = self.lists.get(&key) {
                    known.clone()
                } else {
                    let list = self.list(at.source, requirement, &mut stack);
                    if self.is_exhausted() {
                        let bundle = entry.name.to_string();
                        let reason = FaultReason::RequirementSteps { bundle };
                        let subject = FaultSubject::Bundle(var);
                        self.faults.push(Fault { origin, subject, reason: reason.clone() });
                        given_up = Some(reason);
                        break;
                    }
                    self.lists.insert(key, list.clone());
                    list
                };
                for error in list.faults.iter() {
                    let subject = FaultSubject::Channel(self.problem.constraints.len());
                    self.faults.push(Fault { origin, subject, reason: error.clone().into() });
                }
                let rule = Rule::Dependency(list.vars);
                self.problem.constrain(Some(var), rule, Reason::Required(number));
            }
        }
    }

    /// The candidates of a requirement of a source. Pushes entries with new variables to the stack.
    fn list(
        &mut self,
        source: usize,
        requirement: u32,
        stack: &mut Vec<EntryRef>,
    ) -> CandidateList {
        let snapshot = self.sources[source].snapshot;
        let own = (source, requirement);
        self.list_of(Some(own), snapshot.requirement(requirement), source, stack)
    }

    fn list_of(
        &mut self,
        own: Option<(usize, u32)>,
        requirement: &Predicate,
        requirer_source: usize,
        stack: &mut Vec<EntryRef>,
    ) -> CandidateList {
        let mut order: Vec<usize> = (0..self.sources.len()).collect();
        order.sort_by_key(|source| Self::rank(requirer_source, *source));
        let (mut vars, mut faults) = (Vec::new(), Vec::new());
        self.list_count += 1;
        for source in order {
            if self.is_exhausted() {
                break;
            }
            let snapshot = self.sources[source].snapshot;
            let found = match own {
                _ if source == 0 => Cow::Owned(self.existing_providers(requirement)),
                Some((own, number)) if own == source => {
                    Cow::Borrowed(snapshot.known_providers(number))
                }
                _ => Cow::Owned(snapshot.providers(requirement)),
            };
            self.steps += found.steps + found.entries.len() as u64;
            self.lookup_exhausted |= found.steps > MAX_LOOKUP_STEPS;
            faults.extend(found.faults.iter().cloned());
            for &entry in &found.entries {
                let at = EntryRef { source, entry };
                let (var, is_new) = self.variable(at);
                if is_new {
                    stack.push(at);
                }
                if self.last_list.len() <= var.index() {
                    self.last_list.resize(var.index() + 1, 0);
                }
                if std::mem::replace(&mut self.last_list[var.index()], self.list_count)
                    != self.list_count
                {
                    vars.push(var);
                }
            }
        }
        self.listed_count += vars.len();
        CandidateList { vars: vars.into(), faults: faults.into() }
    }

    /// The existing operators that meet a requirement. Several of one package are an error, because
    /// they have no order. Of those without Subscription only the first by name counts, since all
    /// of them stay anyway.
    fn existing_providers(&self, requirement: &Predicate) -> Providers {
        let mut providers = Providers::default();
        let snapshot = self.sources[0].snapshot;
        let mut matching = snapshot.matching(requirement, &mut providers.steps);
        let entry = |at: u32| snapshot.entry(at).0;
        matching.sort_by(|a, b| {
            let key = |at: u32| (&entry(at).package, &entry(at).name);
            key(*a).cmp(&key(*b))
        });
        for same in matching.chunk_by(|a, b| entry(*a).package == entry(*b).package) {
            let mut loose = false;
            let some: Vec<u32> = same
                .iter()
                .copied()
                .filter(|at| {
                    self.installed_csvs.contains(&*entry(*at).name)
                        || !std::mem::replace(&mut loose, true)
                })
                .collect();
            match channel::sort(&some, entry) {
                Ok(chain) => providers.entries.extend(chain),
                Err(error) => providers.faults.push(error),
            }
        }
        providers
    }

    /// Sets the step limit of the next Subscription or demand.
    fn begin_budget(&mut self) {
        self.step_limit = self.steps + (BUDGET.saturating_sub(self.steps) / 2).max(MIN_STEPS);
        self.lookup_exhausted = false;
    }

    /// Whether the search for candidates exceeded a limit.
    fn is_exhausted(&self) -> bool {
        self.lookup_exhausted
            || self.steps > self.step_limit
            || self.listed_count > MAX_LISTED_CANDIDATES
    }

    fn add_demand(&mut self, at: usize) {
        let demand = self.demands[at];
        let var = self.problem.variable(Subject::Demand(at));
        self.problem.constrain(Some(var), Rule::Mandatory, Reason::DemandExists);
        let mut parts = vec![Predicate::Package(demand.package.clone())];
        parts.extend(demand.range.clone().map(Predicate::InRange));
        let mut stack = Vec::new();
        let origin = FaultOrigin::Demand(at);
        let list = self.list_of(None, &Predicate::All(parts), 0, &mut stack);
        if self.is_exhausted() {
            let reason = FaultReason::PackageSteps { package: demand.package.clone() };
            self.faults.push(Fault { origin, subject: FaultSubject::Bundle(var), reason });
        }
        for error in list.faults.iter() {
            let subject = FaultSubject::Channel(self.problem.constraints.len());
            self.faults.push(Fault { origin, subject, reason: error.clone().into() });
        }
        self.problem.constrain(Some(var), Rule::Dependency(list.vars), Reason::DemandWants);
        // The stack gives the entries in the order in which they were found.
        stack.reverse();
        self.add_requirements(stack, origin);
    }

    /// Adds the constraints for at most one provider of each API, and at most one operator of each
    /// package.
    fn add_uniqueness(&mut self) {
        let mut apis: FxHashMap<&OperatorApi, Vec<Var>> = FxHashMap::default();
        let mut packages: FxHashMap<&str, Vec<Var>> = FxHashMap::default();
        for (at, subject) in self.problem.subjects.iter().enumerate() {
            let Subject::Bundle(entry) = *subject else { continue };
            if self.is_unreadable(entry) || self.occurrences(entry) != 1 {
                continue;
            }
            let var = Var(u32::try_from(at).unwrap_or(u32::MAX));
            let facts = self.entry(entry).1;
            for api in &facts.apis {
                apis.entry(api).or_default().push(var);
            }
            for (package, _) in &facts.packages {
                packages.entry(package).or_default().push(var);
            }
        }
        let mut apis: Vec<_> = apis.into_iter().filter(|(_, vars)| vars.len() > 1).collect();
        apis.sort_unstable_by_key(|(api, _)| *api);
        let mut packages: Vec<_> =
            packages.into_iter().filter(|(_, vars)| vars.len() > 1).collect();
        packages.sort_unstable_by_key(|(package, _)| *package);
        // Packages come first: where both constraints fail, users know the package, and upstream
        // nearly always names it.
        for (package, vars) in packages {
            if mainstay_fault::is_on("packages-have-two-operators") {
                break;
            }
            let reason = Reason::OneOfPackage(package.to_owned());
            self.problem.constrain(None, Rule::AtMostOne(vars), reason);
        }
        for (api, vars) in apis {
            if mainstay_fault::is_on("kinds-have-two-providers") {
                break;
            }
            let reason = Reason::OneProvider(api.clone());
            self.problem.constrain(None, Rule::AtMostOne(vars), reason);
        }
    }

    /// Whether the identifier of a candidate is ambiguous, because a part of it has a slash.
    pub(crate) fn is_unreadable(&self, at: EntryRef) -> bool {
        let (entry, key) = (self.entry(at).0, self.catalog(at));
        [&*key.name, &*key.namespace, &*entry.channel, &*entry.name]
            .iter()
            .any(|part| part.contains('/'))
    }
}

/// Whether the version of the cluster is at least `least`. Pre-release suffixes of vendors do not
/// make it older.
fn is_new_enough(there: &Version, least: &Version) -> bool {
    there.release() >= least.release()
}
