//! Access reviews: `SubjectAccessReview` and its relatives, and `SelfSubjectRulesReview`.

use super::rules::PolicyRule;
use super::{Attributes, Authorizer};
use crate::Identity;
use mainstay_object::selector::{FieldSelector, LabelSelector};
use mainstay_object::{Object, Status, names};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Authorizer {
    /// Sets the status of a valid `SelfSubjectAccessReview`, `SubjectAccessReview` or
    /// `LocalSubjectAccessReview`.
    pub fn review_access(&self, kind: &str, identity: &Identity, review: &mut Object) {
        let text = |path: &[&str]| review.str(path).unwrap_or_default();
        let subject = if kind == "SelfSubjectAccessReview" {
            identity.clone()
        } else {
            let texts = |list: &[Value]| -> Vec<String> {
                list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let extra = review.get(&["spec", "extra"]).and_then(Value::as_object);
            let extra: BTreeMap<String, Vec<String>> = extra
                .into_iter()
                .flatten()
                .map(|(key, list)| (key.clone(), texts(list.as_array().map_or(&[], Vec::as_slice))))
                .collect();
            let groups = texts(review.array(&["spec", "groups"]));
            Identity::with_exact_groups(
                text(&["spec", "user"]),
                text(&["spec", "uid"]),
                groups,
                extra,
            )
        };
        let resource = |field: &str| text(&["spec", "resourceAttributes", field]);
        let path = |field: &str| text(&["spec", "nonResourceAttributes", field]);
        let mut warnings = Vec::new();
        let attributes = if let Some(wanted) = review.get(&["spec", "resourceAttributes"]) {
            warnings.extend(selector_warning(wanted, "fieldSelector", field_selector));
            warnings.extend(selector_warning(wanted, "labelSelector", label_selector));
            Attributes::resource(
                &subject,
                resource("verb"),
                resource("group"),
                resource("resource"),
            )
            .in_namespace(resource("namespace"))
            .with_name(resource("name"))
            .with_subresource(resource("subresource"))
        } else {
            Attributes::path(&subject, path("verb"), path("path"))
        };
        let decision = self.decide(&attributes);
        let mut status = json!({"allowed": decision.is_allowed()});
        if !decision.reason().is_empty() {
            status["reason"] = decision.reason().into();
        }
        if !warnings.is_empty() {
            status["evaluationError"] = warnings.join("; ").into();
        }
        review.set(&["status"], status);
    }

    /// Sets the status of a `SelfSubjectRulesReview`: the rules of an identity in a namespace.
    pub fn review_rules(&self, identity: &Identity, review: &mut Object) -> Result<(), Status> {
        let namespace = review.str(&["spec", "namespace"]).unwrap_or_default();
        if namespace.is_empty() {
            return Err(Status::bad_request("no namespace on request"));
        }
        let (rules, missing) = self.current().rules_for(identity, namespace, None);
        let rules = || rules.iter().flat_map(|rules: &Arc<[PolicyRule]>| rules.iter());
        let resources: Vec<Value> = rules()
            .filter(|rule| !rule.resources.is_empty())
            .map(|rule| to_json(&PolicyRule { non_resource_urls: Vec::new(), ..rule.clone() }))
            .collect();
        let paths: Vec<Value> = rules()
            .filter(|rule| !rule.non_resource_urls.is_empty())
            .map(|rule| {
                to_json(&PolicyRule {
                    verbs: rule.verbs.clone(),
                    non_resource_urls: rule.non_resource_urls.clone(),
                    ..PolicyRule::default()
                })
            })
            .collect();
        let mut status = json!({
            "resourceRules": resources, "nonResourceRules": paths, "incomplete": false,
        });
        if let Some(missing) = missing {
            status["evaluationError"] = missing.into();
        }
        // kube-apiserver's response omits the request.
        review.set(&["metadata"], json!({}));
        review.set(&["spec"], json!({}));
        review.set(&["status"], status);
        Ok(())
    }
}

fn to_json(rule: &PolicyRule) -> Value {
    // A struct of lists of texts always serializes.
    serde_json::to_value(rule).unwrap_or_default()
}

/// Which requirements of a selector are valid. No rule reads selectors, so this changes only the
/// text of the response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValidRequirements {
    All,
    Some,
    None,
}

fn selector_warning(
    attributes: &Value,
    field: &str,
    read: fn(&Value) -> ValidRequirements,
) -> Option<String> {
    let extent = match read(attributes.get(field).filter(|value| !value.is_null())?) {
        ValidRequirements::All => return None,
        ValidRequirements::Some => "partially ignored",
        ValidRequirements::None => "ignored",
    };
    Some(format!("spec.resourceAttributes.{field} {extent} due to parse error"))
}

fn raw_selector(selector: &Value) -> &str {
    selector.get("rawSelector").and_then(Value::as_str).unwrap_or_default()
}

/// Checks each requirement.
fn check_requirements(
    selector: &Value,
    is_valid: fn(&str, &str, usize) -> bool,
) -> ValidRequirements {
    let list = selector.get("requirements").and_then(Value::as_array);
    let (mut has_valid, mut has_invalid) = (false, false);
    for requirement in list.into_iter().flatten() {
        let text = |field: &str| requirement.get(field).and_then(Value::as_str).unwrap_or_default();
        let values = requirement.get("values").and_then(Value::as_array).map_or(0, Vec::len);
        if is_valid(text("key"), text("operator"), values) {
            has_valid = true;
        } else {
            has_invalid = true;
        }
    }
    match (has_valid, has_invalid) {
        (_, false) => ValidRequirements::All,
        (true, true) => ValidRequirements::Some,
        (false, true) => ValidRequirements::None,
    }
}

fn all_or_none(is_valid: bool) -> ValidRequirements {
    if is_valid { ValidRequirements::All } else { ValidRequirements::None }
}

fn field_selector(selector: &Value) -> ValidRequirements {
    match raw_selector(selector) {
        "" => check_requirements(selector, |_, operator, values| {
            matches!(operator, "In" | "NotIn") && values == 1
        }),
        raw => all_or_none(FieldSelector::parse(raw).is_ok()),
    }
}

fn label_selector(selector: &Value) -> ValidRequirements {
    match raw_selector(selector) {
        "" => check_requirements(selector, |key, operator, _| {
            matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist")
                && names::qualified_name(key).is_empty()
        }),
        raw => all_or_none(LabelSelector::parse(raw).is_ok()),
    }
}
