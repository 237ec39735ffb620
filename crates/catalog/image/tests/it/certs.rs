//! Certificates of single registries, in folders named after them.

use crate::hostile_registries::{honest, pull_with};
use crate::net::{Net, certificate, certificate_asking};
use mainstay_image::registry::{CertFolders, ClientSettings, Security};
use rustls::pki_types::CertificateDer;
use std::{fs, path::Path};

fn pem(certificate: &CertificateDer<'_>) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

/// A self-signed client certificate with its key.
fn client() -> (String, String, CertificateDer<'static>) {
    let self_signed = rcgen::generate_simple_self_signed(["somebody".to_owned()]).unwrap();
    (
        self_signed.cert.pem(),
        self_signed.signing_key.serialize_pem(),
        self_signed.cert.der().clone(),
    )
}

fn settings(net: &Net, folder: &Path) -> ClientSettings {
    ClientSettings {
        certificates: CertFolders::new(vec![folder.join("none"), folder.to_owned()]),
        ..net.settings()
    }
}

#[tokio::test]
async fn registry_may_have_its_own_ca_and_require_a_client_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (shown, key, authority) = client();
    let (acceptor, server) = certificate_asking("r.test", Some(authority));
    let net = Net::default();
    net.host("r.test", 443, Some(acceptor), honest);
    let settings = || ClientSettings { attempts: 1, ..settings(&net, folder.path()) };
    let refused = pull_with(settings(), Security::Tls).await.unwrap_err();
    assert!(refused.contains("r.test"), "{refused}");
    let own = folder.path().join("r.test");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("ca.crt"), pem(&server)).unwrap();
    // The client trusts the server, but has no certificate for it.
    pull_with(settings(), Security::Tls).await.unwrap_err();
    fs::write(own.join("client.cert"), &shown).unwrap();
    fs::write(own.join("client.key"), &key).unwrap();
    pull_with(settings(), Security::Tls).await.unwrap();
    // An insecure client presents its certificate, too.
    fs::remove_file(own.join("ca.crt")).unwrap();
    pull_with(settings(), Security::Insecure).await.unwrap();
}

#[tokio::test]
async fn ca_of_a_registry_is_trusted_only_for_that_registry() {
    let folder = tempfile::tempdir().unwrap();
    let (acceptor, server) = certificate("r.test");
    let net = Net::default();
    net.host("r.test", 443, Some(acceptor), honest);
    for (name, good) in [("r.test:443", false), ("other.test", false), ("r.test", true)] {
        let own = folder.path().join(name);
        fs::create_dir(&own).unwrap();
        fs::write(own.join("any.crt"), pem(&server)).unwrap();
        let settings = ClientSettings { attempts: 1, ..settings(&net, folder.path()) };
        assert_eq!(pull_with(settings, Security::Tls).await.is_ok(), good, "{name}");
    }
}

#[tokio::test]
async fn invalid_certificate_files_are_reported_without_their_content() {
    let (shown, key, _) = client();
    let cases: [(&[(&str, &str)], &str); 6] = [
        (&[("client.cert", &shown)], "client.cert: there is no client.key beside it"),
        (&[("client.key", &key)], "client.key: there is no client.cert beside it"),
        (
            &[("client.cert", "s3cret"), ("client.key", &key)],
            "client.cert: there is no certificate in it",
        ),
        (
            &[("client.cert", &shown), ("client.key", "s3cret")],
            "client.key: there is no private key in it",
        ),
        (
            &[("ca.crt", "-----BEGIN CERTIFICATE-----\n!s3cret!\n-----END CERTIFICATE-----\n")],
            "ca.crt: ",
        ),
        (
            &[
                ("client.cert", &shown),
                ("client.key", "-----BEGIN PRIVATE KEY-----\n!s3cret\n-----END PRIVATE KEY-----\n"),
            ],
            "client.key: there is no private key",
        ),
    ];
    for (files, says) in cases {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("r.test");
        fs::create_dir(&own).unwrap();
        for (name, text) in files {
            fs::write(own.join(name), text).unwrap();
        }
        let net = Net::default();
        net.host("r.test", 80, None, |_| panic!("nobody goes on without TLS"));
        let error = pull_with(settings(&net, folder.path()), Security::Insecure).await.unwrap_err();
        assert!(error.starts_with("TLS cannot be set up: ") && error.contains(says), "{error}");
    }
}

#[test]
fn default_certificate_folders_are_those_of_podman_and_docker() {
    let usual = CertFolders::usual(|name| (name == "HOME").then(|| "/h".to_owned()));
    let wanted =
        ["/h/.config/containers/certs.d", "/etc/containers/certs.d", "/etc/docker/certs.d"];
    assert_eq!(usual, CertFolders::new(wanted.map(Into::into).to_vec()));
}
