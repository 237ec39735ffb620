//! Controller revisions: the template history of a `StatefulSet` or `DaemonSet`.

use crate::common::{Context, controller_reference_value};
use crate::template;
use crate::views::{Dependent, ORPHANS, RevisionView, Views, selector};
use mainstay_client::{DeleteOptions, Error, Patch};
use mainstay_gocompat::values;
use mainstay_object::{NamespacedName, Object, builtin, fnv};
use serde_json::{Value, json};
use std::sync::Arc;

/// A `ControllerRevision` with its key.
pub(crate) type Revision = (NamespacedName, Arc<RevisionView>);

/// The revisions of the objects of a kind.
pub(crate) struct Revisions {
    context: Context,
    views: Views,
    /// The label with the hash of the template.
    label: &'static str,
}

/// The revisions of one owner.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct History {
    /// The revision of the current template.
    pub(crate) update: Revision,
    /// All other revisions, the oldest first.
    pub(crate) others: Vec<Revision>,
    /// How often the name of a revision was taken by another template.
    pub(crate) collisions: i64,
}

/// The template of a revision.
pub(crate) fn template_of(revision: &RevisionView) -> Value {
    let mut template = revision.data["spec"]["template"].clone();
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    template
}

/// The `data` of a revision: a patch that restores the template.
fn data(owner: &Object) -> Value {
    let mut template = owner.get(&["spec", "template"]).cloned().unwrap_or_else(|| json!({}));
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

/// The hash with which upstream names revisions of a `StatefulSet`: FNV-1 of the data in Go's JSON
/// encoding and of the number of collisions.
fn data_hash(data: &Value, collisions: i64) -> String {
    let text = format!("{}{collisions}", values::json(data));
    let hash = text
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| hash.wrapping_mul(0x0100_0193) ^ u32::from(byte));
    fnv::safe_encode(&hash.to_string())
}

impl Revisions {
    pub(crate) fn new(context: &Context, views: &Views, label: &'static str) -> Self {
        Self { context: context.clone(), views: views.clone(), label }
    }

    /// The revisions of an owner. The revision of the current template is found, renumbered if it
    /// is not the last, or created.
    pub(crate) async fn of(&self, owner: &Object) -> Result<History, Error> {
        self.adopt(owner).await?;
        let mut owned_revisions = self.views.revisions.indexed(owner.uid());
        owned_revisions.retain(|(_, revision)| !revision.terminating);
        owned_revisions
            .sort_by_key(|(key, revision)| (revision.revision, revision.created, key.clone()));
        let data = data(owner);
        let next = owned_revisions.last().map_or(1, |(_, last)| last.revision + 1);
        let collisions = owner.i64(&["status", "collisionCount"]).unwrap_or_default();
        let Some(at) = owned_revisions.iter().rposition(|(_, revision)| revision.data == data)
        else {
            let (update, collisions) = self.create(owner, data, next, collisions).await?;
            return Ok(History { update, others: owned_revisions, collisions });
        };
        let newest = at + 1 == owned_revisions.len();
        let (key, mut view) = owned_revisions.remove(at);
        if !newest {
            // The revision of a template that comes back becomes the last one.
            let patch = json!({
                "metadata": {"resourceVersion": &*view.resource_version}, "revision": next,
            });
            let cluster = &self.context.cluster;
            let patched = cluster
                .patch(
                    &builtin::CONTROLLER_REVISION,
                    key.namespace(),
                    &key.name,
                    &Patch::Merge(patch),
                )
                .await?;
            self.views.revisions.wait_for_revision(patched.resource_version()).await;
            view = Arc::new(RevisionView::of(&patched));
        }
        Ok(History { update: (key, view), others: owned_revisions, collisions })
    }

    async fn adopt(&self, owner: &Object) -> Result<(), Error> {
        let Some(selector) = selector(owner) else { return Ok(()) };
        for (key, orphan) in self.views.revisions.indexed(ORPHANS) {
            let same_namespace = *key.namespace == *owner.namespace();
            if !same_namespace || orphan.terminating || !orphan.matches(&selector) {
                continue;
            }
            let patch = Patch::Merge(json!({"metadata": {
                "resourceVersion": &*orphan.resource_version,
                "ownerReferences": [controller_reference_value(owner)],
            }}));
            let cluster = &self.context.cluster;
            let adopted = cluster
                .patch(&builtin::CONTROLLER_REVISION, key.namespace(), &key.name, &patch)
                .await?;
            self.views.revisions.wait_for_revision(adopted.resource_version()).await;
        }
        Ok(())
    }

    async fn create(
        &self,
        owner: &Object,
        data: Value,
        number: i64,
        mut collisions: i64,
    ) -> Result<(Revision, i64), Error> {
        let print = template::fingerprint(owner.get(&["spec", "template"]).unwrap_or(&Value::Null));
        let cluster = &self.context.cluster;
        loop {
            let hash = match owner.kind() {
                "StatefulSet" => data_hash(&data, collisions),
                _ => template::name_hash(print, collisions),
            };
            let name = format!("{}-{hash}", owner.name());
            let mut revision = Object::new(&builtin::CONTROLLER_REVISION.gvk(), &name);
            revision.set(&["metadata", "namespace"], owner.namespace().into());
            let labels = owner.get(&["spec", "template", "metadata", "labels"]);
            revision.set(&["metadata", "labels"], labels.cloned().unwrap_or_else(|| json!({})));
            revision.set_label(self.label, hash.as_str());
            for (key, value) in owner.annotations() {
                revision.set_annotation(key, value);
            }
            let owners = json!([controller_reference_value(owner)]);
            revision.set(&["metadata", "ownerReferences"], owners);
            revision.set(&["data"], data.clone());
            revision.set(&["revision"], number.into());
            let created = match cluster.create(&builtin::CONTROLLER_REVISION, &revision).await {
                Ok(created) => created,
                Err(error) if error.is_already_exists() => {
                    let namespace = Some(owner.namespace());
                    let existing_revision =
                        cluster.get(&builtin::CONTROLLER_REVISION, namespace, &name).await?;
                    let own = existing_revision
                        .controller_owner()
                        .is_some_and(|controller| controller.uid == owner.uid());
                    if !own || existing_revision.get(&["data"]) != Some(&data) {
                        collisions += 1;
                        continue;
                    }
                    existing_revision
                }
                Err(error) => return Err(error),
            };
            self.views.revisions.wait_for_revision(created.resource_version()).await;
            let key = NamespacedName::new(owner.namespace(), name.as_str());
            return Ok(((key, Arc::new(RevisionView::of(&created))), collisions));
        }
    }

    /// Deletes the oldest unused revisions beyond the history limit.
    pub(crate) async fn truncate(
        &self,
        owner: &Object,
        history: &History,
        in_use: impl Fn(&Revision) -> bool,
    ) -> Result<(), Error> {
        let limit = owner.i64(&["spec", "revisionHistoryLimit"]).unwrap_or(10);
        let Ok(limit) = usize::try_from(limit) else { return Ok(()) };
        let idle: Vec<&Revision> =
            history.others.iter().filter(|revision| !in_use(revision)).collect();
        let surplus = idle.len().saturating_sub(limit);
        for (key, view) in idle.into_iter().take(surplus) {
            let options = DeleteOptions::uid(view.uid.as_ref());
            let cluster = &self.context.cluster;
            let resource = &builtin::CONTROLLER_REVISION;
            cluster.ensure_deleted(resource, key.namespace(), &key.name, &options).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_has_upstreams_name() {
        let template = json!({
            "metadata": {"labels": {"app": "db"}},
            "spec": {
                "containers": [{
                    "image": "a", "imagePullPolicy": "Always", "name": "main", "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }],
                "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
                "schedulerName": "default-scheduler", "securityContext": {},
                "terminationGracePeriodSeconds": 30,
            },
        });
        let set = Object::from_value(json!({"spec": {"template": template}})).unwrap();
        // The name that Kubernetes 1.35 gives.
        assert_eq!(data_hash(&data(&set), 0), "6484c5f9dc");
        assert_ne!(data_hash(&data(&set), 1), "6484c5f9dc");
        let view = RevisionView::of(&Object::from_value(json!({"data": data(&set)})).unwrap());
        assert_eq!(Some(&template_of(&view)), set.get(&["spec", "template"]));
    }
}
