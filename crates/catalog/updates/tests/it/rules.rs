//! Successor rules of OLM classic and OLM v1, rule by rule.

use crate::dsl::{Here, classic, extension, graph, names, next, path, stranded};
use mainstay_updates::{Edge, Graph, InstalledBundle, Semantics, UnchosenReason};

/// A graph, and the next update of some versions by the rules of OLM classic and of OLM v1.
struct Row {
    rule: &'static str,
    graph: &'static str,
    /// Installed, next for a Subscription to `stable`, next for an extension.
    next: &'static [(&'static str, &'static str, &'static str)],
}

const ETCD: &str = "etcd.v0.9.0 0.9.0\netcd.v0.9.1 0.9.1\n\
                    etcd.v0.9.2 0.9.2 replaces etcd.v0.9.0 skips etcd.v0.9.1";

#[test]
fn next_update_follows_the_rules_of_classic_and_of_extensions() {
    let rows = [
        Row {
            rule: "AT-UPG-01, UPG-02: one version at a time down the chain of replaces",
            graph: "p.v0.1.1 0.1.1\np.v0.1.2 0.1.2 replaces p.v0.1.1\np.v0.1.3 0.1.3 replaces p.v0.1.2",
            next: &[
                ("p.v0.1.1", "p.v0.1.2", "p.v0.1.2"),
                ("p.v0.1.2", "p.v0.1.3", "p.v0.1.3"),
                ("p.v0.1.3", "", ""),
            ],
        },
        Row {
            rule: "AT-UPG-02, UPG-03: what is skipped moves on to who skips it",
            graph: ETCD,
            next: &[
                ("etcd.v0.9.0", "etcd.v0.9.2", "etcd.v0.9.2"),
                ("etcd.v0.9.1", "etcd.v0.9.2", "etcd.v0.9.2"),
            ],
        },
        Row {
            rule: "AT-UPG-03, UPG-04: a version in the head's range goes to the head at once",
            graph: "e.v4.0.9 4.0.9\ne.v4.1.0 4.1.0 replaces e.v4.0.9\ne.v4.1.1 4.1.1 replaces e.v4.1.0\n\
                    e.v4.1.2 4.1.2 replaces e.v4.1.1 range >=4.1.0 <4.1.2",
            next: &[
                ("e.v4.1.0", "e.v4.1.2", "e.v4.1.2"),
                ("e.v4.1.1", "e.v4.1.2", "e.v4.1.2"),
                ("e.v4.0.9", "e.v4.1.0", "e.v4.1.0"),
            ],
        },
        Row {
            rule: "AT-UPG-05, UPG-06: every z-stream goes to the newest one that skips them",
            graph: "p.v1.1.0 1.1.0\np.v1.1.1 1.1.1\np.v1.1.2 1.1.2 skips p.v1.1.0 p.v1.1.1",
            next: &[("p.v1.1.0", "p.v1.1.2", "p.v1.1.2"), ("p.v1.1.1", "p.v1.1.2", "p.v1.1.2")],
        },
        Row {
            rule: "AT-UPG-06: OLM classic goes by the chain and not by version, OLM v1 by version",
            graph: "p.v2.0.0 2.0.0\np.v1.0.0 1.0.0 replaces p.v2.0.0",
            next: &[("p.v2.0.0", "p.v1.0.0", ""), ("p.v1.0.0", "", "")],
        },
        Row {
            rule: "AT-UPG-07: of the source that is looked at, the replacer is taken if the head's range does not hold it",
            graph: "p.v1 1.0.0\np.v2 2.0.0 replaces p.v1\np.v3 3.0.0 replaces p.v2 range >=2.0.0 <3.0.0",
            next: &[("p.v1", "p.v2", "p.v2"), ("p.v2", "p.v3", "p.v3")],
        },
        Row {
            rule: "UPG-07: who has a version that is not shipped is updated as if it were there",
            graph: "p.v2 2.0.0 replaces p.v1 skips p.v1a range >=0.5.0 <1.0.0",
            next: &[
                ("p.v1", "p.v2", "p.v2"),
                ("p.v1a 1.0.1", "p.v2", "p.v2"),
                ("gone 0.5.0", "p.v2", "p.v2"),
                ("gone 0.4.0", "", ""),
                ("gone", "", ""),
            ],
        },
        Row {
            rule: "UPG-12: an edge that is added later to a released version",
            graph: "p.v1.2.3 1.2.3\np.v1.2.4 1.2.4 replaces p.v1.2.3\np.v1.3.0 1.3.0 replaces p.v1.2.3 skips p.v1.2.4",
            next: &[("p.v1.2.3", "p.v1.3.0", "p.v1.3.0"), ("p.v1.2.4", "p.v1.3.0", "p.v1.3.0")],
        },
        Row {
            rule: "AT-58, PATH-03, PATH-04: what is skipped is no candidate of OLM classic, and one of OLM v1",
            graph: "example.v2.0.0 2.0.0 range >=1.0.0 <2.0.0\nexample.v3.0.0 3.0.0 skips example.v2.0.0",
            next: &[
                ("example.v1.0.0 1.0.0", "", "example.v2.0.0"),
                ("example.v2.0.0", "example.v3.0.0", "example.v3.0.0"),
            ],
        },
        Row {
            rule: "AT-59, PATH-02: of several, OLM classic takes the one nearest the head, OLM v1 the highest version",
            graph: "p.v1.0.0 1.0.0\np.v2.0.0 2.0.0 replaces p.v1.0.0\np.v1.5.0 1.5.0 replaces p.v2.0.0 skips p.v1.0.0",
            next: &[("p.v1.0.0", "p.v1.5.0", "p.v2.0.0")],
        },
        Row {
            rule: "an entry in the middle of the chain may hold the range",
            graph: "p.v1 1.0.0\np.v2 2.0.0 replaces p.v1 range <2.0.0\np.v3 3.0.0 replaces p.v2",
            next: &[("other.v0 0.1.0", "p.v2", "p.v2"), ("p.v1", "p.v2", "p.v2")],
        },
        Row {
            rule: "a range that cannot be read counts as none",
            graph: "p.v1 1.0.0\np.v2 2.0.0 replaces p.v1 range >=0.1.0, <2.0.0",
            next: &[("p.v0 0.2.0", "", ""), ("p.v1", "p.v2", "p.v2")],
        },
        Row {
            rule: "an entry whose range holds its own version stays",
            graph: "p.v1 1.0.0\np.v2 2.0.0 replaces p.v1 range <=2.0.0",
            next: &[("p.v1", "p.v2", "p.v2"), ("p.v2", "", "")],
        },
        Row {
            rule: "what is withdrawn keeps its place and is never chosen by OLM classic (R070, R071)",
            graph: "p.v1 1.0.0\np.v2 2.0.0x replaces p.v1\np.v3 3.0.0 replaces p.v2",
            next: &[("p.v1", "", "p.v2"), ("p.v2", "p.v3", "p.v3")],
        },
        Row {
            rule: "OLM v1 takes what is deprecated last, and rather stays than to move there",
            graph: "p.v1 1.0.0\np.v2 2.0.0 replaces p.v1 range <2.0.0\np.v3 3.0.0! replaces p.v2 range <3.0.0",
            next: &[("p.v1", "p.v3", "p.v2"), ("p.v2", "p.v3", "")],
        },
        Row {
            rule: "OLM v1 moves from what is deprecated to anything that covers it",
            graph: "p.v1 1.0.0!\np.v2 2.0.0! replaces p.v1",
            next: &[("p.v1", "p.v2", "p.v2")],
        },
        Row {
            rule: "OLM v1 orders bundles of one version by release, which is in the build metadata",
            graph: "p.v1 1.0.0+1\np.v1a 1.0.0+9 range >=1.0.0 <=1.0.0\np.v1b 1.0.0+10 replaces p.v1a skips p.v1",
            next: &[
                ("p.v1", "p.v1b", "p.v1b"),
                ("p.v1a", "p.v1b", "p.v1b"),
                ("p.v1b", "p.v1a", ""),
            ],
        },
        Row {
            rule: "OLM v1 takes a bundle of the same version and release for the installed one",
            graph: "b.v1 1.0.0\nc.v1 1.0.0 replaces b.v1",
            next: &[("b.v1", "c.v1", ""), ("c.v1", "", "b.v1"), ("other.v1 1.0.0", "", "b.v1")],
        },
    ];
    for row in rows {
        let graph = graph(row.graph);
        for (installed, in_classic, in_extension) in row.next {
            let here = Here::new(&graph, installed);
            let found = (next(&classic(&graph), &here), next(&extension(&graph), &here));
            let expected = ((*in_classic).to_owned(), (*in_extension).to_owned());
            assert_eq!(found, expected, "{}: from {installed}", row.rule);
        }
    }
}

#[test]
fn first_installation_is_the_head_of_the_view() {
    // AT-UPG-02: 0.9.1 is never installed anew; AT-UPG-04: the default channel counts.
    let etcd = graph(ETCD);
    assert_eq!(&*classic(&etcd).head().unwrap().name, "etcd.v0.9.2");
    let example =
        graph("alpha: example.v0.1.2 0.1.2\nbeta: example.v0.1.3 0.1.3 replaces example.v0.1.2");
    let head = |channels: &[&str]| {
        let view = example.view(Semantics::Classic, channels).unwrap();
        view.head().map(|head| head.name.to_string()).unwrap_or_default()
    };
    assert_eq!(head(&["alpha"]), "example.v0.1.2");
    assert_eq!(head(&["beta"]), "example.v0.1.3");
    assert_eq!(head(&["gamma"]), "");
    // No channel: all channels, the default channel first, the others by name.
    assert_eq!(head(&[]), "example.v0.1.2");
    let default = Graph::builder("p")
        .default_channel("z")
        .entry("a", "p.v2", mainstay_updates::EntryEdges::default())
        .entry("z", "p.v1", mainstay_updates::EntryEdges::default())
        .finish();
    let view = default.view(Semantics::Classic, &[]).unwrap();
    assert_eq!(&*view.head().unwrap().name, "p.v1");
    // Extensions: the highest version of all channels that is not deprecated.
    let several = graph("stable: p.v1 1.0.0\nfast: p.v3 3.0.0!\np.v2 2.0.0 skips p.v3");
    assert_eq!(&*extension(&several).head().unwrap().name, "p.v2");
    let fast = graph("stable: p.v1 1.0.0!\nfast: p.v3 3.0.0!");
    assert_eq!(&*extension(&fast).head().unwrap().name, "p.v3");
    assert_eq!(
        &*fast.view(Semantics::Extension, &["stable"]).unwrap().head().unwrap().name,
        "p.v1"
    );
}

#[test]
fn withdrawn_head_is_never_chosen() {
    let graph = graph("p.v1 1.0.0\np.v2 2.0.0 replaces p.v1\np.v3 3.0.0x replaces p.v2");
    let view = classic(&graph);
    assert_eq!(&*view.head().unwrap().name, "p.v2");
    assert_eq!(&*graph.channel("stable").unwrap().head().unwrap().name, "p.v3");
    assert_eq!(path(&view, &Here::new(&graph, "p.v1")), "p.v2");
    let never: Vec<_> = view.never_chosen();
    assert!(
        matches!(never[..], [one] if &*one.entry.name == "p.v3" && matches!(one.why, UnchosenReason::Withdrawn))
    );
}

#[test]
fn successors_are_the_covering_entries_best_first() {
    let graph = graph(
        "p.v1 1.0.0\np.v2 2.0.0 replaces p.v1\np.v3 3.0.0 replaces p.v2 skips p.v1 p.v2a\n\
         p.v4 4.0.0 replaces p.v3 range >=1.0.0 <2.0.0\nfast: p.v2a 2.0.1 range <2.0.1\np.v5 5.0.0 replaces p.v2a",
    );
    let here = Here::new(&graph, "p.v1");
    let view = classic(&graph);
    let found = view.successors(&here.installed());
    assert_eq!(names(&found), "p.v4 p.v3 p.v2");
    let edges: Vec<Edge> = found.iter().map(|step| step.edge).collect();
    assert_eq!(edges, [Edge::SkipRange, Edge::Skips, Edge::Replaces]);
    assert_eq!(names(&extension(&graph).successors(&here.installed())), "p.v4 p.v3 p.v2a p.v2");
    let fast = graph.view(Semantics::Extension, &["fast", "nowhere"]).unwrap();
    assert_eq!(names(&fast.successors(&here.installed())), "p.v2a");
    // A Subscription without channel uses all channels, the default channel first.
    let all = graph.view(Semantics::Classic, &[]).unwrap();
    assert_eq!(names(&all.successors(&here.installed())), "p.v4 p.v3 p.v2 p.v2a");
}

#[test]
fn channel_lists_its_chain_skipped_entries_and_virtual_names() {
    let graph = graph(
        "p.v1 1.0.0 replaces p.v0\np.v2 2.0.0 replaces p.v1\np.v2a 2.0.1\n\
         p.v3 3.0.0 replaces p.v2 skips p.v2a p.v2b range >=1.0.0 <=3.0.0",
    );
    let stable = graph.channel("stable").unwrap();
    let chain: Vec<&str> = stable.chain().unwrap().map(|entry| &*entry.name).collect();
    assert_eq!(chain, ["p.v3", "p.v2", "p.v1"]);
    let skipped: Vec<&str> = stable.skipped().into_iter().map(|entry| &*entry.name).collect();
    assert_eq!(skipped, ["p.v2a"]);
    assert_eq!(stable.virtual_names().into_iter().collect::<Vec<_>>(), ["p.v0", "p.v2b"]);
    let from: Vec<_> = stable
        .predecessors(stable.head().unwrap())
        .into_iter()
        .map(|predecessor| (predecessor.name, predecessor.edge, predecessor.entry.is_some()))
        .collect();
    assert_eq!(
        from,
        [
            ("p.v1", Edge::SkipRange, true),
            ("p.v2", Edge::Replaces, true),
            ("p.v2a", Edge::Skips, true),
            ("p.v2b", Edge::Skips, false),
        ]
    );
    let range = stable.head().unwrap().skip_range.as_ref().unwrap();
    assert_eq!(&*range.text, ">=1.0.0 <=3.0.0");
    let version = mainstay_version::parse_strict("2.9.0").unwrap();
    assert!(range.set.contains(&version));
}

#[test]
fn deprecations_belong_to_package_channel_or_bundle() {
    let graph = Graph::builder("p")
        .bundle("p.v1", "1.0.0")
        .entry("stable", "p.v1", mainstay_updates::EntryEdges::default())
        .deprecate_package("no longer maintained")
        .deprecate_channel("stable", "use fast")
        .deprecate_bundle("p.v1", "has a hole")
        .finish();
    assert_eq!(graph.deprecation.as_deref(), Some("no longer maintained"));
    assert_eq!(graph.channel("stable").unwrap().deprecation.as_deref(), Some("use fast"));
    assert_eq!(graph.bundle("p.v1").unwrap().deprecation.as_deref(), Some("has a hole"));
}

#[test]
fn a_channel_without_order_has_no_classic_view() {
    let graph = graph("p.v1 1.0.0\np.v2 2.0.0\nfast: p.v1 1.0.0\np.v2 2.0.0 replaces p.v1");
    let error = graph.view(Semantics::Classic, &["stable"]).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "2 replacement chains were found in channel \"stable\" of package \"p\": p.v1, p.v2"
        ),
        "{error}"
    );
    assert!(graph.view(Semantics::Classic, &[]).is_err());
    assert!(graph.view(Semantics::Classic, &["fast"]).is_ok());
    let view = graph.view(Semantics::Extension, &[]).unwrap();
    assert_eq!(path(&view, &Here::new(&graph, "p.v1")), "p.v2");
}

#[test]
fn empty_graph_has_no_head_and_no_paths() {
    let empty = Graph::builder("p").finish();
    for semantics in [Semantics::Classic, Semantics::Extension] {
        let view = empty.view(semantics, &[]).unwrap();
        let installed = InstalledBundle::new("p.v1", None);
        assert!(view.head().is_none() && view.next(&installed).is_none());
        assert!(view.shortest(&installed).is_none() && view.all_paths(&installed).next().is_none());
        assert!(view.stranded().is_empty() && view.never_chosen().is_empty());
        assert!(!view.reaches_head(&installed));
        assert!(empty.switches(semantics, &installed).is_empty());
    }
}

#[test]
fn stranded_bundles_have_a_reason() {
    struct Case {
        rule: &'static str,
        graph: &'static str,
        classic: &'static [&'static str],
        extension: &'static [&'static str],
    }
    let cases = [
        Case { rule: "sound", graph: ETCD, classic: &[], extension: &[] },
        Case {
            rule: "only what is itself skipped leads on (PATH-04)",
            graph: "p.v1 1.0.0\np.v2 2.0.0 replaces p.v1\np.v3 3.0.0 skips p.v2",
            classic: &["p.v1 at p.v1: only p.v2 replaces or skips it, which is skipped by p.v3"],
            extension: &[],
        },
        Case {
            rule: "who is skipped by what nobody leads away from either",
            graph: "p.v1 1.0.0 range <=1.0.0\np.v2 2.0.0 skips p.v1 p.v3x\np.v3 3.0.0 skips p.v2",
            classic: &["p.v1 at p.v1: only p.v2 replaces or skips it, which is skipped by p.v3"],
            extension: &[],
        },
        Case {
            rule: "its own edges are no way on",
            graph: "p.v1 1.0.0 skips p.v1 range <=1.0.0\np.v2 2.0.0",
            classic: &["p.v1 at p.v1: nothing replaces or skips it"],
            extension: &["p.v1 at p.v1: nothing replaces or skips it"],
        },
        Case {
            rule: "circles beside the chain",
            graph: "p.v1 1.0.0 replaces p.v2\np.v2 2.0.0 replaces p.v1\np.v3 3.0.0",
            classic: &[
                "p.v1 at p.v1: only p.v2 replaces or skips it, which is not on the chain of replaces from the head",
                "p.v2 at p.v2: only p.v1 replaces or skips it, which is not on the chain of replaces from the head",
            ],
            extension: &[
                "p.v1 at p.v2: its successor p.v1 is not newer",
                "p.v2 at p.v2: its successor p.v1 is not newer",
            ],
        },
        Case {
            rule: "the range of an older entry leads round and round",
            graph: "p.v1 1.0.0 range >=2.0.0 <3.0.0\np.v2 2.0.0 replaces p.v1\np.v2a 2.5.0 replaces p.v2\n\
                    p.v4 4.0.0 replaces p.v2a skips p.v2a p.v0",
            classic: &[
                "p.v1 at p.v2: updates lead back to p.v1",
                "p.v2 at p.v1: updates lead back to p.v2",
            ],
            extension: &[],
        },
        Case {
            rule: "its own range keeps an entry where it is",
            graph: "p.v1 1.0.0 range >=2.0.0 <3.0.0\np.v2 2.0.0 replaces p.v1 range <=2.0.0\n\
                    p.v2a 2.5.0 replaces p.v2\np.v4 4.0.0 replaces p.v2a skips p.v2a",
            classic: &[
                "p.v1 at p.v2: its own skipRange holds its version, which keeps it from p.v1",
                "p.v2 at p.v2: its own skipRange holds its version, which keeps it from p.v1",
            ],
            extension: &[],
        },
        Case {
            rule: "OLM v1 does not move to what is deprecated",
            graph: "p.v1 1.0.0\np.v2 2.0.0! replaces p.v1\np.v3 3.0.0 replaces p.v2",
            classic: &[],
            extension: &["p.v1 at p.v1: its successor p.v2 is deprecated"],
        },
        Case {
            rule: "channels without an edge between them",
            graph: "stable: p.v1 1.0.0\np.v1.1 1.1.0 replaces p.v1\nfast: p.v2 2.0.0",
            classic: &[],
            extension: &[
                "p.v1 at p.v1.1: nothing replaces or skips it",
                "p.v1.1 at p.v1.1: nothing replaces or skips it",
            ],
        },
    ];
    for case in cases {
        let graph = graph(case.graph);
        let what = |how| format!("{how}: {}, in the graph\n{}", case.rule, case.graph);
        assert_eq!(stranded(&classic(&graph)), case.classic, "{}", what("classic"));
        assert_eq!(stranded(&extension(&graph)), case.extension, "{}", what("extension"));
    }
}

#[test]
fn skip_range_from_a_set_equals_skip_range_from_text() {
    let range = mainstay_version::Range::parse(">=1.0.0 <2.0.0").unwrap();
    let edges = mainstay_updates::EntryEdges::default;
    let graph = Graph::builder("p")
        .bundle("p.v1", "1.0.0")
        .bundle("p.v2", "2.0.0")
        .entry("stable", "p.v1", edges())
        .entry("stable", "p.v2", edges())
        .skip_range("stable", "p.v2", range.set())
        .skip_range("other", "p.v2", range.set())
        .finish();
    let steps = graph.channel("stable").unwrap().entry("p.v2").unwrap();
    let version = graph.bundle("p.v1").unwrap().version.clone();
    assert_eq!(steps.covers("p.v1", version.as_ref()), Some(Edge::SkipRange));
}
