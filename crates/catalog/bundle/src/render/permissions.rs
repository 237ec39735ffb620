//! ServiceAccounts, roles and role bindings.

use super::{RenderContext, generated_names, objects, registry_v1::Permission};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The ServiceAccount that every namespace has; it is never created.
const DEFAULT: &str = "default";
const GROUP: &str = "rbac.authorization.k8s.io";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

impl Permission {
    fn account(&self) -> &str {
        if self.account.is_empty() { DEFAULT } else { &self.account }
    }
}

/// The ServiceAccounts of the permissions, by name.
pub(super) fn service_accounts(context: &RenderContext<'_>) -> Vec<Value> {
    let bundle = context.bundle;
    let all = bundle.permissions.iter().chain(&bundle.cluster_permissions);
    let names: BTreeSet<&str> = all.map(Permission::account).collect();
    let created = names.into_iter().filter(|name| *name != DEFAULT);
    created
        .map(|name| {
            let metadata = objects::metadata(name, context.settings.namespace);
            objects::object("v1", "ServiceAccount", fields([("metadata", metadata)]))
        })
        .collect()
}

/// A Role and its RoleBinding for each permission in each watched namespace; none if the operator
/// watches all namespaces.
pub(super) fn roles(context: &RenderContext<'_>) -> Vec<Value> {
    if context.watches_all() {
        return Vec::new();
    }
    let pairs = context.targets.iter().flat_map(|namespace| {
        let namespace = if mainstay_fault::is_on("roles-are-where-the-operator-runs") {
            context.settings.namespace
        } else {
            namespace
        };
        context
            .bundle
            .permissions
            .iter()
            .flat_map(|permission| role_and_binding(context, permission, "", namespace))
    });
    pairs.collect()
}

/// A ClusterRole and its binding for each cluster permission. If the operator watches all
/// namespaces, the other permissions get one too, which also allows to read namespaces.
pub(super) fn cluster_roles(context: &RenderContext<'_>) -> Vec<Value> {
    let mut all = context.bundle.cluster_permissions.clone();
    if context.watches_all() {
        let namespaces = json!({"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["namespaces"]});
        all.extend(context.bundle.permissions.iter().cloned().map(|mut permission| {
            if !mainstay_fault::is_on("operators-for-all-see-no-namespaces") {
                permission.rules.get_or_insert_default().push(namespaces.clone());
            }
            permission
        }));
    }
    all.iter().flat_map(|permission| role_and_binding(context, permission, "Cluster", "")).collect()
}

fn role_and_binding(
    context: &RenderContext<'_>,
    permission: &Permission,
    prefix: &str,
    namespace: &str,
) -> [Value; 2] {
    let account = permission.account();
    let name = generated_names::permission_name(&context.bundle.name, account, permission);
    let metadata = objects::metadata(&name, namespace);
    let kind = format!("{prefix}Role");
    let mut subject = json!({"kind": "ServiceAccount", "name": account});
    subject["namespace"] = context.settings.namespace.into();
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
