//! Tables compared with those of a kube-apiserver 1.35 for the same objects.

use super::*;
use mainstay_kinds::{DefaultStrategy, KindRegistry};

const NOW: &str = "2026-11-21T15:04:00Z";

fn options(include: IncludeObject) -> TableOptions<'static> {
    TableOptions { version: "v1", include, no_headers: false, now: NOW.parse().unwrap() }
}

/// Whether a cell is a relative time.
fn is_relative(cell: &Value) -> bool {
    let is_age = |text: &str| {
        text.ends_with(['s', 'm', 'h', 'd'])
            && text.bytes().all(|b| b.is_ascii_digit() || b"smhdy".contains(&b))
    };
    cell.as_str().is_some_and(|text| match text.split_once(" (") {
        Some((_, rest)) => rest.strip_suffix(" ago)").is_some_and(is_age),
        None => is_age(text),
    })
}

#[test]
fn tables_are_those_of_the_original() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("testdata/tables.json")).unwrap();
    let kinds = KindRegistry::new(|_| &DefaultStrategy).kinds();
    let mut failures = Vec::new();
    for case in &cases {
        let field = |name: &str| case[name].as_str().unwrap();
        let found =
            mainstay_schema::builtin::resource(field("group"), field("version"), field("resource"));
        let Some(found) = found else { continue };
        let row = kinds.by_gvk(&found.gvk()).unwrap();
        let rows = case["rows"].as_array().unwrap();
        let objects: Vec<Object> =
            rows.iter().map(|row| Object::from_value(row["object"].clone()).unwrap()).collect();
        let table = table(row, &objects, json!({}), &options(IncludeObject::None));
        let columns: Vec<Value> = table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| {
                json!([column["name"], column["type"], column["format"], column["priority"]])
            })
            .collect();
        let columns = Value::from(columns);
        if columns != case["columns"] {
            failures.push(format!("{row:?}\n  ours   {columns}\n  theirs {}", case["columns"]));
        }
        for (theirs, ours) in rows.iter().zip(table["rows"].as_array().into_iter().flatten()) {
            let pairs =
                theirs["cells"].as_array().unwrap().iter().zip(ours["cells"].as_array().unwrap());
            let same = theirs["cells"].as_array().map(Vec::len)
                == ours["cells"].as_array().map(Vec::len)
                && pairs.clone().all(|(a, b)| a == b || is_relative(a) && is_relative(b));
            if !same || theirs["conditions"] != ours["conditions"] {
                let cells = |row: &Value| format!("{} {}", row["cells"], row["conditions"]);
                failures.push(format!(
                    "{row:?}\n  ours   {}\n  theirs {}\n  object {}",
                    cells(ours),
                    cells(theirs),
                    theirs["object"]
                ));
            }
        }
    }
    assert!(cases.len() > 40);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn column(name: &str, kind: &str, path: &str) -> PrinterColumn {
    PrinterColumn {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: String::new(),
        description: String::new(),
        priority: 0,
        json_path: path.to_owned(),
    }
}

#[test]
fn declared_columns_show_values_of_their_type_only() {
    let columns = [
        column("S", "string", ".spec.s"),
        column("I", "integer", ".spec.i"),
        column("N", "number", ".spec.n"),
        column("B", "boolean", ".spec.b"),
        column("D", "date", ".spec.d"),
    ];
    let compiled =
        columns.iter().map(|one| (one, JsonPath::parse_column(&one.json_path).ok())).collect();
    let columns = Columns::Custom(compiled);
    let cells = |spec: Value| {
        let thing = json!({"metadata": {"name": "x"}, "spec": spec});
        columns.cells(&Object::from_value(thing).unwrap(), NOW.parse().unwrap())
    };
    // As recorded from kube-apiserver.
    let cases = [
        (
            json!({"s": "x", "i": 3, "n": 1.5, "b": true, "d": "2026-11-21T10:00:00Z"}),
            json!(["x", "x", 3, 1.5, true, "5h4m"]),
        ),
        (
            json!({"s": {"a": [1]}, "i": 2.7, "n": 3, "b": "x", "d": "soon"}),
            json!(["x", "{\"a\":[1]}", 2, 3, null, "<invalid>"]),
        ),
        (json!({}), json!(["x", null, null, null, null, null])),
        (
            json!({"s": null, "i": null, "d": null}),
            json!(["x", "<no value>", null, null, null, null]),
        ),
        (
            json!({"s": 5, "i": "5", "n": "x", "b": false, "d": 7}),
            json!(["x", "5", null, null, false, null]),
        ),
        (json!({"s": 1.5, "i": true, "n": 2}), json!(["x", "1.5", null, 2, null, null])),
    ];
    for (spec, expected) in cases {
        assert_eq!(Value::from(cells(spec)), expected);
    }
    let definitions = columns.definitions();
    assert_eq!(definitions.len(), 6);
    assert_eq!(
        definitions[1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.s"
    );
}

#[test]
fn a_column_that_cannot_be_read_is_empty() {
    let broken = column("X", "string", ".a[");
    let columns = Columns::Custom(vec![(&broken, None)]);
    let object = Object::from_value(json!({"metadata": {"name": "x"}})).unwrap();
    assert_eq!(columns.cells(&object, NOW.parse().unwrap()), [json!("x"), Value::Null]);
}

#[test]
fn rows_contain_the_requested_object() {
    let kinds = KindRegistry::new(|_| &DefaultStrategy).kinds();
    let row = kinds.find("", "v1", "configmaps").unwrap();
    let object = Object::from_value(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "m", "creationTimestamp": "2026-11-21T15:03:00Z"},
        "data": {"a": "b"},
    }))
    .unwrap();
    let make = |include| {
        table(
            row,
            std::slice::from_ref(&object),
            json!({"resourceVersion": "7"}),
            &options(include),
        )
    };
    let about = |column| columns::description("ConfigMap", column);
    assert!(about("Age").starts_with("CreationTimestamp is"));
    assert_eq!(
        make(IncludeObject::Metadata),
        json!({
            "apiVersion": "meta.k8s.io/v1",
            "kind": "Table",
            "metadata": {"resourceVersion": "7"},
            "columnDefinitions": [
                {"name": "Name", "type": "string", "format": "name", "description": about("Name"), "priority": 0},
                {"name": "Data", "type": "string", "format": "", "description": about("Data"), "priority": 0},
                {"name": "Age", "type": "string", "format": "", "description": about("Age"), "priority": 0},
            ],
            "rows": [{
                "cells": ["m", 1, "60s"],
                "object": {
                    "apiVersion": "meta.k8s.io/v1",
                    "kind": "PartialObjectMetadata",
                    "metadata": {"name": "m", "creationTimestamp": "2026-11-21T15:03:00Z"},
                },
            }],
        })
    );
    assert_eq!(make(IncludeObject::None)["rows"][0]["object"], Value::Null);
    assert_eq!(make(IncludeObject::Object)["rows"][0]["object"], object.to_value());
    let quiet = TableOptions { no_headers: true, ..options(IncludeObject::None) };
    assert_eq!(table(row, &[], json!({}), &quiet)["columnDefinitions"], Value::Null);
}
