//! Requirements of CSVs: their checks and `status.requirementStatus`.

use crate::olm_cluster::{OlmCluster, create_namespace};
use crate::user_csvs::{
    crd_description, crd_for, create_account, create_csv, csv_in, delete_object, deployment,
    object, olm_with_namespaces, patch_csv, wait_for_deployment, wait_for_phase, wait_for_reason,
    with_owned_crd, with_permissions,
};
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_client::{DeleteOptions, ObjectList, Patch, Selection};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};
use std::time::Duration;

const CRD: &mainstay_object::Resource = &builtin::CUSTOM_RESOURCE_DEFINITION;

/// The entry of `status.requirementStatus` with this name.
fn requirement_status<'a>(csv: &'a Object, name: &str) -> Option<&'a Value> {
    csv.array(&["status", "requirementStatus"])
        .iter()
        .find(|requirement| requirement["name"] == name)
}

/// Waits until a requirement of a CSV has a status.
async fn wait_for_requirement(
    olm: &OlmCluster,
    namespace: &str,
    csv: &str,
    name: &str,
    status: &'static str,
) -> Object {
    let name = name.to_owned();
    let predicate = move |csv: &Object| {
        requirement_status(csv, &name).is_some_and(|requirement| requirement["status"] == status)
    };
    olm.cluster.wait_for(&CSV, Some(namespace), csv, predicate).await
}

#[tokio::test]
async fn crd_of_a_csv_satisfies_it_and_every_csv_that_is_no_successor() {
    let olm = olm_with_namespaces(&["other"]).await;
    crate::user_csvs::apply_group(&olm, "other", "og", &["other"]).await;
    let mut crd = crd_for("hats", &["v1"]);
    crd.set_annotation("operatorframework.io/installed-alongside-0", "team/associated");
    let crd = olm.cluster.apply(crd).await;
    let name = "hats.cluster.com";
    let whole = json!({
        "group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition",
        "name": name, "status": "Present", "uuid": crd.uid(),
        "message": "CRD is present and Established condition is true",
    });
    let owner = |namespace: &str, name: &str| {
        with_owned_crd(csv_in(namespace, name, &[deployment(name)]), "hats")
    };
    // For a CSV that does not own the CRD, its existence suffices.
    let mut user = csv_in("team", "user", &[deployment("user")]);
    user["spec"]["customresourcedefinitions"]["required"] = json!([crd_description("hats", "v1")]);
    create_csv(&olm, user).await;
    let user = wait_for_requirement(&olm, "team", "user", name, "Present").await;
    // shows E034
    assert_eq!(requirement_status(&user, name), Some(&whole));
    // In another namespace the CRD satisfies every CSV.
    create_csv(&olm, owner("other", "unassociated")).await;
    let far = wait_for_phase(&olm, "other", "unassociated", "Succeeded").await;
    // shows E034
    assert_eq!(requirement_status(&far, name), Some(&whole));
    // For a CSV that the associated CSV replaces, the CRD stays satisfied until that CSV is
    // deleted.
    create_csv(&olm, owner("team", "before")).await;
    wait_for_phase(&olm, "team", "before", "Succeeded").await;
    let mut next = owner("team", "associated");
    next["spec"]["replaces"] = "before".into();
    create_csv(&olm, next).await;
    let next = wait_for_phase(&olm, "team", "associated", "Succeeded").await;
    // shows E034
    assert_eq!(requirement_status(&next, name), Some(&whole));
    olm.cluster.wait_gone(&CSV, Some("team"), "before").await;
    // A successor of the associated CSV waits until the CRD has its own `installed-alongside`
    // annotation.
    let mut after = owner("team", "after");
    after["spec"]["replaces"] = "associated".into();
    create_csv(&olm, after).await;
    let after = wait_for_requirement(&olm, "team", "after", name, "PresentNotSatisfied").await;
    let status = requirement_status(&after, name).unwrap();
    // shows E034
    assert_eq!(status["message"], "CRD installed alongside other CSV(s): associated");
    let mine = json!({"metadata": {"annotations": {
        "operatorframework.io/installed-alongside-1": "team/after",
    }}});
    let cluster = olm.cluster.cluster();
    cluster.patch(CRD, None, name, &Patch::Merge(mine)).await.unwrap();
    wait_for_phase(&olm, "team", "after", "Succeeded").await;
}

#[tokio::test]
async fn deployment_with_max_unavailable_counts_as_available_with_one_of_two_pods() {
    const GATE: &str = "example.com/gate";
    let olm = olm_with_namespaces(&[]).await;
    let mut two = deployment("two");
    two["spec"]["replicas"] = 2.into();
    two["spec"]["strategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
    two["spec"]["template"]["spec"]["readinessGates"] = json!([{"conditionType": GATE}]);
    create_csv(&olm, csv_in("team", "two", &[two])).await;
    let pods = Selection::all(builtin::POD).namespace("team").labels("app=two");
    let ready = |pod: &&&Object| pod.condition("Ready") == Some("True");
    let running = olm.cluster.wait_for_all(pods.clone(), |all| {
        all.len() == 2 && all.iter().all(|pod| pod.condition("ContainersReady") == Some("True"))
    });
    let first = running.await.remove(0);
    wait_for_reason(&olm, "team", "two", "Installing", "InstallWaiting").await;
    let gate = |open: &str| {
        let mut all = first.array(&["status", "conditions"]).to_vec();
        all.retain(|condition| condition["type"] != GATE && condition["type"] != "Ready");
        all.push(json!({"type": GATE, "status": open}));
        Patch::Merge(json!({"status": {"conditions": all}}))
    };
    let cluster = olm.cluster.cluster();
    cluster.patch_status(&builtin::POD, Some("team"), first.name(), &gate("True")).await.unwrap();
    // shows E035
    wait_for_phase(&olm, "team", "two", "Succeeded").await;
    olm.wait_until_idle().await;
    let pods = olm.cluster.wait_for_all(pods, move |all| all.iter().filter(ready).count() == 1);
    pods.await;
    wait_for_phase(&olm, "team", "two", "Succeeded").await;
    cluster.patch_status(&builtin::POD, Some("team"), first.name(), &gate("False")).await.unwrap();
    let lost = |csv: &Object| {
        let history = csv.array(&["status", "conditions"]);
        history.iter().any(|condition| {
            condition["phase"] == "Failed" && condition["reason"] == "ComponentUnhealthy"
        })
    };
    olm.cluster.wait_for(&CSV, Some("team"), "two", lost).await;
}

#[tokio::test]
async fn service_account_with_another_owner_satisfies_the_requirement() {
    let olm = olm_with_namespaces(&[]).await;
    let owner = object(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": "team"},
    }));
    let owner = olm.cluster.apply(owner).await;
    let account = object(json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "sa", "namespace": "team", "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(),
        }]},
    }));
    olm.cluster.apply(account).await;
    let csv = csv_in("team", "v", &[deployment("d")]);
    create_csv(&olm, with_permissions(csv, "permissions", "sa", &json!([]))).await;
    let csv = wait_for_phase(&olm, "team", "v", "Succeeded").await;
    let found = requirement_status(&csv, "sa").unwrap();
    // shows E037
    assert_eq!((&found["kind"], &found["status"]), (&json!("ServiceAccount"), &json!("Present")));
}

#[tokio::test]
async fn deployments_wait_until_all_requirements_are_met() {
    let olm = olm_with_namespaces(&[]).await;
    for crd in [crd_for("hats", &["v1"]), crd_for("caps", &["v1"])] {
        olm.cluster.apply(crd).await;
    }
    let plain = |name: &str| csv_in("team", name, &[deployment(name)]);
    let mut newer = plain("kube");
    newer["spec"]["minKubeVersion"] = "999.999.999".into();
    let mut served = plain("apiservice");
    let absent = json!([{
        "group": "not.in.cluster.com", "version": "v1alpha1", "kind": "NotInCluster", "name": "",
        "displayName": "x", "description": "x",
    }]);
    served["spec"]["apiservicedefinitions"] = json!({"required": absent});
    let mut native = plain("native");
    native["spec"]["nativeAPIs"] =
        json!([{"group": "kubenative.io", "version": "v1", "kind": "Native"}]);
    let rules = json!([{"apiGroups": [""], "resources": ["deployment"], "verbs": ["create"]}]);
    let unpermitted =
        with_permissions(with_owned_crd(plain("rights"), "hats"), "permissions", "nobody", &rules);
    // The permissions exist in the namespace only.
    create_account(&olm, "team", "here", &rules).await;
    let narrow = with_permissions(
        with_owned_crd(plain("narrow"), "caps"),
        "clusterPermissions",
        "here",
        &rules,
    );
    let mut server = plain("server");
    server["spec"]["apiservicedefinitions"] = json!({"owned": [{
        "group": "mine.example.com", "version": "v1", "kind": "Mine", "name": "mines",
        "deploymentName": "another", "containerPort": 5443,
    }]});
    let cases = [
        (newer, "kube", "PresentNotSatisfied"),
        (with_owned_crd(plain("crd"), "absent"), "absent.cluster.com", "NotPresent"),
        (unpermitted, "nobody", "NotPresent"),
        (narrow, "here", "PresentNotSatisfied"),
        (served, "v1alpha1.not.in.cluster.com", "NotPresent"),
        (native, "v1.kubenative.io", "NotPresent"),
        (server, "v1.mine.example.com", "DeploymentNotFound"),
    ];
    for (csv, _, _) in &cases {
        create_csv(&olm, csv.clone()).await;
    }
    for (csv, name, status) in &cases {
        let csv = csv["metadata"]["name"].as_str().unwrap();
        // shows APS-09 C03 CSV-14 E038
        wait_for_reason(&olm, "team", csv, "Pending", "RequirementsNotMet").await;
        // shows APS-09 C03 E038
        wait_for_requirement(&olm, "team", csv, name, status).await;
    }
    olm.wait_until_idle().await;
    let deployments = Selection::all(builtin::DEPLOYMENT).namespace("team");
    // shows APS-09 CSV-14 E038
    olm.cluster.wait_for_all(deployments, |all| all.is_empty()).await;
}

#[tokio::test]
async fn csv_fails_when_a_requirement_is_deleted() {
    let olm = olm_with_namespaces(&[]).await;
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]);
    let wide = json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]);
    let csv = with_owned_crd(csv_in("team", "v", &[deployment("d")]), "hats");
    let csv = with_permissions(csv, "permissions", "sa", &rules);
    create_csv(&olm, with_permissions(csv, "clusterPermissions", "sa", &wide)).await;
    wait_for_reason(&olm, "team", "v", "Pending", "RequirementsNotMet").await;
    olm.cluster.apply(crd_for("hats", &["v1"])).await;
    create_account(&olm, "team", "sa", &rules).await;
    wait_for_requirement(&olm, "team", "v", "sa", "PresentNotSatisfied").await;
    for manifest in [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "wide"}, "rules": wide,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "wide"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "wide",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "sa", "namespace": "team"}],
        }),
    ] {
        olm.cluster.apply(object(manifest)).await;
    }
    // shows E039
    let csv = wait_for_phase(&olm, "team", "v", "Succeeded").await;
    let found = requirement_status(&csv, "sa").unwrap();
    assert_eq!(found["dependents"].as_array().unwrap().len(), 2);
    wait_for_deployment(&olm, "team", "d").await;
    delete_object(&olm, CRD, None, "hats.cluster.com").await;
    // The CSV is first Failed, then Pending.
    let lost = |csv: &Object| {
        csv.array(&["status", "conditions"]).iter().any(|condition| {
            condition["phase"] == "Failed"
                && condition["reason"] == "RequirementsNotMet"
                && condition["message"] == "requirements no longer met"
        })
    };
    // shows C18 E039
    olm.cluster.wait_for(&CSV, Some("team"), "v", lost).await;
    olm.cluster.wait_gone(CRD, None, "hats.cluster.com").await;
    olm.cluster.apply(crd_for("hats", &["v1"])).await;
    // shows E039
    wait_for_phase(&olm, "team", "v", "Succeeded").await;
    delete_object(&olm, &builtin::CLUSTER_ROLE_BINDING, None, "wide").await;
    wait_for_requirement(&olm, "team", "v", "sa", "PresentNotSatisfied").await;
}

#[tokio::test]
async fn deployment_spec_labels_and_csv_annotations_reach_the_deployment() {
    let olm = olm_with_namespaces(&[]).await;
    let mut one = deployment("d");
    one["label"] = json!({"application": "nginx", "application.type": "proxy"});
    one["spec"]["template"]["metadata"]["annotations"] = json!({"foo1": "notBar1", "foo2": "bar2"});
    let mut csv = csv_in("team", "v", &[one]);
    csv["metadata"]["annotations"] = json!({"foo1": "bar1", "foo3": "bar3"});
    create_csv(&olm, csv).await;
    wait_for_phase(&olm, "team", "v", "Succeeded").await;
    let deployed = wait_for_deployment(&olm, "team", "d").await;
    for (key, value) in [("application", "nginx"), ("application.type", "proxy")] {
        // shows E042
        assert_eq!(deployed.label(key), Some(value));
    }
    assert_eq!(
        (deployed.label("olm.owner"), deployed.label("olm.owner.namespace")),
        (Some("v"), Some("team"))
    );
    let annotations = deployed.get(&["spec", "template", "metadata", "annotations"]).unwrap();
    for (key, value) in [("foo1", "bar1"), ("foo2", "bar2"), ("foo3", "bar3")] {
        // shows E042
        assert_eq!(annotations[key], value);
    }
}

#[tokio::test]
async fn missing_and_met_requirements_are_events_and_invalid_ones_are_reported() {
    let olm = olm_with_namespaces(&[]).await;
    let mut csv = csv_in("team", "v", &[deployment("d")]);
    let needs = |group: &str| {
        json!({"apiservicedefinitions": {"required": [
            {"group": group, "version": "v1", "kind": "Deployment", "name": ""},
        ]}})
    };
    csv["spec"]["apiservicedefinitions"] = needs("bad.apps")["apiservicedefinitions"].clone();
    create_csv(&olm, csv).await;
    wait_for_reason(&olm, "team", "v", "Pending", "RequirementsNotMet").await;
    let event = olm.wait_for_event("ClusterServiceVersion", "v", "RequirementsNotMet").await;
    let message = "one or more requirements couldn't be found";
    // shows E044
    assert_eq!(event, ("Normal".to_owned(), message.to_owned()));
    patch_csv(&olm, "team", "v", json!({"spec": needs("apps")})).await;
    let event = olm.wait_for_event("ClusterServiceVersion", "v", "AllRequirementsMet").await;
    let message = "all requirements found, attempting install";
    // shows E044
    assert_eq!(event, ("Normal".to_owned(), message.to_owned()));
    // A version name that a CRD cannot have.
    olm.cluster.apply(crd_for("hats", &["v1"])).await;
    let mut csv = with_owned_crd(csv_in("team", "w", &[deployment("w")]), "hats");
    let owned = &mut csv["spec"]["customresourcedefinitions"]["owned"];
    owned[0]["version"] = "apiextensions.k8s.io/v1".into();
    create_csv(&olm, csv).await;
    // shows E044
    let csv = wait_for_requirement(&olm, "team", "w", "hats.cluster.com", "NotPresent").await;
    assert_eq!(
        requirement_status(&csv, "hats.cluster.com"),
        Some(&json!({
            "group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition",
            "name": "hats.cluster.com", "status": "NotPresent", "message": "CRD version not served",
        }))
    );
    olm.wait_until_idle().await;
    wait_for_phase(&olm, "team", "w", "Pending").await;
}

#[tokio::test]
async fn deployments_without_an_owner_reference_are_left_alone() {
    let olm = olm_with_namespaces(&[]).await;
    let foreign = |name: &str, labels: Value| {
        let mut template = deployment(name);
        template["spec"]["replicas"] = 0.into();
        object(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "spec": template["spec"],
            "metadata": {"name": name, "namespace": "team", "labels": labels},
        }))
    };
    let labelled = json!({
        "olm.managed": "true", "olm.owner": "v", "olm.owner.kind": "ClusterServiceVersion",
        "olm.owner.namespace": "team",
    });
    let before = [
        olm.cluster.apply(foreign("plain", json!({}))).await,
        olm.cluster.apply(foreign("labelled", labelled)).await,
    ];
    create_csv(&olm, csv_in("team", "v", &[deployment("d")])).await;
    wait_for_phase(&olm, "team", "v", "Succeeded").await;
    olm.wait_until_idle().await;
    let cluster = olm.cluster.cluster();
    for deployment in before {
        let now = cluster.get(&builtin::DEPLOYMENT, Some("team"), deployment.name()).await.unwrap();
        // shows C16
        assert_eq!((now.uid(), now.get(&["spec"])), (deployment.uid(), deployment.get(&["spec"])));
    }
    // shows C16
    wait_for_phase(&olm, "team", "v", "Succeeded").await;
}

#[tokio::test]
async fn csvs_that_replace_one_another_end_the_same_in_any_order() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let olm = olm_with_namespaces(&[]).await;
    olm.cluster.apply(crd_for("hats", &["v1"])).await;
    let namespace = |at: usize| format!("order-{at}");
    for (at, order) in orders.iter().enumerate() {
        let namespace = namespace(at);
        create_namespace(&olm.cluster, &namespace, "").await;
        crate::user_csvs::apply_group(&olm, &namespace, "og", &[&namespace]).await;
        for which in order {
            let deployments = [deployment(&format!("d{which}")), deployment("shared")];
            let csv = csv_in(&namespace, &format!("v{which}"), &deployments);
            let mut csv = with_owned_crd(csv, "hats");
            if *which > 0 {
                csv["spec"]["replaces"] = format!("v{}", which - 1).into();
            }
            create_csv(&olm, csv).await;
        }
    }
    for at in 0..orders.len() {
        let namespace = namespace(at);
        wait_for_phase(&olm, &namespace, "v2", "Succeeded").await;
        for old in ["v0", "v1"] {
            olm.cluster.wait_gone(&CSV, Some(&namespace), old).await;
        }
        for old in ["d0", "d1"] {
            olm.cluster.wait_gone(&builtin::DEPLOYMENT, Some(&namespace), old).await;
        }
        wait_for_phase(&olm, &namespace, "v2", "Succeeded").await;
        let selection = Selection::all(builtin::DEPLOYMENT).namespace(&namespace);
        let remaining = olm.cluster.wait_for_all(selection, |all| all.len() == 2).await;
        for deployment in remaining {
            let owners: Vec<String> = deployment
                .owner_references()
                .into_iter()
                .map(|owner_reference| owner_reference.name)
                .collect();
            // shows C27
            assert_eq!(owners, ["v2"], "{}", deployment.name());
        }
    }
}

#[tokio::test]
async fn objects_owned_by_two_csvs_are_deleted_with_the_last() {
    let olm = olm_with_namespaces(&[]).await;
    let mut owners = Vec::new();
    for name in ["a", "b"] {
        let owner = create_csv(&olm, csv_in("team", name, &[deployment(name)])).await;
        wait_for_phase(&olm, "team", name, "Succeeded").await;
        owners.push(json!({
            "apiVersion": owner.api_version(), "kind": owner.kind(), "name": name, "uid": owner.uid(),
            "controller": false, "blockOwnerDeletion": true,
        }));
    }
    let shared = object(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "shared", "namespace": "team", "ownerReferences": owners},
    }));
    olm.cluster.apply(shared).await;
    let foreground = DeleteOptions {
        propagation: Some(mainstay_client::Propagation::Foreground),
        ..DeleteOptions::default()
    };
    let cluster = olm.cluster.cluster();
    cluster.delete(&CSV, Some("team"), "a", &foreground).await.unwrap();
    olm.cluster.wait_gone(&CSV, Some("team"), "a").await;
    olm.cluster.wait_gone(&builtin::DEPLOYMENT, Some("team"), "a").await;
    let config_map = cluster.get(&builtin::CONFIG_MAP, Some("team"), "shared").await.unwrap();
    // shows E066
    assert!(!config_map.is_terminating());
    cluster.delete(&CSV, Some("team"), "b", &foreground).await.unwrap();
    olm.cluster.wait_gone(&CSV, Some("team"), "b").await;
    // shows E066
    olm.cluster.wait_gone(&builtin::CONFIG_MAP, Some("team"), "shared").await;
    let all = ObjectList::default();
    let pods =
        || async { cluster.list(&builtin::POD, Some("team"), &all).await.unwrap().items.len() };
    let gone = async {
        while pods().await > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), gone).await.unwrap();
}
