//! JSON form of registry API messages, with the field names of the proto file; unset fields are
//! omitted. It serves comparison and display.
//!
//! [`call`] calls a method by its name with a JSON request, over a connection or over a
//! [`Grpc`](crate::grpc::Grpc) in the same process.

mod call;

pub use call::{RpcCallError, RpcCallResult, call};

use crate::grpc::api;
use prost_types::{Struct, value::Kind};
use serde_json::{Map, Value};

/// A message with a JSON form.
pub trait ToJson {
    /// The message as JSON.
    fn to_json(&self) -> Value;
}

/// An object of the fields that are set.
fn object<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    };
    let fields = fields.into_iter().filter(|(_, value)| is_set(value));
    Value::Object(fields.map(|(name, value)| (name.to_owned(), value)).collect())
}

fn text(text: &str) -> Value {
    Value::from(text)
}

fn texts(texts: &[String]) -> Value {
    texts.iter().map(|text| Value::from(text.as_str())).collect()
}

fn list<T: ToJson>(items: &[T]) -> Value {
    items.iter().map(ToJson::to_json).collect()
}

fn maybe<T: ToJson>(item: Option<&T>) -> Value {
    item.map_or(Value::Null, ToJson::to_json)
}

impl ToJson for api::PackageName {
    fn to_json(&self) -> Value {
        object([("name", text(&self.name))])
    }
}

impl ToJson for api::Deprecation {
    fn to_json(&self) -> Value {
        object([("message", text(&self.message))])
    }
}

impl ToJson for api::Channel {
    fn to_json(&self) -> Value {
        object([
            ("name", text(&self.name)),
            ("csvName", text(&self.csv_name)),
            ("deprecation", maybe(self.deprecation.as_ref())),
        ])
    }
}

impl ToJson for api::Package {
    fn to_json(&self) -> Value {
        object([
            ("name", text(&self.name)),
            ("channels", list(&self.channels)),
            ("defaultChannelName", text(&self.default_channel_name)),
            ("deprecation", maybe(self.deprecation.as_ref())),
        ])
    }
}

impl ToJson for api::ChannelEntry {
    fn to_json(&self) -> Value {
        object([
            ("packageName", text(&self.package_name)),
            ("channelName", text(&self.channel_name)),
            ("bundleName", text(&self.bundle_name)),
            ("replaces", text(&self.replaces)),
        ])
    }
}

impl ToJson for api::GroupVersionKind {
    fn to_json(&self) -> Value {
        object([
            ("group", text(&self.group)),
            ("version", text(&self.version)),
            ("kind", text(&self.kind)),
            ("plural", text(&self.plural)),
        ])
    }
}

impl ToJson for api::Dependency {
    fn to_json(&self) -> Value {
        object([("type", text(&self.r#type)), ("value", text(&self.value))])
    }
}

impl ToJson for api::Property {
    fn to_json(&self) -> Value {
        object([("type", text(&self.r#type)), ("value", text(&self.value))])
    }
}

impl ToJson for api::Bundle {
    fn to_json(&self) -> Value {
        object([
            ("csvName", text(&self.csv_name)),
            ("packageName", text(&self.package_name)),
            ("channelName", text(&self.channel_name)),
            ("csvJson", text(&self.csv_json)),
            ("object", texts(&self.object)),
            ("bundlePath", text(&self.bundle_path)),
            ("providedApis", list(&self.provided_apis)),
            ("requiredApis", list(&self.required_apis)),
            ("version", text(&self.version)),
            ("skipRange", text(&self.skip_range)),
            ("dependencies", list(&self.dependencies)),
            ("properties", list(&self.properties)),
            ("replaces", text(&self.replaces)),
            ("skips", texts(&self.skips)),
            ("deprecation", maybe(self.deprecation.as_ref())),
        ])
    }
}

impl ToJson for Struct {
    fn to_json(&self) -> Value {
        let fields = self.fields.iter().map(|(name, value)| (name.clone(), value.to_json()));
        Value::Object(fields.collect::<Map<_, _>>())
    }
}

impl ToJson for prost_types::Value {
    fn to_json(&self) -> Value {
        match &self.kind {
            None | Some(Kind::NullValue(_)) => Value::Null,
            Some(Kind::BoolValue(flag)) => Value::Bool(*flag),
            Some(Kind::NumberValue(number)) => Value::from(*number),
            Some(Kind::StringValue(text)) => Value::from(text.as_str()),
            Some(Kind::ListValue(items)) => list(&items.values),
            Some(Kind::StructValue(fields)) => fields.to_json(),
        }
    }
}

impl ToJson for tonic_health::pb::HealthCheckResponse {
    fn to_json(&self) -> Value {
        object([("status", text(self.status().as_str_name()))])
    }
}
