//! A replica: serves the catalogs that another process, the leader, resolved.
//!
//! ```text
//! status.resolvedSource (of the leader) ─► content of the digest, stored or pulled ─► HTTP API
//! ```
//!
//! A replica writes nothing to the cluster. It resolves no tags, so that every process serves the content
//! that the status names, or for a moment the one before it.

use super::controller::{remove_unused_content, serve, watch_folders, withdraw};
use super::load;
use crate::context::Context;
use crate::error::Error;
use mainstay_api::{AvailabilityMode, ClusterCatalog};
use mainstay_client::{Action, Reconciler};
use mainstay_controller::Controllers;
use mainstay_image::digest::Digest;
use mainstay_image::reference::ImageReference;
use mainstay_object::NamespacedName;
use std::sync::Arc;
use std::time::Duration;

/// How many catalogs are loaded at a time.
const WORKERS: usize = 4;

struct Replica {
    context: Arc<Context>,
    /// Removes content of catalogs that were deleted while no process ran, before anything is loaded.
    cleaned: tokio::sync::OnceCell<()>,
}

/// Registers the controller. `retry` has the first and the longest pause before another attempt.
pub(crate) fn register(controllers: &mut Controllers<Context>, retry: (Duration, Duration)) {
    let context = controllers.context();
    controllers
        .add("cluster_catalog_replica")
        .workers(WORKERS)
        .retry(retry.0, retry.1)
        .watch(&context.catalogs, |_, queue, change| queue.add(change.key.clone()))
        .watch_source(|enqueuer| watch_folders(&context, &enqueuer))
        .reconcile(Replica {
            context: Arc::clone(&context),
            cleaned: tokio::sync::OnceCell::new(),
        });
}

impl Reconciler for Replica {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &self.context;
        self.cleaned.get_or_init(|| remove_unused_content(context)).await;
        let catalog = context.catalogs.get(key);
        let Some((catalog, reference, digest)) =
            catalog.as_ref().and_then(|catalog| resolved(catalog))
        else {
            withdraw(context, &key.name).await;
            return Ok(Action::Done);
        };
        let before = context.contents.current(&key.name);
        let content = match load::folder(context, catalog) {
            // Each process has the content of its own folder.
            Some(_) if load::is_being_read(context, catalog) => return Ok(Action::Done),
            Some(folder) => load::folder_content(&folder),
            None if before.as_ref().is_some_and(|before| before.digest == digest) => {
                return Ok(Action::Done);
            }
            None => {
                context.contents.announce(&key.name);
                load::load_resolved(context, &reference, digest).await
            }
        };
        let content = content.map_err(|failure| Error::Content(failure.to_string()))?;
        if before.is_none_or(|before| before.digest != content.digest) {
            serve(context, &key.name, content).await;
        }
        context.served_changes.send_modify(|changes| *changes = changes.wrapping_add(1));
        Ok(Action::Done)
    }
}

/// What the leader serves for a catalog: its image, and the digest of that.
fn resolved(catalog: &ClusterCatalog) -> Option<(&ClusterCatalog, ImageReference, Digest)> {
    let is_off = catalog.metadata.deletion_timestamp.is_some()
        || catalog.spec.availability_mode == AvailabilityMode::Unavailable;
    let source = catalog.status.resolved_source.as_ref().filter(|_| !is_off)?;
    let reference = ImageReference::parse_canonical(&source.image.reference).ok()?;
    let digest = reference.digest()?.clone();
    Some((catalog, reference, digest))
}

/// Returns once every catalog that the leader serves is served here, too.
pub(crate) async fn caught_up(context: &Context) {
    let mut changes = context.served_changes.subscribe();
    loop {
        let catalogs = context.catalogs.list(None);
        let is_served = |catalog: &ClusterCatalog| {
            let Some((_, _, digest)) = resolved(catalog) else { return true };
            let current = context.contents.current(&catalog.metadata.name);
            let is_folder = load::folder(context, catalog).is_some();
            current.is_some_and(|current| is_folder || current.digest == digest)
        };
        if catalogs.iter().all(|(_, catalog)| is_served(catalog))
            || changes.changed().await.is_err()
        {
            return;
        }
    }
}
