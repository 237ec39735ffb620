//! Validation of the `clientConfig` of webhooks: URL, Service and CA bundle.
//!
//! CRDs and webhook configurations share these rules.

use base64::Engine as _;
use mainstay_formats::url::Url;
use mainstay_object::{FieldError, FieldPath, names};

const FORM: &str = "; desired format: https://host[/path]";

/// The errors of a webhook's URL.
pub fn check_url(path: &FieldPath, text: &str) -> Vec<FieldError> {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => {
            let detail = format!("url must be a valid URL: {error}{FORM}");
            return vec![FieldError::required(path, detail)];
        }
    };
    let mut found = Vec::new();
    let mut check = |is_invalid: bool, value: String, detail: String| {
        if is_invalid {
            found.push(FieldError::invalid(path, value, detail));
        }
    };
    let detail = format!("'https' is the only allowed URL scheme{FORM}");
    check(url.scheme() != "https", url.scheme().to_owned(), detail);
    check(url.host().is_empty(), String::new(), format!("host must be specified{FORM}"));
    let detail = "user information is not permitted in the URL".to_owned();
    check(url.user().is_some(), url.user().unwrap_or_default(), detail);
    let detail = "fragments are not permitted in the URL".to_owned();
    check(!url.fragment().is_empty(), url.fragment().into_owned(), detail);
    let detail = "query parameters are not permitted in the URL".to_owned();
    check(!url.raw_query().is_empty(), url.raw_query().to_owned(), detail);
    found
}

/// Whether a text is a URL with a scheme and a host.
pub(crate) fn is_absolute_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| !url.scheme().is_empty() && !url.host().is_empty())
}

/// The errors of a reference to a webhook's Service.
pub fn check_service(
    field: &FieldPath,
    namespace: &str,
    name: &str,
    path: Option<&str>,
    port: i64,
) -> Vec<FieldError> {
    let mut found = Vec::new();
    for (value, part) in [(name, "name"), (namespace, "namespace")] {
        if value.is_empty() {
            found.push(FieldError::required(&field.child(part), ""));
        }
    }
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        found.push(FieldError::invalid(&field.child("port"), port, detail));
    }
    let Some(path) = path.filter(|path| !matches!(*path, "" | "/")) else { return found };
    let field = field.child("path");
    let mut report = |detail: String| found.push(FieldError::invalid(&field, path, detail));
    if path == "//" {
        report("segment[0] may not be empty".to_owned());
        return found;
    }
    if !path.starts_with('/') {
        report("must start with a '/'".to_owned());
    }
    // As in upstream, the first character is skipped, whatever it is.
    let mut segments = path.chars();
    segments.next();
    let segments = segments.as_str();
    for (at, segment) in segments.strip_suffix('/').unwrap_or(segments).split('/').enumerate() {
        if segment.is_empty() {
            report(format!("segment[{at}] may not be empty"));
            continue;
        }
        for problem in names::dns1123_subdomain(segment) {
            report(format!("segment[{at}]: {problem}"));
        }
    }
    found
}

/// The errors of a webhook's CA bundle: base64 of PEM.
///
/// The check covers the PEM form, and that each certificate is one complete DER sequence. It does not
/// parse the content.
pub fn check_ca_bundle(path: &FieldPath, bundle: &str) -> Vec<FieldError> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut has_certificate = false;
    let mut rest = &*text;
    let mut problem = None;
    while let Some((_, block)) = rest.split_once("-----BEGIN ") {
        let Some((kind, body)) = block.split_once("-----") else { break };
        let Some((body, after)) = body.split_once(&format!("-----END {kind}-----")) else { break };
        rest = after;
        let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
        let Ok(der) = base64::engine::general_purpose::STANDARD.decode(body) else { continue };
        if kind == "CERTIFICATE" {
            has_certificate = true;
            if !is_sequence(&der) {
                problem = Some("failed to parse certificate: x509: malformed certificate");
            }
        }
    }
    if !has_certificate {
        problem = Some("unable to parse bytes as PEM block");
    }
    let error = |problem| {
        let detail = format!("unable to load root certificates: {problem}");
        FieldError::invalid(path, bundle, detail)
    };
    problem.map(error).into_iter().collect()
}

/// Whether bytes are exactly one DER sequence.
fn is_sequence(der: &[u8]) -> bool {
    let [0x30, length, rest @ ..] = der else { return false };
    if *length < 0x80 {
        return rest.len() == usize::from(*length);
    }
    let count = usize::from(*length & 0x7f);
    let Some((digits, body)) = rest.split_at_checked(count).filter(|_| count <= 4) else {
        return false;
    };
    digits.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)) == body.len()
}
