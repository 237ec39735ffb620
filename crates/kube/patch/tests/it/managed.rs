//! Managers of objects: who has what after a story of writes.

use mainstay_object::{FieldPath, Gvk, Object};
use mainstay_patch::apply::{ConversionError, PathElement, TypeRef, Versions};
use mainstay_patch::managed::{
    ANNOTATION, Managed, Write, entry_errors, is_unchanged, of_parent, of_scale,
};
use mainstay_schema::{builtin, form};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

struct OneVersion(Gvk);

impl Versions for OneVersion {
    fn convert(&self, object: &Value, _: &str) -> Result<Value, ConversionError> {
        Ok(object.clone())
    }

    fn type_of(&self, api_version: &str) -> Option<TypeRef<'_>> {
        let known = self.0.api_version() == api_version;
        known.then(|| builtin::definition_of(&self.0).map(TypeRef::builtin))?
    }
}

/// An object and what happens to it; each write is a second later than the one before.
struct Story {
    gvk: Gvk,
    empty: Value,
    live: Option<Object>,
    second: u32,
    subresource: &'static str,
}

impl Story {
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

    fn writing<T>(&mut self, manager: &str, act: impl FnOnce(&Write<'_>) -> T) -> T {
        self.second += 1;
        let now = format!("2026-01-01T00:{:02}:{:02}Z", self.second / 60, self.second % 60);
        act(&Write {
            manager,
            gvk: &self.gvk,
            subresource: self.subresource,
            now: &now,
            versions: &OneVersion(self.gvk.clone()),
            filters: &BTreeMap::new(),
            empty: &self.empty,
        })
    }

    fn full(&self, mut body: Value) -> Value {
        body["apiVersion"] = self.gvk.api_version().into();
        body["kind"] = self.gvk.kind.as_str().into();
        body["metadata"]["name"] = "a".into();
        body
    }

    /// Creates, or replaces all fields.
    fn put(&mut self, manager: &str, body: Value) {
        let mut object = Object::from_value(self.full(body)).unwrap();
        let sent = object.remove(&["metadata", "managedFields"]);
        form::complete(builtin::definition_of(&self.gvk).unwrap(), object.fields_mut());
        match self.live.take() {
            None => self.writing(manager, |write| write.created(&mut object, sent.as_ref())),
            Some(mut live) => {
                let before = live.clone();
                self.writing(manager, |write| write.updated(&mut live, &mut object, sent.as_ref()));
                assert_eq!(live, before);
            }
        }
        self.live = Some(object);
    }

    fn apply(&mut self, manager: &str, force: bool, body: Value) -> Result<(), String> {
        let config = self.full(body);
        let live = self.live.take();
        let applied = self.writing(manager, |write| write.applied(live.as_ref(), &config, force));
        self.live = applied.as_ref().ok().cloned().or(live);
        applied.map(|_| ()).map_err(|status| status.message)
    }

    fn entries(&self) -> &[Value] {
        self.live.as_ref().unwrap().array(&["metadata", "managedFields"])
    }

    /// Each manager with its operation, the second of its time and its fields of `data`.
    fn owners(&self) -> Vec<String> {
        let shown = |entry: &Value| {
            let fields = entry["fieldsV1"]["f:data"].as_object();
            let fields: Vec<&str> =
                fields.into_iter().flat_map(|object| object.keys()).map(|key| &**key).collect();
            let time = entry["time"].as_str().map_or("-", |time| &time[17..19]);
            let text = |field: &str| entry[field].as_str().unwrap().to_owned();
            format!("{} {} {time} {}", text("operation"), text("manager"), fields.join(","))
        };
        self.entries().iter().map(shown).collect()
    }
}

fn data(fields: &[(&str, &str)]) -> Value {
    json!({"data": fields.iter().copied().collect::<BTreeMap<_, _>>()})
}

#[test]
fn a_time_moves_when_its_manager_changes_something() {
    let mut story = Story::config_map();
    story.put("one", data(&[("a", "1"), ("b", "1")]));
    story.put("two", data(&[("a", "1"), ("b", "2")]));
    assert_eq!(story.owners(), ["Update one 01 .,f:a", "Update two 02 f:b"]);
    story.put("one", data(&[("a", "1"), ("b", "2")]));
    assert_eq!(story.owners(), ["Update one 01 .,f:a", "Update two 02 f:b"]);
    story.put("one", data(&[("a", "1"), ("b", "2"), ("c", "3")]));
    assert_eq!(story.owners(), ["Update two 02 f:b", "Update one 04 .,f:a,f:c"]);
}

#[test]
fn who_applies_and_who_writes_are_two_even_by_one_name() {
    let mut story = Story::config_map();
    story.apply("one", false, data(&[("a", "1")])).unwrap();
    story.put("one", data(&[("a", "1"), ("b", "1")]));
    assert_eq!(story.owners(), ["Apply one 01 f:a", "Update one 02 f:b"]);
    let refused = story.apply("one", false, data(&[("a", "1"), ("b", "2")])).unwrap_err();
    assert_eq!(refused, "Apply failed with 1 conflict: conflict with \"one\" using v1: .data.b");
}

#[test]
fn an_apply_that_changes_no_value_moves_no_time() {
    let mut story = Story::config_map();
    story.apply("one", false, data(&[("a", "1")])).unwrap();
    story.apply("one", false, data(&[("a", "1")])).unwrap();
    story.apply("two", false, data(&[("a", "1")])).unwrap();
    assert_eq!(story.owners(), ["Apply two - f:a", "Apply one 01 f:a"]);
}

#[test]
fn conflicts_with_several_managers_are_told_manager_by_manager() {
    let mut story = Story::config_map();
    story.apply("one", false, data(&[("a", "1"), ("b", "1")])).unwrap();
    story.subresource = "status";
    story.put("two", data(&[("a", "1"), ("b", "1"), ("c", "1")]));
    story.subresource = "";
    let refused = story.apply("three", false, data(&[("a", "2"), ("b", "2"), ("c", "2")]));
    assert_eq!(
        refused.unwrap_err(),
        "Apply failed with 3 conflicts: conflicts with \"one\":\n- .data.a\n- .data.b\n\
         conflicts with \"two\" with subresource \"status\" using v1:\n- .data.c"
    );
    story.apply("three", true, data(&[("a", "2"), ("c", "2")])).unwrap();
    assert_eq!(story.owners(), ["Apply one 01 f:b", "Apply three 04 f:a,f:c"]);
}

#[test]
fn more_than_ten_writers_become_one_for_each_version() {
    let mut story = Story::config_map();
    let mut fields = Vec::new();
    let names: Vec<String> = (0..13).map(|at| format!("w{at:02}")).collect();
    for name in &names {
        fields.push((name.as_str(), "1"));
        story.put(name, data(&fields));
    }
    let owners = story.owners();
    assert_eq!(owners.len(), 10);
    assert_eq!(owners[0], "Update ancient-changes 04 .,f:w00,f:w01,f:w02,f:w03");
    assert_eq!(owners[9], "Update w12 13 f:w12");
    story.apply("one", false, data(&[("x", "1")])).unwrap();
    assert_eq!(story.owners().len(), 11);
}

#[test]
fn managers_that_a_client_sends_count_if_they_can_be_read() {
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
    let kept = ["Update one 01 .,f:a"];
    for (sent, owners) in [
        (json!(null), &kept[..]),
        (json!([]), &[]),
        (json!([{}]), &[]),
        (json!([{}, {}]), &kept),
        (json!([entry(json!({}))]), &["Update m 59 f:a"]),
        (json!([entry(json!({"operation": "Delete"}))]), &kept),
        (json!([entry(json!({"apiVersion": ""}))]), &kept),
        (json!([entry(json!({"fieldsType": ""}))]), &kept),
        (json!([entry(json!({"fieldsType": "FieldsV2"}))]), &kept),
        (json!([entry(json!({"fieldsV1": {"a": {}}}))]), &kept),
        (json!([entry(json!({"apiVersion": "v9"})), entry(json!({}))]), &["Update m 59 f:a"]),
    ] {
        let mut story = Story::config_map();
        story.put("one", data(&[("a", "1")]));
        let mut body = data(&[("a", "1")]);
        body["metadata"]["managedFields"] = sent.clone();
        story.put("two", body.clone());
        assert_eq!(story.owners(), owners, "{sent}");
        let mut story = Story::config_map();
        story.put("one", data(&[("a", "1")]));
        story.subresource = "status";
        story.put("two", body);
        assert_eq!(story.owners(), kept, "on a subresource: {sent}");
    }
}

#[test]
fn nobody_is_followed_until_somebody_applies() {
    let mut story = Story::config_map();
    story.put("one", data(&[("a", "1")]));
    story.put("one", json!({"data": {"a": "1"}, "metadata": {"managedFields": []}}));
    story.put("two", data(&[("a", "2")]));
    assert!(story.owners().is_empty());
    let refused = story.apply("three", false, data(&[("a", "3")])).unwrap_err();
    assert!(
        refused.ends_with("conflict with \"before-first-apply\" using v1: .data.a"),
        "{refused}"
    );
    story.apply("three", false, data(&[("b", "3")])).unwrap();
    assert_eq!(story.owners(), ["Apply three 05 f:b", "Update before-first-apply 05 .,f:a"]);
}

#[test]
fn what_names_the_object_is_nobodys() {
    let mut story = Story::config_map();
    story.apply("one", false, json!({"metadata": {"namespace": "n", "uid": "u"}})).unwrap();
    assert!(story.entries().is_empty());
    story.put("two", json!({"metadata": {"labels": {"a": "b"}, "generateName": "a-"}}));
    assert!(story.entries().is_empty());
    let mut story = Story::config_map();
    story.put("two", json!({"metadata": {"labels": {"a": "b"}, "generateName": "a-"}}));
    let fields = json!({"f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:a": {}}}});
    assert_eq!(story.entries()[0]["fieldsV1"], fields);
    assert_eq!(story.entries()[0].get("subresource"), None);
}

#[test]
fn kubectl_takes_over_what_it_applied_on_the_clients_side() {
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
        let mut story = Story::config_map();
        story.put("kubectl-client-side-apply", annotated(applied, &live));
        let found = story.apply(name, force, wanted.clone());
        match outcome {
            Ok(()) => {
                found.unwrap();
                let path = ["metadata", "annotations", ANNOTATION];
                let note = story.live.as_ref().unwrap().str(&path).unwrap();
                let note: Value = serde_json::from_str(note).unwrap();
                assert_eq!(note["data"], wanted["data"]);
            }
            Err(text) => {
                let found = found.unwrap_err();
                assert!(found.contains(text), "{name} {applied} {live:?}: {found}");
            }
        }
    }
}

#[test]
fn a_configuration_is_of_the_kind_and_names_no_managers() {
    let mut story = Story::config_map();
    let refused = story.apply("one", false, json!({"metadata": {"managedFields": []}}));
    assert_eq!(refused.unwrap_err(), "metadata.managedFields must be nil");
    story
        .apply("one", false, json!({"metadata": {"managedFields": null}, "data": {"a": "1"}}))
        .unwrap();
    let refused = story.apply("one", false, json!({"dota": {}}));
    assert_eq!(
        refused.unwrap_err(),
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .dota: field not declared in schema"
    );
    let other = Gvk::new("apps", "v1", "Deployment");
    let refused = story.writing("one", |write| {
        let config = json!({"apiVersion": other.api_version(), "kind": "Deployment"});
        write.applied(None, &config, false).unwrap_err().message
    });
    assert_eq!(refused, "invalid object type: apps/v1, Kind=Deployment");
}

#[test]
fn names_in_entries_have_rules() {
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
fn only_times_that_differ_are_put_back() {
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
    let mut gone = object("1", "x");
    gone.remove(&["metadata", "managedFields"]);
    assert!(!is_unchanged(&mut gone, &old));
}

#[test]
fn owners_of_the_replicas_are_those_of_the_scale() {
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
    let read = |entries: &Value| Managed::read(Some(entries)).unwrap();
    let scale = of_scale(&read(&parent), &paths).unwrap();
    assert_eq!(scale, json!([entry("one", "Apply", "autoscaling/v1", replicas.clone())]));
    // Nothing changed: only those of unknown versions go.
    let same = of_parent(read(&parent), read(&scale), "apps/v1", &paths).unwrap();
    let managers: Vec<&Value> =
        same.as_array().unwrap().iter().map(|entry| &entry["manager"]).collect();
    assert_eq!(managers, ["one", "three", "two"]);
    // Somebody took the number.
    let taken = json!([entry("five", "Apply", "autoscaling/v1", replicas.clone())]);
    let taken = of_parent(read(&parent), read(&taken), "apps/v1", &paths).unwrap();
    assert_eq!(taken[0], entry("five", "Apply", "apps/v1", replicas));
    assert_eq!(taken[1], entry("one", "Apply", "apps/v1", json!({"f:spec": {"f:paused": {}}})));
}

proptest! {
    #[test]
    fn entries_read_and_written_are_the_same(
        writes in proptest::collection::vec((0..4usize, any::<bool>(), 0..5usize, 0..3u8), 1..12)
    ) {
        let mut story = Story::config_map();
        story.put("start", data(&[("start", "1")]));
        for (manager, applies, field, value) in writes {
            let (manager, field) = (format!("m{manager}"), format!("f{field}"));
            let value = value.to_string();
            if applies {
                story.apply(&manager, true, data(&[(&field, &value)])).unwrap();
            } else {
                let mut fields = story.live.as_ref().unwrap().get(&["data"]).cloned().unwrap_or_default();
                fields[&field] = value.into();
                story.put(&manager, json!({"data": fields}));
            }
            let entries: Value = story.entries().to_vec().into();
            let again = Managed::read(Some(&entries)).unwrap().write().unwrap_or(json!([]));
            prop_assert_eq!(again, entries);
        }
    }

    #[test]
    fn who_applied_again_changes_nothing(fields in proptest::collection::btree_map("[a-e]", "[x-z]", 0..5)) {
        let mut story = Story::config_map();
        story.put("start", data(&[("a", "x"), ("f", "x")]));
        let fields: Vec<(&str, &str)> = fields.iter().map(|(a, b)| (&**a, &**b)).collect();
        story.apply("one", true, data(&fields)).unwrap();
        let once = story.live.clone().unwrap();
        story.apply("one", false, data(&fields)).unwrap();
        prop_assert_eq!(story.live.unwrap(), once);
    }
}
