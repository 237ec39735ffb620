//! Findings of validators: upstream's errors and warnings, with location and remedy.

use mainstay_schema::gojson::ValuePathStep;
use std::borrow::Cow;
use std::fmt;

/// The level of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingLevel {
    /// The fault must be corrected.
    Error,
    /// The fault should be corrected.
    Warning,
}

impl fmt::Display for FindingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "Error",
            Self::Warning => "Warning",
        })
    }
}

/// The value of a finding, as upstream prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadValue {
    /// No value.
    Nothing,
    /// A text (which may be empty), or the group, version and kind of an API.
    Text(String),
    /// An error, or a struct as Go's `%v` prints it.
    Printed(String),
    /// A pointer; upstream prints its address.
    Pointer,
    /// A struct that contains pointers; upstream prints their addresses.
    Structure,
}

/// An error or warning of a validator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationFinding {
    /// Upstream's name of the type, such as `CSVFileNotValid`.
    pub kind: &'static str,
    /// The level.
    pub level: FindingLevel,
    /// The path of the field; empty where upstream names none.
    pub field: String,
    /// The value.
    pub bad: BadValue,
    /// The fault, in upstream's words.
    pub detail: String,
    /// The remedy, in our words.
    pub remedy: Cow<'static, str>,
    /// The manifest and the part of it.
    pub(crate) object_path: ObjectPath,
}

/// A part of an object of the bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectPath {
    /// The index of the manifest; none for the bundle as a whole.
    pub(crate) manifest: Option<usize>,
    pub(crate) path: Vec<ValuePathStep>,
}

impl ValidationFinding {
    pub(crate) fn error(kind: &'static str, bad: BadValue, detail: impl Into<String>) -> Self {
        Self {
            kind,
            level: FindingLevel::Error,
            field: String::new(),
            bad,
            detail: detail.into(),
            remedy: Cow::Borrowed(""),
            object_path: ObjectPath::default(),
        }
    }

    pub(crate) fn warning(kind: &'static str, bad: BadValue, detail: impl Into<String>) -> Self {
        Self { level: FindingLevel::Warning, ..Self::error(kind, bad, detail) }
    }

    pub(crate) fn with_field(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }

    pub(crate) fn with_remedy(mut self, remedy: impl Into<Cow<'static, str>>) -> Self {
        self.remedy = remedy.into();
        self
    }

    pub(crate) fn at(mut self, manifest: usize, path: &[ValuePathStep]) -> Self {
        self.object_path = ObjectPath { manifest: Some(manifest), path: path.to_vec() };
        self
    }

    /// The line that upstream prints: level, field, value and detail. An address of a pointer is
    /// `{ptr}`, a struct with addresses `…`.
    pub fn text(&self) -> String {
        let value = match &self.bad {
            BadValue::Nothing => None,
            BadValue::Text(text) | BadValue::Printed(text) => Some(text.as_str()),
            BadValue::Pointer => Some("{ptr}"),
            BadValue::Structure => Some("…"),
        };
        let detail = match self.detail.as_str() {
            "" => String::new(),
            detail => format!(": {detail}"),
        };
        let words = match (self.field.as_str(), value) {
            ("", None) => detail,
            ("", Some(value)) => format!("Value {value}{detail}"),
            (field, None) => format!("Field {field}{detail}"),
            (field, Some(value)) => format!("Field {field}, Value {value}{detail}"),
        };
        if words.is_empty() {
            return "ErrMessageMissing".to_owned();
        }
        format!("{}: {words}", self.level)
    }
}

/// The findings of a validator for one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestResult {
    /// Upstream's name of the object: a name, a version, or empty.
    pub name: String,
    /// The errors.
    pub errors: Vec<ValidationFinding>,
    /// The warnings.
    pub warnings: Vec<ValidationFinding>,
}

impl ManifestResult {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    pub(crate) fn add(&mut self, finding: ValidationFinding) {
        match finding.level {
            FindingLevel::Error => self.errors.push(finding),
            FindingLevel::Warning => self.warnings.push(finding),
        }
    }

    pub(crate) fn extend(&mut self, findings: impl IntoIterator<Item = ValidationFinding>) {
        for finding in findings {
            self.add(finding);
        }
    }

    /// Whether there are no findings.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.warnings.is_empty()
    }

    /// Errors, then warnings.
    pub fn iter(&self) -> impl Iterator<Item = &ValidationFinding> {
        self.errors.iter().chain(&self.warnings)
    }
}

/// A path of field names.
pub(crate) fn field_path(names: &[&str]) -> Vec<ValuePathStep> {
    names.iter().map(|name| ValuePathStep::Field((*name).to_owned())).collect()
}

/// The path to an item of a list.
pub(crate) fn item_path(names: &[&str], at: usize) -> Vec<ValuePathStep> {
    let mut path = field_path(names);
    path.push(ValuePathStep::Item(at));
    path
}
