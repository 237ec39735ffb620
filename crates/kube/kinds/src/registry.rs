//! Registry of kinds: the live set, and snapshots of it.
//!
//! Readers take a snapshot ([`Kinds`]) and never wait. A change builds the next snapshot beside the
//! present one and swaps them. Snapshots share the built-in group-versions, so the documents and
//! discovery responses derived from them stay valid.

use crate::{CustomKind, Derived, KindRow, KindSource, StrategyOf, builtins};
use arc_swap::ArcSwap;
use mainstay_object::Gvk;
use mainstay_schema::crd::compare_versions;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kinds of one group in one version, by plural.
#[derive(Debug)]
pub struct GroupVersion {
    /// API group; empty for the core group.
    pub group: Arc<str>,
    /// Version.
    pub version: Arc<str>,
    /// Kinds, sorted by plural.
    pub rows: Vec<Arc<KindRow>>,
    /// Values derived from these kinds, such as their `OpenAPI` document.
    pub derived: Derived,
}

impl GroupVersion {
    pub(crate) fn new(group: Arc<str>, version: Arc<str>, mut rows: Vec<Arc<KindRow>>) -> Self {
        rows.sort_by(|a, b| a.plural.cmp(&b.plural));
        Self { group, version, rows, derived: Derived::default() }
    }

    /// The kind with this plural.
    pub fn plural(&self, plural: &str) -> Option<&Arc<KindRow>> {
        let at = self.rows.binary_search_by(|row| (*row.plural).cmp(plural)).ok()?;
        self.rows.get(at)
    }

    /// Whether any of its kinds is built in.
    pub fn has_built_in(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.source, KindSource::BuiltIn(_)))
    }

    /// `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            (*self.version).to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// A group with its versions, preferred first.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name; empty for the core group.
    pub name: Arc<str>,
    /// Versions, preferred first.
    pub versions: Vec<Arc<GroupVersion>>,
}

/// A snapshot of all kinds.
#[derive(Debug, Default)]
pub struct Kinds {
    /// Groups in discovery's order: the built-in ones, then custom ones by name.
    pub groups: Vec<Group>,
    /// Values derived from this snapshot, such as discovery documents.
    pub derived: Derived,
}

impl Kinds {
    /// The group of this name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| &*group.name == name)
    }

    /// One version of a group.
    pub fn group_version(&self, group: &str, version: &str) -> Option<&Arc<GroupVersion>> {
        self.group(group)?.versions.iter().find(|candidate| &*candidate.version == version)
    }

    /// The kind that a URL names.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<KindRow>> {
        self.group_version(group, version)?.plural(plural)
    }

    /// The row of a kind.
    pub fn by_gvk(&self, gvk: &Gvk) -> Option<&Arc<KindRow>> {
        let version = self.group_version(&gvk.group, &gvk.version)?;
        version.rows.iter().find(|row| *row.kind == *gvk.kind)
    }

    /// Every row, in discovery's order.
    pub fn rows(&self) -> impl Iterator<Item = &Arc<KindRow>> {
        self.groups.iter().flat_map(|group| &group.versions).flat_map(|version| &version.rows)
    }
}

/// The live set of kinds.
#[derive(Debug)]
pub struct KindRegistry {
    current: ArcSwap<Kinds>,
    builtin: Vec<Group>,
    custom: Mutex<BTreeMap<Arc<str>, CustomKind>>,
}

impl KindRegistry {
    /// A registry of the built-in kinds with their strategies.
    pub fn new(strategy_of: StrategyOf) -> Self {
        let builtin = builtins::groups(strategy_of);
        let kinds = Kinds { groups: builtin.clone(), ..Kinds::default() };
        Self { current: ArcSwap::from_pointee(kinds), builtin, custom: Mutex::default() }
    }

    /// The current snapshot.
    pub fn kinds(&self) -> Arc<Kinds> {
        self.current.load_full()
    }

    /// The kind that a URL names.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<KindRow>> {
        self.current.load().find(group, version, plural).cloned()
    }

    /// Adds or replaces custom kinds, in one step for all of them.
    pub fn put(&self, kinds: impl IntoIterator<Item = CustomKind>) {
        let mut custom = self.custom.lock();
        for kind in kinds {
            custom.insert(kind.name.clone(), kind);
        }
        self.rebuild(&custom);
    }

    /// Removes a custom kind by the name of its CRD.
    pub fn remove(&self, name: &str) {
        let mut custom = self.custom.lock();
        if custom.remove(name).is_some() {
            self.rebuild(&custom);
        }
    }

    /// The custom kind of the CRD with this name.
    pub fn custom(&self, name: &str) -> Option<CustomKind> {
        self.custom.lock().get(name).cloned()
    }

    /// Calls a function with all custom kinds.
    pub fn with_custom<T>(&self, read: impl Fn(&mut dyn Iterator<Item = &CustomKind>) -> T) -> T {
        read(&mut self.custom.lock().values())
    }

    fn rebuild(&self, custom: &BTreeMap<Arc<str>, CustomKind>) {
        type Versions = BTreeMap<Arc<str>, Vec<Arc<KindRow>>>;
        let mut by_group: BTreeMap<Arc<str>, Versions> = BTreeMap::new();
        for row in custom.values().flat_map(|kind| &kind.rows) {
            let versions = by_group.entry(row.group.clone()).or_default();
            versions.entry(row.version.clone()).or_default().push(row.clone());
        }
        let mut groups = self.builtin.clone();
        let previous = self.current.load();
        for (name, versions) in by_group {
            let at = groups.iter().position(|group| group.name == name);
            let mut all: Vec<Arc<GroupVersion>> =
                at.map(|at| groups[at].versions.clone()).unwrap_or_default();
            for (version, mut rows) in versions {
                if let Some(at) = all.iter().position(|built_in| built_in.version == version) {
                    // A CRD inside a built-in group-version adds kinds to it. The built-in kind wins
                    // if plurals are equal.
                    let built_in = all[at].clone();
                    rows.retain(|row| built_in.plural(&row.plural).is_none());
                    rows.extend(built_in.rows.iter().cloned());
                    all[at] = Arc::new(GroupVersion::new(name.clone(), version, rows));
                } else {
                    all.push(reuse(&previous, GroupVersion::new(name.clone(), version, rows)));
                }
            }
            all.sort_by(|a, b| {
                b.has_built_in()
                    .cmp(&a.has_built_in())
                    .then_with(|| compare_versions(&b.version, &a.version))
            });
            let group = Group { name, versions: all };
            match at {
                Some(at) => groups[at] = group,
                None => groups.push(group),
            }
        }
        self.current.store(Arc::new(Kinds { groups, ..Kinds::default() }));
    }
}

/// The group-version of the previous snapshot with its derived values, if its rows are identical.
fn reuse(previous: &Kinds, new: GroupVersion) -> Arc<GroupVersion> {
    match previous.group_version(&new.group, &new.version) {
        Some(old)
            if old.rows.len() == new.rows.len()
                && old.rows.iter().zip(&new.rows).all(|(a, b)| Arc::ptr_eq(a, b)) =>
        {
            old.clone()
        }
        _ => Arc::new(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DefaultStrategy;

    #[test]
    fn built_in_kinds_are_found_by_url_and_by_kind() {
        let registry = KindRegistry::new(|_| &DefaultStrategy);
        let pods = registry.find("", "v1", "pods").unwrap();
        assert_eq!(&*pods.kind, "Pod");
        assert_eq!(pods.group_resource(), "pods");
        let kinds = registry.kinds();
        let row = kinds.by_gvk(&Gvk::new("apps", "v1", "Deployment")).unwrap();
        assert_eq!(&*row.storage, "apps/deployments");
        assert!(row.has_status() && row.subresource("scale").is_some());
        assert!(registry.find("apps", "v1", "nothing").is_none());
    }

    #[test]
    fn versions_of_a_kind_share_one_storage() {
        let registry = KindRegistry::new(|_| &DefaultStrategy);
        let events = registry.find("events.k8s.io", "v1", "events").unwrap();
        assert_eq!((&*events.storage, &*events.storage_api_version), ("events", "v1"));
        let scaler = registry.find("autoscaling", "v1", "horizontalpodautoscalers").unwrap();
        assert_eq!(&*scaler.storage_api_version, "autoscaling/v2");
        assert_eq!(scaler.served_versions.len(), 2);
    }
}
