//! How the cluster learns where packages are served: an `APIService`, a Service, and the endpoint
//! behind it.
//!
//! Who works keeps them as they should be, and takes them away when it ends: an `APIService` with
//! nobody behind it breaks discovery, and so the deletion of namespaces. Who works and serves no packages
//! takes away what another one, that was killed, has left.

use super::certificate::{self, Certificate};
use crate::layout::{MANAGER, is_ours};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_client::{Backoff, Cache, Cluster, DeleteOptions, Result, Selection};
use mainstay_clock::Clock;
use mainstay_object::known::{API_SERVICE, ENDPOINT_SLICE, SERVICE};
use mainstay_object::{NamespacedName, Object, Resource};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The port of the Service, which is that of the original.
const PORT: u16 = 5443;
/// How long taking them away may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is registered.
pub(super) struct Registration {
    pub(super) cluster: Cluster,
    pub(super) clock: Clock,
    /// Where the Service is.
    pub(super) namespace: &'static str,
    /// Where the process is reached.
    pub(super) at: SocketAddr,
    pub(super) certificate: Arc<Certificate>,
}

impl Registration {
    /// Whether another program serves packages, as its registration says.
    pub(super) async fn is_taken(&self) -> Result<bool> {
        let [service, _, api] = self.objects();
        let api = self.cluster.find(&API_SERVICE, None, api.name()).await?;
        let service = self.cluster.find(&SERVICE, Some(self.namespace), service.name()).await?;
        Ok(api.is_some_and(|api| !is_ours(&api))
            || service.is_some_and(|service| !is_ours(&service)))
    }

    /// Keeps the registration until `term` ends, and takes it away then.
    pub(super) async fn keep(&self, term: &CancellationToken) {
        let bell = Arc::new(Notify::new());
        let stop = CancellationToken::new();
        let _ended = stop.clone().drop_guard();
        let seen = Seen::start(self, &bell, &stop);
        let mut made = self.clock.now();
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1));
        loop {
            let left = certificate::left(made, self.clock.now());
            let mut wait = left;
            if left.is_zero() {
                match self.certificate.renew() {
                    Ok(()) => {
                        made = self.clock.now();
                        wait = certificate::SHOWN;
                    }
                    Err(cause) => tracing::error!(%cause, "packages go on with their certificate"),
                }
            }
            let wanted = self.objects();
            match seen.settle(&self.cluster, &wanted).await {
                Ok(()) => {
                    // From now on the cluster believes its authority.
                    self.certificate.show();
                    backoff.reset();
                }
                Err(error) => {
                    tracing::warn!(%error, "packages cannot be registered, it is tried again");
                    wait = backoff.fail();
                }
            }
            tokio::select! {
                () = term.cancelled() => break,
                () = bell.notified() => {}
                // The wall clock may be set, or the machine suspended, meanwhile.
                () = tokio::time::sleep(mainstay_clock::wall_wait(wait)) => {}
            }
        }
        match tokio::time::timeout(PATIENCE, self.withdraw()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the registration of packages is left behind"),
            Err(_) => tracing::warn!("the registration of packages is left behind: no answer"),
        }
    }

    /// Takes away what leads here, and leaves what leads elsewhere by now.
    async fn withdraw(&self) -> Result<()> {
        let [service, slice, api] = self.objects();
        let authority = relevant(&api)["caBundle"].clone();
        let leads_here = |api: &Object| is_ours(api) && relevant(api)["caBundle"] == authority;
        if !remove(&self.cluster, &API_SERVICE, &api, leads_here).await? {
            return Ok(());
        }
        let endpoints = relevant(&slice);
        let leads_here = |slice: &Object| is_ours(slice) && contains(&relevant(slice), &endpoints);
        if remove(&self.cluster, &ENDPOINT_SLICE, &slice, leads_here).await? {
            remove(&self.cluster, &SERVICE, &service, is_ours).await?;
        }
        Ok(())
    }

    /// Service, endpoints and registration, in the order in which they are made.
    fn objects(&self) -> [Object; 3] {
        let (name, namespace) = (mainstay_packages::SERVICE, self.namespace);
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"ports": [
                {"name": "https", "port": PORT, "protocol": "TCP", "targetPort": self.at.port()},
            ]},
        });
        let family = if self.at.is_ipv4() { "IPv4" } else { "IPv6" };
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": slice_name(), "namespace": namespace,
                "labels": {
                    "kubernetes.io/service-name": name,
                    "endpointslice.kubernetes.io/managed-by": MANAGER,
                },
            },
            "addressType": family,
            "ports": [{"name": "https", "port": self.at.port(), "protocol": "TCP"}],
            "endpoints": [{"addresses": [self.at.ip()], "conditions": {"ready": true}}],
        });
        let mut api = mainstay_packages::registration(namespace);
        api.set(&["spec", "caBundle"], STANDARD.encode(self.certificate.bundle()).into());
        let object = |value| Object::from_value(value).unwrap_or_default();
        [object(service), object(slice), api]
    }
}

fn slice_name() -> String {
    format!("{}-{MANAGER}", mainstay_packages::SERVICE)
}

/// Takes away what a process like this left when it was killed, where nobody serves packages any more;
/// only for who holds the Lease. Tells whether there was a registration.
pub(in crate::run) async fn forget(cluster: &Cluster, namespace: &str) -> Result<bool> {
    let api = mainstay_packages::registration(namespace);
    let Some(there) = cluster.find(&API_SERVICE, None, api.name()).await? else {
        // Without it, the other two break nothing.
        return Ok(false);
    };
    let is_left = |api: &Object| {
        is_registered(api) && api.str(&["spec", "service", "namespace"]) == Some(namespace)
    };
    if !is_left(&there) || !remove(cluster, &API_SERVICE, &api, is_left).await? {
        return Ok(false);
    }
    let named = |resource: &Resource, name: &str| {
        let mut object = Object::new(&resource.gvk(), name);
        object.set(&["metadata", "namespace"], namespace.into());
        object
    };
    let slice = named(&ENDPOINT_SLICE, &slice_name());
    if remove(cluster, &ENDPOINT_SLICE, &slice, is_ours).await? {
        let service = named(&SERVICE, mainstay_packages::SERVICE);
        remove(cluster, &SERVICE, &service, is_ours).await?;
    }
    Ok(true)
}

/// Whether the authority in an `APIService` is that of a process like this: who wrote it last owns it.
fn is_registered(api: &Object) -> bool {
    let managers = api.array(&["metadata", "managedFields"]).iter();
    managers
        .filter(|entry| entry["manager"].as_str() == Some(MANAGER))
        .any(|entry| entry.pointer("/fieldsV1/f:spec/f:caBundle").is_some())
}

/// Removes an object in the state in which it was judged; tells whether it is gone.
async fn remove(
    cluster: &Cluster,
    resource: &Resource,
    object: &Object,
    leads_here: impl Fn(&Object) -> bool,
) -> Result<bool> {
    let at = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
    loop {
        let Some(there) = cluster.find(resource, at, object.name()).await? else {
            return Ok(true);
        };
        if !leads_here(&there) {
            return Ok(false);
        }
        let options = DeleteOptions::exactly(&there);
        match cluster.delete(resource, at, object.name(), &options).await {
            // Somebody wrote meanwhile: who looks after its status, or another process like this.
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            gone => return gone.map(|_| true),
        }
    }
}

/// What of an object says where packages are.
fn relevant(object: &Object) -> Value {
    match object.kind() {
        "EndpointSlice" => json!([object.array(&["endpoints"]), object.array(&["ports"])]),
        "Service" => json!(object.array(&["spec", "ports"])),
        _ => object.get(&["spec"]).cloned().unwrap_or_default(),
    }
}

/// Whether `live` contains every field of `desired`; servers add defaults.
fn contains(live: &Value, desired: &Value) -> bool {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) => desired
            .iter()
            .all(|(key, desired)| live.get(key).is_some_and(|live| contains(live, desired))),
        (Value::Array(live), Value::Array(desired)) => {
            live.len() == desired.len()
                && live.iter().zip(desired).all(|(live, desired)| contains(live, desired))
        }
        _ => live == desired,
    }
}

/// The objects as they are.
struct Seen([(Resource, NamespacedName, Cache<Value>); 3]);

impl Seen {
    fn start(to: &Registration, bell: &Arc<Notify>, stop: &CancellationToken) -> Self {
        let follow = |resource: Resource, object: &Object| {
            let mut selection = Selection::all(resource.clone());
            selection.fields = format!("metadata.name={}", object.name());
            let at = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
            selection.namespace = at.map(str::to_owned);
            let bell = Arc::clone(bell);
            let cache = Cache::builder(selection, |object| Some(relevant(object)))
                .subscribe(move |_| bell.notify_one())
                .start(&to.cluster, stop.clone());
            (resource, object.key(), cache)
        };
        let [service, slice, api] = to.objects();
        Self([follow(SERVICE, &service), follow(ENDPOINT_SLICE, &slice), follow(API_SERVICE, &api)])
    }

    /// Writes what is not as it should be.
    async fn settle(&self, cluster: &Cluster, wanted: &[Object; 3]) -> Result<()> {
        for ((resource, key, cache), wanted) in self.0.iter().zip(wanted) {
            cache.synced().await;
            if !cache.get(key).is_some_and(|spec| contains(&spec, &relevant(wanted))) {
                cluster.apply(resource, wanted, MANAGER).await?;
            }
        }
        Ok(())
    }
}

/// The address of this machine that leads to a host; found without sending anything.
pub(super) fn towards(host: &str) -> Option<IpAddr> {
    let address: IpAddr = host.parse().ok()?;
    let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
    let socket = std::net::UdpSocket::bind((any, 0)).ok()?;
    // Connecting a datagram socket only chooses a route.
    socket.connect((address, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_is_of_who_wrote_its_authority_last() {
        let with = |managed: Value| {
            let api = json!({"metadata": {"managedFields": managed}, "spec": {"caBundle": "YQ=="}});
            Object::from_value(api).expect("an object")
        };
        let entry =
            |manager: &str, spec: Value| json!({"manager": manager, "fieldsV1": {"f:spec": spec}});
        let authority = || json!({"f:caBundle": {}, "f:group": {}});
        assert!(is_registered(&with(json!([entry("mainstay", authority())]))));
        assert!(!is_registered(&with(json!([entry("olm", authority())]))));
        // Another program took it over; what it left as it was is still owned by both.
        let both = json!([entry("mainstay", json!({"f:group": {}})), entry("olm", authority())]);
        assert!(!is_registered(&with(both)));
        assert!(!is_registered(&with(json!([]))));
    }

    #[test]
    fn what_servers_add_is_no_difference() {
        let wanted = json!([{"name": "https", "port": 5443}]);
        assert!(contains(&json!([{"name": "https", "port": 5443, "nodePort": 1}]), &wanted));
        assert!(!contains(&json!([{"name": "https", "port": 443}]), &wanted));
        assert!(!contains(&json!([]), &wanted));
        assert!(!contains(&json!(null), &wanted));
    }
}
