//! CustomResourceDefinitions of OLM v1 as objects, and the ClusterRoles for users of their kinds.

use crate::manifests::embedded;
use crate::{names, resources};
use mainstay_object::{Object, builtin};
use serde_json::json;

/// Which fields and kinds of OLM v1 a cluster has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrdChannel {
    /// ClusterCatalog and ClusterExtension with their stable fields.
    Standard,
    /// All fields, and ClusterObjectSet.
    Experimental,
}

impl CrdChannel {
    /// The value of the annotation [`names::olm_v1::CRD_CHANNEL_ANNOTATION`].
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Experimental => "experimental",
        }
    }
}

/// The CustomResourceDefinitions of a channel, sorted by plural name.
pub fn olm_v1_crds(channel: CrdChannel) -> Vec<Object> {
    let mut crds = embedded();
    crds.retain(|crd| {
        crd.str(&["spec", "group"]) == Some(resources::OLM_V1_GROUP)
            && crd.annotation(names::olm_v1::CRD_CHANNEL_ANNOTATION) == Some(channel.as_str())
    });
    crds
}

/// Definitions for a controller that writes objects with the permissions of ServiceAccounts, as up to OLM
/// v1.10: an extension must name one, and keeps it.
#[must_use]
pub fn require_service_accounts(mut definitions: Vec<Object>) -> Vec<Object> {
    let extensions = resources::CLUSTER_EXTENSION.group_resource();
    for definition in definitions.iter_mut().filter(|crd| crd.name() == extensions) {
        let mut versions = definition.array(&["spec", "versions"]).to_vec();
        for version in &mut versions {
            let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
            if let Some(required) = spec["required"].as_array_mut() {
                required.push("serviceAccount".into());
            }
            let account = &mut spec["properties"]["serviceAccount"];
            account["required"] = json!(["name"]);
            if let Some(account) = account.as_object_mut() {
                account.remove("minProperties");
            }
            let rules = &mut account["properties"]["name"]["x-kubernetes-validations"];
            for rule in rules.as_array_mut().into_iter().flatten() {
                if rule["rule"] == "self == oldSelf" {
                    rule["message"] = "name is immutable".into();
                }
            }
        }
        definition.set(&["spec", "versions"], versions.into());
    }
    definitions
}

/// The ClusterRoles for users of ClusterCatalogs and ClusterExtensions.
///
/// The viewer roles are aggregated into `view`, and with it into `edit` and `admin`. The editor roles are
/// not: an extension installs objects with the permissions of the cluster's administrator. No role names
/// ClusterObjectSets, which can contain Secrets.
pub fn olm_v1_cluster_roles() -> Vec<Object> {
    let view = &["get", "list", "watch"][..];
    let edit = &["create", "delete", "get", "list", "patch", "update", "watch"][..];
    [resources::CLUSTER_CATALOG, resources::CLUSTER_EXTENSION]
        .into_iter()
        .flat_map(|resource| {
            [("editor", edit), ("viewer", view)].map(|(suffix, verbs)| {
                let name = format!("{}-{suffix}-role", resource.kind.to_lowercase());
                let mut role = Object::new(&builtin::CLUSTER_ROLE.gvk(), &name);
                if suffix == "viewer" {
                    role.set_label("rbac.authorization.k8s.io/aggregate-to-view", "true");
                }
                role.set(
                    &["rules"],
                    json!([{
                        "apiGroups": [resource.group],
                        "resources": [resource.plural],
                        "verbs": verbs,
                    }, {
                        "apiGroups": [resource.group],
                        "resources": [format!("{}/status", resource.plural)],
                        "verbs": ["get"],
                    }]),
                );
                role
            })
        })
        .collect()
}
