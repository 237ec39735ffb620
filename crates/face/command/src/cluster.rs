//! Remote clusters: the arguments that select one, the handle through which commands use it, and the
//! objects read from it.
//!
//! [`ClusterHandle`] is asynchronous and has no runtime: the program that runs a command has the only one.
//! Its futures need not move between threads, because a command is one task.

use crate::exit::CommandFailure;
use crate::text::escape_controls;
use clap::Args;
use mainstay_cause::Cause;
use mainstay_explain::HiddenKind;
use mainstay_formats::edit_distance;
use mainstay_object::{Object, Resource};
use mainstay_removal::DeletionStep;
use mainstay_resolver::fixture::CatalogData;
use mainstay_whatif::{CatalogSnapshots, catalogs_of};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// How kubectl writes the kind of ClusterExtensions.
pub const EXTENSION_KINDS: [&str; 4] = [
    "clusterextension",
    "clusterextensions",
    "clusterextension.olm.operatorframework.io",
    "clusterextensions.olm.operatorframework.io",
];

/// Which cluster is meant.
#[derive(Args, Clone, Debug, Default)]
pub struct ClusterArguments {
    /// The kubeconfig [default: that of kubectl; in a pod, the ServiceAccount of the pod; otherwise that
    /// of `mainstay up`].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: the current one].
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ClusterArguments {
    /// Whether a kubeconfig or a context is named.
    pub const fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }
}

/// A cluster that is asked, and for how long its answers are waited for.
#[derive(Args, Clone, Debug)]
pub struct ConnectionArguments {
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Timeout in seconds for a response of the cluster or of a registry.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

impl ConnectionArguments {
    /// How long a cluster or a registry may take to respond.
    pub const fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// The error of reading objects of a kind.
#[derive(Clone, Debug)]
pub enum ClusterReadError {
    /// The account may not read the objects there.
    Forbidden(Cause),
    /// The cluster does not serve the kind.
    UnknownKind(Cause),
    /// The cluster did not respond, or refused for another reason.
    Failed(Cause),
}

impl From<ClusterReadError> for Cause {
    fn from(error: ClusterReadError) -> Self {
        let (ClusterReadError::Forbidden(cause)
        | ClusterReadError::UnknownKind(cause)
        | ClusterReadError::Failed(cause)) = error;
        cause
    }
}

impl From<ClusterReadError> for CommandFailure {
    fn from(error: ClusterReadError) -> Self {
        Cause::from(error).into()
    }
}

/// A page of a list.
#[derive(Clone, Debug, Default)]
pub struct ObjectPage {
    /// The objects.
    pub objects: Vec<Object>,
    /// The token for the next page; empty for the last one.
    pub continue_token: String,
}

/// The endpoint that serves the documents of a ClusterCatalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogEndpoint {
    /// Connects to the server.
    Direct {
        /// The URL of the catalog, such as `https://127.0.0.1:41037/catalogs/demo`.
        base: String,
        /// The CAs of the server's certificate, in PEM.
        authorities: String,
    },
    /// Asks the API server, which connects to a Service of its cluster.
    ServiceProxy {
        /// The path of the catalog at the API server.
        path: String,
    },
}

/// The error of reading documents of a ClusterCatalog.
#[derive(Clone, Debug)]
pub enum CatalogReadError {
    /// The server has no such catalog, or does not know the path.
    NotFound(Cause),
    /// The account may not use the Service proxy of the API server.
    Forbidden(Cause),
    /// The certificate of the server is not valid for its address or for the CAs.
    Certificate(Cause),
    /// The server does not respond.
    Unreachable(Cause),
    /// The server refused for another reason.
    Failed(Cause),
}

/// A remote cluster, the registries of its CatalogSources and the server of its ClusterCatalogs.
pub trait ClusterHandle {
    /// Lists the objects of a kind, of one namespace or of all, that a label selector selects.
    ///
    /// # Errors
    /// The account may not list the objects, the cluster does not serve the kind, or does not respond.
    fn list(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> impl Future<Output = Result<Vec<Object>, ClusterReadError>>;

    /// Lists one page of the objects of a kind in all namespaces: at most `limit`, those behind
    /// `continue_token`, which is empty for the first page.
    ///
    /// # Errors
    /// The account may not list the objects, the cluster does not serve the kind, or does not respond.
    fn list_page(
        &self,
        kind: &Resource,
        limit: u32,
        continue_token: &str,
    ) -> impl Future<Output = Result<ObjectPage, ClusterReadError>>;

    /// Gets an object by name; `None` if the cluster has no such object or does not serve the kind.
    ///
    /// # Errors
    /// The account may not get the object, or the cluster does not respond.
    fn get(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> impl Future<Output = Result<Option<Object>, ClusterReadError>>;

    /// Deletes the object of a removal step. A missing object is no error.
    ///
    /// # Errors
    /// The cluster refuses or does not respond.
    fn delete(&self, step: &DeletionStep) -> impl Future<Output = Result<(), Cause>>;

    /// Waits until the object of a removal step is gone. Returns the object if it still exists after
    /// `timeout`.
    ///
    /// # Errors
    /// The cluster does not respond.
    fn wait_until_gone(
        &self,
        step: &DeletionStep,
        timeout: Duration,
    ) -> impl Future<Output = Result<Option<Object>, Cause>>;

    /// The namespace of the kubeconfig's context, for arguments that name none.
    fn default_namespace(&self) -> &str;

    /// The Kubernetes version, such as `v1.35.0`; `None` if it cannot be read.
    fn kube_version(&self) -> impl Future<Output = Option<String>>;

    /// The names of all namespaces; `None` if they cannot be listed.
    fn namespaces(&self) -> impl Future<Output = Option<Vec<String>>>;

    /// Reads the catalog that the registry at an address serves.
    ///
    /// # Errors
    /// The registry cannot be reached, or stops before the end of the catalog.
    fn read_catalog(&self, address: &str) -> impl Future<Output = Result<CatalogData, Cause>>;

    /// Reads documents of a ClusterCatalog from a path below its URL, such as `api/v1/all`.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    fn read_cluster_catalog(
        &self,
        server: &CatalogEndpoint,
        path: &str,
    ) -> impl Future<Output = Result<Vec<u8>, CatalogReadError>>;
}

/// A write of one object.
#[derive(Clone, Copy, Debug)]
pub enum ObjectWrite<'a> {
    /// Creates the object.
    Create(&'a Object),
    /// Replaces the object, unless it changed since it was read.
    Replace(&'a Object),
    /// Deletes the object that was read, never a later one of the same name.
    Delete(&'a Object),
}

impl<'a> ObjectWrite<'a> {
    /// The object.
    pub const fn object(&self) -> &'a Object {
        let (Self::Create(object) | Self::Replace(object) | Self::Delete(object)) = self;
        object
    }
}

/// An accepted write.
#[derive(Clone, Debug, Default)]
pub struct AcceptedWrite {
    /// The object as stored; of a deletion, as it was.
    pub object: Object,
    /// The warnings of the API server.
    pub warnings: Vec<String>,
}

/// The error of a write.
#[derive(Clone, Debug)]
pub enum ClusterWriteError {
    /// An object of the name exists already.
    AlreadyExists(Cause),
    /// The object changed since it was read.
    Conflict(Cause),
    /// The object does not exist, or the cluster does not serve the kind.
    NotFound(Cause),
    /// The account may not write the object, or an admission plugin refuses it.
    Forbidden(Cause),
    /// The object is invalid.
    Invalid(Cause),
    /// The cluster did not respond, or refused for another reason.
    Failed(Cause),
}

impl From<ClusterWriteError> for Cause {
    fn from(error: ClusterWriteError) -> Self {
        let (ClusterWriteError::AlreadyExists(cause)
        | ClusterWriteError::Conflict(cause)
        | ClusterWriteError::NotFound(cause)
        | ClusterWriteError::Forbidden(cause)
        | ClusterWriteError::Invalid(cause)
        | ClusterWriteError::Failed(cause)) = error;
        cause
    }
}

/// A remote cluster to which a command writes.
pub trait ClusterWriter: ClusterHandle {
    /// Writes an object. With `dry_run` the cluster runs all checks and stores nothing. Fields that the
    /// kind does not have are refused.
    ///
    /// # Errors
    /// The cluster refuses or does not respond.
    fn write(
        &self,
        kind: &Resource,
        write: ObjectWrite<'_>,
        dry_run: bool,
    ) -> impl Future<Output = Result<AcceptedWrite, ClusterWriteError>>;
}

/// Finds a cluster-scoped object by name. `list_command` prints the names that there are.
///
/// # Errors
/// The cluster has no such object, with similar names; does not serve the kind; or does not respond.
pub async fn find_named(
    cluster: &impl ClusterHandle,
    resource: &Resource,
    name: &str,
    list_command: &str,
) -> Result<Object, CommandFailure> {
    if let Some(object) = cluster.get(resource, None, name).await? {
        return Ok(object);
    }
    let objects = match cluster.list(resource, None, None).await {
        Ok(objects) => objects,
        Err(ClusterReadError::Forbidden(_)) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let lower = name.to_lowercase();
    let similar = objects.iter().map(Object::name).filter(|candidate| {
        candidate.contains(&lower)
            || lower.contains(candidate)
            || edit_distance::distance(&lower, candidate, 2).is_some()
    });
    let similar: Vec<&str> = similar.take(5).collect();
    let remedy = if similar.is_empty() {
        format!("list them with: {list_command}")
    } else {
        format!("did you mean {}?", similar.join(", "))
    };
    let name = escape_controls(name);
    let cause = Cause::new(format!("the cluster has no {} {name}", resource.kind));
    Err(CommandFailure::usage(cause.remedy(remedy)))
}

/// Reads the content of CatalogSources without a folder from their registries, one after another.
pub async fn read_registries(cluster: &impl ClusterHandle, catalogs: &mut CatalogSnapshots) {
    for address in catalogs.registries_to_read() {
        let read = cluster.read_catalog(&address).await;
        catalogs.set_registry_content(&address, read);
    }
}

/// Objects listed from a cluster.
#[derive(Debug, Default)]
pub struct Listing {
    /// The objects.
    pub objects: Vec<Object>,
    /// Kinds that the account may not list everywhere.
    pub hidden: Vec<HiddenKind>,
}

impl Listing {
    /// Adds the objects of a kind in all namespaces. If the account may not list them everywhere, adds
    /// those of the given namespaces, as far as permitted.
    ///
    /// # Errors
    /// The cluster does not respond, or does not serve the kind.
    pub async fn add_in_all_namespaces(
        &mut self,
        cluster: &impl ClusterHandle,
        kind: &Resource,
        labels: Option<&str>,
        namespaces: &BTreeSet<String>,
    ) -> Result<(), Cause> {
        match cluster.list(kind, None, labels).await {
            Ok(objects) => {
                self.objects.extend(objects);
                Ok(())
            }
            Err(ClusterReadError::Forbidden(_)) => {
                self.add_in_namespaces(cluster, kind, labels, namespaces).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Adds the objects of a kind in a namespace, as far as permitted.
    ///
    /// # Errors
    /// The cluster does not respond, or does not serve the kind.
    pub async fn add_in_namespace(
        &mut self,
        cluster: &impl ClusterHandle,
        kind: &Resource,
        labels: Option<&str>,
        namespace: &str,
    ) -> Result<(), Cause> {
        match cluster.list(kind, Some(namespace), labels).await {
            Ok(objects) => self.objects.extend(objects),
            Err(ClusterReadError::Forbidden(_)) => {
                self.hidden.push(HiddenKind {
                    kind: kind.kind.to_string(),
                    readable_namespaces: Vec::new(),
                });
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn add_in_namespaces(
        &mut self,
        cluster: &impl ClusterHandle,
        kind: &Resource,
        labels: Option<&str>,
        namespaces: &BTreeSet<String>,
    ) -> Result<(), Cause> {
        let mut seen_in = Vec::new();
        for namespace in namespaces {
            match cluster.list(kind, Some(namespace), labels).await {
                Ok(objects) => {
                    self.objects.extend(objects);
                    seen_in.push(namespace.clone());
                }
                Err(ClusterReadError::Forbidden(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.hidden.push(HiddenKind { kind: kind.kind.to_string(), readable_namespaces: seen_in });
        Ok(())
    }

    /// Whether a namespace may have unlisted objects of a kind.
    pub fn may_hide(&self, kind: &Resource, namespace: &str) -> bool {
        self.hidden.iter().any(|hidden_kind| {
            hidden_kind.kind == kind.kind
                && !hidden_kind.readable_namespaces.iter().any(|seen| seen == namespace)
        })
    }
}

/// The namespaces of the catalogs that the Subscriptions of a namespace name or see, and the namespace
/// itself.
pub fn namespaces_of_catalogs(objects: &[Object], namespace: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::from([namespace.to_owned()]);
    let subscriptions = objects
        .iter()
        .filter(|object| object.kind() == "Subscription" && object.namespace() == namespace);
    for subscription in subscriptions {
        all.extend(catalogs_of(subscription).into_iter().map(|(namespace, _)| namespace));
    }
    all
}
