//! Which type may stand where which is wanted, and what that settles.
//!
//! Rules: cel-go's `checker/types.go`. A failed attempt settles nothing.
//!
//! Types are cheap to make large: a map of a variable to itself is twice the variable's type, and
//! a chain of those doubles with each link. Types are therefore limited in size and depth, and
//! looking at them draws on a stock; beyond any of these the expression is refused, instead of
//! taking all time, all memory or the stack.

use crate::types::{OpaqueType, Type};
use std::sync::Arc;

/// How many types may be looked at in one expression. The longest expression that the parser
/// accepts needs less than a quarter of it if its types are small.
const STOCK: u32 = 8_000_000;
/// Of how many types one may consist.
const LARGEST: u32 = 4_000;
/// How deep types may be.
const DEPTH: u32 = 400;

/// What is known of types that are not settled by where they stand.
#[derive(Debug)]
pub(super) struct Unifier {
    /// What became of each variable.
    variables: Vec<Option<Type>>,
    /// What became of parameters of declared variables (`list` is a `type(list(A))`).
    named: Vec<(Arc<str>, Type)>,
    /// What to put back if an attempt fails.
    trail: Vec<(Unsettled, Option<Type>)>,
    stock: u32,
    exhausted: bool,
}

#[derive(Clone, Debug)]
enum Unsettled {
    Variable(u32),
    Named(Arc<str>),
}

impl Unifier {
    pub(super) const fn new() -> Self {
        Self {
            variables: Vec::new(),
            named: Vec::new(),
            trail: Vec::new(),
            stock: STOCK,
            exhausted: false,
        }
    }

    /// Whether types became too many or too deep; answers do not count then.
    pub(super) const fn exhausted(&self) -> bool {
        self.exhausted
    }

    /// A type of which nothing is known.
    pub(super) fn variable(&mut self) -> Type {
        self.variables.push(None);
        Type::Var(u32::try_from(self.variables.len() - 1).unwrap_or(u32::MAX))
    }

    /// Whether one type may stand where the other is wanted; settles what follows from it.
    pub(super) fn assignable(&mut self, one: &Type, other: &Type) -> bool {
        self.attempt(|unifier| unifier.unify(one, other, 0))
    }

    /// As [`Self::assignable`], for several at once.
    pub(super) fn all_assignable(&mut self, ones: &[Type], others: &[Type]) -> bool {
        self.attempt(|unifier| unifier.unify_all(ones, others, 0))
    }

    /// The more general of two types that may stand for each other.
    pub(super) fn most_general<'t>(&mut self, one: &'t Type, other: &'t Type) -> &'t Type {
        if self.less_specific(one, other, 0) { one } else { other }
    }

    /// The type with all that is settled put in, and `dyn` for the rest if `to_dyn`.
    pub(super) fn substitute(&mut self, of: &Type, to_dyn: bool) -> Type {
        let before = self.stock;
        let replaced = self.replace(of, to_dyn, 0).unwrap_or_else(|| of.clone());
        self.limit(before);
        replaced
    }

    /// Whether the types are the same.
    pub(super) fn same(&mut self, one: &Type, other: &Type) -> bool {
        self.exact(one, other, 0)
    }

    /// The type, if it is neither too large nor too deep to become part of another.
    pub(super) fn bounded(&mut self, of: Type) -> Type {
        let before = self.stock;
        self.measure(&of, 0);
        self.limit(before);
        if self.exhausted { Type::Dyn } else { of }
    }

    /// Whether a type is small enough to be shown.
    pub(super) fn fits(&mut self, of: &Type) -> bool {
        self.measure(of, 0)
    }

    /// Takes note of a type that is too large, by what the stock was before all of it was seen.
    const fn limit(&mut self, before: u32) {
        if before - self.stock > LARGEST {
            self.exhausted = true;
        }
    }

    fn attempt(&mut self, attempt: impl FnOnce(&mut Self) -> bool) -> bool {
        let mark = self.trail.len();
        let success = attempt(self);
        if !success {
            for (which, before) in self.trail.drain(mark..).rev() {
                match which {
                    Unsettled::Variable(number) => self.variables[number as usize] = before,
                    Unsettled::Named(name) => {
                        self.named.retain(|(known, _)| *known != name);
                        self.named.extend(before.map(|before| (name, before)));
                    }
                }
            }
        }
        self.trail.clear();
        success
    }

    /// Draws on the stock; no if it is used up, or if the type is too deep.
    const fn step(&mut self, depth: u32) -> bool {
        if self.stock == 0 || depth > DEPTH {
            self.exhausted = true;
        } else {
            self.stock -= 1;
        }
        !self.exhausted
    }

    fn settled(&self, of: &Type) -> Option<&Type> {
        match of {
            Type::Var(number) => self.variables.get(*number as usize)?.as_ref(),
            Type::Param(name) => {
                self.named.iter().find(|(known, _)| known == name).map(|(_, settled)| settled)
            }
            _ => None,
        }
    }

    fn settle(&mut self, which: &Type, to: Type) {
        match which {
            Type::Var(number) => {
                if let Some(slot) = self.variables.get_mut(*number as usize) {
                    self.trail.push((Unsettled::Variable(*number), slot.replace(to)));
                }
            }
            Type::Param(name) => {
                let at = self.named.iter().position(|(known, _)| known == name);
                let before = at.map(|at| self.named.swap_remove(at).1);
                self.named.push((Arc::clone(name), to));
                self.trail.push((Unsettled::Named(Arc::clone(name)), before));
            }
            _ => {}
        }
    }

    fn unify(&mut self, one: &Type, other: &Type, depth: u32) -> bool {
        if !self.step(depth) {
            return true;
        }
        if other.is_unsettled() {
            match self.stands_for(one, other, depth) {
                (true, _) => return true,
                (false, true) => return false,
                (false, false) => {}
            }
        }
        if one.is_unsettled() {
            return self.stands_for(other, one, depth).0;
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
            // The rest has no parts.
            (one, other) => one == other,
        }
    }

    fn unify_all(&mut self, one: &[Type], others: &[Type], depth: u32) -> bool {
        one.len() == others.len()
            && one.iter().zip(others).all(|(one, other)| self.unify(one, other, depth))
    }

    /// Whether `unsettled` may stand for `other`, and whether it had been settled already.
    fn stands_for(&mut self, other: &Type, unsettled: &Type, depth: u32) -> (bool, bool) {
        if other == unsettled {
            return (true, true);
        }
        let Some(known) = self.settled(unsettled).cloned() else {
            if !self.absent(unsettled, other, depth) {
                return (false, false);
            }
            self.settle(unsettled, other.clone());
            return (true, false);
        };
        if self.exact(other, &known, depth) {
            return (true, true);
        }
        if !self.unify(other, &known, depth + 1) {
            return (false, true);
        }
        let general = self.most_general(other, &known).clone();
        if self.absent(unsettled, &general, depth) {
            self.settle(unsettled, general);
        }
        (true, true)
    }

    /// Whether the unsettled type does not occur in the other.
    fn absent(&mut self, unsettled: &Type, within: &Type, depth: u32) -> bool {
        if !self.step(depth) {
            return false;
        }
        if within.is_unsettled() {
            return unsettled != within
                && match self.settled(within).cloned() {
                    Some(settled) => self.absent(unsettled, &settled, depth + 1),
                    None => true,
                };
        }
        match within {
            Type::List(element) => self.absent(unsettled, element, depth + 1),
            Type::Map(entry) => {
                self.absent(unsettled, &entry.0, depth + 1)
                    && self.absent(unsettled, &entry.1, depth + 1)
            }
            Type::Type(Some(of)) => self.absent(unsettled, of, depth + 1),
            Type::Opaque(opaque) => {
                opaque.params.iter().all(|param| self.absent(unsettled, param, depth + 1))
            }
            _ => true,
        }
    }

    /// Whether one is the same as the other or says less.
    fn less_specific(&mut self, one: &Type, other: &Type, depth: u32) -> bool {
        if !self.step(depth) || one.is_dyn() || one.is_unsettled() {
            return true;
        }
        if other.is_dyn() || other.is_unsettled() {
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
        if !self.step(depth) {
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

    /// The type with what is settled put in; none if nothing changes.
    fn replace(&mut self, of: &Type, to_dyn: bool, depth: u32) -> Option<Type> {
        if !self.step(depth) {
            return Some(Type::Dyn);
        }
        match of {
            Type::Var(_) | Type::Param(_) => match self.settled(of).cloned() {
                Some(settled) => Some(self.replace(&settled, to_dyn, depth + 1).unwrap_or(settled)),
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

    /// Looks at all of a type.
    fn measure(&mut self, of: &Type, depth: u32) -> bool {
        self.step(depth)
            && match of {
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
    /// Whether it is a parameter or a variable.
    const fn is_unsettled(&self) -> bool {
        matches!(self, Self::Var(_) | Self::Param(_))
    }
}
