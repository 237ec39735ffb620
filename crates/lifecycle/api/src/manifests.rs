//! The custom resource definitions, embedded, and the roles of people who work with them.

use crate::resources;
use flate2::read::DeflateDecoder;
use mainstay_object::{Object, known};
use serde_json::json;
use std::io::Read;

/// Deflated JSON: a list of manifests. Written by `cargo xtask crds`.
static PACKED: &[u8] = include_bytes!("crds.bin");

/// The eight custom resource definitions of our group, in alphabetical order of their plurals.
///
/// Inflated and parsed by every call (they are needed once, when a server starts): about a
/// millisecond.
pub fn crds() -> Vec<Object> {
    let mut all = packed();
    all.retain(|crd| crd.str(&["spec", "group"]) == Some(resources::GROUP));
    all
}

/// The definition of `OperatorHub`. It is not among [`crds`]: a cluster that knows the group
/// `config.openshift.io` looks like OpenShift to many operators.
pub fn operator_hub_crd() -> Option<Object> {
    let name = resources::OPERATOR_HUB.group_resource();
    packed().into_iter().find(|crd| crd.name() == name)
}

fn packed() -> Vec<Object> {
    let mut json = Vec::new();
    // A test holds that the embedded bytes are sound.
    if DeflateDecoder::new(PACKED).read_to_end(&mut json).is_err() {
        return Vec::new();
    }
    serde_json::from_slice(&json).unwrap_or_default()
}

/// The cluster roles that let people with the default roles of a namespace order operators there:
/// `aggregate-olm-edit` for `admin` and `edit`, `aggregate-olm-view` for `view`, too. Nothing like
/// it is there for `OperatorGroups`: who may make them decides where operators reach.
pub fn cluster_roles() -> Vec<Object> {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let ours = "operators.coreos.com";
    let kinds = ["clusterserviceversions", "catalogsources", "installplans", "subscriptions"];
    let seen = [&kinds[..], &["operatorgroups"]].concat();
    let view = ["get", "list", "watch"];
    let packages = ["packagemanifests", "packagemanifests/icon"];
    [
        (
            "aggregate-olm-edit",
            &["admin", "edit"][..],
            json!([
                rule(ours, &["subscriptions"], &["create", "update", "patch", "delete"]),
                rule(ours, &kinds, &["delete"]),
            ]),
        ),
        (
            "aggregate-olm-view",
            &["admin", "edit", "view"],
            json!([
                rule(ours, &seen, &view),
                rule("packages.operators.coreos.com", &packages, &view),
            ]),
        ),
    ]
    .into_iter()
    .map(|(name, into, rules)| {
        let mut role = Object::new(&known::CLUSTER_ROLE.gvk(), name);
        for default in into {
            let label = format!("rbac.authorization.k8s.io/aggregate-to-{default}");
            role.set_label(&label, "true");
        }
        role.set(&["rules"], rules);
        role
    })
    .collect()
}
