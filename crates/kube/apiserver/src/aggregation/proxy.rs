//! A request that another server answers.

use super::wire;
use crate::Identity;
use crate::http::Body;
use crate::http::answer::{Answer, Wishes};
use crate::server::ApiServer;
use bytes::Bytes;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use mainstay_object::Status;
use std::sync::Arc;

/// Headers that are about one connection only.
const OF_THE_CONNECTION: [HeaderName; 5] = [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// Answers a request of a group-version that another server has; none if it has none. `group` and
/// `version` are those that the path names.
pub(crate) async fn proxied(
    server: &ApiServer,
    identity: &Identity,
    parts: &Parts,
    (group, version): (&str, &str),
    body: Result<Bytes, Status>,
) -> Option<Response<Body>> {
    let remote = server.aggregation.remote(group, version)?;
    if !remote.available {
        return Some(unavailable("service unavailable"));
    }
    if parts.headers.contains_key(UPGRADE) {
        return Some(unavailable(
            "upgrades of connections to aggregated servers are not supported",
        ));
    }
    let body = match body {
        Ok(body) => body,
        Err(status) => return Some(Answer::refusal(&status).into_response(Wishes::default())),
    };
    let request = match request(parts, body) {
        Ok(request) => request,
        Err(error) => return Some(unavailable(&error.to_string())),
    };
    Some(match wire::send(server, &Arc::clone(&remote), identity, request).await {
        Ok(sent) => {
            let mut response = sent.streamed();
            strip(response.headers_mut());
            response
        }
        Err(why) => unavailable(&format!("error trying to reach service: {why}")),
    })
}

fn request(parts: &Parts, body: Bytes) -> http::Result<Request<Bytes>> {
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::builder().method(&parts.method).uri(path).body(body)?;
    let mut headers = parts.headers.clone();
    strip(&mut headers);
    // Said again by whoever sends it.
    headers.remove(CONTENT_LENGTH);
    headers.remove(HOST);
    *request.headers_mut() = headers;
    Ok(request)
}

/// Takes out what is about the connection, and what its header names besides.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::try_from(name.trim()).ok())
        .collect();
    for name in named.into_iter().chain(OF_THE_CONNECTION) {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"] {
        headers.remove(name);
    }
}

fn unavailable(why: &str) -> Response<Body> {
    Answer::text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"))
        .header(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .into_response(Wishes::default())
}
