//! Serving certificates that are replaced while a server uses them.

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceableCertificateError {
    /// The certificates are not PEM.
    #[error("read the certificate: {0}")]
    Certificate(PemError),
    /// The text has no certificate.
    #[error("read the certificate: the text contains none")]
    NoCertificate,
    /// The key is not PEM.
    #[error("read the key of the certificate: {0}")]
    Key(PemError),
    /// The key is of an unknown kind, or does not belong to the certificate.
    #[error("use the key of the certificate: {0}")]
    Mismatch(rustls::Error),
}

/// A serving certificate with its key. Clones share it: a replacement is in force for every new
/// connection, and open connections go on.
#[derive(Clone, Debug)]
pub struct ReplaceableCertificate(Arc<Resolver>);

#[derive(Debug)]
struct Resolver(RwLock<Arc<CertifiedKey>>);

impl ReplaceableCertificate {
    /// A certificate, the intermediate certificates behind it, and its key, in PEM.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, ReplaceableCertificateError> {
        let certified = RwLock::new(certified_key(certificates, key)?);
        Ok(Self(Arc::new(Resolver(certified))))
    }

    /// Replaces the certificate and its key.
    ///
    /// # Errors
    /// As [`ReplaceableCertificate::from_pem`]; the earlier certificate stays in use then.
    pub fn replace(
        &self,
        certificates: &[u8],
        key: &[u8],
    ) -> Result<(), ReplaceableCertificateError> {
        *self.0.0.write() = certified_key(certificates, key)?;
        Ok(())
    }

    /// The configuration of a server with this certificate: TLS 1.2 and 1.3, and these versions of
    /// HTTP (`h2`, `http/1.1`), the preferred one first. Clients need no certificate.
    ///
    /// # Errors
    /// If the provider supports neither version; ring supports both.
    pub fn server_config(&self, protocols: &[&str]) -> Result<Arc<ServerConfig>, rustls::Error> {
        let resolver: Arc<dyn ResolvesServerCert> = Arc::clone(&self.0) as _;
        let mut config = ServerConfig::builder_with_provider(crate::provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols =
            protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

fn certified_key(
    certificates: &[u8],
    key: &[u8],
) -> Result<Arc<CertifiedKey>, ReplaceableCertificateError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<_, _>>()
        .map_err(ReplaceableCertificateError::Certificate)?;
    if chain.is_empty() {
        return Err(ReplaceableCertificateError::NoCertificate);
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(ReplaceableCertificateError::Key)?;
    CertifiedKey::from_der(chain, key, &crate::provider())
        .map(Arc::new)
        .map_err(ReplaceableCertificateError::Mismatch)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn self_signed() -> (Vec<u8>, Vec<u8>) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem().into_bytes(), made.signing_key.serialize_pem().into_bytes())
    }

    #[test]
    fn a_replaced_certificate_is_in_force_and_a_bad_one_is_not() {
        let ((first, first_key), (second, second_key)) = (self_signed(), self_signed());
        let certificate = ReplaceableCertificate::from_pem(&first, &first_key).unwrap();
        let used = || certificate.0.0.read().cert[0].to_vec();
        let before = used();
        for (chain, key, why) in [
            (&b""[..], &first_key[..], "read the certificate: the text contains none"),
            (&first, b"", "read the key of the certificate: "),
            (&first, &second_key, "use the key of the certificate: "),
        ] {
            let error = certificate.replace(chain, key).unwrap_err().to_string();
            assert!(error.starts_with(why), "{error}");
        }
        assert_eq!(used(), before);
        certificate.replace(&second, &second_key).unwrap();
        assert_ne!(used(), before);
        let config = certificate.server_config(&["http/1.1"]).unwrap();
        assert_eq!(config.alpn_protocols, [b"http/1.1"]);
    }
}
