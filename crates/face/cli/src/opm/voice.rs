//! The three styles in which upstream ends.

use super::call::{End, Io};
use super::go;

/// Says why a run ends. `usage` is how the command is used.
pub(super) fn end(io: &mut Io<'_>, end: &End, usage: impl FnOnce() -> String) {
    let text = match end {
        End::Fatal(message) if io.terminal => {
            coloured(FATAL, message, io.clock.elapsed().as_secs())
        }
        End::Fatal(message) => fields("fatal", message, &io.clock.now_rfc3339()),
        End::Log(message) => plain(message, &io.clock.now_rfc3339()),
        End::Usage(message) => format!("Error: {message}\n{}\n", usage()),
        End::Silent => return,
    };
    io.complain(&text);
}

/// Says what goes on, in the structured log.
pub(super) fn info(io: &mut Io<'_>, message: &str) {
    let text = if io.terminal {
        coloured(INFO, message, io.clock.elapsed().as_secs())
    } else {
        fields("info", message, &io.clock.now_rfc3339())
    };
    io.complain(&text);
}

/// Colour and word of a level, for people.
const FATAL: (u8, &str) = (31, "FATA");
const INFO: (u8, &str) = (36, "INFO");

/// The structured log for people: the level in colour, seconds since the start, the message.
fn coloured((colour, level): (u8, &str), message: &str, seconds: u64) -> String {
    let message = message.strip_suffix('\n').unwrap_or(message);
    format!("\x1b[{colour}m{level}\x1b[0m[{seconds:04}] {message:<44} \n")
}

/// The structured log for machines: one line of fields, quoted where they need it.
fn fields(level: &str, message: &str, time: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._/@^+".contains(c);
    let message = if message.chars().all(plain) { message.to_owned() } else { go::quote(message) };
    format!("time=\"{time}\" level={level} msg={message}\n")
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
    let end = if message.ends_with('\n') { "" } else { "\n" };
    format!("{time} {message}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-01-02T15:04:05Z";

    #[test]
    fn a_line_of_fields_is_quoted_only_where_it_must_be() {
        for (message, written) in [
            ("done", "done"),
            ("a-b.c/d@e^f+g_h", "a-b.c/d@e^f+g_h"),
            ("", ""),
            ("two words", "\"two words\""),
            ("x=1", "\"x=1\""),
            ("a\n└── \"b\"", "\"a\\n└── \\\"b\\\"\""),
        ] {
            let line = format!("time=\"{TIME}\" level=fatal msg={written}\n");
            assert_eq!(fields("fatal", message, TIME), line);
        }
    }

    #[test]
    fn people_read_a_level_and_seconds() {
        let line = coloured(FATAL, "no\n", 7);
        assert_eq!(line, format!("\x1b[31mFATA\x1b[0m[0007] no{} \n", " ".repeat(42)));
    }

    #[test]
    fn the_plain_log_has_a_date_and_one_line_end() {
        assert_eq!(plain("no", TIME), "2026/01/02 15:04:05 no\n");
        assert_eq!(plain("no\n", TIME), "2026/01/02 15:04:05 no\n");
    }
}
