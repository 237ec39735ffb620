//! `crd`, `resolve`, `why` and `uninstall`: run the commands with this process's standard streams, current
//! folder and cluster.

use crate::remote::{ClusterSelector, RemoteCluster};
use mainstay_cli::cluster::ConnectionArguments;
use mainstay_cli::crd::{self, CrdArguments, CrdCommand};
use mainstay_cli::exit::ExitStatus;
use mainstay_cli::report;
use mainstay_cli::resolve::{self, CommandIo, ResolveArguments};
use mainstay_cli::uninstall::{self, UninstallArguments};
use mainstay_cli::why::{self, WhyArguments};
use std::io::{self, BufWriter};
use std::time::Duration;

/// How long a cluster may take to respond to `uninstall`.
const UNINSTALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `resolve`.
pub(crate) async fn run(arguments: &ResolveArguments) -> ExitStatus {
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
                timeout: connection.map_or(UNINSTALL_TIMEOUT, ConnectionArguments::timeout),
                name: "mainstay-crd",
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

async fn with_process_io(run: impl AsyncFnOnce(&mut CommandIo<'_>) -> ExitStatus) -> ExitStatus {
    let mut stdout = BufWriter::new(io::stdout().lock());
    let mut io = CommandIo {
        stdin: &mut io::stdin().lock(),
        stdout: &mut stdout,
        stderr: &mut io::stderr(),
        folder: std::env::current_dir().unwrap_or_default(),
        colour: report::colours_on_stdout(),
    };
    run(&mut io).await
}
