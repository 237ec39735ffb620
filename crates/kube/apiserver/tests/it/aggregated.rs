//! Aggregated API servers: OpenAPI documents, upgraded streams, and the responses of simulated
//! pods.

use crate::aggregation::service as registered;
use crate::harness::Api;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use mainstay_apiserver::NativeGroup;
use mainstay_apiserver::serve;
use mainstay_auth::Identity;
use mainstay_auth::pki::Pki;
use mainstay_clock::Clock;
use mainstay_http::Body;
use mainstay_object::Object;
use mainstay_store::{Change, Key, Precondition};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const ALL: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const NAME: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1.others.example.com";
const GROUP: &str = "/apis/others.example.com/v1";
const PAGE: &str = "/openapi/v3/apis/others.example.com/v1";

/// A group with OpenAPI documents. With `is_stalled`, it answers discovery only.
#[derive(Debug, Default)]
struct DocumentedGroup {
    requests: AtomicUsize,
    is_stalled: bool,
}

impl NativeGroup for DocumentedGroup {
    fn call(&self, _: &Identity, request: Request<Bytes>) -> BoxFuture<'_, Response<Body>> {
        let response_body = match request.uri().path() {
            "/openapi/v2" | "/openapi/v3" if self.is_stalled => {
                self.requests.fetch_add(1, Ordering::Relaxed);
                return Box::pin(std::future::pending());
            }
            GROUP => json!({"kind": "APIResourceList", "apiVersion": "v1", "resources": []}),
            "/openapi/v3" => json!({"paths": {
                "apis/others.example.com/v1": {"serverRelativeURL": format!("{PAGE}?hash=1")},
                "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=theirs"},
                "apis/another.example.com/v1": {"serverRelativeURL": "/openapi/v3/x"},
            }}),
            PAGE => json!({"openapi": "3.0.0", "asked": request.uri().to_string()}),
            "/openapi/v2" => json!({
                "swagger": "2.0",
                "paths": {
                    format!("{GROUP}/things"): {"get": {"schema": {"$ref": "#/definitions/Thing"}}},
                    "/version/": {"get": {}},
                },
                "definitions": {"Thing": {"type": "object"}, "Unused": {"type": "object"}},
            }),
            _ => Value::Null,
        };
        let mut response = Response::new(Body::from(Bytes::from(response_body.to_string())));
        if response_body.is_null() {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        Box::pin(async { response })
    }
}

async fn index(api: &Api) -> Value {
    serde_json::from_slice(&api.get("/openapi/v3").await.bytes).unwrap()
}

#[tokio::test]
async fn openapi_documents_include_those_of_aggregated_servers() {
    let api = Api::new().await;
    let before = api.get("/openapi/v2").await;
    api.server.put_native_group("default", "things", Arc::new(DocumentedGroup::default()));
    api.post(ALL, &registered("things")).await.ok();
    // Version 2 is fetched last.
    let mut after = api.get("/openapi/v2").await;
    while after.headers["etag"] == before.headers["etag"] {
        tokio::task::yield_now().await;
        after = api.get("/openapi/v2").await;
    }
    let (before, after) = (before.json(), after.json());
    assert_eq!(after["definitions"]["Thing"], json!({"type": "object"}));
    assert_eq!(after["definitions"].get("Unused"), None);
    assert!(after["paths"].get(format!("{GROUP}/things")).is_some());
    let count = |document: &Value| document["paths"].as_object().unwrap().len();
    assert_eq!(count(&after), count(&before) + 1);
    let paths = index(&api).await["paths"].clone();
    assert_eq!(
        paths["apis/others.example.com/v1"],
        json!({"serverRelativeURL": format!("{PAGE}?hash=1")})
    );
    assert_ne!(paths["apis/apps/v1"]["serverRelativeURL"], "/openapi/v3/apis/apps/v1?hash=theirs");
    assert_eq!(paths.get("apis/another.example.com/v1"), None, "it has no APIService");
    let document = api.get(&format!("{PAGE}?hash=1")).await.ok();
    assert_eq!(document["asked"], format!("{PAGE}?hash=1"));
    // They disappear with the APIService.
    api.delete(NAME, &Value::Null).await.ok();
    api.until(PAGE, 404).await;
    assert_eq!(index(&api).await["paths"].get("apis/others.example.com/v1"), None);
    assert_eq!(api.get("/openapi/v2").await.json()["definitions"].get("Thing"), None);
}

#[tokio::test]
async fn openapi_documents_do_not_wait_for_a_stalled_server() {
    let api = Api::new().await;
    let stalled_group =
        Arc::new(DocumentedGroup { is_stalled: true, ..DocumentedGroup::default() });
    api.server.put_native_group("default", "things", stalled_group.clone());
    api.post(ALL, &registered("things")).await.ok();
    while stalled_group.requests.load(Ordering::Relaxed) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(api.get("/openapi/v2").await, 200);
    assert!(index(&api).await["paths"].get("apis/apps/v1").is_some());
    assert_eq!(api.get("/apis").await, 200);
    assert_eq!(api.get(PAGE).await, 404);
}

async fn condition(api: &Api, reason: &str) -> Value {
    loop {
        let object = api.get(NAME).await.ok();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        if let Some(found) = conditions.iter().find(|entry| entry["reason"] == reason) {
            return found.clone();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_in_process_group_that_is_added_later_becomes_available_at_once() {
    let api = Api::new().await;
    api.post(ALL, &registered("things")).await.ok();
    condition(&api, "ServiceNotFound").await;
    api.server.put_native_group("default", "things", Arc::new(DocumentedGroup::default()));
    condition(&api, "Passed").await;
}

/// A group with a long response.
#[derive(Debug)]
struct LongGroup;

impl NativeGroup for LongGroup {
    fn call(&self, _: &Identity, request: Request<Bytes>) -> BoxFuture<'_, Response<Body>> {
        let response_body = match request.uri().path() {
            GROUP => Body::from(Bytes::from_static(b"{\"resources\":[]}")),
            _ => Body::chunks(std::iter::repeat_n(Bytes::from_static(&[b'a'; 1000]), 1000)),
        };
        Box::pin(async { Response::new(response_body) })
    }
}

#[tokio::test]
async fn responses_of_in_process_groups_are_compressed() {
    let api = Api::new().await;
    api.server.put_native_group("default", "things", Arc::new(LongGroup));
    api.post(ALL, &registered("things")).await.ok();
    condition(&api, "Passed").await;
    let path = format!("{GROUP}/things");
    let send = |encoding: &'static str| {
        let request = Request::get(&path).header("accept-encoding", encoding);
        let request = request.body(Full::new(Bytes::new())).unwrap();
        async { api.server.answer(&Identity::admin(), request).await }
    };
    // The proxy follows a moment after the condition.
    let mut compressed = send("gzip").await;
    while compressed.status() == StatusCode::SERVICE_UNAVAILABLE {
        tokio::task::yield_now().await;
        compressed = send("gzip").await;
    }
    assert_eq!(compressed.headers()["content-encoding"], "gzip");
    assert!(compressed.into_body().collect().await.unwrap().to_bytes().len() < 10_000);
    let plain = send("identity").await;
    assert_eq!(plain.headers().get("content-encoding"), None);
    assert_eq!(plain.into_body().collect().await.unwrap().to_bytes().len(), 1_000_000);
}

async fn put(api: &Api, storage: &'static str, value: Value) {
    let object = Object::from_value(value).unwrap();
    let key = Key::new(storage, "default", object.name());
    let change = Change::Put { key, object: &object, expect: Precondition::Absent, guard: None };
    api.store.commit(change).await.unwrap();
}

/// A Service with one endpoint: an address of this machine, or a pod.
async fn service(api: &Api, port: u16, pod: Option<&str>) {
    api.server.allow_local_endpoints();
    let service_object = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "things"},
        "spec": {"ports": [{"port": 443}]},
    });
    api.post("/api/v1/namespaces/default/services", &service_object).await.ok();
    let mut endpoint = json!({"addresses": ["127.0.0.1"]});
    if let Some(pod) = pod {
        endpoint = json!({
            "addresses": ["10.1.2.3"], "targetRef": {"kind": "Pod", "namespace": "default", "name": pod},
        });
    }
    // Written directly to the store: validation refuses loopback addresses.
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "things-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "things"}},
        "endpoints": [endpoint], "ports": [{"name": "", "port": port}],
    });
    put(api, "discovery.k8s.io/endpointslices", slice).await;
}

#[tokio::test]
async fn a_simulated_pod_answers_discovery_unless_annotated_otherwise() {
    for (answers, reason) in [("true", "Passed"), ("false", "FailedDiscoveryCheck")] {
        let api = Api::new().await;
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "things-0", "namespace": "default", "annotations": {"mainstay.dev/answers": answers}},
            "spec": {"containers": [{"name": "a", "image": "i"}]}, "status": {"podIP": "10.1.2.3"},
        });
        put(&api, "pods", pod).await;
        service(&api, 443, Some("things-0")).await;
        api.post(ALL, &registered("things")).await.ok();
        let found = condition(&api, reason).await;
        if answers == "false" {
            let message = found["message"].as_str().unwrap();
            assert!(message.contains("connection refused"), "{message}");
            assert_eq!(api.get(GROUP).await, 503);
            continue;
        }
        while api.get(GROUP).await.code == 503 {
            tokio::task::yield_now().await;
        }
        let list = api.get(GROUP).await.ok();
        assert_eq!((&list["kind"], &list["resources"]), (&json!("APIResourceList"), &json!([])));
        assert_eq!(api.get(&format!("{GROUP}/things")).await.refused().0, 404);
    }
}

/// A server that answers discovery, and returns upper-case text in its own protocol.
async fn echo() -> (u16, Pki, CancellationToken) {
    let clock = Clock::system();
    let pki = Pki::ephemeral(&clock, &["things.default.svc".to_owned()]).unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let echo_service =
        tower::service_fn(|mut request: Request<mainstay_port::TrackedBody>| async move {
            let mut response = Response::new(Full::new(Bytes::from_static(b"{\"resources\":[]}")));
            if request.headers().get("upgrade").is_some_and(|to| to == "shout/1") {
                *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
                response.headers_mut().insert("connection", "Upgrade".parse().unwrap());
                response.headers_mut().insert("upgrade", "shout/1".parse().unwrap());
                response.headers_mut().insert("x-user", request.headers()["x-remote-user"].clone());
                let upgraded = hyper::upgrade::on(&mut request);
                tokio::spawn(async move {
                    let mut stream = TokioIo::new(upgraded.await.unwrap());
                    let mut buffer = [0; 100];
                    while let Ok(read) = stream.read(&mut buffer).await
                        && read > 0
                    {
                        stream.write_all(&buffer[..read].to_ascii_uppercase()).await.unwrap();
                    }
                });
            }
            Ok::<_, std::convert::Infallible>(response)
        });
    let stop = CancellationToken::new();
    let tls = pki.server_config().unwrap();
    tokio::spawn(serve::serve(listener, tls, serve::Limits::default(), stop.clone(), echo_service));
    (port, pki, stop)
}

#[tokio::test]
async fn an_upgraded_stream_is_proxied_in_both_directions() {
    let (port, pki, stop) = echo().await;
    let api = Api::new().await;
    service(&api, port, None).await;
    let mut api_service = registered("things");
    api_service["spec"]["insecureSkipTLSVerify"] = false.into();
    api_service["spec"]["caBundle"] = STANDARD.encode(pki.authority_pem()).into();
    api.post(ALL, &api_service).await.ok();
    condition(&api, "Passed").await;
    while api.get(GROUP).await.code == 503 {
        tokio::task::yield_now().await;
    }
    let (client_side, server_side) = tokio::io::duplex(1024);
    let service = TowerToHyperService::new(api.server.service(Identity::admin()));
    tokio::spawn(async move {
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(server_side), service);
        // It ends when its client disconnects.
        let _ = connection.with_upgrades().await;
    });
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(client_side)).await.unwrap();
    tokio::spawn(async move {
        let _ = connection.with_upgrades().await;
    });
    let request = Request::post(format!("{GROUP}/namespaces/default/things/a/shout"))
        .header("host", "localhost")
        .header("connection", "Upgrade")
        .header("upgrade", "shout/1")
        .body(Full::new(Bytes::new()))
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(response.headers()["upgrade"], "shout/1");
    assert_eq!(response.headers()["x-user"], "kubernetes-admin");
    let mut stream = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    stream.write_all(b"hello").await.unwrap();
    let mut echoed = [0; 5];
    stream.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, b"HELLO");
    stop.cancel();
}
