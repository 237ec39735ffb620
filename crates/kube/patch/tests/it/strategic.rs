//! Strategic merge patch, compared with responses of a Kubernetes 1.35 API server (`recorded/`).

use mainstay_patch::{PatchError, strategic_merge};
use mainstay_schema::builtin::{TypeDefinition, definition};
use mainstay_schema::strict;
use proptest::prelude::*;
use serde_json::{Value, json};

fn deployment() -> &'static TypeDefinition {
    definition("api.apps.v1.Deployment").unwrap()
}

#[test]
fn patches_have_the_recorded_results() {
    let recorded: Value = serde_json::from_str(include_str!("recorded/strategic.json")).unwrap();
    let cases = recorded["cases"].as_array().unwrap();
    assert!(cases.len() > 30);
    for case in cases {
        let patch = &case["patch"];
        match strategic_merge(&recorded["object"], patch, deployment()) {
            Err(error) => {
                let status = error.to_status();
                assert_eq!(json!(status.code), case["code"], "{patch}: {error}");
                assert_eq!(json!(status.message), case["message"], "{patch}");
            }
            Ok(mut merged) => {
                assert_eq!(case["code"], Value::Null, "{patch}");
                strict::decode(deployment(), &mut merged).unwrap();
                assert_eq!(merged["spec"], case["result"]["spec"], "{patch}");
                for field in ["finalizers", "labels"] {
                    let (ours, theirs) =
                        (&merged["metadata"][field], &case["result"]["metadata"][field]);
                    let empty = *ours == json!([]) || *ours == json!({});
                    assert!(
                        ours == theirs || (empty && theirs.is_null()),
                        "{field} after {patch}: {ours}, recorded {theirs}"
                    );
                }
            }
        }
    }
}

#[test]
fn selector_is_replaced_as_its_type_declares() {
    let budget = definition("api.policy.v1.PodDisruptionBudget").unwrap();
    let object = json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}});
    let patch = json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}});
    let merged = strategic_merge(&object, &patch, budget).unwrap();
    let expected = json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}});
    assert_eq!(merged, expected, "{patch} on {object}");
}

#[test]
fn lists_of_lists_do_not_merge() {
    let object = json!({"metadata": {"finalizers": [["a"]]}});
    let patch = json!({"metadata": {"finalizers": [["b"]]}});
    let error = strategic_merge(&object, &patch, deployment()).unwrap_err();
    assert_eq!(error, PatchError::ListsOfLists);
    assert_eq!(error.to_status().code, 422);
}

#[test]
fn list_of_objects_without_a_merge_key_is_replaced() {
    let object = json!({"spec": {"template": {"spec": {"tolerations": [{"key": "a"}]}}}});
    let patch = json!({"spec": {"template": {"spec": {"tolerations": [{"key": "b"}]}}}});
    assert_eq!(strategic_merge(&object, &patch, deployment()).unwrap(), patch);
}

#[test]
fn unknown_field_can_be_added_but_not_merged() {
    let patch = json!({"spec": {"foo": {"a": 1}}});
    let merged = strategic_merge(&json!({"spec": {}}), &patch, deployment()).unwrap();
    assert_eq!(merged, patch);
    let error = strategic_merge(&patch, &patch, deployment()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unable to find api field in struct DeploymentSpec for the json field \"foo\""
    );
}

/// Containers with a few different names.
fn containers() -> impl Strategy<Value = Vec<Value>> {
    proptest::sample::subsequence(vec!["a", "b", "c", "d", "e"], 0..=5)
        .prop_shuffle()
        .prop_flat_map(|names| {
            let count = names.len();
            (Just(names), proptest::collection::vec(0..3, count))
        })
        .prop_map(|(names, images)| {
            let rows = names.iter().zip(images);
            rows.map(|(name, image)| json!({"name": name, "image": format!("i:{image}")})).collect()
        })
}

fn deployment_with(containers: &[Value]) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

fn containers_of(object: &Value) -> Vec<Value> {
    object["spec"]["template"]["spec"]["containers"].as_array().unwrap().clone()
}

proptest! {
    #[test]
    fn strategic_merge_is_idempotent(before in containers(), patch in containers()) {
        let patch = deployment_with(&patch);
        let once = strategic_merge(&deployment_with(&before), &patch, deployment()).unwrap();
        let twice = strategic_merge(&once, &patch, deployment()).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn patched_elements_win_and_other_elements_stay(before in containers(), patch in containers()) {
        let merged = strategic_merge(&deployment_with(&before), &deployment_with(&patch), deployment());
        let merged = containers_of(&merged.unwrap());
        for item in &patch {
            prop_assert!(merged.contains(item));
        }
        for item in &before {
            let patched = patch.iter().any(|other| other["name"] == item["name"]);
            prop_assert!(patched || merged.contains(item));
        }
        let mut names: Vec<String> = merged.iter().map(|container| container["name"].to_string()).collect();
        names.sort();
        names.dedup();
        prop_assert_eq!(names.len(), merged.len());
    }

    #[test]
    fn list_has_the_complete_specified_order(before in containers(), wanted in containers()) {
        let order: Vec<Value> = wanted.iter().map(|container| json!({"name": container["name"]})).collect();
        let mut changes = wanted.clone();
        for item in &before {
            if !wanted.iter().any(|other| other["name"] == item["name"]) {
                changes.push(json!({"name": item["name"], "$patch": "delete"}));
            }
        }
        let mut patch = deployment_with(&changes);
        patch["spec"]["template"]["spec"]["$setElementOrder/containers"] = json!(order);
        let merged = strategic_merge(&deployment_with(&before), &patch, deployment()).unwrap();
        prop_assert_eq!(containers_of(&merged), wanted);
    }
}

/// A merge in quadratic time would run for hours.
#[test]
fn lists_of_many_elements_merge_by_their_keys() {
    const COUNT: usize = 30_000;
    let list = |from: usize, value: &str| -> Vec<Value> {
        (from..from + COUNT).map(|index| json!({"name": format!("v{index}"), "x": value})).collect()
    };
    let spec = |list: Vec<Value>| json!({"spec": {"template": {"spec": {"volumes": list}}}});
    let before = spec(list(0, "old"));
    let merged = strategic_merge(&before, &spec(list(COUNT / 2, "new")), deployment()).unwrap();
    let volumes = merged["spec"]["template"]["spec"]["volumes"].as_array().unwrap().clone();
    assert_eq!(volumes.len(), COUNT * 3 / 2);
    let count = |value: &str| volumes.iter().filter(|volume| volume["x"] == value).count();
    assert_eq!((count("old"), count("new")), (COUNT / 2, COUNT));
    let deleted: Vec<Value> =
        (0..COUNT).map(|index| json!({"name": format!("v{index}"), "$patch": "delete"})).collect();
    let merged = strategic_merge(&before, &spec(deleted), deployment()).unwrap();
    assert_eq!(merged["spec"]["template"]["spec"]["volumes"], json!([]));
    let finalizers: Vec<Value> = (0..COUNT).map(|index| format!("f{index}").into()).collect();
    let before = json!({"metadata": {"finalizers": finalizers}});
    let merged = strategic_merge(&before, &before, deployment()).unwrap();
    assert_eq!(merged, before);
    let deleted = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers}});
    let merged = strategic_merge(&before, &deleted, deployment()).unwrap();
    assert_eq!(merged["metadata"]["finalizers"], json!([]));
}
