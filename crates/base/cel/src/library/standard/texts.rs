//! Functions of strings: `contains`, `startsWith`, `endsWith`, `matches`.

use crate::library::args::str;
use crate::library::{Overload, Prepared, Strict};
use crate::types::Type;
use crate::value::{Error, Outcome, Value, work};
use mainstay_formats::regexp;
use regex::Regex;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) fn overloads() -> Vec<Overload> {
    let params = || vec![Type::String, Type::String];
    let method = |name, id, run: Strict| Overload::method(name, id, params(), Type::Bool, run);
    vec![
        method("contains", "contains_string", |args| holds(args, |text, it| text.contains(it))),
        method("endsWith", "ends_with_string", |args| holds(args, |text, it| text.ends_with(it))),
        method("startsWith", "starts_with_string", |args| {
            holds(args, |text, it| text.starts_with(it))
        }),
        Overload::function("matches", "matches", params(), Type::Bool, matches).prepared(prepare),
        method("matches", "matches_string", matches).prepared(prepare),
    ]
}

fn holds<'a>(args: &[Value<'a>], test: fn(&str, &str) -> bool) -> Outcome<'a> {
    match args {
        [text, it] => Ok(Value::Bool(test(str(text)?, str(it)?))),
        _ => Err(Error::NoSuchOverload),
    }
}

/// A regular expression that is known before it is evaluated.
#[derive(Debug)]
pub struct Matcher(Regex);

impl Matcher {
    /// Compiles an expression of Go's.
    ///
    /// # Errors
    ///
    /// What Go says is wrong with it.
    pub fn new(pattern: &str) -> Result<Self, Error> {
        regexp::compile(pattern).map(Self).map_err(Error::text)
    }

    /// Whether a part of a text matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl Prepared for Matcher {
    fn run<'a>(&self, args: &[Value<'a>]) -> Outcome<'a> {
        match args {
            [text, _] => Ok(Value::Bool(self.is_match(str(text)?))),
            _ => Err(Error::NoSuchOverload),
        }
    }
}

fn prepare(pattern: &Value<'_>) -> Result<Arc<dyn Prepared>, Error> {
    Ok(Arc::new(Matcher::new(str(pattern)?)?))
}

fn matches<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [text, pattern] => {
            let text = str(text)?;
            Ok(Value::Bool(remembered(str(pattern)?)?.is_match(text)))
        }
        _ => Err(Error::NoSuchOverload),
    }
}

/// How many expressions that only evaluation knows are kept: a loop over a list asks for the same
/// few again and again. Each may take much memory.
const KEPT: usize = 8;

/// Compiles an expression that may be another one each time. Costs take no note of that, so it is
/// measured: the larger it becomes the more, and what is small is found out first.
fn compile(pattern: &str) -> Result<Regex, Error> {
    for (size, measure) in [(64 << 10, 1 << 13), (1 << 20, 1 << 17)] {
        work::take(measure)?;
        if let Some(regex) = regexp::compile_within(pattern, size).map_err(Error::text)? {
            return Ok(regex);
        }
    }
    work::take(1 << 22)?;
    regexp::compile(pattern).map_err(Error::text)
}

/// Compiles an expression, or finds it among those that were asked for last.
pub(crate) fn remembered(pattern: &str) -> Result<Regex, Error> {
    static LAST: Mutex<VecDeque<(Box<str>, Regex)>> = Mutex::new(VecDeque::new());
    // What is in there stays whole whatever happens to whoever holds it.
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, regex)) = last().iter().find(|(known, _)| **known == *pattern) {
        return Ok(regex.clone());
    }
    let regex = compile(pattern)?;
    let mut last = last();
    last.truncate(KEPT - 1);
    last.push_front((pattern.into(), regex.clone()));
    Ok(regex)
}
