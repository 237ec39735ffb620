//! Controller of `APIService` objects: follows them and their dependencies, and monitors each
//! remote group-version.

use super::available::AvailabilityMonitor;
use super::local::LocalServices;
use super::remote::{SLICES, STORAGE};
use crate::handlers::crds;
use crate::server::ApiServer;
use mainstay_object::Status;
use mainstay_store::{WatchCursor, WatchError};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// Reads the stored objects and follows their changes until the server ends.
pub(crate) fn start(server: &Arc<ApiServer>) -> Result<(), Status> {
    let revision = server.store.revision();
    server.aggregation.read(&server.store);
    let watch = |storage| server.store.watch(storage, revision).map_err(Status::internal);
    let watches = Watches {
        api_services: watch(STORAGE)?,
        services: watch("services")?,
        slices: watch(SLICES)?,
        crds: watch(crds::STORAGE)?,
        backend_added: server.aggregation.backend_added.clone(),
    };
    let stop = server.stop.clone();
    let follower = follow(Arc::downgrade(server), watches);
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = follower => {}
        }
    });
    Ok(())
}

struct Watches {
    api_services: WatchCursor,
    services: WatchCursor,
    slices: WatchCursor,
    crds: WatchCursor,
    backend_added: Arc<Notify>,
}

/// The kind of objects that changed.
enum WatchedChange {
    ApiServices,
    Endpoints,
    Definitions,
}

impl Watches {
    async fn next(&mut self) -> Result<WatchedChange, WatchError> {
        const BATCH: usize = 256;
        tokio::select! {
            batch = self.api_services.next_batch(BATCH) => batch.map(|_| WatchedChange::ApiServices),
            batch = self.services.next_batch(BATCH) => batch.map(|_| WatchedChange::Endpoints),
            batch = self.slices.next_batch(BATCH) => batch.map(|_| WatchedChange::Endpoints),
            () = self.backend_added.notified() => Ok(WatchedChange::Endpoints),
            batch = self.crds.next_batch(BATCH) => batch.map(|_| WatchedChange::Definitions),
        }
    }

    fn restart(server: &ApiServer) -> Option<Self> {
        let revision = server.store.revision();
        let watch = |storage| server.store.watch(storage, revision).ok();
        Some(Self {
            api_services: watch(STORAGE)?,
            services: watch("services")?,
            slices: watch(SLICES)?,
            crds: watch(crds::STORAGE)?,
            backend_added: server.aggregation.backend_added.clone(),
        })
    }
}

/// Follows changes until the store or the server ends.
async fn follow(server: Weak<ApiServer>, mut watches: Watches) {
    // The monitors of remote group-versions, by the name of their `APIService`.
    let mut monitors: HashMap<Arc<str>, (Arc<Notify>, AvailabilityMonitor)> = HashMap::new();
    let mut local_services = LocalServices::default();
    let mut changed = WatchedChange::Definitions;
    loop {
        {
            let Some(server) = server.upgrade() else { return };
            let is_idle = monitors.is_empty() && server.aggregation.is_empty();
            match changed {
                WatchedChange::Endpoints if is_idle => {}
                WatchedChange::Endpoints => {
                    for (trigger, _) in monitors.values() {
                        trigger.notify_one();
                    }
                }
                WatchedChange::ApiServices => server.aggregation.read(&server.store),
                WatchedChange::Definitions => {
                    local_services.sync(&server).await;
                    server.aggregation.read(&server.store);
                }
            }
            if !matches!(changed, WatchedChange::Endpoints) {
                local_services.write_conditions(&server).await;
                update_monitors(&server, &mut monitors);
            }
        }
        changed = match watches.next().await {
            Ok(changed) => changed,
            Err(WatchError::Closed) => return,
            Err(WatchError::Expired(_)) => {
                let Some(server) = server.upgrade() else { return };
                let Some(restart) = Watches::restart(&server) else { return };
                watches = restart;
                WatchedChange::Definitions
            }
        };
    }
}

/// Starts monitors for new remote group-versions, and stops those of deleted ones.
fn update_monitors(
    server: &Arc<ApiServer>,
    monitors: &mut HashMap<Arc<str>, (Arc<Notify>, AvailabilityMonitor)>,
) {
    let services = server.aggregation.current.load_full();
    monitors.retain(|name, _| services.remotes.iter().any(|remote| remote.name == *name));
    for remote in &services.remotes {
        if let Some((trigger, monitor)) = monitors.get_mut(&remote.name) {
            if monitor.differs(remote) {
                monitor.set_observed(remote);
                trigger.notify_one();
            }
        } else {
            let trigger = Arc::new(Notify::new());
            let monitor = AvailabilityMonitor::start(server, remote, trigger.clone());
            monitors.insert(remote.name.clone(), (trigger, monitor));
        }
    }
}
