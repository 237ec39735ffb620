//! A raw HTTP/1.1 client, with and without TLS: an attacker sends what no library would.

use anyhow::{Context as _, bail};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The timeout of a response.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// A host and port.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Address {
    /// Parses `[scheme://]HOST:PORT[/…]`.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or(rest);
        let (host, port) =
            authority.rsplit_once(':').with_context(|| format!("no port in {text}"))?;
        Ok(Self { host: host.to_owned(), port: port.parse()? })
    }

    /// `HOST:PORT`.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Connects without TLS.
    pub(crate) async fn dial(&self) -> anyhow::Result<TcpStream> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// The credentials of a client.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// None.
    Anonymous,
    /// A bearer token.
    Token(String),
    /// A client certificate and its key.
    Certificate(Arc<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>),
}

/// The TLS settings of a client with this identity.
pub(crate) fn tls_config(
    roots: Arc<RootCertStore>,
    identity: &Identity,
    protocols: &[&[u8]],
) -> anyhow::Result<Arc<ClientConfig>> {
    let builder = mainstay_tls::builder()?.with_root_certificates(roots);
    let mut config = match identity {
        Identity::Certificate(pair) => {
            builder.with_client_auth_cert(pair.0.clone(), pair.1.clone_key())?
        }
        _ => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}

/// Connects with TLS.
pub(crate) async fn tls_stream(
    address: &Address,
    config: Arc<ClientConfig>,
) -> anyhow::Result<TlsStream<TcpStream>> {
    let stream = address.dial().await?;
    let name = ServerName::try_from(address.host.clone())?;
    Ok(TlsConnector::from(config).connect(name, stream).await?)
}

trait Stream: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Stream for T {}

/// A connection for HTTP/1.1, or for any bytes.
pub(crate) struct Connection {
    stream: Pin<Box<dyn Stream>>,
    host: String,
    token: Option<String>,
    /// Received bytes that are not parsed yet.
    read: Vec<u8>,
}

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The beginning of the body, for messages.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).chars().take(300).collect()
    }

    /// Whether authentication or authorization failed.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self.status, 401 | 403)
    }

    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Connection {
    /// Connects with TLS and an identity.
    pub(crate) async fn tls(
        address: &Address,
        roots: Arc<RootCertStore>,
        identity: &Identity,
    ) -> anyhow::Result<Self> {
        let config = tls_config(roots, identity, &[b"http/1.1"])?;
        let stream = tls_stream(address, config).await?;
        let token = match identity {
            Identity::Token(token) => Some(token.clone()),
            _ => None,
        };
        Ok(Self { stream: Box::pin(stream), host: address.authority(), token, read: Vec::new() })
    }

    /// Connects without TLS.
    pub(crate) async fn plain(address: &Address) -> anyhow::Result<Self> {
        let stream = Box::pin(address.dial().await?);
        Ok(Self { stream, host: address.authority(), token: None, read: Vec::new() })
    }

    /// Sends raw bytes.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await?;
        Ok(())
    }

    /// The head of a request with the usual headers and the identity's.
    pub(crate) fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> String {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.host);
        if let Some(token) = &self.token {
            head.push_str("authorization: Bearer ");
            head.push_str(token);
            head.push_str("\r\n");
        }
        for (name, value) in headers {
            head.extend([*name, ": ", *value, "\r\n"]);
        }
        head
    }

    /// Sends a well-formed request and waits for its response.
    pub(crate) async fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> anyhow::Result<Response> {
        let mut head = self.head(method, path, headers);
        if !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
            let length = body.len().to_string();
            head.extend(["content-length: ", &length, "\r\n"]);
        }
        head.push_str("\r\n");
        let sent = async {
            self.stream.write_all(head.as_bytes()).await?;
            self.stream.write_all(body).await?;
            self.stream.flush().await
        };
        // After an early error response, the connection may be closed while the body is still being
        // sent.
        let sent = timeout(TIMEOUT, sent).await.context("nobody takes what is sent")?;
        match self.response().await {
            Ok(response) => Ok(response),
            Err(error) => {
                sent?;
                Err(error)
            }
        }
    }

    /// Waits for a response.
    pub(crate) async fn response(&mut self) -> anyhow::Result<Response> {
        timeout(TIMEOUT, self.read_response()).await.context("no response comes")?
    }

    /// Whether the server closes the connection, and the bytes before that.
    pub(crate) async fn closes(&mut self, within: Duration) -> (bool, Vec<u8>) {
        let mut rest = std::mem::take(&mut self.read);
        let ended = timeout(within, async {
            while self.stream.read_buf(&mut rest).await.is_ok_and(|read| read > 0) {}
        })
        .await;
        (ended.is_ok(), rest)
    }

    async fn fill(&mut self) -> anyhow::Result<usize> {
        self.read.reserve(16 * 1024);
        Ok(self.stream.read_buf(&mut self.read).await?)
    }

    async fn take(&mut self, length: usize) -> anyhow::Result<Vec<u8>> {
        while self.read.len() < length {
            if self.fill().await? == 0 {
                bail!("the connection ended in the middle of a body");
            }
        }
        Ok(self.read.drain(..length).collect())
    }

    async fn line(&mut self) -> anyhow::Result<String> {
        loop {
            if let Some(end) = self.read.windows(2).position(|two| two == b"\r\n") {
                let line: Vec<u8> = self.read.drain(..end + 2).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.fill().await? == 0 {
                bail!("the connection ended without a response");
            }
        }
    }

    async fn read_response(&mut self) -> anyhow::Result<Response> {
        loop {
            let first = self.line().await?;
            let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
            let status: u16 = status.with_context(|| format!("no status in {first:?}"))?;
            let mut headers = Vec::new();
            loop {
                let line = self.line().await?;
                if line.is_empty() {
                    break;
                }
                let (name, value) = line.split_once(':').unwrap_or((&line, ""));
                headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            }
            if (100..200).contains(&status) && status != 101 {
                continue;
            }
            let mut response = Response { status, headers, body: Vec::new() };
            response.body = self.body(&response).await?;
            return Ok(response);
        }
    }

    async fn body(&mut self, response: &Response) -> anyhow::Result<Vec<u8>> {
        if matches!(response.status, 101 | 204 | 304) {
            return Ok(Vec::new());
        }
        if response.header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
            let mut body = Vec::new();
            loop {
                let size = self.line().await?;
                let size = size.split(';').next().unwrap_or_default();
                let size = usize::from_str_radix(size.trim(), 16).context("an odd chunk")?;
                body.extend(self.take(size).await?);
                self.line().await?;
                if size == 0 {
                    return Ok(body);
                }
            }
        }
        if let Some(length) = response.header("content-length") {
            let length = length.parse().context("an odd length")?;
            return self.take(length).await;
        }
        while self.fill().await? > 0 {}
        Ok(std::mem::take(&mut self.read))
    }
}
