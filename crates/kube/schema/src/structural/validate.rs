//! What is wrong with a value: types, and rules beyond types.
//!
//! The original tries alternatives (`anyOf`, `oneOf`) and shows the errors of the one that came
//! farthest, measured by how many of its checks passed. So the count of passed checks is kept here
//! too; it has no other use.

use super::old::Old;
use super::types::{is_multiple, kind_of, same, type_fits};
use super::work::{self, BYTES, Work};
use super::{Kind, Rules, Schema};
use crate::trail::{Step, Trail};
use mainstay_gocompat::quote;
use mainstay_gocompat::values::{float, json};
use mainstay_object::{FieldError, FieldErrorKind, FieldErrors, FieldPath};
use serde_json::Value;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Errors, and how many checks passed.
#[derive(Default)]
struct Outcome {
    errors: FieldErrors,
    /// Hashes of the errors: each is told once, and there may be as many as the value has parts.
    seen: HashSet<u64>,
    passed: usize,
}

impl Outcome {
    fn merge(&mut self, other: Self) {
        self.passed += other.passed;
        if self.errors.is_empty() {
            (self.errors, self.seen) = (other.errors, other.seen);
            return;
        }
        for error in other.errors.into_vec() {
            self.add(error);
        }
    }

    fn add(&mut self, error: FieldError) {
        // As many as elsewhere may be left out here.
        if matches!(error.kind, FieldErrorKind::LeftOut(_)) {
            self.errors.push(error);
            return;
        }
        let mut hasher = DefaultHasher::new();
        error.hash(&mut hasher);
        if self.seen.insert(hasher.finish()) {
            self.errors.push(error);
        }
    }
}

/// Checks a value below `base`. With `old`, errors of parts that did not change are dropped.
pub(super) fn value(
    schema: &Schema,
    value: &Value,
    old: Option<&Value>,
    base: &FieldPath,
) -> Vec<FieldError> {
    let old = old.map(|value| Old { schema, value });
    Validator { base, in_definition: false, work: &Work::default() }.run(schema, value, old)
}

/// Checks a default of a definition below `base`; the work is counted for all of them together.
///
/// The original makes its validator of defaults from the structural schema rather than from the
/// one that was sent, and loses on the way that an int-or-string has types.
pub(super) fn default(
    schema: &Schema,
    value: &Value,
    base: &FieldPath,
    work: &Work,
) -> Vec<FieldError> {
    Validator { base, in_definition: true, work }.run(schema, value, None)
}

struct Validator<'a> {
    base: &'a FieldPath,
    /// Whether the value is a default.
    in_definition: bool,
    /// Once it is spent nothing is looked at.
    work: &'a Work,
}

impl Validator<'_> {
    fn run(&self, schema: &Schema, value: &Value, old: Option<Old<'_>>) -> Vec<FieldError> {
        let outcome = self.check(schema, value, old, &Trail::default());
        if !self.work.is_spent() {
            return outcome.errors.into_vec();
        }
        let error = self.composite(work::too_much());
        vec![FieldError { kind: FieldErrorKind::Forbidden, ..error }]
    }

    fn check(
        &self,
        schema: &Schema,
        value: &Value,
        old: Option<Old<'_>>,
        trail: &Trail<'_>,
    ) -> Outcome {
        let mut outcome = self.check_now(schema, value, old, trail);
        if !outcome.errors.is_empty()
            && let Some(old) = old
        {
            self.work.charge(parts(value));
            if !self.work.is_spent() && old.is(value) {
                outcome.errors = FieldErrors::default();
            }
        }
        outcome
    }

    fn check_now(
        &self,
        schema: &Schema,
        value: &Value,
        old: Option<Old<'_>>,
        trail: &Trail<'_>,
    ) -> Outcome {
        let mut out = Outcome::default();
        self.work.charge(1);
        if self.work.is_spent() {
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
        self.work.charge((field.len() + detail.len()) / BYTES);
        FieldError { field, kind, detail }
    }

    /// An error that names no field, only the object.
    fn composite(&self, detail: String) -> FieldError {
        // Go prints the path of nothing so, and clients see it in the causes.
        let field = match self.base.as_str() {
            "" => "<nil>".to_owned(),
            base => base.to_owned(),
        };
        self.work.charge(detail.len() / BYTES);
        FieldError { field, kind: FieldErrorKind::Invalid("".into()), detail }
    }

    fn check_type(&self, schema: &Schema, value: &Value, trail: &Trail<'_>, out: &mut Outcome) {
        let format = schema.rules.as_ref().and_then(|rules| rules.format.as_ref());
        let int_or_string = schema.int_or_string && !self.in_definition;
        if schema.kind.is_none() && !int_or_string && format.is_none() {
            return;
        }
        let wrong = |wanted: &str, found: &str| {
            let kind = FieldErrorKind::TypeInvalid(found.to_owned());
            self.error(
                trail,
                kind,
                format!("{trail} in body must be of type {wanted}: {}", quote(found)),
            )
        };
        let wanted = || {
            if int_or_string { "integer,string" } else { schema.kind.map_or("", Kind::as_str) }
        };
        if value.is_null() {
            if (schema.kind.is_some() || int_or_string) && !schema.nullable {
                out.add(wrong(wanted(), "null"));
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
                // The original names the machine's format of the value here.
                let machine = match found {
                    Kind::Integer => "int64",
                    Kind::Number => "float64",
                    _ => "",
                };
                out.add(wrong(&format.name, machine));
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
            out.add(wrong(wanted(), found.as_str()));
            out.passed += 1;
        }
    }

    fn check_alternatives(
        &self,
        rules: &Rules,
        value: &Value,
        old: Option<Old<'_>>,
        trail: &Trail<'_>,
        out: &mut Outcome,
    ) {
        if !rules.any_of.is_empty() {
            let mut best: Option<Outcome> = None;
            let mut valid = None;
            for schema in &rules.any_of {
                let tried = self.check(schema, value, old, trail);
                if tried.errors.is_empty() {
                    valid = Some(tried);
                    break;
                }
                if best.as_ref().is_none_or(|best| tried.passed > best.passed) {
                    best = Some(tried);
                }
            }
            if valid.is_none() {
                let name = quote(&trail.to_string());
                out.add(
                    self.composite(format!("{name} must validate at least one schema (anyOf)")),
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
                let tried = self.check(schema, value, old, trail);
                valid += usize::from(tried.errors.is_empty());
                out.merge(tried);
            }
            if valid != rules.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                let name = quote(&trail.to_string());
                out.add(
                    self.composite(format!("{name} must validate all the schemas (allOf){none}")),
                );
            }
        }
        if let Some(not) = &rules.not
            && self.check(not, value, old, trail).errors.is_empty()
        {
            let name = quote(&trail.to_string());
            out.add(self.composite(format!("{name} must not validate the schema (not)")));
        }
    }

    fn check_one_of(
        &self,
        rules: &Rules,
        value: &Value,
        old: Option<Old<'_>>,
        trail: &Trail<'_>,
        out: &mut Outcome,
    ) {
        let mut best: Option<Outcome> = None;
        let mut first = None;
        let mut valid = 0;
        for schema in &rules.one_of {
            let tried = self.check(schema, value, old, trail);
            if tried.errors.is_empty() {
                valid += 1;
                best = None;
                first.get_or_insert(tried);
            } else if valid == 0 && best.as_ref().is_none_or(|best| tried.passed > best.passed) {
                best = Some(tried);
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
        out.add(
            self.composite(format!(
                "{name} must validate one and only one schema (oneOf). {found}"
            )),
        );
        out.merge(best.unwrap_or_default());
    }

    fn check_allowed(&self, rules: &Rules, value: &Value, trail: &Trail<'_>, out: &mut Outcome) {
        if mainstay_fault::is_on("enums-are-not-checked") {
            return;
        }
        self.work.charge(rules.allowed.len() / BYTES);
        if self.work.is_spent()
            || rules.allowed.is_empty()
            || rules.allowed.iter().any(|allowed| same(allowed, value))
        {
            return;
        }
        self.work.charge(rules.allowed.iter().map(length).sum::<usize>() / BYTES);
        let texts = rules.allowed.iter().map(|allowed| match allowed {
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
        self.work.charge(text.len() / 64);
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
            && !pattern.matches(text, self.work)
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
        // Integers are held against the integer part of a bound, as in the original.
        let integer = number.is_i64();
        let bound = |bound: f64| if integer { bound.trunc() } else { bound };
        #[expect(clippy::cast_possible_truncation, reason = "the integer part is meant")]
        let told = |bound: f64| if integer { (bound as i64).to_string() } else { float(bound) };
        if let Some(factor) = rules.multiple_of {
            let factor = bound(factor);
            if factor <= 0.0 {
                let shown = told(factor);
                let rule =
                    format!("factor MultipleOf declared for {trail} must be positive: {shown}");
                out.add(self.error(trail, FieldErrorKind::Invalid(factor.into()), rule));
            } else if !is_multiple(value, factor) {
                let rule = format!("should be a multiple of {}", told(factor));
                out.add(self.invalid(trail, Value::Number(number.clone()), &rule));
            }
        }
        if let Some(min) = rules.minimum.map(bound)
            && (value < min || (rules.exclusive_minimum && value <= min))
        {
            let or_equal = if rules.exclusive_minimum { "" } else { "or equal to " };
            let rule = format!("should be greater than {or_equal}{}", told(min));
            out.add(self.invalid(trail, Value::Number(number.clone()), &rule));
        }
        if let Some(max) = rules.maximum.map(bound)
            && (value > max || (rules.exclusive_maximum && value >= max))
        {
            let or_equal = if rules.exclusive_maximum { "" } else { "or equal to " };
            let rule = format!("should be less than {or_equal}{}", told(max));
            out.add(self.invalid(trail, Value::Number(number.clone()), &rule));
        }
    }

    fn check_items(
        &self,
        schema: &Schema,
        items: &[Value],
        old: Option<Old<'_>>,
        trail: &Trail<'_>,
        out: &mut Outcome,
    ) {
        if let Some(below) = &schema.items {
            let olds = old.and_then(Old::elements);
            for (at, item) in items.iter().enumerate() {
                let old = old.zip(olds.as_ref()).and_then(|(old, olds)| {
                    Some(Old { schema: old.schema.items.as_deref()?, value: olds.get(item)? })
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
        old: Option<Old<'_>>,
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
        self.work.charge(required.len() / BYTES);
        for name in required {
            if self.work.is_spent() {
                return;
            }
            if !fields.contains_key(&**name) {
                let trail = trail.then(Step::Field(name));
                out.add(self.error(&trail, FieldErrorKind::Required, String::new()));
            }
        }
    }
}

/// How many values a value has, itself included.
fn parts(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(parts).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(parts).sum::<usize>(),
        _ => 1,
    }
}

/// About how long an alternative is in a message.
fn length(allowed: &Value) -> usize {
    match allowed {
        Value::String(text) => text.len(),
        other => BYTES * parts(other),
    }
}
