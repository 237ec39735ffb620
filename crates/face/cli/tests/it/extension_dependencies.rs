//! Dependencies of ClusterExtensions: installed with an extension, explained, and warned of before a removal.

use super::extension_commands::run_in;
use super::recorded_cluster::RecordedCluster;
use super::resolve::{ResolveFolder as _, exit_code_and_output};
use super::uninstall::uninstall_from;
use super::why_olm_v1::why;
use mainstay_cause::Cause;
use mainstay_clitest::{CommandOutput, TestFolder};
use mainstay_command::cluster::{CatalogEndpoint, CatalogReadError};
use mainstay_object::Object;
use serde_json::{Value, json};

/// Two catalogs, an extension, and the CustomResourceDefinition of its kind.
const STATE: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: kitchen}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: catalogd-ca, namespace: olmv1-system}
data: {ca.crt: the CA}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: shop}
status:
  urls: {base: 'https://127.0.0.1:4433/catalogs/shop'}
  conditions: [{type: Serving, status: 'True', reason: Available}]
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: my-water, uid: e1, generation: 1}
spec: {namespace: kitchen, source: {sourceType: Catalog, catalog: {packageName: water}}}
status:
  install: {bundle: {name: water.v1.0.0, version: 1.0.0}}
  conditions:
  - {type: Installed, status: 'True', reason: Succeeded, observedGeneration: 1, message: Installed bundle x.io/water:1 successfully}
  - {type: Progressing, status: 'True', reason: Succeeded, observedGeneration: 1, message: Desired state reached}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pipes.x.io
  uid: c1
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: my-water}
spec: {group: x.io, scope: Namespaced, names: {kind: Pipe, plural: pipes}, versions: [{name: v1, served: true, storage: true}]}
status: {conditions: [{type: Established, status: 'True'}]}
";

/// Package, version, and properties beside the package.
const BUNDLES: [(&str, &str, &str); 11] = [
    (
        "tea",
        "1.0.0",
        r#"{"type": "olm.package.required", "value": {"packageName": "pot", "versionRange": ">=1.0.0 <2.0.0"}}, {"type": "olm.gvk.required", "value": {"group": "x.io", "version": "v1", "kind": "Pipe"}}"#,
    ),
    (
        "pot",
        "1.4.0",
        r#"{"type": "olm.gvk.required", "value": {"group": "x.io", "version": "v1", "kind": "Clay"}}"#,
    ),
    ("pot", "2.0.0", ""),
    (
        "clay",
        "3.0.0",
        r#"{"type": "olm.gvk", "value": {"group": "x.io", "version": "v1", "kind": "Clay"}}"#,
    ),
    (
        "water",
        "1.0.0",
        r#"{"type": "olm.gvk", "value": {"group": "x.io", "version": "v1", "kind": "Pipe"}}"#,
    ),
    (
        "hen",
        "1.0.0",
        r#"{"type": "olm.package.required", "value": {"packageName": "egg", "versionRange": "1.x"}}"#,
    ),
    (
        "egg",
        "1.0.0",
        r#"{"type": "olm.package.required", "value": {"packageName": "hen", "versionRange": "1.x"}}"#,
    ),
    (
        "fork",
        "1.0.0",
        r#"{"type": "olm.package.required", "value": {"packageName": "water", "versionRange": ">=9.0.0"}}"#,
    ),
    (
        "salad",
        "1.0.0",
        r#"{"type": "olm.gvk.required", "value": {"group": "x.io", "version": "v1", "kind": "Oil"}}"#,
    ),
    (
        "olive",
        "1.0.0",
        r#"{"type": "olm.gvk", "value": {"group": "x.io", "version": "v1", "kind": "Oil"}}"#,
    ),
    (
        "sunflower",
        "1.0.0",
        r#"{"type": "olm.gvk", "value": {"group": "x.io", "version": "v1", "kind": "Oil"}}"#,
    ),
];

/// The catalog server: it serves whole catalogs only.
fn documents(_: &CatalogEndpoint, path: &str) -> Result<Vec<u8>, CatalogReadError> {
    if path != "api/v1/all" {
        return Err(CatalogReadError::NotFound(Cause::new("404 page not found")));
    }
    Ok(documents_of_all())
}

fn documents_of_all() -> Vec<u8> {
    let mut lines: Vec<String> = Vec::new();
    for (at, (package, version, properties)) in BUNDLES.into_iter().enumerate() {
        if !BUNDLES[..at].iter().any(|(other, ..)| *other == package) {
            let channel = format!("v{version}");
            let document =
                json!({"schema": "olm.package", "name": package, "defaultChannel": channel});
            lines.push(document.to_string());
        }
        let name = format!("{package}.v{version}");
        let channel = json!({
            "schema": "olm.channel", "package": package, "name": format!("v{version}"),
            "entries": [{"name": name}],
        });
        let mut all: Vec<Value> = serde_json::from_str(&format!("[{properties}]")).unwrap();
        all.push(
            json!({"type": "olm.package", "value": {"packageName": package, "version": version}}),
        );
        let bundle = json!({
            "schema": "olm.bundle", "package": package, "name": name,
            "image": format!("x.io/{package}"), "properties": all,
        });
        lines.extend([channel.to_string(), bundle.to_string()]);
    }
    lines.join("\n").into_bytes()
}

/// A controller that installs at once.
fn installs(extension: &mut Object) {
    let generation = extension.generation();
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Succeeded", "observedGeneration": generation, "message": "done"});
    extension
        .set(&["status", "conditions"], json!([condition("Installed"), condition("Progressing")]));
    let package = extension.str(&["spec", "source", "catalog", "packageName"]).unwrap().to_owned();
    let bundle = json!({"bundle": {"name": format!("{package}.v1.0.0"), "version": "1.0.0"}});
    extension.set(&["status", "install"], bundle);
}

/// A controller that installs all but the package `pot`.
fn stops_at_pot(extension: &mut Object) {
    installs(extension);
    if extension.name() == "pot" {
        let progressing = json!({"type": "Progressing", "status": "False", "reason": "Blocked", "observedGeneration": 1, "message": "no image"});
        let installed = json!({"type": "Installed", "status": "False", "reason": "Failed", "observedGeneration": 1, "message": "No bundle installed"});
        extension.set(&["status", "conditions"], json!([installed, progressing]));
        extension.remove(&["status", "install"]);
    }
}

fn cluster(controller: fn(&mut Object)) -> RecordedCluster {
    let cluster = RecordedCluster { documents, ..RecordedCluster::new("kitchen", STATE) };
    cluster.writable(controller)
}

fn run(cluster: &RecordedCluster, arguments: &str) -> CommandOutput {
    run_in(&TestFolder::new(), cluster.clone(), arguments, None)
}

fn extensions(cluster: &RecordedCluster) -> Vec<String> {
    let names = cluster.names();
    let names = names.iter().filter_map(|name| name.strip_prefix("ClusterExtension "));
    names.map(str::to_owned).collect()
}

fn stored(cluster: &RecordedCluster, name: &str) -> Value {
    let objects = cluster.objects.borrow();
    let found =
        objects.iter().find(|object| object.kind() == "ClusterExtension" && object.name() == name);
    found.unwrap().to_value()
}

#[test]
fn chain_is_previewed_and_created_with_dependencies_first() {
    let cluster = cluster(installs);
    let command = "install my-tea -p tea -n kitchen -s installer --with-dependencies";
    let preview = run(&cluster, &format!("{command} --dry-run"));
    insta::assert_snapshot!(preview.out);
    assert_eq!((preview.code, &*preview.err), (0, ""));
    assert_eq!(extensions(&cluster), ["my-water"]);
    let list = run(&cluster, &format!("{command} --dry-run -o json")).json();
    let names: Vec<&str> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!((list["kind"].as_str(), names), (Some("List"), vec!["clay", "pot", "my-tea"]));

    let done = run(&cluster, command);
    assert_eq!((done.code, &*done.err), (0, ""));
    assert!(
        done.out.ends_with("extension \"clay\" created\nextension \"pot\" created\nextension \"my-tea\" created\ninstalled clay.v1.0.0 version 1.0.0 in namespace kitchen\ninstalled pot.v1.0.0 version 1.0.0 in namespace kitchen\ninstalled tea.v1.0.0 version 1.0.0 in namespace kitchen\n"),
        "{}",
        done.out
    );
    let pot = stored(&cluster, "pot");
    assert_eq!(pot["metadata"]["annotations"], json!({"mainstay.dev/dependencies": "Require"}));
    assert_eq!(
        pot["spec"],
        json!({
            "namespace": "kitchen", "serviceAccount": {"name": "installer"},
            "source": {"sourceType": "Catalog", "catalog": {"packageName": "pot", "version": ">=1.0.0 <2.0.0"}},
        })
    );
    let tea = &stored(&cluster, "my-tea")["metadata"]["annotations"];
    assert_eq!(tea, &json!({"mainstay.dev/dependencies": "Require"}));
}

#[test]
fn dependencies_have_their_own_namespace_on_request() {
    let cluster = cluster(installs);
    let command = "install tea -p tea -n kitchen --with-dependencies --dependency-namespace";
    let missing = run(&cluster, &format!("{command} cellar"));
    assert_eq!(missing.code, 2, "{missing:?}");
    assert!(missing.err.contains("the cluster has no namespace \"cellar\""), "{missing:?}");
    assert!(missing.err.contains("name another one with --dependency-namespace NAME"));
    assert_eq!(extensions(&cluster), ["my-water"]);
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cellar"}});
    cluster.objects.borrow_mut().push(Object::from_value(namespace).unwrap());
    assert_eq!(run(&cluster, &format!("{command} cellar --no-wait")).code, 0);
    let namespaces =
        ["clay", "pot", "tea"].map(|name| stored(&cluster, name)["spec"]["namespace"].clone());
    assert_eq!(namespaces, ["cellar", "cellar", "kitchen"]);
}

#[test]
fn cycle_ignores_a_dependency_until_all_are_installed() {
    let cluster = cluster(installs);
    let done = run(&cluster, "install hen -p hen -n kitchen --with-dependencies");
    assert_eq!((done.code, &*done.err), (0, ""));
    insta::assert_snapshot!(done.out);
    for name in ["egg", "hen"] {
        let annotations = &stored(&cluster, name)["metadata"]["annotations"];
        assert_eq!(annotations, &json!({"mainstay.dev/dependencies": "Require"}), "{name}");
    }
    let cluster = self::cluster(installs);
    let command = "install hen -p hen -n kitchen --with-dependencies --no-wait";
    let noted = run(&cluster, command);
    assert!(
        noted.err.contains("mainstay extension update egg --dependencies Require"),
        "{noted:?}"
    );
    let egg = &stored(&cluster, "egg")["metadata"]["annotations"];
    assert_eq!(egg, &json!({"mainstay.dev/dependencies": "Ignore"}));
}

#[test]
fn unsatisfiable_or_ambiguous_dependencies_create_nothing() {
    for (arguments, messages) in [
        (
            "fork -p fork",
            [
                "ClusterExtension my-water has version 1.0.0",
                "mainstay extension update my-water --version '>=9.0.0'",
            ],
        ),
        (
            "salad -p salad",
            ["several packages provide API Oil (x.io/v1)", "choose it with --dependency olive"],
        ),
        (
            "pot -p tea",
            [
                "the dependency on package pot needs a ClusterExtension of that name",
                "OTHER-NAME --package pot",
            ],
        ),
        ("my-water -p hen", ["failed to install extension \"my-water\"", "already exists"]),
        ("x -p nothing", ["no bundle of package \"nothing\"", "failed to plan"]),
    ] {
        let cluster = cluster(installs);
        let failed = run(&cluster, &format!("install {arguments} -n kitchen --with-dependencies"));
        assert_ne!(failed.code, 0, "{arguments}");
        for message in messages {
            assert!(failed.err.contains(message), "{arguments}: {message}\n{}", failed.err);
        }
        assert_eq!(extensions(&cluster), ["my-water"], "{arguments}");
    }
    let cluster = cluster(installs);
    let chosen = "install salad -p salad -n kitchen --with-dependencies --dependency olive";
    assert_eq!(run(&cluster, chosen).code, 0);
    assert_eq!(extensions(&cluster), ["my-water", "olive", "salad"]);
    let contradiction = "install clay -p clay -n kitchen --with-dependencies --dependencies Refuse";
    let contradiction = run(&cluster, contradiction);
    assert_eq!(contradiction.code, 2, "{contradiction:?}");
    let message = "--dependencies Refuse contradicts --with-dependencies";
    assert!(contradiction.err.contains(message), "{contradiction:?}");
    let useless = "install clay -p clay -n kitchen --with-dependencies --dependency olive";
    let noted = run(&cluster, useless);
    assert_eq!((noted.code, &*noted.err), (0, "note: --dependency olive is not needed\n"));
}

#[test]
fn failed_installation_stays_or_is_cleaned_up() {
    let command = "install my-tea -p tea -n kitchen --with-dependencies";
    let cluster = cluster(stops_at_pot);
    let failed = run(&cluster, command);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.err.contains("failed to install extension \"pot\""), "{failed:?}");
    assert!(failed.err.contains("mainstay why clusterextension/pot"), "{failed:?}");
    assert_eq!(extensions(&cluster), ["my-water", "clay", "pot", "my-tea"]);
    let cluster = self::cluster(stops_at_pot);
    let cleaned = run(&cluster, &format!("{command} --cleanup"));
    assert_eq!(cleaned.code, 1, "{cleaned:?}");
    assert_eq!(extensions(&cluster), ["my-water"]);
}

#[test]
fn failed_creation_and_failed_cleanup_say_what_stays() {
    let command = "install my-tea -p tea -n kitchen --with-dependencies";
    let cluster = cluster(installs);
    cluster.writes_left.set(1);
    let failed = run(&cluster, command);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.err.contains("failed to install extension \"pot\""), "{failed:?}");
    let remedy =
        "the extensions created so far stay; remove each with: mainstay extension delete NAME";
    assert!(failed.err.contains(remedy), "{failed:?}");
    let cluster = self::cluster(stops_at_pot);
    cluster.writes_left.set(3);
    let failed = run(&cluster, &format!("{command} --cleanup"));
    for name in ["clay", "pot", "my-tea"] {
        let message = format!("extension \"{name}\" cannot be deleted again");
        assert!(failed.err.contains(&message), "{name}: {failed:?}");
    }
}

/// A ClusterExtension of a package.
fn other(name: &str, package: &str, version: &str) -> Object {
    let extension = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": name, "uid": name, "generation": 1},
        "spec": {"namespace": "kitchen", "source": {"sourceType": "Catalog", "catalog": {"packageName": package}}},
        "status": {"install": {"bundle": {"name": format!("{package}.v{version}"), "version": version}}},
    });
    Object::from_value(extension).unwrap()
}

fn deleted(mut extension: Object) -> Object {
    extension.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z".into());
    extension
}

#[test]
fn extension_that_is_being_deleted_satisfies_nothing() {
    let command = "install my-tea -p tea -n kitchen --with-dependencies";
    let cluster = cluster(installs);
    cluster.objects.borrow_mut().push(deleted(other("pot", "pot", "1.4.0")));
    let failed = run(&cluster, command);
    assert_eq!(failed.code, 2, "{failed:?}");
    assert!(failed.err.contains("ClusterExtension pot is being deleted"), "{failed:?}");
    let remedy = "wait until it is gone: mainstay extension wait pot --for deleted";
    assert!(failed.err.contains(remedy), "{failed:?}");
    let cluster = self::cluster(installs);
    // Neither its version nor its package counts.
    cluster.objects.borrow_mut().push(deleted(other("my-pot", "pot", "2.0.0")));
    let done = run(&cluster, command);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(extensions(&cluster), ["my-water", "my-pot", "clay", "pot", "my-tea"]);
    let cluster = with_tea("Require", UNMET, false);
    let mut pot = deleted(other("my-pot", "pot", "2.0.0"));
    pot.remove(&["status"]);
    cluster.objects.borrow_mut().push(pot);
    let explained = why(cluster, "clusterextension/tea");
    let install = "install it: mainstay extension install pot --package pot";
    assert!(explained.out.contains(install), "{}", explained.out);
}

#[test]
fn why_tells_satisfied_dependencies_from_unknown_ones() {
    let cluster = with_tea("Require", UNMET, false);
    cluster.objects.borrow_mut().push(other("my-pot", "pot", "1.4.0"));
    let explained = why(cluster.clone(), "clusterextension/tea");
    let satisfied = "wait: the cluster satisfies them now";
    assert!(explained.out.contains(satisfied), "{}", explained.out);
    let hides_crds = RecordedCluster {
        forbids: |kind, _| kind.plural == "customresourcedefinitions",
        ..cluster
    };
    let explained = why(hides_crds, "clusterextension/tea");
    let unknown = "install what the message names; the controller then continues at once";
    assert!(explained.out.contains(unknown), "{}", explained.out);
}

/// An extension in the cluster, with this policy and this message of Progressing.
fn with_tea(policy: &str, message: &str, installed: bool) -> RecordedCluster {
    let cluster = cluster(installs);
    let mut tea = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {
            "name": "tea", "uid": "t", "generation": 1,
            "annotations": {"mainstay.dev/dependencies": policy},
        },
        "spec": {"namespace": "kitchen", "source": {"sourceType": "Catalog", "catalog": {"packageName": "tea"}}},
        "status": {"conditions": [
            {"type": "Installed", "status": if installed { "True" } else { "False" }, "reason": "Failed", "observedGeneration": 1, "message": "x"},
            {"type": "Progressing", "status": "True", "reason": "Retrying", "observedGeneration": 1, "message": message},
        ]},
    });
    if installed {
        tea["status"]["install"] = json!({"bundle": {"name": "tea.v1.0.0", "version": "1.0.0"}});
    }
    cluster.objects.borrow_mut().push(Object::from_value(tea).unwrap());
    cluster
}

const UNMET: &str = "unsatisfied dependencies of bundle \"tea.v1.0.0\": package \"pot\" in version range \">=1.0.0 <2.0.0\": no ClusterExtension has it installed";

#[test]
fn why_says_what_would_satisfy_each_dependency() {
    let cluster = with_tea("Require", UNMET, false);
    cluster.objects.borrow_mut().retain(|object| object.kind() != "CustomResourceDefinition");
    let explained = why(cluster.clone(), "clusterextension/tea");
    assert_eq!(explained.code, 3);
    insta::assert_snapshot!(explained.out);
    let json = why(cluster, "clusterextension/tea -o json");
    let json: Value = serde_json::from_str(&json.out).unwrap();
    let unsatisfied = json["resolution"]["unsatisfied"].as_array().unwrap().len();
    assert_eq!(unsatisfied, 2);
    let refused = "validating bundle \"tea.v1.0.0\": bundle \"tea.v1.0.0\" has a dependency declared via property \"olm.package.required\" which is currently not supported";
    let explained = why(with_tea("require", refused, false), "clusterextension/tea");
    assert!(explained.out.contains("has the unknown value \"require\""), "{}", explained.out);
    assert!(explained.out.contains("annotate the ClusterExtension"), "{}", explained.out);
}

#[test]
fn update_says_what_the_new_version_needs() {
    let cluster = with_tea("Require", "x", false);
    let noted = run(&cluster, "update tea --version 1.x --no-wait");
    assert_eq!(noted.code, 0, "{noted:?}");
    assert!(noted.err.starts_with(&format!("note: {UNMET}\n")), "{}", noted.err);
    let refused = run(&cluster, "update tea --dependencies Refuse --no-wait");
    assert!(refused.err.contains("is currently not supported"), "{}", refused.err);
    assert!(refused.err.contains("update tea --dependencies Require"), "{}", refused.err);
    assert_eq!(stored(&cluster, "tea")["metadata"]["annotations"], json!({}));
    let ignored = run(&cluster, "update tea --dependencies ignore --no-wait");
    assert_eq!((ignored.code, &*ignored.err), (0, ""));
}

#[test]
fn removal_warns_of_extensions_that_need_it() {
    let cluster = with_tea("Require", "x", true);
    let expected = "needed by others, which stay and report the missing dependency:\n  ClusterExtension tea: API Pipe (x.io/v1)\n";
    let preview = run(&cluster, "delete my-water --dry-run");
    assert!(preview.out.contains(expected), "{}", preview.out);
    let all = run(&cluster, "delete --all --dry-run");
    assert!(!all.out.contains("needed by"), "{}", all.out);
    let json = run(&cluster, "delete my-water --dry-run -o json").json();
    let needed =
        json!([{"kind": "ClusterExtension", "name": "tea", "dependency": "API Pipe (x.io/v1)"}]);
    assert_eq!(json[0]["neededBy"], needed);
    let preview = uninstall_from(cluster.clone(), "clusterextension/my-water --dry-run");
    assert!(preview.out.ends_with(expected), "{}", preview.out);
    let kept = uninstall_from(cluster.clone(), "clusterextension/my-water --dry-run --keep-crds");
    assert!(!kept.out.contains("needed by"), "{}", kept.out);
    let hides_catalogs =
        RecordedCluster { forbids: |kind, _| kind.plural == "clustercatalogs", ..cluster.clone() };
    let preview = run(&hides_catalogs, "delete my-water --dry-run");
    assert!(preview.out.contains("may not list ClusterCatalogs"), "{}", preview.out);
    let json = run(&hides_catalogs, "delete my-water --dry-run -o json").json();
    assert_eq!(json[0]["neededBy"], Value::Null);
    let unreadable = RecordedCluster {
        documents: |_, _| Err(CatalogReadError::Unreachable(Cause::new("connection refused"))),
        ..cluster.clone()
    };
    let preview = run(&unreadable, "delete my-water --dry-run");
    assert!(preview.out.contains("it is unknown whether they need it: tea\n"), "{}", preview.out);
    let json = run(&unreadable, "delete my-water --dry-run -o json").json();
    assert_eq!(json[0]["perhapsNeededBy"], json!(["tea"]));
    // It is a warning, and no obstacle.
    let gone = run(&cluster, "delete my-water --yes");
    assert_eq!(gone.code, 0, "{gone:?}");
}

#[test]
fn resolve_names_the_dependencies_of_the_next_bundle() {
    let catalog = String::from_utf8(documents_of_all()).unwrap().replace('\n', "\n---\n");
    let tea = with_tea("Require", UNMET, false);
    let objects = tea.objects.borrow();
    let state = objects.iter().filter(|object| object.kind().starts_with("Cluster"));
    let state: Vec<String> = state.map(|object| object.to_value().to_string()).collect();
    let folder = TestFolder::new()
        .file("shop/catalog.yaml", catalog)
        .file("state.yaml", state.join("\n---\n"));
    let command = "clusterextension/tea --state state.yaml --catalog shop=shop";
    let output = exit_code_and_output(&folder.resolve(command));
    let lines: Vec<&str> = output.lines().filter(|line| line.contains("requires")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    requires   package "pot" in version range ">=1.0.0 <2.0.0": not satisfied by the ClusterExtensions of this state
    requires   API Pipe (x.io/v1): see: mainstay why clusterextension/tea
    "#);
    let json = folder.resolve(&format!("{command} -o json")).json();
    let satisfied = &json["extensions"][0]["required"][0]["satisfiedBy"];
    assert_eq!(satisfied, &Value::Null, "{json}");
    let pot = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
        "metadata": {"name": "my-pot"},
        "spec": {"source": {"sourceType": "Catalog", "catalog": {"packageName": "pot"}}},
        "status": {"install": {"bundle": {"name": "pot.v1.4.0", "version": "1.4.0"}}},
    });
    let folder = folder.file("pot.yaml", pot.to_string());
    let output = exit_code_and_output(&folder.resolve(&format!("{command} --state pot.yaml")));
    assert!(output.contains("<2.0.0\": satisfied by ClusterExtension my-pot\n"), "{output}");
}
