//! Rules that are expressions: `x-kubernetes-validations`.
//!
//! ```text
//! schema ─ shape ─► Shape ─ compile ─► Compiled ─ evaluate, with an object and what it was ─► Verdict
//! ```
//!
//! A schema is compiled when the first object is held against it, as a tree that has only the parts
//! with rules in them; objects are walked along that tree and looked at where they lie. What a
//! definition is told of its rules when it is written is the definition's business
//! ([`crate::crd`]), with the same pieces.

mod compile;
mod evaluate;
mod shape;

pub use compile::Compiled;
pub(super) use compile::Node;
pub use evaluate::Verdict;
pub(crate) use shape::shape;

use mainstay_object::{FieldErrorKind, PrintedKind};
use serde_json::Value;

/// One rule of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// What must hold.
    pub(crate) rule: Box<str>,
    /// What is said if it does not; may be empty.
    message: Box<str>,
    /// An expression that says it; may be empty.
    pub(crate) words: Box<str>,
    reason: Reason,
    /// The path of the field that is to blame, below this one, as errors print it; may be empty.
    field_path: Box<str>,
    /// Whether the rule also holds where nothing stood before.
    pub(crate) optional_old: bool,
}

/// What kind of error a broken rule is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Invalid,
    Forbidden,
    Required,
    Duplicate,
}

impl Expression {
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
            words: text("messageExpression").into(),
            reason: match text("reason") {
                "FieldValueForbidden" => Reason::Forbidden,
                "FieldValueRequired" => Reason::Required,
                "FieldValueDuplicate" => Reason::Duplicate,
                _ => Reason::Invalid,
            },
            field_path: path.map(|found| found.0).unwrap_or_default().into(),
            optional_old: rule.get("optionalOldSelf") == Some(&Value::Bool(true)),
        }
    }

    /// What errors call the rule: its message, or else itself.
    fn name(&self) -> &str {
        if self.message.is_empty() { self.rule.trim() } else { self.message.trim() }
    }

    /// What is said of a value that breaks the rule, unless an expression says it.
    fn complaint(&self) -> String {
        if self.message.is_empty() {
            format!("failed rule: {}", self.name())
        } else {
            self.name().to_owned()
        }
    }

    /// The error of a value that breaks the rule, and its words; of objects and lists the value is
    /// not shown.
    fn error(&self, shown: Option<&Value>, words: String) -> (FieldErrorKind, String) {
        let kind = match (self.reason, shown) {
            (Reason::Forbidden, _) => FieldErrorKind::Forbidden,
            (Reason::Required, _) => FieldErrorKind::Required,
            (Reason::Invalid, Some(value)) => FieldErrorKind::Invalid(value.clone()),
            (Reason::Invalid, None) => FieldErrorKind::Printed(PrintedKind::Invalid, None),
            // What is there twice needs no words.
            (Reason::Duplicate, Some(value)) => {
                return (FieldErrorKind::Duplicate(value.clone()), String::new());
            }
            (Reason::Duplicate, None) => {
                return (FieldErrorKind::Printed(PrintedKind::Duplicate, None), String::new());
            }
        };
        (kind, words)
    }
}
