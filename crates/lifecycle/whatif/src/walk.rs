//! Package walks: from a resolution input, hop by hop, to the heads of the channels.
//!
//! Every step is a resolution; its outcome counts as installed in the next one. A failure that repeats
//! for the same reasons is not searched or explained again, and all steps together have a budget.

use crate::crds::CrdChange;
use crate::entries::{self, Entries};
use crate::heads::HeadSearch;
use mainstay_cause::Cause;
use mainstay_resolver::{
    CatalogKey, ChosenBundle, ExistingCsv, FailureKind, Resolution, ResolutionCache,
    ResolutionFailure, ResolutionInput, Subscription, SuggestedFix, resolve_again,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Most search steps for all resolutions after the first; one takes some nanoseconds.
const BUDGET: u64 = 500_000_000;

/// The cost of a step for each Subscription and ClusterServiceVersion, in search steps.
const STEP_COST_PER_OBJECT: u64 = 200;

/// The walk of a namespace to the heads of its channels.
#[derive(Debug)]
pub struct NamespaceWalk {
    /// The namespace.
    pub namespace: String,
    /// The outcome of the first resolution: what would happen now.
    pub outcome: Resolution,
    /// The upgrade path of each operator: by first step, package and name.
    pub operators: Vec<OperatorPath>,
    /// Failures of later resolutions, each with the step before it.
    pub later: Vec<(usize, ResolutionFailure)>,
    /// Why the walk was cut short, if it was.
    pub cut: Option<CutShort>,
    /// The number of held operators without an explanation.
    pub unexplained: usize,
    /// The catalogs without content that the account may not see.
    pub hidden: BTreeSet<CatalogKey>,
}

/// Why a walk was cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutShort {
    /// The input after one step is the input after an earlier one.
    Cycle {
        /// The later step.
        after: usize,
        /// The earlier step; zero is the input before the first one.
        back_to: usize,
    },
    /// The budget is spent.
    Budget {
        /// The last step.
        after: usize,
    },
}

/// The upgrade path of one operator.
#[derive(Debug)]
pub struct OperatorPath {
    /// Its package.
    pub package: String,
    /// The channel at the end of the path.
    pub channel: String,
    /// The catalog.
    pub catalog: CatalogKey,
    /// The names of the Subscriptions of the operator.
    pub subscriptions: Vec<String>,
    /// The name of the installed ClusterServiceVersion.
    pub installed: Option<String>,
    /// The versions on the path, in order.
    pub hops: Vec<Hop>,
    /// The bundles that require the operator, each with its requirement in words.
    pub needed_by: Vec<(String, String)>,
    /// The end of the path.
    pub end: WalkEnd,
}

/// One version on an upgrade path.
#[derive(Debug)]
pub struct Hop {
    /// The step that installs it, counted from one, which would happen now.
    pub step: usize,
    /// The name of the bundle.
    pub bundle: String,
    /// The version of the bundle.
    pub version: Option<String>,
    /// The channel of the bundle; a Subscription that names none may change channels on its path.
    pub channel: String,
    /// The changes of CRDs from the version before it that upstream's CRD upgrade safety check
    /// refuses, as far as the manifests of both are known.
    pub crd_changes: Arc<[CrdChange]>,
}

/// The end of an upgrade path.
#[derive(Debug)]
pub enum WalkEnd {
    /// The head of the channel.
    Head,
    /// A version without an update.
    Stranded {
        /// The head that is not reached.
        head: String,
        /// The reason, where the update graph has one.
        why: String,
    },
    /// A version that the channel does not have and has no update for.
    Outside,
    /// A version with an update that cannot be chosen.
    Held {
        /// The update.
        next: String,
        /// Why it cannot be chosen, if the explanation was affordable.
        why: Option<Cause>,
    },
    /// The resolution of the Subscription fails.
    Failed,
    /// An installed version without a Subscription.
    Unsubscribed,
    /// A version with an update, where the walk was cut short.
    Cut {
        /// The update.
        next: String,
    },
    /// The catalog has no content.
    Unknown,
}

impl WalkEnd {
    /// The word of the JSON output.
    pub const fn word(&self) -> &'static str {
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

impl OperatorPath {
    /// The last version of the path.
    pub fn last(&self) -> Option<&str> {
        self.hops.last().map(|hop| &*hop.bundle).or(self.installed.as_deref())
    }

    /// The version that would be installed now.
    pub fn now(&self) -> Option<&str> {
        self.hops.first().filter(|hop| hop.step == 1).map(|hop| &*hop.bundle)
    }
}

impl NamespaceWalk {
    /// Whether an operator would be installed or upgraded now.
    pub const fn changes(&self) -> bool {
        !self.outcome.installs.is_empty()
    }

    /// Whether the first resolution fails. A broken catalog that no Subscription depends on is reported,
    /// and is no failure; neither is one that the content of a hidden catalog could resolve.
    pub fn fails(&self) -> bool {
        self.outcome.failures.iter().any(|failure| self.blocks(failure))
    }

    /// Whether a failure concerns a Subscription or an installed operator, and would be one whatever the
    /// hidden catalogs hold.
    pub fn blocks(&self, failure: &ResolutionFailure) -> bool {
        blocks(failure) && self.hidden_behind(failure).is_empty()
    }

    /// The hidden catalogs without which nothing is known about what a failure concerns; empty if the
    /// failure has other reasons.
    pub fn hidden_behind<'f>(&self, failure: &'f ResolutionFailure) -> Vec<&'f CatalogKey> {
        let unread = failure.repairs.iter().filter_map(|repair| match repair {
            SuggestedFix::RestoreCatalog { catalog } => Some(catalog),
            _ => None,
        });
        let unread: Vec<&CatalogKey> = unread.collect();
        if unread.iter().all(|catalog| self.hidden.contains(*catalog)) {
            unread
        } else {
            Vec::new()
        }
    }

    /// Whether nothing is known about an operator, because its catalog is hidden.
    pub fn is_unknown(&self, path: &OperatorPath) -> bool {
        let concerns = |failure: &&ResolutionFailure| {
            failure.subscriptions.iter().any(|name| path.subscriptions.contains(name))
        };
        matches!(path.end, WalkEnd::Unknown)
            && self.outcome.failures.iter().filter(concerns).any(|failure| !self.blocks(failure))
    }

    /// The walk as an account sees it that may not see some of the catalogs without content.
    #[must_use]
    pub fn with_hidden(mut self, hidden: BTreeSet<CatalogKey>) -> Self {
        self.hidden = hidden;
        let blocked: BTreeSet<String> = {
            let blocking = self.outcome.failures.iter().filter(|failure| self.blocks(failure));
            blocking.flat_map(|failure| failure.subscriptions.iter().cloned()).collect()
        };
        for path in &mut self.operators {
            let fails = path.subscriptions.iter().any(|name| blocked.contains(name));
            if matches!(path.end, WalkEnd::Failed) && !fails {
                path.end = WalkEnd::Unknown;
            }
        }
        self
    }

    /// Walks a resolution input to the heads of its channels.
    pub fn of(input: &ResolutionInput<'_>) -> Self {
        let entries = Entries::of(input);
        let mut operators = installed_operators(input, &entries);
        let mut now = input.clone();
        let mut first: Option<Resolution> = None;
        let mut messages: BTreeSet<String> = BTreeSet::new();
        let mut later = Vec::new();
        let mut memory = ResolutionCache::default();
        let mut steps_by_input = HashMap::from([(fingerprint(&now), 0)]);
        let (mut step, mut walk_cost, mut spent_first) = (1, 0, 0);
        let cut = loop {
            let outcome = resolve_again(&now, &mut memory);
            for failure in &outcome.failures {
                if messages.insert(failure.message.clone()) && first.is_some() {
                    later.push((step - 1, failure.clone()));
                }
            }
            for install in &outcome.installs {
                let Some(chosen) = outcome.resolved.get(install.chosen) else { continue };
                add_hop(&mut operators, step, chosen, &install.subscriptions);
                if install.subscriptions.is_empty() {
                    let needed = needed_by(chosen, &outcome, &now, &entries);
                    let mut paths = operators.iter_mut();
                    if let Some(path) = paths.find(|path| path.last() == Some(&*chosen.name)) {
                        path.needed_by = needed;
                    }
                }
            }
            let moves = !outcome.installs.is_empty();
            install_outcome(&mut now, &outcome, &entries);
            if first.is_none() {
                first = Some(outcome);
                spent_first = memory.spent();
            }
            if !moves {
                break None;
            }
            if let Some(back_to) = steps_by_input.insert(fingerprint(&now), step) {
                break Some(CutShort::Cycle { after: step, back_to });
            }
            walk_cost +=
                STEP_COST_PER_OBJECT * (1 + now.subscriptions.len() + now.csvs.len()) as u64;
            if memory.spent() - spent_first + walk_cost > BUDGET {
                break Some(CutShort::Budget { after: step });
            }
            step += 1;
        };
        let outcome = first.unwrap_or_default();
        let mut heads = HeadSearch::new(now, &entries, &outcome, cut.is_some(), memory);
        for path in &mut operators {
            path.end = heads.end_of(path);
        }
        let unexplained = heads.unexplained();
        // Paths without a hop come last.
        operators.sort_by(|a, b| {
            let step = |path: &OperatorPath| path.hops.first().map_or(usize::MAX, |hop| hop.step);
            (step(a), &a.package, a.last()).cmp(&(step(b), &b.package, b.last()))
        });
        let (namespace, hidden) = (input.namespace.clone(), BTreeSet::new());
        Self { namespace, outcome, operators, later, cut, unexplained, hidden }
    }
}

/// Whether a resolution fails for a Subscription or an installed operator.
pub fn fails(outcome: &Resolution) -> bool {
    outcome.failures.iter().any(blocks)
}

/// Whether a failure concerns a Subscription or an installed operator; a broken catalog that none
/// depends on does not.
pub fn blocks(failure: &ResolutionFailure) -> bool {
    failure.kind == FailureKind::NotSatisfiable || !failure.subscriptions.is_empty()
}

/// The installed operators, each with its Subscriptions.
fn installed_operators(input: &ResolutionInput<'_>, entries: &Entries<'_>) -> Vec<OperatorPath> {
    let replaced: BTreeSet<&str> = input.csvs.iter().map(|csv| &*csv.replaces).collect();
    let mut operators = Vec::new();
    for csv in input.csvs.iter().filter(|csv| !csv.copied) {
        let is_of_csv = |subscription: &&Subscription| subscription.installed_csv == csv.name;
        let subscriptions: Vec<&Subscription> =
            input.subscriptions.iter().filter(is_of_csv).collect();
        if subscriptions.is_empty() && replaced.contains(&*csv.name) {
            continue;
        }
        let first = subscriptions.first();
        let entry = entries.of_bundle(&csv.name).next();
        let package = match first {
            Some(subscription) => subscription.package.clone(),
            None => entry.map(|(_, entry)| entry.package().to_owned()).unwrap_or_default(),
        };
        operators.push(OperatorPath {
            package,
            channel: first.map(|subscription| subscription.channel.clone()).unwrap_or_default(),
            catalog: first.map(|subscription| subscription.catalog.clone()).unwrap_or_default(),
            subscriptions: subscriptions
                .iter()
                .map(|subscription| subscription.name.clone())
                .collect(),
            installed: Some(csv.name.clone()),
            hops: Vec::new(),
            needed_by: Vec::new(),
            end: WalkEnd::Unknown,
        });
    }
    operators
}

/// Adds the chosen bundle of a step to the path of its operator, which may be new.
fn add_hop(
    operators: &mut Vec<OperatorPath>,
    step: usize,
    chosen: &ChosenBundle,
    subscriptions: &[String],
) {
    let hop = Hop {
        step,
        bundle: chosen.name.clone(),
        version: chosen.version.clone(),
        channel: chosen.channel.clone(),
        crd_changes: Arc::default(),
    };
    let before = chosen.replaces.as_deref();
    let existing = operators.iter_mut().find(|path| {
        path.package == chosen.package && before.is_some() && path.last() == before
            || path.last() == Some(&*chosen.name)
    });
    if let Some(path) = existing {
        path.channel.clone_from(&chosen.channel);
        path.catalog = chosen.catalog.clone();
        if path.subscriptions.is_empty() {
            path.subscriptions = subscriptions.to_vec();
        }
        if path.last() != Some(&*chosen.name) {
            path.hops.push(hop);
        }
        return;
    }
    operators.push(OperatorPath {
        package: chosen.package.clone(),
        channel: chosen.channel.clone(),
        catalog: chosen.catalog.clone(),
        subscriptions: subscriptions.to_vec(),
        installed: None,
        hops: vec![hop],
        needed_by: Vec::new(),
        end: WalkEnd::Unknown,
    });
}

/// The chosen and installed bundles that require a chosen one, each with its requirement.
fn needed_by(
    chosen: &ChosenBundle,
    outcome: &Resolution,
    input: &ResolutionInput<'_>,
    entries: &Entries<'_>,
) -> Vec<(String, String)> {
    let Some(target) = entries.at(&chosen.catalog, &chosen.name) else { return Vec::new() };
    let mut found = BTreeMap::new();
    let others = outcome.resolved.iter().filter(|other| other.name != chosen.name);
    let others = others.filter_map(|other| entries.at(&other.catalog, &other.name));
    let existing = input.csvs.iter().filter_map(|csv| entries.of_bundle(&csv.name).next());
    for entry in others.chain(existing.map(|(_, entry)| entry)) {
        if let Some(words) = entries::requirement(entry, target) {
            found.insert(entry.name().to_owned(), words);
        }
    }
    found.into_iter().collect()
}

/// Makes the outcome of a resolution the installed state of a resolution input.
fn install_outcome(input: &mut ResolutionInput<'_>, outcome: &Resolution, entries: &Entries<'_>) {
    for install in &outcome.installs {
        let Some(chosen) = outcome.resolved.get(install.chosen) else { continue };
        let replaces = chosen.replaces.clone().unwrap_or_default();
        input.csvs.retain(|csv| csv.name != replaces && csv.name != chosen.name);
        input.csvs.push(installed(entries, &chosen.catalog, &chosen.name, replaces));
        for subscription in &mut input.subscriptions {
            if install.subscriptions.contains(&subscription.name) {
                subscription.installed_csv.clone_from(&chosen.name);
                subscription.current_csv.clone_from(&chosen.name);
            }
        }
    }
    for new in &outcome.new_subscriptions {
        input.subscriptions.push(Subscription {
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

/// The ClusterServiceVersion of a bundle once it is installed.
pub(crate) fn installed(
    entries: &Entries<'_>,
    catalog: &CatalogKey,
    name: &str,
    replaces: String,
) -> ExistingCsv {
    let entry = entries.at(catalog, name);
    ExistingCsv {
        name: name.to_owned(),
        version: entry.and_then(|entry| entry.version().cloned()),
        replaces,
        phase: "Succeeded".to_owned(),
        properties: entry.map(entries::annotation),
        ..ExistingCsv::default()
    }
}

/// A fingerprint of a resolution input among others of its walk: installed versions, and their Subscriptions.
fn fingerprint(input: &ResolutionInput<'_>) -> u64 {
    let mut names: Vec<(&str, &str)> = input.csvs.iter().map(|csv| (&*csv.name, "")).collect();
    let subscriptions = input.subscriptions.iter();
    names.extend(
        subscriptions.map(|subscription| (&*subscription.name, &*subscription.installed_csv)),
    );
    names.sort_unstable();
    let mut hasher = DefaultHasher::new();
    names.hash(&mut hasher);
    hasher.finish()
}
