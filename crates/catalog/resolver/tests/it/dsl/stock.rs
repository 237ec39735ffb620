//! Catalogs in the text format of worlds.

use super::{Said, apis, first, gvk, identity, key, needs};
use mainstay_resolver::{
    Api, BundleFacts, CatalogKey, EntryFacts, KnownBundle, LegacyDependency, Property, Snapshot,
    SnapshotBuilder,
};
use mainstay_version::parse_tolerant;
use serde_json::json;
use std::collections::HashMap;

/// A catalog of a world in text.
pub(super) struct Shelf {
    pub(super) key: CatalogKey,
    pub(super) priority: i64,
    pub(super) stock: Stock,
    /// The versions and properties of its bundles.
    pub(super) bundles: HashMap<String, (String, Vec<Said>)>,
}

/// Its content.
pub(super) enum Stock {
    Ready(Box<Snapshot>),
    NotConnected,
    Failed(String),
}

/// A catalog as parsed from its lines.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) key: CatalogKey,
    pub(super) priority: i64,
    down: Option<Stock>,
    pub(super) bundles: HashMap<String, BundleDraft>,
    pub(super) channels: Vec<Vec<String>>,
}

/// A bundle as parsed from its lines.
#[derive(Clone, Default)]
pub(super) struct BundleDraft {
    version: String,
    pub(super) properties: Vec<Said>,
    pub(super) dependencies: Vec<Said>,
    provided: Vec<Api>,
    required: Vec<Api>,
}

pub(super) fn catalog(name: &str, rest: &str) -> Draft {
    let mut draft = Draft { key: key(name), ..Draft::default() };
    let mut rest = rest;
    if let Ok(priority) = first(rest).0.parse() {
        draft.priority = priority;
        rest = first(rest).1;
    }
    draft.down = match first(rest) {
        ("", _) => None,
        ("not-connected", "") => Some(Stock::NotConnected),
        ("fails", reason) => Some(Stock::Failed(reason.to_owned())),
        other => panic!("catalog {name}: {other:?}"),
    };
    draft
}

pub(super) fn shelf(mut draft: Draft) -> Shelf {
    let stock = match draft.down.take() {
        Some(stock) => stock,
        None => Stock::Ready(Box::new(snapshot(&draft))),
    };
    let mut bundles: HashMap<String, (String, Vec<Said>)> = HashMap::new();
    for words in &draft.channels {
        for entry in &words[1..] {
            let name = entry.split(['>', '-', '@']).next().unwrap();
            let mut made = draft.bundles.get(name).cloned().unwrap_or_else(|| bundle(name, &[]));
            let requires = made.required.iter().map(|api| gvk("olm.gvk.required", api));
            let requires: Vec<_> = requires.collect();
            if made.properties.is_empty() {
                made.properties = made.provided.iter().map(|api| gvk("olm.gvk", api)).collect();
            }
            if made.dependencies.is_empty() {
                made.properties.extend(requires);
            }
            let (package, _) = words[0].split_once('/').unwrap();
            if !made.properties.iter().any(|(kind, _)| kind == "olm.package") {
                made.properties.push(identity(package, &made.version));
            }
            bundles.insert(name.to_owned(), (made.version, made.properties));
        }
    }
    Shelf { key: draft.key, priority: draft.priority, stock, bundles }
}

fn snapshot(draft: &Draft) -> Snapshot {
    let mut builder = SnapshotBuilder::default();
    let mut known: HashMap<(&str, &str), Option<KnownBundle>> = HashMap::new();
    for words in &draft.channels {
        let (package, channel) = words[0].split_once('/').unwrap();
        for entry in &words[1..] {
            let (entry, range) =
                entry.split_once('@').map_or((&**entry, None), |parts| (parts.0, Some(parts.1)));
            let range = range.map(|range| range.replace('_', " "));
            let mut parts = entry.split('-');
            let edge = parts.next().unwrap();
            let (name, replaces) =
                edge.split_once('>').map_or((edge, None), |parts| (parts.0, Some(parts.1)));
            let bundle = known.entry((package, name)).or_insert_with(|| {
                let made = draft.bundles.get(name).cloned().unwrap_or_else(|| bundle(name, &[]));
                keep(&mut builder, package, &made)
            });
            let Some(bundle) = bundle else { continue };
            builder.entry(
                bundle,
                &EntryFacts {
                    name,
                    channel: channel.trim_end_matches('*'),
                    default_channel: channel.ends_with('*'),
                    replaces,
                    skips: &parts.collect::<Vec<_>>(),
                    skip_range: range.as_deref(),
                },
            );
        }
    }
    builder.finish()
}

pub(super) fn bundle(name: &str, words: &[&str]) -> BundleDraft {
    let named = name.split_once(".v").map_or("0.0.0", |parts| parts.1);
    let (version, words) = match words {
        [version, rest @ ..] if version.starts_with(|c: char| c.is_ascii_digit()) => {
            (*version, rest)
        }
        _ => (named, words),
    };
    let version = parse_tolerant(version).unwrap().to_string();
    let mut made = BundleDraft { version, ..BundleDraft::default() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut argument = || *words.next().unwrap();
        match *word {
            "provides" => {
                let list = apis(argument());
                made.properties.extend(list.iter().map(|api| gvk("olm.gvk", api)));
            }
            "requires" => {
                let list = apis(argument());
                made.properties.extend(list.iter().map(|api| gvk("olm.gvk.required", api)));
            }
            "provided-api" => made.provided.extend(apis(argument())),
            "required-api" => made.required.extend(apis(argument())),
            "needs" => made.properties.push(needs(argument())),
            other => {
                let (kind, value) = match other {
                    "label" => ("olm.label", json!({"label": argument()})),
                    "wants-label" => ("olm.label.required", json!({"label": argument()})),
                    "min-kube" => ("olm.csv.metadata", json!({"minKubeVersion": argument()})),
                    "deprecated" => ("olm.deprecated", json!({})),
                    "rule" => ("olm.constraint", json!({"cel": {"rule": argument()}})),
                    _ => panic!("bundle {name}: {other}"),
                };
                made.properties.push((kind.to_owned(), value.to_string()));
            }
        }
    }
    made
}

fn keep(builder: &mut SnapshotBuilder, package: &str, made: &BundleDraft) -> Option<KnownBundle> {
    let properties: Vec<_> =
        made.properties.iter().map(|(kind, json)| Property { kind, json }).collect();
    let dependencies: Vec<_> =
        made.dependencies.iter().map(|(kind, json)| LegacyDependency { kind, json }).collect();
    let facts = BundleFacts {
        version: &made.version,
        properties: &properties,
        dependencies: &dependencies,
        provided_apis: &made.provided,
        required_apis: &made.required,
        ..BundleFacts::default()
    };
    builder.bundle(package, &facts)
}
