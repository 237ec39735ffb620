//! What may stay of an operator that was uninstalled.

use super::Back;
use super::dump::{Dump, Id};
use mainstay_api::names;
use mainstay_api::resources::{OPERATOR, OPERATOR_GROUP};
use mainstay_object::{Object, known};
use std::collections::BTreeSet;

/// An entry for which there need not be a case.
const LOCAL: &str = "local API";

/// Something that may stay.
struct Stay {
    /// What one is called in the page; several are called so with an `s`.
    name: &'static str,
    /// Whether an object is of that sort.
    is: fn(&Id, &Object, &Left) -> bool,
    /// Why it stays.
    why: &'static str,
}

/// What is left of an operator, as far as that decides what else may be.
#[derive(Default)]
struct Left {
    /// The definitions: `kind.group` of each, and its name.
    kinds: BTreeSet<(String, String)>,
    /// The uids of the definitions.
    uids: BTreeSet<String>,
}

/// All of it. An entry that no package needs is a fault.
const STAYS: &[Stay] = &[
    Stay {
        name: "definition",
        is: |id, _, _| id.kind == *known::CUSTOM_RESOURCE_DEFINITION.kind,
        why: "with a definition its objects would go, which people have made",
    },
    Stay {
        name: "object",
        is: |id, _, left| left.kinds.contains(&(id.kind.clone(), id.group.clone())),
        why: "people have made them",
    },
    Stay {
        name: "role",
        is: |id, object, left| {
            id.kind == *known::CLUSTER_ROLE.kind
                && object
                    .owner_references()
                    .iter()
                    .any(|owner_reference| left.uids.contains(&owner_reference.uid))
        },
        why: "whoever may work with the objects still may; they go with the definition",
    },
    Stay {
        name: "Operator",
        is: |id, _, left| id.kind == *OPERATOR.kind && !left.uids.is_empty(),
        why: "it lists what is left, which is definitions; it goes with them",
    },
    Stay {
        name: LOCAL,
        is: |id, object, left| {
            let service =
                object.get(&["spec", "service"]).is_some_and(|service| !service.is_null());
            let group = object.str(&["spec", "group"]).unwrap_or_default();
            id.kind == *known::API_SERVICE.kind
                && !service
                && left.kinds.iter().any(|(_, of)| of == group)
        },
        why: "the server makes one for each version of the groups that it serves",
    },
];

/// Something that may be another than before on what was there before.
pub(super) struct Change {
    /// What it is called.
    pub(super) name: &'static str,
    /// Takes it from an object, if that has it.
    pub(super) hide: fn(&mut Object),
    /// Why it is another.
    why: &'static str,
}

/// The rules that a role of a group keeps: those that it gathers may go before it gathers nothing.
const KEPT: &str = "rules of a group's role";

/// All of it. An entry that no package needs is a fault, but for [`KEPT`].
pub(super) const CHANGES: &[Change] = &[
    Change {
        name: "rules of a role that gathers them",
        hide: |object| {
            if object.get(&["aggregationRule"]).is_some() {
                object.remove(&["rules"]);
            }
        },
        why: "they are those of the roles that stay",
    },
    Change {
        name: KEPT,
        hide: |object| {
            if object.label(names::OWNER_KIND) == Some(&OPERATOR_GROUP.kind) {
                object.remove(&["rules"]);
            }
        },
        why: "once its group has no operators it gathers nothing any more, and keeps what it has",
    },
    Change {
        name: "APIs of a group",
        hide: |object| {
            if object.annotation(names::PROVIDED_APIS) == Some("") {
                object.remove(&["metadata", "annotations", names::PROVIDED_APIS]);
            }
            if object.get(&["metadata", "annotations"]) == Some(&serde_json::json!({})) {
                object.remove(&["metadata", "annotations"]);
            }
        },
        why: "a list that is empty again is written as an empty list",
    },
];

/// Names of what the lists have and no package left behind.
pub(super) fn unused<'a>(all: impl IntoIterator<Item = &'a Back>) -> Vec<&'static str> {
    let mut used: BTreeSet<&str> = BTreeSet::new();
    for back in all {
        used.extend(back.stays.keys());
        used.extend(&back.changes);
    }
    // Not every server shows them.
    let known = STAYS.iter().map(|exception| exception.name).filter(|name| *name != LOCAL);
    let changes = CHANGES.iter().map(|exception| exception.name).filter(|name| *name != KEPT);
    known.chain(changes).filter(|name| !used.contains(name)).collect()
}

/// What stays and why, for the page.
pub(super) fn about() -> impl Iterator<Item = (&'static str, &'static str)> {
    STAYS.iter().map(|exception| (exception.name, exception.why))
}

/// What may be another and why, for the page.
pub(super) fn about_changes() -> impl Iterator<Item = (&'static str, &'static str)> {
    CHANGES.iter().map(|exception| (exception.name, exception.why))
}

/// Judges what is there and was not: counts what may, and says what may not.
pub(super) fn judge(before: &Dump, after: &Dump, back: &mut Back) {
    let mut left = Left::default();
    for (id, _, object) in after.beyond(before) {
        if id.kind == *known::CUSTOM_RESOURCE_DEFINITION.kind {
            let text = |path: &[&str]| object.str(path).unwrap_or_default().to_owned();
            left.kinds.insert((text(&["spec", "names", "kind"]), text(&["spec", "group"])));
            left.uids.insert(object.uid().to_owned());
        }
    }
    for (id, _, object) in after.beyond(before) {
        match STAYS.iter().find(|exception| (exception.is)(id, object, &left)) {
            Some(stay) => *back.stays.entry(stay.name).or_default() += 1,
            None => back.wrong.push(format!("{id} stays")),
        }
    }
    alike(before, after, back);
}

/// Judges whether everything is there that was, as it was.
fn alike(before: &Dump, after: &Dump, back: &mut Back) {
    for (id, _, _) in before.beyond(after) {
        back.wrong.push(format!("{id} was there before, and is not any more"));
    }
    let (wrong, changes) = before.changed(after);
    back.wrong.extend(wrong);
    back.changes.extend(changes);
}

/// Judges whether nothing at all stays.
pub(super) fn nothing(before: &Dump, after: &Dump, back: &mut Back) {
    for (id, _, _) in after.beyond(before) {
        back.wrong.push(format!("{id} stays, against the will of people"));
    }
    alike(before, after, back);
}

/// Whether an object comes and goes with others, without a word.
pub(super) fn follows(id: &Id, object: &Object) -> bool {
    /// Made by Kubernetes for objects that are told of.
    const MADE: [&str; 5] = ["Pod", "ReplicaSet", "Endpoints", "EndpointSlice", "IPAddress"];
    let copied = object.label(names::COPIED_FROM).is_some();
    let local = id.kind == *known::API_SERVICE.kind
        && object.get(&["spec", "service"]).is_none_or(serde_json::Value::is_null);
    copied || local || MADE.contains(&&*id.kind)
}
