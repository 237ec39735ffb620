//! JSONPath parser. Positions in errors are byte offsets in the given text.

use crate::{Comparison, Filter, Item, Slice, Step};
use serde_json::Value;

/// The template cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at byte {position})")]
pub struct ParseJsonPathError {
    /// The byte offset of the error in the text.
    pub position: usize,
    /// The error message.
    pub message: String,
}

impl ParseJsonPathError {
    pub(crate) fn at(position: usize, message: impl Into<String>) -> Self {
        Self { position, message: message.into() }
    }
}

/// The content of one pair of braces.
enum Action {
    Steps(Vec<Step>),
    Range(Vec<Step>),
    End,
}

/// Compiles text with expressions in braces.
pub(crate) fn parse_template(text: &str) -> Result<Vec<Item>, ParseJsonPathError> {
    let mut reader = Reader { text, at: 0, end: text.len() };
    parse_items(&mut reader, false)
}

/// Compiles text without the first and the last brace.
pub(crate) fn parse_without_braces(text: &str) -> Result<Vec<Item>, ParseJsonPathError> {
    // With the last brace appended, one reader serves both forms.
    let closed = format!("{text}}}");
    let mut reader = Reader { text: &closed, at: 0, end: closed.len() };
    parse_items(&mut reader, true)
}

/// Parses texts and actions, and nests the items between `range` and `end`.
fn parse_items(reader: &mut Reader<'_>, mut inside: bool) -> Result<Vec<Item>, ParseJsonPathError> {
    let mut open: Vec<(usize, Vec<Step>, Vec<Item>)> = Vec::new();
    let mut items = Vec::new();
    loop {
        if !inside {
            let rest = &reader.text[reader.at..];
            let length = rest.find('{').unwrap_or(rest.len());
            if length > 0 {
                items.push(Item::Text(Value::from(&rest[..length])));
            }
            reader.at += length;
            if reader.peek().is_none() {
                break;
            }
            reader.at += 1;
        }
        inside = false;
        let start = reader.at;
        match reader.action()? {
            Action::Steps(steps) => items.push(Item::Action(steps)),
            Action::Range(path) => open.push((start, path, std::mem::take(&mut items))),
            Action::End => {
                let (_, path, before) = open
                    .pop()
                    .ok_or_else(|| ParseJsonPathError::at(start, "not in range, nothing to end"))?;
                let body = std::mem::replace(&mut items, before);
                items.push(Item::Range { path, body });
            }
        }
    }
    match open.pop() {
        Some((start, ..)) => Err(ParseJsonPathError::at(start, "the range has no end")),
        None => Ok(items),
    }
}

/// A reader of a part of the text; sub-expressions get a reader of a smaller part.
#[derive(Clone, Copy)]
struct Reader<'a> {
    text: &'a str,
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..self.end]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn part(&self, from: usize, to: usize) -> Self {
        Self { text: self.text, at: from, end: to }
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, ParseJsonPathError> {
        Err(ParseJsonPathError::at(self.at, message))
    }

    /// Parses up to and including the closing brace.
    fn action(&mut self) -> Result<Action, ParseJsonPathError> {
        let (mut range, mut end) = (false, false);
        let mut steps = Vec::new();
        loop {
            match self.peek() {
                Some('}') => {
                    self.at += 1;
                    break;
                }
                Some(c) if is_word(c) && !c.is_numeric() => {
                    let start = self.at;
                    match self.word() {
                        "range" if steps.is_empty() => range = true,
                        "end" if steps.is_empty() => end = true,
                        "true" => steps.push(Step::Scalar(Value::Bool(true))),
                        "false" => steps.push(Step::Scalar(Value::Bool(false))),
                        other => {
                            let message = format!("unrecognized identifier {other}");
                            return Err(ParseJsonPathError::at(start, message));
                        }
                    }
                }
                _ => self.step(&mut steps)?,
            }
        }
        Ok(if end {
            Action::End
        } else if range {
            Action::Range(steps)
        } else {
            Action::Steps(steps)
        })
    }

    /// Parses all steps of this part: a side of a comparison, a quoted key.
    fn all(&mut self, steps: &mut Vec<Step>) -> Result<(), ParseJsonPathError> {
        while let Some(c) = self.peek() {
            if is_word(c) && !c.is_numeric() {
                let start = self.at;
                let value = match self.word() {
                    "true" => true,
                    "false" => false,
                    other => {
                        let message = format!("unrecognized identifier {other}");
                        return Err(ParseJsonPathError::at(start, message));
                    }
                };
                steps.push(Step::Scalar(Value::Bool(value)));
            } else {
                self.step(steps)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, steps: &mut Vec<Step>) -> Result<(), ParseJsonPathError> {
        if self.rest().starts_with("[?(") {
            let filter = self.filter()?;
            steps.push(Step::Filter(Box::new(filter)));
            return Ok(());
        }
        if self.rest().starts_with("..") {
            if steps.last() == Some(&Step::Recursive) {
                return self.fail("invalid multiple recursive descent");
            }
            self.at += 2;
            steps.push(Step::Recursive);
            if self.peek().is_some_and(is_word) {
                self.field(steps);
            }
            return Ok(());
        }
        match self.peek() {
            None | Some('\n' | '\r') => self.fail("unclosed action"),
            Some(' ' | '@' | '$') => {
                self.at += 1;
                Ok(())
            }
            Some('[') => self.brackets(steps),
            Some(quote @ ('"' | '\'')) => {
                let text = self.quoted(quote)?;
                steps.push(Step::Text(Value::String(text)));
                Ok(())
            }
            Some('.') => {
                self.at += 1;
                self.field(steps);
                Ok(())
            }
            Some(c) if matches!(c, '+' | '-') || c.is_numeric() => self.number(steps),
            Some(c) => self.fail(format!("unrecognized character {c:?} in action")),
        }
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let length = rest.find(is_terminator).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Parses a field name after its dot; a backslash escapes the next character.
    fn field(&mut self, steps: &mut Vec<Step>) {
        let start = self.at;
        while let Some(c) = self.peek() {
            if is_terminator(c) {
                break;
            }
            self.next();
            if c == '\\' {
                self.next();
            }
        }
        let written = &self.text[start..self.at];
        steps.push(if written == "*" {
            Step::Wildcard
        } else {
            Step::Field(written.replace('\\', ""))
        });
    }

    fn number(&mut self, steps: &mut Vec<Step>) -> Result<(), ParseJsonPathError> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with(['+', '-']));
        let digits = rest[sign..].find(|c: char| c != '.' && !c.is_numeric());
        let written = &rest[..digits.map_or(rest.len(), |length| sign + length)];
        let value = match (written.parse::<i64>(), written.parse::<f64>()) {
            (Ok(integer), _) => Value::from(integer),
            (_, Ok(float)) => Value::from(float),
            _ => return self.fail(format!("cannot parse number {written}")),
        };
        self.at += written.len();
        steps.push(Step::Scalar(value));
        Ok(())
    }

    /// Parses a quoted text with Go's escapes.
    fn quoted(&mut self, quote: char) -> Result<String, ParseJsonPathError> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            match self.next() {
                None | Some('\n') => {
                    return Err(ParseJsonPathError::at(start, "unterminated quoted string"));
                }
                Some('\\') => out.push(self.escape(quote)?),
                Some(c) if c == quote => return Ok(out),
                Some(c) => out.push(c),
            }
        }
    }

    fn escape(&mut self, quote: char) -> Result<char, ParseJsonPathError> {
        let start = self.at - 1;
        let unknown_escape = || ParseJsonPathError::at(start, "unknown escape in a quoted string");
        Ok(match self.next().ok_or_else(unknown_escape)? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' => '\\',
            c if c == quote => c,
            'x' => self.code(2, 16).ok_or_else(unknown_escape)?,
            'u' => self.code(4, 16).ok_or_else(unknown_escape)?,
            'U' => self.code(8, 16).ok_or_else(unknown_escape)?,
            _ => return Err(unknown_escape()),
        })
    }

    fn code(&mut self, digits: usize, radix: u32) -> Option<char> {
        let written = self.rest().get(..digits)?;
        let code = char::from_u32(u32::from_str_radix(written, radix).ok()?)?;
        self.at += digits;
        Some(code)
    }

    /// Parses `[…]`: an index, a slice, a quoted path, or several of them.
    fn brackets(&mut self, steps: &mut Vec<Step>) -> Result<(), ParseJsonPathError> {
        let start = self.at;
        let length = self.rest().find([']', '\n']);
        let close = match length.map(|length| start + length) {
            Some(close) if self.text.as_bytes()[close] == b']' => close,
            _ => return Err(ParseJsonPathError::at(start, "unterminated array")),
        };
        let inside = &self.text[start + 1..close];
        self.at = close + 1;
        if inside.contains(',') {
            let mut union = Vec::new();
            let mut from = start + 1;
            for written in inside.split(',') {
                let mut one = Vec::new();
                let lead = written.len() - written.trim_start_matches(' ').len();
                let trimmed = written.trim_matches(' ');
                self.part(from + lead, from + lead + trimmed.len()).selection(&mut one)?;
                union.push(one);
                from += written.len() + 1;
            }
            steps.push(Step::Union(union));
            return Ok(());
        }
        self.part(start + 1, close).selection(steps)
    }

    /// Parses one selection between brackets, without commas.
    fn selection(&mut self, steps: &mut Vec<Step>) -> Result<(), ParseJsonPathError> {
        let written = self.rest();
        let key = written.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        if let Some(key) = key.filter(|key| !key.contains('\'')) {
            let mut path = self.part(self.at + 1, self.at + 1 + key.len());
            path.field(steps);
            return path.all(steps);
        }
        let written = if written == "*" { ":" } else { written };
        let mut numbers = Vec::new();
        for number in written.split(':') {
            numbers.push(match number {
                "" => None,
                "-" => return self.fail("array index - is not a number"),
                digits => match digits.parse::<i64>() {
                    Ok(number) if !digits.starts_with('+') => Some(number),
                    _ => return self.fail(format!("invalid array index {written}")),
                },
            });
        }
        let slice = match *numbers.as_slice() {
            [start] => {
                let end = Some(start.unwrap_or_default().saturating_add(1));
                Slice { start, end, step: None, single: true }
            }
            [start, end] => Slice { start, end, step: None, single: false },
            [start, end, step] => Slice { start, end, step, single: false },
            _ => return self.fail(format!("invalid array index {written}")),
        };
        steps.push(Step::Slice(slice));
        Ok(())
    }

    /// Parses `[?(…)]`. Parentheses inside quotes do not close it.
    fn filter(&mut self) -> Result<Filter, ParseJsonPathError> {
        let start = self.at;
        self.at += 3;
        let from = self.at;
        let (mut quote, mut escaped) = (None, false);
        loop {
            let Some(c) = self.next() else {
                return Err(ParseJsonPathError::at(start, "unterminated filter"));
            };
            match (c, quote) {
                ('\n', _) => return Err(ParseJsonPathError::at(start, "unterminated filter")),
                (_, Some(_)) if escaped => escaped = false,
                ('\\', Some(_)) => escaped = true,
                ('"' | '\'', None) => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                (')', None) => break,
                _ => {}
            }
        }
        let to = self.at - 1;
        if self.peek() != Some(']') {
            return self.fail("unclosed array expect ]");
        }
        self.at += 1;

        let written = &self.text[from..to];
        let operator = written.find(is_operator).filter(|at| *at > 0);
        let Some(operator) = operator else {
            let mut left = Vec::new();
            self.part(from, to).all(&mut left)?;
            return Ok(Filter { left, test: None });
        };
        let length = written[operator..]
            .find(|c| !is_operator(c))
            .ok_or_else(|| ParseJsonPathError::at(to, "the comparison has no right side"))?;
        let comparison = match &written[operator..operator + length] {
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            other => {
                let message = format!("unrecognized filter operator {other}");
                return Err(ParseJsonPathError::at(from + operator, message));
            }
        };
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.part(from, from + operator).all(&mut left)?;
        self.part(from + operator + length, to).all(&mut right)?;
        Ok(Filter { left, test: Some((comparison, right)) })
    }
}

fn is_operator(c: char) -> bool {
    matches!(c, '!' | '<' | '>' | '=')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Whether a character ends a name.
fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}
