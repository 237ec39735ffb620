//! CustomResourceDefinitions with the policy `keep` outlive their extension, also if its account can do nothing any
//! more: with them, all objects of their kinds would go.

use crate::approved_accounts::{CLUSTER_ROLE, apply_rbac, approve, with_package};
use crate::bundles::TestBundle;
use crate::cluster_extensions::grant;
use crate::extensions::NAMESPACE;
use crate::olm_cluster::{OlmCluster, message};
use mainstay_api::resources::{CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_client::{DeleteOptions, Patch};
use mainstay_extensions::{Features, TrustMode};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};

const CRD: &Resource = &builtin::CUSTOM_RESOURCE_DEFINITION;
const NAME: &str = "teas.example.com";

fn everything() -> Value {
    json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
}

async fn delete(olm: &OlmCluster, kind: &Resource, namespace: Option<&str>, name: &str) {
    let options = DeleteOptions::default();
    olm.cluster.cluster().delete(kind, namespace, name, &options).await.unwrap();
}

/// Waits for the installation, and marks the CustomResourceDefinition.
async fn install_and_mark(olm: &OlmCluster) {
    olm.wait_until_installed("ext", "1.0.0").await;
    let keep = Patch::Merge(json!({
        "metadata": {"annotations": {"helm.sh/resource-policy": "keep"}},
    }));
    olm.cluster.cluster().patch(CRD, None, NAME, &keep).await.unwrap();
}

/// Deletes the extension, and asserts that the CustomResourceDefinition stays.
async fn delete_and_assert_kept(olm: &OlmCluster) {
    delete(olm, &CLUSTER_EXTENSION, None, "ext").await;
    olm.cluster.wait_gone(&CLUSTER_EXTENSION, None, "ext").await;
    olm.cluster.wait_gone(&builtin::DEPLOYMENT, Some(NAMESPACE), "a").await;
    let crd = olm.cluster.cluster().get(CRD, None, NAME).await.unwrap();
    assert_eq!(crd.owner_references(), []);
    assert!(!crd.is_terminating());
}

fn store_bundle(olm: &OlmCluster) {
    TestBundle::new("a", "1.0.0").with_crd("Tea", &json!({})).store(olm);
}

#[tokio::test]
async fn withdrawn_approval_loses_no_kept_definition() {
    let trust = TrustMode::Approved;
    for features in [Features::standard(trust), Features::object_sets(trust)] {
        let (olm, controllers) = with_package(features).await;
        store_bundle(&olm);
        approve(&olm, everything()).await;
        olm.apply_extension("ext", "a", "").await;
        install_and_mark(&olm).await;
        delete(&olm, &builtin::CLUSTER_ROLE, None, "approval").await;
        olm.cluster.wait_gone(&builtin::CLUSTER_ROLE, None, CLUSTER_ROLE).await;
        delete_and_assert_kept(&olm).await;
        controllers.shutdown().await;
    }
}

#[tokio::test]
async fn deleted_account_loses_no_kept_definition() {
    let trust = TrustMode::ServiceAccount;
    for features in [Features::standard(trust), Features::object_sets(trust)] {
        let (olm, controllers) = with_package(features).await;
        store_bundle(&olm);
        grant(&olm, everything()).await;
        olm.apply_extension("ext", "a", "").await;
        let patch = Patch::Merge(json!({"spec": {"serviceAccount": {"name": "installer"}}}));
        olm.cluster.cluster().patch(&CLUSTER_EXTENSION, None, "ext", &patch).await.unwrap();
        install_and_mark(&olm).await;
        delete(&olm, &builtin::SERVICE_ACCOUNT, Some(NAMESPACE), "installer").await;
        delete_and_assert_kept(&olm).await;
        controllers.shutdown().await;
    }
}

/// The permissions of an earlier version of the manifests do not suffice: then nothing is lost either.
#[tokio::test]
async fn deletion_waits_while_nobody_may_release_a_kept_definition() {
    let features = Features::object_sets(TrustMode::Approved);
    let (olm, controllers) = with_package(features).await;
    store_bundle(&olm);
    approve(&olm, everything()).await;
    olm.apply_extension("ext", "a", "").await;
    install_and_mark(&olm).await;
    let all = (mainstay_extensions::subsystem(features).permissions)();
    let mut without = all.clone();
    for rule in
        without.iter_mut().filter(|rule| rule["resources"][0] == "customresourcedefinitions")
    {
        rule["verbs"] = json!(["list", "watch"]);
    }
    apply_rbac(&olm, "ClusterRole", "mainstay", json!({"rules": without})).await;
    delete(&olm, &builtin::CLUSTER_ROLE, None, "approval").await;
    olm.cluster.wait_gone(&builtin::CLUSTER_ROLE, None, CLUSTER_ROLE).await;
    delete(&olm, &CLUSTER_EXTENSION, None, "ext").await;
    let is_told = |set: &Object| {
        message(set, "Progressing")
            .starts_with("an object is to be kept: customresourcedefinitions.apiextensions.k8s.io")
    };
    olm.cluster.wait_for(&CLUSTER_OBJECT_SET, None, "ext-1", is_told).await;
    apply_rbac(&olm, "ClusterRole", "mainstay", json!({"rules": all})).await;
    olm.cluster.wait_gone(&CLUSTER_EXTENSION, None, "ext").await;
    assert_eq!(olm.cluster.cluster().get(CRD, None, NAME).await.unwrap().owner_references(), []);
    controllers.shutdown().await;
}
