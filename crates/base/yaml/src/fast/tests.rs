//! Comparison of scanner and parser: the scanner's result is the parser's, or none.

use crate::{DuplicateKeys, EmptyDocuments, Options, build, fast, sections};
use mainstay_testdata::{ran, unpack};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::{fs, path::Path};

fn options() -> Options {
    Options {
        duplicate_keys: DuplicateKeys::Note,
        empty: EmptyDocuments::Keep,
        ..Options::default()
    }
}

/// Whether the scanner reads a section. It is an error if its result is not the parser's.
fn compare_section(text: &str) -> Result<bool, String> {
    let options = options();
    let Some(ours) = fast::section(text, 7, &options) else { return Ok(false) };
    match build::section(text, 7, &options) {
        Ok(theirs) if theirs.len() == 1 && theirs[0] == ours => Ok(true),
        theirs => Err(format!("{text:?}\n scanner {ours:?}\n parser  {theirs:?}")),
    }
}

/// Compares all sections; returns how many there are and how many the scanner reads.
fn compare_sections(bytes: &[u8]) -> Result<(usize, usize), String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok((0, 0)) };
    let (mut all, mut read) = (0, 0);
    for section in sections(text).map_while(Result::ok) {
        all += 1;
        read += usize::from(compare_section(&text[section.bytes])?);
    }
    Ok((all, read))
}

#[test]
fn common_documents_are_read() {
    let table = [
        ("a: 1\nb: x y # words\n", json!({"a": 1, "b": "x y"})),
        ("---\n# words\na:\n  b:\n  c: ~\n", json!({"a": {"b": null, "c": null}})),
        (
            "- a\n-\n- - b\n  - c\n-  d: 1\n   e: 2\n",
            json!(["a", null, ["b", "c"], {"d": 1, "e": 2}]),
        ),
        ("a:\n- b\n-\nc:\n  - d\n", json!({"a": ["b", null], "c": ["d"]})),
        ("a: one\n  two\n\n  three: x", json!(null)),
        ("a: one\n  two\n\n  three\nb: 2", json!({"a": "one two\nthree", "b": 2})),
        (
            "a: 'it''s\n  so'\n\"b c\": \"\\u00e9\\x41\\\n  d\\n\"\n",
            json!({"a": "it's so", "b c": "éAd\n"}),
        ),
        (
            "a: |\n  x\n\n    y\n\nb: >-\n  x\n  y\n\n  z\n",
            json!({"a": "x\n\n  y\n", "b": "x y\nz"}),
        ),
        ("a: |+2 # words\n    x\n\nb: 1\n", json!({"a": "  x\n\n", "b": 1})),
        (
            "a: [b, 'c', {d: 1, \"e\": no}, []]\nf: {}\n",
            json!({"a": ["b", "c", {"d": 1, "e": false}, []], "f": {}}),
        ),
        ("a: [\n  b,\n  c\n  ]\n", json!({"a": ["b", "c"]})),
        ("a: http://x:80/#y\nb:c: 1\n", json!({"a": "http://x:80/#y", "b:c": 1})),
        ("yes: 1\n0x10: 2\n", json!({"true": 1, "16": 2})),
    ];
    for (text, expected) in table {
        let read = fast::section(text, 1, &options()).map_or(json!(null), |found| found.0);
        assert_eq!(read, expected, "{text:?}");
        compare_section(text).unwrap();
    }
}

#[test]
fn unsupported_documents_are_left_to_the_parser() {
    let table = [
        "",
        "# words\n",
        "a",
        "[a]\n",
        "'a'\n",
        "--- a\n",
        "---\n---\na: 1\n",
        "a: 1\n...\n",
        "%YAML 1.1\n",
        "a: &x 1\n",
        "a: *x\n",
        "a: !!str 1\n",
        "? a\n: b\n",
        "<<: {a: 1}\n",
        "a: {<<: {b: 1}}\n",
        "a:\tb\n",
        "\ta: b\n",
        "a: b\tc\n",
        "a: b\t\n",
        "-\ta\n",
        "a: 1\r\n",
        "a: |\n  x",
        "a: |\n\tx\n",
        "a: x\u{85}y\n",
        "a: x\u{2028}y\n",
        "\u{feff}a: 1\n",
        "a: x\u{7}\n",
        "a: x\u{90}\n",
        "a: b: c\n",
        "a: - b\n",
        "a: 'b' c\n",
        "a: 'b'c\n",
        "a: \"\\q\"\n",
        "a: \"\\/\"\n",
        "a: \"x\n",
        "a: 'x\ny'\n",
        "a: [b\n",
        "a: [\nb]\n",
        "a: [a: b]\n",
        "a: {b}\n",
        "a: [b] c\n",
        "a: [,]\n",
        "a: .inf\n",
        "~: 1\n",
        "a: 1\n  b: 2\n",
        "  a: 1\nb: 2\n",
        "a:\n    b: 1\n  c: 2\n",
        "a: @x\n",
        "a: `x\n",
        "a: %x\n",
    ];
    for text in table {
        assert_eq!(fast::section(text, 1, &options()), None, "{text:?}");
    }
    let long = format!("{}: 1\n", "k".repeat(1001));
    assert_eq!(fast::section(&long, 1, &options()), None);
    let refuse = Options { duplicate_keys: DuplicateKeys::Refuse, ..options() };
    assert_eq!(fast::section("a: 1\n", 1, &refuse), None);
    let short = Options { max_scalar_bytes: 3, ..options() };
    assert_eq!(fast::section("a: 1234\n", 1, &short), None);
}

#[test]
fn repeated_keys_are_recorded_as_by_the_parser() {
    for text in ["a: 1\nb:\n  c: 1\n  c: 2\nb: {yes: 1, yes: 2}\na: 3\n", "- a: 1\n  'a': 2\n"] {
        assert_eq!(compare_section(text), Ok(true));
        assert!(!fast::section(text, 1, &options()).unwrap().2.is_empty());
    }
}

#[test]
fn scanner_agrees_on_the_decoder_table() {
    for line in include_str!("../../tests/it/decoder.tsv").lines() {
        let (document, _) = line.split_once('\t').unwrap();
        let document: String = serde_json::from_str(document).unwrap();
        compare_sections(document.as_bytes()).unwrap();
        compare_sections(format!("{document}\n").as_bytes()).unwrap();
    }
}

fn visit_files(folder: &Path, visit: &mut dyn FnMut(&Path, &[u8])) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            visit_files(&path, visit);
        } else if let Ok(bytes) = fs::read(&path) {
            visit(&path, &bytes);
        }
    }
}

#[test]
fn scanner_agrees_on_catalogs_and_recorded_inputs() {
    let archives = [
        ("answers/opm", 0),
        ("bundles-249", 96),
        ("catalog-certified-v4.14", 99),
        ("catalog-community-v4.19", 99),
    ];
    for (archive, min_percent) in archives {
        let Some(data) = unpack(archive, "YAML to compare two readers on") else { continue };
        let (mut all, mut read) = (0, 0);
        visit_files(data.path(), &mut |path, bytes| {
            let counted = compare_sections(bytes);
            let (some, fast) = counted.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            all += some;
            read += fast;
        });
        assert!(read * 100 >= all * min_percent, "{archive}: {read} of {all}");
        ran(&format!("{archive}: the scanner reads {read} of {all} sections, all as the parser"));
    }
}

/// Documents with everything that the scanner supports, for tests that damage them.
const SEEDS: &[&str] = &[
    "a: 1\nb: x y # words\n# more\n\nc:\n  d: 'q'\n  e: \"r\\n\"\nf: g\n",
    "- a\n-\n- - b\n  - c\n-  d: 1\n   e: 2\n- f:\n  - g\n  - h: 1\n    i: 2\n",
    "a:\n- b\n-\n\nc:\n  - d\n  -\n    e: 1\n",
    "a: one\n  two\n\n  three\nb: 2\nc:\n  four\n  five\n",
    "a: 'it''s\n  so\n\n  true  \n  x'\nb: \"one\n  two \\\n    three\\\\ \\\"\n  \"\nc: 1\n",
    "a: |\n  x\n\n    y\n\nb: >-\n  x\n  y\n\n  z\n   w\n  v\n\nc: |+\n  q\n\n# words\nd: >2\n   x\n  y\n",
    "a: [b, 'c', {d: 1, \"e\": no}, []]\nf: {}\ng: [\n  h,\n  i,\n  ]\nj: {k: {l: [m]}, 'n':o}\n",
    "---\nschema: olm.bundle\nname: a.v1.0.0\nproperties:\n- type: olm.gvk\n  value:\n    group: a.b\n    kind: C\n    version: v1\n- type: olm.bundle.object\n  value:\n    data: eyJhIjoxfQ==\n",
    "apiVersion: v1\nmetadata:\n  annotations:\n    x: |-\n      [\n        {\"a\": 1}\n      ]\n  name: \"y\"\nspec:\n  d: >\n    folded\n    text\n\n      more\n  e:\n    - f\n",
];

/// Fragments of YAML to insert into a document.
const FRAGMENTS: &[&str] = &[
    " ", "  ", "\n", "\n\n", "\n ", "\n  ", "\n    ", ": ", ":", "- ", "-", "#", " #", "'", "\"",
    "\\", "|", ">", "|-", ">+\n", "[", "]", "{", "}", ",", "\t", "a", "1", "~", "é", "\u{2019}",
    "&a ", "*a", "!x ", "? ", "<<: ", "...", "---\n", "\r", "%", "@", "|2\n",
];

#[derive(Clone, Debug)]
enum Damage {
    Insert(usize, usize),
    Replace(usize, usize, usize),
    Remove(usize, usize),
    Repeat(usize, usize, usize),
    Truncate(usize),
}

fn any_damage() -> impl Strategy<Value = Damage> {
    let at = 0..400_usize;
    prop_oneof![
        4 => (at.clone(), 0..FRAGMENTS.len()).prop_map(|(at, fragment)| Damage::Insert(at, fragment)),
        4 => (at.clone(), 0..4_usize, 0..FRAGMENTS.len()).prop_map(|(at, n, fragment)| Damage::Replace(at, n, fragment)),
        2 => (at.clone(), 1..6_usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        1 => (at.clone(), 1..30_usize, at.clone()).prop_map(|(at, n, to)| Damage::Repeat(at, n, to)),
        1 => at.prop_map(Damage::Truncate),
    ]
}

fn apply(text: &mut Vec<char>, damage: &Damage) {
    let within = |at: usize| at % (text.len() + 1);
    let until = |at: usize, length: usize| (at + length).min(text.len());
    match *damage {
        Damage::Insert(at, fragment) => {
            let at = within(at);
            text.splice(at..at, FRAGMENTS[fragment].chars());
        }
        Damage::Replace(at, length, fragment) => {
            let at = within(at);
            let end = until(at, length);
            text.splice(at..end, FRAGMENTS[fragment].chars());
        }
        Damage::Remove(at, length) => {
            let at = within(at);
            let end = until(at, length);
            text.drain(at..end);
        }
        Damage::Repeat(at, length, to) => {
            let (at, to) = (within(at), within(to));
            let part = text[at..until(at, length)].to_vec();
            text.splice(to..to, part);
        }
        Damage::Truncate(at) => {
            let at = within(at);
            text.truncate(at);
        }
    }
}

/// Whether the JSON scanner reads a value. It is an error if `serde_json` has another result.
fn compare_json(text: &str) -> Result<bool, String> {
    let Some((ours, end)) = fast::json::value(text, 0, &options()) else { return Ok(false) };
    match serde_json::from_str::<Value>(&text[..end]) {
        // `serde_json` rounds fractions less exactly and distinguishes `1.0` from `1`.
        Ok(theirs) if ours == theirs || text.contains(['.', 'e', 'E', '-']) => Ok(true),
        theirs => Err(format!("{text:?}\n scanner {ours:?}\n library {theirs:?}")),
    }
}

#[test]
fn common_json_is_read() {
    let table = [
        (" {}", json!({})),
        (
            " {\"a\": [1, -2, 1.5, 1e3, true, false, null, \"b\"]}",
            json!({"a": [1, -2, 1.5, 1000, true, false, null, "b"]}),
        ),
        (
            "[18446744073709551615, 18446744073709551616, -0, 0.1]",
            json!([u64::MAX, 18_446_744_073_709_551_616_f64, 0, 0.1]),
        ),
        (
            r#""\n\t\r\b\f\/\\\"\u00e9\ud83d\ude00x""#,
            json!("\n\t\r\u{8}\u{c}/\\\"\u{e9}\u{1f600}x"),
        ),
        (
            r#"["\ud800", "\ud800\u0041", "\udc00x", "\ud83d\ud83d\ude00"]"#,
            json!(["\u{fffd}", "\u{fffd}A", "\u{fffd}x", "\u{fffd}\u{1f600}"]),
        ),
    ];
    for (text, expected) in table {
        assert_eq!(fast::json::value(text, 0, &options()), Some((expected, text.len())), "{text}");
    }
    let signed = Options { signed_zero: true, ..options() };
    for (options, zeros) in [(options(), json!([0, 0, 0])), (signed, json!([-0.0, -0.0, 0]))] {
        let read =
            fast::json::value("[-0, -0.0, 0]", 0, &options).map(|(value, _)| value.to_string());
        assert_eq!(read, Some(zeros.to_string()));
    }
    let unsupported = [
        "",
        "{",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "[1,]",
        "[1 2]",
        "01",
        "-",
        "1.",
        "1e",
        "1e400",
        ".5",
        "+1",
        "tru",
        "\"\n\"",
        "\"\\q\"",
        "\"\\u12x4\"",
        "\"open",
        "{a: 1}",
        "'a'",
    ];
    for text in unsupported {
        assert_eq!(fast::json::value(text, 0, &options()), None, "{text}");
    }
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    assert_eq!(fast::json::value(&deep, 0, &options()), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2000), ..ProptestConfig::default() })]

    #[test]
    fn scanner_agrees_on_damaged_documents(
        seed in 0..SEEDS.len(),
        damages in prop::collection::vec(any_damage(), 1..6),
    ) {
        let mut text: Vec<char> = SEEDS[seed].chars().collect();
        for damage in &damages {
            apply(&mut text, damage);
        }
        let text: String = text.into_iter().collect();
        compare_sections(text.as_bytes()).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn scanner_agrees_on_damaged_json(damages in prop::collection::vec(any_damage(), 0..4)) {
        let text = r#"{"a": [1, -2, true, null, "b\n\u00e9"], "c": {"d": {}, "e": [], "d": 12}, "f": ""}"#;
        let mut text: Vec<char> = text.chars().collect();
        for damage in &damages {
            apply(&mut text, damage);
        }
        let text: String = text.into_iter().collect();
        compare_json(&text).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn scanner_agrees_on_joined_fragments(
        fragments in prop::collection::vec((0..FRAGMENTS.len(), any::<bool>()), 0..25),
    ) {
        let text: String = fragments
            .into_iter()
            .map(|(fragment, word)| if word { "a" } else { FRAGMENTS[fragment] })
            .collect();
        compare_sections(text.as_bytes()).map_err(TestCaseError::fail)?;
        compare_sections(format!("k: {text}\n").as_bytes()).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn scanner_agrees_on_joined_lines(
        lines in prop::collection::vec((0..6_usize, 0..24_usize), 1..9),
    ) {
        const LINES: &[&str] = &[
            "a: b", "a:", "b: 1", "- c", "-", "- d: e", "- - f", "text", "'quoted'", "\"quoted\"", "a: 'open", "shut'",
            "a: \"open", "shut\"", "a: |", "a: >-", "- |+", "# words", "", "a: [", "b, c", "]", "a: {b: c}", "a: # words",
        ];
        let mut text = String::new();
        for (indent, line) in lines {
            text.extend(std::iter::repeat_n(' ', indent));
            text.push_str(LINES[line]);
            text.push('\n');
        }
        compare_sections(text.as_bytes()).map_err(TestCaseError::fail)?;
    }
}
