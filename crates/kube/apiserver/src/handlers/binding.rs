//! Binding: assigns a pod to a node.

use super::commit::{ATTEMPTS, commit_status};
use super::managed_fields::FieldManager;
use super::options::{Verb, WriteOptions};
use super::request::Request;
use super::scale::object::uid_mismatch;
use super::{decode, meta, response};
use mainstay_admission::{self as admission, Operation};
use mainstay_http::response::ApiResponse;
use mainstay_object::{FieldError, FieldPath, Gvk, Object, Reason, Status};
use mainstay_store::{Change, CommitError, Key, Precondition};
use serde_json::{Value, json};

/// `pods/binding` and `bindings`: assigns a pod to a node.
pub(super) async fn bind(request: &Request<'_>, pod: &str) -> Result<ApiResponse, Status> {
    let options = WriteOptions::read(request, Verb::Create)?;
    let gvk = Gvk::new("", "v1", "Binding");
    let mut sent = decode::built_in_object(request, &gvk, options.validation)?.object;
    let (name, subresource) = match pod {
        "" => (sent.name().to_owned(), ""),
        pod => (pod.to_owned(), "binding"),
    };
    let review = request.admission_request(Operation::Create, subresource, &name, options.dry_run);
    meta::match_namespace(request, &mut sent)?;
    FieldManager::track_unstored(request, &options, &gvk, subresource, &mut sent);
    admission::mutate(review, &mut sent, None).await?;
    if !pod.is_empty() && sent.name() != pod {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let pod = if pod.is_empty() { sent.name().to_owned() } else { pod.to_owned() };
    let pod = pod.as_str();
    let target = |field: &str| sent.str(&["target", field]).unwrap_or_default();
    let node = target("name").to_owned();
    // kube-apiserver reports these as internal errors.
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
    admission::validate(review, &mut sent, None).await?;
    let key = Key::new("pods", request.path.namespace.as_str(), pod);
    let mut attempts = ATTEMPTS;
    loop {
        attempts -= 1;
        let stored =
            request.server.store.get(&key).ok_or_else(|| Status::not_found("", "pods", pod))?;
        let object = bind_pod(&stored.object(), &sent, &node, &request.server.clock.now_rfc3339())?;
        if options.dry_run {
            return Ok(response::created());
        }
        let expect = Precondition::Revision(stored.revision);
        let change = Change::Put { key: key.clone(), object: &object, expect, guard: None };
        match request.server.store.commit(change).await {
            Ok(_) => return Ok(response::created()),
            Err(CommitError::Stale { .. }) if attempts > 0 => {}
            Err(error) => return Err(commit_status(&request.row, pod, &error)),
        }
    }
}

/// The pod with the node of the binding.
fn bind_pod(pod: &Object, binding: &Object, node: &str, now: &str) -> Result<Object, Status> {
    if !binding.uid().is_empty() && binding.uid() != pod.uid() {
        let why = uid_mismatch("pods", pod, binding.uid());
        return Err(Status::conflict("", "pods", pod.name(), &why));
    }
    let conflict = |why: String| Err(Status::conflict("", "pods/binding", pod.name(), &why));
    if pod.is_terminating() {
        return conflict(format!(
            "pod {} is being deleted, cannot be assigned to a host",
            pod.name()
        ));
    }
    let response = pod.str(&["spec", "nodeName"]).unwrap_or_default();
    if !response.is_empty() {
        return conflict(format!("pod {} is already assigned to node {response:?}", pod.name()));
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
        .filter(|condition| condition.get("type").and_then(Value::as_str) != Some("PodScheduled"))
        .cloned()
        .collect();
    conditions.push(json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": now,
    }));
    object.set(&["status", "conditions"], conditions.into());
    Ok(object)
}
