//! Read access to stored objects, for rules of one object that depend on others.

use crate::Object;

/// Objects by resource, namespace and name, decoded.
pub trait Objects: Sync {
    /// One object. `resource` is the store's name (`services`, `apps/deployments`); `namespace` is
    /// empty for cluster-scoped kinds.
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Object>;

    /// All objects of a kind in one namespace, or in all.
    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Object>;
}
