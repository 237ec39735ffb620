//! Server-side apply, and the managed fields of every write.

use crate::harness::{Api, MAPS, config_map, map};
use http::Method;
use serde_json::{Value, json};

fn at(name: &str, query: &str) -> String {
    format!("{}?{query}", map(name))
}

async fn apply(api: &Api, path: &str, body: &Value) -> crate::harness::TestResponse {
    let headers = [("content-type", "application/apply-patch+yaml")];
    api.call(Method::PATCH, path, &headers, body.to_string()).await
}

fn configuration(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data})
}

fn managers(object: &Value) -> Vec<&str> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().map(|entry| entry["manager"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_apply_creates_and_updates() {
    let api = Api::new().await;
    let mut new_configuration = configuration(&json!({"k": "1"}));
    new_configuration["metadata"] = json!({"name": "a"});
    let created = apply(&api, &at("a", "fieldManager=one"), &new_configuration).await;
    assert_eq!(created, 201);
    assert_eq!(managers(&created.json()), ["one"]);
    let changed =
        apply(&api, &at("a", "fieldManager=one"), &configuration(&json!({"k": "2"}))).await;
    assert_eq!(changed, 200);
    assert_eq!(changed.json()["data"], json!({"k": "2"}));
    let refused =
        apply(&api, &at("a", "fieldManager=two"), &configuration(&json!({"k": "3"}))).await;
    assert_eq!(
        refused.refused(),
        (409, "Apply failed with 1 conflict: conflict with \"one\": .data.k".to_owned())
    );
    let forced_path = at("a", "fieldManager=two&force=true");
    let forced_update = apply(&api, &forced_path, &configuration(&json!({"k": "3"}))).await.ok();
    assert_eq!(managers(&forced_update), ["two"]);
}

#[tokio::test]
async fn an_unchanged_write_is_not_stored() {
    let api = Api::new().await;
    let created = api.post(MAPS, &config_map("a")).await.ok();
    apply(&api, &at("a", "fieldManager=one"), &configuration(&json!({"j": "1"}))).await.ok();
    let before = api.get(&map("a")).await.ok();
    let revision = api.store.revision();
    api.put(&at("a", "fieldManager=two"), &before).await.ok();
    apply(&api, &at("a", "fieldManager=one"), &configuration(&json!({"j": "1"}))).await.ok();
    let none = json!({"data": {"k": created["data"]["k"]}});
    api.patch(&at("a", "fieldManager=three"), "merge", &none).await.ok();
    assert_eq!(api.store.revision(), revision);
    assert_eq!(api.get(&map("a")).await.ok(), before);
}

#[tokio::test]
async fn concurrent_applies_of_different_managers_all_succeed() {
    let api = Api::new().await;
    let writes = (0..24).map(|number| {
        let (api, key) = (&api, format!("k{number}"));
        async move {
            let path = at("a", &format!("fieldManager={key}"));
            let mut body = configuration(&json!({key: "1"}));
            body["metadata"] = json!({"name": "a"});
            apply(api, &path, &body).await.ok();
        }
    });
    futures::future::join_all(writes).await;
    let end = api.get(&map("a")).await.ok();
    assert_eq!(end["data"].as_object().unwrap().len(), 24);
    assert_eq!(managers(&end).len(), 24);
}

#[tokio::test]
async fn a_restarted_server_keeps_managed_fields() {
    let api = Api::new().await;
    let namespace = api.get("/api/v1/namespaces/default").await.ok();
    assert_eq!(managers(&namespace), ["kube-apiserver"]);
    let created = api.post(&format!("{MAPS}?fieldManager=one"), &config_map("a")).await.ok();
    let clock = *api.server.clock();
    let restarted = Api::on(api.store.clone(), clock).await;
    assert_eq!(restarted.get(&map("a")).await.ok(), created);
    let refused =
        apply(&restarted, &at("a", "fieldManager=two"), &configuration(&json!({"k": "w"}))).await;
    assert_eq!(refused.refused().0, 409);
}

#[tokio::test]
async fn hostile_configurations_are_refused() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    let path = at("a", "fieldManager=one");
    let deep = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
    let bomb: String = std::iter::once("a0: &a0 [x]\n".to_owned())
        .chain((1..60).map(|at| format!("a{at}: &a{at} [*a{0}, *a{0}, *a{0}]\n", at - 1)))
        .collect();
    let headers = [("content-type", "application/apply-patch+yaml")];
    for body in [
        deep.into_bytes(),
        bomb.into_bytes(),
        b"\xff\xfe\x00".to_vec(),
        b"{\"apiVersion\":".to_vec(),
        b"- a\n- b".to_vec(),
        b"a: b: c".to_vec(),
    ] {
        let response = api.call(Method::PATCH, &path, &headers, body).await;
        assert_eq!(response, 400, "{:?}", response.bytes);
    }
    let many: Vec<Value> = (0..20_000).map(|at| json!({"manager": format!("m{at}")})).collect();
    let body = json!({"metadata": {"managedFields": many}});
    assert_eq!(api.patch(&map("a"), "merge", &body).await, 200);
    assert_eq!(managers(&api.get(&map("a")).await.ok()).len(), 1);
}
