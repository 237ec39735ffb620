//! Constraint scanner: hyphen ranges, comparators and version patterns.

/// Replaces `a - b` by `>= a, <= b `.
pub(super) fn without_hyphens(text: &str) -> String {
    let mut out = text.to_owned();
    let mut at = 0;
    while at < text.len() {
        if let Some((range, from, to)) = hyphen_range(text, at) {
            at += range.len();
            // The first occurrence of the text is replaced, as upstream does. It is another one if
            // ranges share an end.
            out = out.replacen(range, &format!(">= {from}, <= {to} "), 1);
        } else {
            at += 1;
        }
    }
    out
}

/// The hyphen range that starts at a byte, including the blanks around it, and its two ends.
fn hyphen_range(text: &str, start: usize) -> Option<(&str, &str, &str)> {
    let bytes = text.as_bytes();
    let from_start = skip_blanks(bytes, start);
    let from_end = VersionPattern::scan(text, from_start)?.end;
    let hyphen = skip_blanks(bytes, from_end);
    let to_start = skip_blanks(bytes, hyphen + 1);
    if hyphen == from_end || bytes.get(hyphen) != Some(&b'-') || to_start == hyphen + 1 {
        return None;
    }
    let to_end = VersionPattern::scan(text, to_start)?.end;
    let end = skip_blanks(bytes, to_end);
    Some((&text[start..end], &text[from_start..from_end], &text[to_start..to_end]))
}

/// The index of the first byte at or after `at` that is not blank.
fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    at + count_while(bytes, at, u8::is_ascii_whitespace)
}

/// The count of consecutive bytes of a kind from `at` on.
fn count_while(bytes: &[u8], at: usize, kind: fn(&u8) -> bool) -> usize {
    bytes.get(at..).unwrap_or_default().iter().take_while(|byte| kind(byte)).count()
}

/// Splits a list of comparisons; none if the text is not such a list.
pub(super) fn comparisons(group: &str) -> Option<Vec<(Comparator, VersionPattern<'_>)>> {
    let bytes = group.as_bytes();
    let mut out = Vec::new();
    let mut at = skip_blanks(bytes, 0);
    loop {
        let length = count_while(bytes, at, |byte| b"=!<>~^".contains(byte));
        let comparator = Comparator::read(&group[at..at + length])?;
        let pattern = VersionPattern::scan(group, skip_blanks(bytes, at + length))?;
        let end = pattern.end;
        out.push((comparator, pattern));
        at = skip_blanks(bytes, end);
        if at == bytes.len() {
            return Some(out);
        }
        if bytes[at] == b',' {
            at = skip_blanks(bytes, at + 1);
        } else if at == end {
            return None;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparator {
    Equal,
    NotEqual,
    Above,
    Below,
    AtLeast,
    AtMost,
    Tilde,
    Caret,
}

impl Comparator {
    fn read(text: &str) -> Option<Self> {
        Some(match text {
            "" | "=" => Self::Equal,
            "!=" => Self::NotEqual,
            ">" => Self::Above,
            "<" => Self::Below,
            ">=" | "=>" => Self::AtLeast,
            "<=" | "=<" => Self::AtMost,
            "~" | "~>" => Self::Tilde,
            "^" => Self::Caret,
            _ => return None,
        })
    }
}

/// A version in a constraint, possibly with wildcards: `v1.x-rc.1+build`.
#[derive(Clone, Copy, Debug)]
pub(super) struct VersionPattern<'a> {
    /// The whole text, from the `v`, if there is one.
    pub(super) whole: &'a str,
    /// Up to three numbers, of digits, wildcards and bars.
    pub(super) numbers: [&'a str; 3],
    /// The pre-release without the hyphen, or empty.
    pub(super) pre: &'a str,
    /// The index of the end.
    end: usize,
}

impl<'a> VersionPattern<'a> {
    /// Scans the longest prefix that is a version; none if there is none.
    fn scan(text: &'a str, start: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        let number = |at| {
            count_while(bytes, at, |byte| matches!(byte, b'0'..=b'9' | b'x' | b'X' | b'*' | b'|'))
        };
        let mut at = start + usize::from(bytes.get(start) == Some(&b'v'));
        let length = number(at);
        if length == 0 {
            return None;
        }
        let mut numbers = [&text[at..at + length], "", ""];
        at += length;
        for number_text in &mut numbers[1..] {
            // A dot counts only before a number.
            let length = if bytes.get(at) == Some(&b'.') { number(at + 1) } else { 0 };
            if length == 0 {
                break;
            }
            *number_text = &text[at + 1..=at + length];
            at += 1 + length;
        }
        let pre = identifiers(text, at, b'-');
        at += if pre.is_empty() { 0 } else { 1 + pre.len() };
        let build = identifiers(text, at, b'+');
        at += if build.is_empty() { 0 } else { 1 + build.len() };
        Some(Self { whole: &text[start..at], numbers, pre, end: at })
    }
}

/// The identifiers after a mark, with the dots between them; empty if there are none.
fn identifiers(text: &str, mut at: usize, mark: u8) -> &str {
    let bytes = text.as_bytes();
    let start = at + 1;
    let mut mark = mark;
    while bytes.get(at) == Some(&mark) {
        let length =
            count_while(bytes, at + 1, |byte| byte.is_ascii_alphanumeric() || *byte == b'-');
        if length == 0 {
            break;
        }
        at += 1 + length;
        mark = b'.';
    }
    text.get(start..at).unwrap_or_default()
}
