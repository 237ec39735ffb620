//! Update paths to the head: automatic, shortest, all; and switches to other channels.

use crate::dsl::{Here, classic, extension, graph, names, path};
use mainstay_updates::{Graph, PathEnd, Semantics};

/// From 1.0 on every minor version replaces the one before, and 1.4 also skips 1.1 and 1.2.
const LADDER: &str = "p.v1.0 1.0.0\np.v1.1 1.1.0 replaces p.v1.0\np.v1.2 1.2.0 replaces p.v1.1\n\
                      p.v1.3 1.3.0 replaces p.v1.2\np.v1.4 1.4.0 replaces p.v1.3 range >=1.1.0 <1.3.0";

#[test]
fn path_repeats_the_next_update_until_the_head() {
    let graph = graph(LADDER);
    for (from, expected) in [
        ("p.v1.0", "p.v1.1 p.v1.4"),
        ("p.v1.1", "p.v1.4"),
        ("p.v1.3", "p.v1.4"),
        ("p.v1.4", ""),
        ("other 1.2.5", "p.v1.4"),
        ("other 0.9.0", "| nothing replaces or skips it"),
        ("other", "| nothing replaces or skips it"),
    ] {
        let here = Here::new(&graph, from);
        assert_eq!(path(&classic(&graph), &here), expected, "{from}");
        assert_eq!(path(&extension(&graph), &here), expected, "{from}");
        let is_way = !expected.starts_with('|');
        assert_eq!(classic(&graph).reaches_head(&here.installed()), is_way, "{from}");
    }
}

#[test]
fn shortest_path_can_differ_from_the_automatic_path() {
    // OLM classic goes to p.v3 first because it is nearer to the head; p.v2 would be quicker.
    let graph = graph(
        "p.v1 1.0.0\np.v2 2.0.0 replaces p.v1\np.v3 3.0.0 replaces p.v2 skips p.v1\n\
         p.v4 4.0.0 replaces p.v3\np.v5 5.0.0 replaces p.v4 skips p.v2x\np.v6 6.0.0 replaces p.v5 range 2.0.0",
    );
    let (here, view) = (Here::new(&graph, "p.v1"), classic(&graph));
    assert_eq!(path(&view, &here), "p.v3 p.v4 p.v5 p.v6");
    assert_eq!(names(&view.shortest(&here.installed()).unwrap()), "p.v2 p.v6");
    let all: Vec<String> = view.all_paths(&here.installed()).map(|steps| names(&steps)).collect();
    assert_eq!(all, ["p.v3 p.v4 p.v5 p.v6", "p.v2 p.v6", "p.v2 p.v3 p.v4 p.v5 p.v6"]);
    assert_eq!(
        view.shortest(&Here::new(&graph, "p.v6").installed()).map(|path| path.len()),
        Some(0)
    );
    assert!(view.shortest(&Here::new(&graph, "other").installed()).is_none());
}

#[test]
fn shortest_path_leads_to_a_version_or_a_range() {
    let graph = graph(LADDER);
    let view = classic(&graph);
    let path = |from: &str, range_text: &str| {
        let here = Here::new(&graph, from);
        let range = mainstay_version::Range::parse(range_text).unwrap();
        let is_in = |bundle: &mainstay_updates::GraphBundle| {
            bundle.version.as_ref().is_some_and(|version| range.contains(version))
        };
        view.shortest_to(&here.installed(), is_in).map(|steps| names(&steps))
    };
    for (from, range_text, expected) in [
        ("p.v1.0", "1.3.0", Some("p.v1.1 p.v1.2 p.v1.3")),
        ("p.v1.0", ">=1.3.0", Some("p.v1.1 p.v1.4")),
        ("p.v1.0", ">=1.0.0 <1.2.0", Some("")),
        ("p.v1.1", ">1.1.0", Some("p.v1.4")),
        // No path leads back.
        ("p.v1.3", "<1.3.0", None),
        ("p.v1.0", ">2.0.0", None),
        ("gone 1.2.9", "1.4.0", Some("p.v1.4")),
        ("gone 1.3.9", "1.4.0", None),
    ] {
        assert_eq!(path(from, range_text).as_deref(), expected, "{from} to {range_text}");
    }
}

#[test]
fn shortest_path_exists_where_automatic_updates_end() {
    let graph = graph("p.v1 1.0.0\np.v2 2.0.0! replaces p.v1\np.v3 3.0.0 replaces p.v2");
    let (here, view) = (Here::new(&graph, "p.v1"), extension(&graph));
    assert_eq!(path(&view, &here), "| its successor p.v2 is deprecated");
    assert_eq!(names(&view.shortest(&here.installed()).unwrap()), "p.v2 p.v3");
}

#[test]
fn dead_ends_are_on_no_path() {
    // p.v2a has no update: only an entry that is itself skipped skips it.
    let graph = graph(
        "p.v1 1.0.0\np.v2 2.0.0 replaces p.v1\np.v3 3.0.0 replaces p.v2\nfast: p.v2a 2.5.0 replaces p.v1",
    );
    let (here, view) = (Here::new(&graph, "p.v1"), extension(&graph));
    assert_eq!(path(&view, &here), "p.v2a | nothing replaces or skips it");
    let all: Vec<String> = view.all_paths(&here.installed()).map(|steps| names(&steps)).collect();
    assert_eq!(all, ["p.v2 p.v3"]);
}

#[test]
fn dead_ends_take_no_search_steps() {
    // Thirty versions that can follow each other in every order, but do not lead to the head.
    let mut builder = Graph::builder("p").bundle("p.v1", "1.0.0").bundle("p.v2", "2.0.0");
    let names: Vec<String> = (0..30).map(|at| format!("dead{at:02}")).collect();
    for (at, name) in names.iter().enumerate() {
        let mut skips: Vec<&str> = names[..at].iter().map(|name| &**name).collect();
        skips.push("p.v1");
        let edges = mainstay_updates::EntryEdges {
            skips: &skips,
            ..mainstay_updates::EntryEdges::default()
        };
        builder = builder.bundle(name, &format!("1.{at}.0")).entry("dead", name, edges);
    }
    let edges = mainstay_updates::EntryEdges {
        replaces: Some("p.v1"),
        ..mainstay_updates::EntryEdges::default()
    };
    let graph = builder.entry("stable", "p.v2", edges).finish();
    let view = extension(&graph);
    let here = Here::new(&graph, "p.v1");
    let mut paths = view.all_paths(&here.installed());
    assert_eq!(paths.by_ref().map(|path| crate::dsl::names(&path)).collect::<Vec<_>>(), ["p.v2"]);
    assert!(!paths.is_cut());
}

#[test]
fn head_with_an_update_is_reported() {
    let graph =
        graph("p.v1 1.0.0 range >=3.0.0\np.v2 2.0.0 replaces p.v1\np.v3 3.0.0 replaces p.v2");
    let view = classic(&graph);
    assert_eq!(&*view.leaves_head().unwrap().bundle.name, "p.v1");
    assert_eq!(path(&view, &Here::new(&graph, "p.v1")), "p.v2 p.v3");
    assert!(extension(&graph).leaves_head().is_none());
}

#[test]
fn all_paths_are_lazy_and_the_search_is_bounded() {
    // Every version skips every earlier one: 2^38 paths.
    let mut builder = Graph::builder("p");
    let names: Vec<String> = (0..40).map(|at| format!("p.v{at:02}")).collect();
    for at in 0..40 {
        let skips: Vec<&str> = names[..at].iter().map(|name| &**name).collect();
        let range = format!("<{at}.0.0");
        let edges = mainstay_updates::EntryEdges {
            replaces: skips.last().copied(),
            skip_range: Some(&range),
            ..mainstay_updates::EntryEdges::default()
        };
        builder =
            builder.bundle(&names[at], &format!("{at}.0.0")).entry("stable", &names[at], edges);
    }
    let graph = builder.finish();
    let (view, here) = (classic(&graph), Here::new(&graph, "p.v00"));
    let mut paths = view.all_paths(&here.installed());
    assert_eq!(paths.next().map(|path| path.len()), Some(1));
    assert_eq!(paths.by_ref().take(1000).count(), 1000);
    assert!(!paths.is_cut());
    let more = paths.by_ref().count();
    assert!(paths.is_cut() && more > 1000, "{more}");
}

#[test]
fn switches_report_the_first_update_of_each_channel() {
    let graph = graph(
        "stable: p.v1 1.0.0\np.v1.1 1.1.0 replaces p.v1\n\
         candidate: p.v1.1 1.1.0\np.v1.2 1.2.0 replaces p.v1.1\np.v2 2.0.0 replaces p.v1.2\n\
         fast: p.v3 3.0.0 range >=2.0.0 <3.0.0\n\
         broken: p.v1 1.0.0\np.v2 2.0.0\n\
         same: p.v1.1 1.1.0",
    );
    let here = Here::new(&graph, "p.v1.1");
    let say = |semantics| {
        let switches = graph.switches(semantics, &here.installed());
        let say = switches.iter().map(|switch| {
            let first = switch.first().map_or("-", |step| &*step.bundle.name);
            let end = switch
                .route
                .as_ref()
                .map_or_else(|why| why.why.text("p", "c"), |stranded| stranded.end.to_string());
            let end = end.split(' ').take(3).collect::<Vec<_>>().join(" ");
            format!(
                "{}: {} {first} {} | {end}",
                switch.channel.name,
                switch.reaches_head(),
                switch.is_member
            )
        });
        say.collect::<Vec<_>>()
    };
    assert_eq!(
        say(Semantics::Classic),
        [
            "stable: true - true | it is the",
            "broken: false - false | a unique replacement",
            "candidate: true p.v1.2 true | it is the",
            "fast: false - false | nothing replaces or",
            "same: true - true | it is the",
        ]
    );
    assert_eq!(
        say(Semantics::Extension),
        [
            "stable: true - true | it is the",
            "broken: false - false | nothing replaces or",
            "candidate: true p.v1.2 true | it is the",
            "fast: false - false | nothing replaces or",
            "same: true - true | it is the",
        ]
    );
    let candidate = graph.view(Semantics::Classic, &["candidate"]).unwrap();
    assert!(matches!(candidate.path(&here.installed()).end, PathEnd::Head));
}
