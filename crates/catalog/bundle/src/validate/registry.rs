//! The manifest content check of `opm`, with the errors of `operator-registry` 1.73.

use super::{
    ValidatorSettings,
    compressed_size::CompressedSize,
    convert, crd, csv,
    load::{Crd, LoadedBundle},
    metadata::{print_metadata, print_type, validate_applied},
    operator_hub, text_coercion,
};
use crate::{
    bundle::check_crds,
    csv::CsvManifest,
    go_field,
    manifest::Manifest,
    read::Limits,
    reader::BundleReader,
    tree::{self, FileTree},
    types,
};
use mainstay_gocompat::io_error_text;
use mainstay_gocompat::quote;
use mainstay_object::FieldError;
use mainstay_schema::builtin;
use mainstay_schema::gojson::{self, DeclaredType};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};

/// The kinds that a bundle may have.
pub(crate) const KINDS: &[&str] = &[
    "ClusterServiceVersion",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "Service",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "PrometheusRule",
    "ServiceMonitor",
    "Secret",
    "ConfigMap",
    "PodDisruptionBudget",
    "PriorityClass",
    "VerticalPodAutoscaler",
    "ConsoleYAMLSample",
    "ConsoleQuickStart",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsolePlugin",
    "NetworkPolicy",
    "PodMonitor",
];

/// Why the media type of a folder of manifests is unknown, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MediaTypeError {
    /// A file is not a regular file, cannot be read or is too long.
    #[error("Unable to read file {path} in bundle")]
    ReadFile {
        /// The file.
        path: String,
    },
    /// The folder has no files.
    #[error("The directory {folder} contains no yaml files")]
    NoFiles {
        /// The folder.
        folder: String,
    },
}

/// The media type of a folder of manifests. `display_folder` is its name in errors.
///
/// # Errors
/// If the folder has no files, or one that cannot be read.
pub fn media_type(
    tree: &dyn FileTree,
    folder: &str,
    display_folder: &str,
    limits: &Limits,
) -> Result<&'static str, MediaTypeError> {
    BundleReader::new(tree, limits).media_type(folder, display_folder)
}

impl BundleReader<'_> {
    /// The media type of a folder of manifests, as [`media_type`] returns it.
    ///
    /// # Errors
    /// If the folder has no files, or one that cannot be read.
    pub fn media_type(
        &self,
        folder: &str,
        display_folder: &str,
    ) -> Result<&'static str, MediaTypeError> {
        let mut any = false;
        let mut found = "plain";
        let mut chart = false;
        for entry in self.list(folder).unwrap_or_default() {
            if entry.kind == tree::FileKind::Folder {
                continue;
            }
            any = true;
            let Some(content) = self.readable_file(folder, &entry) else {
                return Err(MediaTypeError::ReadFile {
                    path: format!("{display_folder}/{}", entry.name),
                });
            };
            let object = content.object().ok();
            let kind = object
                .as_ref()
                .and_then(|document| document.value.get("kind"))
                .and_then(Value::as_str);
            if kind == Some("ClusterServiceVersion") {
                found = "registry+v1";
            }
            if entry.name == "Chart.yaml" {
                let name = content.document().ok().and_then(|document| document.value.get("name"));
                chart = name.is_some_and(|name| !name.is_null() && name != "");
            }
        }
        match (any, chart) {
            (false, _) => Err(MediaTypeError::NoFiles { folder: display_folder.to_owned() }),
            (true, true) => Ok("helm"),
            (true, false) => Ok(found),
        }
    }
}

/// The errors of `opm` for a folder of manifests, in its order. With `hub` the validator
/// `operatorhub` runs too. `display_folder` is the name of the folder in messages.
pub fn check_manifests(
    tree: &dyn FileTree,
    folder: &str,
    display_folder: &str,
    limits: &Limits,
    hub: Option<&ValidatorSettings>,
) -> Vec<String> {
    let mut found = Vec::new();
    let reading = BundleReader::new(tree, limits);
    let media = reading.media_type(folder, display_folder);
    match &media {
        Ok("helm") => return found,
        Ok(_) => {}
        Err(error) => found.push(error.to_string()),
    }
    let entries = match reading.list(folder) {
        Ok(entries) => entries,
        Err(error) => {
            found.push(format!("open {display_folder}: {}", io_error_text(&error)));
            Vec::new()
        }
    };
    let mut manifests: Vec<Manifest> = Vec::new();
    let (mut converted_csv, mut csv_name) = (Value::Null, String::new());
    for entry in entries.into_iter().take(limits.files) {
        let path = format!("{display_folder}/{}", entry.name);
        let Some(content) = reading.readable_file(folder, &entry) else {
            found.push(format!("Unable to read file {path} in supported types"));
            continue;
        };
        let decoded = match content.object() {
            Ok(decoded) => decoded,
            Err(refused) => {
                found.push(refused.reason.to_string());
                continue;
            }
        };
        let source = content.bytes.clone();
        let manifest = Manifest::new(path.clone(), decoded.line, decoded.value, source);
        let kind = manifest.kind().to_owned();
        if media == Ok("registry+v1") && !KINDS.contains(&kind.as_str()) {
            found.push(format!("{kind} is not supported type for registryV1 bundle: {path}"));
        } else if kind == "ClusterServiceVersion" {
            let value = manifest.value();
            let definition = builtin::definition(types::CSV_V1ALPHA1);
            // The checks below use the fields that were converted before an error.
            converted_csv = definition
                .map_or(Value::Null, |definition| convert::convert_prefix(value, definition));
            if let Some(error) =
                definition.and_then(|definition| convert::convert_error(value, definition))
            {
                found.push(error.to_string());
            } else {
                let judged = csv::validate(&bundle_of_csv(converted_csv.clone()));
                found.extend(judged.errors.iter().map(super::ValidationFinding::text));
                manifest.name().clone_into(&mut csv_name);
            }
        } else if kind == "CustomResourceDefinition" {
            found.extend(definition(&manifest));
        } else {
            found.extend(metadata_error(&manifest));
        }
        manifests.push(manifest);
    }
    let subject = bundle_of_csv(converted_csv);
    if !manifests.is_empty() {
        found.extend(check_bundle(&manifests, &csv_name));
    }
    if let Some(settings) = hub {
        let judged = operator_hub::validate_v1(Some(&subject), settings);
        let errors = judged.first().map(|result| result.errors.as_slice()).unwrap_or_default();
        found.extend(errors.iter().map(super::ValidationFinding::text));
    }
    found
}

/// A bundle that consists of a ClusterServiceVersion.
fn bundle_of_csv(value: Value) -> LoadedBundle {
    let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    LoadedBundle {
        name: name.to_owned(),
        package: String::new(),
        channels: Vec::new(),
        default_channel: String::new(),
        size: 0,
        compressed: CompressedSize::default(),
        manifests: Vec::new(),
        csv: (0, Arc::new(value)),
        crds: Vec::new(),
    }
}

fn definition(manifest: &Manifest) -> Vec<String> {
    let (v1, name) = match manifest.api_version() {
        "apiextensions.k8s.io/v1" => (true, types::CRD_V1),
        "apiextensions.k8s.io/v1beta1" => (false, types::CRD_V1BETA1),
        other => return vec![format!("Unsupported api version of CRD: {other}")],
    };
    let value = match text_coercion::read(manifest.shared_value(), &DeclaredType::Table(name)) {
        Ok(value) => value,
        Err(mismatch) => {
            let why = mismatch.reason;
            return vec![format!("error unmarshaling JSON: while decoding JSON: {why}")];
        }
    };
    crd::validate_crd(&Crd { manifest: 0, v1, value })
        .errors
        .iter()
        .map(super::ValidationFinding::text)
        .collect()
}

/// Why the metadata of an object is invalid.
fn metadata_error(manifest: &Manifest) -> Option<String> {
    let value = manifest.value();
    if let Err(mismatch) = gojson::check_struct(value, &types::META) {
        return Some(mismatch.reason.to_string());
    }
    let metadata = go_field::field(value, "metadata").unwrap_or(&Value::Null);
    let errors = validate_applied(metadata);
    (!errors.is_empty()).then(|| {
        let errors = FieldError::join(&errors);
        let (kind, metadata) = (print_type(value), print_metadata(metadata));
        format!("error validating object metadata: {errors}. &{{{kind} {metadata}}}")
    })
}

/// Checks that the owned CRDs exist, and that the version of the ClusterServiceVersion is a text.
fn check_bundle(manifests: &[Manifest], name: &str) -> Vec<String> {
    let parse = |what: &str, why: &str| vec![format!("Error: Value {why}: {what}")];
    let Some(csv) = manifests.iter().find(|manifest| manifest.kind() == "ClusterServiceVersion")
    else {
        // Upstream crashes.
        return vec!["no csv in bundle".to_owned()];
    };
    let csv = CsvManifest::new(csv);
    if let Err(error) = csv.check_type_and_metadata().and_then(|()| check_crds(manifests)) {
        return parse("error getting bundle CSV", error.upstream());
    }
    let owned = match csv.custom_resources() {
        Ok(definitions) => definitions.owned,
        Err(error) => {
            // Upstream checks the version although the owned CRDs are unknown.
            let mut found = parse("error getting CSV CRDs", error.upstream());
            found.extend(version(csv, name));
            return found;
        }
    };
    let mut defined = BTreeSet::new();
    let crds = manifests.iter().filter(|manifest| manifest.kind() == "CustomResourceDefinition");
    for crd in crds.filter(|crd| matches!(crd.group_version().1, "v1" | "v1beta1")) {
        let spec = super::csv_fields::field_value(crd.value(), "spec");
        let kind = go_field::text(super::csv_fields::field_value(spec, "names"), "kind");
        let old = go_field::text(spec, "version");
        let versions: Vec<&str> = if crd.group_version().1 == "v1beta1" && !old.is_empty() {
            vec![old]
        } else {
            let versions = super::csv_fields::items(spec, "versions");
            versions.iter().map(|version| go_field::text(version, "name")).collect()
        };
        for version in versions {
            defined.insert(key("", kind, crd.name(), version));
        }
    }
    let mut found = Vec::new();
    for api in owned {
        let text = |field: &str| go_field::text(api, field);
        let (group, name_of, version) = (text("group"), text("name"), text("version"));
        let key = key(group, text("kind"), name_of, version);
        if !defined.remove(&key) {
            let api_name = match name_of {
                "" => format!("{group}/{version} {}", text("kind")),
                name => format!("{name}/{version}"),
            };
            let name = quote(name);
            found.push(format!(
                "Error: Value {key}: owned CRD {api_name} not found in bundle {name}"
            ));
        }
    }
    found.extend(version(csv, name));
    found
}

/// A key as `%v` prints it.
fn key(group: &str, kind: &str, name: &str, version: &str) -> String {
    format!("{{{group} {kind} {name} {version}}}")
}

fn version(csv: CsvManifest<'_>, name: &str) -> Option<String> {
    if let Err(error) = csv.version() {
        return Some(format!(
            "Error: Value {}: error getting bundle CSV version",
            error.upstream()
        ));
    }
    let release = match csv.release() {
        Ok(release) => release,
        Err(error) => {
            let why = error.upstream();
            return Some(format!("Error: Value {why}: error getting bundle CSV release version"));
        }
    };
    let substituted = csv.annotation("olm.substitutesFor").unwrap_or_default();
    (!release.is_empty() && !substituted.is_empty()).then(|| {
        format!(
            "Error: Value {{   }}: bundle {} cannot have both a release version ({}) and olm.substitutesFor \
             annotation ({})",
            quote(name),
            quote(&release),
            quote(substituted)
        )
    })
}
