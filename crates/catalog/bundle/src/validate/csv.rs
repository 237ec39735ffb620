//! The validator `csv`: the ClusterServiceVersion.

use super::{
    annotations,
    csv_fields::{field_at, field_value, gvk_of, gvk_text, items},
    decode::{json_fault, unstructured_error},
    finding::{BadValue, ManifestResult, ValidationFinding, field_path, item_path},
    load::LoadedBundle,
};
use crate::{go_field, types};
use mainstay_formats::names;
use mainstay_gocompat::quote;
use mainstay_gocompat::values::json_kind;
use mainstay_schema::builtin::{self, JsonForm, TypeDefinition};
use mainstay_schema::gojson::DeclaredType;
use serde_json::Value;
use std::collections::BTreeSet;

pub(crate) const INVALID: &str = "CSVFileNotValid";
pub(crate) const PARSE: &str = "ParseError";
const OPERATION: &str = "OperationFailed";

/// The message for a missing minKubeVersion.
pub(crate) const NO_MINIMUM: &str = "csv.Spec.minKubeVersion is not informed. It is recommended you \
    provide this information. Otherwise, it would mean that your operator project can be distributed \
    and installed in any cluster version available, which is not necessarily the case for all projects.";

/// An error with the CSV's name in front and an empty value.
pub(crate) fn csv_error(name: &str, detail: &str) -> ValidationFinding {
    ValidationFinding::error(INVALID, BadValue::Text(String::new()), format!("({name}) {detail}"))
}

/// A warning with the CSV's name in front and an empty value.
pub(crate) fn csv_warning(name: &str, detail: &str) -> ValidationFinding {
    ValidationFinding::warning(INVALID, BadValue::Text(String::new()), format!("({name}) {detail}"))
}

/// Validates the ClusterServiceVersion of a bundle.
pub(crate) fn validate(subject: &LoadedBundle) -> ManifestResult {
    let name = subject.csv_name();
    let mut found = ManifestResult::new(name);
    let csv = subject.csv.0;
    let replaces = go_field::text(subject.spec(), "replaces");
    let names = [(name, ["metadata", "name"]), (replaces, ["spec", "replaces"])];
    for (text, path) in names {
        if text.is_empty() && path[0] == "spec" {
            continue;
        }
        if let Some(why) = name_error(text) {
            let detail = format!("{} {} is invalid: {why}", path.join("."), quote(text));
            let finding = csv_error(name, &detail).at(csv, &field_path(&path));
            found.add(
                finding.with_remedy("write lower-case letters, digits, '-' and '.', at most 63"),
            );
        }
    }
    found.extend(check_examples(subject));
    found.extend(check_install_modes(subject));
    found.extend(check_min_kube_version(subject));
    found.extend(check_required_fields(subject));
    let annotated = annotations::findings(subject.annotations(), name);
    found.extend(
        annotated
            .into_iter()
            .map(|(key, finding)| finding.at(csv, &field_path(&["metadata", "annotations", key]))),
    );
    let gvk = gvk_of(subject.csv_value());
    for (empty, field, text) in [
        (gvk.version.is_empty(), "apiVersion", "'apiVersion' is missing"),
        (gvk.kind.is_empty(), "kind", "'kind' is missing"),
    ] {
        if empty {
            let remedy = "write operators.coreos.com/v1alpha1 as apiVersion";
            found.add(csv_error(name, text).at(csv, &field_path(&[field])).with_remedy(remedy));
        }
    }
    found
}

/// Why a text is not a name of a ClusterServiceVersion.
fn name_error(name: &str) -> Option<String> {
    let mut errors = names::dns1123_subdomain(name);
    errors.extend(names::label_value(name));
    (!errors.is_empty()).then(|| errors.join(","))
}

/// Each example has a provided API, and each provided API has an example.
fn check_examples(subject: &LoadedBundle) -> Vec<ValidationFinding> {
    let (name, csv) = (subject.csv_name(), subject.csv.0);
    let at = |key: &str| field_path(&["metadata", "annotations", key]);
    let remedy = "write an example of each kind into the annotation alm-examples, as a JSON list";
    if subject.annotations().next().is_none() {
        let location = field_path(&["metadata"]);
        return vec![
            csv_warning(name, "annotations not found").at(csv, &location).with_remedy(remedy),
        ];
    }
    let mut found = Vec::new();
    let (alm, olm) = (subject.annotation("alm-examples"), subject.annotation("olm.examples"));
    let (key, text) = match (alm, olm) {
        (None, None) => {
            let location = field_path(&["metadata", "annotations"]);
            let detail = "example annotations not found";
            return vec![csv_warning(name, detail).at(csv, &location).with_remedy(remedy)];
        }
        (Some(text), other) => {
            if other.is_some() {
                let detail = "both `alm-examples` and `olm.examples` are present. Checking only `alm-examples`";
                let finding = csv_warning(name, detail).at(csv, &at("olm.examples"));
                found.push(finding.with_remedy("remove olm.examples"));
            }
            ("alm-examples", text)
        }
        (None, Some(text)) => ("olm.examples", text),
    };
    let remedy = "write a JSON list of objects, each with apiVersion and kind";
    let parsed = match decode_examples(text) {
        Ok(parsed) => parsed,
        Err((detail, bad)) => {
            let finding = ValidationFinding::error(PARSE, BadValue::Printed(bad), detail);
            found.push(finding.at(csv, &at(key)).with_remedy(remedy));
            return found;
        }
    };
    let examples: BTreeSet<String> = parsed
        .iter()
        .map(gvk_of)
        .map(|gvk| gvk_text(&gvk.group, &gvk.version, &gvk.kind))
        .collect();
    let mut provided = BTreeSet::new();
    for (number, owned) in subject.resources("owned").iter().enumerate() {
        let text = |field: &str| go_field::text(owned, field);
        if let Some((_, group)) = text("name").split_once('.') {
            provided.insert(gvk_text(group, text("version"), text("kind")));
            continue;
        }
        let detail = format!("couldn't parse plural.group from crd name: {}", text("name"));
        let location = item_path(&["spec", "customresourcedefinitions", "owned"], number);
        let finding = ValidationFinding::error(PARSE, BadValue::Nothing, detail).at(csv, &location);
        found.push(finding.with_remedy("name the CustomResourceDefinition as PLURAL.GROUP"));
    }
    for owned in items(field_value(subject.spec(), "apiservicedefinitions"), "owned") {
        let text = |field: &str| go_field::text(owned, field);
        provided.insert(gvk_text(text("group"), text("version"), text("kind")));
    }
    for gvk in examples.difference(&provided) {
        let detail = "example must have a provided API";
        let finding = ValidationFinding::error(OPERATION, BadValue::Text(gvk.clone()), detail);
        found.push(finding.at(csv, &at(key)).with_remedy("own the API, or remove the example"));
    }
    for gvk in provided.difference(&examples) {
        let detail = "provided API should have an example annotation";
        let finding = ValidationFinding::warning(OPERATION, BadValue::Text(gvk.clone()), detail);
        found.push(finding.at(csv, &at(key)).with_remedy("add an example of it"));
    }
    found
}

/// The examples of an annotation, or the detail and value of the error.
fn decode_examples(text: &str) -> Result<Vec<Value>, (&'static str, String)> {
    const YAML: &str = "error unmarshaling JSON: while decoding JSON: ";
    if text.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(at) = json_fault(text.as_bytes()) {
        let before = String::from_utf8_lossy(&text.as_bytes()[..at]);
        let bad = format!("invalid character at {at}\n {before}<--(see the invalid character)");
        return Err(("invalid example", bad));
    }
    let decode_error = |why: String| Err(("error decoding example CustomResource", why));
    let list = "[]unstructured.Unstructured";
    match serde_json::from_str(text) {
        Ok(Value::Null) => Ok(Vec::new()),
        Ok(Value::Array(found)) => match found.iter().find_map(unstructured_error) {
            Some(why) => decode_error(format!("{YAML}{why}")),
            None => Ok(found),
        },
        Ok(other) => {
            let what = json_kind(&other);
            let why = format!("json: cannot unmarshal {what} into Go value of type {list}");
            // A text that begins like a JSON object is decoded as JSON, any other as YAML.
            let start = text.as_bytes().get(..8).unwrap_or(text.as_bytes()).trim_ascii_start();
            decode_error(if start.starts_with(b"{") { why } else { format!("{YAML}{why}") })
        }
        Err(error) => decode_error(error.to_string()),
    }
}

fn check_install_modes(subject: &LoadedBundle) -> Vec<ValidationFinding> {
    let (name, csv, spec) = (subject.csv_name(), subject.csv.0, subject.spec());
    let modes = items(spec, "installModes");
    let location = field_path(&["spec", "installModes"]);
    let remedy = "say of each of OwnNamespace, SingleNamespace, MultiNamespace and AllNamespaces whether \
                it is supported";
    if modes.is_empty() {
        return vec![
            csv_error(name, "install modes not found").at(csv, &location).with_remedy(remedy),
        ];
    }
    let supported = |mode: &Value| field_value(mode, "supported") == &Value::Bool(true);
    let all = |mode: &Value| go_field::text(mode, "type") == "AllNamespaces";
    let mut found = Vec::new();
    for (number, webhook) in items(spec, "webhookdefinitions").iter().enumerate() {
        let only_all = modes.iter().all(|mode| all(mode) == supported(mode));
        if !items(webhook, "conversionCRDs").is_empty() && !only_all {
            let detail =
                "only AllNamespaces InstallModeType is supported when conversionCRDs is present";
            let location = item_path(&["spec", "webhookdefinitions"], number);
            let remedy = "support AllNamespaces only";
            found.push(csv_error(name, detail).at(csv, &location).with_remedy(remedy));
        }
    }
    if !modes.iter().any(supported) {
        let finding = csv_error(name, "none of InstallModeTypes are supported").at(csv, &location);
        found.push(finding.with_remedy("support one of them"));
    }
    found
}

/// Checks that minKubeVersion is given and valid.
pub(crate) fn check_min_kube_version(subject: &LoadedBundle) -> Option<ValidationFinding> {
    let text = go_field::text(subject.spec(), "minKubeVersion");
    let finding = if text.trim().is_empty() {
        csv_warning(subject.csv_name(), NO_MINIMUM)
    } else if mainstay_version::parse_strict(text).is_err() {
        let detail = format!("csv.Spec.MinKubeVersion has an invalid value: {text}");
        csv_error(subject.csv_name(), &detail)
    } else {
        return None;
    };
    let location = field_path(&["spec", "minKubeVersion"]);
    Some(finding.at(subject.csv.0, &location).with_remedy("write a version such as 1.25.0"))
}

/// Checks required fields. Fields of a missing field are not checked.
fn check_required_fields(subject: &LoadedBundle) -> Vec<ValidationFinding> {
    let csv = subject.csv_value();
    let mut found = Vec::new();
    let mut ask = |absent: bool, go: &str, what: &str, path: &[&str], remedy: &'static str| {
        if absent {
            let bad = BadValue::Text(what.to_owned());
            let finding = ValidationFinding::error("FieldNotFound", bad, "required field missing");
            found.push(
                finding.with_field(go).at(subject.csv.0, &field_path(path)).with_remedy(remedy),
            );
        }
        absent
    };
    let metadata = is_zero(field_value(csv, "metadata"), &types::OBJECT_META);
    ask(metadata, "ObjectMeta", "struct", &["metadata"], "name the ClusterServiceVersion");
    let spec = subject.spec();
    if ask(is_zero(spec, &types::SPEC), "Spec", "struct", &["spec"], "describe the operator") {
        return found;
    }
    let install = field_value(spec, "install");
    let path = ["spec", "install"];
    let remedy = "say how the operator is installed: strategy deployment, and its spec";
    if !ask(is_zero(install, &types::INSTALL), "Spec.InstallStrategy", "struct", &path, remedy) {
        let unnamed = go_field::text(install, "strategy").is_empty();
        let go = "Spec.InstallStrategy.StrategyName";
        ask(unnamed, go, "field", &["spec", "install", "strategy"], "write deployment");
        let details = field_value(install, "spec");
        if !is_zero(details, &types::INSTALL_DETAILS) {
            let none = field_value(details, "deployments").is_null();
            let go = "Spec.InstallStrategy.StrategySpec.DeploymentSpecs";
            let path = ["spec", "install", "spec", "deployments"];
            ask(none, go, "field", &path, "list the deployments");
        }
    }
    let unnamed = go_field::text(spec, "displayName").is_empty();
    ask(unnamed, "Spec.DisplayName", "field", &["spec", "displayName"], "write a name for people");
    found
}

/// Whether the decoded Go value is the zero value. Present lists and maps are not, even if empty.
fn is_zero(value: &Value, kind: &DeclaredType) -> bool {
    let DeclaredType::Table(name) = kind else { return is_zero_scalar(value) };
    builtin::definition(name).is_none_or(|definition| is_zero_object(value, definition))
}

fn is_zero_object(value: &Value, definition: &TypeDefinition) -> bool {
    match (definition.json_form(), value) {
        (_, Value::Null) => true,
        // A release is a list; a version is zero if it is 0.0.0.
        (JsonForm::ParsedText, Value::String(text)) => mainstay_version::parse_tolerant(text)
            .is_ok_and(|version| version.to_string() == "0.0.0"),
        (JsonForm::Object, value) => definition.fields().iter().all(|field| {
            let value = field_value(value, &field.name);
            match field.ty.definition() {
                Some(_) if field.pointer => value.is_null(),
                Some(definition) => is_zero_object(value, definition),
                None => is_zero_scalar(value),
            }
        }),
        _ => false,
    }
}

fn is_zero_scalar(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        _ => false,
    }
}

/// `metadata.labels`.
pub(crate) fn labels(subject: &LoadedBundle) -> impl Iterator<Item = (&str, &str)> {
    let found = field_at(subject.csv_value(), &["metadata", "labels"]).as_object();
    found
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}
