//! Protobuf responses, encoded from JSON responses.
//!
//! Objects, lists and `Status` errors are wrapped in the `runtime.Unknown` envelope of Kubernetes.
//! A watch is a sequence of events, each after its length.

use bytes::Bytes;
use mainstay_object::Gvk;
use mainstay_schema::builtin::{self, TypeDefinition};
use mainstay_schema::protobuf;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::VecDeque;

/// The media type of a watch response.
pub const WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";
/// The media type of any other response.
pub use protobuf::MEDIA_TYPE;

/// A kind that has a protobuf message, with the names that its envelope carries.
#[derive(Clone, Copy, Debug)]
pub struct MessageKind<S> {
    definition: &'static TypeDefinition,
    api_version: S,
    kind: S,
}

impl<S: AsRef<str>> MessageKind<S> {
    /// The kind with this name; none if it has no protobuf message, such as a custom kind.
    pub fn of(api_version: S, kind: S) -> Option<Self> {
        let definition = match (api_version.as_ref(), kind.as_ref()) {
            // The type of `Status` belongs to apimachinery, its API version to the core group.
            ("v1", "Status") => builtin::definition("apimachinery.pkg.apis.meta.v1.Status"),
            (api_version, kind) => {
                builtin::definition_of(&Gvk::from_api_version(api_version, kind))
            }
        };
        Some(Self { definition: definition?, api_version, kind })
    }

    /// The message of an object, without an envelope; none if the JSON is not of this kind.
    pub fn message(&self, json: &[u8]) -> Option<Bytes> {
        let message = protobuf::encode(self.definition, str::from_utf8(json).ok()?).ok()?;
        // The copy drops the spare capacity, because callers cache the message.
        Some(Bytes::copy_from_slice(&message))
    }

    /// A message of this kind in its envelope.
    pub fn body(&self, message: &[u8]) -> Bytes {
        protobuf::wrap(self.api_version.as_ref(), self.kind.as_ref(), message).into()
    }

    /// A watch event with an object of this kind.
    pub fn event(&self, event: &str, message: &[u8]) -> Bytes {
        protobuf::event(event, &self.body(message)).into()
    }

    /// A list of this kind, from its JSON without items and the messages of the items. None if the
    /// kind is no list.
    pub fn list(&self, json: &[u8], items: Vec<Bytes>) -> Option<ListBody> {
        // All lists have their items under the same tag.
        self.definition.field("items").filter(|field| *field.tags == [protobuf::ITEMS_TAG])?;
        let head = self.message(json)?;
        let lengths = items.iter().map(|item| protobuf::item_length(item.len()));
        let length = head.len() + lengths.sum::<usize>();
        let mut start =
            protobuf::envelope_start(self.api_version.as_ref(), self.kind.as_ref(), length);
        let size = start.len() + length + protobuf::ENVELOPE_END.len();
        start.extend_from_slice(&head);
        Some(ListBody { start: Some(start.into()), items: items.into(), size })
    }
}

impl<S: AsRef<str> + From<&'static str>> MessageKind<S> {
    /// `PartialObjectMetadata` of a version of `meta.k8s.io`.
    pub fn metadata(version: &str) -> Option<Self> {
        Self::meta(version, "PartialObjectMetadata")
    }

    /// `PartialObjectMetadataList` of a version of `meta.k8s.io`.
    pub fn metadata_list(version: &str) -> Option<Self> {
        Self::meta(version, "PartialObjectMetadataList")
    }

    fn meta(version: &str, kind: &'static str) -> Option<Self> {
        let api_version = match version {
            "v1" => "meta.k8s.io/v1",
            "v1beta1" => "meta.k8s.io/v1beta1",
            _ => return None,
        };
        // The types of both versions are the same.
        let definition = builtin::definition(&format!("apimachinery.pkg.apis.meta.v1.{kind}"))?;
        Some(Self { definition, api_version: api_version.into(), kind: kind.into() })
    }
}

/// The body of a list, concatenated while it is sent.
#[derive(Debug)]
pub struct ListBody {
    start: Option<Bytes>,
    items: VecDeque<Bytes>,
    size: usize,
}

impl ListBody {
    /// The size of the whole body in bytes.
    pub const fn size(&self) -> usize {
        self.size
    }
}

/// The bytes of a list that are copied into one chunk.
const CHUNK: usize = 256 * 1024;

impl Iterator for ListBody {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut chunk = Vec::with_capacity(self.size.min(CHUNK + CHUNK / 8));
        if let Some(start) = self.start.take() {
            chunk.extend_from_slice(&start);
        } else if self.items.is_empty() {
            return None;
        }
        while chunk.len() < CHUNK {
            let Some(item) = self.items.pop_front() else { break };
            protobuf::put_item(&mut chunk, &item);
        }
        if self.items.is_empty() {
            chunk.extend_from_slice(&protobuf::ENVELOPE_END);
        }
        Some(chunk.into())
    }
}

/// The API version and kind of an object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeMeta<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

/// The body of an object of any kind; none if its kind has no message.
pub(crate) fn body(json: &[u8]) -> Option<Bytes> {
    let meta: TypeMeta<'_> = serde_json::from_slice(json).ok()?;
    let kind = MessageKind::of(&*meta.api_version, &*meta.kind)?;
    Some(kind.body(&kind.message(json)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn decode(bytes: &[u8]) -> Value {
        let envelope = protobuf::unwrap(bytes).unwrap();
        let kind = MessageKind::of(&*envelope.api_version, &*envelope.kind).unwrap();
        protobuf::decode(kind.definition, envelope.raw).unwrap()
    }

    #[test]
    fn objects_lists_and_errors_have_messages() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
        let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"}, "items": [map]});
        let status = mainstay_object::Status::not_found("", "configmaps", "a").to_value();
        for value in [map, list, status] {
            let decoded = decode(&body(value.to_string().as_bytes()).unwrap());
            // Go writes empty fields, too.
            for (field, text) in value["metadata"].as_object().unwrap() {
                assert_eq!(&decoded["metadata"][field], text, "{value}");
            }
        }
        assert_eq!(body(br#"{"apiVersion": "example.com/v1", "kind": "Thing"}"#), None);
        assert_eq!(body(br#"{"paths": []}"#), None);
    }

    #[test]
    fn list_in_chunks_equals_list_in_one_buffer() {
        let kind = MessageKind::of("v1", "ConfigMap").unwrap();
        let list = MessageKind::of("v1", "ConfigMapList").unwrap();
        let head = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"}, "items": null});
        for (count, size) in [(0, 0), (1, 10), (700, 1000), (3, 300_000)] {
            let map = |index: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{index}")}, "data": {"k": "v".repeat(size)}});
            let maps: Vec<Value> = (0..count).map(map).collect();
            let text = |map: &Value| map.to_string().into_bytes();
            let items = maps.iter().map(|map| kind.message(&text(map)).unwrap()).collect();
            let chunks = list.list(&text(&head), items).unwrap();
            let expected = chunks.size();
            let sent = chunks.collect::<Vec<_>>().concat();
            assert_eq!(sent.len(), expected);
            let mut whole = head.clone();
            whole["items"] = maps.into();
            assert_eq!(sent, body(&text(&whole)).unwrap());
        }
    }

    #[test]
    fn all_lists_of_built_in_kinds_have_items_under_the_same_tag() {
        let mut lists = 0;
        for row in builtin::kinds() {
            let (api_version, kind) = (row.gvk().api_version(), format!("{}List", row.kind));
            // Kinds that are not stored have no list kind.
            let Some(list) = MessageKind::of(api_version, kind.clone()) else { continue };
            let head = br#"{"metadata":{"resourceVersion":"7"}}"#;
            assert!(list.list(head, Vec::new()).is_some(), "{kind}");
            lists += 1;
        }
        assert!(lists > 50, "{lists}");
    }

    #[test]
    fn watch_event_follows_its_length() {
        let kind = MessageKind::of("v1", "ConfigMap").unwrap();
        let message = kind.message(br#"{"metadata":{"name":"a"}}"#).unwrap();
        let bytes = kind.event("ADDED", &message);
        let (length, event) = bytes.split_at(4);
        assert_eq!(u32::from_be_bytes(length.try_into().unwrap()) as usize, event.len());
        assert_eq!(&event[..7], b"\x0a\x05ADDED");
    }
}
