//! `mainstay catalog graph`: text, SVG, Mermaid, DOT and JSON.

use mainstay_clitest::TestFolder;
use serde_json::{Value, json};

/// A package with two channels: a chain with a skipped and a deprecated bundle, and a channel whose
/// first entry replaces an unshipped bundle.
fn catalog() -> Vec<Value> {
    let mut documents = vec![
        json!({ "schema": "olm.package", "name": "kiwi", "defaultChannel": "stable" }),
        json!({ "schema": "olm.channel", "package": "kiwi", "name": "stable", "entries": [
            { "name": "kiwi.v1.0.0" },
            { "name": "kiwi.v1.1.0", "replaces": "kiwi.v1.0.0" },
            { "name": "kiwi.v1.2.0", "replaces": "kiwi.v1.0.0", "skips": ["kiwi.v1.1.0", "kiwi.v0.9.0"] },
            { "name": "kiwi.v2.0.0", "replaces": "kiwi.v1.2.0", "skipRange": ">=1.0.0 <1.2.0" },
        ] }),
        json!({ "schema": "olm.channel", "package": "kiwi", "name": "fast", "entries": [
            { "name": "kiwi.v2.0.0", "replaces": "kiwi.v1.2.0" },
        ] }),
        json!({ "schema": "olm.deprecations", "package": "kiwi", "entries": [
            { "reference": { "schema": "olm.bundle", "name": "kiwi.v1.2.0" }, "message": "it \"leaks\"" },
            { "reference": { "schema": "olm.channel", "name": "fast" }, "message": "use stable" },
        ] }),
    ];
    documents.extend(["1.0.0", "1.1.0", "1.2.0", "2.0.0"].map(bundle));
    documents
}

fn bundle(version: &str) -> Value {
    let value = json!({ "packageName": "kiwi", "version": version });
    json!({
        "schema": "olm.bundle", "package": "kiwi", "name": format!("kiwi.v{version}"), "image": "a.b/c:d",
        "properties": [{ "type": "olm.package", "value": value }],
    })
}

fn place(documents: &[Value]) -> TestFolder {
    let text: Vec<String> = documents.iter().map(ToString::to_string).collect();
    TestFolder::new().file("c/catalog.json", text.join("\n"))
}

#[test]
fn text_has_a_line_for_each_bundle() {
    let place = place(&catalog());
    insta::assert_snapshot!(place.catalog("graph c kiwi").out, @r#"
    Package kiwi

    Channel stable (default): 4 bundles
      ◉ 2.0.0  replaces 1.2.0; skipRange >=1.0.0 <1.2.0 (2 here)
      ● 1.2.0  replaces 1.0.0; skips 1.1.0, kiwi.v0.9.0; deprecated: it "leaks"
      ○ 1.1.0  replaces 1.0.0; skipped by 1.2.0
      ● 1.0.0

    Channel fast: 1 bundle
      deprecated: use stable
      ◉ 2.0.0  replaces 1.2.0
      · 1.2.0  deprecated: it "leaks"

    ◉ head   ● may be installed   ○ skipped: not for new installations   · not in the channel
    "#);
    insta::assert_snapshot!(place.catalog("graph c kiwi --from 1.1.0 --channel stable").out, @r#"
    Package kiwi

    Channel stable (default): 4 bundles
      from kiwi.v1.1.0: 1 update to the head: 1.1.0 → 2.0.0
    ▶ ◉ 2.0.0  replaces 1.2.0; skipRange >=1.0.0 <1.2.0 (2 here)
      ● 1.2.0  replaces 1.0.0; skips 1.1.0, kiwi.v0.9.0; deprecated: it "leaks"
    ▶ ○ 1.1.0  replaces 1.0.0; installed; skipped by 1.2.0
      ● 1.0.0

    ◉ head   ● may be installed   ○ skipped: not for new installations   ▶ on the upgrade path
    "#);
}

#[test]
fn update_path_may_start_at_an_unshipped_bundle() {
    let place = place(&catalog());
    for (from, line) in [
        ("kiwi.v0.9.0", "  from kiwi.v0.9.0: 2 updates to the head: kiwi.v0.9.0 → 1.2.0 → 2.0.0"),
        ("1.1.5", "  from 1.1.5: 1 update to the head: 1.1.5 → 2.0.0"),
        ("v2.0.0", "  from kiwi.v2.0.0: it is the head"),
    ] {
        let out = place.catalog(&format!("graph c kiwi -c stable --from {from}")).out;
        assert!(out.lines().any(|output_line| output_line == line), "{from}: {out}");
    }
    let out = place.catalog("graph c kiwi -c fast --from 1.0.0").out;
    assert!(out.contains("  from kiwi.v1.0.0: no update: nothing replaces or skips it\n"), "{out}");
}

#[test]
fn unknown_names_are_refused_with_a_remedy() {
    let place = place(&catalog());
    for (arguments, message) in [
        ("graph c plum", "plum"),
        ("graph c kiwi -c none", "error: c: package \"kiwi\" has no channel \"none\""),
        ("graph c kiwi --from none", "is called \"none\""),
        ("graph c kiwi --from 9.0.0", "is called \"9.0.0\""),
    ] {
        let answer = place.catalog(arguments);
        assert_eq!((answer.code, answer.out.as_str()), (2, ""), "{arguments}");
        assert!(answer.err.contains(message), "{arguments}: {}", answer.err);
    }
}

#[test]
fn mermaid_and_dot_number_nodes_and_use_names_as_labels() {
    let place = place(&catalog());
    let mermaid = place.catalog("graph c kiwi --from 1.1.0 -o mermaid").out;
    let (_, mermaid) = mermaid.split_once("  subgraph p").unwrap();
    insta::assert_snapshot!(mermaid, @r##"
    ["kiwi"]
        subgraph c0["stable (default)"]
          c0n0["1.0.0"]
          c0n1["1.1.0"]
          c0n2["1.2.0"]
          c0n3["2.0.0"]
          c0n0 --> c0n1
          c0n0 --> c0n2
          c0n1 -. skips .-> c0n2
          c0n0 -. "#62;=1.0.0 #60;1.2.0, 2 bundles" .-> c0n3
          c0n2 --> c0n3
          c0n1 -. "#62;=1.0.0 #60;1.2.0" .-> c0n3
        end
        subgraph c1["fast (deprecated)"]
          c1n0["1.2.0"]
          c1n1["2.0.0"]
          c1n0 --> c1n1
        end
      end
      class c0n2,c1n0 deprecated
      class c1n0 gone
      class c0n3,c1n1 head
      class c0n1 skipped
      class c0n1,c0n3 way
      linkStyle 5 stroke:#1a7f37,stroke-width:3px
    "##);
    let dot = place.catalog("graph c kiwi --from 1.1.0 -c stable -o dot").out;
    for line in [
        "digraph \"kiwi\" {",
        "  subgraph cluster_0 {",
        "    label=\"stable (default)\";",
        "    c0n0 [label=\"1.0.0\", tooltip=\"kiwi.v1.0.0\"];",
        "    c0n0 -> c0n1;",
        "    c0n1 -> c0n2 [style=dashed, label=\"skips\"];",
        "    c0n0 -> c0n3 [style=dotted, label=\">=1.0.0 <1.2.0, 2 bundles\"];",
    ] {
        assert!(dot.lines().any(|output_line| output_line == line), "{line}\n{dot}");
    }
}

/// The names of unclosed tags, and the number of all tags.
fn tags(svg: &str) -> (Vec<&str>, usize) {
    let (mut open, mut count) = (Vec::new(), 0);
    for tag in svg.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').unwrap();
        let name = tag.split([' ', '\n']).next().unwrap().trim_end_matches('/');
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
            count += 1;
        }
    }
    (open, count)
}

#[test]
fn svg_is_well_formed_and_has_every_bundle_and_update() {
    let svg = place(&catalog()).catalog("graph c kiwi --from 1.1.0 -o svg").out;
    assert_eq!(tags(&svg).0, Vec::<&str>::new());
    for part in [
        "font-weight=\"600\" x=\"16\" y=\"32\">kiwi</text>",
        "<title>1.2.0 skips 1.1.0</title>",
        "<title>2.0.0 skipRange &gt;=1.0.0 &lt;1.2.0",
        "kiwi.v1.1.0&#10;skipped by kiwi.v1.2.0",
        "deprecated: it &quot;leaks&quot;",
        "deprecated: use stable",
        "1 update to the head",
    ] {
        assert!(svg.contains(part), "{part}\n{svg}");
    }
}

#[test]
fn hostile_names_change_only_labels() {
    let evil = "\"]</text><script>\n%%{init: {}}%% --> end; \\N\u{202e}";
    let mut documents = catalog();
    documents[1]["name"] = evil.into();
    documents[0]["defaultChannel"] = evil.into();
    documents[1]["entries"][0]["replaces"] = evil.into();
    documents[1]["entries"][3]["skipRange"] = "<1.2.0".into();
    let drawn = |documents: &[Value], format: &str| {
        let answer = place(documents).catalog(&format!("graph c kiwi -o {format}"));
        assert_eq!(answer.err, "");
        answer.out
    };
    let mut plain = documents.clone();
    plain[1]["name"] = "a".into();
    plain[0]["defaultChannel"] = "a".into();
    plain[1]["entries"][0]["replaces"] = "a".into();
    for format in ["text", "svg", "mermaid", "dot"] {
        let (tame, wild) = (drawn(&plain, format), drawn(&documents, format));
        assert!(!wild.contains('\u{202e}'), "{format}: {wild}");
        if format != "text" {
            assert_eq!(tame.lines().count(), wild.lines().count(), "{format}: {wild}");
        }
        if format == "svg" {
            assert!(!wild.contains("<script"), "{wild}");
            assert_eq!(tags(&tame), tags(&wild));
        } else if format == "mermaid" {
            assert!(!wild.contains("%%"), "{wild}");
        } else if format == "dot" {
            let quotes =
                |text: &str| text.replace("\\\\", "").replace("\\\"", "").matches('"').count();
            assert_eq!(quotes(&tame), quotes(&wild));
        }
        assert_eq!(wild, drawn(&documents, format), "the same bytes again");
    }
}

#[test]
fn invalid_catalog_has_no_graph() {
    let mut documents = catalog();
    documents[1]["entries"][3] = json!({ "name": "kiwi.v2.0.0" });
    let answer = place(&documents).catalog("graph c kiwi");
    assert_eq!((answer.code, answer.out.as_str()), (1, ""));
    assert!(answer.err.contains("multiple channel heads"), "{}", answer.err);
}

#[test]
fn hundreds_of_skip_ranges_share_one_rail() {
    let entry = |number: usize| {
        json!({
            "name": format!("kiwi.v1.{number}.0"),
            "replaces": format!("kiwi.v1.{}.0", number.wrapping_sub(1)),
            "skipRange": format!("<1.{number}.0"),
        })
    };
    let mut documents = vec![
        json!({ "schema": "olm.package", "name": "kiwi", "defaultChannel": "stable" }),
        json!({ "schema": "olm.channel", "package": "kiwi", "name": "stable",
                "entries": (0..400).map(entry).collect::<Vec<_>>() }),
    ];
    documents.extend((0..400).map(|number| bundle(&format!("1.{number}.0"))));
    let place = place(&documents);
    let text = place.catalog("graph c kiwi --from 1.0.0").out;
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    // All ranges share one line, with a mark for each bundle and an arrow for each release.
    let svg = place.catalog("graph c kiwi -o svg").out;
    assert!(svg.matches("<path").count() < 810);
    assert!(svg.contains("<title>skipRange: 398 releases, 1.399.0 to 1.2.0, "), "{svg}");
}

/// A channel of three minor versions: the last release of each replaces that of the previous one, and
/// skips all others.
fn skipping() -> Vec<Value> {
    let name = |minor: usize, patch: usize| format!("kiwi.v1.{minor}.{patch}");
    let mut entries = Vec::new();
    let mut all: Vec<String> = Vec::new();
    for minor in 8..11 {
        for patch in 0..30 {
            entries.push(json!({ "name": name(minor, patch) }));
            all.push(name(minor, patch));
        }
        let last = name(minor - 1, 30);
        let skips: Vec<&String> = all.iter().filter(|name| **name != last).collect();
        let mut head = json!({ "name": name(minor, 30), "skips": skips });
        if minor > 8 {
            head["replaces"] = last.into();
        }
        entries.push(head);
        all.push(name(minor, 30));
    }
    let versions = all.iter().map(|name| bundle(name.trim_start_matches("kiwi.v")));
    let mut documents: Vec<Value> = versions.collect();
    documents.insert(0, json!({ "schema": "olm.package", "name": "kiwi", "defaultChannel": "v1" }));
    documents.push(
        json!({ "schema": "olm.channel", "package": "kiwi", "name": "v1", "entries": entries }),
    );
    documents
}

#[test]
fn releases_that_skip_all_earlier_ones_share_one_rail() {
    let place = place(&skipping());
    let svg = place.catalog("graph c kiwi -o svg").out;
    // One rail with marks, three arrows, two arcs for replaced bundles, and the legend; none of the 30
    // + 60 + 90 updates has a line of its own.
    assert_eq!(svg.matches("stroke=\"#8250df\"").count(), 2 + 3 + 2, "{svg}");
    for words in [
        "<title>skips: 3 releases, 1.10.30 to 1.8.30, and each takes all marks below it</title>",
        "<title>1.10.30 skips: 91 bundles, 1.8.0 to 1.10.29</title>",
        "<title>1.9.30 skips: 60 bundles, 1.8.0 to 1.9.29</title>",
        "<title>1.8.30 skips: 30 bundles, 1.8.0 to 1.8.29</title>",
        ">skips 91</text>",
        "from every bundle with a mark",
    ] {
        assert!(svg.contains(words), "{words}\n{svg}");
    }
    // Mermaid and DOT have points: an edge for each bundle, not for each update.
    let mermaid = place.catalog("graph c kiwi -o mermaid").out;
    assert_eq!(mermaid.matches(" -.- ").count(), 91 + 2, "{mermaid}");
    assert!(mermaid.contains("      c0r0p0 -. skips 91 .-> c0n92\n"), "{mermaid}");
    assert!(mermaid.contains("      c0r0p1 -.- c0r0p0\n"), "{mermaid}");
    let dot = place.catalog("graph c kiwi -o dot").out;
    assert_eq!(dot.matches("arrowhead=none").count(), 91 + 2, "{dot}");
    // The update path still has lines of its own.
    let svg = place.catalog("graph c kiwi --from 1.8.3 -o svg").out;
    assert!(svg.contains("<title>1.10.30 skips 1.8.3</title><path class=\"s-way\""), "{svg}");
}

#[test]
fn svg_has_its_colours_without_a_style_sheet() {
    for (documents, from) in [(catalog(), "1.1.0"), (skipping(), "1.8.3")] {
        let svg = place(&documents).catalog(&format!("graph c kiwi --from {from} -o svg")).out;
        let (before, rest) = svg.split_once("<style>").unwrap();
        let (style, after) = rest.split_once("</style>").unwrap();
        // The style sheet has only the colours of dark pages.
        assert!(style.starts_with("@media(prefers-color-scheme:dark){"), "{style}");
        let bare = format!("{before}{after}");
        for unknown in ["var(", "marker", "context-stroke", "style="] {
            assert!(!svg.contains(unknown), "{unknown}: {svg}");
        }
        let shapes = bare.split('<').filter(|tag| {
            ["rect ", "text ", "circle ", "path ", "polygon "]
                .iter()
                .any(|shape| tag.starts_with(shape))
        });
        for shape in shapes {
            let tag = shape.split('>').next().unwrap();
            assert!(tag.contains(" fill=\"#") || tag.contains(" stroke=\"#"), "{tag}");
            // A line without a fill attribute would be filled with black.
            assert!(tag.contains(" fill=\""), "{tag}");
        }
    }
}

#[test]
fn channels_have_the_same_order_in_every_command() {
    let mut documents = vec![
        json!({ "schema": "olm.package", "name": "kiwi", "defaultChannel": "v2" }),
        bundle("1.0.0"),
    ];
    for name in ["v10", "v9", "alpha", "v2"] {
        documents.push(json!({ "schema": "olm.channel", "package": "kiwi", "name": name,
            "entries": [{ "name": "kiwi.v1.0.0" }] }));
    }
    let place = place(&documents);
    let wanted = ["v2", "alpha", "v9", "v10"];
    let json = |arguments: &str| -> Value {
        serde_json::from_str(&place.catalog(&format!("{arguments} -o json")).out).unwrap()
    };
    let names = |list: &Value, field: &str| -> Vec<String> {
        let name = |object: &Value| object[field].as_str().unwrap_or_default().to_owned();
        list.as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(names(&json("list channels c kiwi"), "channel"), wanted);
    assert_eq!(names(&json("show c kiwi")["channels"], "name"), wanted);
    assert_eq!(names(&json("show c kiwi 1.0.0")["channels"], "name"), wanted);
    assert_eq!(json("list bundles c kiwi")[0]["channels"], json!(wanted));
    assert_eq!(json("show c kiwi")["bundles"][0]["channels"], json!(wanted));
    let second = |line: &str, at: usize| line.split_whitespace().nth(at).map(str::to_owned);
    let out = place.catalog("list channels c kiwi").out;
    let table: Vec<String> = out.lines().skip(1).filter_map(|line| second(line, 1)).collect();
    assert_eq!(table, wanted);
    assert!(place.catalog("list bundles c kiwi").out.contains(" v2,alpha,v9,v10 "));
    let out = place.catalog("graph c kiwi").out;
    let drawn = out.lines().filter(|line| line.starts_with("Channel "));
    let drawn: Vec<String> =
        drawn.map(|line| second(line, 1).unwrap().trim_end_matches(':').to_owned()).collect();
    assert_eq!(drawn, wanted);
}

#[test]
fn json_has_the_content_of_the_graph() {
    let place = place(&catalog());
    let json = place.catalog("graph c kiwi --channel stable --from 1.0.0 -o json").out;
    let json: Value = serde_json::from_str(&json).unwrap();
    let yaml = place.catalog("graph c kiwi --channel stable --from 1.0.0 -o yaml").out;
    let yaml = mainstay_yaml::one(yaml.as_bytes(), &mainstay_yaml::Options::default()).unwrap();
    assert_eq!(json, yaml);
    let channel = &json["channels"][0];
    assert_eq!(
        channel["way"],
        json!({"bundles": ["kiwi.v1.0.0", "kiwi.v2.0.0"], "reachesHead": true})
    );
    let skipped =
        channel["bundles"].as_array().unwrap().iter().find(|bundle| bundle["role"] == "skipped");
    assert_eq!(skipped.unwrap()["skippedBy"], "kiwi.v1.2.0");
    let update =
        json!({"from": "kiwi.v1.0.0", "to": "kiwi.v2.0.0", "by": "skipRange", "bundles": 2});
    assert!(channel["updates"].as_array().unwrap().contains(&update), "{channel:#}");
}
