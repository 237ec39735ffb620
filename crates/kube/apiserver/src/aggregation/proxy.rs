//! Proxy: forwards requests to aggregated API servers.

use super::error::SendError;
use super::remote::Remote;
use super::transport;
use super::transport::RemoteResponse;
use crate::serve::Peer;
use crate::server::ApiServer;
use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use mainstay_auth::Identity;
use mainstay_http::Body;
use mainstay_http::negotiate;
use mainstay_http::response::{ApiResponse, ResponseFormat, compress};
use mainstay_object::{Reason, Status};

/// Hop-by-hop headers, which concern one connection only.
const HOP_BY_HOP_HEADERS: [HeaderName; 5] = [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// Answers a request of a remote group-version; none if the group-version is not remote. `group`
/// and `version` are those of the path.
pub(crate) async fn proxy_request(
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
    let body = match body {
        Ok(body) => body,
        Err(status) => {
            return Some(ApiResponse::refusal(&status).into_response(ResponseFormat::default()));
        }
    };
    Some(match forward(server, &remote, identity, parts, body).await {
        Ok(response) => response,
        Err(why) => unavailable(&format!("error trying to reach service: {why}")),
    })
}

/// Forwards a request and returns the response.
pub(super) async fn forward(
    server: &ApiServer,
    remote: &Remote,
    identity: &Identity,
    parts: &Parts,
    body: Bytes,
) -> Result<Response<Body>, SendError> {
    let upgrade = Upgrade::read(parts);
    let mut request = request(parts, body)?;
    let mut tunnel = None;
    if let Some(upgrade) = upgrade {
        let Ok(permit) = server.aggregation.tunnels.clone().try_acquire_owned() else {
            return Ok(too_many_streams());
        };
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        request.headers_mut().insert(UPGRADE, upgrade.protocol);
        tunnel = Some((upgrade.client_side, permit));
    }
    let mut remote_response = transport::send(server, remote, identity, request).await?;
    let server_side = remote_response.upgraded();
    let is_in_process = matches!(remote_response, RemoteResponse::Native(_));
    let mut response = remote_response.into_streaming();
    let accepted = parts.headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    if is_in_process && negotiate::accepts_gzip(accepted) && !Peer::is_local(parts) {
        response = compress(response);
    }
    let protocol = response.headers().get(UPGRADE).cloned();
    strip_hop_by_hop_headers(response.headers_mut());
    match (tunnel, server_side) {
        (Some((client_side, permit)), Some(server_side)) => {
            let headers = response.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
            if let Some(protocol) = protocol {
                headers.insert(UPGRADE, protocol);
            }
            let stop = server.stop.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = copy_stream(client_side, server_side) => {}
                    () = stop.cancelled() => {}
                }
                drop(permit);
            });
        }
        (None, Some(_)) => return Err(SendError::Upgraded),
        (_, None) => {}
    }
    Ok(response)
}

/// A request to upgrade the connection.
struct Upgrade {
    protocol: HeaderValue,
    client_side: OnUpgrade,
}

impl Upgrade {
    /// None if the client requests no upgrade, or its connection does not support one.
    fn read(parts: &Parts) -> Option<Self> {
        let protocol = parts.headers.get(UPGRADE)?.clone();
        let requests_upgrade = parts.headers.get_all(CONNECTION).iter().any(|value| {
            let words = value.to_str().unwrap_or_default().split(',');
            words.map(str::trim).any(|word| word.eq_ignore_ascii_case("upgrade"))
        });
        let client_side = parts.extensions.get::<OnUpgrade>().cloned()?;
        requests_upgrade.then_some(Self { protocol, client_side })
    }
}

/// Copies data in both directions until one side ends.
async fn copy_stream(client_side: OnUpgrade, server_side: OnUpgrade) {
    let upgrades = futures::future::try_join(client_side, server_side).await;
    let (client_side, server_side) = match upgrades {
        Ok(upgrades) => upgrades,
        Err(error) => {
            tracing::debug!(%error, "cannot start a stream to an aggregated API server");
            return;
        }
    };
    let (mut client_side, mut server_side) = (TokioIo::new(client_side), TokioIo::new(server_side));
    if let Err(error) = tokio::io::copy_bidirectional(&mut client_side, &mut server_side).await {
        tracing::debug!(%error, "a stream to an aggregated API server was interrupted");
    }
}

fn request(parts: &Parts, body: Bytes) -> http::Result<Request<Bytes>> {
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::builder().method(&parts.method).uri(path).body(body)?;
    let mut headers = parts.headers.clone();
    strip_hop_by_hop_headers(&mut headers);
    // The sender sets them again.
    headers.remove(CONTENT_LENGTH);
    headers.remove(HOST);
    *request.headers_mut() = headers;
    Ok(request)
}

/// Removes the hop-by-hop headers, including those that `Connection` names.
fn strip_hop_by_hop_headers(headers: &mut HeaderMap) {
    let connection_headers: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::try_from(name.trim()).ok())
        .collect();
    for name in connection_headers.into_iter().chain(HOP_BY_HOP_HEADERS) {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"] {
        headers.remove(name);
    }
}

/// The response when too many streams are open.
fn too_many_streams() -> Response<Body> {
    let text = "too many streams are open, try again later";
    let status = Status::new(Reason::TooManyRequests, text).retry_after(1);
    ApiResponse::refusal(&status).into_response(ResponseFormat::default())
}

pub(super) fn unavailable(why: &str) -> Response<Body> {
    ApiResponse::text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"))
        .header(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .into_response(ResponseFormat::default())
}
