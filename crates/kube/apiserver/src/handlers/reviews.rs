//! Kinds that are asked and not kept: who am I, may I, is this token good.

use super::options::{Verb, WriteOptions};
use super::request::Request;
use super::track::Tracker;
use super::{binding, decode, meta, present, tokens};
use http::StatusCode;
use mainstay_admission::{self as admission, Operation};
use mainstay_http::response::ApiResponse;
use mainstay_object::{Object, Status};
use mainstay_validation::access_review;
use serde_json::{Value, json};

/// A POST to a collection that keeps nothing.
pub(super) async fn answer(request: Request<'_>) -> Result<ApiResponse, Status> {
    if &*request.row.plural == "bindings" {
        return binding::bind(&request, "").await;
    }
    let options = WriteOptions::read(&request, Verb::Create)?;
    let decoded = decode::object(&request, options.validation)?;
    let mut review = decoded.object;
    meta::match_namespace(&request, &mut review)?;
    Tracker::answered(&request, &options, &request.row.gvk(), "", &mut review);
    let name = review.name().to_owned();
    let asked = request.admission_request(Operation::Create, "", &name, options.dry_run);
    admission::answered(asked, &mut review).await?;
    match &*request.row.kind {
        "SelfSubjectReview" => review.set(&["status"], json!({"userInfo": who(&request)})),
        "TokenReview" => {
            let server = request.server;
            let (answered, used) = server.authenticator.review_token(review, &server.store)?;
            if let Some(used) = used {
                tokens::note_use(server, &used).await;
            }
            review = answered;
        }
        "SelfSubjectRulesReview" => {
            request.server.authorizer.review_rules(request.identity, &mut review)?;
        }
        kind @ ("SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview") => {
            let errors = access_review(kind, &review);
            if !errors.is_empty() {
                // The original names no kind here.
                return Err(Status::invalid("authorization.k8s.io", "", "", &errors));
            }
            let authorizer = &request.server.authorizer;
            authorizer.review_access(kind, request.identity, &mut review);
        }
        _ => return Err(Status::no_such_path()),
    }
    give_metadata(&request, &mut review);
    let mut answer = ApiResponse::bytes(StatusCode::CREATED, present::encode(&review));
    answer.warnings = decoded.warnings;
    Ok(answer)
}

fn give_metadata(request: &Request<'_>, review: &mut Object) {
    // The answer to this one is a new object.
    let new = &*request.row.kind == "SelfSubjectReview";
    if new || !review.get(&["metadata"]).is_some_and(Value::is_object) {
        review.set(&["metadata"], json!({}));
    }
    if new {
        let now = request.server.clock.now_rfc3339();
        review.set(&["metadata", "creationTimestamp"], now.into());
    }
}

fn who(request: &Request<'_>) -> Value {
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
