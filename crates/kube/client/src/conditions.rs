//! Status conditions in the style of `metav1.Condition`.
//!
//! Conditions are a list with one entry for each type. `lastTransitionTime` is the time of the last
//! change of `status`, so it stays when only reason or message change.

use mainstay_object::Object;
use serde_json::{Map, Value};

/// The `status` of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The state is unknown.
    Unknown,
}

impl Truth {
    /// The text of the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }
}

/// A condition to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Type, in CamelCase.
    pub kind: String,
    /// The status.
    pub status: Truth,
    /// The reason: one CamelCase word.
    pub reason: String,
    /// The message, for people.
    pub message: String,
    /// The `metadata.generation` that the condition refers to; omitted if none.
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// A condition without an observed generation.
    pub fn new(
        kind: impl Into<String>,
        status: impl Into<Truth>,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind: kind.into(),
            status: status.into(),
            reason: reason.into(),
            message: message.into(),
            observed_generation: None,
        }
    }

    /// Sets the observed generation.
    #[must_use]
    pub const fn observed(mut self, generation: i64) -> Self {
        self.observed_generation = Some(generation);
        self
    }
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Value], kind: &str) -> Option<&'a Value> {
    conditions.iter().find(|condition| is(condition, kind))
}

/// Whether the condition of a type exists and is `True`.
pub fn is_true(conditions: &[Value], kind: &str) -> bool {
    find(conditions, kind).and_then(|condition| condition.get("status")).and_then(Value::as_str)
        == Some("True")
}

/// Sets a condition in place and returns whether anything changed. `now` (RFC 3339) becomes the
/// transition time if the status changes; a new condition goes to the end.
pub fn set(conditions: &mut Vec<Value>, condition: &Condition, now: &str) -> bool {
    let at = conditions.iter().position(|existing| is(existing, &condition.kind));
    let old = at.and_then(|at| conditions[at].as_object());
    let same_status = old.and_then(|old| old.get("status")).and_then(Value::as_str)
        == Some(condition.status.as_str());
    let transition = old
        .filter(|_| same_status)
        .and_then(|old| old.get("lastTransitionTime"))
        .and_then(Value::as_str)
        .unwrap_or(now)
        .to_owned();
    // Fields of other styles (`lastUpdateTime`, `lastProbeTime`) stay as they are.
    let mut fields: Map<String, Value> = old.cloned().unwrap_or_default();
    fields.insert("type".to_owned(), condition.kind.clone().into());
    fields.insert("status".to_owned(), condition.status.as_str().into());
    fields.insert("reason".to_owned(), condition.reason.clone().into());
    fields.insert("message".to_owned(), condition.message.clone().into());
    fields.insert("lastTransitionTime".to_owned(), transition.into());
    if let Some(generation) = condition.observed_generation {
        fields.insert("observedGeneration".to_owned(), generation.into());
    }
    let new = Value::Object(fields);
    match at {
        Some(at) if conditions[at] == new => false,
        Some(at) => {
            conditions[at] = new;
            true
        }
        None => {
            conditions.push(new);
            true
        }
    }
}

/// Removes the condition of a type and returns whether it existed.
pub fn remove(conditions: &mut Vec<Value>, kind: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| !is(condition, kind));
    conditions.len() != before
}

/// [`set`] on `status.conditions` of an object.
pub fn set_on(object: &mut Object, condition: &Condition, now: &str) -> bool {
    edit(object, |conditions| set(conditions, condition, now))
}

/// [`remove`] on `status.conditions` of an object.
pub fn remove_from(object: &mut Object, kind: &str) -> bool {
    edit(object, |conditions| remove(conditions, kind))
}

fn edit(object: &mut Object, change: impl FnOnce(&mut Vec<Value>) -> bool) -> bool {
    let mut conditions = object.array(&["status", "conditions"]).to_vec();
    let changed = change(&mut conditions);
    if changed {
        object.set(&["status", "conditions"], Value::Array(conditions));
    }
    changed
}

fn is(condition: &Value, kind: &str) -> bool {
    condition.get("type").and_then(Value::as_str) == Some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_transition_time_moves_only_with_the_status() {
        let mut list = Vec::new();
        let ready = |status: bool, reason: &str| Condition::new("Ready", status, reason, "m");
        assert!(set(&mut list, &ready(false, "Starting"), "t1"));
        assert!(!set(&mut list, &ready(false, "Starting"), "t2"));
        assert!(set(&mut list, &ready(false, "Pulling"), "t3"));
        assert_eq!(list[0]["lastTransitionTime"], "t1");
        assert!(set(&mut list, &ready(true, "Up").observed(4), "t4"));
        assert_eq!(
            list,
            [json!({
                "type": "Ready", "status": "True", "reason": "Up", "message": "m",
                "lastTransitionTime": "t4", "observedGeneration": 4,
            })]
        );
        assert!(is_true(&list, "Ready") && !is_true(&list, "Other"));
        assert!(remove(&mut list, "Ready") && !remove(&mut list, "Ready"));
    }

    #[test]
    fn an_object_without_status_gets_one() {
        let mut object = Object::default();
        assert!(!remove_from(&mut object, "Ready"));
        assert!(set_on(&mut object, &Condition::new("Ready", Truth::Unknown, "R", ""), "t"));
        assert_eq!(object.condition("Ready"), Some("Unknown"));
    }
}
