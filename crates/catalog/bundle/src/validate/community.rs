//! The validator `community`, which upstream has deprecated: a bundle with APIs that Kubernetes
//! 1.22 removed must be limited to OpenShift versions before 4.9.

use super::{
    ValidatorSettings,
    csv::{csv_error, csv_warning},
    finding::{FindingLevel, ManifestResult, ValidationFinding, field_path},
    load::LoadedBundle,
    removed_apis,
};
use crate::go_field::text;
use mainstay_schema::gojson::{DeclaredStruct, DeclaredType, check};
use mainstay_version::{Version, parse_tolerant};
use serde_json::Value;

const LABEL: &str = "com.redhat.openshift.versions";
const MAXIMUM: &str = "olm.maxOpenShiftVersion";
const GUIDE: &str = "https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v1-22";
const USES: &str = "this bundle is using APIs which were deprecated and removed in v1.22.";

static PROPERTY: DeclaredStruct = DeclaredStruct {
    name: "propertiesAnnotation",
    spelled: "internal.propertiesAnnotation",
    fields: &[("type", DeclaredType::Text), ("value", DeclaredType::Text)],
};
static PROPERTIES: DeclaredType = DeclaredType::List(&DeclaredType::Struct(&PROPERTY));

/// Validates a bundle.
pub(crate) fn validate(subject: &LoadedBundle, settings: &ValidatorSettings) -> ManifestResult {
    let mut found = ManifestResult::new(subject.name.clone());
    let uses = removed_apis::removed_in_22(subject);
    if uses.is_empty() {
        return found;
    }
    let (name, csv) = (subject.csv_name(), subject.csv.0);
    let text = uses.text();
    let location = field_path(&["metadata", "annotations", "olm.properties"]);
    let set = |finding: ValidationFinding| {
        finding
            .at(csv, &location)
            .with_remedy(format!("set {MAXIMUM} below 4.9, or use newer APIs"))
    };
    let mut errors = Vec::new();
    match check_annotation(subject, &text) {
        Some((FindingLevel::Error, detail)) => errors.push(detail),
        Some((FindingLevel::Warning, detail)) => found.add(set(csv_warning(name, &detail))),
        None => {}
    }
    match &settings.index {
        None => {
            // Upstream repeats the errors as warnings, and drops earlier warnings.
            let label = format!(
                "please, inform the path of its index image file via the the optional key values and the \
                 key index-path to allow this validator check the labels configuration or migrate the \
                 API(s) for {text}. (e.g. index-path=./mypath/bundle.Dockerfile). This bundle is using APIs \
                 which were deprecated and removed in v1.22. More info: {GUIDE} "
            );
            found.warnings.clear();
            for detail in errors.iter().chain([&label]) {
                found.add(set(csv_warning(name, detail)));
            }
        }
        Some(index) => errors.extend(check_index_file(index, &text)),
    }
    found.extend(errors.iter().map(|detail| set(csv_error(name, detail))));
    found
}

/// Level and detail of the finding for the annotation, if any.
fn check_annotation(subject: &LoadedBundle, uses: &str) -> Option<(FindingLevel, String)> {
    let annotated = subject.annotation("olm.properties").unwrap_or_default();
    if annotated.is_empty() {
        return Some((
            FindingLevel::Error,
            format!(
                "csv.Annotations not specified {MAXIMUM} for an OCP version < 4.9. This annotation is required \
             to prevent the user from upgrading their OCP cluster before they have installed a version of \
             their operator which is compatible with 4.9. This bundle is using APIs which were deprecated \
             and removed in v1.22. More info: {GUIDE} which are no longer supported on 4.9. Migrate the \
             API(s) for {uses} or use the annotation"
            ),
        ));
    }
    let list = serde_json::from_str(annotated).ok();
    let Some(list) = list.filter(|list: &Value| check(list, &PROPERTIES).is_ok()) else {
        return Some((
            FindingLevel::Error,
            format!(
                "csv.Annotations has an invalid value specified for olm.properties. Please, check the value  \
             ({annotated}) and ensure that it is an array such as: \"olm.properties\": '[{{\"type\": \"key \
             name\", \"value\": \"key value\"}}]'"
            ),
        ));
    };
    let items = list.as_array().map_or(&[][..], Vec::as_slice);
    let Some(found) = items.iter().find(|item| text(item, "type") == MAXIMUM) else {
        return Some((
            FindingLevel::Error,
            format!(
                "csv.Annotations.olm.properties with the key `{MAXIMUM}` and a value with an OCP version which \
             is < 4.9 is required for any operator bundle that is using APIs which were deprecated and \
             removed in v1.22. More info: {GUIDE}. Migrate the API(s) for {uses} or use the annotation"
            ),
        ));
    };
    let value = text(found, "value");
    let maximum = match parse_tolerant(value) {
        Ok(maximum) => maximum,
        Err(why) => {
            return Some((
                FindingLevel::Error,
                format!(
                    "csv.Annotations.olm.properties has an invalid value. Unable to parse ({value}) using \
                 semver : {why}"
                ),
            ));
        }
    };
    let whole = maximum.as_semver();
    let cut = Version::new(whole.major, whole.minor, 0);
    if maximum != cut {
        return Some((
            FindingLevel::Warning,
            format!(
                "csv.Annotations.olm.properties has an invalid value. {MAXIMUM} must specify only major.minor \
             versions, {maximum} will be truncated to {cut}"
            ),
        ));
    }
    (maximum >= Version::new(4, 9, 0)).then(|| {
        let detail = format!(
            "csv.Annotations.olm.properties with the key and value for {MAXIMUM} has the OCP version value \
             {value} which is >= of 4.9. This bundle is using APIs which were deprecated and removed in \
             v1.22. More info: {GUIDE}. Migrate the API(s) for {uses} or inform in this property an OCP \
             version which is < 4.9"
        );
        (FindingLevel::Error, detail)
    })
}

/// The Dockerfile of an index image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexFile {
    /// The path as given.
    pub path: String,
    /// The content, or why it cannot be read.
    pub content: IndexContent,
}

/// The result of reading the Dockerfile of an index image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexContent {
    /// The text.
    Text(String),
    /// The path is a folder.
    Folder,
    /// The file does not exist: the message of the operating system.
    Missing(String),
    /// The file cannot be read: the message of the operating system.
    Unreadable(String),
}

/// The error of the Dockerfile's labels, if any.
fn check_index_file(index: &IndexFile, uses: &str) -> Option<String> {
    let path = &index.path;
    let content = match &index.content {
        IndexContent::Text(content) => content,
        IndexContent::Missing(why) => {
            return Some(format!(
                "the index image in the path ({path}) was not found. Please, inform the path of the bundle \
                 operator index image via the the optional key values and the key index-path. (e.g. \
                 index-path=./mypath/bundle.Dockerfile). Error : {why}"
            ));
        }
        IndexContent::Folder => {
            return Some(format!(
                "the index image in the path ({path}) is not file. Please, inform the path of its index \
                 image via the the optional key values and the key index-path. (e.g. \
                 index-path=./mypath/bundle.Dockerfile). The value informed is a diretory and not a file"
            ));
        }
        IndexContent::Unreadable(why) => {
            return Some(format!(
                "unable to read the index image in the path ({path}). Error : {why}"
            ));
        }
    };
    let Some(line) = content.split('\n').find(|line| line.contains(LABEL)) else {
        return Some(format!(
            "{USES} More info: {GUIDE}. Migrate the APIs for {uses} or provide compatible version(s) via \
             the labels. (e.g. LABEL {LABEL}='4.6-4.8')"
        ));
    };
    let parts: Vec<&str> = line.split('=').collect();
    let Some(value) = parts.get(1) else {
        return Some(format!("invalid syntax ({line}) for ({LABEL})"));
    };
    let clean = |value: &str| value.replace(['\'', '"', 'v'], "");
    let last = Version::new(4, 9, 0);
    let unparsable =
        |version: &str| Some(format!("unable to parse the value ({version}) on ({LABEL})"));
    // `=v4.8` names one version.
    if let Some(exact) = parts.get(2).filter(|value| !value.is_empty()) {
        let version = clean(exact);
        let Ok(parsed) = parse_tolerant(&version) else { return unparsable(&version) };
        return (parsed >= last).then(|| {
            format!(
                "{USES} More info: {GUIDE}. Migrate the API(s) for {uses} or provide compatible version(s) \
                 by using the {LABEL} annotation in `metadata/annotations.yaml` to ensure that the index \
                 image will be geneared with its label. (e.g. LABEL {LABEL}='4.6-4.8')"
            )
        });
    }
    let range = clean(value);
    if range.len() <= 1 {
        return Some(format!("unable to get the range informed on {LABEL}"));
    }
    let Some(version) = range.split('-').nth(1) else {
        return Some(format!(
            "{USES} More info: {GUIDE} The {range} allows to distribute it on >= 4.9. Migrate the API(s) \
             for {uses} or provide compatible version(s) by using the {LABEL} annotation in \
             `metadata/annotations.yaml` to ensure that the index image will be generated with its label. \
             (e.g. LABEL {LABEL}='4.6-4.8')"
        ));
    };
    let Ok(parsed) = parse_tolerant(version) else { return unparsable(version) };
    (parsed >= last).then(|| {
        format!(
            "{USES} More info: {GUIDE}. Upgrade the APIs from for {uses} or provide compatible \
             distribution version(s) by using the {LABEL} annotation in `metadata/annotations.yaml` to \
             ensure that the index image will be generated with its label. (e.g. LABEL {LABEL}='4.6-4.8')"
        )
    })
}
