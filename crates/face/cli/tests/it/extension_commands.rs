//! `mainstay extension`: install, update, delete, list, describe and wait.

use super::recorded_cluster::{RecordedCluster, SilentCluster};
use clap::Parser;
use mainstay_cause::Cause;
use mainstay_cli::args::{Arguments, Command};
use mainstay_clitest::{CommandOutput, TestFolder, block_on};
use mainstay_command::cluster::{ClusterWriteError, ClusterWriter};
use mainstay_command::io::CommandIo;
use mainstay_object::{Object, Resource};
use mainstay_operators::extension;
use serde_json::{Value, json};

/// An extension with a CustomResourceDefinition, its objects and a Deployment.
pub(super) const STATE: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: kitchen}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: tea, uid: e1, generation: 1, labels: {team: drinks}}
spec:
  namespace: kitchen
  source: {sourceType: Catalog, catalog: {packageName: teapot, version: 1.x, upgradeConstraintPolicy: CatalogProvided}}
status:
  install: {bundle: {name: teapot.v1, version: 1.0.0}}
  conditions:
  - {type: Installed, status: 'True', reason: Succeeded, observedGeneration: 1, message: 'Installed bundle x.io/teapot@sha256:1 successfully'}
  - {type: Progressing, status: 'True', reason: Succeeded, observedGeneration: 1, message: Desired state reached}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pots.brew.example.com
  uid: c1
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}
spec:
  group: brew.example.com
  scope: Namespaced
  names: {kind: Pot, plural: pots}
  versions: [{name: v1, served: true, storage: true}]
---
apiVersion: brew.example.com/v1
kind: Pot
metadata: {name: green, namespace: garden, uid: p1}
---
apiVersion: brew.example.com/v1
kind: Pot
metadata: {name: black, namespace: kitchen, uid: p2, finalizers: [brew.example.com/cool]}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: teapot
  namespace: kitchen
  uid: d1
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other, namespace: kitchen, uid: d2}
";

const INSTALL: &str = "install coffee --package coffee-operator --namespace kitchen";

/// Runs `mainstay extension`; blanks separate the arguments. The answer is what a person types.
pub(super) fn run_in(
    folder: &TestFolder,
    cluster: impl ClusterWriter,
    arguments: &str,
    answer: Option<&str>,
) -> CommandOutput {
    let words = ["mainstay", "extension"].into_iter().chain(arguments.split(' '));
    let parsed = match Arguments::try_parse_from(words) {
        Ok(parsed) => parsed,
        Err(error) => return CommandOutput::refused(&error),
    };
    let Command::Extension(arguments) = parsed.command else { unreachable!("it was typed") };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let variable = |name: &str| match name {
        "HOME" | "XDG_DATA_HOME" | "TMPDIR" => Some(folder.path().display().to_string()),
        "CONTAINERS_REGISTRIES_CONF" => Some("/dev/null".to_owned()),
        _ => None,
    };
    let mut stdin = answer.unwrap_or_default().as_bytes();
    let mut io = CommandIo {
        interactive: answer.is_some(),
        variable: &variable,
        ..CommandIo::unattended(&mut stdin, &mut out, &mut err, folder.path())
    };
    let exit = block_on(extension::run(&arguments, &mut io, async move |_, _| Ok(cluster)));
    CommandOutput::of(exit as u8, out, err)
}

fn run(cluster: &RecordedCluster, arguments: &str) -> CommandOutput {
    run_in(&TestFolder::new(), cluster.clone(), arguments, None)
}

/// A cluster of [`STATE`] with a controller.
fn cluster_with(controller: fn(&mut Object)) -> RecordedCluster {
    RecordedCluster::new("kitchen", STATE).writable(controller)
}

/// Sets the two main conditions.
fn set_conditions(extension: &mut Object, installed: &str, progressing: (&str, &str, &str)) {
    let generation = extension.generation();
    let (status, reason, message) = progressing;
    extension.set(
        &["status", "conditions"],
        json!([
            {"type": "Installed", "status": installed, "reason": "Failed", "observedGeneration": generation, "message": "No bundle installed"},
            {"type": "Progressing", "status": status, "reason": reason, "observedGeneration": generation, "message": message},
        ]),
    );
}

/// A controller that installs at once.
fn installs(extension: &mut Object) {
    set_conditions(extension, "True", ("True", "Succeeded", "Desired state reached"));
    let bundle = json!({"bundle": {"name": "bundle.v2", "version": "2.0.0"}});
    extension.set(&["status", "install"], bundle);
}

/// A controller that finds no bundle.
fn retries(extension: &mut Object) {
    let message = "no bundles found for package \"coffee-operator\"";
    set_conditions(extension, "False", ("True", "Retrying", message));
}

/// A controller that gives up.
fn stops(extension: &mut Object) {
    set_conditions(extension, "False", ("False", "InvalidConfiguration", "unknown field x"));
}

fn stored(cluster: &RecordedCluster, name: &str) -> Value {
    let objects = cluster.objects.borrow();
    let found =
        objects.iter().find(|object| object.kind() == "ClusterExtension" && object.name() == name);
    found.map_or(Value::Null, Object::to_value)
}

#[test]
fn install_creates_the_extension_and_says_what_was_installed() {
    let cluster = cluster_with(installs);
    let flags = "--channel stable,fast --version ~1.2 --labels team=drinks --catalog-selector a=b --crd-upgrade-safety None";
    let answer = run(&cluster, &format!("{INSTALL} {flags}"));
    let expected =
        "extension \"coffee\" created\ninstalled bundle.v2 version 2.0.0 in namespace kitchen\n";
    assert_eq!((answer.code, &*answer.out, &*answer.err), (0, expected, ""));
    let coffee = stored(&cluster, "coffee");
    assert_eq!(coffee["metadata"]["labels"], json!({"team": "drinks"}));
    assert_eq!(
        coffee["spec"],
        json!({
            "namespace": "kitchen",
            "install": {"preflight": {"crdUpgradeSafety": {"enforcement": "None"}}},
            "source": {"sourceType": "Catalog", "catalog": {
                "packageName": "coffee-operator", "channels": ["stable", "fast"], "version": "~1.2",
                "selector": {"matchLabels": {"a": "b"}},
            }},
        })
    );
}

#[test]
fn install_prints_the_object_and_reads_its_configuration() {
    let cluster = cluster_with(installs);
    let folder = TestFolder::new().file("config.yaml", "watchNamespace: kitchen\n");
    for (source, stdin) in [("config.yaml", None), ("-", Some("{watchNamespace: kitchen}"))] {
        let arguments = format!("{INSTALL} --config {source} -o json --dry-run");
        let answer = run_in(&folder, cluster.clone(), &arguments, stdin);
        let config = json!({"configType": "Inline", "inline": {"watchNamespace": "kitchen"}});
        assert_eq!(answer.json()["spec"]["config"], config, "{source}");
    }
    let answer = run_in(&folder, cluster.clone(), &format!("{INSTALL} -o yaml"), None);
    assert!(answer.code == 0 && answer.out.starts_with("apiVersion: olm"), "{answer:?}");
    for (content, message) in
        [("- a", "is no mapping"), ("a: [", "did not find expected node content"), ("", "")]
    {
        let folder = TestFolder::new().file("c.yaml", content);
        let arguments = format!("{INSTALL} --config c.yaml --dry-run");
        let answer = run_in(&folder, cluster_with(installs), &arguments, None);
        let code = if content.is_empty() { 0 } else { 2 };
        assert!(answer.code == code && answer.err.contains(message), "{content}: {answer:?}");
    }
    let missing = run(&cluster, &format!("{INSTALL} --config missing.yaml"));
    assert!(missing.code == 2 && missing.err.contains("name a file with YAML"), "{missing:?}");
}

#[test]
fn dry_run_of_install_stores_nothing() {
    let cluster = cluster_with(installs);
    let answer = run(&cluster, &format!("{INSTALL} --dry-run"));
    assert_eq!((answer.code, &*answer.out), (0, "extension \"coffee\" created (dry run)\n"));
    assert_eq!(stored(&cluster, "coffee"), Value::Null);
    let silent = run(&cluster, &format!("{INSTALL} --no-wait"));
    assert_eq!((silent.code, &*silent.out), (0, "extension \"coffee\" created\n"));
}

#[test]
fn install_that_does_not_finish_says_why() {
    let answer = run(&cluster_with(retries), &format!("{INSTALL} --timeout 0"));
    assert_eq!((answer.code, &*answer.out), (1, "extension \"coffee\" created\n"));
    insta::assert_snapshot!(answer.err, @r#"
    error: failed to install extension "coffee"
      because ClusterExtension "coffee" did not finish installing within 0 s
        because the controller met an error and retries: no bundles found for package "coffee-operator"
        because no bundle is installed
      → the extension stays; see more with: mainstay extension describe coffee
      → or remove it with: mainstay extension delete coffee
    "#);
    let cluster = cluster_with(stops);
    let answer = run(&cluster, &format!("{INSTALL} --cleanup"));
    let expected = "extension \"coffee\" created\nextension \"coffee\" deleted\n";
    assert_eq!((answer.code, &*answer.out), (1, expected));
    insta::assert_snapshot!(answer.err, @r#"
    error: failed to install extension "coffee"
      because ClusterExtension "coffee" did not finish installing
        because the bundle refuses the configuration: unknown field x
        because no bundle is installed
    "#);
    assert_eq!(stored(&cluster, "coffee"), Value::Null);
}

#[test]
fn install_needs_an_existing_namespace_and_a_new_name() {
    let cluster = cluster_with(installs);
    for (arguments, message, remedy) in [
        (
            "install coffee -p coffee -n cellar",
            "the cluster has no namespace \"cellar\"",
            "kubectl create namespace cellar",
        ),
        (
            "install tea -p teapot -n kitchen",
            "clusterextensions.olm.operatorframework.io \"tea\" already exists",
            "mainstay extension update tea",
        ),
        ("install coffee -n kitchen", "--package <NAME>", "Usage:"),
        (
            "install coffee -p c --version >>1",
            "improper constraint: \">>1\"",
            "write a version or a range",
        ),
        (
            "install coffee -p c --upgrade-constraint-policy Any",
            "[possible values: CatalogProvided, SelfCertified]",
            "",
        ),
        ("install coffee -p c --timeout soon", "write seconds, or a duration", ""),
        ("install coffee -p c --cleanup --no-wait", "cannot be used with", ""),
        ("install coffee -p c --labels team", "write KEY=VALUE", ""),
    ] {
        let answer = run(&cluster, arguments);
        assert_eq!((answer.code, &*answer.out), (2, ""), "{arguments}: {answer:?}");
        assert!(
            answer.err.contains(message) && answer.err.contains(remedy),
            "{arguments}: {answer:?}"
        );
    }
}

#[test]
fn refusal_of_the_cluster_has_a_remedy_and_warnings_are_printed() {
    for (text, remedy) in [
        ("strict decoding error: unknown field \"spec.config\"", "--crd-channel experimental"),
        ("spec.serviceAccount: Required value", "needs --service-account NAME"),
        (
            "spec.serviceAccount.name: Invalid value: \"b\": name is immutable once set",
            "keeps its ServiceAccount",
        ),
        ("spec.source.catalog.version: invalid version expression", "write a range without"),
    ] {
        let refusal = Some(ClusterWriteError::Invalid(Cause::new(text)));
        let cluster = RecordedCluster { refusal, ..cluster_with(installs) };
        let answer = run(&cluster, INSTALL);
        assert_eq!((answer.code, &*answer.out), (1, ""), "{answer:?}");
        assert!(answer.err.contains(text) && answer.err.contains(remedy), "{answer:?}");
    }
    let warned = RecordedCluster {
        warnings: &["spec.serviceAccount is deprecated"],
        ..cluster_with(installs)
    };
    let answer = run(&warned, &format!("{INSTALL} --service-account me"));
    assert_eq!((answer.code, &*answer.err), (0, "warning: spec.serviceAccount is deprecated\n"));
}

#[test]
fn update_changes_given_fields_only() {
    let cluster = cluster_with(installs);
    let answer = run(&cluster, "update tea --version 2.x --labels team-,stage=test");
    let expected =
        "extension \"tea\" updated\ninstalled bundle.v2 version 2.0.0 in namespace kitchen\n";
    assert_eq!((answer.code, &*answer.out, &*answer.err), (0, expected, ""));
    let tea = stored(&cluster, "tea");
    assert_eq!(tea["metadata"]["labels"], json!({"stage": "test"}));
    let catalog = json!({"packageName": "teapot", "version": "2.x", "upgradeConstraintPolicy": "CatalogProvided"});
    assert_eq!(tea["spec"]["source"]["catalog"], catalog);

    let again =
        run(&cluster, "update tea --version 2.x --upgrade-constraint-policy CatalogProvided");
    let expected = "no changes detected - extension already in desired state\n";
    assert_eq!((again.code, &*again.out), (0, expected));

    let answer = run(&cluster, "update tea --ignore-unset false --channel stable --no-wait");
    assert_eq!((answer.code, &*answer.out), (0, "extension \"tea\" updated\n"));
    let catalog = json!({"packageName": "teapot", "channels": ["stable"]});
    assert_eq!(stored(&cluster, "tea")["spec"]["source"]["catalog"], catalog);
}

#[test]
fn update_reports_dry_run_missing_object_and_failure() {
    let cluster = cluster_with(stops);
    let answer = run(&cluster, "update tea --version 2.x --dry-run");
    assert_eq!((answer.code, &*answer.out), (0, "extension \"tea\" updated (dry run)\n"));
    assert_eq!(stored(&cluster, "tea")["spec"]["source"]["catalog"]["version"], "1.x");
    for (arguments, code, message) in [
        ("update te --version 2", 2, "the cluster has no ClusterExtension te (did you mean tea?)"),
        ("update tea", 2, "no flag says what to change"),
        ("update tea --package other", 2, "unexpected argument '--package'"),
        (
            "update tea --version 3",
            1,
            "because the bundle refuses the configuration: unknown field x",
        ),
    ] {
        let answer = run(&cluster, arguments);
        let lines = answer.err.replace("\n  → ", " (").replace('\n', ")\n");
        assert!(
            answer.code == code && (lines.contains(message) || answer.err.contains(message)),
            "{arguments}: {answer:?}"
        );
    }
}

#[test]
fn delete_shows_what_goes_and_asks() {
    let cluster = cluster_with(installs);
    let refused = run(&cluster, "delete tea");
    insta::assert_snapshot!(refused.out, @r#"
    extension "tea" (teapot.v1 version 1.0.0)
    will be deleted:
      ClusterExtension tea
      CustomResourceDefinition pots.brew.example.com (Pot), with its 2 objects
      Deployment kitchen/teapot
    deletion may never finish:
      1 Pot object has finalizers, which only the running operator removes
        → delete them first: kubectl delete pots.brew.example.com --all -A
    "#);
    assert!(refused.code == 2 && refused.err.contains("confirm it with --yes"), "{refused:?}");
    let place = TestFolder::new();
    let no = run_in(&place, cluster.clone(), "delete tea", Some("no\n"));
    assert_eq!((no.code, &*no.err), (0, "delete extension \"tea\"? [y/N] "));
    assert!(no.out.ends_with("deletion is cancelled\n"), "{no:?}");
    let dry = run(&cluster, "delete tea --dry-run");
    assert_eq!((dry.code, &*dry.err), (0, ""));
    assert!(dry.out.contains("would be deleted:\n"), "{dry:?}");
    assert!(dry.out.ends_with("extension \"tea\" deleted (dry run)\n"), "{dry:?}");
    assert_eq!(cluster.names().len(), 7);

    let yes = run_in(&place, cluster.clone(), "delete tea", Some("y\n"));
    assert!(yes.code == 0 && yes.out.ends_with("extension \"tea\" deleted\n"), "{yes:?}");
    assert_eq!(cluster.names(), ["Namespace kitchen", "Deployment other"]);
    let missing = run(&cluster, "delete tea --yes");
    assert!(
        missing.code == 2 && missing.err.contains("has no ClusterExtension tea"),
        "{missing:?}"
    );
}

#[test]
fn delete_all_without_preview_deletes_without_a_question() {
    let cluster = cluster_with(installs);
    run(&cluster, &format!("{INSTALL} --no-wait"));
    let answer = run(&cluster, "delete --all --no-preview");
    let expected = "extension \"tea\" deleted\nextension \"coffee\" deleted\n";
    assert_eq!((answer.code, &*answer.out, &*answer.err), (0, expected, ""));
    let none = run(&cluster, "delete --all --yes");
    assert_eq!((none.code, &*none.out, &*none.err), (0, "", "No resources found\n"));
    for arguments in ["delete", "delete tea --all"] {
        assert_eq!(run(&cluster, arguments).code, 2, "{arguments}");
    }
}

#[test]
fn delete_prints_its_preview_as_data() {
    let value = run(&cluster_with(installs), "delete tea --dry-run -o json").json();
    let crd = json!({"name": "pots.brew.example.com", "kind": "Pot", "objects": 2, "objectsWithFinalizers": 1});
    assert_eq!(value[0]["customResourceDefinitions"], json!([crd]));
    assert_eq!(value[0]["objects"], json!(["Deployment kitchen/teapot"]));
}

#[test]
fn delete_names_what_is_kept() {
    let kept = "
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: recipes
  namespace: kitchen
  uid: m1
  annotations: {helm.sh/resource-policy: keep}
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: tea}
";
    let cluster = RecordedCluster::new("kitchen", &format!("{STATE}{kept}")).writable(installs);
    let value = run(&cluster, "delete tea --dry-run -o json").json();
    assert_eq!(value[0]["kept"], json!(["ConfigMap kitchen/recipes"]));
    assert_eq!(value[0]["objects"], json!(["Deployment kitchen/teapot"]));
    let text = run(&cluster, "delete tea --dry-run").out;
    let expected = "would be kept, because of the annotation helm.sh/resource-policy:\n  ConfigMap kitchen/recipes\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn list_has_a_row_for_each_extension() {
    let cluster = cluster_with(|_| {});
    run(&cluster, &format!("{INSTALL} --no-wait"));
    let answer = run(&cluster, "list");
    insta::assert_snapshot!(answer.out, @"
    NAME     INSTALLED BUNDLE   VERSION   SOURCE TYPE   INSTALLED   PROGRESSING   AGE
    coffee                                Catalog                                 <unknown>
    tea      teapot.v1          1.0.0     Catalog       True        True          <unknown>
    ");
    for (arguments, names) in [
        ("get -l team=drinks -o json", vec!["tea"]),
        ("list -l team!=drinks -o json", vec!["coffee"]),
        ("get coffee -o json", vec!["coffee"]),
    ] {
        let value = run(&cluster, arguments).json();
        let found: Vec<&Value> = value.as_array().unwrap().iter().map(|row| &row["name"]).collect();
        assert_eq!(found, names, "{arguments}");
    }
    let none = run(&cluster, "list -l team=other");
    assert_eq!((none.code, &*none.out, &*none.err), (0, "", "No resources found\n"));
    for arguments in ["get other", "list -l a==b==c", "list -o table"] {
        let answer = run(&cluster, arguments);
        assert_eq!((answer.code, &*answer.out), (2, ""), "{arguments}: {answer:?}");
    }
}

#[test]
fn describe_shows_conditions_in_plain_words_and_objects() {
    let cluster = cluster_with(installs);
    let answer = run(&cluster, "describe tea");
    assert_eq!((answer.code, &*answer.err), (0, ""));
    insta::assert_snapshot!(answer.out, @"
    name:       tea
    age:        <unknown>
    package:    teapot
    namespace:  kitchen
    allowed:    version 1.x in all channels of all catalogs
    installed:  teapot.v1 version 1.0.0
    image:      x.io/teapot@sha256:1
    state:
      a bundle is installed
      the desired state is reached
    objects:    2 objects
      CustomResourceDefinition pots.brew.example.com
      Deployment kitchen/teapot
    ");
    let value = run(&cluster, "describe tea -o json").json();
    assert_eq!(value["objects"].as_array().unwrap().len(), 2);
    assert_eq!(value["installed"]["image"], "x.io/teapot@sha256:1");
    assert_eq!(value["state"], json!(["a bundle is installed", "the desired state is reached"]));
    let missing = run(&cluster, "describe milk");
    assert!(missing.code == 2 && missing.err.contains("mainstay extension list"), "{missing:?}");
}

#[test]
fn describe_says_which_kinds_are_hidden() {
    let forbids = |kind: &Resource, _: Option<&str>| &*kind.kind == "Secret";
    let cluster = RecordedCluster { forbids, ..cluster_with(installs) };
    let answer = run(&cluster, "describe tea");
    assert!(answer.out.ends_with("note: this account may not list Secret\n"), "{answer:?}");
    let forbids = |kind: &Resource, _: Option<&str>| &*kind.kind != "ClusterExtension";
    let cluster = RecordedCluster { forbids, ..cluster_with(installs) };
    let answer = run(&cluster, "describe tea");
    assert!(answer.out.contains("objects:    unknown\n"), "{answer:?}");
    assert!(answer.out.ends_with("ConfigMap and 22 other kinds\n"), "{answer:?}");
    let answer = run(&cluster, "delete tea --yes");
    let goes = "  its CustomResourceDefinitions, with all their objects\n";
    assert!(answer.code == 0 && answer.out.contains(goes), "{answer:?}");
}

#[test]
fn wait_ends_with_the_goal_or_says_why_not() {
    let cluster = cluster_with(stops);
    for arguments in ["wait tea", "wait tea --for version=1.x", "wait milk --for deleted"] {
        let answer = run(&cluster, arguments);
        assert_eq!((answer.code, &*answer.err), (0, ""), "{arguments}");
    }
    let installed = run(&cluster, "wait tea --for installed").out;
    assert_eq!(installed, "extension \"tea\" installed: teapot.v1 version 1.0.0\n");
    run(&cluster, &format!("{INSTALL} --no-wait"));
    for (arguments, code, message) in [
        (
            "wait tea --for version=2 --timeout 0",
            1,
            "did not finish installing version 2 within 0 s\n  because teapot.v1 version 1.0.0 is installed\n",
        ),
        ("wait coffee", 1, "because the bundle refuses the configuration: unknown field x"),
        (
            "wait tea --for deleted --timeout 0",
            1,
            "because its deletion was not requested\n    → request it with: mainstay extension delete tea\n",
        ),
        ("wait milk", 2, "the cluster has no ClusterExtension milk"),
        ("wait tea --for healthy", 2, "write installed, ready, version=RANGE or deleted"),
    ] {
        let answer = run(&cluster, arguments);
        assert_eq!((answer.code, &*answer.out), (code, ""), "{arguments}: {answer:?}");
        assert!(answer.err.contains(message), "{arguments}: {answer:?}");
        assert!(!answer.err.contains("no controller has reported"), "{arguments}: {answer:?}");
    }
}

#[test]
fn silent_cluster_is_a_failure_and_an_unserved_kind_is_named() {
    for arguments in [
        INSTALL,
        "update tea --version 2",
        "delete tea --yes",
        "list",
        "describe tea",
        "wait tea",
        "rbac tea",
    ] {
        let answer = run_in(&TestFolder::new(), SilentCluster, arguments, None);
        let error = (answer.code, answer.err.contains("the cluster did not answer"));
        assert_eq!(error, (1, true), "{arguments}: {answer:?}");
        if arguments == INSTALL {
            continue;
        }
        let unknown_group = Some("olm.operatorframework.io");
        let cluster = RecordedCluster { unknown_group, ..RecordedCluster::new("a", "") };
        let answer = run(&cluster, arguments);
        assert_eq!(
            (answer.code, &*answer.err),
            (1, "error: there is no such kind\n"),
            "{arguments}"
        );
    }
}
