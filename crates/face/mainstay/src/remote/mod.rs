//! Remote cluster of `catalog`, `extension`, `resolve`, `why`, `uninstall` and `run`: its kubeconfig, found as
//! kubectl finds it, and requests with a time limit.

mod catalog_api;
mod registry;
mod write;

use crate::embedded::chain;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use mainstay_api::resources::{CLUSTER_CATALOG, SUBSCRIPTION};
use mainstay_cause::Cause;
use mainstay_client::{Cluster, DeleteOptions, ObjectList, Selection, WatchEvent};
use mainstay_command::cluster::{
    CatalogEndpoint, CatalogReadError, ClusterArguments, ClusterHandle, ClusterReadError,
    ObjectPage,
};
use mainstay_command::environment::{kubeconfig_variable, own_kubeconfig};
use mainstay_command::exit::CommandFailure;
use mainstay_object::{Object, Resource};
use mainstay_removal::DeletionStep;
use mainstay_resolver::fixture::CatalogData;
use std::error::Error;
use std::time::Duration;

const NAMESPACE: Resource = Resource::cluster("", "v1", "Namespace", "namespaces");

/// Which cluster a command connects to, and under which name.
pub(crate) struct ClusterSelector<'a> {
    pub(crate) cluster: &'a ClusterArguments,
    /// How long the cluster may take to accept a connection; of a [`RemoteCluster`] also how long each
    /// request may take.
    pub(crate) timeout: Duration,
    /// The user agent of requests.
    pub(crate) name: &'static str,
    /// The remedy of the error if no cluster is found.
    pub(crate) remedy: &'static str,
}

/// A remote cluster whose requests have a time limit.
pub(crate) struct RemoteCluster {
    cluster: Cluster,
    /// The address and the credentials of its API server.
    config: Config,
    /// The URL of its API server.
    url: String,
    /// How long the API server, or a registry, may take to respond.
    timeout: Duration,
    /// The namespace of the kubeconfig's context.
    namespace: String,
    /// Whether the flag `--timeout` of the command sets `timeout`.
    has_timeout_flag: bool,
}

impl RemoteCluster {
    /// Connects to the cluster that the arguments name.
    ///
    /// # Errors
    /// If there is no kubeconfig, or it cannot be used. The cluster is not contacted yet.
    pub(crate) async fn connect(selector: &ClusterSelector<'_>) -> Result<Self, CommandFailure> {
        install_tls_provider();
        let timeout = selector.timeout;
        let mut config = load_config(selector).await?;
        config.connect_timeout = Some(timeout);
        config.read_timeout = Some(timeout);
        let url = config.cluster_url.to_string();
        let namespace = config.default_namespace.clone();
        let client = client(selector, config.clone())?;
        let cluster = Cluster::new(client).with_user_agent(selector.name);
        Ok(Self { cluster, config, url, timeout, namespace, has_timeout_flag: true })
    }

    /// The same cluster for a command whose flag `--timeout`, if it has one, does not limit requests.
    pub(crate) fn without_timeout_flag(self) -> Self {
        Self { has_timeout_flag: false, ..self }
    }

    /// Waits for a response within the time limit.
    async fn in_time<T>(
        &self,
        response: impl Future<Output = mainstay_client::Result<T>>,
    ) -> Result<T, RequestError> {
        match tokio::time::timeout(self.timeout, response).await {
            Ok(response) => response.map_err(RequestError::Response),
            Err(_) => Err(RequestError::TimedOut),
        }
    }

    /// Lists every object of a kind, page by page.
    async fn list_pages(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        params: &ObjectList,
    ) -> Result<Vec<Object>, RequestError> {
        let list = self.in_time(self.cluster.list_pages(kind, namespace, params)).await?;
        Ok(list.items)
    }

    /// The error of a failed read: its kind and its text.
    fn read_error(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        why: &RequestError,
    ) -> ClusterReadError {
        let cause = self.read_failure(kind, namespace, why);
        match why {
            RequestError::Response(error) if error.is_not_found() => {
                ClusterReadError::UnknownKind(cause)
            }
            RequestError::Response(error) if error.is_forbidden() => {
                ClusterReadError::Forbidden(cause)
            }
            _ => ClusterReadError::Failed(cause),
        }
    }

    /// The cause that a kind cannot be read.
    fn read_failure(&self, kind: &Resource, namespace: Option<&str>, why: &RequestError) -> Cause {
        let in_namespace =
            namespace.map(|name| format!(" in namespace {name}")).unwrap_or_default();
        let cause =
            Cause::new(format!("the {}{in_namespace} of {} cannot be read", kind.plural, self.url));
        let remedy = if self.has_timeout_flag {
            "check that it is the right cluster and that it runs, or allow more time with --timeout SECONDS"
        } else {
            "check that it is the right cluster and that it runs"
        };
        match why {
            RequestError::TimedOut => {
                let seconds = self.timeout.as_secs();
                cause
                    .because(Cause::new(format!("it did not respond within {seconds} s")))
                    .remedy(remedy)
            }
            RequestError::Response(error) => {
                if error.is_not_found() {
                    return unserved_kind(cause, kind, chain(error));
                }
                let cause = cause.because(chain(error));
                if error.is_forbidden() {
                    let scope = namespace.map_or_else(
                        || "every namespace".to_owned(),
                        |namespace| format!("namespace {namespace}"),
                    );
                    cause.remedy(format!("use an account that may list them in {scope}"))
                } else {
                    cause.remedy(remedy)
                }
            }
        }
    }
}

/// Adds the reason why a cluster does not serve a kind, and the remedy that installs the kind.
fn unserved_kind(cause: Cause, kind: &Resource, why: Cause) -> Cause {
    let other_cluster = "choose another cluster with --kubeconfig FILE or --context NAME";
    if kind.group != SUBSCRIPTION.group && kind.group != CLUSTER_CATALOG.group {
        return cause.because(why).remedy(other_cluster);
    }
    let missing =
        format!("the cluster has no CustomResourceDefinition {}.{}", kind.plural, kind.group);
    cause
        .because(Cause::new(missing).because(why))
        .remedy("start the controllers, which create the CustomResourceDefinitions: mainstay run")
        .remedy("or create these, and an account for controllers in a pod: mainstay manifests | kubectl apply -f -")
        .remedy("or start a cluster of `mainstay up --bare` without --bare")
        .remedy(format!("or {other_cluster}"))
}

/// Connects to the cluster that the arguments name, for a program that watches it: requests have no time
/// limit. Also returns the URL of its API server.
///
/// # Errors
/// If there is no kubeconfig, or it cannot be used. The cluster is not contacted yet.
pub(crate) async fn connect(
    selector: &ClusterSelector<'_>,
) -> Result<(Cluster, String), CommandFailure> {
    install_tls_provider();
    let mut config = load_config(selector).await?;
    config.connect_timeout = Some(selector.timeout);
    let url = config.cluster_url.to_string();
    let cluster = Cluster::new(client(selector, config)?).with_user_agent(selector.name);
    Ok((cluster, url))
}

fn install_tls_provider() {
    // This fails only if a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn client(selector: &ClusterSelector<'_>, config: Config) -> Result<kube::Client, CommandFailure> {
    kube::Client::try_from(config)
        .map_err(|error| CommandFailure::usage(unusable_kubeconfig(selector, chain(&error))))
}

/// Why a request has no result.
enum RequestError {
    /// The cluster refuses it.
    Response(mainstay_client::Error),
    /// The cluster did not answer in time.
    TimedOut,
}

/// The configuration that the arguments name, or that kubectl would find.
async fn load_config(selector: &ClusterSelector<'_>) -> Result<Config, CommandFailure> {
    // Lines after the first quote the file, which has secrets.
    let first_line = |error: &dyn Error| {
        Cause::new(error.to_string().lines().next().unwrap_or_default().to_owned())
    };
    let refuse =
        |error: &dyn Error| CommandFailure::usage(unusable_kubeconfig(selector, first_line(error)));
    let context = selector.cluster.context.clone();
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let given_file = selector.cluster.kubeconfig.as_ref();
    if let Some(file) = given_file {
        let file = Kubeconfig::read_from(file).map_err(|error| refuse(&error))?;
        return Config::from_custom_kubeconfig(file, &options)
            .await
            .map_err(|error| refuse(&error));
    }
    if options.context.is_some() || kubeconfig_variable().is_some() {
        return Config::from_kubeconfig(&options).await.map_err(|error| refuse(&error));
    }
    let error = match Config::infer().await {
        Ok(config) => return Ok(config),
        Err(error) => error,
    };
    // Without another kubeconfig, use that of `mainstay up`.
    if let Some(file) = own_kubeconfig() {
        tracing::info!(kubeconfig = %file.display(), "the cluster of `mainstay up`");
        let file = Kubeconfig::read_from(file).map_err(|error| refuse(&error))?;
        return Config::from_custom_kubeconfig(file, &options)
            .await
            .map_err(|error| refuse(&error));
    }
    let why = "no usable kubeconfig was found, and this process does not run in a pod";
    tracing::info!(%error, "no cluster");
    Err(CommandFailure::usage(no_cluster(selector, Cause::new(why))))
}

/// The cause that the kubeconfig cannot be used, with its file.
fn unusable_kubeconfig(selector: &ClusterSelector<'_>, why: Cause) -> Cause {
    let given_file = selector.cluster.kubeconfig.clone().or_else(kubeconfig_variable);
    let file =
        given_file.map_or_else(|| "~/.kube/config".to_owned(), |file| file.display().to_string());
    Cause::new(format!("the kubeconfig {file} cannot be used"))
        .because(why)
        .remedy("correct it, or name another one with --kubeconfig FILE or --context NAME")
}

fn no_cluster(selector: &ClusterSelector<'_>, why: Cause) -> Cause {
    Cause::new("the cluster cannot be read").because(why).remedy(selector.remedy)
}

impl ClusterHandle for RemoteCluster {
    async fn list(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Object>, ClusterReadError> {
        let params = labels.map_or_else(ObjectList::default, ObjectList::labels);
        let objects = self.list_pages(kind, namespace, &params).await;
        objects.map_err(|why| self.read_error(kind, namespace, &why))
    }

    async fn list_page(
        &self,
        kind: &Resource,
        limit: u32,
        continue_token: &str,
    ) -> Result<ObjectPage, ClusterReadError> {
        let continue_token = continue_token.to_owned();
        let params = ObjectList { limit, continue_token, ..ObjectList::default() };
        let page = self.in_time(self.cluster.list(kind, None, &params)).await;
        let page = page.map_err(|why| self.read_error(kind, None, &why))?;
        Ok(ObjectPage { objects: page.items, continue_token: page.continue_token })
    }

    async fn get(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, ClusterReadError> {
        let found = self.in_time(self.cluster.find(kind, namespace, name)).await;
        found.map_err(|why| self.read_error(kind, namespace, &why))
    }

    async fn delete(&self, step: &DeletionStep) -> Result<(), Cause> {
        let options = DeleteOptions::uid(&step.uid);
        let namespace = step.namespace.as_deref();
        match self.cluster.delete(&step.resource, namespace, &step.name, &options).await {
            // The object is gone, or another one has its name by now and stays.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => {
                let what = format!("{} {} cannot be deleted", step.resource.kind, step.name);
                Err(Cause::new(what).because(chain(&error)))
            }
            Ok(_) => Ok(()),
        }
    }

    async fn wait_until_gone(
        &self,
        step: &DeletionStep,
        timeout: Duration,
    ) -> Result<Option<Object>, Cause> {
        let (kind, namespace) = (&step.resource, step.namespace.as_deref());
        match tokio::time::timeout(timeout, wait_for_deletion(&self.cluster, step)).await {
            Ok(Ok(())) => Ok(None),
            Ok(Err(error)) => {
                Err(self.read_failure(kind, namespace, &RequestError::Response(error)))
            }
            Err(_) => {
                let found = self.get(kind, namespace, &step.name).await?;
                Ok(found.filter(|object| object.uid() == step.uid))
            }
        }
    }

    fn default_namespace(&self) -> &str {
        &self.namespace
    }

    async fn kube_version(&self) -> Option<String> {
        tokio::time::timeout(self.timeout, self.cluster.server_version()).await.ok()?
    }

    async fn namespaces(&self) -> Option<Vec<String>> {
        let items = self.list_pages(&NAMESPACE, None, &ObjectList::default()).await.ok()?;
        Some(items.iter().map(|item| item.name().to_owned()).collect())
    }

    async fn read_catalog(&self, address: &str) -> Result<CatalogData, Cause> {
        registry::read(address, self.timeout).await
    }

    async fn read_cluster_catalog(
        &self,
        server: &CatalogEndpoint,
        path: &str,
    ) -> Result<Vec<u8>, CatalogReadError> {
        catalog_api::read(&self.config, server, path, self.timeout).await
    }
}

/// Watches the object of a removal step until it is gone, or another object has its name.
async fn wait_for_deletion(cluster: &Cluster, step: &DeletionStep) -> mainstay_client::Result<()> {
    let mut selection = Selection::all(step.resource.clone());
    selection.namespace = step.namespace.clone();
    selection.fields = format!("metadata.name={}", step.name);
    loop {
        let found = cluster.find(&step.resource, step.namespace.as_deref(), &step.name).await?;
        let Some(found) = found.filter(|object| object.uid() == step.uid) else {
            return Ok(());
        };
        let mut watch = cluster.watch(&selection, found.resource_version()).await?;
        while let Some(Ok(event)) = watch.next().await {
            if let WatchEvent::Deleted(_) = event {
                break;
            }
        }
    }
}
