//! Bodies that are meant to hurt: each gets the right status, and none costs more than a small
//! multiple of what it is.

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
    let answer = api.call(Method::POST, path, &[("content-type", kind)], body).await;
    (answer.code, answer.json()["message"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn bodies_of_ten_megabytes_are_413_in_every_form() {
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
        let answer = api.call(Method::PATCH, &path, &headers, body.clone()).await;
        assert_eq!(answer.code, 413, "{kind}");
    }
}

#[tokio::test]
async fn nesting_is_refused_before_it_costs_anything() {
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
async fn aliases_do_not_multiply() {
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
async fn empty_parts_do_not_grow_into_objects_of_many_times_their_size() {
    let api = Api::new().await;
    let empty = vec!["{}"; 1_000_000].join(",");
    let body = format!("{{\"metadata\":{{\"name\":\"a\"}},\"spec\":{{\"containers\":[{empty}]}}}}");
    let (code, message) = post(&api, PODS, "application/json", body).await;
    assert_eq!(code, 400);
    assert!(message.ends_with("the object has too many empty parts"), "{message}");
    // The same in protobuf: a million messages of no bytes.
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
async fn fields_that_are_there_many_times_are_told_a_hundred_times_at_most() {
    let api = Api::new().await;
    let fields: Vec<String> = (0..50_000).map(|at| format!("\"f{}\":{at}", at % 5_000)).collect();
    let body = format!("{{\"metadata\":{{\"name\":\"a\"}},{}}}", fields.join(","));
    let path = format!("{MAPS}?fieldValidation=Strict");
    let (code, message) = post(&api, &path, "application/json", body.clone()).await;
    assert_eq!(code, 400);
    assert_eq!(message.matches("unknown field").count(), 100);
    let answer = api.call(Method::POST, MAPS, &[], body).await;
    assert_eq!(answer.code, 201);
    let told: usize = answer.warnings().iter().map(|text| text.len()).sum();
    assert!(told < 10_000, "{told}");
}

#[tokio::test]
async fn bytes_that_are_not_unicode_are_replaced() {
    let api = Api::new().await;
    let body = b"{\"metadata\":{\"name\":\"a\",\"annotations\":{\"x\":\"\xff\xfe\"}}}".to_vec();
    let answer = api.call(Method::POST, MAPS, &[], body).await;
    assert_eq!(answer.ok()["metadata"]["annotations"]["x"], "\u{fffd}\u{fffd}");
    let body = b"metadata: {name: b, annotations: {x: \xff}}".to_vec();
    assert_eq!(post(&api, MAPS, "application/yaml", body).await.0, 400);
}

/// Every field of a kind, with a value that it cannot have.
#[tokio::test]
async fn a_wrong_type_at_any_field_is_400_and_never_more() {
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
        spoil(
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

/// Collects bodies in which one field has a value of no type that it may have.
fn spoil(
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
            spoil(
                inner,
                depth - 1,
                &|value| here(if listed { json!([value]) } else { value }),
                into,
            );
        }
    }
}
