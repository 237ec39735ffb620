//! Catalogs in folders, at addresses, in ConfigMaps, and as pods.

use crate::olm_cluster::{CATALOG_NAMESPACE, OlmCluster, crd, csv};
use crate::registry::Registry;
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_classic::CatalogMode;
use mainstay_client::Selection;
use mainstay_image::registry::Proxies;
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

fn is_ready(source: &Object) -> bool {
    source.str(&["status", "connectionState", "lastObservedState"]) == Some("READY")
        && source.str(&["status", "message"]).is_none()
}

#[tokio::test]
async fn broken_catalog_reports_the_location_and_serves_its_last_good_content_after_a_restart() {
    let mut olm = OlmCluster::start(&["1.0.0"]).await;
    olm.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), "cat", is_ready).await;
    std::fs::write(olm.folder.path().join("catalog.json"), "{\n\"schema\": [\n").unwrap();
    let location = format!("{}:", olm.folder.path().join("catalog.json").display());
    let at = location.clone();
    let broken = move |source: &Object| {
        source.str(&["status", "message"]).is_some_and(|message| message.starts_with(&at))
    };
    olm.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), "cat", broken).await;
    let (kind, message) = olm.wait_for_event("CatalogSource", "cat", "CatalogUnreadable").await;
    assert!(kind == "Warning" && message.starts_with(&location), "{message}");
    olm.stop_controllers().await;
    olm.start_controllers().await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    // shows E046
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    let health = |words: &'static str| {
        move |subscription: &Object| {
            subscription.array(&["status", "conditions"]).iter().any(|condition| {
                condition["type"] == "CatalogSourcesUnhealthy"
                    && condition["status"] == "False"
                    && condition["message"].as_str().is_some_and(|message| message.ends_with(words))
            })
        }
    };
    olm.wait_for_subscription(health("are healthy; olm/cat serves its last good content")).await;
    olm.publish(&["1.0.0", "1.1.0"]);
    olm.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOG_NAMESPACE), "cat", is_ready).await;
    assert_eq!(olm.wait_for_event("CatalogSource", "cat", "CatalogReadable").await.0, "Normal");
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    olm.wait_for_subscription(health("are healthy")).await;
}

/// Applies the CatalogSource `far` with an address in the namespace `team`.
pub(crate) async fn apply_source_at(olm: &OlmCluster, address: impl std::fmt::Display) {
    olm.cluster
        .apply_yaml(&format!(
            "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: far, namespace: team}}
spec: {{sourceType: grpc, address: '{address}'}}
"
        ))
        .await;
}

/// Starts a proxy that connects every request to one server; returns its address and the received
/// request heads.
async fn start_proxy(
    to: std::net::SocketAddr,
) -> (String, tokio::sync::mpsc::UnboundedReceiver<String>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(near.read_u8().await.unwrap());
                }
                let _ = tell.send(String::from_utf8(head).unwrap());
                near.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
                let mut far = tokio::net::TcpStream::connect(to).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    (address, told)
}

#[tokio::test]
async fn registry_is_read_through_the_grpc_proxy() {
    let mut olm = OlmCluster::start(&["1.0.0"]).await;
    olm.stop_controllers().await;
    let registry = Registry::start(&["1.0.0"]).await;
    let (address, mut told) = start_proxy(registry.address).await;
    let variables = |name: &str| match name {
        "GRPC_PROXY" => Some(format!("http://olm:s3cret@{address}")),
        "NO_PROXY" => Some("near.invalid".to_owned()),
        _ => None,
    };
    olm.surroundings.registries = Proxies::for_grpc(variables).unwrap();
    olm.start_controllers().await;
    // Only the proxy resolves that name.
    apply_source_at(&olm, "registry.invalid:50051").await;
    let status = wait_for_connection_state(&olm, "READY").await;
    assert_eq!(status["connectionState"]["address"], "registry.invalid:50051");
    assert_eq!(
        told.recv().await.unwrap(),
        "CONNECT registry.invalid:50051 HTTP/1.1\r\nHost: registry.invalid:50051\r\n\
         Proxy-Authorization: Basic b2xtOnMzY3JldA==\r\n\r\n"
    );
    // A host in `NO_PROXY` is dialled directly; this one does not exist.
    apply_source_at(&olm, "near.invalid:50051").await;
    wait_for_connection_state(&olm, "TRANSIENT_FAILURE").await;
    while let Ok(asked) = told.try_recv() {
        assert!(!asked.contains("near.invalid"), "{asked}");
    }
}

/// A server that accepts connections and sends nothing delays no Subscription to another catalog.
#[tokio::test]
async fn silent_registry_does_not_delay_subscriptions_to_other_catalogs() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    apply_source_at(&olm, silent.local_addr().unwrap()).await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    // Resolution did not wait for the connection to fail.
    let far = olm.cluster.cluster().get(&CATALOG_SOURCE, Some("team"), "far").await.unwrap();
    assert_eq!(far.str(&["status", "connectionState", "lastObservedState"]), Some("CONNECTING"));
    drop(silent);
}

/// Waits until the connection of `far` has a state; returns the status.
async fn wait_for_connection_state(olm: &OlmCluster, state: &'static str) -> Value {
    let source = olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", move |source| {
        source.str(&["status", "connectionState", "lastObservedState"]) == Some(state)
    });
    source.await.to_value()["status"].clone()
}

fn is_healthy(subscription: &Object) -> bool {
    subscription.array(&["status", "conditions"]).iter().any(|condition| {
        condition["type"] == "CatalogSourcesUnhealthy"
            && condition["status"] == "False"
            && condition["message"] == "all available catalogsources are healthy"
    })
}

#[tokio::test]
async fn lost_registry_is_reported_and_its_last_content_serves_until_it_returns() {
    let mut olm = OlmCluster::start(&["1.0.0"]).await;
    let mut registry = Registry::start(&["1.0.0"]).await;
    apply_source_at(&olm, registry.address).await;
    // shows CAT-30 CAT-31
    let status = wait_for_connection_state(&olm, "READY").await;
    assert_eq!(status["connectionState"]["address"], registry.address.to_string());
    // shows CAT-30
    assert!(status["connectionState"]["lastConnect"].is_string(), "{status}");
    assert_eq!(status["registryService"]["protocol"], "grpc");
    assert_eq!(status["registryService"].as_object().unwrap().len(), 2, "{status}");
    registry.stop().await;
    // shows CAT-31
    let status = wait_for_connection_state(&olm, "TRANSIENT_FAILURE").await;
    assert_eq!((&status["reason"], &status["message"]), (&Value::Null, &Value::Null));
    let (kind, why) = olm.wait_for_event("CatalogSource", "far", "CatalogUnreadable").await;
    assert_eq!(
        (kind.as_str(), why),
        (
            "Warning",
            format!(
                "failed to list bundles: rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial tcp {}: connect: connection refused\"",
                registry.address
            )
        )
    );
    // The last content is served after a restart, too.
    olm.stop_controllers().await;
    olm.start_controllers().await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm.wait_for_subscription(is_healthy).await;
    registry.publish(&["1.0.0", "1.1.0"]);
    registry.resume().await;
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    wait_for_connection_state(&olm, "READY").await;
    assert_eq!(olm.wait_for_event("CatalogSource", "far", "CatalogReadable").await.0, "Normal");
    // A restart with a reachable server writes nothing.
    let before = olm.resource_versions().await;
    olm.stop_controllers().await;
    olm.start_controllers().await;
    registry.publish(&["1.0.0", "1.1.0", "1.2.0"]);
    olm.wait_until_succeeded("anvil.v1.2.0").await;
    let of_sources = |all: Vec<String>| -> Vec<String> {
        all.into_iter().filter(|line| line.starts_with("CatalogSource ")).collect()
    };
    assert_eq!(of_sources(before), of_sources(olm.resource_versions().await));
}

#[tokio::test]
async fn new_registry_content_or_address_upgrades_the_operator() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    let registry = Registry::start(&["1.0.0"]).await;
    apply_source_at(&olm, registry.address).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    // shows CAT-05 CAT-09
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    registry.publish(&["1.0.0", "1.1.0"]);
    // shows CAT-52
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    let other = Registry::start(&["1.0.0", "1.1.0", "1.2.0"]).await;
    apply_source_at(&olm, other.address).await;
    // shows E047
    olm.wait_until_succeeded("anvil.v1.2.0").await;
    let status = wait_for_connection_state(&olm, "READY").await;
    // shows E047
    assert_eq!(status["connectionState"]["address"], other.address.to_string());
    // An invalid address has the message of upstream's client.
    apply_source_at(&olm, "nowhere").await;
    wait_for_connection_state(&olm, "TRANSIENT_FAILURE").await;
    let (_, why) = olm.wait_for_event("CatalogSource", "far", "CatalogUnreadable").await;
    assert!(why.contains("address nowhere: missing port in address"), "{why}");
}

#[tokio::test]
async fn unknown_folder_is_reported_in_the_status() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    apply_source_at(&olm, mainstay_classic::FOLDER_ADDRESS).await;
    let unknown = |source: &Object| {
        source
            .str(&["status", "message"])
            .is_some_and(|message| message.contains("no folder is known"))
    };
    olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", unknown).await;
}

/// Applies a ConfigMap catalog with these versions of `anvil`, whose manifests lack the API group,
/// as older ones do.
async fn apply_catalog_config_map(olm: &OlmCluster, versions: &[&str]) {
    let mut before = None;
    let mut all = Vec::new();
    for version in versions {
        let mut manifest = csv(version, before);
        manifest["apiVersion"] = "v1alpha1".into();
        all.push(manifest);
        before = Some(*version);
    }
    let head = format!("anvil.v{}", versions.last().unwrap());
    let packages = json!([{
        "packageName": "anvil", "channels": [{"name": "stable", "currentCSV": head}],
    }]);
    let text = |value: Value| Value::from(value.to_string());
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "content", "namespace": "team"},
        "data": {
            "packages": text(packages), "clusterServiceVersions": text(all.into()),
            "customResourceDefinitions": text(json!([crd()])),
        },
    });
    olm.cluster.apply(Object::from_value(map).unwrap()).await;
}

/// Applies the CatalogSource `far` in the namespace `team`.
async fn apply_source(olm: &OlmCluster, annotations: &str, spec: &str) {
    olm.cluster
        .apply_yaml(&format!(
            "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: far, namespace: team, annotations: {{{annotations}}}}}
spec: {{{spec}}}
"
        ))
        .await;
}

#[tokio::test]
async fn address_of_another_catalog_source_serves_its_content() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    apply_catalog_config_map(&olm, &["1.0.0"]).await;
    apply_source(&olm, "", "sourceType: internal, configMap: content").await;
    let near = wait_for_connection_state(&olm, "READY").await;
    let service = &near["registryService"];
    let text = |field: &str| service[field].as_str().unwrap_or_default().to_owned();
    let address =
        format!("{}.{}.svc:{}", text("serviceName"), text("serviceNamespace"), text("port"));
    olm.cluster
        .apply_yaml(&format!(
            "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: by-address, namespace: team}}
spec: {{sourceType: grpc, address: \"{address}\"}}
"
        ))
        .await;
    let is = |state: &'static str| {
        move |source: &Object| {
            source.str(&["status", "connectionState", "lastObservedState"]) == Some(state)
        }
    };
    let by_address = |state: &'static str| {
        olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "by-address", is(state))
    };
    by_address("READY").await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "by-address", "sourceNamespace": "team"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    apply_catalog_config_map(&olm, &["1.0.0", "1.1.0"]).await;
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    let gone = mainstay_client::DeleteOptions::default();
    let cluster = olm.cluster.cluster();
    cluster.delete(&CATALOG_SOURCE, Some("team"), "far", &gone).await.unwrap();
    by_address("TRANSIENT_FAILURE").await;
}

#[tokio::test]
async fn config_map_catalog_follows_changes_of_the_config_map() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    apply_source(&olm, "", "sourceType: internal, configMap: content").await;
    let has_message = |words: &'static str| {
        move |source: &Object| source.str(&["status", "message"]) == Some(words)
    };
    let missing = "failed to get catalog config map content: configmaps \"content\" not found";
    let team = Some("team");
    let source = olm.cluster.wait_for(&CATALOG_SOURCE, team, "far", has_message(missing)).await;
    assert_eq!(source.str(&["status", "reason"]), Some("ConfigMapError"));
    assert!(source.get(&["status", "connectionState"]).is_none());
    apply_catalog_config_map(&olm, &["1.0.0"]).await;
    let status = wait_for_connection_state(&olm, "READY").await;
    assert_eq!(status["configMapReference"]["name"], "content");
    assert_eq!(status["registryService"]["serviceName"], "far");
    assert_eq!(status["message"], Value::Null);
    let owned = |config_map: &Object| {
        config_map.label("olm.managed") == Some("false") && config_map.owner_references().len() == 1
    };
    olm.cluster.wait_for(&builtin::CONFIG_MAP, team, "content", owned).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    // shows CAT-05
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    apply_catalog_config_map(&olm, &["1.0.0", "1.1.0"]).await;
    // shows E047
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    let gone = mainstay_client::DeleteOptions::default();
    let cluster = olm.cluster.cluster();
    cluster.delete(&builtin::CONFIG_MAP, team, "content", &gone).await.unwrap();
    olm.cluster.wait_for(&CATALOG_SOURCE, team, "far", has_message(missing)).await;
    let message = "all available catalogsources are healthy; team/far serves its last good content";
    let health = move |subscription: &Object| {
        subscription
            .array(&["status", "conditions"])
            .iter()
            .any(|condition| condition["message"] == message)
    };
    olm.wait_for_subscription(health).await;
}

#[tokio::test]
async fn image_template_follows_the_version_of_the_cluster() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    let version = olm.cluster.cluster().get_raw("/version").await.unwrap();
    let image = format!(
        "localhost/c:v{}.{}",
        version["major"].as_str().unwrap(),
        version["minor"].as_str().unwrap()
    );
    let spec = "sourceType: grpc, image: 'localhost/c:v1'";
    let template =
        "olm.catalogImageTemplate: 'localhost/c:v{kube_major_version}.{kube_minor_version}'";
    apply_source(&olm, template, spec).await;
    let wanted = image.clone();
    // shows CAT-20 CAT-21 E054
    let resolved = olm
        .cluster
        .wait_for(&CATALOG_SOURCE, Some("team"), "far", move |source| {
            source.str(&["spec", "image"]) == Some(&wanted)
                && source.array(&["status", "conditions"]).len() == 2
        })
        .await;
    // shows E054
    assert_eq!(resolved.array(&["status", "conditions"])[1]["message"], image);
    apply_source(&olm, "olm.catalogImageTemplate: 'localhost/c:v{kube}'", spec).await;
    // shows AT-CAT-03 CAT-22 E054
    let unresolved = olm
        .cluster
        .wait_for(&CATALOG_SOURCE, Some("team"), "far", |source| {
            source.array(&["status", "conditions"]).iter().all(|condition| {
                condition["status"] == "False" && condition["reason"] == "UnableToResolve"
            })
        })
        .await;
    // shows AT-CAT-03 CAT-22
    assert_eq!(unresolved.str(&["spec", "image"]), Some("localhost/c:v1"));
}

#[tokio::test]
async fn objects_of_a_catalog_pod_are_created_and_recreated() {
    let mut olm = OlmCluster::start(&["1.0.0"]).await;
    olm.stop_controllers().await;
    olm.pods.mode = CatalogMode::Pods;
    olm.start_controllers().await;
    apply_source(&olm, "", "sourceType: grpc, image: 'registry.invalid/c:1', secrets: [pull]")
        .await;
    let cluster = olm.cluster.cluster();
    let team = Some("team");
    let named = |name: &'static str| move |service: &Object| service.name() == name;
    olm.cluster.wait_for(&builtin::SERVICE, team, "far", named("far")).await;
    let account = cluster.get(&builtin::SERVICE_ACCOUNT, team, "far").await.unwrap();
    // shows PSC-06
    assert_eq!(account.array(&["imagePullSecrets"]).len(), 1);
    for policy in ["far-grpc-server", "far-unpack-bundles"] {
        cluster.get(&builtin::NETWORK_POLICY, team, policy).await.unwrap();
    }
    // shows CAT-36
    let status = wait_for_connection_state(&olm, "TRANSIENT_FAILURE").await;
    assert_eq!(status["connectionState"]["address"], "far.team.svc:50051");
    // shows CAT-33
    assert_eq!(status["registryService"]["port"], "50051");
    let pods = || Selection::all(builtin::POD).namespace("team");
    let one = |all: &[&Object]| all.len() == 1;
    let pod = olm.cluster.wait_for_all(pods(), one).await.remove(0);
    assert_eq!(pod.label("olm.catalogSource"), Some("far"));
    let random = pod.name().strip_prefix("far-").unwrap_or_default();
    // shows CAT-02
    assert!(
        random.len() == 5 && random.chars().all(|character| character.is_ascii_alphanumeric()),
        "{random}"
    );
    let gone = mainstay_client::DeleteOptions::default();
    cluster.delete(&builtin::SERVICE, team, "far", &gone).await.unwrap();
    cluster.delete(&builtin::POD, team, pod.name(), &gone).await.unwrap();
    let uid = pod.uid().to_owned();
    let other = move |all: &[&Object]| all.len() == 1 && all[0].uid() != uid;
    // shows E048
    let pod = olm.cluster.wait_for_all(pods(), other).await.remove(0);
    olm.cluster.wait_for(&builtin::SERVICE, team, "far", named("far")).await;
    for policy in ["far-grpc-server", "far-unpack-bundles"] {
        let old = cluster.get(&builtin::NETWORK_POLICY, team, policy).await.unwrap();
        cluster.delete(&builtin::NETWORK_POLICY, team, policy, &gone).await.unwrap();
        let uid = old.uid().to_owned();
        let is_recreated = move |object: &Object| object.uid() != uid;
        // shows E049
        let new = olm.cluster.wait_for(&builtin::NETWORK_POLICY, team, policy, is_recreated).await;
        assert_eq!(new.get(&["spec"]), old.get(&["spec"]), "{policy}");
    }
    // Another image replaces the pod and changes nothing else.
    apply_source(&olm, "", "sourceType: grpc, image: 'registry.invalid/c:2', secrets: [pull]")
        .await;
    let uid = pod.uid().to_owned();
    let other = move |all: &[&Object]| all.iter().any(|pod| pod.uid() != uid);
    let pods = olm.cluster.wait_for_all(pods(), other).await;
    assert!(
        pods.iter()
            .any(|pod| pod.to_value()["spec"]["containers"][0]["image"] == "registry.invalid/c:2")
    );
}

#[tokio::test]
async fn edited_objects_of_a_catalog_pod_are_restored() {
    let mut olm = OlmCluster::start(&["1.0.0"]).await;
    olm.stop_controllers().await;
    olm.pods.mode = CatalogMode::Pods;
    olm.start_controllers().await;
    // Names of Services have no dots; a CatalogSource with an address has no other objects.
    let image = "sourceType: grpc, image: 'registry.invalid/c:1'";
    let both = "sourceType: grpc, image: 'registry.invalid/c:1', address: '127.0.0.1:1'";
    for (name, spec) in [("both", both), ("far", image), ("far.away", image)] {
        olm.cluster
            .apply_yaml(&format!(
                "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: {name}, namespace: team}}
spec: {{{spec}}}
"
            ))
            .await;
    }
    let team = Some("team");
    for name in ["far", "far-away"] {
        olm.cluster.wait_for(&builtin::SERVICE, team, name, |_| true).await;
    }
    let pods = Selection::all(builtin::POD).namespace("team");
    let pods = olm.cluster.wait_for_all(pods, |all| all.len() == 2).await;
    let named: Vec<_> = pods.iter().map(|pod| pod.label("olm.catalogSource")).collect();
    // shows K15
    assert_eq!(named, [Some("far"), Some("far.away")]);
    let cluster = olm.cluster.cluster();
    let (policy, service) = (builtin::NETWORK_POLICY, builtin::SERVICE);
    for (resource, name, spec) in [
        (&policy, "far-grpc-server", json!({"ingress": null})),
        (&policy, "far-grpc-server", json!({"egress": [{}]})),
        (&policy, "far-unpack-bundles", json!({"ingress": [{}]})),
        (&policy, "far-unpack-bundles", json!({"egress": null, "policyTypes": ["Ingress"]})),
        (&service, "far", json!({"ports": [{"name": "grpc", "port": 1, "targetPort": 1}]})),
        (&service, "far", json!({"selector": {"olm.catalogSource": "x"}})),
    ] {
        let wanted = cluster.get(resource, team, name).await.unwrap();
        let wanted = wanted.get(&["spec"]).cloned();
        let body = mainstay_client::Patch::Merge(json!({"spec": spec}));
        let changed = cluster.patch(resource, team, name, &body).await.unwrap();
        assert_ne!(changed.get(&["spec"]), wanted.as_ref(), "{name}");
        let predicate = move |object: &Object| object.get(&["spec"]) == wanted.as_ref();
        // shows K15 E049
        olm.cluster.wait_for(resource, team, name, predicate).await;
    }
    let uid = cluster.get(&builtin::SERVICE_ACCOUNT, team, "far").await.unwrap().uid().to_owned();
    let gone = mainstay_client::DeleteOptions::default();
    cluster.delete(&builtin::SERVICE_ACCOUNT, team, "far", &gone).await.unwrap();
    let is_recreated = move |object: &Object| object.uid() != uid;
    // shows K15
    olm.cluster.wait_for(&builtin::SERVICE_ACCOUNT, team, "far", is_recreated).await;
}
