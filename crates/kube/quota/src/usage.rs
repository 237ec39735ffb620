//! Usage: which objects use which resources, and how much.

use crate::amounts::Amounts;
use crate::pod;
use jiff::{SignedDuration, Timestamp};
use mainstay_object::Object;
use mainstay_quantity::Tally;
use serde_json::Value;

/// A kind of objects that quotas count.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CountedKind {
    /// Pods: by number, requests and limits.
    Pods,
    /// Services: by number, node ports and load balancers.
    Services,
    /// `PersistentVolumeClaims`: by number and storage, in total and per storage class.
    Claims,
    /// Any other kind: by number.
    Other {
        /// The resource that counts its objects, such as `count/deployments.apps`.
        count: String,
        /// The older resource name of a few kinds, such as `services`.
        alias: Option<&'static str>,
    },
}

const BY_CLASS: &str = ".storageclass.storage.k8s.io/";
const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";

impl CountedKind {
    /// The kind of a group and its plural name.
    pub fn of(group: &str, plural: &str) -> Self {
        match (group, plural) {
            ("", "pods") => Self::Pods,
            ("", "services") => Self::Services,
            ("", CLAIMS) => Self::Claims,
            ("", _) => Self::Other { count: format!("count/{plural}"), alias: alias(plural) },
            _ => Self::Other { count: format!("count/{plural}.{group}"), alias: None },
        }
    }

    /// The kind that a resource of a quota counts, as group and plural name. None if the resource
    /// counts no objects.
    pub fn counted_by(resource: &str) -> Option<(&str, &str)> {
        if let Some(counted) = resource.strip_prefix("count/") {
            return Some(
                counted.split_once('.').map_or(("", counted), |(plural, group)| (group, plural)),
            );
        }
        let simple = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];
        if simple.contains(&resource) {
            return Some(("", resource));
        }
        let plural = if Self::Pods.uses(resource) {
            "pods"
        } else if Self::Services.uses(resource) {
            "services"
        } else if Self::Claims.uses(resource) {
            CLAIMS
        } else {
            return None;
        };
        Some(("", plural))
    }

    /// Whether objects of this kind can use a resource.
    pub fn uses(&self, resource: &str) -> bool {
        match self {
            Self::Pods => {
                matches!(
                    resource,
                    "count/pods"
                        | "pods"
                        | "cpu"
                        | "memory"
                        | "ephemeral-storage"
                        | "requests.cpu"
                        | "requests.memory"
                        | "requests.ephemeral-storage"
                        | "limits.cpu"
                        | "limits.memory"
                        | "limits.ephemeral-storage"
                ) || resource.starts_with("hugepages-")
                    || resource.strip_prefix("requests.").is_some_and(|name| {
                        name.starts_with("hugepages-") || !is_native(resource) || is_device(name)
                    })
            }
            Self::Services => matches!(
                resource,
                "count/services" | "services" | "services.nodeports" | "services.loadbalancers"
            ),
            Self::Claims => {
                resource == "count/persistentvolumeclaims"
                    || [CLAIMS, STORAGE].into_iter().any(|own| {
                        resource
                            .strip_suffix(own)
                            .is_some_and(|class| class.is_empty() || class.ends_with(BY_CLASS))
                    })
            }
            Self::Other { count, alias } => resource == count || Some(resource) == *alias,
        }
    }

    /// Whether a write can change the used amounts. `old` is the stored object.
    pub fn is_changed_by(&self, subresource: &str, old: Option<&Object>, new: &Object) -> bool {
        match (self, subresource, old) {
            (_, "", None)
            | (Self::Services | Self::Claims, "", Some(_))
            | (Self::Pods, "resize", Some(_)) => true,
            (Self::Pods, "", Some(old)) => ends(old) != ends(new),
            (Self::Claims, "status", Some(old)) => {
                ["allocatedResources", "currentVolumeAttributesClassName", "modifyVolumeStatus"]
                    .iter()
                    .any(|field| old.get(&["status", field]) != new.get(&["status", field]))
            }
            _ => false,
        }
    }

    /// The amounts that an object uses. `now` decides about Pods whose grace period is over.
    pub fn usage(&self, object: &Object, now: Timestamp) -> Amounts {
        let mut used = Amounts::default();
        let one = Tally::count(1);
        match self {
            Self::Pods => {
                used.set("count/pods", one);
                if is_alive(object, now) {
                    used.add(&quota_amounts(&pod::requests(object), &pod::limits(object)));
                }
            }
            Self::Services => {
                used.set("count/services", one);
                used.set("services", one);
                let (node_ports, balancers) = of_service(object);
                used.set("services.nodeports", node_ports);
                used.set("services.loadbalancers", balancers);
            }
            Self::Claims => {
                used.set("count/persistentvolumeclaims", one);
                used.set(CLAIMS, one);
                let storage = storage(object);
                if let Some(storage) = storage {
                    used.set(STORAGE, storage);
                }
                if let Some(class) = class(object) {
                    used.set(format!("{class}{BY_CLASS}{CLAIMS}"), one);
                    if let Some(storage) = storage {
                        used.set(format!("{class}{BY_CLASS}{STORAGE}"), storage);
                    }
                }
            }
            Self::Other { count, alias } => {
                used.set(count.clone(), one);
                if let Some(alias) = alias {
                    used.set(*alias, one);
                }
            }
        }
        used
    }

    /// The containers that lack requests or limits that quotas bound: every container must specify
    /// these. In upstream's words; none if nothing is missing.
    pub(crate) fn missing<'a>(
        &self,
        bounded: impl Iterator<Item = &'a str>,
        object: &Object,
    ) -> Option<String> {
        if *self != Self::Pods || pod::has_own(object) {
            return None;
        }
        let mut messages = Vec::new();
        for resource in bounded.filter(|resource| REQUIRED_RESOURCES.contains(resource)) {
            let containers = object.array(&["spec", "containers"]).iter();
            let all = containers.chain(object.array(&["spec", "initContainers"]));
            let mut lacking: Vec<&str> = all
                .filter(|container| {
                    let part = |side| {
                        Amounts::read(
                            container.get("resources").and_then(|resources| resources.get(side)),
                        )
                    };
                    quota_amounts(&part("requests"), &part("limits")).get(resource).is_none()
                })
                .filter_map(|container| container.get("name").and_then(Value::as_str))
                .collect();
            lacking.sort_unstable();
            lacking.dedup();
            if !lacking.is_empty() {
                messages.push(format!("{resource} for: {}", lacking.join(",")));
            }
        }
        messages.sort_unstable();
        (!messages.is_empty()).then(|| format!("must specify {}", messages.join("; ")))
    }
}

/// The resources that every container must specify if a quota bounds them.
const REQUIRED_RESOURCES: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

fn alias(plural: &str) -> Option<&'static str> {
    Some(match plural {
        "configmaps" => "configmaps",
        "resourcequotas" => "resourcequotas",
        "replicationcontrollers" => "replicationcontrollers",
        "secrets" => "secrets",
        _ => return None,
    })
}

/// Whether a resource is one of Kubernetes' own.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether a resource belongs to a device class.
fn is_device(name: &str) -> bool {
    name.starts_with("deviceclass.resource.kubernetes.io/")
}

fn ends(pod: &Object) -> bool {
    pod.i64(&["spec", "activeDeadlineSeconds"]).is_some_and(|seconds| seconds >= 0)
}

/// Whether a Pod uses resources: it has not ended, and its grace period is not over.
fn is_alive(pod: &Object, now: Timestamp) -> bool {
    if matches!(pod.str(&["status", "phase"]), Some("Failed" | "Succeeded")) {
        return false;
    }
    let grace = pod.i64(&["metadata", "deletionGracePeriodSeconds"]);
    let (Some(deleted), Some(grace)) = (pod.deletion_timestamp(), grace) else { return true };
    deleted.checked_add(SignedDuration::from_secs(grace)).is_ok_and(|end| now <= end)
}

/// Requests and limits under their resource names in quotas.
fn quota_amounts(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut used = Amounts::default();
    used.set("pods", Tally::count(1));
    for (name, amount) in requests.iter() {
        match name {
            "cpu" | "memory" | "ephemeral-storage" => used.set(name, amount),
            _ if name.starts_with("hugepages-") => used.set(name, amount),
            _ if is_device(name) || (!is_native(name) && !name.starts_with("requests.")) => {}
            _ => continue,
        }
        used.set(format!("requests.{name}"), amount);
    }
    for (name, amount) in limits.iter() {
        if matches!(name, "cpu" | "memory" | "ephemeral-storage") {
            used.set(format!("limits.{name}"), amount);
        }
    }
    used
}

/// The node ports and load balancers that a Service uses.
fn of_service(service: &Object) -> (Tally, Tally) {
    let ports = service.array(&["spec", "ports"]);
    let count = |number: usize| Tally::count(u32::try_from(number).unwrap_or(u32::MAX));
    match service.str(&["spec", "type"]) {
        Some("NodePort") => (count(ports.len()), Tally::ZERO),
        Some("LoadBalancer") => {
            let some = service.bool(&["spec", "allocateLoadBalancerNodePorts"]) == Some(false);
            let requested_ports = ports.iter().filter(|port| {
                port.get("nodePort").and_then(Value::as_i64).is_some_and(|number| number != 0)
            });
            (count(if some { requested_ports.count() } else { ports.len() }), Tally::count(1))
        }
        _ => (Tally::ZERO, Tally::ZERO),
    }
}

/// The storage that a claim requests, or has if that is more; in whole bytes.
fn storage(claim: &Object) -> Option<Tally> {
    let read = |path| Amounts::read(claim.get(path)).get("storage");
    let request = read(&["spec", "resources", "requests"])?;
    let most = read(&["status", "allocatedResources"]).filter(|given| *given > request);
    Some(most.unwrap_or(request).rounded_up())
}

fn class(claim: &Object) -> Option<&str> {
    claim
        .annotation("volume.beta.kubernetes.io/storage-class")
        .or_else(|| claim.str(&["spec", "storageClassName"]))
        .filter(|class| !class.is_empty())
}
