//! `apiVersion` and `kind` of a body, compared with the expected kind.

use super::error::{no_kind, unrecognized};
use mainstay_object::{FieldError, FieldPath, Gvk, Status};
use mainstay_schema::builtin;
use serde_json::{Map, Value};

/// kube-apiserver's name of the scheme in which its kinds are registered.
const SCHEME: &str = "pkg/runtime/scheme.go:111";
/// The Go type into which kube-apiserver decodes `apiVersion` and `kind` first.
const GO_HEAD: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
/// Kinds that are registered in every group-version.
const OPTION_KINDS: [&str; 7] = [
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
];
/// Kinds of the core group that are no objects.
const CORE_DOCUMENTS: [&str; 6] =
    ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "List", "Status"];

/// Checks `apiVersion` and `kind` of a body for a built-in kind, and adds them where they are
/// missing. A null body is an empty object.
pub(super) fn identify(value: &mut Value, gvk: &Gvk, body: &[u8]) -> Result<(), Status> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    let (api_version, kind) = declared_kind(value, gvk, body)?;
    let found = resolve_kind(&api_version, &kind, gvk)
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

/// The same for a custom kind, whose bodies must have both. The error for another version is
/// returned as a value: the caller reports it after decoding the metadata.
pub(super) fn identify_custom(
    value: &Value,
    gvk: &Gvk,
    body: &[u8],
) -> Result<Option<Status>, Status> {
    let (api_version, kind) = declared_kind(value, gvk, body)?;
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
    check_custom_kind(value, gvk).map(|()| None)
}

/// `apiVersion` and `kind` of a body.
fn declared_kind(value: &Value, gvk: &Gvk, body: &[u8]) -> Result<(String, String), Status> {
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
            Some(Value::String(value)) => text.clone_from(value),
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

/// The kind of a body, with missing parts as expected; none if `apiVersion` is invalid.
fn resolve_kind(api_version: &str, kind: &str, expected: &Gvk) -> Option<Gvk> {
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

/// The refusal of a body of another kind.
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

/// The text that kube-apiserver has no type for a kind.
pub(super) fn not_registered(kind: &str, version: &str) -> String {
    format!("no kind {kind:?} is registered for version {version:?} in scheme {SCHEME:?}")
}

/// The text that kube-apiserver has no kind for a type.
pub(in crate::handlers) fn type_not_registered(name: &str) -> String {
    format!("no kind is registered for the type {name} in scheme {SCHEME:?}")
}

/// Whether kube-apiserver has a type for a kind, in the scheme that serves the expected kind.
fn is_registered(gvk: &Gvk, served: &Gvk) -> bool {
    let part = |group: &str| match group {
        "apiextensions.k8s.io" | "apiregistration.k8s.io" => group.to_owned(),
        _ => String::new(),
    };
    if OPTION_KINDS.contains(&gvk.kind.as_str()) {
        return builtin::kinds()
            .iter()
            .any(|row| row.group == gvk.group && row.version == gvk.version);
    }
    if gvk.group.is_empty() && gvk.version == "v1" && CORE_DOCUMENTS.contains(&gvk.kind.as_str()) {
        return true;
    }
    part(&gvk.group) == part(&served.group)
        && builtin::definition_of(gvk).is_some_and(|definition| definition.field("kind").is_some())
}

/// The Go package of kube-apiserver's internal type, which all versions share.
fn internal_group(gvk: &Gvk) -> &str {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("" | "events.k8s.io", _) => "core",
        ("extensions", "Ingress" | "NetworkPolicy") => "networking",
        ("extensions", _) => "apps",
        (group, _) => group.split('.').next().unwrap_or_default(),
    }
}

/// The error for a value that is no object.
pub(super) fn not_an_object(value: &Value) -> String {
    let found = mainstay_gocompat::values::json_kind(value);
    no_kind(format!("json: cannot unmarshal {found} into Go value of type {GO_HEAD}"))
}

/// The result of a patch is no object of the kind.
#[derive(Debug, thiserror::Error)]
pub(in crate::handlers) enum KindError {
    /// The result is no JSON object.
    #[error("{}", not_an_object(value))]
    NotAnObject {
        /// The result.
        value: Value,
    },
    /// Its `apiVersion` is invalid.
    #[error("{}", bad_version(api_version))]
    BadVersion {
        /// The `apiVersion`.
        api_version: String,
    },
    /// It has another kind.
    #[error("{}", bare_mismatch(found, expected))]
    OtherKind {
        /// The kind of the result.
        found: Box<Gvk>,
        /// The kind of the request.
        expected: Box<Gvk>,
    },
    /// It has no `kind`, which custom kinds require.
    #[error("{}", missing_kind(object))]
    NoKind {
        /// The object as JSON.
        object: String,
    },
    /// It is another object of a custom kind; that has its own refusal.
    #[error("{}", .0.message)]
    Custom(Box<Status>),
}

/// Checks `apiVersion` and `kind` of the result of a patch. Built-in kinds may leave them out.
pub(in crate::handlers) fn check_kind(
    value: &mut Value,
    gvk: &Gvk,
    custom: bool,
) -> Result<(), KindError> {
    let Value::Object(fields) = value else {
        return Err(KindError::NotAnObject { value: value.clone() });
    };
    if !custom {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let Some(found) = resolve_kind(text("apiVersion"), text("kind"), gvk) else {
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
    let has_kind = fields.get("kind").and_then(Value::as_str).is_some_and(|kind| !kind.is_empty());
    if !has_kind {
        return Err(KindError::NoKind { object: value.to_string() });
    }
    check_custom_kind(value, gvk).map_err(|status| KindError::Custom(Box::new(status)))
}

/// Sets the kind of the result of a strategic merge patch: kube-apiserver merges into a typed
/// value, so the patch cannot change the kind. A value that is no string is refused later.
pub(in crate::handlers) fn set_kind(fields: &mut Map<String, Value>, gvk: &Gvk) {
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

/// 422 if an object of a custom kind has another `apiVersion` or `kind`.
fn check_custom_kind(value: &Value, gvk: &Gvk) -> Result<(), Status> {
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
    // The status names the kind that the object claims.
    let group = match text("apiVersion").split_once('/') {
        Some((group, version)) if !version.contains('/') => group,
        _ => "",
    };
    Err(Status::invalid(group, text("kind"), name, &errors))
}
