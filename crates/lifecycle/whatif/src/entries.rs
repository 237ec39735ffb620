//! Catalog entries of a resolution input, indexed by bundle, channel and package.

use mainstay_resolver::{CatalogContent, CatalogKey, EntryView, ResolutionInput};
use mainstay_updates::{EntryEdges, Graph};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The entries of every catalog that has content and that the namespace of the input can use.
#[derive(Default)]
pub(crate) struct Entries<'a> {
    catalogs: Vec<CatalogKey>,
    /// By name of the bundle; in the order of catalogs.
    names: HashMap<&'a str, Vec<(usize, EntryView<'a>)>>,
    /// By catalog, package and channel.
    channels: HashMap<(usize, &'a str, &'a str), Vec<EntryView<'a>>>,
    /// Catalog and channel, by package.
    packages: BTreeMap<&'a str, BTreeSet<(usize, &'a str)>>,
}

impl<'a> Entries<'a> {
    pub(crate) fn of(input: &ResolutionInput<'a>) -> Self {
        let mut entries = Self::default();
        for view in &input.catalogs {
            let is_visible = view.key.namespace == input.namespace
                || view.key.namespace == input.global_namespace;
            let CatalogContent::Ready(snapshot) = view.content else { continue };
            if !is_visible {
                continue;
            }
            let at = entries.catalogs.len();
            entries.catalogs.push(view.key.clone());
            for entry in snapshot.entries() {
                entries.names.entry(entry.name()).or_default().push((at, entry));
                let channel = (at, entry.package(), entry.channel());
                entries.channels.entry(channel).or_default().push(entry);
                let of_package = entries.packages.entry(entry.package()).or_default();
                of_package.insert((at, entry.channel()));
            }
        }
        entries
    }

    /// The entries of a bundle in every catalog.
    pub(crate) fn of_bundle(
        &self,
        name: &str,
    ) -> impl Iterator<Item = (&CatalogKey, EntryView<'a>)> {
        let found = self.names.get(name).map_or(&[][..], Vec::as_slice);
        found.iter().map(|(at, entry)| (&self.catalogs[*at], *entry))
    }

    /// The entry of a bundle in a catalog.
    pub(crate) fn at(&self, catalog: &CatalogKey, name: &str) -> Option<EntryView<'a>> {
        self.of_bundle(name).find(|(key, _)| *key == catalog).map(|(_, entry)| entry)
    }

    /// The entries of a package, in every catalog.
    pub(crate) fn of_package<'e>(
        &'e self,
        package: &'e str,
    ) -> impl Iterator<Item = (&'e CatalogKey, EntryView<'a>)> {
        let channels = self.packages.get_key_value(package).into_iter();
        let channels =
            channels.flat_map(|(name, channels)| channels.iter().map(|channel| (*name, *channel)));
        channels.flat_map(move |(package, (at, channel))| {
            let list = self.channels.get(&(at, package, channel)).map_or(&[][..], Vec::as_slice);
            list.iter().map(move |entry| (&self.catalogs[at], *entry))
        })
    }

    /// The names of packages, sorted.
    pub(crate) fn packages(&self) -> Vec<&'a str> {
        self.packages.keys().copied().collect()
    }

    /// The names of bundles.
    pub(crate) fn bundles(&self) -> impl Iterator<Item = &'a str> {
        self.names.keys().copied()
    }

    /// The update graph of a package, as the first catalog of that name that has the package gives
    /// it; any catalog will do if none is named.
    pub(crate) fn graph(&self, catalog: &CatalogKey, package: &str) -> Option<Graph> {
        let any = catalog.name.is_empty();
        let at = self
            .packages
            .get(package)?
            .iter()
            .filter(|(at, _)| any || self.catalogs[*at] == *catalog)
            .map(|(at, _)| *at)
            .min()?;
        let mut default = "";
        let mut graph = Graph::builder(package);
        for (_, channel) in self.packages.get(package)?.iter().filter(|(catalog, _)| *catalog == at)
        {
            let entries =
                self.channels.get(&(at, package, *channel)).map_or(&[][..], Vec::as_slice);
            for entry in entries {
                if entry.default_channel() {
                    default = entry.channel();
                }
                let skips: Vec<&str> = entry.skips().collect();
                let edges =
                    EntryEdges { replaces: entry.replaces(), skips: &skips, skip_range: None };
                graph = graph.entry(entry.channel(), entry.name(), edges);
                if let Some(version) = entry.version() {
                    graph = graph.bundle(entry.name(), &version.to_string());
                }
                if let Some(range) = entry.skip_range() {
                    graph = graph.skip_range(entry.channel(), entry.name(), range);
                }
                if entry.properties().any(|property| property.kind == "olm.deprecated") {
                    graph = graph.withdraw(entry.name());
                }
            }
        }
        Some(graph.default_channel(default).finish())
    }
}

/// The requirement of the first bundle that the second one satisfies, in words.
pub(crate) fn requirement(requiring: EntryView<'_>, given: EntryView<'_>) -> Option<String> {
    requiring.properties().find_map(|property| {
        let value: Value = serde_json::from_str(property.json).ok()?;
        match property.kind {
            "olm.package.required" => package(&value, given),
            "olm.gvk.required" => api(&value, given),
            "olm.constraint" => constraint(&value, given, 0),
            _ => None,
        }
    })
}

fn package(value: &Value, given: EntryView<'_>) -> Option<String> {
    (value["packageName"] == given.package()).then(|| {
        let range = value["versionRange"].as_str().unwrap_or_default();
        format!("package {} {range}", given.package()).trim_end().to_owned()
    })
}

fn api(value: &Value, given: EntryView<'_>) -> Option<String> {
    let is_same_api = |other: &Value| {
        ["group", "version", "kind"].iter().all(|field| other[field] == value[field])
    };
    let provided = given.properties().filter(|property| property.kind == "olm.gvk");
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    provided
        .filter_map(|property| serde_json::from_str::<Value>(property.json).ok())
        .any(|provided| is_same_api(&provided))
        .then(|| format!("{} ({}/{})", text("kind"), text("group"), text("version")))
}

fn constraint(value: &Value, given: EntryView<'_>, depth: usize) -> Option<String> {
    // Deeper ones are refused by the resolver.
    if depth > 64 {
        return None;
    }
    let several = |field: &str| {
        let list = value[field]["constraints"].as_array();
        list.into_iter().flatten().find_map(|one| constraint(one, given, depth + 1))
    };
    package(&value["package"], given)
        .or_else(|| api(&value["gvk"], given))
        .or_else(|| several("all"))
        .or_else(|| several("any"))
}

/// The annotation `operatorframework.io/properties` of a bundle that is installed.
pub(crate) fn annotation(entry: EntryView<'_>) -> String {
    let properties: Vec<Value> = entry
        .properties()
        .filter_map(|property| {
            let value: Value = serde_json::from_str(property.json).ok()?;
            Some(json!({"type": property.kind, "value": value}))
        })
        .collect();
    json!({ "properties": properties }).to_string()
}
