//! `mainstay bundle render`: manifests, configuration and errors.

use mainstay_clitest::TestFolder;
use serde_json::{Value, json};

const CSV: &str = "apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: kiwi.v1.0.0
spec:
  version: 1.0.0
  installModes:
  - {type: AllNamespaces, supported: true}
  - {type: SingleNamespace, supported: true}
  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: kiwi
        rules:
        - {apiGroups: [''], resources: [pods], verbs: [get]}
      deployments:
      - name: kiwi
        spec:
          selector: {matchLabels: {app: kiwi}}
          template:
            metadata: {labels: {app: kiwi}}
            spec: {serviceAccountName: kiwi, containers: [{name: kiwi, image: example.com/kiwi:1}]}
";

fn bundle(csv: &str) -> TestFolder {
    TestFolder::new().file("b/manifests/csv.yaml", csv).file(
        "b/metadata/annotations.yaml",
        "annotations:\n  operators.operatorframework.io.bundle.package.v1: kiwi\n",
    )
}

fn objects(place: &TestFolder, arguments: &str) -> Vec<Value> {
    let answer = place.bundle(&format!("render b -o json {arguments}"));
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    let mut list: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(list["kind"], "List");
    let Value::Array(items) = list["items"].take() else { panic!("{list}") };
    items
}

fn kinds(objects: &[Value]) -> Vec<&str> {
    objects.iter().map(|object| object["kind"].as_str().unwrap()).collect()
}

#[test]
fn rendered_manifests_can_be_applied() {
    let answer = bundle(CSV).bundle("render b -n kitchen");
    assert_eq!(answer.code, 0);
    insta::assert_snapshot!(answer.out.split("---\n").take(2).collect::<Vec<_>>().join("---\n"), @"
    ---
    apiVersion: v1
    kind: ServiceAccount
    metadata:
      name: kiwi
      namespace: kitchen
    ");
    assert_eq!(answer.out.matches("---\n").count(), 4);
}

#[test]
fn manifests_of_several_bundles_are_printed_in_order() {
    let annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: lime\n";
    let place = bundle(CSV)
        .file("c/manifests/csv.yaml", CSV.replace("kiwi", "lime"))
        .file("c/metadata/annotations.yaml", annotations)
        .file("bad/manifests/csv.yaml", CSV.replace("version: 1.0.0", "version: []"))
        .file("bad/metadata/annotations.yaml", annotations);
    let alone: Vec<String> =
        ["b", "c"].iter().map(|package| place.bundle(&format!("render {package}")).out).collect();
    let both = place.bundle("render b c");
    assert_eq!((both.code, both.err.as_str()), (0, ""));
    assert_eq!(both.out, alone.concat());
    let list = |folders: &str| -> Value {
        let answer = place.bundle(&format!("render {folders} -o json"));
        serde_json::from_str(&answer.out).unwrap()
    };
    let together = list("b c");
    let items = together["items"].as_array().unwrap();
    let each = [list("b"), list("c")].map(|list| list["items"].as_array().unwrap().clone());
    assert_eq!(*items, each.concat());
    assert_eq!(
        place.bundle("render b c -o json").out,
        format!("{together:#}\n"),
        "written as one value"
    );
    // The error of one bundle does not suppress the manifests of the others.
    let some = place.bundle("render b bad c");
    assert_eq!((some.code, &some.out), (1, &both.out));
    assert!(some.err.starts_with("error: bad: the bundle cannot be rendered"), "{}", some.err);
    let some = place.bundle("render nowhere bad c");
    assert_eq!((some.code, &some.out), (2, &alone[1]));
    assert_eq!(some.err.matches("error: ").count(), 2, "{}", some.err);
    let none = place.bundle("render bad nowhere -o json");
    assert_eq!((none.code, none.out.as_str()), (2, ""));
}

#[test]
fn watched_namespaces_decide_on_roles() {
    let place = bundle(CSV);
    let all = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment"];
    let one = ["ServiceAccount", "Role", "RoleBinding", "Deployment"];
    assert_eq!(kinds(&objects(&place, "-n here")), all);
    assert_eq!(kinds(&objects(&place, "--watch garden")), one);
    let several = bundle(&CSV.replace("SingleNamespace", "MultiNamespace"));
    let found = objects(&several, "--watch garden --watch orchard");
    assert_eq!(
        kinds(&found),
        ["ServiceAccount", "Role", "RoleBinding", "Role", "RoleBinding", "Deployment"]
    );
}

#[test]
fn configuration_comes_from_files() {
    let place = bundle(CSV)
        .file("c.yaml", "watchNamespace: garden\ndeploymentConfig: {nodeSelector: {a: b}}\n")
        .file("d.yaml", "nodeSelector: {a: b}\n");
    let with_config = objects(&place, "--config c.yaml");
    assert_eq!(with_config, objects(&place, "--watch garden --deployment-config d.yaml"));
    let pod = &with_config[3]["spec"]["template"]["spec"];
    assert_eq!(pod["nodeSelector"], json!({"a": "b"}));
}

#[test]
fn render_error_has_its_reason_and_remedy() {
    let place = bundle(CSV).file("c.yaml", "watchNamespace: Bad_Name\ncolour: blue\n");
    let answer = place.bundle("render b --config c.yaml");
    assert_eq!((answer.code, answer.out.as_str()), (2, ""));
    insta::assert_snapshot!(answer.err, @r#"
    error: b: the bundle cannot be rendered
      because invalid value for field "watchNamespace"
      because invalid type for field "watchNamespace": got string, want null
      because field "watchNamespace" must match pattern "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
      because unknown field "colour"
      → print the schema of the configuration with: mainstay bundle render b --schema
    "#);
    let answer = bundle(&CSV.replace("name: kiwi\n        spec", "name: Kiwi\n        spec"))
        .bundle("render b");
    assert_eq!(answer.code, 1);
    assert!(answer.err.contains("strategy deployment name 'Kiwi'"), "{}", answer.err);
    let answer = bundle(CSV).bundle("render b --watch operators");
    assert_eq!(answer.code, 2);
    assert!(answer.err.contains("must be different from \"operators\""), "{}", answer.err);
    for (arguments, said) in [
        ("render nowhere", "nowhere"),
        ("render b/manifests", "the folder holds no bundle"),
        ("render b --config nowhere.yaml", "nowhere.yaml"),
        ("render b --config c.yaml --watch a", "cannot be used with"),
    ] {
        let answer = bundle(CSV).bundle(arguments);
        assert_eq!(answer.code, 2, "{arguments}");
        assert!(answer.err.contains(said), "{}", answer.err);
    }
}

#[test]
fn schema_has_the_configurable_fields() {
    let answer = bundle(CSV).bundle("render b --schema -o json");
    assert_eq!(answer.code, 0);
    let schema: Value = serde_json::from_str(&answer.out).unwrap();
    let properties: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(properties, ["deploymentConfig", "watchNamespace"]);
}
