//! Macros that give a name to a value: `cel.bind`, `optMap` and `optFlatMap`.

use super::{macro_error, method, name_of, target_and_args};
use crate::syntax::ast::{Expr, operator};
use crate::syntax::{Expansion, Macro, MacroError, NodeFactory};

/// `cel.bind(name, value, result)` (cel-go's `ext/bindings.go`).
pub const BIND: &[Macro] = &[method("bind", 3, bind)];

/// `optional.optMap(name, result)`, `optional.optFlatMap(name, optional result)` (cel-go's
/// `cel/library.go`).
pub const OPTIONAL: &[Macro] = &[
    method("optMap", 2, |factory, target, args| opt_map(factory, target, args, "optMap")),
    method("optFlatMap", 2, |factory, target, args| opt_map(factory, target, args, "optFlatMap")),
];

fn bind(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    let of_cel = target.as_ref().and_then(name_of).is_some_and(|name| &**name == "cel");
    if !of_cel {
        return Ok(Expansion::Unchanged(target, args));
    }
    let [name, value, result] = match target_and_args(target, args) {
        Ok((_, args)) => args,
        Err(unchanged) => return Ok(unchanged),
    };
    let name = name_of(&name).ok_or_else(|| {
        macro_error(&name, "cel.bind() variable names must be simple identifiers")
    })?;
    Ok(Expansion::Replacement(factory.bind(name.clone(), value, result)))
}

fn opt_map(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    function: &str,
) -> Result<Expansion, MacroError> {
    let (target, [name, result]) = match target_and_args(target, args) {
        Ok(target_and_args) => target_and_args,
        Err(unchanged) => return Ok(unchanged),
    };
    let name = name_of(&name).ok_or_else(|| {
        macro_error(&name, &format!("{function}() variable name must be a simple identifier"))
    })?;
    let copy = factory.copy(&target);
    let has = factory.method(target, "hasValue", Vec::new());
    let value = factory.method(copy, "value", Vec::new());
    let mut then = factory.bind(name.clone(), value, result);
    if function == "optMap" {
        then = factory.call("optional.of", vec![then]);
    }
    let none = factory.call("optional.none", Vec::new());
    Ok(Expansion::Replacement(factory.call(operator::CONDITIONAL, vec![has, then, none])))
}
