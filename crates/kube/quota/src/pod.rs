//! Requests and limits of Pods.

use crate::amounts::Amounts;
use mainstay_object::Object;
use serde_json::Value;

/// The requests or the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Requests,
    Limits,
}

impl Side {
    const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }
}

/// The requests of a Pod: the sum of all containers that run together, or the init container that
/// needs the most. The Pod's own requests take the place of theirs; the overhead and the amounts
/// that the node has already granted count as well.
pub fn requests(pod: &Object) -> Amounts {
    let mut sum = of_containers(pod, Side::Requests, true);
    replace_by_own(pod, Side::Requests, is_own, &mut sum);
    sum.add(&overhead(pod));
    sum
}

/// The limits of a Pod, by the same rules.
pub fn limits(pod: &Object) -> Amounts {
    let mut sum = of_containers(pod, Side::Limits, true);
    replace_by_own(pod, Side::Limits, is_own, &mut sum);
    // A resource without a limit stays without one.
    let limited =
        overhead(pod).retain_names(|name| sum.get(name).is_some_and(|amount| amount.sign() != 0));
    sum.add(&limited);
    sum
}

/// The requests in the spec of a Pod without overhead, as `LimitRanges` check them.
pub(crate) fn specified_requests(pod: &Object) -> Amounts {
    specified(pod, Side::Requests)
}

/// The limits in the spec of a Pod; as [`specified_requests`].
pub(crate) fn specified_limits(pod: &Object) -> Amounts {
    specified(pod, Side::Limits)
}

fn specified(pod: &Object, side: Side) -> Amounts {
    let mut sum = of_containers(pod, side, false);
    replace_by_own(pod, side, |name| matches!(name, "cpu" | "memory"), &mut sum);
    sum
}

/// Whether a Pod has requests or limits of its own that replace those of its containers.
pub fn has_own(pod: &Object) -> bool {
    [Side::Requests, Side::Limits]
        .into_iter()
        .any(|side| Amounts::read(pod.get(&["spec", "resources", side.name()])).names().any(is_own))
}

/// Whether a Pod can request the resource as a whole.
fn is_own(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

fn replace_by_own(pod: &Object, side: Side, may: impl Fn(&str) -> bool, sum: &mut Amounts) {
    let own = Amounts::read(pod.get(&["spec", "resources", side.name()]));
    for (name, amount) in own.iter().filter(|(name, _)| may(name)) {
        sum.set(name, amount);
    }
}

fn overhead(pod: &Object) -> Amounts {
    Amounts::read(pod.get(&["spec", "overhead"]))
}

fn of_containers(pod: &Object, side: Side, with_status: bool) -> Amounts {
    let mut sum = Amounts::default();
    for container in pod.array(&["spec", "containers"]) {
        let status = with_status.then(|| status(pod, "containerStatuses", container)).flatten();
        sum.add(&of_container(pod, side, container, status));
    }
    let (mut sidecars, mut most) = (Amounts::default(), Amounts::default());
    for container in pod.array(&["spec", "initContainers"]) {
        let is_sidecar = container.get("restartPolicy").and_then(Value::as_str) == Some("Always");
        let status = (with_status && is_sidecar)
            .then(|| status(pod, "initContainerStatuses", container))
            .flatten();
        let mut own = of_container(pod, side, container, status);
        if is_sidecar {
            sum.add(&own);
            sidecars.add(&own);
            own = sidecars.clone();
        } else {
            own.add(&sidecars);
        }
        most.raise(&own);
    }
    sum.raise(&most);
    sum
}

/// The amounts of a container: those it specifies or those it has been allocated, whichever are
/// more. The specified ones do not count while the node reports the resize as infeasible.
fn of_container(pod: &Object, side: Side, container: &Value, status: Option<&Value>) -> Amounts {
    let part = |value: &Value| {
        Amounts::read(value.get("resources").and_then(|resources| resources.get(side.name())))
    };
    let wanted = part(container);
    let Some(status) =
        status.filter(|status| status.get("resources").is_some_and(Value::is_object))
    else {
        return wanted;
    };
    let mut allocated = part(status);
    if side == Side::Requests {
        allocated.raise(&Amounts::read(status.get("allocatedResources")));
    }
    if !is_resize_infeasible(pod) {
        allocated.raise(&wanted);
    }
    allocated
}

fn is_resize_infeasible(pod: &Object) -> bool {
    pod.array(&["status", "conditions"]).iter().any(|condition| {
        let text = |field| condition.get(field).and_then(Value::as_str);
        text("type") == Some("PodResizePending") && text("reason") == Some("Infeasible")
    })
}

fn status<'a>(pod: &'a Object, list: &str, container: &Value) -> Option<&'a Value> {
    let name = container.get("name")?;
    pod.array(&["status", list]).iter().find(|status| status.get("name") == Some(name))
}

/// Whether the quality-of-service class of a Pod is `BestEffort`.
pub fn is_best_effort(pod: &Object) -> bool {
    if let Some(class) = pod.str(&["status", "qosClass"]).filter(|class| !class.is_empty()) {
        return class == "BestEffort";
    }
    let has_cpu_or_memory = |resources: Option<&Value>| {
        [Side::Requests, Side::Limits].into_iter().any(|side| {
            let amounts = Amounts::read(resources.and_then(|resource| resource.get(side.name())));
            amounts
                .iter()
                .any(|(name, amount)| matches!(name, "cpu" | "memory") && amount.sign() > 0)
        })
    };
    if pod.get(&["spec", "resources"]).is_some() {
        return !has_cpu_or_memory(pod.get(&["spec", "resources"]));
    }
    let containers = pod.array(&["spec", "containers"]).iter();
    let all = containers.chain(pod.array(&["spec", "initContainers"]));
    !all.into_iter().any(|container| has_cpu_or_memory(container.get("resources")))
}
