//! The life of ClusterExtensions: install modes, ownership, updates that are refused, and deletion.

use crate::bundles::TestBundle;
use crate::cluster_extensions::grant;
use crate::extensions::{NAMESPACE, catalog};
use crate::olm_cluster::{OlmCluster, condition, message};
use mainstay_api::resources::CLUSTER_EXTENSION;
use mainstay_api::{CrdChannel, olm_v1_crds};
use mainstay_client::{DeleteOptions, ObjectList, Patch};
use mainstay_extensions::{Features, TrustMode};
use mainstay_object::{Gvk, Object, builtin};
use mainstay_testkit::InjectedFault;
use serde_json::{Value, json};

const CRD: &mainstay_object::Resource = &builtin::CUSTOM_RESOURCE_DEFINITION;

/// A cluster with running controllers, and a catalog of these packages and versions.
async fn with_packages(features: Features, packages: &[(&str, &[&str])]) -> OlmCluster {
    let mut olm = OlmCluster::for_extensions().await;
    if features.channel == CrdChannel::Experimental {
        for crd in olm_v1_crds(CrdChannel::Experimental) {
            olm.cluster.apply(crd).await;
        }
    }
    olm.features = features;
    olm.put_image("r.example/cat:v1", Some(&catalog(packages)));
    olm.start_controllers().await;
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    olm.wait_until_serving("cat", "r.example/cat:v1").await;
    olm
}

async fn change(olm: &OlmCluster, name: &str, change: Value) {
    let patch = Patch::Merge(change);
    olm.cluster.cluster().patch(&CLUSTER_EXTENSION, None, name, &patch).await.unwrap();
}

async fn delete_extension(olm: &OlmCluster, name: &str) {
    let options = DeleteOptions::default();
    olm.cluster.cluster().delete(&CLUSTER_EXTENSION, None, name, &options).await.unwrap();
}

/// The namespaces that the operator of the package watches, once these are they.
async fn wait_until_watching(olm: &OlmCluster, package: &str, namespaces: &str) {
    olm.cluster
        .wait_for(&builtin::DEPLOYMENT, Some(NAMESPACE), package, |deployment| {
            let annotations = ["spec", "template", "metadata", "annotations"];
            let watched =
                deployment.get(&annotations).map(|all| all["olm.targetNamespaces"].clone());
            watched == Some(json!(namespaces))
        })
        .await;
}

/// Waits until the extension fails with a text that contains this one.
async fn wait_until_failed(olm: &OlmCluster, name: &str, reason: &str, text: &str) -> Object {
    olm.wait_for_extension(name, |extension| {
        condition(extension, "Progressing").1 == reason
            && message(extension, "Progressing").contains(text)
    })
    .await
}

/// As OpenShift 4.19 does it: with an annotation.
#[tokio::test]
async fn annotation_chooses_the_install_mode() {
    let features = Features::experimental(TrustMode::ClusterAdmin);
    let olm = with_packages(features, &[("a", &["1.0.0"]), ("multi", &["1.0.0"])]).await;
    let modes = ["AllNamespaces", "OwnNamespace", "SingleNamespace"];
    TestBundle::new("a", "1.0.0").with_modes(&modes).store(&olm);
    TestBundle::new("multi", "1.0.0").with_modes(&["MultiNamespace"]).store(&olm);
    let watch = |namespace: Value| json!({"metadata": {"annotations": {"olm.operatorframework.io/watch-namespace": namespace}}});
    olm.apply_extension("ext", "a", "").await;
    // shows NS-01 NS-04 AT-52
    wait_until_watching(&olm, "a", "").await;
    for (annotation, watched) in [
        (json!(NAMESPACE), NAMESPACE),
        (json!(""), ""),
        (json!("default"), "default"),
        (Value::Null, ""),
    ] {
        change(&olm, "ext", watch(annotation)).await;
        // shows CE-02 NS-02 NS-04 AT-52
        wait_until_watching(&olm, "a", watched).await;
    }
    olm.apply_extension("two", "multi", "").await;
    // shows NS-03
    wait_until_failed(
        &olm,
        "two",
        "Retrying",
        "must support at least one of [AllNamespaces SingleNamespace OwnNamespace] install modes",
    )
    .await;
}

/// The standard channel has no such modes.
#[tokio::test]
async fn standard_features_install_for_all_namespaces_only() {
    let olm = with_packages(Features::default(), &[("a", &["1.0.0"])]).await;
    TestBundle::new("a", "1.0.0").with_modes(&["OwnNamespace"]).store(&olm);
    olm.apply_extension("ext", "a", "").await;
    // shows NS-02 SUP-02 SUP-03
    wait_until_failed(
        &olm,
        "ext",
        "Retrying",
        "unsupported bundle: bundle does not support AllNamespaces install mode",
    )
    .await;
    TestBundle::new("a", "1.0.0").with_modes(&["AllNamespaces"]).store(&olm);
    // shows SUP-02
    olm.wait_until_installed("ext", "1.0.0").await;
}

#[tokio::test]
async fn image_that_is_no_bundle_is_refused() {
    let olm = with_packages(Features::default(), &[("a", &["1.0.0"])]).await;
    olm.put_files("r.example/a:v1.0.0", &[("Chart.yaml", "name: a\nversion: 1.0.0\n")], None);
    olm.apply_extension("ext", "a", "").await;
    // shows SUP-01
    let failed = wait_until_failed(
        &olm,
        "ext",
        "Retrying",
        "error for resolved bundle \"a.v1.0.0\" with version \"1.0.0\"",
    )
    .await;
    assert_eq!(condition(&failed, "Installed").0, "False");
}

#[tokio::test]
async fn crd_belongs_to_one_extension() {
    let olm = with_packages(Features::default(), &[("a", &["1.0.0"]), ("b", &["1.0.0"])]).await;
    let size = json!({"size": {"type": "integer"}});
    for package in ["a", "b"] {
        TestBundle::new(package, "1.0.0").with_crd("Anvil", &size).store(&olm);
    }
    olm.apply_extension("one", "a", "").await;
    let one = olm.wait_until_installed("one", "1.0.0").await;
    olm.apply_extension("two", "b", "").await;
    let conflict = wait_until_failed(&olm, "two", "Retrying", "anvils.example.com").await;
    // shows OWN-02 OWN-04 OWN-05 AT-53
    assert_eq!(
        message(&conflict, "Progressing"),
        "error for resolved bundle \"b.v1.0.0\" with version \"1.0.0\": failed to get release state using server-side dry-run: CustomResourceDefinition 'anvils.example.com' already exists in namespace '' and cannot be managed by operator-controller"
    );
    let cluster = olm.cluster.cluster();
    let anvils = cluster.get(CRD, None, "anvils.example.com").await.unwrap();
    // shows OWN-01 OWN-03
    assert_eq!(anvils.controller_owner().unwrap().uid, one.uid());
    // shows OWN-03 OWN-06
    assert!(cluster.find(&builtin::DEPLOYMENT, Some(NAMESPACE), "b").await.unwrap().is_none());
    // The other one follows once the first is gone.
    delete_extension(&olm, "one").await;
    olm.wait_until_installed("two", "1.0.0").await;
}

#[tokio::test]
async fn update_that_breaks_a_crd_is_refused_until_the_check_is_off() {
    let packages: &[(&str, &[&str])] = &[("a", &["1.0.0", "2.0.0", "3.0.0"])];
    let olm = with_packages(Features::default(), packages).await;
    let size = |kind: &str| json!({"size": {"type": kind}});
    for (version, kind) in [("1.0.0", "integer"), ("2.0.0", "string"), ("3.0.0", "string")] {
        TestBundle::new("a", version).with_crd("Anvil", &size(kind)).store(&olm);
    }
    olm.apply_extension("ext", "a", "1.0.0").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let wanted = |version: &str, policy: &str| {
        json!({"spec": {"source": {"catalog": {
            "version": version, "upgradeConstraintPolicy": policy,
        }}}})
    };
    let text = "validating upgrade for CRD \"anvils.example.com\": v1: ^.spec.size: type: type changed : \"integer\" -> \"string\"";
    change(&olm, "ext", wanted("2.0.0", "CatalogProvided")).await;
    // shows UPD-09
    let refused = wait_until_failed(&olm, "ext", "Retrying", text).await;
    // shows UPD-09
    assert_eq!(refused.str(&["status", "install", "bundle", "version"]), Some("1.0.0"));
    // 3.0.0 is no successor of 1.0.0: the forced update is checked all the same.
    change(&olm, "ext", wanted("3.0.0", "SelfCertified")).await;
    // shows FORCE-05
    wait_until_failed(
        &olm,
        "ext",
        "Retrying",
        &format!("\"a.v3.0.0\" with version \"3.0.0\": {text}"),
    )
    .await;
    let enforcement = |value: &str| json!({"spec": {"install": {"preflight": {"crdUpgradeSafety": {"enforcement": value}}}}});
    change(&olm, "ext", enforcement("Strict")).await;
    // shows CE-12
    olm.wait_for_extension("ext", |extension| {
        condition(extension, "Progressing") == ("True".into(), "Retrying".into(), Some(4))
    })
    .await;
    change(&olm, "ext", enforcement("None")).await;
    // shows CE-12 OLMV1-108
    olm.wait_until_installed("ext", "3.0.0").await;
}

#[tokio::test]
async fn crd_that_cannot_be_read_is_reported() {
    let mut olm = OlmCluster::for_extensions().await;
    let size = json!({"size": {"type": "integer"}});
    TestBundle::new("a", "1.0.0").with_crd("Anvil", &size).store(&olm);
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0"])])));
    let faulty = olm.cluster.with_faults(|request| {
        if request.method == "GET" && request.target.ends_with("/anvils.example.com") {
            InjectedFault::Refused(500)
        } else {
            InjectedFault::Pass
        }
    });
    let controllers = olm.controllers_on(&faulty);
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    olm.apply_extension("ext", "a", "").await;
    // shows OLMV1-97
    let failed = wait_until_failed(&olm, "ext", "Retrying", "anvils.example.com").await;
    assert_eq!(condition(&failed, "Installed").0, "False");
    controllers.shutdown().await;
}

/// As in an upgrade from OLM v1.10 to v1.11.
#[tokio::test]
async fn extension_of_an_older_version_with_an_account_is_upgraded() {
    let mut olm = OlmCluster::for_extensions().await;
    olm.features = Features::standard(TrustMode::ServiceAccount);
    for version in ["1.0.0", "2.0.0"] {
        TestBundle::new("a", version).with_configs(&["kept"]).store(&olm);
    }
    olm.put_image("r.example/cat:v1", Some(&catalog(&[("a", &["1.0.0"])])));
    olm.start_controllers().await;
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v1"}), json!({})).await;
    grant(&olm, json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])).await;
    olm.apply_extension("ext", "a", "").await;
    change(&olm, "ext", json!({"spec": {"serviceAccount": {"name": "installer"}}})).await;
    olm.wait_until_installed("ext", "1.0.0").await;
    olm.stop_controllers().await;
    olm.features = Features::standard(TrustMode::ClusterAdmin);
    olm.start_controllers().await;
    olm.put_image("r.example/cat:v2", Some(&catalog(&[("a", &["1.0.0", "2.0.0"])])));
    olm.apply_catalog("cat", json!({"ref": "r.example/cat:v2"}), json!({})).await;
    // shows OLMV1-58
    olm.wait_until_serving("cat", "r.example/cat:v2").await;
    // shows OLMV1-58
    olm.wait_until_installed("ext", "2.0.0").await;
}

#[tokio::test]
async fn deletion_removes_the_operator_its_crds_and_their_objects() {
    let olm = with_packages(Features::default(), &[("a", &["1.0.0"])]).await;
    let size = json!({"size": {"type": "integer"}});
    TestBundle::new("a", "1.0.0").with_crd("Anvil", &size).store(&olm);
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let cluster = olm.cluster.cluster();
    olm.cluster.wait_for_condition(CRD, None, "anvils.example.com", "Established").await;
    let anvil = json!({
        "apiVersion": "example.com/v1", "kind": "Anvil",
        "metadata": {"name": "heavy", "namespace": NAMESPACE}, "spec": {"size": 1},
    });
    olm.cluster.apply(Object::from_value(anvil).unwrap()).await;
    let gvk = Gvk::from_api_version("example.com/v1", "Anvil");
    let anvils = cluster.resource_of(&gvk).await.unwrap().unwrap();
    delete_extension(&olm, "ext").await;
    // shows CE-DEL-01 AT-55
    olm.cluster.wait_gone(CRD, None, "anvils.example.com").await;
    // shows CE-DEL-01
    assert!(cluster.list(&anvils, None, &ObjectList::default()).await.is_err());
    // shows CE-DEL-01
    olm.cluster.wait_gone(&builtin::DEPLOYMENT, Some(NAMESPACE), "a").await;
    let left = cluster.list(&CLUSTER_EXTENSION, None, &ObjectList::default()).await.unwrap();
    // shows CE-DEL-02 AT-55
    assert_eq!(left.items, []);
    // A namespace of the operator that nobody created does not exist either.
    let missing = cluster.get(&builtin::NAMESPACE, None, "a-system").await;
    // shows CE-DEL-03 AT-55
    assert_eq!(missing.unwrap_err().to_string(), "namespaces \"a-system\" not found");
}
