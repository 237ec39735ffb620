//! Typed traversals: validation, field sets, comparison, merge and removal.

use super::kind::{TestKind, parse_yaml};
use super::scenario::sorted_paths;
use mainstay_patch::apply::{
    Duplicates, FieldComparison, TypeRef, compare, field_set, merge, remove, validate,
};
use mainstay_schema::builtin;
use serde_json::{Value, json};

fn spec(text: &str) -> Value {
    json!({"spec": parse_yaml(text)})
}

fn built_in(name: &str) -> TypeRef<'static> {
    TypeRef::builtin(builtin::definition(name).unwrap())
}

#[test]
fn problems_have_the_text_of_structured_merge_diff() {
    let kind = TestKind::new();
    for (text, problems) in [
        ("{text: a, struct: null, items: null}", ""),
        ("{text: 1}", ".spec.text: expected string, got &value.valueUnstructured{Value:1}"),
        (
            "{text: {a: [1, null, x]}}",
            ".spec.text: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"a\":[]interface {}{1, interface {}(nil), \"x\"}}}",
        ),
        ("{number: a}", ".spec.number: expected numeric (int or float), got string"),
        (
            "{number: {}}",
            ".spec.number: expected numeric (int or float), got map[string]interface {}",
        ),
        ("{either: [1]}", ""),
        ("{struct: [a, 1000000]}", ".spec.struct: expected map, got &{[a 1e+06]}"),
        ("{set: {a: null, b: true}}", ".spec.set: expected list, got &{map[a:<nil> b:true]}"),
        ("{struct: {c: 1}}", ".spec.struct.c: field not declared in schema"),
        ("{set: [a, b, a]}", ".spec.set: duplicate entries for key [=\"a\"]"),
        (
            "{ports: [{port: 1}, {port: 1, protocol: TCP}]}",
            ".spec.ports: duplicate entries for key [port=1,protocol=\"TCP\"]",
        ),
        (
            "{items: [{value: 1}]}",
            ".spec.items: element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have default values for any key fields)",
        ),
        (
            "{items: [{name: a}, null]}",
            ".spec.items: element 1: associative list with keys may not have a null element",
        ),
        (
            "{items: [a]}",
            ".spec.items: element 0: associative list with keys may not have non-map elements",
        ),
        (
            "{set: [{}]}",
            ".spec.set: element 0: associative list without keys has an element that's a map type",
        ),
        (
            "{set: [[]]}",
            ".spec.set: element 0: not supported: associative list with lists as elements",
        ),
        (
            "{set: [null]}",
            ".spec.set: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            "{atomic: [a, 1]}",
            ".spec.atomic[1]: expected string, got &value.valueUnstructured{Value:1}",
        ),
        (
            "{items: [{name: a, sub: {a: 1}, value: x}]}",
            "errors:\n  .spec.items[name=\"a\"].sub.a: expected string, got &value.valueUnstructured{Value:1}\n  .spec.items[name=\"a\"].value: expected numeric (int or float), got string",
        ),
        ("{free: {a: [1, null]}, labels: {a: null}}", ""),
    ] {
        let found = validate(&spec(text), kind.ty(), Duplicates::Rejected);
        assert_eq!(
            found.err().map(|found| found.to_string()).unwrap_or_default(),
            problems,
            "{text}"
        );
    }
    for text in ["{set: [a, a]}", "{items: [{name: a}, {name: a}]}"] {
        assert!(validate(&spec(text), kind.ty(), Duplicates::Allowed).is_ok(), "{text}");
    }
    let found = validate(&json!([]), kind.ty(), Duplicates::Allowed).unwrap_err();
    assert_eq!(found.to_string(), "expected map, got &{[]}");
    assert_eq!(found.all()[0].path, "");
}

#[test]
fn built_in_types_have_the_topology_of_their_openapi_documents() {
    for (definition, object, paths) in [
        (
            "api.core.v1.ConfigMap",
            json!({"metadata": {"name": "a", "labels": {"a/b": "c"}, "finalizers": ["x"],
                "ownerReferences": [{"uid": "u", "name": "n"}]}, "data": {"k": "v"}}),
            &[
                ".data.k",
                ".metadata.finalizers[=\"x\"]",
                ".metadata.labels.a/b",
                ".metadata.name",
                ".metadata.ownerReferences[uid=\"u\"]",
            ][..],
        ),
        (
            "api.apps.v1.Deployment",
            json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {
                "containers": [{"name": "c", "args": ["x"], "env": [{"name": "e", "value": "v"}],
                    "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}}],
                "tolerations": [{"key": "a"}], "imagePullSecrets": [{}],
                "nodeSelector": {"a": "b"}, "volumes": [{"name": "v", "emptyDir": {}}],
            }}}}),
            &[
                ".spec.selector",
                ".spec.template.spec.containers[name=\"c\"].args",
                ".spec.template.spec.containers[name=\"c\"].env[name=\"e\"].name",
                ".spec.template.spec.containers[name=\"c\"].env[name=\"e\"].value",
                ".spec.template.spec.containers[name=\"c\"].name",
                ".spec.template.spec.containers[name=\"c\"].ports[containerPort=80,protocol=\"TCP\"].containerPort",
                ".spec.template.spec.containers[name=\"c\"].resources.limits.cpu",
                ".spec.template.spec.imagePullSecrets[name=\"\"]",
                ".spec.template.spec.nodeSelector",
                ".spec.template.spec.tolerations",
                ".spec.template.spec.volumes[name=\"v\"].emptyDir",
                ".spec.template.spec.volumes[name=\"v\"].name",
            ],
        ),
        (
            "api.core.v1.Service",
            json!({"spec": {"ports": [{"port": 80, "targetPort": "a"}], "selector": {"a": "b"}}}),
            &[
                ".spec.ports[port=80,protocol=\"TCP\"].port",
                ".spec.ports[port=80,protocol=\"TCP\"].targetPort",
                ".spec.selector",
            ],
        ),
        // This reference is granular, although the type of references is atomic.
        (
            "api.core.v1.PersistentVolume",
            json!({"spec": {"claimRef": {"name": "a"}, "csi": {"nodeStageSecretRef": {"name": "a"}}}}),
            &[".spec.claimRef.name", ".spec.csi.nodeStageSecretRef"],
        ),
        (
            "api.apps.v1.ControllerRevision",
            json!({"data": {"a": {"b": 1}}, "revision": 1}),
            &[".data", ".revision"],
        ),
        (
            "apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
            json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {
                "properties": {"a": {"default": {"x": [1]}, "items": {"type": "string"}}}}},
                "subresources": {"status": {}}}]}}),
            &[".spec.versions"],
        ),
    ] {
        let ty = built_in(definition);
        validate(&object, ty, Duplicates::Rejected).unwrap();
        let leaves = field_set(&object, ty).unwrap().leaves();
        assert_eq!(sorted_paths(&leaves), paths, "{definition}");
    }
}

fn describe_comparison(comparison: &FieldComparison) -> String {
    let list = |name: &str, set| {
        format!(
            "{name}{}",
            sorted_paths(set).iter().fold(String::new(), |all, path| all + " " + path)
        )
    };
    let parts = [
        list("-", &comparison.removed),
        list("~", &comparison.modified),
        list("+", &comparison.added),
    ];
    parts.into_iter().filter(|part| part.len() > 1).collect::<Vec<_>>().join(" ")
}

#[test]
fn comparison_names_removed_modified_and_added_paths() {
    let kind = TestKind::new();
    for (left, right, changes) in [
        ("{text: a}", "{text: a}", ""),
        ("{text: a}", "{text: b}", "~ .spec.text"),
        ("{text: a}", "{number: 1}", "- .spec.text + .spec.number"),
        ("{number: 1}", "{number: 1.0}", ""),
        ("{}", "{struct: {deep: {x: a}}}", "+ .spec.struct .spec.struct.deep .spec.struct.deep.x"),
        ("{struct: {a: x}}", "{}", "- .spec.struct .spec.struct.a"),
        ("{struct: {}}", "{struct: {a: x}}", "+ .spec.struct.a"),
        ("{struct: {a: x}}", "{struct: null}", "- .spec.struct.a"),
        ("{struct: {}}", "{struct: null}", "~ .spec.struct"),
        ("{whole: {a: x}}", "{whole: {a: x, b: w}}", "~ .spec.whole"),
        ("{atomic: [a, b]}", "{atomic: [b, a]}", "~ .spec.atomic"),
        // The order of sets and list maps is no difference.
        ("{set: [a, b]}", "{set: [b, a]}", ""),
        ("{set: [a, b]}", "{set: [b, c]}", "- .spec.set[=\"a\"] + .spec.set[=\"c\"]"),
        (
            "{items: [{name: a, value: 1}, {name: b}]}",
            "{items: [{name: c}, {name: a, value: 2}]}",
            "- .spec.items[name=\"b\"] .spec.items[name=\"b\"].name ~ .spec.items[name=\"a\"].value + .spec.items[name=\"c\"] .spec.items[name=\"c\"].name",
        ),
        (
            "{ports: [{port: 1}]}",
            "{ports: [{port: 1, protocol: TCP}]}",
            "+ .spec.ports[port=1,protocol=\"TCP\"].protocol",
        ),
        ("{either: 1}", "{either: a}", "~ .spec.either"),
        ("{free: {a: 1}}", "{free: {a: {b: 1}}}", "~ .spec.free.a + .spec.free.a.b"),
        ("{free: {a: [1]}}", "{free: {a: {b: 1}}}", "~ .spec.free.a + .spec.free.a.b"),
        ("{set: [a]}", "{set: [a, a]}", "- .spec.set[=\"a\"] + .spec.set[=\"a\"]"),
        ("{set: [a, a]}", "{set: [a, a, a]}", "~ .spec.set[=\"a\"]"),
        ("{set: [a, a]}", "{set: []}", "- .spec.set[=\"a\"]"),
    ] {
        let found = compare(&spec(left), &spec(right), kind.ty()).unwrap();
        assert_eq!(describe_comparison(&found), changes, "{left} {right}");
        assert_eq!(found.is_same(), changes.is_empty(), "{left} {right}");
    }
    let found = compare(&spec("{number: x}"), &spec("{number: true}"), kind.ty()).unwrap_err();
    assert_eq!(
        found.to_string(),
        "errors:\n  .spec.number: lhs: expected numeric (int or float), got string\n  .spec.number: rhs: expected numeric (int or float), got bool"
    );
}

#[test]
fn merge_keeps_fields_of_both_and_leaves_of_the_configuration() {
    let kind = TestKind::new();
    for (object, config, merged) in [
        ("{text: a, number: 1}", "{text: b}", "{text: b, number: 1}"),
        ("{struct: {a: x}}", "{struct: {b: w, deep: {}}}", "{struct: {a: x, b: w, deep: {}}}"),
        ("{struct: {a: x}}", "{struct: {}}", "{struct: {a: x}}"),
        ("{struct: {}}", "{struct: null}", "{struct: null}"),
        ("{whole: {a: x}}", "{whole: {b: w}}", "{whole: {b: w}}"),
        ("{atomic: [a]}", "{atomic: []}", "{atomic: []}"),
        ("{set: [a]}", "{set: []}", "{set: [a]}"),
        ("{set: []}", "{set: [a]}", "{set: [a]}"),
        ("{set: null}", "{set: []}", "{set: []}"),
        ("{free: {a: 1}}", "{free: {a: {b: 2}}}", "{free: {a: {b: 2}}}"),
        ("{free: {a: {b: 1}}}", "{free: {a: 2}}", "{free: {a: 2}}"),
        ("{maps: {a: {b: c}}}", "{maps: {a: {d: e}, f: {}}}", "{maps: {a: {b: c, d: e}, f: {}}}"),
        (
            "{ports: [{port: 1, name: a, protocol: TCP}]}",
            "{ports: [{port: 1, name: b}, {port: 2}]}",
            "{ports: [{port: 1, name: b, protocol: TCP}, {port: 2}]}",
        ),
    ] {
        let mut found = spec(object);
        merge(&mut found, &spec(config), kind.ty()).unwrap();
        assert_eq!(found, spec(merged), "{object} {config}");
    }
    let mut object = spec("{set: [a]}");
    let found = merge(&mut object, &spec("{set: [b, b]}"), kind.ty()).unwrap_err();
    assert_eq!(found.to_string(), ".spec.set: duplicate entries for key [=\"b\"]");
}

#[test]
fn remove_deletes_members_with_fields_below_and_empty_values_become_null() {
    let kind = TestKind::new();
    for (object, members, left) in [
        ("{text: a, number: 1}", "{'f:text': {}}", "{number: 1}"),
        ("{text: a}", "{'f:text': {}}", "null"),
        (
            "{struct: {deep: {x: a}, a: b}}",
            "{'f:struct': {'f:deep': {'f:x': {}}}}",
            "{struct: {deep: null, a: b}}",
        ),
        ("{set: [a, b]}", "{'f:set': {'v:\"a\"': {}}}", "{set: [b]}"),
        ("{set: [a]}", "{'f:set': {'v:\"a\"': {}}}", "{set: null}"),
        (
            "{items: [{name: a, value: 1}, {name: b}]}",
            "{'f:items': {'k:{\"name\":\"a\"}': {'f:value': {}}, 'k:{\"name\":\"b\"}': {}}}",
            "{items: [{name: a}]}",
        ),
        (
            "{ports: [{port: 1}, {port: 2}]}",
            "{'f:ports': {'k:{\"port\":1,\"protocol\":\"TCP\"}': {}}}",
            "{ports: [{port: 2}]}",
        ),
        ("{whole: {a: x, b: w}}", "{'f:whole': {'f:a': {}}}", "{whole: null}"),
        ("{labels: {a: b}}", "{'f:labels': {'f:c': {}}}", "{labels: {a: b}}"),
        (
            "{labels: {a: b}, free: {a: {b: c}}}",
            "{'f:free': {'f:a': {}}}",
            "{labels: {a: b}, free: null}",
        ),
    ] {
        let members = mainstay_patch::apply::FieldSet::from_fields_v1(
            &json!({"f:spec": parse_yaml(members)}),
        );
        let mut object = spec(object);
        object["kind"] = "K".into();
        remove(&mut object, &members.unwrap(), kind.ty());
        let mut expected = spec(left);
        expected["kind"] = "K".into();
        assert_eq!(object, expected, "{left}");
    }
}
