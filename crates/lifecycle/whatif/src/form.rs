//! Object forms: which fields of each kind resolution reads, and of which type these have to be.
//!
//! A file may be written by hand or cut off. A field of another type than its kind has is refused,
//! so that reading the state can rely on types.

use mainstay_gocompat::quote;
use mainstay_object::Object;
use mainstay_version::{ParseVersionError, parse_tolerant};
use serde_json::Value;

/// The form of a kind that resolution reads.
pub(crate) struct Form {
    namespaced: bool,
    /// Fields that are required and not empty.
    required: &'static [&'static [&'static str]],
    /// Optional texts.
    texts: &'static [&'static [&'static str]],
    /// Optional lists of objects, with the required texts of their items.
    lists: &'static [(&'static [&'static str], &'static [&'static str])],
    /// Optional whole numbers.
    numbers: &'static [&'static [&'static str]],
}

const CRD: &[&str] = &["name", "version", "kind"];
const API: &[&str] = &["group", "version", "kind"];

const NAMESPACED: Form =
    Form { namespaced: true, required: &[], texts: &[], lists: &[], numbers: &[] };
const SUBSCRIPTION: Form = Form {
    required: &[&["spec", "name"]],
    texts: &[
        &["spec", "channel"],
        &["spec", "source"],
        &["spec", "sourceNamespace"],
        &["spec", "startingCSV"],
        &["spec", "installPlanApproval"],
        &["status", "installedCSV"],
        &["status", "currentCSV"],
    ],
    ..NAMESPACED
};
const CSV: Form = Form {
    required: &[],
    texts: &[
        &["spec", "version"],
        &["spec", "replaces"],
        &["status", "phase"],
        &["status", "reason"],
    ],
    lists: &[
        (&["spec", "customresourcedefinitions", "owned"], CRD),
        (&["spec", "customresourcedefinitions", "required"], CRD),
        (&["spec", "apiservicedefinitions", "owned"], API),
        (&["spec", "apiservicedefinitions", "required"], API),
    ],
    ..NAMESPACED
};
const OPERATOR_GROUP: Form = Form { texts: &[&["spec", "upgradeStrategy"]], ..NAMESPACED };
const CATALOG_SOURCE: Form = Form {
    texts: &[
        &["spec", "address"],
        &["status", "connectionState", "address"],
        &["status", "connectionState", "lastObservedState"],
    ],
    numbers: &[&["spec", "priority"]],
    ..NAMESPACED
};
const CLUSTER_EXTENSION: Form = Form {
    namespaced: false,
    required: &[&["spec", "source", "catalog", "packageName"]],
    texts: &[
        &["spec", "source", "catalog", "version"],
        &["spec", "source", "catalog", "upgradeConstraintPolicy"],
        &["status", "install", "bundle", "name"],
        &["status", "install", "bundle", "version"],
    ],
    ..NAMESPACED
};
const CLUSTER_CATALOG: Form = Form {
    namespaced: false,
    texts: &[&["spec", "availabilityMode"]],
    numbers: &[&["spec", "priority"]],
    ..NAMESPACED
};

/// An object does not have the form of its kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormError {
    /// A field is missing.
    #[error("`{field}` is missing")]
    MissingField {
        /// The path of the field.
        field: String,
    },
    /// A field is empty.
    #[error("`{field}` is empty")]
    EmptyField {
        /// The path of the field.
        field: String,
    },
    /// A field is of another type.
    #[error("`{field}` is {found}, not {expected}")]
    FieldType {
        /// The path of the field.
        field: String,
        /// Its type.
        found: &'static str,
        /// The type of the field in the kind.
        expected: &'static str,
    },
    /// The version of a ClusterServiceVersion is invalid.
    #[error("`spec.version` is {}, which is not a version: {source}", quote(version))]
    ParseVersion {
        /// The version.
        version: String,
        /// Why it is invalid.
        source: ParseVersionError,
    },
}

impl Form {
    /// The form of an object; none if resolution does not read its kind.
    pub(crate) fn of(object: &Object) -> Option<&'static Self> {
        let group = object.api_version().split_once('/').map_or("", |(group, _)| group);
        match (group, object.kind()) {
            ("operators.coreos.com", "CatalogSource") => Some(&CATALOG_SOURCE),
            ("operators.coreos.com", "OperatorGroup") => Some(&OPERATOR_GROUP),
            ("operators.coreos.com", "Subscription") => Some(&SUBSCRIPTION),
            ("operators.coreos.com", "ClusterServiceVersion") => Some(&CSV),
            ("olm.operatorframework.io", "ClusterExtension") => Some(&CLUSTER_EXTENSION),
            ("olm.operatorframework.io", "ClusterCatalog") => Some(&CLUSTER_CATALOG),
            _ => None,
        }
    }

    /// Checks an object of this kind.
    pub(crate) fn check(&self, object: &Object) -> Result<(), FormError> {
        text(object, &["metadata", "name"], true)?;
        if self.namespaced {
            text(object, &["metadata", "namespace"], true)?;
        }
        for part in ["metadata", "spec", "status"] {
            fields(object, &[part])?;
        }
        for path in self.required {
            for end in 1..path.len() {
                fields(object, &path[..end])?;
            }
            text(object, path, true)?;
        }
        for path in self.texts {
            text(object, path, false)?;
        }
        for path in self.numbers {
            match object.get(path) {
                None | Some(Value::Null) => {}
                Some(value) if value.is_i64() || value.is_u64() => {}
                Some(other) => return Err(type_error(path, other, "a whole number")),
            }
        }
        for (path, parts) in self.lists {
            let Some(value) = object.get(path).filter(|value| !value.is_null()) else { continue };
            let items = value.as_array().ok_or_else(|| type_error(path, value, "a list"))?;
            for (at, item) in items.iter().enumerate() {
                for part in *parts {
                    let value = item.get(part).unwrap_or(&Value::Null);
                    if !(value.is_string() || item.is_object() && value.is_null()) {
                        let place = format!("{}[{at}].{part}", path.join("."));
                        return Err(type_error(&[&*place], value, "a text"));
                    }
                }
            }
        }
        let version =
            object.str(&["spec", "version"]).filter(|_| object.kind() == "ClusterServiceVersion");
        match version.filter(|version| !version.is_empty()) {
            Some(version) => parse_tolerant(version)
                .map(drop)
                .map_err(|source| FormError::ParseVersion { version: version.to_owned(), source }),
            None => Ok(()),
        }
    }
}

/// Checks that a field, if present, is an object.
fn fields(object: &Object, path: &[&str]) -> Result<(), FormError> {
    match object.get(path) {
        None | Some(Value::Null | Value::Object(_)) => Ok(()),
        Some(other) => Err(type_error(path, other, "an object")),
    }
}

fn text(object: &Object, path: &[&str], required: bool) -> Result<(), FormError> {
    let field = || path.join(".");
    match object.get(path) {
        None | Some(Value::Null) if required => Err(FormError::MissingField { field: field() }),
        Some(Value::String(text)) if required && text.is_empty() => {
            Err(FormError::EmptyField { field: field() })
        }
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(other) => Err(type_error(path, other, "a text")),
    }
}

fn type_error(path: &[&str], value: &Value, expected: &'static str) -> FormError {
    FormError::FieldType { field: path.join("."), found: type_name(value), expected }
}

pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
