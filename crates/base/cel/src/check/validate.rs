//! Validation of literals after type checking: durations, timestamps, patterns, format texts, and
//! element types.
//!
//! Rules: cel-go's `cel/validator.go`.

use super::{CheckedExpression, ResolvedReference, format};
use crate::env::Env;
use crate::library::Implementation;
use crate::source::CompileIssue;
use crate::syntax::ast::{Expr, ExprKind};
use crate::types::Type;
use crate::value::{Value, WorkBudget};

/// The validation rules in cel-go's order, which orders errors at one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    List,
    Map,
    Duration,
    Timestamp,
    Pattern,
    Format,
}

/// The number of type differences that get a message; more than are displayed.
const MAX_MESSAGES: usize = 1000;

pub(super) struct Validator<'c> {
    env: &'c Env,
    pub(super) checked: &'c CheckedExpression,
    /// Errors with their rules.
    issues: Vec<(Rule, CompileIssue)>,
    /// Whether texts of `is_format` are validated.
    has_format: bool,
}

/// Validates the literals of an expression.
pub(super) fn validate(env: &Env, checked: &CheckedExpression) -> Vec<CompileIssue> {
    let has_format = env
        .function("format")
        .is_some_and(|overloads| overloads.iter().any(|overload| overload.id == "string_format"));
    let options = env.options();
    if !has_format && !options.homogeneous_literals && !options.literal_validators {
        return Vec::new();
    }
    let mut validator = Validator { env, checked, issues: Vec::new(), has_format };
    validator.visit(&checked.root, false);
    validator.issues.sort_by_key(|(rule, _)| *rule);
    validator.issues.into_iter().map(|(_, issue)| issue).collect()
}

impl<'c> Validator<'c> {
    pub(super) fn issue(&mut self, rule: Rule, at: u32, message: impl Into<String>) {
        let at = Some(self.checked.source.location(at));
        self.issues.push((rule, CompileIssue { at, message: message.into() }));
    }

    /// Validates a node and its children; `exempt` inside of calls of `is_format`.
    fn visit(&mut self, node: &'c Expr, exempt: bool) {
        let homogeneous = self.env.options().homogeneous_literals && !exempt;
        match &node.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select { operand, .. } => self.visit(operand, exempt),
            ExprKind::Call { function, target, args } => {
                let rule = match &**function {
                    "duration" => Some(Rule::Duration),
                    "timestamp" => Some(Rule::Timestamp),
                    "matches" => Some(Rule::Pattern),
                    _ => None,
                };
                if self.env.options().literal_validators
                    && let (Some(rule), Some(first)) = (rule, args.first())
                    && !self.is_valid(node, rule, first)
                {
                    self.issue(rule, first.at, format!("invalid {function} argument"));
                }
                let is_format = &**function == "format" && self.has_format;
                if is_format
                    && self.env.options().literal_validators
                    && let (Some(target), [list]) = (target, args.as_slice())
                {
                    format::validate(self, node, target, list);
                }
                for part in target.iter().map(|target| &**target).chain(args) {
                    self.visit(part, exempt || is_format);
                }
            }
            ExprKind::List { elements, optional } => {
                for element in elements {
                    self.visit(element, exempt);
                }
                if homogeneous {
                    self.check_list(elements, optional);
                }
            }
            ExprKind::Map(entries) => {
                for entry in entries {
                    self.visit(&entry.key, exempt);
                    self.visit(&entry.value, exempt);
                }
                if homogeneous && let Some((first, rest)) = entries.split_first() {
                    let key = self.type_of(&first.key, false);
                    let value = self.type_of(&first.value, first.optional);
                    for entry in rest {
                        self.expect(Rule::Map, &entry.key, key, false);
                        self.expect(Rule::Map, &entry.value, value, entry.optional);
                    }
                }
            }
            ExprKind::Struct { fields, .. } => {
                for field in fields {
                    self.visit(&field.value, exempt);
                }
            }
            ExprKind::Comprehension(comprehension) => {
                self.visit(&comprehension.range, exempt);
                self.visit(&comprehension.accu_init, exempt);
                self.visit(&comprehension.condition, exempt);
                self.visit(&comprehension.step, exempt);
                self.visit(&comprehension.result, exempt);
            }
        }
    }

    /// Reports only the first element of another type.
    fn check_list(&mut self, elements: &'c [Expr], optional: &[u32]) {
        let is_optional = |index| optional.binary_search(&index).is_ok();
        let mut elements = (0..).zip(elements);
        let Some((index, first)) = elements.next() else { return };
        let expected = self.type_of(first, is_optional(index));
        for (index, element) in elements {
            if !self.expect(Rule::List, element, expected, is_optional(index)) {
                return;
            }
        }
    }

    fn expect(&mut self, rule: Rule, node: &'c Expr, expected: &'c Type, optional: bool) -> bool {
        let found = self.type_of(node, optional);
        let same = expected == found;
        if !same {
            // Errors beyond the limit are not displayed, so they need no text.
            let message = if self.issues.len() < MAX_MESSAGES {
                format!("expected type '{expected}' but found '{found}'")
            } else {
                String::new()
            };
            self.issue(rule, node.at, message);
        }
        same
    }

    /// The type of a node, or of its value if it is an optional.
    fn type_of(&self, node: &Expr, optional: bool) -> &'c Type {
        let found = self.checked.type_of(node.id);
        if optional { found.optional_inner().unwrap_or(found) } else { found }
    }

    /// Whether a call accepts the literal that is its first argument. For `matches` that is not
    /// always the pattern, as in cel-go.
    fn is_valid(&self, call: &Expr, rule: Rule, first: &Expr) -> bool {
        let ExprKind::Literal(literal) = &first.kind else { return true };
        let (value, work) = (Value::from_literal(literal), WorkBudget::unlimited());
        let Some(ResolvedReference::Overloads(overloads)) = self.checked.reference(call.id) else {
            return true;
        };
        overloads.iter().all(|overload| match (rule, overload.run, overload.prepare) {
            (Rule::Pattern, _, Some(prepare)) => prepare(&value, &work).is_ok(),
            (Rule::Duration | Rule::Timestamp, Implementation::Strict(run), _) => {
                run(std::slice::from_ref(&value), &work).is_ok()
            }
            _ => true,
        })
    }
}
