//! The network of a case: host names of registries, without DNS.

use super::registry::{CaseRegistry, PRIVATE_HOST};
use anyhow::Context;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use mainstay_image::registry::{Dialer, RegistryStream};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The names in the certificate, as in the recordings.
const CERTIFICATE_NAMES: [&str; 4] =
    ["registry.example", PRIVATE_HOST, "catalogd-service.olmv1-system.svc", "localhost"];
/// A host whose certificate has other names.
const WRONG_NAME: &str = "wrong-name.example";
/// The hosts that exist.
const HOSTS: [&str; 3] = ["registry.example", PRIVATE_HOST, WRONG_NAME];
/// The address of these hosts in the recordings: nothing listens there on any port but 443.
const RECORDED_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// The registries of a case, listening on loopback.
#[derive(Debug)]
pub(super) struct CaseNetwork {
    /// The content of all registries.
    pub(super) registry: Arc<CaseRegistry>,
    /// The certificate that clients have to trust.
    pub(super) authority: CertificateDer<'static>,
    address: SocketAddr,
    _stop: DropGuard,
}

impl CaseNetwork {
    /// Starts to listen. Dropping the value ends it.
    pub(super) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (tls, authority) = certificate()?;
        let registry = Arc::new(CaseRegistry::default());
        let stop = CancellationToken::new();
        tokio::spawn(listen(listener, tls, Arc::clone(&registry), stop.clone()));
        Ok(Self { registry, authority, address, _stop: stop.drop_guard() })
    }

    /// Opens connections to the hosts of this network.
    pub(super) fn dialer(&self) -> Arc<dyn Dialer> {
        Arc::new(CaseDialer(self.address))
    }
}

fn certificate() -> anyhow::Result<(TlsAcceptor, CertificateDer<'static>)> {
    let names: Vec<String> = CERTIFICATE_NAMES.map(str::to_owned).to_vec();
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(names)?.self_signed(&key)?.der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .context("the certificate of the registries")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), certificate))
}

async fn listen(
    listener: TcpListener,
    tls: TlsAcceptor,
    registry: Arc<CaseRegistry>,
    stop: CancellationToken,
) {
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => continue,
            },
        };
        let (tls, registry, stop) = (tls.clone(), Arc::clone(&registry), stop.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = connection(stream, tls, registry) => {}
            }
        });
    }
}

async fn connection(stream: TcpStream, tls: TlsAcceptor, registry: Arc<CaseRegistry>) {
    // A client that refuses the certificate is part of the cases.
    let Ok(stream) = tls.accept(stream).await else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let response = respond(&registry, &request);
        async move { Ok::<_, Infallible>(response) }
    });
    let server = auto::Builder::new(TokioExecutor::new());
    // A broken connection is the client's to report.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

fn respond(registry: &CaseRegistry, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let named = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    let host = request.uri().host().or(named).unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default();
    registry.respond(host, request.uri().path(), request.headers())
}

struct CaseDialer(SocketAddr);

impl Dialer for CaseDialer {
    fn dial(
        &self,
        host: String,
        port: u16,
    ) -> BoxFuture<'static, io::Result<Box<dyn RegistryStream>>> {
        let listener = self.0;
        Box::pin(async move {
            if !HOSTS.contains(&host.as_str()) {
                // The words of the system's resolver.
                let why = "failed to lookup address information: Name or service not known";
                return Err(io::Error::other(why));
            }
            let address =
                if port == 443 { listener } else { SocketAddr::new(RECORDED_ADDRESS, port) };
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn RegistryStream>)
        })
    }
}
