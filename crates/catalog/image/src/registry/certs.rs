//! Certificates for single registries, where Podman and Docker keep them: a folder by the name of the
//! registry, with authorities in `*.crt` and a client's certificate and key in `*.cert` and `*.key`.

use rustls::pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject as _},
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// How long a file may be.
const LONGEST: u64 = 4 << 20;

/// Folders that have a folder for each registry with certificates of its own, named `HOST` or
/// `HOST:PORT` as in the names of its images. Of several, the first that has one counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertFolders(Vec<PathBuf>);

/// What is shown to a registry and believed of it, besides what is believed of all.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    /// Authorities to trust.
    pub(super) authorities: Vec<CertificateDer<'static>>,
    /// Who we are.
    pub(super) client: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
}

/// The certificates of a registry cannot be used. What the system says is in the text and no source:
/// callers report the innermost error, which has to name the file.
#[derive(Debug, thiserror::Error)]
pub(super) enum CertError {
    /// The system does not let a file or a folder be read.
    #[error("{}: {reason}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        reason: io::Error,
    },
    /// A path is no file, or a file is too long.
    #[error("{}: it is no file, or too long", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
    },
    /// A file with certificates is no PEM.
    #[error("{}: {reason}", path.display())]
    ParsePem {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: pem::Error,
    },
    /// A client's certificate has no key beside it, or a key no certificate.
    #[error("{}: there is no {} beside it", path.display(), missing.display())]
    Alone {
        /// The file that is there.
        path: PathBuf,
        /// The name of the other one.
        missing: PathBuf,
    },
    /// A file has no certificate.
    #[error("{}: there is no certificate in it", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A file has no private key.
    #[error("{}: there is no private key in it", path.display())]
    NoPrivateKey {
        /// The file.
        path: PathBuf,
    },
    /// The thread that read the files ended.
    #[error("{0}")]
    Join(tokio::task::JoinError),
}

impl CertError {
    fn read(path: &Path, reason: io::Error) -> Self {
        Self::Read { path: path.to_owned(), reason }
    }
}

impl CertFolders {
    /// These folders.
    pub const fn new(folders: Vec<PathBuf>) -> Self {
        Self(folders)
    }

    /// The folders of containers' tools and of Docker. `lookup` reads a variable.
    pub fn usual(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let home = lookup("HOME").filter(|home| !home.is_empty());
        let own = home.map(|home| Path::new(&home).join(".config/containers/certs.d"));
        let shared = ["/etc/containers/certs.d", "/etc/docker/certs.d"].map(PathBuf::from);
        Self(own.into_iter().chain(shared).collect())
    }

    /// Whether there is nowhere to look.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The certificates for a registry, if there are any. Blocks.
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    pub(super) fn of(&self, registry: &str) -> Result<Option<Certificates>, CertError> {
        // It must name a folder here, whoever leads us to it.
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
                // What is in it is not repeated.
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
