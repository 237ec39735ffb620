//! Macros that give a name to a value: `cel.bind`, `optMap` and `optFlatMap`.

use super::{method, name_of, parts, refusal};
use crate::syntax::ast::{Expr, operator};
use crate::syntax::{Expanded, Macro, Maker, Refusal};

/// `cel.bind(name, value, result)` (cel-go's `ext/bindings.go`).
pub const BIND: &[Macro] = &[method("bind", 3, bind)];

/// `optional.optMap(name, result)`, `optional.optFlatMap(name, optional result)` (cel-go's
/// `cel/library.go`).
pub const OPTIONAL: &[Macro] = &[
    method("optMap", 2, |make, target, args| opt_map(make, target, args, "optMap")),
    method("optFlatMap", 2, |make, target, args| opt_map(make, target, args, "optFlatMap")),
];

fn bind(make: &mut Maker<'_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expanded, Refusal> {
    let of_cel = target.as_ref().and_then(name_of).is_some_and(|name| &**name == "cel");
    if !of_cel {
        return Ok(Expanded::Stays(target, args));
    }
    let [name, value, result] = match parts(target, args) {
        Ok((_, args)) => args,
        Err(stays) => return Ok(stays),
    };
    let name = name_of(&name)
        .ok_or_else(|| refusal(&name, "cel.bind() variable names must be simple identifiers"))?;
    Ok(Expanded::Instead(make.bind(name.clone(), value, result)))
}

fn opt_map(
    make: &mut Maker<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    function: &str,
) -> Result<Expanded, Refusal> {
    let (target, [name, result]) = match parts(target, args) {
        Ok(parts) => parts,
        Err(stays) => return Ok(stays),
    };
    let name = name_of(&name).ok_or_else(|| {
        refusal(&name, &format!("{function}() variable name must be a simple identifier"))
    })?;
    let copy = make.copy(&target);
    let has = make.method(target, "hasValue", Vec::new());
    let value = make.method(copy, "value", Vec::new());
    let mut then = make.bind(name.clone(), value, result);
    if function == "optMap" {
        then = make.call("optional.of", vec![then]);
    }
    let none = make.call("optional.none", Vec::new());
    Ok(Expanded::Instead(make.call(operator::CONDITIONAL, vec![has, then, none])))
}
