//! Evaluation of CEL rules for an object.
//!
//! The object and its old version are traversed together: fields correlate by name, elements of list
//! maps by key. A rule with `oldSelf` is evaluated only where an old value exists. A violation in an
//! unchanged part is only a warning (validation ratcheting).
//!
//! All evaluations for one object share a cost budget; evaluation stops when it is exhausted. The size
//! of all errors is limited too, because a rule of many elements may have a long message.

use super::super::Schema;
use super::super::correlation::{MapElements, OldValue, fields_equal};
use super::ValidationRule;
use super::compile::{CompiledRule, CompiledRules, Node};
use crate::trail::{Step, Trail};
use mainstay_cel::eval::{CostBudget, Program};
use mainstay_cel::kubernetes::rules::{OLD_SELF, SELF};
use mainstay_cel::kubernetes::{ValueShape, limits};
use mainstay_cel::value::{ObjectValue, Value as Val, ValueResult, WorkBudget};
use mainstay_object::{FieldError, FieldErrorKind};
use serde_json::{Map, Value};
use std::cell::OnceCell;
use std::sync::Arc;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The most bytes of errors; evaluation stops beyond it.
const MAX_ERROR_BYTES: usize = 4 << 20;

/// The result of the rules for an object.
#[derive(Debug, Default)]
pub struct RuleEvaluation {
    /// Violations.
    pub errors: Vec<FieldError>,
    /// Violations of unchanged parts.
    pub warnings: Vec<String>,
    /// The CEL cost of all evaluations.
    pub cost: u64,
}

impl CompiledRules {
    /// Evaluates the rules for a whole object that is new, or that replaces `old`. `schema` is the
    /// schema of the compiled rules.
    pub fn evaluate(
        &self,
        schema: &Schema,
        object: &Map<String, Value>,
        old: Option<&Map<String, Value>>,
    ) -> RuleEvaluation {
        let mut walk = Walk::new(limits::COST_PER_OBJECT);
        let new = Part::Whole(object);
        let old = old.map(Part::Whole);
        let pair = old.map(|old| Pair::new(schema, new, old));
        let correlation = Correlation { here: pair.as_ref(), above: None };
        walk.part(&self.root, schema, new, old, correlation, &Trail::default());
        RuleEvaluation { cost: limits::COST_PER_OBJECT - walk.remaining, ..walk.result }
    }
}

impl Node {
    /// Evaluates the rules for a default at `path`, both as an unchanged and as a new value, and charges
    /// the cost to a budget. Returns false if the budget is exhausted.
    pub(in crate::structural) fn evaluate_default(
        &self,
        schema: &Schema,
        value: &Value,
        path: &Trail<'_>,
        budget: &mut u64,
        found: &mut Vec<FieldError>,
    ) -> bool {
        let mut remaining = *budget;
        for old in [Some(Part::Value(value)), None] {
            let mut walk = Walk::new(*budget);
            let correlation = Correlation { here: None, above: None };
            walk.part(self, schema, Part::Value(value), old, correlation, path);
            let is_valid = walk.result.errors.is_empty();
            found.append(&mut walk.result.errors);
            remaining = remaining.min(walk.remaining);
            if walk.stopped {
                *budget = 0;
                return false;
            }
            if !is_valid {
                break;
            }
        }
        *budget = remaining;
        true
    }
}

/// A traversed value: a whole object, of which only the fields are at hand, or another value.
#[derive(Clone, Copy, Debug)]
enum Part<'a> {
    Whole(&'a Map<String, Value>),
    Value(&'a Value),
}

impl<'a> Part<'a> {
    fn fields(self) -> Option<&'a Map<String, Value>> {
        match self {
            Self::Whole(fields) => Some(fields),
            Self::Value(value) => value.as_object(),
        }
    }

    fn items(self) -> Option<&'a [Value]> {
        match self {
            Self::Whole(_) => None,
            Self::Value(value) => value.as_array().map(Vec::as_slice),
        }
    }

    /// The CEL value.
    fn cel_value(self, shape: &'a ValueShape) -> ValueResult<'a> {
        match self {
            Self::Value(value) => shape.view(value, &WorkBudget::unlimited()),
            Self::Whole(fields) => Ok(Val::Object(ObjectValue::Json { fields, shape })),
        }
    }
}

/// A value and its old value, and whether they are equal (computed at the first use).
#[derive(Debug)]
struct Pair<'a> {
    schema: &'a Schema,
    new: Part<'a>,
    old: Part<'a>,
    same: OnceCell<bool>,
}

impl<'a> Pair<'a> {
    const fn new(schema: &'a Schema, new: Part<'a>, old: Part<'a>) -> Self {
        Self { schema, new, old, same: OnceCell::new() }
    }

    fn is_unchanged(&self) -> bool {
        *self.same.get_or_init(|| match (self.new, self.old) {
            (Part::Value(new), Part::Value(value)) => {
                OldValue { schema: self.schema, value }.equals(new)
            }
            (new, old) => match (new.fields(), old.fields()) {
                (Some(new), Some(old)) => fields_equal(self.schema, new, old),
                _ => false,
            },
        })
    }

    /// The pair of a field.
    fn field(&self, name: &str) -> Option<Self> {
        let old = self.old.fields()?.get(name)?;
        let new = self.new.fields()?.get(name)?;
        Some(Self::new(self.schema.field(name)?, Part::Value(new), Part::Value(old)))
    }

    /// The pair of an element that correlates with `old`.
    fn element(&self, new: &'a Value, old: &'a Value) -> Option<Self> {
        let schema = self.schema.items.as_deref()?;
        Some(Self::new(schema, Part::Value(new), Part::Value(old)))
    }
}

/// The correlation of the current value, or else of the nearest value above that correlates.
#[derive(Clone, Copy)]
struct Correlation<'p, 'a> {
    here: Option<&'p Pair<'a>>,
    above: Option<&'p Pair<'a>>,
}

impl<'p, 'a> Correlation<'p, 'a> {
    fn is_unchanged(self) -> bool {
        self.here.or(self.above).is_some_and(Pair::is_unchanged)
    }

    /// The correlation of a part of this value.
    fn below(self, pair: Option<&'p Pair<'a>>) -> Self {
        match self.here {
            None => self,
            Some(here) => Self { here: pair, above: Some(here) },
        }
    }

    /// The correlation of a field. `apiVersion` and `kind` of the object never correlate, because
    /// conversion changes them.
    fn field(self, name: &str, pair: Option<&'p Pair<'a>>) -> Self {
        if self.here.is_some() && self.above.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self { here: None, above: None };
        }
        self.below(pair)
    }
}

struct Walk {
    result: RuleEvaluation,
    /// The remaining cost budget.
    remaining: u64,
    /// The budget of one evaluation.
    budget: CostBudget<'static>,
    /// Bytes of errors and warnings.
    size: usize,
    /// Whether evaluation stops.
    stopped: bool,
}

/// The variables of the rules of one value.
struct Variables<'a> {
    this: ValueResult<'a>,
    /// The old value, if any rule uses it.
    old: Option<ValueResult<'a>>,
}

impl<'a> Variables<'a> {
    fn eval(
        &self,
        program: &'a Program,
        optional: bool,
        budget: &mut CostBudget<'_>,
    ) -> ValueResult<'a> {
        let this = (SELF, self.this.clone()?);
        let old = self.old.clone().transpose()?;
        match (old, optional) {
            (old, true) => {
                let old = Val::Optional(old.map(Arc::new));
                program.eval(&[this, (OLD_SELF, old)], budget)
            }
            (Some(old), false) => program.eval(&[this, (OLD_SELF, old)], budget),
            (None, false) => program.eval(&[this], budget),
        }
    }
}

impl Walk {
    fn new(budget: u64) -> Self {
        Self {
            result: RuleEvaluation::default(),
            remaining: budget,
            budget: CostBudget::new(limits::COST_PER_CALL),
            size: 0,
            stopped: false,
        }
    }

    fn part<'a>(
        &mut self,
        node: &'a Node,
        schema: &'a Schema,
        new: Part<'a>,
        old: Option<Part<'a>>,
        correlation: Correlation<'_, 'a>,
        trail: &Trail<'_>,
    ) {
        // Rules of a nullable value see a null only from the value above.
        if matches!(new, Part::Value(Value::Null)) {
            return;
        }
        let old = old.filter(|old| !matches!(old, Part::Value(Value::Null)));
        self.rules(node, schema, new, old, correlation, trail);
        if self.stopped {
            return;
        }
        if let Some(items) = new.items() {
            self.items(node, schema, items, old.and_then(Part::items), correlation, trail);
        } else if let Some(fields) = new.fields() {
            self.fields(node, schema, fields, old.and_then(Part::fields), correlation, trail);
        }
    }

    fn fields<'a>(
        &mut self,
        node: &'a Node,
        schema: &'a Schema,
        fields: &'a Map<String, Value>,
        olds: Option<&'a Map<String, Value>>,
        correlation: Correlation<'_, 'a>,
        trail: &Trail<'_>,
    ) {
        let mut visit = |name: &'a str, new, node, schema, step| {
            let old = olds.and_then(|olds| olds.get(name)).map(Part::Value);
            let pair = correlation.here.and_then(|here| here.field(name));
            let correlation = correlation.field(name, pair.as_ref());
            self.part(node, schema, Part::Value(new), old, correlation, &trail.then(step));
            !self.stopped
        };
        if let (Some(node), Some(schema)) = (&node.additional, schema.additional()) {
            for (name, new) in fields {
                if !visit(name, new, node, schema, Step::Key(name)) {
                    return;
                }
            }
        }
        for (at, node) in &node.properties {
            let Some((name, schema)) = schema.properties.get(*at) else { continue };
            let Some(new) = fields.get(&**name) else { continue };
            if !visit(name, new, node, schema, Step::Field(name)) {
                return;
            }
        }
    }

    fn items<'a>(
        &mut self,
        node: &'a Node,
        schema: &'a Schema,
        items: &'a [Value],
        olds: Option<&'a [Value]>,
        correlation: Correlation<'_, 'a>,
        trail: &Trail<'_>,
    ) {
        let (Some(below), Some(inner)) = (&node.items, &schema.items) else { return };
        let olds = olds.and_then(|olds| MapElements::new(schema, olds));
        for (at, new) in items.iter().enumerate() {
            let old = olds.as_ref().and_then(|olds| olds.get(new));
            let pair = correlation.here.and_then(|here| here.element(new, old?));
            let correlation = correlation.below(pair.as_ref());
            let trail = trail.then(Step::Index(at));
            self.part(below, inner, Part::Value(new), old.map(Part::Value), correlation, &trail);
            if self.stopped {
                return;
            }
        }
    }

    fn rules<'a>(
        &mut self,
        node: &'a Node,
        schema: &'a Schema,
        new: Part<'a>,
        old: Option<Part<'a>>,
        correlation: Correlation<'_, 'a>,
        trail: &Trail<'_>,
    ) {
        if node.is_untyped {
            let why = "rule compiler initialization error: failed to convert to declType for CEL validation rules";
            return self.rule_error(schema, trail, why.to_owned());
        }
        if node.rules.is_empty() {
            return;
        }
        if self.remaining == 0 {
            return self.stop(schema, trail, OUT_OF_BUDGET);
        }
        let variables = Variables {
            this: new.cel_value(&node.shape),
            old: old.filter(|_| node.uses_old).map(|old| old.cel_value(&node.shape)),
        };
        for (rule, expression) in node.rules.iter().zip(schema.expressions()) {
            let optional = expression.optional_old
                && !mainstay_fault::is_on("optional-old-values-are-waited-for");
            if rule.uses_old && old.is_none() && !optional {
                continue;
            }
            // An empty rule is an error of the CRD, not of the object.
            if expression.rule.trim().is_empty() {
                continue;
            }
            let Some(violation) = self.evaluate_rule(&variables, rule, expression, schema, trail)
            else {
                if self.stopped {
                    return;
                }
                continue;
            };
            // Errors contain scalars only.
            let scalar = match new {
                Part::Value(value) if !schema.is_compound() => Some(value),
                _ => None,
            };
            let (kind, detail) = match violation {
                Violation::Message(detail) => expression.error(scalar, detail),
                Violation::MessageError(detail) => (type_error_kind(schema), detail),
            };
            let field = trail.child(&expression.field_path);
            let has_field_path = rule.uses_field_path
                && !expression.field_path.is_empty()
                && !mainstay_fault::is_on("no-other-field-is-blamed");
            let path = if has_field_path { &field } else { trail };
            let error = error_at(path, kind, detail);
            let is_ratcheted = !rule.uses_old && correlation.is_unchanged();
            if is_ratcheted && !mainstay_fault::is_on("kept-faults-are-refused") {
                self.count_bytes(error.detail.len());
                self.result.warnings.push(error.to_string());
            } else {
                self.error(error);
            }
            if self.stopped {
                return;
            }
        }
    }

    /// Evaluates one rule; returns the violation, if any.
    fn evaluate_rule<'a>(
        &mut self,
        variables: &Variables<'a>,
        rule: &'a CompiledRule,
        expression: &ValidationRule,
        schema: &Schema,
        trail: &Trail<'_>,
    ) -> Option<Violation> {
        let program = match &rule.program {
            Ok(program) => program,
            Err(why) => {
                self.rule_error(schema, trail, format!("rule compile error: {why}"));
                return None;
            }
        };
        self.budget.renew(limits::COST_PER_CALL);
        let outcome = variables.eval(program, expression.optional_old, &mut self.budget);
        if self.budget.spent() > self.remaining {
            self.stop(schema, trail, OUT_OF_BUDGET);
            return None;
        }
        self.remaining -= self.budget.spent();
        match outcome {
            Ok(Val::Bool(true)) => None,
            Ok(_) => Some(self.violation(variables, rule, expression)),
            Err(error) => {
                let (error, name) = (error.to_string(), expression.name());
                if error.starts_with("no such overload") {
                    self.rule_error(schema, trail, format!("'{error}': call arguments did not match a supported operator, function or macro signature for rule: {name}"));
                } else if error.starts_with("operation cancelled: actual cost limit exceeded") {
                    self.stop(schema, trail, &format!("'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {name}"));
                } else {
                    self.rule_error(schema, trail, format!("{error} evaluating rule: {name}"));
                }
                None
            }
        }
    }

    /// The violation of a rule, with the message of its message expression or else its default one.
    fn violation<'a>(
        &mut self,
        variables: &Variables<'a>,
        rule: &'a CompiledRule,
        expression: &ValidationRule,
    ) -> Violation {
        let program = rule.message.as_ref();
        let program = program.filter(|_| !mainstay_fault::is_on("messages-are-not-evaluated"));
        let Some(program) = program else {
            return Violation::Message(expression.default_message());
        };
        self.budget.renew(limits::COST_PER_CALL);
        let outcome = variables.eval(program, false, &mut self.budget);
        if self.budget.spent() > self.remaining {
            self.stopped = true;
            return Violation::MessageError("messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run".to_owned());
        }
        if let Err(error) = &outcome
            && error.to_string().starts_with("operation cancelled: actual cost limit exceeded")
        {
            self.stopped = true;
            let source = mainstay_gocompat::quote(&expression.message_expression);
            return Violation::MessageError(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {source}"
            ));
        }
        self.remaining -= self.budget.spent();
        let message = match &outcome {
            Ok(Val::String(text)) => Some(text.as_str().trim()),
            _ => None,
        };
        let is_valid = |text: &&str| {
            !text.is_empty() && text.len() <= limits::MESSAGE_BYTES && !text.contains('\n')
        };
        match message.filter(is_valid) {
            Some(message) => Violation::Message(message.to_owned()),
            None => Violation::Message(expression.default_message()),
        }
    }

    /// Adds an error of a rule itself.
    fn rule_error(&mut self, schema: &Schema, trail: &Trail<'_>, detail: String) {
        self.error(error_at(trail, type_error_kind(schema), detail));
    }

    fn error(&mut self, error: FieldError) {
        self.count_bytes(error.detail.len());
        self.result.errors.push(error);
    }

    fn count_bytes(&mut self, size: usize) {
        self.size = self.size.saturating_add(size + size_of::<FieldError>());
        self.stopped |= self.size > MAX_ERROR_BYTES;
    }

    /// As `rule_error`, and stops the evaluation.
    fn stop(&mut self, schema: &Schema, trail: &Trail<'_>, detail: &str) {
        self.rule_error(schema, trail, detail.to_owned());
        self.stopped = true;
    }
}

/// The violation of a rule.
enum Violation {
    /// The message of the rule.
    Message(String),
    /// The failure of its message expression.
    MessageError(String),
}

/// The kind of errors of rules themselves, which contain the type of the value.
fn type_error_kind(schema: &Schema) -> FieldErrorKind {
    FieldErrorKind::Invalid(schema.type_name().unwrap_or_default().into())
}

fn error_at(trail: &Trail<'_>, kind: FieldErrorKind, detail: String) -> FieldError {
    let field = trail.to_string();
    // Upstream's path of the whole object is nil.
    let field = if field.is_empty() { "<nil>".to_owned() } else { field };
    FieldError { field, kind, detail }
}
