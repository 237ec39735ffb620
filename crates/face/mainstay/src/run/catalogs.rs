//! The server of ClusterCatalogs on an existing cluster.
//!
//! ```text
//! client ─► Service catalogd-service ─┬─► EndpointSlice of the leader ──► its server
//!                                     └─► EndpointSlice of a replica ──► its server
//! ```
//!
//! Every process has an EndpointSlice of its own. The leader deletes those of processes that ended without
//! deleting theirs. The processes share a CA, which is in a Secret; its certificate is in the ConfigMap
//! `catalogd-ca`.
//!
//! Where the cluster cannot reach this process, there is no Service, and the catalogs are served on
//! loopback only.

use super::data_folder_hash;
use super::packages::reachable_address;
use crate::cluster_catalogs::{self, CatalogServer, SERVICE, ca_config_map};
use crate::embedded::chain;
use crate::layout;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mainstay_auth::pki::Pki;
use mainstay_cause::Cause;
use mainstay_cli::config::RunSettings;
use mainstay_client::{Cluster, ObjectList};
use mainstay_clock::Clock;
use mainstay_extensions::{Features, Options};
use mainstay_images::ImageSources;
use mainstay_object::{Object, builtin};
use mainstay_registry::ServedCatalog;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The port on all addresses, as upstream; another one if it is not free.
const PORT: u16 = 8443;

/// The Secret with the CA of all processes.
const CA_SECRET: &str = "catalogd-serving-ca";
/// The keys of the certificate and its key in it.
const CA_SECRET_KEYS: [&str; 2] = ["tls.crt", "tls.key"];
/// How often the endpoints are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// How long a process may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// After so many failed connections in a row, an endpoint is deleted.
const MAX_FAILURES: u32 = 2;

/// The server, and how the cluster reaches it.
pub(super) struct Server {
    catalogs: CatalogServer,
    namespace: &'static str,
    /// The name of the EndpointSlice of this process.
    slice: String,
    /// The address of this process for the cluster.
    reachable: Option<IpAddr>,
    /// The CA of its certificate, as PEM.
    authority: String,
    stop: CancellationToken,
}

impl Server {
    /// Opens the listener. It serves until `stop`.
    pub(super) async fn open(
        run: &RunSettings,
        cluster: &Cluster,
        clock: Clock,
        stop: &CancellationToken,
    ) -> Result<Self, Cause> {
        let namespace = run.profile.catalogd_namespace();
        let reachable = reachable_address(&run.packages);
        let addresses = match (run.catalogs_listen, reachable) {
            (Some(address), _) => vec![address],
            // The EndpointSlice has the port, so any other is as good.
            (None, Some(IpAddr::V4(_))) => {
                [PORT, 0].map(|port| SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port)).to_vec()
            }
            (None, Some(IpAddr::V6(_))) => {
                [PORT, 0].map(|port| SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)).to_vec()
            }
            (None, None) => cluster_catalogs::loopback_addresses(cluster).await,
        };
        let mut names = service_names(namespace);
        names.extend(reachable.iter().map(ToString::to_string));
        names.extend(addresses.iter().map(|address| address.ip().to_string()));
        let folder = run.data.join("catalog-server");
        let keys =
            || Pki::load_or_create(&folder, &clock, &names).map_err(|error| unusable(&error));
        let pki = if reachable.is_some() {
            layout::apply_namespace(cluster, namespace).await?;
            share_authority(cluster, namespace, &folder, &keys).await?;
            keys()?
        } else {
            keys()?
        };
        let unusable_tls = |why: Cause| Cause::new("TLS cannot be set up").because(why);
        let builder =
            run.tls.builder().map_err(|error| unusable_tls(Cause::new(error.to_string())))?;
        let tls = pki.server_config_from(builder).map_err(|error| unusable_tls(chain(&error)))?;
        let stop = stop.child_token();
        let opened = CatalogServer::open(&addresses, &tls, &stop).await.map_err(|cause| {
            cause.remedy("choose another address with --catalogs-listen ADDR:PORT; port 0 selects a free port")
        })?;
        let authority = pki.authority_pem().to_owned();
        let slice = format!("{SERVICE}-{}", data_folder_hash(&run.data));
        Ok(Self { catalogs: opened, namespace, slice, reachable, authority, stop })
    }

    /// Whether the cluster reaches this process.
    pub(super) const fn is_reachable(&self) -> bool {
        self.reachable.is_some()
    }

    /// The host, with its port unless that is 443, in URLs of catalogs.
    pub(super) fn external_address(&self) -> String {
        match self.reachable {
            Some(_) => format!("{SERVICE}.{}.svc", self.namespace),
            None => self.catalogs.address.to_string(),
        }
    }

    /// The options of the controllers whose catalogs are served, with the content of catalog folders.
    pub(super) fn options(
        &self,
        run: &RunSettings,
        features: Features,
        images: ImageSources,
        folders: BTreeMap<String, Arc<ServedCatalog>>,
        clock: Clock,
    ) -> Options {
        Options {
            features,
            system_namespace: self.namespace.to_owned(),
            release_namespace: run.profile.operator_controller_namespace().to_owned(),
            external_address: self.external_address(),
            folders,
            served: self.catalogs.served(),
            ..Options::new(clock, images, run.data.join("clustercatalogs"))
        }
    }

    /// Closes the listener, and deletes the endpoint that leads to it.
    pub(super) async fn close(self, cluster: &Cluster) {
        self.stop.cancel();
        if self.reachable.is_some() {
            let options = mainstay_client::DeleteOptions::default();
            let slice = &builtin::ENDPOINT_SLICE;
            let namespace = Some(self.namespace);
            let deleted = cluster.ensure_deleted(slice, namespace, &self.slice, &options);
            if let Err(error) = deleted.await {
                // The leader deletes it.
                tracing::debug!(%error, "the endpoint of the catalog server is not deleted");
            }
        }
        self.catalogs.wait_until_closed().await;
    }

    /// Applies the CA, and the Service with the endpoint of this process, if the cluster can reach it.
    pub(super) async fn publish(&self, cluster: &Cluster) -> Result<(), Cause> {
        layout::apply_namespace(cluster, self.namespace).await?;
        let authority = ca_config_map(self.namespace, &self.authority);
        layout::apply(cluster, &builtin::CONFIG_MAP, &authority).await?;
        if self.is_reachable() {
            let service = service(self.namespace, self.catalogs.address.port());
            layout::apply(cluster, &builtin::SERVICE, &service).await?;
        }
        self.publish_endpoint(cluster).await
    }

    /// Applies the endpoint of this process, if the cluster can reach it.
    pub(super) async fn publish_endpoint(&self, cluster: &Cluster) -> Result<(), Cause> {
        if let Some(slice) = self.endpoint_slice() {
            layout::apply(cluster, &builtin::ENDPOINT_SLICE, &slice).await?;
        }
        Ok(())
    }

    /// The EndpointSlice that leads to this process.
    fn endpoint_slice(&self) -> Option<Object> {
        let ip = self.reachable?;
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": self.slice, "namespace": self.namespace,
                "labels": {"kubernetes.io/service-name": SERVICE},
            },
            "addressType": if ip.is_ipv4() { "IPv4" } else { "IPv6" },
            "endpoints": [{"addresses": [ip.to_string()], "conditions": {"ready": true}}],
            "ports": [{"name": "https", "port": self.catalogs.address.port(), "protocol": "TCP"}],
        });
        Some(Object::from_value(slice).unwrap_or_default())
    }

    /// Applies the endpoint of this process again if it is deleted, until `end`. The leader deletes the
    /// endpoints of processes that do not accept connections any more.
    pub(super) async fn maintain_endpoints(
        &self,
        cluster: &Cluster,
        leads: bool,
        end: &CancellationToken,
    ) {
        let mut failures = BTreeMap::new();
        while self.is_reachable()
            && end.run_until_cancelled(tokio::time::sleep(CHECK_INTERVAL)).await.is_some()
        {
            let check = self.check_endpoints(cluster, leads, &mut failures);
            if let Some(Err(cause)) = end.run_until_cancelled(check).await {
                tracing::warn!(%cause, "the endpoints of the catalog server are not maintained");
            }
        }
    }

    async fn check_endpoints(
        &self,
        cluster: &Cluster,
        leads: bool,
        failures: &mut BTreeMap<String, u32>,
    ) -> Result<(), Cause> {
        let of_service = ObjectList::labels(format!("kubernetes.io/service-name={SERVICE}"));
        let slices =
            cluster.list(&builtin::ENDPOINT_SLICE, Some(self.namespace), &of_service).await;
        let slices = slices.map_err(|error| chain(&error))?.items;
        if !slices.iter().any(|slice| slice.name() == self.slice) {
            self.publish_endpoint(cluster).await?;
        }
        failures.retain(|name, _| slices.iter().any(|slice| slice.name() == name));
        for slice in slices.iter().filter(|slice| leads && slice.name() != self.slice) {
            let failed = failures.entry(slice.name().to_owned()).or_default();
            *failed = if accepts_connections(slice).await { 0 } else { *failed + 1 };
            if *failed >= MAX_FAILURES {
                let name = slice.name();
                tracing::info!(name, "the endpoint of a process that has ended is deleted");
                let options = mainstay_client::DeleteOptions::default();
                let resource = &builtin::ENDPOINT_SLICE;
                let deleted =
                    cluster.ensure_deleted(resource, Some(self.namespace), name, &options);
                deleted.await.map_err(|error| chain(&error))?;
            }
        }
        Ok(())
    }
}

/// Whether an address of a slice accepts connections.
async fn accepts_connections(slice: &Object) -> bool {
    let port = slice.array(&["ports"]).first().and_then(|port| port["port"].as_u64());
    let Some(port) = port.and_then(|port| u16::try_from(port).ok()) else { return false };
    let endpoints = slice.array(&["endpoints"]).iter();
    let addresses = endpoints.filter_map(|endpoint| endpoint["addresses"].as_array()).flatten();
    let addresses = addresses.filter_map(|address| address.as_str()?.parse::<IpAddr>().ok());
    for address in addresses {
        let connect = tokio::net::TcpStream::connect((address, port));
        if let Ok(Ok(_)) = tokio::time::timeout(CONNECT_TIMEOUT, connect).await {
            return true;
        }
    }
    false
}

fn unusable(error: &dyn std::error::Error) -> Cause {
    Cause::new("the keys of the catalog server cannot be used").because(chain(error))
}

/// Puts the CA that all processes share into the folder of keys. The first process puts its own CA into
/// the Secret. Without the permission to do so, each process has a CA of its own.
async fn share_authority(
    cluster: &Cluster,
    namespace: &str,
    folder: &Path,
    keys: &impl Fn() -> Result<Pki, Cause>,
) -> Result<(), Cause> {
    let unreadable = |error: mainstay_client::Error| {
        let secret = format!("Secret {namespace}/{CA_SECRET} with the CA of the catalog servers");
        Cause::new(format!("the {secret} cannot be used")).because(chain(&error))
    };
    loop {
        let found = cluster.find(&builtin::SECRET, Some(namespace), CA_SECRET).await;
        if let Some(secret) = found.map_err(unreadable)? {
            let texts = CA_SECRET_KEYS.map(|key| {
                let text = STANDARD.decode(secret.str(&["data", key])?).ok()?;
                String::from_utf8(text).ok()
            });
            let [Some(certificate), Some(key)] = texts else {
                return Err(Cause::new(format!(
                    "Secret {namespace}/{CA_SECRET} has no CA of the catalog servers"
                ))
                .remedy("delete it: the next start creates it again"));
            };
            let imported = Pki::import_authority(folder, &certificate, &key);
            return imported.map(drop).map_err(|error| unusable(&error));
        }
        let own = keys()?;
        let texts = [own.authority_pem().to_owned(), own.authority_key_pem()];
        let [certificate, key] = texts.map(|text| STANDARD.encode(text));
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": CA_SECRET, "namespace": namespace},
            "data": {CA_SECRET_KEYS[0]: certificate, CA_SECRET_KEYS[1]: key},
        });
        let secret = Object::from_value(secret).unwrap_or_default();
        match cluster.create(&builtin::SECRET, &secret).await {
            Ok(_) => return Ok(()),
            // Another process was faster.
            Err(error) if error.is_already_exists() => {}
            Err(error) if error.is_forbidden() => {
                tracing::warn!(%error, "replicas of this process have a CA of their own");
                return Ok(());
            }
            Err(error) => return Err(unreadable(error)),
        }
    }
}

fn service_names(namespace: &str) -> Vec<String> {
    let name = |suffix: &str| format!("{SERVICE}.{namespace}{suffix}");
    vec![SERVICE.to_owned(), name(""), name(".svc"), name(".svc.cluster.local")]
}

/// The Service in front of all processes.
fn service(namespace: &str, port: u16) -> Object {
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": namespace},
        "spec": {"ports": [
            {"name": "https", "port": 443, "protocol": "TCP", "targetPort": port},
        ]},
    });
    Object::from_value(service).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_testdata::skipped;
    use mainstay_testkit::{TestCluster, own_address};
    use std::net::TcpListener;

    /// A slice of another process at this address.
    fn slice_of_another(name: &str, address: SocketAddr) -> Object {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": name, "namespace": "default",
                "labels": {"kubernetes.io/service-name": SERVICE},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address.ip().to_string()]}],
            "ports": [{"name": "https", "port": address.port(), "protocol": "TCP"}],
        });
        Object::from_value(slice).expect("an object")
    }

    #[tokio::test]
    async fn leader_deletes_endpoints_that_accept_no_connections_and_restores_its_own() {
        let Some(ip) = own_address() else {
            return skipped("endpoints of `run`: this machine has no address but loopback");
        };
        let any_port = SocketAddr::new(ip, 0);
        let test_cluster = TestCluster::start().await;
        let cluster = test_cluster.cluster();
        let stop = CancellationToken::new();
        let keys = Pki::ephemeral(&test_cluster.clock(), &[]).expect("keys");
        let tls = keys.server_config().expect("a configuration");
        let server = Server {
            catalogs: CatalogServer::open(&[any_port], &tls, &stop).await.expect("a port"),
            namespace: "default",
            slice: "own".to_owned(),
            reachable: Some(ip),
            authority: String::new(),
            stop: stop.clone(),
        };
        let [alive, ended] = [(); 2].map(|()| TcpListener::bind(any_port).expect("a port"));
        for (name, listener) in [("alive", &alive), ("ended", &ended)] {
            let address = listener.local_addr().expect("an address");
            test_cluster.apply(slice_of_another(name, address)).await;
        }
        drop(ended);
        let mut failures = BTreeMap::new();
        for (leads, expected) in [
            (false, &["alive", "ended", "own"][..]),
            (false, &["alive", "ended", "own"]),
            (true, &["alive", "ended", "own"]),
            (true, &["alive", "own"]),
        ] {
            server.check_endpoints(cluster, leads, &mut failures).await.expect("checked");
            let of_service = ObjectList::labels(format!("kubernetes.io/service-name={SERVICE}"));
            let resource = &builtin::ENDPOINT_SLICE;
            let slices = cluster.list(resource, Some("default"), &of_service).await;
            let slices = slices.expect("a list").items;
            let names: Vec<&str> = slices.iter().map(Object::name).collect();
            assert_eq!(names, expected, "leads: {leads}");
        }
        server.close(cluster).await;
        let own = cluster.find(&builtin::ENDPOINT_SLICE, Some("default"), "own").await;
        assert_eq!(own.expect("readable"), None, "a process that stops deletes its own");
    }
}
