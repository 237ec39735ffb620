//! `metadata.managedFields`: parsing and writing its entries.
//!
//! On the wire, managed fields are a list of entries. In memory, they are field sets by manager
//! identifier. The identifier is the JSON of an entry without its fields and time. For an apply it
//! omits the version too, because an applier is the same manager in all versions. Of several
//! entries with one identifier, the last counts.

use crate::apply::{FieldSet, Managers, VersionedSet};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The operation with which a manager got its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ManagerOperation {
    /// Server-side apply.
    Apply,
    /// Any other write.
    Update,
}

impl ManagerOperation {
    /// The text of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "Apply" => Some(Self::Apply),
            "Update" => Some(Self::Update),
            _ => None,
        }
    }
}

/// The identity of a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagerIdentity {
    /// Name.
    pub manager: String,
    /// The operation; none in an identifier that is no entry of the API.
    pub operation: Option<ManagerOperation>,
    /// The `apiVersion` of the write; empty for an apply.
    pub api_version: String,
    /// The subresource of the write; empty for the object itself.
    pub subresource: String,
}

impl ManagerIdentity {
    /// The identifier: JSON with the fields in the order of the Go type, without empty ones.
    pub fn key(&self) -> String {
        let mut text = String::with_capacity(96);
        let mut push = |name: &str, value: &str| {
            if !value.is_empty() {
                text.push(if text.is_empty() { '{' } else { ',' });
                // Writing to a string does not fail.
                let _ = write!(text, "\"{name}\":{}", go_json(&value.into()));
            }
        };
        push("manager", &self.manager);
        push("operation", self.operation.map_or("", ManagerOperation::as_str));
        if self.operation != Some(ManagerOperation::Apply) {
            push("apiVersion", &self.api_version);
        }
        push("subresource", &self.subresource);
        text.push_str(if text.is_empty() { "{}" } else { "}" });
        text
    }

    /// Parses an identifier; none if it does not have the form of [`ManagerIdentity::key`].
    pub fn parse(key: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(key).ok()?;
        let text =
            |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self {
            manager: text("manager"),
            operation: ManagerOperation::parse(&text("operation")),
            api_version: text("apiVersion"),
            subresource: text("subresource"),
        })
    }
}

/// JSON as Go writes it: characters with a meaning in HTML are escaped.
pub(super) fn go_json(value: &Value) -> String {
    let json = value.to_string();
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            other => out.push(other),
        }
    }
    out
}

/// Invalid entries; the texts are those of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadEntriesError {
    /// An entry has an unknown operation.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// An entry has no version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// An entry has no `fieldsType`.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// An entry has an unknown `fieldsType`.
    #[error("invalid fieldsType {1:?} in managed fields entry {0}")]
    FieldsType(usize, String),
    /// The fields of an entry are malformed.
    #[error("error decoding set: {0}")]
    Fields(String),
}

/// The managers of an object, and the times of their last changes.
#[derive(Clone, Debug, Default)]
pub struct ManagedFields {
    /// The owned fields by manager.
    pub fields: Managers,
    /// The times: RFC 3339 with seconds, in UTC; a manager may have none.
    pub times: BTreeMap<String, String>,
}

impl ManagedFields {
    /// Parses entries; absent and null are none.
    ///
    /// # Errors
    /// The first rule that an entry breaks.
    pub fn read(entries: Option<&Value>) -> Result<Self, ReadEntriesError> {
        let mut managed = Self::default();
        let entries = entries.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, entry) in entries.iter().enumerate() {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let operation =
                ManagerOperation::parse(text("operation")).ok_or(ReadEntriesError::Operation)?;
            let api_version = text("apiVersion");
            if api_version.is_empty() {
                return Err(ReadEntriesError::ApiVersion);
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(ReadEntriesError::NoFieldsType(index)),
                other => return Err(ReadEntriesError::FieldsType(index, other.to_owned())),
            }
            let set = match entry.get("fieldsV1") {
                None | Some(Value::Null) => FieldSet::default(),
                Some(fields) => FieldSet::from_fields_v1(fields)
                    .map_err(|error| ReadEntriesError::Fields(error.to_string()))?,
            };
            let identity = ManagerIdentity {
                manager: text("manager").to_owned(),
                operation: Some(operation),
                api_version: api_version.to_owned(),
                subresource: text("subresource").to_owned(),
            };
            let key = identity.key();
            match entry.get("time").and_then(Value::as_str) {
                Some(time) => managed.times.insert(key.clone(), time.to_owned()),
                None => managed.times.remove(&key),
            };
            let applied = operation == ManagerOperation::Apply;
            managed
                .fields
                .insert(key, VersionedSet { set, api_version: api_version.into(), applied });
        }
        Ok(managed)
    }

    /// Whether no manager owns a field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Writes the entries, sorted by operation, time, name, version and subresource; none without
    /// managers.
    pub fn write(&self) -> Option<Value> {
        if self.fields.is_empty() {
            return None;
        }
        let mut entries: Vec<ManagedEntry<'_>> =
            self.fields.iter().map(|(key, owned)| self.entry(key, owned)).collect();
        entries.sort_by(ManagedEntry::order);
        Some(entries.into_iter().map(ManagedEntry::into_value).collect())
    }

    fn entry<'a>(&'a self, key: &str, owned: &'a VersionedSet) -> ManagedEntry<'a> {
        let identity = ManagerIdentity::parse(key);
        let operation = match &identity {
            _ if owned.applied => ManagerOperation::Apply,
            Some(identity) => identity.operation.unwrap_or(ManagerOperation::Update),
            None => ManagerOperation::Update,
        };
        let (manager, subresource) =
            identity.map(|identity| (identity.manager, identity.subresource)).unwrap_or_default();
        let time = self.times.get(key).map(String::as_str);
        ManagedEntry { manager, operation, subresource, time, owned }
    }
}

/// An entry to write.
struct ManagedEntry<'a> {
    manager: String,
    operation: ManagerOperation,
    subresource: String,
    time: Option<&'a str>,
    owned: &'a VersionedSet,
}

impl ManagedEntry<'_> {
    fn order(a: &Self, b: &Self) -> Ordering {
        // Times with the same form and zone sort as texts; an entry without one comes first.
        (a.operation, a.time, &a.manager, &a.owned.api_version, &a.subresource).cmp(&(
            b.operation,
            b.time,
            &b.manager,
            &b.owned.api_version,
            &b.subresource,
        ))
    }

    fn into_value(self) -> Value {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("apiVersion", (*self.owned.api_version).into());
        put("fieldsType", "FieldsV1".into());
        put("fieldsV1", self.owned.set.to_fields_v1());
        if !self.manager.is_empty() {
            put("manager", self.manager.into());
        }
        put("operation", self.operation.as_str().into());
        if !self.subresource.is_empty() {
            put("subresource", self.subresource.into());
        }
        if let Some(time) = self.time {
            put("time", time.into());
        }
        Value::Object(fields)
    }
}
