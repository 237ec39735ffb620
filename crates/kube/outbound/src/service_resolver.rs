//! From a Service to the endpoint that is called.
//!
//! Endpoints that are ready are taken first. One that stands for a pod is that pod: the nodes are
//! simulated, so nothing listens at its address. Every other endpoint is an address of the host or
//! its network.

use mainstay_object::Object;
use mainstay_object::selector::LabelSelector;
use mainstay_store::Store;
use serde_json::Value;

/// What is called.
#[derive(Debug)]
pub enum Target {
    /// A host and port.
    Host(String, u16),
    /// A simulated pod.
    Pod(Box<Object>),
}

/// A Service leads nowhere, in the words of the original where it looks for endpoints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// There is none of the name.
    #[error("service {name:?} not found")]
    NotFound {
        /// The name.
        name: String,
    },
    /// It does not have the port.
    #[error("no service port {port} found for service {name:?}")]
    NoPort {
        /// Its name.
        name: String,
        /// The port.
        port: u16,
    },
    /// Nothing is behind it.
    #[error("no endpoints available for service {name:?}")]
    NoEndpoints {
        /// Its name.
        name: String,
    },
}

/// The endpoint of a Service's port.
pub fn service(
    store: &Store,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<Target, ServiceError> {
    let service_name = || name.to_owned();
    let Some(stored) = store.find("services", namespace, name) else {
        return Err(ServiceError::NotFound { name: service_name() });
    };
    let service = stored.object();
    if service.str(&["spec", "type"]) == Some("ExternalName") {
        let host = service.str(&["spec", "externalName"]).unwrap_or_default();
        return Ok(Target::Host(host.to_owned(), port));
    }
    let ports = service.array(&["spec", "ports"]);
    let named = |one: &&Value| one.get("port").and_then(Value::as_u64) == Some(u64::from(port));
    let Some(wanted) = ports.iter().find(named) else {
        return Err(ServiceError::NoPort { name: service_name(), port });
    };
    let port_name = wanted.get("name").and_then(Value::as_str).unwrap_or_default();
    of_slices(store, namespace, name, port_name)
        .or_else(|| of_endpoints(store, namespace, name, port_name))
        .or_else(|| of_pods(store, namespace, &service))
        .ok_or_else(|| ServiceError::NoEndpoints { name: service_name() })
}

/// A pod that an endpoint stands for, if it does.
fn pod_of(store: &Store, namespace: &str, endpoint: &Value) -> Option<Object> {
    let reference = endpoint.get("targetRef")?;
    if reference.get("kind").and_then(Value::as_str) != Some("Pod") {
        return None;
    }
    let name = reference.get("name").and_then(Value::as_str)?;
    store.find("pods", namespace, name).map(|stored| stored.object())
}

fn number_of(ports: &[Value], name: &str) -> Option<u16> {
    let named =
        |port: &&Value| port.get("name").and_then(Value::as_str).unwrap_or_default() == name;
    let number = ports.iter().find(named)?.get("port").and_then(Value::as_u64)?;
    u16::try_from(number).ok()
}

fn of_slices(store: &Store, namespace: &str, name: &str, port: &str) -> Option<Target> {
    const LABEL: &str = "kubernetes.io/service-name";
    let mut unready = None;
    for stored in store.list("discovery.k8s.io/endpointslices", Some(namespace)).iter() {
        let slice = stored.object();
        if !slice.labels().any(|(key, value)| key == LABEL && value == name) {
            continue;
        }
        let Some(number) = number_of(slice.array(&["ports"]), port) else { continue };
        for endpoint in slice.array(&["endpoints"]) {
            let Some(address) = endpoint.pointer("/addresses/0").and_then(Value::as_str) else {
                continue;
            };
            let target = || match pod_of(store, namespace, endpoint) {
                Some(pod) => Target::Pod(Box::new(pod)),
                None => Target::Host(address.to_owned(), number),
            };
            if endpoint.pointer("/conditions/ready").and_then(Value::as_bool).unwrap_or(true) {
                return Some(target());
            }
            let serving = endpoint.pointer("/conditions/serving").and_then(Value::as_bool);
            if serving == Some(true) && unready.is_none() {
                unready = Some(target());
            }
        }
    }
    unready
}

fn of_endpoints(store: &Store, namespace: &str, name: &str, port: &str) -> Option<Target> {
    let endpoints = store.find("endpoints", namespace, name)?.object();
    for subset in endpoints.array(&["subsets"]) {
        let ports = subset.get("ports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let Some(number) = number_of(ports, port) else { continue };
        let first = subset.get("addresses").and_then(Value::as_array).and_then(|all| all.first());
        let Some(address) = first else { continue };
        if let Some(pod) = pod_of(store, namespace, address) {
            return Some(Target::Pod(Box::new(pod)));
        }
        if let Some(ip) = address.get("ip").and_then(Value::as_str) {
            return Some(Target::Host(ip.to_owned(), number));
        }
    }
    None
}

/// A ready pod that the Service selects: its endpoints come a moment after it.
fn of_pods(store: &Store, namespace: &str, service: &Object) -> Option<Target> {
    let pairs = service.get(&["spec", "selector"]).and_then(Value::as_object)?;
    if pairs.is_empty() {
        return None;
    }
    let pairs = pairs.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    let selector = LabelSelector::from_pairs(pairs);
    let pods = store.list("pods", Some(namespace));
    let ready = |pod: &Object| {
        let conditions = pod.array(&["status", "conditions"]);
        !pod.is_terminating()
            && conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    let mut found = pods.iter().filter(|pod| pod.matches(&selector)).map(|pod| pod.object());
    found.find(ready).map(|pod| Target::Pod(Box::new(pod)))
}
