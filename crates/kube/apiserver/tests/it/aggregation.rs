//! Aggregated API groups.

use crate::harness::{Api, Events};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream;
use http::{Method, Request, Response};
use http_body_util::Full;
use mainstay_apiserver::NativeGroup;
use mainstay_apiserver::serve::{self, Peer};
use mainstay_auth::Identity;
use mainstay_auth::pki::Pki;
use mainstay_clock::Clock;
use mainstay_http::Body;
use mainstay_object::Object;
use mainstay_store::{Change, Key, Precondition};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const ALL: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const NAME: &str = "/apis/apiregistration.k8s.io/v1/apiservices/v1.others.example.com";
const THINGS: &str = "/apis/others.example.com/v1/namespaces/default/things";

/// A group that answers discovery, returns what it received, and supports watches.
#[derive(Debug)]
struct EchoGroup;

impl NativeGroup for EchoGroup {
    fn call(&self, identity: &Identity, request: Request<Bytes>) -> BoxFuture<'_, Response<Body>> {
        let path = request.uri().path().to_owned();
        let response = match path.as_str() {
            "/apis/others.example.com/v1" => json!({
                "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "others.example.com/v1",
                "resources": [
                    {"name": "things", "singularName": "thing", "namespaced": true, "kind": "Thing", "verbs": ["get", "list"], "shortNames": ["th"]},
                    {"name": "things/status", "singularName": "", "namespaced": true, "kind": "Thing", "verbs": ["get"]},
                ],
            }),
            "/apis" => json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []}),
            THINGS if request.uri().query() == Some("watch=true") => {
                let event = json!({"type": "ADDED", "object": {"metadata": {"name": "a"}}});
                let line = Bytes::from(format!("{event}\n"));
                // The stream has no end of its own.
                let events = stream::once(async { line });
                let events = futures::StreamExt::chain(events, stream::pending());
                return Box::pin(async { Response::new(Body::stream(events)) });
            }
            _ => json!({
                "asked": format!("{} {}", request.method(), request.uri()),
                "by": identity.user(),
                "body": String::from_utf8_lossy(request.body()),
                "authorization": request.headers().contains_key("authorization"),
            }),
        };
        let bytes = Bytes::from(response.to_string());
        Box::pin(async {
            Response::builder().header("x-own", "1").body(Body::from(bytes)).unwrap()
        })
    }
}

/// An `APIService` that names this Service.
pub(crate) fn service(service: &str) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.others.example.com"},
        "spec": {
            "group": "others.example.com", "version": "v1", "insecureSkipTLSVerify": true,
            "groupPriorityMinimum": 2000, "versionPriority": 15,
            "service": {"namespace": "default", "name": service},
        },
    })
}

async fn reason(api: &Api, reason: &str) -> Value {
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
async fn an_in_process_group_is_served_behind_its_service() {
    let api = Api::new().await;
    api.server.put_native_group("default", "things", Arc::new(EchoGroup));
    api.post(ALL, &service("things")).await.ok();
    assert_eq!(reason(&api, "Passed").await["status"], "True");
    while api.get(THINGS).await.code == 503 {
        tokio::task::yield_now().await;
    }
    let headers = [("authorization", "Bearer x")];
    let response = api.call(Method::POST, &format!("{THINGS}?a=b"), &headers, "{}").await;
    assert_eq!(response.headers["x-own"], "1");
    assert!(response.headers.contains_key("audit-id"));
    assert_eq!(
        response.ok(),
        json!({
            "asked": format!("POST {THINGS}?a=b"), "by": "kubernetes-admin", "body": "{}",
            "authorization": false,
        })
    );
    let mut events: Events = api.watch(&format!("{THINGS}?watch=true")).await;
    assert_eq!(events.summary().await, "ADDED a");
}

#[tokio::test]
async fn discovery_includes_aggregated_groups() {
    let api = Api::new().await;
    api.server.put_native_group("default", "things", Arc::new(EchoGroup));
    api.post(ALL, &service("things")).await.ok();
    reason(&api, "Passed").await;
    let names = |list: &Value, field: &str, name: &str| -> Vec<String> {
        let items = list[field].as_array().unwrap().iter();
        items.map(|entry| entry.pointer(name).unwrap().as_str().unwrap().to_owned()).collect()
    };
    let group_list = api.get("/apis").await.ok();
    let all = names(&group_list, "groups", "/name");
    // Below every built-in group, and above those of CRDs.
    assert_eq!(
        (all[0].as_str(), all.last().unwrap().as_str()),
        ("apiregistration.k8s.io", "others.example.com")
    );
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    loop {
        let list = api.get_as("/apis", accept).await.ok();
        let items = list["items"].as_array().unwrap();
        let found = items.iter().find(|entry| entry["metadata"]["name"] == "others.example.com");
        let version = &found.unwrap()["versions"][0];
        if version["freshness"] == "Stale" {
            tokio::task::yield_now().await;
            continue;
        }
        assert_eq!(
            *version,
            json!({
                "version": "v1", "freshness": "Current",
                "resources": [{
                    "resource": "things", "singularResource": "thing", "scope": "Namespaced",
                    "responseKind": {"group": "others.example.com", "version": "v1", "kind": "Thing"},
                    "verbs": ["get", "list"], "shortNames": ["th"],
                    "subresources": [{
                        "subresource": "status", "verbs": ["get"],
                        "responseKind": {"group": "others.example.com", "version": "v1", "kind": "Thing"},
                    }],
                }],
            })
        );
        break;
    }
    let group = api.get("/apis/others.example.com").await.ok();
    assert_eq!(group["preferredVersion"]["groupVersion"], "others.example.com/v1");
    api.delete(NAME, &Value::Null).await.ok();
    api.until("/apis/others.example.com", 404).await;
    api.until(THINGS, 404).await;
}

#[tokio::test]
async fn a_stalled_aggregated_server_blocks_no_request() {
    #[derive(Debug)]
    struct Stalls;
    impl NativeGroup for Stalls {
        fn call(&self, _: &Identity, _: Request<Bytes>) -> BoxFuture<'_, Response<Body>> {
            Box::pin(std::future::pending())
        }
    }
    let api = Api::new().await;
    api.server.put_native_group("default", "stalls", Arc::new(Stalls));
    api.post(ALL, &service("stalls")).await.ok();
    api.until("/apis/others.example.com", 200).await;
    // Nothing is known of the group yet; the response does not wait.
    let (code, text) = {
        let response = api.get(THINGS).await;
        (response.code, String::from_utf8_lossy(&response.bytes).into_owned())
    };
    assert_eq!((code, text.as_str()), (503, "service unavailable\n"));
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let list = api.get_as("/apis", accept).await.ok();
    let items = list["items"].as_array().unwrap();
    let found =
        items.iter().find(|entry| entry["metadata"]["name"] == "others.example.com").unwrap();
    assert_eq!(found["versions"], json!([{"version": "v1", "freshness": "Stale"}]));
}

#[tokio::test]
async fn every_group_has_its_apiservice() {
    let api = Api::new().await;
    let all = api.get(ALL).await.ok();
    assert_eq!(all["items"].as_array().unwrap().len(), 21);
    let apps = api.get(&format!("{ALL}/v1.apps")).await.ok();
    assert_eq!(apps["spec"]["groupPriorityMinimum"], 17_800);
    assert_eq!(apps["status"]["conditions"][0]["reason"], "Local");
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.x.example.com"},
        "spec": {
            "group": "x.example.com", "scope": "Cluster", "names": {"plural": "as", "kind": "A"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    api.define(&crd).await;
    let own = format!("{ALL}/v1.x.example.com");
    api.until(&own, 200).await;
    assert_eq!(api.get("/apis/x.example.com/v1/as").await, 200);
    api.delete(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/as.x.example.com",
        &Value::Null,
    )
    .await
    .ok();
    api.until(&own, 404).await;
}

#[tokio::test]
async fn an_aggregated_server_receives_the_identity_of_the_client() {
    let clock = Clock::system();
    let pki = Pki::ephemeral(&clock, &["things.default.svc".to_owned()]).unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let echo_service =
        tower::service_fn(|request: Request<mainstay_port::TrackedBody>| async move {
            let text = |name: &str| {
                let value = request.headers().get(name).and_then(|value| value.to_str().ok());
                value.unwrap_or_default().to_owned()
            };
            let peer = request.extensions().get::<Peer>().unwrap();
            let response = json!({
                "path": request.uri().path(), "user": text("x-remote-user"), "host": text("host"),
                "proved": peer.certificate.is_some(), "resources": [],
            });
            let body = Full::new(Bytes::from(response.to_string()));
            Ok::<_, std::convert::Infallible>(Response::new(body))
        });
    let stop = CancellationToken::new();
    let tls = pki.server_config().unwrap();
    tokio::spawn(serve::serve(listener, tls, serve::Limits::default(), stop.clone(), echo_service));

    let api = Api::new().await;
    api.server.set_front_proxy(pki.front_proxy(&clock).unwrap());
    api.server.allow_local_endpoints();
    let service_object = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "things"},
        "spec": {"ports": [{"port": 443}]},
    });
    api.post("/api/v1/namespaces/default/services", &service_object).await.ok();
    // Written directly to the store: validation refuses loopback addresses.
    let slice = Object::from_value(json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "things-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "things"}},
        "endpoints": [{"addresses": ["127.0.0.1"]}], "ports": [{"name": "", "port": port}],
    }));
    let slice = slice.unwrap();
    let key = Key::new("discovery.k8s.io/endpointslices", "default", "things-1");
    let change = Change::Put { key, object: &slice, expect: Precondition::Absent, guard: None };
    api.store.commit(change).await.unwrap();
    let mut api_service = service("things");
    api_service["spec"]["insecureSkipTLSVerify"] = false.into();
    api_service["spec"]["caBundle"] = STANDARD.encode(pki.authority_pem()).into();
    api.post(ALL, &api_service).await.ok();
    reason(&api, "Passed").await;
    while api.get(THINGS).await.code == 503 {
        tokio::task::yield_now().await;
    }
    let response = api.get(THINGS).await.ok();
    let host = format!("127.0.0.1:{port}");
    assert_eq!(
        response,
        json!({
            "path": THINGS, "user": "kubernetes-admin", "host": host, "proved": true,
            "resources": [],
        })
    );
    stop.cancel();
}
