//! The Service controller: publishes the Pods of a Service as `EndpointSlices` and as Endpoints.
//!
//! A Service with a selector gets one slice for each thousand Pods and one Endpoints object with
//! its own name. All names are deterministic, so that a second attempt finds the objects of the
//! first. For a Service without a selector other clients write Endpoints, and [`mirror`] creates
//! slices from them.

mod mirror;

use crate::Started;
use crate::common::{Context, controller_reference_value, is_object_gone};
use crate::views::{Dependent, PodView, Views};
use mainstay_client::{
    Action, Cache, Cluster, Controller, DeleteOptions, Error, Patch, Reconciler, Selection,
    difference,
};
use mainstay_object::selector::LabelSelector;
use mainstay_object::{NamespacedName, Object, Resource, builtin, fnv};
use serde_json::{Value, json};
use std::sync::Arc;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
/// The most endpoints that the API allows in one slice.
const SLICE: usize = 1000;

#[derive(Clone, Debug, PartialEq)]
struct ServiceView {
    selector: Option<LabelSelector>,
    resource_version: Arc<str>,
}

/// Starts the controller of Services.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    mirror::start(context, started);
    let controller = Controller::new("services");
    let queue = controller.queue();
    let services = Cache::builder(Selection::all(builtin::SERVICE), |service| {
        Some(ServiceView {
            selector: selector(service),
            resource_version: service.resource_version().into(),
        })
    })
    .subscribe(move |change| {
        if change.after.is_some() {
            queue.add(change.key.clone());
        }
    })
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
        // Changes of our slices by other clients are reverted.
        for (service, _) in
            [change.before, change.after].into_iter().flatten().map(|slice| &**slice)
        {
            queue.add(NamespacedName::new(Arc::clone(&change.key.namespace), service.as_str()));
        }
    })
    .start(&context.cluster, context.stop.clone());
    let (queue, all) = (controller.queue(), services.clone());
    views.pods.subscribe(move |change| {
        let (before, after) = (change.before, change.after);
        if let (Some(before), Some(after)) = (before, after)
            && endpoint_parts(before) == endpoint_parts(after)
        {
            return;
        }
        for (key, service) in all.list(Some(&change.key.namespace)) {
            let Some(selector) = &service.selector else { continue };
            if [before, after].into_iter().flatten().any(|pod| pod.matches(selector)) {
                queue.add(key);
            }
        }
    });
    let controller = controller.reads(&services).reads(&slices).reads(&views.pods);
    let reconciler = Reconcile { context: context.clone(), views: views.clone(), services, slices };
    started.controller(controller.start(reconciler, context.stop.clone()));
}

/// The fields of a Pod that endpoints show.
fn endpoint_parts(pod: &PodView) -> impl PartialEq + use<'_> {
    (&pod.labels, &pod.ip, &pod.node, pod.is_ready(), pod.terminating, pod.is_finished())
}

fn selector(service: &Object) -> Option<LabelSelector> {
    if service.str(&["spec", "type"]) == Some("ExternalName") {
        return None;
    }
    let labels = service.get(&["spec", "selector"])?.as_object()?;
    let pairs =
        labels.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
    let selector = LabelSelector::from_pairs(pairs);
    (!selector.is_everything()).then_some(selector)
}

/// Writes the slices of a Service or of Endpoints, and deletes surplus ones.
async fn replace_slices(
    cluster: &Cluster,
    service: &NamespacedName,
    slices: &Cache<(String, Arc<str>)>,
    wanted: &[Object],
) -> Result<(), Error> {
    let resource = &builtin::ENDPOINT_SLICE;
    for slice in wanted {
        write(cluster, resource, slice).await?;
    }
    for (name, slice) in slices.list(Some(&service.namespace)) {
        let is_owned = slice.0 == *service.name;
        if is_owned && !wanted.iter().any(|wanted_slice| *wanted_slice.name() == *name.name) {
            let options = DeleteOptions::default();
            cluster.ensure_deleted(resource, name.namespace(), &name.name, &options).await?;
        }
    }
    Ok(())
}

struct Reconcile {
    context: Context,
    views: Views,
    services: Cache<ServiceView>,
    slices: Cache<(String, Arc<str>)>,
}

impl Reconciler for Reconcile {
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

impl Reconcile {
    async fn run(&self, key: &NamespacedName) -> Result<(), Error> {
        let cluster = &self.context.cluster;
        let Some(view) = self.services.get(key) else {
            // The garbage collector deletes slices with their Service, and the Endpoints of the
            // same name as well.
            return Ok(());
        };
        if view.selector.is_none() {
            return Ok(());
        }
        let service = cluster.get(&builtin::SERVICE, key.namespace(), &key.name).await?;
        let Some(selector) = selector(&service) else { return Ok(()) };
        if service.is_terminating() {
            return Ok(());
        }
        let mut pods = self.views.pods.list(Some(&key.namespace));
        pods.retain(|(_, pod)| pod.matches(&selector) && pod.ip.is_some() && !pod.is_finished());
        let wanted = slices(&service, &pods);
        replace_slices(cluster, key, &self.slices, &wanted).await?;
        write(cluster, &builtin::ENDPOINTS, &endpoints(&service, &pods)).await
    }
}

/// Gives an object the wanted content, including lists.
async fn write(cluster: &Cluster, resource: &Resource, wanted: &Object) -> Result<(), Error> {
    let namespace = Some(wanted.namespace());
    let Some(live) = cluster.find(resource, namespace, wanted.name()).await? else {
        return match cluster.create(resource, wanted).await {
            // The object was created meanwhile: its event brings the Service back.
            Err(error) if error.is_already_exists() => Ok(()),
            other => other.map(|_| ()),
        };
    };
    let wanted_value = with_nulls_for_lost_labels(wanted, &live).to_value();
    let Some(mut patch) = difference(&live.to_value(), &wanted_value) else { return Ok(()) };
    patch["metadata"]["resourceVersion"] = live.resource_version().into();
    cluster.patch(resource, namespace, wanted.name(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// The wanted object, with null for each label that only the live one has, so that the merge patch removes it.
fn with_nulls_for_lost_labels(wanted: &Object, live: &Object) -> Object {
    let mut all = wanted.clone();
    for (label, _) in live.labels() {
        if wanted.label(label).is_none() {
            all.set(&["metadata", "labels", label], Value::Null);
        }
    }
    all
}

type Named = (NamespacedName, Arc<PodView>);

/// The port of a Pod behind a Service port; none if the Pod has no port of that name.
fn target_port(port: &Value, pod: &PodView) -> Option<i64> {
    match port.get("targetPort") {
        Some(Value::String(name)) => {
            pod.ports.iter().find(|(known, _)| known == name).map(|(_, number)| *number)
        }
        Some(number) if number.as_i64().is_some_and(|number| number > 0) => number.as_i64(),
        _ => port.get("port")?.as_i64(),
    }
}

/// The ports of a Service as endpoints list them, for one Pod.
fn ports(service: &Object, pod: &PodView) -> Vec<Value> {
    let ports = service.array(&["spec", "ports"]).iter();
    ports
        .filter_map(|port| {
            let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
            let name = port.get("name").and_then(Value::as_str).unwrap_or_default();
            let mut entry =
                json!({"name": name, "port": target_port(port, pod)?, "protocol": protocol});
            if let Some(app) = port.get("appProtocol") {
                entry["appProtocol"] = app.clone();
            }
            Some(entry)
        })
        .collect()
}

/// Pods by their ports, because a slice has one list of ports for all its endpoints.
fn by_ports<'a>(service: &Object, pods: &'a [Named]) -> Vec<(Vec<Value>, Vec<&'a Named>)> {
    let mut groups: Vec<(Vec<Value>, Vec<&Named>)> = Vec::new();
    for pod in pods {
        let ports = ports(service, &pod.1);
        match groups.iter_mut().find(|(known, _)| *known == ports) {
            Some((_, members)) => members.push(pod),
            None => groups.push((ports, vec![pod])),
        }
    }
    groups
}

fn reference(key: &NamespacedName, pod: &PodView) -> Value {
    json!({"kind": "Pod", "name": &*key.name, "namespace": &*key.namespace, "uid": &*pod.uid})
}

fn slices(service: &Object, pods: &[Named]) -> Vec<Object> {
    let publish = service.bool(&["spec", "publishNotReadyAddresses"]) == Some(true);
    let mut groups = by_ports(service, pods);
    if groups.is_empty() {
        // A Service without Pods has one empty slice.
        groups.push((Vec::new(), Vec::new()));
    }
    let mut slices = Vec::new();
    for (ports, members) in groups {
        let chunks: Vec<&[&Named]> =
            if members.is_empty() { vec![&[]] } else { members.chunks(SLICE).collect() };
        for chunk in chunks {
            let endpoints: Vec<Value> = chunk
                .iter()
                .map(|(key, pod)| {
                    let mut endpoint = json!({
                        "addresses": [pod.ip.as_deref().unwrap_or_default()],
                        "conditions": {
                            "ready": publish || (pod.is_ready() && !pod.terminating),
                            "serving": publish || pod.is_ready(),
                            "terminating": pod.terminating,
                        },
                        "targetRef": reference(key, pod),
                    });
                    if let Some(node) = &pod.node {
                        endpoint["nodeName"] = (**node).into();
                    }
                    endpoint
                })
                .collect();
            slices.push(slice(service, slices.len(), ports.clone(), endpoints));
        }
    }
    slices
}

fn slice(service: &Object, at: usize, ports: Vec<Value>, endpoints: Vec<Value>) -> Object {
    let seed = format!("{}/{at}", service.uid());
    let hash = fnv::safe_encode(&format!("{:05}", fnv::fnv32a(seed.as_bytes()) % 100_000));
    let mut slice =
        Object::new(&builtin::ENDPOINT_SLICE.gvk(), &format!("{}-{hash}", service.name()));
    slice.set(&["metadata", "namespace"], service.namespace().into());
    for (key, value) in service.labels() {
        slice.set_label(key, value);
    }
    slice.set_label(SERVICE_NAME, service.name());
    slice.set_label(MANAGED_BY, MANAGER);
    if is_headless(service) && !mainstay_fault::is_on("headless-services-do-not-say-so") {
        slice.set_label("service.kubernetes.io/headless", "");
    }
    slice.set(&["metadata", "ownerReferences"], json!([controller_reference_value(service)]));
    let family = service.array(&["spec", "ipFamilies"]).first().and_then(Value::as_str);
    let family = if family == Some("IPv6") { "IPv6" } else { "IPv4" };
    slice.set(&["addressType"], family.into());
    slice.set(&["endpoints"], list(endpoints));
    slice.set(&["ports"], list(ports));
    slice
}

/// A list as the API stores it in slices: it drops an empty list, which would be written again and
/// again.
fn list(items: Vec<Value>) -> Value {
    if items.is_empty() { Value::Null } else { Value::Array(items) }
}

fn is_headless(service: &Object) -> bool {
    service.str(&["spec", "clusterIP"]) == Some("None")
}

fn endpoints(service: &Object, pods: &[Named]) -> Object {
    let publish = service.bool(&["spec", "publishNotReadyAddresses"]) == Some(true);
    let subsets: Vec<Value> = by_ports(service, pods)
        .into_iter()
        .filter_map(|(ports, members)| {
            let mut subset = json!({});
            for (field, ready) in [("addresses", true), ("notReadyAddresses", false)] {
                let addresses: Vec<Value> = members
                    .iter()
                    .filter(|(_, pod)| !pod.terminating && (publish || pod.is_ready()) == ready)
                    .take(SLICE)
                    .map(|(key, pod)| {
                        json!({
                            "ip": pod.ip.as_deref(), "nodeName": pod.node.as_deref(),
                            "targetRef": reference(key, pod),
                        })
                    })
                    .collect();
                if !addresses.is_empty() {
                    subset[field] = Value::Array(addresses);
                }
            }
            let empty = subset.as_object().is_none_or(serde_json::Map::is_empty);
            if !ports.is_empty() {
                subset["ports"] = Value::Array(ports);
            }
            (!empty).then_some(subset)
        })
        .collect();
    let mut object = Object::new(&builtin::ENDPOINTS.gvk(), service.name());
    object.set(&["metadata", "namespace"], service.namespace().into());
    for (key, value) in service.labels() {
        object.set_label(key, value);
    }
    object.set_label("endpoints.kubernetes.io/managed-by", "endpoint-controller");
    object.set(&["metadata", "ownerReferences"], json!([controller_reference_value(service)]));
    object.set(&["subsets"], Value::Array(subsets));
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(ports: &Value) -> Object {
        Object::from_value(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "n", "uid": "s", "labels": {"team": "a"}},
            "spec": {"selector": {"app": "web"}, "ports": ports},
        }))
        .unwrap()
    }

    fn pod(name: &str, ready: &str, port: i64) -> Named {
        let pod = Object::from_value(json!({
            "metadata": {"name": name, "namespace": "n", "uid": name},
            "spec": {
                "nodeName": "node-1",
                "containers": [{"ports": [{"name": "http", "containerPort": port}]}],
            },
            "status": {
                "podIP": format!("10.0.0.{name}"),
                "conditions": [{"type": "Ready", "status": ready}],
            },
        }))
        .unwrap();
        (pod.key(), Arc::new(PodView::of(&pod)))
    }

    #[test]
    fn a_named_port_is_looked_up_in_each_pod() {
        let service = service(&json!([{"name": "web", "port": 80, "targetPort": "http"}]));
        let slices = slices(&service, &[pod("1", "True", 8080), pod("2", "True", 9090)]);
        let ports: Vec<&Value> =
            slices.iter().map(|slice| &slice.array(&["ports"])[0]["port"]).collect();
        assert_eq!(ports, [&json!(8080), &json!(9090)]);
        assert_ne!(slices[0].name(), slices[1].name());
        assert_eq!(slices[0].label(SERVICE_NAME), Some("web"));
    }

    #[test]
    fn label_that_a_service_lost_goes_from_its_endpoints() {
        let mut labelled = service(&json!([{"port": 80}]));
        let wanted = &slices(&labelled, &[])[0];
        labelled.set_label("old", "1");
        let live = &slices(&labelled, &[])[0];
        let wanted = with_nulls_for_lost_labels(wanted, live).to_value();
        let patch = difference(&live.to_value(), &wanted).unwrap();
        assert_eq!(patch, json!({"metadata": {"labels": {"old": null}}}));
    }

    #[test]
    fn endpoint_slices_and_endpoints_show_readiness() {
        let service = service(&json!([{"port": 80}]));
        let pods = [pod("1", "True", 1), pod("2", "False", 1)];
        let slice = &slices(&service, &pods)[0];
        let ready: Vec<&Value> = slice
            .array(&["endpoints"])
            .iter()
            .map(|endpoint| &endpoint["conditions"]["ready"])
            .collect();
        assert_eq!(ready, [&json!(true), &json!(false)]);
        let subset = &endpoints(&service, &pods).array(&["subsets"])[0].clone();
        assert_eq!(subset["addresses"][0]["ip"], "10.0.0.1");
        assert_eq!(subset["notReadyAddresses"][0]["ip"], "10.0.0.2");
        assert_eq!(subset["ports"], json!([{"name": "", "port": 80, "protocol": "TCP"}]));
    }

    #[test]
    fn no_pods_make_an_empty_slice_and_no_subsets() {
        let service = service(&json!([{"port": 80}]));
        let slices = slices(&service, &[]);
        assert_eq!(slices.len(), 1);
        assert_eq!(slices[0].array(&["endpoints"]).len(), 0);
        assert_eq!(endpoints(&service, &[]).array(&["subsets"]).len(), 0);
    }

    #[test]
    fn only_services_with_a_selector_get_endpoints() {
        let mut service = service(&json!([]));
        assert!(selector(&service).is_some());
        service.set(&["spec", "type"], "ExternalName".into());
        assert!(selector(&service).is_none());
        service.set(&["spec", "type"], "ClusterIP".into());
        service.set(&["spec", "selector"], json!({}));
        assert!(selector(&service).is_none());
    }
}
