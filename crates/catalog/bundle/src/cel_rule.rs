//! Rules in the Common Expression Language (`olm.constraint` with `cel`, RES-12): what a bundle may ask
//! of another one. Whoever judges a bundle compiles them, and whoever resolves asks them.
//!
//! A rule sees `properties`, the list of what a bundle says about itself as objects with `type` and
//! `value`, and may compare versions with `semver_compare(one, other)`. What goes wrong while a
//! rule is asked about a bundle means that the bundle does not meet it.

use mainstay_cel::library::{Library, Overload};
use mainstay_cel::types::Type;
use mainstay_cel::value::{Error, Outcome, Value, WorkBudget};
use mainstay_cel::{Budget, Env, EnvOptions, Issues, Program, library};
use mainstay_version::parse_tolerant;
use serde_json::{Number, Value as Json};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

/// What a bundle says about itself.
const PROPERTIES: &str = "properties";

/// A compiled rule. Two are the same if their texts are.
#[derive(Clone)]
pub struct CelRule {
    text: Box<str>,
    program: Arc<Program>,
}

/// Why a text is no rule, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CelRuleError {
    /// The text cannot be parsed, or does not fit together.
    #[error(transparent)]
    Compile(#[from] Issues),
    /// The rule yields something else than true or false.
    #[error("cel expressions must have type Bool")]
    NotBoolean,
    /// A part of the rule that depends on no bundle cannot be computed.
    #[error(transparent)]
    PlanProgram(#[from] Error),
}

static ENV: LazyLock<Env> = LazyLock::new(|| {
    let libraries = [&library::standard::LIBRARY, &VERSIONS];
    // The version of the language that the original has knows names in backquotes.
    let options = EnvOptions { quoted_names: true, ..EnvOptions::default() };
    Env::new(&libraries, options)
        .with_variable(PROPERTIES, Type::list(Type::map(Type::String, Type::Any)))
});

/// What constraints know beyond the standard.
static VERSIONS: Library = Library {
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

/// `semver_compare(one, other)`: -1, 0 or 1, versions read tolerantly.
fn semver_compare<'a>(args: &[Value<'a>], work: &WorkBudget) -> Outcome<'a> {
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
    /// Reads a rule.
    ///
    /// # Errors
    /// If it cannot be compiled, or yields no truth value.
    pub fn parse(text: &str) -> Result<Self, CelRuleError> {
        let checked = ENV.compile(text)?;
        if *checked.output() != Type::Bool {
            return Err(CelRuleError::NotBoolean);
        }
        let program = Program::new(&checked)?;
        Ok(Self { text: text.into(), program: Arc::new(program) })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether properties meet it, as [`cel_properties`] makes them, and how many steps that took: none if it
    /// would have taken more than `most`, and then it has no answer.
    pub fn holds(&self, properties: &Json, most: u64) -> (bool, Option<u64>) {
        let variables = [(PROPERTIES, Value::of_json(properties))];
        let mut budget = Budget::new(most);
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

/// Properties as rules see them: every number is a fraction, as Go decodes them; a property whose
/// value is no JSON leaves an empty object in its place.
pub fn cel_properties<'a>(properties: impl Iterator<Item = (&'a str, &'a str)>) -> Json {
    properties
        .map(|(kind, json)| {
            let Ok(mut value) = serde_json::from_str::<Json>(json) else {
                return Json::Object(serde_json::Map::default());
            };
            fractions(&mut value);
            serde_json::json!({"type": kind, "value": value})
        })
        .collect()
}

/// Depth: the JSON reader refuses more than 127 levels.
fn fractions(value: &mut Json) {
    match value {
        Json::Number(number) => {
            if let Some(fraction) = number.as_f64().and_then(Number::from_f64) {
                *number = fraction;
            }
        }
        Json::Array(items) => items.iter_mut().for_each(fractions),
        Json::Object(fields) => fields.values_mut().for_each(fractions),
        _ => {}
    }
}
