//! Which requests a policy, a binding or a webhook is about.
//!
//! Rules: apiserver's `pkg/admission/plugin/policy/matching` and
//! `pkg/admission/plugin/webhook/predicates`.

use mainstay_object::selector::{LabelSelector, SelectorError};
use serde::Deserialize;
use serde_json::Value;

/// A resource in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resource<'a> {
    /// API group; empty for the core group.
    pub group: &'a str,
    /// Version.
    pub version: &'a str,
    /// Plural.
    pub plural: &'a str,
}

/// What is asked for, as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct RequestAttributes<'a> {
    /// The resource, as the request names it.
    pub resource: Resource<'a>,
    /// The subresource; empty for none.
    pub subresource: &'a str,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'a str,
    /// The namespace; empty for none. That of a namespace is itself.
    pub namespace: &'a str,
    /// The name; empty if it is to be made up.
    pub name: &'a str,
}

/// A rule: operations on resources.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    operations: Vec<String>,
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    resources: Vec<String>,
    scope: Option<String>,
    resource_names: Vec<String>,
}

/// A star for everything, or the text itself.
fn one_of(texts: &[String], wanted: &str) -> bool {
    texts.iter().any(|text| text == "*" || text == wanted)
}

impl Rule {
    /// Whether it is about a request, had that named this resource.
    fn is_about(&self, asked: &RequestAttributes<'_>, resource: Resource<'_>) -> bool {
        let namespaces = Resource { group: "", version: "v1", plural: "namespaces" };
        let clustered = asked.namespace.is_empty() || resource == namespaces;
        let scope = match self.scope.as_deref() {
            None | Some("*") => true,
            Some("Namespaced") => !clustered,
            Some("Cluster") => clustered,
            Some(_) => false,
        };
        scope
            && one_of(&self.operations, asked.operation)
            && one_of(&self.api_groups, resource.group)
            && one_of(&self.api_versions, resource.version)
            && self.resources.iter().any(|both| {
                let (plural, sub) = both.split_once('/').unwrap_or((both, ""));
                (plural == "*" || plural == resource.plural)
                    && (sub == "*" || sub == asked.subresource)
            })
    }

    fn has_name(&self, name: &str) -> bool {
        self.resource_names.is_empty() || self.resource_names.iter().any(|one| one == name)
    }
}

/// The resource of a request as rules know it: as it was named (none), or the position of one that
/// is the same in another group or version.
pub type Known = Option<usize>;

/// Whether rules are about a request, and as what. `others` are the resources that are the same in
/// another group or version; they count where rules do not have to name it exactly.
pub(crate) fn by_rules(
    rules: &[Rule],
    exact: bool,
    asked: &RequestAttributes<'_>,
    others: &[Resource<'_>],
) -> Option<Known> {
    let about = |resource| {
        rules.iter().any(|rule| rule.is_about(asked, resource) && rule.has_name(asked.name))
    };
    if about(asked.resource) {
        return Some(None);
    }
    if exact {
        return None;
    }
    // Rule by rule, as which of several the object is shown in depends on it.
    rules.iter().filter(|rule| rule.has_name(asked.name)).find_map(|rule| {
        let at = others.iter().position(|other| rule.is_about(asked, *other))?;
        Some(Some(at))
    })
}

/// What a policy or a binding is about.
#[derive(Debug)]
pub struct Constraints {
    namespaces: Result<LabelSelector, SelectorError>,
    objects: Result<LabelSelector, SelectorError>,
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    exact: bool,
    /// Whether no rule means everything.
    open: bool,
}

/// It cannot be told whether a request is meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// A selector is none.
    #[error("Internal error occurred: {0}")]
    Selector(SelectorError),
    /// There is no namespace whose labels could fit.
    #[error("namespaces {} not found", mainstay_gocompat::quote(name))]
    UnknownNamespace {
        /// Its name.
        name: String,
    },
}

/// Looks up what selectors are held against.
pub trait Labels {
    /// Whether the labels of the namespace fit.
    ///
    /// # Errors
    /// If that cannot be told.
    fn namespace(&self, selector: &LabelSelector) -> Result<bool, MatchError>;
    /// Whether the labels of the object fit, as it will be or as it was.
    fn object(&self, selector: &LabelSelector) -> bool;
}

fn selector(constraints: &Value, field: &str) -> Result<LabelSelector, SelectorError> {
    LabelSelector::from_value(constraints.get(field).unwrap_or(&Value::Null))
}

fn rules(constraints: &Value, field: &str) -> Vec<Rule> {
    let list = constraints.get(field).and_then(Value::as_array);
    // What does not have the form of a rule was not let in; it is about nothing.
    list.into_iter().flatten().map(|rule| Rule::deserialize(rule).unwrap_or_default()).collect()
}

impl Constraints {
    /// Reads what is written as `matchConstraints` or `matchResources`.
    pub fn read(value: &Value) -> Self {
        Self {
            rules: rules(value, "resourceRules"),
            excluded: rules(value, "excludeResourceRules"),
            open: true,
            ..Self::of_webhook(value)
        }
    }

    /// Reads what a webhook is about. Unlike a policy, it is about nothing without rules.
    pub fn of_webhook(value: &Value) -> Self {
        Self {
            namespaces: selector(value, "namespaceSelector"),
            objects: selector(value, "objectSelector"),
            rules: rules(value, "rules"),
            excluded: Vec::new(),
            exact: value.get("matchPolicy").and_then(Value::as_str) != Some("Equivalent"),
            open: false,
        }
    }

    /// Whether a request is meant, and as which resource.
    ///
    /// # Errors
    /// If that cannot be told of a request that is meant otherwise.
    pub fn meets(
        &self,
        asked: &RequestAttributes<'_>,
        others: &[Resource<'_>],
        labels: &dyn Labels,
    ) -> Result<Option<Known>, MatchError> {
        // A cluster's objects are not exempted by labels of namespaces.
        let everywhere = asked.namespace.is_empty() && asked.resource.plural != "namespaces";
        let namespace = match &self.namespaces {
            _ if everywhere => Ok(true),
            Ok(selector) if selector.is_everything() => Ok(true),
            Ok(selector) => labels.namespace(selector),
            Err(error) => Err(MatchError::Selector(error.clone())),
        };
        let object = match &self.objects {
            Ok(selector) if selector.is_everything() => Ok(true),
            Ok(selector) => Ok(labels.object(selector)),
            Err(error) => Err(MatchError::Selector(error.clone())),
        };
        if namespace == Ok(false)
            || object == Ok(false)
            || (by_rules(&self.excluded, self.exact, asked, others).is_some()
                && !mainstay_fault::is_on("policies-exclude-nothing"))
        {
            return Ok(None);
        }
        let known = if self.open && self.rules.is_empty() {
            None
        } else {
            match by_rules(&self.rules, self.exact, asked, others) {
                Some(known) => known,
                None => return Ok(None),
            }
        };
        namespace.and(object).map(|_| Some(known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DEPLOYMENTS: Resource<'static> =
        Resource { group: "apps", version: "v1", plural: "deployments" };
    const SPREAD: Resource<'static> =
        Resource { group: "x.io", version: "v2", plural: "deployments" };

    struct Has(Result<bool, MatchError>, bool);

    impl Labels for Has {
        fn namespace(&self, _: &LabelSelector) -> Result<bool, MatchError> {
            self.0.clone()
        }

        fn object(&self, _: &LabelSelector) -> bool {
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
    fn a_rule_is_about_what_it_names() {
        let asked = RequestAttributes {
            resource: DEPLOYMENTS,
            subresource: "",
            operation: "CREATE",
            namespace: "a",
            name: "one",
        };
        let scale = RequestAttributes { subresource: "scale", ..asked };
        let deleted = RequestAttributes { operation: "DELETE", ..asked };
        let node = RequestAttributes {
            resource: Resource { group: "", version: "v1", plural: "nodes" },
            namespace: "",
            ..asked
        };
        let namespace = RequestAttributes {
            resource: Resource { group: "", version: "v1", plural: "namespaces" },
            ..asked
        };
        let star = json!(["*"]);
        for (change, asked, expected) in [
            (json!({}), asked, true),
            (json!({}), scale, false),
            (json!({}), deleted, false),
            (json!({"operations": star}), deleted, true),
            (json!({"resources": ["deployments/scale"]}), scale, true),
            (json!({"resources": ["deployments/*"]}), scale, true),
            // A star below a resource is about the resource too.
            (json!({"resources": ["deployments/*"]}), asked, true),
            (json!({"resources": ["*"]}), scale, false),
            (json!({"resources": ["*/*"]}), scale, true),
            (json!({"resources": ["*/scale"]}), scale, true),
            (json!({"apiVersions": ["v1beta1"]}), asked, false),
            (json!({"apiGroups": star, "apiVersions": star}), asked, true),
            (json!({"scope": "Cluster"}), asked, false),
            (json!({"scope": "Namespaced"}), asked, true),
            (json!({"scope": "Namespaced", "apiGroups": star, "resources": star}), node, false),
            (json!({"scope": "Cluster", "apiGroups": star, "resources": star}), node, true),
            (json!({"scope": "Cluster", "apiGroups": star, "resources": star}), namespace, true),
            (
                json!({"scope": "Namespaced", "apiGroups": [""], "resources": star}),
                namespace,
                false,
            ),
            (json!({"resourceNames": ["one", "two"]}), asked, true),
            (json!({"resourceNames": ["two"]}), asked, false),
        ] {
            let rules = [Rule::deserialize(rule(&change)).unwrap()];
            let found = by_rules(&rules, true, &asked, &[]);
            assert_eq!(found.is_some(), expected, "{change} {asked:?}");
        }
    }

    #[test]
    fn what_is_the_same_elsewhere_counts_unless_it_must_not() {
        let asked = RequestAttributes {
            resource: SPREAD,
            subresource: "",
            operation: "CREATE",
            namespace: "a",
            name: "one",
        };
        let labels = Has(Ok(true), true);
        for (policy, expected) in [("Equivalent", Some(Some(1))), ("Exact", None)] {
            let read = Constraints::read(
                &json!({"resourceRules": [rule(&json!({}))], "matchPolicy": policy}),
            );
            let others = [Resource { version: "v0", ..SPREAD }, DEPLOYMENTS];
            assert_eq!(read.meets(&asked, &others, &labels), Ok(expected), "{policy}");
            let read = Constraints::read(&json!({
                "resourceRules": [rule(&json!({"apiGroups": ["*"], "apiVersions": ["*"]}))],
                "excludeResourceRules": [rule(&json!({}))], "matchPolicy": policy,
            }));
            let expected = if policy == "Exact" { Some(None) } else { None };
            assert_eq!(read.meets(&asked, &others, &labels), Ok(expected), "{policy}");
        }
    }

    #[test]
    fn labels_exempt_and_what_is_unknown_counts_only_for_what_is_meant() {
        let asked = RequestAttributes {
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
            (&json!({}), &json!({}), Has(lost(), false), Ok(Some(None))),
            (&some, &json!({}), Has(Ok(false), true), Ok(None)),
            (&some, &some, Has(Ok(true), false), Ok(None)),
            (&some, &some, Has(Ok(true), true), Ok(Some(None))),
            (&some, &json!({}), Has(lost(), true), Err(unknown())),
            (&some, &some, Has(lost(), false), Ok(None)),
        ] {
            let read = |rules: Value| {
                Constraints::read(&json!({
                    "namespaceSelector": namespaces, "objectSelector": objects,
                    "resourceRules": rules, "matchPolicy": "Equivalent",
                }))
            };
            let met = read(json!([rule(&json!({}))])).meets(&asked, &[], &labels);
            assert_eq!(met, expected);
            let other = rule(&json!({"resources": ["daemonsets"]}));
            assert_eq!(read(json!([other])).meets(&asked, &[], &labels), Ok(None));
        }
        // Labels of namespaces say nothing of what is in none.
        let node = RequestAttributes {
            resource: Resource { group: "", version: "v1", plural: "nodes" },
            namespace: "",
            ..asked
        };
        let read = Constraints::read(&json!({"namespaceSelector": some}));
        assert_eq!(read.meets(&node, &[], &Has(lost(), true)), Ok(Some(None)));
    }
}
