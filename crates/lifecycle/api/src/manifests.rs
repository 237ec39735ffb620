//! Embedded CustomResourceDefinitions, and the aggregated ClusterRoles for users of OLM classic.

use crate::resources;
use flate2::read::DeflateDecoder;
use mainstay_object::{Object, builtin};
use serde_json::json;
use std::io::Read;

/// Deflated JSON: a list of manifests. Written by `cargo xtask crds`.
static COMPRESSED_CRDS: &[u8] = include_bytes!("crds.bin");

/// The eight CustomResourceDefinitions of `operators.coreos.com`, sorted by plural name.
///
/// Each call decompresses and parses them, in about a millisecond: a server needs them once, when it
/// starts.
pub fn crds() -> Vec<Object> {
    let mut crds = embedded();
    crds.retain(|crd| crd.str(&["spec", "group"]) == Some(resources::GROUP));
    crds
}

/// The CustomResourceDefinition of OperatorHub. It is not part of [`crds`]: many operators take a
/// cluster with the group `config.openshift.io` for OpenShift.
pub fn operator_hub_crd() -> Option<Object> {
    let name = resources::OPERATOR_HUB.group_resource();
    embedded().into_iter().find(|crd| crd.name() == name)
}

/// All embedded definitions, those of both channels of OLM v1 too.
pub(crate) fn embedded() -> Vec<Object> {
    let mut json = Vec::new();
    // A test checks that the embedded bytes are valid.
    if DeflateDecoder::new(COMPRESSED_CRDS).read_to_end(&mut json).is_err() {
        return Vec::new();
    }
    serde_json::from_slice(&json).unwrap_or_default()
}

/// The ClusterRoles that let users with the default roles of a namespace install operators there:
/// `aggregate-olm-edit` is aggregated into `admin` and `edit`, `aggregate-olm-view` also into `view`.
/// Neither allows writing OperatorGroups, because these decide which namespaces an operator may watch.
pub fn cluster_roles() -> Vec<Object> {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let own_group = "operators.coreos.com";
    let kinds = ["clusterserviceversions", "catalogsources", "installplans", "subscriptions"];
    let readable = [&kinds[..], &["operatorgroups"]].concat();
    let view = ["get", "list", "watch"];
    let packages = ["packagemanifests", "packagemanifests/icon"];
    [
        (
            "aggregate-olm-edit",
            &["admin", "edit"][..],
            json!([
                rule(own_group, &["subscriptions"], &["create", "update", "patch", "delete"]),
                rule(own_group, &kinds, &["delete"]),
            ]),
        ),
        (
            "aggregate-olm-view",
            &["admin", "edit", "view"],
            json!([
                rule(own_group, &readable, &view),
                rule("packages.operators.coreos.com", &packages, &view),
            ]),
        ),
    ]
    .into_iter()
    .map(|(name, into, rules)| {
        let mut role = Object::new(&builtin::CLUSTER_ROLE.gvk(), name);
        for default in into {
            let label = format!("rbac.authorization.k8s.io/aggregate-to-{default}");
            role.set_label(&label, "true");
        }
        role.set(&["rules"], rules);
        role
    })
    .collect()
}
