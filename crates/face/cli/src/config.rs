//! Checked configuration: the meaning of the arguments, checked against this machine before a command
//! changes anything.

use crate::args::{
    CatalogModeArgument, ControllersArguments, DemoArguments, NetworkArguments, RunArguments,
    UpArguments,
};
use crate::defaults::DefaultCatalogs;
use crate::serving::server_tls;
pub use crate::serving::{PackagesAddresses, PodImages, TlsFiles};
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::cluster::ClusterArguments;
use mainstay_command::environment::default_data_folder;
use mainstay_command::profile::Profile;
use mainstay_image::reference::ImageReference;
use mainstay_tls::ServerTls;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the cluster lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// Nowhere: gone when the program ends.
    Memory,
    /// In this folder.
    Folder(PathBuf),
}

/// A catalog to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedFolder {
    /// Name of its CatalogSource.
    pub name: String,
    /// The folder, or the file with its database; it existed when the configuration was checked.
    pub folder: PathBuf,
}

/// An image to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSource {
    /// The reference of the image.
    pub reference: ImageReference,
    /// The source: a folder or a file that existed when the configuration was checked.
    pub path: PathBuf,
}

/// The checked configuration of `up`.
#[derive(Clone, Debug)]
pub struct Up {
    /// Where the cluster lives.
    pub data: Data,
    /// The address of the API.
    pub listen: SocketAddr,
    /// The path of the kubeconfig; `None` takes the data folder, or a temporary folder.
    pub kubeconfig: Option<PathBuf>,
    /// Catalogs to serve, names unique.
    pub catalogs: Vec<ServedFolder>,
    /// Images to import.
    pub images: Vec<ImageSource>,
    /// The loopback address of the image registry; `None` takes the previous address, or a free port.
    pub registry: Option<SocketAddr>,
    /// Number of simulated nodes.
    pub nodes: u32,
    /// Standard namespaces.
    pub profile: Profile,
    /// Catalogs that the cluster has by default.
    pub defaults: DefaultCatalogs,
    /// Where catalogs by image and by ConfigMap are served.
    pub catalog_mode: CatalogModeArgument,
    /// Whether to repair a damaged store.
    pub repair: bool,
    /// The largest size of an object in the store, in bytes.
    pub max_object_bytes: usize,
    /// The path of the audit log, if requests are audited.
    pub audit_log: Option<PathBuf>,
    /// Namespaces that keep copied CSVs where these are disabled.
    pub protected: BTreeSet<String>,
    /// The network settings that operators receive.
    pub network: OperatorNetwork,
    /// The subsystems to run, as typed, and their features.
    pub controllers: ControllersArguments,
    /// Whether only the API and its workloads run.
    pub bare: bool,
}

/// The checked configuration of `run`.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// The cluster to connect to.
    pub cluster: ClusterArguments,
    /// The folder of pulled images and catalog copies.
    pub data: PathBuf,
    /// Catalogs to serve, names unique.
    pub catalogs: Vec<ServedFolder>,
    /// Standard namespaces.
    pub profile: Profile,
    /// Catalogs that the cluster has by default.
    pub defaults: DefaultCatalogs,
    /// The namespace of catalogs that every namespace sees.
    pub namespace: String,
    /// Where catalogs by image and by ConfigMap are served.
    pub catalog_mode: CatalogModeArgument,
    /// The subsystems to run, as typed, and their features.
    pub controllers: ControllersArguments,
    /// The address of health and metrics.
    pub listen: SocketAddr,
    /// The addresses of the package server.
    pub packages: PackagesAddresses,
    /// The address of the catalog server, if set.
    pub catalogs_listen: Option<SocketAddr>,
    /// The TLS files of health and metrics, if set.
    pub tls_files: Option<TlsFiles>,
    /// What all TLS servers offer.
    pub tls: ServerTls,
    /// The images of catalog pods.
    pub images: PodImages,
    /// Notes about flags without effect.
    pub notes: Vec<String>,
    /// The time limit for unpacking a bundle.
    pub unpack_timeout: Duration,
    /// How long an InstallPlan with failing steps is retried.
    pub plan_timeout: Duration,
    /// Namespaces that keep copied CSVs where these are disabled.
    pub protected: BTreeSet<String>,
    /// The network settings that operators receive.
    pub network: OperatorNetwork,
}

/// The network settings that operators receive. Empty texts are unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorNetwork {
    /// `HTTP_PROXY`.
    pub http_proxy: String,
    /// `HTTPS_PROXY`.
    pub https_proxy: String,
    /// `NO_PROXY`.
    pub no_proxy: String,
    /// Certificates in PEM that operators trust besides the system's.
    pub trusted_ca: String,
}

/// The checked configuration of `demo`.
#[derive(Clone, Debug)]
pub struct Demo {
    /// Whether to end after the story.
    pub exit: bool,
    /// The catalog; `None` takes the sample.
    pub catalog: Option<PathBuf>,
    /// The package; `None` takes the first that can be installed.
    pub package: Option<String>,
    /// The address of the API.
    pub listen: SocketAddr,
    /// The path of the kubeconfig; `None` takes a temporary folder.
    pub kubeconfig: Option<PathBuf>,
}

impl Up {
    /// Checks the arguments of `up`.
    pub fn check(arguments: UpArguments) -> Result<Self, Cause> {
        let data = if arguments.in_memory {
            Data::Memory
        } else {
            let remedy = "name one with --data-dir DIR, or use --in-memory";
            Data::Folder(check_data_folder(arguments.data_dir, default_data_folder(), remedy)?)
        };
        let catalogs = parse_catalogs(&arguments.catalogs)?;
        let images = arguments.images.iter().map(|text| parse_image(text));
        let images = images.collect::<Result<_, _>>()?;
        if let Some(address) = arguments.registry.filter(|address| !address.ip().is_loopback()) {
            return Err(Cause::new(format!("--registry {address}"))
                .because(Cause::new(
                    "the registry serves this machine only, because it has no TLS and reads need no credentials",
                ))
                .remedy("name a loopback address, such as 127.0.0.1:5000"));
        }
        let kubeconfig = check_kubeconfig(arguments.kubeconfig)?;
        Ok(Self {
            data,
            listen: arguments.listen,
            kubeconfig,
            catalogs,
            images,
            registry: arguments.registry,
            nodes: arguments.nodes,
            profile: arguments.profile,
            defaults: DefaultCatalogs::check(
                arguments.default_sources.as_deref(),
                arguments.profile,
            )?,
            catalog_mode: arguments.catalog_mode,
            repair: arguments.repair,
            max_object_bytes: arguments.max_object_bytes,
            audit_log: arguments.audit_log,
            protected: arguments.protected_copied_csv_namespaces.into_iter().collect(),
            network: OperatorNetwork::check(arguments.network)?,
            controllers: arguments.controllers,
            bare: arguments.bare,
        })
    }
}

impl OperatorNetwork {
    fn check(arguments: NetworkArguments) -> Result<Self, Cause> {
        let certificates = arguments.trusted_ca.as_deref().map(read_certificates).transpose()?;
        Ok(Self {
            http_proxy: arguments.http_proxy,
            https_proxy: arguments.https_proxy,
            no_proxy: arguments.no_proxy,
            trusted_ca: certificates.unwrap_or_default(),
        })
    }
}

impl RunSettings {
    /// Checks the arguments of `run`.
    pub fn check(arguments: RunArguments) -> Result<Self, Cause> {
        let default = default_data_folder().map(|folder| folder.join("run"));
        let data = check_data_folder(arguments.data_dir, default, "name one with --data-dir DIR")?;
        Ok(Self {
            cluster: arguments.cluster,
            data,
            catalogs: parse_catalogs(&arguments.catalogs)?,
            profile: arguments.profile,
            defaults: DefaultCatalogs::check(
                arguments.default_sources.as_deref(),
                arguments.profile,
            )?,
            namespace: arguments
                .namespace
                .unwrap_or_else(|| arguments.profile.catalog_namespace().to_owned()),
            catalog_mode: arguments.catalog_mode,
            controllers: arguments.controllers,
            listen: arguments.listen,
            packages: PackagesAddresses::check(
                arguments.packages_address,
                arguments.packages_listen,
                &arguments.upstream,
            )?,
            catalogs_listen: arguments.catalogs_listen,
            tls_files: TlsFiles::check(&arguments.upstream)?,
            tls: server_tls(&arguments.upstream)?,
            images: PodImages::of(&arguments.upstream),
            notes: arguments.upstream.notes(),
            unpack_timeout: arguments.bundle_unpack_timeout,
            plan_timeout: arguments.install_plan_retry_timeout,
            protected: arguments.protected_copied_csv_namespaces.into_iter().collect(),
            network: OperatorNetwork::check(arguments.network)?,
        })
    }
}

/// The named folder, or else the default.
fn check_data_folder(
    named: Option<PathBuf>,
    default: Option<PathBuf>,
    remedy: &'static str,
) -> Result<PathBuf, Cause> {
    let folder = named.or(default).ok_or_else(|| {
        Cause::new("there is no default data folder: neither XDG_DATA_HOME nor HOME is set")
            .remedy(remedy)
    })?;
    if folder.exists() && !folder.is_dir() {
        return Err(Cause::new("the data folder is a file")
            .at(FileLocation::file(folder))
            .remedy("name a folder with --data-dir DIR"));
    }
    Ok(folder)
}

fn parse_catalogs(texts: &[String]) -> Result<Vec<ServedFolder>, Cause> {
    let mut catalogs: Vec<ServedFolder> = Vec::new();
    for text in texts {
        let catalog = parse_catalog(text)?;
        if catalogs.iter().any(|other| other.name == catalog.name) {
            return Err(Cause::new(format!("two catalogs are named `{}`", catalog.name))
                .remedy("give each --catalog NAME=DIR a name of its own"));
        }
        catalogs.push(catalog);
    }
    Ok(catalogs)
}

impl Demo {
    /// Checks the arguments of `demo`.
    pub fn check(arguments: DemoArguments) -> Result<Self, Cause> {
        let catalog = arguments.catalog.map(|folder| check_catalog_folder(&folder)).transpose()?;
        Ok(Self {
            exit: arguments.exit,
            catalog,
            package: arguments.package,
            listen: arguments.listen,
            kubeconfig: check_kubeconfig(arguments.kubeconfig)?,
        })
    }
}

/// The text of a file with certificates.
fn read_certificates(file: &Path) -> Result<String, Cause> {
    let refused = |why: String| {
        Cause::new("the file of --trusted-ca cannot be used")
            .at(FileLocation::file(file))
            .because(Cause::new(why))
            .remedy("name a file with certificates in PEM")
    };
    let text = std::fs::read_to_string(file).map_err(|error| refused(error.to_string()))?;
    if !text.contains("-----BEGIN CERTIFICATE-----") {
        return Err(refused("the file contains no certificate".to_owned()));
    }
    Ok(text)
}

fn parse_catalog(text: &str) -> Result<ServedFolder, Cause> {
    let wanted = || {
        Cause::new(format!("--catalog {text}"))
            .remedy("write it as --catalog NAME=DIR or NAME=DATABASE")
    };
    let Some((name, folder)) = text.split_once('=') else {
        return Err(wanted().because(Cause::new("it has no `=`")));
    };
    if name.is_empty() {
        return Err(wanted().because(Cause::new("it has no name before the `=`")));
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let edges = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.len() > 63
        || !name.chars().all(allowed)
        || !name.starts_with(edges)
        || !name.ends_with(edges)
    {
        return Err(wanted().because(Cause::new(format!(
            "`{name}` cannot name a CatalogSource: at most 63 lower case letters, digits, `-` and `.`, beginning and ending with a letter or digit"
        ))));
    }
    let path = Path::new(folder);
    let folder = if mainstay_database::is_database(path) {
        path.canonicalize().map_err(|error| {
            Cause::new(format!(
                "the database cannot be opened: {}",
                mainstay_gocompat::io_error_text(&error)
            ))
            .at(FileLocation::file(path))
        })?
    } else {
        check_catalog_folder(path)?
    };
    Ok(ServedFolder { name: name.to_owned(), folder })
}

fn parse_image(text: &str) -> Result<ImageSource, Cause> {
    let refuse = |why: String| {
        Cause::new(format!("--image {text}")).because(Cause::new(why)).remedy(
            "write it as --image REF=DIR|DATABASE|LAYOUT|ARCHIVE, such as --image localhost/kiwi:v1=./kiwi",
        )
    };
    let Some((reference, path)) = text.split_once('=') else {
        return Err(refuse("it has no `=`".to_owned()));
    };
    let reference = ImageReference::parse(reference)
        .map_err(|error| refuse(format!("`{reference}` is not an image reference: {error}")))?;
    if let Some(digest) = reference.digest() {
        return Err(refuse(format!("the content determines the digest; omit @{digest}")));
    }
    let path = Path::new(path).canonicalize().map_err(|error| {
        Cause::new(format!(
            "the image {reference} cannot be opened: {}",
            mainstay_gocompat::io_error_text(&error)
        ))
        .at(FileLocation::file(path))
        .remedy(
            "name a bundle folder, a catalog folder or database, an OCI layout or an image archive",
        )
    })?;
    Ok(ImageSource { reference, path })
}

fn check_catalog_folder(folder: &Path) -> Result<PathBuf, Cause> {
    let refuse = |why: String| {
        Cause::new(why)
            .at(FileLocation::file(folder))
            .remedy("name the folder of a file-based catalog")
    };
    match folder.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(_) => Err(refuse("the catalog is a file, not a folder".to_owned())),
        Err(error) => Err(refuse(format!(
            "the catalog folder cannot be opened: {}",
            mainstay_gocompat::io_error_text(&error)
        ))),
    }
}

fn check_kubeconfig(path: Option<PathBuf>) -> Result<Option<PathBuf>, Cause> {
    let Some(path) = path else { return Ok(None) };
    if path.is_dir() {
        return Err(Cause::new("the kubeconfig path is a folder")
            .at(FileLocation::file(path))
            .remedy("name a file with --kubeconfig PATH"));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent
        && !parent.is_dir()
    {
        return Err(Cause::new("the folder of the kubeconfig does not exist")
            .at(FileLocation::file(parent))
            .remedy("create it, or name another file with --kubeconfig PATH"));
    }
    Ok(Some(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command};
    use clap::Parser;

    fn up(words: &[&str]) -> Result<Up, String> {
        let words = ["mainstay", "up"].iter().chain(words);
        match Arguments::try_parse_from(words).unwrap().command {
            Command::Up(arguments) => Up::check(*arguments).map_err(|cause| cause.to_string()),
            _ => unreachable!("`up` was typed"),
        }
    }

    #[test]
    fn every_usage_error_is_one_sentence_with_a_remedy() {
        for (words, expected) in [
            (
                &["--catalog", "x=/no/such/folder"][..],
                "/no/such/folder: the catalog folder cannot be opened: no such file or directory (name the folder of a file-based catalog)",
            ),
            (
                &["--catalog", "x"],
                "--catalog x: it has no `=` (write it as --catalog NAME=DIR or NAME=DATABASE)",
            ),
            (
                &["--catalog", "x=/dev/null"],
                "/dev/null: the catalog is a file, not a folder (name the folder of a file-based catalog)",
            ),
            (
                &["--data-dir", "/dev/null"],
                "/dev/null: the data folder is a file (name a folder with --data-dir DIR)",
            ),
            (
                &["--image", "localhost/kiwi:v1=/no/such/folder"],
                "/no/such/folder: the image localhost/kiwi:v1 cannot be opened: no such file or directory (name a bundle folder, a catalog folder or database, an OCI layout or an image archive)",
            ),
            (
                &["--image", "localhost/kiwi:v1"],
                "--image localhost/kiwi:v1: it has no `=` (write it as --image REF=DIR|DATABASE|LAYOUT|ARCHIVE, such as --image localhost/kiwi:v1=./kiwi)",
            ),
            (
                &["--image", "localhost/Kiwi=/"],
                "--image localhost/Kiwi=/: `localhost/Kiwi` is not an image reference: invalid reference format: repository name (Kiwi) must be lowercase (write it as --image REF=DIR|DATABASE|LAYOUT|ARCHIVE, such as --image localhost/kiwi:v1=./kiwi)",
            ),
            (
                &["--registry", "0.0.0.0:5000"],
                "--registry 0.0.0.0:5000: the registry serves this machine only, because it has no TLS and reads need no credentials (name a loopback address, such as 127.0.0.1:5000)",
            ),
            (
                &["--kubeconfig", "/"],
                "/: the kubeconfig path is a folder (name a file with --kubeconfig PATH)",
            ),
            (
                &["--catalog", "x=/", "--catalog", "x=/"],
                "two catalogs are named `x` (give each --catalog NAME=DIR a name of its own)",
            ),
        ] {
            let mut words = words.to_vec();
            if !words.contains(&"--data-dir") {
                words.push("--in-memory");
            }
            assert_eq!(up(&words).unwrap_err(), expected);
        }
        assert!(
            up(&["--in-memory", "--catalog", "A_b=/"])
                .unwrap_err()
                .contains("cannot name a CatalogSource")
        );
    }

    #[test]
    fn a_catalog_may_be_a_database() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("index.db");
        std::fs::write(&file, "SQLite format 3\0 and more").unwrap();
        let text = format!("old={}", file.display());
        let up = up(&["--in-memory", "--catalog", &text]).unwrap();
        assert_eq!(up.catalogs[0].folder, file.canonicalize().unwrap());
    }

    #[test]
    fn a_catalog_folder_becomes_absolute() {
        let up = up(&["--in-memory", "--catalog", "here=."]).unwrap();
        assert!(up.catalogs[0].folder.is_absolute());
        assert_eq!(up.data, Data::Memory);
    }
}
