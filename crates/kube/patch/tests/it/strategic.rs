//! Strategic merge patch against what a Kubernetes 1.35 API server answered (`recorded/`).

use mainstay_patch::{PatchError, strategic_merge};
use mainstay_schema::builtin::{TypeDefinition, definition};
use mainstay_schema::strict;
use proptest::prelude::*;
use serde_json::{Value, json};

fn deployment() -> &'static TypeDefinition {
    definition("api.apps.v1.Deployment").unwrap()
}

#[test]
fn patches_do_what_the_original_does() {
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
                    assert!(ours == theirs || (empty && theirs.is_null()), "{patch}: {ours}");
                }
            }
        }
    }
}

#[test]
fn a_selector_is_replaced_because_its_type_says_so() {
    let budget = definition("api.policy.v1.PodDisruptionBudget").unwrap();
    let object = json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}});
    let patch = json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}});
    let merged = strategic_merge(&object, &patch, budget).unwrap();
    assert_eq!(merged, json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}}));
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
fn a_list_of_objects_without_a_declared_key_is_replaced() {
    let object = json!({"spec": {"template": {"spec": {"tolerations": [{"key": "a"}]}}}});
    let patch = json!({"spec": {"template": {"spec": {"tolerations": [{"key": "b"}]}}}});
    assert_eq!(strategic_merge(&object, &patch, deployment()).unwrap(), patch);
}

#[test]
fn unknown_fields_merge_nowhere_but_may_be_new() {
    let patch = json!({"spec": {"foo": {"a": 1}}});
    let merged = strategic_merge(&json!({"spec": {}}), &patch, deployment()).unwrap();
    assert_eq!(merged, patch);
    let error = strategic_merge(&patch, &patch, deployment()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unable to find api field in struct DeploymentSpec for the json field \"foo\""
    );
}

/// Containers with names out of a few, each at most once.
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

fn with(containers: &[Value]) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

fn list(object: &Value) -> Vec<Value> {
    object["spec"]["template"]["spec"]["containers"].as_array().unwrap().clone()
}

proptest! {
    #[test]
    fn a_patch_applied_twice_changes_nothing_more(before in containers(), patch in containers()) {
        let patch = with(&patch);
        let once = strategic_merge(&with(&before), &patch, deployment()).unwrap();
        let twice = strategic_merge(&once, &patch, deployment()).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn the_patch_wins_and_nobody_else_is_lost(before in containers(), patch in containers()) {
        let merged = list(&strategic_merge(&with(&before), &with(&patch), deployment()).unwrap());
        for item in &patch {
            prop_assert!(merged.contains(item));
        }
        for item in &before {
            let patched = patch.iter().any(|other| other["name"] == item["name"]);
            prop_assert!(patched || merged.contains(item));
        }
        let mut names: Vec<String> = merged.iter().map(|port| port["name"].to_string()).collect();
        names.sort();
        names.dedup();
        prop_assert_eq!(names.len(), merged.len());
    }

    #[test]
    fn with_a_full_order_the_list_becomes_the_wanted_one(before in containers(), wanted in containers()) {
        let order: Vec<Value> = wanted.iter().map(|port| json!({"name": port["name"]})).collect();
        let mut changes = wanted.clone();
        for item in &before {
            if !wanted.iter().any(|other| other["name"] == item["name"]) {
                changes.push(json!({"name": item["name"], "$patch": "delete"}));
            }
        }
        let mut patch = with(&changes);
        patch["spec"]["template"]["spec"]["$setElementOrder/containers"] = json!(order);
        let merged = strategic_merge(&with(&before), &patch, deployment()).unwrap();
        prop_assert_eq!(list(&merged), wanted);
    }
}

/// What looks at each pair of elements would keep this running for hours.
#[test]
fn lists_of_many_elements_merge_by_their_keys() {
    const COUNT: usize = 30_000;
    let list = |from: usize, value: &str| -> Vec<Value> {
        (from..from + COUNT).map(|at| json!({"name": format!("v{at}"), "x": value})).collect()
    };
    let spec = |list: Vec<Value>| json!({"spec": {"template": {"spec": {"volumes": list}}}});
    let before = spec(list(0, "old"));
    let merged = strategic_merge(&before, &spec(list(COUNT / 2, "new")), deployment()).unwrap();
    let volumes = merged["spec"]["template"]["spec"]["volumes"].as_array().unwrap().clone();
    assert_eq!(volumes.len(), COUNT * 3 / 2);
    let of = |value: &str| volumes.iter().filter(|volume| volume["x"] == value).count();
    assert_eq!((of("old"), of("new")), (COUNT / 2, COUNT));
    let deleted: Vec<Value> =
        (0..COUNT).map(|at| json!({"name": format!("v{at}"), "$patch": "delete"})).collect();
    let merged = strategic_merge(&before, &spec(deleted), deployment()).unwrap();
    assert_eq!(merged["spec"]["template"]["spec"]["volumes"], json!([]));
    let texts: Vec<Value> = (0..COUNT).map(|at| format!("f{at}").into()).collect();
    let before = json!({"metadata": {"finalizers": texts}});
    let merged = strategic_merge(&before, &before, deployment()).unwrap();
    assert_eq!(merged, before);
    let gone = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": texts}});
    let merged = strategic_merge(&before, &gone, deployment()).unwrap();
    assert_eq!(merged["metadata"]["finalizers"], json!([]));
}
