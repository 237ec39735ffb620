//! Upstream's migration `bundle-object-to-csv-metadata`: manifests become `olm.csv.metadata`.

use crate::{
    bundle::Bundle,
    declare::{DeclaredBundle, DeclaredProperty, METADATA, OBJECT},
    decode_error::TypeError,
    error::BundleError,
    go_field, types,
};
use mainstay_gocompat::json::Html;
use mainstay_schema::builtin;
use mainstay_schema::gojson::{self, NameMatching};
use serde_json::Value;

impl Bundle {
    /// Migrates a blob of this bundle: `olm.csv.metadata` replaces the objects. A blob without an
    /// image, or with that property, stays as it is.
    ///
    /// # Errors
    /// If a value of the ClusterServiceVersion does not have its type.
    pub fn migrate(&self, declared: &mut DeclaredBundle) -> Result<(), BundleError> {
        if declared.image.is_empty() {
            return Ok(());
        }
        let csv = self.csv();
        if let Err(mismatch) =
            gojson::check(csv.manifest().value(), &types::CLUSTER_SERVICE_VERSION)
        {
            return Err(csv.manifest().type_error(&[], &mismatch));
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

/// The value of the property `olm.csv.metadata`: the fields of a ClusterServiceVersion that clients
/// show.
///
/// # Errors
/// The first value that does not have its type.
pub fn csv_metadata(csv: &Value) -> Result<String, TypeError> {
    gojson::check(csv, &types::CLUSTER_SERVICE_VERSION).map_err(|mismatch| mismatch.reason)?;
    Ok(metadata(csv))
}

fn metadata(object: &Value) -> String {
    let Some(definition) = builtin::definition(types::CSV_METADATA) else { return "{}".to_owned() };
    let section = |name: &str| go_field::field(object, name);
    let (metadata, spec) = (section("metadata"), section("spec"));
    gojson::encode_fields(definition, NameMatching::AnyCase, Html::Plain, |name| {
        let (section, field) = match name {
            "annotations" | "labels" => (metadata, name),
            "apiServiceDefinitions" => (spec, "apiservicedefinitions"),
            "crdDescriptions" => (spec, "customresourcedefinitions"),
            _ => (spec, name),
        };
        go_field::field(section?, field)
    })
}
