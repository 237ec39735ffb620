//! Roles and bindings.

use super::super::fields::{items, part, text};
use super::super::groups::RBAC;
use super::{Errors, field, object_value, problems, required};
use mainstay_object::{FieldError, FieldPath, Object, names};
use serde_json::Value;

pub(in super::super) fn role(object: &Object, errors: &mut Errors) {
    rules(object, true, errors);
}

pub(in super::super) fn cluster_role(object: &Object, errors: &mut Errors) {
    rules(object, false, errors);
}

fn rules(object: &Object, namespaced: bool, errors: &mut Errors) {
    for (at, rule) in items(&object_value(object), "rules").iter().enumerate() {
        self::rule(rule, namespaced, &FieldPath::new("rules").index(at), errors);
    }
}

fn rule(rule: &Value, namespaced: bool, path: &FieldPath, errors: &mut Errors) {
    let any = |key: &str| !items(rule, key).is_empty();
    if !any("verbs") {
        let words = "verbs must contain at least one value";
        errors.push(FieldError::required(&path.child("verbs"), words));
    }
    if any("nonResourceURLs") {
        let words = if namespaced {
            "namespaced rules cannot apply to non-resource URLs"
        } else if any("apiGroups") || any("resources") || any("resourceNames") {
            "rules cannot apply to both regular resources and non-resource URLs"
        } else {
            return;
        };
        let urls = part(rule, "nonResourceURLs").clone();
        errors.push(FieldError::invalid(&path.child("nonResourceURLs"), urls, words));
        return;
    }
    if !any("apiGroups") {
        let words = "resource rules must supply at least one api group";
        errors.push(FieldError::required(&path.child("apiGroups"), words));
    }
    if !any("resources") {
        let words = "resource rules must supply at least one resource";
        errors.push(FieldError::required(&path.child("resources"), words));
    }
}

pub(in super::super) fn binding(object: &Object, errors: &mut Errors) {
    role_reference(object, &["Role", "ClusterRole"], errors);
    subjects(object, true, errors);
}

pub(in super::super) fn cluster_binding(object: &Object, errors: &mut Errors) {
    role_reference(object, &["ClusterRole"], errors);
    subjects(object, false, errors);
}

fn role_reference(object: &Object, kinds: &[&str], errors: &mut Errors) {
    let (reference, path) = (field(object, "roleRef"), FieldPath::new("roleRef"));
    let group = text(reference, "apiGroup");
    if group != RBAC {
        errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[RBAC]));
    }
    let kind = text(reference, "kind");
    if !kinds.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("kind"), kind, kinds));
    }
    let name = text(reference, "name");
    if required(reference, "name", &path, errors) {
        problems(name, names::path_segment(name), &path.child("name"), errors);
    }
}

fn subjects(object: &Object, namespaced: bool, errors: &mut Errors) {
    for (at, subject) in items(&object_value(object), "subjects").iter().enumerate() {
        let path = FieldPath::new("subjects").index(at);
        let name = text(subject, "name");
        required(subject, "name", &path, errors);
        let group = text(subject, "apiGroup");
        match text(subject, "kind") {
            "ServiceAccount" => {
                if !name.is_empty() {
                    problems(name, names::dns1123_subdomain(name), &path.child("name"), errors);
                }
                if !group.is_empty() {
                    errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[""]));
                }
                // In a namespace, no namespace means the binding's own.
                if !namespaced && text(subject, "namespace").is_empty() {
                    errors.push(FieldError::required(&path.child("namespace"), ""));
                }
            }
            "User" | "Group" => {
                if group != RBAC {
                    errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[RBAC]));
                }
            }
            other => {
                let kinds = ["ServiceAccount", "User", "Group"];
                errors.push(FieldError::not_supported(&path.child("kind"), other, &kinds));
            }
        }
    }
}

pub(in super::super) fn binding_update(object: &Object, old: &Object, errors: &mut Errors) {
    if field(object, "roleRef") != field(old, "roleRef") {
        let reference = field(object, "roleRef").clone();
        let path = FieldPath::new("roleRef");
        errors.push(FieldError::invalid(&path, reference, "cannot change roleRef"));
    }
}
