//! Tokens, as libyaml's scanner finds them.
//!
//! What makes it awkward: whether a scalar is a key is known only at the colon behind it, so tokens
//! wait in a queue for as long as a key may still begin at its head.

use super::Fault;
use super::chars::{Chars, Mark};
use std::collections::{HashMap, VecDeque};

mod scalar;
mod tag;

/// How far brackets and indentation may be nested.
const DEPTH: usize = 10_000;
/// How long a key may be, if it is not announced by a question mark.
const KEY: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    StreamEnd,
    Version(u32, u32),
    TagDirective(Vec<u8>),
    DocumentStart,
    DocumentEnd,
    SequenceStart,
    MappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(Vec<u8>),
    Anchor(Vec<u8>),
    /// The handle; empty for tags that are written in full.
    Tag(Vec<u8>),
    Scalar,
}

/// Where a key may have begun.
#[derive(Clone, Copy, Debug, Default)]
struct SimpleKey {
    possible: bool,
    required: bool,
    token: usize,
    mark: Mark,
}

pub(super) struct Scanner<'t> {
    chars: Chars<'t>,
    tokens: VecDeque<(Token, Mark)>,
    /// How many tokens were taken.
    taken: usize,
    flow: usize,
    /// The present indentation; -1 outside of everything.
    indent: isize,
    indents: Vec<isize>,
    key_allowed: bool,
    keys: Vec<SimpleKey>,
    /// The key that a token may begin.
    by_token: HashMap<usize, usize>,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self {
            chars: Chars::new(text),
            tokens: VecDeque::new(),
            // The beginning of the stream is a token, which nobody wants to see.
            taken: 1,
            flow: 0,
            indent: -1,
            indents: Vec::new(),
            key_allowed: true,
            keys: vec![SimpleKey::default()],
            by_token: HashMap::new(),
        }
    }

    /// The next token and where it begins.
    pub(super) fn peek(&mut self) -> Result<&(Token, Mark), Fault> {
        loop {
            if !self.tokens.is_empty() {
                let Some(&key) = self.by_token.get(&self.taken) else { break };
                if !self.is_valid(key)? {
                    break;
                }
            }
            self.fetch()?;
        }
        // A token is there when the loop ends.
        Ok(&self.tokens[0])
    }

    pub(super) fn take(&mut self) {
        self.tokens.pop_front();
        self.taken += 1;
    }

    fn push(&mut self, token: Token, mark: Mark) {
        self.tokens.push_back((token, mark));
    }

    /// Puts a token before one that is in the queue; behind all if that one is gone.
    fn insert(&mut self, token: Token, mark: Mark, number: usize) {
        match number.checked_sub(self.taken) {
            Some(at) => self.tokens.insert(at.min(self.tokens.len()), (token, mark)),
            None => self.push(token, mark),
        }
    }

    fn is_valid(&mut self, key: usize) -> Result<bool, Fault> {
        let now = self.chars.mark;
        let Some(key) = self.keys.get_mut(key).filter(|key| key.possible) else {
            return Ok(false);
        };
        if key.mark.line < now.line || key.mark.index + KEY < now.index {
            if key.required {
                return Err(self.chars.fault("could not find expected ':'"));
            }
            key.possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    fn next_number(&self) -> usize {
        self.taken + self.tokens.len()
    }

    fn save_key(&mut self) -> Result<(), Fault> {
        let mark = self.chars.mark;
        if self.key_allowed {
            let required = self.flow == 0 && self.indent == signed(mark.column);
            let token = self.next_number();
            self.remove_key()?;
            let last = self.keys.len() - 1;
            self.keys[last] = SimpleKey { possible: true, required, token, mark };
            self.by_token.insert(token, last);
        }
        Ok(())
    }

    fn remove_key(&mut self) -> Result<(), Fault> {
        let last = self.keys.len() - 1;
        let key = &mut self.keys[last];
        if key.possible {
            if key.required {
                return Err(self.chars.fault("could not find expected ':'"));
            }
            key.possible = false;
            self.by_token.remove(&key.token);
        }
        Ok(())
    }

    /// Goes in to a column, if it is further in than the present one.
    fn roll(&mut self, mark: Mark, number: Option<usize>, token: Token) -> Result<(), Fault> {
        let column = signed(mark.column);
        if self.flow > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > DEPTH {
            return Err(self.chars.fault(&format!("exceeded max depth of {DEPTH}")));
        }
        match number {
            Some(number) => self.insert(token, mark, number),
            None => self.push(token, mark),
        }
        Ok(())
    }

    fn unroll(&mut self, column: isize) {
        while self.flow == 0 && self.indent > column {
            self.push(Token::BlockEnd, self.chars.mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn pass_blanks(&mut self) -> Result<(), Fault> {
        loop {
            self.chars.need(1)?;
            let tabs = self.flow > 0 || !self.key_allowed;
            while self.chars.is(b" ") || (tabs && self.chars.is(b"\t")) {
                self.chars.skip();
                self.chars.need(1)?;
            }
            if self.chars.is(b"#") {
                self.chars.skip_line()?;
            }
            if !self.chars.is_break(0) {
                return Ok(());
            }
            self.chars.need(2)?;
            self.chars.skip_break();
            if self.flow == 0 {
                self.key_allowed = true;
            }
        }
    }

    fn fetch(&mut self) -> Result<(), Fault> {
        self.pass_blanks()?;
        self.unroll(signed(self.chars.mark.column));
        self.chars.need(4)?;
        let chars = &self.chars;
        if chars.is_end() {
            return self.stream_end();
        }
        let before_space = chars.is_space_or_end(1);
        match chars.byte(0) {
            b'%' if chars.mark.column == 0 => self.directive(),
            b'-' if chars.is_marker(*b"---") => self.document(Token::DocumentStart),
            b'.' if chars.is_marker(*b"...") => self.document(Token::DocumentEnd),
            b'[' => self.flow_start(Token::FlowSequenceStart),
            b'{' => self.flow_start(Token::FlowMappingStart),
            b']' => self.flow_end(Token::FlowSequenceEnd),
            b'}' => self.flow_end(Token::FlowMappingEnd),
            b',' => {
                self.remove_key()?;
                self.key_allowed = true;
                self.single(Token::FlowEntry);
                Ok(())
            }
            b'-' if before_space => self.block_entry(),
            b'?' if self.flow > 0 || before_space => self.key(),
            b':' if self.flow > 0 || before_space => self.value(),
            b'*' => self.anchor(Token::Alias),
            b'&' => self.anchor(Token::Anchor),
            b'!' => self.tag(),
            b'|' | b'>' if self.flow == 0 => self.block_scalar(),
            quote @ (b'\'' | b'"') => self.quoted(quote),
            b'\t' | b'#' | b'|' | b'>' | b'%' | b'@' | b'`' => Err(self.no_token()),
            b'?' | b':' if self.flow > 0 || before_space => Err(self.no_token()),
            b'-' if self.chars.is_blank(1) => Err(self.no_token()),
            _ => self.plain(),
        }
    }

    fn no_token(&self) -> Fault {
        self.chars.fault("found character that cannot start any token")
    }

    /// A token of one character.
    fn single(&mut self, token: Token) {
        let mark = self.chars.mark;
        self.chars.skip();
        self.push(token, mark);
    }

    fn stream_end(&mut self) -> Result<(), Fault> {
        if self.chars.mark.column != 0 {
            self.chars.mark.column = 0;
            self.chars.mark.line += 1;
        }
        self.unroll(-1);
        self.remove_key()?;
        self.key_allowed = false;
        self.push(Token::StreamEnd, self.chars.mark);
        Ok(())
    }

    fn document(&mut self, token: Token) -> Result<(), Fault> {
        self.unroll(-1);
        self.remove_key()?;
        self.key_allowed = false;
        let mark = self.chars.mark;
        for _ in 0..3 {
            self.chars.skip();
        }
        self.push(token, mark);
        Ok(())
    }

    fn flow_start(&mut self, token: Token) -> Result<(), Fault> {
        self.save_key()?;
        let (mark, number) = (self.chars.mark, self.next_number());
        self.keys.push(SimpleKey { token: number, mark, ..SimpleKey::default() });
        self.flow += 1;
        if self.flow > DEPTH {
            return Err(self.chars.fault(&format!("exceeded max depth of {DEPTH}")));
        }
        self.key_allowed = true;
        self.single(token);
        Ok(())
    }

    fn flow_end(&mut self, token: Token) -> Result<(), Fault> {
        self.remove_key()?;
        if self.flow > 0 {
            self.flow -= 1;
            if let Some(key) = self.keys.pop() {
                self.by_token.remove(&key.token);
            }
        }
        self.key_allowed = false;
        self.single(token);
        Ok(())
    }

    fn block_entry(&mut self) -> Result<(), Fault> {
        if self.flow == 0 {
            if !self.key_allowed {
                let message = "block sequence entries are not allowed in this context";
                return Err(self.chars.fault(message));
            }
            self.roll(self.chars.mark, None, Token::SequenceStart)?;
        }
        self.remove_key()?;
        self.key_allowed = true;
        self.single(Token::BlockEntry);
        Ok(())
    }

    fn key(&mut self) -> Result<(), Fault> {
        if self.flow == 0 {
            if !self.key_allowed {
                return Err(self.chars.fault("mapping keys are not allowed in this context"));
            }
            self.roll(self.chars.mark, None, Token::MappingStart)?;
        }
        self.remove_key()?;
        self.key_allowed = self.flow == 0;
        self.single(Token::Key);
        Ok(())
    }

    fn value(&mut self) -> Result<(), Fault> {
        let last = self.keys.len() - 1;
        if self.is_valid(last)? {
            let SimpleKey { token, mark, .. } = self.keys[last];
            self.insert(Token::Key, mark, token);
            self.roll(mark, Some(token), Token::MappingStart)?;
            self.keys[last].possible = false;
            self.by_token.remove(&token);
            self.key_allowed = false;
        } else {
            if self.flow == 0 {
                if !self.key_allowed {
                    return Err(self.chars.fault("mapping values are not allowed in this context"));
                }
                self.roll(self.chars.mark, None, Token::MappingStart)?;
            }
            self.key_allowed = self.flow == 0;
        }
        self.single(Token::Value);
        Ok(())
    }

    fn anchor(&mut self, token: fn(Vec<u8>) -> Token) -> Result<(), Fault> {
        self.save_key()?;
        self.key_allowed = false;
        let mark = self.chars.mark;
        self.chars.skip();
        let name = self.chars.word()?.to_vec();
        if name.is_empty() || !(self.chars.is_space_or_end(0) || self.chars.is(b"?:,]}%@`")) {
            return Err(self.chars.fault("did not find expected alphabetic or numeric character"));
        }
        self.push(token(name), mark);
        Ok(())
    }
}

fn signed(column: usize) -> isize {
    isize::try_from(column).unwrap_or(isize::MAX)
}
