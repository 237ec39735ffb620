//! The validator `bundle`: consistency of the parts of a bundle, and its compressed size.

use super::{
    LibraryVersion, crd,
    csv_fields::{gvk_text, items},
    finding::{BadValue, ManifestResult, ValidationFinding, field_path, item_path},
    load::LoadedBundle,
};
use crate::go_field;
use mainstay_formats::reference;
use mainstay_gocompat::quote;
use std::collections::BTreeSet;

const INVALID: &str = "BundleNotValid";
const FAILED: &str = "ValidationFailed";
/// The largest compressed size of a bundle, in characters of base64.
const MAX_SIZE: u64 = 1 << 20;

fn invalid(value: impl Into<String>, detail: String) -> ValidationFinding {
    ValidationFinding::error(INVALID, BadValue::Text(value.into()), detail)
}

/// Validates a bundle.
pub(crate) fn validate(subject: &LoadedBundle, library: LibraryVersion) -> ManifestResult {
    let mut found = ManifestResult::new(subject.version().to_string());
    found.extend(check_owned_apis(subject));
    found.extend(check_service_accounts(subject));
    found.extend(check_size(subject));
    if library != LibraryVersion::V034 {
        found.extend(check_release_name(subject));
        found.extend(check_related_images(subject));
    }
    found
}

/// Each CRD is owned, and each owned API has a CRD, once.
fn check_owned_apis(subject: &LoadedBundle) -> Vec<ValidationFinding> {
    let mut found = Vec::new();
    let bundle = quote(&subject.name);
    let mut defined: BTreeSet<(String, String, String)> = BTreeSet::new();
    let mut manifests = Vec::new();
    for crd in &subject.crds {
        for api in crd::apis(crd) {
            if defined.contains(&api) {
                let key = gvk_text(&api.0, &api.1, &api.2);
                let detail = format!("duplicate CRD {} in bundle {bundle}", quote(&key));
                let finding = invalid(key, detail).at(crd.manifest, &[]);
                found.push(finding.with_remedy("leave one definition of it"));
            }
            manifests.push((api.clone(), crd.manifest));
            defined.insert(api);
        }
    }
    let mut kinds = BTreeSet::new();
    for (number, owned) in subject.resources("owned").iter().enumerate() {
        let text = |name: &str| go_field::text(owned, name).to_owned();
        let name = text("name");
        let group = name.split_once('.').map_or(name.as_str(), |(_, group)| group).to_owned();
        let api = (group, text("version"), text("kind"));
        if defined.remove(&api) {
            kinds.insert((api.0, api.2));
        } else {
            let key = gvk_text(&api.0, &api.1, &api.2);
            let detail = format!("owned CRD {} not found in bundle {bundle}", quote(&key));
            let location = item_path(&["spec", "customresourcedefinitions", "owned"], number);
            let finding = invalid(key, detail).at(subject.csv.0, &location);
            found.push(finding.with_remedy(
                "add the CustomResourceDefinition, or own the API once or not at all",
            ));
        }
    }
    // Other versions of an owned kind need not be listed.
    for api in defined.iter().filter(|api| !kinds.contains(&(api.0.clone(), api.2.clone()))) {
        let key = gvk_text(&api.0, &api.1, &api.2);
        let detail =
            format!("CRD {} is present in bundle {bundle} but not defined in CSV", quote(&key));
        let manifest = manifests.iter().find(|(other, _)| other == api).map_or(0, |(_, at)| *at);
        let remedy = "list it under spec.customresourcedefinitions.owned, or remove the file";
        found.push(invalid(key, detail).at(manifest, &[]).with_remedy(remedy));
    }
    found
}

/// A ServiceAccount must not have the name of one that the install strategy creates.
fn check_service_accounts(subject: &LoadedBundle) -> Vec<ValidationFinding> {
    let created: Vec<&str> =
        subject.deployments().map(|(_, pod)| go_field::text(pod, "serviceAccountName")).collect();
    let mut found = Vec::new();
    for (at, manifest) in subject.manifests.iter().enumerate() {
        if manifest.kind() != "ServiceAccount" || manifest.api_version() != "v1" {
            continue;
        }
        let name = manifest.name();
        if created.contains(&name) {
            let detail = format!(
                "invalid service account found in bundle. This service account {name} in your bundle is \
                 not valid, because a service account with the same name was already specified in your \
                 CSV. If this was unintentional, please remove the service account manifest from your \
                 bundle. If it was intentional to specify a separate service account, please rename the \
                 SA in either the bundle manifest or the CSV."
            );
            let location = field_path(&["metadata", "name"]);
            found.push(
                invalid(name, detail)
                    .at(at, &location)
                    .with_remedy("remove the file, or rename one"),
            );
        }
    }
    found
}

fn check_size(subject: &LoadedBundle) -> Option<ValidationFinding> {
    let name = || BadValue::Text(subject.name.clone());
    let unknown = |what: &str| {
        ValidationFinding::warning(FAILED, name(), format!("unable to check the bundle {what}"))
    };
    if subject.compressed.is_empty() {
        return Some(unknown("compressed size"));
    }
    if subject.size == 0 {
        return Some(unknown("size"));
    }
    // The warning begins at 85 per cent.
    let packed = subject.compressed.exceeding(MAX_SIZE * 85 / 100)?;
    let text = |what: &str| {
        format!(
            "{what}: size=~{} , max={}. Bundle uncompressed size is {}",
            format_bytes(packed),
            format_bytes(MAX_SIZE),
            format_bytes(subject.size)
        )
    };
    let remedy = "make descriptions, icons and schemas shorter";
    if packed > MAX_SIZE {
        let detail = text("maximum bundle compressed size with gzip size exceeded");
        return Some(ValidationFinding::error(INVALID, name(), detail).with_remedy(remedy));
    }
    let detail = text("nearing maximum bundle compressed size with gzip");
    Some(ValidationFinding::warning(INVALID, name(), detail).with_remedy(remedy))
}

/// A size in decimal units, with one decimal.
#[expect(clippy::cast_precision_loss, reason = "the output has one decimal")]
fn format_bytes(amount: u64) -> String {
    if amount < 1000 {
        return format!("{amount} B");
    }
    let (mut unit, mut scale) = (0, 1000.0);
    let mut left = amount / 1000;
    while left >= 1000 {
        left /= 1000;
        scale *= 1000.0;
        unit += 1;
    }
    let units = ["k", "M", "G", "T", "P", "E"];
    format!("{:.1} {}B", amount as f64 / scale, units[unit])
}

/// The name of a bundle with a release is `PACKAGE-vVERSION-RELEASE`.
fn check_release_name(subject: &LoadedBundle) -> Option<ValidationFinding> {
    let release = go_field::text(subject.spec(), "release");
    if release.is_empty() {
        return None;
    }
    let expected = format!("{}-v{}-{release}", subject.package, subject.version());
    if subject.name == expected {
        return None;
    }
    let detail = format!(
        "bundle name with release versioning {} does not match expected name {}",
        quote(&subject.name),
        quote(&expected)
    );
    let finding =
        invalid(subject.name.clone(), detail).at(subject.csv.0, &field_path(&["metadata", "name"]));
    Some(finding.with_remedy(format!("name it {expected}")))
}

fn check_related_images(subject: &LoadedBundle) -> Vec<ValidationFinding> {
    let mut found = Vec::new();
    for (number, image) in items(subject.spec(), "relatedImages").iter().enumerate() {
        let text = go_field::text(image, "image");
        let detail = if text.is_empty() {
            format!("relatedImages[{number}] has an empty image field")
        } else if let Some(why) = reference::reference_error(text) {
            format!("relatedImages[{number}] has an invalid image pullspec {}: {why}", quote(text))
        } else {
            continue;
        };
        let location = item_path(&["spec", "relatedImages"], number);
        let finding = invalid(format!("spec.relatedImages[{number}].image"), detail);
        let remedy = "write a reference such as registry.example.com/operators/a@sha256:…";
        found.push(finding.at(subject.csv.0, &location).with_remedy(remedy));
    }
    found
}
