//! Certificate signing: the built-in signers of kube-controller-manager, with the cluster's CA.

use super::request::{SigningRequest, SigningRequestError};
use super::{CertificateKeyPair, PkiError, der, parse, pem, subject_key_id};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use mainstay_clock::Clock;
use mainstay_object::Object;
use rcgen::SigningKey as _;
use serde_json::Value;

/// The signer of client certificates for the API.
pub const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// The signer of kubelet client certificates.
pub const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The signer of kubelet serving certificates.
pub const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// The signer of requests without a signer name, from before API version `v1`.
pub const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// The longest lifetime, and the default one (`--cluster-signing-duration`).
const MAX_LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);
/// The shortest lifetime.
const MIN_LIFETIME: SignedDuration = SignedDuration::from_mins(10);
/// Certificates are valid from this long before their creation, for clients whose clocks are
/// behind.
const BACKDATED: SignedDuration = SignedDuration::from_mins(5);
/// The lifetime of certificates up to this limit does not include the time before their creation.
const SHORT_LIFETIME: SignedDuration = SignedDuration::from_hours(8);

/// The bits of key usages (RFC 5280, 4.2.1.3).
const KEY_USAGES: [(&str, u32); 10] = [
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

/// The encoded object identifiers of extended key usages (RFC 5280, 4.2.1.12, and those of
/// vendors), in Go's order.
const EXTENDED_KEY_USAGES: [(&str, &[u8]); 13] = [
    ("any", &[0x55, 0x1d, 0x25, 0x00]),
    ("server auth", &[0x2b, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[0x2b, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[0x2b, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[0x2b, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[0x2b, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[0x2b, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[0x2b, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[0x2b, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 0x0a, 3, 3]),
    ("netscape sgc", &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1]),
];

/// Why no certificate is issued for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IssueError {
    /// The request names another signer.
    OtherSigner,
    /// The signer rejects the request; the text is that of its `Failed` condition.
    Rejected(String),
    /// Signing failed and may be tried again.
    Sign(SignError),
}

/// Signing a valid request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The request is no Base64.
    #[error(transparent)]
    DecodeRequest(#[from] base64::DecodeError),
    /// The request does not parse, or another key signed it.
    #[error(transparent)]
    Request(#[from] SigningRequestError),
    /// The validity period is outside the range of timestamps; the text is that of the library.
    #[error("{0}")]
    Time(String),
    /// The CA has expired.
    #[error("refusing to sign a certificate that expired in the past: NotAfter={until}")]
    Expired {
        /// When the CA expired.
        until: Timestamp,
    },
    /// The system has no random bytes for the serial number.
    #[error("{0}")]
    Random(getrandom::Error),
    /// A usage is unknown.
    #[error("unrecognized usage values: {usage:?}")]
    UnknownUsage {
        /// The usage.
        usage: String,
    },
    /// The signature failed.
    #[error(transparent)]
    Sign(#[from] rcgen::Error),
}

/// Signs certificate signing requests with the cluster's CA.
pub struct Signer {
    issuer: Vec<u8>,
    key_id: Option<Vec<u8>>,
    algorithm: Vec<u8>,
    until: Timestamp,
    key: rcgen::KeyPair,
    clock: Clock,
}

impl std::fmt::Debug for Signer {
    /// Prints no keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("until", &self.until).finish_non_exhaustive()
    }
}

/// Parses the request in a `CertificateSigningRequest` object.
fn parse_request(object: &Object) -> Result<SigningRequest, SignError> {
    let encoded = object.str(&["spec", "request"]).unwrap_or_default();
    let bytes = STANDARD.decode(encoded)?;
    Ok(SigningRequest::parse(&String::from_utf8_lossy(&bytes))?)
}

fn usages(object: &Object) -> Vec<&str> {
    object.array(&["spec", "usages"]).iter().filter_map(Value::as_str).collect()
}

/// The subresources of `certificatesigningrequests` that allow automatic approval: the sender needs
/// the verb `create` on one of them. Empty if only a person may approve.
pub fn auto_approval_subresources(object: &Object) -> Vec<&'static str> {
    if object.str(&["spec", "signerName"]) != Some(KUBELET_CLIENT) {
        return Vec::new();
    }
    let Ok(request) = parse_request(object) else { return Vec::new() };
    if request.kubelet_client_problem(&usages(object)).is_some() {
        return Vec::new();
    }
    let is_own = object.str(&["spec", "username"]) == Some(request.common_name.as_str());
    is_own.then_some("selfnodeclient").into_iter().chain(["nodeclient"]).collect()
}

impl Signer {
    pub(super) fn new(authority: &CertificateKeyPair, clock: Clock) -> Result<Self, PkiError> {
        let malformed = || PkiError::Generate(rcgen::Error::CouldNotParseCertificate);
        let certificate = parse(&authority.certificate).map_err(|_| malformed())?;
        let until = certificate.validity().not_after.timestamp();
        // The CA certificate is signed with the same key, so its algorithm applies.
        let outer = der::first(&authority.certificate).ok_or_else(malformed)?;
        let algorithm = der::all(outer.content).nth(1).ok_or_else(malformed)?;
        let key =
            rcgen::KeyPair::try_from(authority.key.serialize_der()).map_err(PkiError::Generate)?;
        Ok(Self {
            issuer: certificate.subject().as_raw().to_vec(),
            key_id: subject_key_id(&certificate).map(<[u8]>::to_vec),
            algorithm: algorithm.whole.to_vec(),
            until: Timestamp::from_second(until).unwrap_or(Timestamp::MAX),
            key,
            clock,
        })
    }

    /// Issues the certificate (PEM) for an approved `CertificateSigningRequest`.
    pub fn issue(&self, object: &Object) -> Result<String, IssueError> {
        let signer = object.str(&["spec", "signerName"]).unwrap_or_default();
        if ![CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY].contains(&signer) {
            return Err(IssueError::OtherSigner);
        }
        let request = parse_request(object).map_err(IssueError::Sign)?;
        let usages = usages(object);
        let problem = match signer {
            KUBELET_SERVING => request.kubelet_serving_problem(&usages),
            KUBELET_CLIENT => request.kubelet_client_problem(&usages),
            CLIENT => client_problem(&usages),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(IssueError::Rejected(problem));
        }
        let seconds = object.i64(&["spec", "expirationSeconds"]);
        self.sign(&request, &usages, seconds).map_err(IssueError::Sign)
    }

    fn sign(
        &self,
        request: &SigningRequest,
        usages: &[&str],
        seconds: Option<i64>,
    ) -> Result<String, SignError> {
        request.check_signature()?;
        let lifetime = seconds
            .map_or(MAX_LIFETIME, SignedDuration::from_secs)
            .clamp(MIN_LIFETIME, MAX_LIFETIME);
        let now = self.clock.now();
        let overflow = |error: jiff::Error| SignError::Time(error.to_string());
        let since = now.checked_sub(BACKDATED).map_err(overflow)?;
        let until = if lifetime < SHORT_LIFETIME { now } else { since };
        let until = until.checked_add(lifetime).map_err(overflow)?.min(self.until);
        if now >= self.until {
            return Err(SignError::Expired { until: self.until });
        }
        let mut serial = [0_u8; 16];
        getrandom::fill(&mut serial).map_err(SignError::Random)?;
        let body = der::sequence(&[
            // Version 3.
            &der::value(0xa0, &der::integer(&[2])),
            &der::integer(&serial),
            &self.algorithm,
            &self.issuer,
            &der::sequence(&[&der::time(since), &der::time(until)]),
            &request.subject,
            &request.public_key,
            &der::value(0xa3, &self.extensions(request, usages)?),
        ]);
        let signature = self.key.sign(&body)?;
        let certificate = der::sequence(&[&body, &self.algorithm, &der::bit_string(&signature)]);
        Ok(pem::encode("CERTIFICATE", &certificate))
    }

    /// The extensions of a certificate, in Go's order.
    fn extensions(&self, request: &SigningRequest, usages: &[&str]) -> Result<Vec<u8>, SignError> {
        let mut bits = 0_u16;
        let mut purposes: Vec<&[u8]> = Vec::new();
        for usage in usages {
            if let Some((_, bit)) = KEY_USAGES.iter().find(|(name, _)| name == usage) {
                bits |= 1 << bit;
            } else if !EXTENDED_KEY_USAGES.iter().any(|(name, _)| name == usage) {
                return Err(SignError::UnknownUsage { usage: (*usage).to_owned() });
            }
        }
        for (name, oid) in EXTENDED_KEY_USAGES {
            if usages.contains(&name) && !purposes.contains(&oid) {
                purposes.push(oid);
            }
        }
        let mut extensions = Vec::new();
        if bits != 0 {
            extensions.push(extension(&[0x55, 0x1d, 0x0f], true, &der::named_bits(bits)));
        }
        if !purposes.is_empty() {
            let list: Vec<u8> = purposes.iter().flat_map(|oid| der::value(0x06, oid)).collect();
            extensions.push(extension(
                &[0x55, 0x1d, 0x25],
                false,
                &der::value(der::SEQUENCE, &list),
            ));
        }
        // Basic constraints: the certificate is no CA.
        extensions.push(extension(&[0x55, 0x1d, 0x13], true, &der::sequence(&[])));
        if let Some(id) = &self.key_id {
            let id = der::sequence(&[&der::value(0x80, id)]);
            extensions.push(extension(&[0x55, 0x1d, 0x23], false, &id));
        }
        if let Some(names) = request.encode_alternative_names() {
            // Names are critical if the subject is empty (RFC 5280, 4.2.1.6).
            let is_critical = request.subject == der::sequence(&[]);
            extensions.push(extension(&[0x55, 0x1d, 0x11], is_critical, &names));
        }
        Ok(der::value(der::SEQUENCE, &extensions.concat()))
    }
}

fn extension(oid: &[u8], critical: bool, content: &[u8]) -> Vec<u8> {
    let encoded_true = der::value(0x01, &[0xff]);
    let critical: &[u8] = if critical { &encoded_true } else { &[] };
    der::sequence(&[&der::value(0x06, oid), critical, &der::value(der::OCTET_STRING, content)])
}

/// Why the signer of client certificates rejects the usages; none if it accepts them.
fn client_problem(usages: &[&str]) -> Option<String> {
    let other = usages
        .iter()
        .find(|usage| !["digital signature", "key encipherment", "client auth"].contains(usage));
    if let Some(other) = other {
        return Some(format!("invalid usage for client certificate: {other}"));
    }
    let missing = "missing required usage for client certificate: client auth";
    (!usages.contains(&"client auth")).then(|| missing.to_owned())
}

#[cfg(test)]
mod tests;
