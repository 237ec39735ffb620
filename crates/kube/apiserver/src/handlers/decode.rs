//! From a request's body to an object of the kind.
//!
//! A built-in kind's body is read as the original's Go types would read it: unknown fields go, wrong
//! types are refused. A custom kind's is read by its schema. Either way what was dropped, and what
//! was said twice, is a warning or a refusal as `fieldValidation` asks.
//!
//! Bodies are JSON, YAML (its first document) or protobuf. The last has no names of fields, so
//! nothing in it is unknown; it is for built-in kinds.
//!
//! ```text
//! body ─ media ─► JSON ─┐
//!                 YAML ─┼─► value ─ identify ─► kind ─ typed ─► object + findings ─ judge ─► object
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

pub(super) use kind::{KindError, expect_kind, no_type, take_kind};
pub(super) use media::unknown_media;

/// What to do about fields that are unknown or repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl FieldValidation {
    /// What becomes of findings: nothing, warnings, or a refusal of one's own.
    pub(super) fn judge_with(
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

/// A body that was read as a value.
struct Body {
    value: Value,
    /// What was found while reading: keys that are there twice.
    repeated: Vec<String>,
    media: Media,
    /// Bytes in which the order of fields is to be found again.
    text: Bytes,
}

/// Reads the body as an object of the request's kind. What it warns of is kept for the answer,
/// whatever that will be.
pub(super) fn object(
    request: &Request<'_>,
    validation: FieldValidation,
) -> Result<DecodedObject, Status> {
    let gvk = request.row.gvk();
    if request.row.custom().is_none() {
        return object_of(request, &gvk, validation);
    }
    let mut body = read(request, &gvk)?;
    let wrong = kind::identify_custom(&body.value, &gvk, &request.body)?;
    // Of an object of another version only the metadata is looked at.
    let decoded = match wrong {
        None => decode_object(&request.row, body.value),
        Some(_) => strict::decode_metadata(&mut body.value)
            .map(|warnings| DecodedObject { object: Object::default(), warnings })
            .map_err(DecodeObjectError::from),
    };
    let mut decoded = decoded.map_err(|error| cannot_handle(&gvk, error))?;
    let mut findings = findings_of(body.repeated, body.media);
    // Metadata is read apart, before the rest.
    let (metadata, rest): (Vec<String>, Vec<String>) = std::mem::take(&mut decoded.warnings)
        .into_iter()
        .partition(|finding| finding.starts_with("unknown field \"metadata."));
    findings.extend(metadata);
    findings.extend(rest);
    warn(request, validation, &gvk, findings)?;
    wrong.map_or(Ok(decoded), Err)
}

/// Reads the body as an object of a built-in kind: the request's own, or one that a subresource
/// speaks.
pub(super) fn object_of(
    request: &Request<'_>,
    gvk: &Gvk,
    validation: FieldValidation,
) -> Result<DecodedObject, Status> {
    let mut body = read(request, gvk)?;
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

/// What reading found, in the words of a refusal: one finding for all repeated keys of YAML.
fn findings_of(repeated: Vec<String>, media: Media) -> Vec<String> {
    if media == Media::Yaml && !repeated.is_empty() {
        return vec![format!("{YAML_ERRORS}\n  {}", repeated.join("\n  "))];
    }
    repeated
}

/// What Go's reader of YAML begins its list of errors with.
const YAML_ERRORS: &str = "yaml: unmarshal errors:";

fn warn(
    request: &Request<'_>,
    validation: FieldValidation,
    gvk: &Gvk,
    findings: Vec<String>,
) -> Result<(), Status> {
    for finding in validation.judge_with(findings, |why| cannot_handle(gvk, why))? {
        // A list of errors is as many warnings.
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

/// Reads the body as a value, whatever its kind. `gvk` is the kind that it should be.
fn read(request: &Request<'_>, gvk: &Gvk) -> Result<Body, Status> {
    let media = Media::of(request)?;
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
    Ok(Body { value, repeated, media, text: bytes.clone() })
}

/// The bodies of custom kinds.
const JSON_YAML: &str = "application/json, application/yaml";

/// The value of a protobuf body. Bodies of another kind are not looked into: their names say enough.
fn from_protobuf(gvk: &Gvk, body: &[u8]) -> Result<Value, Status> {
    let envelope = protobuf::unwrap(body).map_err(|error| unrecognized(&gvk.kind, error, body))?;
    let named = |name: &str, wanted: &str| name.is_empty() || name == wanted;
    let ours = named(&envelope.api_version, &gvk.api_version()) && named(&envelope.kind, &gvk.kind);
    let mut value = match builtin::definition_of(gvk) {
        Some(definition) if ours => {
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

/// The body of a deletion: `DeleteOptions`, in any form.
pub(super) fn options(request: &Request<'_>) -> Result<Value, Status> {
    let gvk = Gvk::new("meta.k8s.io", "v1", "DeleteOptions");
    let media = Media::of(request)?;
    let bad = |why: String| Status::bad_request(why);
    let body = &request.body;
    let mut value = match media {
        Media::Json => strict::parse(body).map_err(|error| bad(no_kind(error)))?.value,
        Media::Yaml => yaml::first_document(body).map_err(|error| bad(error.to_string()))?.0,
        Media::Protobuf => {
            let envelope = protobuf::unwrap(body).map_err(|error| bad(error.to_string()))?;
            let definition = builtin::definition_of(&gvk);
            let mut value = definition
                .map_or(Ok(Value::Null), |definition| protobuf::decode(definition, envelope.raw))
                .map_err(|error| bad(error.to_string()))?;
            if let Value::Object(fields) = &mut value {
                fields.insert("kind".to_owned(), envelope.kind.into_owned().into());
            }
            value
        }
    };
    if !value.is_object() && !value.is_null() {
        return Err(bad(kind::headless(&value)));
    }
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    let version = if version.is_empty() { "meta.k8s.io/v1" } else { version };
    if !matches!(kind, "" | "DeleteOptions") {
        return Err(bad(kind::not_registered(kind, version)));
    }
    if let Some(definition) = builtin::definition_of(&gvk) {
        strict::decode(definition, &mut value).map_err(|error| bad(error.to_string()))?;
    }
    Ok(value)
}

/// Reads JSON text, and the keys that it says twice.
pub(super) fn json(body: &Bytes) -> Result<(Value, Vec<String>), JsonError> {
    let parsed = strict::parse(body)?;
    Ok((parsed.value, parsed.duplicates))
}

/// Reads the YAML of an apply, and the keys that it says twice.
pub(super) fn yaml(body: &Bytes) -> Result<(Value, Vec<String>), Status> {
    yaml::first_document(body).map_err(|error| {
        Status::bad_request(format!("error decoding YAML: error converting YAML to JSON: {error}"))
    })
}
