//! Decides whether an object is kept or deleted after its owners have changed.

use super::graph::{FOREGROUND, ORPHAN};
use mainstay_client::Propagation;
use mainstay_object::{Object, OwnerReference};

/// The state of an owner that an owner reference names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The owner exists.
    Solid,
    /// The owner is gone, or another object has its name.
    Dangling,
    /// The owner is being deleted and waits for its dependents.
    Waiting,
}

/// The action of the collector for an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CollectorAction {
    /// No action.
    Keep,
    /// Remove the references to these owners: another owner keeps the object.
    DropOwners(Vec<String>),
    /// Delete the object.
    Delete(Propagation),
    /// Clear `blockOwnerDeletion` of the object, then delete it and its dependents.
    DeleteUnblocked,
}

/// The dependents of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dependents {
    /// The object has no dependents.
    None,
    /// The object has dependents.
    Some,
    /// One of the dependents is itself being deleted and waits for its own dependents: owners may
    /// form a cycle, in which each would wait for another for ever.
    Waiting,
}

/// Decides on a live object, given the standing of each of its owners and its dependents.
pub(crate) fn decide(
    live: &Object,
    owners: &[(OwnerReference, Standing)],
    dependents: Dependents,
) -> CollectorAction {
    let is = |standing: Standing| move |entry: &&(OwnerReference, Standing)| entry.1 == standing;
    let solid = owners.iter().filter(is(Standing::Solid)).count();
    let waiting = owners.iter().filter(is(Standing::Waiting)).count();
    if solid == owners.len() {
        return CollectorAction::Keep;
    }
    if solid > 0 {
        let dangling = owners.iter().filter(|entry| entry.1 != Standing::Solid);
        return CollectorAction::DropOwners(dangling.map(|(owner, _)| owner.uid.clone()).collect());
    }
    if waiting > 0 {
        match dependents {
            Dependents::None => {}
            // The owner waits until everything below it is gone.
            Dependents::Some => return CollectorAction::Delete(Propagation::Foreground),
            Dependents::Waiting => return CollectorAction::DeleteUnblocked,
        }
    }
    // A finalizer that is set already carries the propagation policy of the first deletion.
    let held_by = |name: &str| live.finalizers().any(|finalizer| finalizer == name);
    CollectorAction::Delete(if held_by(ORPHAN) {
        Propagation::Orphan
    } else if held_by(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn owner(uid: &str) -> OwnerReference {
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "A", "name": uid, "uid": uid}))
            .unwrap()
    }

    #[test]
    fn an_object_with_one_existing_owner_is_kept() {
        use Dependents::{None, Some};
        use Standing::{Dangling, Solid, Waiting};
        let background = CollectorAction::Delete(Propagation::Background);
        let foreground = CollectorAction::Delete(Propagation::Foreground);
        let live = Object::default();
        for (standings, dependents, verdict) in [
            (vec![], None, CollectorAction::Keep),
            (vec![Solid], Some, CollectorAction::Keep),
            (vec![Dangling], Some, background.clone()),
            (vec![Waiting], None, background),
            (vec![Waiting], Some, foreground.clone()),
            (vec![Waiting, Dangling], Some, foreground),
            (vec![Waiting], Dependents::Waiting, CollectorAction::DeleteUnblocked),
            (
                vec![Solid, Dangling, Waiting],
                Some,
                CollectorAction::DropOwners(vec!["1".into(), "2".into()]),
            ),
        ] {
            let owners: Vec<(OwnerReference, Standing)> = standings
                .iter()
                .enumerate()
                .map(|(at, standing)| (owner(&at.to_string()), *standing))
                .collect();
            assert_eq!(decide(&live, &owners, dependents), verdict, "{standings:?}");
        }
    }

    #[test]
    fn an_existing_finalizer_decides_the_propagation() {
        let owners = [(owner("o"), Standing::Dangling)];
        for (finalizer, propagation) in
            [(ORPHAN, Propagation::Orphan), (FOREGROUND, Propagation::Foreground)]
        {
            let live =
                Object::from_value(json!({"metadata": {"finalizers": [finalizer]}})).unwrap();
            assert_eq!(
                decide(&live, &owners, Dependents::None),
                CollectorAction::Delete(propagation)
            );
        }
    }
}
