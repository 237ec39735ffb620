//! Events do not stay: an hour after they were last heard of they go.
//!
//! The original gives each of them a lease in etcd. Here a sweep runs now and then, started by the
//! creation of an event: nothing wakes up in a cluster where nothing happens, and only where events
//! are made can they pile up.

pub(crate) mod last_sweep;

use super::aside::TURN;
use crate::server::ApiServer;
use jiff::{SignedDuration, Timestamp};
use mainstay_object::Object;
use mainstay_store::{Change, Expect};
use std::sync::Arc;

/// Where events are stored.
pub(super) const STORAGE: &str = "events";
/// How long an event stays.
const KEPT: SignedDuration = SignedDuration::from_hours(1);

/// Sweeps if the last time is long enough ago.
pub(super) fn created(server: &Arc<ApiServer>) {
    if server.last_sweep.begin(server.clock.elapsed().as_secs()) {
        let server = server.clone();
        tokio::spawn(async move { sweep(&server).await });
    }
}

async fn sweep(server: &ApiServer) {
    let now = server.clock.now();
    for (at, stored) in server.store.list(STORAGE, None).iter().enumerate() {
        if at % TURN == TURN - 1 {
            tokio::task::yield_now().await;
        }
        if now.duration_since(last_heard_of(&stored.object())) < KEPT {
            continue;
        }
        let expect = Expect::Revision(stored.revision);
        let change = Change::Delete { key: stored.key.clone(), expect };
        if let Err(error) = server.store.commit(change).await {
            tracing::debug!(%error, "an old event stays for now");
        }
    }
}

/// The latest time that an event names; the beginning of time if it names none.
fn last_heard_of(event: &Object) -> Timestamp {
    let paths: [&[&str]; 4] = [
        &["metadata", "creationTimestamp"],
        &["series", "lastObservedTime"],
        &["lastTimestamp"],
        &["eventTime"],
    ];
    let times = paths.iter().filter_map(|path| event.str(path)?.parse().ok());
    times.max().unwrap_or(Timestamp::UNIX_EPOCH)
}
