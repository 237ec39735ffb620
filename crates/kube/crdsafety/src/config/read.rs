//! Reading a configuration, with the errors of crdify.

use super::{Check, CheckSettings, Configuration, ConversionPolicy, Enforcement, Policy};
use mainstay_gocompat::quote;
use serde_json::Value;

/// A configuration is invalid. The text is that of crdify, one line for each error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReadConfigurationError(String);

/// The settings that a check takes, with the names of their Go types.
struct PolicyNames {
    check: Check,
    /// The name of the struct with the settings.
    settings: &'static str,
    /// The Go types of `additionPolicy` and `removalPolicy`, where the check has them.
    addition: Option<&'static str>,
    removal: Option<&'static str>,
    /// Whether errors list the valid values.
    lists_values: bool,
}

const POLICIES: [PolicyNames; 4] = [
    PolicyNames {
        check: Check::Enum,
        settings: "EnumConfig",
        addition: Some("AdditionPolicy"),
        removal: None,
        lists_values: false,
    },
    PolicyNames {
        check: Check::OneOf,
        settings: "OneOfConfig",
        addition: Some("AdditionPolicy"),
        removal: Some("RemovalPolicy"),
        lists_values: false,
    },
    PolicyNames {
        check: Check::Pattern,
        settings: "PatternConfig",
        addition: None,
        removal: Some("PatternRemovalPolicy"),
        lists_values: true,
    },
    PolicyNames {
        check: Check::Nullable,
        settings: "NullableConfig",
        addition: Some("NullableAdditionPolicy"),
        removal: Some("NullableRemovalPolicy"),
        lists_values: true,
    },
];

impl Configuration {
    /// Reads a configuration in the format of crdify.
    ///
    /// # Errors
    /// A check, an enforcement, a policy or a setting is unknown.
    pub fn from_value(value: &Value) -> Result<Self, ReadConfigurationError> {
        let validations = value.get("validations").and_then(Value::as_array);
        let validations = validations.map_or(&[][..], Vec::as_slice);
        let mut errors = Vec::new();
        for (at, validation) in validations.iter().enumerate() {
            if text(validation, "name").is_empty() {
                errors.push(format!("validations[{at}] is invalid: name is required"));
            }
            match text(validation, "enforcement") {
                "" => errors.push("enforcement is required".to_owned()),
                word => errors.extend(enforcement(word).err()),
            }
        }
        let unhandled = match text(value, "unhandledEnforcement") {
            "" => Ok(Enforcement::Error),
            word => enforcement(word),
        };
        let conversion = match text(value, "conversion") {
            "" | "None" => Ok(ConversionPolicy::None),
            "Ignore" => Ok(ConversionPolicy::Ignore),
            word => Err(format!("unknown conversion policy: {}", quote(word))),
        };
        errors.extend(unhandled.as_ref().err().cloned());
        errors.extend(conversion.as_ref().err().cloned());
        let (Ok(unhandled), Ok(conversion), true) = (unhandled, conversion, errors.is_empty())
        else {
            return Err(ReadConfigurationError(errors.join("\n")));
        };

        let mut configuration = Self { conversion, ..Self::default() };
        configuration.enforce(Check::Unhandled, unhandled);
        for validation in validations {
            let name = text(validation, "name");
            let settings = match Check::ALL.iter().find(|check| check.name() == name) {
                // crdify adds the check of what no other one handles itself.
                None | Some(Check::Unhandled) => {
                    Err(format!("unknown validation : {}", quote(name)))
                }
                Some(check) => policies(*check, validation.get("configuration"))
                    .map(|settings| (*check, settings)),
            };
            match settings {
                Err(error) => {
                    errors.push(format!("configuring validation {}: {error}", quote(name)));
                }
                Ok((check, mut settings)) => {
                    settings.enforcement =
                        enforcement(text(validation, "enforcement")).unwrap_or_default();
                    configuration.set(check, settings);
                }
            }
        }
        if errors.is_empty() {
            Ok(configuration)
        } else {
            Err(ReadConfigurationError(format!("configuring validations: {}", errors.join("\n"))))
        }
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn enforcement(word: &str) -> Result<Enforcement, String> {
    match word {
        "Error" => Ok(Enforcement::Error),
        "Warn" => Ok(Enforcement::Warn),
        "None" => Ok(Enforcement::None),
        word => Err(format!("unknown enforcement: {}", quote(word))),
    }
}

/// The settings of a check. Unknown keys are ignored.
fn policies(check: Check, settings: Option<&Value>) -> Result<CheckSettings, String> {
    let mut found = CheckSettings::default();
    let Some(names) = POLICIES.iter().find(|names| names.check == check) else { return Ok(found) };
    let (what, go_struct) = (check.name(), names.settings);
    let read = |key: &str, go_type: Option<&str>| {
        let value = settings.and_then(|settings| settings.get(key));
        let (Some(go_type), Some(value)) = (go_type, value) else { return Ok("") };
        match value {
            Value::Null => Ok(""),
            Value::String(word) => Ok(word.as_str()),
            other => Err(format!(
                "parsing config: unmarshalling input to output: json: cannot unmarshal {} into Go \
                 struct field {go_struct}.{key} of type property.{go_type}",
                json_kind(other)
            )),
        }
    };
    let (addition, removal) =
        (read("additionPolicy", names.addition)?, read("removalPolicy", names.removal)?);
    for (kind, word, policy) in
        [("addition", addition, &mut found.addition), ("removal", removal, &mut found.removal)]
    {
        *policy = match word {
            "" | "Disallow" => Policy::Disallow,
            "Allow" => Policy::Allow,
            word => {
                let values = r#" (valid values: "Allow", "Disallow")"#;
                let values = if names.lists_values { values } else { "" };
                return Err(format!(
                    "validating {what} config: unknown {kind} policy : {}{values}",
                    quote(word)
                ));
            }
        };
    }
    Ok(found)
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Null | Value::String(_) => "string",
    }
}
