//! Settings of TLS clients, and of servers that look at certificates themselves: the provider of cryptography, which is ring everywhere, and whose
//! certificates are taken.
//!
//! ```text
//! builder ─┬─ with roots ─────────────────────────────────────► settings
//!          └─ judged: Judge ─ verifier (holds signatures to keys) ► settings
//! ```
//!
//! A [`Judge`] decides about certificates alone. That whoever shows one has its key is held for every
//! judge, [`Anybody`] included.

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

/// The provider of cryptography.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The beginning of a client's settings: TLS 1.2 and 1.3.
///
/// # Errors
/// If the provider speaks neither, which ring does.
pub fn builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, Error> {
    ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()
}

/// The settings of a client whose servers are judged.
///
/// # Errors
/// Those of [`builder`].
pub fn judged(judge: impl Judge) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Error> {
    let verifier =
        Arc::new(Verifier { judge, algorithms: provider().signature_verification_algorithms });
    Ok(builder()?.dangerous().with_custom_certificate_verifier(verifier))
}

/// Who decides whether a certificate is good enough.
pub trait Judge: Debug + Send + Sync + 'static {
    /// Judges a server's certificate.
    ///
    /// # Errors
    /// Why it is not taken.
    fn judge(&self, shown: &Shown<'_>) -> Result<(), Error>;
}

impl<J: Judge + ?Sized> Judge for Box<J> {
    fn judge(&self, shown: &Shown<'_>) -> Result<(), Error> {
        (**self).judge(shown)
    }
}

/// What a server shows, and what is known of it.
#[derive(Debug)]
pub struct Shown<'a> {
    /// Its certificate.
    pub certificate: &'a CertificateDer<'a>,
    /// Those that it shows besides, which may lead to an authority.
    pub intermediates: &'a [CertificateDer<'a>],
    /// The name that it was called by.
    pub name: &'a ServerName<'a>,
    /// What its authority says of the certificate's state; may be empty.
    pub ocsp: &'a [u8],
    /// The time.
    pub now: UnixTime,
}

/// Takes any certificate: what `insecureSkipTLSVerify` asks for, and registries that are declared
/// insecure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anybody;

impl Judge for Anybody {
    fn judge(&self, _: &Shown<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// How a server asks for client certificates that it judges itself, later: nobody needs one, and one
/// of any authority is taken. That whoever shows one has its key is held.
pub fn any_client() -> Arc<dyn ClientCertVerifier> {
    Arc::new(AnyClient(provider().signature_verification_algorithms))
}

#[derive(Debug)]
struct AnyClient(WebPkiSupportedAlgorithms);

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// None, which invites certificates of all authorities.
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
struct Verifier<J> {
    judge: J,
    algorithms: WebPkiSupportedAlgorithms,
}

impl<J: Judge> ServerCertVerifier for Verifier<J> {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.judge.judge(&Shown { certificate, intermediates, name, ocsp, now })?;
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

    /// A server that shows a certificate, whatever key it has.
    #[derive(Debug)]
    struct Shows(Arc<CertifiedKey>);

    impl ResolvesServerCert for Shows {
        fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            Some(self.0.clone())
        }
    }

    #[derive(Debug)]
    struct Nobody;

    impl Judge for Nobody {
        fn judge(&self, shown: &Shown<'_>) -> Result<(), Error> {
            assert_eq!(shown.name, &ServerName::try_from("called.example").unwrap());
            Err(CertificateError::UnknownIssuer.into())
        }
    }

    /// How a client gets on with a server that shows the certificate of one key and has another.
    fn handshake(
        judge: impl Judge,
        version: &'static SupportedProtocolVersion,
        has_key: bool,
    ) -> Result<(), Error> {
        let made = rcgen::generate_simple_self_signed(["other.example".to_owned()]).unwrap();
        let foreign = rcgen::KeyPair::generate().unwrap();
        let key = if has_key { &made.signing_key } else { &foreign };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let key = provider().key_provider.load_private_key(key).unwrap();
        let shown = CertifiedKey::new(vec![made.cert.der().clone()], key);
        let settings = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Shows(Arc::new(shown))));
        let mut server = ServerConnection::new(Arc::new(settings)).unwrap();
        let settings = judged(judge)?.with_no_client_auth();
        let name = ServerName::try_from("called.example").unwrap();
        let mut client = ClientConnection::new(Arc::new(settings), name).unwrap();
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
    fn a_judge_decides_about_certificates_and_nobody_does_without_their_keys() {
        for version in [&version::TLS12, &version::TLS13] {
            assert_eq!(handshake(Anybody, version, true), Ok(()));
            let boxed: Box<dyn Judge> = Box::new(Anybody);
            assert_eq!(handshake(boxed, version, true), Ok(()));
            let forged = handshake(Anybody, version, false).unwrap_err();
            assert_eq!(forged, CertificateError::BadSignature.into(), "{version:?}");
            let refused = handshake(Nobody, version, true).unwrap_err();
            assert_eq!(refused, CertificateError::UnknownIssuer.into(), "{version:?}");
        }
    }
}
