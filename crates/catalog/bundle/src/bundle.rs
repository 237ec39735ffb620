//! A bundle as it was read.

use crate::{
    csv::{ApiKey, CsvManifest},
    error::{BundleError, BundleProblem},
    go_field,
    manifest::Manifest,
    metadata::{self, Annotations, BundleProperty},
    types,
};
use mainstay_schema::builtin;
use mainstay_schema::gojson::{self, Step};
use serde_json::Value;
use std::collections::BTreeSet;

/// One version of an operator: the objects that install it, and what it says of itself.
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

    /// The custom resource definitions, of both versions.
    pub fn crds(&self) -> impl Iterator<Item = &Manifest> {
        crds(&self.manifests)
    }

    /// The name: that of the ClusterServiceVersion.
    pub fn name(&self) -> &str {
        self.csv().name()
    }

    /// The package; empty if the annotations do not say it.
    pub fn package(&self) -> &str {
        &self.annotations.package
    }

    /// What the annotations file says.
    pub fn annotations(&self) -> &Annotations {
        &self.annotations
    }

    /// What the dependencies file says.
    pub fn dependencies(&self) -> &[BundleProperty] {
        &self.dependencies
    }

    /// What the properties file says, then what follows from the manifests (`olm.package`, the
    /// annotation `olm.properties`, `olm.gvk`), without repetitions.
    pub fn properties(&self) -> &[BundleProperty] {
        &self.properties
    }

    /// What upstream drops without a word, and so was dropped here: files that cannot be decoded,
    /// further documents of a file, further versions of the CSV.
    pub fn skipped_content(&self) -> &[BundleProblem] {
        &self.skipped_content
    }

    /// Keys that are there twice in a mapping, of which upstream drops the first without a word.
    pub fn repeated_keys(&self) -> &[BundleProblem] {
        &self.repeated
    }

    /// The APIs that the bundle provides: of its custom resource definitions, and aggregated ones.
    pub(crate) fn provided(&self) -> Result<BTreeSet<ApiKey>, BundleError> {
        provided(&self.manifests, self.csv())
    }

    /// Adds to the properties what follows from the manifests.
    pub(crate) fn derive(&mut self) -> Result<(), BundleError> {
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
        let mut odd = None;
        if let Some(text) = csv.annotation("olm.properties") {
            let (found, wrong) = metadata::from_annotation(text, &file);
            derived.extend(found);
            odd = wrong.map(|wrong| {
                csv.manifest().problem(
                    format!("the annotation olm.properties cannot be read: {wrong}"),
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
        self.skipped_content.extend(odd);
        self.properties.extend(derived);
        let mut seen = BTreeSet::new();
        self.properties.retain(|property| {
            // What has no value is told from what has an empty one by nobody.
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

/// The custom resource definitions among manifests: v1 first, then v1beta1.
fn crds(manifests: &[Manifest]) -> impl Iterator<Item = &Manifest> {
    let of = |version: &'static str| {
        manifests.iter().filter(move |manifest| {
            manifest.kind() == "CustomResourceDefinition" && manifest.group_version().1 == version
        })
    };
    of("v1").chain(of("v1beta1"))
}

/// Checks custom resource definitions against their types, in the order of files.
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
            return Err(crd.mismatch(&[], &mismatch).with_prefix(&before));
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
    found.extend(services.owned.iter().map(|api| service_key(api)));
    Ok(found)
}

/// The key of an aggregated API.
pub(crate) fn service_key(api: &Value) -> ApiKey {
    ApiKey {
        group: go_field::text(api, "group").to_owned(),
        version: go_field::text(api, "version").to_owned(),
        kind: go_field::text(api, "kind").to_owned(),
        plural: go_field::text(api, "name").to_owned(),
    }
}

/// Whether every custom resource that the CSV owns is provided.
pub(crate) fn check_owned(manifests: &[Manifest], csv: CsvManifest<'_>) -> Result<(), BundleError> {
    let provided = provided(manifests, csv)?;
    let owned = csv.custom_resources()?.owned;
    let keys: BTreeSet<ApiKey> =
        owned.iter().map(|api| csv.key_of_resource(api)).collect::<Result<_, _>>()?;
    let missing = keys.iter().find(|key| !provided.contains(key));
    let missing = missing.filter(|_| !mainstay_fault::is_on("owned-definitions-may-be-missing"));
    let Some(missing) = missing else { return Ok(()) };
    let found: Vec<String> = provided.iter().map(|key| format!("{key}:{{}}")).collect();
    let path =
        ["spec", "customresourcedefinitions", "owned"].map(|name| Step::Field(name.to_owned()));
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
