//! The controller of `APIService` objects: it follows them and what they depend on, and has each
//! remote group-version looked after.

use super::available::Looked;
use super::local::Known;
use super::remote::{SLICES, STORAGE};
use crate::handlers::definitions;
use crate::server::ApiServer;
use mainstay_object::Status;
use mainstay_store::{Watch, WatchError};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// Reads what there is and follows it until the server's end.
pub(crate) fn start(server: &Arc<ApiServer>) -> Result<(), Status> {
    let revision = server.store.revision();
    server.aggregation.read(&server.store);
    let watch = |storage| server.store.watch(storage, revision).map_err(Status::internal);
    let watches = Watches {
        registered: watch(STORAGE)?,
        services: watch("services")?,
        slices: watch(SLICES)?,
        definitions: watch(definitions::STORAGE)?,
        put: server.aggregation.put.clone(),
    };
    let stop = server.stop.clone();
    let followed = follow(Arc::downgrade(server), watches);
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = followed => {}
        }
    });
    Ok(())
}

struct Watches {
    registered: Watch,
    services: Watch,
    slices: Watch,
    definitions: Watch,
    put: Arc<Notify>,
}

/// What has changed.
enum Changed {
    Registered,
    Endpoints,
    Definitions,
}

impl Watches {
    async fn next(&mut self) -> Result<Changed, WatchError> {
        const MANY: usize = 256;
        tokio::select! {
            batch = self.registered.next_batch(MANY) => batch.map(|_| Changed::Registered),
            batch = self.services.next_batch(MANY) => batch.map(|_| Changed::Endpoints),
            batch = self.slices.next_batch(MANY) => batch.map(|_| Changed::Endpoints),
            () = self.put.notified() => Ok(Changed::Endpoints),
            batch = self.definitions.next_batch(MANY) => batch.map(|_| Changed::Definitions),
        }
    }

    fn again(server: &ApiServer) -> Option<Self> {
        let revision = server.store.revision();
        let watch = |storage| server.store.watch(storage, revision).ok();
        Some(Self {
            registered: watch(STORAGE)?,
            services: watch("services")?,
            slices: watch(SLICES)?,
            definitions: watch(definitions::STORAGE)?,
            put: server.aggregation.put.clone(),
        })
    }
}

/// Ends with the store or the server.
async fn follow(server: Weak<ApiServer>, mut watches: Watches) {
    // Who looks after which remote group-version; ended by being dropped.
    let mut keepers: HashMap<Arc<str>, (Arc<Notify>, Looked)> = HashMap::new();
    let mut known = Known::default();
    let mut changed = Changed::Definitions;
    loop {
        {
            let Some(server) = server.upgrade() else { return };
            let empty = keepers.is_empty() && server.aggregation.is_empty();
            match changed {
                Changed::Endpoints if empty => {}
                Changed::Endpoints => keepers.values().for_each(|(bell, _)| bell.notify_one()),
                Changed::Registered => server.aggregation.read(&server.store),
                Changed::Definitions => {
                    known.settle(&server).await;
                    server.aggregation.read(&server.store);
                }
            }
            if !matches!(changed, Changed::Endpoints) {
                known.write_conditions(&server).await;
                look_after(&server, &mut keepers);
            }
        }
        changed = match watches.next().await {
            Ok(changed) => changed,
            Err(WatchError::Closed) => return,
            Err(WatchError::Expired(_)) => {
                let Some(server) = server.upgrade() else { return };
                let Some(again) = Watches::again(&server) else { return };
                watches = again;
                Changed::Definitions
            }
        };
    }
}

/// Begins to look after what is new, and ends with what is gone.
fn look_after(server: &Arc<ApiServer>, keepers: &mut HashMap<Arc<str>, (Arc<Notify>, Looked)>) {
    let services = server.aggregation.current.load_full();
    keepers.retain(|name, _| services.remotes.iter().any(|remote| remote.name == *name));
    for remote in &services.remotes {
        if let Some((bell, seen)) = keepers.get_mut(&remote.name) {
            if seen.differs(remote) {
                seen.now(remote);
                bell.notify_one();
            }
        } else {
            let bell = Arc::new(Notify::new());
            let looked = Looked::begin(server, remote, bell.clone());
            keepers.insert(remote.name.clone(), (bell, looked));
        }
    }
}
