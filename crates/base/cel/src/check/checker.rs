//! Type checking of each node of a tree.

use super::unify::Unifier;
use super::{CheckedExpression, ResolvedReference};
use crate::env::Env;
use crate::source::{CompileIssue, Issues};
use crate::syntax::ast::{
    Comprehension, Expr, ExprKind, FieldEntry, Id, Literal, MapEntry, ParsedExpression, operator,
};
use crate::types::{ObjectType, Type};
use std::fmt::Display;
use std::sync::Arc;

pub(super) struct Checker<'e> {
    pub(super) env: &'e Env,
    /// Variables of comprehensions, the innermost last.
    scopes: Vec<(Arc<str>, Type)>,
    types: Vec<Option<Type>>,
    references: Vec<Option<ResolvedReference>>,
    pub(super) unifier: Unifier,
    /// Whether `<`, `<=`, `>` and `>=` compare numbers of different types.
    pub(super) cross_type_numeric: bool,
    /// Errors with their code points.
    issues: Vec<(u32, String)>,
}

/// A resolved name.
enum ResolvedName {
    Variable(Arc<str>, Type),
    Type(Arc<str>, Type),
}

/// Checks an expression.
pub(super) fn check(env: &Env, parsed: ParsedExpression) -> Result<CheckedExpression, Issues> {
    let ParsedExpression { source, mut root, macro_calls, last_id } = parsed;
    let size = last_id as usize + 1;
    let mut checker = Checker {
        env,
        scopes: Vec::new(),
        types: vec![None; size],
        references: vec![None; size],
        unifier: Unifier::new(),
        cross_type_numeric: env.options().cross_type_numeric,
        issues: Vec::new(),
    };
    checker.check(&mut root);
    let mut types = Vec::with_capacity(size);
    for found in std::mem::take(&mut checker.types) {
        types.push(found.map_or(Type::Dyn, |found| checker.unifier.substitute(&found, true)));
    }
    if checker.unifier.exhausted() {
        checker.issues = vec![(root.at, "types are too large or nested too deeply".to_owned())];
    }
    if checker.issues.is_empty() {
        return Ok(CheckedExpression {
            source,
            root,
            macro_calls,
            types,
            references: checker.references,
        });
    }
    let issues = checker
        .issues
        .into_iter()
        .map(|(at, message)| CompileIssue { at: Some(source.location(at)), message })
        .collect();
    Err(Issues::new(source, issues))
}

impl Checker<'_> {
    pub(super) fn issue(&mut self, at: u32, message: impl Into<String>) {
        self.issues.push((at, message.into()));
    }

    /// The text of a type; empty if the type is too large.
    fn type_text<'t>(&mut self, ty: &'t Type) -> &'t dyn Display {
        // Types that are too large are reported at the end.
        if self.unifier.fits(ty) { ty } else { &"" }
    }

    pub(super) fn check(&mut self, node: &mut Expr) {
        let (id, at) = (node.id, node.at);
        match &mut node.kind {
            ExprKind::Literal(literal) => {
                let found = match literal {
                    Literal::Null => Type::Null,
                    Literal::Bool(_) => Type::Bool,
                    Literal::Int(_) => Type::Int,
                    Literal::Uint(_) => Type::Uint,
                    Literal::Double(_) => Type::Double,
                    Literal::String(_) => Type::String,
                    Literal::Bytes(_) => Type::Bytes,
                };
                self.set_type(id, at, found);
            }
            ExprKind::Ident(name) => {
                if let Some(resolved) = self.lookup(name) {
                    let full = self.record_name(id, at, resolved);
                    *name = full;
                } else {
                    self.set_type(id, at, Type::Error);
                    let message = self.undeclared(name);
                    self.issue(at, message);
                }
            }
            ExprKind::Select { operand, field, test_only } => {
                if !*test_only && let Some(resolved) = self.lookup_qualified(operand, field) {
                    let full = self.record_name(id, at, resolved);
                    node.kind = ExprKind::Ident(full);
                    return;
                }
                let mut found = self.select(at, operand, field, false);
                if *test_only {
                    found = Type::Bool;
                }
                let found = self.unifier.substitute(&found, false);
                self.set_type(id, at, found);
            }
            ExprKind::Call { .. } => self.call(node),
            ExprKind::List { elements, optional } => {
                let found = self.list(elements, optional);
                self.set_type(id, at, found);
            }
            ExprKind::Map(entries) => {
                let found = self.map(entries);
                self.set_type(id, at, found);
            }
            ExprKind::Struct { name, fields } => self.object(id, at, name, fields),
            ExprKind::Comprehension(comprehension) => {
                let found = self.comprehension(comprehension);
                self.set_type(id, at, found);
            }
        }
    }

    /// Resolves a name: a variable of a comprehension, another variable, or a type.
    fn lookup(&self, name: &str) -> Option<ResolvedName> {
        self.env.candidates(name).find_map(|name| {
            if let Some((name, found)) =
                self.scopes.iter().rev().find(|(variable, _)| **variable == *name)
            {
                return Some(ResolvedName::Variable(Arc::clone(name), found.clone()));
            }
            if let Some((name, found)) = self.env.variable_entry(&name) {
                return Some(ResolvedName::Variable(Arc::clone(name), found.clone()));
            }
            let found = self.env.named_type(&name)?;
            Some(ResolvedName::Type(Arc::from(&*name), found.clone()))
        })
    }

    /// Resolves `operand.field` if the whole is a name.
    fn lookup_qualified(&self, operand: &Expr, field: &str) -> Option<ResolvedName> {
        if !self.env.has_dotted_names(root_of(operand)?) {
            return None;
        }
        self.lookup(&qualified(operand, field))
    }

    /// Records the type and reference of a node; returns its full name.
    fn record_name(&mut self, id: Id, at: u32, resolved: ResolvedName) -> Arc<str> {
        let (name, found, reference) = match resolved {
            ResolvedName::Variable(name, found) => {
                (Arc::clone(&name), found, ResolvedReference::Variable(name))
            }
            ResolvedName::Type(name, found) => {
                (name, Type::Type(Some(Arc::new(found.clone()))), ResolvedReference::Type(found))
            }
        };
        self.set_type(id, at, found);
        self.set_reference(id, reference);
        name
    }

    pub(super) fn undeclared(&self, name: &str) -> String {
        let container = &self.env.options().container;
        format!("undeclared reference to '{name}' (in container '{container}')")
    }

    /// The type of `operand.field`, or of `operand.?field`.
    pub(super) fn select(
        &mut self,
        at: u32,
        operand: &mut Expr,
        field: &str,
        optional: bool,
    ) -> Type {
        self.check(operand);
        let operand = self.type_of(operand.id);
        let operand = self.unifier.substitute(&operand, false);
        let (target, in_optional) = match operand.optional_inner() {
            Some(inner) => (inner, true),
            None => (&operand, false),
        };
        let found = match target {
            Type::Map(entry) => entry.1.clone(),
            Type::Object(object) => self.field(at, object, field),
            Type::Var(_) | Type::Param(_) => {
                self.unifier.assignable(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            _ => {
                let message =
                    format!("type '{}' does not support field selection", self.type_text(target));
                self.issue(at, message);
                Type::Dyn
            }
        };
        if in_optional || optional { Type::optional(found) } else { found }
    }

    /// The type of a field of an object's type.
    fn field(&mut self, at: u32, owner: &ObjectType, field: &str) -> Type {
        let ObjectType { name, fields } = owner;
        if !fields.declares(name) {
            self.issue(at, format!("unexpected failed resolution of '{name}'"));
            return Type::Error;
        }
        fields.field(name, field).unwrap_or_else(|| {
            self.issue(at, format!("undefined field '{field}'"));
            Type::Error
        })
    }

    fn list(&mut self, elements: &mut [Expr], optional: &[u32]) -> Type {
        let mut common = None;
        let mut optional = optional.iter().copied().peekable();
        for (index, element) in (0..).zip(elements) {
            self.check(element);
            let mut found = self.type_of(element.id);
            if optional.next_if_eq(&index).is_some() {
                found = self.optional_value_type(element.at, found);
            }
            common = Some(self.join(common, found));
        }
        let element = common.unwrap_or_else(|| self.unifier.variable());
        Type::list(self.unifier.bounded(element))
    }

    fn map(&mut self, entries: &mut [MapEntry]) -> Type {
        let mut common = None;
        for entry in entries {
            self.check(&mut entry.key);
            let key = self.type_of(entry.key.id);
            let (keys, values) =
                common.map_or((None, None), |(key, value)| (Some(key), Some(value)));
            let key = self.join(keys, key);
            self.check(&mut entry.value);
            let mut value = self.type_of(entry.value.id);
            if entry.optional {
                value = self.optional_value_type(entry.value.at, value);
            }
            common = Some((key, self.join(values, value)));
        }
        let (key, value) =
            common.unwrap_or_else(|| (self.unifier.variable(), self.unifier.variable()));
        Type::map(self.unifier.bounded(key), self.unifier.bounded(value))
    }

    /// The type of an optional's value; an error for other types.
    fn optional_value_type(&mut self, at: u32, found: Type) -> Type {
        match found.optional_inner() {
            Some(inner) => inner.clone(),
            None if found.is_dyn() => found,
            None => {
                let expected = Type::optional(found.clone());
                self.mismatch(at, &expected, &found);
                found
            }
        }
    }

    /// The common type of elements so far and the next one.
    fn join(&mut self, common_so_far: Option<Type>, next: Type) -> Type {
        let Some(common_so_far) = common_so_far else { return next };
        if !self.unifier.assignable(&common_so_far, &next) {
            return Type::Dyn;
        }
        self.unifier.most_general(&common_so_far, &next).clone()
    }

    fn object(&mut self, id: Id, at: u32, name: &mut Arc<str>, fields: &mut [FieldEntry]) {
        let Some(resolved) = self.lookup(name) else {
            self.set_type(id, at, Type::Error);
            let message = self.undeclared(name);
            self.issue(at, message);
            return;
        };
        let found = match resolved {
            ResolvedName::Type(full, found @ Type::Object(_)) => {
                self.set_reference(id, ResolvedReference::Type(found.clone()));
                *name = full;
                found
            }
            ResolvedName::Type(full, found) => {
                self.issue(at, format!("'{}' is not a message type", found.name()));
                *name = full;
                Type::Error
            }
            ResolvedName::Variable(full, found) => {
                if !matches!(found, Type::Error) {
                    self.issue(at, format!("'{}' is not a type", found.name()));
                }
                *name = full;
                Type::Error
            }
        };
        self.set_type(id, at, found.clone());
        for field in fields {
            self.check(&mut field.value);
            let expected = if let Type::Object(object) = &found {
                self.field(field.at, object, &field.field)
            } else {
                self.issue(field.at, format!("unexpected failed resolution of '{name}'"));
                Type::Error
            };
            let mut value = self.type_of(field.value.id);
            if field.optional {
                value = self.optional_value_type(field.value.at, value);
            }
            if !self.unifier.assignable(&expected, &value) {
                let message = format!(
                    "expected type of field '{}' is '{}' but provided type is '{}'",
                    field.field,
                    self.type_text(&expected),
                    self.type_text(&value)
                );
                self.issue(field.at, message);
            }
        }
    }

    fn comprehension(&mut self, comprehension: &mut Comprehension) -> Type {
        let Comprehension {
            range,
            iter_var,
            iter_var2,
            accu_var,
            accu_init,
            condition,
            step,
            result,
        } = comprehension;
        self.check(range);
        self.check(accu_init);
        let range_type = self.type_of(range.id);
        let range_type = self.unifier.substitute(&range_type, false);
        let accu = self.type_of(accu_init.id);

        // cel-go drops the restriction on cross-type comparison in the first comprehension and does
        // not restore it afterwards.
        self.cross_type_numeric = true;
        let before_accumulator = self.scopes.len();
        self.scopes.push((Arc::clone(accu_var), accu.clone()));

        let has_two_variables = iter_var2.is_some();
        let (first, second) = match &range_type {
            Type::List(element) if has_two_variables => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Error),
            Type::Map(entry) => (entry.0.clone(), entry.1.clone()),
            Type::Dyn | Type::Any | Type::Error | Type::Var(_) | Type::Param(_) => {
                self.unifier.assignable(&Type::Dyn, &range_type);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, \
                     map, or dynamic)",
                    self.type_text(&range_type)
                );
                self.issue(range.at, message);
                (Type::Error, Type::Error)
            }
        };
        let before_elements = self.scopes.len();
        if let Some(iter_var2) = iter_var2.as_ref().filter(|second| *second != iter_var) {
            self.scopes.push((Arc::clone(iter_var2), second));
        }
        self.scopes.push((Arc::clone(iter_var), first));
        self.check(condition);
        self.assert(condition, &Type::Bool);
        self.check(step);
        self.assert(step, &accu);
        self.scopes.truncate(before_elements);
        self.check(result);
        self.scopes.truncate(before_accumulator);
        let found = self.type_of(result.id);
        self.unifier.substitute(&found, false)
    }

    fn assert(&mut self, node: &Expr, expected: &Type) {
        let found = self.type_of(node.id);
        if !self.unifier.assignable(expected, &found) {
            self.mismatch(node.at, expected, &found);
        }
    }

    pub(super) fn mismatch(&mut self, at: u32, expected: &Type, found: &Type) {
        let message = format!(
            "expected type '{}' but found '{}'",
            self.type_text(expected),
            self.type_text(found)
        );
        self.issue(at, message);
    }

    pub(super) fn type_of(&self, id: Id) -> Type {
        self.types.get(id as usize).cloned().flatten().unwrap_or(Type::Error)
    }

    pub(super) fn set_type(&mut self, id: Id, at: u32, found: Type) {
        let Some(slot) = self.types.get_mut(id as usize) else { return };
        if let Some(before) = slot.clone()
            && !self.unifier.same(&before, &found)
        {
            let message = format!(
                "incompatible type already exists for expression: ({id}) old:{}, new:{}",
                self.type_text(&before),
                self.type_text(&found)
            );
            self.issue(at, message);
            return;
        }
        self.types[id as usize] = Some(found);
    }

    pub(super) fn set_reference(&mut self, id: Id, reference: ResolvedReference) {
        if let Some(slot) = self.references.get_mut(id as usize) {
            *slot = Some(reference);
        }
    }
}

/// The first part of a name such as `a.b.c`; none for other expressions.
fn root_of(mut node: &Expr) -> Option<&str> {
    loop {
        match &node.kind {
            ExprKind::Ident(name) => return Some(name),
            ExprKind::Select { operand, test_only: false, .. } => node = operand,
            _ => return None,
        }
    }
}

/// `operand.field` as a name, if the operand is one.
fn qualified(operand: &Expr, field: &str) -> String {
    let mut name = match &operand.kind {
        ExprKind::Ident(name) => name.to_string(),
        ExprKind::Select { operand, field, .. } => qualified(operand, field),
        _ => String::new(),
    };
    name.push('.');
    name.push_str(field);
    name
}

impl Checker<'_> {
    /// Checks a call of a function, an operator or a method.
    fn call(&mut self, node: &mut Expr) {
        let (id, at) = (node.id, node.at);
        let ExprKind::Call { function, target, args } = &mut node.kind else { return };
        if &**function == operator::OPT_SELECT {
            return self.optional_select(node);
        }
        for arg in &mut *args {
            self.check(arg);
        }
        let Some(operand) = target else {
            let Some(full) = self.function(function) else {
                self.set_type(id, at, Type::Error);
                let message = self.undeclared(function);
                self.issue(at, message);
                return;
            };
            *function = Arc::clone(&full);
            return self.resolve(id, at, &full, None, args);
        };
        // `optional.of` in `optional.of(x)` is the name of a function.
        if let Some(root) = root_of(operand)
            && self.env.has_dotted_functions(root)
            && let Some(full) = self.function(&qualified(operand, function).into())
        {
            *function = Arc::clone(&full);
            *target = None;
            return self.resolve(id, at, &full, None, args);
        }
        self.check(operand);
        let Some(full) = self.function(function) else {
            self.set_type(id, at, Type::Error);
            let message = self.undeclared(function);
            self.issue(at, message);
            return;
        };
        self.resolve(id, at, &full, Some(operand), args);
    }

    /// The full name of a function.
    fn function(&self, name: &Arc<str>) -> Option<Arc<str>> {
        self.env
            .candidates(name)
            .find(|name| self.env.function(name).is_some())
            .map(|full| if *full == **name { Arc::clone(name) } else { Arc::from(&*full) })
    }

    /// `operand.?field`
    fn optional_select(&mut self, node: &mut Expr) {
        let (id, at) = (node.id, node.at);
        let ExprKind::Call { target, args, .. } = &mut node.kind else { return };
        let count = args.len();
        let ([operand, field], None) = (args.as_mut_slice(), &target) else {
            let style = if target.is_some() { " member call with" } else { "" };
            self.issue(
                at,
                format!(
                    "unsupported optional field selection: incorrect signature.{style} argument \
                     count: {count}"
                ),
            );
            return;
        };
        let ExprKind::Literal(Literal::String(name)) = &field.kind else {
            self.issue(field.at, "unsupported optional field selection");
            return;
        };
        let found = self.select(at, operand, name, true);
        let found = self.unifier.substitute(&found, false);
        self.set_type(id, at, found);
    }
}
