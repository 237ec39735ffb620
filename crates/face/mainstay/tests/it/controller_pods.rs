//! The Deployments that represent the controllers of `mainstay up`.

use crate::harness::{Kubectl, Up, tls_cluster, until};
use mainstay_object::{Object, builtin};

#[tokio::test(flavor = "multi_thread")]
async fn controller_pods_are_ready_and_serve_metrics_on_olms_ports() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data").display().to_string();
    let up = Up::start(folder.path(), &["--data-dir", &data]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    let mut pods = Vec::new();
    for app in ["olm-operator", "catalog-operator"] {
        let ready = |pod: &Object| {
            let is_one = pod.label("app") == Some(app) && pod.condition("Ready") == Some("True");
            is_one.then(|| pod.name().to_owned())
        };
        pods.push(until(&cluster, &builtin::POD, Some("olm"), ready).await);
    }
    if let Some(kubectl) = Kubectl::find(&up.kubeconfig, "metrics of the controllers' pods") {
        for (pod, series) in pods.iter().zip(["csv_count 0", "subscription_count 0"]) {
            for port in ["8443", "8080"] {
                let path = format!("/api/v1/namespaces/olm/pods/http:{pod}:{port}/proxy/metrics");
                let page = kubectl.run(&["get", "--raw", &path], "");
                assert!(page.contains(&format!("\n{series}\n")), "{page}");
            }
            let path = format!("/api/v1/namespaces/olm/pods/{pod}:8443/proxy/healthz");
            assert_eq!(kubectl.run(&["get", "--raw", &path], ""), "ok");
        }
        kubectl.run(&["-n", "olm", "rollout", "status", "deployment/catalog-operator"], "");
        let log = kubectl.run(&["-n", "olm", "logs", "deployment/olm-operator"], "");
        assert!(log.contains("their log is its standard error"), "{log}");
    }
    assert!(up.stop("TERM").0);
    // On a bare cluster the Deployments are gone.
    let up = Up::start(folder.path(), &["--data-dir", &data, "--bare"]);
    let cluster = tls_cluster(&up.kubeconfig).await;
    let found = cluster.find(&builtin::DEPLOYMENT, Some("olm"), "olm-operator").await;
    assert_eq!(found.expect("an answer"), None);
}
