//! Shared context and helpers of all controllers.

use mainstay_client::{Cluster, Error, EventType, Recorder};
use mainstay_clock::Clock;
use mainstay_object::{Object, OwnerReference, Resource};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// The clients of a controller. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) cluster: Cluster,
    pub(crate) clock: Clock,
    pub(crate) recorder: Recorder,
    pub(crate) stop: CancellationToken,
}

impl Context {
    /// The same context with another user agent.
    pub(crate) fn with_user_agent(&self, agent: &str) -> Self {
        Self { cluster: self.cluster.clone().with_user_agent(agent), ..self.clone() }
    }

    /// The same context for a controller that reports events under its own component name.
    pub(crate) fn with_component(&self, component: &str) -> Self {
        Self { recorder: self.recorder.signed(component), ..self.clone() }
    }

    /// Replaces the status of an object that was just read, unless the status is unchanged. The
    /// `resourceVersion` that was read is the precondition.
    pub(crate) async fn write_status(
        &self,
        resource: &Resource,
        live: &Object,
        status: Value,
    ) -> Result<(), Error> {
        let empty = json!({});
        if live.get(&["status"]).unwrap_or(&empty) == &status {
            return Ok(());
        }
        let mut object = live.clone();
        object.set(&["status"], status);
        self.cluster.update_status(resource, &object).await?;
        Ok(())
    }

    /// Emits a `Normal` event about an object.
    pub(crate) fn report_normal(&self, about: &Object, reason: &str, message: String) {
        self.recorder.publish(about, EventType::Normal, reason, message);
    }

    /// Emits a `Normal` event of `events.k8s.io` with the action that the controller took.
    pub(crate) fn report_action(
        &self,
        about: &Object,
        action: &'static str,
        reason: &str,
        message: String,
    ) {
        self.recorder.publish_action(about, EventType::Normal, action, reason, message);
    }

    /// Emits a `Warning` event of `events.k8s.io` with the action that failed.
    pub(crate) fn report_failed_action(
        &self,
        about: &Object,
        action: &'static str,
        reason: &str,
        message: String,
    ) {
        self.recorder.publish_action(about, EventType::Warning, action, reason, message);
    }

    /// Emits a `Warning` event about an object.
    pub(crate) fn report_warning(&self, about: &Object, reason: &str, message: String) {
        self.recorder.publish(about, EventType::Warning, reason, message);
    }
}

/// Whether an error says that the object is gone: a later event brings the key back, so there is
/// nothing to retry.
pub(crate) fn is_object_gone(error: &Error) -> bool {
    error.is_not_found()
}

/// The owner reference that a controller's object puts on its dependents.
pub(crate) fn controller_reference(owner: &Object) -> OwnerReference {
    OwnerReference {
        controller: Some(true),
        block_owner_deletion: Some(true),
        ..owner.owner_reference()
    }
}

/// A controller reference as JSON.
pub(crate) fn controller_reference_value(owner: &Object) -> Value {
    let reference = controller_reference(owner);
    json!({
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "name": reference.name,
        "uid": reference.uid,
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// An `IntOrString` that may be a percentage of `whole`; `round_up` says how percentages are
/// rounded.
pub(crate) fn int_or_percent(
    value: Option<&Value>,
    default: &str,
    whole: i64,
    round_up: bool,
) -> i64 {
    let text = match value {
        Some(Value::Number(number)) => return number.as_i64().unwrap_or_default().max(0),
        Some(Value::String(text)) => text,
        _ => default,
    };
    match text.strip_suffix('%').and_then(|percent| percent.parse::<i64>().ok()) {
        Some(percent) if round_up => (percent * whole + 99).div_euclid(100).max(0),
        Some(percent) => (percent * whole).div_euclid(100).max(0),
        None => text.parse::<i64>().unwrap_or_default().max(0),
    }
}

/// Sets an integer field of a status, or leaves it out when it is zero, as Go's `omitempty` does.
pub(crate) fn put_count(status: &mut serde_json::Map<String, Value>, field: &str, count: i64) {
    if count == 0 {
        status.remove(field);
    } else {
        status.insert(field.to_owned(), count.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_up_or_down() {
        for (value, whole, up, count) in [
            (json!("25%"), 1, true, 1),
            (json!("25%"), 1, false, 0),
            (json!("25%"), 10, true, 3),
            (json!("25%"), 10, false, 2),
            (json!("100%"), 3, false, 3),
            (json!(2), 3, false, 2),
            (json!("3"), 3, false, 3),
        ] {
            assert_eq!(int_or_percent(Some(&value), "25%", whole, up), count, "{value} of {whole}");
        }
        assert_eq!(int_or_percent(None, "25%", 4, true), 1);
    }
}
