//! A whole cluster inside a test: store, API server, controllers and simulated nodes in memory,
//! reached without a socket.
//!
//! ```text
//! TestCluster ─► Store (memory) ─► ApiServer ─► tower service ─► kube::Client ─► Cluster
//!                                                                   └► Workloads
//! ```
//!
//! Tests wait for what they expect by watching for it ([`TestCluster::wait_for`]); nothing here
//! sleeps, and a wait that lasts too long panics with the last state that was seen. The store has a
//! thread of its own, so tokio's time must not be paused while a cluster runs.
//!
//! What this does not do: sockets, TLS, durability; the server's own tests and the binary's do.

#![expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "this crate is test code: whatever does not work must end the test"
)]

mod credentials;
mod trouble;

use mainstay_apiserver::{ApiServer, Config, VersionInfo};
pub use mainstay_auth::Identity;
use mainstay_auth::pki::Pki;
use mainstay_client::{Cluster, Error, ListParams, Selection, WatchEvent};
use mainstay_clock::{Clock, processor_time};
use mainstay_object::{NamespacedName, Object, Resource};
use mainstay_store::Store;
use mainstay_workloads::Workloads;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio_util::sync::{CancellationToken, DropGuard};
pub use trouble::{Asked, Fate};

/// How long a test waits at least for what must come; see [`exhausted`].
pub const PATIENCE: Duration = Duration::from_mins(2);

/// What a process works until a test that waits has had its share of it.
const WORK: Duration = Duration::from_mins(1);

/// Returns when it is pointless to wait any longer: after [`PATIENCE`], or later where the process hardly
/// ran meanwhile because others are busy. A test that works never waits this long.
pub async fn exhausted() {
    const ROUNDS: u32 = 5;
    let begun = processor_time();
    for _ in 0..ROUNDS {
        tokio::time::sleep(PATIENCE).await;
        if processor_time().saturating_sub(begun) > WORK {
            return;
        }
    }
}

/// Who applies what [`TestCluster::apply_yaml`] reads.
const MANAGER: &str = "mainstay-testkit";

/// The keys of all tests of a process: making them takes longer than many tests.
static KEYS: LazyLock<Pki> =
    LazyLock::new(|| Pki::ephemeral(&Clock::system(), &[]).expect("keys can be made"));

/// How a [`TestCluster`] shall be.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether the controllers and nodes run; without them the API stays as it is left.
    pub workloads: bool,
    /// How many simulated nodes there are.
    pub nodes: usize,
    /// What time it is.
    pub clock: Clock,
    /// The version of Kubernetes that the server names, such as `v1.35.0`; none leaves its own.
    pub version: Option<String>,
    /// A label of pods that asks for a simulated behaviour as the annotation does.
    pub behaviour_label: Option<String>,
    /// The behaviour of pods that ask for none.
    pub behaviour: Option<String>,
}

impl Default for Settings {
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

/// A running cluster. Dropping it ends it.
pub struct TestCluster {
    server: Arc<ApiServer>,
    client: kube::Client,
    cluster: Cluster,
    workloads: Option<Workloads>,
    clock: Clock,
    _stop: DropGuard,
}

impl TestCluster {
    /// A cluster with controllers and one node, all of them synced.
    pub async fn start() -> Self {
        Self::with(Settings::default()).await
    }

    /// An API without controllers.
    pub async fn bare() -> Self {
        Self::with(Settings { workloads: false, ..Settings::default() }).await
    }

    /// A cluster as told.
    pub async fn with(settings: Settings) -> Self {
        let Settings { workloads, nodes, clock, version, behaviour_label, behaviour } = settings;
        let stop = CancellationToken::new();
        let store = Store::in_memory(mainstay_store::Options::new(clock));
        let authenticator = Arc::new(KEYS.authenticator(clock).expect("the keys are good"));
        let credentials = credentials::Keys::new(&KEYS, Arc::clone(&authenticator), clock);
        let server = ApiServer::start(Config {
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

    /// The cluster as controllers use it, with all permissions.
    pub const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The client underneath, for kube-rs' own types.
    pub fn kube_client(&self) -> kube::Client {
        self.client.clone()
    }

    /// The cluster as another identity uses it.
    pub fn cluster_as(&self, identity: Identity) -> Cluster {
        Cluster::new(kube::Client::new(self.server.service(identity), "default"))
    }

    /// The cluster as a service account uses it.
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

    /// The store under the server; its revision tells whether anything was written.
    pub fn store(&self) -> &Store {
        self.server.store()
    }

    /// The time.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Applies every object of a YAML or JSON text, in its order, and returns them as stored.
    /// Namespaced objects that name no namespace go to `default`.
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

    /// Applies one object, whatever its kind; see [`TestCluster::apply_yaml`].
    pub async fn apply(&self, mut object: Object) -> Object {
        let resource = self.resource_of(&object).await;
        if resource.is_namespaced() && object.namespace().is_empty() {
            object.set(&["metadata", "namespace"], "default".into());
        }
        let applied = self.cluster.apply(&resource, &object, MANAGER).await;
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

    /// Returns the object once it satisfies `good`. Panics with its last state after [`PATIENCE`].
    #[track_caller]
    pub fn wait_for<F: FnMut(&Object) -> bool + Send>(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
        mut good: F,
    ) -> impl Future<Output = Object> + Send + use<F> {
        let place = std::panic::Location::caller();
        let wait = self.follow(one(resource, namespace, name), move |objects| {
            match objects.values().next() {
                Some(object) if good(object) => ControlFlow::Break(object.clone()),
                _ => ControlFlow::Continue(()),
            }
        });
        async move { wait.await.unwrap_or_else(|last| panic!("{place}: waited in vain; {last}")) }
    }

    /// Returns once the object has the condition with status `True`.
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

    /// Returns once no object has the name. Panics with its last state after [`PATIENCE`].
    #[track_caller]
    pub fn wait_gone(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> impl Future<Output = ()> + Send + use<> {
        let place = std::panic::Location::caller();
        let wait = self.follow(one(resource, namespace, name), |objects| {
            if objects.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        async move { wait.await.unwrap_or_else(|last| panic!("{place}: waited in vain; {last}")) }
    }

    /// Returns the objects of a selection, in order of their names, once they satisfy `good`
    /// together. Panics with their last states after [`PATIENCE`].
    #[track_caller]
    pub fn wait_for_all<F: FnMut(&[&Object]) -> bool + Send>(
        &self,
        selection: Selection,
        mut good: F,
    ) -> impl Future<Output = Vec<Object>> + Send + use<F> {
        let place = std::panic::Location::caller();
        let wait = self.follow(selection, move |objects| {
            let all: Vec<&Object> = objects.values().collect();
            if good(&all) {
                return ControlFlow::Break(objects.values().cloned().collect());
            }
            ControlFlow::Continue(())
        });
        async move { wait.await.unwrap_or_else(|last| panic!("{place}: waited in vain; {last}")) }
    }

    /// Ends the controllers and the server, and returns when they have ended.
    pub async fn shutdown(mut self) {
        if let Some(workloads) = self.workloads.take() {
            workloads.shutdown().await;
        }
        self.server.stop().cancel();
        self.server.store().close().await.expect("memory has nothing to flush");
    }

    /// Shows every state of the selected objects to `look` until that says stop. The error is the
    /// last state in words.
    fn follow<T: Send, F: FnMut(&Objects) -> ControlFlow<T> + Send>(
        &self,
        selection: Selection,
        mut look: F,
    ) -> impl Future<Output = Result<T, String>> + Send + use<T, F> {
        let cluster = self.cluster.clone();
        async move {
            let mut objects = Objects::new();
            let wait = async {
                loop {
                    let round = round(&cluster, &selection, &mut objects, &mut look).await;
                    if let ControlFlow::Break(found) = round {
                        return found;
                    }
                }
            };
            let outcome = tokio::select! {
                found = wait => Some(found),
                () = exhausted() => None,
            };
            outcome.ok_or_else(|| {
                let resource = selection.resource.group_resource();
                let found: Vec<String> = objects
                    .into_values()
                    .map(|object| mainstay_yaml::to_string(&object.into_value()))
                    .collect();
                format!("{resource} {} are [{}]", selection.fields, found.join("---\n"))
            })
        }
    }
}

/// Objects by name, as a watch sees them.
type Objects = BTreeMap<NamespacedName, Object>;

/// Selects the object of a name.
fn one(resource: &Resource, namespace: Option<&str>, name: &str) -> Selection {
    let mut selection = Selection::all(resource.clone()).fields(format!("metadata.name={name}"));
    selection.namespace = namespace.map(ToOwned::to_owned);
    selection
}

/// One list and the watch after it, to its end.
async fn round<T>(
    cluster: &Cluster,
    selection: &Selection,
    objects: &mut Objects,
    look: &mut (impl FnMut(&Objects) -> ControlFlow<T> + Send),
) -> ControlFlow<T> {
    let params = ListParams {
        labels: selection.labels.clone(),
        fields: selection.fields.clone(),
        ..ListParams::default()
    };
    let namespace = selection.namespace.as_deref();
    let list = match cluster.list(&selection.resource, namespace, &params).await {
        // A kind that is not served yet has no objects.
        Err(error) if error.is_not_found() => {
            look(objects)?;
            tokio::task::yield_now().await;
            return ControlFlow::Continue(());
        }
        other => other.expect("the list is answered"),
    };
    *objects = list.items.into_iter().map(|object| (object.key(), object)).collect();
    look(objects)?;
    let mut watch = match cluster.watch(selection, &list.resource_version).await {
        Err(error) if is_over(&error) => return ControlFlow::Continue(()),
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
            Err(error) if is_over(&error) => break,
            Err(error) => panic!("the watch broke: {error}"),
        }
        look(objects)?;
    }
    ControlFlow::Continue(())
}

/// Whether a new list mends it.
fn is_over(error: &Error) -> bool {
    error.is_expired() || error.is_not_found()
}
