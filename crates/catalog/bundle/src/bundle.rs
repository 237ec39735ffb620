//! A bundle that was read: its objects, annotations, dependencies and properties.

use crate::{
    csv::{ApiKey, CsvManifest},
    error::{BundleError, BundleProblem},
    go_field,
    manifest::Manifest,
    metadata::{self, Annotations, BundleProperty},
    types,
};
use mainstay_schema::builtin;
use mainstay_schema::gojson::{self, ValuePathStep};
use serde_json::Value;
use std::collections::BTreeSet;

/// One version of an operator: the objects that install it, and its metadata.
#[derive(Debug)]
pub struct Bundle {
    pub(crate) manifests: Vec<Manifest>,
    /// The position of the ClusterServiceVersion.
    pub(crate) csv: usize,
    pub(crate) annotations: Annotations,
    pub(crate) dependencies: Vec<BundleProperty>,
    pub(crate) properties: Vec<BundleProperty>,
    pub(crate) skipped_content: Vec<BundleProblem>,
    pub(crate) repeated: Vec<BundleProblem>,
}

impl Bundle {
    /// The objects, in the order of their files.
    pub fn manifests(&self) -> &[Manifest] {
        &self.manifests
    }

    /// The ClusterServiceVersion.
    pub fn csv(&self) -> CsvManifest<'_> {
        CsvManifest::new(&self.manifests[self.csv])
    }

    /// The CustomResourceDefinitions of v1 and v1beta1.
    pub fn crds(&self) -> impl Iterator<Item = &Manifest> {
        crds(&self.manifests)
    }

    /// The name: that of the ClusterServiceVersion.
    pub fn name(&self) -> &str {
        self.csv().name()
    }

    /// The package; empty if the annotations lack it.
    pub fn package(&self) -> &str {
        &self.annotations.package
    }

    /// The content of the annotations file.
    pub fn annotations(&self) -> &Annotations {
        &self.annotations
    }

    /// The entries of the dependencies file.
    pub fn dependencies(&self) -> &[BundleProperty] {
        &self.dependencies
    }

    /// The properties file's entries, then those derived from the manifests (`olm.package`, the
    /// annotation `olm.properties`, `olm.gvk`), without duplicates.
    pub fn properties(&self) -> &[BundleProperty] {
        &self.properties
    }

    /// Content that was skipped, as upstream skips it silently: files that cannot be decoded,
    /// further documents of a file, further CSVs.
    pub fn skipped_content(&self) -> &[BundleProblem] {
        &self.skipped_content
    }

    /// Duplicate keys of mappings. Upstream silently drops the first value.
    pub fn repeated_keys(&self) -> &[BundleProblem] {
        &self.repeated
    }

    /// The APIs that the bundle provides: those of its CustomResourceDefinitions, and aggregated
    /// ones.
    pub(crate) fn provided(&self) -> Result<BTreeSet<ApiKey>, BundleError> {
        provided(&self.manifests, self.csv())
    }

    /// Adds the properties that follow from the manifests.
    pub(crate) fn derive_properties(&mut self) -> Result<(), BundleError> {
        let mut derived = Vec::new();
        let csv = self.csv();
        let file = csv.manifest().file().to_owned();
        if !self.annotations.package.is_empty() {
            let mut value = format!(
                "{{\"packageName\":{},\"version\":{}",
                html(&self.annotations.package),
                html(csv.version()?)
            );
            let release = csv.release()?;
            if !release.is_empty() {
                value.push_str(",\"release\":");
                value.push_str(&html(&release));
            }
            value.push('}');
            derived.push(BundleProperty {
                kind: PACKAGE.to_owned(),
                value: Some(value),
                file: file.clone(),
            });
        }
        let mut annotation_problem = None;
        if let Some(text) = csv.annotation("olm.properties") {
            let (found, error) = metadata::from_annotation(text, &file);
            derived.extend(found);
            annotation_problem = error.map(|error| {
                csv.manifest().problem(
                    format!("the annotation olm.properties cannot be read: {error}"),
                    "write a JSON list of objects with type and value",
                )
            });
        }
        for api in
            self.provided().map_err(|error| error.with_prefix("error getting provided apis: "))?
        {
            let value = format!(
                "{{\"group\":{},\"kind\":{},\"version\":{}}}",
                html(&api.group),
                html(&api.kind),
                html(&api.version)
            );
            derived.push(BundleProperty {
                kind: GVK.to_owned(),
                value: Some(value),
                file: file.clone(),
            });
        }
        self.skipped_content.extend(annotation_problem);
        self.properties.extend(derived);
        let mut seen = BTreeSet::new();
        self.properties.retain(|property| {
            // Upstream does not distinguish no value from an empty one.
            seen.insert((property.kind.clone(), property.value.clone().unwrap_or_default()))
        });
        Ok(())
    }
}

pub(crate) const PACKAGE: &str = "olm.package";
pub(crate) const GVK: &str = "olm.gvk";

fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    mainstay_gocompat::json::text(&mut out, text, mainstay_gocompat::json::Html::Escaped);
    out
}

/// The CustomResourceDefinitions among manifests: v1 first, then v1beta1.
fn crds(manifests: &[Manifest]) -> impl Iterator<Item = &Manifest> {
    let of_version = |version: &'static str| {
        manifests.iter().filter(move |manifest| {
            manifest.kind() == "CustomResourceDefinition" && manifest.group_version().1 == version
        })
    };
    of_version("v1").chain(of_version("v1beta1"))
}

/// Checks CustomResourceDefinitions against their types, in the order of files.
pub(crate) fn check_crds(manifests: &[Manifest]) -> Result<(), BundleError> {
    for crd in manifests.iter().filter(|crd| crd.kind() == "CustomResourceDefinition") {
        let (group, version) = crd.group_version();
        if version != "v1" && version != "v1beta1" {
            continue;
        }
        let before = format!("error decoding {version} CRD: ");
        if group != "apiextensions.k8s.io" {
            let api_version = crd.api_version();
            let message = format!(
                "no kind \"CustomResourceDefinition\" is registered for version \"{api_version}\" in \
                 scheme \"pkg/runtime/scheme.go:111\""
            );
            let remedy = "write apiextensions.k8s.io/v1 as apiVersion";
            return Err(crd.error(message, &[], remedy).with_prefix(&before));
        }
        let name = format!(
            "apiextensions-apiserver.pkg.apis.apiextensions.{version}.CustomResourceDefinition"
        );
        let Some(definition) = builtin::definition(&name) else { continue };
        if let Err(mismatch) = gojson::check_object(crd.value(), definition) {
            return Err(crd.type_error(&[], &mismatch).with_prefix(&before));
        }
    }
    Ok(())
}

/// The APIs that manifests provide.
pub(crate) fn provided(
    manifests: &[Manifest],
    csv: CsvManifest<'_>,
) -> Result<BTreeSet<ApiKey>, BundleError> {
    let mut found = BTreeSet::new();
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    for crd in crds(manifests) {
        let Some(spec) = crd.value().get("spec") else { continue };
        let versions = spec.get("versions").and_then(Value::as_array).into_iter().flatten();
        let mut names: Vec<String> = versions.map(|version| text(version.get("name"))).collect();
        if crd.group_version().1 == "v1beta1" {
            names.extend(Some(text(spec.get("version"))).filter(|name| !name.is_empty()));
        }
        for version in names {
            found.insert(ApiKey {
                group: text(spec.get("group")),
                version,
                kind: text(spec.pointer("/names/kind")),
                plural: text(spec.pointer("/names/plural")),
            });
        }
    }
    let services = csv
        .api_services()
        .map_err(|error| error.with_prefix("error getting apiservice definitions: "))?;
    found.extend(services.owned.iter().map(|api| api_service_key(api)));
    Ok(found)
}

/// The key of an aggregated API.
pub(crate) fn api_service_key(api: &Value) -> ApiKey {
    ApiKey {
        group: go_field::text(api, "group").to_owned(),
        version: go_field::text(api, "version").to_owned(),
        kind: go_field::text(api, "kind").to_owned(),
        plural: go_field::text(api, "name").to_owned(),
    }
}

/// Checks that the bundle provides every custom resource that the CSV owns.
pub(crate) fn check_owned(manifests: &[Manifest], csv: CsvManifest<'_>) -> Result<(), BundleError> {
    let provided = provided(manifests, csv)?;
    let owned = csv.custom_resources()?.owned;
    let keys: BTreeSet<ApiKey> =
        owned.iter().map(|api| csv.custom_resource_key(api)).collect::<Result<_, _>>()?;
    let missing = keys.iter().find(|key| !provided.contains(key));
    let missing = missing.filter(|_| !mainstay_fault::is_on("owned-definitions-may-be-missing"));
    let Some(missing) = missing else { return Ok(()) };
    let found: Vec<String> = provided.iter().map(|key| format!("{key}:{{}}")).collect();
    let path = ["spec", "customresourcedefinitions", "owned"]
        .map(|name| ValuePathStep::Field(name.to_owned()));
    Err(csv.manifest().error(
        format!("couldn't find {missing} in bundle. found: map[{}]", found.join(" ")),
        &path,
        format!(
            "add the CustomResourceDefinition {}.{} with version {}, or do not own it",
            missing.plural, missing.group, missing.version
        ),
    ))
}

pub(crate) use types::{GVK as GVK_SHAPE, PACKAGE as PACKAGE_SHAPE};
