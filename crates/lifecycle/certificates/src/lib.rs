//! Certificates of servers behind Services: CAs, the certificates that they sign, and whether a certificate
//! is valid for its server.
//!
//! ```text
//! CertificateRequest ─ create_ca ─► KeyPairPem of a CA ─┬─ sign ─► KeyPairPem of a server
//!                              CertificateRequest, hosts ─┘
//! ```
//!
//! All keys are ECDSA keys on the curve P-256. What a certificate is for, how long it is valid and when it is
//! replaced is up to the caller; this crate reads no clock and writes nowhere.

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber, date_time_ymd,
};
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use sha2::{Digest as _, Sha256};
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// How far the start of a validity lies in the past, for servers whose clocks are behind.
pub const BACKDATED: SignedDuration = SignedDuration::from_hours(1);

/// Why a certificate cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The cryptographic library fails: the name is invalid in a certificate, or the CA cannot be read.
    #[error("cannot make a key or certificate for {0}")]
    Generate(String, #[source] rcgen::Error),
    /// A host is no DNS name, so no client could verify a certificate for it.
    #[error(
        "\"{0}\" is no DNS name: each part between dots has at most 63 letters, digits and hyphens"
    )]
    Host(String),
    /// The system has no random bytes.
    #[error("cannot make a serial number: the system gives no random bytes")]
    Random,
}

/// A certificate and its private key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPairPem {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl fmt::Debug for KeyPairPem {
    /// Prints no keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPairPem")
            .field("certificate", &sha256_hex(self.certificate.as_bytes()))
            .finish_non_exhaustive()
    }
}

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first moment.
    pub from: Timestamp,
    /// The first moment after it.
    pub until: Timestamp,
}

impl Validity {
    /// From [`BACKDATED`] before `now` until `lifetime` after it.
    pub fn starting(now: Timestamp, lifetime: SignedDuration) -> Self {
        Self {
            from: now.checked_sub(BACKDATED).unwrap_or(Timestamp::MIN),
            until: now.checked_add(lifetime).unwrap_or(Timestamp::MAX),
        }
    }

    /// Whether a certificate is valid at this moment.
    pub fn contains(&self, time: Timestamp) -> bool {
        self.from <= time && time < self.until
    }

    /// The part that both have in common.
    fn common(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), until: self.until.min(other.until) }
    }
}

/// What certificates may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usages {
    /// Servers.
    Server,
    /// Servers and clients.
    ServerAndClient,
}

impl Usages {
    fn purposes(self) -> Vec<ExtendedKeyUsagePurpose> {
        match self {
            Self::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Self::ServerAndClient => {
                vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth]
            }
        }
    }
}

/// A certificate that is requested.
#[derive(Clone, Copy, Debug)]
pub struct CertificateRequest<'a> {
    /// The organization in the subject, if any.
    pub organization: Option<&'a str>,
    /// The common name of the subject: of a CA, what precedes a random suffix, so that no two CAs have the
    /// same name.
    pub name: &'a str,
    /// What the certificate may be used for.
    pub usages: Usages,
    /// When it is valid.
    pub validity: Validity,
}

/// SHA-256 in hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Creates a CA, with a self-signed certificate.
///
/// # Errors
/// If the system has no random bytes, or if the name is invalid in a certificate.
pub fn create_ca(request: &CertificateRequest<'_>) -> Result<KeyPairPem, MakeError> {
    let serial = serial()?;
    let name = format!("{}-{}", request.name, hexadecimal(&serial[8..]));
    let wrong = |error| MakeError::Generate(name.clone(), error);
    let mut params = parameters(request, &name, serial);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages.push(KeyUsagePurpose::KeyCertSign);
    let key = generate().map_err(wrong)?;
    let certificate = params.self_signed(&key).map_err(wrong)?;
    Ok(KeyPairPem { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Creates a certificate for a server with these DNS names, signed by a CA.
///
/// # Errors
/// If the system has no random bytes, if a host is no DNS name, if a name is invalid in a certificate, or if the
/// CA cannot be read.
pub fn sign(
    ca: &KeyPairPem,
    request: &CertificateRequest<'_>,
    hosts: &[String],
) -> Result<KeyPairPem, MakeError> {
    let wrong = |error| MakeError::Generate(request.name.to_owned(), error);
    let signer = KeyPair::from_pem(&ca.key).map_err(wrong)?;
    let issuer = Issuer::from_ca_cert_pem(&ca.certificate, signer).map_err(wrong)?;
    let mut params = parameters(request, request.name, serial()?);
    for host in hosts {
        if !matches!(ServerName::try_from(host.as_str()), Ok(ServerName::DnsName(_))) {
            return Err(MakeError::Host(host.clone()));
        }
        let name = host.as_str().try_into().map_err(wrong)?;
        params.subject_alt_names.push(SanType::DnsName(name));
    }
    params.use_authority_key_identifier_extension = true;
    let key = generate().map_err(wrong)?;
    let certificate = params.signed_by(&key, &issuer).map_err(wrong)?;
    Ok(KeyPairPem { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn generate() -> Result<KeyPair, rcgen::Error> {
    KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)
}

/// A random positive number.
fn serial() -> Result<[u8; 16], MakeError> {
    let mut serial = [0_u8; 16];
    getrandom::fill(&mut serial).map_err(|_| MakeError::Random)?;
    serial[0] &= 0x7f;
    Ok(serial)
}

fn parameters(request: &CertificateRequest<'_>, name: &str, serial: [u8; 16]) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    if let Some(organization) = request.organization {
        subject.push(DnType::OrganizationName, organization);
    }
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let at = |time: Timestamp| {
        let seconds = u64::try_from(time.as_second()).unwrap_or_default();
        date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    params.not_before = at(request.validity.from);
    params.not_after = at(request.validity.until);
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages = request.usages.purposes();
    params
}

/// When a certificate is valid, whoever signed it; none if it cannot be read.
pub fn validity_of(certificate: &[u8]) -> Option<Validity> {
    let der = CertificateDer::from_pem_slice(certificate).ok()?;
    let (_, parsed) = X509Certificate::from_der(&der).ok()?;
    let validity = parsed.validity();
    let time = |at: x509_parser::time::ASN1Time| Timestamp::from_second(at.timestamp()).ok();
    Some(Validity { from: time(validity.not_before)?, until: time(validity.not_after)? })
}

/// When a CA is valid; none if its certificate cannot be read or if the key is not its own.
pub fn ca_validity(ca: &KeyPairPem) -> Option<Validity> {
    certified(ca.certificate.as_bytes(), ca.key.as_bytes())?;
    validity_of(ca.certificate.as_bytes())
}

/// When the certificate of a server is valid: signed by the CA, with all these DNS names, and with its key.
/// None if it is invalid. All texts are PEM.
pub fn server_validity(
    ca: &[u8],
    certificate: &[u8],
    key: &[u8],
    hosts: &[String],
) -> Option<Validity> {
    if hosts.is_empty() {
        return None;
    }
    let validity = validity_of(ca)?.common(validity_of(certificate)?);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca).ok()?).ok()?;
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), mainstay_tls::provider());
    let verifier = verifier.build().ok()?;
    let leaf = CertificateDer::from_pem_slice(certificate).ok()?.into_owned();
    let from = validity.from.as_second().try_into().ok()?;
    let at = UnixTime::since_unix_epoch(Duration::from_secs(from));
    for host in hosts {
        let name = ServerName::try_from(host.as_str()).ok()?;
        verifier.verify_server_cert(&leaf, &[], &name, &[], at).ok()?;
    }
    certified(certificate, key)?;
    Some(validity)
}

/// A certificate with its key; none if the key is another one's.
fn certified(certificate: &[u8], key: &[u8]) -> Option<CertifiedKey> {
    let certificate = CertificateDer::from_pem_slice(certificate).ok()?.into_owned();
    let key = PrivateKeyDer::from_pem_slice(key).ok()?;
    CertifiedKey::from_der(vec![certificate], key, &mainstay_tls::provider()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn request(name: &str, hours: i64) -> CertificateRequest<'_> {
        let validity = Validity::starting(now(), SignedDuration::from_hours(hours));
        CertificateRequest { organization: None, name, usages: Usages::Server, validity }
    }

    #[test]
    fn server_certificate_is_valid_with_its_ca_names_and_key_only() {
        let [ca, other] = [(); 2].map(|()| create_ca(&request("ca", 48)).unwrap());
        let hosts = ["a.ns".to_owned(), "a.ns.svc".to_owned()];
        let [server, second] = [(); 2].map(|()| sign(&ca, &request("a.ns", 24), &hosts).unwrap());
        let validity = |ca: &KeyPairPem, key: &KeyPairPem, hosts: &[String]| {
            let (ca, certificate) = (ca.certificate.as_bytes(), server.certificate.as_bytes());
            server_validity(ca, certificate, key.key.as_bytes(), hosts)
        };
        let expected = Validity::starting(now(), SignedDuration::from_hours(24));
        assert_eq!(validity(&ca, &server, &hosts), Some(expected));
        assert!(expected.contains(now()) && !expected.contains(expected.until));
        assert_eq!(validity(&other, &server, &hosts), None);
        assert_eq!(validity(&ca, &second, &hosts), None);
        assert_eq!(validity(&ca, &server, &["b.ns".to_owned()]), None);
        assert_eq!(validity(&ca, &server, &[]), None);
        assert!(!format!("{server:?}").contains("PRIVATE"));
    }

    #[test]
    fn validity_of_a_server_ends_with_its_ca() {
        let ca = create_ca(&request("ca", 2)).unwrap();
        let hosts = ["a.ns".to_owned()];
        let server = sign(&ca, &request("a.ns", 24), &hosts).unwrap();
        let (ca, certificate) = (ca.certificate.as_bytes(), server.certificate.as_bytes());
        let validity = server_validity(ca, certificate, server.key.as_bytes(), &hosts).unwrap();
        assert_eq!(validity.until, now() + SignedDuration::from_hours(2));
    }

    #[test]
    fn host_must_be_a_dns_name() {
        let ca = create_ca(&request("ca", 2)).unwrap();
        for host in [format!("{}.ns", "x".repeat(64)), "10.0.0.1".to_owned(), "a b".to_owned()] {
            let refused = sign(&ca, &request("a", 1), std::slice::from_ref(&host)).unwrap_err();
            assert!(refused.to_string().contains(&host), "{refused}");
        }
    }

    #[test]
    fn ca_needs_its_own_key() {
        let [ca, other] = [(); 2].map(|()| create_ca(&request("ca", 48)).unwrap());
        assert!(ca_validity(&ca).is_some());
        let mixed = KeyPairPem { key: other.key, ..ca.clone() };
        assert_eq!(ca_validity(&mixed), None);
        assert!(sign(&KeyPairPem { key: String::new(), ..ca }, &request("a", 1), &[]).is_err());
    }
}
