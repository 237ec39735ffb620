//! Checks of the certificate and the key of a TLS Secret, with the errors of Go's `tls` package.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_auth::pki::pem::blocks;
use serde_json::Value;

fn text_of(data: &Value, key: &str) -> String {
    let encoded = data.get(key).and_then(Value::as_str).unwrap_or_default();
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The problem of `tls.crt` and `tls.key`; none if both are readable. The key is not compared with
/// the certificate.
pub(super) fn key_pair_problem(data: &Value) -> Option<String> {
    let certificates = blocks(&text_of(data, "tls.crt"));
    let skipped: Vec<&str> = certificates
        .iter()
        .filter(|certificate| certificate.label != "CERTIFICATE")
        .map(|certificate| &*certificate.label)
        .collect();
    let Some(first) = certificates.iter().find(|block| block.label == "CERTIFICATE") else {
        return Some(match skipped.as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [label] if label.ends_with("PRIVATE KEY") => "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned(),
            many => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
                many.join(" ")
            ),
        });
    };
    let keys = blocks(&text_of(data, "tls.key"));
    let is_key = |label: &str| label == "PRIVATE KEY" || label.ends_with(" PRIVATE KEY");
    if !keys.iter().any(|block| is_key(&block.label)) {
        let skipped: Vec<&str> = keys.iter().map(|block| &*block.label).collect();
        return Some(match skipped.as_slice() {
            [] => "tls: failed to find any PEM data in key input".to_owned(),
            ["CERTIFICATE"] => {
                "tls: found a certificate rather than a key in the PEM for the private key"
                    .to_owned()
            }
            many => format!(
                "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
                many.join(" ")
            ),
        });
    }
    if first.bytes.is_empty() || x509_parser::parse_x509_certificate(&first.bytes).is_err() {
        return Some("x509: malformed certificate".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn unreadable_certificates_and_keys_have_the_errors_of_go() {
        let encode = |text: &str| STANDARD.encode(text);
        let block = |label: &str| {
            encode(&format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n"))
        };
        for (certificate, key, expected) in [
            (encode("x"), encode("x"), "tls: failed to find any PEM data in certificate input"),
            (
                block("RSA PRIVATE KEY"),
                encode("x"),
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched",
            ),
            (block("CERTIFICATE"), encode("x"), "tls: failed to find any PEM data in key input"),
            (block("CERTIFICATE"), block("PRIVATE KEY"), "x509: malformed certificate"),
        ] {
            let data = json!({"tls.crt": certificate, "tls.key": key});
            assert_eq!(key_pair_problem(&data).as_deref(), Some(expected));
        }
    }
}
