//! Proxies and trusted CAs: the proxies of this process, and the proxies and certificates that
//! operators receive.

use crate::embedded::chain;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_cause::Cause;
use mainstay_classic::{NetworkSettings, ProxySettings, TrustedCaCertificates};
use mainstay_cli::config::OperatorNetwork;
use mainstay_command::environment::text_variable;
use mainstay_image::registry::Proxies;
use std::fmt::Write as _;

/// Characters per line of a certificate in PEM.
const PEM_LINE: usize = 64;

/// The configured proxies, those of the environment, and the certificates that the system trusts.
pub(crate) fn surroundings(network: &OperatorNetwork) -> Result<NetworkSettings, Cause> {
    let registries = Proxies::for_grpc(text_variable).map_err(|error| {
        Cause::new("the proxy to registry servers cannot be used")
            .because(chain(&error))
            .remedy("correct GRPC_PROXY")
    })?;
    let OperatorNetwork { http_proxy, https_proxy, no_proxy, trusted_ca } = network.clone();
    Ok(NetworkSettings {
        registries,
        proxy: ProxySettings { http: http_proxy, https: https_proxy, no: no_proxy },
        trusted: Some(TrustedCaCertificates::new(move || bundle(&trusted_ca))),
    })
}

/// The configured certificates, followed by those of the system.
fn bundle(configured: &str) -> String {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "certificates of the system cannot be read");
    }
    let mut text = configured.trim_end().to_owned();
    if !text.is_empty() {
        text.push('\n');
    }
    for certificate in &found.certs {
        text.push_str(&pem(certificate));
    }
    text
}

fn pem(certificate: &[u8]) -> String {
    let body = STANDARD.encode(certificate);
    let mut text = "-----BEGIN CERTIFICATE-----\n".to_owned();
    for line in body.as_bytes().chunks(PEM_LINE) {
        // Base64 is ASCII, and writing into a String does not fail.
        let _ = writeln!(text, "{}", String::from_utf8_lossy(line));
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_has_lines_of_64_characters_between_its_markers() {
        let text = pem(&[0; 60]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!((lines[1].len(), lines[2].len()), (PEM_LINE, 16));
        assert_eq!(lines[3], "-----END CERTIFICATE-----");
    }

    #[test]
    fn configured_certificates_come_before_those_of_the_system() {
        assert!(bundle("mine\n\n").starts_with("mine\n"));
    }
}
