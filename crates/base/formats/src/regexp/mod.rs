//! Go's regular expressions: their syntax errors, and their translation for the `regex` crate.
//!
//! Both follow RE2, with differences: in Go `\d`, `\s`, `\w` and `\b` mean ASCII; a `[`, `&&`, `--`
//! or `~~` in a class is literal; a brace without a count is literal; `\Q…\E` quotes; octal escapes
//! exist; repetitions do not stack. CRDs are refused with Go's errors, so this module parses the
//! expression as Go does, and translates it.
//!
//! The parser keeps groups on the heap and takes time linear in the text. It also measures the
//! expression ([`Size`]), so that a too large one is not compiled: `(?:\pL{30}){30}` is short, and
//! takes forty megabytes compiled.

mod class;
mod size;

pub use size::Size;

use class::perl_class;
use regex::{Regex, RegexBuilder};
use std::fmt::Write as _;

/// The highest count of a repetition; counts of nested repetitions multiply.
const MAX_REPEAT: u64 = 1000;
/// Go's limit for nested groups.
const MAX_DEPTH: usize = 1000;

/// The largest compiled expression in bytes.
const MAX_BYTES: usize = 32 << 20;

/// A syntax error, as Go prints it: ``error parsing regexp: missing closing ): `(a` ``.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{expr}`")]
pub struct RegexpError {
    /// The text of Go's `syntax.ErrorCode`.
    pub code: &'static str,
    /// The invalid part of the expression.
    pub expr: String,
}

/// Compiles an expression of a bounded size.
///
/// # Errors
///
/// As [`translate`], and `error parsing regexp: expression too large`.
pub fn compile(text: &str) -> Result<Regex, RegexpError> {
    compile_within(text, MAX_BYTES)?.ok_or_else(|| too_large(text))
}

fn too_large(text: &str) -> RegexpError {
    RegexpError { code: "expression too large", expr: text.to_owned() }
}

/// Measures an expression without compiling it.
///
/// # Errors
///
/// As [`compile`], except for expressions that [`Size`] slightly underestimates.
pub fn measure(text: &str) -> Result<Size, RegexpError> {
    let size = translate_and_measure(text)?.1;
    if size.bytes > MAX_BYTES { Err(too_large(text)) } else { Ok(size) }
}

/// Compiles an expression; none if that takes more than `size` bytes.
///
/// # Errors
///
/// As [`translate`].
pub fn compile_within(text: &str, size: usize) -> Result<Option<Regex>, RegexpError> {
    let (translated, measured) = translate_and_measure(text)?;
    // The crate checks its limit only after it has allocated the parsed expression.
    if measured.bytes > MAX_BYTES {
        return Ok(None);
    }
    Ok(RegexBuilder::new(&translated).size_limit(size).build().ok())
}

/// Translates a Go expression for the `regex` crate.
///
/// # Errors
///
/// If the text is not an expression.
pub fn translate(text: &str) -> Result<String, RegexpError> {
    Ok(translate_and_measure(text)?.0)
}

/// Translates an expression, and measures it.
fn translate_and_measure(text: &str) -> Result<(String, Size), RegexpError> {
    let mut translator = Translator::new(text);
    translator
        .translate_all()
        .map_err(|(code, expr)| RegexpError { code, expr: expr.to_owned() })?;
    let size = translator.groups.last().map_or(Size::NONE, |group| group.size);
    Ok((translator.out, size))
}

type SyntaxError<'a> = (&'static str, &'a str);

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
    /// The operand of a following repetition.
    operand: Option<Operand>,
    /// The highest number of repetitions of a part so far.
    max_times: u64,
    /// The size of all parts so far.
    size: Size,
}

#[derive(Clone, Copy)]
struct Operand {
    /// The number of repetitions inside it.
    times: u64,
    size: Size,
}

struct Translator<'a> {
    whole: &'a str,
    rest: &'a str,
    out: String,
    groups: Vec<Group>,
    /// The rest of the text at the previous token, if that was a repetition.
    last_repeat: Option<&'a str>,
    /// The range in the output of the last flags, such as `(?i)`.
    last_flags: (usize, usize),
    /// Whether any of the flags was `i`.
    ignores_case: bool,
    /// Whether no POSIX class ends in the rest.
    no_posix: bool,
}

impl<'a> Translator<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            whole: text,
            rest: text,
            out: String::with_capacity(text.len() + 16),
            groups: vec![Group::default()],
            last_repeat: None,
            last_flags: (0, 0),
            ignores_case: false,
            no_posix: false,
        }
    }

    fn translate_all(&mut self) -> Result<(), SyntaxError<'a>> {
        while let Some(letter) = self.rest.chars().next() {
            let mut repeat = None;
            match letter {
                '(' => self.open()?,
                '|' => {
                    self.emit(1, "|");
                    self.add_size(Size::OPERATOR);
                    if let Some(group) = self.groups.last_mut() {
                        group.operand = None;
                    }
                }
                ')' => self.close()?,
                '^' | '$' | '.' => {
                    self.skip(letter);
                    self.out.push(letter);
                    self.add_operand(if letter == '.' { Size::BROAD } else { Size::LETTER });
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
                    if let Some((min, max, after)) = counts(before) {
                        self.rest = after;
                        let bad = min.is_none_or(|min| min > MAX_REPEAT)
                            || max.is_some_and(|max| max > MAX_REPEAT)
                            || max.is_some_and(|max| min.is_some_and(|min| min > max));
                        if bad {
                            return Err((BAD_COUNT, self.since(before)));
                        }
                        self.repeat(before, Some((min.unwrap_or_default(), max)))?;
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

    /// Skips `length` bytes of ASCII and writes `text` in their place.
    fn emit(&mut self, length: usize, text: &str) {
        self.rest = &self.rest[length..];
        self.out.push_str(text);
    }

    /// The text from a former position to the current one.
    fn since(&self, before: &'a str) -> &'a str {
        &before[..before.len() - self.rest.len()]
    }

    /// Adds a new part, which a following repetition repeats.
    fn add_operand(&mut self, size: Size) {
        // Without case a letter is a class, and a class has more ranges.
        let size = if self.ignores_case { size.folded() } else { size };
        self.add_size(size);
        self.set_operand(Operand { times: 1, size });
    }

    fn set_operand(&mut self, operand: Operand) {
        if let Some(group) = self.groups.last_mut() {
            group.operand = Some(operand);
            group.max_times = group.max_times.max(operand.times);
        }
    }

    /// Adds a size to the open group.
    fn add_size(&mut self, size: Size) {
        if let Some(group) = self.groups.last_mut() {
            group.size = group.size.and(size);
        }
    }

    fn literal(&mut self, letter: char) {
        push_literal(&mut self.out, letter);
        self.add_operand(Size::LETTER);
    }

    fn open(&mut self) -> Result<(), SyntaxError<'a>> {
        let before = self.rest;
        if before.starts_with("(?") {
            let prefix = ["(?P<", "(?<"].iter().find(|start| before.starts_with(**start));
            // Go reads a name only if at least one letter follows the prefix.
            if let Some(start) = prefix.filter(|start| before.len() > start.len()) {
                return self.named_group(start.len());
            }
            return self.flags();
        }
        self.emit(1, "(?:");
        self.push_group()
    }

    fn push_group(&mut self) -> Result<(), SyntaxError<'a>> {
        if self.groups.len() > MAX_DEPTH {
            return Err(("expression nests too deeply", self.whole));
        }
        self.groups.push(Group::default());
        Ok(())
    }

    fn named_group(&mut self, start: usize) -> Result<(), SyntaxError<'a>> {
        let before = self.rest;
        let Some(end) = before.find('>') else { return Err((BAD_NAME, before)) };
        let name = before.get(start..end).unwrap_or_default();
        if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
            return Err((BAD_NAME, &before[..=end]));
        }
        // Names are dropped: they have no effect here, and Go allows duplicates.
        self.emit(end + 1, "(?:");
        self.push_group()
    }

    fn flags(&mut self) -> Result<(), SyntaxError<'a>> {
        let before = self.rest;
        let mut negative = false;
        let mut seen = false;
        // Of duplicate flags the last counts.
        let mut flags: Vec<(char, bool)> = Vec::new();
        self.rest = &before[2..];
        while let Some(letter) = self.rest.chars().next() {
            self.skip(letter);
            match letter {
                'i' | 'm' | 's' | 'U' => {
                    seen = true;
                    self.ignores_case |= letter == 'i';
                    flags.retain(|(known, _)| *known != letter);
                    flags.push((letter, !negative));
                }
                '-' if !negative => {
                    negative = true;
                    seen = false;
                }
                ':' | ')' if seen || !negative => {
                    let flags_set_to =
                        |set| flags.iter().filter(move |flag| flag.1 == set).map(|flag| flag.0);
                    let (on, off): (String, String) =
                        (flags_set_to(true).collect(), flags_set_to(false).collect());
                    let minus = if off.is_empty() { "" } else { "-" };
                    let text = format!("(?{on}{minus}{off}{letter}");
                    if letter == ':' {
                        self.out.push_str(&text);
                        return self.push_group();
                    }
                    self.add_size(Size::GROUP);
                    // Go allows `(?)`, which has no effect.
                    if text != "(?)" {
                        let start = self.last_flags_start();
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

    /// The start of flags at the end of the output, or the end of the output.
    fn last_flags_start(&self) -> usize {
        let (start, end) = self.last_flags;
        if end == self.out.len() { start } else { self.out.len() }
    }

    fn close(&mut self) -> Result<(), SyntaxError<'a>> {
        if self.groups.len() < 2 {
            return Err(("unexpected )", self.whole));
        }
        self.emit(1, ")");
        let group = self.groups.pop().unwrap_or_default();
        let size = group.size.and(Size::GROUP);
        self.add_size(size);
        self.set_operand(Operand { times: group.max_times.max(1), size });
        Ok(())
    }

    /// Translates a repetition; `counts` are those in braces.
    fn repeat(
        &mut self,
        before: &'a str,
        counts: Option<(u64, Option<u64>)>,
    ) -> Result<(), SyntaxError<'a>> {
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
        // The size beyond one copy of the operand.
        let mut more = Size::OPERATOR.times(if operator == "*" { 2 } else { 1 });
        if let Some((min, max)) = counts {
            let count = max.unwrap_or(min);
            times = if count == 0 { 1 } else { times.saturating_mul(count) };
            let optional = max.map_or(1, |max| max.saturating_sub(min));
            more = size.times(count.saturating_sub(1)).and(Size::OPERATOR.times(optional));
            if (min >= 2 || max.is_some_and(|max| max >= 2)) && times > MAX_REPEAT {
                return Err((BAD_COUNT, self.since(before)));
            }
        }
        // Go repeats the operand before flags: `a(?i)*` is `a*(?i)`. A question mark there could
        // become part of another repetition.
        let at = self.last_flags_start();
        let operator_out = if operator == "?" && at < self.out.len() { "{0,1}" } else { operator };
        let lazy = if self.since(before).len() > operator.len() { "?" } else { "" };
        self.out.insert_str(at, &format!("{operator_out}{lazy}"));
        self.add_size(more);
        self.set_operand(Operand { times, size: size.and(more) });
        Ok(())
    }

    /// Translates an escape outside of classes.
    fn escape(&mut self) -> Result<(), SyntaxError<'a>> {
        let before = self.rest;
        match before[1..].chars().next() {
            Some('A' | 'z') => {
                let text = &before[..2];
                self.emit(2, text);
                self.add_operand(Size::LETTER);
            }
            Some(edge @ ('b' | 'B')) => {
                self.emit(2, if edge == 'b' { "(?-u:\\b)" } else { "(?-u:\\B)" });
                self.add_operand(Size::LETTER);
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
                self.add_operand(size);
            }
            Some(class @ ('d' | 's' | 'w' | 'D' | 'S' | 'W')) => {
                let (negated, set) = perl_class(class);
                let _ = write!(self.out, "[{}{set}]", if negated { "^" } else { "" });
                self.emit(2, "");
                self.add_operand(if negated { Size::BROAD } else { Size::LETTER });
            }
            _ => {
                let letter = self.escaped()?;
                if let Ok(letter) = letter {
                    self.literal(letter);
                } else {
                    self.out.push_str("[a&&b]");
                    self.add_operand(Size::LETTER);
                }
            }
        }
        Ok(())
    }

    /// Parses an escaped character.
    fn escaped(&mut self) -> Result<Result<char, NotAChar>, SyntaxError<'a>> {
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

    /// Parses the digits of `\x7f` and `\x{10ffff}`; none if they are invalid.
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

/// A code point that Go accepts in an expression although no text contains it.
struct NotAChar;

fn push_literal(out: &mut String, letter: char) {
    if letter.is_ascii_alphanumeric() || !letter.is_ascii() {
        out.push(letter);
    } else {
        let _ = write!(out, "\\x{{{:x}}}", u32::from(letter));
    }
}

/// Parses `{2}`, `{2,}` or `{2,5}`: minimum, maximum, and the rest. If a number is too large for
/// Go, the minimum is none.
fn counts(text: &str) -> Option<(Option<u64>, Option<u64>, &str)> {
    let (mut min, mut rest) = number(text.strip_prefix('{')?)?;
    let mut max = min;
    if let Some(after) = rest.strip_prefix(',') {
        if after.starts_with('}') {
            (max, rest) = (None, after);
        } else {
            (max, rest) = number(after)?;
            if max.is_none() {
                min = None;
            }
        }
    }
    Some((min, max, rest.strip_prefix('}')?))
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
