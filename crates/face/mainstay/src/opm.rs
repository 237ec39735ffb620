//! `opm` and `operator-sdk`: the other command lines of this binary, chosen by the program's name.

use crate::Threads;
use mainstay_clock::Clock;
use mainstay_opm::{self as opm, CommandIo, sdk};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

/// A command line that is not `mainstay`'s own.
pub(crate) struct CommandLine {
    program: Program,
    arguments: Vec<String>,
}

/// The program of a command line.
enum Program {
    Opm,
    OperatorSdk,
}

/// The other command line of this process, if it has one: by the program's name, or for `opm` as
/// `mainstay opm …`. No other parser reads its arguments, so none of them can mean something else.
pub(crate) fn other_command_line() -> Option<CommandLine> {
    let mut all = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let program = all.next().unwrap_or_default();
    if sdk::is_program_name(&program) {
        return Some(CommandLine { program: Program::OperatorSdk, arguments: all.collect() });
    }
    let is_opm = opm::is_program_name(&program) || all.next().is_some_and(|first| first == "opm");
    is_opm.then(|| CommandLine::opm(all.collect()))
}

impl CommandLine {
    /// A command line of `opm`, without the name of the program.
    pub(crate) fn opm(arguments: Vec<String>) -> Self {
        Self { program: Program::Opm, arguments }
    }

    /// The threads that the command needs.
    pub(crate) fn threads(&self) -> Threads {
        match self.program {
            Program::Opm if opm::is_server_command(&self.arguments) => Threads::All,
            Program::Opm | Program::OperatorSdk => Threads::One,
        }
    }

    /// Runs the command with this process's standard streams, current folder and environment.
    pub(crate) async fn run(self) -> ExitCode {
        let mut stdout = BufWriter::new(io::stdout().lock());
        let mut stderr = io::stderr();
        let terminal = stderr.is_terminal();
        let mut io = CommandIo {
            stdin: &mut io::stdin(),
            stdout: &mut stdout,
            stderr: &mut stderr,
            folder: std::env::current_dir().unwrap_or_default(),
            alpha: opm::alpha_commands_enabled(),
            terminal,
            clock: Clock::system(),
            environment: &variable,
        };
        let code = match self.program {
            Program::Opm => opm::run(&self.arguments, &mut io).await,
            Program::OperatorSdk => sdk::run(&self.arguments, &mut io).await,
        };
        // Flushing fails if the reader has closed the pipe.
        let _ = stdout.flush();
        ExitCode::from(code)
    }
}

/// A variable of the environment; `None` if it is not UTF-8.
#[expect(clippy::disallowed_methods, reason = "the environment is read by the command line")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
