//! ClusterObjectSets of recorded cases, built again from their bundles.

use crate::cases::{RecordedStep, SYSTEM_NAMESPACE, cases};
use mainstay_api::{ClusterObjectSet, LifecycleState};
use mainstay_object::Object;
use mainstay_objectsets::{
    ObjectSecret, ObjectSetChange, SecretLookup, compare_object_set, deleted_revisions,
    observed_phases, resolve_phases,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// A set without what changes after its creation.
fn comparable(set: &ClusterObjectSet) -> Value {
    let mut value = set.to_object().unwrap().into_value();
    let fields = value.as_object_mut().unwrap();
    fields.remove("status");
    fields["spec"]["lifecycleState"] = "Active".into();
    for name in ["finalizers", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        fields["metadata"].as_object_mut().unwrap().remove(name);
    }
    value
}

/// A Secret with its objects in words.
fn in_words(secret: &ObjectSecret) -> Value {
    let mut object = secret.to_object();
    for (key, bytes) in &secret.data {
        let content: Value = serde_json::from_slice(bytes).unwrap();
        let content = Object::from_value(content).unwrap();
        let words = format!("{} {}/{}", content.kind(), content.namespace(), content.name());
        object.set(&["data", key], words.into());
    }
    object.into_value()
}

fn recorded_secrets(step: &RecordedStep, set: &str) -> BTreeMap<String, Value> {
    let is_of_set = |secret: &&Object| {
        secret.kind() == "Secret"
            && secret.namespace() == SYSTEM_NAMESPACE
            && secret.label("olm.operatorframework.io/revision-name") == Some(set)
    };
    let without_owner = |secret: &Object| {
        let mut secret = secret.clone();
        secret.remove(&["metadata", "ownerReferences"]);
        (secret.name().to_owned(), secret.into_value())
    };
    step.objects.iter().filter(is_of_set).map(without_owner).collect()
}

#[test]
fn recorded_sets_are_built_again_from_their_bundles() {
    let Some(data) = mainstay_testdata::unpack("answers/olm-v1", "recorded object sets") else {
        return;
    };
    let (mut sets, mut secrets, mut digests, mut changes, mut deleted) = (0, 0, 0, 0, 0);
    for steps in cases(&data.path().join("olm-v1/cases")) {
        let mut known: Vec<Value> = Vec::new();
        let mut before: Vec<ClusterObjectSet> = Vec::new();
        for step in &steps {
            for set in &step.sets {
                let place = format!("{}/{}", step.place, set.metadata.name);
                let expected = comparable(set);
                let Some(extension) = step.extension_of(set) else { continue };
                if known.contains(&expected) {
                    continue;
                }
                known.push(expected.clone());
                let desired = step.build(set, &extension);
                let built = if set
                    .spec
                    .phases
                    .iter()
                    .any(|phase| phase.objects.iter().any(|object| object.object.is_some()))
                {
                    desired.inline(set.spec.revision)
                } else {
                    let packed = desired.packed(set.spec.revision, SYSTEM_NAMESPACE).unwrap();
                    let found: BTreeMap<String, Value> = packed
                        .secrets
                        .iter()
                        .map(|secret| (secret.name.clone(), in_words(secret)))
                        .collect();
                    assert_eq!(found, recorded_secrets(step, &set.metadata.name), "{place}");
                    secrets += found.len();
                    let objects: BTreeMap<&str, Object> = packed
                        .secrets
                        .iter()
                        .map(|secret| (&*secret.name, secret.to_object()))
                        .collect();
                    let phases = resolve_phases(&set.spec, |reference| {
                        SecretLookup::Found(&objects[&*reference.name])
                    });
                    if !set.status.observed_phases.is_empty() {
                        let observed = observed_phases(&phases.unwrap());
                        assert_eq!(observed, set.status.observed_phases, "{place}");
                        digests += observed.len();
                    }
                    packed.object_set
                };
                assert_eq!(comparable(&built), expected, "{place}");
                if set.spec.lifecycle_state == LifecycleState::Active {
                    let change =
                        compare_object_set(&desired, std::slice::from_ref(set), SYSTEM_NAMESPACE);
                    assert_eq!(change.unwrap(), ObjectSetChange::Unchanged, "{place}");
                }
                // The change from the step before.
                let earlier: Vec<ClusterObjectSet> = before
                    .iter()
                    .filter(|other| other.metadata.labels == set.metadata.labels)
                    .cloned()
                    .collect();
                if earlier.is_empty() {
                    sets += 1;
                    continue;
                }
                let mut change = compare_object_set(&desired, &earlier, SYSTEM_NAMESPACE).unwrap();
                if change == ObjectSetChange::Unchanged {
                    // An administrator archived the set in this step.
                    let now: Vec<ClusterObjectSet> = step
                        .sets
                        .iter()
                        .filter(|other| {
                            earlier.iter().any(|set| set.metadata.name == other.metadata.name)
                        })
                        .cloned()
                        .collect();
                    change = compare_object_set(&desired, &now, SYSTEM_NAMESPACE).unwrap();
                }
                let found = match change {
                    ObjectSetChange::Create(packed) => {
                        let name = packed.object_set.metadata.name;
                        let gone = deleted_revisions(&earlier).into_iter().map(|set| {
                            deleted += 1;
                            set.metadata.name.clone()
                        });
                        for name in gone {
                            let is_there = step.sets.iter().any(|set| set.metadata.name == name);
                            assert!(!is_there, "{place}: {name}");
                        }
                        name
                    }
                    ObjectSetChange::Update(updated) => updated.metadata.name,
                    ObjectSetChange::Unchanged => panic!("{place}: unchanged"),
                };
                assert_eq!(found, set.metadata.name, "{place}");
                changes += 1;
                sets += 1;
            }
            before.clone_from(&step.sets);
        }
    }
    assert_eq!((sets, secrets, digests, changes, deleted), (59, 60, 244, 31, 3));
    mainstay_testdata::ran(&format!(
        "{sets} recorded object sets, {secrets} Secrets, {digests} digests of phases, {changes} changes, \
         {deleted} deleted revisions"
    ));
}
