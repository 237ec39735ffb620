//! Hostile clients of the TLS port: each gets the right status, costs little, and disturbs no other
//! client.

use crate::harness::{Api, MAPS, config_map};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use mainstay_apiserver::serve::{self, Limits};
use mainstay_auth::pki::Pki;
use mainstay_clock::Clock;
use mainstay_store::{Options, Store};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

/// Timeout of a wait.
const TIMEOUT: Duration = Duration::from_secs(20);

struct PortServer {
    api: Api,
    pki: Pki,
    address: SocketAddr,
    shutdown: CancellationToken,
}

impl Drop for PortServer {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl PortServer {
    async fn open(limits: Limits) -> Self {
        let clock = Clock::system();
        let pki = Pki::ephemeral(&clock, &[]).unwrap();
        let store = Store::in_memory(Options::new(clock));
        let authenticator = pki.authenticator(clock).unwrap();
        let api = Api::with(store, clock, authenticator).await;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let service = api.server.port_service();
        let tls = pki.server_config().unwrap();
        tokio::spawn(serve::serve(listener, tls, limits, shutdown.clone(), service));
        Self { api, pki, address, shutdown }
    }

    async fn connect(&self, admin: bool, alpn: &str) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.pki.authority_pem().as_bytes());
        roots.add(authority.unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = if admin {
            let (certificate, key) = self.pki.admin_pem();
            let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        } else {
            builder.with_no_client_auth()
        };
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::IpAddress(self.address.ip().into());
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    /// Sends bytes, and returns all that the server sends until the connection ends.
    async fn exchange(&self, admin: bool, bytes: &[u8]) -> String {
        let mut stream = self.connect(admin, "http/1.1").await;
        // After an early refusal, the server may not read everything.
        let _ = stream.write_all(bytes).await;
        let mut response = Vec::new();
        let _ = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut response)).await.unwrap();
        String::from_utf8_lossy(&response).into_owned()
    }

    /// Whether another client is served.
    async fn is_serving(&self) -> bool {
        let response = self.exchange(true, get("/version", "").as_bytes()).await;
        response.starts_with("HTTP/1.1 200")
    }
}

fn line(method: &str, path: &str, headers: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}Connection: close\r\n\r\n")
}

fn get(path: &str, headers: &str) -> String {
    line("GET", path, headers)
}

fn code(response: &str) -> u16 {
    let code = response.split(' ').nth(1).unwrap_or_default();
    code.parse().unwrap_or_default()
}

#[tokio::test]
async fn malformed_requests_get_the_status_of_kube_apiserver() {
    let port = PortServer::open(Limits::default()).await;
    let long = |bytes: usize| "a".repeat(bytes);
    let many = |count: usize| {
        let headers: Vec<String> = (0..count).map(|at| format!("X-{at}: a\r\n")).collect();
        headers.concat()
    };
    let cases: Vec<(&str, String, u16)> = vec![
        ("many headers", get("/version", &many(900)), 200),
        ("too many headers", get("/version", &many(5000)), 431),
        ("a long header", get("/version", &format!("X: {}\r\n", long(200_000))), 200),
        ("too long a header", get("/version", &format!("X: {}\r\n", long(1_100_000))), 431),
        ("too long a path", get(&format!("/version?a={}", long(1_100_000)), ""), 431),
        ("a path of another server", get("https://other/version", ""), 200),
        ("a path of another scheme", get("http://x/api/v1/namespaces/default", ""), 200),
        ("no page", get("/nothing", ""), 404),
        ("another method", line("OPTIONS", "/version", ""), 405),
        ("an unknown method", line("FOO", "/api/v1/namespaces", ""), 405),
        ("a method in lower case", line("get", "/version", ""), 405),
        ("TRACE", line("TRACE", "/version", ""), 405),
        ("CONNECT to a path", line("CONNECT", "/version", ""), 405),
        ("CONNECT to a host", line("CONNECT", "x:443", ""), 404),
        ("no host", "GET /version HTTP/1.1\r\nConnection: close\r\n\r\n".to_owned(), 400),
        ("two hosts", get("/version", "Host: y\r\n"), 400),
        (
            "a host that is none",
            "GET /version HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n".to_owned(),
            400,
        ),
        ("an old version", "GET /version HTTP/1.0\r\n\r\n".to_owned(), 200),
        ("no version", "GET /version\r\n\r\n".to_owned(), 400),
        ("a space in a path", get("/ver sion", ""), 400),
        ("a percent sign of nothing", get("/api/v1/%zz", ""), 400),
        ("two slashes", get("//version", ""), 404),
        ("dots", get("/api/../version", ""), 404),
        ("dots in disguise", get("/api/%2e%2e/version", ""), 404),
        ("a dot", get("/api/v1/./pods", ""), 404),
        ("a slash in disguise", get("/api%2fv1", ""), 200),
        ("a slash in a name in disguise", get("/api/v1/namespaces/default%2fpods", ""), 200),
        ("slashes at the end", get("/api/v1/namespaces/default/pods//", ""), 200),
        ("a zero", get("/api/v1/namespaces/%00", ""), 404),
        ("/debug", get("/debug/pprof/", ""), 404),
        ("/debug/flags", get("/debug/flags/v", ""), 404),
        ("/debug of queues", get("/debug/api_priority_and_fairness/dump_queues", ""), 404),
        ("/configz", get("/configz", ""), 404),
        ("/logs", get("/logs/", ""), 404),
        ("a part", get("/version", "Range: bytes=0-3\r\n"), 200),
        (
            "lines without returns",
            "GET /version HTTP/1.1\nHost: x\nConnection: close\n\n".to_owned(),
            200,
        ),
    ];
    let mut wrong = Vec::new();
    for (what, request, expected) in cases {
        let response = port.exchange(true, request.as_bytes()).await;
        if code(&response) != expected {
            wrong.push(format!("{what}: {expected}, not {response:.120}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(port.is_serving().await);
}

#[tokio::test]
async fn headers_cannot_change_the_identity() {
    let port = PortServer::open(Limits::default()).await;
    let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    for (headers, expected) in [
        ("X-Remote-User: kubernetes-admin\r\nX-Remote-Group: system:masters\r\n", 403),
        ("X-Forwarded-For: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\n", 403),
        ("Impersonate-User: kubernetes-admin\r\n", 403),
        ("Impersonate-Group: system:masters\r\n", 400),
        ("Authorization: Basic YWRtaW46YWRtaW4=\r\n", 403),
        ("Authorization: Bearer a.b.c\r\n", 401),
        ("Authorization: Bearer\r\n", 403),
    ] {
        let headers = format!("{headers}Content-Type: application/json\r\nContent-Length: 2\r\n");
        let request = format!("{}{{}}", line("POST", review, &headers));
        let response = port.exchange(false, request.as_bytes()).await;
        assert_eq!(code(&response), expected, "{headers} {response}");
    }
    // The first header of several counts, as in kube-apiserver.
    let twice = get("/api/v1/namespaces", "Impersonate-User: a\r\nImpersonate-User: b\r\n");
    let response = port.exchange(true, twice.as_bytes()).await;
    assert!(response.contains("User \\\"a\\\" cannot list resource"), "{response}");
}

#[tokio::test]
async fn a_too_large_body_gets_413_and_a_missing_one_times_out() {
    let port = PortServer::open(Limits::default()).await;
    let big = "x".repeat(4_000_000);
    let headers = "Content-Type: application/json\r\n";
    let sized = format!("{headers}Content-Length: {}\r\n", big.len());
    let request = format!("{}{big}", line("POST", MAPS, &sized));
    assert_eq!(code(&port.exchange(true, request.as_bytes()).await), 413);
    let chunked = format!("{headers}Transfer-Encoding: chunked\r\n");
    let request = format!("{}3d0900\r\n{big}\r\n0\r\n\r\n", line("POST", MAPS, &chunked));
    assert_eq!(code(&port.exchange(true, request.as_bytes()).await), 413);
    // A body that stops arriving: the request times out, and the connection ends.
    let path = format!("{MAPS}?timeout=100ms");
    let request =
        format!("{}{{\"a\":", line("POST", &path, &format!("{headers}Content-Length: 50\r\n")));
    assert_eq!(code(&port.exchange(true, request.as_bytes()).await), 504);
    assert!(port.is_serving().await);
}

async fn fill(api: &Api, objects: usize) {
    for at in 0..objects {
        let mut map = config_map(&format!("m{at}"));
        map["data"]["k"] = "x".repeat(500_000).into();
        api.post(MAPS, &map).await.ok();
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected_and_others_are_served() {
    let unread = Duration::from_millis(50);
    let port = PortServer::open(Limits { unread, ..Limits::default() }).await;
    fill(&port.api, 30).await;
    for path in [MAPS.to_owned(), format!("{MAPS}?watch=true")] {
        let mut stream = port.connect(true, "http/1.1").await;
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        assert!(port.is_serving().await);
        // The connection is closed before it reads: the buffered bytes arrive, without a proper
        // end.
        let watches = async || {
            let response = port.api.get("/metrics").await;
            let page = String::from_utf8(response.bytes.to_vec()).unwrap();
            page.lines().any(|line| {
                line.starts_with("apiserver_longrunning_requests") && line.contains("configmaps")
            })
        };
        let ends = async {
            while path.contains("watch") && watches().await {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, ends).await.expect("the watch ends");
        tokio::time::sleep(unread * 4).await;
        let mut got = Vec::new();
        let end = tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut got)).await.unwrap();
        assert!(end.is_err() || !got.ends_with(b"0\r\n\r\n"));
        assert!(got.len() < 15_000_000, "{}", got.len());
    }
}

#[tokio::test]
async fn an_unread_http2_stream_is_reset_and_its_connection_continues() {
    let unread = Duration::from_millis(50);
    let port = PortServer::open(Limits { unread, ..Limits::default() }).await;
    fill(&port.api, 10).await;
    let io = TokioIo::new(port.connect(true, "h2").await);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    tokio::spawn(connection);
    let send = async |path: &str| {
        let uri = format!("https://localhost{path}");
        let request = Request::get(uri).body(Empty::<Bytes>::new()).unwrap();
        sender.clone().send_request(request).await.unwrap()
    };
    for path in [MAPS.to_owned(), format!("{MAPS}?watch=true")] {
        let stuck = send(&path).await;
        assert_eq!(stuck.status(), 200);
        tokio::time::sleep(unread * 4).await;
        assert_eq!(send("/version").await.status(), 200, "the connection is not cut");
        let end = tokio::time::timeout(TIMEOUT, stuck.into_body().collect()).await.unwrap();
        let end = format!("{:?}", end.unwrap_err());
        assert!(end.contains("Reset"), "{path} {end}");
    }
    // An idle stream stays open.
    let mut quiet = send("/api/v1/namespaces/default/secrets?watch=true").await.into_body();
    tokio::time::sleep(unread * 4).await;
    let secret =
        serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    port.api.post("/api/v1/namespaces/default/secrets", &secret).await.ok();
    let event = tokio::time::timeout(TIMEOUT, quiet.frame()).await.unwrap().unwrap().unwrap();
    assert!(event.into_data().unwrap().starts_with(b"{\"type\":\"ADDED\""));
}

#[tokio::test]
async fn idle_http2_connections_end() {
    let idle = Duration::from_millis(30);
    let port = PortServer::open(Limits { idle, ..Limits::default() }).await;
    let mut ends = Vec::new();
    for watches in [false, true] {
        let io = TokioIo::new(port.connect(true, "h2").await);
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        let mut connection = tokio::spawn(connection);
        let uri = format!("https://localhost{MAPS}?watch={watches}");
        let request = Request::builder().method(Method::GET).uri(uri);
        let response =
            sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
        let body = if watches { Some(response.into_body()) } else { None };
        let ended = tokio::time::timeout(idle * 10, &mut connection).await.is_ok();
        ends.push(ended);
        drop(body);
    }
    assert_eq!(ends, [true, false], "one that watches stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_watches_over_few_connections_all_receive_a_change() {
    let port = PortServer::open(Limits::default()).await;
    let mut watches = Vec::new();
    let mut senders = Vec::new();
    for _ in 0..10 {
        let io = TokioIo::new(port.connect(true, "h2").await);
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_max_send_streams(1000)
            .handshake(io)
            .await
            .unwrap();
        tokio::spawn(connection);
        for _ in 0..1000 {
            let uri = format!("https://localhost{MAPS}?watch=true");
            let request = Request::get(uri).body(Empty::<Bytes>::new()).unwrap();
            let response = sender.clone().send_request(request).await.unwrap();
            assert_eq!(response.status(), 200);
            watches.push(response.into_body());
        }
        senders.push(sender);
    }
    port.api.post(MAPS, &config_map("a")).await.ok();
    for watch in &mut watches {
        let event = tokio::time::timeout(TIMEOUT, watch.frame()).await.unwrap().unwrap().unwrap();
        assert!(event.into_data().unwrap().starts_with(b"{\"type\":\"ADDED\""));
    }
    assert!(port.is_serving().await);
}

#[tokio::test]
async fn large_responses_to_local_clients_are_compressed_only_behind_a_proxy() {
    let port = PortServer::open(Limits::default()).await;
    let mut large = config_map("large");
    large["data"]["k"] = "0123456789".repeat(20_000).into();
    port.api.post(MAPS, &large).await.ok();
    for (headers, is_packed) in [
        ("Accept-Encoding: gzip\r\n", false),
        ("Accept-Encoding: gzip\r\nX-Forwarded-For: 192.0.2.1\r\n", true),
        ("Accept-Encoding: gzip\r\nVia: 1.1 somebody\r\n", true),
        ("X-Forwarded-For: 192.0.2.1\r\n", false),
    ] {
        let response = port.exchange(true, get(MAPS, headers).as_bytes()).await;
        assert_eq!(code(&response), 200);
        assert_eq!(response.contains("content-encoding: gzip\r\n"), is_packed, "{headers}");
    }
}
