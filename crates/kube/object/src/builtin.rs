//! Constants for the built-in kinds that this project's code uses, and for kinds of add-ons and of
//! `OpenShift` that bundles may contain.

use crate::Resource;

macro_rules! known {
    ($($(#[$doc:meta])* $name:ident = $scope:ident($group:literal, $version:literal, $kind:literal, $plural:literal);)*) => {
        $(
            #[doc = concat!("`", $kind, "`, ", $group, " ", $version, ".")]
            pub const $name: Resource = Resource::$scope($group, $version, $kind, $plural);
        )*
    };
}

known! {
    NAMESPACE = cluster("", "v1", "Namespace", "namespaces");
    NODE = cluster("", "v1", "Node", "nodes");
    PERSISTENT_VOLUME = cluster("", "v1", "PersistentVolume", "persistentvolumes");
    POD = namespaced("", "v1", "Pod", "pods");
    SERVICE = namespaced("", "v1", "Service", "services");
    SERVICE_ACCOUNT = namespaced("", "v1", "ServiceAccount", "serviceaccounts");
    SECRET = namespaced("", "v1", "Secret", "secrets");
    PERSISTENT_VOLUME_CLAIM = namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims");
    RESOURCE_QUOTA = namespaced("", "v1", "ResourceQuota", "resourcequotas");
    CONFIG_MAP = namespaced("", "v1", "ConfigMap", "configmaps");
    EVENT = namespaced("", "v1", "Event", "events");
    ENDPOINTS = namespaced("", "v1", "Endpoints", "endpoints");
    DEPLOYMENT = namespaced("apps", "v1", "Deployment", "deployments");
    REPLICA_SET = namespaced("apps", "v1", "ReplicaSet", "replicasets");
    REPLICATION_CONTROLLER = namespaced("", "v1", "ReplicationController", "replicationcontrollers");
    STATEFUL_SET = namespaced("apps", "v1", "StatefulSet", "statefulsets");
    DAEMON_SET = namespaced("apps", "v1", "DaemonSet", "daemonsets");
    CONTROLLER_REVISION = namespaced("apps", "v1", "ControllerRevision", "controllerrevisions");
    CRON_JOB = namespaced("batch", "v1", "CronJob", "cronjobs");
    JOB = namespaced("batch", "v1", "Job", "jobs");
    ENDPOINT_SLICE = namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices");
    LEASE = namespaced("coordination.k8s.io", "v1", "Lease", "leases");
    ROLE = namespaced("rbac.authorization.k8s.io", "v1", "Role", "roles");
    ROLE_BINDING = namespaced("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings");
    CLUSTER_ROLE = cluster("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles");
    CLUSTER_ROLE_BINDING = cluster("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings");
    CUSTOM_RESOURCE_DEFINITION = cluster("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
    API_SERVICE = cluster("apiregistration.k8s.io", "v1", "APIService", "apiservices");
    NETWORK_POLICY = namespaced("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies");
    POD_DISRUPTION_BUDGET = namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
    PRIORITY_CLASS = cluster("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses");
    MUTATING_WEBHOOK_CONFIGURATION = cluster("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations");
    VALIDATING_WEBHOOK_CONFIGURATION = cluster("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations");
}

/// Kinds of common add-ons, which bundles may contain.
pub mod addons {
    use crate::Resource;

    known! {
        PROMETHEUS_RULE = namespaced("monitoring.coreos.com", "v1", "PrometheusRule", "prometheusrules");
        SERVICE_MONITOR = namespaced("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors");
        POD_MONITOR = namespaced("monitoring.coreos.com", "v1", "PodMonitor", "podmonitors");
        VERTICAL_POD_AUTOSCALER = namespaced("autoscaling.k8s.io", "v1", "VerticalPodAutoscaler", "verticalpodautoscalers");
        ISSUER = namespaced("cert-manager.io", "v1", "Issuer", "issuers");
        CLUSTER_ISSUER = cluster("cert-manager.io", "v1", "ClusterIssuer", "clusterissuers");
        CERTIFICATE = namespaced("cert-manager.io", "v1", "Certificate", "certificates");
    }
}

/// Kinds of the `OpenShift` console, which bundles may contain.
pub mod openshift {
    use crate::Resource;

    known! {
        CONSOLE_YAML_SAMPLE = cluster("console.openshift.io", "v1", "ConsoleYAMLSample", "consoleyamlsamples");
        CONSOLE_QUICK_START = cluster("console.openshift.io", "v1", "ConsoleQuickStart", "consolequickstarts");
        CONSOLE_CLI_DOWNLOAD = cluster("console.openshift.io", "v1", "ConsoleCLIDownload", "consoleclidownloads");
        CONSOLE_LINK = cluster("console.openshift.io", "v1", "ConsoleLink", "consolelinks");
        CONSOLE_PLUGIN = cluster("console.openshift.io", "v1", "ConsolePlugin", "consoleplugins");
    }
}
