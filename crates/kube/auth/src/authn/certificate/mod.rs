//! Client certificates: verification against the cluster's CA, and the identity in the subject.
//!
//! TLS only checks that a client has the key of its certificate. The certificate is verified with
//! each request. So a client with an invalid certificate gets 401, as with any invalid credential,
//! and may send a token beside it. A certificate that expires during a connection ends there.

use super::CREDENTIAL_ID;
use crate::Identity;
use mainstay_clock::Clock;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use x509_parser::der_parser::oid;
use x509_parser::error::X509Error;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A longer chain is none of this cluster's CA.
const MAX_CHAIN_LENGTH: usize = 8;

/// The certificate chain of a client, its own first, and the result of its verification.
#[derive(Debug)]
pub struct ClientCertificate {
    chain: Vec<CertificateDer<'static>>,
    result: OnceLock<Result<Option<CertifiedIdentity>, CertificateError>>,
}

/// The identity in a certificate, and the period (seconds since the epoch) in which all
/// certificates of its chain are valid.
#[derive(Clone, Debug)]
struct CertifiedIdentity {
    identity: Identity,
    not_before: i64,
    not_after: i64,
}

/// A certificate chain that is not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum CertificateError {
    /// The certificate is outside its validity period. Only this result may change later.
    #[error("certificate has expired or is not yet valid")]
    OutsideValidity,
    /// The CA did not sign the certificate, or not for this use.
    #[error(transparent)]
    Verify(rustls::Error),
    /// The certificate does not parse.
    #[error(transparent)]
    Parse(#[from] x509_parser::nom::Err<X509Error>),
    /// The UID is not UTF-8 text.
    #[error("unable to parse UID into a string")]
    ParseUid,
    /// The certificate has several UIDs.
    #[error("expected 1 UID, but found multiple")]
    ManyUids,
    /// The UID is empty.
    #[error("UID cannot be an empty string")]
    EmptyUid,
}

impl CertificateError {
    fn from_rustls(error: rustls::Error) -> Self {
        use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
        match error {
            rustls::Error::InvalidCertificate(
                Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. },
            ) => Self::OutsideValidity,
            other => Self::Verify(other),
        }
    }
}

impl ClientCertificate {
    /// The client certificate of a connection; none without one.
    pub fn new(chain: Option<&[CertificateDer<'_>]>) -> Option<Self> {
        let chain: Vec<CertificateDer<'static>> = chain?
            .iter()
            .take(MAX_CHAIN_LENGTH)
            .map(|certificate| certificate.clone().into_owned())
            .collect();
        if chain.is_empty() { None } else { Some(Self { chain, result: OnceLock::new() }) }
    }

    /// The certificates, the client's own first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }
}

/// The CA whose client certificates are accepted.
#[derive(Debug)]
pub struct ClientAuthority {
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientAuthority {
    /// A client CA with this certificate.
    pub fn new(certificate: CertificateDer<'static>) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        Ok(Self { verifier })
    }

    /// The TLS verifier: it accepts any certificate whose key the client has, or none.
    pub(crate) fn tls_verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(AcceptAnyClient(Arc::clone(&self.verifier)))
    }

    /// Verifies a certificate chain and returns the identity; none if the subject has no common
    /// name.
    ///
    /// # Errors
    ///
    /// The chain is not valid now.
    pub(super) fn verify(
        &self,
        certificate: &ClientCertificate,
        clock: Clock,
    ) -> Result<Option<Identity>, CertificateError> {
        let now = clock.now().as_second();
        let mut outside_validity = None;
        let result = match certificate.result.get() {
            Some(result) => result,
            None => match self.verify_chain(&certificate.chain, now) {
                // The result may differ for the next request, even on the same connection.
                Err(error @ CertificateError::OutsideValidity) => {
                    outside_validity.insert(Err(error))
                }
                permanent => certificate.result.get_or_init(|| permanent),
            },
        };
        let Some(certified) = result.as_ref().map_err(Clone::clone)? else { return Ok(None) };
        if now >= certified.not_before && now <= certified.not_after {
            return Ok(Some(certified.identity.clone()));
        }
        // The expired certificate may be one that the chain does not need.
        self.verify_chain(&certificate.chain, now)
            .map(|certified| certified.map(|certified| certified.identity))
    }

    fn verify_chain(
        &self,
        chain: &[CertificateDer<'static>],
        now: i64,
    ) -> Result<Option<CertifiedIdentity>, CertificateError> {
        let [first, others @ ..] = chain else { return Ok(None) };
        let seconds = Duration::from_secs(u64::try_from(now).unwrap_or_default());
        self.verifier
            .verify_client_cert(first, others, UnixTime::since_unix_epoch(seconds))
            .map_err(CertificateError::from_rustls)?;
        let mut certified = certified_identity(first)?;
        if let Some(certified) = &mut certified {
            for other in others {
                // A certificate that does not parse is no part of the verified chain.
                let Ok((_, other)) = X509Certificate::from_der(other) else { continue };
                let validity = other.validity();
                certified.not_before = certified.not_before.max(validity.not_before.timestamp());
                certified.not_after = certified.not_after.min(validity.not_after.timestamp());
            }
        }
        Ok(certified)
    }
}

/// The identity in a verified client certificate: the common name is the user, organizations are
/// the groups. The uid has an attribute of Kubernetes' own.
fn certified_identity(der: &[u8]) -> Result<Option<CertifiedIdentity>, CertificateError> {
    let (_, certificate) = X509Certificate::from_der(der)?;
    let subject = certificate.subject();
    let user = subject.iter_common_name().filter_map(|name| name.as_str().ok()).last();
    let Some(user) = user.filter(|user| !user.is_empty()) else { return Ok(None) };
    // The uid attribute of a user (KEP-4828).
    let mut uids = subject.iter_by_oid(&oid!(1.3.6.1.4.1.57683.2));
    let uid = match (uids.next(), uids.next()) {
        (None, _) => "",
        (Some(uid), None) => uid.as_str().map_err(|_| CertificateError::ParseUid)?,
        (Some(_), Some(_)) => return Err(CertificateError::ManyUids),
    };
    if uid.is_empty() && subject.iter_by_oid(&oid!(1.3.6.1.4.1.57683.2)).next().is_some() {
        return Err(CertificateError::EmptyUid);
    }
    let groups: Vec<String> = subject
        .iter_organization()
        .filter_map(|name| name.as_str().ok())
        .map(ToOwned::to_owned)
        .collect();
    let mut id = "X509SHA256=".to_owned();
    for byte in Sha256::digest(der) {
        // Writing to a string does not fail.
        let _ = write!(id, "{byte:02x}");
    }
    let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![id])]);
    let validity = certificate.validity();
    Ok(Some(CertifiedIdentity {
        identity: Identity::with_details(user, uid, groups, extra),
        not_before: validity.not_before.timestamp(),
        not_after: validity.not_after.timestamp(),
    }))
}

/// A TLS verifier that accepts any client certificate whose key the client has.
#[derive(Debug)]
struct AcceptAnyClient(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AcceptAnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests;
