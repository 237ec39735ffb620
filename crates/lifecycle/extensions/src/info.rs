//! What the subsystem needs of a cluster before it starts: CustomResourceDefinitions and permissions, for
//! each choice of features.

use crate::features::{Features, TrustMode};
use mainstay_api::{CrdChannel, olm_v1_crds, require_service_accounts, resources};
use mainstay_controller::SubsystemInfo;
use mainstay_object::Object;
use serde_json::{Value, json};

/// The description of the subsystem with the default features.
pub static SUBSYSTEM: SubsystemInfo = info(standard, cluster_admin);
static EXPERIMENTAL: SubsystemInfo = info(experimental, cluster_admin);
static STANDARD_ACCOUNTS: SubsystemInfo = info(standard_with_accounts, service_account);
static EXPERIMENTAL_ACCOUNTS: SubsystemInfo = info(experimental_with_accounts, service_account);
static OBJECT_SET_ACCOUNTS: SubsystemInfo =
    info(experimental_with_accounts, service_account_with_object_sets);

static STANDARD_APPROVED: SubsystemInfo = info(standard, approved);
static EXPERIMENTAL_APPROVED: SubsystemInfo = info(experimental, approved);
static OBJECT_SET_APPROVED: SubsystemInfo = info(experimental, approved_with_object_sets);

/// The description of the subsystem with these features.
pub const fn subsystem(features: Features) -> &'static SubsystemInfo {
    match (features.channel, features.trust) {
        (CrdChannel::Standard, TrustMode::ClusterAdmin) => &SUBSYSTEM,
        (CrdChannel::Experimental, TrustMode::ClusterAdmin) => &EXPERIMENTAL,
        (CrdChannel::Standard, TrustMode::ServiceAccount) => &STANDARD_ACCOUNTS,
        (CrdChannel::Experimental, TrustMode::ServiceAccount) if features.object_sets => {
            &OBJECT_SET_ACCOUNTS
        }
        (CrdChannel::Experimental, TrustMode::ServiceAccount) => &EXPERIMENTAL_ACCOUNTS,
        (CrdChannel::Standard, TrustMode::Approved) => &STANDARD_APPROVED,
        (CrdChannel::Experimental, TrustMode::Approved) if features.object_sets => {
            &OBJECT_SET_APPROVED
        }
        (CrdChannel::Experimental, TrustMode::Approved) => &EXPERIMENTAL_APPROVED,
    }
}

const fn info(definitions: fn() -> Vec<Object>, permissions: fn() -> Vec<Value>) -> SubsystemInfo {
    SubsystemInfo {
        name: "extensions",
        summary: "Operator Lifecycle Manager v1: ClusterCatalogs and ClusterExtensions",
        definitions,
        cluster_roles: mainstay_api::olm_v1_cluster_roles,
        permissions,
    }
}

fn standard() -> Vec<Object> {
    olm_v1_crds(CrdChannel::Standard)
}

fn experimental() -> Vec<Object> {
    olm_v1_crds(CrdChannel::Experimental)
}

fn standard_with_accounts() -> Vec<Object> {
    require_service_accounts(standard())
}

fn experimental_with_accounts() -> Vec<Object> {
    require_service_accounts(experimental())
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// All verbs on all resources: an extension installs whatever its bundle has, and only a subject that has
/// permissions may grant them.
fn cluster_admin() -> Vec<Value> {
    vec![rule("*", &["*"], &["*"]), json!({"nonResourceURLs": ["*"], "verbs": ["*"]})]
}

/// The permissions of the controllers themselves. Objects of extensions are read and written as their
/// ServiceAccounts.
fn service_account() -> Vec<Value> {
    let olm = resources::OLM_V1_GROUP;
    let kinds = ["clustercatalogs", "clusterextensions"];
    let parts = kinds.map(|kind| [format!("{kind}/status"), format!("{kind}/finalizers")]).concat();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    vec![
        rule(olm, &kinds, &["get", "list", "watch", "create", "patch", "update"]),
        rule(olm, &parts, &["patch", "update"]),
        // Pull secrets, the releases of extensions, and the certificates of their webhooks.
        rule("", &["secrets"], &["get", "list", "watch", "create", "update", "delete"]),
        rule("", &["serviceaccounts"], &["get", "impersonate"]),
        rule("", &["events"], &["create", "patch"]),
        // The condition Ready.
        rule("apps", &["deployments"], &["list", "watch"]),
        // The report about missing permissions.
        rule(
            "rbac.authorization.k8s.io",
            &["clusterroles", "clusterrolebindings", "roles", "rolebindings"],
            &["list"],
        ),
        // The kinds that dependencies of bundles ask for. Those that an uninstallation keeps lose their owner, also if
        // the account of the extension has no permissions any more.
        rule(
            "apiextensions.k8s.io",
            &["customresourcedefinitions"],
            &["get", "list", "watch", "patch"],
        ),
        rule("config.openshift.io", &["imagedigestmirrorsets", "imagetagmirrorsets"], &["list"]),
        rule("operator.openshift.io", &["imagecontentsourcepolicies"], &["list"]),
    ]
}

/// The permissions of the controllers themselves, if ClusterObjectSets apply the objects of extensions.
fn service_account_with_object_sets() -> Vec<Value> {
    [service_account(), object_sets()].concat()
}

/// The permissions of the controllers themselves, if they keep the accounts of extensions: also to write roles with
/// permissions that they do not hold, and to bind them.
fn approved() -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let kept = ["get", "list", "watch", "create", "update", "delete"];
    let mut rules = service_account();
    rules.extend([
        rule("", &["serviceaccounts"], &kept),
        rule(group, &["clusterroles", "roles", "clusterrolebindings", "rolebindings"], &kept),
        rule(group, &["clusterroles", "roles"], &["escalate", "bind"]),
    ]);
    rules
}

/// The same, if ClusterObjectSets apply the objects of extensions.
fn approved_with_object_sets() -> Vec<Value> {
    [approved(), object_sets()].concat()
}

/// What ClusterObjectSets need in addition.
fn object_sets() -> Vec<Value> {
    let olm = resources::OLM_V1_GROUP;
    vec![
        rule(
            olm,
            &["clusterobjectsets"],
            &["get", "list", "watch", "create", "patch", "update", "delete"],
        ),
        rule(
            olm,
            &["clusterobjectsets/status", "clusterobjectsets/finalizers"],
            &["patch", "update"],
        ),
        // The owner references of Secrets with objects.
        rule("", &["secrets"], &["patch"]),
    ]
}
