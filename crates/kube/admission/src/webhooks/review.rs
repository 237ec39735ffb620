//! `AdmissionReviews`: the requests to webhooks and their responses.

use super::AdmissionAttributes;
use crate::policies::request::{self, VersionedObjects};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use mainstay_gocompat::values::json_kind;
use mainstay_kinds::KindRow;
use mainstay_object::fnv::random_uid;
use mainstay_object::{Reason, Status};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// An `AdmissionReview` of a request, with its uid.
pub(super) fn admission_review(
    attributes: &AdmissionAttributes<'_>,
    row: &KindRow,
    version: &str,
    objects: &VersionedObjects,
) -> (String, Bytes) {
    let uid = random_uid();
    let request = request::request_variable(attributes, row);
    // The objects are serialized in place, without a copy.
    let mut text =
        format!(r#"{{"kind":"AdmissionReview","apiVersion":"{version}","request":{{"uid":"{uid}""#);
    for (name, value) in request.as_object().into_iter().flatten() {
        let value = match name.as_str() {
            "uid" => continue,
            "object" => &objects.object,
            "oldObject" => &objects.old,
            _ => value,
        };
        // Field names need no escapes, and writing to a String does not fail.
        let _ = write!(text, r#","{name}":{value}"#);
    }
    text.push_str("}}");
    (uid, text.into())
}

/// A valid response of a webhook.
pub(super) struct WebhookResponse {
    pub(super) allowed: bool,
    pub(super) warnings: Vec<String>,
    /// The patch as JSON text.
    pub(super) patch: Option<Vec<u8>>,
    pub(super) patch_type: String,
    /// Annotations of the audit event, by key.
    pub(super) audit_annotations: BTreeMap<String, String>,
    result: Value,
}

/// The response of a webhook cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ResponseError {
    /// The response cannot be decoded.
    #[error(transparent)]
    Malformed(#[from] MalformedResponse),
    /// The response has invalid content.
    #[error("received invalid webhook response: {0}")]
    Invalid(#[from] InvalidResponse),
}

/// A response is not an `AdmissionReview`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MalformedResponse {
    /// The response is not a JSON object.
    #[error(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )]
    NotAnObject {
        /// The JSON type of the response.
        found: &'static str,
    },
    /// The response has no kind.
    #[error("Object 'Kind' is missing in version {version:?}")]
    NoKind {
        /// The version of the response.
        version: String,
    },
    /// The response has another kind.
    #[error(
        "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
    )]
    UnknownKind {
        /// The version of the response.
        version: String,
        /// The kind of the response.
        kind: String,
    },
    /// The response has another version than the request.
    #[error(
        "converting ({}.AdmissionReview) to ({}.AdmissionReview): unknown conversion",
        last_part(found),
        last_part(wanted)
    )]
    VersionMismatch {
        /// The version of the response.
        found: String,
        /// The version of the request.
        wanted: String,
    },
    /// A field has the wrong type.
    #[error("json: cannot unmarshal {found} into Go struct field {field} of type {expected}")]
    WrongType {
        /// The JSON type that was found.
        found: &'static str,
        /// The field.
        field: String,
        /// The Go type.
        expected: &'static str,
    },
    /// The patch is not base64.
    #[error("illegal base64 data at input byte {at}")]
    Base64 {
        /// The index of the invalid byte.
        at: usize,
    },
}

fn last_part(version: &str) -> &str {
    version.rsplit('/').next().unwrap_or_default()
}

/// An `AdmissionReview` has an invalid response.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidResponse {
    /// The field `response` is missing.
    #[error("webhook response was absent")]
    NoResponse,
    /// The uid of the response is not that of the request.
    #[error("expected response.uid={wanted:?}, got {found:?}")]
    UidMismatch {
        /// The uid of the request.
        wanted: String,
        /// The uid of the response.
        found: String,
    },
    /// `apiVersion` or `kind` is missing.
    #[error(
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
    )]
    MissingTypeMeta {
        /// The group of the response.
        group: String,
        /// The version of the response.
        version: String,
        /// The kind of the response.
        kind: String,
    },
    /// `patchType` is missing.
    #[error("webhook returned response.patch but not response.patchType")]
    NoPatchType,
    /// `patch` is missing.
    #[error("webhook returned response.patchType but not response.patch")]
    NoPatch,
    /// `patchType` is empty.
    #[error("webhook returned invalid response.patchType of \"\"")]
    EmptyPatchType,
    /// A validating webhook returned a patch.
    #[error("validating webhook may not return response.patch")]
    PatchOfValidating,
    /// A validating webhook returned a patch type.
    #[error("validating webhook may not return response.patchType")]
    PatchTypeOfValidating,
}

/// Reads the response to an `AdmissionReview` with this version and uid.
pub(super) fn read_response(
    review: &Value,
    version: &str,
    uid: &str,
    mutating: bool,
) -> Result<WebhookResponse, ResponseError> {
    let Some(fields) = review.as_object() else {
        return Err(MalformedResponse::NotAnObject { found: json_kind(review) }.into());
    };
    let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let is_review = matches!(kind, "" | "AdmissionReview");
    let is_supported =
        matches!(api_version, "" | "admission.k8s.io/v1" | "admission.k8s.io/v1beta1") && is_review;
    if !is_supported {
        let (version, kind) = (api_version.to_owned(), kind.to_owned());
        let error = if kind.is_empty() {
            MalformedResponse::NoKind { version }
        } else {
            MalformedResponse::UnknownKind { version, kind }
        };
        return Err(error.into());
    }
    let response = fields.get("response").filter(|response| !response.is_null());
    if !api_version.is_empty() && api_version != version {
        let (found, wanted) = (api_version.to_owned(), version.to_owned());
        return Err(MalformedResponse::VersionMismatch { found, wanted }.into());
    }
    let response = response.ok_or(InvalidResponse::NoResponse)?;
    let decoded = ResponseFields::read(response)?;
    if version == "admission.k8s.io/v1" {
        if decoded.uid != uid {
            return Err(InvalidResponse::UidMismatch {
                wanted: uid.to_owned(),
                found: decoded.uid,
            }
            .into());
        }
        if api_version.is_empty() || kind.is_empty() {
            let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
            let [group, version, kind] = [group, version, kind].map(str::to_owned);
            return Err(InvalidResponse::MissingTypeMeta { group, version, kind }.into());
        }
        decoded.check(mutating)?;
    }
    let patch_type = match (decoded.patch_type, version) {
        (Some(patch_type), "admission.k8s.io/v1") => patch_type,
        _ => "JSONPatch".to_owned(),
    };
    let patch = Some(decoded.patch).filter(|patch| mutating && !patch.is_empty());
    Ok(WebhookResponse {
        allowed: decoded.allowed,
        warnings: decoded.warnings,
        patch,
        patch_type,
        audit_annotations: decoded.audit_annotations,
        result: response.get("status").cloned().unwrap_or_default(),
    })
}

/// The decoded fields of a response.
struct ResponseFields {
    uid: String,
    allowed: bool,
    patch: Vec<u8>,
    patch_type: Option<String>,
    warnings: Vec<String>,
    audit_annotations: BTreeMap<String, String>,
}

impl ResponseFields {
    fn read(response: &Value) -> Result<Self, MalformedResponse> {
        const AUDIT_ANNOTATIONS: &str = "AdmissionResponse.response.auditAnnotations";
        let wrong_type = |value: &Value, field: &str, expected| MalformedResponse::WrongType {
            found: json_kind(value),
            field: field.to_owned(),
            expected,
        };
        let Some(fields) = response.as_object() else {
            return Err(wrong_type(response, "AdmissionReview.response", "v1.AdmissionResponse"));
        };
        let text = |name: &str, wanted| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => {
                Err(wrong_type(other, &format!("AdmissionResponse.response.{name}"), wanted))
            }
        };
        let allowed = match fields.get("allowed") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(allowed)) => *allowed,
            Some(other) => {
                return Err(wrong_type(other, "AdmissionResponse.response.allowed", "bool"));
            }
        };
        let encoded = text("patch", "[]uint8")?.unwrap_or_default();
        let patch = decode_base64(&encoded)?;
        let warnings = fields.get("warnings").and_then(Value::as_array).into_iter().flatten();
        let mut audit_annotations = BTreeMap::new();
        match fields.get("auditAnnotations") {
            None | Some(Value::Null) => {}
            Some(Value::Object(given)) => {
                for (key, value) in given {
                    let value = match value {
                        Value::Null => "",
                        Value::String(text) => text,
                        other => return Err(wrong_type(other, AUDIT_ANNOTATIONS, "string")),
                    };
                    audit_annotations.insert(key.clone(), value.to_owned());
                }
            }
            Some(other) => return Err(wrong_type(other, AUDIT_ANNOTATIONS, "map[string]string")),
        }
        Ok(Self {
            uid: text("uid", "types.UID")?.unwrap_or_default(),
            allowed,
            patch,
            patch_type: text("patchType", "v1.PatchType")?,
            warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
            audit_annotations,
        })
    }

    fn check(&self, mutating: bool) -> Result<(), InvalidResponse> {
        let (has_patch, kind) = (!self.patch.is_empty(), self.patch_type.as_deref());
        match (mutating, has_patch, kind) {
            (true, true, None) => Err(InvalidResponse::NoPatchType),
            (true, false, Some(_)) => Err(InvalidResponse::NoPatch),
            (true, true, Some("")) => Err(InvalidResponse::EmptyPatchType),
            (false, true, _) => Err(InvalidResponse::PatchOfValidating),
            (false, _, Some(_)) => Err(InvalidResponse::PatchTypeOfValidating),
            _ => Ok(()),
        }
    }
}

/// Decodes base64 as Go does: line breaks are ignored.
fn decode_base64(encoded: &str) -> Result<Vec<u8>, MalformedResponse> {
    let plain: String = encoded.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    STANDARD.decode(&plain).map_err(|_| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        let at = plain.bytes().position(|byte| !is_letter(byte)).unwrap_or(plain.len());
        MalformedResponse::Base64 { at }
    })
}

impl WebhookResponse {
    /// The status that the client receives for a rejection.
    pub(super) fn rejection(&self, name: &str) -> Status {
        let denied = format!("admission webhook {name:?} denied the request");
        let mut result = self.result.clone();
        if !result.is_object() {
            result = json!({});
        }
        let mut status = Status::from_value(&result);
        let code = result.get("code").and_then(Value::as_i64).unwrap_or_default();
        status.code = u16::try_from(code.max(400)).unwrap_or(400);
        let reason = result.get("reason").and_then(Value::as_str).unwrap_or_default();
        status.message = match (status.message.as_str(), reason) {
            ("", "") => format!("{denied} without explanation"),
            ("", reason) => format!("{denied}: {reason}"),
            (message, _) => format!("{denied}: {message}"),
        };
        if status.reason == Reason::Unknown {
            reason.clone_into(&mut status.details.foreign_reason);
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "admission.k8s.io/v1";

    fn outcome(review: &Value, mutating: bool) -> String {
        match read_response(review, V1, "u", mutating) {
            Ok(response) if response.allowed => "allowed".to_owned(),
            Ok(response) => {
                let status = response.rejection("w.x.io");
                format!("{} {}", status.code, status.message)
            }
            Err(ResponseError::Malformed(error)) => format!("malformed: {error}"),
            Err(ResponseError::Invalid(error)) => format!("invalid: {error}"),
        }
    }

    #[test]
    fn a_response_admits_rejects_or_is_malformed_or_invalid() {
        let review = |response: Value| json!({"apiVersion": V1, "kind": "AdmissionReview", "response": response});
        let with = |change: Value| {
            let mut response = json!({"uid": "u", "allowed": true});
            for (key, value) in change.as_object().unwrap() {
                response[key] = value.clone();
            }
            review(response)
        };
        for (review, mutating, expected) in [
            (with(json!({})), true, "allowed"),
            (with(json!({"auditAnnotations": {"a": "b", "c": null}})), true, "allowed"),
            (
                with(json!({"auditAnnotations": {"a": 1}})),
                true,
                "malformed: json: cannot unmarshal number into Go struct field AdmissionResponse.response.auditAnnotations of type string",
            ),
            (with(json!({"patch": "W10=", "patchType": "JSONPatch"})), true, "allowed"),
            (
                with(json!({"patch": "W10="})),
                true,
                "invalid: webhook returned response.patch but not response.patchType",
            ),
            (
                with(json!({"patchType": "JSONPatch"})),
                true,
                "invalid: webhook returned response.patchType but not response.patch",
            ),
            (
                with(json!({"patch": "W10=", "patchType": "JSONPatch"})),
                false,
                "invalid: validating webhook may not return response.patch",
            ),
            (with(json!({"patch": "W*"})), true, "malformed: illegal base64 data at input byte 1"),
            (
                with(json!({"allowed": "yes"})),
                true,
                "malformed: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
            ),
            (with(json!({"uid": "v"})), true, "invalid: expected response.uid=\"u\", got \"v\""),
            (review(Value::Null), true, "invalid: webhook response was absent"),
            (
                json!({"response": {"uid": "u", "allowed": true}}),
                true,
                "invalid: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
            ),
            (
                with(json!({"allowed": false})),
                true,
                "400 admission webhook \"w.x.io\" denied the request without explanation",
            ),
            (
                with(json!({"allowed": false, "status": {"code": 418, "message": "no"}})),
                true,
                "418 admission webhook \"w.x.io\" denied the request: no",
            ),
            (
                with(json!({"allowed": false, "status": {"code": 200, "reason": "Because"}})),
                true,
                "400 admission webhook \"w.x.io\" denied the request: Because",
            ),
        ] {
            assert_eq!(outcome(&review, mutating), expected, "{review}");
        }
    }
}
