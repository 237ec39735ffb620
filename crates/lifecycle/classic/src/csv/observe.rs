//! Observation: collects from caches and the API what a decision about a CSV depends on.

use super::requirements::{Grants, ObservedRequirements, is_owned_by_other_csv};
use super::{serving, upgradeable};
use crate::context::{Caches, Context};
use crate::error::Error;
use crate::fields::{self, Api, Role, Rule};
use mainstay_api::{ClusterServiceVersion, DeploymentPermissions, SubscriptionConfig, names};
use mainstay_controller::{WithOperation as _, hash};
use mainstay_object::{Gvk, NamespacedName, builtin};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The observed state of everything that a CSV requires or owns.
pub(crate) async fn observe_requirements(
    context: &Context,
    csv: &ClusterServiceVersion,
) -> Result<ObservedRequirements, Error> {
    let caches = &context.caches;
    let namespace = &csv.metadata.namespace;
    let crds = &csv.spec.custom_resource_definitions;
    let details = &csv.spec.install.spec;
    let accounts: BTreeSet<&str> = details
        .permissions
        .iter()
        .chain(&details.cluster_permissions)
        .map(|permission| permission.service_account_name.as_str())
        .collect();
    let mut observed = ObservedRequirements {
        siblings: sibling_csvs(caches, csv),
        crds: crds
            .owned
            .iter()
            .chain(&crds.required)
            .filter_map(|description| {
                let crd = caches.crds.get(&NamespacedName::cluster(description.name.as_str()))?;
                Some((description.name.clone(), crd))
            })
            .collect(),
        grants: accounts
            .iter()
            .map(|account| ((*account).to_owned(), grants(caches, csv, account)))
            .collect(),
        accounts: accounts
            .iter()
            .filter_map(|account| {
                let key = NamespacedName::new(namespace.as_str(), *account);
                Some(((*account).to_owned(), caches.service_accounts.get(&key)?))
            })
            .collect(),
        upgrade_block: (!csv.spec.replaces.is_empty())
            .then(|| {
                let replaced = NamespacedName::new(namespace.as_str(), csv.spec.replaces.as_str());
                upgradeable::block_reason(&*caches.operator_conditions.get(&replaced)?)
            })
            .flatten(),
        ..ObservedRequirements::default()
    };
    if !csv.spec.min_kube_version.is_empty() {
        observed.server_version = context.cluster.server_version().await;
    }
    observed.serving = serving::observed::observe(caches, csv, &observed.siblings);
    observe_served_apis(context, csv, &mut observed).await?;
    Ok(observed)
}

/// The other CSVs of the namespace, without copied ones.
fn sibling_csvs(
    caches: &Caches,
    csv: &ClusterServiceVersion,
) -> BTreeMap<String, Arc<fields::Csv>> {
    caches
        .csvs
        .list(Some(&csv.metadata.namespace))
        .into_iter()
        .filter(|(key, sibling)| *key.name != *csv.metadata.name && !sibling.is_copy())
        .map(|(key, csv)| (key.name.to_string(), csv))
        .collect()
}

/// Looks up the APIs and APIServices that a CSV requires. There is no cache for them, because few
/// CSVs require any.
async fn observe_served_apis(
    context: &Context,
    csv: &ClusterServiceVersion,
    observed: &mut ObservedRequirements,
) -> Result<(), Error> {
    let native = csv.spec.native_apis.iter().map(|kind| (&kind.group, &kind.version, &kind.kind));
    let services = csv
        .spec
        .api_service_definitions
        .required
        .iter()
        .map(|description| (&description.group, &description.version, &description.kind));
    for (group, version, kind) in native.chain(services) {
        let gvk = Gvk { group: group.clone(), version: version.clone(), kind: kind.clone() };
        let found = context.cluster.resource_of(&gvk).await.during("looking up a required kind")?;
        if found.is_none() {
            continue;
        }
        let service = context
            .cluster
            .find(&builtin::API_SERVICE, None, &format!("{version}.{group}"))
            .await
            .during("reading an APIService")?;
        let uid = service
            .filter(|service| service.condition("Available") == Some("True"))
            .map(|service| service.uid().to_owned());
        let api = Api { group: group.clone(), version: version.clone(), kind: kind.clone() };
        observed.served.insert(api, uid);
    }
    Ok(())
}

/// The permissions of a ServiceAccount in the namespace of a CSV, without Roles that belong to
/// other CSVs.
fn grants(caches: &Caches, csv: &ClusterServiceVersion, account: &str) -> Grants {
    let namespace = csv.metadata.namespace.as_str();
    let subject_names = [
        format!("system:serviceaccount:{namespace}:{account}"),
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
        "system:authenticated".to_owned(),
    ];
    let mut grants = Grants::default();
    let own_rules = |role: Option<Arc<Role>>| -> Vec<Rule> {
        role.filter(|role| !is_owned_by_other_csv(&role.owners, csv))
            .map(|role| role.rules.clone())
            .unwrap_or_default()
    };
    for subject_name in &subject_names {
        for (_, binding) in caches.cluster_role_bindings.indexed(subject_name) {
            if !is_owned_by_other_csv(&binding.owners, csv) && binding.role.0 == "ClusterRole" {
                let key = NamespacedName::cluster(binding.role.1.as_str());
                grants.cluster.extend(own_rules(caches.cluster_roles.get(&key)));
            }
        }
        for (key, binding) in caches.role_bindings.indexed(subject_name) {
            if *key.namespace != *namespace || is_owned_by_other_csv(&binding.owners, csv) {
                continue;
            }
            let role = binding.role.1.as_str();
            grants.namespaced.extend(own_rules(if binding.role.0 == "ClusterRole" {
                caches.cluster_roles.get(&NamespacedName::cluster(role))
            } else {
                caches.roles.get(&NamespacedName::new(namespace, role))
            }));
        }
    }
    let permissions = &csv.spec.install.spec.permissions;
    grants.generated = permissions
        .iter()
        .filter(|permission| permission.service_account_name == account)
        .filter(|permission| is_unchanged(caches, csv, permission))
        .map(|permission| hash::rules(&permission.rules.clone().into()))
        .collect();
    grants
}

/// Whether the Role and RoleBinding that were generated for a permission exist with their hash
/// labels.
fn is_unchanged(
    caches: &Caches,
    csv: &ClusterServiceVersion,
    permission: &DeploymentPermissions,
) -> bool {
    let namespace = csv.metadata.namespace.as_str();
    let rules_hash = hash::rules(&permission.rules.clone().into());
    let is_current = |labels: &BTreeMap<String, String>, hash: &str| {
        labels.get(names::PERMISSIONS_HASH).map(String::as_str) == Some(hash)
            && is_owner(labels, namespace, &csv.metadata.name)
    };
    // The name is derived from the permission.
    let entry = json!({
        "serviceAccountName": permission.service_account_name, "rules": permission.rules,
    });
    let name = hash::role_name(&csv.metadata.name, &permission.service_account_name, &entry);
    let key = NamespacedName::new(namespace, name.as_str());
    let role_is_current =
        caches.roles.get(&key).is_some_and(|role| is_current(&role.labels, &rules_hash));
    let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
    let subjects = json!([{
        "kind": "ServiceAccount", "name": permission.service_account_name, "namespace": namespace,
    }]);
    let binding_hash = hash::binding(&role_ref, &subjects);
    role_is_current
        && caches
            .role_bindings
            .get(&key)
            .is_some_and(|found| is_current(&found.labels, &binding_hash))
}

/// Whether `olm.owner*` labels name a CSV.
pub(crate) fn is_owner(labels: &BTreeMap<String, String>, namespace: &str, name: &str) -> bool {
    let is = |key: &str, value: &str| labels.get(key).map(String::as_str) == Some(value);
    is(names::OWNER, name)
        && is(names::OWNER_NAMESPACE, namespace)
        && is(names::OWNER_KIND, "ClusterServiceVersion")
}

/// The Deployments with the owner labels of a CSV, by name.
pub(crate) fn owned_deployments(
    caches: &Caches,
    key: &NamespacedName,
) -> BTreeMap<String, Arc<fields::Deployment>> {
    caches
        .deployments
        .list(Some(&key.namespace))
        .into_iter()
        .filter(|(_, deployment)| {
            deployment.owner.as_ref().is_some_and(|(name, namespace)| {
                **name == *key.name && **namespace == *key.namespace
            })
        })
        .map(|(key, deployment)| (key.name.to_string(), deployment))
        .collect()
}

/// `spec.config` of the Subscription that installed a CSV. If several Subscriptions installed it,
/// the first by name counts.
pub(crate) fn subscription_config(
    caches: &Caches,
    key: &NamespacedName,
) -> Option<SubscriptionConfig> {
    caches
        .subscriptions
        .list(Some(&key.namespace))
        .into_iter()
        .map(|(_, subscription)| subscription)
        .find(|subscription| {
            let status = &subscription.status;
            *status.installed_csv == *key.name || *status.current_csv == *key.name
        })
        .and_then(|subscription| subscription.spec.config.clone())
}
