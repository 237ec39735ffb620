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
}

/// Decides on a live object, given how each of its references stands and whether others depend on
/// it.
pub(crate) fn decide(
    live: &Object,
    owners: &[(OwnerReference, Standing)],
    has_dependents: bool,
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
    if waiting > 0 && has_dependents {
        // The owner wants to see everything below it gone before it goes.
        return Verdict::Delete(Propagation::Foreground);
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
        use Standing::{Dangling, Solid, Waiting};
        let background = Verdict::Delete(Propagation::Background);
        let foreground = Verdict::Delete(Propagation::Foreground);
        let live = Object::default();
        for (standings, has_dependents, verdict) in [
            (vec![], false, Verdict::Keep),
            (vec![Solid], true, Verdict::Keep),
            (vec![Dangling], true, background.clone()),
            (vec![Waiting], false, background),
            (vec![Waiting], true, foreground.clone()),
            (vec![Waiting, Dangling], true, foreground),
            (
                vec![Solid, Dangling, Waiting],
                true,
                Verdict::DropOwners(vec!["1".into(), "2".into()]),
            ),
        ] {
            let owners: Vec<(OwnerReference, Standing)> = standings
                .iter()
                .enumerate()
                .map(|(at, standing)| (owner(&at.to_string()), *standing))
                .collect();
            assert_eq!(decide(&live, &owners, has_dependents), verdict, "{standings:?}");
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
            assert_eq!(decide(&live, &owners, false), Verdict::Delete(propagation));
        }
    }
}
