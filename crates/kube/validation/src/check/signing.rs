//! Requests for certificates.

use super::super::rules::{Errors, Node, one_of};
use super::view;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_auth::pki::request::SigningRequest;
use mainstay_auth::pki::{LEGACY, pem};
use mainstay_object::{Object, names};
use serde_json::Value;
use std::collections::HashSet;
use std::hash::Hash;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// What a certificate may be used for.
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

/// What is tolerated because the stored object has it already.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is about another rule")]
struct Tolerated {
    legacy_signer: bool,
    unknown_usages: bool,
    repeated_usages: bool,
    empty_types: bool,
    repeated_types: bool,
    approved_and_denied: bool,
    any_certificate: bool,
}

impl Tolerated {
    fn by(object: &Object, old: &Object) -> Self {
        let usages = old.array(&["spec", "usages"]);
        let conditions = old.array(&["status", "conditions"]);
        let types: Vec<&str> = conditions
            .iter()
            .map(|one| one.get("type").and_then(Value::as_str).unwrap_or_default())
            .collect();
        let certificate = old.str(&["status", "certificate"]).unwrap_or_default();
        Self {
            legacy_signer: old.str(&["spec", "signerName"]) == Some(LEGACY),
            unknown_usages: usages
                .iter()
                .any(|usage| !usage.as_str().is_some_and(|usage| USAGES.contains(&usage))),
            repeated_usages: repeats(usages),
            empty_types: types.contains(&""),
            repeated_types: repeats(&types),
            approved_and_denied: types.contains(&"Approved") && types.contains(&"Denied"),
            any_certificate: object.str(&["status", "certificate"]).unwrap_or_default()
                == certificate
                || problem_of_certificate(certificate).is_some(),
        }
    }
}

/// Whether a list has an element twice.
fn repeats<T: Eq + Hash>(list: &[T]) -> bool {
    let mut seen = HashSet::with_capacity(list.len());
    !list.iter().all(|element| seen.insert(element))
}

/// A new request to sign a certificate.
pub(in super::super) fn signing_request(object: &Object, errors: &mut Errors) {
    check(object, Tolerated::default(), errors);
}

fn check(object: &Object, tolerated: Tolerated, errors: &mut Errors) {
    let spec = Node::top(view(object, "spec"), "spec");
    request(&spec.get("request"), errors);
    let usages = spec.get("usages");
    if usages.len() == 0 {
        errors.required(&usages, "");
    }
    if !tolerated.unknown_usages {
        usages.items().for_each(|usage| one_of(&usage, &USAGES, errors));
    }
    let mut seen = HashSet::new();
    for usage in usages.items().filter(|_| !tolerated.repeated_usages) {
        if !seen.insert(usage.value()) {
            errors.duplicate(&usage, usage.text());
        }
    }
    let signer = spec.get("signerName");
    if signer.text() == LEGACY && !tolerated.legacy_signer {
        errors.wrong(&signer, "the legacy signerName is not allowed via this API version");
    } else {
        signer_name(&signer, errors);
    }
    let seconds = spec.get("expirationSeconds");
    if seconds.number().is_some_and(|seconds| seconds < 600) {
        errors.wrong(&seconds, "may not specify a duration less than 600 seconds (10 minutes)");
    }
    conditions(object, tolerated, errors);
    let status = Node::top(view(object, "status"), "status");
    let certificate = status.get("certificate");
    let problem = problem_of_certificate(certificate.text());
    if let Some(why) = problem.filter(|_| !tolerated.any_certificate) {
        errors.invalid(&certificate, "<certificate data>", why);
    }
}

fn request(node: &Node<'_, '_>, errors: &mut Errors) {
    let bytes = STANDARD.decode(node.text()).unwrap_or_default();
    let read = SigningRequest::parse(&String::from_utf8_lossy(&bytes));
    let outcome = read.and_then(|request| request.check_signature());
    if let Err(error) = outcome {
        let why = error.to_string();
        if node.is_set() {
            errors.wrong(node, why);
        } else {
            errors.printed(node, Some("null".to_owned()), why);
        }
    }
}

/// What is wrong with an issued certificate; none if nothing is, or there is none.
fn problem_of_certificate(encoded: &str) -> Option<String> {
    if encoded.is_empty() {
        return None;
    }
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let blocks = pem::blocks(&String::from_utf8_lossy(&bytes));
    for block in &blocks {
        if block.label != "CERTIFICATE" {
            let words = "only CERTIFICATE PEM blocks are allowed, found";
            return Some(format!("{words} {:?}", block.label));
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

fn conditions(object: &Object, tolerated: Tolerated, errors: &mut Errors) {
    let status = Node::top(view(object, "status"), "status");
    let list = status.get("conditions");
    let (mut approved, mut denied) = (false, false);
    let mut seen = HashSet::new();
    for condition in list.items() {
        let kind = condition.get("type");
        if kind.text().is_empty() && !tolerated.empty_types {
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
        let both = approved && denied && !tolerated.approved_and_denied;
        if both && matches!(kind.text(), "Approved" | "Denied") {
            let words = "Approved and Denied conditions are mutually exclusive";
            errors.invalid(&list, kind.text(), words);
        }
        if seen.contains(&kind.text()) && !tolerated.repeated_types {
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
        let words =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.wrong(node, words);
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
        let words = "should be a domain with at least two segments separated by dots";
        errors.invalid(node, *domain, words);
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

/// What may change of a request: its main part never gains or loses an answer.
pub(in super::super) fn signing_request_update(object: &Object, old: &Object, errors: &mut Errors) {
    answers(object, old, false, false, errors);
}

pub(in super::super) fn signing_request_status(object: &Object, old: &Object, errors: &mut Errors) {
    answers(object, old, false, true, errors);
}

pub(in super::super) fn signing_request_approval(
    object: &Object,
    old: &Object,
    errors: &mut Errors,
) {
    answers(object, old, true, false, errors);
}

fn answers(object: &Object, old: &Object, approves: bool, signs: bool, errors: &mut Errors) {
    check(object, Tolerated::by(object, old), errors);
    let status = Node::top(view(object, "status"), "status");
    let at = status.get("conditions");
    let of = |object: &Object, kind: &str| -> Vec<Value> {
        let list = view(object, "status").get("conditions").and_then(Value::as_array);
        let list = list.into_iter().flatten();
        list.filter(|one| one.get("type") == Some(&kind.into())).cloned().collect()
    };
    for kind in ["Approved", "Denied", "Failed"] {
        if of(object, kind).len() < of(old, kind).len() {
            let words = format!("updates may not remove a condition of type {kind:?}");
            errors.forbidden(&at, words);
        }
    }
    for kind in ["Approved", "Denied"].into_iter().filter(|_| !approves) {
        let (new, before) = (of(object, kind), of(old, kind));
        if new.len() > before.len() {
            let words = format!("updates may not add a condition of type {kind:?}");
            errors.forbidden(&at, words);
        } else if new.len() == before.len() && new != before {
            let words = format!("updates may not modify a condition of type {kind:?}");
            errors.forbidden(&at, words);
        }
    }
    let certificate = status.get("certificate");
    let before = view(old, "status").get("certificate").and_then(Value::as_str).unwrap_or_default();
    if certificate.text() != before {
        if !signs {
            errors.forbidden(&certificate, "updates may not set certificate content");
        } else if !before.is_empty() {
            let words = "updates may not modify existing certificate content";
            errors.forbidden(&certificate, words);
        }
    }
}
