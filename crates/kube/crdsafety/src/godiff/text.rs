//! Text nodes: what is printed on one line if it fits, and on lines of its own otherwise.

use std::fmt::Write;

/// The longest line of an added or removed list.
const MAX_COLUMNS: usize = 80;

/// How a record differs. Marks of nested records are joined bit by bit, as in Go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark(u8);

impl Mark {
    pub(crate) const UNKNOWN: Self = Self(0);
    pub(crate) const IDENTICAL: Self = Self(b' ');
    pub(crate) const REMOVED: Self = Self(b'-');
    pub(crate) const INSERTED: Self = Self(b'+');

    const fn join(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn is_change(self) -> bool {
        self == Self::REMOVED || self == Self::INSERTED
    }

    /// The character of the mark.
    pub(crate) const fn character(self) -> char {
        self.0 as char
    }
}

/// A text that may be broken into lines.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Text {
    Line(String),
    Wrap { prefix: String, inner: Box<Self>, suffix: String },
    List(Vec<Record>),
}

/// An entry of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) mark: Mark,
    pub(crate) key: String,
    pub(crate) value: Text,
    pub(crate) has_comma: bool,
    pub(crate) comment: Option<Comment>,
}

/// What follows a record behind `//`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Comment {
    Counts(Counts),
    Words(String),
}

/// Numbers of elided or grouped records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) name: &'static str,
    pub(crate) identical: usize,
    pub(crate) removed: usize,
    pub(crate) inserted: usize,
    pub(crate) modified: usize,
}

impl Counts {
    pub(crate) const fn of(name: &'static str) -> Self {
        Self { name, identical: 0, removed: 0, inserted: 0, modified: 0 }
    }

    pub(crate) const fn differences(self) -> usize {
        self.removed + self.inserted + self.modified
    }

    pub(crate) const fn is_zero(self) -> bool {
        self.identical + self.differences() == 0
    }

    #[must_use]
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            name: self.name,
            identical: self.identical + other.identical,
            removed: self.removed + other.removed,
            inserted: self.inserted + other.inserted,
            modified: self.modified + other.modified,
        }
    }

    /// `3 identical and 1 removed fields`.
    fn words(self) -> String {
        let counts = [
            (self.identical, "identical"),
            (self.removed, "removed"),
            (self.inserted, "inserted"),
            (self.modified, "modified"),
        ];
        let sum: usize = counts.iter().map(|(count, _)| count).sum();
        let parts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, label)| format!("{count} {label}"))
            .collect();
        let name = match (self.name, sum > 1) {
            ("entry", true) => "entries".to_owned(),
            (name, true) => format!("{name}s"),
            (name, false) => name.to_owned(),
        };
        match parts.split_last() {
            None => String::new(),
            Some((_, [] | [_])) => format!("{} {name}", parts.join(" and ")),
            Some((last, rest)) => format!("{}, and {last} {name}", rest.join(", ")),
        }
    }
}

impl Comment {
    fn words(&self) -> String {
        match self {
            Self::Counts(counts) => counts.words(),
            Self::Words(words) => words.clone(),
        }
    }
}

impl Record {
    pub(crate) fn new(mark: Mark, key: String, value: Text) -> Self {
        Self { mark, key, value, has_comma: true, comment: None }
    }

    /// A record without comma.
    pub(crate) fn bare(mark: Mark, value: Text) -> Self {
        Self { mark, key: String::new(), value, has_comma: false, comment: None }
    }
}

/// Adds `...` to a list, with what it stands for. Neighbours are joined.
pub(crate) fn push_ellipsis(list: &mut Vec<Record>, counts: Counts) {
    let has_counts = !counts.is_zero();
    match list.last_mut() {
        Some(last) if last.value.is_ellipsis() => {
            if has_counts && let Some(Comment::Counts(known)) = &mut last.comment {
                *known = known.plus(counts);
            }
        }
        _ => {
            let mut record = Record::bare(Mark::UNKNOWN, Text::ellipsis());
            record.comment = has_counts.then_some(Comment::Counts(counts));
            list.push(record);
        }
    }
}

impl Text {
    pub(crate) fn line(text: impl Into<String>) -> Self {
        Self::Line(text.into())
    }

    pub(crate) fn nil() -> Self {
        Self::line("nil")
    }

    pub(crate) fn ellipsis() -> Self {
        Self::line("...")
    }

    pub(crate) fn wrap(prefix: impl Into<String>, inner: Self, suffix: impl Into<String>) -> Self {
        Self::Wrap { prefix: prefix.into(), inner: Box::new(inner), suffix: suffix.into() }
    }

    pub(crate) fn is_nil(&self) -> bool {
        matches!(self, Self::Line(line) if line == "nil")
    }

    pub(crate) fn is_ellipsis(&self) -> bool {
        matches!(self, Self::Line(line) if line == "...")
    }

    /// The length on one line.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Line(line) => line.len(),
            Self::Wrap { prefix, inner, suffix } => prefix.len() + inner.len() + suffix.len(),
            Self::List(records) => {
                let length = |record: &Record| {
                    let key = if record.key.is_empty() { 0 } else { record.key.len() + 2 };
                    key + record.value.len()
                };
                let separators = records.len().saturating_sub(1) * 2;
                records.iter().map(length).sum::<usize>() + separators
            }
        }
    }

    /// The whole text, with a newline at its end.
    pub(crate) fn render(self) -> String {
        let (_, text) = self.compact(Mark::UNKNOWN);
        let mut out = String::new();
        indent(&mut out, Mark::UNKNOWN, 0);
        text.expand(&mut out, Mark::UNKNOWN, 0);
        out.push('\n');
        out
    }

    /// The text on one line, and the node in which everything that stays on one line is a line.
    fn compact(self, mark: Mark) -> (String, Self) {
        match self {
            Self::Line(line) => (line.clone(), Self::Line(line)),
            Self::Wrap { prefix, inner, suffix } => {
                let (text, inner) = inner.compact(mark);
                let whole = format!("{prefix}{text}{suffix}");
                let node = if matches!(inner, Self::Line(_)) {
                    Self::Line(whole.clone())
                } else {
                    Self::Wrap { prefix, inner: Box::new(inner), suffix }
                };
                (whole, node)
            }
            Self::List(records) => compact_list(records, mark),
        }
    }

    fn expand(&self, out: &mut String, mark: Mark, depth: usize) {
        match self {
            Self::Line(line) => out.push_str(line),
            Self::Wrap { prefix, inner, suffix } => {
                out.push_str(prefix);
                inner.expand(out, mark, depth);
                out.push_str(suffix);
            }
            Self::List(records) => expand_list(records, out, mark, depth),
        }
    }

    const fn is_line(&self) -> bool {
        matches!(self, Self::Line(_))
    }
}

fn compact_list(records: Vec<Record>, mark: Mark) -> (String, Text) {
    let mut whole = String::new();
    let mut is_broken = false;
    let count = records.len();
    let mut compacted = Vec::with_capacity(count);
    for (at, mut record) in records.into_iter().enumerate() {
        if !record.key.is_empty() {
            let _ = write!(whole, "{}: ", record.key);
        }
        let (text, value) = record.value.compact(mark.join(record.mark));
        whole.push_str(&text);
        is_broken |= record.mark.is_change() || !value.is_line() || record.comment.is_some();
        record.value = value;
        if at + 1 < count {
            whole.push_str(", ");
        }
        compacted.push(record);
    }
    is_broken |= mark.is_change() && whole.len() > MAX_COLUMNS;
    if is_broken { (whole, Text::List(compacted)) } else { (whole.clone(), Text::Line(whole)) }
}

fn expand_list(records: &[Record], out: &mut String, mark: Mark, depth: usize) {
    let is_plain = |record: &Record| {
        record.mark == Mark::UNKNOWN
            && record.key.is_empty()
            && record.value.is_line()
            && record.comment.is_none()
    };
    if !records.is_empty() && records.iter().all(is_plain) {
        expand_batches(records, out, mark, depth);
        return;
    }
    let has_no_key = |record: &Record| record.key.is_empty() || !record.value.is_line();
    let key_paddings = paddings(records, has_no_key, |record| record.key.chars().count());
    let has_no_comment = |record: &Record| {
        !record.value.is_line() || record.value.is_ellipsis() || record.comment.is_none()
    };
    let value_paddings = paddings(records, has_no_comment, |record| match &record.value {
        Text::Line(line) => line.chars().count(),
        _ => 0,
    });
    for ((record, key_padding), value_padding) in
        records.iter().zip(key_paddings).zip(value_paddings)
    {
        let own = mark.join(record.mark);
        out.push('\n');
        indent(out, own, depth + 1);
        if !record.key.is_empty() {
            let _ = write!(out, "{}: ", record.key);
        }
        out.extend(std::iter::repeat_n(' ', key_padding));
        record.value.expand(out, own, depth + 1);
        if record.has_comma {
            out.push(',');
        }
        out.extend(std::iter::repeat_n(' ', value_padding));
        if let Some(comment) = &record.comment {
            let _ = write!(out, " // {}", comment.words());
        }
    }
    out.push('\n');
    indent(out, mark, depth);
}

/// Several short items on each line.
fn expand_batches(records: &[Record], out: &mut String, mark: Mark, depth: usize) {
    let mut batch = String::new();
    let mut emit = |batch: &mut String| {
        if !batch.is_empty() {
            out.push('\n');
            indent(out, mark, depth + 1);
            out.push_str(batch.trim_end_matches(' '));
            batch.clear();
        }
    };
    for record in records {
        let Text::Line(line) = &record.value else { continue };
        if batch.len() + line.len() + 2 > MAX_COLUMNS {
            emit(&mut batch);
        }
        batch.push_str(line);
        batch.push_str(", ");
    }
    emit(&mut batch);
    out.push('\n');
    indent(out, mark, depth);
}

/// Blanks that align the values of neighbours. A skipped record separates neighbours.
fn paddings(
    records: &[Record],
    is_skipped: impl Fn(&Record) -> bool,
    length: impl Fn(&Record) -> usize,
) -> Vec<usize> {
    let mut paddings = vec![0; records.len()];
    for group in (0..records.len()).collect::<Vec<_>>().split(|at| is_skipped(&records[*at])) {
        let longest = group.iter().map(|at| length(&records[*at])).max().unwrap_or(0);
        for at in group {
            paddings[*at] = longest - length(&records[*at]);
        }
    }
    paddings
}

fn indent(out: &mut String, mark: Mark, depth: usize) {
    match mark {
        Mark::UNKNOWN | Mark::IDENTICAL => out.push_str("  "),
        Mark::REMOVED => out.push_str("- "),
        Mark::INSERTED => out.push_str("+ "),
        _ => {}
    }
    out.extend(std::iter::repeat_n('\t', depth));
}
