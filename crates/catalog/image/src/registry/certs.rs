//! Certificates for single registries, where Podman and Docker keep them: a folder by the name of the
//! registry, with authorities in `*.crt` and a client's certificate and key in `*.cert` and `*.key`.

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
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
    pub(super) fn of(&self, registry: &str) -> Result<Option<Certificates>, String> {
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
                Err(error) => return Err(format!("{}: {error}", folder.display())),
            }
        }
        Ok(None)
    }
}

fn read(folder: &Path, entries: fs::ReadDir) -> Result<Certificates, String> {
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", folder.display()))?;
        names.push(PathBuf::from(entry.file_name()));
    }
    names.sort();
    let mut found = Certificates::default();
    for name in &names {
        let path = folder.join(name);
        let kind = name.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
        let beside = |kind: &str| {
            let other = name.with_extension(kind);
            let missing =
                || format!("{}: there is no {} beside it", path.display(), other.display());
            if names.contains(&other) { Ok(folder.join(&other)) } else { Err(missing()) }
        };
        match kind {
            "crt" => found.authorities.extend(certificates(&path)?),
            "key" => drop(beside("cert")?),
            "cert" => {
                let key = beside("key")?;
                let chain = certificates(&path)?;
                if chain.is_empty() {
                    return Err(format!("{}: there is no certificate in it", path.display()));
                }
                // What is in it is not repeated.
                let secret = PrivateKeyDer::from_pem_slice(&content(&key)?)
                    .map_err(|_| format!("{}: there is no private key in it", key.display()))?;
                found.client.get_or_insert((chain, secret));
            }
            _ => {}
        }
    }
    Ok(found)
}

fn content(path: &Path) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let about = fs::metadata(path).map_err(failed)?;
    if !about.is_file() || about.len() > LONGEST {
        return Err(format!("{}: it is no file, or too long", path.display()));
    }
    fs::read(path).map_err(failed)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = content(path)?;
    let found = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    found.map_err(|error| format!("{}: {error}", path.display()))
}
