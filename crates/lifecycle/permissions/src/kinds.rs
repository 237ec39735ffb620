//! Kinds of rendered objects: their plural and scope, which permissions are written with.

use mainstay_object::builtin::{self, addons, openshift};
use mainstay_object::{Gvk, Resource};

/// Finds the plural and the scope of a kind, usually through the discovery of a cluster.
pub trait KindResolver {
    /// The resource of a kind; none if the cluster does not serve it.
    fn resolve(&self, kind: &Gvk) -> Option<Resource>;
}

impl<F: Fn(&Gvk) -> Option<Resource>> KindResolver for F {
    fn resolve(&self, kind: &Gvk) -> Option<Resource> {
        self(kind)
    }
}

/// The kinds that bundles contain, for work without a cluster: those of registry+v1 bundles and of
/// cert-manager, in any version.
#[derive(Clone, Copy, Debug, Default)]
pub struct BundleKinds;

/// The kinds, with any of their versions.
const KINDS: [&Resource; 32] = [
    &builtin::NAMESPACE,
    &builtin::SERVICE,
    &builtin::SERVICE_ACCOUNT,
    &builtin::SECRET,
    &builtin::CONFIG_MAP,
    &builtin::DEPLOYMENT,
    &builtin::STATEFUL_SET,
    &builtin::DAEMON_SET,
    &builtin::JOB,
    &builtin::CRON_JOB,
    &builtin::ROLE,
    &builtin::ROLE_BINDING,
    &builtin::CLUSTER_ROLE,
    &builtin::CLUSTER_ROLE_BINDING,
    &builtin::CUSTOM_RESOURCE_DEFINITION,
    &builtin::NETWORK_POLICY,
    &builtin::POD_DISRUPTION_BUDGET,
    &builtin::PRIORITY_CLASS,
    &builtin::MUTATING_WEBHOOK_CONFIGURATION,
    &builtin::VALIDATING_WEBHOOK_CONFIGURATION,
    &addons::PROMETHEUS_RULE,
    &addons::SERVICE_MONITOR,
    &addons::POD_MONITOR,
    &addons::VERTICAL_POD_AUTOSCALER,
    &addons::ISSUER,
    &addons::CERTIFICATE,
    &addons::CLUSTER_ISSUER,
    &openshift::CONSOLE_YAML_SAMPLE,
    &openshift::CONSOLE_QUICK_START,
    &openshift::CONSOLE_CLI_DOWNLOAD,
    &openshift::CONSOLE_LINK,
    &openshift::CONSOLE_PLUGIN,
];

impl KindResolver for BundleKinds {
    fn resolve(&self, kind: &Gvk) -> Option<Resource> {
        let mut kinds = KINDS.iter();
        let known = kinds.find(|known| known.group == kind.group && known.kind == kind.kind)?;
        let (plural, scope) = (&*known.plural, known.scope);
        Some(Resource::new(&*kind.group, &*kind.version, &*kind.kind, plural, scope))
    }
}
