//! What hangs below an object.

use super::change;
use super::options::{Verb, WriteOptions};
use super::part::Part;
use super::request::Request;
use super::track::Tracker;
use super::{connect, decode, evict, patch, read, scale, tokens};
use http::{Method, StatusCode};
use mainstay_admission::{self as admission, Operation};
use mainstay_http::response::ApiResponse;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Reason, Status};
use mainstay_store::Key;
use serde_json::{Value, json};

/// From method and subresource to the handler.
pub(super) async fn dispatch(request: Request<'_>, method: &Method) -> Result<ApiResponse, Status> {
    let name = request.path.subresource.clone();
    let name = name.as_str();
    let Some(sub) = request.row.subresource(name) else {
        // Which is how the original answers, kind by kind.
        let custom = request.row.custom().is_some();
        return Err(if custom { request.not_found() } else { Status::no_such_path() });
    };
    let verb = match *method {
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        // Whatever is sent, is passed on.
        Method::HEAD | Method::OPTIONS if name == "proxy" => "get",
        _ => "",
    };
    if !sub.verbs.iter().any(|one| &**one == verb) {
        return Err(Status::no_such_method());
    }
    if !request.path.rest.is_empty() && name != "proxy" {
        return Err(Status::no_such_path());
    }
    let part = match name {
        "status" => Part::Status,
        "finalize" => Part::Finalize,
        "approval" => Part::Approval,
        "ephemeralcontainers" => Part::Debug,
        "resize" => Part::Resize,
        "scale" => return scale::answer(&request, method).await,
        "token" => return tokens::request(&request).await,
        "eviction" => return evict::answer(&request).await,
        "binding" => return bind(&request, &request.path.name).await,
        "log" | "exec" | "attach" | "portforward" | "proxy" => {
            return connect::answer(&request, name, method).await;
        }
        _ => return Err(mainstay_streams::no_process(name)),
    };
    match verb {
        "get" => read::get(&request).await,
        "update" => change::update(&request, part).await,
        _ => patch::answer(&request, part).await,
    }
}

/// `pods/binding` and `bindings`: puts a pod on a node.
pub(super) async fn bind(request: &Request<'_>, pod: &str) -> Result<ApiResponse, Status> {
    let options = WriteOptions::read(request, Verb::Create)?;
    let gvk = Gvk::new("", "v1", "Binding");
    let mut sent = decode::object_of(request, &gvk, options.validation)?.object;
    let (name, subresource) = match pod {
        "" => (sent.name().to_owned(), ""),
        pod => (pod.to_owned(), "binding"),
    };
    let asked = request.asked(Operation::Create, subresource, &name, options.dry_run);
    super::meta::match_namespace(request, &mut sent)?;
    Tracker::answered(request, &options, &gvk, subresource, &mut sent);
    admission::mutate(asked, &mut sent, None).await?;
    if !pod.is_empty() && sent.name() != pod {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let pod = if pod.is_empty() { sent.name().to_owned() } else { pod.to_owned() };
    let pod = pod.as_str();
    let target = |field: &str| sent.str(&["target", field]).unwrap_or_default();
    let node = target("name").to_owned();
    // The original takes these for faults of its own.
    let path = FieldPath::new("target");
    if !matches!(target("kind"), "" | "Node") {
        let allowed = ["Node", "<empty>"];
        let error = FieldError::not_supported(&path.child("kind"), target("kind"), &allowed);
        return Err(Status::new(Reason::Unknown, error.to_string()));
    }
    if node.is_empty() {
        let error = FieldError::required(&path.child("name"), "");
        return Err(Status::new(Reason::Unknown, error.to_string()));
    }
    admission::validate(asked, &mut sent, None).await?;
    let key = Key::new("pods", request.path.namespace.as_str(), pod);
    let mut attempts = super::write::ATTEMPTS;
    loop {
        attempts -= 1;
        let stored =
            request.server.store.get(&key).ok_or_else(|| Status::not_found("", "pods", pod))?;
        let object = bound(&stored.object(), &sent, &node, &request.server.clock.now_rfc3339())?;
        if options.dry_run {
            return Ok(created());
        }
        let expect = mainstay_store::Expect::Revision(stored.revision);
        let change =
            mainstay_store::Change::Put { key: key.clone(), object: &object, expect, guard: None };
        match request.server.store.commit(change).await {
            Ok(_) => return Ok(created()),
            Err(mainstay_store::CommitError::Stale { .. }) if attempts > 0 => {}
            Err(error) => return Err(super::write::commit_status(&request.row, pod, &error)),
        }
    }
}

/// A pod on a node.
fn bound(pod: &Object, binding: &Object, node: &str, now: &str) -> Result<Object, Status> {
    if !binding.uid().is_empty() && binding.uid() != pod.uid() {
        let why = scale::other_uid("pods", pod, binding.uid());
        return Err(Status::conflict("", "pods", pod.name(), &why));
    }
    let conflict = |why: String| Err(Status::conflict("", "pods/binding", pod.name(), &why));
    if pod.is_terminating() {
        return conflict(format!(
            "pod {} is being deleted, cannot be assigned to a host",
            pod.name()
        ));
    }
    let present = pod.str(&["spec", "nodeName"]).unwrap_or_default();
    if !present.is_empty() {
        return conflict(format!("pod {} is already assigned to node {present:?}", pod.name()));
    }
    if !pod.array(&["spec", "schedulingGates"]).is_empty() {
        return conflict(format!("pod {} has non-empty .spec.schedulingGates", pod.name()));
    }
    let mut object = pod.clone();
    object.set(&["spec", "nodeName"], node.into());
    for (key, value) in binding.labels() {
        object.set_label(key, value);
    }
    for (key, value) in binding.annotations() {
        object.set_annotation(key, value);
    }
    let mut conditions: Vec<Value> = object
        .array(&["status", "conditions"])
        .iter()
        .filter(|one| one.get("type").and_then(Value::as_str) != Some("PodScheduled"))
        .cloned()
        .collect();
    conditions.push(json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": now,
    }));
    object.set(&["status", "conditions"], conditions.into());
    Ok(object)
}

pub(super) fn created() -> ApiResponse {
    ApiResponse::value(
        StatusCode::CREATED,
        &json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success", "code": 201,
        }),
    )
}
