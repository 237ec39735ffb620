//! Requirements: what a CSV needs before it can be installed, and whether it exists.

use super::serving::observed::ObservedServing;
use crate::fields::{Api, Crd, Csv, Rule, ServiceAccount};
use mainstay_api::{
    ClusterServiceVersion, DependentStatus, DeploymentPermissions, RequirementState,
    RequirementStatus,
};
use mainstay_controller::{
    gojson::{self, GoType},
    hash,
};
use mainstay_object::{NamespacedName, OwnerReference};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The observed state of the objects that a CSV names.
#[derive(Debug, Default)]
pub(crate) struct ObservedRequirements {
    /// `gitVersion` of the API server; none if it is unknown.
    pub(crate) server_version: Option<String>,
    /// CustomResourceDefinitions by name.
    pub(crate) crds: BTreeMap<String, Arc<Crd>>,
    /// ServiceAccounts of the namespace by name.
    pub(crate) accounts: BTreeMap<String, Arc<ServiceAccount>>,
    /// The permissions of the ServiceAccounts.
    pub(crate) grants: BTreeMap<String, Grants>,
    /// Required APIs that are served, with the uid of their APIService if that is available.
    pub(crate) served: BTreeMap<Api, Option<String>>,
    /// The other CSVs in the namespace, without copied ones, by name.
    pub(crate) siblings: BTreeMap<String, Arc<Csv>>,
    /// Why the replaced CSV must stay for now, if its operator says so.
    pub(crate) upgrade_block: Option<String>,
    /// The objects around the servers of the CSV.
    pub(crate) serving: ObservedServing,
}

/// The permissions of a ServiceAccount.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    /// Rules in the namespace: those of its Roles, and those of ClusterRoles that RoleBindings bind
    /// in it.
    pub(crate) namespaced: Vec<Rule>,
    /// Rules in the whole cluster.
    pub(crate) cluster: Vec<Rule>,
    /// Hashes of the namespaced permissions whose generated Role and RoleBinding exist unchanged.
    pub(crate) generated: BTreeSet<String>,
}

/// Whether all requirements are met, and the status of each, in upstream's order.
pub(crate) fn check(
    csv: &ClusterServiceVersion,
    observed: &ObservedRequirements,
) -> (bool, Vec<RequirementStatus>) {
    let mut out = Vec::new();
    check_min_kube_version(csv, observed, &mut out);
    check_crds(csv, observed, &mut out);
    check_api_services(csv, observed, &mut out);
    for api in &csv.spec.native_apis {
        let key =
            Api { group: api.group.clone(), version: api.version.clone(), kind: api.kind.clone() };
        let (status, message) = if observed.served.contains_key(&key) {
            (RequirementState::Present, "Native API exists")
        } else {
            (RequirementState::NotPresent, "Native API does not exist")
        };
        out.push(RequirementStatus {
            group: api.group.clone(),
            version: api.version.clone(),
            kind: api.kind.clone(),
            name: format!("{}.{}", api.version, api.group),
            status,
            message: message.to_owned(),
            ..RequirementStatus::default()
        });
    }
    check_service_accounts(csv, observed, &mut out);
    let met = out.iter().all(|requirement| {
        matches!(requirement.status, RequirementState::Present | RequirementState::DeploymentFound)
    });
    (met, out)
}

fn check_min_kube_version(
    csv: &ClusterServiceVersion,
    observed: &ObservedRequirements,
    out: &mut Vec<RequirementStatus>,
) {
    let wanted = &csv.spec.min_kube_version;
    if wanted.is_empty() {
        return;
    }
    let bad = RequirementState::PresentNotSatisfied;
    let (status, message) = match &observed.server_version {
        None => (bad, "Server version discovery error".to_owned()),
        Some(text) => {
            let server = text.strip_prefix('v').unwrap_or(text);
            let server = server.split('-').next().unwrap_or_default();
            let minimum = wanted.strip_prefix('v').unwrap_or(wanted);
            match (server.parse::<semver::Version>(), minimum.parse::<semver::Version>()) {
                (Err(_), _) => (bad, "Server version parsing error".to_owned()),
                (_, Err(_)) => (bad, "CSV version parsing error".to_owned()),
                (Ok(server), Ok(minimum))
                    if minimum.cmp_precedence(&server).is_gt()
                        && !mainstay_fault::is_on("any-kubernetes-is-new-enough") =>
                {
                    (
                        bad,
                        format!(
                            "CSV version requirement not met: minKubeVersion ({wanted}) > server version ({server})"
                        ),
                    )
                }
                _ => (
                    RequirementState::Present,
                    format!("CSV minKubeVersion ({wanted}) less than server version ({text})"),
                ),
            }
        }
    };
    out.push(RequirementStatus {
        group: "operators.coreos.com".to_owned(),
        version: "v1alpha1".to_owned(),
        kind: "ClusterServiceVersion".to_owned(),
        name: csv.metadata.name.clone(),
        status,
        message,
        ..RequirementStatus::default()
    });
}

fn check_crds(
    csv: &ClusterServiceVersion,
    observed: &ObservedRequirements,
    out: &mut Vec<RequirementStatus>,
) {
    let crds = &csv.spec.custom_resource_definitions;
    // Upstream lists each name once, sorted, whether owned or required.
    let mut all: BTreeMap<&str, (&str, bool)> = BTreeMap::new();
    for crd in &crds.required {
        all.insert(&crd.name, (&crd.version, false));
    }
    for crd in &crds.owned {
        all.insert(&crd.name, (&crd.version, true));
    }
    for (name, (version, owned)) in all {
        let (status, message, uuid) = match observed.crds.get(name) {
            None => (RequirementState::NotPresent, "CRD is not present".to_owned(), ""),
            Some(crd) => check_crd(csv, observed, crd, version, owned),
        };
        out.push(RequirementStatus {
            group: "apiextensions.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: "CustomResourceDefinition".to_owned(),
            name: name.to_owned(),
            status,
            message,
            uuid: uuid.to_owned(),
            ..RequirementStatus::default()
        });
    }
}

fn check_crd<'a>(
    csv: &ClusterServiceVersion,
    observed: &ObservedRequirements,
    crd: &'a Crd,
    version: &str,
    owned: bool,
) -> (RequirementState, String, &'a str) {
    let others = if owned {
        predecessors_installed_with(csv, observed, &crd.installed_alongside)
    } else {
        Vec::new()
    };
    if !others.is_empty() {
        return (
            RequirementState::PresentNotSatisfied,
            format!("CRD installed alongside other CSV(s): {}", others.join(", ")),
            "",
        );
    }
    if !crd.versions.iter().any(|(name, served)| name == version && *served) {
        return (RequirementState::NotPresent, "CRD version not served".to_owned(), "");
    }
    if !crd.established {
        return (
            RequirementState::PresentNotAvailable,
            "CRD is present but the Established condition is False (not available)".to_owned(),
            "",
        );
    }
    let message = "CRD is present and Established condition is true";
    (RequirementState::Present, message.to_owned(), &crd.uid)
}

/// The CSVs that this one replaces, directly or not, and that the CustomResourceDefinition was
/// installed alongside. Empty once it was installed alongside this CSV: before that, its
/// InstallPlan has not updated the CustomResourceDefinition.
fn predecessors_installed_with(
    csv: &ClusterServiceVersion,
    observed: &ObservedRequirements,
    installed_alongside: &[NamespacedName],
) -> Vec<String> {
    let own_namespace: Vec<&NamespacedName> = installed_alongside
        .iter()
        .filter(|key| *key.namespace == *csv.metadata.namespace)
        .collect();
    if own_namespace.iter().any(|key| *key.name == *csv.metadata.name) {
        return Vec::new();
    }
    let mut names: Vec<String> = Vec::new();
    let mut visited = BTreeSet::new();
    let mut next = csv.spec.replaces.as_str();
    while !next.is_empty() && visited.insert(next) {
        if own_namespace.iter().any(|key| &*key.name == next)
            && observed.siblings.contains_key(next)
        {
            names.push(next.to_owned());
        }
        // As upstream, the chain ends at a CSV that the CustomResourceDefinition does not name.
        next = match observed.siblings.get(next) {
            Some(sibling) if own_namespace.iter().any(|key| &*key.name == next) => {
                &sibling.replaces
            }
            _ => "",
        };
    }
    names.sort();
    names
}

fn check_api_services(
    csv: &ClusterServiceVersion,
    observed: &ObservedRequirements,
    out: &mut Vec<RequirementStatus>,
) {
    let entry =
        |group: &str, version: &str, status: RequirementState, uuid: &str| RequirementStatus {
            group: "apiregistration.k8s.io".to_owned(),
            version: "v1".to_owned(),
            kind: "APIService".to_owned(),
            name: format!("{version}.{group}"),
            status,
            uuid: uuid.to_owned(),
            ..RequirementStatus::default()
        };
    let services = &csv.spec.api_service_definitions;
    for api in &services.required {
        let key =
            Api { group: api.group.clone(), version: api.version.clone(), kind: api.kind.clone() };
        let found = observed.served.get(&key).and_then(Option::as_deref);
        out.push(match found {
            Some(uid) => entry(&api.group, &api.version, RequirementState::Present, uid),
            None => entry(&api.group, &api.version, RequirementState::NotPresent, ""),
        });
    }
    for api in &services.owned {
        let found =
            csv.spec.install.spec.deployments.iter().any(|spec| spec.name == api.deployment_name);
        let status = if found {
            RequirementState::DeploymentFound
        } else {
            RequirementState::from("DeploymentNotFound")
        };
        out.push(entry(&api.group, &api.version, status, ""));
    }
}

fn check_service_accounts(
    csv: &ClusterServiceVersion,
    observed: &ObservedRequirements,
    out: &mut Vec<RequirementStatus>,
) {
    let details = &csv.spec.install.spec;
    let mut statuses: Vec<RequirementStatus> = Vec::new();
    for (entries, cluster) in [(&details.permissions, false), (&details.cluster_permissions, true)]
    {
        for permission in entries {
            check_permission(csv, observed, permission, cluster, &mut statuses);
        }
    }
    out.extend(statuses);
}

fn check_permission(
    csv: &ClusterServiceVersion,
    observed: &ObservedRequirements,
    permission: &DeploymentPermissions,
    cluster: bool,
    statuses: &mut Vec<RequirementStatus>,
) {
    let name = &permission.service_account_name;
    let at = statuses.iter().position(|status| status.name == *name);
    let mut status = at.map_or_else(
        || RequirementStatus {
            version: "v1".to_owned(),
            kind: "ServiceAccount".to_owned(),
            name: name.clone(),
            status: RequirementState::Present,
            ..RequirementStatus::default()
        },
        |at| statuses[at].clone(),
    );
    let empty = Grants::default();
    let grants = observed.grants.get(name).unwrap_or(&empty);
    match observed.accounts.get(name) {
        None => {
            status.status = RequirementState::NotPresent;
            status.message = "Service account does not exist".into();
        }
        Some(account) if is_owned_by_other_csv(&account.owners, csv) => {
            status.status = RequirementState::PresentNotSatisfied;
            status.message = "Service account is owned by another ClusterServiceVersion".into();
        }
        // The generated Role and RoleBinding are unchanged, so the permission is granted. The
        // original leaves the ServiceAccount out of the list then, and its list is the reference.
        Some(_)
            if !cluster
                && grants.generated.contains(&hash::rules(&permission.rules.clone().into())) =>
        {
            return;
        }
        Some(_) => {
            for rule in &permission.rules {
                let scope = if cluster { "cluster" } else { "namespaced" };
                let wanted: Rule = serde_json::from_value(rule.clone()).unwrap_or_default();
                let granted = mainstay_fault::is_on("rights-of-accounts-are-not-checked")
                    || allows(&grants.cluster, &wanted)
                    || (!cluster && allows_together(&grants.namespaced, &grants.cluster, &wanted));
                if !granted {
                    status.status = RequirementState::PresentNotSatisfied;
                    status.message = "Policy rule not satisfied for service account".into();
                }
                status.dependents.push(DependentStatus {
                    group: "rbac.authorization.k8s.io".to_owned(),
                    kind: "PolicyRule".to_owned(),
                    version: "v1".to_owned(),
                    status: if granted {
                        RequirementState::Satisfied
                    } else {
                        RequirementState::NotSatisfied
                    },
                    message: format!("{scope} rule:{}", gojson::encode(GoType::PolicyRule, rule)),
                    uuid: String::new(),
                });
            }
        }
    }
    match at {
        Some(at) => statuses[at] = status,
        None => statuses.push(status),
    }
}

/// Why a rule in the permissions of a CSV is invalid. As upstream, only rules count whose
/// ServiceAccount exists and belongs to the CSV.
pub(crate) fn invalid_rule(
    csv: &ClusterServiceVersion,
    observed: &ObservedRequirements,
) -> Option<&'static str> {
    let details = &csv.spec.install.spec;
    let all = details.permissions.iter().chain(&details.cluster_permissions);
    let usable = all.filter(|permission| {
        let account = observed.accounts.get(&permission.service_account_name);
        account.is_some_and(|account| !is_owned_by_other_csv(&account.owners, csv))
    });
    usable.flat_map(|permission| &permission.rules).find_map(|rule| {
        let has = |field: &str| {
            rule.get(field).and_then(Value::as_array).is_some_and(|all| !all.is_empty())
        };
        if !has("verbs") {
            Some("policy rule must have at least one verb")
        } else if has("nonResourceURLs")
            && ["apiGroups", "resources", "resourceNames"].into_iter().any(has)
        {
            Some("rule cannot apply to both regular resources and non-resource URLs")
        } else {
            None
        }
    })
}

/// Whether CSVs own an object, and this CSV is not among them.
pub(crate) fn is_owned_by_other_csv(
    owners: &[OwnerReference],
    csv: &ClusterServiceVersion,
) -> bool {
    let mut csv_owners = owners.iter().filter(|owner| owner.kind == csv.kind).peekable();
    csv_owners.peek().is_some() && !csv_owners.any(|owner| owner.uid == csv.metadata.uid)
}

fn allows_together(namespaced: &[Rule], cluster: &[Rule], wanted: &Rule) -> bool {
    let both: Vec<Rule> = namespaced.iter().chain(cluster).cloned().collect();
    allows(&both, wanted)
}

/// Whether the granted rules cover every verb, resource and name of the wanted rule.
pub(crate) fn allows(granted: &[Rule], wanted: &Rule) -> bool {
    let names: Vec<&str> = match wanted.resource_names.as_slice() {
        [] => vec![""],
        names => names.iter().map(String::as_str).collect(),
    };
    wanted.verbs.iter().all(|verb| {
        wanted.urls.iter().all(|url| granted.iter().any(|rule| covers_url(rule, verb, url)))
            && wanted.api_groups.iter().all(|group| {
                wanted.resources.iter().all(|resource| {
                    names.iter().all(|name| {
                        granted.iter().any(|rule| covers(rule, verb, group, resource, name))
                    })
                })
            })
    })
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|entry| entry == "*" || entry == wanted)
}

fn covers(rule: &Rule, verb: &str, group: &str, resource: &str, name: &str) -> bool {
    let any_part = resource.split_once('/').map(|(_, part)| format!("*/{part}"));
    has(&rule.verbs, verb)
        && has(&rule.api_groups, group)
        && (has(&rule.resources, resource)
            || any_part.is_some_and(|any| rule.resources.contains(&any)))
        && (rule.resource_names.is_empty()
            || rule.resource_names.iter().any(|allowed| allowed == name))
}

fn covers_url(rule: &Rule, verb: &str, url: &str) -> bool {
    has(&rule.verbs, verb)
        && rule.urls.iter().any(|pattern| {
            pattern == "*"
                || pattern == url
                || pattern.strip_suffix('*').is_some_and(|prefix| url.starts_with(prefix))
        })
}

#[cfg(test)]
mod tests;
