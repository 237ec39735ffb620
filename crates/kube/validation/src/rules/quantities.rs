//! Resource names and quantities: the valid names in each context, and the rules for their quantities.

use super::super::quantity;
use super::{Errors, NOT_NEGATIVE, Node};
use mainstay_object::names;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

const HUGE_PAGES_PREFIX: &str = "hugepages-";
const BILLION: i128 = 1_000_000_000;

/// Standard resources of containers.
const CONTAINER_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// Resources that count objects.
const COUNT_RESOURCES: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
/// Resources of quotas that are quantities.
const COMPUTE_RESOURCES: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
];

/// The text of a quantity.
pub(in super::super) fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// The quantity in billionths; zero if it is malformed.
pub(in super::super) fn nano(value: &Value) -> i128 {
    quantity::parse_nano(&text(value)).unwrap_or_default()
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

pub(in super::super) fn is_huge_pages(name: &str) -> bool {
    name.starts_with(HUGE_PAGES_PREFIX)
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether limits of the resource may exceed its requests.
pub(in super::super) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// Whether a name without a domain is valid in a quota.
pub(in super::super) fn is_quota_resource(name: &str) -> bool {
    COUNT_RESOURCES.contains(&name)
        || COMPUTE_RESOURCES.contains(&name)
        || is_huge_pages(name)
        || name.starts_with("requests.hugepages-")
}

/// Validates a resource name; returns whether it is valid.
pub(in super::super) fn resource_name(name: &str, at: &Node<'_, '_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    errors.add_problems(at, name, names::qualified_name(name));
    if errors.len() > before {
        return false;
    }
    if !name.contains('/') && !is_quota_resource(name) && name != "storage" {
        errors.invalid(at, name, "must be a standard resource type or fully qualified");
        return false;
    }
    true
}

/// Validates a resource name of a container.
pub(in super::super) fn container_resource_name(
    name: &str,
    at: &Node<'_, '_>,
    errors: &mut Errors,
) {
    resource_name(name, at, errors);
    if !name.contains('/') {
        if !CONTAINER_RESOURCES.contains(&name) && !is_huge_pages(name) {
            errors.invalid(at, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.invalid(at, name, "doesn't follow extended resource name standard");
    }
}

/// Validates a resource name at pod level.
fn pod_resource_name(name: &str, at: &Node<'_, '_>, errors: &mut Errors) {
    if resource_name(name, at, errors) && !matches!(name, "cpu" | "memory") && !is_huge_pages(name)
    {
        errors.unsupported(at, name, &["cpu", HUGE_PAGES_PREFIX, "memory"]);
    }
}

/// Validates a quantity: not negative, and an integer for counts and extended resources.
pub(in super::super) fn resource_quantity(name: &str, at: &Node<'_, '_>, errors: &mut Errors) {
    not_negative(at, errors);
    if (COUNT_RESOURCES.contains(&name) || is_extended(name)) && nano(at.value()) % BILLION != 0 {
        errors.invalid(at, &*text(at.value()), "must be an integer");
    }
}

/// Checks that a quantity is not negative.
pub(in super::super) fn not_negative(at: &Node<'_, '_>, errors: &mut Errors) {
    if nano(at.value()) < 0 {
        errors.invalid(at, &*text(at.value()), NOT_NEGATIVE);
    }
}

/// Checks that a quantity is positive.
pub(in super::super) fn positive(at: &Node<'_, '_>, errors: &mut Errors) {
    if nano(at.value()) <= 0 {
        errors.invalid(at, &*text(at.value()), super::ABOVE_ZERO);
    }
}

/// The owner of resource requirements.
#[derive(Clone, Copy)]
pub(in super::super) enum ResourceOwner {
    Container,
    Pod,
}

/// Validates limits and requests; `claims` are the names of the pod's resource claims.
pub(in super::super) fn requirements(
    node: &Node<'_, '_>,
    owner: ResourceOwner,
    claims: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    let (limits, requests) = (node.get("limits"), node.get("requests"));
    let (mut has_cpu_or_memory, mut has_huge_pages) = (false, false);
    let check_entry = |name: &str, at: &Node<'_, '_>, errors: &mut Errors| {
        match owner {
            ResourceOwner::Container => container_resource_name(name, at, errors),
            ResourceOwner::Pod => pod_resource_name(name, at, errors),
        }
        resource_quantity(name, at, errors);
    };
    for (name, at) in limits.entries() {
        check_entry(name, &at, errors);
        huge_pages(name, &at, errors);
        has_huge_pages |= is_huge_pages(name);
        has_cpu_or_memory |= matches!(name, "cpu" | "memory");
    }
    for (name, at) in requests.entries() {
        check_entry(name, &at, errors);
        let limit = limits.value().get(name);
        match limit {
            Some(limit) => {
                let (request, max) = (nano(at.value()), nano(limit));
                let detail = if request != max && !may_overcommit(name) {
                    Some(format!("must be equal to {name} limit of {}", text(limit)))
                } else if request > max {
                    Some(format!("must be less than or equal to {name} limit of {}", text(limit)))
                } else {
                    None
                };
                if let Some(detail) = detail {
                    errors.invalid(&requests, &*text(at.value()), detail);
                }
            }
            None if !may_overcommit(name) => {
                errors.required(&limits, "Limit must be set for non overcommitable resources");
            }
            None => {}
        }
        huge_pages(name, &at, errors);
        has_huge_pages |= is_huge_pages(name);
        has_cpu_or_memory |= matches!(name, "cpu" | "memory");
    }
    if has_huge_pages && !has_cpu_or_memory {
        errors.forbidden(node, "HugePages require cpu or memory");
    }
    claim_names(&node.get("claims"), claims, errors);
}

fn huge_pages(name: &str, at: &Node<'_, '_>, errors: &mut Errors) {
    let Some(size) = name.strip_prefix(HUGE_PAGES_PREFIX) else { return };
    let size = quantity::parse_nano(size).filter(|size| *size > 0 && size % BILLION == 0);
    if size.is_none_or(|size| nano(at.value()) % size != 0) {
        let quantity = text(at.value());
        let detail = format!("{quantity} is not positive integer multiple of {name}");
        errors.invalid(at, &*quantity, detail);
    }
}

fn claim_names(node: &Node<'_, '_>, valid_names: &BTreeSet<&str>, errors: &mut Errors) {
    let mut detail: Option<String> = None;
    let mut seen: HashSet<String> = HashSet::new();
    // Names of claims with an entry for a single request.
    let mut with_requests: HashSet<&str> = HashSet::new();
    for claim in node.items() {
        let name = claim.text_of("name");
        if name.is_empty() {
            errors.required(&claim, "");
            continue;
        }
        if seen.contains(name) {
            errors.duplicate(&claim, name);
        } else {
            let request = claim.text_of("request");
            let mut key = name.to_owned();
            if !request.is_empty() {
                errors.add_problems(&claim.get("request"), request, names::dns1123_label(request));
                key = format!("{name}/{request}");
            }
            if seen.contains(&key) {
                errors.duplicate(&claim, &*key);
            } else if request.is_empty() && with_requests.contains(name) {
                errors.duplicate(&claim, name);
            }
            if !request.is_empty() {
                // Of an invalid name with a slash the part before it counts.
                with_requests.insert(name.split('/').next().unwrap_or_default());
            } else if let Some((before, _)) = name.split_once('/') {
                with_requests.insert(before);
            }
            seen.insert(key);
        }
        if !valid_names.contains(&name) {
            if errors.is_full() {
                errors.not_found(&claim, name, "");
                continue;
            }
            let detail = detail.get_or_insert_with(|| {
                if valid_names.is_empty() {
                    return "must be one of the names in pod.spec.resourceClaims which is empty"
                        .to_owned();
                }
                let list = valid_names.iter().copied().collect::<Vec<_>>().join(", ");
                format!("must be one of the names in pod.spec.resourceClaims: {list}")
            });
            errors.not_found(&claim, name, detail);
        }
    }
}
