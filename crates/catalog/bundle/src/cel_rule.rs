//! CEL rules of `olm.constraint` (RES-12): conditions on the properties of another bundle.
//! Validation compiles the rules; the resolver evaluates them.
//!
//! A rule reads `properties`, a list of objects with `type` and `value`, and may compare versions
//! with `semver_compare(one, other)`. A bundle on which the evaluation fails does not satisfy the
//! rule.

use mainstay_cel::library::{FunctionLibrary, Overload};
use mainstay_cel::types::Type;
use mainstay_cel::value::{Error, Value, ValueResult, WorkBudget};
use mainstay_cel::{CostBudget, Env, EnvOptions, Issues, Program, library};
use mainstay_version::parse_tolerant;
use serde_json::{Number, Value as Json};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

/// The variable with a bundle's properties.
const PROPERTIES: &str = "properties";

/// A compiled rule. Two rules are equal if their texts are.
#[derive(Clone)]
pub struct CelRule {
    text: Box<str>,
    program: Arc<Program>,
}

/// Why a text is not a rule, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CelRuleError {
    /// The text has a syntax or type error.
    #[error(transparent)]
    Compile(#[from] Issues),
    /// The rule does not return a boolean.
    #[error("cel expressions must have type Bool")]
    NotBoolean,
    /// A constant part of the rule cannot be evaluated.
    #[error(transparent)]
    PlanProgram(#[from] Error),
}

static ENV: LazyLock<Env> = LazyLock::new(|| {
    let libraries = [&library::standard::LIBRARY, &VERSIONS];
    // Upstream's version of CEL has names in backquotes.
    let options = EnvOptions { quoted_names: true, ..EnvOptions::default() };
    Env::new(&libraries, options)
        .with_variable(PROPERTIES, Type::list(Type::map(Type::String, Type::Any)))
});

/// The functions of constraints beyond the standard library.
static VERSIONS: FunctionLibrary = FunctionLibrary {
    name: "olm.semver",
    overloads: || {
        vec![Overload::function(
            "semver_compare",
            "semver_compare",
            vec![Type::Any, Type::Any],
            Type::Int,
            semver_compare,
        )]
    },
    macros: &[],
    types: Vec::new,
};

/// `semver_compare(one, other)`: -1, 0 or 1; versions are parsed tolerantly.
fn semver_compare<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [one, other] = args else { return Err(Error::NoSuchOverload) };
    Ok(Value::Int(version(one, work)?.cmp(&version(other, work)?) as i64))
}

fn version(value: &Value<'_>, work: &WorkBudget) -> Result<mainstay_version::Version, Error> {
    let text = match value {
        Value::String(text) => text.as_str().to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        _ => String::new(),
    };
    parse_tolerant(&text)
        .map_err(|_| Error::text(format!("unable to parse '{text}' to semver format"), work))
}

impl CelRule {
    /// Compiles a rule.
    ///
    /// # Errors
    /// If the text cannot be compiled, or does not return a boolean.
    pub fn parse(text: &str) -> Result<Self, CelRuleError> {
        let checked = ENV.compile(text)?;
        if *checked.output() != Type::Bool {
            return Err(CelRuleError::NotBoolean);
        }
        let program = Program::new(&checked)?;
        Ok(Self { text: text.into(), program: Arc::new(program) })
    }

    /// The text of the rule.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether properties (from [`cel_properties`]) satisfy the rule, and how many steps that took.
    /// Steps are none, and the result is false, if the evaluation exceeds `max_steps`.
    pub fn holds(&self, properties: &Json, max_steps: u64) -> (bool, Option<u64>) {
        let variables = [(PROPERTIES, Value::from_json(properties))];
        let mut budget = CostBudget::new(max_steps);
        let outcome = self.program.eval(&variables, &mut budget);
        let spent = match outcome {
            Err(Error::CostLimit) => None,
            _ => Some(budget.spent()),
        };
        (matches!(outcome, Ok(Value::Bool(true))), spent)
    }
}

impl fmt::Debug for CelRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rule").field(&self.text).finish()
    }
}

impl PartialEq for CelRule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for CelRule {}

impl Hash for CelRule {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// Properties as rules read them. Every number is a float, as Go decodes it. A property whose value
/// is not JSON becomes an empty object.
pub fn cel_properties<'a>(properties: impl Iterator<Item = (&'a str, &'a str)>) -> Json {
    properties
        .map(|(kind, json)| {
            let Ok(mut value) = serde_json::from_str::<Json>(json) else {
                return Json::Object(serde_json::Map::default());
            };
            numbers_to_floats(&mut value);
            serde_json::json!({"type": kind, "value": value})
        })
        .collect()
}

/// Turns all numbers into floats. The recursion is bounded: the JSON parser refuses more than 127
/// levels.
fn numbers_to_floats(value: &mut Json) {
    match value {
        Json::Number(number) => {
            if let Some(float) = number.as_f64().and_then(Number::from_f64) {
                *number = float;
            }
        }
        Json::Array(items) => items.iter_mut().for_each(numbers_to_floats),
        Json::Object(fields) => fields.values_mut().for_each(numbers_to_floats),
        _ => {}
    }
}
