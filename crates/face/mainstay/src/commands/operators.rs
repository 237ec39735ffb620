//! `extension`, `why` and `uninstall`: run the commands with the cluster that they work on.

use super::with_process_io;
use crate::remote::{ClusterSelector, RemoteCluster};
use mainstay_command::exit::ExitStatus;
use mainstay_operators::extension::{self, ExtensionArguments, RequestTimeout};
use mainstay_operators::uninstall::{self, UninstallArguments};
use mainstay_operators::why::{self, WhyArguments};
use std::time::Duration;

/// How long a cluster may take to respond to `uninstall`.
const UNINSTALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs one of the commands about ClusterExtensions.
pub(crate) async fn extension(arguments: &ExtensionArguments) -> ExitStatus {
    with_process_io(async |io| {
        extension::run(arguments, io, async |cluster, timeout| {
            let remote = RemoteCluster::connect(&ClusterSelector {
                cluster,
                timeout: timeout.duration(),
                name: "mainstay-extension",
                remedy: "name its kubeconfig with --kubeconfig FILE",
            })
            .await?;
            Ok(match timeout {
                RequestTimeout::Flag(_) => remote,
                RequestTimeout::Fixed(_) => remote.without_timeout_flag(),
            })
        })
        .await
    })
    .await
}

/// Runs `why`.
pub(crate) async fn why(arguments: &WhyArguments) -> ExitStatus {
    with_process_io(async |io| {
        why::run(arguments, io, async || {
            RemoteCluster::connect(&ClusterSelector {
                cluster: &arguments.connection.cluster,
                timeout: arguments.connection.timeout(),
                name: "mainstay-why",
                remedy: "name its kubeconfig with --kubeconfig FILE, or give a saved state with --state FILE",
            })
            .await
        })
        .await
    })
    .await
}

/// Runs `uninstall`.
pub(crate) async fn uninstall(arguments: &UninstallArguments) -> ExitStatus {
    with_process_io(async |io| {
        uninstall::run(arguments, io, async || {
            RemoteCluster::connect(&ClusterSelector {
                cluster: &arguments.cluster,
                timeout: UNINSTALL_TIMEOUT,
                name: "mainstay-uninstall",
                remedy: "name its kubeconfig with --kubeconfig FILE",
            })
            .await
        })
        .await
    })
    .await
}
