//! `CertificateSigningRequests`: the requester, and the conditions of approval.

use super::Context;
use mainstay_object::{Object, Status};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The conditions that only the subresource `approval` changes.
const APPROVAL_CONDITIONS: [&str; 2] = ["Approved", "Denied"];

/// Records the requester; a new request has no status.
#[expect(clippy::unnecessary_wraps, reason = "the form of every kind's function")]
pub(super) fn prepare_create(object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
    let identity = context.identity;
    for (field, value) in [
        ("username", json!(identity.user())),
        ("uid", json!(identity.uid())),
        ("groups", json!(identity.groups())),
        ("extra", json!(identity.extra())),
    ] {
        let is_empty = match &value {
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        if is_empty {
            object.remove(&["spec", field]);
        } else {
            object.set(&["spec", field], value);
        }
    }
    object.set(&["status"], json!({}));
    Ok(())
}

/// A signer keeps the approval conditions unchanged; conditions get their timestamps.
#[expect(clippy::unnecessary_wraps, reason = "the form of every kind's function")]
pub(super) fn prepare_update(
    object: &mut Object,
    old: &Object,
    context: &Context<'_>,
) -> Result<(), Status> {
    if !matches!(context.subresource, "status" | "approval") {
        return Ok(());
    }
    let before = old.array(&["status", "conditions"]);
    let mut conditions = object.array(&["status", "conditions"]).to_vec();
    if conditions.is_empty() {
        return Ok(());
    }
    if context.subresource == "status" {
        for kind in APPROVAL_CONDITIONS {
            restore_conditions(&mut conditions, before, kind);
        }
    }
    let now = context.clock.now_rfc3339();
    let since = transition_times(before);
    for condition in &mut conditions {
        set_condition_times(condition, &since, &now);
    }
    object.set(&["status", "conditions"], conditions.into());
    Ok(())
}

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Restores the old conditions of a type, if their number is unchanged.
fn restore_conditions(conditions: &mut [Value], before: &[Value], kind: &str) {
    let old: Vec<&Value> =
        before.iter().filter(|condition| text(condition, "type") == kind).collect();
    let new: Vec<&mut Value> =
        conditions.iter_mut().filter(|condition| text(condition, "type") == kind).collect();
    if old.len() == new.len() {
        for (new, old) in new.into_iter().zip(old) {
            new.clone_from(old);
        }
    }
}

/// The last transition times by type and status; the first of several conditions counts.
fn transition_times(conditions: &[Value]) -> HashMap<(&str, &str), &str> {
    let mut times = HashMap::new();
    for condition in conditions {
        let time = text(condition, "lastTransitionTime");
        if !time.is_empty() {
            times.entry((text(condition, "type"), text(condition, "status"))).or_insert(time);
        }
    }
    times
}

/// Sets missing timestamps of a condition.
fn set_condition_times(condition: &mut Value, before: &HashMap<(&str, &str), &str>, now: &str) {
    if !condition.is_object() {
        return;
    }
    if text(condition, "lastUpdateTime").is_empty() {
        condition["lastUpdateTime"] = now.into();
    }
    if text(condition, "lastTransitionTime").is_empty() {
        let key = (text(condition, "type"), text(condition, "status"));
        let since = before.get(&key).copied().unwrap_or(now);
        condition["lastTransitionTime"] = since.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_condition_times_are_set_and_transition_times_kept() {
        let old = json!([{"type": "Approved", "status": "True", "lastTransitionTime": "then"}]);
        let mut same = json!({"type": "Approved", "status": "True", "lastUpdateTime": null});
        let since = transition_times(old.as_array().unwrap());
        set_condition_times(&mut same, &since, "now");
        assert_eq!(
            (text(&same, "lastUpdateTime"), text(&same, "lastTransitionTime")),
            ("now", "then")
        );
        let mut new = json!({"type": "Failed", "status": "True", "lastUpdateTime": "x"});
        set_condition_times(&mut new, &since, "now");
        assert_eq!((text(&new, "lastUpdateTime"), text(&new, "lastTransitionTime")), ("x", "now"));
    }

    #[test]
    fn approval_conditions_are_restored_unless_their_number_changes() {
        let old = [json!({"type": "Approved", "reason": "a"})];
        let mut changed =
            vec![json!({"type": "Failed"}), json!({"type": "Approved", "reason": "b"})];
        restore_conditions(&mut changed, &old, "Approved");
        assert_eq!(text(&changed[1], "reason"), "a");
        let mut more = vec![json!({"type": "Denied", "reason": "b"})];
        restore_conditions(&mut more, &old, "Denied");
        assert_eq!(text(&more[0], "reason"), "b");
    }
}
