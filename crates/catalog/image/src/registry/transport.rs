//! Connections to registries: proxies, TLS, HTTP/1.1 and HTTP/2.

use super::certs::{CertError, CertFolders, Certificates};
use super::proxy::Proxies;
use super::{ClientSettings, RegistryError, Security};
use crate::reference::DEFAULT_DOMAIN;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::{
        self,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo},
};
use mainstay_tls::AnyCertificate;
use parking_lot::Mutex;
use rustls::{RootCertStore, pki_types::ServerName};
use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

/// A network connection.
pub trait RegistryStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> RegistryStream for S {}

/// Opens connections. Tests implement it without a network.
pub trait Dialer: Send + Sync {
    /// Connects to a port of a host.
    fn dial(
        &self,
        host: String,
        port: u16,
    ) -> BoxFuture<'static, io::Result<Box<dyn RegistryStream>>>;
}

/// Opens TCP connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpDialer;

impl Dialer for TcpDialer {
    fn dial(
        &self,
        host: String,
        port: u16,
    ) -> BoxFuture<'static, io::Result<Box<dyn RegistryStream>>> {
        Box::pin(async move {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let mut failed = None;
            for address in tokio::net::lookup_host((host, port)).await? {
                match tokio::net::TcpStream::connect(address).await {
                    Ok(stream) => {
                        stream.set_nodelay(true)?;
                        return Ok(Box::new(stream) as Box<dyn RegistryStream>);
                    }
                    Err(error) => failed = failed.or(Some((address, error))),
                }
            }
            // The first address is that which other clients report.
            Err(match failed {
                Some((address, error)) => {
                    io::Error::new(error.kind(), format!("{address}: {error}"))
                }
                None => io::Error::new(io::ErrorKind::NotFound, "the host has no address"),
            })
        })
    }
}

/// The body of a request.
pub(super) type Outgoing = BoxBody<Bytes, io::Error>;

/// The HTTP clients. Connections with and without certificate verification are separate.
pub(super) struct Transport {
    verified: legacy::Client<Connector, Outgoing>,
    unverified: legacy::Client<Connector, Outgoing>,
    special: RegistryCertificates,
}

/// How server certificates are verified.
#[derive(Clone)]
enum CertificateVerification {
    Roots(Arc<RootCertStore>),
    AnyCertificate,
}

impl CertificateVerification {
    /// The TLS configuration for a registry with its own certificates, or for all others.
    fn connector(&self, special: Option<&Certificates>) -> Result<TlsConnector, rustls::Error> {
        let builder = match self {
            Self::AnyCertificate => mainstay_tls::builder_with_verifier(AnyCertificate)?,
            Self::Roots(roots) => {
                let mut roots = RootCertStore::clone(roots);
                let more = special.map(|special| special.authorities.clone());
                roots.add_parsable_certificates(more.unwrap_or_default());
                mainstay_tls::builder()?.with_root_certificates(roots)
            }
        };
        let mut config = match special.and_then(|special| special.client.as_ref()) {
            Some((chain, key)) => builder.with_client_auth_cert(chain.clone(), key.clone_key())?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// Certificates of single registries, read once.
#[derive(Clone)]
struct RegistryCertificates {
    folders: CertFolders,
    known: Arc<Mutex<BTreeMap<String, Option<Arc<Certificates>>>>>,
}

impl RegistryCertificates {
    /// The certificates for the host of a URL.
    async fn of(&self, uri: &Uri) -> Result<Option<Arc<Certificates>>, CertError> {
        if self.folders.is_empty() {
            return Ok(None);
        }
        let host = uri.host().unwrap_or_default();
        let name = match uri.port_u16() {
            Some(port) => format!("{host}:{port}"),
            None if host == "registry-1.docker.io" => DEFAULT_DOMAIN.to_owned(),
            None => host.to_owned(),
        };
        if let Some(known) = self.known.lock().get(&name) {
            return Ok(known.clone());
        }
        let (folders, asked) = (self.folders.clone(), name.clone());
        let read = tokio::task::spawn_blocking(move || folders.of(&asked)).await;
        let found = read.map_err(CertError::Join)??.map(Arc::new);
        self.known.lock().insert(name, found.clone());
        Ok(found)
    }
}

impl Transport {
    pub(super) fn new(settings: &ClientSettings) -> Result<Self, RegistryError> {
        let failed = |error: rustls::Error| RegistryError::Tls(error.to_string());
        let mut roots = RootCertStore::empty();
        if settings.system_authorities {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        for authority in &settings.authorities {
            roots.add(authority.clone()).map_err(failed)?;
        }
        let special =
            RegistryCertificates { folders: settings.certificates.clone(), known: Arc::default() };
        let client = |judgement: CertificateVerification| -> Result<_, RegistryError> {
            let connector = Connector {
                dial: Arc::clone(&settings.dial),
                tls: judgement.connector(None).map_err(failed)?,
                judgement,
                special: special.clone(),
                proxies: settings.proxies.clone(),
                timeout: settings.stall,
            };
            Ok(legacy::Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(settings.parallel)
                .http1_max_buf_size(1 << 18)
                .http2_max_header_list_size(1 << 16)
                .http2_initial_stream_window_size(1 << 20)
                .http2_initial_connection_window_size(4 << 20)
                .build(connector))
        };
        Ok(Self {
            verified: client(CertificateVerification::Roots(Arc::new(roots)))?,
            unverified: client(CertificateVerification::AnyCertificate)?,
            special,
        })
    }

    /// Checks that the certificates of a registry can be used, if it has its own.
    pub(super) async fn prepare(&self, uri: &Uri) -> Result<(), RegistryError> {
        if uri.scheme_str() == Some("https") {
            let found = self.special.of(uri).await;
            found.map_err(|error| RegistryError::Tls(error.to_string()))?;
        }
        Ok(())
    }

    pub(super) async fn request(
        &self,
        request: Request<Outgoing>,
        security: Security,
    ) -> Result<Response<Incoming>, legacy::Error> {
        let client = match security {
            Security::Tls | Security::Plain => &self.verified,
            Security::Insecure => &self.unverified,
        };
        client.request(request).await
    }
}

#[derive(Clone)]
struct Connector {
    dial: Arc<dyn Dialer>,
    /// The TLS configuration for registries without their own certificates.
    tls: TlsConnector,
    judgement: CertificateVerification,
    special: RegistryCertificates,
    proxies: Proxies,
    timeout: Duration,
}

impl Connector {
    async fn connect(self, uri: Uri) -> io::Result<HttpConnection> {
        let tls = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().to_owned();
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let mut stream = match self.proxies.of(tls, &host, port) {
            None => self.dial.dial(host.clone(), port).await?,
            Some(proxy) => proxy.connect(&self.dial, self.tls.config(), &host, port).await?,
        };
        let mut http2 = false;
        if tls {
            let special = self.special.of(&uri).await.map_err(io::Error::other)?;
            let secured = self.secure(stream, &host, special.as_deref()).await?;
            http2 = secured.get_ref().1.alpn_protocol() == Some(b"h2");
            stream = Box::new(secured);
        }
        Ok(HttpConnection { io: TokioIo::new(stream), http2 })
    }

    async fn secure(
        &self,
        stream: Box<dyn RegistryStream>,
        host: &str,
        special: Option<&Certificates>,
    ) -> io::Result<tokio_rustls::client::TlsStream<Box<dyn RegistryStream>>> {
        let name = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(io::Error::other)?;
        match special {
            None => self.tls.connect(name, stream).await,
            Some(special) => {
                let own = self.judgement.connector(Some(special)).map_err(io::Error::other)?;
                own.connect(name, stream).await
            }
        }
    }
}

impl tower::Service<Uri> for Connector {
    type Response = HttpConnection;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<HttpConnection>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connector, timeout) = (self.clone(), self.timeout);
        Box::pin(async move {
            match tokio::time::timeout(timeout, connector.connect(uri)).await {
                Ok(connected) => connected,
                Err(_) => {
                    Err(io::Error::new(io::ErrorKind::TimedOut, "no connection within the timeout"))
                }
            }
        })
    }
}

/// A connection with its HTTP version.
struct HttpConnection {
    io: TokioIo<Box<dyn RegistryStream>>,
    http2: bool,
}

impl Connection for HttpConnection {
    fn connected(&self) -> Connected {
        let connected = Connected::new();
        if self.http2 { connected.negotiated_h2() } else { connected }
    }
}

impl Read for HttpConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl Write for HttpConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
