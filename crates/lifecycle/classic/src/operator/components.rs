//! What is known of objects that are, or may become, parts of operators.

use mainstay_api::{names, resources};
use mainstay_client::{Cache, CacheBuilder, Selection};
use mainstay_object::{NamespacedName, Object, Resource, known};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// An object as the parts of operators are seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Component {
    /// What its labels say it is a part of: names of operators, without the prefix.
    pub(crate) operators: Vec<String>,
    /// The version that owns it, by reference or by labels.
    pub(crate) owner: Option<NamespacedName>,
    /// Its conditions, as an Operator shows them.
    pub(crate) conditions: Vec<Value>,
}

impl Component {
    /// What is known of an object; none if no operator can have anything to do with it.
    fn of(object: &Object) -> Option<Self> {
        // A copy belongs to whoever the original belongs to, and is not counted.
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
        let whole = [&resources::SUBSCRIPTION, &resources::CLUSTER_SERVICE_VERSION];
        let may_be = whole.iter().any(|kind| *kind.kind == *object.kind())
            || object.kind() == &*resources::INSTALL_PLAN.kind
            || object.kind() == &*known::CUSTOM_RESOURCE_DEFINITION.kind;
        (may_be || component.owner.is_some() || !component.operators.is_empty())
            .then_some(component)
    }

    /// Under what it is found: the names of its operators, and its owner.
    fn index_keys(&self) -> Vec<Arc<str>> {
        let owner = self.owner.iter().map(|owner| owner_index_key(owner).into());
        self.operators.iter().map(|name| name.as_str().into()).chain(owner).collect()
    }
}

/// Under what the parts that a version owns are found.
pub(crate) fn owner_index_key(version: &NamespacedName) -> String {
    // Names of operators have no slash in them.
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
    // What a version has in a namespace of the system is none of its parts.
    let near = ["", labels.1].contains(&object.namespace());
    (near && object.label(names::OWNER_KIND) == Some(kind))
        .then(|| NamespacedName::new(labels.1, labels.0))
}

/// The conditions of an object. A version has a history under that name; what counts of it is its
/// phase.
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
    let kept = |condition: &Value| {
        let fields = FIELDS.into_iter().filter_map(|field| {
            let value = condition.get(field).filter(|value| **value != "")?;
            Some((field.to_owned(), value.clone()))
        });
        Value::Object(fields.collect::<Map<_, _>>())
    };
    object.array(&["status", "conditions"]).iter().map(kept).collect()
}

/// A kind of parts.
pub(crate) struct ComponentKind {
    pub(crate) resource: Resource,
    pub(crate) cache: Cache<Component>,
}

/// The kinds that can be parts. Of those that everybody has, only objects that say that they are
/// managed are watched.
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
            known::CUSTOM_RESOURCE_DEFINITION,
            known::DEPLOYMENT,
            known::SERVICE_ACCOUNT,
            known::ROLE,
            known::ROLE_BINDING,
            known::CLUSTER_ROLE,
            known::CLUSTER_ROLE_BINDING,
            known::SERVICE,
            known::SECRET,
            known::CONFIG_MAP,
            known::API_SERVICE,
        ];
        // There are many copies, and they are nobody's parts.
        let originals = format!("!{}", names::COPIED_FROM);
        let all = all.map(|kind| Selection::all(kind).labels(originals.clone()));
        let some = some.map(|kind| Selection::all(kind).labels(managed.clone()));
        // People label these themselves.
        let places = [Selection::all(known::NAMESPACE)];
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
    fn a_part_names_its_operators_and_its_version() {
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
