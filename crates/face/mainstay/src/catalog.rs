//! `catalog`, `bundle` and `image`: run the commands with this process's standard streams, current
//! folder and environment.

use mainstay_cli::bundle::{self, BundleArguments};
use mainstay_cli::catalog::{self, CatalogArguments, Io};
use mainstay_cli::exit::Exit;
use mainstay_cli::image::{self, ImageArguments};
use mainstay_cli::report;
use std::io::{self, BufWriter, IsTerminal as _, Write as _};

/// Runs one of the commands about catalogs.
pub(crate) async fn run(arguments: CatalogArguments) -> Exit {
    with_process_io(async |io| catalog::run(arguments, io).await).await
}

/// Runs one of the commands about bundles.
pub(crate) async fn run_bundle(arguments: BundleArguments) -> Exit {
    with_process_io(async |io| bundle::run(arguments, io).await).await
}

/// Runs one of the commands about images.
pub(crate) async fn run_image(arguments: ImageArguments) -> Exit {
    with_process_io(async |io| image::run(arguments, io).await).await
}

/// Prints bytes unchanged.
pub(crate) fn print(bytes: &[u8]) -> Exit {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        // A reader that closes the pipe has read enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Exit::Failed,
        _ => Exit::Done,
    }
}

async fn with_process_io(command: impl AsyncFnOnce(&mut Io<'_>) -> Exit) -> Exit {
    let colour = report::colours_on_stdout();
    let mut stdout = BufWriter::new(io::stdout().lock());
    let folder = std::env::current_dir().unwrap_or_default();
    let mut stderr = io::stderr();
    command(&mut Io {
        stdout: &mut stdout,
        stderr: &mut stderr,
        folder,
        colour,
        terminal: io::stderr().is_terminal(),
        variable: &mainstay_cli::config::variable,
    })
    .await
}
