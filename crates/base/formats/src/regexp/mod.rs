//! Go's regular expressions: what is wrong with one, in Go's words, and the same in the dialect of
//! the `regex` crate.
//!
//! Both read RE2's language, but not the same one: `\d`, `\s`, `\w` and `\b` mean ASCII in Go; a
//! `[`, `&&`, `--` or `~~` in a class is literal; a brace that counts nothing is literal; `\Q…\E`
//! quotes; octal escapes exist; repetitions do not stack. Definitions are refused in Go's words, so
//! the expression is read here once, as Go reads it, and written anew.
//!
//! Reading keeps its groups on a heap of its own and takes time linear in the text.

use regex::{Regex, RegexBuilder};
use std::fmt::Write as _;

/// The greatest count of a repetition, also of nested ones multiplied.
const REPEAT_MAX: u64 = 1000;
/// The deepest nesting of groups that Go reads.
const DEPTH_MAX: usize = 1000;
const DIGITS: &str = "0-9";
const SPACES: &str = "\\t\\n\\f\\r ";
const WORDS: &str = "0-9A-Za-z_";
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// The most bytes of a compiled expression.
const SIZE_MAX: usize = 32 << 20;

/// Compiles an expression, within bounds: what would take too much memory is refused.
///
/// # Errors
///
/// As [`translate`]; `error parsing regexp: expression too large` where it is.
pub fn compile(text: &str) -> Result<Regex, String> {
    compile_within(text, SIZE_MAX)?
        .ok_or_else(|| format!("error parsing regexp: expression too large: `{text}`"))
}

/// Compiles an expression; none if that takes more than so many bytes.
///
/// # Errors
///
/// As [`translate`].
pub fn compile_within(text: &str, size: usize) -> Result<Option<Regex>, String> {
    let translated = translate(text)?;
    Ok(RegexBuilder::new(&translated).size_limit(size).build().ok())
}

/// Rewrites a Go expression for the `regex` crate.
///
/// # Errors
///
/// What Go says is wrong with it: ``error parsing regexp: missing closing ): `(a` ``.
pub fn translate(text: &str) -> Result<String, String> {
    let mut reader = Reader {
        whole: text,
        rest: text,
        out: String::with_capacity(text.len() + 16),
        groups: vec![Group::default()],
        last_repeat: None,
        last_flags: (0, 0),
    };
    reader.read().map_err(|(what, at)| format!("error parsing regexp: {what}: `{at}`"))?;
    Ok(reader.out)
}

type Wrong<'a> = (&'static str, &'a str);

const BAD_CLASS: &str = "invalid character class range";
const BAD_ESCAPE: &str = "invalid escape sequence";
const BAD_COUNT: &str = "invalid repeat count";
const BAD_NAME: &str = "invalid named capture";
const BAD_NEST: &str = "invalid nested repetition operator";
const BAD_PERL: &str = "invalid or unsupported Perl syntax";
const NO_BRACKET: &str = "missing closing ]";

/// An open group, or the whole expression.
#[derive(Default)]
struct Group {
    /// What a repetition would repeat: how often it repeats inside already.
    operand: Option<u64>,
    /// The most repetitions of any part so far.
    most: u64,
}

struct Reader<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
    groups: Vec<Group>,
    /// Where the repetition that was just read begins.
    last_repeat: Option<&'a str>,
    /// Where flags such as `(?i)` were written last: from, to.
    last_flags: (usize, usize),
}

impl<'a> Reader<'a> {
    fn read(&mut self) -> Result<(), Wrong<'a>> {
        while let Some(letter) = self.rest.chars().next() {
            let mut repeat = None;
            match letter {
                '(' => self.open()?,
                '|' => {
                    self.take(1, "|");
                    self.settle(None);
                }
                ')' => self.close()?,
                '^' | '$' | '.' => {
                    self.skip(letter);
                    self.out.push(letter);
                    self.settle(Some(1));
                }
                '[' => self.class()?,
                '*' | '+' | '?' => {
                    let before = self.rest;
                    self.skip(letter);
                    self.repeat(before, None)?;
                    repeat = Some(before);
                }
                '{' => {
                    let before = self.rest;
                    if let Some((least, most, after)) = counts(before) {
                        self.rest = after;
                        let bad = least.is_none_or(|least| least > REPEAT_MAX)
                            || most.is_some_and(|most| most > REPEAT_MAX)
                            || most.is_some_and(|most| least.is_some_and(|least| least > most));
                        if bad {
                            return Err((BAD_COUNT, self.since(before)));
                        }
                        self.repeat(before, Some((least.unwrap_or_default(), most)))?;
                        repeat = Some(before);
                    } else {
                        self.skip(letter);
                        self.literal(letter);
                    }
                }
                '\\' => self.escape()?,
                other => {
                    self.skip(other);
                    self.literal(other);
                }
            }
            self.last_repeat = repeat;
        }
        if self.groups.len() > 1 { Err(("missing closing )", self.whole)) } else { Ok(()) }
    }

    fn skip(&mut self, letter: char) {
        self.rest = &self.rest[letter.len_utf8()..];
    }

    /// Passes over ASCII and writes something in its place.
    fn take(&mut self, length: usize, text: &str) {
        self.rest = &self.rest[length..];
        self.out.push_str(text);
    }

    /// The text from there up to here.
    fn since(&self, before: &'a str) -> &'a str {
        &before[..before.len() - self.rest.len()]
    }

    /// Sets what a repetition that follows would repeat.
    fn settle(&mut self, operand: Option<u64>) {
        if let Some(group) = self.groups.last_mut() {
            group.operand = operand;
            group.most = group.most.max(operand.unwrap_or_default());
        }
    }

    fn literal(&mut self, letter: char) {
        push_literal(&mut self.out, letter);
        self.settle(Some(1));
    }

    fn open(&mut self) -> Result<(), Wrong<'a>> {
        let before = self.rest;
        if before.starts_with("(?") {
            let named = ["(?P<", "(?<"].iter().find(|start| before.starts_with(**start));
            // The longer form needs one letter more before Go takes it for a name at all.
            if let Some(start) = named.filter(|start| before.len() > start.len()) {
                return self.named(start.len());
            }
            return self.flags();
        }
        self.take(1, "(?:");
        self.push_group()
    }

    fn push_group(&mut self) -> Result<(), Wrong<'a>> {
        if self.groups.len() > DEPTH_MAX {
            return Err(("expression nests too deeply", self.whole));
        }
        self.groups.push(Group::default());
        Ok(())
    }

    fn named(&mut self, start: usize) -> Result<(), Wrong<'a>> {
        let before = self.rest;
        let Some(end) = before.find('>') else { return Err((BAD_NAME, before)) };
        let name = before.get(start..end).unwrap_or_default();
        if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
            return Err((BAD_NAME, &before[..=end]));
        }
        // Names mean nothing here, and Go lets them repeat.
        self.take(end + 1, "(?:");
        self.push_group()
    }

    fn flags(&mut self) -> Result<(), Wrong<'a>> {
        let before = self.rest;
        let mut negative = false;
        let mut seen = false;
        // Of a flag that is there twice the last counts.
        let mut flags: Vec<(char, bool)> = Vec::new();
        self.rest = &before[2..];
        while let Some(letter) = self.rest.chars().next() {
            self.skip(letter);
            match letter {
                'i' | 'm' | 's' | 'U' => {
                    seen = true;
                    flags.retain(|(known, _)| *known != letter);
                    flags.push((letter, !negative));
                }
                '-' if !negative => {
                    negative = true;
                    seen = false;
                }
                ':' | ')' if seen || !negative => {
                    let of =
                        |set| flags.iter().filter(move |flag| flag.1 == set).map(|flag| flag.0);
                    let (on, off): (String, String) = (of(true).collect(), of(false).collect());
                    let minus = if off.is_empty() { "" } else { "-" };
                    let text = format!("(?{on}{minus}{off}{letter}");
                    if letter == ':' {
                        self.out.push_str(&text);
                        return self.push_group();
                    }
                    // Go allows `(?)`, which says nothing.
                    if text != "(?)" {
                        let start = self.flags_start();
                        self.out.push_str(&text);
                        self.last_flags = (start, self.out.len());
                    }
                    return Ok(());
                }
                _ => break,
            }
        }
        Err((BAD_PERL, self.since(before)))
    }

    /// Where in what is written the flags begin that were written last, or it ends.
    fn flags_start(&self) -> usize {
        let (start, end) = self.last_flags;
        if end == self.out.len() { start } else { self.out.len() }
    }

    fn close(&mut self) -> Result<(), Wrong<'a>> {
        if self.groups.len() < 2 {
            return Err(("unexpected )", self.whole));
        }
        self.take(1, ")");
        let inner = self.groups.pop().map_or(1, |group| group.most.max(1));
        self.settle(Some(inner));
        Ok(())
    }

    /// A repetition has been read; `counts` of one with braces.
    fn repeat(
        &mut self,
        before: &'a str,
        counts: Option<(u64, Option<u64>)>,
    ) -> Result<(), Wrong<'a>> {
        let operator = self.since(before);
        if self.rest.starts_with('?') {
            self.rest = &self.rest[1..];
        }
        if let Some(last) = self.last_repeat {
            return Err((BAD_NEST, self.since(last)));
        }
        let Some(inner) = self.groups.last().and_then(|group| group.operand) else {
            return Err(("missing argument to repetition operator", self.since(before)));
        };
        let mut times = inner;
        if let Some((least, most)) = counts {
            times = match most.unwrap_or(least) {
                0 => 1,
                count => inner.saturating_mul(count),
            };
            if (least >= 2 || most.is_some_and(|most| most >= 2)) && times > REPEAT_MAX {
                return Err((BAD_COUNT, self.since(before)));
            }
        }
        // Go repeats what is before flags: `a(?i)*` is `a*(?i)`. A question mark there could be
        // taken for part of another repetition.
        let at = self.flags_start();
        let operator_out = if operator == "?" && at < self.out.len() { "{0,1}" } else { operator };
        let lazy = if self.since(before).len() > operator.len() { "?" } else { "" };
        self.out.insert_str(at, &format!("{operator_out}{lazy}"));
        self.settle(Some(times));
        Ok(())
    }

    /// What a backslash begins, outside of classes.
    fn escape(&mut self) -> Result<(), Wrong<'a>> {
        let before = self.rest;
        match before[1..].chars().next() {
            Some('A' | 'z') => {
                let text = &before[..2];
                self.take(2, text);
                self.settle(Some(1));
            }
            Some(edge @ ('b' | 'B')) => {
                self.take(2, if edge == 'b' { "(?-u:\\b)" } else { "(?-u:\\B)" });
                self.settle(Some(1));
            }
            Some('C') => return Err((BAD_ESCAPE, &before[..2])),
            Some('Q') => {
                let (inner, after) = before[2..].split_once("\\E").unwrap_or((&before[2..], ""));
                for letter in inner.chars() {
                    self.literal(letter);
                }
                self.rest = after;
            }
            Some('p' | 'P') => {
                let class = self.unicode_class()?;
                self.out.push_str(&class);
                self.settle(Some(1));
            }
            Some(class @ ('d' | 's' | 'w' | 'D' | 'S' | 'W')) => {
                let (negated, set) = perl_class(class);
                let _ = write!(self.out, "[{}{set}]", if negated { "^" } else { "" });
                self.take(2, "");
                self.settle(Some(1));
            }
            _ => {
                let letter = self.escaped()?;
                if let Ok(letter) = letter {
                    self.literal(letter);
                } else {
                    self.out.push_str("[a&&b]");
                    self.settle(Some(1));
                }
            }
        }
        Ok(())
    }

    /// A single character behind a backslash.
    fn escaped(&mut self) -> Result<Result<char, NotAChar>, Wrong<'a>> {
        let before = self.rest;
        self.rest = &before[1..];
        let Some(letter) = self.rest.chars().next() else {
            return Err(("trailing backslash at end of expression", ""));
        };
        self.skip(letter);
        let next_octal = |rest: &str| {
            let digit = rest.bytes().next()?;
            (b'0'..=b'7').contains(&digit).then(|| u32::from(digit - b'0'))
        };
        match letter {
            '0' | '1'..='7' if letter == '0' || next_octal(self.rest).is_some() => {
                let mut code = u32::from(letter) - u32::from('0');
                for _ in 0..2 {
                    let Some(digit) = next_octal(self.rest) else { break };
                    code = code * 8 + digit;
                    self.rest = &self.rest[1..];
                }
                Ok(char::from_u32(code).ok_or(NotAChar))
            }
            'x' => self.hexadecimal().ok_or_else(|| (BAD_ESCAPE, self.since(before))),
            'a' => Ok(Ok('\u{7}')),
            'f' => Ok(Ok('\u{c}')),
            'n' => Ok(Ok('\n')),
            'r' => Ok(Ok('\r')),
            't' => Ok(Ok('\t')),
            'v' => Ok(Ok('\u{b}')),
            other if other.is_ascii() && !other.is_ascii_alphanumeric() => Ok(Ok(other)),
            _ => Err((BAD_ESCAPE, self.since(before))),
        }
    }

    /// The digits of `\x7f` and `\x{10ffff}`; none if they are not digits, or too many.
    fn hexadecimal(&mut self) -> Option<Result<char, NotAChar>> {
        let mut next = || {
            let letter = self.rest.chars().next()?;
            self.rest = &self.rest[letter.len_utf8()..];
            Some(letter)
        };
        let first = next()?;
        let mut code = 0;
        if first == '{' {
            let mut any = false;
            loop {
                let letter = next()?;
                if letter == '}' {
                    break;
                }
                code = code * 16 + letter.to_digit(16)?;
                if code > 0x10_ffff {
                    return None;
                }
                any = true;
            }
            if !any {
                return None;
            }
        } else {
            let second = next()?;
            code = first.to_digit(16)? * 16 + second.to_digit(16)?;
        }
        Some(char::from_u32(code).ok_or(NotAChar))
    }

    /// `\pL`, `\p{Greek}`, `\P{^Greek}`.
    fn unicode_class(&mut self) -> Result<String, Wrong<'a>> {
        let before = self.rest;
        self.rest = &before[2..];
        let mut negated = before.as_bytes()[1] == b'P';
        let mut name = match self.rest.chars().next() {
            None => return Err((BAD_CLASS, before)),
            Some('{') => {
                let Some(end) = before.find('}') else { return Err((BAD_CLASS, before)) };
                self.rest = &before[end + 1..];
                &before[3..end]
            }
            Some(letter) => {
                self.skip(letter);
                &self.since(before)[2..]
            }
        };
        if let Some(rest) = name.strip_prefix('^') {
            negated = !negated;
            name = rest;
        }
        let class = format!("\\{}{{{name}}}", if negated { 'P' } else { 'p' });
        let plain = name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
        if plain && (name == "Any" || Regex::new(&class).is_ok()) {
            Ok(class)
        } else {
            Err((BAD_CLASS, self.since(before)))
        }
    }

    fn class(&mut self) -> Result<(), Wrong<'a>> {
        let whole = self.rest;
        self.take(1, "[");
        if self.rest.starts_with('^') {
            self.take(1, "^");
        }
        let mut first = true;
        while first || !self.rest.starts_with(']') {
            first = false;
            let before = self.rest;
            if before.len() > 2
                && before.starts_with("[:")
                && let Some(end) = before[2..].find(":]")
            {
                let name = &before[2..2 + end];
                let text = &before[..end + 4];
                if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
                    return Err((BAD_CLASS, text));
                }
                self.take(text.len(), text);
                continue;
            }
            if before.starts_with("\\p") || before.starts_with("\\P") {
                let class = self.unicode_class()?;
                self.out.push_str(&class);
                continue;
            }
            let mut letters = before.chars();
            if letters.next() == Some('\\')
                && let Some(class @ ('d' | 's' | 'w' | 'D' | 'S' | 'W')) = letters.next()
            {
                let (negated, set) = perl_class(class);
                if negated {
                    let _ = write!(self.out, "[^{set}]");
                } else {
                    self.out.push_str(set);
                }
                self.take(2, "");
                continue;
            }
            self.range(whole)?;
        }
        self.take(1, "]");
        self.settle(Some(1));
        Ok(())
    }

    /// One character of a class, or a range of them.
    fn range(&mut self, whole: &'a str) -> Result<(), Wrong<'a>> {
        let before = self.rest;
        let low = self.class_char(whole)?;
        let mut high = low;
        if self.rest.len() >= 2 && self.rest.starts_with('-') && !self.rest.starts_with("-]") {
            self.rest = &self.rest[1..];
            high = self.class_char(whole)?;
            if high.code() < low.code() {
                return Err((BAD_CLASS, self.since(before)));
            }
        }
        // What is not a character of any text matches nothing; a range goes on behind it.
        let low = char::from_u32(low.code()).unwrap_or('\u{e000}');
        let high = char::from_u32(high.code()).unwrap_or('\u{d7ff}');
        if low <= high {
            let _ = write!(self.out, "\\x{{{:x}}}-\\x{{{:x}}}", u32::from(low), u32::from(high));
        } else {
            self.out.push_str("[a&&b]");
        }
        Ok(())
    }

    fn class_char(&mut self, whole: &'a str) -> Result<Point, Wrong<'a>> {
        match self.rest.chars().next() {
            None => Err((NO_BRACKET, whole)),
            Some('\\') => Ok(self.escaped()?.map_or(Point(0xd800), |c| Point(u32::from(c)))),
            Some(letter) => {
                self.skip(letter);
                Ok(Point(u32::from(letter)))
            }
        }
    }
}

/// A code point that Go lets an expression name although no text has it.
struct NotAChar;

/// A code point of a class.
#[derive(Clone, Copy)]
struct Point(u32);

impl Point {
    const fn code(self) -> u32 {
        self.0
    }
}

fn perl_class(letter: char) -> (bool, &'static str) {
    let set = match letter.to_ascii_lowercase() {
        'd' => DIGITS,
        's' => SPACES,
        _ => WORDS,
    };
    (letter.is_ascii_uppercase(), set)
}

fn push_literal(out: &mut String, letter: char) {
    if letter.is_ascii_alphanumeric() || !letter.is_ascii() {
        out.push(letter);
    } else {
        let _ = write!(out, "\\x{{{:x}}}", u32::from(letter));
    }
}

/// Reads `{2}`, `{2,}` or `{2,5}`: least, most, and what follows. A number that is too great for
/// Go is none as `least`.
fn counts(text: &str) -> Option<(Option<u64>, Option<u64>, &str)> {
    let (mut least, mut rest) = number(text.strip_prefix('{')?)?;
    let mut most = least;
    if let Some(after) = rest.strip_prefix(',') {
        if after.starts_with('}') {
            (most, rest) = (None, after);
        } else {
            (most, rest) = number(after)?;
            if most.is_none() {
                least = None;
            }
        }
    }
    Some((least, most, rest.strip_prefix('}')?))
}

fn number(text: &str) -> Option<(Option<u64>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let digits = &text[..end];
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    let value = digits.parse().ok().filter(|value: &u64| *value < 100_000_000);
    Some((value, &text[end..]))
}

#[cfg(test)]
mod tests;
