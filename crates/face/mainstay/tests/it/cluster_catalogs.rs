//! `mainstay catalog` with ClusterCatalogs: those of a running `mainstay up`, and one behind the Service
//! proxy of an API server.

use crate::harness::{Up, mainstay, tls_cluster, until};
use mainstay_api::resources::CLUSTER_CATALOG;
use mainstay_client::{Cluster, Patch};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/sample");

/// The exit code, standard output and standard error of `mainstay catalog`.
fn catalog(kubeconfig: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = mainstay();
    command.arg("catalog").args(arguments).env("KUBECONFIG", kubeconfig);
    let output = command.output().expect("it runs");
    let [out, err] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    (output.status.code(), out, err)
}

async fn until_serving(cluster: &Cluster, wanted: bool) {
    until(cluster, &CLUSTER_CATALOG, None, |catalog: &Object| {
        let conditions = catalog.array(&["status", "conditions"]);
        let serving = conditions.iter().find(|condition| condition["type"] == "Serving")?;
        ((serving["status"] == "True") == wanted).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn served_cluster_catalog_is_read_like_its_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory", "--catalog", &format!("demo={SAMPLE}")]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    until_serving(&cluster, true).await;
    for arguments in [
        &["list", "packages", "PATH"][..],
        &["list", "bundles", "PATH", "teapot-operator", "-o", "json"],
        &["graph", "PATH", "teapot-operator"],
        &["render", "PATH", "--package", "teapot-operator"],
    ] {
        let [local, served] = [SAMPLE, "clustercatalog/demo"].map(|path| {
            let words = arguments.iter().map(|word| if *word == "PATH" { path } else { *word });
            catalog(&up.kubeconfig, &words.collect::<Vec<_>>())
        });
        assert_eq!(served, local, "{arguments:?}");
        assert_eq!(local.0, Some(0), "{local:?}");
    }
    let (code, out, err) = catalog(&up.kubeconfig, &["search", "warm coffee", "-o", "json"]);
    let found: Value = serde_json::from_str(&out).unwrap_or_default();
    assert_eq!((code, &*err), (Some(0), ""), "{out}");
    assert_eq!(found[0]["catalog"], "clustercatalog/demo", "{out}");
    assert_eq!(found[0]["package"], "teapot-operator", "{out}");

    let (code, _, err) = catalog(&up.kubeconfig, &["list", "packages", "clustercatalog/dem"]);
    assert!(code == Some(2) && err.contains("did you mean demo?"), "{code:?} {err}");

    let other = rcgen::generate_simple_self_signed(["other".to_owned()]).expect("a certificate");
    let patch = Patch::Merge(json!({"data": {"ca.crt": other.cert.pem()}}));
    cluster
        .patch(&builtin::CONFIG_MAP, Some("olmv1-system"), "catalogd-ca", &patch)
        .await
        .expect("patched");
    let (code, _, err) = catalog(&up.kubeconfig, &["list", "packages", "clustercatalog/demo"]);
    let remedy = "compare its CA with the ConfigMap";
    assert!(code == Some(1) && err.contains(remedy), "{code:?} {err}");

    let patch = Patch::Merge(json!({"spec": {"availabilityMode": "Unavailable"}}));
    cluster.patch(&CLUSTER_CATALOG, None, "demo", &patch).await.expect("patched");
    until_serving(&cluster, false).await;
    let (code, _, err) = catalog(&up.kubeconfig, &["list", "packages", "clustercatalog/demo"]);
    assert!(code == Some(2) && err.contains("is switched off"), "{code:?} {err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn extensions_alone_serve_a_catalog_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let catalog_folder = format!("demo={SAMPLE}");
    let arguments = ["--in-memory", "--controllers", "extensions", "--catalog", &catalog_folder];
    let up = Up::start(folder.path(), &arguments);
    let cluster = tls_cluster(&up.kubeconfig).await;
    until_serving(&cluster, true).await;
    let list = ["list", "packages"];
    let served = catalog(&up.kubeconfig, &[&list[..], &["clustercatalog/demo"]].concat());
    assert_eq!(served, catalog(&up.kubeconfig, &[&list[..], &[SAMPLE]].concat()));
    let lease = cluster.find(&builtin::LEASE, Some("olm"), "mainstay").await.expect("readable");
    assert!(lease.is_some(), "`mainstay run` must not work beside the embedded controllers");
}

/// The response of an API server that proxies to a catalog server: status and body.
fn proxied(path: &str, documents: &str) -> (u16, String) {
    const PROXY: &str =
        "/api/v1/namespaces/olmv1-system/services/https:catalogd-service:443/proxy/catalogs";
    let status = |message: &str| json!({"kind": "Status", "message": message}).to_string();
    let Some(below) = path.strip_prefix(PROXY) else {
        let name = path.rsplit('/').next().unwrap_or_default();
        let base = format!("https://catalogd-service.olmv1-system.svc/catalogs/{name}");
        let catalog = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": name},
            "status": {
                "urls": {"base": base},
                "conditions": [{"type": "Serving", "status": "True", "reason": "Available"}],
            },
        });
        return (200, catalog.to_string());
    };
    match below {
        "/demo/api/v1/all" => (200, documents.to_owned()),
        _ if below.starts_with("/demo/") => (404, "404 page not found".to_owned()),
        _ if below.starts_with("/secret/") => (403, status("services \"proxy\" is forbidden")),
        _ => (503, status("no endpoints available for service \"catalogd-service\"")),
    }
}

/// Responds to one request.
fn respond(mut stream: TcpStream, documents: &str) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, body) = proxied(path, documents);
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} x\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

#[test]
fn cluster_catalog_with_an_address_in_the_cluster_is_read_through_the_service_proxy() {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    let (_, documents, _) = catalog(&kubeconfig, &["render", SAMPLE]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = format!("http://{}", listener.local_addr().expect("an address"));
    // The thread ends with the process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that went away fails its own test.
            let _ = respond(stream, &documents);
        }
    });
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
    });
    std::fs::write(&kubeconfig, text.to_string()).expect("written");
    let list = |path: &str| catalog(&kubeconfig, &["list", "bundles", path, "teapot-operator"]);
    assert_eq!(list("clustercatalog/demo"), list(SAMPLE));
    for (name, reason, remedy) in [
        ("down", "no endpoints available", "kubectl -n olmv1-system get endpointslices"),
        ("secret", "is forbidden", "kubectl auth can-i get services/proxy -n olmv1-system"),
    ] {
        let (code, out, err) = list(&format!("clustercatalog/{name}"));
        assert_eq!((code, &*out), (Some(1), ""), "{err}");
        assert!(err.contains(reason) && err.contains(remedy), "{err}");
    }
}
