//! The copied CSV controller: creates, repairs and deletes copied CSVs.

use super::decide::{
    self, CopyAction, CopyInput, Decision, Occupant, Ownership, StatusDebounce, Targets,
};
use crate::context::{Caches, Context};
use crate::copied_csv::{ContentHash, CopyTemplate, written_or_gone};
use crate::error::Error;
use crate::fields;
use mainstay_api::{OlmConfig, names, resources};
use mainstay_client::{
    Action, Cache, Cluster, DeleteOptions, EncodedBody, EventType, ObjectList, Patch, Reconciler,
    WriteResponse,
};
use mainstay_controller::{Signal, WithOperation as _, decision};
use mainstay_object::{NamespacedName, Object, builtin};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const CSV: &mainstay_object::Resource = &resources::CLUSTER_SERVICE_VERSION;
/// Reason of the Event about a CSV without copied CSVs.
pub(super) const DISABLED: &str = "DisabledCopiedCSVs";
/// How many copied CSVs are written concurrently, over all originals.
const MAX_CONCURRENT_WRITES: usize = 16;

/// The shared state of the controllers of copied CSVs and of the OLMConfig.
pub(super) struct CopiesContext {
    pub(super) context: Arc<Context>,
    /// The OLMConfig; only one object counts.
    pub(super) config: Cache<OlmConfig>,
    /// The namespaces that have copied CSVs even where the OLMConfig disables them.
    pub(super) protected: BTreeSet<String>,
    /// Sent when copied CSVs were written.
    pub(super) written: Signal,
}

/// Reconciles copied CSVs; keys are those of the originals.
pub(super) struct Controller {
    shared: Arc<CopiesContext>,
    debounce: StatusDebounce,
    /// The uids of the CSVs whose missing copies were reported.
    reported_uids: Mutex<HashSet<String>>,
    slots: Arc<Semaphore>,
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        self.reconcile_copied_csvs(key).await
    }
}

impl Controller {
    pub(super) fn new(shared: Arc<CopiesContext>) -> Self {
        Self {
            shared,
            debounce: StatusDebounce::default(),
            reported_uids: Mutex::default(),
            slots: Arc::new(Semaphore::new(MAX_CONCURRENT_WRITES)),
        }
    }

    async fn reconcile_copied_csvs(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &*self.shared.context;
        let original = original(&context.caches, key);
        let left = self.debounce.remaining(key, original.as_deref(), context.clock.elapsed());
        if let Some(csv) = original.as_deref() {
            self.report_disabled(key, csv).await?;
        }
        self.delete_lost_copies(&key.name).await?;
        let namespaces = namespaces(&context.caches);
        let decision = decide_for(&self.shared, key, &namespaces, left.is_none());
        tracing::debug!(%key, tasks = decision.actions.len(), "copied CSVs decided");
        if !decision.actions.is_empty() {
            self.apply(key, original.as_deref(), &decision, left.is_none()).await?;
            self.shared.written.send();
        }
        Ok(left.filter(|_| decision.status_deferred).map_or(Action::Done, Action::After))
    }

    async fn apply(
        &self,
        key: &NamespacedName,
        original: Option<&fields::Csv>,
        decision: &Decision,
        status_is_stable: bool,
    ) -> Result<(), Error> {
        let context = &*self.shared.context;
        let writes =
            decision.actions.values().any(|action| !matches!(action, CopyAction::Remove(_)));
        let mut requests = None;
        if let Some(csv) = original.filter(|_| writes) {
            let live = context.cluster.find(CSV, key.namespace(), &key.name).await;
            let live = live.during("reading a ClusterServiceVersion")?;
            // If the CSV was deleted or replaced, the cache triggers another reconciliation.
            let same = |object: &Object| object.uid() == csv.uid && !object.is_terminating();
            let Some(live) = live.filter(same) else { return Ok(()) };
            requests = Some(
                PreparedRequests::of(&live).during("writing a ClusterServiceVersion as JSON")?,
            );
        }
        let writer = Arc::new(CopyWriter {
            cluster: context.cluster.clone(),
            name: Arc::clone(&key.name),
            status_is_stable,
            requests,
        });
        let mut running = JoinSet::new();
        for (namespace, action) in &decision.actions {
            let (writer, slots) = (Arc::clone(&writer), Arc::clone(&self.slots));
            let (namespace, action) = (Arc::clone(namespace), action.clone());
            running.spawn(async move {
                // The semaphore is never closed.
                let _slot = slots.acquire_owned().await;
                writer.apply(&namespace, &action).await
            });
        }
        let (mut latest, mut outcome) = (None, Ok(()));
        while let Some(done) = running.join_next().await {
            match done? {
                Ok(revision) => latest = latest.max(revision),
                Err(error) => outcome = Err(error),
            }
        }
        // The next reconciliation must see these writes.
        let copies = &context.caches.copied_csvs;
        if let Some(latest) = latest {
            copies.wait_for_revision(&latest.to_string()).await;
        }
        let gone = |(namespace, action): (&Arc<str>, &CopyAction)| {
            let CopyAction::Remove(uid) = action else { return true };
            let at = NamespacedName::new(Arc::clone(namespace), Arc::clone(&key.name));
            copies.get(&at).is_none_or(|copy| copy.uid != *uid || copy.deleting)
        };
        if outcome.is_ok() {
            let gone_for =
                decision.actions.values().filter(|action| matches!(action, CopyAction::Remove(_)));
            let removed = gone_for.count();
            let written = decision.actions.len() - removed;
            let why = match original {
                Some(_) => "its group's targets, and the OLMConfig",
                None => "there is no original",
            };
            let done = format!("copies: {written} written, {removed} removed");
            decision::log(&CSV.kind, key, done, why);
            copies.until(|| decision.actions.iter().all(gone)).await;
        }
        outcome
    }

    /// Deletes copied CSVs that lost their label, recognized by their status, if no original wants
    /// one in their namespace. No other reconciliation would delete them.
    async fn delete_lost_copies(&self, name: &str) -> Result<(), Error> {
        let cluster = &self.shared.context.cluster;
        for (at, uid) in lost_copies(&self.shared, name) {
            let options = DeleteOptions::uid(uid);
            let done = cluster.ensure_deleted(CSV, at.namespace(), &at.name, &options).await;
            done.during("deleting the copied CSV of a deleted ClusterServiceVersion")?;
        }
        Ok(())
    }

    /// Publishes an Event about a CSV whose copied CSVs are disabled. It is published once, even
    /// after a restart.
    async fn report_disabled(&self, key: &NamespacedName, csv: &fields::Csv) -> Result<(), Error> {
        let context = &*self.shared.context;
        if !is_disabled(&self.shared.config) {
            self.reported_uids.lock().remove(&csv.uid);
            return Ok(());
        }
        let concerned =
            decide::targets(csv) == Targets::All && decide::is_active(csv) && !csv.deleting;
        if !concerned || self.reported_uids.lock().contains(&csv.uid) {
            return Ok(());
        }
        let fields = format!("involvedObject.uid={},reason={DISABLED}", csv.uid);
        let found = context
            .cluster
            .list(&builtin::EVENT, key.namespace(), &ObjectList::fields(fields))
            .await;
        if found.during("looking for an Event")?.items.is_empty() {
            let mut about = Object::new(&CSV.gvk(), &key.name);
            about.set(&["metadata", "namespace"], (*key.namespace).into());
            about.set(&["metadata", "uid"], csv.uid.as_str().into());
            let message = format!("CSV copying disabled for {}/{}", key.namespace, key.name);
            context.recorder.publish(&about, EventType::Warning, DISABLED, message);
        }
        self.reported_uids.lock().insert(csv.uid.clone());
        Ok(())
    }
}

/// The CSV of a key, if it is an original.
pub(super) fn original(caches: &Caches, key: &NamespacedName) -> Option<Arc<fields::Csv>> {
    caches.csvs.get(key).filter(|csv| !csv.is_copy())
}

/// Whether copied CSVs of global operators are disabled.
pub(super) fn is_disabled(config: &Cache<OlmConfig>) -> bool {
    let config = config.get(&NamespacedName::cluster(names::OLM_CONFIG));
    let features = config.as_ref().and_then(|config| config.spec.features.as_ref());
    features.and_then(|features| features.disable_copied_csvs).unwrap_or_default()
}

/// The namespaces without terminating ones.
pub(super) fn namespaces(caches: &Caches) -> BTreeSet<Arc<str>> {
    let all = caches.namespaces.list(None);
    all.into_iter().filter(|(_, namespace)| !namespace.deleting).map(|(key, _)| key.name).collect()
}

/// Decides about the copied CSVs of a CSV.
pub(super) fn decide_for(
    shared: &CopiesContext,
    key: &NamespacedName,
    namespaces: &BTreeSet<Arc<str>>,
    status_is_stable: bool,
) -> Decision {
    let caches = &shared.context.caches;
    let original = original(caches, key);
    let in_existing_group = original.as_deref().is_some_and(|csv| group_exists(caches, key, csv));
    decide::decide(&CopyInput {
        key,
        original: original.as_deref(),
        in_existing_group,
        disabled: is_disabled(&shared.config),
        protected: &shared.protected,
        status_is_stable,
        namespaces,
        occupants: &occupants(caches, key),
    })
}

/// Copied CSVs of this name that lost their label and that no original wants in their namespace,
/// with their uids.
fn lost_copies(shared: &CopiesContext, name: &str) -> Vec<(NamespacedName, String)> {
    let caches = &shared.context.caches;
    let named = caches.csvs.list(None).into_iter().filter(|(key, _)| *key.name == *name);
    let (copies, originals): (Vec<_>, Vec<_>) = named.partition(|(_, csv)| csv.is_copy());
    let wanted = |copy: &NamespacedName| {
        originals.iter().any(|(key, csv)| {
            let disabled = decide::targets(csv) == Targets::All
                && is_disabled(&shared.config)
                && !shared.protected.contains(&*copy.namespace);
            let member = !csv.deleting && !disabled && group_exists(caches, key, csv);
            member && decide::targets(csv).contain(&copy.namespace)
        })
    };
    let orphans = copies.into_iter().filter(|(key, copy)| !copy.deleting && !wanted(key));
    orphans.map(|(key, copy)| (key, copy.uid.clone())).collect()
}

/// Whether the OperatorGroup of a CSV exists.
fn group_exists(caches: &Caches, key: &NamespacedName, csv: &fields::Csv) -> bool {
    let group = csv.membership[0].as_deref().unwrap_or_default();
    let group = caches.operator_groups.get(&NamespacedName::new(Arc::clone(&key.namespace), group));
    group.is_some_and(|group| group.metadata.deletion_timestamp.is_none())
}

/// The CSVs with the name of a CSV in other namespaces.
fn occupants(caches: &Caches, key: &NamespacedName) -> BTreeMap<Arc<str>, Occupant> {
    let wants = |from: &str, namespace: &str| {
        let other = NamespacedName::new(from, Arc::clone(&key.name));
        original(caches, &other)
            .is_some_and(|csv| !csv.deleting && decide::targets(&csv).contain(namespace))
    };
    let mut occupants = BTreeMap::new();
    for (at, copied) in caches.copied_csvs.indexed(&key.name) {
        let ownership = if *copied.from == *key.namespace {
            Ownership::Ours
        } else if wants(&copied.from, &at.namespace) {
            Ownership::Others
        } else {
            Ownership::Unclaimed
        };
        let (uid, deleting, content) = (copied.uid.clone(), copied.deleting, copied.content);
        let marked = ownership == Ownership::Ours;
        occupants.insert(at.namespace, Occupant { uid, ownership, marked, deleting, content });
    }
    for (at, csv) in caches.csvs.list(None) {
        if at.name != key.name || at.namespace == key.namespace {
            continue;
        }
        // A copied CSV without its label is recognized by its status and annotations.
        let ownership = match csv.membership[1].as_deref() {
            _ if !csv.is_copy() => Ownership::Others,
            Some(from) if *from == *key.namespace => Ownership::Ours,
            _ => Ownership::Unclaimed,
        };
        let (uid, deleting) = (csv.uid.clone(), csv.deleting);
        let content = ContentHash::default();
        occupants
            .insert(at.namespace, Occupant { uid, ownership, marked: false, deleting, content });
    }
    occupants
}

/// The request bodies for the copied CSVs of an original, serialized once.
struct PreparedRequests {
    template: CopyTemplate,
    copy: EncodedBody,
    body: EncodedBody,
    status: EncodedBody,
}

impl PreparedRequests {
    fn of(original: &Object) -> mainstay_client::Result<Self> {
        let template = CopyTemplate::of(original);
        let from = original.namespace();
        // The test fails if the object is no longer our copied CSV.
        let mark = json!({"op": "test", "path": "/metadata/labels/olm.copiedFrom", "value": from});
        let status = json!([mark, {"op": "add", "path": "/status", "value": template.status}]);
        Ok(Self {
            copy: EncodedBody::object(&template.object(original))?,
            body: EncodedBody::patch(&Patch::Json(repair_patch(&mark, &template)))?,
            status: EncodedBody::patch(&Patch::Json(status))?,
            template,
        })
    }
}

/// The patch that repairs a copied CSV, if a test holds.
fn repair_patch(test: &Value, template: &CopyTemplate) -> Value {
    json!([
        test,
        {"op": "add", "path": "/metadata/labels", "value": template.labels},
        {"op": "add", "path": "/metadata/annotations", "value": template.annotations},
        {"op": "add", "path": "/spec", "value": template.spec},
    ])
}

/// Writes the copied CSVs of one original.
struct CopyWriter {
    cluster: Cluster,
    name: Arc<str>,
    status_is_stable: bool,
    requests: Option<PreparedRequests>,
}

impl CopyWriter {
    /// Performs an action and returns the resource version of its result. A conflict that the
    /// caches will show is not an error.
    async fn apply(&self, namespace: &Arc<str>, action: &CopyAction) -> Result<Option<u64>, Error> {
        let at = Some(&**namespace);
        match (action, &self.requests) {
            (CopyAction::Remove(uid), _) => {
                let options = DeleteOptions::uid(uid.as_str());
                let done = self.cluster.ensure_deleted(CSV, at, &self.name, &options).await;
                done.during("deleting a copied CSV")?;
                Ok(None)
            }
            (_, None) => Ok(None),
            (CopyAction::Create, Some(requests)) => {
                let created = self.cluster.create_prepared(CSV, at, &requests.copy).await;
                let created = written_or_gone(created).during("creating a copied CSV")?;
                let Some(created) = created else { return Ok(None) };
                if !self.status_is_stable {
                    return Ok(revision(&created));
                }
                self.write_status(requests, namespace).await
            }
            (CopyAction::Repair { uid, marked, body, status }, Some(requests)) => {
                let mut written = None;
                if *body {
                    let patch = if *marked {
                        requests.body.clone()
                    } else {
                        let test = json!({"op": "test", "path": "/metadata/uid", "value": uid});
                        EncodedBody::patch(&Patch::Json(repair_patch(&test, &requests.template)))
                            .during("writing a ClusterServiceVersion as JSON")?
                    };
                    let done = self.cluster.patch_prepared(CSV, at, &self.name, None, &patch).await;
                    let done = written_or_gone(done).during("updating a copied CSV")?;
                    let Some(done) = done else { return Ok(None) };
                    written = revision(&done);
                }
                if *status {
                    written = written.max(self.write_status(requests, namespace).await?);
                }
                Ok(written)
            }
        }
    }

    async fn write_status(
        &self,
        requests: &PreparedRequests,
        namespace: &str,
    ) -> Result<Option<u64>, Error> {
        let (at, subresource) = (Some(namespace), Some("status"));
        let done =
            self.cluster.patch_prepared(CSV, at, &self.name, subresource, &requests.status).await;
        let done = written_or_gone(done).during("writing the status of a copied CSV")?;
        Ok(done.as_ref().and_then(revision))
    }
}

fn revision(written: &WriteResponse) -> Option<u64> {
    written.resource_version.parse().ok()
}

/// How long copied CSVs may be missing or superfluous before the OLMConfig says so.
pub(super) const INCOMPLETE_DELAY: Duration = Duration::from_secs(1);
