//! The validator `object`: disruption budgets, priority classes and RBAC that can harm a cluster.

use super::{
    csv_fields::{field_at, field_value, items, texts},
    finding::{BadValue, ManifestResult, ValidationFinding, field_path, item_path},
    load::LoadedBundle,
    metadata::{print_metadata, print_type},
};
use crate::{go_field, manifest::Manifest};
use mainstay_schema::gojson::{self, DeclaredType};
use serde_json::Value;

const INVALID: &str = "ObjectFailedValidation";

/// Security context constraints that OpenShift ships.
const DEFAULT_SCCS: &[&str] = &[
    "privileged",
    "restricted",
    "anyuid",
    "hostaccess",
    "hostmount-anyuid",
    "hostnetwork",
    "node-exporter",
    "nonroot",
];

/// Validates the objects of these kinds.
pub(crate) fn validate(subject: &LoadedBundle) -> Vec<ManifestResult> {
    let manifests = subject.manifests.iter().enumerate();
    manifests.filter_map(|(at, manifest)| one(at, manifest)).collect()
}

fn one(at: usize, manifest: &Manifest) -> Option<ManifestResult> {
    let (what, name, judge): (_, _, fn(usize, &Value) -> Vec<ValidationFinding>) =
        match manifest.kind() {
            "PodDisruptionBudget" => {
                ("poddisruptionbudget", "api.policy.v1.PodDisruptionBudget", budget)
            }
            "PriorityClass" => ("priorityclass", "api.scheduling.v1.PriorityClass", priority),
            "Role" => ("role", "api.rbac.v1.Role", rules),
            "ClusterRole" => ("clusterrole", "api.rbac.v1.ClusterRole", rules),
            _ => return None,
        };
    let mut found = ManifestResult::default();
    match gojson::check(manifest.value(), &DeclaredType::Table(name)) {
        Err(mismatch) => {
            let bad = BadValue::Printed(mismatch.reason.to_string());
            let finding =
                ValidationFinding::error("ParseError", bad, format!("error unmarshaling {what}"));
            found.add(
                finding
                    .at(at, &mismatch.path)
                    .with_remedy("write a value of the type in the message"),
            );
        }
        Ok(()) => found.extend(judge(at, manifest.value())),
    }
    Some(found)
}

fn budget(at: usize, object: &Value) -> Vec<ValidationFinding> {
    let spec = field_value(object, "spec");
    let mut found = Vec::new();
    let (max_unavailable, min_available) =
        (field_value(spec, "maxUnavailable"), field_value(spec, "minAvailable"));
    // Upstream reads every text as zero, also 50%.
    let zero = max_unavailable.is_string() || max_unavailable.as_i64() == Some(0);
    for (is_invalid, field, detail, remedy) in [
        (
            zero,
            "maxUnavailable",
            "maxUnavailable field cannot be set to 0 or 0%",
            "write at least 1",
        ),
        (
            min_available == "100%",
            "minAvailable",
            "minAvailable field cannot be set to 100%",
            "allow at least one pod to be evicted",
        ),
    ] {
        if is_invalid {
            let bad = BadValue::Printed(print_budget(object));
            let finding = ValidationFinding::error(INVALID, bad, detail);
            found.push(finding.at(at, &field_path(&["spec", field])).with_remedy(remedy));
        }
    }
    found
}

/// A disruption budget as `%v` prints it.
fn print_budget(object: &Value) -> String {
    let spec = field_value(object, "spec");
    let amount = |name: &str| match field_value(spec, name) {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => "<nil>".to_owned(),
    };
    let selector = match field_value(spec, "selector") {
        Value::Null => "nil".to_owned(),
        selector => {
            let labels = field_value(selector, "matchLabels").as_object();
            let label = |(key, value): (&String, &Value)| {
                format!("{key}: {},", value.as_str().unwrap_or_default())
            };
            let labels: Vec<String> = labels.into_iter().flatten().map(label).collect();
            let expression = |expression: &Value| {
                format!(
                    "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                    go_field::text(expression, "key"),
                    go_field::text(expression, "operator"),
                    texts(expression, "values").collect::<Vec<_>>().join(" ")
                )
            };
            let expressions: Vec<String> =
                items(selector, "matchExpressions").iter().map(expression).collect();
            let (labels, expressions) = (labels.concat(), expressions.concat());
            format!(
                "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
                 MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
            )
        }
    };
    let policy = match field_value(spec, "unhealthyPodEvictionPolicy") {
        Value::Null => "<nil>",
        _ => "{ptr}",
    };
    format!(
        "{{{} {} {{{} {selector} {} {policy}}} {{0 map[] 0 0 0 0 []}}}}",
        print_type(object),
        print_metadata(field_value(object, "metadata")),
        amount("minAvailable"),
        amount("maxUnavailable"),
    )
}

fn priority(at: usize, object: &Value) -> Vec<ValidationFinding> {
    if field_value(object, "globalDefault") != &Value::Bool(true) {
        return Vec::new();
    }
    let policy = if field_value(object, "preemptionPolicy").is_null() { "<nil>" } else { "{ptr}" };
    let printed = format!(
        "{{{} {} {} true {} {policy}}}",
        print_type(object),
        print_metadata(field_value(object, "metadata")),
        field_value(object, "value").as_i64().unwrap_or_default(),
        go_field::text(object, "description"),
    );
    let detail = "globalDefault field cannot be set to true";
    let finding = ValidationFinding::error(INVALID, BadValue::Printed(printed), detail);
    vec![finding.at(at, &field_path(&["globalDefault"])).with_remedy("write false")]
}

fn rules(at: usize, object: &Value) -> Vec<ValidationFinding> {
    let rules = items(object, "rules");
    let any = |rule: &Value, field: &str, wanted: &[&str]| {
        texts(rule, field).any(|text| wanted.contains(&text))
    };
    let mut found = Vec::new();
    let mut add = |number: usize,
                   level: fn(&'static str, BadValue, &'static str) -> ValidationFinding,
                   kind,
                   detail| {
        let finding = level(kind, BadValue::Printed(print_rule(&rules[number])), detail);
        let remedy = "take the permission out of the role";
        found.push(finding.at(at, &item_path(&["rules"], number)).with_remedy(remedy));
    };
    for (number, rule) in rules.iter().enumerate() {
        if any(rule, "apiGroups", &["policy"])
            && any(rule, "resources", &["poddisruptionbudgets"])
            && any(rule, "verbs", &["*", "create", "update", "patch"])
        {
            let detail = "RBAC includes permission to create/update poddisruptionbudgets, which could \
                          impact cluster stability";
            add(number, ValidationFinding::warning, "ValidationFailed", detail);
        }
        if any(rule, "apiGroups", &["security.openshift.io"])
            && any(rule, "resources", &["securitycontextconstraints"])
            && any(rule, "verbs", &["*", "delete", "update", "patch"])
            && any(rule, "resourceNames", DEFAULT_SCCS)
        {
            let detail = "RBAC includes permission to modify default securitycontextconstraints, which \
                          could impact cluster stability";
            add(number, ValidationFinding::error, INVALID, detail);
        }
    }
    found
}

/// An RBAC rule as `%v` prints it.
fn print_rule(rule: &Value) -> String {
    let list = |name: &str| texts(rule, name).collect::<Vec<_>>().join(" ");
    format!(
        "{{[{}] [{}] [{}] [{}] [{}]}}",
        list("verbs"),
        list("apiGroups"),
        list("resources"),
        list("resourceNames"),
        list("nonResourceURLs")
    )
}

/// Whether an RBAC rule has one of the groups, one of the resources and one of the verbs.
pub(crate) fn permits(rule: &Value, groups: &[&str], resources: &[&str], verbs: &[&str]) -> bool {
    let any = |field: &str, wanted: &[&str]| texts(rule, field).any(|text| wanted.contains(&text));
    any("apiGroups", groups) && any("resources", resources) && any("verbs", verbs)
}

/// The rules of an install strategy's `permissions` or `clusterPermissions`, with their indexes.
pub(crate) fn permissions<'s>(
    subject: &'s LoadedBundle,
    which: &str,
) -> impl Iterator<Item = (usize, usize, &'s Value)> {
    let found = field_at(subject.install(), &[which]).as_array().map_or(&[][..], Vec::as_slice);
    found.iter().enumerate().flat_map(|(at, permission)| {
        items(permission, "rules").iter().enumerate().map(move |(rule, value)| (at, rule, value))
    })
}
