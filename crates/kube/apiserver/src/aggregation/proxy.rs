//! A request that another server answers.

use super::error::SendError;
use super::remote::Remote;
use super::wire;
use super::wire::Sent;
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
    let body = match body {
        Ok(body) => body,
        Err(status) => {
            return Some(ApiResponse::refusal(&status).into_response(ResponseFormat::default()));
        }
    };
    Some(match forwarded(server, &remote, identity, parts, body).await {
        Ok(response) => response,
        Err(why) => unavailable(&format!("error trying to reach service: {why}")),
    })
}

/// Sends a request on, and gives what comes back.
pub(super) async fn forwarded(
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
            return Ok(busy());
        };
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        request.headers_mut().insert(UPGRADE, upgrade.to);
        tunnel = Some((upgrade.client, permit));
    }
    let mut sent = wire::send(server, remote, identity, request).await?;
    let theirs = sent.upgraded();
    let of_ours = matches!(sent, Sent::Native(_));
    let mut response = sent.streamed();
    let accepted = parts.headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    if of_ours && negotiate::accepts_gzip(accepted) && !Peer::is_local(parts) {
        response = compress(response);
    }
    let to = response.headers().get(UPGRADE).cloned();
    strip(response.headers_mut());
    match (tunnel, theirs) {
        (Some((client, permit)), Some(theirs)) => {
            let headers = response.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
            if let Some(to) = to {
                headers.insert(UPGRADE, to);
            }
            let stop = server.stop.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = carry(client, theirs) => {}
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

/// A client that wants to speak something else on its connection.
struct Upgrade {
    to: HeaderValue,
    client: OnUpgrade,
}

impl Upgrade {
    /// None if it does not want to, or came over something that cannot change.
    fn read(parts: &Parts) -> Option<Self> {
        let to = parts.headers.get(UPGRADE)?.clone();
        let asks = parts.headers.get_all(CONNECTION).iter().any(|value| {
            let words = value.to_str().unwrap_or_default().split(',');
            words.map(str::trim).any(|word| word.eq_ignore_ascii_case("upgrade"))
        });
        let client = parts.extensions.get::<OnUpgrade>().cloned()?;
        asks.then_some(Self { to, client })
    }
}

/// Carries what both sides say until one of them has ended.
async fn carry(client: OnUpgrade, theirs: OnUpgrade) {
    let both = futures::future::try_join(client, theirs).await;
    let (client, theirs) = match both {
        Ok(both) => both,
        Err(error) => {
            tracing::debug!(%error, "a stream to an aggregated server did not begin");
            return;
        }
    };
    let (mut client, mut theirs) = (TokioIo::new(client), TokioIo::new(theirs));
    if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut theirs).await {
        tracing::debug!(%error, "a stream to an aggregated server broke");
    }
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

/// The answer when too many streams are open.
fn busy() -> Response<Body> {
    let text = "too many streams are open, try again later";
    let status = Status::new(Reason::TooManyRequests, text).retry_after(1);
    ApiResponse::refusal(&status).into_response(ResponseFormat::default())
}

pub(super) fn unavailable(why: &str) -> Response<Body> {
    ApiResponse::text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"))
        .header(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .into_response(ResponseFormat::default())
}
