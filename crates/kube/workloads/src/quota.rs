//! The `ResourceQuota` controller: counts what the objects of a namespace use.
//!
//! Admission charges each write to `status.used`. This controller counts again from the existing
//! objects: when a quota changes, when an object in its namespace is deleted or needs less, and
//! periodically. It counts live objects, never caches.
//!
//! A write may be charged but not stored yet while the controller counts. So a lower count than the
//! charged one is written only if two counts agree, with a pause between and no charge meanwhile. A
//! write may also be refused after it was charged: whenever the used amount has changed, it is
//! counted once more.

use crate::Started;
use crate::collector::Collector;
use crate::common::Context;
use crate::views::{Phase, PodView, Views};
use mainstay_client::{
    Action, ApiResource, Cache, Controller, Error, ObjectList, Queue, Reconciler, Selection,
};
use mainstay_object::{NamespacedName, Object, builtin};
use mainstay_quota::{Amounts, CountedKind, is_current, total};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Many objects are often deleted together: they are counted together.
const BATCH_DELAY: Duration = Duration::from_millis(100);
/// A write that is charged now is stored after this time.
const RECOUNT_DELAY: Duration = Duration::from_millis(200);
/// After this time without a charge the namespace counts as quiet.
const QUIET_PERIOD: Duration = Duration::from_secs(5);
/// The periodic count without a known change, as in kube-controller-manager.
const RESYNC_PERIOD: Duration = Duration::from_mins(5);

/// Starts the controller of quotas.
pub(crate) fn start(
    context: &Context,
    views: &Views,
    collector: &Collector,
    started: &mut Started,
) {
    let controller = Controller::new("quotas");
    let queue = controller.queue();
    let subscriber_queue = queue.clone();
    let quotas = Cache::builder(Selection::all(builtin::RESOURCE_QUOTA), |quota| {
        let part = |path: &[&str]| Amounts::read(quota.get(path));
        let (hard, used) = (part(&["spec", "hard"]), part(&["status", "used"]));
        let counted = hard == part(&["status", "hard"]);
        Some(QuotaView { hard, used, counted })
    })
    .subscribe(move |change| match (change.before, change.after) {
        (Some(_), Some(quota)) if quota.counted => {
            subscriber_queue.add_after(change.key.clone(), QUIET_PERIOD);
        }
        (_, Some(_)) => subscriber_queue.add(change.key.clone()),
        (_, None) => {}
    })
    .start(&context.cluster, context.stop.clone());

    let enqueuer = QuotaEnqueuer { quotas: quotas.clone(), queue };
    let removal_enqueuer = enqueuer.clone();
    collector.on_removal(move |namespace| removal_enqueuer.enqueue_namespace(namespace));
    let pod_enqueuer = enqueuer.clone();
    views.pods.subscribe(move |change| {
        if change.before.zip(change.after).is_some_and(|(was, is)| frees_quota(was, is)) {
            pod_enqueuer.enqueue_namespace(&change.key.namespace);
        }
    });
    // An update of a Service may free node ports.
    let services = Cache::builder(Selection::all(builtin::SERVICE), |service| {
        let ports = service.array(&["spec", "ports"]).len();
        Some((service.str(&["spec", "type"]).unwrap_or_default().to_owned(), ports))
    })
    .subscribe(move |change| {
        if change.before.is_some() && change.after.is_some() {
            enqueuer.enqueue_namespace(&change.key.namespace);
        }
    })
    .start(&context.cluster, context.stop.clone());
    let controller = controller.reads(&quotas).reads(&services);
    let reconciler = Reconcile {
        context: context.clone(),
        quotas,
        _services: services,
        kinds: Mutex::default(),
        unconfirmed: Mutex::default(),
    };
    started.controller(controller.start(reconciler, context.stop.clone()));
}

/// Whether a Pod uses less of some quota than before: it has ended, has other requests, or belongs
/// to other scopes. Admission does not charge the quotas that it leaves.
fn frees_quota(was: &PodView, is: &PodView) -> bool {
    let is_over = |pod: &PodView| matches!(pod.phase, Phase::Succeeded | Phase::Failed);
    (!is_over(was) && is_over(is))
        || was.deadline.is_some() != is.deadline.is_some()
        || was.needs != is.needs
}

/// The fields of a quota that the controller reads.
#[derive(PartialEq)]
struct QuotaView {
    hard: Amounts,
    used: Amounts,
    /// Whether the status has the hard limits of the spec.
    counted: bool,
}

/// Enqueues the quotas of a namespace.
#[derive(Clone)]
struct QuotaEnqueuer {
    quotas: Cache<QuotaView>,
    queue: Queue<NamespacedName>,
}

impl QuotaEnqueuer {
    fn enqueue_namespace(&self, namespace: &str) {
        if self.quotas.is_empty() || namespace.is_empty() {
            return;
        }
        for (key, _) in self.quotas.list(Some(namespace)) {
            self.queue.add_after(key, BATCH_DELAY);
        }
    }
}

struct Reconcile {
    context: Context,
    quotas: Cache<QuotaView>,
    /// Enqueues quotas as long as it lives.
    _services: Cache<(String, usize)>,
    /// The kinds of the server, from the last discovery.
    kinds: Mutex<Arc<Vec<ApiResource>>>,
    /// Quotas whose count was lower than their charge, and their revision then.
    unconfirmed: Mutex<FxHashMap<NamespacedName, String>>,
}

impl Reconciler for Reconcile {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let unconfirmed_revision = self.unconfirmed.lock().remove(key);
        if self.quotas.get(key).is_none() {
            return Ok(Action::Done);
        }
        let cluster = &self.context.cluster;
        let namespace = Some(&*key.namespace);
        let Some(quota) = cluster.find(&builtin::RESOURCE_QUOTA, namespace, &key.name).await?
        else {
            return Ok(Action::Done);
        };
        let used = self.count(&quota).await?;
        if is_current(&quota, &used) {
            return Ok(Action::After(RESYNC_PERIOD));
        }
        let charged = Amounts::read(quota.get(&["status", "used"]));
        let is_less =
            used.iter().any(|(name, amount)| charged.get(name).is_some_and(|was| amount < was));
        if is_less
            && unconfirmed_revision.is_none_or(|revision| revision != quota.resource_version())
        {
            self.unconfirmed.lock().insert(key.clone(), quota.resource_version().to_owned());
            return Ok(Action::After(RECOUNT_DELAY));
        }
        let hard = quota.get(&["spec", "hard"]).cloned().unwrap_or_else(|| json!({}));
        let status = json!({"hard": hard, "used": used.to_value()});
        self.context.write_status(&builtin::RESOURCE_QUOTA, &quota, status).await?;
        Ok(Action::After(RESYNC_PERIOD))
    }
}

impl Reconcile {
    /// Counts the current use of a quota.
    async fn count(&self, quota: &Object) -> Result<Amounts, Error> {
        let hard = quota.get(&["spec", "hard"]).and_then(Value::as_object);
        let names = hard.into_iter().flatten().map(|(name, _)| name.as_str());
        let counted_kinds: BTreeSet<(&str, &str)> =
            names.filter_map(CountedKind::counted_by).collect();
        let mut counted = Vec::new();
        for (group, plural) in counted_kinds {
            let Some(api) = self.kind(group, plural).await? else { continue };
            let kind = CountedKind::of(group, plural);
            let params = ObjectList {
                metadata_only: matches!(kind, CountedKind::Other { .. }),
                ..ObjectList::default()
            };
            let namespace = Some(quota.namespace());
            let list = self.context.cluster.list_pages(&api.resource, namespace, &params).await?;
            counted.push((kind, list.items));
        }
        let counted = counted.iter().map(|(kind, objects)| (kind, objects.as_slice()));
        Ok(total(quota, counted, self.context.clock.now()))
    }

    /// A namespaced kind; none if the server does not serve it.
    async fn kind(&self, group: &str, plural: &str) -> Result<Option<ApiResource>, Error> {
        let find = |kinds: &[ApiResource]| {
            let is = |api: &&ApiResource| {
                *api.resource.group == *group
                    && *api.resource.plural == *plural
                    && api.preferred
                    && api.resource.is_namespaced()
                    && api.can("list")
            };
            kinds.iter().find(is).cloned()
        };
        let cached_kinds = Arc::clone(&self.kinds.lock());
        if let Some(api) = find(&cached_kinds) {
            return Ok(Some(api));
        }
        let served_kinds = Arc::new(self.context.cluster.resources().await?.resources);
        *self.kinds.lock() = Arc::clone(&served_kinds);
        Ok(find(&served_kinds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_recounted_when_a_pod_ends_or_changes_scope_or_requests() {
        let pod = |phase: &str, more: Value| {
            let mut spec = json!({"containers": [{"name": "c", "resources": {}}]});
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let pod = json!({"spec": spec, "status": {"phase": phase}});
            PodView::of(&Object::from_value(pod).unwrap())
        };
        let requesting = |cpu: &str| {
            let resources = json!({"requests": {"cpu": cpu}});
            pod("Running", json!({"containers": [{"name": "c", "resources": resources}]}))
        };
        let limited = |seconds: i64| pod("Running", json!({"activeDeadlineSeconds": seconds}));
        let running = || pod("Running", json!({}));
        let failed = || pod("Failed", json!({}));
        for (was, is, counted) in [
            (running(), running(), false),
            (pod("Pending", json!({})), running(), false),
            (running(), failed(), true),
            (failed(), failed(), false),
            (running(), limited(5), true),
            (limited(5), limited(4), false),
            (requesting("2"), requesting("1"), true),
            (requesting("2"), requesting("2"), false),
        ] {
            assert_eq!(frees_quota(&was, &is), counted, "{was:?} {is:?}");
        }
    }
}
