//! CustomResourceDefinitions as `cargo xtask crds` writes them (feature `schema`).
//!
//! Properties, types and required fields come from the declarations of the views. Names, versions,
//! printer columns and the differences of older versions are in the table of [`manifests`]. Untyped
//! fields of the views appear as `{"$ref": "<definition of the Kubernetes API>"}`; the xtask replaces
//! these with the schemas.

use crate::{
    ApiKind, CatalogSource, ClusterServiceVersion, InstallPlan, OlmConfig, Operator,
    OperatorCondition, OperatorGroup, OperatorHub, Subscription, Time, TypedObject, olm_v1,
    resources,
};
use mainstay_object::Object;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A type with a schema.
pub(crate) trait Shape {
    /// The schema; `value_definition` names the definition of untyped values in it, or is empty.
    fn shape(value_definition: &str) -> Value;
}

macro_rules! plain {
    ($($ty:ty => $schema:tt;)*) => {$(
        impl Shape for $ty {
            fn shape(_: &str) -> Value {
                json!($schema)
            }
        }
    )*};
}

plain! {
    String => {"type": "string"};
    bool => {"type": "boolean"};
    i64 => {"type": "integer"};
    Time => {"type": "string", "format": "date-time"};
}

impl Shape for Value {
    fn shape(value_definition: &str) -> Value {
        json!({"$ref": value_definition})
    }
}

impl Shape for Map<String, Value> {
    fn shape(_: &str) -> Value {
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}

impl Shape for Object {
    fn shape(_: &str) -> Value {
        json!({
            "type": "object",
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        })
    }
}

impl<T: Shape> Shape for Option<T> {
    fn shape(value_definition: &str) -> Value {
        T::shape(value_definition)
    }
}

impl<T: Shape> Shape for Vec<T> {
    fn shape(value_definition: &str) -> Value {
        json!({"type": "array", "items": T::shape(value_definition)})
    }
}

impl<T: Shape> Shape for BTreeMap<String, T> {
    fn shape(value_definition: &str) -> Value {
        json!({"type": "object", "additionalProperties": T::shape(value_definition)})
    }
}

/// Collects the fields of a struct.
#[derive(Default)]
pub(crate) struct Builder {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Builder {
    pub(crate) fn field<T: Shape>(
        &mut self,
        name: &str,
        description: &str,
        required: bool,
        value_definition: &str,
        extra: Value,
    ) {
        let mut schema = T::shape(value_definition);
        describe(&mut schema, description);
        extend(&mut schema, extra);
        self.properties.insert(name.to_owned(), schema);
        if required {
            self.required.push(name.to_owned());
        }
    }

    pub(crate) fn finish(mut self, description: &str, extra: Value) -> Value {
        let mut schema = json!({"type": "object"});
        if !self.properties.is_empty() {
            schema["properties"] = Value::Object(self.properties);
        }
        if !self.required.is_empty() {
            self.required.sort();
            schema["required"] = json!(self.required);
        }
        describe(&mut schema, description);
        extend(&mut schema, extra);
        schema
    }
}

/// Joins the lines of a doc comment; a field's own text replaces that of its type.
fn describe(schema: &mut Value, lines: &str) {
    let text: Vec<&str> = lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if !text.is_empty() {
        schema["description"] = json!(text.join(" "));
    }
}

fn extend(schema: &mut Value, extra: Value) {
    if let (Some(schema), Value::Object(extra)) = (schema.as_object_mut(), extra) {
        schema.extend(extra);
    }
}

/// A printer column: heading, type, path, description.
type Column = (&'static str, &'static str, &'static str, &'static str);

/// One version of a kind.
pub(crate) struct Version {
    name: &'static str,
    storage: bool,
    columns: &'static [Column],
    /// Changes the schema of the views to that of this version.
    pub(crate) adapt: fn(&mut Value),
}

/// The only version of a kind.
pub(crate) const fn single_version(name: &'static str, columns: &'static [Column]) -> Version {
    Version { name, storage: true, columns, adapt: |_| {} }
}

/// The eight definitions of `operators.coreos.com`, sorted by plural name, that of OperatorHub, and those
/// of OLM v1, with unresolved `$ref`s.
pub fn manifests() -> Vec<Value> {
    let spec = &json!(["metadata", "spec"]);
    let metadata = &json!(["metadata"]);
    let mut definitions = vec![
        definition(
            CatalogSource::default(),
            &["catsrc"],
            spec,
            &[single_version(
                "v1alpha1",
                &[
                    ("Display", "string", ".spec.displayName", "The pretty name of the catalog"),
                    ("Type", "string", ".spec.sourceType", "The type of the catalog"),
                    ("Publisher", "string", ".spec.publisher", "The publisher of the catalog"),
                    ("Age", "date", ".metadata.creationTimestamp", ""),
                ],
            )],
        ),
        definition(
            ClusterServiceVersion::default(),
            &["csv", "csvs"],
            spec,
            &[single_version(
                "v1alpha1",
                &[
                    ("Display", "string", ".spec.displayName", "The name of the CSV"),
                    ("Version", "string", ".spec.version", "The version of the CSV"),
                    ("Release", "string", ".spec.release", "The release of this version"),
                    ("Replaces", "string", ".spec.replaces", "The CSV that this one replaces"),
                    ("Phase", "string", ".status.phase", ""),
                ],
            )],
        ),
        definition(
            InstallPlan::default(),
            &["ip"],
            spec,
            &[single_version(
                "v1alpha1",
                &[
                    (
                        "CSV",
                        "string",
                        ".spec.clusterServiceVersionNames[0]",
                        "The first CSV in the list of names",
                    ),
                    ("Approval", "string", ".spec.approval", "The approval mode"),
                    ("Approved", "boolean", ".spec.approved", ""),
                ],
            )],
        ),
        definition(OlmConfig::default(), &[], metadata, &[single_version("v1", &[])]),
        definition(
            OperatorCondition::default(),
            &["condition"],
            metadata,
            &[
                Version {
                    name: "v1",
                    storage: false,
                    columns: &[],
                    // In v1, operators write their conditions to the status.
                    adapt: |schema| remove(schema, &["spec", "conditions"]),
                },
                single_version("v2", &[]),
            ],
        ),
        definition(
            OperatorGroup::default(),
            &["og"],
            metadata,
            &[
                Version {
                    name: "v1",
                    storage: true,
                    columns: &[],
                    adapt: |schema| {
                        schema["properties"]["spec"]["default"] =
                            json!({"upgradeStrategy": "Default"});
                    },
                },
                Version {
                    name: "v1alpha2",
                    storage: false,
                    columns: &[],
                    adapt: |schema| {
                        remove(schema, &["spec", "upgradeStrategy"]);
                        remove(schema, &["status", "conditions"]);
                        for path in [["spec", "targetNamespaces"], ["status", "namespaces"]] {
                            if let Some(list) = property(schema, &path) {
                                list.remove("x-kubernetes-list-type");
                            }
                        }
                    },
                },
            ],
        ),
        definition(Operator::default(), &[], &Value::Null, &[single_version("v1", &[])]),
        definition(
            Subscription::default(),
            &["sub", "subs"],
            spec,
            &[single_version(
                "v1alpha1",
                &[
                    ("Package", "string", ".spec.name", "The package subscribed to"),
                    ("Source", "string", ".spec.source", "The catalog source of the package"),
                    ("Channel", "string", ".spec.channel", "The channel of updates"),
                ],
            )],
        ),
        definition(OperatorHub::default(), &[], spec, &[single_version("v1", &[])]),
    ];
    definitions.extend(olm_v1::definitions::definitions());
    definitions
}

/// The definition of a kind; `required` are the required fields of an object.
pub(crate) fn definition<S: Shape, T: Shape>(
    _: TypedObject<S, T>,
    short_names: &[&str],
    required: &Value,
    versions: &[Version],
) -> Value
where
    TypedObject<S, T>: ApiKind,
{
    let resource = <TypedObject<S, T>>::RESOURCE;
    let mut names = json!({
        "kind": resource.kind,
        "listKind": format!("{}List", resource.kind),
        "plural": resource.plural,
        "singular": resource.kind.to_lowercase(),
    });
    if resource.group == resources::GROUP {
        names["categories"] = json!(["olm"]);
    }
    if !short_names.is_empty() {
        names["shortNames"] = json!(short_names);
    }
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            let mut schema = root::<S, T>(required);
            (version.adapt)(&mut schema);
            let mut value = json!({
                "name": version.name,
                "served": true,
                "storage": version.storage,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
            });
            if !version.columns.is_empty() {
                value["additionalPrinterColumns"] = version.columns.iter().map(column).collect();
            }
            value
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.group_resource()},
        "spec": {
            "group": resource.group,
            "names": names,
            "scope": resource.scope,
            "versions": versions,
        },
    })
}

fn root<S: Shape, T: Shape>(required: &Value) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let mut schema = json!({
        "type": "object",
        "properties": {
            "apiVersion": text("Group and version of this object."),
            "kind": text("Kind of this object."),
            "metadata": {"type": "object"},
            "spec": S::shape(""),
            "status": T::shape(""),
        },
    });
    if !required.is_null() {
        schema["required"] = required.clone();
    }
    schema
}

fn column((name, kind, path, description): &Column) -> Value {
    let mut column = json!({"name": name, "type": kind, "jsonPath": path});
    if !description.is_empty() {
        column["description"] = json!(description);
    }
    column
}

/// The schema of a property, down a path of names.
fn property<'a>(schema: &'a mut Value, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    path.iter()
        .try_fold(schema, |schema, name| schema.get_mut("properties")?.get_mut(*name))?
        .as_object_mut()
}

/// Removes a property, down a path of names.
pub(crate) fn remove(schema: &mut Value, path: &[&str]) {
    if let Some((name, parent)) = path.split_last()
        && let Some(parent) = property(schema, parent)
        && let Some(properties) = parent.get_mut("properties").and_then(Value::as_object_mut)
    {
        properties.remove(*name);
    }
}
