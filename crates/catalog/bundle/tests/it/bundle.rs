//! Rules of reading and declaring a bundle.

use crate::{Flags, render};
use mainstay_bundle::{Bundle, BundleError, BundleImage, Limits, MemoryFiles};
use serde_json::Value;

const ANNOTATIONS: &str = "annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: test-operator
  operators.operatorframework.io.bundle.channels.v1: beta,stable
  operators.operatorframework.io.bundle.channel.default.v1: stable
";

const CSV: &str = "apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: etcd.v1.0.0
spec:
  version: 1.0.0
  customresourcedefinitions:
    owned:
    - name: foos.example.com
      version: v1
      kind: Foo
";

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: foos.example.com
spec:
  group: example.com
  names: {kind: Foo, plural: foos}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";

/// A valid bundle. Given files replace those of the same path; empty ones are left out.
fn bundle(changes: &[(&str, &str)]) -> Result<Bundle, BundleError> {
    Bundle::read_from(&files(changes), &Limits::default())
}

fn files(changes: &[(&str, &str)]) -> MemoryFiles {
    let valid = [
        ("manifests/csv.yaml", CSV),
        ("manifests/crd.yaml", CRD),
        ("metadata/annotations.yaml", ANNOTATIONS),
    ];
    let unchanged = valid.iter().filter(|(path, _)| changes.iter().all(|(other, _)| other != path));
    unchanged.chain(changes.iter().filter(|(_, text)| !text.is_empty())).copied().collect()
}

fn properties(changes: &[(&str, &str)]) -> Vec<String> {
    let declared = bundle(changes).unwrap().declare(BundleImage::None, "b").unwrap();
    let cel_properties =
        declared.properties.iter().filter(|found| found.kind != "olm.bundle.object");
    cel_properties.map(|found| format!("{} {}", found.kind, found.value)).collect()
}

#[test]
fn annotations_name_package_and_channels() {
    let bundle = bundle(&[]).unwrap();
    assert_eq!((bundle.name(), bundle.package()), ("etcd.v1.0.0", "test-operator"));
    let annotations = bundle.annotations();
    assert_eq!(annotations.channel_names().collect::<Vec<_>>(), ["beta", "stable"]);
    assert_eq!(annotations.default_channel, "stable");
    let mediatype = "operators.operatorframework.io.bundle.mediatype.v1";
    assert_eq!(annotations.all[mediatype], "registry+v1");
    assert_eq!((annotations.file.as_str(), annotations.line), ("metadata/annotations.yaml", 1));
}

#[test]
fn properties_of_four_sources_are_sorted() {
    let dependencies = "dependencies:
- {type: olm.package, value: {packageName: prometheus, version: '>0.27.0'}}
- {type: olm.gvk, value: {group: etcd.database.coreos.com, version: v1beta2, kind: EtcdCluster}}
- {type: olm.constraint, value: {rule: 'a > b'}}
";
    let cel_properties =
        "properties:\n- {type: z, value: 1.0}\n- {type: z, value: 1}\n- {type: a}\n";
    let files = [("metadata/any.yaml", dependencies), ("metadata/other.yaml", cel_properties)];
    assert_eq!(
        properties(&files),
        [
            "a null",
            // Values from YAML are escaped for HTML.
            "olm.constraint {\"rule\":\"a \\u003e b\"}",
            "olm.gvk {\"group\":\"example.com\",\"kind\":\"Foo\",\"version\":\"v1\"}",
            "olm.gvk.required {\"group\":\"etcd.database.coreos.com\",\"kind\":\"EtcdCluster\",\
             \"version\":\"v1beta2\"}",
            "olm.package {\"packageName\":\"test-operator\",\"version\":\"1.0.0\"}",
            "olm.package.required {\"packageName\":\"prometheus\",\"versionRange\":\">0.27.0\"}",
            "z 1",
        ]
    );
}

#[test]
fn authors_declare_further_properties_in_a_file() {
    let text = "properties:\n- type: olm.kubeversion\n  value: {version: \"1.16.0\"}\n";
    let own = properties(&[]);
    let mut all = properties(&[("metadata/properties.yaml", text)]);
    all.retain(|pair| !own.contains(pair));
    // shows CL-RES-04
    assert_eq!(all, ["olm.kubeversion {\"version\":\"1.16.0\"}"]);
}

#[test]
fn values_in_json_keep_their_bytes() {
    let cel_properties = r#"{"properties": [{"type": "q", "value": {"b" : 1.50, "a": ["<"]}}]}"#;
    assert_eq!(
        properties(&[("metadata/p.json", cel_properties)])[2],
        "q {\"b\" : 1.50, \"a\": [\"<\"]}"
    );
}

#[test]
fn an_error_has_upstreams_message_location_and_remedy() {
    let no_spec = "apiVersion: a/v1\nkind: ClusterServiceVersion\nmetadata: {name: x}\n";
    let table: &[(&str, &str, &str, &str, Option<usize>)] = &[
        ("manifests/csv.yaml", "", "no csv in bundle", "manifests", None),
        ("metadata/annotations.yaml", "", "open metadata: ", "metadata", None),
        (
            "metadata/annotations.yaml",
            "annotations: []\n",
            "Could not find annotations file",
            "metadata",
            None,
        ),
        (
            "manifests/crd.yaml",
            "",
            "error checking provided apis in bundle etcd.v1.0.0: couldn't find example.com/v1/Foo \
             (foos) in bundle. found: map[]",
            "manifests/csv.yaml",
            Some(9),
        ),
        (
            "manifests/csv.yaml",
            no_spec,
            "error checking provided apis in bundle x: error getting apiservice definitions: error \
             unmarshaling into object map: unexpected end of JSON input",
            "manifests/csv.yaml",
            Some(1),
        ),
        (
            "manifests/crd.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec:\n  group: 1\n",
            "error decoding v1 CRD: json: cannot unmarshal number into Go struct field \
             CustomResourceDefinitionSpec.spec.group of type string",
            "manifests/crd.yaml",
            Some(4),
        ),
    ];
    for (path, text, upstream, file, line) in table {
        let error = bundle(&[(path, text)]).unwrap_err();
        assert!(error.upstream().starts_with(upstream), "{}", error.upstream());
        let problem = error.problem();
        assert_eq!((problem.file.as_str(), problem.line), (*file, *line), "{problem}");
        assert!(!problem.remedy.is_empty());
    }
}

#[test]
fn content_that_upstream_drops_is_listed() {
    let two = "kind: ConfigMap\n---\nkind: Secret\n";
    let other = CSV.replace("etcd", "later");
    let bundle = bundle(&[
        ("manifests/.hidden", "a: ["),
        ("manifests/a.yaml", two),
        ("manifests/broken.yaml", "a: b\n- c"),
        ("manifests/later.yaml", &other),
        ("manifests/notes.txt", "hello"),
        ("manifests/nokind.yaml", "a: b"),
        ("manifests/sub/x.yaml", "kind: Secret"),
    ])
    .unwrap();
    let found: Vec<String> = bundle
        .skipped_content()
        .iter()
        .map(|problem| format!("{}:{}", problem.file, problem.line.unwrap_or_default()))
        .collect();
    assert_eq!(
        found,
        [
            "manifests/a.yaml:3",
            "manifests/broken.yaml:2",
            "manifests/later.yaml:1",
            "manifests/nokind.yaml:1",
            "manifests/notes.txt:1",
        ]
    );
    let kinds: Vec<&str> = bundle.manifests().iter().map(mainstay_bundle::Manifest::kind).collect();
    assert_eq!(kinds, ["ConfigMap", "CustomResourceDefinition", "ClusterServiceVersion"]);
}

#[test]
fn numbers_and_escapes_of_objects_are_those_of_go() {
    let map =
        "kind: ConfigMap\na: 1.0\nb: 1e30\nc: 18446744073709551615\nd: '<&>'\ne: 0644\nf: 0.1\n";
    let bundle = bundle(&[("manifests/map.yaml", map)]).unwrap();
    assert_eq!(
        bundle.manifests()[2].json(),
        "{\"a\":1,\"b\":1e+30,\"c\":18446744073709552000,\"d\":\"\\u003c\\u0026\\u003e\",\"e\":420,\
         \"f\":0.1,\"kind\":\"ConfigMap\"}"
    );
}

#[test]
fn hostile_folders_are_refused_or_skipped() {
    let small = Limits { file_bytes: 2000, files: 5 };
    let large = "#".repeat(3000);
    let error = Bundle::read_from(&files(&[("manifests/large.yaml", &large)]), &small).unwrap_err();
    assert_eq!(error.upstream(), "manifests/large.yaml: the file has more than 2000 bytes");
    let names: Vec<String> = (0..9).map(|at| format!("manifests/{at}.yaml")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "kind: A")).collect();
    let error = Bundle::read_from(&files(&many), &small).unwrap_err();
    assert_eq!(error.upstream(), "the folder has more than 5 files");
    let deep = format!("kind: A\na: {}", "[".repeat(100_000));
    assert_eq!(bundle(&[("manifests/deep.yaml", &deep)]).unwrap().skipped_content().len(), 1);
}

#[cfg(unix)]
#[test]
fn links_stay_inside_the_bundle() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b/manifests", "b/metadata"] {
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("b/manifests/csv.yaml", CSV);
    write("b/crd.txt", CRD);
    write("b/metadata/annotations.yaml", ANNOTATIONS);
    write("secret", "kind: Secret");
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, folder.path().join("b/manifests").join(name)).unwrap();
    };
    link("../crd.txt", "crd.yaml");
    link("../metadata", "folder");
    let root = folder.path().join("b");
    let bundle = Bundle::read(&root).unwrap();
    assert_eq!((bundle.manifests().len(), bundle.skipped_content().len()), (2, 1));
    link("../../secret", "out.yaml");
    let error = Bundle::read(&root).unwrap_err();
    assert_eq!(error.problem().file, "manifests/out.yaml");
    assert!(error.upstream().contains("leaves the bundle"), "{}", error.upstream());
}

#[test]
fn json_and_yaml_of_a_blob_are_equal() {
    let folder = files(&[]);
    let json = render(&[(&folder, "b")], &Flags::default()).unwrap();
    let yaml = render(&[(&folder, "b")], &Flags { yaml: true, ..Flags::default() }).unwrap();
    let from_json: Value = serde_json::from_str(&json).unwrap();
    let from_yaml =
        mainstay_yaml::one(yaml.as_bytes(), &mainstay_yaml::Options::default()).unwrap();
    assert_eq!(from_json, from_yaml);
    assert!(
        json.starts_with("{\n    \"schema\": \"olm.bundle\",\n    \"name\": \"etcd.v1.0.0\",\n")
    );
}

#[test]
fn image_templates_are_filled() {
    let filled = |template: &str| {
        let flags = Flags { template: Some(template), ..Flags::default() };
        let text = render(&[(&files(&[]), "b")], &flags)?;
        let value: Value = serde_json::from_str(&text).unwrap();
        Ok::<String, String>(value["image"].as_str().unwrap().to_owned())
    };
    assert_eq!(filled("x/{{ .Package }}:{{.Version}}").unwrap(), "x/test-operator:1.0.0");
    assert_eq!(filled("a  {{- .Name -}}  b{{/* c */}}").unwrap(), "aetcd.v1.0.0b");
    for (template, message) in [
        (
            "{{.Name",
            "invalid image reference template: template: image-ref-template:1: unclosed action",
        ),
        (
            "a\n{{}}",
            "invalid image reference template: template: image-ref-template:2: missing value for command",
        ),
        (
            "{{.Nope}}",
            "render reference \"b\": failed templating image reference from bundle for \"b\": template: \
             image-ref-template:1:2: executing \"image-ref-template\" at <.Nope>: can't evaluate \
             field Nope in type action.imageReferenceTemplateData",
        ),
    ] {
        assert_eq!(filled(template).unwrap_err(), message);
    }
}
