//! A cluster that is there, for commands that only look: found as kubectl finds it, asked within a
//! time.

mod registry;

use crate::embedded::chain;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use mainstay_cause::Cause;
use mainstay_cli::cluster::{ClusterArguments, Remote, Unread};
use mainstay_cli::config::{kubeconfig_variable, own_kubeconfig};
use mainstay_cli::exit::Failure;
use mainstay_cli::uninstall;
use mainstay_client::{Cluster, DeleteOptions, ListParams, Selection, WatchEvent};
use mainstay_object::{Object, Resource};
use mainstay_removal::Step;
use mainstay_resolver::universe::CatalogData;
use std::error::Error;
use std::time::Duration;
use tokio::runtime::Runtime;

const NAMESPACE: Resource = Resource::cluster("", "v1", "Namespace", "namespaces");

/// How a cluster is found, and who asks.
pub(crate) struct Reach<'a> {
    pub(crate) cluster: &'a ClusterArguments,
    pub(crate) patience: Duration,
    /// What the command is called in requests.
    pub(crate) name: &'static str,
    /// What people can do where there is no cluster.
    pub(crate) otherwise: &'static str,
}

/// A cluster that is there.
pub(crate) struct Live {
    runtime: Runtime,
    cluster: Cluster,
    /// Where it is.
    url: String,
    /// How long it, or a registry, may take to answer.
    patience: Duration,
    /// The namespace of the kubeconfig's context.
    namespace: String,
}

impl Live {
    pub(crate) fn connect(reach: &Reach<'_>) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::from(unreachable(reach, chain(&error))))?;
        // Only fails if there is one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let patience = reach.patience;
        let (client, url, namespace) = runtime.block_on(async {
            let mut config = configured(reach).await?;
            config.connect_timeout = Some(patience);
            config.read_timeout = Some(patience);
            let url = config.cluster_url.to_string();
            let namespace = config.default_namespace.clone();
            let client = kube::Client::try_from(config)
                .map_err(|error| Failure::usage(unusable(reach, chain(&error))))?;
            Ok::<_, Failure>((client, url, namespace))
        })?;
        let cluster = Cluster::new(client).named(reach.name);
        Ok(Self { runtime, cluster, url, patience, namespace })
    }

    /// The object of a name, if the cluster answers in time; none if it is not there.
    fn find_in_time(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, Listed> {
        let found = self.cluster.find(kind, namespace, name);
        let limited = async { tokio::time::timeout(self.patience, found).await };
        match self.runtime.block_on(limited) {
            Ok(found) => found.map_err(Listed::Refused),
            Err(_) => Err(Listed::Late),
        }
    }

    /// Reads every object of a kind. `None` if the cluster does not know the kind.
    fn list(
        &self,
        kind: &Resource,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> Result<Vec<Object>, Listed> {
        let listed = self.cluster.list_pages(kind, namespace, params);
        let limited = async { tokio::time::timeout(self.patience, listed).await };
        match self.runtime.block_on(limited) {
            Ok(Ok(list)) => Ok(list.items),
            Ok(Err(error)) => Err(Listed::Refused(error)),
            Err(_) => Err(Listed::Late),
        }
    }

    /// Says that a kind cannot be read.
    fn unread(&self, kind: &Resource, namespace: Option<&str>, why: &Listed) -> Cause {
        let within = namespace.map(|it| format!(" in namespace {it}")).unwrap_or_default();
        let cause =
            Cause::new(format!("the {}{within} of {} cannot be read", kind.plural, self.url));
        let slow = "see whether it is the right cluster and whether it runs, or give it longer with --timeout SECONDS";
        match why {
            Listed::Late => {
                let seconds = self.patience.as_secs();
                cause
                    .because(Cause::new(format!("it did not answer within {seconds} s")))
                    .remedy(slow)
            }
            Listed::Refused(error) => {
                let cause = cause.because(chain(error));
                if error.is_not_found() {
                    cause.remedy("install Operator Lifecycle Manager, or look at another cluster")
                } else if error.is_forbidden() {
                    let place = namespace.map_or_else(
                        || "every namespace".to_owned(),
                        |namespace| format!("namespace {namespace}"),
                    );
                    cause.remedy(format!("look at it as somebody who may list them in {place}"))
                } else {
                    cause.remedy(slow)
                }
            }
        }
    }
}

/// The cluster that the arguments name, and where it is, for who stays on it.
pub(crate) async fn reached(reach: &Reach<'_>) -> Result<(Cluster, String), Failure> {
    // Only fails if there is one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = configured(reach).await?;
    config.connect_timeout = Some(reach.patience);
    let url = config.cluster_url.to_string();
    let client = kube::Client::try_from(config)
        .map_err(|error| Failure::usage(unusable(reach, chain(&error))))?;
    Ok((Cluster::new(client).named(reach.name), url))
}

/// Why there is no list.
enum Listed {
    Refused(mainstay_client::Error),
    /// There was no answer in time.
    Late,
}

/// The configuration that the arguments name, or that kubectl would find.
async fn configured(reach: &Reach<'_>) -> Result<Config, Failure> {
    // What follows the first line shows the text of the file, which is full of secrets.
    let first = |error: &dyn Error| {
        Cause::new(error.to_string().lines().next().unwrap_or_default().to_owned())
    };
    let refuse = |error: &dyn Error| Failure::usage(unusable(reach, first(error)));
    let context = reach.cluster.context.clone();
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let named = reach.cluster.kubeconfig.as_ref();
    if let Some(file) = named {
        let file = Kubeconfig::read_from(file).map_err(|error| refuse(&error))?;
        return Config::from_custom_kubeconfig(file, &options).await.map_err(|it| refuse(&it));
    }
    if options.context.is_some() || kubeconfig_variable().is_some() {
        return Config::from_kubeconfig(&options).await.map_err(|error| refuse(&error));
    }
    let error = match Config::infer().await {
        Ok(config) => return Ok(config),
        Err(error) => error,
    };
    // Who has no other cluster means the one that `mainstay up` brought up.
    if let Some(file) = own_kubeconfig() {
        tracing::info!(kubeconfig = %file.display(), "the cluster of `mainstay up`");
        let file = Kubeconfig::read_from(file).map_err(|error| refuse(&error))?;
        return Config::from_custom_kubeconfig(file, &options).await.map_err(|it| refuse(&it));
    }
    let why = "no usable kubeconfig was found, and this is not inside of a cluster";
    tracing::info!(%error, "no cluster");
    Err(Failure::usage(unreachable(reach, Cause::new(why))))
}

/// Says that the kubeconfig cannot be used, and which one that is.
fn unusable(reach: &Reach<'_>, why: Cause) -> Cause {
    let named = reach.cluster.kubeconfig.clone().or_else(kubeconfig_variable);
    let file = named.map_or_else(|| "~/.kube/config".to_owned(), |it| it.display().to_string());
    Cause::new(format!("the kubeconfig {file} cannot be used"))
        .because(why)
        .remedy("correct it, or name another one with --kubeconfig FILE or --context NAME")
}

fn unreachable(reach: &Reach<'_>, why: Cause) -> Cause {
    Cause::new("the cluster cannot be looked at").because(why).remedy(reach.otherwise)
}

impl Remote for Live {
    fn of_kind(
        &mut self,
        kind: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Object>, Unread> {
        let params = labels.map_or_else(ListParams::default, ListParams::labels);
        self.list(kind, namespace, &params).map_err(|why| {
            let cause = self.unread(kind, namespace, &why);
            match why {
                Listed::Refused(error) if error.is_not_found() => Unread::Unserved(cause),
                Listed::Refused(error) if error.is_forbidden() => Unread::Forbidden(cause),
                _ => Unread::Failed(cause),
            }
        })
    }

    fn named(
        &mut self,
        kind: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Object>, Unread> {
        self.find_in_time(kind, Some(namespace), name).map_err(|why| {
            let cause = self.unread(kind, Some(namespace), &why);
            match why {
                Listed::Refused(error) if error.is_forbidden() => Unread::Forbidden(cause),
                _ => Unread::Failed(cause),
            }
        })
    }

    fn namespace(&self) -> String {
        self.namespace.clone()
    }

    fn kube_version(&mut self) -> Option<String> {
        let version = self.cluster.server_version();
        let limited = async { tokio::time::timeout(self.patience, version).await };
        self.runtime.block_on(limited).ok()?
    }

    fn namespaces(&mut self) -> Option<Vec<String>> {
        let items = self.list(&NAMESPACE, None, &ListParams::default()).ok()?;
        Some(items.iter().map(|item| item.name().to_owned()).collect())
    }

    fn catalog(&mut self, address: &str) -> Result<CatalogData, Cause> {
        self.runtime.block_on(registry::read(address, self.patience))
    }
}

impl uninstall::Remote for Live {
    fn of_kind(
        &mut self,
        kind: &Resource,
        namespace: Option<&str>,
        labels: Option<&str>,
    ) -> Result<Vec<Object>, Cause> {
        let params = labels.map_or_else(ListParams::default, ListParams::labels);
        match self.list(kind, namespace, &params) {
            Err(Listed::Refused(error)) if error.is_not_found() => Ok(Vec::new()),
            listed => listed.map_err(|why| self.unread(kind, namespace, &why)),
        }
    }

    fn find(
        &mut self,
        kind: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Object>, Cause> {
        let found = self.find_in_time(kind, namespace, name);
        found.map_err(|why| self.unread(kind, namespace, &why))
    }

    fn delete(&mut self, step: &Step) -> Result<(), Cause> {
        let options = DeleteOptions::uid(&step.uid);
        let namespace = step.namespace.as_deref();
        let deleted = self.cluster.delete(&step.resource, namespace, &step.name, &options);
        match self.runtime.block_on(deleted) {
            // It is gone, or another one of its name is there, which stays.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => {
                let what = format!("{} {} cannot be deleted", step.resource.kind, step.name);
                Err(Cause::new(what).because(chain(&error)))
            }
            Ok(_) => Ok(()),
        }
    }

    fn gone(&mut self, step: &Step, patience: Duration) -> Result<Option<Object>, Cause> {
        let (kind, namespace) = (&step.resource, step.namespace.as_deref());
        let waiting = async {
            let mut selection = Selection::all(kind.clone());
            selection.namespace = step.namespace.clone();
            selection.fields = format!("metadata.name={}", step.name);
            loop {
                let found = self.cluster.find(kind, namespace, &step.name).await?;
                let Some(found) = found.filter(|it| it.uid() == step.uid) else {
                    return Ok::<_, mainstay_client::Error>(());
                };
                let mut watch = self.cluster.watch(&selection, found.resource_version()).await?;
                while let Some(Ok(event)) = watch.next().await {
                    if let WatchEvent::Deleted(_) = event {
                        break;
                    }
                }
            }
        };
        let waited = self.runtime.block_on(async { tokio::time::timeout(patience, waiting).await });
        match waited {
            Ok(Ok(())) => Ok(None),
            Ok(Err(error)) => Err(self.unread(kind, namespace, &Listed::Refused(error))),
            Err(_) => {
                let found = uninstall::Remote::find(self, kind, namespace, &step.name)?;
                Ok(found.filter(|it| it.uid() == step.uid))
            }
        }
    }

    fn namespace(&self) -> String {
        self.namespace.clone()
    }
}
