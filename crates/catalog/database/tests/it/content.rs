//! Catalogs of valid databases.

use crate::fixture::Fixture;
use serde_json::json;

#[test]
fn a_database_becomes_a_catalog() {
    let fixture = Fixture::with_changes("");
    assert_eq!(
        fixture.documents("olm.package"),
        [json!({
            "schema": "olm.package", "name": "kiwi", "defaultChannel": "stable",
            "icon": {"base64data": "aGk=", "mediatype": "image/png"},
        })]
    );
    assert_eq!(
        fixture.documents("olm.channel"),
        [json!({
            "schema": "olm.channel", "package": "kiwi", "name": "stable",
            "entries": [
                {"name": "kiwi.v1"},
                {"name": "kiwi.v2", "replaces": "kiwi.v1", "skipRange": "<2.0.0"},
            ],
        })]
    );
    let bundles = fixture.documents("olm.bundle");
    assert_eq!(bundles[0]["properties"].as_array().unwrap().len(), 1, "the package is derived");
    let object = |text| json!({"type": "olm.bundle.object", "value": {"data": text}});
    assert_eq!(
        bundles[1],
        json!({
            "schema": "olm.bundle", "package": "kiwi", "name": "kiwi.v2", "image": "example.com/kiwi:v2",
            "properties": [
                {"type": "my.type", "value": {"b": 1}},
                {"type": "olm.gvk", "value": {"group": "fruit.io", "kind": "Kiwi", "version": "v1"}},
                {"type": "olm.gvk.required", "value": {"group": "nut.io", "kind": "Nut", "version": "v1"}},
                {"type": "olm.package", "value": {"packageName": "kiwi", "version": "2.0.0"}},
                {"type": "olm.package.required", "value": {"packageName": "other", "versionRange": ">=1.0.0"}},
                object("eyJraW5kIjoiQ2x1c3RlclNlcnZpY2VWZXJzaW9uIiwibWV0YWRhdGEiOnsibmFtZSI6Imtpd2kudjIifSwic3BlYyI6e319"),
                object("eyJraW5kIjoiQ3VzdG9tUmVzb3VyY2VEZWZpbml0aW9uIn0="),
            ],
            "relatedImages": [
                {"name": "", "image": "example.com/a:1"}, {"name": "", "image": "example.com/z:1"},
            ],
        })
    );
    let catalog = fixture.read().unwrap().check().unwrap();
    assert_eq!(
        &*catalog.package("kiwi").unwrap().channel("stable").unwrap().head().name,
        "kiwi.v2"
    );
}

#[test]
fn properties_of_later_levels_are_derived() {
    let no_properties = "DROP TABLE properties; DROP TABLE deprecated;";
    let no_dependencies = format!("DROP TABLE dependencies; {no_properties}");
    let by_entry = format!(
        "{no_dependencies} DROP TABLE api_provider; DROP TABLE api_requirer; \
         CREATE TABLE api_provider (group_name TEXT, version TEXT, kind TEXT, channel_entry_id INTEGER); \
         CREATE TABLE api_requirer (group_name TEXT, version TEXT, kind TEXT, channel_entry_id INTEGER); \
         INSERT INTO api_provider VALUES ('fruit.io', 'v1', 'Kiwi', 1); \
         INSERT INTO api_requirer VALUES ('nut.io', 'v1', 'Nut', 1);"
    );
    let all = "my.type olm.gvk olm.gvk.required olm.package olm.package.required";
    let apis = "olm.gvk olm.gvk.required olm.package";
    for (level, changes, types) in [
        (99, "", all),
        (12, "", all),
        (9, "DROP TABLE deprecated;", all),
        (8, no_properties, "olm.gvk olm.gvk.required olm.package olm.package.required"),
        (7, &no_dependencies, apis),
        (6, &no_dependencies, apis),
        (5, &by_entry, apis),
    ] {
        let fixture = Fixture::with_changes(&format!(
            "UPDATE schema_migrations SET version = {level}; {changes}"
        ));
        let bundle = fixture.documents("olm.bundle").pop().unwrap();
        let kinds = bundle["properties"].as_array().unwrap().iter();
        let kinds: Vec<&str> = kinds
            .map(|property| property["type"].as_str().unwrap())
            .filter(|&kind| kind != "olm.bundle.object")
            .collect();
        assert_eq!(kinds.join(" "), types, "{level}");
    }
    // Upstream finds no bundles without versions.
    let fixture =
        Fixture::with_changes(&format!("UPDATE schema_migrations SET version = 4; {by_entry}"));
    assert!(fixture.fault().ends_with("channel must contain at least one bundle"));
}

#[test]
fn the_oldest_levels_are_read_only_if_empty() {
    for version in ["UPDATE schema_migrations SET version = 3;", "DROP TABLE schema_migrations;"] {
        assert_eq!(Fixture::with_changes(version).fault(), "FOREIGN KEY constraint failed");
        let empty = format!("{version} DELETE FROM package; DELETE FROM channel;");
        assert_eq!(Fixture::with_changes(&empty).documents("olm.package").len(), 0);
    }
    assert_eq!(
        Fixture::with_changes("DELETE FROM schema_migrations;").fault(),
        "FOREIGN KEY constraint failed"
    );
}

#[test]
fn deprecated_bundles_are_left_out() {
    let fixture = Fixture::with_changes(
        "INSERT INTO properties(type, value, operatorbundle_name) VALUES ('olm.deprecated', '{}', 'kiwi.v1');",
    );
    let entries = &fixture.documents("olm.channel")[0]["entries"];
    assert_eq!(entries.as_array().unwrap().len(), 1);
    assert_eq!(entries[0]["replaces"], "kiwi.v1", "the edge remains");
    assert_eq!(fixture.documents("olm.bundle").len(), 1);
}

#[test]
fn invalid_catalogs_have_upstreams_errors() {
    let convert = "populate channels: convert bundle \"kiwi.v2\": ";
    let head = "populate package icons: get default channel head for package \"kiwi\": ";
    let in_channel = "invalid index:\n└── invalid package \"kiwi\":\n    └── invalid channel \"stable\":\n        └── ";
    for (changes, fault) in [
        ("DELETE FROM channel", "package kiwi not found".to_owned()),
        ("UPDATE channel SET head_operatorbundle_name = NULL", format!("{head}no entry found for kiwi stable")),
        ("UPDATE package SET default_channel = NULL", format!("{head}it has no default channel")),
        ("UPDATE package SET default_channel = 'x'", format!("{head}there is no channel \"x\"")),
        (
            "UPDATE operatorbundle SET version = '2' WHERE name = 'kiwi.v2'",
            format!("{convert}parse version \"2\": No Major.Minor.Patch elements found"),
        ),
        (
            "UPDATE properties SET value = 'x' WHERE type = 'olm.gvk'",
            format!(
                "{convert}convert properties: parse property[0] of type \"olm.gvk\": \
                 invalid character 'x' looking for beginning of value"
            ),
        ),
        (
            "UPDATE operatorbundle SET csv = NULL",
            "populate package icons: unmarshal CSV json for bundle \"kiwi.v2\": unexpected end of JSON input".to_owned(),
        ),
        (
            "UPDATE channel_entry SET package_name = 'x' WHERE entry_id = 2",
            "populate channels: unknown package \"x\" for bundle \"kiwi.v1\"".to_owned(),
        ),
        (
            "UPDATE channel_entry SET channel_name = 'x' WHERE entry_id = 2",
            "populate channels: unknown channel \"x\" for bundle \"kiwi.v1\"".to_owned(),
        ),
        (
            "UPDATE channel_entry SET replaces = 2 WHERE entry_id = 2",
            format!("{in_channel}detected cycle in replaces chain of upgrade graph: kiwi.v1 -> kiwi.v1"),
        ),
        ("DELETE FROM channel_entry", format!("{in_channel}channel must contain at least one bundle")),
        (
            "UPDATE properties SET value = 'x' WHERE type = 'my.type'",
            format!(
                "{in_channel}invalid bundle \"kiwi.v2\":\n            └── parse property[0] of type \"my.type\": \
                 invalid character 'x' looking for beginning of value"
            ),
        ),
        (
            "UPDATE schema_migrations SET version = 'x'",
            "schema_migrations: the version is no number".to_owned(),
        ),
    ] {
        assert_eq!(Fixture::with_changes(&format!("{changes};")).fault(), fault, "{changes}");
    }
}
