//! Specification rows about descriptions in CSVs, for users and for tools, that no other test
//! shows.

use crate::dependencies::{CHISEL, NEEDY, catalog, subscribe, wait_until_latest};
use crate::olm_cluster::{OlmCluster, create_namespace, csv};
use crate::webhooks::edit_csv;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_client::ObjectList;
use mainstay_object::{Object, Resource, builtin};
use mainstay_packages::{PackageApi, ResponseBody};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The `Accept` header of kubectl.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// Parses a table: the columns and the cells of each row.
fn parse_table(text: &str) -> (Vec<String>, Vec<Vec<Value>>) {
    let table: Value = serde_json::from_str(text).unwrap();
    let name = |column: &Value| column["name"].as_str().unwrap().to_uppercase();
    let columns = table["columnDefinitions"].as_array().unwrap().iter().map(name).collect();
    let cells = |row: &Value| row["cells"].as_array().unwrap().clone();
    (columns, table["rows"].as_array().unwrap().iter().map(cells).collect())
}

/// The output of `kubectl get` for a kind in the namespace `team`: a map from column to cell for
/// each row.
async fn kubectl_get_rows(olm: &OlmCluster, resource: &Resource) -> Vec<Value> {
    let path = format!(
        "/apis/{}/{}/namespaces/team/{}",
        resource.group, resource.version, resource.plural
    );
    let request = http::Request::get(path).header("accept", TABLE).body(Vec::new()).unwrap();
    let text = olm.cluster.kube_client().request_text(request).await.unwrap();
    rows_by_column(parse_table(&text))
}

fn rows_by_column((columns, rows): (Vec<String>, Vec<Vec<Value>>)) -> Vec<Value> {
    let row = |cells: Vec<Value>| columns.iter().cloned().zip(cells).collect();
    rows.into_iter().map(row).collect()
}

/// The PackageManifest API of a cluster.
struct PackageManifests(PackageApi);

impl PackageManifests {
    fn of(olm: &OlmCluster) -> Self {
        let packages = PackageApi::new("olm", olm.cluster.clock(), CancellationToken::new());
        packages.attach(olm.classic.as_ref().unwrap().catalogs());
        Self(packages)
    }

    async fn ask(&self, path: &str, accept: &str) -> String {
        let path = format!("/apis/packages.operators.coreos.com/v1/namespaces/team/{path}");
        let request = http::Request::get(path).header("accept", accept).body(()).unwrap();
        let bytes = match self.0.answer(&request).await.into_body() {
            ResponseBody::Whole(bytes) => bytes.to_vec(),
            ResponseBody::Pieces(pieces) => pieces.flatten().collect(),
            ResponseBody::Stream(_) => panic!("a watch"),
        };
        String::from_utf8(bytes).unwrap()
    }
}

/// Asserts that `found` contains `wanted`; it may have more fields.
fn assert_contains(found: &Value, wanted: &Value, path: &str) {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            for (key, wanted) in wanted {
                let path = format!("{path}.{key}");
                assert_contains(found.get(key).unwrap_or(&Value::Null), wanted, &path);
            }
        }
        (Value::Array(all), Value::Array(wanted)) => {
            assert_eq!(all.len(), wanted.len(), "{path}");
            for (at, (found, wanted)) in all.iter().zip(wanted).enumerate() {
                assert_contains(found, wanted, &format!("{path}[{at}]"));
            }
        }
        _ => assert_eq!(found, wanted, "{path}"),
    }
}

const DIGEST: &str = "sha256:5a02a1e1e2a6b2e2d1d1f2d8ab2fb7d0d1a1fd4a5a2f0f6a37b5bb8c9a3c2f10";
const URN: &str = "urn:alm:descriptor:com.tectonic.ui";

/// Spec and metadata of a CSV with all descriptions for users and user interfaces.
fn described_csv() -> (Value, Value) {
    let field = |path: &str, ui: &str| {
        json!({
            "path": path, "displayName": path.to_uppercase(), "description": format!("The {path}."),
            "x-descriptors": [format!("{URN}:{ui}")],
        })
    };
    let part = |kind: &str, version: &str| json!({"kind": kind, "name": "", "version": version});
    let owned = json!({
        "name": "anvils.forge.example.com", "version": "v1", "kind": "Anvil",
        "displayName": "Anvil", "description": "One anvil.",
        "resources": [
            part("Service", "v1"), part("StatefulSet", "v1beta2"), part("Pod", "v1"),
            part("ConfigMap", "v1"),
        ],
        "specDescriptors": [
            field("credentials", "selector:core:v1:Secret"),
            field("project", "selector:core:v1:ConfigMap"),
            field("version", "label"),
        ],
        "statusDescriptors": [field("pods", "podStatuses")],
        "actionDescriptors": [field("strike", "action")],
    });
    let image = |name: &str| format!("example.com/{name}@{DIGEST}");
    let example = json!([{
        "apiVersion": "forge.example.com/v1", "kind": "Anvil", "metadata": {"name": "example"},
        "spec": {"size": 3},
    }]);
    let metadata = json!({
        "annotations": {
            "capabilities": "Deep Insights", "categories": "Developer Tools",
            "alm-examples": example.to_string(),
            "operators.operatorframework.io/internal-objects":
                r#"["my.internal.crd1.io","my.internal.crd2.io"]"#,
            "operatorframework.io/suggested-namespace": "smithy",
        },
        "labels": {
            "operatorframework.io/arch.s390x": "supported",
            "operatorframework.io/os.linux": "supported",
        },
    });
    let spec = json!({
        "displayName": "Anvil Operator", "description": "# Anvils\nThey are heavy.",
        "keywords": ["iron", "forge"],
        "maintainers": [{"name": "Smith", "email": "smith@example.com"}],
        "provider": {"name": "Smithy", "url": "https://smithy.example.com"},
        "labels": {"operated-by": "anvil"}, "annotations": {"every": "object"},
        "version": "1.1.0", "replaces": "anvil.v1.0.0", "skips": ["anvil.v1.0.1"],
        "minKubeVersion": "1.16.0", "maturity": "stable",
        "links": [{"name": "Manual", "url": "https://smithy.example.com/manual"}],
        "selector": {"matchLabels": {"operated-by": "anvil"}},
        "icon": [{"base64data": "PHN2Zy8+", "mediatype": "image/svg+xml"}],
        "customresourcedefinitions": {"owned": [owned]},
        "nativeAPIs": [{"group": "", "version": "v1", "kind": "Pod"}],
        "relatedImages": [
            {"name": "operator", "image": image("anvil")}, {"name": "hammer", "image": image("hammer")},
        ],
    });
    (metadata, spec)
}

#[tokio::test]
async fn csv_descriptions_reach_the_csv_its_copies_and_its_package_manifest() {
    let olm = OlmCluster::start(&[]).await;
    create_namespace(&olm.cluster, "a", "").await;
    let (metadata, spec) = described_csv();
    let hammer = format!("example.com/hammer@{DIGEST}");
    olm.publish_edited(&["1.0.0", "1.1.0"], |version, bundle| {
        if version == "1.0.0" {
            return;
        }
        edit_csv(bundle, |csv| {
            for (key, value) in metadata.as_object().unwrap() {
                csv["metadata"][key] = value.clone();
            }
            csv["spec"].as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap());
            // The CRD of the CSV lacks this field, although authors may write it.
            csv["spec"]["customresourcedefinitions"]["owned"][0]["group"] =
                "forge.example.com".into();
            let pod = &mut csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"];
            let container = &mut pod["spec"]["containers"][0];
            container["image"] = spec["relatedImages"][0]["image"].clone();
            container["env"] = json!([{"name": "HAMMER_IMAGE", "value": hammer}]);
        });
    });
    olm.apply_group_for("og", &["a"]).await;
    olm.subscribe(json!({})).await;
    // shows CSV-40
    let upgraded = olm.wait_until_succeeded("anvil.v1.1.0").await;
    // shows CSV-01 CSV-02 CSV-42..CSV-54 CSV-60..CSV-63 CSV-70
    assert_contains(upgraded.get(&["spec"]).unwrap(), &spec, "spec");
    // shows CSV-01 CSV-02 CSV-41 CSV-68 CSV-69 CSV-72
    assert_contains(upgraded.get(&["metadata"]).unwrap(), &metadata, "metadata");
    let owned = upgraded.array(&["spec", "customresourcedefinitions", "owned"])[0].clone();
    assert_eq!(owned.get("group"), None);

    // The install strategy: Deployments by name, and permissions of ServiceAccounts.
    let strategy = csv("1.1.0", None)["spec"]["install"].clone();
    let mut found = upgraded.get(&["spec", "install"]).unwrap().clone();
    // shows CSV-02 CSV-03
    assert_eq!(
        (&found["strategy"], &strategy["strategy"]),
        (&json!("deployment"), &"deployment".into())
    );
    let pod = &mut found["spec"]["deployments"][0]["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["env"][0]["value"], hammer);
    // shows CSV-03
    assert_contains(&found["spec"]["permissions"], &strategy["spec"]["permissions"], "permissions");
    let cluster = olm.cluster.cluster();
    let deployment = cluster.get(&builtin::DEPLOYMENT, Some("team"), "anvil").await.unwrap();
    let container = &deployment.array(&["spec", "template", "spec", "containers"])[0];
    // shows CSV-70
    assert_eq!(container["image"], spec["relatedImages"][0]["image"]);
    let images = container["env"].as_array().unwrap();
    // shows CSV-70
    assert!(images.contains(&json!({"name": "HAMMER_IMAGE", "value": hammer})), "{images:?}");

    // The copied CSV has the same content.
    let copied = |csv: &Object| csv.str(&["status", "reason"]) == Some("Copied");
    let csvs = &CLUSTER_SERVICE_VERSION;
    let copy = olm.cluster.wait_for(csvs, Some("a"), "anvil.v1.1.0", copied).await;
    assert_eq!(copy.get(&["spec"]), upgraded.get(&["spec"]));
    assert_contains(copy.get(&["metadata"]).unwrap(), &metadata, "copy");

    // The PackageManifest has the same content.
    let packages = PackageManifests::of(&olm);
    let package = packages.ask("packagemanifests/anvil", "application/json").await;
    let package: Value = serde_json::from_str(&package).unwrap();
    // shows CSV-72
    assert_contains(&package["metadata"]["labels"], &metadata["labels"], "labels");
    assert_eq!(package["status"]["provider"], spec["provider"]);
    let head = &package["status"]["channels"][0]["currentCSVDesc"];
    assert_eq!(package["status"]["channels"][0]["currentCSV"], "anvil.v1.1.0");
    assert_contains(&head["annotations"], &metadata["annotations"], "annotations");
    for field in [
        "displayName",
        "description",
        "keywords",
        "maintainers",
        "provider",
        "version",
        "maturity",
        "minKubeVersion",
        "links",
    ] {
        assert_eq!(head[field], spec[field], "{field}");
    }
    assert_eq!(head["nativeApis"], spec["nativeAPIs"]);
    let images: Vec<&Value> =
        spec["relatedImages"].as_array().unwrap().iter().map(|image| &image["image"]).collect();
    assert_eq!(head["relatedImages"], json!(images));
    for field in ["name", "version", "kind", "displayName", "description"] {
        assert_eq!(head["customresourcedefinitions"]["owned"][0][field], owned[field], "{field}");
    }
    assert_eq!(packages.ask("packagemanifests/anvil/icon", "*/*").await, "<svg/>");
}

/// An edit of the spec of a CSV.
type SpecEdit = fn(&mut Value);

#[tokio::test]
async fn csv_without_a_required_field_is_refused_with_the_fields_name() {
    let olm = OlmCluster::start(&[]).await;
    let cluster = olm.cluster.cluster();
    let cases: [(SpecEdit, &str); 6] = [
        (
            |spec| drop(spec.as_object_mut().unwrap().remove("displayName")),
            "spec.displayName: Required value",
        ),
        (
            |spec| drop(spec.as_object_mut().unwrap().remove("install")),
            "spec.install: Required value",
        ),
        (|spec| spec["maintainers"] = json!(["Smith"]), "spec.maintainers[0]: Invalid value"),
        (
            |spec| spec["icon"] = json!([{"base64data": ""}]),
            "spec.icon[0].mediatype: Required value",
        ),
        (
            |spec| spec["relatedImages"] = json!([{"name": "a"}]),
            "spec.relatedImages[0].image: Required value",
        ),
        (
            |spec| spec["customresourcedefinitions"]["owned"][0]["specDescriptors"] = json!([{}]),
            "spec.customresourcedefinitions.owned[0].specDescriptors[0].path: Required value",
        ),
    ];
    for (change, wanted) in cases {
        let mut bad = csv("1.0.0", None);
        bad["metadata"]["namespace"] = "team".into();
        change(&mut bad["spec"]);
        let error = cluster.create(&CLUSTER_SERVICE_VERSION, &object(bad)).await.unwrap_err();
        assert!(error.to_string().contains(wanted), "{wanted}: {error}");
    }
    // The name of a CSV is unique in a namespace.
    let mut valid = csv("1.0.0", None);
    valid["metadata"]["namespace"] = "team".into();
    cluster.create(&CLUSTER_SERVICE_VERSION, &object(valid.clone())).await.unwrap();
    let error = cluster.create(&CLUSTER_SERVICE_VERSION, &object(valid)).await.unwrap_err();
    assert!(error.is_already_exists(), "{error}");
}

#[tokio::test]
async fn operator_gets_all_permissions_of_its_csv() {
    let olm = OlmCluster::start(&[]).await;
    olm.publish_edited(&["1.0.0"], |_, bundle| {
        edit_csv(bundle, |csv| {
            csv["spec"]["install"]["spec"]["clusterPermissions"] = json!([{
                "serviceAccountName": "anvil", "rules": [
                    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                    {"nonResourceURLs": ["*"], "verbs": ["*"]},
                ],
            }]);
        });
    });
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let csv = olm.wait_until_succeeded("anvil.v1.0.0").await;
    let needs = csv.array(&["status", "requirementStatus"]);
    let account = needs.iter().find(|requirement| requirement["kind"] == "ServiceAccount").unwrap();
    let satisfied = |requirement: &Value| requirement["status"] == "Satisfied";
    // shows CSV-04
    assert!(account["dependents"].as_array().unwrap().iter().all(satisfied), "{account}");
    let operator = olm.cluster.cluster_as_account("team", "anvil");
    operator.list(&builtin::SECRET, Some("kube-system"), &ObjectList::default()).await.unwrap();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "all"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    });
    operator.create(&builtin::CLUSTER_ROLE, &object(role)).await.unwrap();
    operator
        .get_raw("/metrics")
        .await
        .err()
        .iter()
        .for_each(|error| assert!(!error.is_forbidden(), "{error}"));
}

#[tokio::test]
async fn dependency_is_installed_beside_its_dependent_with_its_own_service_account() {
    let edit = |name: &str, csv: &mut Value| {
        let spec = &mut csv["spec"];
        if name == "anvil.v1.0.0" {
            let needed = &mut spec["customresourcedefinitions"]["required"][0];
            needed["displayName"] = "Chisel".into();
            needed["description"] = "What it is cut with.".into();
            return;
        }
        let install = &mut spec["install"]["spec"];
        install["permissions"][0]["serviceAccountName"] = "chisel".into();
        let pod = &mut install["deployments"][0]["spec"]["template"]["spec"];
        pod["serviceAccountName"] = "chisel".into();
    };
    let olm = OlmCluster::start(&[]).await;
    olm.publish_text(&catalog(&[NEEDY, CHISEL], &edit, &[]));
    olm.apply_group("og").await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let anvil = olm.wait_until_succeeded("anvil.v1.0.0").await;
    // shows CSV-65
    olm.wait_until_succeeded("chisel.v1.0.0").await;
    let needed = &anvil.array(&["spec", "customresourcedefinitions", "required"])[0];
    // shows CSV-65
    assert_eq!(
        needed,
        &json!({
            "name": "chisels.forge.example.com", "kind": "Chisel", "version": "v1",
            "displayName": "Chisel", "description": "What it is cut with.",
        })
    );
    let status = anvil.array(&["status", "requirementStatus"]);
    let met = status.iter().find(|requirement| requirement["name"] == needed["name"]).unwrap();
    // shows CSV-65
    assert_eq!(met["status"], "Present");
    let cluster = olm.cluster.cluster();
    for name in ["anvil", "chisel"] {
        let account = cluster.find(&builtin::SERVICE_ACCOUNT, Some("team"), name).await.unwrap();
        // shows CSV-65
        assert!(account.is_some(), "{name}");
        let operator = olm.cluster.cluster_as_account("team", name);
        operator.list(&builtin::CONFIG_MAP, Some("team"), &ObjectList::default()).await.unwrap();
    }
}

#[tokio::test]
async fn lists_of_subscriptions_and_csvs_have_the_printer_columns_of_kubectl() {
    const NAME: &str = "elasticsearch-operator.5.0.0-65";
    let olm = OlmCluster::start(&[]).await;
    let mut version = csv("5.0.0-65", None);
    version["metadata"]["name"] = NAME.into();
    version["spec"]["displayName"] = "OpenShift Elasticsearch Operator".into();
    let text = crate::olm_cluster::catalog(&["5.0.0-65"], |_, bundle| {
        edit_csv(bundle, |csv| *csv = version.clone());
    });
    let text = text
        .replace("\"stable\"", "\"5.0\"")
        .replace("\"anvil.v5.0.0-65\"", &format!("\"{NAME}\""))
        .replace("\"anvil\"", "\"elasticsearch-operator\"");
    olm.publish_text(&text);
    olm.apply_group("og").await;
    let spec = json!({"name": "elasticsearch-operator", "channel": "5.0"});
    subscribe(&olm, "elasticsearch-operator", spec).await;
    wait_until_latest(&olm, "elasticsearch-operator", NAME).await;
    olm.wait_until_succeeded(NAME).await;
    let row = kubectl_get_rows(&olm, &SUBSCRIPTION).await.remove(0);
    // shows AT-CSV-01 SUB-24
    assert_eq!(
        row,
        json!({
            "NAME": "elasticsearch-operator", "PACKAGE": "elasticsearch-operator", "SOURCE": "cat",
            "CHANNEL": "5.0",
        })
    );
    let row = kubectl_get_rows(&olm, &CLUSTER_SERVICE_VERSION).await.remove(0);
    let mut columns: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    columns.retain(|column| !["AGE", "RELEASE"].contains(column));
    columns.sort_unstable();
    // shows CSV-10
    assert_eq!(columns, ["DISPLAY", "NAME", "PHASE", "REPLACES", "VERSION"]);
    let wanted = json!({
        "NAME": NAME, "DISPLAY": "OpenShift Elasticsearch Operator", "VERSION": "5.0.0-65",
        "PHASE": "Succeeded",
    });
    // shows AT-CSV-01
    assert_contains(&row, &wanted, "csv");
}

#[tokio::test]
async fn catalog_without_a_publisher_has_an_empty_column_and_its_packages_have_its_name() {
    let olm = OlmCluster::start(&[]).await;
    let registry = crate::registry::Registry::start(&["1.0.0"]).await;
    let source = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "my-operator-catalog", "namespace": "team"},
        "spec": {
            "sourceType": "grpc", "address": registry.address, "displayName": "My Operator Catalog",
        },
    });
    olm.cluster.apply(object(source)).await;
    let ready = |source: &Object| {
        source.str(&["status", "connectionState", "lastObservedState"]) == Some("READY")
    };
    let sources = &mainstay_api::resources::CATALOG_SOURCE;
    olm.cluster.wait_for(sources, Some("team"), "my-operator-catalog", ready).await;
    let mut row = kubectl_get_rows(&olm, sources).await.remove(0);
    let is_age = |age: &Value| age.as_str().is_some_and(|age| age.ends_with('s'));
    assert!(is_age(&row["AGE"].take()));
    // An empty cell.
    // shows AT-OUT-03
    assert_eq!(
        row,
        json!({
            "NAME": "my-operator-catalog", "DISPLAY": "My Operator Catalog", "TYPE": "grpc",
            "PUBLISHER": null, "AGE": null,
        })
    );
    let packages = PackageManifests::of(&olm).ask("packagemanifests", TABLE).await;
    let rows = rows_by_column(parse_table(&packages));
    assert_eq!(rows.len(), 1, "{rows:?}");
    // shows AT-OUT-03
    assert_eq!(
        (&rows[0]["NAME"], &rows[0]["CATALOG"]),
        (&json!("anvil"), &json!("My Operator Catalog"))
    );
    assert!(is_age(&rows[0]["AGE"]), "{rows:?}");
}
