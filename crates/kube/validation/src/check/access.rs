//! Validation of RBAC roles and bindings.

use super::super::rules::{
    Errors, FieldRule, Node, Rule, go_structs, one_of,
    selectors::{label_selector, matcher},
    walk, walk_object,
};
use super::{object_field, path_name};
use mainstay_object::{Object, names};
use serde_json::Value;

const GROUP: &str = "rbac.authorization.k8s.io";

pub(in super::super) const ROLE: &[FieldRule] = &[("rules", Rule::Custom(namespaced_rules))];

pub(in super::super) const CLUSTER_ROLE: &[FieldRule] =
    &[("rules", Rule::Custom(cluster_rules)), ("aggregationRule", Rule::Custom(aggregation))];

fn namespaced_rules(list: &Node<'_, '_>, errors: &mut Errors) {
    list.items().for_each(|rule| policy_rule(&rule, true, errors));
}

fn cluster_rules(list: &Node<'_, '_>, errors: &mut Errors) {
    list.items().for_each(|rule| policy_rule(&rule, false, errors));
}

fn policy_rule(rule: &Node<'_, '_>, namespaced: bool, errors: &mut Errors) {
    if rule.get("verbs").len() == 0 {
        errors.required(&rule.get("verbs"), "verbs must contain at least one value");
    }
    let urls = rule.get("nonResourceURLs");
    let (groups, resources) = (rule.get("apiGroups"), rule.get("resources"));
    if urls.len() > 0 {
        if namespaced {
            errors.invalid_value(&urls, "namespaced rules cannot apply to non-resource URLs");
        }
        if groups.len() + resources.len() + rule.get("resourceNames").len() > 0 {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.invalid_value(&urls, detail);
        }
        return;
    }
    if groups.len() == 0 {
        errors.required(&groups, "resource rules must supply at least one api group");
    }
    if resources.len() == 0 {
        errors.required(&resources, "resource rules must supply at least one resource");
    }
}

fn aggregation(node: &Node<'_, '_>, errors: &mut Errors) {
    if !node.is_set() {
        return;
    }
    let selectors = node.get("clusterRoleSelectors");
    if selectors.len() == 0 {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.required(&selectors, detail);
    }
    for selector in selectors.items() {
        label_selector(&selector, errors);
        if matcher(selector.value()).is_none() {
            // Kubernetes prints a selector that it cannot convert as null.
            errors.invalid(&selector, Value::Null, "invalid label selector.");
        }
    }
}

pub(in super::super) const BINDING: &[FieldRule] =
    &[("roleRef", Rule::Custom(any_role)), ("subjects", Rule::Custom(namespaced_subjects))];

pub(in super::super) const CLUSTER_BINDING: &[FieldRule] =
    &[("roleRef", Rule::Custom(cluster_role_only)), ("subjects", Rule::Custom(cluster_subjects))];

fn any_role(node: &Node<'_, '_>, errors: &mut Errors) {
    role_reference(node, &["Role", "ClusterRole"], errors);
}

fn cluster_role_only(node: &Node<'_, '_>, errors: &mut Errors) {
    role_reference(node, &["ClusterRole"], errors);
}

fn role_reference(node: &Node<'_, '_>, kinds: &[&str], errors: &mut Errors) {
    one_of(&node.get("apiGroup"), &[GROUP], errors);
    one_of(&node.get("kind"), kinds, errors);
    walk(node, &[("name", Rule::RequiredFormat(path_name))], errors);
}

fn namespaced_subjects(list: &Node<'_, '_>, errors: &mut Errors) {
    list.items().for_each(|node| subject(&node, true, errors));
}

fn cluster_subjects(list: &Node<'_, '_>, errors: &mut Errors) {
    list.items().for_each(|node| subject(&node, false, errors));
}

fn subject(node: &Node<'_, '_>, namespaced: bool, errors: &mut Errors) {
    let (name, group) = (node.get("name"), node.get("apiGroup"));
    if name.text().is_empty() {
        errors.required(&name, "");
    }
    match node.text_of("kind") {
        "ServiceAccount" => {
            if !name.text().is_empty() {
                errors.add_problems(&name, name.text(), names::dns1123_subdomain(name.text()));
            }
            if !group.text().is_empty() {
                errors.unsupported(&group, group.text(), &[""]);
            }
            if !namespaced && node.text_of("namespace").is_empty() {
                errors.required(&node.get("namespace"), "");
            }
        }
        "User" | "Group" => one_of(&group, &[GROUP], errors),
        other => {
            errors.unsupported(&node.get("kind"), other, &["ServiceAccount", "User", "Group"]);
        }
    }
}

/// Validates that `roleRef` is unchanged.
fn immutable_role_ref(object: &Object, old: &Object, errors: &mut Errors) {
    let (new, before) = (object_field(object, "roleRef"), object_field(old, "roleRef"));
    if new != before {
        let printed = go_structs::print("RoleRef", new);
        errors.printed(&Node::top_level(new, "roleRef"), Some(printed), "cannot change roleRef");
    }
}

pub(in super::super) fn binding_update(object: &Object, old: &Object, errors: &mut Errors) {
    walk_object(object, BINDING, errors);
    immutable_role_ref(object, old, errors);
}

pub(in super::super) fn cluster_binding_update(object: &Object, old: &Object, errors: &mut Errors) {
    walk_object(object, CLUSTER_BINDING, errors);
    immutable_role_ref(object, old, errors);
}
