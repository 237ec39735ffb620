//! Responses without content: errors in one line of text, redirections, and empty ones.

use super::{CatalogBody, path::escape_html};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header,
    uri::PathAndQuery,
};
use std::fmt::Display;

/// A response with this body, whose length clients that ask for the head only are told, too.
fn with_length(method: &Method, status: StatusCode, text: String) -> Response<CatalogBody> {
    let length = text.len();
    let body = if method == Method::HEAD { CatalogBody::empty() } else { CatalogBody::text(text) };
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    vary(answer.headers_mut());
    answer
}

/// A response with one line of plain text, as Go's `http.Error` writes it.
pub(super) fn refusal<B>(
    request: &Request<B>,
    status: StatusCode,
    why: impl Display,
) -> Response<CatalogBody> {
    let mut answer = with_length(request.method(), status, format!("{why}\n"));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// A response that asks the client to come back.
pub(super) fn unavailable<B>(request: &Request<B>, why: impl Display) -> Response<CatalogBody> {
    let mut answer = refusal(request, StatusCode::SERVICE_UNAVAILABLE, why);
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// A redirection to another path with the same query, as Go's `http.Redirect` writes it.
pub(super) fn redirect<B>(request: &Request<B>, path: &str) -> Response<CatalogBody> {
    let query = request.uri().path_and_query().and_then(PathAndQuery::query);
    let location = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    let status = StatusCode::TEMPORARY_REDIRECT;
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    let link = format!("<a href=\"{}\">Temporary Redirect</a>.\n\n", escape_html(&location));
    let mut answer = match *request.method() {
        Method::GET => with_length(request.method(), status, link),
        _ => empty(status, HeaderMap::new()),
    };
    let headers = answer.headers_mut();
    if reads {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    }
    set(headers, header::LOCATION, location);
    answer
}

/// A response that has no body.
pub(super) fn empty(status: StatusCode, headers: HeaderMap) -> Response<CatalogBody> {
    let mut answer = Response::new(CatalogBody::empty());
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    vary(answer.headers_mut());
    answer
}

/// Says that the form of a response depends on the codings that a client accepts.
pub(super) fn vary(headers: &mut HeaderMap) {
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// Sets a header to a text of numbers and fixed words.
pub(super) fn set(headers: &mut HeaderMap, name: HeaderName, value: impl Display) {
    if let Ok(value) = HeaderValue::try_from(value.to_string()) {
        headers.insert(name, value);
    }
}
