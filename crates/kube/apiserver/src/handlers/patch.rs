//! Patch.

use super::decode::{FieldValidation, KindError};
use super::options::{Verb, WriteOptions};
use super::request::Request;
use super::subresource::Subresource;
use super::update;
use super::updated_object::{UpdatedObject, VersionCheck};
use super::{apply, decode};
use http::header::CONTENT_TYPE;
use mainstay_http::header_text;
use mainstay_http::response::ApiResponse;
use mainstay_kinds::KindSource;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Reason, Status};
use mainstay_schema::builtin::{self, TypeDefinition};
use mainstay_schema::strict::{self, JsonError};
use serde_json::Value;

/// The patch types of custom kinds, whose lists have no merge keys.
const ACCEPTED_OF_CUSTOM: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
/// The fields of a JSON patch operation.
const OPERATION: &[&str] = &["from", "op", "path", "value"];

/// A patch. An invalid body is refused only after the object was found.
pub(super) struct Patch {
    kind: PatchKind,
    value: Result<Value, JsonError>,
    /// Duplicate fields, and fields that no operation has.
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
    /// Reads the options, then the body. `builtin` is the patched kind; none for a custom one.
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
            // Routes of built-in kinds restrict the media types beforehand.
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

    /// Returns the patched value.
    pub(super) fn apply(&self, current: &Object) -> Result<Value, Status> {
        let is_lenient = self.validation == FieldValidation::Ignore;
        let patch = self.value.as_ref().map_err(|error| {
            Status::bad_request(match self.kind {
                PatchKind::Merge if is_lenient => "Invalid JSON Patch".to_owned(),
                PatchKind::Json | PatchKind::Merge if !is_lenient => {
                    format!("error decoding patch: {error}")
                }
                _ => error.to_string(),
            })
        })?;
        let mut value = current.to_value();
        let patched_object = match self.kind {
            PatchKind::Json => {
                let check =
                    if is_lenient { Ok(()) } else { mainstay_patch::check_operations(patch) };
                check.and_then(|()| mainstay_patch::json_patch(&mut value, patch)).map(|()| value)
            }
            // Without validation, a list as a patch replaces the object; the kind check refuses it.
            PatchKind::Merge if is_lenient && patch.is_array() => Ok(patch.clone()),
            PatchKind::Merge if is_lenient && !patch.is_object() => {
                return Err(Status::bad_request("Invalid JSON Patch"));
            }
            PatchKind::Merge => mainstay_patch::merge_patch(&mut value, patch).map(|()| value),
            PatchKind::Strategic(definition) => {
                mainstay_patch::strategic_merge(&value, patch, definition)
            }
        };
        patched_object.map_err(|error| error.to_status())
    }

    /// Checks the kind of the patched value, and adds what is missing.
    pub(super) fn check_kind(
        &self,
        value: &mut Value,
        gvk: &Gvk,
        custom: bool,
    ) -> Result<(), KindError> {
        match value {
            Value::Object(fields) if matches!(self.kind, PatchKind::Strategic(_)) => {
                decode::set_kind(fields, gvk);
                Ok(())
            }
            _ => decode::check_kind(value, gvk, custom),
        }
    }

    /// Returns the patched object of the row's kind.
    fn patched_object(&self, request: &Request<'_>, current: &Object) -> Result<Object, Status> {
        let row = &request.row;
        let gvk = row.gvk();
        let is_strategic = matches!(self.kind, PatchKind::Strategic(_));
        // The error of a strategic merge patch quotes the patch; that of another patch quotes the
        // patched object, which is computed again.
        let invalid_patch = |why: &str| match &self.value {
            Ok(patch) if is_strategic => invalid_patch(&mainstay_patch::go_text(patch), why),
            _ => self
                .apply(current)
                .map_or_else(|status| status, |invalid| invalid_patch(&invalid.to_string(), why)),
        };
        let mut value = self.apply(current)?;
        self.check_kind(&mut value, &gvk, row.custom().is_some()).map_err(|error| match error {
            KindError::Custom(status) => *status,
            error => invalid_patch(&error.to_string()),
        })?;
        let decoded = if is_strategic {
            mainstay_conversion::decode::decode_merged(row, value)
        } else {
            mainstay_conversion::decode::decode_object(row, value)
        };
        let decoded = decoded.map_err(|error| invalid_patch(&error.to_string()))?;
        let findings = self.findings.iter().cloned().chain(decoded.warnings).collect();
        for text in self.validation.apply_to(findings, invalid_patch)? {
            request.warn(text);
        }
        Ok(decoded.object)
    }
}

/// Media type of a server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

/// The media type of the body, without parameters.
fn media_type<'a>(request: &Request<'a>) -> &'a str {
    let content_type = header_text(request.headers, &CONTENT_TYPE).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Whether a PATCH is a server-side apply.
pub(super) fn is_apply(request: &Request<'_>) -> bool {
    media_type(request) == APPLY
}

/// Handles a PATCH of an object or of a subresource.
pub(super) async fn answer(
    request: &Request<'_>,
    subresource: Subresource,
) -> Result<ApiResponse, Status> {
    if is_apply(request) {
        return apply::answer(request, subresource).await;
    }
    let row = &request.row;
    let gvk = row.gvk();
    let builtin = matches!(row.source, KindSource::BuiltIn(_)).then_some(&gvk);
    let (patch, options) = Patch::read(request, builtin)?;
    let outcome = update::apply(request, subresource, &options, |current, _| {
        let object = patch.patched_object(request, current)?;
        let is_same_revision = object.resource_version() == current.resource_version();
        let version = if is_same_revision && !patch.sets_resource_version() {
            VersionCheck::Skipped
        } else {
            VersionCheck::IfPresent
        };
        Ok(UpdatedObject::untracked(object, Vec::new(), version))
    })
    .await?;
    outcome.response(request)
}

/// 422: the patched object is invalid for the kind.
pub(super) fn invalid_patch(patched_object: &str, why: &str) -> Status {
    let error = FieldError::invalid(&FieldPath::new("patch"), patched_object, why);
    Status::invalid("", "", "", &[error])
}

impl Patch {
    /// Whether the patch sets `metadata.resourceVersion`.
    pub(super) fn sets_resource_version(&self) -> bool {
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
