//! Overload resolution of calls.

use super::ResolvedReference;
use super::checker::Checker;
use crate::library::Overload;
use crate::syntax::ast::{Expr, Id, operator};
use crate::types::{OpaqueType, Type};
use std::fmt::Write as _;
use std::sync::Arc;

impl Checker<'_> {
    /// Resolves the overloads and the result type of a call with checked arguments.
    pub(super) fn resolve(
        &mut self,
        id: Id,
        at: u32,
        function: &str,
        target: Option<&Expr>,
        args: &[Expr],
    ) {
        let found: Vec<Type> =
            target.into_iter().chain(args).map(|arg| self.type_of(arg.id)).collect();
        let env = self.env;
        let mut overloads = Vec::new();
        let mut result: Option<Type> = None;
        for overload in env.function(function).unwrap_or_default() {
            if overload.receiver != target.is_some()
                || !self.cross_type_numeric && is_cross_type(overload.id)
            {
                continue;
            }
            if matches!(function, operator::AND | operator::OR) {
                self.logical(id, at, overload, args, &found);
                return;
            }
            let declared = self.instantiate(overload);
            let (params, result_type) = match &declared {
                Some((params, result_type)) => (params, result_type),
                None => (&overload.params, &overload.result),
            };
            if !self.unifier.all_assignable(&found, params) {
                continue;
            }
            overloads.push(Arc::clone(overload));
            let result_type = self.unifier.substitute(result_type, false);
            result = Some(match result {
                None => result_type,
                Some(result) if result.is_dyn() || self.unifier.same(&result_type, &result) => {
                    result
                }
                Some(_) => Type::Dyn,
            });
        }
        if let Some(result) = result {
            self.set_type(id, at, result);
            self.set_reference(id, ResolvedReference::Overloads(overloads));
            return;
        }
        self.set_type(id, at, Type::Error);
        let found: Vec<_> = found
            .iter()
            .map(|argument_type| self.unifier.substitute(argument_type, true))
            .collect();
        let message = format!(
            "found no matching overload for '{function}' applied to '{}'",
            signature(&found, target.is_some())
        );
        self.issue(at, message);
    }

    /// Checks `&&` and `||`, with an error for each operand that is not a bool.
    fn logical(
        &mut self,
        id: Id,
        at: u32,
        overload: &Arc<Overload>,
        args: &[Expr],
        found: &[Type],
    ) {
        let mut result = Type::Bool;
        for (arg, found) in args.iter().zip(found) {
            if !self.unifier.assignable(found, &Type::Bool) {
                self.mismatch(arg.at, &Type::Bool, found);
                result = Type::Error;
            }
        }
        if matches!(result, Type::Bool) {
            self.set_reference(id, ResolvedReference::Overloads(vec![Arc::clone(overload)]));
        }
        self.set_type(id, at, result);
    }

    /// Parameters and result of an overload with fresh variables for its type parameters; none if
    /// it has no type parameters.
    fn instantiate(&mut self, overload: &Overload) -> Option<(Vec<Type>, Type)> {
        if !overload.params.iter().chain([&overload.result]).any(has_param) {
            return None;
        }
        let mut variables = Vec::new();
        let result = self.replace_params(&overload.result, &mut variables);
        let params = overload
            .params
            .iter()
            .map(|param| self.replace_params(param, &mut variables))
            .collect();
        Some((params, result))
    }

    fn replace_params(&mut self, declared: &Type, variables: &mut Vec<(Arc<str>, Type)>) -> Type {
        match declared {
            Type::Param(name) => {
                if let Some((_, variable)) = variables.iter().find(|(param, _)| param == name) {
                    return variable.clone();
                }
                let variable = self.unifier.variable();
                variables.push((Arc::clone(name), variable.clone()));
                variable
            }
            _ if !has_param(declared) => declared.clone(),
            Type::List(element) => Type::list(self.replace_params(element, variables)),
            Type::Map(entry) => Type::map(
                self.replace_params(&entry.0, variables),
                self.replace_params(&entry.1, variables),
            ),
            Type::Type(Some(cel_type)) => {
                Type::Type(Some(Arc::new(self.replace_params(cel_type, variables))))
            }
            Type::Opaque(opaque) => Type::Opaque(Arc::new(OpaqueType {
                name: Arc::clone(&opaque.name),
                params: opaque
                    .params
                    .iter()
                    .map(|param| self.replace_params(param, variables))
                    .collect(),
            })),
            _ => declared.clone(),
        }
    }
}

fn has_param(declared: &Type) -> bool {
    match declared {
        Type::Param(_) => true,
        Type::List(element) => has_param(element),
        Type::Map(entry) => has_param(&entry.0) || has_param(&entry.1),
        Type::Type(Some(cel_type)) => has_param(cel_type),
        Type::Opaque(opaque) => opaque.params.iter().any(has_param),
        _ => false,
    }
}

/// `(int, string)`, or `int.(string)` for a method.
fn signature(args: &[Type], receiver: bool) -> String {
    let mut text = String::new();
    let mut args = args;
    if receiver && let Some((target, rest)) = args.split_first() {
        // Writing to a string does not fail.
        let _ = write!(text, "{target}.");
        args = rest;
    }
    text.push('(');
    for (index, arg) in args.iter().enumerate() {
        let _ = write!(text, "{}{arg}", if index == 0 { "" } else { ", " });
    }
    text.push(')');
    text
}

/// Whether an overload compares numbers of different types.
fn is_cross_type(id: &str) -> bool {
    const NUMBERS: [&str; 3] = ["int64", "uint64", "double"];
    ["less_equals_", "less_", "greater_equals_", "greater_"]
        .iter()
        .find_map(|prefix| id.strip_prefix(prefix))
        .and_then(|types| types.split_once('_'))
        .is_some_and(|(one, other)| NUMBERS.contains(&one) && NUMBERS.contains(&other))
}
