//! What a command gets to see of the outside, and how it may end.

use super::command::Command;
use super::error::PathError;
use super::flags::Given;
use mainstay_clock::Clock;
use std::fmt;
use std::io::{Read, Write};
use std::path::PathBuf;

/// The outside of one run: everything that is not an argument.
pub struct Io<'a> {
    /// What is read where no file is named.
    pub stdin: &'a mut dyn Read,
    /// Where results go.
    pub stdout: &'a mut dyn Write,
    /// Where errors, warnings and progress go.
    pub stderr: &'a mut dyn Write,
    /// The folder that relative paths start from.
    pub folder: PathBuf,
    /// Whether hidden commands are shown (`HELP_ALPHA=true`).
    pub alpha: bool,
    /// Whether a person reads `stderr` on a terminal.
    pub terminal: bool,
    /// What time it is.
    pub clock: Clock,
    /// Reads a variable of the environment.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
}

impl Io<'_> {
    /// Writes to standard output. Who cannot be told anything has gone away, as at the end of
    /// `opm … | head`; nothing is left to do then.
    pub(super) fn print(&mut self, text: &str) {
        let _ = self.stdout.write_all(text.as_bytes());
    }

    /// Writes to standard error; see [`Io::print`].
    pub(super) fn complain(&mut self, text: &str) {
        let _ = self.stderr.write_all(text.as_bytes());
    }

    /// Where a path that was typed leads to. The empty path leads nowhere, as for every program.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        if path.is_empty() { PathBuf::new() } else { self.folder.join(path) }
    }

    /// An error about a tree of files, with paths as they were typed.
    pub(super) fn as_typed(&self, message: &str, path: &str) -> String {
        let (found, typed) = (self.at(path), path.trim_end_matches('/'));
        let found = found.to_string_lossy();
        message.replace(&format!("{}/", found.trim_end_matches('/')), &format!("{typed}/"))
    }

    /// Whether there is a folder of that name.
    ///
    /// # Errors
    /// When there is nothing of that name, or nobody may look.
    pub(super) fn is_folder(&self, path: &str) -> Result<bool, PathError> {
        let found = std::fs::metadata(self.at(path));
        found.map(|found| found.is_dir()).map_err(PathError::of("stat", path))
    }
}

/// A command that was found, with flags and arguments that are in order.
pub(super) struct Call<'a, 'io> {
    /// The commands from the root to this one.
    pub(super) path: &'a [&'a Command],
    /// The name this command was called by, which may be an alias.
    pub(super) called_as: &'a str,
    /// The flags.
    pub(super) flags: Given,
    /// The arguments that are no flags.
    pub(super) arguments: Vec<String>,
    /// The outside.
    pub(super) io: &'a mut Io<'io>,
}

impl Call<'_, '_> {
    /// The argument at that place; which ones there are is the command's rule.
    pub(super) fn argument(&self, index: usize) -> &str {
        self.arguments.get(index).map_or("", String::as_str)
    }
}

/// How a command ends that does not end well. Each is one of the styles of upstream, and has the
/// exit code 1.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A line of the structured log, with the level `fatal`.
    Fatal(String),
    /// A line of the plain log.
    Log(String),
    /// `Error: …` and how the command is used.
    Usage(String),
    /// Everything was said already.
    Silent,
}

impl End {
    /// A line of the structured log with the text of an error.
    pub(super) fn fatal(error: impl fmt::Display) -> Self {
        Self::Fatal(error.to_string())
    }

    /// A line of the plain log with the text of an error.
    pub(super) fn log(error: impl fmt::Display) -> Self {
        Self::Log(error.to_string())
    }

    /// The text of an error, and how the command is used.
    pub(super) fn usage(error: impl fmt::Display) -> Self {
        Self::Usage(error.to_string())
    }
}
