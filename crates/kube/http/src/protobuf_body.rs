//! Answers in protobuf, made of those in JSON.
//!
//! Objects, lists and refusals go into the envelope that Kubernetes' clients know. A watch is a
//! sequence of events, each behind its length.

use crate::Body;
use crate::response::JSON;
use bytes::Bytes;
use mainstay_object::Gvk;
use mainstay_schema::builtin::{self, Definition};
use mainstay_schema::protobuf;
use serde_json::Value;

/// The media type of a watch.
const EVENTS: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// The body in protobuf, with its media type. What has no message stays as it is.
pub(super) fn body(body: Body) -> (Body, &'static str) {
    match body.whole() {
        Ok(bytes) => match serde_json::from_slice::<Value>(&bytes) {
            Ok(value) => match (event(&value), object(&value)) {
                (Some(event), _) => (Body::from(event), EVENTS),
                (None, Some(object)) => (Body::from(object), protobuf::MEDIA_TYPE),
                (None, None) => (Body::from(bytes), JSON),
            },
            Err(_) => (Body::from(bytes), JSON),
        },
        Err(stream) => (stream.mapped(line), EVENTS),
    }
}

/// A line of a watch as an event. Every line has one that can be told: they are of one kind, or
/// refusals.
fn line(line: &Bytes) -> Bytes {
    serde_json::from_slice(line).ok().and_then(|value| event(&value)).unwrap_or_default()
}

fn event(value: &Value) -> Option<Bytes> {
    let kind = value.get("type")?.as_str().filter(|_| value.get("kind").is_none())?;
    let object = object(value.get("object")?)?;
    Some(protobuf::event(kind, &object).into())
}

/// An object in its envelope; none if its kind has no message.
fn object(value: &Value) -> Option<Bytes> {
    let text = |field: &str| value.get(field)?.as_str();
    let (api_version, kind) = (text("apiVersion")?, text("kind")?);
    let raw = protobuf::encode(definition(api_version, kind)?, value.as_object()?).ok()?;
    Some(protobuf::wrap(api_version, kind, &raw).into())
}

fn definition(api_version: &str, kind: &str) -> Option<&'static Definition> {
    // Refusals are spoken in the core group.
    if (api_version, kind) == ("v1", "Status") {
        return builtin::definition("apimachinery.pkg.apis.meta.v1.Status");
    }
    builtin::definition_of(&Gvk::from_api_version(api_version, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_lists_and_refusals_have_messages() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
        let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"}, "items": [map]});
        let refusal = mainstay_object::Status::not_found("", "configmaps", "a").to_value();
        for value in [map, list, refusal] {
            let bytes = object(&value).unwrap();
            let envelope = protobuf::unwrap(&bytes).unwrap();
            assert_eq!(envelope.kind, value["kind"].as_str().unwrap());
            let definition = definition(&envelope.api_version, &envelope.kind).unwrap();
            let read = protobuf::decode(definition, envelope.raw).unwrap();
            // Go writes what is empty, too.
            for (field, text) in value["metadata"].as_object().unwrap() {
                assert_eq!(&read["metadata"][field], text, "{value}");
            }
        }
        assert_eq!(object(&json!({"apiVersion": "example.com/v1", "kind": "Thing"})), None);
    }

    #[test]
    fn an_event_stands_behind_its_length() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let bytes = line(&json!({"type": "ADDED", "object": map}).to_string().into());
        let (length, event) = bytes.split_at(4);
        assert_eq!(u32::from_be_bytes(length.try_into().unwrap()) as usize, event.len());
        assert_eq!(&event[..7], b"\x0a\x05ADDED");
    }
}
