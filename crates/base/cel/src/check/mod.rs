//! The type checker: which variable, type or function each name means, and the type of each node.

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

/// An expression that has been checked.
#[derive(Clone, Debug)]
pub struct CheckedExpression {
    /// The text.
    pub source: ExpressionSource,
    /// The tree. Selections that are names (`a.b` where that is a variable) have become
    /// [`crate::syntax::ast::ExprKind::Ident`], methods that are functions (`optional.of(x)`) have
    /// lost their target, and all names are full ones.
    pub root: Expr,
    /// As [`crate::syntax::ast::ParsedExpression::macro_calls`].
    pub macro_calls: HashMap<Id, Expr>,
    /// The type of each node, by its number; [`Type::Dyn`] at numbers that no node has.
    pub types: Vec<Type>,
    /// What each node refers to, by its number.
    pub references: Vec<Option<ResolvedReference>>,
}

/// What a node refers to.
#[derive(Clone, Debug)]
pub enum ResolvedReference {
    /// A variable, by its full name.
    Variable(Arc<str>),
    /// A type; the value of the node is that type.
    Type(Type),
    /// The overloads that may be called with the arguments that the checker saw: one if their
    /// types are known.
    Overloads(Vec<Arc<Overload>>),
}

impl CheckedExpression {
    /// The type of a node.
    pub fn type_of(&self, id: Id) -> &Type {
        self.types.get(id as usize).unwrap_or(&Type::Dyn)
    }

    /// What a node refers to.
    pub fn reference(&self, id: Id) -> Option<&ResolvedReference> {
        self.references.get(id as usize)?.as_ref()
    }

    /// The type of the whole.
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
