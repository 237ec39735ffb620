//! Discovery group by group, as clients from before the aggregated form walk it.
//!
//! The fields of every answer are in the order in which the original writes them: `kubectl get --raw`
//! shows them to people.

use super::answers::DiscoveryRequest;
use crate::version::VersionInfo;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use mainstay_http::negotiate::{self, EndpointRepresentations, RouteKind};
use mainstay_http::response::{ApiResponse, encode_json, indent_json};
use mainstay_kinds::{Group, GroupVersion, KindRow, Kinds, Subresource};
use mainstay_object::Status;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// `/`: the paths there are.
pub(crate) fn root(kinds: &Kinds) -> ApiResponse {
    let fixed = [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/",
        "/healthz",
        "/healthz/ping",
        "/livez",
        "/livez/ping",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/readyz",
        "/readyz/ping",
        "/version",
    ];
    let mut paths: Vec<String> = fixed.map(str::to_owned).to_vec();
    for group in kinds.groups.iter().filter(|group| !group.name.is_empty()) {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(group.versions.iter().map(|one| format!("/apis/{}", one.api_version())));
    }
    paths.sort_unstable();
    ApiResponse::bytes(StatusCode::OK, for_reading(&json!({"paths": paths}))).unindented()
}

/// A value as it is shown where nobody asks for the short form.
fn for_reading<T: Serialize>(value: &T) -> bytes::Bytes {
    encode_json(value).map(|bytes| indent_json(&bytes)).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct About<'a> {
    major: &'a str,
    minor: &'a str,
    emulation_major: &'a str,
    emulation_minor: &'a str,
    min_compatibility_major: &'a str,
    min_compatibility_minor: String,
    git_version: &'a str,
    git_commit: &'a str,
    git_tree_state: &'static str,
    build_date: &'a str,
    go_version: &'static str,
    compiler: &'static str,
    platform: String,
}

/// `/version`.
pub(crate) fn version(
    info: &VersionInfo,
    asked: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    negotiate::choose(asked.accept, EndpointRepresentations::None, RouteKind::JsonOnly)?;
    let before = info.minor.parse().map_or(0, |minor: u32| minor.saturating_sub(1));
    let version = About {
        major: &info.major,
        minor: &info.minor,
        emulation_major: &info.major,
        emulation_minor: &info.minor,
        min_compatibility_major: &info.major,
        min_compatibility_minor: before.to_string(),
        git_version: &info.git_version,
        git_commit: &info.git_commit,
        git_tree_state: "clean",
        build_date: &info.build_date,
        go_version: "",
        compiler: "rustc",
        platform: format!("{}/{}", std::env::consts::OS, platform()),
    };
    Ok(ApiResponse::bytes(StatusCode::OK, for_reading(&version)).unindented())
}

/// The architecture by the name that container platforms use.
fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Core<'a> {
    kind: &'static str,
    versions: [&'static str; 1],
    #[serde(rename = "serverAddressByClientCIDRs")]
    addresses: [Address<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Address<'a> {
    #[serde(rename = "clientCIDR")]
    client_range: &'static str,
    server_address: &'a str,
}

/// `/api`. The address is the one under which the client found this server.
pub(crate) fn core_versions(asked: DiscoveryRequest<'_>) -> ApiResponse {
    let server_address = asked.host.unwrap_or("localhost");
    let address = Address { client_range: "0.0.0.0/0", server_address };
    ApiResponse::of(&Core { kind: "APIVersions", versions: ["v1"], addresses: [address] })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Others<'a> {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<OneGroup<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OneGroup<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: &'a str,
    versions: Vec<OneVersion<'a>>,
    preferred_version: OneVersion<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OneVersion<'a> {
    group_version: String,
    version: &'a str,
}

/// `/apis`.
pub(super) fn groups(kinds: &Kinds) -> ApiResponse {
    ApiResponse::of(&others(kinds))
}

/// The same as a value.
pub(super) fn groups_value(kinds: &Kinds) -> Value {
    serde_json::to_value(others(kinds)).unwrap_or_default()
}

/// A group of the list as a value.
pub(super) fn group_value_of(group: &Group) -> Value {
    serde_json::to_value(group_value(group)).unwrap_or_default()
}

fn others(kinds: &Kinds) -> Others<'_> {
    let groups = kinds.groups.iter().filter(|one| !one.name.is_empty());
    Others { kind: "APIGroupList", api_version: "v1", groups: groups.map(group_value).collect() }
}

/// `/apis/{group}`.
pub(crate) fn group(
    kinds: &Kinds,
    name: &str,
    asked: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    let Some(group) = kinds.group(name).filter(|_| !name.is_empty()) else {
        return Ok(ApiResponse::page_not_found());
    };
    negotiate::choose(asked.accept, EndpointRepresentations::None, RouteKind::Unrouted)?;
    let mut value = group_value(group);
    value.kind = Some("APIGroup");
    value.api_version = Some("v1");
    Ok(ApiResponse::of(&value))
}

fn group_value(group: &Group) -> OneGroup<'_> {
    let version = |one: &'_ Arc<GroupVersion>| one.api_version();
    let versions: Vec<OneVersion<'_>> = group
        .versions
        .iter()
        .map(|one| OneVersion { group_version: version(one), version: &one.version })
        .collect();
    let preferred = group.versions.first();
    OneGroup {
        kind: None,
        api_version: None,
        name: &group.name,
        versions,
        preferred_version: OneVersion {
            group_version: preferred.map(version).unwrap_or_default(),
            version: preferred.map_or("", |one| &one.version),
        },
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Served<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<Resource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    name: String,
    singular_name: &'a str,
    namespaced: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    kind: &'a str,
    verbs: &'a [Arc<str>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    short_names: &'a [Arc<str>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    categories: &'a [Arc<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    storage_version_hash: Option<String>,
}

/// `/api/v1` and `/apis/{group}/{version}`.
pub(crate) fn group_version(
    kinds: &Kinds,
    group: &str,
    version: &str,
    asked: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    let Some(found) = kinds.group_version(group, version) else {
        return nothing_at(kinds, group);
    };
    let route = if found.has_built_in() { RouteKind::Table } else { RouteKind::Unrouted };
    negotiate::choose(asked.accept, EndpointRepresentations::None, route)?;
    let mut resources = Vec::new();
    for row in &found.rows {
        resources.push(resource(row));
        resources.extend(row.subresources.iter().map(|sub| subresource(row, sub)));
    }
    Ok(ApiResponse::of(&Served {
        kind: "APIResourceList",
        // Which the core group is older than.
        api_version: (!group.is_empty()).then_some("v1"),
        group_version: found.api_version(),
        resources,
    }))
}

/// What is said of a path below a group and version that has nothing: built-in groups are in the
/// original's table of routes, which knows that it does not know; elsewhere nobody answers.
pub(crate) fn nothing_at(kinds: &Kinds, group: &str) -> Result<ApiResponse, Status> {
    let built_in = kinds
        .group(group)
        .is_some_and(|group| group.versions.iter().any(|version| version.has_built_in()));
    if built_in { Err(Status::no_such_path()) } else { Ok(ApiResponse::page_not_found()) }
}

fn resource(row: &KindRow) -> Resource<'_> {
    Resource {
        name: (*row.plural).to_owned(),
        singular_name: &row.singular,
        namespaced: row.is_namespaced(),
        group: None,
        version: None,
        kind: &row.kind,
        verbs: &row.verbs,
        short_names: if mainstay_fault::is_on("discovery-lacks-short-names") {
            &[]
        } else {
            &row.short_names
        },
        categories: &row.categories,
        storage_version_hash: row.is_stored().then(|| storage_hash(row)).flatten(),
    }
}

/// Tells clients when the form in which objects are stored becomes another one: the first eight bytes
/// of a digest of group, version and kind (`StorageVersionHash` of the original).
fn storage_hash(row: &KindRow) -> Option<String> {
    // Computed on the fly from other objects, never stored.
    if &*row.plural == "componentstatuses" {
        return None;
    }
    let (group, version) = match (&*row.group, &*row.kind) {
        // The original still stores these in the version before, so that a release back reads them.
        (group @ "apiextensions.k8s.io", "CustomResourceDefinition")
        | (group @ "storage.k8s.io", "VolumeAttributesClass") => (group, "v1beta1"),
        _ => row.storage_api_version.split_once('/').unwrap_or(("", &row.storage_api_version)),
    };
    let digest = Sha256::digest(format!("{group}/{version}/{}", row.kind));
    Some(BASE64_STANDARD.encode(&digest[..8]))
}

fn subresource<'a>(row: &'a KindRow, sub: &'a Subresource) -> Resource<'a> {
    let foreign = *sub.speaks.group != *row.group || *sub.speaks.version != *row.version;
    Resource {
        name: format!("{}/{}", row.plural, sub.name),
        singular_name: "",
        namespaced: row.is_namespaced(),
        group: foreign.then_some(sub.speaks.group.as_str()),
        version: foreign.then_some(sub.speaks.version.as_str()),
        kind: &sub.speaks.kind,
        verbs: &sub.verbs,
        short_names: &[],
        categories: &[],
        storage_version_hash: None,
    }
}
