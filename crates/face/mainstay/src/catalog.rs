//! `catalog`: hands this process's outside to the commands about catalogs.

use mainstay_cli::catalog::{self, CatalogArguments, Io};
use mainstay_cli::exit::Exit;
use mainstay_cli::report;
use std::io::{self, BufWriter};

/// Runs one of the commands.
pub(crate) fn run(arguments: CatalogArguments) -> Exit {
    let colour = report::colours_on_stdout();
    let mut stdout = BufWriter::new(io::stdout().lock());
    let folder = std::env::current_dir().unwrap_or_default();
    let mut stderr = io::stderr();
    catalog::run(arguments, &mut Io { stdout: &mut stdout, stderr: &mut stderr, folder, colour })
}
