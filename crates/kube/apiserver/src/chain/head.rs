//! Head of a request: parsed once and passed through the handler chain.

use super::info::RequestSummary;
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

/// The longest timeout of a request, and its default.
pub(super) const MAX_TIMEOUT: Duration = Duration::from_mins(1);

/// The parsed head of a request.
#[derive(Debug)]
pub(crate) struct RequestHead {
    /// The head as received, without credentials.
    pub(crate) parts: Parts,
    /// The decoded path; none if an escape is invalid.
    pub(crate) path: Option<String>,
    /// The target of the path.
    pub(crate) target: ApiPath,
    /// The query, or the error of parsing it.
    pub(crate) query: Result<Query, Status>,
    /// The attributes for authorization. None if the path is invalid, or lacks the resource that
    /// its prefix requires (`/api/v1/watch`).
    pub(super) info: Option<RequestInfo>,
    /// The format of the response.
    pub(crate) format: ResponseFormat,
}

impl RequestHead {
    /// Parses the head of a request.
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

    /// The query, if it is valid.
    pub(crate) fn query(&self) -> Option<&Query> {
        self.query.as_ref().ok()
    }

    /// Whether the method of the request changes nothing.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.parts.method, Method::GET | Method::HEAD)
    }

    /// The group and version of the path.
    pub(super) fn group_version(&self) -> Option<(&str, &str)> {
        match &self.target {
            ApiPath::Resource(path) => Some((&path.group, &path.version)),
            ApiPath::GroupVersion(group, version) => Some((group, version)),
            _ => None,
        }
    }

    /// The response to a refused request.
    pub(super) fn refusal_response(&self, status: &Status) -> Response<Body> {
        ApiResponse::refusal(status).into_response(self.format)
    }

    /// The timeout in the query; the error text is kube-apiserver's.
    pub(super) fn timeout(&self) -> Result<Option<Duration>, ParseDurationError> {
        self.query().map_or(Ok(None), timeout)
    }

    /// The summary of a request without attributes for authorization: only its path.
    pub(super) fn nonresource_summary(&self) -> RequestSummary<'_> {
        RequestSummary { path: self.parts.uri.path(), ..RequestSummary::default() }
    }
}

/// The timeout in a query, if it has one.
pub(crate) fn timeout(query: &Query) -> Result<Option<Duration>, ParseDurationError> {
    let Some(text) = query.text("timeout") else { return Ok(None) };
    Ok(duration::parse(text)?
        .filter(|timeout| !timeout.is_zero())
        .map(|timeout| timeout.min(MAX_TIMEOUT)))
}

/// The response format that the client asks for.
fn format(parts: &Parts, query: Option<&Query>) -> ResponseFormat {
    let headers = &parts.headers;
    ResponseFormat {
        gzip: negotiate::accepts_gzip(header_text(headers, &ACCEPT_ENCODING)),
        is_local: Peer::is_local(parts),
        pretty: is_pretty(query, header_text(headers, &USER_AGENT)),
        encoding: negotiate::encoding(header_text(headers, &ACCEPT)),
    }
}

/// Whether a response is indented: as the query says, else for browsers and command-line tools.
fn is_pretty(query: Option<&Query>, user_agent: Option<&str>) -> bool {
    match query.and_then(|query| query.text("pretty")) {
        Some(value) => matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        None => user_agent.is_some_and(|agent| {
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|tool| agent.starts_with(tool))
        }),
    }
}
