//! Status, scale, tokens and reviews.

use crate::harness::Api;
use serde_json::{Value, json};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    })
}

#[tokio::test]
async fn status_and_spec_are_written_separately() {
    let api = Api::new().await;
    let path = format!("{DEPLOYMENTS}/d");
    let mut body = deployment();
    body["status"] = json!({"replicas": 9});
    let created = api.post(DEPLOYMENTS, &body).await.ok();
    assert_ne!(created["status"]["replicas"], 9, "a new object has no status");
    assert_eq!(created["metadata"]["generation"], 1);

    let mut body = created.clone();
    body["status"] = json!({"replicas": 3});
    body["spec"]["replicas"] = 5.into();
    let status = api.put(&format!("{path}/status"), &body).await.ok();
    assert_eq!(
        (&status["status"]["replicas"], &status["spec"]["replicas"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(status["metadata"]["generation"], 1, "a status change keeps the generation");

    let mut body = status.clone();
    body["status"] = json!({});
    body["spec"]["replicas"] = 5.into();
    let spec = api.put(&path, &body).await.ok();
    assert_eq!((&spec["status"]["replicas"], &spec["spec"]["replicas"]), (&json!(3), &json!(5)));
    assert_eq!(spec["metadata"]["generation"], 2);

    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = api.patch(&path, "merge", &labels).await.ok();
    assert_eq!(labelled["metadata"]["generation"], 2, "a metadata change keeps the generation");
    assert_eq!(api.get(&format!("{path}/status")).await.ok(), labelled);
}

#[tokio::test]
async fn scale_reads_and_writes_the_replicas_of_an_object() {
    let api = Api::new().await;
    let path = format!("{DEPLOYMENTS}/d");
    api.post(DEPLOYMENTS, &deployment()).await.ok();
    let scale = api.get(&format!("{path}/scale")).await.ok();
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!(scale["spec"]["replicas"], 1);
    assert_eq!(scale["status"]["selector"], "app=d");
    let patch = json!({"spec": {"replicas": 4}});
    let scaled = api.patch(&format!("{path}/scale"), "merge", &patch).await.ok();
    assert_eq!((&scaled["kind"], &scaled["spec"]["replicas"]), (&json!("Scale"), &json!(4)));
    let stored = api.get(&path).await.ok();
    assert_eq!(
        (&stored["spec"]["replicas"], &stored["metadata"]["generation"]),
        (&json!(4), &json!(2))
    );
    let mut body = scaled.clone();
    body["spec"]["replicas"] = 2.into();
    assert_eq!(api.put(&format!("{path}/scale"), &body).await.ok()["spec"]["replicas"], 2);
    assert_eq!(api.put(&format!("{path}/scale"), &body).await.refused().0, 409);
    body["spec"]["replicas"] = (-1).into();
    assert_eq!(api.put(&format!("{path}/scale"), &body).await.refused().0, 422);
}

#[tokio::test]
async fn a_service_account_gets_a_token_that_the_server_accepts() {
    let api = Api::new().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "s"}});
    api.post(accounts, &account).await.ok();
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let issued = api.post(&format!("{accounts}/s/token"), &request).await.ok();
    let token = issued["status"]["token"].as_str().unwrap();
    let review = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token},
    });
    let reviewed = api.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.ok();
    assert_eq!(reviewed["status"]["authenticated"], true);
    assert_eq!(reviewed["status"]["user"]["username"], "system:serviceaccount:default:s");
    assert_eq!(api.post(&format!("{accounts}/zz/token"), &request).await, 404);
}

#[tokio::test]
async fn reviews_return_permissions_and_the_identity() {
    let api = Api::new().await;
    let authorization = "/apis/authorization.k8s.io/v1";
    for (kind, user, allowed) in
        [("SelfSubjectAccessReview", "", true), ("SubjectAccessReview", "x", false)]
    {
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": {
            "resourceAttributes": {"verb": "create", "resource": "pods"}, "user": user,
        }});
        let path = format!("{authorization}/{}s", kind.to_lowercase());
        let response = api.post(&path, &review).await;
        assert_eq!((response.code, &response.ok()["status"]["allowed"]), (201, &json!(allowed)));
    }
    let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let info = api.post(path, &who).await.ok();
    assert_eq!(info["status"]["userInfo"]["username"], "kubernetes-admin");
    assert_eq!(api.get(path).await, 405);
}

#[tokio::test]
async fn a_pod_is_bound_to_a_node_only_once() {
    let api = Api::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    api.post(pods, &pod).await.ok();
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n1"},
    });
    assert_eq!(api.post(&format!("{pods}/p/binding"), &binding).await, 201);
    let bound = api.get(&format!("{pods}/p")).await.ok();
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(api.post(&format!("{pods}/p/binding"), &binding).await.refused().0, 409);
    // A simulated pod runs no process.
    for path in ["exec?command=sh&stdout=1", "attach?stdout=1", "portforward"] {
        let (code, message) = api.get(&format!("{pods}/p/{path}")).await.refused();
        assert_eq!(code, 405, "{path}");
        assert!(message.contains("simulated and run no processes"), "{message}");
    }
}

#[tokio::test]
async fn both_event_groups_serve_the_same_objects() {
    let api = Api::new().await;
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "note": "hello",
        "reason": "Made", "action": "Make", "type": "Normal",
        "reportingController": "c.example.com", "reportingInstance": "c-1",
        "eventTime": "2026-01-02T03:04:05.000000Z",
    });
    let created = api.post("/apis/events.k8s.io/v1/namespaces/default/events", &event).await.ok();
    assert_eq!(created["note"], "hello");
    let core = api.get("/api/v1/namespaces/default/events/e").await.ok();
    assert_eq!((&core["apiVersion"], &core["message"]), (&json!("v1"), &json!("hello")));
    assert_eq!(core["involvedObject"]["name"], "p");
    let selected = "fieldSelector=involvedObject.name%3Dp,involvedObject.kind%3DPod";
    let list = api.get(&format!("/api/v1/namespaces/default/events?{selected}")).await.ok();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let mut watch = api.watch("/apis/events.k8s.io/v1/events?watch=true").await;
    assert_eq!(watch.next().await.unwrap()["object"]["note"], "hello");
}

#[tokio::test(start_paused = true)]
async fn an_event_is_deleted_an_hour_after_its_last_observation() {
    let api = Api::new().await;
    let events = "/api/v1/namespaces/default/events";
    let event = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
            "reason": "R", "message": "m", "type": "Normal",
        })
    };
    api.post(events, &event("old")).await.ok();
    let mut young = event("young");
    young["lastTimestamp"] = "2026-01-02T04:00:00Z".into();
    api.post(events, &young).await.ok();
    tokio::time::advance(std::time::Duration::from_secs(3700)).await;
    api.post(events, &event("new")).await.ok();
    api.until(&format!("{events}/old"), 404).await;
    assert_eq!(api.get(&format!("{events}/young")).await, 200);
}
