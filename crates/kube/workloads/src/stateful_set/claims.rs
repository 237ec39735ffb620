//! The claims of a `StatefulSet`'s Pods: created when they are missing. Their owners follow the
//! retention policy, so that the garbage collector deletes them at the right time.

use super::pod;
use crate::common::{Context, controller_reference_value, is_object_gone};
use crate::workload::Named;
use mainstay_client::{Cache, Error, Patch, Queue, Selection};
use mainstay_object::{NamespacedName, Object, Resource, builtin};
use serde_json::{Value, json};

const CLAIM: Resource = builtin::PERSISTENT_VOLUME_CLAIM;

/// The owner references of a claim.
#[derive(Debug, PartialEq)]
struct Owners(Vec<Value>);

/// The cache of claims.
pub(super) struct Claims {
    context: Context,
    cache: Cache<Owners>,
}

/// A Pod as an owner: name and uid.
type PodName<'a> = (&'a str, &'a str);

impl Claims {
    /// Starts the cache of claims. When a claim that a Pod owned is deleted, the `StatefulSet` is
    /// enqueued: it may have waited for that.
    pub(super) fn start(context: &Context, queue: Queue<NamespacedName>) -> Self {
        let cache = Cache::builder(Selection::all(CLAIM), |claim| {
            Some(Owners(claim.array(&["metadata", "ownerReferences"]).to_vec()))
        })
        .subscribe(move |change| {
            let Some(before) = change.before.filter(|_| change.after.is_none()) else { return };
            for owner in before.0.iter().filter(|owner| owner["kind"] == "Pod") {
                if let Some((set, _)) =
                    owner["name"].as_str().and_then(|name| name.rsplit_once('-'))
                {
                    queue.add(NamespacedName::new(change.key.namespace.as_ref(), set));
                }
            }
        })
        .start(&context.cluster, context.stop.clone());
        Self { context: context.clone(), cache }
    }

    pub(super) fn cache(&self) -> &Cache<impl PartialEq + Send + Sync + use<>> {
        &self.cache
    }

    /// Sets the owners of a Pod's claims. `is_wanted` says that the `StatefulSet` still wants a Pod with
    /// that ordinal.
    pub(super) async fn set_claim_owners(
        &self,
        set: &Object,
        (key, view): &Named,
        ordinal: i64,
        is_wanted: bool,
    ) -> Result<(), Error> {
        let pod = (&*key.name, &*view.uid);
        for template in set.array(&["spec", "volumeClaimTemplates"]) {
            let Some(claim) = pod::claim(set, template, ordinal) else { continue };
            let up_to_date = match self.cache.get(&claim.key()) {
                Some(known) => owners(set, pod, is_wanted, &known.0).is_none(),
                // The cache may lack a new claim, which must not stay when its Pod is deleted.
                None => is_wanted || !policy_deletes(set, "whenScaled"),
            };
            if up_to_date {
                continue;
            }
            let namespace = Some(set.namespace());
            let cluster = &self.context.cluster;
            let Some(live) = cluster.find(&CLAIM, namespace, claim.name()).await? else { continue };
            let live_owners = live.array(&["metadata", "ownerReferences"]);
            let Some(owners) = owners(set, pod, is_wanted, live_owners) else { continue };
            let patch = Patch::Merge(json!({"metadata": {
                "uid": live.uid(), "resourceVersion": live.resource_version(),
                "ownerReferences": owners,
            }}));
            match cluster.patch(&CLAIM, namespace, claim.name(), &patch).await {
                Err(error) if is_object_gone(&error) => {}
                other => drop(other?),
            }
        }
        Ok(())
    }

    /// Creates the missing claims of a Pod and returns whether the Pod may be created. It may not
    /// while a claim exists that goes with an earlier Pod of that name.
    pub(super) async fn create_missing(
        &self,
        set: &Object,
        pod: &Object,
        ordinal: i64,
    ) -> Result<bool, Error> {
        let templates = set.array(&["spec", "volumeClaimTemplates"]);
        let claims: Vec<_> =
            templates.iter().filter_map(|template| pod::claim(set, template, ordinal)).collect();
        let goes = |claim: &Object| {
            self.cache.get(&claim.key()).is_some_and(|claim_owners| {
                claim_owners.0.iter().any(|owner| is(owner, "v1", "Pod", pod.name()))
            })
        };
        if policy_deletes(set, "whenScaled") && claims.iter().any(goes) {
            return Ok(false);
        }
        for mut claim in claims {
            if self.cache.get(&claim.key()).is_some() {
                continue;
            }
            if policy_deletes(set, "whenDeleted") {
                claim.set(
                    &["metadata", "ownerReferences"],
                    json!([controller_reference_value(set)]),
                );
            }
            match self.context.cluster.create(&CLAIM, &claim).await {
                Ok(_) => {
                    let message = format!(
                        "Create Claim {} Pod {} in StatefulSet {} success",
                        claim.name(),
                        pod.name(),
                        set.name()
                    );
                    self.context.report_normal(set, "SuccessfulCreate", message);
                }
                Err(error) if error.is_already_exists() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

fn policy_deletes(set: &Object, when: &str) -> bool {
    set.str(&["spec", "persistentVolumeClaimRetentionPolicy", when]) == Some("Delete")
}

fn is(owner: &Value, api_version: &str, kind: &str, name: &str) -> bool {
    owner["apiVersion"] == api_version && owner["kind"] == kind && owner["name"] == name
}

/// The new owners of a claim; none if they are up to date.
///
/// With `whenDeleted: Delete` the set owns the claims of the Pods it wants. With `whenScaled:
/// Delete` a Pod beyond the wanted number owns its claims, and nobody else does. References to an
/// earlier set or Pod of the same name are left to the garbage collector. Where another controller
/// owns a claim, this one does not.
fn owners(
    set: &Object,
    pod: PodName<'_>,
    is_wanted: bool,
    current: &[Value],
) -> Option<Vec<Value>> {
    let of_set = |owner: &Value| is(owner, set.api_version(), set.kind(), set.name());
    let of_pod = |owner: &Value| is(owner, "v1", "Pod", pod.0);
    let stale = |owner: &Value| {
        (of_set(owner) && owner["uid"] != set.uid()) || (of_pod(owner) && owner["uid"] != pod.1)
    };
    if current.iter().any(stale) {
        return None;
    }
    let (scaled, deleted) = (policy_deletes(set, "whenScaled"), policy_deletes(set, "whenDeleted"));
    let others: Vec<&Value> =
        current.iter().filter(|owner| !of_set(owner) && !of_pod(owner)).collect();
    let foreign = (scaled || deleted) && others.iter().any(|owner| owner["controller"] == true);
    let new_owner = if foreign {
        None
    } else if scaled && !is_wanted {
        Some(json!({
            "apiVersion": "v1", "kind": "Pod", "name": pod.0, "uid": pod.1,
            "controller": true, "blockOwnerDeletion": true,
        }))
    } else {
        deleted.then(|| controller_reference_value(set))
    };
    let uid = new_owner.as_ref().map(|owner| &owner["uid"]);
    let controlled: Vec<&Value> =
        current.iter().filter(|owner| of_set(owner) || of_pod(owner)).collect();
    let up_to_date = match (controlled.as_slice(), uid) {
        ([], None) => true,
        ([owner], Some(uid)) => owner["uid"] == *uid && owner["controller"] == true,
        _ => false,
    };
    (!up_to_date).then(|| others.into_iter().cloned().chain(new_owner).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(scaled: &str, deleted: &str) -> Object {
        Object::from_value(json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "db", "namespace": "n", "uid": "s"},
            "spec": {"persistentVolumeClaimRetentionPolicy": {
                "whenScaled": scaled, "whenDeleted": deleted,
            }},
        }))
        .unwrap()
    }

    fn owner(name: &str) -> Value {
        let (api_version, kind, name, uid, controller) = match name {
            "set" => ("apps/v1", "StatefulSet", "db", "s", true),
            "old set" => ("apps/v1", "StatefulSet", "db", "s0", true),
            "pod" => ("v1", "Pod", "db-1", "p", true),
            "old pod" => ("v1", "Pod", "db-1", "p0", true),
            "loose set" => ("apps/v1", "StatefulSet", "db", "s", false),
            "backup" => ("example.com/v1", "Backup", "b", "b", true),
            _ => ("example.com/v1", "Note", "n", "n", false),
        };
        json!({
            "apiVersion": api_version, "kind": kind, "name": name, "uid": uid,
            "controller": controller, "blockOwnerDeletion": true,
        })
    }

    #[test]
    fn claim_owners_follow_the_retention_policy() {
        for (scaled, deleted, is_wanted, current, wanted) in [
            ("Retain", "Retain", true, vec![], None),
            ("Retain", "Retain", true, vec!["set"], Some(vec![])),
            ("Retain", "Retain", false, vec!["pod", "note"], Some(vec!["note"])),
            ("Retain", "Retain", true, vec!["backup", "set"], Some(vec!["backup"])),
            ("Retain", "Delete", true, vec![], Some(vec!["set"])),
            ("Retain", "Delete", true, vec!["note"], Some(vec!["note", "set"])),
            ("Retain", "Delete", false, vec!["pod"], Some(vec!["set"])),
            ("Retain", "Delete", false, vec!["set"], None),
            ("Delete", "Retain", true, vec![], None),
            ("Delete", "Retain", false, vec![], Some(vec!["pod"])),
            ("Delete", "Retain", true, vec!["pod"], Some(vec![])),
            ("Delete", "Delete", true, vec![], Some(vec!["set"])),
            ("Delete", "Delete", false, vec!["set"], Some(vec!["pod"])),
            ("Delete", "Delete", false, vec!["pod"], None),
            ("Delete", "Delete", true, vec!["loose set"], Some(vec!["set"])),
            // A claim of an earlier set or Pod with the same name goes with that one.
            ("Delete", "Delete", false, vec!["old set"], None),
            ("Delete", "Delete", true, vec!["old pod"], None),
            // Another controller owns the claim.
            ("Delete", "Delete", true, vec!["backup"], None),
            ("Delete", "Delete", true, vec!["backup", "set"], Some(vec!["backup"])),
        ] {
            let case = format!("{scaled} {deleted} {is_wanted} {current:?}");
            let current: Vec<Value> = current.into_iter().map(owner).collect();
            let wanted = wanted.map(|owners| owners.into_iter().map(owner).collect::<Vec<_>>());
            let found = owners(&set(scaled, deleted), ("db-1", "p"), is_wanted, &current);
            assert_eq!(found, wanted, "{case}");
        }
    }
}
