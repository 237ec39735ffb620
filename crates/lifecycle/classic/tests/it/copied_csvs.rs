//! Copied CSVs in the target namespaces of OperatorGroups.

use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster, create_namespace, csv, true_condition};
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION as CSV, INSTALL_PLAN, OLM_CONFIG, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::{DeleteOptions, ObjectList, Patch, Selection};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

const NAME: &str = "anvil.v1.0.0";

/// A cluster with the namespaces `a` and `b`, an OperatorGroup with these targets, and an installed
/// operator.
async fn olm_with_operator(targets: &[&str]) -> OlmCluster {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    for name in ["a", "b"] {
        create_namespace(&olm.cluster, name, "").await;
    }
    olm.apply_group_for("og", targets).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded(NAME).await;
    olm
}

/// Waits until the copied CSV in a namespace matches.
async fn wait_for_copy(
    olm: &OlmCluster,
    namespace: &str,
    predicate: impl Fn(&Object) -> bool + Send + 'static,
) -> Object {
    olm.cluster
        .wait_for(&CSV, Some(namespace), NAME, move |csv| {
            csv.label("olm.copiedFrom") == Some("team")
                && csv.str(&["status", "reason"]) == Some("Copied")
                && csv.str(&["status", "phase"]) == Some("Succeeded")
                && predicate(csv)
        })
        .await
}

async fn patch_csv(olm: &OlmCluster, namespace: &str, body: Value) -> Object {
    olm.cluster.cluster().patch(&CSV, Some(namespace), NAME, &Patch::Merge(body)).await.unwrap()
}

/// Waits until exactly these namespaces have copied CSVs.
async fn wait_for_copies_in(olm: &OlmCluster, namespaces: &'static [&'static str]) {
    olm.cluster
        .wait_for_all(Selection::all(CSV).labels("olm.copiedFrom"), move |all| {
            let mut found: Vec<&str> = all.iter().map(|csv| csv.namespace()).collect();
            found.sort_unstable();
            found == namespaces
        })
        .await;
}

async fn set_copies_disabled(olm: &OlmCluster, disabled: Value) {
    let name = "cluster";
    let features = json!({"spec": {"features": {"disableCopiedCSVs": disabled}}});
    let patch = Patch::Merge(features);
    olm.cluster.cluster().patch(&OLM_CONFIG, None, name, &patch).await.unwrap();
}

/// Waits until the condition `DisabledCopiedCSVs` of the OLMConfig has a status and message.
async fn wait_for_config_condition(olm: &OlmCluster, status: &'static str, message: &'static str) {
    olm.cluster
        .wait_for(&OLM_CONFIG, None, "cluster", move |config| {
            config.array(&["status", "conditions"]).iter().any(|condition| {
                condition["type"] == "DisabledCopiedCSVs"
                    && condition["status"] == status
                    && condition["message"] == message
            })
        })
        .await;
}

async fn create_olm_config(olm: &OlmCluster) {
    olm.cluster
        .apply_yaml(
            "{apiVersion: operators.coreos.com/v1, kind: OLMConfig, metadata: {name: cluster}}",
        )
        .await;
}

#[tokio::test]
async fn all_namespaces_csv_is_copied_to_every_namespace_until_it_is_deleted() {
    let olm = olm_with_operator(&[]).await;
    let original = olm.wait_until_succeeded(NAME).await;
    // shows AT-OG-09 CSV-11 CSV-80 CSV-81
    let copy = wait_for_copy(&olm, "a", |_| true).await;
    assert_eq!(copy.get(&["spec"]), original.get(&["spec"]));
    assert_eq!(
        copy.str(&["status", "message"]),
        Some("The operator is running in team but is managing this namespace")
    );
    for field in ["conditions", "requirementStatus", "lastUpdateTime"] {
        // shows CSV-81
        assert_eq!(copy.get(&["status", field]), original.get(&["status", field]), "{field}");
    }
    // shows AT-OG-09 CSV-82
    assert_eq!(copy.annotation("olm.targetNamespaces"), None);
    // shows CSV-82
    assert_eq!(copy.annotation("olm.operatorGroup"), Some("og"));
    assert_eq!(copy.annotation("olm.operatorNamespace"), Some("team"));
    // shows AT-OG-09 CSV-80
    wait_for_copies_in(
        &olm,
        &["a", "b", "default", "kube-node-lease", "kube-public", "kube-system", "olm"],
    )
    .await;
    let cluster = olm.cluster.cluster();
    let subscriptions = SUBSCRIPTION;
    let options = DeleteOptions::default();
    cluster.delete(&subscriptions, Some("team"), "anvil", &options).await.unwrap();
    cluster.delete(&CSV, Some("team"), NAME, &options).await.unwrap();
    // shows AT-OG-09 CSV-83
    wait_for_copies_in(&olm, &[]).await;
}

#[tokio::test]
async fn copied_csv_has_the_originals_content_without_finalizers_and_owners() {
    let olm = olm_with_operator(&["a"]).await;
    let config = "kubectl.kubernetes.io/last-applied-configuration";
    patch_csv(&olm, "team", json!({"metadata": {"annotations": {config: "{}", "note": "x"}}}))
        .await;
    let copy = wait_for_copy(&olm, "a", |copy| copy.annotation("note").is_some()).await;
    let component = |csv: &Object| csv.label("operators.coreos.com/anvil.team").is_some();
    let original = olm.cluster.wait_for(&CSV, Some("team"), NAME, move |csv| component(csv)).await;
    assert!(original.finalizers().next().is_some() && original.annotation(config).is_some());
    // shows CSV-84
    assert!(copy.finalizers().next().is_none() && copy.owner_references().is_empty());
    let labels: Vec<_> = copy.labels().collect();
    // shows CSV-84
    assert_eq!(labels, [("olm.copiedFrom", "team"), ("olm.managed", "true")]);
    let is_copied = |key: &&str| ![config, "olm.targetNamespaces"].contains(key);
    let wanted: Vec<&str> =
        original.annotations().map(|annotation| annotation.0).filter(is_copied).collect();
    assert_eq!(copy.annotations().map(|annotation| annotation.0).collect::<Vec<_>>(), wanted);
    assert_eq!(wanted.len() + 2, original.annotations().count());
    assert_eq!(copy.get(&["spec"]), original.get(&["spec"]));
}

#[tokio::test]
async fn changes_of_a_copied_csv_are_reverted() {
    let olm = olm_with_operator(&["a"]).await;
    let original = olm.wait_until_succeeded(NAME).await;
    let first = wait_for_copy(&olm, "a", |_| true).await;
    let spec = original.get(&["spec"]).cloned();
    let is_true = move |copy: &Object| {
        copy.get(&["spec"]) == spec.as_ref()
            && copy.label("olm.copiedFrom") == Some("team")
            && copy.label("team").is_none()
            && copy.annotation("olm.operatorNamespace") == Some("team")
    };
    for edit in [
        json!({"spec": {"displayName": "edited"}}),
        json!({"metadata": {"labels": {"team": "blue"}}}),
        json!({"metadata": {"labels": {"olm.copiedFrom": null}}}),
        json!({"metadata": {"labels": {"olm.copiedFrom": "elsewhere"}}}),
        json!({"metadata": {"labels": null, "annotations": null}}),
    ] {
        let edited = patch_csv(&olm, "a", edit.clone()).await;
        assert!(!is_true(&edited), "{edit}");
        // shows E036
        wait_for_copy(&olm, "a", is_true.clone()).await;
    }
    let cluster = olm.cluster.cluster();
    let status = Patch::Merge(json!({"status": {"phase": "Failed", "reason": "InstallSucceeded"}}));
    cluster.patch_status(&CSV, Some("a"), NAME, &status).await.unwrap();
    // shows E036
    let mended = wait_for_copy(&olm, "a", is_true.clone()).await;
    cluster.delete(&CSV, Some("a"), NAME, &DeleteOptions::default()).await.unwrap();
    wait_for_copy(&olm, "a", move |copy| copy.uid() != mended.uid() && is_true(copy)).await;
    // No controller treated the copy as an operator meanwhile.
    assert!(first.finalizers().next().is_none());
    let conditions = cluster
        .list(&mainstay_api::resources::OPERATOR_CONDITION, Some("a"), &ObjectList::default())
        .await;
    assert!(conditions.unwrap().items.is_empty());
}

#[tokio::test]
async fn changes_of_a_csv_reach_its_copies() {
    let olm = olm_with_operator(&["a"]).await;
    wait_for_copy(&olm, "a", |_| true).await;
    patch_csv(&olm, "team", json!({"metadata": {
        "labels": {"color": "red", "operators.coreos.com/other.x": ""}, "annotations": {"note": "hello"},
    }}))
    .await;
    let changed = wait_for_copy(&olm, "a", |copy| {
        copy.label("color") == Some("red") && copy.annotation("note") == Some("hello")
    })
    .await;
    assert_eq!(changed.label("operators.coreos.com/other.x"), None);
    patch_csv(&olm, "team", json!({"metadata": {"labels": {"color": null}}})).await;
    wait_for_copy(&olm, "a", |copy| copy.label("color").is_none()).await;
}

#[tokio::test]
async fn roles_in_a_target_namespace_are_owned_by_the_copied_csv_and_recreated_with_it() {
    let olm = olm_with_operator(&["a"]).await;
    let first = wait_for_copy(&olm, "a", |_| true).await;
    let owned_by = |uid: String| {
        let selection = Selection::all(builtin::ROLE).namespace("a").labels("olm.copiedFrom=team");
        olm.cluster.wait_for_all(selection, move |all| {
            all.len() == 1
                && all[0]
                    .owner_references()
                    .iter()
                    .any(|owner_reference| owner_reference.uid == uid)
        })
    };
    // shows OG-35
    owned_by(first.uid().to_owned()).await;
    let cluster = olm.cluster.cluster();
    cluster.delete(&CSV, Some("a"), NAME, &DeleteOptions::default()).await.unwrap();
    let second = wait_for_copy(&olm, "a", move |copy| copy.uid() != first.uid()).await;
    owned_by(second.uid().to_owned()).await;
}

#[tokio::test]
async fn copied_csvs_follow_the_targets_of_the_operator_group() {
    let olm = olm_with_operator(&["a"]).await;
    wait_for_copies_in(&olm, &["a"]).await;
    olm.apply_group_for("og", &["b"]).await;
    // shows CSV-83
    wait_for_copies_in(&olm, &["b"]).await;
    olm.apply_group_for("og", &["team"]).await;
    wait_for_copies_in(&olm, &[]).await;
    olm.apply_group_for("og", &["a"]).await;
    wait_for_copies_in(&olm, &["a"]).await;
    let cluster = olm.cluster.cluster();
    cluster.delete(&OPERATOR_GROUP, Some("team"), "og", &DeleteOptions::default()).await.unwrap();
    wait_for_copies_in(&olm, &[]).await;
}

#[tokio::test]
async fn recreated_target_namespace_gets_its_copied_csv_again() {
    let olm = olm_with_operator(&["a"]).await;
    wait_for_copy(&olm, "a", |_| true).await;
    let cluster = olm.cluster.cluster();
    cluster.delete(&builtin::NAMESPACE, None, "a", &DeleteOptions::default()).await.unwrap();
    olm.cluster.wait_gone(&builtin::NAMESPACE, None, "a").await;
    create_namespace(&olm.cluster, "a", "").await;
    wait_for_copy(&olm, "a", |_| true).await;
}

#[tokio::test]
async fn csv_with_the_name_of_a_copy_is_kept_and_replaced_by_the_copy_when_deleted() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    create_namespace(&olm.cluster, "a", "").await;
    let mut own = csv("1.0.0", None);
    own["metadata"]["namespace"] = "a".into();
    own["spec"]["customresourcedefinitions"] = json!({});
    olm.cluster.apply(Object::from_value(own).unwrap()).await;
    olm.apply_group_for("og", &["a"]).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded(NAME).await;
    let cluster = olm.cluster.cluster();
    let existing = cluster.get(&CSV, Some("a"), NAME).await.unwrap();
    assert_eq!(existing.label("olm.copiedFrom"), None);
    cluster.delete(&CSV, Some("a"), NAME, &DeleteOptions::default()).await.unwrap();
    wait_for_copy(&olm, "a", |_| true).await;
}

#[tokio::test]
async fn csv_that_is_no_member_of_its_operator_group_has_no_copies() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    for name in ["a", "b"] {
        create_namespace(&olm.cluster, name, "").await;
    }
    // The CSV does not support the install mode MultiNamespace.
    olm.apply_group_for("og", &["a", "b"]).await;
    olm.subscribe(json!({})).await;
    olm.wait_for_csv(NAME, "Failed", "UnsupportedOperatorGroup").await;
    // shows OG-02
    wait_for_copies_in(&olm, &[]).await;
    olm.apply_group_for("og", &["a"]).await;
    wait_for_copy(&olm, "a", |_| true).await;
    // The existing copy reports the failure.
    olm.apply_group_for("og", &["a", "b"]).await;
    olm.cluster
        .wait_for(&CSV, Some("a"), NAME, |csv| {
            csv.str(&["status", "phase"]) == Some("Failed")
                && csv.str(&["status", "reason"]) == Some("Copied")
        })
        .await;
    wait_for_copies_in(&olm, &["a"]).await;
}

#[tokio::test]
async fn olm_config_disables_and_enables_copies_of_all_namespaces_csvs() {
    let olm = olm_with_operator(&[]).await;
    create_olm_config(&olm).await;
    // shows E062
    wait_for_copy(&olm, "a", |_| true).await;
    wait_for_config_condition(
        &olm,
        "False",
        "Copied CSVs are enabled and present across the cluster",
    )
    .await;
    set_copies_disabled(&olm, true.into()).await;
    // shows AT-CFG-01 CFG-02 CFG-04 E062
    wait_for_copies_in(&olm, &[]).await;
    let event = olm.wait_for_event("ClusterServiceVersion", NAME, "DisabledCopiedCSVs").await;
    let message = format!("CSV copying disabled for team/{NAME}");
    // shows AT-CFG-01 CFG-03 E062
    assert_eq!(event, ("Warning".to_owned(), message));
    // shows CFG-01 E062
    wait_for_config_condition(
        &olm,
        "True",
        "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode",
    )
    .await;
    create_namespace(&olm.cluster, "c", "").await;
    set_copies_disabled(&olm, Value::Null).await;
    // shows AT-CFG-01 CFG-02 E062
    wait_for_copy(&olm, "c", |_| true).await;
    wait_for_config_condition(
        &olm,
        "False",
        "Copied CSVs are enabled and present across the cluster",
    )
    .await;
    let fields = ObjectList::fields("reason=DisabledCopiedCSVs");
    let events = olm.cluster.cluster().list(&builtin::EVENT, None, &fields).await.unwrap();
    // shows AT-CFG-01 CFG-02
    assert!(events.items.is_empty());
}

#[tokio::test]
async fn protected_namespaces_keep_copied_csvs_when_copies_are_disabled() {
    let mut olm = olm_with_operator(&[]).await;
    olm.stop_controllers().await;
    olm.protected = ["b", "later"].map(str::to_owned).into();
    olm.start_controllers().await;
    create_olm_config(&olm).await;
    let first = wait_for_copy(&olm, "b", |_| true).await;
    set_copies_disabled(&olm, true.into()).await;
    wait_for_copies_in(&olm, &["b"]).await;
    wait_for_config_condition(
        &olm,
        "True",
        "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode",
    )
    .await;
    assert_eq!(wait_for_copy(&olm, "b", |_| true).await.uid(), first.uid());
    create_namespace(&olm.cluster, "later", "").await;
    wait_for_copies_in(&olm, &["b", "later"]).await;
    // A deleted copy is recreated; deleting the operator deletes the copies.
    let cluster = olm.cluster.cluster();
    cluster.delete(&CSV, Some("b"), NAME, &DeleteOptions::default()).await.unwrap();
    wait_for_copy(&olm, "b", move |copy| copy.uid() != first.uid()).await;
    let options = DeleteOptions::default();
    let subscriptions = SUBSCRIPTION;
    cluster.delete(&subscriptions, Some("team"), "anvil", &options).await.unwrap();
    cluster.delete(&CSV, Some("team"), NAME, &options).await.unwrap();
    wait_for_copies_in(&olm, &[]).await;
}

#[tokio::test]
async fn disabling_copies_leaves_copies_of_csvs_for_single_namespaces() {
    let olm = olm_with_operator(&["a"]).await;
    create_olm_config(&olm).await;
    let before = wait_for_copy(&olm, "a", |_| true).await;
    set_copies_disabled(&olm, true.into()).await;
    wait_for_config_condition(
        &olm,
        "True",
        "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode",
    )
    .await;
    // shows CFG-05
    assert_eq!(wait_for_copy(&olm, "a", |_| true).await, before);
}

#[tokio::test]
async fn copied_csvs_count_as_no_members_of_an_operator_group() {
    let olm = olm_with_operator(&["a"]).await;
    wait_for_copy(&olm, "a", |_| true).await;
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "own", "namespace": "a"}, "spec": {"targetNamespaces": ["b"]},
    });
    olm.cluster.apply(Object::from_value(group).unwrap()).await;
    let served = |group: &Object| !group.array(&["status", "namespaces"]).is_empty();
    let group = olm.cluster.wait_for(&OPERATOR_GROUP, Some("a"), "own", served).await;
    // shows CSV-85
    assert_eq!(group.annotation("olm.providedAPIs").unwrap_or_default(), "");
    olm.wait_for_subscription(|subscription| {
        true_condition(subscription, "ResolutionFailed").is_none()
    })
    .await;
}

#[tokio::test]
async fn restart_writes_nothing_and_reconciles_changes_made_meanwhile() {
    let mut olm = olm_with_operator(&[]).await;
    wait_for_copy(&olm, "a", |_| true).await;
    wait_for_copy(&olm, "b", |_| true).await;
    create_olm_config(&olm).await;
    wait_for_config_condition(
        &olm,
        "False",
        "Copied CSVs are enabled and present across the cluster",
    )
    .await;
    olm.wait_until_idle().await;
    let before = olm.resource_versions().await;
    olm.stop_controllers().await;
    olm.start_controllers().await;
    olm.wait_until_idle().await;
    assert_eq!(olm.resource_versions().await, before);
    olm.stop_controllers().await;
    create_namespace(&olm.cluster, "c", "").await;
    patch_csv(&olm, "a", json!({"spec": {"displayName": "edited"}})).await;
    let cluster = olm.cluster.cluster();
    cluster.delete(&CSV, Some("b"), NAME, &DeleteOptions::default()).await.unwrap();
    olm.start_controllers().await;
    wait_for_copy(&olm, "a", |copy| copy.str(&["spec", "displayName"]) == Some("Anvil")).await;
    wait_for_copy(&olm, "b", |_| true).await;
    wait_for_copy(&olm, "c", |_| true).await;
}

#[tokio::test]
async fn copied_csv_without_labels_is_deleted_after_its_original() {
    let mut olm = olm_with_operator(&["a"]).await;
    wait_for_copy(&olm, "a", |_| true).await;
    olm.stop_controllers().await;
    patch_csv(&olm, "a", json!({"metadata": {"labels": null, "annotations": null}})).await;
    let cluster = olm.cluster.cluster();
    let subscriptions = SUBSCRIPTION;
    let options = DeleteOptions::default();
    cluster.delete(&subscriptions, Some("team"), "anvil", &options).await.unwrap();
    patch_csv(&olm, "team", json!({"metadata": {"finalizers": null}})).await;
    cluster.delete(&CSV, Some("team"), NAME, &options).await.unwrap();
    olm.cluster.wait_gone(&CSV, Some("team"), NAME).await;
    olm.start_controllers().await;
    olm.cluster.wait_gone(&CSV, Some("a"), NAME).await;
}

// As in upstream, a copied CSV of the requested name satisfies a Subscription; when the copy is
// deleted, the CSV is installed.
#[tokio::test]
async fn copied_csv_satisfies_a_subscription_until_the_copy_is_deleted() {
    let olm = olm_with_operator(&[]).await;
    wait_for_copy(&olm, "a", |_| true).await;
    let yaml = "{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: og, namespace: a}, spec: {targetNamespaces: [a]}}";
    olm.cluster.apply_yaml(yaml).await;
    let yaml = format!(
        "{{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, metadata: {{name: anvil, namespace: a}},
          spec: {{name: anvil, channel: stable, source: cat, sourceNamespace: {CATALOG_NAMESPACE}}}}}"
    );
    olm.cluster.apply_yaml(&yaml).await;
    let latest = |subscription: &Object| {
        subscription.str(&["status", "state"]) == Some("AtLatestKnown")
            && subscription.str(&["status", "installedCSV"]) == Some(NAME)
    };
    olm.cluster.wait_for(&SUBSCRIPTION, Some("a"), "anvil", latest).await;
    olm.wait_until_idle().await;
    let plans = || async {
        let params = ObjectList::default();
        olm.cluster.cluster().list(&INSTALL_PLAN, Some("a"), &params).await.unwrap().items.len()
    };
    assert_eq!(plans().await, 1);
    let (cluster, options) = (olm.cluster.cluster(), DeleteOptions::default());
    cluster.ensure_deleted(&SUBSCRIPTION, Some("team"), "anvil", &options).await.unwrap();
    cluster.ensure_deleted(&CSV, Some("team"), NAME, &options).await.unwrap();
    let runs = |csv: &Object| {
        csv.label("olm.copiedFrom").is_none() && csv.str(&["status", "phase"]) == Some("Succeeded")
    };
    olm.cluster.wait_for(&CSV, Some("a"), NAME, runs).await;
    olm.cluster.wait_for(&SUBSCRIPTION, Some("a"), "anvil", latest).await;
}
