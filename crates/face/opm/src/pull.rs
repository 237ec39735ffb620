//! Images: what a reference to a registry leads to, unpacked.
//!
//! ```text
//! reference ─► pull ─► labels ─► which kind of content it has ─► that part of it, in a folder
//! ```
//!
//! Everything goes through one store for as long as a command runs, so what two images share is
//! fetched once. It is removed with the command.
//!
//! Upstream pulls with one of two libraries, and each has its own words for the same trouble; those
//! are a [`Way`]. Rules and texts are those of operator-registry 1.73 (`upstream-opm` §1.2).

mod error;

pub(super) use error::{ContentError, OpenError};
pub(crate) use error::{PullError, UnpackError};

use super::call::Io;
use super::error::TempDirError;
use super::{go, reference};
use error::ConfigError;
use mainstay_cli::machine;
use mainstay_image::{
    fetch::{FetchError, Fetcher},
    manifest::{ImageConfig, ImageDocument, ImageManifest},
    mirror::{MirrorError, MirrorRules},
    platform::Platform,
    policy::SignaturePolicy,
    reference::ImageReference,
    registry::{CertFolders, ClientSettings, ImageClient, ImageSelection, RegistryError, Security},
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

/// Where a catalog lies in its image.
const CONFIGS: &str = "operators.operatorframework.io.index.configs.v1";
/// Where a database lies in its image.
const DATABASE: &str = "operators.operatorframework.io.index.database.v1";
/// The package of a bundle.
const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";

/// How images are got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// With mirrors, and only if the machine's policy says that the image is taken.
    Containers,
    /// Straight from the registry, trusting more authorities.
    Containerd(Vec<CertificateDer<'static>>),
}

/// Images of registries. Nothing is done before the first is asked for.
pub(crate) struct Images {
    security: Security,
    way: Way,
    opened: OnceCell<Result<Puller, Arc<OpenError>>>,
}

/// What images are pulled with.
struct Puller {
    fetcher: Fetcher,
    /// Where the store is.
    _folder: TempDir,
}

/// An image that was pulled.
pub(crate) struct Image {
    manifest: ImageManifest,
    config: ImageConfig,
}

/// Content of an image in a folder of its own, which vanishes with it.
#[derive(Debug)]
pub(super) struct Unpacked {
    folder: TempDir,
    /// What the image's label names: the root of the catalog or of the bundle, or the database.
    pub(super) path: PathBuf,
}

/// What an image holds.
#[derive(Debug)]
pub(super) enum Content {
    /// A catalog of files.
    Catalog(Unpacked),
    /// A bundle.
    Bundle(Unpacked),
    /// A database.
    Database(Unpacked),
}

impl Unpacked {
    /// An error about what is in the folder, with paths as they are in the image.
    pub(super) fn as_in_image(&self, message: &str) -> String {
        let inside = |path: &Path| format!("{}/", path.to_string_lossy());
        message.replace(&inside(&self.path), "").replace(&inside(self.folder.path()), "")
    }
}

impl Images {
    /// Images got in a way.
    pub(crate) const fn new(security: Security, way: Way) -> Self {
        Self { security, way, opened: OnceCell::new() }
    }

    /// Images as most commands get them.
    pub(crate) const fn containers(security: Security) -> Self {
        Self::new(security, Way::Containers)
    }

    fn puller(&self, io: &Io<'_>) -> Result<&Puller, Arc<OpenError>> {
        let open = || Puller::open(io, self.security, &self.way).map_err(Arc::new);
        self.opened.get_or_init(open).as_ref().map_err(Arc::clone)
    }

    /// Pulls an image.
    ///
    /// # Errors
    /// If it cannot be had.
    pub(crate) async fn pull(&self, io: &Io<'_>, name: &str) -> Result<Image, PullError> {
        let reference = reference::image(name, &self.way)?;
        let puller = self.puller(io)?;
        let store = &puller.fetcher.store;
        let wanted = ImageSelection::Platform(Platform::host());
        let pulled = puller.fetcher.fetch(&reference, &wanted).await.map_err(|source| {
            let said = self.said(&reference, name, &source);
            PullError::Fetch { said, source: Box::new(source) }
        })?;
        let read = || -> Result<Image, ConfigError> {
            let image = pulled.image.ok_or(ConfigError::NoImage)?;
            let ImageDocument::Manifest(manifest) = store.document(&image.digest)? else {
                return Err(ConfigError::NoImage);
            };
            let config = store.config(&manifest)?;
            Ok(Image { manifest, config })
        };
        read().map_err(|error| match self.way {
            Way::Containers => PullError::ParseConfig(error),
            Way::Containerd(_) => PullError::Config(error),
        })
    }

    /// Unpacks an image into a folder that is not there yet: all of it, or only what lies below some
    /// of its folders.
    ///
    /// # Errors
    /// If a layer is none, or the system refuses.
    pub(crate) fn unpack(
        &self,
        io: &Io<'_>,
        image: &Image,
        folder: &Path,
        only: Vec<String>,
    ) -> Result<(), UnpackError> {
        let store = &self.puller(io)?.fetcher.store;
        let options = unpack::Options { only, ..unpack::Options::default() };
        unpack::image(store, &image.manifest, &image.config, folder, options)?;
        Ok(())
    }

    /// Pulls an image and unpacks what its labels say it holds.
    ///
    /// # Errors
    /// If that cannot be done.
    pub(super) async fn content(&self, io: &Io<'_>, name: &str) -> Result<Content, ContentError> {
        let image = self
            .pull(io, name)
            .await
            .map_err(|source| ContentError::Pull { image: name.to_owned(), source })?;
        let labels = image.labels();
        let (place, only, kind): (&str, _, fn(Unpacked) -> Content) =
            if let Some(file) = labels.get(DATABASE) {
                (file, vec![inside(file)], Content::Database)
            } else if let Some(folder) = labels.get(CONFIGS) {
                (folder, vec![inside(folder)], Content::Catalog)
            } else if labels.contains_key(PACKAGE) {
                ("", vec!["manifests".to_owned(), "metadata".to_owned()], Content::Bundle)
            } else {
                let (image, labels) = (name.to_owned(), labels.clone());
                return Err(ContentError::Kind { image, labels });
            };
        // The root of the image is everything.
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
        Ok(kind(Unpacked { folder, path }))
    }

    /// Why an image cannot be had.
    fn said(&self, reference: &ImageReference, name: &str, error: &FetchError) -> String {
        let shown = format!("docker://{reference}");
        let containers = self.way == Way::Containers;
        let registry = match error {
            FetchError::Refused(why) => return format!("Source image rejected: {why}"),
            FetchError::Mirror(MirrorError::All { attempts, .. }) => {
                let Some((_, last)) = attempts.last() else { return error.to_string() };
                last
            }
            FetchError::Mirror(other) => return format!("initializing source {shown}: {other}"),
        };
        let trouble = Trouble::of(registry);
        if !containers {
            return format!("error resolving remote name {name}: {}", trouble.containerd(name));
        }
        match trouble {
            Trouble::Other(why) => why,
            Trouble::Platform(platform) => format!(
                "choosing an image from manifest list {shown}: no image found in image index for \
                 architecture {}, variant {}, OS {}",
                go::quote(&platform.architecture),
                go::quote(&platform.variant),
                go::quote(&platform.os)
            ),
            trouble => {
                let (wanted, repository) = (reference.wanted(), reference.repository());
                let what = trouble.containers(&wanted, &repository);
                format!("initializing source {shown}: {what}")
            }
        }
    }
}

/// A path within an image, without the slash in front. What leads out of the image stays within it.
fn inside(path: &str) -> String {
    go::clean(&format!("/{path}")).trim_start_matches('/').to_owned()
}

impl Image {
    /// The labels.
    pub(crate) fn labels(&self) -> &BTreeMap<String, String> {
        &self.config.config.labels
    }
}

impl Puller {
    fn open(io: &Io<'_>, security: Security, way: &Way) -> Result<Self, OpenError> {
        let lookup = io.environment;
        let (rules, policy) = match way {
            Way::Containers => (
                machine::mirrors(lookup).map_err(|fault| OpenError::Mirrors { fault })?,
                machine::policy(lookup).map_err(|fault| OpenError::Policy { fault })?.ok_or_else(
                    || OpenError::NoPolicy { places: machine::policy_places(lookup) },
                )?,
            ),
            Way::Containerd(_) => (MirrorRules::default(), SignaturePolicy::accept_anything()),
        };
        let authorities = match way {
            Way::Containers => Vec::new(),
            Way::Containerd(authorities) => authorities.clone(),
        };
        let machine = machine::settings(lookup, io.clock)
            .map_err(|fault| OpenError::Credentials { fault })?;
        let certificates = match way {
            Way::Containers => machine.certificates.clone(),
            Way::Containerd(_) => CertFolders::default(),
        };
        let settings = ClientSettings {
            authorities,
            certificates,
            // Somebody waits.
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

/// What a registry says to a code if it has nothing of its own to say.
fn usual(code: &str) -> Option<&'static str> {
    Some(match code {
        "unknown" => "unknown error",
        "unsupported" => "The operation is unsupported.",
        "unauthorized" => "authentication required",
        "denied" => "requested access to the resource is denied",
        "unavailable" => "service unavailable",
        "toomanyrequests" => "too many requests",
        "name invalid" => "invalid repository name",
        "name unknown" => "repository name not known to registry",
        "manifest unknown" => "manifest unknown",
        "manifest invalid" => "manifest invalid",
        "manifest unverified" => "manifest failed signature verification",
        "manifest blob unknown" | "blob unknown" => "blob unknown to registry",
        "tag invalid" => "manifest tag did not match URI",
        "digest invalid" => "provided digest did not match uploaded content",
        _ => return None,
    })
}

/// Why a registry does not give an image, as far as upstream tells it apart.
#[derive(Debug, PartialEq, Eq)]
enum Trouble {
    /// There is no connection: to which address, and why.
    Connection(String, String),
    /// It wants to know who asks.
    Unauthorized,
    /// It answers with a status to an address; with a code, and what it says about it.
    Status(http::StatusCode, String, String, String),
    /// There is nothing for the platform.
    Platform(Platform),
    /// Something else, in our words.
    Other(String),
}

impl Trouble {
    fn of(error: &RegistryError) -> Self {
        match error {
            RegistryError::Connection { url, why } => {
                Self::Connection(url.clone(), connection(url, why))
            }
            RegistryError::Unauthorized { .. } => Self::Unauthorized,
            RegistryError::Status { url, status, detail } => {
                // The first of the errors that it lists.
                let said = detail.trim_start_matches(": ").split("; ").next().unwrap_or_default();
                let (code, text) = said.split_once(' ').unwrap_or((said, ""));
                let is_code = |c: char| c.is_ascii_uppercase() || c == '_';
                let (code, text) =
                    if code.chars().all(is_code) { (code, text) } else { ("", said) };
                Self::Status(*status, url.clone(), code.to_owned(), text.to_owned())
            }
            RegistryError::Platform { .. } => Self::Platform(Platform::host()),
            other => Self::Other(other.to_string()),
        }
    }

    /// In the words of containers' library.
    fn containers(&self, wanted: &str, repository: &str) -> String {
        let host = repository.split('/').next().unwrap_or_default();
        let reading = format!("reading manifest {wanted} in {repository}");
        match self {
            Self::Connection(url, why) => {
                let scheme = url.split("://").next().unwrap_or("https");
                format!(
                    "fetching manifest {wanted} in {repository}: pinging container registry {host}: \
                     Get \"{scheme}://{host}/v2/\": {why}"
                )
            }
            Self::Unauthorized => format!("{reading}: authentication required"),
            Self::Status(status, _, code, text) => {
                let code = code.to_ascii_lowercase().replace('_', " ");
                let why = match (&*code, &**text) {
                    // Registries say what the code means, or something of their own.
                    (_, text) if Some(text) == usual(&code) => text.to_owned(),
                    (_, "") if code.is_empty() && status.is_client_error() => {
                        format!("StatusCode: {}, \"\"", status.as_u16())
                    }
                    (_, "") if code.is_empty() => {
                        format!("received unexpected HTTP status: {status}")
                    }
                    (code, "") => code.to_owned(),
                    (code, text) => format!("{code}: {text}"),
                };
                format!("{reading}: {why}")
            }
            Self::Platform(_) => reading,
            Self::Other(why) => why.clone(),
        }
    }

    /// In the words of containerd's.
    fn containerd(&self, name: &str) -> String {
        match self {
            Self::Connection(url, why) => {
                format!("failed to do request: Head {}: {why}", go::quote(url))
            }
            Self::Unauthorized => "pull access denied, repository does not exist or may require \
                                   authorization: authorization failed: no basic auth credentials"
                .to_owned(),
            Self::Status(http::StatusCode::NOT_FOUND, ..) => format!("{name}: not found"),
            Self::Status(status, url, ..) => {
                format!("unexpected status from HEAD request to {url}: {status}")
            }
            Self::Platform(_) => format!("no match for platform in manifest {name}: not found"),
            Self::Other(why) => why.clone(),
        }
    }
}

/// Why there is no connection, in the words of Go's network library where they are known.
fn connection(url: &str, why: &str) -> String {
    let authority = url.split("://").nth(1).unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    let port = if url.starts_with("http://") { 80 } else { 443 };
    let (host, dialled) = match authority.rsplit_once(':') {
        Some((host, _)) if !host.is_empty() => (host, authority.to_owned()),
        _ => (authority, format!("{authority}:{port}")),
    };
    if why.contains("InvalidContentType") {
        "tls: first record does not look like a TLS handshake".to_owned()
    } else if why.contains("UnknownIssuer") {
        "tls: failed to verify certificate: x509: certificate signed by unknown authority"
            .to_owned()
    } else if why.starts_with("Connection refused") {
        format!("dial tcp {dialled}: connect: connection refused")
    } else if why.contains("lookup address") {
        format!("dial tcp: lookup {host}: no such host")
    } else {
        why.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_name_places_within_the_image() {
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
    fn both_libraries_have_their_words() {
        let url = "https://a.example/v2/b/manifests/v1";
        let status = |code: u16, detail: &str| {
            Trouble::of(&RegistryError::Status {
                url: url.to_owned(),
                status: http::StatusCode::from_u16(code).unwrap(),
                detail: detail.to_owned(),
            })
        };
        let lost = |why: &str| {
            Trouble::of(&RegistryError::Connection { url: url.to_owned(), why: why.to_owned() })
        };
        let reading = "reading manifest v1 in a.example/b: ";
        let pinging = "fetching manifest v1 in a.example/b: pinging container registry a.example: \
                       Get \"https://a.example/v2/\": ";
        for (trouble, containers, containerd) in [
            (
                status(404, ": MANIFEST_UNKNOWN there is none; X y"),
                format!("{reading}manifest unknown: there is none"),
                "a.example/b:v1: not found".to_owned(),
            ),
            (
                status(404, ": MANIFEST_UNKNOWN manifest unknown"),
                format!("{reading}manifest unknown"),
                "a.example/b:v1: not found".to_owned(),
            ),
            (
                status(404, ": NAME_UNKNOWN repository name not known to registry"),
                format!("{reading}repository name not known to registry"),
                "a.example/b:v1: not found".to_owned(),
            ),
            (
                status(403, ": DENIED you may not"),
                format!("{reading}denied: you may not"),
                format!("unexpected status from HEAD request to {url}: 403 Forbidden"),
            ),
            (
                status(500, ""),
                format!("{reading}received unexpected HTTP status: 500 Internal Server Error"),
                format!("unexpected status from HEAD request to {url}: 500 Internal Server Error"),
            ),
            (
                status(403, ""),
                format!("{reading}StatusCode: 403, \"\""),
                format!("unexpected status from HEAD request to {url}: 403 Forbidden"),
            ),
            (
                lost("Connection refused (os error 111)"),
                format!("{pinging}dial tcp a.example:443: connect: connection refused"),
                format!(
                    "failed to do request: Head \"{url}\": dial tcp a.example:443: connect: \
                     connection refused"
                ),
            ),
            (
                lost("received corrupt message of type InvalidContentType"),
                format!("{pinging}tls: first record does not look like a TLS handshake"),
                format!(
                    "failed to do request: Head \"{url}\": tls: first record does not look like a \
                     TLS handshake"
                ),
            ),
            (
                lost("failed to lookup address information: nobody knows"),
                format!("{pinging}dial tcp: lookup a.example: no such host"),
                format!(
                    "failed to do request: Head \"{url}\": dial tcp: lookup a.example: no such host"
                ),
            ),
        ] {
            assert_eq!(trouble.containers("v1", "a.example/b"), containers);
            assert_eq!(trouble.containerd("a.example/b:v1"), containerd);
        }
    }
}
