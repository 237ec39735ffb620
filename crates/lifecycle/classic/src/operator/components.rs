//! Components: the fields of objects that are, or may become, components of an Operator.

use mainstay_api::{names, resources};
use mainstay_client::{Cache, CacheBuilder, Selection};
use mainstay_object::{NamespacedName, Object, Resource, builtin};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The fields of a component that caches keep.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Component {
    /// The Operators that its labels name, without the label prefix.
    pub(crate) operators: Vec<String>,
    /// The CSV that owns it, by owner reference or by labels.
    pub(crate) owner: Option<NamespacedName>,
    /// Its conditions, in the format of the Operator status.
    pub(crate) conditions: Vec<Value>,
}

impl Component {
    /// The fields of an object; none if it cannot be a component.
    fn of(object: &Object) -> Option<Self> {
        // A copied CSV is not a component; its original is.
        if object.label(names::COPIED_FROM).is_some() {
            return None;
        }
        let prefix = |(key, _): (&str, &str)| {
            key.strip_prefix(names::COMPONENT_LABEL_PREFIX).map(str::to_owned)
        };
        let component = Self {
            operators: object.labels().filter_map(prefix).collect(),
            owner: owner(object),
            conditions: conditions(object),
        };
        let core_kinds = [&resources::SUBSCRIPTION, &resources::CLUSTER_SERVICE_VERSION];
        let may_be = core_kinds.iter().any(|kind| *kind.kind == *object.kind())
            || object.kind() == &*resources::INSTALL_PLAN.kind
            || object.kind() == &*builtin::CUSTOM_RESOURCE_DEFINITION.kind;
        (may_be || component.owner.is_some() || !component.operators.is_empty())
            .then_some(component)
    }

    /// The index keys: the names of its Operators, and its owner.
    fn index_keys(&self) -> Vec<Arc<str>> {
        let owner = self.owner.iter().map(|owner| owner_index_key(owner).into());
        self.operators.iter().map(|name| name.as_str().into()).chain(owner).collect()
    }
}

/// The index key of the components that a CSV owns.
pub(crate) fn owner_index_key(version: &NamespacedName) -> String {
    // Operator names contain no slash.
    format!("{}/{}", version.namespace, version.name)
}

fn owner(object: &Object) -> Option<NamespacedName> {
    let kind = &*resources::CLUSTER_SERVICE_VERSION.kind;
    let by_reference =
        object.owner_references().into_iter().find(|owner_reference| owner_reference.kind == kind);
    if let Some(owner) = by_reference {
        return Some(NamespacedName::new(object.namespace(), owner.name.as_str()));
    }
    let labels = (object.label(names::OWNER)?, object.label(names::OWNER_NAMESPACE)?);
    // Objects of a CSV in system namespaces are not components.
    let is_own_or_cluster = ["", labels.1].contains(&object.namespace());
    (is_own_or_cluster && object.label(names::OWNER_KIND) == Some(kind))
        .then(|| NamespacedName::new(labels.1, labels.0))
}

/// The conditions of an object. The `conditions` of a CSV are its history, so its phase becomes the
/// condition.
fn conditions(object: &Object) -> Vec<Value> {
    const FIELDS: [&str; 6] =
        ["type", "status", "reason", "message", "lastTransitionTime", "lastUpdateTime"];
    if object.kind() == &*resources::CLUSTER_SERVICE_VERSION.kind {
        let Some(phase) = object.str(&["status", "phase"]) else { return Vec::new() };
        let mut condition = json!({"type": phase, "status": "True"});
        for field in &FIELDS[2..] {
            if let Some(value) = object.get(&["status", field]) {
                condition[*field] = value.clone();
            }
        }
        return vec![condition];
    }
    let reported = |condition: &Value| {
        let fields = FIELDS.into_iter().filter_map(|field| {
            let value = condition.get(field).filter(|value| **value != "")?;
            Some((field.to_owned(), value.clone()))
        });
        Value::Object(fields.collect::<Map<_, _>>())
    };
    object.array(&["status", "conditions"]).iter().map(reported).collect()
}

/// A kind of components.
pub(crate) struct ComponentKind {
    pub(crate) resource: Resource,
    pub(crate) cache: Cache<Component>,
}

/// The kinds of components. Of common kinds only objects with the managed label are watched.
pub(crate) struct ComponentCaches {
    pub(crate) kinds: Vec<ComponentKind>,
}

impl ComponentCaches {
    /// Starts to list and watch.
    pub(crate) fn start(
        mut start: impl FnMut(CacheBuilder<Component>) -> Cache<Component>,
    ) -> Self {
        let managed = format!("{}={}", names::MANAGED, names::MANAGED_VALUE);
        let all = [
            resources::SUBSCRIPTION,
            resources::CLUSTER_SERVICE_VERSION,
            resources::INSTALL_PLAN,
            resources::OPERATOR_CONDITION,
        ];
        let some = [
            builtin::CUSTOM_RESOURCE_DEFINITION,
            builtin::DEPLOYMENT,
            builtin::SERVICE_ACCOUNT,
            builtin::ROLE,
            builtin::ROLE_BINDING,
            builtin::CLUSTER_ROLE,
            builtin::CLUSTER_ROLE_BINDING,
            builtin::SERVICE,
            builtin::SECRET,
            builtin::CONFIG_MAP,
            builtin::API_SERVICE,
        ];
        // Copied CSVs are many, and never components.
        let originals = format!("!{}", names::COPIED_FROM);
        let all = all.map(|kind| Selection::all(kind).labels(originals.clone()));
        let some = some.map(|kind| Selection::all(kind).labels(managed.clone()));
        // Users put the component label on namespaces.
        let places = [Selection::all(builtin::NAMESPACE)];
        let kinds = all.into_iter().chain(some).chain(places).map(|selection| ComponentKind {
            resource: selection.resource.clone(),
            cache: start(Cache::builder(selection, Component::of).index(Component::index_keys)),
        });
        Self { kinds: kinds.collect() }
    }

    /// The objects of one kind.
    pub(crate) fn kind(&self, resource: &Resource) -> Option<&ComponentKind> {
        self.kinds.iter().find(|kind| kind.resource == *resource)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_names_its_operators_and_its_csv() {
        let object = |value: Value| Object::from_value(value).unwrap();
        let role = object(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "a.v1-x", "labels": {
                "olm.owner": "a.v1", "olm.owner.namespace": "ns",
                "olm.owner.kind": "ClusterServiceVersion", "operators.coreos.com/a.ns": "",
            }},
        }));
        let component = Component::of(&role).unwrap();
        assert_eq!(component.operators, ["a.ns"]);
        assert_eq!(component.owner, Some(NamespacedName::new("ns", "a.v1")));
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
        assert_eq!(Component::of(&object(map)), None);
        let version = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": "a.v1", "namespace": "ns"},
            "status": {"phase": "Pending", "reason": "R", "message": "m", "conditions": [{}, {}]},
        }));
        assert_eq!(
            Component::of(&version).unwrap().conditions,
            [json!({"type": "Pending", "status": "True", "reason": "R", "message": "m"})]
        );
    }
}
