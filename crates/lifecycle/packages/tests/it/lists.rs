//! What is listed, where, and in which form.

use crate::world::{ROOT, TABLE, World, bundle, catalog, channel, csv, package, simple, source};
use http::Request;
use serde_json::{Value, json};

fn two() -> World {
    let local = catalog(&[simple("kiwi", "1.0.0"), simple("apple", "2.0.0")].concat());
    let global = catalog(&simple("plum", "3.0.0"));
    World::new(vec![source("team", "cat", Some(local)), source("olm", "all", Some(global))])
}

#[tokio::test]
async fn a_namespace_sees_its_own_catalogs_and_the_global_ones() {
    let world = two();
    let own = ["team/apple of cat", "team/kiwi of cat", "team/plum of all"];
    // shows AT-CAT-10 E091 PM-06
    assert_eq!(world.listed("/namespaces/team/packagemanifests").await, own);
    let other = ["other/plum of all"];
    // shows AT-CAT-10
    assert_eq!(world.listed("/namespaces/other/packagemanifests").await, other);
    assert_eq!(world.listed("/namespaces/olm/packagemanifests").await, ["olm/plum of all"]);
    let all = ["olm/plum of all", "team/apple of cat", "team/kiwi of cat"];
    assert_eq!(world.listed("/packagemanifests").await, all);
    let (code, message) = world.refused("/namespaces/other/packagemanifests/kiwi").await;
    let not_found = "packagemanifests.packages.operators.coreos.com \"kiwi\" not found";
    assert_eq!((code, message.as_str()), (404, not_found));
}

#[tokio::test]
async fn labels_and_names_select() {
    let world = two();
    let listed = |query: &'static str| {
        let world = &world;
        async move { world.listed(&format!("/namespaces/team/packagemanifests?{query}")).await }
    };
    assert_eq!(listed("labelSelector=catalog%3Dall").await, ["team/plum of all"]);
    assert_eq!(listed("labelSelector=of+in+%28cat%29,provider").await.len(), 2);
    assert_eq!(listed("fieldSelector=metadata.name%3Dkiwi").await, ["team/kiwi of cat"]);
    assert_eq!(listed("fieldSelector=metadata.name%21%3Dkiwi").await.len(), 2);
    assert_eq!(listed("fieldSelector=metadata.namespace%3Dolm").await.len(), 0);
    let path = "/namespaces/team/packagemanifests?fieldSelector=status.defaultChannel%3Dx";
    let text = "\"status.defaultChannel\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    assert_eq!(world.refused(path).await, (400, text.to_owned()));
    let path = "/packagemanifests?labelSelector=%3D%3D";
    assert_eq!(world.refused(path).await.0, 400);
}

#[tokio::test]
async fn a_table_has_name_catalog_and_age() {
    let world = two();
    let table = world.get_as("/namespaces/team/packagemanifests?limit=500", TABLE).await;
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
    let one = world.get_as(path, TABLE).await;
    assert_eq!(one["rows"][0]["object"]["status"]["packageName"], "kiwi");
    let accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let metadata = world.get_as("/packagemanifests", accept).await;
    assert_eq!(metadata["kind"], "PartialObjectMetadataList");
    assert_eq!(metadata["items"][0]["status"], Value::Null);
    assert_eq!(world.bytes(&format!("{ROOT}/packagemanifests"), "text/html").await.0, 406);
}

#[tokio::test]
async fn a_package_of_several_catalogs_is_listed_of_each_and_means_the_nearest() {
    let of = |version| Some(catalog(&simple("kiwi", version)));
    let heavy = mainstay_packages::Source { priority: 5, ..source("olm", "z", of("3.0.0")) };
    let world = World::new(vec![source("olm", "a", of("1.0.0")), heavy.clone()]);
    let kiwi = |world: World| async move {
        world.get("/namespaces/team/packagemanifests/kiwi").await["status"]["catalogSource"].clone()
    };
    let all = ["team/kiwi of z", "team/kiwi of a"];
    assert_eq!(world.listed("/namespaces/team/packagemanifests").await, all);
    assert_eq!(kiwi(world).await, "z", "the greater priority");
    let equal = vec![source("olm", "b", of("1.0.0")), source("olm", "a", of("1.0.0"))];
    assert_eq!(kiwi(World::new(equal)).await, "a", "the first name");
    let own = vec![heavy, source("team", "own", of("1.0.0"))];
    assert_eq!(kiwi(World::new(own)).await, "own", "the namespace's own");
}

#[tokio::test]
async fn what_it_runs_on_is_what_the_head_of_the_default_channel_says_or_the_usual() {
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
        World::new(vec![source("olm", "cat", Some(catalog(&content)))])
    };
    let supported = |all: &[&str]| -> Value {
        all.iter()
            .map(|platform| json!({format!("operatorframework.io/{platform}"): "supported"}))
            .fold(json!({}), |mut all, one| {
                all.as_object_mut().unwrap().append(&mut one.as_object().unwrap().clone());
                all
            })
    };
    for (given, shown) in [
        (&[][..], &["arch.amd64", "os.linux"][..]),
        (&["arch.s390x"], &["arch.s390x", "os.linux"]),
        (&["os.zos"], &["arch.amd64", "os.zos"]),
        (
            &["arch.s390x", "os.zos", "os.linux", "arch.amd64"],
            &["arch.s390x", "os.zos", "os.linux", "arch.amd64"],
        ),
    ] {
        let world = labelled(supported(given));
        let kiwi = world.get("/namespaces/team/packagemanifests/kiwi").await;
        let mut labels = kiwi["metadata"]["labels"].as_object().unwrap().clone();
        labels.retain(|key, _| key.starts_with("operatorframework.io/"));
        // shows AT-MAR-01 MAR-01..MAR-05 PM-04
        assert_eq!(Value::Object(labels), supported(shown), "{given:?}");
    }
}

#[tokio::test]
async fn discovery_and_documents_tell_of_the_kind() {
    let world = two();
    let resources = world.get("").await;
    assert_eq!(resources["groupVersion"], "packages.operators.coreos.com/v1");
    let first = &resources["resources"][0];
    assert_eq!((&first["name"], &first["namespaced"]), (&json!("packagemanifests"), &json!(true)));
    // shows PM-05
    assert_eq!(first["singularName"], "packagemanifest");
    assert_eq!(first["verbs"], json!(["get", "list", "watch"]));
    let (_, index) = world.bytes("/openapi/v3", "application/json").await;
    let index: Value = serde_json::from_slice(&index).unwrap();
    let at = &index["paths"]["apis/packages.operators.coreos.com/v1"]["serverRelativeURL"];
    let (code, document) = world.bytes(at.as_str().unwrap(), "application/json").await;
    let document: Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(code, 200);
    let (_, swagger) = world.bytes("/openapi/v2", "application/json").await;
    let swagger: Value = serde_json::from_slice(&swagger).unwrap();
    // Every reference leads somewhere.
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
async fn what_cannot_be_done_is_refused() {
    let world = two();
    for method in ["DELETE", "POST", "PUT", "PATCH"] {
        let path = format!("{ROOT}/namespaces/team/packagemanifests/kiwi");
        let request = Request::builder().method(method).uri(path).body(()).unwrap();
        let response = world.ask(request).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["allow"]),
            (405, &"GET".parse().unwrap())
        );
    }
    for path in ["/things", "/namespaces/team/packagemanifests/kiwi/status", "/namespaces/team"] {
        assert_eq!(world.refused(path).await.0, 404, "{path}");
    }
    assert_eq!(world.refused("/packagemanifests?resourceVersion=x").await.0, 400);
    assert_eq!(world.refused("/packagemanifests?includeObject=Some").await.0, 400);
}

#[tokio::test]
async fn a_catalog_without_content_holds_up_nobody() {
    let global = Some(catalog(&simple("plum", "3.0.0")));
    let world = World::new(vec![source("olm", "gone", None), source("olm", "all", global)]);
    assert_eq!(world.listed("/packagemanifests").await, ["olm/plum of all"]);
}

#[tokio::test]
async fn until_there_are_catalogs_discovery_answers_and_lists_are_to_be_tried_again() {
    let clock = mainstay_clock::Clock::system();
    let packages =
        mainstay_packages::Packages::new("olm", clock, tokio_util::sync::CancellationToken::new());
    for (path, code) in [(ROOT.to_owned(), 200), (format!("{ROOT}/packagemanifests"), 503)] {
        let request = Request::get(path).body(()).unwrap();
        assert_eq!(packages.answer(&request).await.status().as_u16(), code);
    }
}
