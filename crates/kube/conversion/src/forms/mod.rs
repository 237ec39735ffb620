//! Stored form and versions of a kind: conversion without a webhook.
//!
//! Versions of a custom kind differ in their name and in what their schemas know (conversion `None`;
//! for webhooks see [`crate::webhook`]):
//! fields that the other version does not have are lost on the way. Where the schemas are the same,
//! one substitution on the encoded bytes makes one from the other. Of the built-in kinds two are stored in another
//! form than some clients speak: events, whose two API groups name the same fields differently, and
//! autoscaling/v1, which has one metric where v2 has a list.
//!
//! A definition may get another schema, or another stored version, while there are objects. These
//! stay as they are until somebody writes them; until then reading them fills in what they lack and
//! drops what is not known any more.
//! What was written under the present definition is known by its revision, and served as it lies
//! in the store. Nothing is remembered of the others: they are few, and a client that cares writes
//! them. A write that overlaps the change of its definition may miss the new defaults.

mod events;
mod scalers;

pub use events::core_field as event_field;

use bytes::{BufMut, Bytes, BytesMut};
use mainstay_kinds::{Custom, KindRow, Source};
use mainstay_object::Object;
use mainstay_schema::builtin::{self, Definition};
use mainstay_store::Stored;
use serde_json::Value;

/// Whether what is stored is what clients of this version read.
pub fn is_identity(row: &KindRow) -> bool {
    row.api_version == row.storage_api_version
}

/// Turns an object of the row's version into the stored form.
pub fn to_storage(row: &KindRow, object: &mut Object) {
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
pub fn from_storage(row: &KindRow, object: &mut Object) {
    if is_identity(row) {
        return;
    }
    object.set(&["apiVersion"], (*row.api_version).into());
    match &row.source {
        Source::BuiltIn(_) => {
            match &*row.storage {
                "events" => events::from_core(object),
                "autoscaling/horizontalpodautoscalers" => scalers::to_v1(object),
                _ => {}
            }
            complete_as(row.definition(), object);
        }
        Source::Custom(custom) if !custom.looks_as_stored() => {
            in_value(object, |value| drop(custom.version().schema.prune(value)));
        }
        Source::Custom(_) => {}
    }
}

/// Does something with an object as a value.
fn in_value(object: &mut Object, act: impl FnOnce(&mut Value)) {
    let mut value = std::mem::take(object).into_value();
    act(&mut value);
    // What went in as an object comes out as one.
    *object = Object::from_value(value).unwrap_or_default();
}

/// Gives an object of a built-in kind, in the stored form, what the original always writes and takes
/// what it never does; see [`mainstay_schema::form`].
pub fn complete(row: &KindRow, object: &mut Object) {
    if matches!(row.source, Source::Custom(_)) {
        return;
    }
    if is_identity(row) {
        complete_as(row.definition(), object);
    } else {
        complete_as(builtin::definition_of(&object.gvk()), object);
    }
}

fn complete_as(definition: Option<&Definition>, object: &mut Object) {
    if let Some(definition) = definition {
        mainstay_schema::form::complete(definition, object.fields_mut());
    }
}

/// A stored object, decoded, in the row's version.
pub fn object(row: &KindRow, stored: &Stored) -> Object {
    decoded(row, &stored.bytes(), stored.revision)
}

/// A stored object, decoded, in the form that is stored now.
pub fn stored_form(row: &KindRow, stored: &Stored) -> Object {
    let mut object = stored.object();
    if is_outdated(row, stored.start(), stored.revision) {
        renew(row, &mut object);
        rename(row, &row.storage_api_version, &mut object);
    }
    object
}

/// A stored object, encoded, in the row's version; shared when that is the stored form.
pub fn bytes(row: &KindRow, stored: &Stored) -> Bytes {
    encoded(row, &stored.bytes(), stored.revision)
}

/// Writes a stored object as an item of a list in the row's version: items of built-in kinds leave
/// out what the list says for all of them, `apiVersion` and `kind`.
pub fn put_item(row: &KindRow, stored: &Stored, out: &mut BytesMut) {
    if row.custom().is_some() {
        return out.put_slice(&bytes(row, stored));
    }
    if is_identity(row)
        && let bytes = stored.bytes()
        && let Some([between, rest]) = untyped(row, &bytes, stored.slot())
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

/// The text of an object without its braces' first and without `apiVersion` and `kind`, in two
/// pieces; none if `apiVersion` is not its first field, which is rare. The digits of the revision
/// are at `slot`.
fn untyped<'a>(row: &KindRow, bytes: &'a [u8], slot: usize) -> Option<[&'a [u8]; 2]> {
    let typed = bytes.strip_prefix(HEAD)?.strip_prefix(row.storage_api_version.as_bytes())?;
    if !typed.starts_with(b"\",") {
        return None;
    }
    let start = HEAD.len() + row.storage_api_version.len() + br#"","#.len();
    // Kinds without fields that sort before it have it here; the others have it just before the
    // metadata, in which no such text can stand outside of a string.
    let kind = format!("\"kind\":\"{}\",", row.kind);
    if bytes.get(start..)?.starts_with(kind.as_bytes()) {
        return Some([&[], &bytes[start + kind.len()..]]);
    }
    let head = std::str::from_utf8(bytes.get(..slot)?).ok()?;
    let at = head.rfind(&format!("{kind}\"metadata\":{{"))?;
    Some([bytes.get(start..at)?, &bytes[at + kind.len()..]])
}

/// Bytes stored at a revision, decoded, in the row's version.
pub fn decoded(row: &KindRow, bytes: &[u8], written: u64) -> Object {
    // Stored bytes were encoded from an object.
    let mut object: Object = serde_json::from_slice(bytes).unwrap_or_default();
    if is_outdated(row, bytes, written) {
        renew(row, &mut object);
        rename(row, &row.api_version, &mut object);
    } else {
        from_storage(row, &mut object);
    }
    object
}

/// Whether bytes stored at a revision have the metadata that the row's version shows.
pub fn has_metadata_as_stored(row: &KindRow, bytes: &[u8], written: u64) -> bool {
    let is_plain = is_identity(row) || row.custom().is_some_and(Custom::looks_as_stored);
    is_plain && !is_outdated(row, bytes, written)
}

/// Bytes stored at a revision, encoded, in the row's version.
pub fn encoded(row: &KindRow, bytes: &Bytes, written: u64) -> Bytes {
    let outdated = is_outdated(row, bytes, written);
    if is_identity(row) && !outdated {
        return bytes.clone();
    }
    if row.custom().is_some_and(Custom::looks_as_stored)
        && !outdated
        && let Some(substituted) = substitute(row, bytes)
    {
        return substituted;
    }
    decoded(row, bytes, written).to_value().to_string().into()
}

/// Whether bytes were stored before the definition of their kind became what it is, so that they
/// may lack defaults, have fields that are not known any more, or name a version that objects are
/// no longer stored in.
pub fn is_outdated(row: &KindRow, bytes: &[u8], written: u64) -> bool {
    let Some(custom) = row.custom().filter(|custom| written < custom.since()) else { return false };
    let current = bytes
        .strip_prefix(HEAD)
        .and_then(|rest| rest.strip_prefix(row.storage_api_version.as_bytes()))
        .is_some_and(|rest| rest.first() == Some(&b'"'));
    !current || custom.storage_schema().changes_what_is_stored()
}

/// Makes an outdated object what the version that it was stored in says of it now.
fn renew(row: &KindRow, object: &mut Object) {
    let Some(custom) = row.custom() else { return };
    let version =
        object.api_version().rsplit('/').next().and_then(|name| custom.definition.version(name));
    let schema = version.map_or(custom.storage_schema(), |version| &*version.schema);
    in_value(object, |value| schema.reread(value));
}

/// Turns an object of a custom kind, in whichever version, into another version.
fn rename(row: &KindRow, api_version: &str, object: &mut Object) {
    let Some(custom) = row.custom().filter(|_| object.api_version() != api_version) else { return };
    object.set(&["apiVersion"], api_version.into());
    let name = api_version.rsplit('/').next().unwrap_or_default();
    if let Some(version) = custom.definition.version(name) {
        in_value(object, |value| drop(version.schema.prune(value)));
    }
}

/// How objects begin whose first field in order is `apiVersion`.
const HEAD: &[u8] = br#"{"apiVersion":""#;

/// Replaces the `apiVersion` at the front of the bytes; none if something else stands there, which
/// a custom kind with a field that sorts before it may cause.
fn substitute(row: &KindRow, bytes: &[u8]) -> Option<Bytes> {
    let rest = bytes.strip_prefix(HEAD)?.strip_prefix(row.storage_api_version.as_bytes())?;
    if rest.first() != Some(&b'"') {
        return None;
    }
    Some([HEAD, row.api_version.as_bytes(), rest].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_kinds::Registry;
    use serde_json::json;

    fn there_and_back(group: &str, plural: &str, value: Value) -> (Object, Object) {
        let registry = Registry::new(|_| &mainstay_kinds::Plain);
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
            "deprecatedSource": {}, "deprecatedFirstTimestamp": null,
            "deprecatedLastTimestamp": null,
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
            "spec": {
                "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
                "scaleTargetRef": {"kind": "Deployment", "name": "d"},
            },
            "status": {"currentReplicas": 0, "desiredReplicas": 0},
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
