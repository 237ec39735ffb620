//! What versions need, and how they say that it is missing.

use crate::by_hand::{
    account, asking, at, definition, delete, deployed, deployment, edit, in_phase, make, object,
    owning, reference, version, world,
};
use crate::world::{World, namespace};
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_client::{DeleteOptions, ListParams, Patch, Selection};
use mainstay_object::{Object, known};
use serde_json::{Value, json};
use std::time::Duration;

const CRD: &mainstay_object::Resource = &known::CUSTOM_RESOURCE_DEFINITION;

/// What a version says of a requirement.
fn requirement<'a>(csv: &'a Object, name: &str) -> Option<&'a Value> {
    csv.array(&["status", "requirementStatus"])
        .iter()
        .find(|requirement| requirement["name"] == name)
}

/// Waits until a version says this of a requirement.
async fn says(world: &World, place: &str, csv: &str, name: &str, status: &'static str) -> Object {
    let name = name.to_owned();
    let good = move |csv: &Object| {
        requirement(csv, &name).is_some_and(|requirement| requirement["status"] == status)
    };
    world.cluster.wait_for(&CSV, Some(place), csv, good).await
}

#[tokio::test]
async fn crd_of_a_csv_satisfies_it_and_every_csv_that_is_no_successor() {
    let world = world(&["other"]).await;
    crate::by_hand::group(&world, "other", "og", &["other"]).await;
    let mut crd = definition("hats", &["v1"]);
    crd.set_annotation("operatorframework.io/installed-alongside-0", "team/associated");
    let crd = world.cluster.apply(crd).await;
    let name = "hats.cluster.com";
    let whole = json!({
        "group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition",
        "name": name, "status": "Present", "uuid": crd.uid(),
        "message": "CRD is present and Established condition is true",
    });
    let owner = |place: &str, name: &str| owning(version(place, name, &[deployment(name)]), "hats");
    // Whoever does not own it needs it to be there, and nothing more.
    let mut user = version("team", "user", &[deployment("user")]);
    user["spec"]["customresourcedefinitions"]["required"] = json!([reference("hats", "v1")]);
    make(&world, user).await;
    let user = says(&world, "team", "user", name, "Present").await;
    // shows E034
    assert_eq!(requirement(&user, name), Some(&whole));
    // In another namespace it is as good as new.
    make(&world, owner("other", "unassociated")).await;
    let far = in_phase(&world, "other", "unassociated", "Succeeded").await;
    // shows E034
    assert_eq!(requirement(&far, name), Some(&whole));
    // A version that is replaced by the one that it came with keeps it until it goes.
    make(&world, owner("team", "before")).await;
    in_phase(&world, "team", "before", "Succeeded").await;
    let mut next = owner("team", "associated");
    next["spec"]["replaces"] = "before".into();
    make(&world, next).await;
    let next = in_phase(&world, "team", "associated", "Succeeded").await;
    // shows E034
    assert_eq!(requirement(&next, name), Some(&whole));
    world.cluster.wait_gone(&CSV, Some("team"), "before").await;
    // Whoever follows the one that it came with waits until it comes with itself.
    let mut after = owner("team", "after");
    after["spec"]["replaces"] = "associated".into();
    make(&world, after).await;
    let after = says(&world, "team", "after", name, "PresentNotSatisfied").await;
    let said = requirement(&after, name).unwrap();
    // shows E034
    assert_eq!(said["message"], "CRD installed alongside other CSV(s): associated");
    let mine = json!({"metadata": {"annotations": {
        "operatorframework.io/installed-alongside-1": "team/after",
    }}});
    let cluster = world.cluster.cluster();
    cluster.patch(CRD, None, name, &Patch::Merge(mine)).await.unwrap();
    in_phase(&world, "team", "after", "Succeeded").await;
}

#[tokio::test]
async fn deployment_with_max_unavailable_counts_as_available_with_one_of_two_pods() {
    const GATE: &str = "example.com/gate";
    let world = world(&[]).await;
    let mut two = deployment("two");
    two["spec"]["replicas"] = 2.into();
    two["spec"]["strategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
    two["spec"]["template"]["spec"]["readinessGates"] = json!([{"conditionType": GATE}]);
    make(&world, version("team", "two", &[two])).await;
    let pods = Selection::all(known::POD).namespace("team").labels("app=two");
    let ready = |pod: &&&Object| pod.condition("Ready") == Some("True");
    let running = world.cluster.wait_for_all(pods.clone(), |all| {
        all.len() == 2 && all.iter().all(|pod| pod.condition("ContainersReady") == Some("True"))
    });
    let first = running.await.remove(0);
    at(&world, "team", "two", "Installing", "InstallWaiting").await;
    let gate = |open: &str| {
        let mut all = first.array(&["status", "conditions"]).to_vec();
        all.retain(|condition| condition["type"] != GATE && condition["type"] != "Ready");
        all.push(json!({"type": GATE, "status": open}));
        Patch::Merge(json!({"status": {"conditions": all}}))
    };
    let cluster = world.cluster.cluster();
    cluster.patch_status(&known::POD, Some("team"), first.name(), &gate("True")).await.unwrap();
    // shows E035
    in_phase(&world, "team", "two", "Succeeded").await;
    world.left_alone().await;
    let pods = world.cluster.wait_for_all(pods, move |all| all.iter().filter(ready).count() == 1);
    pods.await;
    in_phase(&world, "team", "two", "Succeeded").await;
    cluster.patch_status(&known::POD, Some("team"), first.name(), &gate("False")).await.unwrap();
    let lost = |csv: &Object| {
        let history = csv.array(&["status", "conditions"]);
        history.iter().any(|condition| {
            condition["phase"] == "Failed" && condition["reason"] == "ComponentUnhealthy"
        })
    };
    world.cluster.wait_for(&CSV, Some("team"), "two", lost).await;
}

#[tokio::test]
async fn service_account_with_another_owner_satisfies_the_requirement() {
    let world = world(&[]).await;
    let owner = object(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": "team"},
    }));
    let owner = world.cluster.apply(owner).await;
    let account = object(json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "sa", "namespace": "team", "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid(),
        }]},
    }));
    world.cluster.apply(account).await;
    let csv = version("team", "v", &[deployment("d")]);
    make(&world, asking(csv, "permissions", "sa", &json!([]))).await;
    let csv = in_phase(&world, "team", "v", "Succeeded").await;
    let found = requirement(&csv, "sa").unwrap();
    // shows E037
    assert_eq!((&found["kind"], &found["status"]), (&json!("ServiceAccount"), &json!("Present")));
}

#[tokio::test]
async fn deployments_wait_until_all_requirements_are_met() {
    let world = world(&[]).await;
    for crd in [definition("hats", &["v1"]), definition("caps", &["v1"])] {
        world.cluster.apply(crd).await;
    }
    let plain = |name: &str| version("team", name, &[deployment(name)]);
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
    let unpermitted = asking(owning(plain("rights"), "hats"), "permissions", "nobody", &rules);
    // The rights are there, but of the namespace only.
    account(&world, "team", "here", &rules).await;
    let narrow = asking(owning(plain("narrow"), "caps"), "clusterPermissions", "here", &rules);
    let mut server = plain("server");
    server["spec"]["apiservicedefinitions"] = json!({"owned": [{
        "group": "mine.example.com", "version": "v1", "kind": "Mine", "name": "mines",
        "deploymentName": "another", "containerPort": 5443,
    }]});
    let cases = [
        (newer, "kube", "PresentNotSatisfied"),
        (owning(plain("crd"), "absent"), "absent.cluster.com", "NotPresent"),
        (unpermitted, "nobody", "NotPresent"),
        (narrow, "here", "PresentNotSatisfied"),
        (served, "v1alpha1.not.in.cluster.com", "NotPresent"),
        (native, "v1.kubenative.io", "NotPresent"),
        (server, "v1.mine.example.com", "DeploymentNotFound"),
    ];
    for (csv, _, _) in &cases {
        make(&world, csv.clone()).await;
    }
    for (csv, name, status) in &cases {
        let csv = csv["metadata"]["name"].as_str().unwrap();
        // shows APS-09 C03 CSV-14 E038
        at(&world, "team", csv, "Pending", "RequirementsNotMet").await;
        // shows APS-09 C03 E038
        says(&world, "team", csv, name, status).await;
    }
    world.left_alone().await;
    let deployments = Selection::all(known::DEPLOYMENT).namespace("team");
    // shows APS-09 CSV-14 E038
    world.cluster.wait_for_all(deployments, |all| all.is_empty()).await;
}

#[tokio::test]
async fn csv_fails_when_a_requirement_is_deleted() {
    let world = world(&[]).await;
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]);
    let wide = json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]);
    let csv = owning(version("team", "v", &[deployment("d")]), "hats");
    let csv = asking(csv, "permissions", "sa", &rules);
    make(&world, asking(csv, "clusterPermissions", "sa", &wide)).await;
    at(&world, "team", "v", "Pending", "RequirementsNotMet").await;
    world.cluster.apply(definition("hats", &["v1"])).await;
    account(&world, "team", "sa", &rules).await;
    says(&world, "team", "v", "sa", "PresentNotSatisfied").await;
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
        world.cluster.apply(object(manifest)).await;
    }
    // shows E039
    let csv = in_phase(&world, "team", "v", "Succeeded").await;
    let found = requirement(&csv, "sa").unwrap();
    assert_eq!(found["dependents"].as_array().unwrap().len(), 2);
    deployed(&world, "team", "d").await;
    delete(&world, CRD, None, "hats.cluster.com").await;
    // Told as failed, then as waiting.
    let lost = |csv: &Object| {
        csv.array(&["status", "conditions"]).iter().any(|condition| {
            condition["phase"] == "Failed"
                && condition["reason"] == "RequirementsNotMet"
                && condition["message"] == "requirements no longer met"
        })
    };
    // shows C18 E039
    world.cluster.wait_for(&CSV, Some("team"), "v", lost).await;
    world.cluster.wait_gone(CRD, None, "hats.cluster.com").await;
    world.cluster.apply(definition("hats", &["v1"])).await;
    // shows E039
    in_phase(&world, "team", "v", "Succeeded").await;
    delete(&world, &known::CLUSTER_ROLE_BINDING, None, "wide").await;
    says(&world, "team", "v", "sa", "PresentNotSatisfied").await;
}

#[tokio::test]
async fn deployment_spec_labels_and_csv_annotations_reach_the_deployment() {
    let world = world(&[]).await;
    let mut one = deployment("d");
    one["label"] = json!({"application": "nginx", "application.type": "proxy"});
    one["spec"]["template"]["metadata"]["annotations"] = json!({"foo1": "notBar1", "foo2": "bar2"});
    let mut csv = version("team", "v", &[one]);
    csv["metadata"]["annotations"] = json!({"foo1": "bar1", "foo3": "bar3"});
    make(&world, csv).await;
    in_phase(&world, "team", "v", "Succeeded").await;
    let made = deployed(&world, "team", "d").await;
    for (key, value) in [("application", "nginx"), ("application.type", "proxy")] {
        // shows E042
        assert_eq!(made.label(key), Some(value));
    }
    assert_eq!(
        (made.label("olm.owner"), made.label("olm.owner.namespace")),
        (Some("v"), Some("team"))
    );
    let annotations = made.get(&["spec", "template", "metadata", "annotations"]).unwrap();
    for (key, value) in [("foo1", "bar1"), ("foo2", "bar2"), ("foo3", "bar3")] {
        // shows E042
        assert_eq!(annotations[key], value);
    }
}

#[tokio::test]
async fn missing_and_met_requirements_are_events_and_invalid_ones_are_reported() {
    let world = world(&[]).await;
    let mut csv = version("team", "v", &[deployment("d")]);
    let needs = |group: &str| {
        json!({"apiservicedefinitions": {"required": [
            {"group": group, "version": "v1", "kind": "Deployment", "name": ""},
        ]}})
    };
    csv["spec"]["apiservicedefinitions"] = needs("bad.apps")["apiservicedefinitions"].clone();
    make(&world, csv).await;
    at(&world, "team", "v", "Pending", "RequirementsNotMet").await;
    let event = world.event("ClusterServiceVersion", "v", "RequirementsNotMet").await;
    let message = "one or more requirements couldn't be found";
    // shows E044
    assert_eq!(event, ("Normal".to_owned(), message.to_owned()));
    edit(&world, "team", "v", json!({"spec": needs("apps")})).await;
    let event = world.event("ClusterServiceVersion", "v", "AllRequirementsMet").await;
    let message = "all requirements found, attempting install";
    // shows E044
    assert_eq!(event, ("Normal".to_owned(), message.to_owned()));
    // A version of a definition that cannot be one.
    world.cluster.apply(definition("hats", &["v1"])).await;
    let mut csv = owning(version("team", "w", &[deployment("w")]), "hats");
    let owned = &mut csv["spec"]["customresourcedefinitions"]["owned"];
    owned[0]["version"] = "apiextensions.k8s.io/v1".into();
    make(&world, csv).await;
    // shows E044
    let csv = says(&world, "team", "w", "hats.cluster.com", "NotPresent").await;
    assert_eq!(
        requirement(&csv, "hats.cluster.com"),
        Some(&json!({
            "group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition",
            "name": "hats.cluster.com", "status": "NotPresent", "message": "CRD version not served",
        }))
    );
    world.left_alone().await;
    in_phase(&world, "team", "w", "Pending").await;
}

#[tokio::test]
async fn deployments_without_an_owner_reference_are_left_alone() {
    let world = world(&[]).await;
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
        world.cluster.apply(foreign("plain", json!({}))).await,
        world.cluster.apply(foreign("labelled", labelled)).await,
    ];
    make(&world, version("team", "v", &[deployment("d")])).await;
    in_phase(&world, "team", "v", "Succeeded").await;
    world.left_alone().await;
    let cluster = world.cluster.cluster();
    for deployment in before {
        let now = cluster.get(&known::DEPLOYMENT, Some("team"), deployment.name()).await.unwrap();
        // shows C16
        assert_eq!((now.uid(), now.get(&["spec"])), (deployment.uid(), deployment.get(&["spec"])));
    }
    // shows C16
    in_phase(&world, "team", "v", "Succeeded").await;
}

#[tokio::test]
async fn csvs_that_replace_one_another_end_the_same_in_any_order() {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let world = world(&[]).await;
    world.cluster.apply(definition("hats", &["v1"])).await;
    let place = |at: usize| format!("order-{at}");
    for (at, order) in orders.iter().enumerate() {
        let place = place(at);
        namespace(&world.cluster, &place, "").await;
        crate::by_hand::group(&world, &place, "og", &[&place]).await;
        for which in order {
            let deployments = [deployment(&format!("d{which}")), deployment("shared")];
            let csv = version(&place, &format!("v{which}"), &deployments);
            let mut csv = owning(csv, "hats");
            if *which > 0 {
                csv["spec"]["replaces"] = format!("v{}", which - 1).into();
            }
            make(&world, csv).await;
        }
    }
    for at in 0..orders.len() {
        let place = place(at);
        in_phase(&world, &place, "v2", "Succeeded").await;
        for old in ["v0", "v1"] {
            world.cluster.wait_gone(&CSV, Some(&place), old).await;
        }
        for old in ["d0", "d1"] {
            world.cluster.wait_gone(&known::DEPLOYMENT, Some(&place), old).await;
        }
        in_phase(&world, &place, "v2", "Succeeded").await;
        let left = Selection::all(known::DEPLOYMENT).namespace(&place);
        let left = world.cluster.wait_for_all(left, |all| all.len() == 2).await;
        for deployment in left {
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
    let world = world(&[]).await;
    let mut owners = Vec::new();
    for name in ["a", "b"] {
        let made = make(&world, version("team", name, &[deployment(name)])).await;
        in_phase(&world, "team", name, "Succeeded").await;
        owners.push(json!({
            "apiVersion": made.api_version(), "kind": made.kind(), "name": name, "uid": made.uid(),
            "controller": false, "blockOwnerDeletion": true,
        }));
    }
    let shared = object(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "shared", "namespace": "team", "ownerReferences": owners},
    }));
    world.cluster.apply(shared).await;
    let foreground = DeleteOptions {
        propagation: Some(mainstay_client::Propagation::Foreground),
        ..DeleteOptions::default()
    };
    let cluster = world.cluster.cluster();
    cluster.delete(&CSV, Some("team"), "a", &foreground).await.unwrap();
    world.cluster.wait_gone(&CSV, Some("team"), "a").await;
    world.cluster.wait_gone(&known::DEPLOYMENT, Some("team"), "a").await;
    let left = cluster.get(&known::CONFIG_MAP, Some("team"), "shared").await.unwrap();
    // shows E066
    assert!(!left.is_terminating());
    cluster.delete(&CSV, Some("team"), "b", &foreground).await.unwrap();
    world.cluster.wait_gone(&CSV, Some("team"), "b").await;
    // shows E066
    world.cluster.wait_gone(&known::CONFIG_MAP, Some("team"), "shared").await;
    let all = ListParams::default();
    let pods =
        || async { cluster.list(&known::POD, Some("team"), &all).await.unwrap().items.len() };
    let gone = async {
        while pods().await > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), gone).await.unwrap();
}
