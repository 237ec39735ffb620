//! `catalog`, `bundle`, `image` and `extension`: run the commands with this process's standard streams, current
//! folder and environment.

use crate::remote::{ClusterSelector, RemoteCluster};
use mainstay_cli::bundle::{self, BundleArguments};
use mainstay_cli::catalog::{self, CatalogArguments, CatalogCommandIo};
use mainstay_cli::cluster::ConnectionArguments;
use mainstay_cli::exit::{CommandFailure, ExitStatus};
use mainstay_cli::extension::{self, ExtensionArguments, ExtensionCommandIo, RequestTimeout};
use mainstay_cli::image::{self, ImageArguments};
use mainstay_cli::report;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};

/// Runs one of the commands about catalogs.
pub(crate) async fn run(arguments: CatalogArguments) -> ExitStatus {
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
pub(crate) async fn run_bundle(arguments: BundleArguments) -> ExitStatus {
    with_process_io(async |io| bundle::run(arguments, io).await).await
}

/// Runs one of the commands about images.
pub(crate) async fn run_image(arguments: ImageArguments) -> ExitStatus {
    with_process_io(async |io| image::run(arguments, io).await).await
}

/// Runs one of the commands about ClusterExtensions.
pub(crate) async fn run_extension(arguments: &ExtensionArguments) -> ExitStatus {
    with_process_io(async |streams| {
        let stdin = io::stdin();
        let interactive = stdin.is_terminal();
        let streams = CatalogCommandIo {
            stdout: &mut *streams.stdout,
            stderr: &mut *streams.stderr,
            folder: streams.folder.clone(),
            colour: streams.colour,
            terminal: streams.terminal,
            variable: streams.variable,
        };
        let mut io = ExtensionCommandIo { streams, stdin: &mut stdin.lock(), interactive };
        extension::run(arguments, &mut io, async |cluster, timeout| {
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

/// Prints bytes unchanged.
pub(crate) fn print(bytes: &[u8]) -> ExitStatus {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // A reader that closes the pipe has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitStatus::Failed,
        _ => ExitStatus::Done,
    }
}

async fn with_process_io(
    command: impl AsyncFnOnce(&mut CatalogCommandIo<'_>) -> ExitStatus,
) -> ExitStatus {
    let colour = report::colours_on_stdout();
    let mut stdout = BufWriter::new(io::stdout().lock());
    let folder = std::env::current_dir().unwrap_or_default();
    let mut stderr = io::stderr();
    command(&mut CatalogCommandIo {
        stdout: &mut stdout,
        stderr: &mut stderr,
        folder,
        colour,
        terminal: io::stderr().is_terminal(),
        variable: &mainstay_cli::config::variable,
    })
    .await
}
