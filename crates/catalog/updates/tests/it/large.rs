//! Channels of published catalogs, and channels larger than any of them.

use mainstay_catalog::{Catalog, KeptContent, LoadOptions};
use mainstay_testdata::{ran, unpack};
use mainstay_updates::{EntryEdges, Graph, InstalledBundle, PathEnd, Semantics};

#[test]
fn paths_cover_channels_of_five_thousand_entries() {
    let count = 5000_u32;
    let names: Vec<String> = (0..count).map(|at| format!("p.v{at:04}")).collect();
    let ranges: Vec<String> = (0..count).map(|at| format!(">={}.0.0 <{at}.0.0", at / 2)).collect();
    let chain = |with_ranges: bool, skips_all: bool| {
        let all: Vec<&str> = names.iter().rev().skip(1).map(|name| &**name).collect();
        let mut builder = Graph::builder("p");
        for (at, name) in names.iter().enumerate() {
            let is_head = at + 1 == names.len();
            let edges = EntryEdges {
                replaces: at.checked_sub(1).map(|before| &*names[before]),
                skips: if is_head && skips_all { &all } else { &[] },
                skip_range: with_ranges.then(|| &*ranges[at]),
            };
            builder = builder.bundle(name, &format!("{at}.0.0")).entry("stable", name, edges);
        }
        builder.finish()
    };
    for semantics in [Semantics::Classic, Semantics::Extension] {
        for (with_ranges, skips_all, steps) in
            [(false, false, 4999), (true, false, 12), (false, true, 1), (true, true, 1)]
        {
            let graph = chain(with_ranges, skips_all);
            let view = graph.view(semantics, &["stable"]).unwrap();
            let first = InstalledBundle::from(graph.bundle(&names[1]).unwrap());
            let steps = if steps > 12 { steps - 1 } else { steps };
            let route = view.path(&first);
            assert!(matches!(route.end, PathEnd::Head));
            assert_eq!(route.steps.len(), steps, "{semantics:?} {with_ranges} {skips_all}");
            assert!(view.shortest(&first).unwrap().len() <= steps);
            assert_eq!(view.all_paths(&first).next().map(|path| path.len()), Some(steps));
            assert!(view.stranded().is_empty());
        }
    }
}

#[test]
fn cycles_of_five_thousand_entries_terminate() {
    let count = 5000;
    let names: Vec<String> = (0..count).map(|at| format!("p.v{at:04}")).collect();
    let mut builder = Graph::builder("p");
    for at in 0..count {
        let edges = EntryEdges {
            replaces: Some(&names[(at + count - 1) % count]),
            ..EntryEdges::default()
        };
        builder = builder.bundle(&names[at], "1.0.0").entry("stable", &names[at], edges);
    }
    let graph =
        builder.entry("stable", "p.w", EntryEdges::default()).bundle("p.w", "0.1.0").finish();
    let view = graph.view(Semantics::Classic, &["stable"]).unwrap();
    let stranded = view.stranded();
    assert_eq!(stranded.len(), count);
    assert!(
        stranded
            .iter()
            .all(|stranded| stranded.steps == 0 && matches!(stranded.end, PathEnd::Never(_)))
    );
    // All entries have one version, so that extensions treat them as one.
    let view = graph.view(Semantics::Extension, &[]).unwrap();
    let stranded = view.stranded();
    assert_eq!(stranded.len(), 1, "{stranded:?}");
}

#[test]
fn five_thousand_dead_ends_each_have_their_own_reason() {
    // Each entry skips the next in a cycle beside the head, and its range holds only its own
    // version.
    let count = 5000;
    let names: Vec<String> = (0..count).map(|at| format!("p.v{at:04}")).collect();
    let mut builder = Graph::builder("p").entry("stable", "p.w", EntryEdges::default());
    for (at, name) in names.iter().enumerate() {
        let version = format!("{at}.0.0");
        let skips = [&*names[(at + 1) % count]];
        let edges =
            EntryEdges { skips: &skips, skip_range: Some(&version), ..EntryEdges::default() };
        builder = builder.bundle(name, &version).entry("stable", name, edges);
    }
    let graph = builder.finish();
    let view = graph.view(Semantics::Classic, &["stable"]).unwrap();
    let stranded = view.stranded();
    assert_eq!(stranded.len(), count);
    let reason = "only p.v4999 replaces or skips it, which is skipped by p.v4998";
    assert_eq!(stranded[0].end.to_string(), reason);
    // For extensions only the last entry has an update, to the first.
    let stranded = graph.view(Semantics::Extension, &[]).unwrap().stranded();
    let at_last = stranded.iter().filter(|bundle| &*bundle.at.name == "p.v4999").count();
    assert_eq!((stranded.len(), at_last), (count - 1, 0));
    assert_eq!(stranded[1].end.to_string(), "its successor p.v0000 is not newer");
}

#[test]
fn every_package_of_published_catalogs_has_a_graph() {
    for name in ["certified-v4.14", "community-v4.19"] {
        let what = format!("update graphs of catalog {name}");
        let Some(folder) = unpack(&format!("catalog-{name}"), &what) else { continue };
        let options = LoadOptions { keep: KeptContent::Facts, ..LoadOptions::default() };
        let folder = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let catalog = Catalog::load(&folder, &options).unwrap();
        let (mut channels, mut hops, mut stranded, mut longest, mut left) = (0, 0, 0, 0, 0);
        for package in catalog.packages() {
            let graph = Graph::of(package);
            assert_eq!(graph.channels().len(), package.channels().len());
            for channel in package.channels() {
                let view = graph.view(Semantics::Classic, &[&channel.name]).unwrap();
                let head = graph.channel(&channel.name).unwrap().head().unwrap();
                assert_eq!(head.name, channel.head().name);
                let list = view.stranded();
                channels += 1;
                stranded += list.len();
                left += usize::from(view.leaves_head().is_some());
                for entry in channel.entries() {
                    let installed = InstalledBundle::from(graph.bundle(&entry.name).unwrap());
                    let route = view.path(&installed);
                    let is_stranded =
                        list.iter().any(|stranded| stranded.bundle.name == entry.name);
                    assert_ne!(matches!(route.end, PathEnd::Head), is_stranded);
                    assert!(
                        view.shortest(&installed)
                            .is_none_or(|path| is_stranded || path.len() <= route.steps.len())
                    );
                    hops += route.steps.len();
                    longest = longest.max(route.steps.len());
                }
            }
            let view = graph.view(Semantics::Extension, &[]).unwrap();
            for bundle in graph.bundles() {
                let route = view.path(&InstalledBundle::from(bundle));
                assert!(!matches!(route.end, PathEnd::Circle { .. }));
            }
        }
        ran(&format!(
            "{what}: {} packages, {channels} channels, {hops} hops, longest {longest}, {stranded} \
             entries stranded, {left} heads left again",
            catalog.packages().len()
        ));
    }
}
