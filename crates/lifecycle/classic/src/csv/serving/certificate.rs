//! Serving certificates: creates and validates the certificates of the servers that CSVs run.
//!
//! Each Deployment with a server has a CA of its own. The CA signs one certificate, and its key is
//! discarded then, so each new certificate has a new CA. A Secret holds the certificate, its key
//! and the certificate of the CA.
//!
//! Of such a Secret, caches keep the validity of the certificate, never its data.

use jiff::{SignedDuration, Timestamp};
use mainstay_api::names;
use mainstay_certificates::{
    BACKDATED, CertificateRequest, Usages, Validity, create_ca, server_validity, sign, validity_of,
};
use mainstay_object::{Object, OwnerReference};

pub use mainstay_certificates::MakeError;
pub(crate) use mainstay_certificates::sha256_hex;

/// The lifetime of a certificate: two years.
const LIFETIME: SignedDuration = SignedDuration::from_hours(730 * 24);
/// How long before its end a certificate is replaced: a day.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(24);
/// The organization in the subject; other software looks for it.
const ORGANIZATION: &str = "Red Hat, Inc.";

/// The key of the Secret with the CA certificate.
pub(crate) const CA_CERTIFICATE: &str = "olmCAKey";
/// The key of the Secret with the server's certificate.
pub(crate) const CERTIFICATE: &str = "tls.crt";
/// The key of the Secret with the server's private key.
pub(crate) const KEY: &str = "tls.key";

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
            .field("authority", &sha256_hex(self.authority.as_bytes()))
            .finish_non_exhaustive()
    }
}

/// When a certificate that is valid until then is replaced.
pub(crate) fn rotation(until: Timestamp) -> Timestamp {
    until.checked_sub(RENEW_BEFORE).unwrap_or(Timestamp::MIN)
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
    let validity = Validity::starting(now, LIFETIME);
    let request = |name| CertificateRequest {
        organization: Some(ORGANIZATION),
        name,
        usages: Usages::ServerAndClient,
        validity,
    };
    let ca = create_ca(&request("olm-selfsigned"))?;
    let server = sign(&ca, &request(&hosts[0]), &hosts)?;
    Ok(ServingCertificate {
        authority: ca.certificate,
        certificate: server.certificate,
        key: server.key,
    })
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
    pub(crate) validity: Option<Validity>,
}

impl CertificateSecret {
    /// The fields of a Secret; none if its name is not that of a certificate Secret.
    pub(crate) fn of(object: &Object) -> Option<Self> {
        let service = object.name().strip_suffix(super::CERTIFICATE_SUFFIX)?;
        let field = |name: &str| decoded(object, name);
        let (ca, certificate) = (field(CA_CERTIFICATE), field(CERTIFICATE));
        let hosts = hosts(service, object.namespace());
        Some(Self {
            owners: object.owner_references(),
            ca_hash: sha256_hex(&ca),
            annotated_ca_hash: object.annotation(names::CA_HASH).unwrap_or_default().to_owned(),
            readable: validity_of(&certificate).is_some(),
            validity: server_validity(&ca, &certificate, &field(KEY), &hosts),
        })
    }

    /// When a valid certificate was created.
    pub(crate) fn made_at(&self) -> Option<Timestamp> {
        self.validity.and_then(|validity| validity.from.checked_add(BACKDATED).ok())
    }

    /// Whether the certificate is valid now and not due for replacement.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        let is_fresh =
            |validity: Validity| validity.contains(now) && now < rotation(validity.until);
        self.validity.is_some_and(is_fresh)
    }
}

/// A decoded field of a Secret.
pub(crate) fn decoded(secret: &Object, field: &str) -> Vec<u8> {
    use base64::Engine as _;
    let text = secret.str(&["data", field]).unwrap_or_default();
    base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default()
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
        secret.set_annotation(names::CA_HASH, sha256_hex(certificate.authority.as_bytes()));
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
        let Validity { from, until } = secret.validity.unwrap();
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
