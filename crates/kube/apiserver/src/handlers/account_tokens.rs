//! Tokens of ServiceAccounts: the `TokenRequest` API, and the record of the last use of legacy
//! tokens.

use super::managed_fields::{FieldManager, MANAGED_FIELDS};
use super::options::{Verb, WriteOptions};
use super::request::Request;
use super::{decode, response};
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

/// `serviceaccounts/token`: issues a token.
pub(super) async fn create_token(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let account = request.server.store.get(&request.key()).ok_or_else(|| request.not_found())?;
    let options = WriteOptions::read(request, Verb::Create)?;
    let gvk = Gvk::new("authentication.k8s.io", "v1", "TokenRequest");
    let decoded = decode::built_in_object(request, &gvk, options.validation)?;
    let mut sent = decoded.object;
    // The sender also manages the defaults of a TokenRequest.
    if sent.i64(&["spec", "expirationSeconds"]).is_none() {
        sent.set(&["spec", "expirationSeconds"], 3600.into());
    }
    FieldManager::track_unstored(request, &options, &gvk, "token", &mut sent);
    let review =
        request.admission_request(Operation::Create, "token", &request.path.name, options.dry_run);
    admission::mutate(review, &mut sent, None).await?;
    let mut reviewed = sent.clone();
    let account_of = account.object();
    let now = request.server.clock.now_rfc3339();
    for (field, value) in [
        ("name", account_of.name()),
        ("namespace", account_of.namespace()),
        ("uid", account_of.uid()),
        ("creationTimestamp", now.as_str()),
    ] {
        reviewed.set(&["metadata", field], value.into());
    }
    admission::validate(review, &mut reviewed, None).await?;
    let entries = sent.remove(&MANAGED_FIELDS);
    let mut issued = request.server.authenticator.create_token(
        sent,
        &account.object(),
        &request.server.store,
    )?;
    if let Some(entries) = entries {
        issued.set(&MANAGED_FIELDS, entries);
    }
    let mut response = ApiResponse::bytes(StatusCode::CREATED, response::encode(&issued));
    response.warnings = decoded.warnings;
    Ok(response)
}

/// Records on a Secret that its token was used today, as kube-apiserver's internal client does. A
/// failure is retried at the next use.
pub(crate) async fn record_token_use(server: &Arc<ApiServer>, used: &SecretTokenUse) {
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
    let response: http::Response<Body> = Box::pin(server.answer(&identity, request)).await;
    if !response.status().is_success() {
        tracing::debug!(namespace, secret, status = %response.status(), "cannot record the use of a legacy token");
    }
}
