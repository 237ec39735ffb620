//! Quotas of namespaces, and limits of what is in them.

use super::super::quantity;
use super::super::rules::{Check, Errors, Node, Rule, amounts, forms};
use super::{IMMUTABLE, view};
use mainstay_object::{Object, names};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};

/// What quotas count and bound.
pub(in super::super) const QUOTA: &[Check] =
    &[("spec", Rule::With(quota)), ("status", Rule::With(quota_status))];

fn quota_amounts(hard: &Node<'_, '_>, errors: &mut Errors) {
    for (name, at) in hard.entries() {
        amounts::resource_name(name, &at, errors);
        if !name.contains('/') && !amounts::is_quota(name) {
            errors.invalid(&at, name, "must be a standard resource for quota");
        }
        amounts::amount(name, &at, errors);
    }
}

pub(in super::super) fn quota_status(status: &Node<'_, '_>, errors: &mut Errors) {
    quota_amounts(&status.get("hard"), errors);
    quota_amounts(&status.get("used"), errors);
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

/// Whether a scope says something about a resource.
fn scope_fits(scope: &str, resource: &str) -> bool {
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

fn conflicting(scopes: &[&str]) -> bool {
    [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]]
        .iter()
        .any(|pair| pair.iter().all(|scope| scopes.contains(scope)))
}

fn quota(spec: &Node<'_, '_>, errors: &mut Errors) {
    let hard = spec.get("hard");
    quota_amounts(&hard, errors);
    let limited: Vec<&str> = hard
        .map()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .filter(|name| amounts::is_quota(name))
        .collect();
    let mut misfits = Misfits { limited: &limited, known: HashMap::new() };
    let scopes = spec.get("scopes");
    for scope in scopes.items() {
        if !SCOPES.contains(&scope.text()) {
            errors.wrong(&scopes, "unsupported scope");
        }
        for _ in 0..misfits.of(scope.text()) {
            errors.wrong(&scopes, "unsupported scope applied to resource");
        }
        if errors.is_full() {
            break;
        }
    }
    let found: Vec<&str> = scopes.items().map(|scope| scope.text()).collect();
    if conflicting(&found) {
        errors.wrong(&scopes, "conflicting scopes");
    }
    let selector = spec.get("scopeSelector");
    if selector.is_set() {
        scope_selector(&selector, &mut misfits, scopes.value(), errors);
    }
}

/// How many of the limited resources a scope does not fit, counted once for each scope.
struct Misfits<'a> {
    limited: &'a [&'a str],
    known: HashMap<&'a str, usize>,
}

impl<'a> Misfits<'a> {
    fn of(&mut self, scope: &'a str) -> usize {
        let limited = self.limited;
        let count = || limited.iter().filter(|name| !scope_fits(scope, name)).count();
        // One that is not known fits everything.
        if SCOPES.contains(&scope) { *self.known.entry(scope).or_insert_with(count) } else { 0 }
    }
}

fn scope_selector<'v>(
    selector: &Node<'_, 'v>,
    misfits: &mut Misfits<'v>,
    scopes: &Value,
    errors: &mut Errors,
) {
    let list = selector.get("matchExpressions");
    let mut found = Vec::new();
    for one in list.items() {
        let (scope, operator, values) =
            (one.text_of("scopeName"), one.text_of("operator"), one.get("values"));
        if !SCOPES.contains(&scope) {
            errors.invalid(&list.get("scopeName"), scope, "unsupported scope");
        }
        for _ in 0..misfits.of(scope) {
            if errors.is_full() {
                break;
            }
            let printed = forms::print("ScopeSelector", selector.value());
            errors.printed(&list, Some(printed), "unsupported scope applied to resource");
        }
        if SCOPES.contains(&scope)
            && !matches!(scope, "PriorityClass" | "VolumeAttributesClass")
            && operator != "Exists"
        {
            let words = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.invalid(&list.get("operator"), operator, words);
        }
        match operator {
            "In" | "NotIn" if values.len() == 0 => {
                let words = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.required(&list.get("values"), words);
            }
            "Exists" | "DoesNotExist" if values.len() > 0 => {
                let words = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.invalid(&list.get("values"), values.value().clone(), words);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                errors.invalid(&list.get("operator"), other, "not a valid selector operator");
            }
        }
        found.push(scope);
    }
    if conflicting(&found) {
        errors.invalid(&list, scopes.clone(), "conflicting scopes");
    }
}

pub(in super::super) fn quota_update(object: &Object, old: &Object, errors: &mut Errors) {
    let spec = Node::top(view(object, "spec"), "spec");
    quota(&spec, errors);
    let sorted = |object: &Object| {
        let scopes = view(object, "spec").get("scopes").and_then(Value::as_array);
        let mut scopes: Vec<String> =
            scopes.into_iter().flatten().map(ToString::to_string).collect();
        scopes.sort();
        scopes.dedup();
        scopes
    };
    if sorted(object) != sorted(old) {
        errors.wrong(&spec.get("scopes"), IMMUTABLE);
    }
}

/// Limits of what is in a namespace.
pub(in super::super) const LIMITS: &[Check] =
    &[("spec", Rule::Inside(&[("limits", Rule::With(limits))]))];

fn limits(list: &Node<'_, '_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for limit in list.items() {
        let kind = limit.get("type");
        let before = errors.len();
        errors.each(&kind, kind.text(), names::qualified_name(kind.text()));
        let known = matches!(kind.text(), "Pod" | "Container" | "PersistentVolumeClaim");
        if errors.len() == before && !kind.text().contains('/') && !known {
            let words = "must be a standard limit type or fully qualified";
            errors.invalid(&kind, kind.text(), words);
        }
        if seen.contains(&kind.text()) {
            errors.duplicate(&kind, kind.text());
        }
        seen.insert(kind.text());
        let mut sides = vec!["max", "min"];
        for side in sides.clone() {
            side_names(&limit, side, errors);
        }
        if kind.text() == "Pod" {
            for side in ["default", "defaultRequest"] {
                if limit.get(side).len() > 0 {
                    let words = "may not be specified when `type` is 'Pod'";
                    errors.forbidden(&limit.get(side), words);
                }
            }
        } else {
            for side in ["default", "defaultRequest"] {
                side_names(&limit, side, errors);
                sides.push(side);
            }
        }
        if kind.text() == "PersistentVolumeClaim"
            && !limit.get("min").has("storage")
            && !limit.get("max").has("storage")
        {
            let words =
                "either minimum or maximum storage value is required, but neither was provided";
            errors.required(&limit.get("limits"), words);
        }
        side_names(&limit, "maxLimitRequestRatio", errors);
        sides.push("maxLimitRequestRatio");
        let names: BTreeSet<&str> = sides
            .iter()
            .filter_map(|side| limit.get(side).map())
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        for name in names {
            relations(&limit, name, kind.text() != "Pod", errors);
        }
    }
}

fn side_names(limit: &Node<'_, '_>, side: &str, errors: &mut Errors) {
    let node = limit.get(side);
    for (name, at) in node.entries() {
        if matches!(limit.text_of("type"), "Pod" | "Container") {
            amounts::container_name(name, &at, errors);
        } else {
            amounts::resource_name(name, &at, errors);
        }
    }
}

/// How the amounts of one resource stand to each other.
fn relations(limit: &Node<'_, '_>, name: &str, defaults: bool, errors: &mut Errors) {
    let of = |side: &str| limit.value().get(side).and_then(|side| side.get(name));
    let default_of = |side: &str| of(side).filter(|_| defaults);
    let (min, max) = (of("min"), of("max"));
    let (default, request) = (default_of("default"), default_of("defaultRequest"));
    let more = |one: Option<&Value>, other: Option<&Value>| {
        one.zip(other).is_some_and(|(one, other)| amounts::nano(one) > amounts::nano(other))
    };
    let text = |value: Option<&Value>| {
        value.map(|amount| amounts::text(amount).into_owned()).unwrap_or_default()
    };
    let mut say = |side: &str, value: Option<&Value>, words: String| {
        let side = limit.get(side);
        errors.invalid(&side.key(name), text(value), words);
    };
    if more(min, max) {
        let words = format!("min value {} is greater than max value {}", text(min), text(max));
        say("min", min, words);
    }
    if more(min, request) {
        let (min, words) = (text(min), text(request));
        let words = format!("min value {min} is greater than default request value {words}");
        say("defaultRequest", request, words);
    }
    if more(request, max) {
        let words = format!(
            "default request value {} is greater than max value {}",
            text(request),
            text(max)
        );
        say("defaultRequest", request, words);
    }
    if more(request, default) {
        let words = format!(
            "default request value {} is greater than default limit value {}",
            text(request),
            text(default)
        );
        say("defaultRequest", request, words);
    }
    if more(min, default) {
        let words =
            format!("min value {} is greater than default value {}", text(min), text(default));
        say("default", min, words);
    }
    if more(default, max) {
        let words =
            format!("default value {} is greater than max value {}", text(default), text(max));
        say("default", max, words);
    }
    let ratio = of("maxLimitRequestRatio");
    let one = Value::from("1");
    if more(Some(&one), ratio) {
        let words = format!("ratio {} is less than 1", text(ratio));
        say("maxLimitRequestRatio", ratio, words);
    }
    if let (Some(ratio), Some(min), Some(max)) = (ratio, min, max) {
        let (asked, most) = (quantity::float(&amounts::text(ratio)), bound(min, max));
        if asked > most {
            let words =
                format!("ratio {} is greater than max/min = {most:.6}", amounts::text(ratio));
            say("maxLimitRequestRatio", Some(ratio), words);
        }
    }
    let differ =
        default.zip(request).is_some_and(|(one, other)| amounts::nano(one) != amounts::nano(other));
    if !amounts::may_overcommit(name) && differ {
        let words = format!(
            "default value {} must equal to defaultRequest value {} in {name}",
            text(default),
            text(request)
        );
        say("defaultRequest", request, words);
    }
}

fn bound(min: &Value, max: &Value) -> f64 {
    quantity::float(&amounts::text(max)) / quantity::float(&amounts::text(min))
}
