//! API discovery: the group and its resources.

use crate::{API_VERSION, GROUP, KIND, PLURAL, VERSION};
use serde_json::{Value, json};

/// The `APIGroup`.
pub(crate) fn group() -> Value {
    let version = json!({"groupVersion": API_VERSION, "version": VERSION});
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": GROUP,
        "versions": [version], "preferredVersion": version,
    })
}

/// The `APIResourceList` of its version.
pub(crate) fn resources() -> Value {
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": API_VERSION,
        "resources": [
            {
                "name": PLURAL, "singularName": "packagemanifest", "namespaced": true,
                "kind": KIND, "verbs": ["get", "list", "watch"],
            },
            {
                "name": format!("{PLURAL}/icon"), "singularName": "", "namespaced": true,
                "kind": KIND, "verbs": ["get"],
            },
        ],
    })
}
