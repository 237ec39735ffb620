//! `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`: others are asked about writes.
//!
//! ```text
//! configurations (store) ─► Webhooks, read once for each revision
//! request ─► is it about this? ─► AdmissionReview ─► reach ─► checks of the answer ─► patch, refusal
//! ```
//!
//! Those that change objects are called one after the other, and once more if somebody later changed
//! what they had seen and they want to know. Those that only judge are called at the same time; if
//! several refuse, the first in their order is told (the original tells whichever was fastest).
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/webhook`.

mod call;
mod index;
mod review;

use super::{ADMITTED, Attributes, Plugin, Verdict};
use crate::conversion;
use crate::handlers;
use crate::policy::evaluate::Input;
use crate::policy::matching::Resource;
use crate::policy::request::{self, Labelled};
use crate::registry::KindRow;
use crate::server::ApiServer;
use call::{Failed, Patch};
use index::{Hook, Which};
use mainstay_object::{Object, Status};
use mainstay_patch::managed::Managed;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

pub(crate) use call::value_of as review_value;
pub(crate) use index::Webhooks;

/// Asks webhooks that may change objects.
pub(super) struct Mutating;
/// Asks webhooks that judge.
pub(super) struct Validating;

/// What no webhook is asked about, so that none can lock everybody out.
fn is_exempt(row: &KindRow) -> bool {
    &*row.group == "admissionregistration.k8s.io"
        && matches!(
            &*row.kind,
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}

/// What is remembered between the two rounds of a request.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    /// Whether a webhook changed something, so that there is a second one.
    again: bool,
    second: bool,
    /// Webhooks that want to be called again if something changes, and were called.
    called: HashSet<Arc<str>>,
    /// Those of them after whose call something changed.
    due: HashSet<Arc<str>>,
    /// What the last webhook left.
    left: Option<Object>,
}

impl Rounds {
    /// Whether there is a second round; if so it begins.
    pub(super) fn next(&mut self) -> bool {
        let next = self.again && !self.second;
        self.second |= next;
        next
    }

    fn changed(&mut self) {
        self.due.extend(self.called.drain());
    }
}

impl Plugin for Mutating {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        Webhooks::are_there(&attributes.server.store, Which::Mutating) && !is_exempt(attributes.row)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        let server = attributes.server;
        let hooks = server.webhooks.current(&server.store, Which::Mutating);
        Verdict::Later(Box::pin(mutate(attributes, hooks)))
    }
}

impl Plugin for Validating {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        Webhooks::are_there(&attributes.server.store, Which::Validating)
            && !is_exempt(attributes.row)
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        let server = attributes.server;
        let hooks = server.webhooks.current(&server.store, Which::Validating);
        let others = request::others(attributes, &server.registry.kinds());
        let mut calls = Vec::new();
        for hook in hooks.iter() {
            let at = calls.len();
            match meant(attributes, hook, &others) {
                Ok(Some(row)) => {
                    let hook = hook.clone();
                    calls.push(async move {
                        call::judge(attributes, &hook, at, row.get(attributes)).await
                    });
                }
                Ok(None) => {}
                Err(status) => return Verdict::Now(Err(*status)),
            }
        }
        if calls.is_empty() {
            return ADMITTED;
        }
        Verdict::Later(Box::pin(async move {
            for outcome in futures::future::join_all(calls).await {
                outcome?;
            }
            Ok(())
        }))
    }
}

/// The row in whose version a webhook wants to see the object.
enum Seen {
    /// The request's.
    Own,
    Other(Arc<KindRow>),
}

impl Seen {
    fn get<'a>(&'a self, attributes: &'a Attributes<'_>) -> &'a KindRow {
        match self {
            Self::Own => attributes.row,
            Self::Other(row) => row,
        }
    }
}

/// Whether a webhook is to be asked.
fn meant(
    attributes: &Attributes<'_>,
    hook: &Hook,
    others: &[Arc<KindRow>],
) -> Result<Option<Seen>, Box<Status>> {
    let resources: Vec<Resource<'_>> = others.iter().map(|row| request::resource(row)).collect();
    let asked = request::asked(attributes);
    let known = match hook.constraints.meets(&asked, &resources, &Labelled(attributes)) {
        Ok(None) => return Ok(None),
        Ok(Some(known)) => known,
        Err(why) if why.starts_with("Internal error occurred: ") => {
            return Err(Box::new(Status::internal(
                why.trim_start_matches("Internal error occurred: "),
            )));
        }
        Err(_) => return Err(Box::new(Status::not_found("", "namespaces", attributes.namespace))),
    };
    let seen = match known.and_then(|at| others.get(at)) {
        None => Seen::Own,
        Some(row) => Seen::Other(row.clone()),
    };
    if hook.conditions.is_empty() {
        return Ok(Some(seen));
    }
    let row = seen.get(attributes);
    let object = request::shown(attributes, attributes.object.as_ref(), row);
    let old = request::shown(attributes, attributes.old, row);
    // Conditions see the kind that the webhook names, and the resource of the request.
    let mut described = request::described(attributes, row);
    described["resource"] = request::described(attributes, attributes.row)["resource"].take();
    let asking = request::asking(attributes);
    let input = Input {
        object: &object,
        old: &old,
        request: &described,
        params: &Value::Null,
        namespace: &Value::Null,
        asking: Some(&asking),
    };
    match hook.conditions.hold(input, &[], hook.failure) {
        Ok(true) => Ok(Some(seen)),
        Ok(false) => Ok(None),
        Err(why) => {
            let (row, name) = (attributes.row, attributes.name);
            Err(Box::new(Status::forbidden(&row.group, &row.plural, name, &why)))
        }
    }
}

async fn mutate(attributes: &mut Attributes<'_>, hooks: Arc<Vec<Arc<Hook>>>) -> Result<(), Status> {
    let second = attributes.rounds.second;
    if second && attributes.rounds.left != attributes.object {
        attributes.rounds.changed();
    }
    let others = request::others(attributes, &attributes.server.registry.kinds());
    let managers = managers_of(attributes);
    let round = u8::from(second);
    for (at, hook) in hooks.iter().enumerate() {
        let Some(seen) = meant(attributes, hook, &others).map_err(|status| *status)? else {
            continue;
        };
        if second && !attributes.rounds.due.contains(&hook.id) {
            continue;
        }
        let place = format!("round_{round}_index_{at}");
        let changed = match call::ask(attributes, hook, &place, seen.get(attributes)).await? {
            None => false,
            Some(patch) => {
                let patched = patched(attributes, hook, seen.get(attributes), &patch).await?;
                let changed = attributes.object.as_ref() != Some(&patched);
                attributes.object = Some(patched);
                changed
            }
        };
        let note = json!({
            "configuration": *hook.configuration, "webhook": *hook.name, "mutated": changed,
        });
        let key = format!("mutation.webhook.admission.k8s.io/{place}");
        attributes.warnings.note(key, note.to_string());
        if changed {
            attributes.rounds.changed();
            attributes.rounds.again = true;
        }
        if hook.reinvokes {
            attributes.rounds.called.insert(hook.id.clone());
        }
    }
    keep_managers(attributes, managers);
    if attributes.rounds.again && !second {
        attributes.rounds.left.clone_from(&attributes.object);
    }
    Ok(())
}

const MANAGERS: [&str; 2] = ["metadata", "managedFields"];

fn managers_of(attributes: &Attributes<'_>) -> Option<Value> {
    attributes.object.as_ref()?.get(&MANAGERS).cloned()
}

/// Managers that cannot be read become what they were, and the client is told.
fn keep_managers(attributes: &mut Attributes<'_>, before: Option<Value>) {
    let Some(object) = &mut attributes.object else { return };
    let now = object.get(&MANAGERS);
    if now == before.as_ref() {
        return;
    }
    let Err(error) = Managed::read(now) else { return };
    match before {
        Some(before) => object.set(&MANAGERS, before),
        None => {
            object.remove(&MANAGERS);
        }
    }
    attributes.asked.warnings.add(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {error}"
    ));
}

/// What a patch makes of the object of a request.
async fn patched(
    attributes: &Attributes<'_>,
    hook: &Hook,
    row: &KindRow,
    patch: &Patch,
) -> Result<Object, Status> {
    if attributes.object.is_none() {
        return Err(Status::internal(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            hook.name
        )));
    }
    let mut value = review::shown(attributes, attributes.object.as_ref(), row).await?;
    let kind = [value["apiVersion"].clone(), value["kind"].clone()];
    mainstay_patch::json_patch(&mut value, &patch.0)
        .map_err(|error| Status::internal(error.to_string()))?;
    if [&value["apiVersion"], &value["kind"]] != [&kind[0], &kind[1]] {
        return Err(Status::internal(format!(
            "admission webhook {:?} made an object of another kind",
            hook.name
        )));
    }
    let made = if attributes.is_of_row() {
        let own = attributes.row;
        let made = handlers::patched_by_webhook(row, value);
        if own.custom().is_some_and(|custom| custom.converter.is_some()) {
            let value = made.map_err(Status::internal)?.into_value();
            let value = conversion::between(attributes.server, own, value).await?;
            return Object::from_value(value).map_err(Status::internal);
        }
        made
    } else {
        handlers::patched_below(&attributes.kind(), value)
    };
    made.map_err(Status::internal)
}

/// Reports what went wrong with a call: a failure that is to be ignored is only noted.
fn outcome(hook: &Hook, failed: Failed) -> Result<(), Status> {
    match failed {
        Failed::Refused(status) => Err(*status),
        Failed::Calling(why) => {
            let why = format!("failed calling webhook {:?}: {why}", hook.name);
            if hook.ignores {
                tracing::warn!(%why, "a webhook failed, and is not needed");
                return Ok(());
            }
            Err(Status::internal(why))
        }
    }
}

/// Where webhooks are reached from.
fn server_of<'a>(attributes: &Attributes<'a>) -> &'a Arc<ApiServer> {
    attributes.asked.server
}
