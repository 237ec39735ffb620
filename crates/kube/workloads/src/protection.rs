//! Protection finalizers: `PersistentVolumeClaims`, `PersistentVolumes` and
//! `VolumeAttributesClasses` stay while they are used.
//!
//! The API adds a finalizer to each of them. A claim that is being deleted keeps it while an
//! unfinished Pod mounts the claim, and a volume while a claim is bound to it. A
//! `VolumeAttributesClass` keeps it while a claim or a volume names the class. These controllers
//! remove it afterwards.

use crate::Started;
use crate::common::{Context, is_object_gone};
use crate::views::{Phase, PodView, Views};
use mainstay_client::{Action, Cache, Controller, Error, ObjectList, Patch, Reconciler, Selection};
use mainstay_object::{NamespacedName, Object, Resource, builtin};
use serde_json::{Value, json};
use std::sync::Arc;

const CLAIM: &str = "kubernetes.io/pvc-protection";
const VOLUME: &str = "kubernetes.io/pv-protection";
const CLASS: &str = "kubernetes.io/vac-protection";
const CLASSES: Resource =
    Resource::cluster("storage.k8s.io", "v1", "VolumeAttributesClass", "volumeattributesclasses");

/// Starts the controllers.
pub(crate) fn start(context: &Context, views: &Views, started: &mut Started) {
    let controller = Controller::new("claims");
    let queue = controller.queue();
    let subscriber_queue = queue.clone();
    let claims = Cache::builder(Selection::all(builtin::PERSISTENT_VOLUME_CLAIM), |claim| {
        awaits_finalizer(claim, CLAIM).then_some(())
    })
    .subscribe(move |change| {
        if change.after.is_some() {
            subscriber_queue.add(change.key.clone());
        }
    })
    .start(&context.cluster, context.stop.clone());
    views.pods.subscribe(move |change| {
        // Pods use their claims until they have ended.
        let holds = |pod: &PodView| !matches!(pod.phase, Phase::Succeeded | Phase::Failed);
        let Some(before) = change.before.filter(|pod| holds(pod)) else { return };
        if change.after.is_some_and(|pod| holds(pod)) {
            return;
        }
        for name in &before.claims {
            queue.add(NamespacedName::new(change.key.namespace.as_ref(), name.as_ref()));
        }
    });
    let controller = controller.reads(&claims);
    let reconciler = Claims { context: context.clone(), claims };
    started.controller(controller.start(reconciler, context.stop.clone()));

    let controller = Controller::new("volumes");
    let queue = controller.queue();
    let volumes = Cache::builder(Selection::all(builtin::PERSISTENT_VOLUME), |volume| {
        let is_bound = volume.str(&["status", "phase"]) == Some("Bound");
        (awaits_finalizer(volume, VOLUME) && !is_bound).then_some(())
    })
    .subscribe(move |change| {
        if change.after.is_some() {
            queue.add(change.key.clone());
        }
    })
    .start(&context.cluster, context.stop.clone());
    let controller = controller.reads(&volumes);
    let reconciler = Volumes { context: context.clone(), _volumes: volumes };
    started.controller(controller.start(reconciler, context.stop.clone()));
    start_classes(context, started);
}

fn start_classes(context: &Context, started: &mut Started) {
    let controller = Controller::new("attribute-classes");
    let queue = controller.queue();
    let classes = Cache::builder(Selection::all(CLASSES), |class| {
        awaits_finalizer(class, CLASS).then_some(())
    })
    .subscribe(move |change| {
        if change.after.is_some() {
            queue.add(change.key.clone());
        }
    })
    .start(&context.cluster, context.stop.clone());
    let users = [builtin::PERSISTENT_VOLUME_CLAIM, builtin::PERSISTENT_VOLUME].map(|kind| {
        let queue = controller.queue();
        Cache::builder(Selection::all(kind), |user| {
            Some(classes_of(user)).filter(|names| !names.is_empty())
        })
        .subscribe(move |change| {
            for name in change.before.into_iter().flat_map(|names| names.iter()) {
                queue.add(NamespacedName::cluster(name.as_ref()));
            }
        })
        .start(&context.cluster, context.stop.clone())
    });
    let controller = controller.reads(&classes);
    let controller = users.iter().fold(controller, Controller::reads);
    let reconciler = Classes { context: context.clone(), _resources: classes, users };
    started.controller(controller.start(reconciler, context.stop.clone()));
}

/// The `VolumeAttributesClasses` that a claim or a volume has or requests.
fn classes_of(user: &Object) -> Vec<Arc<str>> {
    let paths: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    let names = paths.iter().filter_map(|path| user.str(path));
    names.filter(|name| !name.is_empty()).map(Arc::from).collect()
}

/// Whether an object is being deleted and has this finalizer.
fn awaits_finalizer(object: &Object, finalizer: &str) -> bool {
    object.is_terminating() && object.finalizers().any(|name| name == finalizer)
}

/// The claims that a Pod mounts.
pub(crate) fn claims_of(pod: &Object) -> Vec<Arc<str>> {
    let volumes = pod.array(&["spec", "volumes"]).iter();
    volumes
        .filter_map(|volume| {
            if volume.get("ephemeral").is_some_and(Value::is_object) {
                // An ephemeral claim belongs to the Pod; its name combines the names of Pod and
                // volume.
                let name = volume.get("name")?.as_str()?;
                return Some(format!("{}-{name}", pod.name()).into());
            }
            Some(volume.get("persistentVolumeClaim")?.get("claimName")?.as_str()?.into())
        })
        .collect()
}

/// Whether a Pod uses a claim; it does until it has ended.
fn uses(pod: &Object, claim: &str) -> bool {
    !matches!(pod.str(&["status", "phase"]), Some("Succeeded" | "Failed"))
        && claims_of(pod).iter().any(|name| **name == *claim)
}

/// Removes a finalizer from an object with the revision that was read.
async fn release(
    context: &Context,
    resource: &Resource,
    live: &Object,
    finalizer: &str,
) -> Result<Action, Error> {
    let remaining: Vec<&str> = live.finalizers().filter(|name| *name != finalizer).collect();
    let patch = json!({"metadata": {
        "uid": live.uid(), "resourceVersion": live.resource_version(), "finalizers": remaining,
    }});
    let namespace = Some(live.namespace()).filter(|namespace| !namespace.is_empty());
    let patch = Patch::Merge(patch);
    match context.cluster.patch(resource, namespace, live.name(), &patch).await {
        Err(error) if is_object_gone(&error) => Ok(Action::Done),
        other => other.map(|_| Action::Done),
    }
}

struct Claims {
    context: Context,
    claims: Cache<()>,
}

impl Reconciler for Claims {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        if self.claims.get(key).is_none() {
            return Ok(Action::Done);
        }
        let cluster = &self.context.cluster;
        let (kind, namespace) = (&builtin::PERSISTENT_VOLUME_CLAIM, Some(&*key.namespace));
        let Some(claim) = cluster.find(kind, namespace, &key.name).await? else {
            return Ok(Action::Done);
        };
        if !awaits_finalizer(&claim, CLAIM) {
            return Ok(Action::Done);
        }
        // A cache may lag behind the latest Pod, so the Pods are listed live.
        let pods = cluster.list_pages(&builtin::POD, namespace, &ObjectList::default()).await?;
        if pods.items.iter().any(|pod| uses(pod, &key.name)) {
            return Ok(Action::Done);
        }
        release(&self.context, kind, &claim, CLAIM).await
    }
}

struct Volumes {
    context: Context,
    /// Enqueues volumes as long as it lives.
    _volumes: Cache<()>,
}

impl Reconciler for Volumes {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let kind = &builtin::PERSISTENT_VOLUME;
        let Some(volume) = self.context.cluster.find(kind, None, &key.name).await? else {
            return Ok(Action::Done);
        };
        let is_bound = volume.str(&["status", "phase"]) == Some("Bound");
        if is_bound || !awaits_finalizer(&volume, VOLUME) {
            return Ok(Action::Done);
        }
        release(&self.context, kind, &volume, VOLUME).await
    }
}

struct Classes {
    context: Context,
    /// Enqueues classes as long as it lives.
    _resources: Cache<()>,
    /// Claims and volumes by the class that they name.
    users: [Cache<Vec<Arc<str>>>; 2],
}

impl Reconciler for Classes {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let Some(class) = self.context.cluster.find(&CLASSES, None, &key.name).await? else {
            return Ok(Action::Done);
        };
        let names_class = |users: &Cache<Vec<Arc<str>>>| {
            users.list(None).iter().any(|(_, names)| names.contains(&key.name))
        };
        if !awaits_finalizer(&class, CLASS) || self.users.iter().any(names_class) {
            return Ok(Action::Done);
        }
        release(&self.context, &CLASSES, &class, CLASS).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_a_claim_are_its_current_and_its_requested_one() {
        let claim = Object::from_value(json!({
            "metadata": {"name": "c"}, "spec": {"volumeAttributesClassName": "fast"},
            "status": {
                "currentVolumeAttributesClassName": "slow",
                "modifyVolumeStatus": {"targetVolumeAttributesClassName": "fast", "status": "Pending"},
            },
        }))
        .unwrap();
        assert_eq!(classes_of(&claim), ["fast", "slow", "fast"].map(Arc::from));
        assert!(classes_of(&Object::new(&builtin::PERSISTENT_VOLUME.gvk(), "v")).is_empty());
    }

    #[test]
    fn a_claim_is_in_use_until_its_pods_have_ended() {
        let mut pod = Object::from_value(json!({
            "metadata": {"name": "p"},
            "spec": {"volumes": [
                {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "b", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "c", "emptyDir": {}},
            ]},
        }))
        .unwrap();
        assert_eq!(claims_of(&pod), [Arc::from("data"), Arc::from("p-b")]);
        assert!(uses(&pod, "data") && !uses(&pod, "other"));
        pod.set(&["status", "phase"], "Failed".into());
        assert!(!uses(&pod, "data"));
    }
}
