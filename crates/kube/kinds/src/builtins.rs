//! Rows of the built-in kinds.

use crate::{Group, GroupVersion, KindRow, KindSource, StrategyOf, Subresource};
use mainstay_schema::builtin::{self, BuiltinKind};
use std::sync::Arc;

/// The built-in groups, in the table's order.
pub(crate) fn groups(strategy_of: StrategyOf) -> Vec<Group> {
    let mut order: Vec<(&str, Vec<&str>)> = Vec::new();
    for kind in builtin::kinds() {
        match order.iter_mut().find(|(group, _)| *group == kind.group) {
            Some((_, versions)) if versions.contains(&kind.version) => {}
            Some((_, versions)) => versions.push(kind.version),
            None => order.push((kind.group, vec![kind.version])),
        }
    }
    order
        .into_iter()
        .map(|(group, versions)| {
            let versions = versions
                .into_iter()
                .map(|version| {
                    let rows = builtin::kinds()
                        .iter()
                        .filter(|kind| kind.group == group && kind.version == version)
                        .map(|kind| Arc::new(row(kind, strategy_of)))
                        .collect();
                    Arc::new(GroupVersion::new(group.into(), version.into(), rows))
                })
                .collect();
            Group { name: group.into(), versions }
        })
        .collect()
}

fn row(kind: &'static BuiltinKind, strategy_of: StrategyOf) -> KindRow {
    let versions = || builtin::kinds().iter().filter(|row| row.storage == kind.storage);
    // The first version in the table is the stored one.
    let stored = versions().next().unwrap_or(kind);
    let subresources = kind.subresources.iter().map(|sub| Subresource {
        name: sub.name.into(),
        gvk: sub.gvk(kind),
        verbs: shared(sub.verbs),
    });
    KindRow {
        group: kind.group.into(),
        version: kind.version.into(),
        kind: kind.kind.into(),
        list_kind: kind.list_kind().into(),
        plural: kind.plural.into(),
        singular: kind.singular.into(),
        short_names: shared(kind.short_names),
        categories: shared(kind.categories),
        scope: kind.scope,
        verbs: shared(kind.verbs),
        subresources: subresources.collect(),
        storage: kind.storage.into(),
        storage_api_version: stored.gvk().api_version().into(),
        api_version: kind.gvk().api_version().into(),
        served_versions: versions()
            .filter(|row| row.group == kind.group)
            .map(|row| row.version.into())
            .collect(),
        source: KindSource::BuiltIn(kind),
        // Strategies get objects in the stored version.
        strategy: strategy_of(&stored.gvk()),
    }
}

fn shared(texts: &[&'static str]) -> Vec<Arc<str>> {
    texts.iter().map(|text| Arc::from(*text)).collect()
}
