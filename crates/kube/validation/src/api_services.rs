//! APIServices: those without a Service are served by this API server and are always available.

use crate::Context;
use mainstay_object::Object;
use serde_json::{Value, json};

/// Sets the `Available` condition of a new local APIService.
pub(crate) fn prepare_create(object: &mut Object, context: &Context<'_>) {
    let mut status = json!({});
    if object.get(&["spec", "service"]).is_none_or(Value::is_null)
        && !mainstay_fault::is_on("local-apiservices-are-not-available")
    {
        status = json!({"conditions": [local_condition(&context.clock.now_rfc3339())]});
    }
    object.set(&["status"], status);
}

/// The `Available` condition of a local APIService.
pub fn local_condition(now: &str) -> Value {
    json!({
        "type": "Available", "status": "True", "lastTransitionTime": now, "reason": "Local",
        "message": "Local APIServices are always available",
    })
}
