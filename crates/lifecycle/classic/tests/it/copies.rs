//! Copies of versions in the namespaces that their group targets.

use crate::world::{CATALOGS, World, condition, csv, namespace};
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION as CSV, INSTALL_PLAN, OLM_CONFIG, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::{DeleteOptions, ListParams, Patch, Selection};
use mainstay_object::{Object, known};
use serde_json::{Value, json};

const NAME: &str = "anvil.v1.0.0";

/// A world with the namespaces `a` and `b`, whose group targets some of them, and a running operator.
async fn running(targets: &[&str]) -> World {
    let world = World::start(&["1.0.0"]).await;
    for name in ["a", "b"] {
        namespace(&world.cluster, name, "").await;
    }
    world.group_for("og", targets).await;
    world.subscribe(json!({})).await;
    world.succeeded(NAME).await;
    world
}

/// The copy in a namespace, once it says what it should.
async fn copy(
    world: &World,
    place: &str,
    good: impl Fn(&Object) -> bool + Send + 'static,
) -> Object {
    world
        .cluster
        .wait_for(&CSV, Some(place), NAME, move |csv| {
            csv.label("olm.copiedFrom") == Some("team")
                && csv.str(&["status", "reason"]) == Some("Copied")
                && csv.str(&["status", "phase"]) == Some("Succeeded")
                && good(csv)
        })
        .await
}

async fn patch(world: &World, place: &str, body: Value) -> Object {
    world.cluster.cluster().patch(&CSV, Some(place), NAME, &Patch::Merge(body)).await.unwrap()
}

/// Waits until exactly these namespaces have copies.
async fn copies_are_in(world: &World, places: &'static [&'static str]) {
    world
        .cluster
        .wait_for_all(Selection::all(CSV).labels("olm.copiedFrom"), move |all| {
            let mut found: Vec<&str> = all.iter().map(|csv| csv.namespace()).collect();
            found.sort_unstable();
            found == places
        })
        .await;
}

async fn switch(world: &World, disabled: Value) {
    let name = "cluster";
    let features = json!({"spec": {"features": {"disableCopiedCSVs": disabled}}});
    let patch = Patch::Merge(features);
    world.cluster.cluster().patch(&OLM_CONFIG, None, name, &patch).await.unwrap();
}

/// Waits for the condition of the settings to say something.
async fn settings_say(world: &World, status: &'static str, message: &'static str) {
    world
        .cluster
        .wait_for(&OLM_CONFIG, None, "cluster", move |config| {
            config.array(&["status", "conditions"]).iter().any(|condition| {
                condition["type"] == "DisabledCopiedCSVs"
                    && condition["status"] == status
                    && condition["message"] == message
            })
        })
        .await;
}

async fn configured(world: &World) {
    world
        .cluster
        .apply_yaml(
            "{apiVersion: operators.coreos.com/v1, kind: OLMConfig, metadata: {name: cluster}}",
        )
        .await;
}

#[tokio::test]
async fn all_namespaces_csv_is_copied_to_every_namespace_until_it_is_deleted() {
    let world = running(&[]).await;
    let original = world.succeeded(NAME).await;
    // shows AT-OG-09 CSV-11 CSV-80 CSV-81
    let copy = copy(&world, "a", |_| true).await;
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
    copies_are_in(
        &world,
        &["a", "b", "default", "kube-node-lease", "kube-public", "kube-system", "olm"],
    )
    .await;
    let cluster = world.cluster.cluster();
    let subscriptions = SUBSCRIPTION;
    let options = DeleteOptions::default();
    cluster.delete(&subscriptions, Some("team"), "anvil", &options).await.unwrap();
    cluster.delete(&CSV, Some("team"), NAME, &options).await.unwrap();
    // shows AT-OG-09 CSV-83
    copies_are_in(&world, &[]).await;
}

#[tokio::test]
async fn copied_csv_has_the_originals_content_without_finalizers_and_owners() {
    let world = running(&["a"]).await;
    let config = "kubectl.kubernetes.io/last-applied-configuration";
    patch(&world, "team", json!({"metadata": {"annotations": {config: "{}", "note": "x"}}})).await;
    let copy = copy(&world, "a", |copy| copy.annotation("note").is_some()).await;
    let component = |csv: &Object| csv.label("operators.coreos.com/anvil.team").is_some();
    let original =
        world.cluster.wait_for(&CSV, Some("team"), NAME, move |csv| component(csv)).await;
    assert!(original.finalizers().next().is_some() && original.annotation(config).is_some());
    // shows CSV-84
    assert!(copy.finalizers().next().is_none() && copy.owner_references().is_empty());
    let labels: Vec<_> = copy.labels().collect();
    // shows CSV-84
    assert_eq!(labels, [("olm.copiedFrom", "team"), ("olm.managed", "true")]);
    let kept = |key: &&str| ![config, "olm.targetNamespaces"].contains(key);
    let wanted: Vec<&str> =
        original.annotations().map(|annotation| annotation.0).filter(kept).collect();
    assert_eq!(copy.annotations().map(|annotation| annotation.0).collect::<Vec<_>>(), wanted);
    assert_eq!(wanted.len() + 2, original.annotations().count());
    assert_eq!(copy.get(&["spec"]), original.get(&["spec"]));
}

#[tokio::test]
async fn changes_of_a_copied_csv_are_reverted() {
    let world = running(&["a"]).await;
    let original = world.succeeded(NAME).await;
    let first = copy(&world, "a", |_| true).await;
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
        let edited = patch(&world, "a", edit.clone()).await;
        assert!(!is_true(&edited), "{edit}");
        // shows E036
        copy(&world, "a", is_true.clone()).await;
    }
    let cluster = world.cluster.cluster();
    let status = Patch::Merge(json!({"status": {"phase": "Failed", "reason": "InstallSucceeded"}}));
    cluster.patch_status(&CSV, Some("a"), NAME, &status).await.unwrap();
    // shows E036
    let mended = copy(&world, "a", is_true.clone()).await;
    cluster.delete(&CSV, Some("a"), NAME, &DeleteOptions::default()).await.unwrap();
    copy(&world, "a", move |copy| copy.uid() != mended.uid() && is_true(copy)).await;
    // Nobody took it for an operator meanwhile.
    assert!(first.finalizers().next().is_none());
    let conditions = cluster
        .list(&mainstay_api::resources::OPERATOR_CONDITION, Some("a"), &ListParams::default())
        .await;
    assert!(conditions.unwrap().items.is_empty());
}

#[tokio::test]
async fn changes_of_a_csv_reach_its_copies() {
    let world = running(&["a"]).await;
    copy(&world, "a", |_| true).await;
    patch(&world, "team", json!({"metadata": {
        "labels": {"color": "red", "operators.coreos.com/other.x": ""}, "annotations": {"note": "hello"},
    }}))
    .await;
    let seen = copy(&world, "a", |copy| {
        copy.label("color") == Some("red") && copy.annotation("note") == Some("hello")
    })
    .await;
    assert_eq!(seen.label("operators.coreos.com/other.x"), None);
    patch(&world, "team", json!({"metadata": {"labels": {"color": null}}})).await;
    copy(&world, "a", |copy| copy.label("color").is_none()).await;
}

#[tokio::test]
async fn roles_in_a_target_namespace_are_owned_by_the_copied_csv_and_recreated_with_it() {
    let world = running(&["a"]).await;
    let first = copy(&world, "a", |_| true).await;
    let owned_by = |uid: String| {
        let selection = Selection::all(known::ROLE).namespace("a").labels("olm.copiedFrom=team");
        world.cluster.wait_for_all(selection, move |all| {
            all.len() == 1
                && all[0]
                    .owner_references()
                    .iter()
                    .any(|owner_reference| owner_reference.uid == uid)
        })
    };
    // shows OG-35
    owned_by(first.uid().to_owned()).await;
    let cluster = world.cluster.cluster();
    cluster.delete(&CSV, Some("a"), NAME, &DeleteOptions::default()).await.unwrap();
    let second = copy(&world, "a", move |copy| copy.uid() != first.uid()).await;
    owned_by(second.uid().to_owned()).await;
}

#[tokio::test]
async fn copied_csvs_follow_the_targets_of_the_operator_group() {
    let world = running(&["a"]).await;
    copies_are_in(&world, &["a"]).await;
    world.group_for("og", &["b"]).await;
    // shows CSV-83
    copies_are_in(&world, &["b"]).await;
    world.group_for("og", &["team"]).await;
    copies_are_in(&world, &[]).await;
    world.group_for("og", &["a"]).await;
    copies_are_in(&world, &["a"]).await;
    let cluster = world.cluster.cluster();
    cluster.delete(&OPERATOR_GROUP, Some("team"), "og", &DeleteOptions::default()).await.unwrap();
    copies_are_in(&world, &[]).await;
}

#[tokio::test]
async fn recreated_target_namespace_gets_its_copied_csv_again() {
    let world = running(&["a"]).await;
    copy(&world, "a", |_| true).await;
    let cluster = world.cluster.cluster();
    cluster.delete(&known::NAMESPACE, None, "a", &DeleteOptions::default()).await.unwrap();
    world.cluster.wait_gone(&known::NAMESPACE, None, "a").await;
    namespace(&world.cluster, "a", "").await;
    copy(&world, "a", |_| true).await;
}

#[tokio::test]
async fn csv_with_the_name_of_a_copy_is_kept_and_replaced_by_the_copy_when_deleted() {
    let world = World::start(&["1.0.0"]).await;
    namespace(&world.cluster, "a", "").await;
    let mut own = csv("1.0.0", None);
    own["metadata"]["namespace"] = "a".into();
    own["spec"]["customresourcedefinitions"] = json!({});
    world.cluster.apply(Object::from_value(own).unwrap()).await;
    world.group_for("og", &["a"]).await;
    world.subscribe(json!({})).await;
    world.succeeded(NAME).await;
    let cluster = world.cluster.cluster();
    let there = cluster.get(&CSV, Some("a"), NAME).await.unwrap();
    assert_eq!(there.label("olm.copiedFrom"), None);
    cluster.delete(&CSV, Some("a"), NAME, &DeleteOptions::default()).await.unwrap();
    copy(&world, "a", |_| true).await;
}

#[tokio::test]
async fn csv_that_is_no_member_of_its_operator_group_has_no_copies() {
    let world = World::start(&["1.0.0"]).await;
    for name in ["a", "b"] {
        namespace(&world.cluster, name, "").await;
    }
    // Several namespaces are what the version does not support.
    world.group_for("og", &["a", "b"]).await;
    world.subscribe(json!({})).await;
    world.version(NAME, "Failed", "UnsupportedOperatorGroup").await;
    // shows OG-02
    copies_are_in(&world, &[]).await;
    world.group_for("og", &["a"]).await;
    copy(&world, "a", |_| true).await;
    // What is there says what became of it.
    world.group_for("og", &["a", "b"]).await;
    world
        .cluster
        .wait_for(&CSV, Some("a"), NAME, |csv| {
            csv.str(&["status", "phase"]) == Some("Failed")
                && csv.str(&["status", "reason"]) == Some("Copied")
        })
        .await;
    copies_are_in(&world, &["a"]).await;
}

#[tokio::test]
async fn olm_config_disables_and_enables_copies_of_all_namespaces_csvs() {
    let world = running(&[]).await;
    configured(&world).await;
    // shows E062
    copy(&world, "a", |_| true).await;
    settings_say(&world, "False", "Copied CSVs are enabled and present across the cluster").await;
    switch(&world, true.into()).await;
    // shows AT-CFG-01 CFG-02 CFG-04 E062
    copies_are_in(&world, &[]).await;
    let event = world.event("ClusterServiceVersion", NAME, "DisabledCopiedCSVs").await;
    let message = format!("CSV copying disabled for team/{NAME}");
    // shows AT-CFG-01 CFG-03 E062
    assert_eq!(event, ("Warning".to_owned(), message));
    // shows CFG-01 E062
    settings_say(
        &world,
        "True",
        "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode",
    )
    .await;
    namespace(&world.cluster, "c", "").await;
    switch(&world, Value::Null).await;
    // shows AT-CFG-01 CFG-02 E062
    copy(&world, "c", |_| true).await;
    settings_say(&world, "False", "Copied CSVs are enabled and present across the cluster").await;
    let fields = ListParams::fields("reason=DisabledCopiedCSVs");
    let events = world.cluster.cluster().list(&known::EVENT, None, &fields).await.unwrap();
    // shows AT-CFG-01 CFG-02
    assert!(events.items.is_empty());
}

#[tokio::test]
async fn protected_namespaces_keep_copied_csvs_when_copies_are_disabled() {
    let mut world = running(&[]).await;
    world.pause().await;
    world.protected = ["b", "later"].map(str::to_owned).into();
    world.resume().await;
    configured(&world).await;
    let kept = copy(&world, "b", |_| true).await;
    switch(&world, true.into()).await;
    copies_are_in(&world, &["b"]).await;
    settings_say(
        &world,
        "True",
        "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode",
    )
    .await;
    assert_eq!(copy(&world, "b", |_| true).await.uid(), kept.uid());
    namespace(&world.cluster, "later", "").await;
    copies_are_in(&world, &["b", "later"]).await;
    // Who deletes one has it back, and an operator that goes takes it along.
    let cluster = world.cluster.cluster();
    cluster.delete(&CSV, Some("b"), NAME, &DeleteOptions::default()).await.unwrap();
    copy(&world, "b", move |copy| copy.uid() != kept.uid()).await;
    let options = DeleteOptions::default();
    let subscriptions = SUBSCRIPTION;
    cluster.delete(&subscriptions, Some("team"), "anvil", &options).await.unwrap();
    cluster.delete(&CSV, Some("team"), NAME, &options).await.unwrap();
    copies_are_in(&world, &[]).await;
}

#[tokio::test]
async fn disabling_copies_leaves_copies_of_csvs_for_single_namespaces() {
    let world = running(&["a"]).await;
    configured(&world).await;
    let before = copy(&world, "a", |_| true).await;
    switch(&world, true.into()).await;
    settings_say(
        &world,
        "True",
        "Copied CSVs are disabled and no unexpected copied CSVs were found for operators installed in AllNamespace mode",
    )
    .await;
    // shows CFG-05
    assert_eq!(copy(&world, "a", |_| true).await, before);
}

#[tokio::test]
async fn copied_csvs_count_as_no_members_of_an_operator_group() {
    let world = running(&["a"]).await;
    copy(&world, "a", |_| true).await;
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "own", "namespace": "a"}, "spec": {"targetNamespaces": ["b"]},
    });
    world.cluster.apply(Object::from_value(group).unwrap()).await;
    let served = |group: &Object| !group.array(&["status", "namespaces"]).is_empty();
    let group = world.cluster.wait_for(&OPERATOR_GROUP, Some("a"), "own", served).await;
    // shows CSV-85
    assert_eq!(group.annotation("olm.providedAPIs").unwrap_or_default(), "");
    world.subscription(|subscription| condition(subscription, "ResolutionFailed").is_none()).await;
}

#[tokio::test]
async fn restart_writes_nothing_and_reconciles_changes_made_meanwhile() {
    let mut world = running(&[]).await;
    copy(&world, "a", |_| true).await;
    copy(&world, "b", |_| true).await;
    configured(&world).await;
    settings_say(&world, "False", "Copied CSVs are enabled and present across the cluster").await;
    world.left_alone().await;
    let before = world.written().await;
    world.pause().await;
    world.resume().await;
    world.left_alone().await;
    assert_eq!(world.written().await, before);
    world.pause().await;
    namespace(&world.cluster, "c", "").await;
    patch(&world, "a", json!({"spec": {"displayName": "edited"}})).await;
    let cluster = world.cluster.cluster();
    cluster.delete(&CSV, Some("b"), NAME, &DeleteOptions::default()).await.unwrap();
    world.resume().await;
    copy(&world, "a", |copy| copy.str(&["spec", "displayName"]) == Some("Anvil")).await;
    copy(&world, "b", |_| true).await;
    copy(&world, "c", |_| true).await;
}

#[tokio::test]
async fn copied_csv_without_labels_is_deleted_after_its_original() {
    let mut world = running(&["a"]).await;
    copy(&world, "a", |_| true).await;
    world.pause().await;
    patch(&world, "a", json!({"metadata": {"labels": null, "annotations": null}})).await;
    let cluster = world.cluster.cluster();
    let subscriptions = SUBSCRIPTION;
    let options = DeleteOptions::default();
    cluster.delete(&subscriptions, Some("team"), "anvil", &options).await.unwrap();
    patch(&world, "team", json!({"metadata": {"finalizers": null}})).await;
    cluster.delete(&CSV, Some("team"), NAME, &options).await.unwrap();
    world.cluster.wait_gone(&CSV, Some("team"), NAME).await;
    world.resume().await;
    world.cluster.wait_gone(&CSV, Some("a"), NAME).await;
}

// A copy of what a Subscription asks for stands in its place, as OLM takes it, and is replaced when it goes.
#[tokio::test]
async fn copied_csv_satisfies_a_subscription_until_the_copy_is_deleted() {
    let world = running(&[]).await;
    copy(&world, "a", |_| true).await;
    let yaml = "{apiVersion: operators.coreos.com/v1, kind: OperatorGroup, metadata: {name: og, namespace: a}, spec: {targetNamespaces: [a]}}";
    world.cluster.apply_yaml(yaml).await;
    let yaml = format!(
        "{{apiVersion: operators.coreos.com/v1alpha1, kind: Subscription, metadata: {{name: anvil, namespace: a}},
          spec: {{name: anvil, channel: stable, source: cat, sourceNamespace: {CATALOGS}}}}}"
    );
    world.cluster.apply_yaml(&yaml).await;
    let latest = |subscription: &Object| {
        subscription.str(&["status", "state"]) == Some("AtLatestKnown")
            && subscription.str(&["status", "installedCSV"]) == Some(NAME)
    };
    world.cluster.wait_for(&SUBSCRIPTION, Some("a"), "anvil", latest).await;
    world.left_alone().await;
    let plans = || async {
        let params = ListParams::default();
        world.cluster.cluster().list(&INSTALL_PLAN, Some("a"), &params).await.unwrap().items.len()
    };
    assert_eq!(plans().await, 1);
    let (cluster, options) = (world.cluster.cluster(), DeleteOptions::default());
    cluster.ensure_deleted(&SUBSCRIPTION, Some("team"), "anvil", &options).await.unwrap();
    cluster.ensure_deleted(&CSV, Some("team"), NAME, &options).await.unwrap();
    let runs = |csv: &Object| {
        csv.label("olm.copiedFrom").is_none() && csv.str(&["status", "phase"]) == Some("Succeeded")
    };
    world.cluster.wait_for(&CSV, Some("a"), NAME, runs).await;
    world.cluster.wait_for(&SUBSCRIPTION, Some("a"), "anvil", latest).await;
}
