//! The configuration of the check: which changes are errors, warnings or ignored.
//!
//! The format is that of crdify:
//!
//! ```yaml
//! validations:
//! - name: enum
//!   enforcement: Error        # or Warn, None
//!   configuration: {additionPolicy: Allow}
//! unhandledEnforcement: Error
//! conversion: Ignore          # served versions are not compared if a webhook converts them
//! ```
//!
//! Without an entry, a check is as strict as it can be.

mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use read::ReadConfigurationError;

/// Lists the checks once: variants, names and what they look at.
macro_rules! checks {
    ($($variant:ident $name:literal $doc:literal,)*) => {
        /// A check.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Check {
            $(#[doc = $doc] $variant,)*
        }

        impl Check {
            /// All checks, in the order of their names.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name, as in messages and in the configuration.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What the check looks at, in one line.
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$variant => $doc,)*
                }
            }
        }
    };
}

checks! {
    Default "default" "The default value of a field.",
    Description "description" "The description of a field.",
    Enum "enum" "The allowed values of a field.",
    ExistingFieldRemoval "existingFieldRemoval" "Fields that a version no longer has.",
    MaxItems "maxItems" "The most items of a list.",
    MaxLength "maxLength" "The most characters of a string.",
    MaxProperties "maxProperties" "The most entries of a map.",
    Maximum "maximum" "The largest number.",
    MinItems "minItems" "The fewest items of a list.",
    MinLength "minLength" "The fewest characters of a string.",
    MinProperties "minProperties" "The fewest entries of a map.",
    Minimum "minimum" "The smallest number.",
    Nullable "nullable" "Whether a field may be null.",
    OneOf "oneOf" "The alternatives of which exactly one must match.",
    Pattern "pattern" "The pattern of a string.",
    Required "required" "The fields that an object must have.",
    Scope "scope" "Whether objects live in namespaces.",
    StoredVersionRemoval "storedVersionRemoval" "Versions in which objects may be stored.",
    Type "type" "The type of a field.",
    Unhandled "unhandled" "All other changes of a field.",
}

impl fmt::Display for Check {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A text is not the name of a check.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no check {name:?}; the checks are {}", names())]
pub struct ParseCheckError {
    name: String,
}

fn names() -> String {
    Check::ALL.iter().map(|check| check.name()).collect::<Vec<_>>().join(", ")
}

impl FromStr for Check {
    type Err = ParseCheckError;

    fn from_str(name: &str) -> Result<Self, ParseCheckError> {
        let found = Self::ALL.iter().find(|check| check.name() == name);
        found.copied().ok_or_else(|| ParseCheckError { name: name.to_owned() })
    }
}

/// What the finding of a check is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enforcement {
    /// An error.
    #[default]
    Error,
    /// A warning.
    Warn,
    /// Nothing: the finding is dropped.
    None,
}

/// Whether a change is refused or allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The change is refused.
    #[default]
    Disallow,
    /// The change is allowed.
    Allow,
}

/// Whether served versions are compared that a webhook converts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConversionPolicy {
    /// They are compared.
    #[default]
    None,
    /// They are not compared.
    Ignore,
}

/// The settings of one check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckSettings {
    /// What its findings are.
    pub enforcement: Enforcement,
    /// Additions: enum values, `oneOf` alternatives, null.
    pub addition: Policy,
    /// Removals: patterns, `oneOf` alternatives, null.
    pub removal: Policy,
}

/// The configuration of all checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    settings: BTreeMap<Check, CheckSettings>,
    /// Whether served versions are compared that a webhook converts.
    pub conversion: ConversionPolicy,
}

impl Configuration {
    /// The strictest configuration.
    pub fn strict() -> Self {
        Self::default()
    }

    /// The configuration of operator-controller: descriptions may change, enums may grow, and a
    /// conversion webhook is trusted.
    pub fn operator_controller() -> Self {
        let mut configuration = Self { conversion: ConversionPolicy::Ignore, ..Self::default() };
        let ignored = CheckSettings { enforcement: Enforcement::None, ..CheckSettings::default() };
        let growing = CheckSettings { addition: Policy::Allow, ..CheckSettings::default() };
        configuration.set(Check::Description, ignored);
        configuration.set(Check::Enum, growing);
        configuration
    }

    /// The settings of a check.
    pub fn settings(&self, check: Check) -> CheckSettings {
        self.settings.get(&check).copied().unwrap_or_default()
    }

    /// Replaces the settings of a check.
    pub fn set(&mut self, check: Check, settings: CheckSettings) {
        self.settings.insert(check, settings);
    }

    /// Changes what the findings of a check are, and keeps its other settings.
    pub fn enforce(&mut self, check: Check, enforcement: Enforcement) {
        self.settings.entry(check).or_default().enforcement = enforcement;
    }
}
