//! Service resolver: selects the endpoint of a Service that a call uses.
//!
//! Ready endpoints come first. An endpoint of a pod resolves to the pod, because nodes are simulated
//! and nothing listens at its address. Each other endpoint is an address of the host or its network.

use mainstay_object::Object;
use mainstay_object::selector::LabelSelector;
use mainstay_store::Store;
use serde_json::Value;

/// An endpoint of a Service.
#[derive(Debug)]
pub enum ServiceEndpoint {
    /// A host and port.
    Host(String, u16),
    /// A simulated pod.
    Pod(Box<Object>),
}

/// A Service has no endpoint; the messages are those of upstream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// The Service does not exist.
    #[error("service {name:?} not found")]
    NotFound {
        /// The name.
        name: String,
    },
    /// The Service does not have the port.
    #[error("no service port {port} found for service {name:?}")]
    NoPort {
        /// Its name.
        name: String,
        /// The port.
        port: u16,
    },
    /// The Service has no endpoint.
    #[error("no endpoints available for service {name:?}")]
    NoEndpoints {
        /// Its name.
        name: String,
    },
}

/// The endpoint for a port of a Service.
pub fn resolve_service(
    store: &Store,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<ServiceEndpoint, ServiceError> {
    let service_name = || name.to_owned();
    let Some(stored) = store.find("services", namespace, name) else {
        return Err(ServiceError::NotFound { name: service_name() });
    };
    let service = stored.object();
    if service.str(&["spec", "type"]) == Some("ExternalName") {
        let host = service.str(&["spec", "externalName"]).unwrap_or_default();
        return Ok(ServiceEndpoint::Host(host.to_owned(), port));
    }
    let ports = service.array(&["spec", "ports"]);
    let has_number = |service_port: &&Value| {
        service_port.get("port").and_then(Value::as_u64) == Some(u64::from(port))
    };
    let Some(service_port) = ports.iter().find(has_number) else {
        return Err(ServiceError::NoPort { name: service_name(), port });
    };
    let port_name = service_port.get("name").and_then(Value::as_str).unwrap_or_default();
    from_slices(store, namespace, name, port_name)
        .or_else(|| from_endpoints(store, namespace, name, port_name))
        .or_else(|| from_pods(store, namespace, &service))
        .ok_or_else(|| ServiceError::NoEndpoints { name: service_name() })
}

/// The pod that an endpoint refers to, if any.
fn pod_of(store: &Store, namespace: &str, endpoint: &Value) -> Option<Object> {
    let reference = endpoint.get("targetRef")?;
    if reference.get("kind").and_then(Value::as_str) != Some("Pod") {
        return None;
    }
    let name = reference.get("name").and_then(Value::as_str)?;
    store.find("pods", namespace, name).map(|stored| stored.object())
}

fn port_number(ports: &[Value], name: &str) -> Option<u16> {
    let has_name =
        |port: &&Value| port.get("name").and_then(Value::as_str).unwrap_or_default() == name;
    let number = ports.iter().find(has_name)?.get("port").and_then(Value::as_u64)?;
    u16::try_from(number).ok()
}

fn from_slices(store: &Store, namespace: &str, name: &str, port: &str) -> Option<ServiceEndpoint> {
    const LABEL: &str = "kubernetes.io/service-name";
    let mut serving = None;
    for stored in store.list("discovery.k8s.io/endpointslices", Some(namespace)).iter() {
        let slice = stored.object();
        if !slice.labels().any(|(key, value)| key == LABEL && value == name) {
            continue;
        }
        let Some(number) = port_number(slice.array(&["ports"]), port) else { continue };
        for endpoint in slice.array(&["endpoints"]) {
            let Some(address) = endpoint.pointer("/addresses/0").and_then(Value::as_str) else {
                continue;
            };
            let resolve = || match pod_of(store, namespace, endpoint) {
                Some(pod) => ServiceEndpoint::Pod(Box::new(pod)),
                None => ServiceEndpoint::Host(address.to_owned(), number),
            };
            if endpoint.pointer("/conditions/ready").and_then(Value::as_bool).unwrap_or(true) {
                return Some(resolve());
            }
            let is_serving = endpoint.pointer("/conditions/serving").and_then(Value::as_bool);
            if is_serving == Some(true) && serving.is_none() {
                serving = Some(resolve());
            }
        }
    }
    serving
}

fn from_endpoints(
    store: &Store,
    namespace: &str,
    name: &str,
    port: &str,
) -> Option<ServiceEndpoint> {
    let endpoints = store.find("endpoints", namespace, name)?.object();
    for subset in endpoints.array(&["subsets"]) {
        let ports = subset.get("ports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let Some(number) = port_number(ports, port) else { continue };
        let first = subset
            .get("addresses")
            .and_then(Value::as_array)
            .and_then(|addresses| addresses.first());
        let Some(address) = first else { continue };
        if let Some(pod) = pod_of(store, namespace, address) {
            return Some(ServiceEndpoint::Pod(Box::new(pod)));
        }
        if let Some(ip) = address.get("ip").and_then(Value::as_str) {
            return Some(ServiceEndpoint::Host(ip.to_owned(), number));
        }
    }
    None
}

/// A ready pod that the Service selects. Endpoints of a new pod appear a moment after it.
fn from_pods(store: &Store, namespace: &str, service: &Object) -> Option<ServiceEndpoint> {
    let pairs = service.get(&["spec", "selector"]).and_then(Value::as_object)?;
    if pairs.is_empty() {
        return None;
    }
    let pairs = pairs.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    let selector = LabelSelector::from_pairs(pairs);
    let pods = store.list("pods", Some(namespace));
    let is_ready = |pod: &Object| {
        let conditions = pod.array(&["status", "conditions"]);
        !pod.is_terminating()
            && conditions
                .iter()
                .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
    };
    let mut selected = pods.iter().filter(|pod| pod.matches(&selector)).map(|pod| pod.object());
    selected.find(is_ready).map(|pod| ServiceEndpoint::Pod(Box::new(pod)))
}
