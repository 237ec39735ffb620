//! Validation of a value by a schema: types and validations.
//!
//! Of the failed alternatives of `anyOf` and `oneOf`, upstream reports the errors of the one with the
//! most passed checks. The count of passed checks exists only for that.

use super::budget::{self, BYTES, CheckBudget};
use super::correlation::OldValue;
use super::types::{equals_enum_value, is_multiple, kind_of, type_fits};
use super::{Kind, Rules, Schema};
use crate::trail::{Step, Trail};
use mainstay_gocompat::quote;
use mainstay_gocompat::values::{float, json};
use mainstay_object::{FieldError, FieldErrorKind, FieldErrors, FieldPath};
use serde_json::Value;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The errors of a value, and the number of passed checks.
#[derive(Default)]
struct Outcome {
    errors: FieldErrors,
    /// Hashes of the errors, because each is reported once and there may be many.
    hashes: HashSet<u64>,
    passed: usize,
}

impl Outcome {
    fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        if self.errors.is_empty() {
            (self.errors, self.hashes) = (other.errors, other.hashes);
            return;
        }
        for error in other.errors.into_vec() {
            self.add(error);
        }
    }

    fn add(&mut self, error: FieldError) {
        // Equal counts of omitted errors are not duplicates.
        if matches!(error.kind, FieldErrorKind::Omitted(_)) {
            self.errors.push(error);
            return;
        }
        let mut hasher = DefaultHasher::new();
        error.hash(&mut hasher);
        if self.hashes.insert(hasher.finish()) {
            self.errors.push(error);
        }
    }
}

/// Validates a value at `base`. With `old`, errors of unchanged parts are dropped.
pub(super) fn value(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    base: &FieldPath,
) -> Vec<FieldError> {
    let old = old.map(|value| OldValue { schema, value });
    Validator { base, is_default: false, budget: &CheckBudget::default() }.run(schema, value, old)
}

/// Validates a default of a CRD at `base`; all defaults of the CRD share a budget.
///
/// Upstream's validator of defaults uses the structural schema, in which an int-or-string has no
/// types.
pub(super) fn default(
    schema: &Schema,
    value: &Value,
    base: &FieldPath,
    budget: &CheckBudget,
) -> Vec<FieldError> {
    Validator { base, is_default: true, budget }.run(schema, value, None)
}

struct Validator<'a> {
    base: &'a FieldPath,
    /// Whether the value is a default of a CRD.
    is_default: bool,
    /// Once it is exhausted, nothing more is validated.
    budget: &'a CheckBudget,
}

impl Validator<'_> {
    fn run(&self, schema: &Schema, value: &Value, old: Option<OldValue<'_>>) -> Vec<FieldError> {
        let outcome = self.check(schema, value, old, &Trail::default());
        if !self.budget.is_exhausted() {
            return outcome.errors.into_vec();
        }
        let error = self.composite_error(budget::exceeded_message());
        vec![FieldError { kind: FieldErrorKind::Forbidden, ..error }]
    }

    fn check(
        &self,
        schema: &Schema,
        value: &Value,
        old: Option<OldValue<'_>>,
        trail: &Trail<'_>,
    ) -> Outcome {
        let mut outcome = self.check_without_ratcheting(schema, value, old, trail);
        if !outcome.errors.is_empty()
            && let Some(old) = old
        {
            self.budget.charge(count_values(value));
            if !self.budget.is_exhausted() && old.equals(value) {
                outcome.errors = FieldErrors::default();
            }
        }
        outcome
    }

    fn check_without_ratcheting(
        &self,
        schema: &Schema,
        value: &Value,
        old: Option<OldValue<'_>>,
        trail: &Trail<'_>,
    ) -> Outcome {
        let mut out = Outcome::default();
        self.budget.charge(1);
        if self.budget.is_exhausted() {
            return out;
        }
        self.check_type(schema, value, trail, &mut out);
        if value.is_null() {
            if let Some(rules) = &schema.rules {
                self.check_allowed(rules, value, trail, &mut out);
            }
            return out;
        }
        if let Some(rules) = &schema.rules {
            self.check_alternatives(rules, value, old, trail, &mut out);
        }
        out.passed += 2;
        match value {
            Value::String(text) => {
                if let Some(rules) = &schema.rules {
                    self.check_text(rules, text, trail, &mut out);
                }
                out.passed += 1;
            }
            Value::Number(number) => {
                if let Some(rules) = &schema.rules {
                    self.check_number(rules, number, trail, &mut out);
                }
                out.passed += 2;
            }
            Value::Array(items) => {
                self.check_items(schema, items, old, trail, &mut out);
                out.passed += 2;
            }
            _ => {}
        }
        if let Some(rules) = &schema.rules {
            self.check_allowed(rules, value, trail, &mut out);
        }
        out.passed += 1;
        if let Value::Object(fields) = value {
            self.check_fields(schema, fields, old, trail, &mut out);
            out.passed += 1;
        }
        out.passed += 1;
        out
    }

    fn error(&self, trail: &Trail<'_>, kind: FieldErrorKind, detail: String) -> FieldError {
        let name = trail.to_string();
        let field = match (self.base.as_str(), name.strip_prefix('.').unwrap_or(&name)) {
            (base, "") => base.to_owned(),
            ("", name) => name.to_owned(),
            (base, name) => format!("{base}.{name}"),
        };
        self.budget.charge((field.len() + detail.len()) / BYTES);
        FieldError { field, kind, detail }
    }

    /// An error of `anyOf` and the like, which names only the object.
    fn composite_error(&self, detail: String) -> FieldError {
        // Go prints an empty path so, and clients see it in the causes.
        let field = match self.base.as_str() {
            "" => "<nil>".to_owned(),
            base => base.to_owned(),
        };
        self.budget.charge(detail.len() / BYTES);
        FieldError { field, kind: FieldErrorKind::Invalid("".into()), detail }
    }

    fn check_type(&self, schema: &Schema, value: &Value, trail: &Trail<'_>, out: &mut Outcome) {
        let format = schema.rules.as_ref().and_then(|rules| rules.format.as_ref());
        let int_or_string = schema.int_or_string && !self.is_default;
        if schema.kind.is_none() && !int_or_string && format.is_none() {
            return;
        }
        let type_error = |expected: &str, found: &str| {
            let kind = FieldErrorKind::TypeInvalid(found.to_owned());
            self.error(
                trail,
                kind,
                format!("{trail} in body must be of type {expected}: {}", quote(found)),
            )
        };
        let expected = || {
            if int_or_string { "integer,string" } else { schema.kind.map_or("", Kind::as_str) }
        };
        if value.is_null() {
            if (schema.kind.is_some() || int_or_string) && !schema.nullable {
                out.add(type_error(expected(), "null"));
            } else {
                out.passed += 1;
            }
            return;
        }
        let numeric = int_or_string || matches!(schema.kind, Some(Kind::Number | Kind::Integer));
        let found = kind_of(value);
        let fits = type_fits(schema, int_or_string, value);
        if let Some(format) = format {
            if !matches!(found, Kind::String | Kind::Array) && !fits {
                // Upstream names the format of the Go value here.
                let go_format = match found {
                    Kind::Integer => "int64",
                    Kind::Number => "float64",
                    _ => "",
                };
                out.add(type_error(&format.name, go_format));
                out.passed += 1;
                return;
            }
            if !numeric && matches!(found, Kind::String | Kind::Array) {
                out.passed += 2;
                return;
            }
        }
        if fits {
            out.passed += 2;
        } else {
            out.add(type_error(expected(), found.as_str()));
            out.passed += 1;
        }
    }

    fn check_alternatives(
        &self,
        rules: &Rules,
        value: &Value,
        old: Option<OldValue<'_>>,
        trail: &Trail<'_>,
        out: &mut Outcome,
    ) {
        if !rules.any_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut valid = None;
            for schema in &rules.any_of {
                let outcome = self.check(schema, value, old, trail);
                if outcome.errors.is_empty() {
                    valid = Some(outcome);
                    break;
                }
                if best.as_ref().is_none_or(|best| outcome.passed > best.passed) {
                    best = Some(outcome);
                }
            }
            if valid.is_none() {
                let name = quote(&trail.to_string());
                out.add(
                    self.composite_error(format!(
                        "{name} must validate at least one schema (anyOf)"
                    )),
                );
            }
            out.merge(valid.or(best).unwrap_or_default());
        }
        if !rules.one_of.is_empty() {
            self.check_one_of(rules, value, old, trail, out);
        }
        if !rules.all_of.is_empty() {
            let mut valid = 0;
            for schema in &rules.all_of {
                let outcome = self.check(schema, value, old, trail);
                valid += usize::from(outcome.errors.is_empty());
                out.merge(outcome);
            }
            if valid != rules.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                let name = quote(&trail.to_string());
                out.add(self.composite_error(format!(
                    "{name} must validate all the schemas (allOf){none}"
                )));
            }
        }
        if let Some(not) = &rules.not
            && self.check(not, value, old, trail).errors.is_empty()
        {
            let name = quote(&trail.to_string());
            out.add(self.composite_error(format!("{name} must not validate the schema (not)")));
        }
    }

    fn check_one_of(
        &self,
        rules: &Rules,
        value: &Value,
        old: Option<OldValue<'_>>,
        trail: &Trail<'_>,
        out: &mut Outcome,
    ) {
        let mut best: Option<Outcome> = None;
        let mut first = None;
        let mut valid = 0;
        for schema in &rules.one_of {
            let outcome = self.check(schema, value, old, trail);
            if outcome.errors.is_empty() {
                valid += 1;
                best = None;
                first.get_or_insert(outcome);
            } else if valid == 0 && best.as_ref().is_none_or(|best| outcome.passed > best.passed) {
                best = Some(outcome);
            }
        }
        if valid == 1 {
            out.merge(first.unwrap_or_default());
            return;
        }
        let found = match valid {
            0 => "Found none valid".to_owned(),
            valid => format!("Found {valid} valid alternatives"),
        };
        let name = quote(&trail.to_string());
        out.add(self.composite_error(format!(
            "{name} must validate one and only one schema (oneOf). {found}"
        )));
        out.merge(best.unwrap_or_default());
    }

    fn check_allowed(&self, rules: &Rules, value: &Value, trail: &Trail<'_>, out: &mut Outcome) {
        if mainstay_fault::is_on("enums-are-not-checked") {
            return;
        }
        self.budget.charge(rules.allowed.len() / BYTES);
        if self.budget.is_exhausted()
            || rules.allowed.is_empty()
            || rules.allowed.iter().any(|allowed_value| equals_enum_value(allowed_value, value))
        {
            return;
        }
        self.budget.charge(rules.allowed.iter().map(enum_value_bytes).sum::<usize>() / BYTES);
        let texts = rules.allowed.iter().map(|allowed_value| match allowed_value {
            Value::String(text) => text.clone(),
            other => json(other),
        });
        let kind = FieldErrorKind::NotSupported(value.clone(), texts.collect());
        out.add(self.error(trail, kind, String::new()));
    }

    fn invalid(&self, trail: &Trail<'_>, value: Value, rule: &str) -> FieldError {
        let kind = FieldErrorKind::Invalid(value);
        self.error(trail, kind, format!("{trail} in body {rule}"))
    }

    fn check_text(&self, rules: &Rules, text: &str, trail: &Trail<'_>, out: &mut Outcome) {
        self.budget.charge(text.len() / 64);
        let mut length = None;
        let mut length = || {
            *length.get_or_insert_with(|| i64::try_from(text.chars().count()).unwrap_or(i64::MAX))
        };
        if let Some(max) = rules.max_length
            && length() > max
        {
            let kind = FieldErrorKind::TooLong(u64::try_from(max).ok());
            out.add(self.error(trail, kind, String::new()));
        } else if let Some(min) = rules.min_length
            && length() < min
        {
            let rule = format!("should be at least {min} chars long");
            out.add(self.invalid(trail, text.into(), &rule));
        } else if let Some(pattern) = &rules.pattern
            && !pattern.matches(text, self.budget)
        {
            let rule = format!("should match '{}'", pattern.text);
            out.add(self.invalid(trail, text.into(), &rule));
        }
        if let Some(format) = &rules.format {
            if !format.matches(text) {
                let kind = FieldErrorKind::TypeInvalid(text.to_owned());
                let detail =
                    format!("{trail} in body must be of type {}: {}", format.name, quote(text));
                out.add(self.error(trail, kind, detail));
            }
            out.passed += 1;
        }
    }

    fn check_number(
        &self,
        rules: &Rules,
        number: &serde_json::Number,
        trail: &Trail<'_>,
        out: &mut Outcome,
    ) {
        let value = number.as_f64().unwrap_or_default();
        // As in upstream, integers are compared with the integer part of a bound.
        let integer = number.is_i64();
        let bound = |bound: f64| if integer { bound.trunc() } else { bound };
        #[expect(clippy::cast_possible_truncation, reason = "the integer part is meant")]
        let print = |bound: f64| if integer { (bound as i64).to_string() } else { float(bound) };
        if let Some(factor) = rules.multiple_of {
            let factor = bound(factor);
            if factor <= 0.0 {
                let printed = print(factor);
                let rule =
                    format!("factor MultipleOf declared for {trail} must be positive: {printed}");
                out.add(self.error(trail, FieldErrorKind::Invalid(factor.into()), rule));
            } else if !is_multiple(value, factor) {
                let rule = format!("should be a multiple of {}", print(factor));
                out.add(self.invalid(trail, Value::Number(number.clone()), &rule));
            }
        }
        if let Some(min) = rules.minimum.map(bound)
            && (value < min || (rules.exclusive_minimum && value <= min))
        {
            let or_equal = if rules.exclusive_minimum { "" } else { "or equal to " };
            let rule = format!("should be greater than {or_equal}{}", print(min));
            out.add(self.invalid(trail, Value::Number(number.clone()), &rule));
        }
        if let Some(max) = rules.maximum.map(bound)
            && (value > max || (rules.exclusive_maximum && value >= max))
        {
            let or_equal = if rules.exclusive_maximum { "" } else { "or equal to " };
            let rule = format!("should be less than {or_equal}{}", print(max));
            out.add(self.invalid(trail, Value::Number(number.clone()), &rule));
        }
    }

    fn check_items(
        &self,
        schema: &Schema,
        items: &[Value],
        old: Option<OldValue<'_>>,
        trail: &Trail<'_>,
        out: &mut Outcome,
    ) {
        if let Some(below) = &schema.items {
            let olds = old.and_then(OldValue::elements);
            for (at, item) in items.iter().enumerate() {
                let old = old.zip(olds.as_ref()).and_then(|(old, olds)| {
                    Some(OldValue { schema: old.schema.items.as_deref()?, value: olds.get(item)? })
                });
                out.merge(self.check(below, item, old, &trail.then(Step::Index(at))));
            }
        }
        let Some(rules) = &schema.rules else { return };
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(min) = rules.min_items
            && count < min
        {
            let rule = format!("should have at least {min} items");
            out.add(self.invalid(trail, count.into(), &rule));
        }
        if let Some(max) = rules.max_items
            && count > max
        {
            let kind = FieldErrorKind::TooMany(items.len() as u64, u64::try_from(max).unwrap_or(0));
            out.add(self.error(trail, kind, String::new()));
        }
    }

    fn check_fields(
        &self,
        schema: &Schema,
        fields: &serde_json::Map<String, Value>,
        old: Option<OldValue<'_>>,
        trail: &Trail<'_>,
        out: &mut Outcome,
    ) {
        if let Some(rules) = &schema.rules {
            let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
            if let Some(min) = rules.min_properties
                && count < min
            {
                let rule = format!("should have at least {min} properties");
                out.add(self.invalid(trail, count.into(), &rule));
            }
            if let Some(max) = rules.max_properties
                && count > max
            {
                let max = u64::try_from(max).unwrap_or(0);
                let kind = FieldErrorKind::TooMany(fields.len() as u64, max);
                out.add(self.error(trail, kind, String::new()));
            }
        }
        let root = trail.is_root() && self.base.as_str().is_empty();
        if !schema.properties.is_empty() || schema.additional().is_some() {
            for (name, field) in fields {
                let (below, step) = match (schema.property(name), schema.additional()) {
                    (Some(property), _) => (property, Step::Field(name)),
                    (None, Some(additional)) => (additional, Step::Value(name)),
                    (None, None) => continue,
                };
                let typed = root && matches!(name.as_str(), "kind" | "apiVersion");
                let old = old.filter(|_| !typed).and_then(|old| old.field(name));
                out.merge(self.check(below, field, old, &trail.then(step)));
            }
        }
        let required = schema.rules.as_ref().map_or(&[][..], |rules| &rules.required);
        self.budget.charge(required.len() / BYTES);
        for name in required {
            if self.budget.is_exhausted() {
                return;
            }
            if !fields.contains_key(&**name) {
                let trail = trail.then(Step::Field(name));
                out.add(self.error(&trail, FieldErrorKind::Required, String::new()));
            }
        }
    }
}

/// The number of values in a value, itself included.
fn count_values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(count_values).sum::<usize>(),
        _ => 1,
    }
}

/// The approximate number of bytes of an enum value in a message.
fn enum_value_bytes(allowed: &Value) -> usize {
    match allowed {
        Value::String(text) => text.len(),
        other => BYTES * count_values(other),
    }
}
