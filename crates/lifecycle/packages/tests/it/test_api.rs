//! A PackageManifest API over catalogs that tests replace.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use http::{Request, Response};
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_clock::Clock;
use mainstay_object::NamespacedName;
use mainstay_packages::{PackageApi, PackageSource, PackageSources, ResponseBody};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

pub(crate) const ROOT: &str = "/apis/packages.operators.coreos.com/v1";
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

type OnChange = Box<dyn Fn() + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct TestCatalogs(Arc<Mutex<(Vec<PackageSource>, Vec<OnChange>)>>);

impl PackageSources for TestCatalogs {
    fn now(&self) -> Vec<PackageSource> {
        self.0.lock().unwrap().0.clone()
    }

    fn subscribe(&self, on_change: OnChange) {
        self.0.lock().unwrap().1.push(on_change);
    }
}

pub(crate) struct TestApi {
    catalogs: TestCatalogs,
    packages: PackageApi,
    pub(crate) stop: CancellationToken,
}

/// The catalog with these documents.
pub(crate) fn catalog(documents: &[Value]) -> Arc<Catalog> {
    let folder = tempfile::tempdir().unwrap();
    let text: Vec<String> = documents.iter().map(Value::to_string).collect();
    std::fs::write(folder.path().join("catalog.json"), text.join("\n")).unwrap();
    Catalog::load(folder.path(), &LoadOptions::default()).unwrap()
}

/// A minimal ClusterServiceVersion.
pub(crate) fn csv(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("{name}.v{version}")},
        "spec": {"displayName": name.to_uppercase(), "version": version},
    })
}

/// A bundle that carries these manifests.
pub(crate) fn bundle(package: &str, version: &str, manifests: &[Value]) -> Value {
    let object = |manifest: &Value| json!({"type": "olm.bundle.object", "value": {"data": STANDARD.encode(manifest.to_string())}});
    let mut properties =
        vec![json!({"type": "olm.package", "value": {"packageName": package, "version": version}})];
    properties.extend(manifests.iter().map(object));
    json!({
        "schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
        "image": "registry.invalid/bundle", "properties": properties,
    })
}

/// A channel in which each version replaces the one before.
pub(crate) fn channel(package: &str, name: &str, versions: &[&str]) -> Value {
    let entry = |(at, version): (usize, &&str)| {
        let mut entry = json!({"name": format!("{package}.v{version}")});
        if let Some(before) = at.checked_sub(1) {
            entry["replaces"] = format!("{package}.v{}", versions[before]).into();
        }
        entry
    };
    let entries: Vec<Value> = versions.iter().enumerate().map(entry).collect();
    json!({"schema": "olm.channel", "package": package, "name": name, "entries": entries})
}

pub(crate) fn package(name: &str, default_channel: &str) -> Value {
    json!({"schema": "olm.package", "name": name, "defaultChannel": default_channel})
}

/// A package with one channel and one version.
pub(crate) fn simple(name: &str, version: &str) -> Vec<Value> {
    vec![
        package(name, "stable"),
        channel(name, "stable", &[version]),
        bundle(name, version, &[csv(name, version)]),
    ]
}

pub(crate) fn source(namespace: &str, name: &str, content: Option<Arc<Catalog>>) -> PackageSource {
    PackageSource {
        key: NamespacedName::new(namespace, name),
        display_name: format!("Catalog {name}"),
        publisher: "tests".to_owned(),
        labels: [("of".to_owned(), name.to_owned())].into(),
        created: Some("2025-12-31T23:00:00Z".to_owned()),
        priority: 0,
        content,
    }
}

impl TestApi {
    pub(crate) fn new(sources: Vec<PackageSource>) -> Self {
        let (catalogs, stop) = (TestCatalogs::default(), CancellationToken::new());
        catalogs.0.lock().unwrap().0 = sources;
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let packages = PackageApi::new("olm", clock, stop.clone());
        packages.attach(catalogs.clone());
        Self { catalogs, packages, stop }
    }

    /// Replaces the catalogs.
    pub(crate) fn set_catalogs(&self, sources: Vec<PackageSource>) {
        let mut inner = self.catalogs.0.lock().unwrap();
        inner.0 = sources;
        inner.1.iter().for_each(|on_change| on_change());
    }

    pub(crate) async fn send(&self, request: Request<()>) -> Response<ResponseBody> {
        self.packages.answer(&request).await
    }

    /// The status code and the body of a response.
    pub(crate) async fn get_bytes(&self, path: &str, accept: &str) -> (u16, Vec<u8>) {
        let request = Request::get(path).header("accept", accept).body(()).unwrap();
        let response = self.send(request).await;
        (response.status().as_u16(), whole(response).await)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.get_as(path, "application/json").await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Value {
        let (code, bytes) = self.get_bytes(&format!("{ROOT}{path}"), accept).await;
        assert_eq!(code, 200, "{}", String::from_utf8_lossy(&bytes));
        serde_json::from_slice(&bytes).unwrap()
    }

    /// The code and the message of an error response.
    pub(crate) async fn get_error(&self, path: &str) -> (u16, String) {
        let (code, bytes) = self.get_bytes(&format!("{ROOT}{path}"), "application/json").await;
        let status: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)));
        (code, status["message"].as_str().unwrap().to_owned())
    }

    /// Namespace, name and catalog of each listed package.
    pub(crate) async fn list_packages(&self, path: &str) -> Vec<String> {
        let list = self.get(path).await;
        assert_eq!(list["kind"], "PackageManifestList");
        list["items"].as_array().unwrap().iter().map(package_text).collect()
    }

    pub(crate) async fn watch(&self, path: &str) -> Events {
        let request = Request::get(format!("{ROOT}{path}")).body(()).unwrap();
        match self.send(request).await.into_body() {
            ResponseBody::Stream(lines) => Events(lines),
            ResponseBody::Whole(line) => Events(futures::stream::iter([line]).boxed()),
            ResponseBody::Pieces(_) => panic!("a list"),
        }
    }
}

fn package_text(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    format!("{namespace}/{name} of {}", text("/status/catalogSource"))
}

pub(crate) async fn whole(response: Response<ResponseBody>) -> Vec<u8> {
    match response.into_body() {
        ResponseBody::Whole(bytes) => bytes.to_vec(),
        ResponseBody::Pieces(pieces) => pieces.flatten().collect(),
        ResponseBody::Stream(lines) => lines.collect::<Vec<_>>().await.concat(),
    }
}

/// The events of a watch.
pub(crate) struct Events(BoxStream<'static, bytes::Bytes>);

impl Events {
    /// The next event; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = self.0.next().await?;
        assert!(line.ends_with(b"\n"));
        Some(serde_json::from_slice(&line).unwrap())
    }

    /// The next event: its type, and namespace, name and catalog of the package.
    pub(crate) async fn next_summary(&mut self) -> String {
        let event = self.next().await.unwrap();
        format!("{} {}", event["type"].as_str().unwrap(), package_text(&event["object"]))
    }
}
