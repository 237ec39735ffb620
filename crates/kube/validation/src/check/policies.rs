//! Validation of admission policies and their bindings.

use super::super::rules::{
    Errors, FieldRule, Node, Rule, one_of, selectors::label_selector, walk, walk_object,
};
use super::admission::{
    FAILURE_POLICY, MATCH_POLICY, MUTATING_OPERATIONS, REINVOCATION_POLICIES, match_conditions,
    operation_rule, report_compile_error, require_expression,
};
use super::{object_field, path_name};
use mainstay_cel::syntax::is_reserved;
use mainstay_object::{Object, names};
use mainstay_policy::{ExpressionScope, ReturnType};
use serde_json::Value;
use std::collections::HashSet;

pub(in super::super) fn validating_policy(object: &Object, errors: &mut Errors) {
    validate_policy(object, true, errors);
}

pub(in super::super) fn validating_policy_update(
    object: &Object,
    old: &Object,
    errors: &mut Errors,
) {
    validate_policy(object, conditions_differ(object, old), errors);
}

fn conditions_differ(object: &Object, old: &Object) -> bool {
    ["paramKind", "matchConditions"]
        .iter()
        .any(|key| object_field(object, "spec").get(key) != object_field(old, "spec").get(key))
}

fn common_fields(spec: &Node<'_, '_>, errors: &mut Errors) {
    let failure = spec.get("failurePolicy");
    if failure.is_set() {
        walk(&failure, &[("", FAILURE_POLICY)], errors);
    } else {
        errors.required(&failure, "");
    }
    let kind = spec.get("paramKind");
    if kind.is_set() {
        param_kind(&kind, errors);
    }
    let constraints = spec.get("matchConstraints");
    if constraints.is_set() {
        match_resources(&constraints, errors);
        let rules = constraints.get("resourceRules");
        if rules.len() == 0 {
            errors.required(&rules, "");
        }
    } else {
        errors.required(&constraints, "");
    }
}

const MAX_AUDIT_ANNOTATIONS: usize = 20;

/// Audit annotations as Go prints a list of structs.
fn printed_annotations(list: &Node<'_, '_>) -> String {
    let annotations = list.items().map(|annotation| {
        let text = |field| Value::from(annotation.text_of(field)).to_string();
        format!("{{\"Key\":{},\"ValueExpression\":{}}}", text("key"), text("valueExpression"))
    });
    format!("[{}]", annotations.collect::<Vec<_>>().join(","))
}

/// Validates conditions and variables of a policy; returns the scope of its other expressions.
fn expression_scope(spec: &Node<'_, '_>, conditions: bool, errors: &mut Errors) -> ExpressionScope {
    let params = spec.has("paramKind");
    if conditions {
        match_conditions(&spec.get("matchConditions"), params, errors);
    }
    let variables = spec.get("variables");
    let scope = ExpressionScope::new(params, variables.len() > 0);
    variables.items().for_each(|node| variable(&node, &scope, errors));
    scope
}

fn validate_policy(object: &Object, conditions: bool, errors: &mut Errors) {
    const NOTHING: &str = "validations or auditAnnotations must contain at least one item";
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    common_fields(&spec, errors);
    let scope = expression_scope(&spec, conditions, errors);
    let (validations, annotations) = (spec.get("validations"), spec.get("auditAnnotations"));
    if validations.len() + annotations.len() == 0 {
        errors.required(&validations, NOTHING);
        errors.required(&annotations, NOTHING);
        return;
    }
    validations.items().for_each(|node| validation(&node, &scope, errors));
    if annotations.len() > MAX_AUDIT_ANNOTATIONS {
        let detail = format!("must not have more than {MAX_AUDIT_ANNOTATIONS} auditAnnotations");
        errors.printed(&annotations, Some(printed_annotations(&annotations)), detail);
    }
    let mut seen = HashSet::new();
    for annotation in annotations.items() {
        let key = annotation.get("key");
        let whole = format!("{}/{}", object.name(), key.text());
        errors.add_problems(&key, &whole, names::qualified_name(&whole));
        let value = annotation.get("valueExpression");
        let trimmed = value.text().trim();
        if !require_expression(&value, "valueExpression is not specified", errors) {
        } else if trimmed.len() > 5 * 1024 {
            errors.required(&value, "must not exceed 5120 bytes in length");
        } else {
            let error = scope.compile(trimmed, ReturnType::StringOrNull, true).err();
            report_compile_error(&value, value.text(), error, errors);
        }
        if seen.contains(&key.text()) {
            errors.duplicate(&key, key.text());
        }
        seen.insert(key.text());
    }
}

fn variable(node: &Node<'_, '_>, scope: &ExpressionScope, errors: &mut Errors) {
    let name = node.get("name");
    let text = name.text();
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if text.trim().is_empty() {
        errors.required(&name, "name is not specified");
    } else if !text.bytes().all(is_allowed)
        || text.starts_with(|c: char| c.is_ascii_digit())
        || is_reserved(text)
    {
        errors.invalid_value(&name, "must be a valid CEL identifier");
    }
    let expression = node.get("expression");
    if require_expression(&expression, "expression is not specified", errors) {
        let error = scope.compile_variable(text, expression.text()).err();
        report_compile_error(&expression, expression.text(), error, errors);
    }
}

fn validation(node: &Node<'_, '_>, scope: &ExpressionScope, errors: &mut Errors) {
    const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
    let expression = node.get("expression");
    if require_expression(&expression, "expression is not specified", errors) {
        let error = scope.compile(expression.text(), ReturnType::Bool, true).err();
        report_compile_error(&expression, expression.text(), error, errors);
    }
    for field in ["messageExpression", "message"] {
        let text = node.get(field);
        if !text.text().is_empty() && text.text().trim().is_empty() {
            errors.invalid_value(&text, "must be non-empty if specified");
        } else if field == "messageExpression" {
            if !text.text().is_empty() {
                let error = scope.compile(text.text(), ReturnType::String, false).err();
                report_compile_error(&text, text.text(), error, errors);
            }
        } else if field == "message" && text.text().trim().contains(['\n', '\r']) {
            errors.invalid_value(&text, "must not contain line breaks");
        }
    }
    walk(node, &[("reason", Rule::OneOf(REASONS))], errors);
}

fn param_kind(node: &Node<'_, '_>, errors: &mut Errors) {
    let (version, kind) = (node.get("apiVersion"), node.get("kind"));
    let text = version.text();
    if text.is_empty() {
        errors.required(&version, "");
    } else if text.matches('/').count() > 1 {
        errors.invalid_value(&version, format!("unexpected GroupVersion string: {text}"));
    } else {
        let (group, name) = text.split_once('/').unwrap_or(("", text));
        if !group.is_empty() {
            let problems = names::dns1123_subdomain(group);
            if !problems.is_empty() {
                errors.invalid(&version, group, problems.join(","));
            }
        }
        let problems = names::dns1035_label(name);
        if name.is_empty() {
            errors.invalid_value(&version, "version must be specified");
        } else if !problems.is_empty() {
            errors.invalid(&version, name, problems.join(","));
        }
    }
    let problems = names::dns1035_label(&kind.text().to_lowercase());
    if kind.text().is_empty() {
        errors.required(&kind, "");
    } else if !problems.is_empty() {
        let detail =
            format!("may have mixed case, but should otherwise match: {}", problems.join(","));
        errors.invalid_value(&kind, detail);
    }
}

fn match_resources(node: &Node<'_, '_>, errors: &mut Errors) {
    let policy = node.get("matchPolicy");
    if policy.is_set() {
        walk(&policy, &[("", MATCH_POLICY)], errors);
    } else {
        errors.required(&policy, "");
    }
    for field in ["namespaceSelector", "objectSelector"] {
        let selector = node.get(field);
        if selector.is_set() {
            label_selector(&selector, errors);
        } else {
            errors.required(&selector, "");
        }
    }
    for field in ["resourceRules", "excludeResourceRules"] {
        let rules = node.get(field);
        for rule in rules.items() {
            let list = rule.get("resourceNames");
            let mut seen = HashSet::new();
            for name in list.items() {
                errors.add_problems(&name, name.text(), path_name(name.text()));
                if !seen.insert(name.value()) {
                    errors.duplicate(&name, name.text());
                }
            }
            operation_rule(&rule, errors);
        }
    }
}

/// The rules of a `ValidatingAdmissionPolicyBinding`.
pub(in super::super) const POLICY_BINDING: &[FieldRule] = &[("spec", Rule::Custom(policy_binding))];

fn binding(spec: &Node<'_, '_>, errors: &mut Errors) {
    walk(spec, &[("policyName", Rule::RequiredFormat(names::dns1123_subdomain))], errors);
    let params = spec.get("paramRef");
    if params.is_set() {
        param_reference(&params, errors);
    }
    let resources = spec.get("matchResources");
    if resources.is_set() {
        match_resources(&resources, errors);
    }
}

fn policy_binding(spec: &Node<'_, '_>, errors: &mut Errors) {
    const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
    binding(spec, errors);
    let actions = spec.get("validationActions");
    let mut seen = HashSet::new();
    for action in actions.items() {
        one_of(&action, &ACTIONS, errors);
        if seen.contains(&action.text()) {
            errors.duplicate(&action, action.text());
        }
        seen.insert(action.text());
    }
    if seen.contains(&"Deny") && seen.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        errors.invalid_value(&actions, detail);
    }
    if seen.is_empty() {
        errors.required(&actions, "at least one validation action is required");
    }
}

fn param_reference(node: &Node<'_, '_>, errors: &mut Errors) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let (name, selector) = (node.get("name"), node.get("selector"));
    let has_name = !name.text().is_empty();
    if has_name {
        errors.add_problems(&name, name.text(), path_name(name.text()));
        if selector.is_set() {
            errors.forbidden(&name, EXCLUSIVE);
        }
    }
    if selector.is_set() {
        label_selector(&selector, errors);
        if has_name {
            errors.forbidden(&selector, EXCLUSIVE);
        }
    }
    if !has_name && !selector.is_set() {
        errors.required(node, "one of name or selector must be specified");
    }
    walk(node, &[("parameterNotFoundAction", Rule::RequiredOneOf(&["Deny", "Allow"]))], errors);
}

pub(in super::super) fn mutating_policy(object: &Object, errors: &mut Errors) {
    validate_mutating_policy(object, true, errors);
}

pub(in super::super) fn mutating_policy_update(object: &Object, old: &Object, errors: &mut Errors) {
    validate_mutating_policy(object, conditions_differ(object, old), errors);
}

fn mutating_operations(constraints: &Node<'_, '_>, errors: &mut Errors) {
    let rules = constraints.get("resourceRules");
    for rule in rules.list() {
        for operation in rule.get("operations").and_then(Value::as_array).into_iter().flatten() {
            let operation = operation.as_str().unwrap_or_default();
            if !MUTATING_OPERATIONS.contains(&operation) {
                errors.unsupported(&rules.get("operations"), operation, &MUTATING_OPERATIONS);
            }
        }
    }
}

fn validate_mutating_policy(object: &Object, conditions: bool, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    common_fields(&spec, errors);
    mutating_operations(&spec.get("matchConstraints"), errors);
    expression_scope(&spec, conditions, errors);
    let mutations = spec.get("mutations");
    if mutations.len() == 0 {
        errors.required(&mutations, "mutations must contain at least one item");
    }
    mutations.items().for_each(|node| mutation(&node, errors));
    walk(&spec, &[("reinvocationPolicy", Rule::RequiredOneOf(REINVOCATION_POLICIES))], errors);
}

fn mutation(node: &Node<'_, '_>, errors: &mut Errors) {
    let kind = node.get("patchType");
    let (own, other) = match kind.text() {
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        "" => return errors.required(&kind, ""),
        text => return errors.unsupported(&kind, text, &["ApplyConfiguration", "JSONPatch"]),
    };
    let patch = node.get(own);
    if patch.is_set() {
        let _ = require_expression(&patch.get("expression"), "", errors);
    } else {
        errors.required(&patch, format!("must be specified when patchType is {}", kind.text()));
    }
    if node.has(other) {
        let detail = format!("must not be specified when patchType is {}", kind.text());
        errors.invalid(&node.get(other), format!("{{{other}}}"), detail);
    }
}

pub(in super::super) fn mutating_binding(object: &Object, errors: &mut Errors) {
    let spec = Node::top_level(object_field(object, "spec"), "spec");
    binding(&spec, errors);
    mutating_operations(&spec.get("matchResources"), errors);
}

pub(in super::super) fn mutating_binding_update(object: &Object, _: &Object, errors: &mut Errors) {
    mutating_binding(object, errors);
}

pub(in super::super) fn policy_binding_update(object: &Object, _: &Object, errors: &mut Errors) {
    walk_object(object, POLICY_BINDING, errors);
}
