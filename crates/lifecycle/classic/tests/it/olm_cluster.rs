//! Test cluster of OLM classic: an embedded cluster with the controllers and a catalog in a folder.

use base64::Engine as _;
use mainstay_api::resources::{
    CATALOG_SOURCE, CLUSTER_SERVICE_VERSION, INSTALL_PLAN, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_classic::{
    CatalogPods, Classic, DefaultSources, FolderCatalog, NetworkSettings, Options, ProxySettings,
    Timeouts, TrustedCaCertificates,
};
use mainstay_client::{Cluster, Selection};
use mainstay_clock::Clock;
use mainstay_controller::{Monitors, Subsystem};
use mainstay_exposition::Page;
use mainstay_image::policy::SignaturePolicy;
use mainstay_image::reference::ImageReference;
use mainstay_image::registry::{ClientSettings, Proxies};
use mainstay_image::store::ImageStore;
use mainstay_images::{ImageSources, LocalName, ReadPolicy, UnreadablePolicy};
use mainstay_object::{Object, Resource, builtin};
use mainstay_testkit::TestCluster;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The namespace of the catalogs, which is the global one.
pub(crate) const CATALOG_NAMESPACE: &str = "olm";

/// An embedded cluster with the controllers of OLM classic.
pub(crate) struct OlmCluster {
    pub(crate) cluster: TestCluster,
    pub(crate) classic: Option<Classic>,
    /// The folder of the catalog `cat`.
    pub(crate) folder: tempfile::TempDir,
    /// The folder for copies of catalog contents.
    pub(crate) cache: tempfile::TempDir,
    /// The folder of images.
    pub(crate) images: tempfile::TempDir,
    /// How catalogs run as pods, from the next start of the controllers on.
    pub(crate) pods: CatalogPods,
    /// The proxies and trusted certificates for operators.
    pub(crate) surroundings: NetworkSettings,
    pub(crate) timeouts: Timeouts,
    /// Namespaces that keep copied CSVs, from the next start of the controllers on.
    pub(crate) protected: BTreeSet<String>,
    /// Default catalogs, from the next start of the controllers on.
    pub(crate) defaults: Option<DefaultSources>,
    /// The clock of the controllers.
    pub(crate) clock: Clock,
    /// Further catalogs of the same namespace: name and folder.
    pub(crate) others: Vec<(&'static str, tempfile::TempDir)>,
    /// The machine's `policy.json`; none accepts every image.
    pub(crate) policy: Arc<std::sync::Mutex<Option<String>>>,
}

impl OlmCluster {
    /// Starts a cluster whose catalog has these versions of the package `anvil`, each of which
    /// replaces the one before.
    pub(crate) async fn start(versions: &[&str]) -> Self {
        let cluster = TestCluster::start().await;
        for crd in mainstay_api::crds() {
            cluster.apply(crd).await;
        }
        for name in [CATALOG_NAMESPACE, "team"] {
            create_namespace(&cluster, name, "").await;
        }
        let folder = tempfile::tempdir().unwrap();
        let (cache, images) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let surroundings = NetworkSettings {
            registries: Proxies::default(),
            proxy: ProxySettings::default(),
            trusted: Some(TrustedCaCertificates::new(|| "the certificates".to_owned())),
        };
        let mut olm = Self {
            clock: cluster.clock(),
            cluster,
            classic: None,
            folder,
            cache,
            images,
            pods: CatalogPods::default(),
            surroundings,
            timeouts: Timeouts::default(),
            protected: BTreeSet::new(),
            defaults: None,
            others: Vec::new(),
            policy: Arc::default(),
        };
        olm.publish(versions);
        olm.start_controllers().await;
        olm.create_catalog_source("cat", 0).await;
        olm
    }

    /// Applies the CatalogSource of a folder catalog; priority 0 means none.
    pub(crate) async fn create_catalog_source(&self, name: &str, priority: i64) {
        let priority =
            if priority == 0 { String::new() } else { format!(", priority: {priority}") };
        self.cluster
            .apply_yaml(&format!(
                "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: {name}, namespace: {CATALOG_NAMESPACE}}}
spec: {{sourceType: grpc, address: '{}'{priority}}}
",
                mainstay_classic::FOLDER_ADDRESS
            ))
            .await;
    }

    /// Starts the controllers.
    pub(crate) async fn start_controllers(&mut self) {
        let cluster = self.cluster.cluster().clone();
        self.start_controllers_over(&cluster).await;
    }

    /// Starts the controllers with their own client.
    pub(crate) async fn start_controllers_over(&mut self, cluster: &Cluster) {
        let classic = self.spawn_controllers(cluster);
        // Stored before the wait, so that a cancelled test still shuts it down.
        self.classic.insert(classic).synced().await;
    }

    /// Spawns controllers with a client; the caller shuts them down.
    pub(crate) fn spawn_controllers(&self, cluster: &Cluster) -> Classic {
        self.spawn_controllers_with_cache(cluster, self.cache.path())
    }

    /// Like [`Self::spawn_controllers`], with another folder for catalog copies, as each process
    /// has its own.
    pub(crate) fn spawn_controllers_with_cache(&self, cluster: &Cluster, cache: &Path) -> Classic {
        let folder = |name: &str, folder: &tempfile::TempDir| FolderCatalog {
            namespace: CATALOG_NAMESPACE.to_owned(),
            name: name.to_owned(),
            folder: folder.path().to_owned(),
            served: None,
            address: None,
        };
        let others = self.others.iter().map(|(name, path)| folder(name, path));
        Classic::start_with(
            cluster,
            Options {
                clock: self.clock,
                global_namespace: CATALOG_NAMESPACE.to_owned(),
                catalogs: std::iter::once(folder("cat", &self.folder)).chain(others).collect(),
                cache: Some(cache.to_owned()),
                images: Some(self.image_sources()),
                serve: None,
                surroundings: self.surroundings.clone(),
                timeouts: self.timeouts,
                protected: self.protected.clone(),
                defaults: self.defaults.clone(),
            },
            self.pods.clone(),
        )
    }

    /// Writes the metrics of the running controllers.
    pub(crate) fn write_metrics(&self, page: &mut Page) {
        let running = self.classic.iter().map(|classic| classic as &dyn Subsystem);
        Monitors::of(running).write_metrics(page);
    }

    /// The cluster's image store.
    pub(crate) fn store(&self) -> ImageStore {
        ImageStore::open(self.images.path().join("local")).unwrap()
    }

    /// Reads the machine's policy, which a test may replace.
    fn read_policy(&self) -> ReadPolicy {
        let policy = Arc::clone(&self.policy);
        Arc::new(move || {
            let text = policy.lock().unwrap().clone();
            let Some(text) = text else { return Ok(SignaturePolicy::accept_anything()) };
            let lost = |_: &str| Err(std::io::ErrorKind::NotFound.into());
            SignaturePolicy::read(text.as_bytes(), lost)
                .map_err(|error| UnreadablePolicy(format!("invalid policy: {error}")))
        })
    }

    fn image_sources(&self) -> ImageSources {
        let named = |reference: &ImageReference| LocalName {
            reference: reference.clone(),
            only_here: reference.domain() == "localhost",
        };
        let work = self.images.path().join("work");
        std::fs::create_dir_all(&work).unwrap();
        ImageSources {
            local: self.store(),
            named: Arc::new(named),
            pulled: ImageStore::open(self.images.path().join("pulled")).unwrap(),
            registries: ClientSettings::new(self.cluster.clock()),
            policy: self.read_policy(),
            work,
        }
    }

    /// Stops the controllers; the cluster keeps running.
    pub(crate) async fn stop_controllers(&mut self) {
        self.classic.take().unwrap().shutdown().await;
    }

    /// Writes the catalog with these versions.
    pub(crate) fn publish(&self, versions: &[&str]) {
        self.publish_edited(versions, |_, _| ());
    }

    /// Writes the catalog with these versions; `edit` gets each version and its bundle.
    pub(crate) fn publish_edited(&self, versions: &[&str], edit: impl Fn(&str, &mut Value)) {
        write_catalog(self.folder.path(), versions, edit);
    }

    /// Writes the catalog with this text.
    pub(crate) fn publish_text(&self, text: &str) {
        replace_catalog_file(self.folder.path(), text);
    }

    /// Applies an OperatorGroup in the namespace `team` that targets `team`.
    pub(crate) async fn apply_group(&self, name: &str) {
        self.apply_group_for(name, &["team"]).await;
    }

    /// Applies an OperatorGroup in the namespace `team` that targets these namespaces; none means
    /// all.
    pub(crate) async fn apply_group_for(&self, name: &str, targets: &[&str]) {
        let mut group = json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": name, "namespace": "team"}, "spec": {},
        });
        if !targets.is_empty() {
            group["spec"]["targetNamespaces"] = targets.into();
        }
        self.cluster.apply(Object::from_value(group).unwrap()).await;
    }

    /// Applies the Subscription to `anvil` in the namespace `team`, with more fields for its spec.
    pub(crate) async fn subscribe(&self, more: Value) {
        let mut spec = json!({
            "name": "anvil", "channel": "stable", "source": "cat", "sourceNamespace": CATALOG_NAMESPACE,
        });
        let fields = spec.as_object_mut().unwrap();
        fields.extend(more.as_object().cloned().unwrap_or_default());
        self.cluster
            .apply(
                Object::from_value(json!({
                    "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
                    "metadata": {"name": "anvil", "namespace": "team"}, "spec": spec,
                }))
                .unwrap(),
            )
            .await;
    }

    /// Waits until a CSV in the namespace `team` has a phase and reason.
    #[track_caller]
    pub(crate) fn wait_for_csv(
        &self,
        version: &str,
        phase: &str,
        reason: &str,
    ) -> impl Future<Output = Object> + Send + use<> {
        let (phase, reason) = (phase.to_owned(), reason.to_owned());
        self.cluster.wait_for(&CLUSTER_SERVICE_VERSION, Some("team"), version, move |csv| {
            csv.str(&["status", "phase"]) == Some(&phase)
                && csv.str(&["status", "reason"]) == Some(&reason)
        })
    }

    /// Waits until a CSV in the namespace `team` succeeded.
    #[track_caller]
    pub(crate) fn wait_until_succeeded(
        &self,
        version: &str,
    ) -> impl Future<Output = Object> + Send + use<> {
        self.wait_for_csv(version, "Succeeded", "InstallSucceeded")
    }

    /// Waits until the Subscription `anvil` matches.
    #[track_caller]
    pub(crate) fn wait_for_subscription(
        &self,
        predicate: impl FnMut(&Object) -> bool + Send + 'static,
    ) -> impl Future<Output = Object> + Send {
        self.cluster.wait_for(&SUBSCRIPTION, Some("team"), "anvil", predicate)
    }

    /// Waits until the InstallPlans of the namespace `team` match.
    #[track_caller]
    pub(crate) fn wait_for_plans(
        &self,
        predicate: impl FnMut(&[&Object]) -> bool + Send + 'static,
    ) -> impl Future<Output = Vec<Object>> + Send {
        let mut selection = Selection::all(INSTALL_PLAN.clone());
        selection.namespace = Some("team".to_owned());
        self.cluster.wait_for_all(selection, predicate)
    }

    /// Waits for an Event about an object; returns its type and message.
    #[track_caller]
    pub(crate) fn wait_for_event(
        &self,
        kind: &str,
        name: &str,
        reason: &str,
    ) -> impl Future<Output = (String, String)> + Send + use<> {
        let wanted = [kind, name, reason].map(str::to_owned);
        let fits = move |event: &Object| {
            event.str(&["involvedObject", "kind"]) == Some(&wanted[0])
                && event.str(&["involvedObject", "name"]) == Some(&wanted[1])
                && event.str(&["reason"]) == Some(&wanted[2])
        };
        let same = fits.clone();
        let all = Selection::all(builtin::EVENT);
        let events = self.cluster.wait_for_all(all, move |all| all.iter().any(|event| same(event)));
        async move {
            let events = events.await;
            let event = events.iter().find(|event| fits(event)).unwrap();
            let text = |field: &str| event.str(&[field]).unwrap_or_default().to_owned();
            (text("type"), text("message"))
        }
    }

    /// Kind, key and resource version of every object that the controllers write.
    pub(crate) async fn resource_versions(&self) -> Vec<String> {
        let mut all = Vec::new();
        for resource in [
            &CATALOG_SOURCE,
            &SUBSCRIPTION,
            &INSTALL_PLAN,
            &CLUSTER_SERVICE_VERSION,
            &OPERATOR_GROUP,
            &builtin::DEPLOYMENT,
            &builtin::SERVICE_ACCOUNT,
            &builtin::ROLE,
            &builtin::ROLE_BINDING,
            &builtin::CLUSTER_ROLE,
            &builtin::CLUSTER_ROLE_BINDING,
            &builtin::NAMESPACE,
            &builtin::EVENT,
        ] {
            all.extend(self.resource_versions_of(resource).await);
        }
        all
    }

    /// Waits until the controllers write nothing for half a second; panics with the latest writes
    /// if they do not stop.
    pub(crate) async fn wait_until_idle(&self) {
        const ROUNDS: usize = 20;
        let mut before = self.resource_versions().await;
        let mut new = Vec::new();
        for _ in 0..ROUNDS {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let after = self.resource_versions().await;
            new = after.iter().filter(|line| !before.contains(line)).cloned().collect();
            if before == after {
                return;
            }
            before = after;
        }
        panic!(
            "the controllers still write after {ROUNDS} rounds of half a second; the latest writes \
             (kind, object, resource version):\n{}",
            new.join("\n")
        );
    }

    async fn resource_versions_of(&self, resource: &Resource) -> Vec<String> {
        let params = mainstay_client::ObjectList::default();
        let list = self.cluster.cluster().list(resource, None, &params);
        let items = list.await.unwrap().items;
        items
            .iter()
            .map(|object| {
                format!("{} {} {}", resource.kind, object.key(), object.resource_version())
            })
            .collect()
    }
}

/// Applies a Namespace with labels as `key: value`.
pub(crate) async fn create_namespace(cluster: &TestCluster, name: &str, labels: &str) {
    cluster
        .apply_yaml(&format!(
            "{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}, labels: {{{labels}}}}}}}"
        ))
        .await;
}

/// Reason and message of a condition whose status is `True`.
pub(crate) fn true_condition(object: &Object, kind: &str) -> Option<(String, String)> {
    let conditions = object.array(&["status", "conditions"]);
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == kind && condition["status"] == "True")?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("reason"), text("message")))
}

fn write_catalog(folder: &Path, versions: &[&str], edit: impl Fn(&str, &mut Value)) {
    replace_catalog_file(folder, &catalog(versions, edit));
}

fn replace_catalog_file(folder: &Path, text: &str) {
    // An atomic replacement, so that no reader sees half a file.
    let new = folder.join(".new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(&new, folder.join("catalog.json")).unwrap();
}

/// A catalog with these versions of the package `anvil`.
pub(crate) fn catalog(versions: &[&str], edit: impl Fn(&str, &mut Value)) -> String {
    let mut text = json!({
        "schema": "olm.package", "name": "anvil", "defaultChannel": "stable",
    })
    .to_string();
    let mut before = Value::Null;
    let mut entries = Vec::new();
    for version in versions {
        let name = format!("anvil.v{version}");
        entries.push(json!({"name": name, "replaces": before}));
        before = name.into();
    }
    let channel =
        json!({"schema": "olm.channel", "name": "stable", "package": "anvil", "entries": entries});
    write!(text, "\n{channel}").unwrap();
    for (at, version) in versions.iter().enumerate() {
        let replaces = at.checked_sub(1).map(|index| versions[index]);
        let mut bundle = bundle(version, replaces);
        edit(version, &mut bundle);
        write!(text, "\n{bundle}").unwrap();
    }
    text
}

fn bundle(version: &str, replaces: Option<&str>) -> Value {
    let object = |object: Value| {
        let data = base64::engine::general_purpose::STANDARD.encode(object.to_string());
        json!({"type": "olm.bundle.object", "value": {"data": data}})
    };
    json!({
        "schema": "olm.bundle", "name": format!("anvil.v{version}"), "package": "anvil",
        "image": format!("example.com/anvil-bundle:v{version}"),
        "properties": [
            {"type": "olm.package", "value": {"packageName": "anvil", "version": version}},
            {"type": "olm.gvk", "value": {"group": "forge.example.com", "kind": "Anvil", "version": "v1"}},
            object(csv(version, replaces)),
            object(crd()),
            object(json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "anvil-settings"},
                "data": {"version": version},
            })),
        ],
    })
}

pub(crate) fn csv(version: &str, replaces: Option<&str>) -> Value {
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
        .map(|mode| json!({"type": mode, "supported": mode != "MultiNamespace"}));
    let mut csv = json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": format!("anvil.v{version}")},
        "spec": {
            "displayName": "Anvil", "version": version,
            "installModes": modes,
            "customresourcedefinitions": {"owned": [
                {"name": "anvils.forge.example.com", "kind": "Anvil", "version": "v1"},
            ]},
            "install": {"strategy": "deployment", "spec": {
                "permissions": [{"serviceAccountName": "anvil", "rules": [
                    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
                ]}],
                "deployments": [{"name": "anvil", "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"app": "anvil"}},
                    "template": {
                        "metadata": {"labels": {"app": "anvil"}},
                        "spec": {"serviceAccountName": "anvil", "containers": [
                            {"name": "main", "image": format!("example.com/anvil:v{version}")},
                        ]},
                    },
                }}],
            }},
        },
    });
    if let Some(replaces) = replaces {
        csv["spec"]["replaces"] = format!("anvil.v{replaces}").into();
    }
    csv
}

pub(crate) fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "anvils.forge.example.com"},
        "spec": {
            "group": "forge.example.com", "scope": "Namespaced",
            "names": {"kind": "Anvil", "listKind": "AnvilList", "plural": "anvils", "singular": "anvil"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    })
}
