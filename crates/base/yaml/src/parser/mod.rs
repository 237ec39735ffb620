//! YAML parser by the rules of libyaml, of which upstream's parser in Go is a descendant.
//!
//! This parser handles all texts that the fast path does not: whether they are valid, their data,
//! and their errors. All of that depends on the order in which a parser reads a text, so this one
//! has the same order as upstream. The scanner ([`tokens`]) reads ahead until it knows
//! whether a simple key begins; a state machine turns tokens into events.
//!
//! Unlike upstream, it reads the documents after the first one too.

mod names;
mod scalars;
mod tokens;

use crate::YamlFault;
use std::{borrow::Cow, collections::BTreeMap};
use tokens::{Lexeme, Scanner, Token};

/// A position in a text, counted in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The index of the character, from 0.
    pub(crate) index: usize,
    /// The line, from 0.
    pub(crate) line: usize,
    /// The column, from 0.
    pub(crate) column: usize,
}

/// An error in a text.
#[derive(Debug)]
pub(crate) struct Fault {
    /// The position that upstream reports.
    pub(crate) mark: Mark,
    /// The position that helps a person: for a missing quote it is the opening quote.
    pub(crate) place: Mark,
    pub(crate) message: Cow<'static, str>,
    /// The scanner found it, not the parser.
    pub(crate) scanning: bool,
}

impl From<Fault> for YamlFault {
    fn from(fault: Fault) -> Self {
        if fault.message == EXTRA_CONTENT {
            Self::BehindDocument
        } else {
            Self::Syntax { message: fault.message }
        }
    }
}

/// The message for content after the end of a document.
const EXTRA_CONTENT: &str = "did not find expected <document start>";

/// The style of a scalar, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Quoted,
    Block,
}

/// The properties before a node.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    pub(crate) anchor: Option<String>,
    /// The tag with its prefix.
    pub(crate) tag: Option<String>,
}

/// An event of the parser.
#[derive(Debug)]
pub(crate) enum Event {
    DocumentStart,
    DocumentEnd,
    Alias(String),
    Scalar(String, Style, Properties),
    SequenceStart(Properties),
    SequenceEnd,
    MappingStart(Properties),
    MappingEnd,
}

/// The production that is expected next.
#[derive(Clone, Copy, Debug)]
enum State {
    /// A document. It needs a marker unless it is `bare`.
    Document {
        bare: bool,
    },
    Node,
    Content,
    DocumentEnd,
    Sequence,
    SequenceInMapping,
    Key,
    Value,
    FlowSequence {
        first: bool,
    },
    PairKey,
    PairValue,
    PairEnd,
    FlowKey {
        first: bool,
    },
    FlowValue,
    FlowNoValue,
    End,
}

/// The context of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeContext {
    Flow,
    Block,
    /// The field of a mapping, where dashes need no indentation.
    Field,
}

const NO_CONTENT: &str = "did not find expected node content";

type Step = Result<(Event, Mark), Fault>;

/// The events of a text.
pub(crate) struct Parser<'t> {
    scanner: Scanner<'t>,
    state: State,
    /// The states after the nodes that are open.
    states: Vec<State>,
    /// Tag prefixes by handle.
    handles: BTreeMap<String, String>,
    /// No document has begun yet.
    first: bool,
    failed: bool,
}

impl<'t> Parser<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self {
            scanner: Scanner::new(text),
            state: State::Document { bare: true },
            states: Vec::new(),
            handles: BTreeMap::new(),
            first: true,
            failed: false,
        }
    }

    /// How far the text has been scanned, in bytes.
    pub(crate) fn reached(&self) -> usize {
        self.scanner.at
    }

    fn step(&mut self) -> Result<Option<(Event, Mark)>, Fault> {
        Ok(Some(match self.state {
            State::End => return Ok(None),
            State::Document { bare } => return self.document(bare),
            State::Node => self.node(NodeContext::Block),
            State::Content => self.content(),
            State::DocumentEnd => self.document_end(),
            State::Sequence => self.sequence(),
            State::SequenceInMapping => self.sequence_in_mapping(),
            State::Key => self.key(),
            State::Value => self.value(),
            State::FlowSequence { first } => self.flow_sequence(first),
            State::PairKey => self.pair_key(),
            State::PairValue => self.flow_value(State::PairEnd, &Token::FlowSequenceEnd),
            State::PairEnd => {
                self.state = State::FlowSequence { first: false };
                let mark = self.scanner.peek()?.start;
                Ok((Event::MappingEnd, mark))
            }
            State::FlowKey { first } => self.flow_key(first),
            State::FlowValue => {
                self.flow_value(State::FlowKey { first: false }, &Token::FlowMappingEnd)
            }
            State::FlowNoValue => {
                let mark = self.scanner.peek()?.start;
                Ok(self.nothing(State::FlowKey { first: false }, mark))
            }
        }?))
    }

    fn fail<T>(mark: Mark, message: &'static str) -> Result<T, Fault> {
        Err(Fault { mark, place: mark, message: message.into(), scanning: false })
    }

    /// The event of an empty node.
    fn nothing(&mut self, then: State, mark: Mark) -> (Event, Mark) {
        self.state = then;
        (Event::Scalar(String::new(), Style::Plain, Properties::default()), mark)
    }

    fn pop(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    /// Takes the token that closes a collection.
    fn close(&mut self, event: Event) -> Step {
        self.pop();
        let mark = self.scanner.next()?.start;
        Ok((event, mark))
    }

    fn document(&mut self, bare: bool) -> Result<Option<(Event, Mark)>, Fault> {
        while !self.first && self.scanner.peek()?.token == Token::DocumentEnd {
            self.scanner.next()?;
        }
        self.first = false;
        let Lexeme { token, start, .. } = self.scanner.peek()?;
        let mark = *start;
        if *token == Token::StreamEnd {
            self.state = State::End;
            return Ok(None);
        }
        let announced =
            matches!(token, Token::Version(..) | Token::Handle(..) | Token::DocumentStart);
        self.directives()?;
        self.states.push(State::DocumentEnd);
        if bare && !announced {
            self.state = State::Node;
            return Ok(Some((Event::DocumentStart, mark)));
        }
        let found = self.scanner.peek()?;
        if found.token != Token::DocumentStart {
            return Self::fail(found.start, EXTRA_CONTENT);
        }
        self.scanner.next()?;
        self.state = State::Content;
        Ok(Some((Event::DocumentStart, mark)))
    }

    fn directives(&mut self) -> Result<(), Fault> {
        let mut version = false;
        self.handles.clear();
        loop {
            let Lexeme { token, start, .. } = self.scanner.peek()?;
            let start = *start;
            match token {
                Token::Version(..) if version => {
                    return Self::fail(start, "found duplicate %YAML directive");
                }
                Token::Version(1, 1) => version = true,
                Token::Version(..) => {
                    return Self::fail(start, "found incompatible YAML document");
                }
                Token::Handle(handle, prefix) => {
                    let (handle, prefix) = (handle.clone(), prefix.clone());
                    if self.handles.contains_key(&handle) {
                        return Self::fail(start, "found duplicate %TAG directive");
                    }
                    self.handles.insert(handle, prefix);
                }
                _ => break,
            }
            self.scanner.next()?;
        }
        for (handle, prefix) in [("!", "!"), ("!!", "tag:yaml.org,2002:")] {
            if !self.handles.contains_key(handle) {
                self.handles.insert(handle.to_owned(), prefix.to_owned());
            }
        }
        Ok(())
    }

    fn content(&mut self) -> Step {
        let found = self.scanner.peek()?;
        let mark = found.start;
        if matches!(
            found.token,
            Token::Version(..)
                | Token::Handle(..)
                | Token::DocumentStart
                | Token::DocumentEnd
                | Token::StreamEnd
        ) {
            self.pop();
            let then = self.state;
            return Ok(self.nothing(then, mark));
        }
        self.node(NodeContext::Block)
    }

    fn document_end(&mut self) -> Step {
        let found = self.scanner.peek()?;
        let mark = found.start;
        let explicit = found.token == Token::DocumentEnd;
        if explicit {
            self.scanner.next()?;
        }
        // Upstream stops here. After an explicit end the next document needs no marker.
        self.state = State::Document { bare: explicit };
        Ok((Event::DocumentEnd, mark))
    }

    /// A node with its properties.
    fn node(&mut self, context: NodeContext) -> Step {
        let first = self.scanner.peek()?;
        let mark = first.start;
        if matches!(first.token, Token::Alias(_)) {
            let Token::Alias(name) = self.scanner.next()?.token else {
                return Self::fail(mark, NO_CONTENT);
            };
            self.pop();
            return Ok((Event::Alias(name), mark));
        }
        let properties = self.properties()?;
        let found = self.scanner.peek()?;
        let opens = match &found.token {
            Token::Entry if context == NodeContext::Field => {
                Some((State::SequenceInMapping, false))
            }
            Token::BlockSequence if context != NodeContext::Flow => Some((State::Sequence, false)),
            Token::BlockMapping if context != NodeContext::Flow => Some((State::Key, true)),
            Token::FlowSequence => Some((State::FlowSequence { first: true }, false)),
            Token::FlowMapping => Some((State::FlowKey { first: true }, true)),
            _ => None,
        };
        if let Some((state, mapping)) = opens {
            let mut mark = mark;
            if found.token == Token::Entry {
                // The dashes are in the column of the keys, their items two columns further.
                mark.column += 2;
            } else {
                self.scanner.next()?;
            }
            self.state = state;
            let event = if mapping {
                Event::MappingStart(properties)
            } else {
                Event::SequenceStart(properties)
            };
            return Ok((event, mark));
        }
        if matches!(found.token, Token::Scalar(..)) {
            let Token::Scalar(text, style) = self.scanner.next()?.token else {
                return Self::fail(mark, NO_CONTENT);
            };
            self.pop();
            return Ok((Event::Scalar(text, style, properties), mark));
        }
        if properties.anchor.is_some() || properties.tag.is_some() {
            self.pop();
            return Ok((Event::Scalar(String::new(), Style::Plain, properties), mark));
        }
        let mark = found.start;
        Self::fail(mark, NO_CONTENT)
    }

    fn properties(&mut self) -> Result<Properties, Fault> {
        let mut properties = Properties::default();
        // The handle, suffix and position of a tag.
        let mut tag = None;
        loop {
            match &self.scanner.peek()?.token {
                Token::Anchor(_) if properties.anchor.is_none() => {
                    if let Token::Anchor(name) = self.scanner.next()?.token {
                        properties.anchor = Some(name);
                    }
                }
                Token::Tag(..) if tag.is_none() => {
                    let Lexeme { token, start, .. } = self.scanner.next()?;
                    if let Token::Tag(handle, suffix) = token {
                        tag = Some((handle, suffix, start));
                    }
                }
                _ => break,
            }
        }
        if let Some((handle, suffix, mark)) = tag {
            if handle.is_empty() {
                properties.tag = Some(suffix);
            } else {
                let Some(prefix) = self.handles.get(&handle) else {
                    return Self::fail(mark, "found undefined tag handle");
                };
                properties.tag = Some(format!("{prefix}{suffix}"));
            }
        }
        Ok(properties)
    }

    /// The node after a dash, a key or a colon; empty if one of the tokens `ends` follows.
    fn part(
        &mut self,
        then: State,
        context: NodeContext,
        mark: Mark,
        ends: fn(&Token) -> bool,
    ) -> Step {
        if ends(&self.scanner.peek()?.token) {
            return Ok(self.nothing(then, mark));
        }
        self.states.push(then);
        self.node(context)
    }

    fn sequence(&mut self) -> Step {
        let found = self.scanner.peek()?;
        let (start, end) = (found.start, found.end);
        match found.token {
            Token::Entry => {
                self.scanner.next()?;
                let ends = |token: &Token| matches!(token, Token::Entry | Token::BlockEnd);
                self.part(State::Sequence, NodeContext::Block, end, ends)
            }
            Token::BlockEnd => self.close(Event::SequenceEnd),
            _ => Self::fail(start, "did not find expected '-' indicator"),
        }
    }

    fn sequence_in_mapping(&mut self) -> Step {
        let found = self.scanner.peek()?;
        let (start, end) = (found.start, found.end);
        if found.token != Token::Entry {
            self.pop();
            return Ok((Event::SequenceEnd, start));
        }
        self.scanner.next()?;
        let ends = |token: &Token| {
            matches!(token, Token::Entry | Token::Key | Token::Value | Token::BlockEnd)
        };
        self.part(State::SequenceInMapping, NodeContext::Block, end, ends)
    }

    fn key(&mut self) -> Step {
        let found = self.scanner.peek()?;
        let (start, end) = (found.start, found.end);
        match found.token {
            Token::Key => {
                self.scanner.next()?;
                self.part(State::Value, NodeContext::Field, end, ends_field)
            }
            Token::BlockEnd => self.close(Event::MappingEnd),
            _ => Self::fail(start, "did not find expected key"),
        }
    }

    fn value(&mut self) -> Step {
        let found = self.scanner.peek()?;
        let (start, end) = (found.start, found.end);
        if found.token != Token::Value {
            return Ok(self.nothing(State::Key, start));
        }
        self.scanner.next()?;
        self.part(State::Key, NodeContext::Field, end, ends_field)
    }

    fn flow_sequence(&mut self, first: bool) -> Step {
        if self.scanner.peek()?.token == Token::FlowSequenceEnd {
            return self.close(Event::SequenceEnd);
        }
        if !first {
            self.comma("did not find expected ',' or ']'")?;
        }
        let found = self.scanner.peek()?;
        let mark = found.start;
        match found.token {
            Token::Key => {
                self.scanner.next()?;
                self.state = State::PairKey;
                Ok((Event::MappingStart(Properties::default()), mark))
            }
            Token::FlowSequenceEnd => self.close(Event::SequenceEnd),
            _ => {
                self.states.push(State::FlowSequence { first: false });
                self.node(NodeContext::Flow)
            }
        }
    }

    fn comma(&mut self, otherwise: &'static str) -> Result<(), Fault> {
        let found = self.scanner.peek()?;
        if found.token != Token::FlowEntry {
            return Self::fail(found.start, otherwise);
        }
        self.scanner.next()?;
        Ok(())
    }

    fn pair_key(&mut self) -> Step {
        let found = self.scanner.peek()?;
        let end = found.end;
        if !matches!(found.token, Token::Value | Token::FlowEntry | Token::FlowSequenceEnd) {
            self.states.push(State::PairValue);
            return self.node(NodeContext::Flow);
        }
        // Upstream skips the token here.
        self.scanner.next()?;
        Ok(self.nothing(State::PairValue, end))
    }

    fn flow_key(&mut self, first: bool) -> Step {
        if self.scanner.peek()?.token == Token::FlowMappingEnd {
            return self.close(Event::MappingEnd);
        }
        if !first {
            self.comma("did not find expected ',' or '}'")?;
        }
        match self.scanner.peek()?.token {
            Token::Key => {
                self.scanner.next()?;
                let mark = self.scanner.peek()?.start;
                let ends = |token: &Token| {
                    matches!(token, Token::Value | Token::FlowEntry | Token::FlowMappingEnd)
                };
                self.part(State::FlowValue, NodeContext::Flow, mark, ends)
            }
            Token::FlowMappingEnd => self.close(Event::MappingEnd),
            _ => {
                self.states.push(State::FlowNoValue);
                self.node(NodeContext::Flow)
            }
        }
    }

    /// The value of a key in a flow collection that `close` ends.
    fn flow_value(&mut self, then: State, close: &Token) -> Step {
        let mark = self.scanner.peek()?.start;
        if self.scanner.peek()?.token == Token::Value {
            self.scanner.next()?;
            let next = &self.scanner.peek()?.token;
            if *next != Token::FlowEntry && next != close {
                self.states.push(then);
                return self.node(NodeContext::Flow);
            }
        }
        Ok(self.nothing(then, mark))
    }
}

/// Whether a token ends an empty field.
fn ends_field(token: &Token) -> bool {
    matches!(token, Token::Key | Token::Value | Token::BlockEnd)
}

impl Iterator for Parser<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if self.failed {
            return None;
        }
        let step = self.step();
        self.failed = step.is_err();
        step.transpose()
    }
}
