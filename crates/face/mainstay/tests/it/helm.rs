//! Helm with two charts of our own (`crates/dev/conformance/charts`): one of workloads with hooks, a
//! look-up and a test, one with a CustomResourceDefinition.

use crate::harness::{Up, tls_cluster, until};
use mainstay_object::builtin::{
    CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT, JOB, NETWORK_POLICY, SECRET,
};
use mainstay_object::{Object, Resource};
use mainstay_testdata::{ran, skipped};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Helm, with folders of its own.
struct Helm {
    program: String,
    folder: PathBuf,
    kubeconfig: PathBuf,
}

impl Helm {
    /// Finds the program of `HELM`, else the one on PATH; without one, prints that and returns `None`.
    fn find(folder: &Path, kubeconfig: &Path) -> Option<Self> {
        let program = std::env::var("HELM").ok().filter(|program| !program.is_empty());
        let program = program.unwrap_or_else(|| "helm".to_owned());
        let version = Command::new(&program).args(["version", "--short"]).output();
        match version {
            Ok(output) if output.status.success() => {
                let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                ran(&format!("helm {version} with two charts"));
                let (folder, kubeconfig) = (folder.join("helm"), kubeconfig.to_owned());
                Some(Self { program, folder, kubeconfig })
            }
            _ => {
                skipped("helm with two charts: no helm on PATH, and none named by HELM");
                None
            }
        }
    }

    fn output(&self, line: &str) -> Output {
        let charts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dev/conformance/charts");
        Command::new(&self.program)
            .args(line.split(' '))
            .args(["--namespace", "team"])
            .current_dir(charts)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HELM_CACHE_HOME", self.folder.join("cache"))
            .env("HELM_CONFIG_HOME", self.folder.join("config"))
            .env("HELM_DATA_HOME", self.folder.join("data"))
            .output()
            .expect("helm starts")
    }

    /// A call that must succeed; returns its output.
    fn run(&self, line: &str) -> String {
        let output = self.output(line);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "helm {line} failed:\n{stdout}{stderr}");
        stdout
    }

    /// A call that must fail; returns its error output.
    fn refused(&self, line: &str) -> String {
        let output = self.output(line);
        assert!(!output.status.success(), "helm {line} should have failed");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Revision and status of every release, as `web 2 deployed`.
    fn list(&self) -> Vec<String> {
        let list: Value = serde_json::from_str(&self.run("list --all -o json")).expect("JSON");
        let word =
            |release: &Value, key: &str| release[key].as_str().unwrap_or_default().to_owned();
        let releases = list.as_array().expect("a list").iter();
        releases
            .map(|release| ["name", "revision", "status"].map(|key| word(release, key)).join(" "))
            .collect()
    }

    /// The status of every revision of a release.
    fn history(&self, release: &str) -> Vec<String> {
        let line = format!("history {release} -o json");
        let history: Value = serde_json::from_str(&self.run(&line)).expect("JSON");
        let revisions = history.as_array().expect("a list").iter();
        revisions
            .map(|revision| revision["status"].as_str().unwrap_or_default().to_owned())
            .collect()
    }
}

const SHAPE: Resource = Resource::namespaced("charts.example.com", "v1", "Shape", "shapes");

#[tokio::test]
async fn two_charts_install_upgrade_and_uninstall() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory"]);
    let Some(helm) = Helm::find(folder.path(), &up.kubeconfig) else { return };
    let cluster = tls_cluster(&up.kubeconfig).await;
    workload_chart(&helm, &cluster).await;
    crd_chart(&helm, &cluster).await;
}

/// The objects of a kind in a namespace, without those of every namespace.
async fn names(cluster: &mainstay_client::Cluster, resource: &Resource) -> Vec<String> {
    let everything = mainstay_client::ObjectList::default();
    let list = cluster.list(resource, Some("team"), &everything).await.expect("a list");
    let names = list.items.iter().map(|object| object.name().to_owned());
    names.filter(|name| !["kube-root-ca.crt", "default"].contains(&name.as_str())).collect()
}

/// The Deployment once its rollout is over: Helm waits for the new pods, not for the end of the old.
async fn rolled_out(cluster: &mainstay_client::Cluster, replicas: i64) -> Object {
    until(cluster, &DEPLOYMENT, Some("team"), |web| {
        let over = ["replicas", "updatedReplicas", "readyReplicas"]
            .iter()
            .all(|count| web.i64(&["status", count]) == Some(replicas));
        over.then(|| web.clone())
    })
    .await
}

async fn workload_chart(helm: &Helm, cluster: &mainstay_client::Cluster) {
    let get = async |resource: &Resource| -> Object {
        let found = cluster.find(resource, Some("team"), "web").await.expect("an answer");
        found.expect("the chart's object is there")
    };

    let said = helm.run("install web plain --create-namespace --wait --timeout 60s");
    assert!(said.contains("STATUS: deployed"), "{said}");
    assert!(said.contains("web says hello with 1 replicas."), "{said}");
    let first = get(&DEPLOYMENT).await;
    assert_eq!(first.i64(&["status", "readyReplicas"]), Some(1));
    assert_eq!(names(cluster, &JOB).await, Vec::<String>::new(), "the hook's Job is gone");
    let password = get(&SECRET).await.get(&["data", "password"]).cloned();
    assert!(password.is_some());
    let tested = helm.run("test web --timeout 60s");
    assert!(tested.contains("Phase:          Succeeded"), "{tested}");

    let line = "upgrade web plain --set replicas=3,greeting=hi,careful=false --wait --timeout 60s";
    assert!(helm.run(line).contains("web says hi with 3 replicas."));
    let second = rolled_out(cluster, 3).await;
    assert_eq!(second.uid(), first.uid(), "changed in place");
    assert_eq!(get(&SECRET).await.get(&["data", "password"]), password.as_ref(), "looked up");
    assert_eq!(
        names(cluster, &NETWORK_POLICY).await,
        Vec::<String>::new(),
        "no longer in the chart"
    );
    assert_eq!(helm.history("web"), ["superseded", "deployed"]);

    let refused = helm.refused("upgrade web plain --set replicas=-1");
    assert!(
        refused.contains("spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        "{refused}"
    );
    assert_eq!(helm.list(), ["web 3 failed"]);

    helm.run("rollback web 1 --wait --timeout 60s");
    rolled_out(cluster, 1).await;
    assert_eq!(names(cluster, &NETWORK_POLICY).await, ["web"]);
    assert_eq!(helm.history("web"), ["superseded", "superseded", "failed", "deployed"]);
    let status = helm.run("status web");
    assert!(status.contains("REVISION: 4"), "{status}");
    assert!(helm.run("get manifest web").contains("kind: NetworkPolicy"));

    let said = helm.run("uninstall web --wait --timeout 60s");
    assert!(said.contains("release \"web\" uninstalled"), "{said}");
    assert_eq!(helm.list(), Vec::<String>::new());
    assert_eq!(names(cluster, &DEPLOYMENT).await, Vec::<String>::new());
    assert_eq!(names(cluster, &SECRET).await, Vec::<String>::new());
    assert_eq!(names(cluster, &CONFIG_MAP).await, ["web-farewell"], "a hook's object stays");
}

async fn crd_chart(helm: &Helm, cluster: &mainstay_client::Cluster) {
    let get = async || -> Option<Object> {
        cluster.find(&SHAPE, Some("team"), "c").await.expect("an answer")
    };
    helm.run("install c custom --wait --timeout 60s");
    let shape = get().await.expect("it is there");
    assert_eq!(
        shape.get(&["spec"]),
        Some(&json!({"size": 1, "color": "red", "corners": [
            {"name": "north", "angle": 90}, {"name": "south", "angle": 91}]}))
    );
    helm.run("upgrade c custom --set size=2");
    let refused = helm.refused("upgrade c custom --set size=2,color=blue");
    assert!(
        refused.contains(
            "spec.color: Unsupported value: \"blue\": supported values: \"red\", \"green\""
        ),
        "{refused}"
    );
    assert_eq!(helm.history("c"), ["superseded", "deployed", "failed"]);
    helm.run("rollback c 1 --wait --timeout 60s");
    let back = until(cluster, &SHAPE, Some("team"), |object| {
        (object.i64(&["spec", "size"]) == Some(1)).then(|| object.clone())
    })
    .await;
    assert_eq!(back.uid(), shape.uid());
    helm.run("uninstall c --wait --timeout 60s");
    assert!(get().await.is_none());
    let name = "shapes.charts.example.com";
    let kept = cluster.find(&CUSTOM_RESOURCE_DEFINITION, None, name).await;
    assert!(kept.expect("an answer").is_some(), "definitions are never removed by helm");
}
