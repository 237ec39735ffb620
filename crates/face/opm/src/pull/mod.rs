//! Image pulls: pulls an image from a registry and unpacks its catalog, bundle or database.
//!
//! ```text
//! reference ─► pull ─► labels ─► kind of content ─► that part of the image, in a folder
//! ```
//!
//! All pulls of a command share one store, so layers that two images share are fetched once. The end of
//! the command removes the store.
//!
//! Upstream pulls with one of two libraries, each with its own error texts: a [`PullLibrary`]. Rules and
//! texts are those of operator-registry 1.73 (`upstream-opm` §1.2).

mod error;

pub(super) use error::{ContentError, OpenError};
pub(crate) use error::{PullError, UnpackError};

use super::call::CommandIo;
use super::error::TempDirError;
use super::{go, reference};
use error::ConfigError;
use mainstay_command::machine;
use mainstay_image::{
    fetch::{FetchError, Fetcher},
    manifest::{ImageConfig, ImageDocument, ImageManifest},
    mirror::{MirrorError, MirrorRules},
    platform::Platform,
    policy::SignaturePolicy,
    reference::ImageReference,
    registry::{
        CertFolders, ClientSettings, ImageClient, ImageSelection, PullStep, RegistryError,
        Security, connection_text, containers_image_text,
    },
    store::ImageStore,
    unpack,
};
use rustls::pki_types::CertificateDer;
use std::{
    cell::OnceCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;

/// The label with the folder of a catalog in its image.
const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";
/// The label with the file of a database in its image.
const DATABASE: &str = "operators.operatorframework.io.index.database.v1";
/// The label with the package of a bundle.
const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";

/// The library whose rules and error texts a pull has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PullLibrary {
    /// containers/image: with mirrors and the machine's image policy.
    Containers,
    /// containerd: without mirrors, with additional certificate authorities.
    Containerd(Vec<CertificateDer<'static>>),
}

/// Pulls images. The store opens with the first pull.
pub(crate) struct ImagePuller {
    security: Security,
    library: PullLibrary,
    opened: OnceCell<Result<PullSession, Arc<OpenError>>>,
}

/// The store and the client of the pulls.
struct PullSession {
    fetcher: Fetcher,
    /// The folder of the store.
    _folder: TempDir,
}

/// A pulled image.
pub(crate) struct Image {
    manifest: ImageManifest,
    config: ImageConfig,
}

/// Unpacked content of an image, in a temporary folder.
#[derive(Debug)]
pub(super) struct UnpackedContent {
    folder: TempDir,
    /// The root of the catalog or of the bundle, or the database file.
    pub(super) path: PathBuf,
}

/// The content of an image, by kind.
#[derive(Debug)]
pub(super) enum ImageContent {
    /// A file-based catalog.
    Catalog(UnpackedContent),
    /// A bundle.
    Bundle(UnpackedContent),
    /// A database.
    Database(UnpackedContent),
}

impl UnpackedContent {
    /// An error message with paths as they are in the image.
    pub(super) fn as_in_image(&self, message: &str) -> String {
        let inside = |path: &Path| format!("{}/", path.to_string_lossy());
        message.replace(&inside(&self.path), "").replace(&inside(self.folder.path()), "")
    }
}

impl ImagePuller {
    /// Pulls with a library.
    pub(crate) const fn new(security: Security, library: PullLibrary) -> Self {
        Self { security, library, opened: OnceCell::new() }
    }

    /// Pulls with containers/image, as most commands do.
    pub(crate) const fn containers(security: Security) -> Self {
        Self::new(security, PullLibrary::Containers)
    }

    fn puller(&self, io: &CommandIo<'_>) -> Result<&PullSession, Arc<OpenError>> {
        let open = || PullSession::open(io, self.security, &self.library).map_err(Arc::new);
        self.opened.get_or_init(open).as_ref().map_err(Arc::clone)
    }

    /// Pulls an image.
    ///
    /// # Errors
    /// If the pull fails.
    pub(crate) async fn pull(&self, io: &CommandIo<'_>, name: &str) -> Result<Image, PullError> {
        let reference = reference::image(name, &self.library)?;
        let puller = self.puller(io)?;
        let store = &puller.fetcher.store;
        let wanted = ImageSelection::Platform(Platform::host());
        let pulled = puller.fetcher.fetch(&reference, &wanted).await.map_err(|source| {
            let message = self.message(&reference, name, &source);
            PullError::Fetch { message, source: Box::new(source) }
        })?;
        let read = || -> Result<Image, ConfigError> {
            let image = pulled.image.ok_or(ConfigError::NoImage)?;
            let ImageDocument::Manifest(manifest) = store.document(&image.digest)? else {
                return Err(ConfigError::NoImage);
            };
            let config = store.config(&manifest)?;
            Ok(Image { manifest, config })
        };
        read().map_err(|error| match self.library {
            PullLibrary::Containers => PullError::ParseConfig(error),
            PullLibrary::Containerd(_) => PullError::Config(error),
        })
    }

    /// Unpacks an image into a new folder: all of it, or only some of its folders.
    ///
    /// # Errors
    /// If a layer is invalid, or the file system fails.
    pub(crate) fn unpack(
        &self,
        io: &CommandIo<'_>,
        image: &Image,
        folder: &Path,
        only: Vec<String>,
    ) -> Result<(), UnpackError> {
        let store = &self.puller(io)?.fetcher.store;
        let options = unpack::Options { only, ..unpack::Options::default() };
        unpack::image(store, &image.manifest, &image.config, folder, options)?;
        Ok(())
    }

    /// Pulls an image and unpacks the content that its labels name.
    ///
    /// # Errors
    /// If the pull or the unpacking fails.
    pub(super) async fn content(
        &self,
        io: &CommandIo<'_>,
        name: &str,
    ) -> Result<ImageContent, ContentError> {
        let image = self
            .pull(io, name)
            .await
            .map_err(|source| ContentError::Pull { image: name.to_owned(), source })?;
        let labels = image.labels();
        let (place, only, kind): (&str, _, fn(UnpackedContent) -> ImageContent) =
            if let Some(file) = labels.get(DATABASE) {
                (file, vec![inside(file)], ImageContent::Database)
            } else if let Some(folder) = labels.get(CONFIGS) {
                (folder, vec![inside(folder)], ImageContent::Catalog)
            } else if labels.contains_key(PACKAGE) {
                ("", vec!["manifests".to_owned(), "metadata".to_owned()], ImageContent::Bundle)
            } else {
                let (image, labels) = (name.to_owned(), labels.clone());
                return Err(ContentError::Kind { image, labels });
            };
        // The root stands for the whole image.
        let only = if only.iter().any(String::is_empty) { Vec::new() } else { only };
        let folder = tempfile::Builder::new()
            .prefix("mainstay-unpack-")
            .tempdir()
            .map_err(TempDirError::from)?;
        let root = folder.path().join("image");
        self.unpack(io, &image, &root, only)
            .map_err(|source| ContentError::Unpack { image: name.to_owned(), source })?;
        let path = match &*inside(place) {
            "" => root,
            inside => root.join(inside),
        };
        Ok(kind(UnpackedContent { folder, path }))
    }

    /// The error text of a failed fetch.
    fn message(&self, reference: &ImageReference, name: &str, error: &FetchError) -> String {
        let source = format!("docker://{reference}");
        let containers = self.library == PullLibrary::Containers;
        let registry = match error {
            FetchError::Refused(why) => return format!("Source image rejected: {why}"),
            FetchError::Mirror(MirrorError::All { attempts, .. }) => {
                let Some((_, last)) = attempts.last() else { return error.to_string() };
                last
            }
            FetchError::Mirror(other) => return format!("initializing source {source}: {other}"),
        };
        if !containers {
            let why = RegistryProblem::of(registry).containerd(name);
            return format!("error resolving remote name {name}: {why}");
        }
        containers_image_text(registry, reference, PullStep::Copy)
    }
}

/// A path within an image, without a leading slash. A path cannot leave the image.
fn inside(path: &str) -> String {
    go::clean(&format!("/{path}")).trim_start_matches('/').to_owned()
}

impl Image {
    /// The labels.
    pub(crate) fn labels(&self) -> &BTreeMap<String, String> {
        &self.config.config.labels
    }
}

impl PullSession {
    fn open(
        io: &CommandIo<'_>,
        security: Security,
        library: &PullLibrary,
    ) -> Result<Self, OpenError> {
        let lookup = io.environment;
        let (rules, policy) = match library {
            PullLibrary::Containers => (
                machine::mirrors(lookup).map_err(|fault| OpenError::Mirrors { fault })?,
                machine::policy(lookup).map_err(|fault| OpenError::Policy { fault })?.ok_or_else(
                    || OpenError::NoPolicy { places: machine::policy_places(lookup) },
                )?,
            ),
            PullLibrary::Containerd(_) => {
                (MirrorRules::default(), SignaturePolicy::accept_anything())
            }
        };
        let authorities = match library {
            PullLibrary::Containers => Vec::new(),
            PullLibrary::Containerd(authorities) => authorities.clone(),
        };
        let machine = machine::settings(lookup, io.clock)
            .map_err(|fault| OpenError::Credentials { fault })?;
        let certificates = match library {
            PullLibrary::Containers => machine.certificates.clone(),
            PullLibrary::Containerd(_) => CertFolders::default(),
        };
        let settings = ClientSettings {
            authorities,
            certificates,
            // A person waits.
            attempts: 3,
            backoff: Duration::from_millis(200),
            longest_wait: Duration::from_secs(20),
            ..machine
        };
        let folder = tempfile::Builder::new()
            .prefix("mainstay-images-")
            .tempdir()
            .map_err(TempDirError::from)?;
        let store = ImageStore::open(folder.path())?;
        let client = ImageClient::new(settings)?;
        let fetcher = Fetcher { client, rules, policy, store, security };
        Ok(Self { fetcher, _folder: folder })
    }
}

/// Why a registry does not return an image, as containerd distinguishes it.
#[derive(Debug, PartialEq, Eq)]
enum RegistryProblem {
    /// No connection: the address and the reason.
    Connection(String, String),
    /// Authentication is required.
    Unauthorized,
    /// An error status, and the URL.
    Status(http::StatusCode, String),
    /// No image for the platform.
    Platform,
    /// Another problem, with our text.
    Other(String),
}

impl RegistryProblem {
    fn of(error: &RegistryError) -> Self {
        match error {
            RegistryError::Connection { url, why } => {
                Self::Connection(url.clone(), connection_text(url, why))
            }
            RegistryError::Unauthorized { .. } => Self::Unauthorized,
            RegistryError::Status { url, status, .. } => Self::Status(*status, url.clone()),
            RegistryError::Platform { .. } => Self::Platform,
            other => Self::Other(other.to_string()),
        }
    }

    /// The text of containerd.
    fn containerd(&self, name: &str) -> String {
        match self {
            Self::Connection(url, why) => {
                format!("failed to do request: Head {}: {why}", go::quote(url))
            }
            Self::Unauthorized => "pull access denied, repository does not exist or may require \
                                   authorization: authorization failed: no basic auth credentials"
                .to_owned(),
            Self::Status(http::StatusCode::NOT_FOUND, _) => format!("{name}: not found"),
            Self::Status(status, url) => {
                format!("unexpected status from HEAD request to {url}: {status}")
            }
            Self::Platform => format!("no match for platform in manifest {name}: not found"),
            Self::Other(why) => why.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_image::registry::ListedError;

    #[test]
    fn label_paths_stay_within_the_image() {
        for (label, place) in [
            ("/configs", "configs"),
            ("configs/", "configs"),
            ("./a/../b", "b"),
            ("/", ""),
            (".", ""),
            ("../../etc", "etc"),
        ] {
            assert_eq!(inside(label), place, "{label}");
        }
    }

    #[test]
    fn containerd_has_its_error_texts() {
        let url = "https://a.example/v2/b/manifests/v1";
        let status = |code: u16| RegistryError::Status {
            url: url.to_owned(),
            status: http::StatusCode::from_u16(code).unwrap(),
            detail: String::new(),
            first: ListedError::default(),
        };
        let lost =
            |why: &str| RegistryError::Connection { url: url.to_owned(), why: why.to_owned() };
        let failed = format!("failed to do request: Head \"{url}\": ");
        let unexpected = format!("unexpected status from HEAD request to {url}: ");
        for (error, expected) in [
            (status(404), "a.example/b:v1: not found".to_owned()),
            (status(403), format!("{unexpected}403 Forbidden")),
            (status(500), format!("{unexpected}500 Internal Server Error")),
            (
                lost("Connection refused (os error 111)"),
                format!("{failed}dial tcp a.example:443: connect: connection refused"),
            ),
            (
                lost("received corrupt message of type InvalidContentType"),
                format!("{failed}tls: first record does not look like a TLS handshake"),
            ),
            (
                lost("failed to lookup address information: nobody knows"),
                format!("{failed}dial tcp: lookup a.example: no such host"),
            ),
        ] {
            assert_eq!(RegistryProblem::of(&error).containerd("a.example/b:v1"), expected);
        }
    }
}
