//! Client certificates: who they name, and whether the cluster's authority says so.
//!
//! TLS only checks that a client has the key of the certificate it shows. Whether the certificate is
//! good is judged when a request comes, so that a bad one is told 401 like any other bad proof, a token
//! may still be shown beside it, and one that ends during a connection ends there.

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

/// More certificates than this are no chain of ours.
const LONGEST_CHAIN: usize = 8;

/// The certificates that a client showed, its own first, and what was found about them.
#[derive(Debug)]
pub struct Shown {
    chain: Vec<CertificateDer<'static>>,
    verdict: OnceLock<Result<Option<Named>, CertificateError>>,
}

/// Whom a certificate names, and from when to when (seconds since the epoch) all certificates count that
/// were shown with it.
#[derive(Clone, Debug)]
struct Named {
    identity: Identity,
    since: i64,
    until: i64,
}

/// A chain of certificates proves nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum CertificateError {
    /// It is not its time; every other reason stays.
    #[error("certificate has expired or is not yet valid")]
    Untimely,
    /// The authority did not sign it, or not for this.
    #[error(transparent)]
    Verify(rustls::Error),
    /// The certificate cannot be read.
    #[error(transparent)]
    Parse(#[from] x509_parser::nom::Err<X509Error>),
    /// The UID is no text.
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
    fn of(error: rustls::Error) -> Self {
        use rustls::CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
        match error {
            rustls::Error::InvalidCertificate(
                Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. },
            ) => Self::Untimely,
            other => Self::Verify(other),
        }
    }
}

impl Shown {
    /// What a connection shows; none if nothing.
    pub fn new(chain: Option<&[CertificateDer<'_>]>) -> Option<Self> {
        let chain: Vec<CertificateDer<'static>> = chain?
            .iter()
            .take(LONGEST_CHAIN)
            .map(|certificate| certificate.clone().into_owned())
            .collect();
        if chain.is_empty() { None } else { Some(Self { chain, verdict: OnceLock::new() }) }
    }

    /// The certificates, the client's own first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }
}

/// The authority whose client certificates are accepted.
#[derive(Debug)]
pub struct ClientAuthority {
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientAuthority {
    /// An authority by its certificate.
    pub fn new(certificate: CertificateDer<'static>) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?;
        Ok(Self { verifier })
    }

    /// What TLS asks for: any certificate whose key the client has, or none.
    pub(crate) fn for_tls(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::new(AnyClient(Arc::clone(&self.verifier)))
    }

    /// Whom a certificate names; none if it names nobody.
    ///
    /// # Errors
    /// If it proves nothing.
    pub(super) fn judge(
        &self,
        shown: &Shown,
        clock: Clock,
    ) -> Result<Option<Identity>, CertificateError> {
        let now = clock.now().as_second();
        let mut fresh = None;
        let verdict = match shown.verdict.get() {
            Some(verdict) => verdict,
            None => match self.verdict(&shown.chain, now) {
                // The next request may come at another time, even on the same connection.
                Err(error @ CertificateError::Untimely) => fresh.insert(Err(error)),
                lasting => shown.verdict.get_or_init(|| lasting),
            },
        };
        let Some(named) = verdict.as_ref().map_err(Clone::clone)? else { return Ok(None) };
        if now >= named.since && now <= named.until {
            return Ok(Some(named.identity.clone()));
        }
        // Not all of them need count: it may be one that the proof does not need.
        self.verdict(&shown.chain, now).map(|named| named.map(|named| named.identity))
    }

    fn verdict(
        &self,
        chain: &[CertificateDer<'static>],
        now: i64,
    ) -> Result<Option<Named>, CertificateError> {
        let [first, others @ ..] = chain else { return Ok(None) };
        let seconds = Duration::from_secs(u64::try_from(now).unwrap_or_default());
        self.verifier
            .verify_client_cert(first, others, UnixTime::since_unix_epoch(seconds))
            .map_err(CertificateError::of)?;
        let mut named = named(first)?;
        if let Some(named) = &mut named {
            for other in others {
                // One that cannot be read proves nothing, and has no time.
                let Ok((_, other)) = X509Certificate::from_der(other) else { continue };
                named.since = named.since.max(other.validity().not_before.timestamp());
                named.until = named.until.min(other.validity().not_after.timestamp());
            }
        }
        Ok(named)
    }
}

/// The identity that a client certificate names: common name is the user, organizations are the
/// groups, a name of Kubernetes' own is the uid. The certificate must have been verified before.
fn named(der: &[u8]) -> Result<Option<Named>, CertificateError> {
    let (_, certificate) = X509Certificate::from_der(der)?;
    let subject = certificate.subject();
    let user = subject.iter_common_name().filter_map(|name| name.as_str().ok()).last();
    let Some(user) = user.filter(|user| !user.is_empty()) else { return Ok(None) };
    // The uid of a user (KEP-4828).
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
    Ok(Some(Named {
        identity: Identity::with_details(user, uid, groups, extra),
        since: validity.not_before.timestamp(),
        until: validity.not_after.timestamp(),
    }))
}

/// Takes any client certificate whose key the client has; others judge it.
#[derive(Debug)]
struct AnyClient(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyClient {
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
