//! Who follows which catalog: one task for each that is not a folder, for as long as its
//! CatalogSource asks for the same.

use crate::mode::CatalogMode;
use crate::source::FOLDER_ADDRESS;
use crate::store::CatalogStore;
use crate::{images, pods};
use mainstay_api::{CatalogSource, LastObservedState, SourceType};
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// What a CatalogSource asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Request {
    Image(images::Request),
    Address(String),
    ConfigMap(String),
    /// A pod of ours: where it will listen, and what it serves.
    Pod(String, Served),
}

impl Request {
    /// Whether this process reads the content, and serves it to others.
    fn is_read_here(&self) -> bool {
        matches!(self, Self::Image(_) | Self::ConfigMap(_))
    }
}

/// What a pod serves.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Served {
    Image(images::Request),
    ConfigMap(String),
}

struct Follower {
    request: Request,
    stop: CancellationToken,
}

/// The catalogs that are followed.
#[derive(Default)]
pub(crate) struct Followers {
    all: Mutex<BTreeMap<NamespacedName, Follower>>,
    /// Images that were found to be none that can be read here.
    unreadable: Mutex<BTreeMap<NamespacedName, String>>,
}

/// Whether a CatalogSource is served from its image.
pub(crate) fn is_by_image(source: &CatalogSource) -> bool {
    let spec = &source.spec;
    matches!(spec.source_type, SourceType::Grpc)
        && spec.address.is_empty()
        && !spec.image.is_empty()
}

/// Whether a CatalogSource names a registry server that somebody else runs.
pub(crate) fn is_by_address(source: &CatalogSource) -> bool {
    let spec = &source.spec;
    matches!(spec.source_type, SourceType::Grpc)
        && !spec.address.is_empty()
        && spec.address != FOLDER_ADDRESS
}

/// Whether a CatalogSource names a ConfigMap.
pub(crate) fn is_by_config_map(source: &CatalogSource) -> bool {
    let spec = &source.spec;
    matches!(spec.source_type, SourceType::ConfigMap | SourceType::Internal)
        && !spec.config_map.is_empty()
}

impl CatalogStore {
    /// Whether a catalog runs as a pod.
    pub(crate) fn runs(&self, source: &CatalogSource) -> bool {
        let able = is_by_image(source) || is_by_config_map(source);
        able && match self.pods().mode {
            CatalogMode::InProcess => false,
            CatalogMode::Pods => true,
            CatalogMode::Auto => {
                self.followers().unreadable.lock().get(&source.key()) == Some(&source.spec.image)
            }
        }
    }

    /// Remembers that an image cannot be read here, and says whether it runs as a pod then.
    pub(crate) fn give_to_pods(&self, key: &NamespacedName, image: &str) -> bool {
        let auto = self.pods().mode == CatalogMode::Auto;
        if auto {
            self.followers().unreadable.lock().insert(key.clone(), image.to_owned());
        }
        auto
    }

    /// Follows what a CatalogSource names, if it names something, and nothing else any more. Must be
    /// called inside a tokio runtime.
    pub fn follow_source(&self, source: &CatalogSource) {
        let key = source.key();
        if self.is_folder(&key) {
            return;
        }
        let spec = &source.spec;
        let request = if is_by_address(source) {
            Request::Address(spec.address.clone())
        } else if self.runs(source) {
            let served = if is_by_config_map(source) {
                Served::ConfigMap(spec.config_map.clone())
            } else {
                Served::Image(images::Request::of(source))
            };
            Request::Pod(pods::address(source), served)
        } else if is_by_config_map(source) {
            Request::ConfigMap(spec.config_map.clone())
        } else if is_by_image(source) && self.puller().is_some() {
            Request::Image(images::Request::of(source))
        } else {
            return self.leave(&key);
        };
        let mut followers = self.followers().all.lock();
        if followers.get(&key).is_some_and(|follower| follower.request == request) {
            return;
        }
        let stop = self.child();
        let follower = Follower { request: request.clone(), stop: stop.clone() };
        if let Some(old) = followers.insert(key.clone(), follower) {
            old.stop.cancel();
            if old.request.is_read_here() && !request.is_read_here() {
                self.close(&key);
            }
        }
        // What was served goes on until there is something new; where it comes from is known at once.
        let observed = match &request {
            Request::Address(_) | Request::Pod(..) => Some(LastObservedState::Connecting),
            Request::Image(_) | Request::ConfigMap(_) => None,
        };
        self.begin(&key, observed);
        drop(followers);
        let before =
            source.status.connection_state.as_ref().map(|connection| connection.address.clone());
        let last = images::last_look(source);
        let store = self.clone();
        tokio::spawn(async move {
            let run = async {
                match &request {
                    Request::Address(address) => store.run_address(&key, address).await,
                    Request::Image(request) => store.run_image(&key, request, before).await,
                    Request::ConfigMap(name) => {
                        store.open_place(&key, before.as_deref()).await;
                        store.run_config_map(&key, name, true).await;
                    }
                    Request::Pod(address, Served::Image(image)) => {
                        let polling = store.run_poll(&key, image, last);
                        tokio::join!(polling, store.run_address(&key, address));
                    }
                    Request::Pod(address, Served::ConfigMap(name)) => {
                        let watching = store.run_config_map(&key, name, false);
                        tokio::join!(watching, store.run_address(&key, address));
                    }
                }
            };
            stop.run_until_cancelled(Box::pin(run)).await;
        });
    }

    /// Forgets a catalog: its CatalogSource is gone, or names something else.
    pub(crate) fn leave(&self, key: &NamespacedName) {
        let Some(follower) = self.followers().all.lock().remove(key) else { return };
        follower.stop.cancel();
        self.followers().unreadable.lock().remove(key);
        self.forget(key);
        self.close(key);
        self.drop_copy(key);
    }
}
