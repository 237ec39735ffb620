//! `mainstay why` for ClusterExtensions, ClusterCatalogs and ClusterObjectSets.

use super::recorded_cluster::{RecordedCluster, SilentCluster};
use clap::Parser;
use mainstay_cause::Cause;
use mainstay_cli::args::{Arguments, Command};
use mainstay_clitest::{CommandOutput, TestFolder, block_on};
use mainstay_command::cluster::{CatalogEndpoint, CatalogReadError, ClusterHandle};
use mainstay_command::io::CommandIo;
use mainstay_operators::why;
use serde_json::Value;

const CLUSTER: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: catalogd-ca, namespace: olmv1-system}
data: {ca.crt: the CA}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: shop, generation: 1}
spec: {priority: 7}
status:
  urls: {base: 'https://127.0.0.1:4433/catalogs/shop'}
  conditions: [{type: Serving, status: 'True', reason: Available}, {type: Progressing, status: 'True', reason: Succeeded}]
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: market, generation: 1}
status:
  urls: {base: 'https://catalogd-service.olmv1-system.svc/catalogs/market'}
  conditions: [{type: Serving, status: 'True', reason: Available}, {type: Progressing, status: 'True', reason: Succeeded}]
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata: {name: unused, generation: 1, labels: {stage: test}}
status:
  urls: {base: 'https://127.0.0.1:4433/catalogs/unused'}
  conditions: [{type: Serving, status: 'True', reason: Available}, {type: Progressing, status: 'True', reason: Succeeded}]
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: tea, generation: 1}
spec:
  namespace: kitchen
  source:
    sourceType: Catalog
    catalog:
      packageName: teapot
      version: 3.x
      channels: [stable]
      selector: {matchExpressions: [{key: stage, operator: DoesNotExist}]}
status:
  conditions:
  - {type: Installed, status: 'False', reason: Failed, observedGeneration: 1, message: No bundle installed}
  - {type: Progressing, status: 'True', reason: Retrying, observedGeneration: 1, message: 'no bundles found for package \"teapot\" matching version \"3.x\" in channels [stable]'}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: pot, generation: 1}
spec: {namespace: kitchen, source: {sourceType: Catalog, catalog: {packageName: teapot, version: 2.x, selector: {matchLabels: {olm.operatorframework.io/metadata.name: shop}}}}}
status:
  install: {bundle: {name: teapot.v2, version: 2.0.0}}
  conditions:
  - {type: Installed, status: 'True', reason: Succeeded, observedGeneration: 1, message: Installed bundle x.io/teapot:2 successfully}
  - {type: Progressing, status: 'True', reason: Succeeded, observedGeneration: 1, message: Desired state reached}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: pot
  namespace: kitchen
  generation: 1
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: pot}
spec: {replicas: 1, selector: {matchLabels: {app: pot}}}
status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1}
---
apiVersion: v1
kind: Pod
metadata: {name: pot-1, namespace: kitchen, labels: {app: pot}}
spec: {containers: [{name: manager, image: 'x.io/pot:1'}]}
status:
  phase: Running
  containerStatuses: [{name: manager, ready: false, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: other, namespace: garden}
";

const SHOP: &str = r#"{"schema": "olm.package", "name": "teapot", "defaultChannel": "stable"}
{"schema": "olm.channel", "package": "teapot", "name": "stable", "entries": [{"name": "teapot.v1"}, {"name": "teapot.v2", "replaces": "teapot.v1"}]}
{"schema": "olm.channel", "package": "teapot", "name": "next", "entries": [{"name": "teapot.v3"}]}
{"schema": "olm.bundle", "package": "teapot", "name": "teapot.v1", "image": "x.io/teapot:1", "properties": [{"type": "olm.package", "value": {"version": "1.0.0"}}]}
{"schema": "olm.bundle", "package": "teapot", "name": "teapot.v2", "image": "x.io/teapot:2", "properties": [{"type": "olm.package", "value": {"version": "2.0.0"}}]}
{"schema": "olm.bundle", "package": "teapot", "name": "teapot.v3", "image": "x.io/teapot:3", "properties": [{"type": "olm.package", "value": {"version": "3.0.0"}}]}
"#;

/// The catalog server: `shop` by package, `market` only as a whole and without the package. `unused` is
/// never read.
fn documents(server: &CatalogEndpoint, path: &str) -> Result<Vec<u8>, CatalogReadError> {
    match server {
        CatalogEndpoint::Direct { base, .. } => {
            assert_eq!(base, "https://127.0.0.1:4433/catalogs/shop");
            let is_package = |line: &&str| line.contains("olm.package\", \"name");
            Ok(match path {
                "api/v1/metas?schema=olm.package&name=teapot" => {
                    SHOP.lines().filter(is_package).collect::<String>().into_bytes()
                }
                "api/v1/metas?package=teapot" => {
                    let rest: Vec<&str> = SHOP.lines().filter(|line| !is_package(line)).collect();
                    rest.join("\n").into_bytes()
                }
                other => panic!("{other} is not asked for"),
            })
        }
        CatalogEndpoint::ServiceProxy { .. } if path == "api/v1/all" => {
            Ok(SHOP.replace("teapot", "kettle").into_bytes())
        }
        CatalogEndpoint::ServiceProxy { .. } => {
            Err(CatalogReadError::NotFound(Cause::new("404 page not found")))
        }
    }
}

fn cluster() -> RecordedCluster {
    RecordedCluster { documents, ..RecordedCluster::new("default", CLUSTER) }
}

pub(super) fn why(cluster: impl ClusterHandle, arguments: &str) -> CommandOutput {
    let place = TestFolder::new().file("state.yaml", CLUSTER);
    let words = ["mainstay", "why"].into_iter().chain(arguments.split(' '));
    let Command::Why(arguments) = Arguments::try_parse_from(words).unwrap().command else {
        unreachable!("it was typed")
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let stdin = &mut std::io::empty();
    let mut io = CommandIo::unattended(stdin, &mut out, &mut err, place.path());
    let exit = block_on(why::run(&arguments, &mut io, async move || Ok(cluster)));
    CommandOutput::of(exit as u8, out, err)
}

fn exit_code_and_text(output: &CommandOutput) -> String {
    format!("{}\n{}{}", output.code, output.out, output.err)
}

#[test]
fn failed_resolution_has_the_counts_of_each_filter() {
    insta::assert_snapshot!(exit_code_and_text(&why(cluster(), "clusterextension/tea")));
    let again = why(cluster(), "clusterextensions.olm.operatorframework.io tea");
    assert_eq!(again.out, why(cluster(), "clusterextension/tea").out);
    let json = why(cluster(), "clusterextension/tea -o json");
    assert_eq!(json.code, 3);
    let value: Value = serde_json::from_str(&json.out).unwrap();
    insta::assert_snapshot!(format!("{:#}", value["resolution"]));
    assert_eq!(value["namespace"], "");
    assert_eq!(value["because"][0]["because"][0]["what"], "no bundle of package `teapot` fits");
}

#[test]
fn installed_extension_is_followed_to_the_container_that_crashes() {
    insta::assert_snapshot!(exit_code_and_text(&why(cluster(), "clusterextension/pot")));
    let healthy = cluster();
    healthy.objects.borrow_mut().retain(|object| object.kind() != "Deployment");
    let output = why(healthy, "clusterextension/pot");
    assert_eq!(output.code, 0, "{output:?}");
    assert!(
        output.out.starts_with("ClusterExtension pot is as its spec says: teapot.v2 (version 2.0.0) is installed\nresolution: teapot.v2 (version 2.0.0) of ClusterCatalog shop\n"),
        "{}",
        output.out
    );
}

#[test]
fn catalog_that_this_machine_cannot_read_is_a_note() {
    let unreachable = RecordedCluster {
        documents: |_, _| Err(CatalogReadError::Unreachable(Cause::new("connection refused"))),
        ..cluster()
    };
    insta::assert_snapshot!(exit_code_and_text(&why(unreachable.clone(), "clusterextension/tea")));
    let json = why(unreachable, "clusterextension/tea -o json");
    let value: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(value["resolution"]["conclusive"], false);
    assert_eq!(value["resolution"]["catalogs"][1]["state"], "unread");
}

#[test]
fn invalid_documents_are_a_cause() {
    let invalid = RecordedCluster { documents: |_, _| Ok(b"{".to_vec()), ..cluster() };
    let output = why(invalid, "clusterextension/tea");
    assert!(output.out.contains("error loading package \"teapot\""), "{}", output.out);
}

#[test]
fn account_that_may_not_list_kinds_gets_notes() {
    let viewer = RecordedCluster {
        forbids: |kind, namespace| {
            kind.kind == "ClusterCatalog" || (kind.kind == "Deployment" && namespace.is_none())
        },
        ..cluster()
    };
    let output = why(viewer, "clusterextension/pot");
    assert!(output.out.contains("container manager of Pod pot-1 waits"), "{}", output.out);
    assert!(!output.out.contains("resolution:"), "{}", output.out);
    assert!(output.out.contains("note: ClusterCatalogs could not be read"), "{}", output.out);
    let nothing = RecordedCluster { forbids: |_, _| true, ..cluster() };
    let output = why(nothing, "clusterextension/pot");
    assert_eq!(output.code, 2);
    assert!(output.err.contains("kubectl auth can-i list clusterextensions"), "{}", output.err);
}

#[test]
fn saved_state_explains_what_its_objects_say() {
    let output = why(SilentCluster, "clusterextension/pot --state state.yaml");
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.out.contains("CrashLoopBackOff"), "{}", output.out);
    assert_eq!(why(SilentCluster, "clustercatalog/shop --state state.yaml").code, 0);
    let unknown = why(SilentCluster, "clusterobjectset/pot-1 --state state.yaml");
    assert_eq!(unknown.code, 2, "{unknown:?}");
}

#[test]
fn silent_cluster_exits_with_one_and_an_unserved_kind_says_so() {
    for kind in ["clusterextension", "clustercatalog", "clusterobjectset"] {
        assert_eq!(why(SilentCluster, &format!("{kind}/tea")).code, 1, "{kind}");
        let classic =
            RecordedCluster { unknown_group: Some("olm.operatorframework.io"), ..cluster() };
        let output = why(classic, &format!("{kind}/tea"));
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.err.contains("there is no such kind"), "{output:?}");
    }
}

/// What a deleted extension leaves: a CustomResourceDefinition that waits for an object with a finalizer.
const LEFTOVERS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: pots.x.io
  deletionTimestamp: x
  finalizers: [customresourcecleanup.apiextensions.k8s.io]
  labels: {olm.operatorframework.io/owner-kind: ClusterExtension, olm.operatorframework.io/owner-name: gone}
spec: {group: x.io, scope: Namespaced, names: {kind: Pot, plural: pots}, versions: [{name: v1, served: true, storage: true}]}
---
apiVersion: x.io/v1
kind: Pot
metadata: {name: green, namespace: garden, finalizers: [x.io/empty]}
";

#[test]
fn deleted_extension_names_the_objects_that_its_crds_wait_for() {
    let cluster = RecordedCluster::new("default", LEFTOVERS);
    let output = why(cluster.clone(), "clusterextension/gone");
    assert_eq!(output.code, 3);
    assert!(output.out.contains("Pot garden/green has finalizers"), "{}", output.out);
    let unknown = why(cluster, "clusterextension/never");
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.starts_with("error: there is no ClusterExtension never"), "{unknown:?}");
}

#[test]
fn extension_names_its_crd_that_is_being_deleted_and_the_objects_that_hold_it() {
    let objects =
        format!("{CLUSTER}---{}", LEFTOVERS.replace("owner-name: gone", "owner-name: pot"));
    let cluster = RecordedCluster { documents, ..RecordedCluster::new("default", &objects) };
    cluster.objects.borrow_mut().retain(|object| object.kind() != "Deployment");
    let viewer = RecordedCluster {
        forbids: |kind, _| kind.kind == "CustomResourceDefinition",
        ..cluster.clone()
    };
    let output = why(cluster, "clusterextension/pot");
    assert_eq!(output.code, 3, "{output:?}");
    for text in [
        "because CustomResourceDefinition pots.x.io is being deleted\n",
        "because Pot garden/green has finalizers",
    ] {
        assert!(output.out.contains(text), "{}", output.out);
    }
    let output = why(viewer, "clusterextension/pot");
    assert_eq!(output.code, 0, "{output:?}");
    let note = "note: CustomResourceDefinitions could not be read";
    assert!(output.out.contains(note), "{}", output.out);
}
