//! Simulated pods: annotations give a pod a log, and map its ports to programs of this machine.

use super::{ConnectError, ContainerLog, InProcessPod, LogLine, PodConnection};
use futures::future::BoxFuture;
use futures::{StreamExt as _, stream};
use mainstay_object::Object;
use mainstay_security::{HOST_PORTS, host_port};
use mainstay_store::Store;
use serde_json::Value;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// The annotation with the lines of the containers' log.
pub(crate) const LOG: &str = "mainstay.dev/log";
/// The annotation that maps ports of a pod to ports of this machine.
pub(crate) const PORTS: &str = HOST_PORTS;

/// How often a followed log checks whether the container still runs.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A simulated pod.
pub(super) struct SimulatedPod {
    pod: Object,
    store: Store,
}

impl SimulatedPod {
    /// A pod with a log.
    pub(super) fn with_log(pod: &Object, store: &Store) -> Option<Arc<dyn InProcessPod>> {
        pod.annotation(LOG)?;
        Some(Arc::new(Self { pod: pod.clone(), store: store.clone() }))
    }

    /// A pod with mapped ports.
    pub(super) fn with_ports(pod: &Object, store: &Store) -> Option<Arc<dyn InProcessPod>> {
        pod.annotation(PORTS)?;
        Some(Arc::new(Self { pod: pod.clone(), store: store.clone() }))
    }
}

/// Whether a container of a pod still runs.
fn is_running(store: &Store, pod: &Object, container: &str) -> bool {
    let found = store.find("pods", pod.namespace(), pod.name()).map(|stored| stored.object());
    found.filter(|found| found.uid() == pod.uid()).is_some_and(|found| {
        let status = super::options::container_status(&found, container);
        status.is_some_and(|status| status.pointer("/state/running").is_some_and(Value::is_object))
    })
}

impl InProcessPod for SimulatedPod {
    fn log(&self, container: &str, previous: bool) -> Option<ContainerLog> {
        let text = self.pod.annotation(LOG)?;
        let status = super::options::container_status(&self.pod, container);
        let states = if previous {
            ["/lastState/terminated/startedAt"].as_slice()
        } else {
            &[
                "/state/running/startedAt",
                "/state/terminated/startedAt",
                // A container that waits for its restart.
                "/lastState/terminated/startedAt",
            ]
        };
        let started =
            states.iter().find_map(|state| status?.pointer(state)?.as_str()?.parse().ok());
        // The caller has checked that the container ran.
        let time = started.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let existing = text.lines().map(|line| LogLine { time, text: line.to_owned() }).collect();
        let (pod, store, container) = (self.pod.clone(), self.store.clone(), container.to_owned());
        // No line is added; a client that follows the log waits until the container ends.
        let new_lines = stream::once(async move {
            while is_running(&store, &pod, &container) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        });
        let new_lines = new_lines.filter_map(async |()| None).boxed();
        Some(ContainerLog { existing, new_lines })
    }

    fn connect(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn PodConnection>, ConnectError>> {
        Box::pin(async move {
            let ports = self.pod.annotation(PORTS).unwrap_or_default();
            let Some(host) = host_port(ports, port) else {
                return Err(ConnectError(format!(
                    "port {port} is not mapped: add it to the pod's annotation {PORTS}"
                )));
            };
            let stream =
                TcpStream::connect((Ipv4Addr::LOCALHOST, host)).await.map_err(|error| {
                    let reason = match error.kind() {
                        std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
                        _ => error.to_string(),
                    };
                    ConnectError(format!("dial tcp 127.0.0.1:{host}: connect: {reason}"))
                })?;
            // Small writes are sent at once.
            let _ = stream.set_nodelay(true);
            Ok(Box::new(stream) as Box<dyn PodConnection>)
        })
    }
}
