//! Catalog folders of `mainstay up`: edited, broken and repaired while the cluster runs.

use crate::harness::{Up, http_get, tls_client, tls_cluster, until};
use mainstay_api::resources::{CATALOG_SOURCE, SUBSCRIPTION};
use mainstay_client::Cluster;
use mainstay_object::Object;
use serde_json::json;
use std::path::Path;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample");

fn copy_sample(to: &Path) {
    for entry in std::fs::read_dir(SAMPLE).expect("the sample catalog") {
        let package = entry.expect("an entry").file_name();
        std::fs::create_dir_all(to.join(&package)).expect("a folder");
        let file = Path::new(&package).join("catalog.yaml");
        std::fs::copy(Path::new(SAMPLE).join(&file), to.join(&file)).expect("a copy");
    }
}

async fn state(cluster: &Cluster, wanted: &str) -> Object {
    until(cluster, &CATALOG_SOURCE, Some("olm"), |source| {
        (source.str(&["status", "connectionState", "lastObservedState"]) == Some(wanted))
            .then(|| source.clone())
    })
    .await
}

/// The CSV that a Subscription in the namespace `default` to a channel of the teapot package resolves
/// to.
async fn resolves(cluster: &Cluster, name: &str, channel: &str) -> Result<String, String> {
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "group", "namespace": name}, "spec": {"targetNamespaces": [name]},
    });
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let subscription = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "teapot", "namespace": name},
        "spec": {"name": "teapot-operator", "channel": channel, "source": "mine", "sourceNamespace": "olm"},
    });
    for (resource, value) in [
        (mainstay_object::builtin::NAMESPACE, namespace),
        (mainstay_api::resources::OPERATOR_GROUP, group),
        (SUBSCRIPTION, subscription),
    ] {
        let object = Object::from_value(value).expect("an object");
        cluster.create(&resource, &object).await.expect("created");
    }
    until(cluster, &SUBSCRIPTION, Some(name), |object| {
        if let Some(csv) = object.str(&["status", "currentCSV"]) {
            return Some(Ok(csv.to_owned()));
        }
        let conditions = object.array(&["status", "conditions"]).iter();
        let failed = conditions.filter(|condition| {
            condition["type"] == "ResolutionFailed" && condition["status"] == "True"
        });
        failed
            .map(|condition| Err(condition["message"].as_str().unwrap_or_default().to_owned()))
            .next()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn catalog_is_served_at_the_address_of_its_catalog_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let catalog = folder.path().join("catalog");
    copy_sample(&catalog);
    let argument = format!("mine={}", catalog.display());
    let up = Up::start(folder.path(), &["--in-memory", "--catalog", &argument]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    let address = |source: &Object| {
        source.str(&["status", "connectionState", "address"]).expect("an address").to_owned()
    };
    let first = address(&state(&cluster, "READY").await);
    let query = "/catalogs/mine/api/v1/metas?schema=olm.package&name=teapot-operator";
    let (status, package) = http_get(&first, query);
    assert_eq!(status, 200);
    assert!(package.contains("\"defaultChannel\":\"stable\""), "{package}");
    assert_eq!(http_get(&first, "/catalogs/other/api/v1/all").0, 404);

    // The API server's metrics have the catalog's state.
    let client = tls_client(&up.kubeconfig).await;
    let asked = http::Request::get("/metrics").body(Vec::new()).expect("a request");
    let page = client.request_text(asked).await.expect("the page");
    for series in ["catalogsource_ready{name=\"mine\",namespace=\"olm\"} 1", "csv_count 0"] {
        assert!(page.lines().any(|line| line == series), "{series} is missing:\n{page}");
    }

    // Broken content is not served; the previous content still is.
    std::fs::write(catalog.join("teapot-operator/catalog.yaml"), "x: [").expect("written");
    assert_eq!(address(&state(&cluster, "TRANSIENT_FAILURE").await), first);
    assert_eq!(http_get(&first, query), (200, package));
    let (well, said) = up.stop("TERM");
    assert!(well);
    assert!(said.contains(&format!("grpc {first}  http://{first}/catalogs/mine\n")), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_catalog_folder_keeps_its_last_valid_content_across_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    let catalog = folder.path().join("catalog");
    copy_sample(&catalog);
    let argument = format!("mine={}", catalog.display());
    let data = data.to_str().expect("temporary paths are text");
    let up = Up::start(folder.path(), &["--data-dir", data, "--catalog", &argument]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    state(&cluster, "READY").await;

    // Cut the file off in the middle of a mapping.
    let file = catalog.join("teapot-operator/catalog.yaml");
    let good = std::fs::read_to_string(&file).expect("the file");
    let cut = good.find("entries:").expect("a channel") + "entries:\n- name".len();
    std::fs::write(&file, format!("{}: \"teapot", &good[..cut])).expect("written");
    let source = state(&cluster, "TRANSIENT_FAILURE").await;
    let message = source.str(&["status", "message"]).unwrap_or_default();
    assert!(message.contains("teapot-operator/catalog.yaml:"), "{message}");
    assert_eq!(resolves(&cluster, "one", "stable").await.as_deref(), Ok("teapot-operator.v1.2.0"));

    let (well, _) = up.stop("TERM");
    assert!(well);
    // Without --catalog: the data folder has the catalog's name and folder.
    let up = Up::start(folder.path(), &["--data-dir", data]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    state(&cluster, "TRANSIENT_FAILURE").await;
    assert_eq!(resolves(&cluster, "two", "fast").await.as_deref(), Ok("teapot-operator.v2.0.0"));

    // Repaired, and with another channel.
    std::fs::write(&file, good.replace("name: fast", "name: faster")).expect("written");
    state(&cluster, "READY").await;
    assert_eq!(
        resolves(&cluster, "three", "faster").await.as_deref(),
        Ok("teapot-operator.v2.0.0")
    );
    let gone = resolves(&cluster, "four", "fast").await.unwrap_err();
    assert!(
        gone.contains("no operators found in channel fast of package teapot-operator"),
        "{gone}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn catalog_folder_replaces_the_default_catalog_source_of_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let defaults = folder.path().join("defaults");
    std::fs::create_dir_all(&defaults).expect("a folder");
    let manifest = |name: &str| {
        format!(
            "kind: CatalogSource\nmetadata: {{name: {name}}}\nspec: {{sourceType: grpc, image: 'localhost/{name}:v1'}}\n"
        )
    };
    let text = format!("{}---\n{}", manifest("mine"), manifest("other"));
    std::fs::write(defaults.join("all.yaml"), text).expect("a file");
    let (data, defaults) =
        (folder.path().join("data").display().to_string(), defaults.display().to_string());
    let arguments = ["--data-dir", &data, "--default-sources", &defaults];
    let up = Up::start(folder.path(), &arguments);
    let cluster = tls_cluster(&up.kubeconfig).await;
    let image = |name: &'static str| {
        move |pod: &Object| {
            let image = pod.str(&["spec", "image"]).unwrap_or_default().to_owned();
            (pod.name() == name).then_some(image)
        }
    };
    for (name, wanted) in [("mine", "localhost/mine:v1"), ("other", "localhost/other:v1")] {
        // shows HUB-04
        assert_eq!(until(&cluster, &CATALOG_SOURCE, Some("olm"), image(name)).await, wanted);
    }
    assert!(up.stop("TERM").0);
    let source = folder.path().join("catalog");
    crate::packages::catalog(&source, &["kiwi"]);
    let catalog = format!("mine={}", source.display());
    let up = Up::start(folder.path(), &[&arguments[..], &["--catalog", &catalog]].concat());
    let cluster = tls_cluster(&up.kubeconfig).await;
    let ready = |source: &Object| {
        let state = source.str(&["status", "connectionState", "lastObservedState"]);
        (source.name() == "mine" && state == Some("READY")).then(|| source.clone())
    };
    let mine = until(&cluster, &CATALOG_SOURCE, Some("olm"), ready).await;
    assert_eq!(mine.str(&["spec", "image"]), None);
    assert_eq!(
        until(&cluster, &CATALOG_SOURCE, Some("olm"), image("other")).await,
        "localhost/other:v1"
    );
}
