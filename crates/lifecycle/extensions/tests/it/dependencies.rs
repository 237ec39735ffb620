//! Extensions whose annotation accepts bundles with dependencies.

use crate::extensions::{NAMESPACE, extension};
use crate::olm_cluster::{OlmCluster, condition, message, quiet};
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_api::{CrdChannel, olm_v1_crds};
use mainstay_client::{DeleteOptions, ObjectList, Patch};
use mainstay_extensions::{Features, TrustMode};
use mainstay_object::{Object, builtin};
use mainstay_testkit::InjectedFault;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const CONFIG: &mainstay_object::Resource = &builtin::CONFIG_MAP;
const CRD: &mainstay_object::Resource = &builtin::CUSTOM_RESOURCE_DEFINITION;
const ANNOTATION: &str = "mainstay.dev/dependencies";

/// A version of a package: its name, its version, the version that it replaces, and its dependencies.
type Version<'v> = (&'v str, &'v str, &'v str, Value);

fn package(name: &str, range: &str) -> Value {
    json!({"type": "olm.package.required", "value": {"packageName": name, "versionRange": range}})
}

fn api(kind: &str) -> Value {
    json!({"type": "olm.gvk.required", "value": {"group": "x.io", "version": "v1", "kind": kind}})
}

/// A catalog with a channel for each package.
fn catalog(versions: &[Version<'_>]) -> String {
    let mut documents = Vec::new();
    for (package, ..) in versions {
        let document =
            json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"});
        if documents.contains(&document) {
            continue;
        }
        let entries = versions.iter().filter(|(name, ..)| name == package);
        let entries = entries.map(|(_, version, replaces, _)| {
            json!({
                "name": format!("{package}.v{version}"),
                "replaces": if replaces.is_empty() { String::new() } else { format!("{package}.v{replaces}") },
            })
        });
        let entries: Vec<Value> = entries.collect();
        documents.push(document);
        documents.push(json!({
            "schema": "olm.channel", "package": package, "name": "stable", "entries": entries,
        }));
    }
    for (package, version, _, dependencies) in versions {
        let mut properties = vec![
            json!({"type": "olm.package", "value": {"packageName": package, "version": version}}),
        ];
        properties.extend(dependencies.as_array().unwrap().iter().cloned());
        documents.push(json!({
            "schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
            "image": format!("r.example/{package}:v{version}"), "properties": properties,
        }));
    }
    let documents: Vec<String> = documents.iter().map(ToString::to_string).collect();
    documents.join("\n---\n")
}

/// Stores a catalog and its bundles, each with a ConfigMap of the name of its package.
async fn publish(olm: &OlmCluster, image: &str, versions: &[Version<'_>]) {
    for (package, version, ..) in versions {
        olm.put_bundle(package, version, &[package]);
    }
    olm.put_image(image, Some(&catalog(versions)));
    olm.apply_catalog("cat", json!({"ref": image}), json!({})).await;
}

/// A cluster whose controllers serve a catalog.
async fn cluster_with(features: Features, versions: &[Version<'_>]) -> OlmCluster {
    let mut olm = OlmCluster::for_extensions().await;
    for crd in olm_v1_crds(CrdChannel::Experimental) {
        olm.cluster.apply(crd).await;
    }
    olm.features = features;
    olm.start_controllers().await;
    publish(&olm, "r.example/cat:v1", versions).await;
    olm.wait_until_serving("cat", "r.example/cat:v1").await;
    olm
}

/// Creates an extension of the package of its name, with this annotation unless it is empty.
async fn extend(olm: &OlmCluster, name: &str, policy: &str) -> Object {
    let mut extension = extension(name, name, "");
    if !policy.is_empty() {
        extension["metadata"]["annotations"] = json!({ANNOTATION: policy});
    }
    olm.cluster.apply(Object::from_value(extension).unwrap()).await
}

/// Waits until the condition Progressing has this message.
async fn wait_for_message(olm: &OlmCluster, name: &str, expected: &str) -> Object {
    olm.wait_for_extension(name, |extension| message(extension, "Progressing") == expected).await
}

async fn config(olm: &OlmCluster, name: &str) -> Option<Object> {
    olm.cluster.cluster().find(CONFIG, Some(NAMESPACE), name).await.unwrap()
}

async fn apply_crd(olm: &OlmCluster, plural: &str, kind: &str) {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.x.io")},
        "spec": {
            "group": "x.io", "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    olm.cluster.apply(Object::from_value(crd).unwrap()).await;
}

const WITHOUT_POT: &str = "unsatisfied dependencies of bundle \"b.v1.0.0\": API Pot (x.io/v1): no CustomResourceDefinition serves it";
const WITHOUT_B: &str = "unsatisfied dependencies of bundle \"a.v1.0.0\": package \"b\" in version range \">=1.0.0 <2.0.0\": no ClusterExtension has it installed";

fn chain() -> [Version<'static>; 2] {
    [
        ("a", "1.0.0", "", json!([package("b", ">=1.0.0 <2.0.0")])),
        ("b", "1.0.0", "", json!([api("Pot")])),
    ]
}

/// A chain is installed from its end on, as soon as the last dependency is there.
async fn chain_waits_and_is_installed(features: Features) {
    let olm = cluster_with(features, &chain()).await;
    extend(&olm, "a", "Require").await;
    let waiting = wait_for_message(&olm, "a", WITHOUT_B).await;
    let (status, reason, _) = condition(&waiting, "Progressing");
    assert_eq!((&*status, &*reason), ("True", "Retrying"));
    assert_ne!(condition(&waiting, "Installed").0, "True");
    extend(&olm, "b", "Require").await;
    wait_for_message(&olm, "b", WITHOUT_POT).await;
    assert!(config(&olm, "a").await.is_none() && config(&olm, "b").await.is_none());
    let secrets = ObjectList::default();
    let secrets =
        olm.cluster.cluster().list(&builtin::SECRET, Some("olmv1-system"), &secrets).await;
    assert!(secrets.unwrap().items.is_empty());
    apply_crd(&olm, "cups", "Cup").await;
    apply_crd(&olm, "pots", "Pot").await;
    olm.cluster.wait_for(CONFIG, Some(NAMESPACE), "b", |_| true).await;
    olm.cluster.wait_for(CONFIG, Some(NAMESPACE), "a", |_| true).await;
}

#[tokio::test]
async fn chain_of_dependencies_is_installed_once_its_end_is_there() {
    chain_waits_and_is_installed(Features::default()).await;
}

#[tokio::test]
async fn chain_of_dependencies_is_installed_with_object_sets() {
    chain_waits_and_is_installed(Features::object_sets(TrustMode::ClusterAdmin)).await;
}

#[tokio::test]
async fn without_the_annotation_dependencies_are_refused_and_with_ignore_they_do_not_count() {
    let olm = cluster_with(Features::default(), &chain()).await;
    let refused = "validating bundle \"a.v1.0.0\": bundle \"a.v1.0.0\" has a dependency declared via property \"olm.package.required\" which is currently not supported";
    for policy in ["", "require"] {
        extend(&olm, "a", policy).await;
        // shows SUP-05 SUP-06
        wait_for_message(&olm, "a", refused).await;
    }
    extend(&olm, "a", "Require").await;
    wait_for_message(&olm, "a", WITHOUT_B).await;
    extend(&olm, "a", "Ignore").await;
    olm.wait_until_installed("a", "1.0.0").await;
}

#[tokio::test]
async fn dependency_that_leaves_the_range_or_goes_is_reported_and_the_dependent_stays() {
    let a = ("a", "1.0.0", "", json!([package("b", ">=1.0.0 <2.0.0")]));
    let b = ("b", "1.0.0", "", json!([]));
    let olm = cluster_with(Features::default(), &[a.clone(), b.clone()]).await;
    extend(&olm, "b", "").await;
    extend(&olm, "a", "Require").await;
    olm.wait_until_installed("a", "1.0.0").await;
    let b2 = ("b", "2.0.0", "1.0.0", json!([]));
    publish(&olm, "r.example/cat:v2", &[a, b, b2]).await;
    let outdated = "unsatisfied dependencies of bundle \"a.v1.0.0\": package \"b\" in version range \">=1.0.0 <2.0.0\": ClusterExtension \"b\" has version 2.0.0";
    let reported = wait_for_message(&olm, "a", outdated).await;
    assert_eq!(condition(&reported, "Installed").0, "True");
    assert_eq!(reported.str(&["status", "install", "bundle", "version"]), Some("1.0.0"));
    // It is still repaired.
    let cluster = olm.cluster.cluster();
    cluster.delete(CONFIG, Some(NAMESPACE), "a", &DeleteOptions::default()).await.unwrap();
    olm.cluster.wait_for(CONFIG, Some(NAMESPACE), "a", |_| true).await;
    cluster.delete(&CLUSTER_EXTENSION, None, "b", &DeleteOptions::default()).await.unwrap();
    wait_for_message(&olm, "a", WITHOUT_B).await;
    let events = cluster.list(&builtin::EVENT, None, &ObjectList::default()).await.unwrap();
    let is_report = |event: &Object| {
        event.str(&["involvedObject", "name"]) == Some("a")
            && event.str(&["reason"]) == Some("Retrying")
            && event.str(&["message"]) == Some(outdated)
    };
    assert!(events.items.iter().any(is_report), "{:?}", events.items);
}

#[tokio::test]
async fn upgrade_to_a_bundle_with_a_new_dependency_waits_and_the_old_one_is_repaired() {
    let a = ("a", "1.0.0", "", json!([]));
    let olm = cluster_with(Features::default(), std::slice::from_ref(&a)).await;
    extend(&olm, "a", "Require").await;
    olm.wait_until_installed("a", "1.0.0").await;
    let a2 = ("a", "2.0.0", "1.0.0", json!([api("Pot"), package("c", "1.0.0")]));
    publish(&olm, "r.example/cat:v2", &[a, a2]).await;
    let expected = "unsatisfied dependencies of bundle \"a.v2.0.0\": API Pot (x.io/v1): no CustomResourceDefinition serves it; package \"c\" in version range \"1.0.0\": no ClusterExtension has it installed";
    let held = wait_for_message(&olm, "a", expected).await;
    assert_eq!(held.str(&["status", "install", "bundle", "version"]), Some("1.0.0"));
    let cluster = olm.cluster.cluster();
    let change = Patch::Merge(json!({"data": {"version": "changed"}}));
    cluster.patch(CONFIG, Some(NAMESPACE), "a", &change).await.unwrap();
    olm.cluster
        .wait_for(CONFIG, Some(NAMESPACE), "a", |config| {
            config.str(&["data", "version"]) == Some("1.0.0")
        })
        .await;
    apply_crd(&olm, "pots", "Pot").await;
    let rest = "unsatisfied dependencies of bundle \"a.v2.0.0\": package \"c\" in version range \"1.0.0\": no ClusterExtension has it installed";
    wait_for_message(&olm, "a", rest).await;
    cluster.delete(CRD, None, "pots.x.io", &DeleteOptions::default()).await.unwrap();
    wait_for_message(&olm, "a", expected).await;
}

/// Other extensions and other CustomResourceDefinitions cost nothing while the verdict is the same.
#[tokio::test]
async fn satisfied_dependencies_cost_no_request_at_rest() {
    let mut olm = OlmCluster::for_extensions().await;
    let versions = [
        ("a", "1.0.0", "", json!([package("b", "1.0.0"), api("Pot")])),
        ("b", "1.0.0", "", json!([])),
        ("c", "1.0.0", "", json!([])),
    ];
    let of_a = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&of_a);
    let observed = olm.cluster.with_faults(move |request| {
        let target = request.target.split('?').next().unwrap_or_default();
        let about_a = target.ends_with("/a") || target.contains("/clusterextensions/a");
        counter.fetch_add(usize::from(about_a), Ordering::SeqCst);
        InjectedFault::Pass
    });
    let controllers = olm.controllers_on(&observed);
    controllers.synced().await;
    publish(&olm, "r.example/cat:v1", &versions).await;
    olm.wait_until_serving("cat", "r.example/cat:v1").await;
    apply_crd(&olm, "pots", "Pot").await;
    extend(&olm, "b", "").await;
    extend(&olm, "a", "Require").await;
    olm.wait_until_installed("a", "1.0.0").await;
    olm.wait_until_ready("a").await;
    let before = quiet(&of_a).await;
    assert!(before > 0);
    apply_crd(&olm, "cups", "Cup").await;
    extend(&olm, "c", "").await;
    olm.wait_until_installed("c", "1.0.0").await;
    assert_eq!(quiet(&of_a).await, before);
    // What it depends on does count.
    let cluster = olm.cluster.cluster();
    cluster.delete(CRD, None, "pots.x.io", &DeleteOptions::default()).await.unwrap();
    wait_for_message(&olm, "a", "unsatisfied dependencies of bundle \"a.v1.0.0\": API Pot (x.io/v1): no CustomResourceDefinition serves it").await;
    assert!(quiet(&of_a).await > before);
    controllers.shutdown().await;
}
