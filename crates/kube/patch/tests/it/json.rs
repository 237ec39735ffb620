//! JSON patch, with the deviations of Go's library from RFC 6902.

use mainstay_patch::{
    MAX_DEPTH, MAX_OPERATIONS, OperationError, PatchError, check_operations, json_patch,
};
use serde_json::{Value, json};

fn document() -> Value {
    json!({"a": {"b": 1}, "l": ["x", "y", "z"], "n": null, "s/t~u": 1})
}

#[test]
fn operations_change_the_object() {
    for (patch, path, expected) in [
        (json!({"op": "add", "path": "/a/c", "value": 2}), "/a", json!({"b": 1, "c": 2})),
        (json!({"op": "add", "path": "/a/c"}), "/a", json!({"b": 1, "c": null})),
        (json!({"op": "add", "path": "/l/1", "value": "n"}), "/l", json!(["x", "n", "y", "z"])),
        (json!({"op": "add", "path": "/l/-", "value": "n"}), "/l", json!(["x", "y", "z", "n"])),
        (json!({"op": "add", "path": "/l/-1", "value": "n"}), "/l", json!(["x", "y", "z", "n"])),
        (json!({"op": "add", "path": "/l/-2", "value": "n"}), "/l", json!(["x", "y", "n", "z"])),
        (json!({"op": "remove", "path": "/l/-1"}), "/l", json!(["x", "y"])),
        (json!({"op": "remove", "path": "/s~1t~0u"}), "/s~1t~0u", Value::Null),
        (json!({"op": "replace", "path": "/l/0", "value": "n"}), "/l", json!(["n", "y", "z"])),
        (json!({"op": "replace", "path": "/a/new", "value": 2}), "/a/new", json!(2)),
        (json!({"op": "replace", "path": "", "value": {"r": 1}}), "/r", json!(1)),
        (json!({"op": "move", "from": "/a/b", "path": "/l/0"}), "/l", json!([1, "x", "y", "z"])),
        (json!({"op": "copy", "from": "/l", "path": "/a/l"}), "/a/l", json!(["x", "y", "z"])),
        (json!({"op": "test", "path": "/a/b", "value": 1}), "/a/b", json!(1)),
        (json!({"op": "test", "path": "/nothing", "value": null}), "/a/b", json!(1)),
        (json!({"op": "test", "path": "/n"}), "/a/b", json!(1)),
    ] {
        let mut value = document();
        json_patch(&mut value, &json!([patch])).unwrap();
        assert_eq!(*value.pointer(path).unwrap_or(&Value::Null), expected, "{patch}");
    }
}

#[test]
fn operation_that_does_not_apply_is_422_with_a_reason_for_the_log() {
    for (patch, reason) in [
        (
            json!({"op": "test", "path": "/a/b", "value": 2}),
            "testing value /a/b failed: test failed",
        ),
        (
            json!({"op": "replace", "path": "/x/y", "value": 1}),
            "replace operation does not apply: doc is missing path: /x/y: missing value",
        ),
        (
            json!({"op": "remove", "path": "/a/x"}),
            "error in remove for path: '/a/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            json!({"op": "add", "path": "/l/9", "value": 1}),
            "error in add for path: '/l/9': Unable to access invalid index: 9: invalid array index",
        ),
        (
            json!({"op": "add", "path": "/l/x", "value": 1}),
            "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            json!({"op": "remove", "path": "/l/-9"}),
            "error in remove for path: '/l/-9': Unable to access invalid index: -9: invalid array index",
        ),
        (
            json!({"op": "add", "path": "", "value": {}}),
            "add operation does not apply: doc is missing path: \"\": missing value",
        ),
        (
            json!({"op": "move", "from": "/x", "path": "/y"}),
            "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
        ),
        (json!({"op": "bogus", "path": "/x"}), "Unexpected kind: bogus"),
        (json!({"path": "/x"}), "Unexpected kind: unknown"),
        (
            json!({"op": "replace", "path": "", "value": 1}),
            "replace operation value must be object or array",
        ),
    ] {
        let error = json_patch(&mut document(), &json!([patch])).unwrap_err();
        assert_eq!(error.to_string(), reason, "{patch}");
        let status = error.to_status();
        assert_eq!(status.code, 422);
        assert_eq!(
            status.message,
            "the server rejected our request due to an error in our request"
        );
    }
}

#[test]
fn patch_that_is_no_list_of_operations_is_400() {
    for (patch, checked, applied) in [
        (
            json!({"a": 1}),
            "object into Go value of type []handlers.jsonPatchOp",
            "object into Go value of type jsonpatch.Patch",
        ),
        (
            json!(["x"]),
            "string into Go value of type handlers.jsonPatchOp",
            "string into Go value of type jsonpatch.Operation",
        ),
    ] {
        let status = check_operations(&patch).unwrap_err().to_status();
        let checked = format!("error decoding patch: json: cannot unmarshal {checked}");
        assert_eq!((status.code, status.message), (400, checked));
        let status = json_patch(&mut document(), &patch).unwrap_err().to_status();
        let applied = format!("json: cannot unmarshal {applied}");
        assert_eq!((status.code, status.message), (400, applied));
    }
    let status = check_operations(&json!([{"op": 1}])).unwrap_err().to_status();
    assert_eq!(
        status.message,
        "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"
    );
    assert_eq!(check_operations(&json!(null)), Ok(()));
}

#[test]
fn more_than_ten_thousand_operations_are_413() {
    let operation = json!({"op": "test", "path": "/a/b", "value": 1});
    let patch = Value::Array(vec![operation; MAX_OPERATIONS + 1]);
    let status = json_patch(&mut document(), &patch).unwrap_err().to_status();
    assert_eq!(status.code, 413);
    assert_eq!(
        status.message,
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
}

#[test]
fn copies_cannot_grow_an_object_beyond_the_limit() {
    let mut value = json!({"a": "x".repeat(1 << 20)});
    let copies: Vec<Value> = (0..4)
        .map(|index| json!({"op": "copy", "from": "/a", "path": format!("/b{index}")}))
        .collect();
    let error = json_patch(&mut value, &Value::Array(copies)).unwrap_err();
    assert!(error.to_string().contains("exceeding the limit"), "{error}");
}

/// Nested lists.
fn nested(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| json!([inner]))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

#[test]
fn no_operation_exceeds_the_depth_that_parses() {
    assert!(serde_json::from_str::<Value>(&nested(MAX_DEPTH).to_string()).is_ok());
    assert!(serde_json::from_str::<Value>(&nested(MAX_DEPTH + 1).to_string()).is_err());
    let available = MAX_DEPTH - 2;
    for (operation, is_accepted) in [
        (json!({"op": "add", "path": "/a/b", "value": nested(available)}), true),
        (json!({"op": "add", "path": "/a/b", "value": nested(available + 1)}), false),
        (json!({"op": "replace", "path": "/a/b", "value": nested(available)}), true),
        (json!({"op": "replace", "path": "/a/b", "value": nested(available + 1)}), false),
        (json!({"op": "replace", "path": "", "value": nested(MAX_DEPTH)}), true),
        (json!({"op": "replace", "path": "", "value": nested(MAX_DEPTH + 1)}), false),
        (json!({"op": "copy", "from": "/deep", "path": "/a/b"}), true),
        (json!({"op": "copy", "from": "/deep", "path": "/a/b/c"}), false),
        (json!({"op": "move", "from": "/deep", "path": "/a/b"}), true),
        (json!({"op": "move", "from": "/deep", "path": "/a/b/c"}), false),
        (json!({"op": "move", "from": "/deep", "path": "/other"}), true),
    ] {
        let mut value = json!({"a": {"b": {}}, "deep": nested(available)});
        let outcome = json_patch(&mut value, &json!([operation]));
        assert_eq!(outcome.is_ok(), is_accepted, "{operation}");
        assert!(depth(&value) <= MAX_DEPTH, "{operation}");
    }
}

#[test]
fn copies_of_an_object_into_itself_are_too_deep() {
    let copies: Vec<Value> = (0..200)
        .map(|index| json!({"op": "copy", "from": "/a", "path": format!("/a{}/x", "/x".repeat(index))}))
        .collect();
    let mut value = json!({"a": {}});
    let error = json_patch(&mut value, &Value::Array(copies)).unwrap_err();
    assert_eq!(error, PatchError::DoesNotApply(OperationError::TooDeep));
    assert_eq!(error.to_status().code, 422);
    assert!(depth(&value) <= MAX_DEPTH);
}

#[test]
fn operations_that_move_too_many_elements_are_413() {
    let mut document = json!({"l": vec![0; 100_000]});
    let insert = json!({"op": "add", "path": "/l/0", "value": 1});
    let error = json_patch(&mut document, &json!(vec![insert; 10_000])).unwrap_err();
    assert!(matches!(error, PatchError::TooMuchWork { .. }), "{error}");
    assert_eq!(error.to_status().code, 413);
    // A move to a deeper path costs as much as the parts of its value.
    let mut document = json!({"a": vec![0; 100_000], "b": {}});
    let forward = json!({"op": "move", "from": "/a", "path": "/b/a"});
    let backward = json!({"op": "move", "from": "/b/a", "path": "/a"});
    let moves: Vec<Value> = (0..5000).flat_map(|_| [forward.clone(), backward.clone()]).collect();
    let error = json_patch(&mut document, &json!(moves)).unwrap_err();
    assert!(matches!(error, PatchError::TooMuchWork { .. }), "{error}");
}

#[test]
fn most_operations_of_a_patch_may_insert_into_one_list() {
    let mut document = json!({"l": []});
    let insert = json!({"op": "add", "path": "/l/0", "value": 1});
    json_patch(&mut document, &json!(vec![insert; MAX_OPERATIONS])).unwrap();
    assert_eq!(document["l"].as_array().map(Vec::len), Some(MAX_OPERATIONS));
}
