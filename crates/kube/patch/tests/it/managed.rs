//! Managed fields after sequences of writes.

use mainstay_object::{FieldPath, Gvk, Object};
use mainstay_patch::apply::{ConversionError, PathElement, TypeRef, VersionConverter};
use mainstay_patch::managed::{
    ANNOTATION, ManagedFields, ManagedWrite, entry_errors, is_unchanged, parent_entries,
    scale_entries,
};
use mainstay_schema::{builtin, form};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

struct SingleVersion(Gvk);

impl VersionConverter for SingleVersion {
    fn convert(&self, object: &Value, _: &str) -> Result<Value, ConversionError> {
        Ok(object.clone())
    }

    fn type_of(&self, api_version: &str) -> Option<TypeRef<'_>> {
        let is_served = self.0.api_version() == api_version;
        is_served.then(|| builtin::definition_of(&self.0).map(TypeRef::builtin))?
    }
}

/// An object and its writes; each write is one second after the previous one.
struct Scenario {
    gvk: Gvk,
    empty: Value,
    live: Option<Object>,
    second: u32,
    subresource: &'static str,
}

impl Scenario {
    fn of(gvk: Gvk) -> Self {
        let mut empty = Map::new();
        empty.insert("apiVersion".to_owned(), gvk.api_version().into());
        empty.insert("kind".to_owned(), gvk.kind.as_str().into());
        form::complete(builtin::definition_of(&gvk).unwrap(), &mut empty);
        Self { gvk, empty: empty.into(), live: None, second: 0, subresource: "" }
    }

    fn config_map() -> Self {
        Self::of(Gvk::new("", "v1", "ConfigMap"))
    }

    fn write<T>(&mut self, manager: &str, action: impl FnOnce(&ManagedWrite<'_>) -> T) -> T {
        self.second += 1;
        let now = format!("2026-01-01T00:{:02}:{:02}Z", self.second / 60, self.second % 60);
        action(&ManagedWrite {
            manager,
            gvk: &self.gvk,
            subresource: self.subresource,
            now: &now,
            versions: &SingleVersion(self.gvk.clone()),
            filters: &BTreeMap::new(),
            empty: &self.empty,
        })
    }

    fn with_type_and_name(&self, mut body: Value) -> Value {
        body["apiVersion"] = self.gvk.api_version().into();
        body["kind"] = self.gvk.kind.as_str().into();
        body["metadata"]["name"] = "a".into();
        body
    }

    /// Creates the object, or updates it.
    fn put(&mut self, manager: &str, body: Value) {
        let mut object = Object::from_value(self.with_type_and_name(body)).unwrap();
        let sent = object.remove(&["metadata", "managedFields"]);
        form::complete(builtin::definition_of(&self.gvk).unwrap(), object.fields_mut());
        match self.live.take() {
            None => self.write(manager, |write| write.set_on_create(&mut object, sent.as_ref())),
            Some(mut live) => {
                let before = live.clone();
                self.write(manager, |write| {
                    write.set_on_update(&mut live, &mut object, sent.as_ref());
                });
                assert_eq!(live, before);
            }
        }
        self.live = Some(object);
    }

    fn apply(&mut self, manager: &str, force: bool, body: Value) -> Result<(), String> {
        let config = self.with_type_and_name(body);
        let live = self.live.take();
        let applied = self.write(manager, |write| write.apply(live.as_ref(), &config, force));
        self.live = applied.as_ref().ok().cloned().or(live);
        applied.map(|_| ()).map_err(|status| status.message)
    }

    fn entries(&self) -> &[Value] {
        self.live.as_ref().unwrap().array(&["metadata", "managedFields"])
    }

    /// Each manager with its operation, the second of its time and its fields in `data`.
    fn owners(&self) -> Vec<String> {
        let describe = |entry: &Value| {
            let fields = entry["fieldsV1"]["f:data"].as_object();
            let fields: Vec<&str> =
                fields.into_iter().flat_map(|object| object.keys()).map(|key| &**key).collect();
            let time = entry["time"].as_str().map_or("-", |time| &time[17..19]);
            let text = |field: &str| entry[field].as_str().unwrap().to_owned();
            format!("{} {} {time} {}", text("operation"), text("manager"), fields.join(","))
        };
        self.entries().iter().map(describe).collect()
    }
}

fn data(fields: &[(&str, &str)]) -> Value {
    json!({"data": fields.iter().copied().collect::<BTreeMap<_, _>>()})
}

#[test]
fn time_of_a_manager_changes_with_its_fields() {
    let mut scenario = Scenario::config_map();
    scenario.put("one", data(&[("a", "1"), ("b", "1")]));
    scenario.put("two", data(&[("a", "1"), ("b", "2")]));
    assert_eq!(scenario.owners(), ["Update one 01 .,f:a", "Update two 02 f:b"]);
    scenario.put("one", data(&[("a", "1"), ("b", "2")]));
    assert_eq!(scenario.owners(), ["Update one 01 .,f:a", "Update two 02 f:b"]);
    scenario.put("one", data(&[("a", "1"), ("b", "2"), ("c", "3")]));
    assert_eq!(scenario.owners(), ["Update two 02 f:b", "Update one 04 .,f:a,f:c"]);
}

#[test]
fn apply_and_update_of_one_name_are_two_managers() {
    let mut scenario = Scenario::config_map();
    scenario.apply("one", false, data(&[("a", "1")])).unwrap();
    scenario.put("one", data(&[("a", "1"), ("b", "1")]));
    assert_eq!(scenario.owners(), ["Apply one 01 f:a", "Update one 02 f:b"]);
    let error = scenario.apply("one", false, data(&[("a", "1"), ("b", "2")])).unwrap_err();
    assert_eq!(error, "Apply failed with 1 conflict: conflict with \"one\" using v1: .data.b");
}

#[test]
fn apply_without_a_change_keeps_the_time() {
    let mut scenario = Scenario::config_map();
    scenario.apply("one", false, data(&[("a", "1")])).unwrap();
    scenario.apply("one", false, data(&[("a", "1")])).unwrap();
    scenario.apply("two", false, data(&[("a", "1")])).unwrap();
    assert_eq!(scenario.owners(), ["Apply two - f:a", "Apply one 01 f:a"]);
}

#[test]
fn conflicts_with_several_managers_are_grouped_by_manager() {
    let mut scenario = Scenario::config_map();
    scenario.apply("one", false, data(&[("a", "1"), ("b", "1")])).unwrap();
    scenario.subresource = "status";
    scenario.put("two", data(&[("a", "1"), ("b", "1"), ("c", "1")]));
    scenario.subresource = "";
    let result = scenario.apply("three", false, data(&[("a", "2"), ("b", "2"), ("c", "2")]));
    assert_eq!(
        result.unwrap_err(),
        "Apply failed with 3 conflicts: conflicts with \"one\":\n- .data.a\n- .data.b\n\
         conflicts with \"two\" with subresource \"status\" using v1:\n- .data.c"
    );
    scenario.apply("three", true, data(&[("a", "2"), ("c", "2")])).unwrap();
    assert_eq!(scenario.owners(), ["Apply one 01 f:b", "Apply three 04 f:a,f:c"]);
}

#[test]
fn more_than_ten_updaters_are_merged_by_version() {
    let mut scenario = Scenario::config_map();
    let mut fields = Vec::new();
    let names: Vec<String> = (0..13).map(|index| format!("w{index:02}")).collect();
    for name in &names {
        fields.push((name.as_str(), "1"));
        scenario.put(name, data(&fields));
    }
    let owners = scenario.owners();
    assert_eq!(owners.len(), 10);
    assert_eq!(owners[0], "Update ancient-changes 04 .,f:w00,f:w01,f:w02,f:w03");
    assert_eq!(owners[9], "Update w12 13 f:w12");
    scenario.apply("one", false, data(&[("x", "1")])).unwrap();
    assert_eq!(scenario.owners().len(), 11);
}

#[test]
fn valid_managed_fields_of_a_client_are_the_starting_point() {
    let entry = |changes: Value| {
        let mut entry = json!({
            "manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}}, "time": "2020-01-01T00:00:59Z",
        });
        for (field, value) in changes.as_object().unwrap() {
            entry[field] = value.clone();
        }
        entry
    };
    let unchanged = ["Update one 01 .,f:a"];
    for (sent, owners) in [
        (json!(null), &unchanged[..]),
        (json!([]), &[]),
        (json!([{}]), &[]),
        (json!([{}, {}]), &unchanged),
        (json!([entry(json!({}))]), &["Update m 59 f:a"]),
        (json!([entry(json!({"operation": "Delete"}))]), &unchanged),
        (json!([entry(json!({"apiVersion": ""}))]), &unchanged),
        (json!([entry(json!({"fieldsType": ""}))]), &unchanged),
        (json!([entry(json!({"fieldsType": "FieldsV2"}))]), &unchanged),
        (json!([entry(json!({"fieldsV1": {"a": {}}}))]), &unchanged),
        (json!([entry(json!({"apiVersion": "v9"})), entry(json!({}))]), &["Update m 59 f:a"]),
    ] {
        let mut scenario = Scenario::config_map();
        scenario.put("one", data(&[("a", "1")]));
        let mut body = data(&[("a", "1")]);
        body["metadata"]["managedFields"] = sent.clone();
        scenario.put("two", body.clone());
        assert_eq!(scenario.owners(), owners, "{sent}");
        let mut scenario = Scenario::config_map();
        scenario.put("one", data(&[("a", "1")]));
        scenario.subresource = "status";
        scenario.put("two", body);
        assert_eq!(scenario.owners(), unchanged, "on a subresource: {sent}");
    }
}

#[test]
fn object_without_managers_gets_them_with_the_first_apply() {
    let mut scenario = Scenario::config_map();
    scenario.put("one", data(&[("a", "1")]));
    scenario.put("one", json!({"data": {"a": "1"}, "metadata": {"managedFields": []}}));
    scenario.put("two", data(&[("a", "2")]));
    assert!(scenario.owners().is_empty());
    let error = scenario.apply("three", false, data(&[("a", "3")])).unwrap_err();
    assert!(error.ends_with("conflict with \"before-first-apply\" using v1: .data.a"), "{error}");
    scenario.apply("three", false, data(&[("b", "3")])).unwrap();
    assert_eq!(scenario.owners(), ["Apply three 05 f:b", "Update before-first-apply 05 .,f:a"]);
}

#[test]
fn fields_that_identify_the_object_have_no_owner() {
    let mut scenario = Scenario::config_map();
    scenario.apply("one", false, json!({"metadata": {"namespace": "n", "uid": "u"}})).unwrap();
    assert!(scenario.entries().is_empty());
    scenario.put("two", json!({"metadata": {"labels": {"a": "b"}, "generateName": "a-"}}));
    assert!(scenario.entries().is_empty());
    let mut scenario = Scenario::config_map();
    scenario.put("two", json!({"metadata": {"labels": {"a": "b"}, "generateName": "a-"}}));
    let fields = json!({"f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:a": {}}}});
    assert_eq!(scenario.entries()[0]["fieldsV1"], fields);
    assert_eq!(scenario.entries()[0].get("subresource"), None);
}

#[test]
fn kubectl_takes_over_fields_of_client_side_apply() {
    let annotated = |applied: &Value, fields: &[(&str, &str)]| {
        let mut body = data(fields);
        body["metadata"]["annotations"][ANNOTATION] = applied.to_string().into();
        body
    };
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1", "b": "1"}});
    let wanted = data(&[("a", "2"), ("b", "2")]);
    for (name, applied, live, force, outcome) in [
        ("kubectl", &applied, [("a", "1"), ("b", "1")], false, Ok(())),
        ("other", &applied, [("a", "1"), ("b", "1")], false, Err("2 conflicts")),
        ("kubectl", &applied, [("a", "1"), ("b", "9")], false, Err("1 conflict")),
        ("kubectl", &applied, [("a", "1"), ("b", "9")], true, Ok(())),
        (
            "kubectl",
            &json!({"apiVersion": "v2"}),
            [("a", "1"), ("b", "1")],
            false,
            Err("2 conflicts"),
        ),
        ("kubectl", &json!("no object"), [("a", "1"), ("b", "1")], false, Err("2 conflicts")),
    ] {
        let mut scenario = Scenario::config_map();
        scenario.put("kubectl-client-side-apply", annotated(applied, &live));
        let found = scenario.apply(name, force, wanted.clone());
        match outcome {
            Ok(()) => {
                found.unwrap();
                let path = ["metadata", "annotations", ANNOTATION];
                let annotation = scenario.live.as_ref().unwrap().str(&path).unwrap();
                let annotation: Value = serde_json::from_str(annotation).unwrap();
                assert_eq!(annotation["data"], wanted["data"]);
            }
            Err(text) => {
                let found = found.unwrap_err();
                assert!(found.contains(text), "{name} {applied} {live:?}: {found}");
            }
        }
    }
}

#[test]
fn configuration_has_the_kind_of_the_write_and_no_managed_fields() {
    let mut scenario = Scenario::config_map();
    let result = scenario.apply("one", false, json!({"metadata": {"managedFields": []}}));
    assert_eq!(result.unwrap_err(), "metadata.managedFields must be nil");
    scenario
        .apply("one", false, json!({"metadata": {"managedFields": null}, "data": {"a": "1"}}))
        .unwrap();
    let result = scenario.apply("one", false, json!({"dota": {}}));
    assert_eq!(
        result.unwrap_err(),
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .dota: field not declared in schema"
    );
    let other = Gvk::new("apps", "v1", "Deployment");
    let error = scenario.write("one", |write| {
        let config = json!({"apiVersion": other.api_version(), "kind": "Deployment"});
        write.apply(None, &config, false).unwrap_err().message
    });
    assert_eq!(error, "invalid object type: apps/v1, Kind=Deployment");
}

#[test]
fn names_in_entries_have_a_maximum_length() {
    let entries = [json!({"manager": "x".repeat(129), "subresource": "y".repeat(257)})];
    let errors = entry_errors(&entries, &FieldPath::new("metadata").child("managedFields"));
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
            "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
        ]
    );
}

#[test]
fn times_are_restored_if_nothing_else_changed() {
    let object = |time: &str, value: &str| {
        Object::from_value(json!({
            "metadata": {"name": "a", "managedFields": [{"manager": "m", "time": time}]},
            "data": {"a": value},
        }))
        .unwrap()
    };
    let old = object("1", "x");
    let mut later = object("2", "x");
    assert!(is_unchanged(&mut later, &old));
    assert_eq!(later, old);
    let mut other = object("2", "y");
    assert!(!is_unchanged(&mut other, &old));
    assert_eq!(other, object("2", "y"));
    let mut without_entries = object("1", "x");
    without_entries.remove(&["metadata", "managedFields"]);
    assert!(!is_unchanged(&mut without_entries, &old), "{without_entries:?}");
}

#[test]
fn owners_of_replicas_are_owners_of_the_scale() {
    let path = [PathElement::field("spec"), PathElement::field("replicas")];
    let paths = [("apps/v1", &path[..]), ("apps/v2", &[][..])];
    let entry = |manager: &str, operation: &str, version: &str, fields: Value| {
        json!({
            "manager": manager, "operation": operation, "apiVersion": version,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    };
    let replicas = json!({"f:spec": {"f:replicas": {}}});
    let both = json!({"f:spec": {"f:replicas": {}, "f:paused": {}}});
    let parent = json!([
        entry("one", "Apply", "apps/v1", both.clone()),
        entry("two", "Apply", "apps/v1", json!({"f:spec": {"f:paused": {}}})),
        entry("three", "Apply", "apps/v2", both.clone()),
        entry("four", "Apply", "apps/v9", both.clone()),
    ]);
    let read = |entries: &Value| ManagedFields::read(Some(entries)).unwrap();
    let scale = scale_entries(&read(&parent), &paths).unwrap();
    assert_eq!(scale, json!([entry("one", "Apply", "autoscaling/v1", replicas.clone())]));
    // Without a change, only managers of unknown versions are dropped.
    let same = parent_entries(read(&parent), read(&scale), "apps/v1", &paths).unwrap();
    let managers: Vec<&Value> =
        same.as_array().unwrap().iter().map(|entry| &entry["manager"]).collect();
    assert_eq!(managers, ["one", "three", "two"]);
    // Another manager takes the number of replicas.
    let taken = json!([entry("five", "Apply", "autoscaling/v1", replicas.clone())]);
    let taken = parent_entries(read(&parent), read(&taken), "apps/v1", &paths).unwrap();
    assert_eq!(taken[0], entry("five", "Apply", "apps/v1", replicas));
    assert_eq!(taken[1], entry("one", "Apply", "apps/v1", json!({"f:spec": {"f:paused": {}}})));
}

proptest! {
    #[test]
    fn entries_are_written_as_they_were_read(
        writes in proptest::collection::vec((0..4usize, any::<bool>(), 0..5usize, 0..3u8), 1..12)
    ) {
        let mut scenario = Scenario::config_map();
        scenario.put("start", data(&[("start", "1")]));
        for (manager, applies, field, value) in writes {
            let (manager, field) = (format!("m{manager}"), format!("f{field}"));
            let value = value.to_string();
            if applies {
                scenario.apply(&manager, true, data(&[(&field, &value)])).unwrap();
            } else {
                let mut fields = scenario.live.as_ref().unwrap().get(&["data"]).cloned().unwrap_or_default();
                fields[&field] = value.into();
                scenario.put(&manager, json!({"data": fields}));
            }
            let entries: Value = scenario.entries().to_vec().into();
            let again = ManagedFields::read(Some(&entries)).unwrap().write().unwrap_or(json!([]));
            prop_assert_eq!(again, entries);
        }
    }

    #[test]
    fn repeated_apply_changes_nothing(fields in proptest::collection::btree_map("[a-e]", "[x-z]", 0..5)) {
        let mut scenario = Scenario::config_map();
        scenario.put("start", data(&[("a", "x"), ("f", "x")]));
        let fields: Vec<(&str, &str)> = fields.iter().map(|(a, b)| (&**a, &**b)).collect();
        scenario.apply("one", true, data(&fields)).unwrap();
        let once = scenario.live.clone().unwrap();
        scenario.apply("one", false, data(&fields)).unwrap();
        prop_assert_eq!(scenario.live.unwrap(), once);
    }
}
