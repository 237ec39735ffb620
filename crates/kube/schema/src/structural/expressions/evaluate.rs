//! Rules held against objects.
//!
//! Values before and now are walked together: fields come from fields, elements of maps from those
//! with the same keys. A rule that looks at what stood there before is asked only where something
//! did. What is wrong with a part that did not change is only warned of: it was so already, and
//! whoever writes something else cannot be asked to mend it.
//!
//! All evaluations for one object share a budget; when it is used up, nothing more is asked. What is
//! found is bounded too: a rule of many elements may have a long message, and nobody reads more than
//! some megabytes of it.

use super::super::Schema;
use super::super::old::{Elements, Old, same_fields};
use super::Expression;
use super::compile::{Compiled, Node, Rule};
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

/// The most bytes of what is found; with more than that nothing more is asked.
const FOUND: usize = 4 << 20;

/// What rules have said.
#[derive(Debug, Default)]
pub struct Verdict {
    /// What is wrong.
    pub errors: Vec<FieldError>,
    /// What is wrong and was so before.
    pub warnings: Vec<String>,
    /// What the evaluations have cost.
    pub spent: u64,
}

impl Compiled {
    /// Holds the rules against a whole object that is new, or that replaces `old`. `schema` is the
    /// one that they were compiled from.
    pub fn evaluate(
        &self,
        schema: &Schema,
        object: &Map<String, Value>,
        old: Option<&Map<String, Value>>,
    ) -> Verdict {
        let mut walk = Walk::new(limits::COST_PER_OBJECT);
        let new = Part::Whole(object);
        let old = old.map(Part::Whole);
        let pair = old.map(|old| Pair::new(schema, new, old));
        let since = Since { here: pair.as_ref(), above: None };
        walk.part(&self.root, schema, new, old, since, &Trail::default());
        Verdict { spent: limits::COST_PER_OBJECT - walk.left, ..walk.verdict }
    }
}

impl Node {
    /// Holds the rules against a default at `path`, as one that stays and as one that is new, and
    /// takes what that costs from a budget. False if that is used up.
    pub(in crate::structural) fn evaluate_default(
        &self,
        schema: &Schema,
        value: &Value,
        path: &Trail<'_>,
        budget: &mut u64,
        found: &mut Vec<FieldError>,
    ) -> bool {
        let mut left = *budget;
        for old in [Some(Part::Value(value)), None] {
            let mut walk = Walk::new(*budget);
            let since = Since { here: None, above: None };
            walk.part(self, schema, Part::Value(value), old, since, path);
            let clean = walk.verdict.errors.is_empty();
            found.append(&mut walk.verdict.errors);
            left = left.min(walk.left);
            if walk.stopped {
                *budget = 0;
                return false;
            }
            if !clean {
                break;
            }
        }
        *budget = left;
        true
    }
}

/// A value that is walked: a whole object has its fields only.
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

    /// What expressions see.
    fn view(self, shape: &'a ValueShape) -> ValueResult<'a> {
        match self {
            Self::Value(value) => shape.view(value, &WorkBudget::unlimited()),
            Self::Whole(fields) => Ok(Val::Object(ObjectValue::Json { fields, shape })),
        }
    }
}

/// A value and what stood there before, and whether they are the same, once that was asked.
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

    fn is_same(&self) -> bool {
        *self.same.get_or_init(|| match (self.new, self.old) {
            (Part::Value(new), Part::Value(value)) => Old { schema: self.schema, value }.is(new),
            (new, old) => match (new.fields(), old.fields()) {
                (Some(new), Some(old)) => same_fields(self.schema, new, old),
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

    /// The pair of an element that stands where `old` stood.
    fn element(&self, new: &'a Value, old: &'a Value) -> Option<Self> {
        let schema = self.schema.items.as_deref()?;
        Some(Self::new(schema, Part::Value(new), Part::Value(old)))
    }
}

/// What is known of the time before: of this value, or else of the nearest one above of which
/// something is.
#[derive(Clone, Copy)]
struct Since<'p, 'a> {
    here: Option<&'p Pair<'a>>,
    above: Option<&'p Pair<'a>>,
}

impl<'p, 'a> Since<'p, 'a> {
    fn is_same(self) -> bool {
        self.here.or(self.above).is_some_and(Pair::is_same)
    }

    /// What is known of a part of this value.
    fn below(self, pair: Option<&'p Pair<'a>>) -> Self {
        match self.here {
            None => self,
            Some(here) => Self { here: pair, above: Some(here) },
        }
    }

    /// What is known of a field. Versions are converted before anybody looks, so that nothing is
    /// known of the fields that name them.
    fn field(self, name: &str, pair: Option<&'p Pair<'a>>) -> Self {
        if self.here.is_some() && self.above.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self { here: None, above: None };
        }
        self.below(pair)
    }
}

struct Walk {
    verdict: Verdict,
    left: u64,
    /// That of one evaluation at a time.
    budget: CostBudget<'static>,
    /// Bytes of what was found.
    size: usize,
    /// Whether nothing more is to be asked.
    stopped: bool,
}

/// What the rules of one value are asked with.
struct Question<'a> {
    this: ValueResult<'a>,
    /// What stood here before, if any rule looks at it.
    old: Option<ValueResult<'a>>,
}

impl<'a> Question<'a> {
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
            verdict: Verdict::default(),
            left: budget,
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
        since: Since<'_, 'a>,
        trail: &Trail<'_>,
    ) {
        // Where null may stand, rules of what is around it see it.
        if matches!(new, Part::Value(Value::Null)) {
            return;
        }
        let old = old.filter(|old| !matches!(old, Part::Value(Value::Null)));
        self.rules(node, schema, new, old, since, trail);
        if self.stopped {
            return;
        }
        if let Some(items) = new.items() {
            self.items(node, schema, items, old.and_then(Part::items), since, trail);
        } else if let Some(fields) = new.fields() {
            self.fields(node, schema, fields, old.and_then(Part::fields), since, trail);
        }
    }

    fn fields<'a>(
        &mut self,
        node: &'a Node,
        schema: &'a Schema,
        fields: &'a Map<String, Value>,
        olds: Option<&'a Map<String, Value>>,
        since: Since<'_, 'a>,
        trail: &Trail<'_>,
    ) {
        let mut each = |name: &'a str, new, node, schema, step| {
            let old = olds.and_then(|olds| olds.get(name)).map(Part::Value);
            let pair = since.here.and_then(|here| here.field(name));
            let since = since.field(name, pair.as_ref());
            self.part(node, schema, Part::Value(new), old, since, &trail.then(step));
            !self.stopped
        };
        if let (Some(node), Some(schema)) = (&node.additional, schema.additional()) {
            for (name, new) in fields {
                if !each(name, new, node, schema, Step::Key(name)) {
                    return;
                }
            }
        }
        for (at, node) in &node.properties {
            let Some((name, schema)) = schema.properties.get(*at) else { continue };
            let Some(new) = fields.get(&**name) else { continue };
            if !each(name, new, node, schema, Step::Field(name)) {
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
        since: Since<'_, 'a>,
        trail: &Trail<'_>,
    ) {
        let (Some(below), Some(inner)) = (&node.items, &schema.items) else { return };
        let olds = olds.and_then(|olds| Elements::new(schema, olds));
        for (at, new) in items.iter().enumerate() {
            let old = olds.as_ref().and_then(|olds| olds.get(new));
            let pair = since.here.and_then(|here| here.element(new, old?));
            let since = since.below(pair.as_ref());
            let trail = trail.then(Step::Index(at));
            self.part(below, inner, Part::Value(new), old.map(Part::Value), since, &trail);
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
        since: Since<'_, 'a>,
        trail: &Trail<'_>,
    ) {
        if node.blind {
            let why = "rule compiler initialization error: failed to convert to declType for CEL validation rules";
            return self.wrong(schema, trail, why.to_owned());
        }
        if node.rules.is_empty() {
            return;
        }
        if self.left == 0 {
            return self.stop(schema, trail, OUT_OF_BUDGET);
        }
        let question = Question {
            this: new.view(&node.shape),
            old: old.filter(|_| node.uses_old).map(|old| old.view(&node.shape)),
        };
        for (rule, expression) in node.rules.iter().zip(schema.expressions()) {
            let optional = expression.optional_old
                && !mainstay_fault::is_on("optional-old-values-are-waited-for");
            if rule.uses_old && old.is_none() && !optional {
                continue;
            }
            // Of a rule that says nothing its definition is told.
            if expression.rule.trim().is_empty() {
                continue;
            }
            let Some(broken) = self.ask(&question, rule, expression, schema, trail) else {
                if self.stopped {
                    return;
                }
                continue;
            };
            // Objects and lists are not shown.
            let shown = match new {
                Part::Value(value) if !schema.is_compound() => Some(value),
                _ => None,
            };
            let (kind, detail) = match broken {
                Broken::Rule(detail) => expression.error(shown, detail),
                Broken::Message(detail) => (type_shown(schema), detail),
            };
            let field = trail.child(&expression.field_path);
            let blamed = rule.blames_field
                && !expression.field_path.is_empty()
                && !mainstay_fault::is_on("no-other-field-is-blamed");
            let path = if blamed { &field } else { trail };
            let error = error_at(path, kind, detail);
            let kept = !rule.uses_old && since.is_same();
            if kept && !mainstay_fault::is_on("kept-faults-are-refused") {
                self.found(error.detail.len());
                self.verdict.warnings.push(error.to_string());
            } else {
                self.error(error);
            }
            if self.stopped {
                return;
            }
        }
    }

    /// Asks one rule; what is to be said if it is broken.
    fn ask<'a>(
        &mut self,
        question: &Question<'a>,
        rule: &'a Rule,
        expression: &Expression,
        schema: &Schema,
        trail: &Trail<'_>,
    ) -> Option<Broken> {
        let program = match &rule.program {
            Ok(program) => program,
            Err(why) => {
                self.wrong(schema, trail, format!("rule compile error: {why}"));
                return None;
            }
        };
        self.budget.renew(limits::COST_PER_CALL);
        let outcome = question.eval(program, expression.optional_old, &mut self.budget);
        if self.budget.spent() > self.left {
            self.stop(schema, trail, OUT_OF_BUDGET);
            return None;
        }
        self.left -= self.budget.spent();
        match outcome {
            Ok(Val::Bool(true)) => None,
            Ok(_) => Some(self.message(question, rule, expression)),
            Err(error) => {
                let (error, name) = (error.to_string(), expression.name());
                if error.starts_with("no such overload") {
                    self.wrong(schema, trail, format!("'{error}': call arguments did not match a supported operator, function or macro signature for rule: {name}"));
                } else if error.starts_with("operation cancelled: actual cost limit exceeded") {
                    self.stop(schema, trail, &format!("'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {name}"));
                } else {
                    self.wrong(schema, trail, format!("{error} evaluating rule: {name}"));
                }
                None
            }
        }
    }

    /// What is said of a broken rule. An expression says it if it can; otherwise the rule does.
    fn message<'a>(
        &mut self,
        question: &Question<'a>,
        rule: &'a Rule,
        expression: &Expression,
    ) -> Broken {
        let program = rule.message.as_ref();
        let program = program.filter(|_| !mainstay_fault::is_on("messages-are-not-evaluated"));
        let Some(program) = program else { return Broken::Rule(expression.complaint()) };
        self.budget.renew(limits::COST_PER_CALL);
        let outcome = question.eval(program, false, &mut self.budget);
        if self.budget.spent() > self.left {
            self.stopped = true;
            return Broken::Message("messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run".to_owned());
        }
        if let Err(error) = &outcome
            && error.to_string().starts_with("operation cancelled: actual cost limit exceeded")
        {
            self.stopped = true;
            let source = mainstay_gocompat::quote(&expression.words);
            return Broken::Message(format!(
                "no further validation rules will be run due to call cost exceeds limit for messageExpression: {source}"
            ));
        }
        self.left -= self.budget.spent();
        let said = match &outcome {
            Ok(Val::String(text)) => Some(text.as_str().trim()),
            _ => None,
        };
        let fits = |text: &&str| {
            !text.is_empty() && text.len() <= limits::MESSAGE_BYTES && !text.contains('\n')
        };
        match said.filter(fits) {
            Some(said) => Broken::Rule(said.to_owned()),
            None => Broken::Rule(expression.complaint()),
        }
    }

    /// Something is wrong with a rule rather than with a value.
    fn wrong(&mut self, schema: &Schema, trail: &Trail<'_>, detail: String) {
        self.error(error_at(trail, type_shown(schema), detail));
    }

    fn error(&mut self, error: FieldError) {
        self.found(error.detail.len());
        self.verdict.errors.push(error);
    }

    fn found(&mut self, size: usize) {
        self.size = self.size.saturating_add(size + size_of::<FieldError>());
        self.stopped |= self.size > FOUND;
    }

    /// The same, and nothing more is asked.
    fn stop(&mut self, schema: &Schema, trail: &Trail<'_>, detail: &str) {
        self.wrong(schema, trail, detail.to_owned());
        self.stopped = true;
    }
}

/// What is said of a broken rule.
enum Broken {
    /// As the rule has it.
    Rule(String),
    /// That the expression of its message cannot say it.
    Message(String),
}

/// The kind of errors of rules themselves: they show the type of the value.
fn type_shown(schema: &Schema) -> FieldErrorKind {
    FieldErrorKind::Invalid(schema.type_name().unwrap_or_default().into())
}

fn error_at(trail: &Trail<'_>, kind: FieldErrorKind, detail: String) -> FieldError {
    let field = trail.to_string();
    // The path of the whole is none at all in the original.
    let field = if field.is_empty() { "<nil>".to_owned() } else { field };
    FieldError { field, kind, detail }
}
