//! Registries in pods on simulated nodes, where nothing runs and nobody listens.
//!
//! ```text
//! NAME.NAMESPACE.svc:PORT ─► Service ─► Pod: ready, on a simulated node ─► its program ─► content
//!           IP of a Pod:PORT ────────────┘ └─── changes of either: looked at again ◄──┘
//! ```
//!
//! What the program of the Pod would serve is read from where the Pod has it when it becomes ready, as a
//! server reads it when it starts, and stays until another Pod takes its place.

use crate::address::LISTING;
use crate::config_map::ConfigMapError;
use crate::program::{self, Program, ProgramError};
use crate::store::CatalogStore;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_client::{Cache, Cluster, Selection};
use mainstay_images::{ContentError, PullError, Requester, blocking};
use mainstay_object::{NamespacedName, Object, known};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The label of a node that says whether it is simulated.
const SIMULATED: &str = "mainstay.dev/simulated";

/// What came of looking for a registry in a simulated Pod.
pub(crate) enum Looked {
    /// It was read, and is there no more.
    Ended,
    /// None is there, and why.
    Nobody(String),
    /// It cannot be read, and why.
    Unread(String),
    /// The address is not that of a simulated Pod.
    Elsewhere,
}

/// No Pod answers at a place.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    /// The Service does not have the port.
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
    /// The API does not have what is needed, or refuses it.
    #[error(transparent)]
    Api(#[from] mainstay_client::Error),
    /// There is no such ConfigMap.
    #[error("there is no ConfigMap {namespace}/{name}")]
    NoConfigMap {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// What the Pod serves cannot be read from here.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The ConfigMap that the Pod serves has no catalog.
    #[error(transparent)]
    ConfigMap(#[from] ConfigMapError),
    /// The files that are mounted are no catalog; the headline of the error.
    #[error("{0}")]
    Load(String),
    /// There are no images here.
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
        /// Why not.
        source: ContentError,
    },
    /// The thread that read the catalog ended; what is said of that.
    #[error("{0}")]
    Ended(String),
}

/// What the host of an address names inside of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClusterAddress {
    Service(NamespacedName),
    Pod(IpAddr),
}

/// A Service or Pod address inside of a cluster, and the Pods behind it.
pub(crate) struct ClusterEndpoints {
    cluster: Cluster,
    place: ClusterAddress,
    port: u16,
    /// The Service, if the place is one.
    services: Option<Cache<Service>>,
    pods: Option<Pods>,
    changed: Arc<Notify>,
    stop: CancellationToken,
    _stop: DropGuard,
}

/// What is known of a Service.
#[derive(Debug, PartialEq, Eq)]
struct Service {
    selector: BTreeMap<String, String>,
    ports: Vec<Value>,
}

/// The pods that stand somewhere.
struct Pods {
    /// The labels by which a Service selects them; empty without one.
    selector: String,
    cache: Cache<Pod>,
    _stop: DropGuard,
}

/// A Pod that is ready.
#[derive(Debug, PartialEq, Eq)]
struct Pod {
    uid: String,
    made: String,
}

impl Service {
    fn of(service: &Object) -> Self {
        Self {
            selector: service.part(&["spec", "selector"]).unwrap_or_default(),
            ports: service.array(&["spec", "ports"]).to_vec(),
        }
    }

    /// The port of pods that a port of the Service leads to.
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
        let made = pod.str(&["metadata", "creationTimestamp"]).unwrap_or_default();
        (ready && !pod.is_terminating())
            .then(|| Self { uid: pod.uid().to_owned(), made: made.to_owned() })
    }
}

/// The Service that a host name stands for inside of a cluster.
pub(crate) fn service(host: &str) -> Option<NamespacedName> {
    let mut parts = host.trim_end_matches('.').splitn(4, '.');
    let (name, namespace, kind) = (parts.next()?, parts.next()?, parts.next()?);
    let whole = !name.is_empty() && !namespace.is_empty() && kind == "svc";
    whole.then(|| NamespacedName::new(namespace, name))
}

impl ClusterAddress {
    /// What the host of an address may mean.
    pub(crate) fn of(host: &str) -> Option<Self> {
        match service(host) {
            Some(key) => Some(Self::Service(key)),
            None => host.trim_matches(['[', ']']).parse().ok().map(Self::Pod),
        }
    }
}

impl ClusterEndpoints {
    /// Begins to look at a place.
    pub(crate) fn begin(cluster: &Cluster, place: ClusterAddress, port: u16) -> Self {
        let (changed, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let services = match &place {
            ClusterAddress::Pod(_) => None,
            ClusterAddress::Service(key) => {
                let hear = Arc::clone(&changed);
                let selection = Selection::all(known::SERVICE)
                    .namespace(&*key.namespace)
                    .fields(format!("metadata.name={}", key.name));
                let cache = Cache::builder(selection, |service| Some(Service::of(service)))
                    .subscribe(move |_| hear.notify_one())
                    .start(cluster, stop.clone());
                Some(cache)
            }
        };
        let guard = stop.clone().drop_guard();
        let cluster = cluster.clone();
        Self { cluster, place, port, services, pods: None, changed, stop, _stop: guard }
    }

    /// Returns when the place or its pods have changed since they were last looked at.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The Pod that answers: the oldest that is ready. None where no Service selects pods, or no Pod has
    /// that IP.
    async fn pod(&mut self) -> Option<Result<(NamespacedName, Arc<Pod>, Value), EndpointError>> {
        let (selection, selector, target) = match (&self.place, &self.services) {
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
                let selection = Selection::all(known::POD).namespace(&*key.namespace);
                (selection.labels(&*selector), selector, target.clone())
            }
            (ClusterAddress::Pod(ip), _) => {
                let selection = Selection::all(known::POD).fields(format!("status.podIP={ip}"));
                (selection, String::new(), Value::from(self.port))
            }
            (ClusterAddress::Service(_), None) => return None,
        };
        if self.pods.as_ref().is_none_or(|pods| pods.selector != selector) {
            let (hear, stop) = (Arc::clone(&self.changed), self.stop.child_token());
            let cache = Cache::builder(selection, Pod::of)
                .subscribe(move |_| hear.notify_one())
                .start(&self.cluster, stop.clone());
            cache.synced().await;
            self.pods = Some(Pods { selector, cache, _stop: stop.drop_guard() });
        }
        let pods = self.pods.as_ref()?.cache.list(None);
        let oldest = pods.into_iter().min_by(|a, b| (&a.1.made, &a.0).cmp(&(&b.1.made, &b.0)));
        match (oldest, &self.place) {
            (Some((key, pod)), _) => Some(Ok((key, pod, target))),
            (None, ClusterAddress::Service(key)) => {
                Some(Err(EndpointError::NoPod { service: key.clone() }))
            }
            // It may be the address of a machine.
            (None, ClusterAddress::Pod(_)) => None,
        }
    }
}

impl CatalogStore {
    /// Reads what the Pod at a place would serve, if that Pod is simulated, and stays as long as it is
    /// there.
    pub(crate) async fn look_behind(
        &self,
        key: &NamespacedName,
        address: &str,
        behind: &mut ClusterEndpoints,
    ) -> Looked {
        let (name, pod, target) = match behind.pod().await {
            None => return Looked::Elsewhere,
            Some(Err(error)) => return Looked::Nobody(format!("{LISTING}{error}")),
            Some(Ok(found)) => found,
        };
        let unread = |error: PodError| Looked::Unread(format!("{LISTING}the Pod {name}: {error}"));
        let cluster = &behind.cluster.clone();
        let live = match cluster.find(&known::POD, Some(&name.namespace), &name.name).await {
            Ok(Some(live)) if live.uid() == pod.uid => live,
            // Another one by now, which is told in a moment.
            Ok(_) => return Looked::Ended,
            Err(error) => return unread(error.into()),
        };
        let node = live.str(&["spec", "nodeName"]).unwrap_or_default();
        match cluster.find(&known::NODE, None, node).await {
            Ok(node) if node.as_ref().and_then(|node| node.label(SIMULATED)) == Some("false") => {
                return Looked::Elsewhere;
            }
            Ok(_) => {}
            Err(error) => return unread(error.into()),
        }
        let mut reading = std::pin::pin!(self.read_pod(cluster, &live, &target));
        let read = if let Ok(read) =
            tokio::time::timeout(crate::address::WAITED_FOR, &mut reading).await
        {
            read
        } else {
            self.late(key, address);
            reading.await
        };
        match read {
            Ok(catalog) => self.read(key, address, catalog, None).await,
            Err(error) => return unread(error),
        }
        loop {
            behind.changed().await;
            match behind.pod().await {
                Some(Ok((_, now, _))) if now.uid == pod.uid => {}
                _ => return Looked::Ended,
            }
        }
    }

    /// What the program of a Pod would serve on a port.
    async fn read_pod(
        &self,
        cluster: &Cluster,
        pod: &Object,
        port: &Value,
    ) -> Result<Arc<Catalog>, PodError> {
        let namespace = pod.namespace();
        let account = pod.str(&["spec", "serviceAccountName"]).unwrap_or("default");
        let find = async |cluster: &Cluster, namespace: &str, name: &str| {
            let found = cluster.find(&known::CONFIG_MAP, Some(namespace), name).await;
            found?.ok_or_else(|| PodError::NoConfigMap {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
        };
        match Program::of(pod, Some(port))? {
            Program::Lists(of) => {
                // A Pod may mount what is in its namespace. The rest its account must be allowed to read:
                // whoever writes a Pod says which ConfigMap its program serves.
                let map = if *of.namespace == *namespace {
                    find(cluster, namespace, &of.name).await?
                } else {
                    let program = cluster.clone().acting_for(namespace, account);
                    find(&program?, &of.namespace, &of.name).await?
                };
                let data: BTreeMap<String, String> = map.part(&["data"]).unwrap_or_default();
                let place = of.name.clone();
                let read = move || {
                    let read = crate::config_map::catalog(&data)?;
                    for why in &read.left_out {
                        tracing::warn!(config_map = %place, %why, "a catalog has a problem");
                    }
                    Ok(read.catalog)
                };
                blocking(read, PodError::Ended).await
            }
            Program::Files(folder, mounts) => {
                let mut maps = Vec::new();
                for mount in &mounts {
                    maps.push((mount, find(cluster, namespace, &mount.config_map).await?));
                }
                let files = program::files(&folder, &maps);
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
            Program::Image(image, place) => {
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
