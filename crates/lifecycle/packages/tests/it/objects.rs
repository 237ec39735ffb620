//! Fields of a PackageManifest.

use crate::test_api::{TestApi, bundle, catalog, channel, csv, package, source};
use serde_json::{Value, json};

async fn kiwi(content: &[Value]) -> Value {
    let api = TestApi::new(vec![source("team", "cat", Some(catalog(content)))]);
    api.get("/namespaces/team/packagemanifests/kiwi").await
}

#[tokio::test]
async fn package_manifest_describes_the_channel_heads() {
    let mut head = csv("kiwi", "2.0.0");
    head["metadata"]["annotations"] = json!({"capabilities": "Basic Install"});
    head["metadata"]["labels"] = json!({"other": "label"});
    let image = |name: &str| json!([{"name": name, "image": format!("i/{name}")}]);
    let pod = json!({"containers": image("main"), "initContainers": image("init")});
    let given = json!({
        "displayName": "Kiwi", "description": "A kiwi", "version": "2.0.0", "maturity": "alpha",
        "minKubeVersion": "1.20.0", "keywords": ["green"], "replaces": "kiwi.v1.0.0",
        "provider": {"name": "Trees", "url": "https://trees", "more": 1},
        "links": [{"name": "Home", "url": "https://kiwi"}],
        "maintainers": [{"name": "M", "email": "m@kiwi"}],
        "installModes": [{"type": "AllNamespaces", "supported": true}],
        "icon": [{"base64data": "AA==", "mediatype": "image/png"}],
        "customresourcedefinitions": {"owned": [{
            "name": "kiwis.example.com", "version": "v1", "kind": "Kiwi", "displayName": "Kiwi",
            "description": "One", "specDescriptors": [{"path": "a"}], "resources": [],
        }]},
        "apiservicedefinitions": {"required": [{
            "name": "a", "group": "g", "version": "v1", "kind": "A", "deploymentName": "d",
        }]},
        "nativeAPIs": [{"group": "", "version": "v1", "kind": "Pod"}],
        "relatedImages": [{"name": "a", "image": "i/a"}, {"name": "m", "image": "i/main"}],
        "install": {"strategy": "deployment", "spec": {"deployments": [
            {"name": "d", "spec": {"template": {"spec": pod}}},
        ]}},
    });
    head["spec"] = given.clone();
    let deprecated = |schema: &str, name: Option<&str>, message: &str| {
        let mut reference = json!({"schema": schema});
        if let Some(name) = name {
            reference["name"] = name.into();
        }
        json!({"reference": reference, "message": message})
    };
    let found = kiwi(&[
        package("kiwi", "stable"),
        channel("kiwi", "stable", &["1.0.0", "2.0.0"]),
        channel("kiwi", "alpha", &["1.0.0"]),
        bundle("kiwi", "1.0.0", &[csv("kiwi", "1.0.0")]),
        bundle(
            "kiwi",
            "2.0.0",
            &[json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}), head],
        ),
        json!({"schema": "olm.deprecations", "package": "kiwi", "entries": [
            deprecated("olm.package", None, "end of life"),
            deprecated("olm.channel", Some("alpha"), "channel end"),
            deprecated("olm.bundle", Some("kiwi.v1.0.0"), "bundle end"),
        ]}),
    ])
    .await;
    let old = json!({"name": "kiwi.v1.0.0", "version": "1.0.0", "deprecation": {"message": "bundle end"}});
    let mut described = given;
    for field in ["replaces", "icon", "install", "nativeAPIs"] {
        described.as_object_mut().unwrap().remove(field);
    }
    described["provider"] = json!({"name": "Trees", "url": "https://trees"});
    described["annotations"] = json!({"capabilities": "Basic Install"});
    described["customresourcedefinitions"] = json!({"owned": [{
        "name": "kiwis.example.com", "version": "v1", "kind": "Kiwi", "displayName": "Kiwi", "description": "One",
    }]});
    described["apiservicedefinitions"] =
        json!({"required": [{"name": "a", "group": "g", "version": "v1", "kind": "A"}]});
    described["nativeApis"] = json!([{"group": "", "version": "v1", "kind": "Pod"}]);
    described["relatedImages"] = json!(["i/main", "i/init", "i/a"]);
    let status = json!({
        "catalogSource": "cat", "catalogSourceDisplayName": "Catalog cat",
        "catalogSourceNamespace": "team", "catalogSourcePublisher": "tests",
        "packageName": "kiwi", "defaultChannel": "stable",
        "provider": {"name": "Trees", "url": "https://trees"},
        "deprecation": {"message": "end of life"},
        "channels": [
            {
                "name": "alpha", "currentCSV": "kiwi.v1.0.0", "entries": [old],
                "deprecation": {"message": "channel end"},
                "currentCSVDesc": {
                    "displayName": "KIWI", "version": "1.0.0", "provider": {},
                    "customresourcedefinitions": {}, "apiservicedefinitions": {},
                },
            },
            {
                "name": "stable", "currentCSV": "kiwi.v2.0.0", "currentCSVDesc": described,
                "entries": [{"name": "kiwi.v2.0.0", "version": "2.0.0"}, old],
            },
        ],
    });
    // shows E091 PM-02
    assert_eq!(found["status"], status);
    let mut metadata = found["metadata"].clone();
    assert!(metadata["resourceVersion"].take().is_string());
    let labels = json!({
        "of": "cat", "other": "label", "catalog": "cat", "catalog-namespace": "team",
        "provider": "Trees", "provider-url": "https://trees",
        "operatorframework.io/arch.amd64": "supported", "operatorframework.io/os.linux": "supported",
    });
    assert_eq!(
        metadata,
        json!({
            "name": "kiwi", "namespace": "team", "creationTimestamp": "2025-12-31T23:00:00Z",
            "labels": labels, "resourceVersion": null,
        })
    );
    assert_eq!((&found["kind"], &found["spec"]), (&json!("PackageManifest"), &json!({})));
}

#[tokio::test]
async fn channel_without_a_csv_at_its_head_is_left_out() {
    let content = [
        package("kiwi", "stable"),
        channel("kiwi", "alpha", &["1.0.0"]),
        channel("kiwi", "stable", &["1.0.0", "2.0.0"]),
        bundle("kiwi", "1.0.0", &[csv("kiwi", "1.0.0")]),
        bundle("kiwi", "2.0.0", &[]),
    ];
    let found = kiwi(&content).await;
    assert_eq!(found["status"]["defaultChannel"], "alpha");
    assert_eq!(found["status"]["channels"].as_array().unwrap().len(), 1);
    // A package without any described channel head does not exist.
    let content = [
        package("kiwi", "stable"),
        channel("kiwi", "stable", &["2.0.0"]),
        bundle("kiwi", "2.0.0", &[]),
    ];
    let api = TestApi::new(vec![source("team", "cat", Some(catalog(&content)))]);
    assert_eq!(api.get_error("/namespaces/team/packagemanifests/kiwi").await.0, 404);
    assert!(api.list_packages("/packagemanifests").await.is_empty());
}

#[tokio::test]
async fn bundle_with_csv_metadata_only_is_described_by_it() {
    let mut head = bundle("kiwi", "1.0.0", &[]);
    head["properties"].as_array_mut().unwrap().push(json!({
        "type": "olm.csv.metadata",
        "value": {
            "displayName": "Kiwi", "labels": {"operatorframework.io/arch.arm64": "supported"},
            "installModes": [{"type": "OwnNamespace", "supported": true}],
            "crdDescriptions": {"owned": [{"name": "k", "version": "v1", "kind": "Kiwi"}]},
        },
    }));
    head["relatedImages"] = json!([{"name": "a", "image": "i/a"}]);
    let found =
        kiwi(&[package("kiwi", "stable"), channel("kiwi", "stable", &["1.0.0"]), head]).await;
    let described = &found["status"]["channels"][0]["currentCSVDesc"];
    assert_eq!(found["status"]["channels"][0]["currentCSV"], "kiwi.v1.0.0");
    assert_eq!(described["displayName"], "Kiwi");
    assert_eq!(described["relatedImages"], json!(["i/a"]));
    assert_eq!(described["customresourcedefinitions"]["owned"][0]["kind"], "Kiwi");
    let labels = &found["metadata"]["labels"];
    assert_eq!(labels["operatorframework.io/arch.arm64"], "supported");
    assert_eq!(labels.get("operatorframework.io/arch.amd64"), None);
}
