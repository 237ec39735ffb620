//! Writes to a remote cluster: of whole objects, with the checks of the API server, and as dry runs.

use super::{RemoteCluster, RequestError, unserved_kind};
use crate::embedded::chain;
use mainstay_cause::Cause;
use mainstay_client::{Cluster, DeleteOptions, WriteOptions};
use mainstay_command::cluster::{AcceptedWrite, ClusterWriteError, ClusterWriter, ObjectWrite};
use mainstay_object::{Object, Resource};
use parking_lot::Mutex;
use std::sync::Arc;

impl ClusterWriter for RemoteCluster {
    async fn write(
        &self,
        kind: &Resource,
        write: ObjectWrite<'_>,
        dry_run: bool,
    ) -> Result<AcceptedWrite, ClusterWriteError> {
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&warnings);
        let cluster = self.cluster.clone();
        let cluster = cluster.warning(move |text| reported.lock().push(text.to_owned()));
        match self.in_time(send(&cluster, kind, write, dry_run)).await {
            Ok(object) => {
                Ok(AcceptedWrite { object, warnings: std::mem::take(&mut warnings.lock()) })
            }
            Err(error) => Err(self.write_error(kind, write, &error)),
        }
    }
}

/// Sends a write. Unknown fields are refused, as they would be dropped without a word.
async fn send(
    cluster: &Cluster,
    kind: &Resource,
    write: ObjectWrite<'_>,
    dry_run: bool,
) -> mainstay_client::Result<Object> {
    let options = WriteOptions { dry_run, strict: true };
    match write {
        ObjectWrite::Create(object) => cluster.create_with(kind, object, options).await,
        ObjectWrite::Replace(object) => cluster.update_with(kind, object, options).await,
        ObjectWrite::Delete(object) => {
            let namespace = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
            let options = DeleteOptions::uid(object.uid()).dry_run(dry_run);
            let held = cluster.delete(kind, namespace, object.name(), &options).await?;
            Ok(held.unwrap_or_else(|| object.clone()))
        }
    }
}

impl RemoteCluster {
    /// The error of a refused write: its kind and its text.
    fn write_error(
        &self,
        kind: &Resource,
        write: ObjectWrite<'_>,
        error: &RequestError,
    ) -> ClusterWriteError {
        let RequestError::Response(error) = error else {
            let text = format!("{} did not respond within {} s", self.url, self.timeout.as_secs());
            return ClusterWriteError::Failed(
                Cause::new(text).remedy("check that it is the right cluster and that it runs"),
            );
        };
        let cause = chain(error);
        if error.is_already_exists() {
            ClusterWriteError::AlreadyExists(cause)
        } else if error.is_conflict() {
            ClusterWriteError::Conflict(cause)
        } else if error.is_forbidden() {
            ClusterWriteError::Forbidden(cause.remedy("use an account that may write it"))
        } else if error.is_invalid() {
            ClusterWriteError::Invalid(cause)
        } else if error.is_not_found() && matches!(write, ObjectWrite::Create(_)) {
            let what = Cause::new(format!("{} does not serve {}", self.url, kind.plural));
            ClusterWriteError::Failed(unserved_kind(what, kind, cause))
        } else if error.is_not_found() {
            ClusterWriteError::NotFound(cause)
        } else {
            ClusterWriteError::Failed(cause)
        }
    }
}
