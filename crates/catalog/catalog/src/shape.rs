//! The shapes of documents and property values, as tables of upstream's Go types.
//!
//! Go refuses a value at the first field of another kind, and says which struct and field; so
//! does this. Unknown fields pass, `null` is "not set", names may be written in any case.

use crate::{
    decode::{ShapeError, unpack_base64},
    fold::{self, same},
    golang,
    problem::{BlobName, Part},
};
use mainstay_gocompat::values::json_kind;
use mainstay_yaml::Step;
use serde_json::{Map, Value};

/// The kind of value that a field takes.
pub(crate) enum Kind {
    Text,
    Bool,
    /// Anything.
    Any,
    /// A text whose Go type has a name of its own.
    Named(&'static str),
    /// Bytes in base64.
    Bytes,
    /// A whole number, by the name of its Go type.
    Int(&'static str),
    Texts,
    /// A mapping of texts to texts.
    TextMap,
    One(&'static Shape),
    Many(&'static Shape),
}

use Kind::{Any, Bool, Bytes, Int, Many, Named, One, Text, TextMap, Texts};

/// A Go struct: how messages call it as a struct and as a type, and its fields.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) spelled: &'static str,
    pub(crate) fields: &'static [(&'static str, Kind)],
}

static PACKAGE_BLOB: Shape = Shape {
    name: "Package",
    spelled: "declcfg.Package",
    fields: &[
        ("schema", Text),
        ("name", Text),
        ("defaultChannel", Text),
        ("icon", One(&ICON)),
        ("description", Text),
        ("properties", Many(&PROPERTY)),
    ],
};

static ICON: Shape = Shape {
    name: "Icon",
    spelled: "declcfg.Icon",
    fields: &[("base64data", Bytes), ("mediatype", Text)],
};

static PROPERTY: Shape = Shape {
    name: "Property",
    spelled: "property.Property",
    fields: &[("type", Text), ("value", Any)],
};

static CHANNEL_BLOB: Shape = Shape {
    name: "Channel",
    spelled: "declcfg.Channel",
    fields: &[
        ("schema", Text),
        ("name", Text),
        ("package", Text),
        ("entries", Many(&ENTRY)),
        ("properties", Many(&PROPERTY)),
    ],
};

static ENTRY: Shape = Shape {
    name: "ChannelEntry",
    spelled: "declcfg.ChannelEntry",
    fields: &[("name", Text), ("replaces", Text), ("skips", Texts), ("skipRange", Text)],
};

static BUNDLE_BLOB: Shape = Shape {
    name: "Bundle",
    spelled: "declcfg.Bundle",
    fields: &[
        ("schema", Text),
        ("name", Text),
        ("package", Text),
        ("image", Text),
        ("properties", Many(&PROPERTY)),
        ("relatedImages", Many(&RELATED_IMAGE)),
    ],
};

static RELATED_IMAGE: Shape = Shape {
    name: "RelatedImage",
    spelled: "declcfg.RelatedImage",
    fields: &[("name", Text), ("image", Text)],
};

static DEPRECATION_BLOB: Shape = Shape {
    name: "Deprecation",
    spelled: "declcfg.Deprecation",
    fields: &[("schema", Text), ("package", Text), ("entries", Many(&DEPRECATION_ENTRY))],
};

static DEPRECATION_ENTRY: Shape = Shape {
    name: "DeprecationEntry",
    spelled: "declcfg.DeprecationEntry",
    fields: &[("reference", One(&REFERENCE)), ("message", Text)],
};

static REFERENCE: Shape = Shape {
    name: "PackageScopedReference",
    spelled: "declcfg.PackageScopedReference",
    fields: &[("schema", Text), ("name", Text)],
};

pub(crate) static BUNDLE_OBJECT: Shape =
    Shape { name: "BundleObject", spelled: "property.BundleObject", fields: &[("data", Bytes)] };

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
    fields: &[("type", Named("v1alpha1.InstallModeType")), ("supported", Bool)],
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

/// Something odd about the fields of an object, which Go passes over without a word.
pub(crate) enum Odd<'v> {
    /// A field that the type does not have.
    Unknown(&'v str),
    /// A field that is there under two spellings.
    Twice(&'v str, &'v str),
}

impl Shape {
    /// The names of its fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|(name, _)| *name)
    }

    /// Goes through a value of this shape, and tells everything odd with the path to the object
    /// that has it and the shape of that. Shapes are finite, so the depth is theirs.
    pub(crate) fn odd_fields<'v>(
        &'static self,
        value: &'v Value,
        path: &mut Vec<Step<'static>>,
        tell: &mut impl FnMut(&[Step<'static>], &'static Self, Odd<'v>),
    ) {
        let Value::Object(object) = value else { return };
        let mut seen: Vec<(&str, &'v str)> = Vec::new();
        for (name, value) in object {
            let Some((field, kind)) = self.fields.iter().find(|(field, _)| same(name, field))
            else {
                tell(path, self, Odd::Unknown(name));
                continue;
            };
            if let Some((_, first)) = seen.iter().find(|(known, _)| known == field) {
                tell(path, self, Odd::Twice(first, name));
            }
            seen.push((field, name));
            path.push(Step::Field(field));
            match (kind, value) {
                (One(inner), value) => inner.odd_fields(value, path, tell),
                (Many(inner), Value::Array(items)) => {
                    for (index, item) in items.iter().enumerate() {
                        path.push(Step::Item(index));
                        inner.odd_fields(item, path, tell);
                        path.pop();
                    }
                }
                _ => {}
            }
            path.pop();
        }
    }
}

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

/// The shape of a document and what messages call it; `None` for schemas that are not ours.
pub(crate) fn of_document(schema: &str) -> Option<(&'static Shape, &'static str)> {
    Some(match schema {
        "olm.package" => (&PACKAGE_BLOB, "package"),
        "olm.channel" => (&CHANNEL_BLOB, "channel"),
        "olm.bundle" => (&BUNDLE_BLOB, "bundle"),
        "olm.deprecations" => (&DEPRECATION_BLOB, "deprecation"),
        _ => return None,
    })
}

/// The fields that documents of the known schemas have.
pub(crate) const FIELDS: [&str; 10] = [
    "schema",
    "package",
    "name",
    "image",
    "entries",
    "properties",
    "defaultChannel",
    "relatedImages",
    "description",
    "icon",
];

/// What a document is called, as far as it says so.
pub(crate) fn called(fields: &Map<String, Value>) -> Option<BlobName> {
    let text = |field| fold::get_in(fields, field).and_then(Value::as_str).unwrap_or_default();
    let (schema, name) = (text("schema"), text("name"));
    let package = if schema == "olm.package" { name } else { text("package") };
    let called = || BlobName { schema: schema.into(), package: package.into(), name: name.into() };
    (!schema.is_empty()).then(called)
}

/// The text of a field that the value of a checked shape has; empty when it is not set.
pub(crate) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    fold::get(value, field).and_then(Value::as_str).unwrap_or_default()
}

/// Why a value does not have a shape, in Go's words, and at which part of it.
///
/// Go reads the fields in the order of the text, remembers the first one that it cannot take, and
/// so does this: a canonical object has its fields in the order of their names.
pub(crate) fn check(value: &Value, shape: &Shape) -> Result<(), ShapeError> {
    match value {
        Value::Null => Ok(()),
        Value::Object(object) => fields(object, shape, ""),
        other => Err(ShapeError {
            message: format!(
                "json: cannot unmarshal {} into Go value of type {}",
                json_kind(other),
                shape.spelled
            ),
            path: Vec::new(),
        }),
    }
}

/// Checks the fields of an object. `prefix` is the path of fields that leads to it. Shapes are
/// finite, so the depth of this is that of the tables and not that of the value.
pub(crate) fn fields(
    object: &Map<String, Value>,
    shape: &Shape,
    prefix: &str,
) -> Result<(), ShapeError> {
    fields_in(object, shape, prefix, false)
}

/// As [`fields`], where `strict` refuses fields that the type does not have.
pub(crate) fn fields_in(
    object: &Map<String, Value>,
    shape: &Shape,
    prefix: &str,
    strict: bool,
) -> Result<(), ShapeError> {
    for (name, value) in object {
        let known = shape.fields.iter().find(|(field, _)| same(name, field));
        let Some((field, kind)) = known else {
            if strict {
                let message = format!("json: unknown field {}", mainstay_gocompat::quote(name));
                return Err(ShapeError { message, path: Vec::new() });
            }
            continue;
        };
        let place = Place { shape, prefix, field, strict };
        place.check(kind, value).map_err(|wrong| wrong.below(Part::Field(field)))?;
    }
    Ok(())
}

/// A field of a struct, as messages call it.
struct Place<'s> {
    shape: &'s Shape,
    prefix: &'s str,
    field: &'static str,
    strict: bool,
}

impl Place<'_> {
    fn refuse(&self, found: &str, expected: &str) -> ShapeError {
        let Self { shape: Shape { name, .. }, prefix, field, .. } = self;
        ShapeError {
            message: format!(
                "json: cannot unmarshal {found} into Go struct field {name}.{prefix}{field} of type {expected}"
            ),
            path: Vec::new(),
        }
    }

    /// Checks that a value is a whole number of a Go type.
    fn whole(&self, value: &Value, name: &str) -> Result<(), ShapeError> {
        let Value::Number(number) = value else { return Err(self.refuse(json_kind(value), name)) };
        let fits = match (number.as_i64(), name) {
            (Some(number), "uint8") => u8::try_from(number).is_ok(),
            (Some(number), "int32") => i32::try_from(number).is_ok(),
            (Some(_), _) => true,
            // Zero may have a sign, but not where there are no signs.
            (None, _) => number.as_f64() == Some(0.0) && name != "uint8",
        };
        if fits {
            return Ok(());
        }
        Err(self.refuse(&format!("number {}", golang::json(value, false)), name))
    }

    fn check(&self, kind: &Kind, value: &Value) -> Result<(), ShapeError> {
        let refuse = |value: &Value, expected: &str| Err(self.refuse(json_kind(value), expected));
        let odd_text = |item: &Value| !item.is_string() && !item.is_null();
        match (kind, value) {
            (_, Value::Null) | (Any, _) | (Text, Value::String(_)) | (Bool, Value::Bool(_)) => {
                Ok(())
            }
            (Named(_), Value::String(_)) => Ok(()),
            (Named(name), other) => refuse(other, name),
            (Text, other) => refuse(other, "string"),
            (Bool, other) => refuse(other, "bool"),
            (Bytes, Value::String(text)) => match unpack_base64(text) {
                Ok(_) => Ok(()),
                Err(why) => Err(ShapeError { message: why.to_string(), path: Vec::new() }),
            },
            // Go takes a list for bytes as well, one by one.
            (Bytes, Value::Array(items)) => {
                items.iter().enumerate().filter(|(_, item)| !item.is_null()).try_for_each(
                    |(at, item)| {
                        self.whole(item, "uint8").map_err(|wrong| wrong.below(Part::Item(at)))
                    },
                )
            }
            (Bytes, other) => refuse(other, "[]uint8"),
            (Int(name), other) => self.whole(other, name),
            (Texts, Value::Array(items)) => match items.iter().position(odd_text) {
                Some(at) => Err(self.refuse(json_kind(&items[at]), "string").below(Part::Item(at))),
                None => Ok(()),
            },
            (Texts, other) => refuse(other, "[]string"),
            (TextMap, Value::Object(map)) => match map.values().find(|item| odd_text(item)) {
                Some(odd) => refuse(odd, "string"),
                None => Ok(()),
            },
            (TextMap, other) => refuse(other, "map[string]string"),
            (One(inner), Value::Object(object)) => {
                fields_in(object, inner, &format!("{}{}.", self.prefix, self.field), self.strict)
            }
            (One(inner), other) => refuse(other, inner.spelled),
            (Many(inner), Value::Array(items)) => {
                let prefix = format!("{}{}.", self.prefix, self.field);
                for (index, item) in items.iter().enumerate() {
                    match item {
                        Value::Null => Ok(()),
                        Value::Object(object) => fields_in(object, inner, &prefix, self.strict),
                        other => refuse(other, inner.spelled),
                    }
                    .map_err(|wrong| wrong.below(Part::Item(index)))?;
                }
                Ok(())
            }
            (Many(inner), other) => refuse(other, &format!("[]{}", inner.spelled)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{check, of_document, of_property};
    use serde_json::{Value, json};

    #[test]
    fn values_are_refused_in_the_words_of_go() {
        let in_icon = |data: Value| ("olm.package", json!({ "icon": { "base64data": data } }));
        let refused = |found: &str, of: &str| {
            format!("json: cannot unmarshal {found} into Go struct field {of}")
        };
        let byte = "Icon.icon.base64data of type uint8";
        let port = |port: Value| {
            let services = json!({ "owned": [{ "containerPort": port }] });
            ("olm.csv.metadata", json!({ "apiServiceDefinitions": services }))
        };
        let in_port =
            "APIServiceDescription.apiServiceDefinitions.owned.containerPort of type int32";
        let priority = |value: Value| ("olm.channel", json!({ "priority": value }));
        let table = [
            (in_icon(json!("QQ==")), None),
            (in_icon(json!([60, null, 255])), None),
            (in_icon(json!([256])), Some(refused("number 256", byte))),
            (in_icon(json!([-0.0])), Some(refused("number -0", byte))),
            (in_icon(json!([1, null, {}])), Some(refused("object", byte))),
            (in_icon(json!(true)), Some(refused("bool", "Icon.icon.base64data of type []uint8"))),
            (port(json!(443)), None),
            (port(json!(1_i64 << 31)), Some(refused("number 2147483648", in_port))),
            (priority(json!(1_i64 << 31)), None),
            (priority(json!(-0.0)), None),
            (priority(json!(1e30)), Some(refused("number 1e+30", "Channel.priority of type int"))),
            (
                ("olm.csv.metadata", json!({ "installModes": [{ "type": true }] })),
                Some(refused(
                    "bool",
                    "InstallMode.installModes.type of type v1alpha1.InstallModeType",
                )),
            ),
        ];
        for ((kind, value), expected) in table {
            // The table of documents knows one name that properties have as well.
            let shape = match kind {
                "olm.package" => of_document(kind).unwrap().0,
                _ => of_property(kind).unwrap(),
            };
            let found = check(&value, shape).err().map(|wrong| wrong.message);
            assert_eq!(found, expected, "{value}");
        }
    }
}
