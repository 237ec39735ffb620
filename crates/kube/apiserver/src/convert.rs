//! Between the form that is stored and the version that a client speaks.
//!
//! Versions of a custom kind differ in their name only (conversion `None`), so that one substitution
//! on the encoded bytes makes one from the other. Of the built-in kinds two are stored in another
//! form than some clients speak: events, whose two API groups name the same fields differently, and
//! autoscaling/v1, which has one metric where v2 has a list.

mod events;
mod scalers;

pub(crate) use events::core_field as event_field;

use crate::registry::{KindRow, Source};
use bytes::Bytes;
use mainstay_object::Object;
use mainstay_store::Stored;

/// Whether what is stored is what clients of this version read.
pub(crate) fn is_identity(row: &KindRow) -> bool {
    row.api_version == row.storage_api_version
}

/// Turns an object of the row's version into the stored form.
pub(crate) fn to_storage(row: &KindRow, object: &mut Object) {
    if is_identity(row) {
        return;
    }
    object.set(&["apiVersion"], (*row.storage_api_version).into());
    if matches!(row.source, Source::BuiltIn(_)) {
        match &*row.storage {
            "events" => events::to_core(object),
            "autoscaling/horizontalpodautoscalers" => scalers::to_v2(object),
            _ => {}
        }
    }
}

/// Turns a stored object into the row's version.
pub(crate) fn from_storage(row: &KindRow, object: &mut Object) {
    if is_identity(row) {
        return;
    }
    object.set(&["apiVersion"], (*row.api_version).into());
    if matches!(row.source, Source::BuiltIn(_)) {
        match &*row.storage {
            "events" => events::from_core(object),
            "autoscaling/horizontalpodautoscalers" => scalers::to_v1(object),
            _ => {}
        }
    }
}

/// A stored object, decoded, in the row's version.
pub(crate) fn object(row: &KindRow, stored: &Stored) -> Object {
    let mut object = stored.object();
    from_storage(row, &mut object);
    object
}

/// A stored object, encoded, in the row's version; shared when that is the stored form.
pub(crate) fn bytes(row: &KindRow, stored: &Stored) -> Bytes {
    encoded(row, &stored.bytes)
}

/// Encoded bytes of the stored form in the row's version.
pub(crate) fn encoded(row: &KindRow, bytes: &Bytes) -> Bytes {
    if is_identity(row) {
        return bytes.clone();
    }
    if matches!(row.source, Source::Custom(_))
        && let Some(substituted) = substitute(row, bytes)
    {
        return substituted;
    }
    let Ok(mut object) = serde_json::from_slice::<Object>(bytes) else { return bytes.clone() };
    from_storage(row, &mut object);
    object.to_value().to_string().into()
}

/// Replaces the `apiVersion` at the front of the bytes; none if something else stands there, which
/// a custom kind with a field that sorts before it may cause.
fn substitute(row: &KindRow, bytes: &[u8]) -> Option<Bytes> {
    const HEAD: &[u8] = br#"{"apiVersion":""#;
    let rest = bytes.strip_prefix(HEAD)?.strip_prefix(row.storage_api_version.as_bytes())?;
    if rest.first() != Some(&b'"') {
        return None;
    }
    Some([HEAD, row.api_version.as_bytes(), rest].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use serde_json::json;

    fn there_and_back(group: &str, plural: &str, value: serde_json::Value) -> (Object, Object) {
        let registry = Registry::new();
        let row = registry.find(group, "v1", plural).unwrap();
        let mut object = Object::from_value(value).unwrap();
        to_storage(&row, &mut object);
        let stored = object.clone();
        from_storage(&row, &mut object);
        (stored, object)
    }

    #[test]
    fn events_of_both_groups_are_one_object() {
        let event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
            "regarding": {"kind": "Pod", "name": "p"}, "note": "text", "reason": "R",
            "reportingController": "c", "reportingInstance": "i", "action": "a",
            "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal",
        });
        let (stored, back) = there_and_back("events.k8s.io", "events", event.clone());
        assert_eq!(stored.api_version(), "v1");
        assert_eq!(stored.str(&["involvedObject", "name"]), Some("p"));
        assert_eq!(stored.str(&["message"]), Some("text"));
        assert_eq!(stored.str(&["reportingComponent"]), Some("c"));
        assert_eq!(back.to_value(), event);
    }

    #[test]
    fn the_one_metric_of_the_old_autoscaler_is_one_of_the_new() {
        let scaler = json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h"},
            "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50},
        });
        let (stored, back) =
            there_and_back("autoscaling", "horizontalpodautoscalers", scaler.clone());
        assert_eq!(stored.api_version(), "autoscaling/v2");
        assert_eq!(
            stored.get(&["spec", "metrics"]),
            Some(&json!([{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50},
            }}]))
        );
        assert_eq!(back.to_value(), scaler);
    }
}
