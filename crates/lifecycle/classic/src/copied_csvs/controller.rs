//! Carries out what was decided about copies.

use super::decide::{self, Decision, Passing, Place, Targets, Task, Whose, World};
use crate::context::{Caches, Context};
use crate::copied_csv::{Content, Prototype, written_if_possible};
use crate::error::Error;
use crate::fields;
use mainstay_api::{OlmConfig, names, resources};
use mainstay_client::{
    Action, Cache, Cluster, DeleteOptions, EventType, ListParams, Patch, Prepared, Reconciler,
    Written,
};
use mainstay_controller::{Operation as _, Signal, decision};
use mainstay_object::{NamespacedName, Object, known};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

const CSV: &mainstay_object::Resource = &resources::CLUSTER_SERVICE_VERSION;
/// Reason of the event that says that a version has no copies.
pub(super) const DISABLED: &str = "DisabledCopiedCSVs";
/// How many copies are written at the same time, of all versions together.
const AT_ONCE: usize = 16;

/// What the controllers of copies and of the `OLMConfig` share.
pub(super) struct CopiesContext {
    pub(super) context: Arc<Context>,
    /// Settings; only one object counts.
    pub(super) config: Cache<OlmConfig>,
    /// The namespaces that have copies also where copies are switched off.
    pub(super) protected: BTreeSet<String>,
    /// Sent when copies of a ClusterServiceVersion were written.
    pub(super) written: Signal,
}

/// Reconciles the copies of versions; keys are those of the originals.
pub(super) struct Controller {
    shared: Arc<CopiesContext>,
    passing: Passing,
    /// Uids of the versions of which it was told that they have no copies.
    told: Mutex<HashSet<String>>,
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
            passing: Passing::default(),
            told: Mutex::default(),
            slots: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }

    async fn reconcile_copied_csvs(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &*self.shared.context;
        let original = original(&context.caches, key);
        let left = self.passing.left(key, original.as_deref(), context.clock.elapsed());
        if let Some(csv) = original.as_deref() {
            self.tell(key, csv).await?;
        }
        self.forget_lost(&key.name).await?;
        let namespaces = namespaces(&context.caches);
        let decision = decided(&self.shared, key, &namespaces, left.is_none());
        tracing::debug!(%key, tasks = decision.tasks.len(), "copies");
        if !decision.tasks.is_empty() {
            self.carry_out(key, original.as_deref(), &decision, left.is_none()).await?;
            self.shared.written.send();
        }
        Ok(left.filter(|_| decision.later).map_or(Action::Done, Action::After))
    }

    async fn carry_out(
        &self,
        key: &NamespacedName,
        original: Option<&fields::Csv>,
        decision: &Decision,
        settled: bool,
    ) -> Result<(), Error> {
        let context = &*self.shared.context;
        let writes = decision.tasks.values().any(|task| !matches!(task, Task::Remove(_)));
        let mut text = None;
        if let Some(csv) = original.filter(|_| writes) {
            let live = context.cluster.find(CSV, key.namespace(), &key.name).await;
            let live = live.during("reading a version")?;
            // Another one by now, or gone: the cache will tell.
            let same = |object: &Object| object.uid() == csv.uid && !object.is_terminating();
            let Some(live) = live.filter(same) else { return Ok(()) };
            text = Some(Text::of(&live).during("writing a version as JSON")?);
        }
        let work = Arc::new(Work {
            cluster: context.cluster.clone(),
            name: Arc::clone(&key.name),
            settled,
            text,
        });
        let mut running = JoinSet::new();
        for (place, task) in &decision.tasks {
            let (work, slots) = (Arc::clone(&work), Arc::clone(&self.slots));
            let (place, task) = (Arc::clone(place), task.clone());
            running.spawn(async move {
                // The semaphore is never closed.
                let _slot = slots.acquire_owned().await;
                work.carry_out(&place, &task).await
            });
        }
        let (mut latest, mut outcome) = (None, Ok(()));
        while let Some(done) = running.join_next().await {
            match done? {
                Ok(revision) => latest = latest.max(revision),
                Err(error) => outcome = Err(error),
            }
        }
        // The next look is to see what was just written.
        let copies = &context.caches.copies;
        if let Some(latest) = latest {
            copies.seen(&latest.to_string()).await;
        }
        let gone = |(place, task): (&Arc<str>, &Task)| {
            let Task::Remove(uid) = task else { return true };
            let at = NamespacedName::new(Arc::clone(place), Arc::clone(&key.name));
            copies.get(&at).is_none_or(|copy| copy.uid != *uid || copy.deleting)
        };
        if outcome.is_ok() {
            let gone_for = decision.tasks.values().filter(|task| matches!(task, Task::Remove(_)));
            let removed = gone_for.count();
            let written = decision.tasks.len() - removed;
            let why = match original {
                Some(_) => "its group's targets, and the OLMConfig",
                None => "there is no original",
            };
            let done = format!("copies: {written} written, {removed} removed");
            decision::log(&CSV.kind, key, done, why);
            copies.until(|| decision.tasks.iter().all(gone)).await;
        }
        outcome
    }

    /// Removes what was a copy, by its status, and says no more of what: if nobody wants a copy in its
    /// place, nobody would ever look at it again.
    async fn forget_lost(&self, name: &str) -> Result<(), Error> {
        let cluster = &self.shared.context.cluster;
        for (at, uid) in lost(&self.shared, name) {
            let options = DeleteOptions::uid(uid);
            let done = cluster.ensure_deleted(CSV, at.namespace(), &at.name, &options).await;
            done.during("removing a copy of a version that is gone")?;
        }
        Ok(())
    }

    /// Tells of a version that has no copies because they are switched off; once, however often it is
    /// looked at and whoever told it.
    async fn tell(&self, key: &NamespacedName, csv: &fields::Csv) -> Result<(), Error> {
        let context = &*self.shared.context;
        if !is_disabled(&self.shared.config) {
            self.told.lock().remove(&csv.uid);
            return Ok(());
        }
        let concerned =
            decide::targets(csv) == Targets::All && decide::is_active(csv) && !csv.deleting;
        if !concerned || self.told.lock().contains(&csv.uid) {
            return Ok(());
        }
        let fields = format!("involvedObject.uid={},reason={DISABLED}", csv.uid);
        let found =
            context.cluster.list(&known::EVENT, key.namespace(), &ListParams::fields(fields)).await;
        if found.during("looking for an event")?.items.is_empty() {
            let mut about = Object::new(&CSV.gvk(), &key.name);
            about.set(&["metadata", "namespace"], (*key.namespace).into());
            about.set(&["metadata", "uid"], csv.uid.as_str().into());
            let message = format!("CSV copying disabled for {}/{}", key.namespace, key.name);
            context.recorder.publish(&about, EventType::Warning, DISABLED, message);
        }
        self.told.lock().insert(csv.uid.clone());
        Ok(())
    }
}

/// The version of a key, if it is an original.
pub(super) fn original(caches: &Caches, key: &NamespacedName) -> Option<Arc<fields::Csv>> {
    caches.csvs.get(key).filter(|csv| !csv.is_copy())
}

/// Whether copies of what watches all namespaces are switched off.
pub(super) fn is_disabled(config: &Cache<OlmConfig>) -> bool {
    let config = config.get(&NamespacedName::cluster(names::OLM_CONFIG));
    let features = config.as_ref().and_then(|config| config.spec.features.as_ref());
    features.and_then(|features| features.disable_copied_csvs).unwrap_or_default()
}

/// The namespaces that exist and stay.
pub(super) fn namespaces(caches: &Caches) -> BTreeSet<Arc<str>> {
    let all = caches.namespaces.list(None);
    all.into_iter().filter(|(_, namespace)| !namespace.deleting).map(|(key, _)| key.name).collect()
}

/// What is to be done for the copies of a version.
pub(super) fn decided(
    shared: &CopiesContext,
    key: &NamespacedName,
    namespaces: &BTreeSet<Arc<str>>,
    settled: bool,
) -> Decision {
    let caches = &shared.context.caches;
    let original = original(caches, key);
    let grouped = original.as_deref().is_some_and(|csv| is_grouped(caches, key, csv));
    decide::decide(&World {
        key,
        original: original.as_deref(),
        grouped,
        disabled: is_disabled(&shared.config),
        protected: &shared.protected,
        settled,
        namespaces,
        places: &places(caches, key),
    })
}

/// Copies of this name that lost their mark and that no version wants in their place, with their uids.
fn lost(shared: &CopiesContext, name: &str) -> Vec<(NamespacedName, String)> {
    let caches = &shared.context.caches;
    let named = caches.csvs.list(None).into_iter().filter(|(key, _)| *key.name == *name);
    let (copies, originals): (Vec<_>, Vec<_>) = named.partition(|(_, csv)| csv.is_copy());
    let wanted = |place: &NamespacedName| {
        originals.iter().any(|(key, csv)| {
            let disabled = decide::targets(csv) == Targets::All
                && is_disabled(&shared.config)
                && !shared.protected.contains(&*place.namespace);
            let member = !csv.deleting && !disabled && is_grouped(caches, key, csv);
            member && decide::targets(csv).contain(&place.namespace)
        })
    };
    let orphans = copies.into_iter().filter(|(key, copy)| !copy.deleting && !wanted(key));
    orphans.map(|(key, copy)| (key, copy.uid.clone())).collect()
}

/// Whether the group that a version is a member of exists.
fn is_grouped(caches: &Caches, key: &NamespacedName, csv: &fields::Csv) -> bool {
    let group = csv.membership[0].as_deref().unwrap_or_default();
    let group = caches.groups.get(&NamespacedName::new(Arc::clone(&key.namespace), group));
    group.is_some_and(|group| group.metadata.deletion_timestamp.is_none())
}

/// What has the name of a version in other namespaces.
fn places(caches: &Caches, key: &NamespacedName) -> BTreeMap<Arc<str>, Place> {
    let wants = |from: &str, place: &str| {
        let other = NamespacedName::new(from, Arc::clone(&key.name));
        original(caches, &other)
            .is_some_and(|csv| !csv.deleting && decide::targets(&csv).contain(place))
    };
    let mut places = BTreeMap::new();
    for (at, copied) in caches.copies.indexed(&key.name) {
        let whose = if *copied.from == *key.namespace {
            Whose::Ours
        } else if wants(&copied.from, &at.namespace) {
            Whose::Others
        } else {
            Whose::Nobodys
        };
        let (uid, deleting, content) = (copied.uid.clone(), copied.deleting, copied.content);
        let marked = whose == Whose::Ours;
        places.insert(at.namespace, Place { uid, whose, marked, deleting, content });
    }
    for (at, csv) in caches.csvs.list(None) {
        if at.name != key.name || at.namespace == key.namespace {
            continue;
        }
        // A copy that lost its mark still says what it is.
        let whose = match csv.membership[1].as_deref() {
            _ if !csv.is_copy() => Whose::Others,
            Some(from) if *from == *key.namespace => Whose::Ours,
            _ => Whose::Nobodys,
        };
        let (uid, deleting) = (csv.uid.clone(), csv.deleting);
        let content = Content::default();
        places.insert(at.namespace, Place { uid, whose, marked: false, deleting, content });
    }
    places
}

/// What is written to the copies of a version, made once for all of them.
struct Text {
    prototype: Prototype,
    copy: Prepared,
    body: Prepared,
    status: Prepared,
}

impl Text {
    fn of(original: &Object) -> mainstay_client::Result<Self> {
        let prototype = Prototype::of(original);
        let from = original.namespace();
        // Only what is still our copy is written to.
        let mark = json!({"op": "test", "path": "/metadata/labels/olm.copiedFrom", "value": from});
        let status = json!([mark, {"op": "add", "path": "/status", "value": prototype.status}]);
        Ok(Self {
            copy: Prepared::object(&prototype.object(original))?,
            body: Prepared::patch(&Patch::Json(repaired(&mark, &prototype)))?,
            status: Prepared::patch(&Patch::Json(status))?,
            prototype,
        })
    }
}

/// What makes a copy what it should be, if a test holds.
fn repaired(test: &Value, prototype: &Prototype) -> Value {
    json!([
        test,
        {"op": "add", "path": "/metadata/labels", "value": prototype.labels},
        {"op": "add", "path": "/metadata/annotations", "value": prototype.annotations},
        {"op": "add", "path": "/spec", "value": prototype.spec},
    ])
}

/// What tasks of one version share.
struct Work {
    cluster: Cluster,
    name: Arc<str>,
    settled: bool,
    text: Option<Text>,
}

impl Work {
    /// Carries out a task, and tells the revision that came of it. What the caches will tell of
    /// anyway is no failure.
    async fn carry_out(&self, place: &Arc<str>, task: &Task) -> Result<Option<u64>, Error> {
        let at = Some(&**place);
        match (task, &self.text) {
            (Task::Remove(uid), _) => {
                let options = DeleteOptions::uid(uid.as_str());
                let done = self.cluster.ensure_deleted(CSV, at, &self.name, &options).await;
                done.during("removing a copy of a version")?;
                Ok(None)
            }
            (_, None) => Ok(None),
            (Task::Create, Some(text)) => {
                let made = self.cluster.create_prepared(CSV, at, &text.copy).await;
                let made = written_if_possible(made).during("making a copy of a version")?;
                let Some(made) = made else { return Ok(None) };
                if !self.settled {
                    return Ok(revision(&made));
                }
                self.write_status(text, place).await
            }
            (Task::Repair { uid, marked, body, status }, Some(text)) => {
                let mut written = None;
                if *body {
                    let patch = if *marked {
                        text.body.clone()
                    } else {
                        let test = json!({"op": "test", "path": "/metadata/uid", "value": uid});
                        Prepared::patch(&Patch::Json(repaired(&test, &text.prototype)))
                            .during("writing a version as JSON")?
                    };
                    let done = self.cluster.patch_prepared(CSV, at, &self.name, None, &patch).await;
                    let done = written_if_possible(done).during("repairing a copy of a version")?;
                    let Some(done) = done else { return Ok(None) };
                    written = revision(&done);
                }
                if *status {
                    written = written.max(self.write_status(text, place).await?);
                }
                Ok(written)
            }
        }
    }

    async fn write_status(&self, text: &Text, place: &str) -> Result<Option<u64>, Error> {
        let (at, part) = (Some(place), Some("status"));
        let done = self.cluster.patch_prepared(CSV, at, &self.name, part, &text.status).await;
        let done = written_if_possible(done).during("writing the status of a copy of a version")?;
        Ok(done.as_ref().and_then(revision))
    }
}

fn revision(written: &Written) -> Option<u64> {
    written.resource_version.parse().ok()
}

/// How long it may take until copies are there or gone before people are told that they are not.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
