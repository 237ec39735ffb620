//! What is wrong with the defaults of a schema.
//!
//! A default must be what it defaults: complete but for other defaults, without unknown fields,
//! and valid, also for rules that are expressions. Inside of `metadata`, `kind` and `apiVersion` it cannot be judged alone; there an
//! object is made around it.

use super::expressions::{Compiled, Node};
use super::work::Work;
use super::{Schema, embedded, is_meta, prune, validate};
use crate::trail::{Trail, invalid};
use mainstay_cel::kubernetes::limits;
use mainstay_object::{FieldError, FieldErrors};
use serde_json::{Map, Value};

/// Checks all defaults below a schema of whole objects.
pub(super) fn check(schema: &Schema, path: &Trail<'_>) -> Vec<FieldError> {
    let mut walk = Walk {
        found: Vec::new(),
        budget: limits::COST_PER_OBJECT,
        work: Work::default(),
        stopped: false,
    };
    if schema.any_default {
        let around = Around { root: schema, above: None };
        walk.schema(schema, &around, false, None, path);
    }
    walk.found
}

/// One step from the nearest object with metadata down to a default.
#[derive(Clone, Copy)]
enum Down<'a> {
    Field(&'a str),
    Element,
}

/// The way from the nearest object with metadata.
#[derive(Clone, Copy)]
struct Around<'a> {
    root: &'a Schema,
    above: Option<(&'a Self, Down<'a>)>,
}

impl Around<'_> {
    /// An object that has the value in its place.
    fn object(&self, value: Value) -> Value {
        let mut value = value;
        let mut at = self;
        while let Some((above, step)) = at.above {
            value = match step {
                Down::Field(name) => Value::Object(Map::from_iter([(name.to_owned(), value)])),
                Down::Element => Value::Array(vec![value]),
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
    /// What rules may still cost, for all defaults together.
    budget: u64,
    /// What the rest took, for all defaults together.
    work: Work,
    /// Whether one of them is used up: then nothing more is looked at.
    stopped: bool,
}

/// The rules of a schema and of those below it, if there are any, once they are compiled: rules
/// below several defaults are compiled once.
type Known<'a> = Option<Option<&'a Node>>;

impl Walk {
    fn schema(
        &mut self,
        schema: &Schema,
        around: &Around<'_>,
        meta: bool,
        known: Known<'_>,
        path: &Trail<'_>,
    ) {
        if !schema.any_default || self.stopped {
            return;
        }
        let own = Around { root: schema, above: None };
        let is_root = std::ptr::eq(schema, around.root);
        let (around, meta) = if schema.embedded { (&own, false) } else { (around, meta) };
        let compiled;
        let mut known = known;
        if let Some(default) = &schema.default {
            if known.is_none() {
                compiled = Compiled::new(schema, schema.embedded || is_root);
                known = Some(compiled.as_ref().map(|compiled| &compiled.root));
            }
            let rules = known.flatten();
            let at = path.child("default");
            if meta {
                self.inside_meta(schema, default, around, rules, &at);
            } else {
                self.plain(schema, default, schema.embedded || is_root, rules, &at);
            }
            self.stopped |= self.work.is_spent();
        }
        if let Some(items) = &schema.items {
            let below = Around { root: around.root, above: Some((around, Down::Element)) };
            let known = known.map(|rules| rules?.items.as_deref());
            self.schema(items, &below, meta, known, &path.child("items"));
        }
        // Defaults of the values of maps are never looked at.
        for (index, (name, property)) in schema.properties.iter().enumerate() {
            let meta = meta || ((is_root || schema.embedded) && is_meta(name));
            let below = Around { root: around.root, above: Some((around, Down::Field(name))) };
            // Of metadata rules see little from outside, and all from within.
            let known = known.filter(|_| !meta).map(|rules| rules?.property(index));
            self.schema(property, &below, meta, known, &path.child("properties").key(name));
        }
    }

    fn plain(
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
                let mut inside = FieldErrors::default();
                embedded::validate_rooted(schema, &coerced, embedded, &path, &mut inside);
                self.found.extend(inside.into_vec());
                if self.found.len() == before {
                    self.found.extend(validate::default(schema, &coerced, &path, &self.work));
                }
                if self.found.len() == before {
                    self.rules(schema, &coerced, rules, at);
                }
            }
            Err(error) => self.found.push(error),
        }
    }

    fn inside_meta(
        &mut self,
        schema: &Schema,
        default: &Value,
        around: &Around<'_>,
        rules: Option<&Node>,
        at: &Trail<'_>,
    ) {
        let object = around.object(default.clone());
        let root = Trail::default();
        let mut wrong = FieldErrors::default();
        let error = match embedded::check_default(around.root, &object, true, &root) {
            Ok(object) => {
                let path = root.to_path();
                embedded::validate_rooted(around.root, &object, true, &path, &mut wrong);
                (!wrong.is_empty()).then(|| FieldError::join(&wrong.into_vec()))
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
        self.found.extend(validate::default(schema, default, &path, &self.work));
        if self.found.len() == before {
            self.rules(schema, default, rules, at);
        }
    }

    /// Holds the rules that are expressions against a default that is valid otherwise.
    fn rules(&mut self, schema: &Schema, default: &Value, rules: Option<&Node>, at: &Trail<'_>) {
        if let Some(rules) = rules {
            let (budget, found) = (&mut self.budget, &mut self.found);
            self.stopped = !rules.evaluate_default(schema, default, at, budget, found);
        }
    }
}
