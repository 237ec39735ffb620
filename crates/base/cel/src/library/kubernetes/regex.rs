//! Parts of strings that match a regular expression: `"abc 123".find("[0-9]+")`.

use crate::library::args::{exactly, int, list, part, str, text};
use crate::library::standard::{Pattern, remembered};
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
            let pattern = compiled(pattern, work)?;
            find(args, &pattern)
        })
        .prepared(|pattern, work| prepare(pattern, find, work)),
        method(
            "findAll",
            "string_find_all_string",
            vec![String, String],
            strings(),
            |args, work| {
                let [_, pattern] = exactly(args)?;
                let pattern = compiled(pattern, work)?;
                find_all(args, &pattern)
            },
        )
        .prepared(|pattern, work| prepare(pattern, find_all, work)),
        method(
            "findAll",
            "string_find_all_string_int",
            vec![String, String, Int],
            strings(),
            |args, work| {
                let [_, pattern, _] = exactly(args)?;
                let pattern = compiled(pattern, work)?;
                find_all(args, &pattern)
            },
        )
        .prepared(|pattern, work| prepare(pattern, find_all, work)),
    ]
}

/// A function that looks for a pattern in its first argument.
type Find = for<'a> fn(&[Value<'a>], &Regex) -> ValueResult<'a>;

#[derive(Debug)]
struct Known {
    pattern: Pattern,
    find: Find,
}

impl PreparedCall for Known {
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
    Ok(Arc::new(Known { pattern, find }))
}

fn compiled(pattern: &Value<'_>, work: &WorkBudget) -> Result<Arc<Regex>, Error> {
    remembered(str(pattern)?, work)
        .map_err(|why| Error::text(format!("Illegal regex: {why}"), work))
}

fn find<'a>(args: &[Value<'a>], pattern: &Regex) -> ValueResult<'a> {
    let [whole, _] = exactly(args)?;
    let whole = text(whole)?;
    Ok(match pattern.find(whole) {
        Some(found) => part(whole, found.range()),
        None => Value::String(StringValue::Borrowed("")),
    })
}

/// At most as many as the third argument says; all if there is none or it is below zero.
fn find_all<'a>(args: &[Value<'a>], pattern: &Regex) -> ValueResult<'a> {
    let (whole, most) = match args {
        [whole, _] => (whole, usize::MAX),
        [whole, _, most] => (whole, usize::try_from(int(most)?).unwrap_or(usize::MAX)),
        _ => return Err(Error::NoSuchOverload),
    };
    let whole = text(whole)?;
    let found = pattern.find_iter(whole).take(most).map(|found| part(whole, found.range()));
    Ok(list(found.collect()))
}
