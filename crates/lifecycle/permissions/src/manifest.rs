//! Install manifest: the rendered objects of a bundle, each with its resource and namespace.

use crate::kinds::KindResolver;
use crate::rbac_object::{GROUP, RbacBinding, RbacObjects, RbacRole};
use crate::rule::text;
use mainstay_gocompat::quote;
use mainstay_object::{Gvk, Resource, Scope};
use serde_json::Value;
use std::fmt;

/// The rendered objects of a bundle, as permissions depend on them.
#[derive(Clone, Debug)]
pub struct InstallManifest {
    objects: Vec<ManifestObject>,
    /// The Roles, ClusterRoles and bindings among the objects.
    pub(crate) rbac: RbacObjects,
}

/// One rendered object.
#[derive(Clone, Debug)]
pub(crate) struct ManifestObject {
    pub(crate) resource: Resource,
    /// The namespace; empty for a cluster-scoped kind.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// A kind that the cluster does not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind {
    /// The place of the object in the manifest, from zero.
    pub index: usize,
    /// The kind.
    pub kind: Gvk,
    /// The name of the object; may be empty.
    pub name: String,
}

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, kind, name } = self;
        let name = if name.is_empty() { String::new() } else { format!(" (name: {name})") };
        // Go's text of a version has the slash even in the core group, and the mapper's has not.
        write!(
            f,
            "could not get REST mapping for object {index} in manifest with GVK {}/{}, Kind={}{name}: no matches \
             for kind {} in version {}",
            kind.group,
            kind.version,
            kind.kind,
            quote(&kind.kind),
            quote(&kind.api_version())
        )
    }
}

/// The manifest has kinds that the cluster does not serve, such as `ServiceMonitor` without the Prometheus
/// operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .unknown.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ManifestError {
    /// The objects of these kinds; never empty.
    pub unknown: Vec<UnknownKind>,
}

impl ManifestError {
    /// The message of the condition, in upstream's words.
    pub fn condition_message(&self) -> String {
        crate::report::condition_message(&[], Some(&self.to_string())).unwrap_or_default()
    }
}

impl InstallManifest {
    /// The manifest of rendered objects. Objects of namespaced kinds that name no namespace get into the
    /// namespace of the extension.
    ///
    /// # Errors
    /// If the resolver does not know some of the kinds.
    pub fn new<'v>(
        objects: impl IntoIterator<Item = &'v Value>,
        kinds: &dyn KindResolver,
        namespace: &str,
    ) -> Result<Self, ManifestError> {
        let mut manifest = Self { objects: Vec::new(), rbac: RbacObjects::default() };
        let mut unknown = Vec::new();
        for (index, object) in objects.into_iter().enumerate() {
            let kind = Gvk::from_api_version(text(object, "/apiVersion"), text(object, "/kind"));
            let name = text(object, "/metadata/name").to_owned();
            let Some(resource) = kinds.resolve(&kind) else {
                unknown.push(UnknownKind { index, kind, name });
                continue;
            };
            let namespace = match (resource.scope, text(object, "/metadata/namespace")) {
                (Scope::Cluster, _) => "",
                (Scope::Namespaced, "") => namespace,
                (Scope::Namespaced, namespace) => namespace,
            };
            manifest.add_rbac(&resource, namespace, object);
            let namespace = namespace.to_owned();
            manifest.objects.push(ManifestObject { resource, namespace, name });
        }
        if unknown.is_empty() { Ok(manifest) } else { Err(ManifestError { unknown }) }
    }

    fn add_rbac(&mut self, resource: &Resource, namespace: &str, object: &Value) {
        if resource.group != GROUP {
            return;
        }
        let namespace = namespace.to_owned();
        match &*resource.plural {
            "roles" | "clusterroles" => {
                self.rbac.add_role(RbacRole { namespace, ..RbacRole::from_value(object) });
            }
            "rolebindings" | "clusterrolebindings" => {
                self.rbac.add_binding(RbacBinding { namespace, ..RbacBinding::from_value(object) });
            }
            _ => {}
        }
    }

    /// The objects in order.
    pub(crate) fn objects(&self) -> &[ManifestObject] {
        &self.objects
    }

    /// The Roles, ClusterRoles and bindings of the manifest.
    pub fn rbac_objects(&self) -> &RbacObjects {
        &self.rbac
    }
}
