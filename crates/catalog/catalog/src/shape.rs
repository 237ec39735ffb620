//! The shapes of property values, as tables of upstream's Go types.
//!
//! Go refuses a value at the first field of another kind, and says which struct and field; so
//! does this. Unknown fields pass, `null` is "not set", names may be written in any case.

use crate::fold::get_in;
use serde_json::Value;

/// The kind of value that a field takes.
enum Kind {
    Text,
    Bool,
    /// A whole number, by the name of its Go type.
    Int(&'static str),
    Texts,
    /// A mapping of texts to texts.
    TextMap,
    One(&'static Shape),
    Many(&'static Shape),
}

use Kind::{Bool, Int, Many, One, Text, TextMap, Texts};

/// A Go struct: how messages call it as a struct and as a type, and its fields.
pub(crate) struct Shape {
    name: &'static str,
    spelled: &'static str,
    fields: &'static [(&'static str, Kind)],
}

static GVK: Shape = Shape {
    name: "GVK",
    spelled: "property.GVK",
    fields: &[("group", Text), ("kind", Text), ("version", Text)],
};

static GVK_REQUIRED: Shape =
    Shape { name: "GVKRequired", spelled: "property.GVKRequired", fields: GVK.fields };

static PACKAGE: Shape = Shape {
    name: "Package",
    spelled: "property.Package",
    fields: &[("packageName", Text), ("version", Text), ("release", Text)],
};

static PACKAGE_REQUIRED: Shape = Shape {
    name: "PackageRequired",
    spelled: "property.PackageRequired",
    fields: &[("packageName", Text), ("versionRange", Text)],
};

static CHANNEL: Shape = Shape {
    name: "Channel",
    spelled: "property.Channel",
    fields: &[("channelName", Text), ("priority", Int("int"))],
};

static CSV_METADATA: Shape = Shape {
    name: "CSVMetadata",
    spelled: "property.CSVMetadata",
    fields: &[
        ("annotations", TextMap),
        ("apiServiceDefinitions", One(&API_SERVICES)),
        ("crdDescriptions", One(&CRDS)),
        ("description", Text),
        ("displayName", Text),
        ("installModes", Many(&INSTALL_MODE)),
        ("keywords", Texts),
        ("labels", TextMap),
        ("links", Many(&LINK)),
        ("maintainers", Many(&MAINTAINER)),
        ("maturity", Text),
        ("minKubeVersion", Text),
        ("nativeAPIs", Many(&NATIVE_API)),
        ("provider", One(&LINK)),
    ],
};

static API_SERVICES: Shape = Shape {
    name: "APIServiceDefinitions",
    spelled: "v1alpha1.APIServiceDefinitions",
    fields: &[("owned", Many(&API_SERVICE)), ("required", Many(&API_SERVICE))],
};

static API_SERVICE: Shape = Shape {
    name: "APIServiceDescription",
    spelled: "v1alpha1.APIServiceDescription",
    fields: &[
        ("name", Text),
        ("group", Text),
        ("version", Text),
        ("kind", Text),
        ("deploymentName", Text),
        ("containerPort", Int("int32")),
        ("displayName", Text),
        ("description", Text),
        ("resources", Many(&RESOURCE)),
        ("statusDescriptors", Many(&STATUS_DESCRIPTOR)),
        ("specDescriptors", Many(&SPEC_DESCRIPTOR)),
        ("actionDescriptors", Many(&ACTION_DESCRIPTOR)),
    ],
};

static CRDS: Shape = Shape {
    name: "CustomResourceDefinitions",
    spelled: "v1alpha1.CustomResourceDefinitions",
    fields: &[("owned", Many(&CRD)), ("required", Many(&CRD))],
};

static CRD: Shape = Shape {
    name: "CRDDescription",
    spelled: "v1alpha1.CRDDescription",
    fields: &[
        ("name", Text),
        ("version", Text),
        ("kind", Text),
        ("displayName", Text),
        ("description", Text),
        ("resources", Many(&RESOURCE)),
        ("statusDescriptors", Many(&STATUS_DESCRIPTOR)),
        ("specDescriptors", Many(&SPEC_DESCRIPTOR)),
        ("actionDescriptors", Many(&ACTION_DESCRIPTOR)),
    ],
};

static RESOURCE: Shape = Shape {
    name: "APIResourceReference",
    spelled: "v1alpha1.APIResourceReference",
    fields: &[("name", Text), ("kind", Text), ("version", Text)],
};

static STATUS_DESCRIPTOR: Shape = Shape {
    name: "StatusDescriptor",
    spelled: "v1alpha1.StatusDescriptor",
    fields: &[
        ("path", Text),
        ("displayName", Text),
        ("description", Text),
        ("x-descriptors", Texts),
    ],
};

static SPEC_DESCRIPTOR: Shape = Shape {
    name: "SpecDescriptor",
    spelled: "v1alpha1.SpecDescriptor",
    fields: STATUS_DESCRIPTOR.fields,
};

static ACTION_DESCRIPTOR: Shape = Shape {
    name: "ActionDescriptor",
    spelled: "v1alpha1.ActionDescriptor",
    fields: STATUS_DESCRIPTOR.fields,
};

static INSTALL_MODE: Shape = Shape {
    name: "InstallMode",
    spelled: "v1alpha1.InstallMode",
    fields: &[("type", Text), ("supported", Bool)],
};

static LINK: Shape = Shape {
    name: "AppLink",
    spelled: "v1alpha1.AppLink",
    fields: &[("name", Text), ("url", Text)],
};

static MAINTAINER: Shape = Shape {
    name: "Maintainer",
    spelled: "v1alpha1.Maintainer",
    fields: &[("name", Text), ("email", Text)],
};

static NATIVE_API: Shape = Shape {
    name: "GroupVersionKind",
    spelled: "v1.GroupVersionKind",
    fields: &[("group", Text), ("version", Text), ("kind", Text)],
};

/// The shape of a property type's value; `None` for types whose value may be anything.
pub(crate) fn of_property(kind: &str) -> Option<&'static Shape> {
    Some(match kind {
        "olm.gvk" => &GVK,
        "olm.gvk.required" => &GVK_REQUIRED,
        "olm.package" => &PACKAGE,
        "olm.package.required" => &PACKAGE_REQUIRED,
        "olm.channel" => &CHANNEL,
        crate::model::CSV_METADATA => &CSV_METADATA,
        _ => return None,
    })
}

/// What Go calls a JSON value.
pub(crate) fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The text of a field that the value of a checked shape has; empty when it is not set.
pub(crate) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    crate::fold::get(value, field).and_then(Value::as_str).unwrap_or_default()
}

/// Why a value does not have a shape, in Go's words.
pub(crate) fn check(value: &Value, shape: &Shape) -> Result<(), String> {
    match value {
        Value::Null => Ok(()),
        Value::Object(_) => fields(value, shape, ""),
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type {}",
            word(other),
            shape.spelled
        )),
    }
}

/// Checks the fields of an object. `prefix` is the path of fields that leads to it. Shapes are
/// finite, so the depth of this is that of the tables and not that of the value.
fn fields(value: &Value, shape: &Shape, prefix: &str) -> Result<(), String> {
    let Value::Object(object) = value else { return Ok(()) };
    for (field, kind) in shape.fields {
        let Some(value) = get_in(object, field).filter(|value| !value.is_null()) else { continue };
        let refuse = |found: &str, expected: &str| {
            let name = shape.name;
            Err(format!(
                "json: cannot unmarshal {found} into Go struct field {name}.{prefix}{field} of type {expected}"
            ))
        };
        let refuse_value = |value: &Value, expected: &str| refuse(word(value), expected);
        match (kind, value) {
            (Text, Value::String(_)) | (Bool, Value::Bool(_)) => {}
            (Text, other) => return refuse_value(other, "string"),
            (Bool, other) => return refuse_value(other, "bool"),
            (Int(_), Value::Number(number)) if number.is_i64() => {}
            (Int(name), Value::Number(number)) => return refuse(&format!("number {number}"), name),
            (Int(name), other) => return refuse_value(other, name),
            (Texts, Value::Array(items)) => {
                if let Some(odd) = items.iter().find(|item| !item.is_string() && !item.is_null()) {
                    return refuse_value(odd, "string");
                }
            }
            (Texts, other) => return refuse_value(other, "[]string"),
            (TextMap, Value::Object(map)) => {
                if let Some(odd) = map.values().find(|item| !item.is_string() && !item.is_null()) {
                    return refuse_value(odd, "string");
                }
            }
            (TextMap, other) => return refuse_value(other, "map[string]string"),
            (One(inner), object @ Value::Object(_)) => {
                fields(object, inner, &format!("{prefix}{field}."))?;
            }
            (One(inner), other) => return refuse_value(other, inner.spelled),
            (Many(inner), Value::Array(items)) => {
                for item in items {
                    match item {
                        Value::Null => {}
                        Value::Object(_) => fields(item, inner, &format!("{prefix}{field}."))?,
                        other => return refuse_value(other, inner.spelled),
                    }
                }
            }
            (Many(inner), other) => return refuse_value(other, &format!("[]{}", inner.spelled)),
        }
    }
    Ok(())
}
