//! Writing of catalogs as upstream writes them.

use mainstay_catalog::{
    CatalogDocuments, CatalogFormat, KeptContent, LoadOptions, MemorySource, MigrateError,
    MigrationLevel, PackageDocuments, Rendition, WriteError,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn read(files: Vec<(String, String)>) -> Rendition {
    let files: MemorySource =
        files.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
    let options = LoadOptions { keep: KeptContent::Light, ..LoadOptions::default() };
    let declared = CatalogDocuments::read(&files, &options);
    Rendition::of(&declared.unwrap_or_else(|error| panic!("{error}")))
}

fn parse(text: &(impl ToString + ?Sized)) -> Rendition {
    read(vec![("c.yaml".to_owned(), text.to_string())])
}

fn render(rendition: &Rendition, format: CatalogFormat) -> String {
    let mut out = Vec::new();
    rendition.write(format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn json_of(document: &(impl ToString + ?Sized)) -> Value {
    serde_json::from_str(&render(&parse(document), CatalogFormat::Json)).unwrap()
}

#[test]
fn known_schemas_are_written_in_upstreams_form_and_field_order() {
    let package = json!({
        "schema": "olm.package", "name": "kiwi", "x": 1, "defaultchannel": "stable",
        "icon": {"base64data": "QU\nJD", "x": 1},
    });
    assert_eq!(
        render(&parse(&package), CatalogFormat::Json),
        "{\n    \"schema\": \"olm.package\",\n    \"name\": \"kiwi\",\n    \"defaultChannel\": \"stable\",\n    \
         \"icon\": {\n        \"base64data\": \"QUJD\",\n        \"mediatype\": \"\"\n    }\n}\n"
    );
    for (document, form) in [
        (
            json!({"schema": "olm.channel", "package": "p", "name": "c"}),
            json!({"schema": "olm.channel", "name": "c", "package": "p", "entries": null}),
        ),
        (
            json!({"schema": "olm.channel", "package": "p", "name": "c", "entries": [
                null, {"name": "a", "replaces": "", "skips": [], "Skips": ["x", null], "y": 0},
            ]}),
            json!({"schema": "olm.channel", "name": "c", "package": "p", "entries": [
                {"name": ""}, {"name": "a"},
            ]}),
        ),
        (
            json!({"schema": "olm.bundle", "package": "p", "properties": [null, {"type": "t"}],
                "relatedImages": [{"image": "b", "name": null}, {"image": "a", "size": 1}]}),
            json!({"schema": "olm.bundle", "package": "p", "image": "", "properties": [
                {"type": "", "value": null}, {"type": "t", "value": null},
            ], "relatedImages": [{"name": "", "image": "a"}, {"name": "", "image": "b"}]}),
        ),
        (
            json!({"schema": "olm.deprecations", "package": "p", "entries": [{"message": "m"}]}),
            json!({"schema": "olm.deprecations", "package": "p", "entries": [
                {"reference": {"schema": ""}, "message": "m"},
            ]}),
        ),
        (
            json!({"schema": "own", "Skips": [], "nothing": null, "deep": {"x": [{}]}}),
            json!({"schema": "own", "Skips": [], "nothing": null, "deep": {"x": [{}]}}),
        ),
    ] {
        assert_eq!(json_of(&document), form, "{document}");
    }
}

#[test]
fn manifests_are_written_behind_other_properties() {
    let property = |kind: &str| json!({"type": kind, "value": {}});
    let kinds = ["olm.csv.metadata", "z", "olm.bundle.object", "a"];
    let bundle = json!({
        "schema": "olm.bundle", "package": "p", "properties": kinds.map(property),
    });
    let kinds: Vec<Value> = json_of(&bundle)["properties"]
        .as_array()
        .unwrap()
        .iter()
        .map(|property| property["type"].clone())
        .collect();
    assert_eq!(kinds, ["z", "a", "olm.csv.metadata", "olm.bundle.object"]);
}

#[test]
fn numbers_are_written_in_double_precision() {
    for (number, in_json, in_yaml) in [
        ("1.0", "1", "1"),
        ("1e3", "1000", "1000"),
        ("1000000.5", "1000000.5", "1.0000005e+06"),
        ("12345678901234567890", "12345678901234567000", "12345678901234567000"),
        ("9007199254740993", "9007199254740992", "9007199254740992"),
        ("-9223372036854775808", "-9223372036854776000", "-9.223372036854776e+18"),
        ("1e20", "100000000000000000000", "1e+20"),
        ("1e-7", "1e-7", "1e-07"),
        ("-0", "-0", "0"),
        ("-0.0", "-0", "0"),
    ] {
        let rendition = parse(&format!("{{\"schema\": \"own\", \"v\": {number}}}"));
        assert_eq!(
            render(&rendition, CatalogFormat::Json),
            format!("{{\n    \"schema\": \"own\",\n    \"v\": {in_json}\n}}\n")
        );
        assert_eq!(
            render(&rendition, CatalogFormat::Yaml),
            format!("---\nschema: own\nv: {in_yaml}\n"),
            "{number}"
        );
    }
}

#[test]
fn documents_are_ordered_by_package_and_kind() {
    let documents = [
        json!({"schema": "z", "name": "rest"}),
        json!({"schema": "olm.deprecations", "package": "b", "entries": []}),
        json!({"schema": "own", "package": "b", "name": "2"}),
        json!({"schema": "another", "package": "b", "name": "3"}),
        json!({"schema": "olm.bundle", "package": "b", "name": "b2"}),
        json!({"schema": "olm.bundle", "package": "b", "name": "b10"}),
        json!({"schema": "olm.channel", "package": "b", "name": "c"}),
        json!({"schema": "olm.package", "name": "b"}),
        json!({"schema": "olm.package", "name": "a"}),
        json!({"schema": "olm.bundle", "name": "nowhere"}),
        json!({"schema": "a", "name": "rest too"}),
    ];
    let rendition = parse(&documents.map(|document| document.to_string()).join("\n"));
    let text = render(&rendition, CatalogFormat::Yaml);
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("name: ")).collect();
    assert_eq!(names, ["a", "b", "c", "b10", "b2", "\"3\"", "\"2\"", "rest", "rest too"]);
    assert!(text.find("olm.deprecations") > text.find("schema: own"));
    let parts = rendition.parts();
    assert_eq!(parts.iter().map(PackageDocuments::package).collect::<Vec<_>>(), ["a", "b", ""]);
}

#[test]
fn invalid_yaml_characters_stop_writing_after_earlier_documents() {
    let rendition = parse(
        "{\"schema\": \"s\", \"package\": \"a\"}\n{\"schema\": \"s\", \"package\": \"b\", \"v\": \"\\u007f\"}",
    );
    let mut out = Vec::new();
    let error = rendition.write(CatalogFormat::Yaml, &mut out).unwrap_err();
    assert!(matches!(error, WriteError::Characters));
    assert_eq!(error.to_string(), "yaml: control characters are not allowed");
    assert_eq!(out, b"---\npackage: a\nschema: s\n");
    assert!(render(&rendition, CatalogFormat::Json).contains('\u{7f}'));
}

fn with_csv(image: &str, csv: &Value, more: &Value) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let data = |manifest: &Value| STANDARD.encode(manifest.to_string());
    let object = |manifest| json!({"type": "olm.bundle.object", "value": {"data": data(manifest)}});
    json!({
        "schema": "olm.bundle", "package": "p", "name": "p.v1", "image": image,
        "properties": [
            object(&json!({"kind": "Service"})), object(csv), {"type": "t", "value": 1.0}, more,
        ],
    })
    .to_string()
}

#[test]
fn migration_replaces_manifests_by_csv_metadata() {
    let csv = json!({
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "p.v1", "annotations": {"a": "<b>"}},
        "spec": {"displayName": "P", "version": "1.0.0", "provider": {"name": "me"}, "x": 1},
    });
    let other = json!({"type": "u", "value": "v"});
    let metadata = json!({
        "annotations": {"a": "<b>"}, "apiServiceDefinitions": {}, "crdDescriptions": {},
        "displayName": "P", "provider": {"name": "me"},
    });
    let kinds = |rendition: &Rendition| -> Vec<Value> {
        let bundle: Value = serde_json::from_str(&render(rendition, CatalogFormat::Json)).unwrap();
        bundle["properties"].as_array().unwrap().clone()
    };
    let mut rendition = parse(&with_csv("a/b:v1", &csv, &other));
    rendition.migrate(MigrationLevel::None).unwrap();
    assert_eq!(kinds(&rendition).len(), 4);
    rendition.migrate(MigrationLevel::CsvMetadata).unwrap();
    let migrated = kinds(&rendition);
    assert_eq!(
        migrated,
        [
            json!({"type": "t", "value": 1}),
            other.clone(),
            json!({"type": "olm.csv.metadata", "value": metadata}),
        ]
    );
    // A second migration changes nothing. Bundles without an image, without a ClusterServiceVersion
    // or with metadata are not migrated.
    rendition.migrate(MigrationLevel::LAST).unwrap();
    assert_eq!(kinds(&rendition), migrated);
    let existing = json!({"type": "olm.csv.metadata", "value": {}});
    for text in [
        with_csv("", &csv, &other),
        with_csv("a/b:v1", &json!({"kind": "Role"}), &other),
        with_csv("a/b:v1", &csv, &existing),
    ] {
        let mut rendition = parse(&text);
        let before = render(&rendition, CatalogFormat::Json);
        rendition.migrate(MigrationLevel::LAST).unwrap();
        assert_eq!(render(&rendition, CatalogFormat::Json), before);
    }
    let wrong = json!({"kind": "ClusterServiceVersion", "spec": {"displayName": 5}});
    let error =
        parse(&with_csv("a/b:v1", &wrong, &other)).migrate(MigrationLevel::LAST).unwrap_err();
    assert!(matches!(error, MigrateError::Csv(_)));
    assert_eq!(
        error.to_string(),
        "json: cannot unmarshal number into Go struct field \
         ClusterServiceVersionSpec.spec.displayName of type string"
    );
}

#[test]
fn migration_levels_have_names() {
    for level in MigrationLevel::ALL {
        assert_eq!(MigrationLevel::parse(level.name()), Ok(level));
    }
    assert_eq!(MigrationLevel::parse("all"), Ok(MigrationLevel::LAST));
    let unknown = MigrationLevel::parse("x").unwrap_err();
    assert_eq!(unknown.to_string(), "unknown migration level \"x\"");
}

/// Any value, with texts that YAML must quote. Numbers are exact in any type.
fn values() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        "[ -~]{0,12}",
        "[a-z \n\t:#'\"-]{0,12}",
        "\\PC{0,6}",
        Just("yes".to_owned()),
        Just("0x1f".to_owned()),
        Just("w ".repeat(60)),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<i16>().prop_map(|number| Value::from(f64::from(number) / 8.0)),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// The documents of a catalog, each with its own schema and name.
fn documents() -> impl Strategy<Value = Vec<Value>> {
    let document =
        (0..6_u8, "[a-c]", values(), values()).prop_map(|(kind, package, one, other)| {
            let text = |value: &Value| value.as_str().unwrap_or("text").to_owned();
            let property = json!({"type": text(&other), "value": one});
            match kind {
                0 => json!({"schema": "olm.package", "name": package, "description": text(&one),
                "properties": [property]}),
                1 => json!({"schema": "olm.channel", "package": package,
                "entries": [{"name": text(&one), "skips": [text(&other)], "unknown": other}]}),
                2 => json!({"schema": "olm.bundle", "package": package, "image": text(&one),
                "properties": [property], "relatedImages": [{"image": text(&other)}]}),
                3 => json!({"schema": "olm.deprecations", "package": package,
                "entries": [{"reference": {"schema": text(&one)}, "message": text(&other)}]}),
                4 => json!({"schema": "own", "package": package, "v": one}),
                _ => json!({"schema": "own", "v": one, "w": other}),
            }
        });
    prop::collection::vec(document, 0..12).prop_map(|mut documents| {
        for (at, document) in documents.iter_mut().enumerate() {
            let named = format!("n{at:02}");
            match document["schema"].as_str() {
                // A package has one of each.
                Some("olm.package" | "olm.deprecations") => {
                    let field =
                        if document["schema"] == "olm.package" { "name" } else { "package" };
                    document[field] = named.into();
                }
                Some("own") => document["schema"] = named.into(),
                _ => document["name"] = named.into(),
            }
        }
        documents
    })
}

proptest! {
    #[test]
    fn written_catalog_can_be_read_and_written_again(documents in documents()) {
        let text: Vec<String> = documents.iter().map(Value::to_string).collect();
        let first = parse(&text.join("\n"));
        let (json, yaml) = (render(&first, CatalogFormat::Json), render(&first, CatalogFormat::Yaml));
        for text in [&json, &yaml] {
            let again = parse(text);
            prop_assert_eq!(&render(&again, CatalogFormat::Json), &json);
            prop_assert_eq!(&render(&again, CatalogFormat::Yaml), &yaml);
        }
    }

    #[test]
    fn order_of_files_and_documents_does_not_matter(
        documents in documents().prop_shuffle(),
        shuffled in any::<prop::sample::Index>(),
        files in 1..4_usize,
    ) {
        let text: Vec<String> = documents.iter().map(Value::to_string).collect();
        // Documents without a package keep their order.
        let rest = |document: &&Value| document["package"].is_null() && document["schema"] != "olm.package";
        prop_assume!(documents.iter().filter(rest).count() < 2);
        let mut turned = text.clone();
        if !turned.is_empty() {
            turned.rotate_left(shuffled.index(text.len()));
            turned.reverse();
        }
        let parts = turned.chunks(turned.len().div_ceil(files).max(1)).enumerate();
        let spread = parts.map(|(at, part)| (format!("{}/{at}.json", 9 - at), part.join("\n")));
        let (one, many) = (parse(&text.join("\n")), read(spread.collect()));
        for format in [CatalogFormat::Json, CatalogFormat::Yaml] {
            prop_assert_eq!(render(&one, format), render(&many, format));
        }
    }
}
