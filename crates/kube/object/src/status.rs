//! `metav1.Status`: the error type of a Kubernetes API.
//!
//! Texts are API: `kubectl` prints them, and clients match on reasons and causes. The constructors
//! follow `k8s.io/apimachinery/pkg/api/errors`.

use crate::FieldErrors;
use crate::field::FieldError;
use serde_json::{Map, Value, json};
use std::fmt;

/// Machine-readable reason of an error (`metav1.StatusReason`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// 400: the request is malformed.
    BadRequest,
    /// 401: the request has no known user.
    Unauthorized,
    /// 403: the user lacks the permission.
    Forbidden,
    /// 404.
    NotFound,
    /// 405: the resource has no such verb.
    MethodNotAllowed,
    /// 406: no representation that the client accepts.
    NotAcceptable,
    /// 409: an object of this name exists.
    AlreadyExists,
    /// 409: the object was modified, or a precondition does not hold.
    Conflict,
    /// 410: the requested resource was removed for good.
    Gone,
    /// 410: the revision or continue token is too old; list again.
    Expired,
    /// 413.
    RequestEntityTooLarge,
    /// 415: the media type of the body is not supported.
    UnsupportedMediaType,
    /// 422: the object is invalid; the causes list the fields.
    Invalid,
    /// 429.
    TooManyRequests,
    /// 500.
    InternalError,
    /// 503.
    ServiceUnavailable,
    /// 504.
    Timeout,
    /// Another reason, sent by another server.
    Unknown,
}

impl Reason {
    const ALL: [(Self, &'static str, u16); 17] = [
        (Self::BadRequest, "BadRequest", 400),
        (Self::Unauthorized, "Unauthorized", 401),
        (Self::Forbidden, "Forbidden", 403),
        (Self::NotFound, "NotFound", 404),
        (Self::MethodNotAllowed, "MethodNotAllowed", 405),
        (Self::NotAcceptable, "NotAcceptable", 406),
        (Self::AlreadyExists, "AlreadyExists", 409),
        (Self::Conflict, "Conflict", 409),
        (Self::Gone, "Gone", 410),
        (Self::Expired, "Expired", 410),
        (Self::RequestEntityTooLarge, "RequestEntityTooLarge", 413),
        (Self::UnsupportedMediaType, "UnsupportedMediaType", 415),
        (Self::Invalid, "Invalid", 422),
        (Self::TooManyRequests, "TooManyRequests", 429),
        (Self::InternalError, "InternalError", 500),
        (Self::ServiceUnavailable, "ServiceUnavailable", 503),
        (Self::Timeout, "Timeout", 504),
    ];

    /// The text in `reason`; empty for [`Reason::Unknown`].
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// The HTTP status code.
    pub fn code(self) -> u16 {
        Self::ALL.iter().find(|row| row.0 == self).map_or(500, |row| row.2)
    }

    /// Reads the text in `reason`.
    pub fn parse(text: &str) -> Self {
        Self::ALL.iter().find(|row| row.1 == text).map_or(Self::Unknown, |row| row.0)
    }
}

/// One entry of `details.causes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusCause {
    /// Machine-readable kind, such as `FieldValueInvalid`.
    pub reason: String,
    /// Text.
    pub message: String,
    /// Field path; empty if no field is meant.
    pub field: String,
}

/// `details` of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusDetails {
    /// Name of the object.
    pub name: String,
    /// API group.
    pub group: String,
    /// Kind (for `Invalid`) or plural (for all other reasons), as in upstream.
    pub kind: String,
    /// Uid of the object.
    pub uid: String,
    /// The causes, such as field errors.
    pub causes: Vec<StatusCause>,
    /// Seconds after which the client may retry; zero for none.
    pub retry_after_seconds: u32,
    /// A reason of a webhook that is not in [`Reason`]; else empty.
    pub foreign_reason: String,
    /// Whether empty `details` are written, as upstream's router does.
    pub written_if_empty: bool,
}

/// An error of a Kubernetes API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason.
    pub reason: Reason,
    /// Text for people.
    pub message: String,
    /// The object, the causes, and when to retry.
    pub details: Box<StatusDetails>,
}

impl Status {
    /// An error with a reason and a message; the code follows from the reason.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { code: reason.code(), reason, message: message.into(), details: Box::default() }
    }

    /// Makes `details` written even if they are empty.
    #[must_use]
    pub fn with_empty_details(mut self) -> Self {
        self.details.written_if_empty = true;
        self
    }

    /// Names the object in `details`; `kind` may be a resource.
    #[must_use]
    pub fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        group.clone_into(&mut self.details.group);
        kind.clone_into(&mut self.details.kind);
        name.clone_into(&mut self.details.name);
        self
    }

    /// Adds a cause.
    #[must_use]
    pub fn with_cause(mut self, reason: &str, message: impl Into<String>, field: &str) -> Self {
        self.details.causes.push(StatusCause {
            reason: reason.to_owned(),
            message: message.into(),
            field: field.to_owned(),
        });
        self
    }

    /// Asks the client to retry after this number of seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.details.retry_after_seconds = seconds;
        self
    }

    /// 404 for an object. `plural` is the resource, not the kind.
    pub fn not_found(group: &str, plural: &str, name: &str) -> Self {
        let resource = group_resource(group, plural);
        Self::new(
            Reason::NotFound,
            format!("{resource} {} not found", mainstay_gocompat::quote(name)),
        )
        .about(group, plural, name)
    }

    /// 404 for a path that no resource serves.
    pub fn no_such_path() -> Self {
        Self::new(Reason::NotFound, "the server could not find the requested resource")
            .with_empty_details()
    }

    /// 405 for a method that a path does not have.
    pub fn no_such_method() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(Reason::MethodNotAllowed, message).with_empty_details()
    }

    /// 409 for a name that is taken.
    pub fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        let resource = group_resource(group, plural);
        Self::new(Reason::AlreadyExists, format!("{resource} {name:?} already exists"))
            .about(group, plural, name)
    }

    /// 409 for a precondition that does not hold; `why` is the inner error.
    pub fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let resource = group_resource(group, plural);
        Self::new(
            Reason::Conflict,
            format!("Operation cannot be fulfilled on {resource} {name:?}: {why}"),
        )
        .about(group, plural, name)
    }

    /// 409 because the object changed since the client read it.
    pub fn stale(group: &str, plural: &str, name: &str) -> Self {
        Self::conflict(
            group,
            plural,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 403; `why` is the rule that forbids the request.
    pub fn forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let resource = group_resource(group, plural);
        let message = match (resource.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{resource} is forbidden: {why}"),
            (false, false) => format!("{resource} {name:?} is forbidden: {why}"),
        };
        Self::new(Reason::Forbidden, message).about(group, plural, name)
    }

    /// 422; every error becomes a cause. `kind` is the kind, not the resource.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = group_resource(group, kind);
        let errors = FieldErrors::merge_omitted(errors);
        let text = FieldError::join(&errors);
        let mut status =
            Self::new(Reason::Invalid, format!("{qualified} {name:?} is invalid: {text}"))
                .about(group, kind, name);
        status.details.causes = errors
            .iter()
            .map(|error| StatusCause {
                reason: error.kind.reason().to_owned(),
                message: error.body(),
                field: error.field.clone(),
            })
            .collect();
        status
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(Reason::Unauthorized, "Unauthorized")
    }

    /// 405: the resource does not support the verb.
    pub fn method_not_supported(group: &str, plural: &str, verb: &str) -> Self {
        let resource = group_resource(group, plural);
        Self::new(
            Reason::MethodNotAllowed,
            format!("{verb} is not supported on resources of kind {resource:?}"),
        )
        .about(group, plural, "")
    }

    /// 410: the requested revision is older than the stored history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(Reason::Expired, message)
    }

    /// 500. The message begins as in upstream, because people search for it.
    pub fn internal(error: impl fmt::Display) -> Self {
        let mut status =
            Self::new(Reason::InternalError, format!("Internal error occurred: {error}"));
        status.details.causes.push(StatusCause {
            reason: String::new(),
            message: error.to_string(),
            field: String::new(),
        });
        status
    }

    /// Whether the reason is `NotFound`.
    pub fn is_not_found(&self) -> bool {
        self.reason == Reason::NotFound
    }

    /// Whether the reason is `Conflict`.
    pub fn is_conflict(&self) -> bool {
        self.reason == Reason::Conflict
    }

    /// Whether the reason is `AlreadyExists`.
    pub fn is_already_exists(&self) -> bool {
        self.reason == Reason::AlreadyExists
    }

    /// The JSON object: `kind: Status`.
    pub fn to_value(&self) -> Value {
        let mut out = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if self.reason != Reason::Unknown {
            out["reason"] = self.reason.as_str().into();
        } else if !self.details.foreign_reason.is_empty() {
            out["reason"] = self.details.foreign_reason.as_str().into();
        }
        let d = &*self.details;
        let mut details = Map::new();
        for (key, text) in
            [("name", &d.name), ("group", &d.group), ("kind", &d.kind), ("uid", &d.uid)]
        {
            if !text.is_empty() {
                details.insert(key.to_owned(), text.clone().into());
            }
        }
        if !d.causes.is_empty() {
            let causes = d.causes.iter().map(|cause| {
                let mut entry = Map::new();
                for (key, text) in [
                    ("reason", &cause.reason),
                    ("message", &cause.message),
                    ("field", &cause.field),
                ] {
                    if !text.is_empty() {
                        entry.insert(key.to_owned(), text.clone().into());
                    }
                }
                Value::Object(entry)
            });
            details.insert("causes".to_owned(), causes.collect());
        }
        if d.retry_after_seconds > 0 {
            details.insert("retryAfterSeconds".to_owned(), d.retry_after_seconds.into());
        }
        if !details.is_empty() || d.written_if_empty {
            out["details"] = Value::Object(details);
        }
        out
    }

    /// Reads a `kind: Status` that a server sent.
    pub fn from_value(value: &Value) -> Self {
        let text = |value: &Value, key: &str| {
            value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let number =
            |value: &Value, key: &str| value.get(key).and_then(Value::as_u64).unwrap_or_default();
        let empty = Value::Null;
        let details = value.get("details").unwrap_or(&empty);
        let causes = details.get("causes").and_then(Value::as_array).into_iter().flatten();
        let causes = causes.map(|cause| StatusCause {
            reason: text(cause, "reason"),
            message: text(cause, "message"),
            field: text(cause, "field"),
        });
        Self {
            code: u16::try_from(number(value, "code")).unwrap_or(500),
            reason: Reason::parse(&text(value, "reason")),
            message: text(value, "message"),
            details: Box::new(StatusDetails {
                name: text(details, "name"),
                group: text(details, "group"),
                kind: text(details, "kind"),
                uid: text(details, "uid"),
                causes: causes.collect(),
                retry_after_seconds: u32::try_from(number(details, "retryAfterSeconds"))
                    .unwrap_or_default(),
                foreign_reason: String::new(),
                written_if_empty: value
                    .get("details")
                    .and_then(Value::as_object)
                    .is_some_and(Map::is_empty),
            }),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

fn group_resource(group: &str, name: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldPath;

    #[test]
    fn messages_are_those_of_upstream() {
        let status = Status::not_found("apps", "deployments", "x");
        assert_eq!(status.message, "deployments.apps \"x\" not found");
        assert_eq!(status.code, 404);
        let status = Status::stale("", "pods", "p");
        assert_eq!(
            status.message,
            "Operation cannot be fulfilled on pods \"p\": the object has been modified; please apply your changes to the latest version and try again"
        );
    }

    #[test]
    fn several_field_errors_are_joined_in_brackets() {
        let spec = FieldPath::new("spec");
        let errors = [
            FieldError::required(&spec.child("a"), ""),
            FieldError::not_supported(&spec.child("b").index(0), "x", &["y", "z"]),
        ];
        let status = Status::invalid("g.io", "Thing", "t", &errors);
        assert_eq!(
            status.message,
            "Thing.g.io \"t\" is invalid: [spec.a: Required value, spec.b[0]: Unsupported value: \"x\": supported values: \"y\", \"z\"]"
        );
        assert_eq!(status.details.causes[1].field, "spec.b[0]");
        assert_eq!(status.details.causes[1].reason, "FieldValueNotSupported");
    }

    #[test]
    fn a_status_round_trips_through_json() {
        let status = Status::invalid(
            "",
            "Pod",
            "p",
            &[FieldError::invalid(&FieldPath::new("spec").key("k"), 3, "must be less")],
        )
        .retry_after(2);
        assert_eq!(Status::from_value(&status.to_value()), status);
    }
}
