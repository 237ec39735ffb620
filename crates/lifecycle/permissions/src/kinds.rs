//! Kinds of rendered objects: their plural and scope, which permissions are written with.

use mainstay_object::{Gvk, Resource, Scope, builtin};

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

/// Group, kind, plural and scope of the kinds that Kubernetes does not serve itself.
const FURTHER: [(&str, &str, &str, Scope); 12] = [
    ("monitoring.coreos.com", "PrometheusRule", "prometheusrules", Scope::Namespaced),
    ("monitoring.coreos.com", "ServiceMonitor", "servicemonitors", Scope::Namespaced),
    ("monitoring.coreos.com", "PodMonitor", "podmonitors", Scope::Namespaced),
    ("autoscaling.k8s.io", "VerticalPodAutoscaler", "verticalpodautoscalers", Scope::Namespaced),
    ("console.openshift.io", "ConsoleYAMLSample", "consoleyamlsamples", Scope::Cluster),
    ("console.openshift.io", "ConsoleQuickStart", "consolequickstarts", Scope::Cluster),
    ("console.openshift.io", "ConsoleCLIDownload", "consoleclidownloads", Scope::Cluster),
    ("console.openshift.io", "ConsoleLink", "consolelinks", Scope::Cluster),
    ("console.openshift.io", "ConsolePlugin", "consoleplugins", Scope::Cluster),
    ("cert-manager.io", "Issuer", "issuers", Scope::Namespaced),
    ("cert-manager.io", "Certificate", "certificates", Scope::Namespaced),
    ("cert-manager.io", "ClusterIssuer", "clusterissuers", Scope::Cluster),
];

const BUILTIN: [&Resource; 20] = [
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
];

impl KindResolver for BundleKinds {
    fn resolve(&self, kind: &Gvk) -> Option<Resource> {
        let builtin = BUILTIN
            .iter()
            .find(|resource| resource.group == kind.group && resource.kind == kind.kind)
            .map(|resource| (&*resource.plural, resource.scope));
        let further = || {
            let found = FURTHER
                .iter()
                .find(|(group, name, _, _)| *group == kind.group && *name == kind.kind);
            found.map(|(_, _, plural, scope)| (*plural, *scope))
        };
        let (plural, scope) = builtin.or_else(further)?;
        Some(Resource::new(&*kind.group, &*kind.version, &*kind.kind, plural, scope))
    }
}
