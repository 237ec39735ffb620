//! Reviews: kinds without storage, such as `SelfSubjectAccessReview` and `TokenReview`.

use super::managed_fields::FieldManager;
use super::options::{Verb, WriteOptions};
use super::request::Request;
use super::{account_tokens, binding, decode, meta, response};
use http::StatusCode;
use mainstay_admission::{self as admission, Operation};
use mainstay_http::response::ApiResponse;
use mainstay_object::{Object, Status};
use mainstay_validation::access_review;
use serde_json::{Value, json};

/// Handles a POST to a collection without storage.
pub(super) async fn answer(request: Request<'_>) -> Result<ApiResponse, Status> {
    if &*request.row.plural == "bindings" {
        return binding::bind(&request, "").await;
    }
    let options = WriteOptions::read(&request, Verb::Create)?;
    let decoded = decode::object(&request, options.validation)?;
    let mut review = decoded.object;
    meta::match_namespace(&request, &mut review)?;
    FieldManager::track_unstored(&request, &options, &request.row.gvk(), "", &mut review);
    let name = review.name().to_owned();
    let admission_request =
        request.admission_request(Operation::Create, "", &name, options.dry_run);
    admission::admit_unstored(admission_request, &mut review).await?;
    match &*request.row.kind {
        "SelfSubjectReview" => review.set(&["status"], json!({"userInfo": user_info(&request)})),
        "TokenReview" => {
            let server = request.server;
            let (reviewed, used) = server.authenticator.review_token(review, &server.store)?;
            if let Some(used) = used {
                account_tokens::record_token_use(server, &used).await;
            }
            review = reviewed;
        }
        "SelfSubjectRulesReview" => {
            request.server.authorizer.review_rules(request.identity, &mut review)?;
        }
        kind @ ("SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview") => {
            let errors = access_review(kind, &review);
            if !errors.is_empty() {
                // kube-apiserver names no kind here.
                return Err(Status::invalid("authorization.k8s.io", "", "", &errors));
            }
            let authorizer = &request.server.authorizer;
            authorizer.review_access(kind, request.identity, &mut review);
        }
        _ => return Err(Status::no_such_path()),
    }
    set_metadata(&request, &mut review);
    let mut response = ApiResponse::bytes(StatusCode::CREATED, response::encode(&review));
    response.warnings = decoded.warnings;
    Ok(response)
}

fn set_metadata(request: &Request<'_>, review: &mut Object) {
    // kube-apiserver's SelfSubjectReview has new metadata.
    let is_new = &*request.row.kind == "SelfSubjectReview";
    if is_new || !review.get(&["metadata"]).is_some_and(Value::is_object) {
        review.set(&["metadata"], json!({}));
    }
    if is_new {
        let now = request.server.clock.now_rfc3339();
        review.set(&["metadata", "creationTimestamp"], now.into());
    }
}

fn user_info(request: &Request<'_>) -> Value {
    let identity = request.identity;
    let mut info = json!({"username": identity.user(), "groups": identity.groups()});
    if !identity.uid().is_empty() {
        info["uid"] = identity.uid().into();
    }
    if !identity.extra().is_empty() {
        info["extra"] = json!(identity.extra());
    }
    info
}
