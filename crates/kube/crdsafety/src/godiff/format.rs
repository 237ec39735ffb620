//! Single values as text: how much of them is shown, and whether their type is.

use super::text::{Counts, Mark, Record, Text, push_ellipsis};
use crate::go::{Kind, Type, Value, dump_struct};
use mainstay_gocompat::values::float;
use mainstay_gocompat::{is_printable, quote, quote_bytes};

/// The highest step of verbosity that tells two texts apart.
pub(crate) const MAX_PRESET: u32 = 6;

/// Whether the name of a type is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeMode {
    /// Always.
    Emit,
    /// Never.
    Elide,
    /// For structs, slices and maps that are not nil.
    Auto,
}

/// How values are printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) mark: Mark,
    pub(crate) types: TypeMode,
    /// Prints fields where `String()` would be used otherwise.
    pub(crate) avoids_stringer: bool,
    /// Decreases with each level; the length of lists and texts depends on it.
    pub(crate) level: i32,
}

impl Options {
    pub(crate) const ROOT: Self =
        Self { mark: Mark::UNKNOWN, types: TypeMode::Emit, avoids_stringer: false, level: 0 };

    pub(crate) const fn with_mark(self, mark: Mark) -> Self {
        Self { mark, ..self }
    }

    pub(crate) const fn with_types(self, types: TypeMode) -> Self {
        Self { types, ..self }
    }

    pub(crate) const fn with_level(self, level: i32) -> Self {
        Self { level, ..self }
    }

    pub(crate) const fn deeper(self) -> Self {
        Self { level: self.level - 1, ..self }
    }

    /// More verbose, by a step of at most [`MAX_PRESET`].
    pub(crate) fn more_verbose(self, step: u32) -> Self {
        let level = self.shift() + 2 * step;
        Self {
            level: i32::try_from(level).unwrap_or(i32::MAX),
            avoids_stringer: self.avoids_stringer || step > 0,
            ..self
        }
    }

    /// The level as an exponent of two.
    pub(crate) fn shift(self) -> u32 {
        self.level.clamp(0, 16).unsigned_abs()
    }

    /// How many items of a single value are printed: 0, 4, 8, 16, ….
    fn max_items(self) -> usize {
        ((1_usize << self.shift()) >> 1) << 2
    }

    /// Puts the name of the type in front, if it is to be printed.
    pub(crate) fn with_type(self, kind: &Type, text: Text) -> Text {
        match self.types {
            TypeMode::Elide => return text,
            TypeMode::Auto => {
                let is_composed = matches!(kind.kind, Kind::Struct | Kind::Slice | Kind::Map);
                if !is_composed || text.is_nil() || self.mark == Mark::IDENTICAL {
                    return text;
                }
            }
            TypeMode::Emit => {}
        }
        let name = match kind.kind {
            Kind::Pointer => format!("({})", kind.name),
            _ => kind.name.to_owned(),
        };
        Text::wrap(name, in_parentheses(text), "")
    }

    /// A value as text. `None` is a missing value.
    pub(crate) fn value(
        self,
        kind: &Type,
        value: Option<&Value>,
        parent: Option<Kind>,
    ) -> Option<Text> {
        value.map(|value| self.present(kind, value, parent))
    }

    fn present(self, kind: &Type, value: &Value, parent: Option<Kind>) -> Text {
        let element = kind.element.unwrap_or(kind);
        let text = match value {
            Value::Bool(on) => Text::line(on.to_string()),
            Value::Int(number) => Text::line(number.to_string()),
            Value::Float(number) => Text::line(float(*number)),
            Value::Byte(byte) if parent == Some(Kind::Slice) => Text::line(hexadecimal(*byte)),
            Value::Byte(byte) => Text::line(byte.to_string()),
            Value::Text(text) => self.string("", text.as_bytes()),
            Value::Pointer(None) | Value::Slice(None) | Value::Map(None) => Text::nil(),
            Value::Pointer(Some(target)) => {
                if !self.avoids_stringer && !element.short_name.is_empty() {
                    return self.string("s", dump_struct(target, element).as_bytes());
                }
                // The target prints the type.
                return Text::wrap("&", self.present(element, target, Some(Kind::Pointer)), "");
            }
            Value::Struct(fields) => self.fields(kind, fields),
            Value::Slice(Some(items)) if element.kind == Kind::Byte => {
                let bytes = value.bytes();
                if is_printable_text(&bytes) {
                    self.string("", &bytes)
                } else {
                    self.items(kind, items)
                }
            }
            Value::Slice(Some(items)) => self.items(kind, items),
            Value::Map(Some(entries)) => {
                let inner = self.deeper().with_types(TypeMode::Elide);
                let mut list = Vec::new();
                for (key, entry) in entries {
                    if list.len() == self.max_items() {
                        push_ellipsis(&mut list, Counts::default());
                        break;
                    }
                    let text = inner.present(element, entry, Some(Kind::Map));
                    list.push(Record::new(Mark::UNKNOWN, map_key(key), text));
                }
                Text::wrap("{", Text::List(list), "}")
            }
        };
        self.with_type(kind, text)
    }

    /// The fields that are not zero.
    fn fields(self, kind: &Type, fields: &[Value]) -> Text {
        let inner = self.deeper().with_types(TypeMode::Auto);
        let mut list = Vec::new();
        for (field, value) in kind.fields.iter().zip(fields) {
            if value.is_zero() {
                continue;
            }
            if list.len() == self.max_items() {
                push_ellipsis(&mut list, Counts::default());
                break;
            }
            let text = inner.present(field.kind, value, Some(Kind::Struct));
            list.push(Record::new(Mark::UNKNOWN, field.name.to_owned(), text));
        }
        Text::wrap("{", Text::List(list), "}")
    }

    fn items(self, kind: &Type, items: &[Value]) -> Text {
        let element = kind.element.unwrap_or(kind);
        let inner = self.deeper().with_types(TypeMode::Elide);
        let mut list = Vec::new();
        for item in items {
            if list.len() == self.max_items() {
                push_ellipsis(&mut list, Counts::default());
                break;
            }
            let text = inner.present(element, item, Some(Kind::Slice));
            list.push(Record::new(Mark::UNKNOWN, String::new(), text));
        }
        Text::wrap("{", Text::List(list), "}")
    }

    /// A quoted string, or its lines between `"""`. `prefix` tells a `String()` from a string.
    fn string(self, prefix: &str, bytes: &[u8]) -> Text {
        let max_length = (1_usize << self.shift()) << 5;
        let max_lines = (1_usize << self.shift()) << 2;
        if self.mark.is_change()
            && let Ok(text) = std::str::from_utf8(bytes)
            && let Some(lines) = quotable_lines(text, prefix, max_length)
        {
            return self.triple_quoted(prefix, &lines, max_lines);
        }
        if bytes.len() > max_length + 3 {
            return Text::line(format!("{prefix}{}...", quoted(&bytes[..max_length])));
        }
        Text::line(format!("{prefix}{}", quoted(bytes)))
    }

    fn triple_quoted(self, prefix: &str, lines: &[&str], max_lines: usize) -> Text {
        let quotes = || Record::bare(self.mark, Text::line(format!("{prefix}\"\"\"")));
        let mut list = vec![quotes()];
        for (at, line) in lines.iter().enumerate() {
            let elided = lines.len() - at;
            if at + 1 == max_lines && elided > 1 {
                let mut record = Record::bare(self.mark, Text::ellipsis());
                record.comment =
                    Some(super::text::Comment::Words(format!("{elided} elided lines")));
                list.push(record);
                break;
            }
            list.push(Record::bare(self.mark, Text::line(*line)));
        }
        list.push(quotes());
        Text::wrap("(", Text::List(list), ")")
    }
}

/// The lines of a text that may stand between `"""`: four or more that are printable, short and not
/// mistaken for the quotes or an elision.
fn quotable_lines<'t>(text: &'t str, prefix: &str, max_length: usize) -> Option<Vec<&'t str>> {
    let lines: Vec<&str> =
        text.strip_suffix('\n').unwrap_or(text).split('\n').map(without_returns).collect();
    let fits = |line: &&str| {
        !line.strip_prefix(prefix).unwrap_or(line).starts_with("\"\"\"")
            && !line.starts_with("...")
            && is_printable_line(line)
            && line.len() <= max_length
    };
    (lines.len() >= 4 && lines.iter().all(fits)).then_some(lines)
}

/// A line without the carriage returns at its ends.
pub(crate) fn without_returns(line: &str) -> &str {
    let line = line.strip_suffix('\r').unwrap_or(line);
    line.strip_prefix('\r').unwrap_or(line)
}

/// Whether both ends of a line are printable once printable characters are trimmed: whether all are.
pub(crate) fn is_printable_line(line: &str) -> bool {
    line.chars().all(|character| is_printable(character) || character == '\t')
}

/// Whether bytes are printed as a string.
fn is_printable_text(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let is_shown = |character: char| is_printable(character) || character.is_whitespace();
    !text.is_empty() && text.chars().all(is_shown)
}

fn in_parentheses(text: Text) -> Text {
    if let Text::Wrap { prefix, suffix, .. } = &text {
        let has = |open, close| prefix.starts_with(open) && suffix.ends_with(close);
        if has('(', ')') || has('{', '}') {
            return text;
        }
    }
    Text::wrap("(", text, ")")
}

/// The key of an entry.
pub(crate) fn map_key(key: &str) -> String {
    let options = Options { mark: Mark::IDENTICAL, types: TypeMode::Elide, ..Options::ROOT };
    let options = options.with_level(i32::try_from(MAX_PRESET).unwrap_or(i32::MAX));
    match options.string("", key.as_bytes()) {
        Text::Line(line) => line,
        text => text.render().trim().to_owned(),
    }
}

/// A string in quotes: back quotes where they avoid escapes.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else { return quote_bytes(bytes) };
    let escaped = quote(text);
    if escaped.len() == text.len() + 2 {
        return escaped;
    }
    let is_raw = |c: char| c != '`' && c != '\n' && (is_printable(c) || c == '\t');
    if text.chars().all(is_raw) { format!("`{text}`") } else { escaped }
}

/// `0x2a`.
pub(crate) fn hexadecimal(byte: u8) -> String {
    format!("0x{byte:02x}")
}
