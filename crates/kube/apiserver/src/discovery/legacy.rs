//! Legacy discovery: one document for each group and group-version.
//!
//! The fields of each response are in kube-apiserver's order, because `kubectl get --raw` shows
//! them to people.

use super::cache::DiscoveryRequest;
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

/// `/`: the list of paths.
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
        paths.extend(
            group
                .versions
                .iter()
                .map(|group_version| format!("/apis/{}", group_version.api_version())),
        );
    }
    paths.sort_unstable();
    ApiResponse::bytes(StatusCode::OK, indented_json(&json!({"paths": paths}))).unindented()
}

/// A value as indented JSON, which is the default of these paths.
fn indented_json<T: Serialize>(value: &T) -> bytes::Bytes {
    encode_json(value).map(|bytes| indent_json(&bytes)).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionResponse<'a> {
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
    request: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    negotiate::choose(request.accept, EndpointRepresentations::None, RouteKind::JsonOnly)?;
    let previous_minor = info.minor.parse().map_or(0, |minor: u32| minor.saturating_sub(1));
    let version = VersionResponse {
        major: &info.major,
        minor: &info.minor,
        emulation_major: &info.major,
        emulation_minor: &info.minor,
        min_compatibility_major: &info.major,
        min_compatibility_minor: previous_minor.to_string(),
        git_version: &info.git_version,
        git_commit: &info.git_commit,
        git_tree_state: "clean",
        build_date: &info.build_date,
        go_version: "",
        compiler: "rustc",
        platform: format!("{}/{}", std::env::consts::OS, platform()),
    };
    Ok(ApiResponse::bytes(StatusCode::OK, indented_json(&version)).unindented())
}

/// The architecture under its name in container platforms.
fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiVersions<'a> {
    kind: &'static str,
    versions: [&'static str; 1],
    #[serde(rename = "serverAddressByClientCIDRs")]
    addresses: [ServerAddress<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerAddress<'a> {
    #[serde(rename = "clientCIDR")]
    client_range: &'static str,
    server_address: &'a str,
}

/// `/api`. The address is the one under which the client reached this server.
pub(crate) fn core_versions(request: DiscoveryRequest<'_>) -> ApiResponse {
    let server_address = request.host.unwrap_or("localhost");
    let address = ServerAddress { client_range: "0.0.0.0/0", server_address };
    ApiResponse::of(&ApiVersions { kind: "APIVersions", versions: ["v1"], addresses: [address] })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroupList<'a> {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<ApiGroup<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroup<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: &'a str,
    versions: Vec<VersionForDiscovery<'a>>,
    preferred_version: VersionForDiscovery<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VersionForDiscovery<'a> {
    group_version: String,
    version: &'a str,
}

/// `/apis`.
pub(super) fn groups(kinds: &Kinds) -> ApiResponse {
    ApiResponse::of(&group_list(kinds))
}

/// The same list as a value.
pub(super) fn groups_value(kinds: &Kinds) -> Value {
    serde_json::to_value(group_list(kinds)).unwrap_or_default()
}

/// A group of the list as a value.
pub(super) fn group_value_of(group: &Group) -> Value {
    serde_json::to_value(group_value(group)).unwrap_or_default()
}

fn group_list(kinds: &Kinds) -> ApiGroupList<'_> {
    let groups = kinds.groups.iter().filter(|group| !group.name.is_empty());
    ApiGroupList {
        kind: "APIGroupList",
        api_version: "v1",
        groups: groups.map(group_value).collect(),
    }
}

/// `/apis/{group}`.
pub(crate) fn group(
    kinds: &Kinds,
    name: &str,
    request: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    let Some(group) = kinds.group(name).filter(|_| !name.is_empty()) else {
        return Ok(ApiResponse::page_not_found());
    };
    negotiate::choose(request.accept, EndpointRepresentations::None, RouteKind::Unrouted)?;
    let mut value = group_value(group);
    value.kind = Some("APIGroup");
    value.api_version = Some("v1");
    Ok(ApiResponse::of(&value))
}

fn group_value(group: &Group) -> ApiGroup<'_> {
    let version = |group_version: &'_ Arc<GroupVersion>| group_version.api_version();
    let versions: Vec<VersionForDiscovery<'_>> = group
        .versions
        .iter()
        .map(|group_version| VersionForDiscovery {
            group_version: version(group_version),
            version: &group_version.version,
        })
        .collect();
    let preferred = group.versions.first();
    ApiGroup {
        kind: None,
        api_version: None,
        name: &group.name,
        versions,
        preferred_version: VersionForDiscovery {
            group_version: preferred.map(version).unwrap_or_default(),
            version: preferred.map_or("", |group_version| &group_version.version),
        },
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResourceList<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    group_version: String,
    resources: Vec<ApiResource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource<'a> {
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
    request: DiscoveryRequest<'_>,
) -> Result<ApiResponse, Status> {
    let Some(found) = kinds.group_version(group, version) else {
        return unknown_resource(kinds, group);
    };
    let route = if found.has_built_in() { RouteKind::Table } else { RouteKind::Unrouted };
    negotiate::choose(request.accept, EndpointRepresentations::None, route)?;
    let mut resources = Vec::new();
    for row in &found.rows {
        resources.push(resource(row));
        resources.extend(row.subresources.iter().map(|sub| subresource(row, sub)));
    }
    Ok(ApiResponse::of(&ApiResourceList {
        kind: "APIResourceList",
        // The core group is older than this field.
        api_version: (!group.is_empty()).then_some("v1"),
        group_version: found.api_version(),
        resources,
    }))
}

/// The refusal of a path whose group-version or resource does not exist. kube-apiserver has a route
/// for each built-in group, which answers with a Status; other groups have none.
pub(crate) fn unknown_resource(kinds: &Kinds, group: &str) -> Result<ApiResponse, Status> {
    let built_in = kinds
        .group(group)
        .is_some_and(|group| group.versions.iter().any(|version| version.has_built_in()));
    if built_in { Err(Status::no_such_path()) } else { Ok(ApiResponse::page_not_found()) }
}

fn resource(row: &KindRow) -> ApiResource<'_> {
    ApiResource {
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

/// The storage version hash, by which clients notice a new storage version: the first eight bytes
/// of a digest of group, version and kind (`StorageVersionHash` in kube-apiserver).
fn storage_hash(row: &KindRow) -> Option<String> {
    // Computed from other objects, never stored.
    if &*row.plural == "componentstatuses" {
        return None;
    }
    let (group, version) = match (&*row.group, &*row.kind) {
        // kube-apiserver still stores these in the previous version, so that the previous release
        // can read them.
        (group @ "apiextensions.k8s.io", "CustomResourceDefinition")
        | (group @ "storage.k8s.io", "VolumeAttributesClass") => (group, "v1beta1"),
        _ => row.storage_api_version.split_once('/').unwrap_or(("", &row.storage_api_version)),
    };
    let digest = Sha256::digest(format!("{group}/{version}/{}", row.kind));
    Some(BASE64_STANDARD.encode(&digest[..8]))
}

fn subresource<'a>(row: &'a KindRow, sub: &'a Subresource) -> ApiResource<'a> {
    let has_other_version = *sub.gvk.group != *row.group || *sub.gvk.version != *row.version;
    ApiResource {
        name: format!("{}/{}", row.plural, sub.name),
        singular_name: "",
        namespaced: row.is_namespaced(),
        group: has_other_version.then_some(sub.gvk.group.as_str()),
        version: has_other_version.then_some(sub.gvk.version.as_str()),
        kind: &sub.gvk.kind,
        verbs: &sub.verbs,
        short_names: &[],
        categories: &[],
        storage_version_hash: None,
    }
}
