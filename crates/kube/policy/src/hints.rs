//! What is suspicious about the expressions of a policy: they are held against what is known of the
//! kinds that the policy names. That is told in the policy's status, and changes nothing else.
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/policy/validating/typechecking.go`.

use super::declarations::{Scope, Typed};
use super::types;
use mainstay_cel::types::Type;
use mainstay_kinds::{KindRow, Kinds};
use mainstay_object::Gvk;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Against how many kinds one rule is held at most.
const MOST: usize = 10;

/// The `expressionWarnings` of a policy's `spec`.
pub fn warnings(spec: &Value, kinds: &Kinds) -> Vec<Value> {
    let params = params_type(spec, kinds);
    let mut scopes: Vec<(String, Scope)> = Vec::new();
    for row in named_kinds(spec, kinds) {
        let Some(object) = types::of_row(&row) else { continue };
        let scope = Scope::typed(Typed { object: Some(object), params: params.clone() });
        for variable in list(spec, "variables") {
            let checked = scope.env(true).compile(text(variable, "expression"));
            let output = checked.as_ref().map_or(&Type::Dyn, |checked| checked.output());
            scope.name(text(variable, "name"), output);
        }
        scopes.push((kind_text(&row.gvk()), scope));
    }
    let mut found = Vec::new();
    for (at, validation) in list(spec, "validations").enumerate() {
        for field in ["expression", "messageExpression"] {
            let text = text(validation, field);
            if text.is_empty() && field == "messageExpression" {
                continue;
            }
            let issues: Vec<String> = scopes
                .iter()
                .filter_map(|(kind, scope)| {
                    let issues = scope.env(true).compile(text).err()?;
                    Some(format!("{kind}: {issues}\n"))
                })
                .collect();
            if !issues.is_empty() {
                found.push(json!({
                    "fieldRef": format!("spec.validations[{at}].{field}"),
                    "warning": issues.join("\n"),
                }));
            }
        }
    }
    found
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn texts<'v>(rule: &'v Value, field: &str) -> Vec<&'v str> {
    list(rule, field).filter_map(Value::as_str).collect()
}

/// A kind as Go prints it.
pub fn kind_text(kind: &Gvk) -> String {
    format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind)
}

/// The kind that `paramKind` names.
pub fn param_kind(spec: &Value) -> Option<Gvk> {
    let kind = spec.get("paramKind").filter(|kind| !kind.is_null())?;
    let (group, version) =
        text(kind, "apiVersion").split_once('/').unwrap_or(("", text(kind, "apiVersion")));
    Some(Gvk::new(group, version, text(kind, "kind")))
}

fn params_type(spec: &Value, kinds: &Kinds) -> Option<Type> {
    types::of_row(kinds.by_gvk(&param_kind(spec)?)?)
}

/// The kinds that a policy names, in order; none of rules that name groups or versions by a star.
fn named_kinds(spec: &Value, kinds: &Kinds) -> Vec<std::sync::Arc<KindRow>> {
    let mut found = BTreeMap::new();
    let constraints = spec.get("matchConstraints").unwrap_or(&Value::Null);
    for rule in list(constraints, "resourceRules") {
        let [mut groups, mut versions, mut resources] =
            ["apiGroups", "apiVersions", "resources"].map(|field| texts(rule, field));
        if groups.iter().chain(&versions).any(|text| text.contains('*')) {
            continue;
        }
        resources.retain(|text| !text.contains(['*', '/']));
        for list in [&mut groups, &mut versions, &mut resources] {
            list.sort_unstable();
        }
        let mut count = 0;
        for group in groups {
            for version in &versions {
                for resource in &resources {
                    let resource = resource.to_lowercase();
                    // The core group stands for any group here, as in the original.
                    let meant = kinds.rows().filter(|row| {
                        (group.is_empty() || *row.group == *group)
                            && *row.version == **version
                            && (*row.plural == *resource || *row.singular == *resource)
                    });
                    for row in meant {
                        let key = (row.group.clone(), row.version.clone(), row.kind.clone());
                        found.insert(key, row.clone());
                        count += 1;
                        if count == MOST {
                            return found.into_values().collect();
                        }
                    }
                }
            }
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_kinds::KindRegistry;

    fn hints(spec: &Value) -> Vec<String> {
        let found =
            warnings(spec, &KindRegistry::new(|_| &mainstay_kinds::DefaultStrategy).kinds());
        found
            .iter()
            .map(|one| format!("{}: {}", text(one, "fieldRef"), text(one, "warning")))
            .collect()
    }

    fn spec(rules: &Value, expression: &str) -> Value {
        json!({
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": expression}],
        })
    }

    #[test]
    fn expressions_are_held_against_the_kinds_that_are_named() {
        let rules = json!([
            {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments", "deployments/scale"]},
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]},
            {"apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["secrets"]},
        ]);
        assert_eq!(
            hints(&spec(&rules, "object.spec.replicas > 'a'")),
            [
                "spec.validations[0].expression: /v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'spec'\n | object.spec.replicas > 'a'\n | ......^\n\napps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'\n | object.spec.replicas > 'a'\n | .....................^\n"
            ]
        );
    }

    #[test]
    fn fields_have_the_types_of_documents() {
        let rules = json!([
            {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]},
        ]);
        let no_overload = |types: &str| format!("'_==_' applied to '({types}, int)'");
        let containers = "object.spec.template.spec.containers";
        for (expression, expected) in [
            ("object.metadata.namespace == ''".to_owned(), String::new()),
            ("object.metadata.__namespace__ == 1".to_owned(), no_overload("string")),
            ("object.metadata.creationTimestamp == 1".to_owned(), no_overload("timestamp")),
            ("object.spec.strategy.rollingUpdate.maxSurge + 'a' == 'b'".to_owned(), String::new()),
            (
                format!("{containers}.all(c, c.resources.limits['cpu'] == 1)"),
                "undefined field 'limits'".to_owned(),
            ),
            (
                format!("{containers} == 1"),
                no_overload("list(Deployment0.spec.template.spec.containers.@idx)"),
            ),
            ("object == 1".to_owned(), no_overload("Deployment0")),
            (
                "authorizer.requestResource.check('get').allowed()".to_owned(),
                "unexpected failed resolution of 'kubernetes.authorization.Authorizer'".to_owned(),
            ),
            ("params == 1".to_owned(), "undeclared reference to 'params'".to_owned()),
        ] {
            let found = hints(&spec(&rules, &expression)).concat();
            assert!(found.contains(&expected), "{found}");
            assert_eq!(found.is_empty(), expected.is_empty(), "{found}");
        }
    }

    #[test]
    fn variables_and_parameters_have_types_too() {
        let spec = json!({
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]},
            ]},
            "variables": [
                {"name": "n", "expression": "object.spec.replicas"},
                {"name": "wrong", "expression": "object.missing"},
            ],
            "validations": [
                {"expression": "variables.n == params.data['a']"},
                {"expression": "variables.wrong == 1", "messageExpression": "variables.n"},
            ],
        });
        let found = hints(&spec);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("applied to '(int, string)'"), "{found:?}");
    }
}
