//! TLS configuration of outbound calls: only the CAs of a `caBundle` are trusted.
//!
//! As in Go, a server certificate that is in the bundle itself is trusted, whether or not it may sign
//! others. Errors have Go's texts.

use super::error::TlsConfigError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_tls::{AnyCertificate, CertificateVerifier, PresentedCertificate};
use parking_lot::Mutex;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, Error, RootCertStore};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The most CA bundles with a cached configuration.
const MAX_CACHED: usize = 64;

/// Cache of TLS configurations by CA bundle.
#[derive(Debug, Default)]
pub(super) struct TlsConfigs(Mutex<HashMap<Arc<str>, Arc<ClientConfig>>>);

impl TlsConfigs {
    /// The configuration that trusts a CA bundle.
    pub(super) fn get_or_build(
        &self,
        bundle: &Arc<str>,
    ) -> Result<Arc<ClientConfig>, TlsConfigError> {
        if let Some(found) = self.0.lock().get(bundle) {
            return Ok(found.clone());
        }
        let config = client_config(bundle)?;
        let mut configs = self.0.lock();
        if configs.len() >= MAX_CACHED {
            configs.clear();
        }
        configs.insert(bundle.clone(), config.clone());
        Ok(config)
    }
}

/// The PEM text of a `caBundle`, which is Base64 in objects.
pub fn ca_bundle_pem(encoded: &str) -> Arc<str> {
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into()
}

/// The certificates of a PEM text; other blocks are ignored.
fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    x509_parser::pem::Pem::iter_from_buffer(pem.as_bytes())
        .filter_map(Result::ok)
        .filter(|block| block.label == "CERTIFICATE")
        .map(|block| CertificateDer::from(block.contents))
        .collect()
}

fn client_config(bundle: &str) -> Result<Arc<ClientConfig>, TlsConfigError> {
    let mut config =
        mainstay_tls::builder_with_verifier(CaBundle::new(bundle)?)?.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// TLS configuration of a client that accepts any certificate and sends none, for proxies to pods.
pub fn insecure_client() -> Result<Arc<ClientConfig>, TlsConfigError> {
    let config = mainstay_tls::builder_with_verifier(AnyCertificate)?;
    Ok(Arc::new(config.with_no_client_auth()))
}

/// Verifier of server certificates by a CA bundle.
#[derive(Debug)]
pub struct CaBundle {
    /// None if the bundle has no usable certificate.
    chains: Option<Arc<WebPkiServerVerifier>>,
    trusted: Vec<CertificateDer<'static>>,
}

impl CaBundle {
    /// A verifier that trusts the certificates of a PEM text.
    pub fn new(bundle: &str) -> Result<Self, VerifierBuilderError> {
        let trusted = certificates(bundle);
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        let chains = if roots.is_empty() {
            None
        } else {
            let roots = Arc::new(roots);
            let builder =
                WebPkiServerVerifier::builder_with_provider(roots, mainstay_tls::provider());
            Some(builder.build()?)
        };
        Ok(Self { chains, trusted })
    }
}

impl CertificateVerifier for CaBundle {
    fn verify(&self, shown: &PresentedCertificate<'_>) -> Result<(), Error> {
        let PresentedCertificate { certificate, intermediates, name, ocsp, now } = *shown;
        if self
            .trusted
            .iter()
            .any(|trusted_certificate| trusted_certificate.as_ref() == certificate.as_ref())
        {
            check_validity(certificate, now)?;
            return verify_server_name(&ParsedCertificate::try_from(certificate)?, name);
        }
        let Some(chains) = &self.chains else { return Err(CertificateError::UnknownIssuer.into()) };
        chains.verify_server_cert(certificate, intermediates, name, ocsp, now).map(drop)
    }
}

fn check_validity(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
        return Err(CertificateError::BadEncoding.into());
    };
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = parsed.validity();
    if now > validity.not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    if now < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    Ok(())
}

/// Go's text for a failed handshake.
pub(super) fn handshake_text(error: &Error, name: &str) -> String {
    let x509 = match error {
        Error::InvalidCertificate(why) => match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "certificate signed by unknown authority".to_owned()
            }
            CertificateError::NotValidForName => format!("certificate is not valid for {name}"),
            CertificateError::NotValidForNameContext { presented, .. } => {
                name_mismatch(name, presented)
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => {
                "certificate has expired or is not yet valid".to_owned()
            }
            other => other.to_string(),
        },
        Error::InvalidMessage(_) => {
            return "tls: first record does not look like a TLS handshake".to_owned();
        }
        other => return other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {x509}")
}

/// `presented` are names as the verifier prints them: `DnsName("a.b")`, `IpAddress(10.0.0.1)`.
fn name_mismatch(name: &str, presented: &[String]) -> String {
    let is_address = name.parse::<IpAddr>().is_ok();
    let prefix = if is_address { "IpAddress(" } else { "DnsName(" };
    let inner =
        presented.iter().filter_map(|printed| printed.strip_prefix(prefix)?.strip_suffix(')'));
    let valid: Vec<&str> = inner.map(|name| name.trim_matches('"')).collect();
    match (is_address, valid.is_empty()) {
        (true, true) => {
            format!("cannot validate certificate for {name} because it doesn't contain any IP SANs")
        }
        (false, true) => {
            format!("certificate is not valid for any names, but wanted to match {name}")
        }
        (_, false) => format!("certificate is valid for {}, not {name}", valid.join(", ")),
    }
}
