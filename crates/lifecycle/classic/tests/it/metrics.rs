//! Metrics of the controllers.

use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster};
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::{DeleteOptions, Patch};
use mainstay_exposition::Page;
use serde_json::json;
use std::time::Duration;

fn metrics_page(olm: &OlmCluster) -> String {
    let mut page = Page::default();
    olm.write_metrics(&mut page);
    page.text()
}

/// Waits until the metrics contain all `wanted` lines; returns the lines of these names without
/// HELP and TYPE.
async fn wait_for_series(olm: &OlmCluster, names: &[&str], wanted: &[&str]) -> Vec<String> {
    let look = async {
        loop {
            let text = metrics_page(olm);
            let of_names = |line: &&str| {
                names.iter().any(|name| {
                    line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
                })
            };
            let lines: Vec<String> = text.lines().filter(of_names).map(str::to_owned).collect();
            if wanted.iter().all(|wanted_line| lines.iter().any(|line| line == wanted_line)) {
                return lines;
            }
            // The caches lag behind the API.
            tokio::task::yield_now().await;
        }
    };
    let found = tokio::time::timeout(Duration::from_mins(1), look).await;
    found.unwrap_or_else(|_| panic!("{wanted:?} did not come:\n{}", metrics_page(olm)))
}

const CSV_METRICS: &[&str] = &["csv_count", "csv_succeeded", "csv_abnormal", "csv_upgrade_count"];

#[tokio::test]
async fn csvs_are_counted_by_phase_and_a_restart_keeps_the_counts() {
    let mut olm = OlmCluster::start(&["1.0.0"]).await;
    olm.subscribe(json!({})).await;
    olm.apply_group("og").await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let succeeded = r#"csv_succeeded{name="anvil.v1.0.0",namespace="team",version="1.0.0"} 1"#;
    let lines = wait_for_series(&olm, CSV_METRICS, &[succeeded]).await;
    // shows MET-04 MET-05 E087
    assert_eq!(lines, ["csv_count 1", succeeded, "csv_upgrade_count 0"]);
    olm.stop_controllers().await;
    olm.start_controllers().await;
    // shows E087
    assert_eq!(wait_for_series(&olm, CSV_METRICS, &[succeeded]).await, lines);

    olm.publish(&["1.0.0", "1.1.0"]);
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
    let succeeded = r#"csv_succeeded{name="anvil.v1.1.0",namespace="team",version="1.1.0"} 1"#;
    let lines =
        wait_for_series(&olm, CSV_METRICS, &[succeeded, "csv_count 1", "csv_upgrade_count 1"])
            .await;
    // shows MET-06 AT-MET-02
    assert_eq!(lines, ["csv_count 1", succeeded, "csv_upgrade_count 1"]);

    olm.apply_group("second").await;
    olm.wait_for_csv("anvil.v1.1.0", "Failed", "TooManyOperatorGroups").await;
    let bad = r#"csv_abnormal{name="anvil.v1.1.0",namespace="team",phase="Failed",reason="TooManyOperatorGroups",version="1.1.0"} 1"#;
    let zero = r#"csv_succeeded{name="anvil.v1.1.0",namespace="team",version="1.1.0"} 0"#;
    let lines = wait_for_series(&olm, CSV_METRICS, &[bad]).await;
    // shows MET-03 MET-05 AT-MET-01 E087
    assert_eq!(lines, ["csv_count 1", zero, bad, "csv_upgrade_count 1"]);

    // The abnormal series ends when the CSV succeeds again and when it is deleted.
    let cluster = olm.cluster.cluster();
    let params = DeleteOptions::default();
    cluster.delete(&OPERATOR_GROUP, Some("team"), "second", &params).await.unwrap();
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    let lines = wait_for_series(&olm, CSV_METRICS, &[succeeded]).await;
    // shows MET-03 AT-MET-01
    assert_eq!(lines, ["csv_count 1", succeeded, "csv_upgrade_count 1"]);
    olm.apply_group("third").await;
    olm.wait_for_csv("anvil.v1.1.0", "Failed", "TooManyOperatorGroups").await;
    wait_for_series(&olm, CSV_METRICS, &[bad]).await;
    for (kind, name) in [(&SUBSCRIPTION, "anvil"), (&CLUSTER_SERVICE_VERSION, "anvil.v1.1.0")] {
        cluster.delete(kind, Some("team"), name, &params).await.unwrap();
    }
    olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.1.0").await;
    let lines = wait_for_series(&olm, CSV_METRICS, &["csv_count 0"]).await;
    // shows MET-03 E087
    assert_eq!(lines, ["csv_count 0", "csv_upgrade_count 1"]);
}

#[tokio::test]
async fn subscription_has_one_metric_series_until_it_is_deleted() {
    const SYNCS: &[&str] = &["subscription_sync_total"];
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let only = |labels: &str| {
        let start = format!("subscription_sync_total{{{labels}}} ");
        move |lines: &[String]| lines.len() == 1 && lines[0].starts_with(&start)
    };
    let until = async |predicate: &dyn Fn(&[String]) -> bool| {
        let look = async {
            while !predicate(&wait_for_series(&olm, SYNCS, &[]).await) {
                tokio::task::yield_now().await;
            }
        };
        let found = tokio::time::timeout(Duration::from_mins(1), look).await;
        assert!(found.is_ok(), "{}", metrics_page(&olm));
    };
    let automatic =
        r#"approval="",channel="stable",installed="anvil.v1.0.0",name="anvil",package="anvil""#;
    // shows MET-11 AT-MET-02 E087
    until(&only(automatic)).await;
    let manual = Patch::Merge(json!({"spec": {"installPlanApproval": "Manual"}}));
    let cluster = olm.cluster.cluster();
    cluster.patch(&SUBSCRIPTION, Some("team"), "anvil", &manual).await.unwrap();
    let manually = automatic.replace(r#"approval="""#, r#"approval="Manual""#);
    // shows E087
    until(&only(&manually)).await;
    let moved = Patch::Merge(json!({"spec": {"channel": "beta"}}));
    cluster.patch(&SUBSCRIPTION, Some("team"), "anvil", &moved).await.unwrap();
    // shows E087
    until(&only(&manually.replace("stable", "beta"))).await;
    let params = DeleteOptions::default();
    cluster.delete(&SUBSCRIPTION, Some("team"), "anvil", &params).await.unwrap();
    // shows E087
    until(&|lines| lines.is_empty()).await;
}

#[tokio::test]
async fn catalog_sources_are_counted_by_readiness() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    let names = &["catalogsource_ready", "catalog_source_snapshots_total", "catalog_source_count"];
    let ready = format!(r#"catalogsource_ready{{name="cat",namespace="{CATALOG_NAMESPACE}"}} 1"#);
    let taken = format!(
        r#"catalog_source_snapshots_total{{name="cat",namespace="{CATALOG_NAMESPACE}"}} 1"#
    );
    let lines = wait_for_series(&olm, names, &[&ready]).await;
    // shows MET-01 MET-02 E087
    assert_eq!(lines, ["catalog_source_count 1", &ready, &taken]);
    olm.publish(&["1.0.0", "1.1.0"]);
    wait_for_series(&olm, names, &[&taken.replace("} 1", "} 2")]).await;
    let lost = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "lost", "namespace": "team"},
        "spec": {"sourceType": "configmap", "configMap": "nowhere"},
    });
    olm.cluster.apply(mainstay_object::Object::from_value(lost).unwrap()).await;
    let not_ready = r#"catalogsource_ready{name="lost",namespace="team"} 0"#;
    // shows MET-01 MET-02 E087
    wait_for_series(&olm, names, &[not_ready, "catalog_source_count 2"]).await;
    let params = DeleteOptions::default();
    let cluster = olm.cluster.cluster();
    cluster.delete(&CATALOG_SOURCE, Some("team"), "lost", &params).await.unwrap();
    let lines = wait_for_series(&olm, names, &["catalog_source_count 1"]).await;
    // shows E087
    assert_eq!(lines.len(), 3, "{lines:?}");
}

#[tokio::test]
async fn resolutions_and_work_queues_have_metrics() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let text = metrics_page(&olm);
    let value = |series: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{series} is missing:\n{text}")).parse().unwrap()
    };
    // shows MET-10 E087
    assert!(value(r#"olm_resolution_duration_seconds_count{outcome="succeeded"}"#) >= 1.0);
    assert!(value(r#"olm_resolution_duration_seconds{outcome="succeeded",quantile="0.95"}"#) > 0.0);
    for series in ["workqueue_adds_total", "workqueue_work_duration_seconds_count"] {
        assert!(value(&format!(r#"{series}{{name="csv"}}"#)) >= 1.0);
    }
    for line in ["installplan_warnings_total 0", "subscription_count 1", "install_plan_count 1"] {
        // shows MET-07..MET-09
        assert!(text.contains(&format!("\n{line}\n")), "{text}");
    }
}
