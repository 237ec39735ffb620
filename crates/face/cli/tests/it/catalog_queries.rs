//! Catalog queries of the acceptance list (AT-34 to AT-38): what users ask with `jq` of a rendered
//! catalog.

use base64::Engine as _;
use http_body_util::BodyExt;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_clitest::TestFolder;
use mainstay_registry::{RegistryIndex, ServedCatalogs, http::CatalogHttpApi};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc, time::SystemTime};

const PIPELINES: &str = "openshift-pipelines-operator-rh";
const REPOSITORY: &str = "registry.redhat.io/openshift-pipelines/pipelines-operator-bundle";

/// Versions and digests of the inventory.
const BUNDLES: [(&str, &str); 10] = [
    ("1.14.3", "3f64b29f6903981470d0917b2557f49d84067bccdba0544bfe874ec4412f45b0"),
    ("1.14.4", "dd3d18367da2be42539e5dde8e484dac3df33ba3ce1d5bcf896838954f3864ec"),
    ("1.14.5", "f7b19ce26be742c4aaa458d37bc5ad373b5b29b20aaa7d308349687d3cbd8838"),
    ("1.15.0", "22be152950501a933fe6e1df0e663c8056ca910a89dab3ea801c3bb2dc2bf1e6"),
    ("1.15.1", "64afb32e3640bb5968904b3d1a317e9dfb307970f6fda0243e2018417207fd75"),
    ("1.15.2", "8a593c1144709c9aeffbeb68d0b4b08368f528e7bb6f595884b2474bcfbcafcd"),
    ("1.16.0", "a46b7990c0ad07dae78f43334c9bd5e6cba7b50ca60d3f880099b71e77bed214"),
    ("1.16.1", "29f27245e93b3f605647993884751c490c4a44070d3857a878d2aee87d43f85b"),
    ("1.16.2", "2037004666526c90329f4791f14cb6cc06e8775cb84ba107a24cc4c2cf944649"),
    ("1.17.0", "d75065e999826d38408049aa1fde674cd1e45e384bfdc96523f6bad58a0e0dbc"),
];

const CHANNELS: [&str; 5] =
    ["latest", "pipelines-1.14", "pipelines-1.15", "pipelines-1.16", "pipelines-1.17"];

/// A bundle with its install modes; without modes, it has none of the field.
fn bundle(package: &str, version: &str, image: &str, modes: &[(&str, bool)]) -> String {
    let mut text = format!(
        "---\nimage: {image}\nname: {package}.v{version}\npackage: {package}\nschema: olm.bundle\n\
         properties:\n- type: olm.package\n  value: {{packageName: {package}, version: {version}}}\n"
    );
    if !modes.is_empty() {
        let modes: Vec<String> = modes
            .iter()
            .map(|(kind, supported)| format!("{{type: {kind}, supported: {supported}}}"))
            .collect();
        let modes = modes.join(", ");
        let value = format!("  value: {{installModes: [{modes}]}}\n");
        text.push_str("- type: olm.csv.metadata\n");
        text.push_str(&value);
    }
    text
}

/// A package of one bundle.
fn small(package: &str, modes: &[(&str, bool)]) -> String {
    let head = format!(
        "schema: olm.package\nname: {package}\ndefaultChannel: x\n---\n\
         schema: olm.channel\npackage: {package}\nname: x\nentries: [{{name: {package}.v1.0.0}}]\n"
    );
    head + &bundle(package, "1.0.0", "example.com/a:b", modes)
}

/// A catalog with the inventory's package among others, in arbitrary order.
fn place() -> TestFolder {
    let mut text = format!(
        "icon:\n  mediatype: image/png\n  base64data: iVBORw0KGgoAAAANSUhE\n\
         defaultChannel: latest\nname: {PIPELINES}\nschema: olm.package\n"
    );
    for (version, digest) in BUNDLES.iter().rev() {
        let image = format!("{REPOSITORY}@sha256:{digest}");
        text.push_str(&bundle(PIPELINES, version, &image, &[("AllNamespaces", true)]));
    }
    let of_minor = |minor: &str| -> Vec<&str> {
        let inside = BUNDLES.iter().map(|(version, _)| *version);
        inside.filter(|version| version.starts_with(minor)).collect()
    };
    for channel in CHANNELS.iter().rev() {
        let versions = match channel.split_once('-') {
            Some((_, minor)) => of_minor(minor),
            None => vec!["1.15.0", "1.16.0", "1.17.0"],
        };
        let head =
            format!("---\nschema: olm.channel\npackage: {PIPELINES}\nname: {channel}\nentries:\n");
        text.push_str(&head);
        let mut before = None;
        for version in versions {
            let mut entry = format!("- name: {PIPELINES}.v{version}\n");
            if let Some(before) = before.replace(version) {
                entry += "  replaces: ";
                entry += &[PIPELINES, ".v", before, "\n"].concat();
            }
            text.push_str(&entry);
        }
    }
    let all = ("AllNamespaces", true);
    let none = ("AllNamespaces", false);
    TestFolder::with(&text)
        .file("c/b.yaml", small("amq-streams", &[("OwnNamespace", true), all]))
        .file("c/a.yaml", small("zero-operator", &[all]))
        .file("c/d.yaml", small("own-only", &[("OwnNamespace", true), none]))
        .file("c/e.yaml", small("says-nothing", &[]))
        .file("c/f.yaml", small("3scale-operator", &[all]))
}

/// The documents of a query (fields and their values): those that `render` prints, and in another order
/// those of the HTTP API.
fn documents(place: &TestFolder, query: &[(&str, &str)]) -> Vec<Value> {
    let flags: String =
        query.iter().map(|(field, name)| [" --", field, " ", name].concat()).collect();
    let answer = place.catalog(&format!("render c{flags}"));
    assert_eq!((answer.code, answer.err.as_str()), (0, ""), "{query:?}");
    let stream = |text: &str| -> Vec<Value> {
        serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().unwrap()
    };
    let printed = stream(&answer.out);
    let served = stream(&served(place, query));
    // The HTTP API serves documents with the field `package`, which the package's own document lacks.
    let fields = |document: &&Value| query.iter().all(|(field, name)| document[*field] == *name);
    let belonging: Vec<&Value> = printed.iter().filter(fields).collect();
    assert_eq!(served.len(), belonging.len(), "{query:?}");
    assert!(belonging.iter().all(|document| served.contains(document)), "{query:?}");
    printed
}

/// The response of the HTTP API to a query.
fn served(place: &TestFolder, query: &[(&str, &str)]) -> String {
    let catalog = Catalog::load(&place.path().join("c"), &LoadOptions::default()).unwrap();
    let shelf = ServedCatalogs::default();
    shelf.add("mine").put(Arc::new(RegistryIndex::new(catalog, SystemTime::UNIX_EPOCH)));
    let parameters: Vec<String> =
        query.iter().map(|(field, name)| format!("{field}={name}")).collect();
    let uri = format!("/catalogs/mine/api/v1/metas?{}", parameters.join("&"));
    let request = http::Request::get(uri).body(()).unwrap();
    let answer = CatalogHttpApi::new(Arc::new(shelf)).answer(&request);
    assert_eq!(answer.status(), 200);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let body = runtime.block_on(answer.into_body().collect()).unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

fn names(documents: &[Value]) -> Vec<&str> {
    documents.iter().map(|document| document["name"].as_str().unwrap()).collect()
}

#[test]
fn query_packages_that_support_all_namespaces() {
    let bundles = documents(&place(), &[("schema", "olm.bundle")]);
    let supports = |bundle: &&Value| {
        let properties = bundle["properties"].as_array().unwrap().iter();
        let metadata = properties.filter(|property| property["type"] == "olm.csv.metadata");
        let mut modes =
            metadata.flat_map(|property| property["value"]["installModes"].as_array().unwrap());
        modes.any(|mode| mode["type"] == "AllNamespaces" && mode["supported"] == true)
    };
    let packages: BTreeSet<&str> = bundles
        .iter()
        .filter(supports)
        .filter(|bundle| bundle["spec"]["webhookdefinitions"].is_null())
        .map(|bundle| bundle["package"].as_str().unwrap())
        .collect();
    let packages: Vec<&str> = packages.into_iter().collect();
    assert_eq!(packages, ["3scale-operator", "amq-streams", PIPELINES, "zero-operator"]);
}

#[test]
fn query_package_document_keeps_field_order() {
    let place = place();
    let printed = place.catalog(&format!("query c --schema olm.package --name {PIPELINES}")).out;
    insta::assert_snapshot!(printed, @r#"
    {
        "schema": "olm.package",
        "name": "openshift-pipelines-operator-rh",
        "defaultChannel": "latest",
        "icon": {
            "base64data": "iVBORw0KGgoAAAANSUhE",
            "mediatype": "image/png"
        }
    }
    "#);
}

#[test]
fn query_channels_of_a_package() {
    let channels = documents(&place(), &[("schema", "olm.channel"), ("package", PIPELINES)]);
    // shows UPD-02
    assert_eq!(names(&channels), CHANNELS);
}

#[test]
fn query_versions_of_a_channel() {
    let query = [("schema", "olm.channel"), ("package", PIPELINES), ("name", "latest")];
    let [channel] = &documents(&place(), &query)[..] else { panic!("one channel") };
    let entries = names(channel["entries"].as_array().unwrap()).join(" ");
    // shows UPD-02
    assert_eq!(
        entries,
        ["1.15.0", "1.16.0", "1.17.0"].map(|version| format!("{PIPELINES}.v{version}")).join(" ")
    );
}

#[test]
fn query_versions_and_images_of_a_package() {
    let place = place();
    let bundles = documents(&place, &[("schema", "olm.bundle"), ("package", PIPELINES)]);
    let found: Vec<(String, String)> = bundles
        .iter()
        .map(|bundle| (bundle["name"].to_string(), bundle["image"].to_string()))
        .collect();
    let expected: Vec<(String, String)> = BUNDLES
        .iter()
        .map(|(version, digest)| {
            (format!("\"{PIPELINES}.v{version}\""), format!("\"{REPOSITORY}@sha256:{digest}\""))
        })
        .collect();
    assert_eq!(found, expected);
    // All documents of a package, its own first, and none of others.
    let all = documents(&place, &[("package", PIPELINES)]);
    assert_eq!((all.len(), &all[0]["schema"]), (16, &Value::from("olm.package")));
}

#[test]
fn documents_are_listed_by_name_with_their_place() {
    let output = place().catalog("render c -o name --schema olm.package --name own-only").out;
    assert_eq!(output, "c/d.yaml:1: olm.package own-only\n");
}

/// A bundle with manifests, which have webhooks or not.
fn with_csv(package: &str, webhooks: &str) -> String {
    let csv = format!(
        r#"{{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{{"name":"{package}.v1.0.0"}},"spec":{{"installModes":[{{"type":"AllNamespaces","supported":true}}],"webhookdefinitions":[{webhooks}]}}}}"#
    );
    let data = base64::engine::general_purpose::STANDARD.encode(csv);
    format!("{}- {{type: olm.bundle.object, value: {{data: {data}}}}}\n", small(package, &[]))
}

/// The catalog with two more packages, whose bundles have manifests.
fn place_with_manifests() -> TestFolder {
    let hook = r#"{"type":"ValidatingAdmissionWebhook"}"#;
    place().file("c/g.yaml", with_csv("hooked", hook)).file("c/h.yaml", with_csv("hookless", ""))
}

/// A field of the rows that a command lists.
fn row_values(place: &TestFolder, command: &str, field: &str) -> Vec<String> {
    let rows = place.catalog(&format!("{command} -o json")).json();
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| row[field].as_str().unwrap().to_owned()).collect()
}

#[test]
fn packages_for_all_namespaces_without_webhooks_are_listed() {
    let place = place_with_manifests();
    let all = "list packages c --install-mode AllNamespaces";
    let without = format!("{all} --without-webhooks");
    // shows QRY-01 QRY-12
    assert_eq!(
        row_values(&place, &without, "package"),
        ["3scale-operator", "amq-streams", "hookless", PIPELINES, "zero-operator"]
    );
    // shows QRY-13
    assert_eq!(
        row_values(&place, all, "package"),
        ["3scale-operator", "amq-streams", "hooked", "hookless", PIPELINES, "zero-operator"]
    );
    assert!(!row_values(&place, all, "package").contains(&"says-nothing".to_owned()));
    assert_eq!(
        row_values(&place, "list packages c --install-mode ownnamespace", "package"),
        ["amq-streams", "own-only"]
    );
    let channels = "list channels c --install-mode AllNamespaces --channel latest";
    assert_eq!(row_values(&place, channels, "package"), [PIPELINES]);
}

#[test]
fn lists_answer_the_questions_about_packages_channels_and_versions() {
    let place = place();
    // shows QRY-02
    assert_eq!(
        row_values(&place, "list packages c", "package"),
        ["3scale-operator", "amq-streams", PIPELINES, "own-only", "says-nothing", "zero-operator"]
    );
    // shows QRY-05
    assert_eq!(row_values(&place, &format!("list channels c {PIPELINES}"), "channel"), CHANNELS);
    let bundles = |versions: &[&str]| -> Vec<String> {
        versions.iter().map(|version| format!("{PIPELINES}.v{version}")).collect()
    };
    let latest = format!("list bundles c {PIPELINES} --channel latest");
    // shows QRY-06
    assert_eq!(row_values(&place, &latest, "bundle"), bundles(&["1.15.0", "1.16.0", "1.17.0"]));
    let newest = format!("list channels c {PIPELINES} --channel latest");
    // shows QRY-07
    assert_eq!(row_values(&place, &newest, "head"), bundles(&["1.17.0"]));
    let every: Vec<&str> = BUNDLES.iter().map(|(version, _)| *version).collect();
    let all = format!("list bundles c {PIPELINES}");
    // shows QRY-08
    assert_eq!(row_values(&place, &all, "bundle"), bundles(&every));
    let images: Vec<String> =
        BUNDLES.iter().map(|(_, digest)| format!("{REPOSITORY}@sha256:{digest}")).collect();
    // shows QRY-10
    assert_eq!(row_values(&place, &all, "image"), images);
}

#[test]
fn render_prints_the_documents_that_a_question_names() {
    let place = place();
    let package = documents(&place, &[("schema", "olm.package"), ("name", PIPELINES)]);
    // shows QRY-03
    assert_eq!((package.len(), &package[0]["defaultChannel"]), (1, &"latest".into()));
    let all = documents(&place, &[("package", PIPELINES)]);
    let belonging = all.iter().filter(|document| document["package"] == PIPELINES).count();
    // shows QRY-04
    assert_eq!(belonging, CHANNELS.len() + BUNDLES.len());
    let name = format!("{PIPELINES}.v1.17.0");
    let query = [("schema", "olm.bundle"), ("package", PIPELINES), ("name", &*name)];
    let bundle = documents(&place, &query);
    // shows QRY-09
    assert_eq!((bundle.len(), &bundle[0]["properties"][0]["type"]), (1, &"olm.package".into()));
    let yaml = place.catalog("render c --schema olm.package --name amq-streams -o yaml").out;
    // shows QRY-15
    assert!(yaml.starts_with("---\n"), "{yaml}");
}
