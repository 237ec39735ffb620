//! The pods that stand for the controllers of this process.
//!
//! OLM runs as two Deployments, and scripts, tutorials and tests wait for them, look for their pods by
//! label and read `/metrics` through the pods' proxy. In `mainstay up` the controllers run in the process
//! of the API; these Deployments and their simulated pods show them where people look. The ports of the
//! pods answer `/metrics`, `/healthz` and `/readyz`.
//!
//! What the pods do not do: control the controllers. Scaling a Deployment down stops nothing.

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
use mainstay_object::known::DEPLOYMENT;
use mainstay_streams::{ConnectError, Connection, Log, LogLine, NativePod};
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;

/// The Deployments of OLM, by the names and the values of the label `app` that it gives them.
const NAMES: [&str; 2] = ["olm-operator", "catalog-operator"];
/// The port of metrics with TLS in OLM's own Deployments, and the two that it had without.
const PORTS: [u16; 3] = [8443, 8080, 8081];
/// Bytes on their way between a client and the process.
const BUFFER: usize = 64 << 10;

/// Makes sure that the Deployments are there, and answers for their pods in `namespace`.
///
/// # Errors
/// Why a Deployment cannot be applied.
pub(crate) async fn apply(
    server: &ApiServer,
    cluster: &Cluster,
    namespace: &'static str,
    clock: Clock,
    health: &Health,
) -> Result<(), Cause> {
    let pod: Arc<dyn NativePod> =
        Arc::new(ControllerPod { health: health.clone(), started: clock.now() });
    server.put_native_pods(move |candidate| {
        let app = candidate.label("app").unwrap_or_default();
        let is_controller_pod = candidate.namespace() == namespace && NAMES.contains(&app);
        is_controller_pod.then(|| Arc::clone(&pod))
    });
    let applied = NAMES.map(|name| async move {
        layout::apply(cluster, &DEPLOYMENT, &manifest(namespace, name)).await.map(drop)
    });
    futures::future::try_join_all(applied).await.map(drop)
}

/// Takes the Deployments away where no controllers run in this process any more.
///
/// # Errors
/// Why one cannot be read or deleted.
pub(crate) async fn delete(cluster: &Cluster, namespace: &str) -> Result<(), Cause> {
    for name in NAMES {
        let refused = |error: &mainstay_client::Error| {
            Cause::new(format!("Deployment `{namespace}/{name}` cannot be taken away"))
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

/// A pod behind which this process answers.
struct ControllerPod {
    health: Health,
    started: jiff::Timestamp,
}

impl NativePod for ControllerPod {
    fn log(&self, _: &str, _: bool) -> Option<Log> {
        let text = "the controllers run in the process of `mainstay up`; their log is its standard error, \
                    and --log mainstay::decision=info adds a line for each decision";
        let kept = vec![LogLine { time: self.started, text: text.to_owned() }];
        Some(Log { kept, coming: Box::pin(futures::stream::pending()) })
    }

    fn connect(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn Connection>, ConnectError>> {
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
            // It ends with the client's side of the connection.
            tokio::spawn(async move {
                if let Err(error) =
                    http1::Builder::new().serve_connection(TokioIo::new(server), service).await
                {
                    tracing::debug!(%error, "a connection to a pod of the controllers broke");
                }
            });
            Ok(Box::new(client) as Box<dyn Connection>)
        })
    }
}
