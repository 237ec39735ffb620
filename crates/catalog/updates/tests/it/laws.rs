//! Properties of every update graph.

use mainstay_updates::{
    ChannelEntry, EntryEdges, Graph, GraphView, InstalledBundle, PathEnd, Semantics, Stranded,
    UpdateStep,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::btree_map::Entry;

/// An entry by numbers: bundle, what it replaces, what it skips, a range from and to.
#[derive(Clone, Debug)]
struct Plain {
    channel: u8,
    bundle: u8,
    replaces: Option<u8>,
    skips: Vec<u8>,
    range: Option<(u8, u8)>,
}

/// A package by numbers: entries, which bundles are deprecated and withdrawn.
#[derive(Clone, Debug)]
struct Package {
    entries: Vec<Plain>,
    deprecated: Vec<u8>,
    withdrawn: Vec<u8>,
}

const BUNDLES: u8 = 9;

fn package() -> impl Strategy<Value = Package> {
    let bundle = || 0..BUNDLES;
    // Mostly the bundle before, so that the entries form chains.
    let replaces = |bundle: u8| {
        prop_oneof![
            6 => Just(bundle.checked_sub(1)),
            1 => Just(None),
            2 => (0..BUNDLES).prop_map(Some),
        ]
    };
    let entry = (0..3u8, bundle()).prop_flat_map(move |(channel, bundle)| {
        let range = proptest::option::weighted(0.3, (0..BUNDLES, 0..=BUNDLES));
        (Just(channel), Just(bundle), replaces(bundle), vec(0..BUNDLES + 2, 0..3), range).prop_map(
            |(channel, bundle, replaces, skips, range)| Plain {
                channel,
                bundle,
                replaces,
                skips,
                range,
            },
        )
    });
    let ladder = vec(entry, 1..14).prop_map(|mut entries| {
        // One entry of each name in a channel, so that the order of entries cannot matter.
        let mut seen = std::collections::BTreeSet::new();
        entries.retain(|entry| seen.insert((entry.channel, entry.bundle)));
        entries
    });
    (ladder, vec(bundle(), 0..3), vec(bundle(), 0..2))
        .prop_map(|(entries, deprecated, withdrawn)| Package { entries, deprecated, withdrawn })
}

fn name(bundle: u8) -> String {
    format!("p.v{bundle}")
}

/// Two bundles share each version; some of them differ in their releases, some do not.
fn version(bundle: u8) -> String {
    let release = if bundle % 3 == 1 { "+1" } else { "" };
    format!("{}.0.0{release}", bundle / 2)
}

fn graph(package: &Package) -> Graph {
    let mut builder = Graph::builder("p").default_channel("c1");
    for entry in &package.entries {
        let replaces = entry.replaces.map(name);
        let skips: Vec<String> = entry.skips.iter().copied().map(name).collect();
        let skips: Vec<&str> = skips.iter().map(|skip| &**skip).collect();
        let range = entry.range.map(|(from, to)| format!(">={from}.0.0 <{to}.0.0"));
        let edges = EntryEdges {
            replaces: replaces.as_deref(),
            skips: &skips,
            skip_range: range.as_deref(),
        };
        let name = name(entry.bundle);
        builder = builder.bundle(&name, &version(entry.bundle)).entry(
            &format!("c{}", entry.channel),
            &name,
            edges,
        );
    }
    for bundle in &package.deprecated {
        builder = builder.deprecate_bundle(&name(*bundle), "old");
    }
    for bundle in &package.withdrawn {
        builder = builder.withdraw(&name(*bundle));
    }
    builder.finish()
}

/// All views of a graph: each channel alone and all channels, by the rules of both OLM versions.
fn views(graph: &Graph) -> Vec<(Semantics, GraphView<'_>)> {
    let mut views = Vec::new();
    for semantics in [Semantics::Classic, Semantics::Extension] {
        for channels in [&["c0"][..], &["c1"], &["c2"], &["c0", "c2"], &[]] {
            views.extend(graph.view(semantics, channels).ok().map(|view| (semantics, view)));
        }
    }
    views
}

/// Whether each step follows an edge from the bundle before.
fn follows_edges(
    semantics: Semantics,
    start: &InstalledBundle<'_>,
    steps: &[UpdateStep<'_>],
) -> bool {
    let mut here = start.clone();
    steps.iter().all(|step| {
        let same = semantics == Semantics::Extension
            && step.bundle.version.as_ref() == here.version
            && step.bundle.release == here.release;
        let ok = (step.entry.covers(here.name, here.version).is_some() || same)
            && step.entry.name == step.bundle.name
            && step.channel.entry(&step.entry.name) == Some(step.entry);
        here = InstalledBundle::from(step.bundle);
        ok
    })
}

fn names(steps: &[UpdateStep<'_>]) -> Vec<String> {
    steps.iter().map(|step| step.bundle.name.to_string()).collect()
}

fn all_said(graph: &Graph) -> Vec<String> {
    let mut lines = Vec::new();
    for (semantics, view) in views(graph) {
        lines.push(format!("{semantics:?} {:?}", view.head().map(|head| &head.name)));
        for Stranded { bundle, at, steps, end } in view.stranded() {
            lines.push(format!("{} {} {steps} {end}", bundle.name, at.name));
        }
        for bundle in graph.bundles() {
            let installed = InstalledBundle::from(bundle);
            let paths: Vec<_> =
                view.all_paths(&installed).take(50).map(|path| names(&path)).collect();
            let shortest = view.shortest(&installed).map(|path| names(&path));
            lines.push(format!("{} {shortest:?} {paths:?}", view.path(&installed).end));
        }
    }
    for channel in graph.channels() {
        match channel.chain() {
            Ok(chain) => lines.extend(chain.map(|entry| entry.name.to_string())),
            Err(why) => lines.push(why.text("p", &channel.name)),
        }
    }
    lines
}

proptest! {
    #[test]
    fn order_of_content_does_not_change_the_graph(
        package in package(), seed in any::<u64>(),
    ) {
        let mut other = package.clone();
        // An arbitrary order: by a hash of the number.
        other.entries.sort_by_key(|entry| {
            (u64::from(entry.channel) * 31 + u64::from(entry.bundle) + 1).wrapping_mul(seed | 1)
        });
        for entry in &mut other.entries {
            entry.skips.reverse();
        }
        let (one, two) = (graph(&package), graph(&other));
        prop_assert_eq!(all_said(&one), all_said(&two));
    }

    #[test]
    fn chain_has_each_reachable_unskipped_entry_once(package in package()) {
        for channel in graph(&package).channels() {
            let Ok(chain) = channel.chain() else { continue };
            let chain: Vec<_> = chain.collect();
            let mut visited = Vec::new();
            let heads: Vec<_> = channel.entries().iter().filter(|entry| {
                !channel.entries().iter().any(|other| {
                    other.replaces() == Some(&*entry.name) || other.skips().any(|name| *name == *entry.name)
                })
            }).collect();
            prop_assert_eq!(heads.len(), 1);
            let mut next = Some(heads[0]);
            while let Some(entry) = next {
                if !channel.entries().iter().any(|other| other.skips().any(|skip| *skip == *entry.name)) {
                    visited.push(entry);
                }
                next = entry.replaces().and_then(|name| channel.entry(name));
            }
            prop_assert_eq!(chain, visited);
            prop_assert_eq!(channel.head(), Some(heads[0]));
        }
    }

    #[test]
    fn paths_follow_edges_and_end_at_the_head_or_with_a_reason(package in package()) {
        let graph = graph(&package);
        let unknown = mainstay_version::parse_strict("2.0.0").unwrap();
        for (semantics, view) in views(&graph) {
            let known = graph.bundles().map(InstalledBundle::from);
            for installed in known.chain([InstalledBundle::new("unknown", Some(&unknown))]) {
                let route = view.path(&installed);
                prop_assert!(follows_edges(semantics, &installed, &route.steps));
                let last = route.steps.last().map_or(installed.name, |step| &step.bundle.name);
                let at_head = view.head().is_some_and(|head| *head.name == *last);
                prop_assert_eq!(matches!(route.end, PathEnd::Head), at_head);
                prop_assert_eq!(view.reaches_head(&installed), at_head);
                // The path consists of repeated calls of `next`.
                let mut here = installed.clone();
                for step in &route.steps {
                    let next = view.next(&here).map(|step| step.bundle.name.clone());
                    prop_assert_eq!(next.as_ref(), Some(&step.bundle.name));
                    here = InstalledBundle::from(step.bundle);
                }
                if !at_head {
                    let is_circle = matches!(route.end, PathEnd::Circle { .. });
                    prop_assert_eq!(view.next(&here).is_some(), is_circle);
                }
                // Each step of an extension leads to a better bundle, so that there are no cycles.
                if semantics == Semantics::Extension {
                    prop_assert!(!matches!(route.end, PathEnd::Circle { .. }), "{:?}", route.end);
                }
                // The shortest path is a path and not longer; all paths differ.
                let shortest = view.shortest(&installed);
                if at_head {
                    let shortest = shortest.as_ref().unwrap();
                    prop_assert!(shortest.len() <= route.steps.len());
                }
                let paths: Vec<_> = view.all_paths(&installed).collect();
                let mut seen = std::collections::BTreeSet::new();
                for path in &paths {
                    prop_assert!(follows_edges(semantics, &installed, path));
                    prop_assert_eq!(path.last().map(|step| &step.bundle.name), view.head().map(|bundle| &bundle.name));
                    prop_assert!(seen.insert(names(path)));
                }
                if let Some(shortest) = shortest.filter(|path| !path.is_empty()) {
                    prop_assert!(follows_edges(semantics, &installed, &shortest));
                    prop_assert_eq!(Some(shortest.len()), paths.iter().map(Vec::len).min());
                } else {
                    prop_assert!(paths.is_empty());
                }
                if at_head && !route.steps.is_empty() {
                    prop_assert_eq!(names(&paths[0]), names(&route.steps));
                }
            }
        }
    }

    #[test]
    fn next_update_is_the_first_of_the_successors(package in package()) {
        let graph = graph(&package);
        for (semantics, view) in views(&graph) {
            for installed in graph.bundles().map(InstalledBundle::from) {
                let successors = view.successors(&installed);
                for step in &successors {
                    prop_assert!(follows_edges(semantics, &installed, &[*step]));
                }
                if let Some(next) = view.next(&installed) {
                    prop_assert_eq!(&next.bundle.name, &successors[0].bundle.name);
                }
                // The successors are the candidates that cover the installed bundle.
                for channel in view.channels() {
                    let never = view.never_chosen();
                    for entry in channel.entries().iter().filter(|entry| *entry.name != *installed.name) {
                        let covers = entry.covers(installed.name, installed.version).is_some();
                        let is_never = never.iter().any(|place| {
                            place.channel.name == channel.name && place.entry.name == entry.name
                        });
                        let is_listed = successors.iter().any(|step| step.bundle.name == entry.name);
                        if covers && !is_never {
                            prop_assert!(is_listed, "{} from {}", entry.name, installed.name);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn shortest_path_is_as_short_as_breadth_first_search_finds(package in package()) {
        let graph = graph(&package);
        for (semantics, view) in views(&graph) {
            for start in graph.bundles() {
                // Breadth first: the distance of each bundle that can be reached.
                let mut distance = std::collections::BTreeMap::from([(&start.name, 0)]);
                let mut level = vec![start];
                let mut steps = 0;
                while !level.is_empty() {
                    steps += 1;
                    let from = |bundle: &mainstay_updates::GraphBundle| view.successors(&InstalledBundle::from(bundle));
                    let found = level.into_iter().flat_map(|bundle| {
                        from(bundle).into_iter().map(|step| step.bundle)
                    });
                    level = found.collect();
                    level.retain(|bundle| match distance.entry(&bundle.name) {
                        Entry::Vacant(place) => *place.insert(steps) == steps,
                        Entry::Occupied(_) => false,
                    });
                }
                let installed = InstalledBundle::from(start);
                for target in graph.bundles() {
                    let path = view.shortest_to(&installed, |bundle| bundle.name == target.name);
                    prop_assert_eq!(path.as_ref().map(Vec::len), distance.get(&target.name).copied());
                    prop_assert!(follows_edges(semantics, &installed, &path.unwrap_or_default()));
                }
            }
        }
    }

    #[test]
    fn stranded_bundles_are_those_without_path_to_the_head(package in package()) {
        let graph = graph(&package);
        for (_, view) in views(&graph) {
            let stranded = view.stranded();
            for bundle in graph.bundles() {
                let is_in = view.channels().any(|channel| channel.entry(&bundle.name).is_some());
                let route = view.path(&InstalledBundle::from(bundle));
                let found = stranded.iter().find(|found| found.bundle.name == bundle.name);
                let is_stranded =
                    is_in && view.head().is_some() && !matches!(route.end, PathEnd::Head);
                prop_assert_eq!(found.is_some(), is_stranded);
                let Some(found) = found else { continue };
                let last = route.steps.last().map_or(&bundle.name, |step| &step.bundle.name);
                prop_assert_eq!((&found.at.name, found.steps), (last, route.steps.len()));
                prop_assert_eq!(found.end.to_string(), route.end.to_string());
            }
        }
    }
}
