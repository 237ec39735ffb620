//! Standard string functions: `contains`, `startsWith`, `endsWith`, `matches`.

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
            test_strings(args, |text, part| text.contains(part))
        }),
        method("endsWith", "ends_with_string", |args, _| {
            test_strings(args, |text, end| text.ends_with(end))
        }),
        method("startsWith", "starts_with_string", |args, _| {
            test_strings(args, |text, start| text.starts_with(start))
        }),
        Overload::function("matches", "matches", params(), Type::Bool, matches)
            .with_prepare(prepare),
        method("matches", "matches_string", matches).with_prepare(prepare),
    ]
}

fn test_strings<'a>(args: &[Value<'a>], test: fn(&str, &str) -> bool) -> ValueResult<'a> {
    match args {
        [text, part] => Ok(Value::Bool(test(str(text)?, str(part)?))),
        _ => Err(Error::NoSuchOverload),
    }
}

/// A constant regular expression of a program.
#[derive(Debug)]
pub(crate) enum Pattern {
    /// A compiled expression, the normal case.
    Compiled(Regex),
    /// An expression that takes long to compile and much memory. Thousands of programs may exist,
    /// so it is compiled when it is matched.
    Large(Box<str>),
}

/// The maximum size in bytes of a compiled expression in a program.
const MAX_PROGRAM_BYTES: usize = 1 << 20;

impl Pattern {
    /// Parses a regular expression of Go.
    ///
    /// # Errors
    ///
    /// Go's error for an invalid expression.
    pub(crate) fn new(text: &str, work: &WorkBudget) -> Result<Self, Error> {
        let ready = regexp::compile_within(text, MAX_PROGRAM_BYTES)
            .map_err(|error| Error::text(error.to_string(), work))?;
        Ok(ready.map_or_else(|| Self::Large(text.into()), Self::Compiled))
    }

    /// Runs a function with the compiled expression.
    ///
    /// # Errors
    ///
    /// If it exceeds the maximum size of all expressions.
    pub(crate) fn with<T>(
        &self,
        run: impl FnOnce(&Regex) -> T,
        work: &WorkBudget,
    ) -> Result<T, Error> {
        match self {
            Self::Compiled(regex) => Ok(run(regex)),
            Self::Large(text) => Ok(run(&*cached_regex(text, work)?)),
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
            Ok(Value::Bool(cached_regex(str(pattern)?, work)?.is_match(text)))
        }
        _ => Err(Error::NoSuchOverload),
    }
}

/// The size of the cache of computed expressions: a comprehension uses the same few again and
/// again. Each may take much memory.
const CACHED_PATTERNS: usize = 8;

/// Compiles a computed expression. Its compilation has no cost, so it takes work: the more the
/// larger it is. Small sizes are tried first.
fn compile(pattern: &str, work: &WorkBudget) -> Result<Regex, Error> {
    for (size, amount) in [(64 << 10, 1 << 13), (MAX_PROGRAM_BYTES, 1 << 17)] {
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

/// Compiles an expression, or takes it from the cache of recent ones.
pub(crate) fn cached_regex(pattern: &str, work: &WorkBudget) -> Result<Arc<Regex>, Error> {
    static RECENT: Mutex<VecDeque<(Box<str>, Arc<Regex>)>> = Mutex::new(VecDeque::new());
    // The cache stays consistent even if a thread panics with the lock.
    let recent = || RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, regex)) = recent().iter().find(|(cached, _)| **cached == *pattern) {
        return Ok(regex.clone());
    }
    let regex = Arc::new(compile(pattern, work)?);
    let mut recent = recent();
    recent.truncate(CACHED_PATTERNS - 1);
    recent.push_front((pattern.into(), regex.clone()));
    Ok(regex)
}
