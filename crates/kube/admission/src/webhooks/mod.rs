//! `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`: others are asked about writes.
//!
//! ```text
//! configurations (store) ─► Webhooks, read once for each revision
//! request ─► is it about this? ─► AdmissionReview ─► outbound ─► checks of the answer ─► patch, refusal
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
use crate::policies::request::{self, Labelled, VersionedObjects};
use call::{Failed, Patch};
use index::{Hook, Which};
use mainstay_conversion::{decode, webhook as conversion};
use mainstay_kinds::KindRow;
use mainstay_object::{Gvk, Object, Status};
use mainstay_patch::managed::ManagedFields;
use mainstay_policy::evaluate::Input;
use mainstay_policy::matching::{MatchError, Resource};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

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
        let next = self.again && !self.second && !mainstay_fault::is_on("webhooks-are-asked-once");
        self.second |= next;
        next
    }

    fn changed(&mut self) {
        self.due.extend(self.called.drain());
    }
}

impl Plugin for Mutating {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        Webhooks::are_there(&attributes.admission.store, Which::Mutating)
            && !is_exempt(attributes.row)
    }

    fn admit<'a>(&'a self, attributes: &'a mut Attributes<'_>) -> Verdict<'a> {
        let admission = attributes.admission;
        let hooks = admission.webhooks.current(&admission.store, Which::Mutating);
        Verdict::Later(Box::pin(mutate(attributes, hooks)))
    }
}

impl Plugin for Validating {
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        Webhooks::are_there(&attributes.admission.store, Which::Validating)
            && !is_exempt(attributes.row)
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        let admission = attributes.admission;
        let hooks = admission.webhooks.current(&admission.store, Which::Validating);
        let others = request::others(attributes, &admission.registry.kinds());
        let mut named = Vec::new();
        for hook in hooks.iter() {
            match named_by(attributes, hook, &others) {
                Ok(None) => {}
                // It is told when those before it had their conditions looked at.
                outcome => named.push((hook.clone(), outcome)),
            }
        }
        if named.is_empty() {
            return ADMITTED;
        }
        Verdict::Later(Box::pin(judge(attributes, named)))
    }
}

/// Whether a webhook is named, and the row in whose version it wants to see the object.
type Named = Result<Option<Seen>, Box<Status>>;

/// Asks everybody at once who is meant.
async fn judge(attributes: &Attributes<'_>, named: Vec<(Arc<Hook>, Named)>) -> Result<(), Status> {
    let mut versions: Versions = Vec::new();
    let mut meant = Vec::new();
    for (hook, outcome) in named {
        let Some(seen) = outcome.map_err(|status| *status)? else { continue };
        let shown = versions_of(&mut versions, attributes, seen.get(attributes)).await?;
        if holds(attributes, &hook, seen.get(attributes), &shown)? {
            meant.push((hook, seen, shown));
        }
    }
    let clock = attributes.admission.clock;
    let calls = meant.iter().map(|(hook, seen, shown)| async move {
        let begun = clock.elapsed();
        let outcome = call::judge(attributes, hook, seen.get(attributes), shown).await;
        (outcome, clock.elapsed().saturating_sub(begun).as_secs_f64())
    });
    let outcomes = futures::future::join_all(calls).await;
    let mut refused = None;
    for (at, ((hook, ..), (outcome, seconds))) in meant.iter().zip(outcomes).enumerate() {
        match call::settled(attributes, hook, Which::Validating, outcome, seconds) {
            Ok(Some(())) => {}
            Ok(None) => {
                let key =
                    format!("{FORGIVEN}validating.webhook.admission.k8s.io/round_0_index_{at}");
                attributes.warnings.annotate(key, hook.name.to_string());
            }
            Err(status) => drop(refused.get_or_insert(status)),
        }
    }
    refused.map_or(Ok(()), Err)
}

/// What begins the note of a webhook whose failure was forgiven.
const FORGIVEN: &str = "failed-open.";

/// The objects of a request in the versions in which somebody wanted to see them.
type Versions = Vec<(Arc<str>, Arc<VersionedObjects>)>;

async fn versions_of(
    versions: &mut Versions,
    attributes: &Attributes<'_>,
    row: &KindRow,
) -> Result<Arc<VersionedObjects>, Status> {
    if let Some((_, shown)) = versions.iter().find(|(version, _)| *version == row.api_version) {
        return Ok(shown.clone());
    }
    let shown = request::versioned_objects(attributes, row).await;
    let shown = Arc::new(shown.map_err(|status| Status::internal(status.message))?);
    versions.push((row.api_version.clone(), shown.clone()));
    Ok(shown)
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

/// Whether a webhook's rules and selectors mean the request, and in which version it wants to see it.
fn named_by(attributes: &Attributes<'_>, hook: &Hook, others: &[Arc<KindRow>]) -> Named {
    let resources: Vec<Resource<'_>> = others.iter().map(|row| request::resource(row)).collect();
    let asked = request::request_attributes(attributes);
    let known = match hook.constraints.meets(&asked, &resources, &Labelled(attributes)) {
        Ok(None) => return Ok(None),
        Ok(Some(known)) => known,
        Err(MatchError::Selector(error)) => return Err(Box::new(Status::internal(error))),
        Err(MatchError::UnknownNamespace { name }) => {
            return Err(Box::new(Status::not_found("", "namespaces", &name)));
        }
    };
    Ok(Some(match known.and_then(|at| others.get(at)) {
        None => Seen::Own,
        Some(row) => Seen::Other(row.clone()),
    }))
}

/// Whether a webhook's conditions hold.
fn holds(
    attributes: &Attributes<'_>,
    hook: &Hook,
    row: &KindRow,
    shown: &VersionedObjects,
) -> Result<bool, Status> {
    if hook.conditions.is_empty() || mainstay_fault::is_on("conditions-of-webhooks-always-hold") {
        return Ok(true);
    }
    // Conditions see the kind that the webhook names, and the resource of the request.
    let mut described = request::described(attributes, row);
    described["resource"] = request::described(attributes, attributes.row)["resource"].take();
    let asking = request::asking(attributes);
    let input = Input {
        object: &shown.object,
        old: &shown.old,
        request: &described,
        params: &Value::Null,
        namespace: &Value::Null,
        asking: Some(&asking),
    };
    hook.conditions.hold(input, &[], hook.failure).map_err(|error| {
        let (row, name) = (attributes.row, attributes.name);
        Status::forbidden(&row.group, &row.plural, name, &error.to_string())
    })
}

async fn mutate(attributes: &mut Attributes<'_>, hooks: Arc<Vec<Arc<Hook>>>) -> Result<(), Status> {
    let second = attributes.rounds.second;
    if second && attributes.rounds.left != attributes.object {
        attributes.rounds.changed();
    }
    let others = request::others(attributes, &attributes.admission.registry.kinds());
    let managers = managers_of(attributes);
    let mut versions: Versions = Vec::new();
    for (at, hook) in hooks.iter().enumerate() {
        let named = named_by(attributes, hook, &others).map_err(|status| *status)?;
        let Some(seen) = named else { continue };
        let row = seen.get(attributes);
        // Conditions are looked at in the second round too.
        let due = !second || attributes.rounds.due.contains(&hook.id);
        if !due && hook.conditions.is_empty() {
            continue;
        }
        let shown = versions_of(&mut versions, attributes, row).await;
        // The original says it twice.
        let shown = shown.map_err(|status| Status::internal(status.message))?;
        if !holds(attributes, hook, row, &shown)? || !due {
            continue;
        }
        let place =
            format!("mutation.webhook.admission.k8s.io/round_{}_index_{at}", u8::from(second));
        let came = asked(attributes, hook, row, &shown).await;
        let note = format!(
            r#"{{"configuration":{},"webhook":{},"mutated":{}}}"#,
            json!(hook.configuration),
            json!(hook.name),
            matches!(came, Ok(Came::Changed(_)))
        );
        attributes.warnings.annotate(place.clone(), note);
        match came? {
            Came::Same => {}
            Came::Forgiven => {
                attributes.warnings.annotate(format!("{FORGIVEN}{place}"), hook.name.to_string());
            }
            Came::Changed(object) => {
                attributes.object = Some(*object);
                versions.clear();
                attributes.rounds.changed();
                attributes.rounds.again = true;
            }
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

/// What a call of a webhook that may change the object came to.
enum Came {
    /// It failed, and that does not matter.
    Forgiven,
    /// The object is as it was.
    Same,
    /// The object is another one.
    Changed(Box<Object>),
}

async fn asked(
    attributes: &Attributes<'_>,
    hook: &Hook,
    row: &KindRow,
    shown: &VersionedObjects,
) -> Result<Came, Status> {
    let clock = attributes.admission.clock;
    let begun = clock.elapsed();
    let outcome = async {
        let Some(patch) = call::ask(attributes, hook, row, shown).await? else { return Ok(None) };
        let patched = patched(attributes, hook, row, shown, &patch).await;
        let patched = patched.map_err(|status| Failed::Refused(Box::new(status)))?;
        Ok((attributes.object.as_ref() != Some(&patched)).then(|| Box::new(patched)))
    };
    let outcome = outcome.await;
    let seconds = clock.elapsed().saturating_sub(begun).as_secs_f64();
    let settled = call::settled(attributes, hook, Which::Mutating, outcome, seconds)?;
    Ok(match settled {
        None => Came::Forgiven,
        Some(None) => Came::Same,
        Some(Some(object)) => Came::Changed(object),
    })
}

/// Why a patch may not make an object of another kind: what is said when that cannot be read, or
/// does not become one of the request's kind.
fn another_kind(attributes: &Attributes<'_>, value: Value) -> String {
    let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let (group, own) = version.rsplit_once('/').unwrap_or(("", &version));
    let gvk = Gvk::new(group, own, &kind);
    if mainstay_schema::builtin::definition_of(&gvk).is_none() {
        return format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        );
    }
    if let Err(error) = decode::patched_below(&gvk, value) {
        return error.to_string();
    }
    let wanted = attributes.kind();
    let package = match wanted.group.split('.').next() {
        None | Some("") => "core",
        Some(name) => name,
    };
    format!("converting ({own}.{kind}) to ({package}.{}): unknown conversion", wanted.kind)
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
    let Err(error) = ManagedFields::read(now) else { return };
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
    shown: &VersionedObjects,
    patch: &Patch,
) -> Result<Object, Status> {
    if attributes.object.is_none() {
        return Err(Status::internal(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            hook.name
        )));
    }
    let mut value = shown.object.clone();
    let kind = [value["apiVersion"].clone(), value["kind"].clone()];
    mainstay_patch::json_patch(&mut value, &patch.0)
        .map_err(|error| Status::internal(error.to_string()))?;
    for (field, kind) in ["apiVersion", "kind"].into_iter().zip(kind) {
        // One that is gone is what it was.
        if value.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            value[field] = kind;
        } else if value[field] != kind {
            return Err(Status::internal(another_kind(attributes, value)));
        }
    }
    let made = if attributes.is_of_row() {
        let own = attributes.row;
        let made = decode::patched_by_webhook(row, value);
        if own.custom().is_some_and(|custom| custom.is_converted) {
            let value = made.map_err(Status::internal)?.into_value();
            let value = conversion::between(&attributes.admission.outbound, own, value).await?;
            return Object::from_value(value).map_err(Status::internal);
        }
        made
    } else {
        decode::patched_below(&attributes.kind(), value)
    };
    made.map_err(Status::internal)
}
