//! Service IPs and node ports: each is allocated once, and released.

use crate::harness::{Api, TestResponse};
use futures::future::join_all;
use mainstay_auth::pki::Pki;
use mainstay_clock::Clock;
use mainstay_store::{Options, Store};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn service(name: &str, mut spec: Value) -> Value {
    if spec.get("ports").is_none() {
        spec["ports"] = json!([{"port": 80}]);
    }
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

fn address(service: &Value) -> String {
    service["spec"]["clusterIP"].as_str().unwrap().to_owned()
}

fn port(service: &Value) -> i64 {
    service["spec"]["ports"][0]["nodePort"].as_i64().unwrap()
}

fn with_port(port: i64) -> Value {
    json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_services_get_different_addresses_and_ports() {
    let api = Api::new().await;
    let make = |index: usize| {
        let api = &api;
        async move {
            let body = service(&format!("s{index}"), json!({"type": "NodePort"}));
            api.post(SERVICES, &body).await.ok()
        }
    };
    let created = join_all((0..200).map(make)).await;
    assert_eq!(created.iter().map(address).collect::<BTreeSet<_>>().len(), 200);
    assert_eq!(created.iter().map(port).collect::<BTreeSet<_>>().len(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn only_one_of_concurrent_services_gets_a_requested_port() {
    let api = Api::new().await;
    for spec in [json!({"clusterIP": "10.96.7.7"}), with_port(31_000)] {
        let make = |index: usize| {
            let (api, body) = (&api, service(&format!("s{index}"), spec.clone()));
            async move { api.post(SERVICES, &body).await }
        };
        let answers: Vec<TestResponse> = join_all((0..20).map(make)).await;
        let (created, refused): (Vec<_>, Vec<_>) =
            answers.iter().partition(|response| response.code == 201);
        assert_eq!(created.len(), 1);
        for response in refused {
            let (code, message) = response.refused();
            assert!(code == 422 && message.contains("is already allocated"), "{message}");
        }
        let name = created[0].ok()["metadata"]["name"].clone();
        api.delete(&format!("{SERVICES}/{}", name.as_str().unwrap()), &Value::Null).await.ok();
    }
}

#[tokio::test]
async fn a_service_that_is_not_stored_allocates_nothing() {
    let api = Api::new().await;
    let mut spec = with_port(31_000);
    spec["clusterIP"] = "10.96.7.7".into();
    let dry = api.post(&format!("{SERVICES}?dryRun=All"), &service("a", spec.clone())).await.ok();
    assert_eq!((address(&dry).as_str(), port(&dry)), ("10.96.7.7", 31_000));
    let mut bad = service("a", spec.clone());
    bad["spec"]["sessionAffinity"] = "no".into();
    assert_eq!(api.post(SERVICES, &bad).await.refused().0, 422);
    let elsewhere = "/api/v1/namespaces/none/services";
    assert_eq!(api.post(elsewhere, &service("a", spec.clone())).await.refused().0, 404);
    // Nor does a write with an existing name.
    api.post(SERVICES, &service("b", json!({}))).await.ok();
    assert_eq!(api.post(SERVICES, &service("b", spec.clone())).await.refused().0, 409);
    api.post(SERVICES, &service("a", spec)).await.ok();
}

#[tokio::test]
async fn deletes_and_updates_of_a_service_release_addresses_and_ports() {
    let api = Api::new().await;
    let path = format!("{SERVICES}/a");
    let mut spec = with_port(31_000);
    spec["clusterIP"] = "10.96.7.7".into();
    api.post(SERVICES, &service("a", spec.clone())).await.ok();
    let taken = api.post(SERVICES, &service("b", with_port(31_000))).await.refused().1;
    assert!(taken.ends_with("31000: provided port is already allocated"), "{taken}");

    // An update keeps its ports and may allocate more.
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(port(&api.patch(&path, "merge", &labelled).await.ok()), 31_000);
    let moved = json!([{"op": "replace", "path": "/spec/ports/0/nodePort", "value": 31_001}]);
    let media = [("content-type", "application/json-patch+json")];
    let moved = api.call(http::Method::PATCH, &path, &media, moved.to_string()).await.ok();
    assert_eq!(port(&moved), 31_001);
    api.post(SERVICES, &service("b", with_port(31_000))).await.ok();
    assert_eq!(api.post(SERVICES, &service("c", with_port(31_001))).await.refused().0, 422);

    api.delete(&path, &Value::Null).await.ok();
    let mut spec = with_port(31_001);
    spec["clusterIP"] = "10.96.7.7".into();
    api.post(SERVICES, &service("c", spec)).await.ok();
}

#[tokio::test]
async fn a_health_check_node_port_is_allocated_once() {
    let api = Api::new().await;
    let balancer = |port: i64| {
        json!({
            "type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": port,
            "allocateLoadBalancerNodePorts": false,
        })
    };
    api.post(SERVICES, &service("a", balancer(31_000))).await.ok();
    assert_eq!(api.post(SERVICES, &service("b", with_port(31_000))).await.refused().0, 422);
    let (code, message) = api.post(SERVICES, &service("b", balancer(31_000))).await.refused();
    let words = "failed to allocate requested HealthCheck NodePort 31000: provided port is already allocated";
    assert_eq!((code, message.as_str()), (500, words));
    let drawn = api.post(SERVICES, &service("b", balancer(0))).await.ok();
    assert!(drawn["spec"]["healthCheckNodePort"].as_i64().is_some_and(|port| port >= 30_086));
}

#[tokio::test]
async fn a_restarted_server_keeps_allocated_addresses_and_ports() {
    let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let store = Store::in_memory(Options::new(clock));
    let api = Api::on(store.clone(), clock).await;
    let created = api.post(SERVICES, &service("a", with_port(31_000))).await.ok();
    drop(api);
    let api = Api::on(store, clock).await;
    assert_eq!(api.post(SERVICES, &service("b", with_port(31_000))).await.refused().0, 422);
    let same = service("b", json!({"clusterIP": address(&created)}));
    assert_eq!(api.post(SERVICES, &same).await.refused().0, 422);
}

#[tokio::test]
async fn an_existing_service_cannot_be_created_again() {
    let api = Api::new().await;
    api.post(SERVICES, &service("a", json!({}))).await.ok();
    assert_eq!(api.post(SERVICES, &service("a", json!({}))).await.refused().0, 409);
    // A second creation may not request the ports of the existing Service either.
    api.post(SERVICES, &service("b", with_port(31_000))).await.ok();
    assert_eq!(api.post(SERVICES, &service("b", with_port(31_000))).await.refused().0, 422);
}

/// Serves a port until the returned guard is dropped, and waits for the server's own Service.
async fn serve(api: &Api, host: &str) -> (u16, tokio_util::sync::DropGuard) {
    let pki = Pki::ephemeral(api.server.clock(), &[]).unwrap();
    let listener = tokio::net::TcpListener::bind((host, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (server, tls) = (api.server.clone(), pki.server_config().unwrap());
    let stop = tokio_util::sync::CancellationToken::new();
    let shutdown = stop.clone();
    tokio::spawn(async move { server.serve(listener, tls, shutdown).await });
    api.until(&format!("{SERVICES}/kubernetes"), 200).await;
    (port, stop.drop_guard())
}

#[tokio::test]
async fn the_service_of_the_server_has_its_port_and_is_recreated() {
    let api = Api::new().await;
    let path = format!("{SERVICES}/kubernetes");
    assert_eq!(api.get(&path).await, 404, "no port is served yet");
    let (port, stop) = serve(&api, "127.0.0.1").await;
    let created = api.get(&path).await.ok();
    assert_eq!(
        created["metadata"]["labels"],
        json!({"component": "apiserver", "provider": "kubernetes"})
    );
    // As kube-apiserver 1.35 creates it.
    let spec = json!({
        "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        "type": "ClusterIP",
    });
    assert_eq!(created["spec"], spec);
    let managed = &created["metadata"]["managedFields"][0];
    assert_eq!(managed["manager"], "kube-apiserver");
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:component": {}, "f:provider": {}}},
        "f:spec": {
            "f:clusterIP": {}, "f:internalTrafficPolicy": {}, "f:ipFamilyPolicy": {},
            "f:ports": {".": {}, "k:{\"port\":443,\"protocol\":\"TCP\"}": {
                ".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {},
            }},
            "f:sessionAffinity": {}, "f:type": {},
        },
    });
    assert_eq!(managed["fieldsV1"], fields);
    let endpoints = "/api/v1/namespaces/default/endpoints/kubernetes";
    assert_eq!(api.get(endpoints).await, 404, "a loopback address gets no endpoints");

    api.delete(&path, &Value::Null).await.ok();
    api.until(&path, 200).await;
    let again = api.get(&path).await.ok();
    assert_eq!(again["spec"], spec);
    assert_ne!(again["metadata"]["uid"], created["metadata"]["uid"]);

    // The next start serves another port.
    drop(stop);
    let (next, _stop) = serve(&api, "127.0.0.1").await;
    let polling = async {
        while api.get(&path).await.ok()["spec"]["ports"][0]["targetPort"] != next {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), polling).await.unwrap();
    assert_eq!(api.get(&path).await.ok()["metadata"]["uid"], again["metadata"]["uid"]);
}
