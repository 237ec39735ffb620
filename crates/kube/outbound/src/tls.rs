//! Whom to trust: the authorities of a `caBundle`, and nobody else.
//!
//! As in Go, a certificate that is itself in the bundle is trusted, whether it may sign others or
//! not. Refusals are told in Go's words.

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

/// Bundles whose settings are kept.
const KEPT: usize = 64;

/// The settings of bundles that were used.
#[derive(Debug, Default)]
pub(super) struct Settings(Mutex<HashMap<Arc<str>, Arc<ClientConfig>>>);

impl Settings {
    /// The settings that trust a bundle.
    pub(super) fn of(&self, bundle: &Arc<str>) -> Result<Arc<ClientConfig>, TlsConfigError> {
        if let Some(found) = self.0.lock().get(bundle) {
            return Ok(found.clone());
        }
        let made = settings(bundle)?;
        let mut kept = self.0.lock();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(bundle.clone(), made.clone());
        Ok(made)
    }
}

/// The text of a bundle, which objects have in Base64.
pub fn bundle_text(encoded: &str) -> Arc<str> {
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into()
}

/// The certificates of a PEM text; what is none is passed over.
fn certificates(pem: &str) -> Vec<CertificateDer<'static>> {
    x509_parser::pem::Pem::iter_from_buffer(pem.as_bytes())
        .filter_map(Result::ok)
        .filter(|block| block.label == "CERTIFICATE")
        .map(|block| CertificateDer::from(block.contents))
        .collect()
}

fn settings(bundle: &str) -> Result<Arc<ClientConfig>, TlsConfigError> {
    let mut config =
        mainstay_tls::builder_with_verifier(Bundle::new(bundle)?)?.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// TLS settings of a client that takes any certificate and shows none: what proxies to pods are.
pub fn insecure_client() -> Result<Arc<ClientConfig>, TlsConfigError> {
    let config = mainstay_tls::builder_with_verifier(AnyCertificate)?;
    Ok(Arc::new(config.with_no_client_auth()))
}

/// Who judges certificates by a bundle.
#[derive(Debug)]
pub struct Bundle {
    /// None if nobody is trusted to sign.
    chains: Option<Arc<WebPkiServerVerifier>>,
    trusted: Vec<CertificateDer<'static>>,
}

impl Bundle {
    /// The certificates of a PEM text are trusted.
    pub fn new(bundle: &str) -> Result<Self, VerifierBuilderError> {
        let trusted = certificates(bundle);
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(trusted.iter().cloned());
        let chains = if roots.is_empty() {
            None
        } else {
            let roots = Arc::new(roots);
            let made = WebPkiServerVerifier::builder_with_provider(roots, mainstay_tls::provider());
            Some(made.build()?)
        };
        Ok(Self { chains, trusted })
    }
}

impl CertificateVerifier for Bundle {
    fn verify(&self, presented: &PresentedCertificate<'_>) -> Result<(), Error> {
        let PresentedCertificate { certificate, intermediates, name, ocsp, now } = *presented;
        if self.trusted.iter().any(|one| one.as_ref() == certificate.as_ref()) {
            in_time(certificate, now)?;
            return verify_server_name(&ParsedCertificate::try_from(certificate)?, name);
        }
        let Some(chains) = &self.chains else { return Err(CertificateError::UnknownIssuer.into()) };
        chains.verify_server_cert(certificate, intermediates, name, ocsp, now).map(drop)
    }
}

fn in_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
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

/// A failed handshake in Go's words.
pub(super) fn refusal(error: &Error, name: &str) -> String {
    let x509 = match error {
        Error::InvalidCertificate(why) => match why {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "certificate signed by unknown authority".to_owned()
            }
            CertificateError::NotValidForName => format!("certificate is not valid for {name}"),
            CertificateError::NotValidForNameContext { presented, .. } => {
                wrong_name(name, presented)
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

/// `presented` are names as the verifier shows them: `DnsName("a.b")`, `IpAddress(10.0.0.1)`.
fn wrong_name(name: &str, presented: &[String]) -> String {
    let is_address = name.parse::<IpAddr>().is_ok();
    let wanted = if is_address { "IpAddress(" } else { "DnsName(" };
    let inner = presented.iter().filter_map(|one| one.strip_prefix(wanted)?.strip_suffix(')'));
    let valid: Vec<&str> = inner.map(|one| one.trim_matches('"')).collect();
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
