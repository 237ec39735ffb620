//! Discovery.

use crate::harness::Api;
use http::Method;
use serde_json::{Value, json};

/// The `Accept` header of clients before 1.36; the beta form is not served any more.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

fn find<'a>(list: &'a Value, key: &str, name: &str) -> &'a Value {
    let found = list.as_array().unwrap().iter().find(|one| one[key] == name);
    found.unwrap_or_else(|| panic!("{name} in {list}"))
}

#[tokio::test]
async fn legacy_discovery_lists_groups_versions_and_kinds() {
    let api = Api::new().await;
    assert_eq!(api.get("/api").await.ok()["versions"], json!(["v1"]));
    let groups = api.get("/apis").await.ok();
    assert_eq!(groups["kind"], "APIGroupList");
    let apps = find(&groups["groups"], "name", "apps");
    assert_eq!(apps["preferredVersion"], json!({"groupVersion": "apps/v1", "version": "v1"}));
    let group = api.get("/apis/autoscaling").await.ok();
    assert_eq!(group["kind"], "APIGroup");
    assert_eq!(group["preferredVersion"]["version"], "v2");
    let core = api.get("/api/v1").await.ok();
    assert_eq!((&core["kind"], &core["groupVersion"]), (&json!("APIResourceList"), &json!("v1")));
    let pods = find(&core["resources"], "name", "pods");
    assert_eq!(pods["namespaced"], true);
    assert_eq!(pods["shortNames"], json!(["po"]));
    let eviction = find(&core["resources"], "name", "pods/eviction");
    assert_eq!((&eviction["group"], &eviction["kind"]), (&json!("policy"), &json!("Eviction")));
    for path in ["/apis/nope", "/apis/apps/v9", "/api/v2"] {
        assert_eq!(api.get(path).await, 404, "{path}");
    }
}

#[tokio::test]
async fn aggregated_discovery_has_the_same_content_in_one_response() {
    let api = Api::new().await;
    let response = api.get_as("/apis", AGGREGATED).await;
    assert_eq!(
        response.headers["content-type"],
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    let list = response.ok();
    assert_eq!(list["kind"], "APIGroupDiscoveryList");
    let apps = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|group| group["metadata"]["name"] == "apps")
        .unwrap();
    let deployments = find(&apps["versions"][0]["resources"], "resource", "deployments");
    assert_eq!(deployments["scope"], "Namespaced");
    // The group-version of the enclosing entry is left out.
    let own = json!({"group": "", "version": "", "kind": "Deployment"});
    assert_eq!(deployments["responseKind"], own);
    let scale = find(&deployments["subresources"], "subresource", "scale");
    let foreign = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
    assert_eq!(scale["responseKind"], foreign);

    let etag = response.headers["etag"].to_str().unwrap().to_owned();
    let headers = [("accept", AGGREGATED), ("if-none-match", etag.as_str())];
    let same = api.call(Method::GET, "/apis", &headers, "").await;
    assert_eq!((same.code, same.bytes.len()), (304, 0));
    let core = api.get_as("/api", AGGREGATED).await.ok();
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn resource_lists_have_storage_version_hashes() {
    let api = Api::new().await;
    let hash = |list: &Value, name: &str| {
        find(&list["resources"], "name", name)["storageVersionHash"].clone()
    };
    // The values of a Kubernetes 1.35 server.
    let core = api.get("/api/v1").await.ok();
    assert_eq!(hash(&core, "pods"), "xPOwRZ+Yhw8=");
    assert_eq!(hash(&core, "events"), "r2yiGXH7wu8=");
    assert_eq!(hash(&core, "componentstatuses"), Value::Null);
    let apps = api.get("/apis/apps/v1").await.ok();
    assert_eq!(hash(&apps, "controllerrevisions"), "85nkx63pcBU=");
    assert_eq!(hash(&apps, "deployments/status"), Value::Null);
}

#[tokio::test]
async fn unregistered_paths_respond_in_plain_text() {
    let api = Api::new().await;
    for path in
        ["/foo", "/apis/nope", "/apis/nope/v1", "/apis/nope.example.com/v1/things", "/openapi"]
    {
        let response = api.get(path).await;
        assert_eq!(
            (response.code, &response.bytes[..]),
            (404, &b"404 page not found\n"[..]),
            "{path}"
        );
        assert_eq!(response.headers["x-content-type-options"], "nosniff", "{path}");
    }
    for path in ["/api/v2", "/apis/apps/v2", "/apis/apps/v1/things", "/api/v1/things"] {
        let (code, message) = api.get(path).await.refused();
        assert_eq!(code, 404, "{path}");
        assert_eq!(message, "the server could not find the requested resource", "{path}");
    }
}

#[tokio::test]
async fn responses_are_indented_for_curl_and_yaml_on_request() {
    let api = Api::new().await;
    let text = |response: &crate::harness::TestResponse| {
        String::from_utf8_lossy(&response.bytes).into_owned()
    };
    let curl = [("user-agent", "curl/8.0")];
    let group = api.call(Method::GET, "/apis/apps", &curl, "").await;
    assert!(text(&group).starts_with("{\n  \"kind\": \"APIGroup\",\n"), "{}", text(&group));
    let group = api.call(Method::GET, "/apis/apps?pretty=0", &curl, "").await;
    assert!(text(&group).starts_with("{\"kind\":\"APIGroup\""), "{}", text(&group));
    let yaml = api.get_as("/apis/apps", "application/yaml").await;
    assert_eq!(yaml.headers["content-type"], "application/yaml");
    assert!(text(&yaml).starts_with("apiVersion: v1\nkind: APIGroup\nname: apps\n"));
}

#[tokio::test]
async fn the_version_is_that_of_kubernetes_and_names_this_program() {
    let api = Api::new().await;
    let version = api.get("/version?timeout=5s").await.ok();
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("35")));
    assert!(version["gitVersion"].as_str().unwrap().contains("mainstay"));
}

#[tokio::test]
async fn readyz_succeeds_when_every_gate_is_open() {
    let api = Api::new().await;
    let gate = api.server.readiness().gate("crds");
    assert_eq!(api.get("/readyz").await, 500);
    assert_eq!(api.get("/livez").await, 200);
    gate.open();
    let ready = api.get("/readyz?verbose").await;
    assert_eq!(ready, 200);
    assert!(String::from_utf8_lossy(&ready.bytes).contains("[+]crds ok"));
}

#[tokio::test]
async fn openapi_documents_are_indexed_by_hash() {
    let api = Api::new().await;
    let index = api.get("/openapi/v3").await.ok();
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    assert!(url.starts_with("/openapi/v3/apis/apps/v1?hash="), "{url}");
    let document = api.get(&url).await.ok();
    assert!(document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"].is_object());
    let kept = api.get(&url).await;
    assert_eq!(kept.headers["cache-control"], "public, immutable");
    assert!(kept.headers.contains_key("expires"));
    let moved = api.get("/openapi/v3/apis/apps/v1?hash=OLD").await;
    assert_eq!((moved.code, moved.headers["location"].to_str().unwrap()), (301, url.as_str()));
    let etag = kept.headers["etag"].to_str().unwrap();
    let same = api.call(Method::GET, &url, &[("if-none-match", etag)], "").await;
    assert_eq!((same.code, same.bytes.len()), (304, 0));
    for path in ["/openapi/v3/apis/nope/v1", "/openapi/v3/"] {
        let response = api.get(path).await;
        assert_eq!((response.code, response.bytes.len()), (404, 0), "{path}");
    }
    assert_eq!(api.get_as(&url, "text/plain").await, 406);
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let protobuf = api.get_as("/openapi/v2", accept).await;
    assert_eq!(protobuf, 200);
    assert_eq!(
        protobuf.headers["content-type"],
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    );
    assert!(protobuf.bytes.starts_with(b"\x0a\x032.0\x12"));
    let json = api.get("/openapi/v2").await;
    let etag = json.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(protobuf.headers["etag"], etag.as_str());
    let document = json.ok();
    assert_eq!(document["swagger"], "2.0");
    assert!(document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/log"].is_object());
    let same = api.call(Method::GET, "/openapi/v2", &[("if-none-match", &etag)], "").await;
    assert_eq!((same.code, same.bytes.len()), (304, 0));
    assert_eq!(api.get_as("/openapi/v2", "text/html").await, 406);
}
