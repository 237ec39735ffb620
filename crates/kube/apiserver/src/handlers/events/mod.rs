//! Expiry of Events: an hour after their last observation.
//!
//! kube-apiserver gives each Event a lease in etcd. In Mainstay, the creation of an Event starts
//! a sweep when one is due. So an idle cluster has no timer, and Events cannot accumulate.

pub(crate) mod last_sweep;

use super::blocking::YIELD_INTERVAL;
use crate::server::ApiServer;
use jiff::{SignedDuration, Timestamp};
use mainstay_object::Object;
use mainstay_store::{Change, Precondition};
use std::sync::Arc;

/// Storage name of Events.
pub(super) const STORAGE: &str = "events";
/// Lifetime of an Event.
const LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// Starts a sweep if one is due.
pub(super) fn sweep_if_due(server: &Arc<ApiServer>) {
    if server.last_sweep.begin(server.clock.elapsed().as_secs()) {
        let server = server.clone();
        tokio::spawn(async move { sweep(&server).await });
    }
}

async fn sweep(server: &ApiServer) {
    let now = server.clock.now();
    for (index, stored) in server.store.list(STORAGE, None).iter().enumerate() {
        if index % YIELD_INTERVAL == YIELD_INTERVAL - 1 {
            tokio::task::yield_now().await;
        }
        if now.duration_since(last_observed(&stored.object())) < LIFETIME {
            continue;
        }
        let expect = Precondition::Revision(stored.revision);
        let change = Change::Delete { key: stored.key.clone(), expect };
        if let Err(error) = server.store.commit(change).await {
            tracing::debug!(%error, "cannot delete an expired Event");
        }
    }
}

/// The latest time in an Event; the epoch if it has none.
fn last_observed(event: &Object) -> Timestamp {
    let paths: [&[&str]; 4] = [
        &["metadata", "creationTimestamp"],
        &["series", "lastObservedTime"],
        &["lastTimestamp"],
        &["eventTime"],
    ];
    let times = paths.iter().filter_map(|path| event.str(path)?.parse().ok());
    times.max().unwrap_or(Timestamp::UNIX_EPOCH)
}
