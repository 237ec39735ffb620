//! Request bodies: from bytes to an object of the kind.
//!
//! A built-in kind is decoded as kube-apiserver's Go types decode it: unknown fields are dropped,
//! wrong types are refused. A custom kind is decoded by its schema. `fieldValidation` decides
//! whether dropped fields and duplicate keys are warnings or a refusal.
//!
//! Bodies are JSON, YAML (the first document) or protobuf. Protobuf has no field names, so it has
//! no unknown fields; only built-in kinds support it.
//!
//! ```text
//! body ─ media ─► JSON ─┐
//!                 YAML ─┼─► value ─ identify ─► kind ─ typed ─► object + findings ─► object
//!             protobuf ─┘
//! ```

mod error;
mod kind;
mod media;

use self::error::{cannot_handle, no_kind, unrecognized};
use self::media::Media;
use super::request::Request;
use bytes::Bytes;
use mainstay_conversion::decode::{
    DecodeObjectError, DecodedObject, decode_built_in, decode_object,
};
use mainstay_http::yaml;
use mainstay_object::{Gvk, Object, Status};
use mainstay_schema::builtin;
use mainstay_schema::protobuf;
use mainstay_schema::strict::{self, JsonError};
use serde_json::Value;
use std::fmt;

pub(super) use kind::{KindError, check_kind, set_kind, type_not_registered};
pub(super) use media::unknown_media;

/// The treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl FieldValidation {
    /// Ignores findings, returns them as warnings, or refuses with `refuse`.
    pub(super) fn apply_to(
        self,
        findings: Vec<String>,
        refuse: impl FnOnce(&str) -> Status,
    ) -> Result<Vec<String>, Status> {
        match self {
            _ if mainstay_fault::is_on("unknown-fields-are-no-finding") => Ok(Vec::new()),
            Self::Ignore => Ok(Vec::new()),
            Self::Strict if !findings.is_empty() => Err(refuse(&strict::message(&findings))),
            Self::Warn | Self::Strict => Ok(findings),
        }
    }
}

/// A parsed body.
struct ParsedBody {
    value: Value,
    /// Duplicate keys.
    repeated: Vec<String>,
    media: Media,
    /// The original bytes, from which the order of fields is read again.
    text: Bytes,
}

/// Decodes the body as an object of the request's kind. Its warnings are added to the response,
/// whatever that is.
pub(super) fn object(
    request: &Request<'_>,
    validation: FieldValidation,
) -> Result<DecodedObject, Status> {
    let gvk = request.row.gvk();
    if request.row.custom().is_none() {
        return built_in_object(request, &gvk, validation);
    }
    let mut body = parse_body(request, &gvk)?;
    let version_error = kind::identify_custom(&body.value, &gvk, &request.body)?;
    // Of an object of another version, only the metadata is decoded.
    let decoded = match version_error {
        None => decode_object(&request.row, body.value),
        Some(_) => strict::decode_metadata(&mut body.value)
            .map(|warnings| DecodedObject { object: Object::default(), warnings })
            .map_err(DecodeObjectError::from),
    };
    let mut decoded = decoded.map_err(|error| cannot_handle(&gvk, error))?;
    let mut findings = findings_of(body.repeated, body.media);
    // Findings about metadata come first, as in kube-apiserver.
    let (metadata, rest): (Vec<String>, Vec<String>) = std::mem::take(&mut decoded.warnings)
        .into_iter()
        .partition(|finding| finding.starts_with("unknown field \"metadata."));
    findings.extend(metadata);
    findings.extend(rest);
    warn(request, validation, &gvk, findings)?;
    version_error.map_or(Ok(decoded), Err)
}

/// Decodes the body as an object of a built-in kind: that of the request, or that of a subresource.
pub(super) fn built_in_object(
    request: &Request<'_>,
    gvk: &Gvk,
    validation: FieldValidation,
) -> Result<DecodedObject, Status> {
    let mut body = parse_body(request, gvk)?;
    kind::identify(&mut body.value, gvk, &request.body)?;
    let definition = builtin::definition_of(gvk);
    let (object, unknown) =
        decode_built_in(definition, body.value).map_err(|error| cannot_handle(gvk, error))?;
    let findings = match (body.media, definition) {
        (Media::Json, Some(definition)) if !unknown.is_empty() || !body.repeated.is_empty() => {
            strict::findings(definition, &body.text)
        }
        (media, _) => {
            let mut findings = findings_of(body.repeated, media);
            findings.extend(unknown);
            findings
        }
    };
    warn(request, validation, gvk, findings)?;
    Ok(DecodedObject { object, warnings: Vec::new() })
}

/// The findings of the parser; YAML reports all duplicate keys as one.
fn findings_of(repeated: Vec<String>, media: Media) -> Vec<String> {
    if media == Media::Yaml && !repeated.is_empty() {
        return vec![format!("{YAML_ERRORS}\n  {}", repeated.join("\n  "))];
    }
    repeated
}

/// The first line of an error list of Go's YAML parser.
const YAML_ERRORS: &str = "yaml: unmarshal errors:";

fn warn(
    request: &Request<'_>,
    validation: FieldValidation,
    gvk: &Gvk,
    findings: Vec<String>,
) -> Result<(), Status> {
    for finding in validation.apply_to(findings, |why| cannot_handle(gvk, why))? {
        // Each line of an error list is a warning.
        match finding.strip_prefix(YAML_ERRORS) {
            Some(lines) => lines
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .for_each(|line| request.warn(line.to_owned())),
            None => request.warn(finding),
        }
    }
    Ok(())
}

/// Parses the body as a value of any kind. `gvk` is the expected kind.
fn parse_body(request: &Request<'_>, gvk: &Gvk) -> Result<ParsedBody, Status> {
    let media = Media::from_request(request)?;
    let bytes = &request.body;
    let unrecognized = |why: &dyn fmt::Display| unrecognized(&gvk.kind, why, bytes);
    let (value, repeated) = match media {
        Media::Json => {
            let mut parsed = strict::parse(bytes).map_err(|error| unrecognized(&no_kind(error)))?;
            if !parsed.duplicates.is_empty() && request.row.custom().is_none() {
                parsed = strict::parse_merging(bytes).map_err(|error| unrecognized(&error))?;
            }
            (parsed.value, parsed.duplicates)
        }
        Media::Yaml => yaml::first_document(bytes).map_err(|error| unrecognized(&error))?,
        Media::Protobuf if request.row.custom().is_some() => return Err(unknown_media(JSON_YAML)),
        Media::Protobuf => (from_protobuf(gvk, bytes)?, Vec::new()),
    };
    Ok(ParsedBody { value, repeated, media, text: bytes.clone() })
}

/// The media types of bodies of custom kinds.
const JSON_YAML: &str = "application/json, application/yaml";

/// The value of a protobuf body. A body of another kind is not decoded: its names suffice for the
/// refusal.
fn from_protobuf(gvk: &Gvk, body: &[u8]) -> Result<Value, Status> {
    let envelope = protobuf::unwrap(body).map_err(|error| unrecognized(&gvk.kind, error, body))?;
    let matches = |name: &str, wanted: &str| name.is_empty() || name == wanted;
    let is_expected =
        matches(&envelope.api_version, &gvk.api_version()) && matches(&envelope.kind, &gvk.kind);
    let mut value = match builtin::definition_of(gvk) {
        Some(definition) if is_expected => {
            protobuf::decode(definition, envelope.raw).map_err(|error| cannot_handle(gvk, error))?
        }
        _ => Value::Object(serde_json::Map::new()),
    };
    if let Value::Object(fields) = &mut value {
        for (name, text) in [("apiVersion", envelope.api_version), ("kind", envelope.kind)] {
            if !text.is_empty() {
                fields.insert(name.to_owned(), text.into_owned().into());
            }
        }
    }
    Ok(value)
}

/// Decodes the body of a deletion: `DeleteOptions` in any media type.
pub(super) fn options(request: &Request<'_>) -> Result<Value, Status> {
    let gvk = Gvk::new("meta.k8s.io", "v1", "DeleteOptions");
    let media = Media::from_request(request)?;
    let refuse = |why: String| Status::bad_request(why);
    let body = &request.body;
    let mut value = match media {
        Media::Json => strict::parse(body).map_err(|error| refuse(no_kind(error)))?.value,
        Media::Yaml => yaml::first_document(body).map_err(|error| refuse(error.to_string()))?.0,
        Media::Protobuf => {
            let envelope = protobuf::unwrap(body).map_err(|error| refuse(error.to_string()))?;
            let definition = builtin::definition_of(&gvk);
            let mut value = definition
                .map_or(Ok(Value::Null), |definition| protobuf::decode(definition, envelope.raw))
                .map_err(|error| refuse(error.to_string()))?;
            if let Value::Object(fields) = &mut value {
                fields.insert("kind".to_owned(), envelope.kind.into_owned().into());
            }
            value
        }
    };
    if !value.is_object() && !value.is_null() {
        return Err(refuse(kind::not_an_object(&value)));
    }
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    let version = if version.is_empty() { "meta.k8s.io/v1" } else { version };
    if !matches!(kind, "" | "DeleteOptions") {
        return Err(refuse(kind::not_registered(kind, version)));
    }
    if let Some(definition) = builtin::definition_of(&gvk) {
        strict::decode(definition, &mut value).map_err(|error| refuse(error.to_string()))?;
    }
    Ok(value)
}

/// Parses JSON; returns the value and its duplicate keys.
pub(super) fn json(body: &Bytes) -> Result<(Value, Vec<String>), JsonError> {
    let parsed = strict::parse(body)?;
    Ok((parsed.value, parsed.duplicates))
}

/// Parses the YAML of an apply; returns the value and its duplicate keys.
pub(super) fn yaml(body: &Bytes) -> Result<(Value, Vec<String>), Status> {
    yaml::first_document(body).map_err(|error| {
        Status::bad_request(format!("error decoding YAML: error converting YAML to JSON: {error}"))
    })
}
