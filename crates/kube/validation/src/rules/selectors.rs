//! Labels, annotations, label selectors and node selectors.

use super::{Errors, FieldRule, Node, Rule, walk};
use mainstay_object::names;
use mainstay_object::selector::LabelSelector;
use serde_json::Value;

/// Validates labels: the formats of keys and values.
pub(in super::super) fn labels(node: &Node<'_, '_>, errors: &mut Errors) {
    for (key, value) in node.map().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        errors.add_problems(node, key, names::qualified_name(key));
        errors.add_problems(node, value, names::label_value(value));
    }
}

/// Validates annotations: the format of keys, and the total size.
pub(in super::super) fn annotations(node: &Node<'_, '_>, errors: &mut Errors) {
    const MAX_SIZE: usize = 256 * 1024;
    let mut size = 0;
    for (key, value) in node.map().into_iter().flatten() {
        errors.add_problems(node, key, names::qualified_name(&key.to_lowercase()));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_SIZE {
        errors.too_long(node, MAX_SIZE);
    }
}

/// Validates a `metav1.LabelSelector` that is set.
pub(in super::super) fn label_selector(node: &Node<'_, '_>, errors: &mut Errors) {
    labels(&node.get("matchLabels"), errors);
    let expressions = node.get("matchExpressions");
    for expression in expressions.items() {
        let values = expression.get("values");
        match expression.text_of("operator") {
            "In" | "NotIn" if values.len() == 0 => {
                errors.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if values.len() > 0 => errors.forbidden(
                &values,
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                errors.invalid(&expression.get("operator"), other, "not a valid selector operator");
            }
        }
        let key = expression.get("key");
        errors.add_problems(&key, key.text(), names::qualified_name(key.text()));
        for value in values.items() {
            errors.add_problems(&value, value.text(), names::label_value(value.text()));
        }
    }
}

/// The matcher of a label selector; none if the selector is invalid. An absent selector matches nothing.
pub(in super::super) fn matcher(value: &Value) -> Option<Matcher> {
    if value.is_null() {
        return Some(Matcher(None));
    }
    let node = Node::root(value);
    let mut errors = Errors::default();
    label_selector(&node, &mut errors);
    if errors.len() > 0 {
        return None;
    }
    LabelSelector::from_value(value).ok().map(|selector| Matcher(Some(selector)))
}

/// A label selector for matching; see [`matcher`].
pub(in super::super) struct Matcher(Option<LabelSelector>);

impl Matcher {
    /// Whether the selector matches everything.
    pub(in super::super) fn is_everything(&self) -> bool {
        self.0.as_ref().is_some_and(LabelSelector::is_everything)
    }

    /// Whether the selector matches these labels.
    pub(in super::super) fn selects(&self, labels: &Value) -> bool {
        self.0.as_ref().is_some_and(|selector| {
            selector.matches_with(|key| labels.get(key).and_then(Value::as_str))
        })
    }
}

/// Whether a selector has neither labels nor expressions.
pub(in super::super) fn is_empty(node: &Node<'_, '_>) -> bool {
    node.get("matchLabels").len() + node.get("matchExpressions").len() == 0
}

/// Validates a `NodeSelector`: at least one term.
pub(in super::super) fn node_selector(node: &Node<'_, '_>, errors: &mut Errors) {
    let terms = node.get("nodeSelectorTerms");
    if terms.len() == 0 {
        errors.required(&terms, "must have at least one node selector term");
        return;
    }
    for term in terms.items() {
        node_term(&term, true, errors);
    }
}

/// Validates a term; `values`: whether the values must be valid label values.
pub(in super::super) fn node_term(term: &Node<'_, '_>, values: bool, errors: &mut Errors) {
    let expressions = term.get("matchExpressions");
    for expression in expressions.items() {
        node_expression(&expression, errors);
        if values {
            let values = expression.get("values");
            for value in values.items() {
                errors.add_problems(&value, value.text(), names::label_value(value.text()));
            }
        }
    }
    let fields = term.get("matchFields");
    for field in fields.items() {
        node_field(&field, errors);
    }
}

fn node_expression(expression: &Node<'_, '_>, errors: &mut Errors) {
    const KEY: &[FieldRule] = &[("key", Rule::AlwaysFormat(names::qualified_name))];
    let values = expression.get("values");
    match (expression.text_of("operator"), values.len()) {
        ("In" | "NotIn", 0) => {
            errors.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        ("In" | "NotIn", _) | ("Exists" | "DoesNotExist", 0) | ("Gt" | "Lt", 1) => {}
        ("Exists" | "DoesNotExist", _) => errors.forbidden(
            &values,
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        ("Gt" | "Lt", _) => errors
            .required(&values, "must be specified single value when `operator` is 'Lt' or 'Gt'"),
        (other, _) => {
            errors.invalid(&expression.get("operator"), other, "not a valid selector operator");
        }
    }
    walk(expression, KEY, errors);
}

fn node_field(field: &Node<'_, '_>, errors: &mut Errors) {
    let values = field.get("values");
    match field.text_of("operator") {
        "In" | "NotIn" if values.len() != 1 => errors.required(
            &values,
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        ),
        "In" | "NotIn" => {}
        other => errors.invalid(&field.get("operator"), other, "not a valid selector operator"),
    }
    if field.text_of("key") == "metadata.name" {
        for value in values.items() {
            errors.add_problems(&value, value.text(), names::dns1123_subdomain(value.text()));
        }
    } else {
        errors.invalid(&field.get("key"), field.text_of("key"), "not a valid field selector key");
    }
}
