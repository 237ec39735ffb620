//! Amounts of resources: which names a place knows, and what their amounts must be.

use super::super::quantity;
use super::{Errors, NOT_NEGATIVE, Node};
use mainstay_object::names;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

const HUGE: &str = "hugepages-";
const BILLION: i128 = 1_000_000_000;

/// What a container may ask for.
const CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
/// What is counted, not measured.
const COUNTED: [&str; 9] = [
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
/// What quotas limit besides what is counted.
const MEASURED: [&str; 10] = [
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

/// The text of an amount.
pub(in super::super) fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// The amount in billionths; zero if it is none.
pub(in super::super) fn nano(value: &Value) -> i128 {
    quantity::nano(&text(value)).unwrap_or_default()
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

pub(in super::super) fn is_huge(name: &str) -> bool {
    name.starts_with(HUGE)
}

fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether more may be promised than there is.
pub(in super::super) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge(name)
}

/// Names that quotas know without a domain.
pub(in super::super) fn is_quota(name: &str) -> bool {
    COUNTED.contains(&name)
        || MEASURED.contains(&name)
        || is_huge(name)
        || name.starts_with("requests.hugepages-")
}

/// The name of any resource; true if it is good so far.
pub(in super::super) fn resource_name(name: &str, at: &Node<'_, '_>, errors: &mut Errors) -> bool {
    let before = errors.len();
    errors.each(at, name, names::qualified_name(name));
    if errors.len() > before {
        return false;
    }
    if !name.contains('/') && !is_quota(name) && name != "storage" {
        errors.invalid(at, name, "must be a standard resource type or fully qualified");
        return false;
    }
    true
}

/// The name of a resource of a container.
pub(in super::super) fn container_name(name: &str, at: &Node<'_, '_>, errors: &mut Errors) {
    resource_name(name, at, errors);
    if !name.contains('/') {
        if !CONTAINER.contains(&name) && !is_huge(name) {
            errors.invalid(at, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.invalid(at, name, "doesn't follow extended resource name standard");
    }
}

/// The name of a resource of a whole pod.
fn pod_name(name: &str, at: &Node<'_, '_>, errors: &mut Errors) {
    if resource_name(name, at, errors) && !matches!(name, "cpu" | "memory") && !is_huge(name) {
        errors.unsupported(at, name, &["cpu", HUGE, "memory"]);
    }
}

/// An amount: not negative, and whole where things are counted.
pub(in super::super) fn amount(name: &str, at: &Node<'_, '_>, errors: &mut Errors) {
    not_negative(at, errors);
    if (COUNTED.contains(&name) || is_extended(name)) && nano(at.value()) % BILLION != 0 {
        errors.invalid(at, &*text(at.value()), "must be an integer");
    }
}

/// An amount that is not negative.
pub(in super::super) fn not_negative(at: &Node<'_, '_>, errors: &mut Errors) {
    if nano(at.value()) < 0 {
        errors.invalid(at, &*text(at.value()), NOT_NEGATIVE);
    }
}

/// An amount that is positive.
pub(in super::super) fn positive(at: &Node<'_, '_>, errors: &mut Errors) {
    if nano(at.value()) <= 0 {
        errors.invalid(at, &*text(at.value()), super::ABOVE_ZERO);
    }
}

/// What a container, a pod or an overhead asks for.
#[derive(Clone, Copy)]
pub(in super::super) enum Asker {
    Container,
    Pod,
}

/// Limits and requests; `claims` are the names that the pod's claims have.
pub(in super::super) fn requirements(
    node: &Node<'_, '_>,
    asker: Asker,
    claims: &BTreeSet<&str>,
    errors: &mut Errors,
) {
    let (limits, requests) = (node.get("limits"), node.get("requests"));
    let (mut plain, mut huge) = (false, false);
    let one = |name: &str, at: &Node<'_, '_>, errors: &mut Errors| {
        match asker {
            Asker::Container => container_name(name, at, errors),
            Asker::Pod => pod_name(name, at, errors),
        }
        amount(name, at, errors);
    };
    for (name, at) in limits.entries() {
        one(name, &at, errors);
        huge_pages(name, &at, errors);
        huge |= is_huge(name);
        plain |= matches!(name, "cpu" | "memory");
    }
    for (name, at) in requests.entries() {
        one(name, &at, errors);
        let limit = limits.value().get(name);
        match limit {
            Some(limit) => {
                let (asked, most) = (nano(at.value()), nano(limit));
                let words = if asked != most && !may_overcommit(name) {
                    Some(format!("must be equal to {name} limit of {}", text(limit)))
                } else if asked > most {
                    Some(format!("must be less than or equal to {name} limit of {}", text(limit)))
                } else {
                    None
                };
                if let Some(words) = words {
                    errors.invalid(&requests, &*text(at.value()), words);
                }
            }
            None if !may_overcommit(name) => {
                errors.required(&limits, "Limit must be set for non overcommitable resources");
            }
            None => {}
        }
        huge_pages(name, &at, errors);
        huge |= is_huge(name);
        plain |= matches!(name, "cpu" | "memory");
    }
    if huge && !plain {
        errors.forbidden(node, "HugePages require cpu or memory");
    }
    claim_names(&node.get("claims"), claims, errors);
}

fn huge_pages(name: &str, at: &Node<'_, '_>, errors: &mut Errors) {
    let Some(size) = name.strip_prefix(HUGE) else { return };
    let size = quantity::nano(size).filter(|size| *size > 0 && size % BILLION == 0);
    if size.is_none_or(|size| nano(at.value()) % size != 0) {
        let amount = text(at.value());
        let words = format!("{amount} is not positive integer multiple of {name}");
        errors.invalid(at, &*amount, words);
    }
}

fn claim_names(node: &Node<'_, '_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let mut words: Option<String> = None;
    let mut seen: HashSet<String> = HashSet::new();
    // Names of claims of which requests were seen.
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
                errors.each(&claim.get("request"), request, names::dns1123_label(request));
                key = format!("{name}/{request}");
            }
            if seen.contains(&key) {
                errors.duplicate(&claim, &*key);
            } else if request.is_empty() && with_requests.contains(name) {
                errors.duplicate(&claim, name);
            }
            if !request.is_empty() {
                // A name with a slash in it, which is none, counts up to there.
                with_requests.insert(name.split('/').next().unwrap_or_default());
            } else if let Some((before, _)) = name.split_once('/') {
                with_requests.insert(before);
            }
            seen.insert(key);
        }
        if !known.contains(&name) {
            if errors.is_full() {
                errors.not_found(&claim, name, "");
                continue;
            }
            let words = words.get_or_insert_with(|| {
                if known.is_empty() {
                    return "must be one of the names in pod.spec.resourceClaims which is empty"
                        .to_owned();
                }
                let list = known.iter().copied().collect::<Vec<_>>().join(", ");
                format!("must be one of the names in pod.spec.resourceClaims: {list}")
            });
            errors.not_found(&claim, name, words);
        }
    }
}
