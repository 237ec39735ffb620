//! Selection: the packages that a request selects, and their order.

use crate::manifest::PackageSummary;
use crate::query::Query;
use crate::state::{CatalogPackages, PackageApi, PackageEntry, State};
use mainstay_object::selector::{FieldSelector, LabelSelector};
use mainstay_object::{NamespacedName, Status};
use std::cmp::Reverse;
use std::sync::Arc;

/// The namespace and the selectors of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The namespace; none means all.
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) name: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

/// A package of a catalog, as a namespace sees it.
#[derive(Clone)]
pub(crate) struct SelectedPackage {
    pub(crate) catalog: Arc<CatalogPackages>,
    pub(crate) entry: Arc<PackageEntry>,
    pub(crate) summary: Arc<PackageSummary>,
    /// The namespace of its PackageManifest.
    pub(crate) namespace: Arc<str>,
}

/// The catalog and the name of a package.
pub(crate) type PackageKey = (NamespacedName, Arc<str>);

impl SelectedPackage {
    pub(crate) fn key(&self) -> PackageKey {
        (self.summary.catalog_info.key.clone(), Arc::clone(&self.summary.name))
    }
}

impl Selection {
    /// Selects the packages of a name in a namespace.
    pub(crate) fn by_name(namespace: &str, name: &str) -> Self {
        let (namespace, name) = (Some(namespace.into()), Some(name.to_owned()));
        Self { namespace, name, ..Self::default() }
    }

    /// Parses the selectors of a list or watch.
    pub(crate) fn parse(namespace: Option<&str>, query: &Query) -> Result<Self, Status> {
        let bad_request =
            |error: mainstay_object::selector::SelectorError| Status::bad_request(error.0);
        let labels = LabelSelector::parse(query.text("labelSelector")).map_err(bad_request)?;
        let fields = FieldSelector::parse(query.text("fieldSelector")).map_err(bad_request)?;
        let supported = ["metadata.name", "metadata.namespace"];
        if let Some(term) =
            fields.terms().iter().find(|term| !supported.contains(&term.path.as_str()))
        {
            return Err(Status::bad_request(format!(
                "{:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                term.path
            )));
        }
        let name = fields.required("metadata.name").map(str::to_owned);
        Ok(Self { namespace: namespace.map(Arc::from), name, labels, fields })
    }

    /// The namespace of the PackageManifests of a catalog; none if the selected namespace does not see
    /// the catalog.
    pub(crate) fn visible_namespace(
        &self,
        catalog: &NamespacedName,
        global_namespace: &str,
    ) -> Option<Arc<str>> {
        match &self.namespace {
            None => Some(Arc::clone(&catalog.namespace)),
            Some(own) => {
                let is_visible =
                    catalog.namespace == *own || *catalog.namespace == *global_namespace;
                is_visible.then(|| Arc::clone(own))
            }
        }
    }

    /// Whether the selectors match a package in a namespace.
    pub(crate) fn matches(&self, summary: &PackageSummary, namespace: &str) -> bool {
        let field = |path: &str| match path {
            "metadata.name" => summary.name.as_ref().to_owned(),
            _ => namespace.to_owned(),
        };
        self.name.as_deref().is_none_or(|name| name == &*summary.name)
            && self.labels.matches_with(|key| summary.labels.get(key).map(String::as_str))
            && self.fields.matches_with(field)
    }
}

impl PackageApi {
    /// The selected packages, ordered by namespace and name. Packages of one name are ordered by catalog:
    /// those of the namespace before global ones, then by priority and name. A `get` returns the first.
    ///
    /// The first call after a change decompresses the head of each default channel.
    pub(crate) fn select(&self, state: &State, selection: &Selection) -> Vec<SelectedPackage> {
        let mut found = Vec::new();
        for (key, catalog) in &state.catalogs {
            let Some(namespace) = selection.visible_namespace(key, &self.inner.global_namespace)
            else {
                continue;
            };
            let mut add = |entry: &Arc<PackageEntry>| {
                let Some(summary) = entry.summary(catalog) else { return };
                if selection.matches(&summary, &namespace) {
                    let (catalog, entry) = (Arc::clone(catalog), Arc::clone(entry));
                    found.push(SelectedPackage {
                        catalog,
                        entry,
                        summary,
                        namespace: Arc::clone(&namespace),
                    });
                }
            };
            match &selection.name {
                Some(name) => catalog.packages.get(name.as_str()).into_iter().for_each(&mut add),
                None => catalog.packages.values().for_each(&mut add),
            }
        }
        found.sort_by_cached_key(|item| {
            let catalog = &item.summary.catalog_info.key;
            (
                Arc::clone(&item.namespace),
                Arc::clone(&item.summary.name),
                catalog.namespace != item.namespace,
                Reverse(item.catalog.priority),
                catalog.clone(),
            )
        });
        found
    }
}
