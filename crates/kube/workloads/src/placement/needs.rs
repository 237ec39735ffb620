//! Scheduling requirements of a Pod, parsed once.

use mainstay_object::Object;
use mainstay_object::selector::LabelSelector;
use mainstay_quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Amounts by resource name: `cpu` in thousandths, everything else in its own unit.
pub(crate) type Amounts = BTreeMap<Arc<str>, i64>;

/// A host port of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) ip: String,
    pub(crate) protocol: String,
    pub(crate) number: i64,
}

impl Port {
    /// Whether two host ports cannot be on one node.
    pub(crate) fn conflicts(&self, other: &Self) -> bool {
        let all = |ip: &str| ip.is_empty() || ip == "0.0.0.0";
        self.number == other.number
            && self.protocol == other.protocol
            && (self.ip == other.ip || all(&self.ip) || all(&other.ip))
    }
}

/// A term of Pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Term {
    /// None matches no Pod.
    pub(crate) selector: Option<LabelSelector>,
    /// The term applies to Pods of these namespaces, and of those that `namespace_selector`
    /// matches.
    pub(crate) namespaces: Vec<String>,
    pub(crate) namespace_selector: Option<LabelSelector>,
    pub(crate) topology: String,
    pub(crate) weight: i64,
}

impl Term {
    fn of(term: &Value, namespace: &str, weight: i64) -> Self {
        let selector = |field: &str| {
            let selector = term.get(field).filter(|selector| !selector.is_null())?;
            LabelSelector::from_value(selector).ok()
        };
        let mut namespaces: Vec<String> = term
            .get("namespaces")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(ToOwned::to_owned)
            .collect();
        let namespace_selector = selector("namespaceSelector");
        if namespaces.is_empty() && namespace_selector.is_none() {
            namespaces.push(namespace.to_owned());
        }
        Self {
            selector: selector("labelSelector"),
            namespaces,
            namespace_selector,
            topology: text(term, "topologyKey").to_owned(),
            weight,
        }
    }
}

/// The requirements of a Pod, and the resources it takes from its node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Needs {
    pub(crate) requests: Amounts,
    pub(crate) ports: Vec<Port>,
    pub(crate) tolerations: Vec<Value>,
    pub(crate) node_selector: Option<Value>,
    /// `spec.affinity` with only its `nodeAffinity`.
    pub(crate) affinity: Option<Value>,
    /// Required Pod affinity.
    pub(crate) affinity_terms: Vec<Term>,
    /// Required Pod anti-affinity.
    pub(crate) anti_affinity_terms: Vec<Term>,
    /// Preferred Pod affinity, and anti-affinity with a negative weight.
    pub(crate) preferred: Vec<Term>,
    pub(crate) spread: Vec<Value>,
    pub(crate) priority: i64,
    /// Whether the Pod may preempt others.
    pub(crate) may_preempt: bool,
    /// Whether the Pod names this scheduler and has no scheduling gate.
    pub(crate) schedulable: bool,
    /// Whether the Pod has a scheduling gate.
    pub(crate) gated: bool,
}

impl Needs {
    /// Reads the requirements of a Pod.
    pub(crate) fn of(pod: &Object) -> Self {
        let affinity = pod.get(&["spec", "affinity"]);
        let terms = |kind: &str, sign: i64| -> (Vec<Term>, Vec<Term>) {
            let Some(part) = affinity.and_then(|affinity| affinity.get(kind)) else {
                return (Vec::new(), Vec::new());
            };
            let list = |field: &str| {
                part.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
            };
            let namespace = pod.namespace();
            let required = list("requiredDuringSchedulingIgnoredDuringExecution");
            let preferred = list("preferredDuringSchedulingIgnoredDuringExecution");
            (
                required.iter().map(|term| Term::of(term, namespace, 0)).collect(),
                preferred
                    .iter()
                    .filter_map(|preference| {
                        let weight = preference.get("weight")?.as_i64()?;
                        Some(Term::of(preference.get("podAffinityTerm")?, namespace, sign * weight))
                    })
                    .collect(),
            )
        };
        let (affinity_terms, mut preferred) = terms("podAffinity", 1);
        let (anti_affinity_terms, avoided) = terms("podAntiAffinity", -1);
        preferred.extend(avoided);
        let gated = !pod.array(&["spec", "schedulingGates"]).is_empty();
        let scheduler = pod.str(&["spec", "schedulerName"]).unwrap_or("default-scheduler");
        let node_affinity = affinity.and_then(|affinity| affinity.get("nodeAffinity"));
        Self {
            requests: requests(pod),
            ports: ports(pod),
            tolerations: pod.array(&["spec", "tolerations"]).to_vec(),
            node_selector: pod.get(&["spec", "nodeSelector"]).cloned(),
            affinity: node_affinity
                .map(|node_affinity| serde_json::json!({"nodeAffinity": node_affinity})),
            affinity_terms,
            anti_affinity_terms,
            preferred,
            spread: pod.array(&["spec", "topologySpreadConstraints"]).to_vec(),
            priority: pod.i64(&["spec", "priority"]).unwrap_or_default(),
            may_preempt: pod.str(&["spec", "preemptionPolicy"]) != Some("Never"),
            schedulable: scheduler == "default-scheduler" && !gated,
            gated,
        }
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The amounts of a map of quantities, such as `allocatable`.
pub(crate) fn amounts(list: Option<&Value>) -> Amounts {
    let pairs = list.and_then(Value::as_object).into_iter().flatten();
    pairs
        .filter_map(|(name, amount)| {
            let quantity = match amount {
                Value::String(text) => Quantity::parse(text).ok()?,
                other => Quantity::integer(other.as_i64()?),
            };
            Some((Arc::from(name.as_str()), whole(&quantity, name == "cpu")))
        })
        .collect()
}

/// A quantity as an integer, rounded up; in thousandths on request.
fn whole(quantity: &Quantity, thousandths: bool) -> i64 {
    if let Some(number) = quantity.as_integer() {
        return if thousandths { number.saturating_mul(1000) } else { number };
    }
    let scale = if thousandths { 1000.0 } else { 1.0 };
    // Amounts that a float cannot tell apart are beyond those of any node; the subtraction removes
    // the rounding error of the float.
    let scaled = (quantity.as_float() * scale - 1e-6).ceil();
    format!("{scaled:.0}").parse().unwrap_or(i64::MAX)
}

fn ports(pod: &Object) -> Vec<Port> {
    let sidecars = pod
        .array(&["spec", "initContainers"])
        .iter()
        .filter(|container| text(container, "restartPolicy") == "Always");
    pod.array(&["spec", "containers"])
        .iter()
        .chain(sidecars)
        .filter_map(|container| container.get("ports")?.as_array())
        .flatten()
        .filter_map(|port| {
            let number = port.get("hostPort")?.as_i64().filter(|number| *number > 0)?;
            let protocol = text(port, "protocol");
            Some(Port {
                ip: text(port, "hostIP").to_owned(),
                protocol: if protocol.is_empty() { "TCP" } else { protocol }.to_owned(),
                number,
            })
        })
        .collect()
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.entry(Arc::clone(name)).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

fn at_least(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        let most = to.entry(Arc::clone(name)).or_default();
        *most = (*most).max(*amount);
    }
}

/// The requests of a Pod: the sum of its containers and sidecars, or the init container that needs
/// most together with the sidecars before it, whichever is more. Requests of the Pod itself take
/// precedence; the overhead comes on top.
fn requests(pod: &Object) -> Amounts {
    let container_requests = |container: &Value| {
        amounts(container.get("resources").and_then(|resources| resources.get("requests")))
    };
    let mut total = Amounts::new();
    for container in pod.array(&["spec", "containers"]) {
        add(&mut total, &container_requests(container));
    }
    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for container in pod.array(&["spec", "initContainers"]) {
        let mut own = container_requests(container);
        if text(container, "restartPolicy") == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            at_least(&mut starting, &sidecars);
        } else {
            add(&mut own, &sidecars);
            at_least(&mut starting, &own);
        }
    }
    at_least(&mut total, &starting);
    total.extend(amounts(pod.get(&["spec", "resources", "requests"])));
    add(&mut total, &amounts(pod.get(&["spec", "overhead"])));
    total.retain(|_, amount| *amount > 0);
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn taken(spec: &Value) -> Vec<(String, i64)> {
        let pod = Object::from_value(json!({"spec": spec})).unwrap();
        let requests = Needs::of(&pod).requests;
        requests.into_iter().map(|(name, amount)| (name.to_string(), amount)).collect()
    }

    fn container(cpu: &str, policy: Option<&str>) -> Value {
        json!({"resources": {"requests": {"cpu": cpu}}, "restartPolicy": policy})
    }

    #[test]
    fn requests_are_those_of_the_busiest_moment() {
        for (spec, cpu) in [
            (json!({"containers": [container("100m", None), container("1", None)]}), 1100),
            (
                json!({
                    "containers": [container("100m", None)],
                    "initContainers": [container("300m", None), container("200m", None)],
                }),
                300,
            ),
            (
                json!({
                    "containers": [container("100m", None)],
                    "initContainers": [container("50m", Some("Always")), container("300m", None)],
                }),
                350,
            ),
            (
                json!({
                    "containers": [container("100m", None)],
                    "initContainers": [container("50m", Some("Always"))],
                    "overhead": {"cpu": "10m"},
                }),
                160,
            ),
        ] {
            assert_eq!(taken(&spec), [("cpu".to_owned(), cpu)], "{spec}");
        }
        let spec = json!({"containers": [{"resources": {"requests": {"memory": "1Ki"}}}]});
        assert_eq!(taken(&spec), [("memory".to_owned(), 1024)]);
    }

    #[test]
    fn host_ports_conflict_on_overlapping_addresses() {
        let port = |ip: &str, protocol: &str, number: i64| Port {
            ip: ip.to_owned(),
            protocol: protocol.to_owned(),
            number,
        };
        assert!(port("", "TCP", 80).conflicts(&port("10.0.0.1", "TCP", 80)));
        assert!(!port("10.0.0.2", "TCP", 80).conflicts(&port("10.0.0.1", "TCP", 80)));
        assert!(!port("", "TCP", 80).conflicts(&port("", "UDP", 80)));
    }
}
