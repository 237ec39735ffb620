//! Extension repairs: changes of a ClusterExtension or of catalogs after which resolution finds a
//! bundle. Each repair has been tried.

use super::bundle_match::{BundleMatch, UnmetCriteria, follows_edges, pin};
use super::package_content::PackageContent;
use super::pick::{
    CatalogEvaluation, ExtensionFailureKind, UnexplainedFailure, choose_bundle, package_content,
};
use super::request::{
    CATALOG_NAME_LABEL, ExtensionRequest, InputCatalog, InputCatalogContent,
    InstalledExtensionBundle, UpgradePolicy,
};
use super::route::{Route, route};
use mainstay_version::VersionRelease;
use serde_json::json;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;

/// How many repairs a failure gets at most.
const MAX_REPAIRS: usize = 4;
/// How many combinations of changes are tried at most …
const MAX_ATTEMPTS: usize = 32;
/// … and how many bundles all attempts evaluate at most, so that an explanation stays fast in large
/// catalogs.
const MAX_BUNDLE_LOOKS: usize = 200_000;

/// Changes after which the extension gets a bundle.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionFix {
    /// The changes, all of which are needed.
    pub changes: Vec<ExtensionChange>,
    /// The catalog of the resulting bundle.
    pub catalog: String,
    /// The resulting bundle.
    pub bundle: Arc<str>,
    /// Its version.
    pub version: VersionRelease,
    /// The versions of the updates that follow, if the bundle is only the first update towards the
    /// requested range; up to the first version in it.
    pub onward: Vec<String>,
}

/// One change of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtensionChange {
    /// Add this channel to the requested ones.
    Channel(String),
    /// Request this version instead.
    Version(String),
    /// Ignore edges.
    SelfCertified,
    /// Select this catalog alone.
    Select(String),
    /// Make this catalog available.
    Enable(String),
    /// Give this catalog a higher priority than all others.
    Prefer(String),
}

impl fmt::Display for ExtensionChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel(name) => write!(f, "add `{name}` to the channels"),
            Self::Version(version) => write!(f, "ask for version `{version}`"),
            Self::SelfCertified => {
                f.write_str("if the jump is known to be safe, set the policy to `SelfCertified`")
            }
            Self::Select(name) => write!(f, "let the selector select catalog `{name}` only"),
            Self::Enable(name) => write!(f, "make catalog `{name}` available"),
            Self::Prefer(name) => write!(f, "give catalog `{name}` a higher priority"),
        }
    }
}

impl ExtensionChange {
    fn apply(&self, request: &mut ExtensionRequest, catalogs: &mut [InputCatalog<'_>]) {
        match self {
            Self::Channel(name) => request.channels.push(name.clone()),
            Self::Version(version) => request.version.clone_from(version),
            Self::SelfCertified => request.policy = UpgradePolicy::SelfCertified,
            Self::Select(name) => {
                request.selector = Some(json!({"matchLabels": {CATALOG_NAME_LABEL: name}}));
            }
            Self::Enable(name) => {
                for catalog in catalogs.iter_mut().filter(|catalog| catalog.name == *name) {
                    catalog.available = true;
                }
            }
            Self::Prefer(name) => {
                let top = catalogs.iter().map(|catalog| catalog.priority).max().unwrap_or_default();
                let above = top.saturating_add(1);
                for catalog in catalogs.iter_mut().filter(|catalog| catalog.name == *name) {
                    catalog.priority = above;
                }
            }
        }
    }
}

impl ExtensionFix {
    /// Makes the changes.
    pub fn apply(&self, request: &mut ExtensionRequest, catalogs: &mut [InputCatalog<'_>]) {
        for change in &self.changes {
            change.apply(request, catalogs);
        }
    }
}

impl fmt::Display for ExtensionFix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, change) in self.changes.iter().enumerate() {
            write!(f, "{}{change}", if at == 0 { "" } else { ", and " })?;
        }
        write!(f, ": that gives `{}` of catalog `{}`", self.bundle, self.catalog)?;
        if let [steps @ .., last] = self.onward.as_slice() {
            f.write_str(", from where updates lead ")?;
            for step in steps {
                write!(f, "by `{step}` ")?;
            }
            write!(f, "to `{last}`")?;
        }
        Ok(())
    }
}

/// The search for repairs.
struct RepairSearch<'w> {
    request: &'w ExtensionRequest,
    installed: Option<&'w InstalledExtensionBundle>,
    catalogs: Vec<InputCatalog<'w>>,
    attempts_left: usize,
    repairs: Vec<ExtensionFix>,
}

/// The repairs of a failure: those with the fewest changes first, otherwise in the order of the
/// search.
pub(super) fn repairs(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtensionBundle>,
    catalogs: &[InputCatalog<'_>],
    failure: &UnexplainedFailure,
) -> Vec<ExtensionFix> {
    // The package contents are looked up once for all attempts.
    let contents: Vec<Option<Cow<'_, PackageContent>>> =
        catalogs.iter().map(|catalog| package_content(catalog, &request.package)).collect();
    let mut ready: Vec<InputCatalog<'_>> = catalogs
        .iter()
        .zip(&contents)
        .map(|(catalog, content)| InputCatalog {
            content: match &catalog.content {
                InputCatalogContent::Ready(_) | InputCatalogContent::Package(_) => {
                    InputCatalogContent::Package(content.as_deref())
                }
                other => other.clone(),
            },
            ..catalog.clone()
        })
        .collect();
    ready.sort_by(|a, b| a.name.cmp(&b.name));
    let bundles: usize = contents.iter().flatten().map(|content| content.bundles().len()).sum();
    let attempts_left = (MAX_BUNDLE_LOOKS / bundles.max(1)).clamp(4, MAX_ATTEMPTS);
    let mut search =
        RepairSearch { request, installed, catalogs: ready, attempts_left, repairs: Vec::new() };
    let catalog_name = |at: &usize| failure.considered[*at].catalog.clone();
    match failure.kind {
        // An invalid selector or range gives no hint at the intended one.
        ExtensionFailureKind::Selector | ExtensionFailureKind::Range => {}
        ExtensionFailureKind::InstalledVersion => {
            search.attempt(&[ExtensionChange::SelfCertified]);
        }
        ExtensionFailureKind::Ambiguous => {
            let mut competing_catalogs = failure.competing_catalogs.clone();
            competing_catalogs.sort_by_key(|&at| Reverse(failure.considered[at].priority));
            let names: Vec<String> =
                competing_catalogs.iter().map(catalog_name).take(MAX_REPAIRS / 2).collect();
            for name in &names {
                search.attempt(&[ExtensionChange::Prefer(name.clone())]);
            }
            for name in names {
                search.attempt(&[ExtensionChange::Select(name)]);
            }
        }
        ExtensionFailureKind::Unreadable => {
            for name in failure.competing_catalogs.iter().map(catalog_name) {
                search.attempt(&[ExtensionChange::Select(name)]);
            }
        }
        ExtensionFailureKind::Version | ExtensionFailureKind::Dependency => {
            search.next_best(failure);
        }
        ExtensionFailureKind::NotFound => {
            for considered in &failure.considered {
                let change = match considered.state {
                    CatalogEvaluation::NotSelected => {
                        ExtensionChange::Select(considered.catalog.clone())
                    }
                    CatalogEvaluation::Unavailable => {
                        ExtensionChange::Enable(considered.catalog.clone())
                    }
                    _ => continue,
                };
                if search.has_package(&considered.catalog) {
                    search.attempt(&[change]);
                }
            }
            // Changes of the request come before changes of the catalogs.
            let elsewhere = std::mem::take(&mut search.repairs);
            search.search(failure);
            search.repairs.extend(elsewhere);
        }
    }
    search.repairs.truncate(MAX_REPAIRS);
    search.repairs
}

impl RepairSearch<'_> {
    fn has_package(&self, name: &str) -> bool {
        self.catalogs.iter().any(|catalog| {
            catalog.name == name && matches!(catalog.content, InputCatalogContent::Package(Some(_)))
        })
    }

    /// Resolves with changes: a repair, or the changed request with its failure.
    fn try_changes(
        &mut self,
        changes: &[ExtensionChange],
    ) -> Option<Result<ExtensionFix, (ExtensionRequest, UnexplainedFailure)>> {
        self.attempts_left = self.attempts_left.checked_sub(1)?;
        let mut request = self.request.clone();
        let mut catalogs = self.catalogs.clone();
        for change in changes {
            change.apply(&mut request, &mut catalogs);
        }
        Some(match choose_bundle(&request, self.installed, &catalogs) {
            Ok(choice) => Ok(ExtensionFix {
                changes: changes.to_vec(),
                catalog: choice.catalog,
                bundle: choice.bundle,
                version: choice.version,
                onward: Vec::new(),
            }),
            Err(failure) => Err((request, failure)),
        })
    }

    /// Adds changes to the repairs if resolution finds a bundle with them.
    fn attempt(&mut self, changes: &[ExtensionChange]) {
        if self.repairs.len() < MAX_REPAIRS
            && let Some(Ok(repair)) = self.try_changes(changes)
        {
            self.repairs.push(repair);
        }
    }

    /// Tries to request the next best bundle instead of the invalid one.
    fn next_best(&mut self, failure: &UnexplainedFailure) {
        let Some(considered) =
            failure.competing_catalogs.first().map(|&at| &failure.considered[at])
        else {
            return;
        };
        let CatalogEvaluation::Evaluated(bundle_matches) = &considered.state else { return };
        let fits =
            bundle_matches.iter().filter(|bundle_match| bundle_match.unmet.is_empty()).skip(1);
        for bundle_match in fits {
            if let Some(version) = version_pin(bundle_match)
                && let Some(Ok(repair)) = self.try_changes(&[ExtensionChange::Version(version)])
            {
                self.repairs.push(repair);
                return;
            }
        }
    }

    /// Searches the smallest combinations of changes of the request, breadth first.
    fn search(&mut self, failure: &UnexplainedFailure) {
        let mut queue: VecDeque<Vec<ExtensionChange>> = VecDeque::new();
        let mut seen = BTreeSet::new();
        let mut add = |queue: &mut VecDeque<_>,
                       changes: &[ExtensionChange],
                       steps: Vec<ExtensionChange>| {
            for change in steps {
                let more: Vec<ExtensionChange> = changes.iter().cloned().chain([change]).collect();
                let mut key: Vec<String> = more.iter().map(ToString::to_string).collect();
                key.sort();
                if seen.insert(key) {
                    queue.push_back(more);
                }
            }
        };
        add(&mut queue, &[], self.steps(self.request, failure));
        let mut fewest = usize::MAX;
        while let Some(changes) = queue.pop_front() {
            // A request has four kinds of changes, so that more changes never help.
            if changes.len() > fewest.min(4) || self.repairs.len() == MAX_REPAIRS {
                return;
            }
            let Some(outcome) = self.try_changes(&changes) else { return };
            match outcome {
                Ok(mut repair) => {
                    fewest = changes.len();
                    self.add_onward_steps(&mut repair);
                    self.repairs.push(repair);
                }
                Err((request, failure)) => {
                    add(&mut queue, &changes, self.steps(&request, &failure));
                }
            }
        }
    }

    /// The single changes that bring a request nearer to a bundle.
    fn steps(
        &self,
        request: &ExtensionRequest,
        failure: &UnexplainedFailure,
    ) -> Vec<ExtensionChange> {
        if failure.kind == ExtensionFailureKind::Ambiguous {
            let select =
                |at: &usize| ExtensionChange::Select(failure.considered[*at].catalog.clone());
            return failure.competing_catalogs.iter().map(select).take(2).collect();
        }
        if failure.kind != ExtensionFailureKind::NotFound {
            return Vec::new();
        }
        let all = || {
            failure.considered.iter().flat_map(|result| match &result.state {
                CatalogEvaluation::Evaluated(bundle_matches) => bundle_matches
                    .iter()
                    .map(|bundle_match| (&*result.catalog, bundle_match))
                    .collect(),
                _ => Vec::new(),
            })
        };
        // The bundles with the fewest reasons against them: for each set of reasons the preferred
        // one.
        let Some(least) = all().map(|(_, bundle_match)| bundle_match.unmet.count()).min() else {
            return Vec::new();
        };
        let mut nearest: Vec<(&str, &BundleMatch)> = Vec::new();
        for (catalog, bundle_match) in
            all().filter(|(_, bundle_match)| bundle_match.unmet.count() == least)
        {
            match nearest.iter_mut().find(|(_, other)| other.unmet == bundle_match.unmet) {
                None => nearest.push((catalog, bundle_match)),
                Some(known) if is_preferred(bundle_match, known.1) => {
                    *known = (catalog, bundle_match);
                }
                Some(_) => {}
            }
        }
        // Bundles with an edge that the author has published come before others.
        nearest.sort_by_key(|(_, bundle_match)| {
            (bundle_match.unmet.successor, bundle_match.unmet.channel, bundle_match.unmet.range)
        });
        let mut changes = Vec::new();
        for (catalog, bundle_match) in nearest {
            self.add_changes_for(request, catalog, bundle_match, &mut changes);
        }
        changes
    }

    /// Adds the changes that each remove one reason against a bundle.
    fn add_changes_for(
        &self,
        request: &ExtensionRequest,
        catalog: &str,
        bundle_match: &BundleMatch,
        changes: &mut Vec<ExtensionChange>,
    ) {
        let UnmetCriteria { channel, range, successor } = bundle_match.unmet;
        let content =
            self.catalogs.iter().find(|source| source.name == catalog).and_then(|source| {
                if let InputCatalogContent::Package(content) = source.content {
                    content
                } else {
                    None
                }
            });
        if channel && let Some(content) = content {
            let channels = content.graph().channels().iter();
            let holds = channels.filter(|channel| channel.entry(&bundle_match.bundle).is_some());
            changes.extend(
                holds.map(|channel| ExtensionChange::Channel(channel.name.to_string())).take(2),
            );
        }
        if range {
            // Prefer the first step of a route into the requested range.
            let route = self.route(request, catalog);
            let step = route.and_then(|route| route.steps.into_iter().next());
            changes
                .extend(step.or_else(|| version_pin(bundle_match)).map(ExtensionChange::Version));
        }
        if successor {
            changes.push(ExtensionChange::SelfCertified);
        }
    }

    /// The route of updates in a catalog that leads into the requested range.
    fn route(&self, request: &ExtensionRequest, catalog: &str) -> Option<Route> {
        let installed = self.installed.filter(|_| follows_edges(request))?;
        let catalog = self.catalogs.iter().find(|source| source.name == catalog)?;
        match catalog.content {
            InputCatalogContent::Package(Some(content)) => route(content, request, installed),
            _ => None,
        }
    }

    /// Adds the updates that follow the bundle of a repair, if they lead into the requested range.
    fn add_onward_steps(&self, repair: &mut ExtensionFix) {
        if !repair.changes.iter().any(|change| matches!(change, ExtensionChange::Version(_))) {
            return;
        }
        let mut request = self.request.clone();
        let mut catalogs = self.catalogs.clone();
        repair.apply(&mut request, &mut catalogs);
        request.version.clone_from(&self.request.version);
        if let Some(route) = self.route(&request, &repair.catalog)
            && route.first == repair.bundle
        {
            repair.onward = route.steps.into_iter().skip(1).collect();
        }
    }
}

/// The range for exactly the version of a bundle.
fn version_pin(bundle_match: &BundleMatch) -> Option<String> {
    bundle_match.version.as_ref().ok().map(pin)
}

/// Whether a bundle is preferred to one of another catalog, without regard to the priority of the
/// catalogs.
fn is_preferred(this: &BundleMatch, that: &BundleMatch) -> bool {
    match (&this.version, &that.version) {
        (Ok(version), Ok(other)) => {
            (that.deprecated, version, &this.bundle) > (this.deprecated, other, &that.bundle)
        }
        (this, that) => this.is_ok() && that.is_err(),
    }
}
