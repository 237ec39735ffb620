//! From manifests to `olm.csv.metadata`: what upstream's migration makes of a bundle.

use crate::{
    bundle::Bundle,
    declare::{DeclaredBundle, DeclaredProperty, METADATA, OBJECT},
    error::BundleError,
    mismatch::TypeError,
    shape, types,
};
use mainstay_gocompat::json::Html;
use mainstay_schema::builtin;
use mainstay_schema::gojson::{self, NameMatching};
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
        if let Err(mismatch) =
            gojson::check(csv.manifest().value(), &types::CLUSTER_SERVICE_VERSION)
        {
            return Err(csv.manifest().mismatch(&[], &mismatch));
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
    gojson::check(csv, &types::CLUSTER_SERVICE_VERSION).map_err(|mismatch| mismatch.reason)?;
    Ok(metadata(csv))
}

fn metadata(object: &Value) -> String {
    let Some(definition) = builtin::definition(types::CSV_METADATA) else { return "{}".to_owned() };
    let section = |name: &str| shape::field(object, name);
    let (metadata, spec) = (section("metadata"), section("spec"));
    gojson::encode_fields(definition, NameMatching::AnyCase, Html::Plain, |name| {
        let (section, field) = match name {
            "annotations" | "labels" => (metadata, name),
            "apiServiceDefinitions" => (spec, "apiservicedefinitions"),
            "crdDescriptions" => (spec, "customresourcedefinitions"),
            _ => (spec, name),
        };
        shape::field(section?, field)
    })
}
