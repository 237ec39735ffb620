//! What a constraint is made of, by its characters.

/// Replaces `a - b` by `>= a, <= b `.
pub(super) fn without_hyphens(text: &str) -> String {
    let mut out = text.to_owned();
    let mut at = 0;
    while at < text.len() {
        if let Some((range, from, to)) = hyphen_range(text, at) {
            at += range.len();
            // The first place with these words is replaced, as the original does, which is not
            // this place if ranges share an end.
            out = out.replacen(range, &format!(">= {from}, <= {to} "), 1);
        } else {
            at += 1;
        }
    }
    out
}

/// The hyphen range that starts at a byte, with the blanks around it, and its ends.
fn hyphen_range(text: &str, start: usize) -> Option<(&str, &str, &str)> {
    let bytes = text.as_bytes();
    let from_start = blanks(bytes, start);
    let from_end = Written::scan(text, from_start)?.end;
    let hyphen = blanks(bytes, from_end);
    let to_start = blanks(bytes, hyphen + 1);
    if hyphen == from_end || bytes.get(hyphen) != Some(&b'-') || to_start == hyphen + 1 {
        return None;
    }
    let to_end = Written::scan(text, to_start)?.end;
    let end = blanks(bytes, to_end);
    Some((&text[start..end], &text[from_start..from_end], &text[to_start..to_end]))
}

/// The place of the first byte from here on that is no blank.
fn blanks(bytes: &[u8], at: usize) -> usize {
    at + run(bytes, at, u8::is_ascii_whitespace)
}

/// How many bytes from here on are of a kind.
fn run(bytes: &[u8], at: usize, kind: fn(&u8) -> bool) -> usize {
    bytes.get(at..).unwrap_or_default().iter().take_while(|byte| kind(byte)).count()
}

/// Splits a list of comparisons; none if it is not one.
pub(super) fn comparisons(group: &str) -> Option<Vec<(Comparator, Written<'_>)>> {
    let bytes = group.as_bytes();
    let mut out = Vec::new();
    let mut at = blanks(bytes, 0);
    loop {
        let length = run(bytes, at, |byte| b"=!<>~^".contains(byte));
        let comparator = Comparator::read(&group[at..at + length])?;
        let written = Written::scan(group, blanks(bytes, at + length))?;
        let end = written.end;
        out.push((comparator, written));
        at = blanks(bytes, end);
        if at == bytes.len() {
            return Some(out);
        }
        if bytes[at] == b',' {
            at = blanks(bytes, at + 1);
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

/// What stands where a version should: `v1.x-rc.1+build`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<'a> {
    /// From the `v`, if there is one, to the end.
    pub(super) whole: &'a str,
    /// Up to three; of digits, wildcards and bars.
    pub(super) numbers: [&'a str; 3],
    /// Without the hyphen, empty if there is none.
    pub(super) pre: &'a str,
    /// Where it ends.
    end: usize,
}

impl<'a> Written<'a> {
    /// Scans as far as the text can be a version; none if it is no version at all.
    fn scan(text: &'a str, start: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        let number =
            |at| run(bytes, at, |byte| matches!(byte, b'0'..=b'9' | b'x' | b'X' | b'*' | b'|'));
        let mut at = start + usize::from(bytes.get(start) == Some(&b'v'));
        let length = number(at);
        if length == 0 {
            return None;
        }
        let mut numbers = [&text[at..at + length], "", ""];
        at += length;
        for place in &mut numbers[1..] {
            // A dot counts only with a number behind it.
            let length = if bytes.get(at) == Some(&b'.') { number(at + 1) } else { 0 };
            if length == 0 {
                break;
            }
            *place = &text[at + 1..=at + length];
            at += 1 + length;
        }
        let pre = identifiers(text, at, b'-');
        at += if pre.is_empty() { 0 } else { 1 + pre.len() };
        let build = identifiers(text, at, b'+');
        at += if build.is_empty() { 0 } else { 1 + build.len() };
        Some(Self { whole: &text[start..at], numbers, pre, end: at })
    }
}

/// The identifiers behind a mark, with the dots between them; empty if there are none.
fn identifiers(text: &str, mut at: usize, mark: u8) -> &str {
    let bytes = text.as_bytes();
    let start = at + 1;
    let mut mark = mark;
    while bytes.get(at) == Some(&mark) {
        let length = run(bytes, at + 1, |byte| byte.is_ascii_alphanumeric() || *byte == b'-');
        if length == 0 {
            break;
        }
        at += 1 + length;
        mark = b'.';
    }
    text.get(start..at).unwrap_or_default()
}
