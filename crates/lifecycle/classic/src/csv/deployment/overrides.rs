//! The effect of `spec.config` of a Subscription on pods, field by field.

use super::*;

/// A pod with a field, in its only container or in the pod spec; null leaves the field out.
fn with(field: &str, in_container: bool, value: &Value) -> Value {
    let mut pod = json!({"containers": [{"name": "c"}]});
    let place = if in_container { &mut pod["containers"][0] } else { &mut pod };
    if !value.is_null() {
        place[field] = value.clone();
    }
    pod
}

/// The field after the config was applied.
fn after(field: &str, in_container: bool, before: &Value, setting: &Value) -> Value {
    let pod = with(field, in_container, before);
    let mut deployment = Object::new(&builtin::DEPLOYMENT.gvk(), "d");
    deployment.set(&["spec", "template", "spec"], pod);
    let mut config = json!({});
    if !setting.is_null() {
        config[field] = setting.clone();
    }
    configure(&mut deployment, &serde_json::from_value(config).unwrap());
    let pod = deployment.get(&["spec", "template", "spec"]).unwrap();
    let place = if in_container { &pod["containers"][0] } else { pod };
    place.get(field).cloned().unwrap_or_default()
}

fn hold(field: &str, in_container: bool, rows: &[(Value, Value, Value)]) {
    for (before, setting, wanted) in rows {
        let found = after(field, in_container, before, setting);
        assert_eq!(found, *wanted, "{field}: {before} with {setting}");
    }
}

#[test]
fn environment_variables_are_merged_by_name() {
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let from = json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}});
    // shows C35
    hold(
        "env",
        true,
        &[
            (Value::Null, Value::Null, Value::Null),
            (Value::Null, json!([]), Value::Null),
            (Value::Null, json!([variable("A", "1")]), json!([variable("A", "1")])),
            (json!([]), json!([variable("A", "1")]), json!([variable("A", "1")])),
            (json!([variable("A", "1")]), json!([]), json!([variable("A", "1")])),
            (
                json!([variable("A", "1")]),
                json!([variable("B", "2")]),
                json!([variable("A", "1"), variable("B", "2")]),
            ),
            (json!([variable("A", "1")]), json!([variable("A", "2")]), json!([variable("A", "2")])),
            (json!([variable("A", "1")]), json!([variable("A", "")]), json!([variable("A", "")])),
            (json!([from]), json!([variable("A", "2")]), json!([variable("A", "2")])),
            (
                json!([variable("A", "1"), variable("B", "1"), variable("C", "1")]),
                json!([variable("C", "2"), variable("D", "2"), variable("A", "2")]),
                json!([
                    variable("A", "2"),
                    variable("B", "1"),
                    variable("C", "2"),
                    variable("D", "2")
                ]),
            ),
        ],
    );
    let map = |name: &str| json!({"configMapRef": {"name": name}});
    let secret = json!({"secretRef": {"name": "s"}});
    // shows C35 SUB-10
    hold(
        "envFrom",
        true,
        &[
            (Value::Null, json!([map("m"), secret]), json!([map("m"), secret])),
            (json!([map("m")]), json!([secret]), json!([map("m"), secret])),
            (json!([map("m")]), json!([map("m"), secret]), json!([map("m"), secret])),
            (json!([map("m")]), json!([map("n")]), json!([map("m"), map("n")])),
        ],
    );
}

#[test]
fn volumes_and_mounts_are_merged_by_name() {
    let empty = |name: &str| json!({"name": name, "emptyDir": {}});
    let map = |name: &str| json!({"name": name, "configMap": {"name": "m"}});
    // shows C35
    hold(
        "volumes",
        false,
        &[
            (Value::Null, json!([empty("v")]), json!([empty("v")])),
            (json!([empty("u")]), json!([empty("v")]), json!([empty("u"), empty("v")])),
            (json!([empty("v")]), json!([map("v")]), json!([map("v")])),
            (json!([empty("u"), empty("v")]), json!([map("u")]), json!([map("u"), empty("v")])),
        ],
    );
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    // shows C35
    hold(
        "volumeMounts",
        true,
        &[
            (Value::Null, json!([mount("v", "/v")]), json!([mount("v", "/v")])),
            (
                json!([mount("u", "/u")]),
                json!([mount("v", "/v")]),
                json!([mount("u", "/u"), mount("v", "/v")]),
            ),
            (json!([mount("v", "/u")]), json!([mount("v", "/v")]), json!([mount("v", "/v")])),
        ],
    );
}

#[test]
fn tolerations_are_appended_and_node_selectors_and_resources_are_replaced() {
    let tolerate =
        |key: &str, value: &str| json!({"key": key, "operator": "Equal", "value": value});
    let one = tolerate("a", "1");
    // shows C35
    hold(
        "tolerations",
        false,
        &[
            (Value::Null, json!([one]), json!([one])),
            (json!([one]), json!([one]), json!([one])),
            (json!([one]), json!([tolerate("a", "2")]), json!([one, tolerate("a", "2")])),
            (json!([one]), json!([tolerate("b", "1"), one]), json!([one, tolerate("b", "1")])),
        ],
    );
    let ssd = json!({"disk": "ssd"});
    // shows C35
    hold(
        "nodeSelector",
        false,
        &[
            (Value::Null, Value::Null, Value::Null),
            (Value::Null, ssd.clone(), ssd.clone()),
            (ssd.clone(), Value::Null, ssd.clone()),
            (json!({"disk": "hdd", "zone": "a"}), ssd.clone(), ssd.clone()),
            (ssd, json!({}), json!({})),
        ],
    );
    let memory = |limit: &str| json!({"limits": {"memory": limit}});
    // shows C35
    hold(
        "resources",
        true,
        &[
            (Value::Null, memory("1Gi"), memory("1Gi")),
            (memory("1Gi"), Value::Null, memory("1Gi")),
            (memory("1Gi"), memory("2Gi"), memory("2Gi")),
            (json!({"requests": {"cpu": "1"}}), memory("2Gi"), memory("2Gi")),
            (memory("1Gi"), json!({}), json!({})),
        ],
    );
}

#[test]
fn an_absent_affinity_field_keeps_an_empty_one_removes_and_another_replaces_it() {
    let term = |kind: &str| json!({"preferredDuringSchedulingIgnoredDuringExecution": [kind]});
    let node = |kind: &str| json!({"nodeAffinity": term(kind)});
    let all = |kind: &str| json!({"nodeAffinity": term(kind), "podAffinity": term(kind), "podAntiAffinity": term(kind)});
    let changed = |part: &str, value: Option<Value>| {
        let mut affinity = all("old");
        affinity.as_object_mut().unwrap().remove(part);
        if let Some(value) = value {
            affinity[part] = value;
        }
        affinity
    };
    let erasing = json!({"nodeAffinity": {}, "podAffinity": {}, "podAntiAffinity": {}});
    let mut rows = vec![
        (Value::Null, Value::Null, Value::Null),
        (Value::Null, json!({}), Value::Null),
        (json!({}), json!({}), Value::Null),
        (Value::Null, node("new"), node("new")),
        (json!({}), node("new"), node("new")),
        (all("old"), Value::Null, all("old")),
        (all("old"), json!({}), Value::Null),
        (all("old"), all("new"), all("new")),
        (all("old"), erasing.clone(), Value::Null),
        (node("old"), json!({"nodeAffinity": {}}), Value::Null),
        (node("old"), json!({"podAffinity": {}}), node("old")),
        (node("old"), json!({"nodeAffinity": null}), node("old")),
    ];
    for part in ["nodeAffinity", "podAffinity", "podAntiAffinity"] {
        rows.push((all("old"), json!({part: {}}), changed(part, None)));
        rows.push((all("old"), json!({part: term("new")}), changed(part, Some(term("new")))));
    }
    // shows C35
    hold("affinity", false, &rows);
}

#[test]
fn annotations_are_added_but_never_changed() {
    for (before, setting, wanted) in [
        (json!({}), json!({"a": "1"}), json!({"a": "1"})),
        (json!({"a": "0"}), json!({"a": "1", "b": "1"}), json!({"a": "0", "b": "1"})),
        (json!({"a": "0"}), json!({}), json!({"a": "0"})),
    ] {
        let mut deployment = Object::new(&builtin::DEPLOYMENT.gvk(), "d");
        deployment.set(&["metadata", "annotations"], before.clone());
        let pods = ["spec", "template", "metadata", "annotations"];
        deployment.set(&pods, before);
        let config = serde_json::from_value(json!({"annotations": setting})).unwrap();
        configure(&mut deployment, &config);
        // shows C35
        assert_eq!(deployment.get(&["metadata", "annotations"]), Some(&wanted));
        assert_eq!(deployment.get(&pods), Some(&wanted));
    }
}
