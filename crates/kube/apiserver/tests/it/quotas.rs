//! `ResourceQuota`s and `LimitRange`s, tested through writes.

use crate::harness::Api;
use futures::future::join_all;
use serde_json::{Value, json};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

/// Creates a quota with the status that its controller would write.
async fn create_quota(api: &Api, hard: &Value, used: &Value) {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": hard},
    });
    let mut created = api.post(QUOTAS, &quota).await.ok();
    created["status"] = json!({"hard": hard, "used": used});
    api.put(&format!("{QUOTAS}/q/status"), &created).await.ok();
}

async fn used(api: &Api) -> Value {
    api.get(&format!("{QUOTAS}/q")).await.ok()["status"]["used"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writes_never_exceed_a_quota() {
    let api = Api::new().await;
    create_quota(&api, &json!({"configmaps": "10"}), &json!({"configmaps": "0"})).await;
    let make = |index: usize| {
        let api = &api;
        async move { api.post(MAPS, &map(&format!("m{index}"))).await.code }
    };
    let codes = join_all((0..30).map(make)).await;
    assert_eq!(codes.iter().filter(|code| **code == 201).count(), 10);
    assert_eq!(codes.iter().filter(|code| **code == 403).count(), 20);
    assert_eq!(used(&api).await, json!({"configmaps": "10"}));
}

#[tokio::test]
async fn a_quota_refusal_names_the_amounts_and_a_dry_run_uses_no_quota() {
    let api = Api::new().await;
    create_quota(&api, &json!({"configmaps": "1"}), &json!({"configmaps": "0"})).await;
    api.post(&format!("{MAPS}?dryRun=All"), &map("dry")).await.ok();
    assert_eq!(used(&api).await, json!({"configmaps": "0"}));
    api.post(MAPS, &map("a")).await.ok();
    let (code, message) = api.post(MAPS, &map("b")).await.refused();
    assert_eq!(
        (code, message.as_str()),
        (
            403,
            "configmaps \"b\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1"
        )
    );
    // Another namespace has its own quotas.
    api.post("/api/v1/namespaces/kube-public/configmaps", &map("b")).await.ok();
}

#[tokio::test]
async fn pods_get_the_defaults_and_limits_of_their_limit_range() {
    let api = Api::new().await;
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r"},
        "spec": {"limits": [
            {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"}},
        ]},
    });
    api.post("/api/v1/namespaces/default/limitranges", &range).await.ok();
    let pod = |name: &str, resources: Value| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
        })
    };
    // The controller that creates default ServiceAccounts does not run here.
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
    api.post("/api/v1/namespaces/default/serviceaccounts", &account).await;
    let created = api.post(PODS, &pod("p", json!({}))).await.ok();
    assert_eq!(
        created["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}})
    );
    assert_eq!(
        created["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    assert_eq!(created["status"]["qosClass"], "Burstable");
    let (code, message) =
        api.post(PODS, &pod("q", json!({"limits": {"cpu": "2"}}))).await.refused();
    assert_eq!(
        (code, message.as_str()),
        (403, "pods \"q\" is forbidden: maximum cpu usage per Container is 1, but limit is 2")
    );
}
