//! Runs commands with the standard streams, the current folder and the environment of this process.

pub(crate) mod content;
pub(crate) mod operators;

use mainstay_command::exit::ExitStatus;
use mainstay_command::io::CommandIo;
use mainstay_command::{environment, report};
use std::io::{self, BufWriter, IsTerminal as _, Write as _};

/// Runs a command with the standard streams, the current folder and the environment of this process.
async fn with_process_io(
    command: impl AsyncFnOnce(&mut CommandIo<'_>) -> ExitStatus,
) -> ExitStatus {
    let mut stdout = BufWriter::new(io::stdout().lock());
    let stdin = io::stdin();
    command(&mut CommandIo {
        stdin: &mut stdin.lock(),
        interactive: io::stdin().is_terminal(),
        stdout: &mut stdout,
        stderr: &mut io::stderr(),
        folder: std::env::current_dir().unwrap_or_default(),
        colour: report::colours_on_stdout(),
        terminal: io::stderr().is_terminal(),
        variable: &environment::variable,
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
