//! Requirements: their decoder, their evaluation on one entry, and their text.

use crate::json::{self, Fields};
use crate::properties::BundleProperties;
use mainstay_cel::library::{self, FunctionLibrary, Overload};
use mainstay_cel::types::Type;
use mainstay_cel::value::{Error, Value as CelValue, ValueResult, WorkBudget};
use mainstay_cel::{CostBudget, Env, EnvOptions, Program};
use mainstay_gocompat::quote;
use mainstay_resolver::OperatorApi;
use mainstay_version::{Range, Version, parse_tolerant};
use serde_json::Value;
use std::fmt;
use std::rc::Rc;

/// The maximal size of an `olm.constraint`, in bytes (AT-RES-09 as ruled).
const LONGEST: usize = 131_072;

/// The maximal cost of one CEL rule on one bundle.
const CEL_BUDGET: u64 = 100_000_000;

/// A condition on one entry.
#[derive(Clone)]
pub(crate) enum Requirement {
    Api(OperatorApi),
    Package(String),
    InRange(Range),
    Label(String),
    All(Vec<Self>),
    Any(Vec<Self>),
    NoneOf(Vec<Self>),
    Rule { text: String, program: Rc<Program>, message: String },
}

/// A requirement that cannot be read.
#[derive(Debug)]
pub(crate) struct Unreadable;

impl From<json::ShapeError> for Unreadable {
    fn from(_: json::ShapeError) -> Self {
        Self
    }
}

impl Requirement {
    /// The requirement of a property; none if the property states no requirement.
    pub(crate) fn read(kind: &str, json: &str) -> Option<Result<Self, Unreadable>> {
        match kind {
            "olm.gvk.required" => {
                Some(json::parse(json).map_err(Into::into).and_then(|value| api(&value)))
            }
            "olm.label.required" => Some(
                json::parse(json)
                    .map_err(Into::into)
                    .and_then(|value| Ok(Self::Label(Fields::of(&value)?.text("label")?))),
            ),
            "olm.package.required" => {
                Some(json::parse(json).map_err(Into::into).and_then(|value| package(&value)))
            }
            "olm.constraint" => Some(constraint_text(json)),
            _ => None,
        }
    }

    /// Whether an entry with this package, version and properties meets it.
    pub(crate) fn met_by(
        &self,
        package: &str,
        version: Option<&Version>,
        properties: &BundleProperties,
    ) -> bool {
        match self {
            Self::Api(api) => properties.apis.contains(api),
            Self::Package(name) => {
                name == package || properties.packages.iter().any(|(other, _)| other == name)
            }
            Self::InRange(range) => {
                properties
                    .packages
                    .iter()
                    .filter_map(|(_, version)| version.as_ref())
                    .any(|version| range.contains(version))
                    || version.is_some_and(|version| range.contains(version))
            }
            Self::Label(label) => properties.labels.contains(label),
            Self::All(parts) => parts.iter().all(|part| part.met_by(package, version, properties)),
            Self::Any(parts) => parts.iter().any(|part| part.met_by(package, version, properties)),
            Self::NoneOf(parts) => {
                !parts.iter().any(|part| part.met_by(package, version, properties))
            }
            Self::Rule { program, .. } => {
                let variables = [("properties", CelValue::from_json(&properties.decoded))];
                let result = program.eval(&variables, &mut CostBudget::new(CEL_BUDGET));
                matches!(result, Ok(CelValue::Bool(true)))
            }
        }
    }
}

impl Requirement {
    /// A text that identifies the requirement.
    pub(crate) fn shape(&self) -> String {
        let all = |name: &str, parts: &[Self]| {
            let parts: Vec<String> = parts.iter().map(Self::shape).collect();
            format!("{name}([{}])", parts.join(", "))
        };
        match self {
            Self::Api(api) => format!("Api({api:?})"),
            Self::Package(name) => format!("Package({name:?})"),
            Self::InRange(range) => format!("InRange({:?})", range.as_str()),
            Self::Label(label) => format!("Label({label:?})"),
            Self::All(parts) => all("All", parts),
            Self::Any(parts) => all("Any", parts),
            Self::NoneOf(parts) => all("Not", parts),
            Self::Rule { text, message, .. } => format!("Cel({text:?}, {message:?})"),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |parts: &[Self], by: &str| {
            parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(by)
        };
        match self {
            Self::Api(api) => {
                let OperatorApi { group, version, kind } = api;
                write!(f, "providing an API with group: {group}, version: {version}, kind: {kind}")
            }
            Self::Package(name) => write!(f, "with package: {name}"),
            Self::InRange(range) => write!(f, "with version in range: {}", range.as_str()),
            Self::Label(label) => write!(f, "with label: {label}"),
            Self::All(parts) => f.write_str(&joined(parts, " and ")),
            Self::Any(parts) => f.write_str(&joined(parts, " or ")),
            Self::NoneOf(parts) => f.write_str(&joined(parts, " and not ")),
            Self::Rule { text, message, .. } => {
                write!(f, "with constraint: {} and message: {}", quote(text), quote(message))
            }
        }
    }
}

fn api(value: &Value) -> Result<Requirement, Unreadable> {
    Ok(Requirement::Api(Fields::of(value)?.api()?))
}

fn package(value: &Value) -> Result<Requirement, Unreadable> {
    let fields = Fields::of(value)?;
    let name = fields.text("packageName")?;
    let range = Range::parse(&fields.text("versionRange")?).map_err(|_| Unreadable)?;
    Ok(Requirement::All(vec![Requirement::Package(name), Requirement::InRange(range)]))
}

/// Decodes an `olm.constraint`. Ignores text after the first value.
fn constraint_text(text: &str) -> Result<Requirement, Unreadable> {
    if text.len() > LONGEST {
        return Err(Unreadable);
    }
    let first = serde_json::Deserializer::from_str(text).into_iter::<Value>().next();
    constraint(&first.ok_or(Unreadable)?.map_err(|_| Unreadable)?)
}

/// Decodes one node of a constraint, which has no unknown fields and at least one condition.
fn constraint(value: &Value) -> Result<Requirement, Unreadable> {
    let fields = Fields::of(value)?;
    fields.only(&["failureMessage", "gvk", "package", "cel", "all", "any", "not"])?;
    let message = fields.text("failureMessage")?;
    let part = |name: &str, known: &[&str]| -> Result<Option<&Value>, Unreadable> {
        let Some(value) = fields.get(name) else { return Ok(None) };
        let inner = Fields::of(value)?;
        inner.only(known)?;
        for field in known.iter().filter(|field| **field != "constraints") {
            inner.text(field)?;
        }
        Ok(Some(value))
    };
    let gvk = part("gvk", &["group", "version", "kind"])?;
    let package_value = part("package", &["packageName", "versionRange"])?;
    let cel = part("cel", &["rule"])?;
    let mut compounds = Vec::new();
    for (name, make) in [
        ("all", Requirement::All as fn(Vec<Requirement>) -> Requirement),
        ("any", Requirement::Any),
        ("not", Requirement::NoneOf),
    ] {
        if let Some(value) = part(name, &["constraints"])? {
            let list = Fields::of(value)?.get("constraints").and_then(Value::as_array);
            let list: Vec<&Value> = list.into_iter().flatten().collect();
            compounds.push((list, make));
        }
    }
    // Of several conditions the first one in this order counts, but all must have the right type.
    if let Some(gvk) = gvk {
        return api(gvk);
    }
    if let Some(package_value) = package_value {
        return package(package_value);
    }
    if let Some((list, make)) = compounds.into_iter().next() {
        let parts: Result<Vec<_>, _> = list.into_iter().map(constraint).collect();
        return Ok(make(parts?));
    }
    let rule = Fields::of(cel.ok_or(Unreadable)?)?.text("rule")?;
    Ok(Requirement::Rule { program: Rc::new(compile(&rule)?), text: rule, message })
}

fn compile(rule: &str) -> Result<Program, Unreadable> {
    static VERSIONS: FunctionLibrary = FunctionLibrary {
        name: "olm.semver",
        overloads: || {
            let both = vec![Type::Any, Type::Any];
            vec![Overload::function("semver_compare", "semver_compare", both, Type::Int, compare)]
        },
        macros: &[],
        types: Vec::new,
    };
    let options = EnvOptions { quoted_names: true, ..EnvOptions::default() };
    let properties = Type::list(Type::map(Type::String, Type::Any));
    let env = Env::new(&[&library::standard::LIBRARY, &VERSIONS], options)
        .with_variable("properties", properties);
    let checked = env.compile(rule).map_err(|_| Unreadable)?;
    if *checked.output() != Type::Bool {
        return Err(Unreadable);
    }
    Program::new(&checked).map_err(|_| Unreadable)
}

/// `semver_compare(a, b)`: -1, 0 or 1.
fn compare<'a>(args: &[CelValue<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let mut versions = args.iter().map(|value| {
        let text = match value {
            CelValue::String(text) => text.as_str().to_owned(),
            CelValue::Int(number) => number.to_string(),
            CelValue::Uint(number) => number.to_string(),
            CelValue::Double(number) => number.to_string(),
            _ => String::new(),
        };
        parse_tolerant(&text).map_err(|_| Error::text("no version".to_owned(), work))
    });
    let mut next = || versions.next().unwrap_or(Err(Error::NoSuchOverload));
    let (one, other) = (next()?, next()?);
    Ok(CelValue::Int(match one.cmp(&other) {
        std::cmp::Ordering::Less => -1,
        std::cmp::Ordering::Equal => 0,
        std::cmp::Ordering::Greater => 1,
    }))
}
