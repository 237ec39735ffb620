//! Resources of kinds: the built-in ones, and those that discovery finds.

use mainstay_client::Cluster;
use mainstay_object::{Gvk, Resource};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// The kind of an object.
pub(crate) fn kind_of(object: &Value) -> Gvk {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    Gvk::from_api_version(text("apiVersion"), text("kind"))
}

/// Finds the resource of a kind. What discovery found is kept: a kind does not change its resource.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    by_kind: Mutex<HashMap<Gvk, Resource>>,
    /// By group and version, whether a kind has the subresource `status`.
    with_status: Mutex<HashMap<String, bool>>,
}

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
        if let Some(known) = self.by_kind.lock().get(gvk) {
            return Ok(Some(known.clone()));
        }
        let found = cluster.resource_of(gvk).await?;
        if let Some(found) = &found {
            self.by_kind.lock().insert(gvk.clone(), found.clone());
        }
        Ok(found)
    }

    /// The resources of the kinds of these objects; none for a kind that the cluster does not serve.
    ///
    /// # Errors
    /// If discovery fails.
    pub(crate) async fn of_objects<'o>(
        &self,
        cluster: &Cluster,
        objects: impl IntoIterator<Item = &'o Value> + Send,
    ) -> mainstay_client::Result<HashMap<Gvk, Option<Resource>>> {
        let kinds: BTreeSet<Gvk> = objects.into_iter().map(kind_of).collect();
        let mut found = HashMap::with_capacity(kinds.len());
        for kind in kinds {
            let resource = self.find(cluster, &kind).await?;
            found.insert(kind, resource);
        }
        Ok(found)
    }

    /// Whether a kind of a built-in group and version has the subresource `status`.
    ///
    /// # Errors
    /// If discovery fails.
    pub(crate) async fn has_status(
        &self,
        cluster: &Cluster,
        api_version: &str,
    ) -> mainstay_client::Result<bool> {
        if let Some(known) = self.with_status.lock().get(api_version) {
            return Ok(*known);
        }
        let prefix = if api_version.contains('/') { "apis" } else { "api" };
        let document = cluster.get_raw(&format!("/{prefix}/{api_version}")).await?;
        let resources = document["resources"].as_array().into_iter().flatten();
        let names = resources.filter_map(|resource| resource["name"].as_str());
        let found = names.into_iter().any(|name| name.ends_with("/status"));
        self.with_status.lock().insert(api_version.to_owned(), found);
        Ok(found)
    }
}
