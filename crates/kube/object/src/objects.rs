//! Read access to decoded objects: what rules that look at other objects need of a store.

use crate::Object;

/// Objects by resource, namespace and name, decoded.
pub trait Objects: Sync {
    /// One object. `resource` is the store's name (`services`, `apps/deployments`); `namespace` is
    /// empty for cluster-scoped kinds.
    fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Object>;

    /// All objects of a kind, of one namespace or of all.
    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Object>;
}
