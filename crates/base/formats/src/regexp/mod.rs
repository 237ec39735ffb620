//! Go's regular expressions: what is wrong with one, in Go's words, and the same in the dialect of
//! the `regex` crate.
//!
//! Both read RE2's language, but not the same one: `\d`, `\s`, `\w` and `\b` mean ASCII in Go; a
//! `[`, `&&`, `--` or `~~` in a class is literal; a brace that counts nothing is literal; `\Q…\E`
//! quotes; octal escapes exist; repetitions do not stack. Definitions are refused in Go's words, so
//! the expression is read here once, as Go reads it, and written anew.
//!
//! Reading keeps its groups on a heap of its own and takes time linear in the text. It also tells
//! how large an expression is ([`Size`]), so that nobody compiles one to find out that it is too
//! large: `(?:\pL{30}){30}` is short, and takes forty megabytes when compiled.

mod class;
mod size;

pub use size::Size;

use class::perl_class;
use regex::{Regex, RegexBuilder};
use std::fmt::Write as _;

/// The greatest count of a repetition, also of nested ones multiplied.
const REPEAT_MAX: u64 = 1000;
/// The deepest nesting of groups that Go reads.
const DEPTH_MAX: usize = 1000;

/// The most bytes of a compiled expression.
const SIZE_MAX: usize = 32 << 20;

/// A text is no expression; the text is Go's: ``error parsing regexp: missing closing ): `(a` ``.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{expr}`")]
pub struct RegexpError {
    /// What is wrong, in the words of Go's `syntax.ErrorCode`.
    pub code: &'static str,
    /// The part of the expression that is wrong.
    pub expr: String,
}

/// Compiles an expression, within bounds: what would take too much memory is refused.
///
/// # Errors
///
/// As [`translate`]; `error parsing regexp: expression too large` where it is.
pub fn compile(text: &str) -> Result<Regex, RegexpError> {
    compile_within(text, SIZE_MAX)?.ok_or_else(|| too_large(text))
}

fn too_large(text: &str) -> RegexpError {
    RegexpError { code: "expression too large", expr: text.to_owned() }
}

/// How large an expression is; it is not compiled for that.
///
/// # Errors
///
/// As [`compile`], but for what [`Size`] takes for a bit smaller than it is.
pub fn measure(text: &str) -> Result<Size, RegexpError> {
    let size = read(text)?.1;
    if size.bytes > SIZE_MAX { Err(too_large(text)) } else { Ok(size) }
}

/// Compiles an expression; none if that takes more than so many bytes.
///
/// # Errors
///
/// As [`translate`].
pub fn compile_within(text: &str, size: usize) -> Result<Option<Regex>, RegexpError> {
    let (translated, measured) = read(text)?;
    // The crate lays out what it has read before it looks at the limit.
    if measured.bytes > SIZE_MAX {
        return Ok(None);
    }
    Ok(RegexBuilder::new(&translated).size_limit(size).build().ok())
}

/// Rewrites a Go expression for the `regex` crate.
///
/// # Errors
///
/// The text is no expression.
pub fn translate(text: &str) -> Result<String, RegexpError> {
    Ok(read(text)?.0)
}

/// Rewrites an expression, and measures it.
fn read(text: &str) -> Result<(String, Size), RegexpError> {
    let mut reader = Reader::new(text);
    reader.read().map_err(|(code, expr)| RegexpError { code, expr: expr.to_owned() })?;
    let size = reader.groups.last().map_or(Size::NONE, |group| group.size);
    Ok((reader.out, size))
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
    /// What a repetition would repeat.
    operand: Option<Operand>,
    /// The most repetitions of any part so far.
    most: u64,
    /// All parts so far.
    size: Size,
}

#[derive(Clone, Copy)]
struct Operand {
    /// How often it repeats inside already.
    times: u64,
    size: Size,
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
    /// Whether any of the flags was `i`.
    folds: bool,
    /// Whether no class of POSIX's ends in what is left.
    no_posix: bool,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            whole: text,
            rest: text,
            out: String::with_capacity(text.len() + 16),
            groups: vec![Group::default()],
            last_repeat: None,
            last_flags: (0, 0),
            folds: false,
            no_posix: false,
        }
    }

    fn read(&mut self) -> Result<(), Wrong<'a>> {
        while let Some(letter) = self.rest.chars().next() {
            let mut repeat = None;
            match letter {
                '(' => self.open()?,
                '|' => {
                    self.take(1, "|");
                    self.grow(Size::OPERATOR);
                    if let Some(group) = self.groups.last_mut() {
                        group.operand = None;
                    }
                }
                ')' => self.close()?,
                '^' | '$' | '.' => {
                    self.skip(letter);
                    self.out.push(letter);
                    self.settle(if letter == '.' { Size::BROAD } else { Size::LETTER });
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

    /// Sets what a repetition that follows would repeat, which is new.
    fn settle(&mut self, size: Size) {
        // A letter that stands for its cases is a class, and a class has the more ranges.
        let size = if self.folds { size.folded() } else { size };
        self.grow(size);
        self.set_operand(Operand { times: 1, size });
    }

    fn set_operand(&mut self, operand: Operand) {
        if let Some(group) = self.groups.last_mut() {
            group.operand = Some(operand);
            group.most = group.most.max(operand.times);
        }
    }

    /// Counts something in.
    fn grow(&mut self, size: Size) {
        if let Some(group) = self.groups.last_mut() {
            group.size = group.size.and(size);
        }
    }

    fn literal(&mut self, letter: char) {
        push_literal(&mut self.out, letter);
        self.settle(Size::LETTER);
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
                    self.folds |= letter == 'i';
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
                    self.grow(Size::GROUP);
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
        let group = self.groups.pop().unwrap_or_default();
        let size = group.size.and(Size::GROUP);
        self.grow(size);
        self.set_operand(Operand { times: group.most.max(1), size });
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
        let Operand { mut times, size } = inner;
        // Besides what is there once.
        let mut more = Size::OPERATOR.times(if operator == "*" { 2 } else { 1 });
        if let Some((least, most)) = counts {
            let count = most.unwrap_or(least);
            times = if count == 0 { 1 } else { times.saturating_mul(count) };
            let optional = most.map_or(1, |most| most.saturating_sub(least));
            more = size.times(count.saturating_sub(1)).and(Size::OPERATOR.times(optional));
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
        self.grow(more);
        self.set_operand(Operand { times, size: size.and(more) });
        Ok(())
    }

    /// What a backslash begins, outside of classes.
    fn escape(&mut self) -> Result<(), Wrong<'a>> {
        let before = self.rest;
        match before[1..].chars().next() {
            Some('A' | 'z') => {
                let text = &before[..2];
                self.take(2, text);
                self.settle(Size::LETTER);
            }
            Some(edge @ ('b' | 'B')) => {
                self.take(2, if edge == 'b' { "(?-u:\\b)" } else { "(?-u:\\B)" });
                self.settle(Size::LETTER);
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
                let (class, size) = self.unicode_class()?;
                self.out.push_str(&class);
                self.settle(size);
            }
            Some(class @ ('d' | 's' | 'w' | 'D' | 'S' | 'W')) => {
                let (negated, set) = perl_class(class);
                let _ = write!(self.out, "[{}{set}]", if negated { "^" } else { "" });
                self.take(2, "");
                self.settle(if negated { Size::BROAD } else { Size::LETTER });
            }
            _ => {
                let letter = self.escaped()?;
                if let Ok(letter) = letter {
                    self.literal(letter);
                } else {
                    self.out.push_str("[a&&b]");
                    self.settle(Size::LETTER);
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
}

/// A code point that Go lets an expression name although no text has it.
struct NotAChar;

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
