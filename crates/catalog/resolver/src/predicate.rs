//! Requirements of bundles as predicates on one candidate; the decoder of `olm.gvk.required`,
//! `olm.package.required`, `olm.label.required` and `olm.constraint`.

use crate::go_json::{self, JsonError};
use crate::property::Facts;
use crate::property::{GoFields, OperatorApi};
use crate::rule::{self, CelRule};
use mainstay_bundle::TypeError;
use mainstay_bundle::cel_rule::CelRuleError;
use mainstay_gocompat::quote;
use mainstay_gocompat::values::json_kind;
use mainstay_version::{Range, RangeError, Version};
use serde_json::{Value, json};
use std::fmt;

/// The maximal size of an `olm.constraint`, in bytes.
const MAX_CONSTRAINT: usize = 131_072;

/// A condition on one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Predicate {
    /// Provides an API.
    Api(OperatorApi),
    /// Belongs to a package.
    Package(String),
    /// Has a version inside a range.
    InRange(Range),
    /// Has a label.
    Label(String),
    /// All of these hold.
    All(Vec<Self>),
    /// At least one of these holds.
    Any(Vec<Self>),
    /// None of these holds.
    Not(Vec<Self>),
    /// A rule in the Common Expression Language.
    Cel {
        /// The rule.
        rule: CelRule,
        /// The `failureMessage` of the author.
        message: String,
    },
    /// A condition with the `failureMessage` of its author. Messages leave it out, as those of
    /// upstream do; explanations show it.
    WithMessage {
        /// The `failureMessage`; not empty.
        message: String,
        /// The condition.
        inner: Box<Self>,
    },
}

impl Predicate {
    /// Whether it holds for a candidate: its package and version beside its properties, and these. Adds the
    /// cost to `steps`.
    pub(crate) fn holds(
        &self,
        candidate: (&str, Option<&Version>),
        facts: &Facts,
        steps: &mut u64,
    ) -> bool {
        *steps += 1;
        match self {
            Self::Api(api) => {
                *steps += facts.apis.len() as u64;
                facts.apis.contains(api)
            }
            Self::Package(package) => {
                candidate.0 == package || facts.packages.iter().any(|(name, _)| name == package)
            }
            Self::InRange(range) => {
                let mut versions =
                    facts.packages.iter().filter_map(|(_, version)| version.as_ref());
                versions.any(|version| range.contains(version))
                    || candidate.1.is_some_and(|version| range.contains(version))
            }
            Self::Label(label) => facts.labels.contains(label),
            Self::All(all) => all.iter().all(|one| one.holds(candidate, facts, steps)),
            Self::Any(any) => any.iter().any(|one| one.holds(candidate, facts, steps)),
            Self::Not(none) => !none.iter().any(|one| one.holds(candidate, facts, steps)),
            Self::Cel { rule, .. } => rule::holds(rule, facts.cel_input(), steps),
            Self::WithMessage { inner, .. } => inner.holds(candidate, facts, steps),
        }
    }
}

impl fmt::Display for Predicate {
    /// The text behind "requires an operator".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api(OperatorApi { group, version, kind }) => {
                write!(f, "providing an API with group: {group}, version: {version}, kind: {kind}")
            }
            Self::Package(package) => write!(f, "with package: {package}"),
            Self::InRange(range) => write!(f, "with version in range: {range}"),
            Self::Label(label) => write!(f, "with label: {label}"),
            Self::All(all) => join(f, all, " and "),
            Self::Any(any) => join(f, any, " or "),
            // Upstream writes "not" only between the parts.
            Self::Not(none) => join(f, none, " and not "),
            Self::WithMessage { inner, .. } => fmt::Display::fmt(inner, f),
            Self::Cel { rule, message } => {
                write!(f, "with constraint: {} and message: {}", quote(rule.text()), quote(message))
            }
        }
    }
}

fn join(f: &mut fmt::Formatter<'_>, parts: &[Predicate], by: &str) -> fmt::Result {
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            f.write_str(by)?;
        }
        fmt::Display::fmt(part, f)?;
    }
    Ok(())
}

/// Why a requirement cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequirementError {
    /// The value is not JSON.
    #[error(transparent)]
    ParseJson(#[from] JsonError),
    /// The value, or a field of it, has another type.
    #[error(transparent)]
    Decode(#[from] TypeError),
    /// The range of versions is invalid.
    #[error(transparent)]
    ParseRange(#[from] RangeError),
    /// A constraint cannot be read.
    #[error("parse olm.constraint: {0}")]
    ParseConstraint(ConstraintError),
    /// A constraint states no condition.
    #[error("convert olm.constraint to resolver predicate: {0}")]
    ConvertConstraint(ConditionError),
}

/// Why a constraint cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConstraintError {
    /// The text is longer than the maximal size.
    #[error("olm.constraint value is greater than max constraint size {MAX_CONSTRAINT} bytes")]
    TooLong,
    /// The text is not JSON.
    #[error(transparent)]
    ParseJson(#[from] JsonError),
    /// A value has another type than its field.
    #[error(transparent)]
    Decode(#[from] TypeError),
    /// A constraint has no field of that name.
    #[error("json: unknown field {}", quote(.0))]
    UnknownField(String),
}

/// Why a constraint states no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConditionError {
    /// The constraint has none of the fields that state a condition.
    #[error("constraint is empty")]
    Empty,
    /// A field has another type.
    #[error(transparent)]
    Decode(#[from] TypeError),
    /// The range of versions is invalid.
    #[error(transparent)]
    ParseRange(#[from] RangeError),
    /// The rule cannot be compiled.
    #[error(transparent)]
    ParseRule(#[from] CelRuleError),
}

/// The requirement of a property; none if the type of the property is not one of requirements.
pub(crate) fn from_property(kind: &str, json: &str) -> Option<Result<Predicate, RequirementError>> {
    Some(match kind {
        "olm.gvk.required" => gvk(json),
        "olm.package.required" => package(json, "versionRange"),
        "olm.label.required" => label(json),
        "olm.constraint" => constraint(json),
        _ => return None,
    })
}

/// The requirement of a dependency in the older form. The outer error drops the whole bundle.
pub(crate) fn from_legacy(
    kind: &str,
    json: &str,
) -> Result<Option<Result<Predicate, RequirementError>>, RequirementError> {
    match kind {
        "olm.gvk" => gvk(json).map(|requirement| Some(Ok(requirement))),
        "olm.package" => {
            // The value must decode. An invalid range is an error of the requirement only.
            let value = object(json, "struct")?;
            let fields = GoFields::lenient(&value);
            fields.text("packageName")?;
            fields.text("version")?;
            Ok(Some(package(json, "version")))
        }
        "olm.label" => Ok(Some(label(json))),
        "olm.constraint" => Ok(Some(constraint(json))),
        _ => Ok(None),
    }
}

/// Converts the value of a dependency in the older form to the value of a property.
pub(crate) fn modern(kind: &str, json: &str) -> String {
    let fields: Value = serde_json::from_str(json).unwrap_or_default();
    let text = |name| {
        GoFields::new_or_null(&fields).and_then(|fields| fields.text(name).ok()).unwrap_or_default()
    };
    match kind {
        "olm.gvk" => {
            let (group, version) = (text("group"), text("version"));
            json!({"group": group, "version": version, "kind": text("kind")}).to_string()
        }
        "olm.package" => {
            let range = text("version");
            json!({"packageName": text("packageName"), "versionRange": range}).to_string()
        }
        _ => json.to_owned(),
    }
}

fn gvk(json: &str) -> Result<Predicate, RequirementError> {
    let value = object(
        json,
        "struct { Group string \"json:\\\"group\\\"\"; Version string \"json:\\\"version\\\"\"; \
         Kind string \"json:\\\"kind\\\"\" }",
    )?;
    let fields = GoFields::lenient(&value);
    Ok(Predicate::Api(OperatorApi::from_fields(&fields)?))
}

fn package(json: &str, range: &str) -> Result<Predicate, RequirementError> {
    let value = object(
        json,
        "struct { PackageName string \"json:\\\"packageName\\\"\"; VersionRange string \
         \"json:\\\"versionRange\\\"\" }",
    )?;
    let fields = GoFields::lenient(&value);
    let package = fields.text("packageName")?;
    Ok(package_in_range(package, &fields.text(range)?)?)
}

fn package_in_range(package: String, range: &str) -> Result<Predicate, RangeError> {
    let range = Range::parse(range)?;
    Ok(Predicate::All(vec![Predicate::Package(package), Predicate::InRange(range)]))
}

fn label(json: &str) -> Result<Predicate, RequirementError> {
    let value = object(json, "struct { Label string \"json:\\\"label\\\"\" }")?;
    let fields = GoFields::lenient(&value);
    Ok(Predicate::Label(fields.text("label")?))
}

/// A JSON object or null; `target` is the Go type that errors name.
fn object(json: &str, target: &str) -> Result<Value, RequirementError> {
    let value: Value = serde_json::from_str(json).map_err(|error| JsonError::of(json, &error))?;
    if value.is_object() || value.is_null() {
        return Ok(value);
    }
    let (found, expected) = (json_kind(&value).to_owned(), target.to_owned());
    Err(TypeError::WrongValue { found, expected }.into())
}

fn constraint(json: &str) -> Result<Predicate, RequirementError> {
    let value = parse_constraint(json).map_err(RequirementError::ParseConstraint)?;
    tree(&value).map_err(RequirementError::ConvertConstraint)
}

fn parse_constraint(json: &str) -> Result<Value, ConstraintError> {
    if json.len() > MAX_CONSTRAINT {
        return Err(ConstraintError::TooLong);
    }
    // Only the first value is read. Text after it is an error when the properties are serialized.
    let value = match serde_json::Deserializer::from_str(json).into_iter::<Value>().next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => {
            let fault = go_json::fault_of_first(json);
            return Err(fault.unwrap_or_else(|| JsonError::Unsupported(error.to_string())).into());
        }
        None => return Err(JsonError::NoValue.into()),
    };
    // The JSON parser refuses values that nest deeper than 127 levels.
    check_fields(&value, Spot { around: "", path: "" })?;
    Ok(value)
}

/// The position of a value in a constraint, as errors of Go's decoder name it: the Go type around
/// it, and the path of fields.
#[derive(Clone, Copy)]
struct Spot<'s> {
    around: &'static str,
    path: &'s str,
}

impl Spot<'_> {
    fn type_error(self, value: &Value, target: &str) -> ConstraintError {
        let (found, expected) = (json_kind(value).to_owned(), target.to_owned());
        let Self { around: owner, path } = self;
        ConstraintError::Decode(if path.is_empty() {
            TypeError::WrongValue { found, expected }
        } else {
            TypeError::WrongField { found, owner, path: path.to_owned(), expected }
        })
    }

    /// The path to a field below.
    fn path_to(self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }
}

/// Refuses fields that no constraint has, and values of the wrong type.
fn check_fields(value: &Value, spot: Spot<'_>) -> Result<(), ConstraintError> {
    let fields = match value {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        other => return Err(spot.type_error(other, "constraints.Constraint")),
    };
    for (key, value) in fields {
        let known = ["failureMessage", "gvk", "package", "cel", "all", "any", "not"]
            .into_iter()
            .find(|name| name.eq_ignore_ascii_case(key))
            .ok_or_else(|| ConstraintError::UnknownField(key.clone()))?;
        let path = spot.path_to(known);
        let spot = Spot { around: "Constraint", path: &path };
        match known {
            "failureMessage" if value.is_string() || value.is_null() => {}
            "failureMessage" => return Err(spot.type_error(value, "string")),
            "gvk" => check_texts(value, spot, "GVKConstraint", &["group", "version", "kind"])?,
            "package" => {
                check_texts(value, spot, "PackageConstraint", &["packageName", "versionRange"])?;
            }
            "cel" => check_texts(value, spot, "Cel", &["rule"])?,
            _ => check_compound(value, spot)?,
        }
    }
    Ok(())
}

/// Refuses unknown fields, and values that are not strings, in a struct of strings.
fn check_texts(
    value: &Value,
    spot: Spot<'_>,
    name: &'static str,
    known: &[&str],
) -> Result<(), ConstraintError> {
    let fields = match value {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        other => return Err(spot.type_error(other, &format!("constraints.{name}"))),
    };
    for (key, value) in fields {
        let field = known
            .iter()
            .find(|name| name.eq_ignore_ascii_case(key))
            .ok_or_else(|| ConstraintError::UnknownField(key.clone()))?;
        if !value.is_string() && !value.is_null() {
            return Err(
                Spot { around: name, path: &spot.path_to(field) }.type_error(value, "string")
            );
        }
    }
    Ok(())
}

/// Checks the fields of each constraint of a list.
fn check_compound(value: &Value, spot: Spot<'_>) -> Result<(), ConstraintError> {
    let fields = match value {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        other => return Err(spot.type_error(other, "constraints.CompoundConstraint")),
    };
    for (key, value) in fields {
        if !key.eq_ignore_ascii_case("constraints") {
            return Err(ConstraintError::UnknownField(key.clone()));
        }
        let path = spot.path_to("constraints");
        let spot = Spot { around: "CompoundConstraint", path: &path };
        match value {
            Value::Null => {}
            Value::Array(children) => {
                for child in children {
                    check_fields(child, spot)?;
                }
            }
            other => return Err(spot.type_error(other, "[]constraints.Constraint")),
        }
    }
    Ok(())
}

/// The condition of a constraint. Of several fields, the first one in this order counts.
fn tree(value: &Value) -> Result<Predicate, ConditionError> {
    let fields = GoFields::new_or_null(value).ok_or(ConditionError::Empty)?;
    let message = fields.text("failureMessage")?;
    let field = |name| fields.get(name).filter(|value| !value.is_null());
    let inner = |value: &Value| {
        GoFields::new_or_null(value)
            .and_then(|fields| fields.get("constraints"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(tree)
            .collect::<Result<Vec<_>, _>>()
    };
    let condition = if let Some(gvk) = field("gvk").and_then(GoFields::new_or_null) {
        Predicate::Api(OperatorApi::from_fields(&gvk)?)
    } else if let Some(package) = field("package").and_then(GoFields::new_or_null) {
        package_in_range(package.text("packageName")?, &package.text("versionRange")?)?
    } else if let Some(all) = field("all") {
        Predicate::All(inner(all)?)
    } else if let Some(any) = field("any") {
        Predicate::Any(inner(any)?)
    } else if let Some(not) = field("not") {
        Predicate::Not(inner(not)?)
    } else if let Some(cel) = field("cel").and_then(GoFields::new_or_null) {
        let rule = CelRule::parse(&cel.text("rule")?)?;
        return Ok(Predicate::Cel { rule, message });
    } else {
        return Err(ConditionError::Empty);
    };
    Ok(if message.is_empty() {
        condition
    } else {
        Predicate::WithMessage { message, inner: Box::new(condition) }
    })
}
