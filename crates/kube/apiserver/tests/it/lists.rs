//! Lists: pages, revisions, selectors, forms.

use crate::harness::{AS_TABLE, Api, MAPS, config_map, map};
use http::Method;
use serde_json::{Value, json};
use std::io::Read;

fn names(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|object| object["metadata"]["name"].as_str().unwrap())
        .collect()
}

async fn with_maps(count: usize) -> Api {
    let api = Api::new().await;
    for at in 0..count {
        let mut body = config_map(&format!("m{at}"));
        body["metadata"]["labels"] = json!({"parity": if at % 2 == 0 { "even" } else { "odd" }});
        api.post(MAPS, &body).await.ok();
    }
    api
}

#[tokio::test]
async fn a_list_has_its_kind_and_revision() {
    let api = with_maps(2).await;
    let list = api.get("/api/v1/configmaps?&limit=500").await.ok();
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    assert_eq!(names(&list), ["m0", "m1"]);
    assert_eq!(list["metadata"]["resourceVersion"], api.store.revision().to_string());
    assert!(list["metadata"].get("continue").is_none());
    let empty = api.get("/api/v1/secrets").await.ok();
    assert_eq!(empty["items"], json!([]));
}

#[tokio::test]
async fn pages_of_a_list_show_one_revision_despite_writes() {
    let api = with_maps(5).await;
    let first = api.get(&format!("{MAPS}?limit=2")).await.ok();
    assert_eq!(names(&first), ["m0", "m1"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    api.post(MAPS, &config_map("m11")).await.ok();
    api.delete(&map("m3"), &json!(null)).await.ok();
    let second = api.get(&format!("{MAPS}?limit=2&continue={token}")).await.ok();
    assert_eq!(names(&second), ["m2", "m3"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let token = second["metadata"]["continue"].as_str().unwrap().to_owned();
    let third = api.get(&format!("{MAPS}?limit=2&continue={token}")).await.ok();
    assert_eq!(names(&third), ["m4"]);
    assert!(third["metadata"].get("continue").is_none());
    for bad in ["x", "eyJ2IjoieCJ9"] {
        let (code, why) = api.get(&format!("{MAPS}?continue={bad}")).await.refused();
        assert!(why.starts_with("invalid continue token: continue key is not valid"), "{why}");
        assert_eq!(code, 400);
    }
}

#[tokio::test]
async fn label_and_field_selectors_filter_lists() {
    let api = with_maps(4).await;
    for (query, found) in [
        ("labelSelector=parity%3Deven", vec!["m0", "m2"]),
        ("labelSelector=parity+in+(odd)", vec!["m1", "m3"]),
        ("labelSelector=!parity", vec!["kube-root-ca.crt"]),
        ("fieldSelector=metadata.name%3Dm2", vec!["m2"]),
        ("fieldSelector=metadata.name!%3Dm2&labelSelector=parity%3Deven", vec!["m0"]),
        ("fieldSelector=metadata.namespace%3Dother", vec![]),
    ] {
        let list = api.get(&format!("{MAPS}?{query}")).await.ok();
        let found: Vec<&str> = found.into_iter().filter(|one| one.starts_with('m')).collect();
        assert_eq!(names(&list), found, "{query}");
    }
    let (code, message) = api.get(&format!("{MAPS}?fieldSelector=data.k%3Dv")).await.refused();
    assert_eq!(code, 400);
    assert!(message.starts_with("\"data.k\" is not a known field selector"), "{message}");
    assert_eq!(api.get(&format!("{MAPS}?labelSelector=a%3D%3D%3Db")).await, 400);
    let filtered = api.get(&format!("{MAPS}?labelSelector=parity&limit=1")).await.ok();
    assert!(filtered["metadata"]["continue"].is_string());
    assert!(filtered["metadata"].get("remainingItemCount").is_none());
}

#[tokio::test]
async fn resource_version_match_selects_exact_or_newer_revisions() {
    let api = with_maps(1).await;
    let then = api.store.revision();
    api.post(MAPS, &config_map("m1")).await.ok();
    for (query, count) in [
        ("resourceVersion=0".to_owned(), 2),
        (format!("resourceVersion={then}"), 2),
        (format!("resourceVersion={then}&resourceVersionMatch=NotOlderThan"), 2),
        (format!("resourceVersion={then}&resourceVersionMatch=Exact"), 1),
        (format!("resourceVersion={then}&limit=10"), 1),
    ] {
        let list = api.get(&format!("{MAPS}?{query}")).await.ok();
        assert_eq!(names(&list).len(), count, "{query}");
    }
    let ahead = api.get(&format!("{MAPS}?resourceVersion=999999")).await;
    assert_eq!(ahead.refused().0, 504);
    assert_eq!(ahead.json()["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert_eq!(ahead.headers["retry-after"], "1");
    for bad in [
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersion=1&resourceVersionMatch=Odd",
    ] {
        assert_eq!(api.get(&format!("{MAPS}?{bad}")).await, 422, "{bad}");
    }
    assert_eq!(api.get(&format!("{MAPS}?resourceVersion=x")).await, 400);
}

#[tokio::test]
async fn lists_are_returned_as_tables_and_as_metadata() {
    let api = with_maps(2).await;
    let table = api.get_as(MAPS, AS_TABLE).await.ok();
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"].as_array().unwrap().len(), 2);
    assert_eq!(table["metadata"]["resourceVersion"], api.store.revision().to_string());
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let list = api.get_as(MAPS, accept).await.ok();
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    assert_eq!(names(&list), ["m0", "m1"]);
}

#[tokio::test]
async fn large_responses_are_compressed_on_request() {
    let api = Api::new().await;
    for at in 0..40 {
        let mut body = config_map(&format!("m{at}"));
        body["data"]["k"] = "0123456789".repeat(1000).into();
        api.post(MAPS, &body).await.ok();
    }
    let plain = api.get(MAPS).await;
    assert!(plain.headers.get("content-encoding").is_none());
    let packed = api.call(Method::GET, MAPS, &[("accept-encoding", "gzip")], "").await;
    assert_eq!(packed.headers["content-encoding"], "gzip");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&packed.bytes[..]).read_to_end(&mut text).unwrap();
    assert_eq!(text, plain.bytes);
    let small = api.call(Method::GET, &map("m1"), &[("accept-encoding", "gzip")], "").await;
    assert!(small.headers.get("content-encoding").is_none());
}
