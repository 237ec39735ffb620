//! Types that all kinds share: metadata, times, conditions and references.

use jiff::fmt::temporal::DateTimePrinter;
use jiff::{SignedDuration, Timestamp};
use mainstay_object::{NamespacedName, Object, OwnerReference, Resource};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// A point in time as Kubernetes writes it: RFC 3339, UTC, whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Timestamp);

impl Time {
    /// The time, rounded down to whole seconds.
    pub fn new(timestamp: Timestamp) -> Self {
        let seconds = timestamp.as_nanosecond().div_euclid(1_000_000_000);
        let cut = i64::try_from(seconds).ok().and_then(|s| Timestamp::from_second(s).ok());
        Self(cut.unwrap_or(timestamp))
    }

    /// This time, or one second after `other` if it is not later. Times have whole seconds, so two events
    /// within a second would otherwise have the same time.
    #[must_use]
    pub fn later_than(self, other: Option<Self>) -> Self {
        let Some(other) = other.filter(|time| *time >= self) else { return self };
        other.0.checked_add(SignedDuration::from_secs(1)).map_or(self, Self)
    }

    /// The time as a timestamp.
    pub const fn timestamp(self) -> Timestamp {
        self.0
    }
}

impl From<Timestamp> for Time {
    fn from(timestamp: Timestamp) -> Self {
        Self::new(timestamp)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&DateTimePrinter::new().timestamp_to_string(&self.0))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Timestamp::deserialize(from).map(Self::new)
    }
}

/// `metadata` of an object. Other fields are kept in [`ObjectMetadata::rest`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMetadata {
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Prefix from which the server generates a name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Uid, set by the server.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Version of the object: opaque, only compared for equality.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Counts changes of the spec.
    #[serde(skip_serializing_if = "crate::view::is_default")]
    pub generation: i64,
    /// When the object was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    /// Set once deletion was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Owners.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    /// Finalizers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// All other fields.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// An object with typed spec and status.
///
/// Decoded from an [`Object`], and encoded to one; see [`ApiKind`] for its resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    default,
    bound(
        serialize = "S: Serialize, T: Serialize + Default + PartialEq",
        deserialize = "S: Deserialize<'de> + Default, T: Deserialize<'de> + Default"
    )
)]
pub struct TypedObject<S, T> {
    /// `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Metadata.
    pub metadata: ObjectMetadata,
    /// The desired state.
    pub spec: S,
    /// The observed state; omitted while it has its default value.
    #[serde(skip_serializing_if = "crate::view::is_default")]
    pub status: T,
}

/// A kind of this API.
pub trait ApiKind: DeserializeOwned + Serialize {
    /// The resource, in its storage version.
    const RESOURCE: Resource;
}

/// An object that cannot be decoded as its kind.
#[derive(Debug, thiserror::Error)]
#[error("reading {kind} {key}: {source}")]
pub struct ObjectDecodeError {
    kind: &'static str,
    key: NamespacedName,
    source: serde_json::Error,
}

impl<S, T> TypedObject<S, T>
where
    Self: ApiKind,
{
    /// An empty object of this kind.
    pub fn new(namespace: &str, name: &str) -> Self
    where
        S: Default,
        T: Default,
    {
        let resource = Self::RESOURCE;
        Self {
            api_version: resource.api_version(),
            kind: resource.kind.into_owned(),
            metadata: ObjectMetadata {
                name: name.to_owned(),
                namespace: namespace.to_owned(),
                ..ObjectMetadata::default()
            },
            spec: S::default(),
            status: T::default(),
        }
    }

    /// Decodes an object. Null fields count as absent.
    pub fn from_object(object: &Object) -> Result<Self, ObjectDecodeError> {
        // Only manifests that no server has validated contain nulls, so the copy is made on demand.
        object.decode::<Self>().or_else(|_| {
            let mut value = object.to_value();
            drop_nulls(&mut value);
            Self::deserialize(&value).map_err(|source| ObjectDecodeError {
                kind: match Self::RESOURCE.kind {
                    std::borrow::Cow::Borrowed(kind) => kind,
                    std::borrow::Cow::Owned(_) => "object",
                },
                key: object.key(),
                source,
            })
        })
    }

    /// Encodes the object.
    pub fn to_object(&self) -> Result<Object, serde_json::Error> {
        Object::encode(self)
    }

    /// Namespace and name.
    pub fn key(&self) -> NamespacedName {
        NamespacedName::new(self.metadata.namespace.as_str(), self.metadata.name.as_str())
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

text_enum! {
    /// Whether a condition holds.
    pub enum ConditionStatus {
        /// It holds.
        True = "True",
        /// It does not hold.
        False = "False",
        /// It is unknown.
        Unknown = "Unknown",
    }
}

impl From<bool> for ConditionStatus {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

view! {
    /// Condition with the fields of `metav1.Condition`.
    pub struct Condition {
        required {
            /// Type of the condition.
            "type" kind: String, with {
                "maxLength": 316,
                "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            };
            /// Status of the condition: True, False or Unknown.
            "status" status: ConditionStatus, with {"enum": ["True", "False", "Unknown"]};
            /// Reason in one CamelCase word.
            "reason" reason: String, with {
                "minLength": 1, "maxLength": 1024,
                "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
            };
            /// Human-readable reason; may be empty.
            "message" message: String, with {"maxLength": 32768};
            /// When the status last changed.
            "lastTransitionTime" last_transition_time: Option<Time>;
        }
        optional {
            /// Generation of the object for which the condition was set.
            "observedGeneration" observed_generation: i64, with {"format": "int64", "minimum": 0};
        }
    }

    /// Reference to another object.
    pub struct ObjectReference with {"x-kubernetes-map-type": "atomic"} {
        optional {
            /// `group/version` of the object.
            "apiVersion" api_version: String;
            /// Referenced field of the object.
            "fieldPath" field_path: String;
            /// Kind of the object.
            "kind" kind: String;
            /// Name of the object.
            "name" name: String;
            /// Namespace of the object.
            "namespace" namespace: String;
            /// Referenced resource version of the object.
            "resourceVersion" resource_version: String;
            /// Uid of the object.
            "uid" uid: String;
        }
    }
}

impl ObjectReference {
    /// A reference to an object that was read from the server.
    pub fn to(object: &Object) -> Self {
        Self {
            api_version: object.api_version().to_owned(),
            kind: object.kind().to_owned(),
            name: object.name().to_owned(),
            namespace: object.namespace().to_owned(),
            resource_version: object.resource_version().to_owned(),
            uid: object.uid().to_owned(),
            field_path: String::new(),
        }
    }
}
