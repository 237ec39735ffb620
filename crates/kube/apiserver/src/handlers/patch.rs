//! Patch.

use super::change;
use super::decode::{FieldValidation, KindError};
use super::options::{Verb, WriteOptions};
use super::part::Part;
use super::request::Request;
use super::updated_object::{UpdatedObject, Version};
use super::{apply, decode};
use http::header::CONTENT_TYPE;
use mainstay_http::header_text;
use mainstay_http::response::ApiResponse;
use mainstay_kinds::KindSource;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Reason, Status};
use mainstay_schema::builtin::{self, TypeDefinition};
use mainstay_schema::strict::{self, JsonError};
use serde_json::Value;

/// The kinds of patches of custom kinds, whose lists have no merge keys.
const ACCEPTED_OF_CUSTOM: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
/// The parts of an operation of a JSON patch.
const OPERATION: &[&str] = &["from", "op", "path", "value"];

/// A patch. That its body cannot be read is said when there is something to patch.
pub(super) struct Patch {
    kind: PatchKind,
    value: Result<Value, JsonError>,
    /// Fields that the patch says twice or that no operation has.
    findings: Vec<String>,
    validation: FieldValidation,
}

#[derive(Clone, Copy)]
enum PatchKind {
    Json,
    Merge,
    Strategic(&'static TypeDefinition),
}

impl Patch {
    /// Reads the options, then the body. `builtin` is the kind that is patched, none for a custom
    /// one.
    pub(super) fn read(
        request: &Request<'_>,
        builtin: Option<&Gvk>,
    ) -> Result<(Self, WriteOptions), Status> {
        let kind = match (media_type(request), builtin.and_then(builtin::definition_of)) {
            ("application/json-patch+json", _) => PatchKind::Json,
            ("application/merge-patch+json", _) => PatchKind::Merge,
            ("application/strategic-merge-patch+json", Some(definition)) => {
                PatchKind::Strategic(definition)
            }
            // Paths of built-in kinds say beforehand what they take.
            (_, Some(_)) => {
                let status =
                    Status::new(Reason::UnsupportedMediaType, "415: Unsupported Media Type");
                return Err(status.with_empty_details());
            }
            (_, None) => return Err(decode::unknown_media(ACCEPTED_OF_CUSTOM)),
        };
        let options = WriteOptions::read(request, Verb::Patch)?;
        let (value, mut findings) = match decode::json(&request.body) {
            Ok((value, repeated)) => (Ok(value), repeated),
            Err(error) => (Err(error), Vec::new()),
        };
        if matches!(kind, PatchKind::Json) {
            findings = strict::findings_in_records(OPERATION, &request.body);
            for finding in &mut findings {
                finding.insert_str(0, "json patch ");
            }
        }
        Ok((Self { kind, value, findings, validation: options.validation }, options))
    }

    /// The patched value.
    pub(super) fn apply(&self, current: &Object) -> Result<Value, Status> {
        let lenient = self.validation == FieldValidation::Ignore;
        let patch = self.value.as_ref().map_err(|error| {
            Status::bad_request(match self.kind {
                PatchKind::Merge if lenient => "Invalid JSON Patch".to_owned(),
                PatchKind::Json | PatchKind::Merge if !lenient => {
                    format!("error decoding patch: {error}")
                }
                _ => error.to_string(),
            })
        })?;
        let mut value = current.to_value();
        let patched = match self.kind {
            PatchKind::Json => {
                let checked =
                    if lenient { Ok(()) } else { mainstay_patch::check_operations(patch) };
                checked.and_then(|()| mainstay_patch::json_patch(&mut value, patch)).map(|()| value)
            }
            // What is checked by nobody may make a list of the object, which then is none.
            PatchKind::Merge if lenient && patch.is_array() => Ok(patch.clone()),
            PatchKind::Merge if lenient && !patch.is_object() => {
                return Err(Status::bad_request("Invalid JSON Patch"));
            }
            PatchKind::Merge => mainstay_patch::merge_patch(&mut value, patch).map(|()| value),
            PatchKind::Strategic(definition) => {
                mainstay_patch::strategic_merge(&value, patch, definition)
            }
        };
        patched.map_err(|error| error.to_status())
    }

    /// Checks what the patched value says that it is, and fills in what it leaves out.
    pub(super) fn identify(
        &self,
        value: &mut Value,
        gvk: &Gvk,
        custom: bool,
    ) -> Result<(), KindError> {
        match value {
            Value::Object(fields) if matches!(self.kind, PatchKind::Strategic(_)) => {
                decode::take_kind(fields, gvk);
                Ok(())
            }
            _ => decode::expect_kind(value, gvk, custom),
        }
    }

    /// The patched object of the row's kind.
    fn patched(&self, request: &Request<'_>, current: &Object) -> Result<Object, Status> {
        let row = &request.row;
        let gvk = row.gvk();
        let merged = matches!(self.kind, PatchKind::Strategic(_));
        // What is wrong is said of the patch where it was applied to what is in memory, and of the
        // whole where it was applied to its text. The whole is made once more for that.
        let spoils = |why: &str| match &self.value {
            Ok(patch) if merged => spoils(&mainstay_patch::go_text(patch), why),
            _ => self
                .apply(current)
                .map_or_else(|status| status, |invalid| spoils(&invalid.to_string(), why)),
        };
        let mut value = self.apply(current)?;
        self.identify(&mut value, &gvk, row.custom().is_some()).map_err(|error| match error {
            KindError::Custom(status) => *status,
            error => spoils(&error.to_string()),
        })?;
        let decoded = if merged {
            mainstay_conversion::decode::decode_merged(row, value)
        } else {
            mainstay_conversion::decode::decode_object(row, value)
        };
        let decoded = decoded.map_err(|error| spoils(&error.to_string()))?;
        let findings = self.findings.iter().cloned().chain(decoded.warnings).collect();
        for text in self.validation.judge_with(findings, spoils)? {
            request.warn(text);
        }
        Ok(decoded.object)
    }
}

/// The type of a patch that says what its sender wants the object to be.
const APPLY: &str = "application/apply-patch+yaml";

/// The type of the body, without parameters.
fn media_type<'a>(request: &Request<'a>) -> &'a str {
    let content_type = header_text(request.headers, &CONTENT_TYPE).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Whether a PATCH is a server-side apply.
pub(super) fn is_apply(request: &Request<'_>) -> bool {
    media_type(request) == APPLY
}

/// A PATCH of an object or of a part of it.
pub(super) async fn answer(request: &Request<'_>, part: Part) -> Result<ApiResponse, Status> {
    if is_apply(request) {
        return apply::answer(request, part).await;
    }
    let row = &request.row;
    let gvk = row.gvk();
    let builtin = matches!(row.source, KindSource::BuiltIn(_)).then_some(&gvk);
    let (patch, options) = Patch::read(request, builtin)?;
    let changed = change::apply(request, part, &options, |current, _| {
        let object = patch.patched(request, current)?;
        let same = object.resource_version() == current.resource_version();
        let version = if same && !patch.names_version() { Version::Kept } else { Version::IfSent };
        Ok(UpdatedObject::sent(object, Vec::new(), version))
    })
    .await?;
    changed.answer(request)
}

/// 422: what the patch makes of the object is no object of the kind.
pub(super) fn spoils(patched: &str, why: &str) -> Status {
    let error = FieldError::invalid(&FieldPath::new("patch"), patched, why);
    Status::invalid("", "", "", &[error])
}

impl Patch {
    /// Whether the patch itself says which revision it is for.
    pub(super) fn names_version(&self) -> bool {
        let Ok(value) = &self.value else { return false };
        match self.kind {
            PatchKind::Merge | PatchKind::Strategic(_) => {
                value.pointer("/metadata/resourceVersion").is_some_and(|version| !version.is_null())
            }
            PatchKind::Json => value.as_array().into_iter().flatten().any(|operation| {
                operation.get("path").and_then(Value::as_str) == Some("/metadata/resourceVersion")
            }),
        }
    }
}
