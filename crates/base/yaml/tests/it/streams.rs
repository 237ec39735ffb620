//! Streams of documents: splitting, empty documents, positions of errors.

use mainstay_yaml::{
    Document, DocumentFormat, DuplicateKeys, EmptyDocuments, Options, PathStep, documents, locate,
    one, sections,
};
use serde_json::{Value, json};

fn values(input: &str) -> Result<Vec<Value>, String> {
    documents(input.as_bytes(), &Options::default())
        .map(|document| document.map(|d| d.value).map_err(|error| error.to_string()))
        .collect()
}

fn values_with_empty_documents(input: &str) -> Vec<Value> {
    let options = Options { empty: EmptyDocuments::Keep, ..Options::default() };
    let read: Result<Vec<Document>, _> = documents(input.as_bytes(), &options).collect();
    read.unwrap_or_default().into_iter().map(|document| document.value).collect()
}

#[test]
fn documents_are_split_at_separators_and_empty_ones_left_out() {
    let (a, b) = (json!({"a": 1}), json!({"b": 2}));
    let both = [
        "a: 1\n---\nb: 2\n",
        "---\na: 1\n---\nb: 2\n---\n",
        "a: 1\n--- # words\nb: 2",
        "a: 1\n---   \nb: 2",
        "a: 1\r\n---\r\nb: 2\r\n",
        "a: 1\n---\n---\nb: 2",
        "# first\n---\na: 1\n---\n# nothing\n---\n\n---\nnull\n---\n~\n---\nb: 2",
        "\u{feff}a: 1\n---\n\u{feff}b: 2",
        "a: 1\n...\n---\nb: 2",
        // Upstream reads the first document and drops the second in all of these.
        "a: 1\n...\nb: 2",
        "{a: 1}\n---\nb: 2",
        "\u{feff}{\"a\": 1}\n{\"b\": 2}",
        "{\"a\": 1}{\"b\": 2}",
        "\n\n  {\"a\": 1}\n\n{\"b\": 2}\n\n",
        "{\"a\": 1}\n---\nb: 2",
    ];
    for input in both {
        assert_eq!(values(input), Ok(vec![a.clone(), b.clone()]), "{input:?}");
    }
    for input in ["", "\n\n", "---", "---\n", "# only words", "null", "--- # x\n---\n"] {
        assert_eq!(values(input), Ok(vec![]), "{input:?}");
    }
}

#[test]
fn empty_documents_can_be_kept_but_empty_sections_are_skipped() {
    let counts = [
        ("", 0),
        ("a: 1\n---\n", 1),
        ("---\na: 1", 1),
        ("a: 1\n---\n---\na: 1", 2),
        ("---\n---\na: 1", 2),
        ("a: 1\n---\n\n", 2),
        ("# words\n---\na: 1", 2),
        ("\n", 1),
    ];
    for (input, count) in counts {
        assert_eq!(values_with_empty_documents(input).len(), count, "{input:?}");
    }
}

#[test]
fn errors_name_line_and_column() {
    let table = [
        (
            "a: 1\n---\nb: c: d\n",
            "line 3, column 5: mapping values are not allowed in this context",
        ),
        ("a: 1\n--- b\n", "line 2, column 4: invalid Yaml document separator: b"),
        ("a: 1\n---x\n", "line 2, column 4: invalid Yaml document separator: x"),
        ("a:\n  - 1\n  - *x\n", "line 3, column 5: unknown anchor 'x' referenced"),
        ("a: &x\n  b: *x\n", "line 2, column 6: anchor 'x' value contains itself"),
        ("a:\n\tc: d\n", "line 2, column 1: found character that cannot start any token"),
        ("a: \u{7}\n", "line 1, column 4: control characters are not allowed"),
        ("a: .nan\n", "line 1, column 4: json: unsupported value: NaN"),
        ("a: !!int é\n", "line 1, column 4: cannot decode !!str `é` as a !!int"),
        ("{\"a\": 1}\n{\"b\": 2}\n{\"c\": }\n", "line 3, column 7: expected value"),
        ("{\"a\": \"é\", ]", "line 1, column 12: key must be a string"),
        ("{\"a\": 1", "line 1, column 7: EOF while parsing an object"),
    ];
    for (input, expected) in table {
        let error = values(input).unwrap_err();
        let (ours, theirs) = (error.split_once(": "), expected.split_once(": "));
        assert_eq!(ours.map(|o| o.1), theirs.map(|t| t.1), "{input:?}");
        assert_eq!(ours.map(|o| o.0), theirs.map(|t| t.0), "{input:?}");
    }
}

#[test]
fn the_error_of_invalid_utf8_names_the_byte() {
    let error = one(b"a: 1\nb: \xff\n", &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 4: byte 0xff is not UTF-8 text");
    let error = one(b"\xff\xfea\0", &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "line 1, column 1: the text is UTF-16; only UTF-8 is read");
}

#[test]
fn reading_ends_with_the_first_error_and_keeps_what_came_before() {
    let mut documents = documents(b"a: 1\n---\na: [\n---\nb: 1\n", &Options::default());
    assert!(documents.next().unwrap().is_ok());
    assert!(documents.next().unwrap().is_err());
    assert!(documents.next().is_none());
}

#[test]
fn documents_have_their_positions() {
    let input = "# words\n\na: 1\n---\n\n# more\nb: 2\n";
    let found: Vec<Document> =
        documents(input.as_bytes(), &Options::default()).map(Result::unwrap).collect();
    assert_eq!(found[0].line, 3);
    assert_eq!(found[1].line, 7);
    assert_eq!(&input[found[1].bytes.clone()], "\n# more\nb: 2\n");
    let input = "\u{feff}{\"a\":\n1}\n {\"b\": 2}";
    let found: Vec<Document> =
        documents(input.as_bytes(), &Options::default()).map(Result::unwrap).collect();
    assert_eq!((found[1].line, found[1].format), (3, DocumentFormat::Json));
    assert_eq!(&input[found[1].bytes.clone()], "{\"b\": 2}");
}

#[test]
fn sections_are_split_without_parsing() {
    let text = "a: [\n---\n'\n---\n";
    let lines: Vec<usize> = sections(text).map(|section| section.unwrap().line).collect();
    assert_eq!(lines, [1, 3]);
}

#[test]
fn duplicate_keys_are_refused_on_request() {
    let options = Options { duplicate_keys: DuplicateKeys::Refuse, ..Options::default() };
    let yaml = one(b"a:\n  b: 1\n  b: 2\n", &options).unwrap_err();
    assert_eq!(yaml.to_string(), "line 3, column 3: key \"b\" already set in map");
    let json = one(b"{\"a\": {\"b\": 1, \"b\": 2}}", &options).unwrap_err();
    assert_eq!(json.fault.to_string(), "key \"b\" already set in map");
    let merged = one(b"a: {<<: {b: 1}, b: 2}", &options);
    assert_eq!(merged, Ok(json!({"a": {"b": 2}})));
    assert_eq!(one(b"a: 1\na: 2", &Options::default()), Ok(json!({"a": 2})));
    assert_eq!(one(b"{\"a\": 1, \"a\": 2}", &Options::default()), Ok(json!({"a": 2})));
}

#[test]
fn numbers_are_the_same_from_json_and_yaml() {
    let json =
        one(b"{\"a\": [1.0, 1e3, -0.0, 1.5, 18446744073709551615, 1e300]}", &Options::default());
    let yaml = one(b"a: [1.0, 1e3, -0.0, 1.5, 18446744073709551615, 1e300]", &Options::default());
    assert_eq!(json, yaml);
    assert_eq!(json, Ok(json!({"a": [1, 1000, 0, 1.5, u64::MAX, 1e300]})));
}

#[test]
fn a_second_document_is_an_error_where_one_is_expected() {
    let error = one(b"a: 1\n---\nb: 2\n", &Options::default()).unwrap_err();
    assert_eq!(error.line, 3);
}

#[test]
fn nodes_of_a_document_are_located() {
    let yaml = "a: 1\nlist:\n- name: x\n  skips: [q, r]\n- {name: z}\n";
    let json = "{\n  \"list\": [\n    {\"name\": \"x\"},\n    {\"Name\": \"z\"}\n  ]\n}";
    let path = [PathStep::Field("list"), PathStep::Item(1), PathStep::Field("name")];
    assert_eq!(locate(yaml, &path), Some((5, 10)));
    assert_eq!(locate(json, &path), Some((4, 14)));
    let deeper =
        [PathStep::Field("list"), PathStep::Item(0), PathStep::Field("skips"), PathStep::Item(1)];
    assert_eq!(locate(yaml, &deeper), Some((4, 14)));
    // A missing node is located by its deepest existing ancestor.
    let missing = [PathStep::Field("list"), PathStep::Item(1), PathStep::Field("package")];
    assert_eq!(locate(yaml, &missing), Some((5, 3)));
    assert_eq!(locate(yaml, &[PathStep::Field("nothing")]), Some((1, 1)));
    assert_eq!(locate("", &path), None);
}

#[test]
fn duplicate_keys_are_listed_with_their_lines_on_request() {
    let options = Options { duplicate_keys: DuplicateKeys::Note, ..Options::default() };
    let text = "a: 1\n---\nb:\n  c: 1\n  c: 2\nb: {yes: 1, yes: 2}\n";
    let found: Vec<_> = documents(text.as_bytes(), &options).map(Result::unwrap).collect();
    assert!(found[0].repeated_keys.is_empty(), "{:?}", found[0].repeated_keys);
    let listed: Vec<(usize, &str)> =
        found[1].repeated_keys.iter().map(|one| (one.line, one.key.as_str())).collect();
    assert_eq!(listed, [(5, "\"c\""), (6, "\"b\""), (6, "true")]);
    assert_eq!(found[1].value, json!({"b": {"true": 2}}));
}

#[test]
fn a_block_of_text_that_ends_with_the_file_ends_with_a_line_break() {
    for (text, value) in [("a: |\n  x", "x\n"), ("a: >\n  x", "x\n"), ("a: |-\n  x", "x")] {
        let read: Vec<_> = documents(text.as_bytes(), &Options::default())
            .map(|document| document.unwrap().value)
            .collect();
        assert_eq!(read, [json!({ "a": value })], "{text:?}");
    }
}

#[test]
fn a_byte_order_mark_inside_a_document_is_a_character_like_others() {
    let text = "\u{feff}a: \u{feff}x\n\u{feff}b: {c: d\u{feff}}\nl: |\n  x\u{feff}\n---\n\u{feff}a: \u{e000}b\n";
    let read: Vec<_> = documents(text.as_bytes(), &Options::default())
        .map(|document| document.unwrap().value)
        .collect();
    let first = json!({"a": "\u{feff}x", "\u{feff}b": {"c": "d\u{feff}"}, "l": "x\u{feff}\n"});
    assert_eq!(read, [first, json!({"a": "\u{e000}b"})]);
}

#[test]
fn the_sign_of_a_zero_is_kept_on_request() {
    let signed = Options { signed_zero: true, ..Options::default() };
    let table = [
        ("a: [-0.0, -0, 0.0]\n", "[-0.0,0,0]"),
        ("a: !!float -0.0\n", "-0.0"),
        ("a: -.0\n", "-0.0"),
        ("{\"a\": [-0.0, -0, 0.0]}", "[-0.0,-0.0,0]"),
    ];
    for (text, expected) in table {
        let read = |options: &Options| one(text.as_bytes(), options).unwrap()["a"].to_string();
        assert_eq!(read(&signed), expected, "{text}");
        assert_eq!(read(&Options::default()), expected.replace("-0.0", "0"), "{text}");
    }
}
