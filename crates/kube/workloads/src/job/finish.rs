//! The end of a Job: its conditions and events.

use super::decide::{Decision, condition};
use mainstay_object::Object;
use serde_json::{Map, Value, json};

/// The end that a Job is about to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finish {
    pub(super) succeeded: bool,
    pub(super) reason: String,
    pub(super) message: String,
}

impl Finish {
    pub(super) fn failure(reason: &str, message: impl Into<String>) -> Self {
        Self { succeeded: false, reason: reason.to_owned(), message: message.into() }
    }

    pub(super) fn success(reason: &str, message: impl Into<String>) -> Self {
        Self { succeeded: true, reason: reason.to_owned(), message: message.into() }
    }

    /// The end that an earlier reconcile decided.
    pub(super) fn decided(job: &Object) -> Option<Self> {
        let find = |kind: &str| {
            let condition = condition(job.array(&["status", "conditions"]), kind)?;
            let text = |field: &str| {
                condition.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            (text("status") == "True").then(|| (text("reason"), text("message")))
        };
        if let Some((reason, message)) = find("SuccessCriteriaMet") {
            return Some(Self { succeeded: true, reason, message });
        }
        let (reason, message) = find("FailureTarget")?;
        Some(Self { succeeded: false, reason, message })
    }

    /// Writes into the status that the Job is going to end; and that it has ended, once no pod is
    /// left to be counted or to terminate.
    pub(super) fn write(
        &self,
        job: &Object,
        status: &mut Map<String, Value>,
        is_last: bool,
        now: &str,
        decision: &mut Decision,
    ) {
        let (first, last) = if self.succeeded {
            ("SuccessCriteriaMet", "Complete")
        } else {
            ("FailureTarget", "Failed")
        };
        let mut conditions =
            status.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut add = |kind: &str| {
            if condition(&conditions, kind).is_none() {
                conditions.push(json!({
                    "type": kind, "status": "True", "reason": self.reason, "message": self.message,
                    "lastProbeTime": now, "lastTransitionTime": now,
                }));
            }
        };
        add(first);
        if is_last {
            add(last);
            if self.succeeded {
                status.insert("completionTime".to_owned(), now.into());
                let completions = job.i64(&["spec", "completions"]);
                let succeeded = status.get("succeeded").and_then(Value::as_i64);
                if completions.is_some_and(|completions| succeeded > Some(completions)) {
                    let message =
                        "Too many succeeded pods running after completion count reached".to_owned();
                    decision.events.push(("TooManySucceededPods".to_owned(), message));
                }
                decision.events.push(("Completed".to_owned(), "Job completed".to_owned()));
            } else {
                decision.events.push((self.reason.clone(), self.message.clone()));
            }
        }
        status.insert("conditions".to_owned(), Value::Array(conditions));
    }
}
