//! The grammar, as libyaml's parser follows it: a stack of what is expected next.

use super::Fault;
use super::chars::Mark;
use super::scan::{Scanner, Token};
use std::collections::HashSet;

#[derive(Clone, Copy, Debug)]
enum State {
    Node { block: bool, indentless: bool },
    Sequence,
    IndentlessSequence,
    MappingKey,
    MappingValue,
    FlowSequence { first: bool },
    PairKey,
    PairValue,
    FlowKey { first: bool },
    FlowValue,
}

const BLOCK: State = State::Node { block: true, indentless: false };
const BLOCK_OR_INDENTLESS: State = State::Node { block: true, indentless: true };
const FLOW: State = State::Node { block: false, indentless: false };

/// Goes through the first document of a text.
pub(super) fn document(text: &[u8]) -> Result<(), Fault> {
    let mut parser = Parser {
        scanner: Scanner::new(text),
        states: Vec::new(),
        handles: HashSet::new(),
        anchors: HashSet::new(),
    };
    parser.document()
}

struct Parser<'t> {
    scanner: Scanner<'t>,
    states: Vec<State>,
    handles: HashSet<Vec<u8>>,
    anchors: HashSet<Vec<u8>>,
}

impl Parser<'_> {
    fn peek(&mut self) -> Result<&Token, Fault> {
        self.scanner.peek().map(|(token, _)| token)
    }

    fn next_is(&mut self, tokens: &[Token]) -> Result<bool, Fault> {
        self.peek().map(|token| tokens.contains(token))
    }

    /// The fault of the present token. The parser counts lines from 0.
    fn fault(&mut self, message: &str) -> Fault {
        match self.scanner.peek() {
            Ok((_, mark)) => at(*mark, message),
            Err(fault) => fault,
        }
    }

    fn document(&mut self) -> Result<(), Fault> {
        match self.peek()? {
            Token::StreamEnd => return Ok(()),
            Token::Version(..) | Token::TagDirective(_) | Token::DocumentStart => {
                self.directives()?;
                if !self.next_is(&[Token::DocumentStart])? {
                    return Err(self.fault("did not find expected <document start>"));
                }
                self.scanner.take();
                let empty = match self.peek()? {
                    Token::Version(..) | Token::TagDirective(_) => true,
                    token => {
                        matches!(
                            token,
                            Token::DocumentStart | Token::DocumentEnd | Token::StreamEnd
                        )
                    }
                };
                if !empty {
                    self.states.push(BLOCK);
                }
            }
            _ => {
                self.directives()?;
                self.states.push(BLOCK);
            }
        }
        while let Some(state) = self.states.pop() {
            self.step(state)?;
        }
        // Whether the document ends here is asked, and the answer not looked at.
        self.peek().map(drop)
    }

    fn directives(&mut self) -> Result<(), Fault> {
        let mut version = false;
        loop {
            match self.peek()?.clone() {
                Token::Version(major, minor) => {
                    if version {
                        return Err(self.fault("found duplicate %YAML directive"));
                    }
                    if (major, minor) != (1, 1) {
                        return Err(self.fault("found incompatible YAML document"));
                    }
                    version = true;
                }
                Token::TagDirective(handle) => {
                    if !self.handles.insert(handle) {
                        return Err(self.fault("found duplicate %TAG directive"));
                    }
                }
                _ => break,
            }
            self.scanner.take();
        }
        self.handles.extend([b"!".to_vec(), b"!!".to_vec()]);
        Ok(())
    }

    /// Goes on with `next`, and with a node before that unless one of these tokens says it is empty.
    fn node_unless(&mut self, empty: &[Token], node: State, next: State) -> Result<(), Fault> {
        let empty = self.next_is(empty)?;
        self.states.push(next);
        if !empty {
            self.states.push(node);
        }
        Ok(())
    }

    fn step(&mut self, state: State) -> Result<(), Fault> {
        use Token::{BlockEnd, BlockEntry, FlowEntry, FlowMappingEnd, FlowSequenceEnd, Key, Value};
        match state {
            State::Node { block, indentless } => return self.node(block, indentless),
            State::Sequence => match self.peek()? {
                BlockEntry => {
                    self.scanner.take();
                    return self.node_unless(&[BlockEntry, BlockEnd], BLOCK, State::Sequence);
                }
                BlockEnd => self.scanner.take(),
                _ => return Err(self.fault("did not find expected '-' indicator")),
            },
            State::IndentlessSequence => {
                if self.next_is(&[BlockEntry])? {
                    self.scanner.take();
                    let empty = [BlockEntry, Key, Value, BlockEnd];
                    return self.node_unless(&empty, BLOCK, State::IndentlessSequence);
                }
            }
            State::MappingKey => match self.peek()? {
                Key => {
                    self.scanner.take();
                    let empty = [Key, Value, BlockEnd];
                    return self.node_unless(&empty, BLOCK_OR_INDENTLESS, State::MappingValue);
                }
                BlockEnd => self.scanner.take(),
                _ => return Err(self.fault("did not find expected key")),
            },
            State::MappingValue => {
                if self.next_is(&[Value])? {
                    self.scanner.take();
                    let empty = [Key, Value, BlockEnd];
                    return self.node_unless(&empty, BLOCK_OR_INDENTLESS, State::MappingKey);
                }
                self.states.push(State::MappingKey);
            }
            State::FlowSequence { first } => {
                self.flow_entry(first, &FlowSequenceEnd, "did not find expected ',' or ']'")?;
                match self.peek()? {
                    FlowSequenceEnd => self.scanner.take(),
                    Key => {
                        self.scanner.take();
                        self.states.extend([State::FlowSequence { first: false }, State::PairKey]);
                    }
                    _ => self.states.extend([State::FlowSequence { first: false }, FLOW]),
                }
            }
            State::PairKey => {
                self.states.push(State::PairValue);
                if self.next_is(&[Value, FlowEntry, FlowSequenceEnd])? {
                    // Where the key is empty, what follows it is passed too: that is so there.
                    self.scanner.take();
                } else {
                    self.states.push(FLOW);
                }
            }
            State::PairValue => {
                if self.next_is(&[Value])? {
                    self.scanner.take();
                    if !self.next_is(&[FlowEntry, FlowSequenceEnd])? {
                        self.states.push(FLOW);
                    }
                }
            }
            State::FlowKey { first } => {
                self.flow_entry(first, &FlowMappingEnd, "did not find expected ',' or '}'")?;
                match self.peek()? {
                    FlowMappingEnd => self.scanner.take(),
                    Key => {
                        self.scanner.take();
                        let empty = [Value, FlowEntry, FlowMappingEnd];
                        return self.node_unless(&empty, FLOW, State::FlowValue);
                    }
                    _ => self.states.extend([State::FlowKey { first: false }, FLOW]),
                }
            }
            State::FlowValue => {
                self.states.push(State::FlowKey { first: false });
                if self.next_is(&[Value])? {
                    self.scanner.take();
                    if !self.next_is(&[FlowEntry, FlowMappingEnd])? {
                        self.states.push(FLOW);
                    }
                }
            }
        }
        Ok(())
    }

    /// Passes the comma before an entry that is not the first.
    fn flow_entry(&mut self, first: bool, end: &Token, message: &str) -> Result<(), Fault> {
        if first || self.peek()? == end {
            return Ok(());
        }
        if !self.next_is(&[Token::FlowEntry])? {
            return Err(self.fault(message));
        }
        self.scanner.take();
        Ok(())
    }

    fn node(&mut self, block: bool, indentless: bool) -> Result<(), Fault> {
        if let Token::Alias(name) = self.peek()? {
            let name = name.clone();
            self.scanner.take();
            if !self.anchors.contains(&name) {
                let name = String::from_utf8_lossy(&name);
                return Err(Fault {
                    line: 0,
                    message: format!("unknown anchor '{name}' referenced"),
                });
            }
            return Ok(());
        }
        let (mut anchor, mut tag) = (None, None);
        loop {
            match self.scanner.peek()? {
                (Token::Anchor(name), _) if anchor.is_none() => anchor = Some(name.clone()),
                (Token::Tag(handle), mark) if tag.is_none() => tag = Some((handle.clone(), *mark)),
                _ => break,
            }
            self.scanner.take();
        }
        if let Some((handle, mark)) = &tag
            && !handle.is_empty()
            && !self.handles.contains(handle)
        {
            return Err(at(*mark, "found undefined tag handle"));
        }
        let has_properties = anchor.is_some() || tag.is_some();
        let next = match self.peek()? {
            Token::BlockEntry if indentless => Some(State::IndentlessSequence),
            Token::Scalar => {
                self.scanner.take();
                None
            }
            Token::FlowSequenceStart => {
                self.scanner.take();
                Some(State::FlowSequence { first: true })
            }
            Token::FlowMappingStart => {
                self.scanner.take();
                Some(State::FlowKey { first: true })
            }
            Token::SequenceStart if block => {
                self.scanner.take();
                Some(State::Sequence)
            }
            Token::MappingStart if block => {
                self.scanner.take();
                Some(State::MappingKey)
            }
            _ if has_properties => None,
            _ => return Err(self.fault("did not find expected node content")),
        };
        self.anchors.extend(anchor);
        self.states.extend(next);
        Ok(())
    }
}

fn at(mark: Mark, message: &str) -> Fault {
    Fault { line: mark.line, message: message.to_owned() }
}
