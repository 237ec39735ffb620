//! Discovery group by group, as clients from before the aggregated form walk it.

use super::aggregated::texts;
use crate::http::answer::Answer;
use crate::registry::{Group, KindRow, Kinds, Subresource};
use crate::server::VersionInfo;
use mainstay_object::Status;
use serde_json::{Value, json};

/// `/`: the paths there are.
pub(crate) fn root(kinds: &Kinds) -> Answer {
    let mut paths = vec!["/api".to_owned(), "/api/v1".to_owned(), "/apis".to_owned()];
    for group in kinds.groups.iter().filter(|group| !group.name.is_empty()) {
        paths.push(format!("/apis/{}", group.name));
        paths.extend(group.versions.iter().map(|one| format!("/apis/{}", one.api_version())));
    }
    let rest = ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"];
    paths.extend(rest.map(str::to_owned));
    Answer::ok(&json!({"paths": paths}))
}

/// `/version`.
pub(crate) fn version(info: &VersionInfo) -> Answer {
    Answer::ok(&json!({
        "major": info.major,
        "minor": info.minor,
        "gitVersion": info.git_version,
        "gitCommit": info.git_commit,
        "gitTreeState": "clean",
        "buildDate": info.build_date,
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, platform()),
    }))
}

/// The architecture by the name that container platforms use.
fn platform() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// `/api`.
pub(crate) fn core_versions() -> Answer {
    Answer::ok(&json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [],
    }))
}

/// `/apis`.
pub(super) fn groups(kinds: &Kinds) -> Answer {
    let groups: Vec<Value> =
        kinds.groups.iter().filter(|one| !one.name.is_empty()).map(group_value).collect();
    Answer::ok(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

/// `/apis/{group}`.
pub(crate) fn group(kinds: &Kinds, name: &str) -> Result<Answer, Status> {
    let group = kinds.group(name).filter(|_| !name.is_empty()).ok_or_else(Status::no_such_path)?;
    let mut value = group_value(group);
    value["kind"] = "APIGroup".into();
    value["apiVersion"] = "v1".into();
    Ok(Answer::ok(&value))
}

fn group_value(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|one| json!({"groupVersion": one.api_version(), "version": &*one.version}))
        .collect();
    let preferred = versions.first().cloned().unwrap_or_default();
    json!({"name": &*group.name, "versions": versions, "preferredVersion": preferred})
}

/// `/api/v1` and `/apis/{group}/{version}`.
pub(crate) fn group_version(kinds: &Kinds, group: &str, version: &str) -> Result<Answer, Status> {
    let found = kinds.group_version(group, version).ok_or_else(Status::no_such_path)?;
    let mut resources = Vec::new();
    for row in &found.rows {
        resources.push(resource(row));
        resources.extend(row.subresources.iter().map(|sub| subresource(row, sub)));
    }
    Ok(Answer::ok(&json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found.api_version(),
        "resources": resources,
    })))
}

fn resource(row: &KindRow) -> Value {
    let mut out = json!({
        "name": &*row.plural,
        "singularName": &*row.singular,
        "namespaced": row.is_namespaced(),
        "kind": &*row.kind,
        "verbs": texts(&row.verbs),
    });
    if !row.short_names.is_empty() {
        out["shortNames"] = texts(&row.short_names);
    }
    if !row.categories.is_empty() {
        out["categories"] = texts(&row.categories);
    }
    out
}

fn subresource(row: &KindRow, sub: &Subresource) -> Value {
    let mut out = json!({
        "name": format!("{}/{}", row.plural, sub.name),
        "singularName": "",
        "namespaced": row.is_namespaced(),
        "kind": sub.speaks.kind,
        "verbs": texts(&sub.verbs),
    });
    if *sub.speaks.group != *row.group || *sub.speaks.version != *row.version {
        out["group"] = sub.speaks.group.as_str().into();
        out["version"] = sub.speaks.version.as_str().into();
    }
    out
}
