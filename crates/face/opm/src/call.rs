//! The call of a command: its flags, arguments, input and output, and how it can fail.

use super::command::Command;
use super::error::PathError;
use super::flags::ParsedFlags;
use mainstay_clock::Clock;
use std::fmt;
use std::io::{Read, Write};
use std::path::PathBuf;

/// The input and output of one run: everything that is not an argument.
pub struct CommandIo<'a> {
    /// Standard input.
    pub stdin: &'a mut dyn Read,
    /// Standard output, for results.
    pub stdout: &'a mut dyn Write,
    /// Standard error, for errors, warnings and progress.
    pub stderr: &'a mut dyn Write,
    /// The working directory, from which relative paths start.
    pub folder: PathBuf,
    /// Whether hidden commands are shown (`HELP_ALPHA=true`).
    pub alpha: bool,
    /// Whether `stderr` is a terminal.
    pub terminal: bool,
    /// The clock.
    pub clock: Clock,
    /// Reads an environment variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
}

impl CommandIo<'_> {
    /// Writes to standard output. An error is ignored here: the reader is gone, as in `opm … | head`, or
    /// the caller reports it.
    pub(super) fn print(&mut self, text: &str) {
        let _ = self.stdout.write_all(text.as_bytes());
    }

    /// Writes to standard error; see [`CommandIo::print`].
    pub(super) fn print_error(&mut self, text: &str) {
        let _ = self.stderr.write_all(text.as_bytes());
    }

    /// Resolves a typed path. The empty path stays empty, as for every program.
    pub(super) fn resolve_path(&self, path: &str) -> PathBuf {
        if path.is_empty() { PathBuf::new() } else { self.folder.join(path) }
    }

    /// An error message about a folder, with paths as they were typed.
    pub(super) fn with_typed_path(&self, message: &str, path: &str) -> String {
        let (found, typed) = (self.resolve_path(path), path.trim_end_matches('/'));
        let found = found.to_string_lossy();
        message.replace(&format!("{}/", found.trim_end_matches('/')), &format!("{typed}/"))
    }

    /// Whether the path is a folder.
    ///
    /// # Errors
    /// If the path does not exist or is not accessible.
    pub(super) fn is_folder(&self, path: &str) -> Result<bool, PathError> {
        let found = std::fs::metadata(self.resolve_path(path));
        found.map(|found| found.is_dir()).map_err(PathError::of("stat", path))
    }
}

/// A command with valid flags and arguments.
pub(super) struct Call<'a, 'io> {
    /// The commands from the root to this one.
    pub(super) path: &'a [&'a Command],
    /// The name of the command as typed, which may be an alias.
    pub(super) called_as: &'a str,
    /// The flags.
    pub(super) flags: ParsedFlags,
    /// The positional arguments.
    pub(super) arguments: Vec<String>,
    /// The input and output.
    pub(super) io: &'a mut CommandIo<'io>,
}

impl Call<'_, '_> {
    /// The argument at an index; empty if there is none.
    pub(super) fn argument(&self, index: usize) -> &str {
        self.arguments.get(index).map_or("", String::as_str)
    }
}

/// The failure of a command, with exit code 1. Each variant is one of upstream's styles.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// A line of the structured log, with the level `fatal`.
    Fatal(String),
    /// A line of the plain log.
    Log(String),
    /// `Error: …` and the usage of the command.
    Usage(String),
    /// The command has already printed everything.
    Silent,
}

impl Failure {
    /// A line of the structured log with the text of an error.
    pub(super) fn fatal(error: impl fmt::Display) -> Self {
        Self::Fatal(error.to_string())
    }

    /// A line of the plain log with the text of an error.
    pub(super) fn log(error: impl fmt::Display) -> Self {
        Self::Log(error.to_string())
    }

    /// The text of an error, and the usage of the command.
    pub(super) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }
}
