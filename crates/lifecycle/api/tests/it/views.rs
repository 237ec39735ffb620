//! Views: decoding, encoding and round trips.

use mainstay_api::{
    ApiKind, CatalogSource, ClusterCatalog, ClusterExtension, ClusterObjectSet,
    ClusterServiceVersion, CsvPhase, CsvReason, InstallPlan, InstallPlanPhase, OlmConfig, Operator,
    OperatorCondition, OperatorGroup, Subscription, Time,
};
use mainstay_object::Object;
use mainstay_testdata::{ran, unpack};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

#[test]
fn view_round_trip_keeps_untyped_fields() {
    let subscription = object(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "Subscription",
        "metadata": {
            "name": "a", "namespace": "b", "generation": 2,
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {
            "name": "etcd", "source": "cat", "sourceNamespace": "olm", "channel": "alpha",
            "config": {"env": [{"name": "A", "value": "1"}], "affinity": {}},
        },
    }));
    let view = Subscription::from_object(&subscription).unwrap();
    assert_eq!(view.spec.package, "etcd");
    assert_eq!(view.key().to_string(), "b/a");
    assert_eq!(view.status.current_csv, "");
    assert_eq!(view.to_object().unwrap(), subscription);
}

#[test]
fn nulls_and_unknown_enumeration_texts_are_decoded() {
    let csv = ClusterServiceVersion::from_object(&object(json!({
        "spec": {
            "displayName": null, "skips": null, "install": {"strategy": "deployment", "spec": null},
            "installModes": [{"type": "Other", "supported": true}],
        },
        "status": {"phase": "Dreaming", "lastUpdateTime": "2024-05-06T07:08:09Z"},
    })))
    .unwrap();
    assert_eq!(csv.spec.install.strategy, "deployment");
    assert_eq!(csv.status.phase, CsvPhase::Other("Dreaming".into()));
    assert_eq!(csv.status.phase.to_string(), "Dreaming");
    assert_eq!(csv.spec.install_modes[0].kind.as_str(), "Other");
    assert_eq!(csv.status.last_update_time.unwrap().to_string(), "2024-05-06T07:08:09Z");
}

#[test]
fn decode_error_names_the_object() {
    let plan =
        object(json!({"metadata": {"name": "a", "namespace": "b"}, "spec": {"approved": 7}}));
    let error = InstallPlan::from_object(&plan).unwrap_err().to_string();
    assert!(error.starts_with("reading InstallPlan b/a: "), "{error}");
}

#[test]
fn required_fields_are_written_even_when_empty() {
    let mut plan = InstallPlan::new("b", "a");
    assert_eq!(
        plan.to_object().unwrap().get(&["spec"]),
        Some(&json!({"approval": "", "approved": false, "clusterServiceVersionNames": []}))
    );
    plan.status.phase = InstallPlanPhase::Complete;
    assert_eq!(
        plan.to_object().unwrap().get(&["status"]),
        Some(&json!({"phase": "Complete", "catalogSources": []}))
    );
}

#[test]
fn times_are_whole_seconds() {
    let time = Time::new("2024-05-06T07:08:09.987654Z".parse().unwrap());
    assert_eq!(time.to_string(), "2024-05-06T07:08:09Z");
    let before = Time::new("1969-12-31T23:59:59.5Z".parse().unwrap());
    assert_eq!(before.to_string(), "1969-12-31T23:59:59Z");
}

#[test]
fn phases_and_reasons_have_the_texts_of_upstream() {
    assert_eq!(CsvReason::InstallSuccessful.as_str(), "InstallSucceeded");
    assert_eq!(CsvReason::from("Copied"), CsvReason::Copied);
    assert_eq!(CsvPhase::default(), CsvPhase::None);
    for reason in CsvReason::ALL {
        let read: CsvReason = reason.as_str().into();
        assert_eq!(read, *reason);
    }
}

/// Recorded objects, with valid values in place of their placeholders.
fn recorded(folder: &Path) -> Vec<Object> {
    let mut objects = Vec::new();
    let mut folders: Vec<_> = sorted(folder).into_iter().flat_map(|case| sorted(&case)).collect();
    folders.retain(|step| step.is_dir());
    for step in folders {
        let file = step.join("objects.json");
        if let Ok(text) = std::fs::read_to_string(file) {
            let text = text.replace("{time}", "2024-05-06T07:08:09Z");
            let list: Value = serde_json::from_str(&text).unwrap();
            let items = if list.is_array() { &list } else { &list["items"] };
            objects.extend(items.as_array().unwrap().iter().cloned().map(object));
        }
    }
    objects
}

fn sorted(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    paths.sort();
    paths
}

/// Checks the round trip of an object through its view.
fn check_round_trip<K: ApiKind>(object: &Object) {
    let view: K = object.decode().unwrap_or_else(|error| panic!("{}: {error}", object.key()));
    let mut expected = object.to_value();
    let mut got = Object::encode(&view).unwrap().into_value();
    // Empty lists, objects, texts and zeros count as absent.
    drop_empty(&mut expected);
    drop_empty(&mut got);
    assert_eq!(got, expected, "{}", object.key());
}

fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(drop_empty);
            fields.retain(|_, field| {
                !matches!(field, Value::Null | Value::Bool(false))
                    && *field != json!("")
                    && *field != json!(0)
                    && *field != json!([])
                    && *field != json!({})
            });
        }
        Value::Array(items) => items.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

#[test]
fn recorded_objects_survive_a_round_trip() {
    let Some(folder) = unpack("answers/olm-classic", "recorded objects") else { return };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for object in recorded(&folder.path().join("olm-classic")) {
        if object.gvk().group != "operators.coreos.com" {
            continue;
        }
        *counts.entry(object.kind().to_owned()).or_default() += 1;
        match object.kind() {
            "CatalogSource" => check_round_trip::<CatalogSource>(&object),
            "ClusterServiceVersion" => check_round_trip::<ClusterServiceVersion>(&object),
            "InstallPlan" => check_round_trip::<InstallPlan>(&object),
            "OLMConfig" => check_round_trip::<OlmConfig>(&object),
            "Operator" => check_round_trip::<Operator>(&object),
            "OperatorCondition" => check_round_trip::<OperatorCondition>(&object),
            "OperatorGroup" => check_round_trip::<OperatorGroup>(&object),
            "Subscription" => check_round_trip::<Subscription>(&object),
            other => panic!("no view for {other}"),
        }
    }
    assert!(counts.len() >= 7, "{counts:?}");
    ran(&format!("round trips of recorded objects: {counts:?}"));
}

#[test]
fn recorded_objects_of_olm_v1_survive_a_round_trip() {
    let Some(folder) = unpack("answers/olm-v1", "recorded objects of OLM v1") else { return };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for object in recorded(&folder.path().join("olm-v1/cases")) {
        if object.gvk().group != "olm.operatorframework.io" {
            continue;
        }
        *counts.entry(object.kind().to_owned()).or_default() += 1;
        match object.kind() {
            "ClusterCatalog" => check_round_trip::<ClusterCatalog>(&object),
            "ClusterExtension" => check_round_trip::<ClusterExtension>(&object),
            "ClusterObjectSet" => check_round_trip::<ClusterObjectSet>(&object),
            other => panic!("no view for {other}"),
        }
    }
    assert_eq!(counts.len(), 3, "{counts:?}");
    ran(&format!("round trips of recorded objects of OLM v1: {counts:?}"));
}
