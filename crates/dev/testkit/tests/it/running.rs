//! Tests of other workloads, Services and nodes.

use crate::helpers::{deployment, list_by_label};
use jiff::SignedDuration;
use mainstay_client::{DeleteOptions, ObjectList, Patch};
use mainstay_clock::{Clock, RECHECK_INTERVAL};
use mainstay_object::{Object, builtin};
use mainstay_testkit::{TestCluster, TestClusterSettings};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_job_completes_and_one_that_crashes_fails() {
    let cluster = TestCluster::start().await;
    let job = |name: &str, annotations: &str| {
        format!(
            "
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}}}
spec:
  completions: 3
  parallelism: 2
  backoffLimit: 0
  template:
    metadata: {{annotations: {{{annotations}}}}}
    spec: {{restartPolicy: Never, containers: [{{name: main, image: a}}]}}
"
        )
    };
    cluster.apply_yaml(&job("good", "")).await;
    let good = cluster.wait_for_condition(&builtin::JOB, Some("default"), "good", "Complete").await;
    assert_eq!(good.i64(&["status", "succeeded"]), Some(3));
    assert!(good.str(&["status", "completionTime"]).is_some());
    cluster.apply_yaml(&job("bad", "mainstay.dev/simulate: crash")).await;
    let bad = cluster.wait_for_condition(&builtin::JOB, Some("default"), "bad", "Failed").await;
    let conditions = bad.array(&["status", "conditions"]);
    let failed = mainstay_client::conditions::find(conditions, "Failed").unwrap();
    assert_eq!(failed["reason"], "BackoffLimitExceeded");
}

#[tokio::test]
async fn pods_of_a_deleted_job_are_deleted_before_they_were_counted() {
    let cluster = TestCluster::start().await;
    cluster
        .apply_yaml(
            "
apiVersion: batch/v1
kind: Job
metadata: {name: runs}
spec:
  template:
    metadata: {annotations: {mainstay.dev/simulate: run}, labels: {app: runs}}
    spec: {restartPolicy: Never, containers: [{name: main, image: a}]}
",
        )
        .await;
    cluster
        .wait_for(&builtin::JOB, Some("default"), "runs", |job| {
            job.i64(&["status", "ready"]) == Some(1)
        })
        .await;
    let pod = list_by_label(&cluster, &builtin::POD, "app=runs").await.remove(0);
    assert_eq!(pod.finalizers().collect::<Vec<_>>(), ["batch.kubernetes.io/job-tracking"]);
    let background = DeleteOptions::default().propagation(mainstay_client::Propagation::Background);
    let api = cluster.cluster();
    api.delete(&builtin::JOB, Some("default"), "runs", &background).await.unwrap();
    cluster.wait_gone(&builtin::POD, Some("default"), pod.name()).await;
}

#[tokio::test]
async fn replication_controller_replaces_and_releases_relabelled_pods() {
    let cluster = TestCluster::start().await;
    cluster
        .apply_yaml(
            "
apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec:
  replicas: 2
  selector: {app: old}
  template:
    metadata: {labels: {app: old}}
    spec: {containers: [{name: main, image: a}]}
",
        )
        .await;
    let ready = |controller: &Object| controller.i64(&["status", "readyReplicas"]) == Some(2);
    let resource = &builtin::REPLICATION_CONTROLLER;
    cluster.wait_for(resource, Some("default"), "old", ready).await;
    let pod = list_by_label(&cluster, &builtin::POD, "app=old").await.remove(0);
    let patch = Patch::Merge(json!({"metadata": {"labels": {"app": "stranger"}}}));
    let api = cluster.cluster();
    api.patch(&builtin::POD, Some("default"), pod.name(), &patch).await.unwrap();
    cluster
        .wait_for(&builtin::POD, Some("default"), pod.name(), |pod| {
            pod.controller_owner().is_none()
        })
        .await;
    cluster.wait_for(resource, Some("default"), "old", ready).await;
}

#[tokio::test]
async fn a_stateful_set_has_named_pods_and_a_daemon_set_one_on_each_node() {
    let cluster =
        TestCluster::with(TestClusterSettings { nodes: 3, ..TestClusterSettings::default() }).await;
    cluster
        .apply_yaml(
            "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: main, image: a}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main, image: a}]}
",
        )
        .await;
    cluster
        .wait_for(&builtin::STATEFUL_SET, Some("default"), "db", |stateful_set| {
            stateful_set.i64(&["status", "readyReplicas"]) == Some(3)
        })
        .await;
    cluster
        .wait_for(&builtin::DAEMON_SET, Some("default"), "agent", |daemon_set| {
            daemon_set.i64(&["status", "numberAvailable"]) == Some(3)
        })
        .await;
    let names: Vec<String> = list_by_label(&cluster, &builtin::POD, "app=db")
        .await
        .iter()
        .map(|pod| pod.name().to_owned())
        .collect();
    assert_eq!(names, ["db-0", "db-1", "db-2"]);
    let mut nodes: Vec<String> = list_by_label(&cluster, &builtin::POD, "app=agent")
        .await
        .iter()
        .map(|pod| pod.str(&["spec", "nodeName"]).unwrap().to_owned())
        .collect();
    nodes.sort();
    assert_eq!(nodes, ["node-1", "node-2", "node-3"]);
}

#[tokio::test]
async fn a_service_lists_ready_pods_and_drops_others() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml(&deployment("web", 2, "a")).await;
    cluster
        .apply_yaml("{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80, targetPort: http}]}}")
        .await;
    let ready = |count: usize| {
        move |endpoints: &Object| {
            let subset = endpoints.array(&["subsets"]).first();
            let addresses = subset.and_then(|subset| subset["addresses"].as_array());
            addresses.map_or(0, Vec::len) == count
        }
    };
    let endpoints = cluster.wait_for(&builtin::ENDPOINTS, Some("default"), "web", ready(2)).await;
    assert_eq!(endpoints.array(&["subsets"])[0]["ports"][0]["port"], 8080);
    let labels = "kubernetes.io/service-name=web";
    let slices = list_by_label(&cluster, &builtin::ENDPOINT_SLICE, labels).await;
    assert_eq!(slices.len(), 1);
    let name = endpoints.array(&["subsets"])[0]["addresses"][0]["targetRef"]["name"].clone();
    let sick =
        Patch::Merge(json!({"metadata": {"annotations": {"mainstay.dev/simulate": "not-ready"}}}));
    let api = cluster.cluster();
    api.patch(&builtin::POD, Some("default"), name.as_str().unwrap(), &sick).await.unwrap();
    cluster.wait_for(&builtin::ENDPOINTS, Some("default"), "web", ready(1)).await;
}

#[tokio::test]
async fn unschedulable_pod_reports_the_reason_and_is_scheduled_later() {
    let cluster =
        TestCluster::with(TestClusterSettings { nodes: 2, ..TestClusterSettings::default() }).await;
    cluster
        .apply_yaml(
            "{apiVersion: v1, kind: Pod, metadata: {name: picky}, spec: {nodeSelector: {disk: ssd}, containers: [{name: main, image: a}]}}",
        )
        .await;
    // The pod may be created before the nodes, or before they are ready: its reason follows them.
    let why = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";
    cluster
        .wait_for(&builtin::POD, Some("default"), "picky", |pod| {
            let conditions = pod.array(&["status", "conditions"]);
            mainstay_client::conditions::find(conditions, "PodScheduled").is_some_and(|condition| {
                condition["status"] == "False" && condition["message"] == why
            })
        })
        .await;
    let patch = Patch::Merge(json!({"metadata": {"labels": {"disk": "ssd"}}}));
    cluster.cluster().patch(&builtin::NODE, None, "node-2", &patch).await.unwrap();
    let pod = cluster.wait_for_condition(&builtin::POD, Some("default"), "picky", "Ready").await;
    assert_eq!(pod.str(&["spec", "nodeName"]), Some("node-2"));
}

#[tokio::test]
async fn a_node_that_is_tainted_loses_its_pods_to_another() {
    let cluster =
        TestCluster::with(TestClusterSettings { nodes: 2, ..TestClusterSettings::default() }).await;
    cluster.apply_yaml(&deployment("web", 1, "a")).await;
    let web = |deployment: &Object| deployment.i64(&["status", "availableReplicas"]) == Some(1);
    cluster.wait_for(&builtin::DEPLOYMENT, Some("default"), "web", web).await;
    let pod = list_by_label(&cluster, &builtin::POD, "app=web").await.remove(0);
    let node = pod.str(&["spec", "nodeName"]).unwrap().to_owned();
    let taint = Patch::Merge(json!({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}));
    cluster.cluster().patch(&builtin::NODE, None, &node, &taint).await.unwrap();
    cluster.wait_gone(&builtin::POD, Some("default"), pod.name()).await;
    cluster
        .wait_for_all(mainstay_client::Selection::all(builtin::POD), |pods| {
            pods.iter().any(|pod| {
                pod.condition("Ready") == Some("True")
                    && pod.str(&["spec", "nodeName"]) != Some(&node)
            })
        })
        .await;
    // The annotation makes the node report trouble; removing it heals the node.
    let tell = |value: Option<&str>| {
        Patch::Merge(json!({"metadata": {"annotations": {"mainstay.dev/simulate": value}}}))
    };
    for (value, ready, taints) in [(Some("not-ready"), "False", 3), (None, "True", 1)] {
        cluster.cluster().patch(&builtin::NODE, None, &node, &tell(value)).await.unwrap();
        cluster
            .wait_for(&builtin::NODE, None, &node, |node| {
                node.condition("Ready") == Some(ready)
                    && node.array(&["spec", "taints"]).len() == taints
            })
            .await;
    }
}

#[tokio::test]
async fn pod_disruption_budget_reports_allowed_disruptions() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml(&deployment("web", 3, "a")).await;
    cluster
        .apply_yaml("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}}")
        .await;
    let budget = cluster
        .wait_for(&builtin::POD_DISRUPTION_BUDGET, Some("default"), "web", |budget| {
            budget.i64(&["status", "disruptionsAllowed"]) == Some(1)
        })
        .await;
    assert_eq!(budget.i64(&["status", "expectedPods"]), Some(3));
    assert_eq!(budget.i64(&["status", "desiredHealthy"]), Some(2));
    assert_eq!(budget.condition("DisruptionAllowed"), Some("True"));
}

#[tokio::test]
async fn a_cron_job_starts_a_job_for_the_minute_that_was_missed() {
    let cluster = TestCluster::start().await;
    cluster
        .apply_yaml(
            "
apiVersion: batch/v1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: '@every 1s'
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: main, image: a}]}
",
        )
        .await;
    let cron = cluster
        .wait_for(&builtin::CRON_JOB, Some("default"), "tick", |cron_job| {
            cron_job.str(&["status", "lastSuccessfulTime"]).is_some()
        })
        .await;
    let minute = cluster.clock().now().as_second() / 60;
    let jobs = list_by_label(&cluster, &builtin::JOB, "").await;
    assert!(jobs.iter().all(|job| job.name() == format!("tick-{minute}")
        || job.name() == format!("tick-{}", minute - 1)));
    assert_eq!(jobs[0].controller_owner().unwrap().uid, cron.uid());
}

#[tokio::test(start_paused = true)]
async fn schedules_and_lifetimes_follow_the_wall_clock_over_a_suspend() {
    let (clock, clock_hands) = Clock::adjustable("2026-01-02T03:04:05Z".parse().unwrap());
    let cluster =
        TestCluster::with(TestClusterSettings { clock, ..TestClusterSettings::default() }).await;
    cluster
        .apply_yaml(
            "
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: 0 4 * * *
  jobTemplate:
    spec:
      template:
        metadata: {annotations: {mainstay.dev/simulate: run}}
        spec: {restartPolicy: Never, containers: [{name: main, image: a}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: brief}
spec:
  ttlSecondsAfterFinished: 3000
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: a}]}
",
        )
        .await;
    let namespace = Some("default");
    cluster.wait_for_condition(&builtin::JOB, namespace, "brief", "Complete").await;
    clock_hands.suspend(Duration::from_hours(1));
    tokio::time::sleep(RECHECK_INTERVAL).await;
    cluster
        .wait_for(&builtin::CRON_JOB, namespace, "nightly", |cron| {
            cron.str(&["status", "lastScheduleTime"]) == Some("2026-01-02T04:00:00Z")
        })
        .await;
    cluster.wait_gone(&builtin::JOB, namespace, "brief").await;
    // Set back before the schedule: a started Job is not started again when its time comes again.
    clock_hands.step(SignedDuration::from_mins(-10));
    tokio::time::sleep(Duration::from_mins(20)).await;
    let jobs =
        cluster.cluster().list(&builtin::JOB, namespace, &ObjectList::default()).await.unwrap();
    assert_eq!(jobs.items.len(), 1, "{jobs:?}");
}

#[tokio::test(start_paused = true)]
async fn job_commands_take_simulated_time_so_deadlines_and_concurrency_apply() {
    let (clock, _hands) = Clock::adjustable("2026-01-02T03:04:05Z".parse().unwrap());
    let cluster =
        TestCluster::with(TestClusterSettings { clock, ..TestClusterSettings::default() }).await;
    cluster
        .apply_yaml(
            "
apiVersion: batch/v1
kind: CronJob
metadata: {name: often}
spec:
  schedule: '* * * * *'
  concurrencyPolicy: Allow
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers: [{name: main, image: a, command: [sleep, '300']}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: late}
spec:
  activeDeadlineSeconds: 10
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: a, command: [sh, -c, 'sleep 100; exit 0']}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: fails}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: a, command: [sh, -c, 'sleep 5; exit 7']}]
",
        )
        .await;
    let namespace = Some("default");
    let failed = cluster.wait_for_condition(&builtin::JOB, namespace, "fails", "Failed").await;
    let reason = |job: &Object| {
        let conditions = job.array(&["status", "conditions"]);
        mainstay_client::conditions::find(conditions, "Failed").unwrap()["reason"].clone()
    };
    assert_eq!(reason(&failed), "BackoffLimitExceeded");
    let late = cluster.wait_for_condition(&builtin::JOB, namespace, "late", "Failed").await;
    assert_eq!(reason(&late), "DeadlineExceeded");
    cluster
        .wait_for(&builtin::CRON_JOB, namespace, "often", |cron| {
            cron.array(&["status", "active"]).len() >= 2
        })
        .await;
}

#[tokio::test]
async fn ephemeral_container_of_a_running_pod_runs() {
    let cluster = TestCluster::start().await;
    cluster
        .apply_yaml("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: main, image: a}]}}")
        .await;
    let running = |pod: &Object| pod.str(&["status", "phase"]) == Some("Running");
    cluster.wait_for(&builtin::POD, Some("default"), "p", running).await;
    let api = cluster.cluster();
    let mut pod = api.get(&builtin::POD, Some("default"), "p").await.unwrap();
    let debugger = json!([{"name": "debugger", "image": "d", "targetContainerName": "main"}]);
    pod.set(&["spec", "ephemeralContainers"], debugger);
    api.update_subresource(&builtin::POD, "ephemeralcontainers", &pod).await.unwrap();
    cluster
        .wait_for(&builtin::POD, Some("default"), "p", |pod| {
            let all = pod.array(&["status", "ephemeralContainerStatuses"]);
            all.first().is_some_and(|status| status["state"].get("running").is_some())
        })
        .await;
}

#[tokio::test]
async fn disrupted_pods_written_by_a_client_stay_until_the_pods_are_deleted() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml(&deployment("web", 2, "a")).await;
    cluster
        .apply_yaml("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}}")
        .await;
    let (budgets, namespace) = (&builtin::POD_DISRUPTION_BUDGET, Some("default"));
    let allowed = |count: i64| {
        move |budget: &Object| budget.i64(&["status", "disruptionsAllowed"]) == Some(count)
    };
    cluster.wait_for(budgets, namespace, "web", allowed(1)).await;
    let pod = list_by_label(&cluster, &builtin::POD, "app=web").await.remove(0);
    let taken = json!({"status": {"disruptedPods": {(pod.name()): cluster.clock().now_rfc3339()}}});
    let api = cluster.cluster();
    api.patch_status(budgets, namespace, "web", &Patch::Merge(taken)).await.unwrap();
    let budget = cluster.wait_for(budgets, namespace, "web", allowed(0)).await;
    assert!(budget.get(&["status", "disruptedPods", pod.name()]).is_some(), "{budget:?}");
    api.delete(&builtin::POD, namespace, pod.name(), &DeleteOptions::default()).await.unwrap();
    let budget = cluster.wait_for(budgets, namespace, "web", allowed(1)).await;
    assert!(budget.get(&["status", "disruptedPods"]).is_none(), "{budget:?}");
}
