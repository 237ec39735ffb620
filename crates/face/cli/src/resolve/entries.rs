//! What catalogs hold, as questions about bundles and channels ask for it.

use mainstay_resolver::{CatalogKey, Content, EntryView, World};
use mainstay_version::Version;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The entries of every catalog of a world that has content and that its namespace sees.
pub(super) struct Entries<'a> {
    catalogs: Vec<CatalogKey>,
    /// By name of the bundle; in the order of catalogs.
    names: HashMap<&'a str, Vec<(usize, EntryView<'a>)>>,
    /// By catalog, package and channel.
    channels: HashMap<(usize, &'a str, &'a str), Vec<EntryView<'a>>>,
}

impl<'a> Entries<'a> {
    pub(super) fn of(world: &World<'a>) -> Self {
        let mut entries =
            Self { catalogs: Vec::new(), names: HashMap::new(), channels: HashMap::new() };
        for view in &world.catalogs {
            let seen = view.key.namespace == world.namespace
                || view.key.namespace == world.global_namespace;
            let Content::Ready(snapshot) = view.content else { continue };
            if !seen {
                continue;
            }
            let at = entries.catalogs.len();
            entries.catalogs.push(view.key.clone());
            for entry in snapshot.entries() {
                entries.names.entry(entry.name()).or_default().push((at, entry));
                let channel = (at, entry.package(), entry.channel());
                entries.channels.entry(channel).or_default().push(entry);
            }
        }
        entries
    }

    /// The entries of a bundle in every catalog.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = (&CatalogKey, EntryView<'a>)> {
        let found = self.names.get(name).map_or(&[][..], Vec::as_slice);
        found.iter().map(|(at, entry)| (&self.catalogs[*at], *entry))
    }

    /// The entry of a bundle in a catalog.
    pub(super) fn at(&self, catalog: &CatalogKey, name: &str) -> Option<EntryView<'a>> {
        self.named(name).find(|(key, _)| *key == catalog).map(|(_, entry)| entry)
    }

    /// The entries of a package, in every catalog.
    pub(super) fn of_package(
        &self,
        package: &str,
    ) -> impl Iterator<Item = (&CatalogKey, EntryView<'a>)> {
        self.channels
            .iter()
            .filter(move |((_, of, _), _)| *of == package)
            .flat_map(|((at, _, _), list)| list.iter().map(|entry| (&self.catalogs[*at], *entry)))
    }

    /// The names of packages, sorted.
    pub(super) fn packages(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = self.channels.keys().map(|(_, package, _)| *package).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The channel that an operator follows. Where catalog or channel are left open, the one that
    /// holds the bundle counts, with preference for the default channel.
    pub(super) fn channel(
        &self,
        catalog: &CatalogKey,
        package: &str,
        channel: &str,
        bundle: &str,
    ) -> Option<Channel<'_, 'a>> {
        let mut fitting: Vec<_> = self
            .channels
            .iter()
            .filter(|((at, of, name), _)| {
                *of == package
                    && (catalog.name.is_empty() || self.catalogs[*at] == *catalog)
                    && (channel.is_empty() || *name == channel)
            })
            .map(|((at, _, name), list)| {
                let holds = list.iter().any(|entry| entry.name() == bundle);
                let default = list.first().is_some_and(|entry| entry.default_channel());
                ((!holds, !default, *at, *name), list)
            })
            .collect();
        fitting.sort_by_key(|(key, _)| *key);
        fitting.first().map(|((.., name), list)| Channel { name, entries: list })
    }
}

/// One channel of a package.
pub(super) struct Channel<'e, 'a> {
    pub(super) name: &'a str,
    entries: &'e [EntryView<'a>],
}

impl<'a> Channel<'_, 'a> {
    /// The one entry that no other replaces or skips.
    pub(super) fn head(&self) -> Option<&'a str> {
        let left = |name: &str| {
            self.entries.iter().any(|other| {
                other.name() != name
                    && (other.replaces() == Some(name) || other.skips().any(|skip| skip == name))
            })
        };
        let mut heads = self.entries.iter().filter(|entry| !left(entry.name()));
        let head = heads.next()?;
        heads.next().is_none().then(|| head.name())
    }

    /// Whether a bundle is in it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| entry.name() == name)
    }

    /// The newest of the entries to which one gets from a version in one hop.
    pub(super) fn successor(&self, name: &str, version: Option<&Version>) -> Option<EntryView<'a>> {
        let follows = |entry: &&EntryView<'a>| {
            entry.name() != name
                && (entry.replaces() == Some(name)
                    || entry.skips().any(|skip| skip == name)
                    || version.is_some_and(|version| entry.skips_version(version)))
        };
        self.entries.iter().filter(follows).max_by_key(|entry| entry.version()).copied()
    }
}

/// What the first bundle says that it needs and the second one gives, in words.
pub(super) fn need(needing: EntryView<'_>, given: EntryView<'_>) -> Option<String> {
    needing.properties().find_map(|property| {
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
    let same = |other: &Value| ["group", "version", "kind"].iter().all(|it| other[it] == value[it]);
    let provided = given.properties().filter(|property| property.kind == "olm.gvk");
    let text = |field: &str| value[field].as_str().unwrap_or_default();
    provided
        .filter_map(|property| serde_json::from_str::<Value>(property.json).ok())
        .any(|provided| same(&provided))
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
pub(super) fn annotation(entry: EntryView<'_>) -> String {
    let properties: Vec<Value> = entry
        .properties()
        .filter_map(|property| {
            let value: Value = serde_json::from_str(property.json).ok()?;
            Some(json!({"type": property.kind, "value": value}))
        })
        .collect();
    json!({ "properties": properties }).to_string()
}
