//! Discovery of remote groups, merged with our own groups.

use super::Aggregation;
use super::observed::ObservedDiscovery;
use super::priority::priorities;
use super::remote::Remote;
use super::transport::BufferedResponse;
use serde_json::{Value, json};

/// `Accept` of discovery requests: the aggregated form, if the server has it.
pub(super) const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// The `APIVersionDiscovery` of a remote version: from the server's aggregated discovery, or from
/// the resource list of the version.
pub(super) fn version(
    remote: &Remote,
    aggregated_list: Option<&BufferedResponse>,
    list: &BufferedResponse,
) -> Value {
    let parse = |response: &BufferedResponse| {
        serde_json::from_slice::<Value>(&response.body).unwrap_or_default()
    };
    let aggregated = aggregated_list
        .filter(|response| {
            response.is_success() && response.content_type.contains("APIGroupDiscoveryList")
        })
        .map(parse);
    let items = aggregated.as_ref().and_then(|list| list["items"].as_array());
    let discovered = items
        .into_iter()
        .flatten()
        .filter(|item| item.pointer("/metadata/name").is_some_and(|name| *name == remote.group))
        .flat_map(|item| item["versions"].as_array().into_iter().flatten())
        .find(|entry| entry["version"] == remote.version);
    match discovered {
        Some(version) => version.clone(),
        None => from_list(remote, &parse(list)),
    }
}

fn from_list(remote: &Remote, list: &Value) -> Value {
    let mut resources: Vec<Value> = Vec::new();
    let all = list["resources"].as_array().map_or(&[][..], Vec::as_slice);
    let name_of = |entry: &Value| entry["name"].as_str().unwrap_or_default().to_owned();
    let kind_of = |entry: &Value| {
        let text = |field: &str, default: &str| {
            let text = entry[field].as_str().unwrap_or_default();
            if text.is_empty() { default.to_owned() } else { text.to_owned() }
        };
        json!({
            "group": text("group", &remote.group), "version": text("version", &remote.version),
            "kind": entry["kind"],
        })
    };
    for entry in all.iter().filter(|entry| !name_of(entry).contains('/')) {
        let scope = if entry["namespaced"] == true { "Namespaced" } else { "Cluster" };
        let mut resource = json!({
            "resource": entry["name"], "responseKind": kind_of(entry), "scope": scope,
            "singularResource": entry["singularName"], "verbs": entry["verbs"],
        });
        for field in ["shortNames", "categories"] {
            if entry[field].is_array() {
                resource[field] = entry[field].clone();
            }
        }
        let prefix = format!("{}/", name_of(entry));
        let subresources: Vec<Value> = all
            .iter()
            .filter_map(|sub| {
                let name = name_of(sub);
                let name = name.strip_prefix(&prefix)?;
                Some(json!({"subresource": name, "responseKind": kind_of(sub), "verbs": sub["verbs"]}))
            })
            .collect();
        if !subresources.is_empty() {
            resource["subresources"] = subresources.into();
        }
        resources.push(resource);
    }
    json!({"version": remote.version, "resources": resources})
}

impl Aggregation {
    /// Merges remote versions into an aggregated discovery list.
    pub(crate) fn merge_aggregated(&self, list: &mut Value) {
        let discovered = self.discovered.lock().clone();
        let entry = |remote: &Remote| {
            let observed = discovered.get(&remote.name);
            let mut version = observed
                .map_or(Value::Null, |discovered: &ObservedDiscovery| discovered.version.clone());
            if !version.is_object() {
                version = json!({});
            }
            version["version"] = remote.version.as_str().into();
            let is_fresh = observed.is_some_and(|discovered| !discovered.stale) && remote.available;
            version["freshness"] = if is_fresh { "Current" } else { "Stale" }.into();
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

    /// Merges remote versions into a plain list of groups.
    pub(crate) fn merge_plain(&self, list: &mut Value) {
        let entry = |remote: &Remote| {
            let group_version = format!("{}/{}", remote.group, remote.version);
            json!({"groupVersion": group_version, "version": remote.version})
        };
        self.merge(list, "groups", "/name", &entry, &|group, versions| {
            json!({"name": group, "preferredVersion": versions[0], "versions": versions})
        });
    }

    /// One group in the plain form, if it has remote versions. `own` is the group as this server
    /// serves it.
    pub(crate) fn plain_group(&self, name: &str, own: Option<Value>) -> Option<Value> {
        if !self.current.load().remotes.iter().any(|remote| remote.group == name) {
            return None;
        }
        let mut list = json!({"groups": own.into_iter().collect::<Vec<Value>>()});
        self.merge_plain(&mut list);
        let groups = list["groups"].as_array().into_iter().flatten();
        let mut discovered = groups.filter(|group| group["name"] == name).cloned();
        let mut group = discovered.next()?;
        group["kind"] = "APIGroup".into();
        group["apiVersion"] = "v1".into();
        Some(group)
    }

    fn merge(
        &self,
        list: &mut Value,
        field: &str,
        name_pointer: &str,
        entry: &dyn Fn(&Remote) -> Value,
        group: &dyn Fn(&str, Vec<Value>) -> Value,
    ) {
        let services = self.current.load();
        let Some(groups) = list.get_mut(field).and_then(Value::as_array_mut) else { return };
        let mut ranked: Vec<(i64, Value)> = groups
            .drain(..)
            .map(|group| {
                let name = group.pointer(name_pointer).and_then(Value::as_str).unwrap_or_default();
                let rank = match name {
                    // This group is the first, whatever priorities the others have.
                    "apiregistration.k8s.io" => i64::MAX,
                    name => priorities(name, "").0,
                };
                (rank, group)
            })
            .collect();
        for remote in services.remotes.iter().filter(|remote| !remote.group.is_empty()) {
            let is_own = |(_, group): &&mut (i64, Value)| {
                group.pointer(name_pointer).is_some_and(|name| *name == remote.group)
            };
            if let Some((rank, observed)) = ranked.iter_mut().find(is_own) {
                *rank = (*rank).max(remote.group_priority);
                if let Some(versions) = observed["versions"].as_array_mut() {
                    versions.retain(|entry| entry["version"] != remote.version);
                    versions.push(entry(remote));
                }
            } else {
                let new_group = group(&remote.group, vec![entry(remote)]);
                ranked.push((remote.group_priority, new_group));
            }
        }
        // The sort is stable: groups of the same priority stay in their order.
        ranked.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
        groups.extend(ranked.into_iter().map(|(_, group)| group));
    }
}
