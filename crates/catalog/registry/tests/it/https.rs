//! The HTTP catalog API over TLS: clients that are slow or greedy.

use crate::catalogs::{big, served_catalogs};
use mainstay_registry::{
    ServedCatalogs, ServedDocuments,
    http::CatalogHttpApi,
    server::{DOWNLOAD_LIMITS, Limits, serve_https},
    stored,
};
use mainstay_tls::AnyCertificate;
use rustls::{
    ServerConfig,
    pki_types::{PrivateKeyDer, ServerName},
};
use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_util::sync::CancellationToken;

struct Port {
    address: SocketAddr,
    stop: CancellationToken,
}

/// The configuration of a server with a self-signed certificate.
fn self_signed() -> Arc<ServerConfig> {
    let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(generated.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(mainstay_tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![generated.cert.der().clone()], key);
    Arc::new(config.unwrap())
}

impl Port {
    async fn open(api: CatalogHttpApi, limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(serve_https(listener, self_signed(), api, limits, None, stop.clone()));
        Self { address, stop }
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let config =
            mainstay_tls::builder_with_verifier(AnyCertificate).unwrap().with_no_client_auth();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    /// A connection on which a catalog is requested.
    async fn request(&self, path: &str, close: bool) -> TlsStream<TcpStream> {
        let mut stream = self.connect().await;
        let close = if close { "Connection: close\r\n" } else { "" };
        let head = format!("GET /catalogs/{path} HTTP/1.1\r\nHost: x\r\n{close}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    async fn get(&self, path: &str) -> String {
        let mut answer = String::new();
        self.request(path, true).await.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

/// A catalog of sixteen megabytes, in memory (`m`) and in a file (`f`): more than the buffers of a
/// connection hold.
fn large() -> Arc<ServedCatalogs> {
    let index = big(16, 1_000_000).index().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let blobs = || index.catalog().blobs();
    let catalogs = ServedCatalogs::default();
    let now = UNIX_EPOCH + Duration::from_hours(1);
    let stored = stored::create(&folder.path().join("f"), blobs(), now).unwrap();
    catalogs.put_documents("f", Arc::new(stored));
    catalogs.put_documents("m", Arc::new(ServedDocuments::in_memory(blobs(), now).unwrap()));
    Arc::new(catalogs)
}

#[tokio::test]
async fn a_client_that_reads_nothing_frees_its_download() {
    let limits = Limits { stall: Duration::from_millis(200), ..DOWNLOAD_LIMITS };
    for path in ["m/api/v1/all", "f/api/v1/all", "f/api/v1/metas"] {
        let api = CatalogHttpApi::new(large()).with_downloads(1);
        let port = Port::open(api, limits).await;
        let mut unread = port.request(path, false).await;
        // The download has begun.
        let mut start = [0; 100];
        unread.read_exact(&mut start).await.unwrap();
        let refused = port.get(path).await;
        assert!(refused.starts_with("HTTP/1.1 503 "), "{path}: {}", &refused[..100]);
        let answered = async {
            loop {
                let mut another = port.request(path, false).await;
                let mut start = [0; 12];
                another.read_exact(&mut start).await.unwrap();
                if &start == b"HTTP/1.1 200" {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(20), answered).await.unwrap();
        let mut rest = Vec::new();
        let ended = unread.read_to_end(&mut rest).await;
        assert!(ended.is_err() || rest.len() < 16_000_000, "{path}: the download was cut");
        port.stop.cancel();
    }
}

#[tokio::test]
async fn a_client_that_reads_a_little_now_and_then_is_cut_at_the_deadline() {
    let limits = Limits { response: Some(Duration::from_millis(400)), ..DOWNLOAD_LIMITS };
    let port = Port::open(CatalogHttpApi::new(large()), limits).await;
    let mut slow = port.request("f/api/v1/all", false).await;
    let mut read = 0;
    for _ in 0..200 {
        read += slow.read(&mut [0; 1024]).await.unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // What the buffers of the connection hold.
    let mut rest = Vec::new();
    let ended = timeout(Duration::from_mins(1), slow.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the connection has ended");
    read += rest.len();
    assert!(read < 16_000_000, "{read} bytes");
    port.stop.cancel();
}

#[tokio::test]
async fn handshakes_and_heads_that_do_not_end_are_cut() {
    let limits = Limits { head: Duration::from_millis(100), ..DOWNLOAD_LIMITS };
    let port = Port::open(CatalogHttpApi::new(served_catalogs()), limits).await;
    let mut silent = TcpStream::connect(port.address).await.unwrap();
    let mut half = port.connect().await;
    half.write_all(b"GET /catalogs/small/api/v1/all HTTP/1.1\r\nHost:").await.unwrap();
    let ends = async {
        assert_eq!(silent.read(&mut [0]).await.unwrap_or(0), 0);
        let mut answer = Vec::new();
        let _ = half.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    };
    timeout(Duration::from_secs(20), ends).await.unwrap();
    // A client without TLS gets nothing.
    let mut plain = TcpStream::connect(port.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/1.1 2"));
    port.stop.cancel();
}
