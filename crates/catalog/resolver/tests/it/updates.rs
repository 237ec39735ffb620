//! The update graph and the resolver agree on the next update, if only the graph decides.

use mainstay_catalog::{Catalog, KeptContent, LoadOptions, Package};
use mainstay_resolver::extension::{self, ExtensionRequest, PackageBundle, PackageContent};
use mainstay_resolver::{
    BundleFacts, BundleProperty, CatalogContent, CatalogKey, CatalogView, EntryFacts, ExistingCsv,
    OperatorGroup, Resolution, ResolutionInput, Snapshot, SnapshotBuilder, Subscription, resolve,
};
use mainstay_testdata::{ran, unpack};
use mainstay_updates::{EntryEdges, Graph, InstalledBundle, Semantics};
use mainstay_version::{Version, parse_strict};
use proptest::collection::vec;
use proptest::prelude::*;

/// The next `currentCSV` of a Subscription to a channel of a package, with a bundle installed.
fn resolved(
    content: &Snapshot,
    package: &str,
    channel: &str,
    installed: &str,
    version: Option<&Version>,
) -> Resolution {
    let catalog = CatalogKey::new("c", "ns");
    let input = ResolutionInput {
        namespace: "ns".to_owned(),
        global_namespace: "ns".to_owned(),
        operator_groups: vec![OperatorGroup::default()],
        catalogs: vec![CatalogView {
            key: catalog.clone(),
            priority: 0,
            content: CatalogContent::Ready(content),
        }],
        subscriptions: vec![Subscription {
            name: "s".to_owned(),
            package: package.to_owned(),
            channel: channel.to_owned(),
            catalog,
            installed_csv: installed.to_owned(),
            current_csv: installed.to_owned(),
            ..Subscription::default()
        }],
        csvs: vec![ExistingCsv {
            name: installed.to_owned(),
            version: version.cloned(),
            ..ExistingCsv::default()
        }],
        ..ResolutionInput::default()
    };
    resolve(&input)
}

/// An entry by numbers: channel, bundle, what it replaces, what it skips, a range from and to.
type Plain = (u8, u8, Option<u8>, Vec<u8>, Option<(u8, u8)>);

/// The channels; the second is the default one.
const CHANNELS: [&str; 2] = ["fast", "stable"];

/// Mostly chains in which each entry replaces the one before.
fn entries() -> impl Strategy<Value = Vec<Plain>> {
    let range = proptest::option::weighted(0.4, (0..8u8, 0..9u8));
    let entry = (0..2u8, 0..7u8, 0..12u8, vec(0..8u8, 0..2), range);
    let entry = entry.prop_map(|(channel, bundle, other, skips, range)| {
        let replaces = if other < 8 { bundle.checked_sub(1) } else { Some(other - 5) };
        (channel, bundle, replaces, skips, range)
    });
    vec(entry, 1..12).prop_map(|mut entries| {
        entries.sort_by_key(|entry| (entry.0, entry.1));
        entries.dedup_by_key(|entry| (entry.0, entry.1));
        entries
    })
}

proptest! {
    #[test]
    fn next_update_of_the_graph_is_what_the_resolver_chooses(
        entries in entries(), withdrawn in proptest::option::weighted(0.3, 0..7u8),
    ) {
        let name = |bundle: u8| format!("p.v{bundle}");
        let mut graph = Graph::builder("p").default_channel("stable");
        let mut snapshot = SnapshotBuilder::default();
        for (channel, bundle, replaces, skips, range) in &entries {
            let channel = CHANNELS[usize::from(*channel)];
            let (name, replaces, version) = (name(*bundle), replaces.map(name), format!("{bundle}.0.0"));
            let skips: Vec<String> = skips.iter().map(|skip| format!("p.v{skip}")).collect();
            let skips: Vec<&str> = skips.iter().map(|skip| &**skip).collect();
            let range = range.map(|(from, to)| format!(">={from}.0.0 <{to}.0.0"));
            let edges = EntryEdges { replaces: replaces.as_deref(), skips: &skips, skip_range: range.as_deref() };
            graph = graph.bundle(&name, &version).entry(channel, &name, edges);
            let deprecated = [BundleProperty { kind: "olm.deprecated", json: "{}" }];
            let properties: &[_] = if Some(*bundle) == withdrawn { &deprecated } else { &[] };
            let facts = BundleFacts { version: &version, properties, ..BundleFacts::default() };
            let known = snapshot.bundle("p", &facts).unwrap();
            let facts = EntryFacts {
                name: &name, channel, default_channel: channel == "stable",
                replaces: replaces.as_deref(), skips: &skips, skip_range: range.as_deref(),
            };
            snapshot.entry(&known, &facts);
        }
        if let Some(bundle) = withdrawn {
            graph = graph.withdraw(&name(bundle));
        }
        let (graph, snapshot) = (graph.finish(), snapshot.finish());
        for (channel, channels) in [("fast", &["fast"][..]), ("stable", &["stable"]), ("", &[])] {
            for installed in 0..9u8 {
                let version = parse_strict(&format!("{installed}.0.0")).unwrap();
                let installed = name(installed);
                let outcome = resolved(&snapshot, "p", channel, &installed, Some(&version));
                let updated = outcome.updated_subscriptions.into_iter().next();
                let updated = updated.map(|subscription| subscription.current_csv);
                match graph.view(Semantics::Classic, channels) {
                    Ok(view) => {
                        let next = view.next(&InstalledBundle::new(&installed, Some(&version)));
                        let next = next.map(|step| step.bundle.name.to_string());
                        prop_assert_eq!(next, updated, "from {} in {:?}", installed, channel);
                    }
                    Err(why) => {
                        prop_assert_eq!(outcome.failures.len(), 1);
                        let message = &outcome.failures[0].message;
                        prop_assert!(message.contains(&why.to_string()), "{message}");
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn next_update_of_the_graph_is_what_an_extension_gets(
        entries in entries(), deprecated in vec(0..7u8, 0..3),
    ) {
        // Two bundles share each version and differ in their releases.
        let version = |bundle: u8| format!("{}.0.0+{}", bundle / 2, bundle % 2);
        let name = |bundle: u8| format!("p.v{bundle}");
        let mut graph = Graph::builder("p");
        let mut bundles = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for (channel, bundle, replaces, skips, range) in &entries {
            let channel = CHANNELS[usize::from(*channel)];
            let (name, replaces) = (name(*bundle), replaces.map(name));
            let skips: Vec<String> = skips.iter().map(|skip| format!("p.v{skip}")).collect();
            let skips: Vec<&str> = skips.iter().map(|skip| &**skip).collect();
            let range = range.map(|(from, to)| format!(">={from}.0.0 <{to}.0.0"));
            let edges = EntryEdges { replaces: replaces.as_deref(), skips: &skips, skip_range: range.as_deref() };
            graph = graph.bundle(&name, &version(*bundle)).entry(channel, &name, edges);
            if seen.insert(*bundle) {
                let version = version(*bundle).into();
                bundles.push(PackageBundle { name: (*name).into(), version, ..PackageBundle::default() });
            }
        }
        for bundle in deprecated.iter().filter(|bundle| seen.contains(bundle)) {
            graph = graph.deprecate_bundle(&name(*bundle), "old");
        }
        let graph = graph.finish();
        let content = PackageContent::new(graph.clone(), bundles);
        let catalogs = [extension::InputCatalog::new("c", extension::InputCatalogContent::Package(Some(&content)))];
        for channels in [&["fast"][..], &["stable"], &["fast", "stable"], &[]] {
            let request = ExtensionRequest {
                package: "p".to_owned(),
                channels: channels.iter().map(|&channel| channel.to_owned()).collect(),
                ..ExtensionRequest::default()
            };
            let view = graph.view(Semantics::Extension, channels).unwrap();
            let fresh = extension::resolve(&request, None, &catalogs).ok();
            let head = view.head().map(|head| head.name.clone());
            prop_assert_eq!(head, fresh.map(|choice| choice.bundle));
            for installed in 0..9u8 {
                let (name, version) = (name(installed), version(installed));
                let there = extension::InstalledExtensionBundle {
                    name: name.clone(), version: version.clone(), ..extension::InstalledExtensionBundle::default()
                };
                let choice = extension::resolve(&request, Some(&there), &catalogs).ok();
                let moved = choice.map(|choice| choice.bundle.to_string()).filter(|bundle| *bundle != name);
                let version = parse_strict(&version).unwrap();
                let next = view.next(&InstalledBundle::new(&name, Some(&version)));
                let next = next.map(|step| step.bundle.name.to_string());
                prop_assert_eq!(next, moved, "from {} in {:?}", name, channels);
            }
        }
    }
}

/// Whether only the update graph decides on the updates of a package.
fn is_plain(package: &Package) -> bool {
    let mut apis = std::collections::BTreeSet::new();
    package.bundles().all(|bundle| {
        apis.clear();
        bundle.required_apis().next().is_none()
            && bundle.required_packages().next().is_none()
            && bundle.properties_of("olm.constraint").next().is_none()
            && bundle.properties_of("olm.gvk").all(|api| apis.insert(api.json.clone()))
    })
}

#[test]
fn graph_and_resolver_agree_on_published_channels() {
    for name in ["certified-v4.14", "community-v4.19"] {
        let what = format!("updates of catalog {name} beside the resolver's");
        let Some(folder) = unpack(&format!("catalog-{name}"), &what) else { continue };
        let folder = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let options = LoadOptions { keep: KeptContent::Facts, ..LoadOptions::default() };
        let catalog = Catalog::load(&folder, &options).unwrap();
        let snapshot = Snapshot::of(&catalog);
        let mut count = 0;
        for package in catalog.packages().filter(|package| is_plain(package)) {
            let graph = Graph::of(package);
            for channel in package.channels() {
                let view = graph.view(Semantics::Classic, &[&channel.name]).unwrap();
                for entry in channel.entries() {
                    let version = &package.bundle(&entry.name).unwrap().version;
                    let next = view.next(&InstalledBundle::new(&entry.name, Some(version)));
                    let next = next.map(|step| step.bundle.name.to_string());
                    let outcome = resolved(
                        &snapshot,
                        &package.name,
                        &channel.name,
                        &entry.name,
                        Some(version),
                    );
                    let updated = outcome.updated_subscriptions.into_iter().next();
                    let updated = updated.map(|subscription| subscription.current_csv);
                    assert_eq!(next, updated, "{} {} {}", package.name, channel.name, entry.name);
                    count += 1;
                }
            }
        }
        ran(&format!("{what}: {count} entries agree"));
    }
}
