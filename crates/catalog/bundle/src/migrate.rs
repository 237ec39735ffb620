//! From manifests to `olm.csv.metadata`: what upstream's migration makes of a bundle.

use crate::{
    bundle::Bundle,
    declare::{DeclaredBundle, DeclaredProperty, METADATA, OBJECT},
    error::BundleError,
    mismatch::TypeError,
    shape::{self, Kind},
    types::{self, Source},
};
use mainstay_gocompat::json::{Html, Numbers, quoted};
use serde_json::Value;

impl Bundle {
    /// What upstream's migration `bundle-object-to-csv-metadata` makes of a blob of this bundle: the
    /// objects give way to what clients show of the ClusterServiceVersion. Without an image, or with
    /// such a property, it stays as it is.
    ///
    /// # Errors
    /// If the ClusterServiceVersion has values of other kinds than its type.
    pub fn migrate(&self, declared: &mut DeclaredBundle) -> Result<(), BundleError> {
        if declared.image.is_empty() {
            return Ok(());
        }
        let csv = self.csv();
        if let Err(mismatch) = shape::check(csv.manifest().value(), &types::CLUSTER_SERVICE_VERSION)
        {
            return Err(csv.manifest().mismatch(&[], mismatch));
        }
        if declared.properties.iter().any(|property| property.kind == METADATA) {
            return Ok(());
        }
        declared.properties.retain(|property| property.kind != OBJECT);
        declared.properties.push(DeclaredProperty {
            kind: METADATA.to_owned(),
            value: metadata(csv.manifest().value()),
        });
        Ok(())
    }
}

/// The value of the property `olm.csv.metadata` for a ClusterServiceVersion: what clients show of it.
///
/// # Errors
/// If it has values of other kinds than its type: the first.
pub fn csv_metadata(csv: &Value) -> Result<String, TypeError> {
    shape::check(csv, &types::CLUSTER_SERVICE_VERSION).map_err(|mismatch| mismatch.reason)?;
    Ok(metadata(csv))
}

fn metadata(object: &Value) -> String {
    let mut out = String::from("{");
    for (name, source, kind) in types::CSV_METADATA {
        let value = match source {
            Source::Metadata(field) => {
                shape::field(object, "metadata").and_then(|metadata| shape::field(metadata, field))
            }
            Source::Spec(field) => {
                shape::field(object, "spec").and_then(|spec| shape::field(spec, field))
            }
        };
        write_field(&mut out, name, value, kind, false);
    }
    out.push('}');
    out
}

/// Writes a field in the form of its type: unknown fields go, empty ones too unless they are
/// structs or always written.
fn write_field(out: &mut String, name: &str, value: Option<&Value>, kind: &Kind, always: bool) {
    let empty = match (kind, value) {
        (Kind::One(_), _) => false,
        (_, None | Some(Value::Null | Value::Bool(false))) => true,
        (_, Some(Value::String(text))) => text.is_empty() && !matches!(kind, Kind::Raw),
        (_, Some(Value::Array(items))) => items.is_empty() && !matches!(kind, Kind::Raw),
        (_, Some(Value::Object(fields))) => fields.is_empty() && !matches!(kind, Kind::Raw),
        (Kind::Int(_), Some(Value::Number(number))) => number.as_i64() == Some(0),
        (_, Some(_)) => false,
    };
    // A value that is kept as it is may be false or empty, and null too.
    let kept = matches!(kind, Kind::Raw) && value.is_some();
    if empty && !always && !kept {
        return;
    }
    if !out.ends_with(['{', '[']) {
        out.push(',');
    }
    out.push_str(&quoted(name));
    out.push(':');
    write_kind(out, value.unwrap_or(&Value::Null), kind);
}

fn write_kind(out: &mut String, value: &Value, kind: &Kind) {
    match (kind, value) {
        (Kind::Raw, value) => {
            out.push_str(&mainstay_gocompat::json::value(value, Html::Escaped, Numbers::Object));
        }
        (Kind::Text | Kind::Named(_), value) => {
            out.push_str(&quoted(value.as_str().unwrap_or_default()));
        }
        (Kind::Bool, value) => {
            out.push_str(if value.as_bool().unwrap_or_default() { "true" } else { "false" });
        }
        (Kind::TextMap, Value::Object(fields)) => {
            out.push('{');
            for (at, (name, value)) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&quoted(name));
                out.push(':');
                out.push_str(&quoted(value.as_str().unwrap_or_default()));
            }
            out.push('}');
        }
        (Kind::One(shape), value) => {
            out.push('{');
            for (name, kind) in shape.fields {
                let always = types::always_written(shape, name);
                let value = value.as_object().and_then(|_| shape::field(value, name));
                write_field(out, name, value, kind, always);
            }
            out.push('}');
        }
        (Kind::Many(element), Value::Array(items)) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_kind(out, item, element);
            }
            out.push(']');
        }
        (_, value) => {
            out.push_str(&mainstay_gocompat::json::value(value, Html::Plain, Numbers::Object));
        }
    }
}
