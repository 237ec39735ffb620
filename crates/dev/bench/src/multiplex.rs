//! Watches as Go's clients open them: many HTTP/2 streams on few connections.

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::Config;
use kube::client::ConfigExt as _;
use rustls::pki_types::ServerName;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Streams per connection: the default limit of kube-apiserver.
pub(crate) const STREAMS: usize = 100;

/// The flow-control windows of Go's clients for one stream and for one connection, in bytes.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// Opens connections to a server, with the client certificate of a kubeconfig.
pub(crate) struct Connector {
    config: Config,
    tls: TlsConnector,
}

impl Connector {
    /// Creates a connector from a client configuration.
    pub(crate) fn new(config: Config) -> Result<Self> {
        let mut tls = config.rustls_client_config().context("reading certificates")?;
        tls.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { config, tls: TlsConnector::from(Arc::new(tls)) })
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> Result<Connection> {
        let url = &self.config.cluster_url;
        let host = url.host().context("the server's address has no host")?;
        let port = url.port_u16().unwrap_or(443);
        let stream = TcpStream::connect((host, port)).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(host.to_owned()).context("reading the server's name")?;
        let stream = self.tls.connect(name, stream).await.context("the TLS handshake")?;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(TokioIo::new(stream))
            .await
            .context("beginning HTTP/2")?;
        // Ends with the server or with the last stream.
        tokio::spawn(async move { connection.await.ok() });
        Ok(Connection { sender, base: format!("https://{host}:{port}") })
    }
}

/// An open connection.
#[derive(Clone)]
pub(crate) struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    base: String,
}

impl Connection {
    /// Opens a stream: a GET with an endless response.
    ///
    /// # Errors
    /// The server rejects the request.
    pub(crate) async fn open(&mut self, path: &str) -> Result<Stream> {
        let request = http::Request::get(format!("{}{path}", self.base)).body(Empty::new())?;
        self.sender.ready().await.context("waiting for the connection")?;
        let answer = self.sender.send_request(request).await.context("opening a watch")?;
        anyhow::ensure!(answer.status().is_success(), "a watch was refused: {}", answer.status());
        Ok(Stream(answer.into_body()))
    }
}

/// The lines of a response.
pub(crate) struct Stream(Incoming);

impl Stream {
    /// Waits for the end of the next line; false at the end of the stream.
    pub(crate) async fn line(&mut self) -> bool {
        while let Some(Ok(frame)) = self.0.frame().await {
            // A server ends a frame where it ends an event.
            if frame.data_ref().is_some_and(|data| data.last() == Some(&b'\n')) {
                return true;
            }
        }
        false
    }
}
