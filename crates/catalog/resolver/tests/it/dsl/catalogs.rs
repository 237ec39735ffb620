//! Catalogs in the text format of inputs.

use super::{PropertyText, apis, first, gvk, identity, key, needs};
use mainstay_resolver::{
    BundleFacts, BundleProperty, CatalogKey, EntryFacts, KnownBundle, LegacyDependency,
    OperatorApi, Snapshot, SnapshotBuilder,
};
use mainstay_version::parse_tolerant;
use serde_json::json;
use std::collections::HashMap;

/// A catalog of an input in text.
pub(super) struct TestCatalog {
    pub(super) key: CatalogKey,
    pub(super) priority: i64,
    pub(super) state: CatalogState,
    /// The versions and properties of its bundles.
    pub(super) bundles: HashMap<String, (String, Vec<PropertyText>)>,
}

/// Its content.
pub(super) enum CatalogState {
    Ready(Box<Snapshot>),
    NotConnected,
    Failed(String),
}

/// A catalog as parsed from its lines.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) key: CatalogKey,
    pub(super) priority: i64,
    down: Option<CatalogState>,
    pub(super) bundles: HashMap<String, BundleDraft>,
    pub(super) channels: Vec<Vec<String>>,
}

/// A bundle as parsed from its lines.
#[derive(Clone, Default)]
pub(super) struct BundleDraft {
    version: String,
    pub(super) properties: Vec<PropertyText>,
    pub(super) dependencies: Vec<PropertyText>,
    provided: Vec<OperatorApi>,
    required: Vec<OperatorApi>,
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
        ("not-connected", "") => Some(CatalogState::NotConnected),
        ("fails", reason) => Some(CatalogState::Failed(reason.to_owned())),
        other => panic!("catalog {name}: {other:?}"),
    };
    draft
}

pub(super) fn build_catalog(mut draft: Draft) -> TestCatalog {
    let state = match draft.down.take() {
        Some(state) => state,
        None => CatalogState::Ready(Box::new(snapshot(&draft))),
    };
    let mut bundles: HashMap<String, (String, Vec<PropertyText>)> = HashMap::new();
    for words in &draft.channels {
        for entry in &words[1..] {
            let name = entry.split(['>', '-', '@']).next().unwrap();
            let mut bundle_draft =
                draft.bundles.get(name).cloned().unwrap_or_else(|| bundle(name, &[]));
            let requires = bundle_draft.required.iter().map(|api| gvk("olm.gvk.required", api));
            let requires: Vec<_> = requires.collect();
            if bundle_draft.properties.is_empty() {
                bundle_draft.properties =
                    bundle_draft.provided.iter().map(|api| gvk("olm.gvk", api)).collect();
            }
            if bundle_draft.dependencies.is_empty() {
                bundle_draft.properties.extend(requires);
            }
            let (package, _) = words[0].split_once('/').unwrap();
            if !bundle_draft.properties.iter().any(|(kind, _)| kind == "olm.package") {
                bundle_draft.properties.push(identity(package, &bundle_draft.version));
            }
            bundles.insert(name.to_owned(), (bundle_draft.version, bundle_draft.properties));
        }
    }
    TestCatalog { key: draft.key, priority: draft.priority, state, bundles }
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
                let bundle_draft =
                    draft.bundles.get(name).cloned().unwrap_or_else(|| bundle(name, &[]));
                add_bundle(&mut builder, package, &bundle_draft)
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
    let mut bundle_draft = BundleDraft { version, ..BundleDraft::default() };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut argument = || *words.next().unwrap();
        match *word {
            "provides" => {
                let list = apis(argument());
                bundle_draft.properties.extend(list.iter().map(|api| gvk("olm.gvk", api)));
            }
            "requires" => {
                let list = apis(argument());
                bundle_draft.properties.extend(list.iter().map(|api| gvk("olm.gvk.required", api)));
            }
            "provided-api" => bundle_draft.provided.extend(apis(argument())),
            "required-api" => bundle_draft.required.extend(apis(argument())),
            "needs" => bundle_draft.properties.push(needs(argument())),
            other => {
                let (kind, value) = match other {
                    "label" => ("olm.label", json!({"label": argument()})),
                    "wants-label" => ("olm.label.required", json!({"label": argument()})),
                    "min-kube" => ("olm.csv.metadata", json!({"minKubeVersion": argument()})),
                    "deprecated" => ("olm.deprecated", json!({})),
                    "rule" => ("olm.constraint", json!({"cel": {"rule": argument()}})),
                    _ => panic!("bundle {name}: {other}"),
                };
                bundle_draft.properties.push((kind.to_owned(), value.to_string()));
            }
        }
    }
    bundle_draft
}

fn add_bundle(
    builder: &mut SnapshotBuilder,
    package: &str,
    bundle_draft: &BundleDraft,
) -> Option<KnownBundle> {
    let properties: Vec<_> =
        bundle_draft.properties.iter().map(|(kind, json)| BundleProperty { kind, json }).collect();
    let dependencies: Vec<_> = bundle_draft
        .dependencies
        .iter()
        .map(|(kind, json)| LegacyDependency { kind, json })
        .collect();
    let facts = BundleFacts {
        version: &bundle_draft.version,
        properties: &properties,
        dependencies: &dependencies,
        provided_apis: &bundle_draft.provided,
        required_apis: &bundle_draft.required,
        ..BundleFacts::default()
    };
    builder.bundle(package, &facts)
}
