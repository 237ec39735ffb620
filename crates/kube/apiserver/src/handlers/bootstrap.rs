//! What every cluster has before anybody asks: its namespaces, and the Service that is the way to
//! the server from inside.
//!
//! The Service is made when a port is served, because it says which. It is made again when somebody
//! deletes it. Endpoints name the address that is served if other machines can reach it there; as
//! those of the original they are not made for a loopback address.

use super::commit::commit_status;
use super::meta;
use super::part::Part;
use super::track::Tracker;
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
use mainstay_object::{Object, Status, known};
use mainstay_store::{Change, CommitError, EventKind, Expect, Key};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// The server's own Service, in the namespace `default`.
const SERVICE: &str = "kubernetes";
/// The first address of Services.
const ADDRESS: &str = "10.96.0.1";
/// The addresses of Services.
const RANGE: &str = "10.96.0.0/12";

/// Creates the namespaces that every cluster has, where they are not there yet.
pub(crate) async fn namespaces(server: &Arc<ApiServer>) -> Result<(), StartError> {
    for name in SYSTEM_NAMESPACES {
        let row = row(server, "", "namespaces");
        let made = match row {
            Ok(row) => settle(server, &row, Object::new(&known::NAMESPACE.gvk(), name), &[]).await,
            Err(status) => Err(status),
        };
        made.map_err(|status| StartError::CreateNamespace { name: name.to_owned(), status })?;
    }
    Ok(())
}

/// Creates the range of addresses of Services, where it is not there yet: as it is once the
/// controllers of the original have seen it.
pub(crate) async fn service_range(server: &Arc<ApiServer>) -> Result<(), Status> {
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
    seed(server, vec![(&*row.storage, object)]).await
}

/// Stores objects that are complete but for uid and time, those that are not there yet, all at once.
pub(crate) async fn seed(server: &ApiServer, objects: Vec<(&str, Object)>) -> Result<(), Status> {
    let commits = objects.into_iter().map(|(storage, mut object)| async move {
        meta::stamp(server, &mut object);
        let key = Key::new(storage, object.namespace(), object.name());
        let change = Change::Put { key, object: &object, expect: Expect::Absent, guard: None };
        match server.store.commit(change).await {
            Ok(_) | Err(CommitError::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(Status::internal(error)),
        }
    });
    futures::future::try_join_all(commits).await.map(drop)
}

/// Makes the server's own Service again whenever it is gone. Ends with the store.
pub(crate) async fn keep_service(server: &Arc<ApiServer>, address: SocketAddr) {
    let revision = server.store.revision();
    let Ok(mut watch) = server.store.watch("services", revision) else { return };
    if server.store.find("services", "default", SERVICE).is_none() {
        service(server, address).await;
    }
    while let Ok(event) = watch.next().await {
        let key = &event.object.key;
        if event.kind == EventKind::Deleted && is_service(key) {
            service(server, address).await;
        }
    }
}

/// Makes the ConfigMap that tells servers of aggregated groups whom to believe, or brings it up to
/// date.
pub(crate) async fn authentication(server: &Arc<ApiServer>, data: Value) -> Result<(), Status> {
    let row = row(server, "", "configmaps")?;
    let value = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
    });
    let object = Object::from_value(value).map_err(Status::internal)?;
    settle(server, &row, object, &[&["data"]]).await
}

fn is_service(key: &Key) -> bool {
    &*key.namespace == "default" && &*key.name == SERVICE
}

/// Makes the server's own Service and its endpoints, or brings them to the port that is served. A
/// cluster works without, so what goes wrong is only said.
pub(crate) async fn service(server: &Arc<ApiServer>, address: SocketAddr) {
    if let Err(status) = try_service(server, address).await {
        tracing::warn!(%status, "the Service default/kubernetes could not be made");
    }
}

async fn try_service(server: &Arc<ApiServer>, address: SocketAddr) -> Result<(), Status> {
    let port = address.port();
    let ports = json!([{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]);
    let own = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"labels": {"component": "apiserver", "provider": SERVICE}},
        "spec": {
            "clusterIP": ADDRESS, "ipFamilyPolicy": "SingleStack", "type": "ClusterIP",
            "sessionAffinity": "None", "ports": ports,
        },
    });
    settle_value(server, "", "services", own, &[&["spec", "ports"]]).await?;
    // Endpoints that are refused would be tried for ever.
    let ip = destination::canonical(address.ip());
    if destination::special(ip).is_some() {
        return Ok(());
    }
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": ip}], "ports": ports}],
    });
    settle_value(server, "", "endpoints", endpoints, &[&["subsets"]]).await?;
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"labels": {"kubernetes.io/service-name": SERVICE}},
        "addressType": if ip.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}], "ports": ports,
    });
    let fields: &[&[&str]] = &[&["endpoints"], &["ports"]];
    settle_value(server, "discovery.k8s.io", "endpointslices", slice, fields).await
}

async fn settle_value(
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
    settle(server, &row, object, fields).await
}

fn row(server: &ApiServer, group: &str, plural: &str) -> Result<Arc<KindRow>, Status> {
    server.registry.find(group, "v1", plural).ok_or_else(Status::no_such_path)
}

/// Creates an object, or gives these fields of the one that is there the wanted values.
async fn settle(
    server: &Arc<ApiServer>,
    row: &KindRow,
    wanted: Object,
    fields: &[&[&str]],
) -> Result<(), Status> {
    let mend = |old: &Object, wanted: &Object| {
        if fields.iter().all(|field| old.get(field) == wanted.get(field)) {
            return Wanted::Same;
        }
        let mut object = old.clone();
        for field in fields {
            object.set(field, wanted.get(field).cloned().unwrap_or_default());
        }
        Wanted::Changed(object)
    };
    settle_row(server, row, &wanted, mend).await
}

/// What is to become of an object that is there.
pub(super) enum Wanted {
    /// Nothing.
    Same,
    /// This.
    Changed(Object),
    /// It is removed, and made anew.
    Anew,
}

/// Creates an object, or makes of the one that is there what `mend` says.
pub(super) async fn settle_with(
    server: &Arc<ApiServer>,
    group: &str,
    plural: &str,
    wanted: &Object,
    mend: impl Fn(&Object, &Object) -> Wanted,
) -> Result<(), Status> {
    let row = row(server, group, plural)?;
    settle_row(server, &row, wanted, mend).await
}

async fn settle_row(
    server: &Arc<ApiServer>,
    row: &KindRow,
    wanted: &Object,
    mend: impl Fn(&Object, &Object) -> Wanted,
) -> Result<(), Status> {
    let key = Key::new(row.storage.clone(), wanted.namespace(), wanted.name());
    let reservations = server.allocator.reservations();
    loop {
        let stored = server.store.get(&key);
        let change = match &stored {
            None => Some((fresh(server, row, &reservations, wanted.clone())?, Expect::Absent)),
            Some(stored) => {
                let expect = Expect::Revision(stored.revision);
                let mut old = forms::stored_form(row, stored);
                match mend(&old, wanted) {
                    Wanted::Same => return Ok(()),
                    Wanted::Changed(object) => {
                        Some((changed(server, row, &reservations, object, &mut old)?, expect))
                    }
                    Wanted::Anew => None,
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
                let expect = Expect::Revision(stored.revision);
                let change = Change::Delete { key: key.clone(), expect };
                server.store.commit(change).await.map(|_| false)
            }
            (None, None) => Ok(true),
        };
        commit.finish();
        match outcome {
            Ok(true) => return Ok(()),
            // Whoever was faster has got on, so this ends.
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

/// A new object as it is stored.
fn fresh(
    server: &Arc<ApiServer>,
    row: &KindRow,
    reservations: &Reservations,
    mut object: Object,
) -> Result<Object, Status> {
    let identity = Identity::admin();
    meta::stamp(server, &mut object);
    row.strategy.default(&mut object);
    Tracker::own(server, row, Part::Main).made(&mut object);
    row.strategy.prepare_create(&mut object, &context(server, &identity, reservations, row))?;
    forms::complete(row, &mut object);
    if row.strategy.counts_generations() {
        object.set(&["metadata", "generation"], 1.into());
    }
    write::validate(row, Part::Main, &mut object, None, &mut Vec::new())?;
    write::finish(row, &mut object);
    Ok(object)
}

/// A changed object as it is stored.
fn changed(
    server: &Arc<ApiServer>,
    row: &KindRow,
    reservations: &Reservations,
    mut object: Object,
    old: &mut Object,
) -> Result<Object, Status> {
    row.strategy.default(&mut object);
    Tracker::own(server, row, Part::Main).changed(old, &mut object);
    let identity = Identity::admin();
    row.strategy.prepare_update(
        &mut object,
        old,
        &context(server, &identity, reservations, row),
    )?;
    forms::complete(row, &mut object);
    write::validate(row, Part::Main, &mut object, Some(old), &mut Vec::new())?;
    write::finish(row, &mut object);
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
    use crate::Config;
    use mainstay_auth::authn::Authenticator;
    use mainstay_auth::pki::Pki;
    use mainstay_clock::Clock;
    use mainstay_store::{Options, Store};

    #[tokio::test]
    async fn an_address_that_others_reach_is_an_endpoint_and_follows_the_port() {
        let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
        let pki = Pki::ephemeral(&clock, &[]).unwrap();
        let server = ApiServer::start(Config {
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
            try_service(&server, address).await.unwrap();
            let own = find("services").unwrap();
            assert_eq!(own["spec"]["ports"][0]["targetPort"], port);
            let subsets = json!([{
                "addresses": [{"ip": "192.0.2.1"}],
                "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
            }]);
            assert_eq!(find("endpoints").unwrap()["subsets"], subsets);
            let row = row(&server, "discovery.k8s.io", "endpointslices").unwrap();
            let slice = find(&row.storage).unwrap();
            assert_eq!(slice["ports"], subsets[0]["ports"]);
            assert_eq!(slice["endpoints"][0]["addresses"], json!(["192.0.2.1"]));
            // Nothing is written when nothing differs.
            let revision = server.store.revision();
            try_service(&server, address).await.unwrap();
            assert_eq!(server.store.revision(), revision);
        }
    }
}
