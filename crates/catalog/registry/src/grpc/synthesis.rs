//! ClusterServiceVersion synthesis from `olm.csv.metadata`, for clients that only understand a
//! ClusterServiceVersion.
//!
//! The result describes an operator but cannot be installed. Its bytes equal upstream's: fields in
//! the order of Go's types, empty ones omitted as those types say.

use super::document::{last, text};
use mainstay_gocompat::json::{Html, JsonWriter, Numbers};
use serde_json::{Map, Value};

/// The inputs besides the metadata.
pub(super) struct Parts<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    /// The description of the package, for bundles without one.
    pub(super) description: &'a str,
    /// The package's icon: base64 and media type.
    pub(super) icon: Option<(String, String)>,
    /// The name and the image of each related image.
    pub(super) related_images: Vec<(String, String)>,
}

enum Kind {
    Text,
    Bool,
    Int,
    /// Any value, unchanged.
    Raw,
    TextMap,
    One(&'static Shape),
    Many(&'static Self),
}
use Kind::{Bool, Int, Many, One, Raw, Text, TextMap};

/// The fields of a Go struct: name, kind, and whether an empty one is written.
type Shape = [(&'static str, Kind, bool)];

const RESOURCE: &Shape = &[("name", Text, true), ("kind", Text, true), ("version", Text, true)];
const DESCRIPTOR: &Shape = &[
    ("path", Text, true),
    ("displayName", Text, false),
    ("description", Text, false),
    ("x-descriptors", Many(&Text), false),
    ("value", Raw, false),
];
const CRD: &Shape = &[
    ("name", Text, true),
    ("version", Text, true),
    ("kind", Text, true),
    ("displayName", Text, false),
    ("description", Text, false),
    ("resources", Many(&One(RESOURCE)), false),
    ("statusDescriptors", Many(&One(DESCRIPTOR)), false),
    ("specDescriptors", Many(&One(DESCRIPTOR)), false),
    ("actionDescriptors", Many(&One(DESCRIPTOR)), false),
];
const API_SERVICE: &Shape = &[
    ("name", Text, true),
    ("group", Text, true),
    ("version", Text, true),
    ("kind", Text, true),
    ("deploymentName", Text, false),
    ("containerPort", Int, false),
    ("displayName", Text, false),
    ("description", Text, false),
    ("resources", Many(&One(RESOURCE)), false),
    ("statusDescriptors", Many(&One(DESCRIPTOR)), false),
    ("specDescriptors", Many(&One(DESCRIPTOR)), false),
    ("actionDescriptors", Many(&One(DESCRIPTOR)), false),
];
const CRDS: &Shape = &[("owned", Many(&One(CRD)), false), ("required", Many(&One(CRD)), false)];
const API_SERVICES: &Shape =
    &[("owned", Many(&One(API_SERVICE)), false), ("required", Many(&One(API_SERVICE)), false)];
const LINK: &Shape = &[("name", Text, false), ("url", Text, false)];
const MAINTAINER: &Shape = &[("name", Text, false), ("email", Text, false)];
const INSTALL_MODE: &Shape = &[("type", Text, true), ("supported", Bool, true)];
const NATIVE_API: &Shape = &[("group", Text, true), ("version", Text, true), ("kind", Text, true)];

/// Writes the ClusterServiceVersion.
pub(super) fn csv(metadata: &Value, parts: &Parts<'_>) -> String {
    let mut out = String::with_capacity(4096);
    let mut w = JsonWriter::compact(&mut out, Html::Escaped, Numbers::Float);
    w.open('{');
    pair(&mut w, "kind", "ClusterServiceVersion");
    pair(&mut w, "apiVersion", "operators.coreos.com/v1alpha1");
    w.key("metadata");
    w.open('{');
    if !parts.name.is_empty() {
        pair(&mut w, "name", parts.name);
    }
    write(&mut w, metadata, "labels", "labels", &TextMap, false);
    write(&mut w, metadata, "annotations", "annotations", &TextMap, false);
    w.close('}');
    w.key("spec");
    w.open('{');
    w.key("install");
    w.raw("{\"strategy\":\"deployment\",\"spec\":{\"deployments\":null}}");
    pair(&mut w, "version", parts.version);
    write(&mut w, metadata, "maturity", "maturity", &Text, false);
    write(&mut w, metadata, "customresourcedefinitions", "crdDescriptions", &One(CRDS), true);
    let services = "apiServiceDefinitions";
    write(&mut w, metadata, "apiservicedefinitions", services, &One(API_SERVICES), true);
    write(&mut w, metadata, "nativeAPIs", "nativeAPIs", &Many(&One(NATIVE_API)), false);
    write(&mut w, metadata, "minKubeVersion", "minKubeVersion", &Text, false);
    write(&mut w, metadata, "displayName", "displayName", &Text, true);
    let description = match text(metadata, "description") {
        "" => parts.description,
        own => own,
    };
    if !description.is_empty() {
        pair(&mut w, "description", description);
    }
    write(&mut w, metadata, "keywords", "keywords", &Many(&Text), false);
    write(&mut w, metadata, "maintainers", "maintainers", &Many(&One(MAINTAINER)), false);
    write(&mut w, metadata, "provider", "provider", &One(LINK), true);
    write(&mut w, metadata, "links", "links", &Many(&One(LINK)), false);
    if let Some((data, media_type)) = &parts.icon {
        w.key("icon");
        w.open('[');
        pairs(&mut w, &[("base64data", data), ("mediatype", media_type)]);
        w.close(']');
    }
    write(&mut w, metadata, "installModes", "installModes", &Many(&One(INSTALL_MODE)), false);
    w.key("cleanup");
    w.raw("{\"enabled\":false}");
    if !parts.related_images.is_empty() {
        w.key("relatedImages");
        w.open('[');
        for (name, image) in &parts.related_images {
            pairs(&mut w, &[("name", name), ("image", image)]);
        }
        w.close(']');
    }
    w.close('}');
    w.key("status");
    w.raw("{\"cleanup\":{}}");
    w.close('}');
    out
}

fn pair(w: &mut JsonWriter<'_>, key: &str, text: &str) {
    w.key(key);
    w.text(text);
}

fn pairs(w: &mut JsonWriter<'_>, fields: &[(&str, &str)]) {
    w.open('{');
    for (key, text) in fields {
        pair(w, key, text);
    }
    w.close('}');
}

/// Writes the field `from` of an object under the name `to`.
fn write(w: &mut JsonWriter<'_>, object: &Value, to: &str, from: &str, kind: &Kind, always: bool) {
    // Null means "not set", except where any value is allowed.
    let nothing = &Value::Null;
    let value = match kind {
        Raw => last(object, from, |_| true),
        _ => last(object, from, |value| !value.is_null()),
    };
    let is_empty = |value: &Value| match kind {
        Text => value.as_str() == Some(""),
        TextMap => value.as_object().is_some_and(Map::is_empty),
        Many(_) => value.as_array().is_some_and(Vec::is_empty),
        Int => value.as_i64() == Some(0),
        One(_) | Bool | Raw => false,
    };
    let empty = value.is_none_or(is_empty);
    if always || !empty {
        w.key(to);
        write_kind(w, value.unwrap_or(nothing), kind);
    }
}

fn write_kind(w: &mut JsonWriter<'_>, value: &Value, kind: &Kind) {
    match kind {
        Text => w.text(value.as_str().unwrap_or_default()),
        Bool => w.value(&Value::Bool(value.as_bool().unwrap_or_default())),
        Int => w.value(&Value::from(value.as_i64().unwrap_or_default())),
        Raw => w.value(value),
        TextMap => {
            w.open('{');
            for (key, value) in value.as_object().into_iter().flatten() {
                pair(w, key, value.as_str().unwrap_or_default());
            }
            w.close('}');
        }
        One(shape) => {
            w.open('{');
            for (name, kind, always) in *shape {
                write(w, value, name, name, kind, *always);
            }
            w.close('}');
        }
        Many(kind) => {
            w.open('[');
            for item in value.as_array().into_iter().flatten() {
                write_kind(w, item, kind);
            }
            w.close(']');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parts() -> Parts<'static> {
        Parts {
            name: "a.v1",
            version: "1.0.0",
            description: "of the package",
            icon: None,
            related_images: Vec::new(),
        }
    }

    #[test]
    fn unset_fields_are_stubs() {
        let text = "{\"kind\":\"ClusterServiceVersion\",\"apiVersion\":\"operators.coreos.com/v1alpha1\",\
            \"metadata\":{\"name\":\"a.v1\"},\"spec\":{\"install\":{\"strategy\":\"deployment\",\
            \"spec\":{\"deployments\":null}},\"version\":\"1.0.0\",\"customresourcedefinitions\":{},\
            \"apiservicedefinitions\":{},\"displayName\":\"\",\"description\":\"of the package\",\
            \"provider\":{},\"cleanup\":{\"enabled\":false}},\"status\":{\"cleanup\":{}}}";
        assert_eq!(csv(&json!({}), &parts()), text);
        assert_eq!(csv(&json!({"keywords": [], "labels": null, "unknown": 1}), &parts()), text);
    }

    #[test]
    fn synthesised_fields_follow_gos_types() {
        let metadata = json!({
            "Annotations": {"b": "<", "a": null},
            "crdDescriptions": {"owned": [{
                "kind": "A",
                "specDescriptors": [{"x-descriptors": ["u"], "value": {"b": 1.0, "a": "&"}, "z": 1}, null],
            }]},
            "apiServiceDefinitions": {"owned": [{"containerPort": 0}, {"containerPort": 5}]},
            "installModes": [{"type": "OwnNamespace"}],
            "nativeAPIs": [{"kind": "K"}],
            "description": "own",
        });
        let text = csv(
            &metadata,
            &Parts {
                icon: Some(("AA==".to_owned(), String::new())),
                related_images: vec![("n".to_owned(), "i".to_owned())],
                ..parts()
            },
        );
        for part in [
            "\"annotations\":{\"a\":\"\",\"b\":\"\\u003c\"}",
            "{\"owned\":[{\"name\":\"\",\"version\":\"\",\"kind\":\"A\",\"specDescriptors\":[{\"path\":\"\",\
             \"x-descriptors\":[\"u\"],\"value\":{\"a\":\"\\u0026\",\"b\":1}},{\"path\":\"\"}]}]}",
            "\"kind\":\"\"},{\"name\":\"\",\"group\":\"\",\"version\":\"\",\"kind\":\"\",\"containerPort\":5}",
            "\"nativeAPIs\":[{\"group\":\"\",\"version\":\"\",\"kind\":\"K\"}]",
            "\"icon\":[{\"base64data\":\"AA==\",\"mediatype\":\"\"}],\"installModes\":[{\"type\":\"OwnNamespace\",\"supported\":false}],\"cleanup\"",
            "\"relatedImages\":[{\"name\":\"n\",\"image\":\"i\"}]},\"status\"",
            "\"description\":\"own\"",
        ] {
            assert!(text.contains(part), "{part}\nis not in\n{text}");
        }
    }
}
