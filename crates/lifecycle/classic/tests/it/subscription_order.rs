//! Order of Subscriptions: the end state is independent of the order and the time of their
//! creation.

use crate::dependencies::{
    ANVIL, CHISEL, NEEDY, Release, catalog, olm_with_releases, subscribe, wait_until_latest,
    wait_until_unsatisfiable,
};
use crate::olm_cluster::{OlmCluster, true_condition};
use http::Method;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR, SUBSCRIPTION};
use mainstay_client::{ObjectList, Selection};
use mainstay_object::{Object, Resource, builtin};
use mainstay_testdata::is_deep;
use mainstay_testkit::{InjectedFault, ObservedRequest};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What a test waits for between two Subscriptions: nothing, the InstallPlan of the first, or its
/// installed CSV.
#[derive(Clone, Copy, Debug)]
enum Gap {
    None,
    Planned,
    Served,
}

const GAPS: [Gap; 3] = [Gap::None, Gap::Planned, Gap::Served];

/// The objects of the cluster without fields that depend on the time.
async fn cluster_outcome(olm: &OlmCluster) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    let kinds: [&Resource; 6] = [
        &SUBSCRIPTION,
        &CLUSTER_SERVICE_VERSION,
        &OPERATOR,
        &builtin::DEPLOYMENT,
        &builtin::SERVICE_ACCOUNT,
        &builtin::CUSTOM_RESOURCE_DEFINITION,
    ];
    for kind in kinds {
        let found = olm.cluster.cluster().list(kind, None, &ObjectList::default()).await.unwrap();
        for object in found.items {
            let status = |path: &[&str]| object.get(path).cloned().unwrap_or_default();
            let conditions: Vec<Value> = object
                .array(&["status", "conditions"])
                .iter()
                .filter(|condition| condition["type"].is_string() && kind.kind == "Subscription")
                .map(|condition| {
                    json!([
                        condition["type"],
                        condition["status"],
                        condition["reason"],
                        condition["message"]
                    ])
                })
                .collect();
            let state = json!({
                "spec": if kind.kind == "Subscription" { status(&["spec"]) } else { Value::Null },
                "labels": status(&["metadata", "labels"]),
                "state": status(&["status", "state"]),
                "installed": status(&["status", "installedCSV"]),
                "current": status(&["status", "currentCSV"]),
                "phase": status(&["status", "phase"]),
                "conditions": conditions,
            });
            all.insert(format!("{} {}", kind.kind, object.key()), state);
        }
    }
    all
}

/// Creates Subscriptions one after the other; returns the end state.
async fn subscribe_in_order(
    releases: &[Release<'_>],
    subscriptions: &[(&str, Value)],
    gap: Gap,
    served: &[(&str, &'static str)],
) -> BTreeMap<String, Value> {
    let mut olm = olm_with_releases(releases).await;
    if matches!(gap, Gap::None) {
        olm.stop_controllers().await;
    }
    for (at, (name, spec)) in subscriptions.iter().enumerate() {
        subscribe(&olm, name, spec.clone()).await;
        if at + 1 == subscriptions.len() {
            break;
        }
        match gap {
            Gap::None => {}
            Gap::Planned => {
                let planned = |subscription: &Object| {
                    subscription.get(&["status", "installPlanRef"]).is_some()
                };
                olm.cluster.wait_for(&SUBSCRIPTION, Some("team"), name, planned).await;
            }
            Gap::Served => {
                if let Some((_, version)) = served.iter().find(|version| version.0 == *name) {
                    wait_until_latest(&olm, name, version).await;
                }
                olm.wait_until_idle().await;
            }
        }
    }
    if matches!(gap, Gap::None) {
        olm.start_controllers().await;
    }
    let approval = |spec: &Value| spec["installPlanApproval"].as_str().map(str::to_owned);
    for (name, _) in subscriptions.iter().filter(|(_, spec)| approval(spec).is_some()) {
        let waits = |subscription: &Object| {
            true_condition(subscription, "InstallPlanPending")
                .is_some_and(|(reason, _)| reason == "RequiresApproval")
        };
        olm.cluster.wait_for(&SUBSCRIPTION, Some("team"), name, waits).await;
    }
    for (name, version) in served {
        let subscription = wait_until_latest(&olm, name, version).await;
        assert_eq!(true_condition(&subscription, "ResolutionFailed"), None, "{name} {gap:?}");
        olm.wait_until_succeeded(version).await;
    }
    let (count, selection) = (subscriptions.len(), Selection::all(SUBSCRIPTION));
    olm.cluster.wait_for_all(selection, move |all| all.len() == count).await;
    olm.wait_until_idle().await;
    cluster_outcome(&olm).await
}

/// Asserts that the end state is the same for each order and gap; without `MAINSTAY_DEEP`, for each gap in one order.
async fn assert_order_is_irrelevant(
    releases: &[Release<'_>],
    subscriptions: &[(&str, Value)],
    served: &[(&str, &'static str)],
) -> BTreeMap<String, Value> {
    let first = subscribe_in_order(releases, subscriptions, Gap::None, served).await;
    let backwards: Vec<(&str, Value)> = subscriptions.iter().rev().cloned().collect();
    for (number, gap) in GAPS.into_iter().enumerate() {
        let orders = [&*backwards, subscriptions];
        let chosen = if is_deep() { &orders[..] } else { &orders[number % 2..][..1] };
        for &order in chosen {
            let other = subscribe_in_order(releases, order, gap, served).await;
            for (object, says) in &first {
                assert_eq!(other.get(object), Some(says), "{object} {gap:?} {order:?}");
            }
            assert_eq!(other.len(), first.len(), "{:?} {gap:?} {order:?}", other.keys());
        }
    }
    first
}

#[tokio::test]
async fn subscriptions_to_a_package_and_its_dependency_end_the_same_in_any_order() {
    let subscriptions = [
        ("anvil", json!({"name": "anvil", "channel": "stable"})),
        ("chisel", json!({"name": "chisel", "channel": "stable"})),
    ];
    let served = [("anvil", "anvil.v1.0.0"), ("chisel", "chisel.v1.0.0")];
    let outcome = assert_order_is_irrelevant(&[NEEDY, CHISEL], &subscriptions, &served).await;
    let generated = outcome.keys().filter(|key| key.contains("chisel-stable-cat-olm"));
    assert_eq!(generated.count(), 0, "no Subscription is generated for what a person asked for");
}

#[tokio::test]
async fn user_subscription_upgrades_in_its_own_channel_from_a_generated_ones_csv() {
    let newer = Release { channel: "beta", version: "2.0.0", replaces: Some("1.0.0"), ..CHISEL };
    let entry = Release { channel: "beta", ..CHISEL };
    let releases = [NEEDY, CHISEL, entry, newer];
    let subscriptions = [
        ("anvil", json!({"name": "anvil", "channel": "stable"})),
        ("mine", json!({"name": "chisel", "channel": "beta"})),
    ];
    let served = [("anvil", "anvil.v1.0.0"), ("mine", "chisel.v2.0.0")];
    assert_order_is_irrelevant(&releases, &subscriptions, &served).await;
}

#[tokio::test]
async fn equal_subscriptions_of_one_package_share_its_csv_in_any_order() {
    let spec = json!({"name": "anvil", "channel": "stable"});
    let subscriptions = [("first", spec.clone()), ("second", spec)];
    let served = [("first", "anvil.v1.0.0"), ("second", "anvil.v1.0.0")];
    assert_order_is_irrelevant(&[ANVIL], &subscriptions, &served).await;
}

#[tokio::test]
async fn only_the_package_of_a_manual_subscription_waits_for_approval_in_any_order() {
    let saw = Release { package: "saw", owns: "Saw", ..ANVIL };
    let subscriptions = [
        ("anvil", json!({"name": "anvil", "installPlanApproval": "Manual"})),
        ("saw", json!({"name": "saw"})),
    ];
    let outcome =
        assert_order_is_irrelevant(&[ANVIL, saw], &subscriptions, &[("saw", "saw.v1.0.0")]).await;
    assert!(!outcome.contains_key("ClusterServiceVersion team/anvil.v1.0.0"), "{outcome:?}");
}

#[tokio::test]
async fn subscriptions_to_two_channels_of_one_package_both_report_the_conflict() {
    for late in [false, true] {
        let newer = Release { channel: "beta", version: "2.0.0", ..ANVIL };
        let mut olm = olm_with_releases(&[ANVIL, newer]).await;
        if !late {
            olm.stop_controllers().await;
        }
        subscribe(&olm, "first", json!({"name": "anvil", "channel": "stable"})).await;
        if late {
            wait_until_latest(&olm, "first", "anvil.v1.0.0").await;
        }
        subscribe(&olm, "second", json!({"name": "anvil", "channel": "beta"})).await;
        if !late {
            olm.start_controllers().await;
        }
        for name in ["first", "second"] {
            let message = wait_until_unsatisfiable(&olm, name).await;
            assert!(message.contains("anvil"), "{message}");
        }
        let params = ObjectList::default();
        let plans = olm.cluster.cluster().list(&INSTALL_PLAN, None, &params).await.unwrap();
        assert_eq!(plans.items.len(), usize::from(late));
        olm.wait_until_idle().await;
    }
}

#[tokio::test]
async fn generated_subscription_stays_while_no_user_subscription_replaces_it() {
    let olm = olm_with_releases(&[NEEDY, CHISEL]).await;
    subscribe(&olm, "anvil", json!({"name": "anvil"})).await;
    wait_until_latest(&olm, "chisel-stable-cat-olm", "chisel.v1.0.0").await;
    // A Subscription to another package changes nothing.
    let saw = Release { package: "saw", owns: "Saw", ..ANVIL };
    olm.publish_text(&catalog(&[NEEDY, CHISEL, saw], &|_, _| (), &[]));
    subscribe(&olm, "saw", json!({"name": "saw"})).await;
    wait_until_latest(&olm, "saw", "saw.v1.0.0").await;
    wait_until_latest(&olm, "chisel-stable-cat-olm", "chisel.v1.0.0").await;
}

#[tokio::test]
async fn install_plan_is_assigned_to_all_its_subscriptions_after_conflicts() {
    /// How many writes conflict: meanwhile the InstallPlan creates its CSVs.
    const CONFLICTS: usize = 6;
    let mut olm =
        olm_with_releases(&[ANVIL, Release { package: "saw", owns: "Saw", ..ANVIL }]).await;
    olm.stop_controllers().await;
    let (is_planned, conflicts) = (AtomicBool::new(false), AtomicUsize::new(0));
    let cluster = olm.cluster.with_faults(move |request: &ObservedRequest| {
        if request.method == Method::POST && request.target.contains("/installplans") {
            is_planned.store(true, Ordering::SeqCst);
        }
        let assigns = request.is_write() && request.target.contains("/subscriptions/saw/status");
        if assigns
            && is_planned.load(Ordering::SeqCst)
            && conflicts.fetch_add(1, Ordering::SeqCst) < CONFLICTS
        {
            return InjectedFault::Refused(409);
        }
        InjectedFault::Pass
    });
    for name in ["anvil", "saw"] {
        subscribe(&olm, name, json!({"name": name})).await;
    }
    olm.classic = Some(olm.spawn_controllers(&cluster));
    let anvil = wait_until_latest(&olm, "anvil", "anvil.v1.0.0").await;
    let saw = wait_until_latest(&olm, "saw", "saw.v1.0.0").await;
    let plan = |subscription: &Object| {
        subscription.str(&["status", "installPlanRef", "name"]).map(str::to_owned)
    };
    assert_eq!(plan(&saw), plan(&anvil));
}
