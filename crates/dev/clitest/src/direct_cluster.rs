//! A cluster in this process, as commands of `mainstay` use it, without a socket.

use mainstay_cause::Cause;
use mainstay_client::{Cluster, DeleteOptions, ObjectList, WriteOptions};
use mainstay_clock::Clock;
use mainstay_command::cluster::{
    AcceptedWrite, CatalogEndpoint, CatalogReadError, ClusterHandle, ClusterReadError,
    ClusterWriteError, ClusterWriter, ObjectPage, ObjectWrite,
};
use mainstay_object::{Object, Resource};
use mainstay_registry::ServedCatalogs;
use mainstay_removal::DeletionStep;
use mainstay_resolver::fixture::CatalogData;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The interval between two polls for a deleted object.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// All documents of a ClusterCatalog.
const ALL_DOCUMENTS: &str = "api/v1/all";

/// A cluster in this process, for commands. Its catalogs are those of a server without queries.
#[derive(Clone)]
pub struct DirectCluster {
    cluster: Cluster,
    catalogs: Arc<ServedCatalogs>,
    writes_left: Arc<AtomicUsize>,
}

impl DirectCluster {
    /// A cluster without ClusterCatalogs.
    pub fn new(cluster: Cluster) -> Self {
        Self::with_catalogs(cluster, Arc::default())
    }

    /// A cluster with the content of its ClusterCatalogs.
    pub fn with_catalogs(cluster: Cluster, catalogs: Arc<ServedCatalogs>) -> Self {
        Self { cluster, catalogs, writes_left: Arc::new(AtomicUsize::new(usize::MAX)) }
    }

    /// How many more writes succeed. Then each fails, as if the command were killed. Clones share the number.
    pub fn limit_writes(&self, writes: usize) {
        self.writes_left.store(writes, Ordering::SeqCst);
    }
}

fn read_error(error: &mainstay_client::Error) -> ClusterReadError {
    let cause = cause(error);
    if error.is_not_found() {
        ClusterReadError::UnknownKind(cause)
    } else {
        ClusterReadError::Failed(cause)
    }
}

fn cause(error: &mainstay_client::Error) -> Cause {
    Cause::new(error.to_string())
}

impl ClusterHandle for DirectCluster {
    async fn list(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Object>, ClusterReadError> {
        let params = labels.map_or_else(ObjectList::default, ObjectList::labels);
        let list = self.cluster.list_pages(kind, namespace, &params).await;
        list.map(|list| list.items).map_err(|error| read_error(&error))
    }

    async fn list_page(
        &self,
        kind: &Resource,
        limit: u32,
        continue_token: &str,
    ) -> Result<ObjectPage, ClusterReadError> {
        let continue_token = continue_token.to_owned();
        let params = ObjectList { limit, continue_token, ..ObjectList::default() };
        let page = self.cluster.list(kind, None, &params).await;
        let page = page.map_err(|error| read_error(&error))?;
        Ok(ObjectPage { objects: page.items, continue_token: page.continue_token })
    }

    async fn get(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, ClusterReadError> {
        self.cluster.find(kind, namespace, name).await.map_err(|error| read_error(&error))
    }

    async fn delete(&self, step: &DeletionStep) -> Result<(), Cause> {
        let options = DeleteOptions::uid(&step.uid);
        let namespace = step.namespace.as_deref();
        let deleted =
            self.cluster.ensure_deleted(&step.resource, namespace, &step.name, &options).await;
        deleted.map_err(|error| cause(&error))
    }

    async fn wait_until_gone(
        &self,
        step: &DeletionStep,
        timeout: Duration,
    ) -> Result<Option<Object>, Cause> {
        let clock = Clock::system();
        let began = clock.elapsed();
        loop {
            let found = self.get(&step.resource, step.namespace.as_deref(), &step.name).await?;
            let found = found.filter(|object| object.uid() == step.uid);
            if found.is_none() || began + timeout < clock.elapsed() {
                return Ok(found);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    fn default_namespace(&self) -> &'static str {
        "default"
    }

    async fn kube_version(&self) -> Option<String> {
        None
    }

    async fn namespaces(&self) -> Option<Vec<String>> {
        None
    }

    async fn read_catalog(&self, address: &str) -> Result<CatalogData, Cause> {
        Err(Cause::new(format!("no registry at {address} can be read here")))
    }

    async fn read_cluster_catalog(
        &self,
        endpoint: &CatalogEndpoint,
        path: &str,
    ) -> Result<Vec<u8>, CatalogReadError> {
        if path != ALL_DOCUMENTS {
            return Err(CatalogReadError::NotFound(Cause::new(path)));
        }
        let (CatalogEndpoint::Direct { base: place, .. }
        | CatalogEndpoint::ServiceProxy { path: place }) = endpoint;
        let name = place.rsplit('/').next().unwrap_or_default();
        let failed = |why: String| CatalogReadError::Failed(Cause::new(why));
        let catalog = self.catalogs.get(name);
        let catalog = catalog.ok_or_else(|| CatalogReadError::NotFound(Cause::new(name)))?;
        let documents = catalog.documents().map_err(|error| failed(error.to_string()))?;
        let documents = documents.ok_or_else(|| failed("the catalog is empty".to_owned()))?;
        documents.lines([""; 3]).map_err(|error| failed(error.to_string()))
    }
}

impl ClusterWriter for DirectCluster {
    async fn write(
        &self,
        kind: &Resource,
        write: ObjectWrite<'_>,
        dry_run: bool,
    ) -> Result<AcceptedWrite, ClusterWriteError> {
        let less = |left: usize| left.checked_sub(1);
        if self.writes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_err() {
            return Err(ClusterWriteError::Failed(Cause::new("killed")));
        }
        let options = WriteOptions { dry_run, strict: true };
        let written = match write {
            ObjectWrite::Create(object) => self.cluster.create_with(kind, object, options).await,
            ObjectWrite::Replace(object) => self.cluster.update_with(kind, object, options).await,
            ObjectWrite::Delete(object) => {
                let namespace = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
                let options = DeleteOptions::uid(object.uid()).dry_run(dry_run);
                let held = self.cluster.delete(kind, namespace, object.name(), &options).await;
                held.map(|held| held.unwrap_or_else(|| object.clone()))
            }
        };
        match written {
            Ok(object) => Ok(AcceptedWrite { object, warnings: Vec::new() }),
            Err(error) if error.is_already_exists() => {
                Err(ClusterWriteError::AlreadyExists(cause(&error)))
            }
            Err(error) if error.is_conflict() => Err(ClusterWriteError::Conflict(cause(&error))),
            Err(error) if error.is_not_found() => Err(ClusterWriteError::NotFound(cause(&error))),
            Err(error) => Err(ClusterWriteError::Failed(cause(&error))),
        }
    }
}
