//! The head of a request, read once and carried along.

use super::info::Info;
use crate::serve::Peer;
use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};
use http::request::Parts;
use http::{Method, Response};
use mainstay_auth::authz::RequestInfo;
use mainstay_http::Body;
use mainstay_http::header_text;
use mainstay_http::negotiate;
use mainstay_http::path::{self, ApiPath};
use mainstay_http::query::Query;
use mainstay_http::response::{ApiResponse, ResponseFormat};
use mainstay_object::Status;
use mainstay_object::duration::{self, ParseDurationError};
use std::time::Duration;

/// The longest that a request may take, and takes unless it says less.
pub(super) const LONGEST: Duration = Duration::from_mins(1);

/// What a request asks for, and in which form it wants its answer.
#[derive(Debug)]
pub(crate) struct RequestHead {
    /// As it came, without what proves who sent it.
    pub(crate) parts: Parts,
    /// The path with its escapes undone; none if one is broken.
    pub(crate) path: Option<String>,
    /// What the path names.
    pub(crate) target: ApiPath,
    /// The query, or why it cannot be read.
    pub(crate) query: Result<Query, Status>,
    /// What permission is asked for. None if the path promises a resource and names none
    /// (`/api/v1/watch`), or cannot be read.
    pub(super) info: Option<RequestInfo>,
    /// How the answer is to be written.
    pub(crate) format: ResponseFormat,
}

impl RequestHead {
    /// Reads the head of a request.
    pub(super) fn read(parts: Parts) -> Self {
        let query = Query::parse(parts.uri.query());
        let path = path::decode(parts.uri.path()).map(std::borrow::Cow::into_owned);
        let target = path.as_deref().map_or(ApiPath::Unknown, path::parse);
        let info = path.as_deref().and_then(|path| {
            let resource = match &target {
                ApiPath::Resource(resource) => Some(resource),
                _ => None,
            };
            let query = query.as_ref().ok();
            RequestInfo::read(&parts.method, path, resource.cloned(), query)
        });
        let format = format(&parts, query.as_ref().ok());
        Self { parts, path, target, query, info, format }
    }

    /// The query, if it can be read.
    pub(crate) fn query(&self) -> Option<&Query> {
        self.query.as_ref().ok()
    }

    /// Whether nothing is changed by a request of this method.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.parts.method, Method::GET | Method::HEAD)
    }

    /// The group and version that the path is below, or is.
    pub(super) fn group_version(&self) -> Option<(&str, &str)> {
        match &self.target {
            ApiPath::Resource(path) => Some((&path.group, &path.version)),
            ApiPath::GroupVersion(group, version) => Some((group, version)),
            _ => None,
        }
    }

    /// The answer to a request that is refused.
    pub(super) fn refused(&self, status: &Status) -> Response<Body> {
        ApiResponse::refusal(status).into_response(self.format)
    }

    /// How long the request may take, if it says so; the error is the original's.
    pub(super) fn timeout(&self) -> Result<Option<Duration>, ParseDurationError> {
        self.query().map_or(Ok(None), timeout)
    }

    /// What records, counts and flow schemas say of it where no permission can be asked for.
    pub(super) fn path_alone(&self) -> Info<'_> {
        Info { path: self.parts.uri.path(), ..Info::default() }
    }
}

/// How long a request with such a query may take, if it says so.
pub(crate) fn timeout(query: &Query) -> Result<Option<Duration>, ParseDurationError> {
    let Some(text) = query.text("timeout") else { return Ok(None) };
    Ok(duration::parse(text)?.filter(|asked| !asked.is_zero()).map(|asked| asked.min(LONGEST)))
}

/// How the client wants the answer to be written.
fn format(parts: &Parts, query: Option<&Query>) -> ResponseFormat {
    let headers = &parts.headers;
    ResponseFormat {
        gzip: negotiate::accepts_gzip(header_text(headers, &ACCEPT_ENCODING)),
        is_local: Peer::is_local(parts),
        pretty: is_for_reading(query, header_text(headers, &USER_AGENT)),
        encoding: negotiate::encoding(header_text(headers, &ACCEPT)),
    }
}

/// Whether an answer is indented: as the query says, else for browsers and tools of the shell.
fn is_for_reading(query: Option<&Query>, user_agent: Option<&str>) -> bool {
    match query.and_then(|query| query.text("pretty")) {
        Some(wish) => matches!(wish, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        None => user_agent.is_some_and(|agent| {
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|tool| agent.starts_with(tool))
        }),
    }
}
