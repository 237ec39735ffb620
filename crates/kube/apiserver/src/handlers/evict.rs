//! `pods/eviction`: deletes a pod if its disruption budget allows.
//!
//! A budget's status says how many pods may go; its controller writes it, and an eviction takes one
//! off. Until that controller has looked at a new budget, or where none runs, it is counted from its
//! pods each time. Pods that are missing altogether are not counted then: how many there should be,
//! only their controllers know.

use super::aside::{TURN, aside};
use super::commit::commit_status;
use super::delete::options::Options;
use super::delete::removal;
use super::options::{Verb, WriteOptions};
use super::request::Request;
use super::{decode, meta, present};
use crate::ApiServer;
use mainstay_admission::{self as admission, Operation};
use mainstay_http::path::ResourcePath;
use mainstay_http::response::ApiResponse;
use mainstay_object::selector::LabelSelector;
use mainstay_object::{Gvk, Object, Reason, Status};
use mainstay_store::{Change, CommitError, Expect, List, Stored};
use serde_json::{Value, json};
use std::sync::Arc;

/// Evictions that wait for a controller of budgets to see them, at most.
const MOST_DISRUPTED: usize = 2000;
/// Why a client may not evict.
const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// The cause that clients look for.
const CAUSE: &str = "DisruptionBudget";

/// A POST.
pub(super) async fn answer(request: &Request<'_>) -> Result<ApiResponse, Status> {
    let options = WriteOptions::read(request, Verb::Create)?;
    let gvk = Gvk::new("policy", "v1", "Eviction");
    let decoded = decode::object_of(request, &gvk, options.validation)?;
    let mut sent = decoded.object;
    meta::match_namespace(request, &mut sent)?;
    let asked = request.admission_request(
        Operation::Create,
        "eviction",
        &request.path.name,
        options.dry_run,
    );
    admission::mutate(asked, &mut sent, None).await?;
    if sent.name() != request.path.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    admission::validate(asked, &mut sent, None).await?;
    let dry_run = options.dry_run;
    let options = sent.get(&["deleteOptions"]).cloned().unwrap_or_default();
    let mut options = Options::from_value(&options)?.dry(dry_run);
    let pod = request.server.store.get(&request.key()).ok_or_else(|| request.not_found())?;
    ask_budget(request, &pod.object(), options.is_dry()).await?;
    if !options.is_dry() {
        mark(request, &mut options).await?;
    }
    removal::remove(request.server, &request.row, &request.key(), &options, None).await?;
    Ok(present::created())
}

/// Says on the pod that it goes because it was evicted. Of a client that wants to delete one revision
/// only it must be that one, and is the next one from now on.
async fn mark(request: &Request<'_>, options: &mut Options) -> Result<(), Status> {
    const KIND: &str = "DisruptionTarget";
    let server = request.server;
    let key = request.key();
    let now = server.clock.now_rfc3339();
    // Whoever is faster has got on, so this ends.
    loop {
        let stored = server.store.get(&key).ok_or_else(|| request.not_found())?;
        let mut pod = stored.object();
        removal::check_preconditions(&request.row, &pod, options)?;
        let mut conditions = pod.array(&["status", "conditions"]).to_vec();
        let old = conditions.iter().position(|one| one["type"] == KIND);
        let old = old.map(|at| conditions.remove(at));
        let since = old.filter(|old| old["status"] == "True");
        let since = since.and_then(|old| old.get("lastTransitionTime").cloned());
        conditions.push(json!({
            "type": KIND, "status": "True", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting", "lastProbeTime": null,
            "lastTransitionTime": since.unwrap_or_else(|| now.clone().into()),
        }));
        pod.set(&["status", "conditions"], conditions.into());
        let expect = Expect::Revision(stored.revision);
        let change = Change::Put { key: key.clone(), object: &pod, expect, guard: None };
        match server.store.commit(change).await {
            Ok(committed) => {
                options.follow(committed.revision);
                return Ok(());
            }
            Err(CommitError::Stale { .. }) => {}
            Err(error) => {
                return Err(commit_status(&request.row, pod.name(), &error));
            }
        }
    }
}

/// Takes one off the pod's budget, or says why not.
async fn ask_budget(request: &Request<'_>, pod: &Object, dry_run: bool) -> Result<(), Status> {
    let ended = matches!(pod.str(&["status", "phase"]), Some("Succeeded" | "Failed" | "Pending"));
    if ended || pod.is_terminating() {
        return Ok(());
    }
    let server = request.server;
    let Some(row) = server.registry.find("policy", "v1", "poddisruptionbudgets") else {
        return Ok(());
    };
    // Whoever is faster has got on, so this ends.
    loop {
        let budgets = server.store.list(&row.storage, Some(pod.namespace()));
        let Some((stored, mut budget, selector)) = guard(&budgets, pod).await? else {
            return Ok(());
        };
        let kept = budget.i64(&["status", "observedGeneration"]).unwrap_or_default();
        if kept > 0 && kept < budget.generation() {
            let words = format!(
                "The disruption budget {} is still being processed by the server.",
                budget.name()
            );
            let status = Status::new(Reason::TooManyRequests, VIOLATES).retry_after(10);
            return Err(status.with_cause(CAUSE, words, ""));
        }
        if kept == 0 {
            let pods = server.store.list(&request.row.storage, Some(pod.namespace()));
            let mut count = || count(&mut budget, pods.iter().filter(|pod| pod.matches(&selector)));
            if pods.iter().nth(TURN).is_some() { aside(count) } else { count() }
        }
        if !is_ready(pod) && spares_unready(&budget) {
            return Ok(());
        }
        allows(&budget)?;
        if dry_run || kept == 0 {
            return Ok(());
        }
        note(&mut budget, pod.name(), &server.clock.now_rfc3339());
        let expect = Expect::Revision(stored.revision);
        let key = stored.key.clone();
        let change = Change::Put { key, object: &budget, expect, guard: None };
        match server.store.commit(change).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Stale { .. } | CommitError::Missing(_)) => {}
            Err(error) => return Err(commit_status(&row, budget.name(), &error)),
        }
    }
}

/// Budgets of this size together are many to read: their selectors are taken apart.
const LARGE: usize = 16 * 1024;

/// Whether there is much to read for an eviction: every budget of the namespace is, each time.
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

/// The one budget that is about a pod, if there is one.
async fn guard<'a>(
    budgets: &'a List,
    pod: &Object,
) -> Result<Option<(&'a Arc<Stored>, Object, LabelSelector)>, Status> {
    let mut found = None;
    let mut read = 0;
    for stored in budgets.iter() {
        read += stored.size();
        if read >= LARGE {
            // Others get their turn, and whoever waits for the compute pool.
            tokio::task::yield_now().await;
            read = 0;
        }
        let budget = stored.object();
        let Some(selector) = selector(&budget).filter(|selector| selector.matches(pod)) else {
            continue;
        };
        if found.is_some() {
            let words = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Status::new(Reason::Unknown, words));
        }
        found = Some((stored, budget, selector));
    }
    Ok(found)
}

/// Which pods a budget is about; none if it is about none.
fn selector(budget: &Object) -> Option<LabelSelector> {
    let value = budget.get(&["spec", "selector"]).filter(|value| value.is_object())?;
    LabelSelector::from_value(value).ok()
}

fn number(budget: &Object, field: &str) -> i64 {
    budget.i64(&["status", field]).unwrap_or_default()
}

/// Counts what a controller of budgets would.
fn count<'a>(budget: &mut Object, pods: impl Iterator<Item = &'a Arc<Stored>>) {
    let (mut expected, mut healthy) = (0, 0);
    for pod in pods {
        let pod = pod.object();
        if matches!(pod.str(&["status", "phase"]), Some("Succeeded" | "Failed")) {
            continue;
        }
        expected += 1;
        healthy += i64::from(!pod.is_terminating() && is_ready(&pod));
    }
    let least = budget.get(&["spec", "minAvailable"]).map(|value| scaled(value, expected));
    let most = budget.get(&["spec", "maxUnavailable"]).map(|value| scaled(value, expected));
    let desired = match (most, least) {
        (Some(most), _) => (expected - most).max(0),
        (None, Some(least)) => least,
        (None, None) => 0,
    };
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    budget.set(&["status", "currentHealthy"], healthy.into());
    budget.set(&["status", "desiredHealthy"], desired.into());
    budget.set(&["status", "disruptionsAllowed"], allowed.into());
}

/// A number, or a share of another one, rounded up.
fn scaled(value: &Value, of: i64) -> i64 {
    let share = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok());
    match share {
        Some(percent) => percent.saturating_mul(of).saturating_add(99) / 100,
        None => value.as_i64().unwrap_or_default(),
    }
}

fn is_ready(pod: &Object) -> bool {
    let conditions = pod.array(&["status", "conditions"]);
    conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// Whether a pod that is not ready may go although no disruption is allowed.
fn spares_unready(budget: &Object) -> bool {
    let desired = number(budget, "desiredHealthy");
    budget.str(&["spec", "unhealthyPodEvictionPolicy"]) == Some("AlwaysAllow")
        || (desired > 0 && number(budget, "currentHealthy") >= desired)
}

/// Whether a pod may go by the status of its budget.
fn allows(budget: &Object) -> Result<(), Status> {
    let name = budget.name();
    let forbidden = |why| Status::forbidden("policy", "poddisruptionbudget", name, why);
    let allowed = number(budget, "disruptionsAllowed");
    if allowed < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    let disrupted = budget.get(&["status", "disruptedPods"]).and_then(Value::as_object);
    if disrupted.is_some_and(|pods| pods.len() > MOST_DISRUPTED) {
        return Err(forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if allowed > 0 {
        return Ok(());
    }
    let conditions = budget.array(&["status", "conditions"]);
    let refusing = conditions
        .iter()
        .find(|one| one["type"] == "DisruptionAllowed")
        .filter(|one| one["status"] == "False" && one["message"].as_str() > Some(""));
    let text = |field: &str| refusing.and_then(|one| one[field].as_str()).unwrap_or_default();
    let (desired, healthy) = (number(budget, "desiredHealthy"), number(budget, "currentHealthy"));
    let does_not = format!("The disruption budget {name} does not allow evicting pods currently");
    let words = if text("reason") == "SyncFailed" {
        format!("{does_not} because it failed sync: {}", text("message"))
    } else if healthy <= desired {
        format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    } else if refusing.is_some() {
        format!("{does_not} ({}): {}", text("reason"), text("message"))
    } else {
        does_not
    };
    Err(Status::new(Reason::TooManyRequests, VIOLATES).with_cause(CAUSE, words, ""))
}

/// Takes one off, and says which pod goes.
fn note(budget: &mut Object, pod: &str, now: &str) {
    let left = number(budget, "disruptionsAllowed") - 1;
    budget.set(&["status", "disruptionsAllowed"], left.into());
    budget.set(&["status", "disruptedPods", pod], now.into());
    if left > 0 {
        return;
    }
    let mut conditions = budget.array(&["status", "conditions"]).to_vec();
    let condition = conditions.iter_mut().find(|one| one["type"] == "DisruptionAllowed");
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
