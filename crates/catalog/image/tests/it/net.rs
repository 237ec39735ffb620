//! In-memory network for tests: hosts by name, scripted or with our registry.

use bytes::Bytes;
use futures::{StreamExt as _, future::BoxFuture};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use mainstay_clock::Clock;
use mainstay_image::{
    registry::{ClientSettings, Dialer, ImageClient, RegistryStream},
    serve::RegistryHandler,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::io::DuplexStream;
use tokio_rustls::TlsAcceptor;

pub(crate) type Body = BoxBody<Bytes, io::Error>;
type Handler = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<Body>> + Send + Sync>;

/// What a host does with a connection without correct HTTP.
type Raw = Arc<dyn Fn(DuplexStream) -> BoxFuture<'static, ()> + Send + Sync>;

#[derive(Clone)]
struct Host {
    handler: Handler,
    tls: Option<TlsAcceptor>,
}

/// The hosts of a test, and the requests that they received.
#[derive(Clone, Default)]
pub(crate) struct Net {
    hosts: Arc<Mutex<BTreeMap<(String, u16), Host>>>,
    raw: Arc<Mutex<BTreeMap<(String, u16), Raw>>>,
    log: Arc<Mutex<Vec<ReceivedRequest>>>,
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A TLS acceptor with a certificate for a host, and its CA.
pub(crate) fn certificate(host: &str) -> (TlsAcceptor, CertificateDer<'static>) {
    certificate_asking(host, None)
}

/// As [`certificate`], for a host that requires client certificates of a CA.
pub(crate) fn certificate_asking(
    host: &str,
    authority: Option<CertificateDer<'static>>,
) -> (TlsAcceptor, CertificateDer<'static>) {
    let self_signed = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
    let certificate = self_signed.cert.der().clone();
    let key = PrivateKeyDer::try_from(self_signed.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = match authority {
        None => config.with_no_client_auth(),
        Some(authority) => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(authority).unwrap();
            let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
                Arc::new(roots),
                provider,
            );
            config.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let mut config = config.with_single_cert(vec![certificate.clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    (TlsAcceptor::from(Arc::new(config)), certificate)
}

impl Net {
    /// Adds a host that responds with the result of a function.
    pub(crate) fn host<F>(&self, name: &str, port: u16, tls: Option<TlsAcceptor>, answer: F)
    where
        F: Fn(&Request<Incoming>) -> Response<Body> + Send + Sync + 'static,
    {
        let log = Arc::clone(&self.log);
        let name_of = name.to_owned();
        let answer = Arc::new(answer);
        let handler: Handler = Arc::new(move |request: Request<Incoming>| {
            let uri = request.uri();
            let path = uri.path_and_query().map_or("/", |path| path.as_str());
            let line = format!("{} {name_of}{path}", request.method());
            let headers = request.headers().clone();
            log.lock().unwrap().push(ReceivedRequest { line, headers });
            let answer = Arc::clone(&answer);
            Box::pin(async move {
                let response = answer(&request);
                let _ = request.into_body().collect().await;
                response
            })
        });
        let host = Host { handler, tls };
        self.hosts.lock().unwrap().insert((name.to_owned(), port), host);
    }

    /// Adds a host with our registry.
    pub(crate) fn registry(
        &self,
        name: &str,
        port: u16,
        tls: Option<TlsAcceptor>,
        ours: RegistryHandler,
    ) {
        let log = Arc::clone(&self.log);
        let name_of = name.to_owned();
        let handler: Handler = Arc::new(move |request| {
            let line = format!("{} {name_of}{}", request.method(), request.uri().path());
            let headers = request.headers().clone();
            log.lock().unwrap().push(ReceivedRequest { line, headers });
            let ours = ours.clone();
            Box::pin(async move { ours.handle(request).await })
        });
        let host = Host { handler, tls };
        self.hosts.lock().unwrap().insert((name.to_owned(), port), host);
    }

    /// Adds a host that handles connections with a function.
    pub(crate) fn raw(
        &self,
        name: &str,
        port: u16,
        serve: impl Fn(DuplexStream) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) {
        let (log, line) = (Arc::clone(&self.log), format!("connection to {name}"));
        let raw: Raw = Arc::new(move |stream| {
            log.lock()
                .unwrap()
                .push(ReceivedRequest { line: line.clone(), headers: HeaderMap::new() });
            serve(stream)
        });
        self.raw.lock().unwrap().insert((name.to_owned(), port), raw);
    }

    pub(crate) fn log(&self) -> Vec<ReceivedRequest> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.log().into_iter().map(|asked| asked.line).collect()
    }

    pub(crate) fn settings(&self) -> ClientSettings {
        ClientSettings {
            dial: Arc::new(self.clone()),
            system_authorities: false,
            stall: Duration::from_secs(30),
            attempts: 4,
            ..ClientSettings::new(Clock::starting_at(jiff::Timestamp::UNIX_EPOCH))
        }
    }

    pub(crate) fn client(&self) -> ImageClient {
        ImageClient::new(self.settings()).unwrap()
    }
}

impl Dialer for Net {
    fn dial(
        &self,
        host: String,
        port: u16,
    ) -> BoxFuture<'static, io::Result<Box<dyn RegistryStream>>> {
        let key = (host, port);
        let raw = self.raw.lock().unwrap().get(&key).cloned();
        let found = self.hosts.lock().unwrap().get(&key).cloned();
        Box::pin(async move {
            if let Some(raw) = raw {
                let (near, far) = tokio::io::duplex(1 << 12);
                tokio::spawn(raw(far));
                return Ok(Box::new(near) as Box<dyn RegistryStream>);
            }
            let Some(found) = found else { return Err(io::ErrorKind::ConnectionRefused.into()) };
            let (near, far) = tokio::io::duplex(1 << 16);
            tokio::spawn(async move {
                let handler = found.handler;
                let service = service_fn(move |request| {
                    let answer = handler(request);
                    async move { Ok::<_, Infallible>(answer.await) }
                });
                let server = auto::Builder::new(TokioExecutor::new());
                let _ = match found.tls {
                    None => server.serve_connection(TokioIo::new(far), service).await,
                    Some(tls) => match tls.accept(far).await {
                        Ok(far) => server.serve_connection(TokioIo::new(far), service).await,
                        Err(_) => return,
                    },
                };
            });
            Ok(Box::new(near) as Box<dyn RegistryStream>)
        })
    }
}

pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed()
}

/// A response; headers as `name: value`.
pub(crate) fn answer(status: u16, headers: &[&str], body: impl Into<Bytes>) -> Response<Body> {
    with_body(status, headers, full(body))
}

pub(crate) fn with_body(status: u16, headers: &[&str], body: Body) -> Response<Body> {
    let mut answer = Response::builder().status(status);
    for header in headers {
        let (name, value) = header.split_once(": ").unwrap();
        answer = answer.header(name, value);
    }
    answer.body(body).unwrap()
}

/// A body that sends some bytes and then stalls.
pub(crate) fn stalling(bytes: impl Into<Bytes>) -> Body {
    let first = futures::stream::iter([Ok(Frame::data(bytes.into()))]);
    BoxBody::new(StreamBody::new(first.chain(futures::stream::pending())))
}

/// A body that is interrupted.
pub(crate) fn breaking(bytes: impl Into<Bytes>) -> Body {
    let first = futures::stream::iter([Ok(Frame::data(bytes.into()))]);
    // The client has received the first bytes by then.
    let broken = futures::stream::once(async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Err(io::Error::other("broken"))
    });
    BoxBody::new(StreamBody::new(first.chain(Box::pin(broken))))
}
