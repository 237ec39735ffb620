//! TLS configuration of clients and servers.
//!
//! The crypto provider is ring everywhere.
//!
//! ```text
//! builder ─┬─ with roots ─────────────────────────────────────────► ClientConfig
//!          └─ CertificateVerifier ─ Verifier (checks signatures) ─► ClientConfig
//! ServerTls (a profile) ─ builder ────────────────────────────────► ServerConfig
//! ```
//!
//! A [`CertificateVerifier`] decides about certificates only. That the peer has the key of its
//! certificate is verified in any case, also with [`AnyCertificate`].

mod server;

pub use server::{ServerTls, TlsProfileError};

use rustls::client::WantsClientCert;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    WantsVerifier,
};
use std::fmt::Debug;
use std::sync::Arc;

/// The crypto provider.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A builder of client configurations: TLS 1.2 and 1.3.
///
/// # Errors
/// If the provider supports neither version; ring supports both.
pub fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Error> {
    ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()
}

/// A builder of client configurations that verify servers with `verifier`.
///
/// # Errors
/// Those of [`builder`].
pub fn builder_with_verifier(
    verifier: impl CertificateVerifier,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Error> {
    let verifier =
        Arc::new(Verifier { verifier, algorithms: provider().signature_verification_algorithms });
    Ok(builder()?.dangerous().with_custom_certificate_verifier(verifier))
}

/// Decides whether to accept the certificate of a server.
pub trait CertificateVerifier: Debug + Send + Sync + 'static {
    /// Verifies a certificate.
    ///
    /// # Errors
    /// Why it is not accepted.
    fn verify(&self, presented: &PresentedCertificate<'_>) -> Result<(), Error>;
}

impl<V: CertificateVerifier + ?Sized> CertificateVerifier for Box<V> {
    fn verify(&self, presented: &PresentedCertificate<'_>) -> Result<(), Error> {
        (**self).verify(presented)
    }
}

/// A certificate that a server presents, with the context of the handshake.
#[derive(Debug)]
pub struct PresentedCertificate<'a> {
    /// The certificate of the server.
    pub certificate: &'a CertificateDer<'a>,
    /// The other certificates it presents, which may lead to a certificate authority.
    pub intermediates: &'a [CertificateDer<'a>],
    /// The server name that the client requested.
    pub name: &'a ServerName<'a>,
    /// The OCSP response; may be empty.
    pub ocsp: &'a [u8],
    /// The time.
    pub now: UnixTime,
}

/// Accepts any certificate, for `insecureSkipTLSVerify` and for insecure registries.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyCertificate;

impl CertificateVerifier for AnyCertificate {
    fn verify(&self, _: &PresentedCertificate<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// Client certificates that the server verifies itself, later: optional, of any certificate authority.
/// The client must have the key of its certificate.
pub fn any_client() -> Arc<dyn ClientCertVerifier> {
    Arc::new(AnyClient(provider().signature_verification_algorithms))
}

#[derive(Debug)]
struct AnyClient(WebPkiSupportedAlgorithms);

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// No hints: the client may send a certificate of any authority.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

#[derive(Debug)]
struct Verifier<V> {
    verifier: V,
    algorithms: WebPkiSupportedAlgorithms,
}

impl<V: CertificateVerifier> ServerCertVerifier for Verifier<V> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier.verify(&PresentedCertificate {
            certificate,
            intermediates,
            name,
            ocsp,
            now,
        })?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::server::{ClientHello, ResolvesServerCert};
    use rustls::sign::CertifiedKey;
    use rustls::{
        CertificateError, ClientConnection, ServerConfig, ServerConnection,
        SupportedProtocolVersion, version,
    };

    /// A server that presents a certificate, whatever key it has.
    #[derive(Debug)]
    struct FixedCertificate(Arc<CertifiedKey>);

    impl ResolvesServerCert for FixedCertificate {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            Some(self.0.clone())
        }
    }

    #[derive(Debug)]
    struct RefuseAll;

    impl CertificateVerifier for RefuseAll {
        fn verify(&self, presented: &PresentedCertificate<'_>) -> Result<(), Error> {
            assert_eq!(presented.name, &ServerName::try_from("called.example").unwrap());
            Err(CertificateError::UnknownIssuer.into())
        }
    }

    /// The result of a handshake with a server that has the key of its certificate, or another key.
    fn handshake(
        verifier: impl CertificateVerifier,
        version: &'static SupportedProtocolVersion,
        has_key: bool,
    ) -> Result<(), Error> {
        let generated = rcgen::generate_simple_self_signed(["other.example".to_owned()]).unwrap();
        let foreign = rcgen::KeyPair::generate().unwrap();
        let key = if has_key { &generated.signing_key } else { &foreign };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let key = provider().key_provider.load_private_key(key).unwrap();
        let certified = CertifiedKey::new(vec![generated.cert.der().clone()], key);
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(FixedCertificate(Arc::new(certified))));
        let mut server = ServerConnection::new(Arc::new(config)).unwrap();
        let config = builder_with_verifier(verifier)?.with_no_client_auth();
        let name = ServerName::try_from("called.example").unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        while client.is_handshaking() || server.is_handshaking() {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            let mut sent = bytes.as_slice();
            while !sent.is_empty() {
                server.read_tls(&mut sent).unwrap();
                server.process_new_packets().unwrap();
            }
            let mut bytes = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut bytes).unwrap();
            }
            let mut sent = bytes.as_slice();
            while !sent.is_empty() {
                client.read_tls(&mut sent).unwrap();
                client.process_new_packets()?;
            }
        }
        Ok(())
    }

    #[test]
    fn a_verifier_decides_about_certificates_and_keys_are_always_verified() {
        for version in [&version::TLS12, &version::TLS13] {
            assert_eq!(handshake(AnyCertificate, version, true), Ok(()));
            let boxed: Box<dyn CertificateVerifier> = Box::new(AnyCertificate);
            assert_eq!(handshake(boxed, version, true), Ok(()));
            let forged = handshake(AnyCertificate, version, false).unwrap_err();
            assert_eq!(forged, CertificateError::BadSignature.into(), "{version:?}");
            let refused = handshake(RefuseAll, version, true).unwrap_err();
            assert_eq!(refused, CertificateError::UnknownIssuer.into(), "{version:?}");
        }
    }
}
