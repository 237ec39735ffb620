//! Certificates of single registries, in the folders of Podman and Docker: a folder named after the
//! registry, with CAs in `*.crt` and a client certificate and key in `*.cert` and `*.key`.

use rustls::pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject as _},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The maximum length of a file, in bytes.
const LONGEST: u64 = 4 << 20;

/// Folders with a subfolder for each registry that has its own certificates, named `HOST` or
/// `HOST:PORT` as in image names. The first folder with such a subfolder applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertFolders(Vec<PathBuf>);

/// The certificates of one registry, in addition to those for all registries.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    /// The trusted CAs.
    pub(super) authorities: Vec<CertificateDer<'static>>,
    /// The client certificate chain and its key.
    pub(super) client: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
}

/// Why the certificates of a registry cannot be used. The error of the system is in the text and no
/// source, because callers report the innermost error, which must name the file.
#[derive(Debug, thiserror::Error)]
pub(super) enum CertError {
    /// A file or a folder cannot be read.
    #[error("{}: {reason}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why it cannot be read.
        reason: io::Error,
    },
    /// The path is not a regular file, or the file is too long.
    #[error("{}: it is not a regular file, or larger than 4 MiB", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
    },
    /// A certificate file is not PEM.
    #[error("{}: {reason}", path.display())]
    ParsePem {
        /// The file.
        path: PathBuf,
        /// Why it cannot be parsed.
        reason: pem::Error,
    },
    /// A client certificate has no key beside it, or a key no certificate.
    #[error("{}: there is no {} beside it", path.display(), missing.display())]
    Alone {
        /// The existing file.
        path: PathBuf,
        /// The name of the missing file.
        missing: PathBuf,
    },
    /// The file has no certificate.
    #[error("{}: there is no certificate in it", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file has no private key.
    #[error("{}: there is no private key in it", path.display())]
    NoPrivateKey {
        /// The file.
        path: PathBuf,
    },
    /// The thread that reads the files failed.
    #[error("{0}")]
    Join(tokio::task::JoinError),
}

impl CertError {
    fn read(path: &Path, reason: io::Error) -> Self {
        Self::Read { path: path.to_owned(), reason }
    }
}

impl CertFolders {
    /// Certificates in these folders.
    pub const fn new(folders: Vec<PathBuf>) -> Self {
        Self(folders)
    }

    /// The folders of containers' tools and of Docker. `lookup` reads an environment variable.
    pub fn usual(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let home = lookup("HOME").filter(|home| !home.is_empty());
        let own = home.map(|home| Path::new(&home).join(".config/containers/certs.d"));
        let shared = ["/etc/containers/certs.d", "/etc/docker/certs.d"].map(PathBuf::from);
        Self(own.into_iter().chain(shared).collect())
    }

    /// Whether there are no folders.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The certificates of a registry, if there are any. Blocks.
    ///
    /// # Errors
    /// The file that cannot be used, and why.
    pub(super) fn of(&self, registry: &str) -> Result<Option<Certificates>, CertError> {
        // The name must not lead out of the folder, because it may come from a redirect.
        if registry.is_empty() || registry.starts_with('.') || registry.contains(['/', '\\']) {
            return Ok(None);
        }
        for folder in &self.0 {
            let folder = folder.join(registry);
            match fs::read_dir(&folder) {
                Ok(entries) => return read(&folder, entries).map(Some),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound
                            | io::ErrorKind::NotADirectory
                            | io::ErrorKind::PermissionDenied
                    ) => {}
                Err(error) => return Err(CertError::read(&folder, error)),
            }
        }
        Ok(None)
    }
}

fn read(folder: &Path, entries: fs::ReadDir) -> Result<Certificates, CertError> {
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| CertError::read(folder, error))?;
        names.push(PathBuf::from(entry.file_name()));
    }
    names.sort();
    let mut found = Certificates::default();
    for name in &names {
        let path = folder.join(name);
        let kind = name.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        let beside = |kind: &str| {
            let other = name.with_extension(kind);
            if names.contains(&other) {
                Ok(folder.join(&other))
            } else {
                Err(CertError::Alone { path: path.clone(), missing: other })
            }
        };
        match kind {
            "crt" => found.authorities.extend(certificates(&path)?),
            "key" => drop(beside("cert")?),
            "cert" => {
                let key = beside("key")?;
                let chain = certificates(&path)?;
                if chain.is_empty() {
                    return Err(CertError::NoCertificate { path });
                }
                // The error must not contain the content of the file.
                let secret = PrivateKeyDer::from_pem_slice(&content(&key)?)
                    .map_err(|_| CertError::NoPrivateKey { path: key.clone() })?;
                found.client.get_or_insert((chain, secret));
            }
            _ => {}
        }
    }
    Ok(found)
}

fn content(path: &Path) -> Result<Vec<u8>, CertError> {
    let failed = |error| CertError::read(path, error);
    let about = fs::metadata(path).map_err(failed)?;
    if !about.is_file() || about.len() > LONGEST {
        return Err(CertError::NoFile { path: path.to_owned() });
    }
    fs::read(path).map_err(failed)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertError> {
    let bytes = content(path)?;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    found.map_err(|reason| CertError::ParsePem { path: path.to_owned(), reason })
}
