//! Type checking of a policy: its expressions against the schemas of the kinds that its rules name.
//!
//! The warnings appear in the policy's `status.typeChecking` and have no other effect.
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/policy/validating/typechecking.go`.

use super::declarations::{ExpressionScope, ObjectTypes};
use super::types;
use mainstay_cel::types::Type;
use mainstay_kinds::{KindRow, Kinds};
use mainstay_object::Gvk;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The number of kinds that one rule is checked against at most.
const MAX_KINDS: usize = 10;

/// The `expressionWarnings` of a policy's `spec`.
pub fn expression_warnings(spec: &Value, kinds: &Kinds) -> Vec<Value> {
    let params = params_type(spec, kinds);
    let mut scopes: Vec<(String, ExpressionScope)> = Vec::new();
    for row in named_kinds(spec, kinds) {
        let Some(object) = types::object_type(&row) else { continue };
        let scope = ExpressionScope::for_types(ObjectTypes {
            object: Some(object),
            params: params.clone(),
        });
        for variable in list(spec, "variables") {
            let checked = scope.env(true).compile(text(variable, "expression"));
            let output = checked.as_ref().map_or(&Type::Dyn, |checked| checked.output());
            scope.declare(text(variable, "name"), output);
        }
        scopes.push((go_kind(&row.gvk()), scope));
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

/// A `GroupVersionKind` as Go prints it.
pub fn go_kind(kind: &Gvk) -> String {
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
    types::object_type(kinds.by_gvk(&param_kind(spec)?)?)
}

/// The kinds in the rules of a policy, sorted. A rule with `*` as group or version counts for none.
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
                    // The core group matches every group here, as in Kubernetes.
                    let matching = kinds.rows().filter(|row| {
                        (group.is_empty() || *row.group == *group)
                            && *row.version == **version
                            && (*row.plural == *resource || *row.singular == *resource)
                    });
                    for row in matching {
                        let key = (row.group.clone(), row.version.clone(), row.kind.clone());
                        found.insert(key, row.clone());
                        count += 1;
                        if count == MAX_KINDS {
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

    fn warnings(spec: &Value) -> Vec<String> {
        let found = expression_warnings(
            spec,
            &KindRegistry::new(|_| &mainstay_kinds::DefaultStrategy).kinds(),
        );
        found
            .iter()
            .map(|warning| format!("{}: {}", text(warning, "fieldRef"), text(warning, "warning")))
            .collect()
    }

    fn spec(rules: &Value, expression: &str) -> Value {
        json!({
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": expression}],
        })
    }

    #[test]
    fn expressions_are_checked_against_each_kind_that_the_rules_name() {
        let rules = json!([
            {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments", "deployments/scale"]},
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]},
            {"apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["secrets"]},
        ]);
        assert_eq!(
            warnings(&spec(&rules, "object.spec.replicas > 'a'")),
            [
                "spec.validations[0].expression: /v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'spec'\n | object.spec.replicas > 'a'\n | ......^\n\napps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'\n | object.spec.replicas > 'a'\n | .....................^\n"
            ]
        );
    }

    #[test]
    fn fields_have_the_types_of_the_schema() {
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
            let found = warnings(&spec(&rules, &expression)).concat();
            assert!(found.contains(&expected), "{expression}: {found:?} lacks {expected:?}");
            assert_eq!(found.is_empty(), expected.is_empty(), "{expression}: {found}");
        }
    }

    #[test]
    fn variables_and_params_have_types() {
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
        let found = warnings(&spec);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("applied to '(int, string)'"), "{found:?}");
    }
}
