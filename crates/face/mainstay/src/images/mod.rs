//! Image registry of the embedded cluster: one store, filled by `--image` and by pushes, served on
//! loopback.
//!
//! ```text
//! --image REF=… ─► made or read ─┐           ┌─► skopeo, podman, docker, oras
//! push ──────────────────────────┴─► store ──┴─► catalogs and bundles by image
//! ```
//!
//! The registry's own name is `localhost`, whatever its port is: an image pushed to
//! `127.0.0.1:5000/kiwi:v1` is `localhost/kiwi:v1`. For images of other registries, the registry's name
//! is the first part of the path: `127.0.0.1:5000/quay.io/fruit/kiwi:v1` is `quay.io/fruit/kiwi:v1`,
//! which then is not pulled from there.
//!
//! Pushing needs a login ([`login`]), pulling does not. Images that controllers pull with secrets are
//! in a store of their own, `pulled`, which the registry does not serve.

mod build;
mod listener;
mod login;

use self::login::Login;
use crate::embedded::{chain, io};
use mainstay_cause::{Cause, FileLocation};
use mainstay_cli::config::{Data, ImageSource};
use mainstay_clock::Clock;
use mainstay_command::environment::text_variable as environment;
use mainstay_command::machine;
use mainstay_files::{Durability, PrivateFolder};
use mainstay_image::digest::Digest;
use mainstay_image::policy::SignaturePolicy;
use mainstay_image::reference::ImageReference;
use mainstay_image::registry::{self, Proxies};
use mainstay_image::serve;
use mainstay_image::store::{ImageStore, UntaggedManifests};
use mainstay_images::{ImageSources as Sources, LocalName, LocalNames, UnreadablePolicy};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The registry in the names of its images.
const DOMAIN: &str = "localhost";
/// How long untagged content is kept: a push may be about to tag it.
const UNTAGGED_RETENTION: Duration = Duration::from_hours(1);
/// How long untagged pulled content is kept for the next pull.
const PULLED_RETENTION: Duration = Duration::from_hours(24 * 7);

/// How often unused pulled content is removed.
const COLLECT_INTERVAL: Duration = Duration::from_hours(24);

/// The largest size of the file with the registry's address, in bytes.
const MAX_ADDRESS_BYTES: u64 = 1 << 10;

/// The images of a cluster, and the listener of its registry.
pub(crate) struct Images {
    store: ImageStore,
    settings: serve::RegistrySettings,
    registry_hosts: Vec<String>,
    /// The folder of pulled images, which the registry does not serve.
    private: PathBuf,
    task: JoinHandle<()>,
    /// The credentials for pushing; dropping them removes their file.
    _login: Login,
    /// The temporary folder of a cluster in memory.
    _temporary: Option<PrivateFolder>,
}

/// The opened store and listener, before images are imported and served.
pub(crate) struct OpenedImages {
    private: PathBuf,
    store: ImageStore,
    listener: TcpListener,
    address: SocketAddr,
    temporary: Option<PrivateFolder>,
}

/// Opens the store and the listener: on the requested address, the previous one, or a free port.
pub(crate) async fn open(
    data: &Data,
    requested: Option<SocketAddr>,
) -> Result<OpenedImages, Cause> {
    // Not the store of `mainstay image`, which is in `images` of the default data folder: images that a
    // user pulled with a password are not for every user of this machine.
    let (folder, private, temporary) = match data {
        Data::Folder(folder) => (folder.join("served"), folder.join("pulled"), None),
        Data::Memory => {
            let folder = temporary_folder()?;
            let path = folder.path();
            (path.join("served"), path.join("pulled"), Some(folder))
        }
    };
    let address_file = match data {
        Data::Folder(folder) => Some(folder.join("registry")),
        Data::Memory => None,
    };
    let store = private_store(&folder).map_err(|error| {
        Cause::new("the images cannot be stored")
            .at(FileLocation::file(&folder))
            .because(error)
            .remedy("choose another folder with --data-dir DIR")
    })?;
    let listener = match requested {
        Some(address) => TcpListener::bind(address).await.map_err(|error| {
            Cause::new(format!("images cannot be served at {address}")).because(io(&error)).remedy(
                "choose another address with --registry ADDR:PORT; port 0 selects a free port",
            )
        })?,
        None => bind_registry(address_file.as_deref().and_then(previous_address)).await?,
    };
    let address = listener
        .local_addr()
        .map_err(|error| Cause::new("the port for images has no address").because(io(&error)))?;
    if let Some(file) = address_file.filter(|file| previous_address(file) != Some(address)) {
        let text = address.to_string();
        mainstay_files::replace(&file, text.as_bytes(), Durability::Process).map_err(|error| {
            Cause::new("the address of the registry cannot be saved")
                .at(FileLocation::file(file))
                .because(io(&error))
        })?;
    }
    Ok(OpenedImages { private, store, listener, address, temporary })
}

/// A store in a folder that only this user can read: images pulled with a secret stay private.
fn private_store(folder: &Path) -> Result<ImageStore, Cause> {
    mainstay_files::claim_private_folder(folder).map_err(|error| io(&error))?;
    ImageStore::open(folder).map_err(|error| chain(&error))
}

/// The previous address of the registry.
fn previous_address(file: &Path) -> Option<SocketAddr> {
    let address: SocketAddr =
        mainstay_files::read_text(file, MAX_ADDRESS_BYTES).ok()?.trim().parse().ok()?;
    address.ip().is_loopback().then_some(address)
}

async fn bind_registry(previous_address: Option<SocketAddr>) -> Result<TcpListener, Cause> {
    if let Some(address) = previous_address {
        // References name this address: another program there would serve other content for them.
        return TcpListener::bind(address).await.map_err(|error| {
            Cause::new(format!("images cannot be served at {address}, where they were served before"))
                .because(io(&error))
                .remedy("stop the program that uses it, or choose another address with --registry ADDR:PORT; images with the old address in their references are then not found")
        });
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(|error| Cause::new("no port is available for the registry").because(io(&error)))
}

/// A temporary folder that only this user can read.
fn temporary_folder() -> Result<PrivateFolder, Cause> {
    let parent = std::env::temp_dir();
    PrivateFolder::create_in(&parent, "mainstay-images-").map_err(|error| {
        Cause::new("the folder for images cannot be created")
            .at(FileLocation::file(parent))
            .because(io(&error))
            .remedy("name another folder for temporary files with TMPDIR, or keep the cluster in a folder with --data-dir DIR")
    })
}

impl OpenedImages {
    /// Imports the given images, and serves the store until `stop`. The credentials for pushing are
    /// written beside `kubeconfig`. `say` reports each step.
    pub(crate) async fn serve(
        self,
        sources: Vec<ImageSource>,
        kubeconfig: &Path,
        clock: Clock,
        stop: &CancellationToken,
        say: &dyn Fn(&str),
    ) -> Result<Images, Cause> {
        let Self { private, store, listener, address, temporary } = self;
        let mut settings = serve::RegistrySettings::new(DOMAIN);
        settings.folders = true;
        let (account, login) = Login::write(kubeconfig, address)?;
        settings.account = Some(account);
        let registry_hosts = registry_hosts(address);
        let import = {
            let (store, settings, now) = (store.clone(), settings.clone(), clock.now());
            let registry_hosts = registry_hosts.clone();
            move || {
                let stored =
                    |reference: &ImageReference| settings.stored(reference, &registry_hosts);
                let imported = import_images(&store, &sources, stored)?;
                if let Err(error) = store.collect(now, UNTAGGED_RETENTION, UntaggedManifests::Keep)
                {
                    tracing::warn!(%error, "unreferenced images are not removed");
                }
                Ok(imported)
            }
        };
        let imported: Result<Vec<String>, Cause> = tokio::task::spawn_blocking(import)
            .await
            .map_err(|error| Cause::new(format!("reading images ended early: {error}")))?;
        let imported = imported?;
        let registry = serve::RegistryHandler::new(store.clone(), settings.clone(), clock);
        let task = tokio::spawn(listener::serve(listener, registry, stop.clone()));
        say(&format!("registry    http://{address}"));
        say(&format!("login       {}", login.file().display()));
        for line in imported {
            say(&format!("image       {line}"));
        }
        Ok(Images {
            store,
            settings,
            registry_hosts,
            private,
            task,
            _login: login,
            _temporary: temporary,
        })
    }
}

/// Host names of the registry in references.
fn registry_hosts(address: SocketAddr) -> Vec<String> {
    let host = format!("{DOMAIN}:{}", address.port());
    vec![DOMAIN.to_owned(), host, address.to_string()]
}

/// Imports images into a store; returns a line for each. No image is tagged before all images are
/// valid.
fn import_images(
    store: &ImageStore,
    sources: &[ImageSource],
    stored: impl Fn(&ImageReference) -> ImageReference,
) -> Result<Vec<String>, Cause> {
    let mut images_by_name: BTreeMap<String, (Digest, &Path)> = BTreeMap::new();
    let (mut tags, mut lines) = (Vec::new(), Vec::new());
    for ImageSource { reference, path } in sources {
        let stored = stored(reference);
        let image = build::image(store, &stored, path)?;
        let digest = &image.descriptor.digest;
        let key = format!("{}:{}", stored.repository(), stored.wanted());
        if let Some((other, first)) = images_by_name.get(&key) {
            if other != digest {
                let content = |path: &Path, digest: &Digest| {
                    Cause::new(format!("its content is {digest}")).at(FileLocation::file(path))
                };
                return Err(Cause::new(format!(
                    "the image {reference} is given twice with different content"
                ))
                .because(content(first, other))
                .because(content(path, digest))
                .remedy("give each --image REF=… a reference of its own"));
            }
            continue;
        }
        images_by_name.insert(key, (digest.clone(), path));
        lines.push(format!("{stored} {digest} {} {}", image.what, path.display()));
        tags.push((stored, image.descriptor));
    }
    for (reference, descriptor) in tags {
        store.set(&reference, &descriptor).map_err(|error| {
            Cause::new(format!("the image {reference} cannot be stored")).because(chain(&error))
        })?;
    }
    Ok(lines)
}

impl Images {
    /// The sources of catalogs and bundles by image: this registry's store, then remote registries.
    /// Pulled images have a store of their own, because not every client of this registry may have
    /// them.
    pub(crate) fn sources(&self, clock: Clock) -> Result<Sources, Cause> {
        let (settings, registry_hosts) = (self.settings.clone(), self.registry_hosts.clone());
        let local_name = move |reference: &ImageReference| {
            let stored = settings.stored(reference, &registry_hosts);
            let only_here = stored.domain() == DOMAIN;
            LocalName { reference: stored, only_here }
        };
        sources(self.store.clone(), Arc::new(local_name), &self.private, clock)
    }

    /// Waits until the listener is closed, which follows `stop`.
    pub(crate) async fn wait_until_closed(self) {
        // A server task that panicked has ended as well; the panic is in the log.
        let _ = self.task.await;
    }
}

/// The sources of catalogs and bundles by image without a registry of its own: remote registries.
/// Pulled images are kept in `folder`.
pub(crate) fn pulled(folder: &Path, clock: Clock) -> Result<Sources, Cause> {
    let empty_store = folder.join("served");
    let local = private_store(&empty_store).map_err(|error| {
        Cause::new("the images cannot be stored")
            .at(FileLocation::file(&empty_store))
            .because(error)
            .remedy("choose another folder with --data-dir DIR")
    })?;
    let local_name = |reference: &ImageReference| {
        let reference = reference.clone();
        LocalName { reference, only_here: false }
    };
    sources(local, Arc::new(local_name), &folder.join("pulled"), clock)
}

/// Removes pulled content that no tag names any more, and unused content that was pulled by digest.
fn collect(pulled: &ImageStore, clock: Clock) {
    if let Err(error) = pulled.collect(clock.now(), PULLED_RETENTION, UntaggedManifests::Forget) {
        tracing::warn!(%error, "unreferenced pulled images are not removed");
    }
}

/// Collects again and again, until the process ends: tags of catalogs move every day.
async fn collect_regularly(pulled: ImageStore, clock: Clock) {
    loop {
        tokio::time::sleep(COLLECT_INTERVAL).await;
        let pulled = pulled.clone();
        // It ends unexpectedly only when the process does.
        let _ = tokio::task::spawn_blocking(move || collect(&pulled, clock)).await;
    }
}

/// The image sources: a local store, then remote registries, whose images are kept in `private`.
fn sources(
    local: ImageStore,
    local_name: LocalNames,
    private: &Path,
    clock: Clock,
) -> Result<Sources, Cause> {
    let failed = |error: &dyn std::error::Error| {
        Cause::new("pulled images cannot be stored")
            .at(FileLocation::file(private))
            .because(chain(error))
    };
    let pulled = private_store(private).map_err(|error| {
        Cause::new("pulled images cannot be stored").at(FileLocation::file(private)).because(error)
    })?;
    let work = private.join("work");
    // Left by a process that was killed.
    let _ = std::fs::remove_dir_all(&work);
    mainstay_files::claim_private_folder(&work).map_err(|error| failed(&error))?;
    collect(&pulled, clock);
    tokio::spawn(collect_regularly(pulled.clone(), clock));
    let mut registries = registry::ClientSettings::new(clock);
    registries.proxies = Proxies::from_environment(environment).map_err(|error| {
        Cause::new("the proxies that the environment names cannot be used")
            .because(chain(&error))
            .remedy("correct HTTPS_PROXY, HTTP_PROXY or NO_PROXY")
    })?;
    // The policy is read for each pull: an administrator who forbids a registry need not restart
    // anything.
    let policy = || {
        let found =
            machine::policy(&environment).map_err(|error| UnreadablePolicy(error.to_string()))?;
        Ok(found.unwrap_or_else(SignaturePolicy::accept_anything))
    };
    Ok(Sources { local, named: local_name, pulled, registries, policy: Arc::new(policy), work })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_image::reference::ImageReference;

    fn source(reference: &str, path: &Path) -> ImageSource {
        ImageSource { reference: ImageReference::parse(reference).unwrap(), path: path.to_owned() }
    }

    fn bundle(folder: &Path, version: &str) -> PathBuf {
        let bundle = folder.join(version);
        std::fs::create_dir_all(bundle.join("manifests")).unwrap();
        std::fs::create_dir_all(bundle.join("metadata")).unwrap();
        let csv = format!(
            "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {{name: kiwi.v{version}}}\nspec: {{version: {version}}}\n"
        );
        std::fs::write(bundle.join("manifests/csv.yaml"), csv).unwrap();
        let annotations = "annotations:\n  operators.operatorframework.io.bundle.mediatype.v1: registry+v1\n  operators.operatorframework.io.bundle.manifests.v1: manifests/\n  operators.operatorframework.io.bundle.metadata.v1: metadata/\n  operators.operatorframework.io.bundle.package.v1: kiwi\n  operators.operatorframework.io.bundle.channels.v1: stable\n";
        std::fs::write(bundle.join("metadata/annotations.yaml"), annotations).unwrap();
        bundle
    }

    #[test]
    fn images_are_imported_and_tagged_and_failures_have_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let store = ImageStore::open(folder.path().join("store")).unwrap();
        let (first, second) = (bundle(folder.path(), "1.0.0"), bundle(folder.path(), "2.0.0"));
        let catalog = folder.path().join("catalog");
        std::fs::create_dir(&catalog).unwrap();
        std::fs::write(catalog.join("c.yaml"), "{schema: olm.package, name: kiwi, defaultChannel: a}\n---\n{schema: olm.channel, package: kiwi, name: a, entries: [{name: kiwi.v1}]}\n---\n{schema: olm.bundle, package: kiwi, name: kiwi.v1, image: x, properties: [{type: olm.package, value: {packageName: kiwi, version: 1.0.0}}]}\n").unwrap();
        let empty = folder.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        let broken = folder.path().join("broken");
        std::fs::create_dir(&broken).unwrap();
        std::fs::write(broken.join("oci-layout"), "{\"imageLayoutVersion\": \"1.0.0\"}").unwrap();
        let text = folder.path().join("text.tar");
        std::fs::write(&text, "no archive").unwrap();
        let unchanged = |reference: &ImageReference| reference.clone();
        let lines = import_images(
            &store,
            &[
                source("localhost/kiwi:v1", &first),
                source("quay.io/kiwi/catalog", &catalog),
                // A repeated image adds no line.
                source("localhost/kiwi:v1", &first),
            ],
            unchanged,
        )
        .unwrap();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("localhost/kiwi:v1 sha256:"), "{lines:?}");
        assert!(lines[0].contains(" bundle "), "{lines:?}");
        assert!(lines[1].contains(" catalog "), "{lines:?}");
        let is_stored =
            |text: &str| store.resolve(&ImageReference::parse(text).unwrap()).unwrap().is_some();
        assert!(is_stored("localhost/kiwi:v1") && is_stored("quay.io/kiwi/catalog:latest"));
        for (sources, requested) in [
            (
                vec![source("localhost/a:1", &first), source("localhost/a:1", &second)],
                "is given twice with different content",
            ),
            (vec![source("localhost/a:1", &empty)], "neither a bundle nor a catalog"),
            (vec![source("localhost/a:1", &broken)], "index.json"),
            (vec![source("localhost/a:1", &text)], "the archive ends within an entry"),
        ] {
            let cause = import_images(&store, &sources, unchanged).unwrap_err();
            let message = cause.to_string();
            assert!(message.contains(requested) && message.contains("localhost/a:1"), "{message}");
            assert!(message.contains('('), "no remedy: {message}");
            assert!(!is_stored("localhost/a:1"), "nothing is named");
        }
    }
}
