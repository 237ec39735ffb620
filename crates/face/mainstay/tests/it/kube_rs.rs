//! kube-rs as operators written in Rust use it: typed objects, watchers, finalizers; over TLS and
//! in-process without a socket.

use crate::harness::{Up, tls_client};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Event as Ending, finalizer};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use mainstay_testkit::TestCluster;
use serde_json::json;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

#[tokio::test]
async fn over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory"]);
    let client = tls_client(&up.kubeconfig).await;
    objects(&client).await;
    watchers(&client, watcher::Config::default()).await;
    watchers(&client, watcher::Config::default().streaming_lists()).await;
    finalizers(&client).await;
    discovery(&client).await;
}

#[tokio::test]
async fn in_process() {
    let cluster = TestCluster::start().await;
    let client = cluster.kube_client();
    objects(&client).await;
    watchers(&client, watcher::Config::default()).await;
    watchers(&client, watcher::Config::default().streaming_lists()).await;
    finalizers(&client).await;
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "1"}}))
        .expect("a ConfigMap")
}

/// Every verb of a typed [`Api`].
async fn objects(client: &Client) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    assert!(
        namespaces
            .list(&ListParams::default())
            .await
            .expect("a list")
            .iter()
            .any(|ns| ns.name_any() == "default")
    );
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let created = maps.create(&PostParams::default(), &config_map("typed")).await.expect("created");
    assert!(created.uid().is_some() && created.resource_version().is_some());
    let twice = maps.create(&PostParams::default(), &config_map("typed")).await;
    assert!(matches!(twice, Err(kube::Error::Api(status)) if status.is_already_exists()));
    let patch = Patch::Merge(json!({"data": {"b": "2"}}));
    let patched = maps.patch("typed", &PatchParams::default(), &patch).await.expect("patched");
    assert_eq!(patched.data.expect("data").len(), 2);
    let stale = maps.replace("typed", &PostParams::default(), &created).await;
    assert!(matches!(stale, Err(kube::Error::Api(status)) if status.is_conflict()));
    let metadata = maps.get_metadata("typed").await.expect("metadata only");
    assert_eq!(metadata.name_any(), "typed");
    maps.delete("typed", &DeleteParams::default()).await.expect("deleted");
    assert!(maps.get_opt("typed").await.expect("an answer").is_none());
    let page = maps.list(&ListParams::default().limit(1)).await.expect("a page");
    assert!(page.items.len() <= 1);
}

/// A watcher receives the existing objects, then every change, in order.
async fn watchers(client: &Client, config: watcher::Config) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    maps.create(&PostParams::default(), &config_map("before")).await.expect("created");
    let mut events = pin!(watcher(maps.clone(), config.fields("metadata.name!=kube-root-ca.crt")));
    let mut started = Vec::new();
    loop {
        match events.try_next().await.expect("an event").expect("the watcher goes on") {
            Event::Init => {}
            Event::InitApply(object) => started.push(object.name_any()),
            Event::InitDone => break,
            Event::Apply(_) | Event::Delete(_) => {
                panic!("a change before the initial list was done")
            }
        }
    }
    assert_eq!(started, ["before"]);
    maps.create(&PostParams::default(), &config_map("during")).await.expect("created");
    maps.delete("before", &DeleteParams::default()).await.expect("deleted");
    maps.delete("during", &DeleteParams::default()).await.expect("deleted");
    let seen: Vec<String> = events
        .take(3)
        .map(|event| match event.expect("an event") {
            Event::Apply(object) => format!("+{}", object.name_any()),
            Event::Delete(object) => format!("-{}", object.name_any()),
            other => panic!("{other:?}"),
        })
        .collect()
        .await;
    assert_eq!(seen, ["+during", "-before", "-during"]);
}

/// A finalizer holds an object until its cleanup is done.
async fn finalizers(client: &Client) {
    const NAME: &str = "tests.example.com/cleanup";
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    maps.create(&PostParams::default(), &config_map("held")).await.expect("created");
    let pass = async |object: ConfigMap, expected: &'static str| {
        let step = finalizer(&maps, NAME, Arc::new(object), |event| async move {
            let step = match event {
                Ending::Apply(_) => "apply",
                Ending::Cleanup(_) => "cleanup",
            };
            assert_eq!(step, expected);
            Ok::<_, Infallible>(Action::await_change())
        });
        step.await.expect("the pass works");
    };
    // The first pass only adds the finalizer.
    pass(maps.get("held").await.expect("there"), "nothing yet").await;
    pass(maps.get("held").await.expect("there"), "apply").await;
    maps.delete("held", &DeleteParams::default()).await.expect("deletion begins");
    let held = maps.get("held").await.expect("still there");
    assert!(held.metadata.deletion_timestamp.is_some());
    pass(held, "cleanup").await;
    assert!(maps.get_opt("held").await.expect("an answer").is_none());
}

/// Discovery in both forms, and a custom kind by its name.
async fn discovery(client: &Client) {
    for discovery in [
        kube::Discovery::new(client.clone()).run().await.expect("legacy discovery"),
        kube::Discovery::new(client.clone()).run_aggregated().await.expect("aggregated discovery"),
    ] {
        let kind = GroupVersionKind::gvk("operators.coreos.com", "v1", "OLMConfig");
        let (resource, _) = discovery.resolve_gvk(&kind).expect("our kinds are discovered");
        let configs: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        assert_eq!(configs.get("cluster").await.expect("the configuration").name_any(), "cluster");
    }
    let guessed = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
    let deployments: Api<DynamicObject> = Api::all_with(client.clone(), &guessed);
    deployments.list(&ListParams::default()).await.expect("a list");
}
