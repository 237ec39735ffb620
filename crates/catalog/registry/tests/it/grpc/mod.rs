//! The gRPC API, called by a client over a connection.

mod answers;
mod service;

use base64::{Engine, engine::general_purpose::STANDARD};
use mainstay_catalog::{BlobOrigin, Catalog, CatalogDocuments};
use mainstay_registry::{
    RegistryIndex, ServedCatalog, ServedCatalogs,
    grpc::service_until,
    http::CatalogHttpApi,
    json::{RpcCallResult, call},
    server::{Limits, serve},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::SystemTime};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

/// A server on a port, with a client.
struct RegistryServer {
    served: Arc<ServedCatalog>,
    stop: CancellationToken,
    channel: Channel,
    serving: JoinHandle<()>,
}

impl RegistryServer {
    async fn new(content: Option<Arc<RegistryIndex>>) -> Self {
        let served = Arc::new(ServedCatalog::new("mine"));
        if let Some(content) = content {
            served.put(content);
        }
        Self::of(served).await
    }

    async fn of(served: Arc<ServedCatalog>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let grpc = service_until(Arc::clone(&served), stop.clone());
        let http = CatalogHttpApi::new(Arc::new(ServedCatalogs::default()));
        let serving =
            tokio::spawn(serve(listener, http, grpc, Limits::default(), None, stop.clone()));
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        Self { served, stop, channel: endpoint.connect().await.unwrap(), serving }
    }

    async fn ask(&self, rpc: &str, request: &Value) -> RpcCallResult {
        call(self.channel.clone(), rpc, request, &[]).await.unwrap()
    }

    /// The messages of a successful call.
    async fn get(&self, rpc: &str, request: Value) -> Vec<Value> {
        let answer = self.ask(rpc, &request).await;
        assert_eq!(answer.code, "OK", "{rpc} {request}: {}", answer.message);
        answer.messages
    }

    async fn close(self) {
        drop(self.channel);
        self.stop.cancel();
        self.serving.await.unwrap();
    }
}

fn index_of(documents: Vec<Value>) -> Arc<RegistryIndex> {
    let origin = BlobOrigin { file: "a.json".into(), line: 1 };
    let documents = documents.into_iter().map(|document| (origin.clone(), document));
    let catalog: Arc<Catalog> = CatalogDocuments::of(documents).unwrap().check().unwrap();
    Arc::new(RegistryIndex::new(catalog, SystemTime::UNIX_EPOCH))
}

fn package(name: &str, default: &str) -> Value {
    json!({"schema": "olm.package", "name": name, "defaultChannel": default, "description": "of all",
        "icon": {"base64data": "AAAA", "mediatype": "image/png"}})
}

fn channel(package: &str, name: &str, entries: &Value) -> Value {
    json!({"schema": "olm.channel", "package": package, "name": name, "entries": entries})
}

fn bundle(package: &str, version: &str, image: &str, more: &Value) -> Value {
    let mut properties =
        vec![json!({"type": "olm.package", "value": {"packageName": package, "version": version}})];
    properties.extend(more.as_array().unwrap().iter().cloned());
    json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
        "image": image, "properties": properties})
}

fn provides(kind: &str) -> Value {
    json!({"type": "olm.gvk", "value": {"group": "g.io", "version": "v1", "kind": kind}})
}

fn object(text: &str) -> Value {
    json!({"type": "olm.bundle.object", "value": {"data": STANDARD.encode(text)}})
}

const CSV: &str = "{\"kind\": \"ClusterServiceVersion\",  \"metadata\": {}}";

/// Two packages that provide the same API; bundles with manifests, with metadata, with an image.
fn fruits() -> Arc<RegistryIndex> {
    index_of(vec![
        package("kiwi", "stable"),
        channel(
            "kiwi",
            "stable",
            &json!([{"name": "kiwi.v1.0.0"},
                {"name": "kiwi.v1.1.0", "replaces": "kiwi.v1.0.0"},
                {"name": "kiwi.v1.2.0", "replaces": "kiwi.v1.1.0", "skips": ["kiwi.v1.0.0", "kiwi.v1.1.0", "gone"],
                    "skipRange": "<1.2.0"},
            ]),
        ),
        channel("kiwi", "alpha", &json!([{"name": "kiwi.v1.2.0"}])),
        bundle("kiwi", "1.0.0", "x.io/kiwi:1", &json!([provides("Kiwi"), object(CSV)])),
        bundle("kiwi", "1.1.0", "", &json!([object("kind: Other\n"), object(CSV)])),
        bundle(
            "kiwi",
            "1.2.0",
            "x.io/kiwi:3",
            &json!([
                provides("Kiwi"),
                {"type": "olm.gvk.required", "value": {"group": "n.io", "version": "v1", "kind": "Nut"}},
                {"type": "olm.package.required", "value": {"packageName": "nut", "versionRange": ">1.0.0 <2.0.0"}},
                {"type": "olm.csv.metadata", "value": {"displayName": "Kiwi <3"}},
                {"type": "own", "value": [1.0, "<"]},
            ]),
        ),
        package("plum", "old"),
        channel("plum", "old", &json!([{"name": "plum.v2.0.0"}])),
        channel("plum", "new", &json!([{"name": "plum.v3.0.0", "replaces": "plum.v2.0.0"}])),
        bundle("plum", "2.0.0", "x.io/plum:2", &json!([])),
        bundle("plum", "3.0.0", "x.io/plum:3", &json!([provides("Kiwi"), provides("Plum")])),
        json!({"schema": "olm.deprecations", "package": "plum", "entries": [
            {"reference": {"schema": "olm.package"}, "message": "all old"},
            {"reference": {"schema": "olm.channel", "name": "old"}, "message": "old channel"},
            {"reference": {"schema": "olm.bundle", "name": "plum.v2.0.0"}, "message": "old bundle"},
        ]}),
        json!({"schema": "my.notes", "package": "plum", "name": "a", "n": 3, "list": [null, true]}),
        json!({"schema": "my.notes", "name": "free"}),
    ])
}
