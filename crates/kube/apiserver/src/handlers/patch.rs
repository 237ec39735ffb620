//! Patch.

use super::change::{self, Made};
use super::options::{Verb, WriteOptions};
use super::part::Part;
use super::{Request, apply, decode};
use crate::http::answer::Answer;
use crate::registry::Source;
use crate::server::text;
use http::header::CONTENT_TYPE;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Reason, Status};
use mainstay_schema::builtin::{self, Definition};
use serde_json::Value;

/// The kinds of patches that custom kinds take.
const ACCEPTED_OF_CUSTOM: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

/// A patch, read.
pub(super) struct Patch {
    kind: PatchKind,
    value: Value,
    duplicates: Vec<String>,
}

#[derive(Clone, Copy)]
enum PatchKind {
    Json,
    Merge,
    Strategic(&'static Definition),
}

impl Patch {
    /// Reads the body. `gvk` is what is patched, none for a custom kind.
    pub(super) fn read(request: &Request<'_>, builtin: Option<&Gvk>) -> Result<Self, Status> {
        let kind = match media_type(request) {
            "application/json-patch+json" => PatchKind::Json,
            "application/merge-patch+json" => PatchKind::Merge,
            "application/strategic-merge-patch+json" => {
                let definition = builtin
                    .and_then(builtin::definition_of)
                    .ok_or_else(|| decode::unknown_media(ACCEPTED_OF_CUSTOM))?;
                PatchKind::Strategic(definition)
            }
            // Paths of built-in kinds say beforehand what they take.
            _ if builtin.is_some() => {
                let status =
                    Status::new(Reason::UnsupportedMediaType, "415: Unsupported Media Type");
                return Err(status.with_empty_details());
            }
            _ => return Err(decode::unknown_media(ACCEPTED_OF_CUSTOM)),
        };
        let (value, duplicates) = decode::json(&request.body)
            .map_err(|why| Status::bad_request(format!("error decoding patch: {why}")))?;
        Ok(Self { kind, value, duplicates })
    }

    /// The patched value, and what the patch says twice.
    pub(super) fn apply(&self, current: &Object) -> Result<(Value, Vec<String>), Status> {
        let duplicates = self.duplicates.clone();
        let patched = match self.kind {
            PatchKind::Json => {
                let mut value = current.to_value();
                mainstay_patch::json_patch(&mut value, &self.value).map(|()| value)
            }
            PatchKind::Merge => {
                let mut value = current.to_value();
                mainstay_patch::merge_patch(&mut value, &self.value).map(|()| value)
            }
            PatchKind::Strategic(definition) => {
                mainstay_patch::strategic_merge(&current.to_value(), &self.value, definition)
            }
        };
        patched.map(|value| (value, duplicates)).map_err(|error| error.to_status())
    }
}

/// The type of a patch that says what its sender wants the object to be.
const APPLY: &str = "application/apply-patch+yaml";

/// The type of the body, without parameters.
fn media_type<'a>(request: &Request<'a>) -> &'a str {
    let content_type = text(request.headers, &CONTENT_TYPE).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Whether a PATCH is a server-side apply.
pub(super) fn is_apply(request: &Request<'_>) -> bool {
    media_type(request) == APPLY
}

/// A PATCH of an object or of a part of it.
pub(super) async fn answer(request: &Request<'_>, part: Part) -> Result<Answer, Status> {
    if is_apply(request) {
        return apply::answer(request, part).await;
    }
    let row = &request.row;
    let gvk = row.gvk();
    let builtin = matches!(row.source, Source::BuiltIn(_)).then_some(&gvk);
    let patch = Patch::read(request, builtin)?;
    let options = WriteOptions::read(request, Verb::Patch)?;
    let changed = change::apply(request, part, &options, |current| {
        let (mut value, duplicates) = patch.apply(current)?;
        decode::expect_kind(&mut value, &gvk, row.custom().is_some())?;
        let named_version = value.pointer("/metadata/resourceVersion").cloned();
        let shown = value.to_string();
        let mut decoded = decode::typed(row, value).map_err(|why| spoils(&shown, &why))?;
        let findings: Vec<String> =
            duplicates.into_iter().chain(std::mem::take(&mut decoded.warnings)).collect();
        decoded.warnings = options.validation.judge_with(findings, |why| spoils(&shown, why))?;
        // The revision that the object had anyway is no precondition: the patch may be tried again
        // on what somebody else made of it meanwhile.
        if named_version.as_ref().and_then(Value::as_str) == Some(current.resource_version())
            && !patch.names_version()
        {
            decoded.object.remove(&["metadata", "resourceVersion"]);
        }
        Ok(Made::sent(decoded.object, decoded.warnings))
    })
    .await?;
    changed.answer(request)
}

/// 422: what the patch makes of the object is no object of the kind.
fn spoils(patched: &str, why: &str) -> Status {
    let error = FieldError::invalid(&FieldPath::new("patch"), patched, why);
    Status::invalid("", "", "", &[error])
}

impl Patch {
    /// Whether the patch itself says which revision it is for.
    pub(super) fn names_version(&self) -> bool {
        match self.kind {
            PatchKind::Merge | PatchKind::Strategic(_) => {
                self.value.pointer("/metadata/resourceVersion").is_some_and(|it| !it.is_null())
            }
            PatchKind::Json => self.value.as_array().into_iter().flatten().any(|operation| {
                operation.get("path").and_then(Value::as_str) == Some("/metadata/resourceVersion")
            }),
        }
    }
}
