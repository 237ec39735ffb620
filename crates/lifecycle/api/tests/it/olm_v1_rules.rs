//! OLM v1: the admission tests of upstream, form by form.

use crate::olm_v1_validation::{
    base, cluster_with, config_map, create, image, merge, message, phase,
};
use mainstay_api::{CrdChannel, resources};
use mainstay_client::Patch;
use mainstay_object::{Object, Resource};
use mainstay_testkit::TestCluster;
use serde_json::{Value, json};

const EXTENSION: &Resource = &resources::CLUSTER_EXTENSION;
const SET: &Resource = &resources::CLUSTER_OBJECT_SET;

/// The message with which an object is refused whose spec has this change; empty if it is accepted.
async fn refusal(cluster: &TestCluster, resource: &Resource, change: &Value) -> String {
    let mut object = base(resource);
    merge(&mut object["spec"], change);
    let object = Object::from_value(object).unwrap();
    message(cluster.cluster().try_create(resource, &object).await)
}

async fn assert_accepted(cluster: &TestCluster, resource: &Resource, change: Value) {
    assert_eq!(refusal(cluster, resource, &change).await, "", "{change}");
}

async fn assert_refused(cluster: &TestCluster, resource: &Resource, change: Value, part: &str) {
    let refusal = refusal(cluster, resource, &change).await;
    assert!(refusal.contains(part), "{change}: {refusal:?}");
}

/// Changes the object `t`; an accepted change stays.
async fn change(cluster: &TestCluster, resource: &Resource, spec: Value) -> String {
    let patch = Patch::Merge(json!({"spec": spec}));
    message(cluster.cluster().patch(resource, None, "t", &patch).await)
}

fn filter(change: &Value) -> Value {
    json!({"source": {"catalog": change}})
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_packages_channels_and_namespaces_are_checked() {
    let cluster = &cluster_with(CrdChannel::Standard).await;
    let long = "a".repeat(254);
    for (name, part) in [
        (&*long, "Too long: may not be more than 253 bytes"),
        ("-", "packageName must be a valid DNS1123 subdomain"),
        ("Upper", "packageName must be a valid DNS1123 subdomain"),
        ("under_score", "packageName must be a valid DNS1123 subdomain"),
        (".leading", "packageName must be a valid DNS1123 subdomain"),
        ("a.-b", "packageName must be a valid DNS1123 subdomain"),
    ] {
        // shows OLMV1-84
        assert_refused(cluster, EXTENSION, filter(&json!({"packageName": name})), part).await;
    }
    for name in ["123", "a.b-c.d"] {
        // shows OLMV1-84
        assert_accepted(cluster, EXTENSION, filter(&json!({"packageName": name}))).await;
    }
    for (name, part) in [
        (&*long, "Too long: may not be more than 253 bytes"),
        ("", "channels entries must be valid DNS1123 subdomains"),
        ("Upper", "channels entries must be valid DNS1123 subdomains"),
        ("under_score", "channels entries must be valid DNS1123 subdomains"),
        ("a.-b", "channels entries must be valid DNS1123 subdomains"),
    ] {
        // shows OLMV1-87
        assert_refused(cluster, EXTENSION, filter(&json!({"channels": [name]})), part).await;
    }
    for (name, part) in [
        ("a.b", "namespace must be a valid DNS1123 label"),
        (&"a".repeat(64), "Too long: may not be more than 63 bytes"),
        ("-a", "namespace must be a valid DNS1123 label"),
    ] {
        // shows OLMV1-88
        assert_refused(cluster, EXTENSION, json!({"namespace": name}), part).await;
    }
    create(cluster, EXTENSION).await;
    // shows OLMV1-88
    assert!(
        change(cluster, EXTENSION, json!({"namespace": "b"}))
            .await
            .ends_with("namespace is immutable")
    );
    assert_eq!(change(cluster, EXTENSION, json!({"serviceAccount": {"name": "a"}})).await, "");
    // shows OLMV1-89
    assert!(
        change(cluster, EXTENSION, json!({"serviceAccount": {"name": "b"}}))
            .await
            .ends_with("name is immutable once set but may be cleared")
    );
    // shows OLMV1-89
    assert_eq!(change(cluster, EXTENSION, json!({"serviceAccount": null})).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn version_ranges_have_a_form() {
    let cluster = &cluster_with(CrdChannel::Standard).await;
    for version in [
        "1.2.3",
        "v1.2.3",
        "=1.2.3",
        "!=1.2.3",
        ">1.2.3",
        "<1.2.3",
        ">=1.2.3",
        "=>1.2.3",
        "<=1.2.3",
        "=<1.2.3",
        "~1.2.3",
        "~>1.2.3",
        "^1.2.3",
        "1.2",
        "1",
        "1.2.x",
        "1.2.X",
        "1.2.*",
        "1.x",
        "x",
        "*",
        "> 1.2.3",
        ">= 1.2.3",
        ">=1.2.3, <2.3.4",
        ">=1.2.3,<2.3.4",
        ">=1.2.3 <2.3.4",
        "<1.2.3 || >2.3.4",
        "<1.2.3||>2.3.4",
        ">1, <2 || >=4 || 3.x",
        "1.2.3-alpha",
        "1.2.3-alpha.1",
        "1.2.3+meta",
        "1.2.3-rc.1+build-7",
        ">=1.2.3-0",
        "0.0.0",
    ] {
        // shows OLMV1-85
        assert_accepted(cluster, EXTENSION, filter(&json!({"version": version}))).await;
    }
    for version in [
        "==1.2.3",
        ">1.2.3 && <2.0.0",
        "1.2.3; 2.0.0",
        "1.2.3 - 2.3.4",
        "1.2.3.4",
        "01.2.3",
        "1.02.3",
        "1.2.03",
        "1..2",
        ".1",
        "1.",
        "a",
        "1.2.a",
        "!1.2.3",
        ">>1.2.3",
        "<>1.2.3",
        "1.2.3-",
        "1.2.3+",
        "1.2.3+a_b",
        "1.2.3-a_b",
        "1,,2",
        "latest",
    ] {
        // shows OLMV1-86
        assert_refused(
            cluster,
            EXTENSION,
            filter(&json!({"version": version})),
            "invalid version expression",
        )
        .await;
    }
    // shows OLMV1-86
    assert_refused(
        cluster,
        EXTENSION,
        filter(&json!({"version": "1".repeat(65)})),
        "spec.source.catalog.version: Too long: may not be more than 64 bytes",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn optional_parts_of_an_extension_are_complete_or_absent() {
    let cluster = &cluster_with(CrdChannel::Experimental).await;
    // shows OLMV1-90
    assert_refused(
        cluster,
        EXTENSION,
        json!({"install": {}}),
        "at least one of [preflight] are required when install is specified",
    )
    .await;
    let inline = |value: Value| json!({"config": {"configType": "Inline", "inline": value}});
    // shows OLMV1-91
    assert_refused(
        cluster,
        EXTENSION,
        inline(json!([])),
        "spec.config.inline in body must be of type object",
    )
    .await;
    // shows OLMV1-91
    assert_refused(
        cluster,
        EXTENSION,
        inline(json!({})),
        "spec.config.inline in body should have at least 1 properties",
    )
    .await;
    // shows OLMV1-91
    assert_accepted(cluster, EXTENSION, inline(json!({"a": {"b": [1, {"c": true}]}}))).await;
    for kind in ["", "Invalid"] {
        // shows OLMV1-92
        assert_refused(
            cluster,
            EXTENSION,
            json!({"source": {"sourceType": kind}}),
            &format!(
                "spec.source.sourceType: Unsupported value: {kind:?}: supported values: \"Catalog\""
            ),
        )
        .await;
    }
    // shows OLMV1-92
    assert_refused(
        cluster,
        EXTENSION,
        json!({"source": {"catalog": null}}),
        "catalog is required when sourceType is Catalog, and forbidden otherwise",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn references_of_catalogs_have_a_domain_a_name_and_a_tag_or_digest() {
    let cluster = &cluster_with(CrdChannel::Standard).await;
    let catalog = &resources::CLUSTER_CATALOG;
    let polled = json!({"source": {"image": {
        "ref": format!("q.io/a@sha256:{}", "a".repeat(32)), "pollIntervalMinutes": 1,
    }}});
    for (change, part) in [
        (image("q.io/a"), "must end with a digest or a tag"),
        (
            image(&format!("q.io/a:{}", "t".repeat(128))),
            "the tag must not be more than 127 characters",
        ),
        (image("-q.io/a:b"), "must start with a valid domain"),
        (
            image(&format!("q.io/a@sha256:{}", "a".repeat(31))),
            "the encoded string must be at least 32 characters",
        ),
        (
            image(&format!("q.io/a@sha256:{}", "x".repeat(32))),
            "the encoded string must only contain hex characters (A-F, a-f, 0-9)",
        ),
        (polled, "cannot specify pollIntervalMinutes while using digest-based image"),
    ] {
        // shows OLMV1-93
        assert_refused(cluster, catalog, change, part).await;
    }
    // shows OLMV1-93
    assert_accepted(cluster, catalog, image(&format!("q.io:5000/a/b@sha256:{}", "a".repeat(64))))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn object_sets_are_limited_and_stay_as_they_are() {
    let cluster = &cluster_with(CrdChannel::Experimental).await;
    let mut both = config_map("a");
    both["ref"] = json!({"name": "s", "namespace": "n", "key": "k"});
    let exactly_one = "exactly one of the fields in [object ref] must be set";
    for object in [both, json!({"collisionProtection": "None"})] {
        // shows OLMV1-95
        assert_refused(cluster, SET, json!({"phases": [phase(&object)]}), exactly_one).await;
    }
    let objects: Vec<Value> = (0..51).map(|at| config_map(&format!("a{at}"))).collect();
    // shows OLMV1-95
    assert_refused(
        cluster,
        SET,
        json!({"phases": [{"name": "a", "objects": objects}]}),
        "spec.phases[0].objects: Too many: 51: must have at most 50 items",
    )
    .await;
    let phases: Vec<Value> =
        (0..21).map(|at| json!({"name": format!("p{at}"), "objects": [config_map("a")]})).collect();
    // shows OLMV1-95
    assert_refused(
        cluster,
        SET,
        json!({"phases": phases}),
        "spec.phases: Too many: 21: must have at most 20 items",
    )
    .await;
    let probe = json!({"progressionProbes": [{
        "selector": {"type": "GroupKind", "groupKind": {"group": "", "kind": "ConfigMap"}},
        "assertions": [{"type": "FieldValue", "fieldValue": {"fieldPath": "a..b", "value": "c"}}],
    }]});
    // shows OLMV1-95
    assert_refused(cluster, SET, probe, "must contain a valid field path").await;
    create(cluster, SET).await;
    for (spec, part) in [
        (json!({"revision": 2}), "revision is immutable"),
        (json!({"phases": [{"name": "b", "objects": [config_map("b")]}]}), "phases is immutable"),
    ] {
        // shows OLMV1-94
        assert!(change(cluster, SET, spec).await.ends_with(part), "{part}");
    }
    assert_eq!(change(cluster, SET, json!({"lifecycleState": "Archived"})).await, "");
    // shows OLMV1-94
    assert!(
        change(cluster, SET, json!({"lifecycleState": "Active"}))
            .await
            .ends_with("cannot un-archive")
    );
}
