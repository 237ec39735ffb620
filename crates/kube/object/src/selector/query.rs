//! The query form of label selectors, token by token as the original reads it: its messages name
//! the token that stands in the way.

use super::{Operator, Requirement, SelectorError, requirement};
use crate::names;

/// The operators that a message lists where one is missing.
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// A key or a value, also `in` and `notin` where an operator makes no sense.
    Word,
    /// One of `= == != < > ! ( ) ,`.
    Symbol,
    End,
}

type Item<'a> = (Token, &'a str);

/// Reads every requirement, in the order written.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    // A zero byte ends the text, as it does in the original.
    let mut reader = Reader { rest: text.split('\0').next().unwrap_or_default() };
    let mut requirements = Vec::new();
    loop {
        match reader.peek() {
            (Token::Word, _) | (Token::Symbol, "!") => {}
            (Token::End, _) => return Ok(requirements),
            (Token::Symbol, other) => {
                return found(other, ", expected: !, identifier, or 'end of string'");
            }
        }
        let one = reader.requirement();
        requirements.push(
            one.map_err(|error| SelectorError(format!("unable to parse requirement: {error}")))?,
        );
        match reader.next() {
            (Token::End, _) => return Ok(requirements),
            (Token::Symbol, ",") => match reader.peek() {
                (Token::Word, _) | (Token::Symbol, "!") => {}
                (_, other) => return found(other, ", expected: identifier after ','"),
            },
            (_, other) => return found(other, ", expected: ',' or 'end of string'"),
        }
    }
}

fn found<T>(token: &str, expected: &str) -> Result<T, SelectorError> {
    Err(SelectorError(format!("found '{token}'{expected}")))
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// The next token and what follows it.
    fn split(&self) -> (Item<'a>, &'a str) {
        let text = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let is_symbol = |c: char| "=!(),><".contains(c);
        let Some(first) = text.chars().next() else { return ((Token::End, ""), "") };
        if is_symbol(first) {
            let pair = ["==", "!="].iter().any(|pair| text.starts_with(pair));
            let (symbol, rest) = text.split_at(if pair { 2 } else { 1 });
            return ((Token::Symbol, symbol), rest);
        }
        let ends = |c: char| is_symbol(c) || matches!(c, ' ' | '\t' | '\r' | '\n');
        let (word, rest) = text.split_at(text.find(ends).unwrap_or(text.len()));
        ((Token::Word, word), rest)
    }

    fn peek(&self) -> Item<'a> {
        self.split().0
    }

    fn next(&mut self) -> Item<'a> {
        let (item, rest) = self.split();
        self.rest = rest;
        item
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let mut token = self.next();
        let negated = token == (Token::Symbol, "!");
        if negated {
            token = self.next();
        }
        let (Token::Word, key) = token else { return found(token.1, ", expected: identifier") };
        let wrong = names::qualified_name(key);
        if !wrong.is_empty() {
            // The original has no path for the key here, and prints that.
            let wrong = wrong.join("; ");
            return Err(SelectorError(format!("<nil>: Invalid value: {key:?}: {wrong}")));
        }
        if negated {
            return requirement(key, Operator::NotExists, Vec::new());
        }
        if matches!(self.peek(), (Token::End, _) | (Token::Symbol, ",")) {
            return requirement(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.value()?],
        };
        requirement(key, operator, values)
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        Ok(match self.next().1 {
            "in" => Operator::In,
            "notin" => Operator::NotIn,
            "=" | "==" => Operator::Equals,
            "!=" => Operator::NotEquals,
            ">" => Operator::Greater,
            "<" => Operator::Less,
            other => return found(other, &format!(", expected: {OPERATORS}")),
        })
    }

    /// The one value behind `=` and its like; none is the empty one.
    fn value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            (Token::End, _) | (Token::Symbol, ",") => Ok(String::new()),
            (Token::Word, word) => {
                self.next();
                Ok(word.to_owned())
            }
            (Token::Symbol, other) => found(other, ", expected: identifier"),
        }
    }

    /// A set of values in parentheses, sorted.
    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.next() {
            (Token::Symbol, "(") => {}
            (_, other) => return found(other, " expected: '('"),
        }
        let mut values = match self.peek() {
            (Token::Word, _) | (Token::Symbol, ",") => self.list()?,
            (Token::Symbol, ")") => vec![String::new()],
            (_, other) => return found(other, ", expected: ',', ')' or identifier"),
        };
        // What comes here is the parenthesis that the list stopped at.
        self.next();
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }

    /// The values up to the closing parenthesis; between two commas stands the empty one.
    fn list(&mut self) -> Result<Vec<String>, SelectorError> {
        let mut values = Vec::new();
        loop {
            match self.next() {
                (Token::Word, word) => {
                    values.push(word.to_owned());
                    match self.peek() {
                        (Token::Symbol, ",") => {}
                        (Token::Symbol, ")") => return Ok(values),
                        (_, other) => return found(other, ", expected: ',' or ')'"),
                    }
                }
                (Token::Symbol, ",") => {
                    if values.is_empty() {
                        values.push(String::new());
                    }
                    match self.peek() {
                        (Token::Symbol, ")") => {
                            values.push(String::new());
                            return Ok(values);
                        }
                        (Token::Symbol, ",") => values.push(String::new()),
                        _ => {}
                    }
                }
                (_, other) => return found(other, ", expected: ',', or identifier"),
            }
        }
    }
}
