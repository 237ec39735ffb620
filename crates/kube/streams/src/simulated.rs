//! What a simulated pod can do of what goes on in a pod: have a log, and lend its ports to programs
//! of this machine. Its annotations say so.

use super::{ConnectError, Connection, Log, LogLine, NativePod};
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

/// The annotation with what the containers of a pod have written: its lines.
pub(crate) const LOG: &str = "mainstay.dev/log";
/// The annotation that puts ports of this machine behind ports of a pod.
pub(crate) const PORTS: &str = HOST_PORTS;

/// How often somebody who follows a log looks whether it can go on.
const LOOK: Duration = Duration::from_secs(1);

/// A simulated pod.
pub(super) struct Simulated {
    pod: Object,
    store: Store,
}

impl Simulated {
    /// One that has a log.
    pub(super) fn with_log(pod: &Object, store: &Store) -> Option<Arc<dyn NativePod>> {
        pod.annotation(LOG)?;
        Some(Arc::new(Self { pod: pod.clone(), store: store.clone() }))
    }

    /// One with ports behind which there is something.
    pub(super) fn with_ports(pod: &Object, store: &Store) -> Option<Arc<dyn NativePod>> {
        pod.annotation(PORTS)?;
        Some(Arc::new(Self { pod: pod.clone(), store: store.clone() }))
    }
}

/// Whether a container of a pod still runs.
fn goes_on(store: &Store, pod: &Object, container: &str) -> bool {
    let found = store.find("pods", pod.namespace(), pod.name()).map(|stored| stored.object());
    found.filter(|found| found.uid() == pod.uid()).is_some_and(|found| {
        let status = super::options::status_of(&found, container);
        status.is_some_and(|status| status.pointer("/state/running").is_some_and(Value::is_object))
    })
}

impl NativePod for Simulated {
    fn log(&self, container: &str, previous: bool) -> Option<Log> {
        let text = self.pod.annotation(LOG)?;
        let status = super::options::status_of(&self.pod, container);
        let states = if previous {
            ["/lastState/terminated/startedAt"].as_slice()
        } else {
            &[
                "/state/running/startedAt",
                "/state/terminated/startedAt",
                // One that waits to be restarted.
                "/lastState/terminated/startedAt",
            ]
        };
        let begun = states.iter().find_map(|state| status?.pointer(state)?.as_str()?.parse().ok());
        // A container that never ran is not asked for its log.
        let time = begun.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        let kept = text.lines().map(|line| LogLine { time, text: line.to_owned() }).collect();
        let (pod, store, container) = (self.pod.clone(), self.store.clone(), container.to_owned());
        // Nothing more comes; whoever follows waits until the container ends.
        let coming = stream::once(async move {
            while goes_on(&store, &pod, &container) {
                tokio::time::sleep(LOOK).await;
            }
        });
        let coming = coming.filter_map(async |()| None).boxed();
        Some(Log { kept, coming })
    }

    fn connect(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn Connection>, ConnectError>> {
        Box::pin(async move {
            let ports = self.pod.annotation(PORTS).unwrap_or_default();
            let Some(host) = host_port(ports, port) else {
                return Err(ConnectError(format!(
                    "nothing is behind port {port}: the pod's annotation {PORTS} does not name it"
                )));
            };
            let stream =
                TcpStream::connect((Ipv4Addr::LOCALHOST, host)).await.map_err(|error| {
                    let why = match error.kind() {
                        std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
                        _ => error.to_string(),
                    };
                    ConnectError(format!("dial tcp 127.0.0.1:{host}: connect: {why}"))
                })?;
            // Bytes leave as they come.
            let _ = stream.set_nodelay(true);
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}
