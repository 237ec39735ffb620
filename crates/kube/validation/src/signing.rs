//! Requests for certificates: who asks, and what clients decide of the answer.

use super::Context;
use mainstay_object::{Object, Status};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The conditions that only approval changes.
const ANSWERS: [&str; 2] = ["Approved", "Denied"];

/// Writes down who asks; no request is made with an answer.
#[expect(clippy::unnecessary_wraps, reason = "the form of every kind's function")]
pub(super) fn create(object: &mut Object, context: &Context<'_>) -> Result<(), Status> {
    let identity = context.identity;
    for (field, value) in [
        ("username", json!(identity.user())),
        ("uid", json!(identity.uid())),
        ("groups", json!(identity.groups())),
        ("extra", json!(identity.extra())),
    ] {
        let empty = match &value {
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        if empty {
            object.remove(&["spec", field]);
        } else {
            object.set(&["spec", field], value);
        }
    }
    object.set(&["status"], json!({}));
    Ok(())
}

/// Who signs leaves the answers of people as they are; conditions get their times.
#[expect(clippy::unnecessary_wraps, reason = "the form of every kind's function")]
pub(super) fn update(
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
        for kind in ANSWERS {
            keep(&mut conditions, before, kind);
        }
    }
    let now = context.clock.now_rfc3339();
    let since = transitions(before);
    for condition in &mut conditions {
        stamp(condition, &since, &now);
    }
    object.set(&["status", "conditions"], conditions.into());
    Ok(())
}

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Takes the conditions of a type as they were, if there are as many of them.
fn keep(conditions: &mut [Value], before: &[Value], kind: &str) {
    let old: Vec<&Value> = before.iter().filter(|one| text(one, "type") == kind).collect();
    let new: Vec<&mut Value> =
        conditions.iter_mut().filter(|one| text(one, "type") == kind).collect();
    if old.len() == new.len() {
        for (new, old) in new.into_iter().zip(old) {
            new.clone_from(old);
        }
    }
}

/// Since when conditions have been so, by type and status; the first of several counts.
fn transitions(conditions: &[Value]) -> HashMap<(&str, &str), &str> {
    let mut since = HashMap::new();
    for condition in conditions {
        let time = text(condition, "lastTransitionTime");
        if !time.is_empty() {
            since.entry((text(condition, "type"), text(condition, "status"))).or_insert(time);
        }
    }
    since
}

/// Says when a condition was written, and since when it is so.
fn stamp(condition: &mut Value, before: &HashMap<(&str, &str), &str>, now: &str) {
    if !condition.is_object() {
        return;
    }
    if text(condition, "lastUpdateTime").is_empty() {
        condition["lastUpdateTime"] = now.into();
    }
    if text(condition, "lastTransitionTime").is_empty() {
        let same = (text(condition, "type"), text(condition, "status"));
        let since = before.get(&same).copied().unwrap_or(now);
        condition["lastTransitionTime"] = since.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_filled_in_and_kept_while_nothing_changes() {
        let old = json!([{"type": "Approved", "status": "True", "lastTransitionTime": "then"}]);
        let mut same = json!({"type": "Approved", "status": "True", "lastUpdateTime": null});
        let since = transitions(old.as_array().unwrap());
        stamp(&mut same, &since, "now");
        assert_eq!(
            (text(&same, "lastUpdateTime"), text(&same, "lastTransitionTime")),
            ("now", "then")
        );
        let mut new = json!({"type": "Failed", "status": "True", "lastUpdateTime": "x"});
        stamp(&mut new, &since, "now");
        assert_eq!((text(&new, "lastUpdateTime"), text(&new, "lastTransitionTime")), ("x", "now"));
    }

    #[test]
    fn answers_stay_as_they_were_unless_their_number_changes() {
        let old = [json!({"type": "Approved", "reason": "a"})];
        let mut changed =
            vec![json!({"type": "Failed"}), json!({"type": "Approved", "reason": "b"})];
        keep(&mut changed, &old, "Approved");
        assert_eq!(text(&changed[1], "reason"), "a");
        let mut more = vec![json!({"type": "Denied", "reason": "b"})];
        keep(&mut more, &old, "Denied");
        assert_eq!(text(&more[0], "reason"), "b");
    }
}
