//! Connections: proxies, TLS, HTTP/1.1 and HTTP/2.

use super::certs::{CertFolders, Certificates};
use super::{RegistryError, Secret, Security, Settings};
use crate::reference::DEFAULT_DOMAIN;
use base64::Engine as _;
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
use mainstay_tls::Anybody;
use parking_lot::Mutex;
use rustls::{RootCertStore, pki_types::ServerName};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Makes connections; tests make others than the network's.
pub trait Dial: Send + Sync {
    /// Connects to a port of a host.
    fn dial(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Box<dyn Stream>>>;
}

/// TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpDial;

impl Dial for TcpDial {
    fn dial(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let stream = tokio::net::TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// A proxy, `http://[name:password@]host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    host: String,
    port: u16,
    tls: bool,
    login: Option<Secret>,
}

/// A text that names no proxy. It is not shown: it may have a password in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a proxy is written http://host:port or https://host:port, perhaps with name:password@")]
pub struct ProxyError;

impl std::str::FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let tls = match scheme {
            "http" => false,
            "https" => true,
            _ => return Err(ProxyError),
        };
        let rest = rest.split('/').next().unwrap_or_default();
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => {
                let (name, password) = login.split_once(':').unwrap_or((login, ""));
                let login =
                    format!("{}:{}", crate::url::decode(name), crate::url::decode(password));
                let login = base64::engine::general_purpose::STANDARD.encode(login);
                (Some(Secret::new(login)), place)
            }
            None => (None, rest),
        };
        let uri: Uri = format!("{scheme}://{place}").parse().map_err(|_| ProxyError)?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(ProxyError)?.to_owned();
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Self { host, port, tls, login })
    }
}

/// Hosts that are reached without a proxy, as Go reads `NO_PROXY`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoProxy(Vec<String>);

impl NoProxy {
    /// A list separated by commas: `*`, names (with all below them), `.names` (only those below),
    /// addresses, and ranges such as `10.0.0.0/8`; each but the last perhaps with a port.
    pub fn new(list: &str) -> Self {
        let entries = list.split(',').map(|one| one.trim().to_lowercase());
        Self(entries.filter(|one| !one.is_empty()).collect())
    }

    /// Whether a host is reached without one. The machine itself always is.
    pub fn covers(&self, host: &str, port: u16) -> bool {
        let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_lowercase();
        let address = host.parse::<IpAddr>().ok();
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return true;
        }
        self.0.iter().any(|entry| {
            if entry == "*" {
                return true;
            }
            if let (Some((net, bits)), Some(address)) = (entry.split_once('/'), address) {
                return in_range(address, net, bits);
            }
            let (name, only) = match entry.rsplit_once(':') {
                Some((name, only)) if !name.contains(':') || name.ends_with(']') => {
                    (name, only.parse::<u16>().ok())
                }
                _ => (entry.as_str(), None),
            };
            if only.is_some_and(|only| only != port) {
                return false;
            }
            let name = name.trim_matches(['[', ']']);
            if let Some(address) = address {
                return name.parse::<IpAddr>() == Ok(address);
            }
            let below = name.strip_prefix("*.").or_else(|| name.strip_prefix('.'));
            let ends = |name: &str| {
                host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
            };
            below.map_or_else(|| host == name || ends(name), ends)
        })
    }
}

fn in_range(address: IpAddr, net: &str, bits: &str) -> bool {
    let (Ok(net), Ok(bits)) = (net.parse::<IpAddr>(), bits.parse::<u32>()) else { return false };
    match (address, net) {
        (IpAddr::V4(address), IpAddr::V4(net)) if bits <= 32 => {
            let shift = 32 - bits;
            u64::from(address.to_bits()) >> shift == u64::from(net.to_bits()) >> shift
        }
        (IpAddr::V6(address), IpAddr::V6(net)) if bits <= 128 => {
            let same = (address.to_bits() ^ net.to_bits()).leading_zeros();
            same >= bits
        }
        _ => false,
    }
}

/// Which proxy leads where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For TLS.
    pub https: Option<Proxy>,
    /// For plain HTTP.
    pub http: Option<Proxy>,
    /// For neither.
    pub none: NoProxy,
}

impl Proxies {
    /// What an environment says: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`, or the same in small
    /// letters. `lookup` reads a variable.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let one = |name: &str| {
            let found = lookup(name).filter(|value| !value.is_empty());
            found.or_else(|| lookup(&name.to_lowercase()).filter(|value| !value.is_empty()))
        };
        Ok(Self {
            https: one("HTTPS_PROXY").map(|text| text.parse()).transpose()?,
            http: one("HTTP_PROXY").map(|text| text.parse()).transpose()?,
            none: NoProxy::new(&one("NO_PROXY").unwrap_or_default()),
        })
    }

    fn of(&self, tls: bool, host: &str, port: u16) -> Option<&Proxy> {
        let proxy = if tls { &self.https } else { &self.http };
        proxy.as_ref().filter(|_| !self.none.covers(host, port))
    }
}

/// The body of a request.
pub(super) type Outgoing = BoxBody<Bytes, io::Error>;

/// Keeps connections, those that verify certificates and those that do not apart.
pub(super) struct Transport {
    verified: legacy::Client<Connector, Outgoing>,
    unverified: legacy::Client<Connector, Outgoing>,
    special: Special,
}

/// Whose certificates are taken.
#[derive(Clone)]
enum Judgement {
    Roots(Arc<RootCertStore>),
    Anybody,
}

impl Judgement {
    /// Settings of TLS, for a registry with certificates of its own or for all others.
    fn connector(&self, special: Option<&Certificates>) -> Result<TlsConnector, rustls::Error> {
        let builder = match self {
            Self::Anybody => mainstay_tls::judged(Anybody)?,
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
struct Special {
    folders: CertFolders,
    known: Arc<Mutex<BTreeMap<String, Option<Arc<Certificates>>>>>,
}

impl Special {
    /// Those for the host that an address leads to.
    async fn of(&self, uri: &Uri) -> Result<Option<Arc<Certificates>>, String> {
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
        let found = read.map_err(|error| error.to_string())??.map(Arc::new);
        self.known.lock().insert(name, found.clone());
        Ok(found)
    }
}

impl Transport {
    pub(super) fn new(settings: &Settings) -> Result<Self, RegistryError> {
        let failed = |error: rustls::Error| RegistryError::Tls(error.to_string());
        let mut roots = RootCertStore::empty();
        if settings.system_authorities {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        for authority in &settings.authorities {
            roots.add(authority.clone()).map_err(failed)?;
        }
        let special = Special { folders: settings.certificates.clone(), known: Arc::default() };
        let client = |judgement: Judgement| -> Result<_, RegistryError> {
            let connector = Connector {
                dial: Arc::clone(&settings.dial),
                tls: judgement.connector(None).map_err(failed)?,
                judgement,
                special: special.clone(),
                proxies: settings.proxies.clone(),
                patience: settings.stall,
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
            verified: client(Judgement::Roots(Arc::new(roots)))?,
            unverified: client(Judgement::Anybody)?,
            special,
        })
    }

    /// Makes sure that the certificates of a registry can be used, if there are some.
    pub(super) async fn prepare(&self, uri: &Uri) -> Result<(), RegistryError> {
        if uri.scheme_str() == Some("https") {
            self.special.of(uri).await.map_err(RegistryError::Tls)?;
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
    dial: Arc<dyn Dial>,
    /// For all but the special ones.
    tls: TlsConnector,
    judgement: Judgement,
    special: Special,
    proxies: Proxies,
    patience: Duration,
}

impl Connector {
    async fn connect(self, uri: Uri) -> io::Result<Line> {
        let tls = uri.scheme_str() == Some("https");
        let host = uri.host().unwrap_or_default().to_owned();
        let port = uri.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let mut stream = match self.proxies.of(tls, &host, port) {
            None => self.dial.dial(host.clone(), port).await?,
            Some(proxy) => self.through(proxy, &host, port).await?,
        };
        let mut http2 = false;
        if tls {
            let special = self.special.of(&uri).await.map_err(io::Error::other)?;
            let secured = self.secure(stream, &host, special.as_deref()).await?;
            http2 = secured.get_ref().1.alpn_protocol() == Some(b"h2");
            stream = Box::new(secured);
        }
        Ok(Line { io: TokioIo::new(stream), http2 })
    }

    async fn secure(
        &self,
        stream: Box<dyn Stream>,
        host: &str,
        special: Option<&Certificates>,
    ) -> io::Result<tokio_rustls::client::TlsStream<Box<dyn Stream>>> {
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

    /// A tunnel. Plain HTTP takes one, too: nothing in it is for the proxy to read.
    async fn through(&self, proxy: &Proxy, host: &str, port: u16) -> io::Result<Box<dyn Stream>> {
        const LONGEST: usize = 16 << 10;
        let mut stream = self.dial.dial(proxy.host.clone(), proxy.port).await?;
        if proxy.tls {
            // HTTP/2 would be offered and could not be spoken.
            let mut config = (**self.tls.config()).clone();
            config.alpn_protocols.clear();
            let name = proxy.host.trim_matches(['[', ']']).to_owned();
            let name = ServerName::try_from(name).map_err(io::Error::other)?;
            stream = Box::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?);
        }
        let mut head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
        if let Some(login) = &proxy.login {
            let _ = write!(head, "Proxy-Authorization: Basic {}\r\n", login.reveal());
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        // Byte by byte: what follows belongs to the tunnel.
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() > LONGEST {
                return Err(io::Error::other("the proxy's answer is too long"));
            }
            answer.push(stream.read_u8().await?);
        }
        let line = String::from_utf8_lossy(&answer);
        let status = line.split(' ').nth(1).unwrap_or_default();
        if line.starts_with("HTTP/1.") && status == "200" {
            return Ok(stream);
        }
        let status: String = status.chars().filter(char::is_ascii_digit).take(3).collect();
        Err(io::Error::other(format!("the proxy refuses with status {status}")))
    }
}

impl tower::Service<Uri> for Connector {
    type Response = Line;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Line>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connector, patience) = (self.clone(), self.patience);
        Box::pin(async move {
            match tokio::time::timeout(patience, connector.connect(uri)).await {
                Ok(connected) => connected,
                Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no connection in time")),
            }
        })
    }
}

/// A connection, and which HTTP is spoken on it.
struct Line {
    io: TokioIo<Box<dyn Stream>>,
    http2: bool,
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        let connected = Connected::new();
        if self.http2 { connected.negotiated_h2() } else { connected }
    }
}

impl Read for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl Write for Line {
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
