//! Why a text is no time, in the words of Go's `time.Parse`.

use std::fmt::Write as _;

/// What Go looks for, one after the other: its name in layouts, and what may stand there.
type Part = (&'static str, Kind);

/// What may stand at a place.
#[derive(Clone, Copy)]
enum Kind {
    Year,
    /// The character of the name.
    Literal,
    /// Two digits, of which the first may be missing if `short`, within these bounds.
    Number {
        short: bool,
        range: Option<(&'static str, u32, u32)>,
    },
    /// A fraction of a second, or nothing.
    Fraction,
}

const DATE: [Part; 5] = [
    ("2006", Kind::Year),
    ("-", Kind::Literal),
    ("01", Kind::Number { short: false, range: Some(("month", 1, 12)) }),
    ("-", Kind::Literal),
    ("02", Kind::Number { short: false, range: None }),
];

const TIME: [Part; 7] = [
    ("T", Kind::Literal),
    ("15", Kind::Number { short: true, range: Some(("hour", 0, 23)) }),
    (":", Kind::Literal),
    ("04", Kind::Number { short: false, range: Some(("minute", 0, 59)) }),
    (":", Kind::Literal),
    ("05", Kind::Number { short: false, range: Some(("second", 0, 59)) }),
    ("", Kind::Fraction),
];

/// Why a text is no date.
pub(super) fn of_date(text: &str) -> String {
    refusal(text, &DATE)
}

/// Why a text is no date with a time.
pub(super) fn of_time(text: &str) -> String {
    refusal(text, &[&DATE[..], &TIME[..]].concat())
}

fn refusal(text: &str, parts: &[Part]) -> String {
    let mut rest = text;
    for (name, kind) in parts {
        let length = match kind {
            Kind::Year => (digits(rest) >= 4).then_some(4),
            Kind::Literal => rest.starts_with(name).then_some(name.len()),
            Kind::Number { short, .. } => match digits(rest).min(2) {
                0 => None,
                1 if !short => None,
                length => Some(length),
            },
            Kind::Fraction => Some(match rest.strip_prefix(['.', ',']).map(digits) {
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
        if let Kind::Number { range: Some((what, least, most)), .. } = kind
            && !rest[..length].parse().is_ok_and(|number| (*least..=*most).contains(&number))
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

/// How many digits a text begins with.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// A text in quotes as this package of Go writes them.
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
