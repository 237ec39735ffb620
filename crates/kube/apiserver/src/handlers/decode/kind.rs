//! What a body says that it is, against what it should be.

use super::error::{no_kind, unrecognized};
use mainstay_object::{FieldError, FieldPath, Gvk, Status};
use mainstay_schema::builtin;
use serde_json::{Map, Value};

/// The original's name of the place where its kinds are registered.
const SCHEME: &str = "pkg/runtime/scheme.go:111";
/// The type into which the original reads `apiVersion` and `kind` first.
const GO_HEAD: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
/// Kinds that every group-version has besides its own.
const EVERYWHERE: [&str; 7] = [
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
];
/// Kinds of the core group that are no objects.
const DOCUMENTS: [&str; 6] =
    ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "List", "Status"];

/// Checks `apiVersion` and `kind` of a body for a built-in kind, and fills in what is left out. A
/// body that is null is an empty object.
pub(super) fn identify(value: &mut Value, gvk: &Gvk, body: &[u8]) -> Result<(), Status> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    let (api_version, kind) = said(value, gvk, body)?;
    let found = found(&api_version, &kind, gvk)
        .ok_or_else(|| unrecognized(&gvk.kind, bad_version(&api_version), body))?;
    if found != *gvk {
        return Err(mismatch(&found, gvk));
    }
    if let Value::Object(fields) = value {
        fields.insert("apiVersion".to_owned(), gvk.api_version().into());
        fields.insert("kind".to_owned(), gvk.kind.as_str().into());
    }
    Ok(())
}

/// The same for a custom kind, whose bodies must say both. That it is of another version is refused
/// later, when its metadata has been read.
pub(super) fn identify_custom(
    value: &Value,
    gvk: &Gvk,
    body: &[u8],
) -> Result<Option<Status>, Status> {
    let (api_version, kind) = said(value, gvk, body)?;
    if kind.is_empty() {
        let shown = String::from_utf8_lossy(body);
        return Err(unrecognized(&gvk.kind, missing_kind(&shown), body));
    }
    if api_version.matches('/').count() > 1 {
        return Err(unrecognized(&gvk.kind, bad_version(&api_version), body));
    }
    let expected = gvk.api_version();
    if api_version != expected {
        return Ok(Some(wrong_version(&api_version, &expected)));
    }
    expect_custom_names(value, gvk).map(|()| None)
}

/// What a body says it is.
fn said(value: &Value, gvk: &Gvk, body: &[u8]) -> Result<(String, String), Status> {
    let refuse = |found: &Value, into: &str| {
        let found = mainstay_gocompat::values::json_kind(found);
        let why = no_kind(format!("json: cannot unmarshal {found} into Go {into}"));
        Err(unrecognized(&gvk.kind, &why, body))
    };
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => return Ok((String::new(), String::new())),
        other => return refuse(other, &format!("value of type {GO_HEAD}")),
    };
    let mut texts = [String::new(), String::new()];
    for (name, text) in ["apiVersion", "kind"].into_iter().zip(&mut texts) {
        match fields.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::String(said)) => text.clone_from(said),
            Some(other) => return refuse(other, &format!("struct field .{name} of type string")),
        }
    }
    let [api_version, kind] = texts;
    Ok((api_version, kind))
}

fn bad_version(api_version: &str) -> String {
    format!("unexpected GroupVersion string: {api_version}")
}

fn missing_kind(body: &str) -> String {
    format!("Object 'Kind' is missing in '{body}'")
}

fn wrong_version(found: &str, expected: &str) -> Status {
    Status::bad_request(format!(
        "the API version in the data ({found}) does not match the expected API version ({expected})"
    ))
}

/// The kind that a body is, where what it leaves out is as expected; none if its version is none.
fn found(api_version: &str, kind: &str, expected: &Gvk) -> Option<Gvk> {
    let (group, version) = match api_version.split_once('/') {
        None => ("", api_version),
        Some((_, version)) if version.contains('/') => return None,
        Some((group, version)) => (group, version),
    };
    let kind = if kind.is_empty() { &expected.kind } else { kind };
    Some(match (group, version) {
        ("", "") => Gvk::new(expected.group.as_str(), expected.version.as_str(), kind),
        (group, "") if group == expected.group => Gvk::new(group, expected.version.as_str(), kind),
        (group, version) => Gvk::new(group, version, kind),
    })
}

/// Why a body of one kind is none of another.
fn mismatch(found: &Gvk, expected: &Gvk) -> Status {
    let refuse = |why: &str| {
        Status::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {why}",
            found.kind, found.version, expected.kind
        ))
    };
    if !is_registered(found, expected) {
        let version = found.api_version();
        return refuse(&not_registered(&found.kind, &version));
    }
    if found.kind == expected.kind && internal_group(found) == internal_group(expected) {
        return wrong_version(&found.api_version(), &expected.api_version());
    }
    refuse(&format!(
        "converting ({}.{}) to ({}.{}): unknown conversion",
        found.version,
        found.kind,
        internal_group(expected),
        expected.kind
    ))
}

/// That the original has no type for a kind.
pub(super) fn not_registered(kind: &str, version: &str) -> String {
    format!("no kind {kind:?} is registered for version {version:?} in scheme {SCHEME:?}")
}

/// That the original knows no kind of a type.
pub(in crate::handlers) fn no_type(name: &str) -> String {
    format!("no kind is registered for the type {name} in scheme {SCHEME:?}")
}

/// Whether the original has a type for a kind, in the part of it that serves another.
fn is_registered(gvk: &Gvk, served: &Gvk) -> bool {
    let part = |group: &str| match group {
        "apiextensions.k8s.io" | "apiregistration.k8s.io" => group.to_owned(),
        _ => String::new(),
    };
    if EVERYWHERE.contains(&gvk.kind.as_str()) {
        return builtin::kinds()
            .iter()
            .any(|row| row.group == gvk.group && row.version == gvk.version);
    }
    if gvk.group.is_empty() && gvk.version == "v1" && DOCUMENTS.contains(&gvk.kind.as_str()) {
        return true;
    }
    part(&gvk.group) == part(&served.group)
        && builtin::definition_of(gvk).is_some_and(|definition| definition.field("kind").is_some())
}

/// The package of the original's own form of a kind, which is one for all versions.
fn internal_group(gvk: &Gvk) -> &str {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("" | "events.k8s.io", _) => "core",
        ("extensions", "Ingress" | "NetworkPolicy") => "networking",
        ("extensions", _) => "apps",
        (group, _) => group.split('.').next().unwrap_or_default(),
    }
}

/// Why a value is no object at all.
pub(super) fn headless(value: &Value) -> String {
    let found = mainstay_gocompat::values::json_kind(value);
    no_kind(format!("json: cannot unmarshal {found} into Go value of type {GO_HEAD}"))
}

/// What a patch made is no object of the kind.
#[derive(Debug, thiserror::Error)]
pub(in crate::handlers) enum KindError {
    /// It is no object.
    #[error("{}", headless(value))]
    NoObject {
        /// What it is.
        value: Value,
    },
    /// Its version is none.
    #[error("{}", bad_version(api_version))]
    BadVersion {
        /// The version.
        api_version: String,
    },
    /// It is of another kind.
    #[error("{}", bare_mismatch(found, expected))]
    OtherKind {
        /// Its own.
        found: Box<Gvk>,
        /// That of the request.
        expected: Box<Gvk>,
    },
    /// It does not name its kind, and must.
    #[error("{}", missing_kind(object))]
    NoKind {
        /// The object as JSON.
        object: String,
    },
    /// It is another object of a custom kind, which has a refusal of its own.
    #[error("{}", .0.message)]
    Custom(Box<Status>),
}

/// Checks `apiVersion` and `kind` of what a patch made, where leaving them out is allowed for
/// built-in kinds.
pub(in crate::handlers) fn expect_kind(
    value: &mut Value,
    gvk: &Gvk,
    custom: bool,
) -> Result<(), KindError> {
    let Value::Object(fields) = value else {
        return Err(KindError::NoObject { value: value.clone() });
    };
    if !custom {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some(found) = found(text("apiVersion"), text("kind"), gvk) else {
            return Err(KindError::BadVersion { api_version: text("apiVersion").to_owned() });
        };
        if found != *gvk {
            let (found, expected) = (Box::new(found), Box::new(gvk.clone()));
            return Err(KindError::OtherKind { found, expected });
        }
        fields.insert("apiVersion".to_owned(), gvk.api_version().into());
        fields.insert("kind".to_owned(), gvk.kind.as_str().into());
        return Ok(());
    }
    let named = fields.get("kind").and_then(Value::as_str).is_some_and(|kind| !kind.is_empty());
    if !named {
        return Err(KindError::NoKind { object: value.to_string() });
    }
    expect_custom_names(value, gvk).map_err(|status| KindError::Custom(Box::new(status)))
}

/// Gives what a strategic merge patch made its kind, whatever the patch says that it is: the original
/// merges into a value that has its type already. What is no text is left to be refused.
pub(in crate::handlers) fn take_kind(fields: &mut Map<String, Value>, gvk: &Gvk) {
    for (name, text) in [("apiVersion", gvk.api_version()), ("kind", gvk.kind.clone())] {
        if fields.get(name).is_none_or(Value::is_string) {
            fields.insert(name.to_owned(), text.into());
        }
    }
}

fn bare_mismatch(found: &Gvk, expected: &Gvk) -> String {
    let status = mismatch(found, expected);
    let (_, why) =
        status.message.split_once(&format!("as a {}: ", expected.kind)).unwrap_or_default();
    if why.is_empty() { status.message } else { why.to_owned() }
}

/// 422 if an object of a custom kind says that it is another.
fn expect_custom_names(value: &Value, gvk: &Gvk) -> Result<(), Status> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let expected = gvk.api_version();
    let mut errors = Vec::new();
    if text("kind") != gvk.kind {
        let why = format!("must be {}", gvk.kind);
        errors.push(FieldError::invalid(&FieldPath::new("kind"), text("kind"), why));
    }
    if text("apiVersion") != expected {
        let why = format!("must be {expected}");
        errors.push(FieldError::invalid(&FieldPath::new("apiVersion"), text("apiVersion"), why));
    }
    if errors.is_empty() {
        return Ok(());
    }
    let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    // The kind that is told of is the one that the object says it is.
    let group = match text("apiVersion").split_once('/') {
        Some((group, version)) if !version.contains('/') => group,
        _ => "",
    };
    Err(Status::invalid(group, text("kind"), name, &errors))
}
