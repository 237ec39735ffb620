//! What a validator has to say: upstream's findings, which know their place besides.

use mainstay_schema::gojson::Step;
use std::borrow::Cow;
use std::fmt;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingLevel {
    /// It has to be corrected.
    Error,
    /// It should be.
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

/// The value that a finding is about, as upstream prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadValue {
    /// None.
    Nothing,
    /// A text (which may be empty), or the group, version and kind of an API.
    Text(String),
    /// An error, or a whole structure of upstream's program in the words of Go's `%v`.
    Shown(String),
    /// A pointer, of which upstream prints the address.
    Pointer,
    /// A structure that upstream prints with addresses in it.
    Structure,
}

/// One thing that a validator found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationFinding {
    /// The type, by upstream's name for it, such as `CSVFileNotValid`.
    pub kind: &'static str,
    /// How much it weighs.
    pub level: FindingLevel,
    /// The field, by its path; empty where upstream names none.
    pub field: String,
    /// The value.
    pub bad: BadValue,
    /// What is wrong, in upstream's words.
    pub detail: String,
    /// What to do about it, in ours.
    pub remedy: Cow<'static, str>,
    /// Which manifest, and which part of it.
    pub(crate) place: ObjectPath,
}

/// Where a finding stands: a file of the bundle and a part of the object in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectPath {
    /// The position of the manifest; none for what is about the bundle as a whole.
    pub(crate) manifest: Option<usize>,
    pub(crate) path: Vec<Step>,
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
            place: ObjectPath::default(),
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

    pub(crate) fn at(mut self, manifest: usize, path: &[Step]) -> Self {
        self.place = ObjectPath { manifest: Some(manifest), path: path.to_vec() };
        self
    }

    /// The whole line, as upstream prints it: level, field, value and detail. Addresses of pointers
    /// are `{ptr}` here, structures with addresses in them `…`.
    pub fn text(&self) -> String {
        let value = match &self.bad {
            BadValue::Nothing => None,
            BadValue::Text(text) | BadValue::Shown(text) => Some(text.as_str()),
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

/// What a validator says of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManifestResult {
    /// What upstream calls the object: a name, a version, or nothing.
    pub name: String,
    /// What has to be corrected.
    pub errors: Vec<ValidationFinding>,
    /// What should be.
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

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.warnings.is_empty()
    }

    /// Errors, then warnings.
    pub fn iter(&self) -> impl Iterator<Item = &ValidationFinding> {
        self.errors.iter().chain(&self.warnings)
    }
}

/// The steps of fields to a part of an object.
pub(crate) fn fields(names: &[&str]) -> Vec<Step> {
    names.iter().map(|name| Step::Field((*name).to_owned())).collect()
}

/// The steps to an item of a list.
pub(crate) fn item(names: &[&str], at: usize) -> Vec<Step> {
    let mut path = fields(names);
    path.push(Step::Item(at));
    path
}
