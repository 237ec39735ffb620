//! Tests of the masks.

use super::*;

fn masker(source: &str) -> Masker {
    Masker::new("ns-abcdefgh", "idabcdefgh", source)
}

#[test]
fn server_chosen_fields_and_texts_are_masked() {
    let uid = "0f0e0d0c-1111-2222-3333-444455556666";
    for (value, masked) in [
        (json!({"resourceVersion": "12"}), json!({"resourceVersion": "<rv>"})),
        (json!({"resourceVersion": "0"}), json!({"resourceVersion": "0"})),
        (json!({"resourceVersion": ""}), json!({"resourceVersion": ""})),
        (json!({"resourceVersion": "x"}), json!({"resourceVersion": "x"})),
        (json!({"continue": "abc"}), json!({"continue": "<continue>"})),
        (json!({"uid": uid, "x": format!("a {uid} b")}), json!({"uid": "<uid>", "x": "a <uid> b"})),
        (json!({ format!("k:{{\"uid\":\"{uid}\"}}"): 1 }), json!({"k:{\"uid\":\"<uid>\"}": 1})),
        (json!("2026-01-02T03:04:05Z"), json!("<time>")),
        (json!("2026-01-02T03:04:05.123456Z"), json!("<microtime>")),
        (json!("too old resource version: 1 (20)"), json!("too old resource version: <rv> (<rv>)")),
        (json!({"clusterIP": "10.0.0.7"}), json!({"clusterIP": "<ip>"})),
        (json!({"clusterIP": "None"}), json!({"clusterIP": "None"})),
        (json!({"clusterIPs": ["10.0.0.7"]}), json!({"clusterIPs": ["<ip>"]})),
        (json!({"nodePort": 30123, "port": 80}), json!({"nodePort": "<port>", "port": 80})),
        (json!(["/ns-abcdefgh/", "x.idabcdefgh"]), json!(["/ns-00000000/", "x.id00000000"])),
        (json!({"cells": ["a", "5d3h", 1]}), json!({"cells": ["a", "<age>", 1]})),
        (json!({"cells": ["3 (5s ago)"]}), json!({"cells": ["3 (<age> ago)"]})),
        (json!(["5d", 7, null, true, 1.5]), json!(["5d", 7, null, true, 1.5])),
    ] {
        assert_eq!(masker("").value(&value), masked, "{value}");
    }
}

#[test]
fn words_of_the_scenario_are_compared() {
    let mut masker =
        masker(r#"{"clusterIP":"10.0.0.7","nodePort":30123,"t":"2020-01-01T00:00:00Z"}"#);
    let value = json!({"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7", "10.0.0.8"],
        "nodePort": 30123, "t": "2020-01-01T00:00:00Z"});
    let masked = json!({"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7", "<ip>"],
        "nodePort": 30123, "t": "2020-01-01T00:00:00Z"});
    assert_eq!(masker.value(&value), masked);
}

#[test]
fn generated_names_are_learned_and_masked_everywhere() {
    let mut masker = masker("web p-");
    let pods = json!({"items": [{"metadata": {"generateName": "web-7c5ddbdf54-",
        "name": "web-7c5ddbdf54-x2x4z", "labels": {"pod-template-hash": "7c5ddbdf54"}}}]});
    let masked = json!({"items": [{"metadata": {"generateName": "web-<hash>-",
        "name": "web-<hash>-xxxxx", "labels": {"pod-template-hash": "<hash>"}}}]});
    assert_eq!(masker.value(&pods), masked);
    assert!(masker.is_made_up("web-7c5ddbdf54-x2x4z"));
    assert_eq!(masker.text("pods \"web-7c5ddbdf54-x2x4z\""), "pods \"web-<hash>-xxxxx\"");
    // A name that the user chose is not generated.
    assert_eq!(masker.value(&json!({"name": "p-x2x4z"})), json!({"name": "p-x2x4z"}));
}

#[test]
fn managed_fields_are_sorted_independently_of_write_times() {
    let entry =
        |manager: &str, operation: &str| json!({"manager": manager, "operation": operation});
    let value =
        json!({"managedFields": [entry("b", "Update"), entry("a", "Update"), entry("c", "Apply")]});
    let masked =
        json!({"managedFields": [entry("c", "Apply"), entry("a", "Update"), entry("b", "Update")]});
    assert_eq!(masker("").value(&value), masked);
}

#[test]
fn printed_tables_keep_alignment_unless_masks_vary_in_width() {
    let masker = masker("");
    assert_eq!(masker.printed("NAME     DATA\na        1\n"), "NAME     DATA\na        1\n");
    assert_eq!(
        masker.printed("NAME     AGE\na        12s\nlong-one 5d2h\n"),
        "NAME   AGE\na   <age>\nlong-one <age>\n"
    );
    assert_eq!(masker.printed("80:30123/TCP"), "80:<port>/TCP");
    assert_eq!(masker.printed("resourceVersion: \"12\""), "resourceVersion: \"<rv>\"");
}

#[test]
fn names_in_bytes_are_masked_with_equal_length_and_restored() {
    let masker = masker("");
    let bytes = b"k8s\0\n\x0bns-abcdefgh\xff\x0aidabcdefgh";
    let masked = masker.bytes(bytes);
    assert_eq!(masked, b"k8s\0\n\x0bns-00000000\xff\x0aid00000000");
    assert_eq!(masker.unmask_bytes(&masked), bytes);
    assert_eq!(masker.unmask("/ns-00000000/x"), "/ns-abcdefgh/x");
}

#[test]
fn every_mask_has_a_reason() {
    assert!(KEY_RULES.iter().all(|rule| !rule.why.is_empty()));
    assert!(TEXT_RULES.iter().chain(PRINTED_TEXT_RULES.iter()).all(|rule| !rule.why.is_empty()));
}
