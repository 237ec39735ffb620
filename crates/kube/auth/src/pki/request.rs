//! Certificate signing requests (PKCS#10, RFC 2986): their content, and their signature.

use super::{der, pem};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA384_ASN1, ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1,
    ED25519, RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
    RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA384, UnparsedPublicKey,
    VerificationAlgorithm,
};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::der_parser::oid;
use x509_parser::oid_registry::Oid;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::X509Name;

/// The DER tags of the kinds of subject alternative names (RFC 5280, 4.2.1.6).
const EMAIL: u8 = 0x81;
const DNS: u8 = 0x82;
const URI: u8 = 0x86;
const IP: u8 = 0x87;

/// A signing request that does not parse or that another key signed; the texts are those of Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningRequestError {
    /// The first PEM block is no signing request.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    BlockType,
    /// The content of the block is malformed.
    #[error("x509: malformed certificate request")]
    Malformed,
    /// Data follows the request.
    #[error("asn1: syntax error: trailing data")]
    TrailingData,
    /// The algorithm of the signature is not supported.
    #[error("x509: cannot verify signature: algorithm unimplemented")]
    UnknownAlgorithm,
    /// The signature is not that of the RSA key.
    #[error("crypto/rsa: verification error")]
    Rsa,
    /// The signature is not that of the ECDSA key.
    #[error("x509: ECDSA verification failure")]
    Ecdsa,
    /// The signature is not that of the Ed25519 key.
    #[error("x509: Ed25519 verification failure")]
    Ed25519,
}

/// A certificate signing request.
#[derive(Debug)]
pub struct SigningRequest {
    /// The last common name of the subject; empty without one.
    pub(crate) common_name: String,
    /// The organizations of the subject, in their order.
    pub organizations: Vec<String>,
    /// The subject, limited to the attributes that issued certificates have.
    pub(super) subject: Vec<u8>,
    /// The public key, as sent.
    pub(super) public_key: Vec<u8>,
    /// The subject alternative names of the supported kinds: tag, and encoded value.
    alternative_names: Vec<(u8, Vec<u8>)>,
    signed: Vec<u8>,
    signature: Vec<u8>,
    algorithm: Oid<'static>,
    curve: Option<Oid<'static>>,
    point: Vec<u8>,
}

impl SigningRequest {
    /// Parses the first block of a PEM text.
    ///
    /// # Errors
    /// The block is no signing request.
    pub fn parse(text: &str) -> Result<Self, SigningRequestError> {
        let block = pem::blocks(text)
            .into_iter()
            .next()
            .filter(|block| block.label == "CERTIFICATE REQUEST")
            .ok_or(SigningRequestError::BlockType)?;
        let (rest, request) = X509CertificationRequest::from_der(&block.bytes)
            .map_err(|_| SigningRequestError::Malformed)?;
        if !rest.is_empty() {
            return Err(SigningRequestError::TrailingData);
        }
        let info = &request.certification_request_info;
        let text = |name: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            name.as_str().map(ToOwned::to_owned).ok()
        };
        let curve = info.subject_pki.algorithm.parameters.as_ref();
        let curve = curve.and_then(|any| any.clone().oid().ok());
        Ok(Self {
            common_name: info
                .subject
                .iter_common_name()
                .filter_map(text)
                .last()
                .unwrap_or_default(),
            organizations: info.subject.iter_organization().filter_map(text).collect(),
            subject: go_subject(&info.subject),
            public_key: info.subject_pki.raw.to_vec(),
            alternative_names: alternative_names(&request),
            signed: info.raw.to_vec(),
            signature: request.signature_value.data.to_vec(),
            algorithm: request.signature_algorithm.algorithm.to_owned(),
            curve: curve.map(|curve| curve.to_owned()),
            point: info.subject_pki.subject_public_key.data.to_vec(),
        })
    }

    /// Checks that the sender has the private key.
    ///
    /// # Errors
    /// Another key signed the request, or the algorithm is not supported.
    pub fn check_signature(&self) -> Result<(), SigningRequestError> {
        const RSA: SigningRequestError = SigningRequestError::Rsa;
        const CURVE: SigningRequestError = SigningRequestError::Ecdsa;
        let p256 = self.curve == Some(oid!(1.2.840.10045.3.1.7));
        let p384 = self.curve == Some(oid!(1.3.132.0.34));
        let is = |oid: Oid<'_>| self.algorithm == oid;
        let sha256 = is(oid!(1.2.840.10045.4.3.2));
        let sha384 = is(oid!(1.2.840.10045.4.3.3));
        let (algorithm, mismatch): (&dyn VerificationAlgorithm, _) = match () {
            () if sha256 && p256 => (&ECDSA_P256_SHA256_ASN1, CURVE),
            () if sha384 && p256 => (&ECDSA_P256_SHA384_ASN1, CURVE),
            () if sha256 && p384 => (&ECDSA_P384_SHA256_ASN1, CURVE),
            () if sha384 && p384 => (&ECDSA_P384_SHA384_ASN1, CURVE),
            () if is(oid!(1.2.840.113549.1.1.11)) => {
                (&RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, RSA)
            }
            () if is(oid!(1.2.840.113549.1.1.12)) => (&RSA_PKCS1_2048_8192_SHA384, RSA),
            () if is(oid!(1.2.840.113549.1.1.13)) => {
                (&RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, RSA)
            }
            () if is(oid!(1.3.101.112)) => (&ED25519, SigningRequestError::Ed25519),
            () => return Err(SigningRequestError::UnknownAlgorithm),
        };
        UnparsedPublicKey::new(algorithm, &self.point)
            .verify(&self.signed, &self.signature)
            .map_err(|_| mismatch)
    }

    /// Whether the request has a subject alternative name of one of these kinds.
    pub(super) fn has_names(&self, kinds: &[u8]) -> bool {
        self.alternative_names.iter().any(|(tag, _)| kinds.contains(tag))
    }

    /// The subject alternative names, encoded in the order of Go; none without any.
    pub(super) fn encode_alternative_names(&self) -> Option<Vec<u8>> {
        let of_kind = |kind: u8| self.alternative_names.iter().filter(move |(tag, _)| *tag == kind);
        let names: Vec<u8> = [DNS, EMAIL, IP, URI]
            .into_iter()
            .flat_map(of_kind)
            .flat_map(|(_, encoded)| encoded.iter().copied())
            .collect();
        (!names.is_empty()).then(|| der::value(der::SEQUENCE, &names))
    }

    /// Why the signer of kubelet serving certificates rejects the request, in Kubernetes' words;
    /// none for a valid request.
    pub(super) fn kubelet_serving_problem(&self, usages: &[&str]) -> Option<String> {
        if self.organizations != ["system:nodes"] {
            return Some("subject organization is not system:nodes".to_owned());
        }
        for (is_rejected, reason) in [
            (!self.has_names(&[DNS, IP]), "DNS or IP subjectAltName is required"),
            (self.has_names(&[EMAIL]), "Email subjectAltNames are not allowed"),
            (self.has_names(&[URI]), "URI subjectAltNames are not allowed"),
        ] {
            if is_rejected {
                return Some(reason.to_owned());
            }
        }
        usages_problem(usages, "server auth").or_else(|| self.common_name_problem())
    }

    /// Why the signer of kubelet client certificates rejects the request.
    pub(super) fn kubelet_client_problem(&self, usages: &[&str]) -> Option<String> {
        if self.organizations != ["system:nodes"] {
            return Some("subject organization is not system:nodes".to_owned());
        }
        for (kind, name) in [(DNS, "DNS"), (EMAIL, "Email"), (IP, "IP"), (URI, "URI")] {
            if self.has_names(&[kind]) {
                return Some(format!("{name} subjectAltNames are not allowed"));
            }
        }
        self.common_name_problem().or_else(|| usages_problem(usages, "client auth"))
    }

    fn common_name_problem(&self) -> Option<String> {
        let reason = "subject common name does not begin with system:node:";
        (!self.common_name.starts_with("system:node:")).then(|| reason.to_owned())
    }
}

/// Why the usages are not those of a kubelet certificate; none if they are.
fn usages_problem(usages: &[&str], purpose: &str) -> Option<String> {
    let mut sorted: Vec<&str> = usages.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut wanted = vec!["digital signature", "key encipherment", purpose];
    wanted.sort_unstable();
    let without: Vec<&str> =
        wanted.iter().copied().filter(|usage| *usage != "key encipherment").collect();
    if sorted == wanted || sorted == without {
        return None;
    }
    Some(format!("usages did not match [{}]", wanted.join(" ")))
}

/// The subject as Go encodes it again: supported attributes in Go's order, several of a kind in one
/// set. Other attributes, such as the uid of a user, are not signed.
fn go_subject(name: &X509Name<'_>) -> Vec<u8> {
    let order: [&[u8]; 9] = [&[6], &[10], &[11], &[7], &[8], &[9], &[17], &[3], &[5]];
    let mut parts = Vec::new();
    for attribute_type in order {
        let oid = [&[0x55, 0x04], attribute_type].concat();
        let mut values: Vec<&str> = name
            .iter_attributes()
            .filter(|attribute| attribute.attr_type().as_bytes() == oid)
            .filter_map(|attribute| attribute.as_str().ok())
            .collect();
        // Common name and serial number occur once.
        if matches!(attribute_type, [3 | 5])
            && let Some(value) = values.pop()
        {
            values = Vec::from_iter(Some(value).filter(|value| !value.is_empty()));
        }
        if values.is_empty() {
            continue;
        }
        let mut set: Vec<Vec<u8>> = values
            .into_iter()
            .map(|value| {
                let tag = if value.bytes().all(is_printable) { 0x13 } else { 0x0c };
                let text = der::value(tag, value.as_bytes());
                der::sequence(&[&der::value(0x06, &oid), &text])
            })
            .collect();
        set.sort();
        parts.push(der::value(0x31, &set.concat()));
    }
    der::value(der::SEQUENCE, &parts.concat())
}

/// Whether a `PrintableString` may contain a byte.
fn is_printable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte)
}

/// The subject alternative names in a request.
fn alternative_names(request: &X509CertificationRequest<'_>) -> Vec<(u8, Vec<u8>)> {
    // The attributes are parsed here, because the certificate needs the encoded bytes of the names.
    let mut found = Vec::new();
    for attribute in request.certification_request_info.iter_attributes() {
        if attribute.oid != oid!(1.2.840.113549.1.9.14) {
            continue;
        }
        // The value is a set with one sequence.
        let Some(set) = der::first(attribute.value) else { continue };
        let list = if set.tag == 0x31 { der::first(set.content) } else { Some(set) };
        let Some(extensions) = list else { continue };
        for extension in der::all(extensions.content) {
            let mut parts = der::all(extension.content);
            let is_names = parts.next().is_some_and(|oid| oid.content == [0x55, 0x1d, 0x11]);
            let Some(bytes) = parts.find(|part| part.tag == der::OCTET_STRING).filter(|_| is_names)
            else {
                continue;
            };
            let Some(list) = der::first(bytes.content) else { continue };
            found.extend(
                der::all(list.content)
                    .filter(|name| matches!(name.tag, EMAIL | DNS | URI | IP))
                    .map(|name| (name.tag, name.whole.to_vec())),
            );
        }
    }
    found
}
