//! Go types of catalog documents and property values that the generated table of Go types does not
//! have, and the errors of Go's decoder for them.

use crate::{
    case_fold,
    decode::ShapeError,
    problem::{BlobName, PathPart},
};
use DeclaredType::{Bytes, Int, List, Raw, Struct, Table, Text};
use mainstay_schema::gojson::{self, DeclaredStruct, DeclaredType, Mismatch};
use mainstay_yaml::PathStep;
use serde_json::{Map, Value};

static PACKAGE_BLOB: DeclaredStruct = DeclaredStruct {
    name: "Package",
    spelled: "declcfg.Package",
    fields: &[
        ("schema", Text),
        ("name", Text),
        ("defaultChannel", Text),
        ("icon", Struct(&ICON)),
        ("description", Text),
        ("properties", List(&Struct(&PROPERTY))),
    ],
};

static ICON: DeclaredStruct = DeclaredStruct {
    name: "Icon",
    spelled: "declcfg.Icon",
    fields: &[("base64data", Bytes), ("mediatype", Text)],
};

static PROPERTY: DeclaredStruct = DeclaredStruct {
    name: "Property",
    spelled: "property.Property",
    fields: &[("type", Text), ("value", Raw)],
};

static CHANNEL_BLOB: DeclaredStruct = DeclaredStruct {
    name: "Channel",
    spelled: "declcfg.Channel",
    fields: &[
        ("schema", Text),
        ("name", Text),
        ("package", Text),
        ("entries", List(&Struct(&ENTRY))),
        ("properties", List(&Struct(&PROPERTY))),
    ],
};

static ENTRY: DeclaredStruct = DeclaredStruct {
    name: "ChannelEntry",
    spelled: "declcfg.ChannelEntry",
    fields: &[("name", Text), ("replaces", Text), ("skips", List(&Text)), ("skipRange", Text)],
};

static BUNDLE_BLOB: DeclaredStruct = DeclaredStruct {
    name: "Bundle",
    spelled: "declcfg.Bundle",
    fields: &[
        ("schema", Text),
        ("name", Text),
        ("package", Text),
        ("image", Text),
        ("properties", List(&Struct(&PROPERTY))),
        ("relatedImages", List(&Struct(&RELATED_IMAGE))),
    ],
};

static RELATED_IMAGE: DeclaredStruct = DeclaredStruct {
    name: "RelatedImage",
    spelled: "declcfg.RelatedImage",
    fields: &[("name", Text), ("image", Text)],
};

static DEPRECATION_BLOB: DeclaredStruct = DeclaredStruct {
    name: "Deprecation",
    spelled: "declcfg.Deprecation",
    fields: &[("schema", Text), ("package", Text), ("entries", List(&Struct(&DEPRECATION_ENTRY)))],
};

static DEPRECATION_ENTRY: DeclaredStruct = DeclaredStruct {
    name: "DeprecationEntry",
    spelled: "declcfg.DeprecationEntry",
    fields: &[("reference", Struct(&REFERENCE)), ("message", Text)],
};

static REFERENCE: DeclaredStruct = DeclaredStruct {
    name: "PackageScopedReference",
    spelled: "declcfg.PackageScopedReference",
    fields: &[("schema", Text), ("name", Text)],
};

pub(crate) static BUNDLE_OBJECT: DeclaredStruct = DeclaredStruct {
    name: "BundleObject",
    spelled: "property.BundleObject",
    fields: &[("data", Bytes)],
};

static GVK: DeclaredStruct = DeclaredStruct {
    name: "GVK",
    spelled: "property.GVK",
    fields: &[("group", Text), ("kind", Text), ("version", Text)],
};

static GVK_REQUIRED: DeclaredStruct =
    DeclaredStruct { name: "GVKRequired", spelled: "property.GVKRequired", fields: GVK.fields };

static PACKAGE: DeclaredStruct = DeclaredStruct {
    name: "Package",
    spelled: "property.Package",
    fields: &[("packageName", Text), ("version", Text), ("release", Text)],
};

static PACKAGE_REQUIRED: DeclaredStruct = DeclaredStruct {
    name: "PackageRequired",
    spelled: "property.PackageRequired",
    fields: &[("packageName", Text), ("versionRange", Text)],
};

static CHANNEL: DeclaredStruct = DeclaredStruct {
    name: "Channel",
    spelled: "property.Channel",
    fields: &[("channelName", Text), ("priority", Int("int"))],
};

/// A field name that Go's decoder silently ignores or merges.
pub(crate) enum FieldNameFault<'v> {
    /// The type has no such field.
    Unknown(&'v str),
    /// The field is present in two spellings.
    Repeated(&'v str, &'v str),
}

/// Visits a value of a struct, and reports each faulty field name with the path to its object and
/// the struct of that object. Declared structs are finite, so the recursion is bounded.
pub(crate) fn visit_field_faults<'v>(
    declared: &'static DeclaredStruct,
    value: &'v Value,
    path: &mut Vec<PathStep<'static>>,
    found: &mut impl FnMut(&[PathStep<'static>], &'static DeclaredStruct, FieldNameFault<'v>),
) {
    let Value::Object(object) = value else { return };
    let mut present: Vec<(&str, &'v str)> = Vec::new();
    for (name, value) in object {
        let Some((field, ty)) = declared.field(name) else {
            found(path, declared, FieldNameFault::Unknown(name));
            continue;
        };
        if let Some((_, first)) = present.iter().find(|(present_field, _)| present_field == field) {
            found(path, declared, FieldNameFault::Repeated(first, name));
        }
        present.push((field, name));
        path.push(PathStep::Field(field));
        match (ty, value) {
            (Struct(inner), value) => visit_field_faults(inner, value, path, found),
            (List(Struct(inner)), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    path.push(PathStep::Item(index));
                    visit_field_faults(inner, item, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
        path.pop();
    }
}

/// The type of a property's value; `None` for properties with any value.
pub(crate) fn of_property(kind: &str) -> Option<DeclaredType> {
    Some(match kind {
        crate::model::CSV_METADATA => Table("operator-registry.alpha.property.CSVMetadata"),
        kind => Struct(struct_of_property(kind)?),
    })
}

/// The struct of a property's value, if the table of Go types does not have it.
pub(crate) fn struct_of_property(kind: &str) -> Option<&'static DeclaredStruct> {
    Some(match kind {
        "olm.gvk" => &GVK,
        "olm.gvk.required" => &GVK_REQUIRED,
        "olm.package" => &PACKAGE,
        "olm.package.required" => &PACKAGE_REQUIRED,
        "olm.channel" => &CHANNEL,
        _ => return None,
    })
}

/// The type of a document and its name in messages; `None` for custom schemas.
pub(crate) fn of_document(schema: &str) -> Option<(&'static DeclaredStruct, &'static str)> {
    Some(match schema {
        "olm.package" => (&PACKAGE_BLOB, "package"),
        "olm.channel" => (&CHANNEL_BLOB, "channel"),
        "olm.bundle" => (&BUNDLE_BLOB, "bundle"),
        "olm.deprecations" => (&DEPRECATION_BLOB, "deprecation"),
        _ => return None,
    })
}

/// The fields of documents of the known schemas.
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

/// Schema, package and name of a document; none without a schema.
pub(crate) fn blob_name(fields: &Map<String, Value>) -> Option<BlobName> {
    let text = |field| case_fold::get_in(fields, field).and_then(Value::as_str).unwrap_or_default();
    let (schema, name) = (text("schema"), text("name"));
    let package = if schema == "olm.package" { name } else { text("package") };
    let name = || BlobName { schema: schema.into(), package: package.into(), name: name.into() };
    (!schema.is_empty()).then(name)
}

/// The text of a field of a checked value; empty when it is unset.
pub(crate) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    case_fold::get(value, field).and_then(Value::as_str).unwrap_or_default()
}

/// Checks the type of a value. The error has Go's words and the path.
pub(crate) fn check(value: &Value, ty: DeclaredType) -> Result<(), ShapeError> {
    gojson::check(value, &ty).map_err(ShapeError::from)
}

/// As [`check`], for the fields of a struct. With `strict`, unknown fields are refused.
pub(crate) fn check_fields(
    fields: &Map<String, Value>,
    declared: &'static DeclaredStruct,
    strict: bool,
) -> Result<(), ShapeError> {
    gojson::check_fields(fields, declared, strict).map_err(ShapeError::from)
}

impl From<Box<Mismatch>> for ShapeError {
    fn from(mismatch: Box<Mismatch>) -> Self {
        let mut names = mismatch.fields.into_iter();
        let part = |step: &gojson::ValuePathStep| match step {
            gojson::ValuePathStep::Field(_) => names.next().map(PathPart::Field),
            gojson::ValuePathStep::Item(index) => Some(PathPart::Item(*index)),
        };
        // A value below a key of a map is located by the field of the map.
        let path = mismatch.path.iter().map_while(part).collect();
        Self { message: mismatch.reason.to_string(), path }
    }
}

/// Renames the fields that are read on demand to their canonical names.
pub(crate) fn canonical_bundle(fields: &mut Map<String, Value>) {
    rename(fields, &["properties"]);
    let Some(Value::Array(properties)) = fields.get_mut("properties") else { return };
    for property in properties {
        let Value::Object(property) = property else { continue };
        rename(property, &["type", "value"]);
        if property.get("type").and_then(Value::as_str) == Some(crate::model::BUNDLE_OBJECT)
            && let Some(Value::Object(object)) = property.get_mut("value")
        {
            rename(object, &["data"]);
        }
    }
}

fn rename(fields: &mut Map<String, Value>, names: &[&str]) {
    for name in names {
        if fields.contains_key(*name) {
            continue;
        }
        let other = fields.keys().find(|key| key.eq_ignore_ascii_case(name)).cloned();
        if let Some(value) = other.and_then(|other| fields.remove(&other)) {
            fields.insert((*name).to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn type_errors_have_the_words_of_go() {
        let in_icon = |data: Value| ("olm.package", json!({ "icon": { "base64data": data } }));
        let refused = |found: &str, field: &str| {
            format!("json: cannot unmarshal {found} into Go struct field {field}")
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
            // olm.package is the schema of documents and the type of a property.
            let shape = match kind {
                "olm.package" => Struct(of_document(kind).unwrap().0),
                _ => of_property(kind).unwrap(),
            };
            let found = check(&value, shape).err().map(|wrong| wrong.message);
            assert_eq!(found, expected, "{value}");
        }
    }
}
