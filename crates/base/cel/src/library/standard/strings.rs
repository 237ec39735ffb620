//! Functions of strings: `contains`, `startsWith`, `endsWith`, `matches`.

use crate::library::args::str;
use crate::library::{Overload, PreparedCall, StrictFunction};
use crate::types::Type;
use crate::value::{Error, Value, ValueResult, WorkBudget};
use mainstay_formats::regexp;
use regex::Regex;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

pub(super) fn overloads() -> Vec<Overload> {
    let params = || vec![Type::String, Type::String];
    let method =
        |name, id, run: StrictFunction| Overload::method(name, id, params(), Type::Bool, run);
    vec![
        method("contains", "contains_string", |args, _| {
            holds(args, |text, part| text.contains(part))
        }),
        method("endsWith", "ends_with_string", |args, _| {
            holds(args, |text, end| text.ends_with(end))
        }),
        method("startsWith", "starts_with_string", |args, _| {
            holds(args, |text, start| text.starts_with(start))
        }),
        Overload::function("matches", "matches", params(), Type::Bool, matches).prepared(prepare),
        method("matches", "matches_string", matches).prepared(prepare),
    ]
}

fn holds<'a>(args: &[Value<'a>], test: fn(&str, &str) -> bool) -> ValueResult<'a> {
    match args {
        [text, part] => Ok(Value::Bool(test(str(text)?, str(part)?))),
        _ => Err(Error::NoSuchOverload),
    }
}

/// A regular expression that is known before it is evaluated.
#[derive(Debug)]
pub(crate) enum Pattern {
    /// Compiled, as nearly all are.
    Ready(Regex),
    /// One that takes long to compile and much memory. Programs are kept by the thousand, so it is
    /// compiled when a text is held against it.
    Large(Box<str>),
}

/// The most bytes of a compiled expression that a program keeps.
const LARGE: usize = 1 << 20;

impl Pattern {
    /// Reads an expression of Go's.
    ///
    /// # Errors
    ///
    /// What Go says is wrong with it.
    pub(crate) fn new(text: &str, work: &WorkBudget) -> Result<Self, Error> {
        let ready = regexp::compile_within(text, LARGE)
            .map_err(|error| Error::text(error.to_string(), work))?;
        Ok(ready.map_or_else(|| Self::Large(text.into()), Self::Ready))
    }

    /// Does something with it.
    ///
    /// # Errors
    ///
    /// If it is larger than anything that is compiled.
    pub(crate) fn with<T>(
        &self,
        run: impl FnOnce(&Regex) -> T,
        work: &WorkBudget,
    ) -> Result<T, Error> {
        match self {
            Self::Ready(regex) => Ok(run(regex)),
            Self::Large(text) => Ok(run(&*remembered(text, work)?)),
        }
    }
}

impl PreparedCall for Pattern {
    fn run<'a>(&self, args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
        match args {
            [text, _] => {
                let text = str(text)?;
                self.with(|pattern| pattern.is_match(text), work).map(Value::Bool)
            }
            _ => Err(Error::NoSuchOverload),
        }
    }
}

fn prepare(pattern: &Value<'_>, work: &WorkBudget) -> Result<Arc<dyn PreparedCall>, Error> {
    Ok(Arc::new(Pattern::new(str(pattern)?, work)?))
}

fn matches<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    match args {
        [text, pattern] => {
            let text = str(text)?;
            Ok(Value::Bool(remembered(str(pattern)?, work)?.is_match(text)))
        }
        _ => Err(Error::NoSuchOverload),
    }
}

/// How many expressions that only evaluation knows are kept: a loop over a list asks for the same
/// few again and again. Each may take much memory.
const KEPT: usize = 8;

/// Compiles an expression that may be another one each time. Costs take no note of that, so it is
/// work: the larger it becomes the more, and what is small is found out first.
fn compile(pattern: &str, work: &WorkBudget) -> Result<Regex, Error> {
    for (size, amount) in [(64 << 10, 1 << 13), (LARGE, 1 << 17)] {
        work.take(amount)?;
        if let Some(regex) = regexp::compile_within(pattern, size)
            .map_err(|error| Error::text(error.to_string(), work))?
        {
            return Ok(regex);
        }
    }
    work.take(1 << 22)?;
    regexp::compile(pattern).map_err(|error| Error::text(error.to_string(), work))
}

/// Compiles an expression, or finds it among those that were asked for last.
pub(crate) fn remembered(pattern: &str, work: &WorkBudget) -> Result<Arc<Regex>, Error> {
    static LAST: Mutex<VecDeque<(Box<str>, Arc<Regex>)>> = Mutex::new(VecDeque::new());
    // What is in there stays whole whatever happens to whoever holds it.
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, regex)) = last().iter().find(|(known, _)| **known == *pattern) {
        return Ok(regex.clone());
    }
    let regex = Arc::new(compile(pattern, work)?);
    let mut last = last();
    last.truncate(KEPT - 1);
    last.push_front((pattern.into(), regex.clone()));
    Ok(regex)
}
