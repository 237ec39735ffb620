//! `metadata.managedFields` read and written.
//!
//! On the wire it is a list of entries; inside, sets of fields by the identifier of their manager.
//! The identifier is the JSON of an entry without its fields and its time, and for an apply without
//! its version: whoever applies is the same manager in every version. Entries with one identifier
//! are one manager, and the last of them counts.

use crate::apply::{Managers, Owned, Set};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How a manager came to its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// It said what it wants, with server-side apply.
    Apply,
    /// It wrote them, in any other way.
    Update,
}

impl Operation {
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

/// Who a manager is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name.
    pub manager: String,
    /// How it came to its fields; none in an identifier that is no entry of the API.
    pub operation: Option<Operation>,
    /// `apiVersion` that it wrote in; empty for an apply.
    pub api_version: String,
    /// Subresource that it wrote to; empty for the object itself.
    pub subresource: String,
}

impl Identity {
    /// The identifier: JSON with the fields in the order of Go's type, empty ones left out.
    pub fn key(&self) -> String {
        let mut text = String::with_capacity(96);
        let mut push = |name: &str, value: &str| {
            if !value.is_empty() {
                text.push(if text.is_empty() { '{' } else { ',' });
                // Writing into a String does not fail.
                let _ = write!(text, "\"{name}\":{}", go_json(&value.into()));
            }
        };
        push("manager", &self.manager);
        push("operation", self.operation.map_or("", Operation::as_str));
        if self.operation != Some(Operation::Apply) {
            push("apiVersion", &self.api_version);
        }
        push("subresource", &self.subresource);
        text.push_str(if text.is_empty() { "{}" } else { "}" });
        text
    }

    /// Reads an identifier; none if it is not one of [`Identity::key`].
    pub fn parse(key: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(key).ok()?;
        let text =
            |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self {
            manager: text("manager"),
            operation: Operation::parse(&text("operation")),
            api_version: text("apiVersion"),
            subresource: text("subresource"),
        })
    }
}

/// JSON as Go writes it: what HTML knows is escaped.
pub(super) fn go_json(value: &Value) -> String {
    let json = value.to_string();
    if !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        match character {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing into a String does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            other => out.push(other),
        }
    }
    out
}

/// Why entries cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadEntriesError {
    /// An operation that there is not.
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    /// An entry without version.
    #[error("apiVersion must not be empty")]
    ApiVersion,
    /// An entry that does not say how its fields are written.
    #[error("missing fieldsType in managed fields entry {0}")]
    NoFieldsType(usize),
    /// An entry whose fields are written in an unknown way.
    #[error("invalid fieldsType {1:?} in managed fields entry {0}")]
    FieldsType(usize, String),
    /// Fields that are none.
    #[error("error decoding set: {0}")]
    Fields(String),
}

/// The managers of an object and when each last changed something.
#[derive(Clone, Debug, Default)]
pub struct Managed {
    /// What each owns.
    pub fields: Managers,
    /// RFC 3339 with seconds, in UTC; a manager may have none.
    pub times: BTreeMap<String, String>,
}

impl Managed {
    /// Reads entries; absent and null are none.
    ///
    /// # Errors
    /// The first rule that an entry breaks.
    pub fn read(entries: Option<&Value>) -> Result<Self, ReadEntriesError> {
        let mut managed = Self::default();
        let entries = entries.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (at, entry) in entries.iter().enumerate() {
            let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
            let operation =
                Operation::parse(text("operation")).ok_or(ReadEntriesError::Operation)?;
            let api_version = text("apiVersion");
            if api_version.is_empty() {
                return Err(ReadEntriesError::ApiVersion);
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(ReadEntriesError::NoFieldsType(at)),
                other => return Err(ReadEntriesError::FieldsType(at, other.to_owned())),
            }
            let set = match entry.get("fieldsV1") {
                None | Some(Value::Null) => Set::default(),
                Some(fields) => Set::from_fields_v1(fields)
                    .map_err(|error| ReadEntriesError::Fields(error.to_string()))?,
            };
            let identity = Identity {
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
            let applied = operation == Operation::Apply;
            managed.fields.insert(key, Owned { set, api_version: api_version.into(), applied });
        }
        Ok(managed)
    }

    /// Whether nobody owns anything.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Writes the entries, sorted by operation, time, name, version and subresource; none if there
    /// are none.
    pub fn write(&self) -> Option<Value> {
        if self.fields.is_empty() {
            return None;
        }
        let mut entries: Vec<Entry<'_>> =
            self.fields.iter().map(|(key, owned)| self.entry(key, owned)).collect();
        entries.sort_by(Entry::order);
        Some(entries.into_iter().map(Entry::into_value).collect())
    }

    fn entry<'a>(&'a self, key: &str, owned: &'a Owned) -> Entry<'a> {
        let identity = Identity::parse(key);
        let operation = match &identity {
            _ if owned.applied => Operation::Apply,
            Some(identity) => identity.operation.unwrap_or(Operation::Update),
            None => Operation::Update,
        };
        let (manager, subresource) =
            identity.map(|identity| (identity.manager, identity.subresource)).unwrap_or_default();
        let time = self.times.get(key).map(String::as_str);
        Entry { manager, operation, subresource, time, owned }
    }
}

/// One entry about to be written.
struct Entry<'a> {
    manager: String,
    operation: Operation,
    subresource: String,
    time: Option<&'a str>,
    owned: &'a Owned,
}

impl Entry<'_> {
    fn order(a: &Self, b: &Self) -> Ordering {
        // Times in one form and one zone sort as texts; an entry without one is the oldest.
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
