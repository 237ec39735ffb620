//! Resources of kinds: the built-in ones, and those that discovery finds.

use mainstay_client::Cluster;
use mainstay_object::{Gvk, Resource};
use parking_lot::Mutex;
use std::collections::HashMap;

/// Finds the resource of a kind. What discovery found is kept: a kind does not change its resource.
#[derive(Debug, Default)]
pub(crate) struct Resources(Mutex<HashMap<Gvk, Resource>>);

impl Resources {
    /// The resource of a kind; none if the cluster does not serve it.
    ///
    /// # Errors
    /// If discovery fails.
    pub(crate) async fn find(
        &self,
        cluster: &Cluster,
        gvk: &Gvk,
    ) -> mainstay_client::Result<Option<Resource>> {
        if let Some(known) = self.0.lock().get(gvk) {
            return Ok(Some(known.clone()));
        }
        let found = cluster.resource_of(gvk).await?;
        if let Some(found) = &found {
            self.0.lock().insert(gvk.clone(), found.clone());
        }
        Ok(found)
    }
}
