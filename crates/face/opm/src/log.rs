//! Logs and failure messages in upstream's three styles.

use super::call::{CommandIo, Failure};
use super::go;

/// The level of a line of the structured log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Details for debugging.
    Debug,
    /// Progress.
    Info,
    /// A possible problem.
    Warning,
    /// A problem.
    Error,
    /// The reason why the program ends.
    Fatal,
}

/// Writes a line of the structured log, with the fields sorted by name.
pub(super) fn write(io: &mut CommandIo<'_>, level: Level, message: &str, fields: &[(&str, &str)]) {
    let text = format_entry(io, level, message, fields);
    io.print_error(&text);
}

/// A line of the structured log.
pub(super) fn format_entry(
    io: &CommandIo<'_>,
    level: Level,
    message: &str,
    fields: &[(&str, &str)],
) -> String {
    if io.terminal {
        coloured(level, message, fields, io.clock.elapsed().as_secs())
    } else {
        line(level, message, fields, &io.clock.now_rfc3339())
    }
}

/// Logs progress in the structured log.
pub(super) fn info(io: &mut CommandIo<'_>, message: &str) {
    write(io, Level::Info, message, &[]);
}

/// Prints why a run failed. `usage` returns the usage of the command.
pub(super) fn report_failure(
    io: &mut CommandIo<'_>,
    failure: &Failure,
    usage: impl FnOnce() -> String,
) {
    let text = match failure {
        Failure::Fatal(message) => return write(io, Level::Fatal, message, &[]),
        Failure::Log(message) => plain(message, &io.clock.now_rfc3339()),
        Failure::Usage(message) => format!("Error: {message}\n{}\n", usage()),
        Failure::Silent => return,
    };
    io.print_error(&text);
}

/// The structured log on a terminal: the level in its colour, seconds since the start, the message.
fn coloured(level: Level, message: &str, fields: &[(&str, &str)], seconds: u64) -> String {
    let (colour, name) = match level {
        Level::Debug => (37, "DEBU"),
        Level::Info => (36, "INFO"),
        Level::Warning => (33, "WARN"),
        Level::Error => (31, "ERRO"),
        Level::Fatal => (31, "FATA"),
    };
    let message = message.strip_suffix('\n').unwrap_or(message);
    let mut text = format!("\x1b[{colour}m{name}\x1b[0m[{seconds:04}] {message:<44} ");
    for (key, value) in sorted(fields) {
        go::push(&mut text, format_args!(" \x1b[{colour}m{key}\x1b[0m={}", quoted(value)));
    }
    text + "\n"
}

/// The structured log elsewhere: one line of fields, quoted where necessary.
fn line(level: Level, message: &str, fields: &[(&str, &str)], time: &str) -> String {
    let level = match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warning => "warning",
        Level::Error => "error",
        Level::Fatal => "fatal",
    };
    let mut text = format!("time=\"{time}\" level={level} msg={}", quoted(message));
    for (key, value) in sorted(fields) {
        go::push(&mut text, format_args!(" {key}={}", quoted(value)));
    }
    text + "\n"
}

fn sorted<'a>(fields: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut fields = fields.to_vec();
    fields.sort_unstable();
    fields
}

fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._/@^+".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { go::quote(text) }
}

/// The plain log: date, time, message.
fn plain(message: &str, time: &str) -> String {
    let time: String = time
        .trim_end_matches('Z')
        .chars()
        .map(|c| match c {
            '-' => '/',
            'T' => ' ',
            other => other,
        })
        .collect();
    let newline = if message.ends_with('\n') { "" } else { "\n" };
    format!("{time} {message}{newline}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-01-02T15:04:05Z";

    #[test]
    fn a_field_is_quoted_only_where_necessary() {
        for (message, written) in [
            ("done", "done"),
            ("a-b.c/d@e^f+g_h", "a-b.c/d@e^f+g_h"),
            ("", ""),
            ("two words", "\"two words\""),
            ("x=1", "\"x=1\""),
            ("a\n└── \"b\"", "\"a\\n└── \\\"b\\\"\""),
        ] {
            let line = format!("time=\"{TIME}\" level=fatal msg={written}\n");
            assert_eq!(super::line(Level::Fatal, message, &[], TIME), line);
        }
    }

    #[test]
    fn a_terminal_gets_the_level_and_seconds() {
        let line = coloured(Level::Fatal, "no\n", &[], 7);
        assert_eq!(line, format!("\x1b[31mFATA\x1b[0m[0007] no{} \n", " ".repeat(42)));
    }

    #[test]
    fn fields_are_sorted_by_name() {
        let fields = [("port", "50051"), ("configs", "a b")];
        assert_eq!(
            line(Level::Info, "serving registry", &fields, TIME),
            format!(
                "time=\"{TIME}\" level=info msg=\"serving registry\" configs=\"a b\" port=50051\n"
            )
        );
        let line = coloured(Level::Warning, "no", &fields[..1], 0);
        assert!(line.starts_with("\x1b[33mWARN\x1b[0m[0000] no"), "{line:?}");
        assert!(line.ends_with("  \x1b[33mport\x1b[0m=50051\n"), "{line:?}");
    }

    #[test]
    fn the_plain_log_has_a_date_and_one_line_end() {
        assert_eq!(plain("no", TIME), "2026/01/02 15:04:05 no\n");
        assert_eq!(plain("no\n", TIME), "2026/01/02 15:04:05 no\n");
    }
}
