//! `opm`: hands the process to the other command line.

use mainstay_cli::opm::{self, Io};
use mainstay_clock::Clock;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

/// The arguments for `opm`, if that is what this process was started as: under its name, or as
/// `mainstay opm …`. Nothing else reads the arguments then, so that none of them means something
/// else here.
pub(crate) fn arguments() -> Option<Vec<String>> {
    let mut all = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let by_name = all.next().is_some_and(|program| opm::is_name(&program));
    (by_name || all.next().is_some_and(|first| first == "opm")).then(|| all.collect())
}

/// Runs `opm` on this process's outside.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let mut stdout = BufWriter::new(io::stdout().lock());
    let mut stderr = io::stderr();
    let terminal = stderr.is_terminal();
    let code = opm::run(
        arguments,
        &mut Io {
            stdin: &mut io::stdin(),
            stdout: &mut stdout,
            stderr: &mut stderr,
            folder: std::env::current_dir().unwrap_or_default(),
            alpha: opm::shows_alpha(),
            terminal,
            clock: Clock::system(),
            environment: &variable,
        },
    );
    // Who reads has gone away if this fails.
    let _ = stdout.flush();
    ExitCode::from(code)
}

/// A variable of the environment; one that is no text is not there.
#[expect(clippy::disallowed_methods, reason = "the environment is read by the command line")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
