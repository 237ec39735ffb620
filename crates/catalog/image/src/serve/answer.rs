//! Responses of the registry, and the error codes of the distribution specification.

use crate::{digest::Digest, manifest::Descriptor, store::StoreError};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use std::io;

/// The body of a response, which is read from disk while it is sent.
pub type Body = BoxBody<Bytes, io::Error>;

pub(super) type Outcome = Result<Response<Body>, Failure>;

/// Error codes of the distribution specification.
#[derive(Clone, Copy, Debug)]
pub(super) enum Code {
    BlobUnknown,
    BlobUploadInvalid,
    BlobUploadUnknown,
    Denied,
    DigestInvalid,
    ManifestBlobUnknown,
    ManifestInvalid,
    ManifestUnknown,
    NameInvalid,
    NameUnknown,
    PaginationNumberInvalid,
    SizeInvalid,
    TagInvalid,
    TooManyRequests,
    Unauthorized,
    Unknown,
    Unsupported,
}

impl Code {
    fn name(self) -> &'static str {
        match self {
            Self::BlobUnknown => "BLOB_UNKNOWN",
            Self::BlobUploadInvalid => "BLOB_UPLOAD_INVALID",
            Self::BlobUploadUnknown => "BLOB_UPLOAD_UNKNOWN",
            Self::Denied => "DENIED",
            Self::DigestInvalid => "DIGEST_INVALID",
            Self::ManifestBlobUnknown => "MANIFEST_BLOB_UNKNOWN",
            Self::ManifestInvalid => "MANIFEST_INVALID",
            Self::ManifestUnknown => "MANIFEST_UNKNOWN",
            Self::NameInvalid => "NAME_INVALID",
            Self::NameUnknown => "NAME_UNKNOWN",
            Self::PaginationNumberInvalid => "PAGINATION_NUMBER_INVALID",
            Self::SizeInvalid => "SIZE_INVALID",
            Self::TagInvalid => "TAG_INVALID",
            Self::TooManyRequests => "TOOMANYREQUESTS",
            Self::Unauthorized => "UNAUTHORIZED",
            Self::Unknown => "UNKNOWN",
            Self::Unsupported => "UNSUPPORTED",
        }
    }
}

/// The error response to a request.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    code: Code,
    why: String,
    /// The requested object.
    detail: Option<String>,
}

impl Failure {
    pub(super) fn new(status: StatusCode, code: Code, why: &str) -> Self {
        Self { status, code, why: why.to_owned(), detail: None }
    }

    /// An unknown manifest, in the words of the distribution registry: clients hide a message that
    /// only repeats the code.
    pub(super) fn manifest_unknown(wanted: impl std::fmt::Display) -> Self {
        let detail = Some(wanted.to_string());
        Self {
            detail,
            ..Self::new(StatusCode::NOT_FOUND, Code::ManifestUnknown, "manifest unknown")
        }
    }

    pub(super) fn bad(code: Code, why: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, why)
    }

    /// An internal error; the log has the details.
    pub(super) fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "the registry cannot handle a request");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            Code::Unknown,
            "the registry cannot handle the request",
        )
    }

    pub(super) fn answer(&self) -> Response<Body> {
        let mut error = serde_json::json!({"code": self.code.name(), "message": self.why});
        if let Some(detail) = &self.detail {
            error["detail"] = detail.as_str().into();
        }
        let mut answer = json(serde_json::json!({"errors": [error]}).to_string());
        *answer.status_mut() = self.status;
        if self.status == StatusCode::UNAUTHORIZED {
            put(&mut answer, "www-authenticate", "Basic realm=\"mainstay\", charset=\"UTF-8\"");
        }
        answer
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Digest { .. } => Self::bad(Code::DigestInvalid, &error.to_string()),
            StoreError::Size { .. } | StoreError::TooLong(_) => {
                Self::bad(Code::SizeInvalid, &error.to_string())
            }
            other => Self::internal(other),
        }
    }
}

pub(super) fn not_allowed() -> Failure {
    let why = "the method is not allowed here";
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, Code::Unsupported, why)
}

pub(super) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed()
}

/// A response with a body.
pub(super) fn answer(status: StatusCode, body: Body) -> Response<Body> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer
}

/// Sets a header; an invalid value is ignored.
pub(super) fn put(answer: &mut Response<Body>, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(HeaderName::from_static(name), value);
    }
}

fn typed(bytes: impl Into<Bytes>, media_type: &str) -> Response<Body> {
    let bytes = bytes.into();
    let length = bytes.len();
    let mut answer = answer(StatusCode::OK, whole(bytes));
    put(&mut answer, "content-type", media_type);
    put(&mut answer, "content-length", &length.to_string());
    answer
}

pub(super) fn json(text: impl Into<String>) -> Response<Body> {
    typed(text.into(), "application/json")
}

pub(super) fn index(bytes: Vec<u8>) -> Response<Body> {
    typed(bytes, crate::manifest::media_type::OCI_INDEX)
}

/// A page of a list.
pub(super) fn page(text: String, path: &str, more: Option<String>) -> Response<Body> {
    let mut answer = json(text);
    if let Some(more) = more {
        put(&mut answer, "link", &format!("<{path}?{more}>; rel=\"next\""));
    }
    answer
}

pub(super) fn manifest(descriptor: &Descriptor, bytes: Vec<u8>) -> Response<Body> {
    let mut answer = typed(bytes, &descriptor.media_type);
    let digest = descriptor.digest.to_string();
    put(&mut answer, "docker-content-digest", &digest);
    put(&mut answer, "etag", &format!("\"{digest}\""));
    answer
}

pub(super) fn created(location: &str, digest: &Digest) -> Response<Body> {
    let mut answer = answer(StatusCode::CREATED, whole(Bytes::new()));
    put(&mut answer, "location", location);
    put(&mut answer, "docker-content-digest", &digest.to_string());
    answer
}

pub(super) fn created_blob(name: &str, digest: &Digest) -> Response<Body> {
    created(&format!("/v2/{name}/blobs/{digest}"), digest)
}

pub(super) fn accepted() -> Response<Body> {
    answer(StatusCode::ACCEPTED, whole(Bytes::new()))
}

/// Adds the headers of every response. A response to `HEAD` has no body, but its length.
pub(super) fn finish(mut answer: Response<Body>, head: bool) -> Response<Body> {
    put(&mut answer, "docker-distribution-api-version", "registry/2.0");
    if head {
        *answer.body_mut() = whole(Bytes::new());
    } else if !answer.headers().contains_key(header::CONTENT_LENGTH)
        && answer.status() != StatusCode::NO_CONTENT
        && let Some(length) = http_body::Body::size_hint(answer.body()).exact()
    {
        put(&mut answer, "content-length", &length.to_string());
    }
    answer
}
