//! The errors of Go's `time.Parse` for texts that are not timestamps.

use std::fmt::Write as _;

/// A part of a layout: its text in Go's layouts, and its kind.
type LayoutPart = (&'static str, PartKind);

/// What a part of a layout accepts.
#[derive(Clone, Copy)]
enum PartKind {
    Year,
    /// Exactly the layout's text.
    Literal,
    /// A number of two digits, or of one if `short`, and its name and range.
    Number {
        short: bool,
        range: Option<(&'static str, u32, u32)>,
    },
    /// An optional fraction of a second.
    Fraction,
}

const DATE: [LayoutPart; 5] = [
    ("2006", PartKind::Year),
    ("-", PartKind::Literal),
    ("01", PartKind::Number { short: false, range: Some(("month", 1, 12)) }),
    ("-", PartKind::Literal),
    ("02", PartKind::Number { short: false, range: None }),
];

const TIME: [LayoutPart; 7] = [
    ("T", PartKind::Literal),
    ("15", PartKind::Number { short: true, range: Some(("hour", 0, 23)) }),
    (":", PartKind::Literal),
    ("04", PartKind::Number { short: false, range: Some(("minute", 0, 59)) }),
    (":", PartKind::Literal),
    ("05", PartKind::Number { short: false, range: Some(("second", 0, 59)) }),
    ("", PartKind::Fraction),
];

/// The error for a text that is not a date.
pub(super) fn date_error(text: &str) -> String {
    parse_error(text, &DATE)
}

/// The error for a text that is not a date with a time.
pub(super) fn date_time_error(text: &str) -> String {
    parse_error(text, &[&DATE[..], &TIME[..]].concat())
}

fn parse_error(text: &str, parts: &[LayoutPart]) -> String {
    let mut rest = text;
    for (name, kind) in parts {
        let length = match kind {
            PartKind::Year => (digits(rest) >= 4).then_some(4),
            PartKind::Literal => rest.starts_with(name).then_some(name.len()),
            PartKind::Number { short, .. } => match digits(rest).min(2) {
                0 => None,
                1 if !short => None,
                length => Some(length),
            },
            PartKind::Fraction => Some(match rest.strip_prefix(['.', ',']).map(digits) {
                None | Some(0) => 0,
                Some(length) => length + 1,
            }),
        };
        let Some(length) = length else {
            let layout: String = parts.iter().map(|(name, _)| *name).collect();
            let (text, layout) = (quote(text), quote(&layout));
            let (rest, name) = (quote(rest), quote(name));
            return format!("parsing time {text} as {layout}: cannot parse {rest} as {name}");
        };
        if let PartKind::Number { range: Some((what, min, max)), .. } = kind
            && !rest[..length].parse().is_ok_and(|number| (*min..=*max).contains(&number))
        {
            return format!("parsing time {}: {what} out of range", quote(text));
        }
        rest = &rest[length..];
    }
    let what = if rest.is_empty() {
        "day out of range".to_owned()
    } else {
        format!("extra text: {}", quote(rest))
    };
    format!("parsing time {}: {what}", quote(text))
}

/// The number of digits at the start of a text.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Quotes a text as Go's `time` package does.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            b' '..=0x7f => quoted.push(char::from(byte)),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted.push('"');
    quoted
}
