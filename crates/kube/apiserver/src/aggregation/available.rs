//! Whether the servers of remote group-versions can be asked
//! (`k8s.io/kube-aggregator/pkg/controllers/status`).

use super::error::SendError;
use super::found::Found;
use super::remote::{Remote, SLICES, STORAGE, condition};
use super::wire::{self, Sent};
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

/// How often what works is looked at again.
const AGAIN: Duration = Duration::from_secs(30);
/// How soon what failed is looked at again, the first time.
const SOON: Duration = Duration::from_millis(100);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a discovery document, at most.
const DOCUMENT: usize = 8 * 1024 * 1024;

/// Who looks after a remote group-version; ends when dropped.
pub(super) struct Looked {
    tasks: [JoinHandle<()>; 2],
    seen: Remote,
}

impl Drop for Looked {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Looked {
    pub(super) fn begin(server: &Arc<ApiServer>, remote: &Remote, bell: Arc<Notify>) -> Self {
        let name = remote.name.clone();
        let server = Arc::downgrade(server);
        let documents = Arc::new(Notify::new());
        let of_documents = documents::keep(server.clone(), name.clone(), documents.clone());
        let looking = keep(server, name, bell, documents);
        let tasks = [tokio::spawn(looking), tokio::spawn(of_documents)];
        Self { tasks, seen: remote.clone() }
    }

    /// Whether the object says something else than it did, besides its condition.
    pub(super) fn differs(&self, remote: &Remote) -> bool {
        let seen = Remote { available: remote.available, ..self.seen.clone() };
        seen != *remote
    }

    pub(super) fn now(&mut self, remote: &Remote) {
        self.seen = remote.clone();
    }
}

/// `documents` is rung when what did not work before does.
async fn keep(server: Weak<ApiServer>, name: Arc<str>, bell: Arc<Notify>, documents: Arc<Notify>) {
    let mut wait = SOON;
    let mut worked = false;
    loop {
        {
            let Some(server) = server.upgrade() else { return };
            let Some(stored) = server.store.find(STORAGE, "", &name) else { return };
            let Some(remote) = Remote::read(&stored.object()) else { return };
            let found = match look(&server, &remote).await {
                Ok(version) => {
                    wait = AGAIN;
                    note(&server, &name, Some(version));
                    json!({"status": "True", "reason": "Passed", "message": "all checks passed"})
                }
                Err((reason, message)) => {
                    // Services and endpoints ring the bell when they change.
                    wait = match reason {
                        "FailedDiscoveryCheck" => (wait * 2).min(AGAIN),
                        _ => AGAIN,
                    };
                    note(&server, &name, None);
                    json!({"status": "False", "reason": reason, "message": message})
                }
            };
            let mut condition = found;
            condition["type"] = "Available".into();
            condition["lastTransitionTime"] = server.clock.now_rfc3339().into();
            let works = condition["status"] == "True";
            if let Some(stored) = server.store.find(STORAGE, "", &name) {
                write(&server, stored.object(), condition).await;
            }
            if works && !worked {
                documents.notify_one();
            }
            worked = works;
        }
        tokio::select! {
            () = bell.notified() => wait = wait.min(SOON),
            () = tokio::time::sleep(wait) => {}
        }
    }
}

fn note(server: &ApiServer, name: &Arc<str>, found: Option<Value>) {
    let mut all = server.aggregation.found.lock();
    match found {
        Some(version) => {
            all.insert(name.clone(), Found { version, stale: false });
        }
        None => {
            all.entry(name.clone())
                .and_modify(|found| found.stale = true)
                .or_insert(Found { version: Value::Null, stale: true });
        }
    }
}

/// Looks at Service, endpoints and discovery; gives what discovery says of the version, or the
/// reason and message of the condition.
async fn look(server: &ApiServer, remote: &Remote) -> Result<Value, (&'static str, String)> {
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
            endpoints(server, remote, &object)?;
        }
    }
    let failed = |why: String| ("FailedDiscoveryCheck", why);
    let host = wire::endpoint(server, remote).map_err(|error| failed(error.to_string()))?;
    let url = format!("https://{}{}", host.shown(*port), remote.path());
    let answered = ask(server, remote, &remote.path(), "application/json").await;
    let answered = answered.map_err(|why| {
        failed(format!("failing or missing response from {url}: Get {url:?}: {why}"))
    })?;
    if !answered.is_good() {
        let code = answered.code;
        return Err(failed(format!(
            "failing or missing response from {url}: bad status from {url}: {code}"
        )));
    }
    let whole = ask(server, remote, "/apis", discovery::ACCEPT).await.ok();
    Ok(discovery::version(remote, whole.as_ref(), &answered))
}

async fn ask(
    server: &ApiServer,
    remote: &Remote,
    path: &str,
    accept: &str,
) -> Result<wire::Whole, SendError> {
    let identity = Identity::new("system:kube-aggregator", [mainstay_auth::MASTERS.to_owned()]);
    let request = Request::get(path).header("accept", accept).body(Bytes::new());
    let request = request?;
    let asked = async {
        let sent: Sent = wire::send(server, remote, &identity, request).await?;
        sent.whole(DOCUMENT).await
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or(Err(SendError::Timeout))
}

/// Whether a Service listens on the port and has an endpoint for it.
fn endpoints(
    server: &ApiServer,
    remote: &Remote,
    service: &Object,
) -> Result<(), (&'static str, String)> {
    let Remote { namespace, service: name, port, .. } = remote;
    let number = |value: &Value| value.get("port").and_then(Value::as_u64);
    let ports = service.array(&["spec", "ports"]);
    let Some(found) = ports.iter().find(|one| number(one) == Some(u64::from(*port))) else {
        let why = format!("service/{name} in {namespace:?} is not listening on port {port}");
        return Err(("ServicePortError", why));
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let port_name = text(&found["name"]);
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
            && slice.array(&["ports"]).iter().any(|one| {
                text(one.get("name").unwrap_or(&Value::Null)) == port_name && number(one).is_some()
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

/// Writes a condition, if it says something new. The time of a change is kept while the status is.
pub(super) async fn write(server: &Arc<ApiServer>, mut object: Object, mut wanted: Value) {
    if let Some(is) = condition(&object) {
        let same = |field: &str| is.get(field) == wanted.get(field);
        if ["status", "reason", "message"].into_iter().all(same) {
            return;
        }
        if same("status") {
            wanted["lastTransitionTime"] = is["lastTransitionTime"].clone();
        }
    }
    if mainstay_fault::is_on("conditions-of-apiservices-have-no-message") {
        wanted["message"] = "".into();
    }
    let mut conditions = object.array(&["status", "conditions"]).to_vec();
    match conditions.iter_mut().find(|one| one["type"] == "Available") {
        Some(one) => *one = wanted,
        None => conditions.push(wanted),
    }
    object.set(&["status", "conditions"], conditions.into());
    let name = object.name().to_owned();
    // Whoever changed it meanwhile brings us here again.
    own_request(server, Method::PUT, &name, "/status", &object.into_value()).await;
}

/// A request of the server itself for an `APIService`.
pub(super) async fn own_request(
    server: &Arc<ApiServer>,
    method: Method,
    name: &str,
    part: &str,
    body: &Value,
) {
    let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{name}{part}");
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("user-agent", "kube-apiserver");
    let Ok(request) = request.body(Full::new(body)) else { return };
    let response = server.answer(&Identity::admin(), request).await;
    if !response.status().is_success() {
        tracing::debug!(name, status = %response.status(), "an APIService was not written");
    }
}
