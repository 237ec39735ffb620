//! Deletion of objects, collections and namespaces, with and without finalizers.

use crate::harness::{Api, MAPS, config_map, map};
use serde_json::{Value, json};

fn held(name: &str) -> Value {
    let mut body = config_map(name);
    body["metadata"]["finalizers"] = json!(["example.com/hold"]);
    body
}

#[tokio::test]
async fn an_object_without_finalizers_is_deleted_at_once() {
    let api = Api::new().await;
    let created = api.post(MAPS, &config_map("a")).await.ok();
    let status = api.delete(&map("a"), &json!({"propagationPolicy": "Background"})).await.ok();
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(
        status["details"],
        json!({"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]})
    );
    assert_eq!(api.get(&map("a")).await, 404);
    assert_eq!(api.delete(&map("a"), &json!(null)).await, 404);
}

#[tokio::test]
async fn a_finalizer_delays_deletion_until_it_is_removed() {
    let api = Api::new().await;
    api.post(MAPS, &held("a")).await.ok();
    let marked = api.delete(&map("a"), &json!(null)).await;
    assert_eq!(marked, 200);
    let marked = marked.ok();
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    let again = api.delete(&map("a"), &json!(null)).await.ok();
    assert_eq!(again, marked, "a second deletion writes nothing");

    let mut body = marked.clone();
    body["metadata"]["finalizers"] = json!(["example.com/hold", "example.com/new"]);
    let (code, message) = api.put(&map("a"), &body).await.refused();
    assert_eq!(code, 422);
    assert!(message.contains("no new finalizers can be added if the object is being deleted"));

    body["metadata"]["finalizers"] = json!([]);
    api.put(&map("a"), &body).await.ok();
    assert_eq!(api.get(&map("a")).await, 404);
}

#[tokio::test]
async fn preconditions_are_checked() {
    let api = Api::new().await;
    let created = api.post(MAPS, &config_map("a")).await.ok();
    let with = |name: &str, value: &Value| json!({"preconditions": {name: value}});
    let wrong = api.delete(&map("a"), &with("uid", &json!("x"))).await.refused();
    assert_eq!(wrong.0, 409);
    assert!(wrong.1.contains("the UID in the precondition (x) does not match the UID in record"));
    assert_eq!(api.delete(&map("a"), &with("resourceVersion", &json!("1"))).await, 409);
    let right = with("resourceVersion", &created["metadata"]["resourceVersion"]);
    assert_eq!(api.delete(&map("a"), &right).await, 200);
}

#[tokio::test]
async fn the_propagation_policy_is_recorded_as_a_finalizer() {
    let api = Api::new().await;
    for (name, options, finalizer) in [
        ("a", json!({"propagationPolicy": "Foreground"}), "foregroundDeletion"),
        ("b", json!({"propagationPolicy": "Orphan"}), "orphan"),
        ("c", json!({"orphanDependents": true}), "orphan"),
    ] {
        api.post(MAPS, &config_map(name)).await.ok();
        let marked = api.delete(&map(name), &options).await.ok();
        assert_eq!(marked["metadata"]["finalizers"], json!([finalizer]));
    }
    // A later propagation policy replaces an earlier one.
    api.delete(&map("a"), &json!({"propagationPolicy": "Background"})).await.ok();
    assert_eq!(api.get(&map("a")).await, 404);
    let both = json!({"propagationPolicy": "Orphan", "orphanDependents": true});
    assert_eq!(api.delete(&map("b"), &both).await, 422);
    let odd = json!({"propagationPolicy": "Sideways"});
    assert_eq!(api.delete(&map("b"), &odd).await, 422);
}

#[tokio::test]
async fn a_deletion_of_a_collection_respects_its_selector() {
    let api = Api::new().await;
    for at in 0..100 {
        let mut body = config_map(&format!("m{at}"));
        body["metadata"]["labels"] = json!({"half": (at % 2).to_string()});
        api.post(MAPS, &body).await.ok();
    }
    let deleted = api.delete(&format!("{MAPS}?labelSelector=half%3D0"), &json!(null)).await.ok();
    assert_eq!(deleted["kind"], "ConfigMapList");
    assert_eq!(deleted["items"].as_array().unwrap().len(), 50);
    let left = api.get(&format!("{MAPS}?labelSelector=half")).await.ok();
    assert_eq!(left["items"].as_array().unwrap().len(), 50);
}

#[tokio::test]
async fn a_terminating_namespace_refuses_content_and_is_deleted_by_finalize() {
    let api = Api::new().await;
    let body = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"},
        "spec": {"finalizers": ["kubernetes"]},
    });
    let created = api.post("/api/v1/namespaces", &body).await.ok();
    assert_eq!(created["spec"]["finalizers"], json!(["kubernetes"]));
    let marked = api.delete("/api/v1/namespaces/going", &json!(null)).await.ok();
    assert_eq!(marked["status"]["phase"], "Terminating");
    let refused = api.post("/api/v1/namespaces/going/configmaps", &config_map("a")).await;
    assert_eq!(
        refused.refused(),
        (
            403,
            "configmaps \"a\" is forbidden: unable to create new content in namespace going because it is being terminated"
                .to_owned()
        )
    );
    assert_eq!(refused.json()["details"]["causes"][0]["reason"], "NamespaceTerminating");

    // The finalizer can be removed only by the subresource.
    let mut body = marked.clone();
    body["spec"] = json!({});
    let kept = api.put("/api/v1/namespaces/going", &body).await.ok();
    assert_eq!(kept["spec"]["finalizers"], json!(["kubernetes"]));
    body["metadata"]["resourceVersion"] = kept["metadata"]["resourceVersion"].clone();
    api.put("/api/v1/namespaces/going/finalize", &body).await.ok();
    assert_eq!(api.get("/api/v1/namespaces/going").await, 404);
}

#[tokio::test]
async fn system_namespaces_cannot_be_deleted() {
    let api = Api::new().await;
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        let path = format!("/api/v1/namespaces/{name}");
        for dry in ["", "?dryRun=All"] {
            assert_eq!(
                api.delete(&format!("{path}{dry}"), &json!(null)).await.refused(),
                (
                    403,
                    format!(
                        "namespaces \"{name}\" is forbidden: this namespace may not be deleted"
                    )
                )
            );
        }
        assert_eq!(api.get(&path).await.ok()["status"]["phase"], "Active");
    }
}

#[tokio::test]
async fn an_eviction_deletes_the_pod() {
    let api = Api::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    api.post(pods, &pod).await.ok();
    let eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let response = api.post(&format!("{pods}/p/eviction"), &eviction).await;
    assert_eq!(response, 201);
    assert_eq!(api.get(&format!("{pods}/p")).await, 404);
}

#[tokio::test]
async fn a_deleted_job_orphans_its_pods_by_default() {
    let api = Api::new().await;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
        }}},
    });
    api.post(jobs, &job).await.ok();
    let held = api.delete(&format!("{jobs}/j"), &json!(null)).await;
    assert_eq!(held.warnings().len(), 1);
    assert_eq!(held.ok()["metadata"]["finalizers"], json!(["orphan"]));
    let background = json!({"propagationPolicy": "Background"});
    api.delete(&format!("{jobs}/j"), &background).await.ok();
    assert_eq!(api.get(&format!("{jobs}/j")).await, 404);
}
