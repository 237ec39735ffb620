//! `APIService` objects: those without a Service are served by this API server, and are available.

use crate::Context;
use mainstay_object::Object;
use serde_json::{Value, json};

/// Gives a new `APIService` without a Service the condition that it is always available.
pub(crate) fn create(object: &mut Object, context: &Context<'_>) {
    let mut status = json!({});
    if object.get(&["spec", "service"]).is_none_or(Value::is_null)
        && !mainstay_fault::is_on("local-apiservices-are-not-available")
    {
        status = json!({"conditions": [local_condition(&context.clock.now_rfc3339())]});
    }
    object.set(&["status"], status);
}

/// The `Available` condition of an `APIService` that this API server serves.
pub fn local_condition(now: &str) -> Value {
    json!({
        "type": "Available", "status": "True", "lastTransitionTime": now, "reason": "Local",
        "message": "Local APIServices are always available",
    })
}
