//! Type unification: assignability of types, and the type variables that it binds.
//!
//! Rules: cel-go's `checker/types.go`. A failed attempt binds nothing.
//!
//! Large types are cheap to write: a map of a variable to itself is twice the variable's type, and
//! a chain of those doubles with each link. So types are limited in size and depth, and comparing
//! them consumes a step budget. Beyond these limits the expression is rejected, before it takes all
//! time, memory or stack.

use crate::types::{OpaqueType, Type};
use std::sync::Arc;

/// The step budget of an expression: each visited type costs one step. The longest expression that
/// the parser accepts needs less than a quarter if its types are small.
const MAX_STEPS: u32 = 8_000_000;
/// The maximum size of a type: the number of types in it.
const MAX_SIZE: u32 = 4_000;
/// The maximum depth of a type.
const MAX_DEPTH: u32 = 400;

/// The bindings of type variables and parameters.
#[derive(Debug)]
pub(super) struct Unifier {
    /// The type of each variable, if bound.
    variables: Vec<Option<Type>>,
    /// The types of parameters in declared variables (`list` is a `type(list(A))`).
    params: Vec<(Arc<str>, Type)>,
    /// The old bindings, for a failed attempt.
    trail: Vec<(BindingKey, Option<Type>)>,
    steps_left: u32,
    exhausted: bool,
}

#[derive(Clone, Debug)]
enum BindingKey {
    Variable(u32),
    Param(Arc<str>),
}

impl Unifier {
    pub(super) const fn new() -> Self {
        Self {
            variables: Vec::new(),
            params: Vec::new(),
            trail: Vec::new(),
            steps_left: MAX_STEPS,
            exhausted: false,
        }
    }

    /// Whether a limit was exceeded; results are meaningless then.
    pub(super) const fn exhausted(&self) -> bool {
        self.exhausted
    }

    /// A fresh type variable.
    pub(super) fn variable(&mut self) -> Type {
        self.variables.push(None);
        Type::Var(u32::try_from(self.variables.len() - 1).unwrap_or(u32::MAX))
    }

    /// Whether one type is assignable to the other; binds variables if so.
    pub(super) fn assignable(&mut self, one: &Type, other: &Type) -> bool {
        self.attempt(|unifier| unifier.unify(one, other, 0))
    }

    /// As [`Self::assignable`], for several types together.
    pub(super) fn all_assignable(&mut self, ones: &[Type], others: &[Type]) -> bool {
        self.attempt(|unifier| unifier.unify_all(ones, others, 0))
    }

    /// The more general of two assignable types.
    pub(super) fn most_general<'t>(&mut self, one: &'t Type, other: &'t Type) -> &'t Type {
        if self.less_specific(one, other, 0) { one } else { other }
    }

    /// Substitutes the bindings in a type, and `dyn` for unbound variables if `to_dyn`.
    pub(super) fn substitute(&mut self, cel_type: &Type, to_dyn: bool) -> Type {
        let before = self.steps_left;
        let replaced = self.replace(cel_type, to_dyn, 0).unwrap_or_else(|| cel_type.clone());
        self.limit(before);
        replaced
    }

    /// Whether the types are the same.
    pub(super) fn same(&mut self, one: &Type, other: &Type) -> bool {
        self.exact(one, other, 0)
    }

    /// The type, or `dyn` if it is too large or too deep to become part of another.
    pub(super) fn bounded(&mut self, cel_type: Type) -> Type {
        let before = self.steps_left;
        self.measure(&cel_type, 0);
        self.limit(before);
        if self.exhausted { Type::Dyn } else { cel_type }
    }

    /// Whether a type is small enough for a message.
    pub(super) fn fits(&mut self, cel_type: &Type) -> bool {
        self.measure(cel_type, 0)
    }

    /// Records a type that is too large, from the steps before its visit.
    const fn limit(&mut self, before: u32) {
        if before - self.steps_left > MAX_SIZE {
            self.exhausted = true;
        }
    }

    fn attempt(&mut self, attempt: impl FnOnce(&mut Self) -> bool) -> bool {
        let mark = self.trail.len();
        let success = attempt(self);
        if !success {
            for (key, before) in self.trail.drain(mark..).rev() {
                match key {
                    BindingKey::Variable(number) => self.variables[number as usize] = before,
                    BindingKey::Param(name) => {
                        self.params.retain(|(bound, _)| *bound != name);
                        self.params.extend(before.map(|before| (name, before)));
                    }
                }
            }
        }
        self.trail.clear();
        success
    }

    /// Consumes a step; false if none is left or the type is too deep.
    const fn take_step(&mut self, depth: u32) -> bool {
        if self.steps_left == 0 || depth > MAX_DEPTH {
            self.exhausted = true;
        } else {
            self.steps_left -= 1;
        }
        !self.exhausted
    }

    fn bound_type(&self, cel_type: &Type) -> Option<&Type> {
        match cel_type {
            Type::Var(number) => self.variables.get(*number as usize)?.as_ref(),
            Type::Param(name) => self
                .params
                .iter()
                .find(|(bound, _)| bound == name)
                .map(|(_, bound_type)| bound_type),
            _ => None,
        }
    }

    fn bind(&mut self, key: &Type, to: Type) {
        match key {
            Type::Var(number) => {
                if let Some(slot) = self.variables.get_mut(*number as usize) {
                    self.trail.push((BindingKey::Variable(*number), slot.replace(to)));
                }
            }
            Type::Param(name) => {
                let at = self.params.iter().position(|(bound, _)| bound == name);
                let before = at.map(|at| self.params.swap_remove(at).1);
                self.params.push((Arc::clone(name), to));
                self.trail.push((BindingKey::Param(Arc::clone(name)), before));
            }
            _ => {}
        }
    }

    fn unify(&mut self, one: &Type, other: &Type, depth: u32) -> bool {
        if !self.take_step(depth) {
            return true;
        }
        if other.is_variable() {
            match self.unify_variable(one, other, depth) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if one.is_variable() {
            return self.unify_variable(other, one, depth).0;
        }
        match (one, other) {
            (Type::Dyn | Type::Any | Type::Error, _)
            | (_, Type::Dyn | Type::Any | Type::Error)
            | (Type::Type(_), Type::Type(_)) => true,
            (Type::Null, beside) | (beside, Type::Null) => matches!(
                beside,
                Type::Null | Type::Opaque(_) | Type::Object(_) | Type::Duration | Type::Timestamp
            ),
            (Type::List(one), Type::List(other)) => self.unify(one, other, depth + 1),
            (Type::Map(one), Type::Map(other)) => {
                self.unify(&one.0, &other.0, depth + 1) && self.unify(&one.1, &other.1, depth + 1)
            }
            (Type::Opaque(one), Type::Opaque(other)) => {
                one.name == other.name && self.unify_all(&one.params, &other.params, depth + 1)
            }
            // The other types have no parameters.
            (one, other) => one == other,
        }
    }

    fn unify_all(&mut self, one: &[Type], others: &[Type], depth: u32) -> bool {
        one.len() == others.len()
            && one.iter().zip(others).all(|(one, other)| self.unify(one, other, depth))
    }

    /// Whether `unbound` can be `other`, and whether it was bound before.
    fn unify_variable(&mut self, other: &Type, variable: &Type, depth: u32) -> (bool, bool) {
        if other == variable {
            return (true, true);
        }
        let Some(bound) = self.bound_type(variable).cloned() else {
            if !self.does_not_occur(variable, other, depth) {
                return (false, false);
            }
            self.bind(variable, other.clone());
            return (true, false);
        };
        if self.exact(other, &bound, depth) {
            return (true, true);
        }
        if !self.unify(other, &bound, depth + 1) {
            return (false, true);
        }
        let general = self.most_general(other, &bound).clone();
        if self.does_not_occur(variable, &general, depth) {
            self.bind(variable, general);
        }
        (true, true)
    }

    /// The occurs check: whether the variable does not occur in the other type.
    fn does_not_occur(&mut self, variable: &Type, within: &Type, depth: u32) -> bool {
        if !self.take_step(depth) {
            return false;
        }
        if within.is_variable() {
            return variable != within
                && match self.bound_type(within).cloned() {
                    Some(bound_type) => self.does_not_occur(variable, &bound_type, depth + 1),
                    None => true,
                };
        }
        match within {
            Type::List(element) => self.does_not_occur(variable, element, depth + 1),
            Type::Map(entry) => {
                self.does_not_occur(variable, &entry.0, depth + 1)
                    && self.does_not_occur(variable, &entry.1, depth + 1)
            }
            Type::Type(Some(cel_type)) => self.does_not_occur(variable, cel_type, depth + 1),
            Type::Opaque(opaque) => {
                opaque.params.iter().all(|param| self.does_not_occur(variable, param, depth + 1))
            }
            _ => true,
        }
    }

    /// Whether the first type is equal to the second or more general.
    fn less_specific(&mut self, one: &Type, other: &Type, depth: u32) -> bool {
        if !self.take_step(depth) || one.is_dyn() || one.is_variable() {
            return true;
        }
        if other.is_dyn() || other.is_variable() {
            return false;
        }
        match (one, other) {
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(one), Type::List(other)) => self.less_specific(one, other, depth + 1),
            (Type::Map(one), Type::Map(other)) => {
                self.less_specific(&one.0, &other.0, depth + 1)
                    && self.less_specific(&one.1, &other.1, depth + 1)
            }
            (Type::Opaque(one), Type::Opaque(other)) => {
                one.name == other.name
                    && one.params.len() == other.params.len()
                    && one
                        .params
                        .iter()
                        .zip(&other.params)
                        .all(|(one, other)| self.less_specific(one, other, depth + 1))
            }
            (one, other) => one == other,
        }
    }

    fn exact(&mut self, one: &Type, other: &Type, depth: u32) -> bool {
        if !self.take_step(depth) {
            return true;
        }
        match (one, other) {
            (Type::List(one), Type::List(other))
            | (Type::Type(Some(one)), Type::Type(Some(other))) => {
                Arc::ptr_eq(one, other) || self.exact(one, other, depth + 1)
            }
            (Type::Map(one), Type::Map(other)) => {
                Arc::ptr_eq(one, other)
                    || self.exact(&one.0, &other.0, depth + 1)
                        && self.exact(&one.1, &other.1, depth + 1)
            }
            (Type::Opaque(one), Type::Opaque(other)) => {
                one.name == other.name
                    && one.params.len() == other.params.len()
                    && one
                        .params
                        .iter()
                        .zip(&other.params)
                        .all(|(one, other)| self.exact(one, other, depth + 1))
            }
            (one, other) => one == other,
        }
    }

    /// Substitutes bindings; none if nothing changes.
    fn replace(&mut self, cel_type: &Type, to_dyn: bool, depth: u32) -> Option<Type> {
        if !self.take_step(depth) {
            return Some(Type::Dyn);
        }
        match cel_type {
            Type::Var(_) | Type::Param(_) => match self.bound_type(cel_type).cloned() {
                Some(bound_type) => {
                    Some(self.replace(&bound_type, to_dyn, depth + 1).unwrap_or(bound_type))
                }
                None => to_dyn.then_some(Type::Dyn),
            },
            Type::List(element) => self.replace(element, to_dyn, depth + 1).map(Type::list),
            Type::Map(entry) => {
                let key = self.replace(&entry.0, to_dyn, depth + 1);
                let value = self.replace(&entry.1, to_dyn, depth + 1);
                if key.is_none() && value.is_none() {
                    return None;
                }
                Some(Type::map(
                    key.unwrap_or_else(|| entry.0.clone()),
                    value.unwrap_or_else(|| entry.1.clone()),
                ))
            }
            Type::Type(Some(inner)) => self
                .replace(inner, to_dyn, depth + 1)
                .map(|inner| Type::Type(Some(Arc::new(inner)))),
            Type::Opaque(opaque) => {
                let replaced: Vec<_> = opaque
                    .params
                    .iter()
                    .map(|param| self.replace(param, to_dyn, depth + 1))
                    .collect();
                if replaced.iter().all(Option::is_none) {
                    return None;
                }
                let params = replaced
                    .into_iter()
                    .zip(&opaque.params)
                    .map(|(replaced, param)| replaced.unwrap_or_else(|| param.clone()))
                    .collect();
                Some(Type::Opaque(Arc::new(OpaqueType { name: Arc::clone(&opaque.name), params })))
            }
            _ => None,
        }
    }

    /// Visits all of a type, within the limits.
    fn measure(&mut self, cel_type: &Type, depth: u32) -> bool {
        self.take_step(depth)
            && match cel_type {
                Type::List(element) => self.measure(element, depth + 1),
                Type::Map(entry) => {
                    self.measure(&entry.0, depth + 1) && self.measure(&entry.1, depth + 1)
                }
                Type::Type(Some(inner)) => self.measure(inner, depth + 1),
                Type::Opaque(opaque) => {
                    opaque.params.iter().all(|param| self.measure(param, depth + 1))
                }
                _ => true,
            }
    }
}

impl Type {
    /// Whether the type is a parameter or a variable.
    const fn is_variable(&self) -> bool {
        matches!(self, Self::Var(_) | Self::Param(_))
    }
}
