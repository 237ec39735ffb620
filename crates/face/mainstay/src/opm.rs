//! `opm` and `operator-sdk`: hands the process to the other command line that its name means.

use mainstay_clock::Clock;
use mainstay_opm::{self as opm, Io, sdk};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

/// Runs the other command line that this process was started for, if it was: by its name, or for `opm`
/// as `mainstay opm …`. Nothing else reads the arguments then, so that none of them means something
/// else here.
pub(crate) fn started() -> Option<ExitCode> {
    let mut all = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let program = all.next().unwrap_or_default();
    if sdk::is_name(&program) {
        return Some(hand_over(sdk::run, &all.collect::<Vec<_>>()));
    }
    let is_opm = opm::is_name(&program) || all.next().is_some_and(|first| first == "opm");
    is_opm.then(|| run(&all.collect::<Vec<_>>()))
}

/// Runs `opm` on this process's outside.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    hand_over(opm::run, arguments)
}

fn hand_over(program: fn(&[String], &mut Io<'_>) -> u8, arguments: &[String]) -> ExitCode {
    let mut stdout = BufWriter::new(io::stdout().lock());
    let mut stderr = io::stderr();
    let terminal = stderr.is_terminal();
    let code = program(
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
