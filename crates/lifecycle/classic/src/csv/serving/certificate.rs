//! Serving certificates: creates and validates the certificates of the servers that CSVs run.
//!
//! Each Deployment with a server has a CA of its own. The CA signs one certificate, and its key is
//! discarded then, so each new certificate has a new CA. A Secret holds the certificate, its key
//! and the certificate of the CA.
//!
//! Of such a Secret, caches keep the validity of the certificate, never its data.

use jiff::{SignedDuration, Timestamp};
use mainstay_api::names;
use mainstay_object::{Object, OwnerReference};
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
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The lifetime of a certificate: two years.
const LIFETIME: SignedDuration = SignedDuration::from_hours(730 * 24);
/// How long before its end a certificate is replaced: a day.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(24);
/// How far the start of the validity lies in the past, for servers whose clocks are behind.
const BACKDATED: SignedDuration = SignedDuration::from_hours(1);
/// The organization in the subject; other software looks for it.
const ORGANIZATION: &str = "Red Hat, Inc.";

/// The key of the Secret with the CA certificate.
pub(crate) const CA_CERTIFICATE: &str = "olmCAKey";
/// The key of the Secret with the server's certificate.
pub(crate) const CERTIFICATE: &str = "tls.crt";
/// The key of the Secret with the server's private key.
pub(crate) const KEY: &str = "tls.key";

/// Why a certificate cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The cryptographic library fails.
    #[error("cannot make a key or certificate for {0}")]
    Generate(String, #[source] rcgen::Error),
    /// The system has no random bytes.
    #[error("cannot make a serial number: the system gives no random bytes")]
    Random,
}

/// A new certificate, its private key and its CA certificate, in PEM.
pub struct ServingCertificate {
    /// The CA certificate.
    pub authority: String,
    /// The server's certificate.
    pub certificate: String,
    /// The server's private key.
    pub key: String,
}

impl std::fmt::Debug for ServingCertificate {
    /// Prints no keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServingCertificate")
            .field("authority", &hash(self.authority.as_bytes()))
            .finish_non_exhaustive()
    }
}

/// When a certificate that is valid until then is replaced.
pub(crate) fn rotation(until: Timestamp) -> Timestamp {
    until.checked_sub(RENEW_BEFORE).unwrap_or(Timestamp::MIN)
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The names by which the API server and pods call a Service.
pub(crate) fn hosts(service: &str, namespace: &str) -> [String; 2] {
    [format!("{service}.{namespace}"), format!("{service}.{namespace}.svc")]
}

/// Creates a CA, and a certificate of that CA for the server behind a Service. Both are valid for
/// two years.
///
/// # Errors
/// If the system has no random bytes, or if a name is invalid in a certificate.
pub fn make(
    service: &str,
    namespace: &str,
    now: Timestamp,
) -> Result<ServingCertificate, MakeError> {
    let hosts = hosts(service, namespace);
    let wrong = |error| MakeError::Generate(hosts[1].clone(), error);
    let serial = serial()?;
    let digits = hash(&serial);
    let mut ca = parameters(&format!("olm-selfsigned-{}", &digits[..16]), serial, now);
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
        KeyUsagePurpose::KeyCertSign,
    ];
    ca.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    let authority_key = generate().map_err(wrong)?;
    let signed = ca.self_signed(&authority_key).map_err(wrong)?;
    let issuer = Issuer::new(ca, authority_key);

    let mut server = parameters(&hosts[0], self::serial()?, now);
    for host in &hosts {
        let name = host.as_str().try_into().map_err(wrong)?;
        server.subject_alt_names.push(SanType::DnsName(name));
    }
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    server.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let key = generate().map_err(wrong)?;
    let certificate = server.signed_by(&key, &issuer).map_err(wrong)?;
    Ok(ServingCertificate {
        authority: signed.pem(),
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
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

fn parameters(name: &str, serial: [u8; 16], now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationName, ORGANIZATION);
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    let at = |time: Option<Timestamp>| {
        let second = time.map_or(0, Timestamp::as_second);
        date_time_ymd(1970, 1, 1) + Duration::from_secs(u64::try_from(second).unwrap_or_default())
    };
    params.not_before = at(now.checked_sub(BACKDATED).ok());
    params.not_after = at(now.checked_add(LIFETIME).ok());
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params
}

/// The fields of the Secret with the certificate of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CertificateSecret {
    pub(crate) owners: Vec<OwnerReference>,
    /// SHA-256 of the CA certificate.
    pub(crate) ca_hash: String,
    /// The same hash in the annotation of the Secret.
    pub(crate) annotated_ca_hash: String,
    /// Whether the certificate can be parsed.
    pub(crate) readable: bool,
    /// When the certificate is valid: signed by the CA, with the names of the Service, and with its
    /// key. None if it is invalid.
    pub(crate) validity: Option<(Timestamp, Timestamp)>,
}

impl CertificateSecret {
    /// The fields of a Secret; none if its name is not that of a certificate Secret.
    pub(crate) fn of(object: &Object) -> Option<Self> {
        let service = object.name().strip_suffix(super::CERTIFICATE_SUFFIX)?;
        let field = |name: &str| decoded(object, name);
        let (ca, certificate) = (field(CA_CERTIFICATE), field(CERTIFICATE));
        Some(Self {
            owners: object.owner_references(),
            ca_hash: hash(&ca),
            annotated_ca_hash: object.annotation(names::CA_HASH).unwrap_or_default().to_owned(),
            readable: dates(&certificate).is_some(),
            validity: validity(&ca, &certificate, &field(KEY), service, object.namespace()),
        })
    }

    /// When a valid certificate was created.
    pub(crate) fn made_at(&self) -> Option<Timestamp> {
        self.validity.and_then(|(from, _)| from.checked_add(BACKDATED).ok())
    }

    /// Whether the certificate is valid now and not due for replacement.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        self.validity.is_some_and(|(from, until)| from <= now && now < rotation(until))
    }
}

/// A decoded field of a Secret.
pub(crate) fn decoded(secret: &Object, field: &str) -> Vec<u8> {
    use base64::Engine as _;
    let text = secret.str(&["data", field]).unwrap_or_default();
    base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default()
}

/// When a certificate is valid.
fn dates(pem: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let der = CertificateDer::from_pem_slice(pem).ok()?;
    let (_, parsed) = X509Certificate::from_der(&der).ok()?;
    let validity = parsed.validity();
    let time = |at: x509_parser::time::ASN1Time| Timestamp::from_second(at.timestamp()).ok();
    Some((time(validity.not_before)?, time(validity.not_after)?))
}

fn validity(
    ca: &[u8],
    certificate: &[u8],
    key: &[u8],
    service: &str,
    namespace: &str,
) -> Option<(Timestamp, Timestamp)> {
    let (ca_dates, leaf_dates) = (dates(ca)?, dates(certificate)?);
    let (from, until) = (ca_dates.0.max(leaf_dates.0), ca_dates.1.min(leaf_dates.1));
    let provider = mainstay_tls::provider();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca).ok()?).ok()?;
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let verifier = verifier.build().ok()?;
    let leaf = CertificateDer::from_pem_slice(certificate).ok()?.into_owned();
    let at = UnixTime::since_unix_epoch(Duration::from_secs(from.as_second().try_into().ok()?));
    for host in hosts(service, namespace) {
        let name = ServerName::try_from(host).ok()?;
        verifier.verify_server_cert(&leaf, &[], &name, &[], at).ok()?;
    }
    // This fails if the key does not belong to the certificate.
    let key = PrivateKeyDer::from_pem_slice(key).ok()?;
    CertifiedKey::from_der(vec![leaf], key, &provider).ok()?;
    Some((from, until))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use mainstay_object::builtin;
    use serde_json::json;

    fn now() -> Timestamp {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    fn secret(certificate: &ServingCertificate, name: &str) -> Object {
        let encode = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        let mut secret = Object::new(&builtin::SECRET.gvk(), name);
        secret.set(&["metadata", "namespace"], "ns".into());
        secret.set_annotation(names::CA_HASH, hash(certificate.authority.as_bytes()));
        secret.set(
            &["data"],
            json!({
                CA_CERTIFICATE: encode(&certificate.authority), CERTIFICATE: encode(&certificate.certificate),
                KEY: encode(&certificate.key),
            }),
        );
        secret
    }

    #[test]
    fn a_certificate_lives_two_years_and_is_replaced_a_day_before_its_end() {
        let own = make("d-service", "ns", now()).unwrap();
        let secret = CertificateSecret::of(&secret(&own, "d-service-cert")).unwrap();
        assert_eq!(secret.ca_hash, secret.annotated_ca_hash);
        let (from, until) = secret.validity.unwrap();
        assert_eq!(from, now() - BACKDATED);
        assert_eq!(secret.made_at(), Some(now()));
        assert_eq!(until, now() + LIFETIME);
        let day = SignedDuration::from_hours(24);
        assert!(
            secret.is_fresh(now()) && secret.is_fresh(until - day - SignedDuration::from_secs(1))
        );
        assert!(!secret.is_fresh(until - day) && !secret.is_fresh(from - day));
        assert!(!format!("{own:?}").contains("PRIVATE"));
    }

    #[test]
    fn a_certificate_is_invalid_for_another_service_with_another_ca_or_without_its_key() {
        let (own, other) =
            (make("d-service", "ns", now()).unwrap(), make("d-service", "ns", now()).unwrap());
        let is_valid = |ca: &ServingCertificate,
                        certificate: &ServingCertificate,
                        key: &ServingCertificate,
                        name: &str| {
            let mixed = ServingCertificate {
                authority: ca.authority.clone(),
                certificate: certificate.certificate.clone(),
                key: key.key.clone(),
            };
            CertificateSecret::of(&secret(&mixed, name)).unwrap().validity.is_some()
        };
        assert!(is_valid(&own, &own, &own, "d-service-cert"));
        assert!(!is_valid(&own, &own, &own, "e-service-cert"));
        assert!(!is_valid(&other, &own, &own, "d-service-cert"));
        assert!(!is_valid(&own, &own, &other, "d-service-cert"));
        let empty = Object::new(&builtin::SECRET.gvk(), "d-service-cert");
        assert_eq!(CertificateSecret::of(&empty).unwrap().validity, None);
        assert!(CertificateSecret::of(&Object::new(&builtin::SECRET.gvk(), "x")).is_none());
    }
}
