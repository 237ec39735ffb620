//! Worlds in a few lines of text, and outcomes as text to read.
//!
//! ```text
//! group fail-forward exclude-global        (without such a line there is one plain group)
//! catalog cat/tenant 5                     name/namespace, priority
//!   bundle a.v1 1.0.0 provides Apple requires Bread needs b:>=1.0.0 label fast deprecated
//!   channel a/stable* a.v2>a.v1 a.v1       package/channel, * for the default; per entry
//!                                          NAME[>REPLACES][-SKIP...][@RANGE], _ for a blank
//! sub a a/stable cat/tenant start=a.v1 installed=a.v1 current=a.v1
//! csv a.v1 1.0.0 package=a provides=Apple phase=Replacing replaces=a.v0 copied
//! ```

use mainstay_resolver::{
    Api, BundleFacts, CatalogKey, CatalogView, Content, Csv, EntryFacts, KnownBundle,
    OperatorGroup, Outcome, Property, Snapshot, SnapshotBuilder, Subscription, World, resolve,
};
use mainstay_version::parse_tolerant;
use serde_json::json;
use std::collections::HashMap;
use std::fmt::Write as _;

/// A world that owns the content of its catalogs.
#[derive(Default)]
pub(crate) struct Scene {
    catalogs: Vec<(CatalogKey, i64, Snapshot)>,
    world: World<'static>,
}

struct Draft<'t> {
    key: CatalogKey,
    priority: i64,
    bundles: HashMap<&'t str, Vec<&'t str>>,
    channels: Vec<Vec<&'t str>>,
}

fn key(text: &str) -> CatalogKey {
    let (name, namespace) = text.split_once('/').unwrap_or((text, "tenant"));
    CatalogKey::new(name, namespace)
}

fn api(kind: &str) -> Api {
    Api::new("example.com", "v1", kind)
}

impl Scene {
    /// Reads a world.
    pub(crate) fn read(text: &str) -> Self {
        let mut scene = Self::default();
        "tenant".clone_into(&mut scene.world.namespace);
        "olm".clone_into(&mut scene.world.global_namespace);
        let mut drafts: Vec<Draft<'_>> = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["group", flags @ ..] => scene.world.operator_groups.push(OperatorGroup {
                    name: "group".to_owned(),
                    fail_forward: flags.contains(&"fail-forward"),
                    exclude_global: flags.contains(&"exclude-global"),
                }),
                ["no-group"] => scene.world.operator_groups.clear(),
                ["catalog", name, rest @ ..] => drafts.push(Draft {
                    key: key(name),
                    priority: rest.first().map_or(0, |it| it.parse().unwrap()),
                    bundles: HashMap::new(),
                    channels: Vec::new(),
                }),
                ["bundle", name, rest @ ..] => {
                    drafts.last_mut().unwrap().bundles.insert(name, rest.to_vec());
                }
                ["channel", rest @ ..] => drafts.last_mut().unwrap().channels.push(rest.to_vec()),
                ["sub", name, of, from, rest @ ..] => {
                    scene.world.subscriptions.push(subscription(name, of, from, rest));
                }
                ["csv", name, version, rest @ ..] => {
                    scene.world.csvs.push(csv(name, version, rest));
                }
                other => panic!("{other:?}"),
            }
        }
        if scene.world.operator_groups.is_empty() && !text.contains("no-group") {
            scene.world.operator_groups.push(OperatorGroup::default());
        }
        for draft in drafts {
            let snapshot = snapshot(&draft);
            scene.catalogs.push((draft.key, draft.priority, snapshot));
        }
        scene
    }

    /// The world, with the content of its catalogs.
    pub(crate) fn world(&self) -> World<'_> {
        let mut world = self.world.clone();
        world.catalogs = self
            .catalogs
            .iter()
            .map(|(key, priority, snapshot)| CatalogView {
                key: key.clone(),
                priority: *priority,
                content: Content::Ready(snapshot),
            })
            .collect();
        world
    }
}

fn value<'t>(words: &[&'t str], name: &str) -> Option<&'t str> {
    words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

fn subscription(name: &str, of: &str, from: &str, rest: &[&str]) -> Subscription {
    let text = |name: &str| value(rest, name).unwrap_or_default().to_owned();
    let (package, channel) = of.split_once('/').unwrap_or((of, ""));
    Subscription {
        name: name.to_owned(),
        package: package.to_owned(),
        channel: channel.to_owned(),
        catalog: if from == "any" { CatalogKey::default() } else { key(from) },
        starting_csv: text("start"),
        installed_csv: text("installed"),
        current_csv: value(rest, "current").unwrap_or(&text("installed")).to_owned(),
    }
}

fn csv(name: &str, version: &str, rest: &[&str]) -> Csv {
    let properties = value(rest, "package").map(|package| {
        let identity = json!({"packageName": package, "version": version});
        let mut list = vec![json!({"type": "olm.package", "value": identity})];
        if let Some(kind) = value(rest, "provides") {
            let api = json!({"group": "example.com", "version": "v1", "kind": kind});
            list.push(json!({"type": "olm.gvk", "value": api}));
        }
        json!({"properties": list}).to_string()
    });
    Csv {
        name: name.to_owned(),
        version: parse_tolerant(version).ok(),
        replaces: value(rest, "replaces").unwrap_or_default().to_owned(),
        phase: value(rest, "phase").unwrap_or("Succeeded").to_owned(),
        copied: rest.contains(&"copied"),
        owned_apis: value(rest, "provides").map(api).into_iter().collect(),
        properties,
        ..Csv::default()
    }
}

fn snapshot(draft: &Draft<'_>) -> Snapshot {
    let mut builder = SnapshotBuilder::default();
    let mut known: HashMap<(&str, &str), KnownBundle> = HashMap::new();
    for words in &draft.channels {
        let (package, channel) = words[0].split_once('/').unwrap();
        for entry in &words[1..] {
            let (entry, range) =
                entry.split_once('@').map_or((*entry, None), |it| (it.0, Some(it.1)));
            let range = range.map(|range| range.replace('_', " "));
            let mut parts = entry.split('-');
            let edge = parts.next().unwrap();
            let (name, replaces) =
                edge.split_once('>').map_or((edge, None), |it| (it.0, Some(it.1)));
            let bundle = known.entry((package, name)).or_insert_with(|| {
                let words = draft.bundles.get(name).map_or(&[][..], Vec::as_slice);
                bundle(&mut builder, package, name, words)
            });
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

fn bundle(builder: &mut SnapshotBuilder, package: &str, name: &str, words: &[&str]) -> KnownBundle {
    // Without a line of its own a bundle has the version in its name: `a.v2` has 2.0.0.
    let named = name.rsplit_once(".v").map_or("0.0.0", |it| it.1);
    let version = words.first().copied().unwrap_or(named);
    let version = parse_tolerant(version).unwrap().to_string();
    let mut properties = Vec::new();
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let mut argument = || *words.next().unwrap();
        let gvk = |kind: &str| json!({"group": "example.com", "version": "v1", "kind": kind});
        properties.push(match *word {
            "provides" => ("olm.gvk", gvk(argument())),
            "requires" => ("olm.gvk.required", gvk(argument())),
            "label" => ("olm.label", json!({"label": argument()})),
            "deprecated" => ("olm.deprecated", json!({})),
            "needs" => {
                let (package, range) = argument().split_once(':').unwrap();
                let range = range.replace('_', " ");
                ("olm.package.required", json!({"packageName": package, "versionRange": range}))
            }
            "rule" => ("olm.constraint", json!({"cel": {"rule": argument()}})),
            other => panic!("{other}"),
        });
    }
    let properties: Vec<(&str, String)> =
        properties.into_iter().map(|(kind, value)| (kind, value.to_string())).collect();
    let properties: Vec<_> =
        properties.iter().map(|(kind, json)| Property { kind, json }).collect();
    let facts =
        BundleFacts { version: &version, properties: &properties, ..BundleFacts::default() };
    builder.bundle(package, &facts).unwrap()
}

/// What a world in text resolves to, as text.
pub(crate) fn outcome(text: &str) -> String {
    render(&resolve(&Scene::read(text).world()))
}

/// An outcome as text.
pub(crate) fn render(outcome: &Outcome) -> String {
    let mut out = String::new();
    for (at, chosen) in outcome.resolved.iter().enumerate() {
        let install = outcome.installs.iter().find(|it| it.chosen == at);
        let verb = if install.is_some() { "install" } else { "keep" };
        write!(out, "{verb} {} of {}/{}", chosen.name, chosen.package, chosen.channel).unwrap();
        write!(out, " from {}", chosen.catalog).unwrap();
        if let Some(replaces) = &chosen.replaces {
            write!(out, ", replaces {replaces}").unwrap();
        }
        if let Some(install) = install.filter(|it| !it.subscriptions.is_empty()) {
            write!(out, ", for {}", install.subscriptions.join(" ")).unwrap();
        }
        out.push('\n');
    }
    for it in &outcome.new_subscriptions {
        writeln!(out, "subscribe {} to {}", it.name, it.starting_csv).unwrap();
    }
    for it in &outcome.updated_subscriptions {
        writeln!(out, "update {} to {}", it.name, it.current_csv).unwrap();
    }
    for failure in &outcome.failures {
        writeln!(out, "{} ({:?}): {}", failure.kind.reason(), failure.kind, failure.message)
            .unwrap();
    }
    if out.is_empty() { "nothing to do".to_owned() } else { out }
}
