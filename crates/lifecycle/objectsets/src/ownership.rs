//! Ownership of objects: whether a ClusterObjectSet may create, take over or change an object.
//!
//! ```text
//! controller of the object │ Prevent    IfNoController   None
//! ─────────────────────────┼──────────────────────────────────────
//! (no such object)         │ create     create           create
//! this set                 │ apply      apply            apply
//! an active earlier set    │ apply      apply            apply
//! none                     │ collision  apply *          apply *
//! anything else            │ collision  collision        apply
//! ```
//!
//! `*` An object without controller that has the labels and annotations of a ClusterObjectSet is a collision:
//! garbage collection may be about to delete it. An object of a later revision is left alone in each case.
//!
//! Beyond upstream, an object without controller that an uninstallation of the same extension kept (annotation
//! `helm.sh/resource-policy: keep`) is applied in each case: the next installation takes it over.

use crate::comparison::ObjectComparison;
use mainstay_api::names::olm_v1::{
    MANAGED_BY_LABEL, MANAGED_BY_VALUE, OWNER_NAME_LABEL, REVISION_ANNOTATION, is_kept,
};
use mainstay_api::{ApiKind, ClusterObjectSet, CollisionProtection, LifecycleState};
use mainstay_gocompat::quote;
use mainstay_object::{Gvk, Object, OwnerReference};
use serde_json::json;

/// A ClusterObjectSet as the owner of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectSetIdentity {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Number of the revision.
    pub revision: i64,
    /// Value of the label `olm.operatorframework.io/owner-name`; empty without one.
    pub extension: String,
}

/// The controller of an object that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CurrentController {
    /// The object has no controller.
    Absent,
    /// This ClusterObjectSet.
    ThisSet,
    /// An active ClusterObjectSet of an earlier revision of the same extension.
    EarlierRevision,
    /// Another object.
    Other,
}

/// What is done with an object.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectDecision {
    /// The object does not exist: it is created with a POST, so that an object that appeared in the meantime
    /// is not changed.
    Create(Box<Object>),
    /// A later revision has the object.
    Progressed,
    /// The object is as desired.
    Idle,
    /// The object is applied by server-side apply.
    Apply {
        /// The object, with the resource version that was read.
        object: Box<Object>,
        /// Whether fields of other managers are taken.
        force: bool,
        /// Whether another manager changed fields of this set.
        recovers: bool,
    },
    /// The object must not be changed.
    Collision {
        /// Its controller.
        owner: Option<OwnerReference>,
    },
}

/// An object whose revision annotation is no number, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("getting revision of object: strconv.ParseInt: parsing {}: invalid syntax", quote(.0))]
pub struct ReadRevisionError(String);

impl ObjectSetIdentity {
    /// The owner reference of objects.
    pub fn owner_reference(&self) -> OwnerReference {
        let resource = ClusterObjectSet::RESOURCE;
        OwnerReference {
            api_version: resource.api_version(),
            kind: resource.kind.into_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// Whether an owner reference, whatever its version, names this set.
    pub(crate) fn is_named_by(&self, owner: &OwnerReference) -> bool {
        let resource = ClusterObjectSet::RESOURCE;
        let group = Gvk::from_api_version(&owner.api_version, "").group;
        group == *resource.group
            && owner.kind == *resource.kind
            && owner.name == self.name
            && owner.uid == self.uid
    }

    fn controls(&self, object: &Object) -> bool {
        object
            .owner_references()
            .iter()
            .any(|owner| owner.is_controller() && self.is_named_by(owner))
    }
}

impl From<&ClusterObjectSet> for ObjectSetIdentity {
    fn from(set: &ClusterObjectSet) -> Self {
        Self {
            name: set.metadata.name.clone(),
            uid: set.metadata.uid.clone(),
            revision: set.spec.revision,
            extension: set.metadata.labels.get(OWNER_NAME_LABEL).cloned().unwrap_or_default(),
        }
    }
}

/// The collision protection of an object: its own, else that of the phase, else that of the set.
pub(crate) fn effective_protection(
    of_set: &CollisionProtection,
    of_phase: &CollisionProtection,
    of_object: &CollisionProtection,
) -> CollisionProtection {
    let given = [of_object, of_phase, of_set].into_iter().find(|value| !value.as_str().is_empty());
    given.cloned().unwrap_or(CollisionProtection::Prevent)
}

/// Active earlier revisions of the same extension: their objects are taken over without a collision. They are
/// archived when this revision has rolled out. A set without the label of an extension has none.
pub fn previous_revisions<'a>(
    set: &ClusterObjectSet,
    all: &'a [ClusterObjectSet],
) -> Vec<&'a ClusterObjectSet> {
    let Some(owner) = set.metadata.labels.get(OWNER_NAME_LABEL) else { return Vec::new() };
    all.iter()
        .filter(|other| {
            other.metadata.labels.get(OWNER_NAME_LABEL) == Some(owner)
                && other.metadata.name != set.metadata.name
                && other.spec.lifecycle_state != LifecycleState::Archived
                && other.metadata.deletion_timestamp.is_none()
                && other.spec.revision < set.spec.revision
        })
        .collect()
}

/// The controller of an object, as seen from a ClusterObjectSet.
pub(crate) fn current_controller(
    actual: &Object,
    set: &ObjectSetIdentity,
    previous: &[ObjectSetIdentity],
) -> CurrentController {
    if actual.controller_owner().is_none() {
        CurrentController::Absent
    } else if set.controls(actual) {
        CurrentController::ThisSet
    } else if previous.iter().any(|previous| previous.controls(actual)) {
        CurrentController::EarlierRevision
    } else {
        CurrentController::Other
    }
}

/// An object as a ClusterObjectSet writes it: with the labels and annotations of the set and its owner reference.
pub fn managed_object(object: &Object, set: &ObjectSetIdentity) -> Object {
    let mut object = object.clone();
    object.set_label(OWNER_NAME_LABEL, &*set.extension);
    object.set_label(MANAGED_BY_LABEL, MANAGED_BY_VALUE);
    object.set_annotation(REVISION_ANNOTATION, set.revision.to_string());
    object.set(&["metadata", "ownerReferences"], json!([set.owner_reference()]));
    object
}

/// The revision that an object belongs to; zero without one.
///
/// # Errors
/// The annotation is no number.
pub(crate) fn object_revision(object: &Object) -> Result<i64, ReadRevisionError> {
    match object.annotation(REVISION_ANNOTATION) {
        None | Some("") => Ok(0),
        Some(text) => text.parse().map_err(|_| ReadRevisionError(text.to_owned())),
    }
}

/// Decides over an object of a phase. `desired` is a [`managed_object`], `actual` the object of the cluster
/// with its comparison.
///
/// # Errors
/// The revision annotation of the object is no number.
pub fn decide_object(
    desired: &Object,
    actual: Option<(&Object, &ObjectComparison)>,
    set: &ObjectSetIdentity,
    previous: &[ObjectSetIdentity],
    protection: &CollisionProtection,
) -> Result<ObjectDecision, ReadRevisionError> {
    let Some((actual, comparison)) = actual else {
        return Ok(ObjectDecision::Create(Box::new(desired.clone())));
    };
    let is_reused = is_kept_for(actual, set);
    if !is_reused && object_revision(actual)? > set.revision {
        return Ok(ObjectDecision::Progressed);
    }
    let mut object = desired.clone();
    object.set(&["metadata", "resourceVersion"], actual.resource_version().into());
    let collision = || ObjectDecision::Collision { owner: actual.controller_owner() };
    match current_controller(actual, set, previous) {
        CurrentController::ThisSet => {
            let recovers = comparison.is_conflict();
            return Ok(if recovers || comparison.is_modified() {
                ObjectDecision::Apply { object: Box::new(object), force: recovers, recovers }
            } else {
                ObjectDecision::Idle
            });
        }
        CurrentController::Other if *protection != CollisionProtection::None => {
            return Ok(collision());
        }
        CurrentController::Absent if is_reused => {}
        CurrentController::Absent
            if *protection == CollisionProtection::Prevent || has_object_set_labels(actual) =>
        {
            return Ok(collision());
        }
        CurrentController::Other
        | CurrentController::Absent
        | CurrentController::EarlierRevision => {}
    }
    // Earlier owners stay, so that they still notice changes of the object.
    let mut owners: Vec<OwnerReference> = actual
        .owner_references()
        .into_iter()
        .filter(|owner| !set.is_named_by(owner))
        .map(|owner| OwnerReference { controller: Some(false), ..owner })
        .collect();
    owners.push(set.owner_reference());
    object.set(&["metadata", "ownerReferences"], json!(owners));
    Ok(ObjectDecision::Apply { object: Box::new(object), force: true, recovers: false })
}

/// Whether the object was an object of the same extension, and an uninstallation kept it: it has no controller, and
/// the annotation of kept objects.
fn is_kept_for(object: &Object, set: &ObjectSetIdentity) -> bool {
    is_kept(object)
        && object.controller_owner().is_none()
        && !set.extension.is_empty()
        && object.label(OWNER_NAME_LABEL) == Some(&*set.extension)
}

/// Whether the object has the labels and annotations of a ClusterObjectSet, which applied it at some time.
fn has_object_set_labels(object: &Object) -> bool {
    object.label(MANAGED_BY_LABEL) == Some(MANAGED_BY_VALUE)
        && object.annotation(REVISION_ANNOTATION).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::names::olm_v1::RESOURCE_POLICY_ANNOTATION;

    fn set(name: &str, revision: i64) -> ObjectSetIdentity {
        ObjectSetIdentity {
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            revision,
            extension: "e".to_owned(),
        }
    }

    fn plain() -> Object {
        Object::new(&Gvk::from_api_version("v1", "ConfigMap"), "c")
    }

    fn owned_by(owner: &ObjectSetIdentity) -> Object {
        managed_object(&plain(), owner)
    }

    fn without_owner(mut object: Object) -> Object {
        object.remove(&["metadata", "ownerReferences"]);
        object
    }

    /// The object as an uninstallation keeps it.
    fn retained(object: Object) -> Object {
        let mut object = without_owner(object);
        object.set_annotation(RESOURCE_POLICY_ANNOTATION, "keep");
        object
    }

    #[test]
    fn own_protection_outweighs_that_of_phase_and_set() {
        let protection = |text: &str| CollisionProtection::from(text);
        let cases = [
            ("", "", "", "Prevent"),
            ("None", "", "", "None"),
            ("None", "IfNoController", "", "IfNoController"),
            ("None", "IfNoController", "Prevent", "Prevent"),
            ("Prevent", "", "None", "None"),
        ];
        for (set, phase, object, expected) in cases {
            let found =
                effective_protection(&protection(set), &protection(phase), &protection(object));
            // shows OLMV1-143
            assert_eq!(found.as_str(), expected, "{set} {phase} {object}");
        }
    }

    #[test]
    fn existing_objects_are_taken_over_as_the_protection_allows() {
        let (ours, before, other) = (set("e-2", 2), set("e-1", 1), set("f-1", 1));
        let stranger = ObjectSetIdentity { extension: "f".to_owned(), ..other.clone() };
        let mut controlled = owned_by(&other);
        controlled.set_annotation(RESOURCE_POLICY_ANNOTATION, "keep");
        let cases = [
            ("no owner", plain(), ["collision", "apply", "apply"]),
            ("ours", owned_by(&ours), ["idle", "idle", "idle"]),
            ("previous", owned_by(&before), ["apply", "apply", "apply"]),
            ("other", owned_by(&other), ["collision", "collision", "apply"]),
            ("orphan", without_owner(owned_by(&before)), ["collision"; 3]),
            ("later", owned_by(&set("e-3", 3)), ["progressed"; 3]),
            ("kept", retained(owned_by(&before)), ["apply"; 3]),
            ("kept of a later revision", retained(owned_by(&set("e-3", 3))), ["apply"; 3]),
            ("kept of another extension", retained(owned_by(&stranger)), ["collision"; 3]),
            ("kept, and controlled", controlled, ["collision", "collision", "apply"]),
        ];
        let desired = managed_object(&plain(), &ours);
        let previous = [before.clone()];
        for (name, actual, expected) in cases {
            let all = CollisionProtection::ALL;
            for (protection, expected) in all.iter().zip(expected) {
                let comparison = ObjectComparison::default();
                let actual = Some((&actual, &comparison));
                let found = decide_object(&desired, actual, &ours, &previous, protection).unwrap();
                let found = match found {
                    ObjectDecision::Collision { .. } => "collision",
                    ObjectDecision::Apply { force: true, recovers: false, .. } => "apply",
                    ObjectDecision::Idle => "idle",
                    ObjectDecision::Progressed => "progressed",
                    other => panic!("{other:?}"),
                };
                // shows OLMV1-142
                assert_eq!(found, expected, "{name} {protection}");
            }
        }
        let absent = decide_object(&desired, None, &ours, &previous, &CollisionProtection::Prevent);
        assert_eq!(absent, Ok(ObjectDecision::Create(Box::new(desired))));
    }

    #[test]
    fn the_earlier_owner_stays_without_control() {
        let (ours, before) = (set("e-2", 2), set("e-1", 1));
        let (actual, comparison) = (owned_by(&before), ObjectComparison::default());
        let desired = managed_object(&plain(), &ours);
        let decision = decide_object(
            &desired,
            Some((&actual, &comparison)),
            &ours,
            std::slice::from_ref(&before),
            &CollisionProtection::Prevent,
        );
        let Ok(ObjectDecision::Apply { object, .. }) = decision else { panic!("{decision:?}") };
        let owners: Vec<(String, Option<bool>)> = object
            .owner_references()
            .into_iter()
            .map(|owner| (owner.name, owner.controller))
            .collect();
        assert_eq!(owners, [("e-1".to_owned(), Some(false)), ("e-2".to_owned(), Some(true))]);
        assert_eq!(object.annotation(REVISION_ANNOTATION), Some("2"));
    }

    #[test]
    fn a_revision_that_is_no_number_is_an_error() {
        let ours = set("e-1", 1);
        let mut actual = owned_by(&ours);
        actual.set_annotation(REVISION_ANNOTATION, "x");
        assert_eq!(
            object_revision(&actual).unwrap_err().to_string(),
            "getting revision of object: strconv.ParseInt: parsing \"x\": invalid syntax"
        );
    }
}
