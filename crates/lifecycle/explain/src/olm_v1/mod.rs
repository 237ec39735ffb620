//! OLM v1: why a ClusterExtension, a ClusterCatalog or a ClusterObjectSet is not healthy.
//!
//! ```text
//! ClusterExtension ─► catalogs, filters ─► bundle ─► pull, render, checks ─► objects ─► Deployments ─► Pods
//!                     ExtensionResolution            failure                 ClusterObjectSets
//! ```

mod cluster_catalog;
mod dependencies;
mod extension;
mod failure;
mod object_set;
mod removal;
mod resolution;

pub(crate) use cluster_catalog::finding as cluster_catalog_finding;
pub(crate) use extension::finding as extension_finding;
pub(crate) use object_set::finding as object_set_finding;
pub(crate) use removal::deleted_extension_finding;

pub use failure::permission_remedy;
pub use resolution::{DependencyCheck, ExtensionResolution, FetchedPackage, selected_catalogs};

use crate::ClusterObjects;
use mainstay_api::names::olm_v1::{OWNER_KIND_LABEL, OWNER_NAME_LABEL};
use mainstay_object::Object;
use serde_json::Value;

/// A condition of an object of OLM v1.
#[derive(Clone, Copy)]
struct ReportedCondition<'o> {
    status: &'o str,
    reason: &'o str,
    message: &'o str,
    /// Whether the condition is about the present spec.
    is_current: bool,
}

impl<'o> ReportedCondition<'o> {
    /// The condition of a type.
    fn of(object: &'o Object, kind: &str) -> Option<Self> {
        let mut conditions = object.array(&["status", "conditions"]).iter();
        let found = conditions.find(|condition| condition["type"] == kind)?;
        let field = |name: &str| crate::text(found, name);
        let observed = found.get("observedGeneration").and_then(Value::as_i64);
        Some(Self {
            status: field("status"),
            reason: field("reason"),
            message: field("message"),
            is_current: observed.is_none_or(|observed| observed >= object.generation()),
        })
    }
}

/// The name of the ClusterExtension that owns an object, by its labels.
fn owning_extension(object: &Object) -> Option<&str> {
    let is_extension = object.label(OWNER_KIND_LABEL).is_none_or(|kind| kind == "ClusterExtension");
    object.label(OWNER_NAME_LABEL).filter(|_| is_extension)
}

/// The objects of a ClusterExtension.
fn owned_objects<'w>(
    cluster: &'w ClusterObjects,
    extension: &'w str,
) -> impl Iterator<Item = &'w Object> {
    cluster.objects.iter().filter(move |object| owning_extension(object) == Some(extension))
}

/// An object as kubectl names it.
fn object_text(object: &Object) -> String {
    match object.namespace() {
        "" => format!("{} {}", object.kind(), object.name()),
        namespace => format!("{} {namespace}/{}", object.kind(), object.name()),
    }
}
