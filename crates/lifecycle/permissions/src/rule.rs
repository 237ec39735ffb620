//! RBAC rules: the policy rules of Roles and ClusterRoles.

use serde_json::{Map, Value};

/// One rule of a Role or ClusterRole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RbacRule {
    /// The API groups; the core group is empty, `*` is all groups.
    pub api_groups: Vec<String>,
    /// The plurals, with their subresources: `pods`, `pods/log`, `*/scale`, `*`.
    pub resources: Vec<String>,
    /// The names of objects; none means all objects.
    pub resource_names: Vec<String>,
    /// The verbs; `*` is all verbs.
    pub verbs: Vec<String>,
    /// The paths outside of the resource API; a trailing `*` is any ending.
    pub non_resource_urls: Vec<String>,
}

/// The rules of one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopedRules {
    /// The namespace; empty means the whole cluster.
    pub namespace: String,
    /// The rules.
    pub rules: Vec<RbacRule>,
}

impl RbacRule {
    /// A rule about resources of one API group.
    pub fn of_resource(group: &str, resource: &str, verbs: &[&str]) -> Self {
        Self {
            api_groups: vec![group.to_owned()],
            resources: vec![resource.to_owned()],
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// The rule for some objects only.
    #[must_use]
    pub fn with_names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.resource_names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Reads a rule of a Role, ClusterRole or ClusterServiceVersion. Values that are no texts are left out,
    /// as the API server refuses them anyway.
    pub fn from_value(value: &Value) -> Self {
        let list = |field: &str| texts(&value[field]);
        Self {
            api_groups: list("apiGroups"),
            resources: list("resources"),
            resource_names: list("resourceNames"),
            verbs: list("verbs"),
            non_resource_urls: list("nonResourceURLs"),
        }
    }

    /// Reads a list of rules.
    pub(crate) fn list_from(value: &Value) -> Vec<Self> {
        value.as_array().into_iter().flatten().map(Self::from_value).collect()
    }

    /// The rule as a value of a Role, without empty lists except for the verbs, which are required.
    pub fn to_value(&self) -> Value {
        let mut fields = Map::new();
        for (name, list) in [
            ("apiGroups", &self.api_groups),
            ("resources", &self.resources),
            ("resourceNames", &self.resource_names),
            ("nonResourceURLs", &self.non_resource_urls),
        ] {
            if !list.is_empty() {
                fields.insert(name.to_owned(), Value::from(list.clone()));
            }
        }
        fields.insert("verbs".to_owned(), Value::from(self.verbs.clone()));
        Value::Object(fields)
    }

    /// The number of parts of the rule: of one verb, group, resource and name, or of one verb and path.
    pub(crate) fn count_parts(&self) -> usize {
        let names = self.resource_names.len().max(1);
        self.api_groups
            .len()
            .saturating_mul(self.resources.len())
            .saturating_mul(names)
            .saturating_add(self.non_resource_urls.len())
            .saturating_mul(self.verbs.len())
    }

    /// The text by which Kubernetes sorts rules: Go's text of the type, with the verbs first.
    pub(crate) fn sort_text(&self) -> String {
        format!(
            "&PolicyRule{{Verbs:[{}],APIGroups:[{}],Resources:[{}],ResourceNames:[{}],NonResourceURLs:[{}],}}",
            self.verbs.join(" "),
            self.api_groups.join(" "),
            self.resources.join(" "),
            self.resource_names.join(" "),
            self.non_resource_urls.join(" "),
        )
    }
}

/// The texts of a list.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The text of a field; empty if it is missing.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
