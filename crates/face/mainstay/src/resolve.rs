//! `resolve`: hands this process's outside to the command: files, a cluster, registries.

mod registry;

use crate::embedded::chain;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use mainstay_api::names;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_cause::Cause;
use mainstay_cli::config::kubeconfig_variable;
use mainstay_cli::exit::{Exit, Failure};
use mainstay_cli::report;
use mainstay_cli::resolve::{self, Io, Remote, ResolveArguments};
use mainstay_client::{Cluster, ListParams};
use mainstay_object::{Object, Resource};
use mainstay_resolver::universe::CatalogData;
use serde_json::Value;
use std::error::Error;
use std::io::{self, BufWriter};
use std::time::Duration;
use tokio::runtime::Runtime;

const NAMESPACE: Resource = Resource::cluster("", "v1", "Namespace", "namespaces");

/// What is to be installed, in OLM v1.
const CLUSTER_EXTENSION: Resource =
    Resource::cluster("olm.operatorframework.io", "v1", "ClusterExtension", "clusterextensions");
/// Where it comes from.
const CLUSTER_CATALOG: Resource =
    Resource::cluster("olm.operatorframework.io", "v1", "ClusterCatalog", "clustercatalogs");

/// Runs the command.
pub(crate) fn run(arguments: &ResolveArguments) -> Exit {
    let mut stdout = BufWriter::new(io::stdout().lock());
    let mut io = Io {
        stdin: &mut io::stdin().lock(),
        stdout: &mut stdout,
        stderr: &mut io::stderr(),
        folder: std::env::current_dir().unwrap_or_default(),
        colour: report::colours_on_stdout(),
    };
    resolve::run(arguments, &mut io, &mut || {
        let live = Live::connect(arguments)?;
        Ok(Box::new(live))
    })
}

/// A cluster that is there.
struct Live {
    runtime: Runtime,
    cluster: Cluster,
    /// Where it is.
    url: String,
    /// How long it, or a registry, may take to answer.
    patience: Duration,
}

impl Live {
    fn connect(arguments: &ResolveArguments) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Failure::from(unreachable(chain(&error))))?;
        // Only fails if there is one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let patience = arguments.timeout();
        let (client, url) = runtime.block_on(async {
            let mut config = configured(arguments).await?;
            config.connect_timeout = Some(patience);
            config.read_timeout = Some(patience);
            let url = config.cluster_url.to_string();
            let client = kube::Client::try_from(config)
                .map_err(|error| Failure::usage(unusable(arguments, chain(&error))))?;
            Ok::<_, Failure>((client, url))
        })?;
        let cluster = Cluster::new(client).named("mainstay-resolve");
        Ok(Self { runtime, cluster, url, patience })
    }

    /// Reads every object of a kind. `None` if the cluster does not know the kind.
    fn list(&self, kind: &Resource, params: &ListParams) -> Result<Vec<Object>, Listed> {
        let listed = self.cluster.list_pages(kind, None, params);
        let limited = async { tokio::time::timeout(self.patience, listed).await };
        match self.runtime.block_on(limited) {
            Ok(Ok(list)) => Ok(list.items),
            Ok(Err(error)) => Err(Listed::Refused(error)),
            Err(_) => Err(Listed::Late),
        }
    }

    /// Says that a kind cannot be read.
    fn unread(&self, kind: &Resource, why: &Listed) -> Cause {
        let cause = Cause::new(format!("the {} of {} cannot be read", kind.plural, self.url));
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
                    cause.remedy("look at it as somebody who may list them in every namespace")
                } else {
                    cause.remedy(slow)
                }
            }
        }
    }
}

/// Why there is no list.
enum Listed {
    Refused(mainstay_client::Error),
    /// There was no answer in time.
    Late,
}

/// The configuration that the arguments name, or that kubectl would find.
async fn configured(arguments: &ResolveArguments) -> Result<Config, Failure> {
    // What follows the first line shows the text of the file, which is full of secrets.
    let first = |error: &dyn Error| {
        Cause::new(error.to_string().lines().next().unwrap_or_default().to_owned())
    };
    let refuse = |error: &dyn Error| Failure::usage(unusable(arguments, first(error)));
    let context = arguments.context().map(str::to_owned);
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    let named = arguments.kubeconfig();
    if let Some(file) = named {
        let file = Kubeconfig::read_from(file).map_err(|error| refuse(&error))?;
        return Config::from_custom_kubeconfig(file, &options).await.map_err(|it| refuse(&it));
    }
    if options.context.is_some() || kubeconfig_variable().is_some() {
        return Config::from_kubeconfig(&options).await.map_err(|error| refuse(&error));
    }
    Config::infer().await.map_err(|error| {
        let why = "no usable kubeconfig was found, and this is not inside of a cluster";
        tracing::info!(%error, "no cluster");
        Failure::usage(unreachable(Cause::new(why)))
    })
}

/// Says that the kubeconfig cannot be used, and which one that is.
fn unusable(arguments: &ResolveArguments, why: Cause) -> Cause {
    let named = arguments.kubeconfig().cloned().or_else(kubeconfig_variable);
    let file = named.map_or_else(|| "~/.kube/config".to_owned(), |it| it.display().to_string());
    Cause::new(format!("the kubeconfig {file} cannot be used"))
        .because(why)
        .remedy("correct it, or name another one with --kubeconfig FILE or --context NAME")
}

fn unreachable(why: Cause) -> Cause {
    Cause::new("the cluster cannot be looked at").because(why).remedy(
        "name its kubeconfig with --kubeconfig FILE, give a saved state with --state FILE, or name \
         packages and a --catalog to do without a cluster",
    )
}

impl Remote for Live {
    fn objects(&mut self) -> Result<Vec<Object>, Cause> {
        let mut all = Vec::new();
        for kind in [&CATALOG_SOURCE, &OPERATOR_GROUP, &SUBSCRIPTION, &CLUSTER_SERVICE_VERSION] {
            // Copies of versions are many, large, and of no meaning here.
            let params = if *kind == CLUSTER_SERVICE_VERSION {
                ListParams::labels(format!("!{}", names::COPIED_FROM))
            } else {
                ListParams::default()
            };
            all.extend(self.list(kind, &params).map_err(|why| self.unread(kind, &why))?);
        }
        // Few clusters have OLM v1.
        for kind in [&CLUSTER_EXTENSION, &CLUSTER_CATALOG] {
            match self.list(kind, &ListParams::default()) {
                Ok(items) => all.extend(items),
                Err(Listed::Refused(error)) if error.is_not_found() => {}
                // Who looks after a namespace need not see what belongs to the cluster.
                Err(Listed::Refused(error)) if error.is_forbidden() => {
                    tracing::info!(%error, "{} are left out", kind.plural);
                }
                Err(why) => return Err(self.unread(kind, &why)),
            }
        }
        Ok(all)
    }

    fn kube_version(&mut self) -> Option<String> {
        let asked = self.cluster.get_raw("/version");
        let limited = async { tokio::time::timeout(self.patience, asked).await };
        let version = self.runtime.block_on(limited).ok()?.ok()?;
        version.get("gitVersion").and_then(Value::as_str).map(str::to_owned)
    }

    fn namespaces(&mut self) -> Option<Vec<String>> {
        let items = self.list(&NAMESPACE, &ListParams::default()).ok()?;
        Some(items.iter().map(|item| item.name().to_owned()).collect())
    }

    fn catalog(&mut self, address: &str) -> Result<CatalogData, Cause> {
        self.runtime.block_on(registry::read(address, self.patience))
    }
}
