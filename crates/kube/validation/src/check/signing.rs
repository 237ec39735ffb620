//! Validation of `CertificateSigningRequests`.

use super::super::rules::{Errors, Node, one_of};
use super::object_field;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_auth::pki::request::SigningRequest;
use mainstay_auth::pki::{LEGACY, pem};
use mainstay_object::{Object, names};
use serde_json::Value;
use std::collections::HashSet;
use std::hash::Hash;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The key usages of a certificate.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Rules that do not apply because the stored object violates them already.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each field switches another rule")]
struct ValidationOptions {
    allow_legacy_signer: bool,
    allow_unknown_usages: bool,
    allow_duplicate_usages: bool,
    allow_empty_types: bool,
    allow_duplicate_types: bool,
    allow_approved_and_denied: bool,
    allow_any_certificate: bool,
}

impl ValidationOptions {
    fn of_update(object: &Object, old: &Object) -> Self {
        let usages = old.array(&["spec", "usages"]);
        let conditions = old.array(&["status", "conditions"]);
        let types: Vec<&str> = conditions
            .iter()
            .map(|condition| condition.get("type").and_then(Value::as_str).unwrap_or_default())
            .collect();
        let certificate = old.str(&["status", "certificate"]).unwrap_or_default();
        Self {
            allow_legacy_signer: old.str(&["spec", "signerName"]) == Some(LEGACY),
            allow_unknown_usages: usages
                .iter()
                .any(|usage| !usage.as_str().is_some_and(|usage| USAGES.contains(&usage))),
            allow_duplicate_usages: has_duplicates(usages),
            allow_empty_types: types.contains(&""),
            allow_duplicate_types: has_duplicates(&types),
            allow_approved_and_denied: types.contains(&"Approved") && types.contains(&"Denied"),
            allow_any_certificate: object.str(&["status", "certificate"]).unwrap_or_default()
                == certificate
                || certificate_problem(certificate).is_some(),
        }
    }
}

/// Whether a list has duplicate elements.
fn has_duplicates<T: Eq + Hash>(list: &[T]) -> bool {
    let mut seen = HashSet::with_capacity(list.len());
    !list.iter().all(|element| seen.insert(element))
}

/// Validates a new `CertificateSigningRequest`.
pub(in super::super) fn signing_request(object: &Object, errors: &mut Errors) {
    validate(object, ValidationOptions::default(), errors);
}

fn validate(object: &Object, options: ValidationOptions, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    request(&spec.get("request"), errors);
    let usages = spec.get("usages");
    if usages.len() == 0 {
        errors.required(&usages, "");
    }
    if !options.allow_unknown_usages {
        usages.items().for_each(|usage| one_of(&usage, &USAGES, errors));
    }
    let mut seen = HashSet::new();
    for usage in usages.items().filter(|_| !options.allow_duplicate_usages) {
        if !seen.insert(usage.value()) {
            errors.duplicate(&usage, usage.text());
        }
    }
    let signer = spec.get("signerName");
    if signer.text() == LEGACY && !options.allow_legacy_signer {
        errors.invalid_value(&signer, "the legacy signerName is not allowed via this API version");
    } else {
        signer_name(&signer, errors);
    }
    let seconds = spec.get("expirationSeconds");
    if seconds.number().is_some_and(|seconds| seconds < 600) {
        errors.invalid_value(
            &seconds,
            "may not specify a duration less than 600 seconds (10 minutes)",
        );
    }
    conditions(object, options, errors);
    let status = Node::top_level(object_field(object, "status"), "status");
    let certificate = status.get("certificate");
    let problem = certificate_problem(certificate.text());
    if let Some(problem) = problem.filter(|_| !options.allow_any_certificate) {
        errors.invalid(&certificate, "<certificate data>", problem);
    }
}

fn request(node: &Node<'_, '_>, errors: &mut Errors) {
    let bytes = STANDARD.decode(node.text()).unwrap_or_default();
    let read = SigningRequest::parse(&String::from_utf8_lossy(&bytes));
    let outcome = read.and_then(|request| request.check_signature());
    if let Err(error) = outcome {
        let message = error.to_string();
        if node.is_set() {
            errors.invalid_value(node, message);
        } else {
            errors.printed(node, Some("null".to_owned()), message);
        }
    }
}

/// The problem of an issued certificate; none if it is valid or absent.
fn certificate_problem(encoded: &str) -> Option<String> {
    if encoded.is_empty() {
        return None;
    }
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let blocks = pem::blocks(&String::from_utf8_lossy(&bytes));
    for block in &blocks {
        if block.label != "CERTIFICATE" {
            let detail = "only CERTIFICATE PEM blocks are allowed, found";
            return Some(format!("{detail} {:?}", block.label));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".to_owned());
        }
        let mut rest = block.bytes.as_slice();
        while !rest.is_empty() {
            match X509Certificate::from_der(rest) {
                Ok((after, _)) => rest = after,
                Err(_) => return Some("x509: malformed certificate".to_owned()),
            }
        }
        if block.bytes.is_empty() {
            return Some("found CERTIFICATE PEM block containing 0 certificates".to_owned());
        }
    }
    blocks.is_empty().then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
}

fn conditions(object: &Object, options: ValidationOptions, errors: &mut Errors) {
    let status = Node::top_level(object_field(object, "status"), "status");
    let list = status.get("conditions");
    let (mut approved, mut denied) = (false, false);
    let mut seen = HashSet::new();
    for condition in list.items() {
        let kind = condition.get("type");
        if kind.text().is_empty() && !options.allow_empty_types {
            errors.required(&kind, "");
        }
        let allowed: &'static [&'static str] = match kind.text() {
            "Approved" | "Denied" | "Failed" => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        let state = condition.get("status");
        if state.text().is_empty() {
            errors.required(&state, "");
        } else {
            one_of(&state, allowed, errors);
        }
        approved |= kind.text() == "Approved";
        denied |= kind.text() == "Denied";
        let both = approved && denied && !options.allow_approved_and_denied;
        if both && matches!(kind.text(), "Approved" | "Denied") {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.invalid(&list, kind.text(), detail);
        }
        if seen.contains(&kind.text()) && !options.allow_duplicate_types {
            errors.duplicate(&kind, kind.text());
        }
        seen.insert(kind.text());
    }
}

fn signer_name(node: &Node<'_, '_>, errors: &mut Errors) {
    let name = node.text();
    if name.is_empty() {
        errors.required(node, "");
        return;
    }
    let segments: Vec<&str> = name.split('/').collect();
    let [domain, path] = segments.as_slice() else {
        let detail =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.invalid_value(node, detail);
        return;
    };
    if domain.len() > 253 {
        errors.too_long(node, 253);
    }
    if let Some(label) = domain.split('.').find(|label| !names::dns1123_label(label).is_empty()) {
        for problem in names::dns1123_label(label) {
            errors.invalid(node, *domain, format!("validating label {label:?}: {problem}"));
        }
    }
    if domain.split('.').count() < 2 {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.invalid(node, *domain, detail);
    }
    if let Some(label) = path.split('.').find(|label| !names::dns1123_subdomain(label).is_empty()) {
        for problem in names::dns1123_subdomain(label) {
            errors.invalid(node, *path, format!("validating label {label:?}: {problem}"));
        }
    }
    if name.len() > 571 {
        errors.too_long(node, 571);
    }
}

/// Validates an update, which may not change certificate and approval conditions.
pub(in super::super) fn signing_request_update(object: &Object, old: &Object, errors: &mut Errors) {
    validate_update(object, old, false, false, errors);
}

pub(in super::super) fn signing_request_status(object: &Object, old: &Object, errors: &mut Errors) {
    validate_update(object, old, false, true, errors);
}

pub(in super::super) fn signing_request_approval(
    object: &Object,
    old: &Object,
    errors: &mut Errors,
) {
    validate_update(object, old, true, false, errors);
}

fn validate_update(
    object: &Object,
    old: &Object,
    is_approval: bool,
    is_status: bool,
    errors: &mut Errors,
) {
    validate(object, ValidationOptions::of_update(object, old), errors);
    let status = Node::top_level(object_field(object, "status"), "status");
    let at = status.get("conditions");
    let conditions_of = |object: &Object, kind: &str| -> Vec<Value> {
        let list = object_field(object, "status").get("conditions").and_then(Value::as_array);
        let list = list.into_iter().flatten();
        list.filter(|condition| condition.get("type") == Some(&kind.into())).cloned().collect()
    };
    for kind in ["Approved", "Denied", "Failed"] {
        if conditions_of(object, kind).len() < conditions_of(old, kind).len() {
            let detail = format!("updates may not remove a condition of type {kind:?}");
            errors.forbidden(&at, detail);
        }
    }
    for kind in ["Approved", "Denied"].into_iter().filter(|_| !is_approval) {
        let (new, before) = (conditions_of(object, kind), conditions_of(old, kind));
        if new.len() > before.len() {
            let detail = format!("updates may not add a condition of type {kind:?}");
            errors.forbidden(&at, detail);
        } else if new.len() == before.len() && new != before {
            let detail = format!("updates may not modify a condition of type {kind:?}");
            errors.forbidden(&at, detail);
        }
    }
    let certificate = status.get("certificate");
    let before =
        object_field(old, "status").get("certificate").and_then(Value::as_str).unwrap_or_default();
    if certificate.text() != before {
        if !is_status {
            errors.forbidden(&certificate, "updates may not set certificate content");
        } else if !before.is_empty() {
            let detail = "updates may not modify existing certificate content";
            errors.forbidden(&certificate, detail);
        }
    }
}
