//! Catalog lint: each rule once, for content that other tools lose or that is rarely intended.

use crate::SOUND;
use mainstay_catalog::{LoadOptions, MemorySource, Severity, lint_catalog};

/// The problems of files, one a line: place, severity, rule, message, remedy.
fn lint_files(files: &[(&str, &[u8])]) -> Vec<String> {
    let files: MemorySource = files.iter().copied().collect();
    let report = lint_catalog(&files, &LoadOptions::default());
    let lines = report.problems.into_iter().map(|problem| {
        let kind = format!("{}[{}]", problem.severity(), problem.rule.id());
        let text = problem.to_string();
        let place = text.find(": ").unwrap_or(0);
        format!("{}: {kind}{}", &text[..place], &text[place + 1..])
    });
    lines.collect()
}

fn lint_text(text: &str) -> Vec<String> {
    lint_files(&[("c.yaml", text.as_bytes())])
}

fn changed(from: &str, to: &str) -> Vec<String> {
    assert!(SOUND.contains(from), "{from}");
    lint_text(&SOUND.replacen(from, to, 1))
}

fn added(document: &str) -> Vec<String> {
    lint_text(&format!("{SOUND}---\n{document}"))
}

#[test]
fn sound_catalog_has_no_lint_problems() {
    assert_eq!(lint_text(SOUND), [""; 0]);
}

#[test]
fn each_lint_rule_reports_message_and_place() {
    let value = "  value: {packageName: fern, versionRange: \">=1.0.0\"}";
    let table: &[(Vec<String>, &[&str])] = &[
        // Fields.
        (
            changed("mediatype:", "mediaTyp:"),
            &[
                "c.yaml:9:13: error[unknown-field] there is no field \"mediaTyp\" in icon of olm.package: rendering the catalog drops it (did you mean \"mediatype\"?)",
            ],
        ),
        (
            changed("  replaces: kiwi.v1.0.0\n", "  replaces: kiwi.v1.0.0\n  owner: me\n"),
            &[
                "c.yaml:18:10: error[unknown-field] there is no field \"owner\" in entries[1] of olm.channel: rendering the catalog drops it (remove it)",
            ],
        ),
        (
            changed("- name: operator\n", "- name: operator\n  Name: x\n"),
            &[
                "c.yaml:58:9: error[case-of-keys] \"Name\" and \"name\" differ only in case: one of the values is lost (keep one of the spellings)",
            ],
        ),
        (
            changed("name: kiwi.v1.2.0\nimage", "name: kiwi.v1.2.0\nImage: x\nimage"),
            &[
                "c.yaml:64:8: error[case-of-keys] duplicate keys for key \"image\": [Image image] (keep one of the spellings)",
            ],
        ),
        (
            added("apiVersion: v1\nkind: Secret\n"),
            &[
                "c.yaml:85: error[not-a-blob] object '{\"apiVersion\":\"v1\",\"kind\":\"Secret\"}' is missing root schema field (this is a manifest: of a bundle, name the folder that holds manifests and metadata; else list the file in .indexignore)",
            ],
        ),
        (
            changed("name: kiwi.v1.2.0\nimage", "name: kiwi.v1.2.0\nimage: x\nimage"),
            &[
                "c.yaml:65: error[repeated-key] the key \"image\" is there twice, the first value is lost (keep one of them)",
            ],
        ),
        (
            changed(value, "  value: {packageName: fern, versionRange: 1.x, version: 1.x}"),
            &[
                "c.yaml:47:58: warning[unknown-value-field] there is no field \"version\" in the value of olm.package.required: nothing reads it (remove it)",
            ],
        ),
        // Ranges.
        (
            changed(value, "  value: {packageName: fern, versionRange: not a range}"),
            &[
                "c.yaml:47:44: error[version-range] invalid versionRange \"not a range\": Could not get version from string: \"not\" (write a range such as \">=1.0.0 <1.2.0\")",
            ],
        ),
        (
            changed(value, "  value: {versionRange: 1.x}"),
            &[
                "c.yaml:47:10: error[bad-property] the required package has no name (say which package in packageName)",
            ],
        ),
        (
            changed("\">=1.0.0 <1.1.0\"", "1.0.0 - 1.1.0"),
            &[
                "c.yaml:19:14: error[range-misread] skipRange \"1.0.0 - 1.1.0\" does not mean what it says: \"-\" is ignored (write both ends as comparisons, such as \">=1.0.0 <=2.0.0\")",
            ],
        ),
        (
            changed("\">=1.0.0 <1.1.0\"", "\">=1.1.0 <1.0.0\""),
            &[
                "c.yaml:19:14: warning[empty-range] skipRange \">=1.1.0 <1.0.0\" contains no version (let the lower end be below the upper one, or remove it)",
            ],
        ),
        // Properties.
        (
            changed(value, "  value: null"),
            &[
                "c.yaml:46:3: error[bad-property] property[2] of type \"olm.package.required\" has no value (give it a value, or remove it)",
            ],
        ),
        (
            changed("- type: olm.gvk\n", "- type: \"\"\n"),
            &[
                "c.yaml:42:3: error[bad-property] property[0] has no type (give it a type, or remove it)",
            ],
        ),
        (
            changed("- type: olm.gvk\n", "- type: olm.gkv\n"),
            &[
                "c.yaml:42:9: warning[property-type] nothing reads properties of the type \"olm.gkv\" (did you mean \"olm.gvk\"?)",
            ],
        ),
        (
            changed(value, &format!("{value}\n- type: olm.package.required\n{value}")),
            &[
                "c.yaml:48:3: warning[repeated-property] property[3] of type \"olm.package.required\" is a duplicate (remove one of them)",
            ],
        ),
        (
            changed(
                "- type: olm.csv.metadata\n",
                "- type: olm.csv.metadata\n  value: {}\n- type: olm.csv.metadata\n",
            ),
            &[
                "c.yaml:70:3: error[not-served] other tools do not serve a catalog with two properties of type \"olm.csv.metadata\" in a bundle (remove one of them)",
            ],
        ),
        (
            added("schema: my schema\npackage: -a\n"),
            &[
                "c.yaml:85:9: error[not-served] other tools do not serve a catalog with the schema \"my schema\" (begin with a letter or digit; go on with these, dots, dashes and underscores)",
                "c.yaml:86:10: error[not-served] other tools do not serve a catalog with the package \"-a\" (begin with a letter or digit; go on with these, dots, dashes and underscores)",
            ],
        ),
        // Edges.
        (
            changed("skips: [kiwi.v1.0.1]", "skips: [kiwi1.0.0]"),
            &[
                "c.yaml:18:10: warning[edge-typo] entry \"kiwi.v1.1.0\" skips \"kiwi1.0.0\", which does not exist (did you mean \"kiwi.v1.0.0\"?)",
            ],
        ),
        (
            changed(
                "- name: kiwi.v1.2.0\n  replaces: kiwi.v1.1.0",
                "  skips: [kiwi.v1.0.0]\n- name: kiwi.v1.0.0\n  skips: [kiwi.v1.1.0]\n- name: kiwi.v1.2.0",
            ),
            &[
                "c.yaml:27:3: warning[cut-off-entry] no update leads from 2 of 3 entries to the head \"kiwi.v1.2.0\": kiwi.v1.0.0, kiwi.v1.1.0 (let an entry on the upgrade path to the head replace or skip them)",
            ],
        ),
        // Other schemas.
        (
            added("schema: olm.deprecation\npackage: kiwi\n"),
            &[
                "c.yaml:85:9: warning[unknown-schema] nothing reads documents of the schema \"olm.deprecation\" (did you mean \"olm.deprecations\"?)",
            ],
        ),
        (
            added("schema: olm.composite\n"),
            &[
                "c.yaml:85:9: warning[unknown-schema] nothing reads documents of the schema \"olm.composite\" (names that begin with olm. are reserved; use a domain of yours)",
            ],
        ),
        (
            added("schema: x\npackage: \"\"\n"),
            &[
                "c.yaml:86:10: error[missing-name] the field package is empty (name a package, or remove the field)",
            ],
        ),
        (
            added("schema: x\nproperties: [{type: a}]\n"),
            &[
                "c.yaml:86:14: error[bad-property] property[0] of type \"a\" has no value (give it a value, or remove it)",
            ],
        ),
    ];
    for (said, expected) in table {
        assert_eq!(said, expected);
    }
}

#[test]
fn documents_that_other_tools_do_not_read_are_reported() {
    let lost = |why: &str, remedy: &str| {
        format!(
            "error[lost-document] other tools do not read this document: there is {why} ({remedy})"
        )
    };
    let dots = lost("no line that begins with \"---\" before it", "put such a line before it");
    let mark = lost(
        "a byte-order mark before JSON",
        "save the file without it, or put each document into a file of its own",
    );
    let blanks = mark.replace("a byte-order mark", "4,096 blanks");
    let cr = lost("lines that end with CR alone", "save the file with LF line ends");
    let json = "{\"schema\":\"a\"}\n{\"schema\":\"b\"}\n{\"schema\":\"c\"}\n";
    let spaces = " ".repeat(4096);
    for (text, expected) in [
        (json.to_owned(), vec![]),
        (format!("\u{feff}{json}"), vec![(2, &mark), (3, &mark)]),
        ("\u{feff}{\"schema\":\"a\"}\n".to_owned(), vec![]),
        (format!("{spaces}{json}"), vec![(2, &blanks), (3, &blanks)]),
        ("\u{feff}schema: a\n---\nschema: b\n".to_owned(), vec![]),
        ("schema: a\n...\nschema: b\n---\nschema: c\n".to_owned(), vec![(3, &dots)]),
        ("schema: a\n...\n---\nschema: b\n".to_owned(), vec![]),
        ("schema: a\r\n---\r\nschema: b\r\n".to_owned(), vec![]),
        ("schema: a\r---\rschema: b\r".to_owned(), vec![(3, &cr)]),
    ] {
        let expected: Vec<String> =
            expected.into_iter().map(|(line, what)| format!("c.yaml:{line}: {what}")).collect();
        assert_eq!(lint_text(&text), expected, "{text:?}");
    }
}

#[test]
fn repeated_keys_in_json_are_reported() {
    let text = "{\"schema\":\"a\"}\n{\"schema\":\"b\",\n \"x\":{\"y\":1,\n\"y\":2}}\n";
    assert_eq!(
        lint_text(text),
        [
            "c.yaml:4:1: error[repeated-key] the key \"y\" is there twice, the first value is lost (keep one of them)"
        ]
    );
}

#[test]
fn byte_order_mark_in_indexignore_is_reported() {
    let files: [(&str, &[u8]); 3] = [
        (".indexignore", b"\xef\xbb\xbf*.md\n"),
        ("README.md", b"hello"),
        ("c.yaml", SOUND.as_bytes()),
    ];
    assert_eq!(
        lint_files(&files),
        [
            ".indexignore: error[ignore-file] other tools lose the first pattern: there is a byte-order mark before it (save the file without it)"
        ]
    );
}

#[test]
fn lint_reports_load_errors_once() {
    let broken = SOUND.replacen("version: 1.0.0", "version: 1.x", 1).replacen("icon:", "icom:", 1);
    let files: MemorySource = [("c.yaml", broken.as_bytes())].into_iter().collect();
    let report = lint_catalog(&files, &LoadOptions::default());
    let rules: Vec<&str> = report.problems.iter().map(|problem| problem.rule.id()).collect();
    assert_eq!(rules, ["unknown-field", "bad-version"]);
    assert!(report.catalog.is_none());
    let blob = report.problems[1].blob.as_ref().map(ToString::to_string);
    assert_eq!(blob.as_deref(), Some("olm.bundle kiwi kiwi.v1.0.0"));
    // A catalog with warnings only can be used.
    let files: MemorySource =
        [("c.yaml", SOUND.replace(">=1.0.0 <1.1.0", ">=1.0.0 <1.0.0").into_bytes())]
            .into_iter()
            .collect();
    let report = lint_catalog(&files, &LoadOptions::default());
    assert!(report.catalog.is_some());
    assert_eq!(report.problems[0].severity(), Severity::Warning);
}

#[test]
fn replaced_characters_are_reported() {
    let file =
        b"{\"schema\": \"x\",\n\"a\": \"\xe2\x82\"}\n{\"schema\": \"x\",\n \"a\": \"\\ud800\"}";
    assert_eq!(
        lint_files(&[("c.json", file)]),
        [
            "c.json:2: error[lost-character] some bytes are not UTF-8 text: U+FFFD replaces each of them (save the file as UTF-8)",
            "c.json:4: error[lost-character] \\ud800 is an unpaired surrogate: U+FFFD replaces it (write both halves, or the character itself)",
        ]
    );
    let files: MemorySource = [("c.json", &file[..])].into_iter().collect();
    let catalog = mainstay_catalog::Catalog::load_from(&files, &LoadOptions::default()).unwrap();
    let texts: Vec<String> = catalog
        .others()
        .iter()
        .map(|blob| blob.value().unwrap()["a"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["\u{fffd}\u{fffd}", "\u{fffd}"]);
    // If the rest is not JSON either, the bytes are the problem.
    let files: MemorySource = [("c.json", &b"{a: \"\xff\"}"[..])].into_iter().collect();
    let refused = mainstay_catalog::Catalog::load_from(&files, &LoadOptions::default());
    assert!(refused.unwrap_err().headline().contains("is not UTF-8 text"));
}
