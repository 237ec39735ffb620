//! Responses of each method.

use super::{CSV, RegistryServer, bundle, channel, fruits, index_of, package};
use mainstay_registry::json::{RpcCallResult, call};
use serde_json::{Value, json};

#[tokio::test]
async fn packages_are_listed_and_returned() {
    let registry = RegistryServer::new(Some(fruits())).await;
    // AT-REG-01.
    let names = registry.get("ListPackages", json!({})).await;
    assert_eq!(names, [json!({"name": "kiwi"}), json!({"name": "plum"})]);
    let plum = registry.get("GetPackage", json!({"name": "plum"})).await;
    assert_eq!(
        plum,
        [json!({
            "name": "plum",
            "channels": [
                {"name": "new", "csvName": "plum.v3.0.0"},
                {"name": "old", "csvName": "plum.v2.0.0", "deprecation": {"message": "old channel"}},
            ],
            "defaultChannelName": "old",
            "deprecation": {"message": "all old"},
        })]
    );
    registry.close().await;
}

#[tokio::test]
async fn bundles_are_returned_with_their_channel_entry() {
    let registry = RegistryServer::new(Some(fruits())).await;
    let get = async |name: &str| {
        let request = json!({"pkgName": "kiwi", "channelName": "stable", "csvName": name});
        registry.get("GetBundle", request).await.remove(0)
    };
    let first = get("kiwi.v1.0.0").await;
    assert_eq!((&first["csvJson"], &first["object"]), (&json!(CSV), &json!([CSV])));
    let second = get("kiwi.v1.1.0").await;
    assert_eq!(second["object"], json!(["{\"kind\":\"Other\"}", CSV]));
    assert_eq!((&second["csvJson"], &second["bundlePath"]), (&json!(CSV), &Value::Null));

    let mut head = get("kiwi.v1.2.0").await;
    let csv = head["csvJson"].take();
    assert_eq!(head["object"].take(), json!([csv]));
    let csv = csv.as_str().unwrap();
    assert!(csv.contains("\"displayName\":\"Kiwi \\u003c3\",\"description\":\"of all\""), "{csv}");
    assert!(
        csv.contains("\"icon\":[{\"base64data\":\"AAAA\",\"mediatype\":\"image/png\"}]"),
        "{csv}"
    );
    let required = "{\"group\":\"n.io\",\"kind\":\"Nut\",\"version\":\"v1\"}";
    assert_eq!(
        head,
        json!({
            "csvName": "kiwi.v1.2.0",
            "packageName": "kiwi",
            "channelName": "stable",
            "csvJson": null,
            "object": null,
            "bundlePath": "x.io/kiwi:3",
            "providedApis": [{"group": "g.io", "version": "v1", "kind": "Kiwi"}],
            "requiredApis": [{"group": "n.io", "version": "v1", "kind": "Nut"}],
            "version": "1.2.0",
            "skipRange": "<1.2.0",
            "dependencies": [
                {"type": "olm.gvk", "value": required},
                {"type": "olm.package", "value": "{\"packageName\":\"nut\",\"version\":\">1.0.0 <2.0.0\"}"},
            ],
            "properties": [
                {"type": "olm.package", "value": "{\"packageName\":\"kiwi\",\"version\":\"1.2.0\"}"},
                {"type": "olm.gvk", "value": "{\"group\":\"g.io\",\"kind\":\"Kiwi\",\"version\":\"v1\"}"},
                {"type": "olm.gvk.required", "value": required},
                {"type": "olm.package.required",
                    "value": "{\"packageName\":\"nut\",\"versionRange\":\">1.0.0 <2.0.0\"}"},
                {"type": "own", "value": "[1,\"<\"]"},
            ],
        })
    );
    // AT-REG-02: the head of a channel.
    let head = json!({"pkgName": "plum", "channelName": "old"});
    let head = registry.get("GetBundleForChannel", head).await.remove(0);
    assert_eq!(
        (&head["csvName"], &head["packageName"], &head["channelName"], &head["deprecation"]),
        (&json!("plum.v2.0.0"), &json!("plum"), &json!("old"), &json!({"message": "old bundle"}))
    );
    registry.close().await;
}

#[tokio::test]
async fn listed_bundles_have_edges_and_manifests_only_without_an_image() {
    let registry = RegistryServer::new(Some(fruits())).await;
    let listed = registry.get("ListBundles", json!({})).await;
    let summaries: Vec<Value> = listed
        .iter()
        .map(|bundle| {
            json!([
                bundle["channelName"],
                bundle["csvName"],
                bundle["replaces"],
                bundle["skips"],
                bundle["object"].as_array().map(Vec::len),
                bundle["csvJson"].is_string(),
            ])
        })
        .collect();
    assert_eq!(
        summaries,
        [
            json!(["alpha", "kiwi.v1.2.0", null, null, null, false]),
            json!(["new", "plum.v3.0.0", "plum.v2.0.0", null, null, false]),
            json!(["old", "plum.v2.0.0", null, null, null, false]),
            json!(["stable", "kiwi.v1.0.0", null, null, null, false]),
            json!(["stable", "kiwi.v1.1.0", "kiwi.v1.0.0", null, 2, true]),
            json!([
                "stable",
                "kiwi.v1.2.0",
                "kiwi.v1.1.0",
                ["kiwi.v1.0.0", "kiwi.v1.1.0", "gone"],
                null,
                false
            ]),
        ]
    );
    registry.close().await;
}

#[tokio::test]
async fn edges_are_found_by_name_and_by_api() {
    let registry = RegistryServer::new(Some(fruits())).await;
    let kiwi = json!({"group": "g.io", "version": "v1", "kind": "Kiwi"});
    let plum = json!({"group": "g.io", "version": "v1", "kind": "Plum"});
    let name = |name: &str| json!({"csvName": name});
    // Package, channel, and the last parts of the names of the bundle and of the one it replaces.
    let table: &[(&str, &Value, &[&str])] = &[
        (
            "GetChannelEntriesThatReplace",
            &name("kiwi.v1.0.0"),
            &["kiwi/stable 1.1.0 1.0.0", "kiwi/stable 1.2.0 1.1.0"],
        ),
        ("GetChannelEntriesThatReplace", &name("kiwi.v1.1.0"), &["kiwi/stable 1.2.0 1.1.0"]),
        ("GetChannelEntriesThatReplace", &name("gone"), &["kiwi/stable 1.2.0 1.1.0"]),
        (
            "GetChannelEntriesThatReplace",
            &name(""),
            &["kiwi/alpha 1.2.0 -", "kiwi/stable 1.0.0 -", "plum/old 2.0.0 -"],
        ),
        (
            "GetChannelEntriesThatProvide",
            &kiwi,
            &[
                "kiwi/alpha 1.2.0 -",
                "kiwi/stable 1.0.0 -",
                "kiwi/stable 1.2.0 1.1.0",
                "kiwi/stable 1.2.0 1.0.0",
                "kiwi/stable 1.2.0 gone",
                "plum/new 3.0.0 2.0.0",
            ],
        ),
        (
            "GetLatestChannelEntriesThatProvide",
            &kiwi,
            &[
                "kiwi/alpha 1.2.0 -",
                "kiwi/stable 1.2.0 1.1.0",
                "kiwi/stable 1.2.0 1.0.0",
                "plum/new 3.0.0 2.0.0",
            ],
        ),
        ("GetChannelEntriesThatProvide", &plum, &["plum/new 3.0.0 2.0.0"]),
    ];
    let short = |value: &Value| match value.as_str() {
        None => "-".to_owned(),
        Some(name) => name.rsplit_once(".v").map_or(name, |(_, version)| version).to_owned(),
    };
    for (rpc, request, wanted) in table {
        let found = registry.get(rpc, (*request).clone()).await;
        let found: Vec<String> = found
            .iter()
            .map(|edge| {
                let (package, channel) = (&edge["packageName"], &edge["channelName"]);
                let place = format!("{}/{}", package.as_str().unwrap(), channel.as_str().unwrap());
                format!("{place} {} {}", short(&edge["bundleName"]), short(&edge["replaces"]))
            })
            .collect();
        assert_eq!(found, *wanted, "{rpc} {request}");
    }
    let default = registry.get("GetDefaultBundleThatProvides", kiwi).await.remove(0);
    assert_eq!(
        (&default["csvName"], &default["channelName"]),
        (&json!("kiwi.v1.2.0"), &json!("stable"))
    );
    assert_eq!(default["replaces"], Value::Null);
    // Of two successors, the newest.
    let request = json!({"csvName": "kiwi.v1.0.0", "pkgName": "kiwi", "channelName": "stable"});
    let next = registry.get("GetBundleThatReplaces", request).await.remove(0);
    assert_eq!((&next["csvName"], &next["skips"]), (&json!("kiwi.v1.2.0"), &Value::Null));
    registry.close().await;
}

#[tokio::test]
async fn missing_objects_have_upstreams_errors() {
    let registry = RegistryServer::new(Some(fruits())).await;
    let api = json!({"group": "a", "version": "b", "kind": "c\""});
    let none = "no channel entries found that provide group:\"a\" version:\"b\" kind:\"c\\\"\"";
    let plum = json!({"group": "g.io", "version": "v1", "kind": "Plum"});
    let table: &[(&str, Value, &str)] = &[
        ("GetPackage", json!({"name": "q\"uote"}), "package \"q\\\"uote\" not found"),
        ("GetBundle", json!({"pkgName": "x"}), "package \"x\" not found"),
        (
            "GetBundle",
            json!({"pkgName": "kiwi", "channelName": "x"}),
            "package \"kiwi\", channel \"x\" not found",
        ),
        (
            "GetBundle",
            json!({"pkgName": "kiwi", "channelName": "alpha", "csvName": "kiwi.v1.0.0"}),
            "package \"kiwi\", channel \"alpha\", bundle \"kiwi.v1.0.0\" not found",
        ),
        ("GetBundleForChannel", json!({"pkgName": "x"}), "package \"x\" not found"),
        (
            "GetBundleForChannel",
            json!({"pkgName": "kiwi"}),
            "package \"kiwi\", channel \"\" not found",
        ),
        (
            "GetChannelEntriesThatReplace",
            json!({"csvName": "kiwi.v1.2.0"}),
            "no channel entries found that replace kiwi.v1.2.0",
        ),
        ("GetBundleThatReplaces", json!({"pkgName": "x"}), "package x not found"),
        (
            "GetBundleThatReplaces",
            json!({"pkgName": "kiwi", "channelName": "x"}),
            "package \"kiwi\", channel \"x\" not found",
        ),
        (
            "GetBundleThatReplaces",
            json!({"pkgName": "kiwi", "channelName": "stable", "csvName": "kiwi.v1.2.0"}),
            "no entry found for package \"kiwi\", channel \"stable\"",
        ),
        ("GetChannelEntriesThatProvide", api.clone(), none),
        ("GetLatestChannelEntriesThatProvide", api.clone(), none),
        ("GetDefaultBundleThatProvides", api, none),
        (
            "GetDefaultBundleThatProvides",
            plum,
            "no entry found that provides group:\"g.io\" version:\"v1\" kind:\"Plum\"",
        ),
    ];
    for (rpc, request, message) in table {
        let answer = registry.ask(rpc, request).await;
        assert_eq!((answer.code, &*answer.message), ("UNKNOWN", *message), "{rpc} {request}");
    }
    for path in ["/api.Registry/Nothing", "/nothing", "/api.Nothing/GetBundle"] {
        let answer = registry.ask("Unknown", &json!({"path": path})).await;
        assert_eq!(answer.code, "UNIMPLEMENTED", "{path}");
    }
    registry.close().await;
}

#[tokio::test]
async fn custom_schemas_require_the_experimental_acknowledgement() {
    let registry = RegistryServer::new(Some(fruits())).await;
    let call = async |schema: &str, package: &str, acknowledged: &str| {
        let request = json!({"schema": schema, "packageName": package});
        let metadata = [("x-acknowledge-experimental", acknowledged)];
        let rpc = "ExperimentalListPackageCustomSchemas";
        call(registry.channel.clone(), rpc, &request, &metadata).await.unwrap()
    };
    let notes = call("my.notes", "plum", "true").await;
    let wanted = json!({"schema": "my.notes", "package": "plum", "name": "a", "n": 3.0, "list": [null, true]});
    assert_eq!(notes.messages, [wanted]);
    let free = call("my.notes", "", "true").await;
    assert_eq!(free.messages, [json!({"schema": "my.notes", "name": "free"})]);
    let wrong = "must match ^[a-zA-Z0-9][a-zA-Z0-9._-]*$";
    for (schema, package, acknowledged, code, message) in [
        ("my.notes", "plum", "TRUE", "OK", String::new()),
        ("", "", "false", "OK", String::new()),
        ("olm.bundle", "plum", "true", "OK", String::new()),
        ("", "", "true", "INVALID_ARGUMENT", "schema is required".to_owned()),
        (
            "-",
            "",
            "true",
            "INVALID_ARGUMENT",
            format!("invalid custom schema query: invalid schema \"-\": {wrong}"),
        ),
        (
            "a",
            "b/",
            "true",
            "INVALID_ARGUMENT",
            format!("invalid custom schema query: invalid packageName \"b/\": {wrong}"),
        ),
    ] {
        let answer = call(schema, package, acknowledged).await;
        assert_eq!(
            answer,
            RpcCallResult { code, message, messages: Vec::new() },
            "{schema} {package}"
        );
    }
    registry.close().await;
}

#[test]
fn catalogs_that_upstream_refuses_are_refused() {
    let metadata = json!({"type": "olm.csv.metadata", "value": {}});
    let unserved_reason = |more: Value, other: Value| {
        let index = index_of(vec![
            package("kiwi", "c"),
            channel("kiwi", "c", &json!([{"name": "kiwi.v1.0.0"}])),
            bundle("kiwi", "1.0.0", "x.io/kiwi:1", &more),
            other,
        ]);
        mainstay_registry::unserved_reason(index.catalog())
    };
    let fine = json!({"schema": "a.b_c-1", "package": "x"});
    assert_eq!(unserved_reason(json!([metadata]), fine.clone()), None);
    assert_eq!(
        unserved_reason(json!([metadata, metadata]), fine).as_deref(),
        Some(
            "build package index: process package \"kiwi\": parse properties: expected at most 1 \
             property of type \"olm.csv.metadata\", found 2"
        )
    );
    assert_eq!(
        unserved_reason(json!([]), json!({"schema": "bad schema/!"})).as_deref(),
        Some(
            "invalid custom schema meta: invalid schema \"bad schema/!\": must match \
             ^[a-zA-Z0-9][a-zA-Z0-9._-]*$"
        )
    );
}
