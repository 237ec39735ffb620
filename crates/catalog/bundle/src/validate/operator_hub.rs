//! The validators `operatorhub`, `operatorhub/v2`, `standardcapabilities` and `standardcategories`.

use super::{
    ValidatorSettings,
    csv::{check_min_kube_version, csv_error, csv_warning},
    csv_fields::{field_value, items},
    email_address,
    finding::{BadValue, ManifestResult, ValidationFinding, field_path, item_path},
    load::LoadedBundle,
    removed_apis,
};
use crate::go_field;
use mainstay_formats::url::check_request_uri;
use mainstay_gocompat::quote;
use mainstay_version::Version;

const MEDIA_TYPES: &[&str] = &["image/gif", "image/jpeg", "image/png", "image/svg+xml"];
const CAPABILITIES: &[&str] =
    &["Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"];
const CATEGORIES: &[&str] = &[
    "AI/Machine Learning",
    "Application Runtime",
    "Big Data",
    "Cloud Provider",
    "Developer Tools",
    "Database",
    "Integration & Delivery",
    "Logging & Tracing",
    "Monitoring",
    "Modernization & Migration",
    "Networking",
    "OpenShift Optional",
    "Security",
    "Storage",
    "Streaming & Messaging",
    "Observability",
];

/// The validator `operatorhub/v2`.
pub(crate) fn validate_v2(subject: &LoadedBundle, settings: &ValidatorSettings) -> ManifestResult {
    judge(subject, settings, false)
}

/// The validator `operatorhub`, which also reports its deprecation.
pub(crate) fn validate_v1(
    subject: Option<&LoadedBundle>,
    settings: &ValidatorSettings,
) -> Vec<ManifestResult> {
    let mut found: Vec<ManifestResult> =
        subject.map(|subject| judge(subject, settings, true)).into_iter().collect();
    let detail = "The \"operatorhub\" validator is deprecated; for equivalent validation use \
                  \"operatorhub/v2\", \"standardcapabilities\" and \"standardcategories\" validators";
    let mut deprecated = ManifestResult::default();
    let bad = BadValue::Text(String::new());
    let finding = ValidationFinding::warning("DeprecatedValidator", bad, detail);
    deprecated.add(finding.with_remedy("run those validators instead"));
    found.push(deprecated);
    found
}

fn judge(
    subject: &LoadedBundle,
    settings: &ValidatorSettings,
    with_standards: bool,
) -> ManifestResult {
    let (name, csv, spec) = (subject.csv_name(), subject.csv.0, subject.spec());
    let mut found = ManifestResult::new(subject.name.clone());
    let provider = field_value(spec, "provider");
    if go_field::text(provider, "name").trim().is_empty() {
        let finding = csv_error(name, "csv.Spec.Provider.Name not specified");
        found.add(
            finding.at(csv, &field_path(&["spec", "provider"])).with_remedy("name the provider"),
        );
    }
    found.extend(maintainers(subject));
    found.extend(links(subject));
    if with_standards {
        found.extend(capabilities_of(subject));
        found.extend(categories_of(subject, settings));
    }
    if subject.version() == Version::new(0, 0, 0) {
        let finding = csv_error(name, "csv.Spec.Version must be set");
        found
            .add(finding.at(csv, &field_path(&["spec", "version"])).with_remedy("write a version"));
    }
    found.extend(icon(subject));
    found.extend(check_min_kube_version(subject));
    found.extend(removed_apis::findings(subject, settings));
    found
}

fn maintainers(subject: &LoadedBundle) -> Vec<ValidationFinding> {
    let (name, csv) = (subject.csv_name(), subject.csv.0);
    let mut found = Vec::new();
    for (number, maintainer) in items(subject.spec(), "maintainers").iter().enumerate() {
        let location = item_path(&["spec", "maintainers"], number);
        let (who, email) =
            (go_field::text(maintainer, "name"), go_field::text(maintainer, "email"));
        if who.is_empty() || email.is_empty() {
            let detail = "csv.Spec.Maintainers elements should contain both name and email";
            found.push(csv_error(name, detail).at(csv, &location).with_remedy("write both"));
        }
        if !email.is_empty()
            && let Some(error) = email_address::address_error(email)
        {
            let detail = format!("csv.Spec.Maintainers email {email} is invalid: mail: {error}");
            found.push(
                csv_error(name, &detail).at(csv, &location).with_remedy("write an email address"),
            );
        }
    }
    found
}

fn links(subject: &LoadedBundle) -> Vec<ValidationFinding> {
    let (name, csv) = (subject.csv_name(), subject.csv.0);
    let mut found = Vec::new();
    for (number, link) in items(subject.spec(), "links").iter().enumerate() {
        let location = item_path(&["spec", "links"], number);
        let (title, url) = (go_field::text(link, "name"), go_field::text(link, "url"));
        if title.is_empty() || url.is_empty() {
            let detail = "csv.Spec.Links elements should contain both name and url";
            found.push(csv_error(name, detail).at(csv, &location).with_remedy("write both"));
        }
        if !url.is_empty()
            && let Err(why) = check_request_uri(url)
        {
            let detail = format!("csv.Spec.Links url {url} is invalid: {why}");
            found
                .push(csv_error(name, &detail).at(csv, &location).with_remedy("write a whole URL"));
        }
    }
    found
}

fn icon(subject: &LoadedBundle) -> Vec<ValidationFinding> {
    let (name, csv, spec) = (subject.csv_name(), subject.csv.0, subject.spec());
    let location = field_path(&["spec", "icon"]);
    if field_value(spec, "icon").is_null() {
        let finding = csv_warning(name, "csv.Spec.Icon not specified").at(csv, &location);
        return vec![finding.with_remedy("give it an icon")];
    }
    let icons = items(spec, "icon");
    let mut found = Vec::new();
    let mut add = |detail: &str, remedy: &'static str| {
        found.push(csv_error(name, detail).at(csv, &location).with_remedy(remedy));
    };
    if icons.len() != 1 {
        add("csv.Spec.Icon should only have one element", "leave one icon");
    }
    let Some(icon) = icons.first() else { return found };
    let (data, kind) = (go_field::text(icon, "base64data"), go_field::text(icon, "mediatype"));
    if data.is_empty() || kind.is_empty() {
        add("csv.Spec.Icon elements should contain both data and mediatype", "write both");
    }
    if !kind.is_empty() && !MEDIA_TYPES.contains(&kind) {
        let detail = format!("csv.Spec.Icon {kind} does not have a valid mediatype");
        add(&detail, "write image/svg+xml, image/png, image/jpeg or image/gif");
    }
    found
}

/// The validator `standardcapabilities`.
pub(crate) fn capabilities(subject: &LoadedBundle) -> ManifestResult {
    let mut found = ManifestResult::new(subject.name.clone());
    found.extend(capabilities_of(subject));
    found
}

fn capabilities_of(subject: &LoadedBundle) -> Option<ValidationFinding> {
    let level = subject.annotation("capabilities")?;
    if CAPABILITIES.contains(&level) {
        return None;
    }
    let detail = format!(
        "csv.Metadata.Annotations.Capabilities {} is not a valid capabilities level",
        quote(level)
    );
    let location = field_path(&["metadata", "annotations", "capabilities"]);
    let finding = csv_error(subject.csv_name(), &detail).at(subject.csv.0, &location);
    Some(finding.with_remedy(format!("write one of {}", CAPABILITIES.join(", "))))
}

/// The validator `standardcategories`.
pub(crate) fn categories(subject: &LoadedBundle, settings: &ValidatorSettings) -> ManifestResult {
    let mut found = ManifestResult::new(subject.name.clone());
    found.extend(categories_of(subject, settings));
    found
}

fn categories_of(subject: &LoadedBundle, settings: &ValidatorSettings) -> Vec<ValidationFinding> {
    let Some(said) = subject.annotation("categories") else { return Vec::new() };
    let (name, csv) = (subject.csv_name(), subject.csv.0);
    let location = field_path(&["metadata", "annotations", "categories"]);
    let (set, known): (_, Vec<&str>) = match &settings.categories {
        None => ("standard", CATEGORIES.to_vec()),
        Some(Ok(custom)) => ("custom", custom.iter().map(String::as_str).collect()),
        Some(Err(why)) => {
            let detail = format!(
                "could not extract custom categories from categories map[string]struct {{}}(nil): {why}"
            );
            let remedy = "give a file with {\"categories\": [\"…\"]}";
            return vec![csv_error(name, &detail).at(csv, &location).with_remedy(remedy)];
        }
    };
    let unknown = said.split(',').filter(|category| !known.contains(&category.trim()));
    unknown
        .map(|category| {
            let detail = format!(
                "csv.Metadata.Annotations[\"categories\"] value {} is not in the set of {set} categories",
                quote(category)
            );
            let remedy = format!("write some of {}, with commas between", known.join(", "));
            csv_error(name, &detail).at(csv, &location).with_remedy(remedy)
        })
        .collect()
}
