//! Which packages a request is about, and in which order.

use crate::manifest::Brief;
use crate::query::Query;
use crate::state::{Packages, Shelf, Shown, State};
use mainstay_object::selector::{FieldSelector, LabelSelector};
use mainstay_object::{NamespacedName, Status};
use std::cmp::Reverse;
use std::sync::Arc;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// The namespace that is looked at; none looks at all.
    pub(crate) namespace: Option<Arc<str>>,
    pub(crate) name: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

/// A package as somebody sees it.
#[derive(Clone)]
pub(crate) struct Item {
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) shown: Arc<Shown>,
    pub(crate) brief: Arc<Brief>,
    /// The namespace that it is seen in.
    pub(crate) namespace: Arc<str>,
}

/// The catalog, and the package.
pub(crate) type Key = (NamespacedName, Arc<str>);

impl Item {
    pub(crate) fn key(&self) -> Key {
        (self.brief.facts.key.clone(), Arc::clone(&self.brief.name))
    }
}

impl Selection {
    /// All of one name in a namespace.
    pub(crate) fn named(namespace: &str, name: &str) -> Self {
        let (namespace, name) = (Some(namespace.into()), Some(name.to_owned()));
        Self { namespace, name, ..Self::default() }
    }

    /// What a list or watch selects.
    pub(crate) fn read(namespace: Option<&str>, query: &Query) -> Result<Self, Status> {
        let unreadable =
            |error: mainstay_object::selector::SelectorError| Status::bad_request(error.0);
        let labels = LabelSelector::parse(query.text("labelSelector")).map_err(unreadable)?;
        let fields = FieldSelector::parse(query.text("fieldSelector")).map_err(unreadable)?;
        let known = ["metadata.name", "metadata.namespace"];
        if let Some(term) = fields.terms().iter().find(|term| !known.contains(&term.path.as_str()))
        {
            return Err(Status::bad_request(format!(
                "{:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                term.path
            )));
        }
        let name = fields.required("metadata.name").map(str::to_owned);
        Ok(Self { namespace: namespace.map(Arc::from), name, labels, fields })
    }

    /// The namespace in which a package of a catalog is seen; none if it is not.
    pub(crate) fn seen_in(&self, catalog: &NamespacedName, global: &str) -> Option<Arc<str>> {
        match &self.namespace {
            None => Some(Arc::clone(&catalog.namespace)),
            Some(here) => {
                let seen = catalog.namespace == *here || *catalog.namespace == *global;
                seen.then(|| Arc::clone(here))
            }
        }
    }

    /// Whether it is about a package that is seen in a namespace.
    pub(crate) fn matches(&self, brief: &Brief, namespace: &str) -> bool {
        let field = |path: &str| match path {
            "metadata.name" => brief.name.as_ref().to_owned(),
            _ => namespace.to_owned(),
        };
        self.name.as_deref().is_none_or(|name| name == &*brief.name)
            && self.labels.matches_with(|key| brief.labels.get(key).map(String::as_str))
            && self.fields.matches_with(field)
    }
}

impl Packages {
    /// What is selected: by namespace and name; of one name what the namespace has itself before what
    /// all see, then by the priority of catalogs and their names. The first of a name is the one that
    /// it means.
    ///
    /// The first time after a change it unpacks the head of each default channel.
    pub(crate) fn select(&self, state: &State, selection: &Selection) -> Vec<Item> {
        let mut found = Vec::new();
        for (key, shelf) in &state.shelves {
            let Some(namespace) = selection.seen_in(key, &self.inner.global) else { continue };
            let mut take = |shown: &Arc<Shown>| {
                let Some(brief) = shown.brief(shelf) else { return };
                if selection.matches(&brief, &namespace) {
                    let (shelf, shown) = (Arc::clone(shelf), Arc::clone(shown));
                    found.push(Item { shelf, shown, brief, namespace: Arc::clone(&namespace) });
                }
            };
            match &selection.name {
                Some(name) => shelf.packages.get(name.as_str()).into_iter().for_each(&mut take),
                None => shelf.packages.values().for_each(&mut take),
            }
        }
        found.sort_by_cached_key(|item| {
            let catalog = &item.brief.facts.key;
            (
                Arc::clone(&item.namespace),
                Arc::clone(&item.brief.name),
                catalog.namespace != item.namespace,
                Reverse(item.shelf.priority),
                catalog.clone(),
            )
        });
        found
    }
}
