//! Tests of Deployments, ReplicaSets and Pods.

use crate::helpers::{deployment, list_by_label};
use mainstay_client::{Patch, Selection};
use mainstay_object::{Object, builtin};
use mainstay_testkit::TestCluster;
use serde_json::json;

fn is_available(count: i64) -> impl Fn(&Object) -> bool {
    move |deployment| {
        deployment.i64(&["status", "availableReplicas"]).unwrap_or_default() == count
            && deployment.i64(&["status", "replicas"]).unwrap_or_default() == count
            && deployment.i64(&["status", "observedGeneration"]) == Some(deployment.generation())
    }
}

fn rollout_is_complete(deployment: &Object) -> bool {
    let progressing = mainstay_client::conditions::find(
        deployment.array(&["status", "conditions"]),
        "Progressing",
    );
    progressing.is_some_and(|condition| condition["reason"] == "NewReplicaSetAvailable")
        && deployment.i64(&["status", "observedGeneration"]) == Some(deployment.generation())
        && deployment.get(&["status", "unavailableReplicas"]).is_none()
        && deployment.get(&["status", "updatedReplicas"]) == deployment.get(&["status", "replicas"])
}

#[tokio::test]
async fn a_deployment_becomes_available_through_one_replica_set() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml(&deployment("web", 3, "a")).await;
    let web = cluster.wait_for(&builtin::DEPLOYMENT, Some("default"), "web", is_available(3)).await;
    assert_eq!(web.condition("Available"), Some("True"));
    assert_eq!(web.annotation("deployment.kubernetes.io/revision"), Some("1"));

    let sets = list_by_label(&cluster, &builtin::REPLICA_SET, "").await;
    assert_eq!(sets.len(), 1);
    let hash = sets[0].label("pod-template-hash").unwrap();
    assert_eq!(sets[0].name(), format!("web-{hash}"));
    assert_eq!(sets[0].controller_owner().unwrap().uid, web.uid());
    let pods = list_by_label(&cluster, &builtin::POD, "app=web").await;
    let mut addresses: Vec<&str> =
        pods.iter().map(|pod| pod.str(&["status", "podIP"]).unwrap()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 3);
    for pod in &pods {
        assert_eq!(pod.str(&["spec", "nodeName"]), Some("node-1"));
        assert_eq!(pod.label("pod-template-hash"), Some(hash));
        assert_eq!(pod.array(&["status", "containerStatuses"])[0]["ready"], true);
    }
}

#[tokio::test]
async fn a_new_template_replaces_the_old_pods_and_coming_back_reuses_the_old_set() {
    let cluster = TestCluster::start().await;
    let wait =
        || cluster.wait_for(&builtin::DEPLOYMENT, Some("default"), "web", rollout_is_complete);
    cluster.apply_yaml(&deployment("web", 2, "one")).await;
    wait().await;
    for (image, revision, sets) in [("two", "2", 2), ("one", "3", 2), ("three", "4", 3)] {
        cluster.apply_yaml(&deployment("web", 2, image)).await;
        let web = wait().await;
        assert_eq!(web.annotation("deployment.kubernetes.io/revision"), Some(revision));
        assert_eq!(list_by_label(&cluster, &builtin::REPLICA_SET, "").await.len(), sets);
        let images: Vec<String> = list_by_label(&cluster, &builtin::POD, "")
            .await
            .iter()
            .filter(|pod| !pod.is_terminating())
            .map(|pod| pod.array(&["spec", "containers"])[0]["image"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(images, [image, image]);
    }
}

#[tokio::test]
async fn scaling_follows_in_both_directions() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml(&deployment("web", 1, "a")).await;
    for replicas in [20_u32, 4, 0, 2] {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let api = cluster.cluster();
        api.patch(&builtin::DEPLOYMENT, Some("default"), "web", &patch).await.unwrap();
        cluster
            .wait_for(&builtin::DEPLOYMENT, Some("default"), "web", is_available(replicas.into()))
            .await;
    }
}

#[tokio::test]
async fn deleted_pod_is_replaced() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml(&deployment("web", 1, "a")).await;
    cluster.wait_for(&builtin::DEPLOYMENT, Some("default"), "web", rollout_is_complete).await;
    let lost = list_by_label(&cluster, &builtin::POD, "").await.remove(0);
    let options = mainstay_client::DeleteOptions::uid(lost.uid());
    cluster.cluster().delete(&builtin::POD, Some("default"), lost.name(), &options).await.unwrap();
    let pods = Selection::all(builtin::POD).namespace("default");
    let ready = |pod: &Object| pod.uid() != lost.uid() && pod.condition("Ready") == Some("True");
    cluster.wait_for_all(pods, |pods| matches!(pods, [pod] if ready(pod))).await;
    cluster.wait_for(&builtin::DEPLOYMENT, Some("default"), "web", is_available(1)).await;
}

#[tokio::test]
async fn simulated_pod_behaviour_shows_in_deployment_status() {
    let cluster = TestCluster::start().await;
    for (name, behaviour, phase) in [
        ("loop", "crash", "Running"),
        ("wait", "stuck", "Pending"),
        ("sick", "not-ready", "Running"),
    ] {
        let mut object = cluster_object(&deployment(name, 1, "a"));
        object.set(
            &["spec", "template", "metadata", "annotations"],
            json!({"mainstay.dev/simulate": behaviour}),
        );
        cluster.apply(object).await;
        let object = cluster
            .wait_for(&builtin::DEPLOYMENT, Some("default"), name, |deployment| {
                deployment.i64(&["status", "replicas"]) == Some(1)
            })
            .await;
        assert_eq!(object.condition("Available"), Some("False"), "{name}");
        let pod = list_by_label(&cluster, &builtin::POD, &format!("app={name}")).await.remove(0);
        let api = cluster.cluster();
        let pod = cluster
            .wait_for(&builtin::POD, Some("default"), pod.name(), |pod| {
                pod.array(&["status", "containerStatuses"]).len() == 1
            })
            .await;
        assert_eq!(pod.str(&["status", "phase"]), Some(phase), "{name}");
        // Without the annotation the pod recovers.
        let patch =
            Patch::Merge(json!({"metadata": {"annotations": {"mainstay.dev/simulate": null}}}));
        api.patch(&builtin::POD, Some("default"), pod.name(), &patch).await.unwrap();
        cluster.wait_for(&builtin::DEPLOYMENT, Some("default"), name, is_available(1)).await;
    }
}

#[tokio::test]
async fn idle_cluster_is_not_written() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml(&deployment("web", 2, "a")).await;
    cluster
        .apply_yaml("{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}}")
        .await;
    cluster.wait_for(&builtin::DEPLOYMENT, Some("default"), "web", rollout_is_complete).await;
    cluster
        .wait_for(&builtin::ENDPOINTS, Some("default"), "web", |endpoints| {
            endpoints
                .array(&["subsets"])
                .first()
                .and_then(|subset| subset["addresses"].as_array())
                .is_some_and(|addresses| addresses.len() == 2)
        })
        .await;
    // A second Deployment passes through every queue after the remaining work of the first.
    let fence = async |name: &str| {
        cluster.apply_yaml(&deployment(name, 1, "a")).await;
        cluster.wait_for(&builtin::DEPLOYMENT, Some("default"), name, rollout_is_complete).await;
    };
    let objects = async || {
        let mut all = Vec::new();
        for resource in [
            builtin::REPLICA_SET,
            builtin::POD,
            builtin::ENDPOINTS,
            builtin::ENDPOINT_SLICE,
            builtin::SERVICE,
        ] {
            let objects = list_by_label(&cluster, &resource, "").await;
            all.extend(objects.into_iter().filter(|object| object.name().starts_with("web")));
        }
        all
    };
    fence("first").await;
    let before = objects().await;
    // Reconciling everything again must change nothing.
    let touch = Patch::Merge(json!({"metadata": {"labels": {"looked-at": "again"}}}));
    let api = cluster.cluster();
    let web = api.patch(&builtin::DEPLOYMENT, Some("default"), "web", &touch).await.unwrap();
    fence("second").await;
    assert_eq!(objects().await, before);
    let after = api.get(&builtin::DEPLOYMENT, Some("default"), "web").await.unwrap();
    assert_eq!(after.resource_version(), web.resource_version());
}

fn cluster_object(text: &str) -> Object {
    Object::from_value(
        mainstay_yaml::one(text.as_bytes(), &mainstay_yaml::Options::default()).unwrap(),
    )
    .unwrap()
}
