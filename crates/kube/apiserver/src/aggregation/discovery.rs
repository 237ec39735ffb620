//! Remote groups among our own.

use super::Aggregation;
use super::found::Found;
use super::priority::priorities;
use super::remote::Remote;
use super::wire::Whole;
use serde_json::{Value, json};

/// What is asked of remote servers: everything at once, if they can.
pub(super) const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// What the discovery of a remote server says of a version: from its aggregated form, or from the
/// list of the version's resources.
pub(super) fn version(remote: &Remote, whole: Option<&Whole>, list: &Whole) -> Value {
    let parse = |answer: &Whole| serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
    let aggregated = whole
        .filter(|whole| whole.is_good() && whole.content_type.contains("APIGroupDiscoveryList"))
        .map(parse);
    let items = aggregated.as_ref().and_then(|list| list["items"].as_array());
    let found = items
        .into_iter()
        .flatten()
        .filter(|item| item.pointer("/metadata/name").is_some_and(|name| *name == remote.group))
        .flat_map(|item| item["versions"].as_array().into_iter().flatten())
        .find(|one| one["version"] == remote.version);
    match found {
        Some(version) => version.clone(),
        None => from_list(remote, &parse(list)),
    }
}

fn from_list(remote: &Remote, list: &Value) -> Value {
    let mut resources: Vec<Value> = Vec::new();
    let all = list["resources"].as_array().map_or(&[][..], Vec::as_slice);
    let named = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
    let kind_of = |one: &Value| {
        let text = |field: &str, usual: &str| {
            let text = one[field].as_str().unwrap_or_default();
            if text.is_empty() { usual.to_owned() } else { text.to_owned() }
        };
        json!({
            "group": text("group", &remote.group), "version": text("version", &remote.version),
            "kind": one["kind"],
        })
    };
    for one in all.iter().filter(|one| !named(one).contains('/')) {
        let scope = if one["namespaced"] == true { "Namespaced" } else { "Cluster" };
        let mut resource = json!({
            "resource": one["name"], "responseKind": kind_of(one), "scope": scope,
            "singularResource": one["singularName"], "verbs": one["verbs"],
        });
        for field in ["shortNames", "categories"] {
            if one[field].is_array() {
                resource[field] = one[field].clone();
            }
        }
        let prefix = format!("{}/", named(one));
        let below: Vec<Value> = all
            .iter()
            .filter_map(|sub| {
                let name = named(sub);
                let name = name.strip_prefix(&prefix)?;
                Some(json!({"subresource": name, "responseKind": kind_of(sub), "verbs": sub["verbs"]}))
            })
            .collect();
        if !below.is_empty() {
            resource["subresources"] = below.into();
        }
        resources.push(resource);
    }
    json!({"version": remote.version, "resources": resources})
}

impl Aggregation {
    /// Adds remote versions to a list of all groups in the aggregated form.
    pub(crate) fn merge_aggregated(&self, list: &mut Value) {
        let found = self.found.lock().clone();
        let entry = |remote: &Remote| {
            let known = found.get(&remote.name);
            let mut version = known.map_or(Value::Null, |found: &Found| found.version.clone());
            if !version.is_object() {
                version = json!({});
            }
            version["version"] = remote.version.as_str().into();
            let fresh = known.is_some_and(|found| !found.stale) && remote.available;
            version["freshness"] = if fresh { "Current" } else { "Stale" }.into();
            version
        };
        self.merge(
            list,
            "items",
            "/metadata/name",
            &entry,
            &|group, versions| json!({"metadata": {"name": group}, "versions": versions}),
        );
    }

    /// Adds remote versions to a list of all groups in the plain form.
    pub(crate) fn merge_plain(&self, list: &mut Value) {
        let entry = |remote: &Remote| {
            let group_version = format!("{}/{}", remote.group, remote.version);
            json!({"groupVersion": group_version, "version": remote.version})
        };
        self.merge(list, "groups", "/name", &entry, &|group, versions| {
            json!({"name": group, "preferredVersion": versions[0], "versions": versions})
        });
    }

    /// One group in the plain form, if it has remote versions. `own` is what this server has of it.
    pub(crate) fn plain_group(&self, name: &str, own: Option<Value>) -> Option<Value> {
        if !self.current.load().remotes.iter().any(|remote| remote.group == name) {
            return None;
        }
        let mut list = json!({"groups": own.into_iter().collect::<Vec<Value>>()});
        self.merge_plain(&mut list);
        let groups = list["groups"].as_array().into_iter().flatten();
        let mut found = groups.filter(|group| group["name"] == name).cloned();
        let mut group = found.next()?;
        group["kind"] = "APIGroup".into();
        group["apiVersion"] = "v1".into();
        Some(group)
    }

    fn merge(
        &self,
        list: &mut Value,
        field: &str,
        name_at: &str,
        entry: &dyn Fn(&Remote) -> Value,
        group: &dyn Fn(&str, Vec<Value>) -> Value,
    ) {
        let services = self.current.load();
        let Some(groups) = list.get_mut(field).and_then(Value::as_array_mut) else { return };
        let mut ranked: Vec<(i64, Value)> = groups
            .drain(..)
            .map(|group| {
                let name = group.pointer(name_at).and_then(Value::as_str).unwrap_or_default();
                let rank = match name {
                    // It is the first, whatever the others say of themselves.
                    "apiregistration.k8s.io" => i64::MAX,
                    name => priorities(name, "").0,
                };
                (rank, group)
            })
            .collect();
        for remote in services.remotes.iter().filter(|remote| !remote.group.is_empty()) {
            let is_own = |(_, group): &&mut (i64, Value)| {
                group.pointer(name_at).is_some_and(|name| *name == remote.group)
            };
            if let Some((rank, known)) = ranked.iter_mut().find(is_own) {
                *rank = (*rank).max(remote.group_priority);
                if let Some(versions) = known["versions"].as_array_mut() {
                    versions.retain(|one| one["version"] != remote.version);
                    versions.push(entry(remote));
                }
            } else {
                let made = group(&remote.group, vec![entry(remote)]);
                ranked.push((remote.group_priority, made));
            }
        }
        // Stable: groups of the same priority stay in their order.
        ranked.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        groups.extend(ranked.into_iter().map(|(_, group)| group));
    }
}
