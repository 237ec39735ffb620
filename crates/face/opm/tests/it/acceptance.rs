//! Acceptance tests of the specification: bundles, and composite catalogs.

use crate::opm_folder::OpmFolder as _;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_clitest::{ANNOTATIONS, CSV, LoopbackRegistry, SOUND_CATALOG, TestFolder};
use mainstay_image::{
    build::{self, LayerFiles},
    manifest::{ImageConfig, RunConfig},
    platform::Platform,
};
use mainstay_resolver::{
    CatalogContent, CatalogKey, CatalogView, OperatorGroup, ResolutionInput, Snapshot,
    Subscription, resolve,
};
use serde_json::Value;
use std::{fmt::Write as _, fs};

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: etcdclusters.etcd.database.coreos.com}
spec:
  group: etcd.database.coreos.com
  names: {kind: EtcdCluster, listKind: EtcdClusterList, plural: etcdclusters, singular: etcdcluster}
  scope: Namespaced
  versions:
  - {name: v1beta2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";

/// The six lines of the specification.
const SIX_LINES: &str = "annotations:
  operators.operatorframework.io.bundle.mediatype.v1: \"registry+v1\"
  operators.operatorframework.io.bundle.manifests.v1: \"manifests/\"
  operators.operatorframework.io.bundle.metadata.v1: \"metadata/\"
  operators.operatorframework.io.bundle.package.v1: \"test-operator\"
  operators.operatorframework.io.bundle.channels.v1: \"beta,stable\"
  operators.operatorframework.io.bundle.channel.default.v1: \"stable\"
";

const DEPENDENCIES: &str = "dependencies:
- {type: olm.package, value: {packageName: prometheus, version: \">0.27.0\"}}
- {type: olm.gvk, value: {group: etcd.database.coreos.com, kind: EtcdCluster, version: v1beta2}}
";

/// A ClusterServiceVersion that owns the CustomResourceDefinition.
fn csv() -> String {
    CSV.replace("kiwi.v1.0.0", "etcdoperator.v1.0.0")
        + "  customresourcedefinitions:\n    owned:\n    - {name: etcdclusters.etcd.database.coreos.com, version: v1beta2, kind: EtcdCluster, description: A cluster}\n"
}

/// The bundle folder of the specification.
fn etcd() -> TestFolder {
    let map = |kind: &str| format!("apiVersion: v1\nkind: {kind}\nmetadata: {{name: etcd}}\n");
    TestFolder::new()
        .file("etcd/manifests/etcdcluster.crd.yaml", CRD)
        .file("etcd/manifests/etcdoperator.clusterserviceversion.yaml", csv())
        .file("etcd/manifests/secret.yaml", map("Secret"))
        .file("etcd/manifests/configmap.yaml", map("ConfigMap"))
        .file("etcd/metadata/annotations.yaml", SIX_LINES)
        .file("etcd/metadata/dependencies.yaml", DEPENDENCIES)
}

/// The values of the properties of a type.
fn properties(blob: &Value, kind: &str) -> Vec<Value> {
    let all = blob["properties"].as_array().unwrap().iter();
    all.filter(|property| property["type"] == kind)
        .map(|property| property["value"].clone())
        .collect()
}

/// AT-BND-01.
#[test]
fn a_folder_of_manifests_and_metadata_is_one_bundle() {
    let place = etcd();
    let output = place.opm("render etcd -o json");
    // One document: more text would be an error.
    let blob = output.json();
    assert_eq!([&blob["schema"], &blob["name"]], ["olm.bundle", "etcdoperator.v1.0.0"]);
    assert_eq!(properties(&blob, "olm.bundle.object").len(), 4);
    let output = place.bundle("validate etcd -o json");
    let found: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!(found["errors"], 0, "{output:?}");
    assert_eq!(place.bundle("build etcd oci:out -o json").json()["platforms"][0], "linux/amd64");
}

#[test]
fn an_unreadable_csv_is_a_finding_with_file_and_line() {
    let name = "etcd/manifests/etcdoperator.clusterserviceversion.yaml";
    let tab = csv().replacen("  displayName", "\tdisplayName", 1);
    let line = tab.lines().position(|line| line.starts_with('\t')).unwrap() + 1;
    for (text, place, why) in [
        (tab, format!("{name}:{line}: error: "), "cannot start any token"),
        (String::new(), format!("{name}: error: "), "the file is empty"),
    ] {
        let judged = etcd().file(name, text).bundle("validate etcd");
        assert_eq!(judged.code, 1, "{judged:?}");
        let finding = judged.out.lines().find(|line| line.starts_with(&place));
        assert!(finding.is_some_and(|line| line.contains(why)), "{judged:?}");
        assert!(judged.out.contains("no ClusterServiceVersion that can be read"), "{judged:?}");
        // The expected annotations depend on the unreadable file.
        assert!(!judged.out.contains("mediatype"), "{judged:?}");
    }
}

/// AT-BND-02, AT-BND-03, AT-BND-04: validate and build refuse an invalid bundle.
#[test]
fn a_bundle_without_channels_or_one_csv_or_an_owned_crd_is_refused() {
    let no_channels = SIX_LINES.lines().filter(|line| !line.contains("channel"));
    let no_channels = no_channels.collect::<Vec<_>>().join("\n");
    let second = csv().replace("etcdoperator.v1.0.0", "etcdoperator.v2.0.0");
    let without_manifest = |place: TestFolder, name: &str| {
        fs::remove_file(place.path().join("etcd/manifests").join(name)).unwrap();
        place
    };
    for (row, place, says) in [
        (
            "AT-BND-02",
            etcd().file("etcd/metadata/annotations.yaml", no_channels),
            "operators.operatorframework.io.bundle.channels.v1",
        ),
        (
            "AT-BND-03, none",
            without_manifest(etcd(), "etcdoperator.clusterserviceversion.yaml"),
            "there is no ClusterServiceVersion",
        ),
        (
            "AT-BND-03, two",
            etcd().file("etcd/manifests/second.clusterserviceversion.yaml", second),
            "second.clusterserviceversion.yaml",
        ),
        ("AT-BND-04", without_manifest(etcd(), "etcdcluster.crd.yaml"), "EtcdCluster"),
    ] {
        let judged = place.bundle("validate etcd");
        assert_eq!(judged.code, 1, "{row}: {judged:?}");
        assert!(judged.out.contains(says), "{row}: {judged:?}");
        let built = place.bundle("build etcd oci:out");
        assert_eq!((built.code, built.out.as_str()), (1, ""), "{row}: {built:?}");
        assert!(built.err.contains(says), "{row}: {built:?}");
        assert!(!place.path().join("out").exists(), "{row}");
    }
}

/// AT-BND-05.
#[test]
fn annotations_have_the_format_and_the_package_of_a_bundle() {
    let place = etcd();
    let labels = &place.bundle("build etcd oci:out -o json").json()["labels"];
    let label =
        |name: &str| labels[format!("operators.operatorframework.io.bundle.{name}.v1")].clone();
    assert_eq!(
        ["mediatype", "manifests", "metadata", "package", "channels", "channel.default"].map(label),
        ["registry+v1", "manifests/", "metadata/", "test-operator", "beta,stable", "stable"]
    );
    let bundle = mainstay_bundle::Bundle::read(place.path().join("etcd")).unwrap();
    let annotations = bundle.annotations();
    assert_eq!(annotations.package, "test-operator");
    assert_eq!(annotations.channel_names().collect::<Vec<_>>(), ["beta", "stable"]);
    assert_eq!(annotations.default_channel, "stable");
}

/// AT-BND-06.
#[test]
fn the_annotations_file_takes_precedence_over_labels_of_the_image() {
    let place = TestFolder::new();
    let registry = LoopbackRegistry::open(place.path());
    let mut files = LayerFiles::default();
    for (name, text) in [
        ("manifests/csv.yaml", CSV.to_owned()),
        ("metadata/annotations.yaml", ANNOTATIONS.replace("v1: kiwi", "v1: b")),
    ] {
        files.add(name, text.into_bytes()).unwrap();
    }
    let labels = [("operators.operatorframework.io.bundle.package.v1".to_owned(), "a".to_owned())];
    let run = RunConfig { labels: labels.into(), ..RunConfig::default() };
    let layer = build::layer(&registry.store, &files).unwrap();
    let config = ImageConfig { config: run, ..ImageConfig::default() };
    let image = build::image(&registry.store, Platform::host(), config, &[layer]).unwrap();
    let name = format!("{}/org/kiwi:v1", registry.domain);
    registry.store.set(&name.parse().unwrap(), &image).unwrap();
    let blob = place.opm_pulling(&format!("render {name} --use-http -o json")).json();
    assert_eq!([&blob["package"], &blob["image"]], ["b", &*name]);
}

#[test]
fn validate_uses_a_registry_without_tls_only_with_a_flag() {
    let place = TestFolder::new();
    let registry = LoopbackRegistry::open(place.path());
    let mut files = LayerFiles::default();
    for (name, text) in [("manifests/csv.yaml", CSV), ("metadata/annotations.yaml", ANNOTATIONS)] {
        files.add(name, text.as_bytes().to_vec()).unwrap();
    }
    let layer = build::layer(&registry.store, &files).unwrap();
    let config = ImageConfig::default();
    let image = build::image(&registry.store, Platform::host(), config, &[layer]).unwrap();
    let name = format!("{}/org/kiwi:v1", registry.domain);
    registry.store.set(&name.parse().unwrap(), &image).unwrap();
    let validate =
        |flags: &str| place.opm_pulling(&format!("alpha bundle validate -t {name} -b none{flags}"));
    for flags in [" --use-http", " --skip-tls-verify"] {
        let output = validate(flags);
        assert_eq!(output.code, 0, "{flags}: {output:?}");
        assert!(output.err.contains("validation tests have been completed successfully"));
    }
    let refused = validate("");
    assert_eq!(refused.code, 1, "{refused:?}");
    let both = validate(" --use-http --skip-tls-verify");
    assert_eq!(both.code, 1, "{both:?}");
    assert!(both.err.contains("--use-http and --skip-tls-verify cannot both be true"), "{both:?}");
    // Container tools pull by themselves: podman gets a flag, docker has none.
    let pull = |tool: &str| {
        place.opm_pulling(&format!("alpha bundle validate -t {name} -b {tool} --use-http")).err
    };
    let podman = pull("podman");
    assert!(podman.contains(&format!("running podman pull --tls-verify=false {name}")), "{podman}");
    let docker = pull("docker");
    assert!(docker.contains("have no effect on docker"), "{docker}");
    assert!(docker.contains(&format!("running docker pull {name}")), "{docker}");
}

/// AT-BND-07.
#[test]
fn both_dependencies_are_rendered_and_both_are_required() {
    let place = etcd().file(
        // A provided API is not required.
        "etcd/manifests/etcdoperator.clusterserviceversion.yaml",
        CSV.replace("kiwi.v1.0.0", "test-operator.v1.0.0"),
    );
    fs::remove_file(place.path().join("etcd/manifests/etcdcluster.crd.yaml")).unwrap();
    let blob = place.opm("render etcd -o json").json();
    assert_eq!(
        properties(&blob, "olm.package.required"),
        [serde_json::json!({"packageName": "prometheus", "versionRange": ">0.27.0"})]
    );
    assert_eq!(
        properties(&blob, "olm.gvk.required"),
        [
            serde_json::json!({"group": "etcd.database.coreos.com", "kind": "EtcdCluster", "version": "v1beta2"})
        ]
    );
    let api = "{type: olm.gvk, value: {group: etcd.database.coreos.com, kind: EtcdCluster, version: v1beta2}}";
    let other_api = api.replace("v1beta2", "v1");
    for (prometheus, provided, resolves) in [
        ("0.28.0", api, true),
        ("0.27.0", api, false),
        ("0.28.0", &*other_api, false),
        ("0.27.0", &*other_api, false),
    ] {
        let package = |name: &str, bundle: &str| {
            format!(
                "---\nschema: olm.package\nname: {name}\ndefaultChannel: stable\n---\nschema: olm.channel\n\
                 package: {name}\nname: stable\nentries: [{{name: {bundle}}}]\n"
            )
        };
        let package_with_bundle = |name: &str, version: &str, more: &str| {
            let own = format!(
                "{{type: olm.package, value: {{packageName: {name}, version: {version}}}}}"
            );
            package(name, &format!("{name}.v{version}"))
                + &format!(
                    "---\nschema: olm.bundle\npackage: {name}\nname: {name}.v{version}\nimage: x/{name}\n\
                     properties: [{own}{more}]\n"
                )
        };
        let catalog = package("test-operator", "test-operator.v1.0.0")
            + &format!("---\n{blob}\n")
            + &package_with_bundle("prometheus", prometheus, "")
            + &package_with_bundle("etcd", "0.9.4", &format!(", {provided}"));
        let place = TestFolder::with(&catalog);
        let catalog = Catalog::load(&place.path().join("c"), &LoadOptions::default()).unwrap();
        let snapshot = Snapshot::of(&catalog);
        let key = CatalogKey::new("cat", "ns");
        let world = ResolutionInput {
            namespace: "ns".to_owned(),
            operator_groups: vec![OperatorGroup::default()],
            catalogs: vec![CatalogView {
                key: key.clone(),
                priority: 0,
                content: CatalogContent::Ready(&snapshot),
            }],
            subscriptions: vec![Subscription {
                name: "mine".to_owned(),
                package: "test-operator".to_owned(),
                catalog: key,
                ..Subscription::default()
            }],
            ..ResolutionInput::default()
        };
        let outcome = resolve(&world);
        let mut names: Vec<&str> = outcome.resolved.iter().map(|chosen| &*chosen.name).collect();
        names.sort_unstable();
        let all: &[&str] = &["etcd.v0.9.4", "prometheus.v0.28.0", "test-operator.v1.0.0"];
        let wanted = if resolves { all } else { &[] };
        assert_eq!(names, wanted, "{prometheus} {provided}");
        assert_eq!(outcome.failures.is_empty(), resolves, "{prometheus} {provided}");
    }
}

/// AT-33: the steps of the script, with its configuration.
#[test]
fn a_composite_catalog_has_a_folder_for_each_of_its_catalogs() {
    let place = TestFolder::new();
    let registry = LoopbackRegistry::open(place.path());
    let domain = &registry.domain;
    let mut references = String::new();
    for name in ["etcd-operator", "prometheus-operator"] {
        let folder = format!("theirs/{name}");
        let content = SOUND_CATALOG.replace("foo", name);
        let path = place.path().join(&folder);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("catalog.yaml"), content).unwrap();
        let image = format!("{domain}/community/{name}-index:latest");
        assert_eq!(place.catalog(&format!("build {folder} {image}")).code, 0);
        let _ = writeln!(references, "- {{name: {name}, image: '{image}'}}");
    }
    let config = format!(
        "name: community-operators\nrepo: {domain}/community-operators/catalog\ntag: latest\nreferences:\n{references}"
    );
    let config = mainstay_yaml::one(config.as_bytes(), &mainstay_yaml::Options::default()).unwrap();
    let text = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
    let name = text(&config, "name");
    for reference in config["references"].as_array().unwrap() {
        let image = text(reference, "image");
        let rendered = place.opm_pulling(&format!("render {image} --use-http -o yaml"));
        assert_eq!(rendered.code, 0, "{rendered:?}");
        let folder = place.path().join(&name).join(text(reference, "name"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("index.yaml"), rendered.out).unwrap();
    }
    assert_eq!(place.opm(&format!("validate {name}")).code, 0);
    assert_eq!(place.opm(&format!("generate dockerfile {name}")).code, 0);
    assert!(place.path().join("community-operators.Dockerfile").is_file());
    let image = format!("{}:{}", text(&config, "repo"), text(&config, "tag"));
    assert_eq!(image, format!("{domain}/community-operators/catalog:latest"));
    assert_eq!(place.catalog(&format!("build {name} {image}")).code, 0);
    assert_eq!(place.image(&format!("unpack {image} files --only configs")).code, 0);
    for part in ["etcd-operator", "prometheus-operator"] {
        let file = format!("{part}/index.yaml");
        let ours = fs::read_to_string(place.path().join(&name).join(&file)).unwrap();
        let served = fs::read_to_string(place.path().join("files/configs").join(&file)).unwrap();
        assert!(ours == served && ours.contains(&format!("name: {part}")), "{ours}");
    }
    let packages = place.catalog("list packages files/configs -o json").json();
    assert_eq!(packages.as_array().map(Vec::len), Some(2), "{packages}");
}
