//! Cluster dumps: every object of a cluster, and the differences between two dumps.

use super::leftovers::AllowedChange;
use anyhow::bail;
use futures::StreamExt;
use mainstay_client::{Cluster, ObjectList};
use mainstay_object::{Object, Resource};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Resources that hold no state: Events report what happened, `ComponentStatus` objects are not stored.
const EXCLUDED_RESOURCES: [&str; 2] = ["events", "componentstatuses"];
/// Kinds that are rewritten as heartbeats.
const HEARTBEAT_KINDS: [&str; 2] = ["Lease", "Node"];
/// The length at which differing values are cut, in characters.
const VALUE_LIMIT: usize = 200;
/// The number of concurrent list requests.
const CONCURRENT_LISTS: usize = 8;
/// The kind and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectId {
    pub(super) kind: String,
    pub(super) group: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// Every object of every kind that can be listed, in all namespaces.
#[derive(Clone, Debug, Default)]
pub(super) struct Dump {
    pub(super) objects: BTreeMap<ObjectId, (Resource, Object)>,
}

impl Dump {
    /// Lists all objects.
    pub(super) async fn of(cluster: &Cluster) -> anyhow::Result<Self> {
        let mut kinds: BTreeMap<(String, String), Vec<Resource>> = BTreeMap::new();
        for api in cluster.resources().await?.resources {
            let resource = &api.resource;
            if api.can("list") && !EXCLUDED_RESOURCES.contains(&&*resource.plural) {
                let key = (resource.group.to_string(), resource.plural.to_string());
                kinds.entry(key).or_default().push(api.resource);
            }
        }
        let lists = kinds.into_values().map(|versions| list(cluster, versions));
        let mut lists = futures::stream::iter(lists).buffer_unordered(CONCURRENT_LISTS);
        let mut dump = Self::default();
        while let Some(list) = lists.next().await {
            let (resource, objects) = list?;
            for object in objects {
                let id = ObjectId {
                    kind: resource.kind.to_string(),
                    group: resource.group.to_string(),
                    namespace: object.namespace().to_owned(),
                    name: object.name().to_owned(),
                };
                dump.objects.insert(id, (resource.clone(), object));
            }
        }
        Ok(dump)
    }

    /// The resource versions of all objects without heartbeats.
    pub(super) fn resource_versions(&self) -> Vec<(&ObjectId, &str)> {
        let stable = self.objects.iter().filter(|(id, _)| !HEARTBEAT_KINDS.contains(&&*id.kind));
        stable.map(|(id, (_, object))| (id, object.resource_version())).collect()
    }

    /// The objects that were created, written or deleted between two dumps.
    pub(super) fn changed_objects(&self, other: &Self) -> Vec<String> {
        let (one, other) = (self.resource_versions(), other.resource_versions());
        let new = other.iter().filter(|entry| !one.contains(entry));
        let old = one.iter().filter(|entry| !other.contains(entry));
        let ids: BTreeSet<&ObjectId> = new.chain(old).map(|(id, _)| *id).collect();
        ids.into_iter().map(ToString::to_string).collect()
    }

    /// Whether the dump has this object, and not a later one of the same name.
    pub(super) fn contains(&self, id: &ObjectId, uid: &str) -> bool {
        self.objects.get(id).is_some_and(|(_, object)| object.uid() == uid)
    }

    /// Finds an object of a kind, in any API group.
    pub(super) fn find_id(&self, kind: &str, namespace: &str, name: &str) -> Option<&ObjectId> {
        let is = |id: &&ObjectId| id.kind == kind && id.namespace == namespace && id.name == name;
        self.objects.keys().find(is)
    }

    /// The objects that another dump does not have.
    pub(super) fn not_in<'a>(
        &'a self,
        other: &Self,
    ) -> impl Iterator<Item = (&'a ObjectId, &'a Resource, &'a Object)> {
        let new = self.objects.iter().filter(|(id, (_, object))| !other.contains(id, object.uid()));
        new.map(|(id, (resource, object))| (id, resource, object)).collect::<Vec<_>>().into_iter()
    }

    /// How objects changed between two dumps: unexpected changes as text, with the path of the
    /// field and both values, and the names of the exceptions that applied.
    pub(super) fn differences(
        &self,
        after: &Self,
        allowed: &[&[AllowedChange]],
    ) -> (Vec<String>, Vec<&'static str>) {
        let (mut findings, mut changes) = (Vec::new(), Vec::new());
        for (id, (_, old)) in &self.objects {
            let Some((_, new)) =
                after.objects.get(id).filter(|(_, object)| object.uid() == old.uid())
            else {
                continue;
            };
            if HEARTBEAT_KINDS.contains(&&*id.kind) {
                continue;
            }
            let (mut old, mut new) = (comparable(old), comparable(new));
            for change in allowed.iter().copied().flatten() {
                if old == new {
                    break;
                }
                let before = (old.clone(), new.clone());
                (change.hide)(&mut old);
                (change.hide)(&mut new);
                if (&old, &new) != (&before.0, &before.1) {
                    changes.push(change.name);
                }
            }
            if let Some(what) = difference("", &old.to_value(), &new.to_value()) {
                findings.push(format!("{id} is another one: {what}"));
            }
        }
        (findings, changes)
    }

    /// The transitive dependents of some owners, which are given by their UIDs.
    pub(super) fn dependents(&self, owners: BTreeSet<String>) -> BTreeSet<ObjectId> {
        let (mut owners, mut found) = (owners, BTreeSet::new());
        loop {
            let before = found.len();
            for (id, (_, object)) in &self.objects {
                let belongs = object
                    .owner_references()
                    .iter()
                    .any(|owner_reference| owners.contains(&owner_reference.uid));
                if belongs && found.insert(id.clone()) {
                    owners.insert(object.uid().to_owned());
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }
}

/// Lists the objects of a kind, in the first of its versions that can be listed.
async fn list(
    cluster: &Cluster,
    versions: Vec<Resource>,
) -> anyhow::Result<(Resource, Vec<Object>)> {
    let mut refused = None;
    for resource in versions {
        match cluster.list_pages(&resource, None, &ObjectList::default()).await {
            Ok(list) => return Ok((resource, list.items)),
            // The CustomResourceDefinition was just deleted.
            Err(error) if error.is_not_found() => return Ok((resource, Vec::new())),
            // Some versions may need the operator's conversion webhook.
            Err(error) => refused = Some((resource, error)),
        }
    }
    match refused {
        Some((resource, error)) => {
            Err(anyhow::Error::new(error).context(format!("list {}", resource.group_resource())))
        }
        None => bail!("a kind has a version"),
    }
}

/// An object without the metadata that every write changes.
fn comparable(object: &Object) -> Object {
    let mut object = object.clone();
    for field in ["resourceVersion", "managedFields", "generation"] {
        object.remove(&["metadata", field]);
    }
    object
}

/// The path of the first field in which two values differ, and both values.
pub(super) fn difference(path: &str, old: &Value, new: &Value) -> Option<String> {
    if old == new {
        return None;
    }
    if let (Value::Object(old), Value::Object(new)) = (old, new) {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        return keys.into_iter().find_map(|key| {
            let side = |fields: &serde_json::Map<String, Value>| fields.get(key).cloned();
            let [old, new] = [side(old), side(new)].map(Option::unwrap_or_default);
            difference(&format!("{path}.{key}"), &old, &new)
        });
    }
    if let (Value::Array(old), Value::Array(new)) = (old, new)
        && old.len() == new.len()
    {
        return old
            .iter()
            .zip(new)
            .enumerate()
            .find_map(|(at, (old, new))| difference(&format!("{path}[{at}]"), old, new));
    }
    let [old, new] =
        [old, new].map(|value| value.to_string().chars().take(VALUE_LIMIT).collect::<String>());
    Some(format!("{} was {old} and is {new}", path.trim_start_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_object::builtin;
    use serde_json::json;

    fn dump(objects: &[Value]) -> Dump {
        let mut dump = Dump::default();
        for value in objects {
            let object = Object::from_value(value.clone()).unwrap();
            let id = ObjectId {
                kind: object.kind().to_owned(),
                group: String::new(),
                namespace: object.namespace().to_owned(),
                name: object.name().to_owned(),
            };
            dump.objects.insert(id, (builtin::CONFIG_MAP, object));
        }
        dump
    }

    fn map(name: &str, uid: &str, text: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": text},
            "metadata": {"name": name, "namespace": "n", "uid": uid, "resourceVersion": text},
        })
    }

    #[test]
    fn recreated_object_is_a_new_one_and_a_change_names_its_field() {
        let before = dump(&[map("a", "1", "x"), map("b", "2", "x"), map("c", "3", "x")]);
        let after = dump(&[map("a", "1", "x"), map("b", "9", "x"), map("c", "3", "y")]);
        let names = |from: &Dump, other: &Dump| -> Vec<String> {
            from.not_in(other).map(|(id, _, _)| id.to_string()).collect()
        };
        assert_eq!(names(&after, &before), ["ConfigMap n/b"]);
        assert_eq!(names(&before, &after), ["ConfigMap n/b"]);
        assert_eq!(
            before.differences(&after, &[]).0,
            [r#"ConfigMap n/c is another one: data.a was "x" and is "y""#]
        );
    }

    #[test]
    fn transitive_dependents_are_found() {
        let mut middle = map("b", "2", "");
        let owner = |uid: &str| json!([{"apiVersion": "v1", "kind": "K", "name": "k", "uid": uid}]);
        middle["metadata"]["ownerReferences"] = owner("1");
        let mut last = map("a", "3", "");
        last["metadata"]["ownerReferences"] = owner("2");
        let all = dump(&[last, middle, map("c", "4", "")]);
        let found = all.dependents(BTreeSet::from(["1".to_owned()]));
        let names: Vec<&str> = found.iter().map(|id| &*id.name).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
