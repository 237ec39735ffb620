//! The validator of the ClusterServiceVersion.

use super::{
    annotations,
    decode::{json_fault, unstructured},
    finding::{Bad, Finding, Findings, fields, item},
    load::Subject,
    view::{deep, gvk_of, gvk_text, items, part},
};
use crate::{shape, types};
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

/// What is said where no minimum is given.
pub(crate) const NO_MINIMUM: &str = "csv.Spec.minKubeVersion is not informed. It is recommended you \
    provide this information. Otherwise, it would mean that your operator project can be distributed \
    and installed in any cluster version available, which is not necessarily the case for all projects.";

/// An error of the kind that has the name in front and an empty value.
pub(crate) fn invalid(name: &str, detail: &str) -> Finding {
    Finding::error(INVALID, Bad::Text(String::new()), format!("({name}) {detail}"))
}

/// A warning of that kind.
pub(crate) fn doubtful(name: &str, detail: &str) -> Finding {
    Finding::warning(INVALID, Bad::Text(String::new()), format!("({name}) {detail}"))
}

/// Judges the ClusterServiceVersion of a bundle.
pub(crate) fn validate(subject: &Subject) -> Findings {
    let name = subject.csv_name();
    let mut found = Findings::new(name);
    let csv = subject.csv.0;
    let replaces = shape::text(subject.spec(), "replaces");
    let names = [(name, ["metadata", "name"]), (replaces, ["spec", "replaces"])];
    for (text, path) in names {
        if text.is_empty() && path[0] == "spec" {
            continue;
        }
        if let Some(why) = name_fault(text) {
            let detail = format!("{} {} is invalid: {why}", path.join("."), quote(text));
            let finding = invalid(name, &detail).at(csv, &fields(&path));
            found.add(finding.mend("write lower-case letters, digits, '-' and '.', at most 63"));
        }
    }
    found.extend(examples(subject));
    found.extend(install_modes(subject));
    found.extend(minimum(subject));
    found.extend(missing(subject));
    let annotated = annotations::findings(subject.annotations(), name);
    found.extend(
        annotated
            .into_iter()
            .map(|(key, finding)| finding.at(csv, &fields(&["metadata", "annotations", key]))),
    );
    let gvk = gvk_of(subject.csv_value());
    for (empty, field, text) in [
        (gvk.version.is_empty(), "apiVersion", "'apiVersion' is missing"),
        (gvk.kind.is_empty(), "kind", "'kind' is missing"),
    ] {
        if empty {
            let remedy = "write operators.coreos.com/v1alpha1 as apiVersion";
            found.add(invalid(name, text).at(csv, &fields(&[field])).mend(remedy));
        }
    }
    found
}

/// Why a text cannot name a ClusterServiceVersion.
fn name_fault(name: &str) -> Option<String> {
    let mut wrong = names::dns1123_subdomain(name);
    wrong.extend(names::label_value(name));
    (!wrong.is_empty()).then(|| wrong.join(","))
}

/// Examples have an API that the bundle provides, and the other way round.
fn examples(subject: &Subject) -> Vec<Finding> {
    let (name, csv) = (subject.csv_name(), subject.csv.0);
    let at = |key: &str| fields(&["metadata", "annotations", key]);
    let mend = "write an example of each kind into the annotation alm-examples, as a JSON list";
    if subject.annotations().next().is_none() {
        let place = fields(&["metadata"]);
        return vec![doubtful(name, "annotations not found").at(csv, &place).mend(mend)];
    }
    let mut found = Vec::new();
    let (alm, olm) = (subject.annotation("alm-examples"), subject.annotation("olm.examples"));
    let (key, text) = match (alm, olm) {
        (None, None) => {
            let place = fields(&["metadata", "annotations"]);
            let detail = "example annotations not found";
            return vec![doubtful(name, detail).at(csv, &place).mend(mend)];
        }
        (Some(text), other) => {
            if other.is_some() {
                let detail = "both `alm-examples` and `olm.examples` are present. Checking only `alm-examples`";
                let finding = doubtful(name, detail).at(csv, &at("olm.examples"));
                found.push(finding.mend("remove olm.examples"));
            }
            ("alm-examples", text)
        }
        (None, Some(text)) => ("olm.examples", text),
    };
    let remedy = "write a JSON list of objects, each with apiVersion and kind";
    let parsed = match decode_examples(text) {
        Ok(parsed) => parsed,
        Err((detail, bad)) => {
            let finding = Finding::error(PARSE, Bad::Shown(bad), detail);
            found.push(finding.at(csv, &at(key)).mend(remedy));
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
        let text = |field: &str| shape::text(owned, field);
        if let Some((_, group)) = text("name").split_once('.') {
            provided.insert(gvk_text(group, text("version"), text("kind")));
            continue;
        }
        let detail = format!("couldn't parse plural.group from crd name: {}", text("name"));
        let place = item(&["spec", "customresourcedefinitions", "owned"], number);
        let finding = Finding::error(PARSE, Bad::Nothing, detail).at(csv, &place);
        found.push(finding.mend("name the CustomResourceDefinition as PLURAL.GROUP"));
    }
    for owned in items(part(subject.spec(), "apiservicedefinitions"), "owned") {
        let text = |field: &str| shape::text(owned, field);
        provided.insert(gvk_text(text("group"), text("version"), text("kind")));
    }
    for gvk in examples.difference(&provided) {
        let detail = "example must have a provided API";
        let finding = Finding::error(OPERATION, Bad::Text(gvk.clone()), detail);
        found.push(finding.at(csv, &at(key)).mend("own the API, or remove the example"));
    }
    for gvk in provided.difference(&examples) {
        let detail = "provided API should have an example annotation";
        let finding = Finding::warning(OPERATION, Bad::Text(gvk.clone()), detail);
        found.push(finding.at(csv, &at(key)).mend("add an example of it"));
    }
    found
}

/// The examples of an annotation, or the detail and the value of what is wrong with them.
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
    let wrong = |why: String| Err(("error decoding example CustomResource", why));
    let list = "[]unstructured.Unstructured";
    match serde_json::from_str(text) {
        Ok(Value::Null) => Ok(Vec::new()),
        Ok(Value::Array(found)) => match found.iter().find_map(unstructured) {
            Some(why) => wrong(format!("{YAML}{why}")),
            None => Ok(found),
        },
        Ok(other) => {
            let what = json_kind(&other);
            let why = format!("json: cannot unmarshal {what} into Go value of type {list}");
            // What begins like a JSON object is read as JSON, all else as YAML.
            let start = text.as_bytes().get(..8).unwrap_or(text.as_bytes()).trim_ascii_start();
            wrong(if start.starts_with(b"{") { why } else { format!("{YAML}{why}") })
        }
        Err(error) => wrong(error.to_string()),
    }
}

fn install_modes(subject: &Subject) -> Vec<Finding> {
    let (name, csv, spec) = (subject.csv_name(), subject.csv.0, subject.spec());
    let modes = items(spec, "installModes");
    let place = fields(&["spec", "installModes"]);
    let mend = "say of each of OwnNamespace, SingleNamespace, MultiNamespace and AllNamespaces whether \
                it is supported";
    if modes.is_empty() {
        return vec![invalid(name, "install modes not found").at(csv, &place).mend(mend)];
    }
    let supported = |mode: &Value| part(mode, "supported") == &Value::Bool(true);
    let all = |mode: &Value| shape::text(mode, "type") == "AllNamespaces";
    let mut found = Vec::new();
    for (number, webhook) in items(spec, "webhookdefinitions").iter().enumerate() {
        let only_all = modes.iter().all(|mode| all(mode) == supported(mode));
        if !items(webhook, "conversionCRDs").is_empty() && !only_all {
            let detail =
                "only AllNamespaces InstallModeType is supported when conversionCRDs is present";
            let place = item(&["spec", "webhookdefinitions"], number);
            let remedy = "support AllNamespaces only";
            found.push(invalid(name, detail).at(csv, &place).mend(remedy));
        }
    }
    if !modes.iter().any(supported) {
        let finding = invalid(name, "none of InstallModeTypes are supported").at(csv, &place);
        found.push(finding.mend("support one of them"));
    }
    found
}

/// Whether the version of Kubernetes that is needed is given, and is one.
pub(crate) fn minimum(subject: &Subject) -> Option<Finding> {
    let text = shape::text(subject.spec(), "minKubeVersion");
    let finding = if text.trim().is_empty() {
        doubtful(subject.csv_name(), NO_MINIMUM)
    } else if mainstay_version::parse_strict(text).is_err() {
        let detail = format!("csv.Spec.MinKubeVersion has an invalid value: {text}");
        invalid(subject.csv_name(), &detail)
    } else {
        return None;
    };
    let place = fields(&["spec", "minKubeVersion"]);
    Some(finding.at(subject.csv.0, &place).mend("write a version such as 1.25.0"))
}

/// Fields that have to be there. Inside of what is missing nothing is asked for.
fn missing(subject: &Subject) -> Vec<Finding> {
    let csv = subject.csv_value();
    let mut found = Vec::new();
    let mut ask = |absent: bool, go: &str, what: &str, path: &[&str], remedy: &'static str| {
        if absent {
            let bad = Bad::Text(what.to_owned());
            let finding = Finding::error("FieldNotFound", bad, "required field missing");
            found.push(finding.of_field(go).at(subject.csv.0, &fields(path)).mend(remedy));
        }
        absent
    };
    let metadata = is_zero(part(csv, "metadata"), &types::OBJECT_META);
    ask(metadata, "ObjectMeta", "struct", &["metadata"], "name the ClusterServiceVersion");
    let spec = subject.spec();
    if ask(is_zero(spec, &types::SPEC), "Spec", "struct", &["spec"], "describe the operator") {
        return found;
    }
    let install = part(spec, "install");
    let path = ["spec", "install"];
    let remedy = "say how the operator is installed: strategy deployment, and its spec";
    if !ask(is_zero(install, &types::INSTALL), "Spec.InstallStrategy", "struct", &path, remedy) {
        let unnamed = shape::text(install, "strategy").is_empty();
        let go = "Spec.InstallStrategy.StrategyName";
        ask(unnamed, go, "field", &["spec", "install", "strategy"], "write deployment");
        let details = part(install, "spec");
        if !is_zero(details, &types::INSTALL_DETAILS) {
            let none = part(details, "deployments").is_null();
            let go = "Spec.InstallStrategy.StrategySpec.DeploymentSpecs";
            let path = ["spec", "install", "spec", "deployments"];
            ask(none, go, "field", &path, "list the deployments");
        }
    }
    let unnamed = shape::text(spec, "displayName").is_empty();
    ask(unnamed, "Spec.DisplayName", "field", &["spec", "displayName"], "write a name for people");
    found
}

/// Whether a value of Go that is read from this one has nothing in it. Lists and maps that are there
/// are something, however empty.
fn is_zero(value: &Value, kind: &DeclaredType) -> bool {
    let DeclaredType::Table(name) = kind else { return is_zero_scalar(value) };
    builtin::definition(name).is_none_or(|definition| is_zero_object(value, definition))
}

fn is_zero_object(value: &Value, definition: &TypeDefinition) -> bool {
    match (definition.json_form(), value) {
        (_, Value::Null) => true,
        // A release is a list, a version is one number or the other.
        (JsonForm::ParsedText, Value::String(text)) => mainstay_version::parse_tolerant(text)
            .is_ok_and(|version| version.to_string() == "0.0.0"),
        (JsonForm::Object, value) => definition.fields().iter().all(|field| {
            let value = part(value, &field.name);
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
pub(crate) fn labels(subject: &Subject) -> impl Iterator<Item = (&str, &str)> {
    let found = deep(subject.csv_value(), &["metadata", "labels"]).as_object();
    found
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}
