//! Specification rows about catalogs and bundles that no other test shows.

use crate::images::{bundle_files, put_bundle, put_image};
use crate::olm_cluster::{OlmCluster, csv, true_condition};
use crate::registry::Registry;
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_classic::CatalogMode;
use mainstay_client::Selection;
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

#[tokio::test]
async fn bundle_csv_without_a_required_field_is_reported_with_file_and_field() {
    let olm = OlmCluster::start(&[]).await;
    let store = olm.store();
    let mut files = bundle_files("1.0.0", None);
    let mut version = csv("1.0.0", None);
    version.as_object_mut().unwrap().remove("apiVersion");
    files[0].1 = version.to_string();
    put_image(&store, "localhost/anvil-bundle:v1.0.0", &files, &[]);
    olm.publish_edited(&["1.0.0"], |version, bundle| {
        bundle["image"] = format!("localhost/anvil-bundle:v{version}").into();
        let properties = bundle["properties"].as_array_mut().unwrap();
        properties.retain(|property| property["type"] != "olm.bundle.object");
    });
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let subscription = olm
        .wait_for_subscription(|subscription| {
            true_condition(subscription, "BundleUnpackFailed").is_some()
        })
        .await;
    let (reason, message) = true_condition(&subscription, "BundleUnpackFailed").unwrap();
    // shows E055
    assert_eq!(reason, "BundleUnpackFailed");
    assert!(message.contains("manifests/csv.json"), "{message}");
    // shows E055
    assert!(message.contains("apiVersion"), "{message}");
    put_bundle(&store, "1.0.0", None);
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.wait_for_subscription(|subscription| {
        true_condition(subscription, "BundleUnpackFailed").is_none()
    })
    .await;
}

/// Applies the CatalogSource `far` in the namespace `team` with this spec only.
async fn apply_source(olm: &OlmCluster, spec: Value) {
    let source = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "far", "namespace": "team"}, "spec": spec,
    });
    olm.cluster.apply(Object::from_value(source).unwrap()).await;
}

#[tokio::test]
async fn catalog_source_can_change_between_all_source_types() {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    olm.pods.mode = CatalogMode::Pods;
    olm.start_controllers().await;
    let becomes = |predicate: fn(&Object) -> bool| {
        olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", predicate)
    };
    apply_source(&olm, json!({"sourceType": "nothing"})).await;
    // shows K05
    becomes(|source| {
        source.str(&["status", "reason"]) == Some("SpecInvalidError")
            && source.str(&["status", "message"]) == Some("unknown sourcetype: nothing")
    })
    .await;
    apply_source(&olm, json!({"sourceType": "grpc"})).await;
    // shows K05
    becomes(|source| {
        source.str(&["status", "message"])
            == Some("image and address unset: at least one must be set for sourcetype: grpc")
    })
    .await;
    apply_source(&olm, json!({"sourceType": "configmap"})).await;
    // shows K05
    becomes(|source| {
        source.str(&["status", "message"])
            == Some("configmap name unset: must be set for sourcetype: configmap")
    })
    .await;
    apply_source(&olm, json!({"sourceType": "configmap", "configMap": "content"})).await;
    // shows K05
    becomes(|source| {
        source.str(&["status", "reason"]) == Some("ConfigMapError")
            && source.str(&["status", "message"])
                == Some(
                    "failed to get catalog config map content: configmaps \"content\" not found",
                )
    })
    .await;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "content", "namespace": "team"},
        "data": {"packages": "[]", "clusterServiceVersions": "[]", "customResourceDefinitions": "[]"},
    });
    let map = olm.cluster.apply(Object::from_value(map).unwrap()).await;
    let source = becomes(|source| {
        source.get(&["status", "configMapReference"]).is_some()
            && source.str(&["status", "registryService", "serviceName"]) == Some("far")
            && source.str(&["status", "reason"]).is_none()
    })
    .await;
    // shows K05
    assert_eq!(source.str(&["status", "configMapReference", "uid"]), Some(map.uid()));
    let image_of = |all: &[&Object]| -> Vec<String> {
        let pods = all.iter().filter(|pod| !pod.is_terminating());
        pods.map(|pod| pod.array(&["spec", "containers"])[0]["image"].as_str().unwrap().to_owned())
            .collect()
    };
    let pods = || Selection::all(builtin::POD).namespace("team");
    // An image, first a wrong one: one pod serves, and it runs the image of the spec.
    for image in ["registry.invalid/c:wrong", "registry.invalid/c:right"] {
        apply_source(&olm, json!({"sourceType": "grpc", "image": image})).await;
        // shows K05
        olm.cluster.wait_for_all(pods(), move |all| image_of(all) == [image]).await;
    }
    let cluster = olm.cluster.cluster();
    for policy in ["far-grpc-server", "far-unpack-bundles"] {
        let found = cluster.get(&builtin::NETWORK_POLICY, Some("team"), policy).await.unwrap();
        let owner = &found.owner_references()[0];
        // shows K05
        assert_eq!((&*owner.kind, &*owner.name), ("CatalogSource", "far"));
    }
    // Two addresses, one after the other.
    for registry in [Registry::start(&["1.0.0"]).await, Registry::start(&["1.1.0"]).await] {
        let address = registry.address.to_string();
        apply_source(&olm, json!({"sourceType": "grpc", "address": address})).await;
        let connected = move |source: &Object| {
            source.str(&["status", "connectionState", "address"]) == Some(&address)
                && source.str(&["status", "connectionState", "lastObservedState"]) == Some("READY")
        };
        // shows K05
        olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", connected).await;
    }
}
