//! HTTP and SOCKS proxies: which proxy a connection uses, and the tunnel through it.

use super::{Dialer, RegistrySecret, RegistryStream};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;

/// A proxy, `http://[name:password@]host:port`; the scheme may also be `https` or `socks5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    speaks: Speaks,
    host: String,
    port: u16,
    /// User name, a colon and password.
    login: Option<RegistrySecret>,
}

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    Http,
    Https,
    /// The proxy resolves host names.
    Socks5,
}

/// The text is no proxy URL. It is not displayed, because it may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a proxy is written http://host:port, https://host:port or socks5://host:port; name:password@ may precede the host"
)]
pub struct ProxyError;

impl std::str::FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let (speaks, usual) = match scheme {
            "http" => (Speaks::Http, 80),
            "https" => (Speaks::Https, 443),
            "socks5" | "socks5h" => (Speaks::Socks5, 1080),
            _ => return Err(ProxyError),
        };
        let rest = rest.split('/').next().unwrap_or_default();
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => {
                let (name, password) = login.split_once(':').unwrap_or((login, ""));
                let login =
                    format!("{}:{}", crate::url::decode(name), crate::url::decode(password));
                (Some(RegistrySecret::new(login)), place)
            }
            None => (None, rest),
        };
        let uri: Uri = format!("http://{place}").parse().map_err(|_| ProxyError)?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(ProxyError)?.to_owned();
        let port = uri.port_u16().unwrap_or(usual);
        Ok(Self { speaks, host, port, login })
    }
}

impl Proxy {
    /// Connects to a port of a host through the proxy. Plain HTTP also uses a tunnel, so that the
    /// proxy cannot read it.
    ///
    /// # Errors
    /// If the proxy cannot be reached, or refuses.
    pub async fn connect(
        &self,
        dial: &Arc<dyn Dialer>,
        tls: &ClientConfig,
        host: &str,
        port: u16,
    ) -> io::Result<Box<dyn RegistryStream>> {
        let stream = dial.dial(self.host.clone(), self.port).await?;
        match self.speaks {
            Speaks::Http => return self.tunnel(stream, host, port).await,
            Speaks::Socks5 => return self.socks(stream, host, port).await,
            Speaks::Https => {}
        }
        // Without this, TLS would negotiate HTTP/2, which this client does not speak to a proxy.
        let mut config = tls.clone();
        config.alpn_protocols.clear();
        let name = self.host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(io::Error::other)?;
        let secured = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        self.tunnel(Box::new(secured), host, port).await
    }

    /// As [`Proxy::connect`], with the system's CAs for a proxy that speaks TLS.
    ///
    /// # Errors
    /// As [`Proxy::connect`].
    pub async fn lead(
        &self,
        dial: &Arc<dyn Dialer>,
        host: &str,
        port: u16,
    ) -> io::Result<Box<dyn RegistryStream>> {
        let mut roots = RootCertStore::empty();
        if self.speaks == Speaks::Https {
            let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs);
            roots.add_parsable_certificates(found.await.map_err(io::Error::other)?.certs);
        }
        let tls = mainstay_tls::builder().map_err(io::Error::other)?;
        let tls = tls.with_root_certificates(roots).with_no_client_auth();
        self.connect(dial, &tls, host, port).await
    }

    async fn tunnel(
        &self,
        mut stream: Box<dyn RegistryStream>,
        host: &str,
        port: u16,
    ) -> io::Result<Box<dyn RegistryStream>> {
        const LONGEST: usize = 16 << 10;
        let mut head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
        if let Some(login) = &self.login {
            let login = STANDARD.encode(login.reveal());
            let _ = write!(head, "Proxy-Authorization: Basic {login}\r\n");
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await?;
        stream.flush().await?;
        let mut answer = Vec::new();
        // The bytes behind the head belong to the tunnel, so the head is read byte by byte.
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() > LONGEST {
                return Err(io::Error::other("the response of the proxy is too long"));
            }
            answer.push(stream.read_u8().await?);
        }
        let line = String::from_utf8_lossy(&answer);
        let status = line.split(' ').nth(1).unwrap_or_default();
        if line.starts_with("HTTP/1.") && status == "200" {
            return Ok(stream);
        }
        let status: String = status.chars().filter(char::is_ascii_digit).take(3).collect();
        Err(io::Error::other(format!("the proxy refuses the connection with status {status}")))
    }

    /// Opens a tunnel as in RFC 1928 and 1929. The bytes behind the responses belong to the tunnel,
    /// so only the responses are read.
    async fn socks(
        &self,
        mut stream: Box<dyn RegistryStream>,
        host: &str,
        port: u16,
    ) -> io::Result<Box<dyn RegistryStream>> {
        const VERSION: u8 = 5;
        const ANYBODY: u8 = 0;
        const PASSWORD: u8 = 2;
        let refused =
            |why: &str| io::Error::other(format!("the proxy refuses the connection: {why}"));
        let text = |text: &str| match u8::try_from(text.len()) {
            Ok(length) => Ok([&[length], text.as_bytes()].concat()),
            Err(_) => Err(refused("a name of more than 255 bytes")),
        };
        let login = self.login.as_ref().and_then(|login| login.reveal().split_once(':'));
        let ways: &[u8] = if login.is_some() { &[2, ANYBODY, PASSWORD] } else { &[1, ANYBODY] };
        stream.write_all(&[&[VERSION], ways].concat()).await?;
        stream.flush().await?;
        let mut answer = [0; 2];
        stream.read_exact(&mut answer).await?;
        match (answer, login) {
            ([VERSION, ANYBODY], _) => {}
            ([VERSION, PASSWORD], Some((name, password))) => {
                stream.write_all(&[vec![1], text(name)?, text(password)?].concat()).await?;
                stream.flush().await?;
                stream.read_exact(&mut answer).await?;
                if answer[1] != 0 {
                    return Err(refused("the name or the password is wrong"));
                }
            }
            ([VERSION, _], _) => return Err(refused("it requires another authentication method")),
            _ => return Err(refused("it does not speak SOCKS 5")),
        }
        let to = match host.trim_matches(['[', ']']).parse() {
            Ok(IpAddr::V4(address)) => [&[1], &address.octets()[..]].concat(),
            Ok(IpAddr::V6(address)) => [&[4], &address.octets()[..]].concat(),
            Err(_) => [vec![3], text(host)?].concat(),
        };
        let connect = [VERSION, 1, 0];
        stream.write_all(&[&connect[..], &to, &port.to_be_bytes()].concat()).await?;
        stream.flush().await?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await?;
        if answer[1] != 0 {
            return Err(refused(&format!("it returns code {}", answer[1])));
        }
        // The address and port from which the proxy connects.
        let length = match answer[3] {
            1 => 4,
            4 => 16,
            _ => usize::from(stream.read_u8().await?),
        };
        stream.read_exact(&mut vec![0; length + 2]).await?;
        Ok(stream)
    }
}

/// Hosts that are reached without a proxy, as Go parses `NO_PROXY`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoProxy(Vec<String>);

impl NoProxy {
    /// Parses a comma-separated list: `*`, domains (with all subdomains), `.domain` (only
    /// subdomains), IP addresses, and CIDR ranges such as `10.0.0.0/8`. All but ranges may have a
    /// port.
    pub fn new(list: &str) -> Self {
        let entries = list.split(',').map(|one| one.trim().to_lowercase());
        Self(entries.filter(|one| !one.is_empty()).collect())
    }

    /// Whether a host is reached without a proxy. Loopback addresses always are.
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

/// The proxies for all connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// The proxy for TLS.
    pub https: Option<Proxy>,
    /// The proxy for plain HTTP.
    pub http: Option<Proxy>,
    /// Hosts without a proxy.
    pub none: NoProxy,
}

impl Proxies {
    /// Proxies of an environment: `HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`, in upper or lower case.
    /// `lookup` reads a variable.
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

    /// Proxies of an environment for gRPC: `GRPC_PROXY` replaces those for HTTP, as in OLM.
    ///
    /// # Errors
    /// If the variable is no proxy URL.
    pub fn for_grpc(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let grpc = |name: &str| match name {
            "HTTP_PROXY" => lookup("GRPC_PROXY"),
            "http_proxy" => lookup("grpc_proxy"),
            "NO_PROXY" | "no_proxy" => lookup(name),
            _ => None,
        };
        Self::from_environment(grpc)
    }

    /// The proxy for a port of a host, if there is one; `tls` is whether the connection uses TLS.
    pub fn of(&self, tls: bool, host: &str, port: u16) -> Option<&Proxy> {
        let proxy = if tls { &self.https } else { &self.http };
        proxy.as_ref().filter(|_| !self.none.covers(host, port))
    }
}
