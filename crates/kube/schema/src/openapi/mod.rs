//! `OpenAPI` documents: version 3 has one for each group-version and each discovery page, version 2
//! has one for all.
//!
//! Both versions come from the same list of operations and the same table of types, so they agree.
//! Their text is that of a real server. Documents are built on demand; [`hash`] detects a change
//! without building one.
//!
//! ```text
//! rows + CRDs ─────────► operations ─┬─► paths ───────┐
//!                                    └─► type names   ├─► version 3, version 2
//! table (+ its patches) ───────────────► types ───────┘
//! ```

mod custom;
mod kind;
pub mod merge;
mod naming;
mod operations;
mod parameters;
mod protobuf;
mod types;
mod v2;
mod v3;

use crate::builtin::{self, BuiltinKind};
use crate::crd;
use operations::Paths;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use std::fmt::Write as _;
use std::sync::OnceLock;
use types::Format;

const META: &str = "apimachinery.pkg.apis.meta.v1";
/// Title and version in each document.
const TITLE: &str = "Kubernetes";
const VERSION: &str = "1.35";

/// The paths of all documents of built-in kinds, in order: `api/v1`, `apis/apps`, `apis/apps/v1`, ….
pub fn pages() -> &'static [String] {
    static PAGES: OnceLock<Vec<String>> = OnceLock::new();
    PAGES.get_or_init(|| {
        let mut found = vec!["api".to_owned(), "apis".to_owned(), "version".to_owned()];
        for row in builtin::kinds() {
            found.push(page(row.group, row.version));
            if !row.group.is_empty() {
                found.push(format!("apis/{}", row.group));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    })
}

/// The path of the document of a group-version: `api/v1`, `apis/apps/v1`.
pub fn page(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// Whether a document is that of a discovery page, without kinds.
pub fn is_discovery(page: &str) -> bool {
    group_version(page).is_none()
}

/// Group and version of a document's path, if it has them.
fn group_version(page: &str) -> Option<(&str, &str)> {
    if let Some(version) = page.strip_prefix("api/") {
        return Some(("", version));
    }
    page.strip_prefix("apis/")?.split_once('/')
}

/// The version 3 document at a path: of a group-version, with its built-in kinds and the given CRDs,
/// or of a discovery page. None if neither exists.
pub fn document(page: &str, definitions: &[&crd::CustomResourceDefinition]) -> Option<Value> {
    let mut paths = Paths::default();
    let mut types = serde_json::Map::new();
    let mut built_in = true;
    if let Some((group, version)) = group_version(page) {
        let mut rows = rows(group, version).peekable();
        let custom = custom(group, version, definitions);
        built_in = rows.peek().is_some();
        if built_in {
            paths.add_resource_list(group, version);
        } else if custom.is_empty() {
            return None;
        }
        rows.for_each(|row| paths.add_builtin(row));
        for (definition, version) in custom {
            paths.add_custom(definition, version);
            custom::add(definition, version, Format::V3, &mut types);
        }
    } else {
        pages().iter().find(|path| *path == page)?;
        paths.add_discovery_page(page)?;
    }
    let mut names = paths.types();
    let object_meta = format!("io.k8s.{META}.ObjectMeta");
    let list_meta = format!("io.k8s.{META}.ListMeta");
    if !types.is_empty() {
        names.extend([object_meta.as_str(), list_meta.as_str()]);
    }
    types.extend(types::with_references(names, Format::V3));
    if !built_in {
        custom::remove_unserved_groups(&mut types);
    }
    let mut components = json!({"schemas": types});
    let mut info = json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"});
    if built_in {
        info = json!({"title": TITLE, "version": VERSION});
        components["securitySchemes"] = json!({"BearerToken": {
            "type": "apiKey",
            "description": "Bearer Token authentication",
            "name": "authorization",
            "in": "header",
        }});
    }
    Some(json!({
        "openapi": "3.0.0",
        "info": info,
        "paths": v3::paths(&paths),
        "components": components,
    }))
}

/// The version 2 document: all built-in kinds, and all served versions of the given CRDs.
pub fn swagger(definitions: &[&crd::CustomResourceDefinition]) -> Value {
    let mut paths = Paths::default();
    let mut types = serde_json::Map::new();
    for page in pages() {
        if let Some((group, version)) = group_version(page) {
            paths.add_resource_list(group, version);
        } else {
            let _ = paths.add_discovery_page(page);
        }
    }
    for row in builtin::kinds() {
        paths.add_builtin(row);
    }
    for definition in definitions {
        for version in definition.versions.iter().filter(|version| version.served) {
            paths.add_custom(definition, version);
            custom::add(definition, version, Format::V2, &mut types);
        }
    }
    types.extend(types::with_references(paths.types(), Format::V2));
    let (paths, parameters) = v2::paths(&paths);
    json!({
        "swagger": "2.0",
        "info": {"title": TITLE, "version": VERSION},
        "paths": paths,
        "definitions": types,
        "parameters": parameters,
        "securityDefinitions": {"BearerToken": {
            "description": "Bearer Token authentication",
            "type": "apiKey",
            "name": "authorization",
            "in": "header",
        }},
        "security": [{"BearerToken": []}],
    })
}

/// The version 2 document of [`swagger`] as protobuf.
pub fn swagger_protobuf(document: &Value) -> Vec<u8> {
    protobuf::document(document)
}

/// A hash that changes whenever the document at a path may change: 128 hexadecimal digits. It costs one
/// pass over the schemas of custom kinds.
pub fn hash(page: &str, definitions: &[&crd::CustomResourceDefinition]) -> String {
    static TABLE: OnceLock<[u8; 64]> = OnceLock::new();
    let mut hasher = Sha512::new();
    hasher.update(page);
    let (group, version) = group_version(page).unwrap_or_default();
    if pages().iter().any(|path| path == page) {
        let table = builtin::table::bytes();
        hasher.update(TABLE.get_or_init(|| Sha512::digest(table).into()));
    }
    for (definition, version) in custom(group, version, definitions) {
        hasher.update([1]);
        hasher.update(&definition.name);
        hasher.update(&definition.kind);
        hasher.update(&definition.list_kind);
        let parts = [version.status, version.scale.is_some(), definition.is_namespaced()];
        hasher.update(parts.map(u8::from));
        hasher.update(version.digest());
        for path in &version.selectable_fields {
            hasher.update(path);
            hasher.update([0]);
        }
    }
    hasher.finalize().iter().fold(String::with_capacity(128), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

fn rows<'a>(
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = &'static BuiltinKind> + use<'a> {
    builtin::kinds().iter().filter(move |row| row.group == group && row.version == version)
}

fn custom<'a>(
    group: &str,
    version: &str,
    definitions: &[&'a crd::CustomResourceDefinition],
) -> Vec<(&'a crd::CustomResourceDefinition, &'a crd::CrdVersion)> {
    definitions
        .iter()
        .filter(|definition| definition.group == group)
        .filter_map(|definition| Some((*definition, definition.version(version)?)))
        .collect()
}
