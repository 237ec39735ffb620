//! Endpoints mirroring: `EndpointSlices` for Endpoints that a client writes for a Service without a
//! selector.
//!
//! There is one slice for each list of ports and address family, owned by the Endpoints and named
//! after them. Endpoints of leader elections, and those with the label
//! `endpointslice.kubernetes.io/skip-mirror`, are left alone.

use super::{MANAGED_BY, SERVICE_NAME, SLICE, replace_slices};
use crate::Started;
use crate::common::{Context, controller_reference_value, is_object_gone};
use mainstay_client::{Action, Cache, Controller, Error, Reconciler, Selection};
use mainstay_object::{NamespacedName, Object, builtin, fnv};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;

const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
const ELECTION: &str = "control-plane.alpha.kubernetes.io/leader";
/// Annotations of Endpoints that their slices do not inherit.
const NOT_MIRRORED: [&str; 2] = [
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// Starts the controller.
pub(super) fn start(context: &Context, started: &mut Started) {
    let controller = Controller::new("endpoints-mirror");
    // Service, Endpoints and slices with one name share a key.
    let queue = controller.queue();
    let services = Cache::builder(Selection::all(builtin::SERVICE), |service| {
        service.get(&["spec", "selector"]).is_none().then_some(())
    })
    .subscribe(move |change| queue.add(change.key.clone()))
    .start(&context.cluster, context.stop.clone());
    let queue = controller.queue();
    let endpoints = Cache::builder(Selection::all(builtin::ENDPOINTS), |endpoints| {
        is_mirrored(endpoints).then(|| Arc::<str>::from(endpoints.resource_version()))
    })
    .subscribe(move |change| queue.add(change.key.clone()))
    .start(&context.cluster, context.stop.clone());
    let queue = controller.queue();
    let slices = Cache::builder(
        Selection::all(builtin::ENDPOINT_SLICE).labels(format!("{MANAGED_BY}={MANAGER}")),
        |slice| {
            let service = slice.label(SERVICE_NAME)?.to_owned();
            Some((service, Arc::<str>::from(slice.resource_version())))
        },
    )
    .subscribe(move |change| {
        for (service, _) in
            [change.before, change.after].into_iter().flatten().map(|slice| &**slice)
        {
            queue.add(NamespacedName::new(Arc::clone(&change.key.namespace), service.as_str()));
        }
    })
    .start(&context.cluster, context.stop.clone());
    let controller = controller.reads(&services).reads(&endpoints).reads(&slices);
    let mirror = Mirror { context: context.clone(), services, endpoints, slices };
    started.controller(controller.start(mirror, context.stop.clone()));
}

/// Whether Endpoints are mirrored. Those that the Service controller writes are not: their Service
/// has slices.
fn is_mirrored(endpoints: &Object) -> bool {
    endpoints.label(SKIP) != Some("true") && endpoints.annotation(ELECTION).is_none()
}

struct Mirror {
    context: Context,
    /// Services without a selector.
    services: Cache<()>,
    endpoints: Cache<Arc<str>>,
    slices: Cache<(String, Arc<str>)>,
}

impl Reconciler for Mirror {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        match self.run(key).await {
            Err(error) if is_object_gone(&error) || error.is_namespace_terminating() => {
                Ok(Action::Done)
            }
            other => other.map(|()| Action::Done),
        }
    }
}

impl Mirror {
    async fn run(&self, key: &NamespacedName) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        let mut new_slices = Vec::new();
        if self.services.get(key).is_some() && self.endpoints.get(key).is_some() {
            let live = cluster.find(&builtin::ENDPOINTS, key.namespace(), &key.name).await?;
            new_slices = live
                .filter(|live| !live.is_terminating())
                .map_or_else(Vec::new, |live| slices(&live));
        }
        replace_slices(cluster, key, &self.slices, &new_slices).await
    }
}

/// Ports, the address family, endpoints.
type Group = (Vec<Value>, &'static str, Vec<Value>);

/// The slices that mirror Endpoints.
fn slices(endpoints: &Object) -> Vec<Object> {
    let mut groups: Vec<Group> = Vec::new();
    for subset in endpoints.array(&["subsets"]) {
        let list = |field: &str| subset.get(field).and_then(Value::as_array).into_iter().flatten();
        let ports: Vec<Value> = list("ports").map(port).collect();
        let addresses = list("addresses").map(|address| (address, true));
        let all = addresses.chain(list("notReadyAddresses").map(|address| (address, false)));
        for (family, entry) in
            all.filter_map(|(address, ready)| endpoint(address, ready)).take(SLICE)
        {
            match groups.iter_mut().find(|group| group.0 == ports && group.1 == family) {
                Some(group)
                    if group
                        .2
                        .iter()
                        .any(|endpoint| endpoint["addresses"] == entry["addresses"]) => {}
                Some(group) => group.2.push(entry),
                None => groups.push((ports.clone(), family, vec![entry])),
            }
        }
    }
    groups.into_iter().map(|group| slice(endpoints, group)).collect()
}

fn port(port: &Value) -> Value {
    let mut entry = json!({
        "name": port.get("name").and_then(Value::as_str).unwrap_or_default(),
        "port": port.get("port"),
        "protocol": port.get("protocol").and_then(Value::as_str).unwrap_or("TCP"),
    });
    if let Some(app) = port.get("appProtocol") {
        entry["appProtocol"] = app.clone();
    }
    entry
}

/// The endpoint of an address and its family; none if the address is invalid.
fn endpoint(address: &Value, ready: bool) -> Option<(&'static str, Value)> {
    let ip: IpAddr = address.get("ip")?.as_str()?.parse().ok()?;
    let ip = ip.to_canonical();
    let mut entry = json!({"addresses": [ip], "conditions": {"ready": ready}});
    for field in ["hostname", "nodeName", "targetRef"] {
        if let Some(value) = address.get(field) {
            entry[field] = value.clone();
        }
    }
    Some((if ip.is_ipv4() { "IPv4" } else { "IPv6" }, entry))
}

fn slice(endpoints: &Object, (ports, family, entries): Group) -> Object {
    // The name depends only on the fields that tell slices of the same Endpoints apart, so that a
    // second attempt finds the first slice.
    let seed = format!("{}/{family}/{}", endpoints.uid(), Value::from(ports.clone()));
    let hash = fnv::safe_encode(&format!("{:05}", fnv::fnv32a(seed.as_bytes()) % 100_000));
    let name = format!("{}-{hash}", endpoints.name());
    let mut slice = Object::new(&builtin::ENDPOINT_SLICE.gvk(), &name);
    slice.set(&["metadata", "namespace"], endpoints.namespace().into());
    for (key, value) in endpoints.labels() {
        slice.set_label(key, value);
    }
    slice.set_label(SERVICE_NAME, endpoints.name());
    slice.set_label(MANAGED_BY, MANAGER);
    for (key, value) in endpoints.annotations().filter(|(key, _)| !NOT_MIRRORED.contains(key)) {
        slice.set_annotation(key, value);
    }
    slice.set(&["metadata", "ownerReferences"], json!([controller_reference_value(endpoints)]));
    slice.set(&["addressType"], family.into());
    slice.set(&["endpoints"], Value::Array(entries));
    slice.set(&["ports"], Value::Array(ports));
    slice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_for_each_list_of_ports_and_family_of_addresses() {
        let endpoints = Object::from_value(json!({
            "apiVersion": "v1", "kind": "Endpoints",
            "metadata": {
                "name": "db", "namespace": "n", "uid": "e", "labels": {"team": "a"},
                "annotations": {"note": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
            },
            "subsets": [
                {
                    "addresses": [{"ip": "10.1.2.3", "hostname": "one"}, {"ip": "2001:db8::1"}, {"ip": "no"}],
                    "notReadyAddresses": [{"ip": "10.1.2.4"}], "ports": [{"port": 80, "name": "a"}],
                },
                {"addresses": [{"ip": "10.1.2.5"}], "ports": [{"port": 81, "protocol": "UDP"}]},
                {"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80, "name": "a"}]},
            ],
        }))
        .unwrap();
        let slices_of_test = slices(&endpoints);
        let descriptions: Vec<String> = slices_of_test
            .iter()
            .map(|slice| {
                let entries = slice.array(&["endpoints"]).iter();
                let entries: Vec<String> = entries
                    .map(|endpoint| {
                        format!(
                            "{}{}",
                            endpoint["addresses"][0].as_str().unwrap(),
                            endpoint["conditions"]["ready"]
                        )
                    })
                    .collect();
                let port = &slice.array(&["ports"])[0];
                let family = slice.str(&["addressType"]).unwrap();
                format!("{family} {} {} {}", port["port"], port["protocol"], entries.join(" "))
            })
            .collect();
        assert_eq!(
            descriptions,
            [
                r#"IPv4 80 "TCP" 10.1.2.3true 10.1.2.4false"#,
                r#"IPv6 80 "TCP" 2001:db8::1true"#,
                r#"IPv4 81 "UDP" 10.1.2.5true"#,
            ]
        );
        let slice = &slices_of_test[0];
        assert_eq!(slice.label(SERVICE_NAME), Some("db"));
        assert_eq!((slice.label("team"), slice.annotation("note")), (Some("a"), Some("x")));
        assert!(slice.annotation(NOT_MIRRORED[1]).is_none());
        assert_eq!(slice.array(&["metadata", "ownerReferences"])[0]["kind"], "Endpoints");
        assert_ne!(slices_of_test[0].name(), slices_of_test[1].name());
    }

    #[test]
    fn leader_election_endpoints_and_skip_mirror_are_not_mirrored() {
        let mut endpoints = Object::new(&builtin::ENDPOINTS.gvk(), "e");
        assert!(is_mirrored(&endpoints));
        endpoints.set_annotation(ELECTION, "{}");
        assert!(!is_mirrored(&endpoints));
        let mut endpoints = Object::new(&builtin::ENDPOINTS.gvk(), "e");
        endpoints.set_label(SKIP, "true");
        assert!(!is_mirrored(&endpoints));
    }
}
