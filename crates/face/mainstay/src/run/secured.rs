//! Health and counts over TLS, with a certificate in files that somebody else exchanges.

use mainstay_cause::{Cause, Place};
use mainstay_cli::config::{Secured, reason};
use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// The settings of a port that shows what is in these files; what is put there later is shown from the
/// next connection on.
pub(super) fn settings(files: &Secured) -> Result<Arc<ServerConfig>, Cause> {
    let shown = Mutex::new(Shown { state: state(files), key: load(files)? });
    let resolver = Arc::new(Files { files: files.clone(), shown });
    let builder = ServerConfig::builder_with_provider(mainstay_tls::provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| {
            Cause::new("TLS cannot be set up").because(Cause::new(error.to_string()))
        })?;
    let mut settings = builder.with_no_client_auth().with_cert_resolver(resolver);
    settings.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(settings))
}

#[derive(Debug)]
struct Files {
    files: Secured,
    shown: Mutex<Shown>,
}

#[derive(Debug)]
struct Shown {
    /// When the files were written that it is made of.
    state: State,
    key: Arc<CertifiedKey>,
}

/// When each file was written last.
type State = [Option<SystemTime>; 2];

fn state(files: &Secured) -> State {
    let written =
        |file: &Path| file.metadata().and_then(|metadata: Metadata| metadata.modified()).ok();
    [written(&files.certificate), written(&files.key)]
}

fn load(files: &Secured) -> Result<Arc<CertifiedKey>, Cause> {
    let refused = |file: &Path, why: String| {
        Cause::new("the certificate for health and metrics cannot be used")
            .at(Place::file(file))
            .because(Cause::new(why))
            .remedy("name files in PEM with --tls-cert FILE and --tls-key FILE")
    };
    let read = |file: &Path| std::fs::read(file).map_err(|error| refused(file, reason(&error)));
    let pem = read(&files.certificate)?;
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| refused(&files.certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(refused(&files.certificate, "there is no certificate in it".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?)
        .map_err(|error| refused(&files.key, error.to_string()))?;
    CertifiedKey::from_der(chain, key, &mainstay_tls::provider())
        .map(Arc::new)
        .map_err(|error| refused(&files.key, error.to_string()))
}

impl ResolvesServerCert for Files {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let state = state(&self.files);
        let mut shown = self.shown.lock();
        if shown.state != state {
            // Until both files fit, the last good ones count.
            match load(&self.files) {
                Ok(key) => *shown = Shown { state, key },
                Err(cause) => tracing::warn!(%cause, "the last good certificate is shown"),
            }
        }
        Some(Arc::clone(&shown.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_do_not_fit_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let files = Secured { certificate: file("tls.crt"), key: file("tls.key") };
        let refused = || settings(&files).unwrap_err().to_string();
        assert!(refused().contains("tls.crt: "), "{}", refused());
        let (one, two) = (made(), made());
        std::fs::write(&files.certificate, one.0).unwrap();
        std::fs::write(&files.key, two.1).unwrap();
        assert!(refused().contains("tls.key: "), "{}", refused());
        std::fs::write(&files.key, one.1).unwrap();
        assert!(settings(&files).is_ok());
    }

    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }
}
