//! The HTTP catalog API of OLM v1's catalog server (catalogd).
//!
//! ```text
//! /catalogs/NAME/api/v1/all      every document, compact JSON, one a line
//! /catalogs/NAME/api/v1/metas    the documents with the given schema, package and name
//! ```
//!
//! `metas` is on by default. Upstream has it behind the feature gate `APIV1MetasHandler`;
//! [`CatalogHttpApi::with_metas`] turns it off. GraphQL (gate `GraphQLCatalogQueries`) is not served.
//!
//! A response is produced from [`ServedDocuments`] while it is sent: documents are read or
//! decompressed when their turn comes, and compressed forms are made once and kept. A client that
//! repeats the validators of the last response (`ETag`, `Last-Modified`) gets no content if nothing
//! has changed.
//!
//! Beyond upstream:
//!
//! * `ETag`, a strong one, and `Allow`.
//! * 503 with a sentence for a catalog whose content is not loaded yet, where upstream sends 404.
//! * An `If-Modified-Since` that is no date is ignored in `metas`, too, as HTTP says. Upstream
//!   answers 500, followed by the content.

mod body;
mod conditional;
mod download;
mod encoding;
mod path;
mod query;
mod range;
mod response;

pub use body::CatalogBody;
pub use download::DownloadError;

use crate::{
    ServedCatalog, ServedCatalogs,
    documents::{ServedDocuments, encoding::Coding},
};
use conditional::{Precondition, Validators};
use download::{Download, Part};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use path::Resource;
use query::Query;
use range::RangeRequest;
use response::{refusal, set, unavailable};
use std::{ops::Range, sync::Arc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The default bound on concurrent downloads.
const DOWNLOADS: usize = 128;

/// Bodies shorter than this are not worth compressing.
const WORTH_COMPRESSING: u64 = 1024;

/// The longest response of `metas` that has a `Content-Length`. Upstream's server knows the length of
/// what fits into its buffer only.
const KNOWN_LENGTH: u64 = 2048;

const LINES: HeaderValue = HeaderValue::from_static("application/jsonl");

/// The API of all catalogs of a server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct CatalogHttpApi {
    catalogs: Arc<ServedCatalogs>,
    downloads: Arc<Semaphore>,
    metas: bool,
}

impl CatalogHttpApi {
    /// The API of these catalogs.
    pub fn new(catalogs: Arc<ServedCatalogs>) -> Self {
        Self { catalogs, downloads: Arc::new(Semaphore::new(DOWNLOADS)), metas: true }
    }

    /// The same with another bound on concurrent downloads. Each holds one piece of content; a client
    /// beyond the bound gets 503 with `Retry-After`.
    #[must_use]
    pub fn with_downloads(mut self, most: usize) -> Self {
        self.downloads = Arc::new(Semaphore::new(most));
        self
    }

    /// The same with or without `metas`.
    #[must_use]
    pub fn with_metas(mut self, metas: bool) -> Self {
        self.metas = metas;
        self
    }

    /// Answers one request without waiting: content is produced while it is sent.
    pub fn answer<B>(&self, request: &Request<B>) -> Response<CatalogBody> {
        let path = request.uri().path();
        if let Some(clean) = path::cleaned(path) {
            return response::redirect(request, &clean);
        }
        let route = path::route(path).filter(|(_, resource)| self.serves(*resource));
        let Some((name, resource)) = route else {
            return refusal(request, StatusCode::NOT_FOUND, "404 page not found");
        };
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut answer = refusal(request, StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
            answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        let name = query::unescape(name, false).unwrap_or_default();
        let faults = mainstay_formats::names::dns1123_subdomain(&name);
        if !faults.is_empty() {
            let why = format!("invalid catalog name: {}", faults.join("; "));
            return refusal(request, StatusCode::BAD_REQUEST, why);
        }
        let query = match resource {
            Resource::All => Query::default(),
            Resource::Metas => match Query::read(request.uri().query().unwrap_or_default()) {
                Some(query) => query,
                None => return refusal(request, StatusCode::BAD_REQUEST, "400 Bad Request"),
            },
        };
        let Some(served) = self.catalogs.get(&name) else {
            return refusal(request, StatusCode::NOT_FOUND, "404 Not Found");
        };
        match served.documents() {
            Ok(Some(documents)) => self.content(request, documents, &query, resource),
            Ok(None) => not_ready(request, &served),
            Err(error) => {
                let why = format_args!("the catalog `{name}` cannot be served: {error}");
                refusal(request, StatusCode::INTERNAL_SERVER_ERROR, why)
            }
        }
    }

    fn serves(&self, resource: Resource) -> bool {
        match resource {
            Resource::All => true,
            Resource::Metas => self.metas,
        }
    }

    fn content<B>(
        &self,
        request: &Request<B>,
        documents: Arc<ServedDocuments>,
        query: &Query<'_>,
        resource: Resource,
    ) -> Response<CatalogBody> {
        let validators = Validators::of(&documents);
        let mut headers = HeaderMap::new();
        validators.write(&mut headers, None);
        match validators.evaluate(request.headers()) {
            Precondition::Passed => {}
            Precondition::NotModified => return response::empty(StatusCode::NOT_MODIFIED, headers),
            Precondition::Failed => {
                if resource == Resource::All {
                    headers.insert(header::CONTENT_TYPE, LINES);
                }
                return response::empty(StatusCode::PRECONDITION_FAILED, headers);
            }
        }
        headers.insert(header::CONTENT_TYPE, LINES);
        let selection = documents.select(query.wanted());
        let size = documents.size_of(&selection);
        if resource == Resource::All {
            headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
            let range = request.headers().get(header::RANGE);
            let range = range.filter(|_| validators.allows_range(request.headers()));
            match range::read(range.map_or(b"", HeaderValue::as_bytes), size) {
                RangeRequest::All => {}
                RangeRequest::Parts(ranges) => {
                    return self.ranges(request, documents, &ranges, headers);
                }
                RangeRequest::Beyond => {
                    let why = "invalid range: failed to overlap";
                    let mut answer = refusal(request, StatusCode::RANGE_NOT_SATISFIABLE, why);
                    let range = format_args!("bytes */{size}");
                    set(answer.headers_mut(), header::CONTENT_RANGE, range);
                    return answer;
                }
                RangeRequest::Invalid => {
                    return refusal(request, StatusCode::RANGE_NOT_SATISFIABLE, "invalid range");
                }
            }
        }
        let known = resource == Resource::All || size <= KNOWN_LENGTH;
        let read = request.method() == Method::GET;
        if known && (read || resource == Resource::All) {
            headers.insert(header::CONTENT_LENGTH, size.into());
        }
        if !read || size == 0 {
            return response::empty(StatusCode::OK, headers);
        }
        let Some(permit) = self.permit() else { return busy(request) };
        let coding = encoding::negotiate(request.headers()).filter(|_| size >= WORTH_COMPRESSING);
        let download = match coding {
            Some(coding) => {
                let name = match coding {
                    Coding::Gzip => "gzip",
                    Coding::Zstd => "zstd",
                };
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
                headers.remove(header::ACCEPT_RANGES);
                headers.remove(header::CONTENT_LENGTH);
                validators.write(&mut headers, Some(coding));
                Download::encoded(documents, selection, coding, permit)
            }
            None => Download::selected(documents, selection, known.then_some(size), permit),
        };
        let mut answer = response::empty(StatusCode::OK, headers);
        *answer.body_mut() = CatalogBody::download(download);
        answer
    }

    /// Ranges of all lines. Several ranges are the parts of a multipart body.
    fn ranges<B>(
        &self,
        request: &Request<B>,
        documents: Arc<ServedDocuments>,
        ranges: &[Range<u64>],
        mut headers: HeaderMap,
    ) -> Response<CatalogBody> {
        let size = documents.size();
        let place = |range: &Range<u64>| format!("bytes {}-{}/{size}", range.start, range.end - 1);
        let mut parts = Vec::new();
        if let [range] = ranges {
            set(&mut headers, header::CONTENT_RANGE, place(range));
            parts.push(Part::Span(range.clone()));
        } else {
            // No content has its own digest in it.
            let boundary = &documents.digest()[..60];
            let mut line = format!("--{boundary}\r\n");
            for range in ranges {
                let head = format!(
                    "{line}Content-Range: {}\r\nContent-Type: application/jsonl\r\n\r\n",
                    place(range)
                );
                parts.push(Part::Text(head.into()));
                parts.push(Part::Span(range.clone()));
                line = format!("\r\n--{boundary}\r\n");
            }
            parts.push(Part::Text(format!("\r\n--{boundary}--\r\n").into()));
            let kind = format!("multipart/byteranges; boundary={boundary}");
            set(&mut headers, header::CONTENT_TYPE, kind);
        }
        let length: u64 = parts.iter().map(Part::length).sum();
        headers.insert(header::CONTENT_LENGTH, length.into());
        let body = if request.method() == Method::HEAD {
            CatalogBody::empty()
        } else {
            let Some(permit) = self.permit() else { return busy(request) };
            CatalogBody::download(Download::parts(documents, parts, permit))
        };
        let mut answer = response::empty(StatusCode::PARTIAL_CONTENT, headers);
        *answer.body_mut() = body;
        answer
    }

    fn permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.downloads).try_acquire_owned().ok()
    }
}

fn busy<B>(request: &Request<B>) -> Response<CatalogBody> {
    unavailable(request, "too many downloads are under way: ask again in a moment")
}

fn not_ready<B>(request: &Request<B>, served: &ServedCatalog) -> Response<CatalogBody> {
    let name = served.name();
    match &served.state().problem {
        None => unavailable(
            request,
            format_args!("the catalog `{name}` is being loaded: ask again in a moment"),
        ),
        Some(problem) => {
            unavailable(request, format_args!("the catalog `{name}` cannot be served: {problem}"))
        }
    }
}
