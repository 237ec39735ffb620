//! Regex library: `"abc 123".find("[0-9]+")`.

use crate::library::args::{exactly, int, new_list, str, substring_of, text};
use crate::library::standard::{Pattern, cached_regex};
use crate::library::{FunctionLibrary, Overload, PreparedCall};
use crate::types::Type;
use crate::value::{Error, StringValue, Value, ValueResult, WorkBudget};
use regex::Regex;
use std::sync::Arc;

/// `find` and `findAll`.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "kubernetes.regex", overloads, macros: &[], types: Vec::new };

fn overloads() -> Vec<Overload> {
    use Type::{Int, String};
    let strings = || Type::list(String);
    let method = Overload::method;
    vec![
        method("find", "string_find_string", vec![String, String], String, |args, work| {
            let [_, pattern] = exactly(args)?;
            let pattern = compile_pattern(pattern, work)?;
            find(args, &pattern)
        })
        .with_prepare(|pattern, work| prepare(pattern, find, work)),
        method(
            "findAll",
            "string_find_all_string",
            vec![String, String],
            strings(),
            |args, work| {
                let [_, pattern] = exactly(args)?;
                let pattern = compile_pattern(pattern, work)?;
                find_all(args, &pattern)
            },
        )
        .with_prepare(|pattern, work| prepare(pattern, find_all, work)),
        method(
            "findAll",
            "string_find_all_string_int",
            vec![String, String, Int],
            strings(),
            |args, work| {
                let [_, pattern, _] = exactly(args)?;
                let pattern = compile_pattern(pattern, work)?;
                find_all(args, &pattern)
            },
        )
        .with_prepare(|pattern, work| prepare(pattern, find_all, work)),
    ]
}

/// A function that searches its first argument for a pattern.
type Find = for<'a> fn(&[Value<'a>], &Regex) -> ValueResult<'a>;

#[derive(Debug)]
struct PreparedFind {
    pattern: Pattern,
    find: Find,
}

impl PreparedCall for PreparedFind {
    fn run<'a>(&self, args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
        self.pattern.with(|pattern| (self.find)(args, pattern), work)?
    }
}

fn prepare(
    pattern: &Value<'_>,
    find: Find,
    work: &WorkBudget,
) -> Result<Arc<dyn PreparedCall>, Error> {
    let pattern = Pattern::new(str(pattern)?, work)?;
    Ok(Arc::new(PreparedFind { pattern, find }))
}

fn compile_pattern(pattern: &Value<'_>, work: &WorkBudget) -> Result<Arc<Regex>, Error> {
    cached_regex(str(pattern)?, work)
        .map_err(|why| Error::text(format!("Illegal regex: {why}"), work))
}

fn find<'a>(args: &[Value<'a>], pattern: &Regex) -> ValueResult<'a> {
    let [subject, _] = exactly(args)?;
    let subject = text(subject)?;
    Ok(match pattern.find(subject) {
        Some(found) => substring_of(subject, found.range()),
        None => Value::String(StringValue::Borrowed("")),
    })
}

/// Finds all matches, at most the number in the optional third argument; a negative one means all.
fn find_all<'a>(args: &[Value<'a>], pattern: &Regex) -> ValueResult<'a> {
    let (subject, limit) = match args {
        [subject, _] => (subject, usize::MAX),
        [subject, _, limit] => (subject, usize::try_from(int(limit)?).unwrap_or(usize::MAX)),
        _ => return Err(Error::NoSuchOverload),
    };
    let subject = text(subject)?;
    let found =
        pattern.find_iter(subject).take(limit).map(|found| substring_of(subject, found.range()));
    Ok(new_list(found.collect()))
}
