//! The environment of a command, how it ends, and the files that its arguments name.

use crate::exit::{CommandFailure, ExitStatus};
use crate::output::OutputSink;
use mainstay_cause::{Cause, FileLocation};
use mainstay_gocompat::io_error_text;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The environment of a command: everything that is not an argument.
pub struct CommandIo<'a> {
    /// Standard input: the file `-`, and answers.
    pub stdin: &'a mut dyn Read,
    /// Whether standard input is a terminal, at which a person answers.
    pub interactive: bool,
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error, for progress, questions and the reason of a failure.
    pub stderr: &'a mut dyn Write,
    /// The folder that relative paths start from.
    pub folder: PathBuf,
    /// Whether `stdout` is a terminal that wants colours.
    pub colour: bool,
    /// Whether `stderr` is a terminal, so that progress may be shown there.
    pub terminal: bool,
    /// Reads a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// An environment without variables.
const NO_VARIABLES: fn(&str) -> Option<String> = |_| None;

impl<'a> CommandIo<'a> {
    /// The environment of a command that no person runs: no terminal, no colours, no variables.
    pub fn unattended(
        stdin: &'a mut dyn Read,
        stdout: &'a mut dyn Write,
        stderr: &'a mut dyn Write,
        folder: &Path,
    ) -> Self {
        Self {
            stdin,
            interactive: false,
            stdout,
            stderr,
            folder: folder.to_owned(),
            colour: false,
            terminal: false,
            variable: &NO_VARIABLES,
        }
    }

    /// Writes to standard output. [`finish`] reports a write error.
    pub fn print(&mut self, text: &str) {
        let _ = self.stdout.write_all(text.as_bytes());
    }
}

/// Runs a command, flushes its output, and reports why it failed. Output that cannot be written is a
/// failure, unless the reader closed the pipe, as in `mainstay resolve … | head`.
pub async fn finish(
    io: &mut CommandIo<'_>,
    command: impl AsyncFnOnce(&mut CommandIo<'_>) -> Result<ExitStatus, CommandFailure>,
) -> ExitStatus {
    let mut stdout = OutputSink::new(&mut *io.stdout);
    let mut inner = CommandIo {
        stdin: &mut *io.stdin,
        interactive: io.interactive,
        stdout: &mut stdout,
        stderr: &mut *io.stderr,
        folder: io.folder.clone(),
        colour: io.colour,
        terminal: io.terminal,
        variable: io.variable,
    };
    let outcome = command(&mut inner).await;
    // The sink keeps a flush error.
    let _ = inner.stdout.flush();
    let write_error = stdout.error().map(|error| {
        CommandFailure::from(
            Cause::new("the output cannot be written").because(Cause::new(error.to_string())),
        )
    });
    let outcome = outcome.and_then(|exit| write_error.map_or(Ok(exit), Err));
    outcome.unwrap_or_else(|CommandFailure { exit, cause }| {
        let _ = write!(io.stderr, "error: {}", cause.render());
        exit
    })
}

/// The largest size of a file, in bytes: many times the output for a cluster with thousands of
/// operators.
const MAX_BYTES: u64 = 512 << 20;

/// Reads the text of a file that an argument names; `-` is standard input.
///
/// # Errors
/// The file does not exist, is no file, is too large, or is not UTF-8.
pub fn read_text(io: &mut CommandIo<'_>, argument: &str) -> Result<String, CommandFailure> {
    if argument.is_empty() {
        let cause = Cause::new("the name of a file is empty");
        return Err(CommandFailure::usage(cause.remedy("name a file that can be read, or `-`")));
    }
    let read = if argument == "-" {
        read_limited(&mut *io.stdin)
    } else {
        let path = io.folder.join(argument);
        open(&path).and_then(|mut file| read_limited(&mut file))
    };
    let bytes = read.map_err(|error| {
        refused(argument, &io_error_text(&error), "name a file that can be read")
    })?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("the file has more than {} MiB", MAX_BYTES >> 20);
        return Err(refused(argument, &message, "remove objects that resolution does not need"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        refused(argument, &format!("the file is not UTF-8: byte {at}"), "save it as UTF-8 text")
    })
}

fn open(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder, not a file"));
    }
    File::open(path)
}

fn read_limited(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The place of a file in messages.
pub fn place_of(argument: &str) -> FileLocation {
    FileLocation::file(if argument == "-" { "<stdin>" } else { argument })
}

fn refused(argument: &str, why: &str, remedy: &str) -> CommandFailure {
    CommandFailure::usage(Cause::new(why).at(place_of(argument)).remedy(remedy))
}
