//! Availability of remote group-versions: the condition `Available` of their `APIService`
//! (`k8s.io/kube-aggregator/pkg/controllers/status`).

use super::error::SendError;
use super::observed::ObservedDiscovery;
use super::remote::{Remote, SLICES, STORAGE, condition};
use super::transport::{self, RemoteResponse};
use super::{discovery, documents};
use crate::server::ApiServer;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use mainstay_auth::Identity;
use mainstay_object::Object;
use serde_json::{Value, json};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Interval of checks after a success.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// Delay of the first check after a failure.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// Timeout of a discovery request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum bytes of a discovery document.
const MAX_DOCUMENT_SIZE: usize = 8 * 1024 * 1024;

/// The tasks that monitor a remote group-version; they end when this is dropped.
pub(super) struct AvailabilityMonitor {
    tasks: [JoinHandle<()>; 2],
    observed: Remote,
}

impl Drop for AvailabilityMonitor {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl AvailabilityMonitor {
    pub(super) fn start(server: &Arc<ApiServer>, remote: &Remote, trigger: Arc<Notify>) -> Self {
        let name = remote.name.clone();
        let server = Arc::downgrade(server);
        let documents = Arc::new(Notify::new());
        let refresh =
            documents::refresh_periodically(server.clone(), name.clone(), documents.clone());
        let checks = monitor(server, name, trigger, documents);
        let tasks = [tokio::spawn(checks), tokio::spawn(refresh)];
        Self { tasks, observed: remote.clone() }
    }

    /// Whether the `APIService` has changed, apart from its condition.
    pub(super) fn differs(&self, remote: &Remote) -> bool {
        let observed = Remote { available: remote.available, ..self.observed.clone() };
        observed != *remote
    }

    pub(super) fn set_observed(&mut self, remote: &Remote) {
        self.observed = remote.clone();
    }
}

/// Checks a remote group-version until its `APIService` is deleted. Notifies `documents` when it
/// becomes available.
async fn monitor(
    server: Weak<ApiServer>,
    name: Arc<str>,
    trigger: Arc<Notify>,
    documents: Arc<Notify>,
) {
    let mut delay = RETRY_DELAY;
    let mut was_available = false;
    loop {
        {
            let Some(server) = server.upgrade() else { return };
            let Some(stored) = server.store.find(STORAGE, "", &name) else { return };
            let Some(remote) = Remote::read(&stored.object()) else { return };
            let discovered = match check(&server, &remote).await {
                Ok(version) => {
                    delay = CHECK_INTERVAL;
                    record_discovery(&server, &name, Some(version));
                    json!({"status": "True", "reason": "Passed", "message": "all checks passed"})
                }
                Err((reason, message)) => {
                    // Changes of Services and EndpointSlices trigger a check at once.
                    delay = match reason {
                        "FailedDiscoveryCheck" => (delay * 2).min(CHECK_INTERVAL),
                        _ => CHECK_INTERVAL,
                    };
                    record_discovery(&server, &name, None);
                    json!({"status": "False", "reason": reason, "message": message})
                }
            };
            let mut condition = discovered;
            condition["type"] = "Available".into();
            condition["lastTransitionTime"] = server.clock.now_rfc3339().into();
            let is_available = condition["status"] == "True";
            if let Some(stored) = server.store.find(STORAGE, "", &name) {
                write_condition(&server, stored.object(), condition).await;
            }
            if is_available && !was_available {
                documents.notify_one();
            }
            was_available = is_available;
        }
        tokio::select! {
            () = trigger.notified() => delay = delay.min(RETRY_DELAY),
            () = tokio::time::sleep(delay) => {}
        }
    }
}

fn record_discovery(server: &ApiServer, name: &Arc<str>, discovered: Option<Value>) {
    let mut all = server.aggregation.discovered.lock();
    match discovered {
        Some(version) => {
            all.insert(name.clone(), ObservedDiscovery { version, stale: false });
        }
        None => {
            all.entry(name.clone())
                .and_modify(|discovered| discovered.stale = true)
                .or_insert(ObservedDiscovery { version: Value::Null, stale: true });
        }
    }
}

/// Checks the Service, its endpoints and the discovery. Returns the discovered version, or the
/// reason and message of the condition.
async fn check(server: &ApiServer, remote: &Remote) -> Result<Value, (&'static str, String)> {
    let Remote { namespace, service, port, .. } = remote;
    if server.aggregation.native(remote).is_none() {
        let stored = server.store.find("services", namespace, service);
        let stored = stored.ok_or_else(|| {
            ("ServiceNotFound", format!("service/{service} in {namespace:?} is not present"))
        })?;
        let object = stored.object();
        if matches!(object.str(&["spec", "type"]), Some("ClusterIP") | None)
            && !mainstay_fault::is_on("apiservices-need-no-endpoints")
        {
            check_endpoints(server, remote, &object)?;
        }
    }
    let failed = |why: String| ("FailedDiscoveryCheck", why);
    let host = transport::endpoint(server, remote).map_err(|error| failed(error.to_string()))?;
    let url = format!("https://{}{}", host.host_port(*port), remote.path());
    let response = fetch(server, remote, &remote.path(), "application/json").await;
    let response = response.map_err(|why| {
        failed(format!("failing or missing response from {url}: Get {url:?}: {why}"))
    })?;
    if !response.is_success() {
        let code = response.code;
        return Err(failed(format!(
            "failing or missing response from {url}: bad status from {url}: {code}"
        )));
    }
    let aggregated_list = fetch(server, remote, "/apis", discovery::ACCEPT).await.ok();
    Ok(discovery::version(remote, aggregated_list.as_ref(), &response))
}

async fn fetch(
    server: &ApiServer,
    remote: &Remote,
    path: &str,
    accept: &str,
) -> Result<transport::BufferedResponse, SendError> {
    let identity = Identity::new("system:kube-aggregator", [mainstay_auth::MASTERS.to_owned()]);
    let request = Request::get(path).header("accept", accept).body(Bytes::new());
    let request = request?;
    let exchange = async {
        let sent: RemoteResponse = transport::send(server, remote, &identity, request).await?;
        sent.buffer(MAX_DOCUMENT_SIZE).await
    };
    tokio::time::timeout(TIMEOUT, exchange).await.unwrap_or(Err(SendError::Timeout))
}

/// Checks that a Service listens on the port and has a ready endpoint for it.
fn check_endpoints(
    server: &ApiServer,
    remote: &Remote,
    service: &Object,
) -> Result<(), (&'static str, String)> {
    let Remote { namespace, service: name, port, .. } = remote;
    let number = |value: &Value| value.get("port").and_then(Value::as_u64);
    let ports = service.array(&["spec", "ports"]);
    let Some(discovered) = ports.iter().find(|entry| number(entry) == Some(u64::from(*port)))
    else {
        let why = format!("service/{name} in {namespace:?} is not listening on port {port}");
        return Err(("ServicePortError", why));
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let port_name = text(&discovered["name"]);
    let of_service = |slice: &Object| {
        slice.labels().any(|(key, value)| key == "kubernetes.io/service-name" && value == name)
    };
    let slices = server.store.list(SLICES, Some(namespace));
    let slices: Vec<Object> =
        slices.iter().map(|stored| stored.object()).filter(of_service).collect();
    if slices.is_empty() {
        let why = format!("cannot find endpointslices for service/{name} in {namespace:?}");
        return Err(("EndpointsNotFound", why));
    }
    let ready = |endpoint: &Value| {
        endpoint.pointer("/conditions/ready").and_then(Value::as_bool).unwrap_or(true)
    };
    let active = slices.iter().any(|slice| {
        slice.array(&["endpoints"]).iter().any(ready)
            && slice.array(&["ports"]).iter().any(|entry| {
                text(entry.get("name").unwrap_or(&Value::Null)) == port_name
                    && number(entry).is_some()
            })
    });
    if active {
        return Ok(());
    }
    let why = format!(
        "endpointslices for service/{name} in {namespace:?} have no addresses with port name {port_name:?}"
    );
    Err(("MissingEndpoints", why))
}

/// Writes a condition if it differs. `lastTransitionTime` changes only with the status.
pub(super) async fn write_condition(
    server: &Arc<ApiServer>,
    mut object: Object,
    mut expected: Value,
) {
    if let Some(current) = condition(&object) {
        let is_same = |field: &str| current.get(field) == expected.get(field);
        if ["status", "reason", "message"].into_iter().all(is_same) {
            return;
        }
        if is_same("status") {
            expected["lastTransitionTime"] = current["lastTransitionTime"].clone();
        }
    }
    if mainstay_fault::is_on("conditions-of-apiservices-have-no-message") {
        expected["message"] = "".into();
    }
    let mut conditions = object.array(&["status", "conditions"]).to_vec();
    match conditions.iter_mut().find(|entry| entry["type"] == "Available") {
        Some(entry) => *entry = expected,
        None => conditions.push(expected),
    }
    object.set(&["status", "conditions"], conditions.into());
    let name = object.name().to_owned();
    // After a conflict, the change of the other writer triggers another check.
    own_request(server, Method::PUT, &name, "/status", &object.into_value()).await;
}

/// Sends a request of the server itself for an `APIService`.
pub(super) async fn own_request(
    server: &Arc<ApiServer>,
    method: Method,
    name: &str,
    subresource: &str,
    body: &Value,
) {
    let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{name}{subresource}");
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("user-agent", "kube-apiserver");
    let Ok(request) = request.body(Full::new(body)) else { return };
    let response = server.answer(&Identity::admin(), request).await;
    if !response.status().is_success() {
        tracing::debug!(name, status = %response.status(), "cannot write the APIService");
    }
}
