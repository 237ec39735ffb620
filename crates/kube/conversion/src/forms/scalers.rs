//! Conversion of autoscalers between `autoscaling/v1` and v2, which is stored.
//!
//! v1 has one metric. Other metrics and the behavior are kept in upstream's annotations, so a client
//! that reads and writes v1 loses nothing.

use mainstay_object::Object;
use serde_json::{Value, json};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// Converts from v1 to v2.
pub(super) fn to_v2(scaler: &mut Object) {
    let mut metrics = Vec::new();
    if let Some(percent) = scaler.remove(&["spec", "targetCPUUtilizationPercentage"]) {
        metrics.push(cpu(&percent, "target"));
    }
    if let Some(Value::Array(others)) = take_annotation(scaler, METRICS) {
        metrics.extend(others);
    }
    if !metrics.is_empty() {
        scaler.set(&["spec", "metrics"], metrics.into());
    }
    if let Some(behavior) = take_annotation(scaler, BEHAVIOR) {
        scaler.set(&["spec", "behavior"], behavior);
    }
    if let Some(percent) = scaler.remove(&["status", "currentCPUUtilizationPercentage"]) {
        scaler.set(&["status", "currentMetrics"], json!([cpu(&percent, "current")]));
    }
}

/// Converts from v2 to v1.
pub(super) fn to_v1(scaler: &mut Object) {
    if let Some(Value::Array(metrics)) = scaler.remove(&["spec", "metrics"]) {
        let mut others = Vec::new();
        let mut percent = None;
        for metric in metrics {
            match utilization(&metric, "target") {
                Some(found) if percent.is_none() => percent = Some(found),
                _ => others.push(metric),
            }
        }
        if let Some(percent) = percent {
            scaler.set(&["spec", "targetCPUUtilizationPercentage"], percent);
        }
        if !others.is_empty() {
            scaler.set_annotation(METRICS, Value::from(others).to_string());
        }
    }
    if let Some(behavior) = scaler.remove(&["spec", "behavior"]) {
        scaler.set_annotation(BEHAVIOR, behavior.to_string());
    }
    if let Some(Value::Array(metrics)) = scaler.remove(&["status", "currentMetrics"])
        && let Some(percent) = metrics.iter().find_map(|metric| utilization(metric, "current"))
    {
        scaler.set(&["status", "currentCPUUtilizationPercentage"], percent);
    }
    scaler.remove(&["status", "conditions"]);
    if scaler.get(&["status", "currentReplicas"]).is_none() && scaler.get(&["status"]).is_some() {
        scaler.set(&["status", "currentReplicas"], 0.into());
    }
}

fn cpu(percent: &Value, part: &str) -> Value {
    let mut value = json!({"averageUtilization": percent});
    if part == "target" {
        value["type"] = "Utilization".into();
    }
    json!({"type": "Resource", "resource": {"name": "cpu", part: value}})
}

fn utilization(metric: &Value, part: &str) -> Option<Value> {
    let resource = metric.get("resource")?;
    if metric.get("type")? != "Resource" || resource.get("name")? != "cpu" {
        return None;
    }
    resource.get(part)?.get("averageUtilization").cloned()
}

fn take_annotation(scaler: &mut Object, key: &str) -> Option<Value> {
    let text = scaler.remove(&["metadata", "annotations", key])?;
    if scaler
        .get(&["metadata", "annotations"])
        .and_then(Value::as_object)
        .is_some_and(serde_json::Map::is_empty)
    {
        scaler.remove(&["metadata", "annotations"]);
    }
    serde_json::from_str(text.as_str()?).ok()
}
