//! `opm`: the command line of operator-registry for authors of catalogs, and the `bundle validate` of
//! `operator-sdk`.
//!
//! Started under the name `opm`, or as `mainstay opm …`. Arguments, flags, defaults, formats, exit
//! codes and the texts of errors are those of operator-registry 1.73, so that scripts go on
//! working; help is in our own words. Where upstream answers at random, ours is one of its answers
//! and always the same. What explains more is `mainstay`'s own voice, not this one.
//!
//! ```text
//! arguments ─► find the command ─► its flags ─► its arguments ─► action ─► exit code
//!                (engine)           (flags)       (command)     (one file each)
//! ```
//!
//! The first four files are a small command-tree engine with the rules of the library that upstream
//! uses (where flags may stand, what takes a value, which error comes first); the commands know
//! nothing of it but `call::Call`.
//!
//! Commands that are not built are not there: they are unknown commands, not empty ones.

mod bundle;
mod call;
mod command;
mod complete;
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
mod mediatype;
mod migrate;
mod pull;
mod reference;
mod registry;
mod render;
mod script;
pub mod sdk;
mod serve;
mod table;
mod template;
mod tool;
mod tree;
mod usage;
mod validate;
mod version;
mod voice;

pub use call::Io;
pub use csv::{CsvError, QuoteFault};
pub use go::ParseBoolError;
pub use usage::{FlagError, UsageError, ValueError};

use call::End;
use mainstay_cli::output::OutputSink;

/// Runs one command line (without the name of the program) and gives the exit code.
pub async fn run(arguments: &[String], io: &mut Io<'_>) -> u8 {
    run_tree(&tree::root(io.alpha), arguments, io).await
}

/// Whether a command line (without the name of the program) is one of a server: `serve` or
/// `registry serve`.
pub fn serves(arguments: &[String]) -> bool {
    let mut words = arguments.iter().map(String::as_str);
    words.find(|word| !word.starts_with('-') && *word != "registry") == Some("serve")
}

/// Reads one command line (without the name of the program) as [`run`] does, and carries nothing out.
///
/// # Errors
/// What is wrong with it.
pub fn check(arguments: &[String]) -> Result<(), UsageError> {
    engine::check(&tree::root(true), arguments)
}

/// Runs a command line of a tree of commands.
async fn run_tree(root: &command::Command, arguments: &[String], io: &mut Io<'_>) -> u8 {
    let mut stdout = OutputSink::new(&mut *io.stdout);
    let mut inner = Io {
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
    // An error is remembered below.
    let _ = inner.stdout.flush();
    match stdout.error() {
        Some(error) if code == 0 => {
            let message = format!("write /dev/stdout: {}", go::reason(&error));
            voice::end(io, &End::Log(message), String::new);
            1
        }
        _ => code,
    }
}

/// Whether a program started under this name is meant to be `opm`.
pub fn is_name(program: &str) -> bool {
    let file = program.rsplit(['/', '\\']).next().unwrap_or(program);
    file == "opm" || file == "opm.exe"
}

/// Whether the environment asks for commands that may still change.
#[expect(clippy::disallowed_methods, reason = "the environment is read by the command line")]
pub fn shows_alpha() -> bool {
    std::env::var_os("HELP_ALPHA").is_some_and(|value| value == "true")
}

#[cfg(test)]
mod tests {
    use super::serves;

    #[test]
    fn servers_are_known_by_their_command() {
        for (line, expected) in [
            ("serve catalog", true),
            ("--debug serve catalog", true),
            ("registry serve -d index.db", true),
            ("render serve", false),
            ("registry add serve", false),
            ("", false),
        ] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            assert_eq!(serves(&words), expected, "{line}");
        }
    }
}
