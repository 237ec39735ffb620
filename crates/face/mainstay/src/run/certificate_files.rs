//! TLS for health and metrics, with certificate files that another program rotates.

use mainstay_cause::{Cause, FileLocation};
use mainstay_cli::config::TlsFiles;
use mainstay_gocompat::io_error_text;
use mainstay_tls::ServerTls;
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

/// The TLS configuration of a listener with these certificate files. New connections use the files'
/// current content.
pub(super) fn server_config(files: &TlsFiles, tls: &ServerTls) -> Result<Arc<ServerConfig>, Cause> {
    let loaded = Mutex::new(LoadedCertificate {
        modification_times: modification_times(files),
        key: load(files)?,
    });
    let resolver = Arc::new(CertificateResolver { files: files.clone(), loaded });
    let builder = tls.builder().map_err(|error| {
        Cause::new("TLS cannot be set up").because(Cause::new(error.to_string()))
    })?;
    let mut server_config = builder.with_no_client_auth().with_cert_resolver(resolver);
    server_config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(server_config))
}

#[derive(Debug)]
struct CertificateResolver {
    files: TlsFiles,
    loaded: Mutex<LoadedCertificate>,
}

#[derive(Debug)]
struct LoadedCertificate {
    /// The files' modification times when the certificate was loaded.
    modification_times: ModificationTimes,
    key: Arc<CertifiedKey>,
}

/// The modification time of the certificate and of the key.
type ModificationTimes = [Option<SystemTime>; 2];

fn modification_times(files: &TlsFiles) -> ModificationTimes {
    let written =
        |file: &Path| file.metadata().and_then(|metadata: Metadata| metadata.modified()).ok();
    [written(&files.certificate), written(&files.key)]
}

fn load(files: &TlsFiles) -> Result<Arc<CertifiedKey>, Cause> {
    let refused = |file: &Path, why: String| {
        Cause::new("the certificate for health and metrics cannot be used")
            .at(FileLocation::file(file))
            .because(Cause::new(why))
            .remedy("name files in PEM with --tls-cert FILE and --tls-key FILE")
    };
    let read =
        |file: &Path| std::fs::read(file).map_err(|error| refused(file, io_error_text(&error)));
    let pem = read(&files.certificate)?;
    let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| refused(&files.certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(refused(&files.certificate, "the file contains no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key)?)
        .map_err(|error| refused(&files.key, error.to_string()))?;
    CertifiedKey::from_der(chain, key, &mainstay_tls::provider())
        .map(Arc::new)
        .map_err(|error| refused(&files.key, error.to_string()))
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let modification_times = modification_times(&self.files);
        let mut loaded = self.loaded.lock();
        if loaded.modification_times != modification_times {
            // Until both files match, the last good certificate stays in use.
            match load(&self.files) {
                Ok(key) => *loaded = LoadedCertificate { modification_times, key },
                Err(cause) => tracing::warn!(%cause, "the last valid certificate stays in use"),
            }
        }
        Some(Arc::clone(&loaded.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_and_key_that_do_not_match_are_refused_by_file_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let files = TlsFiles { certificate: file("tls.crt"), key: file("tls.key") };
        let refused = || server_config(&files, &ServerTls::default()).unwrap_err().to_string();
        assert!(refused().contains("tls.crt: "), "{}", refused());
        let (first, second) = (self_signed(), self_signed());
        std::fs::write(&files.certificate, first.0).unwrap();
        std::fs::write(&files.key, second.1).unwrap();
        assert!(refused().contains("tls.key: "), "{}", refused());
        std::fs::write(&files.key, first.1).unwrap();
        assert!(server_config(&files, &ServerTls::default()).is_ok());
    }

    fn self_signed() -> (String, String) {
        let self_signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (self_signed.cert.pem(), self_signed.signing_key.serialize_pem())
    }
}
