//! The table of built-in kinds: their columns and the functions that fill them.

use super::row::Row;
use super::{cluster, config, network, pods, workloads};
use mainstay_object::Object;
use serde_json::Value;

/// A column's head.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) format: &'static str,
    /// Zero for columns that are always shown; others appear in wide output only.
    pub(super) priority: i64,
}

/// The columns of a kind.
pub(super) struct Printer {
    pub(super) columns: &'static [Column],
    /// One cell for each column.
    pub(super) cells: fn(&Row<'_>) -> Vec<Value>,
    /// The conditions of the row: whether the object has completed.
    pub(super) conditions: fn(&Object) -> Option<Value>,
}

const fn column(name: &'static str, kind: &'static str) -> Column {
    Column { name, kind, format: "", priority: 0 }
}

const fn text(name: &'static str) -> Column {
    column(name, "string")
}

const fn integer(name: &'static str) -> Column {
    column(name, "integer")
}

const fn boolean(name: &'static str) -> Column {
    column(name, "boolean")
}

const fn wide(name: &'static str) -> Column {
    Column { priority: 1, ..text(name) }
}

const NAME: Column = Column { format: "name", ..text("Name") };
const AGE: Column = text("Age");

macro_rules! printers {
    ($($group:literal $kind:literal $cells:path => [$($column:expr),* $(,)?];)*) => {
        /// The printer of a built-in kind.
        pub(super) fn printer(group: &str, kind: &str) -> &'static Printer {
            match (group, kind) {
                $(($group, $kind) => {
                    const COLUMNS: &[Column] = &[$($column),*];
                    static PRINTER: Printer =
                        Printer { columns: COLUMNS, cells: $cells, conditions: |_| None };
                    &PRINTER
                })*
                ("", "Pod") => &POD,
                ("" | "events.k8s.io", "Event") => &EVENT,
                _ => &OTHER,
            }
        }
    };
}

static POD: Printer = Printer {
    columns: &[
        NAME,
        text("Ready"),
        text("Status"),
        text("Restarts"),
        AGE,
        wide("IP"),
        wide("Node"),
        wide("Nominated Node"),
        wide("Readiness Gates"),
    ],
    cells: pods::pod,
    conditions: pods::conditions,
};

static EVENT: Printer = Printer {
    columns: &[
        text("Last Seen"),
        text("Type"),
        text("Reason"),
        text("Object"),
        wide("Subobject"),
        wide("Source"),
        text("Message"),
        wide("First Seen"),
        wide("Count"),
        Column { format: "name", ..wide("Name") },
    ],
    cells: cluster::event,
    conditions: |_| None,
};

/// The printer of kinds without columns of their own.
pub(super) static OTHER: Printer = Printer {
    columns: &[NAME, column("Created At", "date")],
    cells: config::created,
    conditions: |_| None,
};

printers! {
    "" "PodTemplate" workloads::pod_template =>
        [NAME, text("Containers"), text("Images"), text("Pod Labels")];
    "" "ReplicationController" workloads::replication_controller => [
        NAME, integer("Desired"), integer("Current"), integer("Ready"), AGE,
        wide("Containers"), wide("Images"), wide("Selector"),
    ];
    "apps" "ReplicaSet" workloads::replica_set => [
        NAME, integer("Desired"), integer("Current"), integer("Ready"), AGE,
        wide("Containers"), wide("Images"), wide("Selector"),
    ];
    "apps" "Deployment" workloads::deployment => [
        NAME, text("Ready"), text("Up-to-date"), text("Available"), AGE,
        wide("Containers"), wide("Images"), wide("Selector"),
    ];
    "apps" "StatefulSet" workloads::stateful_set =>
        [NAME, text("Ready"), AGE, wide("Containers"), wide("Images")];
    "apps" "DaemonSet" workloads::daemon_set => [
        NAME, integer("Desired"), integer("Current"), integer("Ready"), integer("Up-to-date"),
        integer("Available"), text("Node Selector"), AGE,
        wide("Containers"), wide("Images"), wide("Selector"),
    ];
    "apps" "ControllerRevision" workloads::controller_revision =>
        [NAME, text("Controller"), text("Revision"), AGE];
    "batch" "Job" workloads::job => [
        NAME, text("Status"), text("Completions"), text("Duration"), AGE,
        wide("Containers"), wide("Images"), wide("Selector"),
    ];
    "batch" "CronJob" workloads::cron_job => [
        NAME, text("Schedule"), text("Timezone"), boolean("Suspend"), integer("Active"),
        text("Last Schedule"), AGE, wide("Containers"), wide("Images"), wide("Selector"),
    ];
    "autoscaling" "HorizontalPodAutoscaler" workloads::autoscaler => [
        NAME, text("Reference"), text("Targets"), text("MinPods"), text("MaxPods"),
        text("Replicas"), AGE,
    ];
    "policy" "PodDisruptionBudget" workloads::disruption_budget => [
        NAME, text("Min Available"), text("Max Unavailable"), integer("Allowed Disruptions"), AGE,
    ];

    "" "Service" network::service => [
        NAME, text("Type"), text("Cluster-IP"), text("External-IP"), text("Port(s)"), AGE,
        wide("Selector"),
    ];
    "" "Endpoints" network::endpoints => [NAME, text("Endpoints"), AGE];
    "discovery.k8s.io" "EndpointSlice" network::endpoint_slice =>
        [NAME, text("AddressType"), text("Ports"), text("Endpoints"), AGE];
    "networking.k8s.io" "Ingress" network::ingress =>
        [NAME, text("Class"), text("Hosts"), text("Address"), text("Ports"), AGE];
    "networking.k8s.io" "IngressClass" network::ingress_class =>
        [NAME, text("Controller"), text("Parameters"), AGE];
    "networking.k8s.io" "NetworkPolicy" network::network_policy =>
        [NAME, text("Pod-Selector"), AGE];
    "networking.k8s.io" "IPAddress" network::address => [NAME, text("ParentRef")];
    "networking.k8s.io" "ServiceCIDR" network::service_range => [NAME, text("CIDRs"), AGE];

    "" "Node" cluster::node => [
        NAME, text("Status"), text("Roles"), AGE, text("Version"), wide("Internal-IP"),
        wide("External-IP"), wide("OS-Image"), wide("Kernel-Version"), wide("Container-Runtime"),
    ];
    "" "Namespace" cluster::namespace => [NAME, text("Status"), AGE];
    "" "ComponentStatus" cluster::component_status =>
        [NAME, text("Status"), text("Message"), text("Error")];
    "autoscaling" "Scale" workloads::scale =>
        [text("Name"), integer("Desired"), integer("Available"), AGE];
    "resource.k8s.io" "DeviceClass" config::aged => [NAME, AGE];
    "resource.k8s.io" "ResourceClaim" cluster::resource_claim => [NAME, text("State"), AGE];
    "resource.k8s.io" "ResourceClaimTemplate" config::aged => [NAME, AGE];
    "resource.k8s.io" "ResourceSlice" cluster::resource_slice =>
        [NAME, text("Node"), text("Driver"), text("Pool"), AGE];
    "apiregistration.k8s.io" "APIService" cluster::api_service =>
        [NAME, text("Service"), text("Available"), AGE];
    "coordination.k8s.io" "Lease" cluster::lease => [NAME, text("Holder"), AGE];
    "certificates.k8s.io" "CertificateSigningRequest" cluster::signing_request => [
        NAME, AGE, text("SignerName"), text("Requestor"), text("RequestedDuration"),
        text("Condition"),
    ];
    "node.k8s.io" "RuntimeClass" cluster::runtime_class => [NAME, text("Handler"), AGE];
    "scheduling.k8s.io" "PriorityClass" cluster::priority_class => [
        NAME, integer("Value"), boolean("Global-Default"), AGE, text("PreemptionPolicy"),
    ];
    "flowcontrol.apiserver.k8s.io" "FlowSchema" cluster::flow_schema => [
        NAME, text("PriorityLevel"), text("MatchingPrecedence"), text("DistinguisherMethod"), AGE,
        text("MissingPL"),
    ];
    "flowcontrol.apiserver.k8s.io" "PriorityLevelConfiguration" cluster::priority_level => [
        NAME, text("Type"), text("NominalConcurrencyShares"), text("Queues"), text("HandSize"),
        text("QueueLengthLimit"), AGE,
    ];
    "admissionregistration.k8s.io" "ValidatingWebhookConfiguration" cluster::webhooks =>
        [NAME, integer("Webhooks"), AGE];
    "admissionregistration.k8s.io" "MutatingWebhookConfiguration" cluster::webhooks =>
        [NAME, integer("Webhooks"), AGE];
    "admissionregistration.k8s.io" "ValidatingAdmissionPolicy" cluster::validating_policy =>
        [NAME, integer("Validations"), text("ParamKind"), AGE];
    "admissionregistration.k8s.io" "MutatingAdmissionPolicy" cluster::mutating_policy =>
        [NAME, integer("Mutations"), text("ParamKind"), AGE];
    "admissionregistration.k8s.io" "ValidatingAdmissionPolicyBinding" cluster::policy_binding =>
        [NAME, text("PolicyName"), text("ParamRef"), AGE];
    "admissionregistration.k8s.io" "MutatingAdmissionPolicyBinding" cluster::policy_binding =>
        [NAME, text("PolicyName"), text("ParamRef"), AGE];

    "" "ConfigMap" config::config_map => [NAME, text("Data"), AGE];
    "" "Secret" config::secret => [NAME, text("Type"), text("Data"), AGE];
    "" "ServiceAccount" config::aged => [NAME, AGE];
    "" "ResourceQuota" config::quota => [NAME, text("Request"), text("Limit"), AGE];
    "" "PersistentVolume" config::volume => [
        NAME, text("Capacity"), text("Access Modes"), text("Reclaim Policy"), text("Status"),
        text("Claim"), text("StorageClass"), text("VolumeAttributesClass"), text("Reason"), AGE,
        wide("VolumeMode"),
    ];
    "" "PersistentVolumeClaim" config::volume_claim => [
        NAME, text("Status"), text("Volume"), text("Capacity"), text("Access Modes"),
        text("StorageClass"), text("VolumeAttributesClass"), AGE, wide("VolumeMode"),
    ];
    "storage.k8s.io" "StorageClass" config::storage_class => [
        NAME, text("Provisioner"), text("ReclaimPolicy"), text("VolumeBindingMode"),
        text("AllowVolumeExpansion"), AGE,
    ];
    "storage.k8s.io" "VolumeAttributesClass" config::volume_attributes_class =>
        [NAME, text("DriverName"), AGE];
    "storage.k8s.io" "CSIDriver" config::storage_driver => [
        NAME, boolean("AttachRequired"), boolean("PodInfoOnMount"), boolean("StorageCapacity"),
        text("TokenRequests"), boolean("RequiresRepublish"), text("Modes"), AGE,
    ];
    "storage.k8s.io" "CSINode" config::storage_node => [NAME, integer("Drivers"), AGE];
    "storage.k8s.io" "VolumeAttachment" config::volume_attachment => [
        NAME, Column { format: "name", ..text("Attacher") }, text("PV"), text("Node"),
        boolean("Attached"), AGE,
    ];
    "rbac.authorization.k8s.io" "RoleBinding" config::binding =>
        [NAME, text("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")];
    "rbac.authorization.k8s.io" "ClusterRoleBinding" config::binding =>
        [NAME, text("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")];
}
