//! Lists of PackageManifests: visibility, selectors, order and formats.

use crate::test_api::{
    ROOT, TABLE, TestApi, bundle, catalog, channel, csv, package, simple, source,
};
use http::Request;
use serde_json::{Value, json};

fn api_with_two_catalogs() -> TestApi {
    let local = catalog(&[simple("kiwi", "1.0.0"), simple("apple", "2.0.0")].concat());
    let global = catalog(&simple("plum", "3.0.0"));
    TestApi::new(vec![source("team", "cat", Some(local)), source("olm", "all", Some(global))])
}

#[tokio::test]
async fn namespace_lists_its_own_and_the_global_catalogs() {
    let api = api_with_two_catalogs();
    let own = ["team/apple of cat", "team/kiwi of cat", "team/plum of all"];
    // shows AT-CAT-10 E091 PM-06
    assert_eq!(api.list_packages("/namespaces/team/packagemanifests").await, own);
    let other = ["other/plum of all"];
    // shows AT-CAT-10
    assert_eq!(api.list_packages("/namespaces/other/packagemanifests").await, other);
    assert_eq!(api.list_packages("/namespaces/olm/packagemanifests").await, ["olm/plum of all"]);
    let all = ["olm/plum of all", "team/apple of cat", "team/kiwi of cat"];
    assert_eq!(api.list_packages("/packagemanifests").await, all);
    let (code, message) = api.get_error("/namespaces/other/packagemanifests/kiwi").await;
    let not_found = "packagemanifests.packages.operators.coreos.com \"kiwi\" not found";
    assert_eq!((code, message.as_str()), (404, not_found));
}

#[tokio::test]
async fn label_and_field_selectors_filter_lists() {
    let api = api_with_two_catalogs();
    let list = |query: &'static str| {
        let api = &api;
        async move { api.list_packages(&format!("/namespaces/team/packagemanifests?{query}")).await }
    };
    assert_eq!(list("labelSelector=catalog%3Dall").await, ["team/plum of all"]);
    assert_eq!(list("labelSelector=of+in+%28cat%29,provider").await.len(), 2);
    assert_eq!(list("fieldSelector=metadata.name%3Dkiwi").await, ["team/kiwi of cat"]);
    assert_eq!(list("fieldSelector=metadata.name%21%3Dkiwi").await.len(), 2);
    assert_eq!(list("fieldSelector=metadata.namespace%3Dolm").await.len(), 0);
    let path = "/namespaces/team/packagemanifests?fieldSelector=status.defaultChannel%3Dx";
    let text = "\"status.defaultChannel\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    assert_eq!(api.get_error(path).await, (400, text.to_owned()));
    let path = "/packagemanifests?labelSelector=%3D%3D";
    assert_eq!(api.get_error(path).await.0, 400);
}

#[tokio::test]
async fn table_has_the_columns_name_catalog_and_age() {
    let api = api_with_two_catalogs();
    let table = api.get_as("/namespaces/team/packagemanifests?limit=500", TABLE).await;
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    let names: Vec<&Value> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| &column["name"])
        .collect();
    // shows PM-01 AT-OUT-01
    assert_eq!(names, ["Name", "Catalog", "Age"]);
    let rows = table["rows"].as_array().unwrap();
    // shows PM-01 PM-06 AT-OUT-01
    assert_eq!(rows[0]["cells"], json!(["apple", "Catalog cat", "60m"]));
    assert_eq!(rows[0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(rows[0]["object"]["metadata"]["labels"]["catalog"], "cat");
    let path = "/namespaces/team/packagemanifests/kiwi?includeObject=Object";
    let one = api.get_as(path, TABLE).await;
    assert_eq!(one["rows"][0]["object"]["status"]["packageName"], "kiwi");
    let accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let metadata = api.get_as("/packagemanifests", accept).await;
    assert_eq!(metadata["kind"], "PartialObjectMetadataList");
    assert_eq!(metadata["items"][0]["status"], Value::Null);
    assert_eq!(api.get_bytes(&format!("{ROOT}/packagemanifests"), "text/html").await.0, 406);
}

#[tokio::test]
async fn package_of_several_catalogs_is_listed_for_each_and_get_prefers_own_then_priority_then_name()
 {
    let content = |version| Some(catalog(&simple("kiwi", version)));
    let preferred =
        mainstay_packages::PackageSource { priority: 5, ..source("olm", "z", content("3.0.0")) };
    let api = TestApi::new(vec![source("olm", "a", content("1.0.0")), preferred.clone()]);
    let kiwi = |api: TestApi| async move {
        api.get("/namespaces/team/packagemanifests/kiwi").await["status"]["catalogSource"].clone()
    };
    let all = ["team/kiwi of z", "team/kiwi of a"];
    assert_eq!(api.list_packages("/namespaces/team/packagemanifests").await, all);
    assert_eq!(kiwi(api).await, "z", "the greater priority");
    let equal = vec![source("olm", "b", content("1.0.0")), source("olm", "a", content("1.0.0"))];
    assert_eq!(kiwi(TestApi::new(equal)).await, "a", "the first name");
    let own = vec![preferred, source("team", "own", content("1.0.0"))];
    assert_eq!(kiwi(TestApi::new(own)).await, "own", "the namespace's own");
}

#[tokio::test]
async fn platform_labels_come_from_the_default_channel_head_or_are_amd64_and_linux() {
    let labelled = |labels: Value| {
        let mut old = csv("kiwi", "1.0.0");
        old["metadata"]["labels"] = json!({"operatorframework.io/arch.ppc64le": "supported"});
        let mut head = csv("kiwi", "2.0.0");
        head["metadata"]["labels"] = labels;
        let content = [
            package("kiwi", "stable"),
            channel("kiwi", "old", &["1.0.0"]),
            channel("kiwi", "stable", &["1.0.0", "2.0.0"]),
            bundle("kiwi", "1.0.0", &[old]),
            bundle("kiwi", "2.0.0", &[head]),
        ];
        TestApi::new(vec![source("olm", "cat", Some(catalog(&content)))])
    };
    let supported = |all: &[&str]| -> Value {
        all.iter()
            .map(|platform| json!({format!("operatorframework.io/{platform}"): "supported"}))
            .fold(json!({}), |mut all, one| {
                all.as_object_mut().unwrap().append(&mut one.as_object().unwrap().clone());
                all
            })
    };
    for (given, expected) in [
        (&[][..], &["arch.amd64", "os.linux"][..]),
        (&["arch.s390x"], &["arch.s390x", "os.linux"]),
        (&["os.zos"], &["arch.amd64", "os.zos"]),
        (
            &["arch.s390x", "os.zos", "os.linux", "arch.amd64"],
            &["arch.s390x", "os.zos", "os.linux", "arch.amd64"],
        ),
    ] {
        let api = labelled(supported(given));
        let kiwi = api.get("/namespaces/team/packagemanifests/kiwi").await;
        let mut labels = kiwi["metadata"]["labels"].as_object().unwrap().clone();
        labels.retain(|key, _| key.starts_with("operatorframework.io/"));
        // shows AT-MAR-01 MAR-01..MAR-05 PM-04
        assert_eq!(Value::Object(labels), supported(expected), "{given:?}");
    }
}

#[tokio::test]
async fn discovery_and_openapi_describe_the_kind() {
    let api = api_with_two_catalogs();
    let resources = api.get("").await;
    assert_eq!(resources["groupVersion"], "packages.operators.coreos.com/v1");
    let first = &resources["resources"][0];
    assert_eq!((&first["name"], &first["namespaced"]), (&json!("packagemanifests"), &json!(true)));
    // shows PM-05
    assert_eq!(first["singularName"], "packagemanifest");
    assert_eq!(first["verbs"], json!(["get", "list", "watch"]));
    let (_, index) = api.get_bytes("/openapi/v3", "application/json").await;
    let index: Value = serde_json::from_slice(&index).unwrap();
    let at = &index["paths"]["apis/packages.operators.coreos.com/v1"]["serverRelativeURL"];
    let (code, document) = api.get_bytes(at.as_str().unwrap(), "application/json").await;
    let document: Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(code, 200);
    let (_, swagger) = api.get_bytes("/openapi/v2", "application/json").await;
    let swagger: Value = serde_json::from_slice(&swagger).unwrap();
    // Every reference names a type of the document.
    for (document, at) in [(&document, "/components/schemas"), (&swagger, "/definitions")] {
        let types = document.pointer(at).unwrap().as_object().unwrap();
        let text = document.to_string();
        let prefix = format!("\"$ref\":\"#{at}/");
        let used: Vec<&str> =
            text.split(&prefix).skip(1).filter_map(|text| text.split('"').next()).collect();
        assert!(used.len() > types.len(), "{used:?}");
        for name in used {
            assert!(types.contains_key(name), "{name}");
        }
    }
}

#[tokio::test]
async fn unsupported_methods_paths_and_parameters_are_refused() {
    let api = api_with_two_catalogs();
    for method in ["DELETE", "POST", "PUT", "PATCH"] {
        let path = format!("{ROOT}/namespaces/team/packagemanifests/kiwi");
        let request = Request::builder().method(method).uri(path).body(()).unwrap();
        let response = api.send(request).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["allow"]),
            (405, &"GET".parse().unwrap())
        );
    }
    for path in ["/things", "/namespaces/team/packagemanifests/kiwi/status", "/namespaces/team"] {
        assert_eq!(api.get_error(path).await.0, 404, "{path}");
    }
    assert_eq!(api.get_error("/packagemanifests?resourceVersion=x").await.0, 400);
    assert_eq!(api.get_error("/packagemanifests?includeObject=Some").await.0, 400);
}

#[tokio::test]
async fn catalog_without_content_does_not_block_other_catalogs() {
    let global = Some(catalog(&simple("plum", "3.0.0")));
    let api = TestApi::new(vec![source("olm", "gone", None), source("olm", "all", global)]);
    assert_eq!(api.list_packages("/packagemanifests").await, ["olm/plum of all"]);
}

#[tokio::test]
async fn discovery_works_and_lists_are_unavailable_until_catalogs_are_attached() {
    let clock = mainstay_clock::Clock::system();
    let packages = mainstay_packages::PackageApi::new(
        "olm",
        clock,
        tokio_util::sync::CancellationToken::new(),
    );
    for (path, code) in [(ROOT.to_owned(), 200), (format!("{ROOT}/packagemanifests"), 503)] {
        let request = Request::get(path).body(()).unwrap();
        assert_eq!(packages.answer(&request).await.status().as_u16(), code);
    }
}
