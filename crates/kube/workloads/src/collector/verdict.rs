//! What becomes of an object whose owners have changed.

use super::graph::{FOREGROUND, ORPHAN};
use mainstay_client::Propagation;
use mainstay_object::{Object, OwnerReference};

/// How an owner reference stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The owner is there.
    Solid,
    /// The owner is gone, or another object has its name.
    Dangling,
    /// The owner is being deleted and waits for its dependents.
    Waiting,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing.
    Keep,
    /// Remove the references to these owners: another owner keeps the object.
    DropOwners(Vec<String>),
    /// Delete it.
    Delete(Propagation),
    /// Have it hold none of its owners up any longer, then delete it and what depends on it.
    DeleteUnblocked,
}

/// What depends on an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dependents {
    /// Nothing.
    None,
    /// Objects.
    Some,
    /// Objects one of which is itself being deleted and waits for what depends on it: owners may
    /// form a ring, in which everybody would wait for everybody.
    Waiting,
}

/// Decides on a live object, given how each of its references stands and what depends on it.
pub(crate) fn decide(
    live: &Object,
    owners: &[(OwnerReference, Standing)],
    dependents: Dependents,
) -> Verdict {
    let is = |wanted: Standing| move |entry: &&(OwnerReference, Standing)| entry.1 == wanted;
    let solid = owners.iter().filter(is(Standing::Solid)).count();
    let waiting = owners.iter().filter(is(Standing::Waiting)).count();
    if solid == owners.len() {
        return Verdict::Keep;
    }
    if solid > 0 {
        let gone = owners.iter().filter(|entry| entry.1 != Standing::Solid);
        return Verdict::DropOwners(gone.map(|(owner, _)| owner.uid.clone()).collect());
    }
    if waiting > 0 {
        match dependents {
            Dependents::None => {}
            // The owner wants to see everything below it gone before it goes.
            Dependents::Some => return Verdict::Delete(Propagation::Foreground),
            Dependents::Waiting => return Verdict::DeleteUnblocked,
        }
    }
    // A finalizer that is there already says what the one who deletes it first wanted.
    let held_by = |name: &str| live.finalizers().any(|held| held == name);
    Verdict::Delete(if held_by(ORPHAN) {
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
    fn one_solid_owner_keeps_an_object() {
        use Dependents::{None, Some};
        use Standing::{Dangling, Solid, Waiting};
        let background = Verdict::Delete(Propagation::Background);
        let foreground = Verdict::Delete(Propagation::Foreground);
        let live = Object::default();
        for (standings, dependents, verdict) in [
            (vec![], None, Verdict::Keep),
            (vec![Solid], Some, Verdict::Keep),
            (vec![Dangling], Some, background.clone()),
            (vec![Waiting], None, background),
            (vec![Waiting], Some, foreground.clone()),
            (vec![Waiting, Dangling], Some, foreground),
            (vec![Waiting], Dependents::Waiting, Verdict::DeleteUnblocked),
            (
                vec![Solid, Dangling, Waiting],
                Some,
                Verdict::DropOwners(vec!["1".into(), "2".into()]),
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
    fn a_finalizer_that_is_there_already_decides_how() {
        let owners = [(owner("o"), Standing::Dangling)];
        for (finalizer, propagation) in
            [(ORPHAN, Propagation::Orphan), (FOREGROUND, Propagation::Foreground)]
        {
            let live =
                Object::from_value(json!({"metadata": {"finalizers": [finalizer]}})).unwrap();
            assert_eq!(decide(&live, &owners, Dependents::None), Verdict::Delete(propagation));
        }
    }
}
