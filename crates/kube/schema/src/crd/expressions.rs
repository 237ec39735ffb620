//! Validation of the CEL rules of a CRD: compile errors and estimated costs.
//!
//! A rule is compiled with the CEL type of its schema. If an outer schema has rules too, the type is
//! that part of the outer schema's type, which for metadata has fewer fields than declared.

use super::go_print;
use crate::structural::Schema;
use crate::structural::expressions::{ValidationRule, shape};
use crate::trail::{self, Trail};
use mainstay_cel::kubernetes::rules::{RuleCompileError, RuleScope};
use mainstay_cel::kubernetes::{ShapeKind, ValueShape, limits, names};
use mainstay_object::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

/// The number of most expensive rules in errors about the total cost.
const MAX_REPORTED: usize = 4;

/// A schema that may have rules, with its CEL type.
#[derive(Clone, Copy)]
pub(super) struct RulePosition<'a> {
    schema: &'a Schema,
    root: bool,
    cel_type: CelType<'a>,
    /// The largest number of values, by the bounds of the outer schemas; none if one has no bound.
    count: Option<u64>,
}

/// The CEL type of a schema, as outer schemas with rules determine it.
#[derive(Clone, Copy)]
enum CelType<'a> {
    /// No outer schema has rules.
    Undetermined,
    /// The outer type does not contain this schema, which determines the type itself.
    Own,
    /// The outer schema has no CEL type, so rules are not possible.
    Impossible,
    /// The part of the outer type.
    Shape(&'a ValueShape),
}

impl<'a> RulePosition<'a> {
    /// The schema of whole objects.
    pub(super) const fn root(schema: &'a Schema) -> Self {
        Self { schema, root: true, cel_type: CelType::Undetermined, count: Some(1) }
    }

    /// The CEL type of the schema itself, if that counts.
    pub(super) fn own_shape(&self) -> Option<ValueShape> {
        let counts = match self.cel_type {
            CelType::Undetermined => !self.schema.expressions().is_empty(),
            CelType::Own => true,
            CelType::Impossible | CelType::Shape(_) => false,
        };
        counts.then(|| shape(self.schema, self.root || self.schema.is_embedded_resource()))
    }

    /// The same position with the CEL type of the schema itself.
    pub(super) fn with_own_shape(self, own: Option<&'a ValueShape>) -> Self {
        let cel_type = match own {
            None => self.cel_type,
            Some(shape) if shape.is_typed() => CelType::Shape(shape),
            Some(_) => CelType::Impossible,
        };
        Self { cel_type, ..self }
    }

    /// The position of a property.
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

    /// The position of a map's values.
    pub(super) fn additional(self, source: &Value) -> Option<Self> {
        let find = |shape: &'a ValueShape| match &shape.kind {
            ShapeKind::Map(values) => Some(&**values),
            _ => None,
        };
        Some(self.below(self.schema.additional_properties()?, find, source))
    }

    /// The position of a list's elements.
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
        let cel_type = match self.cel_type {
            CelType::Shape(shape) => {
                find(shape).filter(|shape| shape.is_typed()).map_or(CelType::Own, CelType::Shape)
            }
            CelType::Own => CelType::Undetermined,
            other => other,
        };
        let count =
            self.count.zip(max_parts(source)).map(|(outer, parts)| outer.saturating_mul(parts));
        Self { schema, root: false, cel_type, count }
    }
}

/// The largest number of elements or values of a value, if its schema has a bound.
fn max_parts(source: &Value) -> Option<u64> {
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

/// The estimated costs of all rules of a schema of whole objects.
pub(super) struct RuleCosts {
    total: u64,
    /// The most expensive rules, in descending order.
    most_expensive: Vec<(FieldPath, u64)>,
    /// Whether single rules may exceed the limit, because the schema is unchanged.
    is_unchanged: bool,
}

impl RuleCosts {
    /// No costs yet. Single rules of an unchanged schema may exceed the limit.
    pub(super) const fn new(is_unchanged: bool) -> Self {
        Self { total: 0, most_expensive: Vec::new(), is_unchanged }
    }

    fn add(&mut self, path: &Trail<'_>, cost: u64) {
        self.total = self.total.saturating_add(cost);
        if cost < limits::ESTIMATE_PER_DEFINITION / 100 {
            return;
        }
        let at = self.most_expensive.partition_point(|other| other.1 >= cost);
        if at < MAX_REPORTED {
            self.most_expensive.insert(at, (path.to_path(), cost));
            self.most_expensive.truncate(MAX_REPORTED);
        }
    }

    /// The errors if the total cost is too high.
    pub(super) fn errors(&self, path: &FieldPath) -> Vec<FieldError> {
        if self.total <= limits::ESTIMATE_PER_DEFINITION
            || mainstay_fault::is_on("rules-cost-nothing-together")
        {
            return Vec::new();
        }
        let detail = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut errors: Vec<FieldError> = self
            .most_expensive
            .iter()
            .map(|(path, _)| FieldError::forbidden(path, detail))
            .collect();
        let all = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(
            path,
            exceeds_message(all, self.total, limits::ESTIMATE_PER_DEFINITION),
        ));
        errors
    }
}

fn exceeds_message(subject: &str, cost: u64, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "an approximate factor")]
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{subject} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// The errors of the rules of a schema at `path`. `uncorrelated` is the outermost schema whose parts
/// do not correlate with old values.
pub(super) fn check(
    source: &Value,
    position: &RulePosition<'_>,
    uncorrelated: Option<&Trail<'_>>,
    path: &Trail<'_>,
    costs: &mut RuleCosts,
) -> Vec<FieldError> {
    let path = path.child("x-kubernetes-validations");
    let scope = match position.cel_type {
        CelType::Shape(shape) => RuleScope::new(shape).map(|scope| (shape, scope)),
        _ => None,
    };
    let Some((shape, scope)) = scope else {
        let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
        return vec![FieldError::new(&path.to_path(), FieldErrorKind::Internal, detail)];
    };
    let count = position.count.unwrap_or_else(|| shape.cardinality());
    let sources = source.get("x-kubernetes-validations").and_then(Value::as_array);
    let mut checker = RuleChecker { scope, count, uncorrelated, costs, found: Vec::new() };
    for (at, (rule, source)) in
        position.schema.expressions().iter().zip(sources.into_iter().flatten()).enumerate()
    {
        checker.check(rule, source, &path.index(at));
    }
    checker.found
}

struct RuleChecker<'a> {
    scope: RuleScope<'a>,
    count: u64,
    uncorrelated: Option<&'a Trail<'a>>,
    costs: &'a mut RuleCosts,
    found: Vec<FieldError>,
}

impl RuleChecker<'_> {
    fn check(&mut self, rule: &ValidationRule, source: &Value, path: &Trail<'_>) {
        let at = path.child("rule");
        let compiled = self.scope.rule(&rule.rule, rule.optional_old);
        let uses_old = match compiled {
            Ok(compiled) => {
                let cost = compiled.max_cost.saturating_mul(self.count);
                self.check_cost("estimated rule cost", cost, &at);
                if !rule.message_expression.is_empty() {
                    self.check_message_expression(rule, source, &path.child("messageExpression"));
                }
                compiled.uses_old_self
            }
            Err(why) => {
                self.compile_error(source, &why, &at);
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

    fn check_message_expression(&mut self, rule: &ValidationRule, source: &Value, at: &Trail<'_>) {
        match self.scope.message(&rule.message_expression, rule.optional_old) {
            Ok(compiled) => {
                self.check_cost("estimated messageExpression cost", compiled.max_cost, at);
            }
            Err(why) => self.compile_error(source, &why, at),
        }
    }

    fn check_cost(&mut self, subject: &str, cost: u64, at: &Trail<'_>) {
        if cost > limits::ESTIMATE_PER_RULE && !self.costs.is_unchanged {
            self.found.push(trail::forbidden(
                at,
                exceeds_message(subject, cost, limits::ESTIMATE_PER_RULE),
            ));
        }
        self.costs.add(at, cost);
    }

    /// Adds a compile error. Upstream prints the whole rule.
    fn compile_error(&mut self, source: &Value, why: &RuleCompileError, at: &Trail<'_>) {
        let kind = FieldErrorKind::InvalidText(go_print::rule(source));
        self.found.push(FieldError::new(&at.to_path(), kind, why.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_factors_are_printed_precisely() {
        for (cost, factor) in [
            (10_000_001, "1.000000x"),
            (14_999_999, "1.500000x"),
            (15_000_000, "1.5x"),
            (999_000_000, "99.9x"),
            (1_000_000_001, "more than 100x"),
            (u64::MAX, "more than 100x"),
        ] {
            let text = exceeds_message("cost", cost, limits::ESTIMATE_PER_RULE);
            assert!(text.contains(&format!("of {factor} (")), "{text}");
        }
    }

    #[test]
    fn the_most_expensive_rules_are_reported_in_descending_order() {
        let mut costs = RuleCosts::new(false);
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
        assert!(RuleCosts::new(false).errors(&FieldPath::new("root")).is_empty());
    }
}
