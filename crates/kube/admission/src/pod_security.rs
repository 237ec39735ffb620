//! `PodSecurity`: pods are held to the standard that the labels of their namespace name.
//!
//! What the namespace enforces refuses pods; what it warns of and writes down is looked at in pods
//! and in whatever makes pods. Rules and texts are those of Kubernetes 1.35, without exemptions.

use super::{ADMITTED, Attributes, Operation, Plugin, Verdict};
use mainstay_object::{Object, Status};
use mainstay_security::{
    HOST_PORTS, NamespacePolicy, PREFIX, SecurityLevel, Standard, join_reasons, join_violations,
    violations,
};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) struct PodSecurity;

/// How many pods of a namespace are looked at when it enforces more than it did.
const LOOKED_AT: usize = 3000;

/// Where an object of a kind has a pod's metadata and spec; none if it has no such thing.
fn template(storage: &str) -> Option<&'static [&'static str]> {
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
    fn handles(&self, attributes: &Attributes<'_>) -> bool {
        let storage = &*attributes.row.storage;
        let concerned = match (storage, attributes.subresource) {
            // `status` and `binding` change annotations, too.
            ("pods", part) => {
                matches!(part, "" | "ephemeralcontainers" | "resize" | "status" | "binding")
            }
            ("bindings", "") => true,
            (storage, "") => storage == "namespaces" || template(storage).is_some(),
            _ => false,
        };
        concerned && matches!(attributes.operation, Operation::Create | Operation::Update)
    }

    fn validate<'a>(&'a self, attributes: &'a Attributes<'_>) -> Verdict<'a> {
        let Some(object) = &attributes.object else { return ADMITTED };
        let lends = |object: &Object| {
            let lent = object.annotation(HOST_PORTS);
            lent.is_some() && lent != attributes.old.and_then(|old| old.annotation(HOST_PORTS))
        };
        if attributes.subresource == "status" && !lends(object) {
            return ADMITTED;
        }
        let is_binding =
            attributes.subresource == "binding" || &*attributes.row.storage == "bindings";
        Verdict::Now(if &*attributes.row.storage == "namespaces" {
            judge_namespace(attributes, object)
        } else if is_binding {
            judge_binding(attributes, object)
        } else {
            judge_pod(attributes, object, attributes.old)
        })
    }
}

/// A binding gives its annotations to its pod.
fn judge_binding(attributes: &Attributes<'_>, binding: &Object) -> Result<(), Status> {
    let Some(lent) = binding.annotation(HOST_PORTS) else { return Ok(()) };
    let store = &attributes.admission.store;
    let Some(pod) = store.find("pods", attributes.namespace, attributes.name) else {
        // Not one that comes before the binding does.
        return Err(Status::not_found("", "pods", attributes.name));
    };
    let old = pod.object();
    let mut pod = old.clone();
    pod.set_annotation(HOST_PORTS, lent);
    judge_pod(attributes, &pod, Some(&old))
}

fn judge_namespace(attributes: &Attributes<'_>, namespace: &Object) -> Result<(), Status> {
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
    let relaxed = new.version == old.version && new.level <= old.level;
    if new != old && new.level != SecurityLevel::Privileged && !relaxed {
        for warning in violators(attributes, namespace.name(), new) {
            attributes.warnings.add(warning);
        }
    }
    Ok(())
}

/// What to say of the pods that a namespace would not take any more.
fn violators(attributes: &Attributes<'_>, namespace: &str, standard: Standard) -> Vec<String> {
    let pods = attributes.admission.store.list("pods", Some(namespace));
    let total = pods.iter().count();
    // One pod of every maker first: the others are like it.
    let mut makers = HashSet::new();
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for stored in pods.iter() {
        let pod = stored.object();
        let maker = pod.controller_owner();
        let known = maker.is_some_and(|maker| !makers.insert(maker.uid));
        if known { later.push(pod) } else { first.push(pod) }
    }
    let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for pod in first.into_iter().chain(later).take(LOOKED_AT) {
        let Some((metadata, spec)) = parts(&pod, &[]) else { continue };
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
    if total > LOOKED_AT {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {LOOKED_AT} of {total} existing pods"
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
        .map(|(why, (name, count))| match count {
            1 => format!("{name}: {why}"),
            2 => format!("{name} (and 1 other pod): {why}"),
            _ => format!("{name} (and {} other pods): {why}", count - 1),
        })
        .collect();
    pods.sort_unstable();
    warnings.extend(pods);
    warnings
}

/// A pod's metadata and spec in an object.
fn parts<'a>(
    object: &'a Object,
    path: &[&str],
) -> Option<(Option<&'a Map<String, Value>>, &'a Value)> {
    let at = |field| {
        let path: Vec<&str> = path.iter().copied().chain([field]).collect();
        object.get(&path)
    };
    Some((at("metadata").and_then(Value::as_object), at("spec").filter(|spec| spec.is_object())?))
}

fn judge_pod(
    attributes: &Attributes<'_>,
    object: &Object,
    old: Option<&Object>,
) -> Result<(), Status> {
    let enforced = matches!(&*attributes.row.storage, "pods" | "bindings");
    let Some(namespace) = attributes.admission.store.find("namespaces", "", attributes.namespace)
    else {
        // Nothing is made there, which others say.
        return Ok(());
    };
    let (policy, errors) = NamespacePolicy::from_labels(&namespace.object());
    let note =
        |name: &str, value: String| attributes.warnings.annotate(format!("{PREFIX}{name}"), value);
    let told = [policy.audit, policy.warn].iter().any(|one| one.level != SecurityLevel::Privileged);
    if errors.is_empty() && (policy.is_privileged() || (!enforced && !told)) {
        if enforced {
            note("enforce-policy", Standard::default().to_string());
        }
        return Ok(());
    }
    if let Some(old) = old
        && enforced
        && !is_significant(object, old)
    {
        return Ok(());
    }
    let path = template(&attributes.row.storage).unwrap_or_default();
    let Some((metadata, spec)) = parts(object, path) else { return Ok(()) };
    let found = |standard: Standard| violations(standard, metadata, spec);
    if !errors.is_empty() {
        let why = mainstay_object::FieldError::join(&errors);
        note("error", format!("Failed to parse policy: {why}"));
    }
    let would = |standard: Standard| {
        let found = found(standard);
        let standard = mainstay_gocompat::quote(&standard.to_string());
        (!found.is_empty())
            .then(|| format!("would violate PodSecurity {standard}: {}", join_violations(&found)))
    };
    if let Some(text) = would(policy.audit) {
        note("audit-violations", text);
    }
    if enforced {
        note("enforce-policy", policy.enforce.to_string());
        let found = found(policy.enforce);
        if !found.is_empty() {
            let standard = mainstay_gocompat::quote(&policy.enforce.to_string());
            let why = format!("violates PodSecurity {standard}: {}", join_violations(&found));
            let (group, plural) = (&attributes.row.group, &attributes.row.plural);
            return Err(Status::forbidden(group, plural, attributes.name, &why));
        }
    }
    if let Some(text) = would(policy.warn) {
        attributes.warnings.add(text);
    }
    Ok(())
}

/// Whether an update of a pod may change what it asks of its node: only its images can change, and
/// containers be added. Here an annotation may ask for ports of the machine, which the original does not know.
fn is_significant(new: &Object, old: &Object) -> bool {
    fn image(container: &Value) -> &str {
        container.get("image").and_then(Value::as_str).unwrap_or_default()
    }
    let lent = new.annotation(HOST_PORTS);
    if lent.is_some() && lent != old.annotation(HOST_PORTS) {
        return true;
    }
    let differ = ["containers", "initContainers"].iter().any(|list| {
        let (new, old) = (new.array(&["spec", list]), old.array(&["spec", list]));
        new.len() != old.len() || new.iter().zip(old).any(|(new, old)| image(new) != image(old))
    });
    // The first of a name counts.
    let mut added: HashMap<Option<&Value>, &Value> = HashMap::new();
    for container in old.array(&["spec", "ephemeralContainers"]) {
        added.entry(container.get("name")).or_insert(container);
    }
    differ
        || new.array(&["spec", "ephemeralContainers"]).iter().any(|one| {
            let before = added.get(&one.get("name"));
            before.is_none_or(|before| image(before) != image(one))
        })
}
