//! Catalog templates: rendering and errors.

use futures::FutureExt as _;
use mainstay_bundle::{DeclaredBundle, DeclaredProperty};
use mainstay_catalog::template::{ImageBundle, TemplateError, TemplateKind, convert};
use mainstay_catalog::{CatalogFormat, Rendition};
use serde_json::{Value, json};

/// The error for an image that does not exist.
#[derive(Debug)]
struct NoImage(String);

impl std::fmt::Display for NoImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there is no image {}", self.0)
    }
}

/// The bundle of an image that is called `PACKAGE.vVERSION`.
fn bundled(image: &str) -> Result<ImageBundle, NoImage> {
    let Some((package, version)) = image.split_once(".v") else {
        return Err(NoImage(image.to_owned()));
    };
    let value = json!({ "packageName": package, "version": version });
    let bundle = DeclaredBundle {
        name: image.to_owned(),
        package: package.to_owned(),
        image: image.to_owned(),
        properties: vec![DeclaredProperty {
            kind: "olm.package".to_owned(),
            value: value.to_string(),
        }],
        related_images: Vec::new(),
    };
    let icon = json!([{ "mediatype": "image/svg+xml", "base64data": "PHN2\nZz4=" }]);
    let csv = json!({ "spec": { "description": format!("About {version}."), "icon": icon } });
    Ok(ImageBundle { bundle, csv })
}

fn render(kind: TemplateKind, template: &Value) -> Result<Rendition, TemplateError<NoImage>> {
    render_text(kind, &template.to_string())
}

fn render_text(kind: TemplateKind, template: &str) -> Result<Rendition, TemplateError<NoImage>> {
    let images = &mut async |image: &str| bundled(image);
    // The images need no waiting.
    kind.render(template.as_bytes(), images).now_or_never().unwrap()
}

/// The documents of a rendition except bundles.
fn documents(rendition: &Rendition) -> Vec<Value> {
    let mut text = Vec::new();
    rendition.write(CatalogFormat::Json, &mut text).unwrap();
    let all = serde_json::Deserializer::from_slice(&text).into_iter::<Value>();
    all.map(Result::unwrap).filter(|document| document["schema"] != "olm.bundle").collect()
}

/// The entries of a channel with updates: `NAME < REPLACES; SKIPS`, without the common prefix of
/// names.
fn edges(documents: &[Value], channel: &str) -> Vec<String> {
    let has_name = |document: &&Value| document["name"] == channel;
    let entries = documents.iter().find(has_name).unwrap()["entries"].as_array().unwrap();
    let short = |value: &Value| value.as_str().unwrap_or("-").replace("a.v", "");
    let entry = |entry: &Value| {
        let skips = entry["skips"].as_array().into_iter().flatten();
        let skips: Vec<String> = skips.map(short).collect();
        format!("{} < {}; {}", short(&entry["name"]), short(&entry["replaces"]), skips.join(" "))
    };
    entries.iter().map(entry).filter(|edge| !edge.ends_with(" < -; ")).collect()
}

fn group(versions: &[&str]) -> Value {
    let bundles = versions.iter().map(|version| json!({ "image": format!("a.v{version}") }));
    json!({ "bundles": bundles.collect::<Vec<_>>() })
}

const VERSIONS: [&str; 16] = [
    "3.1.1",
    "0.1.0",
    "0.1.1",
    "1.1.0",
    "1.2.1",
    "1.3.1-alpha",
    "1.3.1-beta",
    "1.3.1",
    "1.4.1-beta1",
    "1.4.1-beta2",
    "1.4.1",
    "2.1.0",
    "2.1.1",
    "2.3.1",
    "2.3.2",
    "3.1.0",
];

#[test]
fn last_patch_of_each_minor_version_has_the_updates() {
    let template = json!({
        "schema": "olm.semver",
        "generateMajorChannels": true,
        "generateMinorChannels": true,
        "stable": group(&VERSIONS),
    });
    let documents = documents(&render(TemplateKind::Semver, &template).unwrap());
    let in_major = [
        ("stable-v0", vec!["0.1.1 < -; 0.1.0"]),
        (
            "stable-v1",
            vec![
                "1.2.1 < 1.1.0; ",
                "1.3.1 < 1.2.1; 1.1.0 1.3.1-alpha 1.3.1-beta",
                "1.4.1 < 1.3.1; 1.1.0 1.2.1 1.3.1-alpha 1.3.1-beta 1.4.1-beta1 1.4.1-beta2",
            ],
        ),
        ("stable-v2", vec!["2.1.1 < -; 2.1.0", "2.3.2 < 2.1.1; 2.1.0 2.3.1"]),
        ("stable-v3", vec!["3.1.1 < -; 3.1.0"]),
    ];
    for (channel, expected) in in_major {
        assert_eq!(edges(&documents, channel), expected, "{channel}");
    }
    // Channels of minor versions have the same updates, also from bundles of other channels.
    assert_eq!(edges(&documents, "stable-v1.2"), ["1.2.1 < 1.1.0; "]);
    assert_eq!(edges(&documents, "stable-v2.3"), ["2.3.2 < 2.1.1; 2.1.0 2.3.1"]);
    let package = &documents[0];
    assert_eq!(package["defaultChannel"], "stable-v3.1");
    assert_eq!(package["description"], "About 3.1.1.");
    assert_eq!(package["icon"]["base64data"], "PHN2Zz4=");
}

#[test]
fn default_channel_has_the_most_stable_group_and_highest_first_version() {
    let (major, minor) = ("generateMajorChannels", "generateMinorChannels");
    let preference = "defaultChannelTypePreference";
    for (fields, default) in [
        (json!({ "fast": group(&["1.0.0"]), "candidate": group(&["9.0.0"]) }), "fast-v1.0"),
        (json!({ "stable": group(&["1.9.0", "1.10.0"]) }), "stable-v1.10"),
        (json!({ "stable": group(&["1.9.0", "1.10.0"]), major: true }), "stable-v1"),
        (json!({ "stable": group(&["1.0.0"]), major: true, minor: true }), "stable-v1.0"),
        (
            json!({ "stable": group(&["1.0.0"]), major: true, minor: true, preference: "major" }),
            "stable-v1",
        ),
        // The first version of the major channel is lower than that of the last minor channel.
        (
            json!({
                "stable": group(&["1.0.0", "1.1.0"]), major: true, minor: true, preference: "major"
            }),
            "stable-v1.1",
        ),
        (json!({ "candidate": group(&["0.0.0-a"]) }), ""),
    ] {
        let mut template = fields;
        template["schema"] = "olm.semver".into();
        let documents = documents(&render(TemplateKind::Semver, &template).unwrap());
        assert_eq!(documents[0]["defaultChannel"], default, "{template}");
    }
}

#[test]
fn semver_template_is_parsed_strictly_and_numbers_may_be_texts() {
    let decoding = "render: unable to read file: error unmarshaling JSON: while decoding JSON: ";
    let reading = "render: unable to read file: ";
    let post = "render: unable to post-process bundle info: ";
    for (text, message) in [
        ("schema: olm.semver\nx: 1\n", format!("{decoding}json: unknown field \"x\"")),
        (
            "schema: olm.semver\nstable: {bundles: [{image: a.v1.0.0, name: x}]}\n",
            format!("{decoding}json: unknown field \"name\""),
        ),
        (
            "schema: olm.semver\ngenerateMajorChannels: 1\n",
            format!(
                "{decoding}json: cannot unmarshal number into Go struct field SemverTemplateData.generateMajorChannels of type bool"
            ),
        ),
        (
            "schema: olm.semver\nschema: olm.semver\n",
            format!(
                "{reading}error converting YAML to JSON: yaml: unmarshal errors:\n  line 2: key \"schema\" already set in map"
            ),
        ),
        ("", format!("{reading}readFile: input file has unknown schema, should be \"olm.semver\"")),
        (
            "schema: olm.semver\ndefaultChannelTypePreference: 1.5\n",
            format!(
                "{reading}unknown DefaultChannelTypePreference: \"1.5\"\nValid values are 'major' or 'minor'"
            ),
        ),
        (
            "schema: olm.semver\nfast: {bundles: [{image: a.v1.0.0+a}, {image: a.v1.0.0+b}]}\n",
            format!(
                "{post}encountered bundle versions which differ only by build metadata, which cannot be ordered: bundle version \"1.0.0+b\" cannot be compared to \"1.0.0\""
            ),
        ),
        (
            "schema: olm.semver\nfast: {bundles: [{image: a.v1.0.0}, {image: b.v1.0.0}]}\n",
            format!("{post}bundle \"b\" does not belong to this package: \"a\""),
        ),
        (
            "schema: olm.semver\nfast: {bundles: [{image: a.v1.0.0}, {image: a.v1.0.0}]}\n",
            format!("{post}duplicate bundle name \"a.v1.0.0\""),
        ),
        ("schema: olm.semver\nfast: {bundles: [{image: 5}]}\n", "there is no image 5".to_owned()),
    ] {
        let found = render_text(TemplateKind::Semver, text);
        assert_eq!(found.unwrap_err().to_string(), message, "{text}");
    }
    let spelled = "Schema: olm.semver\nSTABLE: {Bundles: [{IMAGE: a.v1.0.0}]}\n---\n{";
    assert!(render_text(TemplateKind::Semver, spelled).is_ok());
}

#[test]
fn schema_determines_the_kind_of_a_template() {
    for kind in TemplateKind::ALL {
        assert_eq!(TemplateKind::of(format!("schema: {}", kind.schema()).as_bytes()), Ok(kind));
        assert_eq!(TemplateKind::parse(kind.name()), Some(kind));
    }
    for (text, message) in [
        ("", "decoding template input: EOF"),
        ("# nothing\n", "unmarshalling template schema: unexpected end of JSON input"),
        ("a: 1", "template input missing required 'schema' field"),
        ("schema: x", "unknown template schema: x"),
        (
            "schema: 5",
            "unmarshalling template schema: json: cannot unmarshal number into Go struct field .schema of type string",
        ),
        (
            "[]",
            "unmarshalling template schema: json: cannot unmarshal array into Go value of type struct { Schema string \"json:\\\"schema\\\"\" }",
        ),
    ] {
        assert_eq!(TemplateKind::of(text.as_bytes()).unwrap_err().to_string(), message, "{text}");
    }
}

#[test]
fn basic_template_renders_images_and_keeps_other_documents() {
    let template = json!({ "schema": "olm.template.basic", "entries": [
        { "schema": "olm.bundle", "image": "a.v1.0.0", "name": "forgotten" },
        { "schema": "x", "package": "a", "y": 1 },
    ] });
    let rendition = render(TemplateKind::Basic, &template).unwrap();
    let names: Vec<String> =
        rendition.names().into_iter().map(|(name, _)| name.name.to_string()).collect();
    assert_eq!(names, ["a.v1.0.0", ""]);
    let unmarshal = "unmarshalling template: ";
    for (entries, message) in [
        (
            json!([{ "schema": "olm.bundle", "image": "x", "package": "a" }]),
            "unexpected fields present in basic template bundle".to_owned(),
        ),
        (json!([{ "schema": "olm.bundle", "image": "x" }]), "there is no image x".to_owned()),
        (json!([{ "a": 1 }]), "object '{\"a\":1}\n' is missing root schema field".to_owned()),
        (json!([null]), "entry 1 of the template is null".to_owned()),
        (
            json!({}),
            format!(
                "{unmarshal}json: cannot unmarshal object into Go struct field BasicTemplateData.entries of type []*declcfg.Meta"
            ),
        ),
        // All documents are checked first.
        (
            json!([{ "a": 1 }, { "x": 1, "X": 2 }]),
            format!("{unmarshal}duplicate keys for key \"x\": [X x]"),
        ),
    ] {
        let template = json!({ "schema": "olm.template.basic", "entries": entries });
        assert_eq!(
            render(TemplateKind::Basic, &template).unwrap_err().to_string(),
            message,
            "{template}"
        );
    }
}

/// A template with a chain of four bundles and substitutions.
fn substitutes(substitutions: &Value) -> Value {
    let bundle = |version: &str| {
        let value = json!({ "packageName": "a", "version": version });
        json!({
            "schema": "olm.bundle", "package": "a", "name": format!("a.v{version}"), "image": "a/b",
            "properties": [{ "type": "olm.package", "value": value }],
        })
    };
    json!({ "schema": "olm.template.substitutes", "substitutions": substitutions, "entries": [
        { "schema": "olm.package", "name": "a", "defaultChannel": "c" },
        { "schema": "olm.channel", "package": "a", "name": "c", "entries": [
            { "name": "a.v1.0.0", "skipRange": "<1.0.0" },
            { "name": "a.v1.1.0", "replaces": "a.v1.0.0", "skips": ["a.v0.9.0"] },
            { "name": "a.v1.2.0", "replaces": "a.v1.1.0" },
            { "name": "a.v1.3.0", "replaces": "a.v1.2.0", "skips": ["a.v1.1.0", "a.v1.0.0"] },
        ] },
        bundle("1.0.0"), bundle("1.1.0"), bundle("1.2.0"), bundle("1.3.0"),
    ] })
}

#[test]
fn substitute_takes_over_the_updates_of_its_base_and_skips_it() {
    let template = substitutes(&json!([{ "name": "a.v1.1.1", "base": "a.v1.1.0" }]));
    let documents = documents(&render(TemplateKind::Substitutes, &template).unwrap());
    assert_eq!(
        edges(&documents, "c"),
        ["1.2.0 < 1.1.1; 1.1.0", "1.3.0 < 1.2.0; 1.0.0 1.1.1", "1.1.1 < 1.0.0; 0.9.0 1.1.0"]
    );
    // Substitutions apply in order: a substitute can be a base.
    let template = substitutes(&json!([
        { "name": "a.v1.1.1", "base": "a.v1.1.0" },
        { "name": "a.v1.1.2", "base": "a.v1.1.1" },
    ]));
    let documents = self::documents(&render(TemplateKind::Substitutes, &template).unwrap());
    assert_eq!(edges(&documents, "c")[2], "1.1.2 < 1.0.0; 0.9.0 1.1.0 1.1.1");
}

#[test]
fn invalid_substitutions_are_refused() {
    let one = |name: &str, base: &str| json!([{ "name": name, "base": base }]);
    let error = |base: &str, name: &str, why: &str| {
        format!("render: error processing substitution \"{base}\" -> \"{name}\": {why}")
    };
    let (old, base) = ("a.v1.0.1", "a.v1.1.0");
    for (substitutions, message) in [
        (one("", base), error(base, "", "substitution name cannot be empty")),
        (one(old, ""), error("", old, "substitution base cannot be empty")),
        (one(old, old), error(old, old, "substitution name and base cannot be the same")),
        (
            one(old, base),
            error(base, old, "base bundle \"a.v1.1.0\" is not less than substitute bundle \"a.v1.0.1\""),
        ),
        (one("a.v9.0.0", "x"), error("x", "a.v9.0.0", "base bundle \"x\" does not exist in catalog")),
        (
            one("x", base),
            error(base, "x", "failed to render bundle image reference \"x\": there is no image x"),
        ),
        (
            one("a.v1.2.0", base),
            error(base, "a.v1.2.0", "resulting config is not valid FBC: invalid package \"a\", channel \"c\": duplicate entry \"a.v1.2.0\""),
        ),
        (
            json!([{ "name": "a.v1.1.1", "base": base }, { "name": "a.v1.1.2", "base": base }]),
            "render: cannot reuse the same substitution base \"a.v1.1.0\"".to_owned(),
        ),
        (
            json!([{ "name": "a.v1.1.1", "base": base }, { "name": "a.v1.1.1", "base": "a.v1.0.0" }]),
            "render: cannot reuse the same substitution \"a.v1.1.1\" for different bases (\"a.v1.1.0\" and \"a.v1.0.0\")".to_owned(),
        ),
    ] {
        let found = render(TemplateKind::Substitutes, &substitutes(&substitutions));
        assert_eq!(found.unwrap_err().to_string(), message, "{substitutions}");
    }
    let template = json!({ "schema": "olm.template.substitutes", "entries": [
        { "schema": "olm.channel", "package": "a", "name": "c" }
    ] });
    let message = "render: entries are not valid FBC: unknown package \"a\" for channel \"c\"";
    assert_eq!(render(TemplateKind::Substitutes, &template).unwrap_err().to_string(), message);
}

#[test]
fn catalogs_convert_to_templates() {
    let catalog = "schema: olm.bundle\nname: x\nimage: <a>\nproperties: []\n---\nb: 1.0\na: 1e21\n";
    let basic = convert(TemplateKind::Basic, catalog.as_bytes(), CatalogFormat::Json).unwrap();
    let expected = "{\n    \"schema\": \"olm.template.basic\",\n    \"entries\": [\n        {\n            \
                    \"schema\": \"olm.bundle\",\n            \"image\": \"\\u003ca\\u003e\"\n        },\n        \
                    {\n            \"a\": 1e+21,\n            \"b\": 1\n        }\n    ]\n}\n";
    assert_eq!(basic, expected);
    let empty = convert(TemplateKind::Substitutes, b"", CatalogFormat::Yaml).unwrap();
    assert_eq!(
        empty,
        "---\nentries: null\nschema: olm.template.substitutes\nsubstitutions: []\n\n"
    );
    // Converting a rendered template restores its entries.
    let back = render_text(
        TemplateKind::Basic,
        "schema: olm.template.basic\nentries: [{schema: olm.bundle, image: a.v1.0.0}]",
    );
    let mut text = Vec::new();
    back.unwrap().write(CatalogFormat::Yaml, &mut text).unwrap();
    let template = convert(TemplateKind::Basic, &text, CatalogFormat::Yaml).unwrap();
    assert_eq!(
        template,
        "---\nentries:\n- image: a.v1.0.0\n  schema: olm.bundle\nschema: olm.template.basic\n\n"
    );
}
