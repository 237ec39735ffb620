//! Aggregated discovery: all groups, versions, kinds and subresources in one response.

use mainstay_kinds::{Group, GroupVersion, KindRow, KindSource, Kinds, Subresource};
use mainstay_object::{Gvk, Scope};
use serde::Serialize;
use std::sync::Arc;

/// `APIGroupDiscoveryList`. Its fields, and those of the types below, are in kube-apiserver's
/// order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiscoveryList<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: EmptyMetadata,
    items: Vec<GroupDiscovery<'a>>,
}

#[derive(Serialize)]
struct EmptyMetadata {}

#[derive(Serialize)]
struct GroupDiscovery<'a> {
    metadata: GroupMetadata<'a>,
    versions: Vec<VersionDiscovery<'a>>,
}

#[derive(Serialize)]
struct GroupMetadata<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct VersionDiscovery<'a> {
    version: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<ResourceDiscovery<'a>>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery<'a> {
    resource: &'a str,
    response_kind: ResponseKind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: &'a [Arc<str>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    short_names: &'a [Arc<str>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    categories: &'a [Arc<str>],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceDiscovery<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceDiscovery<'a> {
    subresource: &'a str,
    response_kind: ResponseKind<'a>,
    verbs: &'a [Arc<str>],
}

#[derive(Serialize)]
struct ResponseKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// The list of the core group alone, or of all other groups.
pub(super) fn list(kinds: &Kinds, core: bool) -> DiscoveryList<'_> {
    DiscoveryList {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        metadata: EmptyMetadata {},
        items: kinds
            .groups
            .iter()
            .filter(|entry| entry.name.is_empty() == core)
            .map(group)
            .collect(),
    }
}

fn group(group: &Group) -> GroupDiscovery<'_> {
    GroupDiscovery {
        metadata: GroupMetadata { name: &group.name },
        versions: group.versions.iter().map(|entry| group_version(entry)).collect(),
    }
}

fn group_version(version: &GroupVersion) -> VersionDiscovery<'_> {
    VersionDiscovery {
        version: &version.version,
        resources: version.rows.iter().map(|row| resource(row)).collect(),
        freshness: "Current",
    }
}

fn resource(row: &KindRow) -> ResourceDiscovery<'_> {
    let own = (&*row.group, &*row.version);
    ResourceDiscovery {
        resource: &row.plural,
        response_kind: response_kind(row, own, &row.kind),
        scope: if row.scope == Scope::Namespaced { "Namespaced" } else { "Cluster" },
        singular_resource: &row.singular,
        verbs: &row.verbs,
        short_names: &row.short_names,
        categories: &row.categories,
        subresources: row.subresources.iter().map(|sub| subresource(row, sub)).collect(),
    }
}

fn subresource<'a>(row: &'a KindRow, sub: &'a Subresource) -> SubresourceDiscovery<'a> {
    let Gvk { group, version, kind } = &sub.gvk;
    SubresourceDiscovery {
        subresource: &sub.name,
        response_kind: response_kind(row, (group, version), kind),
        verbs: &sub.verbs,
    }
}

/// The kind of requests and responses. For a built-in kind, its own group-version is left out.
fn response_kind<'a>(
    row: &KindRow,
    (group, version): (&'a str, &'a str),
    kind: &'a str,
) -> ResponseKind<'a> {
    let own = group == &*row.group && version == &*row.version;
    if own && matches!(row.source, KindSource::BuiltIn(_)) {
        ResponseKind { group: "", version: "", kind }
    } else {
        ResponseKind { group, version, kind }
    }
}
