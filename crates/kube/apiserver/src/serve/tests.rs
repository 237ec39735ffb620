use super::*;
use futures::StreamExt as _;
use http_body_util::{BodyExt as _, Either, Full, StreamBody};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mainstay_auth::pki::Pki;
use mainstay_clock::Clock;
use mainstay_port::ConnectionOwner;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

struct TestServer {
    pki: Pki,
    address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

/// A store without objects.
struct EmptyStore;

impl mainstay_object::Objects for EmptyStore {
    fn get(&self, _: &str, _: &str, _: &str) -> Option<mainstay_object::Object> {
        None
    }

    fn list(&self, _: &str, _: Option<&str>) -> Vec<mainstay_object::Object> {
        Vec::new()
    }
}

/// A server that responds with the user of the request; `/watch` sends one line and then never
/// ends.
async fn start(limits: Limits) -> TestServer {
    let pki = Pki::ephemeral(&Clock::system(), &[]).unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let authn = pki.authenticator(Clock::system()).unwrap();
    let service = tower::service_fn(move |request: Request<TrackedBody>| {
        let authn = authn.clone();
        async move {
            let peer = request.extensions().get::<Peer>().unwrap().clone();
            let body = if request.uri().path() == "/watch" {
                peer.seat.mark_authenticated(ConnectionOwner::Administrator);
                let lines =
                    futures::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from("1\n")))]);
                Either::Left(StreamBody::new(lines.chain(futures::stream::pending())))
            } else {
                let proof =
                    authn.identify(peer.certificate.as_deref(), request.headers(), &EmptyStore);
                if let Ok(proof) = &proof
                    && !proof.identity.is_anonymous()
                {
                    peer.seat.mark_authenticated(proof.identity.client());
                }
                let user = proof
                    .map_or_else(|status| status.message, |proof| proof.identity.user().to_owned());
                Either::Right(Full::new(Bytes::from(format!("{user} {:?}", request.version()))))
            };
            Ok::<_, Infallible>(Response::new(body))
        }
    });
    let tls = pki.server_config().unwrap();
    let task = tokio::spawn(serve(listener, tls, limits, shutdown.clone(), service));
    TestServer { pki, address, shutdown, task }
}

fn client_config(trust: &Pki, admin: Option<&Pki>, alpn: &str) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trust.authority_pem().as_bytes()).unwrap()).unwrap();
    let builder =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
    let mut config = match admin {
        None => builder.with_no_client_auth(),
        Some(pki) => {
            let (certificate, key) = pki.admin_pem();
            let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    };
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    Arc::new(config)
}

impl TestServer {
    async fn connect(
        &self,
        admin: Option<&Pki>,
        alpn: &str,
    ) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let connector = TlsConnector::from(client_config(&self.pki, admin, alpn));
        let name = ServerName::IpAddress(self.address.ip().into());
        connector.connect(name, stream).await
    }

    async fn get(&self, admin: Option<&Pki>, alpn: &str, path: &str) -> Response<Incoming> {
        let io = TokioIo::new(self.connect(admin, alpn).await.unwrap());
        let request =
            Request::get(path).header("host", "x").body(http_body_util::Empty::<Bytes>::new());
        let mut request = request.unwrap();
        if alpn == "h2" {
            *request.uri_mut() = format!("https://localhost{path}").parse().unwrap();
            let (mut sender, connection) =
                http2::handshake(TokioExecutor::new(), io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        } else {
            let (mut sender, connection) = http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await.unwrap()
        }
    }

    async fn text(&self, admin: Option<&Pki>, alpn: &str) -> String {
        let body = self.get(admin, alpn, "/").await.into_body().collect().await.unwrap();
        String::from_utf8(body.to_bytes().to_vec()).unwrap()
    }
}

#[tokio::test]
async fn requests_carry_the_identity_of_the_client_certificate() {
    let server = start(Limits::default()).await;
    assert_eq!(server.text(Some(&server.pki), "h2").await, "kubernetes-admin HTTP/2.0");
    assert_eq!(server.text(Some(&server.pki), "http/1.1").await, "kubernetes-admin HTTP/1.1");
    assert_eq!(server.text(None, "h2").await, "system:anonymous HTTP/2.0");
}

#[tokio::test]
async fn a_certificate_of_another_ca_is_unauthorized() {
    let server = start(Limits::default()).await;
    let other = Pki::ephemeral(&Clock::system(), &[]).unwrap();
    assert_eq!(server.text(Some(&other), "h2").await, "Unauthorized HTTP/2.0");
    assert_eq!(server.text(Some(&other), "http/1.1").await, "Unauthorized HTTP/1.1");
}

#[tokio::test]
async fn plain_http_gets_a_readable_error() {
    let server = start(Limits::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.0 400 Bad Request\r\n"), "{response}");
    assert!(response.ends_with("Client sent an HTTP request to an HTTPS server.\n"), "{response}");
}

#[tokio::test]
async fn shutdown_ends_watches_without_an_error() {
    for alpn in ["h2", "http/1.1"] {
        let server = start(Limits::default()).await;
        let mut body = server.get(Some(&server.pki), alpn, "/watch").await.into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, "1\n");
        server.shutdown.cancel();
        let rest = body.collect().await.expect("the stream ends without an error");
        assert_eq!(rest.to_bytes(), "", "{alpn}");
        timeout(Duration::from_secs(1), server.task).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn silent_clients_are_dropped() {
    let limits = Limits { handshake: Duration::from_millis(20), ..Limits::default() };
    let server = start(limits).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "no handshake");

    let limits = Limits { head: Duration::from_millis(20), ..Limits::default() };
    let server = start(limits).await;
    let mut stream = server.connect(None, "http/1.1").await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response).await;
    assert!(response.is_empty() || response.starts_with("HTTP/1.1 408"), "{response}");
}

#[tokio::test]
async fn silent_unauthenticated_connections_keep_no_client_out() {
    let server = start(Limits { connections: 16, ..Limits::default() }).await;
    // An authenticated connection that waits for events.
    let mut watch = server.get(Some(&server.pki), "h2", "/watch").await.into_body();
    assert_eq!(watch.frame().await.unwrap().unwrap().into_data().unwrap(), "1\n");
    let mut silent = Vec::new();
    for index in 0..100 {
        match index % 4 {
            // Nothing, half a handshake, half a head, half an HTTP/2 head.
            0 => silent.push(TcpStream::connect(server.address).await.unwrap()),
            1 => {
                let mut stream = TcpStream::connect(server.address).await.unwrap();
                stream.write_all(&[22, 3, 1, 2, 0, 1]).await.unwrap();
                silent.push(stream);
            }
            http => {
                let mut stream = server.connect(None, ["http/1.1", "h2"][http - 2]).await.unwrap();
                let half: &[u8] = if http == 2 {
                    b"GET / HTTP/1.1\r\nHost: x\r\n"
                } else {
                    // The preface, SETTINGS, and HEADERS without their end.
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\0\0\0\0\x01\x82"
                };
                stream.write_all(half).await.unwrap();
                stream.flush().await.unwrap();
                silent.push(stream.into_inner().0);
            }
        }
    }
    for alpn in ["h2", "http/1.1"] {
        let text = server.text(Some(&server.pki), alpn).await;
        assert!(text.starts_with("kubernetes-admin "), "{text}");
        let text = server.text(None, alpn).await;
        assert!(
            text.starts_with("system:anonymous "),
            "unauthenticated clients get a response, too: {text}"
        );
    }
    // The watch continued: it ends in order, with the server.
    server.shutdown.cancel();
    assert_eq!(watch.collect().await.unwrap().to_bytes(), "");
    drop(silent);
}

#[tokio::test]
async fn an_incomplete_head_ends_after_the_unauthenticated_timeout() {
    let limits = Limits { unauthenticated_idle: Duration::from_millis(20), ..Limits::default() };
    let server = start(limits).await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for (alpn, sent) in [("http/1.1", &b"GET / HTTP/1.1\r\nHost: x\r\n"[..]), ("h2", preface)] {
        let mut stream = server.connect(None, alpn).await.unwrap();
        stream.write_all(sent).await.unwrap();
        // The connection is closed, so this returns.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends_only_while_unauthenticated() {
    const IDLE: Duration = Duration::from_secs(20);
    let wait = |requests: &RequestCount, proven: bool| {
        timeout(
            IDLE + Duration::from_secs(1),
            wait_unauthenticated_idle(requests.clone(), move || proven, IDLE),
        )
    };
    let requests = RequestCount::default();
    assert!(
        wait(&requests, false).await.is_ok(),
        "an unauthenticated connection without a request ends"
    );
    assert!(wait(&requests, true).await.is_err(), "an authenticated connection may be idle");
    let open = requests.begin_request(&ConnectionHandle::default());
    assert!(wait(&requests, false).await.is_err(), "a connection with an open request stays");
    drop(open);
    let other_requests = requests.clone();
    let active = tokio::spawn(async move {
        for _ in 0..9 {
            drop(other_requests.begin_request(&ConnectionHandle::default()));
            sleep(IDLE / 3).await;
        }
    });
    assert!(wait(&requests, false).await.is_err(), "an active connection stays open");
    active.abort();
    assert!(wait(&requests, false).await.is_ok());
}

#[tokio::test]
async fn a_connection_future_is_below_one_kibibyte() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let service = tower::service_fn(|_: Request<TrackedBody>| async {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
    });
    let pki = Pki::ephemeral(&Clock::system(), &[]).unwrap();
    let acceptor = TlsAcceptor::from(pki.server_config().unwrap());
    let (limits, shutdown) = (Limits::default(), CancellationToken::new());
    let port = ConnectionContext { acceptor, limits, shutdown, service };
    let connection = port.connection(stream, address, ConnectionHandle::default());
    assert!(size_of_val(&connection) < 1024, "{}", size_of_val(&connection));
}

#[tokio::test]
async fn a_request_with_an_ambiguous_length_is_refused() {
    let server = start(Limits::default()).await;
    for headers in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: +5",
        "Content-Length: 5, 6",
        "Content-Length: 99999999999999999999999",
        "Content-Length : 5",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: identity",
        "X: a\r\n Content-Length: 5",
        "X\0: a",
    ] {
        let mut stream = server.connect(None, "http/1.1").await.unwrap();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n0\r\n\r\nGET /watch HTTP/1.1\r\nHost: x\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        // The connection ends with the refusal: the server reads nothing after it.
        let _ = timeout(Duration::from_secs(10), stream.read_to_end(&mut response)).await.unwrap();
        let response = String::from_utf8_lossy(&response);
        assert!(response.starts_with("HTTP/1.1 400"), "{headers:?}: {response}");
        assert_eq!(response.matches("HTTP/1.1").count(), 1, "{headers:?}: {response}");
    }
}

/// The `Connection` header of the response to a POST of `body`. The server reads bodies only below
/// `/read`.
async fn connection_header(alpn: &str, path: &str, body: &[u8]) -> Option<String> {
    let pki = Pki::ephemeral(&Clock::system(), &[]).unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let service = tower::service_fn(|request: Request<TrackedBody>| async {
        if request.uri().path() == "/read" {
            request.into_body().collect().await.unwrap();
        }
        let mut response = Response::new(Full::new(Bytes::from("no")));
        *response.status_mut() = http::StatusCode::FORBIDDEN;
        Ok::<_, Infallible>(response)
    });
    let tls = pki.server_config().unwrap();
    let task = tokio::spawn(serve(listener, tls, Limits::default(), shutdown.clone(), service));
    let server = TestServer { pki, address, shutdown, task };
    let io = TokioIo::new(server.connect(None, alpn).await.unwrap());
    let uri = format!("https://localhost{path}");
    let request = Request::post(if alpn == "h2" { uri.as_str() } else { path });
    let request =
        request.header("host", "x").body(Full::new(Bytes::copy_from_slice(body))).unwrap();
    let response = if alpn == "h2" {
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    } else {
        let (mut sender, connection) = http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    };
    assert_eq!(response.status(), 403);
    response.headers().get("connection").map(|value| value.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_response_before_the_body_was_read_closes_the_connection() {
    let close = Some("close".to_owned());
    assert_eq!(connection_header("http/1.1", "/early", b"{}").await, close);
    assert_eq!(connection_header("http/1.1", "/read", b"{}").await, None);
    assert_eq!(connection_header("http/1.1", "/early", b"").await, None, "the body was empty");
    assert_eq!(connection_header("h2", "/early", b"{}").await, None, "only the stream ends");
}
