//! YAML scanner: tokens from indentation and indicators.
//!
//! Only a colon shows that a scalar is the key of a mapping; it follows on the same line within
//! 1,024 characters. Until then the tokens wait in a queue, so that the tokens of the mapping and
//! its key can be inserted before them.

use super::{Fault, Mark, Style};
use std::collections::{HashMap, VecDeque};

/// The maximum depth of collections in upstream's scanner.
const MAX_DEPTH: usize = 10_000;
/// The maximum distance of a simple key's colon from its beginning, in characters.
const KEY_LENGTH: usize = 1024;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    StreamEnd,
    /// `%YAML` with its two numbers.
    Version(u8, u8),
    /// `%TAG` with a handle and its prefix.
    Handle(String, String),
    DocumentStart,
    DocumentEnd,
    BlockSequence,
    BlockMapping,
    BlockEnd,
    FlowSequence,
    FlowSequenceEnd,
    FlowMapping,
    FlowMappingEnd,
    /// A dash.
    Entry,
    /// A comma.
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    /// The handle (empty for a verbatim tag) and the suffix.
    Tag(String, String),
    Scalar(String, Style),
}

#[derive(Clone, Debug)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) start: Mark,
    pub(super) end: Mark,
}

/// A position where a simple key may have begun.
#[derive(Clone, Copy)]
struct SimpleKey {
    possible: bool,
    /// It must be a key: it is in the column of the mapping's keys.
    required: bool,
    /// The index of its first token.
    token: usize,
    mark: Mark,
}

pub(super) struct Scanner<'t> {
    pub(super) text: &'t str,
    pub(super) bytes: &'t [u8],
    /// The next byte.
    pub(super) at: usize,
    pub(super) mark: Mark,
    queue: VecDeque<Lexeme>,
    /// The number of tokens taken.
    taken: usize,
    /// The first token of the queue is final and can be taken.
    ready: bool,
    /// One for each open flow collection, and one outside of them.
    keys: Vec<SimpleKey>,
    /// Positions in `keys` by the index of the key's first token, until that is taken.
    key_of_token: HashMap<usize, usize>,
    pub(super) key_allowed: bool,
    /// The column of the innermost block collection; -1 outside.
    pub(super) indent: isize,
    indents: Vec<isize>,
}

fn column(mark: Mark) -> isize {
    mark.column.cast_signed()
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let start = SimpleKey { possible: false, required: false, token: 0, mark: Mark::default() };
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            mark: Mark::default(),
            queue: VecDeque::new(),
            taken: 0,
            ready: false,
            keys: vec![start],
            key_of_token: HashMap::new(),
            key_allowed: true,
            indent: -1,
            indents: Vec::new(),
        }
    }

    /// The next token, without taking it.
    pub(super) fn peek(&mut self) -> Result<&Lexeme, Fault> {
        if !self.ready {
            self.fetch_enough()?;
            self.ready = true;
        }
        // After the end of the text the end token repeats.
        if self.queue.is_empty() {
            let end = Lexeme { token: Token::StreamEnd, start: self.mark, end: self.mark };
            self.queue.push_back(end);
        }
        Ok(&self.queue[0])
    }

    /// Takes the next token.
    pub(super) fn next(&mut self) -> Result<Lexeme, Fault> {
        self.peek()?;
        self.ready = false;
        self.key_of_token.remove(&self.taken);
        self.taken += 1;
        let end = Lexeme { token: Token::StreamEnd, start: self.mark, end: self.mark };
        Ok(self.queue.pop_front().unwrap_or(end))
    }

    pub(super) fn fail<T>(&self, message: &'static str) -> Result<T, Fault> {
        let mark = self.mark;
        Err(Fault { mark, place: mark, message: message.into(), scanning: true })
    }

    pub(super) fn in_flow(&self) -> bool {
        self.keys.len() > 1
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    pub(super) fn current(&self) -> Option<u8> {
        self.byte(self.at)
    }

    /// The length of the line break at a byte; 0 for none.
    pub(super) fn break_at(&self, at: usize) -> usize {
        match self.bytes.get(at..).unwrap_or_default() {
            [b'\r', b'\n', ..] | [0xc2, 0x85, ..] => 2,
            [b'\n' | b'\r', ..] => 1,
            [0xe2, 0x80, 0xa8 | 0xa9, ..] => 3,
            _ => 0,
        }
    }

    pub(super) fn at_blank(&self) -> bool {
        matches!(self.current(), Some(b' ' | b'\t'))
    }

    /// Whether a line or the text ends at a byte.
    pub(super) fn ends_at(&self, at: usize) -> bool {
        at >= self.bytes.len() || self.break_at(at) > 0
    }

    /// Whether a word ends at a byte.
    pub(super) fn gap_at(&self, at: usize) -> bool {
        matches!(self.byte(at), Some(b' ' | b'\t')) || self.ends_at(at)
    }

    /// Moves to a byte of the same line and returns the characters before it.
    pub(super) fn pass_to(&mut self, end: usize) -> &'t str {
        let passed = self.text.get(self.at..end).unwrap_or_default();
        let characters = passed.chars().count();
        self.mark.index += characters;
        self.mark.column += characters;
        self.at = end;
        passed
    }

    /// Moves past ASCII characters.
    pub(super) fn pass(&mut self, bytes: usize) {
        self.mark.index += bytes;
        self.mark.column += bytes;
        self.at += bytes;
    }

    /// Moves past a line break, if there is one, and returns it as it appears in a scalar.
    pub(super) fn pass_break(&mut self) -> &'t str {
        let length = self.break_at(self.at);
        if length == 0 {
            return "";
        }
        let passed = &self.text[self.at..self.at + length];
        self.at += length;
        self.mark.index += if passed == "\r\n" { 2 } else { 1 };
        self.mark.line += 1;
        self.mark.column = 0;
        if length == 3 { passed } else { "\n" }
    }

    pub(super) fn pass_blanks(&mut self) {
        while self.at_blank() {
            self.pass(1);
        }
    }

    /// Moves past a comment, if there is one.
    pub(super) fn pass_comment(&mut self) {
        if self.current() == Some(b'#') {
            let mut end = self.at;
            while !self.ends_at(end) {
                end += 1;
            }
            self.pass_to(end);
        }
    }

    /// The marker of a document's beginning or end at this position, if there is one.
    pub(super) fn document_marker(&self) -> Option<Token> {
        if self.mark.column > 0 || !self.gap_at(self.at + 3) {
            return None;
        }
        match self.bytes.get(self.at..self.at + 3)? {
            b"---" => Some(Token::DocumentStart),
            b"..." => Some(Token::DocumentEnd),
            _ => None,
        }
    }

    fn add(&mut self, token: Token, start: Mark) {
        self.queue.push_back(Lexeme { token, start, end: self.mark });
    }

    /// Inserts a token before the one with the index `number`. If that has been taken, the new one
    /// goes to the end. This happens after `[]`, where upstream forgets that a key may have begun;
    /// its queue does the same.
    fn insert(&mut self, number: Option<usize>, token: Token, mark: Mark) {
        let at = number.and_then(|number| number.checked_sub(self.taken));
        let at = at.unwrap_or(self.queue.len()).min(self.queue.len());
        self.queue.insert(at, Lexeme { token, start: mark, end: mark });
    }

    fn fetch_enough(&mut self) -> Result<(), Fault> {
        loop {
            if !self.queue.is_empty() {
                let Some(&level) = self.key_of_token.get(&self.taken) else { return Ok(()) };
                if !self.key_is_possible(level)? {
                    return Ok(());
                }
            }
            self.fetch()?;
        }
    }

    /// Whether the key of a level is still possible.
    fn key_is_possible(&mut self, level: usize) -> Result<bool, Fault> {
        let Some(&key) = self.keys.get(level).filter(|key| key.possible) else { return Ok(false) };
        if key.mark.line == self.mark.line && key.mark.index + KEY_LENGTH >= self.mark.index {
            return Ok(true);
        }
        if key.required {
            return self.fail("could not find expected ':'");
        }
        self.keys[level].possible = false;
        Ok(false)
    }

    /// Records that a simple key may begin here.
    fn save_key(&mut self) -> Result<(), Fault> {
        if !self.key_allowed {
            return Ok(());
        }
        self.remove_key()?;
        let level = self.keys.len() - 1;
        let token = self.taken + self.queue.len();
        let required = !self.in_flow() && self.indent == column(self.mark);
        self.keys[level] = SimpleKey { possible: true, required, token, mark: self.mark };
        self.key_of_token.insert(token, level);
        Ok(())
    }

    fn remove_key(&mut self) -> Result<(), Fault> {
        let level = self.keys.len() - 1;
        let key = self.keys[level];
        if key.possible {
            if key.required {
                return self.fail("could not find expected ':'");
            }
            self.keys[level].possible = false;
            self.key_of_token.remove(&key.token);
        }
        Ok(())
    }

    fn too_deep(&self) -> Fault {
        let message = format!("exceeded max depth of {MAX_DEPTH}").into();
        Fault { mark: self.mark, place: self.mark, message, scanning: true }
    }

    /// Opens a block collection if the column is deeper than that of the current one. Its token
    /// goes before the one with the index `number`, or to the end.
    fn roll(&mut self, number: Option<usize>, token: Token, mark: Mark) -> Result<(), Fault> {
        if self.in_flow() || self.indent >= column(mark) {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column(mark);
        if self.indents.len() > MAX_DEPTH {
            return Err(self.too_deep());
        }
        self.insert(number, token, mark);
        Ok(())
    }

    /// Closes block collections down to a column.
    fn unroll(&mut self, column: isize) {
        while !self.in_flow() && self.indent > column {
            self.add(Token::BlockEnd, self.mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    /// Moves past blanks, comments and line breaks. Tabs are blanks where no key may begin.
    fn pass_to_token(&mut self) {
        loop {
            let tabs = self.in_flow() || !self.key_allowed;
            while self.current() == Some(b' ') || (tabs && self.current() == Some(b'\t')) {
                self.pass(1);
            }
            self.pass_comment();
            if self.pass_break().is_empty() {
                return;
            }
            if !self.in_flow() {
                self.key_allowed = true;
            }
        }
    }

    fn fetch(&mut self) -> Result<(), Fault> {
        self.pass_to_token();
        self.unroll(column(self.mark));
        let start = self.mark;
        let Some(byte) = self.current() else { return self.stream_end() };
        if start.column == 0 && byte == b'%' {
            self.end_collections()?;
            let token = self.directive()?;
            self.add(token, start);
            return Ok(());
        }
        if let Some(token) = self.document_marker() {
            self.end_collections()?;
            self.pass(3);
            self.add(token, start);
            return Ok(());
        }
        let before_gap = self.gap_at(self.at + 1);
        let flow = self.in_flow();
        match byte {
            b'[' => self.open(Token::FlowSequence),
            b'{' => self.open(Token::FlowMapping),
            b']' => self.close(Token::FlowSequenceEnd),
            b'}' => self.close(Token::FlowMappingEnd),
            b',' => {
                self.remove_key()?;
                self.key_allowed = true;
                self.pass(1);
                self.add(Token::FlowEntry, start);
                Ok(())
            }
            b'-' if before_gap => {
                let message = "block sequence entries are not allowed in this context";
                self.indicator(Token::Entry, Token::BlockSequence, message)?;
                self.key_allowed = true;
                Ok(())
            }
            b'?' if flow || before_gap => {
                let message = "mapping keys are not allowed in this context";
                self.indicator(Token::Key, Token::BlockMapping, message)
            }
            b':' if flow || before_gap => self.value(),
            b'*' | b'&' => {
                self.save_key()?;
                self.key_allowed = false;
                let name = self.anchor()?;
                self.add(
                    if byte == b'*' { Token::Alias(name) } else { Token::Anchor(name) },
                    start,
                );
                Ok(())
            }
            b'!' => {
                self.save_key()?;
                self.key_allowed = false;
                let (handle, suffix) = self.tag()?;
                self.add(Token::Tag(handle, suffix), start);
                Ok(())
            }
            b'|' | b'>' if !flow => {
                self.remove_key()?;
                self.key_allowed = true;
                let text = self.block(byte == b'>')?;
                self.add(Token::Scalar(text, Style::Block), start);
                Ok(())
            }
            b'\'' | b'"' => {
                self.save_key()?;
                self.key_allowed = false;
                let text = self.quoted(byte)?;
                self.add(Token::Scalar(text, Style::Quoted), start);
                Ok(())
            }
            _ if self.begins_plain(byte) => {
                self.save_key()?;
                self.key_allowed = false;
                let (text, end) = self.plain()?;
                let token = Token::Scalar(text, Style::Plain);
                self.queue.push_back(Lexeme { token, start, end });
                Ok(())
            }
            _ => self.fail("found character that cannot start any token"),
        }
    }

    fn begins_plain(&self, byte: u8) -> bool {
        match byte {
            b'-' => !matches!(self.byte(self.at + 1), Some(b' ' | b'\t')),
            b'?' | b':' => !self.in_flow() && !self.gap_at(self.at + 1),
            b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
            | b'"' | b'%' | b'@' | b'`' | b' ' | b'\t' => false,
            _ => true,
        }
    }

    /// Ends all block collections, for a token at the beginning of a line outside of them.
    fn end_collections(&mut self) -> Result<(), Fault> {
        self.unroll(-1);
        self.remove_key()?;
        self.key_allowed = false;
        Ok(())
    }

    fn stream_end(&mut self) -> Result<(), Fault> {
        if self.mark.column > 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
        self.end_collections()?;
        self.add(Token::StreamEnd, self.mark);
        Ok(())
    }

    fn open(&mut self, token: Token) -> Result<(), Fault> {
        self.save_key()?;
        let number = self.taken + self.queue.len();
        let key = SimpleKey { possible: false, required: false, token: number, mark: self.mark };
        self.keys.push(key);
        if self.keys.len() > MAX_DEPTH + 1 {
            return Err(self.too_deep());
        }
        self.key_allowed = true;
        let start = self.mark;
        self.pass(1);
        self.add(token, start);
        Ok(())
    }

    fn close(&mut self, token: Token) -> Result<(), Fault> {
        self.remove_key()?;
        if self.in_flow()
            && let Some(key) = self.keys.pop()
        {
            self.key_of_token.remove(&key.token);
        }
        self.key_allowed = false;
        let start = self.mark;
        self.pass(1);
        self.add(token, start);
        Ok(())
    }

    /// Reads a dash or question mark; it opens a collection if its column is deeper.
    fn indicator(
        &mut self,
        token: Token,
        collection: Token,
        message: &'static str,
    ) -> Result<(), Fault> {
        let start = self.mark;
        if !self.in_flow() {
            if !self.key_allowed {
                return self.fail(message);
            }
            self.roll(None, collection, start)?;
        }
        self.remove_key()?;
        self.key_allowed = !self.in_flow();
        self.pass(1);
        self.add(token, start);
        Ok(())
    }

    /// Reads a colon.
    fn value(&mut self) -> Result<(), Fault> {
        let level = self.keys.len() - 1;
        if !self.key_is_possible(level)? {
            let message = "mapping values are not allowed in this context";
            return self.indicator(Token::Value, Token::BlockMapping, message);
        }
        let key = self.keys[level];
        self.insert(Some(key.token), Token::Key, key.mark);
        self.roll(Some(key.token), Token::BlockMapping, key.mark)?;
        self.keys[level].possible = false;
        self.key_of_token.remove(&key.token);
        self.key_allowed = false;
        let start = self.mark;
        self.pass(1);
        self.add(Token::Value, start);
        Ok(())
    }
}
