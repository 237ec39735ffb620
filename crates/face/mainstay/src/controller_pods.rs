//! Pods that represent the controllers of this process.
//!
//! OLM runs as two Deployments. Scripts, tutorials and tests wait for them, find their pods by label,
//! and read `/metrics` through the pods' proxy. In `mainstay up` the controllers run in the API
//! server's process; these Deployments and their simulated pods represent them. The pods' ports serve
//! `/metrics`, `/healthz` and `/readyz`.
//!
//! The pods do not control the controllers: scaling a Deployment down stops nothing.

use crate::health::Health;
use crate::layout;
use futures::future::BoxFuture;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mainstay_apiserver::ApiServer;
use mainstay_cause::Cause;
use mainstay_client::{Cluster, DeleteOptions};
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_object::builtin::DEPLOYMENT;
use mainstay_streams::{ConnectError, ContainerLog, InProcessPod, LogLine, PodConnection};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;

/// The Deployments of OLM; their label `app` has the same values.
const NAMES: [&str; 2] = ["olm-operator", "catalog-operator"];
/// The metrics port with TLS of OLM's own Deployments, and its two earlier ones without TLS.
const PORTS: [u16; 3] = [8443, 8080, 8081];
/// The buffer of a connection between a client and the process, in bytes.
const BUFFER: usize = 64 << 10;

/// Applies the Deployments, and serves their pods in `namespace`.
///
/// # Errors
/// A Deployment cannot be applied.
pub(crate) async fn apply(
    server: &ApiServer,
    cluster: &Cluster,
    namespace: &'static str,
    clock: Clock,
    health: &Health,
) -> Result<(), Cause> {
    let pod: Arc<dyn InProcessPod> =
        Arc::new(ControllerPod { health: health.clone(), started: clock.now() });
    server.add_in_process_pods(move |candidate| {
        let app = candidate.label("app").unwrap_or_default();
        let is_controller_pod = candidate.namespace() == namespace && NAMES.contains(&app);
        is_controller_pod.then(|| Arc::clone(&pod))
    });
    let applied = NAMES.map(|name| async move {
        layout::apply(cluster, &DEPLOYMENT, &manifest(namespace, name)).await.map(drop)
    });
    futures::future::try_join_all(applied).await.map(drop)
}

/// Deletes the Deployments where no controllers run in this process any more.
///
/// # Errors
/// A Deployment cannot be read or deleted.
pub(crate) async fn delete(cluster: &Cluster, namespace: &str) -> Result<(), Cause> {
    for name in NAMES {
        let refused = |error: &mainstay_client::Error| {
            Cause::new(format!("Deployment {namespace}/{name} cannot be deleted"))
                .because(Cause::new(error.to_string()))
        };
        let deployment = cluster.find(&DEPLOYMENT, Some(namespace), name).await;
        if let Some(deployment) =
            deployment.map_err(|error| refused(&error))?.filter(layout::is_ours)
        {
            let options = DeleteOptions::uid(deployment.uid());
            let deleted =
                cluster.ensure_deleted(&DEPLOYMENT, Some(namespace), name, &options).await;
            deleted.map_err(|error| refused(&error))?;
        }
    }
    Ok(())
}

fn manifest(namespace: &str, name: &str) -> Object {
    let labels = json!({"app": name});
    let value = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "securityContext": {
                        "runAsNonRoot": true,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [{
                        "name": name,
                        "image": concat!("mainstay:", env!("CARGO_PKG_VERSION")),
                        "ports": [{"name": "metrics", "containerPort": PORTS[0]}],
                        "securityContext": {
                            "allowPrivilegeEscalation": false,
                            "capabilities": {"drop": ["ALL"]},
                        },
                    }],
                },
            },
        },
    });
    Object::from_value(value).unwrap_or_default()
}

/// A pod whose ports and log this process serves.
struct ControllerPod {
    health: Health,
    started: jiff::Timestamp,
}

impl InProcessPod for ControllerPod {
    fn log(&self, _: &str, _: bool) -> Option<ContainerLog> {
        let text = "the controllers run in the process of `mainstay up`; their log is its standard error, \
                    and --log mainstay::decision=info adds a line for each decision";
        let lines = vec![LogLine { time: self.started, text: text.to_owned() }];
        Some(ContainerLog { existing: lines, new_lines: Box::pin(futures::stream::pending()) })
    }

    fn connect(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn PodConnection>, ConnectError>> {
        Box::pin(async move {
            if !PORTS.contains(&port) {
                let text = format!("nothing listens at port {port}; metrics are at {}", PORTS[0]);
                return Err(ConnectError(text));
            }
            let (client, server) = tokio::io::duplex(BUFFER);
            let health = self.health.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let response = health.respond(request.method(), request.uri().path());
                std::future::ready(Ok::<_, Infallible>(response))
            });
            // The task ends with the client's side of the connection.
            tokio::spawn(async move {
                if let Err(error) =
                    http1::Builder::new().serve_connection(TokioIo::new(server), service).await
                {
                    tracing::debug!(%error, "a connection to a pod of the controllers broke");
                }
            });
            Ok(Box::new(client) as Box<dyn PodConnection>)
        })
    }
}
