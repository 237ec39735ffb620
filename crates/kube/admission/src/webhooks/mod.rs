//! `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`: calls of webhooks for writes.
//!
//! ```text
//! configurations (store) ─► Webhooks, read once for each revision
//! request ─► rules, conditions ─► AdmissionReview ─► outbound ─► check of the response ─► patch, rejection
//! ```
//!
//! Mutating webhooks are called one after the other. A webhook with `reinvocationPolicy: IfNeeded` is
//! called once more if the object changes after its call. Validating webhooks are called concurrently.
//! If several reject, the response names the first in their order (Kubernetes names the fastest).
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/webhook`.

mod call;
mod index;
mod review;

use super::{ADMITTED, AdmissionAttributes, AdmissionDecision, Plugin};
use crate::policies::request::{self, RequestLabels, VersionedObjects};
use call::{CallError, Patch};
use index::{Webhook, WebhookType};
use mainstay_conversion::{decode, webhook as conversion};
use mainstay_kinds::KindRow;
use mainstay_object::{Gvk, Object, Status};
use mainstay_patch::managed::ManagedFields;
use mainstay_policy::evaluate::EvaluationInput;
use mainstay_policy::matching::{GroupVersionResource, MatchError};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;

pub(crate) use index::Webhooks;

/// The plugin that calls mutating webhooks.
pub(super) struct MutatingAdmissionWebhook;
/// The plugin that calls validating webhooks.
pub(super) struct ValidatingAdmissionWebhook;

/// Whether webhooks are never called for a kind, so that no webhook can lock out all users.
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

/// State of the mutating webhooks between the two rounds of a request.
#[derive(Debug, Default)]
pub(super) struct ReinvocationContext {
    /// Whether a webhook changed the object, so that a second round follows.
    object_changed: bool,
    is_second_round: bool,
    /// The called webhooks with `reinvocationPolicy: IfNeeded`.
    called_webhooks: HashSet<Arc<str>>,
    /// The webhooks to call again: the object changed after their call.
    due_webhooks: HashSet<Arc<str>>,
    /// The object after the last webhook.
    last_object: Option<Object>,
}

impl ReinvocationContext {
    /// Starts the second round if one is needed; returns whether it starts.
    pub(super) fn start_second_round(&mut self) -> bool {
        let is_needed = self.object_changed
            && !self.is_second_round
            && !mainstay_fault::is_on("webhooks-are-asked-once");
        self.is_second_round |= is_needed;
        is_needed
    }

    /// Marks all called webhooks for a second call.
    fn require_reinvocation(&mut self) {
        self.due_webhooks.extend(self.called_webhooks.drain());
    }
}

impl Plugin for MutatingAdmissionWebhook {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        Webhooks::may_exist(&attributes.admission.store, WebhookType::Mutating)
            && !is_exempt(attributes.row)
    }

    fn admit<'a>(&'a self, attributes: &'a mut AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let admission = attributes.admission;
        let webhooks = admission.webhooks.current(&admission.store, WebhookType::Mutating);
        AdmissionDecision::Pending(Box::pin(call_mutating_webhooks(attributes, webhooks)))
    }
}

impl Plugin for ValidatingAdmissionWebhook {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        Webhooks::may_exist(&attributes.admission.store, WebhookType::Validating)
            && !is_exempt(attributes.row)
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let admission = attributes.admission;
        let webhooks = admission.webhooks.current(&admission.store, WebhookType::Validating);
        let equivalents = request::equivalent_rows(attributes, &admission.registry.kinds());
        let mut candidates = Vec::new();
        for webhook in webhooks.iter() {
            match match_webhook(attributes, webhook, &equivalents) {
                Ok(None) => {}
                // An error is reported after the conditions of earlier webhooks are evaluated.
                outcome => candidates.push((webhook.clone(), outcome)),
            }
        }
        if candidates.is_empty() {
            return ADMITTED;
        }
        AdmissionDecision::Pending(Box::pin(call_validating_webhooks(attributes, candidates)))
    }
}

/// The version in which a matching webhook receives the object; none without a match.
type MatchResult = Result<Option<ObjectVersion>, Box<Status>>;

/// Calls all matching webhooks concurrently.
async fn call_validating_webhooks(
    attributes: &AdmissionAttributes<'_>,
    candidates: Vec<(Arc<Webhook>, MatchResult)>,
) -> Result<(), Status> {
    let mut version_cache: VersionCache = Vec::new();
    let mut matched = Vec::new();
    for (webhook, outcome) in candidates {
        let Some(object_version) = outcome.map_err(|status| *status)? else { continue };
        let objects =
            objects_in_version(&mut version_cache, attributes, object_version.row(attributes))
                .await?;
        if conditions_match(attributes, &webhook, object_version.row(attributes), &objects)? {
            matched.push((webhook, object_version, objects));
        }
    }
    let clock = attributes.admission.clock;
    let calls = matched.iter().map(|(webhook, object_version, objects)| async move {
        let started = clock.elapsed();
        let outcome =
            call::call_validating(attributes, webhook, object_version.row(attributes), objects)
                .await;
        (outcome, clock.elapsed().saturating_sub(started).as_secs_f64())
    });
    let outcomes = futures::future::join_all(calls).await;
    let mut rejection = None;
    for (at, ((webhook, ..), (outcome, seconds))) in matched.iter().zip(outcomes).enumerate() {
        match call::finish_call(attributes, webhook, WebhookType::Validating, outcome, seconds) {
            Ok(Some(())) => {}
            Ok(None) => {
                let key =
                    format!("{FAILED_OPEN}validating.webhook.admission.k8s.io/round_0_index_{at}");
                attributes.warnings.annotate(key, webhook.name.to_string());
            }
            Err(status) => drop(rejection.get_or_insert(status)),
        }
    }
    rejection.map_or(Ok(()), Err)
}

/// Prefix of the audit annotation of a webhook whose failure was ignored.
const FAILED_OPEN: &str = "failed-open.";

/// The objects of a request by API version.
type VersionCache = Vec<(Arc<str>, Arc<VersionedObjects>)>;

async fn objects_in_version(
    version_cache: &mut VersionCache,
    attributes: &AdmissionAttributes<'_>,
    row: &KindRow,
) -> Result<Arc<VersionedObjects>, Status> {
    if let Some((_, objects)) =
        version_cache.iter().find(|(version, _)| *version == row.api_version)
    {
        return Ok(objects.clone());
    }
    let objects = request::versioned_objects(attributes, row).await;
    let objects = Arc::new(objects.map_err(|status| Status::internal(status.message))?);
    version_cache.push((row.api_version.clone(), objects.clone()));
    Ok(objects)
}

/// The version in which a webhook receives the object.
enum ObjectVersion {
    /// The version of the request.
    Request,
    /// The version of an equivalent resource.
    Equivalent(Arc<KindRow>),
}

impl ObjectVersion {
    fn row<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> &'a KindRow {
        match self {
            Self::Request => attributes.row,
            Self::Equivalent(row) => row,
        }
    }
}

/// Matches the request with the rules and selectors of a webhook.
fn match_webhook(
    attributes: &AdmissionAttributes<'_>,
    webhook: &Webhook,
    equivalents: &[Arc<KindRow>],
) -> MatchResult {
    let resources: Vec<GroupVersionResource<'_>> =
        equivalents.iter().map(|row| request::resource(row)).collect();
    let request_attributes = request::request_attributes(attributes);
    let resource =
        match webhook.criteria.matches(&request_attributes, &resources, &RequestLabels(attributes))
        {
            Ok(None) => return Ok(None),
            Ok(Some(resource)) => resource,
            Err(MatchError::Selector(error)) => return Err(Box::new(Status::internal(error))),
            Err(MatchError::UnknownNamespace { name }) => {
                return Err(Box::new(Status::not_found("", "namespaces", &name)));
            }
        };
    Ok(Some(match resource.and_then(|index| equivalents.get(index)) {
        None => ObjectVersion::Request,
        Some(row) => ObjectVersion::Equivalent(row.clone()),
    }))
}

/// Whether the match conditions of a webhook are true.
fn conditions_match(
    attributes: &AdmissionAttributes<'_>,
    webhook: &Webhook,
    row: &KindRow,
    objects: &VersionedObjects,
) -> Result<bool, Status> {
    if webhook.conditions.is_empty() || mainstay_fault::is_on("conditions-of-webhooks-always-hold")
    {
        return Ok(true);
    }
    // Match conditions see the kind of the webhook's rule, but the resource of the request.
    let mut request_variable = request::request_variable(attributes, row);
    request_variable["resource"] =
        request::request_variable(attributes, attributes.row)["resource"].take();
    let authorizer = request::request_authorizer(attributes);
    let input = EvaluationInput {
        object: &objects.object,
        old: &objects.old,
        request: &request_variable,
        params: &Value::Null,
        namespace: &Value::Null,
        authorizer: Some(&authorizer),
    };
    webhook.conditions.matches(input, &[], webhook.failure_policy).map_err(|error| {
        let (row, name) = (attributes.row, attributes.name);
        Status::forbidden(&row.group, &row.plural, name, &error.to_string())
    })
}

async fn call_mutating_webhooks(
    attributes: &mut AdmissionAttributes<'_>,
    webhooks: Arc<Vec<Arc<Webhook>>>,
) -> Result<(), Status> {
    let is_second_round = attributes.reinvocation.is_second_round;
    if is_second_round && attributes.reinvocation.last_object != attributes.object {
        attributes.reinvocation.require_reinvocation();
    }
    let equivalents = request::equivalent_rows(attributes, &attributes.admission.registry.kinds());
    let managed_fields_before = managed_fields(attributes);
    let mut version_cache: VersionCache = Vec::new();
    for (at, webhook) in webhooks.iter().enumerate() {
        let matched = match_webhook(attributes, webhook, &equivalents).map_err(|status| *status)?;
        let Some(object_version) = matched else { continue };
        let row = object_version.row(attributes);
        // Conditions are evaluated in the second round, too.
        let is_due = !is_second_round || attributes.reinvocation.due_webhooks.contains(&webhook.id);
        if !is_due && webhook.conditions.is_empty() {
            continue;
        }
        let objects = objects_in_version(&mut version_cache, attributes, row).await;
        // Kubernetes wraps the error twice.
        let objects = objects.map_err(|status| Status::internal(status.message))?;
        if !conditions_match(attributes, webhook, row, &objects)? || !is_due {
            continue;
        }
        let annotation_key = format!(
            "mutation.webhook.admission.k8s.io/round_{}_index_{at}",
            u8::from(is_second_round)
        );
        let mutation = call_and_patch(attributes, webhook, row, &objects).await;
        let annotation = format!(
            r#"{{"configuration":{},"webhook":{},"mutated":{}}}"#,
            json!(webhook.configuration),
            json!(webhook.name),
            matches!(mutation, Ok(Mutation::Changed(_)))
        );
        attributes.warnings.annotate(annotation_key.clone(), annotation);
        match mutation? {
            Mutation::Unchanged => {}
            Mutation::FailedOpen => {
                attributes
                    .warnings
                    .annotate(format!("{FAILED_OPEN}{annotation_key}"), webhook.name.to_string());
            }
            Mutation::Changed(object) => {
                attributes.object = Some(*object);
                version_cache.clear();
                attributes.reinvocation.require_reinvocation();
                attributes.reinvocation.object_changed = true;
            }
        }
        if webhook.reinvoke_if_needed {
            attributes.reinvocation.called_webhooks.insert(webhook.id.clone());
        }
    }
    restore_invalid_managed_fields(attributes, managed_fields_before);
    if attributes.reinvocation.object_changed && !is_second_round {
        attributes.reinvocation.last_object.clone_from(&attributes.object);
    }
    Ok(())
}

/// The result of the call of a mutating webhook.
enum Mutation {
    /// The call failed; the failure policy ignores it.
    FailedOpen,
    /// The object is unchanged.
    Unchanged,
    /// The new object.
    Changed(Box<Object>),
}

/// Calls a mutating webhook and applies its patch.
async fn call_and_patch(
    attributes: &AdmissionAttributes<'_>,
    webhook: &Webhook,
    row: &KindRow,
    objects: &VersionedObjects,
) -> Result<Mutation, Status> {
    let clock = attributes.admission.clock;
    let started = clock.elapsed();
    let outcome = async {
        let Some(patch) = call::call_mutating(attributes, webhook, row, objects).await? else {
            return Ok(None);
        };
        let patched = apply_patch(attributes, webhook, row, objects, &patch).await;
        let patched = patched.map_err(|status| CallError::Server(Box::new(status)))?;
        Ok((attributes.object.as_ref() != Some(&patched)).then(|| Box::new(patched)))
    };
    let outcome = outcome.await;
    let seconds = clock.elapsed().saturating_sub(started).as_secs_f64();
    let finished = call::finish_call(attributes, webhook, WebhookType::Mutating, outcome, seconds)?;
    Ok(match finished {
        None => Mutation::FailedOpen,
        Some(None) => Mutation::Unchanged,
        Some(Some(object)) => Mutation::Changed(object),
    })
}

/// The error for a patch that changes the kind: the object cannot be decoded, or cannot be converted
/// to the kind of the request.
fn kind_change_error(attributes: &AdmissionAttributes<'_>, value: Value) -> String {
    let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let (group, own) = version.rsplit_once('/').unwrap_or(("", &version));
    let gvk = Gvk::new(group, own, &kind);
    if mainstay_schema::builtin::definition_of(&gvk).is_none() {
        return format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        );
    }
    if let Err(error) = decode::decode_subresource_patch(&gvk, value) {
        return error.to_string();
    }
    let expected = attributes.kind();
    let package = match expected.group.split('.').next() {
        None | Some("") => "core",
        Some(name) => name,
    };
    format!("converting ({own}.{kind}) to ({package}.{}): unknown conversion", expected.kind)
}

const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

fn managed_fields(attributes: &AdmissionAttributes<'_>) -> Option<Value> {
    attributes.object.as_ref()?.get(&MANAGED_FIELDS).cloned()
}

/// Restores invalid `managedFields` to their value before the webhooks, with a warning.
fn restore_invalid_managed_fields(attributes: &mut AdmissionAttributes<'_>, before: Option<Value>) {
    let Some(object) = &mut attributes.object else { return };
    let now = object.get(&MANAGED_FIELDS);
    if now == before.as_ref() {
        return;
    }
    let Err(error) = ManagedFields::read(now) else { return };
    match before {
        Some(before) => object.set(&MANAGED_FIELDS, before),
        None => {
            object.remove(&MANAGED_FIELDS);
        }
    }
    attributes.request.warnings.add(format!(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: {error}"
    ));
}

/// Applies the patch of a webhook to the object of the request.
async fn apply_patch(
    attributes: &AdmissionAttributes<'_>,
    webhook: &Webhook,
    row: &KindRow,
    objects: &VersionedObjects,
    patch: &Patch,
) -> Result<Object, Status> {
    if attributes.object.is_none() {
        return Err(Status::internal(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            webhook.name
        )));
    }
    let mut value = objects.object.clone();
    let kind = [value["apiVersion"].clone(), value["kind"].clone()];
    mainstay_patch::json_patch(&mut value, &patch.0)
        .map_err(|error| Status::internal(error.to_string()))?;
    for (field, kind) in ["apiVersion", "kind"].into_iter().zip(kind) {
        // A removed field keeps its value.
        if value.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            value[field] = kind;
        } else if value[field] != kind {
            return Err(Status::internal(kind_change_error(attributes, value)));
        }
    }
    let decoded = if attributes.is_of_row() {
        let own = attributes.row;
        let decoded = decode::decode_webhook_patch(row, value);
        if own.custom().is_some_and(|custom| custom.is_converted) {
            let value = decoded.map_err(Status::internal)?.into_value();
            let value =
                conversion::convert_value(&attributes.admission.outbound, own, value).await?;
            return Object::from_value(value).map_err(Status::internal);
        }
        decoded
    } else {
        decode::decode_subresource_patch(&attributes.kind(), value)
    };
    decoded.map_err(Status::internal)
}
