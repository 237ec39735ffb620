//! Registration of the package server with the cluster: an `APIService`, a Service, and its
//! EndpointSlice.
//!
//! The leader keeps these objects in their desired state, and deletes them when its term ends. An
//! `APIService` without a backend breaks discovery, and so the deletion of namespaces. A leader that
//! serves no packages deletes the registration that a killed process left.

use super::certificate::{self, ServingCertificate};
use crate::layout::{MANAGER, is_ours};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_client::{Backoff, Cache, Cluster, DeleteOptions, Result, Selection};
use mainstay_clock::Clock;
use mainstay_object::builtin::{API_SERVICE, ENDPOINT_SLICE, SERVICE};
use mainstay_object::{NamespacedName, Object, Resource};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The port of the Service, as in OLM.
const PORT: u16 = 5443;
/// How long the deletion may take.
const WITHDRAW_TIMEOUT: Duration = Duration::from_secs(5);

/// The package server to register.
pub(super) struct Registration {
    pub(super) cluster: Cluster,
    pub(super) clock: Clock,
    /// The namespace of the Service.
    pub(super) namespace: &'static str,
    /// The address in the EndpointSlice.
    pub(super) address: SocketAddr,
    pub(super) certificate: Arc<ServingCertificate>,
}

impl Registration {
    /// Whether another program owns the `APIService` or the Service.
    pub(super) async fn is_owned_by_another_program(&self) -> Result<bool> {
        let [service, _, api] = self.objects();
        let api = self.cluster.find(&API_SERVICE, None, api.name()).await?;
        let service = self.cluster.find(&SERVICE, Some(self.namespace), service.name()).await?;
        Ok(api.is_some_and(|api| !is_ours(&api))
            || service.is_some_and(|service| !is_ours(&service)))
    }

    /// Maintains the registration until `term` ends, then deletes it.
    pub(super) async fn maintain(&self, term: &CancellationToken) {
        let changed = Arc::new(Notify::new());
        let stop = CancellationToken::new();
        let _ended = stop.clone().drop_guard();
        let caches = RegistrationCaches::start(self, &changed, &stop);
        let mut created = self.clock.now();
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_mins(1));
        loop {
            let until_rotation = certificate::time_until_rotation(created, self.clock.now());
            let mut wait = until_rotation;
            if until_rotation.is_zero() {
                match self.certificate.renew() {
                    Ok(()) => {
                        created = self.clock.now();
                        wait = certificate::ROTATION_INTERVAL;
                    }
                    Err(cause) => {
                        tracing::error!(%cause, "packages keep their current certificate");
                    }
                }
            }
            let desired = self.objects();
            match caches.apply_changes(&self.cluster, &desired).await {
                Ok(()) => {
                    // From now on the API server trusts the new CA.
                    self.certificate.activate();
                    backoff.reset();
                }
                Err(error) => {
                    tracing::warn!(%error, "packages cannot be registered, and the registration is retried");
                    wait = backoff.fail();
                }
            }
            tokio::select! {
                () = term.cancelled() => break,
                () = changed.notified() => {}
                // Meanwhile the wall clock may be set, or the machine suspended.
                () = tokio::time::sleep(mainstay_clock::recheck_delay(wait)) => {}
            }
        }
        match tokio::time::timeout(WITHDRAW_TIMEOUT, self.unregister()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the registration of packages is not deleted"),
            Err(_) => tracing::warn!("the registration of packages is not deleted: no response"),
        }
    }

    /// Deletes the objects that route to this process, and keeps those that route elsewhere by now.
    async fn unregister(&self) -> Result<()> {
        let [service, slice, api] = self.objects();
        let authority = routing_fields(&api)["caBundle"].clone();
        let routes_here =
            |api: &Object| is_ours(api) && routing_fields(api)["caBundle"] == authority;
        if !delete_if(&self.cluster, &API_SERVICE, &api, routes_here).await? {
            return Ok(());
        }
        let endpoints = routing_fields(&slice);
        let routes_here =
            |slice: &Object| is_ours(slice) && contains(&routing_fields(slice), &endpoints);
        if delete_if(&self.cluster, &ENDPOINT_SLICE, &slice, routes_here).await? {
            delete_if(&self.cluster, &SERVICE, &service, is_ours).await?;
        }
        Ok(())
    }

    /// Service, EndpointSlice and APIService, in the order of their creation.
    fn objects(&self) -> [Object; 3] {
        let (name, namespace) = (mainstay_packages::SERVICE, self.namespace);
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"ports": [
                {"name": "https", "port": PORT, "protocol": "TCP", "targetPort": self.address.port()},
            ]},
        });
        let family = if self.address.is_ipv4() { "IPv4" } else { "IPv6" };
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
            "ports": [{"name": "https", "port": self.address.port(), "protocol": "TCP"}],
            "endpoints": [{"addresses": [self.address.ip()], "conditions": {"ready": true}}],
        });
        let mut api = mainstay_packages::registration(namespace);
        api.set(&["spec", "caBundle"], STANDARD.encode(self.certificate.ca_bundle()).into());
        let object = |value| Object::from_value(value).unwrap_or_default();
        [object(service), object(slice), api]
    }
}

fn slice_name() -> String {
    format!("{}-{MANAGER}", mainstay_packages::SERVICE)
}

/// Deletes the registration that a killed process left, where no process serves packages any more. Only
/// the holder of the Lease may call it. Returns whether there was a registration.
pub(in crate::run) async fn remove_stale_registration(
    cluster: &Cluster,
    namespace: &str,
) -> Result<bool> {
    let api = mainstay_packages::registration(namespace);
    let Some(live) = cluster.find(&API_SERVICE, None, api.name()).await? else {
        // Without the APIService, the Service and the EndpointSlice break nothing.
        return Ok(false);
    };
    let is_stale = |api: &Object| {
        owns_ca_bundle(api) && api.str(&["spec", "service", "namespace"]) == Some(namespace)
    };
    if !is_stale(&live) || !delete_if(cluster, &API_SERVICE, &api, is_stale).await? {
        return Ok(false);
    }
    let object_named = |resource: &Resource, name: &str| {
        let mut object = Object::new(&resource.gvk(), name);
        object.set(&["metadata", "namespace"], namespace.into());
        object
    };
    let slice = object_named(&ENDPOINT_SLICE, &slice_name());
    if delete_if(cluster, &ENDPOINT_SLICE, &slice, is_ours).await? {
        let service = object_named(&SERVICE, mainstay_packages::SERVICE);
        delete_if(cluster, &SERVICE, &service, is_ours).await?;
    }
    Ok(true)
}

/// Whether this program owns the CA bundle of an `APIService`: the last writer of a field owns it.
fn owns_ca_bundle(api: &Object) -> bool {
    let managers = api.array(&["metadata", "managedFields"]).iter();
    managers
        .filter(|entry| entry["manager"].as_str() == Some(MANAGER))
        .any(|entry| entry.pointer("/fieldsV1/f:spec/f:caBundle").is_some())
}

/// Deletes an object in exactly the state that `routes_here` accepted; returns whether it is gone.
async fn delete_if(
    cluster: &Cluster,
    resource: &Resource,
    object: &Object,
    routes_here: impl Fn(&Object) -> bool,
) -> Result<bool> {
    let namespace = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
    loop {
        let Some(live) = cluster.find(resource, namespace, object.name()).await? else {
            return Ok(true);
        };
        if !routes_here(&live) {
            return Ok(false);
        }
        let options = DeleteOptions::exactly(&live);
        match cluster.delete(resource, namespace, object.name(), &options).await {
            // Another writer was faster: a controller of its status, or another process of this
            // program.
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            gone => return gone.map(|_| true),
        }
    }
}

/// The fields of an object that route requests to the package server.
fn routing_fields(object: &Object) -> Value {
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

/// Caches of the live objects.
struct RegistrationCaches([(Resource, NamespacedName, Cache<Value>); 3]);

impl RegistrationCaches {
    fn start(registration: &Registration, changed: &Arc<Notify>, stop: &CancellationToken) -> Self {
        let follow = |resource: Resource, object: &Object| {
            let mut selection = Selection::all(resource.clone());
            selection.fields = format!("metadata.name={}", object.name());
            let namespace = Some(object.namespace()).filter(|namespace| !namespace.is_empty());
            selection.namespace = namespace.map(str::to_owned);
            let changed = Arc::clone(changed);
            let cache = Cache::builder(selection, |object| Some(routing_fields(object)))
                .subscribe(move |_| changed.notify_one())
                .start(&registration.cluster, stop.clone());
            (resource, object.key(), cache)
        };
        let [service, slice, api] = registration.objects();
        Self([follow(SERVICE, &service), follow(ENDPOINT_SLICE, &slice), follow(API_SERVICE, &api)])
    }

    /// Applies each object whose live fields differ from the desired ones.
    async fn apply_changes(&self, cluster: &Cluster, desired: &[Object; 3]) -> Result<()> {
        for ((resource, key, cache), desired) in self.0.iter().zip(desired) {
            cache.synced().await;
            if !cache.get(key).is_some_and(|spec| contains(&spec, &routing_fields(desired))) {
                cluster.apply(resource, desired, MANAGER).await?;
            }
        }
        Ok(())
    }
}

/// The source address of this machine towards a host, found without sending anything.
pub(super) fn source_address_for(host: &str) -> Option<IpAddr> {
    let address: IpAddr = host.parse().ok()?;
    let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0_u16; 8].into() };
    let socket = std::net::UdpSocket::bind((any, 0)).ok()?;
    // Connecting a UDP socket only chooses a route.
    socket.connect((address, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apiservice_belongs_to_the_last_manager_of_its_ca_bundle() {
        let with = |managed: Value| {
            let api = json!({"metadata": {"managedFields": managed}, "spec": {"caBundle": "YQ=="}});
            Object::from_value(api).expect("an object")
        };
        let entry =
            |manager: &str, spec: Value| json!({"manager": manager, "fieldsV1": {"f:spec": spec}});
        let authority = || json!({"f:caBundle": {}, "f:group": {}});
        assert!(owns_ca_bundle(&with(json!([entry("mainstay", authority())]))));
        assert!(!owns_ca_bundle(&with(json!([entry("olm", authority())]))));
        // Another program has taken the CA bundle over; both own the fields that it left unchanged.
        let both = json!([entry("mainstay", json!({"f:group": {}})), entry("olm", authority())]);
        assert!(!owns_ca_bundle(&with(both)));
        assert!(!owns_ca_bundle(&with(json!([]))));
    }

    #[test]
    fn defaults_of_the_api_server_are_no_difference() {
        let desired = json!([{"name": "https", "port": 5443}]);
        assert!(contains(&json!([{"name": "https", "port": 5443, "nodePort": 1}]), &desired));
        assert!(!contains(&json!([{"name": "https", "port": 443}]), &desired));
        assert!(!contains(&json!([]), &desired));
        assert!(!contains(&json!(null), &desired));
    }
}
