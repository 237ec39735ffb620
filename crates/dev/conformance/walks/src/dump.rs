//! Everything that a cluster has, and in what two such differ.

use super::stays::CHANGES;
use anyhow::bail;
use futures::StreamExt;
use mainstay_client::{Cluster, ListParams};
use mainstay_object::{Object, Resource};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Kinds that are no state of the cluster: what happened, and what nobody keeps.
const NO_STATE: [&str; 2] = ["events", "componentstatuses"];
/// Kinds that say that their owner is alive, again and again.
const RESTLESS: [&str; 2] = ["Lease", "Node"];
/// How much is shown of a value that differs, in characters.
const LONG: usize = 200;
/// How many lists are asked for at the same time.
const AT_ONCE: usize = 8;
/// What an object is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) kind: String,
    pub(super) group: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl fmt::Display for Id {
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
    pub(super) objects: BTreeMap<Id, (Resource, Object)>,
}

impl Dump {
    /// Reads everything.
    pub(super) async fn of(cluster: &Cluster) -> anyhow::Result<Self> {
        let mut kinds: BTreeMap<(String, String), Vec<Resource>> = BTreeMap::new();
        for api in cluster.resources().await?.resources {
            let resource = &api.resource;
            if api.can("list") && !NO_STATE.contains(&&*resource.plural) {
                let key = (resource.group.to_string(), resource.plural.to_string());
                kinds.entry(key).or_default().push(api.resource);
            }
        }
        let lists = kinds.into_values().map(|versions| list(cluster, versions));
        let mut lists = futures::stream::iter(lists).buffer_unordered(AT_ONCE);
        let mut dump = Self::default();
        while let Some(list) = lists.next().await {
            let (resource, objects) = list?;
            for object in objects {
                let id = Id {
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

    /// What tells whether something was written.
    pub(super) fn state(&self) -> Vec<(&Id, &str)> {
        let quiet = self.objects.iter().filter(|(id, _)| !RESTLESS.contains(&&*id.kind));
        quiet.map(|(id, (_, object))| (id, object.resource_version())).collect()
    }

    /// What another one has in another state, was made, or is gone.
    pub(super) fn rewritten(&self, other: &Self) -> Vec<String> {
        let (one, other) = (self.state(), other.state());
        let new = other.iter().filter(|entry| !one.contains(entry));
        let old = one.iter().filter(|entry| !other.contains(entry));
        let ids: BTreeSet<&Id> = new.chain(old).map(|(id, _)| *id).collect();
        ids.into_iter().map(ToString::to_string).collect()
    }

    /// Whether it has this very object, and not a later one of its name.
    pub(super) fn has(&self, id: &Id, uid: &str) -> bool {
        self.objects.get(id).is_some_and(|(_, object)| object.uid() == uid)
    }

    /// Whether it has an object of a kind, whatever group that is of.
    pub(super) fn named(&self, kind: &str, namespace: &str, name: &str) -> Option<&Id> {
        let is = |id: &&Id| id.kind == kind && id.namespace == namespace && id.name == name;
        self.objects.keys().find(is)
    }

    /// What it has that another one has not.
    pub(super) fn beyond<'a>(
        &'a self,
        other: &Self,
    ) -> impl Iterator<Item = (&'a Id, &'a Resource, &'a Object)> {
        let new = self.objects.iter().filter(|(id, (_, object))| !other.has(id, object.uid()));
        new.map(|(id, (resource, object))| (id, resource, object)).collect::<Vec<_>>().into_iter()
    }

    /// What both have, and not alike: which, where, and how it is in each; and names of what may be another.
    pub(super) fn changed(&self, now: &Self) -> (Vec<String>, Vec<&'static str>) {
        let (mut wrong, mut changes) = (Vec::new(), Vec::new());
        for (id, (_, old)) in &self.objects {
            let Some((_, new)) =
                now.objects.get(id).filter(|(_, object)| object.uid() == old.uid())
            else {
                continue;
            };
            if RESTLESS.contains(&&*id.kind) {
                continue;
            }
            let (mut old, mut new) = (content(old), content(new));
            for change in CHANGES {
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
                wrong.push(format!("{id} is another one: {what}"));
            }
        }
        (wrong, changes)
    }

    /// What belongs, over any number of owners, to one of these.
    pub(super) fn dependents(&self, owners: BTreeSet<String>) -> BTreeSet<Id> {
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

/// The objects of a kind, by the first of its versions in which it can be listed.
async fn list(
    cluster: &Cluster,
    versions: Vec<Resource>,
) -> anyhow::Result<(Resource, Vec<Object>)> {
    let mut refused = None;
    for resource in versions {
        match cluster.list_pages(&resource, None, &ListParams::default()).await {
            Ok(list) => return Ok((resource, list.items)),
            // Its definition has just gone.
            Err(error) if error.is_not_found() => return Ok((resource, Vec::new())),
            // Of several versions some may need the operator to be read.
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

/// What an object says, without the traces of who wrote it when.
fn content(object: &Object) -> Object {
    let mut object = object.clone();
    for field in ["resourceVersion", "managedFields", "generation"] {
        object.remove(&["metadata", field]);
    }
    object
}

/// The first place in which two values differ, and how.
fn difference(path: &str, old: &Value, new: &Value) -> Option<String> {
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
    let [old, new] =
        [old, new].map(|value| value.to_string().chars().take(LONG).collect::<String>());
    Some(format!("{} was {old} and is {new}", path.trim_start_matches('.')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_object::known;
    use serde_json::json;

    fn dump(objects: &[Value]) -> Dump {
        let mut dump = Dump::default();
        for value in objects {
            let object = Object::from_value(value.clone()).unwrap();
            let id = Id {
                kind: object.kind().to_owned(),
                group: String::new(),
                namespace: object.namespace().to_owned(),
                name: object.name().to_owned(),
            };
            dump.objects.insert(id, (known::CONFIG_MAP, object));
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
    fn one_that_was_made_again_is_another_one_and_a_change_is_told_with_its_place() {
        let before = dump(&[map("a", "1", "x"), map("b", "2", "x"), map("c", "3", "x")]);
        let after = dump(&[map("a", "1", "x"), map("b", "9", "x"), map("c", "3", "y")]);
        let names = |from: &Dump, other: &Dump| -> Vec<String> {
            from.beyond(other).map(|(id, _, _)| id.to_string()).collect()
        };
        assert_eq!(names(&after, &before), ["ConfigMap n/b"]);
        assert_eq!(names(&before, &after), ["ConfigMap n/b"]);
        assert_eq!(
            before.changed(&after).0,
            [r#"ConfigMap n/c is another one: data.a was "x" and is "y""#]
        );
    }

    #[test]
    fn what_belongs_to_what_belongs_is_found() {
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
