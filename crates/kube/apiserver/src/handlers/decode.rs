//! From a request's body to an object of the kind.
//!
//! A built-in kind's body is read as the original's Go types would read it: unknown fields go, wrong
//! types are refused. A custom kind's is read by its schema. Either way what was dropped, and what
//! was said twice, is a warning or a refusal as `fieldValidation` asks.

use super::Request;
use crate::registry::{KindRow, Source};
use crate::server::text;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Reason, Status};
use mainstay_schema::builtin::{self, Definition};
use mainstay_schema::strict;
use serde_json::Value;

/// What to do about fields that are unknown or repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl FieldValidation {
    /// What becomes of findings: nothing, warnings, or a refusal.
    fn judge(self, gvk: &Gvk, findings: Vec<String>) -> Result<Vec<String>, Status> {
        self.judge_with(findings, |why| cannot_handle(gvk, why))
    }

    /// The same with a refusal of one's own.
    pub(super) fn judge_with(
        self,
        findings: Vec<String>,
        refuse: impl FnOnce(&str) -> Status,
    ) -> Result<Vec<String>, Status> {
        match self {
            Self::Ignore => Ok(Vec::new()),
            Self::Strict if !findings.is_empty() => Err(refuse(&strict::message(&findings))),
            Self::Warn | Self::Strict => Ok(findings),
        }
    }
}

/// 400: the body cannot be read as the kind.
fn cannot_handle(gvk: &Gvk, why: &str) -> Status {
    Status::bad_request(strict::cannot_be_handled(&gvk.version, &gvk.kind, why))
}

/// An object read from a body, and what the client is to be warned of.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) object: Object,
    pub(super) warnings: Vec<String>,
}

/// Reads the body as an object of the request's kind.
pub(super) fn object(
    request: &Request<'_>,
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let (mut value, duplicates) = value(request)?;
    let gvk = request.row.gvk();
    expect_kind(&mut value, &gvk, request.row.custom().is_some())?;
    let mut decoded = typed(&request.row, value).map_err(|why| cannot_handle(&gvk, &why))?;
    let findings = std::mem::take(&mut decoded.warnings);
    decoded.warnings = validation.judge(&gvk, duplicates.into_iter().chain(findings).collect())?;
    Ok(decoded)
}

/// Reads the body as an object of another kind, one that a subresource speaks.
pub(super) fn object_of(
    request: &Request<'_>,
    gvk: &Gvk,
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let (mut value, duplicates) = value(request)?;
    expect_kind(&mut value, gvk, false)?;
    let (object, findings) =
        go_typed(builtin::definition_of(gvk), value).map_err(|why| cannot_handle(gvk, &why))?;
    let warnings = validation.judge(gvk, duplicates.into_iter().chain(findings).collect())?;
    Ok(Decoded { object, warnings })
}

/// The body as a value, and the fields that it says twice.
fn value(request: &Request<'_>) -> Result<(Value, Vec<String>), Status> {
    let content_type = text(request.headers, &CONTENT_TYPE).unwrap_or_default();
    let media = content_type.split(';').next().unwrap_or_default().trim();
    match media {
        "" | "application/json" => json(&request.body).map_err(|why| {
            Status::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {why}",
                request.row.kind
            ))
        }),
        "application/yaml" | "application/x-yaml" | "text/yaml" => yaml(&request.body),
        "application/vnd.kubernetes.protobuf" => Err(Status::new(
            Reason::UnsupportedMediaType,
            "this server reads JSON and YAML but not protobuf yet: write the object to a file and use `kubectl apply -f` or `kubectl create -f` - accepted media types include: application/json, application/yaml",
        )),
        _ => Err(unknown_media("application/json, application/yaml")),
    }
}

/// The body of a deletion: `DeleteOptions`, in JSON or YAML.
pub(super) fn options(request: &Request<'_>) -> Result<Value, Status> {
    let (value, _) = value(request)?;
    match value.get("kind").and_then(Value::as_str) {
        None | Some("" | "DeleteOptions") => Ok(value),
        Some(other) => Err(Status::bad_request(format!(
            "the kind in the data ({other}) does not match the expected kind (DeleteOptions)"
        ))),
    }
}

/// 415 for a body of another type.
pub(super) fn unknown_media(accepted: &str) -> Status {
    Status::new(
        Reason::UnsupportedMediaType,
        format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        ),
    )
}

/// Reads JSON text; the error is what is wrong with it.
pub(super) fn json(body: &Bytes) -> Result<(Value, Vec<String>), String> {
    let parsed = strict::parse(body).map_err(|error| error.to_string())?;
    Ok((parsed.value, parsed.duplicates))
}

/// Reads one YAML document.
pub(super) fn yaml(body: &Bytes) -> Result<(Value, Vec<String>), Status> {
    mainstay_yaml::one(body, &mainstay_yaml::Options::default())
        .map(|value| (value, Vec::new()))
        .map_err(|error| Status::bad_request(format!("error converting YAML to JSON: {error}")))
}

/// Makes a value an object of the row's kind. The warnings are what was dropped.
///
/// # Errors
/// Why it is none.
pub(super) fn typed(row: &KindRow, mut value: Value) -> Result<Decoded, String> {
    let Source::Custom(custom) = &row.source else {
        let (object, warnings) = go_typed(row.definition(), value)?;
        return Ok(Decoded { object, warnings });
    };
    if !value.is_object() {
        return Err(NOT_AN_OBJECT.to_owned());
    }
    let unknown = custom.version().schema.decode(&mut value)?;
    let warnings = unknown.iter().map(|path| strict::unknown_field(path)).collect();
    let object = Object::from_value(value).map_err(|_| NOT_AN_OBJECT.to_owned())?;
    Ok(Decoded { object, warnings })
}

/// Decodes as Go would into the type of a built-in kind.
fn go_typed(
    definition: Option<&Definition>,
    mut value: Value,
) -> Result<(Object, Vec<String>), String> {
    let forgets_managers = value
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .is_some_and(Vec::is_empty);
    let unknown = match definition {
        Some(definition) => strict::decode(definition, &mut value)?,
        None => Vec::new(),
    };
    let mut object = Object::from_value(value).map_err(|_| NOT_AN_OBJECT.to_owned())?;
    if forgets_managers {
        // The one list whose emptiness says something.
        object.set(&["metadata", "managedFields"], Value::Array(Vec::new()));
    }
    Ok((object, unknown))
}

const NOT_AN_OBJECT: &str = "json: cannot unmarshal the body into a Go struct";

/// Checks `apiVersion` and `kind` of a body, or fills them in where leaving them out is allowed.
pub(super) fn expect_kind(value: &mut Value, gvk: &Gvk, custom: bool) -> Result<(), Status> {
    let Value::Object(fields) = value else { return Err(cannot_handle(gvk, NOT_AN_OBJECT)) };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if custom && (kind.is_empty() || api_version.is_empty()) {
        let missing = if kind.is_empty() { "Kind" } else { "apiVersion" };
        return Err(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object '{missing}' is missing in '{}'",
            gvk.kind,
            Value::Object(fields.clone())
        )));
    }
    let expected = gvk.api_version();
    if !api_version.is_empty() && *api_version != *expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({expected})"
        )));
    }
    if !kind.is_empty() && *kind != *gvk.kind {
        if custom {
            let name = fields.get("metadata").and_then(|it| it.get("name")).and_then(Value::as_str);
            let why = format!("must be {}", gvk.kind);
            let error = FieldError::invalid(&FieldPath::new("kind"), kind, why);
            return Err(Status::invalid(&gvk.group, kind, name.unwrap_or_default(), &[error]));
        }
        return Err(Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}: no kind {kind:?} is served here",
            gvk.version, gvk.kind
        )));
    }
    if api_version.is_empty() {
        fields.insert("apiVersion".to_owned(), expected.into());
    }
    if !fields.get("kind").is_some_and(Value::is_string) {
        fields.insert("kind".to_owned(), gvk.kind.as_str().into());
    }
    Ok(())
}
