//! The server of ClusterCatalogs on an existing cluster, while this process is the leader.
//!
//! ```text
//! client ─► Service catalogd-service ─► EndpointSlice with the address of this process ─► server
//! ```
//!
//! Where the cluster cannot reach this process, there is no Service, and the catalogs are served on
//! loopback only. The CA of the serving certificate is in the ConfigMap `catalogd-ca`.

use super::packages::reachable_address;
use crate::cluster_catalogs::{self, CatalogServer, SERVICE, ca_config_map};
use crate::embedded::chain;
use crate::layout;
use mainstay_auth::pki::Pki;
use mainstay_cause::Cause;
use mainstay_cli::config::RunSettings;
use mainstay_client::Cluster;
use mainstay_clock::Clock;
use mainstay_extensions::Options;
use mainstay_images::ImageSources;
use mainstay_object::{Object, builtin};
use mainstay_registry::ServedCatalog;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The port on all addresses, as upstream.
const PORT: u16 = 8443;

/// The server, and how the cluster reaches it.
pub(super) struct Server {
    catalogs: CatalogServer,
    namespace: &'static str,
    /// The address of this process for the cluster.
    reachable: Option<IpAddr>,
    /// The CA of its certificate, as PEM.
    authority: String,
    stop: CancellationToken,
}

impl Server {
    /// Opens the listener. It serves until `term` ends.
    pub(super) async fn open(
        run: &RunSettings,
        cluster: &Cluster,
        clock: Clock,
        term: &CancellationToken,
    ) -> Result<Self, Cause> {
        let namespace = run.profile.catalogd_namespace();
        let reachable = reachable_address(&run.packages);
        let addresses = match (run.catalogs_listen, reachable) {
            (Some(address), _) => vec![address],
            (None, Some(IpAddr::V4(_))) => {
                vec![SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT)]
            }
            (None, Some(IpAddr::V6(_))) => {
                vec![SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), PORT)]
            }
            (None, None) => cluster_catalogs::loopback_addresses(cluster).await,
        };
        let mut names = service_names(namespace);
        names.extend(reachable.iter().map(ToString::to_string));
        names.extend(addresses.iter().map(|address| address.ip().to_string()));
        let pki = Pki::load_or_create(&run.data.join("catalog-server"), &clock, &names);
        let pki = pki.map_err(|error| {
            Cause::new("the keys of the catalog server cannot be used").because(chain(&error))
        })?;
        let tls = pki
            .server_config()
            .map_err(|error| Cause::new("TLS cannot be set up").because(chain(&error)))?;
        let stop = term.child_token();
        let opened = CatalogServer::open(&addresses, &tls, &stop).await.map_err(|cause| {
            cause.remedy("choose another address with --catalogs-listen ADDR:PORT; port 0 selects a free port")
        })?;
        let authority = pki.authority_pem().to_owned();
        Ok(Self { catalogs: opened, namespace, reachable, authority, stop })
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
        images: ImageSources,
        folders: BTreeMap<String, Arc<ServedCatalog>>,
        clock: Clock,
    ) -> Options {
        Options {
            system_namespace: self.namespace.to_owned(),
            external_address: self.external_address(),
            folders,
            served: self.catalogs.served(),
            ..Options::new(clock, images, run.data.join("clustercatalogs"))
        }
    }

    /// Closes the listener, and removes the endpoint that leads to it.
    pub(super) async fn close(self, cluster: &Cluster) {
        self.stop.cancel();
        if self.reachable.is_some() {
            let options = mainstay_client::DeleteOptions::default();
            let slice = &builtin::ENDPOINT_SLICE;
            let deleted = cluster.ensure_deleted(slice, Some(self.namespace), SERVICE, &options);
            if let Err(error) = deleted.await {
                // The next leader replaces it.
                tracing::debug!(%error, "the endpoint of the catalog server is not deleted");
            }
        }
        self.catalogs.wait_until_closed().await;
    }

    /// Applies the Service and its endpoint, if the cluster can reach this process, and the CA.
    pub(super) async fn publish(&self, cluster: &Cluster) -> Result<(), Cause> {
        layout::apply_namespace(cluster, self.namespace).await?;
        let authority = ca_config_map(self.namespace, &self.authority);
        let mut objects = vec![(builtin::CONFIG_MAP, authority)];
        if let Some(ip) = self.reachable {
            let [service, slice] =
                service_objects(self.namespace, ip, self.catalogs.address.port());
            objects.push((builtin::SERVICE, service));
            objects.push((builtin::ENDPOINT_SLICE, slice));
        }
        for (resource, object) in objects {
            layout::apply(cluster, &resource, &object).await?;
        }
        Ok(())
    }
}

fn service_names(namespace: &str) -> Vec<String> {
    let name = |suffix: &str| format!("{SERVICE}.{namespace}{suffix}");
    vec![SERVICE.to_owned(), name(""), name(".svc"), name(".svc.cluster.local")]
}

/// The Service, and the EndpointSlice that leads it to this process.
fn service_objects(namespace: &str, ip: IpAddr, port: u16) -> [Object; 2] {
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": namespace},
        "spec": {"ports": [
            {"name": "https", "port": 443, "protocol": "TCP", "targetPort": port},
        ]},
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": SERVICE, "namespace": namespace,
            "labels": {"kubernetes.io/service-name": SERVICE},
        },
        "addressType": if ip.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [ip.to_string()], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    });
    [service, slice].map(|value| Object::from_value(value).unwrap_or_default())
}
