//! Validation of the defaults of a schema.
//!
//! A default must be pruned and valid, CEL rules included. A default inside `metadata`, `kind` or
//! `apiVersion` is validated as part of an object that is built around it.

use super::budget::CheckBudget;
use super::expressions::{CompiledRules, Node};
use super::{Schema, embedded, is_meta, prune, validate};
use crate::trail::{Trail, invalid};
use mainstay_cel::kubernetes::limits;
use mainstay_object::{FieldError, FieldErrors};
use serde_json::{Map, Value};

/// Checks all defaults below a schema of whole objects.
pub(super) fn check(schema: &Schema, path: &Trail<'_>) -> Vec<FieldError> {
    let mut walk = Walk {
        found: Vec::new(),
        rule_budget: limits::COST_PER_OBJECT,
        budget: CheckBudget::default(),
        stopped: false,
    };
    if schema.any_default {
        let path_of_default = DefaultPath { root: schema, above: None };
        walk.schema(schema, &path_of_default, false, None, path);
    }
    walk.found
}

/// One step from the nearest object with metadata down to a default.
#[derive(Clone, Copy)]
enum DefaultStep<'a> {
    Field(&'a str),
    Element,
}

/// The path of a default from the nearest object with metadata.
#[derive(Clone, Copy)]
struct DefaultPath<'a> {
    root: &'a Schema,
    above: Option<(&'a Self, DefaultStep<'a>)>,
}

impl DefaultPath<'_> {
    /// An object that has the value at this path.
    fn build_object(&self, value: Value) -> Value {
        let mut value = value;
        let mut at = self;
        while let Some((above, step)) = at.above {
            value = match step {
                DefaultStep::Field(name) => {
                    Value::Object(Map::from_iter([(name.to_owned(), value)]))
                }
                DefaultStep::Element => Value::Array(vec![value]),
            };
            at = above;
        }
        if let Value::Object(fields) = &mut value {
            for (name, text) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
                fields.entry(name).or_insert_with(|| text.into());
            }
        }
        value
    }
}

struct Walk {
    found: Vec<FieldError>,
    /// The remaining CEL cost of all defaults.
    rule_budget: u64,
    /// The step budget of all defaults.
    budget: CheckBudget,
    /// Whether a budget is exhausted: then no further default is validated.
    stopped: bool,
}

/// The compiled CEL rules of a schema and of those below it; none before the first default compiles
/// them.
type CachedRules<'a> = Option<Option<&'a Node>>;

impl Walk {
    fn schema(
        &mut self,
        schema: &Schema,
        path_of_default: &DefaultPath<'_>,
        meta: bool,
        cached: CachedRules<'_>,
        path: &Trail<'_>,
    ) {
        if !schema.any_default || self.stopped {
            return;
        }
        let own = DefaultPath { root: schema, above: None };
        let is_root = std::ptr::eq(schema, path_of_default.root);
        let (path_of_default, meta) =
            if schema.embedded { (&own, false) } else { (path_of_default, meta) };
        let compiled;
        let mut cached = cached;
        if let Some(default) = &schema.default {
            if cached.is_none() {
                compiled = CompiledRules::new(schema, schema.embedded || is_root);
                cached = Some(compiled.as_ref().map(|compiled| &compiled.root));
            }
            let rules = cached.flatten();
            let at = path.child("default");
            if meta {
                self.check_in_meta(schema, default, path_of_default, rules, &at);
            } else {
                self.check_default(schema, default, schema.embedded || is_root, rules, &at);
            }
            self.stopped |= self.budget.is_exhausted();
        }
        if let Some(items) = &schema.items {
            let below = DefaultPath {
                root: path_of_default.root,
                above: Some((path_of_default, DefaultStep::Element)),
            };
            let cached = cached.map(|rules| rules?.items.as_deref());
            self.schema(items, &below, meta, cached, &path.child("items"));
        }
        // Upstream does not validate defaults of the values of maps.
        for (index, (name, property)) in schema.properties.iter().enumerate() {
            let meta = meta || ((is_root || schema.embedded) && is_meta(name));
            let below = DefaultPath {
                root: path_of_default.root,
                above: Some((path_of_default, DefaultStep::Field(name))),
            };
            // Outer rules see little of the metadata, so rules inside are compiled again.
            let cached = cached.filter(|_| !meta).map(|rules| rules?.property(index));
            self.schema(property, &below, meta, cached, &path.child("properties").key(name));
        }
    }

    fn check_default(
        &mut self,
        schema: &Schema,
        default: &Value,
        embedded: bool,
        rules: Option<&Node>,
        at: &Trail<'_>,
    ) {
        let mut pruned = default.clone();
        if !prune::value(schema, &mut pruned, embedded).is_empty() {
            let detail = "must not have unknown fields";
            self.found.push(invalid(at, default.clone(), detail));
        }
        let path = at.to_path();
        let before = self.found.len();
        match embedded::check_default(schema, default, embedded, at) {
            Ok(coerced) => {
                let mut embedded_errors = FieldErrors::default();
                embedded::validate_with_root(
                    schema,
                    &coerced,
                    embedded,
                    &path,
                    &mut embedded_errors,
                );
                self.found.extend(embedded_errors.into_vec());
                if self.found.len() == before {
                    self.found.extend(validate::default(schema, &coerced, &path, &self.budget));
                }
                if self.found.len() == before {
                    self.check_rules(schema, &coerced, rules, at);
                }
            }
            Err(error) => self.found.push(error),
        }
    }

    fn check_in_meta(
        &mut self,
        schema: &Schema,
        default: &Value,
        path_of_default: &DefaultPath<'_>,
        rules: Option<&Node>,
        at: &Trail<'_>,
    ) {
        let object = path_of_default.build_object(default.clone());
        let root = Trail::default();
        let mut errors = FieldErrors::default();
        let error = match embedded::check_default(path_of_default.root, &object, true, &root) {
            Ok(object) => {
                let path = root.to_path();
                embedded::validate_with_root(
                    path_of_default.root,
                    &object,
                    true,
                    &path,
                    &mut errors,
                );
                (!errors.is_empty()).then(|| FieldError::join(&errors.into_vec()))
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = error {
            let detail = format!("must result in valid metadata: {error}");
            self.found.push(invalid(at, default.clone(), detail));
            return;
        }
        let before = self.found.len();
        let path = at.to_path();
        self.found.extend(validate::default(schema, default, &path, &self.budget));
        if self.found.len() == before {
            self.check_rules(schema, default, rules, at);
        }
    }

    /// Evaluates CEL rules for a default that is valid otherwise.
    fn check_rules(
        &mut self,
        schema: &Schema,
        default: &Value,
        rules: Option<&Node>,
        at: &Trail<'_>,
    ) {
        if let Some(rules) = rules {
            let (budget, found) = (&mut self.rule_budget, &mut self.found);
            self.stopped = !rules.evaluate_default(schema, default, at, budget, found);
        }
    }
}
