//! Responses of the registry, and the error codes of the distribution specification.

use crate::{digest::Digest, manifest::Descriptor, store::ImageStoreError};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use std::io;

/// The body of a response, which is read from disk while it is sent.
pub type RegistryBody = BoxBody<Bytes, io::Error>;

pub(super) type HandlerResult = Result<Response<RegistryBody>, ErrorResponse>;

/// Error codes of the distribution specification.
#[derive(Clone, Copy, Debug)]
pub(super) enum ErrorCode {
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

impl ErrorCode {
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
pub(super) struct ErrorResponse {
    status: StatusCode,
    code: ErrorCode,
    why: String,
    /// The requested object.
    detail: Option<String>,
}

impl ErrorResponse {
    pub(super) fn new(status: StatusCode, code: ErrorCode, why: &str) -> Self {
        Self { status, code, why: why.to_owned(), detail: None }
    }

    /// An unknown manifest, in the words of the distribution registry: clients hide a message that
    /// only repeats the code.
    pub(super) fn manifest_unknown(wanted: impl std::fmt::Display) -> Self {
        let detail = Some(wanted.to_string());
        Self {
            detail,
            ..Self::new(StatusCode::NOT_FOUND, ErrorCode::ManifestUnknown, "manifest unknown")
        }
    }

    pub(super) fn bad(code: ErrorCode, why: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, why)
    }

    /// An internal error; the log has the details.
    pub(super) fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "the registry cannot handle a request");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            ErrorCode::Unknown,
            "the registry cannot handle the request",
        )
    }

    pub(super) fn response(&self) -> Response<RegistryBody> {
        let mut error = serde_json::json!({"code": self.code.name(), "message": self.why});
        if let Some(detail) = &self.detail {
            error["detail"] = detail.as_str().into();
        }
        let mut response = json(serde_json::json!({"errors": [error]}).to_string());
        *response.status_mut() = self.status;
        if self.status == StatusCode::UNAUTHORIZED {
            put(&mut response, "www-authenticate", "Basic realm=\"mainstay\", charset=\"UTF-8\"");
        }
        response
    }
}

impl From<ImageStoreError> for ErrorResponse {
    fn from(error: ImageStoreError) -> Self {
        match error {
            ImageStoreError::Digest { .. } => {
                Self::bad(ErrorCode::DigestInvalid, &error.to_string())
            }
            ImageStoreError::Size { .. } | ImageStoreError::TooLong(_) => {
                Self::bad(ErrorCode::SizeInvalid, &error.to_string())
            }
            other => Self::internal(other),
        }
    }
}

pub(super) fn not_allowed() -> ErrorResponse {
    let why = "the method is not allowed here";
    ErrorResponse::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::Unsupported, why)
}

pub(super) fn whole(bytes: impl Into<Bytes>) -> RegistryBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed()
}

/// A response with a body.
pub(super) fn response(status: StatusCode, body: RegistryBody) -> Response<RegistryBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

/// Sets a header; an invalid value is ignored.
pub(super) fn put(response: &mut Response<RegistryBody>, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(HeaderName::from_static(name), value);
    }
}

fn typed(bytes: impl Into<Bytes>, media_type: &str) -> Response<RegistryBody> {
    let bytes = bytes.into();
    let length = bytes.len();
    let mut response = response(StatusCode::OK, whole(bytes));
    put(&mut response, "content-type", media_type);
    put(&mut response, "content-length", &length.to_string());
    response
}

pub(super) fn json(text: impl Into<String>) -> Response<RegistryBody> {
    typed(text.into(), "application/json")
}

pub(super) fn index(bytes: Vec<u8>) -> Response<RegistryBody> {
    typed(bytes, crate::manifest::media_type::OCI_INDEX)
}

/// A page of a list.
pub(super) fn page(text: String, path: &str, more: Option<String>) -> Response<RegistryBody> {
    let mut response = json(text);
    if let Some(more) = more {
        put(&mut response, "link", &format!("<{path}?{more}>; rel=\"next\""));
    }
    response
}

pub(super) fn manifest(descriptor: &Descriptor, bytes: Vec<u8>) -> Response<RegistryBody> {
    let mut response = typed(bytes, &descriptor.media_type);
    let digest = descriptor.digest.to_string();
    put(&mut response, "docker-content-digest", &digest);
    put(&mut response, "etag", &format!("\"{digest}\""));
    response
}

pub(super) fn created(location: &str, digest: &Digest) -> Response<RegistryBody> {
    let mut response = response(StatusCode::CREATED, whole(Bytes::new()));
    put(&mut response, "location", location);
    put(&mut response, "docker-content-digest", &digest.to_string());
    response
}

pub(super) fn created_blob(name: &str, digest: &Digest) -> Response<RegistryBody> {
    created(&format!("/v2/{name}/blobs/{digest}"), digest)
}

pub(super) fn accepted() -> Response<RegistryBody> {
    response(StatusCode::ACCEPTED, whole(Bytes::new()))
}

/// Adds the headers of every response. A response to `HEAD` has no body, but its length.
pub(super) fn finish(mut response: Response<RegistryBody>, head: bool) -> Response<RegistryBody> {
    put(&mut response, "docker-distribution-api-version", "registry/2.0");
    if head {
        *response.body_mut() = whole(Bytes::new());
    } else if !response.headers().contains_key(header::CONTENT_LENGTH)
        && response.status() != StatusCode::NO_CONTENT
        && let Some(length) = http_body::Body::size_hint(response.body()).exact()
    {
        put(&mut response, "content-length", &length.to_string());
    }
    response
}
