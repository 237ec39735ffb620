//! kube-rs' `Controller` as operators written in Rust use it: a custom kind, owned objects written by
//! server-side apply, a finalizer, a status, events; over TLS and in-process without a socket.

use crate::harness::{Up, tls_client, until, until_gone};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder};
use kube::runtime::finalizer::{self, Event as Ending};
use kube::runtime::watcher;
use kube::{Client, Resource as _, ResourceExt};
use mainstay_client::{Cluster, ObjectList};
use mainstay_object::Resource;
use mainstay_object::builtin::{CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, EVENT};
use mainstay_testkit::TestCluster;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const LAMP: Resource = Resource::namespaced("rust.example.com", "v1", "Lamp", "lamps");
const MANAGER: &str = "lamp-controller";

#[tokio::test]
async fn over_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    let up = Up::start(folder.path(), &["--in-memory"]);
    lamp_lifecycle(tls_client(&up.kubeconfig).await).await;
}

#[tokio::test]
async fn in_process() {
    let cluster = TestCluster::start().await;
    lamp_lifecycle(cluster.kube_client()).await;
}

fn lamps() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("rust.example.com", "v1", "Lamp"),
        "lamps",
    )
}

async fn define(client: &Client) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.rust.example.com"},
        "spec": {
            "group": "rust.example.com",
            "scope": "Namespaced",
            "names": {"plural": "lamps", "kind": "Lamp"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties":
                        {"watts": {"type": "integer", "default": 40}}},
                    "status": {"type": "object", "properties":
                        {"watts": {"type": "integer"}}},
                }}},
            }],
        },
    });
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> =
        Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let (params, patch) = (PatchParams::apply(MANAGER), Patch::Apply(definition));
    let applied = definitions.patch("lamps.rust.example.com", &params, &patch).await;
    applied.expect("the definition is applied");
    let cluster = Cluster::new(client.clone());
    until(&cluster, &CUSTOM_RESOURCE_DEFINITION, None, |definition| {
        (definition.name() == "lamps.rust.example.com"
            && definition.condition("Established") == Some("True"))
        .then_some(())
    })
    .await;
}

/// The context of the controller.
struct ReconcileContext {
    client: Client,
    recorder: Recorder,
}

#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error("ask the API")]
    Api(#[from] kube::Error),
    #[error("the lamp has no {0}")]
    Lacks(&'static str),
    #[error("a pass of the finalizer")]
    Pass(#[source] Box<finalizer::Error<Self>>),
}

async fn reconcile(
    lamp: Arc<DynamicObject>,
    context: Arc<ReconcileContext>,
) -> Result<Action, ReconcileError> {
    let api: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), "default", &lamps());
    let step = finalizer::finalizer(&api, "rust.example.com/switch-off", lamp, |event| async {
        match event {
            Ending::Apply(lamp) => light(&api, &lamp, &context).await,
            Ending::Cleanup(lamp) => switch_off(&lamp, &context).await,
        }
    });
    step.await.map_err(|error| ReconcileError::Pass(Box::new(error)))
}

async fn light(
    api: &Api<DynamicObject>,
    lamp: &DynamicObject,
    context: &ReconcileContext,
) -> Result<Action, ReconcileError> {
    let name = lamp.name_any();
    let watts = lamp.data["spec"]["watts"].as_i64().ok_or(ReconcileError::Lacks("watts"))?;
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), "default");
    let owner = lamp.controller_owner_ref(&lamps()).ok_or(ReconcileError::Lacks("name"))?;
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "data": {"watts": watts.to_string()},
    });
    let params = PatchParams::apply(MANAGER).force();
    maps.patch(&name, &params, &Patch::Apply(map)).await?;
    if lamp.data["status"]["watts"].as_i64() != Some(watts) {
        let note = Event {
            type_: EventType::Normal,
            reason: "Lit".to_owned(),
            note: Some(format!("{watts} watts")),
            action: "Light".to_owned(),
            secondary: None,
        };
        context.recorder.publish(&note, &lamp.object_ref(&lamps())).await?;
        let status = json!({
            "apiVersion": "rust.example.com/v1",
            "kind": "Lamp",
            "status": {"watts": watts},
        });
        api.patch_status(&name, &params, &Patch::Apply(status)).await?;
    }
    Ok(Action::await_change())
}

async fn switch_off(
    lamp: &DynamicObject,
    context: &ReconcileContext,
) -> Result<Action, ReconcileError> {
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), "default");
    let mut map = ConfigMap::default();
    map.metadata.name = Some(format!("{}-off", lamp.name_any()));
    match maps.create(&PostParams::default(), &map).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        other => drop(other?),
    }
    Ok(Action::await_change())
}

/// The lifecycle of a Lamp.
async fn lamp_lifecycle(client: Client) {
    define(&client).await;
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &lamps());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let recorder = Recorder::new(client.clone(), MANAGER.into());
    let context = Arc::new(ReconcileContext { client: client.clone(), recorder });
    let controller = Controller::new_with(api.clone(), watcher::Config::default(), lamps())
        .owns(maps.clone(), watcher::Config::default())
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(50)), context)
        .for_each(|_| futures::future::ready(()));
    let running = tokio::spawn(controller);
    let cluster = Cluster::new(client);

    let lamp = json!({"apiVersion": "rust.example.com/v1", "kind": "Lamp",
        "metadata": {"name": "desk"}, "spec": {}});
    let lamp: DynamicObject = serde_json::from_value(lamp).expect("an object");
    api.create(&PostParams::default(), &lamp).await.expect("created");
    wait_for_watts(&cluster, 40).await;
    let map = maps.get("desk").await.expect("the map");
    assert_eq!(map.owner_references()[0].name, "desk");
    assert_eq!(
        map.managed_fields().iter().map(|entry| entry.manager.as_deref()).collect::<Vec<_>>(),
        [Some(MANAGER)]
    );

    // A change of the spec, then of what the controller owns.
    let patch = json!({"spec": {"watts": 60}});
    api.patch("desk", &PatchParams::default(), &Patch::Merge(patch)).await.expect("patched");
    wait_for_watts(&cluster, 60).await;
    let vandal = PatchParams { field_manager: Some("vandal".to_owned()), ..PatchParams::default() };
    let patch: Patch<Value> = Patch::Merge(json!({"data": {"watts": "0"}}));
    maps.patch("desk", &vandal, &patch).await.expect("patched");
    until(&cluster, &CONFIG_MAP, Some("default"), |map| {
        (map.name() == "desk" && map.str(&["data", "watts"]) == Some("60")).then_some(())
    })
    .await;
    let events = cluster.list(&EVENT, Some("default"), &ObjectList::default()).await;
    let events = events.expect("a list").items;
    let wait_for_watts: Vec<_> =
        events.iter().filter(|event| event.str(&["reason"]) == Some("Lit")).collect();
    assert_eq!(wait_for_watts.len(), 1, "{wait_for_watts:?}");
    assert_eq!(wait_for_watts[0].str(&["message"]), Some("40 watts"));
    // At least two: the number of reconciles in between depends on the machine.
    let count = wait_for_watts[0].i64(&["series", "count"]);
    assert!(count.is_some_and(|count| count >= 2), "kube-rs counts what repeats: {count:?}");

    api.delete("desk", &DeleteParams::default()).await.expect("deleted");
    until_gone(&cluster, &LAMP, "default", "desk").await;
    until_gone(&cluster, &CONFIG_MAP, "default", "desk").await;
    assert!(maps.get_opt("desk-off").await.expect("an answer").is_some());
    running.abort();
}

/// Waits until the Lamp's status has so many watts.
async fn wait_for_watts(cluster: &Cluster, watts: i64) {
    until(cluster, &LAMP, Some("default"), |lamp| {
        (lamp.i64(&["status", "watts"]) == Some(watts)).then_some(())
    })
    .await;
}
