//! Validation of `ResourceQuotas` and `LimitRanges`.

use super::super::quantity;
use super::super::rules::{Errors, FieldRule, Node, Rule, go_structs, quantities};
use super::{IMMUTABLE, object_field};
use mainstay_object::{Object, names};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The rules of a `ResourceQuota`.
pub(in super::super) const QUOTA: &[FieldRule] =
    &[("spec", Rule::Custom(quota)), ("status", Rule::Custom(quota_status))];

fn quota_quantities(hard: &Node<'_, '_>, errors: &mut Errors) {
    for (name, at) in hard.entries() {
        quantities::resource_name(name, &at, errors);
        if !name.contains('/') && !quantities::is_quota_resource(name) {
            errors.invalid(&at, name, "must be a standard resource for quota");
        }
        quantities::resource_quantity(name, &at, errors);
    }
}

pub(in super::super) fn quota_status(status: &Node<'_, '_>, errors: &mut Errors) {
    quota_quantities(&status.get("hard"), errors);
    quota_quantities(&status.get("used"), errors);
}

const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];

/// Whether a scope applies to a resource.
fn scope_applies(scope: &str, resource: &str) -> bool {
    const COMPUTE: [&str; 6] =
        ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ if SCOPES.contains(&scope) => resource == "pods" || COMPUTE.contains(&resource),
        _ => true,
    }
}

fn scopes_conflict(scopes: &[&str]) -> bool {
    [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]]
        .iter()
        .any(|pair| pair.iter().all(|scope| scopes.contains(scope)))
}

fn quota(spec: &Node<'_, '_>, errors: &mut Errors) {
    let hard = spec.get("hard");
    quota_quantities(&hard, errors);
    let limited: Vec<&str> = hard
        .map()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .filter(|name| quantities::is_quota_resource(name))
        .collect();
    let mut mismatches = ScopeMismatches { limited: &limited, counts: HashMap::new() };
    let scopes = spec.get("scopes");
    for scope in scopes.items() {
        if !SCOPES.contains(&scope.text()) {
            errors.invalid_value(&scopes, "unsupported scope");
        }
        for _ in 0..mismatches.count(scope.text()) {
            errors.invalid_value(&scopes, "unsupported scope applied to resource");
        }
        if errors.is_full() {
            break;
        }
    }
    let found: Vec<&str> = scopes.items().map(|scope| scope.text()).collect();
    if scopes_conflict(&found) {
        errors.invalid_value(&scopes, "conflicting scopes");
    }
    let selector = spec.get("scopeSelector");
    if selector.is_set() {
        scope_selector(&selector, &mut mismatches, scopes.value(), errors);
    }
}

/// The number of limited resources to which a scope does not apply, counted once per scope.
struct ScopeMismatches<'a> {
    limited: &'a [&'a str],
    counts: HashMap<&'a str, usize>,
}

impl<'a> ScopeMismatches<'a> {
    fn count(&mut self, scope: &'a str) -> usize {
        let limited = self.limited;
        let count = || limited.iter().filter(|name| !scope_applies(scope, name)).count();
        // An unknown scope applies to every resource.
        if SCOPES.contains(&scope) { *self.counts.entry(scope).or_insert_with(count) } else { 0 }
    }
}

fn scope_selector<'v>(
    selector: &Node<'_, 'v>,
    mismatches: &mut ScopeMismatches<'v>,
    scopes: &Value,
    errors: &mut Errors,
) {
    let list = selector.get("matchExpressions");
    let mut found = Vec::new();
    for expression in list.items() {
        let (scope, operator, values) = (
            expression.text_of("scopeName"),
            expression.text_of("operator"),
            expression.get("values"),
        );
        if !SCOPES.contains(&scope) {
            errors.invalid(&list.get("scopeName"), scope, "unsupported scope");
        }
        for _ in 0..mismatches.count(scope) {
            if errors.is_full() {
                break;
            }
            let printed = go_structs::print("ScopeSelector", selector.value());
            errors.printed(&list, Some(printed), "unsupported scope applied to resource");
        }
        if SCOPES.contains(&scope)
            && !matches!(scope, "PriorityClass" | "VolumeAttributesClass")
            && operator != "Exists"
        {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.invalid(&list.get("operator"), operator, detail);
        }
        match operator {
            "In" | "NotIn" if values.len() == 0 => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.required(&list.get("values"), detail);
            }
            "Exists" | "DoesNotExist" if values.len() > 0 => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.invalid(&list.get("values"), values.value().clone(), detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                errors.invalid(&list.get("operator"), other, "not a valid selector operator");
            }
        }
        found.push(scope);
    }
    if scopes_conflict(&found) {
        errors.invalid(&list, scopes.clone(), "conflicting scopes");
    }
}

pub(in super::super) fn quota_update(object: &Object, old: &Object, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    quota(&spec, errors);
    let sorted = |object: &Object| {
        let scopes = object_field(object, "spec").get("scopes").and_then(Value::as_array);
        let mut scopes: Vec<String> =
            scopes.into_iter().flatten().map(ToString::to_string).collect();
        scopes.sort();
        scopes.dedup();
        scopes
    };
    if sorted(object) != sorted(old) {
        errors.invalid_value(&spec.get("scopes"), IMMUTABLE);
    }
}

/// The rules of a `LimitRange`.
pub(in super::super) const LIMITS: &[FieldRule] =
    &[("spec", Rule::Fields(&[("limits", Rule::Custom(limits))]))];

fn limits(list: &Node<'_, '_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for limit in list.items() {
        let kind = limit.get("type");
        let before = errors.len();
        errors.add_problems(&kind, kind.text(), names::qualified_name(kind.text()));
        let is_standard = matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim");
        if errors.len() == before && !kind.text().contains('/') && !is_standard {
            let detail = "must be a standard limit type or fully qualified";
            errors.invalid(&kind, kind.text(), detail);
        }
        if seen.contains(&kind.text()) {
            errors.duplicate(&kind, kind.text());
        }
        seen.insert(kind.text());
        let mut sides = vec!["max", "min"];
        for side in sides.clone() {
            resource_names(&limit, side, errors);
        }
        if kind.text() == "Pod" {
            for side in ["default", "defaultRequest"] {
                if limit.get(side).len() > 0 {
                    let detail = "may not be specified when `type` is 'Pod'";
                    errors.forbidden(&limit.get(side), detail);
                }
            }
        } else {
            for side in ["default", "defaultRequest"] {
                resource_names(&limit, side, errors);
                sides.push(side);
            }
        }
        if kind.text() == "PersistentVolumeClaim"
            && !limit.get("min").has("storage")
            && !limit.get("max").has("storage")
        {
            let detail =
                "either minimum or maximum storage value is required, but neither was provided";
            errors.required(&limit.get("limits"), detail);
        }
        resource_names(&limit, "maxLimitRequestRatio", errors);
        sides.push("maxLimitRequestRatio");
        let names: BTreeSet<&str> = sides
            .iter()
            .filter_map(|side| limit.get(side).map())
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        for name in names {
            limit_relations(&limit, name, kind.text() != "Pod", errors);
        }
    }
}

fn resource_names(limit: &Node<'_, '_>, side: &str, errors: &mut Errors) {
    let node = limit.get(side);
    for (name, at) in node.entries() {
        if matches!(limit.text_of("type"), "Pod" | "Container") {
            quantities::container_resource_name(name, &at, errors);
        } else {
            quantities::resource_name(name, &at, errors);
        }
    }
}

/// Validates the relations between the limits of one resource.
fn limit_relations(limit: &Node<'_, '_>, name: &str, defaults: bool, errors: &mut Errors) {
    let limit_of = |side: &str| limit.value().get(side).and_then(|side| side.get(name));
    let default_of = |side: &str| limit_of(side).filter(|_| defaults);
    let (min, max) = (limit_of("min"), limit_of("max"));
    let (default, request) = (default_of("default"), default_of("defaultRequest"));
    let exceeds = |one: Option<&Value>, other: Option<&Value>| {
        one.zip(other).is_some_and(|(one, other)| quantities::nano(one) > quantities::nano(other))
    };
    let text = |value: Option<&Value>| {
        value.map(|amount| quantities::text(amount).into_owned()).unwrap_or_default()
    };
    let mut report = |side: &str, value: Option<&Value>, detail: String| {
        let side = limit.get(side);
        errors.invalid(&side.key(name), text(value), detail);
    };
    if exceeds(min, max) {
        let detail = format!("min value {} is greater than max value {}", text(min), text(max));
        report("min", min, detail);
    }
    if exceeds(min, request) {
        let detail = format!(
            "min value {} is greater than default request value {}",
            text(min),
            text(request)
        );
        report("defaultRequest", request, detail);
    }
    if exceeds(request, max) {
        let detail = format!(
            "default request value {} is greater than max value {}",
            text(request),
            text(max)
        );
        report("defaultRequest", request, detail);
    }
    if exceeds(request, default) {
        let detail = format!(
            "default request value {} is greater than default limit value {}",
            text(request),
            text(default)
        );
        report("defaultRequest", request, detail);
    }
    if exceeds(min, default) {
        let detail =
            format!("min value {} is greater than default value {}", text(min), text(default));
        report("default", min, detail);
    }
    if exceeds(default, max) {
        let detail =
            format!("default value {} is greater than max value {}", text(default), text(max));
        report("default", max, detail);
    }
    let ratio = limit_of("maxLimitRequestRatio");
    let min_ratio = Value::from("1");
    if exceeds(Some(&min_ratio), ratio) {
        let detail = format!("ratio {} is less than 1", text(ratio));
        report("maxLimitRequestRatio", ratio, detail);
    }
    if let (Some(ratio), Some(min), Some(max)) = (ratio, min, max) {
        let (requested, max) =
            (quantity::parse_float(&quantities::text(ratio)), max_ratio(min, max));
        if requested > max {
            let detail =
                format!("ratio {} is greater than max/min = {max:.6}", quantities::text(ratio));
            report("maxLimitRequestRatio", Some(ratio), detail);
        }
    }
    let differ = default
        .zip(request)
        .is_some_and(|(one, other)| quantities::nano(one) != quantities::nano(other));
    if !quantities::may_overcommit(name) && differ {
        let detail = format!(
            "default value {} must equal to defaultRequest value {} in {name}",
            text(default),
            text(request)
        );
        report("defaultRequest", request, detail);
    }
}

fn max_ratio(min: &Value, max: &Value) -> f64 {
    quantity::parse_float(&quantities::text(max)) / quantity::parse_float(&quantities::text(min))
}
