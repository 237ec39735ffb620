//! Properties: what a bundle says about itself, decoded once.

use crate::go_json::{self, JsonError};
use crate::predicate::{self, Predicate, RequirementError};
use crate::rule;
use mainstay_bundle::TypeError;
use mainstay_gocompat::values::json_kind;
use mainstay_version::{Version, parse_strict, parse_tolerant};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A kind of object that an operator provides or requires.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Api {
    /// Group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
}

impl Api {
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

impl fmt::Display for Api {
    /// `Kind (group/version)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}/{})", self.kind, self.group, self.version)
    }
}

/// A property as catalogs carry it.
#[derive(Clone, Copy, Debug)]
pub struct Property<'a> {
    /// Type, such as `olm.gvk`.
    pub kind: &'a str,
    /// Value as JSON text; what is no JSON is kept and judged when it matters.
    pub json: &'a str,
}

/// A requirement in the older form that the registry protocol has besides properties.
#[derive(Clone, Copy, Debug)]
pub struct LegacyDependency<'a> {
    /// `olm.gvk`, `olm.package`, `olm.label` or `olm.constraint`; others are passed over.
    pub kind: &'a str,
    /// Value as JSON text.
    pub json: &'a str,
}

/// What the properties of a bundle mean to resolution.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Packages it says to be, with the version where that can be read strictly.
    pub packages: Vec<(String, Option<Version>)>,
    /// Kinds it provides, as often as it lists them.
    pub apis: Vec<Api>,
    /// Free tags.
    pub labels: Vec<String>,
    /// Whether it must never be chosen.
    pub deprecated: bool,
    /// What it requires, in the order of its properties.
    pub requirements: Vec<Arc<Predicate>>,
    /// The same as numbers of its snapshot.
    pub requirement_numbers: Vec<u32>,
    /// The least version of Kubernetes that it needs.
    pub min_kube_version: Option<Version>,
    /// Why its requirements cannot be read: one reason, whatever their order.
    pub requirement_error: Option<RequirementError>,
    /// Why its properties cannot be written into an install plan: one reason, whatever their order.
    pub serialization_error: Option<JsonError>,
    /// All its properties, type and value, in their order: rules look at them.
    properties: Vec<(Box<str>, Box<str>)>,
    /// The same, decoded when a rule first asks.
    told: OnceLock<Value>,
}

impl Facts {
    /// Takes note of one property.
    pub(crate) fn add(&mut self, property: Property<'_>) {
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
                    && let Ok(api) = Api::from_fields(&fields)
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

    /// Takes note of the least version of Kubernetes that it needs, if no property says another.
    /// One that cannot be read is told when the bundle is installed, as in the original.
    pub(crate) fn set_min_kube_version(&mut self, least: &str) {
        if self.min_kube_version.is_none() {
            self.min_kube_version = parse_tolerant(least).ok();
        }
    }

    /// Takes note of a kind that it provides where no property says so.
    pub(crate) fn add_provided_api(&mut self, api: Api) {
        self.properties.push(("olm.gvk".into(), api.to_json().into()));
        self.apis.push(api);
    }

    /// Takes note of a kind that it requires where no property says so.
    pub(crate) fn add_required_api(&mut self, api: Api) {
        self.properties.push(("olm.gvk.required".into(), api.to_json().into()));
        self.add_requirement(Predicate::Api(api));
    }

    /// Takes note of a requirement in the older form, which rules see as a property.
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
    pub(crate) fn properties(&self) -> impl Iterator<Item = Property<'_>> {
        self.properties.iter().map(|(kind, json)| Property { kind, json })
    }

    /// What it says about itself, as rules see it.
    pub(crate) fn told(&self) -> &Value {
        self.told.get_or_init(|| {
            rule::told(self.properties.iter().map(|(kind, json)| (&**kind, &**json)))
        })
    }

    /// Takes note of a requirement; one that is known already changes nothing.
    pub(crate) fn add_requirement(&mut self, requirement: Predicate) {
        if !self.requirements.iter().any(|known| **known == requirement) {
            self.requirements.push(Arc::new(requirement));
        }
    }

    /// Takes note of a requirement that cannot be read.
    pub(crate) fn add_requirement_error(&mut self, error: RequirementError) {
        keep_smallest(&mut self.requirement_error, error);
    }

    /// Its properties, in an order of their own.
    pub(crate) fn sorted_properties(&self) -> Vec<&(Box<str>, Box<str>)> {
        let mut all: Vec<_> = self.properties.iter().collect();
        all.sort_unstable();
        all
    }
}

/// Of several errors that with the least text is kept, so that their order does not matter.
fn keep_smallest<E: fmt::Display>(smallest: &mut Option<E>, error: E) {
    if smallest.as_ref().is_none_or(|smallest| error.to_string() < smallest.to_string()) {
        *smallest = Some(error);
    }
}

/// The fields of a JSON object as Go's decoder finds them: names match in any case.
pub(crate) struct GoFields<'a>(Option<&'a Map<String, Value>>);

impl<'a> GoFields<'a> {
    /// The fields of an object; null has none.
    pub(crate) fn new_or_null(value: &'a Value) -> Option<Self> {
        match value {
            Value::Null => Some(Self(None)),
            Value::Object(fields) => Some(Self(Some(fields))),
            _ => None,
        }
    }

    /// The fields of an object; anything else has none.
    pub(crate) fn lenient(value: &'a Value) -> Self {
        Self(value.as_object())
    }

    /// A field; the last one wins among those that differ in case only.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        let fields = self.0?;
        fields.get(name).or_else(|| {
            fields.iter().rev().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, v)| v)
        })
    }

    /// The text in a field; empty if absent or null, an error if of another type.
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
