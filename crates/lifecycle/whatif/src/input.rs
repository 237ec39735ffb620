//! Resolution inputs: a namespace with its catalogs, as the resolver reads it.

use crate::catalogs::CatalogSnapshots;
use crate::state::ClusterState;
use mainstay_resolver::{CatalogContent, OperatorGroup, ResolutionInput};

/// The resolution input of a namespace. Where a state has no OperatorGroups at all, the namespace
/// gets one without settings, which is the usual case.
pub fn namespace_input<'a>(
    namespace: &str,
    global_namespace: &str,
    state: &ClusterState,
    catalogs: &'a CatalogSnapshots,
) -> ResolutionInput<'a> {
    let existing = state.namespaces.get(namespace);
    let mut groups = existing.map(|state| state.groups.clone()).unwrap_or_default();
    if !state.has_groups {
        groups = vec![OperatorGroup { name: namespace.to_owned(), ..OperatorGroup::default() }];
    }
    let mut input = ResolutionInput {
        namespace: namespace.to_owned(),
        global_namespace: global_namespace.to_owned(),
        operator_groups: groups,
        catalogs: catalogs.views(),
        subscriptions: existing.map(|state| state.subscriptions.clone()).unwrap_or_default(),
        csvs: existing.map(|state| state.csvs.clone()).unwrap_or_default(),
        kube_version: state.kube_version.clone(),
        ..ResolutionInput::default()
    };
    input.restore_deleted();
    input
}

/// Whether a catalog has content.
pub const fn is_ready(content: &CatalogContent<'_>) -> bool {
    matches!(content, CatalogContent::Ready(_))
}
