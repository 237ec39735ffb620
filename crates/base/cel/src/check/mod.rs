//! Type checker: it resolves each name to a variable, type or function, and finds the type of each
//! node.

mod checker;
mod format;
mod overloads;
mod unify;
mod validate;

use crate::env::Env;
use crate::library::Overload;
use crate::source::{ExpressionSource, Issues};
use crate::syntax::ast::{Expr, Id, ParsedExpression};
use crate::types::Type;
use std::collections::HashMap;
use std::sync::Arc;

/// A checked expression.
#[derive(Clone, Debug)]
pub struct CheckedExpression {
    /// The text.
    pub source: ExpressionSource,
    /// The tree. Selections that are names (`a.b` for a variable) have become
    /// [`crate::syntax::ast::ExprKind::Ident`]. Methods that are functions (`optional.of(x)`) have
    /// lost their target. All names are full.
    pub root: Expr,
    /// As [`crate::syntax::ast::ParsedExpression::macro_calls`].
    pub macro_calls: HashMap<Id, Expr>,
    /// The type of each node by its id; [`Type::Dyn`] for ids without a node.
    pub types: Vec<Type>,
    /// The reference of each node by its id.
    pub references: Vec<Option<ResolvedReference>>,
}

/// The variable, type or overloads that a node refers to.
#[derive(Clone, Debug)]
pub enum ResolvedReference {
    /// A variable, by its full name.
    Variable(Arc<str>),
    /// A type, which is the value of the node.
    Type(Type),
    /// The overloads that accept the argument types; one if all types are known.
    Overloads(Vec<Arc<Overload>>),
}

impl CheckedExpression {
    /// The type of a node.
    pub fn type_of(&self, id: Id) -> &Type {
        self.types.get(id as usize).unwrap_or(&Type::Dyn)
    }

    /// The reference of a node.
    pub fn reference(&self, id: Id) -> Option<&ResolvedReference> {
        self.references.get(id as usize)?.as_ref()
    }

    /// The type of the expression.
    pub fn output(&self) -> &Type {
        self.type_of(self.root.id)
    }
}

/// Checks an expression.
pub(crate) fn check(env: &Env, parsed: ParsedExpression) -> Result<CheckedExpression, Issues> {
    let checked = checker::check(env, parsed)?;
    let issues = validate::validate(env, &checked);
    if issues.is_empty() { Ok(checked) } else { Err(Issues::new(checked.source, issues)) }
}
