//! The validator of bundles as a whole: do the parts fit together, and is it small enough?

use super::{
    LibraryVersion, crd,
    csv_fields::{gvk_text, items},
    finding::{BadValue, ManifestResult, ValidationFinding, fields, item},
    load::LoadedBundle,
};
use crate::go_field;
use mainstay_formats::reference;
use mainstay_gocompat::quote;
use std::collections::BTreeSet;

const INVALID: &str = "BundleNotValid";
const FAILED: &str = "ValidationFailed";
/// Most characters that a bundle may have when it is compressed.
const LARGEST: u64 = 1 << 20;

fn invalid(value: impl Into<String>, detail: String) -> ValidationFinding {
    ValidationFinding::error(INVALID, BadValue::Text(value.into()), detail)
}

/// Judges a bundle.
pub(crate) fn validate(subject: &LoadedBundle, library: LibraryVersion) -> ManifestResult {
    let mut found = ManifestResult::new(subject.version().to_string());
    found.extend(owned(subject));
    found.extend(accounts(subject));
    found.extend(size(subject));
    if library != LibraryVersion::V034 {
        found.extend(release(subject));
        found.extend(images(subject));
    }
    found
}

/// Every definition is owned and every owned API defined, once.
fn owned(subject: &LoadedBundle) -> Vec<ValidationFinding> {
    let mut found = Vec::new();
    let bundle = quote(&subject.name);
    let mut defined: BTreeSet<(String, String, String)> = BTreeSet::new();
    let mut homes = Vec::new();
    for crd in &subject.crds {
        for api in crd::apis(crd) {
            if defined.contains(&api) {
                let key = gvk_text(&api.0, &api.1, &api.2);
                let detail = format!("duplicate CRD {} in bundle {bundle}", quote(&key));
                let finding = invalid(key, detail).at(crd.manifest, &[]);
                found.push(finding.with_remedy("leave one definition of it"));
            }
            homes.push((api.clone(), crd.manifest));
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
            let place = item(&["spec", "customresourcedefinitions", "owned"], number);
            let finding = invalid(key, detail).at(subject.csv.0, &place);
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
        let home = homes.iter().find(|(known, _)| known == api).map_or(0, |(_, at)| *at);
        let remedy = "list it under spec.customresourcedefinitions.owned, or remove the file";
        found.push(invalid(key, detail).at(home, &[]).with_remedy(remedy));
    }
    found
}

/// A ServiceAccount must not have the name of one that the install strategy makes.
fn accounts(subject: &LoadedBundle) -> Vec<ValidationFinding> {
    let made: Vec<&str> =
        subject.deployments().map(|(_, pod)| go_field::text(pod, "serviceAccountName")).collect();
    let mut found = Vec::new();
    for (at, manifest) in subject.manifests.iter().enumerate() {
        if manifest.kind() != "ServiceAccount" || manifest.api_version() != "v1" {
            continue;
        }
        let name = manifest.name();
        if made.contains(&name) {
            let detail = format!(
                "invalid service account found in bundle. This service account {name} in your bundle is \
                 not valid, because a service account with the same name was already specified in your \
                 CSV. If this was unintentional, please remove the service account manifest from your \
                 bundle. If it was intentional to specify a separate service account, please rename the \
                 SA in either the bundle manifest or the CSV."
            );
            let place = fields(&["metadata", "name"]);
            found.push(
                invalid(name, detail).at(at, &place).with_remedy("remove the file, or rename one"),
            );
        }
    }
    found
}

fn size(subject: &LoadedBundle) -> Option<ValidationFinding> {
    let name = || BadValue::Text(subject.name.clone());
    let unknown = |what: &str| {
        ValidationFinding::warning(FAILED, name(), format!("unable to check the bundle {what}"))
    };
    if subject.weight.is_none() {
        return Some(unknown("compressed size"));
    }
    if subject.size == 0 {
        return Some(unknown("size"));
    }
    // 85 of a hundred.
    let packed = subject.weight.above(LARGEST * 85 / 100)?;
    let text = |what: &str| {
        format!(
            "{what}: size=~{} , max={}. Bundle uncompressed size is {}",
            bytes(packed),
            bytes(LARGEST),
            bytes(subject.size)
        )
    };
    let remedy = "make descriptions, icons and schemas shorter";
    if packed > LARGEST {
        let detail = text("maximum bundle compressed size with gzip size exceeded");
        return Some(ValidationFinding::error(INVALID, name(), detail).with_remedy(remedy));
    }
    let detail = text("nearing maximum bundle compressed size with gzip");
    Some(ValidationFinding::warning(INVALID, name(), detail).with_remedy(remedy))
}

/// An amount of bytes in units of a thousand, with one digit.
#[expect(clippy::cast_precision_loss, reason = "one digit of it is shown")]
fn bytes(amount: u64) -> String {
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

/// A bundle with a release says package, version and release in its name.
fn release(subject: &LoadedBundle) -> Option<ValidationFinding> {
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
        invalid(subject.name.clone(), detail).at(subject.csv.0, &fields(&["metadata", "name"]));
    Some(finding.with_remedy(format!("name it {expected}")))
}

fn images(subject: &LoadedBundle) -> Vec<ValidationFinding> {
    let mut found = Vec::new();
    for (number, image) in items(subject.spec(), "relatedImages").iter().enumerate() {
        let text = go_field::text(image, "image");
        let detail = if text.is_empty() {
            format!("relatedImages[{number}] has an empty image field")
        } else if let Some(why) = reference::fault(text) {
            format!("relatedImages[{number}] has an invalid image pullspec {}: {why}", quote(text))
        } else {
            continue;
        };
        let place = item(&["spec", "relatedImages"], number);
        let finding = invalid(format!("spec.relatedImages[{number}].image"), detail);
        let remedy = "write a reference such as registry.example.com/operators/a@sha256:…";
        found.push(finding.at(subject.csv.0, &place).with_remedy(remedy));
    }
    found
}
