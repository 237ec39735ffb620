//! CEL validation rules: `x-kubernetes-validations`.
//!
//! ```text
//! schema ─ shape ─► Shape ─ compile ─► CompiledRules ─ evaluate(object, old) ─► RuleEvaluation
//! ```
//!
//! A schema is compiled at the first evaluation, as a tree of the parts with rules. An evaluation
//! traverses an object along that tree without copying it.
//!
//! The errors of rules in a new CRD are in [`crate::crd`], which uses the same functions.

mod compile;
mod evaluate;
mod shape;

pub use compile::CompiledRules;
pub(super) use compile::Node;
pub use evaluate::RuleEvaluation;
pub(crate) use shape::shape;

use mainstay_object::{FieldErrorKind, PrintedKind};
use serde_json::Value;

/// One rule of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidationRule {
    /// The CEL expression.
    pub(crate) rule: Box<str>,
    /// The message of a violation; may be empty.
    message: Box<str>,
    /// A CEL expression for the message; may be empty.
    pub(crate) message_expression: Box<str>,
    reason: ViolationReason,
    /// `fieldPath`: the path of the reported field below this one, as errors print it; may be empty.
    field_path: Box<str>,
    /// Whether the rule is also evaluated without an old value.
    pub(crate) optional_old: bool,
}

/// The kind of error for a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ViolationReason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

impl ValidationRule {
    /// The rules of a schema.
    pub(super) fn read_all(schema: &Value) -> Vec<Self> {
        let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
        rules.into_iter().flatten().map(|rule| Self::read(rule, schema)).collect()
    }

    fn read(rule: &Value, schema: &Value) -> Self {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).unwrap_or_default();
        let path = crate::paths::resolve(text("fieldPath"), schema, true);
        Self {
            rule: text("rule").into(),
            message: text("message").into(),
            message_expression: text("messageExpression").into(),
            reason: match text("reason") {
                "FieldValueForbidden" => ViolationReason::Forbidden,
                "FieldValueRequired" => ViolationReason::Required,
                "FieldValueDuplicate" => ViolationReason::Duplicate,
                _ => ViolationReason::Invalid,
            },
            field_path: path.map(|found| found.0).unwrap_or_default().into(),
            optional_old: rule.get("optionalOldSelf") == Some(&Value::Bool(true)),
        }
    }

    /// The rule's name in errors: its message, or else its text.
    fn name(&self) -> &str {
        if self.message.is_empty() { self.rule.trim() } else { self.message.trim() }
    }

    /// The message of a violation without a message expression.
    fn default_message(&self) -> String {
        if self.message.is_empty() {
            format!("failed rule: {}", self.name())
        } else {
            self.name().to_owned()
        }
    }

    /// The error of a violation, and its message. `scalar` is the value, none for objects and lists.
    fn error(&self, scalar: Option<&Value>, message: String) -> (FieldErrorKind, String) {
        let kind = match (self.reason, scalar) {
            (ViolationReason::Forbidden, _) => FieldErrorKind::Forbidden,
            (ViolationReason::Required, _) => FieldErrorKind::Required,
            (ViolationReason::Invalid, Some(value)) => FieldErrorKind::Invalid(value.clone()),
            (ViolationReason::Invalid, None) => FieldErrorKind::Printed(PrintedKind::Invalid, None),
            // Upstream's error for duplicates has no message.
            (ViolationReason::Duplicate, Some(value)) => {
                return (FieldErrorKind::Duplicate(value.clone()), String::new());
            }
            (ViolationReason::Duplicate, None) => {
                return (FieldErrorKind::Printed(PrintedKind::Duplicate, None), String::new());
            }
        };
        (kind, message)
    }
}
