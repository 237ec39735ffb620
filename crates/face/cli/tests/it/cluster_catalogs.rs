//! `mainstay catalog` with ClusterCatalogs that a cluster serves, and `mainstay catalog search`.

use super::recorded_cluster::{RecordedCluster, SilentCluster};
use mainstay_cause::Cause;
use mainstay_clitest::{CommandOutput, TestFolder};
use mainstay_command::cluster::{CatalogEndpoint, CatalogReadError, ConnectionArguments};
use mainstay_command::exit::CommandFailure;
use serde_json::Value;

/// The documents of the ClusterCatalog `fruit`, as files of a folder.
const FRUIT: &str = r#"{"schema": "olm.package", "name": "kiwi", "defaultChannel": "stable", "description": "Kiwis for everybody.\nMore."}
{"schema": "olm.channel", "package": "kiwi", "name": "stable", "entries": [{"name": "kiwi.v1"}, {"name": "kiwi.v2", "replaces": "kiwi.v1"}]}
{"schema": "olm.channel", "package": "kiwi", "name": "old", "entries": [{"name": "kiwi.v1"}]}
{"schema": "olm.bundle", "package": "kiwi", "name": "kiwi.v1", "image": "example.com/kiwi:1", "properties": [{"type": "olm.package", "value": {"packageName": "kiwi", "version": "1.0.0"}}]}
{"schema": "olm.bundle", "package": "kiwi", "name": "kiwi.v2", "image": "example.com/kiwi:2", "properties": [{"type": "olm.package", "value": {"packageName": "kiwi", "version": "2.0.0"}}, {"type": "olm.csv.metadata", "value": {"keywords": ["Green", "fruit"], "displayName": "Kiwi Operator", "annotations": {"description": "Green fruit on a vine, one at a time, and \u001b[2J a line that is far too long"}, "installModes": [{"type": "AllNamespaces", "supported": true}]}}]}
{"schema": "olm.package", "name": "plum", "defaultChannel": "stable"}
{"schema": "olm.channel", "package": "plum", "name": "stable", "entries": [{"name": "plum.v1"}]}
{"schema": "olm.bundle", "package": "plum", "name": "plum.v1", "image": "example.com/plum:1", "properties": [{"type": "olm.package", "value": {"packageName": "plum", "version": "1.0.0"}}]}
"#;

const CLUSTER: &str = "
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: catalogd-ca, namespace: openshift-catalogd}
  data: {ca.crt: the CA}
- apiVersion: olm.operatorframework.io/v1
  kind: ClusterCatalog
  metadata: {name: fruit}
  spec: {priority: -5}
  status:
    urls: {base: 'https://127.0.0.1:4433/catalogs/fruit'}
    conditions: [{type: Serving, status: 'True', reason: Available}]
- apiVersion: olm.operatorframework.io/v1
  kind: ClusterCatalog
  metadata: {name: market}
  spec: {priority: 10}
  status:
    urls: {base: 'https://catalogd-service.olmv1-system.svc/catalogs/market'}
    conditions: [{type: Serving, status: 'True', reason: Available}]
- apiVersion: olm.operatorframework.io/v1
  kind: ClusterCatalog
  metadata: {name: closed}
  spec: {availabilityMode: Unavailable}
  status:
    conditions: [{type: Serving, status: 'False', reason: UserSpecifiedUnavailable}]
";

/// ClusterCatalogs that cannot be read.
const BROKEN: &str = "
- apiVersion: olm.operatorframework.io/v1
  kind: ClusterCatalog
  metadata: {name: unpullable}
  status:
    conditions:
    - {type: Progressing, status: 'True', reason: Retrying, message: 'source catalog content: 404'}
    - {type: Serving, status: 'False', reason: Unavailable}
- apiVersion: olm.operatorframework.io/v1
  kind: ClusterCatalog
  metadata: {name: fresh}
";

fn not_found() -> CatalogReadError {
    CatalogReadError::NotFound(Cause::new("it responded 404 Not Found: 404 page not found"))
}

/// The catalog server. It offers parts of `fruit`, and `market` only as a whole.
fn documents(server: &CatalogEndpoint, path: &str) -> Result<Vec<u8>, CatalogReadError> {
    let lines = |wanted: &[(&str, &str)]| {
        let selects = |line: &&str| {
            let value: Value = serde_json::from_str(line).unwrap();
            wanted.iter().all(|(field, text)| value[*field] == **text)
        };
        let lines: Vec<&str> = FRUIT.lines().filter(selects).collect();
        Ok(lines.join("\n").into_bytes())
    };
    match server {
        CatalogEndpoint::Direct { base, authorities } => {
            assert_eq!(
                (&**base, &**authorities),
                ("https://127.0.0.1:4433/catalogs/fruit", "the CA\n")
            );
            match path.split_once('?') {
                None if path == "api/v1/all" => lines(&[]),
                Some(("api/v1/metas", query)) => {
                    let pairs: Vec<_> =
                        query.split('&').filter_map(|pair| pair.split_once('=')).collect();
                    lines(&pairs)
                }
                _ => Err(not_found()),
            }
        }
        CatalogEndpoint::ServiceProxy { path: base } => {
            let name = base.rsplit('/').next().unwrap_or_default();
            assert_eq!(
                *base,
                format!(
                    "/api/v1/namespaces/olmv1-system/services/https:catalogd-service:443/proxy/catalogs/{name}"
                )
            );
            match path {
                "api/v1/all" => {
                    Ok(FRUIT.replace("kiwi", "lime").replace("Kiwi", "Lime").into_bytes())
                }
                _ => Err(not_found()),
            }
        }
    }
}

fn cluster() -> RecordedCluster {
    RecordedCluster { documents, ..RecordedCluster::new("default", &format!("{CLUSTER}{BROKEN}")) }
}

/// Without the ClusterCatalogs that cannot be read.
fn sound_cluster() -> RecordedCluster {
    RecordedCluster { documents, ..RecordedCluster::new("default", CLUSTER) }
}

fn run(cluster: RecordedCluster, arguments: &str) -> CommandOutput {
    place().catalog_on(arguments, async move |_: &ConnectionArguments| Ok(cluster))
}

/// A folder `c` with the content of `fruit`.
fn place() -> TestFolder {
    TestFolder::new().file("c/catalog.json", FRUIT)
}

#[test]
fn cluster_catalog_has_the_output_of_a_folder_with_its_content() {
    let place = place();
    for command in [
        "list packages PATH",
        "list channels PATH kiwi -o json",
        "list bundles PATH kiwi -o yaml",
        "graph PATH kiwi",
        "graph PATH kiwi -o json",
        "render PATH",
        "render PATH -o yaml --schema olm.channel",
        "render PATH --package kiwi",
        "render PATH --package nosuch",
        "validate PATH",
    ] {
        let folder = place.catalog(&command.replace("PATH", "c"));
        for path in ["clustercatalog/fruit", "clustercatalogs.olm.operatorframework.io/fruit"] {
            let served = run(cluster(), &command.replace("PATH", path));
            let out = served.out.replace(path, "c");
            assert_eq!((served.code, &out), (folder.code, &folder.out), "{command}: {served:?}");
        }
    }
    // The places of documents differ.
    for command in ["show PATH kiwi -o json", "show PATH kiwi 1.0.0 -o json"] {
        let mut folder = place.catalog(&command.replace("PATH", "c")).json();
        let mut served = run(cluster(), &command.replace("PATH", "clustercatalog/fruit")).json();
        let place = served["declaredAt"].take();
        assert!(
            place.as_str().unwrap().starts_with("clustercatalog/fruit/api/v1/metas?"),
            "{place}"
        );
        folder["declaredAt"] = Value::Null;
        assert_eq!(folder, served, "{command}");
    }
}

#[test]
fn server_that_offers_only_whole_catalogs_is_enough() {
    let shown = run(cluster(), "show clustercatalog/market lime -o json").json();
    assert_eq!(shown["declaredAt"], "clustercatalog/market/api/v1/all:1");
    let listed = run(cluster(), "list bundles clustercatalog/market lime -o json").json();
    assert_eq!(listed[1]["image"], "example.com/lime:2");
}

#[test]
fn unreadable_cluster_catalog_is_explained_with_a_remedy() {
    let without_ca = || RecordedCluster {
        documents,
        ..RecordedCluster::new("default", &CLUSTER.replace("catalogd-ca", "other"))
    };
    let failing = |documents| RecordedCluster { documents, ..sound_cluster() };
    let fruit = "list packages clustercatalog/fruit";
    let market = "list packages clustercatalog/market";
    let mut all = String::new();
    for (what, output) in [
        ("unknown", run(cluster(), "show clustercatalog/fruits kiwi")),
        ("unknown, nothing similar", run(cluster(), "show clustercatalog/operatorhubio kiwi")),
        ("no name", run(cluster(), "show clustercatalog/ kiwi")),
        ("switched off", run(cluster(), "list packages clustercatalog/closed")),
        ("not served", run(cluster(), "list packages clustercatalog/unpullable")),
        ("no controller", run(cluster(), "list packages clustercatalog/fresh")),
        ("unknown package", run(cluster(), "show clustercatalog/fruit kiw")),
        ("no CA", run(without_ca(), fruit)),
        (
            "certificate",
            run(
                failing(|_, _| Err(CatalogReadError::Certificate(Cause::new("it expired")))),
                fruit,
            ),
        ),
        (
            "loopback of another machine",
            run(failing(|_, _| Err(CatalogReadError::Unreachable(Cause::new("refused")))), fruit),
        ),
        (
            "no endpoints",
            run(failing(|_, _| Err(CatalogReadError::Unreachable(Cause::new("none")))), market),
        ),
        (
            "forbidden",
            run(failing(|_, _| Err(CatalogReadError::Forbidden(Cause::new("no")))), market),
        ),
        ("invalid", run(failing(|_, _| Ok(b"{\"schema\":".to_vec())), fruit)),
        ("no cluster", place().catalog(fruit)),
    ] {
        assert_eq!(output.out, "", "{what}");
        all.extend(["# ", what, "\n", &output.code.to_string(), "\n", &output.err]);
    }
    insta::assert_snapshot!(all);
}

#[test]
fn invalid_content_of_a_cluster_catalog_is_validated_with_its_places() {
    let cluster = RecordedCluster {
        documents: |_, _| {
            Ok(FRUIT.replace("\"replaces\": \"kiwi.v1\"", "\"skips\": []").into_bytes())
        },
        ..sound_cluster()
    };
    let output = run(cluster, "validate clustercatalog/fruit");
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.out.starts_with("clustercatalog/fruit/api/v1/all:2:"), "{output:?}");
}

#[test]
fn silent_cluster_exits_with_one() {
    for command in ["search kiwi", "list packages clustercatalog/fruit"] {
        let connect = async |_: &ConnectionArguments| Ok::<_, CommandFailure>(SilentCluster);
        let output = place().catalog_on(command, connect);
        assert_eq!((output.code, &*output.out), (1, ""), "{command}");
        assert!(output.err.contains("did not answer"), "{output:?}");
    }
}

#[test]
fn search_lists_the_catalog_of_the_highest_priority_first() {
    let output = run(sound_cluster(), "search");
    assert_eq!((output.code, &*output.err), (0, ""));
    insta::assert_snapshot!(output.out, @r"
    CATALOG                 PACKAGE   DEFAULT CHANNEL   HEAD      VERSION   DESCRIPTION
    clustercatalog/market   lime      stable            lime.v2   2.0.0     Green fruit on a vine, one at a time, and \u{1b}[2J a line that…
    clustercatalog/market   plum      stable            plum.v1   1.0.0
    clustercatalog/fruit    kiwi      stable            kiwi.v2   2.0.0     Green fruit on a vine, one at a time, and \u{1b}[2J a line that…
    clustercatalog/fruit    plum      stable            plum.v1   1.0.0
    ");
}

#[test]
fn search_finds_all_words_in_names_descriptions_and_keywords() {
    for (arguments, found) in [
        ("search kiwi", "fruit kiwi"),
        ("search KIWI", "fruit kiwi"),
        ("search 'green fruit'", "market lime, fruit kiwi"),
        ("search 'everybody green'", "market lime, fruit kiwi"),
        ("search 'green plum'", ""),
        ("search plum clustercatalog/fruit", "fruit plum"),
        ("search clustercatalog/fruit", "fruit kiwi, fruit plum"),
        ("search plum ./c clustercatalog/market", "market plum, ./c plum"),
        ("search ./c", "./c kiwi, ./c plum"),
    ] {
        let output = run(sound_cluster(), &format!("{arguments} -o json")).json();
        let rows = output.as_array().unwrap().iter().map(|row| {
            let catalog = row["catalog"].as_str().unwrap().trim_start_matches("clustercatalog/");
            format!("{catalog} {}", row["package"].as_str().unwrap())
        });
        assert_eq!(rows.collect::<Vec<_>>().join(", "), found, "{arguments}");
    }
    let output = run(sound_cluster(), "search 'green plum'");
    assert_eq!(output.err, "note: no package in 2 readable catalogs has the words: green plum\n");
    let row = &run(sound_cluster(), "search kiwi -o json").json()[0];
    assert_eq!((&row["priority"], &row["version"]), (&(-5).into(), &"2.0.0".into()));
    assert_eq!(row["keywords"], serde_json::json!(["Green", "fruit"]));
    // Folders need no cluster.
    assert_eq!(place().catalog("search kiwi c -o json").json()[0]["priority"], Value::Null);
}

#[test]
fn search_reports_unreadable_catalogs_beside_the_packages_of_the_others() {
    for arguments in
        ["search plum", "search plum clustercatalog/fruit clustercatalog/unpullable ./d"]
    {
        let output = run(cluster(), arguments);
        assert_eq!(output.code, 1, "{output:?}");
        let is_found =
            |line: &str| line.starts_with("clustercatalog/fruit ") && line.contains(" plum ");
        assert!(output.out.lines().any(is_found), "{output:?}");
        assert!(
            output.err.contains("error: ClusterCatalog unpullable is not served"),
            "{output:?}"
        );
        let other = if arguments.contains("./d") { "./d" } else { "ClusterCatalog fresh" };
        assert!(output.err.contains(other), "{output:?}");
        assert!(!output.err.contains("closed"), "{output:?}");
    }
}
