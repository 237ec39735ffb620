//! A whole cluster inside a test: store, API server, controllers and simulated nodes in memory,
//! reached without a socket.
//!
//! ```text
//! TestCluster ─► Store (memory) ─► ApiServer ─► tower service ─► kube::Client ─► Cluster
//!                                                                   └► Workloads
//! ```
//!
//! Tests wait for what they expect by watching for it ([`TestCluster::wait_for`]); nothing here
//! sleeps, and a wait that lasts too long panics with the source of the call and the last state that was
//! seen. A helper of tests that waits is a function with `#[track_caller]` that returns the future (no
//! `async fn`), so that the call in the test is shown. The store has a
//! thread of its own, so tokio's time must not be paused while a cluster runs.
//!
//! What this does not do: sockets, TLS, durability; the server's own tests and the binary's do.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "this crate is test code: whatever does not work must end the test"
)]

pub mod chaos;
mod fault_injection;
mod source_text;
mod webhooks;

pub use fault_injection::{InjectedFault, ObservedRequest};
use mainstay_apiserver::{ApiServer, ApiServerConfig, VersionInfo};
pub use mainstay_auth::Identity;
use mainstay_auth::pki::Pki;
use mainstay_client::{Cluster, Error, ObjectList, Selection, WatchEvent};
use mainstay_clock::{Clock, processor_time};
use mainstay_object::{NamespacedName, Object, Resource};
use mainstay_store::Store;
use mainstay_workloads::{ClusterCredentials, Workloads};
use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};
use std::ops::ControlFlow;
use std::panic::Location;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The least timeout of waits in tests; see [`wait_for_timeout`].
pub const WAIT_TIMEOUT: Duration = Duration::from_mins(2);

/// The processor time that a process must get before a wait times out.
const MIN_PROCESSOR_TIME: Duration = Duration::from_mins(1);

/// The processor time in [`WAIT_TIMEOUT`] below which a process has nothing to do. One that others keep
/// from running gets more.
const IDLE_PROCESSOR_TIME: Duration = Duration::from_secs(1);

/// An address of this machine that others reach; none if it has loopback only.
pub fn own_address() -> Option<IpAddr> {
    // Nothing is sent: connecting only chooses a route.
    let socket = UdpSocket::bind(("0.0.0.0", 0)).ok()?;
    socket.connect(("192.0.2.1", 9)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

/// Returns when waiting longer is pointless: after [`WAIT_TIMEOUT`], or later if the process had work
/// and got little processor time for it, because others are busy. A passing test never waits this long.
pub async fn wait_for_timeout() {
    const ROUNDS: u32 = 5;
    let start = processor_time();
    let mut before = start;
    for _ in 0..ROUNDS {
        tokio::time::sleep(WAIT_TIMEOUT).await;
        let now = processor_time();
        let is_idle = now.saturating_sub(before) < IDLE_PROCESSOR_TIME;
        if is_idle || now.saturating_sub(start) > MIN_PROCESSOR_TIME {
            return;
        }
        before = now;
    }
}

/// The field manager of [`TestCluster::apply_yaml`].
const FIELD_MANAGER: &str = "mainstay-testkit";

/// The keys and certificates of all tests of a process: generating them takes longer than many
/// tests.
static PKI: LazyLock<Pki> =
    LazyLock::new(|| Pki::ephemeral(&Clock::system(), &[]).expect("keys can be made"));

/// The settings of a [`TestCluster`].
#[derive(Clone, Debug)]
pub struct TestClusterSettings {
    /// Whether the workload controllers and nodes run.
    pub workloads: bool,
    /// The number of simulated nodes.
    pub nodes: usize,
    /// The cluster's clock.
    pub clock: Clock,
    /// The Kubernetes version that the server reports, such as `v1.35.0`; by default its own.
    pub version: Option<String>,
    /// A pod label that selects a simulated behaviour, like the annotation does.
    pub behaviour_label: Option<String>,
    /// The behaviour of pods that select none.
    pub behaviour: Option<String>,
}

impl Default for TestClusterSettings {
    fn default() -> Self {
        Self {
            workloads: true,
            nodes: 1,
            clock: Clock::system(),
            version: None,
            behaviour_label: None,
            behaviour: None,
        }
    }
}

/// A running cluster. Dropping it stops it.
pub struct TestCluster {
    server: Arc<ApiServer>,
    client: kube::Client,
    cluster: Cluster,
    workloads: Option<Workloads>,
    clock: Clock,
    _stop: DropGuard,
}

impl TestCluster {
    /// Starts a cluster with controllers and one node, and waits until all have synced.
    pub async fn start() -> Self {
        Self::with(TestClusterSettings::default()).await
    }

    /// Starts an API server without controllers.
    pub async fn bare() -> Self {
        Self::with(TestClusterSettings { workloads: false, ..TestClusterSettings::default() }).await
    }

    /// Starts a cluster with these settings.
    pub async fn with(settings: TestClusterSettings) -> Self {
        let TestClusterSettings { workloads, nodes, clock, version, behaviour_label, behaviour } =
            settings;
        let stop = CancellationToken::new();
        let store = Store::in_memory(mainstay_store::Options::new(clock));
        let authenticator = Arc::new(PKI.authenticator(clock).expect("the keys are good"));
        let credentials = ClusterCredentials::new(&PKI, Arc::clone(&authenticator), clock);
        let server = ApiServer::start(ApiServerConfig {
            store,
            clock,
            authenticator,
            version: version.map_or_else(VersionInfo::default, |git_version| VersionInfo {
                git_version,
                ..VersionInfo::default()
            }),
            stop: stop.clone(),
        })
        .await
        .expect("the server starts");
        let client = kube::Client::new(server.service(Identity::admin()), "default");
        let cluster = Cluster::new(client.clone());
        let workloads = workloads.then(|| {
            let options = mainstay_workloads::Options {
                nodes,
                root_ca: Some("test certificates".to_owned()),
                behaviour_label,
                behaviour,
                credentials: Some(Arc::new(credentials.expect("the keys are good"))),
                ..mainstay_workloads::Options::new(clock)
            };
            Workloads::start(cluster.clone(), options)
        });
        if let Some(workloads) = &workloads {
            workloads.synced().await;
        }
        Self { server, client, cluster, workloads, clock, _stop: stop.drop_guard() }
    }

    /// The client of the cluster, with all permissions.
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The underlying client, for kube-rs' own types.
    pub fn kube_client(&self) -> kube::Client {
        self.client.clone()
    }

    /// A client of the cluster with another identity.
    pub fn cluster_as(&self, identity: Identity) -> Cluster {
        Cluster::new(kube::Client::new(self.server.service(identity), "default"))
    }

    /// A client of the cluster with the identity of a ServiceAccount.
    pub fn cluster_as_account(&self, namespace: &str, name: &str) -> Cluster {
        let groups =
            ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        let user = format!("system:serviceaccount:{namespace}:{name}");
        self.cluster_as(Identity::new(user, groups))
    }

    /// The server.
    pub const fn server(&self) -> &Arc<ApiServer> {
        &self.server
    }

    /// The server's store; its revision changes with every write.
    pub fn store(&self) -> &Store {
        self.server.store()
    }

    /// The cluster's clock.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Applies all objects of a YAML or JSON text, in order, and returns them as stored. The
    /// default namespace is `default`.
    pub async fn apply_yaml(&self, text: &str) -> Vec<Object> {
        let mut applied = Vec::new();
        for document in
            mainstay_yaml::documents(text.as_bytes(), &mainstay_yaml::Options::default())
        {
            let document = document.expect("the text is YAML");
            if document.value.is_null() {
                continue;
            }
            let object = Object::from_value(document.value).expect("the document is an object");
            applied.push(self.apply(object).await);
        }
        applied
    }

    /// Applies one object of any kind; see [`TestCluster::apply_yaml`].
    pub async fn apply(&self, mut object: Object) -> Object {
        let resource = self.resource_of(&object).await;
        if resource.is_namespaced() && object.namespace().is_empty() {
            object.set(&["metadata", "namespace"], "default".into());
        }
        let applied = self.cluster.apply(&resource, &object, FIELD_MANAGER).await;
        applied.unwrap_or_else(|error| {
            panic!("cannot apply {} {}: {error}", object.kind(), object.key())
        })
    }

    /// The resource that serves an object's kind.
    async fn resource_of(&self, object: &Object) -> Resource {
        let gvk = object.gvk();
        let found = self.cluster.resource_of(&gvk).await.expect("discovery answers");
        found.unwrap_or_else(|| panic!("no resource serves {gvk}"))
    }

    /// Returns the object once it satisfies `predicate`. Panics with its last state after
    /// [`WAIT_TIMEOUT`].
    #[track_caller]
    pub fn wait_for<F: FnMut(&Object) -> bool + Send>(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        mut predicate: F,
    ) -> impl Future<Output = Object> + Send + use<F> {
        let caller = Location::caller();
        let wait = self.watch_until(select_one(resource, namespace, name), move |objects| {
            match objects.values().next() {
                Some(object) if predicate(object) => ControlFlow::Break(object.clone()),
                _ => ControlFlow::Continue(()),
            }
        });
        async move { wait.await.unwrap_or_else(|last| waited_in_vain(caller, &last)) }
    }

    /// Returns the object once the condition has the status `True`.
    #[track_caller]
    pub fn wait_for_condition(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        condition: &str,
    ) -> impl Future<Output = Object> + Send + use<> {
        let condition = condition.to_owned();
        self.wait_for(resource, namespace, name, move |object| {
            object.condition(&condition) == Some("True")
        })
    }

    /// Returns once the object does not exist. Panics with its last state after [`WAIT_TIMEOUT`].
    #[track_caller]
    pub fn wait_gone(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> impl Future<Output = ()> + Send + use<> {
        let caller = Location::caller();
        let wait = self.watch_until(select_one(resource, namespace, name), |objects| {
            if objects.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        async move { wait.await.unwrap_or_else(|last| waited_in_vain(caller, &last)) }
    }

    /// Returns the selected objects, sorted by name, once they satisfy `predicate` together. Panics
    /// with their last states after [`WAIT_TIMEOUT`].
    #[track_caller]
    pub fn wait_for_all<F: FnMut(&[&Object]) -> bool + Send>(
        &self,
        selection: Selection,
        mut predicate: F,
    ) -> impl Future<Output = Vec<Object>> + Send + use<F> {
        let caller = Location::caller();
        let wait = self.watch_until(selection, move |objects| {
            let all: Vec<&Object> = objects.values().collect();
            if predicate(&all) {
                return ControlFlow::Break(objects.values().cloned().collect());
            }
            ControlFlow::Continue(())
        });
        async move { wait.await.unwrap_or_else(|last| waited_in_vain(caller, &last)) }
    }

    /// Stops the controllers and the server, and waits for them.
    pub async fn shutdown(mut self) {
        if let Some(workloads) = self.workloads.take() {
            workloads.shutdown().await;
        }
        self.server.stop().cancel();
        self.server.store().close().await.expect("memory has nothing to flush");
    }

    /// Passes every state of the selected objects to `observe` until that breaks. The error is the
    /// last state, as text.
    fn watch_until<T: Send, F: FnMut(&Objects) -> ControlFlow<T> + Send>(
        &self,
        selection: Selection,
        mut observe: F,
    ) -> impl Future<Output = Result<T, String>> + Send + use<T, F> {
        let cluster = self.cluster.clone();
        async move {
            let mut objects = Objects::new();
            let wait = async {
                loop {
                    let step =
                        list_and_watch(&cluster, &selection, &mut objects, &mut observe).await;
                    if let ControlFlow::Break(found) = step {
                        return found;
                    }
                }
            };
            let outcome = tokio::select! {
                found = wait => Some(found),
                () = wait_for_timeout() => None,
            };
            outcome.ok_or_else(|| {
                let found: Vec<String> = objects
                    .into_values()
                    .map(|object| {
                        let mut value = object.into_value();
                        // Longer than all the rest, and hardly ever waited for.
                        if let Some(metadata) = value["metadata"].as_object_mut() {
                            metadata.remove("managedFields");
                        }
                        mainstay_yaml::to_string(&value)
                    })
                    .collect();
                let selected = selected_text(&selection);
                match found.as_slice() {
                    [] => format!("there is none of {selected}"),
                    _ => format!("the last state of {selected}:\n{}", found.join("---\n")),
                }
            })
        }
    }
}

/// Ends a test whose wait was in vain: says where it waits, for what, and what it saw.
fn waited_in_vain(caller: &Location<'_>, last: &str) -> ! {
    panic!("{caller}: waited in vain for\n{}\n{last}", source_text::of_call(caller))
}

/// The selected objects, in words.
fn selected_text(selection: &Selection) -> String {
    let mut text = selection.resource.group_resource();
    for selector in [&selection.fields, &selection.labels] {
        if !selector.is_empty() {
            text = format!("{text} with {selector}");
        }
    }
    match &selection.namespace {
        Some(namespace) => format!("{text} in the namespace {namespace}"),
        None => text,
    }
}

/// The state of a watch: objects by name.
type Objects = BTreeMap<NamespacedName, Object>;

/// Selects one object by name.
fn select_one(resource: &Resource, namespace: Option<&str>, name: &str) -> Selection {
    let mut selection = Selection::all(resource.clone()).fields(format!("metadata.name={name}"));
    selection.namespace = namespace.map(ToOwned::to_owned);
    selection
}

/// Lists the objects once, and watches them until the watch ends.
async fn list_and_watch<T>(
    cluster: &Cluster,
    selection: &Selection,
    objects: &mut Objects,
    observe: &mut (impl FnMut(&Objects) -> ControlFlow<T> + Send),
) -> ControlFlow<T> {
    let params = ObjectList {
        labels: selection.labels.clone(),
        fields: selection.fields.clone(),
        ..ObjectList::default()
    };
    let namespace = selection.namespace.as_deref();
    let list = match cluster.list(&selection.resource, namespace, &params).await {
        // A kind that is not served yet has no objects.
        Err(error) if error.is_not_found() => {
            observe(objects)?;
            tokio::task::yield_now().await;
            return ControlFlow::Continue(());
        }
        other => other.expect("the list is answered"),
    };
    *objects = list.items.into_iter().map(|object| (object.key(), object)).collect();
    observe(objects)?;
    let mut watch = match cluster.watch(selection, &list.resource_version).await {
        Err(error) if needs_relist(&error) => return ControlFlow::Continue(()),
        other => other.expect("the watch is answered"),
    };
    while let Some(event) = watch.next().await {
        match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                objects.insert(object.key(), object);
            }
            Ok(WatchEvent::Deleted(object)) => {
                objects.remove(&object.key());
            }
            Ok(WatchEvent::Bookmark(_)) => continue,
            Err(error) if needs_relist(&error) => break,
            Err(error) => panic!("the watch broke: {error}"),
        }
        observe(objects)?;
    }
    ControlFlow::Continue(())
}

/// Whether the error calls for a new list.
fn needs_relist(error: &Error) -> bool {
    error.is_expired() || error.is_not_found()
}
