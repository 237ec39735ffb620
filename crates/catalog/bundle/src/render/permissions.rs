//! Accounts, roles and bindings.

use super::{RenderContext, generated_names, objects, registry_v1::Permission};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The account that every namespace has; it is never made.
const DEFAULT: &str = "default";
const GROUP: &str = "rbac.authorization.k8s.io";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

impl Permission {
    fn account(&self) -> &str {
        if self.account.is_empty() { DEFAULT } else { &self.account }
    }
}

/// The accounts that permissions are for, by name.
pub(super) fn accounts(job: &RenderContext<'_>) -> Vec<Value> {
    let content = job.content;
    let all = content.permissions.iter().chain(&content.cluster_permissions);
    let names: BTreeSet<&str> = all.map(Permission::account).collect();
    let made = names.into_iter().filter(|name| *name != DEFAULT);
    made.map(|name| {
        let metadata = objects::metadata(name, job.settings.namespace);
        objects::object("v1", "ServiceAccount", fields([("metadata", metadata)]))
    })
    .collect()
}

/// A role and its binding in each watched namespace for each permission; none if all are watched.
pub(super) fn roles(job: &RenderContext<'_>) -> Vec<Value> {
    if job.watches_all() {
        return Vec::new();
    }
    let pairs = job.targets.iter().flat_map(|namespace| {
        let namespace = if mainstay_fault::is_on("roles-are-where-the-operator-runs") {
            job.settings.namespace
        } else {
            namespace
        };
        job.content.permissions.iter().flat_map(|permission| pair(job, permission, "", namespace))
    });
    pairs.collect()
}

/// A cluster role and its binding for each cluster-wide permission, and if all namespaces are
/// watched, for the others too. Those may see namespaces besides.
pub(super) fn cluster_roles(job: &RenderContext<'_>) -> Vec<Value> {
    let mut all = job.content.cluster_permissions.clone();
    if job.watches_all() {
        let namespaces = json!({"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["namespaces"]});
        all.extend(job.content.permissions.iter().cloned().map(|mut permission| {
            if !mainstay_fault::is_on("operators-for-all-see-no-namespaces") {
                permission.rules.get_or_insert_default().push(namespaces.clone());
            }
            permission
        }));
    }
    all.iter().flat_map(|permission| pair(job, permission, "Cluster", "")).collect()
}

fn pair(
    job: &RenderContext<'_>,
    permission: &Permission,
    prefix: &str,
    namespace: &str,
) -> [Value; 2] {
    let account = permission.account();
    let name = generated_names::of_permission(&job.content.name, account, permission);
    let metadata = objects::metadata(&name, namespace);
    let kind = format!("{prefix}Role");
    let mut subject = json!({"kind": "ServiceAccount", "name": account});
    subject["namespace"] = job.settings.namespace.into();
    let binding = fields([
        ("metadata", metadata.clone()),
        ("subjects", json!([subject])),
        ("roleRef", json!({"apiGroup": GROUP, "kind": kind, "name": name})),
    ]);
    let rules = permission.rules.clone().map_or(Value::Null, Value::Array);
    let role = fields([("metadata", metadata), ("rules", rules)]);
    [
        objects::object(API_VERSION, &kind, role),
        objects::object(API_VERSION, &format!("{kind}Binding"), binding),
    ]
}

fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
