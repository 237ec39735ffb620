//! Comparison of a desired ClusterObjectSet with the newest one: what the applier has to write.
//!
//! The API refuses changes of phases and of the collision protection, so such a change needs a new revision.
//! Labels, annotations, probes and the deadline change in place. Upstream applies the desired state and reads
//! the refusal; here the comparison is a function, so nothing is written to find out.

use crate::desired::{DesiredObjectSet, OWNED_ANNOTATIONS, PackedObjectSet};
use crate::digest::{NumberForm, phase_digest};
use crate::pack::{PackObjectsError, pack_objects};
use crate::revisions::next_revision;
use mainstay_api::{ClusterObjectSet, LifecycleState};

/// What the applier has to do with a desired ClusterObjectSet.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectSetChange {
    /// Nothing.
    Unchanged,
    /// The newest ClusterObjectSet gets other labels, annotations, owner, probes or deadline. The applier
    /// sends this object by server-side apply; its phases are those of the newest one.
    Update(Box<ClusterObjectSet>),
    /// A new revision: the Secrets, then the ClusterObjectSet, then the owner references of the Secrets.
    Create(Box<PackedObjectSet>),
}

/// Compares the desired ClusterObjectSet with all of the extension. `namespace` is that of Secrets.
///
/// Phases are equal if the newest set has observed the same content, or if their references are equal. The first
/// rule keeps a revision whose large objects another program compressed. The second rule packs all objects, so
/// it comes last.
///
/// # Errors
/// An object is too large for a Secret.
pub fn compare_object_set(
    desired: &DesiredObjectSet,
    existing: &[ClusterObjectSet],
    namespace: &str,
) -> Result<ObjectSetChange, PackObjectsError> {
    let newest = existing.iter().max_by_key(|set| set.spec.revision);
    let Some(newest) = newest else { return create(desired, existing, namespace) };
    if newest.spec.lifecycle_state == LifecycleState::Archived
        || newest.spec.collision_protection != desired.collision_protection
        || !(is_observed(desired, newest) || has_same_references(desired, newest, namespace)?)
    {
        return create(desired, existing, namespace);
    }
    let phases = newest.spec.phases.clone();
    let update = desired.object_set(&newest.metadata.name, newest.spec.revision, phases);
    if is_same_besides_phases(newest, &update) {
        return Ok(ObjectSetChange::Unchanged);
    }
    Ok(ObjectSetChange::Update(Box::new(update)))
}

fn create(
    desired: &DesiredObjectSet,
    existing: &[ClusterObjectSet],
    namespace: &str,
) -> Result<ObjectSetChange, PackObjectsError> {
    let packed = desired.packed(next_revision(existing), namespace)?;
    Ok(ObjectSetChange::Create(Box::new(packed)))
}

/// Whether the digests that the newest set observed are those of the desired objects.
fn is_observed(desired: &DesiredObjectSet, newest: &ClusterObjectSet) -> bool {
    let observed = &newest.status.observed_phases;
    observed.len() == desired.phases.len()
        && desired.phases.iter().zip(observed).all(|(phase, observed)| {
            let objects = phase.objects.iter().map(|object| (object, NumberForm::Float));
            phase.name == observed.name && phase_digest(&phase.name, objects) == observed.digest
        })
}

/// Whether the phases of the newest set refer to the desired objects, packed under the name of that set.
fn has_same_references(
    desired: &DesiredObjectSet,
    newest: &ClusterObjectSet,
    namespace: &str,
) -> Result<bool, PackObjectsError> {
    let extension = &desired.extension.name;
    let (phases, _) = pack_objects(&desired.phases, &newest.metadata.name, extension, namespace)?;
    Ok(newest.spec.phases == phases)
}

fn is_same_besides_phases(newest: &ClusterObjectSet, desired: &ClusterObjectSet) -> bool {
    let (old, new) = (&newest.metadata, &desired.metadata);
    let has_all = |old: &std::collections::BTreeMap<String, String>,
                   new: &std::collections::BTreeMap<String, String>| {
        new.iter().all(|(name, value)| old.get(name) == Some(value))
    };
    has_all(&old.labels, &new.labels)
        && has_all(&old.annotations, &new.annotations)
        && OWNED_ANNOTATIONS
            .iter()
            .all(|name| !old.annotations.contains_key(*name) || new.annotations.contains_key(*name))
        && new.owner_references.iter().all(|owner| old.owner_references.contains(owner))
        && newest.spec.progress_deadline_minutes == desired.spec.progress_deadline_minutes
        && newest.spec.progression_probes == desired.spec.progression_probes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::{BundleIdentity, ExtensionIdentity};
    use crate::phase::PhaseSplit;
    use mainstay_api::{CollisionProtection, ObservedPhase};
    use mainstay_object::{Gvk, Object};

    fn desired(value: &str, version: &str) -> DesiredObjectSet {
        let mut object = Object::new(&Gvk::from_api_version("v1", "ConfigMap"), "c");
        object.set(&["data", "x"], value.into());
        let bundle = BundleIdentity {
            package: "p".to_owned(),
            version: version.to_owned(),
            ..BundleIdentity::default()
        };
        let extension = ExtensionIdentity { name: "e".to_owned(), ..ExtensionIdentity::default() };
        DesiredObjectSet::from_bundle(vec![object], &bundle, None, extension, PhaseSplit::Never)
    }

    fn created(change: ObjectSetChange) -> ClusterObjectSet {
        match change {
            ObjectSetChange::Create(packed) => packed.object_set,
            other => panic!("{other:?}"),
        }
    }

    fn compare(desired: &DesiredObjectSet, existing: &[ClusterObjectSet]) -> ObjectSetChange {
        compare_object_set(desired, existing, "olmv1-system").unwrap()
    }

    #[test]
    fn first_and_changed_content_make_a_revision_and_equal_content_does_not() {
        let first = created(compare(&desired("1", "1.0.0"), &[]));
        // shows OLMV1-138
        assert_eq!((first.metadata.name.as_str(), first.spec.revision), ("e-1", 1));
        let existing = [first];
        let same = desired("1", "1.0.0");
        // shows OLMV1-138
        assert_eq!(compare(&same, &existing), ObjectSetChange::Unchanged);
        // shows OLMV1-138
        assert_eq!(created(compare(&desired("2", "1.0.0"), &existing)).metadata.name, "e-2");
        // The version is an annotation of each object.
        assert_eq!(created(compare(&desired("1", "1.0.1"), &existing)).metadata.name, "e-2");
        let adopting = DesiredObjectSet {
            collision_protection: CollisionProtection::None,
            ..desired("1", "1.0.0")
        };
        assert_eq!(created(compare(&adopting, &existing)).metadata.name, "e-2");
    }

    #[test]
    fn an_archived_newest_revision_is_followed_by_a_new_one() {
        let mut first = created(compare(&desired("1", "1.0.0"), &[]));
        first.spec.lifecycle_state = LifecycleState::Archived;
        assert_eq!(created(compare(&desired("1", "1.0.0"), &[first])).metadata.name, "e-2");
    }

    #[test]
    fn annotations_and_the_deadline_change_in_place() {
        let first = created(compare(&desired("1", "1.0.0"), &[]));
        let mut other = desired("1", "1.0.0");
        other.annotations.insert("olm.properties".to_owned(), "[]".to_owned());
        other.extension.progress_deadline_minutes = Some(10);
        let ObjectSetChange::Update(updated) = compare(&other, std::slice::from_ref(&first)) else {
            panic!("no update");
        };
        assert_eq!(updated.spec.progress_deadline_minutes, Some(10));
        assert_eq!(updated.spec.phases, first.spec.phases);
        let updated = [*updated];
        // shows OLMV1-138
        assert_eq!(compare(&other, &updated), ObjectSetChange::Unchanged);
        // The annotation goes with the property.
        let back = compare(&desired("1", "1.0.0"), &updated);
        assert!(matches!(back, ObjectSetChange::Update(_)), "{back:?}");
    }

    #[test]
    fn observed_content_counts_if_references_differ() {
        let desired = desired("1", "1.0.0");
        let mut first = created(compare(&desired, &[]));
        let reference = first.spec.phases[0].objects[0].reference.as_mut().unwrap();
        reference.key = "compressed-by-another-program".to_owned();
        let digest = phase_digest(
            "configuration",
            desired.objects().map(|object| (object, NumberForm::Float)),
        );
        assert!(matches!(
            compare(&desired, std::slice::from_ref(&first)),
            ObjectSetChange::Create(_)
        ));
        first.status.observed_phases =
            vec![ObservedPhase { name: "configuration".to_owned(), digest }];
        assert_eq!(compare(&desired, &[first]), ObjectSetChange::Unchanged);
    }
}
