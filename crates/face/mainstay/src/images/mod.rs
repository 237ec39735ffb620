//! Images in the cluster: one store, filled by `--image` and by whoever pushes, served on loopback.
//!
//! ```text
//! --image REF=… ─► made or read ─┐           ┌─► skopeo, podman, docker, oras
//! push ──────────────────────────┴─► store ──┴─► catalogs and bundles by image
//! ```
//!
//! The registry's own name is `localhost`, whatever its port is: what is pushed to
//! `127.0.0.1:5000/kiwi:v1` is `localhost/kiwi:v1`. Images of other registries are had and pushed
//! with the registry as a folder: `127.0.0.1:5000/quay.io/fruit/kiwi:v1` is `quay.io/fruit/kiwi:v1`,
//! which then is not pulled from there.
//!
//! Who pushes logs in ([`login`]); who pulls need not. What controllers pull with secrets is in a store
//! of its own, `pulled`, which is not served to anybody.

mod login;
mod make;
mod port;

use self::login::Login;
use crate::embedded::{chain, io};
use mainstay_cause::{Cause, Place};
use mainstay_cli::config::{Data, ImageSource, text_variable as environment};
use mainstay_cli::machine;
use mainstay_clock::Clock;
use mainstay_files::{Durability, PrivateFolder};
use mainstay_image::digest::Digest;
use mainstay_image::policy::Policy;
use mainstay_image::reference::Reference;
use mainstay_image::registry::{self, Proxies};
use mainstay_image::serve;
use mainstay_image::store::{Store, Untagged};
use mainstay_images::{Images as Sources, LocalName, Named, UnreadablePolicy};
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
/// Content that nothing names is kept for this long: somebody may be about to name it.
const GRACE: Duration = Duration::from_hours(1);
/// The same of what was pulled, which is used again.
const KEPT: Duration = Duration::from_hours(24 * 7);

/// How long the file may be that remembers the port, in bytes.
const LONGEST: u64 = 1 << 10;

/// The images of a cluster, and the port at which they are served.
pub(crate) struct Images {
    store: Store,
    settings: serve::Settings,
    addresses: Vec<String>,
    /// The folder of what is not shown to others.
    private: PathBuf,
    task: JoinHandle<()>,
    /// Who may push; gone with this.
    _login: Login,
    /// A store in a place for temporary files.
    _temporary: Option<PrivateFolder>,
}

/// Where the images of a cluster are before anything is done with them.
pub(crate) struct Opened {
    private: PathBuf,
    store: Store,
    listener: TcpListener,
    address: SocketAddr,
    temporary: Option<PrivateFolder>,
}

/// Opens the store and takes the port: `wanted`, or the one of before, or a free one.
pub(crate) async fn open(data: &Data, wanted: Option<SocketAddr>) -> Result<Opened, Cause> {
    // Not the store of `mainstay image`, which lies in `images` of the default data folder: what
    // somebody pulled with passwords of their own is not for everybody on this machine.
    let (folder, private, temporary) = match data {
        Data::Folder(folder) => (folder.join("served"), folder.join("pulled"), None),
        Data::Memory => {
            let folder = temporary_folder()?;
            let path = folder.path();
            (path.join("served"), path.join("pulled"), Some(folder))
        }
    };
    let memory = match data {
        Data::Folder(folder) => Some(folder.join("registry")),
        Data::Memory => None,
    };
    let store = private_store(&folder).map_err(|error| {
        Cause::new("the images cannot be kept")
            .at(Place::file(&folder))
            .because(error)
            .remedy("choose another folder with --data-dir DIR")
    })?;
    let listener = match wanted {
        Some(address) => TcpListener::bind(address).await.map_err(|error| {
            Cause::new(format!("images cannot be served at {address}"))
                .because(io(&error))
                .remedy("choose another address with --registry ADDR:PORT; port 0 picks a free one")
        })?,
        None => listen(memory.as_deref().and_then(before)).await?,
    };
    let address = listener
        .local_addr()
        .map_err(|error| Cause::new("the port for images has no address").because(io(&error)))?;
    if let Some(file) = memory.filter(|file| before(file) != Some(address)) {
        let text = address.to_string();
        mainstay_files::replace(&file, text.as_bytes(), Durability::Process).map_err(|error| {
            Cause::new("the port for images cannot be remembered")
                .at(Place::file(file))
                .because(io(&error))
        })?;
    }
    Ok(Opened { private, store, listener, address, temporary })
}

/// A store in a folder that is this user's own and closed to others: what was pulled with a secret is
/// nobody else's to read.
fn private_store(folder: &Path) -> Result<Store, Cause> {
    mainstay_files::claim_inner(folder).map_err(|error| io(&error))?;
    Store::open(folder).map_err(|error| chain(&error))
}

/// Where images were served the last time.
fn before(file: &Path) -> Option<SocketAddr> {
    let address: SocketAddr = mainstay_files::read_text(file, LONGEST).ok()?.trim().parse().ok()?;
    address.ip().is_loopback().then_some(address)
}

async fn listen(before: Option<SocketAddr>) -> Result<TcpListener, Cause> {
    if let Some(address) = before {
        // References name this address: whoever has it now would serve what they mean.
        return TcpListener::bind(address).await.map_err(|error| {
            Cause::new(format!("images cannot be served at {address}, where they were served before"))
                .because(io(&error))
                .remedy("end the program that has it, or choose another address with --registry ADDR:PORT; references that name the old one are no longer this cluster's")
        });
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(|error| Cause::new("no port can be had for images").because(io(&error)))
}

/// A folder for this process and this user alone.
fn temporary_folder() -> Result<PrivateFolder, Cause> {
    let parent = std::env::temp_dir();
    PrivateFolder::make_in(&parent, "mainstay-images-").map_err(|error| {
        Cause::new("there is no place for images")
            .at(Place::file(parent))
            .because(io(&error))
            .remedy("name another folder for temporary files with TMPDIR, or keep the cluster in a folder with --data-dir DIR")
    })
}

impl Opened {
    /// Puts the given images into the store, and serves it until `stop`; who may push to it is written
    /// beside `kubeconfig`. `say` hears of each.
    pub(crate) async fn serve(
        self,
        sources: Vec<ImageSource>,
        kubeconfig: &Path,
        clock: Clock,
        stop: &CancellationToken,
        say: &dyn Fn(&str),
    ) -> Result<Images, Cause> {
        let Self { private, store, listener, address, temporary } = self;
        let mut settings = serve::Settings::new(DOMAIN);
        settings.folders = true;
        let (account, login) = Login::write(kubeconfig, address)?;
        settings.account = Some(account);
        let addresses = addresses(address);
        let filling = {
            let (store, settings, now) = (store.clone(), settings.clone(), clock.now());
            let addresses = addresses.clone();
            move || {
                let stored = |reference: &Reference| settings.stored(reference, &addresses);
                let put = put(&store, &sources, stored)?;
                if let Err(error) = store.collect(now, GRACE, Untagged::Keep) {
                    tracing::warn!(%error, "images that nothing names are not removed");
                }
                Ok(put)
            }
        };
        let put: Result<Vec<String>, Cause> = tokio::task::spawn_blocking(filling)
            .await
            .map_err(|error| Cause::new(format!("reading images ended early: {error}")))?;
        let put = put?;
        let registry = serve::Registry::new(store.clone(), settings.clone(), clock);
        let task = tokio::spawn(port::serve(listener, registry, stop.clone()));
        say(&format!("registry    http://{address}"));
        say(&format!("login       {}", login.file().display()));
        for line in put {
            say(&format!("image       {line}"));
        }
        Ok(Images {
            store,
            settings,
            addresses,
            private,
            task,
            _login: login,
            _temporary: temporary,
        })
    }
}

/// The names that the registry is reached by.
fn addresses(address: SocketAddr) -> Vec<String> {
    let host = format!("{DOMAIN}:{}", address.port());
    vec![DOMAIN.to_owned(), host, address.to_string()]
}

/// Puts images into a store; what was put, a line each. Nothing gets a name before everything is
/// sound.
fn put(
    store: &Store,
    sources: &[ImageSource],
    stored: impl Fn(&Reference) -> Reference,
) -> Result<Vec<String>, Cause> {
    let mut made: BTreeMap<String, (Digest, &Path)> = BTreeMap::new();
    let (mut named, mut lines) = (Vec::new(), Vec::new());
    for ImageSource { reference, path } in sources {
        let stored = stored(reference);
        let image = make::image(store, &stored, path)?;
        let digest = &image.descriptor.digest;
        let key = format!("{}:{}", stored.repository(), stored.wanted());
        if let Some((other, first)) = made.get(&key) {
            if other != digest {
                let content = |path: &Path, digest: &Digest| {
                    Cause::new(format!("its content is {digest}")).at(Place::file(path))
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
        made.insert(key, (digest.clone(), path));
        lines.push(format!("{stored} {digest} {} {}", image.what, path.display()));
        named.push((stored, image.descriptor));
    }
    for (reference, descriptor) in named {
        store.set(&reference, &descriptor).map_err(|error| {
            Cause::new(format!("the image {reference} cannot be kept")).because(chain(&error))
        })?;
    }
    Ok(lines)
}

impl Images {
    /// Where catalogs and bundles by image come from: what is here, then registries. What was pulled
    /// from them is kept beside, because not everybody who may ask this registry may have it.
    pub(crate) fn sources(&self, clock: Clock) -> Result<Sources, Cause> {
        let (settings, addresses) = (self.settings.clone(), self.addresses.clone());
        let named = move |reference: &Reference| {
            let stored = settings.stored(reference, &addresses);
            let only_here = stored.domain() == DOMAIN;
            LocalName { reference: stored, only_here }
        };
        sources(self.store.clone(), Arc::new(named), &self.private, clock)
    }

    /// Returns when the port is closed, which it is after `stop`.
    pub(crate) async fn ended(self) {
        // A port that panicked has ended as well; the panic is in the log.
        let _ = self.task.await;
    }
}

/// Where catalogs and bundles by image come from for who has no images of its own: from registries;
/// what was pulled is kept in this folder.
pub(crate) fn pulled(folder: &Path, clock: Clock) -> Result<Sources, Cause> {
    let none = folder.join("served");
    let local = private_store(&none).map_err(|error| {
        Cause::new("the images cannot be kept")
            .at(Place::file(&none))
            .because(error)
            .remedy("choose another folder with --data-dir DIR")
    })?;
    let named = |reference: &Reference| {
        let reference = reference.clone();
        LocalName { reference, only_here: false }
    };
    sources(local, Arc::new(named), &folder.join("pulled"), clock)
}

/// Images of this machine, and then those of registries, which are kept in `private`.
fn sources(local: Store, named: Named, private: &Path, clock: Clock) -> Result<Sources, Cause> {
    let failed = |error: &dyn std::error::Error| {
        Cause::new("pulled images cannot be kept").at(Place::file(private)).because(chain(error))
    };
    let pulled = private_store(private).map_err(|error| {
        Cause::new("pulled images cannot be kept").at(Place::file(private)).because(error)
    })?;
    let work = private.join("work");
    // Of a process that was killed.
    let _ = std::fs::remove_dir_all(&work);
    mainstay_files::claim_inner(&work).map_err(|error| failed(&error))?;
    // What a tag means no more, and what was asked for by digest and is not used.
    if let Err(error) = pulled.collect(clock.now(), KEPT, Untagged::Forget) {
        tracing::warn!(%error, "pulled images that nothing names are not removed");
    }
    let mut registries = registry::Settings::new(clock);
    registries.proxies = Proxies::from_environment(environment).map_err(|error| {
        Cause::new("the proxies that the environment names cannot be used")
            .because(chain(&error))
            .remedy("correct HTTPS_PROXY, HTTP_PROXY or NO_PROXY")
    })?;
    // Read again for each pull: an administrator who closes a registry need not restart anything.
    let policy = || {
        let found =
            machine::policy(&environment).map_err(|error| UnreadablePolicy(error.to_string()))?;
        Ok(found.unwrap_or_else(Policy::accept_anything))
    };
    Ok(Sources { local, named, pulled, registries, policy: Arc::new(policy), work })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_image::reference::Reference;

    fn source(reference: &str, path: &Path) -> ImageSource {
        ImageSource { reference: Reference::parse(reference).unwrap(), path: path.to_owned() }
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
    fn images_are_made_and_named_and_what_is_wrong_is_told_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("store")).unwrap();
        let (one, two) = (bundle(folder.path(), "1.0.0"), bundle(folder.path(), "2.0.0"));
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
        let same = |reference: &Reference| reference.clone();
        let lines = put(
            &store,
            &[
                source("localhost/kiwi:v1", &one),
                source("quay.io/kiwi/catalog", &catalog),
                // The same again says nothing new.
                source("localhost/kiwi:v1", &one),
            ],
            same,
        )
        .unwrap();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("localhost/kiwi:v1 sha256:"), "{lines:?}");
        assert!(lines[0].contains(" bundle "), "{lines:?}");
        assert!(lines[1].contains(" catalog "), "{lines:?}");
        let known = |text: &str| store.resolve(&Reference::parse(text).unwrap()).unwrap().is_some();
        assert!(known("localhost/kiwi:v1") && known("quay.io/kiwi/catalog:latest"));
        for (sources, wanted) in [
            (
                vec![source("localhost/a:1", &one), source("localhost/a:1", &two)],
                "is given twice with different content",
            ),
            (vec![source("localhost/a:1", &empty)], "neither a bundle nor a catalog"),
            (vec![source("localhost/a:1", &broken)], "index.json"),
            (vec![source("localhost/a:1", &text)], "the archive ends within an entry"),
        ] {
            let cause = put(&store, &sources, same).unwrap_err();
            let said = cause.to_string();
            assert!(said.contains(wanted) && said.contains("localhost/a:1"), "{said}");
            assert!(said.contains('('), "no remedy: {said}");
            assert!(!known("localhost/a:1"), "nothing is named");
        }
    }
}
