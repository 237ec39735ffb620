//! Followers: one task for each catalog that is not a folder, until the spec of its CatalogSource
//! names another catalog.

use crate::mode::CatalogMode;
use crate::status::FOLDER_ADDRESS;
use crate::store::CatalogStore;
use crate::{images, pods};
use mainstay_api::{CatalogSource, LastObservedState, SourceType};
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use tokio_util::sync::CancellationToken;

/// The catalog that the spec of a CatalogSource names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Request {
    Image(images::Request),
    Address(String),
    ConfigMap(String),
    /// A pod that the controller creates: the address of its Service, and the source of its
    /// content.
    Pod(String, PodSource),
}

impl Request {
    /// Whether this process reads the content and serves it to registry clients.
    fn is_read_in_process(&self) -> bool {
        matches!(self, Self::Image(_) | Self::ConfigMap(_))
    }
}

/// The source of the content that a catalog pod serves.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PodSource {
    Image(images::Request),
    ConfigMap(String),
}

struct Follower {
    request: Request,
    stop: CancellationToken,
}

/// The running followers.
#[derive(Default)]
pub(crate) struct Followers {
    by_catalog: Mutex<BTreeMap<NamespacedName, Follower>>,
    /// Images that this process could not read, which run as pods in [`CatalogMode::Auto`].
    unreadable_images: Mutex<BTreeMap<NamespacedName, String>>,
}

/// Whether the catalog of a CatalogSource is an image.
pub(crate) fn is_by_image(source: &CatalogSource) -> bool {
    let spec = &source.spec;
    matches!(spec.source_type, SourceType::Grpc)
        && spec.address.is_empty()
        && !spec.image.is_empty()
}

/// Whether a CatalogSource names the address of a registry server that users run.
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
    pub(crate) fn runs_as_pod(&self, source: &CatalogSource) -> bool {
        let able = is_by_image(source) || is_by_config_map(source);
        able && match self.pods().mode {
            CatalogMode::InProcess => false,
            CatalogMode::Pods => true,
            CatalogMode::Auto => {
                self.followers().unreadable_images.lock().get(&source.key())
                    == Some(&source.spec.image)
            }
        }
    }

    /// Records that this process cannot read an image; returns whether the catalog runs as a pod
    /// instead.
    pub(crate) fn fall_back_to_pod(&self, key: &NamespacedName, image: &str) -> bool {
        let auto = self.pods().mode == CatalogMode::Auto;
        if auto {
            self.followers().unreadable_images.lock().insert(key.clone(), image.to_owned());
        }
        auto
    }

    /// Follows the catalog that a CatalogSource names and stops the follower of an earlier spec.
    /// Must be called inside a tokio runtime.
    pub fn follow_source(&self, source: &CatalogSource) {
        let key = source.key();
        if self.is_folder(&key) {
            return;
        }
        let spec = &source.spec;
        let request = if is_by_address(source) {
            Request::Address(spec.address.clone())
        } else if self.runs_as_pod(source) {
            let served = if is_by_config_map(source) {
                PodSource::ConfigMap(spec.config_map.clone())
            } else {
                PodSource::Image(images::Request::of(source))
            };
            Request::Pod(pods::address(source), served)
        } else if is_by_config_map(source) {
            Request::ConfigMap(spec.config_map.clone())
        } else if is_by_image(source) && self.puller().is_some() {
            Request::Image(images::Request::of(source))
        } else {
            return self.stop_following(&key);
        };
        let mut followers = self.followers().by_catalog.lock();
        if followers.get(&key).is_some_and(|follower| follower.request == request) {
            return;
        }
        let stop = self.follower_token();
        let follower = Follower { request: request.clone(), stop: stop.clone() };
        if let Some(old) = followers.insert(key.clone(), follower) {
            old.stop.cancel();
            if old.request.is_read_in_process() && !request.is_read_in_process() {
                self.close_endpoint(&key);
            }
        }
        // The earlier content stays in use until new content arrives; the connection state changes
        // at once.
        let observed = match &request {
            Request::Address(_) | Request::Pod(..) => Some(LastObservedState::Connecting),
            Request::Image(_) | Request::ConfigMap(_) => None,
        };
        self.register_catalog(&key, observed);
        drop(followers);
        let before =
            source.status.connection_state.as_ref().map(|connection| connection.address.clone());
        let last_poll = images::last_poll_time(source);
        let store = self.clone();
        tokio::spawn(async move {
            let run = async {
                match &request {
                    Request::Address(address) => store.run_address(&key, address).await,
                    Request::Image(request) => store.run_image(&key, request, before).await,
                    Request::ConfigMap(name) => {
                        store.open_endpoint(&key, before.as_deref()).await;
                        store.run_config_map(&key, name, true).await;
                    }
                    Request::Pod(address, PodSource::Image(image)) => {
                        let polling = store.run_poll(&key, image, last_poll);
                        tokio::join!(polling, store.run_address(&key, address));
                    }
                    Request::Pod(address, PodSource::ConfigMap(name)) => {
                        let watching = store.run_config_map(&key, name, false);
                        tokio::join!(watching, store.run_address(&key, address));
                    }
                }
            };
            stop.run_until_cancelled(Box::pin(run)).await;
        });
    }

    /// Stops the follower of a catalog and removes its state: its CatalogSource is deleted or names
    /// no catalog.
    pub(crate) fn stop_following(&self, key: &NamespacedName) {
        let Some(follower) = self.followers().by_catalog.lock().remove(key) else { return };
        follower.stop.cancel();
        self.followers().unreadable_images.lock().remove(key);
        self.remove_state(key);
        self.close_endpoint(key);
        self.delete_copy(key);
    }
}
