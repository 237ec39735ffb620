//! The server's port: API selection, limits, shutdown.

use crate::catalogs::{big, served_catalogs};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mainstay_registry::{
    ServedCatalogs,
    http::CatalogHttpApi,
    server::{Limits, serve},
};
use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

struct Port {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    log: Arc<Mutex<Vec<String>>>,
}

impl Port {
    /// A port whose gRPC service answers with `grpc` and the path.
    async fn open(shelf: Arc<ServedCatalogs>, limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let grpc = tower::service_fn(|request: Request<mainstay_port::TrackedBody>| async move {
            let text = format!("grpc {}", request.uri().path());
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(text)))
        });
        let log = Arc::new(Mutex::new(Vec::new()));
        let log_access = Arc::clone(&log);
        let log_access: mainstay_registry::server::AccessListener = Arc::new(move |request| {
            log_access.lock().unwrap().push(format!(
                "{} {} {}",
                request.method,
                request.uri,
                request.status.as_u16()
            ));
        });
        let api = CatalogHttpApi::new(shelf);
        let serving =
            tokio::spawn(serve(listener, api, grpc, limits, Some(log_access), stop.clone()));
        Self { address, stop, serving, log }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a request and reads until the other end closes.
    async fn exchange(&self, request: &str) -> String {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn close(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
    }
}

#[tokio::test]
async fn the_content_type_selects_the_api() {
    let port = Port::open(served_catalogs(), Limits::default()).await;
    let ask = async |path: &str, kind: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{kind}\r\n");
        port.exchange(&head).await
    };
    let answer = ask("/catalogs/small/api/v1/metas?schema=olm.package", "").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("\"name\":\"plum\""), "{answer}");
    let grpc = ask("/api.Registry/ListPackages", "Content-Type: application/grpc+proto\r\n").await;
    assert!(grpc.ends_with("grpc /api.Registry/ListPackages"), "{grpc}");
    let neither = ask("/api.Registry/ListPackages", "Content-Type: text/plain\r\n").await;
    assert!(neither.starts_with("HTTP/1.1 404 "), "{neither}");
    assert_eq!(
        *port.log.lock().unwrap(),
        [
            "GET /catalogs/small/api/v1/metas?schema=olm.package 200",
            "GET /api.Registry/ListPackages 200",
            "GET /api.Registry/ListPackages 404",
        ]
    );
    port.close().await;
}

#[tokio::test]
async fn a_response_to_a_request_with_a_body_closes_the_connection() {
    let port = Port::open(served_catalogs(), Limits::default()).await;
    let head = "POST /catalogs/small/api/v1/metas HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n";
    let answer = port.exchange(head).await;
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
    port.close().await;
}

#[tokio::test]
async fn oversized_request_heads_are_refused() {
    let port = Port::open(served_catalogs(), Limits::default()).await;
    let long = "x".repeat(40_000);
    let mut stream = port.connect().await;
    let head = format!("GET / HTTP/1.1\r\nHost: x\r\nA: {long}\r\n\r\n");
    // The server may close before everything is written.
    let _ = stream.write_all(head.as_bytes()).await;
    let mut answer = vec![0; 12];
    if stream.read_exact(&mut answer).await.is_ok() {
        assert_eq!(answer, b"HTTP/1.1 431");
    }
    port.close().await;
}

#[tokio::test]
async fn requests_in_progress_finish_during_shutdown() {
    let shelf = Arc::new(ServedCatalogs::default());
    // More than the buffers of a connection hold, so the server cannot send everything before it is
    // read.
    let content = big(16, 1_000_000).index().unwrap();
    let size: usize = content.catalog().blobs().map(|blob| blob.json_len() + 1).sum();
    shelf.add("big").put(content);
    let port = Port::open(shelf, Limits::default()).await;
    let mut stream = port.connect().await;
    stream.write_all(b"GET /catalogs/big/api/v1/all HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut start = [0; 1000];
    stream.read_exact(&mut start).await.unwrap();
    let address = port.address;
    let closing = tokio::spawn(port.close());
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(start.len() + rest.len() > size, "all of it came, and the connection ended");
    closing.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn connections_are_dropped_after_the_grace_period() {
    let shelf = Arc::new(ServedCatalogs::default());
    shelf.add("big").put(big(16, 1_000_000).index().unwrap());
    let limits = Limits { grace: std::time::Duration::from_millis(1), ..Limits::default() };
    let port = Port::open(shelf, limits).await;
    let mut stream = port.connect().await;
    stream.write_all(b"GET /catalogs/big/api/v1/all HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut start = [0; 1000];
    stream.read_exact(&mut start).await.unwrap();
    // Nothing more is read: this returns although the response is not finished.
    port.close().await;
}

#[tokio::test]
async fn a_new_connection_replaces_the_longest_idle_one() {
    let port = Port::open(served_catalogs(), Limits { connections: 1, ..Limits::default() }).await;
    let mut first = port.connect().await;
    first.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    first.read_exact(&mut answer).await.unwrap();
    let ask = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    let second = port.exchange(ask).await;
    assert!(second.starts_with("HTTP/1.1 404"));
    // The remainder of the first response, and its end.
    let mut rest = Vec::new();
    let _ = first.read_to_end(&mut rest).await;
    port.close().await;
}

#[tokio::test]
async fn an_unread_http2_response_is_cut() {
    let shelf = Arc::new(ServedCatalogs::default());
    shelf.add("big").put(big(16, 1_000_000).index().unwrap());
    let limits = Limits { stall: std::time::Duration::from_millis(50), ..Limits::default() };
    let port = Port::open(shelf, limits).await;
    let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let io = TokioIo::new(port.connect().await);
    let (mut ask, connection) = builder.handshake(io).await.unwrap();
    let connected = tokio::spawn(connection);
    let get = |path: &str| {
        let uri = format!("http://x/catalogs/big/api/v1/{path}");
        Request::get(uri).body(Full::<Bytes>::default()).unwrap()
    };
    // Its flow-control window is never opened again.
    let unread = ask.send_request(get("all")).await.unwrap();
    // The port cannot shut down until this stream is reset.
    port.stop.cancel();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(5), port.serving).await;
    ended.expect("nothing holds the port any more").unwrap();
    assert!(unread.into_body().collect().await.is_err());
    drop(connected.await);
}
