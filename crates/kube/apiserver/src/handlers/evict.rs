//! `pods/eviction`: deletes a pod if its `PodDisruptionBudget` allows.
//!
//! The status of a budget says how many pods may be disrupted. Its controller writes it, and an
//! eviction decrements it. While no controller has processed a new budget, each eviction computes
//! the status from the pods. That computation ignores missing pods, because only their controllers
//! know the desired number.

use super::blocking::{YIELD_INTERVAL, block_in_place};
use super::commit::commit_status;
use super::delete::options::DeleteOptions;
use super::delete::removal;
use super::options::{Verb, WriteOptions};
use super::request::Request;
use super::{decode, meta, response};
use crate::ApiServer;
use mainstay_admission::{self as admission, Operation};
use mainstay_http::path::ResourcePath;
use mainstay_http::response::ApiResponse;
use mainstay_object::selector::LabelSelector;
use mainstay_object::{Gvk, Object, Reason, Status};
use mainstay_store::{Change, CommitError, ListSnapshot, Precondition, Stored};
use serde_json::{Value, json};
use std::sync::Arc;

/// Maximum number of evictions that the disruption controller has not confirmed yet.
const MAX_DISRUPTED_PODS: usize = 2000;
/// The message of a refused eviction.
const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// The cause type that clients check.
const CAUSE: &str = "DisruptionBudget";

/// Handles a POST.
pub(super) async fn answer(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let options = WriteOptions::read(request, Verb::Create)?;
    let gvk = Gvk::new("policy", "v1", "Eviction");
    let decoded = decode::built_in_object(request, &gvk, options.validation)?;
    let mut sent = decoded.object;
    meta::match_namespace(request, &mut sent)?;
    let review = request.admission_request(
        Operation::Create,
        "eviction",
        &request.path.name,
        options.dry_run,
    );
    admission::mutate(review, &mut sent, None).await?;
    if sent.name() != request.path.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    admission::validate(review, &mut sent, None).await?;
    let dry_run = options.dry_run;
    let options = sent.get(&["deleteOptions"]).cloned().unwrap_or_default();
    let mut options = DeleteOptions::from_value(&options)?.with_dry_run(dry_run);
    let pod = request.server.store.get(&request.key()).ok_or_else(|| request.not_found())?;
    consume_budget(request, &pod.object(), options.is_dry()).await?;
    if !options.is_dry() {
        set_disruption_condition(request, &mut options).await?;
    }
    removal::remove(request.server, &request.row, &request.key(), &options, None).await?;
    Ok(response::created())
}

/// Sets the condition `DisruptionTarget` of the pod. A precondition on the revision must match
/// first, and then follows the new revision.
async fn set_disruption_condition(
    request: &Request<'_>,
    options: &mut DeleteOptions,
) -> Result<(), Status> {
    const KIND: &str = "DisruptionTarget";
    let server = request.server;
    let key = request.key();
    let now = server.clock.now_rfc3339();
    // Each conflict means that another write succeeded, so the loop ends.
    loop {
        let stored = server.store.get(&key).ok_or_else(|| request.not_found())?;
        let mut pod = stored.object();
        removal::check_preconditions(&request.row, &pod, options)?;
        let mut conditions = pod.array(&["status", "conditions"]).to_vec();
        let old = conditions.iter().position(|condition| condition["type"] == KIND);
        let old = old.map(|at| conditions.remove(at));
        let since = old.filter(|old| old["status"] == "True");
        let since = since.and_then(|old| old.get("lastTransitionTime").cloned());
        conditions.push(json!({
            "type": KIND, "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null,
            "lastTransitionTime": since.unwrap_or_else(|| now.clone().into()),
        }));
        pod.set(&["status", "conditions"], conditions.into());
        let expect = Precondition::Revision(stored.revision);
        let change = Change::Put { key: key.clone(), object: &pod, expect, guard: None };
        match server.store.commit(change).await {
            Ok(committed) => {
                options.set_expected_revision(committed.revision);
                return Ok(());
            }
            Err(CommitError::Stale { .. }) => {}
            Err(error) => {
                return Err(commit_status(&request.row, pod.name(), &error));
            }
        }
    }
}

/// Decrements the pod's budget, or refuses.
async fn consume_budget(request: &Request<'_>, pod: &Object, dry_run: bool) -> Result<(), Status> {
    let ended = matches!(pod.str(&["status", "phase"]), Some("Succeeded" | "Failed" | "Pending"));
    if ended || pod.is_terminating() {
        return Ok(());
    }
    let server = request.server;
    let Some(row) = server.registry.find("policy", "v1", "poddisruptionbudgets") else {
        return Ok(());
    };
    // Each conflict means that another write succeeded, so the loop ends.
    loop {
        let budgets = server.store.list(&row.storage, Some(pod.namespace()));
        let Some((stored, mut budget, selector)) = budget_of(&budgets, pod).await? else {
            return Ok(());
        };
        let observed = budget.i64(&["status", "observedGeneration"]).unwrap_or_default();
        if observed > 0 && observed < budget.generation() {
            let message = format!(
                "The disruption budget {} is still being processed by the server.",
                budget.name()
            );
            let status = Status::new(Reason::TooManyRequests, VIOLATES).retry_after(10);
            return Err(status.with_cause(CAUSE, message, ""));
        }
        if observed == 0 {
            let pods = server.store.list(&request.row.storage, Some(pod.namespace()));
            let mut compute_status =
                || compute_status(&mut budget, pods.iter().filter(|pod| pod.matches(&selector)));
            if pods.iter().nth(YIELD_INTERVAL).is_some() {
                block_in_place(compute_status);
            } else {
                compute_status();
            }
        }
        if !is_ready(pod) && allows_unready(&budget) {
            return Ok(());
        }
        check_disruptions_allowed(&budget)?;
        if dry_run || observed == 0 {
            return Ok(());
        }
        record_disruption(&mut budget, pod.name(), &server.clock.now_rfc3339());
        let expect = Precondition::Revision(stored.revision);
        let key = stored.key.clone();
        let change = Change::Put { key, object: &budget, expect, guard: None };
        match server.store.commit(change).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Stale { .. } | CommitError::Missing(_)) => {}
            Err(error) => return Err(commit_status(&row, budget.name(), &error)),
        }
    }
}

/// Budgets of this total size take long to read, because their selectors are parsed.
const LARGE: usize = 16 * 1024;

/// Whether an eviction takes long: it reads every budget of the namespace.
pub(crate) fn is_large(server: &ApiServer, path: &ResourcePath) -> bool {
    if path.subresource != "eviction" {
        return false;
    }
    let Some(row) = server.registry.find("policy", "v1", "poddisruptionbudgets") else {
        return false;
    };
    let mut size = 0;
    server.store.list(&row.storage, Some(&path.namespace)).iter().any(|budget| {
        size += budget.size();
        size >= LARGE
    })
}

/// The only budget that selects a pod, if there is one.
async fn budget_of<'a>(
    budgets: &'a ListSnapshot,
    pod: &Object,
) -> Result<Option<(&'a Arc<Stored>, Object, LabelSelector)>, Status> {
    let mut found = None;
    let mut bytes = 0;
    for stored in budgets.iter() {
        bytes += stored.size();
        if bytes >= LARGE {
            // Other tasks run in between, including those that wait for the compute pool.
            tokio::task::yield_now().await;
            bytes = 0;
        }
        let budget = stored.object();
        let Some(selector) = selector(&budget).filter(|selector| selector.matches(pod)) else {
            continue;
        };
        if found.is_some() {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::new(Reason::Unknown, message));
        }
        found = Some((stored, budget, selector));
    }
    Ok(found)
}

/// The selector of a budget; none if it selects nothing.
fn selector(budget: &Object) -> Option<LabelSelector> {
    let value = budget.get(&["spec", "selector"]).filter(|value| value.is_object())?;
    LabelSelector::from_value(value).ok()
}

fn number(budget: &Object, field: &str) -> i64 {
    budget.i64(&["status", field]).unwrap_or_default()
}

/// Computes the status that the disruption controller would write.
fn compute_status<'a>(budget: &mut Object, pods: impl Iterator<Item = &'a Arc<Stored>>) {
    let (mut expected, mut healthy) = (0, 0);
    for pod in pods {
        let pod = pod.object();
        if matches!(pod.str(&["status", "phase"]), Some("Succeeded" | "Failed")) {
            continue;
        }
        expected += 1;
        healthy += i64::from(!pod.is_terminating() && is_ready(&pod));
    }
    let min_available = budget.get(&["spec", "minAvailable"]).map(|value| scaled(value, expected));
    let max_unavailable =
        budget.get(&["spec", "maxUnavailable"]).map(|value| scaled(value, expected));
    let desired = match (max_unavailable, min_available) {
        (Some(max_unavailable), _) => (expected - max_unavailable).max(0),
        (None, Some(min_available)) => min_available,
        (None, None) => 0,
    };
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    budget.set(&["status", "currentHealthy"], healthy.into());
    budget.set(&["status", "desiredHealthy"], desired.into());
    budget.set(&["status", "disruptionsAllowed"], allowed.into());
}

/// A number, or a percentage of another one, rounded up.
fn scaled(value: &Value, total: i64) -> i64 {
    let share = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    match share {
        Some(percent) => percent.saturating_mul(total).saturating_add(99) / 100,
        None => value.as_i64().unwrap_or_default(),
    }
}

fn is_ready(pod: &Object) -> bool {
    let conditions = pod.array(&["status", "conditions"]);
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Whether an unready pod may be evicted although no disruption is allowed.
fn allows_unready(budget: &Object) -> bool {
    let desired = number(budget, "desiredHealthy");
    budget.str(&["spec", "unhealthyPodEvictionPolicy"]) == Some("AlwaysAllow")
        || (desired > 0 && number(budget, "currentHealthy") >= desired)
}

/// Whether the status of the budget allows an eviction.
fn check_disruptions_allowed(budget: &Object) -> Result<(), Status> {
    let name = budget.name();
    let forbidden = |why| Status::forbidden("policy", "poddisruptionbudget", name, why);
    let allowed = number(budget, "disruptionsAllowed");
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    let disrupted = budget.get(&["status", "disruptedPods"]).and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > MAX_DISRUPTED_PODS) {
        return Err(forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if allowed > 0 {
        return Ok(());
    }
    let conditions = budget.array(&["status", "conditions"]);
    let refusing =
        conditions.iter().find(|condition| condition["type"] == "DisruptionAllowed").filter(
            |condition| condition["status"] == "False" && condition["message"].as_str() > Some(""),
        );
    let text =
        |field: &str| refusing.and_then(|condition| condition[field].as_str()).unwrap_or_default();
    let (desired, healthy) = (number(budget, "desiredHealthy"), number(budget, "currentHealthy"));
    let refusal = format!("The disruption budget {name} does not allow evicting pods currently");
    let message = if text("reason") == "SyncFailed" {
        format!("{refusal} because it failed sync: {}", text("message"))
    } else if healthy <= desired {
        format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    } else if refusing.is_some() {
        format!("{refusal} ({}): {}", text("reason"), text("message"))
    } else {
        refusal
    };
    Err(Status::new(Reason::TooManyRequests, VIOLATES).with_cause(CAUSE, message, ""))
}

/// Decrements the allowed disruptions, and records the evicted pod.
fn record_disruption(budget: &mut Object, pod: &str, now: &str) {
    let remaining = number(budget, "disruptionsAllowed") - 1;
    budget.set(&["status", "disruptionsAllowed"], remaining.into());
    budget.set(&["status", "disruptedPods", pod], now.into());
    if remaining > 0 {
        return;
    }
    let mut conditions = budget.array(&["status", "conditions"]).to_vec();
    let condition =
        conditions.iter_mut().find(|condition| condition["type"] == "DisruptionAllowed");
    if let Some(condition) = condition {
        if condition["status"] != "False" {
            condition["lastTransitionTime"] = now.into();
        }
        condition["status"] = "False".into();
        condition["reason"] = "InsufficientPods".into();
        condition["message"] = "".into();
    } else {
        conditions.push(json!({
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods",
            "message": "", "lastTransitionTime": now,
            "observedGeneration": number(budget, "observedGeneration"),
        }));
    }
    budget.set(&["status", "conditions"], conditions.into());
}
