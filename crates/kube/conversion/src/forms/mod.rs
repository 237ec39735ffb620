//! Conversion between the storage version and served versions of a kind, without webhooks.
//!
//! Versions of a custom kind with conversion `None` differ in name and schema; fields that the other
//! version does not have are lost. If the schemas are equal, one substitution in the encoded bytes
//! converts an object. Two built-in kinds have a served version that differs from the stored one:
//! events, whose two API groups name the same fields differently, and autoscaling/v1, which has one
//! metric where v2 has a list.
//!
//! A CRD may get another schema or storage version while objects exist. An object stays as stored
//! until a client writes it; until then each read sets its missing defaults and prunes its unknown
//! fields. The revision of an object tells whether it was stored under the present CRD; then it is
//! served without these steps. The converted objects are not cached: they are few. A write that
//! overlaps the change of its CRD may miss the new defaults.
//!
//! Conversion by webhooks is in [`crate::webhook`].

mod events;
mod scalers;

pub use events::core_field as event_field;

use bytes::{BufMut, Bytes, BytesMut};
use mainstay_kinds::{CustomVersion, KindRow, KindSource};
use mainstay_object::Object;
use mainstay_schema::builtin::{self, TypeDefinition};
use mainstay_store::Stored;
use serde_json::Value;

/// Whether the row's version is the storage version.
pub fn is_identity(row: &KindRow) -> bool {
    row.api_version == row.storage_api_version
}

/// Converts an object from the row's version to the storage version.
pub fn to_storage(row: &KindRow, object: &mut Object) {
    if is_identity(row) {
        return;
    }
    object.set(&["apiVersion"], (*row.storage_api_version).into());
    if matches!(row.source, KindSource::BuiltIn(_)) {
        match &*row.storage {
            "events" => events::to_core(object),
            "autoscaling/horizontalpodautoscalers" => scalers::to_v2(object),
            _ => {}
        }
    }
}

/// Converts a stored object to the row's version.
pub fn from_storage(row: &KindRow, object: &mut Object) {
    if is_identity(row) {
        return;
    }
    object.set(&["apiVersion"], (*row.api_version).into());
    match &row.source {
        KindSource::BuiltIn(_) => {
            match &*row.storage {
                "events" => events::from_core(object),
                "autoscaling/horizontalpodautoscalers" => scalers::to_v1(object),
                _ => {}
            }
            normalize(row.definition(), object);
        }
        KindSource::Custom(custom) if !custom.has_stored_schema() => {
            update_value(object, |value| drop(custom.version().schema.prune(value)));
        }
        KindSource::Custom(_) => {}
    }
}

/// Changes an object as a JSON value.
fn update_value(object: &mut Object, change: impl FnOnce(&mut Value)) {
    let mut value = std::mem::take(object).into_value();
    change(&mut value);
    // Each change keeps an object an object.
    *object = Object::from_value(value).unwrap_or_default();
}

/// Normalizes empty fields of a built-in object in the storage version, as Go writes them; see
/// [`mainstay_schema::form`].
pub fn complete(row: &KindRow, object: &mut Object) {
    if matches!(row.source, KindSource::Custom(_)) {
        return;
    }
    if is_identity(row) {
        normalize(row.definition(), object);
    } else {
        normalize(builtin::definition_of(&object.gvk()), object);
    }
}

fn normalize(definition: Option<&TypeDefinition>, object: &mut Object) {
    if let Some(definition) = definition {
        mainstay_schema::form::complete(definition, object.fields_mut());
    }
}

/// A stored object, decoded, in the row's version.
pub fn object(row: &KindRow, stored: &Stored) -> Object {
    decode(row, &stored.bytes(), stored.revision)
}

/// A stored object, decoded, in the present storage version.
pub fn stored_form(row: &KindRow, stored: &Stored) -> Object {
    let mut object = stored.object();
    if is_outdated(row, stored.start(), stored.revision) {
        reread(row, &mut object);
        convert_custom(row, &row.storage_api_version, &mut object);
    }
    object
}

/// A stored object, encoded, in the row's version. The bytes are shared with the store if that is the
/// storage version.
pub fn bytes(row: &KindRow, stored: &Stored) -> Bytes {
    encode(row, &stored.bytes(), stored.revision)
}

/// Writes a stored object as an item of a list in the row's version. Items of built-in kinds have no
/// `apiVersion` and `kind`.
pub fn put_item(row: &KindRow, stored: &Stored, out: &mut BytesMut) {
    if row.custom().is_some() {
        return out.put_slice(&bytes(row, stored));
    }
    if is_identity(row)
        && let bytes = stored.bytes()
        && let Some([between, rest]) = without_type(row, &bytes, stored.slot())
    {
        out.put_u8(b'{');
        out.put_slice(between);
        return out.put_slice(rest);
    }
    let mut object = object(row, stored);
    object.remove(&["apiVersion"]);
    object.remove(&["kind"]);
    out.put_slice(object.to_value().to_string().as_bytes());
}

/// The text of an object without the opening brace, `apiVersion` and `kind`, in two pieces; none if
/// `apiVersion` is not its first field, which is rare. The digits of the revision are at `slot`.
fn without_type<'a>(row: &KindRow, bytes: &'a [u8], slot: usize) -> Option<[&'a [u8]; 2]> {
    let typed = bytes.strip_prefix(HEAD)?.strip_prefix(row.storage_api_version.as_bytes())?;
    if !typed.starts_with(b"\",") {
        return None;
    }
    let start = HEAD.len() + row.storage_api_version.len() + br#"","#.len();
    // `kind` is here unless another field sorts before it. Then it is just before the metadata, and
    // no such text occurs between outside of a string.
    let kind = format!("\"kind\":\"{}\",", row.kind);
    if bytes.get(start..)?.starts_with(kind.as_bytes()) {
        return Some([&[], &bytes[start + kind.len()..]]);
    }
    let head = std::str::from_utf8(bytes.get(..slot)?).ok()?;
    let at = head.rfind(&format!("{kind}\"metadata\":{{"))?;
    Some([bytes.get(start..at)?, &bytes[at + kind.len()..]])
}

/// Bytes stored at a revision, decoded, in the row's version.
pub fn decode(row: &KindRow, bytes: &[u8], written: u64) -> Object {
    // Stored bytes are the JSON of an object.
    let mut object: Object = serde_json::from_slice(bytes).unwrap_or_default();
    if is_outdated(row, bytes, written) {
        reread(row, &mut object);
        convert_custom(row, &row.api_version, &mut object);
    } else {
        from_storage(row, &mut object);
    }
    object
}

/// Whether bytes stored at a revision have the same metadata in the row's version.
pub fn has_metadata_as_stored(row: &KindRow, bytes: &[u8], written: u64) -> bool {
    let is_unchanged =
        is_identity(row) || row.custom().is_some_and(CustomVersion::has_stored_schema);
    is_unchanged && !is_outdated(row, bytes, written)
}

/// Bytes stored at a revision, encoded, in the row's version.
pub fn encode(row: &KindRow, bytes: &Bytes, written: u64) -> Bytes {
    let outdated = is_outdated(row, bytes, written);
    if is_identity(row) && !outdated {
        return bytes.clone();
    }
    if row.custom().is_some_and(CustomVersion::has_stored_schema)
        && !outdated
        && let Some(replaced) = replace_api_version(row, bytes)
    {
        return replaced;
    }
    decode(row, bytes, written).to_value().to_string().into()
}

/// Whether bytes were stored under an earlier CRD: they may lack defaults, have unknown fields, or
/// have a former storage version.
pub fn is_outdated(row: &KindRow, bytes: &[u8], written: u64) -> bool {
    let Some(custom) = row.custom().filter(|custom| written < custom.since()) else { return false };
    let current = bytes
        .strip_prefix(HEAD)
        .and_then(|rest| rest.strip_prefix(row.storage_api_version.as_bytes()))
        .is_some_and(|rest| rest.first() == Some(&b'"'));
    !current || custom.storage_schema().may_change_stored()
}

/// Sets defaults and prunes an outdated object by the present schema of its version.
fn reread(row: &KindRow, object: &mut Object) {
    let Some(custom) = row.custom() else { return };
    let version =
        object.api_version().rsplit('/').next().and_then(|name| custom.definition.version(name));
    let schema = version.map_or(custom.storage_schema(), |version| &*version.schema);
    update_value(object, |value| schema.reread(value));
}

/// Converts an object of a custom kind to another version.
fn convert_custom(row: &KindRow, api_version: &str, object: &mut Object) {
    let Some(custom) = row.custom().filter(|_| object.api_version() != api_version) else { return };
    object.set(&["apiVersion"], api_version.into());
    let name = api_version.rsplit('/').next().unwrap_or_default();
    if let Some(version) = custom.definition.version(name) {
        update_value(object, |value| drop(version.schema.prune(value)));
    }
}

/// The beginning of an object whose first field is `apiVersion`.
const HEAD: &[u8] = br#"{"apiVersion":""#;

/// Replaces the `apiVersion` at the beginning of the bytes; none if a field of the custom kind sorts
/// before it.
fn replace_api_version(row: &KindRow, bytes: &[u8]) -> Option<Bytes> {
    let rest = bytes.strip_prefix(HEAD)?.strip_prefix(row.storage_api_version.as_bytes())?;
    if rest.first() != Some(&b'"') {
        return None;
    }
    Some([HEAD, row.api_version.as_bytes(), rest].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_kinds::KindRegistry;
    use serde_json::json;

    fn convert_to_storage_and_back(group: &str, plural: &str, value: Value) -> (Object, Object) {
        let registry = KindRegistry::new(|_| &mainstay_kinds::DefaultStrategy);
        let row = registry.find(group, "v1", plural).unwrap();
        let mut object = Object::from_value(value).unwrap();
        to_storage(&row, &mut object);
        let stored = object.clone();
        from_storage(&row, &mut object);
        (stored, object)
    }

    #[test]
    fn an_event_converts_between_both_groups() {
        let event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
            "regarding": {"kind": "Pod", "name": "p"}, "note": "text", "reason": "R",
            "reportingController": "c", "reportingInstance": "i", "action": "a",
            "deprecatedSource": {}, "deprecatedFirstTimestamp": null,
            "deprecatedLastTimestamp": null,
            "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal",
        });
        let (stored, back) = convert_to_storage_and_back("events.k8s.io", "events", event.clone());
        assert_eq!(stored.api_version(), "v1");
        assert_eq!(stored.str(&["involvedObject", "name"]), Some("p"));
        assert_eq!(stored.str(&["message"]), Some("text"));
        assert_eq!(stored.str(&["reportingComponent"]), Some("c"));
        assert_eq!(back.to_value(), event);
    }

    #[test]
    fn the_metric_of_autoscaling_v1_is_an_entry_of_v2() {
        let scaler = json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h"},
            "spec": {
                "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
                "scaleTargetRef": {"kind": "Deployment", "name": "d"},
            },
            "status": {"currentReplicas": 0, "desiredReplicas": 0},
        });
        let (stored, back) =
            convert_to_storage_and_back("autoscaling", "horizontalpodautoscalers", scaler.clone());
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
