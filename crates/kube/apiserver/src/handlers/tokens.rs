//! Tokens of accounts: their issue over the API, and the note of their use.

use super::options::{Verb, WriteOptions};
use super::request::Request;
use super::track::{ENTRIES, Tracker};
use super::{decode, present};
use crate::server::ApiServer;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{Method, StatusCode};
use http_body_util::Full;
use mainstay_admission::{self as admission, Operation};
use mainstay_auth::Identity;
use mainstay_auth::authn::SecretTokenUse;
use mainstay_http::Body;
use mainstay_http::response::ApiResponse;
use mainstay_object::{Gvk, Status};
use serde_json::json;
use std::sync::Arc;

/// `serviceaccounts/token`.
pub(super) async fn request(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let account = request.server.store.get(&request.key()).ok_or_else(|| request.not_found())?;
    let options = WriteOptions::read(request, Verb::Create)?;
    let gvk = Gvk::new("authentication.k8s.io", "v1", "TokenRequest");
    let decoded = decode::object_of(request, &gvk, options.validation)?;
    let mut sent = decoded.object;
    // The defaults of a token request are its sender's too.
    if sent.i64(&["spec", "expirationSeconds"]).is_none() {
        sent.set(&["spec", "expirationSeconds"], 3600.into());
    }
    Tracker::answered(request, &options, &gvk, "token", &mut sent);
    let asked =
        request.admission_request(Operation::Create, "token", &request.path.name, options.dry_run);
    admission::mutate(asked, &mut sent, None).await?;
    let mut judged = sent.clone();
    let account_of = account.object();
    let now = request.server.clock.now_rfc3339();
    for (field, value) in [
        ("name", account_of.name()),
        ("namespace", account_of.namespace()),
        ("uid", account_of.uid()),
        ("creationTimestamp", now.as_str()),
    ] {
        judged.set(&["metadata", field], value.into());
    }
    admission::validate(asked, &mut judged, None).await?;
    let entries = sent.remove(&ENTRIES);
    let mut issued = request.server.authenticator.create_token(
        sent,
        &account.object(),
        &request.server.store,
    )?;
    if let Some(entries) = entries {
        issued.set(&ENTRIES, entries);
    }
    let mut answer = ApiResponse::bytes(StatusCode::CREATED, present::encode(&issued));
    answer.warnings = decoded.warnings;
    Ok(answer)
}

/// Notes on a Secret that its token was used today, as the original's own client does. What fails is
/// noted at the next use.
pub(crate) async fn note_use(server: &Arc<ApiServer>, used: &SecretTokenUse) {
    let SecretTokenUse { namespace, secret, uid, day } = used;
    let path = format!("/api/v1/namespaces/{namespace}/secrets/{secret}");
    let patch = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": secret, "namespace": namespace, "uid": uid,
            "labels": {"kubernetes.io/legacy-token-last-used": day},
        },
    });
    let request = http::Request::builder()
        .method(Method::PATCH)
        .uri(path)
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .header(USER_AGENT, "kube-apiserver/v1.35.0")
        .body(Full::new(Bytes::from(patch.to_string())));
    let Ok(request) = request else { return };
    let identity = Identity::admin();
    // Boxed: this is a request inside a request.
    let answer: http::Response<Body> = Box::pin(server.answer(&identity, request)).await;
    if !answer.status().is_success() {
        tracing::debug!(namespace, secret, status = %answer.status(), "a use was not noted");
    }
}
