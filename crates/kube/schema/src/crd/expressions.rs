//! What is wrong with rules that are expressions, and what they may cost.
//!
//! A rule is compiled with what its schema says of its values. Where a schema further out has rules
//! too, that one says it: what counts there is what rules see from there, which for the metadata of
//! an object is less than is declared.

use super::shown;
use crate::structural::Schema;
use crate::structural::expressions::{Expression, shape};
use crate::trail::{self, Trail};
use mainstay_cel::kubernetes::rules::{RuleCompileError, RuleScope};
use mainstay_cel::kubernetes::{ShapeKind, ValueShape, limits, names};
use mainstay_object::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

/// How many of the most expensive rules are named when all together are too expensive.
const NAMED: usize = 4;

/// A schema that rules may stand in.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    schema: &'a Schema,
    root: bool,
    seen: Seen<'a>,
    /// How many values there can be, by the bounds of the schemas around; none if one has none.
    count: Option<u64>,
}

/// What rules further out see here.
#[derive(Clone, Copy)]
enum Seen<'a> {
    /// There are none.
    FromNowhere,
    /// Nothing: the schema has to speak for itself.
    Nothing,
    /// No rule sees what is around, so none is possible.
    Never,
    Shape(&'a ValueShape),
}

impl<'a> Place<'a> {
    /// The schema of whole objects.
    pub(super) const fn root(schema: &'a Schema) -> Self {
        Self { schema, root: true, seen: Seen::FromNowhere, count: Some(1) }
    }

    /// What the schema itself says of its values, where that is what counts.
    pub(super) fn own_shape(&self) -> Option<ValueShape> {
        let counts = match self.seen {
            Seen::FromNowhere => !self.schema.expressions().is_empty(),
            Seen::Nothing => true,
            Seen::Never | Seen::Shape(_) => false,
        };
        counts.then(|| shape(self.schema, self.root || self.schema.is_embedded_resource()))
    }

    /// The same place with that shape.
    pub(super) fn with(self, own: Option<&'a ValueShape>) -> Self {
        let seen = match own {
            None => self.seen,
            Some(shape) if shape.is_typed() => Seen::Shape(shape),
            Some(_) => Seen::Never,
        };
        Self { seen, ..self }
    }

    /// The place of a property.
    pub(super) fn property(self, name: &str, source: &Value) -> Option<Self> {
        let schema = self.schema.property(name)?;
        let find = |shape: &'a ValueShape| match &shape.kind {
            ShapeKind::Object(object) => {
                names::escape(name)?;
                object.fields.get(name).map(|field| &field.shape)
            }
            _ => None,
        };
        Some(self.below(schema, find, source))
    }

    /// The place of a map's values.
    pub(super) fn additional(self, source: &Value) -> Option<Self> {
        let find = |shape: &'a ValueShape| match &shape.kind {
            ShapeKind::Map(values) => Some(&**values),
            _ => None,
        };
        Some(self.below(self.schema.additional_properties()?, find, source))
    }

    /// The place of a list's elements.
    pub(super) fn items(self, source: &Value) -> Option<Self> {
        let find = |shape: &'a ValueShape| match &shape.kind {
            ShapeKind::List { items, .. } => Some(&**items),
            _ => None,
        };
        Some(self.below(self.schema.items()?, find, source))
    }

    fn below(
        self,
        schema: &'a Schema,
        find: impl FnOnce(&'a ValueShape) -> Option<&'a ValueShape>,
        source: &Value,
    ) -> Self {
        let seen = match self.seen {
            Seen::Shape(shape) => {
                find(shape).filter(|shape| shape.is_typed()).map_or(Seen::Nothing, Seen::Shape)
            }
            Seen::Nothing => Seen::FromNowhere,
            other => other,
        };
        let count = self.count.zip(most(source)).map(|(one, other)| one.saturating_mul(other));
        Self { schema, root: false, seen, count }
    }
}

/// How many parts of each kind a value has at most, if its schema says that.
fn most(source: &Value) -> Option<u64> {
    let bound = |name: &str| {
        let bound = source.get(name).filter(|bound| !bound.is_null())?;
        Some(bound.as_i64().and_then(|bound| u64::try_from(bound).ok()).unwrap_or(0))
    };
    let has = |name: &str| source.get(name).is_some_and(|value| !value.is_null());
    match source.get("type").and_then(Value::as_str) {
        Some("object") if has("additionalProperties") => bound("maxProperties"),
        Some("array") => bound("maxItems"),
        _ => Some(1),
    }
}

/// What all rules of a schema of whole objects may cost.
pub(super) struct Costs {
    total: u64,
    /// The most expensive rules, the worst first.
    worst: Vec<(FieldPath, u64)>,
    /// Whether single rules may cost what they like: they did before.
    forgiven: bool,
}

impl Costs {
    /// None yet. `forgiven`: single rules may cost what they like, because they did before.
    pub(super) const fn new(forgiven: bool) -> Self {
        Self { total: 0, worst: Vec::new(), forgiven }
    }

    fn add(&mut self, path: &Trail<'_>, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < limits::ESTIMATE_PER_DEFINITION / 100 {
            return;
        }
        let at = self.worst.partition_point(|other| other.1 >= cost);
        if at < NAMED {
            self.worst.insert(at, (path.to_path(), cost));
            self.worst.truncate(NAMED);
        }
    }

    /// What is said if all rules together are too expensive.
    pub(super) fn errors(&self, path: &FieldPath) -> Vec<FieldError> {
        if self.total <= limits::ESTIMATE_PER_DEFINITION
            || mainstay_fault::is_on("rules-cost-nothing-together")
        {
            return Vec::new();
        }
        let contributed = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut errors: Vec<FieldError> =
            self.worst.iter().map(|(path, _)| FieldError::forbidden(path, contributed)).collect();
        let all = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(
            path,
            exceeds(all, self.total, limits::ESTIMATE_PER_DEFINITION),
        ));
        errors
    }
}

fn exceeds(what: &str, cost: u64, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a factor that people read")]
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// Compiles the rules of a schema at `path`. `uncorrelated` is the outermost schema whose parts
/// cannot be told to be the same before and after a change.
pub(super) fn check(
    source: &Value,
    place: &Place<'_>,
    uncorrelated: Option<&Trail<'_>>,
    path: &Trail<'_>,
    costs: &mut Costs,
) -> Vec<FieldError> {
    let path = path.child("x-kubernetes-validations");
    let scope = match place.seen {
        Seen::Shape(shape) => RuleScope::new(shape).map(|scope| (shape, scope)),
        _ => None,
    };
    let Some((shape, scope)) = scope else {
        let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
        return vec![FieldError::new(&path.to_path(), FieldErrorKind::Internal, detail)];
    };
    let count = place.count.unwrap_or_else(|| shape.cardinality());
    let sources = source.get("x-kubernetes-validations").and_then(Value::as_array);
    let mut rules = Rules { scope, count, uncorrelated, costs, found: Vec::new() };
    for (at, (rule, source)) in
        place.schema.expressions().iter().zip(sources.into_iter().flatten()).enumerate()
    {
        rules.check(rule, source, &path.index(at));
    }
    rules.found
}

struct Rules<'a> {
    scope: RuleScope<'a>,
    count: u64,
    uncorrelated: Option<&'a Trail<'a>>,
    costs: &'a mut Costs,
    found: Vec<FieldError>,
}

impl Rules<'_> {
    fn check(&mut self, rule: &Expression, source: &Value, path: &Trail<'_>) {
        let at = path.child("rule");
        let compiled = self.scope.rule(&rule.rule, rule.optional_old);
        let uses_old = match compiled {
            Ok(compiled) => {
                let cost = compiled.max_cost.saturating_mul(self.count);
                self.cost("estimated rule cost", cost, &at);
                if !rule.words.is_empty() {
                    self.message(rule, source, &path.child("messageExpression"));
                }
                compiled.uses_old_self
            }
            Err(why) => {
                self.broken(source, &why, &at);
                false
            }
        };
        if uses_old {
            if let Some(outer) = self.uncorrelated {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {outer}"
                );
                self.found.push(trail::invalid(&at, &*rule.rule, detail));
            }
        } else if let Some(optional) =
            source.get("optionalOldSelf").filter(|optional| !optional.is_null())
        {
            let detail = "may not be set if oldSelf is not used in rule";
            self.found.push(trail::invalid(
                &path.child("optionalOldSelf"),
                optional.clone(),
                detail,
            ));
        }
    }

    fn message(&mut self, rule: &Expression, source: &Value, at: &Trail<'_>) {
        match self.scope.message(&rule.words, rule.optional_old) {
            Ok(compiled) => {
                self.cost("estimated messageExpression cost", compiled.max_cost, at);
            }
            Err(why) => self.broken(source, &why, at),
        }
    }

    fn cost(&mut self, what: &str, cost: u64, at: &Trail<'_>) {
        if cost > limits::ESTIMATE_PER_RULE && !self.costs.forgiven {
            self.found.push(trail::forbidden(at, exceeds(what, cost, limits::ESTIMATE_PER_RULE)));
        }
        self.costs.add(at, cost);
    }

    /// What cannot be compiled. The original shows the whole rule.
    fn broken(&mut self, source: &Value, why: &RuleCompileError, at: &Trail<'_>) {
        let kind = FieldErrorKind::InvalidShown(shown::rule(source));
        self.found.push(FieldError::new(&at.to_path(), kind, why.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_told_as_exactly_as_they_matter() {
        for (cost, factor) in [
            (10_000_001, "1.000000x"),
            (14_999_999, "1.500000x"),
            (15_000_000, "1.5x"),
            (999_000_000, "99.9x"),
            (1_000_000_001, "more than 100x"),
            (u64::MAX, "more than 100x"),
        ] {
            let text = exceeds("cost", cost, limits::ESTIMATE_PER_RULE);
            assert!(text.contains(&format!("of {factor} (")), "{text}");
        }
    }

    #[test]
    fn the_worst_rules_are_named_the_worst_first() {
        let mut costs = Costs::new(false);
        for (name, cost) in [
            ("a", 1),
            ("b", 50_000_000),
            ("c", 2_000_000),
            ("d", 70_000_000),
            ("e", 3_000_000),
            ("f", 2_000_000),
        ] {
            costs.add(&Trail::below(name), cost);
        }
        let errors = costs.errors(&FieldPath::new("root"));
        let fields: Vec<&str> = errors.iter().map(|error| &*error.field).collect();
        assert_eq!(fields, ["d", "b", "e", "c", "root"]);
        assert!(Costs::new(false).errors(&FieldPath::new("root")).is_empty());
    }
}
