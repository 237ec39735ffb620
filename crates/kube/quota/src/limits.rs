//! Defaults and bounds by `LimitRanges`.

use crate::amounts::Amounts;
use crate::pod;
use mainstay_object::Object;
use mainstay_quantity::Tally;
use serde_json::{Value, json};

/// The annotation that lists the defaults that were filled in.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Above this, amounts are compared in units and not in thousandths.
const MAX_THOUSANDTHS: i128 = (i64::MAX / 1000) as i128;

/// Fills in the defaults for the containers of a Pod, and lists them in an annotation.
pub fn fill_in(range: &Object, pod: &mut Object) {
    let (mut requests, mut limits) = (Amounts::default(), Amounts::default());
    for limit in range.array(&["spec", "limits"]).iter().filter(|limit| is_for(limit, "Container"))
    {
        replace(&mut requests, &Amounts::read(limit.get("defaultRequest")));
        if !mainstay_fault::is_on("defaults-of-limits-are-missing") {
            replace(&mut limits, &Amounts::read(limit.get("default")));
        }
    }
    let mut defaulted = Vec::new();
    for (list, container_kind) in
        [("containers", "container"), ("initContainers", "init container")]
    {
        let mut containers = pod.array(&["spec", list]).to_vec();
        for container in &mut containers {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            for (side, defaults, word) in
                [("requests", &requests, "request"), ("limits", &limits, "limit")]
            {
                let set = complete(container, side, defaults);
                if !set.is_empty() {
                    defaulted
                        .push(format!("{} {word} for {container_kind} {name}", set.join(", ")));
                }
            }
        }
        if !containers.is_empty() {
            pod.set(&["spec", list], containers.into());
        }
    }
    if !defaulted.is_empty() {
        pod.set_annotation(ANNOTATION, format!("LimitRanger plugin set: {}", defaulted.join("; ")));
    }
}

fn replace(all: &mut Amounts, by: &Amounts) {
    for (name, amount) in by.iter() {
        all.set(name, amount);
    }
}

/// Fills in missing amounts of a container; returns their names.
fn complete(container: &mut Value, side: &str, defaults: &Amounts) -> Vec<String> {
    let mut set = Vec::new();
    for (name, amount) in defaults.iter() {
        let Some(container) = container.as_object_mut() else { break };
        let resources = container.entry("resources").or_insert_with(|| json!({}));
        let Some(resources) = resources.as_object_mut() else { break };
        let list = resources.entry(side).or_insert_with(|| json!({}));
        let Some(list) = list.as_object_mut() else { break };
        if !list.contains_key(name) {
            list.insert(name.to_owned(), amount.to_string().into());
            set.push(name.to_owned());
        }
    }
    set
}

fn is_for(limit: &Value, kind: &str) -> bool {
    limit.get("type").and_then(Value::as_str) == Some(kind)
}

/// The bounds that a Pod violates, in the words of the plugin `LimitRanger`, in order.
pub fn broken_by_pod(range: &Object, pod: &Object) -> Vec<String> {
    let mut broken = Vec::new();
    for limit in range.array(&["spec", "limits"]) {
        if is_for(limit, "Container") {
            let containers = pod.array(&["spec", "containers"]).iter();
            for container in containers.chain(pod.array(&["spec", "initContainers"])) {
                let part = |side| {
                    Amounts::read(
                        container.get("resources").and_then(|resources| resources.get(side)),
                    )
                };
                bounds(limit, "Container", &part("requests"), &part("limits"), &mut broken);
            }
        } else if is_for(limit, "Pod") {
            let (requests, limits) = (pod::specified_requests(pod), pod::specified_limits(pod));
            bounds(limit, "Pod", &requests, &limits, &mut broken);
        }
    }
    broken
}

/// The bounds on storage requests that a `PersistentVolumeClaim` violates.
pub fn broken_by_claim(range: &Object, claim: &Object) -> Vec<String> {
    const TYPE: &str = "PersistentVolumeClaim";
    let mut broken = Vec::new();
    let requests = Amounts::read(claim.get(&["spec", "resources", "requests"]));
    for limit in range.array(&["spec", "limits"]).iter().filter(|limit| is_for(limit, TYPE)) {
        for (name, min) in Amounts::read(limit.get("min")).iter() {
            broken.extend(violates_min(TYPE, name, min, requests.get(name), None));
        }
        for (name, max) in Amounts::read(limit.get("max")).iter() {
            let start = format!("maximum {name} usage per {TYPE} is {max}");
            broken.extend(match requests.get(name) {
                None => Some(format!("{start}.  No request is specified")),
                Some(request) if is_less(max, request) => {
                    Some(format!("{start}, but request is {request}"))
                }
                Some(_) => None,
            });
        }
    }
    broken
}

fn bounds(
    limit: &Value,
    kind: &str,
    requests: &Amounts,
    limits: &Amounts,
    broken: &mut Vec<String>,
) {
    let read = |field| Amounts::read(limit.get(field));
    for (name, min) in read("min").iter() {
        broken.extend(violates_min(kind, name, min, requests.get(name), limits.get(name)));
    }
    for (name, max) in read("max").iter() {
        broken.extend(violates_max(kind, name, max, requests.get(name), limits.get(name)));
    }
    for (name, max) in read("maxLimitRequestRatio").iter() {
        broken.extend(violates_ratio(kind, name, max, requests.get(name), limits.get(name)));
    }
}

fn violates_min(
    kind: &str,
    name: &str,
    min: Tally,
    request: Option<Tally>,
    limit: Option<Tally>,
) -> Option<String> {
    let start = format!("minimum {name} usage per {kind} is {min}");
    match (request, limit) {
        (None, _) => Some(format!("{start}.  No request is specified")),
        (Some(request), _) if is_less(request, min) => {
            Some(format!("{start}, but request is {request}"))
        }
        (_, Some(limit)) if is_less(limit, min) => Some(format!("{start}, but limit is {limit}")),
        _ => None,
    }
}

fn violates_max(
    kind: &str,
    name: &str,
    max: Tally,
    request: Option<Tally>,
    limit: Option<Tally>,
) -> Option<String> {
    let start = format!("maximum {name} usage per {kind} is {max}");
    match (limit, request) {
        (None, _) => Some(format!("{start}.  No limit is specified")),
        (Some(limit), _) if is_less(max, limit) => Some(format!("{start}, but limit is {limit}")),
        (_, Some(request)) if is_less(max, request) => {
            Some(format!("{start}, but request is {request}"))
        }
        _ => None,
    }
}

fn violates_ratio(
    kind: &str,
    name: &str,
    max: Tally,
    request: Option<Tally>,
    limit: Option<Tally>,
) -> Option<String> {
    let start = format!("{name} max limit to request ratio per {kind} is {max}");
    let Some(request) = request.filter(|request| request.sign() != 0) else {
        return Some(format!("{start}, but no request is specified or request is 0"));
    };
    let Some(limit) = limit.filter(|limit| limit.sign() != 0) else {
        return Some(format!("{start}, but no limit is specified or limit is 0"));
    };
    let (limit, request) =
        if fits_thousandths(limit) && fits_thousandths(request) && fits_thousandths(max) {
            (limit.thousandths(), request.thousandths())
        } else {
            (limit.units(), request.units())
        };
    #[expect(clippy::cast_precision_loss, reason = "ratios are floats in the original, too")]
    let (ratio, bound) = (limit as f64 / request as f64, max.thousandths() as f64 / 1000.0);
    (ratio > bound && !mainstay_fault::is_on("ratios-are-not-held"))
        .then(|| format!("{start}, but provided ratio is {ratio:.6}"))
}

/// Whether an amount can be expressed in thousandths.
const fn fits_thousandths(amount: Tally) -> bool {
    amount.units() <= MAX_THOUSANDTHS
}

/// Whether one amount is less than another, at a precision that both can express.
const fn is_less(one: Tally, other: Tally) -> bool {
    if fits_thousandths(one) && fits_thousandths(other) {
        one.thousandths() < other.thousandths()
    } else {
        one.units() < other.units()
    }
}
