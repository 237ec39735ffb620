//! Simulated catalog pods: registries in pods on simulated nodes, which run no process.
//!
//! ```text
//! NAME.NAMESPACE.svc:PORT ─► Service ─► Pod: ready, on a simulated node ─► its program ─► content
//!           IP of a Pod:PORT ────────────┘ └─── changes of either: looked at again ◄──┘
//! ```
//!
//! The store reads the content of the Pod when the Pod becomes ready, as a registry server reads it
//! when it starts. The content stays until another Pod replaces the Pod.

use crate::address::LIST_ERROR_PREFIX;
use crate::config_map::ConfigMapError;
use crate::pod_content::{self, PodContent, PodContentError};
use crate::store::CatalogStore;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_client::{Cache, Cluster, Selection};
use mainstay_images::{ImageContentError, PullError, Requester, blocking};
use mainstay_object::{NamespacedName, Object, builtin};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The label of a node that tells whether it is simulated.
const SIMULATED: &str = "mainstay.dev/simulated";

/// Why following a registry in a simulated Pod ended.
pub(crate) enum PodReadEnd {
    /// The Pod was read, and another Pod replaced it.
    Ended,
    /// No Pod is behind the address; the text is the reason.
    NoPod(String),
    /// The content of the Pod cannot be read; the text is the reason.
    Unreadable(String),
    /// No simulated Pod has this address.
    NotSimulated,
}

/// No Pod is behind an address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    /// The Service lacks the port.
    #[error("the Service {service} has no port {port}")]
    NoPort {
        /// The Service.
        service: NamespacedName,
        /// The port.
        port: u16,
    },
    /// No Pod of the Service is ready.
    #[error("no Pod that is ready stands behind the Service {service}")]
    NoPod {
        /// The Service.
        service: NamespacedName,
    },
}

/// The catalog of a Pod cannot be read.
#[derive(Debug, thiserror::Error)]
enum PodError {
    /// A request to the API failed.
    #[error(transparent)]
    Api(#[from] mainstay_client::Error),
    /// The ConfigMap does not exist.
    #[error("there is no ConfigMap {namespace}/{name}")]
    NoConfigMap {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The content of the Pod cannot be read in this process.
    #[error(transparent)]
    PodContent(#[from] PodContentError),
    /// The ConfigMap that the Pod serves is no catalog.
    #[error(transparent)]
    ConfigMap(#[from] ConfigMapError),
    /// The mounted files are no catalog; the text is the headline of the error.
    #[error("{0}")]
    Load(String),
    /// The store has no puller.
    #[error("images are not read here")]
    NoImages,
    /// The image cannot be pulled.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// The image has no catalog.
    #[error("{image}: {source}")]
    Content {
        /// The image.
        image: String,
        /// The error.
        source: ImageContentError,
    },
    /// The thread that read the catalog panicked; the text is the panic.
    #[error("{0}")]
    Ended(String),
}

/// A host inside a cluster: a Service name or a Pod IP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClusterAddress {
    Service(NamespacedName),
    Pod(IpAddr),
}

/// A Service name or Pod IP inside a cluster, and the Pods behind it.
pub(crate) struct ClusterEndpoints {
    cluster: Cluster,
    address: ClusterAddress,
    port: u16,
    /// The Service, if the address names one.
    services: Option<Cache<Service>>,
    pods: Option<Pods>,
    changed: Arc<Notify>,
    stop: CancellationToken,
    _stop: DropGuard,
}

/// Cached fields of a Service.
#[derive(Debug, PartialEq, Eq)]
struct Service {
    selector: BTreeMap<String, String>,
    ports: Vec<Value>,
}

/// The Pods behind an address.
struct Pods {
    /// The selector of the Service; empty for a Pod IP.
    selector: String,
    cache: Cache<Pod>,
    _stop: DropGuard,
}

/// Cached fields of a ready Pod.
#[derive(Debug, PartialEq, Eq)]
struct Pod {
    uid: String,
    created: String,
}

impl Service {
    fn of(service: &Object) -> Self {
        Self {
            selector: service.part(&["spec", "selector"]).unwrap_or_default(),
            ports: service.array(&["spec", "ports"]).to_vec(),
        }
    }

    /// The target port of a port of the Service.
    fn target(&self, port: u16) -> Option<&Value> {
        let entry = self.ports.iter().find(|entry| entry["port"] == port)?;
        Some(if entry["targetPort"].is_null() { &entry["port"] } else { &entry["targetPort"] })
    }
}

impl Pod {
    fn of(pod: &Object) -> Option<Self> {
        let conditions = pod.array(&["status", "conditions"]);
        let ready = conditions
            .iter()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        let created = pod.str(&["metadata", "creationTimestamp"]).unwrap_or_default();
        (ready && !pod.is_terminating())
            .then(|| Self { uid: pod.uid().to_owned(), created: created.to_owned() })
    }
}

/// The Service of a cluster-internal host name.
pub(crate) fn service_of_host(host: &str) -> Option<NamespacedName> {
    let mut parts = host.trim_end_matches('.').splitn(4, '.');
    let (name, namespace, kind) = (parts.next()?, parts.next()?, parts.next()?);
    let whole = !name.is_empty() && !namespace.is_empty() && kind == "svc";
    whole.then(|| NamespacedName::new(namespace, name))
}

impl ClusterAddress {
    /// Parses the host of an address.
    pub(crate) fn of(host: &str) -> Option<Self> {
        match service_of_host(host) {
            Some(key) => Some(Self::Service(key)),
            None => host.trim_matches(['[', ']']).parse().ok().map(Self::Pod),
        }
    }
}

impl ClusterEndpoints {
    /// Starts to watch the Service and the Pods behind an address.
    pub(crate) fn watch(cluster: &Cluster, address: ClusterAddress, port: u16) -> Self {
        let (changed, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let services = match &address {
            ClusterAddress::Pod(_) => None,
            ClusterAddress::Service(key) => {
                let notify = Arc::clone(&changed);
                let selection = Selection::all(builtin::SERVICE)
                    .namespace(&*key.namespace)
                    .fields(format!("metadata.name={}", key.name));
                let cache = Cache::builder(selection, |service| Some(Service::of(service)))
                    .subscribe(move |_| notify.notify_one())
                    .start(cluster, stop.clone());
                Some(cache)
            }
        };
        let guard = stop.clone().drop_guard();
        let cluster = cluster.clone();
        Self { cluster, address, port, services, pods: None, changed, stop, _stop: guard }
    }

    /// Waits for a change of the Service or the Pods.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The Pod that serves the address: the oldest ready one. None if the Service has no selector
    /// or no Pod has the IP.
    async fn oldest_ready_pod(
        &mut self,
    ) -> Option<Result<(NamespacedName, Arc<Pod>, Value), EndpointError>> {
        let (selection, selector, target) = match (&self.address, &self.services) {
            (ClusterAddress::Service(key), Some(services)) => {
                services.synced().await;
                let service = services.get(key).filter(|service| !service.selector.is_empty())?;
                let Some(target) = service.target(self.port) else {
                    let (service, port) = (key.clone(), self.port);
                    return Some(Err(EndpointError::NoPort { service, port }));
                };
                let selector: Vec<String> =
                    service.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let selector = selector.join(",");
                let selection = Selection::all(builtin::POD).namespace(&*key.namespace);
                (selection.labels(&*selector), selector, target.clone())
            }
            (ClusterAddress::Pod(ip), _) => {
                let selection = Selection::all(builtin::POD).fields(format!("status.podIP={ip}"));
                (selection, String::new(), Value::from(self.port))
            }
            (ClusterAddress::Service(_), None) => return None,
        };
        if self.pods.as_ref().is_none_or(|pods| pods.selector != selector) {
            let (notify, stop) = (Arc::clone(&self.changed), self.stop.child_token());
            let cache = Cache::builder(selection, Pod::of)
                .subscribe(move |_| notify.notify_one())
                .start(&self.cluster, stop.clone());
            cache.synced().await;
            self.pods = Some(Pods { selector, cache, _stop: stop.drop_guard() });
        }
        let pods = self.pods.as_ref()?.cache.list(None);
        let oldest =
            pods.into_iter().min_by(|a, b| (&a.1.created, &a.0).cmp(&(&b.1.created, &b.0)));
        match (oldest, &self.address) {
            (Some((key, pod)), _) => Some(Ok((key, pod, target))),
            (None, ClusterAddress::Service(key)) => {
                Some(Err(EndpointError::NoPod { service: key.clone() }))
            }
            // The IP may be that of a machine outside the cluster.
            (None, ClusterAddress::Pod(_)) => None,
        }
    }
}

impl CatalogStore {
    /// Reads the content of the simulated Pod behind an address, and waits until another Pod
    /// replaces it.
    pub(crate) async fn follow_simulated_pod(
        &self,
        key: &NamespacedName,
        address: &str,
        endpoints: &mut ClusterEndpoints,
    ) -> PodReadEnd {
        let (name, pod, target) = match endpoints.oldest_ready_pod().await {
            None => return PodReadEnd::NotSimulated,
            Some(Err(error)) => return PodReadEnd::NoPod(format!("{LIST_ERROR_PREFIX}{error}")),
            Some(Ok(found)) => found,
        };
        let unread = |error: PodError| {
            PodReadEnd::Unreadable(format!("{LIST_ERROR_PREFIX}the Pod {name}: {error}"))
        };
        let cluster = &endpoints.cluster.clone();
        let live = match cluster.find(&builtin::POD, Some(&name.namespace), &name.name).await {
            Ok(Some(live)) if live.uid() == pod.uid => live,
            // Another Pod has the name by now; its watch event follows.
            Ok(_) => return PodReadEnd::Ended,
            Err(error) => return unread(error.into()),
        };
        let node = live.str(&["spec", "nodeName"]).unwrap_or_default();
        match cluster.find(&builtin::NODE, None, node).await {
            Ok(node) if node.as_ref().and_then(|node| node.label(SIMULATED)) == Some("false") => {
                return PodReadEnd::NotSimulated;
            }
            Ok(_) => {}
            Err(error) => return unread(error.into()),
        }
        let mut reading = std::pin::pin!(self.read_pod(cluster, &live, &target));
        let read = if let Ok(read) =
            tokio::time::timeout(crate::address::SIMULATED_READ_TIMEOUT, &mut reading).await
        {
            read
        } else {
            self.report_slow_read(key, address);
            reading.await
        };
        match read {
            Ok(catalog) => self.update_content(key, address, catalog, None).await,
            Err(error) => return unread(error),
        }
        loop {
            endpoints.changed().await;
            match endpoints.oldest_ready_pod().await {
                Some(Ok((_, now, _))) if now.uid == pod.uid => {}
                _ => return PodReadEnd::Ended,
            }
        }
    }

    /// Reads the catalog that a Pod would serve on a port.
    async fn read_pod(
        &self,
        cluster: &Cluster,
        pod: &Object,
        port: &Value,
    ) -> Result<Arc<Catalog>, PodError> {
        let namespace = pod.namespace();
        let account = pod.str(&["spec", "serviceAccountName"]).unwrap_or("default");
        let find = async |cluster: &Cluster, namespace: &str, name: &str| {
            let found = cluster.find(&builtin::CONFIG_MAP, Some(namespace), name).await;
            found?.ok_or_else(|| PodError::NoConfigMap {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
        };
        match PodContent::of(pod, Some(port))? {
            PodContent::ConfigMap(config_map) => {
                // A Pod may mount every ConfigMap of its namespace. For other namespaces its
                // ServiceAccount needs permission: the author of a Pod chooses the ConfigMap that
                // it serves.
                let map = if *config_map.namespace == *namespace {
                    find(cluster, namespace, &config_map.name).await?
                } else {
                    let program = cluster.clone().impersonating(namespace, account);
                    find(&program?, &config_map.namespace, &config_map.name).await?
                };
                let data: BTreeMap<String, String> = map.part(&["data"]).unwrap_or_default();
                let place = config_map.name.clone();
                let read = move || {
                    let read = crate::config_map::catalog(&data)?;
                    for why in &read.left_out {
                        tracing::warn!(config_map = %place, %why, "a catalog has a problem");
                    }
                    Ok(read.catalog)
                };
                blocking(read, PodError::Ended).await
            }
            PodContent::Files(folder, mounts) => {
                let mut maps = Vec::new();
                for mount in &mounts {
                    maps.push((mount, find(cluster, namespace, &mount.config_map).await?));
                }
                let files = pod_content::files(&folder, &maps);
                let read = move || {
                    Catalog::load_from(&files, &LoadOptions::default()).map_err(|mut error| {
                        for problem in &mut error.problems {
                            problem.file = format!("/{folder}/{}", problem.file).into();
                        }
                        PodError::Load(error.headline())
                    })
                };
                blocking(read, PodError::Ended).await
            }
            PodContent::Image(image, place) => {
                let puller = self.puller().ok_or(PodError::NoImages)?;
                let secrets = pod.array(&["spec", "imagePullSecrets"]);
                let requester = Requester {
                    namespace: namespace.to_owned(),
                    name: account.to_owned(),
                    uid: String::new(),
                    secrets: secrets
                        .iter()
                        .filter_map(|secret| secret["name"].as_str())
                        .map(str::to_owned)
                        .collect(),
                };
                let found = puller.pull(&image, &requester).await?;
                let read = move || {
                    let read = match &place {
                        Some(place) => puller.catalog_at(&found, place),
                        None => puller.catalog(&found, None),
                    };
                    read.map_err(|source| PodError::Content { image, source })
                };
                blocking(read, PodError::Ended).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_hosts_are_service_names_and_pod_ips() {
        let service =
            |namespace, name| ClusterAddress::Service(NamespacedName::new(namespace, name));
        let pod = |ip: &str| ClusterAddress::Pod(ip.parse().unwrap());
        for (host, wanted) in [
            ("cat.olm.svc", Some(service("olm", "cat"))),
            ("cat.olm.svc.cluster.local", Some(service("olm", "cat"))),
            ("cat.olm.svc.cluster.local.", Some(service("olm", "cat"))),
            ("10.244.1.7", Some(pod("10.244.1.7"))),
            ("[fd00::7]", Some(pod("fd00::7"))),
            ("cat.olm", None),
            ("cat.olm.example.com", None),
            (".olm.svc", None),
            ("localhost", None),
            ("10.244.1", None),
        ] {
            assert_eq!(ClusterAddress::of(host), wanted, "{host}");
        }
    }
}
