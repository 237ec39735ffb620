//! The HTTP catalog API of OLM v1's catalog server (catalogd).
//!
//! ```text
//! /catalogs/NAME/api/v1/all      every blob, one compact JSON document a line
//! /catalogs/NAME/api/v1/metas    the blobs with the given schema, package and name
//! ```
//!
//! A response is produced from the shared index while it is sent. Each blob is decompressed when
//! its turn comes, so a download costs as much memory as its largest blob. A client that repeats
//! the validators of the last response (`ETag`, `Last-Modified`) gets no content if nothing has
//! changed.
//!
//! Beyond upstream: `ETag`, `Allow`, the length in responses to `HEAD`; and 503 with a sentence,
//! where upstream sends 404, for a catalog without content yet. A request for several ranges gets
//! everything, which HTTP allows.

mod body;
mod conditional;
mod encoding;
mod query;
mod range;

pub use body::{BodyError, CatalogBody};

use crate::{RegistryIndex, ServedCatalog, ServedCatalogs};
use body::{Blobs, Download};
use conditional::Precondition;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use query::Query;
use std::{fmt::Display, sync::Arc};
use tokio::sync::Semaphore;

/// The default bound on concurrent downloads.
const DOWNLOADS: usize = 256;

/// Bodies shorter than this are not worth compressing.
const WORTH_COMPRESSING: u64 = 1024;

/// The API of all catalogs of a server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CatalogHttpApi {
    shelf: Arc<ServedCatalogs>,
    downloads: Arc<Semaphore>,
}

impl CatalogHttpApi {
    /// The API of these catalogs.
    pub fn new(shelf: Arc<ServedCatalogs>) -> Self {
        Self { shelf, downloads: Arc::new(Semaphore::new(DOWNLOADS)) }
    }

    /// The same with another bound on concurrent downloads. Each holds one blob; a client beyond
    /// the bound gets 503 with `Retry-After`.
    #[must_use]
    pub fn with_downloads(mut self, most: usize) -> Self {
        self.downloads = Arc::new(Semaphore::new(most));
        self
    }

    /// Answers one request without waiting: content is produced while it is sent.
    pub fn answer<B>(&self, request: &Request<B>) -> Response<CatalogBody> {
        let Some((name, resource)) = route(request.uri().path()) else {
            return refusal(StatusCode::NOT_FOUND, "404 page not found");
        };
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut answer = refusal(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let name = query::unescape(name, false).unwrap_or_default();
        let faults = mainstay_formats::names::dns1123_subdomain(&name);
        if !faults.is_empty() {
            let why = format!("invalid catalog name: {}", faults.join("; "));
            return refusal(StatusCode::BAD_REQUEST, why);
        }
        let query = match resource {
            Resource::All => Query::default(),
            Resource::Metas => match Query::read(request.uri().query().unwrap_or_default()) {
                Some(query) => query,
                None => return refusal(StatusCode::BAD_REQUEST, "400 Bad Request"),
            },
        };
        let Some(served) = self.shelf.get(&name) else {
            return refusal(StatusCode::NOT_FOUND, "404 Not Found");
        };
        match served.index() {
            Some(index) => self.content(request, &index, &query, resource),
            None => not_ready(&served),
        }
    }

    fn content<B>(
        &self,
        request: &Request<B>,
        index: &RegistryIndex,
        query: &Query<'_>,
        resource: Resource,
    ) -> Response<CatalogBody> {
        let request_headers = request.headers();
        let validators = conditional::Validators::of(index);
        let mut headers = HeaderMap::new();
        validators.write(&mut headers);
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        match validators.evaluate(request_headers) {
            Precondition::Passed => {}
            Precondition::NotModified => return empty_response(StatusCode::NOT_MODIFIED, headers),
            Precondition::Failed => {
                return empty_response(StatusCode::PRECONDITION_FAILED, headers);
            }
        }
        let blobs = Blobs::of(index.catalog(), query);
        let size = blobs.size();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
        let mut status = StatusCode::OK;
        let mut part = 0..size;
        if matches!(resource, Resource::All) {
            headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            let range_header = request_headers
                .get(header::RANGE)
                .filter(|_| validators.allows_range(request_headers));
            match range::read(range_header.map_or(b"", HeaderValue::as_bytes), size) {
                range::RangeRequest::All => {}
                range::RangeRequest::Part(range) => {
                    let end = range.end - 1;
                    set(
                        &mut headers,
                        header::CONTENT_RANGE,
                        format_args!("bytes {}-{end}/{size}", range.start),
                    );
                    status = StatusCode::PARTIAL_CONTENT;
                    part = range;
                }
                range::RangeRequest::Unsatisfiable(why) => {
                    let mut answer = refusal(StatusCode::RANGE_NOT_SATISFIABLE, why);
                    set(
                        answer.headers_mut(),
                        header::CONTENT_RANGE,
                        format_args!("bytes */{size}"),
                    );
                    return answer;
                }
            }
        }
        let length = part.end - part.start;
        let compressed = status == StatusCode::OK
            && length >= WORTH_COMPRESSING
            && encoding::accepts_gzip(request_headers);
        if compressed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.remove(header::ACCEPT_RANGES);
        } else {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        let body = if request.method() == Method::HEAD || length == 0 {
            CatalogBody::empty()
        } else {
            let Ok(permit) = Arc::clone(&self.downloads).try_acquire_owned() else {
                return unavailable("too many downloads are under way: ask again in a moment");
            };
            CatalogBody::download(Download::new(blobs, part, compressed, permit))
        };
        let mut answer = Response::new(body);
        *answer.status_mut() = status;
        *answer.headers_mut() = headers;
        answer
    }
}

/// The resource below a catalog.
#[derive(Clone, Copy)]
enum Resource {
    All,
    Metas,
}

/// Splits a path into the catalog (still escaped) and the resource.
fn route(path: &str) -> Option<(&str, Resource)> {
    let (name, rest) = path.strip_prefix("/catalogs/")?.split_once('/')?;
    let resource = match rest {
        "api/v1/all" => Resource::All,
        "api/v1/metas" => Resource::Metas,
        _ => return None,
    };
    (!name.is_empty()).then_some((name, resource))
}

fn not_ready(served: &ServedCatalog) -> Response<CatalogBody> {
    let name = served.name();
    match &served.state().problem {
        None => {
            unavailable(format_args!("the catalog `{name}` is being loaded: ask again in a moment"))
        }
        Some(problem) => {
            unavailable(format_args!("the catalog `{name}` cannot be served: {problem}"))
        }
    }
}

fn unavailable(why: impl Display) -> Response<CatalogBody> {
    let mut answer = refusal(StatusCode::SERVICE_UNAVAILABLE, why);
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

fn empty_response(status: StatusCode, headers: HeaderMap) -> Response<CatalogBody> {
    let mut answer = Response::new(CatalogBody::empty());
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    answer
}

/// A response with one line of plain text, as Go's `http.Error` writes it.
fn refusal(status: StatusCode, why: impl Display) -> Response<CatalogBody> {
    let mut answer = Response::new(CatalogBody::text(format!("{why}\n")));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

/// Sets a header to a text of numbers and fixed words.
fn set(headers: &mut HeaderMap, name: HeaderName, value: impl Display) {
    if let Ok(value) = HeaderValue::try_from(value.to_string()) {
        headers.insert(name, value);
    }
}
