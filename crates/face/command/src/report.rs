//! Progress output: a line for each completed step, with its duration.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

/// Prints progress to standard output. Write errors (a closed pipe) are ignored: the work matters
/// more than its report.
#[derive(Debug)]
pub struct ProgressReport {
    colour: bool,
}

impl ProgressReport {
    /// A report on standard output, coloured on terminals that want colours.
    pub fn stdout() -> Self {
        Self { colour: colours_on_stdout() }
    }

    fn line(text: &str) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{text}");
        let _ = out.flush();
    }

    fn paint(&self, code: &str, text: impl Display) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// A heading: the beginning of a chapter of the story.
    pub fn heading(&self, text: impl Display) {
        Self::line("");
        Self::line(&self.paint("1", text));
    }

    /// A completed step and its duration.
    pub fn done(&self, text: impl Display, took: Duration) {
        let mark = self.paint("32", "✓");
        let took = self.paint("2", milliseconds(took));
        Self::line(&format!("  {mark} {text}  {took}"));
    }

    /// A failed step.
    pub fn failed(&self, text: impl Display) {
        let mark = self.paint("31", "✗");
        Self::line(&format!("  {mark} {text}"));
    }

    /// A detail of the line before; several lines keep their indentation.
    pub fn detail(&self, text: impl Display) {
        for line in text.to_string().lines() {
            Self::line(&format!("    {line}"));
        }
    }

    /// A plain line.
    pub fn say(&self, text: impl Display) {
        Self::line(&text.to_string());
    }

    /// A command to type.
    pub fn command(&self, text: impl Display) {
        let prompt = self.paint("2", "$");
        Self::line(&format!("  {prompt} {text}"));
    }
}

/// A path as a word of a command line, in quotes where a shell needs them.
pub fn shell_word(path: &Path) -> String {
    mainstay_cause::shell_word(&path.display().to_string())
}

/// Whether standard output is a terminal that wants colours.
pub fn colours_on_stdout() -> bool {
    io::stdout().is_terminal() && !crate::environment::plain_terminal()
}

/// Whether standard error is a terminal that wants colours.
pub fn colours_on_stderr() -> bool {
    io::stderr().is_terminal() && !crate::environment::plain_terminal()
}

/// Prints the reason of a failure to standard error.
pub fn error(cause: &mainstay_cause::Cause) {
    let _ = write!(io::stderr().lock(), "error: {}", cause.render());
}

/// A duration as a few digits: `0.4 ms`, `12 ms`, `3.1 s`.
pub fn milliseconds(took: Duration) -> String {
    let ms = took.as_secs_f64() * 1000.0;
    if ms < 10.0 {
        format!("{ms:.1} ms")
    } else if ms < 1000.0 {
        format!("{ms:.0} ms")
    } else {
        format!("{:.1} s", ms / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_a_shell() {
        for (path, word) in [
            ("/run/user/0/mainstay-a1/kubeconfig", "/run/user/0/mainstay-a1/kubeconfig"),
            ("/my files/it's", r"'/my files/it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
    }

    #[test]
    fn durations_have_few_digits() {
        assert_eq!(milliseconds(Duration::from_micros(420)), "0.4 ms");
        assert_eq!(milliseconds(Duration::from_millis(57)), "57 ms");
        assert_eq!(milliseconds(Duration::from_millis(3120)), "3.1 s");
    }
}
