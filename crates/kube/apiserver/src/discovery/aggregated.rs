//! Aggregated discovery: all groups, versions, kinds and subresources in one answer.

use mainstay_kinds::{Group, GroupVersion, KindRow, KindSource, Kinds, Subresource};
use mainstay_object::{Gvk, Scope};
use serde::Serialize;
use std::sync::Arc;

/// `APIGroupDiscoveryList`; its fields and those below are in the order in which the original writes
/// them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct List<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Nothing,
    items: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Item<'a> {
    metadata: Metadata<'a>,
    versions: Vec<OfVersion<'a>>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct OfVersion<'a> {
    version: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<OfKind<'a>>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfKind<'a> {
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
    subresources: Vec<Below<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Below<'a> {
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

/// The list of the core group alone, or of all others.
pub(super) fn list(kinds: &Kinds, core: bool) -> List<'_> {
    List {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        metadata: Nothing {},
        items: kinds.groups.iter().filter(|one| one.name.is_empty() == core).map(group).collect(),
    }
}

fn group(group: &Group) -> Item<'_> {
    Item {
        metadata: Metadata { name: &group.name },
        versions: group.versions.iter().map(|one| group_version(one)).collect(),
    }
}

fn group_version(version: &GroupVersion) -> OfVersion<'_> {
    OfVersion {
        version: &version.version,
        resources: version.rows.iter().map(|row| resource(row)).collect(),
        freshness: "Current",
    }
}

fn resource(row: &KindRow) -> OfKind<'_> {
    let own = (&*row.group, &*row.version);
    OfKind {
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

fn subresource<'a>(row: &'a KindRow, sub: &'a Subresource) -> Below<'a> {
    let Gvk { group, version, kind } = &sub.gvk;
    Below {
        subresource: &sub.name,
        response_kind: response_kind(row, (group, version), kind),
        verbs: &sub.verbs,
    }
}

/// What is spoken. Of a built-in kind, the group-version in which it stands goes without saying.
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
