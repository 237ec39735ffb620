//! What a webhook is sent, and what it may answer.

use super::Attributes;
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

/// An `AdmissionReview` about a request, with its uid.
pub(super) fn request(
    attributes: &Attributes<'_>,
    row: &KindRow,
    version: &str,
    shown: &VersionedObjects,
) -> (String, Bytes) {
    let uid = random_uid();
    let described = request::described(attributes, row);
    // Objects are written from where they are.
    let mut text =
        format!(r#"{{"kind":"AdmissionReview","apiVersion":"{version}","request":{{"uid":"{uid}""#);
    for (name, value) in described.as_object().into_iter().flatten() {
        let value = match name.as_str() {
            "uid" => continue,
            "object" => &shown.object,
            "oldObject" => &shown.old,
            _ => value,
        };
        // Names are those of fields, and writing to a text does not fail.
        let _ = write!(text, r#","{name}":{value}"#);
    }
    text.push_str("}}");
    (uid, text.into())
}

/// A webhook's answer that has a meaning.
pub(super) struct Answer {
    pub(super) allowed: bool,
    pub(super) warnings: Vec<String>,
    /// The patch as text; none if there is none.
    pub(super) patch: Option<Vec<u8>>,
    pub(super) patch_type: String,
    /// What is to be noted in the audit log, by key.
    pub(super) notes: BTreeMap<String, String>,
    result: Value,
}

/// What is wrong with an answer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnswerError {
    /// It cannot be read.
    #[error(transparent)]
    Form(#[from] FormError),
    /// It says what it may not.
    #[error("received invalid webhook response: {0}")]
    Sense(#[from] SenseError),
}

/// An answer is no review.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FormError {
    /// It is no object.
    #[error(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )]
    NoObject {
        /// What it is.
        found: &'static str,
    },
    /// It names no kind.
    #[error("Object 'Kind' is missing in version {version:?}")]
    NoKind {
        /// Its version.
        version: String,
    },
    /// It is of another kind.
    #[error(
        "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
    )]
    UnknownKind {
        /// Its version.
        version: String,
        /// Its kind.
        kind: String,
    },
    /// It is a review of another version.
    #[error(
        "converting ({}.AdmissionReview) to ({}.AdmissionReview): unknown conversion",
        last_part(found),
        last_part(wanted)
    )]
    OtherVersion {
        /// Its version.
        found: String,
        /// That of the question.
        wanted: String,
    },
    /// A field is of another type.
    #[error("json: cannot unmarshal {found} into Go struct field {field} of type {expected}")]
    WrongType {
        /// What it is.
        found: &'static str,
        /// The field.
        field: String,
        /// The Go type.
        expected: &'static str,
    },
    /// The patch is no base64.
    #[error("illegal base64 data at input byte {at}")]
    Base64 {
        /// The byte at which it goes wrong.
        at: usize,
    },
}

fn last_part(version: &str) -> &str {
    version.rsplit('/').next().unwrap_or_default()
}

/// A review says what it may not.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SenseError {
    /// It has no response.
    #[error("webhook response was absent")]
    NoResponse,
    /// It is about another request.
    #[error("expected response.uid={wanted:?}, got {found:?}")]
    OtherUid {
        /// The uid of the request.
        wanted: String,
        /// That of the response.
        found: String,
    },
    /// It does not say that it is a review.
    #[error(
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
    )]
    NotNamed {
        /// Its group.
        group: String,
        /// Its version.
        version: String,
        /// Its kind.
        kind: String,
    },
    /// It has a patch, and does not say of which type.
    #[error("webhook returned response.patch but not response.patchType")]
    NoPatchType,
    /// It says the type of a patch that it does not have.
    #[error("webhook returned response.patchType but not response.patch")]
    NoPatch,
    /// It has a patch of no type.
    #[error("webhook returned invalid response.patchType of \"\"")]
    EmptyPatchType,
    /// It has a patch, and may only judge.
    #[error("validating webhook may not return response.patch")]
    PatchOfValidating,
    /// It has the type of a patch, and may only judge.
    #[error("validating webhook may not return response.patchType")]
    PatchTypeOfValidating,
}

/// Reads an answer to a review of a version with a uid.
pub(super) fn answer(
    review: &Value,
    version: &str,
    uid: &str,
    mutating: bool,
) -> Result<Answer, AnswerError> {
    let Some(fields) = review.as_object() else {
        return Err(FormError::NoObject { found: json_kind(review) }.into());
    };
    let of = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default();
    let (said, kind) = (of("apiVersion"), of("kind"));
    let is_review = matches!(kind, "" | "AdmissionReview");
    let is_known =
        matches!(said, "" | "admission.k8s.io/v1" | "admission.k8s.io/v1beta1") && is_review;
    if !is_known {
        let (version, kind) = (said.to_owned(), kind.to_owned());
        let error = if kind.is_empty() {
            FormError::NoKind { version }
        } else {
            FormError::UnknownKind { version, kind }
        };
        return Err(error.into());
    }
    let response = fields.get("response").filter(|response| !response.is_null());
    if !said.is_empty() && said != version {
        let (found, wanted) = (said.to_owned(), version.to_owned());
        return Err(FormError::OtherVersion { found, wanted }.into());
    }
    let response = response.ok_or(SenseError::NoResponse)?;
    let read = Response::read(response)?;
    if version == "admission.k8s.io/v1" {
        if read.uid != uid {
            return Err(SenseError::OtherUid { wanted: uid.to_owned(), found: read.uid }.into());
        }
        if said.is_empty() || kind.is_empty() {
            let (group, own) = said.rsplit_once('/').unwrap_or(("", said));
            let [group, version, kind] = [group, own, kind].map(str::to_owned);
            return Err(SenseError::NotNamed { group, version, kind }.into());
        }
        read.check(mutating)?;
    }
    let patch_type = match (read.patch_type, version) {
        (Some(own), "admission.k8s.io/v1") => own,
        _ => "JSONPatch".to_owned(),
    };
    let patch = Some(read.patch).filter(|patch| mutating && !patch.is_empty());
    Ok(Answer {
        allowed: read.allowed,
        warnings: read.warnings,
        patch,
        patch_type,
        notes: read.notes,
        result: response.get("status").cloned().unwrap_or_default(),
    })
}

/// The fields of a response.
struct Response {
    uid: String,
    allowed: bool,
    patch: Vec<u8>,
    patch_type: Option<String>,
    warnings: Vec<String>,
    notes: BTreeMap<String, String>,
}

impl Response {
    fn read(response: &Value) -> Result<Self, FormError> {
        const NOTES: &str = "AdmissionResponse.response.auditAnnotations";
        let wrong = |value: &Value, field: &str, expected| FormError::WrongType {
            found: json_kind(value),
            field: field.to_owned(),
            expected,
        };
        let Some(fields) = response.as_object() else {
            return Err(wrong(response, "AdmissionReview.response", "v1.AdmissionResponse"));
        };
        let text = |name: &str, wanted| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(wrong(other, &format!("AdmissionResponse.response.{name}"), wanted)),
        };
        let allowed = match fields.get("allowed") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(allowed)) => *allowed,
            Some(other) => {
                return Err(wrong(other, "AdmissionResponse.response.allowed", "bool"));
            }
        };
        let packed = text("patch", "[]uint8")?.unwrap_or_default();
        let patch = unpacked(&packed)?;
        let warnings = fields.get("warnings").and_then(Value::as_array).into_iter().flatten();
        let mut notes = BTreeMap::new();
        match fields.get("auditAnnotations") {
            None | Some(Value::Null) => {}
            Some(Value::Object(given)) => {
                for (key, value) in given {
                    let value = match value {
                        Value::Null => "",
                        Value::String(text) => text,
                        other => return Err(wrong(other, NOTES, "string")),
                    };
                    notes.insert(key.clone(), value.to_owned());
                }
            }
            Some(other) => return Err(wrong(other, NOTES, "map[string]string")),
        }
        Ok(Self {
            uid: text("uid", "types.UID")?.unwrap_or_default(),
            allowed,
            patch,
            patch_type: text("patchType", "v1.PatchType")?,
            warnings: warnings.filter_map(Value::as_str).map(str::to_owned).collect(),
            notes,
        })
    }

    fn check(&self, mutating: bool) -> Result<(), SenseError> {
        let (has_patch, kind) = (!self.patch.is_empty(), self.patch_type.as_deref());
        match (mutating, has_patch, kind) {
            (true, true, None) => Err(SenseError::NoPatchType),
            (true, false, Some(_)) => Err(SenseError::NoPatch),
            (true, true, Some("")) => Err(SenseError::EmptyPatchType),
            (false, true, _) => Err(SenseError::PatchOfValidating),
            (false, _, Some(_)) => Err(SenseError::PatchTypeOfValidating),
            _ => Ok(()),
        }
    }
}

/// Base64 as Go reads it: line ends do not count.
fn unpacked(packed: &str) -> Result<Vec<u8>, FormError> {
    let plain: String = packed.chars().filter(|letter| !matches!(letter, '\r' | '\n')).collect();
    STANDARD.decode(&plain).map_err(|_| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        let at = plain.bytes().position(|byte| !is_letter(byte)).unwrap_or(plain.len());
        FormError::Base64 { at }
    })
}

impl Answer {
    /// What the client is told of a refusal.
    pub(super) fn refusal(&self, name: &str) -> Status {
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

    fn said(review: &Value, mutating: bool) -> String {
        match answer(review, V1, "u", mutating) {
            Ok(answer) if answer.allowed => "allowed".to_owned(),
            Ok(answer) => {
                let status = answer.refusal("w.x.io");
                format!("{} {}", status.code, status.message)
            }
            Err(AnswerError::Form(error)) => format!("form: {error}"),
            Err(AnswerError::Sense(error)) => format!("sense: {error}"),
        }
    }

    #[test]
    fn what_an_answer_means() {
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
                "form: json: cannot unmarshal number into Go struct field AdmissionResponse.response.auditAnnotations of type string",
            ),
            (with(json!({"patch": "W10=", "patchType": "JSONPatch"})), true, "allowed"),
            (
                with(json!({"patch": "W10="})),
                true,
                "sense: webhook returned response.patch but not response.patchType",
            ),
            (
                with(json!({"patchType": "JSONPatch"})),
                true,
                "sense: webhook returned response.patchType but not response.patch",
            ),
            (
                with(json!({"patch": "W10=", "patchType": "JSONPatch"})),
                false,
                "sense: validating webhook may not return response.patch",
            ),
            (with(json!({"patch": "W*"})), true, "form: illegal base64 data at input byte 1"),
            (
                with(json!({"allowed": "yes"})),
                true,
                "form: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
            ),
            (with(json!({"uid": "v"})), true, "sense: expected response.uid=\"u\", got \"v\""),
            (review(Value::Null), true, "sense: webhook response was absent"),
            (
                json!({"response": {"uid": "u", "allowed": true}}),
                true,
                "sense: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
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
            assert_eq!(said(&review, mutating), expected, "{review}");
        }
    }
}
