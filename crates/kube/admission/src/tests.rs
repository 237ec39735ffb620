//! Comparison with recorded answers of a kube-apiserver 1.35: the stored objects and the errors.

use super::{pods, storage};
use mainstay_auth::Identity;
use mainstay_clock::Clock;
use mainstay_kinds::allocator::Allocator;
use mainstay_kinds::{Context, KindRegistry, KindRow, WriteTarget};
use mainstay_object::{Gvk, Object, Objects, Status};
use mainstay_store::{Change, Key, Precondition, Store};
use mainstay_validation::for_kind;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const UID: &str = "00000000-0000-4000-8000-000000000001";

/// Stored objects by resource, as strategies read them.
#[derive(Default)]
struct StoredObjects(BTreeMap<&'static str, Vec<Object>>);

impl Objects for StoredObjects {
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Object> {
        let found = self.0.get(resource)?.iter();
        found
            .clone()
            .find(|object| object.namespace() == namespace && object.name() == name)
            .cloned()
    }

    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Object> {
        let all = self.0.get(resource).into_iter().flatten();
        all.filter(|object| namespace.is_none_or(|wanted| object.namespace() == wanted))
            .cloned()
            .collect()
    }
}

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// The row of a built-in kind.
fn row(gvk: &Gvk) -> Arc<KindRow> {
    let registry = KindRegistry::new(for_kind);
    Arc::clone(registry.kinds().by_gvk(gvk).unwrap())
}

/// An allocator with these Services in its store.
fn allocator(services: &[Object]) -> Arc<Allocator> {
    let clock = Clock::system();
    let store = Store::in_memory(mainstay_store::Options::new(clock));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for service in services {
        let key = Key::new("services", service.namespace(), service.name());
        let put = Change::Put { key, object: service, expect: Precondition::Absent, guard: None };
        runtime.block_on(store.commit(put)).unwrap();
    }
    Allocator::new(store, clock)
}

/// The part of a create handler that strategies define.
fn create(stored_objects: &StoredObjects, mut given: Object) -> Result<Object, Status> {
    let gvk = given.gvk();
    let strategy = for_kind(&gvk);
    let identity = Identity::admin();
    let clock = Clock::system();
    let row = row(&gvk);
    let services = stored_objects.0.get("services").map_or(&[][..], Vec::as_slice);
    let reservations = allocator(services).reservations();
    let context = Context {
        identity: &identity,
        clock: &clock,
        objects: stored_objects,
        reservations: &reservations,
        row: &row,
        subresource: "",
    };
    given.set(&["metadata", "uid"], UID.into());
    strategy.default(&mut given);
    storage::add_protection_finalizer(&row.storage, &mut given);
    if gvk.kind == "Pod" {
        pods::admit_new(&mut given, stored_objects)
            .map_err(|error| Status::forbidden("", "pods", given.name(), &error.to_string()))?;
    }
    strategy.prepare_create(&mut given, &context)?;
    let errors = strategy.validate(&given, None, WriteTarget::default());
    if errors.is_empty() {
        if gvk.kind == "Job" {
            strategy.default(&mut given);
        }
        Ok(given)
    } else {
        Err(Status::invalid(&gvk.group, &gvk.kind, given.name(), &errors))
    }
}

fn update(
    stored_objects: &StoredObjects,
    mut given: Object,
    old: &Object,
) -> Result<Object, Status> {
    let gvk = given.gvk();
    let strategy = for_kind(&gvk);
    let identity = Identity::admin();
    let clock = Clock::system();
    let row = row(&gvk);
    let services = stored_objects.0.get("services").map_or(&[][..], Vec::as_slice);
    let reservations = allocator(services).reservations();
    let context = Context {
        identity: &identity,
        clock: &clock,
        objects: stored_objects,
        reservations: &reservations,
        row: &row,
        subresource: "",
    };
    strategy.default(&mut given);
    strategy.prepare_update(&mut given, old, &context)?;
    let errors = strategy.validate(&given, Some(old), WriteTarget::default());
    if errors.is_empty() {
        Ok(given)
    } else {
        Err(Status::invalid(&gvk.group, &gvk.kind, given.name(), &errors))
    }
}

/// Replaces random values by constants.
fn mask_random_fields(mut stored: Object) -> Value {
    stored.remove(&["metadata", "uid"]);
    stored.remove(&["status", "lastPhaseTransitionTime"]);
    if stored.kind() == "Service" {
        let address = stored.str(&["spec", "clusterIP"]).unwrap_or_default().to_owned();
        if address.starts_with("10.") {
            stored.set(&["spec", "clusterIP"], "ALLOCATED".into());
            stored.set(&["spec", "clusterIPs"], json!(["ALLOCATED"]));
        }
        let mut value = stored.into_value();
        let ports = value.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten() {
            if port.get("nodePort").is_some() {
                port["nodePort"] = 30000.into();
            }
        }
        return value;
    }
    stored.into_value()
}

#[test]
fn accepted_objects_are_stored_as_kubernetes_stores_them() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("testdata/accepted.json")).unwrap();
    assert!(cases.len() > 40);
    let mut failures = Vec::new();
    for case in cases {
        let given = object(case["given"].clone());
        let stored_objects = StoredObjects(BTreeMap::from([(
            "serviceaccounts",
            vec![object(json!({"metadata": {"name": "x", "namespace": "t"}}))],
        )]));
        let name = format!("{} {}", given.kind(), given.name());
        match create(&stored_objects, given) {
            Err(status) => failures.push(format!("{name}: {status}")),
            Ok(stored) => {
                let again = {
                    let mut again = stored.clone();
                    for_kind(&again.gvk()).default(&mut again);
                    again
                };
                assert_eq!(again, stored, "{name}: defaults are idempotent");
                let stored = mask_random_fields(stored);
                if stored != case["stored"] {
                    failures
                        .push(format!("{name}:\n  ours   {stored}\n  theirs {}", case["stored"]));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn refused_objects_have_the_errors_of_kubernetes() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("testdata/refused.json")).unwrap();
    let mut failures = Vec::new();
    for case in cases {
        let expected = case["message"].as_str().unwrap();
        let found = match create(&StoredObjects::default(), object(case["object"].clone())) {
            Ok(_) => "accepted".to_owned(),
            Err(status) => status.message,
        };
        if found != expected {
            failures.push(format!("{}\n  ours   {found}\n  theirs {expected}", case["case"]));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Creates an object and updates one of its fields.
fn update_field(
    stored_objects: &StoredObjects,
    given: Value,
    path: &[&str],
    value: Value,
) -> Result<Object, String> {
    let old = create(stored_objects, object(given)).unwrap();
    let mut new = old.clone();
    if value.is_null() {
        new.remove(path);
    } else {
        new.set(path, value);
    }
    update(stored_objects, new, &old).map_err(|status| {
        let message = status.message;
        message.split_once(" is invalid: ").map_or(message.clone(), |(_, why)| why.to_owned())
    })
}

#[expect(clippy::needless_pass_by_value, reason = "callers write the value in place")]
fn object_json(api_version: &str, kind: &str, rest: Value) -> Value {
    let mut out = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "t"}});
    for (key, value) in rest.as_object().unwrap() {
        out[key] = value.clone();
    }
    out
}

fn template() -> Value {
    json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

#[test]
fn changes_of_immutable_fields_have_the_errors_of_kubernetes() {
    let selector = json!({"matchLabels": {"a": "b"}});
    let workload = json!({"spec": {"selector": selector, "template": template()}});
    let other =
        json!({"matchLabels": {}, "matchExpressions": [{"key": "a", "operator": "Exists"}]});
    let immutable = "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}: field is immutable";
    let pod = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    let binding = json!({"roleRef": {"kind": "Role", "name": "x"}});
    let class = json!({"value": 1});
    let rbac = "rbac.authorization.k8s.io/v1";
    let cases: [(Value, &[&str], Value, &str); 12] = [
        (
            object_json("apps/v1", "Deployment", workload.clone()),
            &["spec", "selector"],
            other.clone(),
            immutable,
        ),
        (
            object_json("apps/v1", "DaemonSet", workload.clone()),
            &["spec", "selector"],
            other.clone(),
            immutable,
        ),
        (
            object_json("apps/v1", "ReplicaSet", workload.clone()),
            &["spec", "selector"],
            other,
            immutable,
        ),
        (
            object_json("apps/v1", "StatefulSet", workload),
            &["spec", "serviceName"],
            json!("y"),
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ),
        (
            object_json("v1", "Secret", json!({})),
            &["type"],
            json!("x/y"),
            "type: Invalid value: \"x/y\": field is immutable",
        ),
        (
            object_json("v1", "Secret", json!({"immutable": true, "data": {"a": "eA=="}})),
            &["data", "a"],
            json!("eQ=="),
            "data: Forbidden: field is immutable when `immutable` is set",
        ),
        (
            object_json("v1", "ConfigMap", json!({"immutable": true})),
            &["immutable"],
            Value::Null,
            "immutable: Forbidden: field is immutable when `immutable` is set",
        ),
        (
            object_json(rbac, "RoleBinding", binding),
            &["roleRef", "name"],
            json!("y"),
            "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"Role\",\"Name\":\"y\"}: cannot change roleRef",
        ),
        (
            object_json("scheduling.k8s.io/v1", "PriorityClass", class.clone()),
            &["value"],
            json!(2),
            "value: Forbidden: may not be changed in an update.",
        ),
        (
            object_json("scheduling.k8s.io/v1", "PriorityClass", class),
            &["preemptionPolicy"],
            json!("Never"),
            "preemptionPolicy: Invalid value: \"Never\": field is immutable",
        ),
        (
            object_json("v1", "Service", json!({"spec": {"ports": [{"port": 80}]}})),
            &["spec", "clusterIP"],
            json!("10.96.9.9"),
            "spec.clusterIPs[0]: Invalid value: [\"10.96.9.9\"]: may not change once set",
        ),
        (
            object_json("v1", "Pod", pod.clone()),
            &["spec", "dnsPolicy"],
            json!("Default"),
            "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
        ),
    ];
    let stored_objects = StoredObjects::default();
    for (given, path, value, expected) in cases {
        let name = format!("{} {path:?}", given["kind"]);
        assert_eq!(
            update_field(&stored_objects, given, path, value),
            Err(expected.to_owned()),
            "{name}"
        );
    }
    let image = json!([{"name": "c", "image": "other"}]);
    let mut changed_image = create(&stored_objects, object(object_json("v1", "Pod", pod))).unwrap();
    let old = changed_image.clone();
    let mut containers = changed_image.array(&["spec", "containers"]).to_vec();
    containers[0]["image"] = image[0]["image"].clone();
    changed_image.set(&["spec", "containers"], containers.into());
    update(&stored_objects, changed_image, &old).unwrap();
}

#[expect(clippy::needless_pass_by_value, reason = "callers write the value in place")]
fn service(spec: Value) -> Object {
    object(object_json("v1", "Service", json!({"spec": spec})))
}

#[test]
fn service_ips_and_node_ports_are_unique_and_kept_on_update() {
    let mut stored_objects = StoredObjects::default();
    let mut addresses = std::collections::BTreeSet::new();
    for at in 0..40 {
        let mut given = service(
            json!({"type": "NodePort", "ports": [{"port": 80}, {"port": 81, "name": "b"}]}),
        );
        given
            .set(&["spec", "ports"], json!([{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]));
        given.set(&["metadata", "name"], format!("s{at}").into());
        let stored = create(&stored_objects, given).unwrap();
        let address = stored.str(&["spec", "clusterIP"]).unwrap().to_owned();
        assert!(address.parse::<std::net::Ipv4Addr>().is_ok());
        assert!(addresses.insert(address));
        for port in stored.array(&["spec", "ports"]) {
            assert!(addresses.insert(port["nodePort"].to_string()));
        }
        stored_objects.0.entry("services").or_default().push(stored);
    }

    let old = stored_objects.0["services"][0].clone();
    let mut bare = old.clone();
    for field in ["clusterIP", "clusterIPs", "ipFamilies"] {
        bare.remove(&["spec", field]);
    }
    bare.set(&["spec", "ports"], json!([{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]));
    let kept = update(&stored_objects, bare, &old).unwrap();
    assert_eq!(
        kept.get(&["spec"]),
        old.get(&["spec"]),
        "fields missing in the update keep their values"
    );

    let mut inner = old.clone();
    inner.set(&["spec", "type"], "ClusterIP".into());
    inner.remove(&["spec", "externalTrafficPolicy"]);
    let inner = update(&stored_objects, inner, &old).unwrap();
    assert!(inner.array(&["spec", "ports"]).iter().all(|port| port.get("nodePort").is_none()));
    let mut outer = inner.clone();
    outer.set(&["spec", "type"], "ExternalName".into());
    outer.set(&["spec", "externalName"], "a.b".into());
    outer.remove(&["spec", "internalTrafficPolicy"]);
    let outer = update(&stored_objects, outer, &inner).unwrap();
    assert_eq!(outer.get(&["spec", "clusterIP"]), None);
    let mut back = outer.clone();
    back.set(&["spec", "type"], "ClusterIP".into());
    back.remove(&["spec", "externalName"]);
    assert!(update(&stored_objects, back, &outer).unwrap().str(&["spec", "clusterIP"]).is_some());

    let wanted = old.str(&["spec", "clusterIP"]).unwrap();
    let taken =
        create(&stored_objects, service(json!({"clusterIP": wanted, "ports": [{"port": 1}]})));
    assert_eq!(
        taken.unwrap_err().message,
        format!(
            "Service \"x\" is invalid: spec.clusterIPs: Invalid value: [\"{wanted}\"]: failed to allocate IP {wanted}: provided IP is already allocated"
        )
    );
    let port = &old.array(&["spec", "ports"])[0]["nodePort"];
    let taken = create(
        &stored_objects,
        service(json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": port}]})),
    );
    assert_eq!(
        taken.unwrap_err().message,
        format!(
            "Service \"x\" is invalid: spec.ports[0].nodePort: Invalid value: {port}: provided port is already allocated"
        )
    );
}

#[test]
fn new_pods_get_their_qos_class() {
    let stored_objects = StoredObjects::default();
    let pod = |spec: Value| object(object_json("v1", "Pod", json!({"spec": spec})));
    let containers =
        |resources: Value| json!([{"name": "c", "image": "i", "resources": resources}]);
    for (resources, expected) in [
        (json!({}), "BestEffort"),
        (json!({"limits": {"cpu": "0"}}), "BestEffort"),
        (json!({"limits": {"cpu": "1"}}), "Burstable"),
        (json!({"requests": {"memory": "1Gi"}}), "Burstable"),
        (json!({"limits": {"cpu": "1", "memory": "1Gi"}}), "Guaranteed"),
        (
            json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}),
            "Guaranteed",
        ),
        (json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1m"}}), "Burstable"),
    ] {
        let stored =
            create(&stored_objects, pod(json!({"containers": containers(resources.clone())})))
                .unwrap();
        assert_eq!(stored.str(&["status", "qosClass"]), Some(expected), "{resources}");
    }
}

#[test]
fn selectable_fields_have_the_values_that_field_selectors_use() {
    let cases = [
        ("", "Pod", json!({"spec": {"nodeName": "n"}}), "spec.nodeName", "n"),
        ("", "Pod", json!({}), "spec.hostNetwork", "false"),
        (
            "",
            "Pod",
            json!({"status": {"podIPs": [{"ip": "a"}, {"ip": "b"}]}}),
            "status.podIPs",
            "a,b",
        ),
        ("", "Pod", json!({}), "status.phase", ""),
        ("", "Node", json!({"spec": {"unschedulable": true}}), "spec.unschedulable", "true"),
        ("batch", "Job", json!({"status": {"succeeded": 2}}), "status.successful", "2"),
        ("", "Event", json!({"source": {"component": "k"}}), "source", "k"),
        ("", "Event", json!({"source": {}, "reportingComponent": "r"}), "source", "r"),
        ("", "Event", json!({"involvedObject": {"uid": "u"}}), "involvedObject.uid", "u"),
        ("", "Secret", json!({"type": "Opaque"}), "type", "Opaque"),
    ];
    for (group, kind, value, path, expected) in cases {
        let strategy = for_kind(&Gvk::new(group, "v1", kind));
        assert!(strategy.selectable_fields().contains(&path), "{kind} {path}");
        assert_eq!(strategy.field(&object(value), path), expected, "{kind} {path}");
    }
}

#[test]
fn a_deleted_namespace_has_the_phase_terminating() {
    let given = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    let mut stored = create(&StoredObjects::default(), object(given)).unwrap();
    assert_eq!(stored.str(&["status", "phase"]), Some("Active"));
    stored.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z".into());
    for_kind(&stored.gvk()).default(&mut stored);
    assert_eq!(stored.str(&["status", "phase"]), Some("Terminating"));
}
