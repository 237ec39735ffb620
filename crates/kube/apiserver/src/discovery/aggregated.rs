//! Aggregated discovery: all groups, versions, kinds and subresources in one answer.

use crate::registry::{Group, GroupVersion, KindRow, Kinds, Subresource};
use mainstay_object::{Gvk, Scope};
use serde_json::{Value, json};

/// `APIGroupDiscoveryList` of the core group or of all others.
pub(super) fn list(kinds: &Kinds, core: bool, version: &str) -> Value {
    let items: Vec<Value> =
        kinds.groups.iter().filter(|one| one.name.is_empty() == core).map(group).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    })
}

fn group(group: &Group) -> Value {
    let versions: Vec<Value> = group.versions.iter().map(|one| group_version(one)).collect();
    let mut metadata = json!({"creationTimestamp": null});
    if !group.name.is_empty() {
        metadata["name"] = (*group.name).into();
    }
    json!({"metadata": metadata, "versions": versions})
}

fn group_version(version: &GroupVersion) -> Value {
    let resources: Vec<Value> = version.rows.iter().map(|row| resource(row)).collect();
    json!({"version": &*version.version, "resources": resources, "freshness": "Current"})
}

fn resource(row: &KindRow) -> Value {
    let mut out = json!({
        "resource": &*row.plural,
        "responseKind": response_kind(&row.gvk()),
        "scope": if row.scope == Scope::Namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": &*row.singular,
        "verbs": texts(&row.verbs),
    });
    if !row.short_names.is_empty() {
        out["shortNames"] = texts(&row.short_names);
    }
    if !row.categories.is_empty() {
        out["categories"] = texts(&row.categories);
    }
    if !row.subresources.is_empty() {
        out["subresources"] = row.subresources.iter().map(subresource).collect();
    }
    out
}

fn subresource(sub: &Subresource) -> Value {
    json!({
        "subresource": &*sub.name,
        "responseKind": response_kind(&sub.speaks),
        "verbs": texts(&sub.verbs),
    })
}

fn response_kind(gvk: &Gvk) -> Value {
    json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind})
}

pub(super) fn texts(texts: &[std::sync::Arc<str>]) -> Value {
    texts.iter().map(|text| Value::from(&**text)).collect()
}
