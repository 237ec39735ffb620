//! `resolve`: hands this process's outside to the command.

use mainstay_cli::exit::Exit;
use mainstay_cli::report;
use mainstay_cli::resolve::{self, Io, ResolveArguments};
use std::io::{self, BufWriter};

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
    resolve::run(arguments, &mut io)
}
