//! Robustness: no input panics or exceeds its limits.

use mainstay_yaml::{Options, YamlError, documents, locate, one, to_string};
use proptest::prelude::*;

fn error_message(input: &str) -> String {
    match one(input.as_bytes(), &Options::default()) {
        Ok(_) => String::new(),
        Err(error) => error.fault.to_string(),
    }
}

#[test]
fn nesting_is_limited_in_every_style() {
    let levels = 100_000;
    let flow = format!("a: {}{}", "[".repeat(levels), "]".repeat(levels));
    let json = format!("{{\"a\": {}{}}}", "[".repeat(levels), "]".repeat(levels));
    let block: Vec<String> = (0..1000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let block = block.concat();
    let list = format!("{}a", "- ".repeat(1000));
    for input in [flow, json, block, list] {
        let error_message = error_message(&input);
        let bounded =
            error_message.contains("exceeded max depth") || error_message.contains("recursion");
        assert!(bounded, "{error_message}");
    }
    let aliases: String = std::iter::once("a0: &a0 [x]\n".to_owned())
        .chain((1..1000).map(|at| format!("a{at}: &a{at} [*a{}]\n", at - 1)))
        .collect();
    assert_eq!(error_message(&aliases), "exceeded max depth of 127");
}

#[test]
fn a_hundred_levels_are_within_the_limit() {
    let input = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
    assert!(one(input.as_bytes(), &Options::default()).is_ok());
}

#[test]
fn nested_aliases_are_limited_by_the_bytes_they_add() {
    let mut nested_aliases = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(9);
        nested_aliases = format!("{nested_aliases}a{level}: &a{level} [{before}]\n");
    }
    assert_eq!(error_message(&nested_aliases), "document contains excessive aliasing");
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(100));
    assert_eq!(error_message(&long), "document contains excessive aliasing");
    let merges =
        format!("a: &a {{k: {}}}\nb: [{}]\n", "x".repeat(1 << 20), "{<<: *a}, ".repeat(100));
    assert_eq!(error_message(&merges), "document contains excessive aliasing");
}

#[test]
fn long_scalars_are_refused_where_a_limit_is_set() {
    let options = Options { max_scalar_bytes: 10, ..Options::default() };
    let read = |input: &str| one(input.as_bytes(), &options);
    assert!(read("a: 0123456789").is_ok());
    let expected = "a value of 11 bytes is above the limit of 10 bytes for one value";
    let yaml = read("a:\n  b: 0123456789a").unwrap_err();
    assert_eq!((yaml.line, yaml.column, &*yaml.fault.to_string()), (2, 6, expected));
    let json = read("{\"a\":\n \"0123456789a\"}").unwrap_err();
    assert_eq!((json.line, &*json.fault.to_string()), (2, expected));
}

#[test]
fn a_tab_after_a_colon_counts_as_a_blank() {
    let value = one(b"a:\tb\nc:\n  d:\t\te\n  f: 'x:\ty'\n", &Options::default()).unwrap();
    assert_eq!(value, serde_json::json!({"a": "b", "c": {"d": "e", "f": "x:\ty"}}));
}

#[test]
fn lines_inside_quotes_need_no_indentation() {
    let text = "a:\n  b: 'it''s\n  one\n\n two'\n  c: \"x \\\" \\\n y\nz\"\nd: 1\n";
    let value = one(text.as_bytes(), &Options::default()).unwrap();
    let expected = serde_json::json!({"a": {"b": "it's one\ntwo", "c": "x \" y z"}, "d": 1});
    assert_eq!(value, expected);
    assert!(one(b"a:\n  b: 'open\n  end", &Options::default()).is_err());
}

/// Reads an input; each of its documents must survive writing and reading.
fn check_round_trip(input: &[u8]) -> Result<(), TestCaseError> {
    let read: Result<Vec<_>, YamlError> = documents(input, &Options::default()).collect();
    if let Ok(read) = read {
        for document in read {
            let written = to_string(&document.value);
            let again = one(written.as_bytes(), &Options::default());
            prop_assert_eq!(again, Ok(document.value), "{}", written);
        }
    }
    if let Ok(text) = std::str::from_utf8(input) {
        let _ = locate(text, &[]);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_bytes_are_handled(input in prop::collection::vec(any::<u8>(), 0..200)) {
        check_round_trip(&input)?;
    }

    #[test]
    fn any_yaml_fragments_are_handled(input in "([a-c0-9 \n\t:#'\"|>{}\\[\\],&*!?%@`.~<=-]|---|\\.\\.\\.|<<|!!|: |- |\n  ){0,60}") {
        check_round_trip(input.as_bytes())?;
    }

    #[test]
    fn any_json_fragments_are_handled(input in "(\\{|\\}|\\[|\\]|\"|:|,|[0-9a-c.eE+-]|\\\\u|\\\\|true|null| |\n){0,60}") {
        check_round_trip(format!("{{{input}").as_bytes())?;
    }
}

#[test]
fn copies_of_anchored_values_count_as_aliases() {
    let text = "x".repeat(1 << 20);
    let anchors = "&a [".repeat(100);
    let nested = format!("a: {anchors}\"{text}\"{}", "]".repeat(100));
    assert_eq!(error_message(&nested), "document contains excessive aliasing");
    // Documents of one section share its limit.
    let bomb = format!("a: &a \"{text}\"\nb: [*a, *a, *a, *a, *a, *a, *a, *a]\n...\n");
    assert_eq!(error_message(&bomb), "");
    let many = bomb.repeat(20);
    let read: Vec<_> = documents(many.as_bytes(), &Options::default()).collect();
    assert!(matches!(&read[..], [Err(error)] if error.to_string().contains("excessive aliasing")));
}

#[test]
fn aliases_are_limited_by_their_share_of_a_document() {
    let ten = |what: &str| [what; 10].join(", ");
    let chain = format!(
        "a: &a [{}]\nb: &b [{}]\nc: &c [{}]\nd: [{}]\n",
        ten("x"),
        ten("*a"),
        ten("*b"),
        ten("*c")
    );
    assert_eq!(error_message(&chain), "document contains excessive aliasing");
    let few = format!("a: &a [{}]\nb: [{}]\n", ten("x"), ten("*a"));
    assert_eq!(error_message(&few), "");
}

#[test]
fn forbidden_characters_are_refused() {
    for character in ["\u{80}", "\u{9f}", "\u{fffe}", "\u{ffff}"] {
        let error_message = error_message(&format!("a: \"{character}\"\n"));
        assert!(
            error_message.contains("control characters are not allowed"),
            "{character:?}: {error_message}"
        );
    }
    assert_eq!(error_message("a: \"\u{a0}\u{fffd}\"\n"), "");
}
