//! Parser for the query form of label selectors.
//!
//! It reads token by token, as upstream does, because messages name the unexpected token.

use super::{Operator, Requirement, SelectorError, requirement};
use crate::names;

/// The operators that a message lists when one is missing.
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// A key or a value, also `in` and `notin` where no operator is expected.
    Word,
    /// One of `= == != < > ! ( ) ,`.
    Symbol,
    End,
}

type TokenText<'a> = (Token, &'a str);

/// Parses all requirements, in the order of the text.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    // A zero byte ends the text, as in upstream.
    let mut reader = Reader { rest: text.split('\0').next().unwrap_or_default() };
    let mut requirements = Vec::new();
    loop {
        match reader.peek() {
            (Token::Word, _) | (Token::Symbol, "!") => {}
            (Token::End, _) => return Ok(requirements),
            (Token::Symbol, other) => {
                return unexpected(other, ", expected: !, identifier, or 'end of string'");
            }
        }
        let requirement = reader.requirement();
        requirements.push(
            requirement
                .map_err(|error| SelectorError(format!("unable to parse requirement: {error}")))?,
        );
        match reader.next() {
            (Token::End, _) => return Ok(requirements),
            (Token::Symbol, ",") => match reader.peek() {
                (Token::Word, _) | (Token::Symbol, "!") => {}
                (_, other) => return unexpected(other, ", expected: identifier after ','"),
            },
            (_, other) => return unexpected(other, ", expected: ',' or 'end of string'"),
        }
    }
}

fn unexpected<T>(token: &str, expected: &str) -> Result<T, SelectorError> {
    Err(SelectorError(format!("found '{token}'{expected}")))
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// The next token and what follows it.
    fn split(&self) -> (TokenText<'a>, &'a str) {
        let text = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let is_symbol = |c: char| "=!(),><".contains(c);
        let Some(first) = text.chars().next() else { return ((Token::End, ""), "") };
        if is_symbol(first) {
            let pair = ["==", "!="].iter().any(|pair| text.starts_with(pair));
            let (symbol, rest) = text.split_at(if pair { 2 } else { 1 });
            return ((Token::Symbol, symbol), rest);
        }
        let ends_word = |c: char| is_symbol(c) || matches!(c, ' ' | '\t' | '\r' | '\n');
        let (word, rest) = text.split_at(text.find(ends_word).unwrap_or(text.len()));
        ((Token::Word, word), rest)
    }

    fn peek(&self) -> TokenText<'a> {
        self.split().0
    }

    fn next(&mut self) -> TokenText<'a> {
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
        let (Token::Word, key) = token else {
            return unexpected(token.1, ", expected: identifier");
        };
        let problems = names::qualified_name(key);
        if !problems.is_empty() {
            // Upstream has no path for the key here, and prints `<nil>`.
            let problems = problems.join("; ");
            return Err(SelectorError(format!("<nil>: Invalid value: {key:?}: {problems}")));
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
            other => return unexpected(other, &format!(", expected: {OPERATORS}")),
        })
    }

    /// The value after `=`, `==`, `!=`, `<` or `>`; empty if missing.
    fn value(&mut self) -> Result<String, SelectorError> {
        match self.peek() {
            (Token::End, _) | (Token::Symbol, ",") => Ok(String::new()),
            (Token::Word, word) => {
                self.next();
                Ok(word.to_owned())
            }
            (Token::Symbol, other) => unexpected(other, ", expected: identifier"),
        }
    }

    /// A set of values in parentheses, sorted.
    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.next() {
            (Token::Symbol, "(") => {}
            (_, other) => return unexpected(other, " expected: '('"),
        }
        let mut values = match self.peek() {
            (Token::Word, _) | (Token::Symbol, ",") => self.list()?,
            (Token::Symbol, ")") => vec![String::new()],
            (_, other) => return unexpected(other, ", expected: ',', ')' or identifier"),
        };
        // The closing parenthesis, at which the list ended.
        self.next();
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }

    /// The values up to the closing parenthesis; there is an empty one between two commas.
    fn list(&mut self) -> Result<Vec<String>, SelectorError> {
        let mut values = Vec::new();
        loop {
            match self.next() {
                (Token::Word, word) => {
                    values.push(word.to_owned());
                    match self.peek() {
                        (Token::Symbol, ",") => {}
                        (Token::Symbol, ")") => return Ok(values),
                        (_, other) => return unexpected(other, ", expected: ',' or ')'"),
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
                (_, other) => return unexpected(other, ", expected: ',', or identifier"),
            }
        }
    }
}
