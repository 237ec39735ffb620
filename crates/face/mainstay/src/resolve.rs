//! `resolve`: hands this process's outside to the command: files, a cluster, registries.

mod registry;

use crate::embedded::chain;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use mainstay_api::names;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_cause::Cause;
use mainstay_cli::exit::Exit;
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

/// How long a cluster may take to answer. An administrator rather reads that it does not.
const PATIENCE: Duration = Duration::from_secs(30);

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
}

impl Live {
    fn connect(arguments: &ResolveArguments) -> Result<Self, Cause> {
        let refuse = |error: &dyn Error| unreachable(chain(error));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| refuse(&error))?;
        // Only fails if there is one already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = KubeConfigOptions {
            context: arguments.context().map(str::to_owned),
            ..KubeConfigOptions::default()
        };
        let (client, url) = runtime.block_on(async {
            let mut config = match arguments.kubeconfig() {
                Some(file) => {
                    let file = Kubeconfig::read_from(file).map_err(|error| refuse(&error))?;
                    Config::from_custom_kubeconfig(file, &options)
                        .await
                        .map_err(|it| refuse(&it))?
                }
                None if options.context.is_some() => {
                    Config::from_kubeconfig(&options).await.map_err(|error| refuse(&error))?
                }
                None => Config::infer().await.map_err(|error| {
                    let why = "no usable kubeconfig was found, and this is not inside of a cluster";
                    tracing::info!(%error, "no cluster");
                    unreachable(Cause::new(why))
                })?,
            };
            config.connect_timeout = Some(PATIENCE);
            config.read_timeout = Some(PATIENCE);
            let url = config.cluster_url.to_string();
            let client = kube::Client::try_from(config).map_err(|error| refuse(&error))?;
            Ok::<_, Cause>((client, url))
        })?;
        Ok(Self { runtime, cluster: Cluster::new(client).named("mainstay-resolve"), url })
    }
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
            let listed = self.cluster.list_pages(kind, None, &params);
            let list = self.runtime.block_on(listed).map_err(|error| {
                let what = format!("the {} of {} cannot be read", kind.plural, self.url);
                let cause = Cause::new(what).because(chain(&error));
                if error.is_not_found() {
                    cause.remedy("install Operator Lifecycle Manager, or look at another cluster")
                } else {
                    cause
                }
            })?;
            all.extend(list.items);
        }
        // Few clusters have OLM v1.
        for kind in [&CLUSTER_EXTENSION, &CLUSTER_CATALOG] {
            let params = ListParams::default();
            let listed = self.cluster.list_pages(kind, None, &params);
            match self.runtime.block_on(listed) {
                Ok(list) => all.extend(list.items),
                Err(error) if error.is_not_found() => {}
                // Who looks after a namespace need not see what belongs to the cluster.
                Err(error) if error.is_forbidden() => {
                    tracing::info!(%error, "{} are left out", kind.plural);
                }
                Err(error) => {
                    let what = format!("the {} of the cluster cannot be read", kind.plural);
                    return Err(Cause::new(what).because(chain(&error)));
                }
            }
        }
        Ok(all)
    }

    fn kube_version(&mut self) -> Option<String> {
        let version = self.runtime.block_on(self.cluster.get_raw("/version")).ok()?;
        version.get("gitVersion").and_then(Value::as_str).map(str::to_owned)
    }

    fn catalog(&mut self, address: &str) -> Result<CatalogData, Cause> {
        self.runtime.block_on(registry::read(address))
    }
}
