//! Questions whether somebody may do something, asked as objects.

use super::rules::PolicyRule;
use super::{Attributes, Authorizer};
use crate::Identity;
use mainstay_object::selector::{FieldSelector, LabelSelector};
use mainstay_object::{Object, Status, names};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Authorizer {
    /// Answers a `SelfSubjectAccessReview`, `SubjectAccessReview` or `LocalSubjectAccessReview`
    /// that validation has passed: sets its status.
    pub fn answer_access_review(&self, kind: &str, identity: &Identity, review: &mut Object) {
        let text = |path: &[&str]| review.str(path).unwrap_or_default();
        let somebody = if kind == "SelfSubjectAccessReview" {
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
            Identity::exactly(text(&["spec", "user"]), text(&["spec", "uid"]), groups, extra)
        };
        let resource = |field: &str| text(&["spec", "resourceAttributes", field]);
        let path = |field: &str| text(&["spec", "nonResourceAttributes", field]);
        let mut problems = Vec::new();
        let asked = if let Some(wanted) = review.get(&["spec", "resourceAttributes"]) {
            problems.extend(ignored(wanted, "fieldSelector", field_selector));
            problems.extend(ignored(wanted, "labelSelector", label_selector));
            Attributes::resource(
                &somebody,
                resource("verb"),
                resource("group"),
                resource("resource"),
            )
            .in_namespace(resource("namespace"))
            .named(resource("name"))
            .below(resource("subresource"))
        } else {
            Attributes::path(&somebody, path("verb"), path("path"))
        };
        let decision = self.decide(&asked);
        let mut status = json!({"allowed": decision.is_allowed()});
        if !decision.reason().is_empty() {
            status["reason"] = decision.reason().into();
        }
        if !problems.is_empty() {
            status["evaluationError"] = problems.join("; ").into();
        }
        review.set(&["status"], status);
    }

    /// Answers a `SelfSubjectRulesReview`: the rules that hold for somebody in a namespace.
    pub fn answer_rules_review(
        &self,
        identity: &Identity,
        review: &mut Object,
    ) -> Result<(), Status> {
        let namespace = review.str(&["spec", "namespace"]).unwrap_or_default();
        if namespace.is_empty() {
            return Err(Status::bad_request("no namespace on request"));
        }
        let (rules, missing) = self.current().rules_for(identity, namespace, None);
        let rules = || rules.iter().flat_map(|rules: &Arc<[PolicyRule]>| rules.iter());
        let resources: Vec<Value> = rules()
            .filter(|rule| !rule.resources.is_empty())
            .map(|rule| shown(&PolicyRule { non_resource_urls: Vec::new(), ..rule.clone() }))
            .collect();
        let paths: Vec<Value> = rules()
            .filter(|rule| !rule.non_resource_urls.is_empty())
            .map(|rule| {
                shown(&PolicyRule {
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
        // The answer says nothing of the question.
        review.set(&["metadata"], json!({}));
        review.set(&["spec"], json!({}));
        review.set(&["status"], status);
        Ok(())
    }
}

fn shown(rule: &PolicyRule) -> Value {
    // A struct of lists of texts has a JSON form.
    serde_json::to_value(rule).unwrap_or_default()
}

/// What part of a selector could be used. No rule looks at selectors, so nothing depends on it but
/// what the answer says of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Used {
    All,
    Some,
    None,
}

fn ignored(attributes: &Value, field: &str, read: fn(&Value) -> Used) -> Option<String> {
    let how = match read(attributes.get(field).filter(|value| !value.is_null())?) {
        Used::All => return None,
        Used::Some => "partially ignored",
        Used::None => "ignored",
    };
    Some(format!("spec.resourceAttributes.{field} {how} due to parse error"))
}

fn raw(selector: &Value) -> &str {
    selector.get("rawSelector").and_then(Value::as_str).unwrap_or_default()
}

/// Whether each requirement can be used.
fn requirements(selector: &Value, usable: fn(&str, &str, usize) -> bool) -> Used {
    let list = selector.get("requirements").and_then(Value::as_array);
    let (mut good, mut bad) = (false, false);
    for one in list.into_iter().flatten() {
        let text = |field: &str| one.get(field).and_then(Value::as_str).unwrap_or_default();
        let values = one.get("values").and_then(Value::as_array).map_or(0, Vec::len);
        if usable(text("key"), text("operator"), values) {
            good = true;
        } else {
            bad = true;
        }
    }
    match (good, bad) {
        (_, false) => Used::All,
        (true, true) => Used::Some,
        (false, true) => Used::None,
    }
}

fn parsed(is_ok: bool) -> Used {
    if is_ok { Used::All } else { Used::None }
}

fn field_selector(selector: &Value) -> Used {
    match raw(selector) {
        "" => requirements(selector, |_, operator, values| {
            matches!(operator, "In" | "NotIn") && values == 1
        }),
        raw => parsed(FieldSelector::parse(raw).is_ok()),
    }
}

fn label_selector(selector: &Value) -> Used {
    match raw(selector) {
        "" => requirements(selector, |key, operator, _| {
            matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist")
                && names::qualified_name(key).is_empty()
        }),
        raw => parsed(LabelSelector::parse(raw).is_ok()),
    }
}
