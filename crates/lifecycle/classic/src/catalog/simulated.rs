//! Registries in pods on simulated nodes, where nothing runs and nobody listens.
//!
//! ```text
//! NAME.NAMESPACE.svc:PORT ─► Service ─► Pod: ready, on a simulated node ─► its program ─► content
//!                               └─────── changes of either: looked at again ◄───────┘
//! ```
//!
//! What the program of the Pod would serve is read from where the Pod has it when it becomes ready, as a
//! server reads it when it starts, and stays until another Pod takes its place.

use super::address::LISTING;
use super::program::{self, Program};
use super::store::CatalogStore;
use crate::image::{Asking, blocking};
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_client::{Cache, Cluster, Selection};
use mainstay_object::{NamespacedName, Object, known};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The label of a node that says whether it is simulated.
const SIMULATED: &str = "mainstay.dev/simulated";

/// What came of looking for a registry in a simulated Pod.
pub(super) enum Looked {
    /// It was read, and is there no more.
    Ended,
    /// None is there, and why.
    Nobody(String),
    /// It cannot be read, and why.
    Unread(String),
    /// The address is not that of a simulated Pod.
    Elsewhere,
}

/// A Service, and the pods behind it.
pub(super) struct Behind {
    cluster: Cluster,
    /// The Service.
    key: NamespacedName,
    port: u16,
    services: Cache<Service>,
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

/// The pods that a Service selects.
struct Pods {
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
        let it = self.ports.iter().find(|it| it["port"] == port)?;
        Some(if it["targetPort"].is_null() { &it["port"] } else { &it["targetPort"] })
    }
}

impl Pod {
    fn of(pod: &Object) -> Option<Self> {
        let conditions = pod.array(&["status", "conditions"]);
        let ready = conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
        let made = pod.str(&["metadata", "creationTimestamp"]).unwrap_or_default();
        (ready && !pod.is_terminating())
            .then(|| Self { uid: pod.uid().to_owned(), made: made.to_owned() })
    }
}

/// The Service that a host name stands for inside of a cluster.
pub(super) fn service(host: &str) -> Option<NamespacedName> {
    let mut parts = host.trim_end_matches('.').splitn(4, '.');
    let (name, namespace, kind) = (parts.next()?, parts.next()?, parts.next()?);
    let whole = !name.is_empty() && !namespace.is_empty() && kind == "svc";
    whole.then(|| NamespacedName::new(namespace, name))
}

impl Behind {
    /// Begins to look at a Service.
    pub(super) fn begin(cluster: &Cluster, key: NamespacedName, port: u16) -> Self {
        let (changed, stop) = (Arc::new(Notify::new()), CancellationToken::new());
        let hear = Arc::clone(&changed);
        let selection = Selection::all(known::SERVICE)
            .namespace(&*key.namespace)
            .fields(format!("metadata.name={}", key.name));
        let services = Cache::builder(selection, |it| Some(Service::of(it)))
            .subscribe(move |_| hear.notify_one())
            .start(cluster, stop.clone());
        let guard = stop.clone().drop_guard();
        let cluster = cluster.clone();
        Self { cluster, key, port, services, pods: None, changed, stop, _stop: guard }
    }

    /// Returns when the Service or its pods have changed since they were last looked at.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The Pod that answers: the oldest that is ready. None without a Service that selects pods.
    async fn pod(&mut self) -> Option<Result<(NamespacedName, Arc<Pod>, Value), String>> {
        self.services.synced().await;
        let service = self.services.get(&self.key).filter(|it| !it.selector.is_empty())?;
        let Some(target) = service.target(self.port) else {
            let Self { key, port, .. } = self;
            return Some(Err(format!("the Service {key} has no port {port}")));
        };
        let selector: Vec<String> =
            service.selector.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let selector = selector.join(",");
        if self.pods.as_ref().is_none_or(|it| it.selector != selector) {
            let (hear, stop) = (Arc::clone(&self.changed), self.stop.child_token());
            let selection =
                Selection::all(known::POD).namespace(&*self.key.namespace).labels(&*selector);
            let cache = Cache::builder(selection, Pod::of)
                .subscribe(move |_| hear.notify_one())
                .start(&self.cluster, stop.clone());
            cache.synced().await;
            self.pods = Some(Pods { selector, cache, _stop: stop.drop_guard() });
        }
        let pods = self.pods.as_ref()?.cache.list(None);
        let oldest = pods.into_iter().min_by(|a, b| (&a.1.made, &a.0).cmp(&(&b.1.made, &b.0)));
        let nobody = || format!("no Pod that is ready stands behind the Service {}", self.key);
        Some(oldest.map(|(key, pod)| (key, pod, target.clone())).ok_or_else(nobody))
    }
}

impl CatalogStore {
    /// Reads what the Pod behind a Service would serve, if that Pod is simulated, and stays as long as
    /// it is there.
    pub(super) async fn look_behind(
        &self,
        key: &NamespacedName,
        address: &str,
        behind: &mut Behind,
    ) -> Looked {
        let (name, pod, target) = match behind.pod().await {
            None => return Looked::Elsewhere,
            Some(Err(why)) => return Looked::Nobody(format!("{LISTING}{why}")),
            Some(Ok(found)) => found,
        };
        let told = |why: String| Looked::Unread(format!("{LISTING}the Pod {name}: {why}"));
        let cluster = &behind.cluster.clone();
        let live = match cluster.find(&known::POD, Some(&name.namespace), &name.name).await {
            Ok(Some(live)) if live.uid() == pod.uid => live,
            // Another one by now, which is told in a moment.
            Ok(_) => return Looked::Ended,
            Err(error) => return told(error.to_string()),
        };
        let node = live.str(&["spec", "nodeName"]).unwrap_or_default();
        match cluster.find(&known::NODE, None, node).await {
            Ok(node) if node.as_ref().and_then(|it| it.label(SIMULATED)) == Some("false") => {
                return Looked::Elsewhere;
            }
            Ok(_) => {}
            Err(error) => return told(error.to_string()),
        }
        let mut reading = std::pin::pin!(self.read_pod(cluster, &live, &target));
        let read = if let Ok(read) =
            tokio::time::timeout(super::address::WAITED_FOR, &mut reading).await
        {
            read
        } else {
            self.late(key, address);
            reading.await
        };
        match read {
            Ok(catalog) => self.read(key, address, catalog, None).await,
            Err(why) => return told(why),
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
    ) -> Result<Arc<Catalog>, String> {
        let namespace = pod.namespace();
        let account = pod.str(&["spec", "serviceAccountName"]).unwrap_or("default");
        let find = async |cluster: &Cluster, namespace: &str, name: &str| {
            let found = cluster.find(&known::CONFIG_MAP, Some(namespace), name).await;
            let found = found.map_err(|error| error.to_string())?;
            found.ok_or_else(|| format!("there is no ConfigMap {namespace}/{name}"))
        };
        match Program::of(pod, Some(port))? {
            Program::Lists(of) => {
                // A Pod may mount what is in its namespace. The rest its account must be allowed to read:
                // whoever writes a Pod says which ConfigMap its program serves.
                let map = if *of.namespace == *namespace {
                    find(cluster, namespace, &of.name).await?
                } else {
                    let program = cluster.clone().acting_for(namespace, account);
                    let program = program.map_err(|error| error.to_string())?;
                    find(&program, &of.namespace, &of.name).await?
                };
                let data: BTreeMap<String, String> = map.part(&["data"]).unwrap_or_default();
                let place = of.name.clone();
                let read = move || {
                    super::config_map::catalog(&data).map(|read| {
                        for why in &read.left_out {
                            tracing::warn!(config_map = %place, %why, "a catalog has a problem");
                        }
                        read.catalog
                    })
                };
                blocking(read).await
            }
            Program::Files(folder, mounts) => {
                let mut maps = Vec::new();
                for mount in &mounts {
                    maps.push((mount, find(cluster, namespace, &mount.config_map).await?));
                }
                let files = program::files(&folder, &maps);
                blocking(move || {
                    Catalog::load_from(&files, &LoadOptions::default()).map_err(|mut error| {
                        for problem in &mut error.problems {
                            problem.file = format!("/{folder}/{}", problem.file).into();
                        }
                        error.headline()
                    })
                })
                .await
            }
            Program::Image(image, place) => {
                let puller = self.puller().ok_or("images are not read here")?;
                let secrets = pod.array(&["spec", "imagePullSecrets"]);
                let asking = Asking {
                    namespace: namespace.to_owned(),
                    name: account.to_owned(),
                    uid: String::new(),
                    secrets: secrets
                        .iter()
                        .filter_map(|it| it["name"].as_str())
                        .map(str::to_owned)
                        .collect(),
                };
                let found = puller.find(&image, &asking).await?;
                blocking(move || {
                    let read = match &place {
                        Some(place) => puller.catalog_at(&found, place),
                        None => puller.catalog(&found, None),
                    };
                    read.map_err(|why| format!("{image}: {why}"))
                })
                .await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_services_are_those_that_the_inside_of_a_cluster_knows() {
        for (host, wanted) in [
            ("cat.olm.svc", Some(("olm", "cat"))),
            ("cat.olm.svc.cluster.local", Some(("olm", "cat"))),
            ("cat.olm.svc.cluster.local.", Some(("olm", "cat"))),
            ("cat.olm", None),
            ("cat.olm.example.com", None),
            (".olm.svc", None),
            ("localhost", None),
            ("127.0.0.1", None),
        ] {
            let wanted = wanted.map(|(namespace, name)| NamespacedName::new(namespace, name));
            assert_eq!(service(host), wanted, "{host}");
        }
    }
}
