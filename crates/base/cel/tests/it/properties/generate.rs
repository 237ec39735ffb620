//! Generator for expressions of a given type from all declared functions.

use super::literals;
use super::random::Random;
use mainstay_cel::library::Overload;
use mainstay_cel::syntax::ast::operator;
use mainstay_cel::types::Type;
use std::collections::HashMap;

pub(crate) struct Generator<'a> {
    pub(crate) random: Random,
    functions: &'a [Overload],
    variables: Vec<(String, Type)>,
}

type Bindings = HashMap<String, Type>;

impl<'a> Generator<'a> {
    pub(crate) fn new(seed: u64, functions: &'a [Overload], variables: &[(&str, Type)]) -> Self {
        let variables =
            variables.iter().map(|(name, cel_type)| ((*name).to_owned(), cel_type.clone()));
        Self { random: Random(seed), functions, variables: variables.collect() }
    }

    /// A random type of values.
    pub(crate) fn any_type(&mut self, depth: usize) -> Type {
        match self.random.below(if depth > 0 { 20 } else { 14 }) {
            0 | 1 => Type::Int,
            2 => Type::Uint,
            3 => Type::Double,
            4..=6 => Type::String,
            7 | 8 => Type::Bool,
            9 => Type::Bytes,
            10 => Type::Timestamp,
            11 => Type::Duration,
            12 => Type::Null,
            13 => {
                let names = ["net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"];
                Type::opaque(self.random.pick(&names), Vec::new())
            }
            14..=16 => Type::list(self.any_type(depth - 1)),
            17 | 18 => Type::map(self.key_type(), self.any_type(depth - 1)),
            _ => Type::optional(self.any_type(depth - 1)),
        }
    }

    fn key_type(&mut self) -> Type {
        match self.random.below(4) {
            0 => Type::Int,
            1 => Type::Bool,
            _ => Type::String,
        }
    }

    /// An expression of a type, with a maximum depth.
    pub(crate) fn expression(&mut self, cel_type: &Type, depth: usize) -> String {
        if depth == 0 || self.random.percent(12) {
            return self.leaf(cel_type);
        }
        let choice = self.random.below(100);
        if choice < 25
            && let Some(expression) = self.literal(cel_type, depth - 1)
        {
            return expression;
        }
        if choice < 45
            && let Some(expression) = self.macro_call(cel_type, depth - 1)
        {
            return expression;
        }
        self.call(cel_type, depth - 1).unwrap_or_else(|| self.leaf(cel_type))
    }

    fn leaf(&mut self, cel_type: &Type) -> String {
        let known: Vec<&str> =
            self.variables.iter().filter(|(_, t)| t == cel_type).map(|(name, _)| &**name).collect();
        if !known.is_empty() && self.random.percent(60) {
            return self.random.pick(&known).to_owned();
        }
        literals::leaf(&mut self.random, cel_type)
    }

    /// A list or map literal.
    fn literal(&mut self, cel_type: &Type, depth: usize) -> Option<String> {
        let length = self.random.below(4);
        match cel_type {
            Type::List(element) => {
                let elements: Vec<_> = (0..length)
                    .map(|_| {
                        if self.random.percent(8) {
                            let cel_type = Type::optional((**element).clone());
                            return format!("?{}", self.operand(&cel_type, depth));
                        }
                        self.expression(element, depth)
                    })
                    .collect();
                Some(format!("[{}]", elements.join(", ")))
            }
            Type::Map(entry) => {
                let entries: Vec<_> = (0..length)
                    .map(|_| {
                        let key = self.operand(&entry.0, depth.saturating_sub(1));
                        format!("{key}: {}", self.expression(&entry.1, depth))
                    })
                    .collect();
                Some(format!("{{{}}}", entries.join(", ")))
            }
            _ => None,
        }
    }

    /// An expression that may use additional variables.
    fn within(&mut self, names: &[(&str, &Type)], cel_type: &Type, depth: usize) -> String {
        let before = self.variables.len();
        self.variables
            .extend(names.iter().map(|(name, cel_type)| ((*name).to_owned(), (*cel_type).clone())));
        let expression = self.expression(cel_type, depth);
        self.variables.truncate(before);
        expression
    }

    fn macro_call(&mut self, cel_type: &Type, depth: usize) -> Option<String> {
        let element = self.any_type(1);
        let name = format!("v{}", self.variables.len());
        let second = format!("w{}", self.variables.len());
        let (name, second) = (name.as_str(), second.as_str());
        let list = Type::list(element.clone());
        Some(match cel_type {
            Type::Bool => {
                let which = self.random.pick(&["all", "exists", "exists_one"]);
                if self.random.percent(30) {
                    let which = if which == "exists_one" { "existsOne" } else { which };
                    let key = self.key_type();
                    let range = self.operand(&Type::map(key.clone(), element.clone()), depth);
                    let names = [(name, &key), (second, &element)];
                    let body = self.within(&names, &Type::Bool, depth);
                    return Some(format!("{range}.{which}({name}, {second}, {body})"));
                }
                let range = self.operand(&list, depth);
                let body = self.within(&[(name, &element)], &Type::Bool, depth);
                format!("{range}.{which}({name}, {body})")
            }
            Type::List(expected) if self.random.percent(40) => {
                let range = self.operand(cel_type, depth);
                let body = self.within(&[(name, expected)], &Type::Bool, depth);
                format!("{range}.filter({name}, {body})")
            }
            Type::List(expected) if self.random.percent(30) => {
                let range = self.operand(&list, depth);
                let body = self.within(&[(name, &Type::Int), (second, &element)], expected, depth);
                format!("{range}.transformList({name}, {second}, {body})")
            }
            Type::List(expected) => {
                let range = self.operand(&list, depth);
                let body = self.within(&[(name, &element)], expected, depth);
                format!("{range}.map({name}, {body})")
            }
            Type::Map(entry) => {
                let range = self.operand(&Type::map(entry.0.clone(), element.clone()), depth);
                let names = [(name, &entry.0), (second, &element)];
                let body = self.within(&names, &entry.1, depth);
                format!("{range}.transformMap({name}, {second}, {body})")
            }
            _ if cel_type.optional_inner().is_some() => {
                let range = self.operand(&Type::optional(element.clone()), depth);
                let body = self.within(&[(name, &element)], cel_type.optional_inner()?, depth);
                format!("{range}.optMap({name}, {body})")
            }
            _ => return None,
        })
    }

    /// A call of a random function with this result type.
    fn call(&mut self, cel_type: &Type, depth: usize) -> Option<String> {
        let functions = self.functions;
        let mut candidates = Vec::new();
        for overload in functions {
            let mut bound = Bindings::new();
            if unify(&overload.result, cel_type, &mut bound) {
                candidates.push((overload, bound));
            }
        }
        // Generic functions (indexing, conditions) are far fewer than those of some types.
        let special: Vec<_> = (0..candidates.len())
            .filter(|at| !matches!(candidates[*at].0.result, Type::Param(_)))
            .collect();
        let at = if !special.is_empty() && self.random.percent(75) {
            special[self.random.below(special.len())]
        } else if candidates.is_empty() {
            return None;
        } else {
            self.random.below(candidates.len())
        };
        let (overload, mut bound) = candidates.swap_remove(at);
        let params: Vec<Type> =
            overload.params.iter().map(|param| self.substitute(param, &mut bound)).collect();
        let args: Vec<String> = params
            .iter()
            .enumerate()
            .map(|(at, cel_type)| {
                if let Some(text) = literals::argument(&mut self.random, overload.id, at) {
                    return text;
                }
                self.operand(cel_type, depth)
            })
            .collect();
        call_text(overload, &args)
    }

    /// Replaces type parameters in a type. Unbound ones become random types.
    fn substitute(&mut self, cel_type: &Type, bound: &mut Bindings) -> Type {
        match cel_type {
            Type::Param(name) => {
                if let Some(known) = bound.get(&**name) {
                    return known.clone();
                }
                let chosen = if &**name == "K" { self.key_type() } else { self.any_type(1) };
                bound.insert(name.to_string(), chosen.clone());
                chosen
            }
            Type::List(element) => Type::list(self.substitute(element, bound)),
            Type::Map(entry) => {
                let key = match &entry.0 {
                    Type::Param(name) if !bound.contains_key(&**name) => {
                        let key = self.key_type();
                        bound.insert(name.to_string(), key.clone());
                        key
                    }
                    other => self.substitute(other, bound),
                };
                Type::map(key, self.substitute(&entry.1, bound))
            }
            Type::Opaque(opaque) => {
                let params =
                    opaque.params.iter().map(|param| self.substitute(param, bound)).collect();
                Type::opaque(&opaque.name, params)
            }
            other => other.clone(),
        }
    }

    /// An expression in parentheses if an operator needs them.
    fn operand(&mut self, cel_type: &Type, depth: usize) -> String {
        let expression = self.expression(cel_type, depth);
        let is_word = expression.chars().all(|c| c.is_ascii_alphabetic());
        if is_word { expression } else { format!("({expression})") }
    }
}

/// Binds the type parameters of a declared type so that it equals the expected type.
fn unify(declared: &Type, expected: &Type, bound: &mut Bindings) -> bool {
    match (declared, expected) {
        (Type::Param(name), _) => match bound.get(&**name) {
            Some(known) => known == expected,
            None => bound.insert(name.to_string(), expected.clone()).is_none(),
        },
        (Type::List(one), Type::List(other)) => unify(one, other, bound),
        (Type::Map(one), Type::Map(other)) => {
            unify(&one.0, &other.0, bound) && unify(&one.1, &other.1, bound)
        }
        (Type::Opaque(one), Type::Opaque(other)) => {
            one.name == other.name
                && one.params.len() == other.params.len()
                && one.params.iter().zip(&other.params).all(|(a, b)| unify(a, b, bound))
        }
        _ => declared == expected,
    }
}

/// The text of a call, if the function can be called in expressions.
fn call_text(overload: &Overload, args: &[String]) -> Option<String> {
    let name = overload.function;
    Some(match (name, args) {
        (operator::CONDITIONAL, [a, b, c]) => format!("{a} ? {b} : {c}"),
        (operator::INDEX, [a, b]) => format!("{a}[{b}]"),
        (operator::OPT_INDEX, [a, b]) => format!("{a}[?{b}]"),
        (operator::IN, [a, b]) => format!("{a} in {b}"),
        (operator::NOT, [a]) => format!("!{a}"),
        (operator::NEGATE, [a]) => format!("-{a}"),
        (operator::OPT_SELECT, _) => return None,
        (_, [a, b]) if name.starts_with('_') => format!("{a} {} {b}", name.trim_matches('_')),
        _ if name.contains('@') || name.starts_with('_') => return None,
        (_, [target, rest @ ..]) if overload.receiver => {
            format!("{target}.{name}({})", rest.join(", "))
        }
        _ => format!("{name}({})", args.join(", ")),
    })
}
