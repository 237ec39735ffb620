//! `opm`: the command line of operator-registry for authors of catalogs, and the `bundle validate` of
//! `operator-sdk`.
//!
//! It starts under the name `opm`, or as `mainstay opm …`. Arguments, flags, defaults, formats, exit
//! codes and the texts of errors are those of operator-registry 1.73, so that scripts keep working. The
//! help texts are our own. Where upstream's output is random, ours is one of its outputs and always the
//! same. More explanations are in the commands of `mainstay`, not here.
//!
//! ```text
//! arguments ─► find the command ─► its flags ─► its arguments ─► action ─► exit code
//!                (engine)           (flags)       (command)     (one file each)
//! ```
//!
//! The engine, the flags and the command tree follow the rules of cobra, upstream's library: where flags
//! may stand, which flags take a value, which error comes first. The commands use only `call::Call` of
//! it.
//!
//! Commands that are not implemented are unknown commands, not empty ones.

mod bundle;
mod call;
mod command;
mod commands;
mod complete;
mod completion_script;
mod csv;
mod database;
mod dockerfile;
mod engine;
mod error;
mod examples;
mod flags;
mod go;
mod graph;
mod help;
mod init;
mod list;
mod log;
mod mediatype;
mod migrate;
mod pull;
mod reference;
mod registry;
mod render;
pub mod sdk;
mod serve;
mod table;
mod template;
mod tool;
mod usage;
mod validate;
mod version;

pub use call::CommandIo;
pub use csv::{CsvError, QuoteErrorKind};
pub use go::ParseBoolError;
pub use usage::{FlagError, UsageError, ValueError};

use call::Failure;
use mainstay_command::output::OutputSink;

/// Runs one command line (without the name of the program) and returns the exit code.
pub async fn run(arguments: &[String], io: &mut CommandIo<'_>) -> u8 {
    run_tree(&commands::root(io.alpha), arguments, io).await
}

/// Whether a command line (without the name of the program) starts a server: `serve` or
/// `registry serve`.
pub fn is_server_command(arguments: &[String]) -> bool {
    let mut words = arguments.iter().map(String::as_str);
    words.find(|word| !word.starts_with('-') && *word != "registry") == Some("serve")
}

/// Parses one command line (without the name of the program) as [`run`] does, without running it.
///
/// # Errors
/// The usage error.
pub fn check(arguments: &[String]) -> Result<(), UsageError> {
    engine::check(&commands::root(true), arguments)
}

/// Runs a command line of a tree of commands.
async fn run_tree(root: &command::Command, arguments: &[String], io: &mut CommandIo<'_>) -> u8 {
    let mut stdout = OutputSink::new(&mut *io.stdout);
    let mut inner = CommandIo {
        stdin: &mut *io.stdin,
        stdout: &mut stdout,
        stderr: &mut *io.stderr,
        folder: io.folder.clone(),
        alpha: io.alpha,
        terminal: io.terminal,
        clock: io.clock,
        environment: io.environment,
    };
    let code = engine::run(root, arguments, &mut inner).await;
    // The code below reports a write error.
    let _ = inner.stdout.flush();
    match stdout.error() {
        Some(error) if code == 0 => {
            let message =
                format!("write /dev/stdout: {}", mainstay_gocompat::io_error_text(&error));
            log::report_failure(io, &Failure::Log(message), String::new);
            1
        }
        _ => code,
    }
}

/// Whether this name of a program stands for `opm`.
pub fn is_program_name(program: &str) -> bool {
    let file = program.rsplit(['/', '\\']).next().unwrap_or(program);
    file == "opm" || file == "opm.exe"
}

/// Whether the environment enables commands that may still change.
#[expect(clippy::disallowed_methods, reason = "the environment is read by the command line")]
pub fn alpha_commands_enabled() -> bool {
    std::env::var_os("HELP_ALPHA").is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use super::is_server_command;

    #[test]
    fn serve_and_registry_serve_are_server_commands() {
        for (line, expected) in [
            ("serve catalog", true),
            ("--debug serve catalog", true),
            ("registry serve -d index.db", true),
            ("render serve", false),
            ("registry add serve", false),
            ("", false),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(is_server_command(&words), expected, "{line}");
        }
    }
}
