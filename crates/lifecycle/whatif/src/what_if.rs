//! What-if results: the walks of namespaces, as they are and as they are supposed to be.

use crate::catalogs::{CatalogSnapshots, is_not_at_hand};
use crate::change::{self, ChangeError};
use crate::crds::CrdComparisons;
use crate::input::{is_ready, namespace_input};
use crate::request::{PackageRequest, WhatIfChange};
use crate::state::ClusterState;
use crate::targets::ChangeTargets;
use crate::walk::NamespaceWalk;
use mainstay_cause::Cause;
use mainstay_resolver::fixture::Fixture;
use mainstay_resolver::{CatalogKey, ResolutionInput};
use std::collections::{BTreeMap, BTreeSet};

/// A what-if query: which namespaces of a state are resolved, with which requests and supposed
/// changes.
pub struct WhatIfQuery<'q> {
    /// The state of the cluster.
    pub state: &'q ClusterState,
    /// The namespace whose catalogs every other one sees.
    pub global_namespace: &'q str,
    /// The namespaces to resolve.
    pub namespaces: &'q [String],
    /// Requested packages, beside the Subscriptions of the state.
    pub requests: &'q [PackageRequest],
    /// Bundles that count as installed.
    pub installed: &'q [String],
    /// Supposed changes.
    pub changes: &'q [WhatIfChange],
    /// The targets of the changes.
    pub targets: &'q ChangeTargets,
    /// Whether the state is that of a live cluster, whose conditions are compared with the result.
    pub is_live: bool,
    /// Whether each result holds the recorded resolution input.
    pub records_input: bool,
}

/// Why a query has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhatIfError {
    /// A request or an installed bundle cannot be used.
    #[error(transparent)]
    Request(#[from] ChangeError),
    /// A supposed change cannot be made.
    #[error("{source}")]
    Suppose {
        /// The index of the change.
        change: usize,
        /// The reason.
        source: ChangeError,
    },
}

/// The result for a namespace.
pub struct NamespaceWhatIf {
    /// The walk of the namespace as it is.
    pub before: NamespaceWalk,
    /// The walk of the namespace as it is supposed to be, if changes are supposed.
    pub after: Option<NamespaceWalk>,
    /// The names of Subscriptions with manual approval.
    pub manual: BTreeSet<String>,
    /// The indexes of the changes that are about the namespace.
    pub changes: Vec<usize>,
    /// Failures that the cluster reports and this result does not have: the name of a Subscription
    /// and its condition.
    pub disagreements: Vec<(String, String)>,
    /// The recorded resolution input with all changes, if it is wanted.
    pub recorded: Option<Fixture>,
}

impl NamespaceWhatIf {
    /// The walk that counts: as the namespace is supposed to be, if changes are supposed.
    pub fn final_walk(&self) -> &NamespaceWalk {
        self.after.as_ref().unwrap_or(&self.before)
    }
}

impl WhatIfQuery<'_> {
    /// Resolves each namespace. `catalogs` are the catalogs as they are, `supposed` those with the
    /// supposed contents.
    ///
    /// # Errors
    /// If a request or change names an object, package or version that does not exist.
    pub fn run_what_if(
        &self,
        catalogs: &CatalogSnapshots,
        supposed: &CatalogSnapshots,
    ) -> Result<Vec<NamespaceWhatIf>, WhatIfError> {
        let mut crds = CrdComparisons::default();
        self.namespaces
            .iter()
            .map(|namespace| self.resolve_namespace(namespace, catalogs, supposed, &mut crds))
            .collect()
    }

    fn resolve_namespace<'c>(
        &self,
        namespace: &str,
        catalogs: &'c CatalogSnapshots,
        supposed: &'c CatalogSnapshots,
        crds: &mut CrdComparisons<'c>,
    ) -> Result<NamespaceWhatIf, WhatIfError> {
        let existing = self.state.namespaces.get(namespace);
        let manual = existing.map(|state| state.manual.clone()).unwrap_or_default();
        let mut input = self.input(namespace, catalogs)?;
        let mut before = NamespaceWalk::of(&input).with_hidden(catalogs.hidden());
        crds.add_to(&mut before, self.global_namespace, catalogs, catalogs);
        let concerns = |change: &usize| self.targets.concerns(*change, namespace);
        let changes: Vec<usize> = (0..self.changes.len()).filter(concerns).collect();
        // Requests were checked against the catalogs as they are: that a supposed content lacks a
        // requested package is a result, not a mistake of the user.
        input.catalogs = supposed.views();
        suppose(&mut input, changes.iter().map(|at| (*at, &self.changes[*at])))?;
        let recorded = self.records_input.then(|| {
            let data = |key: &CatalogKey| supposed.catalogs.get(key)?.data();
            Fixture::of(&input, data).with_manual(&manual)
        });
        let after = (!changes.is_empty()).then(|| {
            let mut hidden = supposed.hidden();
            // A supposed outage is a failure even if the account may not see the catalog.
            hidden.retain(|key| {
                let view = input.catalogs.iter().find(|view| view.key == *key);
                view.is_some_and(|view| is_not_at_hand(&view.content))
            });
            let mut after = NamespaceWalk::of(&input).with_hidden(hidden);
            crds.add_to(&mut after, self.global_namespace, catalogs, supposed);
            after
        });
        let reported = existing.filter(|_| self.is_live).map(|state| &state.failing);
        let disagreements =
            reported.map(|failing| disagreements(&before, failing)).unwrap_or_default();
        Ok(NamespaceWhatIf { before, after, manual, changes, disagreements, recorded })
    }

    /// The resolution input of a namespace with the requests.
    fn input<'s>(
        &self,
        namespace: &str,
        catalogs: &'s CatalogSnapshots,
    ) -> Result<ResolutionInput<'s>, ChangeError> {
        let mut input = namespace_input(namespace, self.global_namespace, self.state, catalogs);
        for request in self.requests {
            change::apply(&mut input, &WhatIfChange::Subscribe(request.clone()))?;
        }
        change::install_all(&mut input, self.installed)?;
        Ok(input)
    }
}

/// Makes changes in a resolution input, each with its index.
///
/// # Errors
/// If a change names an object, package or version that does not exist.
pub fn suppose<'c>(
    input: &mut ResolutionInput<'_>,
    changes: impl IntoIterator<Item = (usize, &'c WhatIfChange)>,
) -> Result<(), WhatIfError> {
    for (at, change) in changes {
        change::apply(input, change)
            .map_err(|source| WhatIfError::Suppose { change: at, source })?;
    }
    Ok(())
}

/// The failures that a cluster reports and a walk does not have.
fn disagreements(
    walk: &NamespaceWalk,
    reported: &BTreeMap<String, String>,
) -> Vec<(String, String)> {
    let failures = &walk.outcome.failures;
    let fails = |name: &String| failures.iter().any(|failure| failure.subscriptions.contains(name));
    let others = reported.iter().filter(|(name, _)| !fails(name));
    others.map(|(name, condition)| (name.clone(), condition.clone())).collect()
}

/// Why Subscriptions of a namespace cannot be resolved now, by name. None if a catalog has no content:
/// the resolution could find more in it.
pub fn unresolved_subscriptions(
    state: &ClusterState,
    namespace: &str,
    catalogs: &CatalogSnapshots,
) -> Option<BTreeMap<String, Cause>> {
    let input = namespace_input(namespace, state.global_namespace(), state, catalogs);
    if !input.catalogs.iter().all(|view| is_ready(&view.content)) {
        return None;
    }
    let mut reasons = BTreeMap::new();
    for failure in mainstay_resolver::resolve(&input).failures {
        for name in failure.subscriptions {
            reasons.entry(name).or_insert_with(|| failure.cause.clone());
        }
    }
    Some(reasons)
}
