//! Bundle properties, decoded once per catalog content.

use crate::go_json::{self, JsonError};
use crate::predicate::{self, Predicate, RequirementError};
use crate::rule;
use mainstay_bundle::TypeError;
use mainstay_gocompat::values::json_kind;
use mainstay_version::{Version, parse_strict, parse_tolerant};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// An API that an operator provides or requires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperatorApi {
    /// Group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl OperatorApi {
    /// Builds one from its three parts.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
    ) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    fn to_json(&self) -> String {
        json!({"group": self.group, "version": self.version, "kind": self.kind}).to_string()
    }

    pub(crate) fn from_fields(fields: &GoFields<'_>) -> Result<Self, TypeError> {
        Ok(Self {
            group: fields.text("group")?,
            version: fields.text("version")?,
            kind: fields.text("kind")?,
        })
    }
}

impl fmt::Display for OperatorApi {
    /// `Kind (group/version)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}/{})", self.kind, self.group, self.version)
    }
}

/// A property of a bundle, as in the catalog.
#[derive(Clone, Copy, Debug)]
pub struct BundleProperty<'a> {
    /// Type, such as `olm.gvk`.
    pub kind: &'a str,
    /// Value as JSON text. A text that is not JSON is kept, and is an error only where it is used.
    pub json: &'a str,
}

/// A requirement in the older form of the registry protocol: a dependency instead of a property.
#[derive(Clone, Copy, Debug)]
pub struct LegacyDependency<'a> {
    /// `olm.gvk`, `olm.package`, `olm.label` or `olm.constraint`; other types are ignored.
    pub kind: &'a str,
    /// Value as JSON text.
    pub json: &'a str,
}

/// The properties of a bundle, as far as resolution uses them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The packages of its `olm.package` properties, with the versions that can be read strictly.
    pub packages: Vec<(String, Option<Version>)>,
    /// The APIs it provides; an API that the bundle lists twice occurs twice.
    pub apis: Vec<OperatorApi>,
    /// The labels of its `olm.label` properties.
    pub labels: Vec<String>,
    /// Whether it has the property `olm.deprecated`: it is never chosen.
    pub deprecated: bool,
    /// Its requirements, in the order of its properties.
    pub requirements: Vec<Arc<Predicate>>,
    /// The same requirements as numbers of its snapshot.
    pub requirement_numbers: Vec<u32>,
    /// The minimal version of Kubernetes that it needs.
    pub min_kube_version: Option<Version>,
    /// Why its requirements cannot be read: the error with the least text, so that the order of
    /// properties does not matter.
    pub requirement_error: Option<RequirementError>,
    /// Why an InstallPlan cannot hold its properties: the error with the least text, so that the
    /// order of properties does not matter.
    pub serialization_error: Option<JsonError>,
    /// All its properties, type and value, in their order: the input of CEL rules.
    properties: Vec<(Box<str>, Box<str>)>,
    /// The same properties, decoded on the first evaluation of a rule.
    cel_input: OnceLock<Value>,
}

impl Facts {
    /// Adds a property.
    pub(crate) fn add(&mut self, property: BundleProperty<'_>) {
        self.properties.push((property.kind.into(), property.json.into()));
        let value = serde_json::from_str::<Value>(property.json).ok();
        if value.is_none()
            && let Some(fault) = go_json::fault(property.json)
        {
            keep_smallest(&mut self.serialization_error, fault);
        }
        let fields = value.as_ref().and_then(GoFields::new_or_null);
        match property.kind {
            "olm.package" => {
                if let Some(fields) = fields
                    && let (Ok(name), Ok(version)) =
                        (fields.text("packageName"), fields.text("version"))
                {
                    self.packages.push((name, parse_strict(&version).ok()));
                }
            }
            "olm.gvk" => {
                if let Some(fields) = fields
                    && let Ok(api) = OperatorApi::from_fields(&fields)
                {
                    self.apis.push(api);
                }
            }
            "olm.label" => {
                if let Some(fields) = fields
                    && let Ok(label) = fields.text("label")
                {
                    self.labels.push(label);
                }
            }
            "olm.deprecated" => self.deprecated = true,
            "olm.csv.metadata" => {
                let least = fields.and_then(|fields| fields.text("minKubeVersion").ok());
                self.min_kube_version = least.and_then(|text| parse_tolerant(&text).ok());
            }
            kind => match predicate::from_property(kind, property.json) {
                Some(Ok(requirement)) => self.add_requirement(requirement),
                Some(Err(error)) => self.add_requirement_error(error),
                None => {}
            },
        }
    }

    /// Sets the minimal version of Kubernetes, unless a property has set it. A version that cannot
    /// be read is an error only when the bundle is installed, as in upstream.
    pub(crate) fn set_min_kube_version(&mut self, least: &str) {
        if self.min_kube_version.is_none() {
            self.min_kube_version = parse_tolerant(least).ok();
        }
    }

    /// Adds an API that the bundle provides without a property.
    pub(crate) fn add_provided_api(&mut self, api: OperatorApi) {
        self.properties.push(("olm.gvk".into(), api.to_json().into()));
        self.apis.push(api);
    }

    /// Adds an API that the bundle requires without a property.
    pub(crate) fn add_required_api(&mut self, api: OperatorApi) {
        self.properties.push(("olm.gvk.required".into(), api.to_json().into()));
        self.add_requirement(Predicate::Api(api));
    }

    /// Adds a requirement in the older form to the properties that CEL rules see.
    pub(crate) fn add_legacy_requirement(&mut self, dependency: LegacyDependency<'_>) {
        let LegacyDependency { kind, json } = dependency;
        let property = match kind {
            "olm.gvk" => "olm.gvk.required",
            "olm.package" => "olm.package.required",
            "olm.label" => "olm.label.required",
            _ => kind,
        };
        self.properties.push((property.into(), predicate::modern(kind, json).into()));
    }

    /// All its properties, in their order.
    pub(crate) fn properties(&self) -> impl Iterator<Item = BundleProperty<'_>> {
        self.properties.iter().map(|(kind, json)| BundleProperty { kind, json })
    }

    /// All its properties, as CEL rules see them.
    pub(crate) fn cel_input(&self) -> &Value {
        self.cel_input.get_or_init(|| {
            rule::cel_properties(self.properties.iter().map(|(kind, json)| (&**kind, &**json)))
        })
    }

    /// Adds a requirement, unless the bundle has an equal one.
    pub(crate) fn add_requirement(&mut self, requirement: Predicate) {
        if !self.requirements.iter().any(|known| **known == requirement) {
            self.requirements.push(Arc::new(requirement));
        }
    }

    /// Adds a requirement that cannot be read.
    pub(crate) fn add_requirement_error(&mut self, error: RequirementError) {
        keep_smallest(&mut self.requirement_error, error);
    }

    /// All its properties, sorted.
    pub(crate) fn sorted_properties(&self) -> Vec<&(Box<str>, Box<str>)> {
        let mut all: Vec<_> = self.properties.iter().collect();
        all.sort_unstable();
        all
    }
}

/// Keeps the error with the least text, so that the order of errors does not matter.
fn keep_smallest<E: fmt::Display>(smallest: &mut Option<E>, error: E) {
    if smallest.as_ref().is_none_or(|smallest| error.to_string() < smallest.to_string()) {
        *smallest = Some(error);
    }
}

/// The fields of a JSON object as Go's decoder finds them: names match in any case.
pub(crate) struct GoFields<'a>(Option<&'a Map<String, Value>>);

impl<'a> GoFields<'a> {
    /// The fields of an object. Null has no fields; other values give none.
    pub(crate) fn new_or_null(value: &'a Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self(None)),
            Value::Object(fields) => Some(Self(Some(fields))),
            _ => None,
        }
    }

    /// The fields of an object; any other value has no fields.
    pub(crate) fn lenient(value: &'a Value) -> Self {
        Self(value.as_object())
    }

    /// A field; of several names that differ in case only, the last one counts.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        let fields = self.0?;
        fields.get(name).or_else(|| {
            fields.iter().rev().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v)
        })
    }

    /// The text of a field; empty if absent or null, an error if the field has another type.
    pub(crate) fn text(&self, name: &str) -> Result<String, TypeError> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(TypeError::WrongField {
                found: json_kind(other).to_owned(),
                // The struct has no name.
                owner: "",
                path: name.to_owned(),
                expected: "string".to_owned(),
            }),
        }
    }
}
