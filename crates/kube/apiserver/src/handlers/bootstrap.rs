//! Bootstrap objects: the namespaces of every cluster, and the Service through which pods reach the
//! server.
//!
//! The Service is created when a port is served, because the port determines it. It is created
//! again after its deletion. Endpoints contain the served address if other machines can reach it.
//! As in kube-apiserver, a loopback address gets no endpoints.

use super::commit::commit_status;
use super::managed_fields::FieldManager;
use super::meta;
use super::subresource::Subresource;
use super::write;
use crate::server::ApiServer;
use crate::start::StartError;
use mainstay_admission::SYSTEM_NAMESPACES;
use mainstay_auth::Identity;
use mainstay_conversion::forms;
use mainstay_formats::destination;
use mainstay_kinds::Context;
use mainstay_kinds::KindRow;
use mainstay_kinds::allocator::Reservations;
use mainstay_object::{Object, Status, builtin};
use mainstay_store::{Change, CommitError, EventKind, Key, Precondition};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// The name of the server's own Service in the namespace `default`.
const SERVICE: &str = "kubernetes";
/// The first address of Services.
const ADDRESS: &str = "10.96.0.1";
/// The address range of Services.
const RANGE: &str = "10.96.0.0/12";

/// Creates the missing namespaces of every cluster.
pub(crate) async fn ensure_namespaces(server: &Arc<ApiServer>) -> Result<(), StartError> {
    for name in SYSTEM_NAMESPACES {
        let row = row(server, "", "namespaces");
        let created = match row {
            Ok(row) => {
                ensure(server, &row, Object::new(&builtin::NAMESPACE.gvk(), name), &[]).await
            }
            Err(status) => Err(status),
        };
        created.map_err(|status| StartError::CreateNamespace { name: name.to_owned(), status })?;
    }
    Ok(())
}

/// Creates the `ServiceCIDR` if it is missing, in the state in which kube-apiserver's controllers
/// leave it.
pub(crate) async fn ensure_service_cidr(server: &Arc<ApiServer>) -> Result<(), Status> {
    let row = row(server, "networking.k8s.io", "servicecidrs")?;
    let value = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": SERVICE, "finalizers": ["networking.k8s.io/service-cidr-finalizer"]},
        "spec": {"cidrs": [RANGE]},
        "status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "",
            "message": "Kubernetes Service CIDR is ready",
            "lastTransitionTime": server.clock.now_rfc3339(),
        }]},
    });
    let object = Object::from_value(value).map_err(Status::internal)?;
    create_missing(server, vec![(&*row.storage, object)]).await
}

/// Stores missing objects that are complete except for uid and time, all at once.
pub(crate) async fn create_missing(
    server: &ApiServer,
    objects: Vec<(&str, Object)>,
) -> Result<(), Status> {
    let commits = objects.into_iter().map(|(storage, mut object)| async move {
        meta::stamp(server, &mut object);
        let key = Key::new(storage, object.namespace(), object.name());
        let change =
            Change::Put { key, object: &object, expect: Precondition::Absent, guard: None };
        match server.store.commit(change).await {
            Ok(_) | Err(CommitError::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(Status::internal(error)),
        }
    });
    futures::future::try_join_all(commits).await.map(drop)
}

/// Recreates the server's own Service after each deletion. Ends with the store.
pub(crate) async fn maintain_service(server: &Arc<ApiServer>, address: SocketAddr) {
    let revision = server.store.revision();
    let Ok(mut watch) = server.store.watch("services", revision) else { return };
    if server.store.find("services", "default", SERVICE).is_none() {
        ensure_service(server, address).await;
    }
    while let Ok(event) = watch.next().await {
        let key = &event.object.key;
        if event.kind == EventKind::Deleted && is_service(key) {
            ensure_service(server, address).await;
        }
    }
}

/// Creates or updates the ConfigMap from which aggregated API servers read whom to trust.
pub(crate) async fn ensure_authentication_config(
    server: &Arc<ApiServer>,
    data: Value,
) -> Result<(), Status> {
    let row = row(server, "", "configmaps")?;
    let value = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
    });
    let object = Object::from_value(value).map_err(Status::internal)?;
    ensure(server, &row, object, &[&["data"]]).await
}

fn is_service(key: &Key) -> bool {
    &*key.namespace == "default" && &*key.name == SERVICE
}

/// Creates or updates the server's own Service and its endpoints. A cluster works without them, so
/// a failure is only logged.
pub(crate) async fn ensure_service(server: &Arc<ApiServer>, address: SocketAddr) {
    if let Err(status) = try_ensure_service(server, address).await {
        tracing::warn!(%status, "cannot create the Service default/kubernetes");
    }
}

async fn try_ensure_service(server: &Arc<ApiServer>, address: SocketAddr) -> Result<(), Status> {
    let port = address.port();
    let ports = json!([{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]);
    let service_object = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"labels": {"component": "apiserver", "provider": SERVICE}},
        "spec": {
            "clusterIP": ADDRESS, "ipFamilyPolicy": "SingleStack", "type": "ClusterIP",
            "sessionAffinity": "None", "ports": ports,
        },
    });
    ensure_service_object(server, "", "services", service_object, &[&["spec", "ports"]]).await?;
    // Clients would retry unreachable endpoints for ever.
    let ip = destination::canonical(address.ip());
    if destination::special_range(ip).is_some() {
        return Ok(());
    }
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": ip}], "ports": ports}],
    });
    ensure_service_object(server, "", "endpoints", endpoints, &[&["subsets"]]).await?;
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"labels": {"kubernetes.io/service-name": SERVICE}},
        "addressType": if ip.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}], "ports": ports,
    });
    let fields: &[&[&str]] = &[&["endpoints"], &["ports"]];
    ensure_service_object(server, "discovery.k8s.io", "endpointslices", slice, fields).await
}

async fn ensure_service_object(
    server: &Arc<ApiServer>,
    group: &str,
    plural: &str,
    value: Value,
    fields: &[&[&str]],
) -> Result<(), Status> {
    let row = row(server, group, plural)?;
    let mut object = Object::from_value(value).map_err(Status::internal)?;
    object.set(&["metadata", "name"], SERVICE.into());
    object.set(&["metadata", "namespace"], "default".into());
    ensure(server, &row, object, fields).await
}

fn row(server: &ApiServer, group: &str, plural: &str) -> Result<Arc<KindRow>, Status> {
    server.registry.find(group, "v1", plural).ok_or_else(Status::no_such_path)
}

/// Creates an object, or sets these fields of the existing one.
async fn ensure(
    server: &Arc<ApiServer>,
    row: &KindRow,
    wanted: Object,
    fields: &[&[&str]],
) -> Result<(), Status> {
    let desired_change = |old: &Object, wanted: &Object| {
        if fields.iter().all(|field| old.get(field) == wanted.get(field)) {
            return DesiredChange::Unchanged;
        }
        let mut object = old.clone();
        for field in fields {
            object.set(field, wanted.get(field).cloned().unwrap_or_default());
        }
        DesiredChange::Update(object)
    };
    ensure_row(server, row, &wanted, desired_change).await
}

/// The change of an existing object.
pub(super) enum DesiredChange {
    /// No change.
    Unchanged,
    /// An update to this object.
    Update(Object),
    /// A deletion and a new creation.
    Recreate,
}

/// Creates an object, or changes the existing one as `desired_change` says.
pub(super) async fn ensure_with(
    server: &Arc<ApiServer>,
    group: &str,
    plural: &str,
    wanted: &Object,
    desired_change: impl Fn(&Object, &Object) -> DesiredChange,
) -> Result<(), Status> {
    let row = row(server, group, plural)?;
    ensure_row(server, &row, wanted, desired_change).await
}

async fn ensure_row(
    server: &Arc<ApiServer>,
    row: &KindRow,
    wanted: &Object,
    desired_change: impl Fn(&Object, &Object) -> DesiredChange,
) -> Result<(), Status> {
    let key = Key::new(row.storage.clone(), wanted.namespace(), wanted.name());
    let reservations = server.allocator.reservations();
    loop {
        let stored = server.store.get(&key);
        let change = match &stored {
            None => Some((
                new_object(server, row, &reservations, wanted.clone())?,
                Precondition::Absent,
            )),
            Some(stored) => {
                let expect = Precondition::Revision(stored.revision);
                let mut old = forms::stored_form(row, stored);
                match desired_change(&old, wanted) {
                    DesiredChange::Unchanged => return Ok(()),
                    DesiredChange::Update(object) => Some((
                        updated_object(server, row, &reservations, object, &mut old)?,
                        expect,
                    )),
                    DesiredChange::Recreate => None,
                }
            }
        };
        let commit = reservations.begin_commit();
        let outcome = match (&change, &stored) {
            (Some((object, expect)), _) => {
                let expect = *expect;
                let change = Change::Put { key: key.clone(), object, expect, guard: None };
                server.store.commit(change).await.map(|_| true)
            }
            (None, Some(stored)) => {
                let expect = Precondition::Revision(stored.revision);
                let change = Change::Delete { key: key.clone(), expect };
                server.store.commit(change).await.map(|_| false)
            }
            (None, None) => Ok(true),
        };
        commit.finish();
        match outcome {
            Ok(true) => return Ok(()),
            // Each conflict means that another write succeeded, so the loop ends.
            Ok(false)
            | Err(
                CommitError::AlreadyExists { .. }
                | CommitError::Stale { .. }
                | CommitError::Missing(_),
            ) => {}
            Err(error) => return Err(commit_status(row, wanted.name(), &error)),
        }
    }
}

/// A new object in the stored form.
fn new_object(
    server: &Arc<ApiServer>,
    row: &KindRow,
    reservations: &Reservations,
    mut object: Object,
) -> Result<Object, Status> {
    let identity = Identity::admin();
    meta::stamp(server, &mut object);
    row.strategy.default(&mut object);
    FieldManager::for_server(server, row, Subresource::Main).track_server_create(&mut object);
    row.strategy.prepare_create(&mut object, &context(server, &identity, reservations, row))?;
    forms::complete(row, &mut object);
    if row.strategy.counts_generations() {
        object.set(&["metadata", "generation"], 1.into());
    }
    write::validate(row, Subresource::Main, &mut object, None, &mut Vec::new())?;
    write::normalize(row, &mut object);
    Ok(object)
}

/// An updated object in the stored form.
fn updated_object(
    server: &Arc<ApiServer>,
    row: &KindRow,
    reservations: &Reservations,
    mut object: Object,
    old: &mut Object,
) -> Result<Object, Status> {
    row.strategy.default(&mut object);
    FieldManager::for_server(server, row, Subresource::Main).track_server_update(old, &mut object);
    let identity = Identity::admin();
    row.strategy.prepare_update(
        &mut object,
        old,
        &context(server, &identity, reservations, row),
    )?;
    forms::complete(row, &mut object);
    write::validate(row, Subresource::Main, &mut object, Some(old), &mut Vec::new())?;
    write::normalize(row, &mut object);
    Ok(object)
}

fn context<'a>(
    server: &'a ApiServer,
    identity: &'a Identity,
    reservations: &'a Reservations,
    row: &'a KindRow,
) -> Context<'a> {
    Context {
        identity,
        clock: &server.clock,
        objects: &server.store,
        reservations,
        row,
        subresource: "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ApiServerConfig;
    use mainstay_auth::authn::Authenticator;
    use mainstay_auth::pki::Pki;
    use mainstay_clock::Clock;
    use mainstay_store::{Options, Store};

    #[tokio::test]
    async fn a_reachable_address_is_an_endpoint_with_the_current_port() {
        let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
        let pki = Pki::ephemeral(&clock, &[]).unwrap();
        let server = ApiServer::start(ApiServerConfig {
            store: Store::in_memory(Options::new(clock)),
            clock,
            authenticator: Arc::new(Authenticator::new(pki.token_key_pkcs8(), clock).unwrap()),
            version: crate::VersionInfo::default(),
            stop: tokio_util::sync::CancellationToken::new(),
        })
        .await
        .unwrap();
        let find = |storage: &str| {
            let stored = server.store.find(storage, "default", SERVICE);
            stored.map(|stored| stored.object().into_value())
        };
        for port in [6443, 6444] {
            let address = SocketAddr::from(([192, 0, 2, 1], port));
            try_ensure_service(&server, address).await.unwrap();
            let service_object = find("services").unwrap();
            assert_eq!(service_object["spec"]["ports"][0]["targetPort"], port);
            let subsets = json!([{
                "addresses": [{"ip": "192.0.2.1"}],
                "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
            }]);
            assert_eq!(find("endpoints").unwrap()["subsets"], subsets);
            let row = row(&server, "discovery.k8s.io", "endpointslices").unwrap();
            let slice = find(&row.storage).unwrap();
            assert_eq!(slice["ports"], subsets[0]["ports"]);
            assert_eq!(slice["endpoints"][0]["addresses"], json!(["192.0.2.1"]));
            // An unchanged object is not written.
            let revision = server.store.revision();
            try_ensure_service(&server, address).await.unwrap();
            assert_eq!(server.store.revision(), revision);
        }
    }
}
