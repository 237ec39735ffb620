//! `OpenAPI` v3 documents: one for each group-version, of built-in kinds and of custom ones.
//!
//! A document says what kubectl and other clients look for: every path with its verbs, query
//! parameters and kind, and every type that the kinds reach, with descriptions, merge keys and
//! list types. It is made on demand from the compressed table; [`hash`] tells whether it changed
//! without making it. Paths below `watch/`, deprecated for years, are left out, and parameters are
//! described in fewer words than the original uses.
//!
//! ```text
//! rows + table + definitions ─► paths ┐
//!                               types ┴─► document
//! ```

mod paths;
mod types;

use crate::builtin::{self, BuiltinKind};
use crate::crd;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};
use std::fmt::Write as _;
use std::sync::OnceLock;

const META: &str = "apimachinery.pkg.apis.meta.v1";

/// The document of one group-version: its built-in kinds, and the versions of the definitions
/// given that have its name. None if there is neither.
pub fn document(group: &str, version: &str, definitions: &[&crd::Definition]) -> Option<Value> {
    let rows: Vec<&'static BuiltinKind> = rows(group, version).collect();
    let custom = custom(group, version, definitions);
    if rows.is_empty() && custom.is_empty() {
        return None;
    }
    let mut paths = Map::new();
    let mut types = types::Types::default();
    for row in &rows {
        paths::builtin(row, &mut paths, &mut types);
    }
    for (definition, version) in &custom {
        paths::custom(definition, version, &mut paths, &mut types);
    }
    for name in ["APIResourceList", "DeleteOptions", "Patch", "Status", "WatchEvent"] {
        types.reference(&format!("{META}.{name}"));
    }
    let root = paths::root(group, version);
    paths.insert(format!("{root}/"), paths::resources(group, version));
    Some(json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "1.35"},
        "paths": paths,
        "components": {
            "schemas": types.finish(),
            "securitySchemes": {"BearerToken": {
                "type": "apiKey",
                "description": "Bearer Token authentication",
                "name": "authorization",
                "in": "header",
            }},
        },
    }))
}

/// A text that changes whenever the document of a group-version may have changed: 128 hexadecimal
/// digits. Costs no more than reading the schemas of custom kinds once.
pub fn hash(group: &str, version: &str, definitions: &[&crd::Definition]) -> String {
    static TABLE: OnceLock<[u8; 64]> = OnceLock::new();
    let mut hasher = Sha512::new();
    hasher.update(group);
    hasher.update([0]);
    hasher.update(version);
    if rows(group, version).next().is_some() {
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
    }
    hasher.finalize().iter().fold(String::with_capacity(128), |mut text, byte| {
        // Writing to a text cannot fail.
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
    definitions: &[&'a crd::Definition],
) -> Vec<(&'a crd::Definition, &'a crd::Version)> {
    definitions
        .iter()
        .filter(|definition| definition.group == group)
        .filter_map(|definition| Some((*definition, definition.version(version)?)))
        .collect()
}
