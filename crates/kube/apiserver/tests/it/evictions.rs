//! Evictions and `PodDisruptionBudget`s.

use crate::harness::{Api, TestResponse};
use serde_json::{Value, json};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

async fn pod(api: &Api, name: &str, ready: &str) {
    let body = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    api.post(PODS, &body).await.ok();
    let status = json!({"status": {
        "phase": "Running", "conditions": [{"type": "Ready", "status": ready}],
    }});
    api.patch(&format!("{PODS}/{name}/status"), "merge", &status).await.ok();
}

async fn budget(api: &Api, name: &str, mut spec: Value) {
    spec["selector"] = json!({"matchLabels": {"a": "b"}});
    let body = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": spec,
    });
    api.post(BUDGETS, &body).await.ok();
}

async fn evict(api: &Api, name: &str, query: &str) -> TestResponse {
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    api.post(&format!("{PODS}/{name}/eviction{query}"), &body).await
}

fn cause(response: &TestResponse) -> String {
    let status = response.json();
    assert_eq!((response.code, &status["reason"]), (429, &json!("TooManyRequests")), "{status}");
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    assert_eq!(status["message"], message);
    assert_eq!(status["details"]["causes"][0]["reason"], "DisruptionBudget");
    status["details"]["causes"][0]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_budget_without_a_controller_is_computed_from_its_pods() {
    for (spec, needs) in [
        (json!({"minAvailable": 1}), 1),
        (json!({"minAvailable": "50%"}), 1),
        (json!({"maxUnavailable": 1}), 1),
        (json!({"maxUnavailable": "0%"}), 2),
    ] {
        let api = Api::new().await;
        pod(&api, "p", "True").await;
        pod(&api, "q", "True").await;
        budget(&api, "one", spec.clone()).await;
        if needs == 1 {
            assert_eq!(evict(&api, "p", "?dryRun=All").await, 201, "{spec}");
            assert_eq!(evict(&api, "p", "").await, 201, "{spec}");
        }
        // With `maxUnavailable`, the eviction also lowers the number of expected pods.
        if spec.get("maxUnavailable") == Some(&json!(1)) {
            continue;
        }
        let message = format!(
            "The disruption budget one needs {needs} healthy pods and has {needs} currently"
        );
        assert_eq!(cause(&evict(&api, "q", "").await), message, "{spec}");
    }
}

#[tokio::test]
async fn an_eviction_decrements_an_observed_budget() {
    let api = Api::new().await;
    pod(&api, "p", "True").await;
    pod(&api, "q", "True").await;
    budget(&api, "one", json!({"minAvailable": 1})).await;
    let path = format!("{BUDGETS}/one");
    let status = |observed: i64| {
        json!({"status": {
            "observedGeneration": observed, "disruptionsAllowed": 1, "currentHealthy": 2,
            "desiredHealthy": 1, "expectedPods": 2,
        }})
    };
    api.patch(&format!("{path}/status"), "merge", &status(1)).await.ok();
    assert_eq!(evict(&api, "p", "?dryRun=All").await, 201);
    assert_eq!(api.get(&path).await.ok()["status"]["disruptionsAllowed"], 1);
    assert_eq!(evict(&api, "p", "").await, 201);
    let kept = api.get(&path).await.ok();
    assert_eq!(kept["status"]["disruptionsAllowed"], 0);
    assert!(kept["status"]["disruptedPods"]["p"].is_string(), "{kept}");
    assert_eq!(kept["status"]["conditions"][0]["reason"], "InsufficientPods");
    let refused = cause(&evict(&api, "q", "").await);
    assert_eq!(refused, "The disruption budget one does not allow evicting pods currently");

    // A changed budget is not valid until its controller has observed it.
    let spec = json!({"spec": {"minAvailable": 2}});
    api.patch(&path, "merge", &spec).await.ok();
    let response = evict(&api, "q", "").await;
    let message = "The disruption budget one is still being processed by the server.";
    assert_eq!(cause(&response), message);
    assert_eq!(response.headers["retry-after"], "10");
    assert_eq!(response.json()["details"]["retryAfterSeconds"], 10);
}

#[tokio::test]
async fn unready_and_finished_pods_are_evicted_regardless_of_the_budget() {
    let api = Api::new().await;
    pod(&api, "p", "True").await;
    pod(&api, "sick", "False").await;
    budget(&api, "one", json!({"minAvailable": 1})).await;
    assert_eq!(evict(&api, "sick", "").await, 201, "enough others are healthy");
    assert_eq!(evict(&api, "p", "").await, 429);
    let ended = json!({"status": {"phase": "Succeeded"}});
    api.patch(&format!("{PODS}/p/status"), "merge", &ended).await.ok();
    assert_eq!(evict(&api, "p", "").await, 201);
    assert_eq!(evict(&api, "p", "").await, 404);
}

#[tokio::test]
async fn a_pod_with_two_budgets_is_not_evicted() {
    let api = Api::new().await;
    pod(&api, "p", "True").await;
    budget(&api, "one", json!({"minAvailable": 0})).await;
    budget(&api, "two", json!({"minAvailable": 0})).await;
    let (code, message) = evict(&api, "p", "").await.refused();
    let expected = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    assert_eq!((code, message.as_str()), (500, expected));
}

#[tokio::test]
async fn an_eviction_yields_while_it_reads_large_budgets() {
    const BUDGETS_READ: usize = 40;
    let api = Api::new().await;
    pod(&api, "p", "True").await;
    let values: Vec<String> = (0..2000).map(|at| format!("value-{at:05}")).collect();
    for at in 0..BUDGETS_READ {
        let selector =
            json!({"matchExpressions": [{"key": "a", "operator": "In", "values": values}]});
        let body = json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": format!("one-{at}")},
            "spec": {"minAvailable": 1, "selector": selector},
        });
        api.post(BUDGETS, &body).await.ok();
    }
    let mut turns = 0;
    let others = async {
        loop {
            turns += 1;
            tokio::task::yield_now().await;
        }
    };
    let response = tokio::select! {
        response = evict(&api, "p", "?dryRun=All") => response,
        () = others => unreachable!("the loop has no end"),
    };
    assert_eq!(response, 201);
    assert!(turns >= BUDGETS_READ, "{turns} turns");
}

#[tokio::test]
async fn an_evicted_pod_has_the_condition_disruption_target() {
    let api = Api::new().await;
    let body = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    });
    let created = api.post(PODS, &body).await.ok();
    let mut eviction =
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    eviction["deleteOptions"] = json!({"preconditions": {"resourceVersion": "1"}});
    let path = format!("{PODS}/p/eviction");
    let version = &created["metadata"]["resourceVersion"];
    assert_eq!(
        api.post(&path, &eviction).await.refused(),
        (
            409,
            format!(
                "Operation cannot be fulfilled on Pod \"p\": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({}). The object might have been modified",
                version.as_str().unwrap()
            )
        )
    );
    eviction["deleteOptions"] = json!({"preconditions": {"resourceVersion": version}});
    assert_eq!(api.post(&path, &eviction).await, 201);
    let going = api.get(&format!("{PODS}/p")).await.ok();
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    let conditions = going["status"]["conditions"].as_array().unwrap();
    let target = conditions.iter().find(|one| one["type"] == "DisruptionTarget").unwrap();
    assert_eq!(
        (&target["status"], &target["reason"], &target["message"]),
        (&json!("True"), &json!("EvictionByEvictionAPI"), &json!("Eviction API: evicting"))
    );
}
