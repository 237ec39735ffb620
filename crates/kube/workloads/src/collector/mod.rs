//! The garbage collector: deletes objects whose owners are gone.
//!
//! ```text
//! discovery + CRDs ─► one metadata cache for each kind ─► Graph ─► items ─► live object ─► verdict
//! ```
//!
//! The graph only says which objects to check. Before it deletes anything, the collector reads the
//! object live, and the owners that the graph does not know; the deletion carries uid and revision.
//! Custom kinds come and go with their CRDs. Events are not collected; the server lets them expire.

mod action;
mod graph;

use crate::Started;
use crate::common::{Context, is_object_gone};
use action::{CollectorAction, Dependents, Standing, decide};
use futures::future::{BoxFuture, FutureExt, join_all};
use graph::{FOREGROUND, Graph, Item, Node, ORPHAN};
use mainstay_client::{
    Action, ApiResource, Backoff, Cache, Controller, DeleteOptions, Error, Patch, Propagation,
    Queue, Reconciler, Selection,
};
use mainstay_object::{Object, OwnerReference, Resource, Scope, Status, builtin};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

type RemovalListener = Box<dyn Fn(&str) + Send + Sync>;

/// The handle of the running collector for other controllers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Collector {
    shared: Arc<Shared>,
}

struct Shared {
    graph: Mutex<Graph>,
    /// Kinds by group and kind, to find owners; any served version does.
    kinds: RwLock<FxHashMap<(String, String), Arc<Resource>>>,
    removal_listeners: RwLock<Vec<RemovalListener>>,
}

impl Collector {
    /// Calls `notify` with the namespace of every object that is gone.
    pub(crate) fn on_removal(&self, notify: impl Fn(&str) + Send + Sync + 'static) {
        self.shared.removal_listeners.write().push(Box::new(notify));
    }
}

/// How the objects of a CRD are addressed. None until the CRD is established.
#[derive(Clone, Debug, PartialEq)]
struct CustomKind(Option<Resource>);

impl CustomKind {
    fn of(crd: &Object) -> Self {
        if crd.condition("Established") != Some("True") {
            return Self(None);
        }
        let text = |path: &[&str]| crd.str(path).unwrap_or_default().to_owned();
        let versions = crd.array(&["spec", "versions"]);
        let is = |version: &Value, field: &str| {
            version.get(field).and_then(Value::as_bool) == Some(true)
        };
        let version = versions
            .iter()
            .find(|version| is(version, "served") && is(version, "storage"))
            .or_else(|| versions.iter().find(|version| is(version, "served")))
            .and_then(|version| version.get("name"))
            .and_then(Value::as_str);
        let scope = match crd.str(&["spec", "scope"]) {
            Some("Namespaced") => Scope::Namespaced,
            _ => Scope::Cluster,
        };
        Self(version.map(|version| {
            Resource::new(
                text(&["spec", "group"]),
                version,
                text(&["spec", "names", "kind"]),
                text(&["spec", "names", "plural"]),
                scope,
            )
        }))
    }
}

/// A CRD by name, and how its objects are addressed now.
type KindChange = (Arc<str>, Option<Resource>);

/// Starts the collector.
pub(crate) fn start(context: &Context, started: &mut Started) -> Collector {
    let shared = Arc::new(Shared {
        graph: Mutex::new(Graph::default()),
        kinds: RwLock::new(FxHashMap::default()),
        removal_listeners: RwLock::new(Vec::new()),
    });
    let controller = Controller::new("collector");
    let (changes, inbox) = mpsc::unbounded_channel::<KindChange>();
    let crds = Cache::builder(Selection::all(builtin::CUSTOM_RESOURCE_DEFINITION), |crd| {
        Some(CustomKind::of(crd))
    })
    .subscribe(move |change| {
        let resource = change.after.and_then(|kind| kind.0.clone());
        // The receiver lives as long as the collector.
        let _ = changes.send((Arc::clone(&change.key.name), resource));
    })
    .start(&context.cluster, context.stop.clone());
    let (complete, completed) = tokio::sync::oneshot::channel();
    let monitors = Monitors {
        context: context.clone(),
        shared: Arc::clone(&shared),
        queue: controller.queue(),
        custom: FxHashMap::default(),
    };
    let stop = context.stop.clone();
    started.background(tokio::spawn(async move {
        stop.run_until_cancelled(monitors.run(crds, inbox, complete)).await;
    }));
    let reconciler = Reconcile { context: context.clone(), shared: Arc::clone(&shared) };
    // The collector deletes nothing before the graph has been complete once.
    let ready = async move {
        let _ = completed.await;
    };
    started.controller(controller.after(ready).start(reconciler, context.stop.clone()));
    Collector { shared }
}

/// The caches that feed the graph. One task owns them.
struct Monitors {
    context: Context,
    shared: Arc<Shared>,
    queue: Queue<Item>,
    /// Caches of custom kinds by the name of their CRD, each with its own cancellation token.
    custom: FxHashMap<Arc<str>, (Resource, Cache<Node>, CancellationToken)>,
}

impl Monitors {
    async fn run(
        mut self,
        crds: Cache<CustomKind>,
        mut inbox: mpsc::UnboundedReceiver<KindChange>,
        complete: tokio::sync::oneshot::Sender<()>,
    ) {
        crds.synced().await;
        let builtin = self.discover(&crds).await;
        let mut synced: Vec<BoxFuture<'static, ()>> = Vec::new();
        let mut caches = Vec::new();
        for api in builtin {
            let cache = self.follow(&api.resource, self.context.stop.clone());
            synced.push(wait_for(&cache));
            caches.push(cache);
        }
        while let Ok((name, resource)) = inbox.try_recv() {
            self.change(name, resource);
        }
        // A kind whose CRD is going away must not delay the others.
        synced.extend(self.custom.values().map(|(_, cache, stop)| {
            let (cache, stop) = (wait_for(cache), stop.clone());
            async move {
                stop.run_until_cancelled(cache).await;
            }
            .boxed()
        }));
        join_all(synced).await;
        // The receiver is gone only at shutdown.
        let _ = complete.send(());
        while let Some((name, resource)) = inbox.recv().await {
            self.change(name, resource);
        }
    }

    /// Discovers every kind that can be collected and that no CRD defines.
    async fn discover(&self, crds: &Cache<CustomKind>) -> Vec<ApiResource> {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(30));
        loop {
            match self.context.cluster.resources().await {
                Ok(found) => {
                    return found
                        .resources
                        .into_iter()
                        .filter(|api| {
                            let name = api.resource.group_resource();
                            api.preferred
                                && ["list", "watch", "delete"].iter().all(|verb| api.can(verb))
                                && api.resource.kind != "Event"
                                && crds
                                    .get(&mainstay_object::NamespacedName::cluster(name))
                                    .is_none()
                        })
                        .collect();
                }
                Err(error) => {
                    let wait = backoff.fail();
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        ?wait,
                        "cannot discover what to collect, trying again"
                    );
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    fn change(&mut self, crd: Arc<str>, resource: Option<Resource>) {
        if let Some((followed_resource, cache, stop)) = self.custom.get(&crd) {
            if resource.as_ref() == Some(followed_resource) {
                return;
            }
            stop.cancel();
            // A kind that is not served has no objects: owners that wait for its objects are free.
            for (_, node) in cache.list(None) {
                forget(&self.shared, &self.queue, &node);
            }
            self.custom.remove(&crd);
        }
        if let Some(resource) = resource {
            let stop = self.context.stop.child_token();
            let cache = self.follow(&resource, stop.clone());
            self.custom.insert(crd, (resource, cache, stop));
        }
    }

    fn follow(&self, resource: &Resource, stop: CancellationToken) -> Cache<Node> {
        let resource = Arc::new(resource.clone());
        let kind = (resource.group.clone().into_owned(), resource.kind.clone().into_owned());
        self.shared.kinds.write().insert(kind, Arc::clone(&resource));
        let (shared, queue, end) = (Arc::clone(&self.shared), self.queue.clone(), stop.clone());
        let selection = Selection::all(resource.as_ref().clone()).metadata_only();
        Cache::builder(selection, move |object| Some(Node::of(&resource, object)))
            .subscribe(move |change| {
                match (change.before, change.after) {
                    // The object was deleted and created again between two lists.
                    (Some(before), Some(after)) if before.item.uid != after.item.uid => {
                        forget(&shared, &queue, before);
                    }
                    (Some(before), None) => forget(&shared, &queue, before),
                    _ => {}
                }
                if let Some(after) = change.after {
                    let mut graph = shared.graph.lock();
                    // After its kind has ended, an object must not get back into the graph.
                    if end.is_cancelled() {
                        return;
                    }
                    let to_check = graph.put(after);
                    drop(graph);
                    for item in to_check {
                        queue.add(item);
                    }
                }
            })
            .start(&self.context.cluster, stop)
    }
}

fn wait_for(cache: &Cache<Node>) -> BoxFuture<'static, ()> {
    let cache = cache.clone();
    async move { cache.synced().await }.boxed()
}

fn forget(shared: &Shared, queue: &Queue<Item>, node: &Node) {
    let to_check = shared.graph.lock().remove(&node.item.uid);
    for item in to_check {
        queue.add(item);
    }
    if let Some(namespace) = node.item.key.namespace() {
        for notify in shared.removal_listeners.read().iter() {
            notify(namespace);
        }
    }
}

struct Reconcile {
    context: Context,
    shared: Arc<Shared>,
}

impl Reconciler for Reconcile {
    type Key = Item;
    type Error = Error;

    async fn reconcile(&self, item: &Item) -> Result<Action, Error> {
        let outcome = self.check(item).await;
        match outcome {
            Err(error) if is_object_gone(&error) => Ok(Action::Done),
            other => other.map(|()| Action::Done),
        }
    }
}

impl Reconcile {
    async fn check(&self, item: &Item) -> Result<(), Error> {
        let (node, dependents) = {
            let graph = self.shared.graph.lock();
            let Some(node) = graph.get(&item.uid).cloned() else { return Ok(()) };
            (node, graph.dependents(&item.uid))
        };
        if node.orphan {
            return self.orphan(&node, &dependents).await;
        }
        if node.foreground {
            return self.release(&node, &dependents).await;
        }
        if node.terminating || node.owners.is_empty() {
            return Ok(());
        }
        let dependents = if dependents.iter().any(|dependent| dependent.foreground) {
            Dependents::Waiting
        } else if dependents.is_empty() {
            Dependents::None
        } else {
            Dependents::Some
        };
        self.apply_action(item, dependents).await
    }

    /// The live object of an item; none if it is gone or another object has its name.
    async fn live(&self, item: &Item) -> Result<Option<Object>, Error> {
        let found =
            self.context.cluster.find(&item.resource, item.key.namespace(), &item.key.name).await?;
        Ok(found.filter(|live| live.uid() == &*item.uid))
    }

    async fn apply_action(&self, item: &Item, dependents: Dependents) -> Result<(), Error> {
        let Some(live) = self.live(item).await? else { return Ok(()) };
        if live.is_terminating() {
            return Ok(());
        }
        let mut owners = Vec::new();
        for owner in live.owner_references() {
            self.report_owner_in_other_namespace(item, &live, &owner);
            let standing = self.standing(item, &owner).await?;
            owners.push((owner, standing));
        }
        match decide(&live, &owners, dependents) {
            CollectorAction::Keep => {}
            CollectorAction::DropOwners(dangling_uids) => {
                self.drop_owners(item, &live, &dangling_uids).await?;
            }
            CollectorAction::DeleteUnblocked => {
                self.unblock(item, &live).await?;
                // Clearing the field gave the object another revision: only its uid is a
                // precondition.
                let options = DeleteOptions::uid(live.uid()).propagation(Propagation::Foreground);
                let namespace = item.key.namespace();
                self.context
                    .cluster
                    .delete(&item.resource, namespace, &item.key.name, &options)
                    .await?;
            }
            CollectorAction::Delete(propagation) => {
                let options = DeleteOptions::exactly(&live).propagation(propagation);
                let namespace = item.key.namespace();
                self.context
                    .cluster
                    .delete(&item.resource, namespace, &item.key.name, &options)
                    .await?;
            }
        }
        Ok(())
    }

    /// Emits an event that an owner is in another namespace, because the author of the reference
    /// expects the owner to be found.
    fn report_owner_in_other_namespace(&self, item: &Item, live: &Object, owner: &OwnerReference) {
        let Some(namespace) = item.key.namespace() else { return };
        let owner_node = self.shared.graph.lock().get(&owner.uid).cloned();
        let is_elsewhere = owner_node
            .as_ref()
            .and_then(|owner_node| owner_node.item.key.namespace())
            .is_some_and(|other| other != namespace);
        if is_elsewhere {
            let OwnerReference { api_version, kind, name, uid, .. } = owner;
            let message = format!(
                "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not exist in namespace {namespace:?}"
            );
            self.context.report_warning(live, "OwnerRefInvalidNamespace", message);
        }
    }

    async fn standing(&self, item: &Item, owner: &OwnerReference) -> Result<Standing, Error> {
        let owner_node = self.shared.graph.lock().get(&owner.uid).cloned();
        let standing_of = |owner_node: &Node| {
            if owner_node.foreground { Standing::Waiting } else { Standing::Solid }
        };
        if let Some(owner_node) =
            owner_node.as_deref().filter(|owner_node| owner_node.is_named_by(owner, item))
        {
            return Ok(standing_of(owner_node));
        }
        let (group, _) = owner.api_version.split_once('/').unwrap_or_default();
        let kind = (group.to_owned(), owner.kind.clone());
        let resource = self.shared.kinds.read().get(&kind).cloned();
        let Some(resource) = resource else {
            return match owner_node.as_deref() {
                // A misspelt kind (OLM itself writes `customresourcedefinition`) cannot be looked
                // up. An object with this uid exists, and the collector deletes nothing when in
                // doubt.
                Some(owner_node) => Ok(standing_of(owner_node)),
                None => self.unknown_kind(owner).await,
            };
        };
        let namespace = item.key.namespace();
        if resource.is_namespaced() && namespace.is_none() {
            // A namespaced object cannot own a cluster-scoped one: such a reference is ignored, and
            // nothing is deleted because of it.
            return Ok(Standing::Solid);
        }
        let live_owner = self.context.cluster.find(&resource, namespace, &owner.name).await?;
        Ok(match live_owner {
            Some(live_owner) if live_owner.uid() == owner.uid => {
                let waits = live_owner.is_terminating()
                    && live_owner.finalizers().any(|finalizer| finalizer == FOREGROUND);
                if waits { Standing::Waiting } else { Standing::Solid }
            }
            _ => Standing::Dangling,
        })
    }

    /// The standing of an owner whose kind no cache follows: discovery did not list the kind, or
    /// nobody serves it.
    async fn unknown_kind(&self, owner: &OwnerReference) -> Result<Standing, Error> {
        let gvk = mainstay_object::Gvk::from_api_version(&owner.api_version, owner.kind.as_str());
        Ok(match self.context.cluster.resource_of(&gvk).await? {
            // Without a watch on the owner's kind its absence goes unnoticed, so the object stays.
            Some(_) => Standing::Solid,
            None if self.shared.graph.lock().was_removed(&owner.uid) => Standing::Dangling,
            // The kind may be served again: the object is checked until it is, and nothing is
            // deleted.
            None => {
                let OwnerReference { api_version, kind, .. } = owner;
                let message = format!("no matches for kind {kind:?} in version {api_version:?}");
                return Err(Error::Status(Status::internal(message)));
            }
        })
    }

    async fn drop_owners(
        &self,
        item: &Item,
        live: &Object,
        dangling_uids: &[String],
    ) -> Result<(), Error> {
        let remaining: Vec<&Value> = live
            .array(&["metadata", "ownerReferences"])
            .iter()
            .filter(|entry| {
                let uid = entry.get("uid").and_then(Value::as_str);
                !dangling_uids.iter().any(|dangling_uid| Some(dangling_uid.as_str()) == uid)
            })
            .collect();
        self.patch_metadata(item, live, "ownerReferences", json!(remaining)).await
    }

    /// Clears `blockOwnerDeletion` in the owner references of an object.
    async fn unblock(&self, item: &Item, live: &Object) -> Result<(), Error> {
        let mut owners = live.array(&["metadata", "ownerReferences"]).to_vec();
        for owner in owners.iter_mut().filter_map(Value::as_object_mut) {
            if owner.get("blockOwnerDeletion") == Some(&Value::Bool(true)) {
                owner.insert("blockOwnerDeletion".to_owned(), false.into());
            }
        }
        self.patch_metadata(item, live, "ownerReferences", owners.into()).await
    }

    /// Removes the references to an owner that is being deleted from its dependents, then removes
    /// the owner's finalizer.
    async fn orphan(&self, node: &Node, dependents: &[Arc<Node>]) -> Result<(), Error> {
        for dependent in dependents {
            if let Some(live) = self.live(&dependent.item).await? {
                let dangling_uids = [node.item.uid.as_ref().to_owned()];
                match self.drop_owners(&dependent.item, &live, &dangling_uids).await {
                    Err(error) if is_object_gone(&error) => {}
                    other => other?,
                }
            }
        }
        self.remove_finalizer(&node.item, ORPHAN).await
    }

    /// Removes the finalizer of an owner that waits for its dependents, once none of them blocks
    /// it.
    async fn release(&self, node: &Node, dependents: &[Arc<Node>]) -> Result<(), Error> {
        let blocks = |dependent: &&Arc<Node>| {
            dependent.owners.iter().any(|owner| {
                owner.uid == *node.item.uid && owner.block_owner_deletion == Some(true)
            })
        };
        // Dependents are items of their own; the last one that is removed brings this owner back.
        if dependents.iter().any(|dependent| blocks(&dependent)) {
            return Ok(());
        }
        self.remove_finalizer(&node.item, FOREGROUND).await
    }

    async fn remove_finalizer(&self, item: &Item, name: &str) -> Result<(), Error> {
        let Some(live) = self.live(item).await? else { return Ok(()) };
        if !live.finalizers().any(|finalizer| finalizer == name) {
            return Ok(());
        }
        let remaining: Vec<&str> =
            live.finalizers().filter(|finalizer| *finalizer != name).collect();
        self.patch_metadata(item, &live, "finalizers", json!(remaining)).await
    }

    async fn patch_metadata(
        &self,
        item: &Item,
        live: &Object,
        field: &str,
        value: Value,
    ) -> Result<(), Error> {
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": live.resource_version(), field: value},
        }));
        let namespace = item.key.namespace();
        self.context.cluster.patch(&item.resource, namespace, &item.key.name, &patch).await?;
        Ok(())
    }
}
