//! `catalog`, `bundle`, `image`, `crd` and `resolve`: run the commands with the clusters that they read.

use super::with_process_io;
use crate::remote::{ClusterSelector, RemoteCluster};
use mainstay_command::cluster::ConnectionArguments;
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_content::bundle::{self, BundleArguments};
use mainstay_content::catalog::{self, CatalogArguments};
use mainstay_content::crd::{self, CrdArguments, CrdCommand};
use mainstay_content::image::{self, ImageArguments};
use mainstay_content::resolve::{self, ResolveArguments};
use std::time::Duration;

/// How long a cluster may take to respond where no flag says so.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs one of the commands about catalogs.
pub(crate) async fn catalog(arguments: CatalogArguments) -> ExitStatus {
    with_process_io(async |io| catalog::run(arguments, io, connect).await).await
}

/// Connects to the cluster of a ClusterCatalog.
async fn connect(connection: &ConnectionArguments) -> Result<RemoteCluster, CommandFailure> {
    RemoteCluster::connect(&ClusterSelector {
        cluster: &connection.cluster,
        timeout: connection.timeout(),
        name: "mainstay-catalog",
        remedy: "name its kubeconfig with --kubeconfig FILE, or name the folder of a catalog",
    })
    .await
}

/// Runs one of the commands about bundles.
pub(crate) async fn bundle(arguments: BundleArguments) -> ExitStatus {
    with_process_io(async |io| bundle::run(arguments, io).await).await
}

/// Runs one of the commands about images.
pub(crate) async fn image(arguments: ImageArguments) -> ExitStatus {
    with_process_io(async |io| image::run(arguments, io).await).await
}

/// Runs `resolve`.
pub(crate) async fn resolve(arguments: &ResolveArguments) -> ExitStatus {
    with_process_io(async |io| {
        resolve::run(arguments, io, async || {
            RemoteCluster::connect(&ClusterSelector {
                cluster: &arguments.connection.cluster,
                timeout: arguments.connection.timeout(),
                name: "mainstay-resolve",
                remedy: "name its kubeconfig with --kubeconfig FILE, give a saved state with --state FILE, or name packages and a --catalog to resolve without a cluster",
            })
            .await
        })
        .await
    })
    .await
}

/// Runs `crd`.
pub(crate) async fn crd(arguments: &CrdArguments) -> ExitStatus {
    let connection = match &arguments.command {
        CrdCommand::Diff(_) => None,
        CrdCommand::Check(arguments) => Some(&arguments.connection),
    };
    with_process_io(async |io| {
        crd::run(arguments, io, async || {
            let cluster = connection.map(|connection| connection.cluster.clone());
            RemoteCluster::connect(&ClusterSelector {
                cluster: &cluster.unwrap_or_default(),
                timeout: connection.map_or(RESPONSE_TIMEOUT, ConnectionArguments::timeout),
                name: "mainstay-crd",
                remedy: "name its kubeconfig with --kubeconfig FILE, or give a saved state with --state FILE",
            })
            .await
        })
        .await
    })
    .await
}
