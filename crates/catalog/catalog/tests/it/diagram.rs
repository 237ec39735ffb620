//! Mermaid diagrams of channels.

use mainstay_catalog::{CatalogDocuments, DiagramOptions, LoadOptions, MemorySource, Rendition};

const CATALOG: &str = r#"---
schema: olm.channel
package: kiwi
name: c
entries:
- name: a
- name: b
  replaces: a
- name: d
  replaces: b
  skips: [b]
  skipRange: "<1.1.0"
- name: e
  replaces: d
  skipRange: "no"
---
schema: olm.deprecations
package: kiwi
entries:
- reference: {schema: olm.package}
  message: x
- reference: {schema: olm.bundle, name: b}
  message: x
"#;

/// The catalog with a version for each bundle.
fn rendition() -> Rendition {
    let mut text = CATALOG.to_owned();
    for (name, version) in [("a", "1.0.0"), ("b", "1.1.0"), ("d", "1.2.0"), ("e", "2.0.0")] {
        text = text
            + "---\nschema: olm.bundle\npackage: kiwi\nimage: a.b/c:d\nname: "
            + name
            + "\nproperties: [{type: olm.package, value: {packageName: kiwi, version: "
            + version
            + "}}]\n";
    }
    let files: MemorySource = [("c.yaml", text)].into_iter().collect();
    Rendition::of(&CatalogDocuments::read(&files, &LoadOptions::default()).unwrap())
}

/// The lines of a diagram behind its header, without indentation.
fn lines(options: &DiagramOptions<'_>) -> Vec<String> {
    let diagram = rendition().diagram(options).unwrap();
    diagram.text.lines().skip(4).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn diagram_lists_the_newest_entry_first_and_styles_deprecations() {
    let expected = [
        "%% package \"kiwi\"",
        "subgraph \"kiwi\"",
        "%% channel \"c\"",
        "subgraph kiwi-c[\"c\"]",
        "kiwi-c-e[\"e\"]",
        "kiwi-c-d[\"d\"]-- replace --> kiwi-c-e[\"e\"]",
        "kiwi-c-d[\"d\"]",
        "kiwi-c-b[\"b\"]-- skip --> kiwi-c-d[\"d\"]",
        "kiwi-c-a[\"a\"]-- \"skipRange(<1.1.0)\" --> kiwi-c-d[\"d\"]",
        "kiwi-c-b[\"b\"]-- replace --> kiwi-c-d[\"d\"]",
        "kiwi-c-b[\"b\"]",
        "kiwi-c-a[\"a\"]-- replace --> kiwi-c-b[\"b\"]",
        "kiwi-c-a[\"a\"]",
        "end",
        "end",
        "style kiwi fill:#989695",
        "class kiwi-c-b deprecated",
    ];
    assert_eq!(lines(&DiagramOptions::default()), expected);
    let warnings = rendition().diagram(&DiagramOptions::default()).unwrap().warnings;
    let start = "warning: ignoring invalid SkipRange for package/edge \"kiwi\"/\"e\": ";
    assert!(warnings.len() == 1 && warnings[0].starts_with(start), "{warnings:?}");
}

#[test]
fn updates_into_skipped_bundles_are_marked_with_semantics() {
    let lines = lines(&DiagramOptions { semantics: true, ..DiagramOptions::default() });
    let last = &lines[lines.len() - 2..];
    assert_eq!(
        last,
        [
            "class kiwi-c-b deprecatedskipped",
            "linkStyle 4 stroke:#FF0000,stroke-width:3px,stroke-dasharray:5;",
        ]
    );
}

#[test]
fn diagram_leaves_out_older_bundles_and_other_packages() {
    let options = DiagramOptions { minimum: Some("b"), ..DiagramOptions::default() };
    let below: Vec<String> =
        lines(&options).into_iter().filter(|line| line.contains("-a[")).collect();
    assert_eq!(below, Vec::<String>::new());
    let options = DiagramOptions { package: Some("plum"), ..DiagramOptions::default() };
    assert_eq!(lines(&options), Vec::<String>::new());
    let options = DiagramOptions { minimum: Some("x"), ..DiagramOptions::default() };
    let error = rendition().diagram(&options).unwrap_err();
    assert_eq!(error.to_string(), "unknown minimum edge name: \"x\"");
}
