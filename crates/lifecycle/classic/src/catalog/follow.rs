//! Who follows which catalog: one task for each that is not a folder, for as long as its
//! CatalogSource asks for the same.

use super::store::CatalogStore;
use super::{FOLDER_ADDRESS, images};
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
}

struct Follower {
    request: Request,
    stop: CancellationToken,
}

/// The catalogs that are followed.
#[derive(Default)]
pub(super) struct Followers {
    all: Mutex<BTreeMap<NamespacedName, Follower>>,
}

/// Whether a CatalogSource is served from its image.
pub(super) fn is_by_image(source: &CatalogSource) -> bool {
    let spec = &source.spec;
    matches!(spec.source_type, SourceType::Grpc)
        && spec.address.is_empty()
        && !spec.image.is_empty()
}

/// Whether a CatalogSource names a registry server that somebody else runs.
pub(super) fn is_by_address(source: &CatalogSource) -> bool {
    let spec = &source.spec;
    matches!(spec.source_type, SourceType::Grpc)
        && !spec.address.is_empty()
        && spec.address != FOLDER_ADDRESS
}

impl CatalogStore {
    /// Follows what a CatalogSource names, if it names something, and nothing else any more.
    pub(crate) fn attend(&self, source: &CatalogSource) {
        let key = source.key();
        if self.is_folder(&key) {
            return;
        }
        let request = if is_by_address(source) {
            Request::Address(source.spec.address.clone())
        } else if is_by_image(source) && self.puller().is_some() {
            Request::Image(images::Request::of(source))
        } else {
            return self.leave(&key);
        };
        let mut followers = self.followers().all.lock();
        if followers.get(&key).is_some_and(|it| it.request == request) {
            return;
        }
        let stop = self.child();
        let follower = Follower { request: request.clone(), stop: stop.clone() };
        if let Some(old) = followers.insert(key.clone(), follower) {
            old.stop.cancel();
            if matches!(old.request, Request::Image(_)) && !matches!(request, Request::Image(_)) {
                self.close(&key);
            }
        }
        // What was served goes on until there is something new; where it comes from is known at once.
        let observed = match &request {
            Request::Address(_) => Some(LastObservedState::Connecting),
            Request::Image(_) => None,
        };
        self.begin(&key, observed);
        drop(followers);
        let before = source.status.connection_state.as_ref().map(|it| it.address.clone());
        let store = self.clone();
        tokio::spawn(async move {
            let run = async {
                match &request {
                    Request::Address(address) => store.run_address(&key, address).await,
                    Request::Image(request) => store.run_image(&key, request, before).await,
                }
            };
            stop.run_until_cancelled(Box::pin(run)).await;
        });
    }

    /// Forgets a catalog: its CatalogSource is gone, or names something else.
    pub(crate) fn leave(&self, key: &NamespacedName) {
        let Some(follower) = self.followers().all.lock().remove(key) else { return };
        follower.stop.cancel();
        self.forget(key);
        self.close(key);
        self.drop_copy(key);
    }
}
