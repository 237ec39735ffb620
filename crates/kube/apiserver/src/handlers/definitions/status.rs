//! The status of definitions: names that are theirs, and conditions.
//!
//! The original has a controller for each condition, and each writes on its own; clients that watch
//! see the steps. [`next`] is what the next of them would write, as a plain function; it ends.

use mainstay_gocompat::quote;
use mainstay_kinds::ClaimedNames;
use mainstay_object::Object;
use mainstay_schema::crd::{Approval, is_protected};
use serde_json::{Value, json};

/// Holds a definition until its objects are gone.
pub(super) const CLEAN_UP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What a definition is called by and under which kinds: each must be free in its group.
pub(super) struct Names {
    /// What is its own now (`status.acceptedNames`).
    pub(super) accepted: Value,
    /// Reason and message of the last name that another definition has already.
    pub(super) conflict: Option<(&'static str, String)>,
}

/// Compares the names that a definition asks for with those that all definitions of its group,
/// itself included, have already. A name that was accepted before stays accepted.
pub(super) fn names(object: &Object, taken: &ClaimedNames) -> Names {
    let empty = json!({"plural": "", "kind": ""});
    let before = object.get(&["status", "acceptedNames"]).cloned().unwrap_or(empty);
    let wanted = object.get(&["spec", "names"]).cloned().unwrap_or_default();
    let mut names = Names { accepted: before.clone(), conflict: None };
    for (field, reason) in [
        ("plural", "PluralConflict"),
        ("singular", "SingularConflict"),
        ("shortNames", "ShortNamesConflict"),
        ("kind", "KindConflict"),
        ("listKind", "ListKindConflict"),
    ] {
        let set =
            if matches!(field, "kind" | "listKind") { &taken.kinds } else { &taken.resources };
        let texts = |value: &Value| -> Vec<String> {
            match value.get(field) {
                Some(Value::String(text)) => vec![text.clone()],
                Some(Value::Array(items)) => {
                    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
                }
                _ => Vec::new(),
            }
        };
        let had = texts(&before);
        let mut conflicts: Vec<String> = texts(&wanted)
            .iter()
            .filter(|name| !had.contains(name) && set.contains(*name))
            .map(|name| format!("{} is already in use", quote(name)))
            .collect();
        conflicts.dedup();
        if conflicts.is_empty() {
            copy(&wanted, &mut names.accepted, field);
        } else {
            let message = match conflicts.as_slice() {
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            };
            names.conflict = Some((reason, message));
        }
    }
    copy(&wanted, &mut names.accepted, "categories");
    names
}

fn copy(from: &Value, to: &mut Value, field: &str) {
    let Some(to) = to.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => drop(to.insert(field.to_owned(), value.clone())),
        None => drop(to.remove(field)),
    }
}

/// The definition with the next change of its status; none if nothing is left to say.
pub(super) fn next(object: &Object, taken: &ClaimedNames, now: &str) -> Option<Object> {
    let (differs, is_protected) =
        (differs(object), is_protected(object.str(&["spec", "group"]).unwrap_or_default()));
    if !(differs || waits_to_be_established(object) || is_protected) {
        return None;
    }
    let mut next = object.clone();
    if differs {
        let names = names(object, taken);
        next.set(&["status", "acceptedNames"], names.accepted);
        let established = object.condition("Established");
        match &names.conflict {
            None => {
                let texts = ("NoConflicts", "no conflicts found");
                set_condition(&mut next, "NamesAccepted", true, texts, now);
                if established != Some("True") {
                    let texts = ("Installing", "the initial names have been accepted");
                    set_condition(&mut next, "Established", false, texts, now);
                }
            }
            Some((reason, message)) => {
                set_condition(&mut next, "NamesAccepted", false, (reason, message), now);
                if established.is_none() {
                    let texts = ("NotAccepted", "not all names are accepted");
                    set_condition(&mut next, "Established", false, texts, now);
                }
            }
        }
        if next != *object {
            return Some(next);
        }
    }
    if waits_to_be_established(object) {
        let texts = ("InitialNamesAccepted", "the initial names have been accepted");
        set_condition(&mut next, "Established", true, texts, now);
        return Some(next);
    }
    if is_protected {
        let approval = Approval::of(object);
        let reason = match approval {
            Approval::Missing => "MissingAnnotation",
            Approval::Invalid => "InvalidAnnotation",
            Approval::Approved => "ApprovedAnnotation",
            Approval::Bypassed => "UnapprovedAnnotation",
        };
        let kind = "KubernetesAPIApprovalPolicyConformant";
        let message = approval.message(object);
        let holds = approval == Approval::Approved;
        set_condition(&mut next, kind, holds, (reason, &message), now);
    }
    (next != *object).then_some(next)
}

/// Whether the names are accepted and nobody has said yet that the kinds are served.
fn waits_to_be_established(object: &Object) -> bool {
    object.condition("NamesAccepted") == Some("True")
        && object.condition("Established") != Some("True")
}

/// Whether the server ended before all was said.
pub(super) fn is_unsettled(object: &Object) -> bool {
    differs(object) || object.condition("Established").is_none_or(|status| status != "True")
}

/// Whether the names that are accepted are not those that are asked for.
fn differs(object: &Object) -> bool {
    let of = |path: &[&str]| -> Vec<(String, Value)> {
        let names = object.get(path).and_then(Value::as_object).into_iter().flatten();
        names
            .filter(|(_, value)| !value.is_null() && *value != "" && *value != &json!([]))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    of(&["spec", "names"]) != of(&["status", "acceptedNames"])
}

/// Marks a definition whose deletion was asked for.
pub(super) fn mark_pending(object: &mut Object, now: &str) {
    let texts = (
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
    set_condition(object, "Terminating", true, texts, now);
}

/// Says that objects are being deleted; whether that was news.
pub(super) fn mark_in_progress(object: &mut Object, now: &str) -> bool {
    let before = object.clone();
    let texts = ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
    set_condition(object, "Terminating", true, texts, now);
    *object != before
}

/// Says that all objects are gone, and takes the finalizer off.
pub(super) fn mark_done(object: &mut Object, now: &str) {
    let texts = if object.condition("Established") == Some("True") {
        ("InstanceDeletionCompleted", "removed all instances")
    } else {
        ("NeverEstablished", "resource was never established")
    };
    set_condition(object, "Terminating", false, texts, now);
    let left: Vec<String> =
        object.finalizers().filter(|one| *one != CLEAN_UP).map(str::to_owned).collect();
    if left.is_empty() {
        object.remove(&["metadata", "finalizers"]);
    } else {
        object.set(&["metadata", "finalizers"], left.into());
    }
}

/// Sets a condition in its place, or behind the others. Its time changes with its status only.
fn set_condition(
    object: &mut Object,
    kind: &str,
    holds: bool,
    (reason, message): (&str, &str),
    now: &str,
) {
    let mut conditions = object.array(&["status", "conditions"]).to_vec();
    let status = if holds { "True" } else { "False" };
    let at =
        conditions.iter().position(|one| one.get("type").and_then(Value::as_str) == Some(kind));
    let since = at
        .and_then(|at| conditions.get(at))
        .filter(|one| one.get("status").and_then(Value::as_str) == Some(status))
        .and_then(|one| one.get("lastTransitionTime").cloned())
        .unwrap_or_else(|| now.into());
    let condition = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since,
    });
    match at {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    object.set(&["status", "conditions"], conditions.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Object {
        let value = json!({
            "metadata": {"name": "as.b.io"},
            "spec": {"group": "b.io", "names": {
                "plural": "as", "singular": "a", "kind": "A", "listKind": "AList", "shortNames": ["x"],
            }},
            "status": {"acceptedNames": {"plural": "", "kind": ""}, "conditions": null},
        });
        Object::from_value(value).unwrap()
    }

    fn reasons(object: &Object) -> Vec<String> {
        let conditions = object.array(&["status", "conditions"]).iter();
        conditions
            .map(|condition| {
                format!("{}={}", condition["type"], condition["reason"]).replace('"', "")
            })
            .collect()
    }

    #[test]
    fn free_names_are_accepted_then_established_then_nothing_is_left_to_say() {
        let taken = ClaimedNames::default();
        let first = next(&definition(), &taken, "now").unwrap();
        assert_eq!(reasons(&first), ["NamesAccepted=NoConflicts", "Established=Installing"]);
        assert_eq!(first.get(&["status", "acceptedNames"]), first.get(&["spec", "names"]));
        let second = next(&first, &taken, "now").unwrap();
        assert_eq!(reasons(&second)[1], "Established=InitialNamesAccepted");
        assert_eq!(next(&second, &taken, "later"), None);
    }

    #[test]
    fn a_name_that_is_taken_is_not_accepted_the_others_are() {
        let taken =
            ClaimedNames { resources: ["x".to_owned()].into(), kinds: ["A".to_owned()].into() };
        let first = next(&definition(), &taken, "now").unwrap();
        assert_eq!(reasons(&first), ["NamesAccepted=KindConflict", "Established=NotAccepted"]);
        let accepted = first.get(&["status", "acceptedNames"]).unwrap();
        assert_eq!(
            *accepted,
            json!({"plural": "as", "singular": "a", "kind": "", "listKind": "AList"})
        );
        assert_eq!(next(&first, &taken, "later"), None);
        assert!(next(&first, &ClaimedNames::default(), "later").is_some());
    }

    #[test]
    fn groups_of_the_community_say_whether_they_are_approved() {
        let mut object = definition();
        object.set(&["spec", "group"], "b.k8s.io".into());
        let annotations = json!({"api-approved.kubernetes.io": "unapproved, a test"});
        object.set(&["metadata", "annotations"], annotations);
        let taken = ClaimedNames::default();
        while let Some(after) = next(&object, &taken, "now") {
            object = after;
        }
        let last = reasons(&object).pop().unwrap();
        assert_eq!(last, "KubernetesAPIApprovalPolicyConformant=UnapprovedAnnotation");
    }
}
