//! Hostile bodies: each gets the right status, and none costs more than a small multiple of its
//! size.

use crate::harness::{Api, MAPS, config_map};
use http::Method;
use serde_json::{Value, json};
use std::fmt::Write as _;

const PODS: &str = "/api/v1/namespaces/default/pods";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

async fn post(
    api: &Api,
    path: &str,
    kind: &'static str,
    body: impl Into<bytes::Bytes>,
) -> (u16, String) {
    let response = api.call(Method::POST, path, &[("content-type", kind)], body).await;
    (response.code, response.json()["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn bodies_of_ten_megabytes_get_413_in_every_media_type() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    let body = vec![b'x'; 10 << 20];
    for kind in ["application/json", "application/yaml", PROTOBUF] {
        let (code, message) = post(&api, MAPS, kind, body.clone()).await;
        assert_eq!((code, message.as_str()), (413, "Request entity too large: limit is 3145728"));
    }
    for kind in ["merge", "strategic-merge", "json"] {
        let kind = format!("application/{kind}-patch+json");
        let headers = [("content-type", kind.as_str())];
        let path = format!("{MAPS}/a");
        let response = api.call(Method::PATCH, &path, &headers, body.clone()).await;
        assert_eq!(response, 413, "{kind}");
    }
}

#[tokio::test]
async fn deep_nesting_is_refused_cheaply() {
    let api = Api::new().await;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        for depth in [200, 500_000] {
            let body = format!(
                "{{\"metadata\":{{\"name\":\"a\"}},\"x\":{}1{}}}",
                open.repeat(depth),
                close.repeat(depth)
            );
            let (code, message) = post(&api, MAPS, "application/json", body).await;
            assert_eq!(code, 400, "{depth}");
            assert!(message.contains("exceeded max depth"), "{message}");
        }
    }
    let yaml = format!("metadata: {{name: a}}\nx: {}", "[".repeat(100_000));
    assert_eq!(post(&api, MAPS, "application/yaml", yaml).await.0, 400);
}

#[tokio::test]
async fn yaml_aliases_cannot_multiply() {
    let api = Api::new().await;
    let mut body =
        "metadata: {name: a}\na0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..10 {
        let before = format!("*a{}", level - 1);
        let items = [before.as_str(); 9].join(", ");
        writeln!(body, "a{level}: &a{level} [{items}]").unwrap();
    }
    let (code, message) = post(&api, MAPS, "application/yaml", body).await;
    assert_eq!(code, 400);
    assert!(message.contains("document contains excessive aliasing"), "{message}");
}

#[tokio::test]
async fn empty_elements_cannot_grow_into_large_objects() {
    let api = Api::new().await;
    let empty = vec!["{}"; 1_000_000].join(",");
    let body = format!("{{\"metadata\":{{\"name\":\"a\"}},\"spec\":{{\"containers\":[{empty}]}}}}");
    let (code, message) = post(&api, PODS, "application/json", body).await;
    assert_eq!(code, 400);
    assert!(message.ends_with("the object has too many empty parts"), "{message}");
    // The same in protobuf: a million empty messages.
    let containers = [0x12, 0].repeat(1_000_000);
    let number = |mut number: usize| {
        let mut bytes = Vec::new();
        while number > 127 {
            bytes.push(u8::try_from(number & 127).unwrap() | 128);
            number >>= 7;
        }
        bytes.push(u8::try_from(number).unwrap());
        bytes
    };
    let field =
        |tag: u8, content: &[u8]| [&[tag << 3 | 2], &number(content.len())[..], content].concat();
    let body = [b"k8s\0", &field(2, &field(2, &containers))[..]].concat();
    let (code, message) = post(&api, PODS, PROTOBUF, body).await;
    assert_eq!(code, 400);
    assert!(message.ends_with("the object has too many empty parts"), "{message}");
}

#[tokio::test]
async fn at_most_a_hundred_duplicate_fields_are_reported() {
    let api = Api::new().await;
    let fields: Vec<String> = (0..50_000).map(|at| format!("\"f{}\":{at}", at % 5_000)).collect();
    let body = format!("{{\"metadata\":{{\"name\":\"a\"}},{}}}", fields.join(","));
    let path = format!("{MAPS}?fieldValidation=Strict");
    let (code, message) = post(&api, &path, "application/json", body.clone()).await;
    assert_eq!(code, 400);
    assert_eq!(message.matches("unknown field").count(), 100);
    let response = api.call(Method::POST, MAPS, &[], body).await;
    assert_eq!(response, 201);
    let warning_bytes: usize = response.warnings().iter().map(|text| text.len()).sum();
    assert!(warning_bytes < 10_000, "{warning_bytes}");
}

#[tokio::test]
async fn invalid_utf8_is_replaced() {
    let api = Api::new().await;
    let body = b"{\"metadata\":{\"name\":\"a\",\"annotations\":{\"x\":\"\xff\xfe\"}}}".to_vec();
    let response = api.call(Method::POST, MAPS, &[], body).await;
    assert_eq!(response.ok()["metadata"]["annotations"]["x"], "\u{fffd}\u{fffd}");
    let body = b"metadata: {name: b, annotations: {x: \xff}}".to_vec();
    assert_eq!(post(&api, MAPS, "application/yaml", body).await.0, 400);
}

/// Sends a wrong type for every field of a kind.
#[tokio::test]
async fn a_wrong_type_of_any_field_is_refused_with_400() {
    let api = Api::new().await;
    for (path, definition, depth) in [
        (PODS, "api.core.v1.Pod", 4),
        (MAPS, "api.core.v1.ConfigMap", 3),
        ("/api/v1/namespaces/default/services", "api.core.v1.Service", 4),
        ("/apis/apps/v1/namespaces/default/deployments", "api.apps.v1.Deployment", 4),
        ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", "api.rbac.v1.Role", 4),
        ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", "api.networking.v1.Ingress", 4),
    ] {
        let mut bodies = Vec::new();
        collect_invalid_bodies(
            mainstay_schema::builtin::definition(definition).unwrap(),
            depth,
            &|value| value,
            &mut bodies,
        );
        assert!(bodies.len() > 20, "{definition}: {}", bodies.len());
        for body in bodies {
            let (code, message) = post(&api, path, "application/json", body.to_string()).await;
            assert!(matches!(code, 400 | 422), "{definition} {body}: {code} {message}");
        }
    }
}

/// Collects bodies in each of which one field has an invalid type.
fn collect_invalid_bodies(
    definition: &mainstay_schema::builtin::TypeDefinition,
    depth: usize,
    around: &dyn Fn(Value) -> Value,
    into: &mut Vec<Value>,
) {
    use mainstay_schema::builtin::{FieldType, JsonForm};
    for field in definition.fields() {
        let name = field.name.to_string();
        let wrong = match &field.ty {
            FieldType::String => json!([1]),
            FieldType::List(_) => json!("x"),
            FieldType::Object(_)
                if matches!(
                    field.ty.definition().map(mainstay_schema::builtin::TypeDefinition::json_form),
                    Some(JsonForm::FreeObject | JsonForm::Any)
                ) =>
            {
                continue;
            }
            _ => json!(["x"]),
        };
        let here = |value: Value| around(json!({ name.clone(): value }));
        into.push(here(wrong));
        let (inner, listed) = match &field.ty {
            FieldType::List(element) => (element.definition(), true),
            ty => (ty.definition(), false),
        };
        if let (Some(inner), true) = (inner, depth > 1) {
            collect_invalid_bodies(
                inner,
                depth - 1,
                &|value| here(if listed { json!([value]) } else { value }),
                into,
            );
        }
    }
}
