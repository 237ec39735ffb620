//! Group, version, kind, plural and scope: the identity of a kind.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Group, version and kind. The core group is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Gvk {
    /// API group; empty for the core group.
    pub group: String,
    /// Version inside the group, such as `v1beta1`.
    pub version: String,
    /// Kind in CamelCase.
    pub kind: String,
}

impl Gvk {
    /// A GVK from its three parts.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
    ) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Splits an `apiVersion` field: `v1` has the core group, `apps/v1` the group `apps`.
    pub fn from_api_version(api_version: &str, kind: impl Into<String>) -> Self {
        let (group, version) = split_api_version(api_version);
        Self::new(group, version, kind)
    }

    /// The `apiVersion` field: `group/version`, or the version alone for the core group.
    pub fn api_version(&self) -> String {
        join_api_version(&self.group, &self.version)
    }
}

impl fmt::Display for Gvk {
    /// Go's format, which messages contain: `apps/v1, Kind=Deployment`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}

/// Splits an `apiVersion` into group and version; the core group is empty.
fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

fn join_api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Whether objects of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// Objects live in a namespace.
    Namespaced,
    /// Objects belong to the whole cluster.
    Cluster,
}

/// A kind as clients address it, with all parts of the URLs of its objects.
///
/// Constants for built-in kinds are in [`crate::builtin`]; custom kinds are built at run time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: Cow<'static, str>,
    /// Version inside the group.
    pub version: Cow<'static, str>,
    /// Kind in CamelCase.
    pub kind: Cow<'static, str>,
    /// Plural, lower case: the segment of the URL.
    pub plural: Cow<'static, str>,
    /// Whether objects live in namespaces.
    pub scope: Scope,
}

impl Resource {
    /// A namespaced kind known at compile time.
    pub const fn namespaced(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self::constant(group, version, kind, plural, Scope::Namespaced)
    }

    /// A cluster-scoped kind known at compile time.
    pub const fn cluster(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
    ) -> Self {
        Self::constant(group, version, kind, plural, Scope::Cluster)
    }

    const fn constant(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        scope: Scope,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
            plural: Cow::Borrowed(plural),
            scope,
        }
    }

    /// A kind found at run time.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
        plural: impl Into<String>,
        scope: Scope,
    ) -> Self {
        Self {
            group: Cow::Owned(group.into()),
            version: Cow::Owned(version.into()),
            kind: Cow::Owned(kind.into()),
            plural: Cow::Owned(plural.into()),
            scope,
        }
    }

    /// The `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        join_api_version(&self.group, &self.version)
    }

    /// Group, version and kind.
    pub fn gvk(&self) -> Gvk {
        Gvk::new(self.group.as_ref(), self.version.as_ref(), self.kind.as_ref())
    }

    /// `plural.group`, or the plural alone for the core group, as in messages.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone().into_owned()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Whether objects live in namespaces.
    pub const fn is_namespaced(&self) -> bool {
        matches!(self.scope, Scope::Namespaced)
    }

    /// The URL path of the collection: of one namespace, or of all when `namespace` is none.
    pub fn collection_path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        match namespace {
            Some(namespace) if self.is_namespaced() => {
                format!("{root}/namespaces/{namespace}/{}", self.plural)
            }
            _ => format!("{root}/{}", self.plural),
        }
    }

    /// The URL path of one object.
    pub fn object_path(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{name}", self.collection_path(namespace))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_core_group_is_not_part_of_names_and_paths() {
        let pods = Resource::namespaced("", "v1", "Pod", "pods");
        assert_eq!(pods.api_version(), "v1");
        assert_eq!(pods.group_resource(), "pods");
        assert_eq!(pods.object_path(Some("a"), "b"), "/api/v1/namespaces/a/pods/b");
        assert_eq!(pods.collection_path(None), "/api/v1/pods");
    }

    #[test]
    fn paths_of_cluster_scoped_kinds_have_no_namespace() {
        let crds = Resource::cluster("g.io", "v1", "Thing", "things");
        assert_eq!(crds.object_path(Some("a"), "b"), "/apis/g.io/v1/things/b");
        assert_eq!(crds.gvk().to_string(), "g.io/v1, Kind=Thing");
    }
}
