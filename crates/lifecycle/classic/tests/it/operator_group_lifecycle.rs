//! OperatorGroup lifecycle: creation, changes and deletion, observed through the API.

use crate::olm_cluster::{OlmCluster, create_namespace, true_condition};
use crate::user_csvs::{
    apply_group, crd_description, crd_for, create_account, create_csv, csv_in, delete_object,
    deployment, is_allowed, object, patch_csv, wait_for_deployment, wait_for_phase,
    wait_for_reason, with_owned_crd, with_permissions,
};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION as CSV, OPERATOR_GROUP, SUBSCRIPTION};
use mainstay_client::{Patch, Selection};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

/// A cluster with these namespaces and no OperatorGroup.
async fn olm_without_groups(namespaces: &[&str]) -> OlmCluster {
    let olm = OlmCluster::start(&[]).await;
    for namespace in namespaces {
        create_namespace(&olm.cluster, namespace, "").await;
    }
    olm
}

/// Patches the spec of an OperatorGroup.
async fn patch_group_spec(olm: &OlmCluster, namespace: &str, name: &str, spec: Value) {
    let patch = Patch::Merge(json!({"spec": spec}));
    let cluster = olm.cluster.cluster();
    cluster.patch(&OPERATOR_GROUP, Some(namespace), name, &patch).await.unwrap();
}

/// Waits until the status of an OperatorGroup lists exactly these namespaces in any order.
async fn wait_for_targets(
    olm: &OlmCluster,
    namespace: &str,
    name: &str,
    wanted: &[&str],
) -> Object {
    let mut wanted: Vec<Value> = wanted.iter().map(|namespace| (*namespace).into()).collect();
    wanted.sort_by_key(ToString::to_string);
    let predicate = move |group: &Object| {
        let mut found = group.array(&["status", "namespaces"]).to_vec();
        found.sort_by_key(ToString::to_string);
        found == wanted
    };
    olm.cluster.wait_for(&OPERATOR_GROUP, Some(namespace), name, predicate).await
}

/// Waits until an OperatorGroup provides exactly these APIs.
async fn wait_for_provided_apis(olm: &OlmCluster, namespace: &str, name: &str, apis: &'static str) {
    let predicate =
        move |group: &Object| group.annotation("olm.providedAPIs").unwrap_or_default() == apis;
    olm.cluster.wait_for(&OPERATOR_GROUP, Some(namespace), name, predicate).await;
}

/// Waits for the copy of a CSV.
async fn wait_for_copy(olm: &OlmCluster, namespace: &str, name: &str) -> Object {
    let predicate = |csv: &Object| csv.str(&["status", "reason"]) == Some("Copied");
    olm.cluster.wait_for(&CSV, Some(namespace), name, predicate).await
}

fn full_access_rule(plural: &str) -> Value {
    json!([{"apiGroups": ["cluster.com"], "resources": [plural], "verbs": ["*"]}])
}

/// Labels a user's Role and RoleBinding as owned by a CSV.
async fn label_roles_for_csv(olm: &OlmCluster, namespace: &str, name: &str, csv: &str) {
    let labels = json!({"metadata": {"labels": {
        "olm.owner": csv, "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": namespace,
    }}});
    for resource in [&builtin::ROLE, &builtin::ROLE_BINDING] {
        let patch = Patch::Merge(labels.clone());
        olm.cluster.cluster().patch(resource, Some(namespace), name, &patch).await.unwrap();
    }
}

#[tokio::test]
async fn operator_group_with_a_selector_has_copies_and_roles_in_selected_namespaces() {
    let olm = olm_without_groups(&[]).await;
    create_namespace(&olm.cluster, "home", "team: x").await;
    create_namespace(&olm.cluster, "away", "team: x").await;
    let group_manifest = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "home"},
        "spec": {"selector": {"matchLabels": {"team": "x"}}},
    });
    olm.cluster.apply(object(group_manifest)).await;
    // shows C29 OG-11 OG-14
    let group = wait_for_targets(&olm, "home", "og", &["away", "home"]).await;
    // shows OG-14
    assert!(group.str(&["status", "lastUpdated"]).is_some());
    olm.cluster.apply(crd_for("hats", &["v1"])).await;
    create_account(&olm, "home", "sa", &full_access_rule("hats")).await;
    let csv = with_owned_crd(csv_in("home", "v", &[deployment("d")]), "hats");
    create_csv(&olm, with_permissions(csv, "permissions", "sa", &full_access_rule("hats"))).await;
    label_roles_for_csv(&olm, "home", "sa", "v").await;
    let csv = wait_for_phase(&olm, "home", "v", "Succeeded").await;
    let membership = |csv: &Object| {
        ["olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces"]
            .map(|key| csv.annotation(key).map(str::to_owned))
    };
    let text = |text: &str| Some(text.to_owned());
    // shows E089 OG-01 OG-20
    assert_eq!(membership(&csv), [text("og"), text("home"), text("away,home")]);
    let copy = wait_for_copy(&olm, "away", "v").await;
    // shows E089 OG-20 CSV-82
    assert_eq!(membership(&copy), [text("og"), text("home"), None]);
    let pods = wait_for_deployment(&olm, "home", "d").await;
    let pods = pods.get(&["spec", "template", "metadata", "annotations"]).unwrap().clone();
    // shows E089 OG-01 CSV-71
    assert_eq!(pods["olm.targetNamespaces"], "away,home");
    let roles = Selection::all(builtin::ROLE).namespace("away").labels("olm.copiedFrom=home");
    // shows E089 OG-35
    olm.cluster.wait_for_all(roles, |all| !all.is_empty()).await;
    let bindings =
        Selection::all(builtin::ROLE_BINDING).namespace("away").labels("olm.copiedFrom=home");
    olm.cluster.wait_for_all(bindings, |all| !all.is_empty()).await;
    let sa = olm.cluster.cluster_as_account("home", "sa");
    // shows E089
    assert!(is_allowed(&sa, ("cluster.com", "hats"), "create", "away").await);
    assert!(!is_allowed(&sa, ("cluster.com", "hats"), "create", "olm").await);
    // The three aggregated ClusterRoles of the OperatorGroup.
    let named = Selection::all(builtin::CLUSTER_ROLE).labels("olm.owner=og");
    // shows E089 OG-30
    let collected = olm.cluster.wait_for_all(named, |all| {
        all.len() == 3 && all.iter().all(|role| !role.array(&["rules"]).is_empty())
    });
    for role in collected.await {
        let labels = (role.label("olm.owner.kind"), role.label("olm.owner.namespace"));
        assert_eq!(labels, (Some("OperatorGroup"), Some("home")));
        let rules = role.array(&["rules"]);
        let verbs = |group: &str| {
            rules
                .iter()
                .find(|rule| rule["apiGroups"] == json!([group]))
                .map(|rule| rule["verbs"].clone())
        };
        let (wanted, definition) = match role.name() {
            name if name.starts_with("olm.og.og.admin-") => (json!(["*"]), None),
            name if name.starts_with("olm.og.og.edit-") => {
                (json!(["create", "update", "patch", "delete"]), None)
            }
            _ => (json!(["get", "list", "watch"]), Some(json!(["get"]))),
        };
        // shows C29 E089
        assert_eq!(verbs("cluster.com"), Some(wanted), "{}", role.name());
        assert_eq!(verbs("apiextensions.k8s.io"), definition, "{}", role.name());
    }
    delete_object(&olm, &CSV, Some("home"), "v").await;
    olm.cluster.wait_gone(&CSV, Some("home"), "v").await;
    // shows E089
    olm.cluster.wait_gone(&CSV, Some("away"), "v").await;
}

#[tokio::test]
async fn namespace_admin_may_use_the_apis_that_its_operators_provide() {
    let olm = olm_without_groups(&["a"]).await;
    apply_group(&olm, "a", "og", &["a"]).await;
    create_csv(&olm, with_owned_crd(csv_in("a", "v", &[deployment("d")]), "hats")).await;
    olm.cluster.apply(crd_for("hats", &["v1"])).await;
    wait_for_phase(&olm, "a", "v", "Succeeded").await;
    let mut server = csv_in("a", "server", &[deployment("server")]);
    let api = |kind: &str, plural: &str| {
        json!({
            "group": "caps.example.com", "version": "v1", "kind": kind, "name": plural,
            "deploymentName": "server", "containerPort": 5443, "displayName": "x",
            "description": "x",
        })
    };
    server["spec"]["apiservicedefinitions"] =
        json!({"owned": [api("Fez", "fezs"), api("Fedora", "fedoras")]});
    create_csv(&olm, server).await;
    wait_for_phase(&olm, "a", "server", "Succeeded").await;
    for manifest in [
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "padmin", "namespace": "a"}}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "padmin", "namespace": "a"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "padmin", "namespace": "a"}],
        }),
    ] {
        olm.cluster.apply(object(manifest)).await;
    }
    let collected = |role: &Object| {
        ["cluster.com", "caps.example.com"].iter().all(|group| {
            role.array(&["rules"]).iter().any(|rule| rule["apiGroups"] == json!([group]))
        })
    };
    olm.cluster.wait_for(&builtin::CLUSTER_ROLE, None, "admin", collected).await;
    let padmin = olm.cluster.cluster_as_account("a", "padmin");
    for (group, resource) in
        [("cluster.com", "hats"), ("caps.example.com", "fezs"), ("caps.example.com", "fedoras")]
    {
        // shows E089
        assert!(is_allowed(&padmin, (group, resource), "create", "a").await, "{resource}");
        assert!(!is_allowed(&padmin, (group, resource), "create", "olm").await, "{resource}");
    }
}

#[tokio::test]
async fn csv_runs_with_each_install_mode_as_soon_as_it_supports_it() {
    let olm = olm_without_groups(&["a", "b"]).await;
    apply_group(&olm, "a", "og", &["a"]).await;
    let mut csv = csv_in("a", "v", &[deployment("d")]);
    csv["spec"]["customresourcedefinitions"]["required"] = json!([crd_description("hats", "v1")]);
    let names = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
    let modes = |supported: usize| -> Value {
        let modes = names.iter().enumerate();
        modes.map(|(at, mode)| json!({"type": mode, "supported": at < supported})).collect()
    };
    csv["spec"]["installModes"] = modes(0);
    create_csv(&olm, csv).await;
    olm.cluster.apply(crd_for("hats", &["v1"])).await;
    let steps: [&[&str]; 4] = [&["a"], &["b"], &["a", "b"], &[]];
    for (at_step, targets) in steps.iter().enumerate() {
        patch_group_spec(&olm, "a", "og", json!({"targetNamespaces": targets})).await;
        let refused = wait_for_reason(&olm, "a", "v", "Failed", "UnsupportedOperatorGroup").await;
        let message = refused.str(&["status", "message"]).unwrap();
        // shows CSV-20 CSV-21 E089
        assert!(message.starts_with(names[at_step]), "{message}");
        // The status is written once, so an update with the read resource version succeeds.
        let mut new = refused.clone();
        new.set(&["spec", "installModes"], modes(at_step + 1));
        olm.cluster.cluster().update(&CSV, &new).await.unwrap();
        // shows CSV-20 E089
        let csv = wait_for_phase(&olm, "a", "v", "Succeeded").await;
        let history = crate::webhooks::phase_history(&csv);
        let failed = history.iter().rposition(|phase| phase == "Failed/UnsupportedOperatorGroup");
        // shows AT-OG-07 C12 CSV-13 OG-61
        assert_eq!(history[failed.unwrap() + 1], "Pending/RequirementsUnknown");
    }
}

/// A catalog with the packages `a` (owns Anvil), `b` (owns Anvil and Saw) and `d` (owns Drill).
fn catalog_of_three_packages() -> String {
    use crate::dependencies::{ANVIL, Release, catalog};
    let release = |package, owns| Release { package, owns, ..ANVIL };
    let all = [release("a", "Anvil"), release("b", "Saw"), release("d", "Drill")];
    let edit = |name: &str, csv: &mut Value| {
        for mode in csv["spec"]["installModes"].as_array_mut().unwrap() {
            mode["supported"] = true.into();
        }
        if name == "b.v1.0.0" {
            let both = &mut csv["spec"]["customresourcedefinitions"]["owned"];
            both.as_array_mut().unwrap().push(json!({
                "name": "anvils.forge.example.com", "kind": "Anvil", "version": "v1",
            }));
        }
    };
    catalog(&all, &edit, &[])
}

async fn subscribe_in(olm: &OlmCluster, namespace: &str, package: &str) {
    let subscription = object(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": package, "namespace": namespace},
        "spec": {
            "name": package, "channel": "stable", "source": "cat", "sourceNamespace": "olm",
            "startingCSV": format!("{package}.v1.0.0"),
        },
    }));
    olm.cluster.apply(subscription).await;
}

const CONFLICT: &str = "InterOperatorGroupOwnerConflict";

#[tokio::test]
async fn csv_fails_while_an_intersecting_operator_group_provides_its_api() {
    let olm = olm_without_groups(&["a", "b", "c", "d", "e"]).await;
    olm.publish_text(&catalog_of_three_packages());
    apply_group(&olm, "a", "og", &[]).await;
    apply_group(&olm, "b", "og", &["c"]).await;
    apply_group(&olm, "d", "og", &["d", "e"]).await;
    subscribe_in(&olm, "d", "d").await;
    wait_for_phase(&olm, "d", "d.v1.0.0", "Succeeded").await;
    wait_for_copy(&olm, "e", "d.v1.0.0").await;
    // shows OG-25
    wait_for_provided_apis(&olm, "d", "og", "Drill.v1.forge.example.com").await;
    subscribe_in(&olm, "a", "d").await;
    // shows CSV-12 E089 OG-40
    wait_for_reason(&olm, "a", "d.v1.0.0", "Failed", CONFLICT).await;
    wait_for_provided_apis(&olm, "a", "og", "").await;
    wait_for_phase(&olm, "d", "d.v1.0.0", "Succeeded").await;
    subscribe_in(&olm, "a", "a").await;
    wait_for_phase(&olm, "a", "a.v1.0.0", "Succeeded").await;
    wait_for_provided_apis(&olm, "a", "og", "Anvil.v1.forge.example.com").await;
    wait_for_copy(&olm, "d", "a.v1.0.0").await;
    // Another OperatorGroup of the namespace does not count the copy as its member.
    let bump = Patch::Merge(json!({"metadata": {"annotations": {"bump": "update"}}}));
    olm.cluster.cluster().patch(&OPERATOR_GROUP, Some("d"), "og", &bump).await.unwrap();
    let copy = wait_for_copy(&olm, "d", "a.v1.0.0").await;
    assert_eq!(copy.annotation("olm.operatorGroup"), Some("og"));
    assert_eq!(copy.annotation("olm.operatorNamespace"), Some("a"));
    assert_eq!(copy.label("olm.copiedFrom"), Some("a"));
    wait_for_copy(&olm, "c", "a.v1.0.0").await;
    subscribe_in(&olm, "b", "b").await;
    wait_for_reason(&olm, "b", "b.v1.0.0", "Failed", CONFLICT).await;
    wait_for_provided_apis(&olm, "b", "og", "").await;
    // Its Subscription would reinstall the CSV, which then competes for the API.
    delete_object(&olm, &SUBSCRIPTION, Some("a"), "a").await;
    delete_object(&olm, &CSV, Some("a"), "a.v1.0.0").await;
    // shows E089 OG-42 OG-50
    wait_for_phase(&olm, "b", "b.v1.0.0", "Succeeded").await;
    // shows E089 OG-50
    wait_for_provided_apis(&olm, "a", "og", "").await;
    wait_for_copy(&olm, "c", "b.v1.0.0").await;
    wait_for_provided_apis(&olm, "b", "og", "Anvil.v1.forge.example.com,Saw.v1.forge.example.com")
        .await;
}

#[tokio::test]
async fn static_operator_group_keeps_its_provided_apis_and_blocks_other_providers() {
    const HATS: &str = "hats.v1.cluster.com";
    let olm = olm_without_groups(&["a", "b", "c", "d"]).await;
    for plural in ["hats", "caps"] {
        olm.cluster.apply(crd_for(plural, &["v1"])).await;
    }
    let fixed = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "a", "annotations": {"olm.providedAPIs": HATS}},
        "spec": {"targetNamespaces": ["d"], "staticProvidedAPIs": true},
    });
    olm.cluster.apply(object(fixed)).await;
    apply_group(&olm, "b", "og", &[]).await;
    apply_group(&olm, "c", "og", &["c"]).await;
    wait_for_targets(&olm, "a", "og", &["d"]).await;
    let owner = |namespace: &str, name: &str, plural: &str| {
        with_owned_crd(csv_in(namespace, name, &[deployment(name)]), plural)
    };
    create_csv(&olm, owner("b", "hatter", "hats")).await;
    // shows C29 E089 OG-38
    wait_for_reason(&olm, "b", "hatter", "Failed", CONFLICT).await;
    wait_for_provided_apis(&olm, "b", "og", "").await;
    // shows C29 E089 OG-38
    wait_for_provided_apis(&olm, "a", "og", HATS).await;
    create_csv(&olm, owner("c", "hatter", "hats")).await;
    wait_for_phase(&olm, "c", "hatter", "Succeeded").await;
    wait_for_provided_apis(&olm, "c", "og", HATS).await;
    create_csv(&olm, owner("b", "capper", "caps")).await;
    wait_for_phase(&olm, "b", "capper", "Succeeded").await;
    for namespace in ["a", "c", "d"] {
        wait_for_copy(&olm, namespace, "capper").await;
    }
    wait_for_provided_apis(&olm, "b", "og", "caps.v1.cluster.com").await;
    patch_group_spec(&olm, "c", "og", json!({"targetNamespaces": ["c", "d"]})).await;
    wait_for_reason(&olm, "c", "hatter", "Failed", CONFLICT).await;
    wait_for_provided_apis(&olm, "c", "og", "").await;
    wait_for_provided_apis(&olm, "a", "og", HATS).await;
    // Its own members cannot change the provided APIs, either.
    create_csv(&olm, owner("a", "own", "caps")).await;
    wait_for_reason(&olm, "a", "own", "Failed", CONFLICT).await;
    olm.wait_until_idle().await;
    // shows AT-OG-06 E089
    wait_for_provided_apis(&olm, "a", "og", HATS).await;
}

#[tokio::test]
async fn global_operator_group_lifts_permissions_and_deletes_copies_when_it_shrinks() {
    let olm = olm_without_groups(&["home"]).await;
    apply_group(&olm, "home", "og", &[]).await;
    // shows OG-13 OG-14
    wait_for_targets(&olm, "home", "og", &[""]).await;
    olm.cluster.apply(crd_for("hats", &["v1"])).await;
    create_account(&olm, "home", "sa", &full_access_rule("hats")).await;
    let csv = with_owned_crd(csv_in("home", "v", &[deployment("d")]), "hats");
    create_csv(&olm, with_permissions(csv, "permissions", "sa", &full_access_rule("hats"))).await;
    // The labels are added after the CSV exists, so the controller reconciles again.
    wait_for_phase(&olm, "home", "v", "Succeeded").await;
    label_roles_for_csv(&olm, "home", "sa", "v").await;
    // The permission of the CSV is lifted under its own name, not the labelled Role.
    let own = Selection::all(builtin::CLUSTER_ROLE).labels("olm.owner=v,olm.owner.namespace=home");
    let lifted = olm.cluster.wait_for_all(own, |all| all.len() == 1).await.remove(0);
    assert!(lifted.name().starts_with("v-sa-"), "{}", lifted.name());
    let mut wanted = full_access_rule("hats").as_array().unwrap().clone();
    wanted.push(json!({
        "apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"],
    }));
    // shows C29 E089 OG-34
    assert_eq!(lifted.array(&["rules"]), wanted);
    let bound =
        olm.cluster.wait_for(&builtin::CLUSTER_ROLE_BINDING, None, lifted.name(), |_| true).await;
    assert_eq!(
        bound.get(&["roleRef"]),
        Some(&json!({
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": lifted.name(),
        }))
    );
    // shows OG-34
    assert_eq!(
        bound.get(&["subjects"]),
        Some(&json!([{"kind": "ServiceAccount", "name": "sa", "namespace": "home"}]))
    );
    let sa = olm.cluster.cluster_as_account("home", "sa");
    assert!(is_allowed(&sa, ("", "namespaces"), "list", "").await);
    create_namespace(&olm.cluster, "late", "").await;
    // shows E089
    let copy = wait_for_copy(&olm, "late", "v").await;
    assert_eq!(copy.annotation("olm.operatorNamespace"), Some("home"));
    assert_eq!(copy.annotation("olm.targetNamespaces"), None);
    // A user changes the copy to name its own namespace.
    patch_csv(
        &olm,
        "late",
        "v",
        json!({"metadata": {"annotations": {"olm.operatorNamespace": "late"}}}),
    )
    .await;
    let mended = |csv: &Object| csv.annotation("olm.operatorNamespace") == Some("home");
    // shows E089
    olm.cluster.wait_for(&CSV, Some("late"), "v", mended).await;
    patch_group_spec(&olm, "home", "og", json!({"targetNamespaces": ["home"]})).await;
    // shows C29 E089
    olm.cluster.wait_gone(&CSV, Some("late"), "v").await;
    wait_for_phase(&olm, "home", "v", "Succeeded").await;
}

/// A cluster whose OperatorGroup has a ServiceAccount without permissions, and a CSV that fails for
/// that.
async fn olm_with_unpermitted_account() -> OlmCluster {
    let olm = olm_without_groups(&["a"]).await;
    olm.cluster.apply(crd_for("hats", &["v1"])).await;
    let group_manifest = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "a"},
        "spec": {"targetNamespaces": ["a"], "serviceAccountName": "sa"},
    });
    olm.cluster.apply(object(group_manifest)).await;
    let reports_missing_account = |group: &Object| {
        true_condition(group, "OperatorGroupServiceAccount")
            == Some(("ServiceAccountNotFound".into(), "ServiceAccount sa not found".into()))
    };
    olm.cluster.wait_for(&OPERATOR_GROUP, Some("a"), "og", reports_missing_account).await;
    create_csv(&olm, with_owned_crd(csv_in("a", "v", &[deployment("d")]), "hats")).await;
    let sa = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "a"},
    });
    olm.cluster.apply(object(sa)).await;
    wait_for_reason(&olm, "a", "v", "Failed", "InstallComponentFailedNoRetry").await;
    let og = olm.cluster.cluster().get(&OPERATOR_GROUP, Some("a"), "og").await.unwrap();
    assert!(true_condition(&og, "OperatorGroupServiceAccount").is_none());
    assert_eq!(og.str(&["status", "serviceAccountRef", "name"]), Some("sa"));
    olm
}

#[tokio::test]
async fn csv_is_installed_when_missing_permissions_are_granted() {
    let olm = olm_with_unpermitted_account().await;
    let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    create_account(&olm, "a", "sa", &all).await;
    // shows C30 E089
    wait_for_phase(&olm, "a", "v", "Succeeded").await;
}

#[tokio::test]
async fn operator_group_without_its_service_account_installs_with_cluster_rights() {
    let olm = olm_with_unpermitted_account().await;
    patch_group_spec(&olm, "a", "og", json!({"serviceAccountName": null})).await;
    // shows C30 E089
    wait_for_phase(&olm, "a", "v", "Succeeded").await;
    let og = olm.cluster.cluster().get(&OPERATOR_GROUP, Some("a"), "og").await.unwrap();
    assert_eq!(og.get(&["status", "serviceAccountRef"]), None);
}

/// Waits until exactly these namespaces have the label of an OperatorGroup.
async fn wait_for_labelled_namespaces(olm: &OlmCluster, group: &Object, wanted: &[&str]) {
    let label = format!("olm.operatorgroup.uid/{}", group.uid());
    let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
    let predicate = move |all: &[&Object]| all.iter().map(|role| role.name()).eq(wanted.iter());
    olm.cluster.wait_for_all(Selection::all(builtin::NAMESPACE).labels(label), predicate).await;
}

#[tokio::test]
async fn namespaces_have_the_labels_of_the_operator_groups_that_target_them_only() {
    let olm = olm_without_groups(&["a", "b", "c"]).await;
    let og = apply_group(&olm, "a", "og", &[]).await;
    wait_for_targets(&olm, "a", "og", &[""]).await;
    wait_for_labelled_namespaces(&olm, &og, &[]).await;
    let steps: [&[&str]; 5] = [&["a"], &["a", "c"], &["a", "b", "c"], &["a", "c"], &[]];
    for step in steps {
        patch_group_spec(&olm, "a", "og", json!({"targetNamespaces": step})).await;
        // shows C28 E089 OG-10
        wait_for_labelled_namespaces(&olm, &og, step).await;
    }
    // Namespaces are selected by their labels, as long as they have them.
    let selector = json!({"targetNamespaces": null, "selector": {"matchLabels": {"foo": "bar"}}});
    patch_group_spec(&olm, "a", "og", selector).await;
    let label = |value: Value| Patch::Merge(json!({"metadata": {"labels": {"foo": value}}}));
    let cluster = olm.cluster.cluster();
    for namespace in ["a", "b", "c"] {
        cluster.patch(&builtin::NAMESPACE, None, namespace, &label("bar".into())).await.unwrap();
    }
    // shows C28 E089
    wait_for_labelled_namespaces(&olm, &og, &["a", "b", "c"]).await;
    cluster.patch(&builtin::NAMESPACE, None, "b", &label(Value::Null)).await.unwrap();
    wait_for_labelled_namespaces(&olm, &og, &["a", "c"]).await;
    // A user replaces a Namespace without the label.
    let mut bare = cluster.get(&builtin::NAMESPACE, None, "c").await.unwrap();
    bare.set(&["metadata", "labels"], json!({"foo": "bar"}));
    cluster.update(&builtin::NAMESPACE, &bare).await.unwrap();
    wait_for_labelled_namespaces(&olm, &og, &["a", "c"]).await;
    // Each OperatorGroup has its own label, which is removed with it.
    let second = apply_group(&olm, "b", "og", &["a", "b", "c"]).await;
    wait_for_labelled_namespaces(&olm, &second, &["a", "b", "c"]).await;
    wait_for_labelled_namespaces(&olm, &og, &["a", "c"]).await;
    delete_object(&olm, &OPERATOR_GROUP, Some("b"), "og").await;
    // shows C28 E089
    wait_for_labelled_namespaces(&olm, &second, &[]).await;
    wait_for_labelled_namespaces(&olm, &og, &["a", "c"]).await;
    // Namespaces that are created later are labelled, too.
    create_namespace(&olm.cluster, "d", "foo: bar").await;
    // shows C28 E089
    wait_for_labelled_namespaces(&olm, &og, &["a", "c", "d"]).await;
    let last = cluster.get(&builtin::NAMESPACE, None, "d").await.unwrap();
    let ours: Vec<_> = last.labels().filter(|label| label.0.starts_with("olm.")).collect();
    assert_eq!(ours, [(format!("olm.operatorgroup.uid/{}", og.uid()).as_str(), "")]);
}

#[tokio::test]
async fn operator_group_status_and_roles_follow_its_selection() {
    let olm = olm_without_groups(&["a"]).await;
    // An OperatorGroup whose selector matches nothing has no targets, and its CSV reports that.
    let none = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "a", "annotations": {
            "olm.providedAPIs": "Gone.v1.cluster.com,hats.v1.cluster.com",
        }},
        "spec": {"selector": {"matchLabels": {"nobody": "has-it"}}},
    });
    olm.cluster.apply(object(none)).await;
    olm.cluster.apply(crd_for("hats", &["v1"])).await;
    create_csv(&olm, with_owned_crd(csv_in("a", "v", &[deployment("d")]), "hats")).await;
    // shows C29
    wait_for_reason(&olm, "a", "v", "Failed", "NoTargetNamespaces").await;
    patch_group_spec(&olm, "a", "og", json!({"selector": null, "targetNamespaces": ["a"]})).await;
    wait_for_phase(&olm, "a", "v", "Succeeded").await;
    let og = wait_for_targets(&olm, "a", "og", &["a"]).await;
    // shows C30
    assert!(og.array(&["status", "conditions"]).is_empty());
    // APIs that no CSV provides are removed from the annotation.
    // shows C29 OG-50
    wait_for_provided_apis(&olm, "a", "og", "hats.v1.cluster.com").await;
    let roles = || Selection::all(builtin::CLUSTER_ROLE).labels("olm.owner=og");
    let cluster_roles = olm.cluster.wait_for_all(roles(), |all| all.len() == 3).await;
    olm.wait_until_idle().await;
    // Correct ClusterRoles are not written; changed labels and rules are restored.
    let cluster = olm.cluster.cluster();
    for role in &cluster_roles {
        let now = cluster.get(&builtin::CLUSTER_ROLE, None, role.name()).await.unwrap();
        let broken = Patch::Merge(json!({
            "metadata": {"labels": {"olm.owner.namespace": null}}, "aggregationRule": null,
        }));
        cluster.patch(&builtin::CLUSTER_ROLE, None, role.name(), &broken).await.unwrap();
        let (wanted, labels) = (now.get(&["aggregationRule"]).cloned(), "a");
        assert!(wanted.is_some());
        let predicate = move |role: &Object| {
            role.get(&["aggregationRule"]) == wanted.as_ref()
                && role.label("olm.owner.namespace") == Some(labels)
        };
        // shows C29
        olm.cluster.wait_for(&builtin::CLUSTER_ROLE, None, role.name(), predicate).await;
    }
    delete_object(&olm, &CSV, Some("a"), "v").await;
    wait_for_provided_apis(&olm, "a", "og", "").await;
    delete_object(&olm, &OPERATOR_GROUP, Some("a"), "og").await;
    // shows C29
    olm.cluster.wait_for_all(roles(), |all| all.is_empty()).await;
}
