//! Reports about collisions, as the original controller wrote them. The recordings have the reports but not the
//! managed fields, so the objects here are written by hand.

use mainstay_api::CollisionProtection;
use mainstay_object::{Object, OwnerReference};
use mainstay_objectsets::{
    ObjectAction, ObjectDecision, ObjectResult, ObjectSetIdentity, PhaseResult, ProgressionProbes,
    RolloutResult, builtin_type, compare_objects, decide_object, default_progression_probes,
    managed_object,
};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

fn set(name: &str, extension: &str) -> ObjectSetIdentity {
    ObjectSetIdentity {
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
        revision: 1,
        extension: extension.to_owned(),
    }
}

/// An entry of managed fields.
fn entry(manager: &str, operation: &str, subresource: &str, fields: &Value) -> Value {
    json!({
        "manager": manager,
        "operation": operation,
        "subresource": subresource,
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    })
}

/// The fields of an object that a set applied, besides those of `more`.
fn own_fields(set: &ObjectSetIdentity, more: &Value) -> Value {
    let owner = format!("k:{{\"uid\":\"{}\"}}", set.uid);
    let mut fields = json!({"f:metadata": {
        "f:annotations": {"f:olm.operatorframework.io/revision": {}},
        "f:labels": {
            "f:app.kubernetes.io/managed-by": {},
            "f:olm.operatorframework.io/owner-name": {},
        },
        "f:ownerReferences": {owner: {}},
    }});
    for (name, value) in more.as_object().unwrap() {
        fields[name] = value.clone();
    }
    fields
}

/// The message about a collision of the desired object with that of the cluster.
fn report(
    phase: usize,
    desired: &Object,
    actual: &Object,
    ours: &ObjectSetIdentity,
    protection: &CollisionProtection,
    probes: &ProgressionProbes,
) -> String {
    let desired = managed_object(desired, ours);
    let comparison =
        compare_objects(&desired, actual, builtin_type(&desired).unwrap(), true).unwrap();
    let decision =
        decide_object(&desired, Some((actual, &comparison)), ours, &[], protection).unwrap();
    let ObjectDecision::Collision { owner } = decision else { panic!("{decision:?}") };
    let result = ObjectResult {
        object: actual.clone(),
        action: ObjectAction::Collision,
        probe: probes.probe(actual),
        comparison,
        conflicting_owner: owner,
    };
    let mut phases = vec![PhaseResult::default(); phase];
    phases.push(PhaseResult { objects: vec![result] });
    let rollout = RolloutResult { phase_count: phase + 1, phases, ..RolloutResult::default() };
    let text = rollout.collisions().unwrap();
    [&*ours.uid, "uid-of-ext-c259-1", "uid-of-ifno-c275"]
        .iter()
        .fold(text, |text, uid| text.replace(uid, "{uid}"))
}

/// The recorded message of a set.
fn recorded(root: &Path, step: &str, set: &str) -> String {
    let objects = fs::read(root.join(step).join("objects.json")).unwrap();
    let objects: Vec<Value> = serde_json::from_slice(&objects).unwrap();
    let set = objects
        .iter()
        .find(|object| object["kind"] == "ClusterObjectSet" && object["metadata"]["name"] == set);
    let conditions = set.unwrap()["status"]["conditions"].as_array().unwrap();
    let progressing = conditions.iter().find(|condition| condition["type"] == "Progressing");
    progressing.unwrap()["message"].as_str().unwrap().to_owned()
}

/// An object without its owner, after drift by hand (`box-drift`).
fn orphan() -> String {
    let ours = set("ext-c257-1", "ext-c257");
    let desired = object(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "anvil-c257-config", "namespace": "c257"},
        "data": {"a": "1"},
    }));
    let mut actual = managed_object(&desired, &ours);
    actual.remove(&["metadata", "ownerReferences"]);
    actual.set(&["data", "b"], "2".into());
    let fields = own_fields(&ours, &json!({"f:data": {"f:a": {}}}));
    let entries = json!([
        entry("olm.operatorframework.io", "Apply", "", &fields),
        entry("kubectl-patch", "Update", "", &json!({"f:data": {"f:b": {}}})),
    ]);
    actual.set(&["metadata", "managedFields"], entries);
    let probes = ProgressionProbes::read(&default_progression_probes()).unwrap();
    report(1, &desired, &actual, &ours, &CollisionProtection::Prevent, &probes)
}

/// An object that kubectl made (`box-collision`).
fn object_of_kubectl() -> String {
    let desired = object(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "anvil-c259-config", "namespace": "c259"},
        "data": {"a": "1"},
    }));
    let mut actual = desired.clone();
    actual.set(&["data"], json!({"mine": "yes"}));
    let fields = json!({"f:data": {".": {}, "f:mine": {}}});
    let entries = json!([entry("kubectl-client-side-apply", "Update", "", &fields)]);
    actual.set(&["metadata", "managedFields"], entries);
    let probes = ProgressionProbes::read(&default_progression_probes()).unwrap();
    let ours = set("ext-c259-1", "ext-c259");
    report(1, &desired, &actual, &ours, &CollisionProtection::Prevent, &probes)
}

/// An object of another set, with a field of kubectl (`cos-collision`).
fn object_of_another_set() -> String {
    let (ours, other) = (set("thief-c275", ""), set("ifno-c275", ""));
    let config_map = |value: &str| {
        object(json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "ifno", "namespace": "c275"},
            "data": {"x": value},
        }))
    };
    let mut actual = managed_object(&config_map("1"), &other);
    actual.set(&["data", "mine"], "yes".into());
    actual.set_annotation("kubectl.kubernetes.io/last-applied-configuration", "{}");
    let fields = own_fields(&other, &json!({"f:data": {"f:x": {}}}));
    let kubectl = json!({
        "f:data": {".": {}, "f:mine": {}},
        "f:metadata": {"f:annotations": {
            ".": {},
            "f:kubectl.kubernetes.io/last-applied-configuration": {},
        }},
    });
    let entries = json!([
        entry("olm.operatorframework.io", "Apply", "", &fields),
        entry("kubectl-client-side-apply", "Update", "", &kubectl),
    ]);
    actual.set(&["metadata", "managedFields"], entries);
    let protection = CollisionProtection::IfNoController;
    report(0, &config_map("2"), &actual, &ours, &protection, &ProgressionProbes::default())
}

/// The CRD of another extension (`box-collision`).
fn definition_of_another_extension() -> String {
    let (ours, other) = (set("second-c259-1", "second-c259"), set("ext-c259-1", "ext-c259"));
    let names = json!({
        "kind": "Anvil", "listKind": "AnvilList", "plural": "anvils", "singular": "anvil",
    });
    let desired = object(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "anvils.c259.example.com"},
        "spec": {
            "group": "c259.example.com",
            "names": names,
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true}],
        },
    }));
    let mut actual = managed_object(&desired, &other);
    actual.set(&["spec", "conversion", "strategy"], "None".into());
    let condition = |kind: &str| {
        json!({
            "type": kind, "status": "True", "reason": "r", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let conditions = json!([condition("NamesAccepted"), condition("Established")]);
    let status =
        json!({"acceptedNames": names, "conditions": conditions, "storedVersions": ["v1"]});
    actual.set(&["status"], status);
    let spec = json!({"f:spec": {
        "f:group": {},
        "f:names": {"f:kind": {}, "f:listKind": {}, "f:plural": {}, "f:singular": {}},
        "f:scope": {},
        "f:versions": {},
    }});
    let condition = json!({
        ".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:reason": {}, "f:status": {}, "f:type": {},
    });
    let status = json!({"f:status": {
        "f:acceptedNames": {"f:kind": {}, "f:listKind": {}, "f:plural": {}, "f:singular": {}},
        "f:conditions": {
            "k:{\"type\":\"Established\"}": condition,
            "k:{\"type\":\"NamesAccepted\"}": condition,
        },
    }});
    let entries = json!([
        entry("olm.operatorframework.io", "Apply", "", &own_fields(&other, &spec)),
        entry("kube-apiserver", "Update", "status", &status),
    ]);
    actual.set(&["metadata", "managedFields"], entries);
    let probes = ProgressionProbes::read(&default_progression_probes()).unwrap();
    report(2, &desired, &actual, &ours, &CollisionProtection::Prevent, &probes)
}

#[test]
fn collisions_are_reported_as_recorded() {
    let Some(data) = mainstay_testdata::unpack("answers/olm-v1", "reports of collisions") else {
        return;
    };
    let cases = data.path().join("olm-v1/cases");
    let reports = [
        ("c257-box-drift/07-remove-the-owner-reference-of-the-configmap", "ext-c257-1", orphan()),
        ("c259-box-collision/01-create-the-extension", "ext-c259-1", object_of_kubectl()),
        (
            "c259-box-collision/03-a-second-extension-for-the-package",
            "second-c259-1",
            definition_of_another_extension(),
        ),
        (
            "c275-cos-collision/06-a-second-set-wants-an-object-of-another",
            "thief-c275",
            object_of_another_set(),
        ),
    ];
    for (step, set, report) in &reports {
        assert_eq!(*report, recorded(&cases, step, set), "{step}");
    }
    mainstay_testdata::ran(&format!("{} recorded reports of collisions", reports.len()));
}

#[test]
fn own_objects_are_applied_only_if_fields_differ() {
    let ours = set("e-1", "e");
    let desired = object(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n"},
        "data": {"a": "1"},
    }));
    let desired = managed_object(&desired, &ours);
    let fields = own_fields(&ours, &json!({"f:data": {"f:a": {}}}));
    let applied = entry("olm.operatorframework.io", "Apply", "", &fields);
    let with = |value: &str, entries: Value| {
        let mut actual = desired.clone();
        actual.set(&["data", "a"], value.into());
        actual.set(&["metadata", "managedFields"], entries);
        actual.set(&["metadata", "resourceVersion"], "5".into());
        actual
    };
    let stolen = own_fields(&ours, &json!({}));
    let cases = [
        ("idle", with("1", json!([applied])), "idle"),
        ("the same manager with another value", with("2", json!([applied])), "apply"),
        (
            "another manager took the field",
            with(
                "2",
                json!([
                    entry("olm.operatorframework.io", "Apply", "", &stolen),
                    entry("kubectl-edit", "Update", "", &json!({"f:data": {"f:a": {}}})),
                ]),
            ),
            "recover",
        ),
    ];
    for (name, actual, expected) in cases {
        let comparison =
            compare_objects(&desired, &actual, builtin_type(&desired).unwrap(), true).unwrap();
        let protection = CollisionProtection::Prevent;
        let decision =
            decide_object(&desired, Some((&actual, &comparison)), &ours, &[], &protection).unwrap();
        let found = match decision {
            ObjectDecision::Idle => "idle",
            ObjectDecision::Apply { object, force, recovers } => {
                assert_eq!(object.resource_version(), "5", "{name}");
                assert_eq!(force, recovers, "{name}");
                let owners: Vec<OwnerReference> = object.owner_references();
                assert_eq!(owners, [ours.owner_reference()], "{name}");
                if recovers { "recover" } else { "apply" }
            }
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(found, expected, "{name}");
    }
}
