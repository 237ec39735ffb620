//! `pods/proxy` and `services/proxy`.

use super::{PODS, forward, set_container_status};
use crate::harness::Api;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use mainstay_outbound::{BackendError, InProcessBackend};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

/// Responds to one request with its content.
pub(super) async fn respond(mut stream: DuplexStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") && !request.ends_with(b"END") {
        let mut buffer = [0; 1000];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(&buffer[..read]),
        }
    }
    let text = String::from_utf8(request).unwrap();
    let head = if text.starts_with("GET /moved") {
        "301 Moved Permanently\r\nlocation: /elsewhere"
    } else {
        "200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2\r\nconnection: x-hop\r\nx-hop: 1\r\ncontent-type: text/x-request"
    };
    let length = text.len();
    let respond = format!("HTTP/1.1 {head}\r\ncontent-length: {length}\r\n\r\n{text}");
    let _ = stream.write_all(respond.as_bytes()).await;
}

/// An API with the pod of [`super::forward`], which gets an address.
async fn api() -> Api {
    let api = forward::api().await;
    let mut pod = api.get(&format!("{PODS}/p")).await.ok();
    pod["status"]["podIP"] = "10.0.0.9".into();
    pod["status"]["podIPs"] = json!([{"ip": "10.0.0.9"}]);
    api.put(&format!("{PODS}/p/status"), &pod).await.ok();
    api
}

#[tokio::test]
async fn proxied_requests_reach_the_port_of_a_pod_unchanged() {
    let api = api().await;
    let path = format!("{PODS}/p:80/proxy/a%20b/c/?x=1&y=%2F");
    let headers = [("x-mine", "1"), ("authorization", "Bearer x"), ("x-remote-user", "me")];
    let respond = api.call(Method::PUT, &path, &headers, "body END").await;
    assert_eq!(
        (respond.code, respond.headers["content-type"].to_str().unwrap()),
        (200, "text/x-request")
    );
    let text = str::from_utf8(&respond.bytes).unwrap();
    assert!(text.starts_with("PUT /a%20b/c/?x=1&y=%2F HTTP/1.1\r\n"), "{text}");
    assert!(text.contains("host: 10.0.0.9:80\r\n") && text.contains("x-mine: 1\r\n"), "{text}");
    assert!(text.ends_with("\r\n\r\nbody END"), "{text}");
    assert!(!text.contains("Bearer") && !text.contains("x-remote-user"), "{text}");
    let cookies: Vec<_> = respond.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1", "b=2"]);
    assert!(!respond.headers.contains_key("x-hop"));
    for method in [Method::GET, Method::DELETE, Method::PATCH, Method::POST] {
        let respond = api.call(method.clone(), &format!("{PODS}/http:p:80/proxy/"), &[], "").await;
        let text = str::from_utf8(&respond.bytes).unwrap();
        assert!(text.starts_with(&format!("{method} / HTTP/1.1\r\n")), "{text}");
    }
    let moved = api.get(&format!("{PODS}/p:80/proxy?a=b")).await;
    let location = format!("{PODS}/p:80/proxy/?a=b");
    assert_eq!((moved.code, moved.headers["location"].to_str().unwrap()), (301, location.as_str()));
    let moved = api.get(&format!("{PODS}/p:80/proxy/moved")).await;
    let location = format!("{PODS}/p:80/proxy/elsewhere");
    assert_eq!((moved.code, moved.headers["location"].to_str().unwrap()), (301, location.as_str()));
}

#[tokio::test]
async fn an_unreachable_proxy_target_is_reported_with_the_text_of_kube_apiserver() {
    let api = api().await;
    super::pod(&api, "sim", &["c"], true).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    });
    api.post("/api/v1/namespaces/default/services", &service).await.ok();
    let services = "/api/v1/namespaces/default/services";
    for (path, expected) in [
        (format!("{PODS}/none/proxy/"), (404, "pods \"none\" not found")),
        (format!("{PODS}/ftp:p:1/proxy/"), (400, "invalid pod request \"ftp:p:1\"")),
        (format!("{PODS}/sim/proxy/"), (400, "address not allowed")),
        (format!("{PODS}/p:81/proxy/"), (503, "error trying to reach service: nobody is at 81")),
        (format!("{PODS}/p/proxy/?dryRun=All"), (400, "dryRun is not supported")),
        (format!("{services}/none/proxy/"), (404, "services \"none\" not found")),
        (format!("{services}/none:80/proxy/"), (404, "services \"none\" not found")),
        (format!("{services}/s:81/proxy/"), (503, "no service port 81 found for service \"s\"")),
        (format!("{services}/a:b:c/proxy/"), (400, "invalid service request \"a:b:c\"")),
        ("/api/v1/nodes/none/proxy/".to_owned(), (404, "nodes \"none\" not found")),
    ] {
        let (code, message) = api.get(&path).await.refused();
        assert_eq!((code, message.as_str()), expected, "{path}");
    }
    set_container_status(&api, "sim", super::running()).await;
    let mut pod = api.get(&format!("{PODS}/sim")).await.ok();
    pod["status"]["podIPs"] = json!([{"ip": "10.0.0.8"}]);
    pod["status"]["podIP"] = "10.0.0.8".into();
    api.put(&format!("{PODS}/sim/status"), &pod).await.ok();
    let (code, message) = api.get(&format!("{PODS}/sim:81/proxy/")).await.refused();
    let why = "error trying to reach service: dial tcp 10.0.0.8:81: connect: connection refused";
    assert_eq!((code, message.as_str()), (503, why));
}

fn endpoints(name: &str, address: &Value, port: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": name},
        "subsets": [{"addresses": [address], "ports": [{"name": "http", "port": port}]}],
    })
}

#[tokio::test]
async fn service_proxies_lead_to_pods_addresses_and_handlers() {
    struct Handler;
    impl InProcessBackend for Handler {
        fn call(
            &self,
            request: Request<Bytes>,
        ) -> BoxFuture<'_, Result<Response<Bytes>, BackendError>> {
            let text = format!("{} {}", request.method(), request.uri());
            Box::pin(async move { Ok(Response::new(text.into())) })
        }
    }
    let api = api().await;
    let (all, services) =
        ("/api/v1/namespaces/default/endpoints", "/api/v1/namespaces/default/services");
    let pod = json!({"ip": "10.0.0.9", "targetRef": {"kind": "Pod", "name": "p", "namespace": "default"}});
    api.post(all, &endpoints("s", &pod, 80)).await.ok();
    let respond = api.get(&format!("{services}/s:http/proxy/x")).await;
    assert!(respond.bytes.starts_with(b"GET /x HTTP/1.1\r\n"), "{respond:?}");
    // Only the address of the pod counts.
    let other = json!({"ip": "10.0.0.10", "targetRef": pod["targetRef"]});
    api.post(all, &endpoints("t", &other, 80)).await.ok();
    for id in ["t:http", "s:other"] {
        let refused = api.get(&format!("{services}/{id}/proxy/x")).await.refused();
        assert_eq!(refused, (503, format!("no endpoints available for service {id:?}")));
    }
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 4000];
        let _ = stream.read(&mut buffer).await;
        let _ = stream.write_all(b"HTTP/1.1 418 I'm a teapot\r\ncontent-length: 2\r\n\r\nhi").await;
    });
    api.post(all, &endpoints("host", &json!({"ip": "127.0.0.2"}), port)).await;
    let host = json!({"ip": "192.0.2.1"});
    api.post(all, &endpoints("far", &host, port)).await.ok();
    api.server.put_native_backend("default", "native", Arc::new(Handler));
    let respond = api.get(&format!("{services}/native:80/proxy/a/b?c")).await;
    assert_eq!((respond.code, &respond.bytes[..]), (200, &b"GET /a/b?c"[..]));
}
