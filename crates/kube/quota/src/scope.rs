//! Quota scopes: which objects a quota counts.

use crate::pod;
use crate::usage::CountedKind;
use mainstay_object::Object;
use serde_json::Value;

/// A requirement of a quota's scopes.
struct Selector<'a> {
    scope: &'a str,
    operator: &'a str,
    values: Vec<&'a str>,
}

fn selectors(quota: &Object) -> impl Iterator<Item = Selector<'_>> {
    let scopes = quota.array(&["spec", "scopes"]).iter().filter_map(Value::as_str);
    let scopes = scopes.map(|scope| Selector { scope, operator: "Exists", values: Vec::new() });
    let expressions = quota.array(&["spec", "scopeSelector", "matchExpressions"]).iter();
    scopes.chain(expressions.map(|expression| {
        let text = |field| expression.get(field).and_then(Value::as_str).unwrap_or_default();
        let values = expression.get("values").and_then(Value::as_array);
        let values = values.into_iter().flatten().filter_map(Value::as_str).collect();
        Selector { scope: text("scopeName"), operator: text("operator"), values }
    }))
}

/// Whether an object is in all scopes of a quota. Only Pods and `PersistentVolumeClaims` have scopes.
pub(crate) fn is_in_all(quota: &Object, kind: &CountedKind, object: &Object) -> bool {
    selectors(quota).all(|selector| match kind {
        CountedKind::Pods => is_pod_in(object, &selector),
        CountedKind::Claims => is_claim_in(object, &selector),
        _ => false,
    })
}

fn is_pod_in(pod: &Object, selector: &Selector<'_>) -> bool {
    let ends = || pod.i64(&["spec", "activeDeadlineSeconds"]).is_some_and(|seconds| seconds >= 0);
    match selector.scope {
        "Terminating" => ends(),
        "NotTerminating" => !ends(),
        "BestEffort" => pod::is_best_effort(pod),
        "NotBestEffort" => !pod::is_best_effort(pod),
        "PriorityClass" => {
            let class = pod.str(&["spec", "priorityClassName"]).filter(|class| !class.is_empty());
            matches(selector, class)
        }
        "CrossNamespacePodAffinity" => has_cross_namespace_affinity(pod),
        _ => false,
    }
}

fn is_claim_in(claim: &Object, selector: &Selector<'_>) -> bool {
    if selector.scope != "VolumeAttributesClass" {
        return false;
    }
    let names: Vec<&str> = [
        &["spec", "volumeAttributesClassName"][..],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ]
    .into_iter()
    .filter_map(|path| claim.str(path))
    .filter(|name| !name.is_empty())
    .collect();
    if names.is_empty() {
        return matches(selector, None);
    }
    names.into_iter().any(|name| matches(selector, Some(name)))
}

fn matches(selector: &Selector<'_>, value: Option<&str>) -> bool {
    match (selector.operator, value) {
        ("Exists", value) => value.is_some(),
        ("DoesNotExist", value) => value.is_none(),
        ("In", Some(value)) => selector.values.contains(&value),
        ("NotIn", Some(value)) => !selector.values.contains(&value),
        ("NotIn", None) => true,
        _ => false,
    }
}

fn has_cross_namespace_affinity(pod: &Object) -> bool {
    let elsewhere = |term: &Value| {
        term.get("namespaces").and_then(Value::as_array).is_some_and(|names| !names.is_empty())
            || term.get("namespaceSelector").is_some_and(Value::is_object)
    };
    ["podAffinity", "podAntiAffinity"].into_iter().any(|side| {
        let terms = |list| pod.array(&["spec", "affinity", side, list]).iter();
        terms("requiredDuringSchedulingIgnoredDuringExecution").any(elsewhere)
            || terms("preferredDuringSchedulingIgnoredDuringExecution")
                .filter_map(|term| term.get("podAffinityTerm"))
                .any(elsewhere)
    })
}
