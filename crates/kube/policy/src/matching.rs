//! Matching of requests by the rules and selectors of a policy, a binding or a webhook.
//!
//! Rules: apiserver's `pkg/admission/plugin/policy/matching` and
//! `pkg/admission/plugin/webhook/predicates`.

use mainstay_object::selector::{LabelSelector, SelectorError};
use serde::Deserialize;
use serde_json::Value;

/// A resource in one API version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupVersionResource<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Plural name of the resource.
    pub plural: &'a str,
}

/// The attributes of a request that rules read.
#[derive(Clone, Copy, Debug)]
pub struct RequestAttributes<'a> {
    /// The resource in the version of the request.
    pub resource: GroupVersionResource<'a>,
    /// The subresource; empty for none.
    pub subresource: &'a str,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'a str,
    /// The namespace; empty for none. For a Namespace object its own name.
    pub namespace: &'a str,
    /// The name; empty if the server generates it.
    pub name: &'a str,
}

/// A rule: operations on resources (`RuleWithOperations`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ResourceRule {
    operations: Vec<String>,
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    resources: Vec<String>,
    scope: Option<String>,
    resource_names: Vec<String>,
}

/// Whether a list contains `*` or the text.
fn matches_list(list: &[String], text: &str) -> bool {
    list.iter().any(|listed| listed == "*" || listed == text)
}

impl ResourceRule {
    /// Whether the rule matches a request, with this resource in place of the request's own.
    fn applies_to(
        &self,
        request: &RequestAttributes<'_>,
        resource: GroupVersionResource<'_>,
    ) -> bool {
        let namespaces = GroupVersionResource { group: "", version: "v1", plural: "namespaces" };
        let is_cluster_scoped = request.namespace.is_empty() || resource == namespaces;
        let scope = match self.scope.as_deref() {
            None | Some("*") => true,
            Some("Namespaced") => !is_cluster_scoped,
            Some("Cluster") => is_cluster_scoped,
            Some(_) => false,
        };
        scope
            && matches_list(&self.operations, request.operation)
            && matches_list(&self.api_groups, resource.group)
            && matches_list(&self.api_versions, resource.version)
            && self.resources.iter().any(|name| {
                let (plural, sub) = name.split_once('/').unwrap_or((name, ""));
                (plural == "*" || plural == resource.plural)
                    && (sub == "*" || sub == request.subresource)
            })
    }

    fn has_name(&self, name: &str) -> bool {
        self.resource_names.is_empty() || self.resource_names.iter().any(|listed| listed == name)
    }
}

/// The resource by which rules match a request: the request's own (none), or the index of an
/// equivalent resource in another group or version.
pub type EquivalentIndex = Option<usize>;

/// Whether rules match a request, and by which resource. `equivalents` are the same resource in other
/// groups or versions; they count unless `exact` (`matchPolicy: Exact`).
pub(crate) fn match_rules(
    rules: &[ResourceRule],
    exact: bool,
    request: &RequestAttributes<'_>,
    equivalents: &[GroupVersionResource<'_>],
) -> Option<EquivalentIndex> {
    let matches = |resource| {
        rules.iter().any(|rule| rule.applies_to(request, resource) && rule.has_name(request.name))
    };
    if matches(request.resource) {
        return Some(None);
    }
    if exact {
        return None;
    }
    // The first matching rule decides in which version the object is passed on.
    rules.iter().filter(|rule| rule.has_name(request.name)).find_map(|rule| {
        let index = equivalents.iter().position(|resource| rule.applies_to(request, *resource))?;
        Some(Some(index))
    })
}

/// The rules and selectors of a policy, a binding or a webhook.
#[derive(Debug)]
pub struct MatchCriteria {
    namespace_selector: Result<LabelSelector, SelectorError>,
    object_selector: Result<LabelSelector, SelectorError>,
    rules: Vec<ResourceRule>,
    exclude_rules: Vec<ResourceRule>,
    exact: bool,
    /// Whether an empty list of rules matches every request.
    empty_matches_all: bool,
}

/// Whether a request matches cannot be decided.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// A label selector is invalid.
    #[error("Internal error occurred: {0}")]
    Selector(SelectorError),
    /// The namespace of the request does not exist.
    #[error("namespaces {} not found", mainstay_gocompat::quote(name))]
    UnknownNamespace {
        /// The name of the namespace.
        name: String,
    },
}

/// Matches label selectors with the objects of a request.
pub trait LabelMatcher {
    /// Whether a selector matches the namespace of the request.
    ///
    /// # Errors
    /// The namespace does not exist.
    fn matches_namespace(&self, selector: &LabelSelector) -> Result<bool, MatchError>;
    /// Whether a selector matches the new or the old object.
    fn matches_object(&self, selector: &LabelSelector) -> bool;
}

fn selector(constraints: &Value, field: &str) -> Result<LabelSelector, SelectorError> {
    LabelSelector::from_value(constraints.get(field).unwrap_or(&Value::Null))
}

fn rules(constraints: &Value, field: &str) -> Vec<ResourceRule> {
    let list = constraints.get(field).and_then(Value::as_array);
    // Validation refuses a malformed rule; here it matches nothing.
    list.into_iter()
        .flatten()
        .map(|rule| ResourceRule::deserialize(rule).unwrap_or_default())
        .collect()
}

impl MatchCriteria {
    /// Reads the `matchConstraints` of a policy or the `matchResources` of a binding.
    pub fn of_policy(value: &Value) -> Self {
        Self {
            rules: rules(value, "resourceRules"),
            exclude_rules: rules(value, "excludeResourceRules"),
            empty_matches_all: true,
            ..Self::of_webhook(value)
        }
    }

    /// Reads the rules of a webhook. Unlike a policy, a webhook without rules matches nothing.
    pub fn of_webhook(value: &Value) -> Self {
        Self {
            namespace_selector: selector(value, "namespaceSelector"),
            object_selector: selector(value, "objectSelector"),
            rules: rules(value, "rules"),
            exclude_rules: Vec::new(),
            exact: value.get("matchPolicy").and_then(Value::as_str) != Some("Equivalent"),
            empty_matches_all: false,
        }
    }

    /// Whether a request matches, and by which resource.
    ///
    /// # Errors
    /// The rules match, but a selector cannot be evaluated.
    pub fn matches(
        &self,
        request: &RequestAttributes<'_>,
        equivalents: &[GroupVersionResource<'_>],
        labels: &dyn LabelMatcher,
    ) -> Result<Option<EquivalentIndex>, MatchError> {
        // A namespace selector does not apply to cluster-scoped objects.
        let is_cluster_scoped =
            request.namespace.is_empty() && request.resource.plural != "namespaces";
        let namespace = match &self.namespace_selector {
            _ if is_cluster_scoped => Ok(true),
            Ok(selector) if selector.is_everything() => Ok(true),
            Ok(selector) => labels.matches_namespace(selector),
            Err(error) => Err(MatchError::Selector(error.clone())),
        };
        let object = match &self.object_selector {
            Ok(selector) if selector.is_everything() => Ok(true),
            Ok(selector) => Ok(labels.matches_object(selector)),
            Err(error) => Err(MatchError::Selector(error.clone())),
        };
        if namespace == Ok(false)
            || object == Ok(false)
            || (match_rules(&self.exclude_rules, self.exact, request, equivalents).is_some()
                && !mainstay_fault::is_on("policies-exclude-nothing"))
        {
            return Ok(None);
        }
        let resource = if self.empty_matches_all && self.rules.is_empty() {
            None
        } else {
            match match_rules(&self.rules, self.exact, request, equivalents) {
                Some(resource) => resource,
                None => return Ok(None),
            }
        };
        namespace.and(object).map(|_| Some(resource))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DEPLOYMENTS: GroupVersionResource<'static> =
        GroupVersionResource { group: "apps", version: "v1", plural: "deployments" };
    const CUSTOM_DEPLOYMENTS: GroupVersionResource<'static> =
        GroupVersionResource { group: "x.io", version: "v2", plural: "deployments" };

    /// The results for the namespace and for the object.
    struct FixedLabels(Result<bool, MatchError>, bool);

    impl LabelMatcher for FixedLabels {
        fn matches_namespace(&self, _: &LabelSelector) -> Result<bool, MatchError> {
            self.0.clone()
        }

        fn matches_object(&self, _: &LabelSelector) -> bool {
            self.1
        }
    }

    fn rule(change: &Value) -> Value {
        let mut rule = json!({
            "operations": ["CREATE", "UPDATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
            "resources": ["deployments"], "scope": "*",
        });
        for (key, value) in change.as_object().unwrap() {
            rule[key] = value.clone();
        }
        rule
    }

    #[test]
    fn a_rule_matches_its_operations_resources_scope_and_names() {
        let request = RequestAttributes {
            resource: DEPLOYMENTS,
            subresource: "",
            operation: "CREATE",
            namespace: "a",
            name: "one",
        };
        let scale = RequestAttributes { subresource: "scale", ..request };
        let deleted = RequestAttributes { operation: "DELETE", ..request };
        let node = RequestAttributes {
            resource: GroupVersionResource { group: "", version: "v1", plural: "nodes" },
            namespace: "",
            ..request
        };
        let namespace = RequestAttributes {
            resource: GroupVersionResource { group: "", version: "v1", plural: "namespaces" },
            ..request
        };
        let star = json!(["*"]);
        for (change, request, expected) in [
            (json!({}), request, true),
            (json!({}), scale, false),
            (json!({}), deleted, false),
            (json!({"operations": star}), deleted, true),
            (json!({"resources": ["deployments/scale"]}), scale, true),
            (json!({"resources": ["deployments/*"]}), scale, true),
            // `deployments/*` includes the resource itself.
            (json!({"resources": ["deployments/*"]}), request, true),
            (json!({"resources": ["*"]}), scale, false),
            (json!({"resources": ["*/*"]}), scale, true),
            (json!({"resources": ["*/scale"]}), scale, true),
            (json!({"apiVersions": ["v1beta1"]}), request, false),
            (json!({"apiGroups": star, "apiVersions": star}), request, true),
            (json!({"scope": "Cluster"}), request, false),
            (json!({"scope": "Namespaced"}), request, true),
            (json!({"scope": "Namespaced", "apiGroups": star, "resources": star}), node, false),
            (json!({"scope": "Cluster", "apiGroups": star, "resources": star}), node, true),
            (json!({"scope": "Cluster", "apiGroups": star, "resources": star}), namespace, true),
            (
                json!({"scope": "Namespaced", "apiGroups": [""], "resources": star}),
                namespace,
                false,
            ),
            (json!({"resourceNames": ["one", "two"]}), request, true),
            (json!({"resourceNames": ["two"]}), request, false),
        ] {
            let rules = [ResourceRule::deserialize(rule(&change)).unwrap()];
            let found = match_rules(&rules, true, &request, &[]);
            assert_eq!(found.is_some(), expected, "{change} {request:?}");
        }
    }

    #[test]
    fn rules_match_equivalent_resources_unless_the_match_policy_is_exact() {
        let request = RequestAttributes {
            resource: CUSTOM_DEPLOYMENTS,
            subresource: "",
            operation: "CREATE",
            namespace: "a",
            name: "one",
        };
        let labels = FixedLabels(Ok(true), true);
        for (policy, expected) in [("Equivalent", Some(Some(1))), ("Exact", None)] {
            let criteria = MatchCriteria::of_policy(
                &json!({"resourceRules": [rule(&json!({}))], "matchPolicy": policy}),
            );
            let equivalents =
                [GroupVersionResource { version: "v0", ..CUSTOM_DEPLOYMENTS }, DEPLOYMENTS];
            assert_eq!(criteria.matches(&request, &equivalents, &labels), Ok(expected), "{policy}");
            let criteria = MatchCriteria::of_policy(&json!({
                "resourceRules": [rule(&json!({"apiGroups": ["*"], "apiVersions": ["*"]}))],
                "excludeResourceRules": [rule(&json!({}))], "matchPolicy": policy,
            }));
            let expected = if policy == "Exact" { Some(None) } else { None };
            assert_eq!(criteria.matches(&request, &equivalents, &labels), Ok(expected), "{policy}");
        }
    }

    #[test]
    fn selectors_exempt_and_an_unknown_namespace_fails_only_requests_that_rules_match() {
        let request = RequestAttributes {
            resource: DEPLOYMENTS,
            subresource: "",
            operation: "CREATE",
            namespace: "a",
            name: "one",
        };
        let some = json!({"matchLabels": {"a": "b"}});
        let unknown = || MatchError::UnknownNamespace { name: "a".to_owned() };
        let lost = || Err(unknown());
        for (namespaces, objects, labels, expected) in [
            (&json!({}), &json!({}), FixedLabels(lost(), false), Ok(Some(None))),
            (&some, &json!({}), FixedLabels(Ok(false), true), Ok(None)),
            (&some, &some, FixedLabels(Ok(true), false), Ok(None)),
            (&some, &some, FixedLabels(Ok(true), true), Ok(Some(None))),
            (&some, &json!({}), FixedLabels(lost(), true), Err(unknown())),
            (&some, &some, FixedLabels(lost(), false), Ok(None)),
        ] {
            let criteria = |rules: Value| {
                MatchCriteria::of_policy(&json!({
                    "namespaceSelector": namespaces, "objectSelector": objects,
                    "resourceRules": rules, "matchPolicy": "Equivalent",
                }))
            };
            let found = criteria(json!([rule(&json!({}))])).matches(&request, &[], &labels);
            assert_eq!(found, expected);
            let other = rule(&json!({"resources": ["daemonsets"]}));
            assert_eq!(criteria(json!([other])).matches(&request, &[], &labels), Ok(None));
        }
        // A namespace selector does not apply to cluster-scoped objects.
        let node = RequestAttributes {
            resource: GroupVersionResource { group: "", version: "v1", plural: "nodes" },
            namespace: "",
            ..request
        };
        let criteria = MatchCriteria::of_policy(&json!({"namespaceSelector": some}));
        assert_eq!(criteria.matches(&node, &[], &FixedLabels(lost(), true)), Ok(Some(None)));
    }
}
