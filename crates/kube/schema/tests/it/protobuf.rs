//! Protobuf, compared with objects recorded by Kubernetes' own tests, and malformed bytes.

use mainstay_object::Gvk;
use mainstay_schema::builtin::{self, TypeDefinition};
use mainstay_schema::{protobuf, strict};
use mainstay_testdata::{ran, unpack};
use mainstay_yaml::Options;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The type of a recorded object, from the name of its file: `apps.v1.Deployment`.
fn type_of(name: &str) -> &'static TypeDefinition {
    let mut parts = name.rsplitn(3, '.');
    let (kind, version) = (parts.next().unwrap(), parts.next().unwrap());
    let group = parts.next().unwrap();
    let gvk = Gvk::new(if group == "core" { "" } else { group }, version, kind);
    builtin::definition_of(&gvk)
        // Options and responses of requests are recorded in the core group.
        .or_else(|| builtin::definition(&format!("apimachinery.pkg.apis.meta.v1.{kind}")))
        .unwrap_or_else(|| panic!("no type for {gvk}"))
}

fn decode_strictly(definition: &TypeDefinition, mut value: Value) -> Value {
    assert_eq!(strict::decode(definition, &mut value), Ok(Vec::new()), "{}", definition.name());
    value
}

/// Objects with all fields set, from Kubernetes' own tests; they are not part of this project.
#[test]
fn recorded_objects_round_trip_through_json_yaml_and_protobuf() {
    let Some(data) = unpack("kubernetes-api", "recorded objects in three forms") else { return };
    let recorded = data.path().join("kubernetes-api/testdata/v1.35.0");
    let mut checked = 0;
    for entry in fs::read_dir(&recorded).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(name) = name.strip_suffix(".json") else { continue };
        // The object as a later release would write it.
        if name.ends_with(".after_roundtrip") {
            continue;
        }
        check(&recorded, name);
        checked += 1;
    }
    assert!(checked > 180, "{checked} objects");
    ran(&format!("{checked} recorded objects of Kubernetes in three forms"));
}

fn check(folder: &Path, name: &str) {
    let read = |end: &str| fs::read(folder.join(format!("{name}.{end}"))).unwrap();
    let definition = type_of(name);
    let recorded: Value = serde_json::from_slice(&read("json")).unwrap();
    let json = decode_strictly(definition, recorded.clone());
    assert_eq!(json, recorded, "{name}: JSON is not what Go writes");
    let yaml = mainstay_yaml::one(&read("yaml"), &Options::default()).unwrap();
    assert_eq!(decode_strictly(definition, yaml), json, "{name}: YAML");
    let body = read("pb");
    let envelope = protobuf::unwrap(&body).unwrap();
    let mut value = protobuf::decode(definition, envelope.raw).unwrap();
    let fields = value.as_object_mut().unwrap();
    if !envelope.api_version.is_empty() {
        fields.insert("apiVersion".to_owned(), (*envelope.api_version).into());
    }
    fields.insert("kind".to_owned(), (*envelope.kind).into());
    if json.get("kind").is_none() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    assert_eq!(decode_strictly(definition, value), json, "{name}: protobuf");
    let raw = protobuf::encode(definition, &json.to_string()).unwrap();
    assert_eq!(raw, envelope.raw, "{name}: bytes");
    let wrapped = protobuf::wrap(&envelope.api_version, &envelope.kind, &raw);
    assert_eq!(wrapped, body, "{name}: envelope");
}

fn pod() -> &'static TypeDefinition {
    builtin::definition("api.core.v1.Pod").unwrap()
}

#[test]
fn malformed_bodies_are_rejected_with_the_errors_of_go() {
    for (body, words) in [
        (&b""[..], "empty data"),
        (
            b"{}",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ),
        (b"k8s\0", "empty body"),
        (b"k8s\0\x0a\x05ab", "unexpected EOF"),
        (b"k8s\0\x08\x01", "proto: wrong wireType = 0 for field TypeMeta"),
        (b"k8s\0\x00\x01", "proto: Unknown: illegal tag 0 (wire type 0)"),
        (b"k8s\0\x0c", "proto: Unknown: wiretype end group for non-group"),
        (b"k8s\0\x0e", "proto: wrong wireType = 6 for field TypeMeta"),
        (b"k8s\0\x7e", "proto: illegal wireType 6"),
        (b"k8s\0\x7d\x00", "unexpected EOF"),
        (
            b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "proto: negative length found during unmarshaling",
        ),
        (b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "proto: integer overflow"),
    ] {
        assert_eq!(protobuf::unwrap(body).unwrap_err().to_string(), words, "{body:?}");
    }
    for (raw, words) in [
        (&b"\x0a\x02\x0a"[..], "unexpected EOF"),
        (b"\x08\x01", "proto: wrong wireType = 0 for field ObjectMeta"),
        (b"\x12\x02\x10\x01", "proto: wrong wireType = 0 for field Containers"),
    ] {
        assert_eq!(protobuf::decode(pod(), raw).unwrap_err().to_string(), words, "{raw:?}");
    }
}

#[test]
fn unknown_fields_are_skipped_and_parts_of_a_message_are_merged() {
    // Unknown varint, string, fixed and group fields; then metadata in two parts.
    let raw = b"\x88\x06\x01\x92\x06\x01x\x99\x06\x01\x02\x03\x04\x05\x06\x07\x08\xa3\x06\x08\x01\xa4\x06\
        \x0a\x03\x0a\x01a\x0a\x03\x1a\x01n";
    let value = protobuf::decode(pod(), raw).unwrap();
    assert_eq!(value, serde_json::json!({"metadata": {"name": "a", "namespace": "n"}}));
}

#[test]
fn invalid_utf_8_in_strings_is_replaced() {
    let value = protobuf::decode(pod(), b"\x0a\x05\x0a\x03a\xffb").unwrap();
    assert_eq!(value["metadata"]["name"], "a\u{fffd}b");
}

#[test]
fn nesting_is_limited_and_truncated_messages_are_errors_or_smaller_objects() {
    let definition =
        builtin::definition("apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
            .unwrap();
    let not = definition.field("not").unwrap().tags[0];
    let mut raw = Vec::new();
    for _ in 0..10_000 {
        let mut outer = Vec::new();
        for mut number in [u64::from(not) << 3 | 2, raw.len() as u64] {
            while number > 127 {
                outer.push(u8::try_from(number & 127).unwrap() | 128);
                number >>= 7;
            }
            outer.push(u8::try_from(number).unwrap());
        }
        outer.extend(&raw);
        raw = outer;
    }
    assert_eq!(protobuf::decode(definition, &raw).unwrap_err(), protobuf::ProtobufError::TooDeep);
    let object = serde_json::json!({"metadata": {"name": "a", "labels": {"b": "c"}},
        "spec": {"containers": [{"name": "d", "image": "e"}]}});
    let raw = protobuf::encode(pod(), &object.to_string()).unwrap();
    for length in 0..raw.len() {
        let _ = protobuf::decode(pod(), &raw[..length]);
    }
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_decode_or_are_rejected(raw in proptest::collection::vec(0_u8..=255, 0..200)) {
        let _ = protobuf::decode(pod(), &raw);
        let _ = protobuf::unwrap(&[&protobuf::MAGIC[..], &raw].concat());
    }
}

/// All types that only CRDs have: a schema or a list of schemas, a schema or a boolean, any JSON.
#[test]
fn schemas_of_crds_round_trip() {
    let definition =
        builtin::definition("apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps")
            .unwrap();
    for schema in [
        serde_json::json!({"type": "array", "items": {"type": "string", "default": {"a": [1, null]}}}),
        serde_json::json!({"items": [{"type": "string"}, {"type": "integer", "maximum": 1.5}]}),
        serde_json::json!({"additionalProperties": true}),
        serde_json::json!({"additionalProperties": false}),
        serde_json::json!({"additionalProperties": {"type": "object", "enum": ["a", 1, null]}}),
        serde_json::json!({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}),
        serde_json::json!({"maxLength": 0, "x-kubernetes-preserve-unknown-fields": false}),
    ] {
        let raw = protobuf::encode(definition, &schema.to_string()).unwrap();
        assert_eq!(
            decode_strictly(definition, protobuf::decode(definition, &raw).unwrap()),
            schema
        );
    }
}
