//! Behaviour of all methods: health, reflection, reloads, concurrent calls, limits.

use super::{RegistryServer, fruits};
use crate::catalogs::{SMALL, big, index};
use futures::future::join_all;
use mainstay_registry::grpc::api::{self, registry_client::RegistryClient};
use serde_json::json;
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::{v1, v1alpha};

#[tokio::test]
async fn health_is_serving_when_content_is_loaded() {
    let registry = RegistryServer::new(None).await;
    let early = registry.ask("ListPackages", &json!({})).await;
    assert_eq!(early.code, "UNAVAILABLE");
    assert_eq!(early.message, "catalog \"mine\" is still being loaded");
    let check =
        async || registry.get("Health.Check", json!({"service": "api.Registry"})).await.remove(0);
    assert_eq!(check().await, json!({"status": "NOT_SERVING"}));

    let mut client = HealthClient::new(registry.channel.clone());
    let mut watched = Vec::new();
    for service in ["", "api.Registry"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        watched.push(client.watch(request).await.unwrap().into_inner());
    }
    let mut next_status = async || {
        let mut names = Vec::new();
        for stream in &mut watched {
            let message = stream.message().await.unwrap();
            names.push(message.map(|message| message.status().as_str_name()));
        }
        names
    };
    assert_eq!(next_status().await, [Some("NOT_SERVING"); 2]);
    registry.served.fail("a.yaml:3: no");
    let failed = registry.ask("GetPackage", &json!({"name": "kiwi"})).await;
    assert_eq!(failed.message, "catalog \"mine\" cannot be loaded: a.yaml:3: no");
    registry.served.put(index(SMALL));
    assert_eq!(next_status().await, [Some("SERVING"); 2]);
    assert_eq!(check().await, json!({"status": "SERVING"}));
    // A failed reload changes nothing.
    registry.served.fail("a.yaml:4: no");
    assert_eq!(check().await, json!({"status": "SERVING"}));
    assert_eq!(registry.get("ListPackages", json!({})).await.len(), 2);
    // A health watch receives the shutdown and does not delay it.
    registry.stop.cancel();
    assert_eq!(next_status().await, [Some("NOT_SERVING"); 2]);
    assert_eq!(next_status().await, [None; 2]);
    drop((client, watched));
    registry.close().await;
}

#[tokio::test]
async fn a_stream_keeps_the_content_it_started_with() {
    let registry = RegistryServer::of(big(40, 40_000)).await;
    let mut client = RegistryClient::new(registry.channel.clone());
    let mut stream = client.list_bundles(api::ListBundlesRequest {}).await.unwrap().into_inner();
    assert_eq!(stream.message().await.unwrap().unwrap().csv_name, "big.v1.0.0");
    registry.served.put(index(SMALL));
    assert_eq!(registry.get("ListPackages", json!({})).await.len(), 2, "others see what is new");
    let mut rest = 0;
    while let Some(bundle) = stream.message().await.unwrap() {
        assert_eq!(bundle.package_name, "big");
        rest += 1;
    }
    assert_eq!(rest, 39);
    drop((client, stream));
    registry.close().await;
}

#[tokio::test]
async fn many_concurrent_calls_are_served() {
    let registry = RegistryServer::new(Some(fruits())).await;
    let request = json!({"pkgName": "kiwi", "channelName": "stable", "csvName": "kiwi.v1.1.0"});
    let answers =
        join_all((0..100).map(|at| {
            registry.ask(if at % 2 == 0 { "GetBundle" } else { "ListBundles" }, &request)
        }));
    for (at, answer) in answers.await.into_iter().enumerate() {
        assert_eq!((answer.code, answer.messages.len()), ("OK", if at % 2 == 0 { 1 } else { 6 }));
    }
    registry.close().await;
}

#[tokio::test]
async fn oversized_requests_are_refused() {
    let registry = RegistryServer::new(Some(fruits())).await;
    let long = "x".repeat(2 << 20);
    let answer = registry.ask("GetPackage", &json!({"name": long})).await;
    assert_eq!((answer.code, answer.messages.len()), ("OUT_OF_RANGE", 0));
    registry.close().await;
}

#[tokio::test]
async fn reflection_lists_the_services() {
    let registry = RegistryServer::new(None).await;
    let wanted = [
        "api.ExperimentalRegistry",
        "api.Registry",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ];
    assert_eq!(registry.get("Reflection.ListServices", json!({})).await, wanted);
    // Both versions of the reflection API are equal, up to the names of their types.
    macro_rules! describe {
        ($of:ident) => {{
            use $of::server_reflection_request::MessageRequest as Asked;
            use $of::server_reflection_response::MessageResponse as Told;
            let mut client = $of::server_reflection_client::ServerReflectionClient::new(
                registry.channel.clone(),
            );
            let ask = |asked| $of::ServerReflectionRequest {
                host: String::new(),
                message_request: Some(asked),
            };
            let requests = [
                ask(Asked::ListServices(String::new())),
                ask(Asked::FileContainingSymbol("api.Registry".to_owned())),
                ask(Asked::FileByFilename("google/protobuf/struct.proto".to_owned())),
            ];
            let answers = client.server_reflection_info(futures::stream::iter(requests));
            let mut answers = answers.await.unwrap().into_inner();
            let mut counts = Vec::new();
            while let Some(answer) = answers.message().await.unwrap() {
                counts.push(match answer.message_response {
                    Some(Told::ListServicesResponse(list)) => list.service.len(),
                    Some(Told::FileDescriptorResponse(files)) => files.file_descriptor_proto.len(),
                    other => panic!("{other:?}"),
                });
            }
            counts
        }};
    }
    assert_eq!(describe!(v1), [5, 1, 1]);
    assert_eq!(describe!(v1alpha), [5, 1, 1]);
    registry.close().await;
}
