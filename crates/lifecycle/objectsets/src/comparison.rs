//! Comparison of a desired object with that of the cluster, by the owners of its fields.
//!
//! An object is as desired if the field manager of ClusterObjectSets owns all desired fields, and none of them
//! differs. So defaults of the server and fields of other managers are no drift. The comparison is also a part
//! of reports about collisions.

use mainstay_api::names::olm_v1::OBJECT_FIELD_MANAGER;
use mainstay_gocompat::quote;
use mainstay_object::Object;
use mainstay_patch::apply::FieldsError;
use mainstay_patch::apply::{
    FieldComparison, FieldSet, PathElement, TypeProblems, TypeRef, compare, field_set, remove,
};
use mainstay_schema::builtin;
use serde_json::Value;
use std::fmt::Write as _;

/// Fields that the server sets, and those that identify an object.
const IGNORED_METADATA: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// Fields of a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedFieldSet {
    /// Name of the manager.
    pub manager: String,
    /// The fields.
    pub fields: FieldSet,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectComparison {
    /// Managers of desired fields.
    pub conflicts: Vec<ManagedFieldSet>,
    /// Managers of other fields.
    pub others: Vec<ManagedFieldSet>,
    /// Differences of values; none if the field manager of ClusterObjectSets owns no field.
    pub difference: Option<FieldComparison>,
}

/// Why objects cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareObjectsError {
    /// The desired object does not fit its type.
    #[error("diverge check: desired object: {0}")]
    Desired(TypeProblems),
    /// The object of the cluster does not fit its type.
    #[error("diverge check: compare: {0}")]
    Compare(TypeProblems),
    /// The managed fields of the object are malformed.
    #[error("diverge check: field set for actual: {0}")]
    ManagedFields(#[from] FieldsError),
}

/// The type of a built-in kind; none for other kinds, whose type is the schema of their CRD.
pub fn builtin_type(object: &Object) -> Option<TypeRef<'static>> {
    let gvk = object.gvk();
    let name = builtin::definition_name(&gvk.group, &gvk.version, &gvk.kind)?;
    builtin::definition(&name).map(TypeRef::builtin)
}

/// Compares a desired [`managed_object`](crate::managed_object) with the object of the cluster. `ignores_status` is true
/// if a kind of the group and version has the subresource `status`.
///
/// # Errors
/// An object does not fit its type, or the managed fields are malformed.
pub fn compare_objects(
    desired: &Object,
    actual: &Object,
    ty: TypeRef<'_>,
    ignores_status: bool,
) -> Result<ObjectComparison, CompareObjectsError> {
    let ignored = ignored_fields(ignores_status);
    let mut desired = desired.to_value();
    let wanted =
        field_set(&desired, ty).map_err(CompareObjectsError::Desired)?.difference(&ignored);
    let mut comparison = ObjectComparison::default();
    let managers = managers(actual)?;
    let is_ours = |entry: &ManagerEntry<'_>| {
        entry.manager == OBJECT_FIELD_MANAGER && entry.is_apply && entry.is_whole_object
    };
    let Some(ours) = managers.iter().find(|entry| is_ours(entry)) else {
        for entry in managers {
            let fields = wanted.intersection(&entry.fields);
            comparison.conflicts.extend(entry.of(fields));
        }
        return Ok(comparison);
    };
    let missing = wanted.difference(&ours.fields).leaves();
    for entry in managers.iter().filter(|entry| entry.manager != OBJECT_FIELD_MANAGER) {
        comparison.conflicts.extend(entry.of(entry.fields.intersection(&missing)));
        comparison.others.extend(entry.of(entry.fields.clone().difference(&missing)));
    }
    let mut actual = actual.to_value();
    remove(&mut desired, &ignored, ty);
    remove(&mut actual, &ignored, ty);
    let difference = compare(&desired, &actual, ty).map_err(CompareObjectsError::Compare)?;
    comparison.difference = Some(difference);
    Ok(comparison)
}

fn ignored_fields(with_status: bool) -> FieldSet {
    let mut ignored = FieldSet::new();
    ignored.insert(&[PathElement::field("apiVersion")]);
    ignored.insert(&[PathElement::field("kind")]);
    for name in IGNORED_METADATA {
        ignored.insert(&[PathElement::field("metadata"), PathElement::field(name)]);
    }
    if with_status {
        ignored.insert(&[PathElement::field("status")]);
    }
    ignored
}

/// An entry of `metadata.managedFields`.
struct ManagerEntry<'o> {
    manager: &'o str,
    is_apply: bool,
    is_whole_object: bool,
    fields: FieldSet,
}

impl ManagerEntry<'_> {
    fn of(&self, fields: FieldSet) -> Option<ManagedFieldSet> {
        (!fields.is_empty()).then(|| ManagedFieldSet { manager: self.manager.to_owned(), fields })
    }
}

fn managers(object: &Object) -> Result<Vec<ManagerEntry<'_>>, FieldsError> {
    let read = |entry| -> Result<ManagerEntry<'_>, FieldsError> {
        let text = |entry: &'_ Value, name: &str| -> String {
            entry.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let entry: &Value = entry;
        Ok(ManagerEntry {
            manager: entry.get("manager").and_then(Value::as_str).unwrap_or_default(),
            is_apply: text(entry, "operation") == "Apply",
            is_whole_object: text(entry, "subresource").is_empty(),
            fields: match entry.get("fieldsV1") {
                None | Some(Value::Null) => FieldSet::new(),
                Some(fields) => FieldSet::from_fields_v1(fields)?,
            },
        })
    };
    object.array(&["metadata", "managedFields"]).iter().map(read).collect()
}

impl ObjectComparison {
    /// Whether another manager owns desired fields.
    pub const fn is_conflict(&self) -> bool {
        !self.conflicts.is_empty()
    }

    /// Whether desired fields are missing or have other values.
    pub fn is_modified(&self) -> bool {
        self.difference
            .as_ref()
            .is_some_and(|found| !found.modified.is_empty() || !found.removed.is_empty())
    }

    /// The lines of a report.
    pub(crate) fn write(&self, out: &mut String) {
        for (title, managers) in [("Conflicts:", &self.conflicts), ("Other:", &self.others)] {
            if !managers.is_empty() {
                let _ = writeln!(out, "{title}");
            }
            for manager in managers {
                let _ = writeln!(out, "- {}", quote(&manager.manager));
                write_paths(out, &manager.fields);
            }
        }
        let Some(difference) = &self.difference else { return };
        if !difference.is_same() {
            out.push_str("Comparison:\n");
        }
        let parts = [
            ("Added", &difference.added),
            ("Modified", &difference.modified),
            ("Removed", &difference.removed),
        ];
        for (title, fields) in parts {
            if !fields.is_empty() {
                let _ = writeln!(out, "- {title}:");
                write_paths(out, &fields.clone().leaves());
            }
        }
    }
}

fn write_paths(out: &mut String, fields: &FieldSet) {
    for path in fields.paths() {
        let _ = writeln!(out, "  {path}");
    }
}
