//! `opm` and `operator-sdk`: hands the process to the other command line that its name means.

use crate::Threads;
use mainstay_clock::Clock;
use mainstay_opm::{self as opm, Io, sdk};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

/// A command line that is not `mainstay`'s own.
pub(crate) struct CommandLine {
    program: Program,
    arguments: Vec<String>,
}

/// The program whose command line it is.
enum Program {
    Opm,
    OperatorSdk,
}

/// The other command line that this process was started for, if it was: by its name, or for `opm` as
/// `mainstay opm …`. Nothing else reads the arguments then, so that none of them means something else
/// here.
pub(crate) fn other_command_line() -> Option<CommandLine> {
    let mut all = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let program = all.next().unwrap_or_default();
    if sdk::is_name(&program) {
        return Some(CommandLine { program: Program::OperatorSdk, arguments: all.collect() });
    }
    let is_opm = opm::is_name(&program) || all.next().is_some_and(|first| first == "opm");
    is_opm.then(|| CommandLine::opm(all.collect()))
}

impl CommandLine {
    /// A command line of `opm`, without the name of the program.
    pub(crate) fn opm(arguments: Vec<String>) -> Self {
        Self { program: Program::Opm, arguments }
    }

    /// How many threads it needs.
    pub(crate) fn threads(&self) -> Threads {
        match self.program {
            Program::Opm if opm::serves(&self.arguments) => Threads::All,
            Program::Opm | Program::OperatorSdk => Threads::One,
        }
    }

    /// Runs it on this process's outside.
    pub(crate) async fn run(self) -> ExitCode {
        let mut stdout = BufWriter::new(io::stdout().lock());
        let mut stderr = io::stderr();
        let terminal = stderr.is_terminal();
        let mut io = Io {
            stdin: &mut io::stdin(),
            stdout: &mut stdout,
            stderr: &mut stderr,
            folder: std::env::current_dir().unwrap_or_default(),
            alpha: opm::shows_alpha(),
            terminal,
            clock: Clock::system(),
            environment: &variable,
        };
        let code = match self.program {
            Program::Opm => opm::run(&self.arguments, &mut io).await,
            Program::OperatorSdk => sdk::run(&self.arguments, &mut io).await,
        };
        // Who reads has gone away if this fails.
        let _ = stdout.flush();
        ExitCode::from(code)
    }
}

/// A variable of the environment; one that is no text is not there.
#[expect(clippy::disallowed_methods, reason = "the environment is read by the command line")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
