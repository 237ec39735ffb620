//! Signing requests with the cluster's authority: the signers that the original's controllers have.

use super::request::{SigningRequest, SigningRequestError};
use super::{Pair, PkiError, der, parse, pem, subject_key};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use mainstay_clock::Clock;
use mainstay_object::Object;
use rcgen::SigningKey as _;
use serde_json::Value;

/// The signer of clients of the API.
pub const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// The signer of kubelets as clients of the API.
pub const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// The signer of kubelets as servers.
pub const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
/// The signer of requests from before there were names of signers.
pub const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// What is asked for longest, and what is given to who does not ask (`--cluster-signing-duration`).
const LONGEST: SignedDuration = SignedDuration::from_hours(365 * 24);
/// What is given at least.
const SHORTEST: SignedDuration = SignedDuration::from_mins(10);
/// Certificates begin this long ago, for those whose clocks are behind.
const BACKDATED: SignedDuration = SignedDuration::from_mins(5);
/// Certificates that live shorter are not cut by what they were dated back.
const SHORT: SignedDuration = SignedDuration::from_hours(8);

/// Bits of usages of keys (RFC 5280, 4.2.1.3).
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

/// Identifiers of purposes (RFC 5280, 4.2.1.12, and those of vendors), encoded, in Go's order.
const PURPOSES: [(&str, &[u8]); 13] = [
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

/// Why a request gets no certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsigned {
    /// Another signer is meant.
    NotOurs,
    /// It asks for what this signer does not give: the text is that of its `Failed` condition.
    Refused(String),
    /// Something went wrong; it may be tried again.
    Broken(SignError),
}

/// A certificate is not signed although it may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    /// The request is no Base64.
    #[error(transparent)]
    DecodeRequest(#[from] base64::DecodeError),
    /// The request cannot be read, or another key signed it.
    #[error(transparent)]
    Request(#[from] SigningRequestError),
    /// The time of the certificate cannot be written; the text is that of the library.
    #[error("{0}")]
    Time(String),
    /// The authority has ended.
    #[error("refusing to sign a certificate that expired in the past: NotAfter={until}")]
    Expired {
        /// When it ended.
        until: Timestamp,
    },
    /// There is no serial number.
    #[error("{0}")]
    Random(getrandom::Error),
    /// A usage is not known.
    #[error("unrecognized usage values: {usage:?}")]
    UnknownUsage {
        /// The usage.
        usage: String,
    },
    /// The key does not sign.
    #[error(transparent)]
    Sign(#[from] rcgen::Error),
}

/// Signs requests with the cluster's authority.
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

/// The request of a `CertificateSigningRequest`, read.
fn read(object: &Object) -> Result<SigningRequest, SignError> {
    let encoded = object.str(&["spec", "request"]).unwrap_or_default();
    let bytes = STANDARD.decode(encoded)?;
    Ok(SigningRequest::read(&String::from_utf8_lossy(&bytes))?)
}

fn usages(object: &Object) -> Vec<&str> {
    object.array(&["spec", "usages"]).iter().filter_map(Value::as_str).collect()
}

/// For which subresources of `certificatesigningrequests` its sender must have permission to `create`
/// so that a request is approved without anybody looking at it; empty if people must.
pub fn approvals(object: &Object) -> Vec<&'static str> {
    if object.str(&["spec", "signerName"]) != Some(KUBELET_CLIENT) {
        return Vec::new();
    }
    let Ok(request) = read(object) else { return Vec::new() };
    if request.problem_as_kubelet_client(&usages(object)).is_some() {
        return Vec::new();
    }
    let own = object.str(&["spec", "username"]) == Some(request.common_name.as_str());
    own.then_some("selfnodeclient").into_iter().chain(["nodeclient"]).collect()
}

impl Signer {
    pub(super) fn new(authority: &Pair, clock: Clock) -> Result<Self, PkiError> {
        let unusable = || PkiError::Generate(rcgen::Error::CouldNotParseCertificate);
        let certificate = parse(&authority.certificate).map_err(|_| unusable())?;
        let until = certificate.validity().not_after.timestamp();
        // The authority signed itself with this key: its certificate says how.
        let outer = der::first(&authority.certificate).ok_or_else(unusable)?;
        let algorithm = der::all(outer.content).nth(1).ok_or_else(unusable)?;
        let key =
            rcgen::KeyPair::try_from(authority.key.serialize_der()).map_err(PkiError::Generate)?;
        Ok(Self {
            issuer: certificate.subject().as_raw().to_vec(),
            key_id: subject_key(&certificate).map(<[u8]>::to_vec),
            algorithm: algorithm.whole.to_vec(),
            until: Timestamp::from_second(until).unwrap_or(Timestamp::MAX),
            key,
            clock,
        })
    }

    /// The certificate (PEM) for an approved `CertificateSigningRequest`.
    pub fn answer(&self, object: &Object) -> Result<String, Unsigned> {
        let signer = object.str(&["spec", "signerName"]).unwrap_or_default();
        if ![CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY].contains(&signer) {
            return Err(Unsigned::NotOurs);
        }
        let request = read(object).map_err(Unsigned::Broken)?;
        let usages = usages(object);
        let problem = match signer {
            KUBELET_SERVING => request.problem_as_kubelet_server(&usages),
            KUBELET_CLIENT => request.problem_as_kubelet_client(&usages),
            CLIENT => problem_as_client(&usages),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(Unsigned::Refused(problem));
        }
        let seconds = object.i64(&["spec", "expirationSeconds"]);
        self.sign(&request, &usages, seconds).map_err(Unsigned::Broken)
    }

    fn sign(
        &self,
        request: &SigningRequest,
        usages: &[&str],
        seconds: Option<i64>,
    ) -> Result<String, SignError> {
        request.check_signature()?;
        let life = seconds.map_or(LONGEST, SignedDuration::from_secs).clamp(SHORTEST, LONGEST);
        let now = self.clock.now();
        let overflow = |error: jiff::Error| SignError::Time(error.to_string());
        let since = now.checked_sub(BACKDATED).map_err(overflow)?;
        let until = if life < SHORT { now } else { since };
        let until = until.checked_add(life).map_err(overflow)?.min(self.until);
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
            &request.key,
            &der::value(0xa3, &self.extensions(request, usages)?),
        ]);
        let signature = self.key.sign(&body)?;
        let whole = der::sequence(&[&body, &self.algorithm, &der::bits(&signature)]);
        Ok(pem::text("CERTIFICATE", &whole))
    }

    /// The extensions of a certificate, in the order in which Go writes them.
    fn extensions(&self, request: &SigningRequest, usages: &[&str]) -> Result<Vec<u8>, SignError> {
        let mut bits = 0_u16;
        let mut purposes: Vec<&[u8]> = Vec::new();
        for usage in usages {
            if let Some((_, bit)) = KEY_USAGES.iter().find(|(name, _)| name == usage) {
                bits |= 1 << bit;
            } else if !PURPOSES.iter().any(|(name, _)| name == usage) {
                return Err(SignError::UnknownUsage { usage: (*usage).to_owned() });
            }
        }
        for (name, oid) in PURPOSES {
            if usages.contains(&name) && !purposes.contains(&oid) {
                purposes.push(oid);
            }
        }
        let mut all = Vec::new();
        if bits != 0 {
            all.push(extension(&[0x55, 0x1d, 0x0f], true, &der::named_bits(bits)));
        }
        if !purposes.is_empty() {
            let list: Vec<u8> = purposes.iter().flat_map(|oid| der::value(0x06, oid)).collect();
            all.push(extension(&[0x55, 0x1d, 0x25], false, &der::value(der::SEQUENCE, &list)));
        }
        // It is no authority.
        all.push(extension(&[0x55, 0x1d, 0x13], true, &der::sequence(&[])));
        if let Some(id) = &self.key_id {
            let id = der::sequence(&[&der::value(0x80, id)]);
            all.push(extension(&[0x55, 0x1d, 0x23], false, &id));
        }
        if let Some(names) = request.alternative_names() {
            let nameless = request.subject == der::sequence(&[]);
            all.push(extension(&[0x55, 0x1d, 0x11], nameless, &names));
        }
        Ok(der::value(der::SEQUENCE, &all.concat()))
    }
}

fn extension(oid: &[u8], critical: bool, content: &[u8]) -> Vec<u8> {
    let yes = der::value(0x01, &[0xff]);
    let critical: &[u8] = if critical { &yes } else { &[] };
    der::sequence(&[&der::value(0x06, oid), critical, &der::value(der::BYTES, content)])
}

/// What the signer of clients refuses.
fn problem_as_client(usages: &[&str]) -> Option<String> {
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
