//! Requirements as conditions on one candidate.

use crate::go_json;
use crate::property::Facts;
use crate::property::{Api, GoFields, go_error};
use crate::rule::{self, Rule};
use crate::snapshot::Entry;
use mainstay_gocompat::quote;
use mainstay_gocompat::values::json_kind;
use mainstay_version::Range;
use serde_json::{Value, json};
use std::fmt;

/// The greatest `olm.constraint` that is read, in bytes.
const MAX_CONSTRAINT: usize = 131_072;

/// A condition on one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Predicate {
    /// Provides a kind.
    Api(Api),
    /// Is of a package.
    Package(String),
    /// Has a version inside a range.
    InRange(Range),
    /// Has a label.
    Label(String),
    /// Every one holds.
    All(Vec<Self>),
    /// One holds at least.
    Any(Vec<Self>),
    /// None holds.
    Not(Vec<Self>),
    /// A rule in the Common Expression Language.
    Cel {
        /// The rule.
        rule: Rule,
        /// What its author says when nothing satisfies it.
        message: String,
    },
    /// A condition with what its author says when nothing satisfies it. The original's texts leave
    /// that out; explanations tell it.
    Said {
        /// What the author says; not empty.
        message: String,
        /// The condition.
        inner: Box<Self>,
    },
}

impl Predicate {
    /// Whether it holds for a candidate; `steps` grows by what it takes to find out.
    pub(crate) fn holds(&self, entry: &Entry, facts: &Facts, steps: &mut u64) -> bool {
        *steps += 1;
        match self {
            Self::Api(api) => {
                *steps += facts.apis.len() as u64;
                facts.apis.contains(api)
            }
            Self::Package(package) => {
                *entry.package == **package
                    || facts.packages.iter().any(|(name, _)| name == package)
            }
            Self::InRange(range) => {
                let mut versions =
                    facts.packages.iter().filter_map(|(_, version)| version.as_ref());
                versions.any(|version| range.contains(version))
                    || entry.version.as_ref().is_some_and(|version| range.contains(version))
            }
            Self::Label(label) => facts.labels.contains(label),
            Self::All(all) => all.iter().all(|one| one.holds(entry, facts, steps)),
            Self::Any(any) => any.iter().any(|one| one.holds(entry, facts, steps)),
            Self::Not(none) => !none.iter().any(|one| one.holds(entry, facts, steps)),
            Self::Cel { rule, .. } => rule::holds(rule, facts.told(), steps),
            Self::Said { inner, .. } => inner.holds(entry, facts, steps),
        }
    }
}

impl fmt::Display for Predicate {
    /// The text behind "requires an operator".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Api(Api { group, version, kind }) => {
                write!(f, "providing an API with group: {group}, version: {version}, kind: {kind}")
            }
            Self::Package(package) => write!(f, "with package: {package}"),
            Self::InRange(range) => write!(f, "with version in range: {range}"),
            Self::Label(label) => write!(f, "with label: {label}"),
            Self::All(all) => join(f, all, " and "),
            Self::Any(any) => join(f, any, " or "),
            // The original says "not" between the parts only.
            Self::Not(none) => join(f, none, " and not "),
            Self::Said { inner, .. } => fmt::Display::fmt(inner, f),
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

/// The requirement that a property states; none if its type is not one of requirements.
///
/// Errors are the original's texts.
pub(crate) fn from_property(kind: &str, json: &str) -> Option<Result<Predicate, String>> {
    Some(match kind {
        "olm.gvk.required" => gvk(json),
        "olm.package.required" => package(json, "versionRange"),
        "olm.label.required" => label(json),
        "olm.constraint" => constraint(json),
        _ => return None,
    })
}

/// The requirement that an older dependency states. The outer error drops the whole bundle.
pub(crate) fn from_legacy(
    kind: &str,
    json: &str,
) -> Result<Option<Result<Predicate, String>>, String> {
    match kind {
        "olm.gvk" => gvk(json).map(|it| Some(Ok(it))),
        "olm.package" => {
            // The value must decode; its range is judged when the bundle is looked at.
            object(json, "struct").and_then(|value| {
                let fields = GoFields::new_or_null(&value).ok_or_else(String::new)?;
                fields.text("packageName")?;
                fields.text("version").map(|_| ())
            })?;
            Ok(Some(package(json, "version")))
        }
        "olm.label" => Ok(Some(label(json))),
        "olm.constraint" => Ok(Some(constraint(json))),
        _ => Ok(None),
    }
}

/// The value of a requirement in the older form, in the form that properties have.
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

fn gvk(json: &str) -> Result<Predicate, String> {
    let value = object(
        json,
        "struct { Group string \"json:\\\"group\\\"\"; Version string \"json:\\\"version\\\"\"; \
         Kind string \"json:\\\"kind\\\"\" }",
    )?;
    let fields = GoFields::new_or_null(&value).ok_or_else(String::new)?;
    Api::from_fields(&fields).map(Predicate::Api)
}

fn package(json: &str, range: &str) -> Result<Predicate, String> {
    let value = object(
        json,
        "struct { PackageName string \"json:\\\"packageName\\\"\"; VersionRange string \
         \"json:\\\"versionRange\\\"\" }",
    )?;
    let fields = GoFields::new_or_null(&value).ok_or_else(String::new)?;
    package_in_range(fields.text("packageName")?, &fields.text(range)?)
}

fn package_in_range(package: String, range: &str) -> Result<Predicate, String> {
    let range = Range::parse(range).map_err(|error| error.to_string())?;
    Ok(Predicate::All(vec![Predicate::Package(package), Predicate::InRange(range)]))
}

fn label(json: &str) -> Result<Predicate, String> {
    let value = object(json, "struct { Label string \"json:\\\"label\\\"\" }")?;
    let fields = GoFields::new_or_null(&value).ok_or_else(String::new)?;
    fields.text("label").map(Predicate::Label)
}

/// A JSON object or null; `target` is the Go type that errors name.
fn object(json: &str, target: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(json).map_err(|error| go_error(json, &error))?;
    if value.is_object() || value.is_null() {
        return Ok(value);
    }
    Err(format!("json: cannot unmarshal {} into Go value of type {target}", json_kind(&value)))
}

fn constraint(json: &str) -> Result<Predicate, String> {
    if json.len() > MAX_CONSTRAINT {
        return Err(format!(
            "parse olm.constraint: olm.constraint value is greater than max constraint size \
             {MAX_CONSTRAINT} bytes"
        ));
    }
    // Only the first value is read; text behind it is noticed when the properties are written.
    let value = match serde_json::Deserializer::from_str(json).into_iter::<Value>().next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => {
            let fault = go_json::fault_of_first(json).unwrap_or_else(|| error.to_string());
            return Err(format!("parse olm.constraint: {fault}"));
        }
        None => return Err("parse olm.constraint: EOF".to_owned()),
    };
    // The JSON reader bounds the depth: what nests deeper than 127 levels is not read.
    check_fields(&value, Spot { around: "", path: "" })
        .map_err(|reason| format!("parse olm.constraint: {reason}"))?;
    tree(&value).map_err(|reason| format!("convert olm.constraint to resolver predicate: {reason}"))
}

/// Where a value stands in a constraint, as Go's decoder tells it: the type around it, and the
/// fields on the way.
#[derive(Clone, Copy)]
struct Spot<'s> {
    around: &'s str,
    path: &'s str,
}

impl Spot<'_> {
    fn wrong(self, value: &Value, target: &str) -> String {
        let (kind, Self { around, path }) = (json_kind(value), self);
        if path.is_empty() {
            return format!("json: cannot unmarshal {kind} into Go value of type {target}");
        }
        format!(
            "json: cannot unmarshal {kind} into Go struct field {around}.{path} of type {target}"
        )
    }

    /// The path to a field below.
    fn to(self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }
}

/// Refuses fields that no constraint has, and values of the wrong type.
fn check_fields(value: &Value, spot: Spot<'_>) -> Result<(), String> {
    let fields = match value {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        other => return Err(spot.wrong(other, "constraints.Constraint")),
    };
    for (key, value) in fields {
        let known = ["failureMessage", "gvk", "package", "cel", "all", "any", "not"]
            .into_iter()
            .find(|name| name.eq_ignore_ascii_case(key))
            .ok_or_else(|| format!("json: unknown field {}", quote(key)))?;
        let path = spot.to(known);
        let spot = Spot { around: "Constraint", path: &path };
        match known {
            "failureMessage" if value.is_string() || value.is_null() => {}
            "failureMessage" => return Err(spot.wrong(value, "string")),
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

/// The same for a struct of texts.
fn check_texts(value: &Value, spot: Spot<'_>, name: &str, known: &[&str]) -> Result<(), String> {
    let fields = match value {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        other => return Err(spot.wrong(other, &format!("constraints.{name}"))),
    };
    for (key, value) in fields {
        let field = known
            .iter()
            .find(|name| name.eq_ignore_ascii_case(key))
            .ok_or_else(|| format!("json: unknown field {}", quote(key)))?;
        if !value.is_string() && !value.is_null() {
            return Err(Spot { around: name, path: &spot.to(field) }.wrong(value, "string"));
        }
    }
    Ok(())
}

/// The same for a list of constraints.
fn check_compound(value: &Value, spot: Spot<'_>) -> Result<(), String> {
    let fields = match value {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        other => return Err(spot.wrong(other, "constraints.CompoundConstraint")),
    };
    for (key, value) in fields {
        if !key.eq_ignore_ascii_case("constraints") {
            return Err(format!("json: unknown field {}", quote(key)));
        }
        let path = spot.to("constraints");
        let spot = Spot { around: "CompoundConstraint", path: &path };
        match value {
            Value::Null => {}
            Value::Array(children) => {
                for child in children {
                    check_fields(child, spot)?;
                }
            }
            other => return Err(spot.wrong(other, "[]constraints.Constraint")),
        }
    }
    Ok(())
}

/// The condition that a constraint states. Of several keys the first of this order counts.
fn tree(value: &Value) -> Result<Predicate, String> {
    let empty = || "constraint is empty".to_owned();
    let fields = GoFields::new_or_null(value).ok_or_else(empty)?;
    let message = fields.text("failureMessage")?;
    let given = |name| fields.get(name).filter(|value| !value.is_null());
    let inner = |value: &Value| {
        GoFields::new_or_null(value)
            .and_then(|fields| fields.get("constraints"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(tree)
            .collect::<Result<Vec<_>, _>>()
    };
    let condition = if let Some(gvk) = given("gvk").and_then(GoFields::new_or_null) {
        Predicate::Api(Api::from_fields(&gvk)?)
    } else if let Some(package) = given("package").and_then(GoFields::new_or_null) {
        package_in_range(package.text("packageName")?, &package.text("versionRange")?)?
    } else if let Some(all) = given("all") {
        Predicate::All(inner(all)?)
    } else if let Some(any) = given("any") {
        Predicate::Any(inner(any)?)
    } else if let Some(not) = given("not") {
        Predicate::Not(inner(not)?)
    } else if let Some(cel) = given("cel").and_then(GoFields::new_or_null) {
        let rule = Rule::parse(&cel.text("rule")?).map_err(|error| error.to_string())?;
        return Ok(Predicate::Cel { rule, message });
    } else {
        return Err(empty());
    };
    Ok(if message.is_empty() {
        condition
    } else {
        Predicate::Said { message, inner: Box::new(condition) }
    })
}
