//! Status of CRDs: accepted names, and conditions.
//!
//! kube-apiserver has a controller for each condition, and each writes separately; clients observe
//! the steps. [`next_status`] is a pure function that returns the result of the next step, and none
//! after the last one.

use mainstay_gocompat::quote;
use mainstay_kinds::ClaimedNames;
use mainstay_object::Object;
use mainstay_schema::crd::{Approval, is_protected};
use serde_json::{Value, json};

/// The finalizer that keeps a CRD until its objects are deleted.
pub(super) const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The names of a CRD: each must be free in its group.
pub(super) struct Names {
    /// The accepted names (`status.acceptedNames`).
    pub(super) accepted: Value,
    /// Reason and message for the last name that another CRD has.
    pub(super) conflict: Option<(&'static str, String)>,
}

/// Compares the names of a CRD with the names that are in use in its group. A name that was
/// accepted before stays accepted.
pub(super) fn names(object: &Object, names_in_use: &ClaimedNames) -> Names {
    let empty = json!({"plural": "", "kind": ""});
    let previous = object.get(&["status", "acceptedNames"]).cloned().unwrap_or(empty);
    let spec_names = object.get(&["spec", "names"]).cloned().unwrap_or_default();
    let mut names = Names { accepted: previous.clone(), conflict: None };
    for (field, reason) in [
        ("plural", "PluralConflict"),
        ("singular", "SingularConflict"),
        ("shortNames", "ShortNamesConflict"),
        ("kind", "KindConflict"),
        ("listKind", "ListKindConflict"),
    ] {
        let set = if matches!(field, "kind" | "listKind") {
            &names_in_use.kinds
        } else {
            &names_in_use.resources
        };
        let texts = |value: &Value| -> Vec<String> {
            match value.get(field) {
                Some(Value::String(text)) => vec![text.clone()],
                Some(Value::Array(items)) => {
                    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
                }
                _ => Vec::new(),
            }
        };
        let accepted_names = texts(&previous);
        let mut conflicts: Vec<String> = texts(&spec_names)
            .iter()
            .filter(|name| !accepted_names.contains(name) && set.contains(*name))
            .map(|name| format!("{} is already in use", quote(name)))
            .collect();
        conflicts.dedup();
        if conflicts.is_empty() {
            copy(&spec_names, &mut names.accepted, field);
        } else {
            let message = match conflicts.as_slice() {
                [finalizer] => finalizer.clone(),
                all => format!("[{}]", all.join(", ")),
            };
            names.conflict = Some((reason, message));
        }
    }
    copy(&spec_names, &mut names.accepted, "categories");
    names
}

fn copy(from: &Value, to: &mut Value, field: &str) {
    let Some(to) = to.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => drop(to.insert(field.to_owned(), value.clone())),
        None => drop(to.remove(field)),
    }
}

/// The CRD with the next change of its status; none if the status is complete.
pub(super) fn next_status(
    object: &Object,
    names_in_use: &ClaimedNames,
    now: &str,
) -> Option<Object> {
    let (names_differ, is_protected) =
        (names_differ(object), is_protected(object.str(&["spec", "group"]).unwrap_or_default()));
    if !(names_differ || needs_established(object) || is_protected) {
        return None;
    }
    let mut next_status = object.clone();
    if names_differ {
        let names = names(object, names_in_use);
        next_status.set(&["status", "acceptedNames"], names.accepted);
        let established = object.condition("Established");
        match &names.conflict {
            None => {
                let texts = ("NoConflicts", "no conflicts found");
                set_condition(&mut next_status, "NamesAccepted", true, texts, now);
                if established != Some("True") {
                    let texts = ("Installing", "the initial names have been accepted");
                    set_condition(&mut next_status, "Established", false, texts, now);
                }
            }
            Some((reason, message)) => {
                set_condition(&mut next_status, "NamesAccepted", false, (reason, message), now);
                if established.is_none() {
                    let texts = ("NotAccepted", "not all names are accepted");
                    set_condition(&mut next_status, "Established", false, texts, now);
                }
            }
        }
        if next_status != *object {
            return Some(next_status);
        }
    }
    if needs_established(object) {
        let texts = ("InitialNamesAccepted", "the initial names have been accepted");
        set_condition(&mut next_status, "Established", true, texts, now);
        return Some(next_status);
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
        set_condition(&mut next_status, kind, holds, (reason, &message), now);
    }
    (next_status != *object).then_some(next_status)
}

/// Whether the names are accepted and the condition `Established` is not true yet.
fn needs_established(object: &Object) -> bool {
    object.condition("NamesAccepted") == Some("True")
        && object.condition("Established") != Some("True")
}

/// Whether the server ended before the status was complete.
pub(super) fn is_incomplete(object: &Object) -> bool {
    names_differ(object) || object.condition("Established").is_none_or(|status| status != "True")
}

/// Whether the accepted names differ from those of the spec.
fn names_differ(object: &Object) -> bool {
    let set_names = |path: &[&str]| -> Vec<(String, Value)> {
        let names = object.get(path).and_then(Value::as_object).into_iter().flatten();
        names
            .filter(|(_, value)| !value.is_null() && *value != "" && *value != &json!([]))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    set_names(&["spec", "names"]) != set_names(&["status", "acceptedNames"])
}

/// Sets the condition of a CRD whose deletion was requested.
pub(super) fn mark_pending(object: &mut Object, now: &str) {
    let texts = (
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
    set_condition(object, "Terminating", true, texts, now);
}

/// Sets the condition that objects are being deleted; returns whether it changed.
pub(super) fn mark_in_progress(object: &mut Object, now: &str) -> bool {
    let previous = object.clone();
    let texts = ("InstanceDeletionInProgress", "CustomResource deletion is in progress");
    set_condition(object, "Terminating", true, texts, now);
    *object != previous
}

/// Sets the condition that all objects are deleted, and removes the finalizer.
pub(super) fn mark_done(object: &mut Object, now: &str) {
    let texts = if object.condition("Established") == Some("True") {
        ("InstanceDeletionCompleted", "removed all instances")
    } else {
        ("NeverEstablished", "resource was never established")
    };
    set_condition(object, "Terminating", false, texts, now);
    let finalizers: Vec<String> = object
        .finalizers()
        .filter(|finalizer| *finalizer != CLEANUP_FINALIZER)
        .map(str::to_owned)
        .collect();
    if finalizers.is_empty() {
        object.remove(&["metadata", "finalizers"]);
    } else {
        object.set(&["metadata", "finalizers"], finalizers.into());
    }
}

/// Sets a condition in place, or appends it. Its time changes only with its status.
fn set_condition(
    object: &mut Object,
    kind: &str,
    holds: bool,
    (reason, message): (&str, &str),
    now: &str,
) {
    let mut conditions = object.array(&["status", "conditions"]).to_vec();
    let status = if holds { "True" } else { "False" };
    let index = conditions
        .iter()
        .position(|finalizer| finalizer.get("type").and_then(Value::as_str) == Some(kind));
    let since = index
        .and_then(|index| conditions.get(index))
        .filter(|finalizer| finalizer.get("status").and_then(Value::as_str) == Some(status))
        .and_then(|finalizer| finalizer.get("lastTransitionTime").cloned())
        .unwrap_or_else(|| now.into());
    let condition = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since,
    });
    match index {
        Some(index) => conditions[index] = condition,
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
    fn free_names_are_accepted_and_then_established() {
        let names_in_use = ClaimedNames::default();
        let first = next_status(&definition(), &names_in_use, "now").unwrap();
        assert_eq!(reasons(&first), ["NamesAccepted=NoConflicts", "Established=Installing"]);
        assert_eq!(first.get(&["status", "acceptedNames"]), first.get(&["spec", "names"]));
        let second = next_status(&first, &names_in_use, "now").unwrap();
        assert_eq!(reasons(&second)[1], "Established=InitialNamesAccepted");
        assert_eq!(next_status(&second, &names_in_use, "later"), None);
    }

    #[test]
    fn a_conflicting_name_is_not_accepted_but_the_others_are() {
        let names_in_use =
            ClaimedNames { resources: ["x".to_owned()].into(), kinds: ["A".to_owned()].into() };
        let first = next_status(&definition(), &names_in_use, "now").unwrap();
        assert_eq!(reasons(&first), ["NamesAccepted=KindConflict", "Established=NotAccepted"]);
        let accepted = first.get(&["status", "acceptedNames"]).unwrap();
        assert_eq!(
            *accepted,
            json!({"plural": "as", "singular": "a", "kind": "", "listKind": "AList"})
        );
        assert_eq!(next_status(&first, &names_in_use, "later"), None);
        assert!(next_status(&first, &ClaimedNames::default(), "later").is_some());
    }

    #[test]
    fn a_protected_group_has_the_approval_condition() {
        let mut object = definition();
        object.set(&["spec", "group"], "b.k8s.io".into());
        let annotations = json!({"api-approved.kubernetes.io": "unapproved, a test"});
        object.set(&["metadata", "annotations"], annotations);
        let names_in_use = ClaimedNames::default();
        while let Some(next) = next_status(&object, &names_in_use, "now") {
            object = next;
        }
        let last = reasons(&object).pop().unwrap();
        assert_eq!(last, "KubernetesAPIApprovalPolicyConformant=UnapprovedAnnotation");
    }
}
