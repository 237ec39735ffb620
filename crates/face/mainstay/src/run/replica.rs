//! Serving while another process leads.
//!
//! ```text
//! waiting for the Lease ─► replica: serves what the leader resolved ─┐
//!          ▲                                                         │ the Lease is ours
//!          └────────────── the term ends ◄── controllers ◄───────────┘
//! ```
//!
//! The server stays open through all of this, with the content that it has.

use super::catalogs::Server;
use mainstay_client::Cluster;
use mainstay_extensions::Extensions;
use tokio::sync::{Mutex, MutexGuard, watch};
use tokio_util::sync::CancellationToken;

/// Whose turn it is to serve catalogs: that of the replica, or of the controllers.
#[derive(Default)]
pub(super) struct Turns {
    /// Whether another process leads.
    waits: watch::Sender<bool>,
    /// Held by the one that runs, because both use the same folder with content.
    running: Mutex<()>,
}

impl Turns {
    /// Another process leads: the replica may run.
    pub(super) fn wait(&self) {
        self.waits.send_replace(true);
    }

    /// This process leads. Returns once the replica has stopped, which does not run again while the
    /// guard is held.
    pub(super) async fn lead(&self) -> MutexGuard<'_, ()> {
        self.waits.send_replace(false);
        self.running.lock().await
    }
}

/// Runs a replica whenever another process leads, until `stop`. `start` starts it, with a token that is
/// cancelled when it ends.
pub(super) async fn serve_while_waiting(
    server: &Server,
    turns: &Turns,
    cluster: &Cluster,
    stop: &CancellationToken,
    start: impl Fn(&CancellationToken) -> Extensions,
) {
    let mut waits = turns.waits.subscribe();
    loop {
        // The sender lives as long as `turns`.
        if !matches!(stop.run_until_cancelled(waits.wait_for(|waits| *waits)).await, Some(Ok(_))) {
            return;
        }
        let _running = turns.running.lock().await;
        let end = stop.child_token();
        let replica = start(&end);
        let serve = async {
            replica.caught_up().await;
            if let Err(cause) = server.publish_endpoint(cluster).await {
                tracing::warn!(%cause, "the endpoint of this process is published later");
            }
            server.maintain_endpoints(cluster, false, &end).await;
        };
        tokio::select! {
            () = serve => {}
            _ = waits.wait_for(|waits| !*waits) => {}
            () = stop.cancelled() => {}
        }
        end.cancel();
        replica.shutdown().await;
    }
}
