//! `PodSecurity`: checks pods by the Pod Security Standards in the labels of their namespace.
//!
//! The `enforce` level refuses pods. The `warn` and `audit` levels apply to pods and to objects with a
//! pod template. Rules and texts are those of Kubernetes 1.35, without exemptions.

use super::{ADMITTED, AdmissionAttributes, AdmissionDecision, Operation, Plugin};
use mainstay_object::{Object, Status};
use mainstay_security::{
    HOST_PORTS, NamespacePolicy, PREFIX, SecurityLevel, Standard, join_reasons, join_violations,
    violations,
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) struct PodSecurity;

/// Maximum number of pods that are checked when a namespace gets a stricter `enforce` level.
const MAX_CHECKED_PODS: usize = 3000;

/// The path to the metadata and spec of a pod in an object of a kind; none without a pod template.
fn template_path(storage: &str) -> Option<&'static [&'static str]> {
    match storage {
        "pods" => Some(&[]),
        "podtemplates" => Some(&["template"]),
        "replicationcontrollers"
        | "apps/replicasets"
        | "apps/deployments"
        | "apps/statefulsets"
        | "apps/daemonsets"
        | "batch/jobs" => Some(&["spec", "template"]),
        "batch/cronjobs" => Some(&["spec", "jobTemplate", "spec", "template"]),
        _ => None,
    }
}

impl Plugin for PodSecurity {
    fn handles(&self, attributes: &AdmissionAttributes<'_>) -> bool {
        let storage = &*attributes.row.storage;
        let is_handled = match (storage, attributes.subresource) {
            // `status` and `binding` can change annotations.
            ("pods", subresource) => {
                matches!(subresource, "" | "ephemeralcontainers" | "resize" | "status" | "binding")
            }
            ("bindings", "") => true,
            (storage, "") => storage == "namespaces" || template_path(storage).is_some(),
            _ => false,
        };
        is_handled && matches!(attributes.operation, Operation::Create | Operation::Update)
    }

    fn validate<'a>(&'a self, attributes: &'a AdmissionAttributes<'_>) -> AdmissionDecision<'a> {
        let Some(object) = &attributes.object else { return ADMITTED };
        let sets_host_ports = |object: &Object| {
            let host_ports = object.annotation(HOST_PORTS);
            host_ports.is_some()
                && host_ports != attributes.old.and_then(|old| old.annotation(HOST_PORTS))
        };
        if attributes.subresource == "status" && !sets_host_ports(object) {
            return ADMITTED;
        }
        let is_binding =
            attributes.subresource == "binding" || &*attributes.row.storage == "bindings";
        AdmissionDecision::Ready(if &*attributes.row.storage == "namespaces" {
            validate_namespace(attributes, object)
        } else if is_binding {
            validate_binding(attributes, object)
        } else {
            validate_pod(attributes, object, attributes.old)
        })
    }
}

/// Checks the annotations that a binding copies to its pod.
fn validate_binding(attributes: &AdmissionAttributes<'_>, binding: &Object) -> Result<(), Status> {
    let Some(host_ports) = binding.annotation(HOST_PORTS) else { return Ok(()) };
    let store = &attributes.admission.store;
    let Some(pod) = store.find("pods", attributes.namespace, attributes.name) else {
        // A binding before the creation of its pod is refused.
        return Err(Status::not_found("", "pods", attributes.name));
    };
    let old = pod.object();
    let mut pod = old.clone();
    pod.set_annotation(HOST_PORTS, host_ports);
    validate_pod(attributes, &pod, Some(&old))
}

fn validate_namespace(
    attributes: &AdmissionAttributes<'_>,
    namespace: &Object,
) -> Result<(), Status> {
    let (policy, errors) = NamespacePolicy::from_labels(namespace);
    let invalid = || Status::invalid("", "Namespace", attributes.name, &errors);
    let Some(old) = attributes.old else {
        return if errors.is_empty() { Ok(()) } else { Err(invalid()) };
    };
    let (before, old_errors) = NamespacePolicy::from_labels(old);
    if !errors.is_empty() && errors != old_errors {
        return Err(invalid());
    }
    let (new, old) = (policy.enforce, before.enforce);
    let is_relaxed = new.version == old.version && new.level <= old.level;
    if new != old && new.level != SecurityLevel::Privileged && !is_relaxed {
        for warning in existing_violations(attributes, namespace.name(), new) {
            attributes.warnings.add(warning);
        }
    }
    Ok(())
}

/// Warnings for the existing pods that violate a new `enforce` level.
fn existing_violations(
    attributes: &AdmissionAttributes<'_>,
    namespace: &str,
    standard: Standard,
) -> Vec<String> {
    let pods = attributes.admission.store.list("pods", Some(namespace));
    let total = pods.iter().count();
    // First one pod of each controller, because its other pods are alike.
    let mut owners = HashSet::new();
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for stored in pods.iter() {
        let pod = stored.object();
        let owner = pod.controller_owner();
        let is_owner_known = owner.is_some_and(|owner| !owners.insert(owner.uid));
        if is_owner_known { later.push(pod) } else { first.push(pod) }
    }
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in first.into_iter().chain(later).take(MAX_CHECKED_PODS) {
        let Some((metadata, spec)) = metadata_and_spec(&pod, &[]) else { continue };
        let violations = violations(standard, metadata, spec);
        if violations.is_empty() {
            continue;
        }
        let (name, count) = found.entry(join_reasons(&violations)).or_default();
        if *count == 0 || pod.name() < name.as_str() {
            pod.name().clone_into(name);
        }
        *count += 1;
    }
    let mut warnings = Vec::new();
    if total > MAX_CHECKED_PODS {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {MAX_CHECKED_PODS} of {total} existing pods"
        ));
    }
    if !found.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {} violate the new PodSecurity enforce level {}",
            mainstay_gocompat::quote(namespace),
            mainstay_gocompat::quote(&standard.to_string())
        ));
    }
    let mut pods: Vec<String> = found
        .into_iter()
        .map(|(message, (name, count))| match count {
            1 => format!("{name}: {message}"),
            2 => format!("{name} (and 1 other pod): {message}"),
            _ => format!("{name} (and {} other pods): {message}", count - 1),
        })
        .collect();
    pods.sort_unstable();
    warnings.extend(pods);
    warnings
}

/// Metadata and spec of the pod or pod template in an object.
fn metadata_and_spec<'a>(
    object: &'a Object,
    path: &[&str],
) -> Option<(Option<&'a Map<String, Value>>, &'a Value)> {
    let at = |field| {
        let path: Vec<&str> = path.iter().copied().chain([field]).collect();
        object.get(&path)
    };
    Some((at("metadata").and_then(Value::as_object), at("spec").filter(|spec| spec.is_object())?))
}

fn validate_pod(
    attributes: &AdmissionAttributes<'_>,
    object: &Object,
    old: Option<&Object>,
) -> Result<(), Status> {
    let is_enforced = matches!(&*attributes.row.storage, "pods" | "bindings");
    let Some(namespace) = attributes.admission.store.find("namespaces", "", attributes.namespace)
    else {
        // `NamespaceLifecycle` refuses a creation in a missing namespace.
        return Ok(());
    };
    let (policy, errors) = NamespacePolicy::from_labels(&namespace.object());
    let annotate =
        |name: &str, value: String| attributes.warnings.annotate(format!("{PREFIX}{name}"), value);
    let warns_or_audits = [policy.audit, policy.warn]
        .iter()
        .any(|standard| standard.level != SecurityLevel::Privileged);
    if errors.is_empty() && (policy.is_privileged() || (!is_enforced && !warns_or_audits)) {
        if is_enforced {
            annotate("enforce-policy", Standard::default().to_string());
        }
        return Ok(());
    }
    if let Some(old) = old
        && is_enforced
        && !is_significant(object, old)
    {
        return Ok(());
    }
    let path = template_path(&attributes.row.storage).unwrap_or_default();
    let Some((metadata, spec)) = metadata_and_spec(object, path) else { return Ok(()) };
    let find = |standard: Standard| violations(standard, metadata, spec);
    if !errors.is_empty() {
        let errors = mainstay_object::FieldError::join(&errors);
        annotate("error", format!("Failed to parse policy: {errors}"));
    }
    let violation_text = |standard: Standard| {
        let found = find(standard);
        let standard = mainstay_gocompat::quote(&standard.to_string());
        (!found.is_empty())
            .then(|| format!("would violate PodSecurity {standard}: {}", join_violations(&found)))
    };
    if let Some(text) = violation_text(policy.audit) {
        annotate("audit-violations", text);
    }
    if is_enforced {
        annotate("enforce-policy", policy.enforce.to_string());
        let found = find(policy.enforce);
        if !found.is_empty() {
            let standard = mainstay_gocompat::quote(&policy.enforce.to_string());
            let message = format!("violates PodSecurity {standard}: {}", join_violations(&found));
            let (group, plural) = (&attributes.row.group, &attributes.row.plural);
            return Err(Status::forbidden(group, plural, attributes.name, &message));
        }
    }
    if let Some(text) = violation_text(policy.warn) {
        attributes.warnings.add(text);
    }
    Ok(())
}

/// Whether an update of a pod must be checked: an update can only change images and add containers.
/// In Mainstay an annotation can also request host ports; Kubernetes has no such annotation.
fn is_significant(new: &Object, old: &Object) -> bool {
    fn image(container: &Value) -> &str {
        container.get("image").and_then(Value::as_str).unwrap_or_default()
    }
    let host_ports = new.annotation(HOST_PORTS);
    if host_ports.is_some() && host_ports != old.annotation(HOST_PORTS) {
        return true;
    }
    let differ = ["containers", "initContainers"].iter().any(|list| {
        let (new, old) = (new.array(&["spec", list]), old.array(&["spec", list]));
        new.len() != old.len() || new.iter().zip(old).any(|(new, old)| image(new) != image(old))
    });
    // The first container of a name counts.
    let mut added: HashMap<Option<&Value>, &Value> = HashMap::new();
    for container in old.array(&["spec", "ephemeralContainers"]) {
        added.entry(container.get("name")).or_insert(container);
    }
    differ
        || new.array(&["spec", "ephemeralContainers"]).iter().any(|container| {
            let before = added.get(&container.get("name"));
            before.is_none_or(|before| image(before) != image(container))
        })
}
